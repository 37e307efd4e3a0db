"""Ranks that mpirun has started compute the same bits as ranks that are threads; what goes wrong on one ends all, and names it.

usage: ranks.py PROGRAM LIBRARY programs|saved|faults|train|characters [DATA]      exit status 77 where there is no MPI
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

program, library, what = sys.argv[1:4]
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
    said = set()
    for ranks in (1, 2, 3, 4):
        threads = subprocess.run([program, "steps", seed, count, "--threads", str(ranks)], env=environment, text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        processes, status, _ = run(ranks, "steps", seed, count)
        said |= {threads, processes}
        if status != 0 or len(said) != 1:
            sys.exit(f"data parallel steps of {ranks} ranks, status {status}, are others than those of fewer:\n{processes}{said}")
    print(f"1 to 4 ranks: {said.pop()}", end="")


def saved():
    with tempfile.TemporaryDirectory() as directory:
        said = set()
        for writers in (3, 1, 4, 2):  # over what others have written
            output, status, _ = run(writers, "save", directory)
            if status != 0:
                sys.exit(f"{writers} ranks cannot save:\n{output}")
            files = [name for name in os.listdir(directory + "/computation") if name.startswith("variables")]
            print(f"{writers} ranks wrote {len(files)} files of variables and {len(os.listdir(directory)) - 1} of weights")
            if len(files) < min(writers, 3):  # one of the arrays is most of the bytes
                sys.exit(f"{writers} ranks wrote {files}")
            for readers in (1, 2, 4):
                output, status, _ = run(readers, "load", directory)
                said.add(output)
                if status != 0 or len(said) != 1:
                    sys.exit(f"{readers} ranks read what {writers} wrote, status {status}:\n{output}{said}")


def faults():
    # In 3 s a rank is late; 10 s is the most that a job may go on.
    says = {"killed": "rank 1", "exits": "", "throws": "rank 1 has no data", "late": "rank 1 has not come",
            "shape": "rank 1 is at all_reduce_sum of 4 f32", "order": "rank 1 is at all_gather of 5 f32",
            "step-data": "no/such/file", "step-late": "rank 1 has not come", "step-shape": "rank 1", "step-program": "(call 1 of that step)"}
    for kind, text in says.items():
        output, status, seconds = run(3, "fault", kind)
        print(f"{kind}: status {status} after {seconds:.1f} s")
        if status == 0 or (kind == "exits" and status != 3) or text not in output or seconds > 30:
            sys.exit(f"{kind}: status {status} after {seconds:.1f} s, without '{text}':\n{output}")


def weights(output):
    return output.rsplit("weights ", 1)[-1].strip()


def newest(directory):
    return max((name for name in os.listdir(directory) if name.endswith(".wg")), default="")


def train():
    """PROGRAM is the command line tool: a training has the same weights on any number of ranks, and goes on with another."""
    command = ["train", "digits", "--epochs"]

    def threads(ranks, *arguments):
        return subprocess.run([program, *arguments, "--ranks", str(ranks)], env=environment, text=True, stdout=subprocess.PIPE,
                              check=True).stdout

    one = weights(threads(1, *command, "3"))
    for ranks in (1, 2, 3, 4, 8):
        output, status, _ = run(ranks, *command, "3")
        print(f"{ranks} ranks: {weights(output)}")
        if status != 0 or weights(output) != one or weights(threads(ranks, *command, "3")) != one:
            sys.exit(f"{ranks} ranks have other weights than one, {one}:\n{output}")
    with tempfile.TemporaryDirectory() as directory:
        keeps = ["--checkpoints", directory, "--checkpoint-every", "7"]
        for killed in (3, 2):  # in the middle of an epoch
            job = subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(killed), program, *command, "100000", *keeps], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # The newest tells, not how many there are: only the last five are kept.
            before = newest(directory)
            while job.poll() is None and newest(directory) <= before:
                time.sleep(0.01)
            if job.poll() is not None:
                sys.exit(f"{killed} ranks ended before they were killed, with status {job.returncode}")
            job.kill()
            job.wait()
            subprocess.run(["pkill", "-9", "-f", directory], check=False)
        output, status, _ = run(4, *command, "400", *keeps)
        whole = weights(threads(2, *command, "400"))
        print(output.splitlines()[1])
        if status != 0 or "goes on at step" not in output or weights(output) != whole:
            sys.exit(f"killed on 3 and on 2 ranks and resumed on 4 the weights are not {whole}:\n{output}")


def characters():
    """PROGRAM is the example char_ranks: one digest on any number of ranks; a rank is killed, or all are asked to end, at a random moment, and the training
    goes on with other numbers of ranks until it is done: the same digest. WENGERT_RANK_STEPS, WENGERT_RANK_KILLS: how long, how often at least."""
    steps, kills = int(os.environ.get("WENGERT_RANK_STEPS", "150")), int(os.environ.get("WENGERT_RANK_KILLS", "4"))
    data = ["--data", sys.argv[4]]
    moments = random.Random(int(os.environ.get("WENGERT_RANDOM_SEED", "1")))

    def threads(ranks, *arguments):
        return subprocess.run([program, *data, *arguments, "--ranks", str(ranks)], env=environment, text=True, stdout=subprocess.PIPE,
                              check=True).stdout

    one = weights(threads(1, "--steps", str(steps)))
    for ranks in (1, 2, 4, 8):
        output, status, _ = run(ranks, *data, "--steps", str(steps))
        print(f"{ranks} ranks: {weights(output)}", flush=True)
        if status != 0 or weights(output) != one or weights(threads(ranks, "--steps", str(steps))) != one:
            sys.exit(f"{ranks} ranks have other weights than one, {one}:\n{output}")

    killed, asked, latest = 0, 0, 0.0
    while killed + asked < kills:
        with tempfile.TemporaryDirectory() as directory:
            command = [*data, "--steps", str(steps), "--checkpoints", directory]
            while True:  # until a job comes to the end
                ranks = moments.choice((1, 2, 3, 4, 6, 8))
                job = subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(ranks), program, *command], env=environment, bufsize=0,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                # An mpirun whose rank is killed while it launches others may wait for ever. (Byte by byte: communicate() does not know what a
                # reader has read ahead.)
                started = b""
                while not started.endswith(b"\n") and (byte := os.read(job.stdout.fileno(), 1)):
                    started += byte
                time.sleep(moments.uniform(0, 3))
                own = subprocess.run(["pgrep", "-P", str(job.pid)], text=True, stdout=subprocess.PIPE, check=False).stdout.split()
                ask = moments.random() < 0.25
                for pid in own if ask else moments.sample(own, 1) if own else []:
                    try:
                        os.kill(int(pid), signal.SIGTERM if ask else signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                begin = time.monotonic()
                try:
                    output = (started + job.communicate(timeout=300)[0]).decode()
                except subprocess.TimeoutExpired:
                    job.kill()
                    sys.exit(f"{ranks} ranks, of which {'all were asked to end' if ask else 'one was killed'}, have not ended after 300 s")
                took = time.monotonic() - begin
                if job.returncode == 0:
                    break
                if ask and job.returncode != 143:
                    sys.exit(f"asked to end {ranks} ranks end with {job.returncode}:\n{output}")
                if not ask:
                    latest = max(latest, took)
                    killed += 1
                    if took > 10 or (ranks > 1 and "on signal 9" not in output):
                        sys.exit(f"a rank of {ranks} was killed, and the job went on for {took:.1f} s, saying\n{output}")
                else:
                    asked += 1
            if weights(output) != one:
                sys.exit(f"after {killed} kills the weights are not {one}:\n{output}")
    print(f"a rank was killed {killed} times, all were asked to end {asked} times: the weights are the same; a job ended {latest:.1f} s after a kill at most")


{"characters": characters, "train": train, "programs": programs, "saved": saved, "faults": faults}[what]()
