// Contract kernels with related letters (convolutions and their gradients): the loops around their tiles.
//
// A relation ofA * a + ofB * b + ofC * c = constant is of one letter of each tensor. While c's letter is at some
// place, a loop walks the places of one of the other two at which the third is in range as well: where it begins, its
// step and how often it runs are computed before it, so nothing is tested inside and nothing is read beyond a tensor.
// Padding is nowhere: a term that does not exist is no round of a loop.
//
//   per batch, panel of n (packed where b is not contiguous along n)
//     for c's related letters and the letters of m, but one    shared among threads
//       for tiles of rows of that one:
//         for the relations' places, from the bounds above
//           for k: the products of a tile, as in any product
//         epilogue, stores
//
// Rows are places of m's last letter or, as there are more of them or the others lie apart, of a related letter of c:
// then b's letter is walked, all rows read the same of b, and a's letter moves along with the row. Where a's factor
// is not 1 (the gradient of an input by strides), rows are every second place, say, phase by phase, so that a moves
// in whole steps. Tiles at the edges are at known places: what each row lacks is known when they are written, and the
// loop over b's letter is cut where rows come or go. Only edges of more than a few tiles are computed row by row.
#include "codegen/emit/ContractEmitter.h"

#include "runtime/Extent.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

namespace wg::codegen {

/// Phases that are written out one after the other.
static constexpr int64_t kMaxPhases = 4;
/// Tiles of an edge that are written out, and the places of b's letter for which their rows are compared.
static constexpr int64_t kMaxEdgeTiles = 2, kMaxEdgePlaces = 1024;
/// Parts of a loop of one such tile.
static constexpr size_t kMaxSegments = 16;

static int64_t phasesOf(const runtime::Related &each) { return std::abs(each.ofA) / std::gcd(each.ofA, each.ofC); }
static int64_t floorDiv(int64_t x, int64_t y) { return x / y - ((x % y != 0) && ((x < 0) != (y < 0))); }
static int64_t ceilDiv(int64_t x, int64_t y) { return -floorDiv(-x, y); }

/// Which letter the rows of a tile are of, and which letters are outside of it.
void ContractEmitter::chooseRows() {
  if (related.empty())
    return;
  int64_t most = rowsOfTile(2), best = m.empty() ? 1 : std::min(most, m.back().size);
  bool dense = !m.empty() && m.back().a == 1 && m.back().size >= most;
  for (auto [i, each] : llvm::enumerate(related)) {
    int64_t rows = std::min(most, each.c.size / phasesOf(each));
    if (dense || phasesOf(each) > kMaxPhases || rows < 2 || (rows < best && (rowRelation >= 0 || rows < 6)))
      continue;
    best = rows;
    rowRelation = static_cast<int>(i);
  }
  for (auto [i, letter] : llvm::enumerate(m))
    if (rowRelation >= 0 || i + 1 < m.size()) {
      outer.push_back(letter);
      outerRelation.push_back(-1);
    }
  for (auto [i, each] : llvm::enumerate(related))
    if (static_cast<int>(i) != rowRelation) {
      outer.push_back(each.c);
      outerRelation.push_back(static_cast<int>(i));
    }
}

int64_t ContractEmitter::placesOfChunk() {
  if (related.empty() || !packsB())
    return 1;
  int64_t rows = rowRelation >= 0 ? related[rowRelation].c.size : this->rows();
  return 256 / std::max<int64_t>(1, rows) + 1;
}

bool ContractEmitter::sharesPanels() {
  if (related.empty())
    return true;
  return packsB() && numPanels() > 1 && (numPanels() >= 8 || numPanels() * placesOfChunk() >= sizeOf(outer));
}

/// c's letters outside of the tiles as one loop, which threads share.
void ContractEmitter::relatedTiles(Value offsetA, const Panel &panel, Point &origin) {
  auto body = [&](Value u) {
    Value atA = offsetA, atB = panel.offset;
    SmallVector<Level> around;
    SmallVector<int64_t> sizes = llvm::map_to_vector(outer, [](const Letter &letter) { return letter.size; });
    SmallVector<Value> coordinates = coordinatesOf(u, sizes);
    for (size_t i = outer.size(); i-- > 0;) {
      Value at = coordinates[i];
      place(origin, outer[i], at, 0);
      if (outerRelation[i] < 0)
        atA = e.add(atA, e.mul(at, outer[i].a));
      else
        around.push_back(levelOf(outerRelation[i], at, panel, atA, atB));
    }
    relatedRows(atA, atB, panel, around, origin);
  };
  int64_t places = sizeOf(outer), ofChunk = placesOfChunk();
  if (outer.empty() || sharesPanels() || e.chunks == 1)
    return e.loop(0, places, 1, body);
  Value end = arith::MinSIOp::create(b, loc, e.mul(pieceEnd, ofChunk), e.index(places));
  e.loop(e.mul(pieceBegin, ofChunk), end, 1, body);
}

/// Of the letters of a and b one, x, is walked, and the other is y: ofX * x + ofY * y = rest, where ofX > 0 and the two
/// factors have no common divisor (runOf does the same for known places).
ContractEmitter::Level ContractEmitter::levelOf(int number, Value at, const Panel &panel, Value &offsetA,
                                                Value &offsetB) {
  const runtime::Related &each = related[number];
  int64_t strideB = panel.stridesRelated[number];
  // The letter is walked whose counterpart moves by whole steps; of two such, the shorter.
  bool wholeA = std::abs(each.ofA) == 1, wholeB = std::abs(each.ofB) == 1;
  bool walksB = wholeA != wholeB ? wholeA : each.b.size <= each.a.size;
  int64_t ofX = walksB ? each.ofB : each.ofA, ofY = walksB ? each.ofA : each.ofB;
  int64_t sizeX = walksB ? each.b.size : each.a.size, sizeY = walksB ? each.a.size : each.b.size;
  int64_t divisor = std::gcd(ofX, ofY) * (ofX < 0 ? -1 : 1), step = std::abs(ofY / divisor);
  ofX /= divisor, ofY /= divisor;

  auto maximum = [&](Value x, int64_t y) -> Value { return arith::MaxSIOp::create(b, loc, x, e.index(y)); };
  auto quotient = [&](Value x, int64_t y) -> Value {
    return y == 1 ? x : Value(arith::DivSIOp::create(b, loc, x, e.index(y)));
  };
  auto modulo = [&](Value x, int64_t y) -> Value {
    Value rest = arith::RemSIOp::create(b, loc, x, e.index(y));
    return arith::RemSIOp::create(b, loc, e.add(rest, e.index(y)), e.index(y));
  };
  Value whole = e.add(e.mul(at, -each.ofC), e.index(each.constant)), rest = quotient(whole, divisor);
  // ofX * x is between what the last and the first y leave of the rest.
  int64_t reach = std::abs(ofY) * (sizeY - 1);
  Value low = e.add(rest, e.index(ofY > 0 ? -reach : 0)), high = e.add(rest, e.index(ofY > 0 ? 0 : reach));
  Value first = quotient(e.add(maximum(low, 0), e.index(ofX - 1)), ofX);
  Value end = arith::MinSIOp::create(b, loc, quotient(maximum(e.add(high, e.index(ofX)), 0), ofX), e.index(sizeX));
  if (step > 1) { // ofX * x = rest modulo ofY
    Value least = modulo(e.mul(modulo(rest, step), runtime::inverseOf(ofX, step)), step);
    first = e.add(first, modulo(arith::SubIOp::create(b, loc, least, first), step));
  }
  Value count = quotient(maximum(e.add(arith::SubIOp::create(b, loc, end, first), e.index(step - 1)), 0), step);
  if (std::abs(divisor) > 1) {
    Value left = arith::RemSIOp::create(b, loc, whole, e.index(divisor));
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, e.index(0));
    count = arith::SelectOp::create(b, loc, fits, count, e.index(0));
  }
  if (sizeX == 0 || sizeY == 0)
    count = e.index(0);
  Value y = quotient(arith::SubIOp::create(b, loc, rest, e.mul(first, ofX)), ofY);
  int64_t stepY = ofY > 0 ? -ofX : ofX;
  Value atA = walksB ? y : first, atB = walksB ? first : y;
  offsetA = e.add(offsetA, e.mul(atA, each.a.a));
  offsetB = e.add(offsetB, e.mul(atB, strideB));
  int64_t most = std::min((sizeX + step - 1) / step, reach / ofX + 1);
  return {std::max<int64_t>(most, 0), count, (walksB ? stepY : step) * each.a.a, (walksB ? step : stepY) * strideB, {}};
}

SmallVector<ContractEmitter::Level> ContractEmitter::levelsWith(ArrayRef<Level> around, std::optional<Level> further,
                                                                const Panel &panel) {
  SmallVector<Level> levels;
  auto way = [](const Level &level) { return std::max(std::abs(level.a), std::abs(level.b)); };
  auto insert = [&](const Level &level) {
    levels.insert(llvm::upper_bound(levels, level, [&](const Level &x, const Level &y) { return way(x) > way(y); }),
                  level);
  };
  llvm::for_each(around, insert);
  if (further)
    insert(*further);
  llvm::for_each(levelsOfK(panel), insert);
  return levels;
}

void ContractEmitter::relatedRows(Value offsetA, Value offsetB, const Panel &panel, ArrayRef<Level> around,
                                  Point &origin) {
  if (rowRelation >= 0) {
    rowPhases = phasesOf(related[rowRelation]);
    for (rowPhase = 0; rowPhase < rowPhases; ++rowPhase)
      rowsOfPhase(offsetA, offsetB, panel, around, origin);
    return;
  }
  SmallVector<Level> levels = levelsWith(around, std::nullopt, panel);
  if (m.empty())
    return tile(offsetA, offsetB, panel, {}, 1, levels, origin);
  const Letter &letter = m.back();
  int64_t most = rowsOfWindow(static_cast<int>(panel.masks.size())), tiles = (letter.size + most - 1) / most,
          height = (letter.size + tiles - 1) / std::max<int64_t>(1, tiles), whole = letter.size / height * height;
  auto emitTile = [&](Value i, int64_t count) {
    tile(e.add(offsetA, e.mul(i, letter.a)), offsetB, panel, i, static_cast<int>(count), levels, origin);
  };
  e.loop(0, whole, height, [&](Value i) { emitTile(i, height); });
  if (whole < letter.size)
    emitTile(e.index(whole), letter.size - whole);
}

/// The rows t of one phase: place rowPhase + rowPhases * t of c's letter, while b's letter is at first + step * j and
/// a's at y0 + yOfJ * j + yOfT * t.
void ContractEmitter::rowsOfPhase(Value offsetA, Value offsetB, const Panel &panel, ArrayRef<Level> around,
                                  Point &origin) {
  const runtime::Related &each = related[rowRelation];
  int64_t strideB = panel.stridesRelated[rowRelation], phase = rowPhase;
  int64_t rows = each.c.size > phase ? (each.c.size - phase - 1) / rowPhases + 1 : 0;
  if (rows == 0)
    return;
  int64_t rest = each.constant - each.ofC * phase, divisor = std::gcd(each.ofA, each.ofB);
  int64_t step = std::abs(each.ofA) / divisor, first = 0, places = 0;
  if (rest % divisor == 0 && each.a.size > 0) {
    int64_t inverse = runtime::inverseOf(each.ofB / divisor, step);
    first = ((rest / divisor % step + step) % step) * inverse % step;
    places = each.b.size > first ? (each.b.size - first - 1) / step + 1 : 0;
  }
  int64_t y0 = places > 0 ? (rest - each.ofB * first) / each.ofA : 0, yOfJ = -(each.ofB * step / each.ofA),
          yOfT = -(each.ofC * rowPhases / each.ofA), last = each.a.size - 1;

  // Rows of which every place of b has one of a.
  int64_t lowest = std::min(y0, y0 + yOfJ * (places - 1)), highest = std::max(y0, y0 + yOfJ * (places - 1));
  int64_t inner = yOfT > 0 ? ceilDiv(-lowest, yOfT) : ceilDiv(highest - last, -yOfT),
          innerEnd = (yOfT > 0 ? floorDiv(last - highest, yOfT) : floorDiv(lowest, -yOfT)) + 1;
  if (places == 0)
    inner = 0, innerEnd = rows;
  inner = std::clamp<int64_t>(inner, 0, rows), innerEnd = std::clamp<int64_t>(innerEnd, inner, rows);

  Value startA = e.add(offsetA, e.index(y0 * each.a.a)), startB = e.add(offsetB, e.index(first * strideB));
  int64_t rowStride = yOfT * each.a.a;
  auto emitTile = [&](Value i, int64_t count, SmallVector<Segment> segments) {
    Level walked{places, {}, yOfJ * each.a.a, step * strideB, std::move(segments)};
    strideM = rowStride;
    tile(e.add(startA, e.mul(i, rowStride)), startB, panel, i, static_cast<int>(count),
         levelsWith(around, std::move(walked), panel), origin);
  };
  // What the rows from `from` on have of each place, in runs of places of which the same rows have some.
  auto segmentsAt = [&](int64_t from, int64_t count) -> std::optional<SmallVector<Segment>> {
    SmallVector<Segment> segments;
    for (int64_t j = 0; j < places; ++j) {
      int firstRow = -1, endRow = -1;
      for (int r = 0; r < static_cast<int>(count); ++r)
        if (int64_t y = y0 + yOfJ * j + yOfT * (from + r); y >= 0 && y <= last) {
          firstRow = firstRow < 0 ? r : firstRow;
          endRow = r + 1;
        }
      if (firstRow < 0)
        continue;
      if (!segments.empty() && segments.back().to == j && segments.back().firstRow == firstRow &&
          segments.back().endRow == endRow)
        ++segments.back().to;
      else
        segments.push_back({j, j + 1, firstRow, endRow});
    }
    if (segments.empty()) // a level without rounds
      segments.push_back({0, 0, 0, 0});
    return segments.size() <= kMaxSegments ? std::optional(segments) : std::nullopt;
  };
  auto oneByOne = [&](int64_t from, int64_t to) {
    e.loop(from, to, 1, [&](Value i) {
      Value atA = offsetA, atB = offsetB, at = e.add(e.mul(i, rowPhases), e.index(phase));
      Level walked = levelOf(rowRelation, at, panel, atA, atB);
      tile(atA, atB, panel, i, 1, levelsWith(around, walked, panel), origin);
    });
  };
  int64_t most = rowsOfWindow(static_cast<int>(panel.masks.size())), tiles = (rows + most - 1) / most,
          height = (rows + tiles - 1) / tiles;
  auto atEdge = [&](int64_t from, int64_t to) {
    bool written = places <= kMaxEdgePlaces && to - from <= kMaxEdgeTiles * height;
    for (; written && from < to; from += height) {
      int64_t count = std::min(height, to - from);
      std::optional<SmallVector<Segment>> segments = segmentsAt(from, count);
      if (!segments)
        break;
      emitTile(e.index(from), count, std::move(*segments));
    }
    if (from < to)
      oneByOne(from, to);
  };
  // Whole tiles inside, from a multiple of their height on where the edge before them is short.
  int64_t begin = inner > kMaxEdgeTiles * height ? inner : ceilDiv(inner, height) * height;
  int64_t end = begin < innerEnd ? begin + (innerEnd - begin) / height * height : begin;
  if (end <= begin)
    return atEdge(0, rows);
  atEdge(0, begin);
  e.loop(begin, end, height, [&](Value i) { emitTile(i, height, {}); });
  atEdge(end, rows);
}

} // namespace wg::codegen
