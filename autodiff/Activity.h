// What takes part in a derivative: the values on a path from a source to a target. Decided before any adjoint is built,
// so that the reasons for what is missing can be told before any pass erases the evidence.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace wg::autodiff {

/// One adjoint that is not computed: the cotangent of an operand of a forward op.
struct DroppedAdjoint {
  std::string op; ///< without the dialect's prefix
  unsigned operand;
  mlir::Location loc;
  std::string reason;
};

/// True for float tensors: what a cotangent can have.
bool isDifferentiableType(mlir::Type type);

class Activity {
public:
  using IsRecorded = llvm::function_ref<bool(mlir::Operation *)>;

  /// Both in one block. `isRecorded` tells which ops a tape has seen; the others are constants to it. Null: all.
  Activity(mlir::ValueRange targets, mlir::ValueRange sources, IsRecorded isRecorded);

  /// A target depends on it through recorded differentiable ops, and it depends on a source.
  bool isActive(mlir::Value value) const { return useful_.contains(value) && varied_.contains(value); }
  bool isVaried(mlir::Value value) const { return varied_.contains(value); }
  /// Ops with an active operand and a useful result, in program order.
  llvm::ArrayRef<mlir::Operation *> ops() const { return active_; }
  /// Why no gradient reaches `source` though it is asked for; only for a source that is not useful or not float.
  std::string whyNone(mlir::Value source) const;
  /// The adjoints that no one needs.
  std::vector<DroppedAdjoint> dropped() const;

  /// An active op was replaced by another with at least its results.
  void replace(mlir::Operation *before, mlir::Operation *after);

private:
  bool recorded(mlir::Operation *op) const { return !isRecorded_ || isRecorded_(op); }
  /// Whether derivatives pass through the op at all.
  bool passes(mlir::Operation *op) const;
  void findUseful(mlir::ValueRange targets);
  void findVaried(mlir::ValueRange sources);
  void findBlocked(mlir::ValueRange targets);

  IsRecorded isRecorded_;
  llvm::DenseSet<mlir::Value> useful_, varied_;
  llvm::SetVector<mlir::Operation *> usefulOps_;
  llvm::SmallVector<mlir::Operation *> active_;
  llvm::SmallVector<mlir::Value> sources_;
  /// Values that a target depends on only through an op that stops derivatives, and the first such op on the way.
  llvm::DenseMap<mlir::Value, mlir::Operation *> blockedBy_;
};

/// `'stop_gradient' stops the gradient (train.cpp:41 in step)`
std::string whyBlocked(mlir::Operation *op, bool recorded);

} // namespace wg::autodiff
