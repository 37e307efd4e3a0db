// Runs the rows of a tape's derivative: on the kernels, or, where an outer tape records, through the gate.
#include "frontend/GradientProgram.h"

#include "frontend/Function.h"

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;
using runtime::Status;

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
    if (called.isForward) {
      std::vector<Array> inputs(call.operands.begin(),
                                call.operands.begin() + static_cast<std::ptrdiff_t>(recorded.callee->inputs.size()));
      std::span<const Array> tangents = call.operands.last(called.arguments.size());
      inputs.insert(inputs.end(), tangents.begin(), tangents.end());
      recorded.callee->tangent(called.arguments, called.results, row.where)
          ->concrete->code->run(inputs, results, row.where);
      return {};
    }
    if (std::shared_ptr<const GradientHook> hook = recorded.hook) {
      NotRecording paused;
      results[0] = arrayOf((*hook)(makeTensor(call.operands.back())));
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
    if (row.op != OpId::call) {
      for (const Tensor &operand : call.operands)
        operands.push_back(&operand);
      applyOp(row.op, row.attrs, operands, results, row.where);
      return {};
    }
    const CallDerivative &called = calledBy(program, row);
    const RecordedCall &recorded = tape.calls[called.call];
    if (std::shared_ptr<const GradientHook> hook = recorded.hook) {
      results[0] = (*hook)(call.operands.back());
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
  // Tapes that record now, and know one of the values that the rows read, get their ops. What a hook reads is known
  // when it is called.
  bool recorded = false, hooks = false;
  for (const auto &call : program.calls)
    hooks = hooks || tape.calls[call.second.call].hook;
  for (Tape *each : level().tapes)
    if (record && each->recording) {
      recorded = recorded || hooks;
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

} // namespace wg::detail
