// The derivative of a call is a pair of functions (see FunctionPair). Pairs hang on the function that they are
// of; nothing finds them by a name.
#pragma once

#include "autodiff/Reverse.h"

#include <memory>
#include <optional>

namespace wg::autodiff {

/// Places of a function's arguments, or of its results.
using Places = llvm::SmallVector<unsigned>;

/// A call on the path of a derivative, and which of its operands and results take part.
struct ActiveCall {
  ir::CallOp op;
  mlir::func::FuncOp callee;
  Places arguments, results;
};

/// What a module's functions call, while they are transformed.
class Callees {
public:
  /// `symbols`: of the module, kept by the caller; null: made when it is needed.
  explicit Callees(mlir::SymbolTable *symbols) : symbols_(symbols) {}

  mlir::func::FuncOp calleeOf(ir::CallOp call) { return lookup(call, call.getCallee()); }
  mlir::func::FuncOp lookup(mlir::Operation *from, llvm::StringRef name) {
    return symbolsOf(from).lookup<mlir::func::FuncOp>(name);
  }

  mlir::SymbolTable &symbolsOf(mlir::Operation *from);
  /// Whether all that the function calls is there, and does not call itself.
  mlir::LogicalResult check(mlir::func::FuncOp function);

private:
  mlir::SymbolTable *symbols_;
  std::unique_ptr<mlir::SymbolTable> own_;
  llvm::DenseSet<mlir::Operation *> checked_;
};

/// The pairs of a module's functions for one mode, while a derivative is built.
class Pairs : public Callees {
public:
  /// `symbols`: of the module, kept by the caller; null: made when it is needed.
  Pairs(Mode mode, mlir::SymbolTable *symbols) : Callees(symbols), mode_(mode) {}

  /// The active calls of functions with a body. An error at a call whose callee has no derivative.
  mlir::FailureOr<llvm::SmallVector<ActiveCall>> activeCalls(const Activity &activity);
  /// Makes the pairs of these calls that are not there yet, and first those of the calls in their callees.
  mlir::LogicalResult make(llvm::ArrayRef<ActiveCall> calls);
  mlir::LogicalResult make(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments,
                           llvm::ArrayRef<unsigned> results);
  /// A pair that was made, with its certificate the first time only: it is part of one report.
  FunctionPair take(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments, llvm::ArrayRef<unsigned> results);

private:
  struct Known {
    Places arguments, results;
    FunctionPair pair;
  };
  Known *find(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments, llvm::ArrayRef<unsigned> results);
  mlir::LogicalResult makeOne(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments,
                              llvm::ArrayRef<unsigned> results);

  Mode mode_;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::unique_ptr<Known>, 1>> known_;
  int64_t size_ = 0; ///< ops and values of what was made
};

/// Puts a call of the forward function, which has the same first `numResults` results, in place of a call. Both are
/// told of it (`told` may be null) when the uses have been replaced, before the call is erased.
ir::CallOp replaceByForward(ir::CallOp call, mlir::func::FuncOp forward, unsigned numResults,
                            llvm::function_ref<void(mlir::Operation *before, mlir::Operation *after)> told,
                            llvm::function_ref<void(mlir::Operation *made)> here);
/// The leading operands of the linear part, at a call of the forward function.
llvm::SmallVector<mlir::Value> residualsAt(ir::CallOp forward, unsigned numResults, const FunctionPair &pair);

/// reverse() with the pairs of an enclosing gradient.
mlir::FailureOr<Gradients> reverse(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange targets,
                                   mlir::ValueRange seeds, mlir::ValueRange sources, const ReverseOptions &options,
                                   Pairs &pairs);

} // namespace wg::autodiff
