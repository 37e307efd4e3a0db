// Is lowered text such as the emitters write? It is machine code with its author's rights, so nothing here
// makes it safe; but what MLIR and LLVM would not survive is refused with its place, and so is an entry
// whose description does not fit it.
#pragma once

#include "codegen/EmitProgram.h"

namespace wg::codegen {

/// Whether `module` holds functions of the ops, types and attributes that the emitters use, constant bytes, and no name
/// from outside but wg_parallel_for; and whether `entry` is an entry whose description (readEntryInfo) agrees with the
/// pointers that it loads. Else a diagnostic.
mlir::LogicalResult verifyLowered(mlir::ModuleOp module, llvm::StringRef entry);

/// Whether `module` holds ops and types of the emitters alone. A pass of the caller's may have put others there.
bool isAsEmitted(mlir::ModuleOp module);

} // namespace wg::codegen
