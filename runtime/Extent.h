// How large is a tensor? The one check through which every size goes that comes from text, from a file or from a
// caller, before anything is multiplied or allocated.
#pragma once

#include "runtime/Status.h"

#include <span>

namespace wg::runtime {

/// The most bytes that a tensor may have: what an x86-64 process can address at all. Small enough that an i64 holds any
/// offset into a tensor, and any sum of a few of them.
inline constexpr int64_t kMaxBytes = int64_t(1) << 56;

/// A tensor's size. A size `?` counts as 1.
struct Extent {
  int64_t elements = 0, bytes = 0;
};

/// The extent of a tensor, or why there is no such tensor: more than 8 axes, a negative size, or more than kMaxBytes
/// bytes. A size 0 counts as 1 for the bound, so that strides and the other sizes are bounded too.
Result<Extent> extentOf(DType dtype, std::span<const int64_t> sizes);
Result<Extent> extentOf(const TensorType &type);

/// The bytes that an array of `type` takes. Throws std::bad_alloc if there is no such tensor: what remains to be
/// checked where memory is taken.
size_t bytesToAllocate(const TensorType &type);

/// a + b and a * b for sums over many tensors, each at most kMaxBytes: stop at the largest i64 instead of wrapping.
inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}
inline int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

} // namespace wg::runtime
