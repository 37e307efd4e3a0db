#include "codegen/Pipeline.h"

#include "codegen/LowerToLLVM.h"
#include "ir/Calls.h"
#include "ir/Kernels.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <chrono>
#include <cstdlib>

using namespace mlir;

namespace wg::codegen {

llvm::ArrayRef<StageInfo> stages() {
  static constexpr StageInfo kStages[kNumStages] = {
      {Stage::traced, "traced", "", "what the program did, op by op, its gradients written out by the rules"},
      {Stage::dropped, "dropped", "wg-drop",
       "calls are inlined and cotangents that nobody reads go, while each op is still the one that a rule wrote: what "
       "is "
       "erased here is what the certificate lists"},
      {Stage::simplified, "simplified", "wg-simplify",
       "gradients end, ops fold and merge: no gradient is taken any more, and no kernel should form of what folds "
       "away"},
      {Stage::fused, "fused", "wg-fuse",
       "products leave loops and get their form and order, loops leave to what is before them what all turns would "
       "compute, those that "
       "carry more than registers hold become several, and ops join kernels: the last place where a program is "
       "tensors"},
      {Stage::lowered, "lowered", "wg-lower",
       "loops are written for each kernel and memory is planned: all that decides speed is decided here"},
      {Stage::llvm, "llvm", "wg-to-llvm",
       "exp and its like become polynomials, loops become blocks: what LLVM's code generator reads"},
      {Stage::assembly, "assembly", "",
       "machine code, by LLVM's code generator alone: kernels are written as they run"},
  };
  return kStages;
}

StringRef nameOf(Stage stage) { return stages()[static_cast<int>(stage)].name; }

std::optional<Stage> parseStage(StringRef name) {
  for (const StageInfo &info : stages())
    if (name == info.name)
      return info.stage;
  return std::nullopt;
}

std::string stageNames() {
  std::string text;
  for (const StageInfo &info : stages())
    text += (text.empty() ? "" : ", ") + info.name.str();
  return text;
}

namespace {

/// The one program of a module, where nobody says which.
func::FuncOp onlyPublic(ModuleOp module) {
  func::FuncOp found;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal()) {
      if (found)
        return {};
      found = function;
    }
  return found;
}

/// Erases all functions but one and those that it runs.
LogicalResult keepOnly(ModuleOp module, func::FuncOp function) {
  SymbolTable symbols(module);
  FailureOr<SmallVector<func::FuncOp>> kept = ir::calleesFirst(function, symbols);
  if (failed(kept))
    return failure();
  for (func::FuncOp each : *kept)
    if (each.isExternal())
      return each.emitOpError("has no body");
  DenseSet<Operation *> keep(kept->begin(), kept->end());
  for (auto other : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!keep.contains(other))
      other.erase();
  return success();
}

/// The one that is named; this machine if none is. Says so where LLVM knows none of the name.
std::optional<Target> targetNamed(StringRef cpu, llvm::function_ref<void(const Twine &)> error) {
  std::optional<Target> target = cpu.empty() ? Target::host() : Target::named(cpu);
  if (!target)
    error("LLVM knows no x86-64 processor `" + cpu + "`");
  return target;
}

/// That of the pipeline; in a text pipeline, the one that is named.
std::optional<Target> targetOf(ModuleOp module, const PipelineOptions *options, StringRef cpu) {
  if (options)
    return options->target;
  return targetNamed(cpu, [&](const Twine &message) { module.emitError(message); });
}

/// The stage *lowered*: the last place that knows tensors. Memory is planned and loops are written.
struct Lower : PassWrapper<Lower, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Lower)
  Lower() = default;
  Lower(StringRef name, const PipelineOptions *options) : options(options) { function = name.str(); }
  Lower(const Lower &other) : PassWrapper(other), options(other.options) {}
  StringRef getArgument() const override { return "wg-lower"; }
  StringRef getDescription() const override { return "The stage lowered: plan memory, write the loops of each kernel"; }

  void getDependentDialects(DialectRegistry &registry) const override { insertLoweredDialects(registry); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp entry = function.empty() ? onlyPublic(module) : module.lookupSymbol<func::FuncOp>(function);
    if (!entry || entry.isExternal()) {
      module.emitError("wg-lower: ") << (function.empty() ? "name the program with function=NAME"
                                                          : "no function @" + function + " in the module");
      return signalPassFailure();
    }
    if (failed(keepOnly(module, entry)))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions{entry};
    llvm::append_range(functions, llvm::make_filter_range(module.getOps<func::FuncOp>(),
                                                          [&](func::FuncOp each) { return each != entry; }));
    for (func::FuncOp each : functions) {
      for (Operation &op : each.getBody().front().without_terminator()) {
        auto kernel = dyn_cast<ir::KernelOp>(op);
        if (kernel ? bool(kernel.getLoopsAttr()) : isa<ir::ReshapeOp, ir::ConstantOp>(op) || ir::isControl(&op))
          continue;
        op.emitOpError(kernel ? "has no loops, which wg-fuse-kernels decides"
                              : "is outside of a kernel: run wg-fuse first");
        return signalPassFailure();
      }
      ir::decideWhoChecks(each); // passes may have erased the kernel that did
    }
    EntryInfo info;
    std::vector<KernelReport> ignored;
    std::optional<Target> target = targetOf(module, options, cpu);
    EmitOptions how{.threads = options ? options->threads : bool(threads)};
    if (options)
      how.marks = options->marks, how.shared = options->shared;
    if (!target || failed(emitProgram(module, entry, *target, how, info,
                                      options && options->kernels ? *options->kernels : ignored)))
      signalPassFailure();
  }

  Option<std::string> function{*this, "function", llvm::cl::desc("the program [the only public function]")};
  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("LLVM's name of the processor [this one]")};
  Option<bool> threads{*this, "threads", llvm::cl::desc("share large kernels among threads"), llvm::cl::init(true)};
  const PipelineOptions *options = nullptr;
};

/// The stage *llvm*.
struct ToLLVM : PassWrapper<ToLLVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToLLVM)
  ToLLVM() = default;
  explicit ToLLVM(const PipelineOptions *options) : options(options) {}
  ToLLVM(const ToLLVM &other) : PassWrapper(other), options(other.options) {}
  StringRef getArgument() const override { return "wg-to-llvm"; }
  StringRef getDescription() const override {
    return "The stage llvm: expand functions, loops to blocks, the llvm dialect";
  }

  void getDependentDialects(DialectRegistry &registry) const override { insertLoweredDialects(registry); }

  void runOnOperation() override {
    std::optional<Target> target = targetOf(getOperation(), options, cpu);
    if (!target || failed(lowerToLLVM(getOperation(), *target, options && options->callMath)))
      signalPassFailure();
  }

  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("LLVM's name of the processor [this one]")};
  const PipelineOptions *options = nullptr;
};

struct FuseOptions : PassPipelineOptions<FuseOptions> {
  Option<std::string> cpu{*this, "cpu", llvm::cl::desc("LLVM's name of the processor [this one]")};
};

/// The stage *fused*.
LogicalResult addFuse(OpPassManager &modules, StringRef text, llvm::function_ref<LogicalResult(const Twine &)> error) {
  FuseOptions options;
  if (failed(options.parseFromString(text)))
    return failure();
  std::optional<Target> target =
      targetNamed(options.cpu, [&](const Twine &message) { static_cast<void>(error(message)); });
  if (!target)
    return failure();
  passes::addFuse(modules, target->machine);
  return success();
}

void addStage(Stage stage, StringRef function, const PipelineOptions &options, OpPassManager &modules) {
  switch (stage) {
  case Stage::traced:
  case Stage::assembly: break;
  case Stage::dropped: return passes::addDrop(modules, function);
  case Stage::simplified: return passes::addSimplify(modules.nest<func::FuncOp>());
  case Stage::fused:
    return options.arranged ? passes::addFuseArranged(modules)
                            : passes::addFuse(modules, options.target.machine, options.choose);
  case Stage::lowered: return modules.addPass(std::make_unique<Lower>(function, &options));
  case Stage::llvm: return modules.addPass(std::make_unique<ToLLVM>(&options));
  }
}

LogicalResult runPasses(ModuleOp module, bool verify, llvm::function_ref<LogicalResult(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  pm.enableVerifier(verify);
  return failed(build(pm)) ? failure() : pm.run(module);
}

} // namespace

static int64_t countOps(Operation *root) {
  int64_t count = 0;
  root->walk(
      [&](Operation *op) { count += !isa<ModuleOp, func::FuncOp>(op) && !op->hasTrait<OpTrait::IsTerminator>(); });
  return count;
}

LogicalResult runPipeline(ModuleOp module, StringRef name, Stage from, Stage to, const PipelineOptions &options) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return module.emitError("no function @") << name << " in the module";
  auto clock = [] { return std::chrono::steady_clock::now(); };
  bool verify = std::getenv("WENGERT_VERIFY") != nullptr;
  if (from > Stage::traced && from < Stage::lowered && failed(keepOnly(module, function)))
    return failure();
  for (int i = static_cast<int>(from); i <= static_cast<int>(to); ++i) {
    Stage stage = static_cast<Stage>(i);
    auto start = clock();
    if (stage != from && failed(runPasses(module, verify, [&](OpPassManager &modules) {
          if (stage == Stage::lowered && from == Stage::fused) // kernels of a text
            modules.addPass(passes::createFuseKernels({options.target.machine}));
          addStage(stage, name, options, modules);
          return success();
        })))
      return failure();
    if (stage == Stage::dropped && from == Stage::traced && failed(keepOnly(module, function)))
      return failure();
    for (const PassesAfter &extra : options.passes)
      if (extra.stage == stage && failed(runPasses(module, /*verify=*/true, [&](OpPassManager &modules) {
            std::string problem;
            llvm::raw_string_ostream text(problem);
            if (succeeded(parsePassPipeline(extra.pipeline, modules, text)))
              return success();
            module.emitError("the passes after stage ") << nameOf(stage) << ": " << StringRef(problem).trim();
            return LogicalResult(failure());
          })))
        return failure();
    if (stage < Stage::lowered) { // a pass may have put another in its place, and one of the caller's may erase it
      function = module.lookupSymbol<func::FuncOp>(name);
      if (!function || function.isExternal())
        return module.emitError("the passes after stage ") << nameOf(stage) << " leave no function @" << name;
    } else if (!module.lookupSymbol(name)) {
      return module.emitError("the passes after stage ") << nameOf(stage) << " leave no function @" << name;
    }
    if (options.reports && (stage != from || from == Stage::traced))
      options.reports->push_back(
          {stage, stage == from ? 0 : std::chrono::duration<double, std::milli>(clock() - start).count(),
           countOps(stage < Stage::lowered ? function.getOperation() : module.getOperation())});
    if (options.each)
      options.each(stage);
  }
  return success();
}

void registerStages() {
  passes::registerPasses();
  registerPassPipeline("wg-fuse",
                       "The stage fused: open kernels, check that all is compilable, take products out of loops, "
                       "multiply tables and not their rows, arrange products, hoist invariants, distribute loops, "
                       "group ops, end barriers",
                       addFuse,
                       [](llvm::function_ref<void(const detail::PassOptions &)> show) { show(FuseOptions()); });
  registerPass([] { return std::make_unique<Lower>(); });
  registerPass([] { return std::make_unique<ToLLVM>(); });
}

} // namespace wg::codegen
