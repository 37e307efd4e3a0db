// What tapes recorded, in a file and back. Their ops are written once, as one program, with a note of which tape
// recorded which; loading runs the program through the gate, with these tapes recording, so each holds afterwards what
// it held: the same ops on values of the same bits.
#include "frontend/saving/SavedState.h"
#include "frontend/saving/Snapshot.h"
#include "frontend/staging/GradientProgram.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <charconv>

using namespace mlir;

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;
using runtime::Status;

//===- Written ----------------------------------------------------------------------------------------------------===//

TapeUnion unionOf(std::span<const std::shared_ptr<Tape>> tapes) {
  /// An op on one of the tapes, known by its first result, in the order in which ops were done.
  struct Op {
    uint64_t id;
    uint32_t tape;
    const Record *record;
  };
  std::vector<Op> ops;
  TapeUnion all;
  auto slotFor = [&](const Tensor &tensor) {
    uint64_t id = stateOf(tensor)->id;
    int32_t slot = all.tape.slotOf.find(id);
    if (slot < 0) {
      slot = static_cast<int32_t>(all.tape.values.size());
      all.tape.slotOf.insert(id, slot);
      all.tape.values.push_back(tensor);
      all.tape.tracked.push_back(true);
    }
    return slot;
  };
  for (uint32_t i = 0; i < tapes.size(); ++i) {
    const EagerTape &tape = tapes[i]->eager;
    for (const Record &record : tape.records)
      ops.push_back(
          {stateOf(tape.values[static_cast<size_t>(tape.slots[record.first + record.numOperands])])->id, i, &record});
  }
  std::sort(ops.begin(), ops.end(),
            [](const Op &a, const Op &b) { return a.id != b.id ? a.id < b.id : a.tape < b.tape; });
  for (const Op &op : ops) {
    const EagerTape &tape = tapes[op.tape]->eager;
    if (&op != ops.data() && (&op)[-1].id == op.id) {
      all.members.back().push_back(op.tape);
      continue;
    }
    Record record = *op.record;
    record.first = static_cast<uint32_t>(all.tape.slots.size());
    for (uint32_t k = 0; k < record.numOperands + record.numResults; ++k)
      all.tape.slots.push_back(slotFor(tape.values[static_cast<size_t>(tape.slots[op.record->first + k])]));
    if (record.call >= 0) {
      all.tape.calls.push_back(tape.calls[static_cast<size_t>(record.call)]);
      record.call = static_cast<int32_t>(all.tape.calls.size()) - 1;
      all.tape.calls.back().record = all.tape.records.size();
    }
    all.tape.records.push_back(std::move(record));
    all.members.push_back({op.tape});
  }
  // What is watched and was not used yet.
  for (const std::shared_ptr<Tape> &tape : tapes)
    for (const Tensor &value : tape->eager.values)
      slotFor(value);
  return all;
}

//===- Replayed ---------------------------------------------------------------------------------------------------===//

/// A text that lives as long as the process: rules are named by pointers.
static const char *kept(const std::string &text) {
  return text.empty() ? "" : StringAttr::get(ir::context(), text).getValue().data();
}

namespace {

/// Runs the rows with the tapes recording that recorded them.
class Replay {
public:
  Replay(SavedState &state, const codegen::Program &program, const std::string &path, const Where &where)
      : state_(state), saved_(*state.manifest.tapes), program_(program), path_(path), where_(where) {}
  std::vector<Tensor> run();

  // The engine of codegen::run.
  Tensor constant(const Array &array) { return makeTensor(array); }
  Status execute(const Row &row, const runtime::OpCallOf<Tensor> &call, std::span<Tensor> results);

private:
  [[noreturn]] void refuse(const std::string &message) const { raise(runtime::fileError(path_, message), where_); }
  void findRecords();
  void watch(uint32_t value, const Tensor &tensor);
  void callFunction(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                    std::span<Tensor> results);
  void callRule(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                std::span<Tensor> results);
  std::function<std::vector<Tensor>(const std::vector<Tensor> &)> ruleOf(int64_t function, size_t numGiven,
                                                                         const Where &where) const;

  SavedState &state_;
  const ManifestTapes &saved_;
  const codegen::Program &program_;
  const std::string &path_;
  const Where &where_;
  std::vector<uint32_t> recordOf_, firstValue_;       ///< by row: its op among the members, and its first result
  std::map<uint32_t, std::vector<Tape *>> watchedBy_; ///< by value
};

} // namespace

/// Each op of the program makes results that it returns, in order; a row that makes none belongs to the next op.
void Replay::findRecords() {
  std::vector<int64_t> outputOf(program_.numSlots, -1);
  for (size_t i = 0; i < program_.outputs.size(); ++i)
    outputOf[program_.outputs[i]] = static_cast<int64_t>(i);
  uint32_t record = 0, value = 0;
  for (const Row &row : program_.rows) {
    recordOf_.push_back(record);
    firstValue_.push_back(value);
    size_t returned = 0;
    for (uint32_t k = 0; k < row.numResults; ++k)
      returned += outputOf[program_.slots[row.first + row.numOperands + k]] == int64_t(value) + k;
    if (returned == 0)
      continue;
    if (returned != row.numResults)
      refuse("its results are not those of its ops, in their order");
    ++record;
    value += row.numResults;
  }
  if (value != program_.outputs.size() || record != saved_.members.size())
    refuse("it has " + std::to_string(record) + " ops, and " + std::to_string(saved_.members.size()) +
           " in the manifest");
}

void Replay::watch(uint32_t value, const Tensor &tensor) {
  if (auto found = watchedBy_.find(value); found != watchedBy_.end())
    for (Tape *tape : found->second)
      tape->track(tensor);
}

std::function<std::vector<Tensor>(const std::vector<Tensor> &)> Replay::ruleOf(int64_t function, size_t numGiven,
                                                                               const Where &where) const {
  std::shared_ptr<ConcreteState> concrete = state_.functions[static_cast<size_t>(function)];
  if (concrete->variablesOf.aliasOf.size() != numGiven)
    refuse("the rule " + concrete->name + " takes " + std::to_string(concrete->variablesOf.aliasOf.size()) +
           " tensors, and is given " + std::to_string(numGiven));
  for (const TraceInput &input : concrete->inputs)
    if (input.formal)
      refuse("the rule " + concrete->name + " takes a variable, and rules are given tensors");
  return [concrete, where](const std::vector<Tensor> &given) {
    std::vector<Arguments::Leaf> leaves;
    for (const Tensor &each : given)
      leaves.push_back({&each, nullptr});
    Inline<Tensor, 8> results;
    callConcrete(*concrete, leaves, results, where);
    return std::vector<Tensor>(results.begin(), results.end());
  };
}

static bool isFloat(const Tensor &x) { return runtime::isFloat(x.body()->type.dtype); }

void Replay::callRule(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                      std::span<Tensor> results) {
  if (saved.values.size() != results.size())
    refuse("a rule has " + std::to_string(results.size()) + " results, and " + std::to_string(saved.values.size()) +
           " in the manifest");
  size_t floats = 0, floatResults = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = makeTensor(arrayOf(state_.constants[saved.values[i]]));
    floatResults += isFloat(results[i]);
  }
  for (const Tensor *operand : operands)
    floats += isFloat(*operand);
  auto rule = std::make_shared<GradientRule>(GradientRule{.name = kept(saved.rule), .where = row.where});
  rule->vjp = ruleOf(saved.function, floatResults, row.where);
  if (saved.jvp >= 0)
    rule->jvp = ruleOf(saved.jvp, floats, row.where);
  rule->transposes = saved.transposes;
  for (uint32_t member : saved_.members[recordOf_[static_cast<size_t>(&row - program_.rows.data())]])
    state_.tapes[member]->recordRule(rule, operands, results);
}

void Replay::callFunction(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                          std::span<Tensor> results) {
  const std::shared_ptr<ConcreteState> &concrete = state_.functions[saved.function];
  for (const TraceInput &input : concrete->inputs)
    if (input.kind == TraceInput::variable && input.state->isOrder)
      refuse("it calls " + concrete->name + ", which prints, checks or calls back: nothing does so while it is loaded");
  const std::vector<TensorType> &types = concrete->code->inputs();
  bool fits = operands.size() == types.size() && saved.numResults == concrete->numResults && !saved.asked.empty() &&
              std::adjacent_find(saved.asked.begin(), saved.asked.end(), std::greater_equal<>()) == saved.asked.end();
  std::vector<Array> inputs;
  for (size_t i = 0; fits && i < operands.size(); ++i) {
    const TensorType &type = operands[i]->body()->type;
    fits = type.dtype == types[i].dtype && sameSizes(type.shape, types[i].shape);
    inputs.push_back(arrayOf(*operands[i]));
  }
  for (uint32_t input : saved.asked)
    fits = fits && runtime::isFloat(types[input].dtype);
  if (!fits)
    refuse("a call of " + concrete->name + " is not as it takes it");
  std::shared_ptr<Derivative> derivative = concrete->derivative(saved.asked, row.where);
  std::vector<Array> outputs(derivative->forward->results().size());
  size_t residuals = outputs.size() - derivative->numResults;
  if (results.size() != concrete->numResults + residuals)
    refuse("a call of " + concrete->name + " keeps " + std::to_string(results.size()) + " values, and was to keep " +
           std::to_string(concrete->numResults + residuals));
  derivative->forward->run(inputs, outputs, row.where);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = makeTensor(
        std::move(outputs[i < concrete->numResults ? i : derivative->numResults + i - concrete->numResults]));
  for (uint32_t member : saved_.members[recordOf_[static_cast<size_t>(&row - program_.rows.data())]])
    state_.tapes[member]->recordCall({concrete, derivative, derivative->serial, concrete->numResults}, operands,
                                     results.first(concrete->numResults), results.subspan(concrete->numResults),
                                     row.where);
}

Status Replay::execute(const Row &row, const runtime::OpCallOf<Tensor> &call, std::span<Tensor> results) {
  auto at = static_cast<size_t>(&row - program_.rows.data());
  if (row.numChildren)
    refuse("it holds a loop or a condition, which no tape records as such");
  std::vector<const Tensor *> operands;
  for (const Tensor &operand : call.operands)
    operands.push_back(&operand);
  if (row.op == OpId::call) {
    std::string_view name = row.attrs.string(0);
    size_t number = 0;
    bool known = name.starts_with("call") &&
                 std::from_chars(name.data() + 4, name.data() + name.size(), number).ptr == name.data() + name.size() &&
                 number < saved_.calls.size();
    if (!known)
      refuse("it calls @" + std::string(name) + ", which the manifest does not name");
    const ManifestTapes::Call &saved = saved_.calls[number];
    saved.isRule ? callRule(saved, row, operands, results) : callFunction(saved, row, operands, results);
  } else {
    for (uint32_t member : saved_.members[recordOf_[at]])
      state_.tapes[member]->recording = true;
    try {
      applyOp(row.op, row.attrs, operands, results, row.where);
    } catch (...) {
      for (uint32_t member : saved_.members[recordOf_[at]])
        state_.tapes[member]->recording = false;
      throw;
    }
    for (uint32_t member : saved_.members[recordOf_[at]])
      state_.tapes[member]->recording = false;
  }
  auto leaves = static_cast<uint32_t>(saved_.leaves.size());
  for (size_t k = 0; k < results.size(); ++k)
    watch(leaves + firstValue_[at] + static_cast<uint32_t>(k), results[k]);
  return {};
}

std::vector<Tensor> Replay::run() {
  findRecords();
  for (const ManifestTapes::Tape &tape : saved_.tapes) {
    state_.tapes.emplace_back(new Tape({.persistent = tape.persistent,
                                        .watch_accessed_variables = tape.watchAccessed,
                                        .allow_non_differentiable = tape.allowNonDifferentiable}),
                              dropTape);
    for (uint32_t value : tape.watched)
      watchedBy_[value].push_back(state_.tapes.back().get());
  }
  std::vector<Tensor> values;
  for (const ManifestTapes::Leaf &leaf : saved_.leaves) {
    values.push_back(leaf.isVariable ? state_.current[leaf.index] : makeTensor(arrayOf(state_.constants[leaf.index])));
    watch(static_cast<uint32_t>(values.size()) - 1, values.back());
  }
  if (program_.inputs.size() != saved_.numArguments)
    refuse("it takes " + std::to_string(program_.inputs.size()) + " arguments, and " +
           std::to_string(saved_.numArguments) + " in the manifest");
  for (size_t i = 0; i < program_.inputs.size(); ++i)
    if (!(program_.inputs[i] == values[i].body()->type))
      refuse("argument " + std::to_string(i) + " is " + toString(program_.inputs[i]) + ", and the manifest has " +
             toString(values[i].body()->type) + " for it");
  std::vector<Tensor> outputs(program_.outputs.size());
  std::vector<Tensor> inputs(values.begin(), values.begin() + saved_.numArguments);
  if (Status status = codegen::run<Tensor>(program_, inputs, outputs, *this); !status.ok())
    raise(status.take(), where_);
  values.insert(values.end(), outputs.begin(), outputs.end());
  for (size_t i = 0; i < saved_.tapes.size(); ++i) {
    for (uint32_t value : saved_.tapes[i].watched)
      if (value >= values.size())
        refuse("a tape watches value " + std::to_string(value) + ", and there are " + std::to_string(values.size()));
    for (const ManifestTapes::Tape::Watched &watched : saved_.tapes[i].variables) {
      Tape::WatchedVariable entry{state_.variables[watched.variable], {}};
      for (uint32_t read : watched.reads) {
        if (read >= values.size() || !(values[read].body()->type == entry.variable->type))
          refuse("a tape has read a value as " + describe(*entry.variable) + " that is none of it");
        entry.reads.push_back(values[read]);
      }
      state_.tapes[i]->variables.push_back(std::move(entry));
    }
    std::sort(state_.tapes[i]->variables.begin(), state_.tapes[i]->variables.end(),
              [](const auto &a, const auto &b) { return a.variable->id < b.variable->id; });
  }
  return values;
}

std::vector<Tensor> replayTapes(SavedState &state, ModuleOp program, const std::string &path, const Where &where) {
  const ManifestTapes &saved = *state.manifest.tapes;
  ir::Diagnostics diagnostics(ir::context());
  auto entry = program.lookupSymbol<func::FuncOp>(saved.entry);
  if (!entry || entry.isDeclaration())
    raise(runtime::fileError(path, "has no function @" + saved.entry), where);
  for (auto function : program.getOps<func::FuncOp>())
    if (function != entry && !function.isDeclaration()) // calls of calls would be many times the file's ops
      raise(runtime::fileError(path, "@" + function.getName().str() + " has a body, and only @" + saved.entry +
                                         " has one in the program of tapes"),
            where);
  entry->walk([&](ir::HostOp op) {
    if (op.getOrdered())
      raise(runtime::fileError(path, "it prints, checks or calls back: nothing does so while it is loaded"), where);
  });
  FailureOr<codegen::Program> rows = codegen::flatten(entry);
  if (failed(rows))
    raise(diagnostics.take("the tape cannot be read"), where);
  for (const std::vector<uint32_t> &members : saved.members)
    if (members.empty())
      raise(runtime::fileError(path, "holds an op of no tape"), where);
  NotRecording others;
  return Replay(state, *rows, path, where).run();
}

} // namespace wg::detail
