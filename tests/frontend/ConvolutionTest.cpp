// Convolutions beside plain loops, eager and compiled; open sizes, lanes, padding, errors, memory.
#include "tests/frontend/Support.h"

#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <optional>

using namespace wg;
using tests::expectNear;
using tests::messageOf;
using tests::says;

namespace {

struct Case {
  Shape x, w;
  Conv2dOptions options;
};

/// Places before an axis, and the number of windows.
struct Plan {
  int64_t before, count;
};
Plan planOf(const Case &c, int axis) {
  size_t i = static_cast<size_t>(axis);
  int64_t size = c.x[i + 1], window = c.w[i], stride = c.options.strides[i],
          reach = (window - 1) * c.options.dilations[i] + 1;
  auto [before, after] = c.options.padding.kind == Padding::given ? c.options.padding.axes[i] : Padding::Pair(0, 0);
  if (c.options.padding.kind == Padding::same) {
    int64_t count = (size + stride - 1) / stride, both = std::max<int64_t>(0, (count - 1) * stride + reach - size);
    return {both / 2, count};
  }
  int64_t room = size + before + after - reach;
  return {before, room < 0 ? 0 : room / stride + 1};
}

/// Calls f(place in x, in w, in y) for each product of the convolution: seven loops.
template <class F> void forProducts(const Case &c, F f) {
  Plan rows = planOf(c, 0), columns = planOf(c, 1);
  int64_t groups = c.options.groups, own = c.w[2], made = c.w[3];
  for (int64_t n = 0; n < c.x[0]; ++n)
    for (int64_t p = 0; p < rows.count; ++p)
      for (int64_t q = 0; q < columns.count; ++q)
        for (int64_t o = 0; o < made; ++o)
          for (int64_t r = 0; r < c.w[0]; ++r)
            for (int64_t s = 0; s < c.w[1]; ++s) {
              int64_t h = p * c.options.strides[0] + r * c.options.dilations[0] - rows.before,
                      w = q * c.options.strides[1] + s * c.options.dilations[1] - columns.before;
              if (h < 0 || h >= c.x[1] || w < 0 || w >= c.x[2])
                continue;
              for (int64_t k = 0; k < own; ++k)
                f(((n * c.x[1] + h) * c.x[2] + w) * c.x[3] + o / (made / groups) * own + k,
                  ((r * c.w[1] + s) * own + k) * made + o, ((n * rows.count + p) * columns.count + q) * made + o);
            }
}

Tensor numbers(const Shape &shape, double phase, DType dtype) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return cast(reshape(sin(cast(arange(count), f64) * 1.7 + phase), shape), dtype);
}

std::string nameOf(const Case &c) {
  std::string text = runtime::toString(c.x) + " " + runtime::toString(c.w) + " by";
  for (int axis : {0, 1}) {
    size_t i = static_cast<size_t>(axis);
    text += " " + std::to_string(c.options.strides[i]) + "," + std::to_string(c.options.dilations[i]) + "," +
            std::to_string(planOf(c, axis).before);
  }
  return text + " groups " + std::to_string(c.options.groups);
}

/// A sum of products as plain loops make it: of the terms, of their absolute values, and how many they are.
struct Sums {
  explicit Sums(const Tensor &like) : shape(like.shape()), value(count()), absolute(count()), terms(count()) {}
  void add(int64_t place, double term) {
    auto i = static_cast<size_t>(place);
    value[i] += term, absolute[i] += std::abs(term), terms[i] += 1;
  }
  size_t count() const { return static_cast<size_t>(shape.numElements()); }
  /// As near as sums in another order are: the roundings of n terms grow as the root of n.
  void expectIn(const Tensor &found) const {
    ASSERT_EQ(found.shape(), shape);
    double ulp = found.dtype() == f64 ? 0x1p-53 : 0x1p-24;
    std::vector<double> numbers = found.to_vector<double>();
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_LE(std::abs(numbers[i] - value[i]), (std::sqrt(terms[i]) + 16) * ulp * absolute[i]) << "element " << i;
  }
  Shape shape;
  std::vector<double> value, absolute, terms;
};

/// y = conv2d(x, w), and the gradients of the sum of y * ct by x and by w; without a ct, y is it.
std::vector<Tensor> withGradients(const Conv2dOptions &options, const Tensor &x, const Tensor &w,
                                  std::optional<Tensor> ct = {}) {
  GradientTape tape;
  tape.watch(x);
  tape.watch(w);
  Tensor y = conv2d(x, w, options);
  auto [dx, dw] = tape.gradient(y, x, w, GradientOptions{.output_gradients = ct.value_or(y)});
  return {y, dx.value(), dw.value()};
}

/// These as plain loops make them.
void checkCase(const Case &c, DType dtype) {
  SCOPED_TRACE(nameOf(c) + " " + std::string(runtime::nameOf(dtype)));
  Shape shape{c.x[0], planOf(c, 0).count, planOf(c, 1).count, c.w[3]};
  Tensor x = numbers(c.x, 0.3, dtype), w = numbers(c.w, 1.1, dtype), ct = numbers(shape, 2.3, dtype);
  std::vector<double> a = x.to_vector<double>(), b = w.to_vector<double>(), g = ct.to_vector<double>();
  Sums y(ct), dx(x), dw(w);
  forProducts(c, [&](int64_t i, int64_t j, int64_t k) {
    double u = a[static_cast<size_t>(i)], v = b[static_cast<size_t>(j)], z = g[static_cast<size_t>(k)];
    y.add(k, u * v), dx.add(i, z * v), dw.add(j, z * u);
  });
  auto all = [&](const Tensor &x, const Tensor &w, const Tensor &ct) { return withGradients(c.options, x, w, ct); };
  auto compiled = wg::function("all", all);
  for (const std::vector<Tensor> &results : {all(x, w, ct), compiled(x, w, ct)}) {
    y.expectIn(results[0]);
    dx.expectIn(results[1]);
    dw.expectIn(results[2]);
  }
}

TEST(Convolution, IsItsSevenLoops) {
  int checked = 0;
  for (int64_t stride : {1, 2, 3})
    for (int64_t dilation : {1, 2})
      for (int64_t groups : {1, 2, 4})
        for (const Padding &padding : {Padding(Padding::valid), Padding(Padding::same), Padding({2, 0}, {1, 3})}) {
          Case c{{2, 7, 9, 4},
                 {3, 2, 4 / groups, 8},
                 {.strides = {stride, 2}, .dilations = {1, dilation}, .groups = groups, .padding = padding}};
          checkCase(c, ++checked % 2 == 0 ? f64 : f32);
          if (HasFailure())
            return;
        }
}

/// Tiles of several heights, panels with a rest, edges of many tiles, phases that are written and that are not.
TEST(Convolution, IsItsSevenLoopsAtAwkwardSizes) {
  Padding same = Padding::same;
  for (const Case &c : {Case{{1, 3, 60, 3}, {1, 3, 3, 37}, {.padding = same}},
                        Case{{1, 2, 41, 2}, {2, 41, 2, 5}, {.padding = same}},
                        Case{{1, 1, 100, 1}, {1, 91, 1, 3}, {.padding = same}},
                        Case{{1, 4, 29, 2}, {2, 3, 2, 3}, {.strides = {1, 5}, .padding = same}},
                        Case{{1, 4, 50, 2}, {2, 3, 2, 3}, {.strides = {1, 4}, .dilations = {1, 3}, .padding = same}},
                        Case{{2, 6, 5, 3}, {1, 1, 3, 4}, {}},
                        Case{{2, 6, 5, 3}, {1, 1, 3, 4}, {.strides = {2, 3}}},
                        Case{{1, 6, 30, 40}, {3, 3, 1, 40}, {.groups = 40, .padding = same}},
                        Case{{1, 6, 13, 6}, {3, 5, 1, 18}, {.groups = 6, .padding = same}},
                        Case{{3, 1, 1, 5}, {3, 3, 5, 2}, {.padding = same}},
                        Case{{1, 2, 2, 2}, {5, 5, 2, 3}, {.padding = {{6, 6}, {4, 7}}}},
                        Case{{1, 3, 3, 2}, {5, 5, 2, 3}, {}},
                        Case{{1, 3, 4, 2}, {2, 2, 2, 3}, {.strides = {9, 9}, .padding = {{20, 20}, {20, 20}}}},
                        Case{{0, 5, 5, 2}, {3, 3, 2, 3}, {}},
                        Case{{2, 0, 5, 2}, {3, 3, 2, 3}, {.padding = {{2, 2}, {0, 0}}}},
                        Case{{2, 5, 5, 0}, {3, 3, 0, 3}, {}},
                        Case{{2, 5, 5, 2}, {3, 3, 2, 0}, {}},
                        Case{{1, 33, 33, 1}, {7, 7, 1, 1}, {.strides = {2, 2}, .padding = same}},
                        Case{{9, 8, 8, 24}, {3, 3, 24, 48}, {.strides = {2, 2}, .padding = same}},
                        Case{{1, 5, 64, 80}, {3, 3, 80, 96}, {.padding = same}}})
    for (DType dtype : {f64, f32}) {
      checkCase(c, dtype);
      if (HasFailure())
        return;
    }
}

/// More terms than one accumulator takes.
TEST(Convolution, LongSumsAreOfBlocks) {
  checkCase({{7, 24, 25, 3}, {2, 3, 3, 4}, {.padding = Padding::same}}, f64);
  checkCase({{1, 3, 3, 700}, {3, 3, 700, 5}, {.padding = Padding::same}}, f32);
  checkCase({{1, 1, 5000, 1}, {1, 4000, 1, 1}, {}}, f64);
}

/// Panels are shared, or what is outside of the tiles; each piece copies the panels that it needs.
TEST(Convolution, ThreadsChangeNoBit) {
  for (const Case &c : {Case{{2, 28, 28, 64}, {3, 3, 64, 96}, {.padding = Padding::same}},
                        Case{{1, 14, 14, 256}, {3, 3, 256, 256}, {.strides = {2, 1}, .padding = Padding::same}},
                        Case{{4, 40, 40, 48}, {3, 3, 1, 48}, {.groups = 48, .padding = Padding::same}}}) {
    SCOPED_TRACE(nameOf(c));
    auto all = [&](const Tensor &x, const Tensor &w) { return withGradients(c.options, x, w); };
    auto compiled = wg::function("all", all);
    Tensor x = numbers(c.x, 0.3, f32), w = numbers(c.w, 1.1, f32);
    std::vector<std::vector<Tensor>> results;
    for (int threads : {1, 2, 5}) {
      set_num_threads(threads);
      results.push_back(all(x, w));
      results.push_back(compiled(x, w));
    }
    set_num_threads(1);
    for (size_t i = 2; i < results.size(); ++i)
      for (size_t k = 0; k < 3; ++k)
        EXPECT_TRUE(reduce_all(results[i][k] == results[i % 2][k]).item<bool>()) << "run " << i << ", result " << k;
  }
}

TEST(Convolution, WhatFollowsItIsTheSameKernel) {
  Tensor x = numbers({2, 8, 8, 5}, 0.1, f32), w = numbers({3, 3, 5, 20}, 0.7, f32), bias = numbers({20}, 0.2, f32);
  auto layer = [](const Tensor &x, const Tensor &w, const Tensor &bias) {
    return relu(conv2d(x, w, {.padding = Padding::same}) + bias);
  };
  auto compiled = wg::function("layer", layer);
  expectNear(compiled(x, w, bias), layer(x, w, bias), 1e-5);
  std::ostringstream report;
  report << compiled.report();
  EXPECT_TRUE(says(report.str(), "contract, ")) << report.str();
  EXPECT_TRUE(says(report.str(), "relu")) << report.str();
}

TEST(Convolution, SecondDerivativesAreThoseOfItsProducts) {
  Tensor x = numbers({1, 4, 5, 2}, 0.4, f64), w = numbers({2, 3, 1, 4}, 0.9, f64);
  auto loss = [](const Tensor &x, const Tensor &w) {
    Tensor y = conv2d(x, w, {.strides = {2, 1}, .dilations = {1, 2}, .groups = 2, .padding = {{1, 0}, {2, 1}}});
    return reduce_sum(y * y * y);
  };
  GradientCheck check = check_gradients(loss, std::tuple(x, w));
  EXPECT_TRUE(check.passed) << check.report;
  auto ofX = [&](const Tensor &x) { return loss(x, w); };
  Tensor h = reshape(hessian(ofX)(x), {40, 40});
  expectNear(h, transpose(h), 1e-10);
  auto compiled = wg::function("h", [&](const Tensor &x) { return hessian(ofX)(x); });
  expectNear(reshape(compiled(x), {40, 40}), h, 1e-10);
  // One column by differences.
  Tensor v = numbers({1, 4, 5, 2}, 1.9, f64);
  auto gradient = [&](const Tensor &at) {
    GradientTape tape;
    tape.watch(at);
    return tape.gradient(ofX(at), at).value();
  };
  Tensor along = (gradient(x + v * 1e-5) - gradient(x - v * 1e-5)) * (1 / 2e-5);
  expectNear(matmul(h, reshape(v, {40})), reshape(along, {40}), 1e-6);
}

TEST(Convolution, LanesAreConvolutionsOfTheirOwn) {
  Tensor xs = numbers({3, 2, 5, 6, 2}, 0.4, f64), ws = numbers({3, 3, 2, 2, 3}, 0.9, f64);
  Conv2dOptions options{.strides = {2, 1}, .padding = Padding::same};
  auto f = [&](const Tensor &x, const Tensor &w) { return conv2d(x, w, options); };
  std::vector<Tensor> both, ofX, ofW;
  for (int64_t i = 0; i < 3; ++i) {
    both.push_back(f(index(xs, i), index(ws, i)));
    ofX.push_back(f(index(xs, i), index(ws, 0)));
    ofW.push_back(f(index(xs, 0), index(ws, i)));
  }
  expectNear(vmap(f)(xs, ws), stack(both));
  expectNear(vmap(f, {.in_axes = {0, unmapped}})(xs, index(ws, 0)), stack(ofX));
  expectNear(vmap(f, {.in_axes = {unmapped, 0}})(index(xs, 0), ws), stack(ofW));
  auto compiled = wg::function("lanes", [&](const Tensor &x, const Tensor &w) { return vmap(f)(x, w); });
  expectNear(compiled(xs, ws), stack(both));
}

TEST(Convolution, SizesMayBeOpen) {
  struct Open {
    Conv2dOptions options;
    TensorSpec w;
  };
  for (const Open &each : {Open{{.padding = Padding::same}, {f64, {3, 2, 2, 4}}},
                           Open{{.strides = {2, 3}}, {f64, {dynamic, dynamic, dynamic, dynamic}}},
                           Open{{.strides = {2, 1}, .dilations = {1, 2}, .groups = 2, .padding = {{1, 2}, {0, 1}}},
                                {f64, {dynamic, 2, dynamic, dynamic}}},
                           Open{{}, {f64, {1, 1, 2, dynamic}}}}) {
    auto all = [&](const Tensor &x, const Tensor &w) {
      GradientTape tape;
      tape.watch(x);
      tape.watch(w);
      Tensor y = conv2d(x, w, each.options);
      auto [dx, dw] = tape.gradient(reduce_sum(y * y), x, w);
      return std::vector<Tensor>{y, dx.value(), dw.value()};
    };
    for (bool interpret : {true, false}) {
      auto open =
          wg::function("open", all, {.interpret = interpret})
              .trace(TensorSpec{f64, {dynamic, dynamic, dynamic, each.options.groups == 1 ? 2 : dynamic}}, each.w);
      for (const Shape &shape : {Shape{2, 7, 8, 2}, Shape{1, 3, 5, 2}, Shape{3, 1, 1, 2}}) {
        Shape window{each.w.shape[0] == 1 ? 1 : 3, each.w.shape[1] == 1 ? 1 : 2, 2 / each.options.groups, 4};
        Tensor x = numbers(shape, 0.4, f64), w = numbers(window, 0.9, f64);
        std::vector<Tensor> expected = all(x, w), found = open(x, w);
        for (size_t i = 0; i < 3; ++i)
          expectNear(found[i], expected[i]);
      }
    }
  }
}

/// docs/numbers.md: what lies outside of the image is not multiplied.
TEST(Convolution, AnInfiniteWeightBesidePaddingMakesNoNan) {
  double inf = std::numeric_limits<double>::infinity();
  Tensor x = ones({1, 2, 2, 1}, f64);
  Tensor w = Tensor::from(std::vector<double>{inf, inf, inf, inf, 1, inf, inf, inf, inf}, {3, 3, 1, 1});
  auto f = [](const Tensor &x, const Tensor &w) {
    return conv2d(x, w, {.dilations = {3, 3}, .padding = Padding::same});
  };
  std::vector<double> ones(4, 1.0);
  EXPECT_EQ(f(x, w).to_vector<double>(), ones);
  EXPECT_EQ(wg::function("f", f)(x, w).to_vector<double>(), ones);
}

TEST(Convolution, ErrorsNameTheShapes) {
  Tensor x = ones({1, 5, 6, 4}), w = ones({3, 3, 4, 8});
  auto said = [&](const Tensor &x, const Tensor &w, const Conv2dOptions &options = {}) {
    return messageOf([&] { (void)conv2d(x, w, options); });
  };
  EXPECT_TRUE(
      says(said(x, ones({3, 3, 3, 8})), "conv2d: x has 4 channels and w takes 3: x is f32[1,5,6,4], w is f32[3,3,3,8]"))
      << said(x, ones({3, 3, 3, 8}));
  EXPECT_TRUE(says(said(x, ones({5, 1, 4, 8}), {.dilations = {2147483647, 1}, .padding = Padding::same}),
                   "conv2d: the padding `same` of the rows would have 8589934588 places"));
  EXPECT_TRUE(says(said(x, w, {.groups = 2}), "x has 4 channels and w takes 4 in each of 2 groups"));
  EXPECT_TRUE(says(said(x, ones({3, 3, 1, 6}), {.groups = 4}), "w makes 6 channels, which are not 4 equal groups"));
  EXPECT_TRUE(says(said(ones({5, 6, 4}), w), "takes x[N, H, W, C] and w[R, S, C / groups, O]: x is f32[5,6,4]"));
  EXPECT_TRUE(says(said(x, cast(w, f64)), "dtypes differ"));
  EXPECT_TRUE(says(said(x, w, {.strides = {0, 1}}), "a stride is 0"));
  EXPECT_TRUE(says(said(x, w, {.dilations = {1, -2}}), "a dilation is -2"));
  EXPECT_TRUE(says(said(x, w, {.groups = 0}), "the number of groups is 0"));
  EXPECT_TRUE(says(said(x, w, {.padding = {{0, -1}, {0, 0}}}), "the padding has -1 places"));
  EXPECT_TRUE(says(said(x, ones({0, 3, 4, 8})), "w has no places"));
  EXPECT_TRUE(says(said(cast(x, i32), cast(w, i32)), "takes a float")) << said(cast(x, i32), cast(w, i32));
  EXPECT_TRUE(says(messageOf([&] {
                     wg::function("f", [&](const Tensor &x) {
                       return conv2d(x, w, {.strides = {2, 2}, .padding = Padding::same});
                     }).trace(TensorSpec{f32, {1, dynamic, 6, 4}});
                   }),
                   "the padding `same` of the rows follows from sizes that are open"));
}

/// The largest that this process has been, in bytes.
int64_t peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

/// The windows of 7 by 7 places would be 49 times the image: 411 MB.
TEST(Convolution, NothingIsAsLargeAsTheWindows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: the sanitizer's memory is counted too";
#endif
  Conv2dOptions options{.padding = Padding::same};
  auto all = [&](const Tensor &x, const Tensor &w) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    Tensor y = conv2d(x, w, options);
    auto [dx, dw] = tape.gradient(reduce_sum(y * y), x, w);
    return std::vector<Tensor>{y, dx.value(), dw.value()};
  };
  auto compiled = wg::function("all", all);
  Tensor w = numbers({7, 7, 2, 2}, 0.9, f32), small = numbers({1, 16, 16, 2}, 0.4, f32), x = ones({2, 512, 1024, 2});
  (void)all(small, w);
  (void)compiled(small, w);
  int64_t before = peak();
  (void)all(x, w);
  (void)compiled(x, w);
  EXPECT_LT(peak() - before, int64_t(14 * 8) << 20) << "x has 8 MiB, as y and its cotangent have";
}

} // namespace
