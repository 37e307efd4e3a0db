#include "runtime/Array.h"

#include <charconv>
#include <cmath>

namespace wg::runtime {

/// The shortest decimal that reads back as `value`; `nan`, `inf`, and always a mark of a float: `1.0`, `1e+20`.
template <class T> static std::string floatText(T value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  char text[64];
  std::string_view digits(text, static_cast<size_t>(std::to_chars(text, text + sizeof(text), value).ptr - text));
  return std::string(digits) + (digits.find_first_of(".e") == std::string_view::npos ? ".0" : "");
}

float widen(uint16_t bits, DType dtype) {
  float value;
  if (dtype == DType::bf16) {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  value = exponent == 31 ? (fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits >> 15 ? -value : value;
}

static std::string elementText(const Array &array, int64_t i) {
  switch (array.dtype()) {
  case DType::f64: return floatText(array.data<double>()[i]);
  case DType::f32: return floatText(array.data<float>()[i]);
  case DType::bf16:
  case DType::f16: return floatText(widen(array.data<uint16_t>()[i], array.dtype()));
  case DType::i64: return std::to_string(array.data<int64_t>()[i]);
  case DType::i32: return std::to_string(array.data<int32_t>()[i]);
  case DType::u8: return std::to_string(array.data<uint8_t>()[i]);
  case DType::boolean: return array.data<uint8_t>()[i] ? "true" : "false";
  }
  return {};
}

namespace {
struct Style {
  bool elide; ///< axes longer than kLong show their first and last kEdge entries
  bool lines; ///< a line for each row
  int indent; ///< of the lines after the first
};
} // namespace

static void append(std::string &text, const Array &array, int axis, int64_t offset, const Style &style) {
  const int rank = array.shape().rank();
  if (axis == rank) {
    text += elementText(array, offset);
    return;
  }
  constexpr int64_t kEdge = 3, kLong = 2 * kEdge + 1;
  int64_t size = array.shape().dim(axis), stride = 1;
  for (int inner = axis + 1; inner < array.shape().rank(); ++inner)
    stride *= array.shape().dim(inner);
  text += '[';
  for (int64_t i = 0; i < size; ++i) {
    if (i != 0 && style.lines && axis + 1 < rank)
      text += "," + std::string(static_cast<size_t>(rank - 1 - axis), '\n') +
              std::string(static_cast<size_t>(style.indent + axis + 1), ' ');
    else if (i != 0)
      text += ", ";
    if (style.elide && size > kLong && i == kEdge) {
      text += "...";
      i = size - kEdge - 1;
      continue;
    }
    append(text, array, axis + 1, offset + i * stride, style);
  }
  text += ']';
}

std::string toString(const Array &array, int indent) {
  constexpr size_t kLine = 75; // NumPy's, for what has rows
  std::string text;
  Style style{.elide = array.numElements() > 1000, .lines = false, .indent = indent};
  append(text, array, 0, 0, style);
  if (array.shape().rank() > 1 && text.size() > kLine) {
    text.clear();
    style.lines = true;
    append(text, array, 0, 0, style);
  }
  return text;
}

} // namespace wg::runtime
