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
      if (!variable->isOrder)
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

namespace {

/// One eager call: what it is called with, where that is bound to code, the run, and what the tapes keep of it. Nothing
/// that may fail comes after the run, which writes into variables. Written into its caller: calls that return a scalar
/// take 120 ns in all, of which four calls of functions would be a tenth.
class EagerCall {
public:
  EagerCall(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where)
      : concrete_(concrete), leaves_(leaves), where_(where), tapes_(level().tapes),
        taped_(std::any_of(tapes_.begin(), tapes_.end(), [](const Tape *tape) { return tape->recording.load(); })),
        inputs_(concrete.inputs.size()), tensors_(taped_ ? concrete.inputs.size() : 0), locks_(concrete.inputs.size()) {
  }

  /// Locks the variables and finds each input's value; the tapes are told which variables are read.
  [[gnu::always_inline]] void resolve() {
    bool variables = false;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (concrete_.inputs[i].kind == TraceInput::variable) {
        variables = true;
        const std::shared_ptr<VariableState> &variable = variableAt(i);
        if (variable->birth) [[unlikely]]
          raiseOutOfScope(*variable, where_);
        if (variable->isOrder) [[unlikely]]
          continue;
        locks_.add(variable.get(), std::binary_search(concrete_.assigned.begin(), concrete_.assigned.end(), i));
      }
    if (variables)
      locks_.lock();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TraceInput &input = concrete_.inputs[i];
      Tensor read;
      if (taped_ && input.kind == TraceInput::variable)
        read = readLocked(variableOf(input, leaves_));
      const Tensor &tensor = input.kind == TraceInput::argument   ? *leaves_[input.leaf].tensor
                             : read.defined()                     ? read
                             : input.kind == TraceInput::variable ? variableAt(i)->current
                                                                  : input.captured;
      const TensorState &state = valueOf(concrete_, i, tensor, where_);
      inputs_[i] = {state.type, state.buffer};
      if (taped_)
        tensors_[i] = tensor;
    }
  }

  /// The code: the function's, or its forward where a tape wants derivatives. Tensors for all that it computes, without
  /// elements yet, and room for them in `results` and on the tapes. What is assigned takes its variable's place.
  [[gnu::always_inline]] void bind(Inline<Tensor, 8> &results) {
    if (taped_)
      for (uint32_t i = 0; i < inputs_.size(); ++i)
        if (runtime::isFloat(inputs_[i].dtype()) && std::any_of(tapes_.begin(), tapes_.end(), [&](Tape *tape) {
              return tape->recording && tape->tracks(tensors_[i]);
            }))
          wanted_.push_back(i);
    if (!wanted_.empty())
      derivative_ = concrete_.derivative(wanted_, where_);
    code_ = derivative_ ? derivative_->forward.get() : concrete_.code.get();
    outputs_.emplace(code_->results().size());
    made_.emplace(outputs_->size());
    for (Tensor &tensor : *made_)
      tensor = makeTensor();
    results.reserve(results.size() + concrete_.numResults);
    if (!derivative_)
      return assignInPlace();
    for (const Tensor &tensor : tensors_)
      operands_.push_back(&tensor);
    for (Tape *tape : tapes_)
      if (records(tape))
        tape->reserve(operands_.size() + outputs_->size(), /*call=*/true);
  }

  [[gnu::always_inline]] void run(Inline<Tensor, 8> &results) {
    StackArray<Array, 40> &outputs = *outputs_;
    StackArray<Tensor, 40> &made = *made_;
    code_->run(inputs_, outputs, where_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      stateOf(made[i])->type = outputs[i].type;
      stateOf(made[i])->buffer = std::move(outputs[i].buffer);
    }
    for (uint32_t i = 0; i < concrete_.numResults; ++i)
      results.push_back(derivative_ ? made[i] : std::move(made[i])); // what tapes keep has two owners
    for (size_t i = 0; i < concrete_.assigned.size(); ++i)
      if (const std::shared_ptr<VariableState> &variable = variableAt(concrete_.assigned[i]); !variable->isOrder)
        variable->current = made[concrete_.numResults + i];
  }

  /// One record of the whole call on each tape that tracks an input.
  [[gnu::always_inline]] void record() {
    if (!derivative_)
      return;
    std::span<const Tensor> all(made_->begin(), made_->size());
    for (Tape *tape : tapes_)
      if (records(tape))
        tape->recordCall({concrete_.shared_from_this(), derivative_, derivative_->serial, concrete_.numResults},
                         operands_, all.first(concrete_.numResults), all.subspan(derivative_->numResults), where_);
  }

private:
  const std::shared_ptr<VariableState> &variableAt(size_t input) const {
    return variableBehind(variableOf(concrete_.inputs[input], leaves_));
  }
  bool records(Tape *tape) {
    return tape->recording &&
           std::any_of(wanted_.begin(), wanted_.end(), [&](uint32_t i) { return tape->tracks(tensors_[i]); });
  }
  /// A variable whose buffer has no other owner is written where it is. This call holds the second handle.
  void assignInPlace() {
    for (size_t i = 0; i < concrete_.assigned.size(); ++i) {
      uint32_t input = concrete_.assigned[i];
      if (variableAt(input)->isOrder)
        continue;
      Tensor &current = variableAt(input)->current;
      if (current.body()->references.load(std::memory_order_acquire) != 1)
        continue;
      stateOf(current)->buffer = runtime::Buffer();
      if (inputs_[input].buffer.unique())
        (*outputs_)[concrete_.numResults + i] = inputs_[input];
      stateOf(current)->buffer = inputs_[input].buffer;
    }
  }

  ConcreteState &concrete_;
  std::span<const Arguments::Leaf> leaves_;
  const Where &where_;
  const std::vector<Tape *> &tapes_;
  bool taped_;
  StackArray<Array, 40> inputs_;  ///< no heap for a step with three dozen variables
  StackArray<Tensor, 8> tensors_; ///< of the inputs, for the tapes
  Locks locks_;
  std::vector<uint32_t> wanted_; ///< inputs that a tape wants derivatives by
  std::shared_ptr<Derivative> derivative_;
  Code *code_ = nullptr;
  std::optional<StackArray<Array, 40>> outputs_;
  std::optional<StackArray<Tensor, 40>> made_; ///< what is computed, as tensors
  std::vector<const Tensor *> operands_;
};

} // namespace

void callConcrete(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, Inline<Tensor, 8> &results,
                  const Where &where) {
  concrete.calls.fetch_add(1, std::memory_order_relaxed);
  if (Trace *trace = level().trace)
    return callTraced(concrete, leaves, results, *trace, where);
  EagerCall call(concrete, leaves, where);
  call.resolve();
  call.bind(results);
  call.run(results);
  call.record();
}

} // namespace wg::detail
