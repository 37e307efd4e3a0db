// How does each adaptive optimiser step?
#include "wengert/optim/Adaptive.h"

#include "frontend/optim/State.h"

#include <cmath>
#include <numbers>

namespace wg::optim {

using detail::normalOrZero;
using detail::within;

/// Rates of averages lie in [0, 1).
static void checkRates(std::initializer_list<std::pair<const char *, double>> rates, const Where &where) {
  for (const auto &[name, rate] : rates)
    within("optimizer", name, rate, rate >= 0 && rate < 1, "in [0, 1)", where);
}
static void checkNotNegative(const char *name, double value, const Where &where) {
  within("optimizer", name, value, value >= 0 && std::isfinite(value), "finite and 0 or more", where);
}
/// average + (1 - rate) (x - average), written as the papers write it.
static Tensor averaged(double rate, const Tensor &average, const Tensor &x) { return rate * average + (1 - rate) * x; }
/// 1 / (1 - rate^t), by expm1, as 1 - rate^t loses digits for small t.
static Tensor correction(double rate, const Tensor &t) { return -1.0 / expm1(t * std::log(rate)); }

AdamW::AdamW(Schedule learning_rate, AdamWOptions options, Where where)
    : Adam(std::move(learning_rate),
           {.beta_1 = options.beta_1,
            .beta_2 = options.beta_2,
            .epsilon = options.epsilon,
            .weight_decay = options.weight_decay,
            .amsgrad = options.amsgrad},
           where) {}

static std::vector<std::string> slotsOf(const RMSpropOptions &options) {
  std::vector<std::string> slots{"accumulator"};
  if (options.centered)
    slots.push_back("mean");
  if (options.momentum > 0)
    slots.push_back("velocity");
  return slots;
}
RMSprop::RMSprop(Schedule learning_rate, RMSpropOptions options, Where where)
    : Optimizer(std::move(learning_rate), slotsOf(options), where, options.weight_decay, options.l2),
      options_(options) {
  checkRates({{"rho", options.rho}, {"momentum", options.momentum}}, where);
  checkNotNegative("epsilon", options.epsilon, where);
}
void RMSprop::update(const Update &update) {
  const Variable &accumulator = slot(update, 0);
  const Tensor &g = update.gradient;
  Tensor a = averaged(options_.rho, accumulator, g * g), root = a;
  accumulator.assign(normalOrZero(a));
  if (options_.centered) {
    const Variable &mean = slot(update, 1);
    Tensor m = averaged(options_.rho, mean, g);
    mean.assign(normalOrZero(m));
    root = maximum(a - m * m, 0);
  }
  Tensor d = g / (sqrt(root) + options_.epsilon);
  if (options_.momentum > 0) {
    const Variable &velocity = slot(update, options_.centered ? 2 : 1);
    d = options_.momentum * velocity + d;
    velocity.assign(normalOrZero(d));
  }
  update.variable.assign_sub(rate(update) * d);
}

Adadelta::Adadelta(Schedule learning_rate, AdadeltaOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"accumulator", "updates"}, where, options.weight_decay, options.l2),
      options_(options) {
  checkRates({{"rho", options.rho}}, where);
  checkNotNegative("epsilon", options.epsilon, where);
}
void Adadelta::update(const Update &update) {
  const Variable &accumulator = slot(update, 0), &updates = slot(update, 1);
  const Tensor &g = update.gradient;
  Tensor a = averaged(options_.rho, accumulator, g * g);
  Tensor d = sqrt(updates + options_.epsilon) / sqrt(a + options_.epsilon) * g;
  accumulator.assign(normalOrZero(a));
  updates.assign(normalOrZero(averaged(options_.rho, updates, d * d)));
  update.variable.assign_sub(rate(update) * d);
}

Adamax::Adamax(Schedule learning_rate, AdamaxOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"m", "u"}, where, options.weight_decay, options.l2), options_(options) {
  checkRates({{"beta_1", options.beta_1}, {"beta_2", options.beta_2}}, where);
  checkNotNegative("epsilon", options.epsilon, where);
}
void Adamax::update(const Update &update) {
  const Variable &first = slot(update, 0), &norm = slot(update, 1);
  const Tensor &g = update.gradient;
  Tensor t = cast(update.step, g.dtype());
  Tensor m = averaged(options_.beta_1, first, g), u = maximum(options_.beta_2 * norm, abs(g));
  first.assign(normalOrZero(m));
  norm.assign(normalOrZero(u));
  update.variable.assign_sub(rate(update) * correction(options_.beta_1, t) * m / (u + options_.epsilon));
}

NAdam::NAdam(Schedule learning_rate, NAdamOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"m", "v"}, where, options.weight_decay, options.l2, {"log_momentum"}),
      options_(options) {
  checkRates({{"beta_1", options.beta_1}, {"beta_2", options.beta_2}}, where);
  checkNotNegative("epsilon", options.epsilon, where);
  checkNotNegative("momentum_decay", options.momentum_decay, where);
}
/// The factors of g and of m are computed in f64: with M_t = exp(log_momentum), 1 - M_t = -expm1(log_momentum).
void NAdam::update(const Update &update) {
  const Variable &first = slot(update, 0), &second = slot(update, 1), &product = slot(update, 2);
  const Tensor &g = update.gradient;
  DType dtype = g.dtype();
  Tensor t = cast(update.step, f64);
  auto mu = [&](const Tensor &t) {
    return options_.beta_1 * (1 - 0.5 * exp(t * (options_.momentum_decay * std::log(0.96))));
  };
  Tensor now = mu(t), next = mu(t + 1);
  Tensor until = product + log(now), after = until + log(next);
  product.assign(until);
  Tensor byGradient = cast((now - 1) / expm1(until), dtype), byMoment = cast(-next / expm1(after), dtype);
  Tensor m = averaged(options_.beta_1, first, g), v = averaged(options_.beta_2, second, g * g);
  first.assign(normalOrZero(m));
  second.assign(normalOrZero(v));
  Tensor root = sqrt(v * cast(correction(options_.beta_2, t), dtype)) + options_.epsilon;
  update.variable.assign_sub(rate(update) * (byMoment * m + byGradient * g) / root);
}

Lion::Lion(Schedule learning_rate, LionOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"m"}, where, options.weight_decay), options_(options) {
  checkRates({{"beta_1", options.beta_1}, {"beta_2", options.beta_2}}, where);
}
void Lion::update(const Update &update) {
  const Variable &first = slot(update, 0);
  const Tensor &g = update.gradient;
  Tensor direction = sign(averaged(options_.beta_1, first, g));
  first.assign(normalOrZero(averaged(options_.beta_2, first, g)));
  update.variable.assign_sub(rate(update) * direction);
}

Lamb::Lamb(Schedule learning_rate, LambOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"m", "v"}, where), options_(options) {
  checkRates({{"beta_1", options.beta_1}, {"beta_2", options.beta_2}}, where);
  checkNotNegative("epsilon", options.epsilon, where);
  checkNotNegative("scaled_weight_decay", options.scaled_weight_decay, where);
}
void Lamb::update(const Update &update) {
  const Variable &first = slot(update, 0), &second = slot(update, 1);
  const Tensor &g = update.gradient;
  Tensor t = cast(update.step, g.dtype()), p = update.variable;
  Tensor m = averaged(options_.beta_1, first, g), v = averaged(options_.beta_2, second, g * g);
  first.assign(normalOrZero(m));
  second.assign(normalOrZero(v));
  Tensor r = m * correction(options_.beta_1, t) / (sqrt(v * correction(options_.beta_2, t)) + options_.epsilon);
  if (options_.scaled_weight_decay > 0)
    r = r + options_.scaled_weight_decay * p;
  Tensor weight = norm(p), length = norm(r), trust = where(weight == 0 || length == 0, 1, weight / length);
  update.variable.assign_sub(rate(update) * trust * r);
}

} // namespace wg::optim
