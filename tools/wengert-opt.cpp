// wengert-opt: runs passes over textual IR. For people who work on the compiler and for the tests.
#include "autodiff/Passes.h"
#include "codegen/Pipeline.h"
#include "ir/Dialect.h"
#include "ir/Text.h"
#include "runtime/io/File.h"
#include "tools/Streams.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <iostream>

/// Each part of the text that the parser will get by itself is measured by itself.
static wg::runtime::Status check(llvm::StringRef text, llvm::StringRef name, llvm::StringRef splitMarker) {
  llvm::SmallVector<llvm::StringRef> parts{text};
  if (!splitMarker.empty()) {
    parts.clear();
    text.split(parts, splitMarker);
  }
  for (llvm::StringRef part : parts)
    if (wg::runtime::Status status = wg::ir::checkText(part, name); !status.ok())
      return status;
  return {};
}

/// As upstream's driver does, but for the files: they are read and written by the runtime's two functions.
static mlir::LogicalResult optimise(int argc, char **argv, mlir::DialectRegistry &registry) {
  llvm::InitLLVM crashes(argc, argv);
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Wengert's optimiser driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry); // which reads and writes no file
  auto said = [](const wg::runtime::Failure &failure) {
    llvm::errs() << toString(failure) << "\n";
    return mlir::failure();
  };
  wg::runtime::Result<wg::runtime::InputFile> file =
      wg::runtime::InputFile::openArgument(input, wg::runtime::kLongestText);
  if (!file.ok())
    return said(file.failure());
  wg::runtime::Result<std::string> text = file->text();
  if (!text.ok())
    return said(text.failure());
  if (wg::runtime::Status status = check(*text, file->path(), config.inputSplitMarker()); !status.ok())
    return said(status.failure());
  std::string written;
  llvm::raw_string_ostream stream(written);
  auto buffer = llvm::MemoryBuffer::getMemBuffer(*text, file->path());
  mlir::LogicalResult result = mlir::MlirOptMain(stream, std::move(buffer), registry, config);
  if (output == "-")
    std::cout << written;
  else if (mlir::succeeded(result))
    if (wg::runtime::Status status = wg::runtime::writeFile(output, written); !status.ok())
      return said(status.failure());
  return result;
}

static int run(int argc, char **argv) try {
  mlir::DialectRegistry registry;
  registry.insert<wg::ir::WGDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::cf::ControlFlowDialect, mlir::vector::VectorDialect,
                  mlir::LLVM::LLVMDialect, mlir::ub::UBDialect>();
  mlir::registerTransformsPasses(); // canonicalize, cse, symbol-dce, inline, ...
  wg::codegen::registerStages();
  wg::autodiff::registerAutodiffPasses();
  return mlir::asMainReturnCode(optimise(argc, argv, registry));
} catch (const std::exception &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}

int main(int argc, char **argv) {
  wg::tools::holdStandardStreams();
  return wg::tools::finish(run(argc, argv));
}
