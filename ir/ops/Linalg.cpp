// Linear algebra beyond products: triangular_solve.
#include "ir/Build.h"

using namespace mlir;

namespace wg::ir {

/// Letters for the axes in front, as many as a matrix of this rank has.
static std::string batchLetters(int64_t rank) {
  return std::string("abcdefgh").substr(0, static_cast<size_t>(rank - 2));
}

/// x[..., i, k] y[..., j, k], summed over k.
static Expr timesTransposed(const Expr &x, const Expr &y) {
  std::string batch = batchLetters(x.rank());
  return x.make<ContractOp>(x, y, batch + "ik," + batch + "jk->" + batch + "ij");
}

/// Where row >= column in the last two axes of x, or row > column if `strict`; for the upper triangle the other way
/// round.
static Expr inTriangle(const Expr &x, bool lower, bool strict) {
  Type integer = IntegerType::get(x.type().getContext(), 64);
  SmallVector<Value> sizes = x.dynamicSizes(x);
  auto place = [&](int64_t axis) {
    return x.make<IotaOp>(x.type().getShape(), static_cast<uint64_t>(axis), integer, sizes);
  };
  Expr row = place(x.rank() - 2), column = place(x.rank() - 1);
  Expr low = lower ? column : row, high = lower ? row : column;
  return strict ? high > low : high >= low;
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// T x = b, T = op(a), so db = T^-T ct, a solve with the other transpose, and dT = -db x^T (Giles 2008, product with an
/// inverse); da is dT or its transpose, -x db^T, in the triangle that is read, and 0 elsewhere.
FailureOr<Terms> TriangularSolveOp::vjp(Expr ct) {
  Expr db = ct.make<TriangularSolveOp>(getA(), ct, getLower(), !getTranspose(), getUnitDiagonal());
  Expr x = ct.at(getX()), outer = getTranspose() ? timesTransposed(x, db) : timesTransposed(db, x);
  return Terms{where(inTriangle(outer, getLower(), getUnitDiagonal()), -outer, outer.zeros()), db};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// Lanes are one more batch axis. Where all have the same matrix their columns are side by side: one solve, which reads
/// the matrix once.
FailureOr<Expr> TriangularSolveOp::batch(const Lanes &x) {
  auto solve = [&](const Expr &a, const Expr &b) {
    return a.make<TriangularSolveOp>(a, b, getLower(), getTranspose(), getUnitDiagonal());
  };
  if (x.isBatched(0)) {
    FailureOr<Expr> b = x.spread(1);
    return failed(b) ? FailureOr<Expr>() : FailureOr<Expr>(solve(x[0], *b));
  }
  // [lane, ..., n, k] -> [..., n, lane, k] -> [..., n, lane k], and back.
  Expr b = x[1];
  int64_t rank = b.rank();
  SmallVector<int64_t> in, out{rank - 2};
  SmallVector<OpFoldResult> columns, apart;
  for (int64_t axis = 1; axis < rank - 1; ++axis) {
    in.push_back(axis);
    out.push_back(axis - 1);
    columns.push_back(b.sizeOf(b, axis));
  }
  in.append({0, rank - 1});
  out.push_back(rank - 1);
  OpFoldResult count = x.count(), k = b.sizeOf(b, rank - 1);
  columns.push_back(b.size("a * b", {count, k}));
  Expr solved = solve(x[0], b.transposed(in).reshaped(columns));
  for (int64_t axis = 0; axis < rank - 2; ++axis)
    apart.push_back(b.sizeOf(solved, axis));
  apart.append({count, k});
  return solved.reshaped(apart).transposed(out);
}

} // namespace wg::ir
