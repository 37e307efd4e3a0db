// Rows that were taken from a table of fewer, or are added up in one: whose products are products of the table. Fewer:
// at most half as many, and at least one.
#pragma once

#include "ir/Dialect.h"

#include <optional>

namespace wg::passes {

/// A tensor whose first axes are places of indices, and whose others are a row's, as a gather has taken them from a
/// table of fewer rows.
struct Taken {
  ir::GatherOp op;
  size_t places; ///< how many axes are places
};
/// Nothing where it is no such tensor, in whatever shape of the places.
std::optional<Taken> takenRows(mlir::Value x);

/// What adds `rows` up in a table of fewer, in whatever shape of the places, if nothing else reads them; else null.
ir::ScatterAddOp onlySum(mlir::Value rows);

} // namespace wg::passes
