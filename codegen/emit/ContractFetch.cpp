// What a contract kernel's tiles ask for before they, or their epilogue, read it: prefetches in the rounds of sums.
#include "codegen/emit/ContractEmitter.h"

#include "runtime/Extent.h"

using namespace mlir;

namespace wg::codegen {

void ContractEmitter::prefetch(Value base, Value offset) { e.prefetch(pointerAt(base, offset)); }

/// What is asked for in round `p` of the level `depth` of a tile.
void ContractEmitter::fetchInRound(const Tile &tile, size_t depth, Value p, Value atA, Value atB) {
  if (tile.fetches)
    fetch(p, tile.i, tile.panel.j, tile.count, static_cast<int>(tile.panel.masks.size()));
  if (fetchesA())
    prefetch(baseA, e.add(e.add(atA, e.mul(p, tile.levels[depth].a)), e.index(64 / elementBytes())));
  if (tile.roundsAhead > 0 && depth == tile.aheadDepth)
    fetchAhead(tile, p, atA, atB);
  if (phase == Phase::add)
    fetchNextPart(tile, p);
  if (tile.fetchesNext)
    fetchNextTile(tile, p, atA);
  if (alongBatch && depth + 1 == tile.levels.size())
    fetchAlongBatch(tile, p, atA, atB);
}

// ---- What the epilogue reads ----------------------------------------------------------------------------------------
//
// The epilogue's operands (an optimiser's slots) are read a few lines a row, rows pages apart, where no hardware
// prefetcher follows. Between the multiplications their latency is free: 784 x 128 weights with Adam's update: 162 us
// without, 144 with, 125 with panels of four vectors as well.

void ContractEmitter::findStreamed() {
  auto place = AffineMapAttr::get(e.places.mapOf(op.getC()));
  for (auto [reads, argument] : llvm::zip_equal(e.loops.getReads(), e.kernel.getBlock()->getArguments()))
    if (llvm::is_contained(cast<ArrayAttr>(reads), place) &&
        llvm::any_of(argument.getUsers(), [&](Operation *user) { return user != op; }))
      streamed.push_back(argument);
  int64_t elements = ShapedType::getNumElements(shapeOf(op.getC()));
  if (static_cast<int64_t>(streamed.size()) * elements * elementBytes() < (int64_t(1) << 19))
    streamed.clear();
}

/// A plain product with such operands, and a sum long enough to hide a fetch.
bool ContractEmitter::canFetch() {
  bool plain = related.empty() && batch.empty() && n.empty() && !alongBatch && m.size() == 1 && k.size() == 1 &&
               axesOfC(lane).size() == 1 && m[0].names.size() == 1;
  return plain && k[0].size >= 32 && !streamed.empty() && !sumsInParts();
}

/// In each of a tile's rounds over k one row's lines at a time. Fetching a line again costs next to nothing;
/// a second loop around the rounds would cost a tenth.
void ContractEmitter::fetch(Value p, Value i, Value j, int count, int vectors) {
  int64_t roundsOfRow = llvm::Log2_64(std::max<int64_t>(1, std::min<int64_t>(k[0].size, 1024) / count));
  Value row = e.add(i, roundsOfRow > 0 ? Value(arith::ShRUIOp::create(b, loc, p, e.index(roundsOfRow))) : p);
  Value at = e.add(e.mul(row, m[0].c), e.mul(j, lane.c));
  for (Value operand : streamed)
    for (int64_t column = 0; column < static_cast<int64_t>(vectors) * lanes; column += 64 / elementBytes())
      prefetch(e.pointerOf.lookup(operand), e.add(at, e.index(column)));
}

/// A sum too short to hide a fetch, of rows that follow each other: what the next tile of them reads is asked for, as
/// processors do not look beyond a tile. (A million rows of 24 times [24, 24], times as many others: 21 ms without, 11
/// with; of 16 8 and 5. Asking for shorter ones costs a fifth.)
bool ContractEmitter::fetchesNextTile() {
  constexpr int64_t kLeast = 16, kLeastAlone = 24, kShort = 32, kCached = int64_t(1) << 20; // terms; bytes
  return related.empty() && batch.empty() && n.empty() && !alongBatch && !packsA() && !rowsGoAround() &&
         m.size() == 1 && k.size() == 1 && k[0].a == 1 && k[0].size < kShort &&
         k[0].size >= (streamed.empty() ? kLeastAlone : kLeast) && strideM == k[0].size && m[0].names.size() == 1 &&
         m[0].size * k[0].size * elementBytes() > kCached && numPanels() <= 2;
}

/// In each of a tile's rounds over k as much as makes all of the next tile: of its rows of a, and of those of each
/// operand of the epilogue.
void ContractEmitter::fetchNextTile(const Tile &tile, Value p, Value atA) {
  int64_t line = 64 / elementBytes(), width = static_cast<int64_t>(tile.panel.masks.size()) * lanes;
  Value next = e.add(atA, e.add(e.mul(p, tile.count), e.index(tile.count * strideM)));
  for (int64_t at = 0; at < tile.count; at += line)
    prefetch(baseA, e.add(next, e.index(at)));
  if (axesOfC(lane).size() != 1)
    return;
  for (Value operand : streamed)
    for (int64_t row = 0; row < tile.count; row += k[0].size) {
      Value at = e.add(e.add(tile.i, p), e.index(tile.count + row));
      at = e.add(e.mul(at, m[0].c), e.mul(tile.panel.j, lane.c));
      for (int64_t column = 0; column < width; column += line)
        prefetch(e.pointerOf.lookup(operand), e.add(at, e.index(column)));
    }
}

// ---- What a later tile or round reads -------------------------------------------------------------------------------

/// Tiles side by side read the lines of a that lie along m, one of each row, too short a way for a hardware prefetcher:
/// 256 x 512 x 32, a from beyond the nearest caches: 80 us with, 84 without. Of a long sum a line would be gone before
/// the next tile.
bool ContractEmitter::fetchesA() {
  return related.empty() && !alongBatch && m.size() == 1 && k.size() == 1 && m[0].a == 1 && k[0].a != 1 &&
         k[0].size <= 128 && m[0].size * elementBytes() > 64 && !packsA();
}

// What a tile reads of b for one term, a panel's width, and of an a that lies along m, its rows, is too short a way for
// a hardware prefetcher, and of steps from term to term they follow only those of whole lines. 200 times 11 x 82 x 301
// ran in 4.5 ms, with prefetches in 1.6; 100 times 11 x 82 x 512 in 2.6 and 1.6; 13 x 5,786 x 3,039 in 27 and 9.3.

/// Asked for so many terms before they are read, and not where the next ones lie close by or in the nearest caches.
static constexpr int64_t kTermsAhead = 8, kFarBytes = 512, kCachedBytes = int64_t(1) << 20;
/// Prefetches of one round, at most.
static constexpr int64_t kMostLines = 24;

/// Of `count` elements in steps and those that the rounds of the inner levels have beside them, one a line and the last
/// one of each run: no row need begin with a line.
static SmallVector<int64_t> linesOf(int64_t count, int64_t step, ArrayRef<std::pair<int64_t, int64_t>> inner,
                                    int64_t line) {
  SmallVector<int64_t> places, lines;
  for (int64_t i = 0; i < count; ++i)
    places.push_back(i * step);
  for (auto [size, step] : inner) {
    SmallVector<int64_t> before = std::move(places);
    places.clear();
    for (int64_t q = 0; q < size; ++q)
      for (int64_t place : before)
        places.push_back(place + q * step);
  }
  llvm::sort(places);
  for (auto [i, place] : llvm::enumerate(places)) {
    bool endsRun = i + 1 == places.size() || places[i + 1] > place + line;
    if (lines.empty() || place >= lines.back() + line || (endsRun && place != lines.back()))
      lines.push_back(place);
  }
  return lines;
}

/// Short levels are gone through within a round of the one around them.
void ContractEmitter::findAhead(Tile &tile) {
  if (tile.levels.empty() || !related.empty() || alongBatch)
    return;
  size_t depth = tile.levels.size() - 1;
  int64_t terms = 1;
  for (; depth > 0 && tile.levels[depth].size < 2 * kTermsAhead; --depth)
    terms *= tile.levels[depth].size;
  const Level &level = tile.levels[depth];
  int64_t width = static_cast<int64_t>(tile.panel.masks.size()) * lanes;
  // Where there are fewer terms than are asked for ahead, those of tiles and panels to come are not where these are.
  if (terms * level.size < kTermsAhead || terms * std::max<int64_t>(tile.count, width) > kMostLines * 64)
    return;
  // Nor do they follow masked loads.
  bool isMasked = tile.panel.loadMasks.size() == 1 && tile.panel.loadMasks[0];
  auto lines = [&](Value x, int64_t count, int64_t step, int64_t Level::*stepOf, bool isFollowed) {
    SmallVector<std::pair<int64_t, int64_t>> inner;
    for (const Level &each : tile.levels.drop_front(depth + 1))
      inner.push_back({each.size, each.*stepOf});
    int64_t bytes = runtime::saturatingMul(ShapedType::getNumElements(shapeOf(x)), elementBytes());
    if (bytes <= kCachedBytes || (isFollowed && level.*stepOf * elementBytes() < kFarBytes))
      return SmallVector<int64_t>();
    SmallVector<int64_t> found = linesOf(count, step, inner, 64 / elementBytes());
    return static_cast<int64_t>(found.size()) <= kMostLines ? found : SmallVector<int64_t>();
  };
  // Of several panels all but the first find a in the caches. What many tiles read of b is asked for again each time,
  // which costs nothing only in the nearest cache.
  if (runtime::saturatingMul(numPanels(), sizeOf(n)) <= 2 && !packsA() && !fetchesA())
    tile.linesA = lines(a, tile.count, strideM, &Level::a, true);
  if (lane.b == 1 && !packsB() &&
      (termsAtOnce() * width * elementBytes() <= kBytesCloseBy || sizeOf(m) <= 2 * rowsOfTile(panelVectors())))
    tile.linesB = lines(bOperand, isMasked ? lane.size % lanes : width, 1, &Level::b, !isMasked);
  tile.aheadDepth = depth;
  tile.roundsAhead = tile.linesA.empty() && tile.linesB.empty() ? 0 : (kTermsAhead + terms - 1) / terms;
}

/// In each round of that level. Behind its last round is the next one of the level around it; behind that of
/// them all are the first terms of the next tile or panel, or of the next place of what rows go around.
void ContractEmitter::fetchAhead(const Tile &tile, Value p, Value atA, Value atB) {
  const Level &level = tile.levels[tile.aheadDepth];
  const Level *around = tile.aheadDepth > 0 ? &tile.levels[tile.aheadDepth - 1] : nullptr;
  Value ahead = e.add(p, e.index(tile.roundsAhead)),
        isBehind = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, ahead, e.index(level.size));
  auto fetchLines = [&](Value base, Value at, int64_t step, int64_t next, ArrayRef<int64_t> lines) {
    at = e.add(at, e.mul(ahead, step));
    if (next > 0 && next != level.size * step)
      at = e.add(at, arith::SelectOp::create(b, loc, isBehind, e.index(next - level.size * step), e.index(0)));
    for (int64_t line : lines)
      prefetch(base, e.add(at, e.index(line)));
  };
  if (!tile.linesA.empty())
    fetchLines(baseA, atA, level.a,
               around           ? around->a
               : rowsGoAround() ? runtime::withinRows(batch, m, n).back().a
                                : tile.count * strideM,
               tile.linesA);
  if (!tile.linesB.empty())
    fetchLines(tile.panel.base, atB, level.b, around ? around->b : numPanels() > 1 ? panelWidth() : 0, tile.linesB);
}

/// Where the rows of a tile, or its columns, are parts of vectors along a batch, of a tensor beyond the nearest caches,
/// asks in each round for a later term, or the same one of those to come, some KiB ahead: no processor follows masked
/// loads. (The sums of [19, 5] times each [19, 5] of 280 MB: 31 ms without, 10 with.)
void ContractEmitter::fetchAlongBatch(const Tile &tile, Value p, Value atA, Value atB) {
  constexpr int64_t kAhead = 4096; // bytes
  const Level &level = tile.levels.back();
  auto isFar = [&](Value x) {
    return runtime::saturatingMul(ShapedType::getNumElements(shapeOf(x)), elementBytes()) > kCachedBytes;
  };
  auto fetchAll = [&](Value base, Value at, int64_t count, int64_t step, int64_t toNextTerm) {
    int64_t bytes = count * (lane.size % lanes) * elementBytes(), terms = llvm::divideCeil(kAhead, bytes), // ahead
        ahead = 2 * terms <= level.size
                    ? terms * toNextTerm
                    : llvm::divideCeil(kAhead, runtime::saturatingMul(numTerms(), bytes)) * count * step;
    for (int64_t each = 0; each < count; ++each)
      prefetch(base, e.add(at, e.index(ahead + each * step)));
  };
  if (!related.empty() || tile.panel.masks.empty() || !tile.panel.masks.back())
    return;
  auto vectors = static_cast<int64_t>(tile.panel.masks.size());
  if (tile.panel.column && isFar(bOperand))
    fetchAll(tile.panel.base, e.add(atB, e.mul(p, level.b)), vectors, tile.panel.step, level.b);
  else if (!tile.panel.column && vectors == 1 && tile.i && isFar(a))
    fetchAll(baseA, e.add(atA, e.mul(p, level.a)), tile.count, strideM, level.a);
}

} // namespace wg::codegen
