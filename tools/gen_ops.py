#!/usr/bin/env python3
"""Writes what follows from the op records: `gen_ops.py OPS.json OUT_DIR`.

OPS.json is `llvm-tblgen --dump-json` of ir/Ops.td. A file is rewritten only if its text changes, so that nothing is rebuilt for nothing.

  runtime/OpIds.inc    WG_OP(name, Class) for each op, in the order of the records
  runtime/OpTable.inc  one OpRecord row an op
  runtime/OpAttrs.inc  one struct an op with attributes: their places by name, and `make`
  ir/OpBridge.inc      inferReturnTypes of every op whose types follow from the shape rule
  wengert/Ops.inc      declarations of the public functions, with their docstrings
  frontend/Ops.inc     their definitions
  tests/Samples.inc    WG_SAMPLE(op, "sample")
  ops.md               the table of docs/ops.md
  agreement.md         that of docs/numbers.md: how far compiled code may be from the interpreter
"""
import json
import math
import os
import re
import sys

FAMILIES = ["Elementwise", "Special", "Bits", "Compare", "Cast", "Reduce", "Contract", "Shape", "Index", "Cumulative", "Sort", "Random", "Linalg", "Control"]
ATTR_KINDS = {"I64Attr": "integer", "F64Attr": "real", "TypeAttr": "dtype", "DenseI64ArrayAttr": "ints", "WG_Sizes": "ints", "StrAttr": "string",
              "ElementsAttr": "array", "FlatSymbolRefAttr": "string", "BoolAttr": "boolean"}
ATTR_TYPES = {"integer": "int64_t", "real": "double", "dtype": "DType", "ints": "const Ints &", "string": "const std::string &",
              "array": "const Array &", "boolean": "bool"}
DTYPE_SETS = {"any": "kAnyDType", "floats": "kFloats", "numbers": "kNumbers", "integers": "kIntegers", "booleans": "kBooleans"}


# The forms in which an op states its derivative (ir/Interfaces.td).
DERIVATIVES = {"Diagonal": "slopes", "Linear": "linear", "Bilinear": "bilinear", "Differentiable": "vjp"}


# How an op is done for many lanes at once (ir/Rules.h).
BATCHED = {"Batchable": "a rule", "Scalar": "one axis more", "Reduction": "axes shifted"}


# How compiled code makes an op's result.
EMITTED = {"Scalar": "an element", "View": "a view", "Indexed": "an element of its place", "Structured": "its own loops", "External": "a routine",
           "Reduction": "a reduction"}


# The shapes that samples are to have, each by what tells it.
SHAPES = {"rank 0": lambda shape: not shape, "rank 8": lambda shape: len(shape) == 8, "a size of 1": lambda shape: 1 in shape, "no elements": lambda shape: 0 in shape}


def shapes_of(sample):
    """Of its operands, and what it makes where an attribute says so."""
    operands, _, attrs = sample.split("#")[0].partition("|")
    texts = re.findall(r"[a-z]+[0-9]*\[([^\]]*)\](?= in| =)", operands) + re.findall(r"shape = \[([^\]]*)\]", attrs)
    return [[int(size) for size in text.split(",") if size.strip()] for text in texts]


def reshaped(sample, shape):
    """The sample with operands of this shape, whose values, where they are listed, are the first of those, again and again."""
    operands, rest = re.fullmatch(r"([^|#]*?)\s*([|#].*)?", sample).groups()
    parts = []
    for operand in operands.split(";"):
        dtype, values = re.fullmatch(r"\s*([a-z0-9]+)\[[^\]]*\] (in .*|= \[.*\])\s*", operand).groups()
        if values.startswith("="):
            listed = values[3:-1].split(", ")
            values = "= [" + ", ".join(listed[i % len(listed)] for i in range(math.prod(shape))) + "]"
        parts.append(f"{dtype}[{','.join(map(str, shape))}] {values}")
    return "; ".join(parts) + (f" {rest}" if rest else "")


class Op:
    def __init__(self, name, record, records):
        self.record = record
        self.name = record["opName"]
        self.cls = name.removeprefix("WG_")
        self.summary = record["summary"]
        self.description = " ".join(record["description"].split()) if record.get("description") else ""
        self.supers = record["!superclasses"]
        self.file, line = record["!locs"][0].rsplit(":", 1)
        self.family = os.path.basename(self.file).removesuffix(".td")
        self.order = (FAMILIES.index(self.family), int(line))
        self.operands, self.attrs, self.open, self.variadic, self.defaults = [], [], set(), False, {}
        for value, arg in record["arguments"]["args"]:
            kind = value["def"]
            if "DefaultValuedAttr" in records[kind].get("!superclasses", []):
                self.defaults[arg] = records[kind]["defaultValue"]
                kind = records[kind]["baseAttr"]["def"]
            if kind in ATTR_KINDS:
                self.attrs.append((arg, ATTR_KINDS[kind]))
                if kind == "WG_Sizes":
                    self.open.add(arg)
            elif "Variadic" in records[kind]["!superclasses"]:
                self.variadic = True
            elif "Attr" in records[kind]["!superclasses"]:
                pass  # the IR's own
            else:
                self.operands.append(arg)
        self.results = [arg for _, arg in record["results"]["args"]]
        traits = self.all_traits(record["traits"], records)
        traits = list(traits)
        self.interfaces = {str(records[t].get("trait")).removesuffix("::Trait") for t in traits}
        self.derivative = next((form for interface, form in DERIVATIVES.items() if interface in self.interfaces), None)
        self.differentiable = self.derivative is not None
        self.reason = next((records[t]["extraConcreteClassDeclaration"].split('"')[1] for t in traits
                            if records[t].get("trait") == "StatesWhyNotDifferentiable"), None)
        self.elementwise = "Scalar" in self.interfaces
        self.batched = {"call": "a batched function", "cond": "batched branches", "loop": "a batched body", "kernel": "none: made after batching", "rewind": "none: made after batching", "host": "one after the other", "barrier": "as it is"}.get(
            self.name, next((how for interface, how in BATCHED.items() if interface in self.interfaces), None))
        if not self.batched and not self.operands and (not self.variadic or self.open or self.name == "size"):
            self.batched = "the same in all lanes"  # it has sizes for operands, or none
        self.inferred = "WG_InferredOp" in self.supers
        self.samples = record["samples"]
        if self.elementwise and self.samples:
            self.samples = self.samples + [reshaped(self.samples[0], shape) for shape in ([], [0, 3], [1, 2, 1, 1, 2, 1, 1, 1])]
        found = [shape for sample in self.samples for shape in shapes_of(sample)]
        excepted = {text.split(": ")[0] for text in record["without"]}
        if self.samples:
            for kind, told in SHAPES.items():
                if any(map(told, found)) == (kind in excepted):
                    sys.exit(f"{self.file}: op '{self.name}' has {'a' if kind in excepted else 'no'} sample of {kind}, and says in `without` {'that it has none' if kind in excepted else 'no reason'}")

    def all_traits(self, traits, records):
        for trait in traits:
            yield trait["def"]
            yield from self.all_traits(records[trait["def"]].get("traits") or [], records)

    def attr_struct(self):
        lines = [f"/// Attributes of {self.name}.", f"struct {self.cls.removesuffix('Op')}Attrs {{", "  const Attrs &attrs;"]
        for i, (attr, kind) in enumerate(self.attrs):
            lines.append(f"  {ATTR_TYPES[kind]}{'' if ATTR_TYPES[kind].endswith('&') else ' '}{attr}() const {{ return attrs.{kind}({i}); }}")
        params = ", ".join(f"{ATTR_TYPES[k]}{'' if ATTR_TYPES[k].endswith('&') else ' '}{a}" + (f" = {self.defaults[a]}" if a in self.defaults else "")
                           for a, k in self.attrs)
        lines.append(f"  static Attrs make({params}) {{ return Attrs({{{', '.join('AttrValue(' + a + ')' for a, _ in self.attrs)}}}); }}")
        return "\n".join(lines + ["};", ""])

    def table_row(self):
        attrs = ", ".join(f'{{"{a}", AttrKind::{k}{", true" if a in self.open else ""}}}' for a, k in self.attrs)
        spec = f"k_{self.name}_attrs" if self.attrs else "{}"
        head = f"static constexpr AttrRecord k_{self.name}_attrs[] = {{{attrs}}};\n" if self.attrs else ""
        return head, (f'  {{OpId::{self.name}, "{self.name}", "{self.summary}", {len(self.operands)}, {str(self.variadic).lower()}, '
                      f'{DTYPE_SETS[self.record["dtypes"]]}, {str(self.differentiable).lower()}, {str(self.elementwise).lower()}, {spec}}},')

    def signature(self):
        """-> (parameters with defaults, parameters, body) of the public function."""
        if "WG_ReduceOp" in self.supers:
            return ("const Located &x, const Axes &axes = Axes::all(), bool keepdims = false",
                    "const Located &x, const Axes &axes, bool keepdims", f"return detail::reduce(OpId::{self.name}, x, axes, keepdims);")
        params = ["const Located &" + o for o in self.operands] + [
            f"{ATTR_TYPES[k]}{'' if ATTR_TYPES[k].endswith('&') else ' '}{a}" for a, k in self.attrs]
        if len(self.operands) == 2 and self.elementwise:
            body = f"return detail::binary(OpId::{self.name}, {', '.join(self.operands)});"
        elif self.name == "argmax":
            return ("const Located &x, int64_t axis = -1", "const Located &x, int64_t axis", "return detail::argmax(x, axis);")
        else:
            attrs = f"runtime::{self.cls.removesuffix('Op')}Attrs::make({', '.join(a for a, _ in self.attrs)})" if self.attrs else "{}"
            body = f"return detail::apply(OpId::{self.name}, {attrs}, {{{', '.join('&' + o for o in self.operands)}}});"
            if "indices" in self.operands:  # of any integer dtype
                body = f'Located places(detail::indicesOf("{self.name}", "the indices", indices), indices.where()); ' + body.replace("&indices", "&places")
        declared = params[:len(params) - len(self.attrs)] + [p + f" = {self.defaults[a]}" if a in self.defaults else p
                                                             for p, (a, _) in zip(params[len(params) - len(self.attrs):], self.attrs)]
        return ", ".join(declared), ", ".join(params), body

    def infer(self):
        inherent = (f"properties ? {self.cls}::getInherentAttr(context, *properties.as<{self.cls}::Properties *>(), name).value_or(::mlir::Attribute())\n"
                    "                                  : attributes.get(name)") if self.attrs else "(void)name, ::mlir::Attribute()"
        unused = "" if self.attrs else "  (void)attributes;\n  (void)properties;\n"
        return f"""::llvm::LogicalResult {self.cls}::inferReturnTypes(::mlir::MLIRContext *context, std::optional<::mlir::Location> location,
    ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange,
    ::llvm::SmallVectorImpl<::mlir::Type> &types) {{
{unused}  return inferByShapeRule(context, location, runtime::OpId::{self.name}, operands, [&](::llvm::StringRef name) -> ::mlir::Attribute {{
    return {inherent};
  }}, types);
}}
"""

    def markdown(self):
        """The op's row of docs/ops.md."""
        if self.name in ("call", "cond", "loop", "rewind"):
            derivative = {"call": "its function's", "cond": "its branches'", "loop": "its body's", "rewind": "none: made after differentiation"}[self.name]
            reverse = forward = {"call": "a pair of functions", "rewind": "-"}.get(self.name, f"a {self.name}")
        elif self.differentiable:
            derivative, reverse, forward = self.derivative, "yes", "its vjp, reversed" if self.derivative == "vjp" else "yes"
        else:
            derivative = f"none: {self.reason}" if self.reason else "-"
            reverse = forward = "stops" if self.reason else "-"
        attrs = ", ".join(a for a, _ in self.attrs) or "-"
        emitted = next((how for interface, how in EMITTED.items() if interface in self.interfaces), "-")
        emitted = {"contract": "a contraction", "reshape": "a view", "constant": "a literal", "call": "inlined", "cond": "a branch", "loop": "a loop", "rewind": "two loops", "dim": "a size", "size": "a size",
                   "kernel": "its own loops", "barrier": "nothing"}.get(self.name, emitted)
        return (f"| `{self.name}` | {self.summary.replace('|', chr(92) + '|')} | {attrs} | {self.record['dtypes']} | {derivative} | {reverse} | {forward} | "
                f"{self.batched} | {emitted} |")


def agreement(op):
    """The op's row of docs/numbers.md; none if it agrees bit for bit."""
    text = op.record["agreement"]
    if not text:
        return []
    row = re.fullmatch(r"(\d+), (\d+) ulp of (the element|the absolute terms)", text)
    if not row:
        sys.exit(f"{op.file}: op '{op.name}': agreement is '<f64>, <f32> ulp of the element' or '... of the absolute terms', not '{text}'")
    return [f"| `{op.name}` | " + " | ".join(row.groups()) + " |"]


def docstring(op):
    text = op.description
    words, lines, line = text.split(), [], "///"
    for word in words:
        if len(line) + 1 + len(word) > 110:
            lines.append(line)
            line = "///"
        line += " " + word
    return "\n".join(["/// `" + op.summary + "`."] + lines + ([line] if line != "///" else []))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, "w") as out:
            out.write(text)


def main():
    records = json.load(open(sys.argv[1]))
    out = sys.argv[2]
    ops = sorted((Op(n, records[n], records) for n in records["!instanceof"]["WG_Op"]), key=lambda op: op.order)
    for op in ops:
        if op.name not in ("call", "cond", "loop", "rewind", "yield", "kernel"):
            if not op.differentiable and not op.reason:
                sys.exit(f"{op.file}: op '{op.name}' has neither a derivative rule (WG_HasSlopes, WG_IsLinear, WG_IsBilinear, WG_Differentiates) nor a reason (WG_NotDifferentiable<...>)")
            if not op.batched:
                sys.exit(f"{op.file}: op '{op.name}' is neither Scalar nor a Reduction and has no rule for lanes (WG_Batches)")
            if not op.samples and op.name != "constant":
                sys.exit(f"{op.file}: op '{op.name}' has no samples")
    head = "// Written by tools/gen_ops.py from ir/ops/*.td.\n"
    public = [op for op in ops if op.record["publicFunction"]]
    rows = [op.table_row() for op in ops]
    write(f"{out}/runtime/OpIds.inc", head + "".join(f"WG_OP({op.name}, {op.cls})\n" for op in ops))
    write(f"{out}/runtime/OpTable.inc", head + "".join(h for h, _ in rows) + "static const OpRecord kRecords[] = {\n" + "\n".join(r for _, r in rows) + "\n};\n")
    write(f"{out}/runtime/OpAttrs.inc", head + "\n".join(op.attr_struct() for op in ops if op.attrs))
    write(f"{out}/ir/OpBridge.inc", head + "\n".join(op.infer() for op in ops if op.inferred))
    write(f"{out}/wengert/Ops.inc", head + "\n".join(f"{docstring(op)}\nWENGERT_API Tensor {op.name}({op.signature()[0]});\n" for op in public))
    write(f"{out}/frontend/Ops.inc", head + "\n".join(f"Tensor {op.name}({op.signature()[1]}) {{ {op.signature()[2]} }}\n" for op in public))
    write(f"{out}/tests/Samples.inc", head + "".join(f'WG_SAMPLE({op.name}, "{s}")\n' for op in ops for s in op.samples))
    rows = [row for op in ops for row in agreement(op)]
    write(f"{out}/agreement.md", "| op | f64 | f32 | ulp of |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    write(f"{out}/ops.md", "| op | meaning | attributes | dtypes | derivative | vjp | jvp | vmap | compiled |\n|---|---|---|---|---|---|---|---|---|\n" + "\n".join(op.markdown() for op in ops if op.name != "yield") + "\n")


if __name__ == "__main__":
    main()
