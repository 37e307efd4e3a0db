// <wengert/Arrays.h>: values against loops over the elements, open sizes against known ones, and errors.
#include "tests/frontend/Support.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace wg;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor counted(const Shape &shape) { return reshape(arange(1, shape.numElements() + 1, 1, f64), shape); }

/// Numbers without a pattern, some of them equal.
Tensor scattered(const Shape &shape) {
  return reshape(cast(floor(20 * sin(square(arange(1, shape.numElements() + 1, 1, f64)))), f64), shape);
}

std::vector<double> valuesOf(const Tensor &x) { return x.to_vector<double>(); }

/// Traced with every size of x open, f does what it does eagerly, interpreted and compiled; gradients too.
void expectSameOpen(const char *what, const std::function<Tensor(const Tensor &)> &f, const std::vector<Tensor> &xs) {
  auto both = [f](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    Tensor loss = y.dtype() == f64 ? reduce_sum(square(y) + y) : reduce_sum(x * 0.0);
    return std::vector<Tensor>{y, tape.gradient(loss, x, GradientOptions{.unconnected = Unconnected::zero}).value()};
  };
  TensorSpec spec{f64, {}};
  for (int i = 0; i < xs[0].rank(); ++i)
    spec.shape.push_back(dynamic);
  for (bool interpret : {true, false}) {
    ConcreteFunction open = wg::function("open", both, {.interpret = interpret}).trace(spec);
    for (const Tensor &x : xs) {
      std::vector<Tensor> wanted = both(x), found = open(x);
      for (size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(std::string(what) + " of " + to_string(x.shape()) + ", result " + std::to_string(i));
        tests::expectNear(found[i], wanted[i], 1e-13);
      }
    }
  }
}

TEST(Arrays, OpenSizes) {
  Tensor a = scattered({3, 4}), b = scattered({2, 7}), c = scattered({5, 5});
#define SAME(call) expectSameOpen(#call, [](const Tensor &x) -> Tensor { return call; }, {a, b, c})
  SAME(flatten(x));
  SAME(swapaxes(x, 0, 1));
  SAME(tile(x, {2, 1, 3}));
  SAME(repeat(x, 3, 0));
  SAME(flip(x));
  SAME(flip(x, 1));
  SAME(roll(x, 2, 1));
  SAME(roll(x, -9, 0));
  SAME(pad(x, {{1, 0}, {0, 1}}, PadMode::reflect));
  SAME(pad(x, {{2, 0}, {0, 1}}, PadMode::symmetric));
  SAME(pad(x, {{3, 1}, {0, 9}}, PadMode::edge));
  SAME(pad(x, {{-1, 0}, {2, -1}}, 4));
  SAME(diag(x, 1));
  SAME(diag(x, -2));
  SAME(diagonal(x));
  SAME(diagonal(x, 1));
  SAME(diagonal(x, -1));
  SAME(trace(x));
  SAME(tril(x, -1));
  SAME(triu(x, 1));
  SAME(meshgrid({index(x, 0), index(x, 0, 1)})[1]);
  SAME(dynamic_slice(x, Tensor({1, -5}), {2, 3}));
  SAME(dynamic_update_slice(x, index(index(x, 0), 0) * ones({1, 2}, f64), Tensor({1, 100})));
  SAME(take(x, Tensor({1, 0, 1}), 1));
  SAME(take_along_axis(x, argsort(x, 0), 0));
  SAME(gather_nd(x, Tensor({{1, 2}, {0, 1}})));
  SAME(put_along_axis(x, argsort(x), sort(x), 1));
  SAME(scatter_nd_update(x, Tensor({{1, 2}, {0, 1}}), Tensor({2.5, 3.5}), Scatter::add));
  SAME(boolean_mask(x, greater(x, 0.0), 4).values);
  SAME(sort(x));
  SAME(sort(x, 0, {.descending = true}));
  SAME(argsort(x));
  SAME(top_k(x, 2).values);
  SAME(searchsorted(sort(index(x, 0)), x));
  SAME(cumsum(x, 1));
  SAME(cumsum(x, 0, {.exclusive = true, .reverse = true}));
  SAME(cumprod(x, 1, {.exclusive = true}));
  SAME(cummax(x, 0).values);
  SAME(cummin(x, 1, true).values);
  SAME(linear_recurrence(0.5, x, 0));
  SAME(diff(x));
  SAME(variance(x, 1, false, 1));
  SAME(p_norm(x, 1, 0));
  SAME(count_nonzero(x, 1));
  SAME(einsum("ij,kj,ij->k", {x, x, x}));
  SAME(kron(x, x));
  SAME(inner(x, x));
#undef SAME
}

/// y[k] along an axis, from each row of x.
std::vector<double> byRows(const Tensor &x, const std::function<std::vector<double>(std::vector<double>)> &f) {
  std::vector<double> all = valuesOf(x), result;
  size_t n = static_cast<size_t>(x.shape().dim(x.rank() - 1));
  for (size_t row = 0; row < all.size(); row += n) {
    std::vector<double> y = f(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(row),
                                                  all.begin() + static_cast<std::ptrdiff_t>(row + n)));
    result.insert(result.end(), y.begin(), y.end());
  }
  return result;
}

TEST(Arrays, SortsRowsOfEveryLength) {
  for (int64_t n : {1, 2, 31, 32, 33, 100, 1000}) {
    Tensor x = scattered({3, n});
    for (bool descending : {false, true}) {
      std::vector<double> wanted = byRows(x, [&](std::vector<double> row) {
        std::vector<double> places(row.size());
        std::iota(places.begin(), places.end(), 0.0);
        std::stable_sort(places.begin(), places.end(), [&](double i, double j) {
          double a = row[static_cast<size_t>(i)], b = row[static_cast<size_t>(j)];
          return descending ? a > b : a < b;
        });
        return places;
      });
      for (const Tensor &each : {x, cast(x, f32), cast(x, i64), cast(x, i32)}) {
        EXPECT_EQ(valuesOf(argsort(each, -1, {.descending = descending})), wanted) << n;
        EXPECT_EQ(valuesOf(swapaxes(argsort(swapaxes(each, 0, 1), 0, {.descending = descending}), 0, 1)), wanted);
      }
      if (descending && n >= 31) {
        Tensor places = top_k(x, 30).indices;
        EXPECT_EQ(valuesOf(places), valuesOf(slice(Tensor::from(wanted, {3, n}), {0, 0}, {3, 30})));
      }
    }
  }
}

TEST(Arrays, NansAreLargestAndZerosEqual) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor x({nan, 0.0, -kInf, -0.0, kInf, nan, 1.0});
  EXPECT_EQ(valuesOf(argsort(x)), (std::vector<double>{2, 1, 3, 6, 4, 0, 5}));
  EXPECT_EQ(valuesOf(argsort(x, 0, {.descending = true})), (std::vector<double>{0, 5, 4, 6, 1, 3, 2}));
  EXPECT_EQ(valuesOf(searchsorted(sort(x), Tensor({-0.0, nan, -kInf}))), (std::vector<double>{1, 5, 0}));
  EXPECT_EQ(valuesOf(searchsorted(sort(x), Tensor({-0.0, nan, -kInf}), true)), (std::vector<double>{3, 7, 1}));
  EXPECT_EQ(valuesOf(cummax(x, 0).indices), (std::vector<double>(7, 0.0)));
}

TEST(Arrays, WritesInOrder) {
  Tensor x = zeros({4}, f64), indices({2, 0, 2}), updates({1.0, 5.0, 3.0});
  EXPECT_EQ(valuesOf(index_set(x, updates, indices)), (std::vector<double>{5, 0, 3, 0}));
  EXPECT_EQ(valuesOf(index_max(x, updates, indices)), (std::vector<double>{5, 0, 3, 0}));
  EXPECT_EQ(valuesOf(index_min(x, -updates, indices)), (std::vector<double>{-5, 0, -3, 0}));
  // Of two updates at one place the last has the gradient, and what they replace has none.
  GradientTape tape;
  tape.watch(x);
  tape.watch(updates);
  Tensor loss = reduce_sum(index_set(x, updates, indices) * Tensor({1.0, 2.0, 4.0, 8.0}));
  auto [dx, du] = tape.gradient(loss, {x, updates});
  EXPECT_EQ(valuesOf(dx.value()), (std::vector<double>{0, 2, 0, 8}));
  EXPECT_EQ(valuesOf(du.value()), (std::vector<double>{0, 1, 4}));
}

/// Machine code copies and adds rows in vectors, with a rest, whatever the table's dtype and order in memory.
TEST(Arrays, MovesRowsOfEveryLength) {
  Tensor indices{{4, 0, 4}, {2, 4, 1}};
  auto rows = [&](const Tensor &x) {
    Tensor turned = transpose(x, {0, 2, 1}), flat = reshape(x, {5, 2 * x.dim(2)});
    std::vector<Tensor> all{gather(x, indices), gather(turned, cast(indices, i32)), gather(flat, indices)};
    if (x.dtype() != boolean && x.dtype() != u8) { // whose sums would wrap
      Tensor of = reshape(indices, {6, 1}), updates = gather(turned, reshape(indices, {6}));
      all.push_back(scatter_nd_update(turned, of, updates, Scatter::add));
      all.push_back(scatter_nd(of, updates, turned.shape()));
      all.push_back(segment_sum(reshape(updates, {-1}), arange(updates.size()) % 7, 7));
    }
    return all;
  };
  for (DType dtype : {f64, f32, i64, i32, u8, boolean})
    for (int64_t width : {0, 1, 3, 16, 37, 67}) {
      SCOPED_TRACE(to_string(dtype) + ", " + std::to_string(width));
      Tensor x = reshape(cast(arange(10 * width) % (dtype == boolean ? 2 : 50), f64), {5, 2, width});
      auto compiled = wg::function("rows", [&](const Tensor &x) {
        std::vector<Tensor> all = rows(cast(x, dtype));
        for (Tensor &each : all)
          each = cast(each, f64);
        return all;
      });
      std::vector<Tensor> found = compiled(x), wanted = rows(x);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].shape(), wanted[i].shape());
        EXPECT_EQ(valuesOf(found[i]), valuesOf(wanted[i])) << i;
      }
    }
}

/// A cache that a loop fills row by row is written in its place.
TEST(Arrays, LoopsFillACache) {
  auto fill = wg::function("fill", [](const Tensor &x) {
    return fold(
        [](const Tensor &cache, const Tensor &i) {
          Tensor row = expand_dims(cast(square(i), f64) * ones({3}, f64), 0);
          return dynamic_update_slice(cache, row, stack({i, zeros_like(i)}));
        },
        x, arange(5, i64));
  });
  std::vector<double> wanted;
  for (int i = 0; i < 5; ++i)
    wanted.insert(wanted.end(), 3, i * i);
  EXPECT_EQ(valuesOf(fill(zeros({5, 3}, f64))), wanted);
}

TEST(Arrays, FindsWithAndWithoutABound) {
  Tensor x({3.0, -1.0, 4.0, -1.0, 5.0}), mask = greater(x, 0.0);
  Found all = boolean_mask(x, mask);
  EXPECT_EQ(valuesOf(all.values), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(all.count.item<int64_t>(), 3);
  auto bounded = wg::function("bounded", [](const Tensor &v) { return boolean_mask(v, greater(v, 0.0), 4); });
  Found found = bounded(x);
  EXPECT_EQ(valuesOf(found.values), (std::vector<double>{3, 4, 5, 0}));
  EXPECT_EQ(valuesOf(boolean_mask(x, mask, 2).values), (std::vector<double>{3, 4}));
  EXPECT_EQ(boolean_mask(x, mask, 2).count.item<int64_t>(), 3);
  EXPECT_EQ(valuesOf(boolean_mask(x, mask, 7).values), (std::vector<double>{3, 4, 5, 0, 0, 0, 0}));
  EXPECT_EQ(boolean_mask(zeros({0, 2}, f64), zeros({0}, boolean), 3).values.shape(), (Shape{3, 2}));
  EXPECT_EQ(valuesOf(nonzero(Tensor({{0.0, 2.0}, {3.0, 0.0}})).values), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(valuesOf(bincount(Tensor({1, 3, 1}))), (std::vector<double>{0, 2, 0, 1}));
}

TEST(Arrays, Errors) {
  Tensor x = counted({3, 4});
#define EXPECT_SAYS(text, ...) EXPECT_PRED2(says, messageOf([&] { (void)(__VA_ARGS__); }), text)
  EXPECT_SAYS("flatten: axis 1 comes after axis 0", flatten(x, 1, 0));
  EXPECT_SAYS("moveaxis: axis 0 is named twice", moveaxis(x, {0, 0}, {0, 1}));
  EXPECT_SAYS("tile: the count -1 is negative", tile(x, {-1}));
  EXPECT_SAYS("roll: 2 shifts for 1 axes", roll(x, {1, 2}, {0}));
  EXPECT_SAYS("whose image has 2 elements", pad(x, {{3, 0}, {0, 0}}, PadMode::reflect));
  EXPECT_SAYS("pad: widths take 2 and 2 places from axis 0", pad(x, {{-2, -2}, {0, 0}}));
  EXPECT_SAYS("diag: takes vectors", diag(Tensor(1.0)));
  EXPECT_SAYS("trace: takes matrices", trace(Tensor({1.0})));
  EXPECT_SAYS("a start for each axis", slice_update(x, ones({1, 1}, f64), {0}));
  EXPECT_SAYS("does not lie in axis 1", slice_update(x, ones({2, 3}, f64), {0, 2}));
  EXPECT_SAYS("the starts are i32[3]", dynamic_slice(x, Tensor({0, 0, 0}), {1, 1}));
  EXPECT_SAYS("is not within", dynamic_slice(x, Tensor({0, 0}), {4, 1}));
  EXPECT_SAYS("out of range", take(x, Tensor({4}), 1));
  EXPECT_SAYS("out of range", gather_nd(x, Tensor({{0, 4}})));
  EXPECT_SAYS("the indices are integers, got f64[1]", take(x, Tensor({1.0}), 0));
  EXPECT_SAYS("both have one rank", take_along_axis(x, Tensor({1}), 0));
  EXPECT_SAYS("out of range", segment_sum(x, Tensor({0, 1, 2}), 2));
  EXPECT_SAYS("the 5 largest along axis 1", top_k(x, 5));
  EXPECT_SAYS("sort: axis 2 of a tensor of rank 2", sort(x, 2));
  EXPECT_SAYS("the part 2", quantile(x, 2));
  EXPECT_SAYS("differences of order 5", diff(x, 5));
  EXPECT_SAYS("linear_recurrence", linear_recurrence(ones({2}, f64), x, 0));
  EXPECT_SAYS("the equation has 2 operands, and 1 are given", einsum("ij,jk->ik", {x}));
  EXPECT_SAYS("stands for axes of size 3 and 4", einsum("ii->i", {x}));
  EXPECT_SAYS("is in no operand", einsum("ij->ik", {x}));
  EXPECT_SAYS("the last axis has the size 3", cross(x, x));
  EXPECT_SAYS("kron", kron(ones({1, 1, 1, 1, 1}), x));
  auto unbounded = wg::function("unbounded", [](const Tensor &v) { return boolean_mask(v, greater(v, 0.0)).values; });
  EXPECT_SAYS("give a bound", unbounded(x));
  EXPECT_SAYS("ArraysTest.cpp", unbounded(x));
#undef EXPECT_SAYS
}

} // namespace
