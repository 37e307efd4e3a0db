// What nobody reads any more.
#pragma once

#include "mlir/IR/Block.h"

namespace wg::passes {

/// Erases the ops of `block` that do nothing but compute what nobody reads, from the last one back.
void eraseUnread(mlir::Block &block);

} // namespace wg::passes
