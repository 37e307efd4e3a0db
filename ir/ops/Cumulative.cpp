// What has come so far along an axis: elements made of the one before them.
#include "ir/Build.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace wg::ir {

//===- Loops ------------------------------------------------------------------------------------------------===//

/// The element at `at`; `previous` is the result's element before it, null at the first.
using Step = function_ref<Value(OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous)>;

/// Stores step(at, the result before) at each place, along `axis` from its start or, reversed, its end. Where the axis
/// is the innermost the element before stays in a register; else rows are made of rows, so that memory is read in
/// order.
static void alongAxis(OpBuilder &b, Location loc, const ElementAccess &memory, ArrayRef<int64_t> shape, int64_t axis,
                      bool reverse, Step step) {
  int64_t n = shape[axis];
  if (llvm::is_contained(shape, 0))
    return;
  ArrayRef<int64_t> inner = shape.drop_front(axis + 1);
  auto number = [&](OpBuilder &b, int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  auto place = [&](OpBuilder &b, Value k) -> Value {
    return reverse ? arith::SubIOp::create(b, loc, number(b, n - 1), k).getResult() : k;
  };
  auto rest = [&](OpBuilder &b, Value first, ValueRange carried, auto body) {
    scf::ForOp::create(b, loc, first, number(b, n), number(b, 1), carried, body);
  };
  forEach(b, loc, shape.take_front(axis), [&](OpBuilder &b, Location loc, ArrayRef<Value> outer) {
    auto at = [&](Value k, ArrayRef<Value> inside) { return join(join(outer, {k}), inside); };
    bool isInnermost = llvm::all_of(inner, [](int64_t size) { return size == 1; });
    if (isInnermost) {
      SmallVector<Value> inside(inner.size(), number(b, 0)), start = at(place(b, number(b, 0)), inside);
      Value first = step(b, loc, start, {});
      memory.store(b, loc, start, first);
      return rest(b, number(b, 1), first, [&](OpBuilder &b, Location loc, Value k, ValueRange previous) {
        SmallVector<Value> here = at(place(b, k), inside);
        Value element = step(b, loc, here, previous[0]);
        memory.store(b, loc, here, element);
        scf::YieldOp::create(b, loc, element);
      });
    }
    forEach(b, loc, inner, [&](OpBuilder &b, Location loc, ArrayRef<Value> inside) {
      SmallVector<Value> start = at(place(b, number(b, 0)), inside);
      memory.store(b, loc, start, step(b, loc, start, {}));
    });
    rest(b, number(b, 1), {}, [&](OpBuilder &b, Location loc, Value k, ValueRange) {
      Value here = place(b, k), before = place(b, arith::SubIOp::create(b, loc, k, number(b, 1)));
      forEach(b, loc, inner, [&](OpBuilder &b, Location loc, ArrayRef<Value> inside) {
        Value previous = memory.reload(b, loc, at(before, inside));
        memory.store(b, loc, at(here, inside), step(b, loc, at(here, inside), previous));
      });
      scf::YieldOp::create(b, loc);
    });
  });
}

void CumsumOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  alongAxis(b, loc, memory, getType().getShape(), getAxis(), getReverse(),
            [&](OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous) -> Value {
              Value x = memory.load(b, loc, 0, at);
              if (!previous)
                return x;
              return isFloat(x) ? arith::AddFOp::create(b, loc, previous, x).getResult()
                                : arith::AddIOp::create(b, loc, previous, x).getResult();
            });
}

void CumprodOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  alongAxis(b, loc, memory, getType().getShape(), getAxis(), getReverse(),
            [&](OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous) -> Value {
              Value x = memory.load(b, loc, 0, at);
              if (!previous)
                return x;
              return isFloat(x) ? arith::MulFOp::create(b, loc, previous, x).getResult()
                                : arith::MulIOp::create(b, loc, previous, x).getResult();
            });
}

/// max + log1p(e^-|difference|); of two equal infinities the difference is none, and the result is the maximum.
void LogcumsumexpOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  alongAxis(b, loc, memory, getType().getShape(), getAxis(), getReverse(),
            [&](OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous) -> Value {
              Value x = memory.load(b, loc, 0, at);
              if (!previous)
                return x;
              Value larger = maximum(b, loc, previous, x), zero = constant(b, loc, x.getType(), 0.0);
              Value distance = math::AbsFOp::create(b, loc, arith::SubFOp::create(b, loc, previous, x));
              Value same = compare(b, loc, Order::equal, previous, x);
              Value between = arith::NegFOp::create(b, loc, arith::SelectOp::create(b, loc, same, zero, distance));
              return arith::AddFOp::create(b, loc, larger,
                                           math::Log1pOp::create(b, loc, math::ExpOp::create(b, loc, between)));
            });
}

void CumargmaxOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  int64_t axis = getAxis();
  Type integer = b.getI64Type();
  alongAxis(b, loc, memory, getType().getShape(), axis, getReverse(),
            [&](OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous) -> Value {
              Value place = arith::IndexCastOp::create(b, loc, integer, at[axis]);
              if (!previous)
                return place;
              SmallVector<Value> there(at);
              there[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), previous);
              Value x = memory.load(b, loc, 0, at), best = memory.load(b, loc, 0, there);
              Value better = compare(b, loc, getSmallest() ? Order::less : Order::greater, x, best);
              if (isFloat(x)) {
                Value firstNan = arith::AndIOp::create(b, loc, compare(b, loc, Order::notEqual, x, x),
                                                       compare(b, loc, Order::equal, best, best));
                better = arith::OrIOp::create(b, loc, better, firstNan);
              }
              return arith::SelectOp::create(b, loc, better, place, previous);
            });
}

/// By the intrinsic, which is one operation on every machine, as it is in the eager kernel.
void LinearRecurrenceOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  alongAxis(b, loc, memory, getType().getShape(), getAxis(), getReverse(),
            [&](OpBuilder &b, Location loc, ArrayRef<Value> at, Value previous) -> Value {
              Value x = memory.load(b, loc, 1, at);
              if (!previous)
                return x;
              return LLVM::FMAOp::create(b, loc, memory.load(b, loc, 0, at), previous, x);
            });
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// Places [from, to) of an axis.
static Expr part(const Expr &x, int64_t axis, OpFoldResult from, OpFoldResult to) {
  SmallVector<OpFoldResult> starts(x.rank(), x.index(0)), limits;
  for (int64_t i = 0; i < x.rank(); ++i)
    limits.push_back(i == axis ? to : x.sizeOf(x, i));
  starts[axis] = from;
  return x.sliced(starts, limits, SmallVector<int64_t>(x.rank(), 1));
}

/// Where a walk in the given direction goes, what comes before each element: x moved by one place. The first place has
/// `first` of x's own first element.
static Expr before(const Expr &x, int64_t axis, bool reverse, function_ref<Expr(const Expr &)> first) {
  OpFoldResult zero = x.index(0), n = x.sizeOf(x, axis), one = x.size("min(a, 1)", {n}),
               others = x.size("a - b", {n, one});
  Expr start = first(reverse ? part(x, axis, others, n) : part(x, axis, zero, one));
  Expr rest = reverse ? part(x, axis, one, n) : part(x, axis, zero, others);
  return x.make<ConcatOp>(reverse ? ValueRange{rest, start} : ValueRange{start, rest}, static_cast<uint64_t>(axis));
}
static Expr itself(const Expr &x) { return x; }

/// y[i] adds x[j] for all j up to i, so dx[j] adds ct[i] for all i from j on.
Terms CumsumOp::transpose(Expr ct) { return ct.make<CumsumOp>(ct, getAxis(), !getReverse()); }

/// y[i] = a[i] y[i-1] + x[i], so what reaches y[i] is s[i] = ct[i] + a[i+1] s[i+1], the recurrence backwards;
/// dx[i] = s[i], and da[i] = s[i] y[i-1]. Reads y.
FailureOr<Terms> LinearRecurrenceOp::vjp(Expr ct) {
  int64_t axis = getAxis();
  Expr next = before(ct.at(getA()), axis, !getReverse(), [](const Expr &a) { return a.zeros(); });
  Expr s = ct.make<LinearRecurrenceOp>(next, ct, axis, !getReverse());
  return Terms{s * before(ct.at(getY()), axis, getReverse(), [](const Expr &y) { return y.zeros(); }), s};
}

/// y[i] = x[i] y[i-1] with y[-1] = 1, so s[i] = ct[i] + x[i+1] s[i+1] and dx[i] = s[i] y[i-1]: nothing is divided.
/// Reads y.
FailureOr<Terms> CumprodOp::vjp(Expr ct) {
  int64_t axis = getAxis();
  Expr next = before(ct.at(getX()), axis, !getReverse(), [](const Expr &x) { return x.zeros(); });
  Expr s = ct.make<LinearRecurrenceOp>(next, ct, axis, !getReverse());
  return Terms(s * before(ct.at(getY()), axis, getReverse(), [](const Expr &y) { return y.ones(); }));
}

/// e^(a - b), 0 where a is -inf: nothing came of it.
static Expr share(const Expr &a, const Expr &b) {
  Expr none = a.filled(-std::numeric_limits<double>::infinity());
  return exp(where(equal(a, none), none, a - b));
}

/// y[i] = log(e^y[i-1] + e^x[i]), of which y[i-1] has the share e^(y[i-1] - y[i]) and x[i] the share e^(x[i] - y[i]),
/// so s[i] = ct[i] + e^(y[i] - y[i+1]) s[i+1] and dx[i] = s[i] e^(x[i] - y[i]): all shares are 1 at most. Reads y.
FailureOr<Terms> LogcumsumexpOp::vjp(Expr ct) {
  int64_t axis = getAxis();
  Expr x = ct.at(getX()), y = ct.at(getY());
  Expr s = ct.make<LinearRecurrenceOp>(share(y, before(y, axis, !getReverse(), itself)), ct, axis, !getReverse());
  return Terms(s * share(x, y));
}

//===- Batches ----------------------------------------------------------------------------------------------===//

FailureOr<Expr> CumsumOp::batch(const Lanes &x) { return x[0].make<CumsumOp>(x[0], getAxis() + 1, getReverse()); }
FailureOr<Expr> CumprodOp::batch(const Lanes &x) { return x[0].make<CumprodOp>(x[0], getAxis() + 1, getReverse()); }
FailureOr<Expr> LogcumsumexpOp::batch(const Lanes &x) {
  return x[0].make<LogcumsumexpOp>(x[0], getAxis() + 1, getReverse());
}
FailureOr<Expr> CumargmaxOp::batch(const Lanes &x) {
  return x[0].make<CumargmaxOp>(x[0], getAxis() + 1, getReverse(), getSmallest());
}
FailureOr<Expr> LinearRecurrenceOp::batch(const Lanes &x) {
  FailureOr<Expr> a = x.spread(0), added = x.spread(1);
  if (failed(a) || failed(added))
    return failure();
  return a->make<LinearRecurrenceOp>(*a, *added, getAxis() + 1, getReverse());
}

} // namespace wg::ir
