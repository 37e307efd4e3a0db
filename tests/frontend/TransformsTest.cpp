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

// Each place of a variable is a variable of its own to the derivative, as each place of a tensor is.
TEST(Transforms, OneVariableAtTwoPlacesIsTwoArguments) {
  Variable v(3.0), w(5.0);
  auto product = [](const Variable &a, const Variable &b) { return a * a * b; };
  auto asTensors = [](const Tensor &a, const Tensor &b) { return a * a * b; };
  auto asFunction = wg::function("product", product);
  auto check = [&](auto f, const char *name) {
    SCOPED_TRACE(name);
    auto both = [&](const Variable &x, const Variable &y) {
      std::vector<Grad> g = value_and_grad(f, {0, 1})(x, y).second;
      return std::pair(g[0].item<double>(), g[1].item<double>());
    };
    EXPECT_EQ(both(v, v), std::pair(18.0, 9.0));
    EXPECT_EQ(both(v, w), std::pair(30.0, 9.0));
    EXPECT_EQ(value_and_grad(f, {1})(v, v).second[0].template item<double>(), 9.0);
    EXPECT_EQ(grad(f)(v, v).template item<double>(), 18.0);
    // By one place twice, and inside of a traced function.
    EXPECT_EQ(value_and_grad(f, {0, 0})(v, v).second[1].template item<double>(), 18.0);
    auto traced = wg::function("traced", [&] {
      std::vector<Grad> g = value_and_grad(f, {0, 1})(v, v).second;
      return std::pair(g[0].value(), g[1].value());
    });
    auto [first, second] = traced();
    EXPECT_EQ(first.template item<double>(), 18.0);
    EXPECT_EQ(second.template item<double>(), 9.0);
    // A tape outside sees the variable: d/dv (2 v v + v v) = 6 v.
    GradientTape tape;
    std::vector<Grad> g = value_and_grad(f, {0, 1})(v, v).second;
    EXPECT_EQ(tape.gradient(g[0].value() + g[1].value(), v).template item<double>(), 18.0);
  };
  check(product, "variables");
  check(asTensors, "tensors");
  check(asFunction, "a function of variables");
  check(wg::function("tensors", asTensors), "a function of tensors");
  check(wg::function("calls", [&](const Variable &a, const Variable &b) { return asFunction(a, b); }),
        "a function that calls one");
}

TEST(Transforms, AStructureThatHoldsAVariableTwiceHasTwoGradients) {
  Variable v(Tensor{1.0, 2.0});
  auto f = [](const std::vector<Variable> &list) { return reduce_sum(list[0] * list[0] * list[1]); };
  auto check = [&](auto g) {
    std::vector<Grad> gradient = grad(g)(std::vector{v, v});
    EXPECT_EQ(gradient[0].value().template to_vector<double>(), (std::vector{2.0, 8.0}));
    EXPECT_EQ(gradient[1].value().template to_vector<double>(), (std::vector{1.0, 4.0}));
  };
  check(f);
  check(wg::function("list", f));
  // A tape that a person opens sees one variable, in the function as well.
  auto inner = [](const Variable &a, const Variable &b) {
    GradientTape tape;
    Tensor y = reduce_sum(a * a * b);
    return reduce_sum(tape.gradient(y, a).value()); // 3 v v, summed
  };
  for (bool traced : {false, true}) {
    std::vector<Grad> second = traced ? value_and_grad(wg::function("inner", inner), {0, 1})(v, v).second
                                      : value_and_grad(inner, {0, 1})(v, v).second;
    // d/da (2 a b + a a) = 2 b + 2 a, d/db = 2 a
    EXPECT_EQ(second[0].value().to_vector<double>(), (std::vector{4.0, 8.0}));
    EXPECT_EQ(second[1].value().to_vector<double>(), (std::vector{2.0, 4.0}));
  }
}

TEST(Transforms, ACapturedVariableIsAConstantBesideItsSeveralPlaces) {
  Variable v(3.0);
  auto f = [&](const Variable &a, const Variable &b) { return a * a * b * v; };
  auto check = [&](auto g, const char *name) {
    SCOPED_TRACE(name);
    auto [value, gradients] = value_and_grad(g, {0, 1})(v, v);
    EXPECT_EQ(value.template item<double>(), 81.0);
    EXPECT_EQ(gradients[0].template item<double>(), 54.0);
    EXPECT_EQ(gradients[1].template item<double>(), 27.0);
    EXPECT_EQ(value_and_grad(g, {1})(v, v).second[0].template item<double>(), 27.0);
  };
  check(f, "eager");
  auto function = wg::function("captures", f);
  function(v, v); // a trace in which argument and capture are one
  check(function, "function");
  EXPECT_EQ(function(v, v).item<double>(), 81.0);
}

// As the variables of a model, which f captures, are named by its argument.
TEST(Transforms, AVariableAtOnePlaceIsThatVariable) {
  Variable v(3.0), w(5.0);
  auto one = [&](const Variable &a) { return a * v; };
  EXPECT_EQ(grad(one)(v).item<double>(), 6.0);
  EXPECT_EQ(grad(one)(w).item<double>(), 3.0);
  EXPECT_EQ(grad(wg::function("one", one))(v).item<double>(), 6.0);
  auto captured = [&](const std::vector<Variable> &) { return v * v * w; };
  for (bool traced : {false, true}) {
    std::vector<Variable> both{v, w};
    std::vector<Grad> g = traced ? grad(wg::function("captured", captured))(both) : grad(captured)(both);
    EXPECT_EQ(g[0].item<double>(), 30.0);
    EXPECT_EQ(g[1].item<double>(), 9.0);
  }
}

// Every place reads what one of them, or the variable itself, was assigned; and the read counts for its place.
TEST(Transforms, WhatIsAssignedAtOnePlaceIsReadAtAll) {
  Variable v(3.0);
  auto f = [&](const Variable &a, const Variable &b) {
    Tensor before = a * b;
    a.assign(b * 2.0);
    Tensor between = before + a * 10.0 + b * 100.0 + v * 1000.0;
    v.assign_add(1.0);
    return between + a * b;
  };
  auto check = [&](auto g, const char *name) {
    SCOPED_TRACE(name);
    v.assign(3.0);
    auto [value, gradients] = value_and_grad(g, {0, 1})(v, v);
    EXPECT_EQ(value.template item<double>(), 9 + 60 + 600 + 6000 + 49);
    EXPECT_EQ(gradients[0].template item<double>(), 3 + 10 + 7);
    EXPECT_EQ(gradients[1].template item<double>(), 3 + 100 + 7);
    EXPECT_EQ(v.item<double>(), 7.0);
  };
  check(f, "eager");
  check(wg::function("assigns", f), "function");
  auto outer = wg::function("outer", [&] {
    auto [value, gradients] = value_and_grad(f, {0, 1})(v, v);
    return std::tuple(value, gradients[0].value(), gradients[1].value());
  });
  v.assign(3.0);
  auto [value, da, db] = outer();
  EXPECT_EQ(value.item<double>(), 6718.0);
  EXPECT_EQ(da.item<double>(), 20.0);
  EXPECT_EQ(db.item<double>(), 110.0);
  EXPECT_EQ(v.item<double>(), 7.0);
  // A function that is called at trace time by another, with the places as arguments.
  auto inner = wg::function("inner", f);
  auto nested = wg::function("nested", [&] {
    auto [value, gradients] =
        value_and_grad([&](const Variable &a, const Variable &b) { return inner(a, b); }, {0, 1})(v, v);
    return std::tuple(value, gradients[0].value(), gradients[1].value());
  });
  v.assign(3.0);
  auto [value2, da2, db2] = nested();
  EXPECT_EQ(value2.item<double>(), 6718.0);
  EXPECT_EQ(da2.item<double>(), 20.0);
  EXPECT_EQ(db2.item<double>(), 110.0);
  EXPECT_EQ(v.item<double>(), 7.0);
}

TEST(Transforms, PlacesNest) {
  Variable v(2.0);
  // d/da of d/da (a a b b) by the places of an inner derivative: 2 b b.
  auto second = [&](const Variable &a, const Variable &b) {
    return grad([](const Variable &x, const Variable &y) { return x * x * y * y; })(a, b).value();
  };
  for (bool traced : {false, true}) {
    auto [value, gradients] =
        traced ? value_and_grad(wg::function("second", second), {0, 1})(v, v) : value_and_grad(second, {0, 1})(v, v);
    EXPECT_EQ(value.item<double>(), 16.0);
    EXPECT_EQ(gradients[0].item<double>(), 8.0);  // 2 b b
    EXPECT_EQ(gradients[1].item<double>(), 16.0); // 4 a b
  }
  // The variable itself may be what f returns.
  EXPECT_EQ(grad([](const Variable &a) { return a; })(v).item<double>(), 1.0);
}

TEST(Transforms, AConcreteFunctionTellsPlacesApart) {
  Variable v(3.0), w(5.0);
  auto f = wg::function("product", [](const Variable &a, const Variable &b) { return a * a * b; });
  ConcreteFunction together = f.trace(v, v), apart = f.trace(v, w);
  auto call = [](const ConcreteFunction &cf) {
    return [&cf](const Variable &a, const Variable &b) { return cf(a, b)[0]; };
  };
  for (const ConcreteFunction *cf : {&together, &apart})
    EXPECT_THROW(value_and_grad(call(*cf), {0, 1})(v, v), Error);
  EXPECT_EQ(value_and_grad(call(apart), {0, 1})(v, w).second[0].item<double>(), 30.0);
}
