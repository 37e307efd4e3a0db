#!/usr/bin/env python3
"""`extract.py PAGE.md DIRECTORY`: writes each ```cpp block of the page, which is a whole program, as DIRECTORY/PAGE_N.cpp, and the ```text block that
must follow it as PAGE_N.expected. Prints the names. A file that would not change is left as it is.
"""
import os
import re
import sys


def write(path, text):
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        open(path, "w", encoding="utf-8").write(text)


def main(page, directory):
    stem = os.path.splitext(os.path.basename(page))[0]
    text = open(page, encoding="utf-8").read()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    names = []
    for (kind, program), (after, expected) in zip(blocks, blocks[1:] + [("", "")]):
        if kind != "cpp":
            continue
        if after != "text" or "int main()" not in program:
            sys.exit(f"{page}: a ```cpp block is a whole program, and a ```text block with what it prints follows it:\n{program}")
        names.append(f"{stem}_{len(names) + 1}")
        write(os.path.join(directory, names[-1] + ".cpp"), program)
        write(os.path.join(directory, names[-1] + ".expected"), expected)
    if not names:
        sys.exit(f"{page}: no programs")
    print(" ".join(names))


if __name__ == "__main__":
    main(*sys.argv[1:])
