// What a reduce kernel walks side by side: vectors of rows, where lanes are rows, or rows, where lanes are elements of
// one.
#include "codegen/emit/ReduceEmitter.h"

using namespace mlir;

namespace wg::codegen {

/// Whether rows are so short, and lie so close, that lanes are rows side by side and not elements of one: a vector of
/// them is as many loads and shuffles as a row is long, for each of its elements. (Dot products of rows of 2, 3 and 6
/// numbers: 1.3, 1.3 and 1.4 ns a row along these, 0.2, 0.4 and 1.2 so; largest numbers of rows of 8: 1.5 and 1.0.)
bool ReduceEmitter::areRowsTiny() {
  size_t count = e.axes.size();
  int lanes = e.nativeLanes();
  if (count < 2 || !e.axes[count - 1].reduced || e.axes[count - 2].reduced || e.axes[count - 1].size == 0 ||
      e.axes[count - 1].size > lanes / 2 || e.axes[count - 2].size < lanes ||
      llvm::count_if(e.axes, [](const Axis &axis) { return axis.reduced; }) > 1)
    return false;
  if (llvm::any_of(*e.kernel.getBlock(), [](Operation &op) { return isa<ir::Indexed>(op); }) ||
      llvm::any_of(e.kernel.getYield().getValues(), [&](Value value) { return e.places.of(value) == Space::full; }))
    return false;
  int64_t loads = 0;
  bool areClose = true;
  e.eachRead([&](Value, const KernelEmitter::Access &access) {
    int64_t apart = access.strides[count - 2];
    areClose &= apart == 0 || apart == 1 ||
                (apart > 1 && KernelEmitter::areClose(apart, lanes, getElementTypeOrSelf(access.root.getType())));
    loads += apart * apart;
  });
  return areClose && loads <= 5 * lanes;
}

/// Places of the innermost kept axis that are gone through at once: columns of a run, or a group of rows or of vectors
/// of them, side by side.
int64_t ReduceEmitter::placesAtOnce() {
  int64_t run = columns ? columnsOfRun() : 0;
  return run != 0 ? run : columns ? groupOfColumns() : groupOfRows();
}

/// Rows to walk side by side, whose elements are one way along the reduced axes after the other. Where one of these
/// lies around the rows, a row's own elements are short runs far apart. (Sums over the second and the last axis of
/// [40, 204, 145, 13]: 7 GB/s one by one, 14 by eights, 40 where these ask ahead.)
int64_t ReduceEmitter::groupOfRows() {
  if (columns || isDegenerate() || keptAxes.empty() || reducedAxes.size() < 2 ||
      reducedAxes[reducedAxes.size() - 2] > keptAxes.back())
    return 1;
  int64_t size = e.axes[reducedAxes.back()].size, vectors = llvm::divideCeil(size, lanes);
  return std::clamp<int64_t>(e.axes[keptAxes.back()].size, 1, std::max<int64_t>(1, vectorsSideBySide() / vectors));
}

/// Vectors of rows to walk side by side, where there are so many. A step along the reduced axis is one far away in
/// memory: what is read there is to be whole lines, several at once. (Sums over the first axis of [8192, 512]: 15
/// GB/s by single vectors, 57 by eights.) Fewer are one group: a rest would read what lies beside it once more.
int64_t ReduceEmitter::groupOfColumns() {
  int64_t vectors = llvm::divideCeil(e.axes[keptAxes.back()].size, lanes);
  return std::clamp<int64_t>(vectors, 1, vectorsSideBySide()) * lanes;
}

/// Of one row.
int64_t ReduceEmitter::vectorsAtOnce() {
  return std::min<int64_t>(e.interleave(), std::max<int64_t>(1, e.axes[reducedAxes.back()].size / lanes));
}

/// Innermost axis reduced: vectors along it, of rows side by side.
void ReduceEmitter::walkRows(int number, ArrayRef<Point> rowPoints, MutableArrayRef<Known> known) {
  unsigned d = reducedAxes.back();
  int64_t size = e.axes[d].size;
  auto side = static_cast<int64_t>(rowPoints.size());
  int64_t deep = vectorsAtOnce();
  Phase phase{reductionsOf(number), fullOutputsOf(number), static_cast<int>(side * deep), lanes};
  if (phase.ops.empty() && phase.outputs.empty())
    return;
  auto step = [&](Value first, int count, Value mask, SmallVector<Value> acc) {
    if (side > 1)
      askForNextGroup(rowPoints.front(), side, first);
    SmallVector<Point> points;
    for (int i = 0; i < count / side; ++i)
      for (auto [rowPoint, ofRow] : llvm::zip_equal(rowPoints, known)) {
        Point point = pointOf(rowPoint, lanes, mask);
        point.at[d] = {e.add(first, e.index(i * lanes)), 1};
        for (auto [value, computed] : ofRow)
          point.values[value] = e.splat(computed, lanes);
        points.push_back(std::move(point));
      }
    return addPoints(phase, points, std::move(acc));
  };
  int64_t group = deep * lanes, whole = size / group * group, vectors = size / lanes * lanes;
  SmallVector<Value> acc = walk(phase, whole, group, step, [&](ValueRange carried) {
    SmallVector<Value> total = e.loop(whole, vectors, lanes, carried, [&](Value i, ValueRange sums) {
      return step(i, static_cast<int>(side), {}, llvm::to_vector(sums));
    });
    return vectors < size ? step(e.index(vectors), static_cast<int>(side), e.tailMask(lanes, size - vectors), total)
                          : total;
  });
  for (auto [o, op] : llvm::enumerate(phase.ops))
    for (int64_t row = 0; row < side; ++row) {
      Value sum = acc[o * phase.u + row];
      for (int64_t i = 1; i < deep; ++i)
        sum = combine(op, sum, acc[o * phase.u + i * side + row]);
      known[row][op->getResult(0)] = combineLanes(op, sum);
    }
}

/// Whether rows side by side ask for what the next ones read, of a tensor beyond the nearest caches: processors do not
/// follow short runs from one to the next. Longer ones they find.
bool ReduceEmitter::asksForNextGroup(const KernelEmitter::Access &access) {
  constexpr int64_t kShort = 128, kCached = int64_t(1) << 20; // bytes
  auto type = cast<RankedTensorType>(access.root.getType());
  int64_t bytes = alignmentOf(type.getElementType()), step = keptAxes.empty() ? 0 : access.strides[keptAxes.back()];
  return !columns && groupOfRows() > 1 && step > 0 && step * bytes <= kShort &&
         access.strides[reducedAxes.back()] == 1 && type.getNumElements() * bytes > kCached;
}

/// Of what `side` rows read, from `first` on.
void ReduceEmitter::askForNextGroup(const Point &rowPoint, int64_t side, Value first) {
  constexpr int64_t kLine = 64;
  e.eachRead([&](Value, const KernelEmitter::Access &access) {
    if (!asksForNextGroup(access))
      return;
    Type element = cast<RankedTensorType>(access.root.getType()).getElementType();
    int64_t bytes = alignmentOf(element), step = access.strides[keptAxes.back()];
    Point point = pointOf(rowPoint, 0, {});
    point.at[reducedAxes.back()] = {first, 0};
    for (int64_t at = 0; at < side * step; at += std::max(step, kLine / bytes))
      e.prefetch(point, e.pointerOf.lookup(access.root), element, access.strides, access.offset + side * step + at);
  });
}

/// Asks for what is read some steps of axis `d` further on, where these are far apart and what is read at each is
/// short: processors do not follow it. Of places far from each other each asks for its own. (Products of
/// [3, 802, 296, 11, 7] and [3, 296, 802, 7, 11] summed to [3, 7]: 152 ms without, 29 so; of [38, 2518, 29, 21] and
/// [21, 2518, 38, 29] to [38, 21]: 157 and 52.) Not where the next rows are asked for: they come first.
void ReduceEmitter::askForLaterBlock(unsigned d) {
  constexpr int64_t kLine = 64, kShort = 1024, kFar = 512, kCached = int64_t(1) << 20; // bytes
  constexpr int64_t kSteps = 4, kMostLines = 128;
  unsigned inner = reducedAxes.back();
  if (e.axes[d].size <= 2 * kSteps)
    return;
  e.eachRead([&](Value, const KernelEmitter::Access &access) {
    auto type = cast<RankedTensorType>(access.root.getType());
    int64_t bytes = alignmentOf(type.getElementType()), step = access.strides[d],
            read = 1 + (e.axes[inner].size - 1) * access.strides[inner],
            toPlace = keptAxes.empty() ? 0 : access.strides[keptAxes.back()],
            places = keptAxes.empty() ? 1 : std::min(placesAtOnce(), e.axes[keptAxes.back()].size);
    Point point(at, 0, {});
    point.at[inner] = {e.index(0), 0};
    if (toPlace <= read + kLine / bytes) {
      read += (places - 1) * toPlace;
      places = 1;
    }
    int64_t lines = llvm::divideCeil(read + kLine / bytes - 1, kLine / bytes);
    if (asksForNextGroup(access) || llvm::any_of(access.strides, [](int64_t stride) { return stride < 0; }) ||
        step * bytes < kFar || read * bytes > kShort || places * lines > kMostLines ||
        type.getNumElements() * bytes <= kCached)
      return;
    for (int64_t place = 0; place < places; ++place)
      for (int64_t line = 0; line < lines; ++line)
        e.prefetch(point, e.pointerOf.lookup(access.root), type.getElementType(), access.strides,
                   access.offset + kSteps * step + place * toPlace + std::min(line * (kLine / bytes), read - 1));
  });
}

/// Innermost axis kept: each lane is a row; the reduced axes are walked one element at a time. At least four sums are
/// under way, of neighbours or of one vector of rows, so that additions do not wait for each other.
void ReduceEmitter::walkColumns(int number, ArrayRef<Point> rowPoints, MutableArrayRef<Known> known) {
  unsigned d = reducedAxes.back();
  int64_t size = e.axes[d].size;
  int side = static_cast<int>(rowPoints.size());
  int deep = static_cast<int>(std::min<int64_t>(llvm::divideCeil(4, side), size)); // steps along the axis at once
  Phase phase{reductionsOf(number), fullOutputsOf(number), side * deep, rowPoints[0].lanes};
  if (phase.ops.empty() && phase.outputs.empty())
    return;
  auto step = [&](Value first, int count, Value, SmallVector<Value> acc) {
    SmallVector<Point> points;
    for (int i = 0; i < count / side; ++i)
      for (auto [rowPoint, ofPoint] : llvm::zip_equal(rowPoints, known)) {
        Point point = pointOf(rowPoint, rowPoint.lanes, rowPoint.mask);
        point.at[d] = {e.add(first, e.index(i)), 0};
        for (auto [value, computed] : ofPoint)
          if (isa<VectorType>(computed.getType())) // a scalar is known to all points
            point.values[value] = computed;
        points.push_back(std::move(point));
      }
    return addPoints(phase, points, std::move(acc));
  };
  int64_t whole = size / deep * deep;
  SmallVector<Value> acc = walk(phase, whole, deep, step, [&](ValueRange carried) {
    return e.loop(whole, size, 1, carried,
                  [&](Value i, ValueRange sums) { return step(i, side, {}, llvm::to_vector(sums)); });
  });
  for (auto [o, op] : llvm::enumerate(phase.ops))
    for (int v = 0; v < side; ++v) {
      Value sum = acc[o * phase.u + v];
      for (int i = 1; i < deep; ++i)
        sum = combine(op, sum, acc[o * phase.u + i * side + v]);
      known[v][op->getResult(0)] = sum;
    }
}

} // namespace wg::codegen
