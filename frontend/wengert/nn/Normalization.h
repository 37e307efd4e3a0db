// Normalisation: numbers less their mean, over their standard deviation. Of what, is the difference between these.
//
// Channels and features are the last axis. A weight and a bias, if they are given, multiply what is normalised and are
// added to it. The variance is the mean of the squared distances from the mean; epsilon, 0 or more, is added to it, so
// that what is constant becomes 0.
#pragma once

#include <wengert/Tree.h>
#include <wengert/nn/Module.h>

namespace wg::nn {

struct NormOptions {
  Tensor weight = {}, bias = {}; ///< of the dtype and the last axes of x; undefined: none
  double epsilon = 1e-5;
};

/// (x - mean) / sqrt(variance + epsilon) weight + bias, with mean and variance over the last `axes` axes (Ba, Kiros and
/// Hinton 2016). The weight has the shape of these axes. Errors: fewer axes than that, or less than 1.
/// Shapes: x float[..., features] -> float[..., features].
WENGERT_API Tensor layer_norm(const Located &x, const NormOptions &options = {}, int64_t axes = 1);
/// x / sqrt(mean(x^2) + epsilon) weight + bias, the mean being over the last `axes` axes (Zhang and Sennrich 2019).
WENGERT_API Tensor rms_norm(const Located &x, const NormOptions &options = {}, int64_t axes = 1);
/// As layer_norm over the axes between the first and the last, and over the channels of each of `groups` groups (Wu and
/// He 2018). The weight is float[channels]. Errors: groups that do not divide the channels.
/// Shapes: x float[N, ..., channels] -> float[N, ..., channels].
WENGERT_API Tensor group_norm(const Located &x, int64_t groups, const NormOptions &options = {});
/// The same with a group for each channel (Ulyanov, Vedaldi and Lempitsky 2016). Errors: no axis between the first and
/// the last.
WENGERT_API Tensor instance_norm(const Located &x, const NormOptions &options = {});

struct BatchNormResult {
  Tensor y;              ///< as x
  Tensor mean, variance; ///< of each channel: float[channels]
  WENGERT_FIELDS(y, mean, variance)
};
/// For training: with mean and variance over all axes but the last, which are returned and through which the gradient
/// goes (Ioffe and Szegedy 2015, algorithm 1). Shapes: x float[..., channels].
WENGERT_API BatchNormResult batch_norm(const Located &x, const NormOptions &options = {});
/// With a mean and a variance float[channels] that are given (algorithm 2, line 11, of running ones).
WENGERT_API Tensor batch_norm(const Located &x, const Located &mean, const Located &variance,
                              const NormOptions &options = {});

// ---- Layers: a variable `weight`, ones at first, and a variable `bias`, zeros

struct NormLayerOptions {
  bool weight = true, bias = true;
  double epsilon = 1e-5;
  DType dtype = f32;
};

/// What these layers have in common.
class WENGERT_API NormLayer : public Module {
protected:
  NormLayer(const char *op, const Shape &features, const NormLayerOptions &options, const Where &where);
  /// x fits, or an error; and what normalises it.
  NormOptions optionsFor(const Tensor &x, int rank, const Where &where) const;
  const char *op_;
  Shape features_;

private:
  NormLayerOptions options_;
  Variable weight_, bias_;
};

/// layer_norm over the axes of `features`, the last ones of x: `LayerNorm(64)`, `LayerNorm({8, 8, 3})`.
class WENGERT_API LayerNorm : public NormLayer {
public:
  explicit LayerNorm(const Shape &features, NormLayerOptions options = {}, Where where = Where::current());
  explicit LayerNorm(int64_t features, NormLayerOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
};

/// rms_norm over the axes of `features`. Without a bias, unless the options say so.
class WENGERT_API RMSNorm : public NormLayer {
public:
  explicit RMSNorm(const Shape &features, NormLayerOptions options = {.bias = false}, Where where = Where::current());
  explicit RMSNorm(int64_t features, NormLayerOptions options = {.bias = false}, Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
};

/// group_norm. Errors: groups that do not divide the channels.
class WENGERT_API GroupNorm : public NormLayer {
public:
  GroupNorm(int64_t groups, int64_t channels, NormLayerOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;

private:
  int64_t groups_;
};

/// instance_norm.
class WENGERT_API InstanceNorm : public NormLayer {
public:
  explicit InstanceNorm(int64_t channels, NormLayerOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
};

struct BatchNormOptions {
  bool weight = true, bias = true;
  double momentum = 0.99; ///< of the running statistics; in [0, 1]
  double epsilon = 1e-3;
  DType dtype = f32;
};

/// While training, batch_norm of the batch, whose statistics move the running ones, which are variables that are not
/// trained, `running_mean` (0 at first) and `running_variance` (1): s becomes s + (1 - momentum) (batch's - s), as in
/// tf.keras.layers.BatchNormalization. The variance is that of the batch, without Bessel's correction. Otherwise,
/// batch_norm by the running statistics, which stay as they are. Lanes of vmap have statistics of their own, which a
/// variable that they share cannot take: train over the batch axis, or give each lane its variables. In a data parallel
/// step each shard has its own, whose mean moves the running ones; with `sync_batch_norm` they are of all shards.
/// Shapes: x float[..., channels] -> float[..., channels].
class WENGERT_API BatchNorm : public NormLayer {
public:
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &x, bool training, Where where = Where::current()) const;
  const Variable &running_mean() const { return mean_; }
  const Variable &running_variance() const { return variance_; }

private:
  double momentum_;
  Variable mean_, variance_;
};

} // namespace wg::nn
