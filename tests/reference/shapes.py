"""Tensors made of numbers; the same elements in other places; rows by index."""
import numpy as np

from tables import *

family("shapes")

# ---- Creation


def linspace(start, stop, count, dtype):
    return (np.linspace(np.longdouble(start), np.longdouble(stop), count)).astype(DTYPES[dtype])


for dtype, shape in each(ALL, [[2, 3], [], [0, 2]]):
    case("zeros", np.zeros(shape, DTYPES[dtype]), shape=shape, dtype=dtype)
    case("ones", np.ones(shape, DTYPES[dtype]), shape=shape, dtype=dtype)
for shape in ([1] * 7 + [2], [3]):
    case("zeros", np.zeros(shape, np.float32), shape=shape, dtype="f32")
# A float for an integer dtype is cast: toward zero, saturating.
for dtype, value, wanted in [("f64", 0.1, 0.1), ("f32", 0.1, 0.1), ("i32", -2.9, -2), ("i32", 1e10, 2**31 - 1), ("i64", 1e30, 2**63 - 1), ("u8", -1.5, 0), ("u8", 300.5, 255), ("bool", 0.5, True)]:
    case("full", np.full((2, 2), wanted, DTYPES[dtype]), shape=[2, 2], value=value, dtype=dtype)
for dtype in ALL:
    case("full", lambda x, shape: np.full(shape, x), array(dtype, 1), shape=[3, 2])
for dtype, (start, stop, step) in each(("f64", "f32", "i64", "i32"), [(0, 5, 1), (3, 12, 4), (5, -6, -3), (2, 2, 1), (4, 1, 1), (-3, 3, 7)]):
    case("arange", np.arange(start, stop, step).astype(DTYPES[dtype]), start=start, stop=stop, step=step, dtype=dtype)
case("arange", np.arange(250, 256).astype(np.uint8), start=250, stop=256, step=1, dtype="u8")
case("arange", np.array([2**63 - 5, 2**63 - 3]), start=2**63 - 5, stop=2**63 - 2, step=2, dtype="i64")
for dtype, (start, stop, count) in each(FLOATS, [(-1, 1, 7), (0, 1, 5), (3, -2, 4), (2.5, 2.5, 3), (1, 9, 1), (0, 1, 0), (0.1, 0.7, 10)]):
    # start + i step, whose product rounds once, and the step as well.
    case("linspace", linspace, start=start, stop=stop, count=count, dtype=dtype, within=Within(2, of=max(abs(start), abs(stop))))
for dtype, (rows, columns) in each(ALL, [(3, None), (2, 4), (4, 2), (0, 3), (1, 1)]):
    case("eye", np.eye(rows, columns, dtype=DTYPES[dtype]), rows=rows, **({"columns": columns} if columns else {}), dtype=dtype)

# ---- The same elements


def slices(x, starts, limits, strides=None):
    strides = strides or [1] * len(starts)
    return x[tuple(slice(*places) for places in zip(starts, limits, strides))]


def pad(x, widths, value=0):
    return np.pad(x, widths, constant_values=np.array(value).astype(x.dtype))


for dtype in ALL:
    x = bools(2, 3, 4) if dtype == "bool" else eighths(dtype, 2, 3, 4)
    case("transpose", np.transpose, x)
    case("reshape", lambda x, shape: np.reshape(x, shape), x, shape=[-1, 6])
    case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), x[:, :1], shape=[3, 2, 2, 4])
    case("slice", slices, x, starts=[0, -2, 1], limits=[2, 3, -1], strides=[1, 1, 2])
    case("pad", pad, x[:, 0], widths=[[1, 0], [0, 2]])
    case("pad", pad, x[:, 0], widths=[[1, 0], [0, 2]], value=1 if dtype == "bool" else 7)
    case("concat", lambda *xs, axis: np.concatenate(xs, axis), x, x[:, :2], x[:, :0], axis=1)
    case("stack", lambda *xs, axis: np.stack(xs, axis), x[0], x[1], axis=-1)
    case("index", lambda x, i, axis: np.take(x, i, axis), x, i=-1, axis=1)

x = eighths("f64", 2, 3, 4)
deep = eighths("f64", 1, 2, 1, 2, 1, 2, 1, 2)
for permutation in ([0, 1, 2], [1, 0, 2], [2, 0, 1], [-1, 0, 1]):
    case("transpose", lambda x, permutation: np.transpose(x, permutation), x, permutation=permutation)
case("transpose", np.transpose, deep)
case("transpose", lambda x, permutation: np.transpose(x, permutation), deep, permutation=[7, 5, 3, 1, 6, 4, 2, 0])
case("transpose", np.transpose, np.zeros((0, 2)))
case("transpose", np.transpose, array("f64", 2))
for operand, shape in [(x, [4, 6]), (x, [24]), (x, [2, -1, 2, 1]), (array("f64", 3), [1, 1]), (array("f64", [[3]]), []), (np.zeros((0, 3)), [3, 0, 2]), (deep, [4, 4]), (x, [1, 2, 1, 3, 1, 4, 1, 1])]:
    case("reshape", lambda x, shape: np.reshape(x, shape), operand, shape=shape)
for operand, shape in [(array("f64", 3), [2, 2]), (x[0, 0], [2, 4]), (x[:, :, :1], [2, 3, 4]), (np.zeros((0, 1)), [0, 3]), (array("f64", [[1]]), [0, 3]), (array("f64", 3), []), (x[0, :, :1], [1, 2, 1, 1, 1, 1, 3, 2])]:
    case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), operand, shape=shape)
for axis in (0, 1, 3, -1, -4):
    case("expand_dims", np.expand_dims, x, axis=axis)
case("expand_dims", np.expand_dims, array("f64", 3), axis=0)
for operand, axis in [(x[:, :1], 1), (x[:1, :, :1], [0, 2]), (x[:1, :, :1], [-1]), (array("f64", [[3]]), [0, 1]), (np.zeros((0, 1)), 1), (x, [])]:
    case("squeeze", lambda x, axis: np.squeeze(x, tuple(axis) if isinstance(axis, list) else axis), operand, axis=axis)
for operand in (x[:1, :, :1], deep, array("f64", 3)):
    case("squeeze", np.squeeze, operand)
for starts, limits, strides in [([1], [2], None), ([0, 1], [2, 3], [1, 2]), ([-1], [99], None), ([-99, 2], [1, 1], None), ([2], [2], None), ([0, 0, 0], [2, 3, 4], [2, 2, 3]), ([0, 0, -3], [2, -1, -1], None)]:
    case("slice", slices, x, starts=starts, limits=limits, **({"strides": strides} if strides else {}))
case("slice", slices, deep, starts=[0, 1, 0, 0, 0, 1], limits=[1, 2, 1, 2, 1, 2])
case("slice", slices, np.zeros((0, 2)), starts=[0, 1], limits=[3, 2])
for i, axis in [(0, 0), (-2, 0), (2, 1), (3, -1), (-4, 2)]:
    case("index", lambda x, i, axis: np.take(x, i, axis), x, i=i, axis=axis)


def indexed(x, indices):
    words = {"newaxis": np.newaxis, "...": Ellipsis}
    return x[tuple(slice(*place) if isinstance(place, list) else words.get(place, place) for place in indices)]


for indices in [[1], [-1, 2], [1, -1, 0], [[0, 1, 1], 1], ["...", 2], ["newaxis", 0, "...", "newaxis"], [[None, None, 2], [-2, None, 1]], [0, [2, 1, 1]], [[-9, 9, 1], "...", [None, -1, 3]], ["..."], []]:
    case("operator[]", indexed, x, indices=indices)
case("operator[]", indexed, deep, indices=[0, "...", [1, None, 1]])
case("operator[]", indexed, np.zeros((0, 2)), indices=["...", 1])
for axis in (0, 1, 2, -1):
    case("concat", lambda *xs, axis: np.concatenate(xs, axis), x, x, axis=axis)
case("concat", lambda *xs, axis: np.concatenate(xs, axis), x, axis=0)
case("concat", lambda *xs, axis: np.concatenate(xs, axis), np.zeros((0, 2)), np.zeros((0, 2)), axis=0)
for axis in (0, 1, 2, -2):
    case("stack", lambda *xs, axis: np.stack(xs, axis), x[0], x[1], x[0], axis=axis)
case("stack", lambda *xs, axis: np.stack(xs, axis), array("f64", 1), array("f64", 2), axis=0)
for parts, axis in [(2, 0), (3, 1), (2, -1), (4, 2), (1, 0)]:
    case("split", lambda x, parts, axis: np.split(x, parts, axis), x, parts=parts, axis=axis)
for widths, value in [([[0, 0], [1, 2], [3, 0]], 0.1), ([[2, 2], [0, 0], [0, 0]], -np.inf), ([[0, 0], [0, 0], [0, 0]], 1)]:
    case("pad", pad, x, widths=widths, value=value if np.isfinite(value) else "-inf")
case("pad", pad, x[0], widths=[[1, 0], [0, 1]], value=-0.0)
case("pad", lambda x, widths: x, array("f64", 3), widths=[])
case("pad", pad, np.zeros((0, 2)), widths=[[1, 1], [0, 1]], value=7)
case("shape_check", lambda x, shape: x, x, shape=[-1, 3, -1])

# ---- Rows by index


def one_hot(x, depth, dtype="f32"):
    """A row of zeros for an index outside."""
    return (x[..., None] == np.arange(depth)).astype(DTYPES[dtype])


def gather(x, indices, batch_dims=0):
    """x[indices], and of a batch each place's own; an index outside is an error."""
    if batch_dims == 0:
        return x[indices]
    return np.stack([gather(row, places, batch_dims - 1) for row, places in zip(x, indices)])


for dtype, to in each(INTEGERS, ALL):
    case("one_hot", one_hot, array(dtype, [[0, 2, 1], [3, 7, 2]]), depth=4, dtype=to)
case("one_hot", one_hot, array("i64", [-1, 0, 2**62]), depth=3)
case("one_hot", one_hot, array("i32", 1), depth=2)
case("one_hot", one_hot, array("i32", [], (0, 2)), depth=2)
case("one_hot", one_hot, array("i32", [1]), depth=0)
for dtype, index in each(ALL, ("i64", "i32", "u8")):
    case("gather", gather, bools(4, 2) if dtype == "bool" else eighths(dtype, 4, 2), array(index, [3, 0, 3, 1]))
for places in ([[0, 1], [1, 1], [1, 0]], 1, []):
    case("gather", gather, x, array("i64", places))
case("gather", gather, np.zeros((3, 0)), array("i64", [2, 0]))
case("gather", gather, x, array("i64", [[2, 0], [1, 1]]), batch_dims=1)
case("gather", gather, x, array("i32", [[[3], [0], [1]], [[2], [2], [0]]]), batch_dims=2)
case("gather", gather, deep, array("i64", [[1]]), batch_dims=1)
