#include "ir/Rules.h"

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

} // namespace wg::ir
