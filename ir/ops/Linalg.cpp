// Linear algebra beyond products: triangular_solve, and factorisations.
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

/// T x = b, T = op(a), so db = T^-T ct, a solve with the other transpose, and dT = -db x^T (Giles 2008, product with
/// an inverse); da is dT or its transpose, -x db^T, in the triangle that is read, and 0 elsewhere.
FailureOr<Terms> TriangularSolveOp::vjp(Expr ct) {
  Expr db = ct.make<TriangularSolveOp>(getA(), ct, getLower(), !getTranspose(), getUnitDiagonal());
  Expr x = ct.at(getX()), outer = getTranspose() ? timesTransposed(x, db) : timesTransposed(db, x);
  return Terms{where(inTriangle(outer, getLower(), getUnitDiagonal()), -outer, outer.zeros()), db};
}

//===- Derivatives of factorisations -------------------------------------------------------------------------===//

namespace {
/// What rules of matrices share; axes in front are carried along. m x n, k = min(m, n).
struct Matrices {
  Expr any; ///< whose builder it is
  int64_t rank, row = rank - 2, column = rank - 1;
  explicit Matrices(const Expr &x) : any(x), rank(x.rank()) {}

  OpFoldResult size(const Expr &x, int64_t axis) const { return any.sizeOf(x, axis); }
  /// Of a square, one of whose two sizes may be known where the other is not.
  OpFoldResult sizeOfSquare(const Expr &x) const {
    return size(x, x.type().isDynamicDim(static_cast<unsigned>(column)) ? row : column);
  }
  OpFoldResult zero() const { return any.index(0); }
  OpFoldResult sum(OpFoldResult a, OpFoldResult b) const { return any.size("a + b", {a, b}); }
  /// Places `from` to `to` of an axis.
  Expr part(const Expr &x, int64_t axis, OpFoldResult from, OpFoldResult to) const {
    SmallVector<OpFoldResult> starts(static_cast<size_t>(rank), zero()), limits;
    for (int64_t each = 0; each < rank; ++each)
      limits.push_back(each == axis ? to : size(x, each));
    starts[static_cast<size_t>(axis)] = from;
    return x.sliced(starts, limits, SmallVector<int64_t>(static_cast<size_t>(rank), 1));
  }
  Expr rows(const Expr &x, OpFoldResult from, OpFoldResult to) const { return part(x, row, from, to); }
  /// Row `at`, without its axis.
  Expr rowAt(const Expr &x, OpFoldResult at) const {
    SmallVector<OpFoldResult> shape;
    for (int64_t each = 0; each < rank; ++each)
      if (each != row)
        shape.push_back(size(x, each));
    return rows(x, at, sum(at, any.index(1))).reshaped(shape);
  }
  /// A product of two, `ij,jk->ik`, for each place of the axes in front.
  Expr product(const char *equation, const Expr &x, const Expr &y) const {
    std::string batch = batchLetters(rank), text;
    for (StringRef side :
         {StringRef(equation).take_front(2), StringRef(equation).substr(3, 2), StringRef(equation).substr(7, 2)})
      text += (text.empty() ? "" : text.find(',') == std::string::npos ? "," : "->") + batch + side.str();
    return any.make<ContractOp>(x, y, text);
  }
  Expr transposed(const Expr &x) const {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(order[static_cast<size_t>(row)], order[static_cast<size_t>(column)]);
    return x.transposed(order);
  }
  /// s[..., j] at each (i, j) of a square; or s[..., i].
  Expr spread(const Expr &s, const Expr &like, bool alongRows) const {
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
    dims.back() = alongRows ? row : column;
    SmallVector<OpFoldResult> shape;
    for (int64_t each = 0; each < rank; ++each)
      shape.push_back(size(like, each));
    return s.broadcast(shape, dims);
  }
  /// s[..., j] at each (i, j) of x.
  Expr columnsBy(const Expr &s, const Expr &x) const { return spread(s, x, false); }
  Expr solve(const Expr &t, const Expr &b, bool lower, bool transpose, bool unit = false) const {
    return any.make<TriangularSolveOp>(t, b, lower, transpose, unit);
  }
  Expr half(const Expr &x) const { return (x + transposed(x)) * 0.5; }
};
} // namespace

static Expr onDiagonal(const Expr &x) { return inTriangle(x, true, false) && inTriangle(x, false, false); }
static bool isStatically(int64_t a, int64_t b) { return a == b && !ShapedType::isDynamic(a); }

/// S = L^-T F(L^T dL) L^-1, F the lower triangle with half the diagonal; da = (S + S^T) / 2 (Murray 2016,
/// "Differentiation of the Cholesky decomposition", eq. 10).
FailureOr<Terms> CholeskyOp::vjp(Expr ct) {
  Matrices of(ct);
  Expr l = ct.at(getL()), inner = of.product("li,lj->ij", l, ct);
  Expr f = where(inTriangle(inner, true, true), inner, where(onDiagonal(inner), inner * 0.5, inner.zeros()));
  Expr left = of.solve(l, f, true, true);
  return Terms{of.half(of.solve(l, of.transposed(left), true, true))};
}

/// The permutation in row n of the result, as integers.
static Expr permutationOf(const Matrices &of, const Expr &y, OpFoldResult n) {
  return y.make<CastOp>(of.rowAt(y, n), IntegerType::get(y.type().getContext(), 64));
}

/// da = p^T l^-T (the strictly lower part of l^T dl + the upper part of du u^T) u^-T, from the differential
/// l^-1 p da u^-1 = l^-1 dl + du u^-1, whose terms are such triangles (Giles 2008's way for other factors).
FailureOr<Terms> LuOp::vjp(Expr ct) {
  Matrices of(ct);
  Expr a = ct.at(getA()), y = ct.at(getY());
  OpFoldResult n = of.sizeOfSquare(a);
  Expr both = of.rows(y, of.zero(), n), d = of.rows(ct, of.zero(), n);
  Expr below = inTriangle(both, true, true), upper = inTriangle(both, false, false);
  Expr l = where(below, both, where(upper && inTriangle(both, true, false), both.ones(), both.zeros()));
  Expr u = where(upper, both, both.zeros());
  Expr inner = where(below, of.product("li,lj->ij", l, where(below, d, d.zeros())),
                     of.product("il,jl->ij", where(upper, d, d.zeros()), u));
  Expr left = of.solve(both, inner, true, true, true);
  Expr permuted = of.transposed(of.solve(both, of.transposed(left), false, false));
  SmallVector<OpFoldResult> shape(2, n);
  for (int64_t axis = of.rank - 3; axis >= 0; --axis)
    shape.insert(shape.begin(), of.size(a, axis));
  return Terms{permuted.scattered(permutationOf(of, y, n), shape, of.rank - 2)};
}

/// db = op(a)^-T ct, by the same factors, and d op(a) = -db x^T.
FailureOr<Terms> LuSolveOp::vjp(Expr ct) {
  Matrices of(ct);
  Expr x = ct.at(getX()), lu = ct.at(getLu());
  Expr db = ct.make<LuSolveOp>(getA(), lu, ct, !getTranspose());
  Expr da = getTranspose() ? of.product("ik,jk->ij", x, db) : of.product("ik,jk->ij", db, x);
  return Terms{-da, lu.zeros(), db};
}

/// With a = [x z], x the first k columns, q r = x and v = q^T z: z moves as q v, which leaves
/// dq' = dq + z dv^T, dx = (dq' + q c) r^-T, c = M's lower triangle and its mirror image, M = r dr^T - dq'^T q, and
/// dz = q dv. Of a complete q of open sizes z is a slice, which is refused when the function runs if there is none
/// (Walter, Lehmann and Lamour 2012; Roberts and Roberts 2020, for m < n).
FailureOr<Terms> QrOp::vjp(Expr ct) {
  Matrices of(ct);
  Expr a = ct.at(getA()), y = ct.at(getY());
  ArrayRef<int64_t> known = a.type().getShape();
  int64_t rows = known[static_cast<size_t>(of.row)], columns = known[static_cast<size_t>(of.column)];
  if (getComplete() && !ShapedType::isDynamic(rows) && !ShapedType::isDynamic(columns) && rows > columns)
    return emitOpError("is complete, of ")
           << a.type()
           << ": the last columns of q are any basis of what a's leave, and have no "
              "derivative where there are more rows than columns; the reduced form has one";
  OpFoldResult m = of.size(a, of.row), n = of.size(a, of.column), k = of.size(y, of.column), end = of.sum(m, n),
               middle = of.sum(m, k);
  Expr q = of.rows(y, of.zero(), m), rt = of.rows(y, m, middle), dq = of.rows(ct, of.zero(), m),
       drt = of.rows(ct, m, middle);
  bool tall = !ShapedType::isDynamic(rows) && !ShapedType::isDynamic(columns) && rows >= columns;
  Expr dvt;
  if (!tall) {
    dvt = of.rows(ct, middle, end);
    dq = dq + of.product("il,lj->ij", of.part(a, of.column, k, n), dvt);
  }
  Expr inner = of.product("li,lj->ij", rt, drt) - of.product("li,lj->ij", dq, q);
  Expr mirrored = where(inTriangle(inner, true, false), inner, of.transposed(inner));
  Expr right = dq + of.product("il,lj->ij", q, mirrored);
  Expr dx = of.transposed(of.solve(rt, of.transposed(right), true, true));
  if (tall)
    return Terms{dx};
  Expr dz = of.product("il,jl->ij", q, dvt);
  return Terms{dx.make<ConcatOp>(ValueRange{dx, dz}, of.column)};
}

/// da = v (diag(dw) + (v^T dv)_ij / (w_j - w_i)) v^T, its symmetric part (Giles 2008, 3.1). Of the values alone v dw
/// v^T, where equal values do no harm.
FailureOr<Terms> EighOp::vjp(Expr ct) {
  Expr a = ct.at(getA());
  Matrices of(a);
  OpFoldResult n = of.sizeOfSquare(a);
  if (!getVectors()) {
    Expr v = of.rows(a.make<EighOp>(a, true), of.zero(), n);
    return Terms{of.half(of.product("il,jl->ij", v * of.columnsBy(ct, v), v))};
  }
  Expr y = ct.at(getY()), v = of.rows(y, of.zero(), n), w = of.rowAt(y, n);
  Expr inner = of.product("li,lj->ij", v, of.rows(ct, of.zero(), n)), diagonal = onDiagonal(inner);
  Expr gap = of.spread(w, v, false) - of.spread(w, v, true);
  Expr middle = where(diagonal, of.columnsBy(of.rowAt(ct, n), v), inner / where(diagonal, gap.ones(), gap));
  return Terms{of.half(of.product("il,jl->ij", of.product("il,lj->ij", v, middle), v))};
}

/// With K_ij = 1 / (s_j^2 - s_i^2), 0 on the diagonal:
/// da = [u (K o (u^T du - du^T u)) s + (1 - u u^T) du s^-1 + u ds] v^T + u [s (K o (v^T dv - dv^T v)) v^T + s^-1 dv^T
/// (1 - v v^T)] (Townsend 2016, "Differentiating the singular value decomposition"). Of the values alone u ds v^T.
FailureOr<Terms> SvdOp::vjp(Expr ct) {
  Expr a = ct.at(getA());
  Matrices of(a);
  OpFoldResult m = of.size(a, of.row), n = of.size(a, of.column), end = of.sum(m, n);
  if (!getVectors()) {
    Expr y = a.make<SvdOp>(a, true), u = of.rows(y, of.zero(), m), v = of.rows(y, m, end);
    return Terms{of.product("il,jl->ij", u * of.columnsBy(ct, u), v)};
  }
  Expr y = ct.at(getY()), u = of.rows(y, of.zero(), m), v = of.rows(y, m, end), s = of.rowAt(y, end);
  Expr du = of.rows(ct, of.zero(), m), dv = of.rows(ct, m, end), ds = of.rowAt(ct, end);
  Expr uu = of.product("li,lj->ij", u, du), vv = of.product("li,lj->ij", v, dv), diagonal = onDiagonal(uu);
  Expr si = of.spread(s, uu, true), sj = of.spread(s, uu, false);
  Expr gap = where(diagonal, si.ones(), (sj - si) * (sj + si));
  Expr skewed = ((uu - of.transposed(uu)) / gap) * sj + si * ((vv - of.transposed(vv)) / gap);
  Expr middle = where(diagonal, of.columnsBy(ds, uu), skewed);
  Expr left = of.product("il,lj->ij", u, middle), da;
  // Where u is square, 1 - u u^T is 0, and nothing is divided by s; and so for v.
  ArrayRef<int64_t> known = a.type().getShape();
  int64_t rows = known[static_cast<size_t>(of.row)], columns = known[static_cast<size_t>(of.column)],
          values = y.type().getShape().back();
  if (!isStatically(rows, values))
    left = left + (du - of.product("il,lj->ij", u, uu)) / of.columnsBy(s, u);
  da = of.product("il,jl->ij", left, v);
  if (!isStatically(columns, values))
    da = da + of.product("il,jl->ij", u, (dv - of.product("il,lj->ij", v, vv)) / of.columnsBy(s, v));
  return Terms{da};
}

/// With p = a^+: da = -p^T g p^T + (1 - a p) g^T p p^T + p^T p g^T (1 - p a), g = ct (Golub and Pereyra 1973, "The
/// differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", eq. 4.12).
FailureOr<Terms> PinvOp::vjp(Expr ct) {
  Matrices of(ct);
  Expr a = ct.at(getA()), p = ct.at(getY());
  Expr gp = of.product("li,lj->ij", ct, p), gpp = of.product("il,jl->ij", gp, p);
  Expr ppg = of.product("li,lj->ij", p, of.product("il,jl->ij", p, ct));
  Expr first = of.product("li,jl->ij", gp, p);
  return Terms{(gpp - of.product("il,lj->ij", a, of.product("il,lj->ij", p, gpp))) +
               (ppg - of.product("il,lj->ij", of.product("il,lj->ij", ppg, p), a)) - first};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// solve(b) where every lane has the same matrix: the columns of all lanes are side by side, and the matrix is read
/// once. [lane, ..., n, k] -> [..., n, lane, k] -> [..., n, lane k], and back.
static Expr sideBySide(const Expr &b, OpFoldResult count, function_ref<Expr(const Expr &)> solve) {
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
  OpFoldResult k = b.sizeOf(b, rank - 1);
  columns.push_back(b.size("a * b", {count, k}));
  Expr solved = solve(b.transposed(in).reshaped(columns));
  for (int64_t axis = 0; axis < rank - 2; ++axis)
    apart.push_back(b.sizeOf(solved, axis));
  apart.append({count, k});
  return solved.reshaped(apart).transposed(out);
}

/// Lanes are one more batch axis.
FailureOr<Expr> TriangularSolveOp::batch(const Lanes &x) {
  auto solve = [&](const Expr &a, const Expr &b) {
    return a.make<TriangularSolveOp>(a, b, getLower(), getTranspose(), getUnitDiagonal());
  };
  if (!x.isBatched(0))
    return sideBySide(x[1], x.count(), [&](const Expr &b) { return solve(x[0], b); });
  FailureOr<Expr> b = x.spread(1);
  return failed(b) ? FailureOr<Expr>() : FailureOr<Expr>(solve(x[0], *b));
}

FailureOr<Expr> LuSolveOp::batch(const Lanes &x) {
  auto solve = [&](const Expr &a, const Expr &lu, const Expr &b) {
    return a.make<LuSolveOp>(a, lu, b, getTranspose());
  };
  if (!x.isBatched(0) && !x.isBatched(1))
    return sideBySide(x[2], x.count(), [&](const Expr &b) { return solve(x[0], x[1], b); });
  FailureOr<Expr> a = x.spread(0), lu = x.spread(1), b = x.spread(2);
  if (failed(a) || failed(lu) || failed(b))
    return failure();
  return solve(*a, *lu, *b);
}

FailureOr<Expr> CholeskyOp::batch(const Lanes &x) { return x[0].make<CholeskyOp>(x[0]); }
FailureOr<Expr> LuOp::batch(const Lanes &x) { return x[0].make<LuOp>(x[0], getRegular()); }
FailureOr<Expr> QrOp::batch(const Lanes &x) { return x[0].make<QrOp>(x[0], getComplete()); }
FailureOr<Expr> EighOp::batch(const Lanes &x) { return x[0].make<EighOp>(x[0], getVectors()); }
FailureOr<Expr> SvdOp::batch(const Lanes &x) { return x[0].make<SvdOp>(x[0], getVectors()); }
FailureOr<Expr> PinvOp::batch(const Lanes &x) { return x[0].make<PinvOp>(x[0], getRcond()); }

} // namespace wg::ir
