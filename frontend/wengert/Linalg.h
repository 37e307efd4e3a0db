// Linear algebra: factorisations of matrices, and what is made of them.
//
// Matrices are the last two axes; axes in front are a batch, and an error in one of its matrices is one of all. f64
// and f32. Each factorisation is one routine that eager and compiled code both call, so they agree bit for bit; its
// derivative is a formula of its own, in every mode and order. A matrix with a NaN or an infinity has NaN for its
// singular values, its eigenvalues and what is made of them; other factorisations carry it on as arithmetic does.
#pragma once

#include <wengert/Ops.h>
#include <wengert/Tree.h>

namespace wg::linalg {

/// a = q r. q's columns are orthonormal, r is an upper triangle.
struct Qr {
  Tensor q, r;
  WENGERT_FIELDS(q, r)
};
/// Rows of a in the order p are l u: row i of them is row p[..., i] of a. l is a lower triangle of diagonal 1.
struct Lu {
  Tensor p, l, u;
  WENGERT_FIELDS(p, l, u)
};
/// Column i of `vectors` is the vector of values[..., i].
struct Eigh {
  Tensor values, vectors;
  WENGERT_FIELDS(values, vectors)
};
/// a = u diag(s) vt.
struct Svd {
  Tensor u, s, vt;
  WENGERT_FIELDS(u, s, vt)
};
/// det = sign exp(logabs).
struct Slogdet {
  Tensor sign, logabs;
  WENGERT_FIELDS(sign, logabs)
};

// ---- Factorisations

/// l, a lower triangle of positive diagonal, with l l^T = a. Of a its symmetric part (a + a^T) / 2 counts, so that its
/// gradient is symmetric (Murray 2016, "Differentiation of the Cholesky decomposition").
/// Shapes: a float[..., n, n] -> float[..., n, n]. Errors: a that is not square, or not positive definite.
WENGERT_API Tensor cholesky(const Located &a);
/// Gaussian elimination with partial pivoting. A singular matrix has a zero on u's diagonal and is no error; the
/// gradient by it is not finite.
/// Shapes: a float[..., n, n] -> p i64[..., n], l and u float[..., n, n]. Errors: a that is not square.
WENGERT_API Lu lu(const Located &a);
struct QrOptions {
  bool complete = false; ///< q is square: [m, m], and r is [m, n]
};
/// By Householder's reflections, with LAPACK's signs: r's diagonal may be negative. Derivative: Walter, Lehmann and
/// Lamour 2012, for m < n Roberts and Roberts 2020; it needs the first k columns of a to be independent. The complete
/// q has none where m > n, an error: its last columns are any basis of what a's columns leave.
/// Shapes: a float[..., m, n], k = min(m, n) -> q float[..., m, k], r float[..., k, n].
WENGERT_API Qr qr(const Located &a, QrOptions options = {});
/// Eigenvalues, ascending, and orthonormal eigenvectors of (a + a^T) / 2. Of each vector the first component with at
/// least half the largest magnitude is positive. Derivative: Giles 2008, symmetric; where values are equal the
/// gradient through vectors is infinite or NaN, as these are any basis: eigvalsh has none of that.
/// Shapes: a float[..., n, n] -> values float[..., n], vectors float[..., n, n]. Errors: a that is not square.
WENGERT_API Eigh eigh(const Located &a);
/// The values alone, in a fraction of the time; its gradient is right where values are equal too.
/// Shapes: a float[..., n, n] -> float[..., n].
WENGERT_API Tensor eigvalsh(const Located &a);
/// Singular values, descending, and vectors, k = min(m, n) of each. Of each column of u the first component with at
/// least half the largest magnitude is positive. Derivative: Townsend 2016, "Differentiating the singular value
/// decomposition"; where values are equal, or where one is 0 and m != n, the gradient through vectors is infinite or
/// NaN. svdvals has none of that.
/// Shapes: a float[..., m, n] -> u float[..., m, k], s float[..., k], vt float[..., k, n].
WENGERT_API Svd svd(const Located &a);
/// The values alone. Shapes: a float[..., m, n] -> float[..., k].
WENGERT_API Tensor svdvals(const Located &a);

// ---- Equations

/// x with a x = b, by lu. The gradient solves with the same factors: db = a^-T dx, da = -db x^T (Giles 2008).
/// A b of rank 1 is one vector; else it is [..., n, k], and the axes in front broadcast.
/// Shapes: a float[..., n, n], b float[..., n, k] or [n] -> as b. Errors: other sizes or dtypes, a singular a.
WENGERT_API Tensor solve(const Located &a, const Located &b);
/// x with l l^T x = b, l = cholesky(a). Shapes and b as in solve.
WENGERT_API Tensor cholesky_solve(const Located &l, const Located &b);
/// The inverse. Shapes: a float[..., n, n] -> float[..., n, n]. Errors: a that is not square, or is singular.
WENGERT_API Tensor inv(const Located &a);
/// The pseudoinverse, by svd: singular values up to `rcond` times the largest count as 0, by default max(m, n) eps of
/// the dtype. Derivative: Golub and Pereyra 1973, for a rank that stays as it is.
/// Shapes: a float[..., m, n] -> float[..., n, m].
WENGERT_API Tensor pinv(const Located &a, double rcond = -1);
/// The x of smallest norm among those with the smallest |a x - b|, for any m, n and rank, by the pseudoinverse, and
/// one step of refinement. b and rcond as in solve and pinv.
/// Shapes: a float[..., m, n], b float[..., m, k] or [m] -> float[..., n, k] or [..., n].
WENGERT_API Tensor lstsq(const Located &a, const Located &b, double rcond = -1);

// ---- Numbers of a matrix

/// By lu; 0 of a singular matrix, 1 of an empty one. Its gradient there is NaN or infinite.
/// Shapes: a float[..., n, n] -> float[...].
WENGERT_API Tensor det(const Located &a);
/// The determinant's sign, which has no gradient, and the logarithm of its magnitude, whose gradient is a^-T; 0 and
/// -inf of a singular matrix. Shapes: a float[..., n, n] -> both float[...].
WENGERT_API Slogdet slogdet(const Located &a);
/// How many singular values exceed rcond times the largest; rcond as in pinv. No gradient.
/// Shapes: a float[..., m, n] -> i64[...].
WENGERT_API Tensor matrix_rank(const Located &a, double rcond = -1);
enum class MatrixNorm : uint8_t {
  frobenius, ///< the root of the sum of the squares; its gradient at 0 is 0
  nuclear,   ///< the sum of the singular values
  spectral,  ///< the largest singular value
};
/// Shapes: a float[..., m, n] -> float[...]; 0 of an empty matrix.
WENGERT_API Tensor matrix_norm(const Located &a, MatrixNorm norm = MatrixNorm::frobenius);
/// a multiplied by itself, by squarings; of a negative n the inverse is.
/// Shapes: a float[..., n, n] -> float[..., n, n].
WENGERT_API Tensor matrix_power(const Located &a, int64_t n);

} // namespace wg::linalg
