// Draws beside their distributions: moments and shares of many, within some standard errors; bounds that hold for each;
// the same numbers in every engine. And the initializers that are made of them.
#include "tests/frontend/Support.h"

#include <cmath>
#include <map>
#include <numbers>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

constexpr int64_t kMany = 100'000;

double meanOf(const Tensor &x) { return mean(cast(x, f64)).item<double>(); }
double deviationOf(const Tensor &x) { return std::sqrt(variance(cast(x, f64)).item<double>()); }

/// The share of x that is at most `at`, beside the probability of that, within 5 standard errors.
void expectShare(const Tensor &x, double at, double probability) {
  double share = mean(cast(cast(x, f64) <= at, f64)).item<double>();
  EXPECT_NEAR(share, probability, 5 * std::sqrt(probability * (1 - probability) / kMany)) << "at most " << at;
}

/// What f draws is the same eagerly and compiled (elementwise functions differ by some ulps), and finite.
Tensor drawn(const std::function<Tensor(const Tensor &)> &f) {
  Tensor key = random::key(11), eager = f(key), compiled = function("draw", f)(key);
  if (runtime::isFloat(eager.dtype()))
    expectNear(compiled, eager, eager.dtype() == f64 ? 1e-14 : 1e-6);
  else
    EXPECT_EQ(compiled.to_vector<int64_t>(), eager.to_vector<int64_t>());
  EXPECT_TRUE(!runtime::isFloat(eager.dtype()) || reduce_all(is_finite(eager)).item<bool>());
  return eager;
}

} // namespace

TEST(RandomTest, EveryOrderIsAsProbable) {
  // Of three places each of six orders: 60,000 draws, within 5 standard errors of a sixth.
  constexpr int64_t kDraws = 60'000;
  Tensor keys = Tensor::from(
      [] {
        std::vector<int64_t> list;
        for (int64_t i = 0; i < kDraws; ++i)
          list.insert(list.end(), {7, i << 20});
        return list;
      }(),
      {kDraws, 2});
  Tensor orders = vmap([](const Tensor &key) { return random_permutation(key, 3); })(keys);
  std::map<std::vector<int64_t>, int64_t> counts;
  std::vector<int64_t> values = orders.to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); i += 3)
    ++counts[{values[i], values[i + 1], values[i + 2]}];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto &[order, count] : counts)
    EXPECT_NEAR(static_cast<double>(count), kDraws / 6.0, 5 * std::sqrt(kDraws / 6.0 * 5 / 6.0));
}

TEST(RandomTest, Shuffle) {
  Tensor x = arange(0, 1000, 1, i64), key = random::key(3);
  Tensor y = drawn([&](const Tensor &key) { return random_shuffle(key, x); });
  EXPECT_NE(y.to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(sort(y).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(drawn([&](const Tensor &key) { return random_permutation(key, 0); }).shape(), Shape({0}));
  // A size that the program learns when it runs: the same order.
  auto rowsOf = [](const Tensor &key, const Tensor &x) { return random_shuffle(key, x, 1); };
  auto open = function("open", rowsOf).trace(TensorSpec{i64, {2}}, TensorSpec{f64, {2, dynamic}});
  Tensor rows = reshape(arange(0, 12, 1, f64), {2, 6});
  EXPECT_EQ(open(key, rows)[0].to_vector<double>(), random_shuffle(key, rows, 1).to_vector<double>());
  Generator generator(5);
  EXPECT_EQ(sort(generator.permutation(8)).to_vector<int64_t>(), arange(0, 8, 1, i64).to_vector<int64_t>());
  EXPECT_EQ(generator.shuffle(rows, -1).shape(), rows.shape());
  EXPECT_TRUE(says(messageOf([&] { random_permutation(key, -1); }), "random_permutation: the count -1 is negative"));
  EXPECT_TRUE(
      says(messageOf([&] { random_shuffle(key, Tensor(1.0)); }), "random_shuffle: axis 0 of a tensor of rank 0"));
}

TEST(RandomTest, TruncatedNormal) {
  for (DType dtype : {f64, f32}) {
    Tensor x = drawn([&](const Tensor &key) { return random_truncated_normal(key, {kMany}, 0, 1, dtype); });
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_LE(reduce_max(abs(x)).item<double>(), 2);
    EXPECT_NEAR(meanOf(x), 0, 5 * 0.88 / std::sqrt(kMany));
    EXPECT_NEAR(deviationOf(x), 0.87962566103423978, 0.005);
    // (Phi(a) - Phi(-2)) / (Phi(2) - Phi(-2))
    for (double a : {-1.9, -1.0, -0.1, 0.5, 1.5, 1.99})
      expectShare(x, a, (std::erf(a / std::numbers::sqrt2) / std::erf(std::numbers::sqrt2) + 1) / 2);
    // The inverse of what it is made of: its distribution function is the uniform number that it came of.
    Tensor u = random_uniform(random::key(11), {kMany}, 0, 1, dtype);
    Tensor back = (erf(x / std::numbers::sqrt2) / std::erf(std::numbers::sqrt2) + 1) / 2;
    expectNear(cast(back, f64), cast(u, f64), dtype == f64 ? 2e-15 : 5e-7);
  }
  Tensor moved = random_truncated_normal(random::key(1), {kMany}, 5, 0.5);
  EXPECT_NEAR(meanOf(moved), 5, 0.01);
  EXPECT_LE(reduce_max(moved).item<float>(), 6);
}

TEST(RandomTest, Exponential) {
  for (DType dtype : {f64, f32}) {
    Tensor x = drawn([&](const Tensor &key) { return random_exponential(key, {kMany}, 2, dtype); });
    EXPECT_GE(reduce_min(x).item<double>(), 0);
    EXPECT_NEAR(meanOf(x), 2, 5 * 2 / std::sqrt(kMany));
    for (double a : {0.1, 1.0, 4.0})
      expectShare(x, a, 1 - std::exp(-a / 2));
  }
}

TEST(RandomTest, Gumbel) {
  for (DType dtype : {f64, f32}) {
    Tensor x = drawn([&](const Tensor &key) { return random_gumbel(key, {kMany}, 1, 2, dtype); });
    EXPECT_NEAR(meanOf(x), 1 + 2 * 0.57721566490153286, 0.05);
    EXPECT_NEAR(deviationOf(x), 2 * std::numbers::pi / std::sqrt(6), 0.05);
    for (double a : {-1.0, 1.0, 5.0})
      expectShare(x, a, std::exp(-std::exp(-(a - 1) / 2)));
  }
}

/// Among the uniform numbers of this key is 0, which one in 2^24 is.
TEST(RandomTest, NothingIsInfinite) {
  Tensor key = random::key(176);
  Shape shape{1 << 16};
  ASSERT_EQ(reduce_min(random_uniform(key, shape)).item<float>(), 0);
  Tensor gumbel = random_gumbel(key, shape);
  EXPECT_TRUE(reduce_all(is_finite(gumbel)).item<bool>());
  EXPECT_NEAR(reduce_min(-gumbel).item<float>(), -std::log(0x1p24) - std::log(2), 1e-3);
  EXPECT_EQ(reduce_min(random_exponential(key, shape)).item<float>(), 0);
  EXPECT_TRUE(reduce_all(is_finite(random_laplace(key, shape))).item<bool>());
  EXPECT_NEAR(reduce_min(random_truncated_normal(key, shape)).item<float>(), -2, 1e-6);
}

TEST(RandomTest, Laplace) {
  Tensor x = drawn([](const Tensor &key) { return random_laplace(key, {kMany}, -1, 0.5, f64); });
  EXPECT_NEAR(meanOf(x), -1, 0.02);
  EXPECT_NEAR(deviationOf(x), 0.5 * std::numbers::sqrt2, 0.02);
  expectShare(x, -1.5, std::exp(-1.0) / 2);
  expectShare(x, -0.5, 1 - std::exp(-1.0) / 2);
}

TEST(RandomTest, Bernoulli) {
  Tensor x = drawn([](const Tensor &key) { return cast(random_bernoulli(key, {kMany}, 0.3), i64); });
  EXPECT_NEAR(meanOf(x), 0.3, 5 * std::sqrt(0.21 / kMany));
  Tensor p{0.0f, 0.25f, 1.0f};
  Tensor rows = random_bernoulli(random::key(2), {kMany, 3}, p);
  EXPECT_EQ(rows.dtype(), boolean);
  Tensor shares = mean(cast(rows, f64), 0);
  EXPECT_EQ(shares[0].item<double>(), 0);
  EXPECT_NEAR(shares[1].item<double>(), 0.25, 0.01);
  EXPECT_EQ(shares[2].item<double>(), 1);
  EXPECT_EQ(meanOf(cast(random_bernoulli(random::key(2), {kMany}, 0.0), f64)), 0);
  EXPECT_EQ(meanOf(cast(random_bernoulli(random::key(2), {kMany}, 1.0), f64)), 1);
}

TEST(RandomTest, Integers) {
  for (DType dtype : {i64, i32, u8}) {
    Tensor x = drawn([&](const Tensor &key) { return random_integers(key, {kMany}, 3, 9, dtype); });
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(reduce_min(x).item<int64_t>(), 3);
    EXPECT_EQ(reduce_max(x).item<int64_t>(), 8);
    for (int k = 3; k < 8; ++k)
      expectShare(x, k, (k - 2) / 6.0);
  }
  Tensor wide = random_integers(random::key(1), {kMany}, -(int64_t(1) << 62), int64_t(1) << 61);
  EXPECT_GE(reduce_min(wide).item<int64_t>(), -(int64_t(1) << 62));
  EXPECT_LT(reduce_max(wide).item<int64_t>(), int64_t(1) << 61);
  EXPECT_EQ(random_integers(random::key(1), {}, 5, 6).item<int64_t>(), 5);
  EXPECT_TRUE(
      says(messageOf([] { random_integers(random::key(1), {2}, 5, 5); }), "the interval [5, 5) has no integer"));
  EXPECT_TRUE(
      says(messageOf([] { random_integers(random::key(1), {2}, INT64_MIN, INT64_MAX); }), "more than 2^63 - 1"));
  EXPECT_TRUE(says(messageOf([] { random_integers(random::key(1), {2}, 0, 300, u8); }), "299 does not fit"));
  EXPECT_TRUE(says(messageOf([] { random_integers(random::key(1), {2}, 0, 3, f32); }), "use an integer dtype"));
}

TEST(RandomTest, Categorical) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Tensor p{0.1, 0.2, 0.0, 0.7}, logits = log(p) + 3.0;
  Tensor x = drawn([&](const Tensor &key) { return random_categorical(key, logits, kMany); });
  EXPECT_EQ(x.shape(), (Shape{kMany}));
  expectShare(x, 0, 0.1);
  expectShare(x, 1, 0.3);
  EXPECT_FALSE(reduce_any(x == 2).item<bool>());
  Tensor rows = broadcast_to(logits, {kMany, 4}), each = random_categorical(random::key(4), rows);
  EXPECT_EQ(each.shape(), (Shape{kMany}));
  expectShare(each, 1, 0.3);
  EXPECT_EQ(random_categorical(random::key(4), zeros({3, 2, 5}), 7).shape(), (Shape{3, 2, 7}));
  EXPECT_EQ(random_categorical(random::key(4), Tensor{-kInf, -kInf}).item<int64_t>(), 0);
  auto open = function("open", [](const Tensor &key, const Tensor &x) { return random_categorical(key, x, 5); });
  open.trace(TensorSpec{i64, {2}}, TensorSpec{f64, {dynamic, 4}});
  EXPECT_EQ(open(random::key(4), rows[{wg::slice(0, 3)}]).to_vector<int64_t>(),
            random_categorical(random::key(4), rows[{wg::slice(0, 3)}], 5).to_vector<int64_t>());
  EXPECT_TRUE(says(messageOf([] { random_categorical(random::key(1), Tensor(1.0)); }), "which have no class"));
  EXPECT_TRUE(says(messageOf([] { random_categorical(random::key(1), zeros({2, 0})); }), "which have no class"));
  EXPECT_TRUE(says(messageOf([] { random_categorical(random::key(1), zeros({2}), -1); }), "the count -1 is negative"));
}

TEST(RandomTest, AGeneratorDrawsByItsNextKey) {
  Generator a(5), b(5);
  auto next = [&] { return b.next(); };
  expectNear(a.truncated_normal({3}), random_truncated_normal(next(), {3}), 0);
  expectNear(a.exponential({3}, 2), random_exponential(next(), {3}, 2), 0);
  expectNear(a.gumbel({3}), random_gumbel(next(), {3}), 0);
  expectNear(a.laplace({3}), random_laplace(next(), {3}), 0);
  EXPECT_EQ(a.integers({9}, 0, 100).to_vector<int64_t>(), random_integers(next(), {9}, 0, 100).to_vector<int64_t>());
  EXPECT_EQ(cast(a.bernoulli({9}, 0.5), i64).to_vector<int64_t>(),
            cast(random_bernoulli(next(), {9}, 0.5), i64).to_vector<int64_t>());
  EXPECT_EQ(a.categorical(zeros({9, 5})).to_vector<int64_t>(),
            random_categorical(next(), zeros({9, 5})).to_vector<int64_t>());
  auto traced = function("draw", [&] { return a.truncated_normal({4}); });
  EXPECT_NE(traced().to_vector<float>(), traced().to_vector<float>());
}

TEST(RandomTest, OpenSizesAndLanes) {
  auto open = function("open", [](const Tensor &key, const Tensor &x) {
    return stack({random_truncated_normal(key, x.shape()), random_gumbel(key, x.shape()),
                  cast(random_integers(key, x.shape(), 0, 9), f32), cast(random_bernoulli(key, x.shape(), 0.5), f32)});
  });
  open.trace(TensorSpec{i64, {2}}, TensorSpec{f32, {dynamic}});
  Tensor key = random::key(7);
  expectNear(open(key, zeros({5}))[0], random_truncated_normal(key, {5}), 1e-6);
  expectNear(open(key, zeros({5}))[2], cast(random_integers(key, {5}, 0, 9), f32), 0);
  Tensor keys = stack(random::split(key, 3));
  auto each = vmap([](const Tensor &key) { return random_laplace(key, {4}); })(keys);
  expectNear(each[1], random_laplace(keys[1], {4}), 1e-6);
  EXPECT_TRUE(says(messageOf([] { random_truncated_normal(random::key(1), {2}, 0, -1); }), "the stddev is -1"));
  EXPECT_TRUE(says(messageOf([] { random_gumbel(Tensor{1.0}, {2}); }), "cast it: cast(x, i64)"));
}

// ---- Initializers

TEST(InitializerTest, VariancesAreThoseOfTheFans) {
  Shape shape{3, 3, 20, 50}; // a receptive field of 9
  double in = 180, out = 450;
  auto check = [&](const nn::Initializer &make, double variance, bool bounded) {
    Tensor w = make(shape, f64);
    EXPECT_NEAR(deviationOf(w), std::sqrt(variance), 0.03 * std::sqrt(variance));
    EXPECT_NEAR(meanOf(w), 0, 0.06 * std::sqrt(variance));
    if (bounded)
      EXPECT_LE(reduce_max(abs(w)).item<double>(), std::sqrt(3 * variance));
    EXPECT_EQ(make({4, 4}, f32).to_vector<float>(), make({4, 4}, f32).to_vector<float>()) << "the same of one seed";
  };
  check(nn::glorot_uniform(1), 2 / (in + out), true);
  check(nn::glorot_normal(1), 2 / (in + out), false);
  check(nn::he_uniform(1), 2 / in, true);
  check(nn::he_normal(1), 2 / in, false);
  check(nn::lecun_uniform(1), 1 / in, true);
  check(nn::lecun_normal(1), 1 / in, false);
  Tensor w = nn::truncated_normal(1, 0.5, 3)(shape, f32);
  EXPECT_LE(reduce_max(w).item<float>(), 2);
  EXPECT_NEAR(deviationOf(w), 0.5 * 0.8796, 0.02);
}

TEST(InitializerTest, ConstantsAndDiagonals) {
  expectNear(nn::ones()({2, 3}, f64), ones({2, 3}, f64), 0);
  expectNear(nn::identity(2)({2, 3}, f64), Tensor{{2.0, 0.0, 0.0}, {0.0, 2.0, 0.0}}, 0);
  EXPECT_EQ(nn::identity()({5, 2, 2}, f32).shape(), (Shape{5, 2, 2}));
  EXPECT_TRUE(says(messageOf([] { nn::identity()({3}, f32); }), "has less than two axes"));
}

TEST(InitializerTest, OrthogonalRowsOrColumns) {
  for (Shape shape : {Shape{6, 6}, Shape{4, 9}, Shape{9, 4}, Shape{2, 3, 2, 5}}) {
    Tensor w = reshape(nn::orthogonal(1.5, 2)(shape, f64), {-1, shape.dim(shape.rank() - 1)});
    Tensor small = w.shape().dim(0) <= w.shape().dim(1) ? w : transpose(w);
    expectNear(matmul(small, transpose(small)), 2.25 * eye(small.shape().dim(0), {}, f64), 1e-14);
  }
  EXPECT_EQ(nn::orthogonal(1, 2)({3, 3}, f32).dtype(), f32);
  EXPECT_EQ(nn::orthogonal(1, 2)({0, 3}, f32).shape(), (Shape{0, 3}));
}

/// Keys of neighbouring numbers, of neighbouring keys, have nothing in common; any integer dtype is the same number.
TEST(Random, FoldIn) {
  std::set<std::vector<int64_t>> keys;
  std::set<int64_t> words;
  for (int64_t step = 0; step < 16; ++step)
    for (int64_t number = -3; number < 16; ++number) {
      Tensor key = random::fold_in(Tensor{int64_t(7), step}, number);
      keys.insert(key.to_vector<int64_t>());
      for (int64_t word : random_integers(key, {4}, 0, INT64_MAX).to_vector<int64_t>())
        words.insert(word);
    }
  EXPECT_EQ(keys.size(), 16u * 19);
  EXPECT_EQ(words.size(), 16u * 19 * 4);
  auto traced = function("f", [](const Tensor &key, const Tensor &n) { return random::fold_in(key, n); });
  Tensor key = random::key(5), number(int32_t(9));
  EXPECT_EQ(traced(key, number).to_vector<int64_t>(), random::fold_in(key, 9).to_vector<int64_t>());
  EXPECT_NE(messageOf([&] { random::fold_in(key, Tensor(1.5f)); }).find("the number is f32[]"), std::string::npos);
}
