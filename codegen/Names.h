// Which names can a compiled function have?
#pragma once

#include "runtime/Status.h"

#include "llvm/ADT/StringRef.h"

namespace wg::codegen {

/// `name`, or what is nearest to it among the names that MLIR, the linker, C and C++ take for a function.
std::string safeName(llvm::StringRef name);
/// Fails if `name` is not its own safeName, with the reason: it names a C function and its files.
runtime::Status checkName(llvm::StringRef name);

} // namespace wg::codegen
