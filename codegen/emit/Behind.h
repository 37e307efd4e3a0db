// Recurrences of a loop that run a turn behind those that they read.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace wg::codegen {

/// Rewrites the loops of `turns`, a function of one loop in registers, whose turns are bound by a chain of operations
/// that such a shift makes shorter. What is stored, and its bits but for which products and sums contract, stays.
void runBehind(mlir::func::FuncOp turns);

} // namespace wg::codegen
