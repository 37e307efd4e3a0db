// Which program is in the file, and how far on its way to machine code?
#include "tools/Program.h"

#include "codegen/Compile.h"
#include "ir/Bridge.h"
#include "ir/Dialect.h"
#include "runtime/io/File.h"

#include <wengert/Error.h>

#include "mlir/Parser/Parser.h"

namespace wg::tools {

using namespace mlir;

void fail(runtime::Failure failure) { throw Error(std::move(failure)); }

/// A function of tensors is as traced, or fused if it holds nothing but kernels and what needs none; an entry behind the C ABI takes pointers.
static codegen::Stage stageOf(func::FuncOp function) {
  if (!function || !llvm::all_of(function.getArgumentTypes(), [](Type type) { return isa<RankedTensorType, IndexType>(type); }))
    return codegen::Stage::lowered;
  Block &body = function.getBody().front();
  bool fused = !body.getOps<ir::KernelOp>().empty() &&
               llvm::all_of(body.without_terminator(), [](Operation &op) { return isa<ir::KernelOp, ir::ReshapeOp, ir::ConstantOp>(op); });
  return fused ? codegen::Stage::fused : codegen::Stage::traced;
}

runtime::Result<Program> readProgram(const std::string &argument, std::string entry) {
  runtime::Result<runtime::InputFile> file = runtime::InputFile::openArgument(argument, runtime::kLongestText);
  if (!file.ok())
    return file.take();
  const std::string &path = file->path();
  runtime::Result<std::string> text = file->text();
  if (!text.ok())
    return text.take();
  codegen::DiagnosticScope diagnostics(ir::context());
  ParserConfig config(ir::context());
  Program program{parseSourceString<ModuleOp>(*text, config, path), std::move(entry), codegen::Stage::traced};
  if (!program.module)
    return diagnostics.take("the file is no program in MLIR's text");
  std::vector<std::string> names;
  for (auto function : program.module->getOps<FunctionOpInterface>())
    if (!function.isDeclaration() && SymbolTable::getSymbolVisibility(function) == SymbolTable::Visibility::Public)
      names.push_back(function.getName().str());
  std::string known;
  for (const std::string &name : names)
    known += (known.empty() ? "" : ", ") + name;
  if (program.entry.empty()) {
    if (names.size() != 1)
      return runtime::Failure{.kind = runtime::ErrorKind::lookup, .message = path + " holds " + std::to_string(names.size()) + " public functions" + (known.empty() ? "" : ": " + known),
                              .remedy = "name one with --entry"};
    program.entry = names[0];
  }
  if (std::find(names.begin(), names.end(), program.entry) == names.end())
    return runtime::Failure{.kind = runtime::ErrorKind::lookup, .message = path + " holds no public function `" + program.entry + "`",
                            .remedy = known.empty() ? "" : "--entry with one of " + known};
  // At stage lowered the entry is still a function of `func`; at stage llvm it is one of LLVM's.
  if (!program.function())
    return runtime::Failure{.kind = runtime::ErrorKind::unimplemented, .message = path + " is at stage llvm: `" + program.entry + "` is a function of the llvm dialect, which is printed for reading only",
                            .remedy = "give the program's text at stage lowered, or at one before it"};
  program.stage = stageOf(program.function());
  return program;
}

} // namespace wg::tools
