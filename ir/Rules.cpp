#include "ir/Rules.h"

#include "ir/Bridge.h"

using namespace mlir;

namespace wg::ir {

bool hasRule(Operation *op) { return isa<Diagonal, Linear, Bilinear, Differentiable>(op); }

FailureOr<Cotangents> vjp(Operation *op, OpBuilder &b, Location loc, Value cotangent) {
  Expr ct(cotangent, b, loc);
  FailureOr<Terms> terms = Terms();
  if (auto diagonal = dyn_cast<Diagonal>(op)) {
    for (const Slope &slope : diagonal.slopes(Operands(op->getOperands(), b, loc), ct.at(op->getResult(0))))
      terms->push_back(slope ? slope(ct) : Expr());
  } else if (auto linear = dyn_cast<Linear>(op)) {
    terms = linear.transpose(ct);
  } else if (auto bilinear = dyn_cast<Bilinear>(op)) {
    terms = bilinear.transpose(ct);
  } else if (auto other = dyn_cast<Differentiable>(op)) {
    terms = other.vjp(ct);
  } else {
    return op->emitOpError("is on the path from a source to the target and has no derivative rule");
  }
  if (failed(terms))
    return failure();
  if (terms->size() > op->getNumOperands())
    return emitError(op->getLoc()) << "internal error: '" << op->getName() << "' has " << op->getNumOperands()
                                   << " operands, and its derivative rule returned " << terms->size() << " cotangents";
  Cotangents cotangents(terms->begin(), terms->end());
  cotangents.resize(op->getNumOperands());
  return cotangents;
}

//===- Lanes ----------------------------------------------------------------------------------------------------===//

RankedTensorType batchedType(RankedTensorType type, int64_t count) {
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, type.getShape());
  return RankedTensorType::get(shape, type.getElementType());
}

LogicalResult checkLanes(Location loc, Type type, int64_t count) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || isValueType(batchedType(tensor, count)))
    return success();
  InFlightDiagnostic diagnostic = emitError(loc) << "a value of type " << type;
  if (tensor.getRank() == runtime::kMaxRank)
    diagnostic << " would get rank " << runtime::kMaxRank + 1 << " with one more axis in front; the highest is "
               << runtime::kMaxRank;
  else
    diagnostic << " is too large for " << count << " lanes: " << whyNoValueType(batchedType(tensor, count));
  diagnostic.attachNote() << "try: "
                          << (tensor.getRank() == runtime::kMaxRank ? "reshape two of its axes to one before the batch"
                                                                    : "fewer lanes at once");
  return diagnostic;
}

/// The same op on operands that all have the axis.
static FailureOr<Value> batchScalar(Operation *op, OpBuilder &b, Location loc, const Lanes &x) {
  SmallVector<Value> operands;
  for (size_t i = 0; i < x.size(); ++i) {
    FailureOr<Expr> operand = x.spread(i);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  FailureOr<Operation *> made = buildOp(b, loc, *opIdOf(op), operands, attrsOf(op));
  return failed(made) ? FailureOr<Value>() : (*made)->getResult(0);
}

/// The same op over axes that are one higher.
static FailureOr<Value> batchReduction(Reduction op, OpBuilder &b, Location loc, const Lanes &x) {
  SmallVector<int64_t> axes = shifted({}, op.getAxes());
  runtime::Attrs attrs({runtime::AttrValue(runtime::Ints(std::span<const int64_t>(axes.data(), axes.size())))});
  FailureOr<Operation *> made = buildOp(b, loc, *opIdOf(op), Value(x[0]), attrs);
  return failed(made) ? FailureOr<Value>() : (*made)->getResult(0);
}

static LogicalResult refuseToBatch(Operation *op) {
  InFlightDiagnostic diagnostic = op->emitOpError("depends on what is batched and has no rule for one more axis");
  diagnostic.attachNote() << "try: batch the program before its ops are fused or lowered";
  return diagnostic;
}

static FailureOr<Value> batchByFamily(Operation *op, OpBuilder &b, Location loc, const Lanes &x) {
  if (auto batchable = dyn_cast<Batchable>(op)) {
    FailureOr<Expr> y = batchable.batch(x);
    return failed(y) ? FailureOr<Value>() : FailureOr<Value>(Value(*y));
  }
  if (isa<Scalar>(op))
    return batchScalar(op, b, loc, x);
  if (auto reduction = dyn_cast<Reduction>(op))
    return batchReduction(reduction, b, loc, x);
  return refuseToBatch(op);
}

FailureOr<Value> batch(Operation *op, OpBuilder &b, Location loc, ValueRange operands, ArrayRef<bool> batched) {
  if (op->getNumResults() != 1)
    return refuseToBatch(op);
  size_t first = llvm::find(batched, true) - batched.begin();
  int64_t count = cast<RankedTensorType>(operands[first].getType()).getDimSize(0);
  for (Type type : op->getResultTypes())
    if (failed(checkLanes(op->getLoc(), type, count)))
      return failure();
  FailureOr<Value> y = batchByFamily(op, b, loc, Lanes(operands, batched, b, loc));
  if (failed(y))
    return failure();
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if ((*y).getType() != (type ? Type(batchedType(type, count)) : op->getResult(0).getType()))
    return emitError(op->getLoc()) << "internal error: '" << op->getName() << "', whose result is "
                                   << op->getResult(0).getType() << ", has one of type " << (*y).getType() << " for "
                                   << count << " lanes";
  return y;
}

} // namespace wg::ir
