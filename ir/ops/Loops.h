// Loop nests and places for ops that build their own loops (Structured) or read at computed places (Indexed).
#pragma once

#include "ir/Dialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace wg::ir {

/// A row-major nest of loops over `shape`; `body` builds the innermost.
void forEach(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape,
             llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, llvm::ArrayRef<mlir::Value> at)> body);

/// The same, carrying values through all iterations in order; returns the last.
llvm::SmallVector<mlir::Value>
fold(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::ValueRange first,
     llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Location,
                                                       llvm::ArrayRef<mlir::Value> at, mlir::ValueRange)>
         body);

/// A coordinate as a value: an index, or with lanes > 0 a vector of `lanes` of them.
mlir::Value placeOf(mlir::OpBuilder &b, mlir::Location loc, const Coordinate &at, int64_t lanes);

/// The place in row-major order of the element at `at` in `shape`.
mlir::Value linearPlace(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<Coordinate> at, int64_t lanes);

} // namespace wg::ir
