// Sizes that are `?` while a function is traced: what is computed of them, whose they are,
// and what a call may make of them.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <functional>

using namespace wg;
using wg::tests::messageOf;

namespace {

using Values = std::vector<double>;
Values valuesOf(const Tensor &x) { return x.to_vector<double>(); }

/// 1, 2, 3, ... in a shape.
Tensor counted(const Shape &shape) { return reshape(arange(1, shape.numElements() + 1, 1, f64), shape); }

#define EXPECT_SAYS(text, ...)                                                                                         \
  EXPECT_NE(messageOf([&] { __VA_ARGS__; }).find(text), std::string::npos) << messageOf([&] { __VA_ARGS__; })

/// f, and the gradients of the sum of f's squares and of that gradient's sum.
std::vector<Tensor> withDerivatives(const std::function<Tensor(const Tensor &)> &f, const Tensor &x) {
  GradientTape outer, inner;
  outer.watch(x);
  inner.watch(x);
  Tensor y = f(x);
  Tensor first = inner.gradient(reduce_sum(square(y)), x, GradientOptions{.unconnected = Unconnected::zero}).value();
  return {y, first, outer.gradient(first, x, GradientOptions{.unconnected = Unconnected::zero}).value()};
}

/// Traced with every size of x open, interpreted and compiled, f does what it does eagerly; errors too.
void expectSameOpen(const std::function<Tensor(const Tensor &)> &f, const std::vector<Tensor> &xs,
                    const std::string &what, bool compile = true) {
  TensorSpec spec{f64, {}};
  for (int i = 0; i < xs[0].rank(); ++i)
    spec.shape.push_back(dynamic);
  for (bool interpret : {true, false}) {
    if (!interpret && !compile)
      break;
    auto whole =
        wg::function("whole", [=](const Tensor &x) { return withDerivatives(f, x); }, {.interpret = interpret});
    ConcreteFunction open = whole.trace(spec);
    for (const Tensor &x : xs) {
      std::vector<Tensor> expected;
      bool fails = false;
      try {
        expected = withDerivatives(f, x);
      } catch (const Error &) {
        fails = true;
      }
      std::string where = what + " of " + to_string(x);
      if (fails) {
        EXPECT_ANY_THROW(open(x)) << where;
        continue;
      }
      std::vector<Tensor> actual = open(x);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(actual[i].shape(), expected[i].shape()) << where << ", result " << i;
        EXPECT_EQ(valuesOf(actual[i]), valuesOf(expected[i])) << where << ", result " << i;
      }
      if (!interpret)
        return; // one compilation is enough
    }
  }
}

std::vector<Tensor> vectors(int64_t most) {
  std::vector<Tensor> list;
  for (int64_t n = most; n >= 0; --n)
    list.push_back(counted({n}));
  return list;
}

} // namespace

TEST(DynamicTest, SlicesCountAsNumPyDoes) {
  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  for (int64_t start :
       {int64_t(0), int64_t(1), int64_t(3), int64_t(-1), int64_t(-3), std::numeric_limits<int64_t>::min()})
    for (int64_t limit : {int64_t(0), int64_t(2), int64_t(4), int64_t(-1), int64_t(-2), end})
      for (int64_t stride : {int64_t(1), int64_t(2), int64_t(3), end})
        expectSameOpen([=](const Tensor &x) { return slice(x, {start}, {limit}, {stride}); }, vectors(5),
                       std::to_string(start) + ":" + std::to_string(limit) + ":" + std::to_string(stride), stride == 2);
}

TEST(DynamicTest, AnOpenSizeIsNoLimitOfASlice) {
  auto part = wg::function("part", [](const Tensor &x) { return slice(x, {0, 0}, {1, x.shape()[1]}); });
  EXPECT_SAYS("slice: the limit on axis 1 is an open size", part.trace(TensorSpec{f32, {2, dynamic}}));
  auto turns = wg::function("turns", [](const Tensor &x) {
    return for_range(0, x.shape()[0], [](const Tensor &, const Tensor &s) { return s * 2.0f; }, x);
  });
  EXPECT_SAYS("for_range: the range begins or ends at an open size", turns.trace(TensorSpec{f32, {dynamic}}));
  auto sums = wg::function("sums", [](const Tensor &x) {
    return associative_scan([](const Tensor &a, const Tensor &b) { return a + b; }, x);
  });
  EXPECT_SAYS("associative_scan: the number of rows is an open size", sums.trace(TensorSpec{f32, {dynamic}}));
}

TEST(DynamicTest, ScansFromTheLastRowOnWhereOneOfTheirTensorsSaysHowManyThereAre) {
  using Pair = std::pair<Tensor, Tensor>;
  auto f = wg::function("f", [](const Tensor &x, const Tensor &y) {
    auto join = [](const Pair &a, const Pair &b) { return Pair(a.first * b.first, b.first * a.second + b.second); };
    return associative_scan(join, Pair(x, y), {.reverse = true});
  });
  Tensor x({2.0, 3.0, 5.0}), y({1.0, 10.0, 100.0});
  auto [products, sums] = f(x, y);
  auto open = wg::function("open", f.original());
  open.trace(TensorSpec{f64, {dynamic}}, TensorSpec{f64, {3}});
  auto [openProducts, openSums] = open(x, y);
  EXPECT_EQ(products.to_vector<double>(), (std::vector<double>{30, 15, 5}));
  EXPECT_EQ(openProducts.to_vector<double>(), products.to_vector<double>());
  EXPECT_EQ(openSums.to_vector<double>(), sums.to_vector<double>());
}

TEST(DynamicTest, AnAssociativeScanOfOpenRows) {
  auto sums = [](const Tensor &x) {
    Tensor rows = concat({x, ones({5, 1}, f64)}, 1);
    return associative_scan([](const Tensor &a, const Tensor &b) { return a + b; }, rows);
  };
  for (bool interpret : {true, false}) {
    auto open = wg::function("sums", sums, {.interpret = interpret}).trace(TensorSpec{f64, {5, dynamic}});
    for (int64_t columns : {2, 0, 3}) {
      Tensor x = counted({5, columns});
      EXPECT_EQ(valuesOf(open(x)[0]), valuesOf(sums(x)));
    }
  }
}

TEST(DynamicTest, PlacesCountFromBothEnds) {
  for (int64_t i : {0, 2, -1, -3})
    expectSameOpen([=](const Tensor &x) { return index(x, i) * 2.0; }, vectors(4), "index " + std::to_string(i));
  expectSameOpen([](const Tensor &x) { return index(x, -1, 1); }, {counted({2, 3}), counted({3, 1})}, "last column");
  auto last = wg::function("last", [](const Tensor &x) { return index(x, -2); }, {.interpret = true})
                  .trace(TensorSpec{f32, {dynamic}});
  EXPECT_SAYS("a - 2\" with a = 1: the size is negative", last(Tensor{1.0f}));
}

TEST(DynamicTest, PartsOfAnOpenAxis) {
  expectSameOpen([](const Tensor &x) { return split(x, 3)[1]; }, {counted({6}), counted({0}), counted({5})}, "split");
  expectSameOpen([](const Tensor &x) { return concat({x, x * 2.0, slice(x, {1}, {3})}, 0); }, vectors(4), "concat");
  expectSameOpen([](const Tensor &x) { return concat({x, x * x}, 1); },
                 {counted({2, 3}), counted({1, 1}), counted({2, 0})}, "concat of columns");
  expectSameOpen([](const Tensor &x) { return stack({x, x * x * x}, 1); }, vectors(3), "stack");
  expectSameOpen([](const Tensor &x) { return pad(x, {{1, 2}}, 7.0); }, vectors(3), "pad");
  auto thirds = wg::function("thirds", [](const Tensor &x) { return split(x, 3)[0]; }, {.interpret = true})
                    .trace(TensorSpec{f32, {dynamic}});
  EXPECT_SAYS("5 is not a multiple of 3", thirds(zeros({5})));
}

TEST(DynamicTest, AShapeMayFollowFromOpenSizes) {
  expectSameOpen([](const Tensor &x) { return reshape(x, {-1, 3}); },
                 {counted({2, 6}), counted({3, 1}), counted({2, 2}), counted({0, 3})}, "reshape to {-1, 3}");
  expectSameOpen([](const Tensor &x) { return reshape(x, {2, 3}); }, {counted({6}), counted({5})}, "reshape to {2, 3}");
  auto known = wg::function("rows", [](const Tensor &x) { return reshape(x, {-1, 3}); }, {.interpret = true})
                   .trace(TensorSpec{f64, {dynamic, 10, 3}});
  EXPECT_EQ(known(counted({2, 10, 3}))[0].shape(), (Shape{20, 3}));
  EXPECT_NE(known.signature().find("f64[?,3]"), std::string::npos) << known.signature();
  expectSameOpen([](const Tensor &x) { return reshape(transpose(x), x.shape()); }, {counted({2, 3}), counted({1, 4})},
                 "reshape to a shape");
}

TEST(DynamicTest, BroadcastToTheOpenShapeOfAnotherTensorIsChecked) {
  TensorSpec open{f64, {dynamic}};
  for (bool interpret : {true, false}) {
    auto f = wg::function("f", [](const Tensor &x, const Tensor &y) { return broadcast_to(x, y.shape()) * 2.0; },
                          {.interpret = interpret})
                 .trace(open, open);
    EXPECT_EQ(valuesOf(f(counted({3}), counted({3}))[0]), (Values{2, 4, 6}));
    EXPECT_ANY_THROW(f(counted({2}), counted({3})));
  }
  EXPECT_SAYS("not known whose",
              wg::function("g", [](const Tensor &x) { return broadcast_to(x, Shape{dynamic}); }).trace(open));
  expectSameOpen([](const Tensor &x) { return broadcast_to(x, x.shape()) * x; }, vectors(3),
                 "broadcast to its own shape");
}

TEST(DynamicTest, AnOpenAxisThatIsNamedIsSqueezedWhereItIs1) {
  expectSameOpen([](const Tensor &x) { return squeeze(x, {0}) * 2.0; },
                 {counted({1, 3}), counted({1, 0}), counted({2, 3})}, "squeeze");
  expectSameOpen([](const Tensor &x) { return squeeze(x, {-1, 1}) * 2.0; },
                 {counted({2, 1, 1}), counted({1, 1, 1}), counted({1, 2, 1})}, "squeeze of two");
  auto f = wg::function("f", [](const Tensor &x) { return squeeze(x); }, {.interpret = true})
               .trace(TensorSpec{f64, {1, dynamic}});
  EXPECT_EQ(f(counted({1, 1}))[0].shape(), (Shape{1})) << "what is not named and not known to be 1 stays";
}

TEST(DynamicTest, SizesThatDoNotFitNameTheArgumentsOfTheCalledFunction) {
  auto add = wg::function("add", [](const Tensor &left, const Tensor &right) { return left + right; },
                          {.argument_names = {"left", "right"}});
  auto open = add.trace(TensorSpec{f64, {dynamic}}, TensorSpec{f64, {dynamic}});
  auto outer = wg::function("outer", [&](const Tensor &x) { return open(x, concat({x, x}, 0))[0]; });
  std::string error = messageOf([&] { outer(counted({3})); });
  EXPECT_NE(error.find("left"), std::string::npos) << error;
  EXPECT_NE(error.find("right"), std::string::npos) << error;
}

TEST(DynamicTest, MeansCountOpenAxes) {
  expectSameOpen([](const Tensor &x) { return mean(x, 0, true) * variance(x); }, {counted({3, 2}), counted({1, 1})},
                 "mean");
}

TEST(DynamicTest, AProductOfRank8HasADerivative) {
  auto f = [](const Tensor &x) { return reduce_prod(x, Axes({1, 7})); };
  expectSameOpen(f, {counted({1, 2, 1, 2, 1, 1, 1, 2}), counted({1, 1, 1, 1, 1, 1, 1, 1})}, "product");
}

TEST(DynamicTest, ATensorMayBeMadeInTheShapeOfAnother) {
  expectSameOpen(
      [](const Tensor &x) { return x * ones(x.shape(), f64) + zeros(x.shape(), f64) + full(x.shape(), 2.5, f64); },
      {counted({2, 3}), counted({0, 1})}, "full");
  expectSameOpen([](const Tensor &x) { return broadcast_to(reduce_sum(x), x.shape()) * x; },
                 {counted({2, 3}), counted({1, 1})}, "broadcast_to");
  auto draw =
      wg::function("draw", [](const Tensor &x) { return random_normal(random::key(1), x.shape(), 0, 1, f64) * x; },
                   {.interpret = true})
          .trace(TensorSpec{f64, {dynamic, 2}});
  EXPECT_EQ(valuesOf(draw(ones({3, 2}, f64))[0]), valuesOf(random_normal(random::key(1), {3, 2}, 0, 1, f64)));
  nn::Dropout dropout(0.5, 3);
  auto drop = wg::function("drop", [&](const Tensor &x) { return dropout(x, true); }).trace(TensorSpec{f64, {dynamic}});
  EXPECT_EQ(drop(ones({5}, f64))[0].shape(), (Shape{5}));
}

TEST(DynamicTest, AShapeOfAnEnclosingTraceHasItsSizesToo) {
  auto outer = wg::function("outer",
                            [](const Tensor &x) {
                              auto inner =
                                  wg::function("inner", [&](const Tensor &y) { return ones(x.shape(), f64) * y; });
                              return inner(Tensor(3.0)) + x;
                            },
                            {.interpret = true})
                   .trace(TensorSpec{f64, {dynamic}});
  EXPECT_EQ(valuesOf(outer(counted({3}))[0]), (Values{4, 5, 6}));
}

TEST(DynamicTest, AChangedShapeForgetsWhoseItIs) {
  auto attempt = [](auto change) {
    return messageOf([&] {
      wg::function("f", [&](const Tensor &x) {
        Shape shape = x.shape();
        change(shape);
        return ones(shape, f64);
      }).trace(TensorSpec{f64, {dynamic, dynamic}});
    });
  };
  EXPECT_EQ(attempt([](Shape &) {}), "no error");
  std::string swapped = attempt([](Shape &shape) { std::swap(shape[0], shape[1]); });
  EXPECT_NE(swapped.find("ones: the shape (?, ?) has an open size, and it is not known whose"), std::string::npos)
      << swapped;
  EXPECT_NE(swapped.find("try: pass x.shape() as it is"), std::string::npos) << swapped;
  EXPECT_EQ(attempt([](Shape &shape) { shape[1] = 3; }).find("no error"), std::string::npos);
  EXPECT_EQ(attempt([](Shape &shape) { shape = Shape{shape.dim(0), 2}; }).find("no error"), std::string::npos);
  Shape leaked;
  wg::function("f", [&](const Tensor &x) {
    leaked = x.shape();
    return x;
  }).trace(TensorSpec{f64, {dynamic}});
  EXPECT_SAYS("it is not known whose", ones(leaked, f64));
  EXPECT_SAYS("it is not known whose",
              wg::function("g", [&](const Tensor &x) { return x * ones(leaked, f64); })(counted({2})));
}

TEST(DynamicTest, CotangentsOfDifferentKnowledgeMeet) {
  auto same = [](const std::vector<TensorSpec> &specs, const std::vector<Tensor> &xs,
                 const std::function<Tensor(const std::vector<Tensor> &)> &f) {
    auto gradients = [=](const std::vector<Tensor> &x) {
      GradientTape tape;
      tape.watch(x);
      std::vector<Tensor> list;
      for (const Grad &grad : tape.gradient(reduce_sum(f(x)), x))
        list.push_back(grad.value());
      return list;
    };
    std::vector<Tensor> open(specs.begin(), specs.end()), expected = gradients(xs);
    for (bool interpret : {true, false}) {
      std::vector<Tensor> actual = wg::function("f", gradients, {.interpret = interpret}).trace(open).call_flat(xs);
      for (size_t i = 0; i < xs.size(); ++i)
        EXPECT_EQ(valuesOf(actual[i]), valuesOf(expected[i])) << i;
    }
  };
  TensorSpec z{f64, {dynamic, 2}}, x{f64, {dynamic}}, square{f64, {dynamic, dynamic}}, known{f64, {3, 3}};
  same({z}, {counted({2, 2})}, [](auto &a) { return matmul(a[0], a[0]); });
  same({x, known}, {counted({3}), counted({3, 3})}, [](auto &a) { return dot(a[0], matmul(a[1], a[0])); });
  same({x, square}, {counted({3}), counted({3, 3})}, [](auto &a) { return dot(matmul(a[0], a[1]), a[0]); });
  same({z, square}, {counted({4, 2}), counted({2, 2})}, [](auto &a) { return matmul(a[0], a[1]) + a[0]; });
  same({square, z}, {counted({2, 2}), counted({2, 2})}, [](auto &a) { return maximum(a[0] * a[1], a[1] / a[0]); });
}

TEST(DynamicTest, ASeedMayKnowMoreOrFewerSizes) {
  auto f = [](const Tensor &x, const Tensor &seed) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(square(x), x, GradientOptions{.output_gradients = seed}).value();
  };
  for (auto [a, b] : {std::pair<Shape, Shape>{{dynamic, 2}, {3, dynamic}},
                      {{3, 2}, {dynamic, dynamic}},
                      {{dynamic, dynamic}, {3, 2}}})
    EXPECT_EQ(valuesOf(wg::function("f", f, {.interpret = true})
                           .trace(TensorSpec{f64, a}, TensorSpec{f64, b})(counted({3, 2}), counted({3, 2}))[0]),
              (Values{2, 8, 18, 32, 50, 72}));
}

/// A size 1 where the trace took a `?` for the size that it meets.
TEST(DynamicTest, AnOpenSizeIsNotRepeated) {
  auto body = [](const Tensor &x, const Tensor &b) {
    GradientTape tape;
    tape.watch(std::vector{x, b});
    Tensor y = x * b;
    auto [dx, db] = tape.gradient(y, x, b);
    return std::vector{y, dx.value(), db.value()};
  };
  Tensor x = counted({2, 3}), b = Tensor{2.0};
  std::vector<Tensor> expected = body(x, b);
  for (bool interpret : {true, false}) {
    auto f = wg::function("f", body, {.interpret = interpret});
    ConcreteFunction open = f.trace(TensorSpec{f64, {dynamic, dynamic}}, TensorSpec{f64, {dynamic}});
    EXPECT_SAYS("argument 1 has size 1 on axis 0, and 3 is needed", open(x, b));
    EXPECT_SAYS("argument 1 has size 1 on axis 0", open(counted({2, 3}), counted({1})));
    EXPECT_SAYS("argument 1 has size 2 on axis 0", open(x, counted({2})));
    EXPECT_EQ(valuesOf(open(x, counted({3}))[2]), (Values{5, 7, 9}));
    EXPECT_EQ(valuesOf(open(counted({2, 1}), b)[2]), (Values{3})); // 1 beside 1 is no repetition
    // The function itself traces anew, and a tape over the call and a trace of it agree.
    std::vector<Tensor> actual = f(x, b);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(actual[i].shape(), expected[i].shape());
      EXPECT_EQ(valuesOf(actual[i]), valuesOf(expected[i]));
    }
    EXPECT_EQ(f.trace_count(), 2);
    auto product =
        wg::function("product", [](const Tensor &u, const Tensor &v) { return u * v; }, {.interpret = interpret});
    ConcreteFunction openProduct = product.trace(TensorSpec{f64, {dynamic, dynamic}}, TensorSpec{f64, {dynamic}});
    auto gradient = [&](const Tensor &u, const Tensor &v) {
      GradientTape tape;
      tape.watch(v);
      return tape.gradient(product(u, v), v).value();
    };
    EXPECT_EQ(valuesOf(gradient(x, b)), valuesOf(expected[2]));
    EXPECT_EQ(valuesOf(wg::function("around", gradient, {.interpret = interpret})(x, b)), valuesOf(expected[2]));
    EXPECT_SAYS("argument 1 has size 1 on axis 0, and 3 is needed", GradientTape tape; tape.watch(b);
                openProduct(x, b));
    auto around = wg::function("around", gradient, {.interpret = interpret})
                      .trace(TensorSpec{f64, {dynamic, dynamic}}, TensorSpec{f64, {dynamic}});
    EXPECT_SAYS("argument 1 has size 1 on axis 0, and 3 is needed", around(x, b));
  }
}

TEST(DynamicTest, ACallMayKnowSomeOfTheSizes) {
  auto inner = wg::function("inner", [](const Tensor &a, const Tensor &b) { return a * b + a; });
  inner.trace(TensorSpec{f64, {dynamic, 2}}, TensorSpec{f64, {dynamic, 2}});
  auto outer = wg::function("outer",
                            [&](const Tensor &a, const Tensor &b) {
                              GradientTape tape;
                              tape.watch(std::vector{a, b});
                              auto [da, db] = tape.gradient(inner(a, b), a, b);
                              return da.value() + db.value();
                            },
                            {.interpret = true});
  ConcreteFunction open = outer.trace(TensorSpec{f64, {3, 2}}, TensorSpec{f64, {dynamic, 2}});
  EXPECT_EQ(valuesOf(open(counted({3, 2}), counted({3, 2}))[0]), (Values{3, 5, 7, 9, 11, 13}));
  EXPECT_EQ(inner.trace_count(), 1);
}

TEST(DynamicTest, AVariableTakesAValueOfOpenSizes) {
  Variable v(counted({3}));
  auto f = wg::function("f",
                        [&](const Tensor &x) {
                          v.assign(x * 2.0);
                          return v.value();
                        },
                        {.interpret = true})
               .trace(TensorSpec{f64, {dynamic}});
  EXPECT_EQ(valuesOf(f(counted({3}))[0]), (Values{2, 4, 6}));
  EXPECT_SAYS("argument 0 has size 2", f(counted({2})));
  EXPECT_SAYS("argument 0 has size 1", f(counted({1})));
}
