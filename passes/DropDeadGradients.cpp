// Erases cotangents that no requested gradient reads.
//
//   %da = wg.mul %ct, %b                      %da = wg.mul %ct, %b
//   %db = wg.mul %ct, %a          ->          return %da
//   return %da
//
// Legal because the ops of the dialect have no effect but their results. One sweep; linear in the ops.
// Why a cotangent is unread (not requested, on no path) is the certificate of autodiff/, written before this pass.
#include "passes/Passes.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_DROPDEADGRADIENTS
#include "passes/Passes.h.inc"

namespace {
struct DropDeadGradients : impl::DropDeadGradientsBase<DropDeadGradients> {
  using Base::Base;

  /// Bottom-up, so that a chain of unread cotangents is erased in one sweep.
  void runOnOperation() override {
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (!isOpTriviallyDead(op))
        return;
      op->erase();
    });
  }
};
} // namespace

} // namespace wg::passes
