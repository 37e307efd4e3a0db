// What derivatives cost beside the function: a Jacobian of 28 columns and 1,600 rows of a chain of rotations, a Hessian
// of 30 x 30, and steps of an embedding by the rows that it gathered. Ratios are medians of alternating rounds.
#include "Skeleton.h"
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

using namespace wg;
using bench::numbers, bench::skeleton, bench::skin;

/// Times `each` in turn, and prints them with the ratio of each to the first.
static void compare(const std::string &title, const std::vector<std::pair<std::string, std::function<void()>>> &each) {
  std::vector<std::vector<double>> times(each.size()), ratios(each.size());
  for (const auto &[name, f] : each)
    f(); // compiles
  for (int round = 0; round < 7; ++round)
    for (size_t i = 0; i < each.size(); ++i) {
      times[i].push_back(bench::secondsOf(each[i].second, 0.05));
      ratios[i].push_back(times[i].back() / times[0].back());
    }
  fmt::print("{}\n", title);
  for (size_t i = 0; i < each.size(); ++i)
    fmt::print("  {:<44} {:>10.1f} us  {:>7.2f}\n", each[i].first, bench::median(times[i]) * 1e6,
               bench::median(ratios[i]));
}

static void jacobians(const std::string &title, Tensor (*function)(const Tensor &)) {
  Tensor x = numbers({28});
  function(x); // makes its constants, outside of any trace
  auto f = wg::function("f", function);
  auto forward = wg::function("forward", jacobian(function, {.mode = DerivativeMode::forward}));
  auto reverse = wg::function("reverse", jacobian(function, {.mode = DerivativeMode::reverse}));
  std::vector<double> a = forward(x).to_vector<double>(), b = reverse(x).to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  fmt::print("the two Jacobians differ by {:.1e} at most\n", worst);
  compare("Jacobian of 28 inputs and 1,600 outputs, " + title + ", compiled, f64",
          {{"the function", [&] { f(x); }}, {"forward", [&] { forward(x); }}, {"reverse", [&] { reverse(x); }}});
  auto eagerForward = jacobian(function, {.mode = DerivativeMode::forward});
  compare("the same, eager", {{"the function", [&] { function(x); }}, {"forward", [&] { eagerForward(x); }}});
}

static void hessians() {
  Tensor x = numbers({1000, 30}), y = cast(numbers({1000}) > 0.0, f64), w = numbers({30}, 0.1), v = numbers({30});
  auto loss = [&](const Tensor &w) {
    Tensor z = einsum("ni,i->n", x, w);
    return mean(softplus(z) - y * z) + 0.01 * reduce_sum(w * w);
  };
  auto product = wg::function("hvp", [&](const Tensor &w, const Tensor &v) { return hvp(loss, w, v).value(); });
  auto whole = wg::function("hessian", hessian(loss));
  auto eager = hessian(loss);
  compare("Hessian of logistic regression, 30 x 30, 1,000 examples, compiled, f64 (goal: 10)",
          {{"one product with a vector", [&] { product(w, v); }}, {"the Hessian", [&] { whole(w); }}});
  compare("the same, eager",
          {{"one product with a vector", [&] { hvp(loss, w, v); }}, {"the Hessian", [&] { eager(w); }}});
}

static void embeddings() {
  Tensor indices = remainder(arange(0, 256 * 97, 97), int64_t(5000));
  for (bool compiled : {false, true}) {
    std::vector<std::pair<std::string, std::function<void()>>> each;
    for (int64_t size : {5000, 50000, 500000})
      for (bool adagrad : {false, true}) {
        auto table = std::make_shared<Variable>(zeros({size, 64}), "table");
        std::shared_ptr<optim::Optimizer> optimizer;
        if (adagrad)
          optimizer = std::make_shared<optim::Adagrad>(0.1);
        else
          optimizer = std::make_shared<optim::SGD>(0.1);
        std::function<void()> step = [=] {
          GradientTape tape;
          Tensor loss = reduce_sum(square(gather(*table, indices) - 1.0f));
          optimizer->apply(tape.gradient(loss, *table), *table);
        };
        if (compiled)
          step = [f = wg::function("step", step)] { f(); };
        each.emplace_back(fmt::format("{} x 64, {}", size, adagrad ? "Adagrad" : "SGD"), step);
      }
    compare(fmt::format("a step of an embedding, 256 rows, {}", compiled ? "compiled" : "eager"), each);
  }
}

int main(int argc, char **argv) {
  set_num_threads(1);
  std::string only = argc > 1 ? argv[1] : "";
  if (only.empty() || only == "jacobian")
    jacobians("a bone for each vertex (goal: 20 forward)", skeleton), jacobians("all bones for each vertex", skin);
  if (only.empty() || only == "hessian")
    hessians();
  if (only.empty() || only == "embedding")
    embeddings();
}
