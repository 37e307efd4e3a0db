#!/usr/bin/env python3
"""`checkpoints.py WENGERT REPORT`: trainings of the command line that are killed, and go on from their checkpoints. A test is a function `test_*`."""
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # beside the sources
from cli import main

WENGERT = sys.argv[1]


def train(*args, epochs=6, **options):
    return subprocess.run([WENGERT, "train", "digits", "--epochs", str(epochs), *args], capture_output=True, text=True, timeout=300, **options)


def rows(text):
    """Number, loss and accuracy of each epoch that was printed."""
    return re.findall(r"epoch +(\d+)/\d+  loss ([\d.]+)  accuracy ([\d.]+) %", text)


def files(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def test_a_killed_training_goes_on(folder):
    for extra in ([], ["--eager", "--optimizer", "momentum"]):
        whole = train(*extra)
        assert whole.returncode == 0 and len(rows(whole.stdout)) == 6, whole
        run = os.path.join(folder, "run" + str(len(extra)))
        child = subprocess.Popen([WENGERT, "train", "digits", "--epochs", "6", "--checkpoints", run, "--checkpoint-every", "7", *extra], stdout=subprocess.DEVNULL)
        while not files(run) or not files(run)[-1].startswith("checkpoint-"):
            assert child.poll() is None
            time.sleep(0.001)
        child.kill()
        child.wait()
        resumed = train("--checkpoints", run, "--checkpoint-every", "7", *extra)
        assert resumed.returncode == 0 and re.search(r"^goes on at step \d+: \d+ epochs and \d+ batches are done$", resumed.stdout, re.M), resumed
        seen = rows(resumed.stdout)
        assert seen and seen == rows(whole.stdout)[-len(seen):], (whole.stdout, resumed.stdout)
        assert len(files(run)) == 5 and all(re.fullmatch(r"checkpoint-\d{9}\.wg", name) for name in files(run)), files(run)
        assert files(run)[-1] == "checkpoint-000000270.wg"


def test_a_training_that_is_done_takes_more_epochs(folder):
    run = os.path.join(folder, "run")
    first = train("--checkpoints", run, epochs=2)
    assert first.returncode == 0 and files(run) == ["checkpoint-000000090.wg"], (first, files(run))
    again = train("--checkpoints", run, epochs=2)
    assert again.returncode == 0 and rows(again.stdout) == [] and "goes on at step 90: 2 epochs and 0 batches are done" in again.stdout, again
    more = train("--checkpoints", run, epochs=4)
    assert more.returncode == 0 and rows(more.stdout) == [row for row in rows(train(epochs=4).stdout) if int(row[0]) > 2], more


def test_another_training_is_refused(folder):
    run = os.path.join(folder, "run")
    assert train("--checkpoints", run, epochs=1).returncode == 0
    other = train("--checkpoints", run, "--batch", "16")
    assert other.returncode == 2 and other.stderr.count("\n") == 1 and "--batch 32" in other.stderr and "--batch 16" in other.stderr, other
    for extra, phrase in ((["--hidden", "8"], "f32[64,8]"), (["--optimizer", "sgd"], "optimizer")):
        other = train("--checkpoints", run, *extra)
        assert other.returncode != 0 and phrase in other.stderr, other
    assert files(run) == ["checkpoint-000000045.wg"]


def test_a_damaged_checkpoint_is_passed_over(folder):
    run = os.path.join(folder, "run")
    assert train("--checkpoints", run, "--checkpoint-every", "30", epochs=2).returncode == 0
    assert files(run)[-2:] == ["checkpoint-000000060.wg", "checkpoint-000000090.wg"]
    with open(os.path.join(run, "checkpoint-000000090.wg"), "r+b") as out:
        out.seek(5000)
        out.write(b"damage")
    resumed = train("--checkpoints", run, epochs=2)
    assert resumed.returncode == 0 and resumed.stderr.count("warning: ") == 1 and "checkpoint-000000090.wg" in resumed.stderr, resumed
    assert "goes on at step 60: 1 epochs and 15 batches are done" in resumed.stdout and rows(resumed.stdout) == rows(train(epochs=2).stdout)[1:], resumed


def test_one_training_at_a_time(folder):
    run = os.path.join(folder, "run")
    child = subprocess.Popen([WENGERT, "train", "digits", "--epochs", "100000", "--checkpoints", run], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if line.startswith("epoch"):
            break
    other = train("--checkpoints", run)
    child.kill()
    child.communicate()
    assert other.returncode == 1 and "another manager, of this process or another, has the directory" in other.stderr, other


def test_usage(folder):
    for args in (["--checkpoint-every", "5"], ["--checkpoints", folder, "--checkpoint-every", "0"], ["--checkpoints", folder, "--dump-ir", "fused"], ["--checkpoints", ""]):
        run = train(*args)
        assert run.returncode == 2 and run.stdout == "" and run.stderr.startswith("wengert: "), run


if __name__ == "__main__":
    sys.exit(main(globals(), "cli_checkpoints", sys.argv[2]))
