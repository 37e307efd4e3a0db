// Does the training still improve? The best value, how long ago it was, and the weights of then.
#include "wengert/optim/EarlyStopping.h"

#include "frontend/optim/State.h"
#include "wengert/Function.h"

#include <limits>

namespace wg::optim {

EarlyStopping::EarlyStopping(const Parameters &parameters, EarlyStoppingOptions options, Where where)
    : options_(options) {
  detail::within("early stopping", "patience", static_cast<double>(options.patience), options.patience >= 0,
                 "0 or more", where);
  detail::within("early stopping", "min_delta", options.min_delta, options.min_delta >= 0, "0 or more", where);
  for (const auto &[name, variable] : parameters.named_variables()) {
    variables_.push_back(variable);
    kept_.push_back(Variable(variable.value(where), {.name = name + ".best", .trainable = false}, where));
  }
  double worst = std::numeric_limits<double>::infinity();
  auto state = [&](const char *name, const Tensor &initial) {
    return Variable(initial, {.name = name, .trainable = false}, where);
  };
  best_ = state("best", Tensor(options.mode == Mode::min ? worst : -worst));
  count_ = state("count", Tensor(int64_t(0)));
  waited_ = state("waited", Tensor(int64_t(0)));
}

static void refuseTraces(const Where &where) {
  if (tracing())
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "early stopping",
                   .message = "a traced function has no values to compare yet",
                   .remedy = "call it outside the function"},
                  where);
}

bool EarlyStopping::update(const Located &value) {
  const Where &where = value.where();
  refuseTraces(where);
  double now = value.isLiteral() ? value.real() : value.tensor().item<double>(where), best = best_.item<double>();
  bool better = options_.mode == Mode::min ? now < best - options_.min_delta : now > best + options_.min_delta;
  int64_t waits = better ? 0 : waited() + 1;
  std::vector<std::pair<Variable, Tensor>> changes{{count_, Tensor(count() + 1)}, {waited_, Tensor(waits)}};
  if (better) {
    changes.emplace_back(best_, Tensor(now));
    for (size_t i = 0; i < kept_.size(); ++i)
      changes.emplace_back(kept_[i], variables_[i].value(where));
  }
  detail::assignAll(changes, where);
  return waits > 0 && waits >= options_.patience;
}

void EarlyStopping::restore_best_weights(Where where) const {
  refuseTraces(where);
  if (best_index() < 0)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "early stopping",
                   .message = "there is no best value yet",
                   .remedy = "call update(value) after each epoch"},
                  where);
  std::vector<std::pair<Variable, Tensor>> changes;
  for (size_t i = 0; i < kept_.size(); ++i)
    changes.emplace_back(variables_[i], kept_[i].value(where));
  detail::assignAll(changes, where);
}

std::vector<nn::Module::Named> EarlyStopping::named_state() const {
  std::vector<nn::Module::Named> named{{"best", best_}, {"count", count_}, {"waited", waited_}};
  for (const Variable &kept : kept_)
    named.emplace_back(kept.name(), kept);
  return named;
}

} // namespace wg::optim
