// Which program is in the file, and how far on its way to machine code?
#include "tools/Program.h"

#include "codegen/Compile.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "ir/Dialect.h"
#include "ir/Program.h"
#include "ir/Text.h"
#include "runtime/io/File.h"

#include <wengert/Error.h>

namespace wg::tools {

using namespace mlir;

void fail(runtime::Failure failure) { throw Error(std::move(failure)); }

/// Up to stage fused a module holds functions of wg ops on tensors; whatever else one of it holds, it is lowered. It is
/// as fused if the entry holds nothing but kernels and what needs none.
static codegen::Stage stageOf(ModuleOp module, func::FuncOp function) {
  if (ir::findForeign(module))
    return codegen::Stage::lowered;
  Block &body = function.getBody().front();
  bool fused = !body.getOps<ir::KernelOp>().empty() && llvm::all_of(body.without_terminator(), [](Operation &op) {
    return isa<ir::KernelOp, ir::ReshapeOp, ir::ConstantOp>(op);
  });
  return fused ? codegen::Stage::fused : codegen::Stage::traced;
}

runtime::Result<Program> readProgram(const std::string &argument, std::string entry, bool trustLowered) {
  runtime::Result<runtime::InputFile> file = runtime::InputFile::openArgument(argument, runtime::kLongestText);
  if (!file.ok())
    return file.take();
  const std::string &path = file->path();
  runtime::Result<std::string> text = file->text();
  if (!text.ok())
    return text.take();
  if (runtime::Status status = ir::checkText(*text, path); !status.ok())
    return status;
  ir::Diagnostics diagnostics(ir::context());
  Program program{ir::parseText(*text, path), std::move(entry), codegen::Stage::traced};
  if (!program.module)
    return diagnostics.take("the file is not a program in MLIR's text");
  std::vector<std::string> names;
  for (auto function : program.module->getOps<FunctionOpInterface>())
    if (!function.isDeclaration() && SymbolTable::getSymbolVisibility(function) == SymbolTable::Visibility::Public)
      names.push_back(function.getName().str());
  std::string known;
  for (const std::string &name : names)
    known += (known.empty() ? "" : ", ") + name;
  if (program.entry.empty()) {
    if (names.size() != 1)
      return runtime::Failure{.kind = runtime::ErrorKind::lookup,
                              .message = path + " holds " + std::to_string(names.size()) + " public functions" +
                                         (known.empty() ? "" : ": " + known),
                              .remedy = "name one with --entry"};
    program.entry = names[0];
  }
  if (std::find(names.begin(), names.end(), program.entry) == names.end())
    return runtime::Failure{.kind = runtime::ErrorKind::lookup,
                            .message = path + " holds no public function `" + program.entry + "`",
                            .remedy = known.empty() ? "" : "--entry with one of " + known};
  // At stage lowered the entry is still a function of `func`; at stage llvm it is one of LLVM's.
  if (!program.function())
    return runtime::Failure{.kind = runtime::ErrorKind::unimplemented,
                            .message = path + " is at stage llvm: `" + program.entry +
                                       "` is a function of the llvm dialect, which is printed for reading only",
                            .remedy = "give the program's text at stage lowered, or at one before it"};
  program.stage = stageOf(*program.module, program.function());
  if (program.stage == codegen::Stage::lowered && !trustLowered) {
    Operation *foreign = ir::findForeign(*program.module);
    runtime::Failure failure = codegen::untrustedFailure(
        path + ", which holds `" + foreign->getName().getStringRef().str() + "` and so is not a program of wg ops,");
    failure.where = ir::whereOf(foreign->getLoc());
    return failure;
  }
  if (program.stage != codegen::Stage::lowered && failed(ir::checkProgram(*program.module)))
    return diagnostics.take("the file is not a program");
  return program;
}

} // namespace wg::tools
