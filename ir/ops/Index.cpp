// Places as data: one_hot, gather, scatter_add, index_add, first_occurrence; and what Structured ops share: loop nests,
// and checked indices.
#include "ir/Build.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace wg::ir {

//===- Loops and places -------------------------------------------------------------------------------------===//

static SmallVector<Value>
nest(OpBuilder &b, Location loc, ArrayRef<int64_t> shape, SmallVectorImpl<Value> &at, ValueRange carried,
     function_ref<SmallVector<Value>(OpBuilder &, Location, ArrayRef<Value> at, ValueRange)> body) {
  if (at.size() == shape.size())
    return body(b, loc, at, carried);
  Value first = arith::ConstantIndexOp::create(b, loc, 0), step = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = arith::ConstantIndexOp::create(b, loc, shape[at.size()]);
  auto loop = scf::ForOp::create(b, loc, first, end, step, carried,
                                 [&](OpBuilder &b, Location loc, Value i, ValueRange inside) {
                                   at.push_back(i);
                                   scf::YieldOp::create(b, loc, nest(b, loc, shape, at, inside, body));
                                   at.pop_back();
                                 });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> fold(OpBuilder &b, Location loc, ArrayRef<int64_t> shape, ValueRange first,
                        function_ref<SmallVector<Value>(OpBuilder &, Location, ArrayRef<Value>, ValueRange)> body) {
  SmallVector<Value> at;
  return nest(b, loc, shape, at, first, body);
}

void forEach(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
             function_ref<void(OpBuilder &, Location, ArrayRef<Value> at)> body) {
  fold(b, loc, shape, {}, [&](OpBuilder &b, Location loc, ArrayRef<Value> at, ValueRange) {
    body(b, loc, at);
    return SmallVector<Value>();
  });
}

Value placeOf(OpBuilder &b, Location loc, const Coordinate &at, int64_t lanes) {
  if (lanes == 0 || isa<VectorType>(at.base.getType()))
    return at.base;
  auto type = VectorType::get({lanes}, b.getIndexType());
  Value base = vector::BroadcastOp::create(b, loc, type, at.base);
  if (at.laneStride == 0)
    return base;
  Value offset = vector::StepOp::create(b, loc, type);
  if (at.laneStride != 1)
    offset = arith::MulIOp::create(b, loc, offset, constant(b, loc, type, static_cast<double>(at.laneStride)));
  return arith::AddIOp::create(b, loc, base, offset);
}

Value linearPlace(OpBuilder &b, Location loc, ArrayRef<int64_t> shape, ArrayRef<Coordinate> at, int64_t lanes) {
  Type type = b.getIndexType();
  if (lanes > 0)
    type = VectorType::get({lanes}, type);
  Value place = constant(b, loc, type, 0.0);
  for (auto [size, coordinate] : llvm::zip_equal(shape, at)) {
    place = arith::MulIOp::create(b, loc, place, constant(b, loc, type, static_cast<double>(size)));
    place = arith::AddIOp::create(b, loc, place, placeOf(b, loc, coordinate, lanes));
  }
  return place;
}

SmallVector<Value> join(ArrayRef<Value> first, ArrayRef<Value> rest) {
  SmallVector<Value> all(first);
  all.append(rest.begin(), rest.end());
  return all;
}

//===- one_hot ----------------------------------------------------------------------------------------------===//

Value OneHotOp::element(OpBuilder &b, Location loc, ArrayRef<Coordinate> at, int64_t lanes, ReadElement read) {
  Value index = read(0, at.drop_back());
  Value j = arith::IndexCastOp::create(b, loc, index.getType(), placeOf(b, loc, at.back(), lanes));
  Type type = withLanes(signless(getType().getElementType()), index.getType());
  Value hit = compare(b, loc, Order::equal, index, j);
  return arith::SelectOp::create(b, loc, hit, constant(b, loc, type, 1.0), constant(b, loc, type, 0.0));
}

/// In runs along the last axis.
static void copyAll(OpBuilder &b, Location loc, const ElementAccess &memory, unsigned operand,
                    ArrayRef<int64_t> shape) {
  if (shape.empty())
    return memory.store(b, loc, {}, memory.load(b, loc, operand, {}));
  forEach(b, loc, shape.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> row) {
    SmallVector<Value> at = join(row, {arith::ConstantIndexOp::create(b, loc, 0)});
    memory.copyRun(b, loc, operand, at, at, shape.back());
  });
}

void copyUnlessInPlace(OpBuilder &b, Location loc, const ElementAccess &memory, unsigned operand,
                       ArrayRef<int64_t> shape) {
  Value elsewhere = arith::XOrIOp::create(b, loc, memory.isInPlace(b, loc, operand),
                                          arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
  scf::IfOp::create(b, loc, elsewhere, [&](OpBuilder &b, Location loc) {
    copyAll(b, loc, memory, operand, shape);
    scf::YieldOp::create(b, loc);
  });
}

//===- gather and scatter_add -------------------------------------------------------------------------------===//

Value indexAt(OpBuilder &b, Location loc, const ElementAccess &memory, unsigned operand, ArrayRef<Value> at) {
  Value index = memory.load(b, loc, operand, at);
  return index.getType().isInteger(64) ? index : arith::ExtSIOp::create(b, loc, b.getI64Type(), index).getResult();
}

void whereIndicesFit(StringRef op, OpBuilder &b, Location loc, const ElementAccess &memory, IndexBound range,
                     ArrayRef<int64_t> shape, function_ref<void(OpBuilder &)> body) {
  if (memory.isChecked)
    return body(b);
  int64_t size = range.size;
  Value no = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 0),
        none = arith::ConstantIntOp::create(b, loc, b.getI64Type(), 0),
        one = arith::ConstantIntOp::create(b, loc, b.getI64Type(), 1);
  Value bound = arith::ConstantIntOp::create(b, loc, b.getI64Type(), size);
  SmallVector<Value> found =
      fold(b, loc, shape, ValueRange{no, none, none},
           [&](OpBuilder &b, Location loc, ArrayRef<Value> at, ValueRange carried) {
             Value index = indexAt(b, loc, memory, range.operand, at);
             // Unsigned: a negative index is a large one. Index and position stay once there is an offender.
             Value outside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, index, bound);
             Value broken = arith::OrIOp::create(b, loc, carried[0], outside);
             Value next = arith::AddIOp::create(b, loc, carried[2], one);
             return SmallVector<Value>{broken, arith::SelectOp::create(b, loc, carried[0], carried[1], index),
                                       arith::SelectOp::create(b, loc, broken, carried[2], next)};
           });
  memory.fail(b, loc, found[0], ValueRange(found).drop_front(),
              (op + ": index {} at position {} is out of range for an axis of size " + Twine(size)).str());
  Value fits = arith::XOrIOp::create(b, loc, found[0], arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
  scf::IfOp::create(b, loc, fits, [&](OpBuilder &b, Location loc) {
    body(b);
    scf::YieldOp::create(b, loc);
  });
}

/// In runs along the last axis, where an index is for more than one element.
void GatherOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> x = getX().getType().getShape(), indices = getIndices().getType().getShape();
  size_t batch = getBatchDims();
  ArrayRef<int64_t> of = x.drop_front(batch + 1);
  whereIndicesFit("gather", b, loc, memory, *indexBound(), indices, [&](OpBuilder &b) {
    forEach(b, loc, indices, [&](OpBuilder &b, Location loc, ArrayRef<Value> i) {
      Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(), indexAt(b, loc, memory, 1, i));
      SmallVector<Value> from = join(i.take_front(batch), {row});
      if (of.empty())
        return memory.store(b, loc, i, memory.load(b, loc, 0, from));
      forEach(b, loc, of.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> j) {
        SmallVector<Value> start = join(j, {arith::ConstantIndexOp::create(b, loc, 0)});
        memory.copyRun(b, loc, 0, join(from, start), join(i, start), of.back());
      });
    });
  });
}

std::optional<IndexBound> GatherOp::indexBound() { return IndexBound{1, getX().getType().getDimSize(getBatchDims())}; }

/// y[indices[i], j] += updates[i, j], for operands `updates` and `indices`, in runs along the last axis.
static void addRows(OpBuilder &b, Location loc, const ElementAccess &memory, ArrayRef<int64_t> y,
                    ArrayRef<int64_t> shapeOfIndices, size_t batch, unsigned updates, unsigned indices) {
  ArrayRef<int64_t> of = y.drop_front(batch + 1);
  forEach(b, loc, shapeOfIndices, [&](OpBuilder &b, Location loc, ArrayRef<Value> i) {
    Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(), indexAt(b, loc, memory, indices, i));
    SmallVector<Value> to = join(i.take_front(batch), {row});
    if (!of.empty())
      return forEach(b, loc, of.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> j) {
        SmallVector<Value> start = join(j, {arith::ConstantIndexOp::create(b, loc, 0)});
        memory.addRun(b, loc, updates, join(i, start), join(to, start), of.back());
      });
    Value update = memory.load(b, loc, updates, i), sum = memory.reload(b, loc, to);
    sum = isFloat(sum) ? arith::AddFOp::create(b, loc, sum, update).getResult()
                       : arith::AddIOp::create(b, loc, sum, update).getResult();
    memory.store(b, loc, to, sum);
  });
}

void ScatterAddOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> y = getType().getShape(), indices = getIndices().getType().getShape();
  whereIndicesFit("scatter_add", b, loc, memory, *indexBound(), indices, [&](OpBuilder &b) {
    forEach(b, loc, y.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> at) {
      memory.clearRun(b, loc, join(at, {arith::ConstantIndexOp::create(b, loc, 0)}), y.back());
    });
    addRows(b, loc, memory, y, indices, getBatchDims(), 0, 1);
  });
}

std::optional<IndexBound> ScatterAddOp::indexBound() { return IndexBound{1, getType().getDimSize(getBatchDims())}; }

void IndexAddOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> y = getType().getShape(), indices = getIndices().getType().getShape();
  whereIndicesFit("index_add", b, loc, memory, *indexBound(), indices, [&](OpBuilder &b) {
    copyUnlessInPlace(b, loc, memory, 0, y);
    addRows(b, loc, memory, y, indices, getBatchDims(), 1, 2);
  });
}

std::optional<IndexBound> IndexAddOp::indexBound() { return IndexBound{2, getType().getDimSize(getBatchDims())}; }
int64_t IndexAddOp::overwritten() { return 0; }

//===- first_occurrence -------------------------------------------------------------------------------------===//

/// A table of places, by open addressing: a power of two, at least half of it free.
int64_t FirstOccurrenceOp::scratchElements() {
  return static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(2 * getType().getShape().back() + 2)));
}

void FirstOccurrenceOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> shape = getType().getShape();
  int64_t size = scratchElements();
  forEach(b, loc, shape.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> at) {
    auto number = [&](OpBuilder &b, int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, loc, b.getI64Type(), value);
    };
    auto read = [&](OpBuilder &b, Value place) {
      Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), place);
      return indexAt(b, loc, memory, 0, join(at, {index}));
    };
    auto slot = [&](OpBuilder &b, Value h) -> Value { return arith::IndexCastOp::create(b, loc, b.getIndexType(), h); };
    forEach(b, loc, size,
            [&](OpBuilder &b, Location loc, ArrayRef<Value> h) { memory.storeScratch(b, loc, h[0], number(b, -1)); });
    forEach(b, loc, shape.back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> i) {
      Value own = arith::IndexCastOp::create(b, loc, b.getI64Type(), i[0]), x = read(b, own);
      // Fibonacci hashing (Knuth, volume 3, section 6.4), and the next free or equal place from there.
      Value hash = arith::MulIOp::create(b, loc, x, number(b, static_cast<int64_t>(0x9e3779b97f4a7c15u)));
      hash = arith::ShRUIOp::create(b, loc, hash,
                                    number(b, 64 - static_cast<int64_t>(llvm::Log2_64(static_cast<uint64_t>(size)))));
      auto probe = scf::WhileOp::create(
          b, loc, TypeRange{b.getI64Type()}, ValueRange{hash},
          [&](OpBuilder &b, Location loc, ValueRange h) {
            Value known = memory.loadScratch(b, loc, slot(b, h[0]));
            Value taken = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, known, number(b, 0));
            Value other = read(b, arith::MaxSIOp::create(b, loc, known, number(b, 0)));
            Value differs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, other, x);
            scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, taken, differs), h);
          },
          [&](OpBuilder &b, Location loc, ValueRange h) {
            Value next = arith::AddIOp::create(b, loc, h[0], number(b, 1));
            scf::YieldOp::create(b, loc, ValueRange{arith::AndIOp::create(b, loc, next, number(b, size - 1))});
          });
      Value place = slot(b, probe.getResult(0)), known = memory.loadScratch(b, loc, place);
      Value isNew = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, known, number(b, 0));
      Value first = arith::SelectOp::create(b, loc, isNew, own, known);
      memory.storeScratch(b, loc, place, first);
      memory.store(b, loc, join(at, {i[0]}), first);
    });
  });
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// y[i, j] = x[indices[i], j], so dx gathers up: dx[k, j] = sum of ct[i, j] over the i with indices[i] = k.
Terms GatherOp::transpose(Expr ct) {
  return ct.make<ScatterAddOp>(ct, getIndices(), getX().getType().getShape(), getBatchDims(), ct.dynamicSizes(getX()));
}

/// y[k, j] = sum of updates[i, j] over the i with indices[i] = k, so dupdates[i, j] = ct[indices[i], j].
Terms ScatterAddOp::transpose(Expr ct) { return ct.make<GatherOp>(ct, getIndices(), getBatchDims()); }

/// y = x but for what is added at indices, so dx = ct and dupdates[i, j] = ct[indices[i], j].
Terms IndexAddOp::transpose(Expr ct) { return {ct, ct.make<GatherOp>(ct, getIndices(), getBatchDims())}; }

//===- Batches ----------------------------------------------------------------------------------------------===//

FailureOr<Expr> OneHotOp::batch(const Lanes &x) { return x[0].make<OneHotOp>(x[0], getDepth(), getDtype()); }

/// Lanes are one more batch axis: each gathers of its own rows. Where only the indices differ, all gather of the same.
FailureOr<Expr> GatherOp::batch(const Lanes &x) {
  if (!x.isBatched(0) && getBatchDims() == 0)
    return x[0].make<GatherOp>(x[0], x[1], 0);
  FailureOr<Expr> rows = x.spread(0), indices = x.spread(1);
  if (failed(rows) || failed(indices))
    return failure();
  return x[0].make<GatherOp>(*rows, *indices, getBatchDims() + 1);
}

FailureOr<Expr> ScatterAddOp::batch(const Lanes &x) {
  FailureOr<Expr> updates = x.spread(0), indices = x.spread(1);
  if (failed(updates) || failed(indices))
    return failure();
  return updates->scattered(*indices, x.withCount(getShape(), getSizes()), getBatchDims() + 1);
}

FailureOr<Expr> IndexAddOp::batch(const Lanes &x) {
  FailureOr<Expr> to = x.spread(0), updates = x.spread(1), indices = x.spread(2);
  if (failed(to) || failed(updates) || failed(indices))
    return failure();
  return to->make<IndexAddOp>(*to, *updates, *indices, getBatchDims() + 1);
}

FailureOr<Expr> FirstOccurrenceOp::batch(const Lanes &x) { return x[0].make<FirstOccurrenceOp>(x[0]); }

} // namespace wg::ir
