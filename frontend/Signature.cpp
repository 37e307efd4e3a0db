// The words of a signature, and how they read: `x: f32[64,784]`, `n: int 3`.
#include "frontend/Function.h"

#include <bit>

namespace wg::detail {

void Arguments::operator()(const Variable &variable) {
  if (!variable.defined())
    raiseOp("variable", "an argument is an undefined variable", "give it a value: Variable w(0.0f)", {}, where);
  const TensorType &type = variable.state()->type;
  // Aliasing: the place of the first argument that is the same variable.
  uint32_t alias = static_cast<uint32_t>(leaves.size());
  for (uint32_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].variable && leaves[i].variable->is(variable)) {
      alias = i;
      break;
    }
  word(KeyTag::variable, static_cast<uint32_t>(type.dtype) | static_cast<uint32_t>(type.shape.rank()) << 8, alias);
  for (int64_t dim : type.shape)
    key.push_back(static_cast<uint64_t>(dim));
  leaves.push_back({nullptr, &variable});
}

void Arguments::string(KeyTag tag, const std::string &text) {
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

/// The text of a static: its type, and its value by kind and bits.
static std::string staticText(KeyTag tag, bool isUnsigned, uint64_t bits, std::string_view type) {
  std::string text(type);
  switch (tag) {
  case KeyTag::real: {
    char digits[40];
    std::snprintf(digits, sizeof digits, " %.17g", std::bit_cast<double>(bits));
    return text + digits;
  }
  case KeyTag::boolean:
    return text + (bits ? " true" : " false");
  case KeyTag::enumeration:
    return "enum " + text + " " + std::to_string(static_cast<int64_t>(bits));
  default:
    return text + " " + (isUnsigned ? std::to_string(bits) : std::to_string(static_cast<int64_t>(bits)));
  }
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
  auto add = [&](std::string text) {
    parts.back().leaves.push_back(leaves.size());
    leaves.push_back({parts.back().path, std::move(text)});
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
    case KeyTag::tensor:
      add(readType(a, b & 0xff));
      break;
    case KeyTag::variable: {
      std::string text = "variable " + readType(a & 0xff, a >> 8 & 0xff);
      add(text + " (alias class " + std::to_string(b) + ")");
      break;
    }
    case KeyTag::string:
    case KeyTag::key: {
      std::string text;
      for (uint32_t at = 0; at < a; at += 8, ++i)
        text.append(reinterpret_cast<const char *>(&key[i]), std::min<uint32_t>(8, a - at));
      if (tag == KeyTag::key)
        parts.push_back({parts.back().path + "[\"" + text + "\"]"});
      else
        add("string \"" + text + "\"");
      break;
    }
    case KeyTag::endKey:
      close();
      break;
    case KeyTag::count:
      parts.back().several = true;
      leaves.push_back({parts.back().path, "length " + std::to_string(a)});
      break;
    default:
      add(staticText(tag, b != 0, key[i], *reinterpret_cast<const std::string_view *>(key[i + 1])));
      i += 2;
    }
  }
  if (!parts.empty())
    close();
  return leaves;
}

} // namespace wg::detail
