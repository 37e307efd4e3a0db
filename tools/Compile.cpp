// `wengert compile FILE -o DIR`: an object file and its C header, ahead of time, of a program or a saved function.
#include "tools/Commands.h"
#include "tools/Program.h"
#include "tools/Saved.h"

#include "codegen/Compile.h"
#include "codegen/Names.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

#include <filesystem>
#include <iostream>

namespace wg::tools {
namespace {

struct Options {
  std::string file, entry, function, directory = ".", name, types, cpu = "x86-64-v2";
  int64_t trace = 0;
  std::vector<std::string> after;
  bool trustLowered = false;
};

/// `simplified=func.func(cse)`: passes and the stage that they follow.
std::vector<codegen::PassesAfter> passesOf(const Options &options) {
  if (!options.after.empty()) {
    mlir::registerTransformsPasses(); // canonicalize, cse, ...
    codegen::registerStages();
  }
  std::vector<codegen::PassesAfter> passes;
  for (const std::string &text : options.after) {
    size_t equals = text.find('=');
    std::optional<codegen::Stage> stage = codegen::parseStage(text.substr(0, equals));
    if (equals == std::string::npos || !stage || *stage == codegen::Stage::assembly)
      fail({.message = "--after " + text + " names no stage and its passes",
            .remedy = "--after 'simplified=func.func(cse)'; `wengert stages` lists the stages"});
    passes.push_back({*stage, text.substr(equals + 1)});
  }
  return passes;
}

int listStages() {
  for (const codegen::StageInfo &stage : codegen::stages())
    std::cout << stage.name.str() << (stage.pass.empty() ? "" : " (wengert-opt --" + stage.pass.str() + ")") << "\n    "
              << stage.reason.str() << "\n";
  return 0;
}

/// The arguments get the sizes of --types, and everything that follows from them too.
void specialise(Program &program, const Options &options) {
  mlir::func::FuncOp function = program.function();
  if (!function || program.stage == codegen::Stage::lowered)
    fail({.message = options.file + " is lowered: its sizes are fixed", .remedy = "leave out --types"});
  ir::Diagnostics diagnostics(ir::context());
  llvm::SmallVector<mlir::Type> types = orFail(passes::parseTypes(ir::context(), options.types));
  if (mlir::failed(passes::inferShapes(function, types)))
    fail(diagnostics.take("the sizes do not fit the program"));
}

void makeDirectory(const std::string &path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem)
    fail({.kind = runtime::ErrorKind::io, .message = path + ": " + problem.message()});
}

int written(const Options &options, const std::string &name) {
  std::filesystem::path object = std::filesystem::path(options.directory) / (name + ".o");
  std::error_code problem;
  auto size = std::filesystem::file_size(object, problem); // a device has none
  std::cout << object.string() << (problem ? "" : " (" + std::to_string(size) + " bytes)") << ", " << name << ".h\n";
  return 0;
}

/// After the arguments the C function takes the variables and the captured tensors, which stay in the saved file.
int compileSaved(const Options &options) {
  SavedFunction function = loadFunction(options.file, options.function);
  if (!options.trace && function.traces.size() > 1)
    fail({.kind = ErrorKind::lookup,
          .op = function.name,
          .message = "has " + std::to_string(function.traces.size()) + " traces:" + function.list(),
          .remedy = "name one with --trace"});
  SavedTrace trace = function.trace(options.trace ? options.trace : 1);
  if (!options.types.empty())
    trace = withTypes(trace, options.types);
  requireSizes(trace);
  std::string name = options.name.empty() ? trace.concrete->code->entry() : options.name;
  orFail(codegen::checkName(name));
  makeDirectory(options.directory);
  ConcreteFunction(trace.concrete).write_object(options.directory, {.name = name, .cpu = options.cpu}, {});
  return written(options, name);
}

int compile(const Options &options) {
  if (checkSaved(options.file,
                 {{"--entry", !options.entry.empty()},
                  {"--after", !options.after.empty()},
                  {"--trust-lowered", options.trustLowered}},
                 {{"--function", !options.function.empty()}, {"--trace", options.trace != 0}}))
    return compileSaved(options);
  Program program = orFail(readProgram(options.file, options.entry, options.trustLowered));
  std::string name = options.name.empty() ? program.entry : options.name;
  orFail(codegen::checkName(name));
  std::optional<codegen::Target> target = codegen::Target::named(options.cpu);
  if (!target)
    fail({.message = "LLVM knows no x86-64 processor `" + options.cpu + "`",
          .remedy = "--cpu x86-64-v2, x86-64-v3, x86-64-v4 or native"});
  makeDirectory(options.directory);
  if (!options.types.empty())
    specialise(program, options);
  orFail(codegen::compileToObject(program.module.release(), program.entry, *target, options.directory, name, {}, {},
                                  program.stage, options.trustLowered, passesOf(options)));
  return written(options, name);
}

} // namespace

void addCompile(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand(
      "compile", "compile a program in the dialect's text, or a saved function, to an object file and a C header");
  addProgram(*command, options->file);
  command->add_option("--entry", options->entry, "the function to compile [the only public one]")->check(given());
  addSaved(*command, options->function, options->trace);
  command
      ->add_option("-o,--output", options->directory, "directory of the two files, of which both are written or none")
      ->capture_default_str()
      ->check(given());
  command->add_option("--name", options->name, "of the C function and of the files [the entry's]")->check(given());
  command->add_option("--types", options->types, "what the tensor arguments are, where there is a `?`: f32[8,3];f32[3]")
      ->check(given());
  command->add_option("--cpu", options->cpu, "LLVM's name of the processor, or `native`")
      ->capture_default_str()
      ->check(given());
  command
      ->add_option("--after", options->after,
                   "passes of your own and the stage that they follow: simplified=func.func(cse); may be repeated")
      ->check(given());
  addFlag(*command, "--trust-lowered", options->trustLowered, kTrustLowered);
  command->callback([options, &action] { action = [options] { return compile(*options); }; });
}

void addStages(CLI::App &app, Action &action) {
  CLI::App *command =
      app.add_subcommand("stages", "list the stages of compilation, their passes, and why they stand so");
  command->callback([&action] { action = listStages; });
}

} // namespace wg::tools
