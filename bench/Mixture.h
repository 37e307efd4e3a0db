// The log-likelihood of a Gaussian mixture with full covariances and a Wishart prior: the objective of ADBench
// (Srajer, Kukelova and Fitzgibbon 2018), in f64.
#pragma once

#include <wengert/wengert.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace bench {

struct Mixture {
  int64_t n, d, k;
  wg::Tensor x;             ///< the points, f64[n, d]
  wg::Tensor rows, isBelow; ///< i64[d * d], bool[d, d]: where the elements below the diagonal come from
  double gamma = 1;         ///< the Wishart prior's
  int64_t m = 0;            ///< its further degrees of freedom

  Mixture(wg::Tensor points, int64_t components)
      : n(points.shape().dim(0)), d(points.shape().dim(1)), k(components), x(std::move(points)) {
    std::vector<int64_t> from(static_cast<size_t>(d * d), 0);
    for (int64_t j = 0; j < d; ++j)
      for (int64_t i = j + 1; i < d; ++i) // icf holds them column by column
        from[static_cast<size_t>(i * d + j)] = j * d - j * (j + 1) / 2 + i - j - 1;
    rows = wg::Tensor::from(from, {d * d});
    wg::Tensor column = wg::arange(0, d, 1, wg::i64);
    isBelow = wg::expand_dims(column, 1) > wg::expand_dims(column, 0);
  }

  /// Of alphas f64[k], means f64[k, d], icf f64[k, d (d + 1) / 2]: d logarithms of a diagonal, then what is below it.
  /// Q[k, d, d] is the lower triangle that they make; the inverse covariance is Q^T Q.
  wg::Tensor operator()(const wg::Tensor &alphas, const wg::Tensor &means, const wg::Tensor &icf) const {
    using namespace wg;
    Tensor logs = icf[{Slice(), Slice(0, d)}], diagonal = exp(logs);
    Tensor below = icf[{Slice(), Slice(d, d * (d + 1) / 2)}];
    Tensor q = expand_dims(diagonal, 2) * eye(d, {}, f64);
    if (d > 1)
      q = q + where(isBelow, reshape(transpose(gather(transpose(below), rows)), {k, d, d}), 0.0);
    Tensor sums = reduce_sum(logs, 1);
    Tensor centered = expand_dims(x, 1) - means; // [n, k, d]
    Tensor whitened = einsum("kij,nkj->nki", q, centered);
    Tensor inner = alphas + sums - 0.5 * reduce_sum(square(whitened), 2);
    Tensor likelihood = reduce_sum(logsumexp(inner, 1)) - static_cast<double>(n) * logsumexp(alphas) -
                        0.5 * static_cast<double>(n * d) * std::log(2 * std::numbers::pi);
    Tensor prior = 0.5 * gamma * gamma * (reduce_sum(square(diagonal)) + reduce_sum(square(below))) -
                   static_cast<double>(m) * reduce_sum(sums);
    return likelihood + prior; // as ADBench has it
  }
};

} // namespace bench
