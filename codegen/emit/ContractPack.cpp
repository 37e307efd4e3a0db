// Copies of operands that a contract kernel's tiles read: panels of b, tiles of a.
#include "codegen/emit/ContractEmitter.h"

#include "runtime/Extent.h"

using namespace mlir;

namespace wg::codegen {

/// Whether a panel of b is copied before use.
bool ContractEmitter::packsB() {
  if (alongBatch || isEmpty())
    return false;
  if (!related.empty()) {
    // What lies apart; and what is larger than the caches close by where a panel is not, if so many rows read it that
    // the copy is soon paid: sooner where its lines share a few cache sets. A panel that is neither small nor read
    // more often than it is long is read as it lies.
    int64_t width = static_cast<int64_t>(panelVectors()) * lanes, terms = sizeOf(lettersOfPanel()),
            rows = ShapedType::getNumElements(shapeOf(op.getC())) / std::max<int64_t>(1, lane.size),
            bytes = runtime::saturatingMul(terms, elementBytes());
    bool small = runtime::saturatingMul(bytes, width) <= (int64_t(1) << 21);
    if (lane.b != 1)
      return lane.size > 1 && (small || rows >= terms);
    bool large = runtime::saturatingMul(bytes, lane.size) > (int64_t(1) << 20);
    return small && large && rows >= (lane.size * elementBytes() % 4096 == 0 ? 24 : 96);
  }
  if (walksRows() || rowsGoAround() || sumsInParts())
    return false;
  if (lane.b == 1 && crossesLines() && rows() > 2 * rowsOfTile(panelVectors()))
    return true;
  return liesFar() && (lane.b != 1 || rows() >= 4 * rowsOfTile(panelVectors()));
}

/// Whether the rows of a panel that the nearest cache does not hold lie on pages of their own and its vectors across
/// two lines each, which tiles read at half the rate: 27 x 909 x 560 in four parts of 140 by rows 49 KB apart took 12.6
/// ms 22 times over, 9.9 with copies, which lie as lines do; in one part, whose vectors are lines, 7.2 without any.
bool ContractEmitter::crossesLines() {
  constexpr int64_t kLine = 64, kPage = 4096;
  auto isOff = [&](const Letter &letter) { return letter.size > 1 && letter.b * elementBytes() % kLine != 0; };
  return !k.empty() && k.back().b * elementBytes() >= kPage &&
         sizeK() * panelVectors() * e.target.vectorBytes > kBytesCloseBy &&
         (llvm::any_of(k, isOff) || llvm::any_of(n, isOff) || llvm::any_of(batch, isOff));
}

bool ContractEmitter::liesFar() {
  if (lane.b != 1)
    return lane.size > 1;
  return sizeK() * lane.size * elementBytes() > (int64_t(1) << 20) || (!k.empty() && thrashes(k.back().b));
}

/// Whether a is copied tile by tile: each tile is read once a panel.
bool ContractEmitter::packsA() {
  return related.empty() && !alongBatch && !isEmpty() && m.size() == 1 && k.size() == 1 && m[0].a == 1 &&
         thrashes(k[0].a) && lane.size >= 8 * lanes;
}

std::vector<runtime::Letter> ContractEmitter::lettersOfPanel() const {
  if (related.empty())
    return k;
  std::vector<Letter> letters;
  auto insert = [&](const Letter &letter) {
    letters.insert(llvm::upper_bound(letters, letter, [](const Letter &x, const Letter &y) { return x.b > y.b; }),
                   letter);
  };
  for (const runtime::Related &each : related)
    insert(each.b);
  llvm::for_each(k, insert);
  return letters;
}

int64_t ContractEmitter::panelElements() {
  return packsB() ? runtime::saturatingMul(sizeOf(lettersOfPanel()), static_cast<int64_t>(panelVectors()) * lanes) : 0;
}

int64_t ContractEmitter::scratchBytes() {
  int64_t tiles = packsA() ? (rows() + rowsOfTile(panelVectors()) - 1) / rowsOfTile(panelVectors()) : 0;
  // Where the sum is beyond 64 bits, so is the workspace: the memory plan refuses it.
  int64_t panels = runtime::saturatingMul(panelElements(), e.numPieces()),
          packed = runtime::saturatingMul(tiles * rowsOfTile(panelVectors()), sizeK());
  int64_t elements = runtime::saturatingAdd(runtime::saturatingAdd(panels, packed), elementsOfTotals());
  return runtime::saturatingMul(elements, elementBytes());
}

/// scratch[tile of m][k][rows of a tile] = a, after the panel of b. Returns the offset of the first tile.
Value ContractEmitter::packA(Value offsetA) {
  int height = rowsOfTile(panelVectors());
  int64_t size = m[0].size, whole = size / height * height;
  Value source = baseA, first = e.index(panelElements());
  auto copyTile = [&](Value i, int count) {
    auto type = VectorType::get({count}, element);
    e.loop(0, k[0].size, 1, [&](Value p) {
      Value from = e.add(e.add(offsetA, i), e.mul(p, k[0].a));
      Value x = LLVM::LoadOp::create(b, loc, type, pointerAt(source, from), alignment());
      Value to = e.add(e.add(first, e.mul(i, sizeK())), e.mul(p, height));
      LLVM::StoreOp::create(b, loc, x, pointerAt(e.scratchPointer, to), alignment());
    });
  };
  e.loop(0, whole, height, [&](Value i) { copyTile(i, height); });
  if (whole < size)
    copyTile(e.index(whole), static_cast<int>(size - whole));
  baseA = e.scratchPointer;
  stridesA = {height};
  strideM = 1;
  return first;
}

/// scratch[k][vectors * lanes] = b[k, panel]; columns out of range are zero.
void ContractEmitter::pack(Value base, Value panelOffset, int vectors, int64_t columns) {
  int64_t width = static_cast<int64_t>(vectors) * lanes;
  std::vector<Letter> letters = lettersOfPanel();
  const Letter inner = letters.empty() ? Letter{} : letters.back();
  std::function<void(size_t, Value, Value)> outer = [&](size_t depth, Value from, Value row) {
    if (depth + 1 < letters.size()) {
      e.loop(0, letters[depth].size, 1, [&](Value p) {
        outer(depth + 1, e.add(from, e.mul(p, letters[depth].b)), e.mul(e.add(row, p), letters[depth + 1].size));
      });
      return;
    }
    if (lane.b == 1)
      return copyRows(base, from, row, 0, inner.size, inner.b, vectors, columns, width);
    if (inner.b != 1)
      return gatherRows(base, from, row, inner.size, inner.b, vectors, columns, width);
    // Whole squares where the columns collide; pieces of 128 bits, and the rest of one.
    int64_t done = 0;
    auto blocks = [&](int64_t height) {
      int64_t end = inner.size / height * height;
      e.loop(done, end, height, [&](Value p) {
        transposeBlock(base, e.add(from, p), e.add(row, p), height, height, vectors, columns, width);
      });
      done = end;
    };
    if (KernelEmitter::columnsCollide(lane.b, element, lanes))
      blocks(lanes);
    int64_t piece = KernelEmitter::pieceOf(element, lanes);
    blocks(piece);
    if (done < inner.size)
      transposeBlock(base, e.add(from, e.index(done)), e.add(row, e.index(done)), piece, inner.size - done, vectors,
                     columns, width);
  };
  outer(0, panelOffset, e.index(0));
}

void ContractEmitter::copyRows(Value base, Value from, Value row, int64_t first, int64_t last, int64_t stride,
                               int vectors, int64_t columns, int64_t width) {
  e.loop(first, last, 1, [&](Value p) {
    for (int v = 0; v < vectors; ++v) {
      Value x = loadVector(base, e.add(e.add(from, e.mul(p, stride)), e.index(v * lanes)),
                           e.tailMask(lanes, columns - static_cast<int64_t>(v) * lanes));
      storeVector(e.scratchPointer, e.add(inPiece(e.mul(e.add(row, p), width)), e.index(v * lanes)), x);
    }
  });
}

/// Element by element: layouts without a contiguous axis.
void ContractEmitter::gatherRows(Value base, Value from, Value row, int64_t count, int64_t stride, int vectors,
                                 int64_t columns, int64_t width) {
  e.loop(0, count, 1, [&](Value p) {
    Value rowFrom = e.add(from, e.mul(p, stride)), rowTo = inPiece(e.mul(e.add(row, p), width));
    if (columns < width)
      storeVector(e.scratchPointer, e.add(rowTo, e.index((vectors - 1) * lanes)),
                  arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType())));
    e.loop(0, columns, 1, [&](Value c) {
      Value x = loadScalar(base, e.add(rowFrom, e.mul(c, lane.b)));
      LLVM::StoreOp::create(b, loc, x, pointerAt(e.scratchPointer, e.add(rowTo, c)), alignment());
    });
  });
}

/// `count` <= `height` values of k by the columns of a panel, contiguous along k, transposed in registers; `height` is
/// a piece of a vector or as many as it has lanes.
void ContractEmitter::transposeBlock(Value base, Value from, Value row, int64_t height, int64_t count, int vectors,
                                     int64_t columns, int64_t width) {
  auto type = VectorType::get({height}, element);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type)),
        mask = e.tailMask(static_cast<int>(height), count);
  for (int64_t first = 0; first < static_cast<int64_t>(vectors) * lanes; first += lanes) {
    SmallVector<Value> x(lanes, zero);
    for (int64_t c = 0; c < std::min<int64_t>(lanes, columns - first); ++c) {
      Value at = pointerAt(base, e.add(from, e.index((first + c) * lane.b)));
      x[c] = mask ? Value(LLVM::MaskedLoadOp::create(b, loc, type, at, mask, zero, alignment()))
                  : Value(LLVM::LoadOp::create(b, loc, type, at, alignment()));
    }
    if (height == lanes)
      e.transpose(x);
    else
      x = e.transposePieces(x);
    for (int64_t p = 0; p < count; ++p) {
      Value to = inPiece(e.mul(e.add(row, e.index(p)), width));
      storeVector(e.scratchPointer, e.add(to, e.index(first)), x[p]);
    }
  }
}

} // namespace wg::codegen
