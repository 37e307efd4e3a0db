// How does a step change the parameters? Each optimiser's formula, and what all of them share: slots, counts, warnings.
#include "wengert/optim/Optimizer.h"

#include "wengert/Function.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace wg::optim {

Optimizer::Optimizer(double learning_rate, Where where) : rate_(learning_rate, {.name = "learning_rate", .trainable = false}, where) {}

Tensor Optimizer::rate(DType dtype) const { return dtype == f64 ? rate_.value() : cast(rate_, dtype); }

Variable Optimizer::slot(const Update &update, size_t which, const char *name) {
  std::vector<Variable> &slots = seen_[update.index].slots;
  if (slots.size() <= which) {
    const Variable &of = update.variable;
    slots.push_back(at_trace_time([&] { return Variable(zeros(of.shape(), of.dtype()), {.name = of.name() + "." + name, .trainable = false}); }));
    slots_.push_back(slots.back());
  }
  return slots[which];
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

  Variable fresh; // the count of the variables seen for the first time in this call
  std::vector<size_t> places;
  std::vector<std::pair<Variable, Tensor>> steps;
  for (const Variable &variable : variables) {
    auto known = std::find_if(seen_.begin(), seen_.end(), [&](const Seen &seen) { return seen.id == variable.id(); });
    if (known == seen_.end()) {
      if (!fresh.defined()) {
        fresh = at_trace_time([] { return Variable(int64_t(0), {.name = "step", .trainable = false}); });
        slots_.push_back(fresh);
      }
      known = seen_.insert(seen_.end(), Seen{variable.id(), fresh, {}});
    }
    places.push_back(static_cast<size_t>(known - seen_.begin()));
    if (std::none_of(steps.begin(), steps.end(), [&](const auto &step) { return step.first.is(known->step); })) {
      Tensor next = known->step + int64_t(1);
      known->step.assign(next);
      steps.emplace_back(known->step, next);
    }
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

void Momentum::update(const Update &update) {
  Variable velocity = slot(update, 0, "velocity");
  Tensor v = momentum_ * velocity + update.gradient;
  velocity.assign(v);
  update.variable.assign_sub(rate(update.variable.dtype()) * (nesterov_ ? update.gradient + momentum_ * v : v));
}

/// With 1 - b^t written as -expm1(t log b): for small t the difference itself would lose 1e-5 of the first steps in f32.
void Adam::update(const Update &update) {
  DType dtype = update.variable.dtype();
  Tensor t = cast(update.step, dtype), g = update.gradient;
  Tensor step = -rate(dtype) / expm1(t * std::log(options_.beta_1)), correction = -1.0 / expm1(t * std::log(options_.beta_2));
  Variable first = slot(update, 0, "m"), second = slot(update, 1, "v");
  Tensor m = options_.beta_1 * first + (1 - options_.beta_1) * g, v = options_.beta_2 * second + (1 - options_.beta_2) * (g * g);
  first.assign(m);
  second.assign(v);
  update.variable.assign_sub(step * m / (sqrt(v * correction) + options_.epsilon));
}

std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads, const Located &max_norm) {
  Where where = max_norm.where();
  Tensor sum;
  for (const Grad &grad : grads)
    if (grad.has_value()) {
      Tensor squares = reduce_sum(square(Located(grad.value(), where)));
      sum = sum.defined() ? Located(sum, where) + Located(squares, where) : squares;
    }
  if (!sum.defined())
    return {grads, Tensor(0.0f)};
  Tensor total = sqrt(Located(sum, where));
  Tensor scale = max_norm / maximum(Located(total, where), max_norm);
  std::vector<Grad> clipped = grads;
  for (Grad &grad : clipped)
    if (grad.has_value())
      grad = Grad(Located(grad.value(), where) * Located(scale, where));
  return {std::move(clipped), std::move(total)};
}

} // namespace wg::optim
