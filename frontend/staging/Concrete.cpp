// What a concrete function tells about itself: its text at every stage, its kernels and times; and its object file.
#include "frontend/staging/Function.h"

#include "codegen/Aot.h"
#include "codegen/Compile.h"
#include "codegen/Names.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

namespace wg {

const char *to_string(Stage stage) { return codegen::nameOf(static_cast<codegen::Stage>(stage)).data(); }

detail::ConcreteState &ConcreteFunction::self(const Where &where) const {
  if (!state_)
    detail::raiseOp("function", "the concrete function was moved from, and holds nothing", "use what it was moved to",
                    {}, where, ErrorKind::runtime);
  return *state_;
}

/// LLVM's tables may be gone.
static void checkGenerating(const ir::Generating &generating, const char *what, const Where &where) {
  if (!generating.allowed())
    detail::raiseOp(what, "no machine code is made once exit() has begun", "write it before main returns", {}, where,
                    ErrorKind::runtime);
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

std::string ConcreteFunction::text(Stage stage) const {
  detail::Code &code = *self().code;
  if (ir::threadEnds()) [[unlikely]]
    return detail::whereMlirIsAlive(code.entry().c_str(), {}, [&] { return text(stage); });
  ir::Working working;
  auto wanted = static_cast<codegen::Stage>(stage);
  // Printing numbers the ops of what it prints: of a copy, which no other thread reads.
  if (stage == Stage::traced)
    return print(*OwningOpRef<ModuleOp>(cast<ModuleOp>(code.module()->clone())));
  ir::Generating generating;
  checkGenerating(generating, "text", self().calledAt);
  OwningOpRef<ModuleOp> module = code.staticModule(self().calledAt);
  ir::Diagnostics diagnostics(ir::context());
  auto reached = std::min(wanted, codegen::Stage::llvm);
  std::vector<std::shared_ptr<const codegen::Executable>> compiled = code.executables();
  auto choose = [&](const passes::Forms &forms) { // as it was compiled
    return compiled.empty() ? 0 : codegen::chosenBefore(compiled.front()->forms, forms);
  };
  if (failed(codegen::runPipeline(*module, code.entry(), codegen::Stage::traced, reached, {.choose = choose})))
    detail::raise(diagnostics.take("the function cannot be brought to this stage"), self().calledAt);
  if (stage != Stage::assembly)
    return print(*module);
  runtime::Result<std::string> assembly = codegen::emitAssembly(*module, codegen::Target::host());
  if (!assembly.ok())
    detail::raise(assembly.take(), self().calledAt);
  return *assembly;
}

std::vector<KernelInfo> ConcreteFunction::kernels() const {
  std::vector<KernelInfo> list;
  for (const auto &executable : self().code->executables())
    for (const codegen::KernelReport &kernel : executable->kernels) {
      int64_t ops = kernel.ops.empty() ? 0 : 1 + std::count(kernel.ops.begin(), kernel.ops.end(), ',');
      double flops = kernel.counts.flops ? static_cast<double>(*kernel.counts.flops) : std::nan("");
      list.push_back(
          {kernel.name, kernel.kind, kernel.ops, kernel.where, ops, flops, static_cast<double>(kernel.counts.bytes())});
    }
  return list;
}

int64_t ConcreteFunction::workspace_bytes() const {
  int64_t most = 0;
  for (const auto &executable : self().code->executables())
    most = std::max(most, executable->info.workspaceBytes);
  return most;
}

std::vector<StageTime> ConcreteFunction::timings() const {
  std::vector<StageTime> list{{"trace", self().traceSeconds, self().numOps}};
  for (const auto &executable : self().code->executables())
    for (const codegen::StageReport &stage : executable->stages)
      list.push_back({codegen::nameOf(stage.stage).str(), stage.milliseconds / 1e3, stage.ops});
  return list;
}

void ConcreteFunction::write_object(const std::string &directory, ObjectOptions options, Where where) const {
  detail::Code &code = *self(where).code;
  if (ir::threadEnds()) [[unlikely]]
    return detail::whereMlirIsAlive("write_object", where, [&] { write_object(directory, options, where); });
  ir::Working working;
  ir::Generating generating;
  checkGenerating(generating, "write_object", where);
  std::string name = options.name.empty() ? code.entry() : options.name;
  if (runtime::Status status = codegen::checkName(name); !status.ok())
    detail::raise(status.take(), where);
  OwningOpRef<ModuleOp> module = code.staticModule(where);
  std::vector<std::string> inputs, results;
  for (const detail::TraceInput &input : self().inputs)
    inputs.push_back(
        input.kind == detail::TraceInput::argument ? "arg" + std::to_string(input.leaf)
        : input.kind == detail::TraceInput::variable
            ? (input.state->name.empty() ? "variable" + std::to_string(input.state->id) : input.state->name)
            : "captured" + std::to_string(inputs.size()));
  for (uint32_t i = 0; i < self().numResults; ++i)
    results.push_back("result" + std::to_string(i));
  for (uint32_t input : self().assigned)
    results.push_back("new_" + inputs[input]);
  std::optional<codegen::Target> target = codegen::Target::named(options.cpu.empty() ? "x86-64-v2" : options.cpu);
  if (!target)
    detail::raiseOp("write_object", "LLVM knows no x86-64 CPU named " + options.cpu,
                    "give native, x86-64-v2, x86-64-v3 or x86-64-v4", {}, where);
  runtime::Status status =
      codegen::compileToObject(module.release(), code.entry(), *target, directory, name, inputs, results);
  if (!status.ok())
    detail::raise(status.take(), where);
}

std::vector<Tensor> ConcreteFunction::call_flat(std::span<const Tensor> arguments, Where where) const {
  std::vector<detail::Arguments::Leaf> leaves;
  for (const Tensor &argument : arguments)
    leaves.push_back({&argument, nullptr});
  return detail::callChecked(self(), leaves, where);
}

static std::vector<detail::Arguments::Leaf> leavesOf(const std::vector<detail::Source> &arguments) {
  std::vector<detail::Arguments::Leaf> leaves;
  for (const detail::Source &argument : arguments)
    leaves.push_back({argument.variable.defined() ? nullptr : &argument.tensor,
                      argument.variable.defined() ? &argument.variable : nullptr});
  return leaves;
}

std::vector<Tensor> ConcreteFunction::callLeaves(const std::vector<detail::Source> &arguments,
                                                 const Where &where) const {
  return detail::callChecked(self(where), leavesOf(arguments), where);
}

Profile ConcreteFunction::profileLeaves(const std::vector<detail::Source> &arguments, const Where &where) const {
  std::vector<detail::Arguments::Leaf> leaves = leavesOf(arguments);
  detail::checkLeaves(self(where), leaves, where);
  return detail::profile(self(where), leaves, where);
}

std::vector<Tensor> detail::callChecked(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves,
                                        const Where &where) {
  const char *name = concrete.name.c_str();
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(name, where, [&] { return callChecked(concrete, leaves, where); });
  checkLeaves(concrete, leaves, where);
  Inline<Tensor, 8> results;
  callConcrete(concrete, leaves, results, where);
  return {results.begin(), results.end()};
}

void detail::checkLeaves(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where) {
  const char *name = concrete.name.c_str();
  const LeafVariables &traced = concrete.variablesOf;
  size_t expected = traced.aliasOf.size();
  if (leaves.size() != expected)
    raiseOp(name,
            "takes " + std::to_string(expected) + (expected == 1 ? " tensor, got " : " tensors, got ") +
                std::to_string(leaves.size()),
            "pass one for each tensor of " + concrete.signature, {}, where, ErrorKind::type);
  auto refuseKind = [&](size_t leaf, bool isVariable) {
    raiseOp(name,
            "argument " + std::to_string(leaf) + (isVariable ? " is a variable" : " is a tensor") + " in the signature",
            "pass what " + concrete.signature + " names", {}, where, ErrorKind::type);
  };
  for (const TraceInput &input : concrete.inputs)
    if ((input.kind == TraceInput::argument && !leaves[input.leaf].tensor) ||
        (input.formal && !leaves[input.leaf].variable))
      refuseKind(input.leaf, input.formal);
  LeafVariables given = describeVariables(leaves, concrete.captured);
  for (size_t i = 0; i < leaves.size(); ++i) {
    bool asTraced = given.capturedIds[i] == traced.capturedIds[i];
    bool sameAlias = given.aliasOf[i] == traced.aliasOf[i];
    if (asTraced && sameAlias && given.placeOf[i] == traced.placeOf[i] &&
        given.capturedPlaces[i] == traced.capturedPlaces[i])
      continue;
    if (!leaves[i].variable) // one that the function captures, or that another argument is
      refuseKind(i, true);
    raiseOp(name,
            "argument " + std::to_string(i) + ", " + detail::describe(*leaves[i].variable->state()) + ", is " +
                (!asTraced    ? given.capturedIds[i] >= 0 ? "captured by the function as well"
                                                          : "not the one that the function captures"
                 : !sameAlias ? given.aliasOf[i] != i ? "also argument " + std::to_string(given.aliasOf[i])
                                                      : "not also argument " + std::to_string(traced.aliasOf[i])
                              : std::string("differentiated by at one of several places")) +
                ", unlike when it was traced",
            "call the function itself, which traces again", {}, where);
  }
}

std::string ConcreteFunction::signature() const { return self().signature; }
std::vector<DroppedGradient> ConcreteFunction::certificate() const { return self().certificate(); }

std::vector<Variable> ConcreteFunction::variables() const {
  std::vector<Variable> list;
  for (const detail::TraceInput &input : self().inputs)
    if (input.kind == detail::TraceInput::variable)
      list.emplace_back(input.state);
  return list;
}

} // namespace wg
