// Further functions at zeros, poles, infinities and the ends of integers, by the table of docs/numbers.md; their values
// elsewhere are checked by tests/frontend/SpecialTest.cpp.
#include "tests/runtime/Run.h"

#include <cmath>
#include <limits>

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
template <class T> std::vector<T> polygamma(int64_t n, std::initializer_list<T> x) {
  return values<T>(run("polygamma", {vec<T>(x)}, PolygammaAttrs::make(n)));
}

template <class T> class SpecialFloatTest : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SpecialFloatTest, FloatTypes);
template <class T> class SpecialSignedTest : public testing::Test {};
using SignedTypes = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(SpecialSignedTest, SignedTypes);

TYPED_TEST(SpecialFloatTest, OneNumberAtTheEdges) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  EXPECT_TRUE(same(unary<T>("cbrt", {-8, -0.0, 0, inf, -inf, nan}), {-2, -0.0, 0, inf, -inf, nan}));
  EXPECT_TRUE(same(unary<T>("exp2", {-2, 0, 10, inf, -inf, nan}), {0.25, 1, 1024, inf, 0, nan}));
  EXPECT_TRUE(same(unary<T>("log2", {8, 0, -0.0, -1, inf, nan}), {3, -inf, -inf, nan, inf, nan}));
  EXPECT_TRUE(same(unary<T>("log10", {1000, 0, -0.0, -1, inf, nan}), {3, -inf, -inf, nan, inf, nan}));
  EXPECT_TRUE(same(unary<T>("tan", {-0.0, inf, nan}), {-0.0, nan, nan}));
  EXPECT_TRUE(same(unary<T>("asin", {-0.0, 2, nan}), {-0.0, nan, nan}));
  EXPECT_TRUE(same(unary<T>("acos", {1, 2, nan}), {0, nan, nan}));
  EXPECT_TRUE(same(unary<T>("atan", {-0.0, nan}), {-0.0, nan}));
  EXPECT_TRUE(same(unary<T>("sinh", {-0.0, inf, -inf, nan}), {-0.0, inf, -inf, nan}));
  EXPECT_TRUE(same(unary<T>("cosh", {-0.0, inf, -inf, nan}), {1, inf, inf, nan}));
  EXPECT_TRUE(same(unary<T>("asinh", {-0.0, inf, -inf, nan}), {-0.0, inf, -inf, nan}));
  EXPECT_TRUE(same(unary<T>("acosh", {1, 0.5, -3, inf, -inf, nan}), {0, nan, nan, inf, nan, nan}));
  EXPECT_TRUE(same(unary<T>("atanh", {-0.0, 1, -1, 2, nan}), {-0.0, inf, -inf, nan, nan}));
  EXPECT_TRUE(same(unary<T>("erfc", {0, inf, -inf, nan}), {1, 0, 2, nan}));
  EXPECT_TRUE(same(unary<T>("erfinv", {-0.0, 1, -1, 2, inf, nan}), {-0.0, inf, -inf, nan, nan, nan}));
  EXPECT_TRUE(
      same(unary<T>("lgamma", {1, 2, 0, -0.0, -1, -7, inf, -inf, nan}), {0, 0, inf, inf, inf, inf, inf, inf, nan}));
  EXPECT_TRUE(same(unary<T>("trunc", {-1.5, -0.5, 1.5, inf, nan}), {-1, -0.0, 1, inf, nan}));
}

TYPED_TEST(SpecialFloatTest, PolygammaAtTheEdges) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>;
  EXPECT_TRUE(same(polygamma<T>(0, {0, -0.0, -1, -64, inf, -inf, nan}), {-inf, inf, nan, nan, inf, nan, nan}));
  EXPECT_TRUE(same(polygamma<T>(1, {0, -0.0, -1, -64, inf, -inf, nan}), {inf, inf, inf, inf, 0, nan, nan}));
  EXPECT_TRUE(same(polygamma<T>(2, {0, -0.0, -1, -64, inf, -inf, nan}), {-inf, inf, nan, nan, -0.0, nan, nan}));
}

TYPED_TEST(SpecialFloatTest, TwoNumbersAtTheEdges) {
  using T = TypeParam;
  T nan = kNan<T>, inf = kInf<T>, pi = static_cast<T>(std::acos(-1.0L));
  EXPECT_TRUE(
      same(binary<T>("atan2", {0, -0.0, 0, -0.0, 1, -1}, {1, 1, -1, -1, 0, 0}), {0, -0.0, pi, -pi, pi / 2, -pi / 2}));
  EXPECT_TRUE(same(binary<T>("hypot", {3, inf, nan, -0.0, nan}, {-4, nan, -inf, -0.0, 1}), {5, inf, inf, 0, nan}));
  EXPECT_TRUE(
      same(binary<T>("logaddexp", {-inf, inf, -inf, inf, nan}, {-inf, inf, 2, -inf, 1}), {-inf, inf, 2, inf, nan}));
  EXPECT_TRUE(same(binary<T>("fmod", {5, -5, 5, -5, 5, inf, 1, -4, nan}, {3, 3, -3, -3, 0, 1, inf, 2, 1}),
                   {2, -2, 2, -2, nan, nan, 1, -0.0, nan}));
  EXPECT_TRUE(same(binary<T>("trunc_div", {5, -5, 5, -5, 1, 0}, {3, 3, -3, -3, 0, 0}), {1, -1, -1, 1, inf, nan}));
  EXPECT_TRUE(same(binary<T>("copysign", {1, -2, 0, inf}, {-0.0, 3, -1, -2}), {-1, 2, -0.0, -inf}));
}

TYPED_TEST(SpecialSignedTest, QuotientsAndShifts) {
  using T = TypeParam;
  T min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max(), bits = sizeof(T) * 8;
  T last = static_cast<T>(bits - 1);
  EXPECT_TRUE(same(binary<T>("trunc_div", {7, -7, 7, -7, 5, min, 0, min}, {2, 2, -2, -2, 0, -1, 0, 0}),
                   {3, -3, -3, 3, -1, min, -1, -1}));
  EXPECT_TRUE(same(binary<T>("fmod", {7, -7, 7, -7, 5, min, 0, min}, {2, 2, -2, -2, 0, -1, 0, 0}),
                   {1, -1, 1, -1, 5, 0, 0, min}));
  EXPECT_TRUE(same(binary<T>("left_shift", {1, -3, 5, 1, 7, 7}, {last, 2, 0, bits, -1, max}), {min, -12, 5, 0, 0, 0}));
  EXPECT_TRUE(same(binary<T>("right_shift", {min, -9, max, 1, -7, 7, -7}, {last, 2, 1, bits, -1, max, min}),
                   {-1, -3, static_cast<T>(max / 2), 0, -1, 0, -1}));
  EXPECT_TRUE(same(binary<T>("bitwise_and", {12, -1, min}, {10, 7, -1}), {8, 7, min}));
  EXPECT_TRUE(same(binary<T>("bitwise_or", {12, -1, min}, {10, 7, 1}), {14, -1, static_cast<T>(min + 1)}));
  EXPECT_TRUE(same(binary<T>("bitwise_xor", {12, -1, min}, {10, 7, -1}), {6, -8, max}));
  EXPECT_TRUE(same(unary<T>("bitwise_not", {0, -1, max}), {-1, 0, min}));
}

TEST(SpecialTest, Bytes) {
  EXPECT_TRUE(same(binary<uint8_t>("trunc_div", {7, 7}, {2, 0}), {3, 255}));
  EXPECT_TRUE(same(binary<uint8_t>("left_shift", {1, 255, 3}, {7, 4, 8}), {128, 240, 0}));
  EXPECT_TRUE(same(binary<uint8_t>("right_shift", {128, 255, 3}, {7, 4, 8}), {1, 15, 0}));
  EXPECT_TRUE(same(unary<uint8_t>("bitwise_not", {0, 60}), {255, 195}));
  EXPECT_EQ(values<bool>(run("logical_xor", {vec<bool>({0, 0, 1, 1}), vec<bool>({0, 1, 0, 1})})),
            (std::vector<bool>{0, 1, 1, 0}));
}

/// The C library's lgamma writes the sign to a global, which other programs read; ours does not.
TEST(SpecialTest, NoSignIsWritten) {
  signgam = 42;
  unary<double>("lgamma", {-0.5, 2.5});
  EXPECT_EQ(signgam, 42);
}

TEST(SpecialTest, OrdersAreChecked) {
  EXPECT_EQ(message(run("polygamma", {vec<float>({1})}, PolygammaAttrs::make(171))),
            "the order is 171: 171! overflows | give an order from 0 to 170");
}

} // namespace
} // namespace wg::runtime
