// Rows T-90 to T-94: derivatives as functions of functions.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

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

// T-94: by positions, each of which is there.
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

// ---- has_aux --------------------------------------------------------------------------------------------------------

namespace {
struct Curve {
  Tensor alpha, beta;
  int degree;
  Variable gamma;
  WENGERT_FIELDS(alpha, beta, degree, gamma)
};
std::string errorOf(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}
} // namespace

// JAX's has_aux: ((loss, aux), gradients), and the gradient is that of the loss alone.
TEST(Transforms, AuxIsHandedThroughAndNotDifferentiated) {
  auto f = [](const Tensor &w, const Tensor &x) {
    Tensor y = w * x;
    return std::pair(reduce_sum(y * y), std::tuple(y, std::string("y")));
  };
  for (bool traced : {false, true}) {
    auto both = [&](const Tensor &w, const Tensor &x) {
      auto [value, gradient] = value_and_grad(f, has_aux)(w, x);
      auto [g, aux] = grad(f, has_aux)(w, x);
      return std::tuple(value.first, std::get<0>(value.second), gradient.value(), g.value(), std::get<0>(aux));
    };
    Tensor w(3.0), x{1.0, 2.0};
    auto [loss, y, dw, g, again] = traced ? wg::function("both", both)(w, x) : both(w, x);
    EXPECT_EQ(loss.item<double>(), 45.0);
    EXPECT_EQ(y.to_vector<double>(), (std::vector{3.0, 6.0}));
    EXPECT_EQ(dw.item<double>(), 30.0); // with y in it: 33
    EXPECT_EQ(g.item<double>(), 30.0);
    EXPECT_EQ(again.to_vector<double>(), (std::vector{3.0, 6.0}));
  }
  auto of = [](const Tensor &a, const Tensor &b) { return std::tuple(a * b, a); };
  auto [dy, dx] = value_and_grad(of, {1, 0}, has_aux)(Tensor(2.0), Tensor(5.0)).second;
  EXPECT_EQ(dy.item<double>(), 2.0);
  EXPECT_EQ(dx.item<double>(), 5.0); // with a in it: 6
  Variable v(4.0);
  auto variables = grad_wrt_variables([&](const Tensor &x) { return std::pair(v * x, v + x); }, has_aux)(Tensor(3.0));
  EXPECT_EQ(variables.gradients[0].item<double>(), 3.0);
  EXPECT_EQ(variables.value.second.item<double>(), 7.0);
}

// ---- Fields by name -------------------------------------------------------------------------------------------------

TEST(Transforms, GradientsByTheNamesOfFields) {
  auto f = [](const Curve &c, const Tensor &x) { return c.alpha * x + c.beta * x * x + c.gamma * c.beta; };
  for (bool traced : {false, true}) {
    auto by = [&](const Curve &curve, const Tensor &x) {
      return value_and_grad(f, {"beta", "gamma"})(curve, x).second;
    };
    Curve curve{Tensor(1.0), Tensor(2.0), 3, Variable(4.0)};
    auto g = traced ? wg::function("by", by)(curve, Tensor(5.0)) : by(curve, Tensor(5.0));
    EXPECT_EQ(g.beta.item<double>(), 29.0);
    EXPECT_EQ(g.gamma.item<double>(), 2.0);
    EXPECT_FALSE(g.alpha);
    EXPECT_EQ(g.alpha.reason(), "not asked for: value_and_grad is by the fields beta, gamma");
    EXPECT_FALSE(g.degree);
  }
  Curve curve{Tensor(1.0), Tensor(2.0), 3, Variable(4.0)};
  std::vector<std::string> names{"alpha"};
  EXPECT_EQ(value_and_grad(f, names)(curve, Tensor(5.0)).second.alpha.item<double>(), 5.0);
  auto aux = [&](const Curve &c, const Tensor &x) { return std::pair(f(c, x), c.alpha); };
  EXPECT_EQ(value_and_grad(aux, {"alpha"}, has_aux)(curve, Tensor(5.0)).second.alpha.item<double>(), 5.0);
  EXPECT_EQ(errorOf([&] {
              value_and_grad(f, {"alpha", "delta"})(curve, Tensor(5.0));
            }).find("value_and_grad: the first argument has no field 'delta'"),
            7u)
      << errorOf([&] { value_and_grad(f, {"alpha", "delta"})(curve, Tensor(5.0)); });
  EXPECT_NE(errorOf([&] {
              value_and_grad(f, {"delta"})(curve, Tensor(5.0));
            }).find("name one of: alpha, beta, degree, gamma"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { value_and_grad(f, {"beta", "beta"})(curve, Tensor(5.0)); }).find("named twice"),
            std::string::npos);
}

// ---- Gradient hooks -------------------------------------------------------------------------------------------------

namespace {
Tensor clipped(const Tensor &x) {
  return with_gradient_hook(x, [](const Tensor &ct) { return clip(ct, -1.0, 1.0); });
}
} // namespace

TEST(Hooks, AnEagerHookSeesTheCotangentAndReplacesIt) {
  std::vector<double> seen;
  Tensor x{1.0, -4.0};
  GradientTape tape;
  tape.watch(x);
  Tensor h = with_gradient_hook(x * x, [&](const Tensor &ct) {
    seen = ct.to_vector<double>();
    return ct * 0.5;
  });
  EXPECT_EQ(h.to_vector<double>(), (std::vector{1.0, 16.0}));
  Tensor y = reduce_sum(h * h) + reduce_sum(h); // the hook sees the sum of both ways
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<double>(), (std::vector{3.0, -132.0}));
  EXPECT_EQ(seen, (std::vector{3.0, 33.0}));
}

TEST(Hooks, AHookThatReturnsNothingOnlyLooks) {
  int calls = 0;
  for (int i = 0; i < 3; ++i) { // the same structure, and each tape's own hook
    Tensor x(2.0 + i);
    GradientTape tape;
    tape.watch(x);
    Tensor y = with_gradient_hook(x, [&, i](const Tensor &ct) {
      EXPECT_EQ(ct.item<double>(), 2.0 * (2.0 + i));
      ++calls;
    });
    EXPECT_EQ(tape.gradient(y * y, x).item<double>(), 2.0 * (2.0 + i));
  }
  EXPECT_EQ(calls, 3);
  Tensor alone = with_gradient_hook(Tensor(1.0), [&](const Tensor &) { ++calls; }); // nobody asks for a gradient
  EXPECT_EQ(alone.item<double>(), 1.0);
  EXPECT_EQ(calls, 3);
}

/// Eagerly; in a function; a function under an eager tape; a function called by a function; interpreted and compiled.
TEST(Hooks, EveryWayToAGradientGoesThroughTheHook) {
  auto f = [](const Tensor &x) { return reduce_sum(3.0 * clipped(x * x)); };
  auto gradient = [&](auto call, const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(call(x), x).value();
  };
  Tensor x{0.5, 2.0};
  std::vector<double> expected{1.0, 4.0}; // 3 is clipped to 1
  for (bool interpret : {false, true}) {
    FunctionOptions options;
    options.interpret = interpret;
    auto call = wg::function("f", f, options);
    auto inside = wg::function("inside", [&](const Tensor &x) { return gradient(f, x); }, options);
    auto around = wg::function("around", [&](const Tensor &x) { return gradient(call, x); }, options);
    auto twice = wg::function("twice", [&](const Tensor &x) { return call(x) + 0.0; }, options);
    EXPECT_EQ(gradient(f, x).to_vector<double>(), expected);
    EXPECT_EQ(gradient(call, x).to_vector<double>(), expected);
    EXPECT_EQ(inside(x).to_vector<double>(), expected);
    EXPECT_EQ(around(x).to_vector<double>(), expected);
    EXPECT_EQ(gradient(twice, x).to_vector<double>(), expected);
    EXPECT_EQ(call(x).item<double>(), 12.75);
  }
}

// With a known size that a trace did not have, the hook's derivative takes it, too.
TEST(Hooks, OpenSizesAreNarrowed) {
  auto f = wg::function("f", [](const Tensor &x) { return reduce_sum(3.0 * clipped(x)); });
  f.trace(TensorSpec(f64, {dynamic}));
  auto around = wg::function("around", [&](const Tensor &x) { return value_and_grad(f)(x).second.value(); });
  EXPECT_EQ(around(Tensor{1.0, 2.0}).to_vector<double>(), (std::vector{1.0, 1.0}));
  EXPECT_EQ(value_and_grad(f)(Tensor{1.0, 2.0, 3.0}).second.value().to_vector<double>(), (std::vector{1.0, 1.0, 1.0}));
}

// d/dx of ct^2 with ct = 2 x h'...: y = g(x)^2 with the hook ct -> ct^2: dy/dx = (2 x)^2, and its derivative is 8 x.
TEST(Hooks, ASecondDerivativeGoesThroughTheHook) {
  auto f = [](const Tensor &x) { return square(with_gradient_hook(x, [](const Tensor &ct) { return ct * ct; })); };
  auto second = [&](auto call, const Tensor &x) {
    GradientTape outer;
    outer.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      Tensor y = call(x);
      first = inner.gradient(y, x).value();
    }
    return std::pair(first, outer.gradient(first, x).value());
  };
  auto call = wg::function("f", f);
  auto inside = wg::function("inside", [&](const Tensor &x) { return second(f, x); });
  auto around = wg::function("around", [&](const Tensor &x) { return second(call, x); });
  Tensor x(3.0);
  for (auto [first, next] : {second(f, x), second(call, x), inside(x), around(x)}) {
    EXPECT_EQ(first.item<double>(), 36.0);
    // The hook is on the way of the outer tape as well: its cotangent 24 is squared.
    EXPECT_EQ(next.item<double>(), 576.0);
  }
}

// What the hook reads has derivatives in the gradient, and none in the value.
TEST(Hooks, WhatAHookReadsIsPartOfTheGradient) {
  Variable scale(2.0);
  auto f = [&](const Tensor &x) { return 5.0 * with_gradient_hook(x, [&](const Tensor &ct) { return ct * scale; }); };
  auto both = [&](const Tensor &x) {
    GradientTape outer;
    Tensor dx = value_and_grad(f)(x).second.value();
    return std::pair(dx, outer.gradient(dx, scale).value());
  };
  for (bool traced : {false, true}) {
    auto [dx, dScale] = traced ? wg::function("both", both)(Tensor(1.0)) : both(Tensor(1.0));
    EXPECT_EQ(dx.item<double>(), 10.0);
    EXPECT_EQ(dScale.item<double>(), 5.0);
  }
}

// T-50
TEST(Hooks, MistakesNameTheRuleAndTheLine) {
  auto run = [](auto hook) {
    return errorOf([&] {
      Tensor x{1.0, 2.0};
      GradientTape tape;
      tape.watch(x);
      tape.gradient(with_gradient_hook(x, hook), x);
    });
  };
  auto sum = [](const Tensor &ct) { return reduce_sum(ct); };
  EXPECT_NE(run(sum).find("the hook returned f64[] for a cotangent that is f64[2]"), std::string::npos) << run(sum);
  EXPECT_NE(run(sum).find("TransformsTest.cpp:"), std::string::npos);
  EXPECT_NE(run([](const Tensor &ct) { return cast(ct, f32); }).find("the hook returned f32[2]"), std::string::npos);
  EXPECT_NE(run([](const Tensor &) { return Tensor(); }).find("an undefined tensor"), std::string::npos);
  Variable v(1.0);
  auto traced = [&](auto hook) {
    return errorOf(
        [&] { wg::function("f", [&](const Tensor &x) { return with_gradient_hook(x, hook); })(Tensor{1.0, 2.0}); });
  };
  EXPECT_NE(traced(sum).find("the hook returned f64[]"), std::string::npos) << traced(sum);
  EXPECT_NE(traced(sum).find("TransformsTest.cpp:"), std::string::npos);
  EXPECT_NE(traced([&](const Tensor &ct) {
              v.assign_add(1.0);
              return ct;
            }).find("in a traced function it cannot"),
            std::string::npos);
  EXPECT_NE(errorOf([] {
              with_gradient_hook(Tensor{1, 2}, [](const Tensor &ct) { return ct; });
            }).find("gradients pass through floats only"),
            std::string::npos);
}

// A hook is C++ that runs in the middle of a gradient: what it does to the tape is an error or has no effect.
TEST(Hooks, AHookMayUseTheTape) {
  Tensor x(3.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  std::string said;
  Tensor y = with_gradient_hook(x * x, [&](const Tensor &ct) {
    said = errorOf([&] { tape.reset(); });
    return ct;
  });
  EXPECT_EQ(tape.gradient(y, x).item<double>(), 6.0);
  EXPECT_NE(said.find("the tape is computing a gradient"), std::string::npos) << said;
  auto ended = std::make_unique<GradientTape>();
  ended->watch(x);
  Tensor z = with_gradient_hook(x * x, [&](const Tensor &ct) {
    ended.reset();
    return ct;
  });
  EXPECT_EQ(ended->gradient(z * z, x).item<double>(), 108.0);
}
