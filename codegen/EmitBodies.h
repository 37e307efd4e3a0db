// The code of conditions and loops in an entry: branches and turns around calls of their bodies, each of which is a
// function `i32 (ptr args, ptr sizes, ptr workspace)` as the entry is, over pointers that the code hands over. No
// element is copied: rows are read and written where they lie, and a carried value moves between two places, or from
// row to row of a stack that keeps it.
#pragma once

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace wg::codegen {

/// A body's function.
struct EmittedBody {
  mlir::func::FuncOp function;
  int64_t workspaceBytes = 0;
  bool mayFail = false;
};

/// A part of a loop's state that lies in a stack of the loop, so that no turn copies it: in the row of each turn what
/// it is before it, or after it.
struct StateInStack {
  unsigned state, stack;
  bool isAfter;
};
struct StatesInStacks {
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<StateInStack>> ofLoop;
  /// Results of a loop's body that are where they belong once the state is.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> resultsOfBody;
};
/// Of these functions' loops of a known number of turns whose bodies nothing else runs.
StatesInStacks findStatesInStacks(llvm::ArrayRef<mlir::func::FuncOp> functions, const mlir::SymbolTable &symbols);

/// Where such an op is launched: at the insertion point of `b`, which follows the code that is written.
struct BodyLaunch {
  mlir::OpBuilder &b;
  mlir::func::FuncOp frame;
  mlir::Value scratch;                                    ///< of `bodyScratchBytes`, in the workspace
  llvm::function_ref<mlir::Value(mlir::Value)> pointerTo; ///< of an operand or a result
  llvm::function_ref<mlir::Value(mlir::Value base, int64_t offset)> byteOffset;
  /// Leaves the frame where `code` is an error's. What a failing body left at `from` goes to the workspace's header.
  llvm::function_ref<void(mlir::Value code, mlir::Value from)> returnIfError;
  /// The code of one more error of the entry, at the line of `op`.
  llvm::function_ref<int32_t(mlir::Operation *op, llvm::StringRef text)> addError;
  llvm::ArrayRef<StateInStack> states; ///< of a loop; its body writes them once
};

/// The error of a loop with `room`: how many turns there were, and the loop's number.
inline constexpr llvm::StringLiteral kRoomError = "loop: {} turns are more than there is room for in loop {}";

/// Whether it can fail itself, and not for one of its bodies.
bool mayLackRoom(mlir::Operation *op);
/// What the op needs of the workspace: its bodies' workspace, and the second places of what it carries.
int64_t bodyScratchBytes(mlir::Operation *op, llvm::ArrayRef<EmittedBody> bodies);
/// `bodies` are those of the op, in their order; of a loop that runs in registers its function instead (EmitTurns.h).
void emitBodyOp(mlir::Operation *op, llvm::ArrayRef<EmittedBody> bodies, BodyLaunch &launch,
                mlir::func::FuncOp turns = {});

} // namespace wg::codegen
