"""Products of matrices, tensors and images; triangular systems. Operands are multiples of 1/8, so that whatever the order of the sums, the result is exact and has one value; real
numbers beside them, within ulps of the absolute terms."""
import numpy as np

from tables import *

family("products")

# The same number; whether a sum of one product -0 is -0 or 0 is open (docs/numbers.md).
ONE_VALUE = Within(0, of=1)


def matmul(a, b, transpose_a=False, transpose_b=False):
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


MATRICES = [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1)), ((5, 17), (17, 9)), ((3, 2, 2), (2,))]
for dtype, (a, b) in each(FLOATS, MATRICES):
    case("matmul", matmul, eighths(dtype, *a), eighths(dtype, *b, salt=1), within=ONE_VALUE)
for dtype in FLOATS:
    case("matmul", matmul, eighths(dtype, 3, 2), eighths(dtype, 4, 3, salt=1), transpose_a=True, transpose_b=True, within=ONE_VALUE)
    case("matmul", matmul, eighths(dtype, 2, 3, 2), eighths(dtype, 2, 3, 4, salt=1), transpose_a=True, within=ONE_VALUE)
    case("matmul", matmul, eighths(dtype, 2, 3), eighths(dtype, 4, 3, salt=1), transpose_b=True, within=ONE_VALUE)
    # NaN and infinities go through: 0 * inf is NaN.
    case("matmul", matmul, array(dtype, [[0, 1], [np.inf, 1], [np.nan, 0]]), array(dtype, [[np.inf, 0, 1], [1, 1, -np.inf]]), within=ONE_VALUE)
    a, b = draw(dtype, 7, 20), draw(dtype, 20, 6, salt=1)
    case("matmul", wide(matmul), a, b, within=Within(1, of=np.abs(a) @ np.abs(b)))

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,ij->j", (2, 3), (2, 3)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,k->i", (2, 3), (4,)),
    ("i,j->ij", (2,), (3,)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("abcd,dc->ba", (2, 3, 2, 2), (2, 2)),
    ("ba,ab", (2, 3), (3, 2)),
    ("i,i->i", (0,), (0,)),
    (",i->i", (), (3,)),
    ("ik,k->i", (2, 0), (0,)),
]
for dtype, (equation, a, b) in each(FLOATS, EQUATIONS):
    case("einsum", lambda a, b, equation: np.einsum(equation, a, b), eighths(dtype, *a), eighths(dtype, *b, salt=1), equation=equation, within=ONE_VALUE)
for dtype, (a, b, axes) in each(FLOATS, [((2, 3, 2), (3, 2, 4), 2), ((2, 3), (3, 2), 1), ((2,), (3,), 0), ((2, 2), (2, 2), 2), ((2, 1, 2, 2), (2, 2, 1, 3), 2), ((3, 0), (0, 2), 1)]):
    case("tensordot", lambda a, b, axes: np.tensordot(a, b, axes), eighths(dtype, *a), eighths(dtype, *b, salt=1), axes=axes, within=ONE_VALUE)
for dtype, (m, n) in each(FLOATS, [(2, 3), (1, 4), (0, 2)]):
    case("outer", np.outer, eighths(dtype, m), eighths(dtype, n, salt=1), within=ONE_VALUE)
for dtype, k in each(FLOATS, [3, 1, 0, 33]):
    case("dot", np.dot, eighths(dtype, k), eighths(dtype, k, salt=1), within=ONE_VALUE)

# ---- Images


def before(padding, size, window, stride, dilation, axis):
    """Zeros before and after the places of an axis."""
    if isinstance(padding, list):
        return padding[axis]
    reach = (window - 1) * dilation + 1
    missing = max(0, (-(-size // stride) - 1) * stride + reach - size) if padding == "same" else 0
    return missing // 2, missing - missing // 2


def conv2d(x, w, strides=(1, 1), dilations=(1, 1), groups=1, padding="valid"):
    """y[n, p, q, o] = sum over r, s, c of x[n, p stride + r dilation - before, ..., c] w[r, s, c, o], places outside of the image left out."""
    (n, height, width, _), (rows, columns, depth, count) = x.shape, w.shape
    (top, bottom), (left, right) = before(padding, height, rows, strides[0], dilations[0], 0), before(padding, width, columns, strides[1], dilations[1], 1)
    high = (height + top + bottom - (rows - 1) * dilations[0] - 1) // strides[0] + 1
    across = (width + left + right - (columns - 1) * dilations[1] - 1) // strides[1] + 1
    y = np.zeros((n, high, across, count), x.dtype)
    for p, q, r, s in np.ndindex(high, across, rows, columns):
        i, j = p * strides[0] + r * dilations[0] - top, q * strides[1] + s * dilations[1] - left
        if 0 <= i < height and 0 <= j < width:
            for o in range(count):
                first = o // (count // groups) * depth
                y[:, p, q, o] += np.sum(x[:, i, j, first : first + depth] * w[r, s, :, o], -1)
    return y


IMAGES = [
    ((1, 4, 5, 2), (3, 2, 2, 3), {}),
    ((2, 4, 4, 1), (2, 2, 1, 2), {"strides": [2, 2]}),
    ((1, 5, 4, 2), (3, 3, 2, 2), {"padding": "same"}),
    ((1, 5, 4, 1), (2, 3, 1, 1), {"padding": "same", "strides": [2, 3]}),
    ((1, 6, 7, 1), (2, 3, 1, 2), {"dilations": [2, 3]}),
    ((1, 4, 3, 4), (2, 2, 2, 6), {"groups": 2}),
    ((1, 4, 4, 3), (2, 2, 1, 3), {"groups": 3, "padding": [[1, 0], [0, 2]]}),
    ((1, 4, 4, 1), (3, 3, 1, 1), {"padding": [[2, 1], [0, 3]], "strides": [2, 1], "dilations": [1, 2]}),
    ((0, 3, 3, 1), (2, 2, 1, 2), {}),
]
for dtype, (x, w, options) in each(FLOATS, IMAGES):
    closed = "follows from sizes that are open" if options.get("padding") == "same" else None
    case("conv2d", conv2d, eighths(dtype, *x), eighths(dtype, *w, salt=1), **options, within=ONE_VALUE, closed=closed)
case("conv2d", conv2d, eighths("f64", 1, 2, 2, 1), array("f64", [1, np.inf, np.inf, 1], (2, 2, 1, 1)), padding=[[1, 1], [0, 0]], within=ONE_VALUE)  # no term outside of the image, so no NaN

# ---- Triangular systems


def triangular_solve(a, b, lower=True, transpose=False, unit_diagonal=False):
    """By substitution, of the triangle alone."""
    a, b = np.broadcast_to(a, b.shape[:-2] + a.shape[-2:]) if a.ndim < b.ndim else a, np.broadcast_to(b, a.shape[:-2] + b.shape[-2:]) if b.ndim < a.ndim else b
    if transpose:
        a, lower = np.swapaxes(a, -1, -2), not lower
    n = a.shape[-1]
    x = np.zeros(b.shape, b.dtype)
    for i in range(n) if lower else reversed(range(n)):
        known = range(i) if lower else range(i + 1, n)
        rest = b[..., i, :] - sum((a[..., i, j, None] * x[..., j, :] for j in known), np.zeros_like(b[..., i, :]))
        x[..., i, :] = rest if unit_diagonal else rest / a[..., i, i, None]
    return x


for dtype, lower, transpose, unit in each(FLOATS, [True, False], [True, False], [True, False]):
    # Powers of two on the diagonal: every step is exact. What is not read is NaN.
    a = eighths(dtype, 4, 4, low=-2, high=2)
    a[np.arange(4), np.arange(4)] = np.nan if unit else [1, -0.5, 2, 0.25]
    a[np.triu_indices(4, 1) if lower else np.tril_indices(4, -1)] = np.nan
    case("triangular_solve", triangular_solve, a, eighths(dtype, 4, 3), lower=lower, transpose=transpose, unit_diagonal=unit)
for dtype in FLOATS:
    a = eighths(dtype, 2, 3, 3) + 8 * np.eye(3, dtype=DTYPES[dtype])
    case("triangular_solve", wide(triangular_solve), a, draw(dtype, 2, 3, 2), within=Within(1, of=1))
    case("triangular_solve", wide(triangular_solve), a[0], draw(dtype, 2, 3, 1), within=Within(1, of=1))
    case("triangular_solve", triangular_solve, array(dtype, [[0, 0], [1, 1]]), array(dtype, [[1, 0], [2, 1]]))  # a zero divides: inf and NaN
    case("triangular_solve", triangular_solve, np.zeros((0, 0), DTYPES[dtype]), np.zeros((0, 2), DTYPES[dtype]))

# ---- Systems by products

A = array("f64", [[4, 1, 0], [1, 3, -1], [0, -1, 2]])
for name in ("cg", "gmres"):  # as many steps as there are unknowns solve it but for rounding; they end at a residual of 1e-14
    case(name, lambda a, b, tolerance: np.linalg.solve(a, b), A, array("f64", [1, 2, -3]), within=Within(4, of=1), closed="of sizes that are not known", tolerance=1e-14)
