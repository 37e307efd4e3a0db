// Arrays rearranged, ordered, gathered from and written to, and what has come so far along an axis. As in
// <wengert/Ops.h>, negative axes count from the end, operands broadcast only where it is said, and every error carries
// the place of the call.
#pragma once

#include <wengert/Ops.h>
#include <wengert/Tree.h>

#include <optional>
#include <utility>
#include <vector>

namespace wg {

// ---- Axes -----------------------------------------------------------------------------------------------------------

/// Axes first to last, both included, as one; a scalar becomes a vector of one.
WENGERT_API Tensor flatten(const Located &x, int64_t first = 0, int64_t last = -1);
WENGERT_API Tensor swapaxes(const Located &x, int64_t a, int64_t b);
/// Axis from[i] of x becomes axis to[i] of the result; the others stay in their order.
WENGERT_API Tensor moveaxis(const Located &x, const std::vector<int64_t> &from, const std::vector<int64_t> &to);
WENGERT_API Tensor moveaxis(const Located &x, int64_t from, int64_t to);
/// x[0], x[1], ... along an axis of known size, which the parts lack. The opposite of `stack`.
WENGERT_API std::vector<Tensor> unstack(const Located &x, int64_t axis = 0);

// ---- Repeated, turned around, moved ---------------------------------------------------------------------------------

/// x `counts[i]` times along axis i. Counts and axes are aligned at the end, and what is missing in front is 1.
WENGERT_API Tensor tile(const Located &x, const std::vector<int64_t> &counts);
/// Each element `count` times in a row, along an axis.
WENGERT_API Tensor repeat(const Located &x, int64_t count, int64_t axis);
/// Element i counts[i] times; `total` is the sum of the counts, which is the size of the axis then. Counts that sum to
/// less repeat the last element, and what is beyond the total is left out.
/// Shapes: x any[..., n, ...], counts integer[n] -> any[..., total, ...].
WENGERT_API Tensor repeat(const Located &x, const Located &counts, int64_t axis, int64_t total);
/// Backwards along axes, all of them by default.
WENGERT_API Tensor flip(const Located &x, const Axes &axes = Axes::all());
/// Moved by `shift` places along an axis; what leaves at the end comes in at the start.
WENGERT_API Tensor roll(const Located &x, int64_t shift, int64_t axis);
WENGERT_API Tensor roll(const Located &x, const std::vector<int64_t> &shifts, const std::vector<int64_t> &axes);

/// What `pad` puts around x, for [a b c]: the mirror image without the border (c b | a b c | b a) or with it
/// (b a | a b c | c b), the border (a a | a b c | c c), or x again (b c | a b c | a b).
enum class PadMode : uint8_t { reflect, symmetric, edge, wrap };
/// One pair of widths an axis; a negative width takes away. An image has no more elements than x beside the border.
WENGERT_API Tensor pad(const Located &x, const std::vector<std::pair<int64_t, int64_t>> &widths, PadMode mode);

// ---- Diagonals and triangles ----------------------------------------------------------------------------------------
// Of the last two axes; k counts diagonals, to the right of the main one if positive.

/// Matrices with x on diagonal k, else 0. Shapes: x any[..., n] -> any[..., n + |k|, n + |k|].
WENGERT_API Tensor diag(const Located &x, int64_t k = 0);
/// Shapes: x any[..., n, m] -> any[..., length of diagonal k].
WENGERT_API Tensor diagonal(const Located &x, int64_t k = 0);
/// Sum of a diagonal. Shapes: x number[..., n, m] -> number[...].
WENGERT_API Tensor trace(const Located &x, int64_t k = 0);
/// x on diagonal k and below it, else 0.
WENGERT_API Tensor tril(const Located &x, int64_t k = 0);
/// x on diagonal k and above it, else 0.
WENGERT_API Tensor triu(const Located &x, int64_t k = 0);
/// Coordinates of a grid, one tensor for each of the vectors, all of one shape: axis i belongs to vector i, or with
/// `xy`, as in NumPy, the first two are exchanged.
WENGERT_API std::vector<Tensor> meshgrid(const std::vector<Tensor> &xs, bool xy = true, Where where = Where::current());

// ---- Places ---------------------------------------------------------------------------------------------------------

/// The coordinates of places in row-major order, one tensor for each axis of `shape`; places outside of it are taken
/// modulo its size.
WENGERT_API std::vector<Tensor> unravel_index(const Located &places, const Shape &shape);
/// The places in row-major order of coordinates, one tensor for each axis. Coordinates are not checked.
WENGERT_API Tensor ravel_index(const std::vector<Tensor> &coordinates, const Shape &shape,
                               Where where = Where::current());

/// A part of the given sizes whose first place is data: x[starts : starts + sizes]. Starts are moved so that the part
/// lies in x. Shapes: x any[...], starts integer[rank of x] -> any[sizes].
WENGERT_API Tensor dynamic_slice(const Located &x, const Located &starts, const Shape &sizes);
/// x, with the part at `starts` replaced by `update`, of x's rank and dtype. Starts are moved so that it lies in x.
WENGERT_API Tensor dynamic_update_slice(const Located &x, const Located &update, const Located &starts);
/// x, with x[starts : starts + strides * sizes : strides] replaced by `update`, which has x's rank; negative starts
/// count from the end. An error if the update does not lie in x.
WENGERT_API Tensor slice_update(const Located &x, const Located &update, const std::vector<int64_t> &starts,
                                const std::vector<int64_t> &strides = {});

/// Places of x along an axis: `y[..., i..., ...] = x[..., indices[i...], ...]`, the axes of the indices in place of the
/// axis. With batch_dims, as many axes in front are the same in both. An index out of range is an error.
WENGERT_API Tensor take(const Located &x, const Located &indices, int64_t axis, int64_t batch_dims = 0);
/// `y[..., j, ...] = x[..., indices[..., j, ...], ...]` along an axis: as `numpy.take_along_axis`. The other axes
/// broadcast. An index out of range is an error.
WENGERT_API Tensor take_along_axis(const Located &x, const Located &indices, int64_t axis);
/// Rows at several coordinates at once: `y[b..., i..., j...] = x[b..., indices[b..., i..., :], j...]`, b being the
/// first batch_dims axes. A coordinate out of range is an error that names the index -1.
/// Shapes: x any[batch..., n1, ..., nk, ...], indices integer[batch..., ..., k] -> any[batch..., ..., ...].
WENGERT_API Tensor gather_nd(const Located &x, const Located &indices, int64_t batch_dims = 0);

/// What an update does to the element at its place. Of several `set` at one place the last counts.
enum class Scatter : uint8_t { set, add, max, min };
/// x, with updates put along an axis: `y[..., indices[..., j, ...], ...] = updates[..., j, ...]`. Indices and updates
/// have one shape, which is x's but for the axis; a scalar update is for all of them.
WENGERT_API Tensor put_along_axis(const Located &x, const Located &indices, const Located &updates, int64_t axis,
                                  Scatter mode = Scatter::set);
/// x, with rows at coordinates updated: `y[indices[i..., :], j...] = updates[i..., j...]`.
/// Shapes: x any[n1, ..., nk, ...], indices integer[..., k], updates any[..., ...] -> as x.
WENGERT_API Tensor scatter_nd_update(const Located &x, const Located &indices, const Located &updates,
                                     Scatter mode = Scatter::set);
/// Zeros of `shape`, with updates added to the rows at coordinates. Shapes as of scatter_nd_update.
WENGERT_API Tensor scatter_nd(const Located &indices, const Located &updates, const Shape &shape);

/// Sums of the rows of x by the number of their segment: `y[k, j...]` is the sum of x[i, j...] over the i with
/// segments[i] = k; 0 of none. The numbers need not be in order; one outside of [0, count) is an error.
/// Shapes: x number[n, ...], segments integer[n] -> number[count, ...].
WENGERT_API Tensor segment_sum(const Located &x, const Located &segments, int64_t count);
/// The same for means; 0 of none. Floats.
WENGERT_API Tensor segment_mean(const Located &x, const Located &segments, int64_t count);
/// The same for the largest; -inf or the lowest integer of none. What ties shares the gradient equally.
WENGERT_API Tensor segment_max(const Located &x, const Located &segments, int64_t count);
/// The same for the smallest; inf or the highest integer of none.
WENGERT_API Tensor segment_min(const Located &x, const Located &segments, int64_t count);

/// How often each of 0, ..., length - 1 is in x; with weights, the sums of the weights. Without a length, the largest
/// of x and one more, which eager code alone can know. Another number in x is an error.
/// Shapes: x integer[...], weights number[...] as x -> i64[length], or number[length].
WENGERT_API Tensor bincount(const Located &x, std::optional<int64_t> length = {}, const Tensor &weights = {});

/// What was found, in `values` or rows of `indices`, and how much of it: an i64 scalar. Behind it there are zeros.
struct Found {
  Tensor values, count;
  WENGERT_FIELDS(values, count)
};
/// The elements, or rows, of x where `mask` holds, in their order. The mask has the shape of x's first axes. A function
/// that is traced says how many there are at most, `bound`, and gets so many, of which the first `count` are found;
/// more than that are left out, but counted. Eager code may leave the bound out.
/// Shapes: x any[mask..., ...], mask bool[mask...] -> values any[bound, ...], count i64[].
WENGERT_API Found boolean_mask(const Located &x, const Located &mask, std::optional<int64_t> bound = {});
/// The coordinates of the elements that are not 0, in row-major order; the bound as of boolean_mask.
/// Shapes: x any[...] -> values i64[bound, rank of x], count i64[].
WENGERT_API Found nonzero(const Located &x, std::optional<int64_t> bound = {});

// ---- Order ----------------------------------------------------------------------------------------------------------
// A NaN counts as the largest. Equal elements stay in their order, also where it descends.

/// Values, and where they were: i64 places along the axis.
struct Ordered {
  Tensor values, indices;
  WENGERT_FIELDS(values, indices)
};
struct SortOptions {
  bool descending = false;
};
WENGERT_API Tensor sort(const Located &x, int64_t axis = -1, SortOptions options = {});
/// The places along an axis that sort x. Shapes: x any[...] -> i64[...].
WENGERT_API Tensor argsort(const Located &x, int64_t axis = -1, SortOptions options = {});
/// The k largest along an axis, the largest first.
WENGERT_API Ordered top_k(const Located &x, int64_t k, int64_t axis = -1);
/// Where values belong in an ascending vector, or in one for each of the same axes in front: the number of elements
/// that are smaller, or with `right`, not larger. That it ascends is not checked.
/// Shapes: sorted number[n], values number[...] -> i64[...]; or sorted number[batch..., n], values number[batch..., m].
WENGERT_API Tensor searchsorted(const Located &sorted, const Located &values, bool right = false);
/// The element below which the part q of x lies along an axis, linear between the two nearest (NumPy's default). NaN if
/// one is. The axis has a known size. Shapes: x float[...] -> float[... without axis].
WENGERT_API Tensor quantile(const Located &x, double q, int64_t axis = -1, bool keepdims = false);
/// quantile(x, 0.5)
WENGERT_API Tensor median(const Located &x, int64_t axis = -1, bool keepdims = false);

// ---- So far along an axis -------------------------------------------------------------------------------------------

struct CumulativeOptions {
  bool exclusive = false; ///< of what has come before: the first is the result for nothing
  bool reverse = false;   ///< from the end of the axis
};
/// x[0], x[0] + x[1], ..., added up in this order. Integers wrap.
WENGERT_API Tensor cumsum(const Located &x, int64_t axis, CumulativeOptions options = {});
/// x[0], x[0] * x[1], ...; the gradient is exact where factors are 0.
WENGERT_API Tensor cumprod(const Located &x, int64_t axis, CumulativeOptions options = {});
/// log(exp(x[0])), log(exp(x[0]) + exp(x[1])), ...: nothing overflows. Floats.
WENGERT_API Tensor logcumsumexp(const Located &x, int64_t axis, CumulativeOptions options = {});
/// The largest so far, and the first place where it was met; a NaN wins, the first one. The gradient goes there.
WENGERT_API Ordered cummax(const Located &x, int64_t axis, bool reverse = false);
/// The smallest so far.
WENGERT_API Ordered cummin(const Located &x, int64_t axis, bool reverse = false);
/// y[i] = a[i] * y[i-1] + x[i] with y[0] = x[0]: a[0] is not read. a and x broadcast. Floats.
WENGERT_API Tensor linear_recurrence(const Located &a, const Located &x, int64_t axis, bool reverse = false);
/// x[1] - x[0], x[2] - x[1], ..., `order` times over. Shapes: x number[..., n, ...] -> number[..., n - order, ...].
WENGERT_API Tensor diff(const Located &x, int64_t order = 1, int64_t axis = -1);

// ---- Statistics -----------------------------------------------------------------------------------------------------

/// The mean of the squared distances from the mean, `correction` less counted: 1 makes it unbiased. (Of no more than
/// `correction` elements it is NaN or inf.)
WENGERT_API Tensor variance(const Located &x, const Axes &axes, bool keepdims, int64_t correction);
/// The square root of the variance; its gradient at 0 is 0.
WENGERT_API Tensor standard_deviation(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false,
                                      int64_t correction = 0);
/// (sum of |x|^p)^(1/p), the largest |x| for p = inf, the smallest for -inf, the number that are not 0 for p = 0.
/// Gradients at 0 are 0 for p > 1.
WENGERT_API Tensor p_norm(const Located &x, double p, const Axes &axes = Axes::all(), bool keepdims = false);
/// How many elements are not 0. Shapes: x any[...] -> i64[... without axes].
WENGERT_API Tensor count_nonzero(const Located &x, const Axes &axes = Axes::all(), bool keepdims = false);

// ---- Products -------------------------------------------------------------------------------------------------------

/// einsum of one to many operands: a letter for each axis, `...` for those that broadcast (aligned at the end); a
/// letter twice in an operand is its diagonal; letters that the result lacks are summed over. Without `->` the result
/// has the axes of `...`, then the letters that occur once, in alphabetical order. Of many operands the pair whose
/// product costs least is contracted first (sizes `?` count as 64). `einsum("bhqd,bhkd->bhqk", {q, k})`,
/// `einsum("...ii->...i", {x})`.
WENGERT_API Tensor einsum(const std::string &equation, const std::vector<Tensor> &operands,
                          Where where = Where::current());
/// Contracts axis a_axes[i] of a with axis b_axes[i] of b; the others follow, a's first.
WENGERT_API Tensor tensordot(const Located &a, const Located &b, const std::vector<int64_t> &a_axes,
                             const std::vector<int64_t> &b_axes);
/// Kronecker's product: each element of a times all of b. Of ranks 1 to 4; the lower one gets axes of 1 in front.
WENGERT_API Tensor kron(const Located &a, const Located &b);
/// Sum of products over the last axis of both; the others of a, then those of b, follow. A scalar multiplies.
WENGERT_API Tensor inner(const Located &a, const Located &b);
/// The vector product along the last axis, of size 3. Broadcasts.
WENGERT_API Tensor cross(const Located &a, const Located &b);

} // namespace wg
