#include "runtime/Extent.h"

#include <algorithm>
#include <new>

namespace wg::runtime {

/// The extent, or nothing where the sizes are no shape or are beyond the bound.
static bool measure(DType dtype, std::span<const int64_t> sizes, Extent &extent) {
  int64_t bound = static_cast<int64_t>(sizeOf(dtype)), elements = 1;
  for (int64_t size : sizes) {
    if (size < 0 && size != kDynamic)
      return false;
    if (__builtin_mul_overflow(bound, std::max<int64_t>(size, 1), &bound) || bound > kMaxBytes)
      return false;
    elements *= size == kDynamic ? 1 : size; // at most `bound`
  }
  extent = {elements, elements * static_cast<int64_t>(sizeOf(dtype))};
  return sizes.size() <= static_cast<size_t>(kMaxRank);
}

/// `f32[4611686018427387905,4]`, of any number of sizes.
static std::string describe(DType dtype, std::span<const int64_t> sizes) {
  std::string text(nameOf(dtype));
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? "," : "[") + (sizes[i] == kDynamic ? std::string("?") : std::to_string(sizes[i]));
  return text + (sizes.empty() ? "[]" : "]");
}

Result<Extent> extentOf(DType dtype, std::span<const int64_t> sizes) {
  Extent extent;
  if (measure(dtype, sizes, extent)) [[likely]]
    return extent;
  if (sizes.size() > static_cast<size_t>(kMaxRank))
    return valueError("a tensor has " + std::to_string(kMaxRank) + " axes at most, got " +
                      std::to_string(sizes.size()));
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0 && size != kDynamic; }))
    return valueError("sizes are not negative, got " + describe(dtype, sizes));
  return valueError(describe(dtype, sizes) + " has more than 2^56 bytes, the most that a tensor may have",
                    "make it smaller");
}

Result<Extent> extentOf(const TensorType &type) { return extentOf(type.dtype, type.shape); }

size_t bytesToAllocate(const TensorType &type) {
  Extent extent;
  if (!type.shape.isStatic() || !measure(type.dtype, type.shape, extent)) [[unlikely]]
    throw std::bad_alloc();
  return static_cast<size_t>(extent.bytes);
}

} // namespace wg::runtime
