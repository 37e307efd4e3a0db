#include "passes/Invariants.h"

using namespace mlir;

namespace wg::passes {

int64_t turnsOf(ir::LoopOp loop) {
  constexpr int64_t kSomeTurns = 4;
  if (loop.hasCondition() || loop.getLimited())
    return kSomeTurns;
  auto length = static_cast<int64_t>(loop.getLength());
  if (length < 0 && loop.getScanned() > 0)
    length = cast<RankedTensorType>(loop.getXs()[0].getType()).getDimSize(0);
  return length < 0 ? kSomeTurns : length;
}

bool mayMove(Operation &op) { return isPure(&op) && !ir::mayFail(&op); }

DenseSet<Value> invariantsOf(Block &body, size_t numInvariants) {
  DenseSet<Value> held;
  for (Value argument : body.getArguments().take_back(numInvariants))
    held.insert(argument);
  for (Operation &op : body.without_terminator())
    if (llvm::all_of(op.getOperands(), [&](Value operand) { return held.contains(operand); }) && mayMove(op))
      held.insert(op.result_begin(), op.result_end());
  return held;
}

} // namespace wg::passes
