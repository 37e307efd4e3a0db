// Runs the rows of a tape's derivative: on the kernels, or, where an outer tape records, through the gate.
#include "frontend/staging/GradientProgram.h"

#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;
using runtime::Status;

static const CallDerivative &calledBy(const GradientProgram &program, const Row &row) {
  return program.calls.find(row.attrs.string(0))->second;
}

/// The cotangents of results, or tangents of operands, that a call of a derivative is given.
static const std::vector<uint32_t> &placesOf(const CallDerivative &called) {
  return called.isForward ? called.arguments : called.results;
}

/// A rule of C++. `given`: cotangents of some results, or tangents of some operands; of the others there are zeros.
static std::vector<Tensor> runRule(const RecordedCall &recorded, const CallDerivative &called, const EagerTape &tape,
                                   std::span<const Tensor> given, const Where &where) {
  const Record &record = tape.records[recorded.record];
  const std::vector<uint32_t> &places = placesOf(called);
  std::vector<TensorType> inputs, results;
  std::vector<Tensor> all;
  auto isFloat = [](const Tensor &x) { return runtime::isFloat(x.body()->type.dtype); };
  for (uint32_t i = 0; i < record.numOperands + record.numResults; ++i) {
    const Tensor &x = tape.values[static_cast<size_t>(tape.slots[record.first + i])];
    if (!isFloat(x))
      continue;
    bool isOperand = i < record.numOperands;
    (isOperand ? inputs : results).push_back(x.body()->type);
    if (isOperand != called.isForward)
      continue;
    auto at = std::find(places.begin(), places.end(), isOperand ? i : i - record.numOperands);
    all.push_back(at != places.end() ? given[static_cast<size_t>(at - places.begin())]
                                     : zeros(x.body()->type.shape, x.body()->type.dtype, where));
  }
  return called.isForward ? recorded.rule->push(all, results) : recorded.rule->pull(all, inputs);
}

namespace {

/// Nobody records: rows run on the kernels, calls on their compiled backward functions.
struct KernelEngine {
  const EagerTape &tape;
  const GradientProgram &program;
  Array constant(const Array &array) { return array; }
  Status execute(const Row &row, const runtime::OpCall &call, std::span<Array> results) {
    if (row.numChildren)
      return codegen::runBodies(program.program, row, call, results);
    if (row.op != OpId::call)
      return runtime::execute(call, results);
    const CallDerivative &called = calledBy(program, row);
    const RecordedCall &recorded = tape.calls[called.call];
    if (recorded.rule) {
      NotRecording paused;
      std::vector<Tensor> given;
      for (const Array &each : call.operands.last(placesOf(called).size()))
        given.push_back(makeTensor(each));
      std::vector<Tensor> made = runRule(recorded, called, tape, given, row.where);
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = arrayOf(made[i]);
      return {};
    }
    if (called.isForward) {
      std::vector<Array> inputs(call.operands.begin(),
                                call.operands.begin() + static_cast<std::ptrdiff_t>(recorded.callee->inputs.size()));
      std::span<const Array> tangents = call.operands.last(called.arguments.size());
      inputs.insert(inputs.end(), tangents.begin(), tangents.end());
      recorded.callee->tangent(called.arguments, called.results, row.where)
          ->concrete->code->run(inputs, results, row.where);
      return {};
    }
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
    if (row.numChildren)
      return runtime::Failure{.kind = runtime::ErrorKind::unimplemented,
                              .op = runtime::recordOf(row.op).name,
                              .message = "a tape cannot record the lanes of a loop or a condition in eager code",
                              .remedy =
                                  "take both derivatives in one wg::function, where they are parts of its program"};
    if (row.op != OpId::call) {
      for (const Tensor &operand : call.operands)
        operands.push_back(&operand);
      applyOp(row.op, row.attrs, operands, results, row.where);
      return {};
    }
    const CallDerivative &called = calledBy(program, row);
    const RecordedCall &recorded = tape.calls[called.call];
    if (recorded.rule) {
      std::vector<Tensor> made =
          runRule(recorded, called, tape, call.operands.last(placesOf(called).size()), row.where);
      std::copy_n(made.begin(), results.size(), results.begin());
      return {};
    }
    std::shared_ptr<ConcreteState> derivative;
    size_t moving;
    if (called.isForward) {
      derivative = recorded.callee->tangent(called.arguments, called.results, row.where)->concrete;
      moving = called.arguments.size();
    } else {
      std::shared_ptr<Derivative> part = recorded.callee->part(recorded.derivative, called.results, row.where);
      derivative = recorded.callee->vjp(*part, row.where);
      moving = part->results.size();
    }
    std::vector<Arguments::Leaf> leaves;
    for (const Tensor &operand : call.operands.first(recorded.callee->inputs.size()))
      leaves.push_back({&operand, nullptr});
    for (const Tensor &given : call.operands.last(moving))
      leaves.push_back({&given, nullptr});
    Inline<Tensor, 8> gradients;
    callConcrete(*derivative, leaves, gradients, row.where);
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = gradients[i];
    return {};
  }
};

} // namespace

std::vector<Tensor> run(const GradientProgram &program, const EagerTape &tape, std::span<const Tensor> given,
                        bool record, const Where &where) {
  auto input = [&](int32_t slot) -> const Tensor & {
    return slot >= 0 ? tape.values[static_cast<size_t>(slot)] : given[static_cast<size_t>(-1 - slot)];
  };
  // Tapes that record now, and know one of the values that the rows read, get their ops. What a rule reads is known
  // when it is called.
  bool recorded = false, rules = false;
  for (const auto &call : program.calls)
    rules = rules || tape.calls[call.second.call].rule;
  for (Tape *each : level().tapes)
    if (record && each->recording) {
      recorded = recorded || rules;
      for (int32_t slot : program.inputs)
        recorded = recorded || each->tracks(input(slot));
    }
  std::vector<Tensor> outputs(program.program.outputs.size());
  Status status;
  if (recorded) {
    std::vector<Tensor> inputs;
    for (int32_t slot : program.inputs)
      inputs.push_back(input(slot));
    status = codegen::run<Tensor>(program.program, inputs, outputs, GateEngine{tape, program});
  } else {
    std::vector<Array> inputs, arrays(outputs.size());
    inputs.reserve(program.inputs.size());
    for (int32_t slot : program.inputs)
      inputs.push_back(arrayOf(input(slot)));
    status = codegen::run<Array>(program.program, inputs, arrays, KernelEngine{tape, program});
    for (size_t i = 0; status.ok() && i < arrays.size(); ++i)
      outputs[i] = makeTensor(std::move(arrays[i]));
  }
  if (!status.ok())
    raise(status.take(), where);
  return outputs;
}

Shape withLanes(int64_t count, const Shape &shape) {
  Shape lanes{count};
  for (int64_t size : shape)
    lanes.push_back(size);
  return lanes;
}

static Shape withoutLanes(const Shape &shape) {
  Shape lane;
  for (int axis = 1; axis < shape.rank(); ++axis)
    lane.push_back(shape.dim(axis));
  return lane;
}

static Tensor rowsOf(const Tensor &x, int64_t begin, int64_t end, const Where &where) {
  std::vector<int64_t> starts(static_cast<size_t>(x.rank()), 0), limits(x.shape().begin(), x.shape().end());
  starts[0] = begin;
  limits[0] = end;
  return slice(Located(x, where), starts, limits);
}

int64_t Lanes::chunkOf(int64_t count, int64_t laneBytes) const {
  int64_t most = chunk > 0 ? chunk : memory > 0 ? memory / std::max<int64_t>(1, laneBytes) : count;
  most = std::clamp<int64_t>(most, 1, std::max<int64_t>(1, count));
  // As many chunks as are needed, of one size but for the last.
  int64_t chunks = count / most + (count % most != 0);
  int64_t even = chunks > 0 ? count / chunks + (count % chunks != 0) : most;
  return std::max<int64_t>(1, even);
}

std::vector<Tensor> runLanes(const GradientProgram &all,
                             llvm::function_ref<std::shared_ptr<const GradientProgram>(int64_t count)> programFor,
                             const EagerTape &tape, std::span<const Tensor> given, Lanes &lanes, bool record,
                             const Where &where) {
  int64_t count = given.front().dim(0), chunk = all.laneByLane ? 1 : lanes.chunkOf(count, all.laneBytes);
  lanes.how = all.laneByLane  ? "one at a time, as a rule of C++ takes one cotangent"
              : chunk < count ? std::to_string(chunk) + " at a time"
                              : "in one batched program";
  std::vector<std::vector<Tensor>> parts(all.program.outputs.size());
  for (int64_t begin = 0; begin == 0 || begin < count; begin += chunk) {
    int64_t end = std::min(begin + chunk, count);
    std::shared_ptr<const GradientProgram> made =
        end - begin == count || all.laneByLane ? nullptr : programFor(end - begin);
    const GradientProgram &program = made ? *made : all;
    std::vector<Tensor> inputs;
    for (const Tensor &each : given)
      inputs.push_back(all.laneByLane && count == 0 ? zeros(withoutLanes(each.shape()), each.dtype(), where)
                       : all.laneByLane             ? index(Located(each, where), begin)
                       : chunk >= count             ? each
                                                    : rowsOf(each, begin, end, where));
    std::vector<Tensor> outputs = run(program, tape, inputs, record, where);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensor &output = outputs[i];
      if (program.laneByLane && count == 0) // it was run for its results' shapes
        output = zeros(withLanes(0, output.shape()), output.dtype(), where);
      else if (program.laneByLane)
        output = expand_dims(Located(output, where), 0);
      else if (!program.batched[i])
        output = broadcast_to(Located(output, where), withLanes(end - begin, output.shape()));
      parts[i].push_back(std::move(output));
    }
  }
  std::vector<Tensor> outputs;
  for (const std::vector<Tensor> &part : parts)
    outputs.push_back(part.size() == 1 ? part.front() : concat(part, 0, where));
  return outputs;
}

} // namespace wg::detail
