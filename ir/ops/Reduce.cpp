// Many elements to one: neutral elements, combinations, derivatives, and argmax.
#include "ir/Build.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::ir {

//===- Elements ---------------------------------------------------------------------------------------------===//

static TypedAttr numberAttr(Type type, double number) {
  type = signless(type);
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(floatType, number);
  return IntegerAttr::get(type, static_cast<int64_t>(number));
}

/// The end of the number line: +-inf, or the highest or lowest integer of the dtype (u8 is unsigned).
static TypedAttr endAttr(Type type, bool highest) {
  type = signless(type);
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(floatType, APFloat::getInf(floatType.getFloatSemantics(), !highest));
  unsigned width = type.getIntOrFloatBitWidth();
  if (width <= 8)
    return IntegerAttr::get(type, highest ? APInt::getMaxValue(width) : APInt::getMinValue(width));
  return IntegerAttr::get(type, highest ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
}

TypedAttr ReduceSumOp::neutral(Type element) { return numberAttr(element, 0); }
TypedAttr ReduceProdOp::neutral(Type element) { return numberAttr(element, 1); }
TypedAttr ReduceMaxOp::neutral(Type element) { return endAttr(element, false); }
TypedAttr ReduceMinOp::neutral(Type element) { return endAttr(element, true); }
TypedAttr ReduceAnyOp::neutral(Type element) { return numberAttr(element, 0); }
TypedAttr ReduceAllOp::neutral(Type element) { return IntegerAttr::get(element, APInt::getAllOnes(1)); }

Value ReduceSumOp::combine(OpBuilder &b, Location loc, Value x, Value y) {
  return isFloat(x) ? arith::AddFOp::create(b, loc, x, y).getResult() : arith::AddIOp::create(b, loc, x, y).getResult();
}
Value ReduceProdOp::combine(OpBuilder &b, Location loc, Value x, Value y) {
  return isFloat(x) ? arith::MulFOp::create(b, loc, x, y).getResult() : arith::MulIOp::create(b, loc, x, y).getResult();
}
Value ReduceMaxOp::combine(OpBuilder &b, Location loc, Value x, Value y) { return maximum(b, loc, x, y); }
Value ReduceMinOp::combine(OpBuilder &b, Location loc, Value x, Value y) { return minimum(b, loc, x, y); }
Value ReduceAnyOp::combine(OpBuilder &b, Location loc, Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value ReduceAllOp::combine(OpBuilder &b, Location loc, Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }

/// Walks the axis from its start and keeps the first of equals: an element takes the place if it is larger, or if it is
/// the first NaN.
void ArgmaxOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  int64_t axis = getAxis(), size = getX().getType().getDimSize(axis);
  forEach(b, loc, getType().getShape(), [&](OpBuilder &b, Location loc, ArrayRef<Value> at) {
    auto elementAt = [&](OpBuilder &b, Value place) {
      SmallVector<Value> full(at);
      full.insert(full.begin() + axis, place);
      return memory.load(b, loc, 0, full);
    };
    Value first = arith::ConstantIndexOp::create(b, loc, 0), step = arith::ConstantIndexOp::create(b, loc, 1);
    Value end = arith::ConstantIndexOp::create(b, loc, size);
    auto loop = scf::ForOp::create(
        b, loc, step, end, step, ValueRange{elementAt(b, first), first},
        [&](OpBuilder &b, Location loc, Value place, ValueRange best) {
          Value element = elementAt(b, place), better = compare(b, loc, Order::greater, element, best[0]);
          if (isFloat(element)) {
            Value firstNan = arith::AndIOp::create(b, loc, compare(b, loc, Order::notEqual, element, element),
                                                   compare(b, loc, Order::equal, best[0], best[0]));
            better = arith::OrIOp::create(b, loc, better, firstNan);
          }
          scf::YieldOp::create(b, loc,
                               ValueRange{arith::SelectOp::create(b, loc, better, element, best[0]),
                                          arith::SelectOp::create(b, loc, better, place, best[1])});
        });
    memory.store(b, loc, at, arith::IndexCastOp::create(b, loc, getType().getElementType(), loop.getResult(1)));
  });
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// y = sum of x, so dx = ct, repeated along the axes.
Terms ReduceSumOp::transpose(Expr ct) { return ct.unreduced(getAxes(), getX()); }

/// y = an extreme of x: the elements equal to y share ct equally, the others get 0. Reads y.
static Terms shareAmongTies(const Expr &ct, Value operand, Value y, ArrayRef<int64_t> axes) {
  Expr x = ct.at(operand), tied = equal(x, ct.at(y).unreduced(axes, x));
  Expr count = sum(tied.make<CastOp>(tied, x.elementType()), axes);
  return where(tied, (ct / count).unreduced(axes, x), x.zeros());
}

/// y = max of x: equal shares of ct to the elements that are y.
FailureOr<Terms> ReduceMaxOp::vjp(Expr ct) { return shareAmongTies(ct, getX(), getY(), getAxes()); }

/// y = min of x: equal shares of ct to the elements that are y.
FailureOr<Terms> ReduceMinOp::vjp(Expr ct) { return shareAmongTies(ct, getX(), getY(), getAxes()); }

/// x moved by `distance` along the second axis, ones following: the factors before (distance > 0) or after each
/// element.
static Expr shifted(const Expr &x, int64_t distance) {
  OpFoldResult zero = x.index(0), outer = x.sizeOf(x, 0);
  int64_t n = x.type().getDimSize(1), gap = std::abs(distance), from = distance > 0 ? 0 : gap;
  Expr rest = x.sliced({zero, x.index(from)}, {outer, x.index(from + n - gap)}, {1, 1});
  Expr ones = x.sliced({zero, zero}, {outer, x.index(gap)}, {1, 1}).ones();
  return x.make<ConcatOp>(distance > 0 ? ValueRange{ones, rest} : ValueRange{rest, ones}, 1);
}

/// For x of [outer, n], the product of the other elements of each row: what comes before times what comes after, each
/// by a scan that doubles its reach (Hillis and Steele 1986). No division: exact where factors are 0.
static Expr productOfOthers(const Expr &x) {
  int64_t n = x.type().getDimSize(1);
  if (n <= 1)
    return x.ones();
  Expr before = shifted(x, 1), after = shifted(x, -1);
  for (int64_t reach = 1; reach < n; reach *= 2) {
    before = before * shifted(before, reach);
    after = after * shifted(after, -reach);
  }
  return before * after;
}

/// The product of the sizes of x along `axes`.
static OpFoldResult countOf(const Expr &x, ArrayRef<int64_t> axes) {
  OpFoldResult count = x.index(1);
  for (int64_t axis : axes)
    count = isConstantIntValue(count, 1) ? x.sizeOf(x, axis) : x.size("a * b", {count, x.sizeOf(x, axis)});
  return count;
}

/// The same along one axis of any size, as [outer, n, inner] -> [outer, n, n, inner]: row i of a square holds x
/// with its element i replaced by 1. Costs the square of the size, and three axes more than none of any rank.
static Expr productOfOthersBySquare(const Expr &x, int64_t axis) {
  OpFoldResult outer = countOf(x, llvm::to_vector(llvm::seq<int64_t>(0, axis))), n = x.sizeOf(x, axis),
               inner = countOf(x, llvm::to_vector(llvm::seq<int64_t>(axis + 1, x.rank())));
  Expr rows = x.reshaped({outer, n, inner});
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults({outer, n, n, inner}, sizes, shape);
  Expr square = rows.make<BroadcastOp>(rows, shape, ArrayRef<int64_t>{0, 2, 3}, sizes);
  auto placeAlong = [&](int64_t i) {
    return x.make<IotaOp>(shape, i, IntegerType::get(x.type().getContext(), 64), sizes);
  };
  Expr self = equal(placeAlong(1), placeAlong(2));
  return product(where(self, square.ones(), square), {2}).reshapedLike(x);
}

/// y = product of x, so dx_i = ct * product of the other x_j. Where the reduced sizes are known, those axes are brought
/// together as one. Else axis by axis, y = prod over the last of the prods over the others.
FailureOr<Terms> ReduceProdOp::vjp(Expr ct) {
  Expr x = ct.at(getX());
  ArrayRef<int64_t> axes = getAxes();
  if (llvm::none_of(axes, [&](int64_t axis) { return x.type().isDynamicDim(axis); })) {
    SmallVector<int64_t> order, inverse(x.rank());
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      if (!llvm::is_contained(axes, axis))
        order.push_back(axis);
    OpFoldResult outer = countOf(x, order), n = countOf(x, axes);
    llvm::append_range(order, axes);
    for (auto [to, from] : llvm::enumerate(order))
      inverse[from] = static_cast<int64_t>(to);
    Expr together = x.transposed(order), rows = together.reshaped({outer, n});
    Expr others = productOfOthers(rows).reshapedLike(together).transposed(inverse);
    return Terms(ct.unreduced(axes, x) * others);
  }
  SmallVector<Expr> factors{x}; // x, reduced over no axis, over the last, over the last two, ...
  for (int64_t axis : llvm::reverse(axes.drop_front()))
    factors.push_back(product(factors.back(), {axis}));
  Expr dx = ct;
  for (auto [axis, each] : llvm::zip_equal(axes, llvm::reverse(ArrayRef(factors).take_front(axes.size()))))
    dx = dx.unreduced({axis}, each) * productOfOthersBySquare(each, axis);
  return Terms(dx);
}

//===- Batches ----------------------------------------------------------------------------------------------===//

FailureOr<Expr> ArgmaxOp::batch(const Lanes &x) { return x[0].make<ArgmaxOp>(x[0], getAxis() + 1); }

//===- Folding ----------------------------------------------------------------------------------------------===//

/// Over no axes, y = x.
static OpFoldResult foldNoAxes(Value x, ArrayRef<int64_t> axes) {
  return axes.empty() ? OpFoldResult(x) : OpFoldResult();
}

OpFoldResult ReduceSumOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }
OpFoldResult ReduceProdOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }
OpFoldResult ReduceMaxOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }
OpFoldResult ReduceMinOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }
OpFoldResult ReduceAnyOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }
OpFoldResult ReduceAllOp::fold(FoldAdaptor) { return foldNoAxes(getX(), getAxes()); }

} // namespace wg::ir
