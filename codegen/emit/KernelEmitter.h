// What the emitters share: a kernel's iteration space, where its values live in it, and how an element is computed.
//
// A kernel becomes one function `(pointers of the inputs, pointers of the outputs, scratch, begin, end)`. It walks its
// iteration space with scf loops; at each *point* (a scalar place, or a vector of `lanes` neighbours along the
// innermost axis) the values of the body are computed on demand and remembered. Views cost nothing: a value seen
// through broadcasts, transposes and slices is a load with other strides.
#pragma once

#include "codegen/target/Cpu.h"
#include "ir/Kernels.h"
#include "passes/MemoryCosts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace wg::codegen {

using ir::Space;

/// An axis of the iteration space after neighbours that no access tells apart were merged and unit axes dropped.
struct Axis {
  int64_t size;
  int64_t dim;  ///< the last of the original axes that it stands for
  bool reduced; ///< one of the axes that a reduce kernel combines
};

/// Whether an offset can stand in a GEP as a number, for which MLIR has 29 bits.
inline bool isGepConstant(int64_t offset) { return llvm::isInt<29>(offset); }

/// Bytes of an element in memory; no pointer is aligned to more.
inline unsigned alignmentOf(mlir::Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

/// An offset as what varies, null for none, and a number.
std::pair<mlir::Value, int64_t> partsOf(mlir::Value offset);

/// A place in the iteration space for which elements are computed.
struct Point {
  Point() = default;
  Point(llvm::ArrayRef<ir::Coordinate> at, int lanes, mlir::Value mask) : at(at), lanes(lanes), mask(mask) {}
  llvm::SmallVector<ir::Coordinate> at; ///< one per Axis; a reduced axis has none (null base) at a row point
  int lanes = 0;                        ///< 0: scalar code; else the length of the vectors
  mlir::Value mask;                     ///< vector<lanes x i1>; null: every lane is in range
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseMap<mlir::Value, mlir::Value> held; ///< inputs that are in registers: what this point reads of each
};

/// One kernel on its way to a function.
class KernelEmitter {
public:
  KernelEmitter(ir::KernelOp kernel, const Target &target, mlir::OpBuilder &b);

  /// Emits the function's body at the builder's insertion point. `pointers`: inputs, then outputs, then scratch.
  mlir::LogicalResult emit(mlir::ValueRange pointers, mlir::Value begin, mlir::Value end);

  /// The number of independent chunks that the outermost loop consists of; the range of begin and end.
  int64_t numChunks() const { return chunks; }
  /// The chunks are handed to threads in pieces of equal length, by the shape alone: at most 16, so
  /// that a scratch for each is small.
  int64_t chunksPerPiece() const { return std::max<int64_t>(1, (chunks + 15) / 16); }
  int64_t numPieces() const { return (chunks + chunksPerPiece() - 1) / chunksPerPiece(); }
  /// Bytes of scratch that emit() will address; known after construction.
  int64_t scratchBytes() const { return scratch; }
  /// Whether it can fail at run time: it then returns an error number.
  bool mayFail() const { return loops.getMayFail(); }

  /// Where an input is: in memory, or in registers, as a scalar or the vectors of a row.
  struct Input {
    mlir::Value pointer;
    llvm::ArrayRef<mlir::Value> held;
  };
  /// What a map kernel yields, of a scalar or of the vectors of one short row: instead of emit(), where a loop keeps
  /// them in registers (EmitTurns.cpp).
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> valuesInRegisters(llvm::ArrayRef<Input> inputs);
  /// The vectors of a row of so many elements, the last one masked if it is not full.
  llvm::SmallVector<Point> pointsOfRow(int64_t elements);

  // -- What Map, Reduce, Contract, Single and External build on ---------------------------------------------------

  mlir::OpBuilder &b;
  mlir::Location loc;
  ir::KernelOp kernel;
  ir::LoopsAttr loops; ///< what was decided about it
  const Target &target;

  ir::Places places;            ///< of its values in its iteration space
  llvm::SmallVector<Axis> axes; ///< of that space, after merging
  int64_t chunks = 1;
  int64_t scratch = 0;

  /// Values of rows (after their reduction) and of the whole kernel that are already computed.
  llvm::DenseMap<mlir::Value, mlir::Value> known;
  llvm::DenseMap<mlir::Value, mlir::Value>
      pointerOf;                          ///< block argument or yielded value (by yield position) -> pointer
  llvm::SmallVector<mlir::Value> outputs; ///< pointer of each yielded value
  mlir::Value scratchPointer;
  bool asksForRows = true;                    ///< where these are masked loads: nobody else does
  mlir::Value failure;                        ///< i32 error number or 0, of a kernel that can fail
  std::vector<std::string> *errors = nullptr; ///< the entry's table: texts and places
  std::vector<std::string> *errorPlaces = nullptr;

  /// Number of lanes for this kernel's vectors: the target's register over its widest element, at least 2.
  int nativeLanes();
  /// Of vectors along rows of this length: no longer than the row, as a masked store beyond its end keeps the next
  /// row's loads waiting, as if it wrote there.
  int lanesFor(int64_t length);
  /// Scalar operations of one point, where a transcendental function is twenty.
  int64_t opsOfPoint();
  /// How many points to interleave so that their live values fit the target's registers: 4, 2 or 1.
  int interleave();

  // Index arithmetic, folded where constant. Sums keep their number on the right.
  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, int64_t c);
  /// `pointer` and so many elements. Numbers go last, where the code generator makes them part of an access.
  mlir::Value elementAfter(mlir::Value pointer, mlir::Value offset, mlir::Type memory);

  /// The element(s) of `value` at `point`, a scalar or a vector of point.lanes elements.
  mlir::Value eval(Point &point, mlir::Value value);
  /// Evaluates `values` at every point, op by op, so that independent points interleave.
  void evalAll(llvm::MutableArrayRef<Point> points, mlir::ValueRange values);
  /// Stores the value of yield operand `output` computed at `point`.
  void store(Point &point, unsigned output);
  /// Stores `value` for yield operand `output` at `point`, of the space that the yielded value has.
  void storeValue(Point &point, unsigned output, mlir::Value value);

  /// A load or store at base + the point's coordinates times `strides` (one per Axis) + offset, in elements.
  mlir::Value load(const Point &point, mlir::Value pointer, mlir::Type elementType, llvm::ArrayRef<int64_t> strides,
                   int64_t offset);
  /// Prefetches a line; what such a load reads.
  /// Into all caches, or, of locality 2, all but the closest.
  void prefetch(mlir::Value pointer, int locality = 3);
  void prefetch(const Point &point, mlir::Value pointer, mlir::Type elementType, llvm::ArrayRef<int64_t> strides,
                int64_t offset);
  void storePieces(mlir::Value value, mlir::Value base, int64_t count, unsigned alignment);
  void storeAt(const Point &point, mlir::Value pointer, mlir::Value value, llvm::ArrayRef<int64_t> strides,
               int64_t offset, bool inPieces = false);
  /// Row-major access of an operand by explicit coordinates, for ops that compute their places.
  mlir::Value loadAt(const Point &point, mlir::Value root, llvm::ArrayRef<ir::Coordinate> at);
  /// Lets the code generator fuse a product into the sum that is its only reader.
  void mayContract(mlir::Value value);
  mlir::Value multiplyAdd(Point &point, mlir::Operation *op);
  /// The element of an op that computes from its place, at the coordinates that `map` makes of the point's.
  mlir::Value elementAt(const Point &point, ir::Indexed op, mlir::AffineMap map);

  /// `scf.for` from `from` to `to`; the body gets the induction variable. Emits the body alone if it runs once.
  void loop(int64_t from, int64_t to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// The body if `end` reaches beyond chunk `last`.
  void onLastChunk(mlir::Value end, int64_t last, llvm::function_ref<void()> body);
  /// With values carried from iteration to iteration.
  llvm::SmallVector<mlir::Value>
  loop(int64_t from, int64_t to, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

  /// Room on the stack for so many vectors, one after the other.
  mlir::Value stackOf(mlir::VectorType type, int64_t count);
  /// A square of as many vectors as each has lanes, transposed in registers.
  void transpose(llvm::MutableArrayRef<mlir::Value> rows);
  /// As many rows as are one piece of 128 bits, of columns of that height: as many as a row's vector has lanes.
  llvm::SmallVector<mlir::Value> transposePieces(llvm::ArrayRef<mlir::Value> columns);
  /// Elements of a piece of a vector.
  static int64_t pieceOf(mlir::Type element, int64_t lanes);
  /// Whether columns that are so many elements apart are to be transposed in whole squares, not in pieces.
  static bool columnsCollide(int64_t stride, mlir::Type element, int64_t lanes);
  /// vector<lanes x i1> with the first `count` lanes on; null if all are.
  mlir::Value tailMask(int lanes, int64_t count);
  /// `value` as a vector of `lanes` equal elements; itself if lanes is 0 or it is a vector.
  mlir::Value splat(mlir::Value value, int lanes);
  /// The type of a value of `element` at a point with `lanes`: i1 for bool, i8 for u8.
  static mlir::Type computeType(mlir::Type element, int lanes);

  /// Strides (one per Axis) and offset with which a value seen through views reads its root; nothing if the root is
  /// itself computed (an Indexed op).
  struct Access {
    mlir::Value root;
    llvm::SmallVector<int64_t> strides;
    int64_t offset = 0;
  };
  std::optional<Access> accessOf(mlir::Value value);
  /// f of each value that elements read from memory, as it is or seen through views, once.
  void eachRead(llvm::function_ref<void(mlir::Value, const Access &)> f);
  /// Whether elements so far apart are read faster with all that is between them than one by one.
  static bool areClose(int64_t stride, int lanes, mlir::Type element);
  /// Loops around each other as `order` says, outermost first.
  void putInOrder(llvm::ArrayRef<size_t> order);
  /// Strides over the axes with which the inputs are read, however often each is.
  llvm::SmallVector<llvm::SmallVector<int64_t>> stridesOfReads();
  /// Row-major strides of the yielded value `output` over the axes.
  llvm::SmallVector<int64_t> outputStrides(unsigned output);

  mlir::LogicalResult emitMap(mlir::Value begin, mlir::Value end);
  mlir::LogicalResult emitReduce(mlir::Value begin, mlir::Value end);
  mlir::LogicalResult emitContract(mlir::Value begin, mlir::Value end);
  mlir::LogicalResult emitSingle();
  mlir::LogicalResult emitExternal();

private:
  friend struct ContractEmitter;
  int64_t aheadOfMasked(const Point &point, const Access &access);
  bool isReadBehind(unsigned output, int lanes);
  void mergeAxes();
  void planChunks();
  void planContract();
  void planReduce();
  /// What a map kernel reads along `axis` while its vectors lie along the innermost one.
  struct Across {
    size_t axis;
    llvm::SmallVector<mlir::Value> values;
    int64_t rowsAtOnce; ///< which are read of each block: a piece of a vector, or as many as it has lanes
  };
  void evalUniform(Point &once);
  std::optional<Across> readAcross();
  /// Of the innermost axis blocks take so many points at once, in all loops from that of `axis` on.
  struct Cut {
    int64_t points;
    size_t axis;
  };
  Cut pointsAtOnce(const Across &across);
  int64_t elementsAhead(mlir::Value value, const Across &across, const Cut &cut);
  /// What rows ask for ahead: what lies so many elements further on than they read of a value.
  llvm::MapVector<mlir::Value, int64_t> rowsAhead(const std::optional<Across> &across);
  void askAhead(mlir::Value value, int64_t elements, llvm::ArrayRef<ir::Coordinate> outer, mlir::Value first,
                int64_t count);
  llvm::SmallVector<mlir::Value> readTransposed(mlir::Value value, const Across &across, int64_t ahead,
                                                llvm::ArrayRef<ir::Coordinate> outer, mlir::Value first,
                                                mlir::Value from, int lanes, int64_t rows, int64_t count,
                                                int64_t width);
  mlir::Value asElements(mlir::Value row, mlir::Value value);
  mlir::Value putOnStack(llvm::ArrayRef<mlir::Value> vectors);
  void orderAxes();
  std::optional<passes::LoopOrder::Strips> strips; ///< of the axes in their order
  llvm::DenseMap<mlir::Value, std::optional<Access>> accesses;
};

/// Row-major strides, in elements.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

} // namespace wg::codegen
