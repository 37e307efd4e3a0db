// Public operations: broadcasting, literals, axes, and the composites against their formulas.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <thread>

using namespace wg;
using Floats = std::vector<double>;

static std::string shown(const Tensor &tensor) {
  std::ostringstream text;
  text << tensor;
  return text.str();
}

// D-19
TEST(Tensor, PrintsValueShapeAndDtype) {
  EXPECT_EQ(shown(Tensor(12.0f)), "Tensor(12.0, shape=(), dtype=float32)");
  EXPECT_EQ(shown(Tensor{{1, 2}, {3, 4}}), "Tensor([[1, 2], [3, 4]], shape=(2, 2), dtype=int32)");
  EXPECT_EQ(shown(Tensor()), "Tensor(undefined)");
  EXPECT_EQ(shown(Tensor{true}), "Tensor([true], shape=(1,), dtype=bool)");
}

TEST(Tensor, ConvertsOnTheWayOut) {
  Tensor x{1.5f, -2.5f};
  EXPECT_EQ(x.to_vector<double>(), (Floats{1.5, -2.5}));
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(x.data<float>()[1], -2.5f);
  Tensor cube{{{1.0, 2.0}}, {{3.0, 4.0}}};
  EXPECT_EQ(cube.shape(), (Shape{2, 1, 2}));
}

template <class T>
concept SeenAs = requires(const Tensor &x) { x.data<T>(); };
static_assert(SeenAs<float> && SeenAs<long> && SeenAs<long long> && SeenAs<uint8_t> && SeenAs<bool>);
static_assert(!SeenAs<short> && !SeenAs<unsigned> && !SeenAs<signed char> && !SeenAs<unsigned long> &&
              !SeenAs<long double>);

// Types that stand for no dtype are never read or written as one.
TEST(Tensor, NarrowUnsignedAndLongNumbersConvertByValue) {
  EXPECT_EQ(shown(Tensor(short(-5))), "Tensor(-5, shape=(), dtype=int32)");
  EXPECT_EQ(shown(Tensor{short(1), short(2)}), "Tensor([1, 2], shape=(2,), dtype=int32)");
  EXPECT_EQ(shown(Tensor{{int8_t(-1), int8_t(2)}}), "Tensor([[-1, 2]], shape=(1, 2), dtype=int32)");
  EXPECT_EQ(shown(Tensor::from(std::vector<int16_t>{-3, 300})), "Tensor([-3, 300], shape=(2,), dtype=int32)");
  EXPECT_EQ(shown(Tensor::from(std::vector<uint16_t>{65535})), "Tensor([65535], shape=(1,), dtype=int32)");
  EXPECT_EQ(shown(Tensor(4000000000u)), "Tensor(4000000000, shape=(), dtype=int64)");
  EXPECT_EQ(shown(Tensor(uint64_t(7))), "Tensor(7, shape=(), dtype=int64)");
  EXPECT_EQ(shown(Tensor(uint8_t(200))), "Tensor(200, shape=(), dtype=uint8)");
  EXPECT_EQ(shown(Tensor(1.5L)), "Tensor(1.5, shape=(), dtype=float64)");
  EXPECT_EQ((Tensor{-1, 70000}).to_vector<short>(), (std::vector<short>{-1, 4464}));
  EXPECT_EQ((Tensor{1, -1}).to_vector<unsigned>(), (std::vector<unsigned>{1, 4294967295u}));
  EXPECT_EQ((Tensor{1.5, -2.5}).to_vector<long double>(), (std::vector<long double>{1.5L, -2.5L}));
  EXPECT_EQ(Tensor(-5).item<short>(), -5);
  EXPECT_EQ((Tensor(1) + short(-3)).item<int8_t>(), -2);
  EXPECT_EQ((Tensor(1.0) + 0.5L).item<double>(), 1.5);
}

// docs/numbers.md: cast float -> integer.
TEST(Tensor, FloatsBecomeIntegersAsCastMakesThem) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Tensor x{1e10, -1e10, nan, -1.9};
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{INT32_MAX, INT32_MIN, 0, -1}));
  EXPECT_EQ((Tensor{inf, -inf}).to_vector<int64_t>(), (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(full({}, 1.7, i32).item<int32_t>(), 1);
  EXPECT_EQ(full({2}, -1e30, i32).to_vector<int32_t>(), (std::vector<int32_t>{INT32_MIN, INT32_MIN}));
  EXPECT_EQ(full({}, 300.0, u8).item<int32_t>(), 255);
  EXPECT_EQ(full({}, nan, i64).item<int64_t>(), 0);
  EXPECT_EQ(full({}, 0.5, boolean).item<bool>(), true);
  EXPECT_EQ(nn::constant(2.9)({2}, i64).to_vector<int64_t>(), (std::vector<int64_t>{2, 2}));
}

TEST(Ops, OperandsBroadcast) {
  Tensor m{{1.0, 2.0}, {3.0, 4.0}}, row{10.0, 20.0}, column{{100.0}, {200.0}};
  EXPECT_EQ((m + row + column).to_vector<double>(), (Floats{111, 122, 213, 224}));
  EXPECT_EQ((row + column).shape(), (Shape{2, 2}));
}

TEST(Ops, LiteralsTakeTheTensorsDtype) {
  EXPECT_EQ((Tensor(1.0f) + 2.0).dtype(), f32);
  EXPECT_EQ((2 * Tensor(1.0)).dtype(), f64);
  EXPECT_EQ((Tensor(int64_t(7)) % 4).item<int64_t>(), 3);
  EXPECT_EQ((Tensor{1.0f, 3.0f} > 2).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1}));
}

TEST(Ops, ReductionsTakeAxesFromTheEnd) {
  Tensor x = cast(reshape(arange(24), {2, 3, 4}), f64);
  EXPECT_EQ(reduce_sum(x, {-1, 0}).to_vector<double>(), (Floats{60, 92, 124}));
  EXPECT_EQ(reduce_max(x, 1, true).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(mean(x).item<double>(), 11.5);
  EXPECT_EQ(argmax(x, -1).to_vector<int64_t>(), (std::vector<int64_t>(6, 3)));
  EXPECT_TRUE(std::isnan(mean(zeros({0}, f64)).item<double>()));
  EXPECT_NEAR(variance(Tensor{1.0, 2.0, 3.0, 4.0}).item<double>(), 1.25, 1e-15);
}

TEST(Ops, ProductsOfEveryKind) {
  Tensor a{{1.0, 2.0}, {3.0, 4.0}}, b{{5.0, 6.0}, {7.0, 8.0}};
  EXPECT_EQ(matmul(a, b).to_vector<double>(), (Floats{19, 22, 43, 50}));
  EXPECT_EQ(matmul(a, b, {.transpose_a = true}).to_vector<double>(), (Floats{26, 30, 38, 44}));
  EXPECT_EQ(matmul(a, b, {.transpose_b = true}).to_vector<double>(), (Floats{17, 23, 39, 53}));
  EXPECT_EQ(matmul(a, Tensor{1.0, 1.0}).to_vector<double>(), (Floats{3, 7}));
  EXPECT_EQ(matmul(Tensor{1.0, 1.0}, a).to_vector<double>(), (Floats{4, 6}));
  EXPECT_EQ(matmul(stack({a, b}), b).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(matmul(expand_dims(a, 0), stack({a, b, a})).shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(einsum("ij,jk->ki", a, b).to_vector<double>(), (Floats{19, 43, 22, 50}));
  EXPECT_EQ(einsum("ij,k", a, Tensor{1.0, 2.0}).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(einsum("ij,k->k", a, Tensor{1.0, 2.0}).to_vector<double>(), (Floats{10, 20}));
  EXPECT_EQ(tensordot(a, b, 1).to_vector<double>(), (Floats{19, 22, 43, 50}));
  EXPECT_EQ(tensordot(a, b).item<double>(), 70.0);
  EXPECT_EQ(outer(Tensor{1.0, 2.0}, Tensor{3.0, 4.0, 5.0}).shape(), (Shape{2, 3}));
  EXPECT_EQ(dot(Tensor{1.0, 2.0}, Tensor{3.0, 4.0}).item<double>(), 11.0);
}

TEST(Ops, ShapesAndPlaces) {
  Tensor x = reshape(arange(12), {3, -1});
  EXPECT_EQ(x.shape(), (Shape{3, 4}));
  EXPECT_EQ(slice(x, {1, -2}, {3, 100}).to_vector<int64_t>(), (std::vector<int64_t>{6, 7, 10, 11}));
  EXPECT_EQ(slice(x, {0}, {3}, {2}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(index(x, -1).to_vector<int64_t>(), (std::vector<int64_t>{8, 9, 10, 11}));
  EXPECT_EQ(index(x, 1, 1).to_vector<int64_t>(), (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(transpose(x).shape(), (Shape{4, 3}));
  EXPECT_EQ(concat({x, x}, -1).shape(), (Shape{3, 8}));
  EXPECT_EQ(stack({x, x}, 1).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(split(x, 2, 1)[1].to_vector<int64_t>(), (std::vector<int64_t>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(squeeze(expand_dims(x, -1)).shape(), (Shape{3, 4}));
  EXPECT_EQ(pad(Tensor{1.0, 2.0}, {{1, 2}}, 7).to_vector<double>(), (Floats{7, 1, 2, 7, 7}));
  EXPECT_EQ(one_hot(Tensor{1, 5}, 3, f64).to_vector<double>(), (Floats{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(eye(2, {}, f64).to_vector<double>(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(linspace(0, 1, 3, f64).to_vector<double>(), (Floats{0, 0.5, 1}));
  EXPECT_EQ(arange(1, 8, 3).to_vector<int64_t>(), (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(broadcast_to(Tensor{1.0, 2.0}, {2, 2}).to_vector<double>(), (Floats{1, 2, 1, 2}));
}

// docs/numbers.md: what the composites do at their edges.
TEST(Ops, CompositesAreStable) {
  double inf = std::numeric_limits<double>::infinity();
  Tensor big{1000.0, 1000.0}, none{-inf, -inf};
  EXPECT_NEAR(logsumexp(big).item<double>(), 1000 + std::log(2.0), 1e-12);
  EXPECT_EQ(logsumexp(none).item<double>(), -inf);
  EXPECT_EQ(softmax(big).to_vector<double>(), (Floats{0.5, 0.5}));
  EXPECT_TRUE(std::isnan(softmax(none).to_vector<double>()[0]));
  EXPECT_EQ(softplus(Tensor(1000.0)).item<double>(), 1000.0);
  EXPECT_NEAR(gelu(Tensor(1.0)).item<double>(), 0.8413447460685429, 1e-15);
  auto slope = [](auto f, double at) {
    return grad([&](const Tensor &x) { return f(x); })(Tensor(at)).template item<double>();
  };
  EXPECT_EQ(slope([](const Tensor &x) { return clip(x, 0.0, 1.0); }, 1.0), 1.0);
  EXPECT_EQ(slope([](const Tensor &x) { return clip(x, 0.0, 1.0); }, 1.5), 0.0);
  EXPECT_EQ(slope([](const Tensor &x) { return norm(x * Tensor{1.0, 1.0}); }, 0.0), 0.0);
  EXPECT_EQ(slope([](const Tensor &x) { return softplus(x); }, 0.0), 0.5);
  EXPECT_EQ(grad([](const Tensor &x) { return logsumexp(x); })(none).value().to_vector<double>(), (Floats{0, 0}));
  // The safe form of the docstring.
  EXPECT_EQ(slope([](const Tensor &x) { return where(x > 0, log(where(x > 0, x, 1)), 0); }, -1.0), 0.0);
}

// docs/numbers.md: a NaN bound counts, of every kind, eager and traced.
TEST(Ops, ClipByNanIsNan) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor x{-1.0, 0.5, 2.0};
  auto nans = [](const Tensor &y) { return reduce_all(is_nan(y)).item<bool>(); };
  EXPECT_TRUE(nans(clip(x, nan, 1.0)));
  EXPECT_TRUE(nans(clip(x, 0.0, nan)));
  EXPECT_TRUE(nans(clip(x, Tensor(nan), Tensor(1.0))));
  EXPECT_TRUE(nans(clip(x, Tensor(0.0), Tensor(nan))));
  EXPECT_TRUE(nans(clip(Tensor(nan), 0.0, 1.0)));
  auto traced = wg::function("clip", [](const Tensor &x, const Tensor &high) { return clip(x, 0.0, high); });
  EXPECT_TRUE(nans(traced(x, Tensor(nan))));
  EXPECT_EQ(traced(x, Tensor(1.0)).to_vector<double>(), (Floats{0, 0.5, 1}));
  EXPECT_EQ(clip(x, 3.0, 1.0).to_vector<double>(), (Floats{1, 1, 1})); // min(max(x, low), high)
  EXPECT_EQ(clip(Tensor{-7, 0, 7}, -5, 5).to_vector<int32_t>(), (std::vector<int32_t>{-5, 0, 5}));
}

TEST(Ops, TheSmallestAndTheFinite) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(argmin(Tensor{{3.0, 1.0, 1.0}, {-1.0, -inf, 0.0}}).to_vector<int64_t>(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(argmin(Tensor{{3.0, 1.0}, {-1.0, 2.0}}, 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(argmin(Tensor{1.0, nan, -inf, nan}).item<int64_t>(), 1);
  EXPECT_EQ(argmin(Tensor{INT32_MAX, 0, INT32_MIN, -1}).item<int64_t>(), 2);
  EXPECT_EQ(argmin(Tensor{uint8_t(255), uint8_t(0), uint8_t(1)}).item<int64_t>(), 1);
  Tensor x{1.0, inf, -inf, nan};
  EXPECT_EQ(is_inf(x).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(is_finite(x).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 0, 0}));
  auto traced = wg::function("all", [](const Tensor &x) { return std::tuple(argmin(x), is_inf(x), is_finite(x)); });
  auto [place, infinite, finite] = traced(x);
  EXPECT_EQ(place.item<int64_t>(), 3);
  EXPECT_EQ(infinite.to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(finite.to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST(Ops, SmallLabelsMakeOneHotRows) {
  EXPECT_EQ(one_hot(Tensor{uint8_t(1), uint8_t(200)}, 2, f64).to_vector<double>(), (Floats{0, 1, 0, 0}));
}

TEST(Ops, PlacesFarOutsideOverflowNothing) {
  int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(slice(arange(5), {1}, {5}, {most}).to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(slice(arange(5), {least}, {most}).size(), 5);
  EXPECT_EQ(arange(least, most, most).to_vector<int64_t>(), (std::vector<int64_t>{least, -1, most - 1}));
  EXPECT_EQ(arange(10, 0, -5, u8).to_vector<int32_t>(), (std::vector<int32_t>{10, 5}));
}

TEST(Ops, CrossEntropyTakesLabelsOrDistributions) {
  Tensor logits{{2.0, 1.0, -1.0}, {0.0, 3.0, 0.5}}, labels{0, 2};
  Tensor sparse = softmax_cross_entropy(logits, labels), dense = softmax_cross_entropy(logits, one_hot(labels, 3, f64));
  Tensor direct = -reduce_sum(one_hot(labels, 3, f64) * log_softmax(logits), 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(sparse.to_vector<double>()[i], direct.to_vector<double>()[i], 1e-14);
    EXPECT_NEAR(dense.to_vector<double>()[i], direct.to_vector<double>()[i], 1e-14);
  }
}

TEST(Random, AKeyIsAFunction) {
  Tensor a = random_uniform(random::key(1), {1000}), b = random_uniform(random::key(1), {1000}),
         c = random_uniform(random::key(2), {1000});
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  EXPECT_NE(a.to_vector<float>(), c.to_vector<float>());
  Tensor n = random_normal(random::key(1), {20000}, 2, 3, f64);
  EXPECT_NEAR(mean(n).item<double>(), 2, 0.1);
  EXPECT_NEAR(variance(n).item<double>(), 9, 0.3);
  Generator generator(5);
  EXPECT_NE(generator.uniform({4}).to_vector<float>(), generator.uniform({4}).to_vector<float>());
  auto keys = random::split(random::key(1), 3);
  EXPECT_NE(keys[0].to_vector<int64_t>(), keys[1].to_vector<int64_t>());
}

TEST(Random, ThreadsNeverDrawTheSameKey) {
  Generator generator(5);
  std::vector<std::vector<int64_t>> drawn(4);
  std::vector<std::thread> threads;
  for (auto &keys : drawn)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        keys.push_back(generator.next().to_vector<int64_t>()[1]);
    });
  for (std::thread &thread : threads)
    thread.join();
  std::set<int64_t> all;
  for (const auto &keys : drawn)
    all.insert(keys.begin(), keys.end());
  EXPECT_EQ(all.size(), 8000u);
}

/// Threads share rows, groups of rows side by side, columns: with rests.
TEST(Ops, ThreadsChangeNoBitOfSums) {
  struct Sum {
    Shape shape;
    std::vector<int64_t> axes;
  };
  for (const Sum &sum : {Sum{{2000, 203, 7}, {0, 2}}, Sum{{200, 203, 45}, {0, 2}}, Sum{{30, 70, 19, 13}, {1, 3}},
                         Sum{{3001, 130}, {1}}, Sum{{3001, 530}, {0}}, Sum{{200003, 3}, {1}}, Sum{{5, 100003}, {0}}}) {
    SCOPED_TRACE(runtime::toString(sum.shape));
    Tensor x = reshape(sin(arange(0, sum.shape.numElements(), 1, f32) * 1.7f), sum.shape);
    auto f = wg::function("f", [&](const Tensor &x) {
      Tensor mean = wg::mean(x, sum.axes, true);
      return mean + tanh(wg::mean(square(x - mean), sum.axes, true));
    });
    std::optional<Tensor> first;
    for (int threads : {1, 2, 5}) {
      set_num_threads(threads);
      Tensor y = f(x);
      if (!first)
        first = y;
      EXPECT_TRUE(reduce_all(y == *first).item<bool>()) << threads << " threads";
      Tensor mean = wg::mean(x, sum.axes, true);
      EXPECT_LE(reduce_max(abs(y - mean - tanh(wg::mean(square(x - mean), sum.axes, true)))).item<float>(), 1e-6f);
    }
    set_num_threads(1);
  }
}

/// Results of more than 8 MiB: panels are shared, or tiles of rows, each of which is updated once.
TEST(Ops, ThreadsChangeNothingOfLargeProducts) {
  auto numbers = [](const Shape &shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return reshape(sin(arange(0, count, 1, f32) * 1.7f), shape);
  };
  for (const auto &[equation, a, b] : {std::tuple<std::string, Shape, Shape>("km,kn->mn", {3, 7001}, {3, 301}),
                                       {"km,kn->mn", {2, 28203}, {2, 301}},
                                       {"jkm,kn->mjn", {61, 4, 130}, {4, 307}},
                                       {"jkm,kn->mjn", {2000, 4, 5}, {4, 307}},
                                       {"jkm,kn->mjn", {13, 4, 2000}, {4, 307}},
                                       {"iklmj,kn->jlimn", {5, 3, 6, 6, 6}, {3, 2503}},
                                       {"km,kn->mn", {40, 11003}, {40, 203}},
                                       {"mk,kn->mn", {17003, 64}, {64, 127}},
                                       {"mk,kn->mn", {577, 40}, {40, 1031}},
                                       {"km,kn->mn", {33, 301}, {33, 8003}},
                                       {"km,kn->mn", {10, 5}, {10, 400003}},
                                       {"jkm,kn->mjn", {3, 17, 101}, {17, 8003}},
                                       {"ikm,ikn->imn", {5, 4, 1500}, {5, 4, 307}},
                                       {"ikm,ikn->imn", {40, 16, 111}, {40, 16, 501}}}) {
    SCOPED_TRACE(equation);
    Tensor x = numbers(a), y = numbers(b), first = einsum(equation, x, y);
    Variable w(zeros(first.shape(), f32));
    auto update = wg::function("update", [&w, equation = equation](const Tensor &x, const Tensor &y) {
      w.assign(w * 0.5f + einsum(equation, x, y));
    });
    float scale = 0;
    for (int threads : {1, 2, 5}) {
      set_num_threads(threads);
      update(x, y);
      scale = 1 + scale / 2;
      EXPECT_LE(reduce_max(abs(w - first * scale)).item<float>(), 1e-5f) << threads << " threads";
    }
    set_num_threads(1);
  }
}

/// As products, and elementwise, whose rows end within a vector, or in one element of it.
TEST(Ops, ProductsOfFewTermsHaveTheSameBitsInEveryOrder) {
  auto numbers = [](const Shape &shape) { return reshape(sin(arange(0, shape.numElements(), 1, f32) * 1.7f), shape); };
  for (int64_t terms : {2, 3, 4})
    for (int64_t size : {1, 5, 16, 17, 65, 123}) {
      SCOPED_TRACE(runtime::toString(Shape{terms, size}));
      Tensor a = numbers(Shape{terms, 19, size, 51}), b = numbers(Shape{terms, size, 7});
      auto product = [&](const std::string &equation) {
        return wg::function("product",
                            [equation](const Tensor &x, const Tensor &y) { return einsum(equation, x, y); })(a, b);
      };
      Tensor c = product("ijlm,iln->jmln");
      EXPECT_TRUE(reduce_all(equal(product("ijlm,iln->nljm"), transpose(c, {3, 2, 0, 1}))).item<bool>());
      EXPECT_TRUE(reduce_all(equal(product("ijlm,iln->ljnm"), transpose(c, {2, 0, 3, 1}))).item<bool>());
      EXPECT_TRUE(reduce_all(equal(product("ijlm,iln->mnjl"), transpose(c, {1, 3, 0, 2}))).item<bool>());
    }
}

/// Sums that all tiles add part by part, in pieces for threads, have the bits of those that one tile adds at once.
TEST(Ops, PartsAndThreadsChangeNoBitOfLongSums) {
  auto numbers = [](const Shape &shape) { return reshape(sin(arange(0, shape.numElements(), 1, f32) * 1.7f), shape); };
  for (const auto &[terms, rows, columns] :
       {std::tuple<int64_t, int64_t, int64_t>(9001, 40, 37), {20000, 130, 301}, {12000, 700, 30}, {5000, 150, 230}}) {
    SCOPED_TRACE(runtime::toString(Shape{terms, rows, columns}));
    Tensor a = numbers(Shape{terms, rows}), b = numbers(Shape{terms, columns}), across = transpose(a);
    auto product = [](const std::string &equation) {
      return wg::function("product", [equation](const Tensor &x, const Tensor &y) { return einsum(equation, x, y); });
    };
    Tensor c = product("km,kn->mn")(a, b);
    for (int threads : {1, 2, 5}) {
      set_num_threads(threads);
      EXPECT_TRUE(reduce_all(product("km,kn->mn")(a, b) == c).item<bool>()) << threads << " threads";
      EXPECT_TRUE(reduce_all(product("mk,kn->mn")(across, b) == c).item<bool>()) << threads << " threads";
    }
    set_num_threads(1);
    for (auto [row, column] : {std::pair<int64_t, int64_t>(0, 0), {rows - 3, columns - 16}, {5, 7}}) {
      Tensor few =
          product("km,kn->mn")(slice(a, {0, row}, {terms, row + 3}), slice(b, {0, column}, {terms, column + 16}));
      EXPECT_TRUE(reduce_all(few == slice(c, {row, column}, {row + 3, column + 16})).item<bool>());
    }
  }
}
