// What is the gradient of several micro-batches? A sum beside each variable.
#include "wengert/optim/GradientAccumulator.h"

#include "frontend/optim/State.h"
#include "wengert/Function.h"

#include <algorithm>
#include <cmath>

namespace wg::optim {

GradientAccumulator::GradientAccumulator(const Parameters &parameters, Where where) {
  for (const auto &[name, variable] : parameters.named_variables()) {
    if (!runtime::isFloat(variable.dtype(where)))
      detail::raise({.kind = ErrorKind::type,
                     .op = "accumulate",
                     .message = "variable '" + name + "' is " +
                                toString(TensorType{variable.dtype(), variable.shape()}) +
                                ", and floats have gradients",
                     .remedy = "leave it out of the variables"},
                    where);
    variables_.push_back(variable);
    sums_.push_back(Variable(zeros(variable.shape(), variable.dtype(), where),
                             {.name = name + ".gradient", .trainable = false}, where));
    reasons_.push_back("no gradients were added");
  }
  known_ = Variable(zeros({static_cast<int64_t>(variables_.size())}, boolean, where),
                    {.name = "has_gradient", .trainable = false}, where);
  weight_ = Variable(Tensor(0.0), {.name = "weight", .trainable = false}, where);
}

std::vector<bool> GradientAccumulator::known() const {
  return at_trace_time([&] {
    std::vector<double> flags = known_.value().to_vector<double>();
    return std::vector<bool>(flags.begin(), flags.end());
  });
}

void GradientAccumulator::addAll(const std::vector<Grad> &grads, double weight, const Where &where) {
  detail::within("accumulate", "weight", weight, weight > 0 && std::isfinite(weight), "finite and more than 0", where);
  if (grads.size() != variables_.size())
    detail::raise(
        {.op = "accumulate",
         .message = std::to_string(grads.size()) + " gradients for " + std::to_string(variables_.size()) + " variables",
         .remedy = "pass the gradients of the variables that the accumulator was made with, in their order"},
        where);
  for (size_t i = 0; i < grads.size(); ++i)
    detail::checkGradient("accumulate", grads[i], variables_[i], where);
  std::vector<std::pair<Variable, Tensor>> changes{{weight_, weight_ + weight}};
  std::vector<detail::RowChange> rows;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].is_sparse()) {
      SparseRows merged = detail::merged(grads[i].sparse_rows(), where);
      rows.push_back({sums_[i], merged.indices, weight == 1 ? merged.rows : weight * merged.rows});
    } else if (grads[i].has_value()) {
      changes.emplace_back(sums_[i], sums_[i] + (weight == 1 ? grads[i].value() : weight * grads[i].value()));
    }
  std::vector<std::string> reasons = reasons_;
  const std::vector<bool> before = known();
  std::vector<bool> after = before;
  for (size_t i = 0; i < grads.size(); ++i) {
    after[i] = before[i] || grads[i].has_value();
    if (!grads[i].has_value())
      reasons[i] = grads[i].reason();
  }
  Tensor flags;
  if (after != before)
    flags = at_trace_time([&] { return Tensor::from(after); });
  if (flags.defined() && !tracing())
    changes.emplace_back(known_, flags);
  detail::assignAll(changes, where, rows);
  if (flags.defined() && tracing()) // a function that takes may be traced before this one runs
    at_trace_time([&] { known_.assign(flags); });
  reasons_.swap(reasons);
}

void GradientAccumulator::checkAny(const Where &where) const {
  if (!tracing() && weight_.item<double>(where) == 0)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "accumulate",
                   .message = "no gradients were added since the last reset",
                   .remedy = "add those of one micro-batch or more"},
                  where);
}

std::vector<Grad> GradientAccumulator::sum(Where where) const {
  checkAny(where);
  const std::vector<bool> known = this->known();
  std::vector<Grad> sums;
  for (size_t i = 0; i < sums_.size(); ++i)
    sums.push_back(known[i] ? Grad(sums_[i].value(where)) : Grad::none(reasons_[i]));
  return sums;
}

std::vector<Grad> GradientAccumulator::mean(Where where) const {
  std::vector<Grad> means = sum(where);
  Tensor total = weight_.value(where), weight = wg::where(total > 0.0, total, 1.0);
  for (Grad &grad : means)
    if (grad.has_value())
      grad = Grad(grad.value() / cast(weight, grad.value().dtype()));
  return means;
}

void GradientAccumulator::reset(Where where) {
  std::vector<std::pair<Variable, Tensor>> changes{{weight_, Tensor(0.0)}};
  for (const Variable &sum : sums_)
    changes.emplace_back(sum, zeros(sum.shape(), sum.dtype(), where));
  detail::assignAll(changes, where);
}

std::vector<Grad> GradientAccumulator::take_mean(Where where) {
  std::vector<Grad> taken = mean(where);
  reset(where);
  return taken;
}

std::vector<Grad> GradientAccumulator::take_sum(Where where) {
  std::vector<Grad> taken = sum(where);
  reset(where);
  return taken;
}

std::vector<nn::Module::Named> GradientAccumulator::named_state() const {
  std::vector<nn::Module::Named> named{{"weight", weight_}, {"has_gradient", known_}};
  for (const Variable &sum : sums_)
    named.emplace_back(sum.name(), sum);
  return named;
}

} // namespace wg::optim
