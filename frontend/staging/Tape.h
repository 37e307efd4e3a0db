// A tape: the set of recorded ops of one level. Eager ops are kept as rows over slots (a Wengert list); traced ones are
// ops of the function that is being traced (Trace.h).
#pragma once

#include "frontend/staging/Apply.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace wg::detail {

class ConcreteState;
struct TracedTape;

/// tensor id -> slot, by open addressing.
class IdMap {
public:
  int32_t find(uint64_t id) const {
    if (entries_.empty())
      return -1;
    for (size_t i = place(id);; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].id == id)
        return entries_[i].slot;
      if (entries_[i].id == 0)
        return -1;
    }
  }
  /// Room for `more` ids, so that inserting them does not fail.
  void reserve(size_t more) {
    while (2 * (count_ + more) > entries_.size())
      grow();
  }
  void insert(uint64_t id, int32_t slot) {
    reserve(1);
    ++count_;
    size_t i = place(id);
    while (entries_[i].id != 0)
      i = (i + 1) & (entries_.size() - 1);
    entries_[i] = {id, slot};
  }
  void clear() {
    entries_.clear();
    count_ = 0;
  }

private:
  struct Entry {
    uint64_t id = 0;
    int32_t slot = 0;
  };
  size_t place(uint64_t id) const { return (id * 0x9e3779b97f4a7c15u) >> 20 & (entries_.size() - 1); }
  void grow();
  std::vector<Entry> entries_;
  size_t count_ = 0;
};

/// One recorded op. Operand and result slots lie in EagerTape::slots.
struct Record {
  runtime::OpId op;
  uint16_t numResults;
  uint32_t numOperands;
  uint32_t first;
  int32_t call; ///< index into EagerTape::calls, or -1
  runtime::Attrs attrs;
  Where where;
};

/// A rule of C++ for what goes back (with_gradient_hook, custom_gradient). Its tensors are those of the float operands
/// and of the float results, in their order.
struct GradientRule {
  const char *name;
  Where where;
  std::function<std::vector<Tensor>(const std::vector<Tensor> &cotangents)> vjp = {};
  /// Forward mode; empty: the derivative of vjp by its cotangents, if it `transposes`, else there is none.
  std::function<std::vector<Tensor>(const std::vector<Tensor> &tangents)> jvp = {};
  bool transposes = false;

  /// The cotangents of the operands; an error unless each is of its operand's dtype and shape.
  std::vector<Tensor> pull(const std::vector<Tensor> &cotangents, std::span<const TensorType> operands) const;
  /// The tangents of the results.
  std::vector<Tensor> push(const std::vector<Tensor> &tangents, std::span<const TensorType> results) const;
};

/// A function that was called under the tape, and what its forward run kept; or a rule of C++.
struct RecordedCall {
  std::shared_ptr<ConcreteState> callee;
  std::shared_ptr<struct Derivative> derivative;
  uint64_t serial;                                    ///< of the derivative: unique in the process
  uint32_t numResults;                                ///< results before the residuals
  std::shared_ptr<const GradientRule> rule = nullptr; ///< in place of the callee
  size_t record = 0;                                  ///< its place in EagerTape::records
};

/// Two 64-bit hashes of a structure: equal structures are equal tapes but for data.
struct StructureHash {
  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
  void mix(uint64_t word) {
    a = (a ^ word) * 0x9e3779b97f4a7c15u;
    a ^= a >> 32;
    b = (b + word) * 0xd6e8feb86659fd93u;
    b ^= b >> 29;
  }
  friend bool operator==(const StructureHash &, const StructureHash &) = default;
};

/// Cotangents or tangents that are taken many at once, with one more axis in front: all of them, or a chunk at a time.
struct Lanes {
  int64_t chunk = 0;  ///< 0: as many as `memory` lets
  int64_t memory = 0; ///< bytes; 0: any number
  std::string how;    ///< is told how many there were at once
  /// How many at once of `count`, of which each takes `laneBytes`.
  int64_t chunkOf(int64_t count, int64_t laneBytes) const;
};

struct EagerTape {
  std::vector<Record> records;
  std::vector<int32_t> slots;
  std::vector<Tensor> values;   ///< by slot: keeps what the gradient may read
  std::vector<uint8_t> tracked; ///< by slot: watched, or computed from what is
  std::vector<RecordedCall> calls;
  IdMap slotOf;
  StructureHash hash;
};

/// `'exp' (train.cpp:41)`
std::string nameOf(const EagerTape &tape, const Record &record);

class Tape {
public:
  explicit Tape(const GradientTapeOptions &options);
  ~Tape();

  /// The gate's calls. Each records all of an op, or throws and leaves the tape as it was; none throws after
  /// a `reserve` of as many tensors.
  void reserve(size_t numTensors, bool call = false);
  bool tracks(const Tensor &tensor) const {
    int32_t slot = eager.slotOf.find(stateOf(tensor)->id);
    return slot >= 0 && eager.tracked[static_cast<size_t>(slot)];
  }
  void record(runtime::OpId op, const runtime::Attrs &attrs, std::span<const Tensor *const> operands,
              std::span<const Tensor> results, const Where &where);
  /// `residuals` are results that nothing is differentiated by.
  void recordCall(RecordedCall call, std::span<const Tensor *const> operands, std::span<const Tensor> results,
                  std::span<const Tensor> residuals, const Where &where);
  /// `results`, whose cotangents the rule takes to the operands.
  void recordRule(const std::shared_ptr<const GradientRule> &rule, std::span<const Tensor *const> operands,
                  std::span<const Tensor> results);
  void variableRead(const std::shared_ptr<VariableState> &variable, const Tensor &value);

  void watch(const Tensor &tensor, const Where &where);
  void watch(const Variable &variable, const Where &where);
  /// An eager tensor, as a tape that is loaded has watched it.
  void track(const Tensor &tensor) {
    reserve(1);
    slotFor(tensor, true);
  }
  /// A handle to the variable whose reads are leaves of this tape, apart from all other reads of the variable. Watched.
  Variable placeOf(const Variable &variable);
  void reset(const Where &where);
  /// Errors unless the tape belongs to the thread's present level.
  void checkLevel(const char *what, const Where &where) const;
  const std::thread::id thread = std::this_thread::get_id(); ///< that made it

  std::vector<Grad> gradient(const Targets &targets, const std::vector<Source> &sources,
                             const GradientOptions &options);
  std::string explain(const Targets &targets, const std::vector<Source> &sources);
  /// The tangents of the targets where each source moves by the tensor beside it (undefined: it does not). Uses the
  /// tape up no more than it is.
  std::vector<Grad> tangents(const Targets &targets, const std::vector<Source> &sources,
                             const std::vector<Tensor> &moves);

  struct WatchedVariable {
    std::shared_ptr<VariableState> variable;
    std::vector<Tensor> reads; ///< its values while recording; the gradient sums over them
  };

  GradientTapeOptions options;
  std::atomic<bool> recording = false; ///< a handle may die on another thread
  const std::thread::id maker = std::this_thread::get_id();
  bool used = false;
  bool isAccumulator = false;  ///< of a ForwardAccumulator
  bool endedRecording = false; ///< whether it recorded before the gradient that used it up
  int differentiating = 0;     ///< gradients that are being computed: a gradient hook may ask for another
  /// The derivatives of each target by each source, in structures of their own: by target, then by source.
  std::vector<std::vector<Grad>> jacobians(const Targets &targets, const std::vector<Source> &sources,
                                           const JacobianOptions &options);
  /// The Jacobian of each example of the target by the same example of the source.
  Grad batchJacobian(const Targets &target, const std::vector<Source> &sources, const JacobianOptions &options);
  std::string jacobianNote; ///< how the last one was computed
  MemoryReport memoryReport(const Where &where);
  /// From here on it counts as begun inside of all tapes that are there.
  void enterAgain();
  /// Null once its thread or its trace has ended.
  Level *home() const { return home_.load(std::memory_order_acquire); }
  void leave() { home_.store(nullptr, std::memory_order_release); }
  std::vector<WatchedVariable> variables; ///< by id
  /// A tensor of user code that is watched: `id` is above those of all tensors that there were.
  struct WatchedTensor {
    int32_t slot;
    uint64_t id;
    Where where;
  };
  std::vector<WatchedTensor> watchedTensors; ///< eager
  Where stoppedAt;                           ///< where user code last stopped the recording, for reasons
  EagerTape eager;
  std::unique_ptr<TracedTape> traced; ///< set if the tape lives in a trace

private:
  std::atomic<Level *> home_;
  int32_t slotFor(const Tensor &tensor, bool tracked);
  void addRecord(runtime::OpId op, const runtime::Attrs &attrs, std::span<const Tensor *const> operands,
                 std::span<const Tensor> results, std::span<const Tensor> residuals, const Where &where);
  void checkUsable(const Tensor &tensor, const char *what, const Where &where) const;
  void checkSeeds(const std::vector<Source> &targets, const GradientOptions &options, const Where &where) const;
  /// An error at the second use of a tape that is not persistent.
  void checkUnused(const Where &where) const;
  /// What `compute` makes of the tape, which is used up by it unless it is persistent or `compute` fails.
  template <class Compute> auto useUp(Compute compute);
  void forgetRecords();
  /// Errors unless targets and sources are what the tape can be asked about; the targets, as they are read.
  std::vector<Tensor> checkAsked(const char *what, const Targets &targets, const std::vector<Source> &sources,
                                 bool read) const;
  std::vector<Grad> gradientEager(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                  const GradientOptions &options, Lanes *lanes, const Where &where);
  struct Asked;
  /// What of targets and sources lies on the eager tape, and the program for it.
  Asked ask(const std::vector<Tensor> &targets, const std::vector<Source> &sources, const std::vector<Tensor> &seeds,
            bool rows, std::optional<int64_t> lanes, const Where &where) const;
  std::string whyNone(const Asked &asked, size_t i, const std::vector<Tensor> &targets, const Source &source) const;
  /// Where what is computed from a slot ends: the last record that it reaches, and the variable (its place in
  /// `variables`) that it was assigned to; -1 where there is none.
  struct Ends {
    std::vector<int32_t> record, assigned;
  };
  Ends endsOf() const;
  std::string pathOf(const Asked &asked, size_t i) const;
  std::string stoppedNote() const;
  std::string explainTraced(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                            const Where &where) const;
  std::vector<Grad> tangentsEager(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                  const std::vector<Tensor> &moves, Lanes *lanes, const Where &where);
  std::vector<Grad> tangentsTraced(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                   const std::vector<Tensor> &moves, Lanes *lanes, const Where &where);
  std::vector<Grad> gradientTraced(const std::vector<Tensor> &targets, const std::vector<Source> &sources,
                                   const GradientOptions &options, Lanes *lanes, const Where &where);
  /// The values that a source stands for on this tape; empty if it is not watched, and then `reason` says so.
  std::vector<Tensor> readsOf(const Source &source, std::string &reason) const;
};

template <class Compute> auto Tape::useUp(Compute compute) {
  bool recordingBefore = recording, usedBefore = std::exchange(used, true);
  if (!options.persistent) {
    endedRecording = recordingBefore;
    recording = false;
  }
  struct Differentiating {
    int &depth;
    ~Differentiating() { --depth; }
  } scope{++differentiating};
  decltype(compute()) computed;
  try {
    computed = compute();
  } catch (...) { // an eager tape can be asked again
    if (!traced) {
      recording = recordingBefore;
      used = usedBefore;
    }
    throw;
  }
  if (!options.persistent)
    forgetRecords();
  return computed;
}

/// Deletes a tape whose last handle has died; on another thread than its own, it is left to that one.
void dropTape(Tape *tape);

} // namespace wg::detail
