#!/usr/bin/env python3
"""Writes special.inc beside it: functions at points of f64, many of them of f32 too, in 40 digits and rounded. Needs mpmath, which no test does.

  WG_SPECIAL(function, x, value)        WG_SPECIAL2(function, a, b, value)
"""
import os
import random
import struct

import mpmath as mp

mp.mp.dps = 40


def narrow(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def spread(low, high, count, seed):
    """Numbers of f32 in an interval: half of them even, half with even exponents where it has one sign."""
    rng = random.Random(seed)
    xs = [narrow(rng.uniform(low, high)) for _ in range(count)]
    if low * high > 0:
        sign = 1 if low > 0 else -1
        a, b = sorted((abs(low), abs(high)))
        xs += [narrow(sign * a * (b / a) ** rng.random()) for _ in range(count)]
    return [x for x in xs if low <= x <= high]


def lgamma(x):
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.re(mp.loggamma(x))


tiny, largest = 5e-324, 1.7976931348623157e308
ONE = {
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), spread(1e-30, 1e30, 8, 1) + [-8.0, -27.0, 1e-310, tiny, largest]),
    "exp2": (lambda x: mp.power(2, x), spread(-100, 100, 12, 2) + [-1074.0, -1073.5, -1022.25, 1023.75, 1e-20, 0.5]),
    "log2": (lambda x: mp.log(x) / mp.log(2), spread(0.5, 2, 8, 3) + spread(1e-30, 1e30, 6, 4) + [tiny, largest, 1 - 2**-53, 1 + 2**-52, 8.0]),
    "log10": (mp.log10, spread(0.5, 2, 8, 5) + spread(1e-30, 1e30, 6, 6) + [tiny, largest, 1 - 2**-53, 1 + 2**-52, 1e22, 1e-5]),
    "tan": (mp.tan, spread(-1.5, 1.5, 8, 7) + spread(1, 1e5, 6, 8) + [1e22, 1e-300]),
    "asin": (mp.asin, spread(-1, 1, 12, 9) + [1 - 2**-53, 1e-9, 1.0]),
    "acos": (mp.acos, spread(-1, 1, 12, 10) + [1 - 2**-53, 1e-9, -1.0]),
    "atan": (mp.atan, spread(-3, 3, 8, 11) + [1e-300, 1e15, -1e300]),
    "sinh": (mp.sinh, spread(-3, 3, 8, 12) + spread(3, 88, 8, 13) + [1e-9, 1e-300, tiny, 710.0, 710.4, -709.9]),
    "cosh": (mp.cosh, spread(-3, 3, 8, 14) + spread(3, 88, 8, 15) + [1e-9, 710.0, 710.4, -709.9]),
    "asinh": (mp.asinh, spread(-3, 3, 8, 16) + spread(1e-20, 1e30, 10, 17) + [1e-300, tiny, largest, 2.0**28, 2.0**27 + 1]),
    "acosh": (mp.acosh, spread(1, 4, 8, 18) + spread(2, 1e30, 10, 19) + [1 + 2**-52, 1 + 2.0**-23, largest, 2.0**28, 2.0**27 + 1]),
    "atanh": (mp.atanh, spread(-1, 1, 12, 20) + spread(1e-20, 1e-3, 5, 21) + [1 - 2**-53, tiny]),
    "erfc": (mp.erfc, spread(-3, 3, 8, 22) + spread(3, 9, 8, 23) + [26.0, -1e-20]),
    "erfinv": (mp.erfinv, spread(-1, 1, 12, 24) + spread(1e-20, 0.1, 6, 25) + [0.5, 0.85, narrow(0.85), 1 - 2**-53, 1 - 2.0**-24, 1 - 2.0**-11, 1e-300, tiny, 1 - 1e-9]),
    "lgamma": (lgamma, spread(0.01, 3, 12, 26) + spread(2, 20, 12, 27) + spread(20, 1e30, 8, 28) + spread(-8, -0.01, 12, 29)
               + [tiny, 1e-300, 1 + 2.0**-23, 2 - 2.0**-22, 1 + 2**-52, 2 + 2**-51, 1e300, -1e-300, -tiny, 2.5, 8.0, 0.5, -100.5, -1000.25]),
    "digamma": (mp.digamma, spread(0.01, 3, 12, 30) + spread(2, 40, 12, 31) + spread(40, 1e30, 8, 32) + spread(-8, -0.01, 12, 33)
                + [tiny * 2**60, 1e-300, 1e300, -1e-300, 1.0, 1.4616321449683622, 10.0, -100.75, -1000.25]),
    "polygamma1": (lambda x: mp.polygamma(1, x), spread(0.01, 3, 12, 34) + spread(2, 40, 8, 35) + spread(40, 1e30, 6, 36) + spread(-8, -0.01, 12, 37)
                   + [1e-150, 1e300, 1.0, -100.75]),
    "polygamma2": (lambda x: mp.polygamma(2, x), spread(0.01, 3, 12, 38) + spread(2, 40, 8, 39) + spread(40, 1e10, 6, 40) + spread(-8, -0.01, 12, 41) + [1.0, -100.75]),
    "polygamma5": (lambda x: mp.polygamma(5, x), spread(0.1, 3, 12, 42) + spread(2, 40, 8, 43) + spread(40, 1e3, 6, 44) + spread(-8, -0.1, 12, 45) + [1.0, -20.75]),
    "polygamma30": (lambda x: mp.polygamma(30, x), spread(0.5, 3, 6, 46) + spread(2, 300, 12, 47) + [1.0, -1.25]),
}
rng = random.Random(48)
PAIRS = [(narrow(rng.uniform(-4, 4)), narrow(rng.uniform(-4, 4))) for _ in range(20)]
TWO = {
    "atan2": (mp.atan2, PAIRS + [(1e-300, -1.0), (1e300, 1e300), (2.0, 0.0), (-1.0, 0.0)]),
    "hypot": (mp.hypot, PAIRS + [(1e-320, 1e-320), (1e308, 1e308), (3.0, 4.0), (1e-200, 1.0), (tiny, tiny)]),
    "logaddexp": (lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), PAIRS + [(-1000.0, -1000.5), (800.0, 0.0), (700.0, 699.5), (-40.0, 0.0)]),
}


def rows():
    for name, (function, points) in ONE.items():
        for x in points:
            yield f"WG_SPECIAL({name}, {x.hex()}, {float(function(mp.mpf(x))).hex()})"
    for name, (function, points) in TWO.items():
        for a, b in points:
            yield f"WG_SPECIAL2({name}, {a.hex()}, {b.hex()}, {float(function(mp.mpf(a), mp.mpf(b))).hex()})"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "special.inc"), "w", encoding="utf-8") as out:
    out.write("// Written by special.py: values in 40 digits, rounded to f64.\n" + "\n".join(rows()) + "\n")
