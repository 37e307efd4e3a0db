#!/usr/bin/env python3
"""`repeat.py PROGRAM MODE RUNS`: runs the program so many times, with the number of the run as its last argument; every run must end with status 0 and
print nothing. A run that has not ended after two minutes hangs, and fails."""
import subprocess
import sys

program, mode, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
for run in range(runs):
    try:
        done = subprocess.run([program, mode, str(run)], capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        sys.exit(f"{mode}, run {run}: it hangs")
    if done.returncode != 0 or done.stdout or done.stderr:
        sys.exit(f"{mode}, run {run}: status {done.returncode}\n{done.stdout}{done.stderr}")
