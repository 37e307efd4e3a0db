"""Functions of one element, of one, two and three operands; casts."""
import numpy as np
from scipy import special

from tables import *

family("elementwise")

# ---- One operand


def softsign(x):
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def relu(x):
    """relu(-0) = 0 and NaN stays."""
    return np.where(np.isnan(x) | (x > 0), x, np.zeros_like(x))


def gelu(x):
    return x * special.ndtr(x)  # NaN at -inf, as -inf * 0 is


@wide
def silu(x):
    return x / (1 + np.exp(-x))


def near_silu(x):
    """x sigmoid(x): where the sigmoid is subnormal, it has fewer digits, and an ulp of it counts x times."""
    return Within(2, of=np.nan_to_num(np.maximum(np.abs(silu(x)), np.abs(x) * np.finfo(x.dtype).tiny), nan=1))


def operands(dtype):
    return [edges(dtype), draw(dtype, 3, 5)] + (shaped(dtype) if dtype == "f64" else [])


# The C library's functions, and polynomials in compiled code: each is an ulp from the exact value at most at the operands here, and may be one more where there is no fused
# multiply-add.
LIBRARY = Within(2)
FUNCTIONS = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),  # -inf of -0
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    "softsign": softsign,
    "sin": np.sin,
    "cos": np.cos,
}
for (name, f), dtype in each(list(FUNCTIONS.items()), FLOATS):
    for x in operands(dtype):
        case(name, wide(f), x, within=LIBRARY)
for dtype in FLOATS:
    for x in operands(dtype):
        case("silu", silu, x, within=near_silu)
        case("erf", double(special.erf), x, within=LIBRARY)
        # x (1 + erf(x / sqrt 2)) / 2, where the sum is rounded to an ulp of 1: the result to one of x.
        case("gelu", double(gelu), x, within=lambda x: Within(2, of=np.where(np.isfinite(x), np.abs(x), 1)))

# IEEE 754 says what they are to the bit, or they make no number.
EXACT_FUNCTIONS = {
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "relu": relu,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
}
for (name, f), dtype in each(list(EXACT_FUNCTIONS.items()), FLOATS):
    for x in operands(dtype):
        case(name, f, x)

OF_NUMBERS = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "operator-": np.negative}
for (name, f), dtype in each(list(OF_NUMBERS.items()), NUMBERS):
    case(name, f, edges(dtype))
OF_ALL = {"identity": lambda x: x, "operator+": lambda x: x, "stop_gradient": lambda x: x, "prevent_gradient": lambda x: x, "ones_like": np.ones_like, "zeros_like": np.zeros_like}
for (name, f), dtype in each(list(OF_ALL.items()), ALL):
    case(name, f, bools(5) if dtype == "bool" else few(dtype))
for dtype in INTEGERS:
    case("square", np.square, edges(dtype))
for name, x in each(["logical_not", "operator!"], [bools(4), bools(), bools(0), bools(2, 1, 3)]):
    case(name, np.logical_not, x)
for name, x in each(["neg", "abs", "sign", "identity", "ones_like", "zeros_like"], shaped("f64")):
    case(name, OF_NUMBERS.get(name) or OF_ALL[name], x)

# ---- Two operands


def floor_div(a, b):
    """Of floats the floor of the rounded quotient. Of integers x // 0 = -1 (u8: 255), where NumPy has 0."""
    if a.dtype.kind == "f":
        return np.floor(a / b)
    return np.where(b == 0, np.array(-1).astype(a.dtype), np.floor_divide(a, b))


def remainder(a, b):
    """x % 0 = x of integers, where NumPy has 0."""
    return np.remainder(a, b) if a.dtype.kind == "f" else np.where(b == 0, a, np.remainder(a, b))


def integer_pow(a, b):
    """Modulo 2^n; a negative exponent is an error in NumPy, and here 1 -> 1, -1 -> +-1, 0 -> the highest, others 0."""
    kind = np.iinfo(a.dtype)
    width = 2**kind.bits

    def one(a, b):
        a, b = int(a), int(b)
        if b < 0:
            return {1: 1, -1: 1 if b % 2 == 0 else -1, 0: kind.max}.get(a, 0)
        return (pow(a, b, width) - kind.min) % width + kind.min

    return np.vectorize(one, otypes=[a.dtype])(a, b)


def power(a, b):
    return wide(np.power)(a, b) if a.dtype.kind == "f" else integer_pow(a, b)


def maximum(a, b):
    """max(-0, 0) = 0: NumPy leaves open which zero it is."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def minimum(a, b):
    """min(-0, 0) = -0"""
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b)) if a.dtype.kind == "f" else np.minimum(a, b)


# IEEE 754 says what they are to the bit; pow is the C library's, less than an ulp from the exact value.
BINARY = {
    "add": (np.add, 0),
    "sub": (np.subtract, 0),
    "mul": (np.multiply, 0),
    "floor_div": (floor_div, 0),
    "remainder": (remainder, 0),
    "pow": (power, 1),
    "maximum": (maximum, 0),
    "minimum": (minimum, 0),
}
COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
for (name, (f, ulp)), dtype in each(list(BINARY.items()), NUMBERS):
    case(name, f, *pairs(dtype), within=Within(ulp if dtype in FLOATS else 0))
for (name, f), dtype in each(list(COMPARISONS.items()), NUMBERS):
    case(name, f, *pairs(dtype))
for name, f in COMPARISONS.items():
    case(name, f, bools(4), np.array([[False], [True]]))
for dtype in FLOATS:
    case("div", np.divide, *pairs(dtype))
SHAPES = [((2, 3), (3,)), ((), (2, 2)), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1)), ((1, 2, 1, 1, 2, 1, 1, 1), (2, 1, 1, 1))]
FLOAT_BINARY = {name: f for name, (f, _) in BINARY.items()} | {"div": np.divide} | COMPARISONS
for (name, f), (a, b) in each(list(FLOAT_BINARY.items()), SHAPES):
    case(name, f, draw("f64", *a, low=0.2), draw("f64", *b, low=0.2, salt=1), within=Within(1 if name == "pow" else 0))

LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "operator&&": np.logical_and, "operator||": np.logical_or}
for name, f in LOGIC.items():
    case(name, f, np.array([[False], [True]]), np.array([False, True]))
    case(name, f, bools(0), bools(1))

OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.remainder}
OPERATORS |= {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
OPERATORS |= {"+=": np.add, "-=": np.subtract, "*=": np.multiply, "/=": np.divide}
for (sign, f), dtype in each(list(OPERATORS.items()), ("f64", "i32")):
    if dtype == "f64" or "/" not in sign:  # / of integers is an error
        case(f"operator{sign}", f, draw(dtype, 2, 3), draw(dtype, 2, 3, low=1, salt=1))

# ---- Three operands


def clip(x, low, high):
    """min(max(x, low), high), NaN where any is; but where x equals a bound, which of the zeros NumPy gives differs from place to place: here it is x, as a bound counts as inside."""
    raised = np.where(np.isnan(low) | (x < low), low, x)
    return np.where(np.isnan(high) | (raised > high), high, raised)


for dtype in NUMBERS:
    x = edges(dtype)
    case("clip", clip, x, array(dtype, 1), array(dtype, 5))
    case("clip", clip, x, array(dtype, 5), array(dtype, 1))  # the higher bound has the last word
    case("where", np.where, x > 1, x, array(dtype, 3))
for dtype in FLOATS:
    zeros = array(dtype, [0.0, -0.0, 1, -1, np.nan, np.inf])
    for low, high in each([[-np.inf, np.nan, -0.0, 0.0]], [np.nan, np.inf, 0.0, -0.0]):
        case("clip", clip, zeros[:, None], array(dtype, low), array(dtype, high))
case("clip", clip, draw("f64", 4, 3), draw("f64", 3, low=-1, high=0), draw("f64", 4, 1, low=0, high=1))
case("where", np.where, bools(4, 1), draw("f64", 3), draw("f64", 2, 4, 3))
case("where", np.where, np.array(True), draw("f32", 0, 2), draw("f32", 2))
case("where", np.where, bools(3), bools(3, salt=1), bools(3, salt=2))

# ---- Casts


def cast(x, dtype):
    """Float to integer toward zero, saturating, NaN to 0, where NumPy leaves open what it is; all else as NumPy has it."""
    to = DTYPES[dtype]
    if x.dtype.kind != "f" or dtype in FLOATS + ("bool",):
        return x.astype(to)
    kind = np.iinfo(to)
    return np.array([0 if np.isnan(v) else kind.min if v <= kind.min else kind.max if v >= kind.max else int(v) for v in x.ravel().tolist()], to).reshape(x.shape)


for dtype, to in each(ALL, ALL):
    x = bools(2) if dtype == "bool" else edges(dtype)
    if dtype in FLOATS:
        x = np.concatenate([x, array(dtype, [-1.5, 254.5, 255.5, 256, 2147483647, 2147483648, -2147483649, 9.2233720368547e18, -9.3e18, 16777217, 1e39 if dtype == "f64" else 1e38])])
    case("cast", cast, x, dtype=to)
case("cast", cast, array("i64", [2**53 + 1, 2**53 + 3, 2**24 + 1, -(2**24) - 1, 2**62 + 2**37]), dtype="f32")
case("cast", cast, array("i64", [2**53 + 1, 2**53 + 3, 2**63 - 1, -(2**53) - 1]), dtype="f64")
case("cast", cast, draw("f64", 0, 2), dtype="i32")
