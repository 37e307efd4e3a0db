// Order: argsort, searchsorted. Both are routines (runtime/routines/Sort.cpp).
#include "ir/Build.h"

using namespace mlir;

namespace wg::ir {

//===- Batches ----------------------------------------------------------------------------------------------===//

FailureOr<Expr> ArgsortOp::batch(const Lanes &x) {
  return x[0].make<ArgsortOp>(x[0], getDescending(), static_cast<uint64_t>(getCount()));
}

/// Lanes are one more batch axis.
FailureOr<Expr> SearchsortedOp::batch(const Lanes &x) {
  FailureOr<Expr> sorted = x.spread(0), values = x.spread(1);
  if (failed(sorted) || failed(values))
    return failure();
  return sorted->make<SearchsortedOp>(*sorted, *values, getRight());
}

} // namespace wg::ir
