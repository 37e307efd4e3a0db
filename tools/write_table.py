#!/usr/bin/env python3
"""`write_table.py PAGE TABLE BEGIN END`: puts the file TABLE between the comments BEGIN and END of PAGE."""
import sys


def main(page, table, begin, end):
    with open(page, encoding="utf-8") as text:
        whole = text.read()
    with open(table, encoding="utf-8") as text:
        rows = text.read().strip()
    begin, end = f"<!-- {begin} -->", f"<!-- {end} -->"
    with open(page, "w", encoding="utf-8") as text:
        text.write(whole[: whole.index(begin)] + begin + "\n\n" + rows + "\n\n" + whole[whole.index(end) :])


if __name__ == "__main__":
    main(*sys.argv[1:])
