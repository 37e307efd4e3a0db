// Conditions and loops. In a trace each branch and body is traced as a function; what it captures, and the variables
// that it reads or assigns, become operands of one op, and assigned variables results.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"

#include <wengert/Control.h>

#include "autodiff/Writer.h"
#include "ir/Build.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace wg::detail {

//===- Eager ------------------------------------------------------------------------------------------------------===//

bool isTracing() { return level().trace != nullptr; }

/// A scalar of this dtype, with a value.
static const Tensor &checkScalar(const char *op, const char *what, const Tensor &x, bool isBool, const Where &where) {
  const TensorType &type = x.body(where)->type;
  bool fits = isBool ? type.dtype == DType::boolean : type.dtype == DType::i32 || type.dtype == DType::i64;
  if (!fits || type.shape.rank() != 0)
    raiseOp(op,
            std::string(what) + " is " + toString(type) +
                (isBool ? "; it is a bool scalar" : "; it is an i32 or i64 scalar"),
            isBool ? "compare with a number and reduce: reduce_all(x > 0)" : "cast it and reduce it to a scalar",
            {type}, where, ErrorKind::type);
  return x;
}

bool truthOf(const char *op, const Tensor &predicate, const Where &where) {
  return checkScalar(op, "the predicate", predicate, true, where).item<bool>(where);
}

int64_t branchOf(const Tensor &index, int64_t count, const Where &where) {
  const Tensor &x = checkScalar("switch_case", "the index", index, false, where);
  int64_t number = x.body(where)->type.dtype == DType::i32 ? x.item<int32_t>(where) : x.item<int64_t>(where);
  return std::clamp<int64_t>(number, 0, count - 1);
}

void raiseNegative(const char *op, const char *what, int64_t value, const Where &where) {
  raiseOp(op, std::string(what) + " is " + std::to_string(value), "give a number of turns, or -1 for no limit", {},
          where);
}

/// Of a turn: what was carried in, and out.
[[noreturn]] static void raiseCarried(const char *op, size_t i, const TensorType &before, const TensorType &after,
                                      const std::string &turn, const Where &where) {
  raiseOp(op,
          "tensor " + std::to_string(i) + " of the state enters the loop as " + toString(before) + ", but is " +
              toString(after) + " after " + turn,
          before.dtype == after.dtype ? "keep its shape: pad the initial state to the largest one"
                                      : "cast it in the body, or begin with a tensor of that dtype",
          {before, after}, where, ErrorKind::type);
}

static std::string turnsDone(int64_t turn) { return turn == 0 ? "one turn" : std::to_string(turn + 1) + " turns"; }

void checkCarried(const char *op, const std::vector<Tensor> &before, const std::vector<Tensor> &after, int64_t turn,
                  const Where &where) {
  std::string name = turnsDone(turn);
  if (before.size() != after.size())
    raiseOp(op,
            "the state has " + std::to_string(before.size()) + " tensors, and " + std::to_string(after.size()) +
                " after " + name,
            "return as many as come in", {}, where, ErrorKind::type);
  for (size_t i = 0; i < before.size(); ++i) {
    const TensorType &in = before[i].body(where)->type, &out = after[i].body(where)->type;
    if (!(in == out) && !(in.dtype == out.dtype && sameSizes(in.shape, out.shape)))
      raiseCarried(op, i, in, out, name, where);
  }
}

const Tensor &anyTensor() {
  static const Tensor *any = new Tensor(TensorSpec{f32, Shape()});
  return *any;
}

/// The first leaf in which two structures differ, of one and of the other: `["w"]: length 2`; empty if none does.
static std::pair<std::string, std::string> difference(const Structure &a, const Structure &b) {
  FunctionOptions unnamed;
  unnamed.argument_names = {""};
  std::vector<SignatureLeaf> left = leavesOf(a, unnamed), right = leavesOf(b, unnamed);
  auto text = [](const std::vector<SignatureLeaf> &leaves, size_t i) {
    return i >= leaves.size()   ? std::string("nothing more")
           : leaves[i].isStatic ? (leaves[i].path.empty() ? "" : leaves[i].path + ": ") + leaves[i].text
                                : "a tensor" + (leaves[i].path.empty() ? "" : " at " + leaves[i].path);
  };
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i)
    if (std::string x = text(left, i), y = text(right, i); x != y)
      return {x, y};
  return {};
}

void checkStructure(const char *op, const Structure &before, const Structure &after, int64_t turn, const Where &where) {
  if (before == after)
    return;
  auto [in, out] = difference(before, after);
  raiseOp(op, "the state enters the loop with " + in + ", and has " + out + " after " + turnsDone(turn),
          "keep its structure and its numbers: what changes from turn to turn is a tensor", {}, where, ErrorKind::type);
}

void checkRows(const char *op, const Structure &first, const Structure &row, int64_t turn, const Where &where) {
  if (first == row)
    return;
  auto [a, b] = difference(first, row);
  raiseOp(op, "the first turn gives " + a + " to be stacked, and turn " + std::to_string(turn + 1) + " " + b,
          "give the same structure and numbers in each turn: what changes is a tensor", {}, where, ErrorKind::type);
}

void checkEnd(const Tensor &end, const Where &where) {
  if (const TensorType &type = end.body(where)->type; type.dtype != DType::i64 || type.shape.rank() != 0)
    raiseOp("for_range", "the end is " + toString(type) + "; it is an i64 scalar", "cast it: cast(n, i64)", {type},
            where, ErrorKind::type);
}

int64_t lengthOf(const char *op, const std::vector<Tensor> &xs, int64_t length, const Where &where) {
  if (length < -1)
    raiseNegative(op, "length", length, where);
  if (xs.empty() && length < 0)
    raiseOp(op, "nothing is scanned, and there is no length", "give ScanOptions::length", {}, where);
  for (const Tensor &x : xs) {
    const TensorType &type = x.body(where)->type;
    if (type.shape.rank() == 0)
      raiseOp(op, toString(type) + " is a scalar and has no rows to go over",
              "pass a tensor with an axis for the turns", {type}, where, ErrorKind::type);
    int64_t rows = type.shape.dim(0);
    if (length >= 0 && rows >= 0 && rows != length)
      raiseOp(op,
              "a tensor that is scanned is " + toString(type) + ", and there are " + std::to_string(length) + " turns",
              "give all of them as many rows", {type}, where);
    if (rows >= 0)
      length = rows;
  }
  return length;
}

Tensor rowOf(const Tensor &x, int64_t i, const Where &where) { return index(Located(x, where), i); }

Tensor rowsOf(const Tensor &x, int64_t begin, int64_t end, int64_t step, const Where &where) {
  return slice(Located(x, where), {begin}, {end}, {step});
}

/// The elements of x as so many rows like those of `like`.
static Tensor inRows(const Tensor &x, int64_t rows, const Tensor &like, const Where &where) {
  Shape shape{rows};
  std::vector<Tensor> sizes;
  for (int axis = 1; axis < like.rank(); ++axis) {
    shape.push_back(like.shape().dim(axis));
    if (shape.dim(axis) == dynamic)
      sizes.push_back(dim(like, axis, where));
  }
  return reshapeTo(x, shape, sizes, where);
}

Tensor withRows(const Tensor &x, int64_t rows, const Where &where) {
  return x.body(where)->type.shape.dim(0) == rows ? x : inRows(x, rows, x, where);
}

Tensor interleaved(const Tensor &even, const Tensor &odd, const Where &where) {
  int64_t pairs = odd.body(where)->type.shape.dim(0), all = even.body(where)->type.shape.dim(0);
  Tensor both = stack({all == pairs ? even : rowsOf(even, 0, pairs, 1, where), odd}, 1, where);
  Tensor y = inRows(both, 2 * pairs, odd, where);
  return all == pairs ? y : concat({y, rowsOf(even, pairs, all, 1, where)}, 0, where);
}

Tensor turnedOver(const Tensor &x, int64_t rows, const Where &where) {
  return rows < 2 ? x : gather(Located(x, where), Located(arange(rows - 1, -1, -1, i64), where));
}

int64_t checkEvery(const char *op, int64_t every, int64_t length, const Where &where) {
  if (every < 0)
    raiseOp(op, "checkpoint_every is " + std::to_string(every), "give a number of turns, or 0 to keep all", {}, where);
  if (length < 0)
    raiseOp(op, "checkpoint_every wants a number of turns that is known",
            "give max_steps, or trace with the number of rows", {}, where);
  return std::max<int64_t>(1, std::min(every, length));
}

void checkRowsAreKnown(const char *op, int64_t rows, const Where &where) {
  if (rows < 0)
    raiseOp(op, "the number of rows is an open size", "trace with the number of rows given", {}, where);
}

void checkEnd(const char *op, int64_t begin, int64_t end, const Where &where) {
  if (begin == dynamic || end == dynamic)
    raiseOp(op, "the range begins or ends at an open size, which no number stands for",
            "scan the rows instead, or trace with this size given", {}, where);
}

void checkCheckpoints(const char *op, int64_t checkpoints, int64_t every, const Where &where) {
  if (checkpoints < 0)
    raiseOp(op, "checkpoints is " + std::to_string(checkpoints), "give a number of states, or 0 to keep all", {},
            where);
  if (checkpoints > 0 && every != 0)
    raiseOp(op, "has both checkpoints and checkpoint_every", "give one of them", {}, where);
}

Tensor inParts(const Tensor &x, int64_t every, const Where &where) {
  const Shape &shape = x.body(where)->type.shape;
  std::vector<int64_t> sizes{shape.dim(0) / every, every};
  sizes.insert(sizes.end(), shape.begin() + 1, shape.end());
  return reshape(Located(x, where), Shape(std::span<const int64_t>(sizes)));
}

Tensor joined(const Tensor &parts, const Where &where) {
  const Shape &shape = parts.body(where)->type.shape;
  std::vector<int64_t> sizes{shape.dim(0) * shape.dim(1)};
  sizes.insert(sizes.end(), shape.begin() + 2, shape.end());
  return reshape(Located(parts, where), Shape(std::span<const int64_t>(sizes)));
}

Tensor rowSpec(const Tensor &x) {
  const TensorType &type = x.body({})->type;
  if (type.shape.rank() == 0)
    return Tensor(TensorSpec{type.dtype, Shape()}); // lengthOf says what is wrong
  return Tensor(TensorSpec{type.dtype, Shape(std::span<const int64_t>(type.shape.begin() + 1, type.shape.end()))});
}

//===- Traced -----------------------------------------------------------------------------------------------------===//

namespace {

/// Branches or bodies of one op, and what they take from outside.
class Bodies {
public:
  Bodies(const char *op, Trace &trace, const Where &where) : op_(op), trace_(trace), where_(where) {}

  /// Traces one more.
  ConcreteState &add(Arguments &arguments, const Body &body) {
    std::shared_ptr<FunctionState> function = makeFunction(op_, {}, where_);
    bodies_.push_back(function->find(arguments, body, /*exact=*/true));
    return *bodies_.back();
  }
  /// When all are there: the variables that some of them assign, and then everything else that they take.
  void collect() {
    for (const auto &body : bodies_)
      for (uint32_t input : body->assigned)
        if (const auto &state = body->inputs[input].state; placeOf(assigned_, state.get()) == assigned_.size())
          assigned_.push_back(state);
    for (const auto &state : assigned_)
      values_.push_back(trace_.valueOf(readVariable(state, where_), op_, where_));
    for (const auto &body : bodies_)
      for (const TraceInput &input : body->inputs) {
        if (input.kind == TraceInput::argument || placeOf(input) < outside())
          continue;
        outside_.push_back(&input);
        values_.push_back(trace_.valueOf(
            input.kind == TraceInput::variable ? readVariable(input.state, where_) : input.captured, op_, where_));
      }
  }

  const std::vector<std::shared_ptr<VariableState>> &assigned() const { return assigned_; }
  /// The values of the assigned variables, then of the rest.
  ArrayRef<mlir::Value> values() const { return values_; }
  size_t outside() const { return assigned_.size() + outside_.size(); }
  /// Among the values, where a body's input is; outside() if it is not there.
  size_t placeOf(const TraceInput &input) const {
    if (input.kind == TraceInput::variable)
      if (size_t place = placeOf(assigned_, input.state.get()); place < assigned_.size())
        return place;
    for (size_t i = 0; i < outside_.size(); ++i) {
      const TraceInput &known = *outside_[i];
      if (known.kind == input.kind &&
          (input.kind == TraceInput::variable ? known.state == input.state
                                              : stateOf(known.captured)->id == stateOf(input.captured)->id))
        return assigned_.size() + i;
    }
    return outside();
  }
  ConcreteState &operator[](size_t i) const { return *bodies_[i]; }
  size_t size() const { return bodies_.size(); }

  /// Writes a function of arguments, of these types, that does what body `i` does and returns what `results` makes of
  /// its results and those arguments; `argumentOf` says which argument an input is.
  FlatSymbolRefAttr write(size_t i, ArrayRef<Type> types, SymbolTable &symbols, Imports &imports, Location loc,
                          llvm::function_ref<size_t(const TraceInput &)> argumentOf,
                          llvm::function_ref<SmallVector<mlir::Value>(ValueRange, ValueRange)> results) const {
    const Code &code = *bodies_[i]->code;
    func::FuncOp callee = imports.copyOf(code.function(), code.identities());
    autodiff::Writer writer(symbols, loc, op_);
    SmallVector<mlir::Value> arguments = writer.arguments(types), operands;
    for (const TraceInput &input : bodies_[i]->inputs)
      operands.push_back(arguments[argumentOf(input)]);
    // As it is, and not a call of it: what depends on invariants alone is to be seen.
    SmallVector<mlir::Value> values = ir::cloneBody(writer.b, callee.getBody().front(), operands);
    return autodiff::nameOf(writer.finish(results(values, arguments)));
  }
  /// The value that body `i` leaves variable `v` with: one of its results, or the argument at `before`.
  mlir::Value valueAfter(size_t i, size_t v, ValueRange results, mlir::Value before) const {
    const ConcreteState &body = *bodies_[i];
    for (size_t k = 0; k < body.assigned.size(); ++k)
      if (body.inputs[body.assigned[k]].state == assigned_[v])
        return results[body.numResults + k];
    return before;
  }

private:
  static size_t placeOf(const std::vector<std::shared_ptr<VariableState>> &list, const VariableState *state) {
    return static_cast<size_t>(
        std::find_if(list.begin(), list.end(), [&](const auto &one) { return one.get() == state; }) - list.begin());
  }

  const char *op_;
  Trace &trace_;
  const Where &where_;
  std::vector<std::shared_ptr<ConcreteState>> bodies_;
  std::vector<std::shared_ptr<VariableState>> assigned_;
  std::vector<const TraceInput *> outside_;
  SmallVector<mlir::Value> values_;
};

} // namespace

void traceCond(const char *op, const Tensor &selector, std::span<const TracedBranch> branches, Results &results,
               const Where &where) {
  Trace &trace = *level().trace;
  checkScalar(op, branches.size() == 2 && std::string_view(op) == "cond" ? "the predicate" : "the index", selector,
              std::string_view(op) == "cond", where);
  Bodies bodies(op, trace, where);
  for (const TracedBranch &branch : branches) {
    Arguments none(where);
    bodies.add(none, branch.body);
  }
  auto nameOf = [&](size_t i) {
    return std::string_view(op) == "cond" ? std::string(i == 1 ? "the then branch" : "the else branch")
                                          : "branch " + std::to_string(i);
  };
  const ConcreteState &first = bodies[0];
  for (size_t i = 1; i < bodies.size(); ++i) {
    if (branches[i].structure != branches[0].structure) {
      auto [a, b] = difference(branches[0].structure, branches[i].structure);
      raiseOp(op, nameOf(0) + " returns " + a + ", and " + nameOf(i) + " " + b,
              "return the same structure and the same numbers from all branches: what differs is a tensor", {}, where,
              ErrorKind::type);
    }
    if (bodies[i].numResults != first.numResults)
      raiseOp(op,
              nameOf(0) + " returns " + std::to_string(first.numResults) + " tensors and " + nameOf(i) + " " +
                  std::to_string(bodies[i].numResults),
              "return the same structure from both", {}, where, ErrorKind::type);
    for (uint32_t k = 0; k < first.numResults; ++k)
      if (const TensorType &a = first.code->results()[k], &b = bodies[i].code->results()[k]; !(a == b))
        raiseOp(op,
                nameOf(0) + " returns " + toString(a) + " as tensor " + std::to_string(k) + " and " + nameOf(i) + " " +
                    toString(b),
                "return the same dtypes and shapes from all branches", {a, b}, where, ErrorKind::type);
  }
  bodies.collect();
  size_t numVariables = bodies.assigned().size();
  mlir::Value chosen = trace.valueOf(selector, op, where);
  std::vector<Tensor> outputs = trace.add(
      [&](OpBuilder &b, Location loc, SymbolTable &symbols, Imports &imports) -> Operation * {
        SmallVector<Type> types(ValueRange(bodies.values()).getTypes()), resultTypes;
        SmallVector<Attribute> names;
        for (size_t i = 0; i < bodies.size(); ++i)
          names.push_back(bodies.write(
              i, types, symbols, imports, loc, [&](const TraceInput &input) { return bodies.placeOf(input); },
              [&](ValueRange values, ValueRange arguments) {
                SmallVector<mlir::Value> returned(values.take_front(first.numResults));
                for (size_t v = 0; v < numVariables; ++v)
                  returned.push_back(bodies.valueAfter(i, v, values, arguments[v]));
                resultTypes = SmallVector<Type>(ValueRange(returned).getTypes());
                return returned;
              }));
        return ir::CondOp::create(b, loc, resultTypes, chosen, b.getArrayAttr(names), bodies.values());
      },
      where);
  handOver(bodies[bodies.size() - 1], results);
  for (uint32_t k = 0; k < first.numResults; ++k)
    results.tensors.push_back(outputs[k]);
  for (size_t v = 0; v < numVariables; ++v)
    trace.assign(bodies.assigned()[v], outputs[first.numResults + v], where);
}

void traceLoop(const TracedLoop &loop, Results &results) {
  const Where &where = loop.state.where;
  const char *op = loop.op;
  Trace &trace = *level().trace;
  Bodies bodies(op, trace, where);
  bodies.add(loop.arguments, loop.body);
  const ConcreteState &body = bodies[0];
  size_t numState = loop.state.leaves.size(), numRows = loop.xs.size();
  if (loop.condition) {
    const ConcreteState &condition = bodies.add(loop.state, *loop.condition);
    for (uint32_t input : condition.assigned)
      if (const VariableState &variable = *condition.inputs[input].state; !variable.isOrder)
        raiseOp(op, "the condition assigns " + describe(variable), "assign it in the body", {}, where);
    const TensorType &type = condition.code->results()[0];
    if (type.dtype != DType::boolean || type.shape.rank() != 0)
      raiseOp(op, "the condition returns " + toString(type) + "; it is a bool scalar",
              "compare with a number and reduce: reduce_all(x > 0)", {type}, where, ErrorKind::type);
  }
  if (body.numResults < numState)
    raiseOp(op,
            "the state has " + std::to_string(numState) + " tensors, and " + std::to_string(body.numResults) +
                " after one turn",
            "return as many as come in", {}, where, ErrorKind::type);
  for (size_t i = 0; i < numState; ++i) {
    const TensorType &in = loop.state.leaves[i].tensor->body(where)->type, &out = body.code->results()[i];
    if (!(in == out))
      raiseCarried(op, i, in, out, "one turn", where);
  }
  bodies.collect();
  size_t numVariables = bodies.assigned().size(), carried = numState + numVariables;
  SmallVector<mlir::Value> inits, xs;
  for (size_t i = 0; i < numState; ++i)
    inits.push_back(trace.valueOf(*loop.state.leaves[i].tensor, op, where));
  llvm::append_range(inits, bodies.values().take_front(numVariables));
  int64_t length = loop.length;
  for (const Tensor &x : loop.xs) {
    xs.push_back(trace.valueOf(x, op, where));
    length = std::max(length, x.body(where)->type.shape.dim(0));
  }
  length = std::max<int64_t>(length, -1);
  ArrayRef<mlir::Value> invariants = bodies.values().drop_front(numVariables);
  mlir::Value limit = loop.limit ? trace.valueOf(*loop.limit, op, where) : mlir::Value();

  std::vector<Tensor> outputs = trace.add(
      [&](OpBuilder &b, Location loc, SymbolTable &symbols, Imports &imports) -> Operation * {
        // All have as many rows as the one that says how many.
        for (mlir::Value &x : xs) {
          auto type = cast<RankedTensorType>(x.getType());
          if (length < 0 || !type.isDynamicDim(0))
            continue;
          SmallVector<OpFoldResult> sizes{b.getIndexAttr(length)};
          for (int64_t axis = 1; axis < type.getRank(); ++axis)
            sizes.push_back(ir::sizeOf(b, loc, x, axis));
          x = ir::reshape(b, loc, x, sizes);
        }
        SmallVector<Type> state(ValueRange(inits).getTypes()), all = state, asked = state;
        for (mlir::Value x : xs)
          all.push_back(ir::rowTypeOf(x.getType()));
        llvm::append_range(all, ValueRange(invariants).getTypes());
        llvm::append_range(asked, ValueRange(invariants).getTypes());
        auto placeAfter = [&](size_t rows) {
          return [&, rows](const TraceInput &input) {
            if (input.kind == TraceInput::argument)
              return input.leaf < numState ? size_t(input.leaf) : size_t(input.leaf) + numVariables;
            size_t place = bodies.placeOf(input);
            return place < numVariables ? numState + place : carried + rows + (place - numVariables);
          };
        };
        SmallVector<Type> resultTypes;
        FlatSymbolRefAttr turn = bodies.write(
            0, all, symbols, imports, loc, placeAfter(numRows), [&](ValueRange values, ValueRange arguments) {
              SmallVector<mlir::Value> returned(values.take_front(numState));
              for (size_t v = 0; v < numVariables; ++v)
                returned.push_back(bodies.valueAfter(0, v, values, arguments[numState + v]));
              llvm::append_range(returned, values.slice(numState, body.numResults - numState));
              resultTypes = SmallVector<Type>(ValueRange(returned).getTypes());
              return returned;
            });
        FlatSymbolRefAttr condition;
        if (loop.condition)
          condition = bodies.write(1, asked, symbols, imports, loc, placeAfter(0), [&](ValueRange values, ValueRange) {
            return SmallVector<mlir::Value>(values.take_front(1));
          });
        return autodiff::makeLoop(b, loc,
                                  {turn, condition, limit, inits, xs, SmallVector<mlir::Value>(invariants), length,
                                   loop.reversed, loop.checkpoints},
                                  resultTypes);
      },
      where);
  handOver(body, results);
  for (size_t i = 0; i < numState; ++i)
    results.tensors.push_back(outputs[i]);
  for (size_t i = carried + (loop.condition ? 1 : 0); i < outputs.size(); ++i)
    results.tensors.push_back(outputs[i]);
  for (size_t v = 0; v < numVariables; ++v)
    trace.assign(bodies.assigned()[v], outputs[numState + v], where);
}

} // namespace wg::detail
