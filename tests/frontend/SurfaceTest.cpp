// What a new user expects of the public headers: what compiles, what is refused, and in which words.
#include "tests/frontend/Support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include <strings.h>
#include <unistd.h>

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
struct Net : nn::Module {
  nn::Dense hidden{2, 3, wg::tanh}, out{3, 1};
  Variable steps;
  Net() {
    add("hidden", hidden), add("out", out);
    steps = add("steps", Tensor(int64_t(0)), false);
  }
  Tensor operator()(const Tensor &x) const { return out(hidden(x)); }
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

TEST(Surface, AModelStandsForItsTrainableVariables) {
  Net net;
  Tensor x{{1.0f, 2.0f}};
  GradientTape tape({.persistent = true});
  tape.watch(net);
  Tensor y = reduce_sum(square(net(x)));
  std::vector<Grad> all = tape.gradient(y, net), listed = tape.gradient(y, net.trainable_variables());
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(all[i].to_vector<float>(), listed[i].to_vector<float>()) << i;
  auto [models, dx] = tape.gradient(y, std::tuple(net, 3), x, {.unconnected = Unconnected::zero});
  EXPECT_EQ(std::get<0>(models)[1].to_vector<float>(), all[1].to_vector<float>());
  EXPECT_EQ(dx.shape(), x.shape());

  Tensor before = net.hidden.weight();
  optim::SGD sgd(0.5);
  sgd.apply(all, net);
  EXPECT_EQ(net.hidden.weight().value().to_vector<float>(), (before - 0.5f * all[0]).to_vector<float>());
  optim::Adam adam;
  adam.build(net);
  EXPECT_EQ(adam.slots().size(), 1 + 2 * 4u);
  EXPECT_EQ(adam.named_slots()[1].first, "hidden.weight.m");
}

struct Mixed {
  Variable w{1.0f};
  int steps = 3;
  Tensor mean{2.0f};
  Variable b{0.0f};
  WENGERT_FIELDS(w, steps, mean, b)
};

TEST(Surface, WhatIsBesideVariablesIsLeftAlone) {
  Mixed mixed;
  auto gradient = [&] {
    GradientTape tape;
    tape.watch(mixed.mean);
    return tape.gradient(reduce_sum(mixed.w * mixed.w * mixed.mean) + mixed.b, mixed);
  };
  optim::SGD sgd(0.5);
  sgd.apply(gradient(), mixed);
  EXPECT_EQ(mixed.w.item<float>(), -1.0f); // 1 - 0.5 * 4
  EXPECT_EQ(mixed.b.item<float>(), -0.5f);
  EXPECT_EQ(mixed.mean.item<float>(), 2.0f);
  EXPECT_EQ(mixed.steps, 3);

  struct Counted {
    Variable w{1.0f};
    double rate = 0.1;
    WENGERT_FIELDS(w, rate)
  } counted;
  optim::GradientAccumulator accumulator(counted);
  GradientTape tape;
  accumulator.add(tape.gradient(counted.w * counted.w, counted));
  EXPECT_EQ(accumulator.mean()[0].item<float>(), 2.0f);
}

TEST(Surface, OptionsMayBeInBraces) {
  Tensor x(1.0), z(2.0);
  GradientTape tape({.persistent = true});
  tape.watch(x, z);
  Tensor y = x * x;
  EXPECT_EQ(tape.gradient(y, z, {.unconnected = Unconnected::zero}).item<double>(), 0);
  auto [dx, dz] = tape.gradient(y, x, z, {.output_gradients = 2.0, .unconnected = Unconnected::zero});
  EXPECT_EQ(dx.item<double>(), 4);
  EXPECT_EQ(dz.item<double>(), 0);
}

TEST(Surface, ClippingKeepsTheStructure) {
  Model model{Tensor(3.0), {Variable(4.0)}};
  GradientTape tape({.persistent = true});
  tape.watch(model);
  Tensor y = model.alpha * 3.0 + model.layers[0] * 4.0; // the gradients are 3 and 4, their norm 5
  auto [fields, norm] = optim::clip_by_global_norm(tape.gradient(y, model), 1.0);
  EXPECT_NEAR(norm.item<double>(), 5, 1e-12);
  EXPECT_NEAR(fields.alpha.item<double>(), 0.6, 1e-12);
  EXPECT_NEAR(fields.layers[0].item<double>(), 0.8, 1e-12);
  EXPECT_FALSE(fields.depth.has_value());
  auto array = optim::clip_by_global_norm(tape.gradient(y, {model.alpha, model.layers[0]}), 1.0).first;
  static_assert(std::same_as<decltype(array), GradArray<2>>);
  EXPECT_NEAR(array[1].item<double>(), 0.8, 1e-12);
  auto tuple = optim::clip_by_global_norm(tape.gradient(y, model.alpha, model.layers[0]), 1.0).first;
  EXPECT_NEAR(std::get<0>(tuple).item<double>(), 0.6, 1e-12);
  std::map<std::string, Tensor> byName{{"a", model.alpha}};
  auto map = optim::clip_by_global_norm(tape.gradient(y, byName), 10.0).first;
  EXPECT_EQ(map.at("a").item<double>(), 3) << "a gradient below the norm stays";
  EXPECT_NEAR(Tensor(optim::clip_by_global_norm(std::tuple(Tensor(3.0), Tensor(4.0)), 1.0).second).item<double>(), 5,
              1e-12);
}

TEST(Surface, AGradientHasWhatATensorHas) {
  Tensor x{{1.0f, 2.0f}, {3.0f, 4.0f}};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Grad g = tape.gradient(x * x, x);
  EXPECT_EQ(g.shape(), (Shape{2, 2}));
  EXPECT_EQ(g.dtype(), f32);
  EXPECT_EQ(g.rank(), 2);
  EXPECT_EQ(g.dim(-1), 2);
  EXPECT_EQ(g.size(), 4);
  EXPECT_EQ(g[1].to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ((g[{0, 1}].item<float>()), 4);
  int rows = 0;
  for (Tensor row : tape.gradient(x * x, x))
    rows += static_cast<int>(row.size());
  EXPECT_EQ(rows, 4);
  Grad none = tape.gradient(x * x, Tensor(1.0f));
  EXPECT_SAYS("the gradient is None: not watched", none.shape());
  EXPECT_SAYS("SurfaceTest.cpp", none[0]);
  EXPECT_SAYS("try: watch it before it is used", none.value());
  EXPECT_SAYS("try: make it a float before it is used", Grad(tape.gradient(x * x, Tensor(1))).value());
}

//===- Variables, tensors and layers ------------------------------------------------------------------------------===//

TEST(Surface, AxesAreIntegersOfAnyWidth) {
  static_assert(!std::is_constructible_v<Axes, bool> && !std::is_constructible_v<Axes, double>);
  static_assert(std::is_constructible_v<Axes, size_t> && std::is_constructible_v<Axes, short>);
  Tensor x{{1.0, 2.0}, {3.0, 4.0}};
  std::vector<size_t> sizes{7, 8};
  EXPECT_EQ(reduce_sum(x, sizes.size() - 1).to_vector<double>(), (std::vector<double>{3, 7}));
  EXPECT_EQ(reduce_sum(x, 0u).to_vector<double>(), (std::vector<double>{4, 6}));
  EXPECT_EQ(reduce_sum(x, {0, sizes.size() - 1}).item<double>(), 10);
  EXPECT_EQ(reduce_sum(x, {-1}, true).shape(), (Shape{2, 1}));
  EXPECT_SAYS("axis", reduce_sum(x, SIZE_MAX));
}

TEST(Surface, AVariableIsUpdatedInPlace) {
  Variable v(Tensor{4.0, 8.0}), same = v;
  v -= Tensor{1.0, 2.0};
  EXPECT_EQ(same.value().to_vector<double>(), (std::vector<double>{3, 6}));
  v += 1.0, v *= 2.0, v /= Tensor(4.0);
  EXPECT_EQ(same.value().to_vector<double>(), (std::vector<double>{2, 3.5}));
  auto step = wg::function("step", [&](const Tensor &x) { v -= 0.5 * x; });
  step(Tensor{2.0, 1.0});
  EXPECT_EQ(same.value().to_vector<double>(), (std::vector<double>{1, 3}));
  EXPECT_SAYS("the shape of a variable is fixed", v -= zeros({3, 2}, f64));
  std::vector<double> rows;
  for (Tensor row : v)
    rows.push_back(row.item<double>());
  EXPECT_EQ(rows, (std::vector<double>{1, 3}));
  EXPECT_SAYS("scalar", for (Tensor row : Variable(1.0)) row.size());
  EXPECT_EQ(Variable(zeros({2}), "w").name(), "w");
  EXPECT_EQ(Variable(1.0, std::string("b")).name(), "b");
}

TEST(Surface, NestedVectorsAreTensors) {
  Tensor x = Tensor::from(std::vector<std::vector<float>>{{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.dtype(), f32);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor::from(std::vector<std::vector<std::vector<int>>>{{{1}, {2}}}).shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(Tensor::from(std::vector<std::vector<bool>>{{true}, {false}}).dtype(), boolean);
  EXPECT_EQ(Tensor::from(std::vector<std::vector<float>>{}).shape(), (Shape{0, 0}));
  EXPECT_SAYS("rows of different lengths: 2 and 1", Tensor::from(std::vector<std::vector<float>>{{1, 2}, {3}}));
  EXPECT_EQ(Tensor::from(std::vector<float>{}, {0}).shape(), (Shape{0})) << "a shape, not a place in the source";
  EXPECT_EQ(Tensor::from(std::vector<float>{5}, {}).rank(), 0);
  EXPECT_EQ(Tensor::from(std::vector<bool>{true, false}, {2, 1}).shape(), (Shape{2, 1}));
}

TEST(Surface, WhatATemporaryHasOutlivesIt) {
  std::string names;
  for (const auto &[name, variable] : Net().named_variables())
    names += name + (variable.defined() ? " " : "?");
  EXPECT_EQ(names, "hidden.weight hidden.bias out.weight out.bias steps ");
  int64_t sizes = 0;
  for (int64_t size : (zeros({2, 3}) + 1.0f).shape())
    sizes += size;
  EXPECT_EQ(sizes, 5);
  static_assert(!std::is_reference_v<decltype(Grad().value())> && !std::is_reference_v<decltype(Variable().name())>);
}

TEST(Surface, AModuleHasEachNameOnce) {
  struct Twice : nn::Module {
    Twice() {
      Variable w = add("w", Tensor(1.0));
      add("again", w);
      EXPECT_SAYS("another variable with the name 'w'", add("w", Tensor(2.0)));
      EXPECT_SAYS("SurfaceTest.cpp", add("w", Tensor(2.0)));
      nn::Dense a(1, 1), b(1, 1);
      add("layer", a), add("shared", a);
      EXPECT_SAYS("'layer.weight'", add("layer", b));
    }
  } twice;
  EXPECT_EQ(twice.named_variables().size(), 3u) << "what is refused is not half there";
}

TEST(Surface, ASequenceTakesFunctionsOfATensor) {
  struct Scale {
    float factor;
    Tensor operator()(const Tensor &x) const { return x * factor; }
  };
  nn::Dropout dropout(0.5);
  nn::Sequential layers(
      nn::Dense(2, 2), wg::relu, Scale{2.0f}, [dropout](const Tensor &x) { return dropout(x, false); },
      [](const Tensor &x) { return softmax(x); });
  EXPECT_NEAR(reduce_sum(layers(ones({1, 2}))).item<float>(), 1, 1e-6);
}

// strings.h has a function of this name, too.
TEST(Surface, IndexIsAlsoAFunctionOfPosix) {
  Tensor x{{1.0, 2.0}, {3.0, 4.0}};
  const char *text = "abc";
  EXPECT_EQ(index(text, 'b'), text + 1);
  EXPECT_EQ(index(x, 1).to_vector<double>(), (std::vector<double>{3, 4}));
  EXPECT_EQ(index(x, 0, 1).to_vector<double>(), (std::vector<double>{1, 3}));
  EXPECT_EQ(index(Variable(x), 0).to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(index(x * 2.0, -1).to_vector<double>(), (std::vector<double>{6, 8}));
}

TEST(Surface, AnOperandIsNotKept) {
  static_assert(!std::is_copy_constructible_v<Located> && !std::is_move_constructible_v<Located> &&
                !std::is_copy_assignable_v<Located>);
  Located held(zeros({2}) + 1.0f); // holds the tensor, which has no name
  EXPECT_EQ((held + 1.0f).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_SAYS("undefined", (void)(Tensor() + 1.0f));
}

TEST(Surface, AnOpenSizeIsNoNumber) {
  wg::function("f", [](const Tensor &x) {
    EXPECT_EQ(x.shape()[0], dynamic);
    EXPECT_EQ(wg::to_string(x.shape()), "(?, 3)");
    EXPECT_EQ(x.dim(1), 3);
    EXPECT_SAYS("axis 0 of f32[?,3] is known only at run time", x.dim(0));
    EXPECT_SAYS("known only at run time", x.dim(-2));
    EXPECT_SAYS("dynamic", x.size());
    EXPECT_SAYS("it is not known whose", zeros({x.shape()[0], 3}));
    EXPECT_SAYS("not negative", zeros({x.shape()[0] + 1, 3}));
    return x;
  }).trace(Tensor(TensorSpec{f32, {dynamic, 3}}));
  EXPECT_SAYS("has no axis 2", zeros({2, 3}).dim(2));
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
  EXPECT_SAYS("no kernels for f16", cast(Tensor(1.0), f16)); // and not that an f64 is to be cast first
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

TEST(Surface, PlacesNameClassesAndFields) {
  struct Step {
    Tensor operator()(const Tensor &x) const { return x + zeros({3}); }
  };
  EXPECT_SAYS("in Step", Step()(zeros({2})));
  auto f = wg::function("f", [](const Model &m) { return m.alpha; }, {.argument_names = {"m"}});
  f(Model{zeros({2}), {Variable(1.0)}});
  f(Model{zeros({3}), {Variable(1.0)}});
  EXPECT_NE(f.explain_last_trace().find("m.alpha: f32[2] -> f32[3]"), std::string::npos) << f.explain_last_trace();
  f(Model{zeros({3}), {Variable(1.0), Variable(2.0)}});
  EXPECT_NE(f.explain_last_trace().find("m.layers"), std::string::npos) << f.explain_last_trace();
}

TEST(Surface, KeysAndFieldsNameVariablesWithoutAName) {
  std::map<std::string, Variable> map{{"b", Variable(1.0)}, {"w", Variable(2.0, "own")}};
  Model model{Tensor(1.0), {Variable(1.0), Variable(1.0)}};
  optim::Adam adam;
  adam.build(std::tuple(map, model));
  std::string names;
  for (const auto &[name, slot] : adam.named_slots())
    names += name + " ";
  EXPECT_EQ(names, "step b.m b.v own.m own.v layers.m layers.v layers.m_1 layers.v_1 ");
  EXPECT_SAYS("the gradient of variable 'b' is f64[2]",
              adam.apply(std::vector<Grad>{Grad(zeros({2}, f64)), Grad(Tensor(1.0))}, map));
}

TEST(Surface, AReportCountsAndShowsKernels) {
  auto parts = wg::function("parts", [](const Tensor &s) { return stack({Tensor(s[0]), -s[1]}); });
  parts(ones({2}));
  EXPECT_EQ(parts.report().find("): ,"), std::string::npos) << parts.report();
  auto f = wg::function("f", [](const Tensor &x) { return exp(x) * 2.0f; });
  f(zeros({100}));
  std::string report = f.report();
  EXPECT_NE(report.find("f: 1 trace, 1 concrete function\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  1 call, "), std::string::npos) << report;
  EXPECT_NE(report.find("  kernel "), std::string::npos) << report;
  EXPECT_NE(report.find("exp"), std::string::npos) << report;
  EXPECT_NE(report.find(", at SurfaceTest.cpp:"), std::string::npos) << report;
}

TEST(Surface, ErrorsNameTheOpThatTheUserCalled) {
  Tensor logits = zeros({2, 3});
  EXPECT_SAYS("error: cross_entropy: a label is 3, and there are 3 classes, which count from 0",
              nn::cross_entropy(logits, Tensor{0, 3}));
  EXPECT_SAYS("subtract 1", nn::cross_entropy(logits, Tensor{0, 3}));
  EXPECT_SAYS("error: softmax_cross_entropy: a label is -1", softmax_cross_entropy(logits, Tensor{0, -1}));
  EXPECT_SAYS("error: cross_entropy: logits are", nn::cross_entropy(logits, Tensor{0, 1, 2}));
  EXPECT_SAYS("error: confusion_matrix: a label is 5", metrics::ConfusionMatrix(3).update(Tensor{0}, Tensor{5}));
  EXPECT_SAYS("error: confusion_matrix: a prediction is 4", metrics::ConfusionMatrix(3).update(Tensor{4}, Tensor{1}));
  EXPECT_SAYS("error: top_k_accuracy: a label is 3", metrics::TopKAccuracy(2).update(logits, Tensor{0, 3}));
  nn::Dense dense(4, 2);
  EXPECT_SAYS("error: dense: the layer from 4 to 2 takes f32[..., 4]; its input is f32[3,5]", dense(zeros({3, 5})));
  EXPECT_SAYS("try: cast the input: cast(x, f32)", dense(zeros({3, 4}, f64)));
  EXPECT_SAYS("its input is f32[]", dense(Tensor(1.0f)));
  EXPECT_SAYS("error: batch: ", data::Dataset(logits, logits).batch(0));
  EXPECT_SAYS("error: dataset: ", data::Dataset(logits, zeros({3})));
  EXPECT_SAYS("try: give sizes of 0 or more", zeros({2, -3}));
  EXPECT_SAYS("-1 stands for a size in reshape", zeros({-1}));
  ConcreteFunction concrete = wg::function("f", [](const Tensor &x) { return x; }).trace(zeros({2}));
  EXPECT_SAYS("SurfaceTest.cpp", concrete(zeros({3})));
  EXPECT_SAYS("SurfaceTest.cpp", concrete());
}

TEST(Surface, ACompositeIsNamedAndNotWhatItIsMadeOf) {
  Tensor matrix = zeros({2, 3}), vector = zeros({3});
  EXPECT_SAYS("error: softmax: ", softmax(matrix, 5));
  EXPECT_SAYS("error: log_softmax: ", log_softmax(matrix, -3));
  EXPECT_SAYS("error: logsumexp: ", logsumexp(matrix, 2));
  EXPECT_SAYS("error: variance: ", variance(matrix, {0, 7}));
  EXPECT_SAYS("error: norm: ", norm(vector, 1));
  EXPECT_SAYS("error: dot: the sizes differ: a is f32[3], b is f32[4]", dot(vector, zeros({4})));
  EXPECT_SAYS("error: outer: takes two vectors, got f32[2,3] and f32[3]", outer(matrix, vector));
  EXPECT_SAYS("error: stack: tensor 0 is f32[3], tensor 1 is f64[3]", stack({vector, zeros({3}, f64)}));
  EXPECT_SAYS("error: stack: tensor 0 is f32[3], tensor 1 is f32[2]", stack({vector, zeros({2})}));
  EXPECT_SAYS("error: random_normal: the key is i64[2], got i32[2]", random_normal(Tensor{1, 2}, {3}));
  EXPECT_SAYS("error: split: the key is i64[2], got i64[]", random::split(Tensor(int64_t(1))));
  EXPECT_SAYS("the logits are f32[3], the targets i32[3]", nn::sigmoid_cross_entropy(vector, zeros({3}, i32)));
}

TEST(Surface, AFileForAnotherReaderIsNamed) {
  std::string path = std::filesystem::temp_directory_path() / ("wengert_surface_" + std::to_string(getpid()));
  struct Remove {
    std::string path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  std::vector<nn::Module::Named> variables{{"w", Variable(1.0)}};
  save_npz(path, {{"w", Tensor(1.0)}});
  EXPECT_SAYS("read it with load_npz", load_weights(path, variables));
  EXPECT_SAYS("read it with load_npz", load_npy(path));
  save_weights(path, variables);
  EXPECT_SAYS("read it with load_weights", load_npz(path));
  EXPECT_SAYS("read it with load_weights", load_npy(path));
  save_npy(path, ones({4}));
  EXPECT_SAYS("read it with load_npy", load_npz(path));
  EXPECT_SAYS("read it with load_npy", load_weights(path, variables));
}

TEST(Surface, LongTensorsPrintTheirRowsOnLines) {
  EXPECT_EQ(wg::to_string(zeros({2, 2})), "Tensor([[0.0, 0.0], [0.0, 0.0]], shape=(2, 2), dtype=float32)");
  std::string row = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
  Tensor rows = broadcast_to(arange(10), {3, 10});
  EXPECT_EQ(wg::to_string(rows),
            "Tensor([" + row + ",\n        " + row + ",\n        " + row + "], shape=(3, 10), dtype=int64)");
  EXPECT_NE(wg::to_string(stack({rows, rows})).find(row + "],\n\n        [" + row), std::string::npos);
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
