// All stages of a program by name, in order, each with the reason for its place.
#pragma once

#include "codegen/EmitProgram.h"
#include "codegen/target/Cpu.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace wg::codegen {

/// A program after each step. Up to `fused` it is a function of wg ops that the interpreter runs; after `lowered` it is
/// scf and vector code behind a C ABI; every one prints, parses back and verifies.
enum class Stage { traced, dropped, simplified, fused, lowered, llvm, assembly };
inline constexpr int kNumStages = 7;
llvm::StringRef nameOf(Stage stage);
std::optional<Stage> parseStage(llvm::StringRef name);
/// `traced, dropped, ...`: for messages.
std::string stageNames();

/// What a stage cost and left.
struct StageReport {
  Stage stage;
  double milliseconds = 0;
  int64_t ops = 0; ///< in the entry's function (and, once lowered, in the whole module)
};

/// Replaces each wg.call in `function` by its callee's body; one whose callee names its own derivative stays if
/// `keepDerivatives`. A function that calls itself is an error at the call.
mlir::LogicalResult inlineCalls(mlir::func::FuncOp function, bool keepDerivatives = false);

/// Takes `function` of `module` from stage `from` to stage `to` (at most llvm), in place. `reports` and
/// `kernels` may be null. `each` is called after every stage reached. `threads`: whether large kernels are
/// shared among the runtime's threads.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, llvm::StringRef function, Stage from, Stage to,
                                const Target &target, std::vector<StageReport> *reports = nullptr,
                                std::vector<KernelReport> *kernels = nullptr, llvm::function_ref<void(Stage)> each = {},
                                bool threads = true);

} // namespace wg::codegen
