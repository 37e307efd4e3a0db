// Small builders that derivative rules and passes share. They build the static form where shapes are static and pass
// sizes as operands, wg.dim and wg.size, where they are not.
#pragma once

#include "ir/Dialect.h"

#include "mlir/IR/OpDefinition.h"

namespace wg::ir {

/// Copies the ops of `block`, whose arguments are `arguments`, and gives what stands for the operands of its
/// terminator, which is not copied. Each copy is shown to `each`.
llvm::SmallVector<mlir::Value> cloneBody(mlir::OpBuilder &b, mlir::Block &block, mlir::ValueRange arguments,
                                         llvm::function_ref<void(mlir::Operation *)> each = {});

/// The shape of `x` as trailing index operands: one wg.dim for each dynamic size, in order.
llvm::SmallVector<mlir::Value> dynamicSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// The size of an axis: a number where it is known, else a value of type index, asked of
/// the earliest value that has it.
mlir::OpFoldResult sizeOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, int64_t axis);
/// The formula (runtime/SizeFormula.h) over `sizes`: a number where all are known and the
/// formula has a value, else a wg.size.
mlir::OpFoldResult computeSize(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef formula,
                               llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// slice, pad and reshape at places and sizes of which some may be values.
mlir::Value slice(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<mlir::OpFoldResult> starts,
                  llvm::ArrayRef<mlir::OpFoldResult> limits, llvm::ArrayRef<int64_t> strides);
mlir::Value pad(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<mlir::OpFoldResult> low,
                llvm::ArrayRef<mlir::OpFoldResult> high, llvm::ArrayRef<int64_t> interior);
mlir::Value reshape(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<mlir::OpFoldResult> shape);

/// Axis i of x becomes axis dims[i] of a value of `shape`.
mlir::Value broadcast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<mlir::OpFoldResult> shape,
                      llvm::ArrayRef<int64_t> dims);
/// x repeated `count` times, along one more axis in front.
mlir::Value spread(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::OpFoldResult count);

/// 1, 0 or `value` everywhere, of x's type.
mlir::Value onesLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);
mlir::Value zerosLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);
mlir::Value fullLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, double value);

/// Swaps the axes of x: axis i of the result is axis permutation[i] of x.
mlir::Value transpose(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<int64_t> permutation);

/// Axis i of x becomes axis dims[i] of a value shaped as `like`.
mlir::Value broadcastTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::ArrayRef<int64_t> dims,
                        mlir::Value like);

/// The adjoint of broadcastTo: sums `ct` over what the broadcast repeated; the result has the type of x.
mlir::Value sumTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value ct, llvm::ArrayRef<int64_t> dims, mlir::Value x);

/// x in the shape of `like`.
mlir::Value reshapeLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value like);

/// x with the type of `like`, where the two types differ only in which sizes are known; failure, and no error,
/// where a size or the dtype differs.
mlir::FailureOr<mlir::Value> conform(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value like);

/// Broadcasts the result of a reduction of `x` over `axes` back to x's shape.
mlir::Value unreduce(mlir::OpBuilder &b, mlir::Location loc, mlir::Value y, llvm::ArrayRef<int64_t> axes,
                     mlir::Value x);

} // namespace wg::ir
