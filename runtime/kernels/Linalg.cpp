// Linear algebra beyond products. Each is a routine (runtime/routines), which compiled code calls too.
#include "runtime/kernels/ExternalKernel.h"

#include <algorithm>

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

std::span<const KernelRow> linalgKernels() {
  static constexpr ExternalRow triangularSolve{triangularSolveCall, {}, /*overwritten=*/1};
  static constexpr KernelRow rows[] = {{.name = "triangular_solve",
                                        .shape = triangularSolveRule,
                                        .kernel = externalKernel<&triangularSolve>,
                                        .external = &triangularSolve}};
  return rows;
}

} // namespace wg::runtime
