#include "tests/Samples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace wg::tests {

using namespace runtime;

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// Splits at `separator` outside of brackets.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[')
      ++depth;
    if (i < text.size() && text[i] == ']')
      --depth;
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      if (std::string_view part = trim(text.substr(start, i - start)); !part.empty())
        parts.push_back(part);
      start = i + 1;
    }
  }
  return parts;
}

std::vector<double> numbers(std::string_view list) {
  std::vector<double> values;
  std::string inner(list.substr(1, list.size() - 2));
  for (std::string_view part : split(inner, ','))
    values.push_back(part == "nan" ? NAN : part == "inf" ? INFINITY : part == "-inf" ? -INFINITY : std::strtod(std::string(part).c_str(), nullptr));
  return values;
}

Ints intsOf(std::string_view list) {
  Ints values;
  for (double value : numbers(list))
    values.push_back(static_cast<int64_t>(value));
  return values;
}

/// splitmix64 to [0, 1).
double uniform(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x100000000ull + i + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

void setElement(Array &array, int64_t i, double value) {
  auto toInteger = [](double x, double lo, double hi) { return std::isnan(x) ? 0.0 : std::clamp(std::nearbyint(x), lo, hi); };
  switch (array.dtype()) {
  case DType::f64: array.data<double>()[i] = value; break;
  case DType::f32: array.data<float>()[i] = static_cast<float>(value); break;
  case DType::i64: array.data<int64_t>()[i] = static_cast<int64_t>(toInteger(value, -0x1p62, 0x1p62)); break;
  case DType::i32: array.data<int32_t>()[i] = static_cast<int32_t>(toInteger(value, -0x1p31, 0x1p31 - 1)); break;
  case DType::u8: array.data<uint8_t>()[i] = static_cast<uint8_t>(toInteger(std::fabs(value), 0, 255)); break;
  case DType::boolean: array.data<bool>()[i] = value != 0; break;
  default: break;
  }
}

Result<Array> operandOf(std::string_view text, DType dtype, uint64_t seed) {
  size_t open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos)
    return valueError("sample operand without a shape: " + std::string(text));
  std::optional<DType> written = parseDType(trim(text.substr(0, open)));
  if (!written)
    return valueError("sample operand of an unknown dtype: " + std::string(text));
  Array array = Array::empty(*written == DType::f64 ? dtype : *written, Shape(intsOf(text.substr(open, close - open + 1))));
  std::string_view rest = trim(text.substr(close + 1));
  if (rest.starts_with("in ")) {
    std::vector<double> bounds = numbers(trim(rest.substr(3)));
    for (int64_t i = 0; i < array.numElements(); ++i)
      setElement(array, i, bounds[0] + (bounds[1] - bounds[0]) * uniform(seed, static_cast<uint64_t>(i)));
    return array;
  }
  if (!rest.starts_with("="))
    return valueError("sample operand with neither `in` nor `=`: " + std::string(text));
  std::vector<double> values = numbers(trim(rest.substr(1)));
  if (static_cast<int64_t>(values.size()) != array.numElements())
    return valueError("sample operand with " + std::to_string(values.size()) + " values for " + toString(array.type));
  for (size_t i = 0; i < values.size(); ++i)
    setElement(array, static_cast<int64_t>(i), values[i]);
  return array;
}

} // namespace

double elementOf(const Array &array, int64_t i) {
  switch (array.dtype()) {
  case DType::f64: return array.data<double>()[i];
  case DType::f32: return array.data<float>()[i];
  case DType::i64: return static_cast<double>(array.data<int64_t>()[i]);
  case DType::i32: return array.data<int32_t>()[i];
  case DType::u8: return array.data<uint8_t>()[i];
  default: return array.data<bool>()[i];
  }
}

Result<Sample> parseSample(OpId op, std::string_view text, DType dtype, uint64_t seed) {
  Sample sample{op, std::string(text), {}, {}};
  size_t bar = text.find('|');
  for (std::string_view part : split(text.substr(0, bar), ';')) {
    Result<Array> operand = operandOf(part, dtype, seed + 17 * sample.operands.size());
    if (!operand.ok())
      return operand.take();
    sample.operands.push_back(std::move(*operand));
  }
  const OpRecord &record = recordOf(op);
  std::vector<AttrValue> values(record.attrs.size());
  if (bar != std::string_view::npos)
    for (std::string_view part : split(text.substr(bar + 1), ';')) {
      size_t equals = part.find('=');
      std::string_view name = trim(part.substr(0, equals)), value = trim(part.substr(equals + 1));
      bool known = false;
      for (size_t i = 0; i < record.attrs.size(); ++i) {
        if (name != record.attrs[i].name)
          continue;
        known = true;
        switch (record.attrs[i].kind) {
        case AttrKind::integer: values[i] = static_cast<int64_t>(std::strtoll(std::string(value).c_str(), nullptr, 10)); break;
        case AttrKind::real: values[i] = std::strtod(std::string(value).c_str(), nullptr); break;
        case AttrKind::dtype: values[i] = *parseDType(value); break;
        case AttrKind::ints: values[i] = intsOf(value); break;
        case AttrKind::string: values[i] = std::string(value); break;
        case AttrKind::array: return valueError("samples give no arrays as attributes: " + std::string(text));
        }
      }
      if (!known)
        return valueError("sample with an unknown attribute: " + std::string(part));
    }
  if (!values.empty())
    sample.attrs = Attrs(std::move(values));
  return sample;
}

const std::vector<SampleText> &allSamples() {
  static const std::vector<SampleText> samples = {
#define WG_SAMPLE(op, text) {OpId::op, text},
#include "tests/Samples.inc"
#undef WG_SAMPLE
  };
  return samples;
}

std::vector<DType> dtypesOf(const SampleText &sample) {
  std::string_view text = sample.text;
  if (text.find("f64[") == std::string_view::npos)
    return {DType::f64}; // every operand says its own dtype
  std::vector<DType> dtypes;
  // A condition or an index before the data does not restrict it.
  DTypeSet accepted = text.starts_with("f64[") ? recordOf(sample.op).dtypes : kAnyDType;
  for (DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8})
    if (accepted & setOf(dtype))
      dtypes.push_back(dtype);
  return dtypes;
}

} // namespace wg::tests
