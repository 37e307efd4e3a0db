#include "passes/Cheap.h"

#include "ir/Dialect.h"
#include "ir/Views.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>

using namespace mlir;

namespace wg::passes {

bool isSplat(Operation *op) {
  auto constant = dyn_cast_or_null<ir::ConstantOp>(op);
  return constant && cast<ElementsAttr>(constant.getValue()).isSplat();
}

bool isCheap(Operation *op) { return isSplat(op) || ir::viewMapOf(op) || op->hasTrait<ir::IsCheap>(); }

/// How far apart an axis' elements lie in the memory that a view shows: through transposes, slices and what drops axes
/// of size 1. Of what is reshaped otherwise as if it lay by itself.
static SmallVector<int64_t> stepsOf(Value x) {
  if (auto transpose = x.getDefiningOp<ir::TransposeOp>()) {
    SmallVector<int64_t> from = stepsOf(transpose.getX());
    return llvm::map_to_vector(transpose.getPermutation(), [&](int64_t axis) { return from[axis]; });
  }
  if (auto slice = x.getDefiningOp<ir::SliceOp>()) {
    SmallVector<int64_t> steps = stepsOf(slice.getX());
    for (auto [step, stride, size] : llvm::zip_equal(steps, slice.getStrides(), slice.getType().getShape()))
      step *= size == 1 ? 1 : stride; // of one element any stride will do
    return steps;
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x.getType()).getShape();
  if (auto reshape = x.getDefiningOp<ir::ReshapeOp>()) {
    SmallVector<int64_t> kept, steps;
    for (auto [size, step] : llvm::zip_equal(reshape.getX().getType().getShape(), stepsOf(reshape.getX())))
      if (size != 1) {
        kept.push_back(size);
        steps.push_back(step);
      }
    if (ArrayRef(kept) == shape)
      return steps;
  }
  return computeStrides(shape);
}

/// Whether readers of what the view is spread over, which go through its innermost axes, find there runs of neighbours
/// that a copy makes longer.
static bool areRunsShort(TypedValue<RankedTensorType> view, ir::BroadcastOp spread) {
  ArrayRef<int64_t> sizes = view.getType().getShape(), dims = spread.getDims();
  SmallVector<int64_t> steps = stepsOf(view);
  int64_t lies = 1, copied = 1, place = spread.getType().getRank();
  bool goesOn = true;
  for (size_t i = dims.size(); i-- > 0;) {
    while (--place > dims[i] && spread.getType().getDimSize(place) == 1)
      ;
    if (place != dims[i] || sizes[i] != spread.getType().getDimSize(place))
      break;
    copied *= sizes[i];
    goesOn &= steps[i] == lies || sizes[i] == 1;
    lies *= goesOn ? sizes[i] : 1;
  }
  unsigned bits = view.getType().getElementType().getIntOrFloatBitWidth();
  return readsShortRuns(double(lies), double(copied), std::max(8u, bits) / 8.0);
}

bool isCopied(Operation *op) {
  auto reshape = dyn_cast<ir::ReshapeOp>(op);
  if (!isa<ir::TransposeOp>(op) && !(reshape && reshape.getX().getDefiningOp<ir::SliceOp>()))
    return false;
  auto view = cast<TypedValue<RankedTensorType>>(op->getResult(0));
  if (!view.getType().hasStaticShape())
    return false;
  bool isReadOften = llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto spread = dyn_cast<ir::BroadcastOp>(user);
    return spread && spread.getType().hasStaticShape() &&
           paysForCopy(double(view.getType().getNumElements()), double(spread.getType().getNumElements())) &&
           areRunsShort(view, spread);
  });
  if (!isReadOften)
    return false;
  // What is spread itself, or has no memory, is read where it is small.
  for (Operation *source = op->getOperand(0).getDefiningOp(); source && isCheap(source);
       source = source->getOperand(0).getDefiningOp())
    if (isa<ir::BroadcastOp>(source) || !ir::viewMapOf(source))
      return false;
  return true;
}

} // namespace wg::passes
