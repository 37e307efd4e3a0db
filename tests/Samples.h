// The ops' samples (ir/Dialect.td, field `samples`) as data: what the gradient, agreement and rule tests run on.
#pragma once

#include "runtime/Op.h"
#include "runtime/Random.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace wg::tests {

/// One sample: an op, its attributes, and operands whose values follow from `seed`.
struct Sample {
  runtime::OpId op;
  std::string text;
  runtime::Attrs attrs;
  std::vector<runtime::Array> operands;
  std::map<std::string, std::string> reasons = {}; ///< why it is spared a check, by the check's name (ir/Dialect.td)

  /// Empty where it is not spared.
  std::string reason(const std::string &check) const {
    auto at = reasons.find(check);
    return at == reasons.end() ? "" : at->second;
  }

  /// Whether one more axis in front is within the highest rank.
  bool roomForLanes() const {
    std::vector<runtime::TensorType> types;
    for (const runtime::Array &x : operands)
      types.push_back(x.type);
    runtime::TypeList results;
    if (!runtime::inferTypes(op, types, attrs, results).ok())
      return true;
    types.insert(types.end(), results.types, results.types + results.count);
    return std::none_of(types.begin(), types.end(), [](auto &type) { return type.shape.rank() == runtime::kMaxRank; });
  }
};

namespace detail {

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!trim(text).empty()) {
    size_t end = std::min(text.find(separator), text.size());
    parts.push_back(trim(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// What is between the first `[` of `text` and the `]` after it, split at commas.
inline std::vector<std::string_view> list(std::string_view text) {
  size_t begin = text.find('[') + 1;
  return split(text.substr(begin, text.find(']', begin) - begin), ',');
}

inline int64_t integer(std::string_view text) {
  return text == "?" ? runtime::kDynamic : std::stoll(std::string(text));
}

inline runtime::Ints integers(std::string_view text) {
  runtime::Ints values;
  for (std::string_view item : list(text))
    values.push_back(integer(item));
  return values;
}

inline void store(runtime::Array &array, int64_t i, double value) {
  switch (array.dtype()) {
  case runtime::DType::f64: array.data<double>()[i] = value; break;
  case runtime::DType::f32: array.data<float>()[i] = static_cast<float>(value); break;
  case runtime::DType::i64: array.data<int64_t>()[i] = value >= 0x1p63 ? INT64_MAX : static_cast<int64_t>(value); break;
  case runtime::DType::i32: array.data<int32_t>()[i] = static_cast<int32_t>(value); break;
  case runtime::DType::u8: array.data<uint8_t>()[i] = static_cast<uint8_t>(std::fabs(value)); break;
  default: array.data<bool>()[i] = value != 0; break;
  }
}

/// `f64[2,3] in [-3, 3]` or `f64[3] = [1, 2, nan]`; f64 becomes `dtype`.
inline runtime::Array operand(std::string_view text, int64_t seed, int64_t position, runtime::DType dtype) {
  size_t open = text.find('['), close = text.find(']');
  runtime::DType written = *runtime::parseDType(text.substr(0, open));
  runtime::Array array =
      runtime::Array::empty(written == runtime::DType::f64 ? dtype : written, runtime::Shape(integers(text)));
  std::string_view rest = trim(text.substr(close + 1));
  std::vector<std::string_view> items = list(rest);
  for (int64_t i = 0; i < array.numElements(); ++i) {
    double value;
    if (rest.starts_with("in")) {
      double low = std::stod(std::string(items[0])), high = std::stod(std::string(items[1]));
      value = low + (high - low) * runtime::randomUniform<double>(seed, position, i);
    } else {
      value = std::strtod(std::string(items[static_cast<size_t>(i)]).c_str(), nullptr);
    }
    store(array, i, value);
  }
  return array;
}

inline runtime::AttrValue attribute(std::string_view text, runtime::AttrKind kind) {
  switch (kind) {
  case runtime::AttrKind::integer: return integer(text);
  case runtime::AttrKind::real: return std::stod(std::string(text));
  case runtime::AttrKind::dtype: return *runtime::parseDType(text);
  case runtime::AttrKind::ints: return integers(text);
  case runtime::AttrKind::boolean: return text == "true";
  default: return std::string(text);
  }
}

} // namespace detail

/// Reads `operand; operand`. Operands written in f64 are made in `dtype`.
inline std::vector<runtime::Array> parseOperands(std::string_view text, int64_t seed = 1,
                                                 runtime::DType dtype = runtime::DType::f64) {
  std::vector<runtime::Array> operands;
  for (std::string_view part : detail::split(text, ';'))
    operands.push_back(detail::operand(part, seed, static_cast<int64_t>(operands.size()), dtype));
  return operands;
}

/// Reads `operand; operand | attribute = value; attribute = value # check: reason`. Operands written in f64 are made in
/// `dtype`.
inline Sample parseSample(runtime::OpId op, std::string_view text, int64_t seed = 1,
                          runtime::DType dtype = runtime::DType::f64) {
  std::string_view whole = text;
  text = text.substr(0, text.find('#'));
  size_t bar = std::min(text.find('|'), text.size());
  Sample sample{op, std::string(detail::trim(text)), {}, parseOperands(text.substr(0, bar), seed, dtype), {}};
  for (std::string_view item : detail::split(whole.substr(std::min(text.size() + 1, whole.size())), '#')) {
    std::string_view check = detail::trim(item.substr(0, item.find(':')));
    if (check != "differences" && check != "open")
      throw std::runtime_error("a sample names no check: " + std::string(whole));
    sample.reasons.emplace(check, detail::trim(item.substr(check.size() + 1)));
  }
  std::vector<runtime::AttrValue> values;
  const auto &attrs = runtime::recordOf(op).attrs;
  // What names no attribute belongs to the one before: an equation has `;` and `=` as well.
  auto nameOf = [](std::string_view item) { return detail::trim(item.substr(0, item.find('='))); };
  std::vector<std::string> given;
  for (std::string_view item : detail::split(text.substr(std::min(bar + 1, text.size())), ';'))
    if (given.empty() || std::any_of(attrs.begin(), attrs.end(), [&](auto &attr) { return nameOf(item) == attr.name; }))
      given.emplace_back(item);
    else
      given.back().append("; ").append(item);
  for (const runtime::AttrRecord &attr : attrs) {
    size_t before = values.size();
    for (std::string_view item : given)
      if (nameOf(item) == attr.name)
        values.push_back(detail::attribute(detail::trim(item.substr(item.find('=') + 1)), attr.kind));
    if (values.size() == before && attr.open) // an open list may be left out: it is empty
      values.push_back(runtime::Ints());
  }
  if (!values.empty())
    sample.attrs = runtime::Attrs(std::move(values));
  return sample;
}

/// Every sample of every op, in the order of the records.
inline std::vector<Sample> allSamples(int64_t seed = 1) {
  std::vector<Sample> samples;
#define WG_SAMPLE(name, text) samples.push_back(parseSample(runtime::OpId::name, text, seed));
#include "tests/Samples.inc"
#undef WG_SAMPLE
  return samples;
}

} // namespace wg::tests
