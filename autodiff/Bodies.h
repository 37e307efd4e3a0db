// Derivatives of conditions and loops, which are conditions and loops again. Their bodies are functions, so they have
// pairs as callees have (Calls.h): the forward op, in the place of the op, returns residuals as well, and the linear
// one reads them.
#pragma once

#include "autodiff/Calls.h"
#include "ir/Rules.h"

#include "llvm/ADT/BitVector.h"

namespace wg::autodiff {

/// Which arguments each result of a function depends on, by ops that pass derivatives.
class Dependences {
public:
  explicit Dependences(Callees &callees) : callees_(callees) {}
  /// By result. Of `function`, which does not call itself.
  const llvm::SmallVector<llvm::BitVector> &of(mlir::func::FuncOp function);

private:
  llvm::SmallVector<llvm::BitVector> find(mlir::func::FuncOp function);
  Callees &callees_;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<llvm::BitVector>> known_;
};

/// What is asked of the linear part of an op with bodies.
struct LinearRequest {
  mlir::OpBuilder &b; ///< where it goes
  mlir::Location loc;
  Pairs &pairs;
  /// The operands that take part.
  llvm::function_ref<bool(mlir::Value)> isActive;
  /// Puts an op in the place of another, whose results it has first; all that is known of these follows, `seeds` too.
  llvm::function_ref<void(mlir::Operation *before, mlir::Operation *after)> replace;
  /// Reverse: the cotangents, by result. Forward: the tangents, by operand. Null where there is none.
  llvm::SmallVector<mlir::Value> &seeds;
};

struct LinearPart {
  /// Reverse: the cotangents, by operand. Forward: the tangents, by result. Null where there is none.
  llvm::SmallVector<mlir::Value> values;
  std::vector<DroppedAdjoint> certificate;
  mlir::Operation *op; ///< what has taken the op's place, or the op itself
};

/// The linear part of a cond, which is a cond; or of a loop, which is a loop over what the turns of the forward loop
/// stacked: in reverse mode in the other direction. What depends on a loop's invariants alone is not stacked but
/// computed once; derivatives that nobody reads are not carried.
mlir::FailureOr<LinearPart> linearPart(ir::CondOp op, Mode mode, LinearRequest &request);
mlir::FailureOr<LinearPart> linearPart(ir::LoopOp op, Mode mode, LinearRequest &request);

} // namespace wg::autodiff
