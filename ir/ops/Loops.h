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

llvm::SmallVector<mlir::Value> join(llvm::ArrayRef<mlir::Value> first, llvm::ArrayRef<mlir::Value> rest);

/// Reads an operand of indices at `at`, as i64.
mlir::Value indexAt(mlir::OpBuilder &b, mlir::Location loc, const ElementAccess &memory, unsigned operand,
                    llvm::ArrayRef<mlir::Value> at);

/// Builds `body` where all indices, of `shape`, lie in range, else a failure that names the first one that does not.
void whereIndicesFit(llvm::StringRef op, mlir::OpBuilder &b, mlir::Location loc, const ElementAccess &memory,
                     IndexBound range, llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(mlir::OpBuilder &)> body);

/// Copies the operand, of the result's shape, where the result does not lie in its memory.
void copyUnlessInPlace(mlir::OpBuilder &b, mlir::Location loc, const ElementAccess &memory, unsigned operand,
                       llvm::ArrayRef<int64_t> shape);

/// A coordinate as a value: an index, or with lanes > 0 a vector of `lanes` of them.
mlir::Value placeOf(mlir::OpBuilder &b, mlir::Location loc, const Coordinate &at, int64_t lanes);

/// The place in row-major order of the element at `at` in `shape`.
mlir::Value linearPlace(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<Coordinate> at, int64_t lanes);

} // namespace wg::ir
