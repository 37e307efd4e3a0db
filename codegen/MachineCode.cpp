#include "codegen/MachineCode.h"

#include "codegen/EmitProgram.h"
#include "codegen/emit/Order.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/RuntimeLibcallInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

using namespace llvm;

namespace wg::codegen {

runtime::Failure internalError(std::string stage, std::string message) {
  return {.kind = runtime::ErrorKind::internal, .message = stage + ": " + message};
}

static std::unique_ptr<TargetMachine> targetMachine(const Target &target) {
  std::string error;
  Triple triple(target.triple);
  const llvm::Target *backend = TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  TargetOptions options;
  options.UseInitArray = true;
  return std::unique_ptr<TargetMachine>(backend->createTargetMachine(
      triple, target.cpu, target.features, options, Reloc::PIC_, std::nullopt, CodeGenOptLevel::Default));
}

runtime::Result<std::unique_ptr<Module>> translate(mlir::ModuleOp module, const Target &target, LLVMContext &context,
                                                   function_ref<bool(StringRef)> allowed) {
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(module, context, "wengert", /*disableVerification=*/true);
  if (!result)
    return internalError("translate", "the module is not of the llvm dialect alone");
  std::unique_ptr<TargetMachine> machine = targetMachine(target);
  if (!machine)
    return internalError("translate", "LLVM has no code generator for " + target.triple);
  result->setDataLayout(machine->createDataLayout());
  result->setTargetTriple(machine->getTargetTriple());
  for (Function &function : *result) {
    if (function.isIntrinsic())
      continue;
    if (function.isDeclaration()) {
      if (!allowed(function.getName()))
        return runtime::Failure{.kind = runtime::ErrorKind::lookup,
                                .message = "compiled code names the function '" + function.getName().str() +
                                           "', which is neither its own nor one of libm, libc or the runtime",
                                .remedy = "define the function in the module"};
      continue;
    }
    function.addFnAttr(Attribute::NoUnwind);
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBytes * 8));
  }
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    Function &made = *result->getFunction(function.getName());
    if (function->hasAttr(kTurnsAttr))
      made.addFnAttr(Attribute::getWithStackAlignment(context, Align(static_cast<uint64_t>(target.vectorBytes))));
    if (function->hasAttr(kPartAttr)) {
      made.addFnAttr(Attribute::OptimizeNone);
      made.addFnAttr(Attribute::NoInline);
    }
  }
  for (GlobalVariable &variable : result->globals())
    if (variable.isDeclaration() && !allowed(variable.getName()))
      return runtime::Failure{.kind = runtime::ErrorKind::lookup,
                              .message = "compiled code names the object '" + variable.getName().str() +
                                         "', which it does not define"};
  return std::move(result);
}

namespace {
/// What TargetPassConfig lets its subclasses do, which are LLVM's own.
struct PassConfig : TargetPassConfig {
  static bool addSelection(TargetPassConfig &config) { return (config.*&PassConfig::addCoreISelPasses)(); }
};
} // namespace

/// What no code of ours has (collectors of garbage, exceptions, marks for tracers, debug values, parts of registers
/// that live by themselves), and what finds next to nothing in loops that are written as they should run.
static char *const kNotNeeded[] = {&GCLoweringID,
                                   &ShadowStackGCLoweringID,
                                   &GCMachineCodeAnalysisID,
                                   &FixupStatepointCallerSavedID,
                                   &ImplicitNullChecksID,
                                   &FuncletLayoutID,
                                   &XRayInstrumentationID,
                                   &FEntryInserterID,
                                   &PatchableFunctionID,
                                   &StackMapLivenessID,
                                   &MachineSanitizerBinaryMetadataID,
                                   &RemoveLoadsIntoFakeUsesID,
                                   &RemoveRedundantDebugValuesID,
                                   &LiveDebugValuesID,
                                   &DetectDeadLanesID,
                                   &RenameIndependentSubregsID,
                                   &StackColoringLegacyID,
                                   &LocalStackSlotAllocationID,
                                   &LiveRangeShrinkID,
                                   &ShrinkWrapID,
                                   &EarlyIfConverterLegacyID,
                                   &MachineCombinerID,
                                   &OptimizePHIsLegacyID,
                                   &PeepholeOptimizerLegacyID,
                                   &DeadMachineInstructionElimID,
                                   &MachineCSELegacyID,
                                   &MachineLICMID, // the later of two
                                   &MachineSinkingLegacyID,
                                   &PostRAMachineSinkingID,
                                   &EarlyTailDuplicateLegacyID,
                                   &TailDuplicateLegacyID,
                                   &BranchFolderPassID,
                                   &MachineLateInstrsCleanupID,
                                   &MachineCopyPropagationID};

/// LLVM's passes from IR to machine code, without some that cost more than they give:
/// - its schedulers of instructions: the emitters write what is independent side by side, and these CPUs reorder;
/// - its passes over IR that optimise (strength reduction of loops above all): addresses are a base and one multiple of
///   a counter. What lowers IR runs. Nothing here throws, so nothing prepares for exceptions either.
/// - kNotNeeded above.
/// The steps of bench/ run as fast without, step b's products faster, and machine code is made in half the time.
/// True on failure, as LLVM's functions have it.
static bool addCodeGeneration(TargetMachine &machine, legacy::PassManager &passes, raw_pwrite_stream &out,
                              CodeGenFileType type) {
  auto *info = new MachineModuleInfoWrapperPass(&machine); // the pass manager's
  TargetPassConfig *config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  config->disablePass(&MachineSchedulerID);
  config->disablePass(&PostMachineSchedulerID);
  config->disablePass(&PostRASchedulerID);
  for (char *pass : kNotNeeded)
    config->disablePass(pass);
  passes.add(config);
  passes.add(info);
  // Without this nobody knows that there is a memcpy, and copies become loops over bytes.
  passes.add(new RuntimeLibraryInfoWrapper(machine.getTargetTriple()));
  passes.add(createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(createPreISelIntrinsicLoweringPass());
  CodeGenOptLevel level = machine.getOptLevel();
  passes.add(createExpandIRInstsPass(level));
  machine.setOptLevel(CodeGenOptLevel::None); // is read by what adds passes
  config->addIRPasses();
  machine.setOptLevel(level);
  config->addCodeGenPrepare();
  config->addISelPrepare();
  if (PassConfig::addSelection(*config))
    return true;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext()))
    return true;
  passes.add(createFreeMachineFunctionPass());
  return false;
}

/// LLVM searches chains of shuffles for shorter ones, which takes longer than all that it does with the rest of a
/// kernel, and for nothing: the emitters' are as they should be. A fence keeps it from looking on, and is no
/// instruction; there are such for floats.
static void keepShuffles(Module &module) {
  SetVector<ShuffleVectorInst *> chained;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isa<ShuffleVectorInst>(instruction))
        for (Value *operand : instruction.operands())
          if (auto *before = dyn_cast<ShuffleVectorInst>(operand); before && !isa<UndefValue>(before->getOperand(1)))
            chained.insert(before);
  for (ShuffleVectorInst *shuffle : chained) {
    Type *element = shuffle->getType()->getElementType();
    if (!element->isFloatTy() && !element->isDoubleTy())
      continue;
    Value *fence = IRBuilder<>(shuffle->getNextNode()).CreateArithmeticFence(shuffle, shuffle->getType());
    shuffle->replaceUsesWithIf(fence, [&](Use &use) { return use.getUser() != fence; });
  }
}

runtime::Status generate(Module &module, const Target &target, bool assembly, SmallVectorImpl<char> &code) {
  std::unique_ptr<TargetMachine> machine = targetMachine(target);
  if (!machine)
    return internalError("generate", "LLVM has no code generator for " + target.triple);
  keepShuffles(module);
  raw_svector_ostream stream(code);
  legacy::PassManager passes;
  if (addCodeGeneration(*machine, passes, stream,
                        assembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile))
    return internalError("generate", "no object files for " + target.triple);
  passes.run(module);
  return {};
}

} // namespace wg::codegen
