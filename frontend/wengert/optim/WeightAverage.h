// Averages of the weights over the steps of a training: often better weights than the last ones.
#pragma once

#include <wengert/optim/Parameters.h>

#include <vector>

namespace wg::optim {

struct AverageOptions {
  double decay = 0.999; ///< in [0, 1]; 1 only with bias correction
  /// The average of the values that were seen, without the initial one: weights (1 - decay) decay^(t - i) over their
  /// sum 1 - decay^t, as Adam's moments are corrected (Kingma and Ba 2015, section 3). With decay 1 it is the plain
  /// mean (stochastic weight averaging, Izmailov et al. 2018).
  bool bias_correction = false;
};

/// Exponential moving average: a = decay a + (1 - decay) p after each update, from the initial value of
/// p on (Polyak and Juditsky 1992; as tf.train.ExponentialMovingAverage). Kept as variables
/// `NAME.average`, beside the count `updates`.
///
///     wg::optim::ExponentialMovingAverage average(model, {.decay = 0.99});
///     for (...) { step(x, y); average.update(); }
///     { auto swapped = average.scope(); evaluate(model); }    // the model has the averages in here
///
/// It holds the variables. To be used by one thread at a time.
class WENGERT_API ExponentialMovingAverage {
public:
  /// Errors: a variable that is no float; a decay out of its range.
  explicit ExponentialMovingAverage(const Parameters &parameters, AverageOptions options = {},
                                    Where where = Where::current());
  ExponentialMovingAverage(const ExponentialMovingAverage &) = delete;
  ExponentialMovingAverage &operator=(const ExponentialMovingAverage &) = delete;

  /// Takes the present values in: after each step of the optimiser, or inside of the traced step. An error while the
  /// averages are swapped in, eagerly and when it is traced; a compiled step does not look, so end the scope before it.
  void update(Where where = Where::current());
  /// The average of a variable, its initial value before the first update. An error for a
  /// variable that is not averaged.
  Tensor average(const Variable &variable, Where where = Where::current()) const;

  /// Exchanges the variables' values and the averages, and back. All or none changes. Errors: inside
  /// of a traced function; in a row.
  void swap_in(Where where = Where::current());
  void swap_out(Where where = Where::current());
  bool swapped() const { return swapped_; }

  /// Swaps out when it dies, unless that was done.
  class [[nodiscard]] Scope {
  public:
    explicit Scope(ExponentialMovingAverage &average) : average_(average) {}
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() {
      if (average_.swapped_)
        average_.exchange();
    }

  private:
    ExponentialMovingAverage &average_;
  };
  /// Swaps in until the result dies, which is before this does.
  Scope scope(Where where = Where::current()) {
    swap_in(where);
    return Scope(*this);
  }

  /// The averages and the count of updates, as save_weights and load_weights take them. An error while they are swapped
  /// in: the variables hold them then.
  std::vector<nn::Module::Named> named_state(Where where = Where::current()) const;

private:
  void exchange() noexcept;
  AverageOptions options_;
  std::vector<Variable> variables_, averages_;
  Variable updates_; ///< i64[]
  bool swapped_ = false;
};

} // namespace wg::optim
