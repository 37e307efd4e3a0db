// Machine code in this process.
#pragma once

#include "codegen/target/Cpu.h"
#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <memory>

namespace wg::codegen {

/// A function or object of this process that compiled code may name.
struct Symbol {
  const char *name;
  void *address;
};

/// Milliseconds spent in each part of a compilation.
struct JitTimes {
  double split = 0;   ///< one module of the llvm dialect -> one for each worker
  double codegen = 0; ///< llvm dialect -> LLVM IR -> machine code
  double link = 0;    ///< machine code -> addresses
};

/// Compiled code; frees it when destroyed, so it must outlive every call into it. Immutable: any thread may use it.
class JitModule {
public:
  virtual ~JitModule() = default;
  /// The address of a public function of the module, or null.
  virtual void *lookup(llvm::StringRef name) const = 0;
  template <class Function> Function *lookup(llvm::StringRef name) const {
    return reinterpret_cast<Function *>(lookup(name));
  }
  /// Bytes of machine code and constants.
  virtual size_t codeBytes() const = 0;
};

/// Compiles a module of the llvm dialect. Its undefined symbols may be functions of libm, the few of libc that the code
/// generator itself calls (memcpy, ...), and `symbols`; any other is an error that names it. Any number of threads may
/// compile at once, each its own module.
runtime::Result<std::unique_ptr<JitModule>> jit(mlir::ModuleOp module, const Target &target,
                                                llvm::ArrayRef<Symbol> symbols = {}, JitTimes *times = nullptr);

/// True if `name` is a function of libm or libc that compiled code may call.
bool isLibrarySymbol(llvm::StringRef name);

} // namespace wg::codegen
