"""Draws from distributions: functions of uniform numbers."""
import numpy as np
from scipy import special

from randoms import KEYS, stream, uniform, words
from tables import *

family("draws")


def uniforms(key, shape, dtype):
    return uniform(key, shape, dtype).astype(np.longdouble if dtype == "f64" else np.float64)


def truncated_normal(key, shape, mean=0, stddev=1, dtype="f32"):
    u = uniform(key, shape, dtype).astype(np.float64)
    return (mean + stddev * np.clip(np.sqrt(2) * special.erfinv((2 * u - 1) * special.erf(np.sqrt(2))), -2, 2)).astype(DTYPES[dtype])


def exponential(key, shape, scale=1, dtype="f32"):
    return (-scale * np.log1p(-uniforms(key, shape, dtype))).astype(DTYPES[dtype])


def gumbel(key, shape, location=0, scale=1, dtype="f32"):
    u = np.maximum(uniforms(key, shape, dtype), 2.0 ** (-25 if dtype == "f32" else -54))
    return (location - scale * np.log(-np.log1p(-u))).astype(DTYPES[dtype])


def laplace(key, shape, location=0, scale=1, dtype="f32"):
    size, side = -np.log1p(-uniforms(key, shape, dtype)), uniform(stream(key, 0x3C6EF372), shape, dtype)
    return (location + scale * np.where(side < 0.5, size, -size)).astype(DTYPES[dtype])


def integers(key, shape, low, high, dtype="i64"):
    """Words as signed numbers, modulo the count of integers."""
    bits = words(key, int(np.prod(shape))).astype(np.int64).reshape(shape)
    return (np.mod(bits, high - low) + low).astype(DTYPES[dtype])


for key, dtype in each([array("i64", key) for key in KEYS[:2]], FLOATS):
    case("random_truncated_normal", truncated_normal, key, shape=[6], mean=1.0, stddev=2.0, dtype=dtype, within=Within(2, of=4))
    case("random_exponential", exponential, key, shape=[2, 3], scale=2.0, dtype=dtype, within=Within(2))
    case("random_gumbel", gumbel, key, shape=[6], location=0.0, scale=1.0, dtype=dtype, within=Within(4, of=2))
    case("random_laplace", laplace, key, shape=[6], location=0.0, scale=1.0, dtype=dtype, within=Within(2))
    p = array(dtype, [0, 0.25, 0.5, 0.75, 1, np.nan])
    case("random_bernoulli", lambda key, p, shape, dtype=dtype: uniform(key, shape, dtype) < p, key, p, shape=[6])
    logits = draw(dtype, 4, 3)
    case("random_categorical", lambda key, x, dtype=dtype: np.argmax(x + gumbel(key, x.shape, dtype=dtype), -1), key, logits)
for key, (low, high, dtype) in each([array("i64", key) for key in KEYS], [(0, 10, "i64"), (-5, 6, "i32"), (0, 256, "u8"), (-(2**62), 2**62 - 1, "i64")]):
    case("random_integers", integers, key, shape=[6], low=low, high=high, dtype=dtype)


def permutation(key, count):
    """The order of words of another stream, as signed numbers."""
    return np.argsort(words(stream(key, 0x510E527F), count).astype(np.int64), kind="stable")


for key in [array("i64", key) for key in KEYS]:
    case("random_permutation", permutation, key, count=9)
    for axis in [0, -1]:
        x = draw("f32", 4, 3)
        case("random_shuffle", lambda key, x, axis: np.take(x, permutation(key, x.shape[axis]), axis), key, x, axis=axis)
