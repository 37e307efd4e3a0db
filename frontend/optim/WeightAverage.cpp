// What is the average of a weight over the steps? One variable beside each, which moves toward it.
#include "wengert/optim/WeightAverage.h"

#include "frontend/optim/State.h"
#include "wengert/Function.h"

#include <cmath>
#include <mutex>

namespace wg::optim {

ExponentialMovingAverage::ExponentialMovingAverage(const Parameters &parameters, AverageOptions options, Where where)
    : options_(options) {
  double highest = options.bias_correction ? 1 : std::nextafter(1, 0);
  detail::within("moving average", "decay", options.decay, options.decay >= 0 && options.decay <= highest,
                 options.bias_correction ? "in [0, 1]" : "in [0, 1)", where);
  for (const auto &[name, variable] : parameters.named_variables()) {
    if (!runtime::isFloat(variable.dtype(where)))
      detail::raise({.kind = ErrorKind::type,
                     .op = "moving average",
                     .message = "variable '" + name + "' is " +
                                toString(TensorType{variable.dtype(), variable.shape()}) + ", and floats have averages",
                     .remedy = "leave it out of the variables"},
                    where);
    variables_.push_back(variable);
    averages_.push_back(Variable(variable.value(where), {.name = name + ".average", .trainable = false}, where));
  }
  updates_ = Variable(Tensor(int64_t(0)), {.name = "updates", .trainable = false}, where);
}

/// a += w (p - a), which stays at p where it is, however the weights are rounded. With the correction, w = (1
/// - d) / (1 - d^t): the corrected average of t values is that of t - 1 weighted by d (1 - d^(t - 1)) / (1 -
/// d^t) = 1 - w, and the last by w.
void ExponentialMovingAverage::update(Where where) {
  if (swapped_)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "moving average",
                   .message = "the averages are swapped in: the variables hold no weights to take in",
                   .remedy = "call swap_out() first, or end the scope"},
                  where);
  Tensor count = updates_ + int64_t(1), t = cast(count, f64), w(1 - options_.decay);
  if (options_.bias_correction)
    w = options_.decay == 1 ? 1.0 / t : (1 - options_.decay) / -expm1(t * std::log(options_.decay));
  std::vector<std::pair<Variable, Tensor>> changes{{updates_, count}};
  for (size_t i = 0; i < variables_.size(); ++i) {
    Tensor p = variables_[i].value(where), a = averages_[i].value(where);
    changes.emplace_back(averages_[i], a + (p.dtype() == f64 ? w : cast(w, p.dtype())) * (p - a));
  }
  detail::assignAll(changes, where);
}

Tensor ExponentialMovingAverage::average(const Variable &variable, Where where) const {
  for (size_t i = 0; i < variables_.size(); ++i)
    if (variables_[i].is(variable))
      return (swapped_ ? variables_ : averages_)[i].value(where);
  detail::raise({.kind = ErrorKind::lookup,
                 .op = "moving average",
                 .message = "variable '" + (variable.defined() ? variable.name() : std::string()) + "' is not averaged",
                 .remedy = "give it to the constructor"},
                where);
}

/// Needs no memory: the scope's end cannot fail.
void ExponentialMovingAverage::exchange() noexcept {
  for (size_t i = 0; i < variables_.size(); ++i) {
    detail::VariableState &a = *detail::variableBehind(variables_[i].state()), &b = *averages_[i].state();
    std::scoped_lock lock(a.mutex, b.mutex);
    std::swap(a.current, b.current);
  }
  swapped_ = !swapped_;
}

/// What cannot be done while swapped in, or out, and not while tracing, where nothing has a value.
static void checkSwap(bool wrong, const char *message, const char *remedy, const Where &where) {
  if (tracing())
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "moving average",
                   .message = "a traced function cannot swap averages",
                   .remedy = "call it outside the function"},
                  where);
  if (wrong)
    detail::raise({.kind = ErrorKind::runtime, .op = "moving average", .message = message, .remedy = remedy}, where);
}

void ExponentialMovingAverage::swap_in(Where where) {
  checkSwap(swapped_, "the averages are swapped in already", "call swap_out() first, or end the scope", where);
  for (const Variable &variable : variables_)
    detail::currentValue(variable.state(), where); // a parameter of a traced function that has ended is an error
  exchange();
}

void ExponentialMovingAverage::swap_out(Where where) {
  checkSwap(!swapped_, "the averages are not swapped in", "call swap_in() first", where);
  exchange();
}

std::vector<nn::Module::Named> ExponentialMovingAverage::named_state(Where where) const {
  if (swapped_)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "moving average",
                   .message = "the averages are swapped in: the variables hold them, and what is kept are the weights",
                   .remedy = "save and load after swap_out(), or outside of the scope"},
                  where);
  std::vector<nn::Module::Named> named{{"updates", updates_}};
  for (const Variable &average : averages_)
    named.emplace_back(average.name(), average);
  return named;
}

} // namespace wg::optim
