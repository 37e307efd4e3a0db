// Forward mode as a transform of straight-line IR: appends the tangents of targets, from those of sources.
//
//   %y = wg.tanh %x        becomes        %y = wg.tanh %x
//                                         ... %dy = (1 - y * y) * dx: tanh's own slope, applied to %dx
//
// An op has one rule for both modes (ir/Interfaces.td). A diagonal op moves by its slopes, a linear one as its operand
// does, a bilinear one as either of its two, and any other by the transpose of its vjp, which is linear in the
// cotangent. The result is ordinary IR, so either mode can be applied to it.
#pragma once

#include "autodiff/Reverse.h"

namespace wg::autodiff {

class Pairs;

/// A function that stands for the tangent of a call: it takes the call's operands, its results and the tangents of some
/// operands, and returns those of `results`.
struct DeclaredTangent {
  mlir::func::FuncOp function;
  llvm::SmallVector<unsigned> results;
};

struct ForwardOptions {
  /// As in ReverseOptions.
  llvm::function_ref<bool(mlir::Operation *)> isRecorded = nullptr;
  llvm::function_ref<void(mlir::Operation *before, mlir::Operation *after)> replaced = nullptr;
  /// Declares the tangent of a call whose callee names its derivative (kVjpAttr), by `arguments`, of those among
  /// `results` that have one. Null: there is none, which is an error.
  llvm::function_ref<mlir::FailureOr<DeclaredTangent>(ir::CallOp call, llvm::ArrayRef<unsigned> arguments,
                                                      llvm::ArrayRef<unsigned> results)>
      tangentOf = nullptr;
  mlir::SymbolTable *symbols = nullptr;
};

/// Appends, at the insertion point of `b`, the tangent of each target where each source moves by its entry of
/// `tangents`, which has its type. A target that depends on no source has none. All values live in one block, before
/// the insertion point. An op on the path without a rule is an error at its location.
mlir::FailureOr<Tangents> forward(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange targets,
                                  mlir::ValueRange sources, mlir::ValueRange tangents,
                                  const ForwardOptions &options = {});
/// The same with the pairs of an enclosing derivative.
mlir::FailureOr<Tangents> forward(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange targets,
                                  mlir::ValueRange sources, mlir::ValueRange tangents, const ForwardOptions &options,
                                  Pairs &pairs);

/// The tangent of one op's result from those of its operands, null where an operand has none; null if none has one that
/// counts. Failure after an error.
mlir::FailureOr<mlir::Value> jvp(mlir::Operation *op, mlir::OpBuilder &b, mlir::Location loc,
                                 llvm::ArrayRef<mlir::Value> tangents);

} // namespace wg::autodiff
