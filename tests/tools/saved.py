#!/usr/bin/env python3
"""`saved.py WENGERT SAVER REPORT`: the commands on saved computations, which SAVER writes. A test is a function `test_*`."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
from cli import failure, main, program, read_npy, usage, wengert, write_npy

SAVER = sys.argv[2]
MADE = tempfile.TemporaryDirectory()


def saver(*args):
    run = subprocess.run([SAVER, *args], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run
    return run.stdout


def made(name):
    """A saved computation that nobody changes."""
    return os.path.join(MADE.name, name)


def lines(run):
    assert run.returncode == 0 and run.stderr == "", run
    return run.stdout.splitlines()


def arrays(folder):
    x, y = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
    write_npy(x, [1, 2, 3, 4], "f32", [2, 2]), write_npy(y, [1, 0], "f32")
    return x, y


def bytes_of(path):
    if not os.path.isdir(path):
        return open(path, "rb").read()
    return {name: open(os.path.join(path, name), "rb").read() for name in os.listdir(path)}


def test_inspect_lists_what_is_there(folder):
    shown = []
    for form in ("package", "package.wg"):
        run = wengert("inspect", made(form))
        out = lines(run)
        assert out[0].startswith(made(form) + ": version 1, saved by Wengert ") and out[1] == "  made by: a test", out
        for line in (
            "  step: a function, 2 traces",
            "    1: step(x: f32[2,2], y: f32[2]) -> (f32[])",
            "    2: step(x: f32[?,2], y: f32[?]) -> (f32[])",
            "    1: scaled(arg0: f64[2], arg1: double 0.5) -> (f64[2], f64[2])",
            "  w: 1 variable: w",
            "  y: a value of a tensor on a tape",
            "  tape: a tape of 1 op, persistent, recording; watches 1 variable",
            "  seven: a value",
            "variables, 12 bytes:",
            "  w      f32[2], 8 bytes",
            "  steps  i32[], 4 bytes, not trainable",
        ):
            assert line in out, (line, out)
        assert any("takes w, steps; assigns w, steps" in line for line in out), out
        shown.append(out[1:])
    assert shown[0] == shown[1], shown


def test_inspect_prints_the_manifest_as_json(folder):
    run = wengert("inspect", made("package"), "--json")
    manifest = json.loads("\n".join(lines(run)))
    assert manifest["version"] == 1 and [item["name"] for item in manifest["items"]][:2] == ["step", "scaled"], manifest
    assert run.stdout == open(os.path.join(made("package"), "manifest.json")).read()


def test_inspect_names_files_that_are_not_as_saved(folder):
    for damage in ("flip", "shorten", "remove"):
        path = os.path.join(folder, damage)
        shutil.copytree(made("package"), path)
        name = next(name for name in sorted(os.listdir(path)) if name.startswith("variables-"))
        data = bytearray(open(os.path.join(path, name), "rb").read())
        if damage == "remove":
            os.remove(os.path.join(path, name))
        else:
            data[-1] ^= 1
            open(os.path.join(path, name), "wb").write(data[:-1] if damage == "shorten" else data)
        for extra in ([], ["--json"]):
            run = wengert("inspect", path, *extra)
            failure(run, "1 of ", "not as saved", name)
        assert damage == "remove" or "damaged" in wengert("inspect", path).stdout
        failure(wengert("run", path, "--function", "step"), name)
    path = os.path.join(folder, "package.wg")
    data = bytearray(open(made("package.wg"), "rb").read())
    data[data.index(b'"format"')] ^= 1
    open(path, "wb").write(data)
    failure(wengert("inspect", path), "manifest.json")


def test_run_takes_the_trace_that_fits(folder):
    x, y = arrays(folder)
    out = os.path.join(folder, "loss.npy")
    results = []
    for form in ("package", "package.wg"):
        for extra in ([], ["--interpret"], ["--trace", "2"]):
            assert lines(wengert("run", made(form), "--function", "step", "--in", x, y, "--out", out, *extra)) == []
            results.append(read_npy(out))
    assert results == [[20.5]] * 6, results  # ((1 - 4 - 1)^2 + (3 - 8 - 0)^2) / 2
    assert lines(wengert("run", made("only.wg"), "--in", y)) == ["f32[2] [2.0, 1.0]"]
    write_npy(x, [1, 2, 3, 4, 0, 1], "f32", [3, 2]), write_npy(y, [1, 0, -2], "f32")
    out = lines(wengert("run", made("package"), "--function", "step", "--in", x, y))
    assert out[0].startswith("f32[] 13.6"), out


def test_run_without_a_trace_that_fits_lists_the_traces(folder):
    x, y = arrays(folder)
    failure(wengert("run", made("package"), "--function", "step", "--in", y), "no saved trace takes (f32[2])", "1: step(x: f32[2,2]", "2: step(x: f32[?,2]")
    failure(wengert("run", made("package"), "--function", "step", "--in", x, x, "--trace", "2"), "argument 1 is f32[?]", x)
    write_npy(x, [1, 2])
    failure(wengert("run", made("package"), "--function", "scaled", "--in", x), "2 saved traces take (f64[2])", "double 0.5", "double 2", "--trace")
    out = lines(wengert("run", made("package"), "--function", "scaled", "--trace", "2", "--in", x))
    assert out == ["f64[2] [2.0, 4.0]", "f64[2] [1.0, 2.0]"], out
    failure(wengert("run", made("package"), "--function", "scaled", "--trace", "3", "--in", x), "no trace 3")
    failure(wengert("run", made("package"), "--function", "scaled", "--trace", "1", "--in", x, "--out", x), "has 2 results, got 1")


def test_run_refuses_variables_as_arguments(folder):
    _, y = arrays(folder)
    failure(wengert("run", made("package"), "--function", "of_variable", "--in", y), "takes a variable as an argument")


def test_functions_are_named_where_there_are_several(folder):
    _, y = arrays(folder)
    failure(wengert("run", made("package"), "--in", y), "holds 3 functions: step, scaled, of_variable", "--function")
    failure(wengert("explain", made("package"), "--function", "stop"), "no function 'stop'", "step, scaled")


def test_what_is_assigned_is_kept_where_save_says_and_nowhere_else(folder):
    x, y = arrays(folder)
    for form in ("package", "package.wg"):
        before = bytes_of(made(form))
        once, twice = os.path.join(folder, "once" + form), os.path.join(folder, "twice" + form)
        lines(wengert("run", made(form), "--function", "step", "--in", x, y))
        assert bytes_of(made(form)) == before
        lines(wengert("run", made(form), "--function", "step", "--in", x, y, "--save", once))
        assert bytes_of(made(form)) == before
        assert lines(wengert("run", once, "--function", "step", "--in", x, y, "--save", twice)) != ["f32[] 20.5"]
        printed = [saver("tape", path).splitlines() for path in (made(form), once, twice)]
        # The tape holds what it has read, also where the variable has been assigned since.
        assert [out[:3] for out in printed] == [printed[0][:3]] * 3, printed
        assert len({out[3] for out in printed}) == 3, printed
        assert "  seven: a value" in lines(wengert("inspect", twice))
        # What is saved in its own place is as what is saved elsewhere.
        lines(wengert("run", once, "--function", "step", "--in", x, y, "--save", once))
        assert bytes_of(once) == bytes_of(twice)


def test_explain_says_why_and_how(folder):
    out = lines(wengert("explain", made("package"), "--function", "step"))
    assert out[0] == "step: a function, 2 traces" and out[2] == "trace 1: step(x: f32[2,2], y: f32[2]) -> (f32[])", out
    assert "  traced: the first call" in out and "  traced: differs from the nearest of 1 known signature:" in out, out
    assert any(line.startswith("  ops by stage: traced ") and "lowered" in line for line in out), out
    assert any(line.startswith("  kernel step_k0_") for line in out) and any("flop" in line and "lines saver.cpp:" in line for line in out), out
    assert any("gradients not computed" in line or "gradient not computed" in line for line in out), out
    assert any(": not requested" in line and ", at saver.cpp:" in line for line in out), out
    assert any("--types" in line for line in out), out  # of the open trace
    out = lines(wengert("explain", made("package"), "--function", "step", "--trace", "2", "--types", "f32[8,2];f32[8]"))
    assert any(line.startswith("  kernel step_k0_") for line in out) and not any("--types" in line for line in out), out
    failure(wengert("explain", made("package"), "--function", "step", "--trace", "2", "--types", "f32[8,2]"), "takes 2 tensors, --types names 1")
    failure(wengert("explain", made("package"), "--function", "step", "--trace", "2", "--types", "f32[8,3];f32[8]"), "8x3", "saver.cpp:")


def test_explain_prints_every_stage(folder):
    for stage, phrase in (("traced", "wg."), ("fused", "wg.kernel"), ("lowered", "vector<2xf32>"), ("llvm", "llvm.func"), ("assembly", "ret")):
        run = wengert("explain", made("only.wg"), "--stage", stage)
        assert run.returncode == 0 and "only" in run.stdout and phrase in run.stdout, run
    text = os.path.join(folder, "only.mlir")
    open(text, "w").write(wengert("explain", made("only.wg"), "--stage", "fused").stdout)
    _, y = arrays(folder)
    assert lines(wengert("run", text, "--in", y)) == lines(wengert("run", made("only.wg"), "--in", y))
    failure(wengert("explain", made("package"), "--function", "step", "--stage", "fused"), "has 2 traces", "--trace")
    usage(wengert("explain", made("only.wg"), "--stage", "melted"), "melted", "fused")


def test_compile_writes_an_object_and_its_header(folder):
    out = lines(wengert("compile", made("only.wg"), "-o", folder))
    assert len(out) == 1 and out[0].endswith("only.h"), out
    assert "only(" in open(os.path.join(folder, "only.h")).read() and os.path.getsize(os.path.join(folder, "only.o")) > 0
    failure(wengert("compile", made("package"), "--function", "step", "-o", folder), "has 2 traces", "--trace")
    lines(wengert("compile", made("package"), "--function", "step", "--trace", "2", "--types", "f32[8,2];f32[8]", "--name", "mine", "-o", folder))
    header = open(os.path.join(folder, "mine.h")).read()
    assert "w: f32[2], 8 bytes, read and updated in place" in header and "int32_t mine(" in header, header
    failure(wengert("compile", made("package"), "--function", "step", "--trace", "2", "-o", folder), "open sizes", "--types")
    failure(wengert("explain", made("package"), "--function", "step", "--trace", "2", "--stage", "fused"), "open sizes", "--types")


def test_functions_of_the_program_that_saved_are_named(folder):
    out = lines(wengert("inspect", made("foreign.wg")))
    assert out[out.index("requires host functions:") + 1] == "  my_host" and out[out.index("requires C functions:") + 1] == "  saver_twice", out
    for command in (["run"], ["explain"], ["compile", "-o", folder]):
        failure(wengert(command[0], made("foreign.wg"), *command[1:]), "host function 'my_host'", "inspect")


def test_what_a_function_prints_is_printed(folder):
    x = os.path.join(folder, "x.npy")
    write_npy(x, [3], "f32", [])
    out = lines(wengert("run", made("said.wg"), "--in", x))
    assert out == ["x is 3.0", "f32[] 6.0"], out


def test_options_that_would_do_nothing_are_usage_errors(folder):
    text = program(folder)
    usage(wengert("run", text, "--function", "product"), "--function", "program in text")
    usage(wengert("run", text, "--save", os.path.join(folder, "b.wg")), "--save")
    usage(wengert("compile", text, "--trace", "1"), "--trace")
    usage(wengert("run", made("only.wg"), "--entry", "only"), "--entry", "saved computation")
    usage(wengert("run", made("only.wg"), "--trust-lowered"), "--trust-lowered")
    usage(wengert("compile", made("only.wg"), "--after", "fused=cse"), "--after")
    usage(wengert("run", made("only.wg"), "--trace", "0"), "--trace")
    usage(wengert("inspect", folder), "manifest.json")
    usage(wengert("inspect", os.path.join(folder, "none.wg")), "none.wg")
    usage(wengert("inspect"), "path")
    failure(wengert("inspect", text), "product.mlir", "is not a .wg file")


def test_a_directory_or_a_file_of_another_kind_is_said_to_be_none(folder):
    path = os.path.join(folder, "manifest.json")
    open(path, "w").write("{}")
    failure(wengert("inspect", folder), "manifest.json")
    other = os.path.join(folder, "other.wg")
    open(other, "w").write("no zip")
    failure(wengert("run", other), "other.wg")


def test_lost_output_is_an_error(folder):
    for command in ("inspect", "explain"):
        closed = subprocess.run(["sh", "-c", f'exec "$0" {command} "$1" >&-', sys.argv[1], made("only.wg")], capture_output=True, text=True)
        failure(closed, "standard output")


if __name__ == "__main__":
    saver("write", MADE.name)
    sys.exit(main(globals(), "saved", sys.argv[3]))
