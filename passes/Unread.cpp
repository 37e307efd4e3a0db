#include "passes/Unread.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace wg::passes {

void eraseUnread(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

} // namespace wg::passes
