// Squares of elements, and pieces of them, transposed in registers: what a map reads across its vectors.
#include "codegen/emit/KernelEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace wg::codegen {

/// The lanes of x and then of y, as many as one of them has, that are the `half`-th (0 or 1) result of a round of
/// transpose(): runs of `run` lanes of x and y by turns where each piece of `piece` lanes is interleaved within itself,
/// else every second piece.
static SmallVector<int64_t> interleaved(int64_t lanes, int64_t piece, int64_t run, int64_t half) {
  SmallVector<int64_t> from;
  for (int64_t first = half * piece / 2; first < lanes; first += piece)
    for (int64_t at = first; at < first + piece / 2; at += run)
      for (int64_t operand : {0, 1})
        llvm::append_range(from, llvm::seq(operand * lanes + at, operand * lanes + at + run));
  return from;
}
static SmallVector<int64_t> everySecond(int64_t lanes, int64_t piece, int64_t half) {
  SmallVector<int64_t> from;
  for (int64_t first = half * piece; first < 2 * lanes; first += 2 * piece)
    llvm::append_range(from, llvm::seq(first, first + piece));
  return from;
}

/// Shuffles of whole vectors that are one instruction each: unpacks within pieces of 128 bits, then whole pieces. Of
/// floats, as LLVM is kept from searching what such shuffles could be instead (MachineCode.cpp).
namespace {
struct Shuffles {
  OpBuilder &b;
  Location loc;
  MutableArrayRef<Value> rows;
  int64_t lanes, piece;

  void round(int64_t distance, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
    for (size_t r = 0; r < rows.size(); ++r) {
      if (r & static_cast<size_t>(distance))
        continue;
      Value x = rows[r], y = rows[r + distance];
      rows[r] = vector::ShuffleOp::create(b, loc, x, y, low);
      rows[r + distance] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
  }
  /// Squares of `piece` elements within `piece` rows side by side.
  void withinPieces() {
    for (int64_t run = 1; run < piece; run *= 2)
      round(run, interleaved(lanes, piece, run, 0), interleaved(lanes, piece, run, 1));
  }
  /// Interleaving halves leaves the columns of a piece in the order of their bits reversed.
  void restoreOrder() {
    SmallVector<Value> shuffled(rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      size_t reversed = 0, size = static_cast<size_t>(piece);
      for (size_t bit = 1; bit < size; bit *= 2)
        reversed = 2 * reversed + (r & bit ? 1 : 0);
      rows[r / size * size + reversed] = shuffled[r];
    }
  }
};
} // namespace

/// Words of integers as floats of their width, and back.
static void readAs(OpBuilder &b, Location loc, MutableArrayRef<Value> rows, Type element) {
  for (Value &row : rows)
    row = arith::BitcastOp::create(b, loc, cast<VectorType>(row.getType()).clone(element), row);
}
static Type floatsFor(OpBuilder &b, Type element) {
  if (!isa<IntegerType>(element) || element.getIntOrFloatBitWidth() < 32)
    return element;
  return element.getIntOrFloatBitWidth() == 32 ? Type(b.getF32Type()) : Type(b.getF64Type());
}

int64_t KernelEmitter::pieceOf(Type element, int64_t lanes) {
  return std::min<int64_t>(lanes, 128 / element.getIntOrFloatBitWidth());
}

void KernelEmitter::transpose(MutableArrayRef<Value> rows) {
  auto lanes = static_cast<int64_t>(rows.size());
  Type element = getElementTypeOrSelf(rows[0].getType()), shuffled = floatsFor(b, element);
  if (shuffled != element)
    readAs(b, loc, rows, shuffled);
  Shuffles shuffles{b, loc, rows, lanes, pieceOf(element, lanes)};
  shuffles.withinPieces();
  for (int64_t distance = shuffles.piece; distance < lanes; distance *= 2)
    shuffles.round(distance, everySecond(lanes, shuffles.piece, 0), everySecond(lanes, shuffles.piece, 1));
  shuffles.restoreOrder();
  if (shuffled != element)
    readAs(b, loc, rows, element);
}

/// Vector j takes the columns j, j + piece, j + 2 piece, ..., each as one of its pieces of 128 bits; what is left is
/// transposed within these. A fourth of the shuffles that a whole square takes, for a fourth of its rows, and columns
/// are joined as they are loaded.
SmallVector<Value> KernelEmitter::transposePieces(ArrayRef<Value> columns) {
  auto lanes = static_cast<int64_t>(columns.size());
  auto type = cast<VectorType>(columns[0].getType());
  int64_t piece = type.getNumElements();
  Type element = type.getElementType(), shuffled = floatsFor(b, element);
  SmallVector<Value> rows;
  for (int64_t j = 0; j < piece; ++j) {
    SmallVector<Value> joined;
    for (int64_t c = j; c < lanes; c += piece)
      joined.push_back(columns[c]);
    if (shuffled != element)
      readAs(b, loc, joined, shuffled);
    for (; joined.size() > 1; joined.resize(joined.size() / 2))
      for (size_t i = 0; i < joined.size() / 2; ++i) {
        int64_t size = cast<VectorType>(joined[2 * i].getType()).getNumElements();
        joined[i] = vector::ShuffleOp::create(b, loc, joined[2 * i], joined[2 * i + 1],
                                              llvm::to_vector(llvm::seq<int64_t>(0, 2 * size)));
      }
    rows.push_back(joined[0]);
  }
  Shuffles shuffles{b, loc, rows, lanes, piece};
  shuffles.withinPieces();
  shuffles.restoreOrder();
  if (shuffled != element)
    readAs(b, loc, rows, element);
  return rows;
}

} // namespace wg::codegen
