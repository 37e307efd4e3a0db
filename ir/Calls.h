// Which functions does a function call? Every walk over calls (inlining, flattening, size inference, derivatives) asks
// here first, so that none of them meets a function that is missing, one that calls itself, or more ops than memory has
// room for.
#pragma once

#include "ir/Dialect.h"

namespace wg::ir {

/// On a function: its derivatives, as the autodiff room made them for the function's types.
inline constexpr llvm::StringLiteral kPairsAttr = "wg.pairs";

/// On a function: its batched forms, made in the same way.
inline constexpr llvm::StringLiteral kBatchesAttr = "wg.batches";

/// Takes both away: from a function that is in another module, or of other types, than when they were made.
void forgetDerived(mlir::func::FuncOp function);

/// On a function: the name of another, its derivative, which is called in place of what its body says. A gradient hook
/// is the identity with one.
inline constexpr llvm::StringLiteral kVjpAttr = "wg.vjp";

/// On a function: its derivative in reverse mode keeps its arguments alone, and computes all else again.
inline constexpr llvm::StringLiteral kRecomputeAttr = "wg.recompute";

/// On a function: why no gradient passes it. A derivative that would is an error with this text.
inline constexpr llvm::StringLiteral kPreventAttr = "wg.prevent";

/// On a function that names its derivative: the name of another, that in forward mode, which takes operands, results,
/// and tangents of the operands that `wg.arguments` of it lists, and returns tangents of the float results. As a unit
/// attribute: forward mode transposes the derivative.
inline constexpr llvm::StringLiteral kJvpAttr = "wg.jvp";

/// The names of the derivatives that a function states: kVjpAttr, kJvpAttr.
inline constexpr llvm::StringLiteral kStatedDerivatives[] = {kVjpAttr, kJvpAttr};

/// How many ops a program may have when each function is counted once for each call of it.
inline constexpr int64_t kMostInlinedOps = int64_t(1) << 22;

/// How deep conditions and loops may be nested in one another.
inline constexpr int kMostNested = 256;

/// An error at the call unless there is such a function, which is one block that returns, or has no body.
mlir::LogicalResult checkCallee(CallOp call, mlir::func::FuncOp callee);
/// The same of one of the functions that `op` runs.
mlir::LogicalResult checkCallee(mlir::Operation *op, mlir::FlatSymbolRefAttr name, mlir::func::FuncOp callee);

/// The type of a stack of `length` values of type `row` (-1: of any number).
mlir::RankedTensorType stackOf(mlir::Type row, int64_t length);

/// The type of what a turn sees of a tensor that is scanned, or gives of one that is stacked.
mlir::RankedTensorType rowTypeOf(mlir::Type stack);
/// The types of a loop's results: what is carried, the number of turns if there is a condition, stacks of `rows`.
llvm::SmallVector<mlir::Type> loopTypes(mlir::MLIRContext *context, mlir::TypeRange carried, bool hasCondition,
                                        mlir::TypeRange rows, int64_t length);

/// Whether it is a condition or a loop: an op with bodies that is not a call, which is inlined.
bool isControl(mlir::Operation *op);

/// Whether the loop stacks, or reads, something of each turn, and nothing says how many turns there are at most.
bool isUnbounded(LoopOp loop);
/// Of these in `module`, in its order, those that stack: what the others read comes from one of them.
llvm::SmallVector<LoopOp> unboundedLoops(mlir::ModuleOp module);
/// Gives loop i of `unboundedLoops` room for `turns[i]` turns. The types of what follows are to be inferred again.
void giveRoom(mlir::ModuleOp module, llvm::ArrayRef<int64_t> turns);

/// All that `root` calls, directly or through others: each function once, after those that it calls itself, and `root`
/// last. An error at the call if there is no such function, if it calls itself, or if it is not one block that returns;
/// an error at `root` if it has more than kMostInlinedOps, or nests more than kMostNested. A function without a body
/// calls nothing. `ops` is told how many there are, each function counted once for each call of it.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>>
calleesFirst(mlir::func::FuncOp root, const mlir::SymbolTable &symbols, int64_t *ops = nullptr);

} // namespace wg::ir
