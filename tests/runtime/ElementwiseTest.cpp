// Values at the edges, dtype by dtype, by the table of docs/numbers.md.
#include "tests/runtime/Run.h"

#include <cmath>
#include <random>

namespace wg::runtime {
namespace {

template <class T> constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T> constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

/// Equal bits, or both NaN: so that -0 differs from 0.
template <class T> testing::AssertionResult same(const std::vector<T> &a, const std::vector<T> &b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " elements, expected " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    bool equal = a[i] == b[i];
    if constexpr (std::is_floating_point_v<T>)
      equal = (std::isnan(a[i]) && std::isnan(b[i])) || (equal && std::signbit(a[i]) == std::signbit(b[i]));
    if (!equal)
      return testing::AssertionFailure() << "element " << i << " is " << +a[i] << ", expected " << +b[i];
  }
  return testing::AssertionSuccess();
}
template <class T> std::vector<T> unary(const char *name, std::initializer_list<T> x) {
  return values<T>(run(name, {vec<T>(x)}));
}
template <class T> std::vector<T> binary(const char *name, std::initializer_list<T> a, std::initializer_list<T> b) {
  return values<T>(run(name, {vec<T>(a), vec<T>(b)}));
}

template <class T> class FloatTest : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatTest, FloatTypes);
template <class T> class SignedTest : public testing::Test {};
using SignedTypes = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(SignedTest, SignedTypes);

// ---- Floats ---------------------------------------------------------------------------------------------------------
TYPED_TEST(FloatTest, MaximumAndMinimum) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  EXPECT_TRUE(
      same(binary<T>("maximum", {nan, 1, nan, -0.0, 0.0, inf, -inf, -0.0}, {1, nan, nan, 0.0, -0.0, 1, 1, -0.0}),
           {nan, nan, nan, 0.0, 0.0, inf, 1, -0.0}));
  EXPECT_TRUE(same(binary<T>("minimum", {nan, 1, nan, -0.0, 0.0, inf, -inf, 0.0}, {1, nan, nan, 0.0, -0.0, 1, 1, 0.0}),
                   {nan, nan, nan, -0.0, -0.0, 1, -inf, 0.0}));
  EXPECT_TRUE(same(unary<T>("relu", {-1, -0.0, 0.0, 2, nan, inf, -inf}), {0, 0, 0, 2, nan, inf, 0}));
}

TYPED_TEST(FloatTest, ExtremesHoldInVectorsOfAnyLength) {
  using T = TypeParam;
  for (int64_t n : {1, 2, 7, 8, 15, 16, 17, 33, 64, 100}) {
    Array a = Array::zeros(dtypeOf<T>, {n}), b = Array::zeros(dtypeOf<T>, {n});
    for (int64_t at = 0; at < n; ++at) {
      a.data<T>()[at] = kNan<T>;
      std::vector<T> c = values<T>(run("maximum", {a, b})), d = values<T>(run("minimum", {b, a}));
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(std::isnan(c[static_cast<size_t>(i)]), i == at);
        EXPECT_EQ(std::isnan(d[static_cast<size_t>(i)]), i == at);
      }
      EXPECT_TRUE(std::isnan(values<T>(run("reduce_max", {a}, attrs({Ints{0}})))[0]));
      EXPECT_TRUE(std::isnan(values<T>(run("reduce_min", {a}, attrs({Ints{0}})))[0]));
      EXPECT_EQ(values<int64_t>(run("argmax", {a}, attrs({int64_t(0)})))[0], at);
      a.data<T>()[at] = 0;
    }
  }
}

TYPED_TEST(FloatTest, SignRoundAndParts) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  EXPECT_TRUE(same(unary<T>("sign", {-2.5, -0.0, 0.0, 0.5, nan, inf, -inf}), {-1, 0, 0, 1, nan, 1, -1}));
  EXPECT_TRUE(
      same(unary<T>("round", {-1.5, -0.5, 0.5, 1.5, 2.5, -0.2, nan, inf}), {-2, -0.0, 0, 2, 2, -0.0, nan, inf}));
  EXPECT_TRUE(same(unary<T>("floor", {-1.5, -0.0, 1.5, nan, -inf}), {-2, -0.0, 1, nan, -inf}));
  EXPECT_TRUE(same(unary<T>("ceil", {-1.5, -0.2, 1.5, nan, -inf}), {-1, -0.0, 2, nan, -inf}));
  EXPECT_TRUE(same(unary<T>("abs", {-0.0, -2, nan, -inf}), {0, 2, nan, inf}));
  EXPECT_TRUE(same(unary<T>("neg", {0.0, -2, inf}), {-0.0, 2, -inf}));
}

TYPED_TEST(FloatTest, FunctionsAtTheEdges) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  T nan = kNan<T>, inf = kInf<T>, tiny = Limits::denorm_min(), big = Limits::max();
  EXPECT_TRUE(same(unary<T>("exp", {0, -inf, inf, nan, big, -big}), {1, 0, inf, nan, inf, 0}));
  EXPECT_TRUE(same(unary<T>("expm1", {-0.0, -inf, inf, nan}), {-0.0, -1, inf, nan}));
  EXPECT_TRUE(same(unary<T>("log", {1, 0, -0.0, -1, inf, nan}), {0, -inf, -inf, nan, inf, nan}));
  EXPECT_TRUE(same(unary<T>("log1p", {0, -1, -2, inf, nan}), {0, -inf, nan, inf, nan}));
  EXPECT_TRUE(same(unary<T>("sqrt", {4, 0, -0.0, -1, inf, nan}), {2, 0, -0.0, nan, inf, nan}));
  EXPECT_TRUE(same(unary<T>("rsqrt", {4, 0, -1, inf, nan}), {0.5, inf, nan, 0, nan}));
  EXPECT_TRUE(same(unary<T>("tanh", {0, -0.0, inf, -inf, 100, nan}), {0, -0.0, 1, -1, 1, nan}));
  EXPECT_TRUE(same(unary<T>("sigmoid", {0, inf, -inf, big, -big, nan}), {0.5, 1, 0, 1, 0, nan}));
  EXPECT_TRUE(same(unary<T>("softplus", {inf, -inf, big, -big, nan}), {inf, 0, big, 0, nan}));
  EXPECT_TRUE(same(unary<T>("sin", {-0.0, inf, nan}), {-0.0, nan, nan}));
  EXPECT_TRUE(same(unary<T>("cos", {0, -inf, nan}), {1, nan, nan}));
  EXPECT_TRUE(same(unary<T>("erf", {-0.0, inf, -inf, nan}), {-0.0, 1, -1, nan}));
  // Subnormals are neither flushed nor clamped.
  EXPECT_EQ(unary<T>("log", {tiny})[0], std::log(tiny));
  EXPECT_EQ(unary<T>("sqrt", {tiny})[0], std::sqrt(tiny));
  EXPECT_EQ(binary<T>("add", {tiny}, {tiny})[0], 2 * tiny);
  EXPECT_EQ(binary<T>("mul", {tiny}, {1})[0], tiny);
  T gradual = std::log(Limits::min()) - 2; // exp of it is subnormal
  EXPECT_GT(unary<T>("exp", {gradual})[0], 0);
  EXPECT_LT(unary<T>("exp", {gradual})[0], Limits::min());
  EXPECT_GT(unary<T>("sigmoid", {gradual})[0], 0);
  EXPECT_GT(unary<T>("softplus", {gradual})[0], 0);
  EXPECT_TRUE(same(values<bool>(run("is_nan", {vec<T>({nan, inf, 0})})), std::vector<bool>{true, false, false}));
}

/// At most `limit` ulp of T from the f64 or long double value.
TYPED_TEST(FloatTest, FunctionsAreAccurate) {
  using T = TypeParam;
  struct Function {
    const char *name;
    long double (*exact)(long double);
    double low, high;
  };
  const Function functions[] = {{"exp", [](long double x) { return std::exp(x); }, -80, 80},
                                {"expm1", [](long double x) { return std::expm1(x); }, -3, 3},
                                {"log", [](long double x) { return std::log(x); }, 1e-6, 100},
                                {"log1p", [](long double x) { return std::log1p(x); }, -0.99, 10},
                                {"tanh", [](long double x) { return std::tanh(x); }, -9, 9},
                                {"sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, -50, 50},
                                {"softplus", [](long double x) { return std::log1p(std::exp(x)); }, -50, 50},
                                {"sin", [](long double x) { return std::sin(x); }, -100, 100},
                                {"cos", [](long double x) { return std::cos(x); }, -100, 100},
                                {"erf", [](long double x) { return std::erf(x); }, -4, 4},
                                {"sqrt", [](long double x) { return std::sqrt(x); }, 0, 10},
                                {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1e-3, 10}};
  std::mt19937_64 random(1);
  for (const Function &f : functions) {
    Array x = Array::empty(dtypeOf<T>, {2000});
    for (T &value : x.span<T>())
      value = static_cast<T>(std::uniform_real_distribution<double>(f.low, f.high)(random));
    std::vector<T> y = values<T>(run(f.name, {x}));
    for (size_t i = 0; i < y.size(); ++i) {
      long double exact = f.exact(x.data<T>()[i]);
      T rounded = static_cast<T>(std::abs(exact));
      long double ulp = std::nextafter(rounded, kInf<T>) - rounded;
      EXPECT_LE(std::abs(y[i] - exact), 3 * ulp) << f.name << "(" << x.data<T>()[i] << ")";
    }
  }
}

TYPED_TEST(FloatTest, PowRemainderFloorDiv) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  EXPECT_TRUE(same(binary<T>("pow", {nan, 1, 0, -8, 2, -2, -0.0, inf, 0}, {0, nan, -1, T(1.0 / 3), 10, 3, -1, -1, 0}),
                   {1, 1, inf, nan, 1024, -8, -inf, 0, 1}));
  EXPECT_TRUE(
      same(binary<T>("remainder", {5, -5, 5, -5, 5, inf, 1, -1, 4, -4, nan}, {3, 3, -3, -3, 0, 1, inf, inf, 2, 2, 1}),
           {2, 1, -1, -2, nan, nan, 1, inf, 0, 0, nan}));
  EXPECT_TRUE(
      same(binary<T>("floor_div", {5, -5, 5, -5, 5, 0, inf}, {3, 3, -3, -3, 0, 0, 2}), {1, -2, -2, 1, inf, nan, inf}));
  EXPECT_TRUE(same(binary<T>("div", {1, -1, 0, 1}, {0, 0, 0, -0.0}), {inf, -inf, nan, -inf}));
}

TYPED_TEST(FloatTest, Comparisons) {
  using T = TypeParam;
  T nan = kNan<T>;
  Array a = vec<T>({1, 2, nan, -0.0, 3}), b = vec<T>({1, 3, nan, 0.0, nan});
  EXPECT_EQ(values<bool>(run("equal", {a, b})), (std::vector<bool>{1, 0, 0, 1, 0}));
  EXPECT_EQ(values<bool>(run("not_equal", {a, b})), (std::vector<bool>{0, 1, 1, 0, 1}));
  EXPECT_EQ(values<bool>(run("less", {a, b})), (std::vector<bool>{0, 1, 0, 0, 0}));
  EXPECT_EQ(values<bool>(run("less_equal", {a, b})), (std::vector<bool>{1, 1, 0, 1, 0}));
  EXPECT_EQ(values<bool>(run("greater", {a, b})), (std::vector<bool>{0, 0, 0, 0, 0}));
  EXPECT_EQ(values<bool>(run("greater_equal", {a, b})), (std::vector<bool>{1, 0, 0, 1, 0}));
}

TYPED_TEST(FloatTest, CastsToIntegersSaturate) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  Array x = vec<T>({2.9, -2.9, nan, inf, -inf, T(1e20), T(-1e20), -0.0, T(2147483648.0), T(-2147483648.0), T(255.9),
                    T(256), T(-0.9)});
  auto cast = [&](DType dtype) { return run("cast", {x}, CastAttrs::make(dtype)); };
  int32_t max32 = std::numeric_limits<int32_t>::max(), min32 = std::numeric_limits<int32_t>::min();
  int64_t max64 = std::numeric_limits<int64_t>::max(), min64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(values<int32_t>(cast(DType::i32)),
            (std::vector<int32_t>{2, -2, 0, max32, min32, max32, min32, 0, max32, min32, 255, 256, 0}));
  EXPECT_EQ(values<int64_t>(cast(DType::i64)),
            (std::vector<int64_t>{2, -2, 0, max64, min64, max64, min64, 0, 2147483648, -2147483648, 255, 256, 0}));
  EXPECT_EQ(values<uint8_t>(cast(DType::u8)), (std::vector<uint8_t>{2, 0, 0, 255, 0, 255, 0, 0, 255, 0, 255, 255, 0}));
  EXPECT_EQ(values<bool>(cast(DType::boolean)), (std::vector<bool>{1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1}));
}

TEST(CastTest, FloatsRoundAndOverflow) {
  EXPECT_TRUE(same(values<float>(run("cast", {vec<double>({1e300, -1e300, 1 + 0x1p-24, 1e-46, -1e-46, kNan<double>})},
                                     CastAttrs::make(DType::f32))),
                   {kInf<float>, -kInf<float>, 1, 0, -0.0f, kNan<float>}));
  EXPECT_EQ(values<double>(run("cast", {vec<float>({0.1f})}, CastAttrs::make(DType::f64))), std::vector<double>{0.1f});
  EXPECT_EQ(values<float>(run("cast", {vec<int64_t>({(int64_t(1) << 24) + 1, -1})}, CastAttrs::make(DType::f32))),
            (std::vector<float>{16777216, -1}));
}

TEST(CastTest, IntegersWrap) {
  Array x = vec<int64_t>({300, -1, 0x100000005, std::numeric_limits<int64_t>::min()});
  EXPECT_EQ(values<uint8_t>(run("cast", {x}, CastAttrs::make(DType::u8))), (std::vector<uint8_t>{44, 255, 5, 0}));
  EXPECT_EQ(values<int32_t>(run("cast", {x}, CastAttrs::make(DType::i32))), (std::vector<int32_t>{300, -1, 5, 0}));
  EXPECT_EQ(values<bool>(run("cast", {vec<int64_t>({0, 256})}, CastAttrs::make(DType::boolean))),
            (std::vector<bool>{0, 1}));
  EXPECT_EQ(values<int64_t>(run("cast", {vec<uint8_t>({255})}, CastAttrs::make(DType::i64))),
            std::vector<int64_t>{255});
  EXPECT_EQ(values<float>(run("cast", {vec<bool>({false, true})}, CastAttrs::make(DType::f32))),
            (std::vector<float>{0, 1}));
  EXPECT_EQ(values<int32_t>(run("cast", {vec<int32_t>({7})}, CastAttrs::make(DType::i32))), std::vector<int32_t>{7});
}

// ---- Integers -------------------------------------------------------------------------------------------------------
TYPED_TEST(SignedTest, DivisionRoundsDownAndHasNoHoles) {
  using T = TypeParam;
  T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
  EXPECT_TRUE(same(binary<T>("floor_div", {7, -7, 7, -7, 5, min, 0, min, max}, {2, 2, -2, -2, 0, -1, 0, 0, -1}),
                   {3, -4, -4, 3, -1, min, -1, -1, static_cast<T>(-max)}));
  EXPECT_TRUE(same(binary<T>("remainder", {7, -7, 7, -7, 5, min, 0, min, 6}, {2, 2, -2, -2, 0, -1, 0, 0, 3}),
                   {1, 1, -1, -1, 5, 0, 0, min, 0}));
}

TYPED_TEST(SignedTest, ArithmeticWraps) {
  using T = TypeParam;
  T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
  EXPECT_TRUE(same(binary<T>("add", {max, min}, {1, -1}), {min, max}));
  EXPECT_TRUE(same(binary<T>("sub", {min, 0}, {1, min}), {max, min}));
  EXPECT_TRUE(same(binary<T>("mul", {min, max}, {-1, 2}), {min, -2}));
  EXPECT_TRUE(same(unary<T>("neg", {min, 3}), {min, -3}));
  EXPECT_TRUE(same(unary<T>("abs", {min, -3}), {min, 3}));
  EXPECT_TRUE(same(unary<T>("sign", {min, 0, 3}), {-1, 0, 1}));
  EXPECT_TRUE(same(binary<T>("maximum", {min, 3}, {max, 2}), {max, 3}));
}

TYPED_TEST(SignedTest, Powers) {
  using T = TypeParam;
  T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
  EXPECT_TRUE(same(binary<T>("pow", {2, 3, 0, 1, -1, -1, 0, 5, -2, 2, 1},
                             {10, 4, 0, -5, -2, -3, -1, -1, 3, static_cast<T>(sizeof(T) * 8 - 1), min}),
                   {1024, 81, 1, 1, 1, -1, max, 0, -8, min, 1}));
}

TEST(UnsignedTest, BytesWrap) {
  EXPECT_TRUE(same(binary<uint8_t>("add", {250}, {10}), {4}));
  EXPECT_TRUE(same(binary<uint8_t>("sub", {1}, {2}), {255}));
  EXPECT_TRUE(same(binary<uint8_t>("mul", {200}, {2}), {144}));
  EXPECT_TRUE(same(unary<uint8_t>("neg", {1, 0}), {255, 0}));
  EXPECT_TRUE(same(binary<uint8_t>("floor_div", {7, 7}, {2, 0}), {3, 255}));
  EXPECT_TRUE(same(binary<uint8_t>("remainder", {7, 7}, {4, 0}), {3, 7}));
  EXPECT_TRUE(same(binary<uint8_t>("pow", {2, 3}, {8, 5}), {0, 243}));
  EXPECT_TRUE(same(unary<uint8_t>("sign", {0, 200}), {0, 1}));
}

// ---- Booleans, select, shapes ---------------------------------------------------------------------------------------
TEST(ElementwiseTest, Logic) {
  Array a = vec<bool>({0, 0, 1, 1}), b = vec<bool>({0, 1, 0, 1});
  EXPECT_EQ(values<bool>(run("logical_and", {a, b})), (std::vector<bool>{0, 0, 0, 1}));
  EXPECT_EQ(values<bool>(run("logical_or", {a, b})), (std::vector<bool>{0, 1, 1, 1}));
  EXPECT_EQ(values<bool>(run("logical_not", {a})), (std::vector<bool>{1, 1, 0, 0}));
  EXPECT_EQ(values<bool>(run("less", {a, b})), (std::vector<bool>{0, 1, 0, 0}));
}

TEST(ElementwiseTest, Select) {
  Array c = vec<bool>({1, 0});
  EXPECT_EQ(values<double>(run("select", {c, vec<double>({1, 2}), vec<double>({3, 4})})), (std::vector<double>{1, 4}));
  EXPECT_EQ(values<bool>(run("select", {c, vec<bool>({1, 1}), vec<bool>({0, 0})})), (std::vector<bool>{1, 0}));
  EXPECT_EQ(types("select", {{DType::f32, {2}}, {DType::f32, {2}}, {DType::f32, {2}}}),
            "the condition is bool, got f32[2]");
  EXPECT_EQ(types("select", {{DType::boolean, {3}}, {DType::f32, {2}}, {DType::f32, {2}}}),
            "the condition bool[3] and the branches f32[2] have different shapes");
  EXPECT_EQ(types("select", {{DType::boolean, {2}}, {DType::f32, {2}}, {DType::f64, {2}}}),
            "f32[2] and f64[2] have different dtypes");
  EXPECT_EQ(types("select", {{DType::boolean, {kDynamic}}, {DType::f32, {kDynamic}}, {DType::f32, {kDynamic}}}),
            "f32[?]");
}

TEST(ElementwiseTest, LikeConstants) {
  EXPECT_EQ(values<int32_t>(run("ones_like", {vec<int32_t>({5, 6})})), (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(values<bool>(run("zeros_like", {vec<bool>({true})})), std::vector<bool>{false});
}

TEST(ElementwiseTest, TypesAreEqualDynamicSizesIncluded) {
  EXPECT_EQ(types("add", {{DType::f32, {kDynamic, 3}}, {DType::f32, {kDynamic, 3}}}), "f32[?,3]");
  EXPECT_EQ(types("add", {{DType::f32, {kDynamic}}, {DType::f32, {3}}}), "f32[?] and f32[3] have different shapes");
  EXPECT_EQ(types("less", {{DType::f32, {2}}, {DType::f32, {2}}}), "bool[2]");
  EXPECT_EQ(types("cast", {{DType::f32, {2, kDynamic}}}, CastAttrs::make(DType::i32)), "i32[2,?]");
}

TEST(ElementwiseTest, EmptyAndLargeTensors) {
  EXPECT_EQ(values<float>(run("add", {Array::zeros(DType::f32, {0, 3}), Array::zeros(DType::f32, {0, 3})})),
            std::vector<float>{});
  Array x = Array::empty(DType::f32, {300001}); // runs in pieces
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.data<float>()[i] = static_cast<float>(i);
  std::vector<float> y = values<float>(run("add", {x, x}));
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], 2 * static_cast<float>(i));
}

} // namespace
} // namespace wg::runtime
