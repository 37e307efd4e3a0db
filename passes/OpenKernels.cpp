// Puts the body of each kernel in its place.
//
//   %y = wg.kernel map (%a = %x) {
//     %0 = wg.tanh %a                            %y = wg.tanh %x
//     wg.yield %0                        ->
//   }
//
// Legal because a kernel is its body, computed in one loop nest. Text may hold kernels before anything made them:
// simplifying begins here, for what folds in a kernel may leave it without the op that its kind names, and so does
// fusion, which groups ops anew. Linear in the ops.
#include "passes/Passes.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_OPENKERNELS
#include "passes/Passes.h.inc"

namespace {

void open(ir::KernelOp kernel) {
  Block *body = kernel.getBlock(), *around = kernel->getBlock();
  for (auto [argument, input] : llvm::zip_equal(body->getArguments(), kernel.getInputs()))
    argument.replaceAllUsesWith(input);
  kernel->replaceAllUsesWith(kernel.getYield().getValues());
  body->getTerminator()->erase();
  around->getOperations().splice(Block::iterator(kernel), body->getOperations());
  kernel.erase();
}

struct OpenKernels : impl::OpenKernelsBase<OpenKernels> {
  using Base::Base;

  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      for (auto kernel : llvm::make_early_inc_range(block.getOps<ir::KernelOp>()))
        open(kernel);
  }
};
} // namespace

} // namespace wg::passes
