// Derivatives of conditions and loops, which are conditions and loops again. Their bodies are functions, so they have
// pairs as callees have (Calls.h): the forward op, in the place of the op, returns residuals as well, and the linear
// one reads them.
#pragma once

#include "autodiff/Calls.h"

namespace wg::autodiff {

/// What is asked of the linear part of an op with bodies.
struct LinearRequest {
  mlir::OpBuilder &b; ///< where it goes
  mlir::Location loc;
  Pairs &pairs;
  /// The operands that take part.
  llvm::function_ref<bool(mlir::Value)> isActive;
  /// Told when an op has taken the place of another, whose results it has first, before that is erased.
  llvm::function_ref<void(mlir::Operation *before, mlir::Operation *after)> told;
  /// Reverse: the cotangents, by result. Forward: the tangents, by operand. Null where there is none.
  llvm::SmallVector<mlir::Value> seeds;

  /// Puts `after` in the place of `before`; the seeds follow.
  void replace(mlir::Operation *before, mlir::Operation *after);
};

struct LinearPart {
  /// Reverse: the cotangents, by operand. Forward: the tangents, by result. Null where there is none.
  llvm::SmallVector<mlir::Value> values;
  std::vector<DroppedAdjoint> certificate;
  mlir::Operation *op; ///< what has taken the op's place, or the op itself
};

/// The linear part of a condition, which is a condition; or of a loop, which is a loop over what the turns of the
/// forward loop stacked: in reverse mode in the other direction. What depends on a loop's invariants alone is not
/// stacked but computed once; derivatives that nobody reads are not carried.
mlir::FailureOr<LinearPart> linearPart(mlir::Operation *op, Mode mode, LinearRequest &request);
mlir::FailureOr<LinearPart> linearCond(ir::CondOp op, Mode mode, LinearRequest &request);
mlir::FailureOr<LinearPart> linearLoop(ir::LoopOp op, Mode mode, LinearRequest &request);

} // namespace wg::autodiff
