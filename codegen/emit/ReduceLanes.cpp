// How a reduce kernel combines two values, and the lanes of a vector.
#include "codegen/emit/ReduceEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace wg::codegen {

static const llvm::fltSemantics &semanticsOf(VectorType type) {
  return cast<FloatType>(type.getElementType()).getFloatSemantics();
}

Value ReduceEmitter::neutral(Operation *op, int count) {
  Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  TypedAttr attribute = cast<ir::Reduction>(op).neutral(element);
  if (element.isInteger(8))
    attribute = b.getIntegerAttr(b.getI8Type(), cast<IntegerAttr>(attribute).getValue());
  return e.splat(arith::ConstantOp::create(b, loc, attribute), count);
}

/// A sum takes up a product that nobody else reads as one fused multiply-add. (Left to the code generator, which
/// forgets that it may where a vector has one element, the last element of a row had other bits.)
Value ReduceEmitter::combine(Operation *op, Value x, Value y) {
  Value result = cast<ir::Reduction>(op).combine(b, loc, x, y);
  if (auto sum = result.getDefiningOp<arith::AddFOp>(); sum && e.target.hasFma)
    if (auto product = sum.getRhs().getDefiningOp<arith::MulFOp>();
        product && arith::bitEnumContainsAll(product.getFastmath(), arith::FastMathFlags::contract)) {
      sum.erase();
      return math::FmaOp::create(b, loc, product.getLhs(), product.getRhs(), x);
    }
  e.mayContract(result);
  return result;
}

/// Combines the lanes of a vector pairwise: log2(lanes) shuffles.
Value ReduceEmitter::combineLanes(Operation *op, Value vector) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  Operation *step = combine(op, vector, vector).getDefiningOp();
  bool greatest = isa<arith::MaximumFOp>(step), least = isa<arith::MinimumFOp>(step);
  step->erase();
  if (greatest)
    return extremeOfLanes<arith::MaxSIOp>(vector, APFloat::getQNaN(semanticsOf(type)));
  if (least)
    return extremeOfLanes<arith::MinSIOp>(vector, APFloat::getQNaN(semanticsOf(type), /*Negative=*/true));
  return pairwise(vector, [&](Value x, Value y) { return combine(op, x, y); });
}

/// Halves of a vector, down to a register's 128 bits; then its own lanes, as LLVM has to make shorter vectors longer
/// again.
Value ReduceEmitter::pairwise(Value vector, llvm::function_ref<Value(Value, Value)> both) {
  auto type = cast<VectorType>(vector.getType());
  int64_t narrowest = 128 / type.getElementTypeBitWidth();
  for (int64_t width = type.getNumElements(), half = width / 2; half > 0; half /= 2) {
    bool shrinks = half >= narrowest;
    SmallVector<int64_t> upper = llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
    if (shrinks)
      width = half;
    else
      upper.resize(static_cast<size_t>(width), vector::ShuffleOp::kPoisonIndex);
    Value high = vector::ShuffleOp::create(b, loc, vector, vector, upper);
    Value low = vector;
    if (shrinks)
      low = vector::ShuffleOp::create(b, loc, vector, vector, llvm::to_vector(llvm::seq<int64_t>(0, half)));
    vector = both(low, high);
  }
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0});
}

/// The greatest or least number among lanes: that of their patterns as integers, where those below 0 are turned over,
/// which is the numbers' order, of zeros too. A NaN is made the one at the end of it. (A maximum of numbers is six
/// instructions, and of integers one.)
template <class Extreme> Value ReduceEmitter::extremeOfLanes(Value vector, const APFloat &nan) {
  auto type = cast<VectorType>(vector.getType());
  unsigned bits = type.getElementTypeBitWidth();
  Type integer = b.getIntegerType(bits);
  auto number = [&](const APInt &value, Type like) -> Value {
    TypedAttr attribute = b.getIntegerAttr(integer, value);
    if (auto lanes = dyn_cast<VectorType>(like))
      attribute = DenseElementsAttr::get(lanes, attribute);
    return arith::ConstantOp::create(b, loc, attribute);
  };
  auto turned = [&](Value x) -> Value {
    Value sign = arith::ShRSIOp::create(b, loc, x, number(APInt(bits, bits - 1), x.getType()));
    Value below = arith::AndIOp::create(b, loc, sign, number(APInt::getSignedMaxValue(bits), x.getType()));
    return arith::XOrIOp::create(b, loc, x, below);
  };
  auto nans = DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), nan));
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, vector, vector);
  vector = arith::SelectOp::create(b, loc, isNan, arith::ConstantOp::create(b, loc, nans), vector);
  Value patterns = arith::BitcastOp::create(b, loc, VectorType::get(type.getShape(), integer), vector);
  Value found = pairwise(turned(patterns), [&](Value x, Value y) -> Value { return Extreme::create(b, loc, x, y); });
  return arith::BitcastOp::create(b, loc, type.getElementType(), turned(found));
}

} // namespace wg::codegen
