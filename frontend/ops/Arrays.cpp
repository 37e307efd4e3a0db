// Arrays rearranged: axes, repetitions, borders, diagonals.
#include <wengert/Arrays.h>

#include "frontend/ops/Formula.h"

#include <algorithm>
#include <limits>

namespace wg {

using detail::applyOne;
using detail::At;
using detail::computeSize;
using detail::known;
using detail::moveAxis;
using detail::partOf;
using detail::placeOf;
using detail::placesAlong;
using detail::raiseOp;
using detail::reshapeTo;
using detail::Size;
using detail::sizeOf;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using detail::wholeOf;
using runtime::OpId;

// ---- What formulas are written with ---------------------------------------------------------------------------------

Sizes detail::wholeOf(const Tensor &x, const Where &where) {
  Sizes sizes;
  for (int axis = 0; axis < x.rank(); ++axis)
    sizes.push_back(sizeOf(x, axis, where));
  return sizes;
}

Tensor detail::partOf(const Tensor &x, int64_t axis, const Size &from, const Size &to, const Where &where) {
  Sizes starts, limits;
  Ints strides;
  for (int i = 0; i < x.rank(); ++i) {
    starts.push_back(i == axis ? from : wg::detail::known(0));
    limits.push_back(i == axis ? to : sizeOf(x, i, where));
    strides.push_back(1);
  }
  std::vector<Tensor> values = starts.values;
  values.insert(values.end(), limits.values.begin(), limits.values.end());
  return applySized(OpId::slice, runtime::SliceAttrs::make(starts.list, limits.list, strides), x, values, where);
}

Tensor detail::broadcastTo(const Tensor &x, const Sizes &sizes, const Ints &dims, const Where &where) {
  return applySized(OpId::broadcast, runtime::BroadcastAttrs::make(sizes.list, dims), x, sizes.values, where);
}

Tensor detail::placesAlong(const Tensor &x, int64_t axis, DType dtype, const Where &where) {
  Sizes sizes = wholeOf(x, where);
  std::vector<const Tensor *> operands;
  for (const Tensor &value : sizes.values)
    operands.push_back(&value);
  Tensor result;
  applyOp(OpId::iota, runtime::IotaAttrs::make(sizes.list, axis, dtype), operands, std::span(&result, 1), where);
  return result;
}

/// An open size counts as many ones.
Tensor detail::asTensor(const Size &size, DType dtype, const Where &where) {
  if (size.known != dynamic)
    return filledWith(Located(size.known, where), dtype, Shape(), where);
  Tensor places;
  const Tensor *operand = &size.value;
  applyOp(OpId::iota, runtime::IotaAttrs::make(Ints{dynamic}, 0, i64), std::span(&operand, 1), std::span(&places, 1),
          where);
  Tensor count = reduce_sum(Located(ones_like(Located(places, where)), where));
  return dtype == i64 ? count : cast(Located(count, where), dtype);
}

Tensor detail::moveAxis(const Tensor &x, int64_t from, int64_t to, const Where &where) {
  if (from == to)
    return x;
  Ints order;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != from)
      order.push_back(axis);
  Ints permutation;
  for (int64_t axis = 0, next = 0; axis < x.rank(); ++axis)
    permutation.push_back(axis == to ? from : order[static_cast<size_t>(next++)]);
  return applyOne(OpId::transpose, runtime::TransposeAttrs::make(permutation), {&x}, where);
}

Tensor detail::endOf(DType dtype, bool highest, const Shape &shape, const Where &where) {
  auto filled = [&](auto number) { return filledWith(Located(number, where), dtype, shape, where); };
  auto end = [&]<class T>(T) { return highest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min(); };
  switch (dtype) {
  case DType::i64: return filled(end(int64_t()));
  case DType::i32: return filled(end(int32_t()));
  case DType::u8: return filled(end(uint8_t()));
  default: return filled(highest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  }
}

// ---- Axes -----------------------------------------------------------------------------------------------------------

Tensor flatten(const Located &x, int64_t first, int64_t last) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  if (tensor.rank() == 0)
    return expand_dims(Located(tensor, where), 0);
  int64_t from = placeOf("flatten", first, tensor.rank(), where), to = placeOf("flatten", last, tensor.rank(), where);
  if (from > to)
    raiseOp("flatten", "axis " + std::to_string(first) + " comes after axis " + std::to_string(last),
            "give the first axis, then the last", {typeOf(tensor, where)}, where);
  Sizes sizes;
  Size together = known(1);
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    Size size = sizeOf(tensor, axis, where);
    if (axis < from || axis > to) {
      sizes.push_back(size);
      continue;
    }
    together = axis == from ? size : computeSize("flatten", "a * b", {together, size}, where);
    if (axis == to)
      sizes.push_back(together);
  }
  return reshapeTo(tensor, sizes, where);
}

Tensor moveaxis(const Located &x, const std::vector<int64_t> &from, const std::vector<int64_t> &to) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  size_t rank = static_cast<size_t>(tensor.rank());
  std::vector<int64_t> permutation(rank, -1);
  std::vector<bool> moved(rank, false);
  auto twice = [&](int64_t axis) {
    raiseOp("moveaxis", "axis " + std::to_string(axis) + " is named twice", "name each axis once",
            {typeOf(tensor, where)}, where);
  };
  if (from.size() != to.size())
    raiseOp("moveaxis", std::to_string(from.size()) + " axes go to " + std::to_string(to.size()) + " places",
            "give as many of each", {typeOf(tensor, where)}, where);
  for (size_t i = 0; i < from.size(); ++i) {
    auto source = static_cast<size_t>(placeOf("moveaxis", from[i], tensor.rank(), where)),
         target = static_cast<size_t>(placeOf("moveaxis", to[i], tensor.rank(), where));
    if (moved[source])
      twice(from[i]);
    if (permutation[target] >= 0)
      twice(to[i]);
    moved[source] = true;
    permutation[target] = static_cast<int64_t>(source);
  }
  size_t next = 0;
  for (int64_t &axis : permutation) {
    if (axis >= 0)
      continue;
    while (moved[next])
      ++next;
    axis = static_cast<int64_t>(next++);
  }
  return rank == 0 ? identity(Located(tensor, where)) : transpose(Located(tensor, where), permutation);
}
Tensor moveaxis(const Located &x, int64_t from, int64_t to) {
  return moveaxis(x, std::vector<int64_t>{from}, std::vector<int64_t>{to});
}

Tensor swapaxes(const Located &x, int64_t a, int64_t b) {
  Tensor tensor = tensorOf(x);
  int64_t first = placeOf("swapaxes", a, tensor.rank(), x.where()),
          second = placeOf("swapaxes", b, tensor.rank(), x.where());
  if (first == second)
    return identity(Located(tensor, x.where()));
  return moveaxis(Located(tensor, x.where()), std::vector<int64_t>{first, second}, std::vector<int64_t>{second, first});
}

std::vector<Tensor> unstack(const Located &x, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("unstack", axis, tensor.rank(), where), size = tensor.shape().dim(static_cast<int>(place));
  if (size == dynamic)
    raiseOp("unstack",
            "how many parts axis " + std::to_string(place) + " of " + toString(typeOf(tensor, where)) +
                " has is known when the function runs",
            "trace with this size given, or write a loop: scan, map", {typeOf(tensor, where)}, where);
  std::vector<Tensor> parts;
  if (size == 0)
    return parts;
  for (const Tensor &part : split(Located(tensor, where), size, place))
    parts.push_back(squeeze(Located(part, where), place));
  return parts;
}

// ---- Repeated, turned around, moved ---------------------------------------------------------------------------------

namespace {

/// An axis between the product of the sizes before it and that of those behind it.
struct Split {
  Size outer = known(1), size, inner = known(1);
  Split(const char *op, const Tensor &x, int64_t axis, const Where &where) : size(sizeOf(x, axis, where)) {
    for (int i = 0; i < x.rank(); ++i)
      if (Size &product = i < axis ? outer : inner; i != axis)
        product = computeSize(op, "a * b", {product, sizeOf(x, i, where)}, where);
  }
};

} // namespace

static Sizes listed(std::initializer_list<Size> sizes) {
  Sizes list;
  for (const Size &size : sizes)
    list.push_back(size);
  return list;
}

/// x with axis `axis` `count` times as long: all of it again and again, or each element `count` times.
static Tensor repeated(const char *op, const Tensor &x, int64_t count, int64_t axis, bool each, const Where &where) {
  if (count == 1)
    return x;
  Split at(op, x, axis, where);
  Size times = known(count);
  Tensor flat = reshapeTo(x, listed({at.outer, at.size, at.inner}), where);
  Tensor wide = each ? detail::broadcastTo(flat, listed({at.outer, at.size, times, at.inner}), {0, 1, 3}, where)
                     : detail::broadcastTo(flat, listed({at.outer, times, at.size, at.inner}), {0, 2, 3}, where);
  Sizes sizes;
  for (int i = 0; i < x.rank(); ++i)
    sizes.push_back(i == axis ? computeSize(op, "a * b", {at.size, times}, where) : sizeOf(x, i, where));
  return reshapeTo(wide, sizes, where);
}

static void checkCount(const char *op, int64_t count, const Where &where) {
  if (count < 0)
    raiseOp(op, "the count " + std::to_string(count) + " is negative", "give 0 or more", {}, where);
}

Tensor tile(const Located &x, const std::vector<int64_t> &counts) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  while (tensor.rank() < static_cast<int>(counts.size()))
    tensor = expand_dims(Located(tensor, where), 0);
  int64_t first = tensor.rank() - static_cast<int64_t>(counts.size());
  bool same = true;
  for (size_t i = 0; i < counts.size(); ++i) {
    checkCount("tile", counts[i], where);
    same &= counts[i] == 1;
    tensor = repeated("tile", tensor, counts[i], first + static_cast<int64_t>(i), false, where);
  }
  return same ? identity(Located(tensor, where)) : tensor;
}

Tensor repeat(const Located &x, int64_t count, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("repeat", axis, tensor.rank(), where);
  checkCount("repeat", count, where);
  return count == 1 ? identity(Located(tensor, where)) : repeated("repeat", tensor, count, place, true, where);
}

/// Place i of the result shows the first element whose counts, with those before it, exceed i.
Tensor repeat(const Located &x, const Located &counts, int64_t axis, int64_t total) {
  At at{x.where()};
  Tensor tensor = tensorOf(x), times = tensorOf(counts);
  int64_t place = placeOf("repeat", axis, tensor.rank(), at.where);
  checkCount("repeat", total, at.where);
  const TensorType &type = typeOf(times, at.where);
  int64_t n = tensor.shape().dim(static_cast<int>(place));
  if (!runtime::isInteger(type.dtype) || type.shape.rank() != 1 ||
      (n != dynamic && type.shape.dim(0) != dynamic && type.shape.dim(0) != n))
    raiseOp("repeat",
            "the counts are " + toString(type) + " for axis " + std::to_string(place) + " of " +
                toString(typeOf(tensor, at.where)),
            "give one integer for each place of the axis", {typeOf(tensor, at.where), type}, at.where);
  Tensor ends = cumsum(at[cast(at[times], i64)], 0);
  Tensor from = searchsorted(at[ends], at[arange(total, i64, at.where)], /*right=*/true);
  Tensor last = sub(at[cast(at[reduce_sum(at[ones_like(at[ends])])], i64)], at[1]);
  return take(at[tensor], at[minimum(at[from], at[last])], place);
}

Tensor flip(const Located &x, const Axes &axes) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  Ints places = detail::placesOf("flip", axes, tensor.rank(), where);
  return applyOne(OpId::reverse, runtime::ReverseAttrs::make(places), {&tensor}, where);
}

Tensor roll(const Located &x, int64_t shift, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("roll", axis, tensor.rank(), where);
  Size size = sizeOf(tensor, place, where), start;
  if (size.known != dynamic) {
    int64_t n = std::max<int64_t>(size.known, 1), by = (shift % n + n) % n;
    start = known(size.known == 0 ? 0 : (n - by) % n);
  } else if (shift >= 0) {
    start = computeSize("roll", "(max(a, 1) - " + std::to_string(shift) + " % max(a, 1)) % max(a, 1)", {size}, where);
  } else {
    // One is added after the negation, so that the lowest number has an opposite.
    start = computeSize("roll", "(" + std::to_string(-(shift + 1)) + " % max(a, 1) + 1) % max(a, 1)", {size}, where);
  }
  if (start.known == 0)
    return identity(Located(tensor, where));
  return concat({partOf(tensor, place, start, size, where), partOf(tensor, place, known(0), start, where)}, place,
                where);
}

Tensor roll(const Located &x, const std::vector<int64_t> &shifts, const std::vector<int64_t> &axes) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  if (shifts.size() != axes.size())
    raiseOp("roll", std::to_string(shifts.size()) + " shifts for " + std::to_string(axes.size()) + " axes",
            "give one shift for each axis", {typeOf(tensor, where)}, where);
  for (size_t i = 0; i < axes.size(); ++i)
    tensor = roll(Located(tensor, where), shifts[i], axes[i]);
  return axes.empty() ? identity(Located(tensor, where)) : tensor;
}

// ---- Borders --------------------------------------------------------------------------------------------------------

/// `width` places at one end of an axis, as `mode` has them.
static Tensor borderOf(const Tensor &x, int64_t axis, int64_t width, bool before, PadMode mode, const Where &where) {
  Size size = sizeOf(x, axis, where);
  if (mode == PadMode::edge) {
    Tensor border = index(Located(x, where), before ? 0 : -1, axis);
    Sizes sizes;
    Ints dims;
    for (int i = 0; i < x.rank(); ++i) {
      sizes.push_back(i == axis ? known(width) : sizeOf(x, i, where));
      if (i != axis)
        dims.push_back(i);
    }
    return detail::broadcastTo(border, sizes, dims, where);
  }
  int64_t skipped = mode == PadMode::reflect; // the border itself
  bool atStart = before != (mode == PadMode::wrap);
  Size from, to;
  if (atStart) {
    from = known(skipped);
    to = known(skipped + width);
  } else {
    from = computeSize("pad", "a - " + std::to_string(skipped + width), {size}, where);
    to = skipped == 0 ? size : computeSize("pad", "a - " + std::to_string(skipped), {size}, where);
  }
  Tensor part = partOf(x, axis, from, to, where);
  return mode == PadMode::wrap ? part
                               : applyOne(OpId::reverse, runtime::ReverseAttrs::make(Ints{axis}), {&part}, where);
}

Tensor pad(const Located &x, const std::vector<std::pair<int64_t, int64_t>> &widths, PadMode mode) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  if (static_cast<int>(widths.size()) != tensor.rank())
    raiseOp("pad", std::to_string(widths.size()) + " pairs of widths for rank " + std::to_string(tensor.rank()),
            "give one pair for each axis", {typeOf(tensor, where)}, where);
  bool same = true;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    auto [before, after] = widths[static_cast<size_t>(axis)];
    int64_t size = tensor.shape().dim(axis), most = mode == PadMode::edge ? size
                                                    : size == dynamic     ? dynamic
                                                                          : size - (mode == PadMode::reflect);
    if (size != dynamic && ((mode != PadMode::edge && std::max(before, after) > std::max<int64_t>(most, 0)) ||
                            (size == 0 && std::max(before, after) > 0)))
      raiseOp("pad",
              "widths of " + std::to_string(before) + " and " + std::to_string(after) + " on axis " +
                  std::to_string(axis) + " of " + toString(typeOf(tensor, where)) + ", whose image has " +
                  std::to_string(std::max<int64_t>(most, 0)) + " elements",
              "give smaller widths, or pad twice", {typeOf(tensor, where)}, where);
    std::vector<Tensor> pieces;
    if (before > 0)
      pieces.push_back(borderOf(tensor, axis, before, true, mode, where));
    Tensor kept = tensor;
    if (before < 0 || after < 0) {
      Size whole = sizeOf(tensor, axis, where);
      int64_t gone = std::max<int64_t>(-after, 0);
      kept = partOf(tensor, axis, known(std::max<int64_t>(-before, 0)),
                    gone == 0 ? whole : computeSize("pad", "a - " + std::to_string(gone), {whole}, where), where);
    }
    pieces.push_back(kept);
    if (after > 0)
      pieces.push_back(borderOf(tensor, axis, after, false, mode, where));
    same &= before == 0 && after == 0;
    tensor = pieces.size() == 1 ? pieces[0] : concat(pieces, axis, where);
  }
  return same ? identity(Located(tensor, where)) : tensor;
}

// ---- Diagonals and triangles ----------------------------------------------------------------------------------------

static Tensor matricesOf(const char *op, const Located &x) {
  Tensor tensor = tensorOf(x);
  if (tensor.rank() < 2)
    raiseOp(op, "takes matrices, got " + toString(typeOf(tensor, x.where())), "give a tensor of rank 2 or more",
            {typeOf(tensor, x.where())}, x.where());
  return tensor;
}

/// column - row, in x's shape.
static Tensor diagonalNumbers(const Tensor &x, const At &at) {
  Tensor row = placesAlong(x, x.rank() - 2, i64, at.where), column = placesAlong(x, x.rank() - 1, i64, at.where);
  return sub(at[column], at[row]);
}

Tensor tril(const Located &x, int64_t k) {
  At at{x.where()};
  Tensor tensor = matricesOf("tril", x);
  return where(at[less_equal(at[diagonalNumbers(tensor, at)], at[k])], at[tensor], at[zeros_like(at[tensor])]);
}
Tensor triu(const Located &x, int64_t k) {
  At at{x.where()};
  Tensor tensor = matricesOf("triu", x);
  return where(at[greater_equal(at[diagonalNumbers(tensor, at)], at[k])], at[tensor], at[zeros_like(at[tensor])]);
}

/// Diagonal k of n rows and m columns: in row-major order, every (m + 1)-th element from its first on. Sizes that are
/// not known are masked: the one element of a row that lies on it is the sum of the row.
Tensor diagonal(const Located &x, int64_t k) {
  At at{x.where()};
  Tensor tensor = matricesOf("diagonal", x);
  int rank = tensor.rank();
  int64_t n = tensor.shape().dim(rank - 2), m = tensor.shape().dim(rank - 1);
  if (k > (1LL << 56) || k < -(1LL << 56))
    raiseOp("diagonal", "there is no diagonal " + std::to_string(k), "give a smaller number", {}, at.where);
  if (n != dynamic && m != dynamic) {
    int64_t first = k >= 0 ? k : -k * m,
            length = std::max<int64_t>(0, k >= 0 ? std::min(n, m - k) : std::min(n + k, m));
    Tensor flat = flatten(at[tensor], -2, -1);
    std::vector<int64_t> starts(static_cast<size_t>(rank - 1), 0), strides(static_cast<size_t>(rank - 1), 1);
    Sizes from, to;
    Ints by;
    for (int axis = 0; axis < rank - 2; ++axis) {
      from.push_back(known(0));
      to.push_back(sizeOf(flat, axis, at.where));
      by.push_back(1);
    }
    from.push_back(known(length == 0 ? 0 : first));
    to.push_back(known(length == 0 ? 0 : first + (length - 1) * (m + 1) + 1));
    by.push_back(m + 1);
    return detail::applySized(OpId::slice, runtime::SliceAttrs::make(from.list, to.list, by), flat, to.values,
                              at.where);
  }
  Tensor isOn = equal(at[diagonalNumbers(tensor, at)], at[k]);
  bool isBool = tensor.dtype() == boolean;
  Tensor masked = where(at[isOn], at[tensor], at[zeros_like(at[tensor])]);
  Tensor rows = isBool ? reduce_any(at[masked], -1) : reduce_sum(at[masked], -1);
  Size height = sizeOf(tensor, rank - 2, at.where), width = sizeOf(tensor, rank - 1, at.where);
  std::string by = std::to_string(k < 0 ? -k : k);
  Size start = k >= 0 ? known(0) : computeSize("diagonal", "min(a, " + by + ")", {height}, at.where);
  Size end = k >= 0 ? computeSize("diagonal", "min(a, max(b, " + by + ") - " + by + ")", {height, width}, at.where)
                    : computeSize("diagonal", "min(a, " + by + " + b)", {height, width}, at.where);
  return partOf(rows, rank - 2, start, end, at.where);
}

Tensor trace(const Located &x, int64_t k) {
  At at{x.where()};
  Tensor tensor = matricesOf("trace", x);
  return reduce_sum(at[diagonal(at[tensor], k)], -1);
}

/// Element i of x in row i and column i + k, or row i - k and column i: x repeated in all columns or rows, masked.
Tensor diag(const Located &x, int64_t k) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  const TensorType &type = typeOf(tensor, at.where);
  if (tensor.rank() == 0)
    raiseOp("diag", "takes vectors, got " + toString(type), "diagonal(x) takes a diagonal out of matrices", {type},
            at.where);
  if (k > (1LL << 32) || k < -(1LL << 32))
    raiseOp("diag", "diagonal " + std::to_string(k) + " of a matrix of so many rows is more than memory holds",
            "give a smaller number", {type}, at.where);
  std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(tensor.rank()));
  widths.back() = {0, k < 0 ? -k : k};
  Tensor padded = k == 0 ? tensor : pad(at[tensor], widths);
  Sizes sizes = wholeOf(padded, at.where);
  sizes.push_back(sizeOf(padded, padded.rank() - 1, at.where));
  detail::checkRank("diag", Shape(sizes.list), at.where);
  Ints dims;
  for (int axis = 0; axis < tensor.rank(); ++axis)
    dims.push_back(axis + (k < 0 && axis == tensor.rank() - 1));
  Tensor wide = detail::broadcastTo(padded, sizes, dims, at.where);
  return where(at[equal(at[diagonalNumbers(wide, at)], at[k])], at[wide], at[zeros_like(at[wide])]);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor> &xs, bool xy, Where where) {
  Sizes sizes;
  auto axisOf = [&](size_t i) { return xy && i < 2 && xs.size() > 1 ? 1 - i : i; };
  for (const Tensor &x : xs)
    if (const TensorType &type = typeOf(x, where); type.shape.rank() != 1)
      raiseOp("meshgrid", "takes vectors, got " + toString(type), "flatten it", {type}, where);
  for (size_t axis = 0; axis < xs.size(); ++axis)
    sizes.push_back(sizeOf(xs[axisOf(axis)], 0, where));
  detail::checkRank("meshgrid", Shape(sizes.list), where);
  std::vector<Tensor> grid;
  for (size_t i = 0; i < xs.size(); ++i)
    grid.push_back(detail::broadcastTo(xs[i], sizes, Ints{static_cast<int64_t>(axisOf(i))}, where));
  return grid;
}

} // namespace wg
