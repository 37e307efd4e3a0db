// Derivatives as passes over textual IR.
#pragma once

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace wg::autodiff {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "autodiff/Passes.h.inc"

/// All passes of this room by name. For tools that read pipelines.
inline void registerPasses() { registerAutodiffPasses(); }

} // namespace wg::autodiff
