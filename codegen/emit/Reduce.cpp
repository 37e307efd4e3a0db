// Reduce kernels: reductions over one set of axes, with what feeds them and what follows from them.
//
// For each row (the kept axes) the reduced axes are walked in *phases*: phase q reads what the reductions of the
// phases before it found. y = softmax(x) has three: max; sum of exp(x - max); the quotient. Elementwise values are
// computed again in each phase that needs them, unless the row fits in registers: then it is read once.
//
//   rows    innermost axis reduced:  vectors along it, lanes combined at the end of a phase; several rows side by side
//                                    where another reduced axis lies around them
//   columns innermost axis kept:     a vector is 16 rows side by side, no lane is ever combined; so are rows of a few
//                                    elements
//
// Where what columns step through is more than a cache holds, many are walked side by side, with accumulators in memory
// close by, short rows one after another and of long ones several at a time: memory is read in one or a few long runs,
// and not some lines here and there. (Sums over the first axis, GB/s: [300, 30000] 57, by registers alone 30;
// [1000, 32768] 29 and 14.)
//
// Sums of f32 run in blocks of kBlock vectors whose partial results are added to a second accumulator, so the error
// grows with kBlock + n / kBlock and not with n.
#include "codegen/emit/ReduceEmitter.h"

using namespace mlir;

namespace wg::codegen {

/// A row of at most so many vectors stays in registers, two more where there are 32.
static constexpr int kRegisterRow = 4;

ReduceEmitter::ReduceEmitter(KernelEmitter &e) : e(e), b(e.b), loc(e.loc), phases(e.kernel, e.places) {
  for (Operation &op : e.kernel.getBlock()->without_terminator())
    if (isa<ir::Reduction>(op))
      reductions.push_back(&op);
  if (areRowsTiny()) {
    SmallVector<size_t> order = llvm::to_vector(llvm::seq(e.axes.size()));
    std::swap(order.back(), order[order.size() - 2]);
    e.putInOrder(order);
  }
  for (auto [d, axis] : llvm::enumerate(e.axes))
    (axis.reduced ? reducedAxes : keptAxes).push_back(d);
  columns = !e.axes.empty() && !e.axes.back().reduced;
  lanes = e.nativeLanes();
  e.asksForRows = groupOfRows() == 1;
}

LogicalResult ReduceEmitter::emit(Value begin, Value end) {
  at.assign(e.axes.size(), {});
  if (isDegenerate())
    return emitDegenerate();
  nestKept(0, begin, end);
  return success();
}

/// Threads share the outermost kept axis; where it is the only one, groups of its places.
int64_t ReduceEmitter::numChunks() {
  if (isDegenerate() || keptAxes.empty())
    return 1;
  int64_t size = e.axes[keptAxes.front()].size;
  return std::max<int64_t>(1, keptAxes.size() > 1 ? size : llvm::divideCeil(size, placesAtOnce()));
}

/// Of one piece: accumulators that are not in registers.
int64_t ReduceEmitter::scratchBytes() {
  int64_t bytes = 0;
  if (!isDegenerate() && columns)
    for (Operation *op : reductions)
      bytes += columnsOfRun() * bytesOf(op) * (blocksOfRun() ? 2 : 1);
  return bytes;
}

/// All reduced axes have size 1 (they fell away) or one has size 0: no loop over them.
LogicalResult ReduceEmitter::emitDegenerate() {
  bool empty = llvm::any_of(e.axes, [](const Axis &axis) { return axis.reduced && axis.size == 0; });
  for (auto [d, axis] : llvm::enumerate(e.axes))
    if (axis.reduced)
      at[d] = {e.index(0), 0};
  std::function<void(size_t)> nest = [&](size_t k) {
    if (k < keptAxes.size()) {
      e.loop(0, e.axes[keptAxes[k]].size, 1, [&](Value i) {
        at[keptAxes[k]] = {i, 0};
        nest(k + 1);
      });
      return;
    }
    Point point(at, 0, {});
    auto saved = e.known;
    for (Operation *op : reductions)
      e.known[op->getResult(0)] = empty ? neutral(op, 0) : e.eval(point, op->getOperand(0));
    // All before the first is stored: a result may take the place of an argument that another one reads.
    SmallVector<unsigned> outputs;
    for (unsigned i = 0; i < e.outputs.size(); ++i)
      if (!empty || space(i) != Space::full)
        outputs.push_back(i);
    for (unsigned i : outputs)
      e.eval(point, e.kernel.getYield().getValues()[i]);
    for (unsigned i : outputs)
      e.store(point, i);
    e.known = saved;
  };
  nest(0);
  return success();
}

void ReduceEmitter::nestKept(size_t k, Value begin, Value end) {
  bool innermost = k + 1 == keptAxes.size();
  if (k == keptAxes.size())
    return inRegisters() ? registerRow(Point(at, 0, {})) : rows(Point(at, 0, {}));
  if (innermost && (columns || groupOfRows() > 1))
    return inGroups(k == 0 && e.chunks > 1, begin, end);
  auto body = [&](Value i) {
    at[keptAxes[k]] = {i, 0};
    nestKept(k + 1, begin, end);
  };
  if (k == 0 && e.chunks > 1)
    e.loop(begin, end, 1, body);
  else
    e.loop(0, e.axes[keptAxes[k]].size, 1, body);
}

/// All places of the innermost kept axis, so many at once, and what is left over; or those that threads share.
void ReduceEmitter::inGroups(bool shared, Value begin, Value end) {
  unsigned d = keptAxes.back();
  int64_t size = e.axes[d].size, group = placesAtOnce(), whole = size / group;
  Value room = columns && columnsOfRun() != 0 ? roomOfRuns(begin) : Value();
  auto some = [&](Value first, int64_t count) {
    if (room)
      return walkRun(room, first, count);
    SmallVector<Point> points;
    for (int64_t from = 0; from < count; from += columns ? lanes : 1) {
      at[d] = {e.add(first, e.index(from)), columns ? 1 : 0};
      points.push_back(columns ? Point(at, lanes, e.tailMask(lanes, count - from)) : Point(at, 0, {}));
    }
    rows(points);
  };
  auto rest = [&] { some(e.index(whole * group), size - whole * group); };
  if (!shared) {
    e.loop(0, whole * group, group, [&](Value first) { some(first, group); });
    if (whole * group < size)
      rest();
    return;
  }
  e.loop(begin, arith::MinSIOp::create(b, loc, end, e.index(whole)), 1,
         [&](Value number) { some(e.mul(number, group), group); });
  if (whole * group < size)
    e.onLastChunk(end, whole, rest);
}

SmallVector<Operation *> ReduceEmitter::reductionsOf(int phase) {
  SmallVector<Operation *> result;
  for (Operation *op : reductions)
    if (phases.of.lookup(op->getOperand(0)) == phase)
      result.push_back(op);
  return result;
}

SmallVector<unsigned> ReduceEmitter::fullOutputsOf(int phase) {
  SmallVector<unsigned> result;
  for (auto [i, value] : llvm::enumerate(e.kernel.getYield().getValues()))
    if (e.places.of(value) == Space::full && phases.of.lookup(value) == phase)
      result.push_back(i);
  return result;
}

/// f of each point, with what is known of it.
void ReduceEmitter::eachOf(ArrayRef<Point> points, MutableArrayRef<Known> known,
                           llvm::function_ref<void(const Point &)> f) {
  for (auto [point, ofPoint] : llvm::zip_equal(points, known)) {
    std::swap(e.known, ofPoint);
    f(point);
    std::swap(e.known, ofPoint);
  }
}

/// Rows, or vectors of rows, that lie side by side: all phases, then the row outputs. What is known of a row is kept
/// for each.
void ReduceEmitter::rows(ArrayRef<Point> points) {
  auto saved = e.known;
  at = points[0].at;
  std::vector<Known> known(points.size(), saved);
  auto each = [&](llvm::function_ref<void(const Point &)> f) { eachOf(points, known, f); };
  each([&](const Point &point) { computeRowValues(0, point); });
  for (int phase = 0; phase < phases.count; ++phase) {
    if (columns)
      walkColumns(phase, points, known);
    else
      walkRows(phase, points, known);
    each([&](const Point &point) { computeRowValues(phase + 1, point); });
  }
  each([&](const Point &point) { storeRow(point); });
  e.known = saved;
}

void ReduceEmitter::storeRow(const Point &rowPoint) {
  Point point(rowPoint.at, rowPoint.lanes, rowPoint.mask);
  for (unsigned i = 0; i < e.outputs.size(); ++i)
    if (space(i) != Space::full)
      e.store(point, i);
}

/// Elementwise ops on rows, once per row as soon as what they read is known.
void ReduceEmitter::computeRowValues(int phase, const Point &rowPoint) {
  Point point(rowPoint.at, rowPoint.lanes, rowPoint.mask);
  for (Operation &op : e.kernel.getBlock()->without_terminator())
    if (isa<ir::Scalar>(op) && e.places.of(op.getResult(0)) == Space::row && phases.of.lookup(op.getResult(0)) == phase)
      e.known[op.getResult(0)] = e.eval(point, op.getResult(0));
}

bool ReduceEmitter::inRegisters() {
  int64_t most = e.target.numVectorRegisters == 32 ? kRegisterRow + 2 : kRegisterRow;
  return reducedAxes.size() == 1 && e.axes[reducedAxes[0]].size <= most * lanes;
}

/// The whole row as a few vectors that persist from phase to phase; then the row outputs.
void ReduceEmitter::registerRow(const Point &rowPoint) {
  auto saved = e.known;
  at = rowPoint.at;
  computeRowValues(0, rowPoint);
  unsigned d = reducedAxes[0];
  int64_t size = e.axes[d].size;
  SmallVector<Point> points;
  for (int64_t first = 0; first < size; first += lanes) {
    Point point(at, lanes, e.tailMask(lanes, size - first));
    point.at[d] = {e.index(first), 1};
    points.push_back(std::move(point));
  }
  for (int phase = 0; phase < phases.count; ++phase) {
    SmallVector<Operation *> ops = reductionsOf(phase);
    for (Operation *op : ops) {
      e.evalAll(points, op->getOperand(0));
      Value acc;
      for (Point &point : points) {
        Value x = masked(point, op, e.eval(point, op->getOperand(0)));
        acc = acc ? combine(op, acc, x) : x;
      }
      e.known[op->getResult(0)] = combineLanes(op, acc);
    }
    // All before the first is stored: one may take the place of an input that another reads.
    SmallVector<unsigned> outputs = fullOutputsOf(phase);
    e.evalAll(points, llvm::map_to_vector(outputs, [&](unsigned i) { return e.kernel.getYield().getValues()[i]; }));
    for (unsigned i : outputs)
      for (Point &point : points)
        e.store(point, i);
    computeRowValues(phase + 1, rowPoint);
  }
  storeRow(rowPoint);
  e.known = saved;
}

/// Lanes out of range do not count.
Value ReduceEmitter::masked(Point &point, Operation *op, Value x) {
  return point.mask ? Value(arith::SelectOp::create(b, loc, point.mask, x, neutral(op, point.lanes))) : x;
}

/// Loops over all reduced axes but the innermost, which `inner` handles; carries the accumulators.
SmallVector<Value> ReduceEmitter::nestReduced(size_t k, ValueRange carried,
                                              llvm::function_ref<SmallVector<Value>(ValueRange)> inner) {
  if (k + 1 >= reducedAxes.size())
    return inner(carried);
  unsigned d = reducedAxes[k];
  return e.loop(0, e.axes[d].size, 1, carried, [&](Value i, ValueRange values) {
    at[d] = {i, 0};
    if (k + 2 == reducedAxes.size())
      askForLaterBlock(d);
    return nestReduced(k + 1, values, inner);
  });
}

SmallVector<Value> ReduceEmitter::fresh(const Phase &phase) {
  SmallVector<Value> acc;
  for (Operation *op : phase.ops)
    acc.append(phase.u, neutral(op, phase.lanes));
  return acc;
}

SmallVector<Value> ReduceEmitter::merge(const Phase &phase, ValueRange total, ValueRange part) {
  SmallVector<Value> sum;
  for (auto [o, op] : llvm::enumerate(phase.ops))
    for (int i = 0; i < phase.u; ++i)
      sum.push_back(combine(op, total[o * phase.u + i], part[o * phase.u + i]));
  return sum;
}

/// Evaluates the points, adds them to the accumulators, stores the outputs.
SmallVector<Value> ReduceEmitter::addPoints(const Phase &phase, MutableArrayRef<Point> points, SmallVector<Value> acc) {
  SmallVector<Value> values;
  for (Operation *op : phase.ops)
    values.push_back(op->getOperand(0));
  for (unsigned i : phase.outputs)
    values.push_back(e.kernel.getYield().getValues()[i]);
  e.evalAll(points, values);
  for (auto [o, op] : llvm::enumerate(phase.ops))
    for (auto [i, point] : llvm::enumerate(points))
      acc[o * phase.u + i] = combine(op, acc[o * phase.u + i], reduced(point, op, e.eval(point, op->getOperand(0))));
  for (unsigned output : phase.outputs)
    for (Point &point : points)
      e.store(point, output);
  return acc;
}

/// Steps of `group` over [0, whole) of the innermost reduced axis, within blocks, inside of loops over the other
/// reduced axes; then `rest` of that axis.
SmallVector<Value> ReduceEmitter::walk(const Phase &phase, int64_t whole, int64_t group, Step step,
                                       llvm::function_ref<SmallVector<Value>(ValueRange)> rest) {
  auto run = [&](Value from, int64_t length, ValueRange acc) {
    return e.loop(0, length, group, acc, [&](Value i, ValueRange carried) {
      return step(e.add(from, i), phase.u, {}, llvm::to_vector(carried));
    });
  };
  return nestReduced(0, fresh(phase), [&](ValueRange carried) {
    SmallVector<Value> total = llvm::to_vector(carried);
    int64_t block = kBlock * group, blocks = whole > 2 * block ? whole / block : 0;
    total = e.loop(0, blocks, 1, total, [&](Value i, ValueRange sums) {
      return merge(phase, sums, run(e.mul(i, block), block, fresh(phase)));
    });
    SmallVector<Value> last = run(e.index(blocks * block), whole - blocks * block, blocks ? fresh(phase) : total);
    total = blocks ? merge(phase, total, last) : last;
    return rest(total);
  });
}

/// A point of the row, or vector of rows, of `rowPoint`, with the coordinates that are being walked.
Point ReduceEmitter::pointOf(const Point &rowPoint, int lanes, Value mask) {
  Point point(at, lanes, mask);
  if (!keptAxes.empty())
    point.at[keptAxes.back()] = rowPoint.at[keptAxes.back()];
  return point;
}

void KernelEmitter::planReduce() {
  ReduceEmitter reduce(*this);
  chunks = reduce.numChunks();
  scratch = reduce.scratchBytes() * numPieces();
}

LogicalResult KernelEmitter::emitReduce(Value begin, Value end) { return ReduceEmitter(*this).emit(begin, end); }

} // namespace wg::codegen
