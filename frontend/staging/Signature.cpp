// The words of a signature, and how they read: `x: f32[64,784]`, `n: int 3`.
#include "frontend/staging/Function.h"

#include <bit>
#include <utility>

namespace wg::detail {

template <class T, size_t N> Inline<T, N>::~Inline() {
  if (data_ != local_)
    delete[] data_;
}
template <class T, size_t N> void Inline<T, N>::grow(size_t size) {
  size_t wide = std::max(size, capacity_ * 2);
  T *wider = new T[wide];
  std::copy(data_, data_ + size_, wider);
  if (data_ != local_)
    delete[] data_;
  data_ = wider;
  capacity_ = wide;
}
template Inline<uint64_t, 64>::~Inline();
template Inline<Arguments::Leaf, 16>::~Inline();
template Inline<Tensor, 8>::~Inline();
template void Inline<uint64_t, 64>::grow(size_t size);
template void Inline<Arguments::Leaf, 16>::grow(size_t size);
template void Inline<Tensor, 8>::grow(size_t size);

void Arguments::operator()(const Tensor &tensor) {
  const TensorType &type = tensor.body(where)->type;
  word(KeyTag::tensor, static_cast<uint32_t>(type.dtype), static_cast<uint32_t>(type.shape.rank()));
  for (int64_t dim : type.shape)
    key.push_back(static_cast<uint64_t>(dim));
  leaves.push_back({&tensor, nullptr});
  symbolic |= tensor.symbolic();
}

void Arguments::operator()(const Ints &sizes) {
  word(KeyTag::sizes, static_cast<uint32_t>(sizes.size()));
  for (int64_t size : sizes)
    key.push_back(static_cast<uint64_t>(size));
}

void Arguments::operator()(const Variable &variable) {
  if (!variable.defined())
    raiseOp("variable", "an argument is an undefined variable", "give it a value: Variable w(0.0f)", {}, where);
  const TensorType &type = variable.state()->type;
  symbolic |= variableBehind(variable.state())->birth != 0;
  // Aliasing: the first argument that is the same variable; and where it is at several places of a derivative,
  // which argument has this place.
  uint32_t self = static_cast<uint32_t>(leaves.size()), alias = self, place = self;
  bool several = false;
  for (uint32_t i = self; i-- > 0;)
    if (leaves[i].variable && leaves[i].variable->is(variable)) {
      alias = i;
      if (isSameArgument(*leaves[i].variable, variable))
        place = i;
      else
        several = true;
    }
  if (several)
    word(KeyTag::place, place);
  word(KeyTag::variable, static_cast<uint32_t>(type.dtype) | static_cast<uint32_t>(type.shape.rank()) << 8, alias);
  for (int64_t dim : type.shape)
    key.push_back(static_cast<uint64_t>(dim));
  leaves.push_back({nullptr, &variable});
}

void Arguments::string(KeyTag tag, std::string_view text) {
  word(tag, static_cast<uint32_t>(text.size()));
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + i, std::min<size_t>(8, text.size() - i));
    key.push_back(bytes);
  }
}

uint32_t nextTypeNumber() {
  static constinit std::atomic<uint32_t> number = 0;
  return ++number;
}

uint64_t hashOf(std::span<const uint64_t> key) {
  uint64_t hash = key.size();
  for (uint64_t word : key) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

/// The words that hold the value of a static of `bytes` bytes; its type's identity follows them.
static size_t valueWords(uint32_t bytes) { return (bytes + 7) / 8; }

/// The text of a static: its type, and its value.
static std::string staticText(const TreeWord &word) {
  std::string text = word.text;
  switch (word.kind) {
  case TreeWord::real: {
    char digits[48];
    if (word.number <= 8) {
      double value = word.number == 4 ? std::bit_cast<float>(static_cast<uint32_t>(word.bits[0]))
                                      : std::bit_cast<double>(word.bits[0]);
      std::snprintf(digits, sizeof digits, " %.17g", value);
    } else {
      long double value = 0;
      std::memcpy(&value, word.bits, sizeof value);
      std::snprintf(digits, sizeof digits, " %.21Lg", value);
    }
    return text + digits;
  }
  case TreeWord::boolean: return text + (word.bits[0] ? " true" : " false");
  default:
    return (word.kind == TreeWord::enumeration ? "enum " : "") + text + " " +
           (word.isUnsigned ? std::to_string(word.bits[0]) : std::to_string(static_cast<int64_t>(word.bits[0])));
  }
}

/// A string as it is read in a message: control characters, which may end or break it, by their numbers.
static std::string visible(const std::string &text) {
  std::string seen;
  for (char c : text)
    if (auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      seen += escaped;
    } else {
      seen += c;
    }
  return seen;
}

namespace {
/// The leaves of an argument, or of one element of a map: `x`, or `x[0]`, `x[1]` ... if there are several.
struct Part {
  std::string path;
  std::vector<size_t> leaves = {};
  bool several = false;
};
} // namespace

std::vector<TreeWord> wordsOf(std::span<const uint64_t> key) {
  std::vector<TreeWord> words;
  uint32_t place = 0; // of the variable that follows, from 1 on
  for (size_t i = 0; i < key.size();) {
    uint64_t head = key[i++];
    auto tag = static_cast<KeyTag>(head & 0xff);
    uint32_t a = static_cast<uint32_t>(head >> 8), b = static_cast<uint32_t>(head >> 40);
    auto add = [&](TreeWord::Kind kind, uint32_t number = 0) -> TreeWord & {
      words.push_back({.kind = kind, .number = number});
      return words.back();
    };
    auto readShape = [&](uint32_t rank) {
      Shape shape;
      for (uint32_t axis = 0; axis < rank; ++axis)
        shape.push_back(static_cast<int64_t>(key[i++]));
      return shape;
    };
    switch (tag) {
    case KeyTag::argument: add(TreeWord::argument, a); break;
    case KeyTag::tensor: add(TreeWord::tensor).type = {static_cast<DType>(a), readShape(b & 0xff)}; break;
    case KeyTag::place: place = a + 1; break;
    case KeyTag::variable: {
      TreeWord &word = add(TreeWord::variable, b);
      word.place = std::exchange(place, 0);
      word.type = {static_cast<DType>(a & 0xff), readShape(a >> 8 & 0xff)};
      break;
    }
    case KeyTag::sizes: add(TreeWord::sizes).type = {DType::i64, readShape(a)}; break;
    case KeyTag::string:
    case KeyTag::key: {
      TreeWord &word = add(tag == KeyTag::key ? TreeWord::key : TreeWord::string);
      for (uint32_t at = 0; at < a; at += 8, ++i)
        word.text.append(reinterpret_cast<const char *>(&key[i]), std::min<uint32_t>(8, a - at));
      break;
    }
    case KeyTag::field: add(TreeWord::field).text = *reinterpret_cast<const std::string_view *>(key[i++]); break;
    case KeyTag::endKey: add(TreeWord::end); break;
    case KeyTag::count: add(TreeWord::count, a); break;
    default: {
      TreeWord &word = add(tag == KeyTag::real          ? TreeWord::real
                           : tag == KeyTag::boolean     ? TreeWord::boolean
                           : tag == KeyTag::enumeration ? TreeWord::enumeration
                                                        : TreeWord::integer,
                           a);
      word.isUnsigned = (b & 1) != 0;
      size_t length = valueWords(a);
      std::copy_n(&key[i], length, word.bits);
      word.text = *reinterpret_cast<const std::string_view *>(key[i + length]);
      i += length + 1;
    }
    }
  }
  return words;
}

bool covers(std::span<const TreeWord> known, std::span<const TreeWord> words, size_t &open) {
  open = 0;
  if (known.size() != words.size())
    return false;
  for (size_t i = 0; i < known.size(); ++i) {
    const TreeWord &a = known[i], &b = words[i];
    bool hasText = a.kind == TreeWord::string || a.kind == TreeWord::key || a.kind == TreeWord::field;
    if (a.kind != b.kind || a.isUnsigned != b.isUnsigned || a.number != b.number || a.place != b.place ||
        !std::ranges::equal(a.bits, b.bits) || (hasText && a.text != b.text) || a.type.dtype != b.type.dtype ||
        a.type.shape.rank() != b.type.shape.rank())
      return false;
    for (int axis = 0; axis < a.type.shape.rank(); ++axis) {
      bool isOpen = a.kind == TreeWord::tensor && a.type.shape.dim(axis) == dynamic;
      open += isOpen;
      if (!isOpen && a.type.shape.dim(axis) != b.type.shape.dim(axis))
        return false;
    }
  }
  return true;
}

std::vector<SignatureLeaf> leavesOf(std::span<const uint64_t> key, const FunctionOptions &options) {
  return leavesOf(wordsOf(key), options);
}

std::vector<SignatureLeaf> leavesOf(std::span<const TreeWord> words, const FunctionOptions &options) {
  std::vector<SignatureLeaf> leaves;
  std::vector<Part> parts; // the argument, and the elements of maps that are open
  auto add = [&](std::string text, bool isStatic = true) {
    parts.back().leaves.push_back(leaves.size());
    leaves.push_back({parts.back().path, std::move(text), isStatic});
  };
  auto close = [&] {
    const Part &part = parts.back();
    if (part.several || part.leaves.size() > 1)
      for (size_t i = 0; i < part.leaves.size(); ++i)
        leaves[part.leaves[i]].path += "[" + std::to_string(i) + "]";
    parts.pop_back();
  };
  for (const TreeWord &word : words) {
    uint32_t number = word.number;
    switch (word.kind) {
    case TreeWord::argument:
      if (!parts.empty())
        close();
      parts.push_back(
          {number < options.argument_names.size() ? options.argument_names[number] : "arg" + std::to_string(number)});
      break;
    case TreeWord::tensor: add(toString(word.type), false); break;
    case TreeWord::variable:
      add("variable " + toString(word.type) + " (alias class " + std::to_string(number) +
              (word.place ? ", place " + std::to_string(word.place - 1) : "") + ")",
          false);
      break;
    case TreeWord::sizes: add("shape " + toString(static_cast<const Ints &>(word.type.shape))); break;
    case TreeWord::string: add("string \"" + visible(word.text) + "\""); break;
    case TreeWord::key: parts.push_back({parts.back().path + "[\"" + visible(word.text) + "\"]"}); break;
    case TreeWord::field: parts.push_back({parts.back().path + "." + word.text}); break;
    case TreeWord::end: close(); break;
    case TreeWord::count:
      parts.back().several = true;
      leaves.push_back({parts.back().path, "length " + std::to_string(number)});
      break;
    default: add(staticText(word));
    }
  }
  if (!parts.empty())
    close();
  return leaves;
}

std::string signatureText(const std::string &name, std::span<const SignatureLeaf> arguments,
                          std::span<const TensorType> results) {
  std::string text = name + "(";
  for (const SignatureLeaf &leaf : arguments)
    text += (&leaf == arguments.data() ? "" : ", ") + leaf.path + ": " + leaf.text;
  text += ") -> (";
  for (const TensorType &result : results)
    text += (&result == results.data() ? "" : ", ") + toString(result);
  return text + ")";
}

} // namespace wg::detail
