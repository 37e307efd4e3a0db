#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace wg::passes {

/// Before kernels form, so that none is formed of what folds away or is computed twice. Those of a text are opened
/// first: their ops fold, and no kernel is left without what it is made for. Canonicalisation leaves folding its
/// constants; merging last sees what both made equal.
void addSimplify(OpPassManager &functions) {
  functions.addPass(createEndGradients());
  functions.addPass(createOpenKernels());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createFoldConstants());
  functions.addPass(createCSEPass());
}

/// First, while each op is still the one that the rules wrote: what is erased here is what the certificate lists.
void addDrop(OpPassManager &modules, StringRef function) {
  modules.addPass(createInlineCalls(InlineCallsOptions{function.str()}));
  modules.nest<func::FuncOp>().addPass(createDropDeadGradients());
}

/// Products first: those of all turns leave loops, and are then of rows that a table has; those that become sums of
/// products join their neighbours, and a transpose that is left explicit is a view to its readers. Then what loops
/// compute of invariants leaves them, such transposes too, while it may still join the kernels around a loop.
void addFuse(OpPassManager &modules, Machine machine, ChooseForm choose) {
  OpPassManager &ready = modules.nest<func::FuncOp>();
  ready.addPass(createOpenKernels());
  ready.addPass(createCheckCompilable());
  modules.addPass(createProductsLeaveLoops());
  modules.nest<func::FuncOp>().addPass(createProductsOfTables());
  modules.addPass(createArrangeProducts(machine, choose));
  addFuseArranged(modules);
}

void addFuseArranged(OpPassManager &modules) {
  modules.addPass(createHoistInvariants());
  modules.addPass(createDistributeLoops());
  OpPassManager &functions = modules.nest<func::FuncOp>();
  functions.addPass(createGroupOps());
  functions.addPass(createEndBarriers());
}

void registerPasses() {
  registerPass([] { return createInferShapes(); });
  registerPass([] { return createDropDeadGradients(); });
  registerPass([] { return createEndGradients(); });
  registerPass([] { return createOpenKernels(); });
  registerPass([] { return createFoldConstants(); });
  registerPass([] { return createProductsLeaveLoops(); });
  registerPass([] { return createProductsOfTables(); });
  registerPass([] { return createArrangeProducts(); });
  registerPass([] { return createHoistInvariants(); });
  registerPass([] { return createDistributeLoops(); });
  registerPass([] { return createGroupOps(); });
  registerPass([] { return createEndBarriers(); });
  registerPass([] { return createInlineCalls(); });
  registerPass([] { return createCheckCompilable(); });
  registerPass([] { return createFuseKernels(); });
  PassPipelineRegistration<>("wg-drop", "The stage dropped: inline calls, drop dead gradients",
                             [](OpPassManager &modules) { addDrop(modules); });
  PassPipelineRegistration<>("wg-simplify",
                             "The stage simplified: end gradients, open kernels, canonicalise, fold constants, merge",
                             [](OpPassManager &modules) { addSimplify(modules.nest<func::FuncOp>()); });
}

} // namespace wg::passes
