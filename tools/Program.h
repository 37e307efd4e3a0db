// A program in the dialect's text, read from a file: what `wengert run` and `wengert compile` begin with.
#pragma once

#include "codegen/Pipeline.h"
#include "runtime/Status.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace wg::tools {

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entry;
  codegen::Stage stage; ///< how far on its way to machine code the text is
  /// The entry as a function of wg ops; null once lowered.
  mlir::func::FuncOp function() { return module->lookupSymbol<mlir::func::FuncOp>(entry); }
};

/// Reads (`-` is standard input), parses and verifies text that may come from anybody; runtime::kLongestText bytes are
/// the most. Without a name, the entry is the file's only function that is not private. Text at stage lowered is
/// machine code, and refused unless `trustLowered`.
runtime::Result<Program> readProgram(const std::string &argument, std::string entry, bool trustLowered);

/// Throws wg::Error.
[[noreturn]] void fail(runtime::Failure failure);
template <class T> T orFail(runtime::Result<T> result) {
  if (!result.ok())
    fail(result.take());
  return std::move(*result);
}
inline void orFail(runtime::Status status) {
  if (!status.ok())
    fail(status.take());
}

} // namespace wg::tools
