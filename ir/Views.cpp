#include "ir/Views.h"

using namespace mlir;

namespace wg::ir {

/// A reshape that only adds or drops unit axes, as the map from result to operand coordinates.
static std::optional<AffineMap> unitReshapeMap(ReshapeOp op) {
  ArrayRef<int64_t> from = op.getX().getType().getShape(), to = op.getY().getType().getShape();
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> exprs;
  size_t j = 0;
  for (int64_t size : from) {
    if (size == 1) {
      exprs.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    while (j < to.size() && to[j] == 1)
      ++j;
    if (j == to.size() || to[j] != size)
      return std::nullopt;
    exprs.push_back(getAffineDimExpr(j++, context));
  }
  for (; j < to.size(); ++j)
    if (to[j] != 1)
      return std::nullopt;
  return AffineMap::get(to.size(), 0, exprs, context);
}

std::optional<AffineMap> viewMapOf(Operation *op) {
  if (!op || !isa<View, ReshapeOp>(op))
    return std::nullopt;
  if (!cast<RankedTensorType>(op->getOperand(0).getType()).hasStaticShape() ||
      !cast<RankedTensorType>(op->getResult(0).getType()).hasStaticShape())
    return std::nullopt;
  if (auto view = dyn_cast<View>(op))
    return view.viewMap();
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return unitReshapeMap(reshape);
  return std::nullopt;
}

Value storageOf(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

} // namespace wg::ir
