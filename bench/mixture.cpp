// What the gradient of a Gaussian mixture's log-likelihood costs beside the likelihood: the objective of ADBench
// (Srajer, Kukelova and Fitzgibbon 2018), with full covariances and a Wishart prior. Goal: 3.5. Ratios are medians of
// alternating rounds, compiled, f64, one thread.
#include "Mixture.h"
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace wg;

int main(int argc, char **argv) {
  set_num_threads(1);
  bool report = argc > 4 && std::string(argv[4]) == "--report";
  fmt::print("{:>6} {:>3} {:>3} {:>12} {:>12} {:>7}  (goal: 3.5)\n", "n", "d", "k", "primal us", "gradient us",
             "ratio");
  for (int64_t n : {1000, 10000})
    for (int64_t d : {2, 10, 20, 32})
      for (int64_t k : {5, 25}) {
        if (argc > 3 && (n != std::atoll(argv[1]) || d != std::atoll(argv[2]) || k != std::atoll(argv[3])))
          continue;
        bench::Mixture problem(random_normal(random::key(7), {n, d}, 0, 1, f64), k);
        Tensor alphas = random_normal(random::key(1), {k}, 0, 1, f64),
               means = random_normal(random::key(2), {k, d}, 0, 1, f64),
               icf = random_normal(random::key(3), {k, d * (d + 1) / 2}, 0, 0.3, f64);
        auto primal = wg::function("primal", problem);
        auto gradient = wg::function("gradient", [&](const Tensor &a, const Tensor &b, const Tensor &c) {
          GradientTape tape;
          tape.watch(a), tape.watch(b), tape.watch(c);
          Tensor y = problem(a, b, c);
          auto [da, db, dc] = tape.gradient(y, a, b, c);
          return std::tuple(da, db, dc);
        });
        std::function<void()> first = [&] { primal(alphas, means, icf); },
                              second = [&] { gradient(alphas, means, icf); };
        first(), second();
        std::vector<double> primals, gradients, ratios;
        for (int round = 0; round < 7; ++round) {
          primals.push_back(bench::secondsOf(first, 0.03));
          gradients.push_back(bench::secondsOf(second, 0.03));
          ratios.push_back(gradients.back() / primals.back());
        }
        fmt::print("{:>6} {:>3} {:>3} {:>12.1f} {:>12.1f} {:>7.2f}\n", n, d, k, bench::median(primals) * 1e6,
                   bench::median(gradients) * 1e6, bench::median(ratios));
        std::fflush(stdout);
        if (report)
          fmt::print("{}\n{}\n{}\n{}\n", primal.trace(alphas, means, icf).text(Stage::fused), primal.report(),
                     gradient.trace(alphas, means, icf).text(Stage::fused), gradient.report());
      }
}
