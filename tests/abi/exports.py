#!/usr/bin/env python3
"""`exports.py LIBRARY SOURCE [--write]`: the library shows the names that docs/abi.md lists, all of them and no others. With --write the list is written anew.

A name of the list is a class with all its members, or a function with all its overloads; constructors, type infos and virtual tables belong to their class.
"""
import os
import re
import subprocess
import sys
import textwrap

BEGIN, END = "<!-- exported names: written by tests/abi/exports.py --write -->", "<!-- end of the exported names -->"
ABOUT = re.compile(r"^(typeinfo name for|typeinfo for|vtable for|VTT for|guard variable for) ")
# Symbols of the linker, of sanitizers and of the version node: no names of C++.
FOREIGN = re.compile(r"^(_init|_fini|__bss_start|_edata|_end|__(asan|lsan|ubsan|tsan|sanitizer|odr_asan)\w*|WENGERT_[\d.]+)$")


def name_of(symbol):
    """`wg::List<int>::size(wg::Where) const` -> `wg::List::size`: before the first parenthesis of the arguments, without those of templates."""
    symbol = ABOUT.sub("", symbol)
    symbol = symbol.replace("operator()", "operator\0")
    depth, name = 0, ""
    for at, character in enumerate(symbol):
        before = symbol[:at]
        operator = re.search(r"operator[^\w\s(]*$", before)
        if character == "<" and not operator:
            depth += 1
        elif character == ">" and not operator and depth:
            depth -= 1
        elif character in "([" and depth == 0 and not (character == "[" and (operator or before.endswith("]"))):
            break
        elif depth == 0:
            name += character
    return name.replace("\0", "()").strip()


def shown(library):
    dynamic = subprocess.run(["nm", "-D", "--defined-only", "-C", library], capture_output=True, text=True, check=True).stdout
    for line in dynamic.splitlines():
        kind, symbol = re.match(r"^[0-9a-f ]{16} (\w) (.*)$", line).groups()
        symbol = re.sub(r"@@?WENGERT_[\d.]+$", "", symbol)
        if not FOREIGN.match(symbol):
            yield symbol


def classes(source):
    """The qualified names of the classes that public headers declare with WENGERT_API."""
    found = set()
    for folder in ("frontend/wengert", "runtime"):
        for directory, _, names in os.walk(os.path.join(source, folder)):
            for name in names:
                if name.endswith(".h"):
                    with open(os.path.join(directory, name), encoding="utf-8") as text:
                        found |= set(re.findall(r"^(?:template <.*> )?(?:class|struct) (?:\[\[\w+\]\] )?WENGERT_API (\w+)", text.read(), re.M))
    return found


def names(library, source):
    known, found = classes(source), set()
    for symbol in shown(library):
        parts, kept = name_of(symbol).split("::"), []
        for part in parts:
            kept.append(part)
            if part in known and parts[0] == "wg":
                break
        found.add("::".join(kept))
    return sorted(found)


def listed(page):
    inside = page[page.index(BEGIN) : page.index(END)]
    found = []
    for line in re.findall(r"^- `([\w:]+)`: (.*(?:\n  .*)*)", inside, re.M):
        found += [f"{line[0]}::{name}" for name in re.findall(r"`([^`]+)`", line[1])]
    return sorted(found)


def written(found):
    spaces = {}
    for name in found:
        space, _, last = name.rpartition("::")
        spaces.setdefault(space, []).append(f"`{last}`")
    return "\n".join(textwrap.fill(f"- `{space}`: {' '.join(spaces[space])}", 160, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
                     for space in sorted(spaces))


def main(library, source, write):
    path = os.path.join(source, "docs", "abi.md")
    with open(path, encoding="utf-8") as text:
        page = text.read()
    found = names(library, source)
    strangers = [name for name in found if not name.startswith("wg::")]
    for name in strangers:
        print(f"{library} shows {name}, which is not of Wengert")
    if write and not strangers:
        with open(path, "w", encoding="utf-8") as text:
            text.write(page[: page.index(BEGIN)] + BEGIN + "\n\n" + written(found) + "\n\n" + page[page.index(END) :])
        return 0
    known = listed(page)
    for name in sorted(set(found) - set(known)):
        print(f"{library} shows {name}, which docs/abi.md does not list: hide it, or write the list anew with --write")
    for name in sorted(set(known) - set(found)):
        print(f"docs/abi.md lists {name}, which {library} does not show: who is linked against it finds it no more")
    print(f"{len(found)} names shown, {len(known)} listed")
    return 0 if found == known else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--write" in sys.argv[3:]))
