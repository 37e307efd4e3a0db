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

/// Products first: those that become sums of products join their neighbours, and a transpose that is left explicit is a
/// view to its readers.
void addFuse(OpPassManager &functions) {
  functions.addPass(createArrangeProducts());
  functions.addPass(createFuse());
}

void registerPasses() {
  registerPass([] { return createInferShapes(); });
  registerPass([] { return createDropDeadGradients(); });
  registerPass([] { return createEndGradients(); });
  registerPass([] { return createOpenKernels(); });
  registerPass([] { return createFoldConstants(); });
  registerPass([] { return createArrangeProducts(); });
  registerPass([] { return createFuse(); });
  PassPipelineRegistration<>(
      "wg-simplify", "What the stage simplified runs: end gradients, open kernels, canonicalise, fold constants, merge",
      [](OpPassManager &modules) { addSimplify(modules.nest<func::FuncOp>()); });
}

} // namespace wg::passes
