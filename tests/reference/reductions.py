"""Reductions, places of extremes, and what is composed of them."""
import numpy as np

from tables import *

family("reductions")

AXES = [EVERY_AXIS, 0, -1, [0, 2], [-2], []]


def over(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


# The result has the dtype of the operand, and integers wrap: NumPy's sums of narrow integers are wide. Of no elements the extremes are the infinities, or the ends of an
# integer's range: an error in NumPy.
REDUCTIONS = {
    "reduce_sum": lambda x, axis=None, keepdims=False: np.sum(x, over(axis), dtype=x.dtype, keepdims=keepdims),
    "reduce_prod": lambda x, axis=None, keepdims=False: np.prod(x, over(axis), dtype=x.dtype, keepdims=keepdims),
    "reduce_max": lambda x, axis=None, keepdims=False: np.max(x, over(axis), keepdims=keepdims, initial=lowest(x.dtype)),
    "reduce_min": lambda x, axis=None, keepdims=False: np.min(x, over(axis), keepdims=keepdims, initial=highest(x.dtype)),
}
LOGIC = {
    "reduce_any": lambda x, axis=None, keepdims=False: np.any(x, over(axis), keepdims=keepdims),
    "reduce_all": lambda x, axis=None, keepdims=False: np.all(x, over(axis), keepdims=keepdims),
}


def operands(dtype, low=-4, high=4):
    """Rank 0, rank 3, empty axes, axes of size 1, rank 8; each with the axes to reduce."""
    yield from each([eighths(dtype, 2, 3, 4, low=low, high=high)], AXES if dtype == "f64" else [EVERY_AXIS, 0, -1, [0, 2]])
    if dtype != "f64":
        return
    yield eighths(dtype, low=low, high=high), EVERY_AXIS
    yield from each([eighths(dtype, 2, 0, 3)], [EVERY_AXIS, 1, 0, -1])
    yield from each([eighths(dtype, 3, 1, 2, low=low, high=high)], [1, [1, 2]])
    yield eighths(dtype, 1, 2, 1, 2, 1, 2, 1, 2, low=low, high=high), [1, -1]


for (name, f), dtype in each(list(REDUCTIONS.items()), ("f64", "f32", "i64")):
    # Products of four of these are exact, of more are not: each factor rounds once, in whatever order.
    few = dtype in FLOATS and name == "reduce_prod"
    for x, axis in operands(dtype, *((-2, 2) if few else ())):
        bound = Within(24) if few and axis in (EVERY_AXIS, [0, 2], []) else EXACT
        case(name, f, x, axis=axis, within=bound)
        if x.ndim == 3 and dtype == "f64":
            case(name, f, x, axis=axis, keepdims=True, within=bound)
for (name, f), dtype in each(list(REDUCTIONS.items()), INTEGERS):
    case(name, f, edges(dtype))
    case(name, f, array(dtype, [], (0, 2)), axis=0)
for name, f in LOGIC.items():
    for x, axis in each([bools(2, 3, 4)], AXES):
        case(name, f, x, axis=axis)
    for x in (np.array([[True, True], [True, False], [False, False]]), bools(0, 2), np.ones((3, 0), bool)):
        case(name, f, x, axis=1, keepdims=True)
        case(name, f, x)
NAN, INF = np.nan, np.inf
for dtype in FLOATS:
    x = array(dtype, [[1, NAN, 2], [INF, -INF, 0], [-0.0, -1, -2], [INF, INF, 1], [-INF, -INF, -INF]])
    for name, f in REDUCTIONS.items():
        case(name, f, x, axis=1)
    for name, zeros in (("reduce_max", 0.0), ("reduce_min", -0.0)):  # of both zeros, the larger and the smaller
        case(name, array(dtype, [zeros, zeros]), array(dtype, [[0.0, -0.0], [-0.0, 0.0]]), axis=1)
    # Real numbers, whose sum depends on the order: an ulp of the absolute terms for every halving.
    x = draw(dtype, 4, 30)
    for axis in (0, 1, EVERY_AXIS):
        case("reduce_sum", wide(REDUCTIONS["reduce_sum"]), x, axis=axis, within=Within(2, of=np.sum(np.abs(x), axis)))

# ---- Places of extremes

for (name, f), dtype in each([("argmax", np.argmax), ("argmin", np.argmin)], NUMBERS):
    x = eighths(dtype, 3, 4, 2, low=-1, high=1)  # ties: the first of equals
    for axis in (0, 1, -1):
        case(name, f, x, axis=axis)
    case(name, f, edges(dtype), axis=0)
    case(name, f, array(dtype, [3, 3, 3]), axis=-1)
    case(name, f, array(dtype, [], (0, 2)), axis=1)
    case(name, f, eighths(dtype, 1, 2, 1, 2, 1, 2, 1, 2), axis=-3)
    if dtype in FLOATS:  # a NaN wins, the first one
        case(name, f, array(dtype, [[1, NAN, NAN, INF], [0, -0.0, 0, -0.0], [-INF, -INF, INF, INF]]), axis=1)

# ---- Composed


def mean(x, axis=None, keepdims=False):
    return np.mean(x, over(axis), keepdims=keepdims)


def variance(x, axis=None, keepdims=False):
    return np.var(x, over(axis), keepdims=keepdims)


def logsumexp(x, axis=None, keepdims=False):
    """-inf of -inf only, and of nothing."""
    m = np.max(x, over(axis), keepdims=True, initial=-np.inf)
    m = np.where(np.isfinite(m), m, 0)
    y = m + np.log(np.sum(np.exp(x - m), over(axis), keepdims=True))
    return y if keepdims else np.squeeze(y, over(axis) if axis is not None else None)


def softmax(x, axis=-1):
    """Of -inf only: NaN."""
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)


def log_softmax(x, axis=-1):
    z = x - np.max(x, axis, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis, keepdims=True))


def norm(x, axis=None, keepdims=False):
    """Adds squares in the dtype: inf above the root of the largest number."""
    return np.sqrt(np.sum(np.square(x), over(axis), keepdims=keepdims))


SOFTMAX = Within(6)  # a difference, an exponential, a sum of them and a quotient: 4 at the operands here
# A sum of the size of its terms, and a few operations after it. Of a variance, where the mean rounds: its square is below what the squares round by.
COMPOSED = {"mean": (mean, 0), "variance": (variance, 2), "norm": (norm, 1)}
for dtype in FLOATS:
    for x, axis in operands(dtype):
        for keepdims in (False, True) if x.ndim == 3 and dtype == "f64" else (False,):
            for name, (f, ulp) in COMPOSED.items():
                case(name, wide(f), x, axis=axis, keepdims=keepdims, within=Within(ulp))
            # The maximum and a logarithm, which may cancel.
            case("logsumexp", wide(logsumexp), x, axis=axis, keepdims=keepdims, within=Within(2, of=4))
for dtype in FLOATS:
    big = np.finfo(DTYPES[dtype]).max
    for name in ("mean", "norm"):
        case(name, wide(COMPOSED[name][0]), array(dtype, [[1, NAN], [INF, 1], [INF, -INF], [0, -0.0], [3, 4]]), axis=1)
    case("norm", array(dtype, [np.inf, 0]), array(dtype, [[big, 1], [np.finfo(DTYPES[dtype]).tiny ** 2, 0]]), axis=1)  # no scaling: the squares overflow
    rows = array(dtype, [[1000, 999, -1000], [-INF, 0, 1], [-INF, -INF, -INF], [INF, 0, 1], [NAN, 0, 1], [0, 0, 0]])
    case("logsumexp", wide(logsumexp), rows, axis=1, within=Within(2))
    for name, f in (("softmax", softmax), ("log_softmax", log_softmax)):
        bound = lambda x, f=f: SOFTMAX if f is softmax else Within(3, of=np.maximum(1, np.abs(np.nan_to_num(log_softmax(x), posinf=1, neginf=1))))
        case(name, wide(f), rows, within=bound)
        case(name, wide(f), draw(dtype, 4, 5), within=bound)
    for axis in (0, 1, -1):
        case("softmax", wide(softmax), draw(dtype, 2, 3, 4), axis=axis, within=SOFTMAX)
        case("log_softmax", wide(log_softmax), draw(dtype, 2, 3, 4), axis=axis, within=Within(3, of=2))
    case("softmax", wide(softmax), draw(dtype, 3, 1), within=SOFTMAX)
    case("softmax", array(dtype, [], (0, 3)), draw(dtype, 0, 3))
    case("log_softmax", array(dtype, [], (0, 3)), draw(dtype, 0, 3))
