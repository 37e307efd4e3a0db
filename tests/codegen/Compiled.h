// Text to machine code, for the tests of the code generator.
#pragma once

#include "codegen/Jit.h"
#include "codegen/LowerToLLVM.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wg::codegen {

/// One context for all tests of a program, its dialects loaded: threads may use it at once.
inline mlir::MLIRContext &context() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerLoweredDialects(registry);
    auto *made = new mlir::MLIRContext(registry);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

/// Parses and lowers; an empty reference if either fails.
inline mlir::OwningOpRef<mlir::ModuleOp> lowered(const std::string &text, const Target &target, bool callMath = false) {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  if (module && mlir::failed(lowerToLLVM(*module, target, callMath)))
    return nullptr;
  return module;
}

inline std::unique_ptr<JitModule> compiled(const std::string &text, const Target &target, JitTimes *times = nullptr) {
  mlir::OwningOpRef<mlir::ModuleOp> module = lowered(text, target);
  if (!module)
    return nullptr;
  auto result = jit(*module, target, {}, times);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : runtime::toString(result.failure()));
  return result.ok() ? std::move(*result) : nullptr;
}

/// `func @name(x, y, n)`: y[i] = op(x[i]) for i < n by native vectors (n a multiple of the lanes) or by scalars.
inline std::string mapText(const std::string &name, const std::string &op, const std::string &element, int lanes) {
  std::string type = lanes == 1 ? element : "vector<" + std::to_string(lanes) + "x" + element + ">";
  std::string align = element == "f32" ? "4" : "8";
  return "func.func @" + name +
         "(%x: !llvm.ptr, %y: !llvm.ptr, %n: i64) {\n  %c0 = arith.constant 0 : i64\n  %step = arith.constant " +
         std::to_string(lanes) +
         " : i64\n  scf.for %i = %c0 to %n step %step : i64 {\n    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) "
         "-> !llvm.ptr, " +
         element + "\n    %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, " + element +
         "\n    %v = llvm.load %p {alignment = " + align + " : i64} : !llvm.ptr -> " + type + "\n    %r = " + op +
         " %v : " + type + "\n    llvm.store %r, %q {alignment = " + align + " : i64} : " + type +
         ", !llvm.ptr\n  }\n  return\n}\n";
}

/// The targets that this machine can run, widest first.
inline std::vector<Target> runnableTargets() {
  std::vector<Target> targets;
  for (const char *name : {"native", "x86-64-v4", "x86-64-v3", "x86-64-v2"})
    if (std::optional<Target> target = Target::named(name); target && Target::hostCanRun(*target))
      targets.push_back(*target);
  return targets;
}

} // namespace wg::codegen
