// Parts of a program as functions of their own, to be batched and called any number of times; and what a program's
// values take.
#pragma once

#include "ir/Dialect.h"

namespace wg::autodiff {

/// What depends on a source, as a function: (captured, source) -> targets.
struct Outlined {
  mlir::func::FuncOp function;
  /// What it reads from outside: its leading arguments. Constants and sizes are made again inside.
  llvm::SmallVector<mlir::Value> captured;
};

/// Moves the ops between `source` and the targets, all of one block, into a private function of `symbols`' module. What
/// nobody else reads of them is erased here. A target that does not depend on the source is captured.
Outlined outline(mlir::Location loc, llvm::StringRef name, mlir::ValueRange targets, mlir::Value source,
                 mlir::SymbolTable &symbols);

/// What a lane takes: the bytes of the values of a straight-line function that depend on the arguments at `places`, at
/// the op where they are most, each from the op that makes it to the last that reads it. Views count too, sizes `?` as
/// 1, calls as their results.
int64_t laneBytes(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> places);

} // namespace wg::autodiff
