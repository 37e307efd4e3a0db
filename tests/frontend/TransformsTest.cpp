// Rows T-90 to T-94: derivatives as functions of functions.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

using namespace wg;

// T-90
TEST(Transforms, ValueAndGradKeepsTheStructure) {
  auto loss = [](const std::map<std::string, Tensor> &p, const Tensor &x) {
    return reduce_sum(p.at("w") * x + p.at("b"));
  };
  std::map<std::string, Tensor> parameters{{"w", Tensor(3.0)}, {"b", Tensor(1.0)}};
  auto [value, gradient] = value_and_grad(loss)(parameters, Tensor{1.0, 2.0});
  EXPECT_EQ(value.item<double>(), 11.0);
  EXPECT_EQ(gradient.at("w").item<double>(), 3.0);
  EXPECT_EQ(gradient.at("b").item<double>(), 2.0);
}

namespace {
struct Layer {
  Tensor w;
  int power;
  std::optional<Tensor> bias;
  WENGERT_FIELDS(w, power, bias)
};
} // namespace

// What wg::function takes: statics and absent parts keep their places, among the sources and among the results.
TEST(Transforms, StaticsAndOptionalsKeepTheirPlaces) {
  auto f = [](const Layer &layer, const Tensor &x) {
    Tensor y = layer.w * x;
    for (int i = 1; i < layer.power; ++i)
      y = y * x;
    return std::tuple(layer.bias ? y + *layer.bias : y, 3, std::string("loss"));
  };
  for (bool traced : {false, true}) {
    auto both = [&](const Layer &layer) {
      auto [value, gradient] = value_and_grad(f)(layer, Tensor(5.0));
      auto [dw, dPower, dBias] = gradient;
      EXPECT_EQ(std::get<1>(value), 3);
      EXPECT_EQ(dPower.reason(), "the source is a number, an enum or a string");
      EXPECT_EQ(dBias.has_value(), layer.bias.has_value());
      return std::pair(dw, dBias ? *dBias : Grad());
    };
    auto run = [&](const Layer &layer) { return traced ? wg::function("both", both)(layer) : both(layer); };
    auto [dw, dBias] = run({Tensor(2.0), 2, Tensor(7.0)});
    EXPECT_EQ(dw.item<double>(), 25.0);
    EXPECT_EQ(dBias.item<double>(), 1.0);
    EXPECT_FALSE(run({Tensor(2.0), 2, std::nullopt}).second.has_value());
  }
  auto scaled = [](const std::optional<Tensor> &x, int n) { return *x * *x * n; };
  EXPECT_EQ(grad(scaled)(std::optional(Tensor(3.0)), 2)->item<double>(), 12.0);
  EXPECT_EQ(value_and_grad(scaled, {0})(std::optional(Tensor(3.0)), 2).second[0].item<double>(), 12.0);
  try {
    value_and_grad(scaled, {1})(std::optional(Tensor(3.0)), 2);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.message(), "argument 1 is a number, an enum or a string, which has no gradient");
  }
}

// T-93
TEST(Transforms, OneTensorTwiceIsTwoArguments) {
  auto product = [](const Tensor &a, const Tensor &b) { return a * a * b; };
  Tensor x(3.0);
  EXPECT_EQ(grad(product)(x, x).item<double>(), 18.0);
  auto [value, both] = value_and_grad(product, {0, 1})(x, x);
  EXPECT_EQ(both[0].item<double>(), 18.0);
  EXPECT_EQ(both[1].item<double>(), 9.0);
}

TEST(Transforms, GradientsStandInTheOrderOfThePlaces) {
  auto f = [](const Tensor &a, const Tensor &b) { return a * a * b; };
  auto [value, swapped] = value_and_grad(f, {1, 0})(Tensor(2.0), Tensor(3.0));
  EXPECT_EQ(swapped[0].item<double>(), 4.0);
  EXPECT_EQ(swapped[1].item<double>(), 12.0);
  for (int place : {2, -1})
    try {
      value_and_grad(f, {place})(Tensor(2.0), Tensor(3.0));
      FAIL();
    } catch (const Error &error) {
      EXPECT_EQ(error.message(), "place " + std::to_string(place) + " of 2 arguments");
      EXPECT_EQ(error.where().rfind("TransformsTest.cpp:", 0), 0u) << error.where();
    }
}

TEST(Transforms, GradNests) {
  auto cube = [](const Tensor &x) { return x * x * x; };
  auto first = [=](const Tensor &x) { return grad(cube)(x).value(); };
  auto second = [=](const Tensor &x) { return grad(first)(x).value(); };
  EXPECT_NEAR(second(Tensor(1.7)).item<double>(), 6 * 1.7, 1e-12);
  auto traced = wg::function("second", second);
  EXPECT_NEAR(traced(Tensor(1.7)).item<double>(), 6 * 1.7, 1e-12);
}

// T-92
TEST(Transforms, ByTheVariablesThatAreRead) {
  Variable a(2.0), b(3.0), c(4.0);
  auto result = grad_wrt_variables([&](const Tensor &x) { return b * a * x; })(Tensor(5.0));
  ASSERT_EQ(result.variables.size(), 2u);
  EXPECT_EQ(result.gradients[0].item<double>(), 15.0);
  EXPECT_EQ(result.gradients[1].item<double>(), 10.0);
  try {
    grad_wrt_variables([](const Tensor &x) { return x; })(Tensor(1.0));
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.message(), "No trainable variables were accessed while the function was being computed.");
  }
}
