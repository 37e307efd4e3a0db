// What is saved, collected: each variable, constant and function once, under a number, whoever names it. Names and
// numbers follow from the order of the items alone, so equal states make equal files.
#include "frontend/saving/Snapshot.h"

#include "frontend/ops/Operands.h"
#include "frontend/saving/Program.h"
#include "frontend/staging/Host.h"
#include "frontend/staging/TapeProgram.h"
#include "runtime/io/Utf8.h"

#include <wengert/Version.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>

namespace wg {

SaveItem::SaveItem(const SaveItem &) = default;
SaveItem::SaveItem(SaveItem &&) noexcept = default;
SaveItem &SaveItem::operator=(const SaveItem &) = default;
SaveItem &SaveItem::operator=(SaveItem &&) noexcept = default;
SaveItem::~SaveItem() = default;

namespace detail {

namespace {

class Collector {
public:
  Collector(const SaveItems &items, const SaveOptions &options, const Where &where);
  std::shared_ptr<Snapshot> collect();

private:
  [[noreturn]] void refuse(std::string message, std::string remedy, const Where &where,
                           ErrorKind kind = ErrorKind::value) const {
    raiseOp("save", std::move(message), std::move(remedy), {}, where ? where : where_, kind);
  }
  void checkName(const std::string &name, const char *what, const Where &where) const;
  uint32_t variable(const std::shared_ptr<VariableState> &state, const std::string &name, const Where &where);
  uint32_t variable(const std::shared_ptr<VariableState> &state, const Where &where);
  uint32_t constant(const Tensor &tensor, const Where &where);
  uint32_t function(const std::shared_ptr<ConcreteState> &concrete, bool isUsers, const Where &where);
  void functionItem(const SaveItem &item, ManifestItem &made);
  void concreteItem(const SaveItem &item, ManifestItem &made);
  void valueItem(const SaveItem &item, ManifestItem &made);
  void collectCalls();
  void readVariables();
  void writeTapes();

  const SaveItems &items_;
  Where where_;
  std::shared_ptr<Snapshot> snapshot_ = std::make_shared<Snapshot>();
  Manifest &manifest_ = snapshot_->manifest;
  std::map<int64_t, uint32_t> variableOf_; ///< by id
  std::vector<std::shared_ptr<VariableState>> states_;
  std::map<std::string, size_t> names_;                                 ///< of variables
  std::map<std::pair<const void *, std::string>, uint32_t> constantOf_; ///< by memory and type
  std::map<const ConcreteState *, uint32_t> functionOf_;
  std::vector<std::shared_ptr<Tape>> tapes_;
  TapeUnion union_;
};

} // namespace

Collector::Collector(const SaveItems &items, const SaveOptions &options, const Where &where)
    : items_(items), where_(where) {
  snapshot_->maxShardBytes = options.max_shard_bytes;
  if (options.over_ranks)
    snapshot_->together = runtime::Together(runtime::ranks().groups.front(), runtime::ranks().options);
  manifest_.library = WENGERT_VERSION_STRING;
  manifest_.metadata = options.metadata;
  for (const auto &[key, value] : options.metadata)
    if (!runtime::isUtf8(key) || !runtime::isUtf8(value))
      refuse("the metadata has text that is not UTF-8", "give text", where);
}

void Collector::checkName(const std::string &name, const char *what, const Where &where) const {
  if (name.empty() || !runtime::isUtf8(name) || name.find('\0') != name.npos)
    refuse(std::string(what) + (name.empty() ? " has no name" : " has a name that is not text in UTF-8"),
           "give it a name", where);
}

/// The number of a variable, which has the first name that it was given. An error if another one has that.
uint32_t Collector::variable(const std::shared_ptr<VariableState> &place, const std::string &name, const Where &where) {
  const std::shared_ptr<VariableState> &state = variableBehind(place);
  if (state->birth)
    raiseOutOfScope(*state, where);
  auto [at, fresh] = variableOf_.try_emplace(state->id, static_cast<uint32_t>(states_.size()));
  if (!fresh)
    return at->second;
  checkName(name, "a variable", where);
  if (!names_.emplace(name, states_.size()).second)
    refuse("two variables are named '" + name + "'", "give each item and each variable its own name", where);
  states_.push_back(state);
  manifest_.variables.push_back({name, state->type, state->name, state->trainable, state->isGenerator});
  return at->second;
}

/// The same of one that has no name among the items: it keeps its own, made unique.
uint32_t Collector::variable(const std::shared_ptr<VariableState> &place, const Where &where) {
  const VariableState &state = *variableBehind(place);
  std::string name = state.name.empty() || !runtime::isUtf8(state.name) ? "variable" : state.name, unique = name;
  if (!variableOf_.contains(state.id))
    for (int again = 2; names_.contains(unique); ++again)
      unique = name + "_" + std::to_string(again);
  return variable(place, unique, where);
}

/// The number of a tensor's elements; those of one memory are saved once.
uint32_t Collector::constant(const Tensor &tensor, const Where &where) {
  tensor.body(where);
  if (tensor.symbolic())
    raiseNoElements("save", tensor, where);
  const TensorState &state = *stateOf(tensor);
  const void *memory = state.buffer.data();
  bool shared = memory && runtime::Array{state.type, state.buffer}.numBytes() > 0;
  auto number = static_cast<uint32_t>(snapshot_->constants.size());
  if (shared) {
    auto [at, fresh] = constantOf_.try_emplace({memory, toString(state.type)}, number);
    if (!fresh)
      return at->second;
  }
  snapshot_->constants.push_back(tensor);
  manifest_.constants.push_back(state.type);
  return number;
}

uint32_t Collector::function(const std::shared_ptr<ConcreteState> &concrete, bool isUsers, const Where &where) {
  auto [at, fresh] = functionOf_.try_emplace(concrete.get(), static_cast<uint32_t>(snapshot_->functions.size()));
  if (fresh) {
    snapshot_->functions.push_back(concrete);
    ManifestFunction made;
    made.name = concrete->name;
    made.entry = concrete->code->entry();
    made.interpret = concrete->code->interpreted();
    for (const TraceInput &input : concrete->inputs)
      if (input.kind == TraceInput::argument)
        made.inputs.push_back({ManifestInput::argument, input.leaf});
      else if (input.kind == TraceInput::capture)
        made.inputs.push_back({ManifestInput::constant, constant(input.captured, where)});
      else if (input.formal)
        made.inputs.push_back({ManifestInput::formal, input.leaf});
      else if (input.state->isOrder)
        made.inputs.push_back({ManifestInput::order, 0});
      else
        made.inputs.push_back({ManifestInput::variable, variable(input.state, where)});
    made.assigned = concrete->assigned;
    made.numResults = concrete->numResults;
    made.inputNames = concrete->code->names();
    made.inputNames.resize(made.inputs.size());
    const LeafVariables &leaves = concrete->variablesOf;
    made.aliasOf = leaves.aliasOf;
    made.placeOf = leaves.placeOf;
    auto numberOf = [&](int64_t id) {
      auto known = variableOf_.find(id);
      if (id >= 0 && known == variableOf_.end())
        refuse("'" + concrete->name + "' was traced for an argument that is a variable which it names as well",
               "save that variable, too: {\"w\", w}", where);
      return id < 0 ? int64_t(-1) : int64_t(known->second);
    };
    for (int64_t id : leaves.capturedIds)
      made.capturedLeaves.push_back(numberOf(id));
    made.capturedPlaces.assign(leaves.capturedPlaces.begin(), leaves.capturedPlaces.end());
    // Of a function without a signature: as many arguments as its inputs name.
    size_t numLeaves = leaves.aliasOf.size();
    for (const ManifestInput &input : made.inputs)
      if (input.kind == ManifestInput::argument || input.kind == ManifestInput::formal)
        numLeaves = std::max<size_t>(numLeaves, input.index + 1);
    for (size_t i = made.aliasOf.size(); i < numLeaves; ++i) {
      made.aliasOf.push_back(static_cast<uint32_t>(i));
      made.placeOf.push_back(static_cast<uint32_t>(i));
      made.capturedLeaves.push_back(-1);
      made.capturedPlaces.push_back(false);
    }
    for (int64_t id : concrete->captured)
      made.captured.push_back(static_cast<uint32_t>(numberOf(id)));
    std::sort(made.captured.begin(), made.captured.end());
    made.reason = concrete->reason;
    made.numOps = concrete->numOps;
    for (const DroppedGradient &dropped : concrete->certificate())
      made.certificate.push_back({dropped.op, dropped.operand, dropped.where, dropped.reason});
    manifest_.functions.push_back(std::move(made));
  }
  ManifestFunction &made = manifest_.functions[at->second];
  if (isUsers && !made.isUsers) {
    made.isUsers = true;
    made.arguments = concrete->words.empty() ? wordsOf(concrete->key) : concrete->words;
    if (concrete->describePrototype && concrete->prototype) {
      TreeWriter writer;
      concrete->describePrototype(concrete->prototype.get(), writer);
      made.results = std::move(writer.words);
    } else if (!concrete->resultWords.empty()) {
      made.results = concrete->resultWords;
    } else {
      made.results.assign(concrete->numResults, TreeWord{.kind = TreeWord::tensor});
    }
    size_t next = 0;
    for (TreeWord &word : made.results)
      if (word.kind == TreeWord::tensor)
        word.type = concrete->code->results()[next++];
      else
        next += word.kind == TreeWord::gradient ? 1 : word.kind == TreeWord::rows ? 2 : 0;
  }
  return at->second;
}

void Collector::functionItem(const SaveItem &item, ManifestItem &made) {
  FunctionState &state = *item.content.function;
  std::vector<std::pair<int64_t, std::shared_ptr<ConcreteState>>> traces;
  {
    std::lock_guard lock(state.mutex);
    for (const auto &[hash, entry] : state.entries)
      if (entry->concrete && !entry->alias && !entry->concrete->boundTo)
        traces.emplace_back(entry->number, entry->concrete);
    for (const SavedTrace &saved : state.saved)
      if (std::none_of(traces.begin(), traces.end(), [&](const auto &each) { return each.second == saved.concrete; }))
        traces.emplace_back(saved.number, saved.concrete);
  }
  if (traces.empty())
    refuse("'" + item.name + "' (" + state.name + ") was never traced: there is nothing to save",
           "call it, or trace it: f.trace(wg::TensorSpec{wg::f32, {wg::dynamic, 784}})", item.where);
  std::sort(traces.begin(), traces.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  made.kind = ManifestItem::Kind::function;
  made.interpret = state.options.interpret;
  made.recompute = state.options.recompute;
  made.capacity = state.options.capacity;
  made.argumentNames = state.options.argument_names;
  for (const auto &[number, concrete] : traces)
    made.functions.push_back(function(concrete, /*isUsers=*/true, item.where));
}

void Collector::concreteItem(const SaveItem &item, ManifestItem &made) {
  const std::shared_ptr<ConcreteState> &concrete = item.content.concrete;
  if (!concrete)
    refuse("'" + item.name + "' is a concrete function that was moved from", "save what it was moved to", item.where);
  if (concrete->boundTo)
    refuse("'" + item.name + "' captures tensors of the function in which it was traced",
           "save the function around it, or pass these tensors", item.where);
  made.kind = ManifestItem::Kind::function;
  made.interpret = concrete->code->interpreted();
  made.functions.push_back(function(concrete, /*isUsers=*/true, item.where));
}

void Collector::valueItem(const SaveItem &item, ManifestItem &made) {
  const TreeWriter &tree = item.content.tree;
  made.words = tree.words;
  for (size_t i = 0; i < tree.variables.size(); ++i) {
    const Variable &each = tree.variables[i];
    made.ofValue.push_back(variable(
        each.state(), tree.variables.size() == 1 ? item.name : item.name + "." + std::to_string(i), item.where));
  }
  for (const Tensor &tensor : tree.tensors) {
    tensor.body(item.where);
    int32_t slot = union_.tape.slotOf.find(stateOf(tensor)->id);
    made.tensors.push_back(slot >= 0 ? ManifestTensor{true, static_cast<uint32_t>(slot)} // its value is known later
                                     : ManifestTensor{false, constant(tensor, item.where)});
  }
}

/// What the tapes called, and the variables that they watch.
void Collector::collectCalls() {
  ManifestTapes &tapes = *manifest_.tapes;
  TapeOps ops;
  for (const RecordedCall &call : union_.tape.calls) {
    const Record &record = union_.tape.records[call.record];
    ManifestTapes::Call made;
    made.numResults = call.numResults;
    made.isRule = call.rule != nullptr;
    if (call.rule) {
      TracedRuleFunctions traced = traceRuleOf(union_.tape, record, *call.rule);
      made.function = function(traced.vjp, /*isUsers=*/false, record.where);
      made.rule = call.rule->name;
      made.transposes = call.rule->transposes;
      made.jvp = traced.jvp ? int64_t(function(traced.jvp, /*isUsers=*/false, record.where)) : -1;
    } else {
      if (std::any_of(call.callee->inputs.begin(), call.callee->inputs.end(), [](const TraceInput &input) {
            return input.kind == TraceInput::variable && input.state->isOrder;
          }))
        refuse("the tape holds a call of " + call.callee->name +
                   ", which prints, checks or calls back, and that has its place in the order of this process",
               "save the tape without it", record.where);
      if (!ops.add(*call.callee, call.derivative->asked))
        refuse("the calls on the tapes are more than " + std::to_string(TapeOps::kMost) +
                   " ops, each function counted once for each call of it and each set of inputs",
               "save the function, or save the tapes one by one", record.where);
      made.function = function(call.callee, /*isUsers=*/false, record.where);
      made.asked = call.derivative->asked;
      made.forward = forwardDigest(*call.derivative, record.where);
    }
    tapes.calls.push_back(std::move(made));
  }
  for (const std::shared_ptr<Tape> &tape : tapes_)
    for (const Tape::WatchedVariable &watched : tape->variables)
      variable(watched.variable, where_);
}

/// The values of all variables at one moment: all are locked.
void Collector::readVariables() {
  std::vector<const VariableState *> order;
  for (const auto &state : states_)
    order.push_back(state.get());
  std::sort(order.begin(), order.end(), [](const auto *a, const auto *b) { return a->id < b->id; });
  std::vector<std::shared_lock<std::shared_mutex>> locks;
  locks.reserve(order.size());
  for (const VariableState *state : order)
    locks.emplace_back(state->mutex);
  for (const auto &state : states_)
    snapshot_->variables.push_back(state->current);
}

void Collector::writeTapes() {
  ManifestTapes &tapes = *manifest_.tapes;
  const EagerTape &all = union_.tape;
  WrittenTape written = writeTape(all, where_);
  Requirements needed;
  snapshot_->tapes = programText(*written.module, needed, where_);
  tapes.entry = written.entry;
  tapes.members = union_.members;
  // Values by slot: leaves first, then what records make.
  std::vector<int64_t> valueOf(all.values.size(), -1);
  std::map<const TensorState *, uint32_t> current;
  for (uint32_t i = 0; i < snapshot_->variables.size(); ++i)
    current.emplace(stateOf(snapshot_->variables[i]), i);
  auto leaf = [&](int32_t slot) {
    const Tensor &tensor = all.values[static_cast<size_t>(slot)];
    auto known = current.find(stateOf(tensor));
    valueOf[static_cast<size_t>(slot)] = static_cast<int64_t>(tapes.leaves.size());
    tapes.leaves.push_back(known != current.end() ? ManifestTapes::Leaf{true, known->second}
                                                  : ManifestTapes::Leaf{false, constant(tensor, where_)});
  };
  for (int32_t slot : written.leaves)
    leaf(slot);
  size_t numArguments = tapes.leaves.size();
  std::vector<bool> made(all.values.size(), false);
  for (const Record &record : all.records)
    for (uint32_t k = 0; k < record.numResults; ++k)
      made[static_cast<size_t>(all.slots[record.first + record.numOperands + k])] = true;
  // What is watched and was not used yet is a leaf as well; the program's arguments come first.
  for (size_t slot = 0; slot < all.values.size(); ++slot)
    if (!made[slot] && valueOf[slot] < 0)
      leaf(static_cast<int32_t>(slot));
  tapes.numArguments = static_cast<uint32_t>(numArguments);
  auto next = static_cast<int64_t>(tapes.leaves.size());
  for (const Record &record : all.records)
    for (uint32_t k = 0; k < record.numResults; ++k) {
      auto slot = static_cast<size_t>(all.slots[record.first + record.numOperands + k]);
      valueOf[slot] = next++;
      tapes.values.push_back(constant(all.values[slot], record.where));
    }

  for (const std::shared_ptr<Tape> &tape : tapes_) {
    ManifestTapes::Tape made;
    made.persistent = tape->options.persistent;
    made.watchAccessed = tape->options.watch_accessed_variables;
    made.allowNonDifferentiable = tape->options.allow_non_differentiable;
    made.recording = tape->recording;
    auto valueOfTensor = [&](const Tensor &tensor) {
      return static_cast<uint32_t>(valueOf[static_cast<size_t>(all.slotOf.find(stateOf(tensor)->id))]);
    };
    std::vector<bool> isMade(tape->eager.values.size(), false);
    for (const Record &record : tape->eager.records)
      for (uint32_t k = 0; k < record.numResults; ++k)
        isMade[static_cast<size_t>(tape->eager.slots[record.first + record.numOperands + k])] = true;
    for (size_t slot = 0; slot < isMade.size(); ++slot)
      if (tape->eager.tracked[slot] && !isMade[slot])
        made.watched.push_back(valueOfTensor(tape->eager.values[slot]));
    for (const Tape::WatchedVariable &watched : tape->variables) {
      ManifestTapes::Tape::Watched each{variableOf_.at(variableBehind(watched.variable)->id), {}};
      for (const Tensor &read : watched.reads)
        each.reads.push_back(valueOfTensor(read));
      made.variables.push_back(std::move(each));
    }
    tapes.tapes.push_back(std::move(made));
  }
  for (ManifestItem &item : manifest_.items)
    for (ManifestTensor &tensor : item.tensors)
      if (tensor.onTape)
        tensor.index = static_cast<uint32_t>(valueOf[tensor.index]);
}

std::shared_ptr<Snapshot> Collector::collect() {
  std::map<std::string, const SaveItem *> names;
  for (const SaveItem &item : items_) {
    checkName(item.name, "an item", item.where);
    if (!names.emplace(item.name, &item).second)
      refuse("two items are named '" + item.name + "'", "give each its own name", item.where);
    if (item.content.kind != SaveContent::Kind::tape)
      continue;
    Tape &tape = *item.content.tape;
    if (tape.traced)
      refuse("'" + item.name + "' is a tape of a traced function", "save the function", item.where);
    tape.checkLevel("save", item.where);
    if (tape.isAccumulator || (tape.used && !tape.options.persistent))
      refuse("'" + item.name + "' is a tape that has been asked for its gradient, and holds nothing any more",
             "save it before, or make it persistent", item.where);
    for (const Tape::WatchedVariable &watched : tape.variables)
      if (watched.variable->of)
        refuse("'" + item.name + "' is a tape inside of a derivative by places of one variable",
               "save it outside of value_and_grad", item.where);
    tapes_.push_back(item.content.tape);
  }
  if (!tapes_.empty()) {
    manifest_.tapes.emplace();
    union_ = unionOf(tapes_);
  }
  // What has a name first: it keeps it.
  std::vector<ManifestItem> made(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    const SaveItem &item = items_[i];
    made[i].name = item.name;
    if (item.content.kind == SaveContent::Kind::variables) {
      made[i].kind = ManifestItem::Kind::variables;
      for (const auto &[name, each] : item.content.variables) {
        each.dtype(item.where); // defined
        made[i].named.emplace_back(
            name, variable(each.state(), name.empty() ? item.name : item.name + "." + name, item.where));
      }
    } else if (item.content.kind == SaveContent::Kind::value) {
      valueItem(item, made[i]);
    }
  }
  uint32_t tape = 0;
  for (size_t i = 0; i < items_.size(); ++i)
    switch (items_[i].content.kind) {
    case SaveContent::Kind::function: functionItem(items_[i], made[i]); break;
    case SaveContent::Kind::concrete: concreteItem(items_[i], made[i]); break;
    case SaveContent::Kind::tape:
      made[i].kind = ManifestItem::Kind::tape;
      made[i].tape = tape++;
      break;
    case SaveContent::Kind::dataset: {
      data::Position position = items_[i].content.dataset->position();
      made[i].kind = ManifestItem::Kind::position;
      made[i].position = {position.epoch, position.batch};
      break;
    }
    case SaveContent::Kind::value:
    case SaveContent::Kind::variables: break;
    }
  manifest_.items = std::move(made);
  if (manifest_.tapes)
    collectCalls();
  readVariables();
  if (manifest_.tapes)
    writeTapes();
  return snapshot_;
}

std::shared_ptr<const Snapshot> takeSnapshot(const SaveItems &items, const SaveOptions &options, const Where &where) {
  refuseTraces("save", where);
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("save", where, [&] { return takeSnapshot(items, options, where); });
  ir::Working working;
  return Collector(items, options, where).collect();
}

} // namespace detail
} // namespace wg
