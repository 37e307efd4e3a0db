// In which order are the operations of a loop of small turns written?
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace wg::codegen {

/// On a function whose blocks `orderForLatency` may order anew: of what it stores it loads nothing again, and its
/// vectors are spilled to whole cache lines (MachineCode.cpp).
inline constexpr llvm::StringLiteral kTurnsAttr = "wg.turns";

/// Writes what is independent side by side in the blocks of such functions.
void orderForLatency(mlir::ModuleOp module);

} // namespace wg::codegen
