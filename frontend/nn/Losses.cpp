// How far are predictions from what was wanted?
#include "wengert/nn/Losses.h"

#include "frontend/ops/Placed.h"
#include "frontend/optim/State.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace wg::nn {

using detail::choose;
using detail::meanOf;
using detail::Placed;
using detail::sumOf;
using detail::within;

/// The mean of what may be nothing: then 0.
static Tensor reduced(const Placed &losses, Reduction reduction) {
  if (reduction == Reduction::none)
    return losses;
  if (reduction == Reduction::sum)
    return sumOf(losses);
  const Shape &shape = detail::typeOf(losses.x, losses.at).shape;
  if (!shape.isStatic())
    return sumOf(losses) / detail::maximum(sumOf(ones_like(losses)), 1);
  return shape.numElements() == 0 ? sumOf(losses) : meanOf(losses);
}

/// Predictions and targets, as floats of one dtype, of which a literal takes that of the other; `what` the first are.
static std::pair<Placed, Placed> pairOf(const char *op, const Located &prediction, const Located &target,
                                        const std::string &what = "predictions") {
  const Where &at = prediction.where();
  detail::checkPairs(op, prediction, target);
  Tensor x = prediction.isLiteral() && !target.isLiteral()
                 ? detail::tensorOf(prediction, detail::floatOf(op, target).dtype())
                 : detail::floatOf(op, prediction);
  Tensor y = detail::tensorOf(target, x.dtype());
  if (y.dtype() != x.dtype())
    detail::raise({.kind = ErrorKind::type,
                   .op = op,
                   .message = "dtypes differ: the " + what + " are " + toString(TensorType{x.dtype(), x.shape()}) +
                              ", the targets " + toString(TensorType{y.dtype(), y.shape()}),
                   .remedy = std::string("cast the targets: cast(targets, ") + to_string(x.dtype()) + ")"},
                  at);
  return {Placed(x, at), Placed(y, at)};
}

static void checkSmoothing(const char *op, double smoothing, const Where &at) {
  within(op, "label_smoothing", smoothing, smoothing >= 0 && smoothing <= 1, "in [0, 1]", at);
}

// ---- Classes

Tensor cross_entropy(const Located &logits, const Located &labels) {
  return reduced({detail::crossEntropies("cross_entropy", logits, labels), logits.where()}, Reduction::mean);
}

/// Of integer labels, with z the log-probabilities less a number `shift` of each example:
/// (1 - s) w[y] (shift - z[y]) + s / n sum_c w[c] (shift - z[c]); of a distribution q, with q' = (1 - s) q + s / n:
/// sum_c w[c] q'[c] (shift - z[c]). A class that has no weight has no term, so its z may be -inf.
static Tensor classLosses(const char *op, const Placed &z, const Placed *shift, const Located &labels,
                          const CrossEntropyOptions &options) {
  const Where &at = z.at;
  const TensorType type = detail::typeOf(z.x, at);
  const double smoothing = options.label_smoothing;
  const auto classes = type.shape.dim(type.shape.rank() - 1);
  Placed y{detail::tensorOf(labels), at};
  const bool sparse = runtime::isInteger(y.x.dtype());
  if (options.ignore_index && !sparse)
    detail::raiseOp(op, "an ignore_index is given, and the labels are " + toString(detail::typeOf(y.x, at)),
                    "leave it out: a distribution of zeros has no loss", {}, at);
  std::optional<Placed> weights;
  if (options.class_weights.defined()) {
    weights.emplace(options.class_weights, at);
    const TensorType &given = detail::typeOf(weights->x, at), wanted{type.dtype, Shape{classes}};
    if (!(given == wanted))
      detail::raiseOp(op, "the class_weights are " + toString(given) + ", for logits " + toString(type),
                      "give one for each class: " + toString(wanted), {given, type}, at);
  }
  std::optional<Placed> counted; // bool[...]: examples that are there
  if (options.ignore_index) {
    counted.emplace(not_equal(y, Located(*options.ignore_index, at)), at);
    y = choose(*counted, y, 0);
  }
  auto weighted = [&](const Placed &x) { return weights ? x * *weights : x; };
  // The weight of each class in each example, and what of it the mean divides by.
  Placed share =
      sparse
          ? Placed(one_hot(Located(detail::classNumbers(op, "a label", y.x, classes, at), at), classes, type.dtype), at)
          : y;
  Placed size = sparse ? sumOf(weighted(share), -1) : ones_like(sumOf(share, -1));
  if (smoothing > 0)
    share = share * (1 - smoothing) + smoothing / static_cast<double>(classes);
  share = weighted(share);
  Placed masked = share == 0 && z == -std::numeric_limits<double>::infinity();
  Placed losses = -sumOf(share * choose(masked, 0, z), -1);
  if (shift)
    losses = losses + sumOf(share, -1) * *shift;
  if (counted) {
    losses = choose(*counted, losses, 0);
    size = choose(*counted, size, 0);
  }
  if (options.reduction != Reduction::mean)
    return reduced(losses, options.reduction);
  Placed whole = sumOf(size);
  return sumOf(losses) / choose(whole == 0, 1, whole);
}

/// The labels fit: an error of `op` otherwise, as of softmax_cross_entropy.
static void checkLabels(const char *op, const Placed &x, const Located &labels, const char *what) {
  const Where &at = x.at;
  const TensorType &xType = detail::typeOf(x.x, at);
  Tensor y = detail::tensorOf(labels);
  const TensorType &yType = detail::typeOf(y, at);
  if (xType.shape.rank() == 0 || xType.shape.dim(xType.shape.rank() - 1) == dynamic)
    detail::raiseOp(op, std::string("the ") + what + " " + toString(xType) + " have no last axis of static size",
                    std::string("give ") + what + "[..., classes]", {xType}, at);
  bool sparse = runtime::isInteger(yType.dtype);
  int rank = xType.shape.rank() - (sparse ? 1 : 0);
  bool fits = yType.shape.rank() == rank && (sparse || yType.dtype == xType.dtype);
  for (int axis = 0; fits && axis < rank; ++axis) {
    int64_t a = xType.shape.dim(axis), b = yType.shape.dim(axis);
    fits = a == b || a == dynamic || b == dynamic;
  }
  if (!fits)
    detail::raiseOp(op, std::string(what) + " are " + toString(xType) + ", labels " + toString(yType),
                    std::string("give integer labels of the shape of the ") + what +
                        " without its last axis, or a distribution of the same shape and dtype",
                    {xType, yType}, at);
}

Tensor cross_entropy(const Located &logits, const Located &labels, const CrossEntropyOptions &options) {
  const char *op = "cross_entropy";
  const Where &at = logits.where();
  checkSmoothing(op, options.label_smoothing, at);
  Placed x{detail::floatOf(op, logits), at};
  checkLabels(op, x, labels, "logits");
  Placed z = x - stop_gradient(Placed(reduce_max(x, -1, true), at));
  Placed logSum = log(sumOf(exp(z), -1));
  return classLosses(op, z, &logSum, labels, options);
}

Tensor nll(const Located &log_probabilities, const Located &labels, const CrossEntropyOptions &options) {
  const char *op = "nll";
  const Where &at = log_probabilities.where();
  checkSmoothing(op, options.label_smoothing, at);
  Placed x{detail::floatOf(op, log_probabilities), at};
  checkLabels(op, x, labels, "log-probabilities");
  return classLosses(op, x, nullptr, labels, options);
}

Tensor sigmoid_cross_entropy(const Located &logits, const Located &targets) {
  return sigmoid_cross_entropy(logits, targets, {});
}

/// (1 - s) y + s / 2
static Placed smoothed(const Placed &y, double smoothing) {
  return smoothing > 0 ? y * (1 - smoothing) + smoothing / 2 : y;
}
static void checkOptions(const char *op, const BinaryCrossEntropyOptions &options, const Where &at) {
  checkSmoothing(op, options.label_smoothing, at);
  within(op, "positive_weight", options.positive_weight,
         options.positive_weight >= 0 && std::isfinite(options.positive_weight), "finite and 0 or more", at);
}

/// -y log s(z) - (1 - y) log(1 - s(z)) = softplus(z) - y z = softplus(-z) + (1 - y) z: both are the same smooth
/// function, and each example takes the one whose terms do not cancel, so value and derivatives of a sure and right
/// answer are small numbers, not 0. With a weight w of the first term, and l = 1 + (w - 1) y:
/// l softplus(z) - w y z = l softplus(-z) + (1 - y) z.
Tensor sigmoid_cross_entropy(const Located &logits, const Located &targets, const BinaryCrossEntropyOptions &options) {
  const char *op = "sigmoid_cross_entropy";
  checkOptions(op, options, logits.where());
  auto [z, given] = pairOf(op, logits, targets, "logits");
  Placed y = smoothed(given, options.label_smoothing);
  const double w = options.positive_weight;
  Placed above = z > 0;
  Placed tail = softplus(choose(above, -z, z));
  if (w != 1)
    tail = (y * (w - 1) + 1) * tail;
  Placed slope = choose(above, 1 - y, w == 1 ? -y : y * -w);
  return reduced(tail + slope * z, options.reduction);
}

Tensor binary_cross_entropy(const Located &probabilities, const Located &targets,
                            const BinaryCrossEntropyOptions &options, double epsilon) {
  const char *op = "binary_cross_entropy";
  const Where &at = probabilities.where();
  checkOptions(op, options, at);
  within(op, "epsilon", epsilon, epsilon > 0 && epsilon < 0.5, "in (0, 0.5)", at);
  auto [given, target] = pairOf(op, probabilities, targets);
  Placed y = smoothed(target, options.label_smoothing);
  Placed p{clip(given, Located(epsilon, at), Located(1 - epsilon, at)), at};
  Placed positive = y * log(p);
  if (options.positive_weight != 1)
    positive = positive * options.positive_weight;
  return reduced(-(positive + (1 - y) * log1p(-p)), options.reduction);
}

Tensor hinge(const Located &scores, const Located &targets, Reduction reduction) {
  auto [s, y] = pairOf("hinge", scores, targets);
  return reduced(relu(1 - y * s), reduction);
}
Tensor squared_hinge(const Located &scores, const Located &targets, Reduction reduction) {
  auto [s, y] = pairOf("squared_hinge", scores, targets);
  return reduced(square(relu(1 - y * s)), reduction);
}

// ---- Numbers

Tensor mean_absolute_error(const Located &prediction, const Located &target, Reduction reduction) {
  auto [x, y] = pairOf("mean_absolute_error", prediction, target);
  return reduced(abs(x - y), reduction);
}

Tensor huber(const Located &prediction, const Located &target, double delta, Reduction reduction) {
  within("huber", "delta", delta, delta > 0 && std::isfinite(delta), "finite and more than 0", prediction.where());
  auto [x, y] = pairOf("huber", prediction, target);
  Placed d = x - y, size = abs(d);
  // The square of a large distance, which is not taken, may overflow.
  Placed near = size <= delta, small = choose(near, d, 0);
  return reduced(choose(near, small * small * 0.5, (size - delta / 2) * delta), reduction);
}

/// log cosh d = log(1 + (e^d - 1)^2 / (2 e^d)) for |d| <= 1, where the other form would cancel, and
/// d + softplus(-2 d) - log 2 for d > 0 beyond; cosh is even.
Tensor log_cosh(const Located &prediction, const Located &target, Reduction reduction) {
  auto [x, y] = pairOf("log_cosh", prediction, target);
  Placed d = x - y, near = abs(d) <= 1, small = choose(near, d, 0), size = abs(d);
  Placed e = expm1(small);
  return reduced(choose(near, log1p(e * e / (2 * exp(small))), size + softplus(-2 * size) - std::numbers::ln2),
                 reduction);
}

Tensor poisson(const Located &rate, const Located &target, bool log_rate, Reduction reduction) {
  auto [x, y] = pairOf("poisson", rate, target);
  if (log_rate)
    return reduced(exp(x) - y * x, reduction);
  Placed none = y == 0;
  return reduced(x - choose(none, 0, y * log(choose(none, 1, x))), reduction);
}

// ---- Distributions and directions

/// An error of `op` unless there is a last axis.
static void checkVectors(const char *op, const Placed &x) {
  const TensorType &type = detail::typeOf(x.x, x.at);
  if (type.shape.rank() == 0)
    detail::raiseOp(op, "the prediction is the scalar " + toString(type), "give vectors along a last axis", {type},
                    x.at);
}

Tensor kl_divergence(const Located &prediction, const Located &target, Reduction reduction) {
  auto [q, p] = pairOf("kl_divergence", prediction, target);
  checkVectors("kl_divergence", q);
  Placed none = p == 0;
  return reduced(sumOf(choose(none, 0, p * (log(choose(none, 1, p)) - log(choose(none, 1, q)))), -1), reduction);
}

Tensor cosine_similarity(const Located &a, const Located &b, int64_t axis) {
  const Where &at = a.where();
  Placed x{detail::floatOf("cosine_similarity", a), at}, y{detail::tensorOf(b, x.x.dtype()), at};
  Placed products = x * y;
  detail::placeOf("cosine_similarity", axis, products.x.rank(), at);
  // Lengths along the axis that the products have: an operand of fewer axes has it by broadcasting.
  auto squares = [&](const Placed &v) { return sumOf(square(v) * ones_like(products), axis); };
  Placed xx = squares(x), yy = squares(y), none = Placed(logical_or(xx == 0, yy == 0), at);
  return choose(none, 0, sumOf(products, axis) * rsqrt(choose(none, 1, xx)) * rsqrt(choose(none, 1, yy)));
}

Tensor cosine_similarity_loss(const Located &prediction, const Located &target, Reduction reduction) {
  auto [x, y] = pairOf("cosine_similarity_loss", prediction, target);
  checkVectors("cosine_similarity_loss", x);
  return reduced(1 - Placed(cosine_similarity(x, y, -1), x.at), reduction);
}

} // namespace wg::nn
