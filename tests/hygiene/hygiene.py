#!/usr/bin/env python3
"""`hygiene.py SOURCE BUILD COMPILER REPORT`: rules of the tree that no compiler checks. One test a rule; every breach is printed as file:line: what.

A rule is a function of the source tree that yields its breaches; each is also tried on a bad example, so that a rule that can never fail is found out.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.sax.saxutils as xml

ROOMS = {"runtime": 0, "ir": 1, "autodiff": 2, "passes": 2, "codegen": 3, "frontend": 4, "tools": 5}
SOURCES = (".h", ".cpp", ".td", ".inc")
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s*[<"]([^>"]+)[>"]')
HEAVY = re.compile(r"^(mlir|mlir-c|llvm|llvm-c|Eigen|unsupported/Eigen)(/|$)")


def files(root, suffixes, *folders):
    for folder in folders or [""]:
        for directory, names, found in os.walk(os.path.join(root, folder)):
            names[:] = [n for n in names if not n.startswith((".", "build"))]
            for name in sorted(found):
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(directory, name), root)


def lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as text:
        return list(enumerate(text.read().splitlines(), 1))


def includes_point_left(root):
    """A room includes itself and rooms to its left; rooms of one rank do not know each other."""
    for path in files(root, SOURCES, *ROOMS):
        room = path.split(os.sep)[0]
        for number, line in lines(root, path):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match[1]
            other = "runtime" if name.startswith("wengert/runtime/") else "frontend" if name.startswith("wengert/") else name.split("/")[0]
            if other in ("tests", "bench", "examples") or other in ROOMS and other != room and ROOMS[other] >= ROOMS[room]:
                yield f"{path}:{number}: {room}/ includes {name}, which is not to its left"


def runtime_knows_no_mlir(root):
    """runtime/ includes no MLIR, and of LLVM one header in one file; ir/, autodiff/, passes/, codegen/ no Eigen."""
    for path in files(root, SOURCES, *ROOMS):
        room = path.split(os.sep)[0]
        banned = re.compile(r"^(mlir|llvm)") if room == "runtime" else re.compile(r"^(unsupported/)?Eigen") if room in ("ir", "autodiff", "passes", "codegen") else None
        for number, line in lines(root, path):
            match = INCLUDE.match(line)
            if banned and match and banned.match(match[1]) and (path, match[1]) != ("runtime/io/Digest.cpp", "llvm/Support/BLAKE3.h"):
                yield f"{path}:{number}: {room}/ includes {match[1]}"


STAGING_SEEN = ("frontend/staging/Apply.h", "frontend/staging/Shards.h", "frontend/staging/Tape.h")


def what_people_write_knows_no_mlir(root):
    """frontend/ apart from staging/ and saving/ includes no MLIR, no room that is made of it, and of staging/ two headers alone, for which the same holds."""
    banned = re.compile(r"^(mlir|llvm|ir|autodiff|passes|codegen|frontend/staging|frontend/saving)/")
    for path in files(root, SOURCES, "frontend"):
        if path.startswith(("frontend/staging/", "frontend/saving/")) and path not in STAGING_SEEN:
            continue
        for number, line in lines(root, path):
            match = INCLUDE.match(line)
            if match and banned.match(match[1]) and match[1] not in STAGING_SEEN:
                yield f"{path}:{number}: includes {match[1]}"


def rooms_have_readmes(root):
    """Every room, and every other folder of the top level that holds sources, has a README.md."""
    for folder in sorted(os.listdir(root)):
        full = os.path.join(root, folder)
        if not os.path.isdir(full) or folder.startswith((".", "build")) or not any(files(root, SOURCES + (".py", ".mlir", ".txt"), folder)):
            continue
        if folder in ("cmake", "scripts", "docs"):
            continue
        if not os.path.exists(os.path.join(full, "README.md")):
            yield f"{folder}: has no README.md"


NEAR = re.compile(r"^\s*(?://|#)\s*([A-Za-z][\w-]*?)\s*([:;])")
DIRECTIVE = re.compile(r"^(RUN|(CHECK|[A-Z][A-Z0-9]*)(-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?)$")
MODES = ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", "COUNT")


def check_lines_are_read(root):
    """In .mlir tests: a RUN line, a CHECK prefix that FileCheck is told of, no near miss of either, and nothing to check without FileCheck."""
    for path in files(root, (".mlir",), "tests"):
        if any(f"{os.sep}{folder}{os.sep}" in path for folder in ("Inputs", "data", "programs")):
            continue
        numbered = lines(root, path)
        text = "\n".join(line for _, line in numbered)
        runs = [line for _, line in numbered if re.match(r"^// RUN: ", line)]
        prefixes = {"CHECK"} | {p for group in re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", text) for p in group.split(",")}
        if not runs:
            yield f"{path}:1: no `// RUN: ` line"
        if not re.search(r"FileCheck|--verify-diagnostics|\bdiff\b|\bcmp\b|\bnot\b", "\n".join(runs)):
            yield f"{path}:1: the RUN lines compare nothing"
        for number, line in numbered:
            if line.lstrip().startswith("//") and re.match(r"^\s*//\s*(run|Run|RUN)\s*[;:]", line) and not re.match(r"^// RUN: ", line):
                yield f"{path}:{number}: near miss of `// RUN: `"
            match = NEAR.match(line)
            if not match or match[1] == "RUN":
                continue
            word, base = match[1], match[1].split("-")[0]
            known = [p for p in prefixes if word == p or word.startswith(p + "-")]
            if known:
                rest = word[len(max(known, key=len)) + 1:]
                if match[2] != ":" or rest and not re.match(r"^(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)$", rest):
                    yield f"{path}:{number}: `{word}{match[2]}` is not a FileCheck directive"
            elif base.upper() in {p.split("-")[0] for p in prefixes} or re.sub(r"[^A-Z]", "", base.upper()) in ("CHCEK", "CHEK", "CHECKS", "CHECKNEXT", "CHECKNOT", "CHECKSAME", "CHECKLABEL"):
                yield f"{path}:{number}: near miss: `{word}` is not among the prefixes {', '.join(sorted(prefixes))}"


def no_machine_paths(root):
    """No absolute path of one machine and no way around a check in sources, tests and scripts."""
    for path in files(root, SOURCES + (".py", ".md", ".mlir", ".cmake", "CMakeLists.txt")):
        for number, line in lines(root, path):
            if re.search(r"(?<![\w.])/(home/(?!user/)|root/|work/)\w", line) or re.search(r"\bDISABLED_\w", line.replace("`DISABLED_`", "")):
                if not path.endswith("hygiene.py"):
                    yield f"{path}:{number}: {line.strip()[:100]}"


def op_tables_are_current(root, build):
    """docs/ops.md and docs/numbers.md show the tables that the build writes from the records."""
    for written, page in (("ops.md", "ops.md"), ("agreement.md", "numbers.md")):
        table = open(os.path.join(build, "include", written), encoding="utf-8").read().strip()
        if table not in open(os.path.join(root, "docs", page), encoding="utf-8").read():
            yield f"docs/{page}: its table is not that of the records; run scripts/generate"


def ops_are_complete(root, build):
    """Every op has a derivative rule or says why not, and samples for every op but those made of structure."""
    table = open(os.path.join(build, "include", "ops.md"), encoding="utf-8").read()
    sampled = set(re.findall(r"WG_SAMPLE\((\w+),", open(os.path.join(build, "include", "tests", "Samples.inc"), encoding="utf-8").read()))
    for row in re.findall(r"^\| `.*$", table, re.M):
        name, *columns = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        name = name.strip("`")
        if any(cell in ("", "-") for cell in columns[3:]) and name not in ("kernel", "rewind"):
            yield f"{name}: a hole in docs/ops.md: {row}"
        if name not in sampled and name not in ("call", "cond", "loop", "rewind", "kernel", "yield", "constant"):
            yield f"{name}: no samples"


def rules_are_formulas(root):
    """Derivative rules stand in the section `Derivatives` of their file, batch rules in `Batches`; neither mentions a builder or a location."""
    for path in files(root, (".cpp",), "ir/ops"):
        section = ""
        for number, line in lines(root, path):
            if line.startswith("//===- "):
                section = line
            inside = "Derivatives" in section or "Batches" in section
            if inside and re.search(r"\b(OpBuilder|Location|getLoc|builder|loc)\b", line.split("//")[0]):
                yield f"{path}:{number}: a rule mentions where it builds: {line.strip()}"
            if not inside and re.search(r"^(Slopes|Terms|FailureOr<(Terms|Expr)>) \w+::(slopes|transpose|vjp|batch)\(", line):
                yield f"{path}:{number}: a rule outside of the sections `Derivatives` and `Batches`"


def numbers_name_what_exists(root):
    """A row of a table of docs/numbers.md is about ops and public functions that there are."""
    known = set()
    for path in files(root, (".td",), "ir/ops"):
        known |= {name for _, line in lines(root, path) for name in re.findall(r'^def WG_\w+ : \w+<"(\w+)"', line)}
    for path in files(root, (".h",), "frontend/wengert"):
        known |= {name for _, line in lines(root, path) for name in re.findall(r"\b([a-z]\w*)\(", line)}
    for number, line in lines(root, "docs/numbers.md"):
        for name in re.findall(r"`([a-z]\w*)[^`]*`", line.split("|")[1]) if line.startswith("| ") else []:
            if name not in known:
                yield f"docs/numbers.md:{number}: `{name}` is neither an op nor a public function"


def composites_are_sampled(root):
    """Every public function that no record generates has samples in tests/Composites.inc, or a reason there, and no row names a function that is gone."""
    table = open(os.path.join(root, "tests/Composites.inc"), encoding="utf-8").read() if os.path.exists(os.path.join(root, "tests/Composites.inc")) else ""
    sampled = set(re.findall(r"^WG_(?:NO_)?COMPOSITE\((\w+),", table, re.M))
    declared = set()
    for header in ("Ops.h", "Arrays.h", "Convolution.h", "Linalg.h", "Check.h", "nn/Module.h", "optim/Optimizer.h", "optim/Schedules.h", "metrics/Metrics.h", "Random.h", "nn/Losses.h", "nn/Normalization.h", "nn/Attention.h", "Math.h"):
        path = os.path.join(root, "frontend/wengert", header)
        if not os.path.exists(path):
            continue
        text = re.sub(r"\n(namespace detail \{|class |struct ).*?\n\}", "", open(path, encoding="utf-8").read(), flags=re.S)
        for name in re.findall(r"^WENGERT_API (?:Tensor|BatchNormResult|Found|Ordered|Lu|Qr|Eigh|Svd|Slogdet|std::vector<Tensor>|std::pair<[^;(]*>) (\w+)\(", text, re.M):
            declared.add(name)
            if name not in sampled:
                yield f"frontend/wengert/{header}: {name} has no row in tests/Composites.inc"
    for name in sorted(sampled - declared):
        yield f"tests/Composites.inc: {name} is declared nowhere"


def public_functions(root):
    """The functions of the public headers that take or make tensors: header, and name as a program within wg writes it."""
    for path in files(root, (".h",), "frontend/wengert"):
        text, scope = "\n".join(line for _, line in lines(root, path)), []
        for opened, closed, made, name, taken in re.findall(
            r"^(?:namespace ([\w:]+) \{|(\}) // namespace|WENGERT_API ([^;(]*?)\b(operator\W{1,2}|\w+)\(([^;]*)\))", text, re.M
        ):
            if opened:
                scope.append([part for part in opened.split("::") if part != "wg"])
            elif closed:
                scope.pop()
            elif not any("detail" in parts for parts in scope) and (re.search(r"\bTensor\b", made) or "Located" in taken and made.strip() not in ("void", "bool")):
                yield path, "::".join([part for parts in scope for part in parts] + [name])


def functions_have_references(root):
    """Every op and every public function of tensors has cases in the tables of tests/reference, or a reason in Calls.inc, and no reason is for what has cases or is gone."""
    calls = os.path.join(root, "tests/reference/Calls.inc")
    excused = set(re.findall(r"^WG_NO_REFERENCE\(([^,]+),", open(calls, encoding="utf-8").read(), re.M)) if os.path.exists(calls) else set()
    cases = {match[1] for path in files(root, (".jsonl",), "tests/reference") for _, line in lines(root, path) if (match := re.match(r'\{"name":"([^"]+)"', line))}
    declared = {name: path for path, name in public_functions(root)}
    ops = {match[1] for _, line in lines(root, "docs/ops.md") if (match := re.match(r"\| `(\w+)`", line))} if os.path.exists(os.path.join(root, "docs/ops.md")) else set()
    called = {name.split("::")[-1] for name in cases}  # an op `cholesky` is `linalg::cholesky`
    missing = {**{name: path for name, path in declared.items() if name not in cases}, **{name: "docs/ops.md" for name in ops - called}}
    for name in sorted(missing.keys() - excused):
        yield f"{missing[name]}: {name} has no case in tests/reference; write one, and its call into tests/reference/Calls.inc"
    for name in sorted(excused):
        if name in cases or name not in declared and name not in ops:
            yield f"tests/reference/Calls.inc: {name} {'has cases' if name in cases else 'is declared nowhere'}"


def public_headers_stand_alone(root, build, compiler):
    """Each public header compiles alone, with nothing on the include path that is not installed, and reaches no MLIR, LLVM or Eigen header."""
    headers = sorted(files(root, (".h",), "frontend/wengert"))
    if not headers:
        yield "frontend/wengert: no public headers"
    include = [f"-I{root}/frontend", f"-I{build}/include", f"-I{root}"]
    for header in headers:
        name = os.path.relpath(header, "frontend")
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as program:
            program.write(f"#include <{name}>\n")
            program.flush()
            run = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-H", *include, program.name], capture_output=True, text=True)
        if run.returncode:
            yield f"{header}: does not compile alone: {next((l for l in run.stderr.splitlines() if 'error' in l), run.stderr[:200])}"
        for line in run.stderr.splitlines():
            reached = line.lstrip(". ").strip()
            if re.match(r"^\.+ ", line) and re.search(r"/(mlir|llvm|Eigen)/|fmt/|nlohmann/", reached):
                yield f"{header}: reaches {reached}"
                break


COMMENT = re.compile(r"^\s*(//|/?\*)")
STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".clang-format")


def sources_are_formatted(root):
    """C and C++ sources are laid out as .clang-format says (`scripts/format` does it), and no comment is longer than its lines."""
    with open(STYLE, encoding="utf-8") as style:
        limit = int(re.search(r"^ColumnLimit: (\d+)", style.read(), re.M)[1])
    sources = list(files(root, (".h", ".cpp", ".c"), *ROOMS, "bench", "examples", "tests"))
    for at in range(0, len(sources), 50):
        run = subprocess.run(["clang-format-22", f"--style=file:{STYLE}", "--dry-run", *sources[at : at + 50]], cwd=root, capture_output=True, text=True)
        yield from (line for line in run.stderr.splitlines() if ": warning: " in line or ": error: " in line)
    for path in sources:
        for number, line in lines(root, path):
            if COMMENT.match(line) and len(line) > limit:
                yield f"{path}:{number}: a comment of {len(line)} columns, {limit} at most"


COMPARES_SHAPES = re.compile(r"(?<!Elements\()(shapeOf\(|getShape\(\))[^;]*[=!]=|[=!]=[^;]*(shapeOf\(|getShape\(\))")


def kernels_are_described(root):
    """codegen/ compares no shapes: what values of a kernel mean to its loops was decided when it was made (`loops` of wg.kernel, ir/Kernels.h)."""
    for path in files(root, (".h", ".cpp"), "codegen"):
        for number, line in lines(root, path):
            if not COMMENT.match(line) and COMPARES_SHAPES.search(line):
                yield f"{path}:{number}: compares shapes; ask the kernel's loops"


NAMED_OPS = re.compile(r"\bir::([A-Z]\w*)Op\b")
STRUCTURE = {"Kernel", "Yield", "Reshape", "Constant", "Call", "Dim", "Size", "StopGradient", "Version", "GradientHook"}  # what a program is made of, beside ops that compute


def ops_speak_for_themselves(root):
    """No list of op names outside of ir/: what is special about an op is said by the op, in a trait or an interface. An emitter names none but the contraction."""
    for path in files(root, (".h", ".cpp"), "autodiff", "passes", "codegen", "frontend", "tools"):
        for number, line in lines(root, path):
            if COMMENT.match(line):
                continue
            for names in re.findall(r"\b(?:dyn_cast|isa|isa_and_nonnull|isa_and_present|cast)<([^<>]*)>", line):
                listed = [name for name in NAMED_OPS.findall(names) if name not in STRUCTURE]
                if len(listed) > 1:
                    yield f"{path}:{number}: lists {' and '.join(listed)}"
            if path.startswith(("codegen/emit/", "codegen/EmitProgram", "codegen/PlanMemory")):
                for name in NAMED_OPS.findall(line):
                    if name not in STRUCTURE | {"Contract"}:
                        yield f"{path}:{number}: names {name}"


WALKS_TEMPORARY = re.compile(r"\bfor \(.* : .*(?<!\(\*)\b\w+\([^*].*\)\.set_bits\(\)|\bfor \(.* : .*\w\(\)\.set_bits\(\)|\bfor \(.* : llvm::reverse\(llvm::(?:to_vector|map_to_vector)\(")


def bits_outlive_their_walk(root):
    """No loop goes through the set bits of what a call has just returned, or through it reversed: it is gone when the first bit is looked at. Compilers do not see it; AddressSanitizer does, where a test gets there."""
    for path in files(root, (".h", ".cpp"), *ROOMS, "tests"):
        for number, line in lines(root, path):
            if WALKS_TEMPORARY.search(line):
                yield f"{path}:{number}: walks a view of a temporary"


BAD = {
    bits_outlive_their_walk: {"passes/Bad.cpp": "for (unsigned i : stateOf(value).set_bits())\n"},
    kernels_are_described: {"codegen/Bad.cpp": "bool isRow = shapeOf(x) == shapeOf(y);\n"},
    ops_speak_for_themselves: {"passes/Bad.cpp": "bool isCheap = isa<ir::OneHotOp, ir::IotaOp>(op);\n"},
    sources_are_formatted: {"runtime/Bad.cpp": "int  f ( );\n"},
    includes_point_left: {"runtime/Bad.h": '#include "ir/Dialect.h"\n'},
    runtime_knows_no_mlir: {"runtime/Bad.cpp": '#include "mlir/IR/Value.h"\n'},
    what_people_write_knows_no_mlir: {"frontend/ops/Bad.cpp": '#include "frontend/staging/Trace.h"\n'},
    rooms_have_readmes: {"passes/Bad.cpp": "\n"},
    check_lines_are_read: {"tests/bad.mlir": "// RUN: wengert-opt %s | FileCheck %s\n// CHECK-NXT: a\n"},
    composites_are_sampled: {"frontend/wengert/Ops.h": "WENGERT_API Tensor gelu(const Located &x);\n"},
    functions_have_references: {"frontend/wengert/Ops.h": "namespace wg::nn {\nWENGERT_API Tensor gelu(const Located &x);\n} // namespace wg::nn\n"},
    numbers_name_what_exists: {"docs/numbers.md": "| case | rule |\n|---|---|\n| `sort` of equals | stable |\n"},
    rules_are_formulas: {"ir/ops/Bad.cpp": "//===- Derivatives ---===//\nTerms BadOp::transpose(Expr ct) { return OpBuilder(ct).getF64Type(); }\n"},
    no_machine_paths: {"runtime/Bad.cpp": "// /home/somebody/file\n"},
}


def fails_on_bad(rule):
    with tempfile.TemporaryDirectory() as root:
        for path, text in BAD[rule].items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            open(os.path.join(root, path), "w").write(text)
        if not list(rule(root)):
            yield f"{rule.__name__} does not find its bad example"


def main(root, build, compiler, report):
    tests = [(rule.__name__, rule(root)) for rule in BAD] + [(rule.__name__ + "_can_fail", fails_on_bad(rule)) for rule in BAD]
    tests += [("op_tables_are_current", op_tables_are_current(root, build)), ("ops_are_complete", ops_are_complete(root, build)),
              ("public_headers_stand_alone", public_headers_stand_alone(root, build, compiler))]
    failed, cases = 0, []
    for name, breaches in tests:
        found = list(breaches)
        failed += bool(found)
        print(f"{'failed' if found else 'passed'}: {name}")
        print("".join(f"  {breach}\n" for breach in found), end="")
        inner = f"<failure>{xml.escape(chr(10).join(found))}</failure>" if found else ""
        cases.append(f'<testcase classname="hygiene" name="{name}">{inner}</testcase>')
    with open(report, "w") as out:
        out.write(f"<testsuite>{''.join(cases)}</testsuite>")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:3]), *sys.argv[3:]))
