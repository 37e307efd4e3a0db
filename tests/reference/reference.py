#!/usr/bin/env python3
"""`reference.py`: writes the tables beside it, values of the public functions as NumPy and SciPy have them, which ReferenceTest.cpp reads.
`reference.py --check REPORT`: whether the tables are what it would write. Needs numpy and scipy; the check says aloud that it was skipped where they are missing.

Each family of functions is a file: lines `case(name, expression, operands..., options...)`, whose forms are in tables.py. A value with a bound may differ within it between versions of
NumPy, SciPy and the C library; all else must be the same.
"""
import json
import math
import os
import sys
import xml.sax.saxutils as xml

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ("elementwise", "reductions", "shapes", "products", "losses", "randoms", "functions", "arrays", "linalg", "layers", "draws", "corners")


def written():
    """The text of each table."""
    import tables

    for name in FAMILIES:
        __import__(name)
    return {name: "".join(line + "\n" for line in tables.lines_of(cases)) for name, cases in tables.CASES.items()}


def close(a, b, dtype, ulp, scale):
    """Whether two stored numbers are within a bound of each other. Twice: one may be to one side of the exact value, and one to the other."""
    import numpy as np
    from tables import DTYPES

    a, b = float(a), float(b)
    if a == b or math.isnan(a) and math.isnan(b):
        return True
    return ulp > 0 and abs(a - b) <= 2 * ulp * float(np.spacing(DTYPES[dtype](abs(b if scale is None else scale))))


def same(line, other):
    """Whether two lines differ in numbers alone, and in those within their bound."""
    a, b = json.loads(line), json.loads(other)
    ulp, scale = b.get("ulp", 0), b.get("scale")
    outs = [(case.pop("out", []), case.pop("scale", None)) for case in (a, b)]
    if a != b or len(outs[0][0]) != len(outs[1][0]):
        return False
    for x, y in zip(outs[0][0], outs[1][0]):
        numbers, others = x.pop(), y.pop()
        scales = scale if isinstance(scale, list) else [scale] * len(others)
        if x != y or len(numbers) != len(others) or not all(close(p, q, y[0], ulp, s) for p, q, s in zip(numbers, others, scales)):
            return False
    return True


def differences(name, text):
    path = os.path.join(HERE, name + ".jsonl")
    found = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []
    wanted = text.splitlines()
    if len(found) != len(wanted):
        yield f"{name}.jsonl has {len(found)} lines, {len(wanted)} would be written: run tests/reference/reference.py"
    for number, (line, other) in enumerate(zip(found, wanted), 1):
        if line != other and not same(line, other):
            yield f"{name}.jsonl:{number} is {line[:200]}, not {other[:200]}: run tests/reference/reference.py"
            return


def check(report):
    try:
        import numpy, scipy
    except ImportError as missing:
        print(f"skipped: {missing}")
        return cases_to(report, [("tables_are_current", f'<skipped message="{xml.escape(str(missing))}"/>')], 0)
    breaches = [breach for name, text in written().items() for breach in differences(name, text)]
    print("".join(f"{breach}\n" for breach in breaches), end="")
    inner = f"<failure>{xml.escape(chr(10).join(breaches))}</failure>" if breaches else ""
    return cases_to(report, [("tables_are_current", inner)], 1 if breaches else 0)


def cases_to(report, cases, status):
    with open(report, "w", encoding="utf-8") as out:
        out.write("<testsuite>" + "".join(f'<testcase classname="reference" name="{name}">{inner}</testcase>' for name, inner in cases) + "</testsuite>")
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(sys.argv[2]))
    for name, text in written().items():
        with open(os.path.join(HERE, name + ".jsonl"), "w", encoding="utf-8") as out:
            out.write(text)
