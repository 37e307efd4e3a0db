// The gradient of what a tape holds. Eagerly: the adjoint's rows run on the recorded values, through the kernels, or
// through the gate when an outer tape records. In a trace: the transform appends to the function itself.
#include "frontend/Function.h"
#include "frontend/GradientProgram.h"
#include "frontend/Trace.h"
#include "frontend/ops/Operands.h"

using namespace mlir;

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;
using runtime::Status;

//===- Running the adjoint ----------------------------------------------------------------------------------------===//

static const CallDerivative &calledBy(const GradientProgram &program, const Row &row) {
  return program.calls.find(row.attrs.string(0))->second;
}

namespace {

/// Nobody records: rows run on the kernels, calls on their compiled backward functions.
struct KernelEngine {
  const EagerTape &tape;
  const GradientProgram &program;
  Array constant(const Array &array) { return array; }
  Status execute(const Row &row, const runtime::OpCall &call, std::span<Array> results) {
    if (row.op != OpId::call)
      return runtime::execute(call, results);
    const CallDerivative &called = calledBy(program, row);
    const RecordedCall &recorded = tape.calls[called.call];
    std::shared_ptr<Derivative> part = recorded.callee->part(recorded.derivative, called.results, row.where);
    const Derivative &derivative = *part;
    size_t numInputs = recorded.callee->inputs.size();
    std::span<const Array> operands = call.operands.first(numInputs),
                           kept = call.operands.subspan(numInputs + recorded.numResults);
    const std::vector<int64_t> *places = &derivative.residuals;
    std::vector<Array> outputs;
    if (part != recorded.derivative && derivative.kept) {
      places = &*derivative.kept;
    } else if (part != recorded.derivative) {
      outputs.resize(derivative.forward->results().size());
      derivative.forward->run(operands, outputs, row.where);
      kept = std::span(outputs).subspan(derivative.numResults);
    }
    std::vector<Array> inputs;
    for (int64_t place : *places)
      inputs.push_back(place >= 0 ? operands[static_cast<size_t>(place)] : kept[static_cast<size_t>(-1 - place)]);
    std::span<const Array> cotangents = call.operands.last(derivative.results.size());
    inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
    derivative.backward->run(inputs, results, row.where);
    return {};
  }
};

/// An outer tape records: rows go through the gate, calls through their derivative as a differentiable function.
struct GateEngine {
  const EagerTape &tape;
  const GradientProgram &program;
  Tensor constant(const Array &array) { return makeTensor(array); }
  Status execute(const Row &row, const runtime::OpCallOf<Tensor> &call, std::span<Tensor> results) {
    std::vector<const Tensor *> operands;
    if (row.op != OpId::call) {
      for (const Tensor &operand : call.operands)
        operands.push_back(&operand);
      applyOp(row.op, row.attrs, operands, results, row.where);
      return {};
    }
    const CallDerivative &called = calledBy(program, row);
    const RecordedCall &recorded = tape.calls[called.call];
    std::shared_ptr<Derivative> part = recorded.callee->part(recorded.derivative, called.results, row.where);
    std::shared_ptr<ConcreteState> vjp = recorded.callee->vjp(*part, row.where);
    std::vector<Arguments::Leaf> leaves;
    for (const Tensor &operand : call.operands.first(recorded.callee->inputs.size()))
      leaves.push_back({&operand, nullptr});
    for (const Tensor &cotangent : call.operands.last(part->results.size()))
      leaves.push_back({&cotangent, nullptr});
    Inline<Tensor, 8> gradients;
    callConcrete(*vjp, leaves, gradients, row.where);
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = gradients[i];
    return {};
  }
};

} // namespace

//===- Tape -------------------------------------------------------------------------------------------------------===//

static std::string nameOf(const Source &source) {
  if (source.variable.defined())
    return describe(*source.variable.state());
  return "the source " + (source.tensor.defined() ? toString(source.tensor.body()->type) : "(undefined)");
}

std::vector<Tensor> Tape::readsOf(const Source &source, std::string &reason) const {
  if (source.variable.defined()) {
    const std::shared_ptr<VariableState> &state = source.variable.state();
    if (!runtime::isFloat(state->type.dtype)) {
      reason = "integer dtype: " + nameOf(source) + " is " + toString(state->type) +
               ", and gradients pass through floats only";
      return {};
    }
    // A place of this tape's derivative is a source of its own; to any other tape it is the variable.
    bool watched = false;
    for (const std::shared_ptr<VariableState> &each : {state, variableBehind(state)})
      for (const WatchedVariable &entry : variables)
        if (isSamePlace(*entry.variable, *each)) {
          watched = true;
          if (!entry.reads.empty())
            return entry.reads;
        }
    reason = watched ? "no path: " + nameOf(source) + " was not read while the tape recorded"
                     : "not watched: " + nameOf(source) +
                           (state->trainable ? " was not read while the tape recorded"
                                             : " is not trainable; call tape.watch(variable) before it is used");
    return {};
  }
  if (!source.tensor.defined()) {
    reason = source.reason.empty() ? "the source is undefined" : "the source is an empty gradient: " + source.reason;
    return {};
  }
  if (!runtime::isFloat(source.tensor.body()->type.dtype)) {
    reason = "integer dtype: " + nameOf(source) + ", and gradients pass through floats only";
    return {};
  }
  bool known =
      traced ? !source.tensor.body() || traced->values.contains(home()->trace->valueOf(source.tensor, "gradient", {}))
             : tracks(source.tensor);
  if (known)
    return {source.tensor};
  reason = "not watched: " + nameOf(source) +
           " is neither watched nor computed from what is; call tape.watch(x) before it is used";
  return {};
}

/// The value that a target stands for; `read`: a variable is read by the tapes that record.
static Tensor targetOf(const Source &target, bool read, const Where &where) {
  if (!target.variable.defined()) {
    if (!target.tensor.defined() && !target.reason.empty())
      raiseOp("gradient", "the target is an empty gradient: " + target.reason,
              "test it first: if (g) ..., or ask for it with .unconnected = Unconnected::zero", {}, where);
    target.tensor.body(where);
    return target.tensor;
  }
  return read ? readVariable(target.variable.state(), where) : currentValue(target.variable.state(), where);
}

/// Errors unless the tensor has a value at the tape's level: no specification, and no tensor of a trace that has
/// ended or does not enclose this one.
void Tape::checkUsable(const Tensor &tensor, const Where &where) const {
  if (traced)
    home()->trace->valueOf(tensor, "gradient", where);
  else if (tensor.symbolic())
    raiseOutOfScope("gradient", tensor, where);
}

static Grad noGradient(const Source &source, std::string reason, const GradientOptions &options, const Where &where) {
  if (options.unconnected == Unconnected::none)
    return Grad::none(std::move(reason));
  if (source.variable.defined())
    return Grad(zeros(source.variable.shape(), source.variable.dtype(), where));
  return Grad(zeros_like(Located(source.tensor, where)));
}

/// A scalar seed of a target that is none: repeated to the target's shape.
static bool repeats(const TensorType &seed, const TensorType &target) {
  return seed.shape.rank() == 0 && target.shape.rank() != 0 && seed.dtype == target.dtype;
}

/// Errors unless the seeds fit the targets. Asked before anything changes: the tape can be asked again.
void Tape::checkSeeds(const std::vector<Source> &targets, const GradientOptions &options, const Where &where) const {
  const std::vector<Tensor> &seeds = options.output_gradients.list;
  if (!seeds.empty() && seeds.size() != targets.size())
    raiseOp("gradient",
            std::to_string(seeds.size()) + " output_gradients for " + std::to_string(targets.size()) + " targets",
            "give one for each target; an undefined tensor means ones", {}, where);
  for (size_t i = 0; i < seeds.size(); ++i) {
    if (!seeds[i].defined())
      continue;
    TensorType type =
        targets[i].variable.defined() ? targets[i].variable.state()->type : targets[i].tensor.body(where)->type;
    const TensorType &seed = seeds[i].body()->type;
    if (!repeats(seed, type) && (seed.dtype != type.dtype || !sameSizes(seed.shape, type.shape)))
      raiseOp("gradient",
              "output_gradients[" + std::to_string(i) + "] is " + toString(seed) + ", its target " + toString(type),
              "give it the target's dtype and shape", {seed, type}, where);
    checkUsable(seeds[i], where);
  }
}

/// One seed per target: defined, of the target's type; or undefined, for ones.
static std::vector<Tensor> seedsFor(const std::vector<Tensor> &targets, const GradientOptions &options,
                                    const Where &where) {
  std::vector<Tensor> seeds = options.output_gradients.list;
  seeds.resize(targets.size());
  for (size_t i = 0; i < seeds.size(); ++i)
    if (seeds[i].defined() && repeats(seeds[i].body()->type, targets[i].body()->type))
      seeds[i] = Located(seeds[i], where) * ones_like(Located(targets[i], where));
  return seeds;
}

/// A number as seed takes its target's dtype.
static GradientOptions withTypedSeed(const Targets &targets, const GradientOptions &options, const Where &where) {
  GradientOptions typed = options;
  std::vector<Tensor> &seeds = typed.output_gradients.list;
  if (options.output_gradients.isNumber && targets.list.size() == 1 && seeds.size() == 1) {
    const Source &target = targets.list[0];
    DType dtype = target.variable.defined() ? target.variable.dtype()
                  : target.tensor.defined() ? target.tensor.dtype()
                                            : seeds[0].dtype();
    if (runtime::isFloat(dtype) && seeds[0].dtype() != dtype)
      seeds[0] = cast(Located(seeds[0], where), dtype);
  }
  return typed;
}

std::vector<Grad> Tape::gradient(const Targets &targets, const std::vector<Source> &sources,
                                 const GradientOptions &given) {
  const Where &where = targets.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("gradient", where, [&] { return gradient(targets, sources, given); });
  checkLevel("gradient", where);
  GradientOptions options = withTypedSeed(targets, given, where);
  if (used && !this->options.persistent)
    raiseOp("gradient", "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)",
            "make it persistent: GradientTape tape({.persistent = true})", {}, where, ErrorKind::runtime);
  for (const Source &target : targets.list)
    checkUsable(targetOf(target, /*read=*/false, where), where);
  for (const Source &source : sources)
    if (!source.variable.defined() && source.tensor.defined())
      checkUsable(source.tensor, where);
    else if (source.variable.defined())
      currentValue(source.variable.state(), where);
  checkSeeds(targets.list, options, where);
  // A target that is a variable is read by this tape.
  std::vector<Tensor> targetTensors;
  for (const Source &target : targets.list)
    targetTensors.push_back(targetOf(target, recording, where));
  bool recordingBefore = recording, usedBefore = std::exchange(used, true);
  if (!this->options.persistent) {
    endedRecording = recordingBefore;
    recording = false;
  }
  std::vector<Grad> grads;
  try {
    grads = traced ? gradientTraced(targetTensors, sources, options, where)
                   : gradientEager(targetTensors, sources, options, where);
  } catch (...) { // an eager tape can be asked again
    if (!traced) {
      recording = recordingBefore;
      used = usedBefore;
    }
    throw;
  }
  if (!this->options.persistent) {
    eager = EagerTape();
    if (traced)
      *traced = TracedTape();
  }
  return grads;
}

std::string Tape::explain(const Targets &targets, const std::vector<Source> &sources) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("explain", targets.where, [&] { return explain(targets, sources); });
  checkLevel("explain", targets.where);
  if (used && !options.persistent)
    return "the tape was used already, and what it held is gone; make it persistent";
  const Where &where = targets.where;
  std::vector<Tensor> targetTensors;
  for (const Source &target : targets.list)
    checkUsable(targetTensors.emplace_back(targetOf(target, /*read=*/false, where)), where);
  for (const Source &source : sources)
    if (source.tensor.defined())
      checkUsable(source.tensor, where);
  struct Paused {
    std::atomic<bool> &recording;
    bool before = recording.exchange(false);
    ~Paused() { recording = before; }
  } paused{recording};
  std::vector<Grad> grads =
      traced ? std::vector<Grad>() : gradientEager(targetTensors, sources, {.record = false}, where);
  std::string text;
  if (traced)
    text = "inside of a trace, ask the Grad that tape.gradient returns for its reason()";
  for (size_t i = 0; i < grads.size(); ++i)
    text += (i ? "\n" : "") + nameOf(sources[i]) + ": " +
            (grads[i].has_value() ? "connected" : "None, " + grads[i].reason());
  return text;
}

std::vector<Grad> Tape::gradientEager(const std::vector<Tensor> &targetTensors, const std::vector<Source> &sources,
                                      const GradientOptions &options, const Where &where) {
  std::vector<Tensor> seeds = seedsFor(targetTensors, options, where);

  // What of it lies on the tape. Vectors of the standard library: LLVM's end the process when there is no memory.
  std::vector<int32_t> targetSlots;
  std::vector<uint8_t> seeded;
  std::vector<Tensor> given;
  std::string noTarget = "no path: the target was not computed from anything that the tape watches";
  for (size_t i = 0; i < targetTensors.size(); ++i) {
    const TensorType &type = targetTensors[i].body()->type;
    if (!runtime::isFloat(type.dtype))
      noTarget = "integer dtype: the target is " + toString(type) + ", and gradients pass through floats only";
    else if (tracks(targetTensors[i])) {
      targetSlots.push_back(eager.slotOf.find(stateOf(targetTensors[i])->id));
      seeded.push_back(seeds[i].defined());
      if (seeds[i].defined())
        given.push_back(seeds[i]);
    }
  }
  std::vector<std::string> reasons(sources.size());
  std::vector<std::vector<int32_t>> sourceSlots;
  StructureHash key = eager.hash;
  for (size_t i = 0; i < targetSlots.size(); ++i)
    key.mix(0x20 | static_cast<uint64_t>(seeded[i]) << 8 | static_cast<uint64_t>(targetSlots[i]) << 16);
  for (size_t i = 0; i < sources.size(); ++i) {
    std::vector<int32_t> slots;
    for (const Tensor &read : readsOf(sources[i], reasons[i]))
      slots.push_back(eager.slotOf.find(stateOf(read)->id));
    key.mix(0x21 | slots.size() << 8);
    for (int32_t slot : slots)
      key.mix(static_cast<uint64_t>(slot));
    sourceSlots.push_back(std::move(slots));
  }
  std::vector<Grad> grads(sources.size());
  if (targetSlots.empty()) {
    for (size_t i = 0; i < sources.size(); ++i)
      grads[i] = noGradient(sources[i], reasons[i].empty() ? noTarget : reasons[i], options, where);
    return grads;
  }

  std::shared_ptr<const GradientProgram> program = gradientProgram(eager, key, targetSlots, seeded, sourceSlots, where);
  auto input = [&](int32_t slot) -> const Tensor & {
    return slot >= 0 ? eager.values[static_cast<size_t>(slot)] : given[static_cast<size_t>(-1 - slot)];
  };
  // Tapes that record now, and know one of the values that the adjoint reads, get the gradient's own ops.
  bool recorded = false;
  for (Tape *tape : level().tapes)
    if (options.record && tape->recording)
      for (int32_t slot : program->inputs)
        recorded = recorded || tape->tracks(input(slot));
  std::vector<Tensor> outputs(program->program.outputs.size());
  Status status;
  if (recorded) {
    std::vector<Tensor> inputs;
    for (int32_t slot : program->inputs)
      inputs.push_back(input(slot));
    status = codegen::run<Tensor>(program->program, inputs, outputs, GateEngine{eager, *program});
  } else {
    std::vector<Array> inputs, arrays(outputs.size());
    inputs.reserve(program->inputs.size());
    for (int32_t slot : program->inputs)
      inputs.push_back(arrayOf(input(slot)));
    status = codegen::run<Array>(program->program, inputs, arrays, KernelEngine{eager, *program});
    for (size_t i = 0; status.ok() && i < arrays.size(); ++i)
      outputs[i] = makeTensor(std::move(arrays[i]));
  }
  if (!status.ok())
    raise(status.take(), where);
  for (size_t i = 0; i < sources.size(); ++i)
    grads[i] = program->outputs[i] >= 0
                   ? Grad(outputs[static_cast<size_t>(program->outputs[i])])
                   : noGradient(sources[i], reasons[i].empty() ? program->reasons[i] : reasons[i], options, where);
  return grads;
}

std::vector<Grad> Tape::gradientTraced(const std::vector<Tensor> &targetTensors, const std::vector<Source> &sources,
                                       const GradientOptions &options, const Where &where) {
  Trace &trace = *home()->trace;
  std::vector<Tensor> seeds = seedsFor(targetTensors, options, where);
  SmallVector<Value> targetValues, seedValues, sourceValues;
  std::string noTarget = "no path: the target was not computed from anything that the tape watches";
  for (size_t i = 0; i < targetTensors.size(); ++i) {
    Value value = trace.valueOf(targetTensors[i], "gradient", where);
    if (!autodiff::isDifferentiableType(value.getType())) {
      noTarget = "integer dtype: the target is " + toString(targetTensors[i].body()->type) +
                 ", and gradients pass through floats only";
    } else if (traced->values.contains(value)) {
      targetValues.push_back(value);
      seedValues.push_back(seeds[i].defined() ? trace.valueOf(seeds[i], "gradient", where) : Value());
    }
  }
  std::vector<std::string> reasons(sources.size());
  std::vector<size_t> counts;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::vector<Tensor> reads = readsOf(sources[i], reasons[i]);
    counts.push_back(reads.size());
    for (const Tensor &read : reads)
      sourceValues.push_back(trace.valueOf(read, "gradient", where));
  }
  std::vector<Grad> grads(sources.size());
  if (targetValues.empty()) {
    for (size_t i = 0; i < sources.size(); ++i)
      grads[i] = noGradient(sources[i], reasons[i].empty() ? noTarget : reasons[i], options, where);
    return grads;
  }
  autodiff::Gradients gradients = trace.reverse(*this, targetValues, seedValues, sourceValues, options.record, where);
  size_t next = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    Tensor sum;
    for (size_t k = 0; k < counts[i]; ++k, ++next) {
      if (gradients.values[next]) {
        Tensor part = trace.tensorOf(gradients.values[next], where);
        sum = sum.defined() ? Located(sum, where) + Located(part, where) : part;
      } else if (reasons[i].empty() || reasons[i].starts_with("no path")) {
        reasons[i] = gradients.reasons[next];
      }
    }
    grads[i] = sum.defined() ? Grad(sum) : noGradient(sources[i], reasons[i], options, where);
  }
  return grads;
}

} // namespace wg::detail
