// Recording: what a tape watches, and the Wengert list that it writes in eager code. Differentiating it is
// Gradient.cpp.
#include "frontend/staging/Tape.h"

#include "frontend/staging/Trace.h"

#include <algorithm>
#include <mutex>

namespace wg {

const GradientOptions &GradientTape::defaults() {
  static const GradientOptions options;
  return options;
}

namespace detail {

using runtime::Attrs;
using runtime::OpId;

void IdMap::grow() {
  std::vector<Entry> before(std::max<size_t>(32, entries_.size() * 4));
  before.swap(entries_);
  for (const Entry &entry : before)
    if (entry.id) {
      size_t i = place(entry.id);
      while (entries_[i].id != 0)
        i = (i + 1) & (entries_.size() - 1);
      entries_[i] = entry;
    }
}

//===- Whose a tape is --------------------------------------------------------------------------------------------===//

/// Guards the ends of levels against handles that die on other threads.
static constinit std::mutex endings;

void dropTape(Tape *tape) {
  if (tape->maker != std::this_thread::get_id()) {
    std::lock_guard lock(endings);
    if (tape->home()) { // its thread may be looking at it: that one frees it
      tape->recording = false;
      try {
        tape->home()->dropped.push_back(tape);
        tape->home()->someDropped = true;
      } catch (const std::bad_alloc &) { // without a place on the list it stays, stopped, until the process ends
      }
      return;
    }
  }
  delete tape;
}

void Level::bury() {
  std::vector<Tape *> dead;
  {
    std::lock_guard lock(endings);
    dead.swap(dropped);
    someDropped = false;
  }
  for (Tape *tape : dead)
    delete tape;
}

void Level::end() {
  bury();
  std::vector<Tape *> dead;
  std::lock_guard lock(endings);
  dead.swap(dropped);
  for (Tape *tape : tapes) {
    tape->leave();
    tape->recording = false;
  }
  tapes = std::vector<Tape *>();
  for (Tape *tape : dead)
    delete tape;
}

Tape::Tape(const GradientTapeOptions &options) : options(options), home_(&level()) {
  if (home()->someDropped)
    home()->bury();
  if (home()->trace)
    traced = std::make_unique<TracedTape>();
  home()->tapes.push_back(this);
}

Tape::~Tape() {
  if (!home())
    return;
  std::erase(home()->tapes, this);
  if (home()->ended)
    home()->tapes.shrink_to_fit();
}

void Tape::checkLevel(const char *what, const Where &where) const {
  if (home() == &level())
    return;
  if (!home())
    raiseOp(what, "the tape is out of scope: the traced function (or the thread) that made it has ended",
            "ask it before that", {}, where, ErrorKind::runtime);
  raiseOp(what,
          thread != std::this_thread::get_id() ? "the tape belongs to another thread"
          : traced                             ? "the tape belongs to another traced function"
                                               : "the tape belongs to eager code, and a function is being traced",
          "make the tape where it is used", {}, where, ErrorKind::runtime);
}

//===- Watching ---------------------------------------------------------------------------------------------------===//

/// Room for `more` elements; capacities grow as a vector's own do.
template <class T> static void makeRoom(std::vector<T> &list, size_t more) {
  if (list.capacity() - list.size() < more)
    list.reserve(std::max(list.size() + more, 2 * list.capacity()));
}

void Tape::reserve(size_t numTensors, bool call) {
  eager.slotOf.reserve(numTensors);
  makeRoom(eager.values, numTensors);
  makeRoom(eager.tracked, numTensors);
  makeRoom(eager.slots, numTensors);
  makeRoom(eager.records, 1);
  if (call)
    makeRoom(eager.calls, 1);
}

/// The slot of a tensor, made if there is none; there is room for it.
int32_t Tape::slotFor(const Tensor &tensor, bool tracked) {
  const TensorState *state = stateOf(tensor);
  int32_t slot = eager.slotOf.find(state->id);
  if (slot < 0) {
    slot = static_cast<int32_t>(eager.values.size());
    eager.slotOf.insert(state->id, slot);
    eager.values.push_back(tensor);
    eager.tracked.push_back(tracked);
    eager.hash.mix(0x10 | static_cast<uint64_t>(tracked) << 8 | static_cast<uint64_t>(state->type.dtype) << 16 |
                   state->type.shape.size() << 24);
    for (int64_t size : state->type.shape)
      eager.hash.mix(static_cast<uint64_t>(size));
  } else if (tracked && !eager.tracked[static_cast<size_t>(slot)]) {
    eager.tracked[static_cast<size_t>(slot)] = true;
    eager.hash.mix(0x11 | static_cast<uint64_t>(slot) << 8);
  }
  return slot;
}

void Tape::watch(const Tensor &tensor, const Where &where) {
  const TensorType &type = tensor.body(where)->type;
  if (!runtime::isFloat(type.dtype)) {
    if (!options.allow_non_differentiable)
      raiseOp("watch", "the dtype of a watched tensor must be floating, got " + toString(type),
              "cast it first: cast(x, f32), or set allow_non_differentiable", {type}, where, ErrorKind::type);
    return;
  }
  if (traced)
    traced->values.insert(home()->trace->valueOf(tensor, "watch", where));
  else if (tensor.symbolic())
    raiseOutOfScope("watch", tensor, where);
  else {
    reserve(1);
    uint64_t now = stateOf(makeTensor(runtime::Array()))->id;
    watchedTensors.push_back({slotFor(tensor, true), now, where});
  }
}

static Tape::WatchedVariable &entryOf(std::vector<Tape::WatchedVariable> &variables,
                                      const std::shared_ptr<VariableState> &variable) {
  auto at = std::lower_bound(variables.begin(), variables.end(), variable->id,
                             [](const Tape::WatchedVariable &entry, int64_t id) { return entry.variable->id < id; });
  while (at != variables.end() && at->variable->id == variable->id && !isSamePlace(*at->variable, *variable))
    ++at;
  if (at == variables.end() || at->variable->id != variable->id)
    at = variables.insert(at, {variable, {}});
  return *at;
}

/// A watched variable was read: its present value is a leaf.
void Tape::variableRead(const std::shared_ptr<VariableState> &variable, const Tensor &value) {
  if (traced) {
    // The trace's value of a variable is one tensor until it is assigned.
    mlir::Value place = home()->trace->valueOf(value, "variable", {});
    if (traced->values.contains(place))
      return;
  } else if (tracks(value)) {
    return;
  }
  bool known = std::any_of(variables.begin(), variables.end(),
                           [&](const WatchedVariable &entry) { return isSamePlace(*entry.variable, *variable); });
  if (!known && !(options.watch_accessed_variables && variable->trainable && !variable->of))
    return;
  if (!runtime::isFloat(variable->type.dtype))
    return;
  if (!traced)
    reserve(1);
  entryOf(variables, variable).reads.push_back(value);
  if (traced)
    traced->values.insert(home()->trace->valueOf(value, "variable", {}));
  else
    slotFor(value, true);
}

void Tape::watch(const Variable &handle, const Where &where) {
  const std::shared_ptr<VariableState> &variable = variableBehind(handle.state());
  Tensor value = currentValue(variable, where);
  if (!runtime::isFloat(variable->type.dtype) && !options.allow_non_differentiable)
    raiseOp("watch",
            "the dtype of a watched variable must be floating, and " + describe(*variable) + " is " +
                toString(variable->type),
            "watch a float variable, or set allow_non_differentiable", {variable->type}, where, ErrorKind::type);
  entryOf(variables, variable);
  variableRead(variable, value); // a read that no other tape is told of
}

Variable Tape::placeOf(const Variable &variable) {
  const std::shared_ptr<VariableState> &of = variable.state();
  auto place = std::make_shared<VariableState>();
  place->type = of->type;
  place->name = of->name;
  place->trainable = of->trainable;
  place->id = of->id;
  place->of = of;
  entryOf(variables, place);
  return Variable(place);
}

void Tape::reset(const Where &where) {
  if (differentiating)
    raiseOp("reset", "the tape is computing a gradient, and a gradient hook asks it to forget what it holds",
            "reset the tape when the gradient is there", {}, where, ErrorKind::runtime);
  variables.clear();
  watchedTensors.clear();
  stoppedAt = Where();
  eager = EagerTape();
  if (traced)
    traced = std::make_unique<TracedTape>();
  if (std::exchange(used, false) && !options.persistent)
    recording = endedRecording; // as before the gradient that used it up
}

void Tape::forgetRecords() {
  eager = EagerTape();
  for (WatchedVariable &entry : variables)
    entry.reads.clear(); // an optimiser may change the variable in its own memory
  if (traced)
    *traced = TracedTape();
}

//===- Recording --------------------------------------------------------------------------------------------------===//

/// The row of an op whose results and residuals are new tensors; nothing here fails, as there is room.
void Tape::addRecord(OpId op, const Attrs &attrs, std::span<const Tensor *const> operands,
                     std::span<const Tensor> results, std::span<const Tensor> residuals, const Where &where) {
  Record record{.op = op,
                .numResults = static_cast<uint16_t>(results.size() + residuals.size()),
                .numOperands = static_cast<uint32_t>(operands.size()),
                .first = static_cast<uint32_t>(eager.slots.size()),
                .call = -1,
                .attrs = attrs,
                .where = where};
  StructureHash &hash = eager.hash;
  for (const Tensor *operand : operands)
    eager.slots.push_back(slotFor(*operand, false));
  hash.mix(0x12 | static_cast<uint64_t>(op) << 8 | operands.size() << 24 |
           static_cast<uint64_t>(record.numResults) << 40);
  hash.mix(attrs.hash() ^ reinterpret_cast<uint64_t>(where.file));
  hash.mix(static_cast<uint64_t>(where.line) << 32 | where.column);
  for (size_t i = 0; i < operands.size(); ++i)
    hash.mix(static_cast<uint64_t>(eager.slots[record.first + i]));
  // Results are new tensors: their types follow from the op, and need no place in the hash.
  auto add = [&](const Tensor &result, bool tracked) {
    int32_t slot = static_cast<int32_t>(eager.values.size());
    eager.slotOf.insert(stateOf(result)->id, slot);
    eager.values.push_back(result);
    eager.tracked.push_back(tracked);
    eager.slots.push_back(slot);
  };
  for (const Tensor &result : results)
    add(result, true); // integers too: so an empty gradient can say where its path breaks
  for (const Tensor &residual : residuals)
    add(residual, false);
  eager.records.push_back(std::move(record));
}

void Tape::record(OpId op, const Attrs &attrs, std::span<const Tensor *const> operands, std::span<const Tensor> results,
                  const Where &where) {
  reserve(operands.size() + results.size());
  addRecord(op, attrs, operands, results, {}, where);
}

void Tape::recordCall(RecordedCall call, std::span<const Tensor *const> operands, std::span<const Tensor> results,
                      std::span<const Tensor> residuals, const Where &where) {
  reserve(operands.size() + results.size() + residuals.size(), /*call=*/true);
  eager.hash.mix(call.serial);
  addRecord(OpId::call, {}, operands, results, residuals, where);
  eager.records.back().call = static_cast<int32_t>(eager.calls.size());
  eager.calls.push_back(std::move(call));
  eager.calls.back().record = eager.records.size() - 1;
}

void Tape::recordRule(const std::shared_ptr<const GradientRule> &rule, std::span<const Tensor *const> operands,
                      std::span<const Tensor> results) {
  // One number for all rules: a program calls the rule of the tape that it runs for.
  recordCall({.callee = nullptr,
              .derivative = nullptr,
              .serial = 0,
              .numResults = static_cast<uint32_t>(results.size()),
              .rule = rule},
             operands, results, {}, rule->where);
}

} // namespace detail

//===- The public class -------------------------------------------------------------------------------------------===//

using detail::raiseOp;

GradientTape::GradientTape(GradientTapeOptions options) : tape_(new detail::Tape(options), detail::dropTape) {
  tape_->recording = options.recording;
}

Variable detail::placeOf(GradientTape &tape, const Variable &variable, const Where &where) {
  variable.dtype(where); // defined
  return tape.tape(where).placeOf(variable);
}

std::shared_ptr<detail::Tape> detail::stateOf(const GradientTape &tape, const Where &where) {
  tape.tape(where); // an error if it was moved from
  return tape.tape_;
}

GradientTape::~GradientTape() {
  if (tape_)
    tape_->recording = false;
}

detail::Tape &GradientTape::tape(const Where &where) const {
  if (!tape_)
    raiseOp("tape", "the tape was moved from, and holds nothing", "use the tape that it was moved to", {}, where,
            ErrorKind::runtime);
  return *tape_;
}

detail::Recording GradientTape::record(Where where) {
  if (tape(where).recording)
    raiseOp("record", "Tape is still recording, This can happen if you try to re-enter an already-active tape.",
            "end the other recording first", {}, where);
  tape_->checkLevel("record", where);
  tape_->recording = true;
  return detail::Recording(tape_, false);
}

void detail::Tape::enterAgain() {
  std::vector<Tape *> &tapes = home()->tapes;
  auto at = std::find(tapes.begin(), tapes.end(), this);
  std::rotate(at, at + 1, tapes.end());
}

detail::Recording GradientTape::stop_recording(Where where) {
  if (!tape(where).recording)
    raiseOp("stop_recording", "Trying to stop recording a tape which is not recording.",
            "record first: auto scope = tape.record();", {}, where, ErrorKind::runtime);
  tape_->recording = false;
  tape_->stoppedAt = where;
  return detail::Recording(tape_, true);
}

detail::Recording::~Recording() {
  if (tape_)
    tape_->recording = before_ && (!tape_->used || tape_->options.persistent);
}

void GradientTape::stop(Where where) {
  tape(where).recording = false;
  tape_->stoppedAt = where;
}
void GradientTape::reset(Where where) { tape(where).reset(where); }
bool GradientTape::recording(Where where) const { return tape(where).recording; }

std::vector<Variable> GradientTape::watched_variables(Where where) const {
  std::vector<Variable> list;
  for (const auto &entry : tape(where).variables)
    list.emplace_back(entry.variable);
  return list;
}

int64_t GradientTape::size(Where where) const {
  const detail::Tape &of = tape(where);
  return static_cast<int64_t>(of.traced ? of.traced->ops.size() : of.eager.records.size());
}

void GradientTape::watchAll(const std::vector<detail::Source> &sources, const Where &where) {
  for (const detail::Source &source : sources) {
    tape(where).checkLevel("watch", where);
    if (source.variable.defined())
      tape_->watch(source.variable, where);
    else
      tape_->watch(source.tensor, where);
  }
}

std::vector<Grad> GradientTape::gradientAll(const Targets &targets, const std::vector<detail::Source> &sources,
                                            const GradientOptions &options) {
  std::shared_ptr<detail::Tape> alive = tape_; // a gradient hook may end this tape
  return tape(targets.where).gradient(targets, sources, options);
}

std::string GradientTape::explainAll(const Targets &targets, const std::vector<detail::Source> &sources) {
  return tape(targets.where).explain(targets, sources);
}

void Grad::raiseEmpty(const Where &where) const {
  // What to do follows from the cause.
  static constexpr struct {
    const char *cause, *remedy;
  } kRemedies[] = {
      {"not watched", "watch it before it is used: tape.watch(x)"},
      {"watched too late", "watch it before it is used: tape.watch(x)"},
      {"integer dtype", "make it a float before it is used: cast(x, f32)"},
      {"not asked for", "name it as well"},
      {"the source is undefined", "give the source a value before the tape records"},
      {"the source is a", "ask for tensors and variables only"},
  };
  const char *remedy =
      "test it first: if (g) ..., or ask with .unconnected = Unconnected::zero; before the gradient, or on a "
      "persistent tape, tape.explain(y, x) says where the path ends";
  for (const auto &[cause, typical] : kRemedies)
    if (reason_.starts_with(cause)) {
      remedy = typical;
      break;
    }
  raiseOp("gradient", "the gradient is None: " + (reason_.empty() ? "it was never computed" : reason_), remedy, {},
          where);
}

} // namespace wg
