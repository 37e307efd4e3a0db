// Maximum likelihood of a mixture of Gaussians with full covariances, by gradients. Each is given by its Cholesky
// factor, whose diagonal is an exponential: every point of the search is a mixture, and log-determinants are sums.
#include <wengert/wengert.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <numbers>

using wg::Tensor;

struct Mixture {
  Tensor logits;  ///< [k]: softmax of them are the weights
  Tensor means;   ///< [k, d]
  Tensor factors; ///< [k, d, d]: below the diagonal the Cholesky factor L, on it log(diag(L))
  WENGERT_FIELDS(logits, means, factors)

  Tensor cholesky() const { return wg::tril(factors, -1) + wg::diag(wg::exp(wg::diagonal(factors))); }
  /// log p(x), for each of x [n, d].
  Tensor log_density(const Tensor &x) const {
    Tensor from = wg::swapaxes(x - wg::expand_dims(means, 1), 1, 2); // [k, d, n]
    Tensor squares = wg::reduce_sum(wg::square(wg::triangular_solve(cholesky(), from)), 1);
    Tensor logdet = wg::expand_dims(wg::trace(factors), 1); // half of log(det(L L^T))
    double constant = 0.5 * static_cast<double>(x.dim(1)) * std::log(2 * std::numbers::pi);
    Tensor each = wg::expand_dims(wg::log_softmax(logits), 1) - 0.5 * squares - logdet - constant; // [k, n]
    return wg::logsumexp(each, 0);
  }
};

int main() {
  // 3,000 points of three clusters in the plane.
  Tensor weights{0.5, 0.3, 0.2}, means{{0.0, 0.0}, {4.0, 1.0}, {-1.0, 4.0}};
  Tensor factors{{{1.0, 0.0}, {0.5, 0.8}}, {{0.6, 0.0}, {-0.4, 0.9}}, {{1.2, 0.0}, {0.0, 0.4}}};
  std::vector<Tensor> keys = wg::random::split(wg::random::key(1));
  Tensor cluster = wg::random_categorical(keys[0], wg::log(weights), 3000);
  Tensor noise = wg::random_normal(keys[1], {3000, 2}, 0, 1, wg::f64);
  Tensor x = wg::gather(means, cluster) + wg::einsum("nij,nj->ni", wg::gather(factors, cluster), noise);

  auto loss = wg::function("loss", [&](const Mixture &mixture) { return -wg::mean(mixture.log_density(x)); });
  Mixture start{wg::zeros({3}, wg::f64), Tensor{{1.0, 0.0}, {2.0, 0.0}, {0.0, 2.0}}, wg::zeros({3, 2, 2}, wg::f64)};
  auto [found, result] = wg::optim::minimize_lbfgs(loss, start);

  std::cout << result.reason << ", traces: " << loss.trace_count() << "\n" << std::fixed << std::setprecision(2);
  Tensor share = wg::softmax(found.logits), l = found.cholesky();
  Tensor covariance = wg::matmul(l, l, {.transpose_b = true});
  for (int k = 0; k < 3; ++k) {
    std::cout << "weight " << share[k].item<double>() << ", mean";
    for (double m : found.means[k].to_vector<double>())
      std::cout << " " << m;
    std::cout << ", covariance";
    for (double c : covariance[k].to_vector<double>())
      std::cout << " " << c;
    std::cout << "\n";
  }
}
