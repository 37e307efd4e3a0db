// What a loop's body may have computed before the loop: by which passes agree about what a turn pays for.
#pragma once

#include "ir/Build.h"
#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace wg::passes {

/// Turns of a loop; of one of which nobody knows how many there will be, a few.
int64_t turnsOf(ir::LoopOp loop);

/// Whether an op may be computed where a loop begins, if its operands are there.
bool mayMove(mlir::Operation &op);

/// The last `numInvariants` arguments of a loop's body, and what follows from them alone.
llvm::DenseSet<mlir::Value> invariantsOf(mlir::Block &body, size_t numInvariants);

} // namespace wg::passes
