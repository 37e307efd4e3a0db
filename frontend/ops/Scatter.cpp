// Gathered from places and written to them; found.
#include <wengert/Arrays.h>

#include "frontend/ops/Formula.h"

#include <algorithm>

namespace wg {

using detail::Aligned;
using detail::applyOne;
using detail::At;
using detail::computeSize;
using detail::indicesOf;
using detail::known;
using detail::moveAxis;
using detail::partOf;
using detail::placeOf;
using detail::raiseOp;
using detail::reshapeTo;
using detail::Size;
using detail::sizeOf;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using detail::wholeOf;
using runtime::OpId;

// ---- Places ---------------------------------------------------------------------------------------------------------

static void checkGrid(const char *op, const Shape &shape, const Where &where) {
  for (int64_t size : shape)
    if (size < 0)
      raiseOp(op, "the shape " + detail::text(shape) + " has an open or negative size", "give numbers", {}, where);
}

std::vector<Tensor> unravel_index(const Located &places, const Shape &shape) {
  At at{places.where()};
  checkGrid("unravel_index", shape, at.where);
  Tensor rest = indicesOf("unravel_index", "the places", places);
  std::vector<Tensor> coordinates(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0;) {
    coordinates[static_cast<size_t>(axis)] = remainder(at[rest], at[shape.dim(axis)]);
    if (axis > 0)
      rest = floor_div(at[rest], at[shape.dim(axis)]);
  }
  return coordinates;
}

Tensor ravel_index(const std::vector<Tensor> &coordinates, const Shape &shape, Where where) {
  At at{where};
  checkGrid("ravel_index", shape, where);
  if (static_cast<int>(coordinates.size()) != shape.rank() || coordinates.empty())
    raiseOp("ravel_index", std::to_string(coordinates.size()) + " coordinates for the shape " + detail::text(shape),
            "give one tensor for each axis", {}, where);
  Tensor place;
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    Tensor own = indicesOf("ravel_index", "the coordinates", at[coordinates[axis]]);
    place = axis == 0 ? own : add(at[mul(at[place], at[shape.dim(static_cast<int>(axis))])], at[own]);
  }
  return place;
}

/// One start for each axis of x.
static Tensor startsOf(const char *op, const Tensor &x, const Located &starts) {
  Tensor tensor = indicesOf(op, "the starts", starts);
  const TensorType &type = typeOf(tensor, starts.where());
  if (type.shape.rank() != 1 || (type.shape.dim(0) != dynamic && type.shape.dim(0) != x.rank()))
    raiseOp(op, "the starts are " + toString(type) + " for " + toString(typeOf(x, starts.where())),
            "give a vector with one start for each axis", {typeOf(x, starts.where()), type}, starts.where());
  return tensor;
}

Tensor dynamic_slice(const Located &x, const Located &starts, const Shape &sizes) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), first = startsOf("dynamic_slice", tensor, starts);
  std::vector<Tensor> open = detail::openSizes("dynamic_slice", sizes, where);
  std::vector<const Tensor *> operands{&tensor, &first};
  for (const Tensor &size : open)
    operands.push_back(&size);
  Tensor result;
  detail::applyOp(OpId::dynamic_slice, runtime::DynamicSliceAttrs::make(sizes, 0), operands, std::span(&result, 1),
                  where);
  return result;
}

Tensor dynamic_update_slice(const Located &x, const Located &update, const Located &starts) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), part = tensorOf(update, typeOf(tensor, where).dtype),
         first = startsOf("dynamic_update_slice", tensor, starts);
  return applyOne(OpId::dynamic_update_slice, runtime::DynamicUpdateSliceAttrs::make(0), {&tensor, &part, &first},
                  where);
}

Tensor slice_update(const Located &x, const Located &update, const std::vector<int64_t> &starts,
                    const std::vector<int64_t> &strides) {
  At at{x.where()};
  Tensor tensor = tensorOf(x), part = tensorOf(update, typeOf(tensor, at.where).dtype);
  detail::checkDTypes("slice_update", tensor, part, at.where);
  const TensorType type = typeOf(tensor, at.where), own = typeOf(part, at.where);
  size_t rank = type.shape.size();
  auto refuse = [&](const std::string &why, const std::string &remedy) {
    raiseOp("slice_update", why, remedy, {type, own}, at.where);
  };
  if (part.rank() != tensor.rank() || starts.size() != rank || (!strides.empty() && strides.size() != rank))
    refuse("x is " + toString(type) + ", the update " + toString(own) + ", with " + std::to_string(starts.size()) +
               " starts and " + std::to_string(strides.size()) + " strides",
           "the update has x's rank, and there is a start for each axis");
  Ints low, interior;
  Sizes high;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t size = type.shape[axis], taken = own.shape[axis], stride = strides.empty() ? 1 : strides[axis],
            start = starts[axis];
    if (stride < 1)
      refuse("stride " + std::to_string(stride) + " of axis " + std::to_string(axis) + " is not positive",
             "give 1 or more");
    if (size == dynamic || taken == dynamic)
      refuse("axis " + std::to_string(axis) + " of x or of the update is open",
             "dynamic_update_slice takes open sizes");
    start = start < 0 ? start + size : start;
    int64_t reach = 0, end = 0;
    if (start < 0 ||
        (taken > 0 && (__builtin_mul_overflow(taken - 1, stride, &reach) ||
                       __builtin_add_overflow(start, reach, &end) || end >= size)) ||
        start > size)
      refuse("an update of " + std::to_string(taken) + " places from " + std::to_string(starts[axis]) + " on, " +
                 std::to_string(stride) + " apart, does not lie in axis " + std::to_string(axis) + " of " +
                 toString(type),
             "give a start and strides that keep it inside");
    low.push_back(start);
    interior.push_back(taken > 1 ? stride - 1 : 0);
    high.push_back(known(size - start - (taken == 0 ? 0 : reach + 1)));
  }
  bool apart = std::any_of(interior.begin(), interior.end(), [](int64_t gap) { return gap != 0; });
  if (!apart)
    return dynamic_update_slice(at[tensor], at[part],
                                at[Tensor::from(std::vector<int64_t>(low.begin(), low.end()), at.where)]);
  auto spread = [&](const Tensor &y) {
    return applyOne(OpId::pad, runtime::PadAttrs::make(low, high.list, interior), {&y}, at.where);
  };
  Tensor inside = spread(cast(at[ones_like(at[part])], boolean));
  return where(at[inside], at[spread(part)], at[tensor]);
}

// ---- Gathered -------------------------------------------------------------------------------------------------------

Tensor take(const Located &x, const Located &indices, int64_t axis, int64_t batch_dims) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), places = indicesOf("take", "the indices", indices);
  int64_t place = placeOf("take", axis, tensor.rank(), where);
  if (batch_dims < 0 || batch_dims > place || batch_dims > places.rank())
    raiseOp("take",
            std::to_string(batch_dims) + " batch axes for axis " + std::to_string(place) + " of " +
                toString(typeOf(tensor, where)) + " and indices " + toString(typeOf(places, where)),
            "they are before the axis, and both have them", {typeOf(tensor, where), typeOf(places, where)}, where);
  Tensor rows = moveAxis(tensor, place, batch_dims, where);
  Tensor y = applyOne(OpId::gather, runtime::GatherAttrs::make(batch_dims), {&rows, &places}, where);
  // [batch, indices..., before..., after...] -> [batch, before..., indices..., after...]
  int64_t own = places.rank() - batch_dims, before = place - batch_dims;
  if (own == 0 || before == 0)
    return y;
  Ints permutation;
  auto push = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      permutation.push_back(first + i);
  };
  push(0, batch_dims);
  push(batch_dims + own, before);
  push(batch_dims, own);
  push(batch_dims + own + before, y.rank() - batch_dims - own - before);
  return applyOne(OpId::transpose, runtime::TransposeAttrs::make(permutation), {&y}, where);
}

/// x and y in one shape but for the last axis, which is each one's own.
static std::pair<Tensor, Tensor> alike(const char *op, const Tensor &x, const Tensor &y, const Where &where) {
  auto broadcast = [&](const Tensor &own, const Tensor &other) {
    Aligned operands[] = {{&own}, {&other}};
    Shape shape = detail::broadcastShape(op, operands, where, /*own=*/1);
    shape.push_back(typeOf(own, where).shape.dim(own.rank() - 1));
    return detail::broadcastTo(own, shape, operands, where);
  };
  return {broadcast(x, y), broadcast(y, x)};
}

Tensor take_along_axis(const Located &x, const Located &indices, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), places = indicesOf("take_along_axis", "the indices", indices);
  int64_t place = placeOf("take_along_axis", axis, tensor.rank(), where);
  if (places.rank() != tensor.rank())
    raiseOp("take_along_axis",
            "x is " + toString(typeOf(tensor, where)) + ", the indices " + toString(typeOf(places, where)),
            "both have one rank; take(x, indices, axis) takes indices of any",
            {typeOf(tensor, where), typeOf(places, where)}, where);
  int64_t last = tensor.rank() - 1;
  auto [rows, at] =
      alike("take_along_axis", moveAxis(tensor, place, last, where), moveAxis(places, place, last, where), where);
  Tensor y = applyOne(OpId::gather, runtime::GatherAttrs::make(last), {&rows, &at}, where);
  return moveAxis(y, last, place, where);
}

namespace {

/// Coordinates as one place in row-major order, for axes that are brought together.
struct Rows {
  Tensor places; ///< -1 where a coordinate is out of range
  Size count;    ///< of the axes together
  int64_t axes;  ///< how many
};

} // namespace

/// indices[..., k], for the k axes of x behind the first `batch`.
static Rows rowsAt(const char *op, const Sizes &x, const Tensor &indices, int64_t batch, const Where &where) {
  At at{where};
  const TensorType &type = typeOf(indices, where);
  int64_t axes = type.shape.rank() == 0 ? dynamic : type.shape.dim(type.shape.rank() - 1),
          rank = static_cast<int64_t>(x.list.size());
  if (axes == dynamic || batch < 0 || batch >= type.shape.rank() || axes > rank - batch)
    raiseOp(op,
            "the indices are " + toString(type) + " for a tensor of rank " + std::to_string(rank) + ", of which " +
                std::to_string(batch) + " axes are a batch",
            "their last axis, of known size, has a coordinate for each axis that is indexed", {type}, where);
  Size count = known(1);
  if (axes == 0)
    return {reduce_sum(at[indices], -1), count, 0};
  Tensor inside, place;
  size_t open = 0;
  for (int64_t i = 0; i < batch; ++i)
    open += x.list[static_cast<size_t>(i)] == dynamic;
  for (int64_t i = 0; i < axes; ++i) {
    size_t axis = static_cast<size_t>(batch + i);
    Size size = x.list[axis] == dynamic ? Size{dynamic, x.values[open++]} : known(x.list[axis]);
    Tensor own = index(at[indices], i, -1);
    Tensor bound = detail::asTensor(size, own.dtype(), where);
    Tensor fits = logical_and(at[greater_equal(at[own], at[0])], at[less(at[own], at[bound])]);
    inside = i == 0 ? fits : logical_and(at[inside], at[fits]);
    place = i == 0 ? own : add(at[mul(at[place], at[bound])], at[own]);
    count = computeSize(op, "a * b", {count, size}, where);
  }
  return {wg::where(at[inside], at[place], at[-1]), count, axes};
}

/// Sizes of x with `axes` of them behind the first `batch` as one.
static Sizes together(const Tensor &x, int64_t batch, const Rows &rows, const Where &where) {
  Sizes sizes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (axis == batch)
      sizes.push_back(rows.count);
    if (axis < batch || axis >= batch + rows.axes)
      sizes.push_back(sizeOf(x, axis, where));
  }
  if (batch == x.rank())
    sizes.push_back(rows.count);
  return sizes;
}

Tensor gather_nd(const Located &x, const Located &indices, int64_t batch_dims) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), coordinates = indicesOf("gather_nd", "the indices", indices);
  Rows rows = rowsAt("gather_nd", wholeOf(tensor, where), coordinates, batch_dims, where);
  Tensor flat = reshapeTo(tensor, together(tensor, batch_dims, rows, where), where);
  return applyOne(OpId::gather, runtime::GatherAttrs::make(batch_dims), {&flat, &rows.places}, where);
}

// ---- Written --------------------------------------------------------------------------------------------------------

static Tensor updated(const Tensor &x, const Tensor &updates, const Tensor &indices, int64_t batch, Scatter mode,
                      const Where &where) {
  switch (mode) {
  case Scatter::add:
    return applyOne(OpId::index_add, runtime::IndexAddAttrs::make(batch), {&x, &updates, &indices}, where);
  case Scatter::max:
    return applyOne(OpId::index_max, runtime::IndexMaxAttrs::make(batch), {&x, &updates, &indices}, where);
  case Scatter::min:
    return applyOne(OpId::index_min, runtime::IndexMinAttrs::make(batch), {&x, &updates, &indices}, where);
  case Scatter::set: break;
  }
  return applyOne(OpId::index_set, runtime::IndexSetAttrs::make(batch), {&x, &updates, &indices}, where);
}

Tensor put_along_axis(const Located &x, const Located &indices, const Located &updates, int64_t axis, Scatter mode) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), places = indicesOf("put_along_axis", "the indices", indices),
         news = tensorOf(updates, typeOf(tensor, where).dtype);
  detail::checkDTypes("put_along_axis", tensor, news, where);
  int64_t place = placeOf("put_along_axis", axis, tensor.rank(), where), last = tensor.rank() - 1;
  const TensorType &type = typeOf(tensor, where), &at = typeOf(places, where), &own = typeOf(news, where);
  bool fits = places.rank() == tensor.rank() && (news.rank() == 0 || detail::sameSizes(at.shape, own.shape));
  for (int i = 0; fits && i < tensor.rank(); ++i)
    fits = i == place || type.shape.dim(i) == at.shape.dim(i) || type.shape.dim(i) == dynamic ||
           at.shape.dim(i) == dynamic;
  if (!fits)
    raiseOp("put_along_axis",
            "x is " + toString(type) + ", the indices are " + toString(at) + ", the updates " + toString(own),
            "indices and updates have x's shape but for axis " + std::to_string(place), {type, at, own}, where);
  if (news.rank() == 0) {
    Sizes sizes = wholeOf(places, where);
    news = detail::broadcastTo(news, sizes, {}, where);
  }
  Tensor y = updated(moveAxis(tensor, place, last, where), moveAxis(news, place, last, where),
                     moveAxis(places, place, last, where), last, mode, where);
  return moveAxis(y, last, place, where);
}

Tensor scatter_nd_update(const Located &x, const Located &indices, const Located &updates, Scatter mode) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x), coordinates = indicesOf("scatter_nd_update", "the indices", indices),
         news = tensorOf(updates, typeOf(tensor, where).dtype);
  Sizes sizes = wholeOf(tensor, where);
  Rows rows = rowsAt("scatter_nd_update", sizes, coordinates, 0, where);
  Tensor flat = reshapeTo(tensor, together(tensor, 0, rows, where), where);
  return reshapeTo(updated(flat, news, rows.places, 0, mode, where), sizes, where);
}

Tensor scatter_nd(const Located &indices, const Located &updates, const Shape &shape) {
  const Where &where = indices.where();
  Tensor news = tensorOf(updates), coordinates = indicesOf("scatter_nd", "the indices", indices);
  detail::checkSizes("scatter_nd", shape, where, news.dtype(), true);
  std::vector<Tensor> open = detail::openSizes("scatter_nd", shape, where);
  Sizes sizes;
  size_t next = 0;
  for (int64_t size : shape)
    sizes.push_back(size == dynamic ? Size{dynamic, open[next++]} : known(size));
  Rows rows = rowsAt("scatter_nd", sizes, coordinates, 0, where);
  Sizes flat;
  flat.push_back(rows.count);
  next = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    Size size = shape[axis] == dynamic ? Size{dynamic, open[next++]} : known(shape[axis]);
    if (static_cast<int64_t>(axis) >= rows.axes)
      flat.push_back(size);
  }
  std::vector<const Tensor *> operands{&news, &rows.places};
  for (const Tensor &size : flat.values)
    operands.push_back(&size);
  Tensor result;
  detail::applyOp(OpId::scatter_add, runtime::ScatterAddAttrs::make(flat.list, 0), operands, std::span(&result, 1),
                  where);
  return reshapeTo(result, sizes, where);
}

/// What only values tell has to be given where there are none yet.
static void refuseUnknown(const char *op, const std::string &what, const Where &where) {
  if (detail::level().trace)
    raiseOp(op, "a traced function has no values yet, by which the size of the result would be known", "give " + what,
            {}, where);
}

// ---- Segments -------------------------------------------------------------------------------------------------------

namespace {

/// The rows of x, the number of each one's segment, and the sizes of a result.
struct Segments {
  Tensor x, numbers;
  Sizes sizes;
  Segments(const char *op, const Located &rows, const Located &segments, int64_t count)
      : x(tensorOf(rows)), numbers(indicesOf(op, "the segments", segments)) {
    const Where &where = rows.where();
    const TensorType &type = typeOf(x, where), &own = typeOf(numbers, where);
    if (count < 0 || type.shape.rank() == 0 || own.shape.rank() != 1 ||
        (own.shape.dim(0) != type.shape.dim(0) && own.shape.dim(0) != dynamic && type.shape.dim(0) != dynamic))
      raiseOp(op,
              "x is " + toString(type) + ", the segments are " + toString(own) + ", of which there are " +
                  std::to_string(count),
              "give one number for each row of x", {type, own}, where);
    for (int axis = 0; axis < type.shape.rank(); ++axis)
      sizes.push_back(axis == 0 ? known(count) : sizeOf(x, axis, where));
  }
};

} // namespace

static Tensor segmentSum(const Segments &of, const Tensor &x, const Where &where) {
  std::vector<const Tensor *> operands{&x, &of.numbers};
  for (const Tensor &size : of.sizes.values)
    operands.push_back(&size);
  Tensor result;
  detail::applyOp(OpId::scatter_add, runtime::ScatterAddAttrs::make(of.sizes.list, 0), operands, std::span(&result, 1),
                  where);
  return result;
}

Tensor segment_sum(const Located &x, const Located &segments, int64_t count) {
  Segments of("segment_sum", x, segments, count);
  return segmentSum(of, of.x, x.where());
}

Tensor segment_mean(const Located &x, const Located &segments, int64_t count) {
  At at{x.where()};
  Tensor tensor = detail::floatOf("segment_mean", x);
  Segments of("segment_mean", at[tensor], segments, count);
  Tensor number = segmentSum(of, ones_like(at[tensor]), at.where);
  return div(at[segmentSum(of, tensor, at.where)], at[maximum(at[number], at[1])]);
}

static Tensor segmentExtreme(const char *op, const Located &x, const Located &segments, int64_t count, Scatter mode) {
  const Where &where = x.where();
  Segments of(op, x, segments, count);
  Tensor end = detail::endOf(of.x.dtype(), mode == Scatter::min, Shape(), where);
  return updated(detail::broadcastTo(end, of.sizes, {}, where), of.x, of.numbers, 0, mode, where);
}
Tensor segment_max(const Located &x, const Located &segments, int64_t count) {
  return segmentExtreme("segment_max", x, segments, count, Scatter::max);
}
Tensor segment_min(const Located &x, const Located &segments, int64_t count) {
  return segmentExtreme("segment_min", x, segments, count, Scatter::min);
}

Tensor bincount(const Located &x, std::optional<int64_t> length, const Tensor &weights) {
  At at{x.where()};
  Tensor numbers = flatten(at[indicesOf("bincount", "the elements of x", x)]);
  if (!length) {
    refuseUnknown("bincount", "a length", at.where);
    length = numbers.shape().numElements() == 0 ? 0 : reduce_max(at[numbers]).item<int64_t>() + 1;
  }
  if (!weights.defined())
    return segment_sum(at[cast(at[ones_like(at[numbers])], i64)], at[numbers], *length);
  if (!detail::sameSizes(typeOf(weights, at.where).shape, typeOf(tensorOf(x), at.where).shape))
    raiseOp("bincount",
            "x is " + toString(typeOf(tensorOf(x), at.where)) + ", the weights are " +
                toString(typeOf(weights, at.where)),
            "give one weight for each element", {typeOf(weights, at.where)}, at.where);
  return segment_sum(at[flatten(at[weights])], at[numbers], *length);
}

// ---- Found ----------------------------------------------------------------------------------------------------------

/// The places where a vector of bools holds, the first `bound` of them, and how many there are.
static std::pair<Tensor, Tensor> placesWhere(const char *op, const Tensor &mask, std::optional<int64_t> &bound,
                                             const At &at) {
  Tensor count = reduce_sum(at[cast(at[mask], i64)]);
  if (!bound) {
    refuseUnknown(op, "a bound", at.where);
    bound = count.item<int64_t>();
  }
  int64_t size = mask.shape().dim(0);
  if (*bound < 0)
    raiseOp(op, "the bound " + std::to_string(*bound) + " is negative", "give 0 or more", {}, at.where);
  // No more places than there are can be sorted to the front; what the bound has beyond them is the first place.
  Tensor padded = mask;
  if (size == dynamic || size < *bound)
    padded = pad(at[mask], {{0, size == dynamic ? *bound : *bound - size}});
  Tensor order = applyOne(OpId::argsort, runtime::ArgsortAttrs::make(true, *bound), {&padded}, at.where);
  Tensor found = less(at[arange(*bound, i64, at.where)], at[count]);
  return {where(at[found], at[order], at[0]), count};
}

/// Zeros in the rows of y behind the first `count`.
static Tensor clearedBehind(const Tensor &y, const Tensor &count, int64_t bound, const At &at) {
  Tensor found = less(at[arange(bound, i64, at.where)], at[count]);
  for (int axis = 1; axis < y.rank(); ++axis)
    found = expand_dims(at[found], -1);
  return where(at[found], at[y], at[zeros_like(at[y])]);
}

Found boolean_mask(const Located &x, const Located &mask, std::optional<int64_t> bound) {
  At at{x.where()};
  Tensor tensor = tensorOf(x), holds = tensorOf(mask);
  const TensorType &type = typeOf(tensor, at.where), &own = typeOf(holds, at.where);
  bool fits = own.dtype == boolean && holds.rank() > 0 && holds.rank() <= tensor.rank();
  for (int axis = 0; fits && axis < holds.rank(); ++axis)
    fits = type.shape.dim(axis) == own.shape.dim(axis) || type.shape.dim(axis) == dynamic ||
           own.shape.dim(axis) == dynamic;
  if (!fits)
    raiseOp("boolean_mask", "x is " + toString(type) + ", the mask is " + toString(own),
            "give a bool for each place of x's first axes", {type, own}, at.where,
            own.dtype == boolean ? ErrorKind::value : ErrorKind::type);
  Tensor rows = holds.rank() > 1 ? flatten(at[tensor], 0, holds.rank() - 1) : tensor;
  auto [places, count] = placesWhere("boolean_mask", flatten(at[holds]), bound, at);
  if (rows.shape().dim(0) == 0) { // nothing to gather from, and nothing is found
    Sizes sizes;
    for (int axis = 0; axis < rows.rank(); ++axis)
      sizes.push_back(axis == 0 ? known(*bound) : sizeOf(rows, axis, at.where));
    return {detail::broadcastTo(detail::filledWith(at[0], rows.dtype(), Shape(), at.where), sizes, {}, at.where),
            count};
  }
  // When it runs there may be no rows, and a place that stands for nothing is that of the first.
  if (rows.shape().dim(0) == dynamic) {
    std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(rows.rank()));
    widths[0].second = 1;
    rows = pad(at[rows], widths);
  }
  return {clearedBehind(take(at[rows], at[places], 0), count, *bound, at), count};
}

Found nonzero(const Located &x, std::optional<int64_t> bound) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  if (!typeOf(tensor, at.where).shape.isStatic())
    raiseOp("nonzero", "x has open sizes: " + toString(typeOf(tensor, at.where)), "trace with known sizes",
            {typeOf(tensor, at.where)}, at.where);
  Tensor holds = tensor.dtype() == boolean ? tensor : not_equal(at[tensor], at[0]);
  auto [places, count] = placesWhere("nonzero", flatten(at[holds]), bound, at);
  std::vector<Tensor> coordinates = unravel_index(at[places], Shape(Ints(tensor.shape())));
  if (coordinates.empty())
    return {zeros({*bound, 0}, i64, at.where), count};
  return {clearedBehind(stack(coordinates, 1, at.where), count, *bound, at), count};
}

} // namespace wg
