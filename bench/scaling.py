"""On paper: what a data parallel step takes on 8 to 1,024 ranks, from what one rank takes (docs/machines.md, "On more ranks than there are here").

usage: scaling.py [ALPHA_US BETA_GB_S]      a message's latency and a rank's bandwidth each way; without, of two networks
"""
import math
import sys

BUCKET = 4 << 20  # DataParallelOptions::bucket_bytes
OVERLAPPED = {"784-1024-1024-10": 0.78, "784-128-10": 0.33}  # of the time that sums are on their way: bench/ranks steps
# Milliseconds of a step of one rank: a part of its own and one for each row (bench/ranks steps: 64 and 512, 128 and 1,024 rows); bytes of gradients.
STEPS = {"784-128-10": (0.031, 0.00295, 407_084), "784-1024-1024-10": (2.5, 0.0694, 7_454_764)}
SUMS = 8e9  # bytes/s of adding what came to what is there: reads two, writes one


def communication(ranks, size, alpha, beta, halving=False):
    """Seconds: for each bucket each rank sends every other one its piece, sums its own, and all gather the sums by doubling. By recursive halving, which
    has the same bits for powers of two and is not built, the first are log2(ranks) messages as well."""
    rounds = math.ceil(math.log2(ranks))
    messages = math.ceil(size / BUCKET) * ((rounds if halving else ranks - 1) + rounds)
    return messages * alpha + 2 * (ranks - 1) / ranks * size / beta + size / SUMS


def step(name, rows, ranks, alpha, beta, halving=False):
    own, row, size = STEPS[name]
    wait = (1 - OVERLAPPED[name]) * communication(ranks, size, alpha, beta, halving) + math.ceil(math.log2(ranks)) * alpha if ranks > 1 else 0
    return own * 1e-3 + rows * row * 1e-3 + wait


networks = [(float(sys.argv[1]) * 1e-6, float(sys.argv[2]) * 1e9)] if len(sys.argv) == 3 else [(2e-6, 12e9), (20e-6, 1.2e9)]
for alpha, beta in networks:
    print(f"latency {alpha * 1e6:g} us, {beta / 1e9:g} GB/s each way\n")
    print("| network | rows a rank | " + " | ".join(f"{2 ** k:,}" for k in (0, 3, 5, 7, 10)) + " | 1,024, halving |")
    print("|---|--:|" + "--:|" * 6)
    for name, rows in [("784-128-10", 64), ("784-128-10", 512), ("784-1024-1024-10", 128), ("784-1024-1024-10", 1024)]:
        one = step(name, rows, 1, alpha, beta)
        cells = [step(name, rows, 2**k, alpha, beta) for k in (0, 3, 5, 7, 10)] + [step(name, rows, 1024, alpha, beta, True)]
        print(f"| {name} | {rows} | " + " | ".join(f"{t * 1e3:.2f} ms" + (f" ({one / t:.0%})" if t != one else "") for t in cells) + " |")
    print()
