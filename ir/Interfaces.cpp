#include "ir/Interfaces.h"

#include "ir/Bridge.h"

#include "ir/Interfaces.cpp.inc"

using namespace mlir;

namespace wg::ir {

static const runtime::ExternalRow &rowOf(Operation *op) { return *runtime::recordOf(*opIdOf(op)).external; }

runtime::ExternalCall routineOf(Operation *op) {
  SmallVector<runtime::TensorType> types;
  for (Type type : op->getOperandTypes())
    types.push_back(runtimeTypeOf(type));
  return rowOf(op).call(runtime::TypeSpan(types.data(), types.size()), attrsOf(op));
}
ArrayRef<const char *> statusesOf(Operation *op) {
  std::span<const char *const> statuses = rowOf(op).statuses;
  return {statuses.data(), statuses.size()};
}
int64_t overwrittenOf(Operation *op) { return rowOf(op).overwritten; }

bool mayFail(Operation *op) {
  if (auto external = dyn_cast<External>(op))
    return !external.statuses().empty();
  auto structured = dyn_cast<Structured>(op);
  return structured && structured.indexBound();
}

int64_t overwrittenBy(Operation *op) {
  if (auto external = dyn_cast<External>(op))
    return external.overwritten();
  auto structured = dyn_cast<Structured>(op);
  return structured ? structured.overwritten() : -1;
}

} // namespace wg::ir
