// Which numbers have the mean 0 and the variance 1?
#include "wengert/nn/Normalization.h"

#include "frontend/nn/Layer.h"
#include "frontend/optim/State.h"
#include "frontend/staging/Shards.h"

#include <cmath>
#include <numeric>

namespace wg::nn {

using detail::meanOf;
using detail::Placed;
using detail::within;

static std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(0, end - begin)));
  std::iota(axes.begin(), axes.end(), begin);
  return axes;
}

static void checkEpsilon(const char *op, double epsilon, const Where &at) {
  within(op, "epsilon", epsilon, epsilon >= 0 && std::isfinite(epsilon), "finite and 0 or more", at);
}

/// y weight + bias, both of the last `axes` axes of y.
static Tensor affine(const char *op, Placed y, const NormOptions &options, int axes) {
  const Shape shape = detail::typeOf(y.x, y.at).shape; // y is another below
  auto fitted = [&](const char *name, const Tensor &given) {
    const TensorType &type = detail::typeOf(given, y.at);
    bool fits = type.dtype == y.x.dtype() && type.shape.rank() == axes;
    for (int axis = 1; fits && axis <= axes; ++axis) {
      int64_t a = shape.dim(shape.rank() - axis), b = type.shape.dim(axes - axis);
      fits = a == b || a == dynamic || b == dynamic;
    }
    if (!fits)
      detail::raiseOp(op,
                      std::string("the ") + name + " is " + toString(type) + ", what it is for " +
                          toString(detail::typeOf(y.x, y.at)),
                      "give it the dtype and the last " + std::to_string(axes) + " of the sizes", {type}, y.at);
    return Placed(given, y.at);
  };
  if (options.weight.defined())
    y = y * fitted("weight", options.weight);
  if (options.bias.defined())
    y = y + fitted("bias", options.bias);
  return y;
}

/// x less its mean over axes, over its deviation.
static Placed normalized(const Placed &x, const std::vector<int64_t> &axes, double epsilon, Tensor *mean = nullptr,
                         Tensor *variance = nullptr) {
  Placed m = meanOf(x, axes, true), d = x - m, v = meanOf(square(d), axes, true);
  if (mean)
    *mean = m, *variance = v;
  return d * rsqrt(v + epsilon);
}

/// The places of the last `axes` axes, which there are.
static std::vector<int64_t> lastAxes(const char *op, const Placed &x, int64_t axes) {
  const TensorType &type = detail::typeOf(x.x, x.at);
  if (axes < 1 || axes > type.shape.rank())
    detail::raiseOp(op, "the last " + std::to_string(axes) + " axes of " + toString(type),
                    type.shape.rank() == 0 ? "give x[..., features]"
                                           : "give a count in [1, " + std::to_string(type.shape.rank()) + "]",
                    {type}, x.at);
  return range(type.shape.rank() - axes, type.shape.rank());
}

Tensor layer_norm(const Located &x, const NormOptions &options, int64_t axes) {
  const char *op = "layer_norm";
  checkEpsilon(op, options.epsilon, x.where());
  Placed y{detail::floatOf(op, x), x.where()};
  return affine(op, normalized(y, lastAxes(op, y, axes), options.epsilon), options, static_cast<int>(axes));
}

Tensor rms_norm(const Located &x, const NormOptions &options, int64_t axes) {
  const char *op = "rms_norm";
  checkEpsilon(op, options.epsilon, x.where());
  Placed y{detail::floatOf(op, x), x.where()};
  Placed scale = rsqrt(meanOf(square(y), lastAxes(op, y, axes), true) + options.epsilon);
  return affine(op, y * scale, options, static_cast<int>(axes));
}

Tensor group_norm(const Located &x, int64_t groups, const NormOptions &options) {
  const char *op = "group_norm";
  const Where &at = x.where();
  checkEpsilon(op, options.epsilon, at);
  Placed y{detail::floatOf(op, x), at};
  const int rank = y.x.rank();
  const int64_t channels = detail::lastSize(op, y.x, at);
  if (rank < 2 || groups < 1 || channels % groups != 0)
    detail::raiseOp(op, std::to_string(groups) + " groups of the channels of " + toString(detail::typeOf(y.x, at)),
                    "give x[N, ..., channels], and a number that divides the channels", {detail::typeOf(y.x, at)}, at);
  Placed parts{detail::splitLast(y.x, groups, at), at};
  std::vector<int64_t> axes = range(1, rank - 1);
  axes.push_back(rank);
  Placed z{detail::joinLast(normalized(parts, axes, options.epsilon), at), at};
  return affine(op, z, options, 1);
}

Tensor instance_norm(const Located &x, const NormOptions &options) {
  const char *op = "instance_norm";
  checkEpsilon(op, options.epsilon, x.where());
  Placed y{detail::floatOf(op, x), x.where()};
  if (y.x.rank() < 3)
    detail::raiseOp(op, toString(detail::typeOf(y.x, y.at)) + " has no axis between the first and the last",
                    "give x[N, ..., channels]", {detail::typeOf(y.x, y.at)}, y.at);
  return affine(op, normalized(y, range(1, y.x.rank() - 1), options.epsilon), options, 1);
}

BatchNormResult batch_norm(const Located &x, const NormOptions &options) {
  const char *op = "batch_norm";
  const Where &at = x.where();
  checkEpsilon(op, options.epsilon, at);
  Placed y{detail::floatOf(op, x), at};
  int64_t channels = detail::lastSize(op, y.x, at);
  Tensor mean, variance;
  Placed z = normalized(y, range(0, y.x.rank() - 1), options.epsilon, &mean, &variance);
  return {affine(op, z, options, 1), reshape(Located(mean, at), {channels}),
          reshape(Located(variance, at), {channels})};
}

Tensor batch_norm(const Located &x, const Located &mean, const Located &variance, const NormOptions &options) {
  const char *op = "batch_norm";
  const Where &at = x.where();
  checkEpsilon(op, options.epsilon, at);
  Placed y{detail::floatOf(op, x), at};
  detail::lastSize(op, y.x, at);
  Placed m{detail::tensorOf(mean, y.x.dtype()), at}, v{detail::tensorOf(variance, y.x.dtype()), at};
  return affine(op, (y - m) * rsqrt(v + options.epsilon), options, 1);
}

// ---- Layers

NormLayer::NormLayer(const char *op, const Shape &features, const NormLayerOptions &options, const Where &where)
    : op_(op), features_(features), options_(options) {
  if (features.rank() == 0)
    detail::raiseOp(op, "there are no features", "give their sizes", {}, where);
  for (int axis = 0; axis < features.rank(); ++axis)
    detail::checkSizesOfLayer(op, {{features.rank() == 1 ? "channels" : "features", features.dim(axis)}}, where);
  checkEpsilon(op, options.epsilon, where);
  if (options.weight)
    weight_ = add("weight", wg::ones(features, options.dtype, where), true, where);
  if (options.bias)
    bias_ = add("bias", wg::zeros(features, options.dtype, where), true, where);
}

NormOptions NormLayer::optionsFor(const Tensor &x, int rank, const Where &where) const {
  detail::checkInput(op_, x, features_, options_.dtype, rank, where);
  auto valueOf = [&](const Variable &variable) { return variable.defined() ? variable.value(where) : Tensor(); };
  return {.weight = valueOf(weight_), .bias = valueOf(bias_), .epsilon = options_.epsilon};
}

LayerNorm::LayerNorm(const Shape &features, NormLayerOptions options, Where where)
    : NormLayer("layer_norm", features, options, where) {}
LayerNorm::LayerNorm(int64_t features, NormLayerOptions options, Where where)
    : LayerNorm(Shape{features}, options, where) {}
Tensor LayerNorm::operator()(const Tensor &x, Where where) const {
  return layer_norm(Located(x, where), optionsFor(x, 1, where), features_.rank());
}

RMSNorm::RMSNorm(const Shape &features, NormLayerOptions options, Where where)
    : NormLayer("rms_norm", features, options, where) {}
RMSNorm::RMSNorm(int64_t features, NormLayerOptions options, Where where) : RMSNorm(Shape{features}, options, where) {}
Tensor RMSNorm::operator()(const Tensor &x, Where where) const {
  return rms_norm(Located(x, where), optionsFor(x, 1, where), features_.rank());
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, NormLayerOptions options, Where where)
    : NormLayer("group_norm", {channels}, options, where), groups_(groups) {
  if (groups < 1 || channels % groups != 0)
    detail::raiseOp("group_norm",
                    std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels",
                    "give a number that does", {}, where);
}
Tensor GroupNorm::operator()(const Tensor &x, Where where) const {
  return group_norm(Located(x, where), groups_, optionsFor(x, 2, where));
}

InstanceNorm::InstanceNorm(int64_t channels, NormLayerOptions options, Where where)
    : NormLayer("instance_norm", {channels}, options, where) {}
Tensor InstanceNorm::operator()(const Tensor &x, Where where) const {
  return instance_norm(Located(x, where), optionsFor(x, 3, where));
}

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions options, Where where)
    : NormLayer("batch_norm", {channels},
                {.weight = options.weight, .bias = options.bias, .epsilon = options.epsilon, .dtype = options.dtype},
                where),
      momentum_(within("batch_norm", "momentum", options.momentum, options.momentum >= 0 && options.momentum <= 1,
                       "in [0, 1]", where)),
      mean_(add("running_mean", wg::zeros({channels}, options.dtype, where), false, where)),
      variance_(add("running_variance", wg::ones({channels}, options.dtype, where), false, where)) {}

Tensor BatchNorm::operator()(const Tensor &x, bool training, Where where) const {
  NormOptions options = optionsFor(x, 1, where);
  if (!training)
    return batch_norm(Located(x, where), Located(mean_, where), Located(variance_, where), options);
  BatchNormResult result;
  auto ofAll = [&](const Tensor &of) { return detail::overShards(of, dist::Reduction::mean, where); };
  if (detail::normalizesOverShards()) {
    Placed y{x, where};
    std::vector<int64_t> axes = range(0, x.rank() - 1);
    Placed mean{ofAll(meanOf(y, axes, false)), where};
    Placed variance{ofAll(meanOf(square(y - mean), axes, false)), where};
    result = {batch_norm(y, mean, variance, options), mean, variance};
  } else {
    result = batch_norm(Located(x, where), options);
    if (detail::inShard()) // whose shards move the running ones together
      result = {result.y, ofAll(result.mean), ofAll(result.variance)};
  }
  auto moved = [&](const Variable &running, const Tensor &batch) {
    Placed s{running.value(where), where};
    return Tensor(s + (Placed(batch, where) - s) * (1 - momentum_));
  };
  detail::assignAll({{mean_, moved(mean_, result.mean)}, {variance_, moved(variance_, result.variance)}}, where);
  return result.y;
}

} // namespace wg::nn
