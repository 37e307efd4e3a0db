// What one element is, as a formula: a `Real` is a scalar or a native vector of floats under construction, `a * b + c`
// builds arith ops where the op stands.
#pragma once

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace wg::ir {

/// A truth value.
struct Truth {
  mlir::OpBuilder *b;
  mlir::Location loc;
  mlir::Value v;
};

struct Real {
  mlir::OpBuilder *b;
  mlir::Location loc;
  mlir::Value v;

  Real(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) : b(&builder), loc(loc), v(value) {}
  Real at(mlir::Value value) const { return Real(*b, loc, value); }
  Real number(double value) const { return at(constant(*b, loc, v.getType(), value)); }
  template <class Op, class... A> Real make(A... operands) const { return at(Op::create(*b, loc, operands...)); }
  Truth compared(Order order, const Real &other) const { return {b, loc, compare(*b, loc, order, v, other.v)}; }
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

inline Real operator+(const Real &x, const Real &y) { return x.make<mlir::arith::AddFOp>(x.v, y.v); }
inline Real operator-(const Real &x, const Real &y) { return x.make<mlir::arith::SubFOp>(x.v, y.v); }
inline Real operator*(const Real &x, const Real &y) { return x.make<mlir::arith::MulFOp>(x.v, y.v); }
inline Real operator/(const Real &x, const Real &y) { return x.make<mlir::arith::DivFOp>(x.v, y.v); }
inline Real operator-(const Real &x) { return x.make<mlir::arith::NegFOp>(x.v); }
inline Real operator+(const Real &x, double y) { return x + x.number(y); }
inline Real operator-(const Real &x, double y) { return x - x.number(y); }
inline Real operator*(const Real &x, double y) { return x * x.number(y); }
inline Real operator-(double x, const Real &y) { return y.number(x) - y; }
inline Real operator/(double x, const Real &y) { return y.number(x) / y; }
inline Truth operator<(const Real &x, const Real &y) { return x.compared(Order::less, y); }
inline Truth operator<(const Real &x, double y) { return x < x.number(y); }
inline Truth operator>(const Real &x, double y) { return x.compared(Order::greater, x.number(y)); }
inline Truth operator==(const Real &x, double y) { return x.compared(Order::equal, x.number(y)); }
inline Truth operator&(const Truth &x, const Truth &y) {
  return {x.b, x.loc, mlir::arith::AndIOp::create(*x.b, x.loc, x.v, y.v)};
}
inline Truth operator|(const Truth &x, const Truth &y) {
  return {x.b, x.loc, mlir::arith::OrIOp::create(*x.b, x.loc, x.v, y.v)};
}
inline Real select(const Truth &c, const Real &x, const Real &y) {
  return x.make<mlir::arith::SelectOp>(c.v, x.v, y.v);
}
inline Real select(const Truth &c, const Real &x, double y) { return select(c, x, x.number(y)); }
inline Real select(const Truth &c, double x, const Real &y) { return select(c, y.number(x), y); }

inline Real abs(const Real &x) { return x.make<mlir::math::AbsFOp>(x.v); }
inline Real sqrt(const Real &x) { return x.make<mlir::math::SqrtOp>(x.v); }
inline Real exp(const Real &x) { return x.make<mlir::math::ExpOp>(x.v); }
inline Real log(const Real &x) { return x.make<mlir::math::LogOp>(x.v); }
inline Real log1p(const Real &x) { return x.make<mlir::math::Log1pOp>(x.v); }
inline Real round(const Real &x) { return x.make<mlir::math::RoundEvenOp>(x.v); }
inline Real copysign(const Real &x, const Real &sign) { return x.make<mlir::math::CopySignOp>(x.v, sign.v); }
inline Real fma(const Real &a, const Real &b, const Real &c) { return a.make<mlir::math::FmaOp>(a.v, b.v, c.v); }

/// c[0] + c[1] x + ... by Horner's rule.
inline Real polynomial(const Real &x, llvm::ArrayRef<double> c) {
  Real y = x.number(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    y = fma(y, x, x.number(coefficient));
  return y;
}

/// x to the power n >= 1 by squaring.
inline Real power(const Real &x, int64_t n) {
  if (n == 1)
    return x;
  Real half = power(x, n / 2), square = half * half;
  return n % 2 ? square * x : square;
}

/// f of x in f64: narrower formats are widened, and the result rounded once more.
template <class F> mlir::Value inDouble(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, F f) {
  mlir::Type type = x.getType(), wide = withLanes(b.getF64Type(), type);
  if (wide == type)
    return f(Real(b, loc, x)).v;
  Real y = f(Real(b, loc, mlir::arith::ExtFOp::create(b, loc, wide, x)));
  return mlir::arith::TruncFOp::create(b, loc, type, y.v);
}

} // namespace wg::ir
