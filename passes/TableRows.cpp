#include "passes/TableRows.h"

#include "ir/Views.h"

using namespace mlir;

namespace wg::passes {

/// A table has so many times fewer rows than are read or written: a product of the table is a kernel of its own.
constexpr int64_t kFewer = 2;

static bool isFewer(int64_t rows, RankedTensorType indices) {
  return rows > 0 && rows <= indices.getNumElements() / kFewer;
}

std::optional<Taken> takenRows(Value x) {
  auto gather = ir::storageOf(x).getDefiningOp<ir::GatherOp>();
  if (!gather || gather.getBatchDims() != 0)
    return {};
  auto type = cast<RankedTensorType>(x.getType()), table = cast<RankedTensorType>(gather.getX().getType()),
       indices = cast<RankedTensorType>(gather.getIndices().getType());
  if (!type.hasStaticShape() || !table.hasStaticShape() || !indices.hasStaticShape() || type.getNumElements() == 0)
    return {};
  ArrayRef<int64_t> row = table.getShape().drop_front();
  if (type.getShape().size() < row.size() || type.getShape().take_back(row.size()) != row ||
      !isFewer(table.getDimSize(0), indices))
    return {};
  return Taken{gather, type.getShape().size() - row.size()};
}

ir::ScatterAddOp onlySum(Value rows) {
  while (rows.hasOneUse() && isa<ir::ReshapeOp>(*rows.user_begin()))
    rows = rows.user_begin()->getResult(0);
  auto sum = rows.hasOneUse() ? dyn_cast<ir::ScatterAddOp>(*rows.user_begin()) : ir::ScatterAddOp();
  if (!sum || sum.getUpdates() != rows || sum.getBatchDims() != 0)
    return {};
  auto type = cast<RankedTensorType>(sum.getY().getType()),
       indices = cast<RankedTensorType>(sum.getIndices().getType());
  bool isKnown =
      type.hasStaticShape() && cast<RankedTensorType>(rows.getType()).hasStaticShape() && indices.hasStaticShape();
  return isKnown && isFewer(type.getDimSize(0), indices) ? sum : ir::ScatterAddOp();
}

} // namespace wg::passes
