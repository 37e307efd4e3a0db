// Where is a smooth function lowest? The method, on one vector of doubles; tensors at its border.
#include "wengert/optim/Lbfgs.h"

#include "frontend/ops/Operands.h"
#include "frontend/optim/State.h"
#include "wengert/GradientTape.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

namespace wg::optim {

namespace {

using Vector = std::vector<double>;

double dot(const Vector &a, const Vector &b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
double largest(const Vector &a) {
  double most = 0;
  for (double each : a)
    most = std::max(most, std::abs(each));
  return most;
}

/// A point with the value and the gradient there.
struct Point {
  Vector x, g;
  double value = 0;
};
/// A point of a line search: how far along the direction, and the slope there.
struct Trial {
  double step = 0, slope = 0;
  Point point;
};

class Minimizer {
public:
  using Evaluate = std::function<double(Vector &x, Vector &g)>;
  Minimizer(const Evaluate &evaluate, const LbfgsOptions &options, const LbfgsHistory::Pairs &pairs)
      : evaluate_(evaluate), options_(options) {
    for (const auto &[s, y] : pairs)
      pairs_.push_back({s, y, 1 / dot(s, y)});
  }
  /// Ends at the best point, which `at` then is.
  LbfgsResult run(Point &at);
  LbfgsHistory::Pairs pairs() const {
    LbfgsHistory::Pairs pairs;
    for (const Pair &pair : pairs_)
      pairs.emplace_back(pair.s, pair.y);
    return pairs;
  }
  bool isExhausted() const { return evaluations_ >= options_.max_evaluations; }

private:
  Vector direction(const Vector &g) const;
  std::optional<Trial> search(const Point &from, const Vector &d, double slope, double first);
  std::optional<Trial> zoom(const Point &from, const Vector &d, double slope, Trial low, Trial high);
  Trial tried(const Point &from, const Vector &d, double step);
  bool isLower(const Trial &trial, const Point &from, double slope) const {
    return trial.point.value <= from.value + options_.c1 * trial.step * slope;
  }

  struct Pair {
    Vector s, y; ///< the step, and the change of the gradient
    double rho;  ///< 1 / (s . y)
  };
  const Evaluate &evaluate_;
  const LbfgsOptions &options_;
  std::deque<Pair> pairs_;
  int64_t evaluations_ = 0;
};

/// -H g by the two-loop recursion (algorithm 7.4), the first guess of H being s . y / y . y of the last pair.
Vector Minimizer::direction(const Vector &g) const {
  Vector q = g, alpha(pairs_.size());
  for (size_t i = pairs_.size(); i-- > 0;) {
    alpha[i] = pairs_[i].rho * dot(pairs_[i].s, q);
    for (size_t j = 0; j < q.size(); ++j)
      q[j] -= alpha[i] * pairs_[i].y[j];
  }
  double scale = pairs_.empty() ? 1 : 1 / (pairs_.back().rho * dot(pairs_.back().y, pairs_.back().y));
  for (double &each : q)
    each *= scale;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    double beta = pairs_[i].rho * dot(pairs_[i].y, q);
    for (size_t j = 0; j < q.size(); ++j)
      q[j] += (alpha[i] - beta) * pairs_[i].s[j];
  }
  for (double &each : q)
    each = -each;
  return q;
}

Trial Minimizer::tried(const Point &from, const Vector &d, double step) {
  Trial trial{step, 0, {Vector(d.size()), Vector(d.size())}};
  for (size_t i = 0; i < d.size(); ++i)
    trial.point.x[i] = from.x[i] + step * d[i];
  trial.point.value = evaluate_(trial.point.x, trial.point.g);
  ++evaluations_;
  trial.slope = dot(trial.point.g, d);
  if (!std::isfinite(trial.point.value) || !std::isfinite(trial.slope))
    trial.point.value = std::numeric_limits<double>::infinity();
  return trial;
}

/// Algorithm 3.5: steps that grow until an interval has points that fulfil both conditions.
std::optional<Trial> Minimizer::search(const Point &from, const Vector &d, double slope, double first) {
  Trial before{0, slope, from};
  for (double step = first; !isExhausted(); step *= 2) {
    Trial now = tried(from, d, step);
    if (!isLower(now, from, slope) || (before.step > 0 && now.point.value >= before.point.value))
      return zoom(from, d, slope, std::move(before), std::move(now));
    if (std::abs(now.slope) <= -options_.c2 * slope)
      return now;
    if (now.slope >= 0)
      return zoom(from, d, slope, std::move(now), std::move(before));
    before = std::move(now);
  }
  return before.step > 0 ? std::optional(std::move(before)) : std::nullopt;
}

/// The minimum of the cubic through both values and slopes (equation 3.59), kept away from the ends; the middle where
/// it has none.
static double between(const Trial &a, const Trial &b) {
  double width = b.step - a.step, middle = a.step + width / 2;
  if (!std::isfinite(b.point.value))
    return middle;
  double d1 = a.slope + b.slope - 3 * (a.point.value - b.point.value) / (a.step - b.step);
  double root = d1 * d1 - a.slope * b.slope;
  if (!(root >= 0))
    return middle;
  double d2 = std::copysign(std::sqrt(root), width);
  double step = b.step - width * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
  double share = (step - a.step) / width;
  return share >= 0.1 && share <= 0.9 ? step
         : share > 0.9                ? a.step + 0.9 * width
         : share < 0.1                ? a.step + 0.1 * width
                                      : middle;
}

/// Algorithm 3.6: `low` is the best so far of those that are low enough, and its slope leads towards `high`.
std::optional<Trial> Minimizer::zoom(const Point &from, const Vector &d, double slope, Trial low, Trial high) {
  constexpr int kMost = 40;
  for (int i = 0; i < kMost && !isExhausted(); ++i) {
    double step = between(low, high);
    if (step == low.step || step == high.step)
      break;
    Trial now = tried(from, d, step);
    if (!isLower(now, from, slope) || now.point.value >= low.point.value) {
      high = std::move(now);
      continue;
    }
    if (std::abs(now.slope) <= -options_.c2 * slope)
      return now;
    if (now.slope * (high.step - low.step) >= 0)
      high = std::move(low);
    low = std::move(now);
  }
  // As low as numbers can tell.
  return low.step > 0 && low.point.value < from.value ? std::optional(std::move(low)) : std::nullopt;
}

LbfgsResult Minimizer::run(Point &at) {
  LbfgsResult result;
  auto end = [&](bool converged, std::string reason) {
    result.value = at.value;
    result.gradient = largest(at.g);
    result.evaluations = evaluations_;
    result.converged = converged;
    result.reason = std::move(reason);
    return result;
  };
  at.value = evaluate_(at.x, at.g);
  ++evaluations_;
  for (;; ++result.iterations) {
    if (!std::isfinite(at.value) || !std::isfinite(dot(at.g, at.g)))
      return end(false, "the value or its gradient is not finite");
    if (largest(at.g) <= options_.gradient_tolerance)
      return end(true, "the gradient is within its tolerance");
    if (result.iterations >= options_.max_iterations)
      return end(false, "max_iterations were made");
    if (isExhausted())
      return end(false, "max_evaluations were made");
    Vector d = direction(at.g);
    double slope = dot(at.g, d);
    if (!(slope < 0)) { // by rounding, where the pairs are nearly dependent
      pairs_.clear();
      d = direction(at.g);
      slope = dot(at.g, d);
    }
    double first = pairs_.empty() ? std::min(1.0, 1 / std::sqrt(dot(at.g, at.g))) : 1;
    std::optional<Trial> next = search(at, d, slope, first);
    if (!next && !pairs_.empty() && !isExhausted()) {
      pairs_.clear();
      --result.iterations;
      continue; // once more, along the gradient
    }
    if (!next)
      return end(false, isExhausted() ? "max_evaluations were made" : "no step lowers the value any more");
    Pair pair{Vector(at.x.size()), Vector(at.x.size()), 0};
    for (size_t i = 0; i < at.x.size(); ++i)
      pair.s[i] = next->point.x[i] - at.x[i], pair.y[i] = next->point.g[i] - at.g[i];
    double curvature = dot(pair.s, pair.y), before = at.value;
    at = std::move(next->point);
    if (curvature > std::numeric_limits<double>::epsilon() * dot(pair.y, pair.y)) {
      pair.rho = 1 / curvature;
      pairs_.push_back(std::move(pair));
      if (pairs_.size() > static_cast<size_t>(options_.history))
        pairs_.pop_front();
    }
    if (options_.value_tolerance > 0 &&
        before - at.value <= options_.value_tolerance * std::max({std::abs(before), std::abs(at.value), 1e-300})) {
      ++result.iterations;
      return end(true, "the value changed within its tolerance");
    }
  }
}

/// The elements of all parameters.
int64_t elementsOf(const Parameters &parameters, const Where &where) {
  int64_t elements = 0;
  for (const auto &[name, variable] : parameters.named_variables()) {
    if (!runtime::isFloat(variable.dtype(where)))
      detail::raise({.kind = ErrorKind::type,
                     .op = "minimize_lbfgs",
                     .message = "variable '" + name + "' is " +
                                toString(TensorType{variable.dtype(), variable.shape()}) +
                                ", and a step changes floats only",
                     .remedy = "leave it out of the variables"},
                    where);
    elements += variable.shape().numElements();
  }
  return elements;
}

void checkOptions(const LbfgsOptions &options, const Where &where) {
  auto check = [&](const char *name, double value, bool fits, const char *range) {
    detail::within("minimize_lbfgs", name, value, fits, range, where);
  };
  check("max_iterations", static_cast<double>(options.max_iterations), options.max_iterations >= 0, "0 or more");
  check("max_evaluations", static_cast<double>(options.max_evaluations), options.max_evaluations >= 1, "1 or more");
  check("history", static_cast<double>(options.history), options.history >= 1, "1 or more");
  check("gradient_tolerance", options.gradient_tolerance, options.gradient_tolerance >= 0, "0 or more");
  check("value_tolerance", options.value_tolerance, options.value_tolerance >= 0, "0 or more");
  check("c1", options.c1, options.c1 > 0 && options.c1 < options.c2, "in (0, c2)");
  check("c2", options.c2, options.c2 < 1, "less than 1");
}

} // namespace

LbfgsHistory::LbfgsHistory(const Parameters &parameters, int64_t pairs, Where where) {
  detail::within("minimize_lbfgs", "history", static_cast<double>(pairs), pairs >= 1, "1 or more", where);
  const Shape shape{pairs, elementsOf(parameters, where)};
  auto state = [&](const char *name, const Tensor &initial) {
    return Variable(initial, {.name = name, .trainable = false}, where);
  };
  steps_ = state("steps", zeros(shape, f64, where));
  changes_ = state("changes", zeros(shape, f64, where));
  count_ = state("count", Tensor(int64_t(0)));
}

std::vector<nn::Module::Named> LbfgsHistory::named_state() const {
  return {{"steps", steps_}, {"changes", changes_}, {"count", count_}};
}

LbfgsHistory::Pairs LbfgsHistory::pairs(Where where) const {
  std::vector<double> s = steps_.value(where).to_vector<double>(), y = changes_.value(where).to_vector<double>();
  const int64_t elements = steps_.shape().dim(1),
                count = std::clamp<int64_t>(count_.item<int64_t>(where), 0, capacity());
  Pairs pairs;
  for (int64_t i = 0; i < count; ++i) {
    auto row = [&](const Vector &all) { return Vector(all.begin() + i * elements, all.begin() + (i + 1) * elements); };
    pairs.emplace_back(row(s), row(y));
  }
  return pairs;
}

void LbfgsHistory::keep(const Pairs &pairs, Where where) const {
  const auto elements = static_cast<size_t>(steps_.shape().dim(1)), most = static_cast<size_t>(capacity());
  const size_t count = std::min(pairs.size(), most);
  Vector s(most * elements), y(most * elements);
  for (size_t i = 0; i < count; ++i) {
    const auto &[step, change] = pairs[pairs.size() - count + i];
    if (step.size() != elements || change.size() != elements)
      detail::raise({.op = "minimize_lbfgs",
                     .message = "the history is one of " + std::to_string(elements) + " elements, the pair of " +
                                std::to_string(step.size()) + " and " + std::to_string(change.size()),
                     .remedy = "make it for the same parameters"},
                    where);
    std::copy(step.begin(), step.end(), s.begin() + static_cast<int64_t>(i * elements));
    std::copy(change.begin(), change.end(), y.begin() + static_cast<int64_t>(i * elements));
  }
  detail::assignAll({{steps_, Tensor::from(s, steps_.shape(), where)},
                     {changes_, Tensor::from(y, steps_.shape(), where)},
                     {count_, Tensor(static_cast<int64_t>(count))}},
                    where);
}

} // namespace wg::optim

namespace wg::detail {

using optim::LbfgsResult;

/// Doubles as tensors of these types, and what numbers become in them.
static std::vector<Tensor> tensorsOf(std::vector<double> &x, const std::vector<TensorType> &types) {
  std::vector<Tensor> tensors;
  auto from = x.begin();
  for (const TensorType &type : types) {
    auto to = from + type.shape.numElements();
    if (type.dtype == f32)
      std::transform(from, to, from, [](double each) { return static_cast<double>(static_cast<float>(each)); });
    Tensor flat = Tensor::from(std::vector<double>(from, to), type.shape);
    tensors.push_back(type.dtype == f64 ? flat : cast(flat, type.dtype));
    from = to;
  }
  return tensors;
}

/// Begins with `pairs`, which are the last ones in the end.
static LbfgsResult minimize(const Objective &f, std::vector<Tensor> &x, optim::LbfgsHistory::Pairs &pairs,
                            const optim::LbfgsOptions &options, const Where &where) {
  const char *op = "minimize_lbfgs";
  optim::checkOptions(options, where);
  refuseTraces(op, where);
  std::vector<TensorType> types;
  optim::Point point;
  for (const Tensor &each : x) {
    const TensorType type = typeOf(each, where);
    if (!runtime::isFloat(type.dtype))
      raiseOp(op, "a tensor of x is " + toString(type) + ", and a step changes floats only", "cast it, or capture it",
              {type}, where, ErrorKind::type);
    types.push_back(type);
    std::vector<double> numbers = each.to_vector<double>(where);
    point.x.insert(point.x.end(), numbers.begin(), numbers.end());
  }
  point.g.resize(point.x.size());
  bool first = true;
  auto evaluate = [&](std::vector<double> &at, std::vector<double> &g) {
    auto [value, gradients] = f(tensorsOf(at, types));
    const TensorType &type = typeOf(value, where);
    if (type.shape.rank() != 0 || !runtime::isFloat(type.dtype))
      raiseOp(op, "the function returned " + toString(type), "return a float scalar", {type}, where);
    if (std::none_of(gradients.begin(), gradients.end(), [](const Grad &each) { return each.has_value(); }))
      raiseOp(op, "there is no gradient" + (gradients.empty() ? "" : ": " + gradients[0].reason()),
              "compute the value from x", {}, where);
    g.clear();
    for (size_t i = 0; i < types.size(); ++i) {
      std::vector<double> each = gradients[i].has_value()
                                     ? gradients[i].value().to_vector<double>(where)
                                     : std::vector<double>(static_cast<size_t>(types[i].shape.numElements()));
      g.insert(g.end(), each.begin(), each.end());
    }
    auto number = value.item<double>(where);
    if (first && !std::isfinite(number))
      raiseOp(op, "the value at the beginning is " + std::to_string(number), "begin where the function is finite", {},
              where);
    first = false;
    return number;
  };
  std::function<double(std::vector<double> &, std::vector<double> &)> evaluator = evaluate;
  optim::Minimizer minimizer(evaluator, options, pairs);
  LbfgsResult result = minimizer.run(point);
  pairs = minimizer.pairs();
  x = tensorsOf(point.x, types);
  return result;
}

LbfgsResult minimizeLbfgs(const Objective &f, std::vector<Tensor> &x, const optim::LbfgsOptions &options,
                          const Where &where) {
  optim::LbfgsHistory::Pairs pairs;
  return minimize(f, x, pairs, options, where);
}

LbfgsResult minimizeLbfgs(const std::function<Tensor()> &loss, const optim::Parameters &parameters,
                          const optim::LbfgsHistory *history, const optim::LbfgsOptions &options, const Where &where) {
  refuseTraces("minimize_lbfgs", where);
  optim::LbfgsOptions chosen = options;
  optim::LbfgsHistory::Pairs pairs;
  if (history) {
    chosen.history = history->capacity();
    pairs = history->pairs(where);
    const int64_t elements = optim::elementsOf(parameters, where);
    if (elements != history->named_state()[0].second.shape().dim(1))
      raiseOp("minimize_lbfgs",
              "the history is one of " + std::to_string(history->named_state()[0].second.shape().dim(1)) +
                  " elements, the parameters have " + std::to_string(elements),
              "make it for the same parameters", {}, where);
  }
  std::vector<Variable> variables;
  std::vector<Tensor> x;
  for (const auto &[name, variable] : parameters.named_variables()) {
    variables.push_back(variable);
    x.push_back(variable.value(where));
  }
  std::vector<Tensor> before = x;
  auto assign = [&](const std::vector<Tensor> &values) {
    std::vector<std::pair<Variable, Tensor>> changes;
    for (size_t i = 0; i < variables.size(); ++i)
      changes.emplace_back(variables[i], values[i]);
    assignAll(changes, where);
  };
  try {
    LbfgsResult result = minimize(
        [&](const std::vector<Tensor> &at) {
          assign(at);
          GradientTape tape;
          tape.watch(variables);
          Tensor value = loss();
          return std::pair(value, tape.gradient(value, variables));
        },
        x, pairs, chosen, where);
    if (history)
      history->keep(pairs, where);
    assign(x);
    return result;
  } catch (...) {
    assign(before);
    throw;
  }
}

} // namespace wg::detail
