// Gradients as rows: what is made of them without the tensor that they are of.
#pragma once

#include "frontend/staging/Apply.h"

#include <mutex>

namespace wg::detail {

struct SparseState {
  SparseRows rows;
  std::mutex mutex;
  Tensor dense; ///< once it was asked for: the gradient is one tensor, however often it is used
};

/// Whether a tape of this level records.
bool isRecorded();
/// A gradient that is the sum of these parts, all of `shape`: indices of any shape, and a row for each.
Grad sparseGrad(const std::vector<std::pair<Tensor, Tensor>> &parts, const Shape &shape, const Where &where);
/// The same with each index once: what is added at an index is at its first place, and 0 at the others.
SparseRows merged(const SparseRows &rows, const Where &where);
/// Whether a place of the indices is the first of its index: bool[n, 1...], of the rows' rank.
Tensor firstPlaces(const SparseRows &rows, const Where &where);

/// Rows that are to be added to those of a variable.
struct RowChange {
  Variable variable;
  Tensor indices, rows;
};
/// Adds them: in a trace as what the variables are assigned; eagerly, in one step for other threads, in the variables'
/// own memory where nobody else holds it. All of them or, for lack of memory, none.
void addRows(const std::vector<RowChange> &changes, const Where &where);

} // namespace wg::detail
