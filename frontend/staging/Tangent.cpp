// Forward mode on a tape: tangents of what it recorded, by the same transform eagerly and in a trace; and what is made
// of it: jvp, ForwardAccumulator.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"
#include "frontend/staging/GradientProgram.h"

#include <wengert/ForwardAccumulator.h>

using namespace mlir;

namespace wg {
namespace detail {

/// Errors unless every move fits its source.
static void checkMoves(const std::vector<Source> &sources, const std::vector<Tensor> &moves, const Where &where) {
  if (sources.size() != moves.size())
    raiseOp("jvp", std::to_string(moves.size()) + " tangents for " + std::to_string(sources.size()) + " primals",
            "give each tensor and variable one tangent, in a structure like that of the primals", {}, where);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].variable.defined())
      sources[i].tensor.body(where);
    const TensorType &type =
        sources[i].variable.defined() ? sources[i].variable.state()->type : sources[i].tensor.body()->type;
    if (!moves[i].defined())
      continue;
    const TensorType &move = moves[i].body()->type;
    if (!runtime::isFloat(type.dtype))
      raiseOp("jvp", "primal " + std::to_string(i) + " is " + toString(type) + ", and only floats have tangents",
              "leave it out of the primals: capture it", {type}, where, ErrorKind::type);
    if (move.dtype != type.dtype || !sameSizes(move.shape, type.shape))
      raiseOp("jvp", "tangent " + std::to_string(i) + " is " + toString(move) + ", its primal " + toString(type),
              "give it the primal's dtype and shape", {move, type}, where);
  }
}

std::vector<Grad> Tape::tangents(const Targets &targets, const std::vector<Source> &sources,
                                 const std::vector<Tensor> &moves) {
  const Where &where = targets.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("jvp", where, [&] { return tangents(targets, sources, moves); });
  checkLevel("jvp", where);
  // An empty gradient among the targets does not move, for its own reason.
  std::vector<Tensor> targetTensors;
  for (const Source &target : targets.list) {
    Tensor value = target.variable.defined() ? currentValue(target.variable.state(), where) : target.tensor;
    if (!value.defined() && !target.reason.empty())
      continue;
    value.body(where);
    targetTensors.push_back(value);
  }
  // An accumulator that was begun inside of this one does not see its tangents: they belong to a level above it.
  bool inside = false;
  NotRecording paused([&](const Tape *tape) {
    bool above = inside && tape->isAccumulator;
    inside = inside || (tape == this && isAccumulator);
    return above;
  });
  std::vector<Grad> found = traced ? tangentsTraced(targetTensors, sources, moves, nullptr, where)
                                   : tangentsEager(targetTensors, sources, moves, nullptr, where);
  std::vector<Grad> all;
  size_t next = 0;
  for (const Source &target : targets.list)
    all.push_back(target.variable.defined() || target.tensor.defined()
                      ? std::move(found[next++])
                      : Grad::none("the target is an empty gradient: " + target.reason));
  return all;
}

static std::string unconnected(const std::string &reason) {
  return reason.empty() ? "no path: the target was not computed from anything that moves" : reason;
}

std::vector<Grad> Tape::tangentsEager(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                      const std::vector<Tensor> &moves, Lanes *lanes, const Where &where) {
  StructureHash key = eager.hash;
  std::vector<std::vector<int32_t>> sourceSlots;
  std::vector<Tensor> given;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string reason;
    std::vector<int32_t> slots;
    if (moves[i].defined())
      for (const Tensor &read : readsOf(sources[i], reason))
        slots.push_back(eager.slotOf.find(stateOf(read)->id));
    if (slots.empty())
      continue;
    key.mix(0x31 | slots.size() << 8);
    for (int32_t slot : slots)
      key.mix(static_cast<uint64_t>(slot));
    sourceSlots.push_back(std::move(slots));
    given.push_back(moves[i]);
  }
  std::vector<int32_t> targetSlots;
  std::vector<int64_t> place; // of a target among those that are on the tape, or -1
  for (const Tensor &target : targets) {
    bool moves = runtime::isFloat(target.body()->type.dtype) && tracks(target) && !given.empty();
    place.push_back(moves ? static_cast<int64_t>(targetSlots.size()) : -1);
    if (moves) {
      targetSlots.push_back(eager.slotOf.find(stateOf(target)->id));
      key.mix(0x30 | static_cast<uint64_t>(targetSlots.back()) << 16);
    }
  }
  std::vector<Grad> found;
  std::shared_ptr<const GradientProgram> program;
  std::vector<Tensor> outputs;
  if (!targetSlots.empty()) {
    auto programFor = [&](std::optional<int64_t> count) {
      StructureHash counted = key;
      if (count)
        counted.mix(0x32 | static_cast<uint64_t>(*count) << 8);
      return tangentProgram(eager, counted, targetSlots, sourceSlots, count, where);
    };
    program = programFor(lanes ? std::optional(given.front().dim(0)) : std::nullopt);
    outputs = lanes ? runLanes(*program, programFor, eager, given, *lanes, /*record=*/true, where)
                    : run(*program, eager, given, /*record=*/true, where);
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    int32_t output = place[i] < 0 ? -1 : program->outputs[static_cast<size_t>(place[i])];
    const TensorType &type = targets[i].body()->type;
    if (output >= 0)
      found.push_back(Grad(outputs[static_cast<size_t>(output)]));
    else if (!runtime::isFloat(type.dtype))
      found.push_back(
          Grad::none("integer dtype: the target is " + toString(type) + ", and tangents pass through floats only"));
    else
      found.push_back(Grad::none(unconnected(place[i] < 0 ? "" : program->reasons[static_cast<size_t>(place[i])])));
  }
  return found;
}

std::vector<Grad> Tape::tangentsTraced(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                       const std::vector<Tensor> &moves, Lanes *lanes, const Where &where) {
  Trace &trace = *home()->trace;
  SmallVector<mlir::Value> targetValues, sourceValues, given;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string reason;
    if (moves[i].defined())
      for (const Tensor &read : readsOf(sources[i], reason)) {
        sourceValues.push_back(trace.valueOf(read, "jvp", where));
        given.push_back(trace.valueOf(moves[i], "jvp", where));
      }
  }
  for (const Tensor &target : targets)
    targetValues.push_back(trace.valueOf(target, "jvp", where));
  autodiff::Tangents tangents =
      lanes && !given.empty()
          ? trace.inLanes(*this, autodiff::Mode::forward, targetValues, sourceValues, given.front(), *lanes, where)
          : trace.forward(*this, targetValues, sourceValues, given, where);
  std::vector<Grad> found;
  for (auto [value, reason] : llvm::zip_equal(tangents.values, tangents.reasons))
    found.push_back(value ? Grad(trace.tensorOf(value, where)) : Grad::none(unconnected(reason)));
  return found;
}

std::vector<Grad> tangentsOf(GradientTape &tape, const Targets &targets, const std::vector<Source> &sources,
                             const std::vector<Grad> &moves) {
  std::vector<Tensor> tensors;
  for (const Grad &move : moves)
    tensors.push_back(move.has_value() ? move.value() : Tensor());
  checkMoves(sources, tensors, targets.where);
  return tape.tape(targets.where).tangents(targets, sources, tensors);
}

} // namespace detail

//===- ForwardAccumulator -----------------------------------------------------------------------------------------===//

static bool isSame(const detail::Source &a, const detail::Source &b) {
  return a.variable.defined() ? b.variable.defined() && a.variable.is(b.variable)
                              : a.tensor.defined() && a.tensor.is(b.tensor);
}

ForwardAccumulator::ForwardAccumulator(std::vector<detail::Source> primals, const std::vector<Grad> &tangents,
                                       const Where &where)
    : tape_({.persistent = true, .watch_accessed_variables = false}) {
  tape_.tape(where).isAccumulator = true;
  for (size_t i = 0; i < primals.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (isSame(primals[i], primals[k]))
        detail::raiseOp("ForwardAccumulator",
                        "a primal is there multiple times: " + std::to_string(k) + " and " + std::to_string(i),
                        "give it once, with the sum of its tangents", {}, where);
  add(std::move(primals), tangents, where);
}

void ForwardAccumulator::add(std::vector<detail::Source> primals, const std::vector<Grad> &tangents,
                             const Where &where) {
  std::vector<Tensor> moves;
  for (const Grad &tangent : tangents)
    moves.push_back(tangent.has_value() ? tangent.value() : Tensor());
  detail::checkMoves(primals, moves, where);
  tape_.watchAll(primals, where);
  for (size_t i = 0; i < primals.size(); ++i) {
    size_t known = 0;
    while (known < primals_.size() && !isSame(primals_[known], primals[i]))
      ++known;
    if (known == primals_.size()) {
      primals_.push_back(primals[i]);
      tangents_.push_back(moves[i]);
    } else if (moves[i].defined()) {
      Tensor &sum = tangents_[known];
      sum = sum.defined() ? Located(sum, where) + Located(moves[i], where) : moves[i];
    }
  }
}

std::vector<Grad> ForwardAccumulator::tangentsOf(const Targets &targets, Unconnected unconnected) {
  std::vector<Grad> found = tape_.tape(targets.where).tangents(targets, primals_, tangents_);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].has_value() && unconnected == Unconnected::zero) {
      const detail::Source &target = targets.list[i];
      found[i] = Grad(zeros_like(target.variable.defined() ? Located(target.variable, targets.where)
                                                           : Located(target.tensor, targets.where)));
    }
  return found;
}

detail::Recording ForwardAccumulator::record(Where where) {
  if (tape_.recording(where))
    detail::raiseOp("ForwardAccumulator", "Accumulator is already recording.", "end the other recording first", {},
                    where);
  detail::Recording scope = tape_.record(where);
  tape_.tape(where).enterAgain();
  return scope;
}

} // namespace wg
