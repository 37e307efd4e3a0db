// `wengert run FILE.mlir --in a.npy ... --out b.npy ...`: a program on arrays, compiled or interpreted.
#include "tools/Commands.h"
#include "tools/Program.h"

#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "passes/Passes.h"
#include "runtime/io/Npy.h"

#include <iostream>

namespace wg::tools {
namespace {

using runtime::Array;
using runtime::Failure;

struct Options {
  std::string file, entry;
  std::vector<std::string> in, out;
  bool interpret = false, trustLowered = false;
};

bool accepts(const runtime::TensorType &taken, const runtime::TensorType &given) {
  bool fits = taken.dtype == given.dtype && taken.shape.rank() == given.shape.rank();
  for (int axis = 0; fits && axis < taken.shape.rank(); ++axis)
    fits = taken.shape.dim(axis) == runtime::kDynamic || taken.shape.dim(axis) == given.shape.dim(axis);
  return fits;
}

void checkInputs(const Options &options, const std::string &entry, std::span<const runtime::TensorType> taken,
                 std::span<const Array> given) {
  if (taken.size() != given.size())
    fail({.op = entry,
          .message = "takes " + std::to_string(taken.size()) + " inputs, got " + std::to_string(given.size()),
          .remedy = "give one --in file for each argument"});
  for (size_t i = 0; i < given.size(); ++i)
    if (!accepts(taken[i], given[i].type))
      fail({.kind = taken[i].dtype == given[i].dtype() ? runtime::ErrorKind::value : runtime::ErrorKind::type,
            .op = entry,
            .message = "argument " + std::to_string(i) + " is " + toString(taken[i]) + ", " + options.in[i] +
                       " holds " + toString(given[i].type),
            .remedy = "write the array with that dtype and shape"});
}

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
    checkInputs(options, program.entry, executable->info.inputs, inputs);
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
  Program program = orFail(readProgram(options.file, options.entry, options.trustLowered));
  std::vector<Array> inputs, outputs;
  for (const std::string &path : options.in)
    inputs.push_back(orFail(runtime::readNpy(orFail(runtime::InputFile::openArgument(path)))));
  if (mlir::func::FuncOp function = program.function(); function && program.stage != codegen::Stage::lowered) {
    std::vector<runtime::TensorType> taken;
    for (mlir::Type type : function.getArgumentTypes())
      taken.push_back(ir::runtimeTypeOf(type));
    checkInputs(options, program.entry, taken, inputs);
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
  if (options.out.empty())
    for (const Array &output : outputs)
      std::cout << toString(output.type) << " " << toString(output) << "\n";
  else if (options.out.size() != outputs.size())
    fail({.op = program.entry,
          .message = "has " + std::to_string(outputs.size()) + " results, got " + std::to_string(options.out.size()) +
                     " --out files",
          .remedy = "give one --out file for each result, or none to print them"});
  orFail(runtime::writeNpy(options.out, outputs));
  return 0;
}

} // namespace

void addRun(CLI::App &app, Action &action) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("run", "run a program in the dialect's text on arrays");
  command->footer("Files that are read are regular files: the program up to 256 MiB, an array up to 64 GiB. Standard "
                  "input is read up to 1 GiB.");
  addProgram(*command, options->file);
  command->add_option("--entry", options->entry, "the function to run [the only public one]")->check(given());
  command->add_option("--in", options->in, ".npy files, one for each argument; `-` is standard input")->check(given());
  command->add_option("--out", options->out, ".npy files, one for each result [printed]; all are written or none")
      ->check(given());
  addFlag(*command, "--interpret", options->interpret, "run op by op instead of compiling");
  addFlag(*command, "--trust-lowered", options->trustLowered, kTrustLowered);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

} // namespace wg::tools
