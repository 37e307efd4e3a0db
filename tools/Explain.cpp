// `wengert explain PATH`: why was a saved function traced, which kernels were made of its ops, and which gradients are
// not computed?
#include "tools/Commands.h"
#include "tools/Program.h"
#include "tools/Saved.h"

#include "codegen/Compile.h"

#include <algorithm>
#include <iostream>

namespace wg::tools {
namespace {

struct Options {
  std::string path, function, types, stage;
  int64_t trace = 0;
};

std::string counted(int64_t count, const char *thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// Compiled for these sizes, without being called; none if they are open, or if it is interpreted.
std::shared_ptr<const codegen::Executable> executableOf(const SavedTrace &trace) {
  detail::Code &code = *trace.concrete->code;
  if (!code.isStatic())
    return nullptr;
  std::shared_ptr<const detail::Code::Compiled> compiled = code.compiled({}, {});
  return compiled ? compiled->executable : nullptr;
}

void printKernels(const codegen::Executable &executable) {
  std::cout << "  ops by stage:";
  for (const codegen::StageReport &stage : executable.stages)
    if (stage.stage <= codegen::Stage::lowered)
      std::cout << (&stage == executable.stages.data() ? " " : ", ") << codegen::nameOf(stage.stage).str() << " "
                << stage.ops;
  std::cout << "\n  " << counted(static_cast<int64_t>(executable.kernels.size()), "kernel") << ", "
            << counted(static_cast<int64_t>(executable.codeBytes), "byte") << " of code, "
            << counted(executable.info.workspaceBytes, "byte") << " of workspace\n";
  for (const codegen::KernelReport &kernel : executable.kernels)
    std::cout << "  kernel " << kernel.name << " (" << kernel.kind << "): " << kernel.ops << "\n    "
              << (kernel.counts.flops ? counted(*kernel.counts.flops, "flop") : "flops unknown") << ", "
              << (kernel.counts.transcendentals ? std::to_string(kernel.counts.transcendentals) + " transcendental, "
                                                : "")
              << counted(kernel.counts.bytes(), "byte") << (kernel.lines.empty() ? "" : "; lines " + kernel.lines)
              << "\n";
}

void printTrace(const SavedTrace &trace, const detail::ManifestFunction &function) {
  const detail::ConcreteState &concrete = *trace.concrete;
  std::string reason = concrete.reason; // of several lines where a signature is compared with another
  for (size_t end = 0; (end = reason.find('\n', end)) != std::string::npos; end += 5)
    reason.replace(end, 1, "\n    ");
  std::cout << "\ntrace " << trace.number << ": " << concrete.signature << "\n  traced: " << reason << "\n  "
            << counted(concrete.numOps, "op") << " traced\n";
  if (std::shared_ptr<const codegen::Executable> executable = executableOf(trace))
    printKernels(*executable);
  else
    std::cout << (concrete.code->interpreted()
                      ? "  interpreted: no kernels\n"
                      : "  its kernels depend on sizes that are open: --types 'f32[8,3];f32[3]' gives them\n");
  // As it was saved: loading a tape may have differentiated it again.
  const std::vector<detail::ManifestFunction::Dropped> &dropped = function.certificate;
  std::cout << "  " << counted(static_cast<int64_t>(dropped.size()), "gradient") << " not computed\n";
  for (const detail::ManifestFunction::Dropped &each : dropped)
    std::cout << "    " << each.op << ", operand " << each.operand << (each.where.empty() ? "" : ", at " + each.where)
              << ": " << each.reason << "\n";
}

int explain(const Options &options) {
  SavedFunction function = loadFunction(options.path, options.function);
  std::vector<SavedTrace> traces = function.traces;
  if (options.trace)
    traces = {function.trace(options.trace)};
  else if (traces.size() > 1 && !(options.stage.empty() && options.types.empty()))
    fail({.kind = ErrorKind::lookup,
          .op = function.name,
          .message = "has " + std::to_string(traces.size()) + " traces:" + function.list(),
          .remedy = "name one with --trace"});
  if (!options.types.empty())
    traces = {withTypes(traces.front(), options.types)};
  if (!options.stage.empty()) {
    if (options.stage != codegen::nameOf(codegen::Stage::traced))
      requireSizes(traces.front());
    std::cout
        << ConcreteFunction(traces.front().concrete).text(static_cast<Stage>(*codegen::parseStage(options.stage)));
    return 0;
  }
  std::cout << function.name << ": a function, " << counted(static_cast<int64_t>(function.traces.size()), "trace")
            << "\n";
  for (const SavedTrace &trace : traces)
    printTrace(trace, function.file.manifest.functions[trace.function]);
  return 0;
}

} // namespace

void addExplain(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand(
      "explain", "say of a saved function why it was traced, how it is computed, and which gradients are not");
  addSavedPath(*command, options->path);
  addSaved(*command, options->function, options->trace);
  command->add_option("--types", options->types, "what the tensor arguments are, where there is a `?`: f32[8,3];f32[3]")
      ->check(given());
  command->add_option("--stage", options->stage, "print its text after this stage, and nothing else")
      ->check(CLI::IsMember({"traced", "dropped", "simplified", "fused", "lowered", "llvm", "assembly"}));
  command->callback([options, &action] { action = [options] { return explain(*options); }; });
}

} // namespace wg::tools
