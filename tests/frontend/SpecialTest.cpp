// Functions of one and two numbers against values in 40 digits (tests/reference/special.inc), eagerly and compiled, in
// f64 and f32; what they are at zeros, poles and infinities is in tests/runtime/SpecialTest.cpp.
#include "tests/frontend/Support.h"

#include <limits>
#include <map>

namespace wg::tests {
namespace {

struct Point {
  double a, b, value;
};
/// The rows of a function, in the table's order.
std::map<std::string, std::vector<Point>> points() {
  std::map<std::string, std::vector<Point>> table;
#define WG_SPECIAL(function, x, value) table[#function].push_back({x, 0, value});
#define WG_SPECIAL2(function, a, b, value) table[#function].push_back({a, b, value});
#include "tests/reference/special.inc"
#undef WG_SPECIAL
#undef WG_SPECIAL2
  return table;
}

/// Units in the last place by which an engine may be wrong: in the eager mode, compiled in f64, and compiled in f32.
/// Where `floor` is not 0, they are those of it for smaller values: the function has zeros that it cannot see coming.
struct Function {
  Tensor (*call)(const Tensor &a, const Tensor &b);
  double eager, compiled, narrow, floor = 0;
};
#define WG_CALL(expression) [](const Tensor &a, const Tensor &b) -> Tensor { return (void)b, expression; }
const std::map<std::string, Function> kFunctions{
    {"cbrt", {WG_CALL(cbrt(a)), 1.5, 1.5, 1.5}},
    {"exp2", {WG_CALL(exp2(a)), 1, 2, 2}},
    {"log2", {WG_CALL(log2(a)), 1.5, 3, 3}},
    {"log10", {WG_CALL(log10(a)), 2, 3, 3}},
    {"tan", {WG_CALL(tan(a)), 1, 1, 1}},
    {"asin", {WG_CALL(asin(a)), 1, 1, 1}},
    {"acos", {WG_CALL(acos(a)), 1, 1, 1}},
    {"atan", {WG_CALL(atan(a)), 1, 1, 1}},
    {"sinh", {WG_CALL(sinh(a)), 2, 3, 3}},
    {"cosh", {WG_CALL(cosh(a)), 2, 3, 3}},
    {"asinh", {WG_CALL(asinh(a)), 2, 3, 3}},
    {"acosh", {WG_CALL(acosh(a)), 2, 3, 3}},
    {"atanh", {WG_CALL(atanh(a)), 2, 3, 3}},
    {"erfc", {WG_CALL(erfc(a)), 3, 3, 3}},
    {"erfinv", {WG_CALL(erfinv(a)), 3, 3, 0.51}},
    {"lgamma", {WG_CALL(lgamma(a)), 3, 5, 0.51, 1}},
    {"digamma", {WG_CALL(digamma(a)), 1, 5, 0.51, 1}},
    {"polygamma1", {WG_CALL(polygamma(1, a)), 1, 5, 0.51}},
    {"polygamma2", {WG_CALL(polygamma(2, a)), 1, 6, 0.51, 1}},
    {"polygamma5", {WG_CALL(polygamma(5, a)), 1, 8, 0.51}},
    {"polygamma30", {WG_CALL(polygamma(30, a)), 1, 20, 0.51}},
    {"atan2", {WG_CALL(atan2(a, b)), 1, 1, 1}},
    {"hypot", {WG_CALL(hypot(a, b)), 1, 2, 1}},
    {"logaddexp", {WG_CALL(logaddexp(a, b)), 3, 4, 4, 1}},
};

/// The largest error in ulp of T, of the numbers that T holds.
template <class T>
std::pair<double, Point> worstOf(const Function &function, const std::vector<Point> &all, bool compiled) {
  std::vector<Point> held;
  for (const Point &point : all)
    if (static_cast<double>(static_cast<T>(point.a)) == point.a &&
        static_cast<double>(static_cast<T>(point.b)) == point.b)
      held.push_back(point);
  std::vector<T> a, b;
  for (const Point &point : held) {
    a.push_back(static_cast<T>(point.a));
    b.push_back(static_cast<T>(point.b));
  }
  auto f = wg::function("f", function.call);
  Tensor x = Tensor::from(a), y = Tensor::from(b);
  std::vector<T> values = (compiled ? f(x, y) : function.call(x, y)).template to_vector<T>();
  std::pair<double, Point> worst{0, held.at(0)};
  for (size_t i = 0; i < held.size(); ++i) {
    T wanted = static_cast<T>(held[i].value);
    double error = 0;
    if (std::isinf(wanted) || std::isinf(values[i])) {
      error = values[i] == wanted ? 0 : std::numeric_limits<double>::infinity();
    } else {
      T scale = static_cast<T>(std::max(std::abs(held[i].value), function.floor));
      T ulp = std::nextafter(scale, std::numeric_limits<T>::infinity()) - scale;
      error = std::abs((static_cast<double>(values[i]) - held[i].value) / static_cast<double>(ulp));
    }
    if (!(error <= worst.first))
      worst = {error, held[i]};
  }
  return worst;
}

TEST(SpecialTest, ValuesAreThoseOfTheTable) {
  for (const auto &[name, rows] : points()) {
    ASSERT_TRUE(kFunctions.contains(name)) << name;
    const Function &function = kFunctions.at(name);
    auto check = [&](const char *where, double bound, std::pair<double, Point> worst) {
      std::printf("  %-12s %-14s %.2f ulp\n", name.c_str(), where, worst.first);
      EXPECT_LE(worst.first, bound) << name << ", " << where << ": at " << std::hexfloat << worst.second.a << ", "
                                    << worst.second.b << std::defaultfloat << " (" << worst.second.a << ", "
                                    << worst.second.b << ")";
    };
    check("eager f64", function.eager, worstOf<double>(function, rows, false));
    check("compiled f64", function.compiled, worstOf<double>(function, rows, true));
    check("eager f32", std::max(function.eager, 1.0), worstOf<float>(function, rows, false));
    check("compiled f32", function.narrow, worstOf<float>(function, rows, true));
  }
  for (const auto &[name, function] : kFunctions)
    EXPECT_TRUE(points().contains(name)) << name << " has no row";
}

TEST(SpecialTest, SlopesOfPolygammaAreTheNextOnes) {
  Tensor x = concat({linspace(0.25, 9.25, 19, f64), linspace(-7.25, -0.25, 15, f64)});
  for (int64_t n : {0, 1, 2, 5}) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = polygamma(n, x);
    expectNear(tape.gradient(reduce_sum(y), x).value(), polygamma(n + 1, x), 1e-14);
  }
  GradientTape tape;
  tape.watch(x);
  expectNear(tape.gradient(reduce_sum(lgamma(x)), x).value(), digamma(x), 1e-14);
}

TEST(SpecialTest, OrdersOfPolygammaEnd) {
  Tensor x{2.5, 3.5};
  EXPECT_TRUE(says(messageOf([&] { polygamma(-1, x); }), "polygamma: the order is -1"));
  EXPECT_TRUE(says(messageOf([&] { polygamma(171, x); }), "give an order from 0 to 170"));
  EXPECT_TRUE(says(messageOf([&] { polygamma(1, cast(x, i32)); }), "polygamma: takes a float, got i32[2]"));
  EXPECT_TRUE(reduce_all(is_finite(polygamma(170, x * 100.0))).item<bool>());
  GradientTape tape;
  tape.watch(x);
  EXPECT_TRUE(reduce_all(is_nan(tape.gradient(reduce_sum(polygamma(170, x)), x).value())).item<bool>());
}

} // namespace
} // namespace wg::tests
