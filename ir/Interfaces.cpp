#include "ir/Interfaces.h"

#include "ir/Interfaces.cpp.inc"

bool wg::ir::ownsLoops(mlir::Operation *op) {
  return mlir::isa<Structured>(op) && (!mlir::isa<Indexed>(op) || op->getNumOperands() > 1);
}
