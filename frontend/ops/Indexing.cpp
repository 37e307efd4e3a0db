// Parts of a tensor: one slice and one reshape, whatever is asked for.
#include "frontend/ops/Operands.h"

#include <algorithm>
#include <limits>
#include <ranges>

namespace wg {

using detail::placeOf;
using detail::raiseOp;
using detail::reshapeTo;
using detail::Size;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

/// The largest limit: to the end.
static constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// A place as Python counts it: from the end if negative, and never outside of [0, size].
static Size placeIn(const Size &size, int64_t place, const Where &where) {
  if (size.known != dynamic)
    return {std::clamp<int64_t>(place < 0 ? place + size.known : place, 0, size.known), {}};
  std::string distance = std::to_string(place < -kEnd ? kEnd : std::abs(place));
  return detail::computeSize("slice", place < 0 ? "max(a - " + distance + ", 0)" : "min(a, " + distance + ")", {size},
                             where);
}

namespace {

/// What is taken of each axis.
struct Cut {
  Sizes from, to;
  Ints by;
  bool whole = true; ///< of every axis so far
  void push_back(const Size &start, const Size &limit, int64_t stride) {
    from.push_back(start);
    to.push_back(limit);
    by.push_back(stride);
  }
  void pushWhole(const Size &size) { push_back(Size{0, {}}, size, 1); }
};

} // namespace

/// start : limit : stride of an axis.
static void pushRange(Cut &cut, const Size &size, int64_t start, int64_t limit, int64_t stride, const Where &where) {
  if (stride <= 0)
    raiseOp("slice",
            "stride " + std::to_string(stride) + " of axis " + std::to_string(cut.by.size()) + " is not positive",
            "give 1 or more", {}, where);
  // A step beyond the axis leaves one element, as the axis' own size does; no axis has 2^48 elements.
  stride = std::min(stride, size.known == dynamic ? int64_t(1) << 48 : std::max<int64_t>(size.known, 1));
  Size first = start == 0 ? Size{0, {}} : placeIn(size, start, where);
  Size last = limit == kEnd ? size : placeIn(size, limit, where);
  // A start of 0 is below every limit, and every start is below the end.
  if (start != 0 && limit != kEnd)
    last = detail::computeSize("slice", "max(a, b)", {first, last}, where);
  cut.whole &=
      stride == 1 && first.known == 0 && (limit == kEnd || (last.known != dynamic && last.known == size.known));
  cut.push_back(first, last, stride);
}

/// One place of axis `axis` of x.
static void pushPlace(Cut &cut, const char *op, const Tensor &x, int64_t axis, const Size &size, int64_t i,
                      const Where &where) {
  if (size.known != dynamic ? i < -size.known || i >= size.known
                            : i == kEnd || i == std::numeric_limits<int64_t>::min())
    raiseOp(op,
            "place " + std::to_string(i) + " of axis " + std::to_string(axis) + ", whose size is " +
                (size.known == dynamic ? "?" : std::to_string(size.known)),
            "a place lies in [-size, size)", {typeOf(x, where)}, where);
  i = i < 0 && size.known != dynamic ? i + size.known : i;
  Size first{i, {}}, last{i < kEnd ? i + 1 : i, {}};
  if (i < 0) {
    first = detail::computeSize(op, "a - " + std::to_string(-i), {size}, where);
    last = detail::computeSize(op, "a - " + std::to_string(-i) + " + 1", {size}, where);
  }
  cut.whole = false;
  cut.push_back(first, last, 1);
}

static Tensor taken(const Tensor &x, const Cut &cut, const Where &where) {
  std::vector<Tensor> values = cut.from.values;
  values.insert(values.end(), cut.to.values.begin(), cut.to.values.end());
  return detail::applySized(OpId::slice, runtime::SliceAttrs::make(cut.from.list, cut.to.list, cut.by), x, values,
                            where);
}

Tensor slice(const Located &x, const std::vector<int64_t> &starts, const std::vector<int64_t> &limits,
             const std::vector<int64_t> &strides) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  size_t rank = static_cast<size_t>(tensor.shape().rank());
  if (starts.size() > rank || limits.size() != starts.size() || (!strides.empty() && strides.size() != starts.size()))
    raiseOp("slice",
            std::to_string(starts.size()) + " starts, " + std::to_string(limits.size()) + " limits and " +
                std::to_string(strides.size()) + " strides for rank " + std::to_string(rank),
            "give as many of each, one for each leading axis", {typeOf(tensor, where)}, where);
  for (size_t axis = 0; axis < limits.size(); ++axis)
    if (limits[axis] == dynamic)
      raiseOp("slice", "the limit on axis " + std::to_string(axis) + " is an open size, which no number stands for",
              "leave trailing axes out, or trace with this size given", {typeOf(tensor, where)}, where);
  Cut cut;
  for (size_t axis = 0; axis < rank; ++axis)
    pushRange(cut, detail::sizeOf(tensor, static_cast<int64_t>(axis), where), axis < starts.size() ? starts[axis] : 0,
              axis < limits.size() ? limits[axis] : kEnd, axis < strides.size() ? strides[axis] : 1, where);
  return taken(tensor, cut, where);
}

Tensor index(const Located &x, int64_t i, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("index", axis, tensor.rank(), where);
  Cut cut;
  Sizes shape;
  for (int a = 0; a < tensor.rank(); ++a) {
    Size size = detail::sizeOf(tensor, a, where);
    if (a == place) {
      pushPlace(cut, "index", tensor, a, size, i, where);
    } else {
      cut.pushWhole(size);
      shape.push_back(size);
    }
  }
  return reshapeTo(taken(tensor, cut, where), Shape(shape.list), shape.values, where);
}

Indices::Indices(std::initializer_list<Index> list, Where where) : list(list), where(where) {}

Tensor Tensor::operator[](const Indices &indices) const {
  const Where &where = indices.where;
  const TensorType &type = body(where)->type;
  int rank = type.shape.rank(), named = 0, rests = 0;
  for (const Index &each : indices.list) {
    named += each.kind == Index::place || each.kind == Index::range;
    rests += each.kind == Index::rest;
  }
  if (rests > 1)
    raiseOp("index", "two ellipses: it is not clear how many axes each of them is for",
            "write slice() for a whole axis", {type}, where);
  if (named > rank)
    raiseOp("index",
            std::to_string(named) + (named == 1 ? " place" : " places") + " for a tensor of rank " +
                std::to_string(rank),
            "give one for each axis at most", {type}, where);

  Cut cut;
  std::vector<int> axes; // of x, for each axis of the result; -1: a new one
  auto next = [&] { return static_cast<int>(cut.by.size()); };
  auto keepWhole = [&](int count) {
    for (; count > 0; --count) {
      axes.push_back(next());
      cut.pushWhole(detail::sizeOf(*this, next(), where));
    }
  };
  for (const Index &each : indices.list) {
    switch (each.kind) {
    case Index::place:
      pushPlace(cut, "index", *this, next(), detail::sizeOf(*this, next(), where), each.at, where);
      break;
    case Index::range:
      axes.push_back(next());
      pushRange(cut, detail::sizeOf(*this, next(), where), each.slice.start.value_or(0), each.slice.stop.value_or(kEnd),
                each.slice.step, where);
      break;
    case Index::added: axes.push_back(-1); break;
    case Index::rest: keepWhole(rank - named); break;
    }
  }
  keepWhole(rank - next());

  Tensor part = cut.whole ? *this : taken(*this, cut, where);
  // The axes of x as they are; but where all of x is asked for, a reshape to its own shape makes
  // the result a tensor of its own.
  if (!cut.whole && std::ranges::equal(axes, std::views::iota(0, rank)))
    return part;
  Sizes shape;
  for (int axis : axes)
    shape.push_back(axis < 0 ? Size{1, {}} : detail::sizeOf(part, axis, where));
  detail::checkRank("index", Shape(shape.list), where);
  return reshapeTo(part, Shape(shape.list), shape.values, where);
}

int64_t Tensor::rows(const Where &where) const {
  const TensorType &type = body(where)->type;
  if (type.shape.rank() == 0)
    raiseOp("iteration", "a scalar has no axis to iterate over", "use the tensor itself, or reshape(x, {1})", {type},
            where);
  if (type.shape.dim(0) == dynamic)
    raiseOp("iteration",
            "how many rows " + toString(type) +
                " has is known when the function runs, and the loop runs while it is traced",
            "write ops on the whole tensor, or trace with a known size", {type}, where);
  return type.shape.dim(0);
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
    Size limit = k == parts ? size
                            : detail::computeSize("split", "a / " + std::to_string(parts) + " * " + std::to_string(k),
                                                  {size}, where);
    Cut cut;
    for (int a = 0; a < tensor.rank(); ++a)
      a == place ? cut.push_back(start, limit, 1) : cut.pushWhole(detail::sizeOf(tensor, a, where));
    pieces.push_back(taken(tensor, cut, where));
    start = limit;
  }
  return pieces;
}

} // namespace wg
