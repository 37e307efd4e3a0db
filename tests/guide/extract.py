#!/usr/bin/env python3
"""`extract.py GUIDE.md DIRECTORY`: writes each ```cpp block of the guide, which is a whole program, as DIRECTORY/guide_N.cpp, and the ```text block that
must follow it as guide_N.expected. Prints the names. A file that would not change is left as it is.
"""
import os
import re
import sys


def write(path, text):
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        open(path, "w", encoding="utf-8").write(text)


def main(guide, directory):
    text = open(guide, encoding="utf-8").read()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    names = []
    for (kind, program), (after, expected) in zip(blocks, blocks[1:] + [("", "")]):
        if kind != "cpp":
            continue
        if after != "text" or "int main()" not in program:
            sys.exit(f"{guide}: a ```cpp block is a whole program, and a ```text block with what it prints follows it:\n{program}")
        names.append(f"guide_{len(names) + 1}")
        write(os.path.join(directory, names[-1] + ".cpp"), program)
        write(os.path.join(directory, names[-1] + ".expected"), expected)
    if not names:
        sys.exit(f"{guide}: no programs")
    print(" ".join(names))


if __name__ == "__main__":
    main(*sys.argv[1:])
