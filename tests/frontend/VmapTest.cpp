// vmap against a loop: axes, structures, nesting, every derivative, variables, random numbers, chunks.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

template <class F> static Tensor loop(const F &f, const Tensor &xs) {
  std::vector<Tensor> each;
  for (int64_t i = 0; i < xs.dim(0); ++i)
    each.push_back(f(xs[i]));
  return stack(each);
}

TEST(VmapTest, IsALoopEagerlyAndTraced) {
  auto f = [](const Tensor &x) { return softmax(x) * reduce_sum(x * x); };
  Tensor xs = matrix(5, 4);
  for (int64_t chunk : {0, 1, 2, 9}) {
    auto mapped = vmap(f, {.chunk_size = chunk});
    expectNear(mapped(xs), loop(f, xs));
    auto traced = wg::function("mapped", mapped);
    expectNear(traced(xs), loop(f, xs));
    expectNear(traced(matrix(3, 4)), loop(f, matrix(3, 4)));
  }
  EXPECT_EQ(vmap(f)(zeros({0, 4})).shape(), (Shape{0, 4}));
  expectNear(vmap(f, {.memory_limit = 100})(xs), loop(f, xs));
}

TEST(VmapTest, AxesInAndOut) {
  auto f = [](const Tensor &x, const Tensor &w) { return matmul(w, x); };
  Tensor xs = matrix(4, 5), w = matrix(3, 4); // [4, lanes]
  std::vector<Tensor> each;
  for (int64_t i = 0; i < 5; ++i)
    each.push_back(matmul(w, index(xs, i, 1)));
  for (int out : {0, 1, -1, -2}) {
    int64_t axis = out < 0 ? out + 2 : out;
    expectNear(vmap(f, {.in_axes = {1, unmapped}, .out_axes = out})(xs, w), stack(each, axis));
    expectNear(vmap(f, {.in_axes = {-1, unmapped}, .out_axes = out})(xs, w), stack(each, axis));
    expectNear(wg::function("f", vmap(f, {.in_axes = {1, unmapped}, .out_axes = out}))(xs, w), stack(each, axis));
  }
  // What is the same in all lanes is repeated, or, where that is said, is not.
  auto g = [&](const Tensor &x) { return std::pair(x * 2, w * 2); };
  auto both = vmap(g, {.in_axes = 1})(xs);
  EXPECT_EQ(both.second.shape(), (Shape{5, 3, 4}));
  expectNear(both.second[4], 2 * w);
  auto one = vmap(g, {.in_axes = 1, .out_axes = {1, unmapped}})(xs);
  expectNear(one.first, 2 * xs);
  expectNear(one.second, 2 * w);
}

TEST(VmapTest, StructuresNumbersAndStrings) {
  struct Example {
    Tensor x, label;
    std::string kind = "sum";
    WENGERT_FIELDS(x, label, kind)
  };
  auto f = [](const Example &example, const std::vector<Tensor> &scales, int power) {
    Tensor y = example.kind == "sum" ? reduce_sum(example.x) : reduce_max(example.x);
    for (int i = 1; i < power; ++i)
      y = y * scales[0];
    return std::map<std::string, Tensor>{{"y", y + scales[1]}, {"label", example.label}};
  };
  Example all{matrix(4, 3), Tensor{0, 1, 2, 3}};
  std::vector<Tensor> scales{Tensor{1.0, 2.0, 3.0, 4.0}, Tensor(10.0)};
  auto out = vmap(f, {.in_axes = {0, {0, unmapped}, unmapped}})(all, scales, 3);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(out["y"][i].item<double>(),
                reduce_sum(all.x[i]).item<double>() * std::pow(scales[0][i].item<double>(), 2) + 10, 1e-12);
  EXPECT_EQ(out["label"].to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(
      wg::function("f", vmap(f, {.in_axes = {0, {0, unmapped}, unmapped}}))(all, scales, 3)["y"].to_vector<double>(),
      out["y"].to_vector<double>());
}

TEST(VmapTest, Nests) {
  auto dot = [](const Tensor &a, const Tensor &b) { return reduce_sum(a * b); };
  Tensor a = matrix(3, 4), b = matrix(5, 4);
  auto rows = vmap([&](const Tensor &a) {
    return vmap([&](const Tensor &b) { return dot(a, b); })(b); // a is captured from the lane around
  });
  expectNear(rows(a), matmul(a, transpose(b)));
  auto both = vmap(vmap(dot, {.in_axes = {unmapped, 0}}), {.in_axes = {0, unmapped}, .out_axes = 1});
  expectNear(both(a, b), matmul(b, transpose(a)));
  expectNear(wg::function("both", both)(a, b), matmul(b, transpose(a)));
}

TEST(VmapTest, OfDerivativesAndDerivativesOfIt) {
  auto f = [](const Tensor &x) { return reduce_sum(tanh(x) * reduce_sum(x * x)); };
  Tensor xs = matrix(4, 3), v = cos(xs);
  auto check = [&](auto mapped, auto single) {
    expectNear(mapped(xs), loop(single, xs));
    expectNear(wg::function("mapped", mapped)(xs), loop(single, xs));
  };
  auto gradient = [&](const Tensor &x) { return grad(f)(x).value(); };
  check(vmap(gradient), gradient);
  auto moved = [&](const Tensor &x) { return jvp(f, x, cos(x)).second.value(); };
  check(vmap(moved), moved);
  auto product = [&](const Tensor &x) { return hvp(f, x, cos(x)).value(); };
  check(vmap(product), product);
  auto whole = [&](const Tensor &x) { return hessian(f)(x).value(); };
  check(vmap(whole), whole);
  auto rows = [&](const Tensor &x) {
    return jacobian([](const Tensor &x) { return tanh(x) * reduce_sum(x); })(x).value();
  };
  check(vmap(rows), rows);
  // A derivative of all lanes is the derivative of each.
  auto sum = [&](const Tensor &xs) { return reduce_sum(vmap(f)(xs)); };
  expectNear(grad(sum)(xs).value(), loop(gradient, xs));
  expectNear(wg::function("sum", grad(sum))(xs).value(), loop(gradient, xs));
  expectNear(jvp(vmap(f), xs, v).second.value(), reduce_sum(loop(gradient, xs) * v, 1));
  expectNear(hvp(sum, xs, v).value(),
             vmap([&](const Tensor &x, const Tensor &v) { return hvp(f, x, v).value(); })(xs, v));
  // Accumulators and tapes see it.
  ForwardAccumulator acc(xs, v);
  expectNear(acc.jvp(vmap(f)(xs)).value(), reduce_sum(loop(gradient, xs) * v, 1));
  GradientTape tape;
  tape.watch(xs);
  Tensor ys = vmap(f)(xs);
  expectNear(tape.gradient(ys, xs).value(), loop(gradient, xs));
}

TEST(VmapTest, GradientOfEachExample) {
  struct Mlp : nn::Module {
    nn::Dense hidden{3, 5, wg::tanh}, out{5, 1};
    Mlp() { add("hidden", hidden), add("out", out); }
    Tensor operator()(const Tensor &x) const { return out(hidden(x)); }
  } model;
  Tensor xs = cast(matrix(6, 3), f32);
  auto loss = [&](const Tensor &x) { return reduce_sum(square(model(expand_dims(x, 0)))); };
  // By the variables that the function reads, of each example; and those that are arguments, which all lanes share.
  auto each = [&](const Tensor &x) {
    GradientTape tape;
    Tensor value = loss(x);
    return tape.gradient(value, model);
  };
  auto byArgument = [&](const std::vector<Variable> &, const Tensor &x) { return loss(x); };
  std::vector<Grad> all = vmap(each)(xs);
  std::vector<Grad> same = vmap(grad(byArgument), {.in_axes = {unmapped, 0}})(model.trainable_variables(), xs);
  auto traced = wg::function("each", vmap(each));
  std::vector<Grad> compiled = traced(xs);
  for (size_t k = 0; k < all.size(); ++k)
    for (int64_t i = 0; i < 6; ++i) {
      expectNear(cast(all[k][i], f64), cast(each(xs[i])[k].value(), f64), 1e-5);
      expectNear(cast(same[k][i], f64), cast(each(xs[i])[k].value(), f64), 1e-5);
      expectNear(cast(compiled[k][i], f64), cast(each(xs[i])[k].value(), f64), 1e-5);
    }
}

TEST(VmapTest, CallsFunctions) {
  auto f = wg::function("f", [](const Tensor &x, double scale) { return scale * tanh(x) * reduce_sum(x); });
  auto g = [&](const Tensor &x) { return f(x, 2.0) + f(x, 3.0); };
  Tensor xs = matrix(4, 3);
  expectNear(vmap(g)(xs), loop(g, xs));
  expectNear(wg::function("g", vmap(g))(xs), loop(g, xs));
  auto gradient = [&](const Tensor &x) { return grad(g)(x).value(); };
  expectNear(vmap(gradient)(xs), loop(gradient, xs));
}

TEST(VmapTest, VariablesAreReadOnceAndAssignedAlike) {
  Variable w(Tensor{1.0, 2.0, 3.0}, "w"), count(0.0, VariableOptions{.name = "count", .trainable = false});
  auto f = [&](const Tensor &x) {
    count.assign_add(1.0);
    return reduce_sum(w * x);
  };
  Tensor xs = matrix(4, 3);
  expectNear(vmap(f)(xs), einsum("ij,j->i", xs, w));
  EXPECT_EQ(count.item<double>(), 1); // one call
  wg::function("f", vmap(f))(xs);
  EXPECT_EQ(count.item<double>(), 2);
  auto differs = [&](const Tensor &x) {
    w.assign(x);
    return x;
  };
  EXPECT_TRUE(says(messageOf([&] { vmap(differs)(xs); }), "variable 'w' is assigned another value in each lane"));
  EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{1, 2, 3}));
  GradientTape tape;
  Tensor y = vmap(f)(xs);
  expectNear(tape.gradient(y, w).value(), reduce_sum(xs, 0));
}

TEST(VmapTest, VariablesWithLanes) {
  Variable w(matrix(4, 3), "w");
  Tensor x{1.0, 2.0, 3.0};
  auto f = [&](const Variable &w, const Tensor &x) { return reduce_sum(w * x); };
  auto mapped = vmap(f, {.in_axes = {0, unmapped}});
  expectNear(mapped(w, x), einsum("ij,j->i", w, x));
  expectNear(wg::function("mapped", mapped)(w, x), einsum("ij,j->i", w, x));
  GradientTape tape;
  expectNear(tape.gradient(mapped(w, x), w).value(), broadcast_to(x, {4, 3}));
  // One step for each lane.
  auto step = [&](const Variable &w, const Tensor &x) {
    GradientTape tape;
    Tensor loss = square(reduce_sum(w * x));
    w.assign_sub(0.1 * tape.gradient(loss, w).value());
    return loss;
  };
  Tensor before = w.value();
  Tensor wanted = before - 0.2 * reshape(einsum("ij,j->i", before, x), {4, 1}) * x;
  vmap(step, {.in_axes = {0, unmapped}})(w, x);
  expectNear(w.value(), wanted);
  w.assign(before);
  auto traced = wg::function("step", vmap(step, {.in_axes = {0, unmapped}}));
  traced(w, x);
  expectNear(w.value(), wanted);
  // On another axis.
  Variable columns(transpose(before), "columns");
  vmap(step, {.in_axes = {1, unmapped}})(columns, x);
  expectNear(columns.value(), transpose(wanted));
}

TEST(VmapTest, EachLaneDrawsWhatTheLoopDraws) {
  Tensor xs = cast(matrix(5, 4), f32);
  auto run = [&](auto use) {
    Generator generator(7);
    auto f = [&](const Tensor &x) { return x * generator.uniform({4}) + generator.normal({4}); };
    Tensor y = use(f);
    return std::pair(y, generator.uniform({3}));
  };
  auto [looped, after] = run([&](auto f) { return loop(f, xs); });
  auto same = [&](auto use) {
    auto [y, next] = run(use);
    EXPECT_EQ(y.template to_vector<float>(), looped.template to_vector<float>());
    EXPECT_EQ(next.template to_vector<float>(), after.template to_vector<float>());
  };
  same([&](auto f) { return vmap(f)(xs); });
  same([&](auto f) { return vmap(f, {.chunk_size = 2})(xs); });
  {
    auto [y, next] = run([&](auto f) { return wg::function("f", vmap(f))(xs); });
    for (int64_t i = 0; i < 20; ++i)
      EXPECT_NEAR(y.template to_vector<float>()[static_cast<size_t>(i)],
                  looped.template to_vector<float>()[static_cast<size_t>(i)], 1e-5);
    EXPECT_EQ(next.template to_vector<float>(), after.template to_vector<float>());
  }
  auto [alike, next] = run([&](auto f) { return vmap(f, {.randomness = Randomness::same})(ones_like(xs)); });
  EXPECT_EQ(alike[0].template to_vector<float>(), alike[4].template to_vector<float>());
  // Dropout, in the gradient too.
  nn::Dropout dropout(0.5);
  Tensor g = grad([&](const Tensor &xs) {
               return reduce_sum(vmap([&](const Tensor &x) { return dropout(x, true); })(xs));
             })(ones({64, 8}))
                 .value();
  EXPECT_NE(g[0].to_vector<float>(), g[1].to_vector<float>());
  // Keys are data: mapped ones give lanes their own numbers.
  Tensor keys = stack(random::split(random::key(3), 4));
  auto draw = [](const Tensor &key) { return random_normal(key, {3}); };
  EXPECT_EQ(vmap(draw)(keys).to_vector<float>(), loop(draw, keys).to_vector<float>());
}

TEST(VmapTest, FunctionsAndLanesInLanesDrawWhatTheLoopDraws) {
  Tensor xs = matrix(3, 4);
  auto run = [&](auto use) {
    Generator generator(7);
    auto noise = [&](const Tensor &x) { return x + cast(generator.normal(x.shape()), f64); };
    auto called = wg::function("noise", noise);
    auto f = [&](const Tensor &x) { return called(noise(x)) + called(2.0 * x); };
    auto scalars = [&](auto map) {
      auto inner = [&](const Tensor &x) { return noise(x) * noise(x); };
      return [=](const Tensor &row) { return map(inner, row); };
    };
    std::pair results = use(f, scalars);
    return std::tuple(results.first, results.second, generator.uniform({3}));
  };
  auto byLoop = [](const auto &f, const Tensor &xs) { return loop(f, xs); };
  auto inLanes = [](const auto &f, const Tensor &xs) { return vmap(f)(xs); };
  auto [a, b, next] = run([&](auto f, auto scalars) { return std::pair(loop(f, xs), loop(scalars(byLoop), xs)); });
  auto [mappedA, mappedB, mappedNext] =
      run([&](auto f, auto scalars) { return std::pair(vmap(f)(xs), vmap(scalars(inLanes))(xs)); });
  expectNear(mappedA, a, 1e-5);
  expectNear(mappedB, b, 1e-5);
  EXPECT_EQ(mappedNext.template to_vector<float>(), next.template to_vector<float>());
  nn::Dropout dropout(0.5);
  auto drops = wg::function("drops", [&](const Tensor &x) { return dropout(x, true); });
  Tensor dropped = vmap(drops)(ones({2, 64}));
  EXPECT_NE(dropped[0].to_vector<float>(), dropped[1].to_vector<float>());
}

TEST(VmapTest, SizesMayBeOpen) {
  auto f = [](const Tensor &x, const Tensor &w) { return tanh(x) * reduce_sum(x * w); };
  Tensor w = matrix(1, 3)[0];
  auto mapped = wg::function("mapped", vmap(f, {.in_axes = {0, unmapped}}));
  mapped.trace(Tensor(TensorSpec{f64, {dynamic, 3}}), w);
  for (int64_t n : {1, 2, 6}) {
    Tensor xs = matrix(n, 3);
    expectNear(mapped(xs, w), loop([&](const Tensor &x) { return f(x, w); }, xs));
  }
  EXPECT_EQ(mapped.trace_count(), 1);
  auto sizes = wg::function("sizes", vmap([](const Tensor &x) { return softmax(x) + reduce_sum(x); }));
  sizes.trace(Tensor(TensorSpec{f64, {dynamic, dynamic}}));
  expectNear(sizes(matrix(3, 4)), loop([](const Tensor &x) { return softmax(x) + reduce_sum(x); }, matrix(3, 4)));
  EXPECT_EQ(sizes.trace_count(), 1);
  EXPECT_TRUE(says(messageOf([&] {
                     wg::function("c", vmap(f, {.in_axes = {0, unmapped}, .chunk_size = 2}))
                         .trace(Tensor(TensorSpec{f64, {dynamic, 3}}), w);
                   }),
                   "chunks need a known number of lanes"));
}

TEST(VmapTest, SaysWhatDoesNotFit) {
  auto f = [](const Tensor &x, const Tensor &y) { return x + y; };
  Tensor a = matrix(4, 3), b = matrix(5, 3), s(1.0);
  EXPECT_TRUE(
      says(messageOf([&] { vmap(f)(a, b); }), "argument 0 has 4 lanes and argument 1 has 5 (axis 0 of f64[5,3])"))
      << messageOf([&] { vmap(f)(a, b); });
  EXPECT_TRUE(says(messageOf([&] { vmap(f)(a, s); }), "argument 1 is f64[], which has no axis 0 for its lanes"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.in_axes = unmapped})(a, a); }), "no argument has lanes"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.in_axes = {0}})(a, a); }), "in_axes has 1 entry for 2 arguments"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.in_axes = {0, {0, 0}}})(a, a); }),
                   "in_axes has a list of 2 for argument 1, which holds 1 tensor"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.out_axes = 2})(a, a); }), "result 0 is f64[4,3], which has no axis 2"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.out_axes = unmapped})(a, a); }), "result 0 is another in each lane"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.out_axes = {0, 0}})(a, a); }), "out_axes has 2 entries for 1 tensor"));
  EXPECT_TRUE(says(messageOf([&] { vmap(f, {.chunk_size = -1})(a, a); }), "chunk_size is -1"));
  EXPECT_TRUE(says(messageOf([&] { vmap([](const Tensor &x) { return x * x.item<double>(); })(Tensor{1.0, 2.0}); }),
                   "VmapTest.cpp"));
  EXPECT_TRUE(says(messageOf([&] { vmap([&](const Tensor &x) { return matmul(x, b); })(a); }), "matmul"));
  Tensor leaked;
  vmap([&](const Tensor &x) { return leaked = x; })(a);
  EXPECT_TRUE(says(messageOf([&] { leaked + 1; }), "out of scope"));
}

namespace {
struct Mlp : nn::Module {
  nn::Dense hidden, out;
  nn::Dropout dropout{0.5};
  explicit Mlp(uint64_t seed = 0)
      : hidden(3, 5, wg::tanh, {.weight = nn::glorot_uniform(static_cast<int64_t>(seed))}),
        out(5, 2, {}, {.weight = nn::glorot_uniform(static_cast<int64_t>(seed + 100))}) {
    add("hidden", hidden), add("out", out), add("dropout", dropout);
  }
  Tensor operator()(const Tensor &x, bool training = false) const { return out(dropout(hidden(x), training)); }
};
} // namespace

TEST(FunctionalCallTest, ReadsWhatIsGiven) {
  Mlp model(1), other(2);
  Tensor x = cast(matrix(4, 3), f32);
  EXPECT_EQ(nn::functional_call(model, other.variables(), x).to_vector<float>(), other(x).to_vector<float>());
  EXPECT_EQ(nn::functional_call(model, other.trainable_variables(), x).to_vector<float>(), other(x).to_vector<float>());
  std::vector<Tensor> values;
  for (const Variable &variable : other.trainable_variables())
    values.push_back(variable.value());
  EXPECT_EQ(nn::functional_call(model, values, x).to_vector<float>(), other(x).to_vector<float>());
  auto traced = wg::function(
      "call", [&](const std::vector<Tensor> &w, const Tensor &x) { return nn::functional_call(model, w, x); });
  expectNear(cast(traced(values, x), f64), cast(other(x), f64), 1e-6);
  // The gradient is by what is given, and the model's own variables have none.
  auto loss = [&](const std::vector<Tensor> &w) { return reduce_sum(square(nn::functional_call(model, w, x))); };
  std::vector<Grad> found = grad(loss)(values);
  GradientTape tape;
  Tensor wanted = reduce_sum(square(other(x)));
  std::vector<Grad> grads = tape.gradient(wanted, other);
  for (size_t i = 0; i < grads.size(); ++i)
    expectNear(cast(found[i].value(), f64), cast(grads[i].value(), f64), 1e-6);
  GradientTape own;
  Tensor y = nn::functional_call(model, values, x);
  EXPECT_FALSE(own.gradient(y, model.hidden.weight()).has_value());
  // A function that the model's code calls reads it as well.
  auto called = wg::function("hidden", [&](const Tensor &x) { return model.hidden(x); });
  struct Wrapped : nn::Module {
    std::function<Tensor(const Tensor &)> f;
    Wrapped(const Mlp &model, std::function<Tensor(const Tensor &)> f) : f(std::move(f)) { add("model", model); }
    Tensor operator()(const Tensor &x) const { return f(x); }
  } wrapped(model, [&](const Tensor &x) { return called(x); });
  called(x);
  expectNear(cast(nn::functional_call(wrapped, values, x), f64), cast(other.hidden(x), f64), 1e-6);
}

TEST(FunctionalCallTest, AssignsWhatIsGiven) {
  struct Counter : nn::Module {
    Variable count = add("count", Tensor(0.0), false);
    Tensor operator()(const Tensor &x) const {
      count.assign_add(1.0);
      return x * count.value();
    }
  } counter;
  Variable other(10.0);
  EXPECT_EQ(nn::functional_call(counter, other, Tensor(2.0)).item<double>(), 22);
  EXPECT_EQ(other.item<double>(), 11);
  EXPECT_EQ(counter.count.item<double>(), 0);
  EXPECT_TRUE(says(messageOf([&] { nn::functional_call(counter, Tensor(1.0), Tensor(2.0)); }),
                   "the model assigns variable 'count', for which a tensor is given"));
  EXPECT_TRUE(says(messageOf([&] { nn::functional_call(counter, Tensor(1.0f), Tensor(2.0)); }), "value 0 is f32[]"));
  EXPECT_TRUE(says(messageOf([&] { nn::functional_call(counter, std::vector<Tensor>(3, Tensor(1.0)), Tensor(2.0)); }),
                   "3 values for a model of 1 variables"));
  uint32_t line = __LINE__ + 1;
  std::string message = messageOf([&] { nn::functional_call(counter, Tensor(1.0f), Tensor(2.0)); });
  EXPECT_TRUE(says(message, "VmapTest.cpp:" + std::to_string(line))) << message;
}

TEST(StackModulesTest, IsEachModel) {
  std::vector<Mlp> models{Mlp(1), Mlp(2), Mlp(3)};
  auto ensemble = nn::stack_modules(models);
  Tensor x = cast(matrix(4, 3), f32);
  Tensor ys = ensemble(x), lanes = ensemble.lanes(stack({x, 2 * x, 3 * x}));
  auto traced = wg::function("ensemble", [&](const Tensor &x) { return ensemble(x); });
  Tensor compiled = traced(x);
  for (int64_t i = 0; i < 3; ++i) {
    expectNear(cast(ys[i], f64), cast(models[static_cast<size_t>(i)](x), f64), 1e-6);
    expectNear(cast(compiled[i], f64), cast(models[static_cast<size_t>(i)](x), f64), 1e-5);
    expectNear(cast(lanes[i], f64), cast(models[static_cast<size_t>(i)](static_cast<float>(i + 1) * x), f64), 1e-6);
  }
  // It trains as its models would, each on its own.
  auto step = [&](const auto &model, const Tensor &x) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(model(x) - 1.0f));
    std::vector<Grad> grads = tape.gradient(loss, model);
    std::vector<Variable> variables = model.trainable_variables();
    for (size_t i = 0; i < variables.size(); ++i)
      variables[i].assign_sub(0.05f * grads[i].value());
  };
  step(ensemble, x);
  for (const Mlp &model : models)
    step(model, x);
  for (size_t k = 0; k < 4; ++k)
    for (size_t i = 0; i < 3; ++i)
      expectNear(cast(ensemble.trainable_variables()[k].value()[static_cast<int64_t>(i)], f64),
                 cast(models[i].trainable_variables()[k].value(), f64), 1e-5);
  // Each model drops its own, from its own generator, whose state it keeps.
  auto drop = [&](const std::vector<Variable> &variables, const Tensor &x) {
    return nn::functional_call(ensemble.base(), variables, x, true);
  };
  Tensor before = ensemble.variables().back().value();
  vmap(drop, {.in_axes = {0, unmapped}})(ensemble.variables(), x);
  EXPECT_NE(before.to_vector<int64_t>(), ensemble.variables().back().value().to_vector<int64_t>());
}

TEST(FunctionalCallTest, ASharedGeneratorGivesEachLaneItsOwnNumbers) {
  Mlp model(1), looped(1);
  Tensor xs = cast(matrix(5, 3), f32);
  auto call = [](const Mlp &model) {
    return [&](const std::vector<Variable> &w, const Tensor &x) { return nn::functional_call(model, w, x, true); };
  };
  Tensor found = vmap(call(model), {.in_axes = {unmapped, 0}})(model.variables(), xs);
  std::vector<Tensor> each;
  for (int64_t i = 0; i < 5; ++i)
    each.push_back(call(looped)(looped.variables(), xs[i]));
  expectNear(cast(found, f64), cast(stack(each), f64), 1e-6);
  EXPECT_EQ(model.variables().back().value().to_vector<int64_t>(),
            looped.variables().back().value().to_vector<int64_t>());
}

TEST(FunctionalCallTest, AVariableGivenTwiceIsRefusedWhereItIsAssigned) {
  struct Two : nn::Module {
    Variable a = add("a", Tensor(1.0)), b = add("b", Tensor(2.0));
    Tensor operator()(const Tensor &x, bool assigns) const {
      if (assigns)
        a.assign(x);
      return b * x;
    }
  } model;
  Variable v(3.0, "v");
  EXPECT_EQ(nn::functional_call(model, std::vector<Variable>{v, v}, Tensor(2.0), false).item<double>(), 6);
  EXPECT_TRUE(says(messageOf([&] { nn::functional_call(model, std::vector<Variable>{v, v}, Tensor(2.0), true); }),
                   "variable 'v' is given twice to a model that assigns variables"));
}

TEST(StackModulesTest, SaysWhatDoesNotFit) {
  EXPECT_TRUE(says(messageOf([] { nn::stack_modules(std::vector<Mlp>()); }), "there are no models"));
  std::vector<nn::Dense> layers{nn::Dense(3, 4), nn::Dense(3, 5)};
  EXPECT_TRUE(says(messageOf([&] { nn::stack_modules(layers); }),
                   "variable 'weight' of model 1 is f32[3,5], 'weight' of the first f32[3,4]"));
  EXPECT_TRUE(says(messageOf([&] { nn::stack_modules(std::vector<nn::Dense>(3, nn::Dense(3, 4))); }),
                   "models 0 and 1 are copies of one model, with the same variables"));
  std::vector<Mlp> models{Mlp(1), Mlp(2), Mlp(3)};
  uint32_t line = __LINE__ + 1;
  auto ensemble = nn::stack_modules(models);
  std::string message = messageOf([&] { ensemble.lanes(zeros({2, 4, 3})); });
  EXPECT_TRUE(says(message, "VmapTest.cpp:" + std::to_string(line))) << message;
}
