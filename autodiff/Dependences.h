// What depends on what, through calls, conditions and loops.
#pragma once

#include "autodiff/Calls.h"

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

} // namespace wg::autodiff
