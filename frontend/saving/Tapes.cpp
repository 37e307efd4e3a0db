// What tapes recorded, in a file and back. Their ops are written once, as one program, with a note of which tape
// recorded which, and with every value that they made. Loading computes nothing: it enters the ops and the values on
// the tapes, which hold afterwards what they held.
#include "frontend/saving/Program.h"
#include "frontend/saving/SavedState.h"
#include "frontend/saving/Snapshot.h"
#include "frontend/staging/GradientProgram.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

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

//===- Read -------------------------------------------------------------------------------------------------------===//

/// A text that lives as long as the process: rules are named by pointers.
static const char *kept(const std::string &text) {
  return text.empty() ? "" : StringAttr::get(ir::context(), text).getValue().data();
}

namespace {

/// Enters the rows on the tapes that recorded them.
class TapeReader {
public:
  TapeReader(SavedState &state, const codegen::Program &program, const std::string &path, const LoadOptions &options,
             const Where &where)
      : state_(state), saved_(*state.manifest.tapes), program_(program), path_(path), options_(options), where_(where) {
  }
  std::vector<Tensor> run();

private:
  [[noreturn]] void refuse(const std::string &message, std::string remedy = "") const {
    raise(runtime::fileError(path_, message, std::move(remedy)), where_);
  }
  void findLeaves();
  void enter(const Row &row, std::span<const Tensor *const> operands, std::span<Tensor> results);
  void enterOp(const Row &row, std::span<const Tensor *const> operands, std::span<Tensor> results);
  void enterCall(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                 std::span<Tensor> results);
  void enterRule(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                 std::span<Tensor> results);
  std::vector<Tensor> rerun(Derivative &derivative, std::span<const Tensor *const> operands, const Where &where) const;
  void watch(const Tensor &tensor);
  std::function<std::vector<Tensor>(const std::vector<Tensor> &)> ruleOf(int64_t function, size_t numGiven,
                                                                         const Where &where) const;

  SavedState &state_;
  const ManifestTapes &saved_;
  const codegen::Program &program_;
  const std::string &path_;
  const LoadOptions &options_;
  const Where &where_;
  TapeOps ops_;
  std::set<std::pair<const ConcreteState *, std::string>> fitted_; ///< open functions, with the types that fit
  std::vector<Tensor> values_;                                     ///< the leaves, then what the rows make
  size_t records_ = 0;                                             ///< rows entered so far
  std::map<size_t, std::vector<Tape *>> watchedBy_;                ///< by value
};

} // namespace

/// The tapes that watch the next of the values have it as a leaf.
void TapeReader::watch(const Tensor &tensor) {
  if (auto found = watchedBy_.find(values_.size()); found != watchedBy_.end())
    for (Tape *tape : found->second)
      tape->track(tensor);
  values_.push_back(tensor);
}

std::function<std::vector<Tensor>(const std::vector<Tensor> &)> TapeReader::ruleOf(int64_t function, size_t numGiven,
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
static const TensorType &typeOf(const Tensor &x) { return x.body()->type; }

void TapeReader::enterRule(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                           std::span<Tensor> results) {
  auto floats = static_cast<size_t>(
      std::count_if(operands.begin(), operands.end(), [](const Tensor *operand) { return isFloat(*operand); }));
  auto rule = std::make_shared<GradientRule>(GradientRule{.name = kept(saved.rule), .where = row.where});
  rule->vjp =
      ruleOf(saved.function, static_cast<size_t>(std::count_if(results.begin(), results.end(), isFloat)), row.where);
  if (saved.jvp >= 0)
    rule->jvp = ruleOf(saved.jvp, floats, row.where);
  rule->transposes = saved.transposes;
  for (uint32_t member : saved_.members[records_])
    state_.tapes[member]->recordRule(rule, operands, results);
}

/// Results and residuals, computed.
std::vector<Tensor> TapeReader::rerun(Derivative &derivative, std::span<const Tensor *const> operands,
                                      const Where &where) const {
  std::vector<Array> inputs, outputs(derivative.forward->results().size());
  for (const Tensor *operand : operands)
    inputs.push_back(arrayOf(*operand));
  derivative.forward->run(inputs, outputs, where);
  std::vector<Tensor> results;
  for (Array &output : outputs)
    results.push_back(makeTensor(std::move(output)));
  return results;
}

void TapeReader::enterCall(const ManifestTapes::Call &saved, const Row &row, std::span<const Tensor *const> operands,
                           std::span<Tensor> results) {
  const std::shared_ptr<ConcreteState> &concrete = state_.functions[saved.function];
  for (const TraceInput &input : concrete->inputs)
    if (input.kind == TraceInput::variable && input.state->isOrder)
      refuse("it calls " + concrete->name + ", which prints, checks or calls back, and no tape that is saved does so");
  const std::vector<TensorType> &types = concrete->code->inputs();
  bool fits = operands.size() == types.size() && saved.numResults == concrete->numResults && !saved.asked.empty() &&
              std::adjacent_find(saved.asked.begin(), saved.asked.end(), std::greater_equal<>()) == saved.asked.end();
  std::vector<TensorType> given;
  for (size_t i = 0; fits && i < operands.size(); ++i) {
    given.push_back(typeOf(*operands[i]));
    fits = given[i].dtype == types[i].dtype && sameSizes(given[i].shape, types[i].shape);
  }
  for (uint32_t input : saved.asked)
    fits = fits && runtime::isFloat(types[input].dtype);
  std::string sizes;
  for (const TensorType &type : given)
    sizes += toString(type) + " ";
  if (fits && !concrete->code->isStatic() && !fitted_.contains({concrete.get(), sizes})) {
    fits = concrete->code->fits(given); // which takes a copy of the program
    fitted_.emplace(concrete.get(), sizes);
  }
  if (!fits || results.empty())
    refuse("a call of " + concrete->name + " is not as it takes it");
  if (!ops_.add(*concrete, saved.asked))
    refuse("its calls are more than " + std::to_string(TapeOps::kMost) +
           " ops, each function counted once for each "
           "call of it and each set of inputs that it is differentiated by");
  std::shared_ptr<Derivative> derivative = concrete->derivative(saved.asked, row.where);
  const std::vector<TensorType> &made = derivative->forward->results();
  std::vector<Tensor> own(results.begin(), results.end());
  if (saved.forward != forwardDigest(*derivative, row.where)) {
    if (!options_.rerun_calls)
      refuse("this version of Wengert keeps other values of a call of " + concrete->name +
                 " for its gradient than the one that saved the tape",
             "if you trust the file, have its calls run again: load(path, {}, {.rerun_calls = true})");
    own = rerun(*derivative, operands, row.where);
  }
  bool same = own.size() == made.size() && results.size() >= concrete->numResults;
  for (size_t i = 0; same && i < made.size(); ++i)
    same = typeOf(own[i]).dtype == made[i].dtype && sameSizes(typeOf(own[i]).shape, made[i].shape);
  if (!same)
    refuse("a call of " + concrete->name + " has other values than it makes");
  std::copy_n(own.begin(), concrete->numResults, results.begin());
  for (uint32_t member : saved_.members[records_])
    state_.tapes[member]->recordCall({concrete, derivative, derivative->serial, concrete->numResults}, operands,
                                     results.first(concrete->numResults), std::span(own).subspan(concrete->numResults),
                                     row.where);
}

void TapeReader::enterOp(const Row &row, std::span<const Tensor *const> operands, std::span<Tensor> results) {
  const runtime::OpRecord &op = runtime::recordOf(row.op);
  std::vector<TensorType> types;
  for (const Tensor *operand : operands)
    types.push_back(typeOf(*operand));
  auto wide = std::find_if(types.begin(), types.end(), [](const TensorType &type) { return type.shape.rank() > 0; });
  if (op.elementwise && wide != types.end()) // a scalar beside others counts at every place
    for (TensorType &type : types)
      if (type.shape.rank() == 0)
        type.shape = wide->shape;
  runtime::TypeList inferred;
  if (Status status = runtime::inferTypes(row.op, types, row.attrs, inferred); !status.ok())
    raise(status.take(), row.where);
  bool same = results.size() == static_cast<size_t>(inferred.count);
  for (size_t i = 0; same && i < results.size(); ++i)
    same = typeOf(results[i]) == inferred[i];
  if (!same)
    refuse(std::string("the values of '") + op.name + "' are not of the types that it makes");
  for (uint32_t member : saved_.members[records_])
    state_.tapes[member]->record(row.op, row.attrs, operands, results, row.where);
}

void TapeReader::enter(const Row &row, std::span<const Tensor *const> operands, std::span<Tensor> results) {
  if (row.numChildren)
    refuse("it holds a loop or a condition, which no tape records as such");
  if (row.op != OpId::call)
    return enterOp(row, operands, results);
  std::string_view name = row.attrs.string(0);
  size_t number = 0;
  bool known = name.starts_with("call") &&
               std::from_chars(name.data() + 4, name.data() + name.size(), number).ptr == name.data() + name.size() &&
               number < saved_.calls.size();
  if (!known)
    refuse("it calls @" + std::string(name) + ", which the manifest does not name");
  const ManifestTapes::Call &saved = saved_.calls[number];
  saved.isRule ? enterRule(saved, row, operands, results) : enterCall(saved, row, operands, results);
}

/// The tapes, and what they may hold that no op made.
void TapeReader::findLeaves() {
  for (const ManifestTapes::Tape &tape : saved_.tapes) {
    state_.tapes.emplace_back(new Tape({.persistent = tape.persistent,
                                        .watch_accessed_variables = tape.watchAccessed,
                                        .allow_non_differentiable = tape.allowNonDifferentiable}),
                              dropTape);
    for (uint32_t value : tape.watched)
      watchedBy_[value].push_back(state_.tapes.back().get());
  }
  for (const ManifestTapes::Leaf &leaf : saved_.leaves)
    watch(leaf.isVariable ? state_.current[leaf.index] : makeTensor(arrayOf(state_.constants[leaf.index])));
  if (program_.inputs.size() != saved_.numArguments)
    refuse("it takes " + std::to_string(program_.inputs.size()) + " arguments, and " +
           std::to_string(saved_.numArguments) + " in the manifest");
  for (size_t i = 0; i < program_.inputs.size(); ++i)
    if (!(program_.inputs[i] == typeOf(values_[i])))
      refuse("argument " + std::to_string(i) + " is " + toString(program_.inputs[i]) + ", and the manifest has " +
             toString(typeOf(values_[i])) + " for it");
  if (!program_.constants.empty())
    refuse("it holds a constant, and all that a tape reads is an argument");
}

std::vector<Tensor> TapeReader::run() {
  findLeaves();
  size_t numLeaves = values_.size();
  std::vector<size_t> valueOf(program_.numSlots); // by slot
  for (size_t i = 0; i < program_.inputs.size(); ++i)
    valueOf[i] = i;
  auto numResults = [](size_t sum, const Row &row) { return sum + row.numResults; };
  if (program_.rows.size() != saved_.members.size() || program_.outputs.size() != saved_.values.size() ||
      std::accumulate(program_.rows.begin(), program_.rows.end(), size_t(0), numResults) != saved_.values.size())
    refuse("it has " + std::to_string(program_.rows.size()) + " ops and " + std::to_string(program_.outputs.size()) +
           " results; in the manifest there are " + std::to_string(saved_.members.size()) + " and " +
           std::to_string(saved_.values.size()));
  for (const Row &row : program_.rows) {
    const uint32_t *slots = program_.slots.data() + row.first;
    std::vector<Tensor> results;
    size_t next = values_.size() - numLeaves;
    for (uint32_t k = 0; k < row.numResults; ++k) {
      uint32_t slot = slots[row.numOperands + k];
      if (program_.outputs[next + k] != slot)
        refuse("its results are not those of its ops, in their order");
      valueOf[slot] = numLeaves + next + k;
      results.push_back(makeTensor(arrayOf(state_.constants[saved_.values[next + k]])));
    }
    std::vector<const Tensor *> operands;
    for (uint32_t k = 0; k < row.numOperands; ++k)
      operands.push_back(&values_[valueOf[slots[k]]]);
    enter(row, operands, results);
    for (const Tensor &result : results)
      watch(result);
    ++records_;
  }
  for (size_t i = 0; i < saved_.tapes.size(); ++i) {
    for (uint32_t value : saved_.tapes[i].watched)
      if (value >= values_.size())
        refuse("a tape watches value " + std::to_string(value) + ", and there are " + std::to_string(values_.size()));
    for (const ManifestTapes::Tape::Watched &watched : saved_.tapes[i].variables) {
      Tape::WatchedVariable entry{state_.variables[watched.variable], {}};
      for (uint32_t read : watched.reads) {
        if (read >= values_.size() || !(typeOf(values_[read]) == entry.variable->type))
          refuse("a tape has read a value as " + describe(*entry.variable) + " that is none of it");
        entry.reads.push_back(values_[read]);
      }
      state_.tapes[i]->variables.push_back(std::move(entry));
    }
    std::sort(state_.tapes[i]->variables.begin(), state_.tapes[i]->variables.end(),
              [](const auto &a, const auto &b) { return a.variable->id < b.variable->id; });
  }
  return std::move(values_);
}

std::vector<Tensor> loadTapes(SavedState &state, ModuleOp program, const std::string &path, const LoadOptions &options,
                              const Where &where) {
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
  return TapeReader(state, *rows, path, options, where).run();
}

} // namespace wg::detail
