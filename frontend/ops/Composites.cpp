// What is composed of other operations: means, softmax, losses.
#include "frontend/ops/Operands.h"

#include <cmath>
#include <limits>

namespace wg {

using detail::applyOne;
using detail::floatOf;
using detail::placeOf;
using detail::placesOf;
using detail::raiseOp;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

Tensor square(const Located &x) {
  Tensor tensor = tensorOf(x);
  return applyOne(OpId::mul, {}, {&tensor, &tensor}, x.where());
}

/// The largest of what is in the reversed order: -x of floats, and of integers -1 - x (u8: 255 - x), which never wraps.
Tensor argmin(const Located &x, int64_t axis) {
  Where at = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = detail::placeOf("argmin", axis, tensor.rank(), at);
  Tensor reversed = runtime::isInteger(tensor.dtype())
                        ? sub(Located(tensor.dtype() == u8 ? 255 : -1, at), Located(tensor, at))
                        : neg(Located(tensor, at));
  return argmax(Located(reversed, at), place);
}

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor is_inf(const Located &x) {
  Where at = x.where();
  return equal(Located(abs(Located(floatOf("is_inf", x), at)), at), Located(kInfinity, at));
}

Tensor is_finite(const Located &x) {
  Where at = x.where();
  return less(Located(abs(Located(floatOf("is_finite", x), at)), at), Located(kInfinity, at));
}

Tensor reciprocal(const Located &x) { return div(Located(1, x.where()), x); }

Tensor mean(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("mean", x);
  int64_t count = 1;
  for (int64_t axis : placesOf("mean", axes, tensor.rank(), at)) {
    int64_t size = tensor.shape().dim(static_cast<int>(axis));
    count = size == dynamic || count == dynamic ? dynamic : count * size;
  }
  Tensor sum = reduce_sum(Located(tensor, at), axes, keepdims);
  if (count != dynamic)
    return div(Located(sum, at), Located(count, at));
  return div(Located(sum, at), Located(reduce_sum(Located(ones_like(Located(tensor, at)), at), axes, keepdims), at));
}

Tensor variance(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("variance", x);
  placesOf("variance", axes, tensor.rank(), at); // or an error, of this op and not of those that it is made of
  Tensor distance = sub(Located(tensor, at), Located(mean(Located(tensor, at), axes, true), at));
  return mean(Located(square(Located(distance, at)), at), axes, keepdims);
}

/// The largest of x over axes, as a constant.
static Tensor shiftOf(const Tensor &x, const Axes &axes, const Where &at) {
  return stop_gradient(Located(reduce_max(Located(x, at), axes, true), at));
}

/// log sum exp(x - m) + m with m the maximum, or 0 where that is infinite; the logarithm of an empty sum is guarded, so
/// that a row of -inf has value -inf and gradient 0.
Tensor logsumexp(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("logsumexp", x);
  placesOf("logsumexp", axes, tensor.rank(), at);
  Tensor largest = shiftOf(tensor, axes, at);
  Tensor finite = equal(Located(sub(Located(largest, at), Located(largest, at)), at), Located(0, at));
  Tensor m = wg::where(Located(finite, at), Located(largest, at), Located(0, at));
  Tensor sum = reduce_sum(Located(exp(Located(sub(Located(tensor, at), Located(m, at)), at)), at), axes, true);
  Tensor empty = equal(Located(sum, at), Located(0, at));
  Tensor logs = log(Located(wg::where(Located(empty, at), Located(1, at), Located(sum, at)), at));
  Tensor y =
      wg::where(Located(empty, at), Located(-kInfinity, at), Located(add(Located(logs, at), Located(m, at)), at));
  return keepdims ? y : squeeze(Located(y, at), Axes(std::vector<int64_t>([&] {
                                  Ints places = placesOf("logsumexp", axes, tensor.rank(), at);
                                  return std::vector<int64_t>(places.begin(), places.end());
                                }())));
}

Tensor softmax(const Located &x, int64_t axis) {
  Where at = x.where();
  Tensor tensor = floatOf("softmax", x);
  placeOf("softmax", axis, tensor.rank(), at);
  Tensor e = exp(Located(sub(Located(tensor, at), Located(shiftOf(tensor, axis, at), at)), at));
  return div(Located(e, at), Located(reduce_sum(Located(e, at), axis, true), at));
}

Tensor log_softmax(const Located &x, int64_t axis) {
  Where at = x.where();
  Tensor tensor = floatOf("log_softmax", x);
  placeOf("log_softmax", axis, tensor.rank(), at);
  Tensor z = sub(Located(tensor, at), Located(shiftOf(tensor, axis, at), at));
  Tensor sum = reduce_sum(Located(exp(Located(z, at)), at), axis, true);
  return sub(Located(z, at), Located(log(Located(sum, at)), at));
}

Tensor clip(const Located &x, const Located &low, const Located &high) {
  Where at = x.where();
  Tensor tensor = tensorOf(x);
  // A NaN bound is taken, and nothing lies beyond the NaN that this gives.
  auto taken = [&](const Tensor &beyond, const Located &bound) {
    if (bound.isLiteral() ? !std::isnan(bound.real()) : !runtime::isFloat(typeOf(bound.tensor(), at).dtype))
      return beyond;
    return bound.isLiteral() ? logical_or(Located(beyond, at), Located(true, at))
                             : logical_or(Located(beyond, at), Located(is_nan(bound), at));
  };
  Tensor below = taken(less(Located(tensor, at), low), low);
  Tensor raised = wg::where(Located(below, at), low, Located(tensor, at));
  Tensor above = taken(greater(Located(raised, at), high), high);
  return wg::where(Located(above, at), high, Located(raised, at));
}

Tensor norm(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("norm", x);
  placesOf("norm", axes, tensor.rank(), at);
  Tensor sum = reduce_sum(Located(square(Located(tensor, at)), at), axes, keepdims);
  Tensor zero = equal(Located(sum, at), Located(0, at));
  Tensor root = sqrt(Located(wg::where(Located(zero, at), Located(1, at), Located(sum, at)), at));
  return wg::where(Located(zero, at), Located(0, at), Located(root, at));
}

Tensor mean_squared_error(const Located &prediction, const Located &target) {
  Where at = prediction.where();
  detail::checkPairs("mean_squared_error", prediction, target);
  return mean(Located(square(Located(sub(prediction, target), at)), at));
}

/// Whether j is the label, of each class j.
static Tensor isLabel(const char *op, const Tensor &labels, int64_t classes, const Where &at) {
  return one_hot(Located(detail::classNumbers(op, "a label", labels, classes, at), at), classes, boolean);
}

/// With z = logits - max: log(sum exp z) - z[label], which is finite where other classes are masked by -inf; for a
/// distribution p: sum(p) log(sum exp z) - sum(p z).
Tensor detail::crossEntropies(const char *op, const Located &logits, const Located &labels) {
  Where at = logits.where();
  Tensor x = floatOf(op, logits), y = tensorOf(labels);
  const TensorType &xType = typeOf(x, at), &yType = typeOf(y, at);
  if (x.rank() == 0 || xType.shape.dim(x.rank() - 1) == dynamic)
    raiseOp(op, "the logits " + toString(xType) + " have no last axis of static size", "give logits[..., classes]",
            {xType}, at);
  bool sparse = runtime::isInteger(yType.dtype);
  int rank = sparse ? x.rank() - 1 : x.rank();
  bool fits = y.rank() == rank && (sparse || yType.dtype == xType.dtype);
  for (int axis = 0; fits && axis < rank; ++axis) {
    int64_t a = xType.shape.dim(axis), b = yType.shape.dim(axis);
    fits = a == b || a == dynamic || b == dynamic;
  }
  if (!fits)
    raiseOp(
        op, "logits are " + toString(xType) + ", labels " + toString(yType),
        "give integer labels of the logits' shape without its last axis, or a distribution of the same shape and dtype",
        {xType, yType}, at);
  Tensor z = sub(Located(x, at), Located(shiftOf(x, -1, at), at));
  Tensor logSum = log(Located(reduce_sum(Located(exp(Located(z, at)), at), -1), at));
  Tensor weighted =
      sparse ? wg::where(Located(isLabel(op, y, xType.shape.dim(x.rank() - 1), at), at), Located(z, at), Located(0, at))
             : mul(Located(y, at), Located(z, at));
  if (!sparse)
    logSum = mul(Located(reduce_sum(Located(y, at), -1), at), Located(logSum, at));
  return sub(Located(logSum, at), Located(reduce_sum(Located(weighted, at), -1), at));
}
Tensor softmax_cross_entropy(const Located &logits, const Located &labels) {
  return detail::crossEntropies("softmax_cross_entropy", logits, labels);
}

} // namespace wg
