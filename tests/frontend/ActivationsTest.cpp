// Activations and the other composed functions at their kinks, in their tails and at special values: values and
// derivatives in closed form, eagerly and compiled.
#include "tests/frontend/Curves.h"

#include "tests/frontend/Support.h"

namespace wg {
namespace {

using tests::check;
using tests::Curve;
using tests::inf;
using tests::logistic;
using tests::messageOf;
using tests::nan;
using tests::Real;
using tests::says;

const auto zero = [](Real) { return Real(0); };

TEST(Activations, KinksAndTails) {
  std::vector<double> wide{-1e300, -800, -40, -3, -1, -1e-9, 0, 1e-9, 1, 3, 40, 800, 1e300};
  auto step = [](double low, double high, Real inside) {
    return [=](Real x) { return x > low && x < high ? inside : Real(0); };
  };
  const Real alpha = 1.6732632423543772848L, scale = 1.0507009873554804934L;
  auto unit = [](Real scale, Real alpha, Real width, int order) -> tests::Formula {
    return [=](Real x) -> Real {
      if (x > 0)
        return order == 0 ? scale * x : order == 1 ? scale : 0;
      return scale * alpha * (order == 0 ? std::expm1(x / width) : std::exp(x / width) / std::pow(width, Real(order)));
    };
  };
  Curve curves[] = {
      {"relu6",
       [](const Tensor &x) { return relu6(x); },
       {-inf, -1, 0, 1e-300, 5, 6, 7, inf},
       {[](Real x) { return std::clamp(x, 0.0L, 6.0L); }, step(0, 6, 1), zero}},
      {"leaky_relu",
       [](const Tensor &x) { return leaky_relu(x, 0.125); },
       {-1e300, -1, 0, 1, 1e300},
       {[](Real x) { return x > 0 ? x : x / 8; }, [](Real x) { return x > 0 ? 1 : 0.125L; }, zero}},
      {"elu",
       [](const Tensor &x) { return elu(x, 0.5); },
       wide,
       {unit(1, 0.5L, 1, 0), unit(1, 0.5L, 1, 1), unit(1, 0.5L, 1, 2)},
       1},
      {"celu",
       [](const Tensor &x) { return celu(x, 2); },
       wide,
       {unit(1, 2, 2, 0), unit(1, 2, 2, 1), unit(1, 2, 2, 2)},
       1},
      {"selu",
       [=](const Tensor &x) { return selu(x); },
       wide,
       {unit(scale, alpha, 1, 0), unit(scale, alpha, 1, 1), unit(scale, alpha, 1, 2)},
       1},
      {"hard_sigmoid",
       [](const Tensor &x) { return hard_sigmoid(x); },
       {-inf, -4, -3, 0, 1, 3, 4, inf},
       {[](Real x) { return std::clamp(x + 3, 0.0L, 6.0L) / 6; }, step(-3, 3, 1 / 6.0L), zero}},
      {"hard_swish",
       [](const Tensor &x) { return hard_swish(x); },
       {-4, -3, 0, 1, 3, 4},
       {[](Real x) { return x * std::clamp(x + 3, 0.0L, 6.0L) / 6; },
        [=](Real x) { return std::clamp(x + 3, 0.0L, 6.0L) / 6 + (x > -3 && x < 3 ? x / 6 : 0); },
        step(-3, 3, 1 / 3.0L)}},
      {"hard_tanh",
       [](const Tensor &x) { return hard_tanh(x); },
       {-inf, -2, -1, 0, 1, 2, inf},
       {[](Real x) { return std::clamp(x, -1.0L, 1.0L); }, [](Real x) { return std::abs(x) <= 1 ? 1 : 0; }, zero}},
      {"log_sigmoid",
       [](const Tensor &x) { return log_sigmoid(x); },
       wide,
       {[](Real x) { return -(std::max(-x, 0.0L) + std::log1p(std::exp(-std::abs(x)))); },
        [](Real x) { return logistic(-x); }, [](Real x) { return -logistic(x) * logistic(-x); }},
       1},
      {"gelu by tanh, in its tails",
       [](const Tensor &x) { return gelu_tanh(x); },
       {-1e300, -800, -25, 0, 25, 800, 1e300},
       {[](Real x) { return x > 0 ? x : 0; }, [](Real x) { return x > 0   ? 1
                                                                  : x < 0 ? 0
                                                                          : 0.5L; },
        [](Real x) { return x == 0 ? 2 * std::sqrt(2 / std::numbers::pi_v<Real>) / 2 : 0; }}},
      {"mish, in its tails",
       [](const Tensor &x) { return mish(x); },
       {-800, -50, 0, 50, 800},
       {[](Real x) { return x * std::tanh(std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x)))); },
        [](Real x) { return x > 0   ? 1
                            : x < 0 ? (1 + x) * std::exp(x)
                                    : 0.6L; }},
       1},
      {"sinc",
       [](const Tensor &x) { return sinc(x); },
       {0, 1e-300, 1e-9},
       {[](Real) { return 1; }, [](Real x) { return -std::numbers::pi_v<Real> * std::numbers::pi_v<Real> * x / 3; },
        [](Real) { return -std::numbers::pi_v<Real> * std::numbers::pi_v<Real> / 3; },
        [](Real x) { return std::pow(std::numbers::pi_v<Real>, 4.0L) * x / 5; }}},
  };
  for (const Curve &curve : curves)
    check(curve);
}

// What is 0 where a factor is, and what slopes do there.
TEST(Activations, LogarithmsAreNothingWhereTheirFactorIs) {
  struct Row {
    double y, value, slope, mixed; ///< of xlogy(x, y) at x = 0: the value, the slope by x, and that one's by y
  };
  for (bool byOne : {false, true})
    for (Row row : {Row{2, 0, std::log(2), 0.5}, Row{0, 0, 0, 0}, Row{inf, 0, 0, 0}, Row{-3, 0, 0, 0},
                    Row{nan, nan, nan, nan}, Row{1, 0, 0, 1}}) {
      double at = byOne ? row.y - 1 : row.y;
      auto f = [byOne](const Tensor &x, const Tensor &y) { return byOne ? xlog1py(x, y) : xlogy(x, y); };
      auto slopes = [f](const Tensor &x, const Tensor &y) {
        GradientTape outer;
        outer.watch(y);
        Tensor dx;
        {
          GradientTape inner;
          inner.watch(x);
          dx = inner.gradient(f(x, y), x).value();
        }
        Tensor mixed = outer.gradient(dx, y, GradientOptions{.unconnected = Unconnected::zero}).value();
        return stack({f(x, y), dx, mixed});
      };
      auto compiled = wg::function("slopes", slopes);
      Tensor x(0.0), y(at);
      for (const Tensor &found : {slopes(x, y), compiled(x, y)}) {
        std::vector<double> values = found.to_vector<double>();
        auto expectSame = [&](double a, double b) {
          EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-14)
              << a << ", not " << b << " at " << at;
        };
        expectSame(values[0], row.value);
        expectSame(values[1], row.slope);
        expectSame(values[2], row.mixed);
      }
    }
}

std::pair<double, double> gradients(Tensor (*f)(const Located &, const Located &), double a, double b) {
  Tensor x(a), y(b);
  GradientTape tape;
  tape.watch({x, y});
  auto [dx, dy] = tape.gradient(f(x, y), x, y);
  return {dx.value().item<double>(), dy.value().item<double>()};
}

TEST(Activations, GradientsOfTwoNumbersAtSpecialPoints) {
  using Pair = std::pair<double, double>;
  EXPECT_EQ(gradients(hypot, 0, 0), Pair(0, 0));
  EXPECT_EQ(gradients(hypot, -0.0, 3), Pair(0, 1));
  EXPECT_DOUBLE_EQ(gradients(hypot, 3e200, -4e200).first, 0.6);
  EXPECT_DOUBLE_EQ(gradients(hypot, 3e200, -4e200).second, -0.8);
  EXPECT_EQ(gradients(atan2, 0, 0), Pair(0, 0));
  EXPECT_EQ(gradients(atan2, 0, 2), Pair(0.5, 0));
  EXPECT_EQ(gradients(atan2, 2, 0), Pair(0, -0.5));
  EXPECT_EQ(gradients(atan2, 0, -2), Pair(-0.5, 0));
  EXPECT_DOUBLE_EQ(gradients(atan2, 1e-200, 0).second, -1e200);
  EXPECT_EQ(gradients(logaddexp, -inf, -inf), Pair(0.5, 0.5));
  EXPECT_EQ(gradients(logaddexp, inf, inf), Pair(0.5, 0.5));
  EXPECT_EQ(gradients(logaddexp, -inf, 1), Pair(0, 1));
  EXPECT_EQ(logaddexp(Tensor(-inf), Tensor(-inf)).item<double>(), -inf);
  EXPECT_EQ(gradients(fmod, -7, 2), Pair(1, 3));
  auto quarter = [](const Located &a, const Located &b) { return lerp(a, b, 0.25); };
  EXPECT_EQ(gradients(quarter, 0, 0), Pair(0.75, 0.25));
}

TEST(Activations, SpecialValues) {
  Tensor x{nan, inf, -inf, 0.0, 1.5};
  auto same = [](const Tensor &a, const std::vector<double> &b) { EXPECT_EQ(a.to_vector<double>(), b); };
  constexpr double most = std::numeric_limits<double>::max();
  same(nan_to_num(x), {0, most, -most, 0, 1.5});
  same(nan_to_num(x, {.nan = 7, .posinf = 8, .neginf = -9}), {7, 8, -9, 0, 1.5});
  EXPECT_EQ(nan_to_num(cast(x, f32)).to_vector<float>()[1], std::numeric_limits<float>::max());
  EXPECT_EQ(nan_to_num(Tensor{1, 2}).dtype(), i32);
  EXPECT_EQ(is_pos_inf(x).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 0, 0, 0}));
  EXPECT_EQ(is_neg_inf(x).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 0, 1, 0, 0}));
  GradientTape tape;
  tape.watch(x);
  same(tape.gradient(reduce_sum(nan_to_num(x) * 2.0), x).value(), {0, 0, 0, 2, 2});
  same(nan_to_num(heaviside(x, 0.5), {.nan = -1}), {-1, 1, 0, 0.5, 1});
  same(sinc(Tensor{0.0, 0.5}), {1, 1 / (std::numbers::pi / 2)});
  same(deg2rad(Tensor{180.0}), {std::numbers::pi});
  same(rad2deg(Tensor{std::numbers::pi}), {180});
  same(lerp(Tensor{1.0, 3.0}, Tensor{1e17, 0.1}, 1), {1e17, 0.1});
  same(squared_difference(Tensor{1.0, 3.0}, 2.0), {1, 1});
  EXPECT_EQ(squared_difference(Tensor{1, -3}, 2).to_vector<int32_t>(), (std::vector<int32_t>{1, 25}));
  EXPECT_EQ(clamp(Tensor{1, -3, 9}, 0, 5).to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 5}));
}

TEST(Activations, Closeness) {
  Tensor a{1.0, 1.0, inf, inf, nan, 0.0, 1.0}, b{1.0 + 9e-6, 1.00002, inf, -inf, nan, 1e-9, inf};
  EXPECT_EQ(is_close(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(is_close(a, b, {.rtol = 1e-4, .equal_nan = true}).to_vector<uint8_t>(),
            (std::vector<uint8_t>{1, 1, 1, 0, 1, 1, 0}));
  EXPECT_FALSE(all_close(a, b).item<bool>());
  EXPECT_TRUE(all_close(a, a, {.equal_nan = true}).item<bool>());
  EXPECT_TRUE(all_close(zeros({0}), ones({0})).item<bool>());
  EXPECT_TRUE(all_close(Tensor{1, 2}, Tensor{1, 2}).item<bool>());
  EXPECT_FALSE(all_close(Tensor{INT64_MIN, int64_t(1)}, 1).item<bool>()); // whose distance wraps
  EXPECT_TRUE(is_close(1.0, 1.0 + 1e-9).item<bool>());
}

TEST(Activations, ErrorsNameTheFunction) {
  Tensor whole{1, 2}, x{1.0f, 2.0f}, wide{1.0, 2.0};
  EXPECT_TRUE(says(messageOf([&] { elu(whole); }), "elu: takes a float, got i32[2]"));
  EXPECT_TRUE(says(messageOf([&] { celu(x, 0); }), "celu: alpha is 0"));
  EXPECT_TRUE(says(messageOf([&] { xlogy(x, wide); }), "xlogy: dtypes differ"));
  EXPECT_TRUE(says(messageOf([&] { lerp(x, x, wide); }), "lerp: dtypes differ"));
  EXPECT_TRUE(says(messageOf([&] { bitwise_and(x, x); }), "bitwise_and"));
  EXPECT_TRUE(says(messageOf([&] { lgamma(whole); }), "lgamma"));
  EXPECT_TRUE(says(messageOf([&] { hypot(x, Tensor{1.0f, 2.0f, 3.0f}); }), "hypot: shapes do not broadcast"));
}

// Compiled, a sigmoid is one expansion where AVX-512 is: within 4 ulp from one end to the other, subnormal results too,
// and a lane's bits are a scalar's.
TEST(Activations, CompiledSigmoidsAreCloseEverywhere) {
  std::vector<double> xs = {0, -0.0, 1e-300, 1e300, -1e300, inf, -inf, -745.13, -746.5, -709.5, -710, 746.5};
  for (double x = -750; x < 750; x += 0.731)
    xs.push_back(x);
  auto f = wg::function("f", [](const Tensor &x) { return sigmoid(x); });
  std::vector<double> ys = f(Tensor::from(xs)).to_vector<double>();
  for (size_t i = 0; i < xs.size(); ++i) {
    long double wanted = 1 / (1 + std::exp(-static_cast<long double>(xs[i])));
    auto nearest = static_cast<double>(wanted);
    double ulp = std::nextafter(nearest, inf) - nearest;
    EXPECT_LE(std::fabs(static_cast<double>(ys[i] - wanted)), 4 * ulp) << xs[i];
    if (i % 100 == 0)
      EXPECT_EQ(f(Tensor(xs[i])).item<double>(), ys[i]) << xs[i];
  }
  EXPECT_TRUE(std::isnan(f(Tensor(std::nan(""))).item<double>()));
}

} // namespace
} // namespace wg
