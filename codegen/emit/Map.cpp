// Map kernels: every element on its own. Vectors along the innermost axis, several interleaved to hide latency.
#include "codegen/emit/KernelEmitter.h"

#include "ir/Views.h"
#include "passes/MemoryCosts.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <numeric>

using namespace mlir;

namespace wg::codegen {

/// Elements of a flat kernel that one chunk covers: enough to outweigh handing it to a thread.
static constexpr int64_t kChunkElements = 16384;

/// Operations that are written out for the points of a block that is read across; with more, rows are a loop.
static constexpr int64_t kMaxOpsOfBlock = 96;

static constexpr int64_t kPage = 4096;
/// Bytes from one column to the next from which on processors do not follow them.
static constexpr int64_t kApart = 512;

void KernelEmitter::planChunks() {
  if (kernel.getKind() == ir::KernelKind::map) {
    if (axes.empty())
      return;
    orderAxes();
    std::optional<Across> across = readAcross();
    int64_t chunk = axes.size() == 1 ? kChunkElements : across && across->axis == 0 ? lanesFor(axes.back().size) : 1;
    chunks = (axes[0].size + chunk - 1) / chunk;
  } else if (kernel.getKind() == ir::KernelKind::contract) {
    planContract();
  } else {
    planReduce();
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

/// A vector of elements that lie apart is as many loads. But where they have neighbours along another axis, as in a
/// transposed matrix, a block of lanes x lanes points is as many vectors, read along that axis and transposed.
std::optional<KernelEmitter::Across> KernelEmitter::readAcross() {
  constexpr int64_t kMaxOps = 512;                     // in a block: bounds code size
  constexpr int64_t kBytesOfPieces = int64_t(1) << 18; // more is faster in whole squares: their lines are read once
  if (axes.size() < 2)
    return {};
  int64_t elements = 1;
  for (const Axis &axis : axes)
    elements *= axis.size;
  if (elements <= passes::kFewElements)
    return {};
  Across across{0, {}, 0};
  eachRead([&](Value value, const Access &access) {
    if (access.strides.back() == 0 || access.strides.back() == 1)
      return;
    for (size_t axis = 0; axis + 1 < axes.size(); ++axis)
      if (access.strides[axis] == 1 && axes[axis].size > 1 && (across.values.empty() || across.axis == axis)) {
        across.axis = axis;
        across.values.push_back(value);
        return;
      }
  });
  int64_t ops = 1 + llvm::count_if(*kernel.getBlock(), [](Operation &op) { return isa<ir::Scalar>(op); });
  int lanes = lanesFor(axes.back().size);
  if (across.values.empty() || ops * lanes > kMaxOps)
    return {};
  for (Value value : across.values) {
    Type element = getElementTypeOrSelf(value.getType()), read = element.isInteger(1) ? b.getI8Type() : element;
    bool inSquares =
        elements * alignmentOf(read) > kBytesOfPieces || columnsCollide(accessOf(value)->strides.back(), read, lanes);
    across.rowsAtOnce = std::max(across.rowsAtOnce, inSquares ? lanes : pieceOf(read, lanes));
  }
  return across;
}

/// Loops outside of the innermost one may be in any order: that in which cache lines that were read, or written, in
/// part are touched again soon. Of what is read two tensors count: the largest, those that are read across first.
void KernelEmitter::orderAxes() {
  std::optional<Across> across = readAcross();
  if (axes.size() < 3 || llvm::any_of(*kernel.getBlock(), [](Operation &op) { return isa<ir::Indexed>(op); }))
    return;
  auto elementsOf = [&](ArrayRef<int64_t> strides) {
    double elements = 1;
    for (auto [axis, stride] : llvm::zip_equal(axes, strides))
      elements *= stride == 0 ? 1 : static_cast<double>(axis.size);
    return elements;
  };
  auto rank = [&](ArrayRef<int64_t> strides) {
    bool isAcross = across && strides.back() > 1 && strides[across->axis] == 1;
    return std::tuple(!isAcross, -elementsOf(strides), strides);
  };
  SmallVector<SmallVector<int64_t>> tensors = stridesOfReads();
  llvm::sort(tensors, [&](ArrayRef<int64_t> x, ArrayRef<int64_t> y) { return rank(x) < rank(y); });
  tensors.erase(llvm::unique(tensors), tensors.end());
  tensors.resize(2, SmallVector<int64_t>(axes.size()));
  tensors.push_back(outputStrides(0));
  SmallVector<passes::Loop> around;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    around.push_back({static_cast<double>(axis.size), {}});
    for (auto [step, strides] : llvm::zip_equal(around.back().steps, tensors))
      step = static_cast<double>(std::abs(strides[i]));
  }
  auto [order, cheapest] = passes::orderOfBlocks(
      around, across ? std::optional(across->axis) : std::nullopt, lanesFor(axes.back().size),
      alignmentOf(getElementTypeOrSelf(kernel.getYield().getValues()[0])), *passes::modelsOf(target.machine).front());
  if ((strips = cheapest))
    strips->axis = llvm::find(order, strips->axis) - order.begin();
  order.push_back(axes.size() - 1);
  putInOrder(order);
}

/// Points along the innermost axis that blocks take before they step on along the axis that is read across, as a line
/// of what is read holds points of a few blocks. Of a long axis it would be gone before the next block reads it. Where
/// steps are whole pages, lines share a few sets of the caches: a few rows are read, side by side. (Transposes: 500 x
/// 20,000 numbers 11.9 ms in whole rows, 6.8 so; 4,096 x 4,096 28 ms and 19.) Where the axis that is read across is a
/// part of a line, the loops outside of it read the rest: they go on along the same rows first, fewer of them if
/// these are whole pages apart. (500 x 2,048 x 4 to 4 x 2,048 x 500: 4.9 ms by 256 such rows, 1.8 by 32.)
KernelEmitter::Cut KernelEmitter::pointsAtOnce(const Across &across) {
  constexpr int64_t kLong = 1024, kSharing = 32, kPartsOfLines = 256; // points
  int64_t size = axes.back().size, points = size;
  bool isPartOfLine = axes[across.axis].size <= lanesFor(size);
  size_t first = across.axis;
  for (Value value : across.values) {
    Access access = *accessOf(value);
    int64_t bytes = access.strides.back() * alignmentOf(getElementTypeOrSelf(value.getType()));
    if (isPartOfLine && bytes >= kApart) {
      size_t axis = across.axis;
      while (axis > 0 && access.strides[axis - 1] == access.strides[axis] * axes[axis].size)
        --axis;
      if (axis < across.axis)
        points = std::min(points, bytes % kPage == 0 ? kSharing : kPartsOfLines), first = std::min(first, axis);
    } else if (!isPartOfLine && bytes % kPage == 0) {
      points = std::min(points, kSharing);
    } else if (!isPartOfLine && bytes >= kApart) {
      points = std::min(points, kLong);
    }
  }
  return {size >= 2 * points ? points : size, first};
}

/// How far ahead of what a block reads of `value` it prefetches for later blocks; 0 for not at all. Columns lie too far
/// apart for processors to follow, and a block reads a line of each. Where the same columns are read on soon, it
/// prefetches their next lines, else the columns that follow. Columns whole pages apart share too few cache sets to be
/// prefetched into. (Transposes: 4,000 x 4,000 numbers 11.0 ms without, 9.8 with; 500 x 20,000 7.0 and 6.2;
/// 5,986 x 574 x 9 x 3, in parts of lines, 71 and 58.)
int64_t KernelEmitter::elementsAhead(Value value, const Across &across, const Cut &cut) {
  constexpr int64_t kCached = int64_t(1) << 20, kSoon = int64_t(1) << 18, kLine = 64; // bytes
  constexpr int64_t kLinesAhead = 128, kColumnsAhead = 32;
  Access access = *accessOf(value);
  auto type = cast<RankedTensorType>(access.root.getType());
  int64_t bytes = alignmentOf(type.getElementType()), column = access.strides.back();
  if (type.getNumElements() * bytes <= kCached || column * bytes < kApart || column * bytes % kPage == 0)
    return 0;
  int64_t columns = cut.points; // before the next line of the same ones
  for (size_t axis = across.axis + 1; axis + 1 < axes.size(); ++axis)
    columns *= axes[axis].size;
  if (columns * kLine > kSoon)
    return kColumnsAhead * column;
  return std::clamp<int64_t>(llvm::divideCeil(kLinesAhead, columns), 1, 8) * kLine / bytes;
}

/// By passes/MemoryCosts. Of values that read the same lines one asks.
llvm::MapVector<Value, int64_t> KernelEmitter::rowsAhead(const std::optional<Across> &across) {
  constexpr int64_t kLine = 64;
  llvm::MapVector<Value, int64_t> all;
  passes::LoopOrder order{llvm::to_vector(llvm::seq(axes.size() - 1)), strips};
  eachRead([&](Value value, const Access &access) {
    bool isAcross = across && llvm::is_contained(across->values, value);
    if (isAcross != across.has_value())
      return;
    int64_t bytes = alignmentOf(getElementTypeOrSelf(access.root.getType()));
    bool isAsked = llvm::any_of(all, [&](const auto &asked) {
      Access other = *accessOf(asked.first);
      return other.root == access.root && other.strides == access.strides &&
             std::abs(other.offset - access.offset) * bytes < kLine;
    });
    if (isAsked)
      return;
    SmallVector<passes::Loop> around;
    for (auto [axis, stride] : llvm::zip_equal(axes, access.strides))
      around.push_back({static_cast<double>(axis.size), {static_cast<double>(stride)}});
    double elements = passes::rowsAhead(around, order, across ? std::optional(across->axis) : std::nullopt,
                                        lanesFor(axes.back().size), 0, static_cast<double>(bytes),
                                        *passes::modelsOf(target.machine).front());
    if (elements != 0)
      all[value] = static_cast<int64_t>(elements);
  });
  return all;
}

/// Asks for what lies so many elements further on than `count` places from `first` on along the innermost axis.
void KernelEmitter::askAhead(Value value, int64_t elements, ArrayRef<ir::Coordinate> outer, Value first,
                             int64_t count) {
  constexpr int64_t kLine = 64;
  Access access = *accessOf(value);
  Type element = getElementTypeOrSelf(access.root.getType());
  Point row(outer, 0, {});
  row.at.push_back({first, 0});
  for (int64_t at = 0; at < count * access.strides.back(); at += kLine / alignmentOf(element))
    prefetch(row, pointerOf.lookup(access.root), element, access.strides, access.offset + elements + at);
}

/// Columns so far apart share sets of the caches: were each read in pieces, its line would be gone before the next.
bool KernelEmitter::columnsCollide(int64_t stride, Type element, int64_t lanes) {
  constexpr int64_t kWays = 8;
  int64_t bytes = stride * std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
  return bytes != 0 && lanes * std::gcd(bytes, kPage) > kWays * kPage;
}

/// `count` rows from `from` on, of `width` points of a value that is read across them, and as many rows more as make
/// `rows`: the lanes of a vector, or several pieces.
SmallVector<Value> KernelEmitter::readTransposed(Value value, const Across &across, int64_t ahead,
                                                 ArrayRef<ir::Coordinate> outer, Value first, Value from, int lanes,
                                                 int64_t rows, int64_t count, int64_t width) {
  Access access = *accessOf(value);
  Type element = getElementTypeOrSelf(value.getType()), read = element.isInteger(1) ? b.getI8Type() : element;
  int64_t height = rows == lanes ? lanes : pieceOf(read, lanes);
  SmallVector<Value> all;
  for (int64_t row = 0; row < rows; row += height) {
    SmallVector<Value> columns;
    for (int64_t k = 0; k < lanes; ++k) {
      Point along(outer, static_cast<int>(height), tailMask(static_cast<int>(height), count - row));
      ir::Coordinate &at = along.at[across.axis];
      at = {add(add(at.base, from), index(row)), 1};
      along.at.push_back({add(first, index(k)), 0});
      if (k >= width || row >= count) {
        columns.push_back(
            arith::ConstantOp::create(b, loc, b.getZeroAttr(computeType(read, static_cast<int>(height)))));
        continue;
      }
      columns.push_back(load(along, pointerOf.lookup(access.root), read, access.strides, access.offset));
      if (ahead != 0)
        prefetch(along, pointerOf.lookup(access.root), read, access.strides, access.offset + ahead);
    }
    if (height == lanes)
      transpose(columns);
    else
      columns = transposePieces(columns);
    all.append(columns);
  }
  return all;
}

/// A row of `value` as it was read: of bool, bytes.
Value KernelEmitter::asElements(Value row, Value value) {
  if (!getElementTypeOrSelf(value.getType()).isInteger(1))
    return row;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(row.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, row, zero);
}

Value KernelEmitter::stackOf(VectorType type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&b.getBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front());
  Value size = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(count * type.getNumElements()));
  return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), type.getElementType(), size,
                                target.vectorBytes);
}

/// Vectors of one type, one after the other.
Value KernelEmitter::putOnStack(ArrayRef<Value> vectors) {
  auto type = cast<VectorType>(vectors.front().getType());
  Type element = type.getElementType();
  Value space = stackOf(type, static_cast<int64_t>(vectors.size()));
  for (auto [i, vector] : llvm::enumerate(vectors)) {
    Value at = elementAfter(space, index(static_cast<int64_t>(i) * type.getNumElements()), element);
    LLVM::StoreOp::create(b, loc, vector, at, alignmentOf(element));
  }
  return space;
}

SmallVector<Point> KernelEmitter::pointsOfRow(int64_t elements) {
  int lanes = lanesFor(elements);
  SmallVector<Point> points =
      pointsAlong(*this, {}, index(0), lanes, static_cast<int>(llvm::divideCeil(elements, lanes)));
  points.back().mask = tailMask(lanes, elements - (points.size() - 1) * lanes);
  return points;
}

SmallVector<SmallVector<Value>> KernelEmitter::valuesInRegisters(ArrayRef<Input> inputs) {
  SmallVector<Point> points = axes.empty() ? SmallVector<Point>(1) : pointsOfRow(axes[0].size);
  Point once;
  known.clear();
  for (auto [argument, input] : llvm::zip_equal(kernel.getBlock()->getArguments(), inputs)) {
    pointerOf[argument] = input.pointer;
    if (input.held.empty())
      continue;
    bool isScalar = !isa<VectorType>(input.held.front().getType());
    if (isScalar)
      once.held[argument] = input.held.front();
    for (auto [i, point] : llvm::enumerate(points))
      point.held[argument] = isScalar ? input.held.front() : input.held[i];
  }
  evalUniform(once);
  auto yielded = kernel.getYield().getValues();
  evalAll(points, yielded);
  SmallVector<SmallVector<Value>> results;
  for (Value value : yielded)
    results.push_back(
        llvm::map_to_vector(points, [&](Point &point) { return splat(eval(point, value), point.lanes); }));
  return results;
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
  int lanes = lanesFor(axes.back().size);
  std::optional<Across> across = readAcross();
  Cut cut = across ? pointsAtOnce(*across) : Cut();
  llvm::MapVector<Value, int64_t> ahead = rowsAhead(across);
  asksForRows = ahead.empty();
  // The innermost axis from `from` to `to`, in groups of interleaved vectors, then single vectors, then a masked rest.
  auto inner = [&](ArrayRef<ir::Coordinate> outer, int64_t size) {
    for (auto [value, elements] : ahead)
      askAhead(value, elements, outer, index(0), size);
    int64_t group = static_cast<int64_t>(interleave()) * lanes;
    int64_t wholeGroups = size / group * group, whole = size / lanes * lanes;
    loop(0, wholeGroups, group, [&](Value at) {
      SmallVector<Point> points = pointsAlong(*this, outer, at, lanes, interleave());
      emitPoints(points);
    });
    if (whole < size && whole - wholeGroups == lanes && interleave() > 1) {
      // One vector and a part of one: side by side, neither waits for the other.
      SmallVector<Point> points = pointsAlong(*this, outer, index(wholeGroups), lanes, 2);
      points[1].mask = tailMask(lanes, size - whole);
      return emitPoints(points);
    }
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
  // Blocks of `height` <= lanes points along the axis that is read across, from `outer`, by vectors: all of them, or,
  // where these are cut, whole vectors from one place to another, or the rest.
  Value from, to;
  auto blocks = [&](ArrayRef<ir::Coordinate> outer, int64_t height, int64_t size) {
    auto block = [&](Value first, int64_t width) {
      bool isWhole = axes[across->axis].size <= lanes; // else each column asks by itself
      if (isWhole)
        for (auto [value, elements] : ahead)
          askAhead(value, elements, outer, first, width);
      // Rows from `from` on, in groups; what is read across them is `row` of it.
      auto emitRows = [&](Value from, int64_t rows, llvm::function_ref<Value(size_t value, int64_t row)> row) {
        SmallVector<Point> points(rows);
        for (int64_t u = 0; u < rows; ++u) {
          points[u] = pointsAlong(*this, outer, first, lanes, 1)[0];
          Value &base = points[u].at[across->axis].base;
          base = add(base, add(from, index(u)));
          points[u].mask = tailMask(lanes, width);
          for (auto [v, value] : llvm::enumerate(across->values))
            points[u].values[value] = asElements(row(v, u), value);
        }
        emitPoints(points);
      };
      // `count` rows from `from` on; `rows` are read.
      auto someRows = [&](Value from, int64_t rows, int64_t count) {
        SmallVector<SmallVector<Value>> read;
        for (Value value : across->values) {
          int64_t ofColumns = isWhole ? 0 : ahead.lookup(value);
          read.push_back(readTransposed(value, *across, ofColumns != 0 ? ofColumns : elementsAhead(value, *across, cut),
                                        outer, first, from, lanes, rows, count, width));
        }
        int64_t group = std::min<int64_t>(interleave(), count);
        if (opsOfPoint() * count <= kMaxOpsOfBlock) {
          for (int64_t row = 0; row < count; row += group)
            emitRows(add(from, index(row)), std::min<int64_t>(group, count - row),
                     [&](size_t v, int64_t u) { return read[v][row + u]; });
          return;
        }
        // Much that is computed is written once and not for each row: what was read goes to the stack.
        while (count % group != 0)
          --group;
        SmallVector<Value> onStack;
        for (ArrayRef<Value> rows : read)
          onStack.push_back(putOnStack(rows.take_front(count)));
        loop(0, count, group, [&](Value row) {
          emitRows(add(from, row), group, [&](size_t v, int64_t u) {
            auto type = cast<VectorType>(read[v].front().getType());
            Value at = elementAfter(onStack[v], mul(add(row, index(u)), lanes), type.getElementType());
            return LLVM::LoadOp::create(b, loc, type, at, alignmentOf(type.getElementType()));
          });
        });
      };
      int64_t rows = across->rowsAtOnce, whole = height / rows * rows;
      loop(0, whole, rows, [&](Value from) { someRows(from, rows, rows); });
      if (whole < height)
        someRows(index(whole), rows, height - whole);
    };
    int64_t whole = size / lanes * lanes;
    if (from)
      return loop(from, to, lanes, [&](Value at) { block(at, lanes); });
    if (cut.points == size)
      loop(0, whole, lanes, [&](Value at) { block(at, lanes); });
    if (size % lanes)
      block(index(whole), size % lanes);
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
  int64_t height = lanes; // of the blocks that are written
  bool wasCut = false, inStrips = false;
  Value firstOfStrip, endOfStrip;
  std::function<void(size_t)> nest = [&](size_t d) {
    if (d + 1 == axes.size())
      return across ? blocks(outer, height, axes[d].size) : inner(outer, axes[d].size);
    if (strips && strips->outside == d && !inStrips) {
      int64_t size = axes[strips->axis].size;
      inStrips = true;
      loop(0, size, strips->places, [&](Value first) {
        firstOfStrip = first;
        endOfStrip = arith::MinSIOp::create(b, loc, add(first, index(strips->places)), index(size));
        nest(d);
      });
      inStrips = false;
      return;
    }
    if (across && cut.axis == d && cut.points < axes.back().size && !wasCut) {
      int64_t size = axes.back().size, whole = size / lanes * lanes;
      wasCut = true;
      loop(0, whole, cut.points, [&](Value first) {
        from = first;
        to = arith::MinSIOp::create(b, loc, add(first, index(cut.points)), index(whole));
        nest(d);
      });
      from = to = {};
      if (size % lanes)
        nest(d);
      wasCut = false;
      return;
    }
    if (across && across->axis == d) {
      int64_t size = axes[d].size, whole = size / lanes, rest = size % lanes;
      auto block = [&](Value number, int64_t points) {
        outer.push_back({mul(number, lanes), 0});
        height = points;
        nest(d + 1);
        outer.pop_back();
      };
      if (d == 0)
        loop(begin, arith::MinSIOp::create(b, loc, end, index(whole)), 1, [&](Value at) { block(at, lanes); });
      else
        loop(0, whole, 1, [&](Value at) { block(at, lanes); });
      if (rest && d == 0)
        onLastChunk(end, whole, [&] { block(index(whole), rest); });
      else if (rest)
        block(index(whole), rest);
      return;
    }
    auto body = [&](Value at) {
      outer.push_back({at, 0});
      nest(d + 1);
      outer.pop_back();
    };
    if (strips && strips->axis == d)
      loop(firstOfStrip, endOfStrip, 1, body);
    else if (d == 0)
      loop(begin, end, 1, body);
    else
      loop(0, axes[d].size, 1, body);
  };
  nest(0);
  return success();
}

} // namespace wg::codegen
