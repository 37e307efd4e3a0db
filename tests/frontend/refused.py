"""refused.py COMPILER BUILD: tests/frontend/refused.cpp has the errors that its comments say, each at its line, and no others."""
import os
import re
import subprocess
import sys

compiler, build = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
source = os.path.join(here, "refused.cpp")
wanted = {}
for number, line in enumerate(open(source, encoding="utf-8"), 1):
    match = re.match(r"\s+\S.*;\s+// (.+)$", line)
    if match:
        wanted[number] = match.group(1)
run = subprocess.run([compiler, "-std=c++20", "-ferror-limit=0", "-fsyntax-only", f"-I{root}/frontend", f"-I{build}/include", f"-I{root}", source], capture_output=True, text=True)

# An error in a header belongs to the line of the program that its notes end at.
found, message = {}, None
for line in run.stderr.splitlines():
    if match := re.search(r"error: (.*)", line):
        message = match.group(1)
    if message and (match := re.match(r".*refused\.cpp:(\d+):\d+: (error|note: in instantiation)", line)):
        found.setdefault(int(match.group(1)), []).append(message)
        message = None
wrong = [f"line {n}: {message}" for n in found if n not in wanted for message in found[n]]
for number, text in wanted.items():
    messages = found.get(number, [])
    if len(messages) != 1 or text not in messages[0]:
        wrong.append(f"line {number}: wanted one error with '{text}', found {messages}")
if not wanted:
    wrong.append("no lines to check")
print("\n".join(wrong) or f"{len(wanted)} lines are refused, each with its error")
sys.exit(bool(wrong))
