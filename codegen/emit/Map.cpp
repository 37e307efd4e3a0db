// Map kernels: every element on its own. Vectors along the innermost axis, several interleaved to hide latency.
#include "codegen/emit/KernelEmitter.h"

using namespace mlir;

namespace wg::codegen {

/// Elements of a flat kernel that one chunk covers: enough to outweigh handing it to a thread.
static constexpr int64_t kChunkElements = 16384;

void KernelEmitter::planChunks() {
  if (kernel.getKind() == "map") {
    if (axes.size() == 1)
      chunks = std::max<int64_t>(1, (axes[0].size + kChunkElements - 1) / kChunkElements);
    else if (axes.size() > 1)
      chunks = axes[0].size;
  } else if (kernel.getKind() == "contract") {
    planContract();
  } else if (!axes.empty() && !axes.front().reduced && axes.size() > 1 && axes.back().reduced) {
    chunks = axes.front().size;
  }
}

/// The points of one group along the innermost axis: `count` vectors that start at `first`.
static SmallVector<Point> pointsAlong(KernelEmitter &e, ArrayRef<ir::Coordinate> outer, Value first, int lanes,
                                      int count) {
  SmallVector<Point> points(count);
  for (int u = 0; u < count; ++u) {
    points[u].at.assign(outer.begin(), outer.end());
    points[u].at.push_back({e.add(first, e.index(u * std::max(lanes, 1))), lanes ? 1 : 0});
    points[u].lanes = lanes;
  }
  return points;
}

LogicalResult KernelEmitter::emitMap(Value begin, Value end) {
  SmallVector<Value> values = llvm::to_vector(kernel.getYield().getValues());
  auto emitPoints = [&](MutableArrayRef<Point> points) {
    evalAll(points, values);
    for (unsigned output = 0; output < values.size(); ++output)
      for (Point &point : points)
        store(point, output);
  };
  if (axes.empty()) {
    Point point;
    emitPoints(point);
    return success();
  }
  int lanes = nativeLanes();
  // The innermost axis from `from` to `to`, in groups of interleaved vectors, then single vectors, then a masked rest.
  auto inner = [&](ArrayRef<ir::Coordinate> outer, int64_t size) {
    int64_t group = static_cast<int64_t>(interleave()) * lanes;
    int64_t wholeGroups = size / group * group, whole = size / lanes * lanes;
    loop(0, wholeGroups, group, [&](Value at) {
      SmallVector<Point> points = pointsAlong(*this, outer, at, lanes, interleave());
      emitPoints(points);
    });
    loop(wholeGroups, whole, lanes, [&](Value at) {
      SmallVector<Point> points = pointsAlong(*this, outer, at, lanes, 1);
      emitPoints(points);
    });
    if (whole < size) {
      SmallVector<Point> points = pointsAlong(*this, outer, index(whole), lanes, 1);
      points[0].mask = tailMask(lanes, size - whole);
      emitPoints(points);
    }
  };
  if (axes.size() == 1 && chunks == 1) {
    inner({}, axes[0].size);
    return success();
  }
  if (axes.size() == 1) {
    // Whole chunks in a loop; the last, shorter one under a condition on the range.
    int64_t size = axes[0].size, wholeChunks = size / kChunkElements, rest = size % kChunkElements;
    int64_t group = static_cast<int64_t>(interleave()) * lanes;
    auto chunkBody = [&](Value base, int64_t length) {
      loop(0, length / group * group, group, [&](Value at) {
        SmallVector<Point> points = pointsAlong(*this, {}, add(base, at), lanes, interleave());
        emitPoints(points);
      });
      loop(length / group * group, length / lanes * lanes, lanes, [&](Value at) {
        SmallVector<Point> points = pointsAlong(*this, {}, add(base, at), lanes, 1);
        emitPoints(points);
      });
      if (length % lanes) {
        SmallVector<Point> points = pointsAlong(*this, {}, add(base, index(length / lanes * lanes)), lanes, 1);
        points[0].mask = tailMask(lanes, length % lanes);
        emitPoints(points);
      }
    };
    Value last = arith::MinSIOp::create(b, loc, end, index(wholeChunks));
    loop(begin, last, 1, [&](Value chunk) { chunkBody(mul(chunk, kChunkElements), kChunkElements); });
    if (rest != 0)
      onLastChunk(end, wholeChunks, [&] { chunkBody(index(wholeChunks * kChunkElements), rest); });
    return success();
  }
  // Outer axes one by one; the first is cut into chunks.
  SmallVector<ir::Coordinate> outer;
  std::function<void(size_t)> nest = [&](size_t d) {
    if (d + 1 == axes.size())
      return inner(outer, axes[d].size);
    auto body = [&](Value at) {
      outer.push_back({at, 0});
      nest(d + 1);
      outer.pop_back();
    };
    if (d == 0)
      loop(begin, end, 1, body);
    else
      loop(0, axes[d].size, 1, body);
  };
  nest(0);
  return success();
}

} // namespace wg::codegen
