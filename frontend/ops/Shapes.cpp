// The same elements in other places.
#include "frontend/ops/Operands.h"

#include <algorithm>
#include <limits>

namespace wg {

using detail::applyOne;
using detail::broadcastTo;
using detail::checkDTypes;
using detail::dim;
using detail::placeOf;
using detail::placesOf;
using detail::raiseOp;
using detail::reshapeTo;
using detail::tensorOf;
using detail::text;
using detail::typeOf;
using detail::checkSizes;
using runtime::OpId;

Tensor transpose(const Located &x, const std::vector<int64_t> &permutation) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int rank = tensor.rank();
  Ints places;
  if (permutation.empty())
    for (int axis = rank; axis-- > 0;)
      places.push_back(axis);
  else if (static_cast<int>(permutation.size()) != rank)
    raiseOp("transpose",
            "a permutation of " + std::to_string(permutation.size()) + " axes for a tensor of rank " +
                std::to_string(rank),
            "name each axis once", {typeOf(tensor, where)}, where);
  for (int64_t axis : permutation)
    places.push_back(placeOf("transpose", axis, rank, where));
  return applyOne(OpId::transpose, runtime::TransposeAttrs::make(places), {&tensor}, where);
}

/// A `?` of the new shape is the `?` of the old one for which the sizes before and after it are the same products.
Tensor reshape(const Located &x, const Shape &shape) {
  detail::checkRank("reshape", shape, x.where());
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  Shape to = shape;
  const Shape &from = typeOf(tensor, where).shape;
  int open = -1;
  int64_t known = 1;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to.dim(axis) >= 0) {
      if (__builtin_mul_overflow(known, to.dim(axis), &known))
        raiseOp("reshape", "the elements of " + text(to) + " are more than an i64 counts", "give smaller sizes",
                {typeOf(tensor, where)}, where);
      continue;
    }
    if (to.dim(axis) != -1 && to.dim(axis) != dynamic)
      raiseOp("reshape", "the size " + std::to_string(to.dim(axis)) + " of " + text(to) + " is negative",
              "write -1 for the size that follows from the others", {typeOf(tensor, where)}, where);
    if (open >= 0)
      raiseOp("reshape", "two sizes of " + text(to) + " are open", "give all sizes but one", {typeOf(tensor, where)},
              where);
    open = axis;
  }
  if (from.isStatic()) {
    if (open >= 0) {
      if (known == 0 || from.numElements() % known != 0)
        raiseOp("reshape",
                toString(typeOf(tensor, where)) + " has " + std::to_string(from.numElements()) +
                    " elements, no multiple of " + std::to_string(known),
                "give sizes whose product is the number of elements", {typeOf(tensor, where)}, where);
      to[static_cast<size_t>(open)] = from.numElements() / known;
    }
    return reshapeTo(tensor, to, {}, where);
  }
  int64_t rest = 1;
  int dynamicAxis = -1, count = 0;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic)
      dynamicAxis = axis, ++count;
    else
      rest *= from.dim(axis);
  if (count != 1 || open < 0 || rest != known)
    raiseOp("reshape",
            toString(typeOf(tensor, where)) + " to " + text(shape) + ": the open size is not the dynamic one",
            "keep the dynamic size as one axis, written -1", {typeOf(tensor, where)}, where, ErrorKind::unimplemented);
  to[static_cast<size_t>(open)] = dynamic;
  return reshapeTo(tensor, to, {dim(tensor, dynamicAxis, where)}, where);
}

Tensor broadcast_to(const Located &x, const Shape &shape) {
  Tensor tensor = tensorOf(x);
  checkSizes("broadcast_to", shape, x.where(), tensor.dtype());
  const Shape &from = typeOf(tensor, x.where()).shape;
  bool fits = from.rank() <= shape.rank();
  for (int axis = 0; fits && axis < from.rank(); ++axis) {
    int64_t size = from.dim(axis), to = shape.dim(shape.rank() - from.rank() + axis);
    fits = size == 1 || size == to || size == dynamic;
  }
  if (!fits)
    raiseOp("broadcast_to", toString(typeOf(tensor, x.where())) + " does not broadcast to " + text(shape),
            "sizes are aligned at the end; equal ones and 1 fit", {typeOf(tensor, x.where())}, x.where());
  return broadcastTo(tensor, shape, {}, x.where());
}

/// The same elements with axes of size 1 put in or taken out: `shape` differs from x's in these only.
static Tensor reshapeUnits(const Tensor &x, const Shape &shape, const Where &where) {
  std::vector<Tensor> sizes;
  const Shape &from = typeOf(x, where).shape;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic)
      sizes.push_back(dim(x, axis, where));
  return reshapeTo(x, shape, sizes, where);
}

Tensor expand_dims(const Located &x, int64_t axis) {
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("expand_dims", axis, tensor.rank() + 1, x.where());
  Shape shape;
  for (int i = 0; i <= tensor.rank(); ++i) {
    if (i == place)
      shape.push_back(1);
    if (i < tensor.rank())
      shape.push_back(tensor.shape().dim(i));
  }
  return reshapeUnits(tensor, shape, x.where());
}

Tensor squeeze(const Located &x, const Axes &axes) {
  Tensor tensor = tensorOf(x);
  const Shape &from = tensor.shape();
  Ints places = placesOf("squeeze", axes, from.rank(), x.where());
  Shape shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axes.list && places.contains(axis) && from.dim(axis) != 1)
      raiseOp("squeeze",
              "axis " + std::to_string(axis) + " of " + toString(typeOf(tensor, x.where())) + " has not the size 1",
              "name axes of size 1", {typeOf(tensor, x.where())}, x.where());
    if (!places.contains(axis) || from.dim(axis) != 1)
      shape.push_back(from.dim(axis));
  }
  return reshapeUnits(tensor, shape, x.where());
}

Tensor slice(const Located &x, const std::vector<int64_t> &starts, const std::vector<int64_t> &limits,
             const std::vector<int64_t> &strides) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  const Shape &shape = tensor.shape();
  size_t rank = static_cast<size_t>(shape.rank());
  if (starts.size() > rank || limits.size() != starts.size() || (!strides.empty() && strides.size() != starts.size()))
    raiseOp("slice",
            std::to_string(starts.size()) + " starts, " + std::to_string(limits.size()) + " limits and " +
                std::to_string(strides.size()) + " strides for rank " + std::to_string(rank),
            "give as many of each, one for each leading axis", {typeOf(tensor, where)}, where);
  Ints from, to, by;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t size = shape[axis], stride = axis < strides.size() ? strides[axis] : 1;
    if (stride <= 0)
      raiseOp("slice", "stride " + std::to_string(stride) + " of axis " + std::to_string(axis) + " is not positive",
              "give 1 or more", {}, where);
    // A step beyond the axis leaves one element, as the axis' own size does.
    by.push_back(size == dynamic ? stride : std::min(stride, std::max<int64_t>(size, 1)));
    if (size == dynamic) {
      if (axis < starts.size() &&
          (starts[axis] != 0 || limits[axis] != std::numeric_limits<int64_t>::max() || stride != 1))
        raiseOp("slice",
                "axis " + std::to_string(axis) + " of " + toString(typeOf(tensor, where)) +
                    " has a dynamic size and is taken whole",
                "give start 0 and the largest limit", {typeOf(tensor, where)}, where, ErrorKind::unimplemented);
      from.push_back(0);
      to.push_back(dynamic);
      continue;
    }
    auto clamp = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size); };
    from.push_back(axis < starts.size() ? clamp(starts[axis]) : 0);
    to.push_back(std::max(from[axis], axis < limits.size() ? clamp(limits[axis]) : size));
  }
  return applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where);
}

Tensor index(const Located &x, int64_t i, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("index", axis, tensor.rank(), where), size = tensor.shape().dim(static_cast<int>(place));
  if (size == dynamic)
    raiseOp("index", "the axis has a dynamic size", "use gather", {typeOf(tensor, where)}, where,
            ErrorKind::unimplemented);
  if (i < -size || i >= size)
    raiseOp("index",
            "place " + std::to_string(i) + " of axis " + std::to_string(place) + ", whose size is " +
                std::to_string(size),
            "a place lies in [-size, size)", {typeOf(tensor, where)}, where);
  i = i < 0 ? i + size : i;
  Ints from, to, by;
  for (int a = 0; a < tensor.rank(); ++a) {
    from.push_back(a == place ? i : 0);
    to.push_back(a == place ? i + 1 : tensor.shape().dim(a));
    by.push_back(1);
  }
  Tensor row = applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where);
  return squeeze(Located(row, where), place);
}

Tensor concat(const std::vector<Tensor> &xs, int64_t axis, Where where) {
  if (xs.empty())
    raiseOp("concat", "there is nothing to join", "give one tensor at least", {}, where);
  int64_t place = placeOf("concat", axis, xs[0].rank(where), where);
  std::vector<const Tensor *> operands;
  for (const Tensor &x : xs) {
    checkDTypes("concat", xs[0], x, where);
    operands.push_back(&x);
  }
  Tensor result;
  detail::applyOp(OpId::concat, runtime::ConcatAttrs::make(place), operands, std::span(&result, 1), where);
  return result;
}

Tensor stack(const std::vector<Tensor> &xs, int64_t axis, Where where) {
  if (xs.empty())
    raiseOp("stack", "there is nothing to join", "give one tensor at least", {}, where);
  int64_t place = placeOf("stack", axis, xs[0].rank(where) + 1, where);
  std::vector<Tensor> wide;
  for (const Tensor &x : xs)
    wide.push_back(expand_dims(Located(x, where), place));
  return concat(wide, place, where);
}

std::vector<Tensor> split(const Located &x, int64_t parts, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("split", axis, tensor.rank(), where), size = tensor.shape().dim(static_cast<int>(place));
  if (parts < 1 || size == dynamic || size % parts != 0)
    raiseOp("split",
            "axis " + std::to_string(place) + " of " + toString(typeOf(tensor, where)) + " does not split into " +
                std::to_string(parts) + " equal parts",
            "give a divisor of its size", {typeOf(tensor, where)}, where);
  std::vector<Tensor> pieces;
  for (int64_t part = 0; part < parts; ++part) {
    Ints from, to, by;
    for (int a = 0; a < tensor.rank(); ++a) {
      from.push_back(a == place ? part * (size / parts) : 0);
      to.push_back(a == place ? (part + 1) * (size / parts) : tensor.shape().dim(a));
      by.push_back(1);
    }
    pieces.push_back(applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where));
  }
  return pieces;
}

Tensor pad(const Located &x, const std::vector<std::pair<int64_t, int64_t>> &widths, double value) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  if (static_cast<int>(widths.size()) != tensor.rank())
    raiseOp("pad", std::to_string(widths.size()) + " pairs of widths for rank " + std::to_string(tensor.rank()),
            "give one pair for each axis", {typeOf(tensor, where)}, where);
  Ints low, high, interior;
  for (auto [before, after] : widths) {
    if (before < 0 || after < 0)
      raiseOp("pad", "widths are not negative: " + std::to_string(before) + ", " + std::to_string(after),
              "use slice to take away", {}, where);
    int64_t size = tensor.shape().dim(static_cast<int>(low.size())), wide;
    if (size != dynamic && (__builtin_add_overflow(size, before, &wide) || __builtin_add_overflow(wide, after, &wide)))
      raiseOp("pad",
              "an axis of size " + std::to_string(size) + " with widths " + std::to_string(before) + " and " +
                  std::to_string(after) + " is longer than an i64 counts",
              "give smaller widths", {typeOf(tensor, where)}, where);
    low.push_back(before);
    high.push_back(after);
    interior.push_back(0);
  }
  auto padded = [&](const Tensor &y) {
    return applyOne(OpId::pad, runtime::PadAttrs::make(low, high, interior), {&y}, where);
  };
  Tensor y = padded(tensor);
  if (value == 0)
    return y;
  Tensor inside = padded(ones_like(Located(tensor, where)));
  return wg::where(Located(equal(Located(inside, where), Located(0, where)), where), Located(value, where),
                   Located(y, where));
}

Tensor one_hot(const Located &x, int64_t depth, DType dtype) {
  Tensor tensor = tensorOf(x);
  if (depth < 0)
    raiseOp("one_hot", "the depth " + std::to_string(depth) + " is negative", "give the number of classes",
            {typeOf(tensor, x.where())}, x.where());
  if (tensor.dtype() == u8)
    tensor = cast(Located(tensor, x.where()), i32);
  return applyOne(OpId::one_hot, runtime::OneHotAttrs::make(depth, dtype), {&tensor}, x.where());
}

} // namespace wg
