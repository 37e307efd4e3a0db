// The gradient of what a tape holds. Eagerly: the adjoint's rows run on the recorded values, through the kernels, or
// through the gate when an outer tape records. In a trace: the transform appends to the function itself.
#include "frontend/api/Sparse.h"
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"
#include "frontend/staging/GradientProgram.h"
#include "frontend/staging/ShardScope.h"
#include "frontend/staging/Trace.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

using namespace mlir;

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;
using runtime::Status;

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
    if (watched || (state->trainable && options.watch_accessed_variables))
      reason = (watched ? "no path: " : "not watched: ") + nameOf(source) + " was not read while the tape recorded" +
               stoppedNote();
    else
      reason = "not watched: " + nameOf(source) +
               (state->trainable ? " is not watched when it is read, as the tape has watch_accessed_variables = false"
                                 : " is not trainable") +
               "; call tape.watch(variable) before it is used";
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
  reason = "not watched: " + nameOf(source);
  auto elsewhere = [&](const Tape *tape) { return tape != this && !traced && tape->tracks(source.tensor); };
  if (std::any_of(level().tapes.begin(), level().tapes.end(), elsewhere))
    reason += " is on another tape only; call tape.watch(x) on this one, too, before it is used";
  else
    reason +=
        " is neither watched nor computed from what is" + stoppedNote() + "; call tape.watch(x) before it is used";
  return {};
}

std::string Tape::stoppedNote() const {
  return stoppedAt.line ? " (recording was stopped at " + toString(stoppedAt) + ")" : std::string();
}

/// The value that a target stands for; `read`: a variable is read by the tapes that record.
static Tensor targetOf(const char *what, const Source &target, bool read, const Where &where) {
  if (!target.variable.defined()) {
    if (!target.tensor.defined() && !target.reason.empty())
      raiseOp(what, "the target is an empty gradient: " + target.reason,
              "test it first: if (g) ..., or ask for it with .unconnected = Unconnected::zero", {}, where);
    target.tensor.body(where);
    return target.tensor;
  }
  return read ? readVariable(target.variable.state(), where) : currentValue(target.variable.state(), where);
}

/// Errors unless the tensor has a value at the tape's level: no specification, and no tensor of a trace that has
/// ended or does not enclose this one.
void Tape::checkUsable(const Tensor &tensor, const char *what, const Where &where) const {
  if (traced)
    home()->trace->valueOf(tensor, what, where);
  else if (tensor.symbolic())
    raiseOutOfScope(what, tensor, where);
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
    checkUsable(seeds[i], "gradient", where);
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
  checkUnused(where);
  checkAsked("gradient", targets, sources, /*read=*/false);
  checkSeeds(targets.list, options, where);
  // A target that is a variable is read by this tape.
  std::vector<Tensor> targetTensors = checkAsked("gradient", targets, sources, recording);
  return useUp([&] {
    return traced ? gradientTraced(targetTensors, sources, options, nullptr, where)
                  : gradientEager(targetTensors, sources, options, nullptr, where);
  });
}

void Tape::checkUnused(const Where &where) const {
  if (used && !options.persistent)
    raiseOp("gradient", "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)",
            "make it persistent: GradientTape tape({.persistent = true})", {}, where, ErrorKind::runtime);
}

std::vector<Tensor> Tape::checkAsked(const char *what, const Targets &targets, const std::vector<Source> &sources,
                                     bool read) const {
  const Where &where = targets.where;
  std::vector<Tensor> tensors;
  for (const Source &target : targets.list)
    checkUsable(tensors.emplace_back(targetOf(what, target, read, where)), what, where);
  for (const Source &source : sources)
    if (!source.variable.defined() && source.tensor.defined())
      checkUsable(source.tensor, what, where);
    else if (source.variable.defined())
      currentValue(source.variable.state(), where);
  return tensors;
}

/// What a gradient is asked by and of, in slots of the tape.
struct Tape::Asked {
  std::vector<int32_t> targetSlots;
  std::vector<uint8_t> seeded;
  std::vector<Tensor> given; ///< seeds
  std::vector<std::vector<int32_t>> sourceSlots;
  std::vector<std::string> reasons;               ///< of sources that are not on the tape
  std::string noTarget;                           ///< why no target is
  std::shared_ptr<const GradientProgram> program; ///< null if no target is on the tape
  mutable std::optional<Ends> ends;               ///< made for the first source that needs it

  bool isConnected(size_t source) const { return program && program->outputs[source] >= 0; }
};

/// `'mul' (a.cpp:3) -> 'reduce_sum' (a.cpp:4)`: the ops of a shortest way from a source to a target; of a long one both
/// ends. `operandsOf` a value: those that its maker passes gradients to.
template <class Node, class Operands, class Name>
static std::string shortestPath(const std::vector<Node> &sources, const std::vector<Node> &targets,
                                const Operands &operandsOf, const Name &nameOf) {
  constexpr size_t kShown = 12;
  std::vector<std::pair<Node, size_t>> seen; // with the place of the value that it leads to: a target's is its own
  llvm::DenseSet<Node> known;
  for (Node target : targets)
    if (known.insert(target).second)
      seen.push_back({target, seen.size()});
  for (size_t at = 0; at < seen.size(); ++at) {
    if (std::find(sources.begin(), sources.end(), seen[at].first) == sources.end()) {
      for (Node operand : operandsOf(seen[at].first))
        if (known.insert(operand).second)
          seen.push_back({operand, at});
      continue;
    }
    std::vector<std::string> ops;
    for (size_t i = at; seen[i].second != i; i = seen[i].second)
      ops.push_back(nameOf(seen[seen[i].second].first));
    std::string path = ops.empty() ? "it is the target itself" : "";
    for (size_t k = 0; k < ops.size(); ++k)
      if (ops.size() <= kShown || k < kShown / 2 || k >= ops.size() - kShown / 2)
        path += (k ? " -> " : "") + ops[k];
      else if (k == kShown / 2)
        path += " -> ... " + std::to_string(ops.size() - kShown) + " more";
    return path;
  }
  return "by the derivative of a called function";
}

std::string Tape::explain(const Targets &targets, const std::vector<Source> &sources) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("explain", targets.where, [&] { return explain(targets, sources); });
  checkLevel("explain", targets.where);
  if (used && !options.persistent)
    return "the tape was used already, and what it held is gone; make it persistent";
  const Where &where = targets.where;
  std::vector<Tensor> targetTensors = checkAsked("explain", targets, sources, /*read=*/false);
  if (traced)
    return explainTraced(targetTensors, sources, where);
  Asked asked = ask(targetTensors, sources, std::vector<Tensor>(targetTensors.size()), false, std::nullopt, where);
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i)
    text += (i ? "\n" : "") + nameOf(sources[i]) + ": " +
            (asked.isConnected(i) ? "connected: " + pathOf(asked, i)
                                  : "None, " + whyNone(asked, i, targetTensors, sources[i]));
  return text;
}

// Vectors of the standard library: LLVM's end the process when there is no memory.
Tape::Asked Tape::ask(const std::vector<Tensor> &targetTensors, const std::vector<Source> &sources,
                      const std::vector<Tensor> &seeds, bool rows, std::optional<int64_t> lanes,
                      const Where &where) const {
  Asked asked;
  asked.noTarget = "no path: the target was not computed from anything that the tape watches" + stoppedNote();
  for (size_t i = 0; i < targetTensors.size(); ++i) {
    const TensorType &type = targetTensors[i].body()->type;
    if (!runtime::isFloat(type.dtype)) {
      asked.noTarget = "integer dtype: the target is " + toString(type) + ", and gradients pass through floats only";
    } else if (tracks(targetTensors[i])) {
      asked.targetSlots.push_back(eager.slotOf.find(stateOf(targetTensors[i])->id));
      asked.seeded.push_back(seeds[i].defined());
      if (seeds[i].defined())
        asked.given.push_back(seeds[i]);
    }
  }
  asked.reasons.resize(sources.size());
  StructureHash key = eager.hash;
  if (lanes)
    key.mix(0x22 | static_cast<uint64_t>(*lanes) << 8);
  if (rows)
    key.mix(0x23);
  for (size_t i = 0; i < asked.targetSlots.size(); ++i)
    key.mix(0x20 | static_cast<uint64_t>(asked.seeded[i]) << 8 | static_cast<uint64_t>(asked.targetSlots[i]) << 16);
  for (size_t i = 0; i < sources.size(); ++i) {
    std::vector<int32_t> slots;
    for (const Tensor &read : readsOf(sources[i], asked.reasons[i]))
      slots.push_back(eager.slotOf.find(stateOf(read)->id));
    key.mix(0x21 | slots.size() << 8);
    for (int32_t slot : slots)
      key.mix(static_cast<uint64_t>(slot));
    asked.sourceSlots.push_back(std::move(slots));
  }
  if (!asked.targetSlots.empty())
    asked.program = gradientProgram(eager, key, asked.targetSlots, asked.seeded, asked.sourceSlots, rows, lanes, where);
  return asked;
}

std::string nameOf(const EagerTape &tape, const Record &record) {
  const RecordedCall *call = record.call >= 0 ? &tape.calls[static_cast<size_t>(record.call)] : nullptr;
  std::string place = toString(record.where);
  return "'" +
         (!call        ? std::string(runtime::recordOf(record.op).name)
          : call->rule ? std::string(call->rule->name)
                       : call->callee->name) +
         "'" + (place.empty() ? place : " (" + place + ")");
}

/// Why a source has no gradient: what the program says, and where on the tape the path ends.
std::string Tape::whyNone(const Asked &asked, size_t i, const std::vector<Tensor> &targets,
                          const Source &source) const {
  if (!asked.reasons[i].empty())
    return asked.reasons[i];
  const std::vector<int32_t> &slots = asked.sourceSlots[i];
  if (!asked.program) {
    for (const WatchedTensor &watched : watchedTensors)
      for (const Tensor &target : targets)
        if (std::find(slots.begin(), slots.end(), watched.slot) != slots.end() && stateOf(target)->id < watched.id &&
            asked.noTarget.starts_with("no path"))
          return "watched too late: " + nameOf(source) + " was watched (" + toString(watched.where) +
                 ") after the target was computed";
    return asked.noTarget;
  }
  const std::string &reason = asked.program->reasons[i];
  if (!reason.starts_with("no path: the target"))
    return reason;
  if (!asked.ends)
    asked.ends = endsOf();
  int32_t last = -1, assigned = -1;
  for (int32_t slot : slots) {
    last = std::max(last, asked.ends->record[static_cast<size_t>(slot)]);
    assigned = std::max(assigned, asked.ends->assigned[static_cast<size_t>(slot)]);
  }
  if (assigned >= 0)
    return "blocked: its value, or one computed from it, was assigned to " +
           describe(*variables[static_cast<size_t>(assigned)].variable) + ", and an assignment stops the gradient";
  if (last < 0)
    return "no path: no op that the tape recorded reads " + nameOf(source) + stoppedNote();
  return reason + ": what is computed from it ends at " + nameOf(eager, eager.records[static_cast<size_t>(last)]) +
         stoppedNote();
}

/// One pass backwards over the tape, for all sources.
Tape::Ends Tape::endsOf() const {
  Ends ends{std::vector<int32_t>(eager.values.size(), -1), std::vector<int32_t>(eager.values.size(), -1)};
  // A variable's value is that which was assigned, in the same memory, under an identity that came later.
  std::unordered_map<const void *, std::pair<int64_t, int32_t>> reads;
  for (size_t i = 0; i < variables.size(); ++i)
    for (const Tensor &read : variables[i].reads)
      if (const void *data = stateOf(read)->buffer.data()) {
        auto &latest = reads.try_emplace(data, -1, -1).first->second;
        latest = std::max(latest, std::pair(static_cast<int64_t>(stateOf(read)->id), static_cast<int32_t>(i)));
      }
  for (size_t slot = 0; slot < eager.values.size() && !reads.empty(); ++slot)
    if (const Tensor &value = eager.values[slot]; value.defined())
      if (auto found = reads.find(stateOf(value)->buffer.data());
          found != reads.end() && static_cast<int64_t>(stateOf(value)->id) < found->second.first)
        ends.assigned[slot] = found->second.second;
  for (size_t i = eager.records.size(); i-- > 0;) {
    const Record &record = eager.records[i];
    const int32_t *operands = &eager.slots[record.first], *results = operands + record.numOperands;
    int32_t last = static_cast<int32_t>(i), assigned = -1;
    for (const int32_t *slot = results; slot != results + record.numResults; ++slot) {
      last = std::max(last, ends.record[static_cast<size_t>(*slot)]);
      assigned = std::max(assigned, ends.assigned[static_cast<size_t>(*slot)]);
    }
    for (const int32_t *slot = operands; slot != results; ++slot) {
      int32_t &record = ends.record[static_cast<size_t>(*slot)], &variable = ends.assigned[static_cast<size_t>(*slot)];
      record = std::max(record, last);
      variable = std::max(variable, assigned);
    }
  }
  return ends;
}

std::string Tape::pathOf(const Asked &asked, size_t i) const {
  std::vector<const Record *> maker(eager.values.size());
  for (const Record &record : eager.records)
    for (uint32_t k = 0; k < record.numResults; ++k)
      maker[static_cast<size_t>(eager.slots[record.first + record.numOperands + k])] = &record;
  return shortestPath<int32_t>(
      asked.sourceSlots[i], asked.targetSlots,
      [&](int32_t slot) {
        std::vector<int32_t> operands;
        const Record *record = maker[static_cast<size_t>(slot)];
        if (record && (record->call >= 0 || runtime::recordOf(record->op).differentiable))
          for (uint32_t k = 0; k < record->numOperands; ++k)
            if (int32_t operand = eager.slots[record->first + k];
                runtime::isFloat(eager.values[static_cast<size_t>(operand)].body()->type.dtype))
              operands.push_back(operand);
        return operands;
      },
      [&](int32_t slot) { return nameOf(eager, *maker[static_cast<size_t>(slot)]); });
}

std::vector<Grad> Tape::gradientEager(const std::vector<Tensor> &targetTensors, const std::vector<Source> &sources,
                                      const GradientOptions &options, Lanes *lanes, const Where &where) {
  std::vector<Tensor> seeds = seedsFor(targetTensors, options, where);
  std::optional<int64_t> count;
  if (lanes)
    count = seeds.front().dim(0);
  // Rows may be added up later, when a tape that records now has stopped.
  bool rows = !lanes && !isRecorded();
  Asked asked = ask(targetTensors, sources, seeds, rows, count, where);
  std::vector<Grad> grads(sources.size());
  auto none = [&](size_t i) {
    return noGradient(sources[i], whyNone(asked, i, targetTensors, sources[i]), options, where);
  };
  if (!asked.program) {
    for (size_t i = 0; i < sources.size(); ++i)
      grads[i] = none(i);
    return grads;
  }
  auto programFor = [&](int64_t count) { return ask(targetTensors, sources, seeds, false, count, where).program; };
  std::vector<Tensor> outputs =
      lanes ? runLanes(*asked.program, programFor, eager, asked.given, *lanes, options.record, where)
            : run(*asked.program, eager, asked.given, options.record, where);
  for (size_t i = 0; i < sources.size(); ++i)
    if (!asked.isConnected(i)) {
      grads[i] = none(i);
    } else {
      auto at = static_cast<size_t>(asked.program->outputs[i]);
      auto parts = static_cast<size_t>(rows ? asked.program->parts[i] : 0);
      std::vector<std::pair<Tensor, Tensor>> pairs;
      for (size_t k = 0; k < parts; ++k)
        pairs.emplace_back(outputs[at + 2 * k], outputs[at + 2 * k + 1]);
      const Tensor &read = eager.values[static_cast<size_t>(asked.sourceSlots[i].front())];
      grads[i] = parts ? sparseGrad(pairs, read.shape(), where) : Grad(outputs[at]);
    }
  return grads;
}

/// No op is added to the trace.
std::string Tape::explainTraced(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                const Where &where) const {
  Trace &trace = *home()->trace;
  ir::Working working;
  std::vector<Value> targetValues;
  for (const Tensor &target : targets)
    if (Value value = trace.valueOf(target, "explain", where); traced->values.contains(value))
      targetValues.push_back(value);
  auto isRecorded = [&](Operation *op) { return traced->ops.contains(op); };
  auto nameOfMaker = [](Value value) {
    Operation *op = value.getDefiningOp();
    auto call = dyn_cast<ir::CallOp>(op);
    std::string place = ir::whereOf(op->getLoc());
    return "'" + (call ? call.getCallee() : op->getName().stripDialect()).str() + "'" +
           (place.empty() ? place : " (" + place + ")");
  };
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string reason;
    std::vector<Value> reads;
    for (const Tensor &read : readsOf(sources[i], reason))
      reads.push_back(trace.valueOf(read, "explain", where));
    autodiff::Activity activity(targetValues, reads, isRecorded);
    auto operandsOf = [&](Value value) {
      std::vector<Value> operands;
      if (Operation *op = value.getDefiningOp(); op && isRecorded(op))
        for (Value operand : op->getOperands())
          if (activity.isActive(operand))
            operands.push_back(operand);
      return operands;
    };
    bool connected = std::any_of(reads.begin(), reads.end(), [&](Value read) { return activity.isActive(read); });
    if (!connected && reason.empty())
      reason = targetValues.empty()
                   ? "no path: the target was not computed from anything that the tape watches" + stoppedNote()
                   : activity.whyNone(reads.front());
    text += (i ? "\n" : "") + nameOf(sources[i]) + ": " +
            (connected ? "connected: " + shortestPath<Value>(reads, targetValues, operandsOf, nameOfMaker)
                       : "None, " + reason);
  }
  return text;
}

std::vector<Grad> Tape::gradientTraced(const std::vector<Tensor> &targetTensors, const std::vector<Source> &sources,
                                       const GradientOptions &options, Lanes *lanes, const Where &where) {
  Trace &trace = *home()->trace;
  std::vector<Tensor> seeds = seedsFor(targetTensors, options, where);
  SmallVector<Value> targetValues, seedValues, sourceValues;
  std::string noTarget = "no path: the target was not computed from anything that the tape watches" + stoppedNote();
  // In a step for one shard a target that differs by shard is that of all shards: their mean by rows, or sum. One that
  // follows from a sum over shards is each shard's by its share. By what all have in common the derivatives are added.
  ShardScope *shard = lanes ? nullptr : shardScope();
  if (shard && shard->trace != &trace)
    shard = nullptr;
  auto valueOf = [&](const Tensor &target) { return trace.valueOf(target, "gradient", where); };
  if (shard && llvm::none_of(targetTensors, [&](const Tensor &target) { return shard->isOfShards(valueOf(target)); }))
    shard = nullptr;
  bool weighed = false; // what differs by shard
  for (size_t i = 0; i < seeds.size() && shard; ++i) {
    if (!runtime::isFloat(targetTensors[i].dtype()))
      continue;
    bool differs = shard->differs(valueOf(targetTensors[i]));
    weighed |= differs && shard->weighs;
    if (!differs || shard->weighs)
      seeds[i] = Located(seeds[i].defined() ? seeds[i] : ones_like(Located(targetTensors[i], where)), where) *
                 shard->shareAs(targetTensors[i], where);
  }
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
  autodiff::Gradients gradients =
      lanes
          ? trace.inLanes(*this, autodiff::Mode::reverse, targetValues, sourceValues, seedValues.front(), *lanes, where)
          : trace.reverse(*this, targetValues, seedValues, sourceValues, options.record, where);
  size_t next = 0;
  bool rows = !lanes && !isRecorded() && !shard;
  for (size_t i = 0; i < sources.size(); ++i) {
    bool common = shard && counts[i] > 0;
    for (size_t k = 0; k < counts[i] && common; ++k)
      common = !shard->differs(sourceValues[next + k]);
    // By gathering alone, wherever it was read.
    std::vector<std::pair<Tensor, Tensor>> parts;
    bool isDense = false;
    for (size_t k = 0; rows && !isDense && k < counts[i]; ++k)
      if (Value value = gradients.values[next + k]) {
        SmallVector<ir::ScatterAddOp> ops = scattersOf(value);
        isDense = ops.empty();
        for (ir::ScatterAddOp op : ops)
          parts.emplace_back(trace.tensorOf(op.getIndices(), where), trace.tensorOf(op.getUpdates(), where));
      }
    if (!parts.empty() && !isDense) {
      Shape shape = sources[i].variable.defined() ? sources[i].variable.shape() : sources[i].tensor.shape();
      grads[i] = sparseGrad(parts, shape, where);
      next += counts[i];
      continue;
    }
    Tensor sum;
    for (size_t k = 0; k < counts[i]; ++k, ++next) {
      if (gradients.values[next]) {
        Tensor part = trace.tensorOf(gradients.values[next], where);
        sum = sum.defined() ? Located(sum, where) + Located(part, where) : part;
      } else if (reasons[i].empty() || reasons[i].starts_with("no path")) {
        reasons[i] = gradients.reasons[next];
      }
    }
    if (sum.defined() && shard && !common && weighed) {
      sum = Located(sum, where) / shard->shareAs(sum, where);
    } else if (sum.defined() && common) {
      sum = overShards(sum, dist::Reduction::sum, where);
    }
    grads[i] = sum.defined() ? Grad(sum) : noGradient(sources[i], reasons[i], options, where);
  }
  return grads;
}

} // namespace wg::detail
