// Gradients of several micro-batches as one: for batches that do not fit in memory at once.
#pragma once

#include <wengert/optim/Parameters.h>

#include <string>
#include <vector>

namespace wg::optim {

/// Sums gradients until they are taken. The sums are variables (`NAME.gradient`, and `weight`), so that one traced
/// function may add and another take:
///
///     wg::optim::GradientAccumulator accumulated(model);
///     auto micro = wg::function("micro", [&](const wg::Tensor &x, const wg::Tensor &y) {
///       wg::GradientTape tape;
///       wg::Tensor loss = ...;
///       accumulated.add(tape.gradient(loss, variables));
///       return loss;
///     });
///     auto step = wg::function("step", [&] { adam.apply(accumulated.take_mean(), variables); });
///     for (...) { micro(x, y); if (++i % 4 == 0) step(); }
///
/// Eagerly it works in the same way, as it does where one function adds in a loop and takes. Clip
/// what is taken, not what is added.
class WENGERT_API GradientAccumulator {
public:
  /// Errors: a variable that is no float.
  explicit GradientAccumulator(const Parameters &parameters, Where where = Where::current());

  /// Adds the gradients of a micro-batch, one for each variable, times `weight`: give the number of examples where
  /// these differ. An empty one adds nothing. Errors, before anything changes: as those of Optimizer::apply; a weight
  /// that is not finite and more than 0.
  template <class Grads> void add(const Grads &grads, double weight = 1, Where where = Where::current()) {
    addAll(detail::gradientsOfSources(grads), weight, where);
  }
  /// The sums over the sum of the weights, in the order of the variables; empty, with the reason, for a variable that
  /// never had a gradient. An error if nothing was added; in a traced function these are zeros then.
  std::vector<Grad> mean(Where where = Where::current()) const;
  /// The sums: of gradients of losses that are sums over examples.
  std::vector<Grad> sum(Where where = Where::current()) const;
  void reset(Where where = Where::current());
  /// mean() or sum(), and reset().
  std::vector<Grad> take_mean(Where where = Where::current());
  std::vector<Grad> take_sum(Where where = Where::current());
  /// Sum of the weights since the last reset: the number of micro-batches, where none was given.
  double weight(Where where = Where::current()) const { return weight_.item<double>(where); }

  /// The sums, their weight, and `has_gradient`, bool[variables], which of them ever had a gradient; as save_weights
  /// and load_weights take it.
  std::vector<nn::Module::Named> named_state() const;

private:
  void addAll(const std::vector<Grad> &grads, double weight, const Where &where);
  void checkAny(const Where &where) const;
  std::vector<bool> known() const;
  std::vector<Variable> variables_, sums_;
  std::vector<std::string> reasons_; ///< why there was no gradient in the last call that added
  Variable known_;                   ///< bool[variables]: that had a gradient; known when a function is traced
  Variable weight_;                  ///< f64[]
};

} // namespace wg::optim
