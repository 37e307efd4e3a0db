#!/usr/bin/env python3
"""`compare.py PROGRAM EXPECTED`: runs PROGRAM and compares what it prints with the file. Exit status 1 and a diff where they differ.

Lines are equal if they are equal as text, or if they differ only in numbers that differ by less than 1 in the sixth digit. A `...` in the expected
text stands for any characters of one line: times and source paths differ from machine to machine.
"""
import difflib
import re
import subprocess
import sys

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w])")


def same(line, pattern):
    if line == pattern:
        return True
    if "..." in pattern:
        parts = [re.escape(part) for part in pattern.split("...")]
        return re.fullmatch(".*".join(parts), line) is not None
    if NUMBER.sub("#", line) != NUMBER.sub("#", pattern):
        return False
    for a, b in zip(NUMBER.findall(line), NUMBER.findall(pattern)):
        if a != b and ("." not in a or abs(float(a) - float(b)) > 1e-5 * max(abs(float(a)), abs(float(b)))):
            return False
    return True


def main(program, expected):
    run = subprocess.run([program], capture_output=True, text=True, timeout=300)
    got, want = run.stdout.splitlines(), open(expected).read().splitlines()
    if run.returncode == 0 and len(got) == len(want) and all(map(same, got, want)):
        return 0
    print(f"{program}: exit status {run.returncode}")
    print("\n".join(difflib.unified_diff(want, got, "expected", "printed", lineterm="")))
    print(run.stderr, end="")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
