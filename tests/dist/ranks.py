"""Ranks that mpirun has started compute the same bits as ranks that are threads; what goes wrong on one ends all, and names it.

usage: ranks.py PROGRAM LIBRARY programs|faults      exit status 77 where there is no MPI
"""
import os
import shutil
import subprocess
import sys
import time

program, library, what = sys.argv[1:]
if not os.path.exists(library) or not shutil.which("mpirun"):
    print("skipped: Open MPI is not installed (libopenmpi-dev, openmpi-bin)")
    sys.exit(77)
# As root mpirun asks to be allowed.
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", WENGERT_NUM_THREADS="1")


def run(ranks, *arguments):
    """What it prints, its status, the seconds that it took."""
    begin = time.monotonic()
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", str(ranks), program, *arguments], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.stdout, done.returncode, time.monotonic() - begin


def programs():
    count = os.environ.get("WENGERT_RANDOM_PROGRAMS", "12")
    seed = os.environ.get("WENGERT_RANDOM_SEED", "1")
    for ranks in (1, 2, 3, 4):
        threads = subprocess.run([program, "programs", seed, count, "--threads", str(ranks)], env=environment, text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        processes, status, _ = run(ranks, "programs", seed, count)
        print(processes, end="")
        if status != 0 or processes != threads:
            sys.exit(f"with {ranks} ranks: threads say\n{threads}and processes, status {status},\n{processes}")


def faults():
    # In 3 s a rank is late; 10 s is the most that a job may go on.
    says = {"killed": "rank 1", "exits": "", "throws": "rank 1 has no data", "late": "rank 1 has not come",
            "shape": "rank 1 is at all_reduce_sum of 4 f32", "order": "rank 1 is at all_gather of 5 f32"}
    for kind, text in says.items():
        output, status, seconds = run(3, "fault", kind)
        print(f"{kind}: status {status}")
        if status == 0 or (kind == "exits" and status != 3) or text not in output or seconds > 30:
            sys.exit(f"{kind}: status {status} after {seconds:.1f} s, without '{text}':\n{output}")


{"programs": programs, "faults": faults}[what]()
