// Where does every value of a fused function live?
//
//   %h = wg.kernel contract (...)          %h   arena +64
//   %w2 = wg.kernel map (... %w ...)  ->   %w2  in place of the argument %w
//   return %w2, %loss                      %loss result 1
//
// A kernel's result lives at the pointer of the function's result where it is one, in its donated argument
// where nobody reads the old value later, else in one arena at an offset that no other living value has (first
// fit by first use). Reshapes share, and so do a loop's stacks of the same values, a row apart.
#pragma once

#include "codegen/target/Cpu.h"
#include "ir/Dialect.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace wg::codegen {

/// A place in memory, as the entry function reaches it.
struct Place {
  enum Kind { argument, result, arena, constant } kind = arena;
  int64_t index = 0; ///< number of the argument, result or constant; byte offset in the arena
};

/// The first bytes of a workspace: where a failing kernel leaves the values at fault, as i64. The arena follows.
inline constexpr int64_t kWorkspaceHeader = 64;

struct MemoryPlan {
  llvm::DenseMap<mlir::Value, Place> places;          ///< of arguments, kernel results, constants and reshapes of them
  llvm::DenseMap<mlir::Operation *, int64_t> scratch; ///< kernels that need scratch -> its offset in the arena
  llvm::SmallVector<int64_t> donated;                 ///< per result: the argument it replaces, or -1
  llvm::SmallVector<ir::ConstantOp> constants;        ///< those read from memory
  /// Copies after the last kernel, in this order: bytes from one place to another.
  struct Copy {
    Place from, to;
    int64_t bytes;
  };
  llvm::SmallVector<Copy> copies;
  int64_t workspaceBytes = kWorkspaceHeader; ///< more than runtime::kMaxBytes if there is no such plan
};

/// `scratchBytes` holds what each kernel asked for. Nothing is donated before the last kernel that may fail, which
/// checks before it writes, or writes to no argument: where one fails, all arguments are as they were. Arguments with
/// the attribute `wg.result = r` are donated to result r.
/// `symbols` holds the bodies of its loops. Results that are `known` are where they belong once all others are.
MemoryPlan planMemory(mlir::func::FuncOp function, mlir::SymbolTable &symbols,
                      const llvm::DenseMap<mlir::Operation *, int64_t> &scratchBytes,
                      llvm::ArrayRef<unsigned> known = {});

} // namespace wg::codegen
