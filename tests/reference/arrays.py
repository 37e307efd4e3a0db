"""Arrays rearranged, ordered, gathered from and written to; what has come so far along an axis; statistics and products."""
import numpy as np

from reductions import over
from tables import *

family("arrays")

x3, deep = eighths("f64", 2, 3, 4), eighths("f64", 1, 2, 1, 2, 1, 2, 1, 2)
tied = array("f64", [[3, 1, 2, 1, 3], [0.0, -0.0, 5, -1, 5]])
nans = array("f64", [[2, np.nan, -np.inf, 1, np.inf], [np.nan, 0, -0.0, np.nan, -1]])


def listed(f):
    """f with what lists say as tuples."""
    return lambda *operands, **o: f(*operands, **{k: tuple(v) if isinstance(v, list) else v for k, v in o.items()})


# ---- Axes, repetitions, borders

for dtype in ALL:
    x = bools(2, 3) if dtype == "bool" else eighths(dtype, 2, 3)
    case("flip", np.flip, x, axis=1)
    case("roll", np.roll, x, shift=[1], axis=[-1])
    case("tile", listed(np.tile), x, reps=[2, 1])
    case("repeat", np.repeat, x, repeats=2, axis=0)
    case("tril", np.tril, x)
    case("diag", np.diag, x[0])
    case("swapaxes", np.swapaxes, x, axis1=0, axis2=1)
    case("unstack", lambda x, axis: list(np.moveaxis(x, axis, 0)), x, axis=1, closed="is known when the function runs")
for first, last in ((0, -1), (1, 2), (0, 1), (1, 1)):
    case("flatten", lambda x, first, last: x.reshape(x.shape[:first] + (-1,) + (x.shape[last + 1 :] if last >= 0 else ())), x3, first=first, last=last)
case("flatten", np.ravel, array("f64", 2.5))
for axis in (None, 0, [0, 2], -1):
    case("flip", listed(np.flip), x3, **({} if axis is None else {"axis": axis}))
for shift, axis in (([1], [0]), ([-2], [1]), ([7], [2]), ([1, -1], [0, 2]), ([-(2**63)], [1])):
    case("roll", lambda x, shift, axis: np.roll(x, tuple(s % 12 for s in shift), tuple(axis)), x3, shift=shift, axis=axis)
for reps in ([2], [2, 1, 1], [1, 2, 1, 1], [0, 1]):
    case("tile", listed(np.tile), x3[0], reps=reps)
for repeats, axis in ((3, 0), (2, -1), (0, 1)):
    case("repeat", np.repeat, x3, repeats=repeats, axis=axis)
case("repeat", lambda x, counts, axis, total: np.repeat(x, counts, axis)[:, :total], x3, array("i64", [1, 0, 2]), axis=1, total=3)
case("repeat", lambda x, counts, axis, total: np.repeat(x, counts, axis)[:, :total], x3, array("i32", [1, 4, 2]), axis=1, total=4)
for operand in (np.zeros((0, 2)), deep):
    case("flip", np.flip, operand, axis=0)
    case("roll", lambda x, shift, axis: np.roll(x, shift, axis), operand, shift=[1], axis=[1])
case("moveaxis", listed(np.moveaxis), x3, source=[0], destination=[-1])
case("moveaxis", listed(np.moveaxis), x3, source=[0, 2], destination=[1, 0])
for mode, widths in (("reflect", [[2, 1], [0, 3]]), ("symmetric", [[3, 0], [4, 1]]), ("edge", [[5, 1], [0, 2]]), ("wrap", [[1, 3], [4, 0]])):
    for dtype in ("f64", "i32"):
        case("pad", lambda x, widths, mode: np.pad(x, widths, mode), eighths(dtype, 3, 4), widths=widths, mode=mode)
case("pad", lambda x, widths, value: np.pad(x[1:, :-2], [[0, 1], [2, 0]], constant_values=value), eighths("f64", 3, 4), widths=[[-1, 1], [2, -2]], value=7.0)

# ---- Diagonals, triangles, grids

for k in (-2, -1, 0, 1, 3):
    case("diag", np.diag, x3[0, 0], k=k)
    case("tril", np.tril, x3, k=k)
    case("triu", np.triu, x3, k=k)
    case("trace", lambda x, k: np.trace(x, k, -2, -1), x3, k=k)
    case("diagonal", lambda x, k: np.diagonal(x, k, -2, -1), x3, k=k)
for xy in (True, False):
    case("meshgrid", lambda *xs, xy: list(np.meshgrid(*xs, indexing="xy" if xy else "ij")), eighths("f64", 2), eighths("f64", 3), eighths("f64", 1), xy=xy)
for index in ("i64", "i32"):
    case("unravel_index", lambda i, shape: [y.astype(i.dtype) for y in np.unravel_index(i, shape)], array(index, [[0, 5], [11, 23]]), shape=[2, 3, 4])
    case("ravel_index", lambda *c, shape: np.ravel_multi_index(c, shape).astype(c[0].dtype), array(index, [0, 1, 1]), array(index, [2, 0, 1]), shape=[2, 3])

# ---- Places


def starts_in(x, starts, sizes):
    return tuple(slice(int(s), int(s) + n) for s, n in zip(np.clip(starts, 0, np.array(x.shape) - np.array(sizes)), sizes))


def dynamic_update_slice(x, update, starts):
    y = x.copy()
    y[starts_in(x, starts, update.shape)] = update
    return y


def slice_update(x, update, starts, strides=None):
    y = x.copy()
    strides = strides or [1] * x.ndim
    y[tuple(slice(s % n, (s % n) + (m - 1) * by + 1, by) for s, n, m, by in zip(starts, x.shape, update.shape, strides))] = update
    return y


for starts in ([0, 0, 0], [1, 1, 2], [-3, 9, 1]):
    case("dynamic_slice", lambda x, s, shape: x[starts_in(x, s, shape)], x3, array("i64", starts), shape=[1, 2, 2])
    case("dynamic_update_slice", dynamic_update_slice, x3, eighths("f64", 1, 2, 2, salt=1), array("i32", starts))
case("slice_update", slice_update, x3, eighths("f64", 2, 2, 2, salt=1), starts=[0, -2, 1], closed="is open")
case("slice_update", slice_update, x3, eighths("f64", 1, 2, 2, salt=1), starts=[1, 0, 1], strides=[1, 2, 2], closed="is open")
case("take", lambda x, i, axis: np.take(x, i, axis), x3, array("i64", [2, 0, 2]), axis=1)
case("take", lambda x, i, axis: np.take(x, i, axis), x3, array("u8", [[3, 0], [1, 1]]), axis=-1)
case("take", lambda x, i, axis: np.take(x, i, axis), x3, array("i32", 1), axis=0)
case("take", lambda x, i, axis, batch_dims: np.stack([np.take(a, b, 1) for a, b in zip(x, i)]), x3, array("i64", [[2, 0], [1, 1]]), axis=2, batch_dims=1)
places = array("i64", [[[2, 0], [1, 1]], [[0, 2], [1, 0]]])
case("take_along_axis", lambda x, i, axis: np.take_along_axis(x, i, axis), x3[:, :2], places, axis=2)
case("take_along_axis", lambda x, i, axis: np.take_along_axis(x, np.broadcast_to(i, (2, 2, 4)), axis), x3, array("i64", [[[2], [0]]]), axis=1)
case("gather_nd", lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], x3, array("i64", [[0, 2], [1, 1], [0, 2]]), closed="of known size")
case("gather_nd", lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], x3, array("i64", [[[0, 2, 3]], [[1, 1, 0]]]), closed="of known size")


def written(x, indices, updates, how):
    """x, with rows at indices of the first axis changed one after the other."""
    y = x.copy()
    for place in np.ndindex(indices.shape):
        at = int(indices[place])
        y[at] = {"set": lambda a, b: b, "add": np.add, "max": np.maximum, "min": np.minimum}[how](y[at], updates[place])
    return y


for dtype, how in each(NUMBERS, ["set", "add", "max", "min"]):
    case(f"index_{how}", lambda x, u, i, how=how: written(x, i, u, how), eighths(dtype, 4, 2), eighths(dtype, 2, 2, 2, salt=1), array("i64", [[3, 0], [3, 3]]))


def put_along_axis(x, indices, updates, axis, mode):
    """One after the other along the axis, as numpy.put_along_axis."""
    y = np.moveaxis(x.copy(), axis, -1)
    i, u = np.moveaxis(indices, axis, -1), np.moveaxis(np.broadcast_to(updates, indices.shape), axis, -1)
    for row in np.ndindex(y.shape[:-1]):
        y[row] = written(y[row], i[row], u[row], mode)
    return np.moveaxis(y, -1, axis)


for mode in ("set", "add", "max", "min"):
    case("put_along_axis", put_along_axis, x3, array("i64", [[[2, 0, 1, 1]], [[0, 2, 1, 0]]]), eighths("f64", 2, 1, 4, salt=1), axis=1, mode=mode)
    case("put_along_axis", put_along_axis, x3, array("i64", [[[2, 0], [1, 1], [3, 3]], [[0, 2], [1, 0], [2, 2]]]), array("f64", 1.5), axis=2, mode=mode)
    case("scatter_nd_update", lambda x, i, u, mode: written(x.reshape(6, 4), i @ np.array([3, 1]), u, mode).reshape(x.shape), x3, array("i64", [[0, 2], [1, 1], [0, 2]]), eighths("f64", 3, 4, salt=1), mode=mode, closed="of known size")
case("scatter_nd", lambda i, u, shape: written(np.zeros((6, 2)), i @ np.array([3, 1]), u, "add").reshape(shape), array("i64", [[0, 2], [1, 1], [0, 2]]), eighths("f64", 3, 2), shape=[2, 3, 2], closed="of known size")


def segment(how, start):
    def f(x, ids, count):
        y = np.full((count, *x.shape[1:]), start(x.dtype), x.dtype)
        how.at(y, ids, x)
        return y

    return f


least = lambda dtype: -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
most = lambda dtype: np.inf if dtype.kind == "f" else np.iinfo(dtype).max
for (name, how, start), dtype in each([("sum", np.add, lambda d: 0), ("max", np.maximum, least), ("min", np.minimum, most)], NUMBERS):
    case(f"segment_{name}", segment(how, start), eighths(dtype, 5, 2), array("i64", [0, 2, 2, 0, 1]), count=4)
case("segment_mean", lambda x, ids, count: np.stack([x[ids == k].mean(0) if (ids == k).any() else np.zeros(2) for k in range(count)]), eighths("f64", 5, 2), array("i64", [0, 2, 2, 0, 1]), count=4)
for index in INTEGERS:
    case("bincount", lambda x, length: np.bincount(x.ravel(), minlength=length), array(index, [[0, 3, 3], [1, 3, 0]]), length=5)
case("bincount", lambda x, w, length: np.bincount(x, w, length), array("i64", [0, 3, 3, 1]), eighths("f64", 4), length=4)


def found(rows, bound):
    y = np.zeros((bound, *rows.shape[1:]), rows.dtype)
    y[: min(bound, len(rows))] = rows[:bound]
    return [y, np.array(len(rows))]


for bound in (1, 2, 5):
    case("boolean_mask", lambda x, mask, bound: found(x[mask], bound), x3[0], array("bool", [1, 0, 1]), bound=bound)
    case("nonzero", lambda x, bound: found(np.argwhere(x), bound), array("f64", [[0, 2, np.nan], [-0.0, 0, 1]]), bound=bound, closed="x has open sizes")

# ---- Order: a NaN counts as the largest, and equal elements stay in their order


def argsort(x, axis=-1, descending=False):
    if not descending:
        return np.argsort(x, axis, kind="stable")
    if x.dtype.kind != "f":
        return np.argsort(-1 - x.astype(np.int64), axis, kind="stable")
    first = lambda row: sorted(range(len(row)), key=lambda i: (not np.isnan(row[i]), 0 if np.isnan(row[i]) else -row[i]))
    return np.apply_along_axis(lambda row: np.array(first(row), np.int64), axis, x)


def sort(x, axis=-1, descending=False):
    return np.take_along_axis(x, argsort(x, axis, descending), axis)


def top_k(x, k, axis=-1):
    places = np.take(argsort(x, axis, True), range(k), axis)
    return [np.take_along_axis(x, places, axis), places]


for dtype in NUMBERS:
    x = eighths(dtype, 3, 5, low=0, high=2)
    for axis, descending in each([0, -1], [False, True]):
        case("sort", sort, x, axis=axis, descending=descending)
        case("argsort", argsort, x, axis=axis, descending=descending)
    case("top_k", top_k, x, k=2)
    case("top_k", top_k, x, k=2, axis=0)
for x in (tied, nans, deep):
    for descending in (False, True):
        case("sort", sort, x, axis=-1, descending=descending)
        case("argsort", argsort, x, axis=-1, descending=descending)
case("sort", np.sort, np.zeros((2, 0)), axis=-1)
for dtype, right in each(NUMBERS, [False, True]):
    case("searchsorted", lambda a, v, right: np.searchsorted(a, v, "right" if right else "left"), array(dtype, [1, 2, 2, 5]), array(dtype, [[0, 1, 2], [3, 5, 9]]), right=right)
    case("searchsorted", lambda a, v, right: np.searchsorted(a, v, "right" if right else "left"), array("f64", [-np.inf, 0, np.inf]), array("f64", [np.nan, np.inf, -0.0]), right=right)
case("searchsorted", lambda a, v, right: np.stack([np.searchsorted(b, w) for b, w in zip(a, v)]), array("f64", [[0, 1, 2], [5, 6, 7]]), array("f64", [[1.5, -1], [5.5, 9]]), right=False)
for q in (0.0, 0.3, 0.5, 1.0):
    case("quantile", lambda x, q, axis, keepdims: np.quantile(x, q, axis, keepdims=keepdims), x3, q=q, axis=1, keepdims=q == 0.5, within=Within(1, of=4), closed="of an axis of known size")
case("quantile", lambda x, q, axis: np.quantile(x, q, axis), nans[:1], q=0.5, axis=1, closed="of an axis of known size")
case("median", lambda x, axis: np.median(x, axis), x3, axis=2, closed="of an axis of known size")

# ---- So far along an axis


def so_far(f, start):
    def run(x, axis, reverse=False, exclusive=False):
        y = np.flip(x, axis) if reverse else x
        z = f(y, axis=axis, dtype=y.dtype)
        if exclusive:
            first = np.full([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)], start, x.dtype)
            z = np.concatenate([first, np.take(z, range(x.shape[axis] - 1), axis)], axis)
        return np.flip(z, axis) if reverse else z

    return run


def place_of(x, axis, reverse, better):
    """The extreme so far and where it was first met; a NaN wins."""
    rows = np.moveaxis(x, axis, -1)
    places = np.zeros(rows.shape, np.int64)
    for row in np.ndindex(rows.shape[:-1]):
        order = range(rows.shape[-1])[:: -1 if reverse else 1]
        best = order[0]
        for i in order:
            a, b = rows[row][i], rows[row][best]
            if better(a, b) or (a != a and b == b):
                best = i
            places[row][i] = best
    return [np.moveaxis(np.take_along_axis(rows, places, -1), -1, axis), np.moveaxis(places, -1, axis)]


def logcumsumexp(x, axis, reverse=False, exclusive=False):
    return so_far(lambda y, axis, dtype: np.logaddexp.accumulate(y, axis), -np.inf)(x, axis, reverse, exclusive)


for (name, f, start), dtype in each([("cumsum", np.cumsum, 0), ("cumprod", np.cumprod, 1)], NUMBERS):
    x = eighths(dtype, 2, 3, 2, low=-2, high=2)
    for axis, reverse, exclusive in each([0, 1, -1], [False, True], [False, True]):
        case(name, so_far(f, start), x, axis=axis, reverse=reverse, exclusive=exclusive)
case("cumsum", lambda x, axis: np.cumsum(x, axis), bools(2, 3), axis=1)
case("cumsum", np.cumsum, array("f64", [[1, np.nan, 2], [np.inf, -np.inf, 1]]), axis=1)
case("cumsum", np.cumsum, np.zeros((2, 0)), axis=1)
for (name, better), axis, reverse in each([("cummax", lambda a, b: a > b), ("cummin", lambda a, b: a < b)], [0, 1], [False, True]):
    for x in (eighths("f64", 3, 4), draw("i32", 3, 4), tied, nans):
        case(name, lambda x, axis, reverse, better=better: place_of(x, axis, reverse, better), x, axis=axis, reverse=reverse)
for dtype, reverse in each(FLOATS, [False, True]):
    x = draw(dtype, 2, 6)
    case("logcumsumexp", wide(logcumsumexp), x, axis=1, reverse=reverse, exclusive=reverse, within=Within(3, of=4))
    case("logcumsumexp", wide(logcumsumexp), array(dtype, [-np.inf, -np.inf, 1000, -1000, 1000]), axis=0, reverse=reverse, within=Within(2))


def linear_recurrence(a, x, axis, reverse=False):
    a, x = (np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in np.broadcast_arrays(a, x))
    y = [x[0]]
    for i in range(1, len(x)):
        y.append(a[i] * y[-1] + x[i])
    y = np.moveaxis(np.stack(y), 0, axis)
    return np.flip(y, axis) if reverse else y


for dtype, axis, reverse in each(FLOATS, [0, 1], [False, True]):
    case("linear_recurrence", linear_recurrence, eighths(dtype, 3, 4, low=-1, high=1), eighths(dtype, 4, salt=1), axis=axis, reverse=reverse)  # exact
for n, axis in ((0, 0), (1, -1), (2, 1), (3, 2)):
    case("diff", lambda x, n, axis: np.diff(x, n, axis), x3, n=n, axis=axis)

# ---- Statistics

for dtype, axis, correction in each(FLOATS, [None, 0, [0, 2]], [0, 1]):
    x = eighths(dtype, 2, 3, 4)
    case("standard_deviation", wide(lambda x, axis=None, keepdims=False, correction=0: np.std(x, over(axis), keepdims=keepdims, ddof=correction)), x, axis=axis, keepdims=True, correction=correction, within=Within(2, of=2))
    if correction:
        case("variance", wide(lambda x, axis=None, keepdims=False, correction=0: np.var(x, over(axis), keepdims=keepdims, ddof=correction)), x, axis=axis, correction=correction, within=Within(4, of=8))
for order in (1, 2, 3, 0.5, -1, np.inf, -np.inf, 0):
    case("p_norm", wide(lambda x, p, axis: np.linalg.norm(x, float(p), axis)), eighths("f64", 2, 3), p=order if np.isfinite(order) else str(order), axis=1, within=Within(4, of=16))
    case("p_norm", wide(lambda x, p, axis: np.linalg.norm(x, float(p), axis)), array("f64", [[3e200, 4e200], [0, 0]]), p=order if np.isfinite(order) else str(order), axis=1, within=Within(8))
case("count_nonzero", lambda x, axis: np.count_nonzero(x, axis), bools(3, 4), axis=1)
case("count_nonzero", lambda x, axis, keepdims: np.count_nonzero(x, tuple(axis), keepdims=keepdims), array("f64", [[0, np.nan], [-0.0, 2]]), axis=[0, 1], keepdims=True)

# ---- Products

ONE_VALUE = Within(0, of=1)  # of two signs of zero
case("kron", np.kron, eighths("f64", 2, 3), eighths("f64", 3, 2), within=ONE_VALUE)
case("kron", np.kron, eighths("f64", 2), eighths("f64", 3, 2), within=ONE_VALUE)
case("cross", np.cross, eighths("f64", 2, 3), eighths("f64", 2, 3, salt=1), within=ONE_VALUE)
case("cross", np.cross, eighths("f64", 2, 3), eighths("f64", 3, salt=1), within=ONE_VALUE)
case("inner", np.inner, eighths("f64", 2, 3), eighths("f64", 4, 3, salt=1), within=ONE_VALUE)
case("inner", np.inner, eighths("f64", 2, 3), array("f64", 2.0))
for axes in ([[2], [0]], [[1, 2], [1, 0]], [[], []]):
    case("tensordot", lambda a, b, axes: np.tensordot(a, b, axes), eighths("f64", 2, 3, 4), eighths("f64", 4, 3, salt=1) if len(axes[0]) else eighths("f64", 2, salt=1), axes=axes, within=ONE_VALUE)
for equation, *shapes in [
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("i,i,i->", (3,), (3,), (3,)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 2)), ("ij->", (2, 3)),
    ("ab,bc,cd,da->", (2, 3), (3, 2), (2, 2), (2, 2)), ("...ij,...jk", (2, 1, 2, 3), (4, 3, 2)), ("i...->...", (3, 2)), ("iij,jk->k", (2, 2, 3), (3, 2)), ("...,...", (2, 3), (3,)), ("i,j,k->kij", (2,), (3,), (2,)),
]:
    case("einsum", lambda *xs, equation: np.einsum(equation, *xs), *[eighths("f64", *shape, low=-2, high=2, salt=i) for i, shape in enumerate(shapes)], equation=equation, within=ONE_VALUE)
