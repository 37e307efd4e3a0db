#include "passes/Cheap.h"

#include "ir/Dialect.h"
#include "ir/Views.h"

#include <algorithm>

using namespace mlir;

namespace wg::passes {

bool isSplat(Operation *op) {
  auto constant = dyn_cast_or_null<ir::ConstantOp>(op);
  return constant && cast<ElementsAttr>(constant.getValue()).isSplat();
}

bool isCheap(Operation *op) { return isSplat(op) || ir::viewMapOf(op) || op->hasTrait<ir::IsCheap>(); }

/// Whether readers of what the transpose is spread over, which go through its innermost axes, find there runs of
/// neighbours that a copy makes longer.
static bool areRunsShort(ir::TransposeOp transpose, ir::BroadcastOp spread) {
  ArrayRef<int64_t> from = transpose.getX().getType().getShape(), dims = spread.getDims();
  int64_t lies = 1, copied = 1, place = spread.getType().getRank();
  bool goesOn = true;
  for (size_t i = dims.size(); i-- > 0;) {
    while (--place > dims[i] && spread.getType().getDimSize(place) == 1)
      ;
    int64_t axis = transpose.getPermutation()[i], step = 1;
    if (place != dims[i] || from[axis] != spread.getType().getDimSize(place))
      break;
    for (int64_t size : from.drop_front(axis + 1))
      step *= size;
    copied *= from[axis];
    goesOn &= step == lies || from[axis] == 1;
    lies *= goesOn ? from[axis] : 1;
  }
  unsigned bits = transpose.getX().getType().getElementType().getIntOrFloatBitWidth();
  return readsShortRuns(double(lies), double(copied), std::max(8u, bits) / 8.0);
}

bool isCopied(Operation *op) {
  auto transpose = dyn_cast<ir::TransposeOp>(op);
  if (!transpose || !transpose.getX().getType().hasStaticShape())
    return false;
  bool isReadOften = llvm::any_of(transpose->getUsers(), [&](Operation *user) {
    auto spread = dyn_cast<ir::BroadcastOp>(user);
    return spread && spread.getType().hasStaticShape() &&
           paysForCopy(double(transpose.getX().getType().getNumElements()),
                       double(spread.getType().getNumElements())) &&
           areRunsShort(transpose, spread);
  });
  if (!isReadOften)
    return false;
  // What is spread itself, or has no memory, is read where it is small.
  for (Operation *source = transpose.getX().getDefiningOp(); source && isCheap(source);
       source = source->getOperand(0).getDefiningOp())
    if (isa<ir::BroadcastOp>(source) || !ir::viewMapOf(source))
      return false;
  return true;
}

} // namespace wg::passes
