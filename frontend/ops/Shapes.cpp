// The same elements in other places.
#include "frontend/ops/Operands.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace wg {

using detail::applyOne;
using detail::broadcastTo;
using detail::checkDTypes;
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

/// At most one size is open, unless the shape is that of a tensor with open sizes; it is what the others leave of x's elements.
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
        raiseOp("reshape", "the elements of " + text(shape) + " have more than 2^56 bytes, the most that a tensor may have", "make it smaller", {type}, where);
      continue;
    }
    if (shape.dim(axis) != -1 && shape.dim(axis) != dynamic)
      raiseOp("reshape", "the size " + std::to_string(shape.dim(axis)) + " of " + text(shape) + " is negative",
              "write -1 for the size that follows from the others", {type}, where);
    if (open >= 0)
      raiseOp("reshape", "two sizes of " + text(shape) + " are open", "give all sizes but one, or the unchanged shape() of a tensor", {type}, where);
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
            sizes.empty() ? toString(type) + " has " + std::to_string(rest) + " elements, no multiple of " + std::to_string(known)
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
  if (shape.isStatic())
    return broadcastTo(tensor, shape, {}, x.where());
  Ints dims;
  for (int axis = shape.rank() - from.rank(); axis < shape.rank(); ++axis)
    dims.push_back(axis);
  return detail::applySized(OpId::broadcast, runtime::BroadcastAttrs::make(shape, dims), tensor, detail::openSizes("broadcast_to", shape, x.where()),
                            x.where());
}

/// The same elements with axes of size 1 put in or taken out: `shape` differs from x's in these only. `without`: the axes that are taken out.
static Tensor reshapeUnits(const Tensor &x, const Shape &shape, const Where &where, const Ints &without = {}) {
  std::vector<Tensor> sizes;
  const Shape &from = typeOf(x, where).shape;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic && !without.contains(axis))
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

/// The largest limit: to the end.
static constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// A place as Python counts it: from the end if negative, and never outside of [0, size].
static Size placeIn(const Size &size, int64_t place, const Where &where) {
  if (size.known != dynamic)
    return {std::clamp<int64_t>(place < 0 ? place + size.known : place, 0, size.known), {}};
  std::string distance = std::to_string(place < -kEnd ? kEnd : std::abs(place));
  return detail::computeSize("slice", place < 0 ? "max(a - " + distance + ", 0)" : "min(a, " + distance + ")", {size}, where);
}

static Tensor sliced(const Tensor &x, const Sizes &from, const Sizes &to, const Ints &by, const Where &where) {
  std::vector<Tensor> values = from.values;
  values.insert(values.end(), to.values.begin(), to.values.end());
  return detail::applySized(OpId::slice, runtime::SliceAttrs::make(from.list, to.list, by), x, values, where);
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
  Sizes from, to;
  Ints by;
  for (size_t axis = 0; axis < rank; ++axis) {
    Size size = detail::sizeOf(tensor, static_cast<int64_t>(axis), where);
    int64_t stride = axis < strides.size() ? strides[axis] : 1;
    if (stride <= 0)
      raiseOp("slice", "stride " + std::to_string(stride) + " of axis " + std::to_string(axis) + " is not positive",
              "give 1 or more", {}, where);
    // A step beyond the axis leaves one element, as the axis' own size does; no axis has 2^48 elements.
    by.push_back(std::min(stride, size.known == dynamic ? int64_t(1) << 48 : std::max<int64_t>(size.known, 1)));
    int64_t start = axis < starts.size() ? starts[axis] : 0, limit = axis < limits.size() ? limits[axis] : kEnd;
    Size first = start == 0 ? Size{0, {}} : placeIn(size, start, where);
    Size last = limit == kEnd ? size : placeIn(size, limit, where);
    from.push_back(first);
    // A start of 0 is below every limit, and every start is below the end.
    to.push_back(start == 0 || limit == kEnd ? last : detail::computeSize("slice", "max(a, b)", {first, last}, where));
  }
  return sliced(tensor, from, to, by, where);
}

/// The part of x between two places of one axis.
static Tensor part(const Tensor &x, int64_t axis, const Size &start, const Size &limit, const Where &where) {
  Sizes from, to;
  Ints by;
  for (int a = 0; a < x.rank(); ++a) {
    from.push_back(a == axis ? start : Size{0, {}});
    to.push_back(a == axis ? limit : detail::sizeOf(x, a, where));
    by.push_back(1);
  }
  return sliced(x, from, to, by, where);
}

Tensor index(const Located &x, int64_t i, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("index", axis, tensor.rank(), where);
  Size size = detail::sizeOf(tensor, place, where);
  if (size.known != dynamic ? i < -size.known || i >= size.known : i == kEnd || i == std::numeric_limits<int64_t>::min())
    raiseOp("index",
            "place " + std::to_string(i) + " of axis " + std::to_string(place) + ", whose size is " + (size.known == dynamic ? "?" : std::to_string(size.known)),
            "a place lies in [-size, size)", {typeOf(tensor, where)}, where);
  i = i < 0 && size.known != dynamic ? i + size.known : i;
  Size first{i, {}}, last{i < kEnd ? i + 1 : i, {}};
  if (i < 0) {
    first = detail::computeSize("index", "a - " + std::to_string(-i), {size}, where);
    last = detail::computeSize("index", "a - " + std::to_string(-i) + " + 1", {size}, where);
  }
  Tensor row = part(tensor, place, first, last, where);
  Sizes shape;
  for (int a = 0; a < tensor.rank(); ++a)
    if (a != place)
      shape.push_back(detail::sizeOf(tensor, a, where));
  return reshapeTo(row, Shape(shape.list), shape.values, where);
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
  int64_t place = placeOf("split", axis, tensor.rank(), where);
  Size size = detail::sizeOf(tensor, place, where);
  if (parts < 1 || (size.known != dynamic && size.known % parts != 0))
    raiseOp("split",
            "axis " + std::to_string(place) + " of " + toString(typeOf(tensor, where)) + " does not split into " +
                std::to_string(parts) + " equal parts",
            "give a divisor of its size", {typeOf(tensor, where)}, where);
  std::vector<Tensor> pieces;
  Size start{0, {}};
  for (int64_t k = 1; k <= parts; ++k) {
    Size limit = k == parts ? size : detail::computeSize("split", "a / " + std::to_string(parts) + " * " + std::to_string(k), {size}, where);
    pieces.push_back(part(tensor, place, start, limit, where));
    start = limit;
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
