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
#include "codegen/emit/KernelEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace wg::codegen {

namespace {

constexpr int64_t kBlock = 256;
constexpr int kRegisterRow = 4; ///< a row of at most so many vectors stays in registers, two more where there are 32
constexpr int kSideBySide = 4;  ///< additions that are under way at least

class ReduceEmitter {
public:
  ReduceEmitter(KernelEmitter &e) : e(e), b(e.b), loc(e.loc), phases(e.kernel, e.places) {
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

  LogicalResult emit(Value begin, Value end) {
    at.assign(e.axes.size(), {});
    if (isDegenerate())
      return emitDegenerate();
    nestKept(0, begin, end);
    return success();
  }

  /// Threads share the outermost kept axis; where it is the only one, groups of its places.
  int64_t numChunks() {
    if (isDegenerate() || keptAxes.empty())
      return 1;
    int64_t size = e.axes[keptAxes.front()].size;
    return std::max<int64_t>(1, keptAxes.size() > 1 ? size : llvm::divideCeil(size, placesAtOnce()));
  }
  /// Of one piece: accumulators that are not in registers.
  int64_t scratchBytes() {
    int64_t bytes = 0;
    if (!isDegenerate() && columns)
      for (Operation *op : reductions)
        bytes += columnsOfRun() * bytesOf(op) * (blocksOfRun() ? 2 : 1);
    return bytes;
  }

private:
  /// Whether rows are so short, and lie so close, that lanes are rows side by side and not elements of one: a vector of
  /// them is as many loads and shuffles as a row is long, for each of its elements. (Dot products of rows of 2, 3 and 6
  /// numbers: 1.3, 1.3 and 1.4 ns a row along these, 0.2, 0.4 and 1.2 so; largest numbers of rows of 8: 1.5 and 1.0.)
  bool areRowsTiny() {
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

  bool isDegenerate() { return reducedAxes.empty() || e.axes[reducedAxes.back()].size == 0; }
  /// All reduced axes have size 1 (they fell away) or one has size 0: no loop over them.
  LogicalResult emitDegenerate() {
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

  Space space(unsigned output) { return e.places.of(e.kernel.getYield().getValues()[output]); }

  void nestKept(size_t k, Value begin, Value end) {
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

  /// Places of the innermost kept axis that are gone through at once: columns of a run, or a group of rows or of vectors
  /// of them, side by side.
  int64_t placesAtOnce() {
    int64_t run = columns ? columnsOfRun() : 0;
    return run != 0 ? run : columns ? groupOfColumns() : groupOfRows();
  }

  /// All places of the innermost kept axis, so many at once, and what is left over; or those that threads share.
  void inGroups(bool shared, Value begin, Value end) {
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

  Value neutral(Operation *op, int count) {
    Type element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
    TypedAttr attribute = cast<ir::Reduction>(op).neutral(element);
    if (element.isInteger(8))
      attribute = b.getIntegerAttr(b.getI8Type(), cast<IntegerAttr>(attribute).getValue());
    return e.splat(arith::ConstantOp::create(b, loc, attribute), count);
  }
  Value combine(Operation *op, Value x, Value y) {
    Value result = cast<ir::Reduction>(op).combine(b, loc, x, y);
    e.mayContract(result);
    return result;
  }

  /// Combines the lanes of a vector pairwise: log2(lanes) shuffles.
  Value combineLanes(Operation *op, Value vector) {
    auto type = dyn_cast<VectorType>(vector.getType());
    if (!type)
      return vector;
    Operation *step = combine(op, vector, vector).getDefiningOp();
    bool greatest = isa<arith::MaximumFOp>(step), least = isa<arith::MinimumFOp>(step);
    step->erase();
    if (greatest)
      return extremeOfLanes<arith::MaxSIOp>(vector, APFloat::getQNaN(semanticsOf(type)));
    if (least)
      return extremeOfLanes<arith::MinSIOp>(vector, APFloat::getQNaN(semanticsOf(type), /*Negative=*/true));
    return pairwise(vector, [&](Value x, Value y) { return combine(op, x, y); });
  }
  /// Halves of a vector, down to a register's 128 bits; then its own lanes, as LLVM has to make shorter vectors longer
  /// again.
  Value pairwise(Value vector, llvm::function_ref<Value(Value, Value)> both) {
    auto type = cast<VectorType>(vector.getType());
    int64_t narrowest = 128 / type.getElementTypeBitWidth();
    for (int64_t width = type.getNumElements(), half = width / 2; half > 0; half /= 2) {
      bool shrinks = half >= narrowest;
      SmallVector<int64_t> upper = llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
      if (shrinks)
        width = half;
      else
        upper.resize(static_cast<size_t>(width), vector::ShuffleOp::kPoisonIndex);
      Value high = vector::ShuffleOp::create(b, loc, vector, vector, upper);
      Value low = vector;
      if (shrinks)
        low = vector::ShuffleOp::create(b, loc, vector, vector, llvm::to_vector(llvm::seq<int64_t>(0, half)));
      vector = both(low, high);
    }
    return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0});
  }

  static const llvm::fltSemantics &semanticsOf(VectorType type) {
    return cast<FloatType>(type.getElementType()).getFloatSemantics();
  }
  /// The greatest or least number among lanes: that of their patterns as integers, where those below 0 are turned over,
  /// which is the numbers' order, of zeros too. A NaN is made the one at the end of it. (A maximum of numbers is six
  /// instructions, and of integers one.)
  template <class Extreme> Value extremeOfLanes(Value vector, const APFloat &nan) {
    auto type = cast<VectorType>(vector.getType());
    unsigned bits = type.getElementTypeBitWidth();
    Type integer = b.getIntegerType(bits);
    auto number = [&](const APInt &value, Type like) -> Value {
      TypedAttr attribute = b.getIntegerAttr(integer, value);
      if (auto lanes = dyn_cast<VectorType>(like))
        attribute = DenseElementsAttr::get(lanes, attribute);
      return arith::ConstantOp::create(b, loc, attribute);
    };
    auto turned = [&](Value x) -> Value {
      Value sign = arith::ShRSIOp::create(b, loc, x, number(APInt(bits, bits - 1), x.getType()));
      Value below = arith::AndIOp::create(b, loc, sign, number(APInt::getSignedMaxValue(bits), x.getType()));
      return arith::XOrIOp::create(b, loc, x, below);
    };
    auto nans = DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), nan));
    Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, vector, vector);
    vector = arith::SelectOp::create(b, loc, isNan, arith::ConstantOp::create(b, loc, nans), vector);
    Value patterns = arith::BitcastOp::create(b, loc, VectorType::get(type.getShape(), integer), vector);
    Value found = pairwise(turned(patterns), [&](Value x, Value y) -> Value { return Extreme::create(b, loc, x, y); });
    return arith::BitcastOp::create(b, loc, type.getElementType(), turned(found));
  }

  SmallVector<Operation *> reductionsOf(int phase) {
    SmallVector<Operation *> result;
    for (Operation *op : reductions)
      if (phases.of.lookup(op->getOperand(0)) == phase)
        result.push_back(op);
    return result;
  }
  SmallVector<unsigned> fullOutputsOf(int phase) {
    SmallVector<unsigned> result;
    for (auto [i, value] : llvm::enumerate(e.kernel.getYield().getValues()))
      if (e.places.of(value) == Space::full && phases.of.lookup(value) == phase)
        result.push_back(i);
    return result;
  }

  /// f of each point, with what is known of it.
  void eachOf(ArrayRef<Point> points, MutableArrayRef<DenseMap<Value, Value>> known,
              llvm::function_ref<void(const Point &)> f) {
    for (auto [point, ofPoint] : llvm::zip_equal(points, known)) {
      std::swap(e.known, ofPoint);
      f(point);
      std::swap(e.known, ofPoint);
    }
  }

  /// Rows, or vectors of rows, that lie side by side: all phases, then the row outputs. What is known of a row is kept
  /// for each.
  void rows(ArrayRef<Point> points) {
    auto saved = e.known;
    at = points[0].at;
    std::vector<DenseMap<Value, Value>> known(points.size(), saved);
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

  void storeRow(const Point &rowPoint) {
    Point point(rowPoint.at, rowPoint.lanes, rowPoint.mask);
    for (unsigned i = 0; i < e.outputs.size(); ++i)
      if (space(i) != Space::full)
        e.store(point, i);
  }

  /// Elementwise ops on rows, once per row as soon as what they read is known.
  void computeRowValues(int phase, const Point &rowPoint) {
    Point point(rowPoint.at, rowPoint.lanes, rowPoint.mask);
    for (Operation &op : e.kernel.getBlock()->without_terminator())
      if (isa<ir::Scalar>(op) && e.places.of(op.getResult(0)) == Space::row &&
          phases.of.lookup(op.getResult(0)) == phase)
        e.known[op.getResult(0)] = e.eval(point, op.getResult(0));
  }

  bool inRegisters() {
    int64_t most = e.target.numVectorRegisters == 32 ? kRegisterRow + 2 : kRegisterRow;
    return reducedAxes.size() == 1 && e.axes[reducedAxes[0]].size <= most * lanes;
  }

  /// The whole row as a few vectors that persist from phase to phase; then the row outputs.
  void registerRow(const Point &rowPoint) {
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
  Value masked(Point &point, Operation *op, Value x) {
    return point.mask ? Value(arith::SelectOp::create(b, loc, point.mask, x, neutral(op, point.lanes))) : x;
  }

  /// Loops over all reduced axes but the innermost, which `inner` handles; carries the accumulators.
  SmallVector<Value> nestReduced(size_t k, ValueRange carried,
                                 llvm::function_ref<SmallVector<Value>(ValueRange)> inner) {
    if (k + 1 >= reducedAxes.size())
      return inner(carried);
    unsigned d = reducedAxes[k];
    return e.loop(0, e.axes[d].size, 1, carried, [&](Value i, ValueRange values) {
      at[d] = {i, 0};
      return nestReduced(k + 1, values, inner);
    });
  }

  /// What one phase computes: its reductions with `u` accumulators each, and the full outputs that it can store.
  struct Phase {
    SmallVector<Operation *> ops;
    SmallVector<unsigned> outputs;
    int u, lanes; ///< of the accumulators
  };
  using Step = llvm::function_ref<SmallVector<Value>(Value first, int count, Value mask, SmallVector<Value> acc)>;

  SmallVector<Value> fresh(const Phase &phase) {
    SmallVector<Value> acc;
    for (Operation *op : phase.ops)
      acc.append(phase.u, neutral(op, phase.lanes));
    return acc;
  }
  SmallVector<Value> merge(const Phase &phase, ValueRange total, ValueRange part) {
    SmallVector<Value> sum;
    for (auto [o, op] : llvm::enumerate(phase.ops))
      for (int i = 0; i < phase.u; ++i)
        sum.push_back(combine(op, total[o * phase.u + i], part[o * phase.u + i]));
    return sum;
  }

  /// Evaluates the points, adds them to the accumulators, stores the outputs.
  SmallVector<Value> addPoints(const Phase &phase, MutableArrayRef<Point> points, SmallVector<Value> acc) {
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
  /// Lanes out of range do not count, where lanes are elements of one row.
  Value reduced(Point &point, Operation *op, Value x) { return columns ? x : masked(point, op, x); }

  /// Steps of `group` over [0, whole) of the innermost reduced axis, within blocks, inside of loops over the other
  /// reduced axes; then `rest` of that axis.
  SmallVector<Value> walk(const Phase &phase, int64_t whole, int64_t group, Step step,
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
  Point pointOf(const Point &rowPoint, int lanes, Value mask) {
    Point point(at, lanes, mask);
    if (!keptAxes.empty())
      point.at[keptAxes.back()] = rowPoint.at[keptAxes.back()];
    return point;
  }

  /// Innermost axis reduced: vectors along it, of rows side by side.
  void walkRows(int number, ArrayRef<Point> rowPoints, MutableArrayRef<DenseMap<Value, Value>> known) {
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

  /// Asks for what the next `side` rows read where these do, from `first` on, of tensors beyond the nearest caches:
  /// processors do not follow short runs from one to the next. Longer ones they find.
  void askForNextGroup(const Point &rowPoint, int64_t side, Value first) {
    constexpr int64_t kLine = 64, kShort = 2 * kLine, kCached = int64_t(1) << 20; // bytes
    unsigned kept = keptAxes.back(), d = reducedAxes.back();
    e.eachRead([&](Value, const KernelEmitter::Access &access) {
      auto type = cast<RankedTensorType>(access.root.getType());
      int64_t bytes = alignmentOf(type.getElementType()), step = access.strides[kept];
      if (step <= 0 || step * bytes > kShort || access.strides[d] != 1 || type.getNumElements() * bytes <= kCached)
        return;
      Point point = pointOf(rowPoint, 0, {});
      point.at[d] = {first, 0};
      for (int64_t at = 0; at < side * step; at += std::max(step, kLine / bytes))
        e.prefetch(point, e.pointerOf.lookup(access.root), type.getElementType(), access.strides,
                   access.offset + side * step + at);
    });
  }

  /// Of one row.
  int64_t vectorsAtOnce() {
    return std::min<int64_t>(e.interleave(), std::max<int64_t>(1, e.axes[reducedAxes.back()].size / lanes));
  }

  /// Rows to walk side by side, whose elements are one way along the reduced axes after the other. Where one of these
  /// lies around the rows, a row's own elements are short runs far apart. (Sums over the second and the last axis of
  /// [40, 204, 145, 13]: 7 GB/s one by one, 14 by eights, 40 where these ask ahead.)
  int64_t groupOfRows() {
    if (columns || isDegenerate() || keptAxes.empty() || reducedAxes.size() < 2 ||
        reducedAxes[reducedAxes.size() - 2] > keptAxes.back())
      return 1;
    int64_t size = e.axes[reducedAxes.back()].size, vectors = llvm::divideCeil(size, lanes);
    return std::clamp<int64_t>(e.axes[keptAxes.back()].size, 1, std::max<int64_t>(1, vectorsSideBySide() / vectors));
  }

  int64_t vectorsSideBySide() { return e.opsOfPoint() <= 4 ? e.target.numVectorRegisters / 4 : e.interleave(); }

  /// Vectors of rows to walk side by side, where there are so many. A step along the reduced axis is one far away in
  /// memory: what is read there is to be whole lines, several at once. (Sums over the first axis of [8192, 512]: 15
  /// GB/s by single vectors, 57 by eights.) Fewer are one group: a rest would read what lies beside it once more.
  int64_t groupOfColumns() {
    int64_t vectors = llvm::divideCeil(e.axes[keptAxes.back()].size, lanes);
    return std::clamp<int64_t>(vectors, 1, vectorsSideBySide()) * lanes;
  }

  static int64_t bytesOf(Operation *op) {
    return std::max(1u, getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth() / 8);
  }

  /// Columns whose accumulators are in memory at a time; 0 where they are in registers: where what they step through is
  /// in a cache close by, or too few rows to pay for the accumulators' ways, or values of a row are known before it is
  /// walked, which registers would hold. By the shape alone, as is the order in which terms are added.
  int64_t columnsOfRun() {
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
  int64_t rowsAtOnce() {
    constexpr int64_t kBytes = 12 << 10;
    int64_t bytes = 0;
    for (Operation *op : reductions)
      bytes += columnsOfRun() * bytesOf(op);
    return bytes <= kBytes ? 1 : std::clamp<int64_t>(32 / std::max<int64_t>(1, e.opsOfPoint()), 1, 8);
  }
  /// Of so many terms each; 0 where one sum takes all.
  int64_t blocksOfRun() {
    int64_t size = e.axes[reducedAxes.back()].size;
    return size > 2 * kBlock ? size / kBlock : 0;
  }

  /// The accumulators of runs, of each piece its own.
  Value roomOfRuns(Value begin) {
    if (e.chunks == 1)
      return e.scratchPointer;
    Value piece = arith::DivUIOp::create(b, loc, begin, e.index(e.chunksPerPiece()));
    return e.elementAfter(e.scratchPointer, e.mul(piece, scratchBytes()), b.getI8Type());
  }

  /// `length` columns from `first` on. The terms of each are added one after the other, in blocks as in walk().
  void walkRun(Value room, Value first, int64_t length) {
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
      std::vector<DenseMap<Value, Value>> known(points.size(), saved);
      for (auto [o, op] : llvm::enumerate(phase.ops))
        for (size_t i = 0; i < points.size(); ++i)
          known[i][op->getResult(0)] = sums[o * points.size() + i];
      eachOf(points, known, [&](const Point &point) { computeRowValues(1, point); });
      eachOf(points, known, [&](const Point &point) { storeRow(point); });
      e.known = saved;
    });
  }

  /// Innermost axis kept: each lane is a row; the reduced axes are walked one element at a time. At least four sums are
  /// under way, of neighbours or of one vector of rows, so that additions do not wait for each other.
  void walkColumns(int number, ArrayRef<Point> rowPoints, MutableArrayRef<DenseMap<Value, Value>> known) {
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

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  ir::Phases phases;
  SmallVector<Operation *> reductions;
  SmallVector<unsigned> reducedAxes, keptAxes;
  SmallVector<ir::Coordinate> at;
  bool columns = false;
  int lanes = 0;
};

} // namespace

void KernelEmitter::planReduce() {
  ReduceEmitter reduce(*this);
  chunks = reduce.numChunks();
  scratch = reduce.scratchBytes() * numPieces();
}

LogicalResult KernelEmitter::emitReduce(Value begin, Value end) { return ReduceEmitter(*this).emit(begin, end); }

} // namespace wg::codegen
