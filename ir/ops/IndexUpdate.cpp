// Parts of a tensor replaced: index_set, index_max, index_min, dynamic_slice, dynamic_update_slice.
#include "ir/Build.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace wg::ir {

//===- Rows at indices --------------------------------------------------------------------------------------===//

/// y = x, and each update row, in the order of the indices, put into its row of y by `combine`.
static void updateRows(StringRef op, OpBuilder &b, Location loc, const ElementAccess &memory, IndexBound range,
                       ArrayRef<int64_t> y, ArrayRef<int64_t> indices, size_t batch,
                       function_ref<Value(OpBuilder &, Location, Value update, ArrayRef<Value> at)> combine) {
  whereIndicesFit(op, b, loc, memory, range, indices, [&](OpBuilder &b) {
    copyUnlessInPlace(b, loc, memory, 0, y);
    forEach(b, loc, indices, [&](OpBuilder &b, Location loc, ArrayRef<Value> i) {
      Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(), indexAt(b, loc, memory, 2, i));
      forEach(b, loc, y.drop_front(batch + 1), [&](OpBuilder &b, Location loc, ArrayRef<Value> j) {
        SmallVector<Value> at = join(join(i.take_front(batch), {row}), j);
        memory.store(b, loc, at, combine(b, loc, memory.load(b, loc, 1, join(i, j)), at));
      });
    });
  });
}

void IndexSetOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  updateRows("index_set", b, loc, memory, *indexBound(), getType().getShape(), getIndices().getType().getShape(),
             getBatchDims(), [](OpBuilder &, Location, Value update, ArrayRef<Value>) { return update; });
}
void IndexMaxOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  updateRows("index_max", b, loc, memory, *indexBound(), getType().getShape(), getIndices().getType().getShape(),
             getBatchDims(), [&](OpBuilder &b, Location loc, Value update, ArrayRef<Value> at) {
               return maximum(b, loc, memory.reload(b, loc, at), update);
             });
}
void IndexMinOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  updateRows("index_min", b, loc, memory, *indexBound(), getType().getShape(), getIndices().getType().getShape(),
             getBatchDims(), [&](OpBuilder &b, Location loc, Value update, ArrayRef<Value> at) {
               return minimum(b, loc, memory.reload(b, loc, at), update);
             });
}

std::optional<IndexBound> IndexSetOp::indexBound() { return IndexBound{2, getType().getDimSize(getBatchDims())}; }
std::optional<IndexBound> IndexMaxOp::indexBound() { return IndexBound{2, getType().getDimSize(getBatchDims())}; }
std::optional<IndexBound> IndexMinOp::indexBound() { return IndexBound{2, getType().getDimSize(getBatchDims())}; }
int64_t IndexSetOp::overwritten() { return 0; }
int64_t IndexMaxOp::overwritten() { return 0; }
int64_t IndexMinOp::overwritten() { return 0; }

//===- Parts at starts --------------------------------------------------------------------------------------===//

/// Builds `body(from, at)` for each run along the last axis of a part of x: its first place in x and in the part.
static void forRuns(OpBuilder &b, Location loc, const ElementAccess &memory, unsigned starts, ArrayRef<int64_t> x,
                    ArrayRef<int64_t> part, size_t batch,
                    function_ref<void(OpBuilder &, ArrayRef<Value> from, ArrayRef<Value> at)> body) {
  auto number = [&](OpBuilder &b, int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, b.getI64Type(), value);
  };
  forEach(b, loc, part.take_front(batch), [&](OpBuilder &b, Location loc, ArrayRef<Value> lane) {
    SmallVector<Value> first; // of the other axes, moved so that the part lies in x
    for (size_t axis = batch; axis < x.size(); ++axis) {
      Value place = arith::ConstantIndexOp::create(b, loc, static_cast<int64_t>(axis - batch));
      Value start = indexAt(b, loc, memory, starts, join(lane, {place}));
      start = arith::MaxSIOp::create(b, loc, start, number(b, 0));
      start = arith::MinSIOp::create(b, loc, start, number(b, x[axis] - part[axis]));
      first.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(), start));
    }
    ArrayRef<int64_t> rest = part.drop_front(batch);
    forEach(b, loc, rest.empty() ? rest : rest.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> row) {
      SmallVector<Value> at(row), from;
      if (!rest.empty())
        at.push_back(arith::ConstantIndexOp::create(b, loc, 0));
      for (auto [start, place] : llvm::zip_equal(first, at))
        from.push_back(arith::AddIOp::create(b, loc, start, place));
      body(b, join(lane, from), join(lane, at));
    });
  });
}

void DynamicSliceOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> x = getX().getType().getShape(), y = getType().getShape();
  size_t batch = getBatchDims();
  forRuns(b, loc, memory, 1, x, y, batch, [&](OpBuilder &b, ArrayRef<Value> from, ArrayRef<Value> at) {
    if (batch == x.size())
      memory.store(b, loc, at, memory.load(b, loc, 0, from));
    else
      memory.copyRun(b, loc, 0, from, at, y.back());
  });
}

void DynamicUpdateSliceOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  ArrayRef<int64_t> x = getType().getShape(), update = getUpdate().getType().getShape();
  size_t batch = getBatchDims();
  copyUnlessInPlace(b, loc, memory, 0, x);
  forRuns(b, loc, memory, 2, x, update, batch, [&](OpBuilder &b, ArrayRef<Value> to, ArrayRef<Value> at) {
    if (batch == x.size())
      memory.store(b, loc, to, memory.load(b, loc, 1, at));
    else
      memory.copyRun(b, loc, 1, at, to, update.back());
  });
}

int64_t DynamicUpdateSliceOp::overwritten() { return 0; }

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// 0, 1, 2, ... in row-major order, in the shape of x.
static Expr numbered(const Expr &x) {
  Type integer = IntegerType::get(x.type().getContext(), 64);
  OpFoldResult count = x.index(1);
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    count = x.size("a * b", {count, x.sizeOf(x, axis)});
  Expr flat = x.reshaped({count});
  SmallVector<Value> sizes = x.dynamicSizes(flat);
  return x.make<IotaOp>(flat.type().getShape(), 0, integer, sizes).reshapedLike(x);
}

/// Of updates at equal indices the last is in y. So it takes ct from there, and x takes it where none has come:
/// which update lies in each row is what index_set does to their numbers.
Terms IndexSetOp::transpose(Expr ct) {
  Expr indices = ct.at(getIndices()), order = numbered(indices);
  uint64_t batch = getBatchDims();
  SmallVector<OpFoldResult> rows;
  for (uint64_t axis = 0; axis <= batch; ++axis)
    rows.push_back(ct.sizeOf(ct, axis));
  Expr winners = order.make<IndexSetOp>(order.scattered(indices, rows, batch), order, indices, batch);
  Expr isLast = equal(order.make<GatherOp>(winners, indices, batch), order);
  Expr zeros = ct.at(getUpdates()).zeros(), taken = ct.make<GatherOp>(ct, indices, batch).reshapedLike(zeros);
  SmallVector<int64_t> rowAxes = llvm::to_vector(llvm::seq<int64_t>(indices.rank(), zeros.rank()));
  Expr dx = ct.make<IndexSetOp>(ct, zeros, indices, batch);
  return {dx, where(isLast.unreduced(rowAxes, zeros), taken, zeros)};
}

/// Equal shares of ct to x and the updates that are y.
template <class Op> static Terms shareAmongUpdates(Op op, const Expr &ct) {
  Expr x = ct.at(op.getX()), updates = ct.at(op.getUpdates()), y = ct.at(op.getY());
  Value indices = op.getIndices();
  uint64_t batch = op.getBatchDims();
  auto rows = [&](const Expr &of) { return ct.make<GatherOp>(of, indices, batch).reshapedLike(updates); };
  Expr isX = equal(x, y), isUpdate = equal(updates, rows(y));
  Expr one = where(isX, x.ones(), x.zeros()), each = where(isUpdate, updates.ones(), updates.zeros());
  Expr share = ct / ct.make<IndexAddOp>(one, each, indices, batch);
  return {where(isX, share, x.zeros()), where(isUpdate, rows(share), updates.zeros())};
}

/// y = max(x, updates): who ties shares ct. Reads y.
FailureOr<Terms> IndexMaxOp::vjp(Expr ct) { return shareAmongUpdates(*this, ct); }
/// y = min(x, updates): the same. Reads y.
FailureOr<Terms> IndexMinOp::vjp(Expr ct) { return shareAmongUpdates(*this, ct); }

/// y = a part of x, so dx = ct in its place, 0 elsewhere.
Terms DynamicSliceOp::transpose(Expr ct) {
  return ct.make<DynamicUpdateSliceOp>(ct.at(getX()).zeros(), ct, getStarts(), getBatchDims());
}

/// y = x but for the part that is update's.
Terms DynamicUpdateSliceOp::transpose(Expr ct) {
  Expr update = ct.at(getUpdate());
  return {ct.make<DynamicUpdateSliceOp>(ct, update.zeros(), getStarts(), getBatchDims()),
          ct.make<DynamicSliceOp>(ct, getStarts(), update.type().getShape(), getBatchDims(), ct.dynamicSizes(update))};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// Lanes are one more batch axis.
template <class Op> static FailureOr<Expr> updateLanes(Op op, const Lanes &x) {
  FailureOr<Expr> to = x.spread(0), updates = x.spread(1), places = x.spread(2);
  if (failed(to) || failed(updates) || failed(places))
    return failure();
  return to->template make<Op>(*to, *updates, *places, op.getBatchDims() + 1);
}

FailureOr<Expr> IndexSetOp::batch(const Lanes &x) { return updateLanes(*this, x); }
FailureOr<Expr> IndexMaxOp::batch(const Lanes &x) { return updateLanes(*this, x); }
FailureOr<Expr> IndexMinOp::batch(const Lanes &x) { return updateLanes(*this, x); }
FailureOr<Expr> DynamicUpdateSliceOp::batch(const Lanes &x) { return updateLanes(*this, x); }

FailureOr<Expr> DynamicSliceOp::batch(const Lanes &x) {
  FailureOr<Expr> from = x.spread(0), starts = x.spread(1);
  if (failed(from) || failed(starts))
    return failure();
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(x.withCount(getShape(), getSizes()), sizes, shape);
  return from->make<DynamicSliceOp>(*from, *starts, shape, getBatchDims() + 1, sizes);
}

} // namespace wg::ir
