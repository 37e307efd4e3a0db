// What Jit and Aot share: LLVM IR from the llvm dialect, and machine code from LLVM IR. Private to the room.
#pragma once

#include "codegen/target/Cpu.h"
#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace wg::codegen {

/// Translates; sets data layout, CPU and width attributes; refuses undefined symbols unless `allowed`.
runtime::Result<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, const Target &target,
                                                         llvm::LLVMContext &context,
                                                         llvm::function_ref<bool(llvm::StringRef)> allowed);

/// Machine code of `module`, an ELF object or assembly text, appended to `code`: position-independent, -O2, and no pass
/// of LLVM's optimiser (the emitters write the vector code that it would have to find).
runtime::Status generate(llvm::Module &module, const Target &target, bool assembly, llvm::SmallVectorImpl<char> &code);

/// `internal error in wengert`, with the stage.
runtime::Failure internalError(std::string stage, std::string message);

} // namespace wg::codegen
