// From scf, arith, math, vector, func to the llvm dialect: the last step that MLIR takes.
#pragma once

#include "codegen/target/Cpu.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace wg::codegen {

/// The dialects of lowered programs.
void insertLoweredDialects(mlir::DialectRegistry &registry);
/// These and the translation of the llvm dialect. Call once for the process's context and
/// load what it registers (`loadAllAvailableDialects`) before compiling on several threads.
void registerLoweredDialects(mlir::DialectRegistry &registry);

/// Lowers `module` in place. Before: func, scf, cf, arith, math, vector, index, ub and the pointer ops of the llvm
/// dialect, no memref or tensor. After: the llvm dialect only; private functions with a body have internal linkage.
/// `callMath` is expandMath's. With the environment variable WENGERT_VERIFY=1 the module is verified between the
/// stages.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module, const Target &target, bool callMath = false);

} // namespace wg::codegen
