// Replaces each barrier by its operand, once the order of the kernels is fixed.
//
//   %b = wg.barrier %x after %ct
//   %k = wg.kernel map (%a = %b : ...)      ->   %k = wg.kernel map (%a = %x : ...)
//
// Legal because a barrier's value is that of its operand, and nothing changes the order of kernels afterwards.
#include "passes/Passes.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_ENDBARRIERS
#include "passes/Passes.h.inc"

namespace {
struct EndBarriers : impl::EndBarriersBase<EndBarriers> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](ir::BarrierOp op) {
      op.getY().replaceAllUsesWith(op.getX());
      op.erase();
    });
  }
};
} // namespace

} // namespace wg::passes
