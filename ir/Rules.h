// The derivative of one op, whatever form its rule has.
#pragma once

#include "ir/Dialect.h"

namespace wg::ir {

/// One cotangent for each operand, null for those that have none: indices, conditions, sizes.
using Cotangents = llvm::SmallVector<mlir::Value>;

/// Whether the op states a derivative.
bool hasRule(mlir::Operation *op);

/// The cotangents of the operands from that of the one result, `ct`, built at b. Failure after an error.
mlir::FailureOr<Cotangents> vjp(mlir::Operation *op, mlir::OpBuilder &b, mlir::Location loc, mlir::Value ct);

} // namespace wg::ir
