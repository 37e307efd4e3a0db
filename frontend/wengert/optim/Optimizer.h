// Optimisers: what a step does to variables, given gradients. Inside a traced function the update is part of the program.
//
// Slots (momentum, moments) are variables made on demand, one set for each variable by its id; so one optimiser serves any
// sets of variables, together or in turn. The learning rate is a variable too: changing it retraces nothing.
#pragma once

#include <wengert/GradientTape.h>

#include <memory>
#include <utility>
#include <vector>

namespace wg::optim {

class Optimizer {
public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer &) = delete;
  Optimizer &operator=(const Optimizer &) = delete;

  /// Updates each variable with the gradient at the same place. Both are lists, tuples, or structures of them.
  /// An empty list changes nothing; an empty Grad is skipped, with one warning a variable that carries the reason.
  /// Errors: different counts; no gradient at all (`No gradients provided for any variable.`).
  template <class Grads, class Variables> void apply(const Grads &grads, const Variables &variables, Where where = Where::current()) {
    std::vector<Grad> flat;
    std::vector<Variable> to;
    detail::visit(grads, [&]<class Leaf>(const Leaf &leaf) {
      if constexpr (std::same_as<Leaf, Grad> || std::same_as<Leaf, Tensor>)
        flat.emplace_back(leaf);
    });
    detail::visit(variables, [&]<class Leaf>(const Leaf &leaf) {
      if constexpr (std::same_as<Leaf, Variable>)
        to.push_back(leaf);
    });
    applyAll(flat, to, where);
  }

  double learning_rate() const { return rate_.item<double>(); }
  void set_learning_rate(double rate) const { rate_.assign(Tensor(rate)); }
  /// Everything that a step changes beside the parameters: slots and step counts, in the order of their making.
  const std::vector<Variable> &slots() const { return slots_; }

protected:
  explicit Optimizer(double learning_rate, Where where);
  /// One variable's update by its gradient; `step` counts from 1.
  struct Update {
    const Variable &variable;
    const Tensor &gradient;
    size_t index;      ///< of the variable among those this optimiser has seen
    const Tensor &step; ///< i64[]
  };
  virtual void update(const Update &update) = 0;
  /// Slot `which` of a variable, zeros at first.
  Variable slot(const Update &update, size_t which, const char *name);
  /// The learning rate in a dtype.
  Tensor rate(DType dtype) const;

private:
  /// What the optimiser knows of a variable. Variables first seen in one call count their steps together.
  struct Seen {
    int64_t id;
    Variable step;
    std::vector<Variable> slots;
    bool warned = false;
  };
  void applyAll(const std::vector<Grad> &grads, const std::vector<Variable> &variables, const Where &where);

  Variable rate_;
  std::vector<Seen> seen_;
  std::vector<Variable> slots_;
};

/// p -= lr g
class SGD : public Optimizer {
public:
  explicit SGD(double learning_rate, Where where = Where::current()) : Optimizer(learning_rate, where) {}

protected:
  void update(const Update &update) override;
};

/// v = momentum v + g; p -= lr v, or lr (g + momentum v) where `nesterov` (Sutskever et al. 2013).
class Momentum : public Optimizer {
public:
  explicit Momentum(double learning_rate, double momentum = 0.9, bool nesterov = false, Where where = Where::current())
      : Optimizer(learning_rate, where), momentum_(momentum), nesterov_(nesterov) {}

protected:
  void update(const Update &update) override;

private:
  double momentum_;
  bool nesterov_;
};

struct AdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
};

/// Adam (Kingma and Ba 2015, algorithm 1), with t = 1, 2, ... and epsilon outside the root:
/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
class Adam : public Optimizer {
public:
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {}, Where where = Where::current())
      : Optimizer(learning_rate, where), options_(options) {}

protected:
  void update(const Update &update) override;

private:
  AdamOptions options_;
};

/// Scales the gradients so that the norm of all of them together is at most `max_norm`; empty ones stay empty.
/// Returns the gradients and the norm before scaling. The dtypes must be equal.
std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads, const Located &max_norm);

} // namespace wg::optim
