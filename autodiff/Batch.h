// Lanes as a transform of straight-line IR: appends what targets are when sources have one more axis in front.
//
//   %y = wg.reduce_sum %x axes [0]        becomes        %y = wg.reduce_sum %x axes [0]
//                                                        %ys = wg.reduce_sum %xs axes [1]
//
// Lane i of the result is what the program makes of lane i of the sources. An op follows by its family or by its own
// rule (ir/Rules.h); what depends on no source is the same in all lanes and is used as it is. The result is ordinary
// IR, so it can be differentiated or batched again.
#pragma once

#include "ir/Calls.h"
#include "ir/Dialect.h"

namespace wg::autodiff {

struct BatchOptions {
  /// As in ReverseOptions.
  mlir::SymbolTable *symbols = nullptr;
};

struct Batched {
  /// One for each target, with the axis where it is batched; else the same in all lanes.
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<bool> batched;
};

/// Appends, at the insertion point of `b`, the targets where each source is `lanes`, whose type is the source's with
/// one more axis in front. That axis has one size in all lanes; it may be `?`. All values live in one block, before the
/// insertion point. An op on the path that cannot be batched is an error at its location. A value of type index is
/// never batched. What is left of the single lane is the caller's to erase.
mlir::FailureOr<Batched> batch(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange targets,
                               mlir::ValueRange sources, mlir::ValueRange lanes, const BatchOptions &options = {});

/// A function of which some arguments, and those results that depend on them, have the axis.
struct BatchedFunction {
  mlir::func::FuncOp function;
  llvm::SmallVector<bool> results; ///< whether each is batched
};

/// Makes the batched form in the module of `function`, or finds it on the function, where it hangs as an attribute: one
/// for each set of arguments and each number of lanes. A function that calls itself is an error at the call.
mlir::FailureOr<BatchedFunction> batchedFunction(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments,
                                                 int64_t count, const BatchOptions &options = {});

/// The results of a function for `count` lanes of its arguments at `places`: of one call of its batched form or, where
/// `chunk` is less than `count`, of one for each so many lanes, put together.
mlir::FailureOr<Batched> callInLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp function,
                                     mlir::ValueRange operands, llvm::ArrayRef<unsigned> places, int64_t count,
                                     int64_t chunk, const BatchOptions &options = {});

} // namespace wg::autodiff
