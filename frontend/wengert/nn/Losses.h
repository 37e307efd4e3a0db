// Losses: how far predictions are from what was wanted. Each is computed for every element or every example, and
// reduced to a scalar unless `Reduction::none` says otherwise. Gradients go to predictions and to targets alike.
//
// What is compared element by element has equal shapes, unless one is a scalar; anything else is an error. A mean of
// nothing (no elements; every label ignored) is 0, and so is its gradient.
#pragma once

#include <wengert/Ops.h>

#include <optional>

namespace wg::nn {

/// What becomes of the losses of the elements or examples.
enum class Reduction {
  mean, ///< the mean; of nothing 0
  sum,
  none, ///< nothing: they are the result
};

// ---- Classes

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  /// The distribution q that is wanted becomes (1 - s) q + s / classes (Szegedy et al. 2016, section 7). In [0, 1].
  double label_smoothing = 0;
  /// Examples with this integer label count as if they were not there: loss 0, no part of the mean.
  std::optional<int64_t> ignore_index = {};
  /// A weight for each class, float[classes], or none. The mean divides by the sum of the weights of the labels where
  /// these are integers, as torch.nn.functional.cross_entropy does, and by the number of examples otherwise.
  Tensor class_weights = {};
};

/// Mean of softmax_cross_entropy. Shapes: logits float[n, classes], labels int[n] -> float[].
WENGERT_API Tensor cross_entropy(const Located &logits, const Located &labels);
/// -sum over classes of w[c] q[c] log softmax(logits)[c], with q as `label_smoothing` says and the weights w. Integer
/// labels[...] name the class; float labels[..., classes] give its distribution. Errors: a label that names no class;
/// an ignore_index, and labels that are a distribution.
/// Shapes: logits float[..., classes] -> float[], or float[...] without a reduction.
WENGERT_API Tensor cross_entropy(const Located &logits, const Located &labels, const CrossEntropyOptions &options);
/// The same of log-probabilities, as log_softmax gives them: -w[label] log_probabilities[label]. For classes that are
/// never the label, and have no weight by smoothing, -inf is as good as any number.
/// Shapes: log_probabilities float[..., classes] -> float[], or float[...] without a reduction.
WENGERT_API Tensor nll(const Located &log_probabilities, const Located &labels,
                       const CrossEntropyOptions &options = {});

struct BinaryCrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  double positive_weight = 1; ///< times the part of the loss that the target 1 has; finite and 0 or more
  double label_smoothing = 0; ///< a target y becomes (1 - s) y + s / 2; in [0, 1]
};

/// Mean of -y log s(z) - (1 - y) log(1 - s(z)) for logits z and targets y in [0, 1]; stable on both sides.
/// Shapes: equal, or one is a scalar; anything else is an error.
WENGERT_API Tensor sigmoid_cross_entropy(const Located &logits, const Located &targets);
/// The same with options.
WENGERT_API Tensor sigmoid_cross_entropy(const Located &logits, const Located &targets,
                                         const BinaryCrossEntropyOptions &options);
/// -y log p - (1 - y) log(1 - p) for probabilities p and targets y in [0, 1]. A probability counts as one of
/// [epsilon, 1 - epsilon], as in tf.keras.losses.BinaryCrossentropy: so the loss of a sure and wrong answer is
/// -log(epsilon), 16.1, and has no gradient. Where there are logits, sigmoid_cross_entropy has neither bound.
/// Shapes: equal, or one is a scalar. Errors: an epsilon outside of (0, 0.5).
WENGERT_API Tensor binary_cross_entropy(const Located &probabilities, const Located &targets,
                                        const BinaryCrossEntropyOptions &options = {}, double epsilon = 1e-7);
/// max(0, 1 - y s) of scores s and targets y, which are -1 and 1 (2 y - 1 of those that are 0 and 1); slope 0 at
/// the kink.
WENGERT_API Tensor hinge(const Located &scores, const Located &targets, Reduction reduction = Reduction::mean);
/// max(0, 1 - y s)^2
WENGERT_API Tensor squared_hinge(const Located &scores, const Located &targets, Reduction reduction = Reduction::mean);

// ---- Numbers

/// |prediction - target|, with slope 0 where they are equal.
WENGERT_API Tensor mean_absolute_error(const Located &prediction, const Located &target,
                                       Reduction reduction = Reduction::mean);
/// With d = prediction - target: d^2 / 2 where |d| <= delta, and delta (|d| - delta / 2) elsewhere (Huber 1964).
/// Errors: a delta that is not finite and more than 0.
WENGERT_API Tensor huber(const Located &prediction, const Located &target, double delta = 1,
                         Reduction reduction = Reduction::mean);
/// log(cosh(prediction - target)); overflows nowhere, and is accurate where both are near.
WENGERT_API Tensor log_cosh(const Located &prediction, const Located &target, Reduction reduction = Reduction::mean);
/// rate - target log(rate): the negative logarithm of Poisson's probability of the target, up to a term that does not
/// depend on the rate. 0 log 0 is 0. With `log_rate`, exp(x) - target x of x = log(rate).
WENGERT_API Tensor poisson(const Located &rate, const Located &target, bool log_rate = false,
                           Reduction reduction = Reduction::mean);

// ---- Distributions and directions: one loss for each vector along the last axis

/// sum of p log(p / q), the divergence of the distribution q that is predicted from the target p (Kullback and Leibler
/// 1951). A term with p = 0 is 0, and so are its slopes; it is infinite where q = 0 and p is not.
/// Shapes: both float[..., classes] -> float[], or float[...] without a reduction.
WENGERT_API Tensor kl_divergence(const Located &prediction, const Located &target,
                                 Reduction reduction = Reduction::mean);
/// a . b / (|a| |b|) along an axis, and 0, with slope 0, where one of them is the zero vector.
/// Shapes: a, b float[...] broadcast -> float[... without axis].
WENGERT_API Tensor cosine_similarity(const Located &a, const Located &b, int64_t axis = -1);
/// 1 - cosine_similarity(prediction, target), in [0, 2].
WENGERT_API Tensor cosine_similarity_loss(const Located &prediction, const Located &target,
                                          Reduction reduction = Reduction::mean);

} // namespace wg::nn
