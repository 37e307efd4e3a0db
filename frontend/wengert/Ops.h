// The operations. Those of ir/ops/*.td that need no wording of their own are declared in <wengert/Ops.inc>, written
// from their records; the rest, and everything composed of them, is here.
//
// Operands broadcast as NumPy's do, a literal takes the dtype of the tensor beside it (an integer that this dtype does
// not hold is an error), and two tensors of different dtypes are an error that names `cast`. Every error carries the
// place of the call.
#pragma once

#include <wengert/Variable.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wg {

namespace runtime {
enum class OpId : uint16_t;
class Attrs;
} // namespace runtime

/// Axes of a tensor, integers of any width; negative ones count from the end.
struct WENGERT_API Axes {
  static Axes all();
  template <detail::Place T> Axes(T axis) : Axes({detail::Number(axis)}) {}
  Axes(std::initializer_list<detail::Number> axes);
  Axes(std::vector<int64_t> axes);
  Axes(const Axes &other);
  Axes(Axes &&other) noexcept;
  Axes &operator=(const Axes &other);
  Axes &operator=(Axes &&other) noexcept;
  ~Axes();
  /// Empty: all.
  std::optional<std::vector<int64_t>> list;

private:
  Axes();
};

namespace detail {
using runtime::Attrs;
using runtime::OpId;
/// One op through the gate; literals take the dtype of the first tensor, or their own. No broadcasting.
WENGERT_API Tensor apply(OpId op, const Attrs &attrs, std::initializer_list<const Located *> operands);
/// A binary elementwise op with broadcasting.
WENGERT_API Tensor binary(OpId op, const Located &a, const Located &b);
WENGERT_API Tensor reduce(OpId op, const Located &x, const Axes &axes, bool keepdims);
WENGERT_API Tensor argmax(const Located &x, int64_t axis);
} // namespace detail

// ---- Creation
// Sizes are not negative. A size is `?` only in the unchanged shape of a tensor of a traced function,
// `zeros(x.shape())`. Inside such a function these are literals of the program.

WENGERT_API Tensor zeros(const Shape &shape, DType dtype = f32, Where where = Where::current());
WENGERT_API Tensor ones(const Shape &shape, DType dtype = f32, Where where = Where::current());
/// `value` everywhere, in its own dtype unless one is given. A float for an integer dtype is cast: toward zero,
/// saturating, NaN to 0; an integer that the dtype does not hold is an error.
WENGERT_API Tensor full(const Shape &shape, const Located &value, std::optional<DType> dtype = {});
/// start, start + step, ... below stop. An error if an integer dtype does not hold them all.
WENGERT_API Tensor arange(int64_t stop, DType dtype = i64, Where where = Where::current());
WENGERT_API Tensor arange(int64_t start, int64_t stop, int64_t step = 1, DType dtype = i64,
                          Where where = Where::current());
/// `count` values from start to stop, both included.
WENGERT_API Tensor linspace(double start, double stop, int64_t count, DType dtype = f32,
                            Where where = Where::current());
/// Ones on the diagonal: [rows, columns], square unless columns are given.
WENGERT_API Tensor eye(int64_t rows, std::optional<int64_t> columns = {}, DType dtype = f32,
                       Where where = Where::current());

// ---- Operators
// ---------------------------------------------------------------------------------------------------------

WENGERT_API Tensor operator+(const Located &a, const Located &b);
WENGERT_API Tensor operator-(const Located &a, const Located &b);
WENGERT_API Tensor operator*(const Located &a, const Located &b);
/// Floats; for integers an error that names floor_div and cast.
WENGERT_API Tensor operator/(const Located &a, const Located &b);
/// The remainder with the sign of b.
WENGERT_API Tensor operator%(const Located &a, const Located &b);
WENGERT_API Tensor operator-(const Located &x);
/// identity(x)
WENGERT_API Tensor operator+(const Located &x);
WENGERT_API Tensor operator==(const Located &a, const Located &b);
WENGERT_API Tensor operator!=(const Located &a, const Located &b);
WENGERT_API Tensor operator<(const Located &a, const Located &b);
WENGERT_API Tensor operator<=(const Located &a, const Located &b);
WENGERT_API Tensor operator>(const Located &a, const Located &b);
WENGERT_API Tensor operator>=(const Located &a, const Located &b);
/// On bool tensors, elementwise; both sides are always evaluated.
WENGERT_API Tensor operator&&(const Located &a, const Located &b);
WENGERT_API Tensor operator||(const Located &a, const Located &b);
WENGERT_API Tensor operator!(const Located &x);
/// Rebinds the handle: the tensor that others hold stays as it is.
WENGERT_API Tensor &operator+=(Tensor &a, const Located &b);
WENGERT_API Tensor &operator-=(Tensor &a, const Located &b);
WENGERT_API Tensor &operator*=(Tensor &a, const Located &b);
WENGERT_API Tensor &operator/=(Tensor &a, const Located &b);
/// Assigns to the variable: `v -= g` is `v.assign_sub(g)`. As there, no gradient passes through it.
WENGERT_API const Variable &operator+=(const Variable &a, const Located &b);
WENGERT_API const Variable &operator-=(const Variable &a, const Located &b);
WENGERT_API const Variable &operator*=(const Variable &a, const Located &b);
WENGERT_API const Variable &operator/=(const Variable &a, const Located &b);

// ---- From the records
// ----------------------------------------------------------------------------------------------------

#include <wengert/Ops.inc>

// ---- Selection and products
// ------------------------------------------------------------------------------------------------

/// a where `condition` holds, else b; all three broadcast. The untaken side gets an exact 0 as gradient; times an
/// infinite slope above it that is NaN, so guard the argument too: `where(x > 0, log(where(x > 0, x, 1)), 0)`.
WENGERT_API Tensor where(const Located &condition, const Located &a, const Located &b);

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
/// Matrix product over the last two axes; leading axes are a batch and broadcast. A vector counts as a row on the left
/// and as a column on the right, and the result lacks that axis.
/// Shapes: a float[..., m, k], b float[..., k, n] -> float[..., m, n].
WENGERT_API Tensor matmul(const Located &a, const Located &b, MatmulOptions options = {});
struct TriangularSolveOptions {
  bool lower = true;          ///< a is a lower triangle, else an upper one
  bool transpose = false;     ///< solves with the transpose of a
  bool unit_diagonal = false; ///< the diagonal of a counts as 1
};
/// x with op(a) x = b, op(a) being a or its transpose, by substitution: element by element
/// x[i] = (b[i] - sum of op(a)[i, j] x[j] over the rows j that are known) / op(a)[i, i].
/// Of a only its triangle is read, without the diagonal where that counts as 1: what else is there may be anything, a
/// NaN too, and its gradient is 0. A zero on the diagonal divides, as in LAPACK: infinities and NaN, no error. Axes in
/// front are a batch and broadcast. f64 and f32. Derivative: that of the product with an inverse in Giles 2008,
/// "Collected matrix derivative results for forward and reverse mode algorithmic differentiation".
/// Shapes: a float[..., n, n], b float[..., n, k] -> float[..., n, k]; a vector is a column, expand_dims(b, -1).
/// Errors: a that is not square, other sizes or dtypes.
WENGERT_API Tensor triangular_solve(const Located &a, const Located &b, TriangularSolveOptions options = {});
/// Sum of products over the letters that the result lacks: `einsum("mk,kn->mn", a, b)`. Without `->` the result has the
/// letters that occur once, in alphabetical order. A letter on one side only is summed first.
WENGERT_API Tensor einsum(const std::string &equation, const Located &a, const Located &b);

/// Contracts the last `axes` axes of a with the first of b.
WENGERT_API Tensor tensordot(const Located &a, const Located &b, int64_t axes = 2);
/// [m], [n] -> [m, n]
WENGERT_API Tensor outer(const Located &a, const Located &b);
/// [k], [k] -> []
WENGERT_API Tensor dot(const Located &a, const Located &b);

// ---- Shapes
// ----------------------------------------------------------------------------------------------------------------

/// Axis i of the result is axis permutation[i] of x; without one, the axes are reversed.
WENGERT_API Tensor transpose(const Located &x, const std::vector<int64_t> &permutation = {});
/// The same elements in row-major order. One size may be -1 (or `dynamic`): it follows from the others, when the
/// function runs if x has open sizes.
WENGERT_API Tensor reshape(const Located &x, const Shape &shape);
/// NumPy's rule: axes are aligned at the end, and a size 1 repeats. The result is a tensor of
/// its own, in x's own shape too.
WENGERT_API Tensor broadcast_to(const Located &x, const Shape &shape);
/// A new axis of size 1 at `axis`; negative ones count from the end of the result.
WENGERT_API Tensor expand_dims(const Located &x, int64_t axis);
/// Without the given axes, which have size 1 (a `?` among them: when the function runs); by default
/// without all that are known to.
WENGERT_API Tensor squeeze(const Located &x, const Axes &axes = Axes::all());
/// x[start : limit : stride] on the leading axes; negative places count from the end, and places clamp. Strides are
/// positive. An open axis counts when the function runs.
WENGERT_API Tensor slice(const Located &x, const std::vector<int64_t> &starts, const std::vector<int64_t> &limits,
                         const std::vector<int64_t> &strides = {});
/// x[i] along an axis, which the result lacks. A place beyond an open axis is an error when the function runs.
WENGERT_API Tensor index(const Located &x, int64_t i, int64_t axis = 0);
WENGERT_API Tensor concat(const std::vector<Tensor> &xs, int64_t axis = 0, Where where = Where::current());
/// Along a new axis.
WENGERT_API Tensor stack(const std::vector<Tensor> &xs, int64_t axis = 0, Where where = Where::current());
/// `parts` equal pieces; an open size that is no multiple of `parts` is an error when the function runs.
WENGERT_API std::vector<Tensor> split(const Located &x, int64_t parts, int64_t axis = 0);
/// Zeros (or `value`) before and after: one pair an axis. A negative width takes away. Errors: a value that an integer
/// or bool dtype does not hold.
WENGERT_API Tensor pad(const Located &x, const std::vector<std::pair<int64_t, int64_t>> &widths, double value = 0);
/// 1 at place x[...] of a new last axis of size `depth`, else 0; a row of zeros for an index outside.
WENGERT_API Tensor one_hot(const Located &x, int64_t depth, DType dtype = f32);

// ---- Composites: no rule of their own
// ------------------------------------------------------------------------------------------

/// x as a tensor of its own: a gradient by it is not one by x, which a copy of the handle would be. `+x` is the same.
WENGERT_API Tensor identity(const Located &x);
WENGERT_API Tensor square(const Located &x);
/// Place of the smallest of x along an axis: the first of equals; a NaN wins, the first one.
/// Shapes: x number[...] -> i64[... without axis].
WENGERT_API Tensor argmin(const Located &x, int64_t axis = -1);
/// x is inf or -inf. Shapes: x float[...] -> bool[...].
WENGERT_API Tensor is_inf(const Located &x);
/// x is neither infinite nor NaN. Shapes: x float[...] -> bool[...].
WENGERT_API Tensor is_finite(const Located &x);
WENGERT_API Tensor reciprocal(const Located &x);
WENGERT_API Tensor mean(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false);
/// Mean of the squared distances from the mean.
WENGERT_API Tensor variance(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false);
/// log(sum(exp(x))), shifted by the maximum: never overflows. -inf of -inf only.
WENGERT_API Tensor logsumexp(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false);
WENGERT_API Tensor softmax(const Located &x, int64_t axis = -1);
WENGERT_API Tensor log_softmax(const Located &x, int64_t axis = -1);
/// x Phi(x), exact, by erf (Hendrycks and Gimpel 2016).
WENGERT_API Tensor gelu(const Located &x);
/// The approximation of the same paper: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, within 5e-4 of it.
WENGERT_API Tensor gelu_tanh(const Located &x);
/// x sigmoid(x)
WENGERT_API Tensor silu(const Located &x);
/// min(max(x, low), high), NaN where any of the three is; a bound counts as inside for the gradient.
WENGERT_API Tensor clip(const Located &x, const Located &low, const Located &high);
/// sqrt(sum(x^2)); its gradient at 0 is 0.
WENGERT_API Tensor norm(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false);

// ---- Losses
// ------------------------------------------------------------------------------------------------------------------

/// Mean over all elements of (prediction - target)^2. Shapes: equal, or one is a scalar; anything else is an error.
WENGERT_API Tensor mean_squared_error(const Located &prediction, const Located &target);
/// -log softmax(logits)[label] for each example. Integer labels[...] name the class; float labels[..., classes] give
/// its distribution. Shapes: logits float[..., classes] -> float[...].
WENGERT_API Tensor softmax_cross_entropy(const Located &logits, const Located &labels);

/// Threads that kernels may use, the calling one included: 1 to 256; any other count is an error. The default is the
/// number of CPUs that the process may run on. Waits for the kernels that run now; takes effect for the next.
WENGERT_API void set_num_threads(int count, Where where = Where::current());

} // namespace wg
