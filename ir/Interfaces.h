// The interfaces of the dialect's ops (Interfaces.td) and the types that they mention.
#pragma once

#include "ir/Expr.h"
#include "runtime/External.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace wg::ir {

/// A coordinate of an element in emitted code. In scalar code it is `base` (type index). In vector code lane l of the
/// vector has the coordinate `base + laneStride * l`: 0 for an axis that is the same in all lanes. A coordinate that
/// is data (a gathered index) differs from lane to lane without a stride: `base` is then a vector of index.
struct Coordinate {
  mlir::Value base;
  int64_t laneStride = 0;
};

/// Emits a read of the element of operand `operand` at `at`, one coordinate per axis of the operand.
using ReadElement = llvm::function_ref<mlir::Value(unsigned operand, llvm::ArrayRef<Coordinate> at)>;

/// How a Structured op reaches its operands and its one result; the emitter supplies it. Coordinates
/// are of type index, one an axis.
/// What a Structured op checks before it stores anything: the elements of an operand lie in [0, size).
struct IndexBound {
  unsigned operand;
  int64_t size;
};

struct ElementAccess {
  /// The element of operand `operand` at `at`.
  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, unsigned operand, mlir::ValueRange at)> load;
  /// Stores the result's element at `at`.
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::ValueRange at, mlir::Value element)> store;
  /// The result's element at `at`, stored before.
  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange at)> reload;
  /// Makes the entry fail where `broken` (i1) holds: `message` and the op's place go to its table of errors; each `{}`
  /// in it stands for one of `values` (i64, at most kMaxAtFault). Called at most once, at top level; the op itself
  /// keeps what follows from running.
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::Value broken, mlir::ValueRange values,
                          llvm::StringRef message)>
      fail;
  static constexpr int kMaxAtFault = 2;
  /// Whether (i1) the result lies in the memory of operand `operand`, which the op says it may overwrite.
  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, unsigned operand)> isInPlace = nullptr;
  /// Element i, i64, of the memory that the op asked for beside its result.
  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value i)> loadScratch = nullptr;
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::Value i, mlir::Value element)> storeScratch =
      nullptr;
  /// Whether the elements of operand `operand` lie one after another in its order, so that runs of it, and of the
  /// result, may go on beyond a row.
  llvm::function_ref<bool(unsigned operand)> isWhole = nullptr;
  /// Stores `count` elements from `to` on along the last axis: those of operand `operand` from `from` on, ...
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, unsigned operand, mlir::ValueRange from,
                          mlir::ValueRange to, int64_t count)>
      copyRun = nullptr;
  /// ... their sums with what was stored there before, ...
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, unsigned operand, mlir::ValueRange from,
                          mlir::ValueRange to, int64_t count)>
      addRun = nullptr;
  /// ... or 0.
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::ValueRange to, int64_t count)> clearRun = nullptr;
  /// The op's bound is known to hold: it checks nothing.
  bool isChecked = false;
};

/// What an External op's row says.
runtime::ExternalCall routineOf(mlir::Operation *op);
llvm::SmallVector<llvm::StringRef> statusesOf(mlir::Operation *op);
int64_t overwrittenOf(mlir::Operation *op);

/// C++ side of WG_NotDifferentiable; the reason itself is a member of the op.
template <class ConcreteType>
class IsTranscendental : public mlir::OpTrait::TraitBase<ConcreteType, IsTranscendental> {};
template <class ConcreteType> class HasOwnLanes : public mlir::OpTrait::TraitBase<ConcreteType, HasOwnLanes> {};
template <class ConcreteType> class MeetsRanks : public mlir::OpTrait::TraitBase<ConcreteType, MeetsRanks> {};
template <class ConcreteType> class IsCheap : public mlir::OpTrait::TraitBase<ConcreteType, IsCheap> {};
template <class ConcreteType>
class StatesWhyNotDifferentiable : public mlir::OpTrait::TraitBase<ConcreteType, StatesWhyNotDifferentiable> {};

} // namespace wg::ir

#include "ir/Interfaces.h.inc"

namespace wg::ir {
// Of an op that is a kernel alone, Structured or External.

/// Whether it can fail when it runs.
bool mayFail(mlir::Operation *op);
/// The operand of the result's type in whose memory the result may lie; -1: none.
int64_t overwrittenBy(mlir::Operation *op);
} // namespace wg::ir
