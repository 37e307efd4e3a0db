"""More functions of one element and of two: trigonometric, hyperbolic, special, activations, bits."""
import numpy as np
from scipy import special

from elementwise import floor_div, maximum, minimum, operands
from tables import *

family("functions")

NOT_MEASURED = Within(3)
PI = 4 * np.arctan(np.longdouble(1))
# Known wider than f64: the value is exact but for one rounding.
for (name, f), dtype in each(list({
    "cbrt": np.cbrt, "exp2": np.exp2, "log2": np.log2, "log10": np.log10,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "log_sigmoid": lambda x: -np.logaddexp(-x, np.zeros_like(x)),
    "deg2rad": lambda x: x * (PI / 180),
    "rad2deg": lambda x: x * (180 / PI),
}.items()), FLOATS):
    for x in operands(dtype) + [draw(dtype, 6, low=-1, high=1), draw(dtype, 6, low=0.5, high=9)]:
        case(name, wide(f), x, within=NOT_MEASURED)


def sinc(x):
    """sin(pi x) / (pi x), with pi as wide as x: 0 at the other integers, where NumPy's rounded pi leaves 4e-17."""
    nearest = np.round(x)
    sign = np.where(np.mod(nearest, 2) == 0, 1, -1)
    pi = x.dtype.type(PI)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, sign * np.sin(pi * (x - nearest)) / (pi * np.where(x == 0, 1, x))))


for dtype in FLOATS:
    case("sinc", wide(sinc), np.append(draw(dtype, 9), array(dtype, [0.0, -0.0, 1e-9, 0.5, -1.5, np.nan])), within=Within(6))  # of pi x, rounded
    case("sinc", wide(sinc), array(dtype, [1, -2, 3]), within=Within(1, of=1 / 3))  # zeros: absolute

# SciPy's, whose own error of f64 is an ulp or some more.
for (name, f, points), dtype in each([
    ("erfc", special.erfc, [-6, -3, -1, 0, -0.0, 0.5, 1, 3, 6, 10, 26.5, np.inf, -np.inf, np.nan]),
    ("erfinv", lambda x: np.copysign(special.erfinv(x), x), [-1, 1, 0, -0.0, 0.5, -0.75, 0.999, 1e-9, 2, np.nan, -1e-300]),
    ("lgamma", lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x)), [0.0, -0.0, -1, -2, 0.5, 1, 1.5, 2, 3, 10, 171.5, 1e5, 1e300, np.inf, -np.inf, np.nan, -0.5, -1.5]),
    ("digamma", special.digamma, [0.5, 1, 2, 3.25, 10, 1e5, np.inf, np.nan, -0.5, -2.25]),
], FLOATS):
    case(name, double(f), array(dtype, [p if dtype == "f64" or not np.isfinite(p) or abs(p) < 1e30 else 1e30 for p in points]), within=Within(8))
for dtype in FLOATS:
    case("digamma", array(dtype, [-np.inf, np.inf, np.nan, np.nan]), array(dtype, [0.0, -0.0, -1, -np.inf]))  # at the poles, where SciPy differs: docs/numbers.md
    for n in (1, 2, 3, 5):
        case("polygamma", double(lambda x, n: special.polygamma(n, x)), draw(dtype, 8, low=0.3, high=12), n=n, within=Within(8))

# To the bit.
for (name, f), dtype in each(list({
    "trunc": np.trunc, "is_pos_inf": np.isposinf, "is_neg_inf": np.isneginf,
    "relu6": lambda x: minimum(maximum(x, np.zeros_like(x)), np.full_like(x, 6)),
    "hard_tanh": lambda x: np.where(x < -1, -1, np.where(x > 1, 1, x)).astype(x.dtype),
}.items()), FLOATS):
    for x in operands(dtype):
        case(name, f, x)

# ---- Activations: the formulas of their papers, in wider numbers


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def celu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def selu(x):
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def leaky_relu(x, alpha=0.2):
    return np.where(x > 0, x, x.dtype.type(alpha) * x)  # alpha as the dtype has it


def mish(x):
    return x * np.tanh(np.logaddexp(x, np.zeros_like(x)))


def hard_sigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


def gelu_tanh(x):
    """By tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


for dtype in FLOATS:
    points = array(dtype, [-np.inf, -100, -6, -3, -1, -1e-3, -0.0, 0, 1e-3, 0.5, 1, 3, 5, 6, 7, 100, np.inf, np.nan])
    for x in [points, draw(dtype, 3, 4)]:
        for name, f in (("elu", elu), ("celu", celu)):
            case(name, wide(f), x, within=NOT_MEASURED)
            case(name, wide(f), x, alpha=1.7, within=NOT_MEASURED)
        case("leaky_relu", leaky_relu, x)
        case("leaky_relu", leaky_relu, x, alpha=0.1)
        case("selu", wide(selu), x, within=NOT_MEASURED)
        case("hard_sigmoid", wide(hard_sigmoid), x, within=Within(2, of=1))
        # NaN at -inf: -inf * 0.
        case("mish", wide(mish), x, within=lambda x: Within(4, of=np.maximum(np.abs(np.nan_to_num(wide(mish)(x))), 1e6 * np.finfo(x.dtype).tiny)))  # beside 0 its factor is subnormal
        case("hard_swish", wide(lambda x: x * hard_sigmoid(x)), x, within=lambda x: Within(2, of=np.where(np.isfinite(x), np.abs(x), 1)))
        case("gelu_tanh", wide(gelu_tanh), x, within=lambda x: Within(3, of=np.where(np.isfinite(x), np.abs(x), 1)))

# ---- Two operands


def trunc_div(a, b):
    """C's quotient; x / 0 = -1 (u8: 255)."""
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    down, rest = floor_div(a, b), np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b)))
    return np.where((b != 0) & (rest != 0) & ((a < 0) != (b < 0)), down + a.dtype.type(1), down)


def fmod(a, b):
    """C's; fmod(x, 0) = x of integers."""
    return np.fmod(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))


def shifted(a, b, to):
    """By fewer than 0 places or by the width and more nothing is left: 0, and to the right the sign."""
    kind = np.iinfo(a.dtype)

    def one(a, b):
        a, b = int(a), int(b)
        if not 0 <= b < kind.bits:
            return -1 if to == "right" and a < 0 else 0
        return ((a << b) - kind.min) % 2**kind.bits + kind.min if to == "left" else a >> b

    return np.vectorize(one, otypes=[a.dtype])(a, b)


for (name, f), dtype in each([("trunc_div", trunc_div), ("fmod", fmod), ("squared_difference", lambda a, b: np.square(a - b))], NUMBERS):
    case(name, f, *pairs(dtype))
for (name, f), dtype in each([
    ("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
    ("left_shift", lambda a, b: shifted(a, b, "left")), ("right_shift", lambda a, b: shifted(a, b, "right")),
], INTEGERS):
    case(name, f, *pairs(dtype))
for dtype in INTEGERS:
    case("bitwise_not", np.invert, edges(dtype))
    width = np.iinfo(DTYPES[dtype]).bits
    for name in ("left", "right"):
        case(f"{name}_shift", lambda a, b, to=name: shifted(a, b, to), few(dtype)[:, None], array(dtype, [0, 1, 3, width - 1, width, width + 1]))
case("logical_xor", np.logical_xor, np.array([[False], [True]]), np.array([False, True]))
for dtype in FLOATS:
    case("copysign", np.copysign, *pairs(dtype))
    case("atan2", wide(np.arctan2), *pairs(dtype), within=NOT_MEASURED)
    case("hypot", wide(np.hypot), *pairs(dtype), within=NOT_MEASURED)
    x, y = draw(dtype, 3, 4), draw(dtype, 4, salt=1)
    case("atan2", wide(np.arctan2), x, y, within=NOT_MEASURED)
    case("hypot", wide(np.hypot), x, y, within=NOT_MEASURED)
    case("hypot", wide(np.hypot), array(dtype, [3, np.finfo(DTYPES[dtype]).max / 2, np.finfo(DTYPES[dtype]).tiny]), array(dtype, [4, np.finfo(DTYPES[dtype]).max / 2, np.finfo(DTYPES[dtype]).tiny]), within=NOT_MEASURED)
    case("logaddexp", wide(np.logaddexp), x, y, within=Within(3, of=np.maximum(np.abs(x), np.abs(y))))
    big = array(dtype, [-np.inf, 0, 1000, -1000, np.inf, np.nan])
    case("logaddexp", wide(np.logaddexp), big[:, None], big, within=NOT_MEASURED)
    nonnegative = array(dtype, [0, 1e-3, 1, 2.5, np.inf, np.nan])
    case("xlogy", wide(lambda x, y: x * np.log(np.where((x == 0) & ((y <= 0) | (y == np.inf)), 1, y))), array(dtype, [0, 1, -2.5, 3, np.nan])[:, None], nonnegative, within=NOT_MEASURED)
    case("xlog1py", wide(lambda x, y: x * np.log1p(np.where((x == 0) & ((y <= -1) | (y == np.inf)), 0, y))), array(dtype, [0, 1, -2.5, 3, np.nan])[:, None], array(dtype, [-1, -0.5, 0, 1e-9, 3, np.inf, np.nan]), within=NOT_MEASURED)
    case("heaviside", np.heaviside, array(dtype, [-np.inf, -1, -0.0, 0, 2, np.inf, np.nan])[:, None], array(dtype, [0.5, 0, 1]))
    case("lerp", lambda a, b, t: (1 - t) * a + t * b, eighths(dtype, 2, 3), eighths(dtype, 3, salt=1), array(dtype, [0, 1, 0.25]))  # exact
    case("nan_to_num", np.nan_to_num, array(dtype, [1, np.nan, np.inf, -np.inf, -0.0]))
    case("nan_to_num", np.nan_to_num, array(dtype, [1, np.nan, np.inf, -np.inf, -0.0]), nan=7.0, posinf=2.0, neginf=-3.0)
    a, b = array(dtype, [1, 1, 1, np.inf, np.inf, np.nan, 0]), array(dtype, [1, 1.000001, 1.1, np.inf, -np.inf, np.nan, 1e-9])
    for options in ({}, {"rtol": 0.2}, {"atol": 0.2}, {"equal_nan": True}):
        case("is_close", np.isclose, a, b, **options)
        case("all_close", lambda a, b, **o: np.asarray(np.allclose(a, b, **o)), a[:2], b[:2], **options)
for dtype in NUMBERS:
    case("clamp", np.clip, array(dtype, [1, 3, 7]), array(dtype, 2), array(dtype, 5))
for dtype in INTEGERS:
    case("nan_to_num", np.nan_to_num, few(dtype))
