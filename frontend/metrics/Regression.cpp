// How far are numbers from what was wanted?
#include "wengert/metrics/Regression.h"

#include "frontend/ops/Placed.h"
#include "frontend/optim/State.h"

#include <cmath>

namespace wg::metrics {

using detail::Placed;
using detail::sumOf;

/// Predictions and targets in f64; an error unless they have one shape.
static std::pair<Placed, Placed> pairOf(const char *op, const Located &predictions, const Located &targets) {
  const Where &at = predictions.where();
  Tensor x = detail::tensorOf(predictions), y = detail::tensorOf(targets);
  const TensorType &xType = detail::typeOf(x, at), &yType = detail::typeOf(y, at);
  if (!detail::sameSizes(xType.shape, yType.shape))
    detail::raiseOp(op, "the predictions are " + toString(xType) + ", the targets " + toString(yType),
                    "give both the same shape", {xType, yType}, at);
  return {cast(Placed(x, at), f64), cast(Placed(y, at), f64)};
}

MeanAbsoluteError::MeanAbsoluteError(std::string name, Where where)
    : Metric(std::move(name), where), sum_(add("sum", Tensor(0.0))), total_(add("total", Tensor(0.0))) {}
void MeanAbsoluteError::update(const Located &predictions, const Located &targets) const {
  auto [x, y] = pairOf("mean_absolute_error", predictions, targets);
  count({sumOf(abs(x - y)), sumOf(ones_like(x))}, predictions.where());
}

MeanSquaredError::MeanSquaredError(std::string name, Where where)
    : Metric(std::move(name), where), sum_(add("sum", Tensor(0.0))), total_(add("total", Tensor(0.0))) {}
void MeanSquaredError::update(const Located &predictions, const Located &targets) const {
  auto [x, y] = pairOf("mean_squared_error", predictions, targets);
  count({sumOf(square(x - y)), sumOf(ones_like(x))}, predictions.where());
}
double MeanSquaredError::root(Where where) const { return std::sqrt(result(where)); }

R2::R2(std::string name, Where where)
    : Metric(std::move(name), where), errors_(add("errors", Tensor(0.0))), squares_(add("squares", Tensor(0.0))),
      mean_(add("mean", Tensor(0.0))), total_(add("total", Tensor(0.0))) {}

/// With n and m elements, and d the difference of the means: the mean moves by d m / (n + m), and the sum of squares
/// grows by the batch's own and d^2 n m / (n + m).
void R2::update(const Located &predictions, const Located &targets) const {
  const Where &at = predictions.where();
  auto [x, y] = pairOf("r2", predictions, targets);
  Placed m = sumOf(ones_like(y)), n{total_.value(at), at}, some = detail::maximum(m, 1.0), all = n + some;
  Placed own = sumOf(y) / some, d = detail::choose(m == 0, 0, own - Placed(mean_.value(at), at));
  count({sumOf(square(x - y)), sumOf(square(y - own)) + d * d * n * (m / all), d * (m / all), m}, at);
}
double R2::result(Where where) const {
  double errors = ratio(errors_, total_, where), squares = ratio(squares_, total_, where);
  return squares == 0 ? (errors == 0 ? 1 : 0) : 1 - errors / squares;
}

Perplexity::Perplexity(std::string name, Where where)
    : Metric(std::move(name), where), total_(add("total", Tensor(0.0))), weight_(add("weight", Tensor(0.0))) {}
void Perplexity::update(const Located &losses, double weight) const {
  const Where &at = losses.where();
  detail::within("perplexity", "weight", weight, weight > 0 && std::isfinite(weight), "finite and more than 0", at);
  Placed x = cast(Placed(detail::tensorOf(losses), at), f64);
  count({sumOf(x) * weight, sumOf(ones_like(x)) * weight}, at);
}
double Perplexity::result(Where where) const { return std::exp(ratio(total_, weight_, where)); }

} // namespace wg::metrics
