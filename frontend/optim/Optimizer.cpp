// How does a step change the parameters? Each optimiser's formula, and what all of them share: slots, counts, warnings.
#include "wengert/optim/Optimizer.h"

#include "frontend/ops/Operands.h"
#include "wengert/Function.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <iostream>
#include <sstream>

namespace wg::optim {

/// A hyperparameter that lies in its range.
static double within(const char *name, double value, bool fits, const char *range, const Where &where) {
  if (!fits) {
    std::ostringstream number;
    number << value;
    detail::raise({.op = "optimizer",
                   .message = std::string(name) + " is " + number.str() + ", which is not " + range,
                   .remedy = std::string("give a ") + name + " that is " + range},
                  where);
  }
  return value;
}

static double checkedRate(double rate, const Where &where) {
  return within("learning_rate", rate, rate >= 0 && std::isfinite(rate), "finite and 0 or more", where);
}

Optimizer::Optimizer(double learning_rate, std::vector<std::string> slots, Where where)
    : slotNames_(std::move(slots)),
      rate_(checkedRate(learning_rate, where), {.name = "learning_rate", .trainable = false}, where) {}

void Optimizer::set_learning_rate(double rate, Where where) const {
  rate_.assign(Located(Tensor(checkedRate(rate, where)), where));
}

Tensor Optimizer::rate(DType dtype) const { return dtype == f64 ? rate_.value() : cast(rate_, dtype); }

std::vector<std::pair<std::string, Variable>> Optimizer::named_slots() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Variable>> named;
  for (const Variable &slot : slots_)
    named.emplace_back(slot.name(), slot);
  return named;
}

/// Names that exist already get a number: `weight.m`, `weight.m_1`. A name is taken if its slot is made.
Variable Optimizer::makeSlot(const Tensor &initial, const std::string &name) {
  std::string unique = name;
  // From the last number of this name on: layers are many and their names few.
  for (int &number = numbers_[name]; names_.contains(unique);)
    unique = name + "_" + std::to_string(++number);
  slots_.push_back(Variable(initial, {.name = unique, .trainable = false}));
  names_.insert(unique);
  return slots_.back();
}

void Optimizer::forget(size_t seen, size_t slots) {
  for (; seen_.size() > seen; seen_.pop_back())
    places_.erase(seen_.back().id);
  for (; slots_.size() > slots; slots_.pop_back())
    names_.erase(slots_.back().name());
  numbers_.clear(); // counted anew
}

/// What a failure leaves behind is forgotten: the next call names its slots as this one would have.
std::vector<size_t> Optimizer::see(const std::vector<Variable> &variables, const Where &where) {
  const size_t seenBefore = seen_.size(), slotsBefore = slots_.size();
  Variable step; // the count of the variables seen for the first time in this call
  std::vector<size_t> places;
  try {
    for (const Variable &variable : variables) {
      const TensorType type{variable.dtype(where), variable.shape(where)};
      auto known = places_.find(variable.id());
      if (known == places_.end())
        known = at_trace_time([&] {
          if (!step.defined())
            step = makeSlot(Tensor(int64_t(0)), "step");
          Seen fresh{variable.id(), step, {}};
          for (const std::string &name : slotNames_)
            if (runtime::isFloat(type.dtype))
              fresh.slots.push_back(makeSlot(zeros(type.shape, type.dtype, where), variable.name() + "." + name));
          seen_.push_back(std::move(fresh));
          return places_.emplace(variable.id(), seen_.size() - 1).first;
        });
      places.push_back(known->second);
    }
  } catch (...) {
    forget(seenBefore, slotsBefore);
    throw;
  }
  return places;
}

/// What would fail half way through a step fails here, before it.
static void check(const Grad &grad, const Variable &variable, const Where &where) {
  TensorType type{variable.dtype(where), variable.shape(where)};
  if (!grad.has_value())
    return;
  detail::currentValue(variable.state(), where); // no parameter of a trace that has ended
  const Tensor &value = grad.value();
  const TensorType &given = value.body()->type;
  std::string name = detail::describe(*variable.state());
  if (!runtime::isFloat(type.dtype))
    detail::raiseOp("apply", name + " is " + toString(type) + ", and a step changes floats only",
                    "leave it out of the variables, or make it a float", {type}, where, ErrorKind::type);
  if (given.dtype != type.dtype || !detail::sameSizes(given.shape, type.shape))
    detail::raiseOp("apply", "the gradient of " + name + " is " + toString(given) + ", the variable " + toString(type),
                    "pass the gradients in the order of the variables, each of its variable's shape and dtype",
                    {given, type}, where, given.dtype != type.dtype ? ErrorKind::type : ErrorKind::value);
  if (detail::stateOf(value)->spec || (detail::stateOf(value)->symbol && !detail::level().trace))
    detail::raiseOutOfScope("apply", value, where);
}

void Optimizer::applyAll(const std::vector<Grad> &grads, const std::vector<Variable> &variables, const Where &where) {
  if (grads.size() != variables.size())
    detail::raise({.op = "apply", .message = std::to_string(grads.size()) + " gradients for " + std::to_string(variables.size()) + " variables",
                   .remedy = "pass what tape.gradient(loss, variables) returned, and the same variables"},
                  where);
  if (variables.empty())
    return;
  if (std::none_of(grads.begin(), grads.end(), [](const Grad &grad) { return grad.has_value(); }))
    detail::raise({.op = "apply", .message = "No gradients provided for any variable. The first is empty because: " + grads[0].reason(),
                   .remedy = "compute the loss from the variables while the tape records"},
                  where);

  for (size_t i = 0; i < variables.size(); ++i)
    check(grads[i], variables[i], where);

  // A step that fails half way, for lack of memory, puts back what it changed; a trace that fails is dropped as a whole.
  std::lock_guard lock(mutex_);
  const size_t seenBefore = seen_.size(), slotsBefore = slots_.size();
  std::vector<std::pair<std::shared_ptr<detail::VariableState>, Tensor>> before;
  auto keep = [&](const Variable &variable) { before.emplace_back(variable.state(), detail::currentValue(variable.state(), where)); };
  try {
    std::vector<size_t> places = see(variables, where);
    if (!detail::level().trace)
      for (size_t i = 0; i < variables.size(); ++i) {
        keep(variables[i]);
        keep(seen_[places[i]].step);
        std::for_each(seen_[places[i]].slots.begin(), seen_[places[i]].slots.end(), keep);
      }
    step(grads, variables, places);
  } catch (...) {
    detail::exchangeValues(before);
    forget(seenBefore, slotsBefore);
    throw;
  }
}

/// One step of each variable, whose place among those seen is `places`.
void Optimizer::step(const std::vector<Grad> &grads, const std::vector<Variable> &variables, const std::vector<size_t> &places) {
  std::vector<std::pair<Variable, Tensor>> steps;
  for (size_t place : places) {
    const Variable &step = seen_[place].step;
    if (std::any_of(steps.begin(), steps.end(), [&](const auto &each) { return each.first.is(step); }))
      continue;
    Tensor next = step + int64_t(1);
    step.assign(next);
    steps.emplace_back(step, next);
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    Seen &seen = seen_[places[i]];
    if (grads[i].has_value()) {
      auto step = std::find_if(steps.begin(), steps.end(), [&](const auto &each) { return each.first.is(seen.step); });
      update({variables[i], grads[i].value(), places[i], step->second});
    } else if (!seen.warned) {
      seen.warned = true;
      std::clog << "warning: Gradients do not exist for variables [" << variables[i].name() << "] when minimizing the loss: " << grads[i].reason() << "\n";
    }
  }
}

void SGD::update(const Update &update) { update.variable.assign_sub(rate(update.variable.dtype()) * update.gradient); }

Momentum::Momentum(double learning_rate, double momentum, bool nesterov, Where where)
    : Optimizer(learning_rate, {"velocity"}, where),
      momentum_(within("momentum", momentum, momentum >= 0 && momentum <= 1, "in [0, 1]", where)), nesterov_(nesterov) {
}

/// x, and 0 where it is subnormal. The average of a gradient that has become 0 would otherwise decay into the subnormals and stay there, where every
/// operation costs a hundred cycles: step b of the benchmarks slowed down from 205 to 420 us within 20,000 steps.
static Tensor isSubnormal(const Tensor &x) {
  return abs(x) < (x.dtype() == f32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min());
}
static Tensor normalOrZero(const Tensor &x) { return where(isSubnormal(x), 0, x); }

void Momentum::update(const Update &update) {
  const Variable &velocity = slot(update, 0);
  Tensor v = momentum_ * velocity + update.gradient;
  velocity.assign(normalOrZero(v));
  update.variable.assign_sub(rate(update.variable.dtype()) * (nesterov_ ? update.gradient + momentum_ * v : v));
}

Adam::Adam(double learning_rate, AdamOptions options, Where where)
    : Optimizer(learning_rate, {"m", "v"}, where), options_(options) {
  within("beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)", where);
  within("beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)", where);
  within("epsilon", options.epsilon, options.epsilon >= 0 && std::isfinite(options.epsilon), "finite and 0 or more", where);
}

/// With 1 - b^t written as -expm1(t log b): for small t the difference itself would lose 1e-5 of the first steps in f32.
void Adam::update(const Update &update) {
  DType dtype = update.variable.dtype();
  Tensor t = cast(update.step, dtype), g = update.gradient;
  Tensor step = -rate(dtype) / expm1(t * std::log(options_.beta_1)), correction = -1.0 / expm1(t * std::log(options_.beta_2));
  const Variable &first = slot(update, 0), &second = slot(update, 1);
  Tensor m = options_.beta_1 * first + (1 - options_.beta_1) * g, v = options_.beta_2 * second + (1 - options_.beta_2) * (g * g);
  Tensor kept = normalOrZero(m);
  first.assign(kept);
  second.assign(where(kept == 0 && isSubnormal(v), 0, v)); // beside an m that is not 0, a small v counts
  update.variable.assign_sub(step * m / (sqrt(v * correction) + options_.epsilon));
}

std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads, const Located &max_norm) {
  Where where = max_norm.where();
  if (max_norm.isLiteral())
    within("max_norm", max_norm.real(), max_norm.real() >= 0, "0 or more", where);
  Tensor sum;
  for (const Grad &grad : grads)
    if (grad.has_value()) {
      Tensor squares = reduce_sum(square(Located(grad.value(), where)));
      sum = sum.defined() ? Located(sum, where) + Located(squares, where) : squares;
    }
  if (!sum.defined())
    return {grads, Tensor(0.0f)};
  Tensor total = sqrt(Located(sum, where));
  // total - total is 0, or NaN for a norm that is not finite.
  Tensor scale = max_norm / maximum(Located(total, where), max_norm);
  scale = Located(scale, where) + Located(Located(total, where) - Located(total, where), where);
  std::vector<Grad> clipped = grads;
  for (Grad &grad : clipped)
    if (grad.has_value())
      grad = Grad(Located(grad.value(), where) * Located(scale, where));
  return {std::move(clipped), std::move(total)};
}

} // namespace wg::optim
