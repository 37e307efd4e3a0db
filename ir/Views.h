// Which ops only show another value, and how.
#pragma once

#include "ir/Dialect.h"

#include <optional>

namespace wg::ir {

/// The affine map of an op whose result only shows its first operand: a View, or a reshape that adds or drops unit
/// axes. It takes result coordinates to operand coordinates. Nothing for any other op, a null one, or dynamic shapes.
std::optional<mlir::AffineMap> viewMapOf(mlir::Operation *op);

/// The value whose memory a value shares: reshapes rename it.
mlir::Value storageOf(mlir::Value value);

} // namespace wg::ir
