// Constants, sizes, and the same elements in another place.
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Sizes.h"
#include "ir/ops/Loops.h"
#include "ir/ops/Scalar.h"
#include "runtime/SizeFormula.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::ir {

//===- Where elements come from -----------------------------------------------------------------------------===//

/// An axis of size 1 is repeated: its coordinate is 0. The others are the result's at dims[i].
AffineMap BroadcastOp::viewMap() {
  SmallVector<AffineExpr> coordinates;
  for (auto [size, dim] : llvm::zip_equal(getX().getType().getShape(), getDims()))
    coordinates.push_back(size == 1 ? getAffineConstantExpr(0, getContext()) : getAffineDimExpr(dim, getContext()));
  return AffineMap::get(getType().getRank(), 0, coordinates, getContext());
}

/// Axis i of y is axis permutation[i] of x.
AffineMap TransposeOp::viewMap() {
  SmallVector<AffineExpr> coordinates(getPermutation().size());
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    coordinates[axis] = getAffineDimExpr(i, getContext());
  return AffineMap::get(getType().getRank(), 0, coordinates, getContext());
}

AffineMap ReverseOp::viewMap() {
  SmallVector<AffineExpr> coordinates;
  for (auto [axis, size] : llvm::enumerate(getType().getShape())) {
    AffineExpr at = getAffineDimExpr(axis, getContext());
    coordinates.push_back(llvm::is_contained(getAxes(), axis) ? size - 1 - at : at);
  }
  return AffineMap::get(getType().getRank(), 0, coordinates, getContext());
}

AffineMap SliceOp::viewMap() {
  SmallVector<AffineExpr> coordinates;
  for (auto [i, start, stride] :
       llvm::enumerate(getStarts(), getStrides())) // of one element any stride will do; it may be 2^63 - 1
    coordinates.push_back(getType().getDimSize(i) == 1 ? getAffineConstantExpr(start, getContext())
                                                       : getAffineDimExpr(i, getContext()) * stride + start);
  return AffineMap::get(getType().getRank(), 0, coordinates, getContext());
}

/// `place` if the lanes allow it to stay strided, moved by `offset`.
static Coordinate moved(OpBuilder &b, Location loc, const Coordinate &at, int64_t offset) {
  Value by = constant(b, loc, at.base.getType(), static_cast<double>(offset));
  return {arith::AddIOp::create(b, loc, at.base, by), at.laneStride};
}

/// `at`, forced into [0, size), and whether it was there before.
static std::pair<Coordinate, Value> clamped(OpBuilder &b, Location loc, const Coordinate &at, int64_t size,
                                            int64_t lanes) {
  // An axis that is the same in all lanes stays a scalar.
  Value place = at.laneStride == 0 ? at.base : placeOf(b, loc, at, lanes);
  Value zero = constant(b, loc, place.getType(), 0.0),
        last = constant(b, loc, place.getType(), static_cast<double>(size - 1));
  Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, place, zero);
  Value inside =
      arith::AndIOp::create(b, loc, above, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, place, last));
  Value near = arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, place, zero), last);
  return {Coordinate{near, 0}, inside};
}

/// A condition on scalars or vectors, in `lanes` lanes.
static Value inLanes(OpBuilder &b, Location loc, Value condition, int64_t lanes) {
  if (lanes == 0 || isa<VectorType>(condition.getType()))
    return condition;
  return vector::BroadcastOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()), condition);
}

static Value elementConstant(OpBuilder &b, Location loc, Type element, int64_t lanes, double value) {
  Type type = signless(element);
  if (lanes > 0)
    type = VectorType::get({lanes}, type);
  return constant(b, loc, type, value);
}

/// x's element at (at - low) / (interior + 1) where that is a place of x, else 0.
Value PadOp::element(OpBuilder &b, Location loc, ArrayRef<Coordinate> at, int64_t lanes, ReadElement read) {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  Value zero = elementConstant(b, loc, getType().getElementType(), lanes, 0), inside;
  if (llvm::is_contained(shape, 0))
    return zero;
  auto require = [&](Value condition) {
    condition = inLanes(b, loc, condition, lanes);
    inside = inside ? arith::AndIOp::create(b, loc, inside, condition).getResult() : condition;
  };
  SmallVector<Coordinate> source;
  for (auto [axis, size] : llvm::enumerate(shape)) {
    int64_t low = getLow()[axis], step = size == 1 ? 1 : getInterior()[axis] + 1; // nothing lies between one element
    if (low == 0 && step == 1 && getHigh()[axis] == 0) {
      source.push_back(at[axis]);
      continue;
    }
    // In steps of the interior: the place is clamped to those that hold or precede an element, then divided.
    auto [place, fits] = clamped(b, loc, moved(b, loc, at[axis], -low), (size - 1) * step + 1, lanes);
    require(fits);
    if (step > 1) {
      Value divisor = constant(b, loc, place.base.getType(), static_cast<double>(step));
      Value rest = arith::RemUIOp::create(b, loc, place.base, divisor);
      require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, constant(b, loc, rest.getType(), 0.0)));
      place.base = arith::DivUIOp::create(b, loc, place.base, divisor);
    }
    source.push_back(place);
  }
  Value element = read(0, source);
  return inside ? arith::SelectOp::create(b, loc, inside, element, zero).getResult() : element;
}

/// Piece by piece, in runs: from the axis on where a piece lies in order, else along the last one.
void ConcatOp::lower(OpBuilder &b, Location loc, const ElementAccess &memory) {
  auto axis = static_cast<size_t>(static_cast<int64_t>(getAxis()));
  auto shapeOf = [](Value x) { return cast<RankedTensorType>(x.getType()).getShape(); };
  // `outer`: coordinates of the first axes, for the piece that begins at `offset`.
  auto copyPiece = [&](OpBuilder &b, Location loc, size_t operand, int64_t offset, ArrayRef<Value> outer) {
    ArrayRef<int64_t> shape = shapeOf(getXs()[operand]), inner = shape.drop_front(outer.size());
    auto coordinates = [&](ArrayRef<Value> rest) {
      SmallVector<Value> at(outer);
      llvm::append_range(at, rest);
      return at;
    };
    auto placed = [&](OpBuilder &b, ArrayRef<Value> at) {
      SmallVector<Value> to(at);
      to[axis] = arith::AddIOp::create(b, loc, at[axis], arith::ConstantIndexOp::create(b, loc, offset));
      return to;
    };
    constexpr int64_t kRun = 4; // of fewer elements a vector is mostly empty
    int64_t run = ShapedType::getNumElements(shape.drop_front(axis));
    if (memory.isWhole(static_cast<unsigned>(operand)) && run >= kRun)
      forEach(b, loc, inner.take_front(axis - outer.size()), [&](OpBuilder &b, Location loc, ArrayRef<Value> row) {
        SmallVector<Value> at = coordinates(row);
        at.resize(shape.size(), arith::ConstantIndexOp::create(b, loc, 0));
        memory.copyRun(b, loc, operand, at, placed(b, at), run);
      });
    else if (shape.back() >= kRun)
      forEach(b, loc, inner.drop_back(), [&](OpBuilder &b, Location loc, ArrayRef<Value> row) {
        SmallVector<Value> at = coordinates(row);
        at.push_back(arith::ConstantIndexOp::create(b, loc, 0));
        memory.copyRun(b, loc, operand, at, placed(b, at), shape.back());
      });
    else
      forEach(b, loc, inner, [&](OpBuilder &b, Location loc, ArrayRef<Value> row) {
        SmallVector<Value> at = coordinates(row);
        memory.store(b, loc, placed(b, at), memory.load(b, loc, operand, at));
      });
  };
  // A few pieces go side by side along what lies outside of their axis: the result is written from start to end.
  constexpr size_t kFew = 8;
  auto copyAll = [&](OpBuilder &b, Location loc, ArrayRef<Value> outer) {
    int64_t offset = 0;
    for (auto [operand, x] : llvm::enumerate(getXs())) {
      copyPiece(b, loc, operand, offset, outer);
      offset += shapeOf(x)[axis];
    }
  };
  if (getXs().size() > kFew)
    return copyAll(b, loc, {});
  forEach(b, loc, shapeOf(getXs()[0]).take_front(axis), copyAll);
}

Value IotaOp::element(OpBuilder &b, Location loc, ArrayRef<Coordinate> at, int64_t lanes, ReadElement) {
  Type element = signless(getType().getElementType());
  Value place = placeOf(b, loc, at[getAxis()], lanes);
  Type integer = withLanes(isa<FloatType>(element) ? b.getI64Type() : element, place.getType());
  Value number = arith::IndexCastOp::create(b, loc, integer, place);
  return isa<FloatType>(element)
             ? arith::SIToFPOp::create(b, loc, withLanes(element, place.getType()), number).getResult()
             : number;
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// y repeats x, so dx sums ct over what was repeated.
Terms BroadcastOp::transpose(Expr ct) { return ct.summedTo(getDims(), getX()); }

/// y is x in another shape, so dx is ct in x's.
Terms ReshapeOp::transpose(Expr ct) { return ct.reshapedLike(getX()); }

/// The others only say when.
Terms BarrierOp::transpose(Expr ct) { return ct; }

/// y = x with its axes permuted, so dx = ct permuted back.
Terms TransposeOp::transpose(Expr ct) { return ct.transposed(invertPermutationVector(getPermutation())); }

/// What was turned around is turned back.
Terms ReverseOp::transpose(Expr ct) { return ct.make<ReverseOp>(ct, getAxes()); }

/// How far `size` elements reach that are `step` apart: 0, or (size - 1) step + 1.
static OpFoldResult reach(const Expr &ct, OpFoldResult size, int64_t step) {
  return step == 1 ? size : ct.size("max((a - 1) * " + std::to_string(step) + " + 1, 0)", {size});
}

/// y = some elements of x, so dx = ct at their places, 0 elsewhere.
Terms SliceOp::transpose(Expr ct) {
  SmallVector<OpFoldResult> low = ct.mixed(getStarts(), getSizes()), high;
  SmallVector<OpFoldResult> limits =
      ct.mixed(getLimits(), getSizes().drop_front(llvm::count_if(getStarts(), ShapedType::isDynamic)));
  SmallVector<int64_t> interior;
  for (auto [axis, given] : llvm::enumerate(getStrides())) {
    int64_t size = getType().getDimSize(axis),
            stride = size == 0 || size == 1 ? 1 : given; // of one element any stride will do; it may be 2^63 - 1
    interior.push_back(stride - 1);
    // Where it is not known, from start and limit: y itself need not be kept.
    OpFoldResult taken = ct.index(size);
    if (ShapedType::isDynamic(size))
      taken = ct.size(stride == 1 ? "a - b" : "(a - b - 1) // " + std::to_string(stride) + " + 1",
                      {limits[axis], low[axis]});
    high.push_back(ct.size("a - b - c", {ct.sizeOf(getX(), axis), low[axis], reach(ct, taken, stride)}));
  }
  return ct.padded(low, high, interior);
}

/// y = x between zeros, so dx = ct at x's places.
Terms PadOp::transpose(Expr ct) {
  SmallVector<OpFoldResult> low = ct.mixed(getLow(), getSizes()), limits;
  SmallVector<int64_t> strides;
  for (auto [axis, interior] : llvm::enumerate(getInterior())) {
    int64_t size =
        getX().getType().getDimSize(axis); // between fewer than two elements nothing lies, however much is asked for
    strides.push_back(size == 0 || size == 1 ? 1 : std::min(interior, INT64_MAX - 1) + 1);
    limits.push_back(ct.size("a + b", {low[axis], reach(ct, ct.sizeOf(getX(), axis), strides.back())}));
  }
  return ct.sliced(low, limits, strides);
}

/// y = the xs one after the other, so each takes its slice of ct.
Terms ConcatOp::transpose(Expr ct) {
  int64_t axis = getAxis(), rank = getType().getRank();
  SmallVector<int64_t> strides(rank, 1);
  SmallVector<OpFoldResult> starts(rank, ct.index(0)), limits;
  for (int64_t i = 0; i < rank; ++i)
    limits.push_back(i == axis ? ct.index(0) : ct.sizeOf(getY(), i));
  Terms terms;
  for (Value x : getXs()) {
    starts[axis] = limits[axis];
    limits[axis] = ct.size("a + b", {starts[axis], ct.sizeOf(x, axis)});
    terms.push_back(ct.sliced(starts, limits, strides));
  }
  return terms;
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// The size of the axis in each lane.
FailureOr<Expr> DimOp::batch(const Lanes &x) { return x[0].make<DimOp>(x[0], getAxis() + 1); }

FailureOr<Expr> BroadcastOp::batch(const Lanes &x) {
  return x[0].broadcast(x.withCount(getShape(), getSizes()), shifted({0}, getDims()));
}

FailureOr<Expr> ReshapeOp::batch(const Lanes &x) { return x[0].reshaped(x.withCount(getShape(), getSizes())); }

FailureOr<Expr> TransposeOp::batch(const Lanes &x) { return x[0].transposed(shifted({0}, getPermutation())); }

FailureOr<Expr> ReverseOp::batch(const Lanes &x) { return x[0].make<ReverseOp>(x[0], shifted({}, getAxes())); }

/// The operands for the `?` of an attribute, those of the attribute before it left out.
static OperandRange behind(OperandRange sizes, ArrayRef<int64_t> before) {
  return sizes.drop_front(llvm::count_if(before, ShapedType::isDynamic));
}

static SmallVector<int64_t> before(int64_t first, ArrayRef<int64_t> rest) {
  SmallVector<int64_t> all{first};
  llvm::append_range(all, rest);
  return all;
}

/// All lanes, and of each these elements.
FailureOr<Expr> SliceOp::batch(const Lanes &x) {
  OperandRange starts = getSizes().take_front(llvm::count_if(getStarts(), ShapedType::isDynamic));
  return x[0].sliced(x.before(0, getStarts(), starts), x.withCount(getLimits(), behind(getSizes(), getStarts())),
                     before(1, getStrides()));
}

/// No zeros before, after or between the lanes.
FailureOr<Expr> PadOp::batch(const Lanes &x) {
  OperandRange low = getSizes().take_front(llvm::count_if(getLow(), ShapedType::isDynamic));
  return x[0].padded(x.before(0, getLow(), low), x.before(0, getHigh(), behind(getSizes(), getLow())),
                     before(0, getInterior()));
}

FailureOr<Expr> ConcatOp::batch(const Lanes &x) {
  SmallVector<Value> xs;
  for (size_t i = 0; i < x.size(); ++i) {
    FailureOr<Expr> each = x.spread(i);
    if (failed(each))
      return failure();
    xs.push_back(*each);
  }
  return x[0].make<ConcatOp>(xs, getAxis() + 1);
}

//===- Constants and sizes ----------------------------------------------------------------------------------===//

/// A constant lives as long as the context, so it is small; large data are arguments.
LogicalResult ConstantOp::verify() {
  constexpr int64_t most = 16;
  auto elements = dyn_cast<DenseElementsAttr>(getValue());
  if (!elements)
    return emitOpError("holds no dense<...> value");
  if (!elements.isSplat() && elements.getNumElements() > most) {
    InFlightDiagnostic diagnostic = emitOpError("holds ")
                                    << elements.getNumElements() << " elements; a constant is a splat or holds at most "
                                    << most;
    diagnostic.attachNote() << "try: make it an argument of the function";
    return diagnostic;
  }
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// `value` in every place of `type`, if that is static.
static OpFoldResult splat(RankedTensorType type, Attribute element) {
  return type.hasStaticShape() ? OpFoldResult(DenseElementsAttr::get(type, element)) : OpFoldResult();
}

static Attribute numberOf(Type element, int64_t number) {
  if (auto floatType = dyn_cast<FloatType>(element))
    return FloatAttr::get(floatType, static_cast<double>(number));
  return IntegerAttr::get(element, number);
}

OpFoldResult OnesLikeOp::fold(FoldAdaptor) { return splat(getType(), numberOf(getType().getElementType(), 1)); }
OpFoldResult ZerosLikeOp::fold(FoldAdaptor) { return splat(getType(), numberOf(getType().getElementType(), 0)); }

LogicalResult DimOp::verify() {
  int64_t rank = getX().getType().getRank(), axis = getAxis();
  if (axis < 0 || axis >= rank)
    return emitOpError("axis ") << axis << " is outside the " << rank << " axes of " << getX().getType();
  return success();
}

/// A static size is a constant. A dynamic one is asked of the value that it came from, so that the size of a cotangent
/// keeps no intermediate value alive.
OpFoldResult DimOp::fold(FoldAdaptor) {
  RankedTensorType type = getX().getType();
  int64_t axis = getAxis();
  if (!type.isDynamicDim(axis))
    return IntegerAttr::get(IndexType::get(getContext()), type.getDimSize(axis));
  std::optional<SizeSource> source = sizeSource(getX(), axis);
  if (!source)
    return {};
  if (source->axis < 0)
    return source->value;
  setOperand(source->value);
  setAxis(source->axis);
  return getResult();
}

LogicalResult SizeOp::verify() {
  StringRef formula = getFormula();
  runtime::Status status =
      runtime::checkSizeFormula(std::string_view(formula.data(), formula.size()), getValues().size());
  return status.ok() ? success() : emitOpError(status.failure().message);
}

/// A number where all operands are; a formula without a value is left to fail when it runs.
OpFoldResult SizeOp::fold(FoldAdaptor adaptor) {
  StringRef formula = getFormula();
  if (formula == "a" && getValues().size() == 1)
    return getValues()[0];
  SmallVector<int64_t> values;
  for (Attribute value : adaptor.getValues()) {
    auto number = dyn_cast_or_null<IntegerAttr>(value);
    if (!number)
      return {};
    values.push_back(number.getInt());
  }
  auto size = runtime::evaluateSize(std::string_view(formula.data(), formula.size()),
                                    std::span<const int64_t>(values.data(), values.size()));
  return size.ok() ? OpFoldResult(IntegerAttr::get(IndexType::get(getContext()), *size)) : OpFoldResult();
}

//===- Folding ----------------------------------------------------------------------------------------------===//

/// A splat is the same splat wherever its elements go.
static OpFoldResult moveSplat(Attribute x, RankedTensorType type) {
  auto value = dyn_cast_or_null<SplatElementsAttr>(x);
  return value ? splat(type, value.getSplatValue<Attribute>()) : OpFoldResult();
}

/// Whether `sizes` are the dynamic sizes of x, axis by axis.
static bool areSizesOf(ValueRange sizes, Value x) {
  size_t i = 0;
  for (auto [axis, size] : llvm::enumerate(cast<RankedTensorType>(x.getType()).getShape())) {
    if (!ShapedType::isDynamic(size))
      continue;
    auto dim = sizes[i++].getDefiningOp<DimOp>();
    if (!dim || dim.getX() != x || dim.getAxis() != axis)
      return false;
  }
  return true;
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType() && areSizesOf(getSizes(), getX()))
    return getX(); // dims ascend, so they are 0, 1, ...
  return moveSplat(adaptor.getX(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType() && areSizesOf(getSizes(), getX()))
    return getX();
  return moveSplat(adaptor.getX(), getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentityPermutation(getPermutation()))
    return getX();
  return moveSplat(adaptor.getX(), getType());
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  if (getAxes().empty())
    return getX();
  return moveSplat(adaptor.getX(), getType());
}

/// Whether `limits` are all of x: its sizes, or wg.dim of them.
static bool areLimitsOf(ArrayRef<int64_t> limits, ValueRange sizes, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  size_t next = 0;
  for (auto [axis, limit] : llvm::enumerate(limits)) {
    if (!ShapedType::isDynamic(limit)) {
      if (limit != type.getDimSize(axis))
        return false;
      continue;
    }
    auto dim = sizes[next++].getDefiningOp<DimOp>();
    if (!dim || dim.getX() != x || static_cast<size_t>(dim.getAxis()) != axis)
      return false;
  }
  return true;
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  bool fromStart = llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }) &&
                   llvm::all_of(getStrides(), [](int64_t stride) { return stride == 1; });
  if (fromStart && getX().getType() == getType() && areLimitsOf(getLimits(), getSizes(), getX()))
    return getX();
  return moveSplat(adaptor.getX(), getType());
}

//===- Canonicalisation -------------------------------------------------------------------------------------===//

/// broadcast of broadcast = one broadcast. The inner one is static, so no check of sizes is lost.
static LogicalResult joinBroadcasts(BroadcastOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner || !inner.getType().hasStaticShape())
    return failure();
  SmallVector<int64_t> dims = llvm::map_to_vector(inner.getDims(), [&](int64_t axis) { return op.getDims()[axis]; });
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX(), op.getShape(), dims, op.getSizes());
  return success();
}

/// reshape of reshape = the outer one; the inner one is static, as above.
static LogicalResult joinReshapes(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner || !inner.getType().hasStaticShape())
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
  return success();
}

/// transpose of transpose = one transpose: axis i of the outer is axis inner[outer[i]] of x.
static LogicalResult joinTransposes(TransposeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> both =
      llvm::map_to_vector(op.getPermutation(), [&](int64_t axis) { return inner.getPermutation()[axis]; });
  rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getX(), both);
  return success();
}

/// transpose of a contract that nobody else reads = the contract with its result's letters permuted.
static LogicalResult absorbIntoContract(TransposeOp op, PatternRewriter &rewriter) {
  auto contract = op.getX().getDefiningOp<ContractOp>();
  if (!contract || !contract->hasOneUse())
    return failure();
  std::string letters;
  for (int64_t axis : op.getPermutation())
    letters += contract.lettersOfC()[axis];
  std::string equation =
      runtime::Equation{contract.lettersOfA(), contract.lettersOfB(), letters, contract.relations()}.text();
  rewriter.replaceOpWithNewOp<ContractOp>(op, op.getType(), contract.getA(), contract.getB(), equation,
                                          contract.getRelated(), contract.getSizes());
  return success();
}

/// concat of very many = concat of concats: what LLVM does with the loops of one grows faster than their number.
static LogicalResult concatInParts(ConcatOp op, PatternRewriter &rewriter) {
  constexpr size_t kMost = 1024;
  size_t count = op.getXs().size();
  if (count <= kMost)
    return failure();
  SmallVector<Value> parts;
  for (size_t first = 0; first < count; first += kMost)
    parts.push_back(
        ConcatOp::create(rewriter, op.getLoc(), op.getXs().slice(first, std::min(kMost, count - first)), op.getAxis()));
  rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, op.getAxis());
  return success();
}

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) { patterns.add(concatInParts); }
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(joinBroadcasts);
}
void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) { patterns.add(joinReshapes); }
void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(joinTransposes).add(absorbIntoContract);
}

} // namespace wg::ir
