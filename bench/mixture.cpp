// What the gradient of a Gaussian mixture's log-likelihood costs beside the likelihood: the objective of ADBench
// (Srajer, Kukelova and Fitzgibbon 2018), with full covariances and a Wishart prior. Goal: 3.5. Ratios are medians of
// alternating rounds, compiled, f64, one thread.
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numbers>
#include <vector>

using namespace wg;

namespace {

/// Place of element (i, j) of a lower triangle, i > j, among the d (d - 1) / 2 of icf, which holds it column by column.
int64_t placeOf(int64_t i, int64_t j, int64_t d) { return j * d - j * (j + 1) / 2 + i - j - 1; }

struct Problem {
  int64_t n, d, k;
  Tensor x;             ///< the points, f64[n, d]
  Tensor rows, isBelow; ///< i64[d * d], bool[d, d]: where the elements below the diagonal come from
  double gamma = 1;     ///< the Wishart prior's
  int64_t m = 0;        ///< its further degrees of freedom

  Problem(int64_t n, int64_t d, int64_t k) : n(n), d(d), k(k) {
    x = random_normal(random::key(7), {n, d}, 0, 1, f64);
    std::vector<int64_t> from(static_cast<size_t>(d * d), 0);
    for (int64_t j = 0; j < d; ++j)
      for (int64_t i = j + 1; i < d; ++i)
        from[static_cast<size_t>(i * d + j)] = placeOf(i, j, d);
    rows = Tensor::from(from, {d * d});
    Tensor column = arange(0, d, 1, i64);
    isBelow = expand_dims(column, 1) > expand_dims(column, 0);
  }

  /// The log-likelihood of alphas f64[k], means f64[k, d], icf f64[k, d (d + 1) / 2]: d logarithms of a diagonal, then
  /// what is below it. Q[k, d, d] is the lower triangle that they make; the inverse covariance is Q^T Q.
  Tensor operator()(const Tensor &alphas, const Tensor &means, const Tensor &icf) const {
    Tensor logs = icf[{Slice(), Slice(0, d)}], diagonal = exp(logs);
    Tensor below = icf[{Slice(), Slice(d, d * (d + 1) / 2)}];
    Tensor q = expand_dims(diagonal, 2) * eye(d, {}, f64);
    if (d > 1)
      q = q + where(isBelow, reshape(transpose(gather(transpose(below), rows)), {k, d, d}), 0.0);
    Tensor sums = reduce_sum(logs, 1);
    Tensor centered = expand_dims(x, 1) - means; // [n, k, d]
    Tensor whitened = einsum("kij,nkj->nki", q, centered);
    Tensor inner = alphas + sums - 0.5 * reduce_sum(square(whitened), 2);
    Tensor likelihood = reduce_sum(logsumexp(inner, 1)) - static_cast<double>(n) * logsumexp(alphas);
    Tensor prior = 0.5 * gamma * gamma * (reduce_sum(square(diagonal)) + reduce_sum(square(below))) -
                   static_cast<double>(m) * reduce_sum(sums);
    return likelihood - prior;
  }
};

} // namespace

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
        Problem problem(n, d, k);
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
