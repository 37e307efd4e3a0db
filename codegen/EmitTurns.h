// Loops whose turns are a few small elementwise kernels: one function that runs all turns, the state in registers.
#pragma once

#include "codegen/target/Cpu.h"
#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace wg::codegen {

/// The loops of a program that become one function each, with all that they run.
struct LoopsInRegisters {
  struct Turns {
    mlir::func::FuncOp function; ///< once it is declared
    llvm::SmallVector<mlir::func::FuncOp> bodies;
    bool isWritten = true; ///< elsewhere
  };
  llvm::MapVector<mlir::Operation *, Turns> loops;
  /// Bodies that nothing but such loops runs: one of these loops. Others stay functions of their own as well.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> bodies;
};
/// Of these functions, which have been fused.
LoopsInRegisters findTurns(llvm::ArrayRef<mlir::func::FuncOp> functions, mlir::SymbolTable &symbols,
                           const Target &target);

/// `(pointers of the initial values, scanned tensors, invariants, final values, stacked results; i64 most)
/// -> i64`: runs `most` turns, or as many as its condition wants, and returns their number.
mlir::FunctionType turnsType(mlir::Operation *loop);

/// Writes the body of `into`, a function of that type.
mlir::LogicalResult emitTurns(mlir::Operation *loop, llvm::ArrayRef<mlir::func::FuncOp> bodies, const Target &target,
                              mlir::func::FuncOp into);

/// Whether it runs as many turns as it says, and keeps a row of each.
bool keepsEachTurn(ir::LoopOp loop);

/// Two stacks of a loop of `length` turns: a part of its state before each turn, and the same part after it.
struct StacksOfState {
  mlir::Value before, after;
  int64_t length;
};
/// Those of `op`, if it is a loop of a known number of turns, first to last, whose body is among `symbols`.
llvm::SmallVector<StacksOfState> stacksOfState(mlir::Operation *op, mlir::SymbolTable &symbols);

} // namespace wg::codegen
