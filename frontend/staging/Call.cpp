// A call of a concrete function at each level: it runs, is recorded by the tapes, or is a call in the trace.
#include "frontend/staging/Function.h"

#include <algorithm>
#include <mutex>

using namespace mlir;

namespace wg::detail {

using runtime::Array;

/// The failure for an argument that a concrete function was not traced for.
static void checkType(const ConcreteState &concrete, size_t i, const TensorType &type, const Where &where) {
  const TensorType &expected = concrete.code->inputs()[i];
  bool fits = type.dtype == expected.dtype && type.shape.rank() == expected.shape.rank();
  for (int axis = 0; fits && axis < type.shape.rank(); ++axis)
    fits = expected.shape.dim(axis) == dynamic || expected.shape.dim(axis) == type.shape.dim(axis);
  if (!fits)
    raiseOp(concrete.name.c_str(),
            "argument " + std::to_string(concrete.inputs[i].leaf) + " is " + toString(type) + ", traced for " +
                toString(expected),
            "call the function itself, which traces again, or trace with a dynamic size", {type, expected}, where,
            ErrorKind::type);
}

/// The variable of an input: the argument itself for a formal parameter. It may be a place of one.
static const std::shared_ptr<VariableState> &variableOf(const TraceInput &input,
                                                        std::span<const Arguments::Leaf> leaves) {
  return input.formal ? leaves[input.leaf].variable->state() : input.state;
}

/// Inside of a trace: one wg.call; assigned variables take their new values.
static void callTraced(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, Inline<Tensor, 8> &results,
                       Trace &trace, const Where &where) {
  SmallVector<mlir::Value> operands;
  for (size_t i = 0; i < concrete.inputs.size(); ++i) {
    const TraceInput &input = concrete.inputs[i];
    switch (input.kind) {
    case TraceInput::argument:
      checkType(concrete, i, leaves[input.leaf].tensor->body(where)->type, where);
      operands.push_back(trace.valueOf(*leaves[input.leaf].tensor, concrete.name.c_str(), where));
      break;
    case TraceInput::variable:
      operands.push_back(trace.valueOf(readVariable(variableOf(input, leaves), where), concrete.name.c_str(), where));
      break;
    case TraceInput::capture: operands.push_back(trace.valueOf(input.captured, concrete.name.c_str(), where)); break;
    }
  }
  for (int64_t id : concrete.variablesOf.capturedIds)
    if (id >= 0)
      trace.noteCaptured(id);
  std::vector<Tensor> outputs = trace.call(*concrete.code, operands, where);
  for (uint32_t i = 0; i < concrete.numResults; ++i)
    results.push_back(outputs[i]);
  for (size_t i = 0; i < concrete.assigned.size(); ++i)
    trace.assign(variableOf(concrete.inputs[concrete.assigned[i]], leaves), outputs[concrete.numResults + i], where);
}

namespace {

/// Holds the locks of the variables of a call, taken in the order of their ids: exclusive if assigned, else shared.
class Locks {
public:
  explicit Locks(size_t most) : list_(most) {}
  void add(VariableState *variable, bool exclusive) { list_[count_++] = {variable, exclusive}; }
  void lock() {
    bool isOrdered = true; // as most are
    for (size_t i = 1; i < count_; ++i)
      isOrdered &= list_[i - 1].variable->id < list_[i].variable->id;
    if (!isOrdered)
      order();
    for (auto &[variable, exclusive] : held()) {
      exclusive ? variable->mutex.lock() : variable->mutex.lock_shared();
      ++locked_; // if the next one throws, these are given back
    }
  }
  ~Locks() {
    for (auto &[variable, exclusive] : held().first(locked_))
      exclusive ? variable->mutex.unlock() : variable->mutex.unlock_shared();
  }

private:
  struct Held {
    VariableState *variable;
    bool exclusive;
  };
  void order() {
    std::sort(list_.begin(), list_.begin() + count_,
              [](const auto &a, const auto &b) { return a.variable->id < b.variable->id; });
    // A variable that is there twice is locked once.
    size_t distinct = 0;
    for (const Held &next : held())
      if (distinct > 0 && list_[distinct - 1].variable == next.variable)
        list_[distinct - 1].exclusive |= next.exclusive;
      else
        list_[distinct++] = next;
    count_ = distinct;
  }
  std::span<Held> held() { return {list_.begin(), count_}; }
  StackArray<Held, 40> list_;
  size_t count_ = 0;
  size_t locked_ = 0;
};

} // namespace

/// The value of input `i`, which is `tensor`.
static const TensorState &valueOf(const ConcreteState &concrete, size_t i, const Tensor &tensor, const Where &where) {
  const TensorState *state = stateOf(tensor);
  if (!state || !state->buffer) [[unlikely]] {
    if (state && state->symbol)
      raiseOutOfScope(concrete.name.c_str(), tensor, where);
    raiseOp(concrete.name.c_str(),
            "argument " + std::to_string(concrete.inputs[i].leaf) +
                (state ? " is a specification, which has no value" : " is undefined"),
            "pass a tensor with a value", {}, where);
  }
  if (!(state->type == concrete.code->inputs()[i])) [[unlikely]]
    checkType(concrete, i, state->type, where);
  return *state;
}

std::vector<Array> argumentsOf(const ConcreteState &concrete, std::span<const Arguments::Leaf> leaves,
                               const Where &where) {
  size_t numInputs = concrete.inputs.size();
  Locks locks(numInputs);
  for (const TraceInput &input : concrete.inputs)
    if (input.kind == TraceInput::variable) {
      const std::shared_ptr<VariableState> &variable = variableBehind(variableOf(input, leaves));
      if (variable->birth)
        raiseOutOfScope(*variable, where);
      locks.add(variable.get(), /*exclusive=*/false);
    }
  locks.lock();
  std::vector<Array> inputs;
  for (size_t i = 0; i < numInputs; ++i) {
    const TraceInput &input = concrete.inputs[i];
    const Tensor &tensor = input.kind == TraceInput::argument   ? *leaves[input.leaf].tensor
                           : input.kind == TraceInput::variable ? variableBehind(variableOf(input, leaves))->current
                                                                : input.captured;
    const TensorState &state = valueOf(concrete, i, tensor, where);
    inputs.push_back({state.type, state.buffer});
  }
  return inputs;
}

void callConcrete(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, Inline<Tensor, 8> &results,
                  const Where &where) {
  concrete.calls.fetch_add(1, std::memory_order_relaxed);
  Level &here = level();
  if (here.trace)
    return callTraced(concrete, leaves, results, *here.trace, where);

  bool taped =
      std::any_of(here.tapes.begin(), here.tapes.end(), [](const Tape *tape) { return tape->recording.load(); });
  size_t numInputs = concrete.inputs.size();
  StackArray<Array, 40> inputs(numInputs);              // no heap for a step with three dozen variables
  StackArray<Tensor, 8> tensors(taped ? numInputs : 0); // for the tapes
  Locks locks(numInputs);
  bool variables = false;
  for (size_t i = 0; i < numInputs; ++i)
    if (concrete.inputs[i].kind == TraceInput::variable) {
      variables = true;
      const std::shared_ptr<VariableState> &variable = variableBehind(variableOf(concrete.inputs[i], leaves));
      if (variable->birth) [[unlikely]]
        raiseOutOfScope(*variable, where);
      locks.add(variable.get(), std::binary_search(concrete.assigned.begin(), concrete.assigned.end(), i));
    }
  if (variables)
    locks.lock();
  for (size_t i = 0; i < numInputs; ++i) {
    const TraceInput &input = concrete.inputs[i];
    // A call reads its variables, with their locks held, and tapes are told of that.
    Tensor read;
    if (taped && input.kind == TraceInput::variable)
      read = readLocked(variableOf(input, leaves));
    const Tensor &tensor = input.kind == TraceInput::argument   ? *leaves[input.leaf].tensor
                           : read.defined()                     ? read
                           : input.kind == TraceInput::variable ? variableBehind(variableOf(input, leaves))->current
                                                                : input.captured;
    const TensorState &state = valueOf(concrete, i, tensor, where);
    inputs[i] = {state.type, state.buffer};
    if (taped)
      tensors[i] = tensor;
  }

  // Which inputs a tape wants derivatives by.
  std::vector<uint32_t> wanted;
  if (taped)
    for (uint32_t i = 0; i < numInputs; ++i)
      if (runtime::isFloat(inputs[i].dtype()))
        for (Tape *tape : here.tapes)
          if (tape->recording && tape->tracks(tensors[i])) {
            wanted.push_back(i);
            break;
          }
  std::shared_ptr<Derivative> derivative;
  if (!wanted.empty())
    derivative = concrete.derivative(wanted, where);
  Code &code = derivative ? *derivative->forward : *concrete.code;
  StackArray<Array, 40> outputs(code.results().size());

  // What may fail comes before the code runs, which writes into variables: tensors without elements for all that it
  // computes, and room on the tapes.
  StackArray<Tensor, 40> made(outputs.size());
  for (Tensor &tensor : made)
    tensor = makeTensor(Array());
  results.reserve(results.size() + concrete.numResults);
  std::vector<const Tensor *> operands;
  auto records = [&](Tape *tape) {
    return tape->recording &&
           std::any_of(wanted.begin(), wanted.end(), [&](uint32_t i) { return tape->tracks(tensors[i]); });
  };
  if (derivative) {
    for (const Tensor &tensor : tensors)
      operands.push_back(&tensor);
    for (Tape *tape : here.tapes)
      if (records(tape))
        tape->reserve(operands.size() + outputs.size(), /*call=*/true);
  }

  // In place: a variable whose buffer has no other owner. This frame holds the second handle.
  if (!derivative)
    for (size_t i = 0; i < concrete.assigned.size(); ++i) {
      uint32_t input = concrete.assigned[i];
      Tensor &current = variableBehind(variableOf(concrete.inputs[input], leaves))->current;
      if (current.body()->references.load(std::memory_order_acquire) != 1)
        continue;
      stateOf(current)->buffer = runtime::Buffer();
      if (inputs[input].buffer.unique())
        outputs[concrete.numResults + i] = inputs[input];
      stateOf(current)->buffer = inputs[input].buffer;
    }
  code.run(inputs, outputs, where);
  for (size_t i = 0; i < outputs.size(); ++i) {
    stateOf(made[i])->type = outputs[i].type;
    stateOf(made[i])->buffer = std::move(outputs[i].buffer);
  }
  for (uint32_t i = 0; i < concrete.numResults; ++i)
    results.push_back(made[i]);
  for (size_t i = 0; i < concrete.assigned.size(); ++i)
    variableBehind(variableOf(concrete.inputs[concrete.assigned[i]], leaves))->current = made[concrete.numResults + i];
  if (!derivative)
    return;
  std::span<const Tensor> all(made.begin(), made.size());
  for (Tape *tape : here.tapes)
    if (records(tape))
      tape->recordCall({concrete.shared_from_this(), derivative, derivative->serial, concrete.numResults}, operands,
                       all.first(concrete.numResults), all.subspan(derivative->numResults), where);
}

} // namespace wg::detail
