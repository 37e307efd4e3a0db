// Linear algebra: the parts of factorisations (ir/ops/Linalg.td), and what is composed of them.
#include "frontend/ops/Operands.h"

#include <wengert/Linalg.h>

#include <algorithm>
#include <limits>

namespace wg::linalg {

using detail::applyOne;
using detail::raiseOp;
using detail::Size;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

static Located located(const Tensor &x, const Where &where) { return Located(x, where); }

/// A tensor of matrices, which are square if `square`.
static Tensor matricesOf(const char *op, const Located &a, bool square) {
  Tensor x = tensorOf(a);
  const TensorType &type = typeOf(x, a.where());
  int rank = type.shape.rank();
  if (!runtime::isFloat(type.dtype))
    raiseOp(op, "a is " + toString(type) + ", and takes floats", "cast it: cast(a, f64)", {type}, a.where(),
            ErrorKind::type);
  if (rank < 2)
    raiseOp(op, "a is [..., m, n]: a is " + toString(type), "expand_dims(a, 0) makes a row of a vector", {type},
            a.where());
  int64_t m = type.shape.dim(rank - 2), n = type.shape.dim(rank - 1);
  if (square && m != n && m != dynamic && n != dynamic)
    raiseOp(op, "a is not square: " + toString(type) + " (" + std::to_string(m) + " != " + std::to_string(n) + ")", "",
            {type}, a.where());
  return x;
}

static Size plus(const char *op, const Size &a, const Size &b, const Where &where) {
  return detail::computeSize(op, "a + b", {a, b}, where);
}
/// Of a square, one of whose two sizes may be known where the other is not.
static Size sizeOfSquare(const Tensor &x, const Where &where) {
  return detail::sizeOf(x, typeOf(x, where).shape.dim(x.rank() - 1) == dynamic ? x.rank() - 2 : x.rank() - 1, where);
}
static Size number(int64_t n) { return {n, {}}; }

/// Rows `from` to `to` of matrices.
static Tensor rows(const Tensor &x, const Size &from, const Size &to, const Where &where) {
  int rank = x.rank();
  Sizes starts, limits;
  for (int axis = 0; axis < rank; ++axis) {
    starts.push_back(axis == rank - 2 ? from : number(0));
    limits.push_back(axis == rank - 2 ? to : detail::sizeOf(x, axis, where));
  }
  std::vector<Tensor> sizes = starts.values;
  sizes.insert(sizes.end(), limits.values.begin(), limits.values.end());
  return detail::applySized(OpId::slice,
                            runtime::SliceAttrs::make(starts.list, limits.list, Ints(static_cast<size_t>(rank), 1)), x,
                            sizes, where);
}
/// x without an axis of size 1.
static Tensor without(const Tensor &x, int64_t axis, const Where &where) {
  return squeeze(located(x, where), Axes(axis));
}
static Tensor rowAt(const char *op, const Tensor &x, const Size &at, const Where &where) {
  return without(rows(x, at, plus(op, at, number(1), where), where), -2, where);
}
static Tensor transposed(const Tensor &x, const Where &where) {
  std::vector<int64_t> order;
  for (int axis = 0; axis < x.rank(); ++axis)
    order.push_back(axis);
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return transpose(located(x, where), order);
}

/// Where row - column of square matrices like x is 0, or as `holds` says of it.
template <class F> static Tensor places(const Tensor &x, const Where &where, F holds) {
  Sizes shape;
  for (int axis = x.rank() - 2; axis < x.rank(); ++axis)
    shape.push_back(detail::sizeOf(x, axis, where));
  auto along = [&](int64_t axis) {
    std::vector<const Tensor *> operands;
    for (const Tensor &size : shape.values)
      operands.push_back(&size);
    Tensor result;
    detail::applyOp(OpId::iota, runtime::IotaAttrs::make(shape.list, axis, i64), operands, std::span(&result, 1),
                    where);
    return result;
  };
  return holds(located(along(0), where), located(along(1), where));
}
static Tensor onDiagonal(const Tensor &x, const Where &where) {
  return places(x, where, [](const Located &row, const Located &column) { return row == column; });
}
static Tensor diagonalOf(const Tensor &x, const Where &where) {
  return reduce_sum(located(wg::where(located(onDiagonal(x, where), where), x, 0), where), -1);
}

/// The b of equations with one a row of a, a vector as a column, both with the same axes in front; and their solution
/// in the shape of b.
template <class F>
static Tensor solving(const char *op, const Tensor &a, const Located &b, const Where &where, F solution) {
  Tensor x = a, y = tensorOf(b, typeOf(a, where).dtype);
  detail::checkDTypes(op, x, y, where);
  bool vector = y.rank() == 1;
  if (vector)
    y = expand_dims(located(y, where), -1);
  const TensorType &xType = typeOf(x, where), &yType = typeOf(y, where);
  int64_t m = xType.shape.dim(x.rank() - 2), rows = y.rank() < 2 ? -1 : yType.shape.dim(y.rank() - 2);
  if (y.rank() < 2 || (m != rows && m != dynamic && rows != dynamic))
    raiseOp(op,
            y.rank() < 2 ? "b is a scalar: a is " + toString(xType)
                         : "sizes differ: a is " + toString(xType) + ", b is " + toString(typeOf(tensorOf(b), where)) +
                               " (" + std::to_string(m) + " != " + std::to_string(rows) + ")",
            "b has a row for each row of a: [..., m, k], or [m]", {xType, yType}, where);
  detail::broadcastInFront(op, x, y, where);
  Tensor result = solution(x, y);
  return vector ? without(result, -1, where) : result;
}

static Tensor factorsOf(const Tensor &a, bool regular, const Where &where) {
  return applyOne(OpId::lu, runtime::LuAttrs::make(regular), {&a}, where);
}

// ---- Factorisations
// -------------------------------------------------------------------------------------------------

Tensor cholesky(const Located &a) {
  Tensor x = matricesOf("cholesky", a, true);
  return applyOne(OpId::cholesky, {}, {&x}, a.where());
}

/// The permutation, and both triangles in one square.
static std::pair<Tensor, Tensor> partsOf(const char *op, const Tensor &a, const Tensor &factors, const Where &where) {
  Size n = sizeOfSquare(a, where);
  Tensor p = stop_gradient(located(rowAt(op, factors, n, where), where));
  return {cast(located(p, where), i64), rows(factors, number(0), n, where)};
}

Lu lu(const Located &a) {
  const Where &where = a.where();
  Tensor x = matricesOf("lu", a, true);
  auto [p, both] = partsOf("lu", x, factorsOf(x, false, where), where);
  Tensor below = places(both, where, [](const Located &row, const Located &column) { return row > column; });
  Tensor unit = cast(located(onDiagonal(both, where), where), both.dtype());
  return {p, wg::where(located(below, where), both, unit), wg::where(located(below, where), 0, both)};
}

Qr qr(const Located &a, QrOptions options) {
  const Where &where = a.where();
  Tensor x = matricesOf("qr", a, false),
         both = applyOne(OpId::qr, runtime::QrAttrs::make(options.complete), {&x}, where);
  Size m = detail::sizeOf(x, x.rank() - 2, where), n = detail::sizeOf(x, x.rank() - 1, where);
  return {rows(both, number(0), m, where), transposed(rows(both, m, plus("qr", m, n, where), where), where)};
}

Eigh eigh(const Located &a) {
  const Where &where = a.where();
  Tensor x = matricesOf("eigh", a, true), both = applyOne(OpId::eigh, runtime::EighAttrs::make(true), {&x}, where);
  Size n = sizeOfSquare(x, where);
  return {rowAt("eigh", both, n, where), rows(both, number(0), n, where)};
}

Tensor eigvalsh(const Located &a) {
  Tensor x = matricesOf("eigvalsh", a, true);
  return applyOne(OpId::eigh, runtime::EighAttrs::make(false), {&x}, a.where());
}

Svd svd(const Located &a) {
  const Where &where = a.where();
  Tensor x = matricesOf("svd", a, false), all = applyOne(OpId::svd, runtime::SvdAttrs::make(true), {&x}, where);
  Size m = detail::sizeOf(x, x.rank() - 2, where), n = detail::sizeOf(x, x.rank() - 1, where),
       end = plus("svd", m, n, where);
  return {rows(all, number(0), m, where), rowAt("svd", all, end, where), transposed(rows(all, m, end, where), where)};
}

Tensor svdvals(const Located &a) {
  Tensor x = matricesOf("svdvals", a, false);
  return applyOne(OpId::svd, runtime::SvdAttrs::make(false), {&x}, a.where());
}

// ---- Equations
// ------------------------------------------------------------------------------------------------------

/// By factors that are no function of a for the derivative, which is that of the solution (LuSolveOp).
static Tensor solveSquare(const Tensor &a, const Tensor &b, const Where &where) {
  Tensor fixed = stop_gradient(located(a, where)), factors = factorsOf(fixed, true, where);
  return applyOne(OpId::lu_solve, runtime::LuSolveAttrs::make(false), {&a, &factors, &b}, where);
}

Tensor solve(const Located &a, const Located &b) {
  const Where &where = a.where();
  return solving("solve", matricesOf("solve", a, true), b, where,
                 [&](const Tensor &x, const Tensor &y) { return solveSquare(x, y, where); });
}

Tensor cholesky_solve(const Located &l, const Located &b) {
  const Where &where = l.where();
  return solving("cholesky_solve", matricesOf("cholesky_solve", l, true), b, where,
                 [&](const Tensor &x, const Tensor &y) {
                   Tensor half = triangular_solve(located(x, where), y);
                   return triangular_solve(located(x, where), half, {.transpose = true});
                 });
}

Tensor inv(const Located &a) {
  const Where &where = a.where();
  Tensor x = matricesOf("inv", a, true), unit = cast(located(onDiagonal(x, where), where), x.dtype());
  detail::broadcastInFront("inv", x, unit, where);
  return solveSquare(x, unit, where);
}

Tensor pinv(const Located &a, double rcond) {
  Tensor x = matricesOf("pinv", a, false);
  return applyOne(OpId::pinv, runtime::PinvAttrs::make(rcond), {&x}, a.where());
}

Tensor lstsq(const Located &a, const Located &b, double rcond) {
  const Where &where = a.where();
  return solving("lstsq", matricesOf("lstsq", a, false), b, where, [&](const Tensor &x, const Tensor &y) {
    Tensor inverse = pinv(located(x, where), rcond), first = matmul(located(inverse, where), y);
    Tensor rest = located(y, where) - matmul(located(x, where), first);
    return located(first, where) + matmul(located(inverse, where), rest);
  });
}

// ---- Numbers of a matrix
// --------------------------------------------------------------------------------------------

/// u's diagonal, and the permutation's sign: whether as many pairs as not stand the wrong way round.
static std::pair<Tensor, Tensor> pivotsOf(const char *op, const Tensor &a, const Where &where) {
  auto [p, both] = partsOf(op, a, factorsOf(a, false, where), where);
  Tensor wrong = located(expand_dims(located(p, where), -1), where) > expand_dims(located(p, where), -2);
  Tensor above = places(both, where, [](const Located &row, const Located &column) { return row < column; });
  Tensor pairs = cast(located(located(wrong, where) && above, where), i64);
  Tensor odd = located(reduce_sum(located(pairs, where), {-2, -1}), where) % 2;
  Tensor twice = located(cast(located(odd, where), a.dtype()), where) * 2;
  return {diagonalOf(both, where), Located(1, where) - twice};
}

Tensor det(const Located &a) {
  const Where &where = a.where();
  auto [diagonal, sign] = pivotsOf("det", matricesOf("det", a, true), where);
  return located(reduce_prod(located(diagonal, where), -1), where) * sign;
}

Slogdet slogdet(const Located &a) {
  const Where &where = a.where();
  auto [diagonal, parity] = pivotsOf("slogdet", matricesOf("slogdet", a, true), where);
  Tensor signs = wg::sign(located(diagonal, where)), logs = log(located(abs(located(diagonal, where)), where));
  Tensor sign = located(reduce_prod(located(signs, where), -1), where) * parity;
  sign = add(located(sign, where), Located(0.0, where)); // of a singular matrix 0, and never -0
  return {stop_gradient(located(sign, where)), reduce_sum(located(logs, where), -1)};
}

Tensor matrix_rank(const Located &a, double rcond) {
  const Where &where = a.where();
  Tensor x = matricesOf("matrix_rank", a, false);
  Tensor s = svdvals(located(stop_gradient(located(x, where)), where));
  Tensor bound = expand_dims(located(reduce_max(located(s, where), -1), where), -1);
  int64_t m = typeOf(x, where).shape.dim(x.rank() - 2), n = typeOf(x, where).shape.dim(x.rank() - 1);
  double eps = x.dtype() == f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  if (rcond < 0 && (m == dynamic || n == dynamic)) { // counted when the function runs
    Tensor ones = ones_like(located(x, where));
    auto countAlong = [&](int64_t axis) { return reduce_max(located(reduce_sum(located(ones, where), axis), where)); };
    Tensor larger = maximum(located(countAlong(-2), where), countAlong(-1));
    bound = located(bound, where) * Located(located(larger, where) * eps, where);
  } else {
    bound = located(bound, where) * (rcond < 0 ? static_cast<double>(std::max(m, n)) * eps : rcond);
  }
  return reduce_sum(located(cast(located(located(s, where) > bound, where), i64), where), -1);
}

Tensor matrix_norm(const Located &a, MatrixNorm norm) {
  const Where &where = a.where();
  Tensor x = matricesOf("matrix_norm", a, false);
  if (norm == MatrixNorm::frobenius)
    return wg::norm(located(x, where), {-2, -1});
  Tensor s = svdvals(located(x, where));
  if (norm == MatrixNorm::nuclear)
    return reduce_sum(located(s, where), -1);
  Tensor largest = reduce_max(located(s, where), -1);
  return wg::where(located(located(largest, where) < 0, where), 0, largest); // -inf of an empty matrix
}

Tensor matrix_power(const Located &a, int64_t n) {
  const Where &where = a.where();
  Tensor square = matricesOf("matrix_power", a, true), result;
  if (n < 0)
    square = inv(located(square, where));
  for (uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); rest != 0; rest /= 2) {
    if (rest % 2 != 0)
      result = result.defined() ? matmul(located(result, where), square) : square;
    if (rest > 1)
      square = matmul(located(square, where), square);
  }
  if (result.defined())
    return n == 1 ? identity(located(result, where)) : result;
  Tensor unit = cast(located(onDiagonal(square, where), where), square.dtype());
  detail::broadcastInFront("matrix_power", square, unit, where);
  return unit;
}

} // namespace wg::linalg
