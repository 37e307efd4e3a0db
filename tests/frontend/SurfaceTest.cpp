// What a new user expects of the public headers: what compiles, what is refused, and in which words.
#include "tests/frontend/Support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

#define EXPECT_SAYS(text, ...)                                                                                         \
  EXPECT_NE(messageOf([&] { __VA_ARGS__; }).find(text), std::string::npos) << messageOf([&] { __VA_ARGS__; })

namespace {

struct Model {
  Tensor alpha;
  std::vector<Variable> layers;
  int depth = 2;
  WENGERT_FIELDS(alpha, layers, depth)
};
struct Outer {
  Model model;
  std::optional<Tensor> bias;
  WENGERT_FIELDS(model, bias)
};

} // namespace

//===- Gradients --------------------------------------------------------------------------------------------------===//

TEST(Surface, OnlyWhatHoldsATensorCanBeWatchedOrASource) {
  static_assert(!detail::holdsTensors<std::vector<float>>() && !detail::holdsTensors<std::tuple<int, std::string>>() &&
                !detail::holdsTensors<Shape>());
  static_assert(detail::holdsTensors<std::vector<Tensor>>() && detail::holdsTensors<Outer>() &&
                detail::holdsTensors<std::map<std::string, Variable>>() &&
                detail::holdsTensors<std::tuple<int, std::optional<Grad>>>());
}

TEST(Surface, SourcesMayBeAListInBraces) {
  Variable v(2.0), w(3.0);
  Tensor x(5.0);
  GradientTape tape({.persistent = true});
  tape.watch({x, v});
  Tensor y = v * w * x;
  auto [dv, dw] = tape.gradient(y, {v, w});
  EXPECT_EQ(dv.item<double>(), 15);
  EXPECT_EQ(dw.item<double>(), 10);
  std::vector<Grad> three = tape.gradient(y, {v, x, w}, {.output_gradients = 2.0});
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[1].item<double>(), 12);
  EXPECT_EQ(tape.gradient({y, y * y}, {x})[0].item<double>(), 6 + 2 * 30 * 6);
}

TEST(Surface, AnOptimizerTakesListsInBraces) {
  Variable v(2.0), w(3.0);
  optim::SGD sgd(0.5);
  GradientTape tape;
  Tensor y = v * w;
  auto [dv, dw] = tape.gradient(y, {v, w});
  sgd.apply({dv, dw}, {v, w});
  EXPECT_EQ(v.item<double>(), 0.5);
  EXPECT_EQ(w.item<double>(), 2.0);
  sgd.apply(std::vector<Grad>{dv, dw}, {v, w});
  sgd.apply(std::tuple(dv, dw), {v, w});
  EXPECT_EQ(v.item<double>(), -2.5);
}

TEST(Surface, WatchingAListOfVariablesWatchesTheVariables) {
  Variable v(2.0, {.trainable = false});
  GradientTape tape;
  tape.watch({v});
  Tensor y = v * v;
  EXPECT_EQ(Grad(tape.gradient(y, v)).item<double>(), 4);
}

TEST(Surface, GradientsByPlacesCanBeTakenApart) {
  auto f = [](const Tensor &a, const Tensor &b) { return a * a * b; };
  auto [da, db] = value_and_grad(f, {0, 1})(Tensor(3.0), Tensor(5.0)).second;
  EXPECT_EQ(da.item<double>(), 30);
  EXPECT_EQ(db.item<double>(), 9);
  std::vector<Grad> list = value_and_grad(f, {1, 0})(Tensor(3.0), Tensor(5.0)).second;
  EXPECT_EQ(list[0].item<double>(), 9);
  auto sum = [](const std::vector<Tensor> &xs, const Tensor &y) { return xs[0] * xs[1] * y; };
  EXPECT_EQ(value_and_grad(sum, {0, 1})(std::vector{Tensor(2.0), Tensor(3.0)}, Tensor(4.0)).second.size(), 3u)
      << "all tensors of the arguments";
}

TEST(Surface, TheGradientByAStructHasItsFields) {
  Model model{Tensor(2.0), {Variable(3.0), Variable(4.0)}};
  auto f = [](const Model &m) { return m.alpha * m.alpha * m.layers[0] * m.layers[1] * static_cast<double>(m.depth); };
  auto [value, g] = value_and_grad(f)(model);
  EXPECT_EQ(value.item<double>(), 96);
  EXPECT_EQ(g.alpha.item<double>(), 96);
  EXPECT_EQ(g.layers[1].item<double>(), 24);
  EXPECT_FALSE(g.depth.has_value());
  auto step = wg::function("step", [&](const Outer &outer) {
    return value_and_grad([&](const Outer &o) { return f(o.model) + *o.bias; })(outer).second;
  });
  auto outer = step(Outer{model, Tensor(1.0)});
  EXPECT_EQ(outer.model.layers[0].item<double>(), 32) << "structs of gradients are results as well";
  EXPECT_EQ(outer.bias->item<double>(), 1);
}

TEST(Surface, ATensorOfItsOwnHasAGradientOfItsOwn) {
  for (bool traced : {false, true}) {
    auto run = [&](const std::function<Tensor(const Tensor &)> &copy, const Tensor &x) {
      auto f = [&](const Tensor &t) {
        GradientTape tape;
        tape.watch(t);
        Tensor same = copy(t);
        auto [dt, dsame] = tape.gradient(t * t + same * 3.0, t, same);
        return std::pair(Tensor(dt), Tensor(dsame));
      };
      return traced ? wg::function("f", f)(x) : f(x);
    };
    for (auto copy : std::vector<std::function<Tensor(const Tensor &)>>{
             [](const Tensor &t) { return +t; }, [](const Tensor &t) { return identity(t); },
             [](const Tensor &t) { return broadcast_to(t, t.shape()); }}) {
      auto [dt, dsame] = run(copy, Tensor{1.0, 2.0});
      EXPECT_EQ(dt.to_vector<double>(), (std::vector<double>{5, 7})) << traced;
      EXPECT_EQ(dsame.to_vector<double>(), (std::vector<double>{3, 3})) << traced;
    }
  }
}

TEST(Surface, AnEmptyGradientKeepsItsReason) {
  GradientTape tape({.persistent = true});
  Tensor x(1.0), z(2.0);
  tape.watch(x);
  Tensor y = x * x;
  Grad none = tape.gradient(y, z);
  ASSERT_FALSE(none.has_value());
  EXPECT_SAYS("the target is an empty gradient: " + none.reason(), tape.gradient(none, x));
  EXPECT_NE(Grad(tape.gradient(y, none)).reason().find("the source is an empty gradient: " + none.reason()),
            std::string::npos);
}

TEST(Surface, ATapeThatIsResetRecordsAgain) {
  Tensor x(3.0);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(Grad(tape.gradient(x * x, x)).item<double>(), 6);
  EXPECT_FALSE(tape.recording());
  tape.reset();
  EXPECT_TRUE(tape.recording());
  tape.watch(x);
  EXPECT_EQ(Grad(tape.gradient(x * x * x, x)).item<double>(), 27);
  GradientTape stopped;
  stopped.stop();
  stopped.reset();
  EXPECT_FALSE(stopped.recording()) << "what the user stopped stays so";
}

TEST(Surface, WatchingIntegersIsRefusedInAnyForm) {
  Variable count(1);
  GradientTape tape, lenient({.allow_non_differentiable = true});
  EXPECT_SAYS("must be floating", tape.watch(Tensor(1)));
  EXPECT_SAYS("must be floating", tape.watch(count));
  lenient.watch(count, Tensor(1));
}

TEST(Surface, ANumberAsSeedTakesItsTargetsDtype) {
  for (DType dtype : {f32, f64}) {
    Tensor x = ones({2}, dtype);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = x * x;
    EXPECT_EQ(Grad(tape.gradient(y, x, GradientOptions{.output_gradients = 2})).value().to_vector<double>(),
              (std::vector<double>{4, 4}));
    EXPECT_EQ(Grad(tape.gradient(y, x, GradientOptions{.output_gradients = 0.5})).value().dtype(), dtype);
  }
}

TEST(Surface, ATapeSaysWhoseItIs) {
  GradientTape tape;
  std::string message;
  std::thread([&] { message = messageOf([&] { tape.watch(Tensor(1.0)); }); }).join();
  EXPECT_NE(message.find("belongs to another thread"), std::string::npos) << message;
  wg::function("f", [&](const Tensor &x) {
    EXPECT_SAYS("belongs to eager code, and a function is being traced", tape.watch(x));
    return x;
  })(Tensor(1.0));
}

//===- Functions --------------------------------------------------------------------------------------------------===//

TEST(Surface, DefaultArgumentsKeepTheirValues) {
  auto f = wg::function(
      "f", [](const Tensor &x, int n = 3, const std::string &how = "plus") { return how == "plus" ? x + n : x * n; });
  EXPECT_EQ(f(Tensor(2.0)).item<double>(), 5);
  EXPECT_EQ(f(Tensor(2.0), 4).item<double>(), 6);
  EXPECT_EQ(f(Tensor(2.0), 4, "times").item<double>(), 8);
  EXPECT_EQ(f(Tensor(3.0)).item<double>(), 6);
  EXPECT_EQ(f.trace_count(), 3);
  EXPECT_EQ(f.trace(Tensor(2.0))(Tensor(7.0))[0].item<double>(), 10);
}

TEST(Surface, AnOpIsAFunction) {
  auto f = wg::function("exp", wg::exp);
  EXPECT_NEAR(f(Tensor(1.0)).item<double>(), std::exp(1.0), 1e-15);
  EXPECT_SAYS("float", f(Tensor(1)));
}

TEST(Surface, ACallableMayBeOneThatCanOnlyBeMoved) {
  auto f = wg::function("f", [scale = std::make_unique<double>(3.0)](const Tensor &x) { return x * *scale; });
  auto g = f;
  EXPECT_EQ(g(Tensor(2.0)).item<double>(), 6);
}

TEST(Surface, SpansViewsAndShapesAreArguments) {
  auto sum = wg::function("sum", [](std::span<const Tensor> xs, std::string_view how) {
    Tensor total = xs[0];
    for (const Tensor &x : xs.subspan(1))
      total = how == "add" ? total + x : total * x;
    return total;
  });
  std::vector<Tensor> xs{Tensor(2.0), Tensor(3.0), Tensor(4.0)};
  EXPECT_EQ(sum(xs, "add").item<double>(), 9);
  EXPECT_EQ(sum(xs, "multiply").item<double>(), 24);
  EXPECT_EQ(sum(std::span(xs).first(2), "add").item<double>(), 5);
  EXPECT_EQ(xs[0].item<double>(), 2) << "the caller's tensors are not touched by the trace";
  EXPECT_EQ(sum.trace_count(), 3);
  auto filled = wg::function("filled", [](const Shape &shape) { return ones(shape) * 2.0f; });
  EXPECT_EQ(filled(Shape{2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(filled(Shape{3}).size(), 3);
  EXPECT_EQ(filled(Shape{2, 3}).size(), 6);
  EXPECT_EQ(filled.trace_count(), 2);
  EXPECT_NE(filled.explain_last_trace().find("shape [2, 3] -> shape [3]"), std::string::npos)
      << filled.explain_last_trace();
}

TEST(Surface, OptionsThatCannotBeAreRefused) {
  auto body = [](const Tensor &x) { return x; };
  EXPECT_SAYS("capacity is 0", wg::function("f", body, {.capacity = 0}));
  EXPECT_SAYS("max_traces is -1", wg::function("f", body, {.max_traces = -1}));
  EXPECT_SAYS("argument_names has 'x' twice", wg::function("f", body, {.argument_names = {"x", "x"}}));
}

//===- Messages ---------------------------------------------------------------------------------------------------===//

TEST(Surface, ARemedyDoesNotCutAFloat) {
  EXPECT_SAYS("cast(a, f32)", Tensor(1) + Tensor(1.0f));
  EXPECT_SAYS("cast(b, f32)", Tensor(1.0f) + Tensor(1));
  EXPECT_SAYS("cast(a, i64)", Tensor(1) + Tensor(int64_t(1)));
}

TEST(Surface, ErrorsNameThingsAsTheUserDoes) {
  wg::function("step", [](const Tensor &x) {
    EXPECT_SAYS("error: item: ", x.item<double>());
    EXPECT_SAYS("error: to_vector: ", x.to_vector<double>());
    EXPECT_SAYS("while 'step' is traced", x + zeros({3}, f64));
    return x;
  })(ones({2}, f64));
  Variable count(1), weight(ones({2}));
  EXPECT_SAYS("an unnamed variable (i32[]) is i32[]", GradientTape().watch(count));
  // A lambda is named by the function around it, and a place in the standard library is none of the user's.
  auto fail = [] { return zeros({2}) + zeros({3}); };
  EXPECT_SAYS("SurfaceTest.cpp", fail());
  EXPECT_EQ(messageOf([&] { fail(); }).find("in operator"), std::string::npos) << messageOf([&] { fail(); });
  std::function<Tensor(const Located &)> through = [](const Located &x) { return x + zeros({3}); };
  EXPECT_EQ(messageOf([&] { std::invoke(through, zeros({2})); }).find("invoke.h"), std::string::npos)
      << messageOf([&] { std::invoke(through, zeros({2})); });
}

TEST(Surface, EverythingPrintsInOneWay) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(wg::to_string(x.shape()), "(2, 3)");
  EXPECT_EQ(wg::to_string(x.dtype()), "f32");
  EXPECT_EQ(wg::to_string(TensorType{f64, {dynamic, 2}}), "f64[?,2]");
  std::ostringstream out;
  out << x.shape() << " " << x.dtype() << " " << TensorType{i32, {}} << " " << Grad::none("so");
  EXPECT_EQ(out.str(), "(2, 3) f32 i32[] None: so");
}

//===- Literals ---------------------------------------------------------------------------------------------------===//

// A scalar counts everywhere: in the kernels of every op with two operands, on either side, for every dtype and size.
TEST(Surface, AScalarIsWhatABroadcastScalarIs) {
  using Binary = Tensor (*)(const Located &, const Located &);
  for (DType dtype : {f64, f32, i64, i32, u8})
    for (int64_t size : {0, 1, 7, 5000, 200'000}) {
      Tensor x = cast(arange(size) % 7 + 1, dtype), two = cast(Tensor(2), dtype), wide = broadcast_to(two, {size});
      std::vector<Binary> ops{[](const Located &a, const Located &b) { return a + b; },
                              [](const Located &a, const Located &b) { return a - b; },
                              [](const Located &a, const Located &b) { return a * b; },
                              [](const Located &a, const Located &b) { return a % b; },
                              [](const Located &a, const Located &b) { return a < b; },
                              [](const Located &a, const Located &b) { return a == b; },
                              [](const Located &a, const Located &b) { return maximum(a, b); },
                              [](const Located &a, const Located &b) { return pow(a, b); }};
      for (Binary op : ops) {
        ASSERT_EQ(op(x, 2).to_vector<double>(), op(x, wide).to_vector<double>());
        ASSERT_EQ(op(2, x).to_vector<double>(), op(wide, x).to_vector<double>());
        ASSERT_EQ(op(x, two).to_vector<double>(), op(x, wide).to_vector<double>());
        ASSERT_EQ(op(two, x).to_vector<double>(), op(wide, x).to_vector<double>());
      }
      EXPECT_EQ(where(x > 2, x, two).to_vector<double>(), where(x > 2, x, wide).to_vector<double>());
      EXPECT_EQ(where(Tensor(true), two, x).to_vector<double>(), wide.to_vector<double>());
    }
}

TEST(Surface, ScalarsOnATapeHaveTheirGradients) {
  Tensor x = linspace(0.5, 2.0, 6, f64), s(3.0);
  auto f = [](const Tensor &x, const Tensor &s) {
    Tensor y = 2.0 * x / s + pow(x, s) * 0.5 - maximum(1.0, x) * s;
    return reduce_sum(where(x > 1.0, y * s, s));
  };
  auto both = [&](const Tensor &x, const Tensor &s) {
    GradientTape outer;
    outer.watch(x, s);
    GradientTape inner;
    inner.watch(x, s);
    Tensor y = f(x, s);
    auto [dx, ds] = inner.gradient(y, x, s);
    auto [ddx, dds] = outer.gradient({Tensor(dx) * Tensor(dx), Tensor(ds) * 2.0}, x, s);
    return std::vector<Tensor>{y, dx, ds, ddx, dds};
  };
  std::vector<Tensor> eager = both(x, s), traced = wg::function("both", both)(x, s);
  for (size_t i = 0; i < eager.size(); ++i) {
    ASSERT_EQ(eager[i].shape(), traced[i].shape()) << i;
    EXPECT_LT(reduce_max(abs(eager[i] - traced[i])).item<double>(), 1e-11) << i;
  }
  EXPECT_EQ(eager[2].rank(), 0);
}
