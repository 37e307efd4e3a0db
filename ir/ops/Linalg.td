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
                 "f64[2,2] in [1, 2]; f64[2,0] in [-2, 2] | lower = true; transpose = true; unit_diagonal = false",
    "f64[1,1,2,1,1,1,2,2] in [1, 2]; f64[1,1,2,1,1,1,2,3] in [-2, 2] | lower = true; transpose = false; unit_diagonal = false"];
  let without = ["rank 0: it takes matrices"];
}

// Factorisations. An op has one result here: the factors lie one after the other along the rows, as wg::linalg takes them apart. A matrix with a
// NaN or an infinity has NaN for its factors, or carries them on as arithmetic does; no routine waits for it.

def WG_CholeskyOp : WG_InferredOp<"cholesky", "l, lower, with l l^T = (a + a^T) / 2", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    Of the symmetric part of a, by blocks. A pivot that is not positive is an error. Axes in front are a batch. Derivative: Murray 2016, symmetric.
    Shapes: a float[..., n, n] -> l float[..., n, n].
  }];
  let arguments = (ins WG_FloatTensor:$a);
  let results = (outs WG_FloatTensor:$l);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($l)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[3,3] = [4, 0.5, -1, 0.25, 3, 0.75, -0.5, 0.25, 2]", "f64[2,2,2] = [2, 0.5, 0.25, 1.5, 3, -1, -0.5, 2]", "f64[1,1] = [2.25]", "f64[0,0] in [1, 2]",
                 "f64[2,0,0] in [1, 2]",
    "f64[1,1,2,1,1,1,2,2] = [2, 0.5, 0.25, 1.5, 3, -1, -0.5, 2]"];
  let without = ["rank 0: it takes matrices"];
}

def WG_LuOp : WG_InferredOp<"lu", "l and u of a's rows, permuted, with l u = p a", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    Gaussian elimination with partial pivoting: the first of the largest, as LAPACK. Row i < n of the result is row i of u from the diagonal on, and
    before it of l, whose diagonal is 1; row n is the permutation: row i of p a is row y[n, i] of a. A pivot that is 0 ends nothing, but with `regular`
    it is an error. Axes in front are a batch. Derivative: that of l and u where all pivots but the last differ from 0.
    Shapes: a float[..., n, n] -> y float[..., n + 1, n].
  }];
  let arguments = (ins WG_FloatTensor:$a, DefaultValuedAttr<BoolAttr, "false">:$regular);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[3,3] = [0.25, 2, -1, 2, 0.5, 1, -0.5, 1.5, 1.75] | regular = true", "f64[2,2,2] = [2, 0.5, 0.25, 1.5, 0.5, -1, -2, 2] | regular = false",
                 "f64[1,1] = [-1.5] | regular = false", "f64[0,0] in [1, 2] | regular = true",
    "f64[1,1,2,1,1,1,2,2] = [2, 0.5, 0.25, 1.5, 0.5, -1, -2, 2] | regular = true"];
  let without = ["rank 0: it takes matrices"];
}

def WG_LuSolveOp : WG_InferredOp<"lu_solve", "x with op(a) x = b, by lu = lu(a)", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    op(a) is a, or with `transpose` its transpose. Only lu is read: a is there for the derivative, that of the product with an inverse (Giles 2008), which
    so needs no second factorisation and none of lu's. Hence lu has the derivative 0. Axes in front are a batch.
    Shapes: a float[..., n, n], lu float[..., n + 1, n], b float[..., n, k] -> x float[..., n, k].
  }];
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$lu, WG_FloatTensor:$b, DefaultValuedAttr<BoolAttr, "false">:$transpose);
  let results = (outs WG_FloatTensor:$x);
  let assemblyFormat = "$a `,` $lu `,` $b attr-dict `:` type($a) `,` type($lu) `,` type($b) `->` type($x)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[2,2] = [1, 1.25, 2, 0.5]; f64[3,2] = [2, 0.5, 0.5, 1, 1, 0]; f64[2,3] in [-2, 2] | transpose = false # differences: lu stands for a",
                 "f64[2,2] = [1, 1.25, 2, 0.5]; f64[3,2] = [2, 0.5, 0.5, 1, 1, 0]; f64[2,1] in [-2, 2] | transpose = true # differences: lu stands for a",
                 "f64[2,1,1] = [1, 2]; f64[2,2,1] = [1, 0, 2, 0]; f64[2,1,3] in [-2, 2] | transpose = false # differences: lu stands for a",
                 "f64[0,0] in [1, 2]; f64[1,0] in [1, 2]; f64[0,2] in [1, 2] | transpose = false",
    "f64[1,1,2,1,1,1,1,1] = [1, 2]; f64[1,1,2,1,1,1,2,1] = [1, 0, 2, 0]; f64[1,1,2,1,1,1,1,3] in [-2, 2] | transpose = false # differences: lu stands for a"];
  let without = ["rank 0: it takes matrices"];
}

def WG_QrOp : WG_InferredOp<"qr", "q and r^T, with q r = a", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    By Householder's reflections, with the signs of LAPACK: a diagonal element of r has the sign opposite to what it is made of. Rows 0 to m of the result
    are q, the n after them the columns of r. k is min(m, n), or with `complete` m. Axes in front are a batch. Derivative: Walter, Lehmann and Lamour
    2012; for m < n Roberts and Roberts 2020; of the complete q for m > n there is none, as its last columns are any of many.
    Shapes: a float[..., m, n] -> y float[..., m + n, k].
  }];
  let arguments = (ins WG_FloatTensor:$a, DefaultValuedAttr<BoolAttr, "false">:$complete);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[3,3] = [0.5, 2, -1, 2, 0.5, 1, -0.5, 1.5, 1.75] | complete = false", "f64[3,2] = [0.5, 2, 2, 0.5, -0.5, 1.5] | complete = false",
                 "f64[2,3] = [0.5, 2, -1, 2, 0.5, 1] | complete = true", "f64[2,2,2] = [2, 0.5, 0.25, 1.5, 0.5, -1, -2, 2] | complete = false",
                 "f64[1,1] = [-1.5] | complete = false", "f64[0,0] in [1, 2] | complete = false", "f64[3,0] in [1, 2] | complete = false",
                 "f64[0,2] in [1, 2] | complete = false",
    "f64[1,1,2,1,1,1,2,2] = [2, 0.5, 0.25, 1.5, 0.5, -1, -2, 2] | complete = false"];
  let without = ["rank 0: it takes matrices"];
}

def WG_EighOp : WG_InferredOp<"eigh", "eigenvectors and eigenvalues of (a + a^T) / 2", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    Of the symmetric part of a: eigenvalues ascending; a column of v is the vector of its value, and of its components the first that has at least half
    the largest magnitude is positive. Rows 0 to n of the result are v, row n the values. Without `vectors` the result is the values alone. By Householder's
    tridiagonal form and implicit QL steps. Axes in front are a batch. Derivative: Giles 2008; between vectors of equal values infinite or NaN, that of the
    values alone right there too.
    Shapes: a float[..., n, n] -> y float[..., n + 1, n], or float[..., n].
  }];
  let arguments = (ins WG_FloatTensor:$a, DefaultValuedAttr<BoolAttr, "true">:$vectors);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[3,3] = [2, 0.25, -0.5, 0.75, -1, 0.5, 0.125, -0.5, 0.5] | vectors = true", "f64[3,3] = [2, 0.25, -0.5, 0.75, -1, 0.5, 0.125, -0.5, 0.5] | vectors = false",
                 "f64[2,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = true", "f64[1,1] = [-1.5] | vectors = true", "f64[0,0] in [1, 2] | vectors = true",
                 "f64[2,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = false", "f64[0,0] in [1, 2] | vectors = false",
    "f64[1,1,2,1,1,1,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = true"];
  let without = ["rank 0: it takes matrices"];
}

def WG_SvdOp : WG_InferredOp<"svd", "u, v and s, with u s v^T = a", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    k = min(m, n) singular values, descending. Rows 0 to m of the result are u, the n after them v, the last one s. Of a column of u the first component that
    has at least half the largest magnitude is positive. Without `vectors` the result is s alone. By Householder's bidiagonal form and implicit QR
    steps (Golub and Reinsch 1970). Axes in front are a batch. Derivative: Townsend 2016; between vectors of equal values infinite or NaN, that of the values
    alone right there too.
    Shapes: a float[..., m, n] -> y float[..., m + n + 1, k], or float[..., k].
  }];
  let arguments = (ins WG_FloatTensor:$a, DefaultValuedAttr<BoolAttr, "true">:$vectors);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a attr-dict `:` type($a) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[2,2] = [2, 0.25, -0.5, 0.75] | vectors = true", "f64[3,2] = [2, 0.25, -0.5, 0.75, 1, 0.5] | vectors = true",
                 "f64[2,3] = [2, 0.25, -0.5, 0.75, 1, 0.5] | vectors = true", "f64[2,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = true",
                 "f64[3,2] = [2, 0.25, -0.5, 0.75, 1, 0.5] | vectors = false", "f64[2,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = false",
                 "f64[1,1] = [-1.5] | vectors = true", "f64[0,0] in [1, 2] | vectors = true", "f64[3,0] in [1, 2] | vectors = true", "f64[0,2] in [1, 2] | vectors = false",
    "f64[1,1,2,1,1,1,2,2] = [2, 0.5, 0.25, -1.5, 3, -1, -0.5, 0.5] | vectors = true"];
  let without = ["rank 0: it takes matrices"];
}

def WG_PinvOp : WG_InferredOp<"pinv", "y = the pseudoinverse of a", [WG_Differentiates, WG_External, WG_Batches]> {
  let description = [{
    v s^+ u^T of a's singular values and vectors. Values up to `rcond` times the largest count as 0; a negative rcond is max(m, n) eps of the dtype. Axes
    in front are a batch. Derivative: Golub and Pereyra 1973, for a rank that stays.
    Shapes: a float[..., m, n] -> y float[..., n, m].
  }];
  let arguments = (ins WG_FloatTensor:$a, F64Attr:$rcond);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a `rcond` $rcond attr-dict `:` type($a) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[2,2] = [2, 0.25, -0.5, 0.75] | rcond = -1.0", "f64[3,2] = [2, 0.25, -0.5, 0.75, 1, 0.5] | rcond = -1.0", "f64[2,3] = [2, 0.25, -0.5, 0.75, 1, 0.5] | rcond = 0.001",
                 "f64[2,2,1] = [2, 0.5, 0.25, -1.5] | rcond = -1.0", "f64[0,0] in [1, 2] | rcond = -1.0", "f64[3,0] in [1, 2] | rcond = -1.0",
    "f64[1,1,2,1,1,1,2,1] = [2, 0.5, 0.25, -1.5] | rcond = -1.0"];
  let without = ["rank 0: it takes matrices"];
}

#endif // WG_OPS_LINALG_TD
