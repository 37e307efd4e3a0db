// Contract kernels: c = sum over k of a * b, and what follows elementwise, tile by tile from registers.
//
// The letters of the equation are sorted into batch (in a, b, c), m (a, c), n (b, c) and k (a, b) by runtime/Letters;
// neighbours that every tensor steps through as one axis are merged. Vectors lie along c's innermost letter, so that c
// is stored in vectors. That is a letter of batch, and then a and b are read in vectors too and a tile is rows of m by
// columns of n; or one of n, where a and b change roles if that is needed. Then, per batch and per panel of n (where
// nothing is summed in the order of c, where b is most of what is read in that of b):
//
//   pack b[k, panel] into scratch   where b is not contiguous along n, or its rows are so far apart that they share
//                                   cache sets (and once, before all panels, a[k, tile of m] where a lies that way)
//   for m in tiles of MR:           MR x NV accumulators in registers
//     for k:  NV vectors of b, MR scalars of a broadcast, MR * NV fused multiply-adds; a prefetch of what a later
//             round, the epilogue, or the tile beside this one, will read
//             (a long k in blocks, each summed on its own: one running sum of 10^6 terms would lose three digits)
//     epilogue on each accumulator, stores
//
// Where few terms make c most of what is moved and c is more than caches hold, panels are inside of the tiles' rows,
// all of them or as many as read what stays close by: c is written in long runs (columnsOfRows). So are the letters of
// batch and n where c has them within a row (rowsGoAround).
//
// Related letters (a convolution's) add loops around those over k, and c's are rows or outside of the tiles:
// Windows.cpp.
//
// Tile sizes follow the register file: 12 x 2 or 6 x 4 vectors of 32 registers, 6 x 2, 4 x 3, 12 x 1 or 3 x 4
// of 16 (Goto and van de Geijn 2008), or as many rows as fit beside the 3 to 6 vectors of a narrow product.
#include "codegen/emit/ContractEmitter.h"

#include "passes/MemoryCosts.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace wg::codegen {

/// Operations of all points of a tile that are written out one after the other.
static constexpr int64_t kMaxOpsOfTile = 96;

ContractEmitter::ContractEmitter(KernelEmitter &e) : e(e), b(e.b), loc(e.loc) {
  for (Operation &inner : e.kernel.getBlock()->without_terminator())
    if (auto contract = dyn_cast<ir::ContractOp>(inner))
      op = contract;
  a = op.getA();
  bOperand = op.getB();
  element = cast<RankedTensorType>(a.getType()).getElementType();
  lanes = e.target.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
  sortLetters();
  lanes = std::min(lanes, e.lanesFor(lane.size));
  findStreamed();
}

/// Classifies and merges the letters; exchanges a and b if c's innermost letter is one of a's alone.
void ContractEmitter::sortLetters() {
  runtime::Letters letters = op.letters();
  for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
    dropUnits(*group);
  auto endsC = [](const std::vector<Letter> &group) { return !group.empty() && group.back().c == 1; };
  // Where a related letter ends c, the lanes are those of n, or of m if a has them side by side, and c is stored by the
  // element. Where there is neither there is one lane.
  bool ends = endsC(letters.batch) || endsC(letters.n);
  if (endsC(letters.m) ||
      (!ends && letters.n.empty() && llvm::any_of(letters.m, [](const Letter &letter) { return letter.a == 1; }))) {
    letters.exchange();
    std::swap(a, bOperand);
  }
  batch = std::move(letters.batch), m = std::move(letters.m), n = std::move(letters.n), k = std::move(letters.k),
  related = std::move(letters.related);
  alongBatch = endsC(batch);
  // A vector that crosses from one column of a merged letter into the next has no coordinates that an epilogue could
  // use.
  bool hasEpilogue =
      std::next(op->getIterator()) != e.kernel.getYield()->getIterator() || &e.kernel.getBlock()->front() != op;
  std::vector<Letter> &inner = alongBatch ? batch : n;
  auto takeLane = [&] {
    if (!inner.empty()) {
      lane = inner.back();
      inner.pop_back();
    }
  };
  if (hasEpilogue)
    takeLane();
  for (std::vector<Letter> *group : {&batch, &m, &n, &k})
    mergeNeighbours(*group);
  if (!hasEpilogue)
    takeLane();
  if (!k.empty() || !related.empty()) // else rows are written as they lie
    longestLast(m, rowsOfTile(2));
  chooseRows();
  if (alongBatch)
    longestLast(n, panelVectors());
  // Blocks of b are packed along a letter in which b is contiguous.
  if (!alongBatch && lane.b != 1)
    if (auto dense = llvm::find_if(k, [](const Letter &letter) { return letter.b == 1; }); dense != k.end())
      std::rotate(dense, dense + 1, k.end());
}

int64_t ContractEmitter::numTerms() const {
  int64_t terms = sizeK();
  for (const runtime::Related &each : related)
    terms = runtime::saturatingMul(terms, std::min(each.a.size, each.b.size));
  return terms;
}

/// The last letter is the one of which a tile takes several: the longest, if there are too few of the last.
void ContractEmitter::longestLast(std::vector<Letter> &group, int64_t wanted) {
  if (group.size() < 2 || group.back().size >= wanted)
    return;
  auto longest =
      std::max_element(group.begin(), group.end(), [](const Letter &x, const Letter &y) { return x.size < y.size; });
  std::rotate(longest, longest + 1, group.end());
}

/// c's axes that a letter stands for, outermost first.
SmallVector<unsigned> ContractEmitter::axesOfC(const Letter &letter) {
  SmallVector<unsigned> axes;
  for (char name : letter.names)
    if (size_t axis = op.lettersOfC().find(name); axis != StringRef::npos)
      axes.push_back(axis);
  return axes;
}

/// Whether all that a point reads and writes steps through neighbours among c's axes as through one.
bool ContractEmitter::areOneAxis(ArrayRef<unsigned> axes) {
  if (stridesOfPoint.empty()) {
    stridesOfPoint = e.stridesOfReads();
    for (unsigned output = 0; output < e.outputs.size(); ++output)
      stridesOfPoint.push_back(e.outputStrides(output));
  }
  auto steps = [&](ArrayRef<int64_t> of) {
    for (auto [outer, inner] : llvm::zip(axes, axes.drop_front()))
      if (of[outer] != of[inner] * e.axes[inner].size)
        return false;
    return true;
  };
  return llvm::none_of(*e.kernel.getBlock(), [](Operation &op) { return isa<ir::Indexed>(op); }) &&
         llvm::all_of(stridesOfPoint, steps);
}

// ---- Emission -----------------------------------------------------------------------------------------------------

/// Coordinates of c's axes of a letter at `at`, the innermost with a lane stride.
void ContractEmitter::place(Point &point, const Letter &letter, Value at, int64_t laneStride) {
  SmallVector<unsigned> axes = axesOfC(letter);
  if (axes.empty()) // c is one element
    return;
  if (axes.size() == 1) {
    point.at[axes[0]] = {at, laneStride};
    return;
  }
  if (areOneAxis(axes)) {
    for (unsigned axis : ArrayRef(axes).drop_back())
      point.at[axis] = {e.index(0), 0};
    point.at[axes.back()] = {at, laneStride};
    return;
  }
  // A merged letter.
  SmallVector<int64_t> sizes = llvm::map_to_vector(axes, [&](unsigned axis) { return e.axes[axis].size; });
  for (auto [axis, coordinate] : llvm::zip_equal(axes, coordinatesOf(at, sizes)))
    point.at[axis] = {coordinate, axis == axes.back() ? laneStride : 0};
}

/// Of place `number` among all that axes of these sizes have, outermost first: quotients and remainders.
SmallVector<Value> ContractEmitter::coordinatesOf(Value number, ArrayRef<int64_t> sizes) {
  SmallVector<Value> coordinates(sizes.size());
  for (size_t i = sizes.size(); i-- > 1;) {
    coordinates[i] = arith::RemUIOp::create(b, loc, number, e.index(sizes[i]));
    number = arith::DivUIOp::create(b, loc, number, e.index(sizes[i]));
  }
  if (!coordinates.empty())
    coordinates.front() = number;
  return coordinates;
}

Value ContractEmitter::pointerAt(Value base, Value offset) { return e.elementAfter(base, offset, element); }
Value ContractEmitter::loadScalar(Value base, Value offset) {
  return LLVM::LoadOp::create(b, loc, element, pointerAt(base, offset), alignment());
}
Value ContractEmitter::loadVector(Value base, Value offset, Value mask) {
  Value pointer = pointerAt(base, offset);
  if (!mask)
    return LLVM::LoadOp::create(b, loc, vectorType(), pointer, alignment());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  return LLVM::MaskedLoadOp::create(b, loc, vectorType(), pointer, mask, zero, alignment());
}
/// Elements that are `step` apart.
Value ContractEmitter::loadLanes(Value base, Value offset, int64_t step, Value mask) {
  return e.load(Point(ir::Coordinate{offset, step}, lanes, mask), base, element, int64_t(1), 0);
}
void ContractEmitter::storeVector(Value base, Value offset, Value value) {
  LLVM::StoreOp::create(b, loc, value, pointerAt(base, offset), alignment());
}

/// Loops over the letters of `group`, adding their strides to the offsets into a and b.
void ContractEmitter::nest(ArrayRef<Letter> group, Value offsetA, Value offsetB, Point &point,
                           llvm::function_ref<void(Value, Value)> body) {
  if (group.empty())
    return body(offsetA, offsetB);
  const Letter &letter = group.front();
  e.loop(0, letter.size, 1, [&](Value i) {
    place(point, letter, i, 0);
    nest(group.drop_front(), e.add(offsetA, e.mul(i, letter.a)), e.add(offsetB, e.mul(i, letter.b)), point, body);
  });
}

Value ContractEmitter::placeAll(ArrayRef<Letter> group, Value number, Point &point) {
  Value offset = e.index(0);
  SmallVector<int64_t> sizes = llvm::map_to_vector(group, [](const Letter &letter) { return letter.size; });
  for (auto [letter, at] : llvm::zip_equal(group, coordinatesOf(number, sizes))) {
    place(point, letter, at, 0);
    offset = e.add(offset, e.mul(at, letter.a));
  }
  return offset;
}

LogicalResult ContractEmitter::emit(Value begin, Value end) {
  Point origin;
  origin.at.assign(e.axes.size(), {e.index(0), 0});
  baseA = e.pointerOf.lookup(a);
  for (const Letter &letter : k)
    stridesA.push_back(letter.a);
  strideM = m.empty() ? 0 : m.back().a;
  if (sumsInParts() && e.chunks > 1)
    begin = e.mul(begin, placesOfPiece()), end = e.mul(end, placesOfPiece());
  pieceBegin = begin, pieceEnd = end;
  if (!related.empty() && isEmpty())
    return success();
  // A packed a is one of a batch, and is there before the letters of n. (Along a batch n's are in the panels.)
  std::vector<Letter> outside = batch, inside, within;
  if (packsA() || (!alongBatch && !related.empty()))
    inside = n;
  else if (rowsGoAround())
    outside = runtime::outsideOfRows(batch, m, n, k), within = runtime::withinRows(batch, m, n);
  else if (!alongBatch)
    outside = runtime::outsideOfPanels(batch, m, n, k);
  nest(outside, e.index(0), e.index(0), origin, [&](Value offsetA, Value offsetB) {
    if (packsA())
      offsetA = packA(offsetA);
    nest(inside, offsetA, offsetB, origin, [&](Value offsetA, Value offsetB) {
      // Each piece packs into its own part of the scratch.
      if (packsB() && e.chunks > 1)
        pieceOffset = e.mul(arith::DivUIOp::create(b, loc, begin, e.index(e.chunksPerPiece())), panelElements());
      if (int64_t columns = rowsGoAround() ? lane.size : columnsOfRows()) {
        inPieces(lane.size, columns, [&](Value first, int64_t size) {
          eachTile(offsetA, heightOfSharedTiles(), origin, [&](Value offsetA, Value i, int count) {
            nest(within, offsetA, offsetB, origin, [&](Value offsetA, Value offsetB) {
              inPieces(size, panelWidth(), [&](Value j, int64_t width) {
                Panel panel = panelAt(offsetB, e.add(first, j), width);
                tile(offsetA, panel.offset, panel, i, count, levelsOfK(panel), origin);
              });
            });
          });
        });
        return;
      }
      auto each = [&](Value j, int64_t width) { panel(offsetA, offsetB, j, width, origin); };
      inParts([&] {
        if (e.chunks == 1 || !sharesPanels() || sharesRows())
          return inPieces(lane.size, panelWidth(), each);
        // Panels are shared among threads.
        int64_t width = panelWidth(), whole = lane.size / width * width;
        e.loop(begin, arith::MinUIOp::create(b, loc, end, e.index(whole / width)), 1,
               [&](Value panelIndex) { each(e.mul(panelIndex, width), width); });
        if (whole < lane.size)
          e.onLastChunk(end, whole / width, [&] { each(e.index(whole), lane.size - whole); });
      });
    });
  });
  return success();
}

void ContractEmitter::inPieces(int64_t size, int64_t most, llvm::function_ref<void(Value, int64_t)> f) {
  int64_t whole = size / most * most;
  e.loop(0, whole, most, [&](Value first) { f(first, most); });
  if (whole < size)
    f(e.index(whole), size - whole);
}

/// `count` lanes of c from j on, of b as it lies.
ContractEmitter::Panel ContractEmitter::panelAt(Value offsetB, Value j, int64_t count) {
  Panel panel{
      e.pointerOf.lookup(bOperand), e.add(offsetB, e.mul(j, lane.b)), {}, {}, lanes * lane.b, j, {}, {}, {}, false};
  panel.isApart = !alongBatch && !packsB() && lane.b != 1 && lane.size > 1;
  if (!alongBatch && !panel.isApart)
    panel.step = lanes;
  for (const Letter &letter : k)
    panel.strides.push_back(letter.b);
  for (const runtime::Related &each : related)
    panel.stridesRelated.push_back(each.b.b);
  if (alongBatch && !n.empty())
    return panel;
  for (int v = 0; v < vectorsOfTile(count); ++v)
    panel.masks.push_back(e.tailMask(lanes, count - static_cast<int64_t>(v) * lanes));
  panel.loadMasks = panel.masks;
  return panel;
}

/// All rows of one panel: `count` lanes of c from j on.
void ContractEmitter::panel(Value offsetA, Value offsetB, Value j, int64_t count, Point &origin) {
  Panel panel = panelAt(offsetB, j, count);
  offsetA = e.add(offsetA, e.mul(j, lane.a));
  if (alongBatch && !n.empty()) {
    // One vector of lanes; columns of n beside each other.
    const Letter &letter = n.back();
    panel.step = letter.b;
    Value mask = e.tailMask(lanes, count);
    nest(ArrayRef(n).drop_back(), offsetA, panel.offset, origin, [&](Value offsetA, Value offsetB) {
      int64_t width = std::clamp<int64_t>(letter.size, 1, panelVectors()), whole = letter.size / width * width;
      auto columns = [&](Value q, int64_t vectors) {
        Panel part = panel;
        part.offset = e.add(offsetB, e.mul(q, letter.b));
        part.column = q;
        part.masks.assign(vectors, mask);
        part.loadMasks = part.masks;
        rowTiles(offsetA, part, origin);
      };
      e.loop(0, whole, width, [&](Value q) { columns(q, width); });
      if (whole < letter.size)
        columns(e.index(whole), letter.size - whole);
    });
    return;
  }
  if (packsB()) {
    int vectors = vectorsOfTile(count);
    pack(panel.base, panel.offset, vectors, count);
    panel.base = e.scratchPointer;
    panel.offset = pieceOffset ? pieceOffset : e.index(0);
    int64_t stride = static_cast<int64_t>(vectors) * lanes;
    std::vector<Letter> letters = lettersOfPanel();
    for (const Letter &letter : llvm::reverse(letters)) {
      for (size_t i = 0; i < k.size(); ++i)
        if (k[i].names == letter.names)
          panel.strides[i] = stride;
      for (size_t i = 0; i < related.size(); ++i)
        if (related[i].b.names == letter.names)
          panel.stridesRelated[i] = stride;
      stride *= letter.size;
    }
    panel.loadMasks.assign(vectors, {});
  }
  rowTiles(offsetA, panel, origin);
}

void ContractEmitter::rowTiles(Value offsetA, const Panel &panel, Point &origin) {
  if (!related.empty())
    return relatedTiles(offsetA, panel, origin);
  SmallVector<Level> levels = levelsOfK(panel);
  if (m.empty())
    return tile(offsetA, panel.offset, panel, {}, 1, levels, origin);
  eachTile(offsetA, heightOfTiles(static_cast<int>(panel.masks.size())), origin,
           [&](Value offsetA, Value i, int count) { tile(offsetA, panel.offset, panel, i, count, levels, origin); });
}

void ContractEmitter::eachTile(Value offsetA, int height, Point &origin,
                               llvm::function_ref<void(Value, Value, int)> f) {
  const Letter &letter = m.back();
  int64_t whole = letter.size / height * height;
  auto emitTile = [&](Value offsetA, Value i, int count) {
    f(e.add(offsetA, e.mul(i, packsA() ? sizeK() : letter.a)), i, count);
  };
  auto rest = [&](Value offsetA) { emitTile(offsetA, e.index(whole), static_cast<int>(letter.size - whole)); };
  auto allTiles = [&](Value offsetA) {
    e.loop(0, whole, height, [&](Value i) { emitTile(offsetA, i, height); });
    if (whole < letter.size)
      rest(offsetA);
  };
  ArrayRef<Letter> outside = ArrayRef(m).drop_back();
  bool isShared = e.chunks > 1 && sharesRows();
  if (isShared && sizeOf(outside) >= tilesOfRows(height)) { // a chunk is a place outside
    e.loop(pieceBegin, pieceEnd, 1, [&](Value place) { allTiles(e.add(offsetA, placeAll(outside, place, origin))); });
    return;
  }
  nest(outside, offsetA, e.index(0), origin, [&](Value offsetA, Value) {
    if (!isShared)
      return allTiles(offsetA);
    e.loop(pieceBegin, arith::MinUIOp::create(b, loc, pieceEnd, e.index(whole / height)), 1, // a chunk is a tile
           [&](Value number) { emitTile(offsetA, e.mul(number, height), height); });
    if (whole < letter.size)
      e.onLastChunk(pieceEnd, whole / height, [&] { rest(offsetA); });
  });
}

SmallVector<ContractEmitter::Level> ContractEmitter::levelsOfK(const Panel &panel) {
  SmallVector<Level> levels;
  for (auto [letter, strideA, strideB] : llvm::zip_equal(k, stridesA, panel.strides))
    levels.push_back({letter.size, {}, strideA, strideB, {}});
  return levels;
}

void ContractEmitter::tile(Value offsetA, Value offsetB, const Panel &panel, Value i, int count, ArrayRef<Level> levels,
                           Point &origin) {
  int vectors = static_cast<int>(panel.masks.size());
  if (phase != Phase::whole && phase != Phase::finish)
    return partOfTile(offsetA, offsetB, panel, i, count, levels);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  SmallVector<Value> start(static_cast<size_t>(count) * vectors, zero);
  Tile all{panel, i, count, i && canFetch(), levels, {}, {}};
  all.fetchesNext = i && fetchesNextTile();
  findAhead(all);
  SmallVector<Value> acc =
      phase == Phase::finish ? loadTotals(panel, i, count) : sum(all, 0, offsetA, offsetB, {0, 0, 0, count}, start);
  if (static_cast<int64_t>(acc.size()) * e.opsOfPoint() > kMaxOpsOfTile)
    return finishInLoop(acc, panel, i, count, origin);
  // Only a few points at a time, so that what the epilogue holds fits beside the accumulators that wait.
  for (int r = 0; r < count; ++r)
    finish(panel, i, e.index(r), 1, origin, [&](int, int v) { return acc[r * vectors + v]; });
}

/// The loops of the levels from `depth` on. Of a long sum each block has accumulators of its own.
SmallVector<Value> ContractEmitter::sum(const Tile &tile, size_t depth, Value atA, Value atB, Segment rows,
                                        ValueRange acc) {
  if (depth == tile.levels.size())
    return multiplyAdd(tile, atA, atB, rows, acc);
  const Level &level = tile.levels[depth];
  int64_t terms = 1, inner = 1;
  for (const Level &each : tile.levels)
    terms = runtime::saturatingMul(terms, each.size);
  for (const Level &further : tile.levels.drop_front(depth + 1))
    inner = runtime::saturatingMul(inner, further.size);
  auto rounds = [&](Value from, Value to, Segment part, ValueRange first) {
    return loopOf(from, to, 1, first, [&](Value p, ValueRange carried) {
      fetchInRound(tile, depth, p, atA, atB);
      return sum(tile, depth + 1, e.add(atA, e.mul(p, level.a)), e.add(atB, e.mul(p, level.b)), part, carried);
    });
  };
  // Blocks of about `block` terms: so many rounds of this level, or one whose own levels are cut again.
  auto block = static_cast<int64_t>(passes::termsOfBlock(static_cast<double>(terms)));
  auto inBlocks = [&](Segment part, ValueRange first) -> SmallVector<Value> {
    int64_t length = part.to - part.from;
    Value from = e.index(part.from), to = level.count ? level.count : e.index(part.to);
    if (length <= 0)
      return SmallVector<Value>(first);
    if (partFrom) // blocks are whole parts
      return rounds(partFrom, partTo, part, first);
    if (runtime::saturatingMul(length, inner) <= 2 * block)
      return rounds(from, to, part, first);
    int64_t step = std::max<int64_t>(1, block / inner);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    SmallVector<Value> start(first.size(), zero);
    auto addBlock = [&](Value p, Value end, ValueRange totals) {
      SmallVector<Value> sums = rounds(p, end, part, start);
      for (auto [value, total] : llvm::zip_equal(sums, totals))
        value = arith::AddFOp::create(b, loc, total, value);
      return sums;
    };
    if (level.count)
      return loopOf(from, to, step, first, [&](Value p, ValueRange carried) {
        return addBlock(p, arith::MinSIOp::create(b, loc, to, e.add(p, e.index(step))), carried);
      });
    int64_t whole = part.from + length / step * step;
    SmallVector<Value> totals = loopOf(from, e.index(whole), step, first, [&](Value p, ValueRange carried) {
      return addBlock(p, e.add(p, e.index(step)), carried);
    });
    return whole < part.to ? addBlock(e.index(whole), to, totals) : totals;
  };
  if (level.segments.empty())
    return inBlocks({0, level.size, rows.firstRow, rows.endRow}, acc);
  SmallVector<Value> sums(acc);
  for (const Segment &segment : level.segments)
    sums = inBlocks(segment, sums);
  return sums;
}

/// `scf.for` with values carried; the body alone if it is known to run once.
SmallVector<Value> ContractEmitter::loopOf(Value from, Value to, int64_t step, ValueRange carried,
                                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  std::optional<int64_t> first = getConstantIntValue(from), end = getConstantIntValue(to);
  if (first && end)
    return e.loop(*first, *end, step, carried, body);
  auto forOp = scf::ForOp::create(b, loc, from, to, e.index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  scf::YieldOp::create(b, loc, body(forOp.getInductionVar(), forOp.getRegionIterArgs()));
  return SmallVector<Value>(forOp.getResults());
}

SmallVector<Value> ContractEmitter::multiplyAdd(const Tile &tile, Value atA, Value atB, Segment rows, ValueRange acc) {
  const Panel &panel = tile.panel;
  int vectors = static_cast<int>(panel.masks.size());
  SmallVector<Value> next(acc), columnsOfB;
  for (int v = 0; v < vectors; ++v) {
    Value at = e.add(atB, e.index(v * panel.step));
    columnsOfB.push_back(alongBatch || panel.isApart ? loadLanes(panel.base, at, lane.b, panel.masks[v])
                                                     : loadVector(panel.base, at, panel.loadMasks[v]));
  }
  for (int r = rows.firstRow; r < rows.endRow; ++r) {
    Value rowOfA, at = e.add(atA, e.index(r * strideM));
    for (int v = 0; v < vectors; ++v) {
      if (!alongBatch && v == 0)
        rowOfA = e.splat(loadScalar(baseA, at), lanes);
      else if (alongBatch && (v == 0 || !panel.column))
        rowOfA = loadLanes(baseA, e.add(at, e.index(v * lanes * lane.a)), lane.a, panel.masks[v]);
      next[r * vectors + v] = tile.levels.empty() // of one term: -0 stays
                                  ? arith::MulFOp::create(b, loc, rowOfA, columnsOfB[v])
                                  : fma(rowOfA, columnsOfB[v], acc[r * vectors + v]);
    }
  }
  return next;
}

/// The epilogue of `rows` rows of a tile from its row `first` on, all at a time.
void ContractEmitter::finish(const Panel &panel, Value i, Value first, int rows, Point &origin,
                             llvm::function_ref<Value(int row, int vector)> accumulator) {
  SmallVector<Point> points;
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < static_cast<int>(panel.masks.size()); ++v) {
      Point point(origin.at, lanes, panel.masks[v]);
      if (i) {
        Value row = e.mul(e.add(i, e.add(first, e.index(r))), rowPhases);
        place(point, rowLetter(), e.add(row, e.index(rowPhase)), 0);
      }
      if (panel.column)
        place(point, n.back(), e.add(panel.column, e.index(v)), 0);
      place(point, lane, panel.column ? panel.j : e.add(panel.j, e.index(v * lanes)), 1);
      // The epilogue sees the product as a value that is already computed.
      point.values[op.getC()] = accumulator(r, v);
      points.push_back(std::move(point));
    }
  SmallVector<Value> values = llvm::to_vector(e.kernel.getYield().getValues());
  e.evalAll(points, values);
  for (unsigned output = 0; output < values.size(); ++output)
    for (Point &point : points)
      e.store(point, output);
}

/// A long epilogue is written once and not for each accumulator: these go to the stack, and a loop takes them from
/// there, a few rows at a time.
void ContractEmitter::finishInLoop(ArrayRef<Value> acc, const Panel &panel, Value i, int count, Point &origin) {
  int vectors = static_cast<int>(panel.masks.size()),
      rows = std::clamp(std::min(e.interleave(), 4) / vectors, 1, count);
  rows = std::clamp<int>(kMaxOpsOfTile / (vectors * e.opsOfPoint()), 1, rows);
  while (count % rows != 0)
    --rows;
  if (!tileOnStack) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&b.getBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front());
    Value size = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(int64_t(rowsOfWindow(1)) * lanes));
    tileOnStack =
        LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), element, size, e.target.vectorBytes);
  }
  for (auto [slot, value] : llvm::enumerate(acc))
    storeVector(tileOnStack, e.index(static_cast<int64_t>(slot) * lanes), value);
  e.loop(0, count, rows, [&](Value first) {
    finish(panel, i, first, rows, origin, [&](int r, int v) {
      Value slot = e.mul(e.add(first, e.index(r)), int64_t(vectors) * lanes);
      return loadVector(tileOnStack, e.add(slot, e.index(v * lanes)), {});
    });
  });
}

Value ContractEmitter::fma(Value x, Value y, Value z) {
  if (e.target.hasFma)
    return math::FmaOp::create(b, loc, x, y, z);
  return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, x, y), z);
}

void KernelEmitter::planContract() {
  ContractEmitter contract(*this);
  chunks = contract.numChunks();
  scratch = contract.scratchBytes();
}

LogicalResult KernelEmitter::emitContract(Value begin, Value end) { return ContractEmitter(*this).emit(begin, end); }

} // namespace wg::codegen
