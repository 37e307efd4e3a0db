// Conditions and loops for many lanes at once. Where lanes choose different branches, or end after different turns,
// each branch and turn runs for all lanes while one of them wants it, and `select` takes what belongs to a lane. The
// others run on the values of a lane that does want it: they neither fail nor make infinities that a gradient would
// meet. Calls of C++ code are made for one lane after the other; where lanes choose differently, what is ordered is an
// error.
#pragma once

#include "autodiff/Batch.h"

namespace wg::autodiff {

/// What the batched functions of a program give.
struct LanesOf {
  llvm::function_ref<mlir::func::FuncOp(mlir::Operation *from, mlir::FlatSymbolRefAttr name)> lookup;
  /// The batched form by arguments at these places, of which there is one at least.
  llvm::function_ref<mlir::FailureOr<BatchedFunction>(mlir::func::FuncOp, llvm::ArrayRef<unsigned>)> make;
};

/// Whether it is one of these: conditions, loops, calls of C++ code, barriers.
bool hasOwnLanes(mlir::Operation *op);

/// Makes the batched forms that the op needs where these operands have lanes, and says which results have them.
mlir::FailureOr<llvm::SmallVector<bool>> planLanes(mlir::Operation *op, llvm::ArrayRef<bool> batched,
                                                   const LanesOf &lanes);
/// Appends the op for all lanes. `operands` are its operands, with lanes where `batched`.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> inLanes(mlir::OpBuilder &b, mlir::Operation *op,
                                                        llvm::ArrayRef<mlir::Value> operands,
                                                        llvm::ArrayRef<bool> batched, const LanesOf &lanes,
                                                        mlir::SymbolTable &symbols);

} // namespace wg::autodiff
