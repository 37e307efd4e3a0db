// A reduce kernel on its way to loops. Private to emit/.
//
// Reduce.cpp holds the phases of rows, ReduceRows.cpp what is walked side by side, ReduceRuns.cpp the long runs of
// columns whose accumulators are in memory, ReduceLanes.cpp how values and the lanes of a vector are combined.
#pragma once

#include "codegen/emit/KernelEmitter.h"

namespace wg::codegen {

class ReduceEmitter {
public:
  using Value = mlir::Value;
  using Known = llvm::DenseMap<Value, Value>; ///< of a row
  template <class T> using SmallVector = llvm::SmallVector<T>;

  explicit ReduceEmitter(KernelEmitter &e);
  mlir::LogicalResult emit(Value begin, Value end);
  int64_t numChunks();
  int64_t scratchBytes();

private:
  static constexpr int64_t kBlock = 256; ///< vectors whose sum is added to the total
  static constexpr int kSideBySide = 4;  ///< additions that are under way at least

  /// What one phase computes: its reductions with `u` accumulators each, and the full outputs that it can store.
  struct Phase {
    SmallVector<mlir::Operation *> ops;
    SmallVector<unsigned> outputs;
    int u, lanes; ///< of the accumulators
  };
  using Step = llvm::function_ref<SmallVector<Value>(Value first, int count, Value mask, SmallVector<Value> acc)>;

  // ---- Rows and their phases
  bool isDegenerate() { return reducedAxes.empty() || e.axes[reducedAxes.back()].size == 0; }
  Space space(unsigned output) { return e.places.of(e.kernel.getYield().getValues()[output]); }
  mlir::LogicalResult emitDegenerate();
  void nestKept(size_t k, Value begin, Value end);
  void inGroups(bool shared, Value begin, Value end);
  SmallVector<mlir::Operation *> reductionsOf(int phase);
  SmallVector<unsigned> fullOutputsOf(int phase);
  void eachOf(llvm::ArrayRef<Point> points, llvm::MutableArrayRef<Known> known,
              llvm::function_ref<void(const Point &)> f);
  void rows(llvm::ArrayRef<Point> points);
  void storeRow(const Point &rowPoint);
  void computeRowValues(int phase, const Point &rowPoint);
  bool inRegisters();
  void registerRow(const Point &rowPoint);
  Point pointOf(const Point &rowPoint, int lanes, Value mask);

  // ---- What one phase adds up
  Value masked(Point &point, mlir::Operation *op, Value x);
  /// Lanes out of range do not count, where lanes are elements of one row.
  Value reduced(Point &point, mlir::Operation *op, Value x) { return columns ? x : masked(point, op, x); }
  SmallVector<Value> nestReduced(size_t k, mlir::ValueRange carried,
                                 llvm::function_ref<SmallVector<Value>(mlir::ValueRange)> inner);
  SmallVector<Value> fresh(const Phase &phase);
  SmallVector<Value> merge(const Phase &phase, mlir::ValueRange total, mlir::ValueRange part);
  SmallVector<Value> addPoints(const Phase &phase, llvm::MutableArrayRef<Point> points, SmallVector<Value> acc);
  SmallVector<Value> walk(const Phase &phase, int64_t whole, int64_t group, Step step,
                          llvm::function_ref<SmallVector<Value>(mlir::ValueRange)> rest);

  // ---- Side by side
  int64_t vectorsSideBySide() { return e.opsOfPoint() <= 4 ? e.target.numVectorRegisters / 4 : e.interleave(); }
  bool areRowsTiny();
  int64_t placesAtOnce();
  int64_t groupOfRows();
  int64_t groupOfColumns();
  int64_t vectorsAtOnce();
  void walkRows(int number, llvm::ArrayRef<Point> rowPoints, llvm::MutableArrayRef<Known> known);
  void askForLaterBlock(unsigned d);
  bool asksForNextGroup(const KernelEmitter::Access &access);
  void askForNextGroup(const Point &rowPoint, int64_t side, Value first);
  void walkColumns(int number, llvm::ArrayRef<Point> rowPoints, llvm::MutableArrayRef<Known> known);

  // ---- Runs of columns
  static int64_t bytesOf(mlir::Operation *op) {
    return std::max(1u, getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth() / 8);
  }
  int64_t columnsOfRun();
  int64_t rowsAtOnce();
  int64_t blocksOfRun();
  Value roomOfRuns(Value begin);
  void askForNextRows(llvm::ArrayRef<Point> points, Value row);
  void walkRun(Value room, Value first, int64_t length);

  // ---- Combining
  Value neutral(mlir::Operation *op, int count);
  Value combine(mlir::Operation *op, Value x, Value y);
  Value combineLanes(mlir::Operation *op, Value vector);
  Value pairwise(Value vector, llvm::function_ref<Value(Value, Value)> both);
  template <class Extreme> Value extremeOfLanes(Value vector, const llvm::APFloat &nan);

  KernelEmitter &e;
  mlir::OpBuilder &b;
  mlir::Location loc;
  ir::Phases phases;
  SmallVector<mlir::Operation *> reductions;
  SmallVector<unsigned> reducedAxes, keptAxes;
  SmallVector<ir::Coordinate> at;
  bool columns = false;
  int lanes = 0;
};

} // namespace wg::codegen
