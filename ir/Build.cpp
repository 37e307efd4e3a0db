#include "ir/Build.h"

#include "ir/Sizes.h"
#include "runtime/SizeFormula.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::ir {

SmallVector<Value> cloneBody(OpBuilder &b, Block &block, ValueRange arguments,
                             llvm::function_ref<void(Operation *)> each) {
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator()) {
    Operation *copy = b.clone(op, mapping);
    if (each)
      each(copy);
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

static RankedTensorType tensorType(Value x) { return cast<RankedTensorType>(x.getType()); }

SmallVector<Value> dynamicSizes(OpBuilder &b, Location loc, Value x) {
  SmallVector<Value> sizes;
  for (auto [axis, size] : llvm::enumerate(tensorType(x).getShape()))
    if (ShapedType::isDynamic(size))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, sizeOf(b, loc, x, static_cast<int64_t>(axis))));
  return sizes;
}

OpFoldResult sizeOf(OpBuilder &b, Location loc, Value x, int64_t axis) {
  for (;;) {
    if (int64_t size = tensorType(x).getDimSize(axis); !ShapedType::isDynamic(size))
      return b.getIndexAttr(size);
    std::optional<SizeSource> source = sizeSource(x, axis);
    if (!source)
      return DimOp::create(b, loc, x, axis).getResult();
    if (source->axis < 0)
      return source->value;
    std::tie(x, axis) = std::pair(source->value, source->axis);
  }
}

OpFoldResult computeSize(OpBuilder &b, Location loc, StringRef formula, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> known;
  SmallVector<Value> values;
  for (OpFoldResult size : sizes) {
    known.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    if (ShapedType::isDynamic(known.back()))
      values.push_back(cast<Value>(size));
  }
  std::string bound = runtime::withKnown(std::string_view(formula.data(), formula.size()),
                                         std::span<const int64_t>(known.data(), known.size()));
  if (values.empty())
    if (auto value = runtime::evaluateSize(bound, {}); value.ok())
      return b.getIndexAttr(*value);
  return b.createOrFold<SizeOp>(loc, values, bound);
}

/// An op with two lists of sizes and one of numbers.
template <class Op>
static Value withSizes(OpBuilder &b, Location loc, Value x, ArrayRef<OpFoldResult> first, ArrayRef<OpFoldResult> second,
                       ArrayRef<int64_t> numbers) {
  SmallVector<int64_t> knownFirst, knownSecond;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(first, sizes, knownFirst);
  dispatchIndexOpFoldResults(second, sizes, knownSecond);
  return Op::create(b, loc, x, knownFirst, knownSecond, numbers, sizes);
}

Value slice(OpBuilder &b, Location loc, Value x, ArrayRef<OpFoldResult> starts, ArrayRef<OpFoldResult> limits,
            ArrayRef<int64_t> strides) {
  return withSizes<SliceOp>(b, loc, x, starts, limits, strides);
}

Value pad(OpBuilder &b, Location loc, Value x, ArrayRef<OpFoldResult> low, ArrayRef<OpFoldResult> high,
          ArrayRef<int64_t> interior) {
  return withSizes<PadOp>(b, loc, x, low, high, interior);
}

Value reshape(OpBuilder &b, Location loc, Value x, ArrayRef<OpFoldResult> shape) {
  SmallVector<int64_t> to;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(shape, sizes, to);
  return ReshapeOp::create(b, loc, x, to, sizes);
}

Value broadcast(OpBuilder &b, Location loc, Value x, ArrayRef<OpFoldResult> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> to;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(shape, sizes, to);
  return BroadcastOp::create(b, loc, x, to, dims, sizes);
}

Value spread(OpBuilder &b, Location loc, Value x, OpFoldResult count) {
  SmallVector<OpFoldResult> shape{count};
  SmallVector<int64_t> dims;
  for (int64_t axis = 0; axis < tensorType(x).getRank(); ++axis) {
    shape.push_back(sizeOf(b, loc, x, axis));
    dims.push_back(axis + 1);
  }
  return broadcast(b, loc, x, shape, dims);
}

/// `value` as an element of `type`.
static Attribute elementAttr(Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(floatType, value);
  return IntegerAttr::get(type, static_cast<int64_t>(value));
}

Value onesLike(OpBuilder &b, Location loc, Value x) {
  return tensorType(x).hasStaticShape() ? fullLike(b, loc, x, 1) : OnesLikeOp::create(b, loc, x);
}

Value zerosLike(OpBuilder &b, Location loc, Value x) {
  return tensorType(x).hasStaticShape() ? fullLike(b, loc, x, 0) : ZerosLikeOp::create(b, loc, x);
}

Value fullLike(OpBuilder &b, Location loc, Value x, double value) {
  RankedTensorType type = tensorType(x);
  Attribute element = elementAttr(type.getElementType(), value);
  if (type.hasStaticShape())
    return ConstantOp::create(b, loc, DenseElementsAttr::get(type, element));
  Value scalar =
      ConstantOp::create(b, loc, DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), element));
  return broadcastTo(b, loc, scalar, {}, x);
}

Value transpose(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> permutation) {
  return TransposeOp::create(b, loc, x, permutation);
}

Value broadcastTo(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> dims, Value like) {
  RankedTensorType type = tensorType(like);
  if (x.getType() == type && type.hasStaticShape())
    return x; // dims ascend, so they are 0, 1, ...
  return BroadcastOp::create(b, loc, x, type.getShape(), dims, dynamicSizes(b, loc, like));
}

Value sumTo(OpBuilder &b, Location loc, Value ct, ArrayRef<int64_t> dims, Value x) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < tensorType(ct).getRank(); ++axis) {
    auto at = llvm::find(dims, axis);
    bool stretched =
        at != dims.end() && tensorType(x).getDimSize(at - dims.begin()) == 1 && tensorType(ct).getDimSize(axis) != 1;
    if (at == dims.end() || stretched)
      axes.push_back(axis);
  }
  Value sum = axes.empty() ? ct : ReduceSumOp::create(b, loc, ct, axes);
  return sum.getType() == x.getType() ? sum : reshapeLike(b, loc, sum, x); // gives back the axes of size 1
}

Value reshapeLike(OpBuilder &b, Location loc, Value x, Value like) {
  // With two sizes `?`, equal types may still be different shapes.
  if (x.getType() == like.getType() && tensorType(x).getNumDynamicDims() <= 1)
    return x;
  return ReshapeOp::create(b, loc, x, tensorType(like).getShape(), dynamicSizes(b, loc, like));
}

FailureOr<Value> conform(OpBuilder &b, Location loc, Value x, Value like) {
  if (x.getType() == like.getType())
    return x;
  auto from = dyn_cast<RankedTensorType>(x.getType()), to = dyn_cast<RankedTensorType>(like.getType());
  if (!from || !to || from.getElementType() != to.getElementType() || failed(verifyCompatibleShape(from, to)))
    return failure();
  return reshapeLike(b, loc, x, like);
}

Value unreduce(OpBuilder &b, Location loc, Value y, ArrayRef<int64_t> axes, Value x) {
  SmallVector<int64_t> kept = llvm::to_vector(llvm::make_filter_range(
      llvm::seq<int64_t>(0, tensorType(x).getRank()), [&](int64_t axis) { return !llvm::is_contained(axes, axis); }));
  return broadcastTo(b, loc, y, kept, x);
}

} // namespace wg::ir
