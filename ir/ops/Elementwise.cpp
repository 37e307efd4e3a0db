// One element at a time: what an element is, and each slope. Rules read the result where the formula allows.
#include "ir/Build.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;

namespace wg::ir {

//===- Elements ---------------------------------------------------------------------------------------------===//

static Value select(OpBuilder &b, Location loc, Value c, Value x, Value y) {
  return arith::SelectOp::create(b, loc, c, x, y);
}
static Value zero(OpBuilder &b, Location loc, Value like) { return constant(b, loc, like.getType(), 0.0); }
static Value one(OpBuilder &b, Location loc, Value like) { return constant(b, loc, like.getType(), 1.0); }

/// Chooses arith's op for the kind of the elements.
template <class FloatOp, class IntegerOp> static Value arithmetic(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return FloatOp::create(b, loc, x[0], x[1]);
  return IntegerOp::create(b, loc, x[0], x[1]);
}

Value maximum(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, loc, x, y);
  if (isUnsigned(x))
    return arith::MaxUIOp::create(b, loc, x, y);
  return arith::MaxSIOp::create(b, loc, x, y);
}

Value minimum(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return arith::MinimumFOp::create(b, loc, x, y);
  if (isUnsigned(x))
    return arith::MinUIOp::create(b, loc, x, y);
  return arith::MinSIOp::create(b, loc, x, y);
}

Value AddOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arithmetic<arith::AddFOp, arith::AddIOp>(b, loc, x);
}
Value SubOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arithmetic<arith::SubFOp, arith::SubIOp>(b, loc, x);
}
Value MulOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arithmetic<arith::MulFOp, arith::MulIOp>(b, loc, x);
}
Value DivOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return arith::DivFOp::create(b, loc, x[0], x[1]); }
Value MaximumOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return maximum(b, loc, x[0], x[1]); }
Value MinimumOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return minimum(b, loc, x[0], x[1]); }
Value LogicalAndOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::AndIOp::create(b, loc, x[0], x[1]);
}
Value LogicalOrOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return arith::OrIOp::create(b, loc, x[0], x[1]); }
Value LogicalNotOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::XOrIOp::create(b, loc, x[0], one(b, loc, x[0]));
}
Value SelectOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return select(b, loc, x[0], x[1], x[2]); }
Value StopGradientOp::scalar(OpBuilder &, Location, ValueRange x) { return x[0]; }
Value VersionOp::scalar(OpBuilder &, Location, ValueRange x) { return x[0]; }
Value ExpOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::ExpOp::create(b, loc, x[0]); }
Value Expm1Op::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::ExpM1Op::create(b, loc, x[0]); }
Value LogOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::LogOp::create(b, loc, x[0]); }
Value Log1pOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::Log1pOp::create(b, loc, x[0]); }
Value SqrtOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::SqrtOp::create(b, loc, x[0]); }
Value TanhOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::TanhOp::create(b, loc, x[0]); }
Value SinOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::SinOp::create(b, loc, x[0]); }
Value CosOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::CosOp::create(b, loc, x[0]); }
Value ErfOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::ErfOp::create(b, loc, x[0]); }
Value FloorOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::FloorOp::create(b, loc, x[0]); }
Value CeilOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::CeilOp::create(b, loc, x[0]); }
Value RoundOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::RoundEvenOp::create(b, loc, x[0]); }
Value ReluOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return maximum(b, loc, x[0], zero(b, loc, x[0])); }
Value IsNanOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return compare(b, loc, Order::notEqual, x[0], x[0]); }

Value OnesLikeOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return one(b, loc, x[0]); }
Value ZerosLikeOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return zero(b, loc, x[0]); }

Value RsqrtOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::DivFOp::create(b, loc, one(b, loc, x[0]), math::SqrtOp::create(b, loc, x[0]));
}

/// e / (1 + e) below 0 and 1 / (1 + e) above, with e = exp(-|x|): no overflow, and full accuracy in the lower tail.
Value SigmoidOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, math::AbsFOp::create(b, loc, x[0])));
  Value numerator = select(b, loc, compare(b, loc, Order::less, x[0], zero(b, loc, x[0])), e, one(b, loc, x[0]));
  return arith::DivFOp::create(b, loc, numerator, arith::AddFOp::create(b, loc, one(b, loc, x[0]), e));
}

/// max(x, 0) + log(1 + e^-|x|): neither side overflows, and the lower tail keeps its accuracy.
Value SoftplusOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, math::AbsFOp::create(b, loc, x[0])));
  return arith::AddFOp::create(b, loc, maximum(b, loc, x[0], zero(b, loc, x[0])), math::Log1pOp::create(b, loc, e));
}

/// At an infinity the quotient would be NaN: there it is the sign.
Value SoftsignOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value size = math::AbsFOp::create(b, loc, x[0]), unit = one(b, loc, x[0]);
  Value quotient = arith::DivFOp::create(b, loc, x[0], arith::AddFOp::create(b, loc, unit, size));
  Value infinite =
      compare(b, loc, Order::equal, size, constant(b, loc, x[0].getType(), std::numeric_limits<double>::infinity()));
  return select(b, loc, infinite, math::CopySignOp::create(b, loc, unit, x[0]), quotient);
}

Value NegOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return arith::NegFOp::create(b, loc, x[0]);
  return arith::SubIOp::create(b, loc, zero(b, loc, x[0]), x[0]);
}

Value AbsOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return math::AbsFOp::create(b, loc, x[0]);
  return isUnsigned(x[0]) ? x[0] : math::AbsIOp::create(b, loc, x[0]).getResult();
}

/// x itself where it is NaN; +0 of both zeros.
Value SignOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value above = compare(b, loc, Order::greater, x[0], zero(b, loc, x[0]));
  if (!isFloat(x[0]) && isUnsigned(x[0]))
    return arith::ExtUIOp::create(b, loc, x[0].getType(), above);
  Value below = compare(b, loc, Order::less, x[0], zero(b, loc, x[0]));
  Value other = zero(b, loc, x[0]);
  if (isFloat(x[0]))
    other = select(b, loc, compare(b, loc, Order::notEqual, x[0], x[0]), x[0], other);
  return select(b, loc, above, one(b, loc, x[0]), select(b, loc, below, constant(b, loc, x[0].getType(), -1.0), other));
}

/// Whether the signs of x and y differ.
static Value oppositeSigns(OpBuilder &b, Location loc, Value x, Value y) {
  Value xNegative = compare(b, loc, Order::less, x, zero(b, loc, x));
  return arith::XOrIOp::create(b, loc, xNegative, compare(b, loc, Order::less, y, zero(b, loc, y)));
}

Value safeDivisor(OpBuilder &b, Location loc, Value x, Value divisor) {
  Value bad = compare(b, loc, Order::equal, divisor, zero(b, loc, divisor));
  if (!isUnsigned(x)) {
    unsigned width = getElementTypeOrSelf(x).getIntOrFloatBitWidth();
    Value lowest = constant(b, loc, x.getType(), APInt::getSignedMinValue(width));
    Value overflow = arith::AndIOp::create(b, loc, compare(b, loc, Order::equal, x, lowest),
                                           compare(b, loc, Order::equal, divisor, constant(b, loc, x.getType(), -1.0)));
    bad = arith::OrIOp::create(b, loc, bad, overflow);
  }
  return select(b, loc, bad, one(b, loc, divisor), divisor);
}

/// Integers: the truncated quotient, less 1 where a remainder has the wrong sign; -1 (u8: 255) for x // 0.
Value FloorDivOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return math::FloorOp::create(b, loc, arith::DivFOp::create(b, loc, x[0], x[1]));
  Value divisor = safeDivisor(b, loc, x[0], x[1]), quotient;
  Value minusOne =
      constant(b, loc, x[0].getType(), APInt::getAllOnes(getElementTypeOrSelf(x[0]).getIntOrFloatBitWidth()));
  if (isUnsigned(x[0])) {
    quotient = arith::DivUIOp::create(b, loc, x[0], divisor);
  } else {
    quotient = arith::DivSIOp::create(b, loc, x[0], divisor);
    Value rest = arith::SubIOp::create(b, loc, x[0], arith::MulIOp::create(b, loc, quotient, divisor));
    Value rounded = arith::AndIOp::create(b, loc, compare(b, loc, Order::notEqual, rest, zero(b, loc, rest)),
                                          oppositeSigns(b, loc, rest, divisor));
    quotient = select(b, loc, rounded, arith::AddIOp::create(b, loc, quotient, minusOne), quotient);
  }
  return select(b, loc, compare(b, loc, Order::equal, x[1], zero(b, loc, x[1])), minusOne, quotient);
}

/// The truncated remainder (exact, as fmod), plus the divisor where it is not 0 and has the other sign; x for integer x
/// % 0. A float remainder of 0 takes the divisor's sign.
Value RemainderOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (!isFloat(x[0]) && isUnsigned(x[0])) {
    Value rest = arith::RemUIOp::create(b, loc, x[0], safeDivisor(b, loc, x[0], x[1]));
    return select(b, loc, compare(b, loc, Order::equal, x[1], zero(b, loc, x[1])), x[0], rest);
  }
  Value rest = isFloat(x[0]) ? arith::RemFOp::create(b, loc, x[0], x[1]).getResult()
                             : arith::RemSIOp::create(b, loc, x[0], safeDivisor(b, loc, x[0], x[1])).getResult();
  Value nonzero = compare(b, loc, Order::notEqual, rest, zero(b, loc, rest));
  Value wrong = arith::AndIOp::create(b, loc, nonzero, oppositeSigns(b, loc, rest, x[1]));
  if (isFloat(x[0])) {
    Value exact = select(b, loc, nonzero, rest, math::CopySignOp::create(b, loc, rest, x[1]));
    return select(b, loc, wrong, arith::AddFOp::create(b, loc, rest, x[1]), exact);
  }
  Value adjusted = select(b, loc, wrong, arith::AddIOp::create(b, loc, rest, x[1]), rest);
  return select(b, loc, compare(b, loc, Order::equal, x[1], zero(b, loc, x[1])), x[0], adjusted);
}

/// Integer powers by squaring, modulo 2^n, over the bits of the exponent. A negative exponent: 1 -> 1, -1 -> 1 or -1 by
/// the exponent's last bit, 0 -> the highest, others 0.
static Value integerPower(OpBuilder &b, Location loc, Value base, Value exponent) {
  Type type = base.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value first = arith::ConstantIndexOp::create(b, loc, 0), last = arith::ConstantIndexOp::create(b, loc, width);
  Value step = arith::ConstantIndexOp::create(b, loc, 1), unit = constant(b, loc, type, 1.0),
        nil = constant(b, loc, type, 0.0);
  auto loop = scf::ForOp::create(
      b, loc, first, last, step, ValueRange{unit, base, exponent},
      [&](OpBuilder &b, Location loc, Value, ValueRange carried) {
        Value product = carried[0], square = carried[1], bits = carried[2];
        Value odd = compare(b, loc, Order::notEqual, arith::AndIOp::create(b, loc, bits, unit), nil);
        product = select(b, loc, odd, arith::MulIOp::create(b, loc, product, square), product);
        square = arith::MulIOp::create(b, loc, square, square);
        scf::YieldOp::create(b, loc, ValueRange{product, square, arith::ShRUIOp::create(b, loc, bits, unit)});
      });
  Value power = loop.getResult(0);
  if (isUnsigned(base))
    return power;
  Value minusOne = constant(b, loc, type, -1.0);
  Value odd = compare(b, loc, Order::notEqual, arith::AndIOp::create(b, loc, exponent, unit), nil);
  Value inverse = select(b, loc, compare(b, loc, Order::equal, base, nil),
                         constant(b, loc, type, APInt::getSignedMaxValue(width)), nil);
  inverse = select(b, loc, compare(b, loc, Order::equal, base, minusOne), select(b, loc, odd, minusOne, unit), inverse);
  inverse = select(b, loc, compare(b, loc, Order::equal, base, unit), unit, inverse);
  return select(b, loc, compare(b, loc, Order::less, exponent, nil), inverse, power);
}

Value PowOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return isFloat(x[0]) ? math::PowFOp::create(b, loc, x[0], x[1]).getResult() : integerPower(b, loc, x[0], x[1]);
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// y = -x.
Slopes NegOp::slopes(Operands, Expr) { return -1; }
/// y = |x|, so dy/dx = sign(x): 0 at 0.
Slopes AbsOp::slopes(Operands x, Expr) { return sign(x[0]); }
/// y = exp(x), so dy/dx = y. Reads y.
Slopes ExpOp::slopes(Operands, Expr y) { return y; }
/// y = exp(x) - 1, so dy/dx = y + 1. Reads y.
Slopes Expm1Op::slopes(Operands, Expr y) { return y + 1; }
/// y = log(x), so dy/dx = 1 / x: as a quotient, which holds where 1 / x overflows.
Slopes LogOp::slopes(Operands x, Expr) { return over(x[0]); }
/// y = log(1 + x), so dy/dx = 1 / (1 + x).
Slopes Log1pOp::slopes(Operands x, Expr) { return over(1 + x[0]); }
/// y = sqrt(x), so dy/dx = 1/2 / y: infinite at 0. Reads y.
Slopes SqrtOp::slopes(Operands, Expr y) { return over(y, 0.5); }
/// y = x^(-1/2), so dy/dx = -y^3 / 2: -inf at 0. Reads y.
Slopes RsqrtOp::slopes(Operands, Expr y) { return -0.5 * (y * y * y); }
/// y = tanh(x), so dy/dx = 1 - y * y. Reads y: x need not be kept.
Slopes TanhOp::slopes(Operands, Expr y) { return 1 - y * y; }
/// y = 1 / (1 + exp(-x)), so dy/dx = y * (1 - y). Reads y.
Slopes SigmoidOp::slopes(Operands, Expr y) { return y * (1 - y); }
/// y = log(1 + exp(x)), so dy/dx = sigmoid(x): smooth at 0, where the formula of the element has two kinks that cancel.
Slopes SoftplusOp::slopes(Operands x, Expr) { return sigmoid(x[0]); }
/// y = x / (1 + |x|), so dy/dx = 1 / (1 + |x|)^2. Reads x: 1 - |y| would cancel in the tails, which are those of a
/// power.
Slopes SoftsignOp::slopes(Operands x, Expr) {
  Expr rest = 1 / (1 + abs(x[0]));
  return rest * rest;
}
/// y = max(x, 0): 1 where y > 0, else 0, also at 0. Reads y.
Slopes ReluOp::slopes(Operands, Expr y) { return mask(y > 0); }
/// y = sin(x), so dy/dx = cos(x).
Slopes SinOp::slopes(Operands x, Expr) { return cos(x[0]); }
/// y = cos(x), so dy/dx = -sin(x).
Slopes CosOp::slopes(Operands x, Expr) { return -sin(x[0]); }
/// y = erf(x), so dy/dx = 2 / sqrt(pi) * exp(-x * x).
Slopes ErfOp::slopes(Operands x, Expr) { return 2 * std::numbers::inv_sqrtpi * exp(-(x[0] * x[0])); }

/// c = a + b.
Slopes AddOp::slopes(Operands, Expr) { return {1, 1}; }
/// c = a - b.
Slopes SubOp::slopes(Operands, Expr) { return {1, -1}; }
/// c = a * b, so dc/da = b and dc/db = a.
Slopes MulOp::slopes(Operands x, Expr) { return {x[1], x[0]}; }
/// c = a / b, so dc/da = 1 / b and dc/db = -c / b. Reads c.
Slopes DivOp::slopes(Operands x, Expr c) { return {over(x[1]), over(x[1]) * -c}; }
/// c = a - b * floor(a / b), so dc/da = 1 and dc/db = -floor(a / b).
Slopes RemainderOp::slopes(Operands x, Expr) { return {1, -floorDiv(x[0], x[1])}; }

/// c = a^b, so dc/da = b * a^(b - 1) and dc/db = c * log(a). Reads c.
/// Two arguments are guarded, so that second derivatives are as safe as first ones: where b = 0 and 1 / a would not be
/// finite the power is taken as a^0, and dc/da is 0 * 1 = 0; where a = 0 and b >= 0 the logarithm is taken of 1, and
/// dc/db is 0.
Slopes PowOp::slopes(Operands x, Expr c) {
  Expr a = x[0], b = x[1];
  const llvm::fltSemantics &semantics = cast<FloatType>(a.elementType()).getFloatSemantics();
  Expr invertible = abs(a) >= APFloat::getSmallestNormalized(semantics).convertToDouble();
  Expr exponent = where(equal(b, 0) && notOf(invertible), a.zeros(), b - 1);
  Expr base = where(equal(a, 0) && b >= 0, a.ones(), a);
  return {b * pow(a, exponent), c * log(base)};
}

/// c = max(a, b): 1 by the larger, 0 by the other; at a tie a half by each.
Slopes MaximumOp::slopes(Operands x, Expr) {
  Expr tie = equal(x[0], x[1]);
  return {where(tie, 0.5, mask(x[0] > x[1])), where(tie, 0.5, mask(x[1] > x[0]))};
}

/// c = min(a, b): 1 by the smaller, 0 by the other; at a tie a half by each.
Slopes MinimumOp::slopes(Operands x, Expr) {
  Expr tie = equal(x[0], x[1]);
  return {where(tie, 0.5, mask(x[0] < x[1])), where(tie, 0.5, mask(x[1] < x[0]))};
}

/// y = a where c, else b: 1 by the side that is taken, an exact 0 by the other.
Slopes SelectOp::slopes(Operands x, Expr) { return {none, mask(x[0]), unless(x[0])}; }

/// Not the slopes of y = a: the derivative by a variable sums those by its versions.
Slopes VersionOp::slopes(Operands, Expr) { return {none, 1}; }

//===- Folding: only what is exact in IEEE arithmetic, signed zeros included ---------------------------------===//

/// Whether `value` is a splat constant of the float or integer `number`; -0.0 and 0.0 differ.
static bool isSplat(Attribute value, double number) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(value);
  if (!splat)
    return false;
  if (isa<FloatType>(splat.getElementType())) {
    double element = splat.getSplatValue<FloatAttr>().getValueAsDouble();
    return element == number && std::signbit(element) == std::signbit(number);
  }
  return splat.getSplatValue<APInt>() ==
         APInt(splat.getElementType().getIntOrFloatBitWidth(), static_cast<int64_t>(number), true, true);
}

static bool isIntegerZero(Attribute value) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(value);
  return splat && !isa<FloatType>(splat.getElementType()) && splat.getSplatValue<APInt>().isZero();
}

/// --x = x.
OpFoldResult NegOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<NegOp>();
  return inner ? OpFoldResult(inner.getX()) : OpFoldResult();
}

/// not not x = x.
OpFoldResult LogicalNotOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<LogicalNotOp>();
  return inner ? OpFoldResult(inner.getX()) : OpFoldResult();
}

/// x + -0 = x; for integers x + 0 = x. (x + 0 is no identity of floats: -0 + 0 = 0.)
OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getB(), -0.0) || isIntegerZero(adaptor.getB()))
    return getA();
  if (isSplat(adaptor.getA(), -0.0) || isIntegerZero(adaptor.getA()))
    return getB();
  return {};
}

/// x - 0 = x.
OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getB(), 0.0) ? OpFoldResult(getA()) : OpFoldResult();
}

/// x * 1 = x; for integers x * 0 = 0.
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplat(adaptor.getB(), 1.0) || isIntegerZero(adaptor.getA()))
    return getA();
  if (isSplat(adaptor.getA(), 1.0) || isIntegerZero(adaptor.getB()))
    return getB();
  return {};
}

/// x / 1 = x.
OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getB(), 1.0) ? OpFoldResult(getA()) : OpFoldResult();
}

/// A known condition, or equal sides.
OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getA() == getB())
    return getA();
  if (auto condition = dyn_cast_or_null<SplatElementsAttr>(adaptor.getC()))
    return condition.getSplatValue<bool>() ? getA() : getB();
  return {};
}

} // namespace wg::ir
