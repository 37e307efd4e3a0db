// Reverse mode as a transform of straight-line IR: appends the adjoint of what lies between sources and targets.
//
//   %y = wg.tanh %x        becomes        %y = wg.tanh %x
//                                         %one = wg.constant dense<1.0>     (the seed)
//                                         %dx = ... tanh's own rule, called with ct = %one
//
// The result is ordinary IR, so its derivative is found in the same way.
#pragma once

#include "autodiff/Activity.h"

#include "ir/Calls.h"
#include "ir/Dialect.h"

#include <string>
#include <vector>

namespace wg::autodiff {

struct ReverseOptions {
  /// The ops that a tape has seen; the others are constants to it. Null: all.
  llvm::function_ref<bool(mlir::Operation *)> isRecorded = nullptr;
  /// Told when a call was replaced by one of its forward function, which has the same first results. The old op is
  /// erased afterwards; its uses have been replaced.
  llvm::function_ref<void(mlir::Operation *before, mlir::Operation *after)> replaced = nullptr;
  /// Declares the derivative of a call whose callee names one (kVjpAttr) for just those results that have a cotangent.
  /// Null: the named one is called, with zeros for the rest.
  llvm::function_ref<mlir::FailureOr<mlir::func::FuncOp>(ir::CallOp call, llvm::ArrayRef<unsigned> results)>
      derivativeOf = nullptr;
  /// The symbols of the module, in which the functions that are made get names. Null: found when they are needed.
  mlir::SymbolTable *symbols = nullptr;
};

/// The gradients by sources, or the tangents of targets.
struct Derivatives {
  /// One for each, of its type; null where there is none.
  llvm::SmallVector<mlir::Value> values;
  /// Why there is none: integer dtype, no path, blocked at an op. Empty where there is one.
  std::vector<std::string> reasons;
  /// What is not computed: not requested, no path to the loss, or behind an op that stops derivatives.
  std::vector<DroppedAdjoint> certificate;
};
using Gradients = Derivatives;
using Tangents = Derivatives;

/// Appends, at the insertion point of `b`, the gradient of the sum of all targets' elements, weighted by `seeds`, by
/// each source. A null seed is ones; `seeds` may be empty. Sources may be arguments or intermediate values, repeated,
/// or targets themselves. All values live in one block, before the insertion point. An op on the path without a rule is
/// an error at its location.
mlir::FailureOr<Gradients> reverse(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange targets,
                                   mlir::ValueRange seeds, mlir::ValueRange sources,
                                   const ReverseOptions &options = {});

/// In which direction a derivative runs: cotangents of results to those of arguments, or tangents of arguments to those
/// of results.
enum class Mode { reverse, forward };

/// A function split for differentiation by some of its arguments and from some of its results: `forward` returns its
/// results and then residuals; `linear` takes residuals, then the cotangents of `results` (or the tangents of
/// `arguments`), and returns one cotangent for each of `arguments` (or one tangent for each of `results`) that has one.
struct FunctionPair {
  mlir::func::FuncOp forward, linear;
  /// Where the leading operands of `linear` come from: argument i as i, the k-th residual as -1 - k.
  llvm::SmallVector<int64_t> residuals;
  /// Per entry of `arguments` (or `results`): whether `linear` returns its derivative, and if not, why there is none.
  llvm::SmallVector<bool> returned;
  std::vector<std::string> reasons;
  std::vector<DroppedAdjoint> certificate;
};

/// Makes the pair in the module of `function`, or finds it on the function, where it hangs as an attribute: one pair
/// for each set of arguments and results and each mode. A function that calls itself is an error at the call.
mlir::FailureOr<FunctionPair> functionPair(mlir::func::FuncOp function, llvm::ArrayRef<unsigned> arguments,
                                           llvm::ArrayRef<unsigned> results, Mode mode = Mode::reverse);

/// The function that it names takes the operands, the results and the cotangents of the float ones among the first
/// `wg.results` results, and returns the cotangents of those operands that its own `wg.arguments` lists.
using ir::kVjpAttr;
inline constexpr llvm::StringLiteral kNumResultsAttr = "wg.results";
inline constexpr llvm::StringLiteral kArgumentsAttr = "wg.arguments";
/// On that function: why an operand has no gradient, one text for each operand, empty where it has one.
inline constexpr llvm::StringLiteral kReasonsAttr = "wg.reasons";

/// Erases ops from the end of `block` down to `first` (exclusive) that nobody reads.
void eraseDead(mlir::Block &block, mlir::Operation *first);

} // namespace wg::autodiff
