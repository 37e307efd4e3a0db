// A tensor together with the user's line: composites are written in it as formulas, each op of which is at that line.
#pragma once

#include "frontend/ops/Operands.h"

#include <concepts>
#include <utility>

namespace wg::detail {

struct Placed {
  Tensor x;
  Where at;
  Placed(Tensor x, const Where &at) : x(std::move(x)), at(at) {}
  operator Located() const { return Located(x, at); }
  operator Tensor() const & { return x; }
  operator Tensor() && { return std::move(x); }
};

inline Placed operator-(const Placed &x) { return {neg(x), x.at}; }
inline Placed operator!(const Placed &x) { return {logical_not(x), x.at}; }
inline Placed operator+(const Placed &a, const Placed &b) { return {add(a, b), a.at}; }
inline Placed operator-(const Placed &a, const Placed &b) { return {sub(a, b), a.at}; }
inline Placed operator*(const Placed &a, const Placed &b) { return {mul(a, b), a.at}; }
inline Placed operator/(const Placed &a, const Placed &b) { return {div(a, b), a.at}; }
inline Placed operator<(const Placed &a, const Placed &b) { return {less(a, b), a.at}; }
inline Placed operator<=(const Placed &a, const Placed &b) { return {less_equal(a, b), a.at}; }
inline Placed operator>(const Placed &a, const Placed &b) { return {greater(a, b), a.at}; }
inline Placed operator==(const Placed &a, const Placed &b) { return {equal(a, b), a.at}; }
inline Placed operator&&(const Placed &a, const Placed &b) { return {logical_and(a, b), a.at}; }

template <class T> Located beside(T number, const Placed &x) { return Located(number, x.at); }
template <Arithmetic T> Placed operator+(const Placed &a, T b) { return {add(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator+(T a, const Placed &b) { return {add(beside(a, b), b), b.at}; }
template <Arithmetic T> Placed operator-(const Placed &a, T b) { return {sub(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator-(T a, const Placed &b) { return {sub(beside(a, b), b), b.at}; }
template <Arithmetic T> Placed operator*(const Placed &a, T b) { return {mul(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator*(T a, const Placed &b) { return {mul(beside(a, b), b), b.at}; }
template <Arithmetic T> Placed operator/(const Placed &a, T b) { return {div(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator<(const Placed &a, T b) { return {less(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator<=(const Placed &a, T b) { return {less_equal(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator>(const Placed &a, T b) { return {greater(a, beside(b, a)), a.at}; }
template <Arithmetic T> Placed operator==(const Placed &a, T b) { return {equal(a, beside(b, a)), a.at}; }

inline Placed abs(const Placed &x) { return {wg::abs(x), x.at}; }
inline Placed exp(const Placed &x) { return {wg::exp(x), x.at}; }
inline Placed expm1(const Placed &x) { return {wg::expm1(x), x.at}; }
inline Placed log(const Placed &x) { return {wg::log(x), x.at}; }
inline Placed log1p(const Placed &x) { return {wg::log1p(x), x.at}; }
inline Placed erf(const Placed &x) { return {wg::erf(x), x.at}; }
inline Placed sqrt(const Placed &x) { return {wg::sqrt(x), x.at}; }
inline Placed rsqrt(const Placed &x) { return {wg::rsqrt(x), x.at}; }
inline Placed relu(const Placed &x) { return {wg::relu(x), x.at}; }
inline Placed tanh(const Placed &x) { return {wg::tanh(x), x.at}; }
inline Placed sigmoid(const Placed &x) { return {wg::sigmoid(x), x.at}; }
inline Placed softplus(const Placed &x) { return {wg::softplus(x), x.at}; }
inline Placed square(const Placed &x) { return {wg::square(x), x.at}; }
inline Placed stop_gradient(const Placed &x) { return {wg::stop_gradient(x), x.at}; }
inline Placed ones_like(const Placed &x) { return {wg::ones_like(x), x.at}; }
inline Placed zeros_like(const Placed &x) { return {wg::zeros_like(x), x.at}; }
inline Placed cast(const Placed &x, DType dtype) { return {wg::cast(x, dtype), x.at}; }
template <Arithmetic T> Placed maximum(const Placed &x, T low) { return {wg::maximum(x, beside(low, x)), x.at}; }
template <Arithmetic T> Placed minimum(const Placed &x, T high) { return {wg::minimum(x, beside(high, x)), x.at}; }

/// `choose(c, a, b)` is wg::where, whose name is that of the line; a and b may be numbers, not both.
inline Placed choose(const Placed &c, const Placed &a, const Placed &b) { return {wg::where(c, a, b), c.at}; }
template <Arithmetic T> Placed choose(const Placed &c, const Placed &a, T b) {
  return {wg::where(c, a, beside(b, a)), c.at};
}
template <Arithmetic T> Placed choose(const Placed &c, T a, const Placed &b) {
  return {wg::where(c, beside(a, b), b), c.at};
}

inline Placed sumOf(const Placed &x, const Axes &axes = Axes::all(), bool keepdims = false) {
  return {reduce_sum(x, axes, keepdims), x.at};
}
inline Placed meanOf(const Placed &x, const Axes &axes = Axes::all(), bool keepdims = false) {
  return {mean(x, axes, keepdims), x.at};
}

} // namespace wg::detail
