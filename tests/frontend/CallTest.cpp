// Functions that call functions: which one is called, and whose derivative is taken, is never a matter of their names.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace wg;

namespace {

Tensor gradientOf(const std::function<Tensor(const Tensor &)> &f, const Tensor &x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x);
}

/// How often `part` appears in `text`.
int count(const std::string &text, const std::string &part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

const double kSin2 = std::sin(2.0), kCos2 = std::cos(2.0);

} // namespace

TEST(FunctionsOfOneName, ATracedStepTakesTheDerivativeOfTheOneThatItCalls) {
  auto a = wg::function("layer", [](const Tensor &x) { return sin(x); });
  auto b = wg::function("layer", [](const Tensor &x) { return x * x * x; });
  auto step = wg::function("step", [&](const Tensor &x) {
    Tensor db = gradientOf([&](const Tensor &t) { return b(t); }, x);
    Tensor da = gradientOf([&](const Tensor &t) { return a(t); }, x);
    return std::vector{da, db};
  });
  std::vector<Tensor> gradients = step(Tensor(2.0));
  EXPECT_DOUBLE_EQ(gradients[0].item<double>(), kCos2);
  EXPECT_DOUBLE_EQ(gradients[1].item<double>(), 12.0);
  // The derivative of b comes along with a function that takes it.
  auto ofB = wg::function("ofB", grad(b));
  auto mixed = wg::function("step", [&](const Tensor &x) {
    Tensor db = ofB(x).value();
    return std::vector{gradientOf([&](const Tensor &t) { return a(t); }, x), db};
  });
  gradients = mixed(Tensor(2.0));
  EXPECT_DOUBLE_EQ(gradients[0].item<double>(), kCos2);
  EXPECT_DOUBLE_EQ(gradients[1].item<double>(), 12.0);
}

// loss = sin(x) sin(2x): loss'' = -5 sin(x) sin(2x) + 4 cos(x) cos(2x).
TEST(FunctionsOfOneName, ASecondDerivativeThroughFunctionsWithoutANameIsRight) {
  auto layer = wg::function([](const Tensor &x) { return sin(x); });
  auto loss = wg::function([&](const Tensor &x) { return layer(x) * layer(2.0 * x); });
  double expected = -5 * std::sin(1.0) * std::sin(2.0) + 4 * std::cos(1.0) * std::cos(2.0);
  auto first = [&](const Tensor &x) { return gradientOf(loss, x); };
  Tensor one(1.0);
  EXPECT_NEAR(gradientOf(first, one).item<double>(), expected, 1e-12);
  auto traced = wg::function([&](const Tensor &x) { return gradientOf(first, x); });
  EXPECT_NEAR(traced(one).item<double>(), expected, 1e-12);
  auto half = wg::function([&](const Tensor &x) { return gradientOf(loss, x); });
  EXPECT_NEAR(gradientOf(half, one).item<double>(), expected, 1e-12);
  EXPECT_NEAR(grad(grad(loss))(one).value().item<double>(), expected, 1e-12);
  auto both = wg::function([&](const Tensor &x) { return grad(grad(loss))(x).value(); });
  EXPECT_NEAR(both(one).item<double>(), expected, 1e-12);
  auto tracedFirst = wg::function([&](const Tensor &x) { return gradientOf(loss, x); });
  auto tracedSecond = wg::function([&](const Tensor &x) { return gradientOf(tracedFirst, x); });
  EXPECT_NEAR(tracedSecond(one).item<double>(), expected, 1e-12);
}

TEST(FunctionsOfOneName, ThreeDeepAndOfOneNameEachIsItself) {
  // f = exp(g), g = h^3 + h, h = sin(x) + y
  auto h = wg::function("f", [](const Tensor &x, const Tensor &y) { return sin(x) + y; });
  auto g = wg::function("f", [&](const Tensor &x, const Tensor &y) {
    Tensor v = h(x, y);
    return v * v * v + v;
  });
  auto f = wg::function("f", [&](const Tensor &x, const Tensor &y) { return exp(g(x, y) * 0.125); });
  auto plain = [](const Tensor &x, const Tensor &y) {
    Tensor v = sin(x) + y;
    return exp((v * v * v + v) * 0.125);
  };
  auto derivatives = [](auto &&of, const Tensor &x, const Tensor &y) {
    GradientTape outer({.persistent = true});
    outer.watch(x, y);
    GradientTape inner;
    inner.watch(x, y);
    Tensor value = of(x, y);
    auto [dx, dy] = inner.gradient(value, x, y);
    auto [dxx, dxy] = outer.gradient(dx, x, y);
    auto [dyx, dyy] = outer.gradient(dy, x, y);
    return std::vector<Tensor>{value, dx, dy, dxx, dxy, dyx, dyy};
  };
  Tensor x(0.5), y(0.25);
  std::vector<Tensor> expected = derivatives(plain, x, y), eager = derivatives(f, x, y);
  auto traced = wg::function("f", [&](const Tensor &u, const Tensor &v) { return derivatives(f, u, v); });
  std::vector<Tensor> inTrace = traced(x, y);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(eager[i].item<double>(), expected[i].item<double>(), 1e-12) << i;
    EXPECT_NEAR(inTrace[i].item<double>(), expected[i].item<double>(), 1e-12) << i;
  }
}

TEST(FunctionsOfOneName, OneIsCalledFromTwoOfTheSameName) {
  auto inner = wg::function("part", [](const Tensor &x) { return exp(x); });
  auto once = wg::function("part", [&](const Tensor &x) { return inner(x) * x; });
  auto twice = wg::function("part", [&](const Tensor &x) { return inner(inner(x) * 0.5) + x; });
  auto all = [&](const Tensor &x) { return once(x) * twice(x) + inner(x); };
  auto plain = [](const Tensor &x) { return exp(x) * x * (exp(exp(x) * 0.5) + x) + exp(x); };
  Tensor x(0.3);
  double first = gradientOf(plain, x).item<double>();
  double second = gradientOf([&](const Tensor &t) { return gradientOf(plain, t); }, x).item<double>();
  auto step = wg::function("part", [&](const Tensor &t) { return gradientOf(all, t); });
  EXPECT_NEAR(gradientOf(all, x).item<double>(), first, 1e-12);
  EXPECT_NEAR(step(x).item<double>(), first, 1e-12);
  EXPECT_NEAR(gradientOf(step, x).item<double>(), second, 1e-11);
  auto steps = wg::function("part", [&](const Tensor &t) { return gradientOf(step, t); });
  EXPECT_NEAR(steps(x).item<double>(), second, 1e-11);
}

// What the library calls the parts of a derivative is free for a user's functions.
TEST(FunctionsOfOneName, NamesOfDerivativesCanBeTaken) {
  auto f = wg::function("f", [](const Tensor &x) { return tanh(x); });
  auto forward = wg::function("f_by_0_of_0_forward", [](const Tensor &x) { return x * 5.0; });
  auto backward = wg::function("f_by_0_of_0_backward", [](const Tensor &x, const Tensor &y) { return x * 7.0 + y; });
  auto vjp = wg::function("f_vjp", [](const Tensor &x) { return x * 11.0; });
  auto call = wg::function("call0", [](const Tensor &x) { return x * 13.0; });
  auto callVjp = wg::function("call0_vjp", [](const Tensor &x) { return x * 17.0; });
  auto all = [&](const Tensor &x) { return vjp(call(callVjp(backward(forward(f(x)), x)))) * 0.001; };
  auto plain = [](const Tensor &x) { return (tanh(x) * 35.0 + x) * (11.0 * 13.0 * 17.0 * 0.001); };
  auto squared = [](auto &&of) { return [&of](const Tensor &x) { return of(x) * of(x); }; };
  Tensor x(0.4);
  double first = gradientOf(squared(plain), x).item<double>();
  double second = gradientOf([&](const Tensor &t) { return gradientOf(squared(plain), t); }, x).item<double>();
  auto step = wg::function("tape", [&](const Tensor &t) { return gradientOf(squared(all), t); });
  EXPECT_NEAR(gradientOf(squared(all), x).item<double>(), first, 1e-9);
  EXPECT_NEAR(step(x).item<double>(), first, 1e-9);
  EXPECT_NEAR(gradientOf(step, x).item<double>(), second, 1e-9);
  EXPECT_NEAR(gradientOf([&](const Tensor &t) { return gradientOf(squared(all), t); }, x).item<double>(), second, 1e-9);
}

// Of two results one is on the path, as what the other goes into gives it no cotangent; its slope is infinite.
TEST(FunctionsOfOneName, AResultWithoutACotangentIsNotDifferentiated) {
  auto first = wg::function("f", [](const Tensor &x) { return std::vector{x + 3.0, sqrt(x)}; });
  auto second = wg::function("f", [](const Tensor &a, const Tensor &b) { return std::vector{a * a, b * 2.0}; });
  auto f = [&](const Tensor &x) {
    std::vector<Tensor> parts = first(x);
    return second(parts[0], parts[1])[0];
  };
  EXPECT_EQ(gradientOf(f, Tensor(0.0)).item<double>(), 6.0);
  auto step = wg::function("f", [&](const Tensor &x) { return gradientOf(f, x); });
  EXPECT_EQ(step(Tensor(0.0)).item<double>(), 6.0);
  auto whole = wg::function("f", f);
  EXPECT_EQ(gradientOf(whole, Tensor(0.0)).item<double>(), 6.0);
  EXPECT_EQ(gradientOf(step, Tensor(0.0)).item<double>(), 2.0);
  auto steps = wg::function("f", [&](const Tensor &x) { return gradientOf(step, x); });
  EXPECT_EQ(steps(Tensor(0.0)).item<double>(), 2.0);
}

TEST(FunctionsOfOneName, EachGradientOfARecordedCallTakesTheResultsThatItsTargetReads) {
  for (FunctionOptions options : {FunctionOptions{}, FunctionOptions{.interpret = true}}) {
    auto f = wg::function(
        "f",
        [](const Tensor &x, const Tensor &y) {
          Tensor t = tanh(x);
          return std::vector{t * x, sqrt(x), exp(t * y), stop_gradient(x * 5.0)};
        },
        options);
    for (double at : {0.0, 0.7}) {
      Tensor x(at), y(0.3);
      GradientTape tape({.persistent = true});
      tape.watch(x, y);
      std::vector<Tensor> parts = f(x, y);
      double t = std::tanh(at), slope = 1 - t * t;
      Tensor whole = tape.gradient(parts[0] + parts[1] + parts[2], x);
      if (at > 0)
        EXPECT_NEAR(whole.item<double>(), slope * at + t + 0.5 / std::sqrt(at) + std::exp(t * 0.3) * 0.3 * slope,
                    1e-12);
      else
        EXPECT_TRUE(std::isinf(whole.item<double>()));
      EXPECT_NEAR(Tensor(tape.gradient(parts[0], x)).item<double>(), slope * at + t, 1e-12);
      auto [dx, dy] = tape.gradient(parts[0] * parts[2], x, y);
      double e = std::exp(t * 0.3);
      EXPECT_NEAR(Tensor(dx).item<double>(), (slope * at + t) * e + t * at * e * 0.3 * slope, 1e-12);
      EXPECT_NEAR(Tensor(dy).item<double>(), t * at * e * t, 1e-12);
      Grad none = tape.gradient(parts[0], y);
      EXPECT_FALSE(none.has_value());
      EXPECT_NE(none.reason().find("no path"), std::string::npos) << none.reason();
      EXPECT_FALSE(Grad(tape.gradient(parts[3], x)).has_value());
      // What only a stopped path reads has no cotangent either.
      EXPECT_NEAR(Tensor(tape.gradient(parts[0] + stop_gradient(parts[1]), x)).item<double>(), slope * at + t, 1e-12);
    }
  }
}

TEST(FunctionsOfOneName, TheSecondDerivativeOfARecordedCallTakesThemToo) {
  auto f = wg::function("f", [](const Tensor &x) { return std::vector{x * x * x, sqrt(x)}; });
  for (double at : {0.0, 2.0}) {
    Tensor x(at);
    GradientTape outer;
    outer.watch(x);
    Tensor slope;
    {
      GradientTape inner;
      inner.watch(x);
      slope = inner.gradient(f(x)[0], x);
    }
    EXPECT_NEAR(slope.item<double>(), 3 * at * at, 1e-12);
    EXPECT_NEAR(Tensor(outer.gradient(slope, x)).item<double>(), 6 * at, 1e-12);
  }
}

TEST(FunctionsOfOneName, AModelThatReturnsWhatOnlyItsReportReadsTrains) {
  // The result that has no cotangent is of open sizes, and the step's variables are captured.
  Variable w({0.0, 1.0}, {.name = "w"});
  auto model = wg::function("model", [&w](const Tensor &x) {
    Tensor logits = reduce_sum(x * w, -1);
    return std::vector{logits, sqrt(abs(logits))};
  });
  model.trace(TensorSpec(f64, {dynamic, 2}));
  for (int64_t rows : {1, 3}) {
    Tensor x = reshape(linspace(0.0, 1.0, rows * 2, f64), {rows, 2}) * Tensor({1.0, 0.0});
    GradientTape tape;
    std::vector<Tensor> parts = model(x);
    Tensor dw = tape.gradient(reduce_sum(parts[0]), w);
    EXPECT_EQ(reduce_max(abs(dw - reduce_sum(x, 0))).item<double>(), 0.0) << rows;
  }
}

struct Affine {
  Variable w, b;
  Affine(int64_t in, int64_t out)
      : w(reshape(sin(linspace(1.0, 7.0, in * out, f64)), {in, out})), b(linspace(0.1, 0.5, out, f64)) {}
  Function<Tensor(const Tensor &)> call =
      Function<Tensor(const Tensor &)>("Affine", [this](const Tensor &x) { return matmul(x, w) + b; });
};

TEST(FunctionsOfOneName, TwoObjectsOfOneLayerWithWeightsOfDifferentShapesTrain) {
  Affine first(3, 4), second(4, 2);
  Tensor x = reshape(cos(linspace(0.0, 4.0, 15, f64)), {5, 3});
  auto loss = [&](auto &&a, auto &&b) { return reduce_sum(square(b(tanh(a(x))))); };
  auto plain = [](const Affine &layer) { return [&layer](const Tensor &t) { return matmul(t, layer.w) + layer.b; }; };
  auto gradients = [&](auto &&a, auto &&b) {
    GradientTape tape;
    Tensor value = loss(a, b);
    auto [dw1, db1, dw2, db2] = tape.gradient(value, first.w, first.b, second.w, second.b);
    return std::vector<Tensor>{value, dw1, db1, dw2, db2};
  };
  std::vector<Tensor> expected = gradients(plain(first), plain(second)), eager = gradients(first.call, second.call);
  auto step = wg::function("Affine", [&] { return gradients(first.call, second.call); });
  std::vector<Tensor> traced = step();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(traced[i].shape(), expected[i].shape());
    EXPECT_LT(reduce_max(abs(eager[i] - expected[i])).item<double>(), 1e-11) << i;
    EXPECT_LT(reduce_max(abs(traced[i] - expected[i])).item<double>(), 1e-11) << i;
  }
}

//===- What a module holds -----------------------------------------------------------------------------===//

TEST(Import, AFunctionThatIsCalledTwiceIsThereOnceAndItsDerivativeToo) {
  auto inner = wg::function("inner", [](const Tensor &x) { return sin(x); });
  auto middle = wg::function("middle", [&](const Tensor &x) { return inner(x) + inner(x * 2.0); });
  auto outer = wg::function("outer", [&](const Tensor &x) { return middle(inner(x)) * inner(middle(x)); });
  std::string text = outer.trace(Tensor(1.0)).text(Stage::traced);
  EXPECT_EQ(count(text, "func.func"), 3) << text;
  auto step = wg::function(
      "step", [&](const Tensor &x) { return gradientOf([&](const Tensor &t) { return inner(inner(t)); }, x); });
  text = step.trace(Tensor(1.0)).text(Stage::traced);
  EXPECT_EQ(count(text, "func.func"), 4) << text; // step, inner, forward, backward
  auto steps = wg::function("steps", [&](const Tensor &x) { return step(step(x)) + step(x); });
  text = steps.trace(Tensor(1.0)).text(Stage::traced);
  EXPECT_EQ(count(text, "func.func"), 4) << text; // steps, step, forward, backward
}

// Each calls the two before it: without sharing, the module of the last holds as many functions
// as there are ways to the first.
TEST(Import, WhatSeveralFunctionsShareIsThereOnce) {
  using F = Function<Tensor(const Tensor &)>;
  std::vector<F> chain{F("f", [](const Tensor &x) { return sin(x); }), F("f", [](const Tensor &x) { return cos(x); })};
  for (int i = 2; i < 40; ++i)
    chain.emplace_back(
        "f", [a = chain[chain.size() - 1], b = chain[chain.size() - 2]](const Tensor &x) { return a(x * 0.5) - b(x); });
  for (F &f : chain)
    f.trace(TensorSpec{f64, {dynamic}}); // which traces and does not compile
  std::string text = chain.back().trace(TensorSpec{f64, {dynamic}}).text(Stage::traced);
  EXPECT_EQ(count(text, "func.func"), 40);
}

TEST(Import, ACalleeIsNarrowedOnceForTheSameSizes) {
  auto inner = wg::function("inner", [](const Tensor &x) { return x * 2.0; });
  inner.trace(TensorSpec{f64, {dynamic}});
  auto outer = wg::function(
      "outer", [&](const Tensor &x, const Tensor &y) { return std::vector{inner(inner(x)) + inner(x), inner(y)}; });
  ConcreteFunction traced = outer.trace(Tensor{1.0, 2.0}, Tensor{1.0, 2.0, 3.0});
  EXPECT_EQ(count(traced.text(Stage::traced), "func.func"), 3) << traced.text(Stage::traced);
  EXPECT_EQ(inner.trace_count(), 1);
  EXPECT_EQ(outer(Tensor{1.0, 2.0}, Tensor{1.0, 2.0, 3.0})[0].to_vector<double>(), (std::vector{6.0, 12.0}));
  auto again = wg::function("again", [&](const Tensor &x) { return outer(x, x * 2.0)[1] + inner(x); });
  EXPECT_EQ(again(Tensor{1.0, 2.0}).to_vector<double>(), (std::vector{6.0, 12.0}));
}

// Two narrowed copies of functions of one name, which call functions of one name.
TEST(Import, NarrowedCalleesOfOneNameAreNotMixed) {
  auto a = wg::function("f", [](const Tensor &x) { return sin(x); });
  auto b = wg::function("f", [](const Tensor &x) { return x * x * x; });
  auto ofA = wg::function("f", [&](const Tensor &x) { return a(x) * 3.0; });
  auto ofB = wg::function("f", [&](const Tensor &x) { return b(x) * 5.0; });
  for (auto *f : {&a, &b, &ofA, &ofB})
    f->trace(TensorSpec{f64, {dynamic}});
  auto both = wg::function("f", [&](const Tensor &x) {
    Tensor loss = reduce_sum(ofA(x)) + reduce_sum(ofB(x));
    return std::vector{loss, gradientOf([&](const Tensor &t) { return reduce_sum(ofA(t)); }, x),
                       gradientOf([&](const Tensor &t) { return reduce_sum(ofB(t)); }, x),
                       gradientOf([&](const Tensor &t) { return reduce_sum(b(t)); }, x)};
  });
  std::vector<Tensor> results = both(Tensor{2.0, 2.0});
  EXPECT_NEAR(results[0].item<double>(), 2 * (3 * kSin2 + 5 * 8), 1e-12);
  EXPECT_NEAR(results[1].to_vector<double>()[1], 3 * kCos2, 1e-12);
  EXPECT_NEAR(results[2].to_vector<double>()[1], 60.0, 1e-12);
  EXPECT_NEAR(results[3].to_vector<double>()[1], 12.0, 1e-12);
}

TEST(Import, EqualProgramsHaveEqualText) {
  auto text = [] {
    auto inner = wg::function("inner", [](const Tensor &x) { return sin(x); });
    auto outer = wg::function("outer", [&](const Tensor &x) {
      return gradientOf([&](const Tensor &t) { return inner(inner(t)); }, x) + inner(x);
    });
    return outer.trace(Tensor(1.0)).text(Stage::traced);
  };
  EXPECT_EQ(text(), text());
}

//===- Names that something else has -------------------------------------------------------------------===//

TEST(Names, AnObjectMayHaveTheNameOfAFunctionThatItCalls) {
  auto inner = wg::function("inner", [](const Tensor &x) { return sin(x); });
  auto other = wg::function("outer", [&](const Tensor &x) { return inner(x) * 2.0; });
  auto outer = wg::function("outer", [&](const Tensor &x) { return other(x) + inner(x); });
  auto directory = std::filesystem::temp_directory_path() / ("wengert_names_test_" + std::to_string(getpid()));
  for (std::string name : {"inner", "outer", "outer_0", "outer_k0_map", "outer_c0", "outer_entry"}) {
    outer.trace(Tensor(1.0)).write_object(directory.string(), {.name = name});
    std::ofstream(directory / "main.c")
        << "#include \"" << name
        << ".h\"\n#include <math.h>\nint main(void) { double x = 1, y = 0; void *args[] = {&x, &y}; return " << name
        << "(args, 0, 0) || fabs(y - 3 * sin(1.0)) > 1e-12; }\n";
    std::string program = (directory / "main").string();
    EXPECT_EQ(std::system(("cc -o " + program + " " + (directory / "main.c").string() + " " +
                           (directory / (name + ".o")).string() + " -lm && " + program)
                              .c_str()),
              0)
        << name;
  }
  std::filesystem::remove_all(directory);
}

TEST(Names, FunctionsAreCalledAsTheLibrarysOwnSymbolsAre) {
  for (std::string name :
       {"main", "memcpy", "exp", "sin", "sinf", "wg_parallel_for", "f_k0_map", "f_entry", "", "1", "ü", "a b"}) {
    auto inner = wg::function(name, [](const Tensor &x) { return sin(x) * exp(x); });
    auto outer = wg::function(name, [&](const Tensor &x) { return inner(x) + pow(inner(x), 2.0); });
    auto plain = [](const Tensor &x) { return sin(x) * exp(x) + pow(sin(x) * exp(x), 2.0); };
    Tensor x{0.5, 1.5};
    auto step = wg::function(
        name, [&](const Tensor &t) { return gradientOf([&](const Tensor &u) { return reduce_sum(outer(u)); }, t); });
    std::vector<double> expected =
        gradientOf([&](const Tensor &u) { return reduce_sum(plain(u)); }, x).to_vector<double>();
    std::vector<double> found = step(x).to_vector<double>(),
                        eager =
                            gradientOf([&](const Tensor &u) { return reduce_sum(outer(u)); }, x).to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-11 * std::fabs(expected[i])) << name;
      EXPECT_NEAR(eager[i], expected[i], 1e-11 * std::fabs(expected[i])) << name;
    }
  }
}
