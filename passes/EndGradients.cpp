// Puts its operand in the place of each op that only tells gradients where to pass.
//
//   %s = wg.stop_gradient %x
//   %v = wg.version %s, %before                 %y = wg.tanh %x
//   %y = wg.tanh %v                      ->
//
// Legal because the value is that of the operand, and no gradient is taken of a program that is being compiled. Linear
// in the ops.
#include "passes/Passes.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_ENDGRADIENTS
#include "passes/Passes.h.inc"

namespace {
struct EndGradients : impl::EndGradientsBase<EndGradients> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<ir::StopGradientOp, ir::VersionOp>(op))
        return;
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    });
  }
};
} // namespace

} // namespace wg::passes
