// Jacobians and Hessians: of tapes and of functions, in both modes, eagerly and traced, by chunks.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

/// [2, 3] -> [4]; every element of the result depends on every one of x.
static Tensor mixed(const Tensor &x) {
  Tensor w = matrix(6, 4);
  return tanh(einsum("i,ij->j", reshape(x, {6}) * reshape(x, {6}), w)) + reduce_sum(exp(x));
}
/// Row by row, by as many gradients.
template <class F> static Tensor byRows(const F &f, const Tensor &x) {
  std::vector<Tensor> rows;
  Tensor y = f(x);
  for (int64_t i = 0; i < y.size(); ++i)
    rows.push_back(grad([&](const Tensor &x) { return reshape(f(x), {-1})[i]; })(x).value());
  std::vector<int64_t> shape(y.shape().begin(), y.shape().end());
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  return reshape(stack(rows), Shape(shape));
}

static constexpr DerivativeMode kModes[] = {DerivativeMode::forward, DerivativeMode::reverse};

// T-71, T-74
TEST(JacobianTest, BothModesGiveTheRowsEagerlyAndTraced) {
  Tensor x = matrix(2, 3), wanted = byRows(mixed, x);
  for (DerivativeMode mode : kModes)
    for (int64_t chunk : {0, 1, 4, 100}) {
      auto j = jacobian(mixed, {.mode = mode, .chunk_size = chunk});
      expectNear(j(x), wanted);
      auto traced = wg::function("j", j);
      expectNear(traced(x), wanted);
      expectNear(traced(x), wanted);
      auto interpreted = wg::function("j", j, {.interpret = true});
      expectNear(interpreted(x), wanted);
    }
}

TEST(JacobianTest, TheModeFollowsFromTheSizesAndIsSaid) {
  auto j = jacobian([](const Tensor &x) { return reduce_sum(x * x) * x; });
  EXPECT_EQ(j.explain(), "no Jacobian was computed");
  j(Tensor{1.0, 2.0, 3.0});
  EXPECT_EQ(j.explain(),
            "forward mode, no more columns than rows: 3 elements of the sources, 3 of the targets; columns "
            "in one batched program");
  auto one = jacobian([](const Tensor &x) { return reduce_sum(x * x); });
  one(Tensor{1.0, 2.0, 3.0});
  EXPECT_EQ(one.explain(), "reverse mode, fewer rows than columns: 3 elements of the sources, 1 of the targets");
  auto rows = jacobian(mixed, {.chunk_size = 3});
  rows(matrix(2, 3));
  EXPECT_TRUE(says(rows.explain(), "reverse mode, fewer rows than columns: 6 elements")) << rows.explain();
  EXPECT_TRUE(says(rows.explain(), "rows 2 at a time")) << rows.explain();
  GradientTape tape({.persistent = true});
  EXPECT_EQ(tape.explain_jacobian(), "the tape was not asked for a Jacobian");
  // Under a memory cap: 50 columns of 8 kB and what is computed from them.
  auto capped =
      jacobian([](const Tensor &x) { return exp(concat(std::vector<Tensor>(20, x))); }, {.memory_limit = 200000});
  capped(linspace(0, 1, 50, f64));
  EXPECT_TRUE(says(capped.explain(), " at a time")) << capped.explain();
}

TEST(JacobianTest, OneBatchedProgramInAFunction) {
  auto f = wg::function("j", jacobian(mixed, {.mode = DerivativeMode::forward}));
  auto few = f.trace(matrix(2, 3)).text(Stage::traced);
  auto size = [](const std::string &text) { return std::count(text.begin(), text.end(), '\n'); };
  auto wide = wg::function(
      "j", jacobian([](const Tensor &x) { return tanh(x) * reduce_sum(x); }, {.mode = DerivativeMode::forward}));
  EXPECT_EQ(size(wide.trace(linspace(0, 1, 5, f64)).text(Stage::traced)),
            size(wide.trace(linspace(0, 1, 500, f64)).text(Stage::traced)));
  // Chunks are turns of one loop, and a call for what is left over.
  auto chunked = wg::function("j", jacobian([](const Tensor &x) { return tanh(x) * reduce_sum(x); },
                                            {.mode = DerivativeMode::forward, .chunk_size = 100}));
  auto textFor = [&](int64_t n) { return chunked.trace(linspace(0, 1, n, f64)).text(Stage::traced); };
  EXPECT_EQ(size(textFor(300)), size(textFor(700)));
  EXPECT_TRUE(says(textFor(500), "wg.loop [@tangents_lanes")) << textFor(500);
  auto whole = wg::function(
      "j", jacobian([](const Tensor &x) { return tanh(x) * reduce_sum(x); }, {.mode = DerivativeMode::forward}));
  for (int64_t n : {300, 301, 130}) // chunks are of one size but for the last
    expectNear(chunked(linspace(0, 1, n, f64)), whole(linspace(0, 1, n, f64)));
}

TEST(JacobianTest, StructuresOfArgumentsAndOfValues) {
  auto f = [](const std::pair<Tensor, Tensor> &p, double scale) {
    return std::vector<Tensor>{p.first * reduce_sum(p.second), scale * p.second};
  };
  std::pair p(Tensor{1.0, 2.0}, Tensor{3.0, 4.0, 5.0});
  for (DerivativeMode mode : kModes) {
    std::vector<std::pair<Grad, Grad>> j = jacobian(f, {.mode = mode})(p, 10.0);
    expectNear(j[0].first.value(), 12 * eye(2, {}, f64));
    expectNear(j[0].second.value(), reshape(Tensor{1.0, 2.0}, {2, 1}) * ones({1, 3}, f64));
    EXPECT_FALSE(j[1].first.has_value());
    EXPECT_TRUE(says(j[1].first.reason(), "no path")) << j[1].first.reason();
    expectNear(j[1].second.value(), 10 * eye(3, {}, f64));
    auto zero = jacobian(f, {.mode = mode, .unconnected = Unconnected::zero})(p, 10.0);
    expectNear(zero[1].first.value(), zeros({3, 2}, f64));
  }
}

TEST(JacobianTest, NumbersEnumsAndAuxPassThrough) {
  auto f = [](const Tensor &x, int power) {
    Tensor y = x;
    for (int i = 1; i < power; ++i)
      y = y * x;
    return std::pair(y, std::string("power"));
  };
  auto [j, aux] = jacobian(f, has_aux)(Tensor{2.0, 3.0}, 3);
  expectNear(j.value(), Tensor{{12.0, 0.0}, {0.0, 27.0}});
  EXPECT_EQ(aux, "power");
}

// T-70, T-76
TEST(JacobianTest, OfATapeByTensorsAndVariables) {
  Variable w(Tensor{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, "w"), unused(Tensor{1.0}, "unused");
  Tensor x{0.5, -1.0};
  for (DerivativeMode mode : kModes) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = einsum("i,ij->j", x, w) + einsum("i,ij->j", x, w); // the variable is read twice
    expectNear(tape.jacobian(y, x, {.mode = mode}).value(), 2 * transpose(w.value()));
    auto [jx, jw] = tape.jacobian(y, x, w, {.mode = mode});
    EXPECT_EQ(jw.shape(), (Shape{3, 2, 3}));
    expectNear(jw.value(), 2 * einsum("jk,i->jik", eye(3, {}, f64), x));
    auto [a, b] = tape.jacobian(y, {w, x}, {.mode = mode});
    expectNear(a.value(), jw.value());
    EXPECT_TRUE(says(tape.explain_jacobian(), mode == DerivativeMode::forward
                                                  ? "forward mode, as asked for: 8 elements"
                                                  : "reverse mode, as asked for: 8 elements"))
        << tape.explain_jacobian();
    Grad none = tape.jacobian(y, unused, {.mode = mode});
    EXPECT_FALSE(none.has_value());
    EXPECT_TRUE(says(none.reason(), "'unused' was not read")) << none.reason();
    expectNear(tape.jacobian(y, unused, {.mode = mode, .unconnected = Unconnected::zero}).value(), zeros({3, 1}, f64));
    Tensor number(7);
    EXPECT_TRUE(says(tape.jacobian(y, number, {.mode = mode}).reason(), "integer dtype"));
    EXPECT_TRUE(says(tape.jacobian(number, x, {.mode = mode}).reason(), "integer dtype"));
  }
}

// T-42, T-66, T-72
TEST(JacobianTest, ATapeIsUsedUpUnlessItIsPersistent) {
  GradientTape tape;
  Tensor x{1.0, 2.0};
  tape.watch(x);
  Tensor y = x * x;
  tape.jacobian(y, x);
  EXPECT_TRUE(says(messageOf([&] { tape.jacobian(y, x); }),
                   "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"));
  // Inside of its own recording.
  GradientTape own({.persistent = true});
  own.watch(x);
  Tensor z = x * x * x, j = own.jacobian(z, x).value();
  expectNear(own.gradient(j, x).value(), Tensor{6.0, 12.0});
  EXPECT_TRUE(says(messageOf([&] { own.jacobian(std::vector<Tensor>{z, z}, x); }), "2 targets"));
  EXPECT_TRUE(says(messageOf([&] { own.jacobian(z, x, {.chunk_size = -1}); }), "chunk_size is -1"));
  EXPECT_TRUE(says(messageOf([&] { own.jacobian(z, x, {.memory_limit = -5}); }), "memory_limit is -5"));
}

TEST(JacobianTest, ThroughCalledFunctions) {
  auto f = wg::function("mixed", mixed);
  Tensor x = matrix(2, 3), wanted = byRows(mixed, x);
  for (DerivativeMode mode : kModes)
    for (int64_t chunk : {0, 4}) {
      expectNear(jacobian(f, {.mode = mode, .chunk_size = chunk})(x), wanted);
      auto outer = wg::function("outer", jacobian(f, {.mode = mode, .chunk_size = chunk}));
      expectNear(outer(x), wanted);
      // A part of the function's results only: its derivative is asked by that.
      auto pair = wg::function("pair", [](const Tensor &x) { return std::pair(mixed(x), sqrt(x * 0.0)); });
      expectNear(jacobian([&](const Tensor &x) { return pair(x).first; }, {.mode = mode})(x), wanted);
    }
}

TEST(JacobianTest, DerivativesOfJacobians) {
  Tensor x = matrix(2, 3);
  auto second = [](const Tensor &x) { return byRows([](const Tensor &x) { return byRows(mixed, x); }, x); };
  Tensor wanted = second(x);
  for (DerivativeMode outer : kModes)
    for (DerivativeMode inner : kModes) {
      auto f = jacobian([=](const Tensor &x) { return jacobian(mixed, {.mode = inner})(x).value(); }, {.mode = outer});
      SCOPED_TRACE(static_cast<int>(outer) * 10 + static_cast<int>(inner));
      expectNear(f(x), wanted, 1e-11);
      expectNear(wg::function("j", f)(x), wanted, 1e-11);
    }
  // A gradient and a tangent of one.
  auto norm = [](const Tensor &x) { return reduce_sum(square(jacobian(mixed)(x))); };
  Tensor g = grad(norm)(x).value(), v = cos(x);
  EXPECT_NEAR(jvp(norm, x, v).second.item<double>(), reduce_sum(g * v).item<double>(), 1e-10);
  EXPECT_NEAR(jvp(wg::function("norm", norm), x, v).second.item<double>(), reduce_sum(g * v).item<double>(), 1e-10);
}

// T-81
TEST(JacobianTest, HessianIsForwardOverReverse) {
  auto loss = [](const Tensor &x, double scale) { return scale * reduce_prod(x) + reduce_sum(x * x * x); };
  Tensor x{1.0, 2.0, 3.0};
  Tensor wanted{{6.0, 6.0, 4.0}, {6.0, 12.0, 2.0}, {4.0, 2.0, 18.0}};
  auto h = hessian(loss);
  expectNear(h(x, 2.0), wanted);
  EXPECT_TRUE(
      says(h.explain(), "forward mode, as asked for: 3 elements of the sources, 3 of the targets; columns in one"))
      << h.explain();
  expectNear(wg::function("h", h)(x, 2.0), wanted);
  expectNear(hessian(loss, {.mode = DerivativeMode::reverse})(x, 2.0), wanted);
  expectNear(hessian(loss, {.chunk_size = 2})(x, 2.0), wanted);
  // By a structure: a block for each pair, empty where two do not meet.
  auto blocks = hessian([](const std::map<std::string, Tensor> &p) {
    return reduce_sum(p.at("a") * p.at("a")) + reduce_sum(p.at("b") * p.at("b") * p.at("b"));
  })(std::map<std::string, Tensor>{{"a", Tensor{1.0, 2.0}}, {"b", Tensor(3.0)}});
  expectNear(blocks["a"]["a"].value(), 2 * eye(2, {}, f64));
  EXPECT_EQ(blocks["b"]["b"].item<double>(), 18);
  EXPECT_FALSE(blocks["a"]["b"].has_value());
  // Of a function with several values, one Hessian each.
  Tensor several = hessian([](const Tensor &x) { return x * x * x; })(Tensor{1.0, 2.0}).value();
  expectNear(several, reshape(Tensor{6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.0}, {2, 2, 2}));
}

// T-77
TEST(JacobianTest, OfEachExample) {
  Tensor x = matrix(4, 6), w = matrix(3, 2);
  auto f = [&](const Tensor &x) { return tanh(einsum("bij,jk->bik", reshape(x, {-1, 2, 3}), w)); };
  std::vector<Tensor> each;
  for (int64_t i = 0; i < 4; ++i)
    each.push_back(reshape(byRows([&](const Tensor &row) { return f(reshape(row, {1, 6})); }, x[i]), {2, 2, 6}));
  Tensor wanted = stack(each);
  for (DerivativeMode mode : kModes) {
    auto j = batch_jacobian(f, {.mode = mode});
    expectNear(j(x).value(), wanted);
    expectNear(wg::function("j", j)(x).value(), wanted);
    expectNear(batch_jacobian(f, {.mode = mode, .chunk_size = 3})(x).value(), wanted);
    // Any number of examples.
    auto open = wg::function("j", j);
    open.trace(Tensor(TensorSpec{f64, {dynamic, 6}}));
    expectNear(open(x).value(), wanted);
    expectNear(open(x[{Slice(0, 2)}]).value(), wanted[{Slice(0, 2)}]);
    EXPECT_EQ(open.trace_count(), 1);
  }
  EXPECT_TRUE(says(batch_jacobian(f).explain(), "no Jacobian")) << batch_jacobian(f).explain();
}

// T-78, T-79, T-80, T-82
TEST(JacobianTest, OfEachExampleNeedsExamples) {
  GradientTape tape({.persistent = true});
  Tensor x = matrix(4, 2), v = x[0];
  tape.watch(x, v);
  Tensor y = x * x;
  EXPECT_TRUE(says(messageOf([&] { tape.batch_jacobian(y[{Slice(0, 2)}], x); }),
                   "Need first dimension of target shape (2, 2) and source shape (4, 2) to match."))
      << messageOf([&] { tape.batch_jacobian(y[{Slice(0, 2)}], x); });
  EXPECT_TRUE(
      says(messageOf([&] { tape.batch_jacobian(y[0], x); }), "the target is f64[2], and must have rank at least 2"));
  EXPECT_TRUE(
      says(messageOf([&] { tape.batch_jacobian(y, v); }), "the source is f64[2], and must have rank at least 2"));
  Tensor other = matrix(4, 3);
  EXPECT_TRUE(says(tape.batch_jacobian(y, other).reason(), "not watched"));
  EXPECT_EQ(tape.batch_jacobian(y, other, {.unconnected = Unconnected::zero}).shape(), (Shape{4, 2, 3}));
  // Nothing in an example, and no examples.
  for (const Shape &shape : {Shape{1, 0}, Shape{0, 3}}) {
    auto f = [](const Tensor &x) { return x * x; };
    Shape wanted{shape.dim(0), shape.dim(1), shape.dim(1)};
    for (DerivativeMode mode : kModes) {
      EXPECT_EQ(batch_jacobian(f, {.mode = mode})(zeros(shape)).shape(), wanted);
      EXPECT_EQ(wg::function("j", batch_jacobian(f, {.mode = mode}))(zeros(shape)).shape(), wanted);
      EXPECT_EQ(jacobian(f, {.mode = mode})(zeros(shape)).shape(),
                (Shape{shape.dim(0), shape.dim(1), shape.dim(0), shape.dim(1)}));
    }
  }
}

TEST(JacobianTest, SizesMayBeOpen) {
  auto f = [](const Tensor &x) { return tanh(x) * reduce_sum(x); };
  for (DerivativeMode mode : {DerivativeMode::automatic, DerivativeMode::forward, DerivativeMode::reverse}) {
    auto open = wg::function("j", jacobian(f, {.mode = mode}));
    open.trace(Tensor(TensorSpec{f64, {dynamic}}));
    for (int64_t n : {1, 3, 7}) {
      Tensor x = linspace(-1, 1, n, f64);
      expectNear(open(x), byRows(f, x));
    }
    EXPECT_EQ(open.trace_count(), 1);
  }
}

// T-73
TEST(JacobianTest, AGradientHookIsCalledForEachRow) {
  int calls = 0;
  auto f = [&](const Tensor &x) {
    return with_gradient_hook(x * x, [&](const Tensor &ct) {
      ++calls;
      return 2 * ct;
    });
  };
  auto j = jacobian(f, {.mode = DerivativeMode::reverse});
  expectNear(j(Tensor{1.0, 2.0, 3.0}), 4.0 * cast(Tensor{{1.0, 0.0, 0.0}, {0.0, 2.0, 0.0}, {0.0, 0.0, 3.0}}, f64));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(says(j.explain(), "one at a time, as a rule of C++ takes one cotangent")) << j.explain();
  EXPECT_TRUE(
      says(messageOf([&] { jacobian(f, {.mode = DerivativeMode::forward})(Tensor{1.0}); }), "try: reverse mode"));
}

// T-75
TEST(JacobianTest, OfAGatherIsDense) {
  Tensor table = matrix(5, 2), rows{4, 0, 4};
  auto f = [&](const Tensor &table) { return gather(table, rows); };
  for (DerivativeMode mode : kModes)
    expectNear(jacobian(f, {.mode = mode})(table), byRows(f, table));
}

TEST(JacobianTest, HasTheDtypeOfTheSourceInBothModes) {
  auto f = [](const Tensor &x) { return cast(x, f32) * 2.0f; };
  for (DerivativeMode mode : kModes) {
    Grad j = jacobian(f, {.mode = mode})(Tensor{1.0, 2.0});
    EXPECT_EQ(j.dtype(), f64);
    expectNear(j, 2 * eye(2, {}, f64));
    Grad traced = wg::function("j", jacobian(f, {.mode = mode}))(Tensor{1.0, 2.0});
    EXPECT_EQ(traced.dtype(), f64);
    EXPECT_EQ(batch_jacobian(f, {.mode = mode})(Tensor{{1.0, 2.0}}).dtype(), f64);
  }
}

TEST(JacobianTest, APairOfValuesGivesAPair) {
  auto f = [](const Tensor &x) { return std::pair(x * x, reduce_sum(x)); };
  std::pair<Grad, Grad> j = jacobian(f)(Tensor{1.0, 2.0});
  expectNear(j.first.value(), Tensor{{2.0, 0.0}, {0.0, 4.0}});
  expectNear(j.second.value(), Tensor{1.0, 1.0});
  auto product = [](const std::pair<Tensor, Tensor> &p) { return p.first * p.second; };
  EXPECT_EQ(hessian(product)(std::pair(Tensor(2.0), Tensor(3.0))).second.first.item<double>(), 1);
}

TEST(JacobianTest, AHessianTakesWhatAJacobianTakes) {
  auto factor = std::make_unique<double>(3.0);
  auto f = [factor = std::move(factor)](const Tensor &x) { return std::pair(*factor * reduce_sum(x * x), x); };
  auto [h, aux] = hessian(std::move(f), has_aux)(Tensor{1.0, 2.0}); // a callable that can only be moved
  expectNear(h, 6 * eye(2, {}, f64));
  EXPECT_EQ(aux.to_vector<double>(), (std::vector<double>{1, 2}));
  // Zeros where the value does not depend on x at all, too.
  auto constant = [](const Tensor &) { return Tensor(1.0); };
  EXPECT_FALSE(hessian(constant)(Tensor{1.0, 2.0}).has_value());
  expectNear(hessian(constant, {.unconnected = Unconnected::zero})(Tensor{1.0, 2.0}), zeros({2, 2}, f64));
}

TEST(JacobianTest, ChunksNeedAKnownNumber) {
  auto f = [](const Tensor &x) { return tanh(x) * reduce_sum(x); };
  auto chunked = wg::function("j", jacobian(f, {.chunk_size = 2}));
  EXPECT_TRUE(says(messageOf([&] { chunked.trace(Tensor(TensorSpec{f64, {dynamic}})); }),
                   "jacobian: chunks need a known number of rows, and it is `?` here"))
      << messageOf([&] { chunked.trace(Tensor(TensorSpec{f64, {dynamic}})); });
  auto j = jacobian(f);
  wg::function("j", j).trace(Tensor(TensorSpec{f64, {dynamic}}));
  EXPECT_TRUE(says(j.explain(), "rows in one batched program, as their number is `?`")) << j.explain();
}
