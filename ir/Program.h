// What is a program, and what is machine code? Text up to the stage `fused` holds functions of wg ops on tensors and
// nothing else; anything else counts as lowered, and is run only on request.
#pragma once

#include "ir/Dialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace wg::ir {

/// The first op that a program does not hold: anything but the module, `func.func`s of tensors and indices,
/// `func.return`, wg ops, and `arith.constant` of an index. Null if there is none.
mlir::Operation *findForeign(mlir::ModuleOp module);

/// Every argument, result and block argument of the function has a type of a wg value (ir::isValueType), also where no
/// op reads it; else a diagnostic.
mlir::LogicalResult checkTypes(mlir::func::FuncOp function);

/// No place of `root` carries metadata, which would reach LLVM as debug information; else a diagnostic.
mlir::LogicalResult checkPlaces(mlir::Operation *root);

/// No foreign op; each function has a body of one block and types that wg values have; no place
/// carries metadata. Else a diagnostic.
mlir::LogicalResult checkProgram(mlir::ModuleOp module);

} // namespace wg::ir
