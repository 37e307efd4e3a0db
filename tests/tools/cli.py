#!/usr/bin/env python3
"""`cli.py WENGERT SOURCE REPORT`: runs the program as a person would and checks what it prints, writes and returns. A test is a function `test_*`."""
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.sax.saxutils as xml

WENGERT, SOURCE = sys.argv[1:3]

PRODUCT = """
func.func @product(%a: tensor<?xf64>, %b: tensor<?xf64>) -> tensor<?xf64> {
  %c = wg.mul %a, %b : tensor<?xf64>
  return %c : tensor<?xf64>
}
"""


def wengert(*args, cwd=None):
    return subprocess.run([WENGERT, *args], capture_output=True, text=True, timeout=300, cwd=cwd)


NPY = {"f64": ("<f8", "d"), "f32": ("<f4", "f"), "i64": ("<i8", "q"), "i32": ("<i4", "i")}


def write_npy(path, values, dtype="f64", shape=None):
    descr, code = NPY[dtype]
    shape = [len(values)] if shape is None else shape
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path):
    data = open(path, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    descr = re.search(r"'descr': '(.*?)'", data[:start].decode("latin-1")).group(1)
    code = next(code for name, code in NPY.values() if name == descr)
    return list(struct.unpack(f"<{(len(data) - start) // struct.calcsize(code)}{code}", data[start:]))


def usage(run, *phrases):
    """One line that says what is wrong, and exit status 2."""
    assert run.returncode == 2, run
    assert run.stdout == "" and run.stderr.count("\n") == 1 and run.stderr.startswith("wengert: "), run
    for phrase in phrases:
        assert phrase in run.stderr, (phrase, run.stderr)


def failure(run, *phrases):
    """An error in three parts, and exit status 1."""
    assert run.returncode == 1 and run.stderr.startswith("error: "), run
    for phrase in phrases:
        assert phrase in run.stderr, (phrase, run.stderr)


def program(folder, text=PRODUCT):
    path = os.path.join(folder, "product.mlir")
    open(path, "w").write(text)
    return path


def test_unknown_command_is_a_usage_error(folder):
    usage(wengert("trian", "digits"), "there is no command `trian`", "train, run, compile")


def test_unknown_option_is_a_usage_error(folder):
    usage(wengert("train", "digits", "--epoch", "3"), "--epoch")


def test_unknown_data_set_is_a_usage_error(folder):
    usage(wengert("train", "cats"), "cats", "digits", "mnist")


def test_wrong_number_is_a_usage_error(folder):
    usage(wengert("train", "digits", "--batch", "-3"), "batch")


def test_no_command_is_a_usage_error(folder):
    usage(wengert(), "subcommand")


def test_mnist_without_its_files_is_a_usage_error(folder):
    usage(wengert("train", "mnist"), "--data")


def test_an_option_that_would_do_nothing_is_a_usage_error(folder):
    usage(wengert("train", "digits", "--data", folder), "--data", "mnist")
    usage(wengert("train", "digits", "--dump-ir", "fused", "--report"), "--dump-ir", "--report")
    usage(wengert("train", "digits", "--dump-ir", "fused", "--write-object", folder), "--dump-ir", "--write-object")
    usage(wengert("train", "digits", "--cpu", "native"), "--write-object")


def test_missing_file_is_a_usage_error(folder):
    usage(wengert("run", os.path.join(folder, "none.mlir")), "none.mlir")


def test_unknown_stage_is_a_usage_error(folder):
    usage(wengert("train", "digits", "--dump-ir", "melted"), "melted", "fused")


def test_help_and_version(folder):
    run = wengert("--help")
    assert run.returncode == 0 and "train" in run.stdout and "compile" in run.stdout, run
    run = wengert("--version")
    assert run.returncode == 0 and re.fullmatch(r"wengert \d+\.\d+\.\d+\n", run.stdout), run


def test_missing_mnist_file_is_named(folder):
    failure(wengert("train", "mnist", "--data", folder), "train-images-idx3-ubyte")


def test_run_compiled_and_interpreted_agree(folder):
    path, a, b = program(folder), os.path.join(folder, "a.npy"), os.path.join(folder, "b.npy")
    write_npy(a, [1, 2, -3.5]), write_npy(b, [4, 0.5, 2])
    for extra in ([], ["--interpret"]):
        out = os.path.join(folder, "c.npy")
        run = wengert("run", path, "--in", a, b, "--out", out, *extra)
        assert run.returncode == 0, run
        assert read_npy(out) == [4, 1, -7], read_npy(out)


def test_run_prints_without_out(folder):
    path, a = program(folder), os.path.join(folder, "a.npy")
    write_npy(a, [1, 2])
    run = wengert("run", path, "--entry", "product", "--in", a, a)
    assert run.returncode == 0 and run.stdout.startswith("f64[2] [1"), run


def test_unequal_sizes_are_an_error(folder):
    path, a, b = program(folder), os.path.join(folder, "a.npy"), os.path.join(folder, "b.npy")
    write_npy(a, [1, 2, 3]), write_npy(b, [1, 2])
    for extra in ([], ["--interpret"]):
        failure(wengert("run", path, "--in", a, b, *extra), "3", "2")


def test_an_open_size_is_not_repeated(folder):
    """A `?` of the text that is 1 in the file, beside another size: in both engines an error that names argument, axis and both sizes."""
    text = """func.func @scale(%x: tensor<?x?xf64>, %b: tensor<?xf64>) -> tensor<?x?xf64> {
  %m = wg.dim %x axis 0 : tensor<?x?xf64>
  %n = wg.dim %x axis 1 : tensor<?x?xf64>
  %y = wg.broadcast %b to [?, ?] dims [1] sizes %m, %n : tensor<?xf64> -> tensor<?x?xf64>
  %z = wg.mul %x, %y : tensor<?x?xf64>
  return %z : tensor<?x?xf64>
}
"""
    path, x = program(folder, text), os.path.join(folder, "x.npy")
    write_npy(x, [1, 2, 3, 4, 5, 6], shape=[2, 3])
    b = [os.path.join(folder, f"b{n}.npy") for n in range(4)]
    for n, name in enumerate(b):
        write_npy(name, list(range(n)))
    for extra in ([], ["--interpret"]):
        failure(wengert("run", path, "--in", x, b[1], *extra), "argument 1 has size 1 on axis 0, and 3 is needed at product.mlir:4")
        failure(wengert("run", path, "--in", x, b[2], *extra), "argument 1 has size 2 on axis 0", "3")
        assert wengert("run", path, "--in", x, b[3], *extra).stdout.startswith("f64[2,3]")


def test_wrong_number_of_inputs_is_an_error(folder):
    path, a = program(folder), os.path.join(folder, "a.npy")
    write_npy(a, [1])
    failure(wengert("run", path, "--in", a), "takes 2 inputs, got 1", "try: ")


def test_wrong_dtype_is_an_error(folder):
    path, a = program(folder, PRODUCT.replace("f64", "f32")), os.path.join(folder, "a.npy")
    write_npy(a, [1])
    failure(wengert("run", path, "--in", a, a), "argument 0 is f32[?]", "f64[1]")


def test_damaged_array_is_an_error(folder):
    path, a = program(folder), os.path.join(folder, "a.npy")
    open(a, "wb").write(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    failure(wengert("run", path, "--in", a, a), "a.npy")


def test_malformed_text_is_an_error_with_its_line(folder):
    failure(wengert("run", program(folder, "func.func @f( {\n")), "product.mlir:1")


def test_unknown_op_is_an_error_with_its_line(folder):
    failure(wengert("run", program(folder, PRODUCT.replace("wg.mul", "wg.mull"))), "mull")


def test_unknown_entry_is_an_error(folder):
    failure(wengert("run", program(folder), "--entry", "f"), "no public function `f`", "product")


def test_compile_writes_what_c_can_call(folder):
    path = program(folder, PRODUCT.replace("?xf64", "3xf64"))
    out = os.path.join(folder, "out")
    run = wengert("compile", path, "--entry", "product", "-o", out)
    assert run.returncode == 0, run
    main = os.path.join(folder, "main.c")
    open(main, "w").write("""
#include "product.h"
#include <stdio.h>
_Alignas(64) static char workspace[PRODUCT_WORKSPACE_BYTES + 64];
int main(void) {
  double a[3] = {1, 2, 3}, b[3] = {4, 5, 6}, c[3];
  void *args[PRODUCT_NUM_ARGS] = {a, b, c};
  int32_t code = product(args, 0, workspace);
  printf("%d %g %g %g\\n", code, c[0], c[1], c[2]);
  return 0;
}
""")
    cc = shutil.which("cc") or shutil.which("clang-22")
    subprocess.run([cc, "-Wall", "-Werror", f"-I{out}", main, os.path.join(out, "product.o"), "-lm", "-o", os.path.join(folder, "main")], check=True)
    printed = subprocess.run([os.path.join(folder, "main")], capture_output=True, text=True, check=True).stdout
    assert printed == "0 4 10 18\n", printed


def test_compile_needs_sizes(folder):
    failure(wengert("compile", program(folder), "-o", folder), "argument 0 of @product is 'tensor<?xf64>'", "static sizes", "product.mlir:2", "--types")
    failure(wengert("compile", program(folder), "-o", folder, "--types", "f64[3"), "cannot read types", "f32[2,3]")
    failure(wengert("compile", program(folder), "-o", folder, "--types", "f64[3];f64[4]"), "mul", "3", "4", "product.mlir:3")
    run = wengert("compile", program(folder), "-o", folder, "--types", "f64[3];f64[3]")
    assert run.returncode == 0 and "PRODUCT_NUM_ARGS 3" in open(os.path.join(folder, "product.h")).read(), run


def test_passes_follow_a_stage_by_its_name(folder):
    """What a pass of the user's does is in the program that is compiled, and a pass that fails says so."""
    path = program(folder, PRODUCT.replace("?xf64", "3xf64"))
    stages = wengert("stages")
    assert stages.returncode == 0 and [line.split()[0] for line in stages.stdout.splitlines() if line[0] != " "] == [
        "traced", "dropped", "simplified", "fused", "lowered", "llvm", "assembly"], stages
    out = os.path.join(folder, "out")
    run = wengert("compile", path, "-o", out, "--after", "simplified=func.func(cse)", "--after", "fused=canonicalize")
    assert run.returncode == 0, run
    # Before kernels form there are none to plan loops for: a pass that is run too early is refused, with the stage's name.
    failure(wengert("compile", path, "-o", out, "--after", "simplified=wg-lower"), "is outside of a kernel", "product.mlir:3")
    failure(wengert("compile", path, "-o", out, "--after", "simplified=no-such-pass"), "the passes after stage simplified", "no-such-pass")
    for text in ("cse", "later=cse", "assembly=cse"):
        failure(wengert("compile", path, "-o", out, "--after", text), f"--after {text} names no stage and its passes")


def test_a_function_that_calls_itself_is_an_error_with_its_line(folder):
    text = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.call @even(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @even(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.call @odd(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @odd(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.call @even(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
"""
    a = os.path.join(folder, "a.npy")
    write_npy(a, [1, 2], "f32")
    failure(wengert("run", program(folder, text), "--in", a), "calls @even, which calls it", "product.mlir:11", "try: ")
    failure(wengert("run", program(folder, text), "--in", a, "--interpret"), "calls @even, which calls it", "product.mlir:11")


def test_a_function_may_be_called_twice_on_a_path_that_ends(folder):
    text = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.call @four_times(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %z = wg.call @twice(%y) : (tensor<2xf32>) -> tensor<2xf32>
  return %z : tensor<2xf32>
}
func.func private @four_times(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %z = wg.call @twice(%y) : (tensor<2xf32>) -> tensor<2xf32>
  return %z : tensor<2xf32>
}
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = wg.add %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
"""
    a = os.path.join(folder, "a.npy")
    write_npy(a, [1, 2], "f32")
    run = wengert("run", program(folder, text), "--in", a)
    assert run.returncode == 0 and run.stdout.startswith("f32[2] [8"), run


def test_compile_refuses_a_name_that_c_does_not_take(folder):
    path = program(folder, PRODUCT.replace("?", "3"))
    for name in ("sin", "double", "../product", "2nd"):
        failure(wengert("compile", path, "-o", folder, "--name", name), f"`{name}` cannot be the name of a C function", "try: name it ")
    failure(wengert("compile", program(folder, PRODUCT.replace("?", "3").replace("@product", "@cos")), "-o", folder), "`cos`", "libm")


def test_what_is_no_tensor_program_is_an_error(folder):
    path = program(folder, "func.func @f(%x: tensor<?xf32>) -> index {\n  %n = wg.dim %x axis 0 : tensor<?xf32>\n  return %n : index\n}\n")
    failure(wengert("compile", path, "-o", folder, "--types", "f32[3]"), "has no compiled form", "product.mlir:2")


def test_the_train_step_runs_from_its_text_at_every_stage(folder):
    """The digits step, printed after each stage, run by the interpreter as traced and by the JIT from every text up to lowered."""
    texts = {}
    for stage in ("traced", "simplified", "fused", "lowered"):
        run = wengert("train", "digits", "--batch", "32", "--dump-ir", stage)
        assert run.returncode == 0, run
        texts[stage] = os.path.join(folder, f"{stage}.mlir")
        open(texts[stage], "w").write(run.stdout)
    types = re.search(r"func\.func @train_step\((.*?)\)", open(texts["traced"]).read()).group(1)
    inputs = []
    for i, (shape, dtype) in enumerate(re.findall(r"tensor<((?:\d+x)*)(\w+)>", types)):
        sizes = [int(n) for n in shape.split("x") if n]
        count = 1
        for n in sizes:
            count *= n
        # Places of classes lie below 10; an optimiser's second moments are not negative.
        if dtype.startswith("i"):
            values = [(7 * k + i) % 10 if sizes else 3 for k in range(count)]
        else:
            values = [0.1 * abs(math.sin(k * 1.7 + i)) for k in range(count)]
        inputs.append(os.path.join(folder, f"in{i}.npy"))
        write_npy(inputs[-1], values, dtype, sizes)
    returned = re.search(r"-> \((.*?)\)", open(texts["traced"]).read()).group(1)
    outputs = [os.path.join(folder, f"out{k}.npy") for k in range(returned.count("tensor<"))]
    results = {}
    for name, stage, extra in [("interpreted", "traced", ["--interpret"]), ("interpreted, fused", "fused", ["--interpret"])] + [(stage, stage, []) for stage in texts]:
        extra = extra + (["--trust-lowered"] if stage == "lowered" else [])
        run = wengert("run", texts[stage], "--entry", "train_step", "--in", *inputs, "--out", *outputs, *extra)
        assert run.returncode == 0, (name, run)
        results[name] = [read_npy(path) for path in outputs]
    assert results["interpreted"] == results["interpreted, fused"]
    assert results["traced"] == results["simplified"] == results["fused"] == results["lowered"]
    assert len(results["traced"]) > 10 and results["traced"] != [read_npy(path) for path in inputs]
    for compiled, interpreted in zip(results["lowered"], results["interpreted"]):
        largest = max(map(abs, interpreted), default=0)
        for a, b in zip(compiled, interpreted):
            # docs/numbers.md: the largest product sums 64 terms; Adam divides by a root.
            assert abs(a - b) <= 64 * 2**-24 * max(largest, 1e-3), (a, b, largest)


def test_compile_for_an_unknown_processor_is_an_error(folder):
    failure(wengert("compile", program(folder, PRODUCT.replace("?", "3")), "-o", folder, "--cpu", "z80"), "z80", "x86-64-v3")


def test_every_number_has_a_range(folder):
    """Whatever is not a decimal number in the option's range is a usage error that names the option and the range."""
    wrong = [" ", "x", "-1", "0x10", "1e3", "1.5", "5x", "+5", "9223372036854775808", "99999999999999999999", "nan", "1_000", "5 "]
    ranges = {"--epochs": "1 to 1000000", "--batch": "1 to the number of training examples", "--hidden": "1 to 65536", "--threads": "1 to 256",
              "--seed": "0 to 4611686018427387903"}
    for option, accepted in ranges.items():
        for text in wrong + ([] if option == "--seed" else ["0"]) + ([] if option == "--batch" else ["9223372036854775807"]):
            usage(wengert("train", "digits", f"{option}={text}"), f"{option}: `{text}` is not a whole number from {accepted}")
        usage(wengert("train", "digits", f"{option}="), option, accepted)
    usage(wengert("train", "digits", "--lr="), "--lr", "1e-30 to 1e+30")
    for text in ["inf", "-inf", "nan", "1e400", "1e31", "1e-400", "1e-31", "0", "-0.1", "0x1p-3", "0.1x", "0,1", " 0.1"]:
        usage(wengert("train", "digits", f"--lr={text}"), f"--lr: `{text}` is not a number from 1e-30 to 1e+30")


def test_a_batch_larger_than_the_training_set_is_a_usage_error(folder):
    for text in ("1439", "9223372036854775807"):
        usage(wengert("train", "digits", "--batch", text), f"--batch: `{text}` is not a whole number from 1 to 1438")
    run = wengert("train", "digits", "--batch", "1438", "--epochs", "1")
    assert run.returncode == 0 and "batches of 1438" in run.stdout, run


def test_leading_zeros_are_no_octal_number(folder):
    run = wengert("train", "digits", "--batch", "0100", "--epochs", "01")
    assert run.returncode == 0 and "batches of 100\n" in run.stdout, run


def test_an_option_is_given_once_and_with_a_value(folder):
    path = program(folder)
    for option, value in [("--epochs", "3"), ("--batch", "3"), ("--hidden", "3"), ("--lr", "0.1"), ("--seed", "3"), ("--threads", "1"), ("--optimizer", "sgd"), ("--dtype", "f32"),
                          ("--data", folder), ("--dump-ir", "fused"), ("--write-object", folder)]:
        usage(wengert("train", "digits", option, value, option, value), option)
    for option in ("--epochs", "--batch", "--hidden", "--lr", "--seed", "--threads", "--optimizer", "--dtype", "--data", "--dump-ir", "--write-object", "--cpu"):
        usage(wengert("train", "digits", f"{option}="), option)
        usage(wengert("train", "digits", option), option)
    for option in ("--entry", "--in", "--out"):
        usage(wengert("run", path, option, ""), option)
    for option in ("--entry", "-o", "--name", "--types", "--cpu"):
        usage(wengert("compile", path, option, ""), "--output" if option == "-o" else option)
    for flag in ("--eager", "--report"):
        usage(wengert("train", "digits", flag, flag), flag)
        usage(wengert("train", "digits", f"{flag}=no"), flag[2:])
    usage(wengert("run", path, "--interpret", "--interpret"), "--interpret")
    usage(wengert("train", "digits", "--cpu", "native"), "--cpu", "--write-object")


FULL_OUTPUT = ["/dev/full", None]  # a full device; closed


def lost(full, *args, program=WENGERT, **more):
    """Runs with standard output that takes nothing: a file on a full device (opened, not replaced), or none."""
    redirected = ">/dev/full" if full else ">&-"
    return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirected}', program, *args], stderr=subprocess.PIPE, text=True, timeout=300, **more)


def test_output_that_is_lost_is_an_error(folder):
    path, a = program(folder), os.path.join(folder, "a.npy")
    write_npy(a, [1, 2])
    opt = os.path.join(os.path.dirname(WENGERT), "wengert-opt")
    for full in FULL_OUTPUT:
        for args in (["run", path, "--in", a, a], ["train", "digits", "--epochs", "2"], ["train", "digits", "--dump-ir", "fused"], ["train", "digits", "--epochs", "1", "--report"],
                     ["compile", path, "-o", folder, "--types", "f64[3];f64[3]"], ["--help"], ["--version"]):
            run = lost(full, *args)
            assert run.returncode == 1 and run.stderr.startswith("error: ") and "cannot write" in run.stderr, run
        run = lost(full, path, program=opt)
        assert run.returncode == 1 and run.stderr.startswith("error: standard output: cannot write"), run
        # Where nothing is printed nothing is lost; and what is closed is not the next file that is opened.
        out = os.path.join(folder, "c.npy")
        run = lost(full, "run", path, "--in", a, a, "--out", out)
        assert run.returncode == 0 and read_npy(out) == [1, 4], run


def test_only_files_are_read_and_a_minus_is_standard_input(folder):
    path, a, fifo, large = program(folder), os.path.join(folder, "a.npy"), os.path.join(folder, "fifo"), os.path.join(folder, "large")
    write_npy(a, [1, 2])
    os.mkfifo(fifo)
    with open(large, "wb") as out:
        out.truncate(3 << 30)
    opt = os.path.join(os.path.dirname(WENGERT), "wengert-opt")
    for source, why in ((fifo, "fifo: is not a regular file"), ("/dev/zero", "/dev/zero: is not a regular file"), (large, "large: is larger than 256 MiB")):
        for command in ("run", "compile"):
            failure(wengert(command, source), why)
        failure(subprocess.run([opt, source], capture_output=True, text=True, timeout=300), why)
    for source in (fifo, "/dev/zero"):
        failure(wengert("run", path, "--in", a, source), "is not a regular file")
    run = subprocess.run([WENGERT, "run", "-", "--in", a, a], input=PRODUCT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.startswith("f64[2] [1"), run
    run = subprocess.run([WENGERT, "run", path, "--in", a, "-"], stdin=open(a, "rb"), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.startswith("f64[2] [1"), run
    failure(subprocess.run([WENGERT, "run", "-"], input="func.func @f( {", capture_output=True, text=True, timeout=300), "<stdin>:1")
    usage(subprocess.run([WENGERT, "run", "-", "--in", "-", a], input="", capture_output=True, text=True, timeout=300), "standard input can be read once")
    run = subprocess.run(["sh", "-c", 'exec "$0" run - <&-', WENGERT], capture_output=True, text=True, timeout=300)
    failure(run, "<stdin>: cannot read")
    for limit in ("256 MiB", "64 GiB", "1 GiB"):
        assert limit in wengert("run", "--help").stdout, limit


def test_written_files_keep_what_they_are(folder):
    path, a, out, link = program(folder), os.path.join(folder, "a.npy"), os.path.join(folder, "c.npy"), os.path.join(folder, "link.npy")
    write_npy(a, [1, 2])
    open(out, "w").write("old")
    os.chmod(out, 0o600)
    os.symlink("c.npy", link)
    assert wengert("run", path, "--in", a, a, "--out", link).returncode == 0
    assert os.path.islink(link) and read_npy(out) == [1, 4] and os.stat(out).st_mode & 0o777 == 0o600
    failure(wengert("run", path, "--in", a, a, "--out", folder), "is a directory")
    # The optimiser driver's output goes the same way; a pass that fails leaves the old file.
    opt, text = os.path.join(os.path.dirname(WENGERT), "wengert-opt"), os.path.join(folder, "text")
    open(text, "w").write("old")
    os.chmod(text, 0o600)
    bad = os.path.join(folder, "bad.mlir")
    open(bad, "w").write("func.func @f( {")
    assert subprocess.run([opt, bad, "-o", text], capture_output=True, timeout=300).returncode == 1 and open(text).read() == "old"
    assert subprocess.run([opt, path, "-o", text], capture_output=True, timeout=300).returncode == 0
    assert "wg.mul" in open(text).read() and os.stat(text).st_mode & 0o777 == 0o600
    assert not [name for name in os.listdir(folder) if "wengert-" in name], os.listdir(folder)


def test_object_and_header_are_both_new_or_both_old(folder):
    """On a disk that is full: one of 16 KiB, where this process may mount one, and a limit on the size of a file."""
    path, out = program(folder, PRODUCT.replace("?xf64", "3xf64")), os.path.join(folder, "out")
    assert wengert("compile", path, "-o", out).returncode == 0
    before = {name: open(os.path.join(out, name), "rb").read() for name in ("product.o", "product.h")}
    assert all(before.values())
    other = program(folder, PRODUCT.replace("?xf64", "4xf64"))
    for blocks in (0, 1):  # of 512 bytes, or of 1,024: the object fits neither
        run = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$0" compile {other} -o {out}', WENGERT], capture_output=True, text=True, timeout=300)
        failure(run, "product.o: cannot write: File too large")
        assert {name: open(os.path.join(out, name), "rb").read() for name in os.listdir(out)} == before
    mounted = subprocess.run(["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16k none {out} && cp "$1" {out} && cp "$2" {out} && rm "$1" "$2" || exit 77; '
                              f'head -c 100000 /dev/zero > {out}/filler; "$0" compile {other} -o {out} --name product; echo $?; ls -A {out}; wc -c < {out}/product.h', WENGERT,
                              shutil.copy(os.path.join(out, "product.o"), folder), shutil.copy(os.path.join(out, "product.h"), folder)], capture_output=True, text=True, timeout=300)
    if mounted.returncode != 77 and "unshare" not in mounted.stderr:
        assert "error: " in mounted.stderr and "product.o: cannot" in mounted.stderr and mounted.stdout == f"1\nfiller\nproduct.h\nproduct.o\n{len(before['product.h'])}\n", mounted


def test_train_learns_the_digits(folder):
    run = wengert("train", "digits", "--epochs", "12", "--seed", "3")
    assert run.returncode == 0, run
    accuracy = float(re.findall(r"accuracy ([\d.]+) %", run.stdout)[-1])
    assert accuracy > 93, run.stdout
    assert "steps/s" in run.stdout and "s left" in run.stdout, run.stdout


def test_train_report_tells_what_happened(folder):
    run = wengert("train", "digits", "--epochs", "1", "--report")
    assert run.returncode == 0, run
    for phrase in ("gradients that are not computed", "not requested", "kernels:", "bound by", "of peak", "all kernels", "compile time by stage", "eager", "compiled"):
        assert phrase in run.stdout, (phrase, run.stdout)


def test_a_directory_that_cannot_be_made_is_an_error(folder):
    blocked = os.path.join(program(folder), "objects")
    run = wengert("train", "digits", f"--write-object={blocked}", "--epochs", "1")
    assert run.stderr.count("error: ") == 1, run
    failure(run, blocked, "Not a directory")
    failure(wengert("compile", program(folder, PRODUCT.replace("?", "3")), "-o", blocked), blocked, "Not a directory")


def test_a_program_at_stage_llvm_cannot_be_run(folder):
    text = wengert("train", "digits", "--dump-ir", "llvm").stdout
    for command in ("run", "compile"):
        failure(wengert(command, program(folder, text), "--entry", "train_step"), "product.mlir is at stage llvm", "try: ", "stage lowered")


LOWERED = """
func.func @f(%args: !llvm.ptr, %sizes: !llvm.ptr, %workspace: !llvm.ptr) -> i32 attributes {wg.inputs = [tensor<2xf32>], wg.results = [tensor<2xf32>],
    wg.donated = array<i64: -1>, wg.workspace_bytes = 64 : i64, wg.errors = [], wg.error_places = []} {
  %p = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %slot = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %q = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<2xf32>
  %y = arith.addf %x, %x : vector<2xf32>
  llvm.store %y, %q {alignment = 4 : i64} : vector<2xf32>, !llvm.ptr
  %ok = arith.constant 0 : i32
  return %ok : i32
}
"""


def test_lowered_text_is_taken_on_request_only(folder):
    a, path = os.path.join(folder, "a.npy"), program(folder, LOWERED)
    write_npy(a, [1, 2.5], "f32")
    failure(wengert("run", path, "--in", a), "`func.func` and so is not a program of wg ops", "stage lowered", "rights", "--trust-lowered", "product.mlir:2")
    failure(wengert("compile", path, "-o", folder), "stage lowered", "--trust-lowered")
    run = wengert("run", path, "--in", a, "--trust-lowered")
    assert run.returncode == 0 and run.stdout == "f32[2] [2.0, 5.0]\n", run
    assert wengert("compile", path, "-o", folder, "--trust-lowered").returncode == 0
    for command in ("run", "compile"):
        assert "rights" in wengert(command, "--help").stdout
    # One foreign op makes a program lowered, wherever it is.
    text = PRODUCT + "func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = arith.negf %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n"
    failure(wengert("run", program(folder, text), "--in", a, a), "`arith.negf`", "--trust-lowered", "product.mlir:7")


def test_a_lowered_entry_fits_its_description(folder):
    a = os.path.join(folder, "a.npy")
    write_npy(a, [1, 2.5], "f32")
    for before, after, *phrases in [
        ("%workspace: !llvm.ptr)", "%workspace: i64)", "not a lowered entry", "its type is"),
        ("%ok =", "%n = llvm.load %sizes : !llvm.ptr -> i64\n  %ok =", "reads sizes, of which an entry of static sizes has none"),
        ("wg.workspace_bytes = 64", "wg.workspace_bytes = -64", "wg.workspace_bytes is -64"),
        ("wg.workspace_bytes = 64", "wg.workspace_bytes = 9223372036854775807", "2^56 at most"),
        ("wg.inputs = [tensor<2xf32>]", "wg.inputs = [tensor<2x1x1x1x1x1x1x1x1x1x1x1xf32>]", "static types of values"),
        ("wg.inputs = [tensor<2xf32>]", "wg.inputs = [tensor<4611686018427387905x4xf32>]", "static types of values"),
        ("wg.inputs = [tensor<2xf32>]", "wg.inputs = []", "reads args at byte 8"),
        ("wg.inputs = [tensor<2xf32>]", "wg.inputs = [tensor<2xf32>, tensor<2xf32>]", "never loads pointer 2"),
        ("wg.donated = array<i64: -1>", "wg.donated = array<i64: 5>", "gives result 0 the input 5"),
        ("wg.donated = array<i64: -1>", "wg.donated = array<i64: -1, 0>", "2 entries for 1 results"),
        ("wg.errors = []", "wg.errors = [\"a\"]", "1 errors and 0 places"),
        ("wg.errors = []", "wg.errors = [1]", "hold strings"),
        ("alignment = 4", "alignment = 3", "power of two"),
        ("%ok =", 'llvm.inline_asm "hlt", "" : () -> ()\n  %ok =', "'llvm.inline_asm' op is not an op that the emitters write"),
        ("%ok =", 'llvm.call_intrinsic "llvm.no.such"() : () -> ()\n  %ok =', "calls llvm.no.such; the emitters call"),
        ("%ok =", '"llvm.intr.prefetch"(%p) <{rw = 7 : i32, hint = 9 : i32, cache = 4 : i32}> : (!llvm.ptr) -> ()\n  %ok =', "rw 7, hint 9 and cache 4"),
        ("%ok =", "%g = llvm.getelementptr %p[1] : (!llvm.ptr) -> vector<8x!llvm.ptr>, f32\n  %ok =", "of different lanes"),
        ("%ok =", "%m = arith.constant dense<true> : vector<4xi1>\n  llvm.intr.masked.store %y, %q, %m {alignment = 4 : i32} : vector<2xf32>, vector<4xi1> into !llvm.ptr\n  %ok =", "of different lanes"),
        ("%ok =", "%m = arith.constant dense<true> : vector<4xi1>\n  %w = llvm.intr.masked.load %p, %m, %y {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<2xf32>) -> vector<4xf32>\n  %ok =", "where the mask is not set"),
        ("func.func @f", "llvm.func @system(!llvm.ptr) -> i32\nfunc.func @f", "neither a function nor constant data"),
        ("func.func @f", "func.func private @system(!llvm.ptr) -> i32\nfunc.func @f", "declared only"),
        ("func.func @f", "llvm.mlir.global external @environ() : !llvm.ptr\nfunc.func @f", "is not an internal constant array"),
        ("func.func @f", 'module attributes {llvm.module_asm = ["hlt"]} {\nfunc.func @f', ""),
    ]:
        text = LOWERED.replace(before, after) + ("}\n" if after.startswith("module") else "")
        failure(wengert("run", program(folder, text), "--entry", "f", "--in", a, "--trust-lowered"), *phrases)


def test_text_that_nests_too_deep_is_refused(folder):
    opt = os.path.join(os.path.dirname(WENGERT), "wengert-opt")
    deep = 10000
    chain = "#a0 = loc(\"f\")\n" + "".join(f'#a{i} = loc("g"(#a{i - 1}))\n' for i in range(1, deep))
    for text in (
        "func.func @f() attributes {a = " + "[" * deep + "]" * deep + "} { return }",
        "func.func @f(%x: " + "tuple<" * deep + "f32" + ">" * deep + ") { return }",
        "module {\n" * deep + "}\n" * deep,
        "func.func @f() { return } loc(" + 'callsite("f" at ' * deep + "unknown" + ")" * deep + ")",
        "#m = affine_map<(d0) -> (" + "d0 + " * 100000 + "d0)>\nfunc.func @f() { return }",
        chain + f"func.func @f() {{ return loc(#a{deep - 1}) }}",
        chain.replace("loc(", "[").replace("(#", ", #").replace("))", "]]").replace(")", "]") + f"func.func @f() attributes {{a = #a{deep - 1}}} {{ return }}",
        "// -----\nfunc.func @f() attributes {a = " + "[" * deep + "]" * deep + "} { return }",
    ):
        path = program(folder, text)
        failure(wengert("run", path), "product.mlir:", "try: ")
        for arguments, given in ([[opt, path], None], [[opt], text], [[opt, "--split-input-file", path], None]):
            run = subprocess.run(arguments, input=given, capture_output=True, text=True, timeout=300)
            assert run.returncode == 1 and run.stderr.startswith("error: ") and run.stderr.count("error: ") == 1, run.stderr[:1000]
    with open(os.path.join(folder, "code.mlir"), "wb") as out:
        out.write(b"ML\xefR\x0d")
    failure(wengert("run", os.path.join(folder, "code.mlir")), "bytecode", "as text")


def test_sizes_in_text_are_bounded(folder):
    huge = "tensor<4611686018427387905x4xf32>"
    a = os.path.join(folder, "a.npy")
    write_npy(a, [1, 2], "i64")
    gather = f"""
func.func @f(%i: tensor<2xi64>) -> tensor<2x4xf32> {{
  %c = wg.constant dense<1.0> : {huge}
  %y = wg.gather %c, %i : {huge}, tensor<2xi64> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}}
"""
    unread = f"func.func @f(%i: tensor<2xi64>, %x: {huge}) -> tensor<2xi64> {{ return %i : tensor<2xi64> }}"
    for text in (gather, unread):
        for extra in (["--interpret"], []):
            failure(wengert("run", program(folder, text), "--in", a, *extra), "2^56 bytes", "4611686018427387905", "product.mlir:")
        failure(wengert("compile", program(folder, text), "-o", folder), "2^56 bytes")
    failure(wengert("compile", program(folder), "-o", folder, "--types", "f64[4611686018427387905,4];f64[3]"), "more than 2^56 bytes")
    # A valid program without memory for it: the same kind of error from both engines, and no other end.
    large = "func.func @f(%i: tensor<2xi64>) -> tensor<2x17592186044416xi64> {\n  %y = wg.broadcast %i to [2, 17592186044416] dims [0] : tensor<2xi64> -> tensor<2x17592186044416xi64>\n  return %y : tensor<2x17592186044416xi64>\n}\n"
    for extra in (["--interpret"], []):
        failure(wengert("run", program(folder, large), "--in", a, *extra), "out of memory")


def test_eager_and_compiled_training_agree(folder):
    lines = []
    for extra in ([], ["--eager"]):
        run = wengert("train", "digits", "--epochs", "2", "--dtype", "f64", "--optimizer", "momentum", *extra)
        assert run.returncode == 0, run
        lines.append(re.findall(r"loss ([\d.]+)  accuracy ([\d.]+)", run.stdout))
    assert len(lines[0]) == 2 and lines[0] == lines[1], lines


def test_every_stage_prints_and_parses_back(folder):
    for stage in ("traced", "dropped", "simplified", "fused", "lowered", "llvm", "assembly"):
        run = wengert("train", "digits", "--dump-ir", stage)
        assert run.returncode == 0 and "train_step" in run.stdout, run
        opt = os.path.join(os.path.dirname(WENGERT), "wengert-opt")
        if stage not in ("llvm", "assembly") and os.path.exists(opt):
            back = subprocess.run([opt], input=run.stdout, capture_output=True, text=True)
            assert back.returncode == 0, back.stderr


def main(tests, suite, report):
    """Runs each `test_*` of the names `tests` in a folder of its own, and writes the report."""
    failed, cases = 0, []
    for name, test in list(tests.items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder)
                problem = ""
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        failed += bool(problem)
        print(f"{'failed' if problem else 'passed'}: {name}\n{problem}".rstrip())
        inner = f"<failure>{xml.escape(''.join(c for c in problem if c.isprintable() or c.isspace()))}</failure>" if problem else ""
        cases.append(f'<testcase classname="{suite}" name="{name}">{inner}</testcase>')
    with open(report, "w") as out:
        out.write(f"<testsuite>{''.join(cases)}</testsuite>")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(globals(), "cli", sys.argv[3]))
