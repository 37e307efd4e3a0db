// Object files that need nothing but libc and libm, and libwengert_rt.a where they call a routine; and the C headers
// that describe them.
#pragma once

#include "codegen/target/Cpu.h"
#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace wg::codegen {

/// A module of the llvm dialect as a position-independent ELF object. An undefined symbol that is
/// none of libm, libc or libwengert_rt.a is an error that names it.
runtime::Result<std::string> emitObject(mlir::ModuleOp module, const Target &target);
/// The same as assembly text, which may be of code that the runtime compiled for itself: that names wg_parallel_for.
runtime::Result<std::string> emitAssembly(mlir::ModuleOp module, const Target &target);

/// An argument or result of a compiled entry, as its C header describes it.
struct CValue {
  std::string name;
  runtime::TensorType type; ///< static sizes
  bool updated = false;     ///< read and written in place
};

/// A compiled entry `int32_t name(void *const *args, const int64_t *sizes, void *workspace)`.
struct CEntry {
  std::string name;              ///< a C identifier
  std::string summary;           ///< one line for the comment; may be empty
  std::vector<CValue> arguments; ///< in the order of `args`
  std::vector<CValue> results;   ///< follow the arguments in `args`
  int64_t workspaceBytes = 0;
  std::vector<std::string> errors; ///< text of the return codes 1, 2, ...
  bool usesRoutines = false;       ///< it is linked with libwengert_rt.a
  std::vector<std::string> calls;  ///< C functions of the user's, with which it is linked
};

/// Adds `int64_t NAME_workspace_bytes(const int64_t *sizes)` to a module of the llvm dialect: of static sizes, `bytes`.
void addWorkspaceBytes(mlir::ModuleOp module, llvm::StringRef name, int64_t bytes);

/// The C header of an entry, for C99 and C++: argument order and sizes, `NAME_WORKSPACE_BYTES`, the text of each error
/// code.
std::string cHeader(const CEntry &entry);

} // namespace wg::codegen
