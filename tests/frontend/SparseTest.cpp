// Gradients as rows: of gathered tables, through sums, functions, clipping, accumulation and steps.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

/// Of rows 4, 0, 4, 4: one of them three times.
static Tensor lossOf(const Tensor &table) {
  Tensor indices{4, 0, 4, 4};
  Tensor rows = gather(table, indices);
  return reduce_sum(rows * rows * rows * matrix(4, 3, 0.5));
}
static Grad gradientOf(const Variable &table) {
  GradientTape tape;
  Tensor loss = lossOf(table);
  return tape.gradient(loss, table);
}
/// The same as a tensor.
static Grad denseGradientOf(const Variable &table) { return Grad(Tensor(gradientOf(table).value())); }

static std::vector<double> numbers(const Tensor &x) { return x.to_vector<double>(); }

// T-47
TEST(SparseTest, TheGradientOfAGatherIsRows) {
  Variable table(matrix(6, 3), "table");
  Grad g = gradientOf(table);
  ASSERT_TRUE(g.is_sparse());
  EXPECT_EQ(g.sparse_rows().indices.to_vector<int>(), (std::vector<int>{4, 0, 4, 4}));
  EXPECT_EQ(g.sparse_rows().rows.shape(), (Shape{4, 3}));
  EXPECT_EQ(g.shape(), (Shape{6, 3}));
  EXPECT_EQ(g.dtype(), f64);
  // As a tensor it is what differences say.
  GradientTape tape({.persistent = true});
  tape.watch(table);
  Tensor loss = lossOf(table);
  Tensor dense = tape.gradient(loss, table).value(); // this tape records, so it is dense
  EXPECT_FALSE(tape.gradient(loss, table).is_sparse());
  EXPECT_EQ(numbers(g.value()), numbers(dense));
  Tensor whole = g;
  EXPECT_EQ(numbers(whole * 2.0), numbers(dense * 2.0));
  EXPECT_TRUE(g.value().is(g.value())); // one tensor
  EXPECT_EQ(g[4].to_vector<double>(), dense[4].to_vector<double>());
  EXPECT_TRUE(says(messageOf([] { Grad(Tensor(1.0)).sparse_rows(); }), "the gradient is dense"));
  EXPECT_TRUE(says(messageOf([] { Grad::none("no path").sparse_rows(); }), "the gradient is None: no path"));
}

// T-48
TEST(SparseTest, SumsOfRowsAreRowsAndWithATensorATensor) {
  Variable table(matrix(6, 3), "table");
  auto gradient = [&](auto f) {
    GradientTape tape;
    Tensor y = f(table.value()), z = f(table.value()); // two reads
    Tensor loss = reduce_sum(y * y) + reduce_sum(z);
    return tape.gradient(loss, table);
  };
  Tensor a{1, 2}, b{{2, 3}, {5, 2}};
  Grad rows = gradient([&](const Tensor &x) { return concat({gather(x, a), reshape(gather(x, b), {4, 3})}); });
  ASSERT_TRUE(rows.is_sparse());
  EXPECT_EQ(rows.sparse_rows().indices.dim(0), 12);
  Grad both = gradient([&](const Tensor &x) { return concat({gather(x, a), x}); });
  EXPECT_FALSE(both.is_sparse());
  // i32 beside i64.
  Grad mixed = gradient([&](const Tensor &x) { return concat({gather(x, cast(a, i64)), gather(x, cast(a, i32))}); });
  ASSERT_TRUE(mixed.is_sparse());
  EXPECT_EQ(mixed.sparse_rows().indices.dtype(), i64);
}

TEST(SparseTest, RowsMayHaveNoElements) {
  Tensor x = zeros({3, 0}, f64);
  for (const Tensor &at : {Tensor(int64_t(1)), Tensor({{0, 1}, {2, 2}})}) {
    auto gradient = [&](const Tensor &x) {
      GradientTape tape;
      tape.watch(x);
      Tensor y = reduce_sum(gather(x, at) * 2.0);
      return tape.gradient(y, x).value();
    };
    EXPECT_EQ(gradient(x).shape(), x.shape());
    EXPECT_EQ(wg::function("gradient", gradient)(x).shape(), x.shape());
  }
}

TEST(SparseTest, FunctionsReturnRows) {
  Variable table(matrix(6, 3), "table");
  auto f = wg::function("f", [&](const Tensor &indices) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(gather(table, indices)));
    return std::pair(loss, tape.gradient(loss, table));
  });
  Tensor indices{5, 1, 5};
  auto [loss, g] = f(indices);
  ASSERT_TRUE(g.is_sparse());
  EXPECT_EQ(g.sparse_rows().rows.shape(), (Shape{3, 3}));
  Tensor wanted = zeros({6, 3}, f64);
  EXPECT_EQ(g.value()[5].to_vector<double>(), (4.0 * table.value()[5]).to_vector<double>());
  EXPECT_EQ(g.value()[0].to_vector<double>(), (std::vector<double>{0, 0, 0}));
  // As an argument it is a tensor; inside of a function it may be used as one.
  auto norm = wg::function("norm", [](const Grad &g) { return reduce_sum(square(g.value())); });
  EXPECT_NEAR(norm(g).item<double>(), reduce_sum(square(g.value())).item<double>(), 1e-12);
  auto inside = wg::function("inside", [&](const Tensor &indices) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(gather(table, indices)));
    Grad g = tape.gradient(loss, table);
    EXPECT_TRUE(g.is_sparse());
    return g * 2.0;
  });
  EXPECT_EQ(numbers(inside(indices)), numbers(g.value() * 2.0));
  // Where a tape records it is a tensor.
  GradientTape tape;
  EXPECT_FALSE(f(indices).second.is_sparse());
  // Sizes may be open.
  auto open = wg::function("open", [&](const Tensor &indices) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(gather(table, indices)));
    return tape.gradient(loss, table);
  });
  open.trace(TensorSpec{i64, {dynamic}});
  EXPECT_EQ(numbers(open(cast(indices, i64)).value()), numbers(g.value()));
}

TEST(SparseTest, HigherDerivativesGoThroughIt) {
  Tensor table = matrix(6, 3), v = cos(table);
  auto gradient = [](const Tensor &table) { return grad(lossOf)(table).value(); };
  Tensor h = hessian(lossOf)(table).value();
  Tensor hv = einsum("abcd,cd->ab", h, v);
  auto check = [&](const Tensor &found) {
    for (size_t i = 0; i < 18; ++i)
      EXPECT_NEAR(numbers(found)[i], numbers(hv)[i], 1e-12);
  };
  check(hvp(lossOf, table, v).value());
  check(grad([&](const Tensor &table) { return reduce_sum(gradient(table) * v); })(table).value());
  check(vmap([&](const Tensor &v) { return hvp(lossOf, table, v).value(); })(expand_dims(v, 0))[0]);
  // A tape that watches a sparse gradient knows it.
  Variable variable(table);
  Grad g = gradientOf(variable);
  GradientTape tape;
  tape.watch(g);
  Tensor y = reduce_sum(g * g);
  EXPECT_EQ(numbers(tape.gradient(y, g)), numbers(2.0 * g.value()));
}

namespace {
/// Steps of one kind by rows, and by the same gradients as tensors.
template <class Make> void expectSameSteps(Make make, bool same, double tolerance = 0) {
  for (bool traced : {false, true}) {
    Variable a(matrix(6, 3), "a"), b(matrix(6, 3), "b");
    auto forA = make(), forB = make();
    auto stepA = [&] { forA->apply(gradientOf(a), a); };
    auto stepB = [&] { forB->apply(denseGradientOf(b), b); };
    auto tracedA = wg::function("a", stepA), tracedB = wg::function("b", stepB);
    for (int i = 0; i < 5; ++i) {
      traced ? tracedA() : stepA();
      traced ? tracedB() : stepB();
    }
    bool equal = true;
    for (size_t i = 0; i < 18; ++i)
      equal = equal && std::abs(numbers(a.value())[i] - numbers(b.value())[i]) <= tolerance;
    EXPECT_EQ(equal, same) << (traced ? "traced" : "eager") << a.value() << b.value();
  }
}
} // namespace

TEST(SparseTest, SgdAndAdagradGiveWhatTheTensorGives) {
  expectSameSteps([] { return std::make_unique<optim::SGD>(0.1); }, true, 1e-15);
  expectSameSteps([] { return std::make_unique<optim::SGD>(0.1, optim::SGDOptions{.weight_decay = 0.01}); }, true,
                  1e-15);
  expectSameSteps([] { return std::make_unique<optim::Adagrad>(0.1); }, true, 1e-15);
  expectSameSteps([] { return std::make_unique<optim::Momentum>(0.1); }, true, 1e-15);
  expectSameSteps([] { return std::make_unique<optim::Adam>(0.1); }, true, 1e-15);
  // Lazily, the rows that have no gradient stay as they are. Here these never have one, so it is the same.
  expectSameSteps([] { return std::make_unique<optim::Momentum>(0.1, 0.9, true, 0, true); }, true, 1e-12);
  expectSameSteps([] { return std::make_unique<optim::Adam>(0.1, optim::AdamOptions{.lazy = true}); }, true, 1e-12);
}

TEST(SparseTest, LazyStepsLeaveOtherRows) {
  for (bool lazy : {false, true}) {
    Variable table(ones({4, 2}, f64), "table");
    optim::Adam adam(0.1, {.lazy = lazy});
    optim::Momentum momentum(0.1, 0.9, false, 0, lazy);
    for (optim::Optimizer *optimizer :
         {static_cast<optim::Optimizer *>(&adam), static_cast<optim::Optimizer *>(&momentum)}) {
      auto step = [&](const Tensor &indices) {
        GradientTape tape;
        Tensor loss = reduce_sum(square(gather(table, indices)));
        optimizer->apply(tape.gradient(loss, table), table);
      };
      step(Tensor{0});
      Tensor row = table.value()[0];
      step(Tensor{1});
      // The velocity of row 0 goes on moving it, unless it is left alone.
      EXPECT_EQ(numbers(table.value()[0]) == numbers(row), lazy);
    }
  }
}

TEST(SparseTest, ClippingCountsARowOnce) {
  Variable table(matrix(6, 3), "table"), other(Tensor{1.0, 2.0}, "other");
  Grad g = gradientOf(table);
  Grad dense(Tensor(g.value())), two(Tensor{3.0, 4.0});
  auto [clipped, norm] = optim::clip_by_global_norm(std::vector<Grad>{g, two}, 0.5);
  auto [wanted, wantedNorm] = optim::clip_by_global_norm(std::vector<Grad>{dense, two}, 0.5);
  EXPECT_NEAR(norm.item<double>(), wantedNorm.item<double>(), 1e-14);
  ASSERT_TRUE(clipped[0].is_sparse());
  for (size_t i = 0; i < 18; ++i)
    EXPECT_NEAR(numbers(clipped[0].value())[i], numbers(wanted[0].value())[i], 1e-15);
  auto structured = optim::clip_by_global_norm(std::map<std::string, Grad>{{"t", g}}, 0.5).first;
  EXPECT_TRUE(structured["t"].is_sparse());
}

TEST(SparseTest, AccumulatesRows) {
  for (bool traced : {false, true}) {
    Variable table(matrix(6, 3), "table");
    optim::GradientAccumulator sums(table), wanted(table);
    auto add = [&] { sums.add(gradientOf(table), 2); };
    auto tracedAdd = wg::function("add", add);
    for (int i = 0; i < 3; ++i) {
      traced ? tracedAdd() : add();
      wanted.add(denseGradientOf(table), 2);
    }
    std::vector<double> a = numbers(sums.sum()[0]), b = numbers(wanted.sum()[0]);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-14);
  }
}

TEST(SparseTest, TouchesTheRowsOnly) {
  // What is not touched stays where it is: the table's memory is the same one, and nothing as large is made.
  Variable table(zeros({50000, 64}), "table");
  optim::SGD sgd(0.5);
  Tensor indices = remainder(arange(0, 256 * 97, 97), int64_t(50000));
  auto step = [&](const Tensor &indices) {
    GradientTape tape;
    Tensor loss = reduce_sum(gather(table, indices) - 1.0f);
    sgd.apply(tape.gradient(loss, table), table);
  };
  auto traced = wg::function("step", step);
  const void *before = table.value().data<float>().data();
  for (int i = 0; i < 3; ++i) {
    step(indices);
    EXPECT_EQ(table.value().data<float>().data(), before);
  }
  for (int i = 0; i < 3; ++i) {
    traced(indices);
    EXPECT_EQ(table.value().data<float>().data(), before);
  }
  EXPECT_EQ(table.value()[97].to_vector<float>(), std::vector<float>(64, -3.0f));
  EXPECT_EQ(table.value()[98].to_vector<float>(), std::vector<float>(64, 0.0f));
  // A tensor that somebody holds does not change.
  Tensor held = table.value();
  step(indices);
  EXPECT_EQ(held[97].to_vector<float>(), std::vector<float>(64, -3.0f));
  EXPECT_EQ(table.value()[97].to_vector<float>(), std::vector<float>(64, -3.5f));
  traced(indices);
  EXPECT_EQ(held[97].to_vector<float>(), std::vector<float>(64, -3.0f));
  EXPECT_EQ(table.value()[97].to_vector<float>(), std::vector<float>(64, -4.0f));
}

TEST(SparseTest, ATableThatIsAddedToItselfIsATensor) {
  Variable table(matrix(6, 3), "table");
  GradientTape tape;
  Tensor h = table;
  for (int i = 0; i < 40; ++i)
    h = h + h;
  Tensor loss = reduce_sum(gather(h, Tensor{1, 2}));
  Grad g = tape.gradient(loss, table);
  EXPECT_FALSE(g.is_sparse());
  EXPECT_EQ(g[1].to_vector<double>(), std::vector<double>(3, std::pow(2.0, 40)));
}

TEST(SparseTest, AVariableThatIsThereTwiceIsSteppedTwice) {
  for (bool traced : {false, true}) {
    Variable a(matrix(6, 3), "a"), b(matrix(6, 3), "b");
    optim::Adagrad forA(0.1), forB(0.1);
    Grad g = gradientOf(a);
    auto stepA = [&] { forA.apply({gradientOf(a), gradientOf(a)}, {a, a}); };
    auto stepB = [&] { forB.apply({denseGradientOf(b), denseGradientOf(b)}, {b, b}); };
    traced ? wg::function("a", stepA)() : stepA();
    traced ? wg::function("b", stepB)() : stepB();
    for (size_t i = 0; i < 18; ++i)
      EXPECT_NEAR(numbers(a.value())[i], numbers(b.value())[i], 1e-14);
  }
}

TEST(SparseTest, AClassThatStepsInItsOwnMannerGetsTheTensor) {
  struct Sign final : optim::SGD {
    using SGD::SGD;
    void update(const Update &update) override { update.variable.assign_sub(0.5 * sign(update.gradient)); }
  } optimizer(0.1);
  Variable table(matrix(6, 3), "table");
  Tensor before = table.value();
  Grad g = gradientOf(table);
  optimizer.apply(g, table);
  EXPECT_EQ(numbers(table.value()), numbers(before - 0.5 * sign(g.value())));
}

TEST(SparseTest, AdagradWithoutAConstantDividesBySumsOnly) {
  Variable table(ones({4, 2}, f64), "table");
  optim::Adagrad adagrad(0.5, {.initial_accumulator = 0, .epsilon = 0});
  GradientTape tape;
  Tensor loss = reduce_sum(gather(table, Tensor{1, 1, 3}));
  adagrad.apply(tape.gradient(loss, table), table);
  EXPECT_EQ(numbers(table.value()), (std::vector<double>{1, 1, 0.5, 0.5, 1, 1, 0.5, 0.5}));
}

TEST(SparseTest, SaysWhatDoesNotFit) {
  Variable table(matrix(6, 3), "table");
  optim::SGD sgd(0.1);
  Tensor before = table.value();
  EXPECT_TRUE(
      says(messageOf([&] { Grad(SparseRows{Tensor{1, 2}, matrix(3, 3), {6, 3}}); }), "the rows are f64[3,3] at"));
  EXPECT_TRUE(
      says(messageOf([&] { Grad(SparseRows{Tensor{1.0, 2.0}, matrix(2, 3), {6, 3}}); }), "give indices integer[n]"));
  Grad outside(SparseRows{Tensor{1, 6}, matrix(2, 3), {6, 3}});
  EXPECT_TRUE(says(messageOf([&] { sgd.apply(outside, table); }), "the gradient of variable 'table' has a row 6"))
      << messageOf([&] { sgd.apply(outside, table); });
  EXPECT_TRUE(says(messageOf([&] { outside.value(); }), "index 6 at position 1 is out of range"));
  Grad other(SparseRows{Tensor{1, 2}, matrix(2, 4), {6, 4}});
  EXPECT_TRUE(says(messageOf([&] { sgd.apply(other, table); }), "is f64[6,4], the variable f64[6,3]"));
  EXPECT_EQ(numbers(table.value()), numbers(before));
  // In a function an index out of range is an error when it runs, and nothing has changed.
  auto step = wg::function("step", [&](const Tensor &indices) {
    GradientTape tape;
    Tensor loss = reduce_sum(gather(table, indices));
    sgd.apply(tape.gradient(loss, table), table);
  });
  EXPECT_TRUE(says(messageOf([&] { step(Tensor{2, 9}); }), "index 9 at position 1 is out of range"));
  EXPECT_EQ(numbers(table.value()), numbers(before));
  auto given = wg::function("given", [&](const Tensor &indices, const Tensor &rows) {
    sgd.apply(Grad(SparseRows{indices, rows, {6, 3}}), table);
  });
  EXPECT_TRUE(says(messageOf([&] { given(Tensor{2, 9}, matrix(2, 3)); }), "index 9 at position 1 is out of range"));
  EXPECT_EQ(numbers(table.value()), numbers(before));
}
