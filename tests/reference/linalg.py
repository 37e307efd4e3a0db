"""Linear algebra, beside LAPACK."""
import numpy as np
import scipy.linalg

from tables import *

family("linalg")


def symmetric(dtype, *shape):
    """Positive definite, with eigenvalues well apart."""
    n = shape[-1]
    a = eighths(dtype, *shape)
    return ((a + np.swapaxes(a, -1, -2)) / 2 + np.diag(np.arange(8 * n, 12 * n, 4))).astype(DTYPES[dtype])


def regular(dtype, *shape):
    return (eighths(dtype, *shape) + 6 * np.eye(shape[-1])).astype(DTYPES[dtype])


def in_double(f):
    """LAPACK in f64: of f64 its own error is a few ulp of the largest element."""

    def rounded(*operands, **options):
        y = f(*[x.astype(np.float64) for x in operands], **options)
        return [np.asarray(v).astype(operands[0].dtype if np.asarray(v).dtype.kind == "f" else np.int64) for v in (y if isinstance(y, (tuple, list)) else [y])]

    return rounded


def positive(vectors):
    """Of each column the first component with at least half the largest magnitude is positive."""
    size = np.abs(vectors)
    first = np.argmax(size >= size.max(-2, keepdims=True) / 2, -2)
    return np.sign(np.take_along_axis(vectors, first[..., None, :], -2))


def eigh(a):
    values, vectors = np.linalg.eigh(a)
    return values, vectors * positive(vectors)


def svd(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    signs = positive(u)
    return u * signs, s, vt * np.swapaxes(signs, -1, -2)


def lu(a):
    """Row i of the product is row p[i] of a."""
    p, l, u = scipy.linalg.lu(a)
    return np.argmax(np.swapaxes(p, -1, -2), -1), l, u


def spread(ulp, of):
    return Within(ulp, of=of)  # `of`: the largest number on the way


for dtype in FLOATS:
    s, a, b = symmetric(dtype, 3, 3), regular(dtype, 3, 3), eighths(dtype, 3, 2, salt=1)
    batch, tall, flat = regular(dtype, 2, 3, 3), eighths(dtype, 4, 2), eighths(dtype, 2, 4)
    empty = np.zeros((0, 0), DTYPES[dtype])
    case("linalg::cholesky", in_double(np.linalg.cholesky), s, within=spread(1, 8))
    case("linalg::cholesky", in_double(np.linalg.cholesky), symmetric(dtype, 2, 3, 3), within=spread(1, 8))
    case("linalg::cholesky", in_double(np.linalg.cholesky), array(dtype, [[4]]))
    case("linalg::lu", in_double(lu), a, within=spread(1, 16))
    case("linalg::lu", in_double(lu), array(dtype, [[0, 1], [2, 3]]))
    for operand in (tall, flat, a):
        case("linalg::qr", in_double(lambda a: tuple(np.linalg.qr(a))), operand, within=spread(2, 8))
        case("linalg::svdvals", in_double(lambda a: np.linalg.svd(a, compute_uv=False)), operand, within=spread(4, 16))
        case("linalg::svd", in_double(svd), operand, within=spread(6, 16))
        case("linalg::pinv", in_double(np.linalg.pinv), operand, within=spread(1, 1))
        case("linalg::matrix_rank", in_double(np.linalg.matrix_rank), operand)
    case("linalg::qr", in_double(lambda a, complete: tuple(np.linalg.qr(a, "complete"))), flat, complete=True, within=spread(2, 8))
    case("linalg::eigh", in_double(eigh), s, within=spread(6, 16))
    case("linalg::eigvalsh", in_double(np.linalg.eigvalsh), s, within=spread(4, 16))
    case("linalg::solve", in_double(np.linalg.solve), a, b, within=spread(2, 1))
    case("linalg::solve", in_double(np.linalg.solve), a, b[:, 0], within=spread(2, 1))
    case("linalg::solve", in_double(np.linalg.solve), batch, b, within=spread(2, 1))
    l = np.linalg.cholesky(s.astype(np.float64)).astype(DTYPES[dtype])
    case("linalg::cholesky_solve", in_double(lambda l, b: np.linalg.solve(l @ l.T, b)), l, b, within=spread(2, 1))
    case("linalg::inv", in_double(np.linalg.inv), a, within=spread(2, 1))
    case("linalg::inv", in_double(np.linalg.inv), batch, within=spread(2, 1))
    case("linalg::lstsq", in_double(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0]), tall, eighths(dtype, 4, 2, salt=1), within=spread(1, 2))
    case("linalg::lstsq", in_double(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0]), flat, eighths(dtype, 2, salt=1), within=spread(1, 2))
    case("linalg::det", in_double(np.linalg.det), a, within=spread(1, 512))
    case("linalg::det", in_double(np.linalg.det), batch, within=spread(1, 512))
    case("linalg::det", array(dtype, 0.0), array(dtype, [[1, 2], [2, 4]]), within=Within(0, of=1))  # a zero of either sign
    case("linalg::det", array(dtype, 1.0), empty)
    case("linalg::slogdet", in_double(lambda a: tuple(np.linalg.slogdet(a))), a, within=spread(2, 8))
    case("linalg::slogdet", in_double(lambda a: tuple(np.linalg.slogdet(a))), array(dtype, [[1, 2], [2, 4]]))
    case("linalg::matrix_rank", in_double(np.linalg.matrix_rank), array(dtype, [[1, 2], [2, 4]]))
    case("linalg::matrix_rank", in_double(np.linalg.matrix_rank), np.zeros((3, 2), DTYPES[dtype]))
    for norm, numpys in (("frobenius", "fro"), ("nuclear", "nuc"), ("spectral", 2)):
        case("linalg::matrix_norm", in_double(lambda a, norm, of=numpys: np.linalg.norm(a, of, (-2, -1))), tall, norm=norm, within=spread(2, 8))
        case("linalg::matrix_norm", in_double(lambda a, norm, of=numpys: np.linalg.norm(a, of, (-2, -1))), batch, norm=norm, within=spread(4, 16))
    for n in (0, 1, 2, 3, 5):
        case("linalg::matrix_power", np.linalg.matrix_power, eighths(dtype, 2, 2, low=-2, high=2), n=n, within=Within(0, of=1) if n < 3 else Within(4, of=512))
    case("linalg::matrix_power", in_double(np.linalg.matrix_power), a, n=-2, within=spread(1, 1))
