#include "codegen/Jit.h"

#include "codegen/MachineCode.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/JITSymbol.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <chrono>
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace llvm::orc;

namespace wg::codegen {

/// The closed table: everything outside a module that compiled code can reach, besides what the caller of jit() lists.
static const StringMap<void *> &library() {
  static const StringMap<void *> &table =
      *new StringMap<void *>([] { // never destroyed: static objects may compile while they are
        StringMap<void *> t;
        using F1 = float (*)(float);
        using F2 = float (*)(float, float);
        using F3 = float (*)(float, float, float);
        using D1 = double (*)(double);
        using D2 = double (*)(double, double);
        using D3 = double (*)(double, double, double);
        auto add = [&](const char *name, auto function) { t[name] = reinterpret_cast<void *>(function); };
#define WG_LIBM1(name) add(#name "f", static_cast<F1>(::name##f)), add(#name, static_cast<D1>(::name))
#define WG_LIBM2(name) add(#name "f", static_cast<F2>(::name##f)), add(#name, static_cast<D2>(::name))
        WG_LIBM1(exp), WG_LIBM1(exp2), WG_LIBM1(expm1), WG_LIBM1(log), WG_LIBM1(log2), WG_LIBM1(log10), WG_LIBM1(log1p);
        WG_LIBM1(sin), WG_LIBM1(cos), WG_LIBM1(tan), WG_LIBM1(asin), WG_LIBM1(acos), WG_LIBM1(atan);
        WG_LIBM1(sinh), WG_LIBM1(cosh), WG_LIBM1(tanh), WG_LIBM1(asinh), WG_LIBM1(acosh), WG_LIBM1(atanh);
        WG_LIBM1(erf), WG_LIBM1(erfc), WG_LIBM1(lgamma), WG_LIBM1(tgamma), WG_LIBM1(cbrt), WG_LIBM1(sqrt);
        WG_LIBM1(floor), WG_LIBM1(ceil), WG_LIBM1(trunc), WG_LIBM1(round), WG_LIBM1(rint), WG_LIBM1(nearbyint);
        WG_LIBM2(pow), WG_LIBM2(atan2), WG_LIBM2(fmod), WG_LIBM2(fmin), WG_LIBM2(fmax), WG_LIBM2(hypot);
#undef WG_LIBM1
#undef WG_LIBM2
        add("fmaf", static_cast<F3>(::fmaf)), add("fma", static_cast<D3>(::fma));
        add(
            "roundevenf", +[](float x) { return std::nearbyint(x); }),
            add("roundeven", +[](double x) { return std::nearbyint(x); });
        add(
            "ldexpf", +[](float x, int n) { return std::ldexp(x, n); }),
            add("ldexp", +[](double x, int n) { return std::ldexp(x, n); });
        add("memcpy", &std::memcpy), add("memmove", &std::memmove), add("memset", &std::memset),
            add("memcmp", &std::memcmp);
        return t;
      }());
  return table;
}

bool isLibrarySymbol(StringRef name) { return library().contains(name); }

namespace {
/// LLJIT owns the memory of the code; the addresses are looked up once, so that lookup() takes no lock.
struct LinkedModule final : JitModule {
  std::unique_ptr<LLJIT> linker;
  StringMap<void *> addresses;
  size_t bytes = 0;

  void *lookup(StringRef name) const override { return addresses.lookup(name); }
  size_t codeBytes() const override { return bytes; }
};

/// Milliseconds since the last call.
struct Stopwatch {
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  double lap() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last, now)).count();
  }
};
} // namespace

/// Links one object; only `names` are looked up, and only the closed table and `symbols` are visible to it.
static Error link(LinkedModule &result, std::unique_ptr<MemoryBuffer> object, const Target &target,
                  ArrayRef<Symbol> symbols, ArrayRef<std::string> names, std::string &reported) {
  JITTargetMachineBuilder machine{Triple(target.triple)};
  machine.setCPU(target.cpu).setRelocationModel(Reloc::PIC_);
  Expected<std::unique_ptr<LLJIT>> linker = LLJITBuilder()
                                                .setJITTargetMachineBuilder(std::move(machine))
                                                .setLinkProcessSymbolsByDefault(false)
                                                .setPlatformSetUp(setUpInactivePlatform)
                                                .create();
  if (!linker)
    return linker.takeError();
  result.linker = std::move(*linker);
  ExecutionSession &session = result.linker->getExecutionSession();
  session.setErrorReporter([&reported](Error error) { reported += toString(std::move(error)) + "\n"; });

  SymbolMap visible;
  auto show = [&](StringRef name, void *address) {
    visible[session.intern(name)] = {ExecutorAddr::fromPtr(address),
                                     JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
  for (const auto &entry : library())
    show(entry.first(), entry.second);
  for (const Symbol &symbol : symbols)
    show(symbol.name, symbol.address);
  JITDylib &table = session.createBareJITDylib("library");
  if (Error error = table.define(absoluteSymbols(std::move(visible))))
    return error;
  JITDylib &code = result.linker->getMainJITDylib();
  code.addToLinkOrder(table);
  if (Error error = result.linker->addObjectFile(code, std::move(object)))
    return error;
  SymbolLookupSet wanted;
  for (const std::string &name : names)
    wanted.add(session.intern(name));
  Expected<SymbolMap> found = session.lookup({{&code, JITDylibLookupFlags::MatchAllSymbols}}, std::move(wanted));
  if (!found)
    return found.takeError();
  for (const auto &[name, definition] : *found)
    result.addresses[*name] = definition.getAddress().toPtr<void *>();
  // From here on nothing may refer to the caller's string.
  session.setErrorReporter([](Error error) { consumeError(std::move(error)); });
  return Error::success();
}

runtime::Result<std::unique_ptr<JitModule>> jit(mlir::ModuleOp module, const Target &target, ArrayRef<Symbol> symbols,
                                                JitTimes *times) {
  Stopwatch watch;
  JitTimes spent;
  LLVMContext context;
  auto allowed = [&](StringRef name) {
    return isLibrarySymbol(name) || any_of(symbols, [&](const Symbol &symbol) { return name == symbol.name; });
  };
  auto ir = translate(module, target, context, allowed);
  if (!ir.ok())
    return ir.take();
  std::vector<std::string> names;
  for (const Function &function : **ir)
    if (!function.isDeclaration() && function.hasExternalLinkage())
      names.push_back(function.getName().str());
  spent.translate = watch.lap();

  SmallVector<char, 0> code;
  if (runtime::Status status = generate(**ir, target, /*assembly=*/false, code); !status.ok())
    return status.take();
  spent.codegen = watch.lap();

  auto result = std::make_unique<LinkedModule>();
  result->bytes = code.size();
  std::string reported;
  auto object =
      std::make_unique<SmallVectorMemoryBuffer>(std::move(code), "wengert.o", /*RequiresNullTerminator=*/false);
  if (Error error = link(*result, std::move(object), target, symbols, names, reported)) {
    std::string message = reported + toString(std::move(error));
    // The linker's session may still report while it is torn down.
    if (result->linker)
      result->linker->getExecutionSession().setErrorReporter([](Error late) { consumeError(std::move(late)); });
    return internalError("link", message);
  }
  spent.link = watch.lap();
  if (times)
    *times = spent;
  return std::unique_ptr<JitModule>(std::move(result));
}

} // namespace wg::codegen
