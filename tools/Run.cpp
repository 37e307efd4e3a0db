// `wengert run FILE --in a.npy ... --out b.npy ...`: a program or a saved function on arrays, compiled or interpreted.
#include "tools/Arrays.h"
#include "tools/Commands.h"
#include "tools/Program.h"
#include "tools/Saved.h"

#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "passes/Passes.h"

namespace wg::tools {
namespace {

using runtime::Array;
using runtime::Failure;

struct Options {
  std::string file, entry, function, save;
  int64_t trace = 0;
  std::vector<std::string> in, out;
  bool interpret = false, trustLowered = false;
};

std::vector<Array> runCompiled(Program &program, const Options &options, std::span<const Array> inputs) {
  if (mlir::func::FuncOp function = program.function(); function && program.stage != codegen::Stage::lowered) {
    ir::Diagnostics diagnostics(ir::context());
    llvm::SmallVector<mlir::Type> types;
    for (auto [type, array] : llvm::zip_equal(function.getArgumentTypes(), inputs))
      types.push_back(mlir::isa<mlir::IndexType>(type) ? type
                                                       : mlir::Type(ir::tensorTypeOf(ir::context(), array.type)));
    if (mlir::failed(passes::inferShapes(function, types)))
      fail(diagnostics.take("the sizes do not fit the program"));
  }
  auto executable = orFail(
      codegen::compile(program.module.release(), program.entry, {.trustLowered = options.trustLowered}, program.stage));
  if (program.stage == codegen::Stage::lowered)
    checkInputs(program.entry, executable->info.inputs, inputs, options.in);
  std::vector<Array> outputs;
  std::vector<void *> pointers;
  for (const Array &input : inputs)
    pointers.push_back(input.buffer.data());
  for (const runtime::TensorType &type : executable->info.results) {
    outputs.push_back(Array::empty(type.dtype, type.shape));
    pointers.push_back(outputs.back().buffer.data());
  }
  codegen::AtFault atFault;
  if (int32_t code = executable->run(pointers.data(), &atFault))
    fail(executable->failure(code, atFault));
  return outputs;
}

int run(const Options &options) {
  if ((options.file == "-") + std::count(options.in.begin(), options.in.end(), "-") > 1)
    throw CLI::ValidationError("-", "standard input can be read once");
  if (checkSaved(options.file, {{"--entry", !options.entry.empty()}, {"--trust-lowered", options.trustLowered}},
                 {{"--function", !options.function.empty()},
                  {"--trace", options.trace != 0},
                  {"--save", !options.save.empty()}}))
    return runSaved({.path = options.file,
                     .function = options.function,
                     .save = options.save,
                     .trace = options.trace,
                     .in = options.in,
                     .out = options.out,
                     .interpret = options.interpret});
  Program program = orFail(readProgram(options.file, options.entry, options.trustLowered));
  std::vector<Array> inputs = readArrays(options.in), outputs;
  if (mlir::func::FuncOp function = program.function(); function && program.stage != codegen::Stage::lowered) {
    std::vector<runtime::TensorType> taken;
    for (mlir::Type type : function.getArgumentTypes())
      taken.push_back(ir::runtimeTypeOf(type));
    checkInputs(program.entry, taken, inputs, options.in);
  }
  if (options.interpret) {
    if (program.stage == codegen::Stage::lowered)
      fail({.message = options.file + " is lowered already; the interpreter runs programs up to fused",
            .remedy = "leave out --interpret"});
    ir::Diagnostics diagnostics(ir::context());
    mlir::FailureOr<codegen::Program> rows = codegen::flatten(program.function());
    if (mlir::failed(rows))
      fail(diagnostics.take("the interpreter cannot run this program"));
    outputs = orFail(codegen::interpret(*rows, inputs));
  } else {
    outputs = runCompiled(program, options, inputs);
  }
  giveResults(program.entry, outputs, options.out);
  return 0;
}

} // namespace

void addRun(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("run", "run a program in the dialect's text, or a saved function, on arrays");
  command->footer("Files that are read are regular files: the program up to 256 MiB, an array up to 64 GiB. Standard "
                  "input is read up to 1 GiB.");
  addProgram(*command, options->file);
  command->add_option("--entry", options->entry, "the function to run [the only public one]")->check(given());
  addSaved(*command, options->function, options->trace);
  command->add_option("--in", options->in, ".npy files, one for each argument; `-` is standard input")->check(given());
  command->add_option("--out", options->out, ".npy files, one for each result [printed]; all are written or none")
      ->check(given());
  command
      ->add_option("--save", options->save,
                   "where what is saved is written with the variables as they are after the call: a directory, or a "
                   "file that ends in .wg [what is assigned is lost]")
      ->check(given());
  addFlag(*command, "--interpret", options->interpret, "run op by op instead of compiling");
  addFlag(*command, "--trust-lowered", options->trustLowered, kTrustLowered);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

} // namespace wg::tools
