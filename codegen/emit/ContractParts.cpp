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
  return static_cast<int64_t>(
      passes::termsOfPart({.terms = double(sizeK()),
                           .rows = double(rows()),
                           .columns = double(lane.size),
                           .elementBytes = double(elementBytes()),
                           .lanes = double(lanes),
                           .accumulators = double(passes::mostAccumulators(e.target.numVectorRegisters))}));
}

int64_t ContractEmitter::columnsOfTotals() { return static_cast<int64_t>(llvm::alignTo(lane.size, lanes)); }

int64_t ContractEmitter::elementsOfTotals() { return sumsInParts() ? rows() * columnsOfTotals() * 2 : 0; }

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
      totals.push_back(loadVector(e.scratchPointer, placeOf(panel, i, r, v, true), {}));
  return totals;
}

/// All tiles at once, or for one part of the sum after another.
void ContractEmitter::inParts(llvm::function_ref<void()> allTiles) {
  if (!sumsInParts())
    return allTiles();
  auto all = [&](Phase what) {
    phase = what;
    allTiles();
  };
  int64_t terms = sizeK(), part = termsOfPart(),
          block = static_cast<int64_t>(passes::termsOfBlock(static_cast<double>(terms)));
  all(Phase::clear);
  e.loop(0, terms, part, [&](Value from) {
    partFrom = from;
    partTo = arith::MinUIOp::create(b, loc, e.add(from, e.index(part)), e.index(terms));
    all(Phase::add);
    Value left = arith::RemUIOp::create(b, loc, partTo, e.index(block)),
          isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, e.index(0)),
          isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, partTo, e.index(terms)),
          endsBlock = arith::OrIOp::create(b, loc, isWhole, isLast);
    auto ifOp = scf::IfOp::create(b, loc, endsBlock, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    all(Phase::endBlock);
  });
  partFrom = partTo = {};
  all(Phase::finish);
  phase = Phase::whole;
}

/// Tiles of rows, or panels, that are one chunk: threads share what is worth going through both operands for.
int64_t ContractEmitter::placesOfPiece() {
  constexpr int64_t kTiles = 16;
  int64_t tiles = tilesOfRows(heightOfSharedTiles()), least = sharesRows() ? kTiles : llvm::divideCeil(kTiles, tiles),
          places = sharesRows() ? tiles : numPanels();
  return llvm::divideCeil(places, std::max<int64_t>(1, places / least));
}

/// Asks in each round of a tile for some of what the next part of its piece reads: else the first tiles to read it
/// would wait for memory. (1,000,000 x 33 x 33, in C: 17 ms without, 13 with.)
void ContractEmitter::fetchNextPart(const Tile &tile, Value p) {
  int64_t width = panelWidth(), height = heightOfTiles(static_cast<int>(tile.panel.masks.size())), panels = numPanels(),
          tiles = tilesOfRows(height);
  Value panel = arith::DivUIOp::create(b, loc, tile.panel.j, e.index(width)),
        row = arith::DivUIOp::create(b, loc, tile.i, e.index(height)), firstPanel = e.index(0), firstRow = e.index(0);
  if (e.chunks > 1) { // of those in its piece
    auto [place, first, count] = sharesRows() ? std::tie(row, firstRow, tiles) : std::tie(panel, firstPanel, panels);
    count = placesOfPiece();
    first = e.mul(arith::DivUIOp::create(b, loc, place, e.index(count)), count);
    place = arith::SubIOp::create(b, loc, place, first);
  }
  Value number = e.add(e.mul(panel, tiles), row), round = arith::SubIOp::create(b, loc, p, partFrom);
  fetchAcross(e.pointerOf.lookup(bOperand), e.mul(firstPanel, width), std::min(panels * width, lane.size), k[0].b,
              round, number, panels * tiles);
  if (m[0].a == 1)
    fetchAcross(baseA, e.mul(firstRow, height), std::min(tiles * height, rows()), k[0].a, round, number,
                panels * tiles);
  else if (k[0].a == 1)
    fetchAlong(tile, round);
}

/// `size` elements from `first` on of that row of an operand which the next part has in this round: the tile that is
/// `number` of `count` asks for a line of these, or some.
void ContractEmitter::fetchAcross(Value base, Value first, int64_t size, int64_t rowStep, Value round, Value number,
                                  int64_t count) {
  int64_t line = 64 / elementBytes(), lines = llvm::divideCeil(size, line) + 1, each = llvm::divideCeil(lines, count);
  number = arith::RemUIOp::create(b, loc, number, e.index(llvm::divideCeil(lines, each)));
  Value at = e.add(e.add(first, e.mul(e.add(partTo, round), rowStep)), e.mul(number, each * line));
  for (int64_t i = 0; i < each; ++i)
    e.prefetch(pointerAt(base, e.add(at, e.index(i * line))), /*locality=*/2);
}

/// Of an a whose rows lie along the terms: the next part of the tile's rows, some of them at a time.
void ContractEmitter::fetchAlong(const Tile &tile, Value round) {
  int64_t line = 64 / elementBytes(), lines = termsOfPart() / line;
  Value row = e.add(tile.i, arith::DivUIOp::create(b, loc, round, e.index(lines))),
        at = e.mul(arith::RemUIOp::create(b, loc, round, e.index(lines)), line);
  at = e.add(e.add(e.mul(row, m[0].a), partTo), at);
  for (int64_t i = 0; i < tile.count; i += line) // as many rows as there are rounds for
    e.prefetch(pointerAt(baseA, e.add(at, e.index(i * m[0].a))), /*locality=*/2);
}

/// What one step does with the accumulators of a tile, and with its totals.
void ContractEmitter::partOfTile(Value offsetA, Value offsetB, const Panel &panel, Value i, int count,
                                 ArrayRef<Level> levels) {
  int vectors = static_cast<int>(panel.masks.size());
  size_t size = static_cast<size_t>(count) * vectors;
  auto place = [&](size_t slot, bool isTotal) {
    return placeOf(panel, i, static_cast<int>(slot) / vectors, static_cast<int>(slot) % vectors, isTotal);
  };
  auto loadAll = [&](bool areTotals) {
    SmallVector<Value> all;
    for (size_t slot = 0; slot < size; ++slot)
      all.push_back(loadVector(e.scratchPointer, place(slot, areTotals), {}));
    return all;
  };
  auto storeAll = [&](bool areTotals, ArrayRef<Value> all) {
    for (auto [slot, value] : llvm::enumerate(all))
      storeVector(e.scratchPointer, place(slot, areTotals), value);
  };
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  SmallVector<Value> zeros(size, zero);
  if (phase == Phase::clear) {
    storeAll(false, zeros);
    storeAll(true, zeros);
  } else if (phase == Phase::add) {
    Tile all{panel, i, count, false, levels, {}, {}};
    findAhead(all);
    storeAll(false, sum(all, 0, offsetA, offsetB, {0, 0, 0, count}, loadAll(false)));
  } else { // the end of a block
    SmallVector<Value> totals = loadAll(true);
    for (auto [total, value] : llvm::zip_equal(totals, loadAll(false)))
      total = arith::AddFOp::create(b, loc, total, value);
    storeAll(true, totals);
    storeAll(false, zeros);
  }
}

} // namespace wg::codegen
