// What does eager recording cost? One scalar op with and without a tape, and the backward pass per node of a chain
// whose structure repeats; a literal beside a tensor; how the cost of a tape grows with its length.
#include "Problem.h"

#include <wengert/wengert.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

using namespace wg;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// x * 0.5f beside x * x, in turn: the medians, and the median of the rounds' ratios.
void literals(int64_t n) {
  Tensor t = ones({n});
  std::vector<double> squares, halves, ratios;
  for (int round = 0; round < 7; ++round) {
    squares.push_back(bench::measure([&] { Tensor y = t * t; }, 0.2).median);
    halves.push_back(bench::measure([&] { Tensor y = t * 0.5f; }, 0.2).median);
    ratios.push_back(halves.back() / squares.back());
  }
  for (auto *each : {&squares, &halves, &ratios})
    std::nth_element(each->begin(), each->begin() + 3, each->end());
  fmt::print("  n = {:<8}            {:>9}  {:>9}   {:.2f}\n", n, bench::showTime(squares[3]),
             bench::showTime(halves[3]), ratios[3]);
}

/// A tape of `n` ops, twice: the first time its structure is new, the second time it is known. Then one that ends
/// without a gradient.
void growth(int64_t n) {
  auto record = [&](const Variable &x, const Tensor &factor) {
    Tensor y = x.value();
    for (int64_t i = 0; i < n; ++i)
      y = i % 3 ? y * factor : y + factor;
    return y;
  };
  Variable x(1.000001);
  Tensor factor(0.9999999);
  double recorded = 0, first = 0, again = 0, freed = 0;
  for (double *gradient : {&first, &again}) {
    double start = now();
    GradientTape tape;
    Tensor y = record(x, factor);
    recorded = now() - start;
    tape.gradient(y, x);
    *gradient = now() - start - recorded;
  }
  {
    std::optional<GradientTape> tape(std::in_place);
    record(x, factor);
    freed = now();
    tape.reset();
    freed = now() - freed;
  }
  auto each = [&](double seconds) { return bench::showTime(seconds / static_cast<double>(n)); };
  fmt::print("  {:<9} {:>9} {:>9} {:>9} {:>9}\n", n, each(recorded), each(first), each(again), each(freed));
}

} // namespace

int main() {
  constexpr int kNodes = 1000;
  Variable x(1.0001);
  Tensor factor(0.9999);
  auto chain = [&] {
    Tensor y = x.value();
    for (int i = 0; i < kNodes; ++i)
      y = y * factor;
    return y;
  };
  double plain = bench::measure([&] { chain(); }, 1).median;
  double recorded = bench::measure(
                        [&] {
                          GradientTape tape;
                          chain();
                        },
                        1)
                        .median;
  double slope = 0;
  double whole = bench::measure(
                     [&] {
                       GradientTape tape;
                       Tensor y = chain();
                       slope = tape.gradient(y, x).item<double>();
                     },
                     1)
                     .median;
  if (std::fabs(slope - std::pow(0.9999, kNodes)) > 1e-12) {
    fmt::print("the gradient is wrong: {}\n", slope);
    return 1;
  }
  double small = bench::measure(
                     [&] {
                       GradientTape tape;
                       Tensor y = x * x;
                       tape.gradient(y, x);
                     },
                     1)
                     .median;
  fmt::print("chain of {} scalar products, f64, one thread\n", kNodes);
  fmt::print("  an op without a tape      {:>9}\n", bench::showTime(plain / kNodes));
  fmt::print("  an op recorded            {:>9}   goal 600 ns; libtorch 1.13.1 was seen at 0.88 us\n",
             bench::showTime(recorded / kNodes));
  fmt::print("  the backward pass a node  {:>9}   goal 2 us; libtorch 1.13.1: 2.5-3 us\n",
             bench::showTime((whole - recorded) / kNodes));
  fmt::print("  x * x and its gradient    {:>9}   libtorch 1.13.1: 5.9 us\n", bench::showTime(small));

  // A literal costs no tensor: the limit is the product of two tensors.
  set_num_threads(1);
  fmt::print("f32[n], one thread          x * x   x * 0.5f   ratio, goal 1.10\n");
  for (int64_t n : {int64_t(16), int64_t(4096), int64_t(1) << 22})
    literals(n);

  fmt::print("a chain of n ops, a node    recorded  gradient  of a known  freed\n");
  for (int64_t n : {1000, 10000, 100000, 1000000})
    growth(n);
}
