// Fuses the body of each kernel of a text by itself.
//
//   wg.kernel map (...) {              wg.kernel map (...) { wg.tanh }
//     wg.tanh                   ->     wg.kernel reduce (...) { wg.reduce_sum }
//     wg.reduce_sum
//   }
//
// Legal because a kernel is its body. Text may hold kernels that no emitter knows: of several loop nests, or of another
// kind than they say. Where one kernel comes out of a body, as it does from those that fusion made, the one in the text
// stays; else those that come out take its place. What is decided about a kernel is decided anew. Linear in the ops.
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Kernels.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_FUSEKERNELS
#include "passes/Passes.h.inc"

/// What comes of a kernel's body that stands alone.
static LogicalResult fuse(func::FuncOp alone, Machine machine) {
  arrangeProducts(alone, machine);
  PassManager pm(alone.getContext(), func::FuncOp::getOperationName());
  pm.enableVerifier(false);
  pm.addPass(createGroupOps());
  return pm.run(alone);
}

static LogicalResult fuseKernels(func::FuncOp function, Machine machine) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa<ir::KernelOp, ir::ReshapeOp, ir::ConstantOp>(op) && !ir::isControl(&op))
      return op.emitOpError("is outside of a kernel: the program is not at stage fused");
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (auto kernel : llvm::make_early_inc_range(function.getBody().front().getOps<ir::KernelOp>())) {
    Location loc = kernel.getLoc();
    OpBuilder b(function.getContext());
    auto alone = func::FuncOp::create(b, loc, "kernel",
                                      b.getFunctionType(kernel.getInputs().getTypes(), kernel.getResultTypes()));
    alone.setPrivate();
    symbols.insert(alone); // takes a free name
    Block *block = alone.addEntryBlock();
    b.setInsertionPointToStart(block);
    SmallVector<Value> results = ir::cloneBody(b, *kernel.getBlock(), block->getArguments());
    func::ReturnOp::create(b, loc, results);
    LogicalResult fused = checkCompilable(alone);
    if (succeeded(fused))
      fused = fuse(alone, machine);
    if (succeeded(fused)) {
      auto one = dyn_cast<ir::KernelOp>(block->front());
      bool stays = one && one.getKind() == kernel.getKind() && &*std::next(block->begin()) == block->getTerminator() &&
                   one.getNumResults() == kernel.getNumResults() &&
                   llvm::all_of(block->getTerminator()->getOperands(),
                                [&](Value value) { return value.getDefiningOp() == one; });
      if (!stays) {
        OpBuilder at(kernel);
        kernel->replaceAllUsesWith(ir::cloneBody(at, *block, kernel.getInputs()));
        kernel.erase();
      }
    }
    symbols.erase(alone);
    if (failed(fused))
      return failure();
  }
  for (auto kernel : function.getOps<ir::KernelOp>()) // whatever the text says of them
    kernel.describe();
  ir::decideWhoChecks(function);
  return success();
}

namespace {

struct FuseKernels : impl::FuseKernelsBase<FuseKernels> {
  using Base::Base;
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && (failed(checkCompilable(function)) || failed(fuseKernels(function, machine))))
        return signalPassFailure();
  }
};

} // namespace
} // namespace wg::passes
