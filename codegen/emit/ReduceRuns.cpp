// Reduce kernels whose columns step through more than caches hold: long runs of columns, with accumulators in memory
// close by. What that gives is in Reduce.cpp.
#include "codegen/emit/ReduceEmitter.h"

using namespace mlir;

namespace wg::codegen {

/// Columns whose accumulators are in memory at a time; 0 where they are in registers: where what they step through is
/// in a cache close by, or too few rows to pay for the accumulators' ways, or values of a row are known before it is
/// walked, which registers would hold. By the shape alone, as is the order in which terms are added.
int64_t ReduceEmitter::columnsOfRun() {
  constexpr int64_t kBytes = 65536, kCloseBy = int64_t(1) << 20, kFarAway = int64_t(8) << 20, kFewRows = 32;
  int64_t group = groupOfColumns(), size = e.axes[keptAxes.back()].size, widest = 1, steps = 1;
  if (phases.count != 1 || size < 2 * group || group < kSideBySide * lanes)
    return 0;
  for (Operation &op : e.kernel.getBlock()->without_terminator())
    if (isa<ir::Scalar>(op) && e.places.of(op.getResult(0)) == Space::row && phases.of.lookup(op.getResult(0)) == 0)
      return 0;
  for (Operation *op : reductions) {
    if (getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1))
      return 0;
    widest = std::max(widest, bytesOf(op));
  }
  for (unsigned d : reducedAxes)
    steps *= e.axes[d].size;
  int64_t mostRead = 0; // of what is read in rows
  for (ArrayRef<int64_t> strides : e.stridesOfReads()) {
    if (strides.back() != 1 || strides[reducedAxes.back()] == 0)
      continue;
    int64_t read = widest;
    for (auto [stride, axis] : llvm::zip_equal(strides, e.axes))
      read *= stride == 0 ? 1 : axis.size;
    mostRead = std::max(mostRead, read);
  }
  if (mostRead == 0 || steps < kFewRows || (steps * size * widest <= kCloseBy && mostRead <= kFarAway))
    return 0;
  int64_t vectors = llvm::divideCeil(size, lanes), most = std::max<int64_t>(1, kBytes / widest / lanes);
  return std::min(vectors, most) * lanes;
}

/// Where accumulators of a row stay in the closest cache, rows are walked one by one, as they lie in memory: several
/// at once, in turns, are no stream that a processor follows. (Sums over the middle axis of [289, 392, 456]: 32 GB/s,
/// by eights 13.) Longer rows pay for the accumulators' ways by several at a time. (Of [40, 300, 8000]: 29 GB/s, one
/// by one 19.)
int64_t ReduceEmitter::rowsAtOnce() {
  constexpr int64_t kBytes = 12 << 10;
  int64_t bytes = 0;
  for (Operation *op : reductions)
    bytes += columnsOfRun() * bytesOf(op);
  return bytes <= kBytes ? 1 : std::clamp<int64_t>(32 / std::max<int64_t>(1, e.opsOfPoint()), 1, 8);
}

/// Of so many terms each; 0 where one sum takes all.
int64_t ReduceEmitter::blocksOfRun() {
  int64_t size = e.axes[reducedAxes.back()].size;
  return size > 2 * kBlock ? size / kBlock : 0;
}

/// The accumulators of runs, of each piece its own.
Value ReduceEmitter::roomOfRuns(Value begin) {
  if (e.chunks == 1)
    return e.scratchPointer;
  Value piece = arith::DivUIOp::create(b, loc, begin, e.index(e.chunksPerPiece()));
  return e.elementAfter(e.scratchPointer, e.mul(piece, scratchBytes()), b.getI8Type());
}

/// Where rows are walked one by one, asks for one that is some pages on: processors follow them, but stop where a page
/// ends, and the accumulators' ways leave them no time to catch up. (Sums over the middle axis of [3, 1272, 2935]: 38
/// GB/s without, 52 so. Of rows by eights what follows each is asked for in time: 52 without, 45 so.)
void ReduceEmitter::askForNextRows(ArrayRef<Point> points, Value row) {
  constexpr int64_t kAhead = 8 << 10, kCached = int64_t(8) << 20, kLine = 64; // bytes
  unsigned d = reducedAxes.back();
  if (rowsAtOnce() != 1)
    return;
  e.eachRead([&](Value, const KernelEmitter::Access &access) {
    auto type = cast<RankedTensorType>(access.root.getType());
    int64_t bytes = alignmentOf(type.getElementType());
    if (access.strides[d] == 0 || access.strides[keptAxes.back()] != 1 || type.getNumElements() * bytes <= kCached)
      return;
    int64_t vectorsOfLine = std::max<int64_t>(1, kLine / (lanes * bytes));
    for (size_t i = 0; i < points.size(); i += static_cast<size_t>(vectorsOfLine)) {
      Point point = points[i];
      point.mask = {};
      point.at[d] = {row, 0};
      e.prefetch(point, e.pointerOf.lookup(access.root), type.getElementType(), access.strides,
                 access.offset + access.strides[d] * llvm::divideCeil(kAhead, columnsOfRun() * bytes));
    }
  });
}

/// `length` columns from `first` on. The terms of each are added one after the other, in blocks as in walk().
void ReduceEmitter::walkRun(Value room, Value first, int64_t length) {
  unsigned column = keptAxes.back(), d = reducedAxes.back();
  int64_t group = kSideBySide * lanes, size = e.axes[d].size, blocks = blocksOfRun();
  Phase phase{reductionsOf(0), fullOutputsOf(0), 0, lanes};
  int64_t used = 0;
  auto makeRoom = [&] {
    return llvm::map_to_vector(phase.ops, [&](Operation *op) {
      Value at = e.elementAfter(room, e.index(used), b.getI8Type());
      used += columnsOfRun() * bytesOf(op);
      return at;
    });
  };
  SmallVector<Value> totals = makeRoom(), parts = blocks ? makeRoom() : totals;
  auto eachGroup = [&](llvm::function_ref<void(Value, MutableArrayRef<Point>)> f) {
    auto some = [&](Value from, int64_t count) {
      SmallVector<Point> points;
      for (int64_t next = 0; next < count; next += lanes) {
        Point point(at, lanes, e.tailMask(lanes, count - next));
        point.at[column] = {e.add(e.add(first, from), e.index(next)), 1};
        points.push_back(std::move(point));
      }
      f(from, points);
    };
    int64_t whole = length / group * group;
    e.loop(0, whole, group, [&](Value from) { some(from, group); });
    if (whole < length)
      some(e.index(whole), length - whole);
  };
  // The accumulators of a group of points, by op.
  auto place = [&](Value room, Operation *op, Value from, size_t i) {
    Type element = cast<VectorType>(neutral(op, lanes).getType()).getElementType();
    return e.elementAfter(room, e.add(from, e.index(static_cast<int64_t>(i) * lanes)), element);
  };
  auto loadAll = [&](ArrayRef<Value> rooms, Value from, size_t count) {
    SmallVector<Value> all;
    for (auto [op, room] : llvm::zip_equal(phase.ops, rooms))
      for (size_t i = 0; i < count; ++i)
        all.push_back(LLVM::LoadOp::create(b, loc, neutral(op, lanes).getType(), place(room, op, from, i),
                                           static_cast<unsigned>(bytesOf(op))));
    return all;
  };
  auto storeAll = [&](ArrayRef<Value> rooms, Value from, size_t count, ArrayRef<Value> all) {
    for (auto [o, op] : llvm::enumerate(phase.ops))
      for (size_t i = 0; i < count; ++i)
        LLVM::StoreOp::create(b, loc, all[o * count + i], place(rooms[o], op, from, i),
                              static_cast<unsigned>(bytesOf(op)));
  };
  auto ofPoints = [&](ArrayRef<Point> points) {
    return Phase{phase.ops, phase.outputs, static_cast<int>(points.size()), lanes};
  };
  auto clear = [&](ArrayRef<Value> rooms) {
    eachGroup(
        [&](Value from, ArrayRef<Point> points) { storeAll(rooms, from, points.size(), fresh(ofPoints(points))); });
  };
  auto addRows = [&](ArrayRef<Value> rooms, Value from, int64_t count) {
    auto some = [&](Value row, int64_t rows) {
      eachGroup([&](Value from, MutableArrayRef<Point> points) {
        askForNextRows(points, row);
        SmallVector<Value> acc = loadAll(rooms, from, points.size());
        for (int64_t r = 0; r < rows; ++r) {
          SmallVector<Point> next(points);
          for (Point &point : next)
            point.at[d] = {e.add(row, e.index(r)), 0};
          acc = addPoints(ofPoints(points), next, acc);
        }
        storeAll(rooms, from, points.size(), acc);
      });
    };
    int64_t atOnce = rowsAtOnce(), whole = count / atOnce * atOnce;
    e.loop(0, whole, atOnce, [&](Value i) { some(e.add(from, i), atOnce); });
    e.loop(whole, count, 1, [&](Value i) { some(e.add(from, i), 1); });
  };
  clear(totals);
  std::function<void(size_t)> nest = [&](size_t k) {
    if (k + 1 < reducedAxes.size())
      return e.loop(0, e.axes[reducedAxes[k]].size, 1, [&](Value i) {
        at[reducedAxes[k]] = {i, 0};
        nest(k + 1);
      });
    if (!blocks)
      return addRows(totals, e.index(0), size);
    auto addBlock = [&](Value from, int64_t count) {
      clear(parts);
      addRows(parts, from, count);
      eachGroup([&](Value from, ArrayRef<Point> points) {
        size_t count = points.size();
        storeAll(totals, from, count,
                 merge(ofPoints(points), loadAll(totals, from, count), loadAll(parts, from, count)));
      });
    };
    e.loop(0, blocks, 1, [&](Value i) { addBlock(e.mul(i, kBlock), kBlock); });
    if (blocks * kBlock < size)
      addBlock(e.index(blocks * kBlock), size - blocks * kBlock);
  };
  nest(0);
  eachGroup([&](Value from, ArrayRef<Point> points) {
    SmallVector<Value> sums = loadAll(totals, from, points.size());
    auto saved = e.known;
    std::vector<Known> known(points.size(), saved);
    for (auto [o, op] : llvm::enumerate(phase.ops))
      for (size_t i = 0; i < points.size(); ++i)
        known[i][op->getResult(0)] = sums[o * points.size() + i];
    eachOf(points, known, [&](const Point &point) { computeRowValues(1, point); });
    eachOf(points, known, [&](const Point &point) { storeRow(point); });
    e.known = saved;
  });
}

} // namespace wg::codegen
