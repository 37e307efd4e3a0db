// From one dtype to another: what one element becomes, by the kinds of both types.
#include "ir/Build.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace wg::ir {

/// Toward zero, saturating, NaN -> 0: LLVM's fptosi.sat and fptoui.sat, which MLIR names only as intrinsics.
static Value floatToInteger(OpBuilder &b, Location loc, Value x, Type to) {
  StringRef intrinsic = getElementTypeOrSelf(to).getIntOrFloatBitWidth() == 8 ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  return LLVM::CallIntrinsicOp::create(b, loc, to, b.getStringAttr(intrinsic), ValueRange{x}).getResult(0);
}

static Value floatToFloat(OpBuilder &b, Location loc, Value x, Type to) {
  auto from = cast<FloatType>(getElementTypeOrSelf(x)), into = cast<FloatType>(getElementTypeOrSelf(to));
  if (from == into)
    return x;
  if (from.getWidth() == into.getWidth()) // bf16 and f16: both are exact in f32
    return arith::TruncFOp::create(b, loc, to, arith::ExtFOp::create(b, loc, withLanes(b.getF32Type(), to), x));
  if (from.getWidth() < into.getWidth())
    return arith::ExtFOp::create(b, loc, to, x);
  return arith::TruncFOp::create(b, loc, to, x);
}

static Value integerToInteger(OpBuilder &b, Location loc, Value x, Type to) {
  unsigned from = getElementTypeOrSelf(x).getIntOrFloatBitWidth(),
           into = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
  if (from == into)
    return x;
  if (from > into)
    return arith::TruncIOp::create(b, loc, to, x);
  if (isUnsigned(x))
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
}

Value CastOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  Type element = signless(getType().getElementType());
  Type to = withLanes(element, x[0].getType());
  if (element.isInteger(1))
    return compare(b, loc, Order::notEqual, x[0], constant(b, loc, x[0].getType(), 0.0));
  if (isFloat(x[0]))
    return isa<FloatType>(element) ? floatToFloat(b, loc, x[0], to) : floatToInteger(b, loc, x[0], to);
  if (!isa<FloatType>(element))
    return integerToInteger(b, loc, x[0], to);
  if (isUnsigned(x[0]))
    return arith::UIToFPOp::create(b, loc, to, x[0]);
  return arith::SIToFPOp::create(b, loc, to, x[0]);
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// Between floats y = x up to rounding, so dx = ct in x's dtype. An integer on either side passes no gradient.
Terms CastOp::transpose(Expr ct) {
  Type from = getX().getType().getElementType();
  if (!isa<FloatType>(from) || !isa<FloatType>(ct.elementType()))
    return Expr();
  return ct.make<CastOp>(ct, from);
}

//===- Folding ----------------------------------------------------------------------------------------------===//

OpFoldResult CastOp::fold(FoldAdaptor) { return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult(); }

} // namespace wg::ir
