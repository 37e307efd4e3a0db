// wengert-opt: runs passes over textual IR. For people who work on the compiler and for the tests.
#include "autodiff/Passes.h"
#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include <iostream>

int main(int argc, char **argv) try {
  mlir::DialectRegistry registry;
  registry.insert<wg::ir::WGDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::cf::ControlFlowDialect, mlir::vector::VectorDialect,
                  mlir::LLVM::LLVMDialect, mlir::ub::UBDialect>();
  mlir::registerTransformsPasses(); // canonicalize, cse, symbol-dce, inline, ...
  wg::passes::registerPasses();
  wg::autodiff::registerAutodiffPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Wengert's optimiser driver\n", registry));
} catch (const std::exception &error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
