#include "codegen/Jit.h"

#include "codegen/MachineCode.h"
#include "runtime/ThreadPool.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ExecutionEngine/JITSymbol.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

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

/// Links objects; only `names` are looked up, and only the closed table and `symbols` are visible to it.
static Error link(LinkedModule &result, std::vector<std::unique_ptr<MemoryBuffer>> objects, const Target &target,
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
  for (std::unique_ptr<MemoryBuffer> &object : objects)
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

/// What is worth a worker: a module of its own costs about 0.5 ms, and as much is spent on 50 ops.
static constexpr int64_t kOpsOfPart = 1000;

/// The functions of a module, dealt out to modules of about equal size: each holds its own and declares what these
/// call. Constants are in the first. Nothing where one module does.
static std::vector<mlir::OwningOpRef<mlir::ModuleOp>> split(mlir::ModuleOp module) {
  std::vector<std::pair<int64_t, mlir::LLVM::LLVMFuncOp>> functions;
  int64_t total = 0;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    int64_t ops = 0;
    function.walk([&](mlir::Operation *) { ++ops; });
    functions.emplace_back(ops, function);
    total += ops;
  }
  // Asked in this order: what is small starts no threads.
  int64_t count = std::min(total / kOpsOfPart, int64_t(functions.size()));
  if (count < 2 || !module.getContext()->isMultithreadingEnabled())
    return {};
  count = std::min(count, int64_t(runtime::numThreads()));
  if (count < 2)
    return {};
  std::vector<size_t> order(functions.size());
  std::iota(order.begin(), order.end(), 0);
  sort(order,
       [&](size_t a, size_t b) { return std::pair(-functions[a].first, a) < std::pair(-functions[b].first, b); });
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> parts;
  std::vector<int64_t> sizes(count, 0);
  std::vector<DenseSet<mlir::StringAttr>> defined(count);
  mlir::OpBuilder b(module.getContext());
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(mlir::ModuleOp::create(module.getLoc()));
    (*parts.back())->setAttrs(module->getAttrs());
  }
  auto add = [&](size_t part, mlir::Operation *op) {
    b.setInsertionPointToEnd(parts[part]->getBody());
    return b.insert(op);
  };
  for (size_t next : order) {
    auto [ops, function] = functions[next];
    size_t part = std::min_element(sizes.begin(), sizes.end()) - sizes.begin();
    sizes[part] += ops;
    defined[part].insert(function.getSymNameAttr());
    cast<mlir::LLVM::LLVMFuncOp>(add(part, function->clone())).setLinkage(mlir::LLVM::Linkage::External);
  }
  for (int64_t part = 0; part < count; ++part) {
    DenseSet<mlir::StringAttr> named;
    (*parts[part])->walk([&](mlir::Operation *op) {
      for (mlir::NamedAttribute attribute : op->getAttrs())
        attribute.getValue().walk([&](mlir::FlatSymbolRefAttr symbol) { named.insert(symbol.getAttr()); });
    });
    for (mlir::Operation &op : *module.getBody()) {
      auto name = op.getAttrOfType<mlir::StringAttr>(mlir::SymbolTable::getSymbolAttrName());
      if (!name || defined[part].contains(name))
        continue;
      auto global = dyn_cast<mlir::LLVM::GlobalOp>(op);
      if (!named.contains(name) && !(global && part == 0))
        continue;
      if (global) {
        auto copy = cast<mlir::LLVM::GlobalOp>(add(part, global->clone()));
        copy.setLinkage(mlir::LLVM::Linkage::External);
        if (part != 0)
          copy.removeValueAttr();
      } else if (auto function = dyn_cast<mlir::LLVM::LLVMFuncOp>(op)) {
        auto copy = cast<mlir::LLVM::LLVMFuncOp>(add(part, function->cloneWithoutRegions()));
        copy.setLinkage(mlir::LLVM::Linkage::External);
      }
    }
  }
  return parts;
}

runtime::Result<std::unique_ptr<JitModule>> jit(mlir::ModuleOp module, const Target &target, ArrayRef<Symbol> symbols,
                                                JitTimes *times) {
  Stopwatch watch;
  JitTimes spent;
  std::vector<std::string> names;
  StringSet<> own;
  for (mlir::Operation &op : *module.getBody())
    if (auto name = op.getAttrOfType<mlir::StringAttr>(mlir::SymbolTable::getSymbolAttrName())) {
      auto function = dyn_cast<mlir::LLVM::LLVMFuncOp>(op);
      if (!function || !function.isExternal())
        own.insert(name.getValue());
      if (function && !function.isExternal() && function.getLinkage() == mlir::LLVM::Linkage::External)
        names.push_back(name.str());
    }
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> parts = split(module);
  size_t count = std::max<size_t>(1, parts.size());
  StringSet<> given;
  for (const Symbol &symbol : symbols)
    given.insert(symbol.name);
  auto allowed = [&](StringRef name) {
    return isLibrarySymbol(name) || given.contains(name) || (!parts.empty() && own.contains(name));
  };
  std::vector<SmallVector<char, 0>> codes(count);
  std::vector<runtime::Status> statuses(count);
  spent.split = watch.lap();
  auto compilePart = [&](int64_t i) {
    LLVMContext context;
    auto ir = translate(parts.empty() ? module : *parts[i], target, context, allowed);
    statuses[i] = ir.ok() ? generate(**ir, target, /*assembly=*/false, codes[i]) : runtime::Status(ir.take());
  };
  if (count == 1)
    compilePart(0);
  else
    runtime::parallelFor(static_cast<int64_t>(count), compilePart);
  for (runtime::Status &status : statuses)
    if (!status.ok())
      return status.take();
  spent.codegen = watch.lap();

  auto result = std::make_unique<LinkedModule>();
  std::vector<std::unique_ptr<MemoryBuffer>> objects;
  for (auto &code : codes) {
    result->bytes += code.size();
    objects.push_back(
        std::make_unique<SmallVectorMemoryBuffer>(std::move(code), "wengert.o", /*RequiresNullTerminator=*/false));
  }
  std::string reported;
  if (Error error = link(*result, std::move(objects), target, symbols, names, reported)) {
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
