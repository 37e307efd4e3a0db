// The minimum of a smooth function: not a step for each batch, but iterations until nothing is left to gain.
#pragma once

#include <wengert/Transforms.h>
#include <wengert/optim/Parameters.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace wg::optim {

struct LbfgsOptions {
  int64_t max_iterations = 200;
  int64_t max_evaluations = 1000;   ///< of the function with its gradient
  double gradient_tolerance = 1e-6; ///< no element of the gradient is larger at the end
  double value_tolerance = 0;       ///< end where an iteration lowers the value by no more than this times it
  int64_t history = 10;             ///< pairs of a step and the change of the gradient that are kept
  double c1 = 1e-4, c2 = 0.9;       ///< of Wolfe's conditions: 0 < c1 < c2 < 1
};

struct LbfgsResult {
  double value = 0;    ///< at the point that was found
  double gradient = 0; ///< the largest element of its gradient
  int64_t iterations = 0, evaluations = 0;
  bool converged = false;  ///< a tolerance was met
  std::string reason = {}; ///< why it ended
};

/// What the method has learned of the function's curvature, in variables: with it a minimum is sought in parts, and a
/// part that was interrupted is done again in another process, with the bits that one search has.
///
///     wg::optim::LbfgsHistory history(model);
///     while (!wg::optim::minimize_lbfgs(loss, model, history, {.max_iterations = 10}).converged)
///       wg::save("search.wg", {{"model", model}, {"history", history}});
class WENGERT_API LbfgsHistory {
public:
  /// For so many pairs of a step and a change of the gradient. Errors: less than one pair; a variable that is no float.
  explicit LbfgsHistory(const Parameters &parameters, int64_t pairs = 10, Where where = Where::current());
  /// `steps` and `changes`, f64[pairs, elements], of which the first `count`, i64[], are there; as save_weights and
  /// load_weights take them.
  std::vector<nn::Module::Named> named_state() const;

  /// The pairs, the oldest first.
  using Pairs = std::vector<std::pair<std::vector<double>, std::vector<double>>>;
  Pairs pairs(Where where = Where::current()) const;
  /// The last of these are kept. Errors: another number of elements.
  void keep(const Pairs &pairs, Where where = Where::current()) const;
  int64_t capacity() const { return steps_.shape().dim(0); }

private:
  Variable steps_, changes_, count_;
};

} // namespace wg::optim

namespace wg::detail {
/// Value and gradient at a point, the tensors of which have the dtypes and shapes of the first.
using Objective = std::function<std::pair<Tensor, std::vector<Grad>>(const std::vector<Tensor> &)>;
/// `x` becomes the point that was found.
WENGERT_API optim::LbfgsResult minimizeLbfgs(const Objective &f, std::vector<Tensor> &x,
                                             const optim::LbfgsOptions &options, const Where &where);
/// Calls `loss` and returns it with its gradients by the variables, which have these values; in the end, those found.
/// Without a history it begins with none.
WENGERT_API optim::LbfgsResult minimizeLbfgs(const std::function<Tensor()> &loss, const optim::Parameters &parameters,
                                             const optim::LbfgsHistory *history, const optim::LbfgsOptions &options,
                                             const Where &where);
} // namespace wg::detail

namespace wg::optim {

/// A minimum of f near x, which is a tensor or a structure of tensors, and how it was found: f(x) is a scalar. By the
/// limited-memory method of Broyden, Fletcher, Goldfarb and Shanno with a line search for the strong Wolfe conditions
/// (Nocedal and Wright 2006, algorithms 7.4, 7.5, 3.5 and 3.6; the first guess of the inverse Hessian: equation 7.20).
/// C++ code calls f and its gradient, so f may be a wg::Function: then both are compiled, once. Everything between is
/// done in f64, whatever the dtypes. A value that is not finite counts as too high.
///
///     auto rosenbrock = wg::function("f", [](const Tensor &x) { ... });
///     auto [x, result] = wg::optim::minimize_lbfgs(rosenbrock, Tensor{-1.2, 1.0});
///
/// Errors: inside of a traced function; f's value is no scalar, or not finite at the beginning; no gradient; tensors
/// that are no floats; options out of their ranges.
template <class F, class X>
  requires(!std::invocable<F &>)
std::pair<X, LbfgsResult> minimize_lbfgs(F f, X x, const LbfgsOptions &options = {}, Where where = Where::current()) {
  auto both = value_and_grad(std::move(f));
  std::vector<Tensor> leaves = detail::tensorsOf(x);
  auto put = [&](const std::vector<Tensor> &values) {
    size_t leaf = 0;
    x = detail::mapTensors(std::move(x), [&](const Tensor &) { return values[leaf++]; });
  };
  LbfgsResult result = detail::minimizeLbfgs(
      [&](const std::vector<Tensor> &at) {
        put(at);
        auto [value, gradient] = both(x);
        return std::pair<Tensor, std::vector<Grad>>(std::move(value), detail::gradientsIn(gradient));
      },
      leaves, options, where);
  put(leaves);
  return {std::move(x), std::move(result)};
}
/// The same by variables, a model's trainable ones for example: `loss()` computes the value from them, as it does under
/// a tape. They have the point that was found in the end, and after an error the values that they had before. What
/// else `loss` assigns, it assigns at each evaluation; so a model with running statistics is called as in evaluation.
///
///     wg::optim::minimize_lbfgs([&] { return wg::nn::cross_entropy(model(x), y); }, model);
template <class F>
  requires std::invocable<F &>
LbfgsResult minimize_lbfgs(F loss, const Parameters &parameters, const LbfgsOptions &options = {},
                           Where where = Where::current()) {
  return detail::minimizeLbfgs(std::function<Tensor()>(std::move(loss)), parameters, nullptr, options, where);
}
/// The same with the pairs of a history, whose capacity stands for `options.history`, and which has the last ones in
/// the end. Errors: a history of parameters with another number of elements.
template <class F>
  requires std::invocable<F &>
LbfgsResult minimize_lbfgs(F loss, const Parameters &parameters, const LbfgsHistory &history,
                           const LbfgsOptions &options = {}, Where where = Where::current()) {
  return detail::minimizeLbfgs(std::function<Tensor()>(std::move(loss)), parameters, &history, options, where);
}

} // namespace wg::optim
