#include "codegen/target/Cpu.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <cstdlib>
#include <memory>
#include <mutex>

using namespace llvm;

namespace wg::codegen {

/// LLVM's X86 target, once in a process; the others are never initialised.
static const llvm::Target *x86(const Triple &triple) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  return TargetRegistry::lookupTarget(triple, error);
}

/// What LLVM's subtarget of that CPU can do; null for an unknown name.
static std::unique_ptr<MCSubtargetInfo> subtarget(const Triple &triple, StringRef cpu, StringRef features) {
  const llvm::Target *backend = x86(triple);
  if (!backend)
    return nullptr;
  std::unique_ptr<MCSubtargetInfo> generic(backend->createMCSubtargetInfo(triple, "generic", ""));
  if (!generic || !generic->isCPUStringValid(cpu))
    return nullptr;
  return std::unique_ptr<MCSubtargetInfo>(backend->createMCSubtargetInfo(triple, cpu, features));
}

static std::optional<Target> describe(const Triple &triple, StringRef cpu, StringRef features) {
  std::unique_ptr<MCSubtargetInfo> info = subtarget(triple, cpu, features);
  // 32-bit CPUs have names too; every 64-bit one has the feature of that name.
  if (!info || !info->checkFeatures("+64bit"))
    return std::nullopt;
  Target target;
  target.triple = triple.str();
  target.cpu = cpu.str();
  target.features = features.str();
  bool avx2 = info->checkFeatures("+avx2");
  target.hasAvx512 = info->checkFeatures("+avx512f,+avx512bw,+avx512dq,+avx512vl");
  target.vectorBytes = target.hasAvx512 ? 64 : avx2 ? 32 : 16;
  target.numVectorRegisters = target.hasAvx512 ? 32 : 16;
  target.hasMaskedMemory = avx2;
  target.hasFma = info->checkFeatures("+fma");
  target.hasCheapDivision = cpu == "znver4" || cpu == "znver5";
  if (target.hasAvx512)
    target.machine = cpu == "znver4"             ? passes::Machine::fastMemory
                     : cpu.starts_with("znver")  ? passes::Machine::fast
                     : cpu.starts_with("x86-64") ? passes::Machine::both
                                                 : passes::Machine::slowMemory;
  return target;
}

static Triple hostTriple() { return Triple(sys::getProcessTriple()); }

/// The machine itself, whatever WENGERT_CPU says.
static const Target &thisMachine() {
  static const Target &target = *new Target([] { // never destroyed
    std::string features;
    // In the order of the names, so that equal machines have equal keys.
    std::vector<std::string> flags;
    for (const auto &[name, enabled] : sys::getHostCPUFeatures())
      flags.push_back((enabled ? "+" : "-") + name.str());
    llvm::sort(flags, [](const std::string &a, const std::string &b) { return a.substr(1) < b.substr(1); });
    for (const std::string &flag : flags)
      features += (features.empty() ? "" : ",") + flag;
    if (std::optional<Target> found = describe(hostTriple(), sys::getHostCPUName(), features))
      return *found;
    return *describe(hostTriple(), "x86-64", "");
  }());
  return target;
}

bool Target::hostCanRun(const Target &target) {
  const Target &self = thisMachine();
  if (target.key() == self.key())
    return true;
  std::unique_ptr<MCSubtargetInfo> own = subtarget(Triple(self.triple), self.cpu, self.features);
  std::unique_ptr<MCSubtargetInfo> wanted = subtarget(Triple(target.triple), target.cpu, target.features);
  if (!own || !wanted)
    return false;
  // Instruction sets that generated code may use; tuning flags do not count.
  for (const char *set :
       {"+sse4.2",       "+popcnt",          "+avx",         "+avx2",       "+fma",        "+f16c",       "+bmi",
        "+bmi2",         "+lzcnt",           "+movbe",       "+avx512f",    "+avx512bw",   "+avx512dq",   "+avx512vl",
        "+avx512cd",     "+avx512vbmi",      "+avx512vbmi2", "+avx512vnni", "+avx512bf16", "+avx512fp16", "+avx512ifma",
        "+avx512bitalg", "+avx512vpopcntdq", "+gfni",        "+amx-tile"})
    if (wanted->checkFeatures(set) && !own->checkFeatures(set))
      return false;
  return true;
}

std::optional<Target> Target::named(StringRef name) {
  if (name == "native")
    return thisMachine();
  return describe(hostTriple(), name, "");
}

const Target &Target::host() {
  static const Target &target = *new Target([] { // never destroyed
    if (const char *name = std::getenv("WENGERT_CPU"))
      if (std::optional<Target> lower = named(name); lower && hostCanRun(*lower))
        return *lower;
    return thisMachine();
  }());
  return target;
}

} // namespace wg::codegen
