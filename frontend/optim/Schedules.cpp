// What is the learning rate at a step? Each schedule's formula, in f64, by ops: it is part
// of the program of a traced step.
#include "wengert/optim/Schedules.h"

#include "frontend/optim/State.h"
#include "wengert/Function.h"

#include <cmath>
#include <numbers>

namespace wg::optim {

using detail::within;

static double checkedRate(const char *name, double rate, const Where &where) {
  return within("schedule", name, rate, rate >= 0 && std::isfinite(rate), "finite and 0 or more", where);
}
static double checkedSteps(const char *name, int64_t steps, int64_t least, const Where &where) {
  return within("schedule", name, static_cast<double>(steps), steps >= least, least ? "1 or more" : "0 or more", where);
}

Tensor Schedule::operator()(const Tensor &step, Where where) const {
  if (!f_)
    return Tensor(rate_);
  Tensor rate = f_(maximum(Located(cast(Located(step, where), f64), where), Located(0.0, where)));
  const TensorType &type = rate.body(where)->type;
  if (type.shape.rank() != 0 || !runtime::isFloat(type.dtype))
    detail::raise({.op = "schedule",
                   .message = "the schedule returned " + toString(type) + " for one step, not a float scalar",
                   .remedy = "compute the rate from the step alone: reduce_sum or reshape what is not a scalar"},
                  where);
  return type.dtype == f64 ? rate : cast(Located(rate, where), f64);
}

double Schedule::at(int64_t step, Where where) const {
  return at_trace_time([&] { return (*this)(Tensor(step), where).item<double>(where); });
}

Schedule constant(double rate, Where where) { return Schedule(checkedRate("rate", rate, where)); }

Schedule step_decay(double rate, int64_t every, double factor, Where where) {
  return exponential_decay(rate, every, factor, true, where);
}

Schedule exponential_decay(double rate, int64_t steps, double factor, bool staircase, Where where) {
  checkedRate("rate", rate, where), checkedRate("factor", factor, where);
  double period = checkedSteps("steps", steps, 1, where);
  return [=](const Tensor &t) {
    Tensor exponent = t / period;
    return rate * pow(factor, staircase ? floor(exponent) : exponent);
  };
}

Schedule linear_decay(double rate, int64_t steps, double end, Where where) {
  checkedRate("rate", rate, where), checkedRate("end", end, where);
  double last = checkedSteps("steps", steps, 1, where);
  // Weights of both ends: at either end, that one exactly.
  return [=](const Tensor &t) {
    Tensor done = minimum(t, last) / last;
    return rate * (1.0 - done) + end * done;
  };
}

Schedule piecewise_constant(std::vector<int64_t> boundaries, std::vector<double> rates, Where where) {
  if (rates.size() != boundaries.size() + 1)
    detail::raise(
        {.op = "schedule",
         .message = std::to_string(boundaries.size()) + " boundaries for " + std::to_string(rates.size()) + " rates",
         .remedy = "give one rate more than boundaries: that before the first"},
        where);
  for (double rate : rates)
    checkedRate("rate", rate, where);
  for (size_t i = 0; i < boundaries.size(); ++i)
    if (boundaries[i] < 1 || (i && boundaries[i] <= boundaries[i - 1]))
      detail::raise({.op = "schedule",
                     .message = "boundary " + std::to_string(boundaries[i]) + " does not come after " +
                                std::to_string(i ? boundaries[i - 1] : 0),
                     .remedy = "give the boundaries in ascending order, the first 1 or more"},
                    where);
  return [=](const Tensor &t) {
    Tensor rate(rates.back());
    for (size_t i = boundaries.size(); i-- > 0;)
      rate = wg::where(t < static_cast<double>(boundaries[i]), rates[i], rate);
    return rate;
  };
}

Schedule warmup(int64_t steps, Schedule then, double start, Where where) {
  checkedRate("start", start, where);
  double count = checkedSteps("steps", steps, 0, where), first = checkedRate("rate", then.at(0, where), where);
  if (steps == 0)
    return then;
  return [=](const Tensor &t) {
    Tensor done = t / count;
    return wg::where(done < 1.0, start * (1.0 - done) + first * done, then(maximum(t - count, 0.0)));
  };
}

Schedule cosine_decay(double rate, int64_t steps, CosineOptions options, Where where) {
  checkedRate("rate", rate, where), checkedRate("end", options.end, where);
  double last = checkedSteps("steps", steps, 1, where), end = options.end;
  Schedule decay = [=](const Tensor &t) {
    Tensor left = 0.5 * (1.0 + cos(minimum(t, last) * (std::numbers::pi / last)));
    return rate * left + end * (1.0 - left);
  };
  return warmup(options.warmup_steps, std::move(decay), options.warmup_start, where);
}

} // namespace wg::optim
