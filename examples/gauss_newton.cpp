// A curve through measurements: least squares by Gauss and Newton's method, damped as Levenberg and Marquardt do. The
// Jacobian, the solution of each step and the loop around it are one compiled function.
#include <wengert/wengert.h>

#include <iomanip>
#include <iostream>

using wg::Tensor;

int main() {
  // A damped oscillation a exp(-b t) cos(c t + d), at 200 times, with noise.
  Tensor time = wg::linspace(0, 6, 200, wg::f64), truth{2.0, 0.4, 3.0, 0.5};
  auto curve = [&](const Tensor &p) { return p[0] * wg::exp(-p[1] * time) * wg::cos(p[2] * time + p[3]); };
  Tensor measured = curve(truth) + wg::random_normal(wg::random::key(1), time.shape(), 0, 0.05, wg::f64);

  struct State {
    Tensor p, damping, moved; ///< the parameters; what is added to the diagonal of J^T J; the last step's length
    WENGERT_FIELDS(p, damping, moved)
  };
  auto fit = wg::function("fit", [&](const Tensor &start, const Tensor &measured) {
    auto residuals = [&](const Tensor &p) { return curve(p) - measured; };
    auto squares = [&](const Tensor &p) { return wg::reduce_sum(wg::square(residuals(p))); };
    auto step = [&](const State &s) {
      Tensor r = residuals(s.p), j = wg::jacobian(residuals)(s.p).value(); // [200], [200, 4]
      // Least squares of J d + r and of sqrt(damping) d.
      Tensor d = wg::linalg::lstsq(wg::concat({j, wg::sqrt(s.damping) * wg::eye(4, {}, wg::f64)}),
                                   wg::concat({-r, wg::zeros({4}, wg::f64)}));
      Tensor better = squares(s.p + d) <= squares(s.p);
      return State{wg::where(better, s.p + d, s.p), s.damping * wg::where(better, 0.1, 10.0), wg::norm(d)};
    };
    auto moves = [](const State &s) { return s.moved > 1e-9; };
    // The solution as a function of the measurements: by the equation that the slope is 0, not by the steps.
    auto slope = [&](const Tensor &p) { return wg::grad(squares)(p).value(); };
    Tensor p = wg::custom_root(slope, start, [&](const auto &, const Tensor &p) {
      return wg::while_loop(moves, step, State{p, Tensor(1.0), Tensor(1.0)}, {.max_steps = 100}).p;
    });
    // What the noise leaves open: the diagonal of s^2 (J^T J)^-1.
    Tensor j = wg::jacobian(residuals)(p).value();
    Tensor variance = squares(p) / static_cast<double>(time.size() - 4);
    Tensor covariance = variance * wg::linalg::inv(wg::matmul(j, j, {.transpose_a = true}));
    return std::tuple(p, wg::sqrt(wg::diagonal(covariance)));
  });

  Tensor start{1.0, 0.1, 2.5, 0.0};
  auto [p, error] = fit(start, measured);
  std::cout << std::fixed << std::setprecision(3);
  for (int i = 0; i < 4; ++i)
    std::cout << "abcd"[i] << " = " << p[i].item<double>() << " +- " << error[i].item<double>() << ", was "
              << truth[i].item<double>() << "\n";

  // Which measurement moves the decay most, and by how much?
  auto decay = [&](const Tensor &y) { return std::get<0>(fit(start, y))[1]; };
  Tensor slope = wg::grad(decay)(measured).value();
  Tensor most = wg::argmax(wg::abs(slope));
  std::cout << "by measurement " << most.item<int64_t>() << ": " << wg::gather(slope, most).item<double>() << "\n";
}
