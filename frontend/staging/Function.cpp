// wg::function: one trace for each signature, and what a call does at each level: runs, is recorded, or is traced
// itself.
#include "frontend/staging/Function.h"

#include "codegen/Names.h"
#include "frontend/staging/Shards.h"

#include "mlir/IR/Verifier.h"

#include <wengert/nn/Functional.h>

#include <algorithm>
#include <mutex>

using namespace mlir;

namespace wg {

namespace detail {

using runtime::Array;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static constinit std::atomic<bool> runEagerly = false;
bool functionsRunEagerly(const FunctionState &function) {
  if (!level().trace) [[likely]]
    return runEagerly.load(std::memory_order_relaxed);
  return inShard() && !function.isSaved; // its tapes sum over shards
}

//===- Tracing ----------------------------------------------------------------------------------------------------===//

namespace {

/// Hands placeholders to the body of a trace and takes its results.
class Frame final : public TraceFrame {
public:
  Frame(Trace &trace, const Arguments &arguments) : trace_(trace), arguments_(arguments) {}

  void place(Tensor &leaf) override { leaf = trace_.placeholder(leaf.body()->type, next_++, arguments_.where); }
  /// Variables that are the same one are one formal parameter, unless a derivative tells their places apart.
  void place(Variable &leaf) override {
    uint32_t place = next_++;
    for (auto &[actual, formal] : formals_)
      if (isSameArgument(actual, leaf)) {
        leaf = formal;
        return;
      }
    Variable formal = trace_.formal(leaf, leaf.state()->type, place, arguments_.where);
    formals_.emplace_back(leaf, formal);
    leaf = formal;
  }
  void result(const Tensor &tensor) override { results.push_back(tensor); }

  std::vector<Tensor> results;

private:
  Trace &trace_;
  const Arguments &arguments_;
  uint32_t next_ = 0;
  std::vector<std::pair<Variable, Variable>> formals_;
};

} // namespace

std::string symbolOf(const std::string &name) { return codegen::safeName(name); }

/// How many functions may be traced within one another: some kilobytes of a thread's stack each.
static constexpr int kDeepest = 300;
namespace {
/// Counts the traces that this thread is in.
struct Nested {
  static constinit thread_local int depth;
  Nested() { ++depth; }
  Nested(const Nested &) = delete;
  ~Nested() { --depth; }
};
constinit thread_local int Nested::depth = 0;
} // namespace

/// The id of a leaf that is a captured variable, -1 of any other.
static int64_t capturedId(const Arguments::Leaf &leaf, std::span<const int64_t> captured) {
  if (!leaf.variable)
    return -1;
  int64_t id = leaf.variable->id();
  return std::find(captured.begin(), captured.end(), id) == captured.end() ? -1 : id;
}

/// Whether a leaf is a place of a derivative whose variable is captured too: the place counts on its own.
static bool capturedPlace(const Arguments::Leaf &leaf, std::span<const int64_t> captured) {
  return capturedId(leaf, captured) >= 0 && countsAlone(*leaf.variable->state());
}

/// Whether a trace for these dtypes, shapes and aliases serves these variables: one in which an argument is captured as
/// well serves no other variable in its place, and no other trace serves that one.
static bool serves(const ConcreteState &concrete, const Arguments &arguments) {
  for (size_t i = 0; i < arguments.leaves.size(); ++i)
    if (arguments.leaves[i].variable &&
        (capturedId(arguments.leaves[i], concrete.captured) != concrete.variablesOf.capturedIds[i] ||
         capturedPlace(arguments.leaves[i], concrete.captured) != concrete.variablesOf.capturedPlaces[i]))
      return false;
  return true;
}

LeafVariables describeVariables(std::span<const Arguments::Leaf> leaves, std::span<const int64_t> captured) {
  LeafVariables described;
  for (uint32_t i = 0; i < leaves.size(); ++i) {
    uint32_t alias = i, place = i;
    for (uint32_t k = i; k-- > 0;)
      if (leaves[i].variable && leaves[k].variable && leaves[k].variable->is(*leaves[i].variable)) {
        alias = k;
        if (isSameArgument(*leaves[k].variable, *leaves[i].variable))
          place = k;
      }
    described.aliasOf.push_back(alias);
    described.placeOf.push_back(place);
    described.capturedIds.push_back(capturedId(leaves[i], captured));
    described.capturedPlaces.push_back(capturedPlace(leaves[i], captured));
  }
  return described;
}

std::shared_ptr<ConcreteState> describeTrace(Trace &trace, const TraceFrame &frame, const std::string &name,
                                             size_t numResults, const Arguments &arguments) {
  auto concrete = std::make_shared<ConcreteState>();
  concrete->name = name;
  concrete->calledAt = arguments.where;
  concrete->inputs = trace.inputs();
  concrete->assigned = trace.assigned();
  concrete->numResults = static_cast<uint32_t>(numResults);
  concrete->prototype = frame.prototype;
  concrete->describePrototype = frame.describePrototype;
  concrete->setCertificate(std::move(trace.certificate));
  concrete->numOps = trace.numOps;
  if (trace.bound)
    concrete->boundTo = trace.outer()->id();
  for (const TraceInput &input : concrete->inputs)
    if (input.kind == TraceInput::variable && !input.formal && !input.state->isOrder)
      concrete->variables.push_back(input.state);
  std::sort(concrete->variables.begin(), concrete->variables.end(),
            [](const auto &a, const auto &b) { return a->id < b->id; });
  concrete->captured = trace.capturedArguments;
  for (const auto &variable : concrete->variables)
    concrete->captured.push_back(variable->id);
  concrete->variablesOf = describeVariables({arguments.leaves.begin(), arguments.leaves.size()}, concrete->captured);
  return concrete;
}

std::shared_ptr<ConcreteState> FunctionState::trace(Arguments &arguments, Body body, std::string reason) {
  auto begin = Clock::now();
  if (Nested::depth == kDeepest)
    raiseOp(name.c_str(),
            "this call is traced inside of " + std::to_string(kDeepest) + " others, and no more are allowed",
            "end the recursion: stop calling at some value of the static argument, or loop", {},
            arguments.where ? arguments.where : where, ErrorKind::runtime);
  Nested nested;
  std::optional<Trace> made;
  {
    ir::Working working;
    made.emplace(symbolOf(name), level().trace, arguments.where ? arguments.where : where);
  }
  Trace &trace = *made;
  Frame frame(trace, arguments);
  {
    EnterLevel scope(trace.level());
    body.run(body.context, frame);
    trace.finish(frame.results, arguments.where);
  }
  std::shared_ptr<ConcreteState> concrete = describeTrace(trace, frame, name, frame.results.size(), arguments);
  concrete->reason = std::move(reason);
  std::string entry = trace.function().getSymName().str();
  if (options.recompute)
    trace.function()->setAttr(ir::kRecomputeAttr, UnitAttr::get(ir::context()));
  Identities identities = trace.takeIdentities();
  concrete->code =
      std::make_unique<Code>(trace.takeModule(), entry, options.interpret, std::move(identities), options.capacity);
  // What errors call the inputs: as the user does, if there are names. A variable has no open size.
  std::vector<std::string> paths, names;
  if (!options.argument_names.empty())
    for (SignatureLeaf &leaf : leavesOf({arguments.key.begin(), arguments.key.end()}, options))
      if (!leaf.isStatic)
        paths.push_back("argument " + std::move(leaf.path));
  for (const TraceInput &input : concrete->inputs)
    names.push_back(input.kind == TraceInput::capture ? "a captured tensor"
                    : input.leaf < paths.size()       ? paths[input.leaf]
                                                      : "argument " + std::to_string(input.leaf));
  concrete->code->setNames(std::move(names));
  concrete->key.assign(arguments.key.begin(), arguments.key.end());
  concrete->signature = signatureText(name, leavesOf(concrete->key, options),
                                      std::span(concrete->code->results()).first(concrete->numResults));
  concrete->traceSeconds = secondsSince(begin);
  return concrete;
}

//===- The cache --------------------------------------------------------------------------------------------------===//

/// One line for each leaf in which two signatures differ. Leaves of one path are compared in their order.
static std::vector<std::string> differences(std::span<const SignatureLeaf> known, std::span<const SignatureLeaf> now) {
  std::map<std::string, std::vector<std::string>> before;
  for (const SignatureLeaf &leaf : llvm::reverse(known))
    before[leaf.path].push_back(leaf.text);
  std::vector<std::string> lines;
  for (const SignatureLeaf &leaf : now) {
    std::string text = "(absent)";
    if (auto at = before.find(leaf.path); at != before.end() && !at->second.empty()) {
      text = at->second.back();
      at->second.pop_back();
    }
    if (text != leaf.text)
      lines.push_back("\n  " + leaf.path + ": " + text + " -> " + leaf.text);
  }
  for (const auto &[path, texts] : before)
    for (const std::string &text : llvm::reverse(texts))
      lines.push_back("\n  " + path + ": " + text + " -> (absent)");
  return lines;
}

/// What differs from the known signature that is nearest: the fewest leaves.
std::string FunctionState::whyTrace(const Arguments &arguments) const {
  std::span<const uint64_t> key(arguments.key.begin(), arguments.key.size());
  std::vector<SignatureLeaf> now = leavesOf(key, options);
  const Entry *nearest = nullptr;
  std::vector<std::string> fewest;
  size_t known = 0;
  bool unfinished = false;
  for (const auto &[hash, entry] : entries) {
    unfinished |= !entry->concrete;
    if (!entry->concrete || entry->alias)
      continue;
    ++known;
    std::vector<std::string> lines = differences(leavesOf(entry->key, options), now);
    if (!nearest || lines.size() < fewest.size() ||
        (lines.size() == fewest.size() && entry->lastUse > nearest->lastUse)) {
      nearest = entry.get();
      fewest = std::move(lines);
    }
  }
  if (!nearest)
    return unfinished                    ? "no other signature is known; one is being traced"
           : traceCount == 0             ? "the first call"
           : traceCount == tracesCleared ? "the first call after clear_cache"
                                         : "no other signature is kept";
  if (fewest.empty())
    return !serves(*nearest->concrete, arguments)
               ? "the same signature, but not the same of its variables are captured by the function as well"
           : std::equal(key.begin(), key.end(), nearest->key.begin(), nearest->key.end())
               ? "the same signature inside of another traced function, whose tensors it captures"
               : "differs from a known signature in something that prints the same: a nan of other bits, or a "
                 "structure of "
                 "another type";
  std::string text = "differs from the nearest of " + std::to_string(known) +
                     (known == 1 ? " known signature:" : " known signatures:");
  for (const std::string &line : fewest)
    text += line;
  return text;
}

/// Whether a trace for `known`, in which sizes may be `?`, serves a call of `key`; counts the sizes that are `?`.
static bool covers(std::span<const uint64_t> known, std::span<const uint64_t> key, size_t &open) {
  if (known.size() != key.size())
    return false;
  open = 0;
  for (size_t i = 0; i < key.size();) {
    if (known[i] != key[i])
      return false;
    uint64_t head = key[i++];
    auto tag = static_cast<KeyTag>(head & 0xff);
    size_t words = tag == KeyTag::tensor                         ? head >> 40 & 0xff
                   : tag == KeyTag::field                        ? 1
                   : tag == KeyTag::variable                     ? head >> 16 & 0xff
                   : tag == KeyTag::string || tag == KeyTag::key ? ((head >> 8 & 0xffffffff) + 7) / 8
                   : tag == KeyTag::sizes                        ? head >> 8 & 0xffffffff
                   : tag == KeyTag::argument || tag == KeyTag::count || tag == KeyTag::endKey || tag == KeyTag::place
                       ? 0
                       : ((head >> 8 & 0xffffffff) + 7) / 8 + 1;
    for (size_t end = i + words; i < end; ++i) {
      bool isOpen = tag == KeyTag::tensor && known[i] == static_cast<uint64_t>(dynamic);
      open += isOpen;
      if (known[i] != key[i] && !isOpen)
        return false;
    }
  }
  return true;
}

/// The most specific trace with dynamic sizes that serves a call, the oldest among equals; null if there is none.
std::shared_ptr<Entry> FunctionState::findOpen(const Arguments &arguments, uint64_t outer) const {
  std::span<const uint64_t> key(arguments.key.begin(), arguments.key.size());
  std::shared_ptr<Entry> best;
  size_t fewest = SIZE_MAX;
  for (const auto &[hash, entry] : entries) {
    size_t open;
    if (!entry->concrete || entry->alias || (entry->concrete->boundTo && entry->concrete->boundTo != outer) ||
        !covers(entry->key, key, open) || !serves(*entry->concrete, arguments))
      continue;
    if (open < fewest || (open == fewest && entry->number < best->number)) {
      best = entry;
      fewest = open;
    }
  }
  return best;
}

/// Whether the open sizes of a trace can be those of this call: two that it takes to be equal may differ here, where
/// a trace of its own broadcasts.
static bool fitsOpen(const ConcreteState &concrete, const Arguments &arguments) {
  std::vector<TensorType> types;
  for (const TraceInput &input : concrete.inputs)
    types.push_back(input.kind == TraceInput::capture ? input.captured.body()->type
                    : input.kind == TraceInput::variable
                        ? input.state->type
                        : arguments.leaves[input.leaf].tensor->body(arguments.where)->type);
  return concrete.code->fits(types);
}

void FunctionState::evict() {
  latest = nullptr;
  while (static_cast<int64_t>(entries.size()) > std::max<int64_t>(1, options.capacity)) {
    auto oldest = entries.end();
    for (auto at = entries.begin(); at != entries.end(); ++at)
      if (at->second->concrete && (oldest == entries.end() || at->second->lastUse < oldest->second->lastUse))
        oldest = at;
    if (oldest == entries.end())
      return;
    entries.erase(oldest);
  }
}

namespace {

/// Which trace each thread waits for. A thread waits for none whose own thread waits, at once or through others, for a
/// trace of this one: neither would ever end.
class Waiting {
public:
  /// Notes that this thread waits for a trace; false if it must not.
  bool begin(const std::shared_ptr<Entry> &entry) {
    std::lock_guard lock(mutex_);
    for (const Entry *at = entry.get(); !at->ended;) {
      if (at->tracer == std::this_thread::get_id())
        return false;
      auto next = waits_.find(at->tracer);
      if (next == waits_.end())
        break;
      at = next->second.get();
    }
    waits_[std::this_thread::get_id()] = entry;
    return true;
  }
  void end() {
    std::lock_guard lock(mutex_);
    waits_.erase(std::this_thread::get_id());
  }

private:
  std::mutex mutex_;
  std::unordered_map<std::thread::id, std::shared_ptr<Entry>> waits_;
};

Waiting &waiting() {
  static Waiting &theThreads = *new Waiting;
  return theThreads;
}

} // namespace

/// The most specific of the saved traces that serves a call, remembered under its key; an error if there is none.
std::shared_ptr<ConcreteState> FunctionState::findSaved(const Arguments &arguments, uint64_t hash) {
  std::vector<TreeWord> words = wordsOf({arguments.key.begin(), arguments.key.size()});
  const SavedTrace *best = nullptr;
  size_t fewest = SIZE_MAX;
  for (const SavedTrace &each : saved) {
    size_t open;
    if (!covers(each.concrete->words, words, open) || !serves(*each.concrete, arguments) || open >= fewest ||
        (open && !fitsOpen(*each.concrete, arguments)))
      continue;
    best = &each;
    fewest = open;
  }
  if (!best) {
    std::string given;
    for (const SignatureLeaf &leaf : leavesOf(words, options))
      given += (given.empty() ? "" : ", ") + leaf.path + ": " + leaf.text;
    std::string known;
    for (const SavedTrace &each : saved)
      known += "\n  " + each.concrete->signature;
    raiseOp(name.c_str(),
            "no saved trace takes (" + given + "); it has " + counted(static_cast<int64_t>(saved.size()), "trace") +
                ":" + known,
            "call it with arguments of one of these, or trace more before it is saved, with open sizes where they "
            "change",
            {}, arguments.where, ErrorKind::lookup);
  }
  auto entry = std::make_shared<Entry>();
  entry->key.assign(arguments.key.begin(), arguments.key.end());
  entry->concrete = best->concrete;
  entry->number = best->number;
  entry->alias = fewest > 0;
  entry->lastUse = ++clock;
  eraseEntries([&](const Entry &each) { return each.alias && each.key == entry->key; });
  entries.emplace(hash, entry);
  evict();
  return best->concrete;
}

std::shared_ptr<ConcreteState> FunctionState::find(Arguments &arguments, Body body, bool exact) {
  std::span<const uint64_t> key(arguments.key.begin(), arguments.key.size());
  uint64_t outer = level().trace ? level().trace->id() : 0;
  auto isFor = [&](const Entry &known) {
    return !(exact && known.alias) && known.key.size() == key.size() &&
           std::equal(key.begin(), key.end(), known.key.begin()) &&
           (!known.concrete ||
            ((known.concrete->boundTo == 0 || known.concrete->boundTo == outer) && serves(*known.concrete, arguments)));
  };
  auto use = [&](Entry &known) -> const std::shared_ptr<ConcreteState> & {
    known.lastUse = ++clock;
    if (known.open)
      known.open->lastUse = clock; // what serves others outlives them
    return known.concrete;
  };
  std::unique_lock lock(mutex);
  if (latest && isFor(*latest)) [[likely]]
    return use(*latest);
  uint64_t hash = hashOf(key);
  std::shared_ptr<Entry> entry;
  for (;;) {
    entry = nullptr;
    for (auto [at, end] = entries.equal_range(hash); at != end; ++at)
      if (isFor(*at->second)) {
        entry = at->second;
        break;
      }
    if (!entry)
      break;
    if (entry->concrete) {
      latest = entry.get();
      return use(*entry);
    }
    if (entry->tracer == std::this_thread::get_id())
      raiseOp(name.c_str(), "it calls itself with the same signature while it is being traced, which has no end",
              "make the depth depend on a static argument", {}, arguments.where, ErrorKind::runtime);
    if (!waiting().begin(entry))
      raiseOp(name.c_str(),
              "it is being traced by another thread, which waits for a function that this thread is tracing: they call "
              "each other, which has no end",
              "make the depth depend on a static argument", {}, arguments.where, ErrorKind::runtime);
    traced.wait(lock);
    waiting().end();
  }

  // Remembered under this signature too, so that the next such call finds it at once.
  if (std::shared_ptr<Entry> open = exact ? nullptr : findOpen(arguments, outer);
      open && fitsOpen(*open->concrete, arguments)) {
    entry = std::make_shared<Entry>();
    entry->key.assign(key.begin(), key.end());
    entry->concrete = open->concrete;
    entry->alias = true;
    entry->open = open;
    entry->lastUse = open->lastUse = ++clock;
    entries.emplace(hash, entry);
    evict();
    return open->concrete;
  }

  if (isSaved)
    return findSaved(arguments, hash);

  std::string reason = whyTrace(arguments);
  if (int64_t counted = traceCount - tracesCleared; options.max_traces > 0 && counted >= options.max_traces)
    raiseOp(name.c_str(),
            "trace " + std::to_string(counted + 1) + " exceeds max_traces = " + std::to_string(options.max_traces) +
                "; this call " + reason,
            "for sizes that change, trace once before with open ones: f.trace(wg::TensorSpec{wg::f32, {wg::dynamic, "
            "784}}); for numbers that change, pass tensors; or raise max_traces",
            {}, arguments.where, ErrorKind::runtime);
  entry = std::make_shared<Entry>();
  entry->key.assign(key.begin(), key.end());
  entry->tracer = std::this_thread::get_id();
  entry->lastUse = ++clock;
  eraseEntries([&](const Entry &each) { return each.alias && each.key == entry->key; });
  entries.emplace(hash, entry);
  int64_t number = entry->number = ++traceCount;
  lock.unlock();
  std::shared_ptr<ConcreteState> concrete;
  std::string text;
  try {
    concrete = trace(arguments, body, reason);
    std::string calledAt = toString(arguments.where);
    text = "trace " + std::to_string(number) + " of " + name + (calledAt.empty() ? "" : ", called at " + calledAt) +
           ": " + reason + "\n  cost: " + counted(concrete->numOps, "op") + " traced in " +
           milliseconds(concrete->traceSeconds);
  } catch (...) {
    lock.lock();
    eraseEntries([&](const Entry &each) { return &each == entry.get(); });
    entry->ended = true;
    --traceCount;
    traced.notify_all();
    throw;
  }
  lock.lock();
  entry->concrete = concrete;
  entry->ended = true;
  // Calls that a trace with more open sizes has served until now may find this one: the next of each decides anew.
  eraseEntries([&](const Entry &each) {
    size_t open;
    return each.alias && covers(entry->key, each.key, open);
  });
  lastConcrete = concrete;
  lastTrace = std::move(text);
  evict();
  traced.notify_all();
  return concrete;
}

//===- The public face --------------------------------------------------------------------------------------------===//

std::shared_ptr<FunctionState> makeFunction(std::string name, FunctionOptions options, const Where &where) {
  auto refuse = [&](const std::string &message, const char *remedy) {
    raiseOp(name.c_str(), message, remedy, {}, where);
  };
  if (options.capacity < 1)
    refuse("FunctionOptions::capacity is " + std::to_string(options.capacity), "keep at least 1 concrete function");
  if (options.max_traces < 0)
    refuse("FunctionOptions::max_traces is " + std::to_string(options.max_traces), "0 means no limit");
  for (size_t i = 0; i < options.argument_names.size(); ++i)
    if (std::find(options.argument_names.begin(), options.argument_names.begin() + static_cast<std::ptrdiff_t>(i),
                  options.argument_names[i]) != options.argument_names.begin() + static_cast<std::ptrdiff_t>(i))
      refuse("FunctionOptions::argument_names has '" + options.argument_names[i] + "' twice",
             "give each argument a name of its own");
  auto state = std::make_shared<FunctionState>();
  state->name = std::move(name);
  state->options = std::move(options);
  state->where = where;
  return state;
}

void checkInScope(const char *name, const Arguments &arguments, bool specs) {
  auto isOpen = [](uint64_t birth) {
    Trace *trace = level().trace;
    while (trace && trace->id() != birth)
      trace = trace->outer();
    return trace != nullptr;
  };
  for (const Arguments::Leaf &leaf : arguments.leaves)
    if (leaf.variable) {
      const VariableState &variable = *variableBehind(leaf.variable->state());
      if (variable.birth && !isOpen(variable.birth))
        raiseOutOfScope(variable, arguments.where);
    } else if (const TensorState &tensor = *stateOf(*leaf.tensor);
               (tensor.spec && !specs) || (tensor.symbol && !isOpen(tensor.birth))) {
      raiseOutOfScope(name, *leaf.tensor, arguments.where);
    }
}

std::shared_ptr<ConcreteState> concrete(FunctionState &function, Arguments &arguments, Body body) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(function.name.c_str(), arguments.where,
                            [&] { return concrete(function, arguments, body); });
  if (arguments.symbolic)
    checkInScope(function.name.c_str(), arguments, /*specs=*/true);
  std::shared_ptr<ConcreteState> found = function.find(arguments, body, /*exact=*/true);
  // What captures tensors of an enclosing trace is called there only, and inlined.
  if (found->code->isStatic() && !found->boundTo)
    found->code->compiled({}, arguments.where);
  return found;
}

void call(FunctionState &function, Arguments &arguments, Body body, Results &results) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(function.name.c_str(), arguments.where, [&] { call(function, arguments, body, results); });
  if (arguments.symbolic) [[unlikely]]
    checkInScope(function.name.c_str(), arguments, /*specs=*/false);
  std::shared_ptr<ConcreteState> concrete = function.find(arguments, body, /*exact=*/false);
  handOver(*concrete, results);
  callConcrete(*concrete, {arguments.leaves.begin(), arguments.leaves.size()}, results.tensors, arguments.where);
}

void callInPlace(Arguments &arguments, const std::vector<Source> &values, Body body, Results &results) {
  constexpr const char *kName = "functional_call";
  const Where &where = arguments.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where, [&] { callInPlace(arguments, values, body, results); });
  FunctionState function;
  function.name = kName;
  function.options.interpret = true;
  std::shared_ptr<ConcreteState> concrete = function.find(arguments, body, /*exact=*/true);
  std::vector<Arguments::Leaf> leaves(arguments.leaves.begin(), arguments.leaves.end());
  for (size_t i = 0; i < values.size(); ++i)
    leaves[i] = values[i].variable.defined() ? Arguments::Leaf{nullptr, &values[i].variable}
                                             : Arguments::Leaf{&values[i].tensor, nullptr};
  for (size_t i = 0; i < concrete->inputs.size(); ++i) {
    TraceInput &input = concrete->inputs[i];
    if (input.kind != TraceInput::variable || !input.formal || input.leaf >= values.size() ||
        !leaves[input.leaf].tensor)
      continue;
    if (llvm::is_contained(concrete->assigned, i))
      raiseOp(kName, "the model assigns " + describe(*input.state) + ", for which a tensor is given",
              "give a variable in its place", {}, where);
    input = {.kind = TraceInput::argument, .captured = {}, .state = nullptr, .leaf = input.leaf};
  }
  // What is assigned through one handle would not be seen through another.
  for (size_t i = 0; i < values.size() && !concrete->assigned.empty(); ++i) {
    auto isThis = [&](const auto &state) { return leaves[i].variable && state->id == leaves[i].variable->id(); };
    for (size_t k = 0; k < i; ++k)
      if (leaves[k].variable && isThis(leaves[k].variable->state()))
        raiseOp(kName, describe(*leaves[i].variable->state()) + " is given twice to a model that assigns variables",
                "give each variable once", {}, where);
    if (std::any_of(concrete->variables.begin(), concrete->variables.end(), isThis))
      raiseOp(kName,
              describe(*leaves[i].variable->state()) +
                  " is given to a model that assigns variables and reads it itself",
              "give another variable", {}, where);
  }
  handOver(*concrete, results);
  callConcrete(*concrete, leaves, results.tensors, where);
}

OutsideTrace::OutsideTrace() {
  auto eager = std::make_unique<Level>();
  scope_ = new EnterLevel(*eager);
  level_ = eager.release();
}

OutsideTrace::~OutsideTrace() {
  delete static_cast<EnterLevel *>(scope_);
  auto *eager = static_cast<Level *>(level_);
  eager->end();
  delete eager;
}

} // namespace detail

void set_run_functions_eagerly(bool eagerly) { detail::runEagerly = eagerly; }
bool tracing() { return detail::level().trace != nullptr; }

detail::Kept::~Kept() = default;

FunctionBase::FunctionBase(std::string name, const FunctionOptions &options, const Where &where, detail::Kept *kept)
    : kept_(kept) {
  state_ = detail::makeFunction(std::move(name), options, where);
}
FunctionBase::~FunctionBase() = default;

detail::FunctionState &FunctionBase::self(const Where &where) const {
  if (!state_)
    detail::raiseOp("function", "it was moved from, and holds nothing", "use the function that it was moved to", {},
                    where, ErrorKind::runtime);
  return *state_;
}

int64_t FunctionBase::trace_count() const {
  std::lock_guard lock(self().mutex);
  return self().traceCount;
}

int64_t FunctionBase::num_concrete() const {
  std::lock_guard lock(self().mutex);
  return std::count_if(self().entries.begin(), self().entries.end(),
                       [](const auto &entry) { return !entry.second->alias; });
}

void FunctionBase::clear_cache() {
  std::lock_guard lock(self().mutex);
  self().eraseEntries([](const detail::Entry &entry) { return entry.concrete != nullptr; });
  // What is left is being traced.
  self().tracesCleared = self().traceCount - static_cast<int64_t>(self().entries.size());
}

const std::string &FunctionBase::name() const { return self().name; }

} // namespace wg
