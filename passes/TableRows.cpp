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

bool keepsFewerRows(ir::ScatterAddOp op) {
  auto type = cast<RankedTensorType>(op.getY().getType()), updates = cast<RankedTensorType>(op.getUpdates().getType()),
       indices = cast<RankedTensorType>(op.getIndices().getType());
  return op.getBatchDims() == 0 && type.hasStaticShape() && updates.hasStaticShape() && indices.hasStaticShape() &&
         isFewer(type.getDimSize(0), indices);
}

} // namespace wg::passes
