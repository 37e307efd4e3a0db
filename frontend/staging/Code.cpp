// A function that can be run: interpreted as flat rows, or compiled once for each set of static input shapes.
#include "frontend/staging/Function.h"

#include "runtime/Host.h"

#include "codegen/Compile.h"
#include "frontend/staging/CompileHint.h"
#include "ir/Calls.h"
#include "passes/Passes.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdlib>

using namespace mlir;

namespace wg::detail {

using runtime::Array;

/// For how many turns a loop without a bound keeps what it stacks, until one has more: 64, but not for more than 16 MB.
static int64_t firstRoom(ir::LoopOp loop) {
  constexpr int64_t kTurns = 64, kBytes = int64_t(16) << 20;
  int64_t row = 1;
  for (Type stack : loop.getStacked().getTypes()) {
    TensorType type = ir::runtimeTypeOf(ir::rowTypeOf(stack));
    int64_t bytes = static_cast<int64_t>(runtime::sizeOf(type.dtype));
    for (int64_t size : type.shape) // one that is open is of a loop inside
      bytes = llvm::MulOverflow(bytes, size == dynamic ? kTurns : size, bytes) ? kBytes : bytes;
    row = std::min(kBytes, row + bytes);
  }
  return std::clamp<int64_t>(kBytes / row, 1, kTurns);
}

uint64_t nextSerial() {
  static constinit std::atomic<uint64_t> serial = 0;
  return ++serial;
}

static bool interpretAlways() {
  static const bool always = [] {
    const char *text = std::getenv("WENGERT_INTERPRET");
    return text && *text && std::string_view(text) != "0";
  }();
  return always;
}

/// Whether forms of products are measured where estimates say that several may be the fastest.
static bool measuresForms() {
  static const bool measures = [] {
    const char *text = std::getenv("WENGERT_MEASURE");
    return !text || std::string_view(text) != "0";
  }();
  return measures;
}

Code::Code(OwningOpRef<ModuleOp> module, std::string entry, bool interpret, Identities identities, int64_t capacity)
    : module_(std::move(module)), identities_(std::move(identities)), entry_(std::move(entry)),
      interpret_(interpret || interpretAlways()), capacity_(std::max<int64_t>(1, capacity)) {
  for (auto function : module_->getOps<func::FuncOp>())
    if (auto [at, fresh] = identities_.try_emplace(function); fresh)
      at->second = nextSerial();
  for (Type type : function().getArgumentTypes())
    inputs_.push_back(ir::runtimeTypeOf(type));
  for (Type type : function().getResultTypes())
    results_.push_back(ir::runtimeTypeOf(type));
  for (const TensorType &type : inputs_)
    static_ &= type.shape.isStatic();
  for (ir::LoopOp loop : ir::unboundedLoops(*module_))
    rooms_.push_back(firstRoom(loop));
  if (!rooms_.empty()) // a call without room is made again, and what has an order would be done twice
    module_.get().walk([&](Operation *op) {
      auto host = dyn_cast<ir::HostOp>(op);
      interpret_ |= (host && host.getOrdered()) || op->hasTrait<ir::MeetsRanks>();
    });
}

Code::~Code() {
  ir::Working working; // erasing is work too
  compiled_.clear();
  program_.reset();
  module_ = nullptr;
}

func::FuncOp Code::function() const { return module_.get().lookupSymbol<func::FuncOp>(entry_); }

//===- Interpreted ------------------------------------------------------------------------------------------------===//

const codegen::Program &Code::program(const Where &where) {
  ir::Working working;
  std::lock_guard lock(mutex_);
  if (!program_) {
    ir::Diagnostics diagnostics(ir::context());
    FailureOr<codegen::Program> program = codegen::flatten(function());
    if (failed(program))
      raise(diagnostics.take("the function cannot be interpreted"), where);
    program_ = std::make_unique<codegen::Program>(std::move(*program));
    program_->names = names_;
  }
  return *program_;
}

void Code::interpret(std::span<const Array> inputs, std::span<Array> results, const Where &where) {
  runtime::Result<std::vector<Array>> outputs = codegen::interpret(program(where), inputs);
  if (!outputs.ok())
    raise(outputs.take(), where);
  std::move(outputs->begin(), outputs->end(), results.begin());
}

//===- Compiled ---------------------------------------------------------------------------------------------------===//

/// Each `?` of the function's inputs, as this call has it.
static std::vector<int64_t> dynamicSizes(const std::vector<TensorType> &types, std::span<const Array> inputs) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < types.size(); ++i)
    for (int axis = 0; axis < types[i].shape.rank(); ++axis)
      if (types[i].shape.dim(axis) == dynamic)
        sizes.push_back(inputs[i].shape().dim(axis));
  return sizes;
}

bool Code::fits(std::span<const TensorType> inputs) const {
  if (static_)
    return true;
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(module_.get()->clone());
  SmallVector<Type> types;
  for (const TensorType &input : inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input));
  return succeeded(passes::inferShapes(module->lookupSymbol<func::FuncOp>(entry_), types));
}

std::shared_ptr<const Code::Compiled> Code::compiled(std::span<const Array> inputs, const Where &where) {
  if (interpret_)
    return nullptr;
  ir::Working working;
  std::vector<int64_t> sizes;
  if (!static_)
    sizes = dynamicSizes(inputs_, inputs);
  std::lock_guard lock(mutex_);
  if (auto known = compiled_.find(sizes); known != compiled_.end()) {
    known->second.lastUse = ++clock_;
    return known->second.code;
  }
  ir::Generating generating;
  if (!generating.allowed()) // the process exits: interpreted
    return nullptr;
  auto begin = std::chrono::steady_clock::now();
  OwningOpRef<ModuleOp> module = moduleFor(inputs, rooms_, where);
  CompileHint hint(entry_, where);
  auto reached = [&](codegen::Stage stage, int64_t ops) { hint.reached(stage, ops); };
  runtime::Result<std::shared_ptr<const codegen::Executable>> executable =
      codegen::compile(module.release(), entry_, {.measureForms = measuresForms(), .reached = reached});
  if (!executable.ok())
    raise(executable.take(), where);
  auto code = std::make_shared<const Compiled>(Compiled{*executable, rooms_});
  compiled_[sizes] = {code, ++clock_};
  if (static_ && rooms_.empty())
    only_.store(code.get(), std::memory_order_release);
  compileSeconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (static_cast<int64_t>(compiled_.size()) > capacity_)
    compiled_.erase(std::min_element(compiled_.begin(), compiled_.end(),
                                     [](const auto &a, const auto &b) { return a.second.lastUse < b.second.lastUse; }));
  return code;
}

OwningOpRef<ModuleOp> Code::moduleFor(std::span<const Array> inputs, ArrayRef<int64_t> rooms,
                                      const Where &where) const {
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(module_.get()->clone());
  ir::giveRoom(*module, rooms);
  ir::Diagnostics diagnostics(ir::context());
  SmallVector<Type> types;
  for (const Array &input : inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input.type));
  if ((!static_ || !rooms.empty()) &&
      failed(passes::inferShapes(module->lookupSymbol<func::FuncOp>(entry_), types, names_)))
    raise(diagnostics.take("the shapes of this call do not fit the function"), where);
  return module;
}

std::pair<std::shared_ptr<const codegen::Executable>, codegen::Measured>
Code::measured(const std::vector<Array> &inputs, const Where &where) {
  if (!rooms_.empty() && !interpret_) { // a call first, with copies of what it may update, which makes the room
    std::vector<Array> copies, results(results_.size());
    for (const Array &input : inputs) {
      copies.push_back(Array::empty(input.dtype(), input.shape()));
      std::memcpy(copies.back().buffer.data(), input.buffer.data(), input.numBytes());
    }
    run(copies, results, where);
  }
  std::shared_ptr<const Compiled> code = compiled(inputs, where);
  if (!code)
    raiseOp(entry_.c_str(), "the function is interpreted: there are no kernels to time",
            "make it without FunctionOptions::interpret, and without WENGERT_INTERPRET", {}, where, ErrorKind::runtime);
  ir::Working working;
  ir::Generating generating;
  if (!generating.allowed())
    raiseOp(entry_.c_str(), "no machine code is made once exit() has begun", "take the profile before main returns", {},
            where, ErrorKind::runtime);
  OwningOpRef<ModuleOp> module = moduleFor(inputs, code->rooms, where);
  codegen::Marks marks;
  runtime::Result<std::shared_ptr<const codegen::Executable>> marked =
      codegen::compile(module.release(), entry_,
                       {.marks = &marks, .callMath = code->executable->callsMath, .measureForms = measuresForms()});
  if (!marked.ok())
    raise(marked.take(), where);
  try {
    runtime::Result<codegen::Measured> measured = codegen::measure(*code->executable, **marked, marks, inputs);
    if (!measured.ok())
      raise(measured.take(), where);
    return {code->executable, std::move(*measured)};
  } catch (const std::bad_alloc &) {
    raiseOp(entry_.c_str(), "out of memory for the results and workspaces of a profile, which holds them twice",
            "free other tensors first", {}, where, ErrorKind::runtime);
  }
}

std::vector<std::shared_ptr<const codegen::Executable>> Code::executables() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const codegen::Executable>> list;
  for (const auto &[sizes, slot] : compiled_)
    list.push_back(slot.code->executable);
  return list;
}

OwningOpRef<ModuleOp> Code::staticModule(const Where &where) const {
  if (!static_)
    raiseOp(entry_.c_str(), "the signature has a dynamic size, and machine code is made for static ones",
            "trace with all sizes given", {}, where, ErrorKind::unimplemented);
  return cast<ModuleOp>(module_.get()->clone());
}

/// Written into run(), as calls that return a scalar take so little.
[[gnu::always_inline]] std::optional<codegen::RoomWanted> Code::runCompiled(const codegen::Executable &executable,
                                                                            std::span<const Array> inputs,
                                                                            std::span<Array> results,
                                                                            const Where &where) {
  StackArray<void *, 80> pointers(inputs.size() + results.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    pointers[i] = inputs[i].buffer.data();
  codegen::AtFault atFault;
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType &type = executable.info.results[i];
    if (!results[i].buffer || results[i].type != type) // what an attempt with less room left
      results[i] = {type, runtime::Buffer::allocate(runtime::bytesToAllocate(type))};
    pointers[inputs.size() + i] = results[i].buffer.data();
  }
  int32_t status = executable.run(pointers.begin(), &atFault);
  if (status) [[unlikely]] {
    if (auto wanted = executable.roomWanted(status, atFault))
      return wanted;
    runtime::Failure failure = executable.failure(status, atFault);
    if (runtime::Status said = runtime::takeHostFailure(); !said.ok()) { // by C++ code, which the program called
      runtime::Failure own = said.take();
      failure.op = std::move(own.op), failure.kind = own.kind;
      failure.message = std::move(own.message), failure.remedy = std::move(own.remedy);
    }
    raise(std::move(failure), where);
  }
  return std::nullopt;
}

void Code::run(std::span<const Array> inputs, std::span<Array> results, const Where &where) {
  if (runtime::debugsNans()) [[unlikely]] // op by op, so that the op is known
    return interpret(inputs, results, where);
  if (const Compiled *only = this->only()) [[likely]] { // which keeps nothing of loops
    try {
      runCompiled(*only->executable, inputs, results, where);
      return;
    } catch (const std::bad_alloc &) {
      raiseOutOfMemory(*only->executable, where);
    }
  }
  while (std::shared_ptr<const Compiled> code = compiled(inputs, where)) {
    std::optional<codegen::RoomWanted> wanted;
    try {
      wanted = runCompiled(*code->executable, inputs, results, where);
    } catch (const std::bad_alloc &) {
      if (code->rooms.empty())
        raiseOutOfMemory(*code->executable, where);
      // Rooms of loops within loops multiply; the interpreter takes what it needs.
      for (Array &result : results)
        result = {};
      break;
    }
    if (!wanted) [[likely]]
      return;
    makeRoom(*code, *wanted);
  }
  interpret(inputs, results, where);
}

void Code::raiseOutOfMemory(const codegen::Executable &executable, const Where &where) const {
  std::string results;
  for (const TensorType &type : executable.info.results)
    results += (results.empty() ? "" : ", ") + toString(type);
  raiseOp(entry_.c_str(),
          "out of memory for the results (" + results + ") and " + std::to_string(executable.info.workspaceBytes) +
              " bytes of workspace",
          "make them smaller, or free other tensors first", {}, where, ErrorKind::runtime);
}

/// Room grows by half at least, so that a program is compiled few times; beyond that, for the turns that there were
/// and an eighth more at most.
void Code::makeRoom(const Compiled &tooSmall, const codegen::RoomWanted &wanted) {
  std::lock_guard lock(mutex_);
  auto loop = static_cast<size_t>(wanted.loop);
  int64_t step = std::max<int64_t>(1, static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(wanted.turns))) / 8);
  rooms_[loop] = std::max({rooms_[loop], tooSmall.rooms[loop] * 3 / 2, (wanted.turns + step - 1) / step * step});
  std::erase_if(compiled_, [&](const auto &slot) { return slot.second.code.get() == &tooSmall; });
}

} // namespace wg::detail
