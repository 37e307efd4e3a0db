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

/// The text of a static: its type, and its value by kind, size and bits.
static std::string staticText(KeyTag tag, uint32_t bytes, bool isUnsigned, const uint64_t *bits,
                              std::string_view type) {
  std::string text(type);
  switch (tag) {
  case KeyTag::real: {
    char digits[48];
    if (bytes <= 8) {
      double value = bytes == 4 ? std::bit_cast<float>(static_cast<uint32_t>(*bits)) : std::bit_cast<double>(*bits);
      std::snprintf(digits, sizeof digits, " %.17g", value);
    } else {
      long double value = 0;
      std::memcpy(&value, bits, sizeof value);
      std::snprintf(digits, sizeof digits, " %.21Lg", value);
    }
    return text + digits;
  }
  case KeyTag::boolean: return text + (*bits ? " true" : " false");
  default:
    return (tag == KeyTag::enumeration ? "enum " : "") + text + " " +
           (isUnsigned ? std::to_string(*bits) : std::to_string(static_cast<int64_t>(*bits)));
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

std::vector<SignatureLeaf> leavesOf(std::span<const uint64_t> key, const FunctionOptions &options) {
  std::vector<SignatureLeaf> leaves;
  std::vector<Part> parts; // the argument, and the elements of maps that are open
  std::string place;       // of the variable that follows
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
  for (size_t i = 0; i < key.size();) {
    uint64_t head = key[i++];
    auto tag = static_cast<KeyTag>(head & 0xff);
    uint32_t a = static_cast<uint32_t>(head >> 8), b = static_cast<uint32_t>(head >> 40);
    TensorType type;
    auto readType = [&](uint32_t dtype, uint32_t rank) {
      type.dtype = static_cast<DType>(dtype);
      for (uint32_t axis = 0; axis < rank; ++axis)
        type.shape.push_back(static_cast<int64_t>(key[i++]));
      return toString(type);
    };
    switch (tag) {
    case KeyTag::argument:
      if (!parts.empty())
        close();
      parts.push_back({a < options.argument_names.size() ? options.argument_names[a] : "arg" + std::to_string(a)});
      break;
    case KeyTag::tensor: add(readType(a, b & 0xff), false); break;
    case KeyTag::place: place = ", place " + std::to_string(a); break;
    case KeyTag::variable: {
      std::string text = "variable " + readType(a & 0xff, a >> 8 & 0xff);
      add(text + " (alias class " + std::to_string(b) + std::exchange(place, "") + ")", false);
      break;
    }
    case KeyTag::sizes: {
      Ints sizes;
      for (uint32_t axis = 0; axis < a; ++axis)
        sizes.push_back(static_cast<int64_t>(key[i++]));
      add("shape " + toString(sizes));
      break;
    }
    case KeyTag::string:
    case KeyTag::key: {
      std::string text;
      for (uint32_t at = 0; at < a; at += 8, ++i)
        text.append(reinterpret_cast<const char *>(&key[i]), std::min<uint32_t>(8, a - at));
      if (tag == KeyTag::key)
        parts.push_back({parts.back().path + "[\"" + visible(text) + "\"]"});
      else
        add("string \"" + visible(text) + "\"");
      break;
    }
    case KeyTag::field:
      parts.push_back({parts.back().path + "." + std::string(*reinterpret_cast<const std::string_view *>(key[i++]))});
      break;
    case KeyTag::endKey: close(); break;
    case KeyTag::count:
      parts.back().several = true;
      leaves.push_back({parts.back().path, "length " + std::to_string(a)});
      break;
    default: {
      size_t words = valueWords(a);
      add(staticText(tag, a, (b & 1) != 0, &key[i], *reinterpret_cast<const std::string_view *>(key[i + words])));
      i += words + 1;
    }
    }
  }
  if (!parts.empty())
    close();
  return leaves;
}

} // namespace wg::detail
