// Layers of images and of rows of a table, and shapes between layers.
#pragma once

#include <wengert/Convolution.h>
#include <wengert/nn/Module.h>

namespace wg::nn {

struct Conv2dOptions {
  std::array<int64_t, 2> strides = {1, 1}, dilations = {1, 1}; ///< of rows and of columns
  int64_t groups = 1;
  Padding padding = Padding::valid;
  bool bias = true;
  DType dtype = f32;
  Initializer weight = glorot_uniform();
  Initializer initial_bias = zeros();
};

/// activation(wg::conv2d(x, W) + b), with W [rows, columns, in / groups, out] named `weight` and b [out] named `bias`.
/// Errors: groups that do not divide `in` and `out`; another shape or dtype than an initializer was asked for.
/// Shapes: x float[N, H, W, in] -> float[N, P, Q, out].
class WENGERT_API Conv2d : public Module {
public:
  Conv2d(int64_t in, int64_t out, std::array<int64_t, 2> window, Activation activation = {}, Conv2dOptions options = {},
         Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
  const Variable &weight() const { return weight_; }
  const Variable &bias() const { return bias_; }

private:
  wg::Conv2dOptions options_;
  Variable weight_, bias_;
  Activation activation_;
};

struct EmbeddingOptions {
  DType dtype = f32;
  Initializer weight = uniform(-0.05, 0.05); ///< as tf.keras.layers.Embedding
};

/// Rows of a table [count, features] named `weight`, one for each number: the gradient by the table is these rows
/// (`Grad::is_sparse`). Errors: a number that is no row's.
/// Shapes: numbers integer[...] -> float[..., features].
class WENGERT_API Embedding : public Module {
public:
  Embedding(int64_t count, int64_t features, EmbeddingOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &numbers, Where where = Where::current()) const;
  const Variable &weight() const { return weight_; }

private:
  Variable weight_;
};

/// All axes but the first as one. Shapes: x [N, ...] -> [N, size]; [N] -> [N, 1].
class WENGERT_API Flatten : public Module {
public:
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
};

} // namespace wg::nn
