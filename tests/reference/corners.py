"""Functions on the shapes at the edges: a scalar, a size of 1, no elements, rank 8."""
import numpy as np
from scipy import special

import arrays, draws, elementwise, functions, layers, linalg, losses
from arrays import ONE_VALUE, listed, written
from reductions import softmax
from tables import *

family("corners")

SCALAR, ONE, NONE, DEEP = (), (1,), (0, 3), (1, 2, 1, 2, 1, 2, 1, 2)
SHAPES = [SCALAR, ONE, NONE, DEEP]
AXES = [ONE, NONE, DEEP]  # of what goes along an axis


def of(shape, low=-3, high=3, dtype="f64", salt=0):
    return draw(dtype, *shape, low=low, high=high, salt=salt)


# ---- Elementwise

NEAR = Within(3)
UNARY = {
    "cbrt": np.cbrt, "exp2": np.exp2, "sinh": np.sinh, "cosh": np.cosh, "tan": np.tan, "atan": np.arctan, "asinh": np.arcsinh,
    "elu": functions.elu, "celu": functions.celu, "selu": functions.selu,
    "mish": functions.mish, "gelu_tanh": functions.gelu_tanh, "hard_swish": lambda x: x * functions.hard_sigmoid(x), "hard_sigmoid": functions.hard_sigmoid,
}
for (name, f), shape in each(list(UNARY.items()), SHAPES):
    case(name, wide(f), of(shape, low=-2, high=2), within=lambda x: Within(4, of=np.maximum(np.abs(x), 1)))
for (name, f), shape in each([("erfc", special.erfc), ("erfinv", special.erfinv), ("digamma", special.digamma)], SHAPES):
    case(name, double(f), of(shape, low=0.1, high=0.9), within=Within(8))
for shape in SHAPES:
    case("sinc", wide(functions.sinc), of(shape, low=0.1, high=0.9), within=Within(6))
    case("lgamma", double(special.gammaln), of(shape, low=2.5, high=9), within=Within(8))
    case("polygamma", double(lambda x, n: special.polygamma(n, x)), of(shape, low=0.5, high=5), n=1, within=Within(8))
    case("leaky_relu", functions.leaky_relu, of(shape))
    case("bitwise_not", np.invert, of(shape, dtype="i64"))
    case("nan_to_num", np.nan_to_num, of(shape))
    case("lerp", lambda a, b, t: (1 - t) * a + t * b, eighths("f64", *shape), eighths("f64", *shape, salt=1), array("f64", 0.25))
    case("clamp", np.clip, of(shape), array("f64", -1), array("f64", 1))
    case("clip", elementwise.clip, of(shape), array("f64", -1), array("f64", 1))
    case("where", np.where, bools(*shape), of(shape), of(shape, salt=1))
    case("is_close", np.isclose, of(shape), of(shape))
    case("all_close", lambda a, b: np.asarray(np.allclose(a, b)), of(shape), of(shape))
    case("stop_gradient", lambda x: x, of(shape))
    case("prevent_gradient", lambda x: x, of(shape))
    case("cast", elementwise.cast, of(shape), dtype="i32")
    case("operator-", np.negative, of(shape))
    case("operator+", np.positive, of(shape))
    case("operator!", np.logical_not, bools(*shape))
    case("logical_not", np.logical_not, bools(*shape))
BINARY = {
    "trunc_div": functions.trunc_div, "fmod": functions.fmod, "squared_difference": lambda a, b: np.square(a - b), "copysign": np.copysign, "heaviside": np.heaviside,
    "atan2": wide(np.arctan2), "hypot": wide(np.hypot), "logaddexp": wide(np.logaddexp), "xlogy": wide(lambda x, y: x * np.log(y)), "xlog1py": wide(lambda x, y: x * np.log1p(y)),
}
INTEGER_BINARY = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift, "right_shift": np.right_shift}
LOGIC = elementwise.LOGIC | {"logical_xor": np.logical_xor}
for (a, b) in elementwise.SHAPES + [(shape, shape) for shape in SHAPES]:
    for name, f in BINARY.items():
        case(name, f, of(a, low=0.2), of(b, low=0.2, salt=1), within=lambda x, y: Within(4, of=np.maximum(*np.broadcast_arrays(x, y))))
    for name, f in INTEGER_BINARY.items():
        case(name, f, of(a, low=0, high=9, dtype="i64"), of(b, low=0, high=9, dtype="i64", salt=1))
    for name, f in LOGIC.items():
        case(name, f, bools(*a), bools(*b, salt=1))
    for sign, f in elementwise.OPERATORS.items():
        if "=" not in sign or sign in ("==", "!=", "<=", ">=") or np.broadcast_shapes(a, b) == a:
            case(f"operator{sign}", f, of(a, low=0.2), of(b, low=0.2, salt=1))

# ---- Arrays

for shape in SHAPES:
    x = eighths("f64", *shape)
    case("flatten", np.ravel, x)
    case("flip", np.flip, x)
    case("tile", listed(np.tile), x, reps=[2])
    case("count_nonzero", lambda x: np.asarray(np.count_nonzero(x)), x)
    case("standard_deviation", wide(lambda x: np.std(x)), x, within=Within(2, of=2))
    case("variance", wide(lambda x: np.var(x)), x, within=Within(2, of=4))
    case("put_along_axis", arrays.put_along_axis, x if shape else x[None], np.zeros(shape or ONE, np.int64), (x if shape else x[None]) + 1, axis=-1, mode="add")
    case("zeros", np.zeros(shape), shape=list(shape), dtype="f64")
    case("ones", np.ones(shape), shape=list(shape), dtype="f64")
    case("full", lambda x, shape: np.full(shape, x), array("f64", 1.5), shape=list(shape))
    case("reshape", lambda x, shape: np.reshape(x, shape), x, shape=[-1])
    case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), x, shape=list(shape))
    if len(shape) < 8:
        case("expand_dims", np.expand_dims, x, axis=-1)
        case("stack", lambda *xs, axis: np.stack(xs, axis), x, x, axis=0)
for shape in AXES:
    x, last = eighths("f64", *shape), shape[-1]
    case("roll", lambda x, shift, axis: np.roll(x, shift, axis), x, shift=[1], axis=[-1])
    case("repeat", np.repeat, x, repeats=2, axis=-1)
    case("unstack", lambda x, axis: list(np.moveaxis(x, axis, 0)), x, axis=-1, closed="is known when the function runs" if last != 1 else None)
    case("split", lambda x, parts, axis: np.split(x, parts, axis), x, parts=last, axis=-1)
    case("concat", lambda *xs, axis: np.concatenate(xs, axis), x, x, axis=-1)
    case("index", lambda x, i, axis: np.take(x, i, axis), x, i=-1, axis=-1)
    case("operator[]", lambda x, indices: x[..., -1], x, indices=["...", -1])
    case("slice", lambda x, starts, limits: x[(slice(None),) * (x.ndim - 1) + (slice(0, 1),)], x, starts=[0] * len(shape), limits=list(shape[:-1]) + [1])
    case("shape_check", lambda x, shape: x, x, shape=list(shape))
    case("swapaxes", np.swapaxes, x, axis1=0, axis2=-1)
    case("moveaxis", listed(np.moveaxis), x, source=[0], destination=[-1])
    case("diff", lambda x, n, axis: np.diff(x, n, axis), x, n=1, axis=-1)
    case("take", lambda x, i, axis: np.take(x, i, axis), x, array("i64", [0]), axis=-1)
    case("take", lambda x, i, axis: np.take(x, i, axis), x, array("i64", []), axis=-1)
    case("take_along_axis", lambda x, i, axis: np.take_along_axis(x, i, axis), x, np.zeros(shape, np.int64), axis=-1)
    case("sort", arrays.sort, x, axis=-1)
    case("argsort", arrays.argsort, x, axis=-1)
    for k in (1, last):
        case("top_k", lambda x, k: [-np.sort(-x)[..., :k], np.argsort(-x, kind="stable")[..., :k]], x, k=k)
    case("median", lambda x, axis: np.median(x, axis), x, axis=-1, closed="of an axis of known size" if last != 1 else None)
    case("quantile", lambda x, q, axis: np.quantile(x, q, axis), x, q=0.5, axis=-1, closed="of an axis of known size" if last != 1 else None)
    case("p_norm", wide(lambda x, p, axis: np.linalg.norm(x, p, axis)), x, p=1, axis=-1, within=Within(2))
    case("softmax", wide(softmax), x, axis=-1, within=Within(3))
    case("argmax", lambda x, axis: np.argmax(x, axis), x, axis=-1)
    case("reduce_any", lambda x, axis: np.any(x, axis), x > 0, axis=-1)
    case("reduce_all", lambda x, axis: np.all(x, axis), x > 0, axis=-1)
    case("linear_recurrence", arrays.linear_recurrence, eighths("f64", *shape, low=-1, high=1), x, axis=-1)
    for name, f, start in (("cumsum", np.cumsum, 0), ("cumprod", np.cumprod, 1)):
        case(name, arrays.so_far(f, start), x, axis=-1, exclusive=True)
    for name, better in (("cummax", np.greater), ("cummin", np.less)):
        case(name, lambda x, axis, better=better: arrays.place_of(x, axis, False, better), x, axis=-1)
    case("logcumsumexp", wide(arrays.logcumsumexp), x, axis=-1, within=Within(4, of=4))
    if len(shape) < 8:
        case("one_hot", lambda x, depth, dtype: np.eye(depth)[x], np.zeros(shape, np.int64), depth=2, dtype="f64")
for name, f, start in (("cumsum", np.cumsum, 0), ("cumprod", np.cumprod, 1)):
    case(name, arrays.so_far(f, start), np.zeros((0, 2)), axis=0)
for name, better in (("cummax", np.greater), ("cummin", np.less)):
    case(name, lambda x, axis, better=better: [x, np.zeros(x.shape, np.int64)], np.zeros((2, 0)), axis=1)
for shape in ((1, 1), (0, 3), (3, 0), DEEP):
    x = eighths("f64", *shape)
    for name, f in (("tril", np.tril), ("triu", np.triu)):
        case(name, f, x, k=1)
    case("trace", lambda x, k: np.asarray(np.trace(x, k, -2, -1)), x, k=0)
    case("diagonal", lambda x, k: np.diagonal(x, k, -2, -1), x, k=0)
for n in (0, 1):
    case("diag", np.diag, eighths("f64", n))
    case("meshgrid", lambda *xs, xy: list(np.meshgrid(*xs, indexing="xy" if xy else "ij")), eighths("f64", n), eighths("f64", 3), xy=False)
    case("outer", np.outer, eighths("f64", n), eighths("f64", 3, salt=1), within=ONE_VALUE)
    case("dot", np.dot, eighths("f64", n), eighths("f64", n, salt=1), within=ONE_VALUE)
    case("bincount", lambda x, length: np.bincount(x, minlength=length), draw("i64", n, low=0, high=2), length=3)
    case("arange", np.arange(n), start=0, stop=n, step=1, dtype="i64")
    case("linspace", np.linspace(0, 1, n), start=0.0, stop=1.0, count=n, dtype="f64")
    case("eye", np.eye(n), rows=n, dtype="f64")
case("bincount", np.array([0, 0, 1]), array("i64", 2), length=3)
for index in (array("i64", 5), array("i64", [5]), array("i64", [], (0, 2)), draw("i64", *DEEP, low=0, high=5)):
    case("unravel_index", lambda i, shape: [np.asarray(y) for y in np.unravel_index(i, shape)], index, shape=[2, 3])
    case("ravel_index", lambda a, b, shape: np.asarray(np.ravel_multi_index((a, b), shape)), index % 2, index % 3, shape=[2, 3])
for mode, widths in (("reflect", [[0, 0]] * 7 + [[1, 1]]), ("edge", [[1, 0]] * 8), ("wrap", [[0, 1]] + [[0, 0]] * 7), ("symmetric", [[1, 1]] + [[0, 0]] * 7)):
    case("pad", lambda x, widths, mode: np.pad(x, widths, mode), eighths("f64", *DEEP), widths=widths, mode=mode)
case("pad", lambda x, widths, mode: np.pad(x, widths, mode), eighths("f64", 1), widths=[[2, 1]], mode="edge")
case("pad", lambda x, widths, mode: np.pad(x, widths, mode), np.zeros((0, 2)), widths=[[0, 0], [1, 1]], mode="edge")
case("pad", lambda x, widths, value: np.pad(x, widths, constant_values=value), eighths("f64", *DEEP), widths=[[1, 0]] + [[0, 0]] * 6 + [[0, 2]], value=7.0)
deep, rows = eighths("f64", *DEEP), eighths("f64", 1, 3)
case("dynamic_slice", lambda x, s, shape: x[arrays.starts_in(x, s, shape)], deep, array("i64", [0, 1, 0, 0, 0, 1, 0, 5]), shape=[1, 1, 1, 2, 1, 1, 1, 1])
case("dynamic_slice", lambda x, s, shape: x, array("f64", 2.5), array("i64", []), shape=[])
case("dynamic_slice", lambda x, s, shape: x[arrays.starts_in(x, s, shape)], rows, array("i64", [0, 2]), shape=[0, 2])
case("dynamic_update_slice", arrays.dynamic_update_slice, deep, eighths("f64", 1, 1, 1, 2, 1, 1, 1, 1, salt=1), array("i64", [0, 1, 0, 0, 0, 1, 0, 5]))
case("dynamic_update_slice", lambda x, u, s: u, array("f64", 2.5), array("f64", -1), array("i64", []))
case("dynamic_update_slice", lambda x, u, s: x, rows, np.zeros((0, 2)), array("i64", [0, 2]))
case("slice_update", arrays.slice_update, deep, eighths("f64", 1, 1, 1, 2, 1, 1, 1, 1, salt=1), starts=[0, 1, 0, 0, 0, 1, 0, 1], closed="is open")
case("slice_update", lambda x, u, starts: x, rows, np.zeros((0, 2)), starts=[0, 1], closed="is open")
case("slice_update", lambda x, u, starts: u, array("f64", 2.5), array("f64", -1), starts=[])
case("gather_nd", lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], deep, array("i64", [[0, 1, 0, 1], [0, 0, 0, 0]]), closed="of known size")
case("gather_nd", lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], rows, array("i64", [], (0, 2)), closed="of known size")
case("gather_nd", lambda x, i: x[0], rows, array("i64", [0]))
for how in ("set", "add", "max", "min"):
    run = lambda x, u, i, how=how: written(x, i, u, how)
    case(f"index_{how}", run, eighths("f64", 4), array("f64", 9.0), array("i64", 2))
    case(f"index_{how}", run, eighths("f64", 4, 2), np.zeros((0, 2)), array("i64", []))
    case(f"index_{how}", run, eighths("f64", 1, 1), eighths("f64", 1, 1, salt=1), array("i64", [0]))
    case(f"index_{how}", run, deep, eighths("f64", 3, *DEEP[1:], salt=1), array("i64", [0, 0, 0]))
for mode in ("set", "add"):
    case("scatter_nd_update", lambda x, i, u, mode: x, rows, array("i64", [], (0, 2)), array("f64", []), mode=mode, closed="of known size")
    case("scatter_nd_update", lambda x, i, u, mode: written(x.reshape(4, 4), i @ np.array([2, 2, 2, 1]), u.reshape(-1, 4), mode).reshape(DEEP), deep, array("i64", [[0, 1, 0, 1]]), eighths("f64", 1, 1, 2, 1, 2, salt=1), mode=mode, closed="of known size")
case("scatter_nd", lambda i, u, shape: np.zeros(shape), array("i64", [], (0, 2)), array("f64", []), shape=[2, 3], closed="of known size")
case("scatter_nd", lambda i, u, shape: np.array([0, 1.5]), array("i64", [[1]]), array("f64", [1.5]), shape=[2])
for (name, how, start), n in each([("sum", np.add, lambda d: 0), ("max", np.maximum, arrays.least), ("min", np.minimum, arrays.most)], (0, 1)):
    case(f"segment_{name}", arrays.segment(how, start), eighths("f64", n, 2), array("i64", [1] * n), count=3)
    case(f"segment_{name}", arrays.segment(how, start), eighths("f64", 2, *DEEP[1:]), array("i64", [1, 1]), count=n + 2)
case("segment_mean", lambda x, ids, count: np.zeros((count, 2)), np.zeros((0, 2)), array("i64", []), count=3)
case("segment_mean", lambda x, ids, count: np.stack([np.zeros(x.shape[1:]), x[0]]), eighths("f64", 1, *DEEP[1:]), array("i64", [1]), count=2)
for shape in (ONE, NONE, DEEP):
    x = eighths("f64", *shape)
    case("boolean_mask", lambda x, mask, bound: arrays.found(x[mask], bound), x, bools(*shape), bound=2)
    case("nonzero", lambda x, bound: arrays.found(np.argwhere(x), bound), x, bound=2, closed="x has open sizes" if shape != ONE else None)
for right in (False, True):
    f = lambda a, v, right: np.asarray(np.searchsorted(a, v, "right" if right else "left"))
    case("searchsorted", f, array("f64", [2.0]), array("f64", [[1, 2, 3]]), right=right)
    case("searchsorted", f, array("f64", []), array("f64", [1, 2]), right=right)
    case("searchsorted", f, array("f64", [1, 2, 4]), array("f64", []), right=right)
    case("searchsorted", f, array("f64", [1, 2, 4]), of(DEEP, low=0, high=5), right=right)

# ---- Products

for a, b in [((1, 0), (0, 1)), ((1, 1), (1, 1)), ((0, 2), (2, 3)), ((1, 2, 1, 1, 1, 2, 2, 3), (2, 1, 3, 2))]:
    case("matmul", np.matmul, eighths("f64", *a), eighths("f64", *b, salt=1), within=ONE_VALUE)
for a, b, axes in [((2, 0), (0, 3), [[1], [0]]), ((), (), [[], []]), ((1,), (1,), [[0], [0]]), ((1, 2, 1, 2, 3), (3, 1, 2, 1), [[4], [0]])]:
    case("tensordot", lambda a, b, axes: np.tensordot(a, b, axes), eighths("f64", *a), eighths("f64", *b, salt=1), axes=axes, within=ONE_VALUE)
for equation, *shapes in [(",->", (), ()), ("i,i->", (0,), (0,)), ("ij,jk->ik", (1, 1), (1, 1)), ("abcdefgh->hgfedcba", DEEP), ("abcdefgi,i->abcdefg", DEEP, (2,)), ("ij->", (0, 3))]:
    case("einsum", lambda *xs, equation: np.asarray(np.einsum(equation, *xs)), *[eighths("f64", *shape, salt=i) for i, shape in enumerate(shapes)], equation=equation, within=ONE_VALUE)
case("inner", np.inner, np.zeros((2, 0)), np.zeros((3, 0)), within=ONE_VALUE)
case("inner", np.inner, eighths("f64", 1), eighths("f64", 1, salt=1), within=ONE_VALUE)
case("inner", np.inner, eighths("f64", 1, 2, 1, 2, 1, 2, 2), eighths("f64", 3, 2, salt=1), within=ONE_VALUE)
case("kron", np.kron, eighths("f64", 1, 1), eighths("f64", 2, 3, salt=1), within=ONE_VALUE)
case("kron", np.kron, np.zeros((0, 2)), eighths("f64", 2, 3, salt=1), within=ONE_VALUE)
case("cross", np.cross, eighths("f64", 1, 3), eighths("f64", 2, 3, salt=1), within=ONE_VALUE)
case("cross", np.cross, np.zeros((0, 3)), np.zeros((0, 3)), within=ONE_VALUE)
case("cross", np.cross, eighths("f64", 1, 2, 1, 2, 1, 1, 1, 3), eighths("f64", 2, 1, 3, salt=1), within=ONE_VALUE)

# ---- Linear algebra

BATCH = (1, 2, 1, 1, 1, 1)  # rank 8 with a matrix
in_double, spread = linalg.in_double, linalg.spread
det, slogdet = in_double(np.linalg.det), in_double(lambda a: tuple(np.linalg.slogdet(a)))
for shape in (BATCH + (2, 2), (1, 1), (0, 0), (0, 2, 2)):
    s, a = linalg.symmetric("f64", *shape), linalg.regular("f64", *shape)
    b = eighths("f64", *shape[:-1], 1, salt=1)
    case("linalg::cholesky", in_double(np.linalg.cholesky), s, within=spread(1, 8))
    case("linalg::eigvalsh", in_double(np.linalg.eigvalsh), s, within=spread(4, 16))
    case("linalg::svdvals", in_double(lambda a: np.linalg.svd(a, compute_uv=False)), a, within=spread(4, 16))
    case("linalg::qr", in_double(lambda a: tuple(np.linalg.qr(a))), a, within=spread(2, 8))
    case("linalg::inv", in_double(np.linalg.inv), a, within=spread(2, 1))
    case("linalg::solve", in_double(np.linalg.solve), a, b, within=spread(2, 1))
    case("linalg::cholesky_solve", in_double(lambda l, b: np.linalg.solve(l @ np.swapaxes(l, -1, -2), b)), np.linalg.cholesky(s), b, within=spread(2, 1))
    case("linalg::det", det, a, within=spread(1, 512))
    case("linalg::slogdet", slogdet, a, within=spread(2, 8))
    case("linalg::matrix_power", in_double(np.linalg.matrix_power), a, n=3, within=spread(4, 512))
    if 0 not in shape[-2:]:
        case("linalg::eigh", in_double(linalg.eigh), s, within=spread(6, 16))
        case("linalg::svd", in_double(linalg.svd), a, within=spread(6, 16))
        case("linalg::pinv", in_double(np.linalg.pinv), a, within=spread(1, 1))
        case("linalg::matrix_rank", in_double(np.linalg.matrix_rank), a)
        case("linalg::lstsq", in_double(lambda a, b: np.linalg.solve(a, b)), a, b, within=spread(4, 1))
        for norm, numpys in (("frobenius", "fro"), ("nuclear", "nuc"), ("spectral", 2)):
            case("linalg::matrix_norm", in_double(lambda a, norm, of=numpys: np.linalg.norm(a, of, (-2, -1))), a, norm=norm, within=spread(2, 16))
for shape in ((1, 1), BATCH + (2, 2)):
    a = linalg.regular("f64", *shape)
    p, l, u = (np.stack(parts).reshape(shape[:-2] + parts[0].shape) for parts in zip(*[linalg.lu(m) for m in a.reshape(-1, *shape[-2:])]))
    case("linalg::lu", [p.astype(np.int64), l, u], a, within=spread(1, 16))
    case("triangular_solve", lambda a, b: np.linalg.solve(np.tril(a), b), a, eighths("f64", *shape, salt=1), within=spread(2, 1))

# ---- Losses and layers

for shape, reduction in each(SHAPES, ["none", "sum"]):
    p, t, close = of(shape), of(shape, salt=1), Within(4, of=64)
    case("nn::mean_absolute_error", layers.reduced(lambda a, b: np.abs(a - b)), p, t, reduction=reduction, within=close)
    case("nn::huber", layers.reduced(layers.huber), p, t, reduction=reduction, within=close)
    case("nn::log_cosh", layers.reduced(layers.log_cosh), p, t, reduction=reduction, within=close)
    case("nn::poisson", layers.reduced(layers.poisson), p, t, log_rate=True, reduction=reduction, within=close)
    case("nn::hinge", layers.reduced(lambda s, y: np.maximum(0, 1 - y * s)), p, np.sign(t), reduction=reduction, within=close)
    case("nn::squared_hinge", layers.reduced(lambda s, y: np.maximum(0, 1 - y * s) ** 2), p, np.sign(t), reduction=reduction, within=close)
    case("nn::binary_cross_entropy", layers.reduced(layers.binary_cross_entropy), of(shape, low=0.1, high=0.9), of(shape, low=0, high=1, salt=1), reduction=reduction, within=close)
    if shape:
        q = np.abs(p) + 0.5
        case("nn::kl_divergence", layers.reduced(layers.kl_divergence), q, q[..., ::-1].copy(), reduction=reduction, within=close)
        case("nn::cosine_similarity_loss", layers.reduced(lambda a, b: 1 - layers.cosine_similarity(a, b)), p, t, reduction=reduction, within=close)
        labels = np.zeros(shape[:-1], np.int64)
        closed = "have no last axis of static size" if shape[-1] != 1 else None
        case("nn::cross_entropy", layers.smoothed_cross_entropy, p, labels, reduction=reduction, within=close, closed=closed)
        logs = np.log(softmax(p))
        case("nn::nll", layers.reduced(lambda l, y: -l[..., 0]), logs, labels, reduction=reduction, within=close, closed=closed)
for shape in SHAPES:
    case("mean_squared_error", losses.mean_squared_error, of(shape), of(shape, salt=1), within=Within(2))
    sigmoid = np.asarray(0.0) if 0 in shape else wide(losses.sigmoid_cross_entropy)  # of nothing the losses of nn are 0
    case("nn::sigmoid_cross_entropy", sigmoid, of(shape), of(shape, low=0, high=1, salt=1), within=Within(4, of=8))
case("nn::cosine_similarity", wide(layers.cosine_similarity), of(DEEP), of(DEEP, salt=1), axis=-1, within=Within(1, of=1))
case("nn::cosine_similarity", wide(layers.cosine_similarity), of((0, 3)), of((0, 3)), axis=-1)
case("nn::cosine_similarity", wide(layers.cosine_similarity), of((3, 1)), of((3, 1), salt=1), axis=-1, within=Within(1, of=1))
for shape in ((1, 4), (0, 4), (3, 1), (1, 2, 1, 2, 1, 2, 1, 4)):
    x, w, b, near = of(shape), of(shape[-1:], low=0.5), of(shape[-1:], salt=1), Within(4, of=4)
    closed = "has no last axis of static size" if shape[-1] != 1 else None
    case("nn::layer_norm", wide(layers.layer_norm), x, w, b, within=near)
    case("nn::rms_norm", wide(layers.rms_norm), x, w, b, within=near)
    if len(shape) < 8:  # of rank 8 it would be of groups of rank 9
        case("nn::group_norm", wide(layers.group_norm), x, w, b, groups=1, within=near, closed=closed)
    case("nn::batch_norm", layers.each_wide(layers.batch_norm), x, w, b, within=Within(4, of=8), closed=closed)
for q, k, v in [((1, 4), (1, 4), (1, 2)), ((0, 4), (3, 4), (3, 2)), ((1, 2, 1, 1, 1, 1, 3, 4), (1, 2, 1, 1, 1, 1, 5, 4), (1, 2, 1, 1, 1, 1, 5, 2))]:
    case("nn::attention", wide(layers.attention), of(q), of(k, salt=1), of(v, salt=2), within=Within(4, of=4), closed=layers.SIZE)
    case("nn::attention_weights", wide(layers.weights_of), of(q), of(k, salt=1), within=Within(2, of=1), closed=layers.SIZE)

# ---- Draws

key = array("i64", [3, 1])
for shape in SHAPES:
    options = {"shape": list(shape), "dtype": "f64"}
    case("random_truncated_normal", draws.truncated_normal, key, **options, within=Within(2, of=4))
    case("random_exponential", draws.exponential, key, **options, within=Within(2))
    case("random_gumbel", draws.gumbel, key, **options, within=Within(4, of=2))
    case("random_laplace", draws.laplace, key, **options, within=Within(2))
    case("random_uniform", lambda key, shape, dtype, low, high: draws.uniform(key, shape, dtype), key, shape=list(shape), dtype="f64", low=0.0, high=1.0)
    case("random_integers", draws.integers, key, shape=list(shape), low=0, high=9, dtype="i64")
    case("random_bernoulli", lambda key, p, shape: draws.uniform(key, shape, "f64") < p, key, array("f64", 0.5), shape=list(shape))
    if shape:
        case("random_categorical", lambda key, x: np.asarray(np.argmax(x + draws.gumbel(key, x.shape, dtype="f64"), -1)), key, of(shape))
        case("random_shuffle", lambda key, x, axis: np.take(x, draws.permutation(key, x.shape[axis]), axis), key, of(shape), axis=-1)
for n in (0, 1):
    case("random_permutation", draws.permutation, key, count=n)
