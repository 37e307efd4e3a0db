#include "autodiff/Bodies.h"

using namespace mlir;

namespace wg::autodiff {

void LinearRequest::replace(Operation *before, Operation *after) {
  for (auto [old, value] : llvm::zip(before->getResults(), after->getResults())) {
    old.replaceAllUsesWith(value);
    llvm::replace(seeds, Value(old), Value(value));
  }
  told(before, after);
  before->erase();
}

FailureOr<LinearPart> linearPart(Operation *op, Mode mode, LinearRequest &request) {
  if (auto loop = dyn_cast<ir::LoopOp>(op))
    return linearLoop(loop, mode, request);
  return linearCond(cast<ir::CondOp>(op), mode, request);
}

} // namespace wg::autodiff
