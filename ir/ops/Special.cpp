// Further functions of one and two numbers: what an element is, and each slope. What the compiler has no polynomial for
// and the C library no function that any thread may call is a formula here, in f64: lgamma, polygamma, erfinv. Their
// rational functions are minimax fits (Lawson's weights, in 45 digits) to what is named beside each.
#include "ir/Build.h"
#include "ir/ops/Formula.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace wg::ir {

//===- Elements ---------------------------------------------------------------------------------------------===//

Value CbrtOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::CbrtOp::create(b, loc, x[0]); }
Value Exp2Op::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::Exp2Op::create(b, loc, x[0]); }
Value Log2Op::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::Log2Op::create(b, loc, x[0]); }
Value Log10Op::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::Log10Op::create(b, loc, x[0]); }
Value TanOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::TanOp::create(b, loc, x[0]); }
Value AsinOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AsinOp::create(b, loc, x[0]); }
Value AcosOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AcosOp::create(b, loc, x[0]); }
Value AtanOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AtanOp::create(b, loc, x[0]); }
Value SinhOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::SinhOp::create(b, loc, x[0]); }
Value CoshOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::CoshOp::create(b, loc, x[0]); }
Value AsinhOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AsinhOp::create(b, loc, x[0]); }
Value AcoshOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AcoshOp::create(b, loc, x[0]); }
Value AtanhOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::AtanhOp::create(b, loc, x[0]); }
Value ErfcOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::ErfcOp::create(b, loc, x[0]); }
Value Atan2Op::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::Atan2Op::create(b, loc, x[0], x[1]); }

/// The larger times sqrt(1 + (smaller / larger)^2); of narrow formats the squares and their sum fit into f64.
Value HypotOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Real u = abs(Real(b, loc, x[0])), v = abs(Real(b, loc, x[1]));
  Truth infinite = (u == kInfinity) | (v == kInfinity);
  Type type = x[0].getType(), wide = withLanes(b.getF64Type(), type);
  if (wide != type) {
    Real s = u.make<arith::ExtFOp>(wide, u.v), t = u.make<arith::ExtFOp>(wide, v.v);
    return select(infinite, kInfinity, u.make<arith::TruncFOp>(type, sqrt(s * s + t * t).v)).v;
  }
  Real larger = u.at(maximum(b, loc, u.v, v.v)), smaller = u.at(minimum(b, loc, u.v, v.v)), q = smaller / larger;
  return select(infinite, kInfinity, select(larger == 0, 0, larger * sqrt(fma(q, q, q.number(1))))).v;
}

/// max(x, y) + log(1 + e^-|x - y|), where the difference of a number from itself is 0, that of infinities too.
Value LogaddexpOp::scalar(OpBuilder &b, Location loc, ValueRange operands) {
  Real x(b, loc, operands[0]), y(b, loc, operands[1]);
  Real difference = select(x.compared(Order::equal, y), 0, x - y);
  return (x.at(maximum(b, loc, x.v, y.v)) + log1p(exp(-abs(difference)))).v;
}

//===- The inverse error function ----------------------------------------------------------------------------===//

// erfinv(x) / x in 0.85^2 - x^2, |x| <= 0.85; error 8e-17.
static constexpr double kErfinvCentre[] = {1.19753231156709125715, 11.7702765174415363904,  43.5835336199566052333,
                                           75.906909352420841312,  63.4820765868165802942,  23.2553562581460335335,
                                           2.89065300833992118392, 0.0542641727864531688704};
static constexpr double kErfinvCentreBelow[] = {1.0,
                                                10.5800900303586006156,
                                                42.9648018842427753324,
                                                84.3347904769511327984,
                                                82.9392221309633144639,
                                                38.4330352691325532714,
                                                7.0250988007743394386,
                                                0.319644605561315912137};
// erfinv(x) in r = sqrt(-log(1 - x)), x from 0.85 to the last number below 1, r from 1.37 to 6.07; error 2e-17.
static constexpr double kErfinvTail[] = {
    -0.00059532207907897180557, 0.00758020359750102581918, 0.842503894609731775071,
    2.08286319334339260711,     2.90845050076959653257,    3.28992254585386841671,
    1.21097389677030181867,     0.148131707098636958908,   0.00512475294581542408532};
static constexpr double kErfinvTailBelow[] = {1.0,
                                              2.18025774039454488605,
                                              4.16539533825513842613,
                                              4.23042835656547432535,
                                              3.53032580471422733255,
                                              1.22322809219099307333,
                                              0.148182777928776403056,
                                              0.00512421824645213464234,
                                              4.45260938243268925337e-9};

Value ErfinvOp::scalar(OpBuilder &b, Location loc, ValueRange operands) {
  return inDouble(b, loc, operands[0], [](const Real &x) {
    Real a = abs(x), t = fma(-x, x, x.number(0.7225));
    Real centre = x * (polynomial(t, kErfinvCentre) / polynomial(t, kErfinvCentreBelow));
    Real r = sqrt(-log(1 - a)), tail = polynomial(r, kErfinvTail) / polynomial(r, kErfinvTailBelow);
    return select(a < 0.85, centre, copysign(select(a == 1, kInfinity, tail), x));
  });
}

//===- The gamma function and its derivatives ----------------------------------------------------------------===//

// sin(pi d) / d and (cos(pi d) - 1) / d^2 in d^2, |d| <= 1/4; errors 2e-21, 4e-19.
static constexpr double kSinPi[] = {3.14159265358979323846,     -5.16771278004997001729,     2.5501640398773414656,
                                    -0.599264529320286597945,   0.0821458865795424892561,    -0.00737042987268291798129,
                                    0.000466282589783131873094, -0.0000217167636399510128281};
static constexpr double kCosPi[] = {-4.93480220054467930742,    4.05871212641676511476,    -1.33526276885379890887,
                                    0.235330630283275524161,    -0.0258068879426433560378, 0.00192949356183248921491,
                                    -0.000103699162979410044246};

namespace {
/// sin(pi x) and cos(pi x) for the reflections: x = n + distance, by the distance to the nearer quarter.
struct Turn {
  Real distance;
  Truth steep;       ///< |distance| > 1/4: sine and cosine have changed places
  Real sine, cosine; ///< absolute values
  Real byPi;         ///< sine / pi, of which a tiny distance loses no digit

  explicit Turn(const Real &x) : distance(x - round(x)), steep(abs(distance) > 0.25), sine(x), cosine(x), byPi(x) {
    Real size = abs(distance), d = select(steep, 0.5 - size, size), z = d * d;
    Real rising = polynomial(z, kSinPi), falling = fma(polynomial(z, kCosPi), z, z.number(1));
    sine = select(steep, falling, d * rising);
    cosine = select(steep, d * rising, falling);
    byPi = select(steep, falling * std::numbers::inv_pi, d * (rising * std::numbers::inv_pi));
  }
  Real cotangent() const { return copysign(cosine / sine, distance); }
};
} // namespace

// log(gamma(t)) / ((t - 1) (t - 2)) in t - 1/2, t in [1/2, 5/2]; error 3e-17.
static constexpr double kLgamma[] = {0.763153257232933428311, 4.50388900326732769817,    10.2977007489755703783,
                                     11.5532646545965671023,  6.65800782822288015911,    1.88799386939720969194,
                                     0.230197814461295281056, 0.00870372171004459125817, 0.0000225819833116003334742};
static constexpr double kLgammaBelow[] = {1.0,
                                          6.66553797741584559812,
                                          17.6445124469653124658,
                                          23.7206295725047414998,
                                          17.228635440804402202,
                                          6.67110424706804146427,
                                          1.27790625255865605389,
                                          0.102697673168162723176,
                                          0.00233194323405651567492};
// B_2k / (2k (2k - 1)), k = 1, 2, ...: Stirling's series.
static constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};

/// log(gamma(q)) for q >= 0. Below 8 it is that of t in [1/2, 5/2] and the logarithm of what gamma's recurrence
/// multiplies, which is 1 where q is t: nothing cancels near the zeros 1 and 2. From 8 on, Stirling's series.
static Real lgammaAbove(const Real &q) {
  Real t = q, product = q.number(1);
  for (int step = 0; step < 6; ++step) {
    Truth above = t > 2.5;
    t = select(above, t - 1, t);
    product = select(above, product * t, product);
  }
  Truth low = q < 0.5, high = q > 8;
  t = select(low, q + 1, t);
  Real logarithm = log(select(low | high, q, product)), s = t - 0.5;
  Real near =
      (t - 1) * (t - 2) * (polynomial(s, kLgamma) / polynomial(s, kLgammaBelow)) + select(low, -logarithm, logarithm);
  Real inverse = 1 / q;
  double offset =
      std::log(2 * std::numbers::pi) / 2 - 0.5; // (q - 1/2) log(q) - q + log(2 pi) / 2, which overflows late
  Real far = (q - 0.5) * (logarithm - 1) + (inverse * polynomial(inverse * inverse, kStirling) + offset);
  return select(high, far, near);
}

/// Below 0 by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
Value LgammaOp::scalar(OpBuilder &b, Location loc, ValueRange operands) {
  return inDouble(b, loc, operands[0], [](const Real &x) {
    Truth negative = x < 0;
    Turn turn(x);
    Real y = lgammaAbove(select(negative, 1 - x, x));
    y = select(negative, -log(turn.byPi) - y, y);
    return select((negative & (turn.distance == 0)) | (abs(x) == kInfinity), kInfinity, y);
  });
}

/// The Bernoulli numbers B_2, B_4, ...
static constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                        5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                        43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

/// psi(q) for q >= 0: the asymptotic series at a = q + 10, less 1/q + ... + 1/(q + 9), two by two.
static Real digammaAbove(const Real &q) {
  SmallVector<double> series; // B_2k / 2k
  for (size_t k = 1; k <= 8; ++k)
    series.push_back(kBernoulli[k - 1] / static_cast<double>(2 * k));
  Real sum = q.number(0);
  for (int k = 8; k >= 0; k -= 2) {
    Real u = k ? q + k : q, v = q + (k + 1); // -0 + 0 would lose the sign of the pole
    sum = sum + (u + v) / (u * v);
  }
  Real a = q + 10, inverse = 1 / a, square = inverse * inverse;
  Real y = (log(a) - sum) - fma(polynomial(square, series), square, inverse * 0.5);
  return select(q == kInfinity, kInfinity, y);
}

/// B_2k / (2k)! (n + 1) (n + 2) ... (n + 2k - 1): the factors of Euler's and Maclaurin's series of zeta(n + 1, a).
static SmallVector<double> zetaSeries(int64_t n) {
  SmallVector<double> series;
  double factor = static_cast<double>(n + 1) / 2;
  for (size_t k = 1; k <= std::size(kBernoulli); ++k) {
    double at = static_cast<double>(2 * k), s = static_cast<double>(n + 1);
    series.push_back(kBernoulli[k - 1] * factor);
    factor *= (s + at - 1) * (s + at) / ((at + 1) * (at + 2));
  }
  return series;
}

/// How many terms of zeta(n + 1, q) are added one by one, so that for every q the rest's series ends below 2^-56 of the
/// sum.
static int termsOfZeta(int64_t n) {
  double order = static_cast<double>(n), last = std::fabs(zetaSeries(n).back());
  for (int terms = 6;; ++terms) {
    double worst = 0;
    for (double q = 0.25; q < 1024; q *= 1.25) {
      double a = q + terms;
      worst = std::max(worst, last * std::pow(a, -24.0) * std::pow(q / a, order) * std::min(q, order));
    }
    if (worst < 0x1p-56)
      return terms;
  }
}

/// n! zeta(n + 1, q) for q >= 0, n >= 1 (Euler and Maclaurin).
static Real zetaAbove(const Real &q, int64_t n) {
  Real sum = q.number(0);
  int terms = termsOfZeta(n);
  for (int k = terms - 1; k >= 0; --k)
    sum = sum + 1 / power(k ? q + k : q, n + 1);
  Real inverse = 1 / (q + terms), square = inverse * inverse;
  Real rest =
      fma(polynomial(square, zetaSeries(n)), square, fma(inverse, q.number(0.5), q.number(1 / static_cast<double>(n))));
  return (sum + power(inverse, n) * rest) * std::tgamma(static_cast<double>(n) + 1);
}

/// The derivative of order n of cot(pi x), over pi^n, is a polynomial in c = cot(pi x): from c by d/dc and the factor
/// -(1 + c^2). All powers are even or all are odd: those of c^2, times c if n is even.
static Real cotangentSlope(const Real &c, int64_t n) {
  std::vector<double> p{0, 1};
  for (int64_t order = 0; order < n; ++order) {
    std::vector<double> next(p.size() + 1);
    for (size_t k = 1; k < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = std::move(next);
  }
  SmallVector<double> squares;
  for (size_t k = n % 2 ? 0 : 1; k < p.size(); k += 2)
    squares.push_back(p[k]);
  Real y = polynomial(c * c, squares);
  return n % 2 ? y : y * c;
}

/// Below 0 by reflection: (-1)^n psi_n(1 - x) - psi_n(x) is pi times the derivative of order n of cot(pi x).
Value PolygammaOp::scalar(OpBuilder &b, Location loc, ValueRange operands) {
  int64_t n = static_cast<int64_t>(getN());
  return inDouble(b, loc, operands[0], [n](const Real &x) {
    Truth negative = x < 0;
    Real q = select(negative, 1 - x, x);
    Real above = n == 0 ? digammaAbove(q) : zetaAbove(q, n); // psi_n is that times (-1)^(n + 1), for n > 0
    Turn turn(x);
    Real slope = cotangentSlope(turn.cotangent(), n) * std::pow(std::numbers::pi, static_cast<double>(n + 1));
    Real below = (n == 0 ? above : -above) - slope;
    if (n % 2 == 0 && n > 0)
      above = -above;
    return select(negative, select(turn.distance == 0, n % 2 ? kInfinity : kNoNumber, below), above);
  });
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

static Expr sqrt(const Expr &x) { return x.make<SqrtOp>(x); }
static Expr polygamma(const Expr &x, uint64_t n) { return x.make<PolygammaOp>(x, n); }

/// y = x^(1/3), so dy/dx = 1/3 / y^2: infinite at 0. Reads y.
Slopes CbrtOp::slopes(Operands, Expr y) { return over(y * y, 1.0 / 3); }
/// y = 2^x, so dy/dx = y log(2). Reads y.
Slopes Exp2Op::slopes(Operands, Expr y) { return y * std::numbers::ln2; }
/// y = log2(x), so dy/dx = 1 / (x log(2)).
Slopes Log2Op::slopes(Operands x, Expr) { return over(x[0], std::numbers::log2e); }
/// y = log10(x), so dy/dx = 1 / (x log(10)).
Slopes Log10Op::slopes(Operands x, Expr) { return over(x[0], std::numbers::log10e); }
/// y = tan(x), so dy/dx = 1 + y^2. Reads y.
Slopes TanOp::slopes(Operands, Expr y) { return 1 + y * y; }
/// y = asin(x), so dy/dx = 1 / sqrt(1 - x^2): infinite at -1 and 1.
Slopes AsinOp::slopes(Operands x, Expr) { return over(sqrt((1 - x[0]) * (1 + x[0]))); }
/// y = acos(x), so dy/dx = -1 / sqrt(1 - x^2): infinite at -1 and 1.
Slopes AcosOp::slopes(Operands x, Expr) { return over(sqrt((1 - x[0]) * (1 + x[0])), -1); }
/// y = atan(x), so dy/dx = 1 / (1 + x^2).
Slopes AtanOp::slopes(Operands x, Expr) { return over(1 + x[0] * x[0]); }
/// y = sinh(x), so dy/dx = cosh(x).
Slopes SinhOp::slopes(Operands x, Expr) { return x[0].make<CoshOp>(x[0]); }
/// y = cosh(x), so dy/dx = sinh(x).
Slopes CoshOp::slopes(Operands x, Expr) { return x[0].make<SinhOp>(x[0]); }
/// y = asinh(x), so dy/dx = 1 / sqrt(x^2 + 1), which does not overflow.
Slopes AsinhOp::slopes(Operands x, Expr) { return over(x[0].make<HypotOp>(x[0], x[0].ones())); }
/// y = acosh(x), so dy/dx = 1 / (sqrt(x - 1) sqrt(x + 1)): infinite at 1, NaN below.
Slopes AcoshOp::slopes(Operands x, Expr) { return over(sqrt(x[0] - 1) * sqrt(x[0] + 1)); }
/// y = atanh(x), so dy/dx = 1 / (1 - x^2).
Slopes AtanhOp::slopes(Operands x, Expr) { return over((1 - x[0]) * (1 + x[0])); }
/// y = 1 - erf(x), so dy/dx = -2 / sqrt(pi) exp(-x^2).
Slopes ErfcOp::slopes(Operands x, Expr) { return -2 * std::numbers::inv_sqrtpi * exp(-(x[0] * x[0])); }
/// erf(y) = x, so dy/dx = sqrt(pi) / 2 exp(y^2). Reads y.
Slopes ErfinvOp::slopes(Operands, Expr y) { return 0.5 / std::numbers::inv_sqrtpi * exp(y * y); }
/// y = log |gamma(x)|, so dy/dx = digamma(x).
Slopes LgammaOp::slopes(Operands x, Expr) { return polygamma(x[0], 0); }
/// y = psi_n(x), so dy/dx = psi_(n + 1)(x); beyond the highest order there is no number.
Slopes PolygammaOp::slopes(Operands x, Expr) {
  return getN() < 170 ? polygamma(x[0], getN() + 1) : x[0].filled(kNoNumber);
}

/// c = the angle of (b, a), so dc/da = b / r^2 and dc/db = -a / r^2 with r^2 = a^2 + b^2; 0 where r is.
Slopes Atan2Op::slopes(Operands x, Expr) {
  Expr a = x[0], b = x[1], r = a.make<HypotOp>(a, b), origin = equal(r, 0), length = where(origin, r.ones(), r);
  return {where(origin, r.zeros(), b / length / length), where(origin, r.zeros(), -(a / length / length))};
}

/// c = sqrt(a^2 + b^2), so dc/da = a / c and dc/db = b / c; 0 where c is. Reads c.
Slopes HypotOp::slopes(Operands x, Expr c) {
  Expr origin = equal(c, 0), length = where(origin, c.ones(), c);
  return {where(origin, c.zeros(), x[0] / length), where(origin, c.zeros(), x[1] / length)};
}

/// c = log(e^a + e^b), so dc/da = sigmoid(a - b) and dc/db = sigmoid(b - a); where both are one infinity, as at a tie.
Slopes LogaddexpOp::slopes(Operands x, Expr) {
  Expr a = x[0], b = x[1], infinite = notOf(abs(a) < kInfinity) && equal(a, b);
  Expr difference = where(infinite, a.zeros(), a - b);
  return {sigmoid(difference), sigmoid(-difference)};
}

} // namespace wg::ir
