#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace wg::passes {

/// Folding first shows canonicalisation its constants; merging last sees what both made equal.
void addSimplify(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createFoldConstants());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void registerPasses() {
  registerPass([] { return createInferShapes(); });
  registerPass([] { return createDropDeadGradients(); });
  registerPass([] { return createFoldConstants(); });
  registerPass([] { return createFuse(); });
  PassPipelineRegistration<>("wg-simplify", "Fold constants, canonicalise, merge common subexpressions", addSimplify);
}

} // namespace wg::passes
