// Behind wg::function: concrete functions, the code made of them, and their derivatives.
#pragma once

#include "frontend/staging/Trace.h"

#include <wengert/Function.h>

#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Lifetime.h"
#include "runtime/StackArray.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

namespace wg::codegen {
class Executable;
}

namespace wg::detail {

/// Runs `f` here; or, while this thread ends and MLIR cannot be used on it, on another in its place, at
/// its level and so with its tapes.
template <class F> auto whereMlirIsAlive(const char *what, const Where &where, F f) {
  if (!ir::threadEnds()) [[likely]]
    return f();
  if (ir::processEnds())
    raiseOp(what, "the process is ending, and its libraries have been closed",
            "finish before exit() has destroyed the program's static objects", {}, where, ErrorKind::runtime);
  Level &here = level();
  if constexpr (std::is_void_v<decltype(f())>) {
    ir::onSpareThread([&] {
      EnterLevel scope(here);
      f();
    });
  } else {
    std::optional<decltype(f())> result;
    ir::onSpareThread([&] {
      EnterLevel scope(here);
      result.emplace(f());
    });
    return std::move(*result);
  }
}

using runtime::StackArray;

/// A name that MLIR and C take, and that no function has which compiled code calls.
std::string symbolOf(const std::string &name);
/// Unique numbers for things that caches refer to: an address may be used again, these are not.
uint64_t nextSerial();

/// A function that can be run: its module, and the rows or the machine code made of it on demand. Thread-safe.
class Code {
public:
  /// `identities`: of those functions of the module that are copies. `capacity`: for how many sets of dynamic sizes
  /// machine code is kept; the least recently used is erased.
  Code(mlir::OwningOpRef<mlir::ModuleOp> module, std::string entry, bool interpret, Identities identities,
       int64_t capacity = 1024);
  ~Code();

  /// What errors call the inputs; set before the first run.
  const std::vector<std::string> &names() const { return names_; }
  void setNames(std::vector<std::string> names) { names_ = std::move(names); }

  mlir::ModuleOp module() const { return *module_; }
  const std::string &entry() const { return entry_; }
  mlir::func::FuncOp function() const;
  /// Of all functions of the module: a copy elsewhere has the same.
  const Identities &identities() const { return identities_; }
  const std::vector<TensorType> &inputs() const { return inputs_; }
  const std::vector<TensorType> &results() const { return results_; }

  /// Computes `results`. One that has a buffer already is written there if the code can do so (and it may be an
  /// input's, if the function says so by `wg.result`); the others get new ones. Throws wg::Error.
  void run(std::span<const runtime::Array> inputs, std::span<runtime::Array> results, const Where &where);

  struct Compiled {
    std::shared_ptr<const codegen::Executable> executable;
    std::vector<int64_t> rooms; ///< by loop of ir::unboundedLoops: for how many turns it keeps what it stacks
  };
  /// The executable for inputs of these static types, compiled on first use; null if the code is interpreted.
  std::shared_ptr<const Compiled> compiled(std::span<const runtime::Array> inputs, const Where &where);
  /// Whether the sizes of inputs of these types fit together; true if none is open.
  bool fits(std::span<const TensorType> inputs) const;
  /// The executable if there is exactly one that fits all calls; null otherwise.
  const Compiled *only() const { return only_.load(std::memory_order_acquire); }
  double compileSeconds() const { return compileSeconds_.load(std::memory_order_relaxed); }
  bool interpreted() const { return interpret_; }
  /// Whether the inputs' sizes are all known, so that one executable serves every call.
  bool isStatic() const { return static_; }
  /// The executable for `inputs`, and what its kernels take with them; an error if the code is interpreted.
  std::pair<std::shared_ptr<const codegen::Executable>, codegen::Measured>
  measured(const std::vector<runtime::Array> &inputs, const Where &where);
  /// All executables made so far, with the sizes that they are for.
  std::vector<std::shared_ptr<const codegen::Executable>> executables();
  /// A copy of the module with the sizes of `inputs`, and room for so many turns of loops without a bound.
  mlir::OwningOpRef<mlir::ModuleOp> moduleFor(std::span<const runtime::Array> inputs, llvm::ArrayRef<int64_t> rooms,
                                              const Where &where) const;
  /// A copy of the module with the function's types made static; fails if a size is open.
  mlir::OwningOpRef<mlir::ModuleOp> staticModule(const Where &where) const;

private:
  const codegen::Program &program(const Where &where);
  void interpret(std::span<const runtime::Array> inputs, std::span<runtime::Array> results, const Where &where);
  /// Runs `code` as run() does; where it wants more room, nothing has changed.
  std::optional<codegen::RoomWanted> runCompiled(const codegen::Executable &code,
                                                 std::span<const runtime::Array> inputs,
                                                 std::span<runtime::Array> results, const Where &where);
  [[noreturn]] void raiseOutOfMemory(const codegen::Executable &executable, const Where &where) const;
  void makeRoom(const Compiled &tooSmall, const codegen::RoomWanted &wanted);

  mlir::OwningOpRef<mlir::ModuleOp> module_;
  Identities identities_;
  std::string entry_;
  std::vector<std::string> names_;
  bool interpret_, static_ = true;
  int64_t capacity_;
  std::vector<TensorType> inputs_, results_;
  std::mutex mutex_;
  std::unique_ptr<codegen::Program> program_;
  struct Slot {
    std::shared_ptr<const Compiled> code;
    uint64_t lastUse = 0;
  };
  std::map<std::vector<int64_t>, Slot> compiled_;
  std::vector<int64_t> rooms_; ///< of what is compiled next
  uint64_t clock_ = 0;
  std::atomic<const Compiled *> only_ = nullptr;
  std::atomic<double> compileSeconds_ = 0;
};

struct TangentFunction;
class ConcreteState;
std::shared_ptr<FunctionState> makeFunction(std::string name, FunctionOptions options, const Where &where);

/// The pair for one set of arguments to differentiate by: forward with residuals, and backward.
struct Derivative {
  std::vector<uint32_t> asked; ///< those arguments
  uint64_t serial = nextSerial();
  std::unique_ptr<Code> forward, backward;
  std::vector<int64_t> residuals;  ///< leading inputs of backward: input i as i, the k-th residual as -1 - k
  std::vector<uint32_t> arguments; ///< the inputs by which backward returns gradients
  std::vector<uint32_t> results;   ///< the results whose cotangents it takes
  std::vector<std::string>
      reasons;             ///< by input: why there is no gradient; empty where there is one or none was asked for
  uint32_t numResults = 0; ///< results of forward before the residuals
  /// Of a part: where the whole's forward keeps the residuals, in the manner of `residuals`; none: it lacks one,
  /// and the part's forward is to run.
  std::optional<std::vector<int64_t>> kept;
  std::map<std::vector<uint32_t>, std::shared_ptr<Derivative>>
      parts;          ///< by results; guarded by the concrete function's lock
  std::string digest; ///< of forward, as files name it; made on demand, under the lock
  std::mutex mutex;
  std::shared_ptr<ConcreteState>
      vjp; ///< (inputs, cotangents) -> gradients as one differentiable function; made on demand
};

/// Which leaves of a call are one variable, by leaf.
struct LeafVariables {
  std::vector<uint32_t> aliasOf;    ///< the first leaf that is the same variable; itself otherwise
  std::vector<uint32_t> placeOf;    ///< the first that is the same place of a derivative as well
  std::vector<int64_t> capturedIds; ///< the id of a variable that the function captures as well, else -1
  std::vector<bool> capturedPlaces; ///< and the leaf is a place of a derivative
};

/// A traced signature.
class ConcreteState : public std::enable_shared_from_this<ConcreteState> {
public:
  std::string name;
  std::string signature;
  std::string reason; ///< why it was traced
  Where calledAt;
  std::shared_ptr<Code> code; ///< shared by handles of what was loaded
  std::vector<TraceInput> inputs;
  std::vector<uint32_t> assigned; ///< inputs that are variables with a new value, ascending, as their results are
  uint32_t numResults = 0;        ///< without the assigned variables
  std::shared_ptr<const void> prototype;
  void (*describePrototype)(const void *prototype, TreeWriter &writer) = nullptr; ///< as in TraceFrame
  std::vector<uint64_t> key; ///< the words of its signature in this process; of what was loaded `words` instead
  std::vector<TreeWord> words, resultWords; ///< the latter of what was loaded, too
  std::vector<std::shared_ptr<VariableState>> variables;
  std::vector<int64_t> captured; ///< ids of the variables that it names without their being arguments, or as well
  LeafVariables variablesOf;     ///< of the leaves that it was traced with
  int64_t numOps = 0;
  double traceSeconds = 0;
  std::atomic<int64_t> calls = 0;
  uint64_t boundTo = 0; ///< the trace whose tensors it captured, 0 if none

  /// What its gradients, inside and from outside, leave out.
  std::vector<DroppedGradient> certificate() {
    std::lock_guard lock(mutex_);
    return certificate_;
  }
  void setCertificate(std::vector<DroppedGradient> dropped) { certificate_ = std::move(dropped); }

  /// The derivative by `arguments` (inputs) from every float result.
  std::shared_ptr<Derivative> derivative(const std::vector<uint32_t> &arguments, const Where &where);
  /// The part of it that takes the cotangents of `results` only, all of which have one. The others get no zeros in
  /// their place: they would run through slopes that may be infinite.
  std::shared_ptr<Derivative> part(const std::shared_ptr<Derivative> &whole, const std::vector<uint32_t> &results,
                                   const Where &where);
  /// (inputs, cotangents) -> gradients.
  std::shared_ptr<ConcreteState> vjp(Derivative &derivative, const Where &where);
  /// The tangents of `results` where `arguments` (inputs) move. An error if what it calls has no forward rule.
  std::shared_ptr<const TangentFunction> tangent(const std::vector<uint32_t> &arguments,
                                                 const std::vector<uint32_t> &results, const Where &where);

private:
  std::shared_ptr<Derivative> differentiate(const std::vector<uint32_t> &arguments,
                                            const std::vector<uint32_t> &results, std::vector<DroppedGradient> &dropped,
                                            const Where &where) const;

  std::mutex mutex_;
  std::map<std::vector<uint32_t>, std::shared_ptr<Derivative>> derivatives_;
  std::map<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>, std::shared_ptr<const TangentFunction>> tangents_;
  std::vector<DroppedGradient> certificate_;
};

/// (inputs, tangents of some inputs) -> tangents of some results, as one differentiable function.
struct TangentFunction {
  std::shared_ptr<ConcreteState> concrete;
  std::vector<uint32_t> results; ///< those that have a tangent
};

LeafVariables describeVariables(std::span<const Arguments::Leaf> leaves, std::span<const int64_t> captured);

/// Copies the structure of its results, before the function runs.
inline void handOver(const ConcreteState &concrete, Results &results) {
  results.prototype = concrete.prototype;
  if (results.copy)
    results.copy(results.structure, results.prototype.get());
}

/// Calls a concrete function at the thread's level: runs it, records it, or traces a call of it. `leaves` holds the
/// tensors and variables of the signature.
void callConcrete(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, Inline<Tensor, 8> &results,
                  const Where &where);

/// The inputs of a call, as it would find them. Who holds them keeps them from being written over.
std::vector<runtime::Array> argumentsOf(const ConcreteState &concrete, std::span<const Arguments::Leaf> leaves,
                                        const Where &where);
/// Errors if the arguments are not what the function was traced for.
void checkLeaves(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where);
/// A call after a check of the number and kinds of the leaves, and of which variables are one.
std::vector<Tensor> callChecked(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where);

/// What a finished trace says of the concrete function that it becomes: all but its code, and why it was made.
std::shared_ptr<ConcreteState> describeTrace(Trace &trace, const TraceFrame &frame, const std::string &name,
                                             size_t numResults, const Arguments &arguments);
/// Tensors and variables of traces that have ended, and, unless `specs`, specifications, are no arguments.
void checkInScope(const char *name, const Arguments &arguments, bool specs);
/// Makes `entry` the module's one public function and erases what it does not call, the derivatives of what is left
/// too.
void makeEntry(mlir::ModuleOp module, llvm::StringRef entry);

/// One cached signature of a function.
struct Entry {
  std::vector<uint64_t> key;
  std::shared_ptr<ConcreteState> concrete; ///< null while it is being traced
  std::thread::id tracer;
  std::atomic<bool> ended = false; ///< the trace has been made or has failed: who waits for it goes on
  bool alias = false;              ///< another signature's trace, with dynamic sizes, that serves this one
  std::shared_ptr<Entry> open;     ///< the entry of that trace
  int64_t number = 0;              ///< of its trace
  uint64_t lastUse = 0;
};

/// A concrete function that was loaded: it has the words of a signature, and no key in this process yet.
struct SavedTrace {
  int64_t number;
  std::shared_ptr<ConcreteState> concrete;
};

class FunctionState {
public:
  std::string name;
  FunctionOptions options;
  Where where;

  /// The concrete function for a signature, traced if there is none. One thread traces; others wait for it. Unless
  /// `exact`, a trace with dynamic sizes serves as well.
  std::shared_ptr<ConcreteState> find(Arguments &arguments, Body body, bool exact);

  mutable std::mutex mutex;
  std::condition_variable traced;
  std::unordered_multimap<uint64_t, std::shared_ptr<Entry>> entries; ///< by the hashes of their keys
  Entry *latest = nullptr; ///< of the entries: what the last call found, which most next calls find too
  /// Erases the entries of which `isSo`.
  template <class F> void eraseEntries(F isSo) {
    latest = nullptr;
    std::erase_if(entries, [&](const auto &each) { return isSo(*each.second); });
  }
  int64_t traceCount = 0;
  int64_t tracesCleared = 0; ///< of these, those that clear_cache has forgotten: max_traces does not count them
  uint64_t clock = 0;
  std::string lastTrace;
  std::shared_ptr<ConcreteState> lastConcrete;
  /// Of a function that was loaded: all that it can be. It has no C++ to trace.
  bool isSaved = false;
  std::vector<SavedTrace> saved;

private:
  std::shared_ptr<ConcreteState> findSaved(const Arguments &arguments, uint64_t hash);
  std::shared_ptr<ConcreteState> trace(Arguments &arguments, Body body, std::string reason);
  std::shared_ptr<Entry> findOpen(const Arguments &arguments, uint64_t outer) const;
  std::string whyTrace(const Arguments &arguments) const;
  void evict();
};

// ---- Signature.cpp ----
uint64_t hashOf(std::span<const uint64_t> key);
/// One line a leaf: `arg0`, `arg1[2]`, `arg1["w"]` and its text, `f32[64,784]` or `int 3`; and one for a length.
struct SignatureLeaf {
  std::string path, text;
  bool isStatic = true; ///< a value or a length; not a tensor or a variable
};
std::vector<SignatureLeaf> leavesOf(std::span<const TreeWord> words, const FunctionOptions &options);
std::vector<SignatureLeaf> leavesOf(std::span<const uint64_t> key, const FunctionOptions &options);
/// The words of a key, in which nothing points into this process.
std::vector<TreeWord> wordsOf(std::span<const uint64_t> key);
/// Whether a trace for `known`, in which sizes may be `?`, serves a call of `words`; counts the sizes that are `?`. The
/// C++ types of numbers are no part of it.
bool covers(std::span<const TreeWord> known, std::span<const TreeWord> words, size_t &open);
/// `f(x: f32[64,784]) -> (f32[])`.
std::string signatureText(const std::string &name, std::span<const SignatureLeaf> arguments,
                          std::span<const TensorType> results);

// ---- Report.cpp ----
/// `1 call`, `2 calls`.
std::string counted(int64_t count, const char *what);
std::string milliseconds(double seconds);

} // namespace wg::detail
