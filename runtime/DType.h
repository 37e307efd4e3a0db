// What an element is: its name, its size, its kind. Knows nothing of tensors.
#pragma once

#include "runtime/Export.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace wg::runtime {

/// Element types. `boolean` is one byte in memory, 0 or 1. bf16 and f16 have their place in every table
/// and no kernel yet.
enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8, boolean };
inline constexpr int kNumDTypes = 8;

/// Bytes of one element.
constexpr size_t sizeOf(DType dtype) {
  constexpr uint8_t sizes[kNumDTypes] = {8, 4, 2, 2, 8, 4, 1, 1};
  return sizes[static_cast<int>(dtype)];
}

constexpr bool isFloat(DType dtype) { return dtype <= DType::f16; }
constexpr bool isInteger(DType dtype) { return dtype >= DType::i64 && dtype <= DType::u8; }

/// A set of dtypes, one bit each; what an op accepts.
using DTypeSet = uint8_t;
constexpr DTypeSet setOf(DType dtype) { return static_cast<DTypeSet>(1u << static_cast<int>(dtype)); }
inline constexpr DTypeSet kFloats = 0x0f, kIntegers = 0x70, kBooleans = 0x80;
inline constexpr DTypeSet kNumbers = kFloats | kIntegers, kAnyDType = 0xff;

/// The short name, as in the IR and in messages: `f32`, `i64`, `bool`.
WENGERT_API std::string_view nameOf(DType dtype);
/// The long name, as NumPy and TensorFlow print it: `float32`, `int64`, `bool`.
WENGERT_API std::string_view longNameOf(DType dtype);
/// Reads either spelling.
WENGERT_API std::optional<DType> parseDType(std::string_view name);

template <class T> struct DTypeOf;
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <> struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <> struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <> struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <class T> inline constexpr DType dtypeOf = DTypeOf<std::remove_cv_t<T>>::value;

} // namespace wg::runtime
