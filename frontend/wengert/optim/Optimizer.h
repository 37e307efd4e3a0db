// Optimisers: what a step does to variables, given gradients. Inside a traced function the update is part of the
// program.
//
// Slots (momentum, moments) are variables, one set for each variable by its id, made by its first apply or by build; so
// one optimiser serves any sets of variables, together or in turn, and from several threads. The learning rate is a
// variable too: changing it retraces nothing.
#pragma once

#include <wengert/GradientTape.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
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
  /// Errors, before anything changes: different counts; no gradient at all (`No gradients provided for any variable.`);
  /// a gradient of another shape or dtype than its variable; a variable that is no float. A step that fails for lack of memory changes nothing.
  template <class Grads, class Variables> void apply(const Grads &grads, const Variables &variables, Where where = Where::current()) {
    std::vector<Grad> flat;
    detail::visit(grads, [&]<class Leaf>(const Leaf &leaf) {
      if constexpr (std::same_as<Leaf, Grad> || std::same_as<Leaf, Tensor>)
        flat.emplace_back(leaf);
    });
    applyAll(flat, listOf(variables), where);
  }
  /// Makes the slots that the first apply to these variables would make: to be loaded from a file before it.
  template <class Variables> void build(const Variables &variables, Where where = Where::current()) {
    std::lock_guard lock(mutex_);
    see(listOf(variables), where);
  }

  double learning_rate() const { return rate_.item<double>(); }
  /// An error below 0 and for what is not finite.
  void set_learning_rate(double rate, Where where = Where::current()) const;
  /// Everything that a step changes beside the parameters: step counts and slots, in the order of their making. Their
  /// names differ. To be read while no thread applies.
  const std::vector<Variable> &slots() const { return slots_; }
  /// The same under their names, as save_weights and load_weights take them.
  std::vector<std::pair<std::string, Variable>> named_slots() const;

protected:
  /// `slots` are the names of one variable's slots.
  Optimizer(double learning_rate, std::vector<std::string> slots, Where where);
  /// One variable's update by its gradient; `step` counts from 1.
  struct Update {
    const Variable &variable;
    const Tensor &gradient;
    size_t index;      ///< of the variable among those this optimiser has seen
    const Tensor &step; ///< i64[]
  };
  virtual void update(const Update &update) = 0;
  /// Slot `which` of a variable, zeros at first.
  const Variable &slot(const Update &update, size_t which) const { return seen_[update.index].slots[which]; }
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
  template <class Variables> static std::vector<Variable> listOf(const Variables &variables) {
    std::vector<Variable> list;
    detail::visit(variables, [&]<class Leaf>(const Leaf &leaf) {
      if constexpr (std::same_as<Leaf, Variable>)
        list.push_back(leaf);
    });
    return list;
  }
  void applyAll(const std::vector<Grad> &grads, const std::vector<Variable> &variables, const Where &where);
  /// The places of the variables in `seen_`, where they stand afterwards.
  std::vector<size_t> see(const std::vector<Variable> &variables, const Where &where);
  Variable makeSlot(const Tensor &initial, const std::string &name);
  /// Takes back what was made beyond so many variables and slots.
  void forget(size_t seen, size_t slots);
  void step(const std::vector<Grad> &grads, const std::vector<Variable> &variables, const std::vector<size_t> &places);

  mutable std::mutex mutex_; ///< held by apply, build and named_slots
  std::vector<std::string> slotNames_;
  Variable rate_;
  std::vector<Seen> seen_;
  std::map<int64_t, size_t> places_; ///< in `seen_`, by the variable's id
  std::vector<Variable> slots_;
  std::set<std::string> names_; ///< of the slots
  std::map<std::string, int> numbers_; ///< the last that a name got
};

/// p -= lr g
class SGD : public Optimizer {
public:
  explicit SGD(double learning_rate, Where where = Where::current()) : Optimizer(learning_rate, {}, where) {}

protected:
  void update(const Update &update) override;
};

/// v = momentum v + g; p -= lr v, or lr (g + momentum v) where `nesterov` (Sutskever et al. 2013). Slot `velocity`.
/// The momentum lies in [0, 1].
class Momentum : public Optimizer {
public:
  explicit Momentum(double learning_rate, double momentum = 0.9, bool nesterov = false, Where where = Where::current());

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
/// Slots `m` and `v`; where m becomes subnormal it is kept as 0, and a subnormal v beside it too. b1 and b2 lie in [0, 1), epsilon is not negative.
class Adam : public Optimizer {
public:
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  AdamOptions options_;
};

/// Scales the gradients so that the norm of all of them together is at most `max_norm`; empty ones stay empty.
/// Returns the gradients and the norm before scaling. The dtypes must be equal. Where the norm is infinite or NaN,
/// every element is NaN, as in TensorFlow. Errors: a number `max_norm` that is not 0 or more.
std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads, const Located &max_norm);

} // namespace wg::optim
