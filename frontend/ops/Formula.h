// What operations that are composed of others are written with.
#pragma once

#include "frontend/ops/Operands.h"

namespace wg::detail {

/// The user's line, at which every step of a formula is: `sub(at[x], at[mean])`.
struct At {
  Where where;
  template <class T> Located operator[](const T &x) const { return Located(x, where); }
};

/// All sizes of x.
Sizes wholeOf(const Tensor &x, const Where &where);
/// x in the shape of these sizes.
inline Tensor reshapeTo(const Tensor &x, const Sizes &sizes, const Where &where) {
  return reshapeTo(x, Shape(sizes.list), sizes.values, where);
}
/// Places [from, to) of an axis.
Tensor partOf(const Tensor &x, int64_t axis, const Size &from, const Size &to, const Where &where);
/// x repeated to the shape of these sizes; axis i of x is axis dims[i] of them.
Tensor broadcastTo(const Tensor &x, const Sizes &sizes, const Ints &dims, const Where &where);
/// The place of each element of x along an axis, in x's shape.
Tensor placesAlong(const Tensor &x, int64_t axis, DType dtype, const Where &where);
/// With axis `from` moved to `to`, the others in their order.
Tensor moveAxis(const Tensor &x, int64_t from, int64_t to, const Where &where);
inline Size known(int64_t size) { return Size{size, {}}; }

/// A size as a scalar.
Tensor asTensor(const Size &size, DType dtype, const Where &where);

/// The lowest or highest number of a dtype, or an infinity.
Tensor endOf(DType dtype, bool highest, const Shape &shape, const Where &where);

} // namespace wg::detail
