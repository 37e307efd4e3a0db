#include "passes/Cheap.h"

#include "ir/Dialect.h"
#include "ir/Views.h"

using namespace mlir;

namespace wg::passes {

bool isSplat(Operation *op) {
  auto constant = dyn_cast_or_null<ir::ConstantOp>(op);
  return constant && cast<ElementsAttr>(constant.getValue()).isSplat();
}

bool isCheap(Operation *op) { return isSplat(op) || ir::viewMapOf(op) || op->hasTrait<ir::IsCheap>(); }

bool isCopied(Operation *op) {
  auto transpose = dyn_cast<ir::TransposeOp>(op);
  if (!transpose || !transpose.getX().getType().hasStaticShape())
    return false;
  ArrayRef<int64_t> from = transpose.getX().getType().getShape();
  bool isReadOften = llvm::any_of(transpose->getUsers(), [&](Operation *user) {
    auto spread = dyn_cast<ir::BroadcastOp>(user);
    if (!spread || !spread.getType().hasStaticShape() ||
        !paysForCopy(double(transpose.getX().getType().getNumElements()), double(spread.getType().getNumElements())))
      return false;
    // The axis of what it shows that its readers' innermost one is.
    auto last = llvm::find(spread.getDims(), spread.getType().getRank() - 1);
    if (last == spread.getDims().end())
      return false;
    int64_t axis = transpose.getPermutation()[last - spread.getDims().begin()];
    return from[axis] > 1 && llvm::any_of(from.drop_front(axis + 1), [](int64_t size) { return size > 1; });
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
