// Learning rates that follow the step: functions of the count of steps, evaluated inside of the step itself. A traced
// step computes its rate from the optimiser's own count, so nothing retraces, and who loads the optimiser's slots
// goes on where the schedule was.
#pragma once

#include <wengert/Ops.h>

#include <functional>
#include <vector>

namespace wg::optim {

/// A learning rate as a function of the step, which counts from 0: the first step of an optimiser takes `at(0)`.
///
///     wg::optim::Adam adam(wg::optim::cosine_decay(1e-3, 10'000, {.warmup_steps = 500}));
///
/// Any callable from f64[] to a float scalar is a schedule, too: `[](const wg::Tensor &t) {
/// return 0.1 / sqrt(t + 1.0); }`.
class WENGERT_API Schedule {
public:
  /// The same rate at every step.
  Schedule(double rate) : rate_(rate) {}
  template <std::invocable<const Tensor &> F>
    requires(!std::same_as<std::decay_t<F>, Schedule>)
  Schedule(F f) : f_(std::move(f)) {}

  bool is_constant() const { return !f_; }
  /// The rate, f64[], at a step given as a scalar of any integer or float dtype; a step below 0 counts as 0. Errors:
  /// the callable's result is no float scalar.
  Tensor operator()(const Tensor &step, Where where = Where::current()) const;
  /// The same as a number; inside of a traced function too.
  double at(int64_t step, Where where = Where::current()) const;

private:
  double rate_ = 0;
  std::function<Tensor(const Tensor &)> f_; ///< empty: constant
};

// Rates are finite and 0 or more, counts of steps 1 or more (a warm-up 0 or more); anything else is
// an error. t is the step, from 0.

/// `rate` at every step.
WENGERT_API Schedule constant(double rate, Where where = Where::current());
/// rate factor^floor(t / every). As torch.optim.lr_scheduler.StepLR.
WENGERT_API Schedule step_decay(double rate, int64_t every, double factor = 0.1, Where where = Where::current());
/// rate factor^(t / steps); with `staircase`, the exponent is rounded down. As
/// tf.keras.optimizers.schedules.ExponentialDecay.
WENGERT_API Schedule exponential_decay(double rate, int64_t steps, double factor, bool staircase = false,
                                       Where where = Where::current());
/// From `rate` in a straight line to `end` at t = steps, and `end` from there on.
WENGERT_API Schedule linear_decay(double rate, int64_t steps, double end = 0, Where where = Where::current());
/// rates[0] before boundaries[0], rates[1] from there until before boundaries[1], and so on: a boundary is the first
/// step of what follows it, as in torch.optim.lr_scheduler.MultiStepLR (in tf.keras, it is the last of what precedes
/// it). Errors: boundaries that do not ascend; not one rate more than boundaries.
WENGERT_API Schedule piecewise_constant(std::vector<int64_t> boundaries, std::vector<double> rates,
                                        Where where = Where::current());
/// From `start` in a straight line to the first rate of `then`, which begins at t = steps
/// (Goyal et al. 2017, section 2.2).
WENGERT_API Schedule warmup(int64_t steps, Schedule then, double start = 0, Where where = Where::current());

struct CosineOptions {
  double end = 0;           ///< the rate at the end and after it
  int64_t warmup_steps = 0; ///< steps before the decay, in which the rate grows in a straight line
  double warmup_start = 0;  ///< the rate at t = 0 if there are such
};
/// end + (rate - end) (1 + cos(pi t / steps)) / 2, and `end` from t = steps on, t counted from the end of the warm-up
/// (Loshchilov and Hutter 2017, equation 5, without restarts).
WENGERT_API Schedule cosine_decay(double rate, int64_t steps, CosineOptions options = {},
                                  Where where = Where::current());

} // namespace wg::optim
