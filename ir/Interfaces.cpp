#include "ir/Interfaces.h"

#include "ir/Bridge.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

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
SmallVector<StringRef> statusesOf(Operation *op) {
  std::span<const char *const> statuses = rowOf(op).statuses;
  return SmallVector<StringRef>(statuses.begin(), statuses.end());
}
int64_t overwrittenOf(Operation *op) { return rowOf(op).overwritten; }

static bool lacksRoom(Operation *op) {
  auto loop = dyn_cast<LoopOp>(op);
  return loop && loop.hasRoom();
}

/// Whether an op of a body can.
static bool bodiesMayFail(WithBodies op) {
  llvm::SetVector<Operation *> functions;
  auto add = [&](WithBodies from) {
    for (FlatSymbolRefAttr name : from.bodyNames())
      if (Operation *function = SymbolTable::lookupNearestSymbolFrom(from, name))
        functions.insert(function);
  };
  add(op);
  for (size_t i = 0; i < functions.size(); ++i) {
    WalkResult walked = functions[i]->walk([&](Operation *inner) {
      auto withBodies = dyn_cast<WithBodies>(inner);
      if (withBodies)
        add(withBodies);
      if (withBodies ? lacksRoom(inner) : mayFail(inner))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return true;
  }
  return false;
}

bool mayFail(Operation *op) {
  if (auto withBodies = dyn_cast<WithBodies>(op))
    return lacksRoom(op) || bodiesMayFail(withBodies);
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
