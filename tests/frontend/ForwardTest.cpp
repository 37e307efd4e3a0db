// Forward mode as a user meets it: jvp, ForwardAccumulator and its nestings, eagerly and in traced functions.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;
using wg::tests::messageOf;
using wg::tests::says;

static Tensor wave(const Tensor &x) { return reduce_sum(sin(x) * exp(0.5 * x), 0); }
/// Of one number: sin(x) exp(x / 2), and its first two derivatives.
static double wave0(double x) { return std::sin(x) * std::exp(x / 2); }
static double wave1(double x) { return std::exp(x / 2) * (std::cos(x) + std::sin(x) / 2); }
static double wave2(double x) { return std::exp(x / 2) * (std::cos(x) - 0.75 * std::sin(x)); }

namespace {
struct Layer {
  Variable weight, bias;
  int power = 2;
  WENGERT_FIELDS(weight, bias, power)
};
struct Mlp : nn::Module {
  nn::Dense hidden{3, 5, wg::tanh}, out{5, 2};
  Mlp() { add("hidden", hidden), add("out", out); }
  Tensor operator()(const Tensor &x) const { return out(hidden(x)); }
};
} // namespace

TEST(JvpTest, MovesByTheSlope) {
  Tensor x{0.3, -0.7, 1.1}, v{1.0, 2.0, -0.5};
  auto [y, dy] = jvp(wave, x, v);
  EXPECT_NEAR(y.item<double>(), wave0(0.3) + wave0(-0.7) + wave0(1.1), 1e-12);
  EXPECT_NEAR(dy.item<double>(), wave1(0.3) + 2 * wave1(-0.7) - 0.5 * wave1(1.1), 1e-12);
}

TEST(JvpTest, SeveralArgumentsAndStructures) {
  auto f = [](const std::vector<Tensor> &a, const Tensor &b) { return std::pair(a[0] * b, a[1] + 2.0); };
  std::vector<Tensor> a{Tensor(3.0), Tensor(5.0)}, da{Tensor(1.0), Tensor(10.0)};
  auto [y, dy] = jvp(f, std::tuple(a, Tensor(4.0)), std::tuple(da, Tensor(100.0)));
  EXPECT_EQ(y.first.item<double>(), 12);
  EXPECT_EQ(dy.first.item<double>(), 4 + 300);
  EXPECT_EQ(dy.second.item<double>(), 10);
  // A tangent that is undefined stands still.
  EXPECT_EQ(jvp(f, std::tuple(a, Tensor(4.0)), std::tuple(da, Tensor())).second.first.item<double>(), 4);
}

TEST(JvpTest, VariablesAndStructsWithNumbers) {
  Layer layer{Variable(Tensor{1.0, 2.0}), Variable(Tensor(0.5)), 3};
  auto f = [](const Layer &layer, const Tensor &x) {
    Tensor y = reduce_sum(layer.weight * x) + layer.bias;
    return layer.power == 3 ? y * y * y : y;
  };
  Tensor x{3.0, 4.0};
  auto g = value_and_grad(f)(layer, x).second;
  Layer unused = layer;
  struct Moves {
    Tensor weight, bias;
    WENGERT_FIELDS(weight, bias)
  } moves{Tensor{0.1, -0.2}, Tensor(1.0)};
  auto dy = jvp([&](const Layer &layer) { return f(layer, x); }, layer, moves).second;
  EXPECT_NEAR(dy.item<double>(), reduce_sum(g.weight.value() * moves.weight).item<double>() + g.bias.item<double>(),
              1e-12);
}

TEST(JvpTest, HasAuxAndWhatDoesNotMove) {
  auto f = [](const Tensor &x) { return std::pair(x * x, floor(x)); };
  auto [value, dy] = jvp(f, Tensor(3.0), Tensor(1.0), has_aux);
  EXPECT_EQ(value.second.item<double>(), 3);
  EXPECT_EQ(dy.item<double>(), 6);
  auto moved = jvp(f, Tensor(3.0), Tensor(1.0)).second;
  EXPECT_EQ(moved.first.item<double>(), 6);
  EXPECT_FALSE(moved.second.has_value());
  EXPECT_TRUE(says(moved.second.reason(), "'floor' (ForwardTest.cpp:")) << moved.second.reason();
  EXPECT_TRUE(
      says(jvp([](const Tensor &) { return Tensor(1.0); }, Tensor(3.0), Tensor(1.0)).second.reason(), "no path"));
  Tensor stopped = jvp([](const Tensor &x) { return x * stop_gradient(x); }, Tensor(3.0), Tensor(1.0)).second;
  EXPECT_EQ(stopped.item<double>(), 3);
}

TEST(JvpTest, EveryNestingGivesTheSecondDerivative) {
  auto f = [](const Tensor &x) { return sin(x) * exp(0.5 * x); };
  auto slope = [&](const Tensor &x) { return Tensor(jvp(f, x, ones_like(x)).second); };
  Tensor x(0.8);
  auto check = [&](const Tensor &found) { EXPECT_NEAR(found.item<double>(), wave2(0.8), 1e-12); };
  auto all = [&](const Tensor &x) {
    return std::vector<Tensor>{jvp(slope, x, ones_like(x)).second, grad(slope)(x),
                               jvp([&](const Tensor &x) { return Tensor(grad(f)(x)); }, x, ones_like(x)).second,
                               grad([&](const Tensor &x) { return Tensor(grad(f)(x)); })(x)};
  };
  for (const Tensor &found : all(x))
    check(found);
  auto traced = wg::function("all", all);
  for (const Tensor &found : traced(x))
    check(found);
  for (const Tensor &found : traced(x))
    check(found);
  // Through functions that are called: recorded by the tape of the jvp, and differentiated again.
  auto called = wg::function("wave", f);
  auto slopeOfCalled = [&](const Tensor &x) { return Tensor(jvp(called, x, ones_like(x)).second); };
  check(jvp(slopeOfCalled, x, ones_like(x)).second);
  check(grad(slopeOfCalled)(x));
  check(jvp([&](const Tensor &x) { return Tensor(grad(called)(x)); }, x, ones_like(x)).second);
  auto outer =
      wg::function("outer", [&](const Tensor &x) { return jvp(slopeOfCalled, x, ones_like(x)).second.value(); });
  check(outer(x));
}

// P-5
TEST(JvpTest, CallsWithSeveralResultsAndVariables) {
  Variable w(2.0);
  auto f = wg::function("f", [&](const Tensor &x) { return std::pair(w * x * x, stop_gradient(x)); });
  auto g = [&](const Tensor &x) {
    auto [a, b] = f(x);
    return a * b;
  };
  EXPECT_EQ(jvp(g, Tensor(3.0), Tensor(1.0)).second.item<double>(), 2 * 2 * 3 * 3);
  EXPECT_FALSE(jvp([&](const Tensor &x) { return f(x).second; }, Tensor(3.0), Tensor(1.0)).second.has_value());
  ForwardAccumulator acc(w, Tensor(1.0));
  EXPECT_EQ(acc.jvp(f(Tensor(3.0)).first).item<double>(), 9);
}

TEST(JvpTest, AnOpenSizeStaysOpen) {
  auto f = wg::function("f", [](const Tensor &x, const Tensor &v) {
    return jvp([](const Tensor &x) { return x / reduce_sum(x * x); }, x, v).second.value();
  });
  ConcreteFunction any = f.trace(TensorSpec{f64, {wg::dynamic}}, TensorSpec{f64, {wg::dynamic}});
  for (int64_t n : {1, 2, 5}) {
    Tensor x = arange(1, n + 1, 1, f64), v = ones({n}, f64);
    double squares = reduce_sum(x * x).item<double>(), sum = reduce_sum(x).item<double>();
    Tensor found = any(x, v)[0];
    for (int64_t i = 0; i < n; ++i)
      EXPECT_NEAR(found[i].item<double>(), 1 / squares - (i + 1.0) * 2 * sum / (squares * squares), 1e-12);
  }
}

TEST(JvpTest, Errors) {
  auto f = [](const Tensor &x) { return x * x; };
  EXPECT_TRUE(
      says(messageOf([&] { jvp(f, Tensor{1.0, 2.0}, Tensor(1.0)); }), "jvp: tangent 0 is f64[], its primal f64[2]"));
  EXPECT_TRUE(says(messageOf([&] { jvp(f, Tensor(1.0), Tensor(1.0f)); }), "tangent 0 is f32[], its primal f64[]"));
  EXPECT_TRUE(says(messageOf([&] { jvp(f, Tensor(1.0), std::vector<Tensor>{}); }), "0 tangents for 1 primals"));
  EXPECT_TRUE(says(messageOf([&] { jvp(f, Tensor(1), Tensor(1)); }), "only floats have tangents"));
  EXPECT_TRUE(says(messageOf([&] { jvp(f, Tensor(1.0), Tensor(1.0f)); }), "ForwardTest.cpp:"));
  auto hooked = [](const Tensor &x) { return with_gradient_hook(x * x, [](const Tensor &ct) { return 2.0 * ct; }); };
  EXPECT_TRUE(
      says(messageOf([&] { jvp(hooked, Tensor(1.0), Tensor(1.0)); }), "with_gradient_hook has a rule for cotangents"));
  auto traced = wg::function("hooked", [&](const Tensor &x) { return jvp(hooked, x, x).second.value(); });
  EXPECT_TRUE(says(messageOf([&] { traced(Tensor(1.0)); }), "reverse mode"));
}

// P-1
TEST(ForwardAccumulatorTest, LooksTangentsUp) {
  Tensor x{1.0, 2.0}, v{1.0, 0.0};
  std::optional<ForwardAccumulator> acc(std::in_place, x, v);
  Tensor y = x * x, z = reduce_sum(y);
  EXPECT_EQ(acc->jvp(y).to_vector<double>(), (std::vector<double>{2, 0}));
  EXPECT_EQ(acc->jvp(z).item<double>(), 2);
  EXPECT_EQ(acc->jvp(z).item<double>(), 2); // as often as is needed
  EXPECT_EQ(acc->jvp(x).to_vector<double>(), (std::vector<double>{1, 0}));
  auto stopped = acc->stop_recording();
  EXPECT_EQ(acc->jvp(z).item<double>(), 2);
  // P-11: before anything was computed, and of what does not move.
  ForwardAccumulator unused(x, v);
  EXPECT_EQ(unused.jvp(x).to_vector<double>(), (std::vector<double>{1, 0}));
  EXPECT_FALSE(unused.jvp(Tensor(1.0)).has_value());
}

// P-3, P-7: what counts is where recording began last.
TEST(ForwardAccumulatorTest, TheOneThatBeginsAgainIsTheInnerOne) {
  Tensor x(3.0), y;
  ForwardAccumulator first(x, Tensor(1.0)), second(x, Tensor(1.0));
  EXPECT_FALSE(second.jvp(first.jvp(x * x * x)).has_value());
  {
    auto paused = first.stop_recording();
    auto again = first.record();
    y = x * x * x;
    EXPECT_EQ(second.jvp(first.jvp(y)).item<double>(), 18);
    EXPECT_FALSE(first.jvp(second.jvp(y)).has_value());
  }
}

// P-4
TEST(ForwardAccumulatorTest, AnArgumentThatIsNotUsedMovesNothing) {
  auto f = wg::function("f", [](const Tensor &, const Tensor &b) { return b * 2.0; });
  Tensor x(3.0), z(1.0);
  ForwardAccumulator acc(x, Tensor(1.0));
  Tensor y = f(x, z);
  EXPECT_TRUE(says(acc.jvp(y).reason(), "does not depend on the source")) << acc.jvp(y).reason();
  EXPECT_EQ(acc.jvp(y, Unconnected::zero).item<double>(), 0);
}

// P-5: variables that functions read, and functions that these call.
TEST(ForwardAccumulatorTest, ThroughCalledFunctionsAndTheirVariables) {
  Variable w(4.0);
  auto inner = wg::function("inner", [&](const Tensor &x) { return x * w; });
  auto outer = wg::function("outer", [&](const Tensor &x) { return inner(x) * x; });
  Tensor x(3.0);
  for (int i = 0; i < 2; ++i) {
    ForwardAccumulator acc(std::pair(x, w), std::pair(Tensor(1.0), Tensor(10.0)));
    EXPECT_EQ(acc.jvp(outer(x)).item<double>(), 2 * 3 * 4 + 10 * 9);
  }
}

// P-7: of a tape inside of an accumulator, the accumulator's tangents are nothing.
TEST(ForwardAccumulatorTest, ATapeInsideRecordsNoTangents) {
  Tensor x(3.0);
  ForwardAccumulator acc(x, Tensor(1.0));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x * x;
  EXPECT_EQ(tape.size(), 2);
  EXPECT_EQ(acc.jvp(tape.gradient(y, x)).item<double>(), 18);
}

// P-3, P-4
TEST(ForwardAccumulatorTest, WhatIsComputedMeanwhileHasNoTangents) {
  Tensor x(3.0);
  ForwardAccumulator acc(x, Tensor(1.0));
  Tensor paused;
  {
    auto scope = acc.stop_recording();
    paused = x * x;
    auto again = acc.record();
    EXPECT_EQ(acc.jvp(x * x).item<double>(), 6);
    EXPECT_TRUE(says(messageOf([&] { auto more = acc.record(); }), "Accumulator is already recording."));
  }
  EXPECT_FALSE(acc.jvp(paused).has_value());
  EXPECT_EQ(acc.jvp(paused, Unconnected::zero).item<double>(), 0);
  EXPECT_EQ(acc.jvp(x * x).item<double>(), 6);
}

// P-2
TEST(ForwardAccumulatorTest, OnePrimalTwice) {
  Tensor x(3.0);
  EXPECT_TRUE(says(messageOf([&] { ForwardAccumulator acc(std::vector{x, x}, std::vector{Tensor(1.0), Tensor(1.0)}); }),
                   "multiple times"));
  ForwardAccumulator acc(x, Tensor(1.0));
  acc.watch(x, Tensor(10.0)); // later, tangents add
  EXPECT_EQ(acc.jvp(x * x).item<double>(), 66);
}

// P-6
TEST(ForwardAccumulatorTest, InnerOnesDoNotSeeOuterTangents) {
  Tensor x(0.8);
  ForwardAccumulator outer(x, Tensor(1.0));
  ForwardAccumulator inner(x, Tensor(1.0));
  Tensor y = sin(x) * exp(0.5 * x);
  EXPECT_NEAR(inner.jvp(y).item<double>(), wave1(0.8), 1e-12);
  EXPECT_NEAR(outer.jvp(inner.jvp(y)).item<double>(), wave2(0.8), 1e-12);
  EXPECT_FALSE(inner.jvp(outer.jvp(y)).has_value());
  bool isEmpty = false;
  auto traced = wg::function("levels", [&](const Tensor &x) {
    ForwardAccumulator outer(x, Tensor(1.0));
    ForwardAccumulator inner(x, Tensor(1.0));
    Tensor y = sin(x) * exp(0.5 * x);
    isEmpty = !inner.jvp(outer.jvp(y)).has_value();
    return outer.jvp(inner.jvp(y)).value();
  });
  EXPECT_NEAR(traced(x).item<double>(), wave2(0.8), 1e-12);
  EXPECT_TRUE(isEmpty);
}

// P-7, P-10
TEST(ForwardAccumulatorTest, HessianProductsBothWays) {
  Mlp model;
  std::vector<Variable> variables = model.trainable_variables();
  std::vector<Tensor> v;
  for (const Variable &variable : variables)
    v.push_back(random_normal(random::key(static_cast<int64_t>(v.size())), variable.shape()));
  Tensor x = random_normal(random::key(7), {4, 3}), y = random_normal(random::key(8), {4, 2});
  auto loss = [&] { return mean_squared_error(model(x), y); };
  auto forwardOverReverse = [&] {
    ForwardAccumulator acc(variables, v);
    GradientTape tape;
    return acc.jvp(tape.gradient(loss(), variables));
  };
  auto reverseOverForward = [&] {
    GradientTape tape;
    ForwardAccumulator acc(variables, v);
    return tape.gradient(acc.jvp(loss()), variables);
  };
  auto compare = [&](const std::vector<Grad> &a, const std::vector<Grad> &b) {
    ASSERT_EQ(a.size(), variables.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_LT(reduce_max(abs(a[i].value() - b[i].value())).item<float>(), 1e-5f) << variables[i].name();
  };
  std::vector<Grad> expected = forwardOverReverse();
  compare(expected, reverseOverForward());
  auto traced = wg::function("products", [&] { return std::pair(forwardOverReverse(), reverseOverForward()); });
  compare(traced().first, expected);
  compare(traced().second, expected);
  // And by differences.
  GradientTape tape({.persistent = true});
  auto gradient = [&] {
    GradientTape tape;
    return tape.gradient(loss(), variables);
  };
  const float h = 1e-2f;
  for (size_t i = 0; i < variables.size(); ++i)
    variables[i].assign_add(h * v[i]);
  std::vector<Grad> above = gradient();
  for (size_t i = 0; i < variables.size(); ++i)
    variables[i].assign_sub(2 * h * v[i]);
  std::vector<Grad> below = gradient();
  for (size_t i = 0; i < variables.size(); ++i)
    EXPECT_LT(reduce_max(abs((above[i].value() - below[i].value()) / (2 * h) - expected[i].value())).item<float>(),
              2e-2f);
}

TEST(VjpTest, TakesCotangentsBack) {
  auto f = [](const Tensor &a, const std::vector<Tensor> &b) { return std::pair(a * b[0], sin(b[1])); };
  Tensor a(3.0);
  std::vector<Tensor> b{Tensor(4.0), Tensor(0.5)};
  auto [y, pull] = vjp(f, std::tuple(a, b));
  EXPECT_EQ(y.first.item<double>(), 12);
  for (double scale : {1.0, 2.0}) {
    auto [da, db] = pull(std::pair(Tensor(scale), Tensor(10.0)));
    EXPECT_EQ(da.item<double>(), 4 * scale);
    EXPECT_EQ(db[0].item<double>(), 3 * scale);
    EXPECT_EQ(db[1].item<double>(), 10 * std::cos(0.5));
  }
  // What is undefined counts nothing; a number takes the dtype of the value.
  EXPECT_EQ(std::get<0>(pull(std::pair(Tensor(), Tensor(1.0)))).item<double>(), 0);
  EXPECT_EQ(vjp([](const Tensor &x) { return x * x; }, Tensor(3.0f)).second(1).item<float>(), 6);
  EXPECT_EQ(vjp([](const Tensor &x) { return std::pair(x * x, x); }, Tensor(3.0), has_aux).second(2).item<double>(),
            12);
  EXPECT_TRUE(says(messageOf([&] { pull(Tensor(1.0)); }), "1 cotangents for 2 tensors"))
      << messageOf([&] { pull(Tensor(1.0)); });
}

TEST(VjpTest, IsTheTransposeOfTheJvp) {
  auto f = [](const Tensor &x) { return softmax(x * x) * sin(x); };
  Tensor x = random_normal(random::key(1), {3, 4}, 0, 1, f64), v = random_normal(random::key(2), {3, 4}, 0, 1, f64),
         ct = random_normal(random::key(3), {3, 4}, 0, 1, f64);
  auto [y, push] = linearize(f, x);
  auto [z, pull] = vjp(f, x);
  auto dot = [](const Tensor &a, const Tensor &b) { return reduce_sum(a * b).item<double>(); };
  EXPECT_NEAR(dot(ct, push(v)), dot(pull(ct), v), 1e-12);
  EXPECT_NEAR(dot(ct, push(v)), dot(ct, jvp(f, x, v).second), 1e-15);
  EXPECT_NEAR(dot(ct, push(2.0 * v)), 2 * dot(ct, push(v)), 1e-15);
  auto traced = wg::function("both", [&](const Tensor &x, const Tensor &v, const Tensor &ct) {
    auto [y, push] = linearize(f, x);
    auto [z, pull] = vjp(f, x);
    return std::pair(reduce_sum(ct * push(v)), reduce_sum(pull(ct) * v));
  });
  auto [forward, reverse] = traced(x, v, ct);
  EXPECT_NEAR(forward.item<double>(), dot(ct, push(v)), 1e-12);
  EXPECT_NEAR(reverse.item<double>(), dot(ct, push(v)), 1e-12);
  auto transpose =
      linear_transpose([](const Tensor &x) { return matmul(Tensor{{1.0, 2.0}, {3.0, 4.0}}, x); }, Tensor{0.0, 0.0});
  EXPECT_EQ(transpose(Tensor{1.0, 10.0}).to_vector<double>(), (std::vector<double>{31, 42}));
}

TEST(HvpTest, AnArgumentMayBeAPair) {
  auto f = [](const std::pair<Tensor, Tensor> &p) { return p.first * p.first * p.second; };
  auto [da, db] = hvp(f, std::pair(Tensor(3.0), Tensor(5.0)), std::pair(Tensor(1.0), Tensor(10.0)));
  EXPECT_EQ(da.item<double>(), 2 * 5 * 1 + 2 * 3 * 10);
  EXPECT_EQ(db.item<double>(), 2 * 3 * 1);
}

TEST(JvpTest, ACalledFunctionMayHaveTheNameOfATangent) {
  auto inner = wg::function("named_jvp", [](const Tensor &x) { return sin(x); });
  auto outer = wg::function("named", [&](const Tensor &x) { return inner(x) * x; });
  EXPECT_NEAR(jvp(outer, Tensor(0.5), Tensor(1.0)).second.item<double>(), std::cos(0.5) * 0.5 + std::sin(0.5), 1e-15);
}

TEST(HvpTest, IsTheHessianTimesTheVector) {
  // f = a^2 b + sin(b): the Hessian is [[2b, 2a], [2a, -sin(b)]].
  auto f = [](const Tensor &a, const Tensor &b) { return a * a * b + sin(b); };
  auto check = [](const auto &product) {
    EXPECT_NEAR(std::get<0>(product).template item<double>(), 2 * 5 * 1 + 2 * 3 * 10, 1e-12);
    EXPECT_NEAR(std::get<1>(product).template item<double>(), 2 * 3 * 1 - std::sin(5.0) * 10, 1e-12);
  };
  std::tuple at(Tensor(3.0), Tensor(5.0)), v(Tensor(1.0), Tensor(10.0));
  check(hvp(f, at, v));
  auto traced = wg::function("hvp", [&](const Tensor &a, const Tensor &b) {
    auto [da, db] = hvp(f, std::tuple(a, b), v);
    return std::tuple(da.value(), db.value());
  });
  check(traced(std::get<0>(at), std::get<1>(at)));
  EXPECT_EQ(hvp([](const Tensor &x) { return reduce_sum(x * x * x); }, Tensor{1.0, 2.0}, Tensor{1.0, 1.0})
                .to_vector<double>(),
            (std::vector<double>{6, 12}));
}

TEST(CheckGradientsTest, RightFunctionsPass) {
  auto f = [](const Tensor &x, const Tensor &w) { return std::pair(tanh(matmul(x, w)), reduce_sum(x * x)); };
  Tensor x = random_normal(random::key(1), {3, 4}, 0, 1, f64), w = random_normal(random::key(2), {4, 2}, 0, 1, f64);
  GradientCheck check = check_gradients(f, std::tuple(x, w));
  EXPECT_TRUE(check) << check.report;
  EXPECT_LT(check.gradient_error, 1e-8);
  EXPECT_TRUE(says(check.report, "gradients at 20 of 20 elements")) << check.report;
  EXPECT_TRUE(check_gradients([](const Tensor &x) { return reduce_sum(sqrt(abs(x))); }, Tensor{1e-3, -2.0, 4.0}));
  GradientCheck narrow = check_gradients([](const Tensor &x) { return sigmoid(x); }, Tensor{0.5f, -1.0f});
  EXPECT_TRUE(narrow) << narrow.report;
}

TEST(CheckGradientsTest, WrongOnesAreNamedWithTheWorstElement) {
  // The gradient of x^2, had someone stopped half of it at one element.
  auto wrong = [](const Tensor &x) {
    Tensor half = where(Tensor{0.0, 1.0, 0.0} > 0.5, stop_gradient(x), x);
    return reduce_sum(x * half);
  };
  GradientCheck check = check_gradients(wrong, Tensor{1.0, 3.0, 2.0});
  EXPECT_FALSE(check);
  EXPECT_NEAR(check.gradient_error, 1, 1e-6);
  EXPECT_TRUE(says(check.report, "gradient: WRONG")) << check.report;
  EXPECT_TRUE(says(check.report, "primal 0, element (1,)")) << check.report;
  EXPECT_TRUE(says(check_gradients([](const Tensor &x) { return stop_gradient(x) * 2.0; }, Tensor(1.0)).report,
                   "(empty: blocked: 'stop_gradient'"));
}

TEST(CheckGradientsTest, VariablesArePutBackAndKinksAreSaid) {
  Variable w(Tensor{0.5, 0.0}, "w");
  GradientCheck check = check_gradients([](const Variable &w) { return reduce_sum(relu(w)); }, w);
  EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{0.5, 0.0}));
  EXPECT_TRUE(says(check.report, "gradients at 1 of 2 elements; at 1 differences say nothing")) << check.report;
  EXPECT_TRUE(check) << check.report;
  auto hooked = [](const Tensor &x) { return with_gradient_hook(x * x, [](const Tensor &) {}); };
  EXPECT_TRUE(says(check_gradients(hooked, Tensor(2.0)).report, "forward mode: not checked"));
  EXPECT_TRUE(says(messageOf([&] { check_gradients(hooked, Tensor(2)); }), "no float among the primals"));
}

TEST(ForwardAccumulatorTest, WhatRecordsAgainIsInsideOfAllOthers) {
  Tensor x(3.0);
  ForwardAccumulator first(x, Tensor(1.0)), second(x, Tensor(1.0));
  GradientTape tape;
  Tensor y, inner, outer;
  {
    auto paused = first.stop_recording();
    auto again = first.record();
    y = x * x * x;
    outer = second.jvp(first.jvp(y)).value();
    EXPECT_FALSE(first.jvp(second.jvp(y)).has_value());
  }
  EXPECT_EQ(outer.item<double>(), 18);
}
