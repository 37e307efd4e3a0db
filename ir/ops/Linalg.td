//===- Linalg.td - linear algebra beyond products -----------------------------------------------------===//
#ifndef WG_OPS_LINALG_TD
#define WG_OPS_LINALG_TD

include "ir/Dialect.td"

def WG_TriangularSolveOp : WG_InferredOp<"triangular_solve", "x with op(a) x = b", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    a is a triangle of a square matrix, the lower one or else the upper one, and op(a) is a, or with `transpose` its transpose. Of a only that
    triangle is read, and with `unit_diagonal` its diagonal counts as 1 and is not read either: what else is there may be NaN. By substitution,
    term by term in order, so the columns of x are the same bits alone and together. A zero on the diagonal divides, as in LAPACK: infinities and
    NaN follow. Axes in front are a batch. Derivative: that of the product with an inverse (Giles 2008).
    Shapes: a float[..., n, n], b float[..., n, k] -> x float[..., n, k].
    Example: `%x = wg.triangular_solve %a, %b {transpose = true} : tensor<3x3xf32>, tensor<3x2xf32> -> tensor<3x2xf32>`
  }];
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$b, DefaultValuedAttr<BoolAttr, "true">:$lower, DefaultValuedAttr<BoolAttr, "false">:$transpose,
                   DefaultValuedAttr<BoolAttr, "false">:$unit_diagonal);
  let results = (outs WG_FloatTensor:$x);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($x)";
  let dtypes = "floats";
  let publicFunction = 0;
  // The other triangle, and a diagonal that is not read, are numbers that would spoil the result; differences cannot have NaN there.
  let samples = ["f64[3,3] = [2, 90, -90, 0.5, -1.5, 90, -1, 0.25, 1.25]; f64[3,2] in [-2, 2] | lower = true; transpose = false; unit_diagonal = false",
                 "f64[3,3] = [2, 0.5, -1, 90, -1.5, 0.25, -90, 90, 1.25]; f64[3,2] in [-2, 2] | lower = false; transpose = false; unit_diagonal = false",
                 "f64[3,3] = [2, 90, -90, 0.5, -1.5, 90, -1, 0.25, 1.25]; f64[3,2] in [-2, 2] | lower = true; transpose = true; unit_diagonal = false",
                 "f64[3,3] = [2, 0.5, -1, 90, -1.5, 0.25, -90, 90, 1.25]; f64[3,2] in [-2, 2] | lower = false; transpose = true; unit_diagonal = false",
                 "f64[4,4] in [-0.75, 0.75]; f64[4,3] in [-2, 2] | lower = true; transpose = false; unit_diagonal = true",
                 "f64[4,4] in [-0.75, 0.75]; f64[4,3] in [-2, 2] | lower = false; transpose = true; unit_diagonal = true",
                 "f64[2,2,2] = [2, 90, 0.5, -1.5, 1.25, -90, -1, 1]; f64[2,2,3] in [-2, 2] | lower = true; transpose = false; unit_diagonal = false",
                 "f64[2,2,2] in [1, 2]; f64[2,2,1] in [-2, 2] | lower = false; transpose = true; unit_diagonal = false",
                 "f64[1,1] = [-1.5]; f64[1,1] in [-2, 2] | lower = true; transpose = false; unit_diagonal = false",
                 "f64[0,0] in [1, 2]; f64[0,2] in [-2, 2] | lower = true; transpose = false; unit_diagonal = false",
                 "f64[2,2] in [1, 2]; f64[2,0] in [-2, 2] | lower = true; transpose = true; unit_diagonal = false"];
}

#endif // WG_OPS_LINALG_TD
