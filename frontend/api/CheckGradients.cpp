#include <wengert/CheckGradients.h>
#include <wengert/Random.h>

#include "frontend/staging/Apply.h"
#include "runtime/Differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wg::detail {

using Doubles = std::vector<std::vector<double>>;

static Doubles numbersOf(const std::vector<Tensor> &tensors) {
  Doubles numbers;
  for (const Tensor &tensor : tensors)
    numbers.push_back(tensor.to_vector<double>());
  return numbers;
}
/// Zeros where there is none.
static Doubles numbersOf(const std::vector<Grad> &grads, const Doubles &like) {
  Doubles numbers;
  for (size_t i = 0; i < grads.size(); ++i)
    numbers.push_back(grads[i].has_value() ? grads[i].to_vector<double>() : std::vector<double>(like[i].size()));
  return numbers;
}
static double dot(const Doubles &a, const Doubles &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum = std::inner_product(a[i].begin(), a[i].end(), b[i].begin(), sum);
  return sum;
}

std::vector<Grad> gradsOf(const std::vector<Tensor> &tensors) { return {tensors.begin(), tensors.end()}; }

namespace {

/// A function at a point, seen as one of lists of numbers.
class Checker {
public:
  Checker(const CheckedFunction &f, const CheckGradientsOptions &options, const Where &where)
      : f_(f), options_(options), where_(where) {
    for (const Source &primal : f.primals)
      values_.push_back(primal.variable.defined() ? primal.variable.value(where) : primal.tensor);
    x_ = numbersOf(values_);
  }
  /// After a failure too; what cannot be put back then, for lack of memory, stays moved.
  ~Checker() {
    try {
      f_.move(values_);
    } catch (...) {
    }
  }

  GradientCheck run();

private:
  std::vector<Tensor> tensorsOf(const Doubles &numbers, const std::vector<Tensor> &like) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < numbers.size(); ++i)
      tensors.push_back(cast(Tensor::from(numbers[i], like[i].shape(), where_), like[i].dtype()));
    return tensors;
  }
  /// f at x + t v, for one list of directions; then back at x.
  double at(double t, const Doubles &v, const std::function<double()> &f) {
    Doubles moved = x_;
    for (size_t i = 0; i < moved.size(); ++i)
      for (size_t k = 0; k < moved[i].size(); ++k)
        moved[i][k] += t * v[i][k];
    f_.move(tensorsOf(moved, values_));
    double value = f();
    f_.move(values_);
    return value;
  }
  Doubles drawn(const std::vector<Tensor> &like, int64_t stream) const {
    Doubles numbers;
    for (size_t i = 0; i < like.size(); ++i) {
      numbers.push_back(numbersOf(
          std::vector{random_uniform(random::key(options_.seed * 1000 + stream * 100 + static_cast<int64_t>(i)),
                                     like[i].shape(), -1, 1, f64)})[0]);
      if (!runtime::isFloat(like[i].dtype()))
        std::fill(numbers.back().begin(), numbers.back().end(), 0);
    }
    return numbers;
  }
  /// Whether `exact` is what the differences give, if they tell; the worst is kept with its words.
  void compare(double exact, const runtime::Difference &numeric, double tolerance, double &worst, std::string &words,
               const std::string &what) {
    double scale = std::max(1.0, std::fabs(exact));
    if (!(numeric.error <= tolerance * scale)) {
      ++untold_;
      return;
    }
    ++told_;
    double error = std::fabs(exact - numeric.value) / scale;
    if (!std::isfinite(exact))
      error = std::numeric_limits<double>::infinity();
    if (words.empty() || error > worst) {
      worst = error;
      words = fmt::format("{}: {:.9g}, by differences {:.9g}", what, exact, numeric.value);
    }
  }
  void checkGradient(const Doubles &ct, const std::vector<Grad> &grads);
  void line(const char *what, double error, double tolerance, const std::string &words) {
    bool ok = error <= tolerance;
    check_.passed = check_.passed && ok;
    check_.report += fmt::format("  {}: {}, largest error {:.2g} ({} at most): {}\n", what, ok ? "right" : "WRONG",
                                 error, tolerance, words);
  }
  std::string nameOf(size_t i) const {
    const Variable &variable = f_.primals[i].variable;
    return "primal " + std::to_string(i) +
           (variable.defined() && !variable.name().empty() ? " '" + variable.name() + "'" : "");
  }

  const CheckedFunction &f_;
  const CheckGradientsOptions &options_;
  Where where_;
  std::vector<Tensor> values_;
  Doubles x_;
  double first_ = 1e-6, adjoint_ = 1e-10, second_ = 1e-5, epsilon_ = 0x1p-52;
  int64_t told_ = 0, untold_ = 0;
  GradientCheck check_;
};

} // namespace

void Checker::checkGradient(const Doubles &ct, const std::vector<Grad> &grads) {
  Doubles gradient = numbersOf(grads, x_);
  std::vector<std::pair<size_t, int64_t>> elements;
  for (size_t i = 0; i < x_.size(); ++i)
    for (size_t k = 0; runtime::isFloat(values_[i].dtype()) && k < x_[i].size(); ++k)
      elements.emplace_back(i, static_cast<int64_t>(k));
  // Of too many, those at places spread by a stride that has no factor in common with their number.
  size_t count = std::min(elements.size(), static_cast<size_t>(options_.max_elements)), stride = 1;
  if (count < elements.size())
    for (stride = elements.size() / count * 2 + 1; std::gcd(stride, elements.size()) != 1;)
      ++stride;
  std::string words;
  for (size_t n = 0; n < count; ++n) {
    auto [i, k] = elements[(n * stride + static_cast<size_t>(options_.seed)) % elements.size()];
    Doubles direction;
    for (const auto &each : x_)
      direction.emplace_back(each.size(), 0.0);
    direction[i][static_cast<size_t>(k)] = 1;
    auto value = [&](double t) { return at(t, direction, [&] { return dot(ct, numbersOf(f_.value())); }); };
    runtime::Difference numeric = runtime::differentiate(value, options_.step, epsilon_);
    double exact = gradient[i][static_cast<size_t>(k)];
    bool agrees = std::fabs(exact - numeric.value) <= first_ * std::max(1.0, std::fabs(exact));
    if (!agrees && runtime::hasKink(value, options_.step, epsilon_))
      numeric.error = std::numeric_limits<double>::infinity();
    compare(exact, numeric, first_, check_.gradient_error, words,
            nameOf(i) + ", element " + toString(Shape(runtime::placeOf(values_[i].shape(), k))) +
                (grads[i].has_value() ? "" : " (empty: " + grads[i].reason() + ")"));
  }
  check_.report += fmt::format("gradients at {} of {} elements{}\n", told_, elements.size(),
                               untold_ ? fmt::format("; at {} differences say nothing", untold_) : "");
  line("gradient", check_.gradient_error, first_, words.empty() ? "nothing could be compared" : words);
  check_.passed = check_.passed && told_ > 0;
}

GradientCheck Checker::run() {
  auto narrow = [](const Tensor &tensor) { return tensor.dtype() != f64 && runtime::isFloat(tensor.dtype()); };
  if (std::none_of(values_.begin(), values_.end(), [](const Tensor &x) { return runtime::isFloat(x.dtype()); }))
    raiseOp("check_gradients", "there is no float among the primals", "give tensors or variables of floats", {},
            where_);
  std::vector<Tensor> outputs = f_.value();
  if (std::any_of(values_.begin(), values_.end(), narrow) || std::any_of(outputs.begin(), outputs.end(), narrow))
    first_ = second_ = 1e-3, adjoint_ = 1e-4, epsilon_ = 0x1p-22;
  if (options_.tolerance > 0)
    first_ = second_ = options_.tolerance;
  Doubles ct = drawn(outputs, 1), v = drawn(values_, 2), u = drawn(values_, 3);
  std::vector<Tensor> cts = tensorsOf(ct, outputs), moves = tensorsOf(v, values_), others = tensorsOf(u, values_);
  for (size_t i = 0; i < values_.size(); ++i)
    if (!runtime::isFloat(values_[i].dtype()))
      moves[i] = others[i] = Tensor();
  checkGradient(ct, f_.reverse(cts));

  double reverse = dot(numbersOf(f_.reverse(cts), x_), v);
  try {
    double forward = dot(numbersOf(f_.forward(moves), numbersOf(outputs)), ct);
    check_.adjointness_error = std::fabs(forward - reverse) / std::max(1.0, std::fabs(reverse));
    line("forward mode", check_.adjointness_error, adjoint_,
         fmt::format("<ct, J v> = {:.9g}, <J^T ct, v> = {:.9g}", forward, reverse));
    if (options_.order >= 2) {
      double exact = dot(numbersOf(f_.along(cts, others), x_), v);
      runtime::Difference numeric = runtime::differentiate(
          [&](double t) { return at(t, u, [&] { return dot(numbersOf(f_.reverse(cts), x_), v); }); }, options_.step,
          epsilon_);
      std::string words;
      compare(exact, numeric, second_, check_.second_order_error, words, "along two directions that are drawn");
      line("second order", check_.second_order_error, second_,
           words.empty() ? "differences say nothing here, and nothing was compared" : words);
    }
  } catch (const Error &error) {
    if (error.message().find("reverse mode") == std::string::npos &&
        error.message().find("tangents") == std::string::npos)
      throw;
    check_.report += "  forward mode: not checked, " + error.message() + "\n";
  }
  return check_;
}

GradientCheck checkGradients(const CheckedFunction &f, const CheckGradientsOptions &options, const Where &where) {
  if (options.order < 1 || options.order > 2 || options.max_elements < 1 || !(options.step > 0) ||
      !(options.tolerance >= 0))
    raiseOp("check_gradients", "an option is out of its range",
            "order 1 or 2, max_elements 1 or more, step above 0, tolerance 0 or more", {}, where);
  return Checker(f, options, where).run();
}

} // namespace wg::detail
