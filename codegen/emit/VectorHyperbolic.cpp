// Exponentials and logarithms to other bases, hyperbolic functions and their inverses: from the pieces of exp and log,
// so that nothing is lost near 0 and nothing overflows before the result does.
#include "codegen/emit/VectorNumbers.h"

#include <limits>
#include <numbers>

namespace wg::codegen::vectors {

// ---- To the bases 2 and 10 ------------------------------------------------------------------------------------------

/// 2^n e^(r ln 2), x = n + r: exact but for the product.
F exp2(F x) {
  const Format &format = x.e->format;
  F c = clamp(x, format.bits == 32 ? -151 : -1076, format.bits == 32 ? 129 : 1025);
  Rounded n = divideAndRound(c, 1, 2 * format.bias);
  F r = (c - n.n) * std::numbers::ln2;
  return scale(fma(polynomial(r, format.exp), r * r, r + 1), n);
}

/// n + log(1 + f) / ln 2: the power of 2 is exact.
static F log2Of(F n, F f) { return fma(logOf(f.e->number(0), f), std::numbers::log2e, n); }
F log2(F x) { return logarithm(x, log2Of); }

/// log10(2) in two parts, of which n times the first is exact.
static F log10Of(F n, F f) {
  bool narrow = f.e->format.bits == 32;
  double high = narrow ? 0x1.344p-2 : 0x1.34413509fp-2,
         low = narrow ? 4.6050389811952137389e-6 : 1.7336659603752854105e-12;
  return fma(n, high, fma(logOf(f.e->number(0), f), std::numbers::log10e, n * low));
}
F log10(F x) { return logarithm(x, log10Of); }

// ---- Hyperbolic functions -------------------------------------------------------------------------------------------

/// (e^a - 1) / 4 for a >= 0, which is finite wherever sinh(a) and cosh(a) are: beyond, where twice of it is inf.
static F quarterExpm1(F a) {
  const Format &format = a.e->format;
  F c = clampAbove(a, format.bits == 32 ? 89.42 : 710.48);
  Rounded n = divideAndRound(c, M_LN2, format.bias - 2);
  F r = remainder(c, n.n), p = fma(polynomial(r, format.expm1), r * r, r), quarter = power(n);
  return fma(p, quarter, quarter - 0.25);
}

/// (E + E / (E + 1)) / 2 with E = e^a - 1 = 4 k. The tiny numbers are their own sine.
F sinh(F x) {
  F a = abs(x), k = quarterExpm1(a), twice = k + k;
  F y = twice + k / (twice + 0.5);
  return select(a < x.e->format.expm1Tiny, x, copysign(y, x));
}

/// (E + 1) / 2 + 1 / (2 (E + 1)).
F cosh(F x) {
  F k = quarterExpm1(abs(x)), twice = k + k;
  return (twice + 0.5) + 0.25 / (twice + 0.5);
}

/// log(a + sqrt(a^2 + 1)) as log1p(a + a^2 / (1 + sqrt(a^2 + 1))); where a^2 + 1 = a^2 in the format it is log(2 a).
F asinh(F x) {
  F a = abs(x), square = a * a;
  B large = a > (x.e->format.bits == 32 ? 0x1p13 : 0x1p28);
  F y = log1p(select(large, a - 1, a + square / (sqrt(square + 1) + 1)));
  y = y + select(large, x.e->number(std::numbers::ln2), x.e->number(0));
  return copysign(y, x);
}

/// log1p(t + sqrt(2 t + t^2)) with t = x - 1, which is exact where it is small; NaN below 1.
F acosh(F x) {
  F t = x - 1;
  B large = x > (x.e->format.bits == 32 ? 0x1p13 : 0x1p28);
  F y = log1p(select(large, t, t + sqrt(fma(t, t, t + t))));
  y = y + select(large, x.e->number(std::numbers::ln2), x.e->number(0));
  return select(x < 1, x.e->number(std::numeric_limits<double>::quiet_NaN()), y);
}

/// log1p(2 a / (1 - a)) / 2: inf at 1, NaN beyond. Half of the tiny numbers' double is exact, but for subnormals: they
/// are their own result.
F atanh(F x) {
  F a = abs(x), y = log1p((a + a) / (1.0 - a)) * 0.5;
  return select(a < x.e->format.expm1Tiny, x, copysign(y, x));
}

} // namespace wg::codegen::vectors
