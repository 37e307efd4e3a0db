// Optimisers: what a step does to variables, given gradients. Inside a traced function the update is part of the
// program.
//
// Slots (momentum, moments) are variables, one set for each variable by its id, made by its first apply or by build; so
// one optimiser serves any sets of variables, together or in turn, and from several threads. The learning rate is a
// variable too: changing it retraces nothing. A schedule computes it from the count of steps, which is a slot.
//
// Weight decay is decoupled in all of them (Loshchilov and Hutter 2019, algorithm 2, with lr for its eta
// alpha, as in torch.optim.AdamW and tf.keras): before the update by its gradient, a variable p with a weight
// decay w becomes p - lr w p. For SGD that is the L2 penalty w |p|^2 / 2; for the others it is not. They have an option
// `l2`, finite and 0 or more, which is that penalty, as the weight decay of PyTorch's optimisers is: g + l2 p stands
// for the gradient g, and all rows of a sparse one are stepped.
#pragma once

#include <wengert/GradientTape.h>
#include <wengert/optim/Parameters.h>
#include <wengert/optim/Schedules.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wg::optim {

struct GroupOptions {
  double learning_rate_factor = 1;         ///< times the optimiser's learning rate; finite and 0 or more
  std::optional<double> weight_decay = {}; ///< default: the optimiser's
};

/// Variables that an optimiser steps in their own manner; a handle, copies name the same group.
class WENGERT_API ParameterGroup {
public:
  double learning_rate_factor() const;
  /// For the steps from now on; retraces nothing. An error below 0 and for what is not finite.
  void set_learning_rate_factor(double factor, Where where = Where::current()) const;
  double weight_decay() const { return weightDecay_; }

private:
  friend class Optimizer;
  ParameterGroup(Variable factor, double weightDecay);
  Variable factor_; ///< f64[]
  double weightDecay_;
};

class WENGERT_API Optimizer {
public:
  virtual ~Optimizer();
  Optimizer(const Optimizer &) = delete;
  Optimizer &operator=(const Optimizer &) = delete;

  /// Updates each variable with the gradient at the same place. Both are lists, tuples, or structures of them, in which
  /// tensors and numbers beside the variables are left alone; a model is the list of its trainable variables:
  /// `adam.apply(tape.gradient(loss, model), model)`. An empty list changes nothing; an empty Grad is skipped, with one
  /// warning a variable that carries the reason. Errors, before anything changes: different counts; no gradient at all
  /// (`No gradients provided for any variable.`); a gradient of another shape or dtype than its variable; a variable
  /// that is no float. A step that fails for lack of memory changes nothing.
  template <class Grads, class Variables>
  void apply(const Grads &grads, const Variables &variables, Where where = Where::current()) {
    if constexpr (detail::checkVariables<Variables>())
      applyAll(detail::gradientsByVariables(grads, variables), detail::NamedVariables(variables), where);
  }
  /// Lists in braces: `opt.apply(grads, {w, b})`.
  template <class Grads>
  void apply(const Grads &grads, std::initializer_list<Variable> variables, Where where = Where::current()) {
    apply(grads, std::vector<Variable>(variables), where);
  }
  void apply(std::initializer_list<Grad> grads, std::initializer_list<Variable> variables,
             Where where = Where::current());
  /// Makes the slots that the first apply to these variables would make: to be loaded from a file before it.
  template <class Variables> void build(const Variables &variables, Where where = Where::current()) {
    if constexpr (detail::checkVariables<Variables>())
      buildAll(detail::NamedVariables(variables), where);
  }

  /// Steps these variables with a learning rate factor and a weight decay of their own; all others are
  /// stepped with 1 and the optimiser's:
  ///
  ///     auto isBias = [](const std::string &name, const wg::Variable &) { return name.ends_with("bias"); };
  ///     adam.add_group(model.trainable_variables(isBias), {.weight_decay = 0});
  ///
  /// Errors: a variable that is in a group already, that a step or `build` has seen (a traced step has its decay in its
  /// program), or that is no float.
  ParameterGroup add_group(const Parameters &parameters, GroupOptions options = {}, Where where = Where::current());

  /// That of the last step where it follows a schedule, and that of the first before it.
  double learning_rate() const;
  /// An error below 0, for what is not finite, and where the learning rate follows a schedule.
  void set_learning_rate(double rate, Where where = Where::current()) const;
  /// Everything that a step changes beside the parameters: step counts and slots, in the order of their making. Their
  /// names differ. To be read while no thread applies.
  const std::vector<Variable> &slots() const;
  /// The same under their names, as save_weights and load_weights take them.
  std::vector<std::pair<std::string, Variable>> named_slots() const;
  /// These, and what set_learning_rate and the groups' set_learning_rate_factor change: `learning_rate`, and
  /// `learning_rate_factor`, `learning_rate_factor_1`, ... of the groups in the order in which they were added. With
  /// it, an optimiser made and built as this one goes on as this one would.
  std::vector<nn::Module::Named> named_state() const;

protected:
  /// `slots` are the names of one variable's slots, of its dtype and shape; `scalars` of those, f64[], that follow.
  Optimizer(Schedule learning_rate, std::vector<std::string> slots, Where where, double weight_decay = 0, double l2 = 0,
            std::vector<std::string> scalars = {});
  /// One variable's update by its gradient; `step` counts from 1.
  struct Update {
    const Variable &variable;
    const Tensor &gradient;
    size_t index;       ///< of the variable among those this optimiser has seen
    const Tensor &step; ///< i64[]
    const Tensor &rate; ///< f64[]: the learning rate times the factor of the variable's group
  };
  /// What the gradient does, the L2 penalty's being in it; the weight decay is done.
  virtual void update(const Update &update) = 0;
  /// Rows that are added to those of a variable when the whole step is computed.
  struct Row {
    Variable variable;
    Tensor indices, rows;
  };
  /// Whether updateRows takes a gradient that is rows; else `update` takes it as a whole, as it does for a class that
  /// derives from one of those below.
  virtual bool takesRows() const;
  /// The same by the rows of a gradient, in which each index counts once (at its other places the rows are 0): what is
  /// to be added to the variable and its slots. `update.gradient` is undefined.
  virtual std::vector<Row> updateRows(const Update &update, const SparseRows &gradient);
  /// Slot `which` of a variable, zeros at first.
  const Variable &slot(const Update &update, size_t which) const;
  /// The learning rate in the variable's dtype.
  static Tensor rate(const Update &update);

private:
  struct State;
  double decayOf(const Variable &variable) const;
  bool stepsRows(const std::vector<Grad> &grads, const std::vector<nn::Module::Named> &variables, size_t i) const;
  void applyAll(const std::vector<Grad> &grads, const detail::NamedVariables &variables, const Where &where);
  void buildAll(const detail::NamedVariables &variables, const Where &where);
  void step(const std::vector<Grad> &grads, const detail::NamedVariables &variables, const std::vector<size_t> &places);
  std::unique_ptr<State> state_;
};

struct SGDOptions {
  double weight_decay = 0; ///< finite and 0 or more, here and below
};

/// p -= lr g. Of a sparse gradient it touches the rows only, with the same result.
class WENGERT_API SGD : public Optimizer {
public:
  explicit SGD(Schedule learning_rate, SGDOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;
  bool takesRows() const override;
  std::vector<Row> updateRows(const Update &update, const SparseRows &gradient) override;
};

struct AdagradOptions {
  double initial_accumulator = 0.1, epsilon = 1e-7; ///< finite and 0 or more
  double weight_decay = 0, l2 = 0;
};

/// a += g^2; p -= lr g / sqrt(a + initial_accumulator + epsilon) (Duchi, Hazan and Singer 2011, with the constants of
/// tf.keras). Slot `accumulator`, which is 0 at first. Of a sparse gradient it touches the rows only, with the same
/// result.
class WENGERT_API Adagrad : public Optimizer {
public:
  explicit Adagrad(Schedule learning_rate = 0.001, AdagradOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;
  bool takesRows() const override;
  std::vector<Row> updateRows(const Update &update, const SparseRows &gradient) override;

private:
  double constant_;
};

struct MomentumOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0, l2 = 0;
  bool lazy = false;
};

/// v = momentum v + g; p -= lr v, or lr (g + momentum v) where `nesterov` (Sutskever et al. 2013). Slot `velocity`.
/// The momentum lies in [0, 1]. With `lazy` a sparse gradient steps its rows only: the velocity of the others neither
/// decays nor moves them, which gives other numbers.
class WENGERT_API Momentum : public Optimizer {
public:
  explicit Momentum(Schedule learning_rate, double momentum = 0.9, bool nesterov = false, double weight_decay = 0,
                    bool lazy = false, Where where = Where::current());
  Momentum(Schedule learning_rate, MomentumOptions options, Where where = Where::current());

protected:
  void update(const Update &update) override;
  bool takesRows() const override;
  std::vector<Row> updateRows(const Update &update, const SparseRows &gradient) override;

private:
  double momentum_;
  bool nesterov_, lazy_;
};

struct AdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0; ///< more than 0: AdamW
  bool lazy = false;       ///< of a sparse gradient only the rows are stepped: other numbers, at the cost of the rows
  bool amsgrad = false;    ///< the largest v so far in the place of v
  double l2 = 0;
};

/// Adam (Kingma and Ba 2015, algorithm 1), with t = 1, 2, ... and epsilon outside the root:
/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
/// With a weight decay it is AdamW (Loshchilov and Hutter 2019, algorithm 2).
/// Slots `m` and `v`; where m becomes subnormal it is kept as 0, and a subnormal v beside it too. b1 and b2 lie in
/// [0, 1), epsilon is not negative. With `lazy` the moments of rows without a gradient do not decay. With `amsgrad`
/// there is a slot `v_max`, v_max = max(v_max, v), which stands for v in the root (Reddi, Kale and Kumar 2018, with the
/// correction by t, as in torch.optim.Adam).
class WENGERT_API Adam : public Optimizer {
public:
  explicit Adam(Schedule learning_rate = 0.001, AdamOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;
  bool takesRows() const override;
  std::vector<Row> updateRows(const Update &update, const SparseRows &gradient) override;

private:
  AdamOptions options_;
};

/// Scales the gradients so that the norm of all of them together is at most `max_norm`; empty ones stay empty, and
/// sparse ones sparse, in whose norm each row counts once, with all that is added at its index.
/// Returns the gradients and the norm before scaling. The dtypes must be equal. Where the norm is infinite or NaN,
/// every element is NaN, as in TensorFlow. Errors: a number `max_norm` that is not 0 or more.
WENGERT_API std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads,
                                                                     const Located &max_norm);
/// The same for any structure of gradients or tensors, as `tape.gradient` returned it: `auto [clipped, norm] =
/// clip_by_global_norm(g, 1.0f); clipped.weight`.
template <class Grads> std::pair<Grads, Tensor> clip_by_global_norm(const Grads &grads, const Located &max_norm) {
  std::pair<Grads, Tensor> result(grads, Tensor());
  if constexpr (detail::checkTree<Grads>()) {
    std::vector<Grad> flat = detail::gradientsIn(grads);
    std::pair<std::vector<Grad>, Tensor> clipped = clip_by_global_norm(flat, max_norm);
    size_t next = 0;
    detail::visit(result.first, [&]<class Leaf>(Leaf &leaf) {
      if constexpr (std::same_as<Leaf, Grad> || std::same_as<Leaf, Tensor>)
        if (const Grad &grad = clipped.first[next++]; grad.has_value()) {
          if constexpr (std::same_as<Leaf, Grad>)
            leaf = grad;
          else
            leaf = grad.value();
        }
    });
    result.second = std::move(clipped.second);
  }
  return result;
}

} // namespace wg::optim
