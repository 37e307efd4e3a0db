// The derivative of one op, and the op for many lanes at once, whatever form its rules have.
#pragma once

#include "ir/Dialect.h"

namespace wg::ir {

/// One cotangent for each operand, null for those that have none: indices, conditions, sizes.
using Cotangents = llvm::SmallVector<mlir::Value>;

/// Whether the op states a derivative.
bool hasRule(mlir::Operation *op);

/// The cotangents of the operands from that of the one result, `ct`, built at b. Failure after an error.
mlir::FailureOr<Cotangents> vjp(mlir::Operation *op, mlir::OpBuilder &b, mlir::Location loc, mlir::Value ct);

/// `type` with one more axis in front, of size `count`, which may be `?`.
mlir::RankedTensorType batchedType(mlir::RankedTensorType type, int64_t count);
/// An error at `loc` unless a value of this type can have that axis.
mlir::LogicalResult checkLanes(mlir::Location loc, mlir::Type type, int64_t count);

/// The op's one result for all lanes: those `operands` that are `batched` have one more axis in front, and at least one
/// is; the result has it too, unless it is an index. Failure after an error.
mlir::FailureOr<mlir::Value> batch(mlir::Operation *op, mlir::OpBuilder &b, mlir::Location loc,
                                   mlir::ValueRange operands, llvm::ArrayRef<bool> batched);

} // namespace wg::ir
