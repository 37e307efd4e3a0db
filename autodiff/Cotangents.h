// The cotangents found so far, one per primal value.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"

namespace wg::autodiff {

class Cotangents {
public:
  Cotangents(mlir::OpBuilder &b, mlir::Location loc) : b_(b), loc_(loc) {}

  /// Adds a contribution of the primal's type. Contributions are summed in the order in which they come; but those of
  /// slices of known places wait until somebody asks, and come last.
  void add(mlir::Value primal, mlir::Value contribution, mlir::Location loc);
  /// The sum so far, or null.
  mlir::Value lookup(mlir::Value primal);
  /// `after` takes the place of `before`: its sum, and what it is a sum itself, as a seed is.
  void replace(mlir::Value before, mlir::Value after) {
    for (auto &[primal, sum] : sums_)
      if (sum == before)
        sum = after;
    if (mlir::Value sum = sums_.lookup(before)) {
      sums_.erase(before);
      sums_[after] = sum;
    }
    if (auto found = pieces_.find(before); found != pieces_.end()) {
      llvm::SmallVector<Piece> pieces = std::move(found->second);
      pieces_.erase(found);
      pieces_[after] = std::move(pieces);
    }
  }
  /// The sum so far, or zeros.
  mlir::Value orZeros(mlir::Value primal);

private:
  struct Piece {
    mlir::Value padded; ///< with the zeros around it
    mlir::Location loc;
  };
  llvm::SmallVector<Piece> joined(llvm::SmallVector<Piece> pieces);
  Piece together(llvm::ArrayRef<Piece> run, int64_t axis);

  mlir::OpBuilder &b_;
  mlir::Location loc_;
  llvm::DenseMap<mlir::Value, mlir::Value> sums_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Piece>> pieces_;
};

} // namespace wg::autodiff
