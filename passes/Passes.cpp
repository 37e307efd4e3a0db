#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace wg::passes {

/// Kernels are opened first: their ops fold, and no kernel is left without what it is made for. Folding then shows
/// canonicalisation its constants; merging last sees what both made equal.
void addSimplify(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createOpenKernels());
  manager.addNestedPass<func::FuncOp>(createFoldConstants());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void registerPasses() {
  registerPass([] { return createInferShapes(); });
  registerPass([] { return createDropDeadGradients(); });
  registerPass([] { return createOpenKernels(); });
  registerPass([] { return createFoldConstants(); });
  registerPass([] { return createFuse(); });
  PassPipelineRegistration<>("wg-simplify", "Open kernels, fold constants, canonicalise, merge common subexpressions",
                             addSimplify);
}

} // namespace wg::passes
