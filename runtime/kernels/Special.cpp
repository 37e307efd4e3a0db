// Further functions of one and two numbers: those of the C library, and by other formulas than compiled code has them,
// so that each checks the other, the inverse error function and the derivatives of log gamma.
#include "runtime/kernels/Elements.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace wg::runtime {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// ---- erfinv ---------------------------------------------------------------------------------------------------------
/// The root y of erf(y) = x by Halley's method; in the upper half of (0, 1) of erfc(y) = 1 - x, which is exact. It
/// starts within 1 percent: from two terms of the series, or as Winitzki 2008 inverts exp(-y^2 ...) approximately.
static double erfinvOf(double x) {
  double a = std::abs(x);
  if (!(a < 1))
    return a == 1 ? std::copysign(kInfinity, x) : kNoNumber;
  double rest = 1 - a, y;
  if (a < 0.5) {
    y = a * (1 + std::numbers::pi / 12 * a * a) / (2 * std::numbers::inv_sqrtpi);
  } else {
    constexpr double shape = 0.147;
    double logarithm = std::log(rest * (2 - rest)), middle = 2 / (std::numbers::pi * shape) + logarithm / 2;
    y = std::sqrt(std::sqrt(middle * middle - logarithm / shape) - middle);
  }
  for (int step = 0; step < 3; ++step) {
    double excess = a < 0.5 ? std::erf(y) - a : rest - std::erfc(y);
    double shift = excess * std::exp(y * y) / (2 * std::numbers::inv_sqrtpi);
    y -= shift / (1 + shift * y);
  }
  return std::copysign(y, x);
}

// ---- The gamma function ---------------------------------------------------------------------------------------------
/// lgamma writes the sign to a global; this one does not.
template <class T> static T lgammaOf(T x) {
  int sign;
  return static_cast<T>(::lgamma_r(static_cast<double>(x), &sign));
}

// B_2k / (2k)! of the Bernoulli numbers, k = 1, 2, ...
static constexpr long double kBernoulliByFactorial[] = {
    8.3333333333333333333e-02L, -1.3888888888888888889e-03L, 3.3068783068783068783e-05L, -8.2671957671957671958e-07L,
    2.0876756987868098979e-08L, -5.2841901386874931848e-10L, 1.3382536530684678833e-11L, -3.3896802963225828668e-13L,
    8.5860620562778445641e-15L, -2.1748686985580618730e-16L, 5.5090028283602295153e-18L, -1.3954464685812523341e-19L};

static long double powerOf(long double x, int64_t n) {
  long double y = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2)
      y *= x;
  return y;
}

/// The sum of (x + k)^-(n + 1) over k >= 0, for x >= 0; of order 0, where there is no such sum, -psi(x). Terms are
/// added until the series of Euler and Maclaurin at what x has become ends below the last digit.
static long double zetaOf(long double x, int64_t n) {
  long double sum = 0;
  for (; x < static_cast<long double>(12 + n); ++x)
    sum += 1 / powerOf(x, n + 1);
  long double order = static_cast<long double>(n), inverse = 1 / x;
  long double factor = powerOf(inverse, n + 1), term = order + 1; // (n + 1) ... (n + 2k - 1)
  long double series = factor / 2;
  for (size_t k = 0; k < std::size(kBernoulliByFactorial); ++k) {
    factor *= inverse;
    series += kBernoulliByFactorial[k] * term * factor;
    factor *= inverse;
    long double at = order + 2 * static_cast<long double>(k) + 2;
    term *= at * (at + 1);
  }
  return sum + series + (n == 0 ? -std::log(x) : powerOf(inverse, n) / order);
}

/// psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x). Below 0, with x = u + floor(x) and u + v = 1, the terms with negative
/// x + k are those of zeta(n + 1, v), up to the sign, without those of zeta(n + 1, 1 - x).
static double polygammaOf(double x, int64_t n) {
  long double sum;
  if (x < 0) {
    long double below = std::floor(x), u = x - below, v = below + 1 - x;
    if (u == 0)
      return n % 2 ? kInfinity : kNoNumber;
    long double mirrored = zetaOf(v, n) - zetaOf(1 - static_cast<long double>(x), n);
    sum = zetaOf(u, n) + (n % 2 ? mirrored : -mirrored);
  } else {
    sum = zetaOf(x, n);
  }
  return static_cast<double>((n % 2 ? sum : -sum) * std::tgamma(static_cast<long double>(n) + 1));
}

static Status polygammaRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (int64_t n = attrs.integer(0); n < 0 || n > 170)
    return valueError(say("the order is ", n, n < 0 ? ": it is not negative" : ": 171! overflows"),
                      "give an order from 0 to 170");
  return sameTypeRule(operands, attrs, results);
}

static Status polygammaKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  int64_t n = attrs.integer(0);
  return visit(Floats(), operands[0].dtype(), [&]<class T>(T) -> Status {
    const T *x = operands[0].data<T>();
    T *__restrict y = results[0].data<T>();
    forChunks(results[0].numElements(), 1 << 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(polygammaOf(static_cast<double>(x[i]), n));
    });
    return {};
  });
}

// ---- Two numbers ----------------------------------------------------------------------------------------------------
/// max(a, b) + log(1 + e^-|a - b|); what equals itself differs by 0, infinities too.
template <class T> static T logaddexpOf(T a, T b) {
  T difference = a == b ? T(0) : a - b;
  return maximumOf(a, b) + std::log1p(std::exp(-std::abs(difference)));
}

std::span<const KernelRow> specialKernels() {
  static constexpr KernelRow rows[] = {
      unary<Floats>("cbrt", [](auto x) { return std::cbrt(x); }),
      unary<Floats>("exp2", [](auto x) { return std::exp2(x); }),
      unary<Floats>("log2", [](auto x) { return std::log2(x); }),
      unary<Floats>("log10", [](auto x) { return std::log10(x); }),
      unary<Floats>("tan", [](auto x) { return std::tan(x); }),
      unary<Floats>("asin", [](auto x) { return std::asin(x); }),
      unary<Floats>("acos", [](auto x) { return std::acos(x); }),
      unary<Floats>("atan", [](auto x) { return std::atan(x); }),
      unary<Floats>("sinh", [](auto x) { return std::sinh(x); }),
      unary<Floats>("cosh", [](auto x) { return std::cosh(x); }),
      unary<Floats>("asinh", [](auto x) { return std::asinh(x); }),
      unary<Floats>("acosh", [](auto x) { return std::acosh(x); }),
      unary<Floats>("atanh", [](auto x) { return std::atanh(x); }),
      unary<Floats>("erfc", [](auto x) { return std::erfc(x); }),
      unary<Floats>("erfinv", []<class T>(T x) { return static_cast<T>(erfinvOf(static_cast<double>(x))); }),
      unary<Floats>("lgamma", [](auto x) { return lgammaOf(x); }),
      {"polygamma", polygammaRule, polygammaKernel},
      binary<Floats>("atan2", [](auto a, auto b) { return std::atan2(a, b); }),
      binary<Floats>("hypot", [](auto a, auto b) { return std::hypot(a, b); }),
      binary<Floats>("logaddexp", [](auto a, auto b) { return logaddexpOf(a, b); }),
  };
  return rows;
}

} // namespace wg::runtime
