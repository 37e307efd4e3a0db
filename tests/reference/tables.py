"""What the families of cases are written with: numbers to compute on, `case`, and the stored form of both.

A table is lines of JSON. Arrays that several cases read come first, under a name; then one line a case:

    {"array":"3f09ac","is":["f64",[2,3],[1.5,"nan",-0.0,...]]}
    {"name":"reduce_sum","in":["3f09ac"],"options":{"axis":1},"out":[["f64",[2],[...]]],"ulp":1}

Numbers are the shortest text that gives them back; what JSON has no number for is "nan", "inf", "-inf".
"""
import hashlib
import itertools
import json
import random
import warnings

import numpy as np

warnings.simplefilter("ignore")  # means of nothing, which are cases

DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "u8": np.uint8, "bool": np.bool_}
FLOATS, INTEGERS = ("f64", "f32"), ("i64", "i32", "u8")
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ("bool",)
EVERY_AXIS = None  # what NumPy calls axis=None


def name_of(dtype):
    return next(name for name, known in DTYPES.items() if np.dtype(known) == dtype)


# ---- Numbers to compute on


def array(dtype, values, shape=None):
    values = np.array(values, DTYPES[dtype])
    return values if shape is None else values.reshape(shape)


def draw(dtype, *shape, low=-3, high=3, salt=0):
    """Numbers of three decimals, or integers, in [low, high]. What they are depends on the arguments alone, so a case more changes no other."""
    source = random.Random(f"{shape} {low} {high} {salt}")  # its `random` is the same in every version of Python
    count = int(np.prod(shape))
    if dtype in FLOATS:
        values = [round(low + (high - low) * source.random(), 3) for _ in range(count)]
    else:
        values = [int(low + (high - low + 1) * source.random()) for _ in range(count)]
    return array(dtype, values, shape)


def eighths(dtype, *shape, low=-4, high=4, salt=0):
    """Multiples of 1/8 (of integers: of 1), whose products of two and sums of many are exact in each float dtype: in whatever order they are added, the result is one."""
    if dtype not in FLOATS:
        return draw(dtype, *shape, low=0 if dtype == "u8" else low, high=high, salt=salt)
    return array(dtype, draw("i64", *shape, low=8 * low, high=8 * high, salt=salt), shape) / DTYPES[dtype](8)


def bools(*shape, salt=0):
    return draw("i64", *shape, low=0, high=1, salt=salt).astype(bool)


def edges(dtype):
    """Where a function has its corners: zeros, infinities, NaN, the smallest and largest numbers, places beside 0 and 1, halves, arguments that overflow."""
    if dtype not in FLOATS:
        kind = np.iinfo(DTYPES[dtype])
        return array(dtype, sorted({kind.min, kind.min + 1, 0, 1, 2, 3, 7, kind.max - 1, kind.max} | ({-1, -2, -3} if kind.min else {128, 200})))
    kind = np.finfo(DTYPES[dtype])
    sizes = [0.0, kind.smallest_subnormal, kind.tiny, 1e-30, kind.eps / 2, 1e-3, 0.5, 1 - kind.eps / 2, 1, 1 + kind.eps, 1.5, 2, 2.5, 30, 100, 1e6, kind.max, np.inf]
    return array(dtype, [sign * size for size in sizes for sign in (1, -1)] + [np.nan])


def few(dtype):
    """Fewer of them, for every pair to be tried."""
    if dtype not in FLOATS:
        kind = np.iinfo(DTYPES[dtype])
        return array(dtype, [kind.min, -3, -1, 0, 1, 2, 7, kind.max] if kind.min else [0, 1, 2, 7, 128, 200, 255])
    kind = np.finfo(DTYPES[dtype])
    return array(dtype, [-0.0, 0, 1, -1, 2.5, -2.5, 3, 1e-3, kind.smallest_subnormal, -kind.max, np.inf, -np.inf, np.nan])


def pairs(dtype):
    """Two operands that broadcast to every pair of them."""
    values = few(dtype)
    return values[:, None], values[None, :]


def shaped(dtype, low=-3, high=3):
    """Operands of the shapes that a function of one element is to take: a scalar, none at all, rank 8."""
    return [draw(dtype, low=low, high=high), draw(dtype, 0, 3), draw(dtype, 1, 2, 1, 1, 2, 1, 1, 1, low=low, high=high)]


# ---- Expressions


def wide(f):
    """f computed in a wider float dtype than that of its operands, and rounded: what NumPy's function would give if it made no error of its own."""

    def rounded(*operands, **options):
        dtype = next(x.dtype for x in operands if x.dtype.kind == "f")
        wider = np.longdouble if dtype == np.float64 else np.float64
        return np.asarray(f(*[x.astype(wider) if x.dtype == dtype else x for x in operands], **options)).astype(dtype)

    return rounded


def double(f):
    """The same where f knows nothing wider than f64, as SciPy's special functions: of f64 the error is theirs."""
    return lambda *operands, **options: np.asarray(
        f(*[x.astype(np.float64) if x.dtype == np.float32 else x for x in operands], **options)
    ).astype(next(x.dtype for x in operands if x.dtype.kind == "f"))


# ---- Cases


class Within:
    """How far from the stored value a result may be: `ulp` times the distance to the next number from `of`, or from the element itself. 0: the same bits, but for a NaN's."""

    def __init__(self, ulp, of=None):
        self.ulp, self.of = ulp, of


EXACT = Within(0)

CASES = {}  # the lists of lines, by table
FAMILY = [""]


def family(name):
    """The table of the cases that follow."""
    FAMILY[0] = name
    CASES[name] = []


def case(name, f, *operands, within=EXACT, closed=None, **options):
    """`name` of these operands, with options by their NumPy names, is f of them; f may be the value itself. `within` may be a function of the operands. `closed`: words of the
    error that is due where every size that is not 1 is left open."""
    with np.errstate(all="ignore"):
        values = f(*operands, **options) if callable(f) else f
        bound = within(*operands) if callable(within) else within
    line = {"name": name, "in": [np.asarray(x) for x in operands]}
    if options:
        line["options"] = options
    line["out"] = [np.asarray(y) for y in (values if isinstance(values, (list, tuple)) else [values])]
    if bound.ulp:
        line["ulp"] = bound.ulp
    if bound.of is not None:
        line["scale"] = [float(x) for x in np.broadcast_to(np.asarray(bound.of, np.float64), line["out"][0].shape).ravel()]
        if len(set(line["scale"])) == 1:
            line["scale"] = line["scale"][0]
    if closed:
        line["closed"] = closed
    CASES[FAMILY[0]].append(line)


def each(names, *lists):
    """The names times the lists' elements."""
    return itertools.product(names if isinstance(names, (list, tuple)) else [names], *lists)


# ---- The stored form


def number(x):
    """The shortest text that is x, as JSON has it: a string where it has none."""
    if x.dtype.kind != "f":
        return str(int(x))
    if not np.isfinite(x):
        return f'"{x}"'
    text = str(x)  # the shortest
    assert x.dtype.type(float(text)) == x  # read as f64 and rounded
    return text[:-2] if text.endswith(".0") and x != 0 else text


def stored(x):
    data = ",".join(number(element) for element in x.ravel())
    return f'["{name_of(x.dtype)}",{json.dumps(list(x.shape), separators=(",", ":"))},[{data}]]'


def lines_of(cases):
    """The lines of a table."""
    texts = [[stored(x) for x in line["in"]] for line in cases]
    often = {}
    for text in itertools.chain(*texts):
        often[text] = often.get(text, 0) + 1
    names = {text: hashlib.sha256(text.encode()).hexdigest()[:6] for text, uses in often.items() if uses > 1}  # which no other case changes
    assert len(set(names.values())) == len(names)
    for text, name in names.items():
        yield f'{{"array":"{name}","is":{text}}}'
    for line, operands in zip(cases, texts):
        parts = [f'"name":"{line["name"]}"', '"in":[' + ",".join(f'"{names[t]}"' if t in names else t for t in operands) + "]"]
        if "options" in line:
            parts.append('"options":' + json.dumps(line["options"], separators=(",", ":")))
        parts.append('"out":[' + ",".join(stored(y) for y in line["out"]) + "]")
        parts += [f'"{key}":' + json.dumps(line[key], separators=(",", ":")) for key in ("ulp", "scale", "closed") if key in line]
        yield "{" + ",".join(parts) + "}"
