// Truncation, signs, and integers as patterns of bits: what an element is, and each slope.
#include "ir/Build.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace wg::ir {

//===- Elements ---------------------------------------------------------------------------------------------===//

static Value zero(OpBuilder &b, Location loc, Value like) { return constant(b, loc, like.getType(), 0.0); }
static Value allOnes(OpBuilder &b, Location loc, Value like) {
  return constant(b, loc, like.getType(), APInt::getAllOnes(getElementTypeOrSelf(like).getIntOrFloatBitWidth()));
}

/// `made` of a divisor that cannot trap, and `atZero` where the divisor is 0.
static Value guardedByZero(OpBuilder &b, Location loc, ValueRange x, Value atZero,
                           function_ref<Value(Value divisor)> made) {
  Value quotient = made(safeDivisor(b, loc, x[0], x[1]));
  Value isZero = compare(b, loc, Order::equal, x[1], zero(b, loc, x[1]));
  return arith::SelectOp::create(b, loc, isZero, atZero, quotient);
}

Value TruncOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return math::TruncOp::create(b, loc, x[0]); }

Value TruncDivOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return math::TruncOp::create(b, loc, arith::DivFOp::create(b, loc, x[0], x[1]));
  return guardedByZero(b, loc, x, allOnes(b, loc, x[0]), [&](Value divisor) -> Value {
    if (isUnsigned(x[0]))
      return arith::DivUIOp::create(b, loc, x[0], divisor);
    return arith::DivSIOp::create(b, loc, x[0], divisor);
  });
}

Value FmodOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  if (isFloat(x[0]))
    return arith::RemFOp::create(b, loc, x[0], x[1]);
  return guardedByZero(b, loc, x, x[0], [&](Value divisor) -> Value {
    if (isUnsigned(x[0]))
      return arith::RemUIOp::create(b, loc, x[0], divisor);
    return arith::RemSIOp::create(b, loc, x[0], divisor);
  });
}

Value CopysignOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return math::CopySignOp::create(b, loc, x[0], x[1]);
}
Value LogicalXorOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::XOrIOp::create(b, loc, x[0], x[1]);
}
Value BitwiseAndOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::AndIOp::create(b, loc, x[0], x[1]);
}
Value BitwiseOrOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return arith::OrIOp::create(b, loc, x[0], x[1]); }
Value BitwiseXorOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::XOrIOp::create(b, loc, x[0], x[1]);
}
Value BitwiseNotOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return arith::XOrIOp::create(b, loc, x[0], allOnes(b, loc, x[0]));
}

/// Whether `places` is one of 0 ... width - 1: as an unsigned number it is below the width.
static Value isWithin(OpBuilder &b, Location loc, Value places) {
  unsigned width = getElementTypeOrSelf(places).getIntOrFloatBitWidth();
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, places,
                               constant(b, loc, places.getType(), static_cast<double>(width)));
}

Value LeftShiftOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value within = isWithin(b, loc, x[1]), none = zero(b, loc, x[0]);
  Value places = arith::SelectOp::create(b, loc, within, x[1], none);
  return arith::SelectOp::create(b, loc, within, arith::ShLIOp::create(b, loc, x[0], places), none);
}

/// Beyond the width what is left is the sign: as by width - 1 places, or no bit of u8.
Value RightShiftOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Value within = isWithin(b, loc, x[1]), none = zero(b, loc, x[0]);
  if (isUnsigned(x[0])) {
    Value places = arith::SelectOp::create(b, loc, within, x[1], none);
    return arith::SelectOp::create(b, loc, within, arith::ShRUIOp::create(b, loc, x[0], places), none);
  }
  unsigned width = getElementTypeOrSelf(x[0]).getIntOrFloatBitWidth();
  Value most = constant(b, loc, x[0].getType(), static_cast<double>(width - 1));
  return arith::ShRSIOp::create(b, loc, x[0], arith::SelectOp::create(b, loc, within, x[1], most));
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// c = a - b trunc(a / b), so dc/da = 1 and dc/db = -trunc(a / b).
Slopes FmodOp::slopes(Operands x, Expr) { return {1, -x[0].make<TruncDivOp>(x[0], x[1])}; }

/// c = |a| with the sign of b, so dc/da = sign(a) with the sign of b turned in: 0 at 0. It jumps with b, and else does
/// not move.
Slopes CopysignOp::slopes(Operands x, Expr) {
  return {sign(x[0]) * x[1].make<CopysignOp>(x[1].ones(), x[1]), Slope([](const Expr &ct) { return ct.zeros(); })};
}

} // namespace wg::ir
