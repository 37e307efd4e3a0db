#include "runtime/DType.h"

namespace wg::runtime {

static constexpr std::string_view kNames[kNumDTypes] = {"f64", "f32", "bf16", "f16", "i64", "i32", "u8", "bool"};
static constexpr std::string_view kLongNames[kNumDTypes] = {"float64", "float32", "bfloat16", "float16",
                                                            "int64",   "int32",   "uint8",    "bool"};

std::string_view nameOf(DType dtype) { return kNames[static_cast<int>(dtype)]; }

std::string_view longNameOf(DType dtype) { return kLongNames[static_cast<int>(dtype)]; }

std::optional<DType> parseDType(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (name == kNames[i] || name == kLongNames[i])
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace wg::runtime
