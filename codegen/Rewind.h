// A loop and the loop of its derivative, where the states that go from one to the other are to be computed again.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace wg::codegen {

/// In the functions, which are fused: of each loop with `checkpoints` whose stacked states only a later loop with
/// `checkpoints` reads, makes a loop that stacks nothing, or none, and a `rewind`.
/// \returns whether there was one.
bool makeRewinds(llvm::ArrayRef<mlir::func::FuncOp> functions, mlir::SymbolTable &symbols);

} // namespace wg::codegen
