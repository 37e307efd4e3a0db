// Functions of one element and their derivatives in closed form, checked at points: eagerly by tapes in tapes, and
// traced and compiled.
#pragma once

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

namespace wg::tests {

using Real = long double;
using Formula = std::function<Real(Real)>;
using Differentiated = std::function<Tensor(const Tensor &)>;
inline const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// The derivative of the sum of f's elements; zeros where nothing of x leads to it.
inline Differentiated derivativeOf(Differentiated f) {
  return [f](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    return tape.gradient(y, x, GradientOptions{.unconnected = Unconnected::zero}).value();
  };
}

/// A function of one element, its points, and its derivatives from order 0 on. Results are compared to 1e-13 of the
/// exact one, or of `scale` where that is more: 1 for what saturates and is read from its result.
struct Curve {
  const char *name;
  Differentiated f;
  std::vector<double> points;
  std::vector<Formula> orders;
  Real scale = 0;
};

inline Real logistic(Real x) { return 1 / (1 + std::exp(-x)); }
inline Real bell(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>); }
inline Real powerOf(Real x, Real p) { return std::pow(x, p); }

inline void expectNear(double actual, Real exact, Real scale, const std::string &what) {
  if (std::isnan(exact))
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  else if (std::isinf(static_cast<double>(exact)))
    EXPECT_EQ(actual, static_cast<double>(exact)) << what;
  else
    EXPECT_LE(std::abs(actual - exact), 1e-13L * std::max(std::abs(exact), scale) + 5e-324L)
        << what << " is " << actual << ", not " << static_cast<double>(exact);
}

inline void check(const Curve &curve) {
  Differentiated g = curve.f;
  for (size_t order = 0; order < curve.orders.size(); ++order, g = derivativeOf(g)) {
    auto traced = wg::function("curve", [g](const Tensor &x) { return g(x); });
    Tensor x = Tensor::from(curve.points, Shape{static_cast<int64_t>(curve.points.size())});
    std::vector<double> eager = g(x).to_vector<double>(), compiled = traced(x).to_vector<double>();
    for (size_t i = 0; i < curve.points.size(); ++i) {
      Real exact = curve.orders[order](curve.points[i]);
      std::string what =
          std::string(curve.name) + ", order " + std::to_string(order) + ", at " + std::to_string(curve.points[i]);
      expectNear(eager[i], exact, curve.scale, what + ", eager");
      expectNear(compiled[i], exact, curve.scale, what + ", compiled");
    }
  }
}

} // namespace wg::tests
