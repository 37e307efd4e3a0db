// Linear algebra beyond products. Each is a routine (runtime/routines), which compiled code calls too.
#include "runtime/kernels/ExternalKernel.h"

#include <algorithm>
#include <bit>

namespace wg::runtime {

// ---- triangular_solve -----------------------------------------------------------------------------------------------
static Status triangularSolveRule(TypeSpan operands, const Attrs &, TypeList &results) {
  const TensorType &a = operands[0], &b = operands[1];
  if (a.dtype != b.dtype)
    return typeError(say(a, " and ", b, " have different dtypes"),
                     say("cast one of them: cast(x, ", nameOf(a.dtype), ")"));
  int rank = a.shape.rank();
  if (rank < 2 || b.shape.rank() != rank)
    return valueError(say("a is [..., n, n] and b is [..., n, k], with the same axes in front: a is ", a, ", b is ", b),
                      rank >= 2 && b.shape.rank() == rank - 1 ? "expand_dims(b, -1) makes columns of vectors" : "");
  int64_t rows = a.shape.dim(rank - 2), columns = a.shape.dim(rank - 1), n = b.shape.dim(rank - 2);
  if (!mayBeEqual(rows, columns))
    return valueError(say("a is not square: ", a, " (", rows, " != ", columns, ")"));
  if (int64_t known_ = known(rows, columns); !mayBeEqual(known_, n))
    return valueError(say("sizes differ: a is ", a, ", b is ", b, " (", known_, " != ", n, ")"),
                      "b has a row for each row of a: transpose b, or change one of the sizes");
  TensorType x{b.dtype, b.shape};
  x.shape[static_cast<size_t>(rank - 2)] = known(n, known(rows, columns));
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (!mayBeEqual(a.shape.dim(axis), b.shape.dim(axis)))
      return valueError(say("the axes in front differ: a is ", a, ", b is ", b, " (", a.shape.dim(axis),
                            " != ", b.shape.dim(axis), ")"),
                        "repeat one of them: broadcast_to");
    x.shape[static_cast<size_t>(axis)] = known(b.shape.dim(axis), a.shape.dim(axis));
  }
  results.push_back(x);
  return {};
}

static ExternalCall triangularSolveCall(TypeSpan operands, const Attrs &attrs) {
  const TensorType &b = operands[1];
  TriangularSolveAttrs solve{attrs};
  int rank = b.shape.rank();
  int64_t n = b.shape.dim(rank - 2), k = b.shape.dim(rank - 1), batch = 1;
  for (int axis = 0; axis < rank - 2; ++axis)
    batch *= b.shape.dim(axis);
  const char *symbol = b.dtype == DType::f64   ? "wg_triangular_solve_f64"
                       : b.dtype == DType::f32 ? "wg_triangular_solve_f32"
                                               : nullptr;
  // Two vectors of the widest level for each row; none without elements, where n may be anything.
  return {symbol, RoutineNumbers{batch, n, k, solve.lower(), solve.transpose(), solve.unit_diagonal()},
          batch == 0 || k == 0 ? 0 : 128 * n};
}

// ---- Factorisations -------------------------------------------------------------------------------------------------
// Scratch is counted for elements of 8 bytes: a routine has at least what it says it needs.

/// The matrices in x, [..., m, n].
struct MatrixSizes {
  int64_t batch = 1, m, n;
  explicit MatrixSizes(const TensorType &x) : m(x.shape.dim(x.shape.rank() - 2)), n(x.shape.dim(x.shape.rank() - 1)) {
    for (int axis = 0; axis < x.shape.rank() - 2; ++axis)
      batch = batch == kDynamic || x.shape.dim(axis) == kDynamic ? kDynamic : batch * x.shape.dim(axis);
  }
  int64_t k() const { return m == kDynamic || n == kDynamic ? kDynamic : std::min(m, n); }
  /// Scratch for so many elements, and some beside them that make rows begin where vectors do.
  int64_t bytes(int64_t elements) const { return batch == 0 ? 0 : 8 * elements + 4096; }
};
static int64_t plus(int64_t a, int64_t b) { return a == kDynamic || b == kDynamic ? kDynamic : a + b; }
static const char *forDType(DType dtype, const char *f64, const char *f32) {
  return dtype == DType::f64 ? f64 : dtype == DType::f32 ? f32 : nullptr;
}
/// x, with other sizes for its last two axes.
static TensorType withMatrix(const TensorType &x, int64_t rows, int64_t columns) {
  TensorType y = x;
  y.shape[static_cast<size_t>(x.shape.rank() - 2)] = rows;
  y.shape[static_cast<size_t>(x.shape.rank() - 1)] = columns;
  return y;
}
/// x, with one last axis for two.
static TensorType withVector(const TensorType &x, int64_t size) {
  TensorType y{x.dtype, {}};
  for (int axis = 0; axis < x.shape.rank() - 2; ++axis)
    y.shape.push_back(x.shape.dim(axis));
  y.shape.push_back(size);
  return y;
}
static Status checkMatrices(const TensorType &a) {
  if (a.shape.rank() < 2)
    return valueError(say("a is [..., m, n]: a is ", a), "expand_dims(a, 0) makes a row of a vector");
  return {};
}
/// A failure, or a's one size.
static Result<int64_t> squareOf(const TensorType &a) {
  if (Status status = checkMatrices(a); !status.ok())
    return status.failure();
  MatrixSizes of(a);
  if (!mayBeEqual(of.m, of.n))
    return valueError(say("a is not square: ", a, " (", of.m, " != ", of.n, ")"));
  return known(of.m, of.n);
}

static Status choleskyRule(TypeSpan operands, const Attrs &, TypeList &results) {
  Result<int64_t> n = squareOf(operands[0]);
  if (!n.ok())
    return n.failure();
  results.push_back(withMatrix(operands[0], *n, *n));
  return {};
}
static ExternalCall choleskyCall(TypeSpan operands, const Attrs &) {
  MatrixSizes of(operands[0]);
  return {forDType(operands[0].dtype, "wg_cholesky_f64", "wg_cholesky_f32"), RoutineNumbers{of.batch, of.n},
          of.bytes(64 * of.n)};
}

static Status luRule(TypeSpan operands, const Attrs &, TypeList &results) {
  Result<int64_t> n = squareOf(operands[0]);
  if (!n.ok())
    return n.failure();
  results.push_back(withMatrix(operands[0], plus(*n, 1), *n));
  return {};
}
static ExternalCall luCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[0]);
  return {forDType(operands[0].dtype, "wg_lu_f64", "wg_lu_f32"),
          RoutineNumbers{of.batch, of.n, LuAttrs{attrs}.regular()}, of.bytes(of.n)};
}

static Status luSolveRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &a = operands[0], &lu = operands[1];
  TypeList factors;
  if (Status status = luRule(operands.first(1), attrs, factors); !status.ok())
    return status;
  bool fits = lu.dtype == a.dtype && lu.shape.rank() == a.shape.rank();
  for (int axis = 0; fits && axis < a.shape.rank(); ++axis)
    fits = mayBeEqual(lu.shape.dim(axis), factors[0].shape.dim(axis));
  if (!fits)
    return valueError(say("lu is not what lu makes of a: a is ", a, ", lu is ", lu));
  TensorType both[] = {a, operands[2]};
  return triangularSolveRule(both, attrs, results);
}
static ExternalCall luSolveCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[2]);
  return {.symbol = forDType(operands[2].dtype, "wg_lu_solve_f64", "wg_lu_solve_f32"),
          .numbers = RoutineNumbers{of.batch, of.m, of.n, LuSolveAttrs{attrs}.transpose()},
          .scratchBytes = of.n == 0 ? 0 : of.bytes(16 * of.m + of.m * of.n),
          .hidden = 1};
}

static Status qrRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (Status status = checkMatrices(operands[0]); !status.ok())
    return status;
  MatrixSizes of(operands[0]);
  results.push_back(withMatrix(operands[0], plus(of.m, of.n), QrAttrs{attrs}.complete() ? of.m : of.k()));
  return {};
}
static ExternalCall qrCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[0]);
  int64_t k = QrAttrs{attrs}.complete() ? of.m : of.k();
  return {forDType(operands[0].dtype, "wg_qr_f64", "wg_qr_f32"), RoutineNumbers{of.batch, of.m, of.n, k},
          of.bytes(of.m * of.n + 100 * (of.m + of.n) + 2048)};
}

static Status eighRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  Result<int64_t> n = squareOf(operands[0]);
  if (!n.ok())
    return n.failure();
  results.push_back(EighAttrs{attrs}.vectors() ? withMatrix(operands[0], plus(*n, 1), *n)
                                               : withVector(operands[0], *n));
  return {};
}
static ExternalCall eighCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[0]);
  return {forDType(operands[0].dtype, "wg_eigh_f64", "wg_eigh_f32"),
          RoutineNumbers{of.batch, of.n, EighAttrs{attrs}.vectors()}, of.bytes(of.n * of.n + 110 * of.n + 2048)};
}

static Status svdRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (Status status = checkMatrices(operands[0]); !status.ok())
    return status;
  MatrixSizes of(operands[0]);
  results.push_back(SvdAttrs{attrs}.vectors() ? withMatrix(operands[0], plus(plus(of.m, of.n), 1), of.k())
                                              : withVector(operands[0], of.k()));
  return {};
}
/// What the decomposition works in: a, u and v transposed, vectors, and reflections.
static int64_t svdElements(const MatrixSizes &of) {
  return 2 * of.m * of.n + of.k() * of.k() + 128 * (of.m + of.n) + 2048;
}
static ExternalCall svdCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[0]);
  return {forDType(operands[0].dtype, "wg_svd_f64", "wg_svd_f32"),
          RoutineNumbers{of.batch, of.m, of.n, SvdAttrs{attrs}.vectors()}, of.bytes(svdElements(of))};
}

static Status pinvRule(TypeSpan operands, const Attrs &, TypeList &results) {
  if (Status status = checkMatrices(operands[0]); !status.ok())
    return status;
  MatrixSizes of(operands[0]);
  results.push_back(withMatrix(operands[0], of.n, of.m));
  return {};
}
static ExternalCall pinvCall(TypeSpan operands, const Attrs &attrs) {
  MatrixSizes of(operands[0]);
  return {forDType(operands[0].dtype, "wg_pinv_f64", "wg_pinv_f32"),
          RoutineNumbers{of.batch, of.m, of.n, std::bit_cast<int64_t>(PinvAttrs{attrs}.rcond())},
          of.bytes(svdElements(of))};
}

std::span<const KernelRow> linalgKernels() {
  static constexpr const char *kNotPositive[] = {"the matrix is not positive definite"};
  static constexpr const char *kSingular[] = {"the matrix is singular"};
  static constexpr const char *kNoPermutation[] = {"the last row of lu is no permutation"};
  static constexpr const char *kDiverges[] = {"the iteration does not converge"};
  static constexpr ExternalRow triangularSolve{triangularSolveCall, {}, /*overwritten=*/1},
      cholesky{choleskyCall, kNotPositive, /*overwritten=*/0}, lu{luCall, kSingular},
      luSolve{luSolveCall, kNoPermutation}, qr{qrCall}, eigh{eighCall, kDiverges}, svd{svdCall, kDiverges},
      pinv{pinvCall, kDiverges};
  static constexpr KernelRow rows[] = {
      {.name = "triangular_solve",
       .shape = triangularSolveRule,
       .kernel = externalKernel<&triangularSolve>,
       .external = &triangularSolve},
      {.name = "cholesky", .shape = choleskyRule, .kernel = externalKernel<&cholesky>, .external = &cholesky},
      {.name = "lu", .shape = luRule, .kernel = externalKernel<&lu>, .external = &lu},
      {.name = "lu_solve", .shape = luSolveRule, .kernel = externalKernel<&luSolve>, .external = &luSolve},
      {.name = "qr", .shape = qrRule, .kernel = externalKernel<&qr>, .external = &qr},
      {.name = "eigh", .shape = eighRule, .kernel = externalKernel<&eigh>, .external = &eigh},
      {.name = "svd", .shape = svdRule, .kernel = externalKernel<&svd>, .external = &svd},
      {.name = "pinv", .shape = pinvRule, .kernel = externalKernel<&pinv>, .external = &pinv},
  };
  return rows;
}

} // namespace wg::runtime
