#!/usr/bin/env python3
"""`headers.py [--compiler C]... [--runs N]`: what the public headers cost who includes them.

The user time to compile examples/linear_regression.cpp with -O2, and wengert.h with an empty main, beside the standard headers that both reach with an empty
main; alternating, the median of the ratios. The goal is 2 for the example.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def standard_headers(header, seen):
    """The standard headers that a public header reaches, and those of the example."""
    names = set()
    with open(header, encoding="utf-8") as text:
        for mark, name in re.findall(r'^#include ([<"])([^>"]+)[>"]', text.read(), re.M):
            path = name.removeprefix("wengert/") if name.startswith("wengert/runtime/") else name if mark == '"' else f"frontend/{name}"
            path = os.path.join(SOURCE, path)
            if not os.path.exists(path):
                if re.fullmatch(r"[a-z_]+", name):
                    names.add(name)
            elif path not in seen:
                seen.add(path)
                names |= standard_headers(path, seen)
    return names


def user_seconds(compiler, program, output):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    include = [f"-I{SOURCE}/frontend", f"-I{SOURCE}/build/include", f"-I{SOURCE}"]
    subprocess.run([compiler, "-std=c++20", "-O2", *include, "-c", program, "-o", output], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compiler", action="append", help="default: clang++-22 and g++")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    example = os.path.join(SOURCE, "examples", "linear_regression.cpp")
    names = sorted(standard_headers(example, set()))
    with tempfile.TemporaryDirectory() as folder:
        programs = {"standard headers": os.path.join(folder, "standard.cpp"), "wengert.h": os.path.join(folder, "wengert.cpp"), "linear_regression": example}
        for title, lines in (("standard headers", [f"#include <{name}>" for name in names]), ("wengert.h", ["#include <wengert/wengert.h>"])):
            with open(programs[title], "w", encoding="utf-8") as text:
                text.write("\n".join(lines) + "\nint main() {}\n")
        for compiler in options.compiler or ["clang++-22", "g++"]:
            samples = [{title: user_seconds(compiler, program, os.path.join(folder, "out.o")) for title, program in programs.items()} for _ in range(options.runs)]
            print(f"{compiler}: {len(names)} standard headers")
            for title in programs:
                ratio = statistics.median(sample[title] / sample["standard headers"] for sample in samples)
                print(f"  {title:18} {min(sample[title] for sample in samples):5.2f} s  {ratio:5.2f}")


if __name__ == "__main__":
    main()
