// What does eager recording cost? One scalar op with and without a tape, and the backward pass per node of a chain
// whose structure repeats, a literal beside a tensor.
#include "Problem.h"

#include <wengert/wengert.h>

#include <fmt/format.h>

using namespace wg;

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
  for (int64_t n : {int64_t(16), int64_t(4096), int64_t(1) << 22}) {
    Tensor t = ones({n});
    double square = bench::measure([&] { Tensor y = t * t; }, 1).median,
           half = bench::measure([&] { Tensor y = t * 0.5f; }, 1).median;
    fmt::print("  n = {:<8}            {:>9}  {:>9}   {:.2f}\n", n, bench::showTime(square), bench::showTime(half),
               half / square);
  }
}
