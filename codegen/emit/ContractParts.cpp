// Contract kernels whose sums are long and have several tiles: all tiles add one part of the terms, then the next one.
//
// What a part reads of a and b stays close by while all tiles read it, and neither is copied. Meanwhile accumulators
// are in the scratch, and so is the total of the blocks that a long sum is made of: the order of additions, and so each
// bit, is that of a sum without parts.
#include "codegen/emit/ContractEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace wg::codegen {

/// Terms that all tiles add before any adds the next ones; 0: each adds all at once.
int64_t ContractEmitter::termsOfPart() {
  constexpr int64_t kLine = 64, kPage = 4096;
  if (!related.empty() || alongBatch || !batch.empty() || !n.empty() || m.size() != 1 || k.size() != 1 || lane.b != 1 ||
      isEmpty() || packsA() || thrashes(k[0].b))
    return 0;
  int64_t rowOfB = k[0].b * elementBytes();
  if (rowOfB >= kPage && rowOfB % kLine != 0) // vectors lie across two lines each: better copied
    return 0;
  return static_cast<int64_t>(passes::termsOfPart({.terms = double(sizeK()),
                                                   .rows = double(rows()),
                                                   .columns = double(lane.size),
                                                   .elementBytes = double(elementBytes()),
                                                   .lanes = double(lanes),
                                                   .accumulators = double(rowsOfTile(1))}));
}

/// Whether blocks of terms have accumulators of their own.
bool ContractEmitter::sumsInBlocks() {
  return sizeK() > 2 * static_cast<int64_t>(passes::termsOfBlock(static_cast<double>(sizeK())));
}

int64_t ContractEmitter::columnsOfTotals() { return static_cast<int64_t>(llvm::alignTo(lane.size, lanes)); }

int64_t ContractEmitter::elementsOfTotals() {
  return sumsInParts() ? rows() * columnsOfTotals() * (sumsInBlocks() ? 2 : 1) : 0;
}

/// Where in the scratch the accumulators of a vector are, or the total of its blocks.
Value ContractEmitter::placeOf(const Panel &panel, Value i, int row, int vector, bool isTotal) {
  Value at = e.add(e.mul(e.add(i, e.index(row)), columnsOfTotals()), e.add(panel.j, e.index(vector * lanes)));
  return isTotal ? e.add(at, e.index(rows() * columnsOfTotals())) : at;
}

/// What the sums of a tile are when all parts are done.
SmallVector<Value> ContractEmitter::loadTotals(const Panel &panel, Value i, int count) {
  SmallVector<Value> totals;
  for (int r = 0; r < count; ++r)
    for (int v = 0; v < static_cast<int>(panel.masks.size()); ++v)
      totals.push_back(loadVector(e.scratchPointer, placeOf(panel, i, r, v, sumsInBlocks()), {}));
  return totals;
}

/// All tiles at once, or for one part of the sum after another.
void ContractEmitter::inParts(llvm::function_ref<void()> allTiles) {
  if (!sumsInParts())
    return allTiles();
  auto all = [&](Step what) {
    step = what;
    allTiles();
  };
  int64_t terms = sizeK(), part = termsOfPart(),
          block = static_cast<int64_t>(passes::termsOfBlock(static_cast<double>(terms)));
  all(Step::clear);
  e.loop(0, terms, part, [&](Value from) {
    partFrom = from;
    partTo = arith::MinUIOp::create(b, loc, e.add(from, e.index(part)), e.index(terms));
    all(Step::add);
    if (!sumsInBlocks())
      return;
    Value left = arith::RemUIOp::create(b, loc, partTo, e.index(block)),
          ends = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, e.index(0)),
          isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, partTo, e.index(terms)),
          either = arith::OrIOp::create(b, loc, ends, isLast);
    auto ifOp = scf::IfOp::create(b, loc, either, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    all(Step::endBlock);
  });
  partFrom = partTo = {};
  all(Step::finish);
  step = Step::whole;
}

/// Tiles of rows, or panels, that are one chunk: threads share what is worth going through both operands for.
int64_t ContractEmitter::placesOfPiece() {
  constexpr int64_t kTiles = 16;
  int64_t tiles = tilesOfRows(heightOfSharedTiles()), least = sharesRows() ? kTiles : llvm::divideCeil(kTiles, tiles),
          places = sharesRows() ? tiles : numPanels();
  return llvm::divideCeil(places, std::max<int64_t>(1, places / least));
}

/// In each round of a tile, for some of what the next part reads: the first tiles to read it would wait for memory.
/// (1,000,000 x 33 x 33: 17 ms without, 13 with.)
void ContractEmitter::fetchNextPart(const Tile &tile, Value p) {
  const Panel &panel = tile.panel;
  int64_t line = 64 / elementBytes(), part = termsOfPart(), width = panelWidth(),
          height = heightOfTiles(static_cast<int>(panel.masks.size())), tiles = tilesOfRows(height);
  auto next = [&](Value base, Value offset) { prefetch(base, offset); };
  Value round = arith::SubIOp::create(b, loc, p, partFrom);
  // A row of the next part has so many lines: each tile asks for one of them, or some.
  auto ofRow = [&](Value base, Value first, int64_t size, int64_t step, Value number, int64_t count) {
    int64_t lines = llvm::divideCeil(size, line) + 1, each = llvm::divideCeil(lines, count);
    number = arith::RemUIOp::create(b, loc, number, e.index(llvm::divideCeil(lines, each)));
    Value at = e.add(e.add(first, e.mul(e.add(partTo, round), step)), e.mul(number, each * line));
    for (int64_t i = 0; i < each; ++i)
      next(base, e.add(at, e.index(i * line)));
  };
  int64_t panels = e.chunks == 1 || sharesRows() ? numPanels() : placesOfPiece();
  Value panelNumber = arith::DivUIOp::create(b, loc, panel.j, e.index(width)),
        tileNumber = arith::DivUIOp::create(b, loc, tile.i, e.index(height)),
        number = e.add(e.mul(panelNumber, tiles), tileNumber);
  Value firstPanel = e.mul(arith::DivUIOp::create(b, loc, panelNumber, e.index(panels)), panels * width);
  ofRow(e.pointerOf.lookup(bOperand), firstPanel, std::min(panels * width, lane.size), k[0].b, number, panels * tiles);
  if (m[0].a == 1)
    ofRow(baseA, e.index(0), rows(), k[0].a, number, panels * tiles);
  if (k[0].a != 1)
    return;
  int64_t lines = part / line;
  Value row = e.add(tile.i, arith::DivUIOp::create(b, loc, round, e.index(lines))),
        inRow = e.mul(arith::RemUIOp::create(b, loc, round, e.index(lines)), line);
  next(baseA, e.add(e.mul(row, m[0].a), e.add(partTo, inRow)));
}

void ContractEmitter::partOfTile(Value offsetA, Value offsetB, const Panel &panel, Value i, int count,
                                 ArrayRef<Level> levels) {
  int vectors = static_cast<int>(panel.masks.size());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  auto place = [&](size_t slot, bool isTotal) {
    return placeOf(panel, i, static_cast<int>(slot) / vectors, static_cast<int>(slot) % vectors, isTotal);
  };
  size_t size = static_cast<size_t>(count) * vectors;
  SmallVector<Value> acc(size, zero);
  if (step != Step::clear)
    for (auto [slot, value] : llvm::enumerate(acc))
      value = loadVector(e.scratchPointer, place(slot, false), {});
  if (step == Step::add) {
    Tile all{panel, i, count, false, levels, {}, {}};
    findAhead(all);
    acc = sum(all, 0, offsetA, offsetB, {0, 0, 0, count}, acc);
  } else if (step == Step::endBlock) {
    for (auto [slot, value] : llvm::enumerate(acc)) {
      Value at = place(slot, true), total = loadVector(e.scratchPointer, at, {});
      storeVector(e.scratchPointer, at, arith::AddFOp::create(b, loc, total, value));
      value = zero;
    }
  } else if (sumsInBlocks()) {
    for (size_t slot = 0; slot < size; ++slot)
      storeVector(e.scratchPointer, place(slot, true), zero);
  }
  for (auto [slot, value] : llvm::enumerate(acc))
    storeVector(e.scratchPointer, place(slot, false), value);
}

} // namespace wg::codegen
