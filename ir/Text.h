// Which text may reach MLIR's parser? The parser, the printer and every walk over types, attributes, places and regions
// call themselves once for each level of nesting and have no limit of their own: text that nests too deep ends the
// process. So it is measured first.
#pragma once

#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace wg::ir {

/// The most brackets, and attributes behind aliases, that may be open at once. Programs of ours open about ten.
inline constexpr int kMaxNesting = 200;

/// Refuses bytecode, and text whose brackets or aliases (`#a1 = [#a0]`, `#loc1 = loc("f"(#loc0))`) nest more than
/// kMaxNesting deep, whose affine expressions have more than 1000 tokens, or with an attribute `array<index...>`.
/// `name` is the file's. Linear in the text; says nothing of whether it parses.
runtime::Status checkText(llvm::StringRef text, llvm::StringRef name);

/// The module of a text that is checked, verified; null after a diagnostic, on this thread.
mlir::OwningOpRef<mlir::ModuleOp> parseText(llvm::StringRef text, llvm::StringRef name);

} // namespace wg::ir
