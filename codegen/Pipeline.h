// All stages of a program by name, in order, each with the reason for its place.
#pragma once

#include "codegen/EmitProgram.h"
#include "codegen/target/Cpu.h"
#include "passes/Passes.h"

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

/// One stage of the pipeline: what it is called, the pass (or pipeline of passes) that `wengert-opt` knows it by, and
/// why it stands where it stands. A stage is what its pass does, and nothing else.
struct StageInfo {
  Stage stage;
  llvm::StringLiteral name;
  llvm::StringLiteral pass; ///< empty: the start, and what is no IR any more
  llvm::StringLiteral reason;
};
llvm::ArrayRef<StageInfo> stages();

/// Passes of the caller's, run when a stage has been reached: a pipeline in MLIR's text form, of the whole module, such
/// as `func.func(cse,wg-fold-constants)`.
struct PassesAfter {
  Stage stage;
  std::string pipeline;
};

struct PipelineOptions {
  Target target = Target::host();
  bool threads = true; ///< whether large kernels are shared among the runtime's threads
  std::vector<PassesAfter> passes = {};
  std::vector<StageReport> *reports = nullptr;
  std::vector<KernelReport> *kernels = nullptr;
  Marks *marks = nullptr;                    ///< of what launches take (EmitOptions)
  bool callMath = false;                     ///< exp and its like as functions, however few (VectorMath)
  SharedKernels *shared = nullptr;           ///< with it a program may declare kernels that others have
  bool arranged = false;                     ///< products have the form that they are to have
  passes::ChooseForm choose = {};            ///< the form of a product, where several may be the fastest
  llvm::function_ref<void(Stage)> each = {}; ///< called after every stage reached; outlives the call
};

/// Takes `function` of `module` from stage `from` to stage `to` (at most llvm), in place. When calls have been inlined,
/// the other functions go.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, llvm::StringRef function, Stage from, Stage to,
                                const PipelineOptions &options = {});

/// All passes and stages by name, for tools that read pipelines.
void registerStages();

} // namespace wg::codegen
