// How does a step change the parameters? Each optimiser's formula, and what all of them share: slots, counts, warnings.
#include "wengert/optim/Optimizer.h"

#include "frontend/api/Sparse.h"
#include "frontend/ops/Operands.h"
#include "frontend/optim/State.h"
#include "wengert/Function.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <typeinfo>

namespace wg::optim {

using detail::isSubnormal;
using detail::normalOrZero;
using detail::within;

static double checkedRate(double rate, const Where &where) {
  return within("optimizer", "learning_rate", rate, rate >= 0 && std::isfinite(rate), "finite and 0 or more", where);
}
static double checkedDecay(double decay, const Where &where) {
  return within("optimizer", "weight_decay", decay, decay >= 0 && std::isfinite(decay), "finite and 0 or more", where);
}
static double checkedFactor(double factor, const Where &where) {
  return within("optimizer", "learning_rate_factor", factor, factor >= 0 && std::isfinite(factor),
                "finite and 0 or more", where);
}

using Named = nn::Module::Named;

struct Optimizer::State {
  /// What the optimiser knows of a variable. Variables first seen in one call count their steps together.
  struct Seen {
    int64_t id;
    Variable step;
    std::vector<Variable> slots;
    bool warned = false;
  };
  /// The places of the variables in `seen`, which has all of them afterwards.
  std::vector<size_t> see(const std::vector<Named> &variables, const Where &where);
  Variable makeSlot(const Tensor &initial, const std::string &name);
  /// Takes back what was made beyond so many variables and slots.
  void forget(size_t seenBefore, size_t slotsBefore);

  std::mutex mutex; ///< held by apply, build and named_slots
  std::vector<std::string> slotNames, scalarNames;
  Schedule schedule;
  double weightDecay, l2;
  Variable rate;
  std::vector<ParameterGroup> groups = {};
  std::map<int64_t, size_t> groupOf = {}; ///< in `groups`, by the variable's id
  std::vector<Seen> seen = {};
  std::map<int64_t, size_t> placeOf = {}; ///< in `seen`, by the variable's id
  std::vector<Variable> slots = {};
  std::set<std::string> names = {};        ///< of the slots
  std::map<std::string, int> numbers = {}; ///< the last that a name got
};

Optimizer::Optimizer(Schedule learning_rate, std::vector<std::string> slots, Where where, double weight_decay,
                     double l2, std::vector<std::string> scalars)
    : state_(new State{.mutex = {},
                       .slotNames = std::move(slots),
                       .scalarNames = std::move(scalars),
                       .schedule = std::move(learning_rate),
                       .weightDecay = checkedDecay(weight_decay, where),
                       .l2 = within("optimizer", "l2", l2, l2 >= 0 && std::isfinite(l2), "finite and 0 or more", where),
                       .rate = {}}) {
  state_->rate =
      Variable(checkedRate(state_->schedule.at(0, where), where), {.name = "learning_rate", .trainable = false}, where);
}
Optimizer::~Optimizer() = default;

double Optimizer::learning_rate() const { return state_->rate.item<double>(); }
const std::vector<Variable> &Optimizer::slots() const { return state_->slots; }
const Variable &Optimizer::slot(const Update &update, size_t which) const {
  return state_->seen[update.index].slots[which];
}

void Optimizer::set_learning_rate(double rate, Where where) const {
  checkedRate(rate, where);
  if (!state_->schedule.is_constant())
    detail::raise({.op = "optimizer",
                   .message = "the learning rate follows a schedule, which would set it again in the next step",
                   .remedy = "make the optimiser with a number: Adam(0.001)"},
                  where);
  state_->rate.assign(Located(Tensor(rate), where));
}

Tensor Optimizer::rate(const Update &update) {
  DType dtype = update.variable.dtype();
  return dtype == f64 ? update.rate : cast(update.rate, dtype);
}

ParameterGroup::ParameterGroup(Variable factor, double weightDecay)
    : factor_(std::move(factor)), weightDecay_(weightDecay) {}
double ParameterGroup::learning_rate_factor() const { return factor_.item<double>(); }
void ParameterGroup::set_learning_rate_factor(double factor, Where where) const {
  factor_.assign(Located(Tensor(checkedFactor(factor, where)), where));
}

/// Nothing is added unless all of it is.
ParameterGroup Optimizer::add_group(const Parameters &parameters, GroupOptions options, Where where) {
  double factor = checkedFactor(options.learning_rate_factor, where),
         decay = checkedDecay(options.weight_decay.value_or(state_->weightDecay), where);
  std::lock_guard lock(state_->mutex);
  std::map<int64_t, size_t> groupOf = state_->groupOf;
  for (const auto &[name, variable] : parameters.named_variables()) {
    auto refuse = [&](const char *why, const char *remedy) {
      detail::raise({.op = "add_group", .message = "variable '" + name + "' " + why, .remedy = remedy}, where);
    };
    if (!runtime::isFloat(variable.dtype(where)))
      refuse("is not a float, and a step changes floats only", "leave it out of the group");
    if (state_->placeOf.contains(variable.id()))
      refuse("has been stepped or built with the optimiser's own rate and decay",
             "add the groups before the first apply and before build");
    if (!groupOf.emplace(variable.id(), state_->groups.size()).second)
      refuse("is in a group already", "name each variable in one group");
  }
  ParameterGroup group(
      at_trace_time([&] { return Variable(factor, {.name = "learning_rate_factor", .trainable = false}, where); }),
      decay);
  state_->groups.push_back(group);
  state_->groupOf.swap(groupOf);
  return group;
}

std::vector<std::pair<std::string, Variable>> Optimizer::named_slots() const {
  std::lock_guard lock(state_->mutex);
  std::vector<std::pair<std::string, Variable>> named;
  for (const Variable &slot : state_->slots)
    named.emplace_back(slot.name(), slot);
  return named;
}

std::vector<Named> Optimizer::named_state() const {
  std::vector<Named> named = named_slots();
  std::lock_guard lock(state_->mutex);
  named.emplace_back("learning_rate", state_->rate);
  for (size_t i = 0; i < state_->groups.size(); ++i)
    named.emplace_back("learning_rate_factor" + (i ? "_" + std::to_string(i) : ""), state_->groups[i].factor_);
  return named;
}

/// Names that exist already get a number: `weight.m`, `weight.m_1`. A name is taken if its slot is made.
Variable Optimizer::State::makeSlot(const Tensor &initial, const std::string &name) {
  std::string unique = name;
  // From the last number of this name on: layers are many and their names few.
  for (int &number = numbers[name]; names.contains(unique);)
    unique = name + "_" + std::to_string(++number);
  slots.push_back(Variable(initial, {.name = unique, .trainable = false}));
  names.insert(unique);
  return slots.back();
}

void Optimizer::State::forget(size_t seenBefore, size_t slotsBefore) {
  for (; seen.size() > seenBefore; seen.pop_back())
    placeOf.erase(seen.back().id);
  for (; slots.size() > slotsBefore; slots.pop_back())
    names.erase(slots.back().name());
  numbers.clear(); // counted anew
}

/// What a failure leaves behind is forgotten: the next call names its slots as this one would have.
std::vector<size_t> Optimizer::State::see(const std::vector<Named> &variables, const Where &where) {
  const size_t seenBefore = seen.size(), slotsBefore = slots.size();
  Variable step; // the count of the variables seen for the first time in this call
  std::vector<size_t> places;
  try {
    for (const auto &[name, variable] : variables) {
      const TensorType type{variable.dtype(where), variable.shape(where)};
      auto known = placeOf.find(variable.id());
      if (known == placeOf.end())
        known = at_trace_time([&] {
          if (!step.defined())
            step = makeSlot(Tensor(int64_t(0)), "step");
          Seen fresh{variable.id(), step, {}};
          for (const std::string &slot : slotNames)
            if (runtime::isFloat(type.dtype))
              fresh.slots.push_back(makeSlot(zeros(type.shape, type.dtype, where), name + "." + slot));
          for (const std::string &scalar : scalarNames)
            if (runtime::isFloat(type.dtype))
              fresh.slots.push_back(makeSlot(Tensor(0.0), name + "." + scalar));
          seen.push_back(std::move(fresh));
          return placeOf.emplace(variable.id(), seen.size() - 1).first;
        });
      places.push_back(known->second);
    }
  } catch (...) {
    forget(seenBefore, slotsBefore);
    throw;
  }
  return places;
}

void Optimizer::buildAll(const detail::NamedVariables &variables, const Where &where) {
  std::lock_guard lock(state_->mutex);
  state_->see(variables.list, where);
}

void Optimizer::apply(std::initializer_list<Grad> grads, std::initializer_list<Variable> variables, Where where) {
  applyAll(std::vector<Grad>(grads), detail::NamedVariables(std::vector<Variable>(variables)), where);
}

void Optimizer::applyAll(const std::vector<Grad> &grads, const detail::NamedVariables &named, const Where &where) {
  const std::vector<Named> &variables = named.list;
  if (grads.size() != variables.size())
    detail::raise(
        {.op = "apply",
         .message = std::to_string(grads.size()) + " gradients for " + std::to_string(variables.size()) + " variables",
         .remedy = "pass what tape.gradient(loss, variables) returned, and the same variables"},
        where);
  if (variables.empty())
    return;
  if (std::none_of(grads.begin(), grads.end(), [](const Grad &grad) { return grad.has_value(); }))
    detail::raise(
        {.op = "apply",
         .message = "No gradients provided for any variable. The first is empty because: " + grads[0].reason(),
         .remedy = "compute the loss from the variables while the tape records"},
        where);

  for (size_t i = 0; i < variables.size(); ++i)
    detail::checkGradient("apply", grads[i], variables[i].second, where, variables[i].first);

  // A step that fails half way, for lack of memory, puts back what it changed; a trace
  // that fails is dropped as a whole.
  std::lock_guard lock(state_->mutex);
  const size_t seenBefore = state_->seen.size(), slotsBefore = state_->slots.size();
  std::vector<std::pair<std::shared_ptr<detail::VariableState>, Tensor>> before;
  auto keep = [&](const Variable &variable) {
    before.emplace_back(variable.state(), detail::currentValue(variable.state(), where));
  };
  try {
    std::vector<size_t> places = state_->see(variables, where);
    if (!detail::level().trace) {
      if (!state_->schedule.is_constant())
        keep(state_->rate);
      for (size_t i = 0; i < variables.size(); ++i) {
        keep(state_->seen[places[i]].step);
        if (stepsRows(grads, variables, i) && decayOf(variables[i].second) == 0)
          continue; // it changes when nothing fails any more, and in its own memory
        keep(variables[i].second);
        std::for_each(state_->seen[places[i]].slots.begin(), state_->seen[places[i]].slots.end(), keep);
      }
    }
    step(grads, named, places);
  } catch (...) {
    detail::exchangeValues(before);
    state_->forget(seenBefore, slotsBefore);
    throw;
  }
}

double Optimizer::decayOf(const Variable &variable) const {
  auto known = state_->groupOf.find(variable.id());
  return known == state_->groupOf.end() ? state_->weightDecay : state_->groups[known->second].weightDecay_;
}

bool Optimizer::takesRows() const { return false; }
/// One that is there twice is stepped twice, one after the other.
bool Optimizer::stepsRows(const std::vector<Grad> &grads, const std::vector<Named> &variables, size_t i) const {
  return grads[i].is_sparse() && state_->l2 == 0 && takesRows() &&
         std::count_if(variables.begin(), variables.end(),
                       [&](const Named &other) { return other.second.is(variables[i].second); }) == 1;
}
std::vector<Optimizer::Row> Optimizer::updateRows(const Update &, const SparseRows &) { return {}; }

/// One step of each variable, whose place among those seen is `places`.
void Optimizer::step(const std::vector<Grad> &grads, const detail::NamedVariables &named,
                     const std::vector<size_t> &places) {
  const std::vector<Named> &variables = named.list;
  struct Step {
    Variable count;
    Tensor next, rate;
  };
  std::vector<Step> steps; // one for each set of variables that count together
  for (size_t place : places) {
    const Variable &count = state_->seen[place].step;
    if (std::any_of(steps.begin(), steps.end(), [&](const Step &each) { return each.count.is(count); }))
      continue;
    auto [before, after] = detail::increment(count);
    steps.push_back({count, after, state_->schedule.is_constant() ? state_->rate.value() : state_->schedule(before)});
  }
  if (!state_->schedule.is_constant())
    state_->rate.assign(steps.back().rate);
  std::vector<detail::RowChange> changes; // of rows, when all else is done
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto &[name, variable] = variables[i];
    State::Seen &seen = state_->seen[places[i]];
    if (grads[i].has_value()) {
      auto step = std::find_if(steps.begin(), steps.end(), [&](const Step &each) { return each.count.is(seen.step); });
      auto known = state_->groupOf.find(variable.id());
      const ParameterGroup *group = known == state_->groupOf.end() ? nullptr : &state_->groups[known->second];
      Tensor rate = group ? step->rate * group->factor_ : step->rate;
      bool byRows = stepsRows(grads, variables, i);
      Tensor whole = byRows ? Tensor() : grads[i].value();
      if (state_->l2 > 0)
        whole = whole + state_->l2 * variable;
      Update each{variable, whole, places[i], step->next, rate};
      if (double decay = decayOf(variable); decay > 0)
        variable.assign_sub(cast(rate * decay, variable.dtype()) * variable);
      if (byRows)
        for (Row &row : updateRows(each, detail::merged(grads[i].sparse_rows(), {})))
          changes.push_back({std::move(row.variable), std::move(row.indices), std::move(row.rows)});
      else
        update(each);
    } else if (!seen.warned) {
      seen.warned = true;
      std::clog << "warning: Gradients do not exist for variables [" << name
                << "] when minimizing the loss: " << grads[i].reason() << "\n";
    }
  }
  detail::addRows(changes, {});
}

SGD::SGD(Schedule learning_rate, SGDOptions options, Where where)
    : Optimizer(std::move(learning_rate), {}, where, options.weight_decay) {}

void SGD::update(const Update &update) { update.variable.assign_sub(rate(update) * update.gradient); }
// A class of the user's that steps in another manner says so for rows, too.
bool SGD::takesRows() const { return typeid(*this) == typeid(SGD); }
std::vector<Optimizer::Row> SGD::updateRows(const Update &update, const SparseRows &g) {
  return {{update.variable, g.indices, -(rate(update) * g.rows)}};
}

Adagrad::Adagrad(Schedule learning_rate, AdagradOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"accumulator"}, where, options.weight_decay, options.l2),
      constant_(options.initial_accumulator + options.epsilon) {
  for (auto [name, value] :
       {std::pair("initial_accumulator", options.initial_accumulator), std::pair("epsilon", options.epsilon)})
    within("optimizer", name, value, value >= 0 && std::isfinite(value), "finite and 0 or more", where);
}

void Adagrad::update(const Update &update) {
  const Variable &accumulator = slot(update, 0);
  const Tensor &g = update.gradient;
  Tensor a = accumulator + g * g;
  accumulator.assign(a);
  update.variable.assign_sub(rate(update) * g / sqrt(a + constant_));
}

bool Adagrad::takesRows() const { return typeid(*this) == typeid(Adagrad); }
std::vector<Optimizer::Row> Adagrad::updateRows(const Update &update, const SparseRows &g) {
  const Variable &accumulator = slot(update, 0);
  Tensor squares = g.rows * g.rows, a = gather(accumulator, g.indices) + squares;
  Tensor change = -(rate(update) * g.rows / sqrt(a + constant_));
  if (constant_ == 0) // 0 / 0 at the other places of a row
    change = where(detail::firstPlaces(g, {}), change, 0);
  return {{accumulator, g.indices, squares}, {update.variable, g.indices, change}};
}

Momentum::Momentum(Schedule learning_rate, double momentum, bool nesterov, double weight_decay, bool lazy, Where where)
    : Momentum(std::move(learning_rate),
               {.momentum = momentum, .nesterov = nesterov, .weight_decay = weight_decay, .lazy = lazy}, where) {}
Momentum::Momentum(Schedule learning_rate, MomentumOptions options, Where where)
    : Optimizer(std::move(learning_rate), {"velocity"}, where, options.weight_decay, options.l2),
      momentum_(within("optimizer", "momentum", options.momentum, options.momentum >= 0 && options.momentum <= 1,
                       "in [0, 1]", where)),
      nesterov_(options.nesterov), lazy_(options.lazy) {}

void Momentum::update(const Update &update) {
  const Variable &velocity = slot(update, 0);
  Tensor v = momentum_ * velocity + update.gradient;
  velocity.assign(normalOrZero(v));
  update.variable.assign_sub(rate(update) * (nesterov_ ? update.gradient + momentum_ * v : v));
}

/// What brings the rows of `from` at these indices to `to`; each row once, at its first place.
static Tensor stepTo(const Tensor &to, const Tensor &from, const Tensor &isFirst) {
  return where(isFirst, to - from, 0);
}

bool Momentum::takesRows() const { return lazy_ && typeid(*this) == typeid(Momentum); }
std::vector<Optimizer::Row> Momentum::updateRows(const Update &update, const SparseRows &g) {
  const Variable &velocity = slot(update, 0);
  Tensor before = gather(velocity, g.indices), isFirst = detail::firstPlaces(g, {}), v = momentum_ * before + g.rows;
  return {{velocity, g.indices, stepTo(normalOrZero(v), before, isFirst)},
          {update.variable, g.indices, where(isFirst, -(rate(update) * (nesterov_ ? g.rows + momentum_ * v : v)), 0)}};
}

Adam::Adam(Schedule learning_rate, AdamOptions options, Where where)
    : Optimizer(std::move(learning_rate),
                options.amsgrad ? std::vector<std::string>{"m", "v", "v_max"} : std::vector<std::string>{"m", "v"},
                where, options.weight_decay, options.l2),
      options_(options) {
  within("optimizer", "beta_1", options.beta_1, options.beta_1 >= 0 && options.beta_1 < 1, "in [0, 1)", where);
  within("optimizer", "beta_2", options.beta_2, options.beta_2 >= 0 && options.beta_2 < 1, "in [0, 1)", where);
  within("optimizer", "epsilon", options.epsilon, options.epsilon >= 0 && std::isfinite(options.epsilon),
         "finite and 0 or more", where);
}

namespace {
/// What a step of Adam makes of the moments m and v, and of the largest v with `amsgrad`, by the gradient g.
struct AdamStep {
  Tensor m, v, largest, change;
};
} // namespace

/// With 1 - b^t written as -expm1(t log b): for small t the difference itself would lose
/// 1e-5 of the first steps in f32.
static AdamStep adamStep(const AdamOptions &options, const Tensor &rate, const Tensor &count, const Tensor &first,
                         const Tensor &second, const Tensor &largest, const Tensor &g) {
  Tensor t = cast(count, g.dtype());
  Tensor step = -rate / expm1(t * std::log(options.beta_1)), correction = -1.0 / expm1(t * std::log(options.beta_2));
  Tensor m = options.beta_1 * first + (1 - options.beta_1) * g,
         v = options.beta_2 * second + (1 - options.beta_2) * (g * g);
  Tensor kept = normalOrZero(m), most = options.amsgrad ? maximum(largest, v) : v;
  return {kept, where(kept == 0 && isSubnormal(v), 0, v), // beside an m that is not 0, a small v counts
          most, step * m / (sqrt(most * correction) + options.epsilon)};
}

void Adam::update(const Update &update) {
  const Variable &first = slot(update, 0), &second = slot(update, 1);
  Tensor largest = options_.amsgrad ? slot(update, 2).value() : Tensor();
  AdamStep next = adamStep(options_, rate(update), update.step, first, second, largest, update.gradient);
  first.assign(next.m);
  second.assign(next.v);
  if (options_.amsgrad)
    slot(update, 2).assign(next.largest);
  update.variable.assign_sub(next.change);
}

bool Adam::takesRows() const { return options_.lazy && typeid(*this) == typeid(Adam); }
std::vector<Optimizer::Row> Adam::updateRows(const Update &update, const SparseRows &g) {
  const Variable &first = slot(update, 0), &second = slot(update, 1);
  Tensor m = gather(first, g.indices), v = gather(second, g.indices), isFirst = detail::firstPlaces(g, {});
  Tensor largest = options_.amsgrad ? gather(slot(update, 2), g.indices) : Tensor();
  AdamStep next = adamStep(options_, rate(update), update.step, m, v, largest, g.rows);
  std::vector<Row> rows{{first, g.indices, stepTo(next.m, m, isFirst)},
                        {second, g.indices, stepTo(next.v, v, isFirst)},
                        {update.variable, g.indices, where(isFirst, -next.change, 0)}};
  if (options_.amsgrad)
    rows.push_back({slot(update, 2), g.indices, stepTo(next.largest, largest, isFirst)});
  return rows;
}

std::pair<std::vector<Grad>, Tensor> clip_by_global_norm(const std::vector<Grad> &grads, const Located &max_norm) {
  Where where = max_norm.where();
  if (max_norm.isLiteral())
    within("optimizer", "max_norm", max_norm.real(), max_norm.real() >= 0, "0 or more", where);
  Tensor sum;
  for (const Grad &grad : grads)
    if (grad.has_value()) {
      // What is added at one index is one row.
      Tensor value = grad.is_sparse() ? detail::merged(grad.sparse_rows(), where).rows : grad.value();
      Tensor squares = reduce_sum(square(Located(value, where)));
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
    if (grad.is_sparse())
      grad = Grad(SparseRows{grad.sparse_rows().indices,
                             Located(grad.sparse_rows().rows, where) * Located(scale, where), grad.shape()},
                  where);
    else if (grad.has_value())
      grad = Grad(Located(grad.value(), where) * Located(scale, where));
  return {std::move(clipped), std::move(total)};
}

} // namespace wg::optim
