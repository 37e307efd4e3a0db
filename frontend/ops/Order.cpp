// Order, what has come so far along an axis, and statistics.
#include <wengert/Arrays.h>

#include "frontend/ops/Formula.h"

#include <cmath>
#include <limits>

namespace wg {

using detail::applyOne;
using detail::At;
using detail::computeSize;
using detail::floatOf;
using detail::known;
using detail::moveAxis;
using detail::partOf;
using detail::placeOf;
using detail::placesOf;
using detail::raiseOp;
using detail::Size;
using detail::sizeOf;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

// ---- Order ----------------------------------------------------------------------------------------------------------

/// The first `count` places along an axis, -1 for all.
static Tensor placesInOrder(const char *op, const Tensor &x, int64_t axis, bool descending, int64_t count,
                            const Where &where) {
  int64_t place = placeOf(op, axis, x.rank(), where), last = x.rank() - 1;
  Tensor rows = moveAxis(x, place, last, where);
  Tensor y = applyOne(OpId::argsort, runtime::ArgsortAttrs::make(descending, count), {&rows}, where);
  return moveAxis(y, last, place, where);
}

Tensor argsort(const Located &x, int64_t axis, SortOptions options) {
  return placesInOrder("argsort", tensorOf(x), axis, options.descending, -1, x.where());
}

Tensor sort(const Located &x, int64_t axis, SortOptions options) {
  At at{x.where()};
  Tensor tensor = tensorOf(x), places = placesInOrder("sort", tensor, axis, options.descending, -1, at.where);
  return take_along_axis(at[tensor], at[places], axis);
}

Ordered top_k(const Located &x, int64_t k, int64_t axis) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("top_k", axis, tensor.rank(), at.where), size = tensor.shape().dim(static_cast<int>(place));
  if (k < 0 || (size != dynamic && k > size))
    raiseOp("top_k",
            "the " + std::to_string(k) + " largest along axis " + std::to_string(place) + " of " +
                toString(typeOf(tensor, at.where)),
            "k is at most the size of the axis", {typeOf(tensor, at.where)}, at.where);
  Tensor places = placesInOrder("top_k", tensor, place, true, k, at.where);
  return {take_along_axis(at[tensor], at[places], place), places};
}

/// One vector for all values, or one for each place of the axes in front.
Tensor searchsorted(const Located &sorted, const Located &values, bool right) {
  const Where &where = sorted.where();
  Tensor ascending = tensorOf(sorted), tensor = tensorOf(values, typeOf(ascending, where).dtype);
  detail::checkDTypes("searchsorted", ascending, tensor, where);
  runtime::Attrs attrs = runtime::SearchsortedAttrs::make(right);
  if (ascending.rank() != 1 || tensor.rank() == 1)
    return applyOne(OpId::searchsorted, attrs, {&ascending, &tensor}, where);
  Tensor flat = flatten(Located(tensor, where));
  Tensor places = applyOne(OpId::searchsorted, attrs, {&ascending, &flat}, where);
  return detail::reshapeTo(places, detail::wholeOf(tensor, where), where);
}

Tensor quantile(const Located &x, double q, int64_t axis, bool keepdims) {
  At at{x.where()};
  Tensor tensor = floatOf("quantile", x);
  int64_t place = placeOf("quantile", axis, tensor.rank(), at.where), n = tensor.shape().dim(static_cast<int>(place));
  if (!(q >= 0 && q <= 1) || n == dynamic || n == 0)
    raiseOp("quantile",
            "the part " + std::to_string(q) + " of axis " + std::to_string(place) + " of " +
                toString(typeOf(tensor, at.where)),
            "the part is from 0 to 1, of an axis of known size that is not empty", {typeOf(tensor, at.where)},
            at.where);
  double position = q * static_cast<double>(n - 1);
  int64_t low = static_cast<int64_t>(std::floor(position)), high = std::min(low + 1, n - 1);
  Tensor sorted = sort(at[tensor], place);
  auto element = [&](int64_t i) { return partOf(sorted, place, known(i), known(i + 1), at.where); };
  Tensor below = element(low), above = element(high);
  double part = position - static_cast<double>(low);
  // Where both are one infinity their distance is none.
  Tensor distance = where(at[equal(at[above], at[below])], at[zeros_like(at[below])], at[sub(at[above], at[below])]);
  Tensor y = part == 0 ? below : add(at[below], at[mul(at[part], at[distance])]);
  Tensor largest = element(n - 1);
  y = where(at[is_nan(at[largest])], at[largest], at[y]);
  return keepdims ? y : squeeze(at[y], place);
}

Tensor median(const Located &x, int64_t axis, bool keepdims) { return quantile(x, 0.5, axis, keepdims); }

// ---- So far along an axis -------------------------------------------------------------------------------------------

/// Moved by one place, with `first` where nothing has come before.
static Tensor exclusive(const char *op, const Tensor &y, int64_t axis, double first, bool reverse, const At &at) {
  Size size = sizeOf(y, axis, at.where), one = computeSize(op, "min(a, 1)", {size}, at.where),
       others = computeSize(op, "a - b", {size, one}, at.where);
  Tensor kept = reverse ? partOf(y, axis, one, size, at.where) : partOf(y, axis, known(0), others, at.where);
  Tensor start = reverse ? partOf(y, axis, others, size, at.where) : partOf(y, axis, known(0), one, at.where);
  start = add(at[zeros_like(at[start])], at[detail::filledWith(at[first], y.dtype(), Shape(), at.where)]);
  return concat(reverse ? std::vector{kept, start} : std::vector{start, kept}, axis, at.where);
}

/// Booleans are counted.
static Tensor numbersOf(const Located &x) {
  Tensor tensor = tensorOf(x);
  return tensor.dtype() == boolean ? cast(Located(tensor, x.where()), i64) : tensor;
}

Tensor cumsum(const Located &x, int64_t axis, CumulativeOptions options) {
  At at{x.where()};
  Tensor tensor = numbersOf(x);
  int64_t place = placeOf("cumsum", axis, tensor.rank(), at.where);
  Tensor y = applyOne(OpId::cumsum, runtime::CumsumAttrs::make(place, options.reverse), {&tensor}, at.where);
  return options.exclusive ? exclusive("cumsum", y, place, 0, options.reverse, at) : y;
}

Tensor cumprod(const Located &x, int64_t axis, CumulativeOptions options) {
  At at{x.where()};
  Tensor tensor = numbersOf(x);
  int64_t place = placeOf("cumprod", axis, tensor.rank(), at.where);
  Tensor y = applyOne(OpId::cumprod, runtime::CumprodAttrs::make(place, options.reverse), {&tensor}, at.where);
  return options.exclusive ? exclusive("cumprod", y, place, 1, options.reverse, at) : y;
}

Tensor logcumsumexp(const Located &x, int64_t axis, CumulativeOptions options) {
  At at{x.where()};
  Tensor tensor = floatOf("logcumsumexp", x);
  int64_t place = placeOf("logcumsumexp", axis, tensor.rank(), at.where);
  Tensor y =
      applyOne(OpId::logcumsumexp, runtime::LogcumsumexpAttrs::make(place, options.reverse), {&tensor}, at.where);
  return options.exclusive
             ? exclusive("logcumsumexp", y, place, -std::numeric_limits<double>::infinity(), options.reverse, at)
             : y;
}

static Ordered extremesSoFar(const char *op, const Located &x, int64_t axis, bool reverse, bool smallest) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf(op, axis, tensor.rank(), at.where);
  Tensor places =
      applyOne(OpId::cumargmax, runtime::CumargmaxAttrs::make(place, reverse, smallest), {&tensor}, at.where);
  return {take_along_axis(at[tensor], at[places], place), places};
}
Ordered cummax(const Located &x, int64_t axis, bool reverse) {
  return extremesSoFar("cummax", x, axis, reverse, false);
}
Ordered cummin(const Located &x, int64_t axis, bool reverse) { return extremesSoFar("cummin", x, axis, reverse, true); }

Tensor linear_recurrence(const Located &a, const Located &x, int64_t axis, bool reverse) {
  At at{x.where()};
  DType dtype = !x.isLiteral()   ? typeOf(x.tensor(), at.where).dtype
                : !a.isLiteral() ? typeOf(a.tensor(), at.where).dtype
                                 : f32;
  Tensor factor = tensorOf(a, dtype), added = tensorOf(x, dtype);
  detail::checkDTypes("linear_recurrence", factor, added, at.where);
  detail::Aligned operands[] = {{&factor}, {&added}};
  Shape shape = detail::broadcastShape("linear_recurrence", operands, at.where);
  Tensor wideA = detail::broadcastTo(factor, shape, operands, at.where),
         wideX = detail::broadcastTo(added, shape, operands, at.where);
  int64_t place = placeOf("linear_recurrence", axis, shape.rank(), at.where);
  return applyOne(OpId::linear_recurrence, runtime::LinearRecurrenceAttrs::make(place, reverse), {&wideA, &wideX},
                  at.where);
}

Tensor diff(const Located &x, int64_t order, int64_t axis) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("diff", axis, tensor.rank(), at.where), n = tensor.shape().dim(static_cast<int>(place));
  if (order < 0 || (n != dynamic && order > n))
    raiseOp("diff",
            "differences of order " + std::to_string(order) + " along axis " + std::to_string(place) + " of " +
                toString(typeOf(tensor, at.where)),
            "the order is at most the size of the axis", {typeOf(tensor, at.where)}, at.where);
  Tensor y = order == 0 ? identity(at[tensor]) : tensor;
  for (; order > 0; --order) {
    Size size = sizeOf(y, place, at.where), rest = computeSize("diff", "a - 1", {size}, at.where);
    y = sub(at[partOf(y, place, known(1), size, at.where)], at[partOf(y, place, known(0), rest, at.where)]);
  }
  return y;
}

// ---- Statistics -----------------------------------------------------------------------------------------------------

Tensor variance(const Located &x, const Axes &axes, bool keepdims, int64_t correction) {
  At at{x.where()};
  Tensor tensor = floatOf("variance", x);
  placesOf("variance", axes, tensor.rank(), at.where);
  Tensor distance = sub(at[tensor], at[mean(at[tensor], axes, true)]);
  Tensor sum = reduce_sum(at[square(at[distance])], axes, keepdims);
  Tensor count = stop_gradient(at[reduce_sum(at[ones_like(at[tensor])], axes, keepdims)]);
  return div(at[sum], at[sub(at[count], at[correction])]);
}

Tensor standard_deviation(const Located &x, const Axes &axes, bool keepdims, int64_t correction) {
  At at{x.where()};
  Tensor tensor = floatOf("standard_deviation", x);
  placesOf("standard_deviation", axes, tensor.rank(), at.where);
  Tensor squares =
      correction == 0 ? variance(at[tensor], axes, keepdims) : variance(at[tensor], axes, keepdims, correction);
  Tensor none = equal(at[squares], at[0]);
  return where(at[none], at[0], at[sqrt(at[where(at[none], at[1], at[squares])])]);
}

/// By the largest |x|, so that no power overflows; 0 where that is 0.
Tensor p_norm(const Located &x, double p, const Axes &axes, bool keepdims) {
  At at{x.where()};
  Tensor tensor = floatOf("p_norm", x);
  placesOf("p_norm", axes, tensor.rank(), at.where);
  Tensor size = abs(at[tensor]);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(p))
    raiseOp("p_norm", "the order is NaN", "give a number, or infinity", {typeOf(tensor, at.where)}, at.where);
  if (p == kInfinity)
    return reduce_max(at[size], axes, keepdims);
  if (p == -kInfinity)
    return reduce_min(at[size], axes, keepdims);
  if (p == 0)
    return cast(at[count_nonzero(at[tensor], axes, keepdims)], tensor.dtype());
  if (p == 1)
    return reduce_sum(at[size], axes, keepdims);
  Tensor largest = stop_gradient(at[reduce_max(at[size], axes, true)]);
  Tensor usable = logical_and(at[greater(at[largest], at[0])], at[is_finite(at[largest])]);
  Tensor scale = where(at[usable], at[largest], at[1]);
  Tensor scaled = div(at[size], at[scale]);
  Tensor isZero = equal(at[scaled], at[0]);
  // 0^p is 0, or infinity below 0; a power of 1 stands there, so that no slope is infinite.
  Tensor powers =
      where(at[isZero], at[p > 0 ? 0.0 : kInfinity], at[pow(at[where(at[isZero], at[1], at[scaled])], at[p])]);
  Tensor sum = reduce_sum(at[powers], axes, true);
  Tensor none = equal(at[sum], at[0]);
  Tensor root = where(at[none], at[0], at[pow(at[where(at[none], at[1], at[sum])], at[1 / p])]);
  Tensor y = mul(at[scale], at[root]);
  if (keepdims)
    return y;
  Ints places = placesOf("p_norm", axes, tensor.rank(), at.where);
  return squeeze(at[y], std::vector<int64_t>(places.begin(), places.end()));
}

Tensor count_nonzero(const Located &x, const Axes &axes, bool keepdims) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  placesOf("count_nonzero", axes, tensor.rank(), at.where);
  Tensor holds = tensor.dtype() == boolean ? tensor : not_equal(at[tensor], at[0]);
  return reduce_sum(at[cast(at[holds], i64)], axes, keepdims);
}

} // namespace wg
