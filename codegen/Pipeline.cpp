#include "codegen/Pipeline.h"

#include "codegen/LowerToLLVM.h"
#include "ir/Calls.h"
#include "ir/Kernels.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <chrono>
#include <cstdlib>
#include <functional>

using namespace mlir;

namespace wg::codegen {

static constexpr llvm::StringLiteral kStageNames[kNumStages] = {"traced",  "dropped", "simplified", "fused",
                                                                "lowered", "llvm",    "assembly"};

StringRef nameOf(Stage stage) { return kStageNames[static_cast<int>(stage)]; }

std::optional<Stage> parseStage(StringRef name) {
  for (int i = 0; i < kNumStages; ++i)
    if (name == kStageNames[i])
      return static_cast<Stage>(i);
  return std::nullopt;
}

std::string stageNames() {
  std::string text;
  for (StringRef name : kStageNames)
    text += (text.empty() ? "" : ", ") + name.str();
  return text;
}

/// Replaces each wg.call by its callee's body: kernels form across calls. Each body is copied once for each call of it.
LogicalResult inlineCalls(func::FuncOp function, bool keepDerivatives) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  if (failed(ir::calleesFirst(function, symbols)))
    return failure();
  SmallVector<ir::CallOp> waiting;
  auto await = [&](Operation *root) { root->walk([&](ir::CallOp call) { waiting.push_back(call); }); };
  await(function);
  while (!waiting.empty()) {
    ir::CallOp call = waiting.pop_back_val();
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (keepDerivatives && callee->hasAttr(ir::kVjpAttr))
      continue;
    if (callee.isDeclaration())
      return call.emitOpError("calls @") << call.getCallee() << ", which has no body";
    OpBuilder b(call);
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getOperands());
    Block &body = callee.getBody().front();
    for (Operation &op : body.without_terminator())
      await(b.clone(op, mapping));
    SmallVector<Value> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(value));
    call->replaceAllUsesWith(results);
    call.erase();
  }
  return success();
}

static LogicalResult runPasses(func::FuncOp function, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(function.getContext(), func::FuncOp::getOperationName());
  pm.enableVerifier(std::getenv("WENGERT_VERIFY") != nullptr);
  build(pm);
  return pm.run(function);
}

/// Kernels are made of wg ops on static sizes; anything else ends here, with its name and line.
static LogicalResult checkCompilable(func::FuncOp function) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || tensor.hasStaticShape();
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isStatic(type)) {
      InFlightDiagnostic diagnostic = function.emitError()
                                      << "argument " << i << " of @" << function.getName() << " is " << type
                                      << ", and machine code is made for static sizes";
      diagnostic.attachNote()
          << "give the sizes of all arguments (wengert compile --types, or the pass wg-infer-shapes)";
      return diagnostic;
    }
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "@" << function.getName() << " has " << function.getBody().getBlocks().size()
                                << " blocks; a program of wg ops has one";
  std::function<LogicalResult(Block &)> check = [&](Block &block) -> LogicalResult {
    for (Operation &op : block) {
      if (!llvm::all_of(op.getResultTypes(), isStatic))
        return op.emitOpError() << "has the type " << op.getResultTypes().front()
                                << ", whose sizes do not follow from the arguments'";
      for (Type type : op.getResultTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type);
            tensor && isa<Float16Type, BFloat16Type>(tensor.getElementType()))
          return op.emitOpError() << "has the type " << type << ": there is no machine code for f16 and bf16 yet";
      bool returns = op.hasTrait<OpTrait::IsTerminator>();
      if (!returns && (!isa_and_nonnull<ir::WGDialect>(op.getDialect()) || isa<ir::DimOp, ir::SizeOp, ir::CallOp>(op)))
        return op.emitOpError() << "has no compiled form; machine code is made of wg ops on tensors";
      for (Value operand : op.getOperands())
        if (!isa<RankedTensorType>(operand.getType()))
          return op.emitOpError() << "reads a value of type " << operand.getType()
                                  << "; machine code is made of wg ops on tensors";
      if (auto kernel = dyn_cast<ir::KernelOp>(op); kernel && failed(check(*kernel.getBlock())))
        return failure();
    }
    return success();
  };
  return check(function.getBody().front());
}

/// Text may hold kernels that no emitter knows: of several loop nests, or of another kind than they say. So each body
/// is fused again by itself. Where one kernel comes out of it, as it does from those that Fuse made, the one in the
/// text stays; else those that come out take its place.
static LogicalResult fuseAgain(func::FuncOp function) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa<ir::KernelOp, ir::ReshapeOp, ir::ConstantOp>(op))
      return op.emitOpError("is outside of a kernel: the program is not at stage fused");
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (auto kernel : llvm::make_early_inc_range(function.getBody().front().getOps<ir::KernelOp>())) {
    Location loc = kernel.getLoc();
    OpBuilder b(function.getContext());
    auto alone = func::FuncOp::create(b, loc, "kernel",
                                      b.getFunctionType(kernel.getInputs().getTypes(), kernel.getResultTypes()));
    alone.setPrivate();
    symbols.insert(alone); // takes a free name
    Block *block = alone.addEntryBlock();
    b.setInsertionPointToStart(block);
    IRMapping mapping;
    mapping.map(kernel.getBlock()->getArguments(), block->getArguments());
    for (Operation &op : kernel.getBlock()->without_terminator())
      b.clone(op, mapping);
    SmallVector<Value> results;
    for (Value value : kernel.getYield().getValues())
      results.push_back(mapping.lookup(value));
    func::ReturnOp::create(b, loc, results);
    LogicalResult fused = checkCompilable(alone);
    if (succeeded(fused))
      fused = runPasses(alone, passes::addFuse);
    if (succeeded(fused)) {
      auto one = dyn_cast<ir::KernelOp>(block->front());
      bool stays = one && one.getKind() == kernel.getKind() && &*std::next(block->begin()) == block->getTerminator() &&
                   one.getNumResults() == kernel.getNumResults() &&
                   llvm::all_of(block->getTerminator()->getOperands(),
                                [&](Value value) { return value.getDefiningOp() == one; });
      if (!stays) {
        OpBuilder at(kernel);
        IRMapping back;
        back.map(block->getArguments(), kernel.getInputs());
        for (Operation &op : block->without_terminator())
          at.clone(op, back);
        SmallVector<Value> values;
        for (Value value : block->getTerminator()->getOperands())
          values.push_back(back.lookup(value));
        kernel->replaceAllUsesWith(values);
        kernel.erase();
      }
    }
    symbols.erase(alone);
    if (failed(fused))
      return failure();
  }
  for (auto kernel : function.getOps<ir::KernelOp>()) // whatever the text says of them
    kernel.describe();
  ir::decideWhoChecks(function);
  return success();
}

static int64_t countOps(Operation *root) {
  int64_t count = 0;
  root->walk(
      [&](Operation *op) { count += !isa<ModuleOp, func::FuncOp>(op) && !op->hasTrait<OpTrait::IsTerminator>(); });
  return count;
}

LogicalResult runPipeline(ModuleOp module, StringRef name, Stage from, Stage to, const Target &target,
                          std::vector<StageReport> *reports, std::vector<KernelReport> *kernels,
                          llvm::function_ref<void(Stage)> each, bool threads) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return module.emitError("no function @") << name << " in the module";
  auto clock = [] { return std::chrono::steady_clock::now(); };
  for (int i = static_cast<int>(from); i <= static_cast<int>(to); ++i) {
    Stage stage = static_cast<Stage>(i);
    if (stage != from) {
      auto start = clock();
      LogicalResult result = success();
      switch (stage) {
      case Stage::traced:
      case Stage::assembly: break;
      case Stage::dropped:
        // First, while each op is still the one that the rules wrote: what is erased here
        // is what the certificate lists.
        result = inlineCalls(function);
        if (succeeded(result))
          result = runPasses(function, [](OpPassManager &pm) { pm.addPass(passes::createDropDeadGradients()); });
        break;
      case Stage::simplified: result = runPasses(function, passes::addSimplify); break;
      case Stage::fused:
        result = runPasses(function, [](OpPassManager &pm) { pm.addPass(passes::createOpenKernels()); });
        if (succeeded(result))
          result = checkCompilable(function);
        if (succeeded(result))
          result = runPasses(function, passes::addFuse);
        break;
      case Stage::lowered: {
        // The last place that knows tensors: memory is planned and loops are written.
        if (from == Stage::fused && (failed(checkCompilable(function)) || failed(fuseAgain(function))))
          return failure();
        EntryInfo info;
        std::vector<KernelReport> ignored;
        for (auto other : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
          if (other != function)
            other.erase();
        result = emitProgram(module, function, target, threads, info, kernels ? *kernels : ignored);
        break;
      }
      case Stage::llvm: result = lowerToLLVM(module, target); break;
      }
      if (failed(result))
        return failure();
      if (reports)
        reports->push_back({stage, std::chrono::duration<double, std::milli>(clock() - start).count(),
                            countOps(stage < Stage::lowered ? function.getOperation() : module.getOperation())});
    } else if (reports && from == Stage::traced) {
      reports->push_back({stage, 0, countOps(function)});
    }
    if (each)
      each(stage);
  }
  return success();
}

} // namespace wg::codegen
