#include "ir/Interfaces.h"

#include "ir/Interfaces.cpp.inc"

bool wg::ir::ownsLoops(mlir::Operation *op) {
  constexpr unsigned kFew = 8;
  return mlir::isa<Structured>(op) && (!mlir::isa<Indexed>(op) || op->getNumOperands() > kFew);
}
