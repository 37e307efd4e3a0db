// What several ranks compute together.
#include "ir/Build.h"

using namespace mlir;

namespace wg::ir {

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// The derivative of the sum over all ranks of what each computes: whom x reached tells how much of it.
FailureOr<Terms> CollectiveOp::vjp(Expr ct) {
  auto together = [&](const Expr &x, StringRef kind) {
    return x.make<CollectiveOp>(x, kind, getGroup(), getRoot(), getRanks());
  };
  StringRef kind = getKind();
  if (kind == "reduce_scatter") // the number of ranks may be open in x
    return Terms{together(ct, "all_gather").reshapedLike(getX())};
  if (kind == "all_reduce_max") { // equal shares to the ranks whose x is y
    Expr x = ct.at(getX()), tied = equal(x, ct.at(getY()));
    Expr count = together(tied.make<CastOp>(tied, x.elementType()), "all_reduce_sum");
    return Terms{where(tied, together(ct, "all_reduce_sum") / count, x.zeros())};
  }
  return Terms{together(ct, kind == "all_gather"  ? "reduce_scatter"
                            : kind == "broadcast" ? "reduce"
                            : kind == "reduce"    ? "broadcast"
                                                  : kind)};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// The first two axes exchanged.
static Expr swapped(const Expr &x) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, x.rank()));
  std::swap(order[0], order[1]);
  return x.transposed(order);
}

/// Elements meet their own of the other ranks; the axis of ranks stays in front.
FailureOr<Expr> CollectiveOp::batch(const Lanes &x) {
  auto together = [&](const Expr &of) {
    return of.make<CollectiveOp>(of, getKind(), getGroup(), getRoot(), getRanks());
  };
  if (getKind() == "reduce_scatter")
    return together(swapped(x[0]));
  Expr y = together(x[0]);
  return getKind() == "all_gather" ? swapped(y) : y;
}

} // namespace wg::ir
