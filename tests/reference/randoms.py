"""Random bits as a function of key and element number, written again from the paper: Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), and what
runtime/Random.h says of its words."""
import numpy as np

from tables import *

family("randoms")

MASK = 2**32 - 1


def philox(counter, key):
    """One block of four words."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & MASK, p0 >> 32 ^ c[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # the authors' known answers
assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def words(key, count):
    """Words 0 and 1 of each element's block, as one."""
    k0, k1 = (int(k) % 2**64 for k in key)
    blocks = [philox([i & MASK, i >> 32, k0 >> 32, k1 >> 32], [k0 & MASK, k1 & MASK]) for i in range(count)]
    return np.array([w[0] | w[1] << 32 for w in blocks], np.uint64)


def stream(key, offset):
    return np.array([key[0], (int(key[1]) + (offset << 32) + 2**63) % 2**64 - 2**63])


def uniform(key, shape, dtype):
    bits = words(key, int(np.prod(shape)))
    if dtype == "f32":
        return ((bits & np.uint64(MASK)) >> np.uint64(8)).astype(np.float32).reshape(shape) * np.float32(2.0**-24)
    return (bits >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def split(key, count):
    return list(words(stream(key, 0x6A09E667), 2 * count).astype(np.int64).reshape(count, 2))


def fold_in(key, number):
    """Words of the key's own stream, moved by the number, and their words."""
    own = words(stream(key, 0x510E527F), 2).astype(np.int64)
    return words([own[0], (int(own[1]) + int(number)) % 2**64], 2).astype(np.int64)


def random_uniform(key, shape, low=0, high=1, dtype="f32"):
    """low + (high - low) u, rounded; what would round to high is the number below it."""
    to = DTYPES[dtype]
    x = to(low) + to(high - low) * uniform(key, shape, dtype)
    return np.minimum(x, np.nextafter(to(high), to(low))) if low < high else x


def random_normal(key, shape, mean=0, stddev=1, dtype="f32"):
    """sqrt(-2 log u) cos(2 pi v), with u in (0, 1] (Box and Muller 1958)."""
    wider = np.longdouble if dtype == "f64" else np.float64
    u, v = 1 - uniform(key, shape, dtype), uniform(stream(key, 0x3C6EF372), shape, dtype)
    x = np.sqrt(-2 * np.log(u.astype(wider))) * np.cos(2 * np.pi * v.astype(wider))
    return (mean + stddev * x).astype(DTYPES[dtype])


KEYS = [[7, 0], [-1, 2**63 - 1], [2**40 + 3, -(2**33)]]
for seed in (0, 7, -1, 2**63 - 1, -(2**63)):
    case("random::key", np.array([seed, 0]), seed=seed)
for key, count in each([array("i64", key) for key in KEYS], [1, 3, 0]):
    case("random::split", split, key, count=count)
for key, number in each([array("i64", key) for key in KEYS], [0, 1, -1, 12, 2**40]):
    case("random::fold_in", fold_in, key, array("i64", number))
for key, dtype, shape in each([array("i64", key) for key in KEYS], FLOATS, [[5], [2, 3], [], [0, 2]]):
    case("random_uniform", random_uniform, key, shape=shape, low=0.0, high=1.0, dtype=dtype)
    # log(u), the root and the cosine: the angle 2 pi v has an error of half an ulp, which counts where the cosine is small.
    case("random_normal", random_normal, key, shape=shape, mean=0.0, stddev=1.0, dtype=dtype, within=Within(2, of=2))
for dtype in FLOATS:  # one product and one sum, which a kernel may contract
    case("random_uniform", random_uniform, array("i64", [3, 1]), shape=[8], low=-2.0, high=5.0, dtype=dtype, within=Within(1, of=5))
    case("random_normal", random_normal, array("i64", [3, 1]), shape=[8], mean=3.0, stddev=2.0, dtype=dtype, within=Within(2, of=4))
