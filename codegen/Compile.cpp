#include "codegen/Compile.h"

#include "codegen/Aot.h"
#include "codegen/EmitBodies.h"
#include "codegen/Jit.h"
#include "codegen/Names.h"
#include "codegen/VerifyLowered.h"
#include "codegen/emit/VectorMath.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "ir/Program.h"
#include "runtime/Arena.h"
#include "runtime/Host.h"
#include "runtime/StackArray.h"
#include "runtime/abi.h"
#include "runtime/io/File.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

using namespace mlir;

namespace wg::codegen {

// ---- Executables ----------------------------------------------------------------------------------------------------

namespace {

class JitExecutable : public Executable {
public:
  int32_t run(void *const *args, AtFault *atFault) const override {
    size_t inputs = info.inputs.size(), results = info.results.size();
    runtime::StackArray<void *, 32> pointers(inputs + results);
    void **packed = pointers.begin();
    std::copy_n(args, inputs, packed); // `args` may be null if there are none
    size_t slot = inputs;
    for (size_t r = 0; r < results; ++r) {
      int64_t donor = info.donated[r];
      if (donor < 0) {
        packed[slot++] = args[inputs + r];
      } else if (args[donor] != args[inputs + r]) {
        std::memcpy(args[inputs + r], args[donor], donatedBytes[r]);
        packed[donor] = args[inputs + r];
      }
    }
    if (!needsArena) {
      alignas(64) char small[kSmallWorkspace];
      return finish(entry(packed, nullptr, small), small, atFault);
    }
    runtime::Workspace workspace = runtime::acquireWorkspace(static_cast<size_t>(info.workspaceBytes));
    return finish(entry(packed, nullptr, workspace.data()), workspace.data(), atFault);
  }

  void prepare() {
    for (const runtime::TensorType &type : info.results)
      donatedBytes.push_back(static_cast<size_t>(type.shape.numElements()) * runtime::sizeOf(type.dtype));
    needsArena = info.workspaceBytes > static_cast<int64_t>(kSmallWorkspace);
  }

  std::shared_ptr<const JitModule> module;
  std::vector<std::shared_ptr<const JitModule>> others; ///< whose kernels it runs

private:
  /// Workspaces up to this size lie on the caller's stack.
  static constexpr size_t kSmallWorkspace = 1024;
  static int32_t finish(int32_t code, const void *workspace, AtFault *atFault) {
    if (code != 0 && atFault)
      std::memcpy(atFault->values.data(), workspace, sizeof atFault->values);
    return code;
  }
  std::vector<size_t> donatedBytes;
  bool needsArena = true;
};

/// What compiled code may call of this process.
std::vector<Symbol> runtimeSymbols() {
  std::vector<Symbol> symbols{{"wg_parallel_for", reinterpret_cast<void *>(&wg_parallel_for)}};
  for (const runtime::Routine &routine : runtime::routines())
    symbols.push_back({routine.symbol, reinterpret_cast<void *>(routine.function)});
  return symbols;
}

/// Owns the module that compile() consumes.
struct OwnedModule {
  ModuleOp module;
  ~OwnedModule() { module.erase(); }
};

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

} // namespace

runtime::Failure Executable::failure(int32_t code, const AtFault &atFault) const {
  runtime::Failure failure;
  failure.kind = runtime::ErrorKind::invalid_argument;
  if (code < 1 || code > static_cast<int32_t>(info.errors.size())) {
    failure.kind = runtime::ErrorKind::internal;
    failure.message = "entry " + info.name + " returned " + std::to_string(code);
    return failure;
  }
  StringRef text = info.errors[code - 1];
  auto [op, rest] = text.split(": ");
  if (!rest.empty() && !op.contains(' ')) {
    failure.op = op.str();
    text = rest;
  }
  size_t next = 0;
  while (!text.empty()) {
    auto [before, after] = text.split("{}");
    failure.message += before;
    if (before.size() != text.size())
      failure.message += std::to_string(atFault.values[next++ % atFault.values.size()]);
    text = after;
  }
  failure.where = info.errorPlaces[code - 1];
  return failure;
}

std::optional<RoomWanted> Executable::roomWanted(int32_t code, const AtFault &atFault) const {
  if (code < 1 || code > static_cast<int32_t>(info.errors.size()) || info.errors[code - 1] != kRoomError)
    return std::nullopt;
  return RoomWanted{.loop = atFault.values[1], .turns = atFault.values[0]};
}

runtime::Failure untrustedFailure(const std::string &what) {
  return {.message = what + " is at stage lowered: machine code, which runs with all the rights of this process",
          .remedy = "if you trust its author, --trust-lowered (in the library CompileOptions::trustLowered); else give "
                    "the program at stage fused, or at one before it"};
}

/// Whether the module may be compiled from stage `from` on. Nothing of it has been looked at yet but its syntax.
static runtime::Status checkModule(ModuleOp module, StringRef function, Stage from, bool trustLowered,
                                   ir::Diagnostics &diagnostics) {
  if (from >= Stage::lowered && !trustLowered)
    return untrustedFailure("@" + function.str());
  if (from > Stage::lowered)
    return runtime::valueError("the module is at stage " + nameOf(from).str() + ", which is for reading only",
                               "give the program at stage lowered, or at one before it");
  if (failed(from == Stage::lowered ? verifyLowered(module, function) : ir::checkProgram(module)))
    return diagnostics.take("the module is not a program");
  return {};
}

/// Gives `function` the name `name`, in its calls too. Another function of that name is one that the entry
/// calls, and not seen from outside.
static LogicalResult rename(ModuleOp module, StringRef function, StringRef name) {
  auto fn = module.lookupSymbol<func::FuncOp>(function);
  if (!fn || function == name)
    return success();
  SymbolTable symbols(module);
  if (Operation *other = symbols.lookup(name); other && failed(symbols.renameToUnique(other, {})))
    return module.emitError("renaming a function that has the entry's new name @") << name << " failed";
  if (failed(SymbolTable::replaceAllSymbolUses(fn, StringAttr::get(module.getContext(), name), module)))
    return module.emitError("renaming @") << function << " failed";
  fn.setName(name);
  return success();
}

/// Whether kernels call functions of VectorMath. Those leave `made`: other programs are to have the faster code.
static bool keepWithoutCalls(ModuleOp module, std::vector<KernelCache::Made> *made) {
  llvm::StringSet<> called;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(kMathFunctionAttr))
      called.insert(function.getName());
  if (called.empty() || !made)
    return !called.empty();
  SymbolTable symbols(module);
  llvm::erase_if(*made, [&](const KernelCache::Made &kernel) {
    auto callsOne = [&](LLVM::CallOp call) {
      return call.getCallee() && called.contains(*call.getCallee()) ? WalkResult::interrupt() : WalkResult::advance();
    };
    return symbols.lookup(kernel.function)->walk(callsOne).wasInterrupted();
  });
  return true;
}

runtime::Result<std::shared_ptr<const Executable>> compile(ModuleOp module, StringRef function,
                                                           const CompileOptions &options, Stage from) {
  OwnedModule owned{module};
  ir::Diagnostics diagnostics(module.getContext());
  auto executable = std::make_shared<JitExecutable>();
  std::string name = function.str();
  if (runtime::Status status = checkModule(module, function, from, options.trustLowered, diagnostics); !status.ok())
    return status;
  if (from < Stage::lowered) { // text calls its functions anything, `memcpy` too
    name = safeName(name);
    if (failed(rename(module, function, name)))
      return diagnostics.take("renaming the entry failed");
  }
  auto keep = [&](Stage stage) {
    if (options.keepStages)
      executable->texts.push_back({stage, printed(module)});
  };
  // Where the stages are kept their text is whole: it can be read back and run by itself. What the caller's passes make
  // of a kernel is theirs alone.
  std::optional<SharedKernels> shared;
  if (options.cache && !options.keepStages && options.passes.empty())
    shared.emplace(SharedKernels{*options.cache});
  FailureOr<EntryInfo> info = failure();
  auto each = [&](Stage stage) {
    keep(stage);
    if (stage == Stage::lowered)
      info = readEntryInfo(module, name);
    if (options.reached)
      options.reached(stage, executable->stages.empty() ? 0 : executable->stages.back().ops);
  };
  auto choose = [&](const passes::Forms &forms) {
    if (options.forms)
      return chosenBefore(*options.forms, forms);
    executable->forms.push_back(fastestForm(forms, options.target, options.cache));
    return executable->forms.back().chosen;
  };
  if (failed(runPipeline(
          module, name, from, Stage::llvm,
          {.target = options.target,
           .passes = options.passes,
           .reports = &executable->stages,
           .kernels = &executable->kernels,
           .marks = options.marks,
           .callMath = options.callMath,
           .shared = shared ? &*shared : nullptr,
           .arranged = options.arranged,
           .choose = options.measureForms || options.forms ? passes::ChooseForm(choose) : passes::ChooseForm(),
           .each = each})))
    return diagnostics.take("compilation failed without a message");
  if (failed(info))
    return diagnostics.take("the lowered entry has no description");
  executable->info = std::move(*info);
  if (options.keepStages)
    if (auto assembly = emitAssembly(module, options.target); assembly.ok())
      executable->texts.push_back({Stage::assembly, *assembly});
  executable->callsMath = keepWithoutCalls(module, shared ? &shared->made : nullptr);
  JitTimes times;
  auto start = std::chrono::steady_clock::now();
  std::vector<Symbol> symbols = runtimeSymbols();
  if (shared)
    for (const auto &[name, address] : shared->known)
      symbols.push_back({name.c_str(), address});
  auto jitted = jit(module, options.target, symbols, &times);
  if (!jitted.ok())
    return jitted.take();
  executable->stages.push_back(
      {Stage::assembly, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
       static_cast<int64_t>((*jitted)->codeBytes())});
  executable->module = std::move(*jitted);
  if (shared)
    executable->others = std::move(shared->modules);
  executable->codeBytes = executable->module->codeBytes();
  executable->entry = executable->module->lookup<int32_t(void *const *, const int64_t *, void *)>(name);
  if (!executable->entry)
    return runtime::Failure{.kind = runtime::ErrorKind::internal,
                            .message = "jit: no symbol " + name + " in the compiled module"};
  if (shared)
    options.cache->add(executable->module, shared->made);
  executable->prepare();
  return std::shared_ptr<const Executable>(std::move(executable));
}

/// Whether a module of the llvm dialect calls routines of libwengert_rt.a, and which C functions of the user's; an
/// error at a call of a routine that no object file has.
static FailureOr<bool> callsRoutines(ModuleOp module, std::vector<std::string> &foreign) {
  bool any = false;
  WalkResult walked = module.walk([&](LLVM::CallOp call) {
    std::optional<StringRef> name = call.getCallee();
    if (!name || !runtime::findRoutine(*name))
      return WalkResult::advance();
    if (runtime::isForeign(*name)) {
      if (!llvm::is_contained(foreign, *name))
        foreign.push_back(name->str());
      return WalkResult::advance();
    }
    any = true;
    if (runtime::isInLibrary(*name))
      return WalkResult::advance();
    if (*name == runtime::kHostCall)
      emitError(call.getLoc())
          << "prints, checks or calls a host function: C++ code of this process, of which there is "
             "no object file";
    else
      emitError(call.getLoc()) << "calls the routine '" << *name
                               << "' of this process, which is not in libwengert_rt.a: there is no object file of it";
    return WalkResult::interrupt();
  });
  return walked.wasInterrupted() ? FailureOr<bool>() : any;
}

runtime::Status compileToObject(ModuleOp module, StringRef function, const Target &target, const std::string &directory,
                                const std::string &name, ArrayRef<std::string> inputNames,
                                ArrayRef<std::string> resultNames, Stage from, bool trustLowered,
                                const std::vector<PassesAfter> &passes) {
  OwnedModule owned{module};
  ir::Diagnostics diagnostics(module.getContext());
  if (runtime::Status status = checkModule(module, function, from, trustLowered, diagnostics); !status.ok())
    return status;
  FailureOr<EntryInfo> info = failure();
  if (failed(rename(module, function, name)))
    return diagnostics.take("renaming the entry failed");
  auto read = [&](Stage stage) {
    if (stage == Stage::lowered)
      info = readEntryInfo(module, name);
  };
  if (failed(runPipeline(module, name, from, Stage::llvm,
                         {.target = target, .threads = false, .passes = passes, .each = read})) ||
      failed(info))
    return diagnostics.take("compilation failed without a message");
  CEntry entry;
  entry.name = name;
  entry.workspaceBytes = info->workspaceBytes;
  for (auto [i, type] : llvm::enumerate(info->inputs)) {
    bool updated = llvm::is_contained(info->donated, static_cast<int64_t>(i));
    entry.arguments.push_back({i < inputNames.size() ? inputNames[i] : "in" + std::to_string(i), type, updated});
  }
  for (auto [r, type] : llvm::enumerate(info->results))
    if (info->donated[r] < 0)
      entry.results.push_back({r < resultNames.size() ? resultNames[r] : "out" + std::to_string(r), type, false});
  for (auto [text, place] : llvm::zip(info->errors, info->errorPlaces))
    entry.errors.push_back(place.empty() ? text : text + " at " + place);
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code)
    return runtime::Failure{.kind = runtime::ErrorKind::io,
                            .message = "cannot make the directory " + directory + ": " + code.message()};
  FailureOr<bool> usesRoutines = callsRoutines(module, entry.calls);
  if (failed(usesRoutines))
    return diagnostics.take("a routine is missing");
  entry.usesRoutines = *usesRoutines;
  std::string base = directory + "/" + name;
  addWorkspaceBytes(module, name, info->workspaceBytes);
  runtime::Result<std::string> object = emitObject(module, target);
  if (!object.ok())
    return object.take();
  std::string header = cHeader(entry);
  runtime::FileContents files[] = {{base + ".o", {std::as_bytes(std::span(*object))}},
                                   {base + ".h", {std::as_bytes(std::span(header))}}};
  return runtime::writeFiles(files);
}

} // namespace wg::codegen
