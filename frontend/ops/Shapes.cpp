// The same elements in other places; parts of a tensor are in Indexing.cpp.
#include "frontend/ops/Formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace wg {

using detail::applyOne;
using detail::broadcastTo;
using detail::checkDTypes;
using detail::checkSizes;
using detail::dim;
using detail::placeOf;
using detail::placesOf;
using detail::raiseOp;
using detail::reshapeTo;
using detail::Size;
using detail::Sizes;
using detail::tensorOf;
using detail::text;
using detail::typeOf;
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

/// At most one size is open, unless the shape is that of a tensor with open sizes; it is what
/// the others leave of x's elements.
Tensor reshape(const Located &x, const Shape &shape) {
  detail::checkRank("reshape", shape, x.where());
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  const TensorType &type = typeOf(tensor, where);
  if (shape.owner())
    return reshapeTo(tensor, shape, detail::openSizes("reshape", shape, where), where);
  Ints to = shape;
  int open = -1;
  int64_t known = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape.dim(axis) >= 0) {
      if (__builtin_mul_overflow(known, shape.dim(axis), &known))
        raiseOp("reshape",
                "the elements of " + text(shape) + " have more than 2^56 bytes, the most that a tensor may have",
                "make it smaller", {type}, where);
      continue;
    }
    if (shape.dim(axis) != -1 && shape.dim(axis) != dynamic)
      raiseOp("reshape", "the size " + std::to_string(shape.dim(axis)) + " of " + text(shape) + " is negative",
              "write -1 for the size that follows from the others", {type}, where);
    if (open >= 0)
      raiseOp("reshape", "two sizes of " + text(shape) + " are open",
              "give all sizes but one, or the unchanged shape() of a tensor", {type}, where);
    open = axis;
  }
  if (open < 0)
    return reshapeTo(tensor, Shape(to), {}, where);
  int64_t rest = 1; // of x's known sizes; the open ones are factors of the formula
  std::vector<Size> sizes;
  std::string formula;
  for (int axis = 0; axis < type.shape.rank(); ++axis)
    if (type.shape.dim(axis) == dynamic) {
      formula += static_cast<char>('a' + sizes.size());
      formula += " * ";
      sizes.push_back(detail::sizeOf(tensor, axis, where));
    } else {
      rest *= type.shape.dim(axis);
    }
  int64_t common = std::gcd(rest, known);
  if (known == 0 || (sizes.empty() && rest % known != 0))
    raiseOp("reshape",
            sizes.empty()
                ? toString(type) + " has " + std::to_string(rest) + " elements, no multiple of " + std::to_string(known)
                : "the open size of " + text(shape) + " could be any: the others have no elements",
            "give sizes whose product is the number of elements", {type}, where);
  formula += std::to_string(rest / common);
  if (known != common)
    formula += " / " + std::to_string(known / common);
  Size size = sizes.size() == 1 && rest == known ? sizes[0] : detail::computeSize("reshape", formula, sizes, where);
  to[static_cast<size_t>(open)] = size.known;
  return reshapeTo(tensor, Shape(to), size.known == dynamic ? std::vector{size.value} : std::vector<Tensor>(), where);
}

Tensor broadcast_to(const Located &x, const Shape &shape) {
  Tensor tensor = tensorOf(x);
  checkSizes("broadcast_to", shape, x.where(), tensor.dtype(), true);
  const Shape &from = typeOf(tensor, x.where()).shape;
  bool fits = from.rank() <= shape.rank();
  for (int axis = 0; fits && axis < from.rank(); ++axis) {
    int64_t size = from.dim(axis), to = shape.dim(shape.rank() - from.rank() + axis);
    fits = size == 1 || size == to || size == dynamic || to == dynamic;
  }
  if (!fits)
    raiseOp("broadcast_to", toString(typeOf(tensor, x.where())) + " does not broadcast to " + text(shape),
            "sizes are aligned at the end; equal ones and 1 fit", {typeOf(tensor, x.where())}, x.where());
  if (from == shape &&
      (shape.isStatic() ||
       (shape.owner() && shape.owner() == tensor.shape().owner()))) // two `?` of different tensors may differ
    return identity(Located(tensor, x.where()));
  if (shape.isStatic())
    return broadcastTo(tensor, shape, {}, x.where());
  Ints dims;
  for (int axis = shape.rank() - from.rank(); axis < shape.rank(); ++axis)
    dims.push_back(axis);
  return detail::applySized(OpId::broadcast, runtime::BroadcastAttrs::make(shape, dims), tensor,
                            detail::openSizes("broadcast_to", shape, x.where()), x.where());
}

/// The same elements with axes of size 1 put in or taken out: `shape` differs from x's in these only.
/// `without`: the axes that are taken out.
static Tensor reshapeUnits(const Tensor &x, const Shape &shape, const Where &where, const Ints &without = {}) {
  std::vector<Tensor> sizes;
  const Shape &from = typeOf(x, where).shape;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic && !without.contains(axis))
      sizes.push_back(dim(x, axis, where));
  return reshapeTo(x, shape, sizes, where);
}

Tensor identity(const Located &x) {
  Tensor tensor = tensorOf(x);
  return reshapeUnits(tensor, tensor.shape(), x.where());
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
  Ints places = placesOf("squeeze", axes, from.rank(), x.where()), without;
  Shape shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    bool named = axes.list && places.contains(axis);
    if (named && from.dim(axis) != 1 && from.dim(axis) != dynamic)
      raiseOp("squeeze",
              "axis " + std::to_string(axis) + " of " + toString(typeOf(tensor, x.where())) + " has not the size 1",
              "name axes of size 1", {typeOf(tensor, x.where())}, x.where());
    if (named || (places.contains(axis) && from.dim(axis) == 1))
      without.push_back(axis);
    else
      shape.push_back(from.dim(axis));
  }
  return reshapeUnits(tensor, shape, x.where(), without);
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
  const TensorType &first = detail::typeOf(xs[0], where);
  for (size_t i = 0; i < xs.size(); ++i) {
    const TensorType &type = detail::typeOf(xs[i], where);
    if (type.dtype != first.dtype || !detail::sameSizes(type.shape, first.shape))
      raiseOp("stack", "tensor 0 is " + toString(first) + ", tensor " + std::to_string(i) + " is " + toString(type),
              type.dtype != first.dtype ? "cast them to one dtype" : "give tensors of one shape, or concat them",
              {first, type}, where, type.dtype != first.dtype ? ErrorKind::type : ErrorKind::value);
    wide.push_back(expand_dims(Located(xs[i], where), place));
  }
  return concat(wide, place, where);
}

/// Without `before` and `after` places at the ends of an axis.
static Tensor cropped(const Tensor &x, int64_t axis, int64_t before, int64_t after, const Where &where) {
  Size size = detail::sizeOf(x, axis, where);
  if (size.known != dynamic && (before > size.known || after > size.known - before))
    raiseOp("pad",
            "widths take " + std::to_string(before) + " and " + std::to_string(after) + " places from axis " +
                std::to_string(axis) + " of " + toString(typeOf(x, where)),
            "give widths that leave something", {typeOf(x, where)}, where);
  Size end = after == 0 ? size : detail::computeSize("pad", "a - " + std::to_string(after), {size}, where);
  return detail::partOf(x, axis, Size{before, {}}, end, where);
}

/// What a tensor is padded with, as a literal beside it. An integer or a bool tensor takes no other numbers than its
/// own.
static Located paddingOf(const TensorType &type, double value, const Where &where) {
  if (runtime::isFloat(type.dtype))
    return Located(value, where);
  bool isBool = type.dtype == boolean;
  if (isBool ? value != 0 && value != 1 : value != std::trunc(value) || value < -0x1p63 || value >= 0x1p63)
    raiseOp("pad", "the value is " + std::to_string(value) + ", x is " + toString(type),
            isBool ? "give 0 or 1, or cast x" : "give an integer, or cast x", {type}, where);
  if (isBool)
    return Located(value != 0, where);
  auto whole = static_cast<int64_t>(value);
  detail::checkHolds(Located(whole, where), type.dtype);
  return Located(whole, where);
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
      tensor = cropped(tensor, static_cast<int64_t>(low.size()), std::max<int64_t>(-before, 0),
                       std::max<int64_t>(-after, 0), where);
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
    int64_t size = tensor.shape().dim(static_cast<int>(low.size())), wide;
    if (size != dynamic && (__builtin_add_overflow(size, before, &wide) || __builtin_add_overflow(wide, after, &wide)))
      raiseOp("pad",
              "an axis of size " + std::to_string(size) + " with widths " + std::to_string(before) + " and " +
                  std::to_string(after) + " has more than 2^56 bytes, the most that a tensor may have",
              "give smaller widths", {typeOf(tensor, where)}, where);
    low.push_back(before);
    high.push_back(after);
    interior.push_back(0);
  }
  auto padded = [&](const Tensor &y) {
    return applyOne(OpId::pad, runtime::PadAttrs::make(low, high, interior), {&y}, where);
  };
  Tensor y = padded(tensor);
  if (value == 0 && !(std::signbit(value) && runtime::isFloat(tensor.dtype())))
    return y;
  Located fill = paddingOf(typeOf(tensor, where), value, where);
  Tensor inside = padded(ones_like(Located(tensor, where)));
  Tensor outside = tensor.dtype() == boolean ? logical_not(Located(inside, where))
                                             : equal(Located(inside, where), Located(0, where));
  return wg::where(Located(outside, where), fill, Located(y, where));
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
