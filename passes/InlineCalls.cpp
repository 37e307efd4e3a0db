// Puts the body of each function where it is called.
//
//   func @square(%a) { %s = wg.mul %a, %a   return %s }
//
//   %y = wg.call @square(%x)              ->      %y = wg.mul %x, %x
//
// Legal because functions are pure and do not call themselves. Each body is copied once for each call of it: kernels
// form across calls. What conditions and loops run stays a function, whose own calls are inlined. Linear in the ops
// that there are afterwards; ir/Calls refuses programs whose calls multiply beyond memory.
#include "ir/Build.h"
#include "ir/Calls.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_INLINECALLS
#include "passes/Passes.h.inc"

LogicalResult inlineCalls(func::FuncOp function, bool keepDerivatives) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  if (failed(ir::calleesFirst(function, symbols)))
    return failure();
  SmallVector<ir::CallOp> waiting;
  llvm::SetVector<Operation *> bodies; // and the function itself
  auto await = [&](Operation *root) {
    root->walk([&](ir::WithBodies op) {
      if (auto call = dyn_cast<ir::CallOp>(op.getOperation()))
        waiting.push_back(call);
      else
        for (FlatSymbolRefAttr name : op.bodyNames())
          bodies.insert(symbols.lookup(name.getAttr()));
    });
  };
  bodies.insert(function);
  size_t begun = 0;
  auto next = [&] {
    while (waiting.empty() && begun < bodies.size())
      await(bodies[begun++]);
    return !waiting.empty();
  };
  while (next()) {
    ir::CallOp call = waiting.pop_back_val();
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (keepDerivatives &&
        (callee->hasAttr(ir::kVjpAttr) || callee->hasAttr(ir::kRecomputeAttr) || callee->hasAttr(ir::kPreventAttr)))
      continue;
    if (callee.isDeclaration())
      return call.emitOpError("calls @") << call.getCallee() << ", which has no body";
    OpBuilder b(call);
    call->replaceAllUsesWith(ir::cloneBody(b, callee.getBody().front(), call.getOperands(), await));
    call.erase();
  }
  return success();
}

namespace {

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  using Base::Base;

  void runOnOperation() override {
    for (auto f : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!f.isDeclaration() && (function.empty() ? f.isPublic() : f.getName() == function) &&
          failed(inlineCalls(f, false)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace wg::passes
