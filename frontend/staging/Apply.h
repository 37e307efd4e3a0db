// Behind the public handles: what a tensor is, what a thread is doing, and the one gate that every op goes through.
// Knows no MLIR; Trace.h says what a trace is.
#pragma once

#include <wengert/GradientTape.h>

#include "runtime/Op.h"

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

namespace wg::detail {

class Trace;

/// A symbolic tensor's place: which value of which trace, and where it was made.
struct Symbol {
  uint32_t value;
  Where made;
};

struct TensorState : TensorBody {
  uint64_t id = 0;                ///< unique in the process: what a tape knows a tensor by
  runtime::Buffer buffer;         ///< the elements; empty if symbolic
  std::unique_ptr<Symbol> symbol; ///< symbolic if set
  uint64_t birth = 0;             ///< the trace during which it was made, 0 if none
  bool spec = false;              ///< stands for an argument of Function::trace

  // From a free list of the thread: a call of a compiled function makes its results without malloc.
  static void *operator new(size_t bytes);
  static void operator delete(void *memory);
};

inline TensorState *stateOf(const Tensor &tensor) { return static_cast<TensorState *>(tensor.body()); }
inline runtime::Array arrayOf(const Tensor &tensor) { return {tensor.body()->type, stateOf(tensor)->buffer}; }

/// A new tensor with an identity of its own.
Tensor makeTensor(runtime::Array array);
/// One that gets its type and its elements later.
Tensor makeTensor();
/// The same value under an identity of its own, by an op that outer tapes record.
Tensor fresh(const Tensor &x);
Tensor makeSymbolic(const TensorType &type, uint64_t trace, uint32_t value, const Where &made);

/// All but `current` is fixed once it is made.
struct VariableState {
  TensorType type;
  std::string name;
  bool trainable = true;
  bool isGenerator = false; ///< a key that every draw adds the same to
  bool isOrder = false;     ///< stands for the order of effects: nobody locks or assigns it (Host.cpp)
  int64_t id = 0;
  uint64_t birth = 0; ///< the trace that made this formal parameter, 0 for a real variable
  Where made;         ///< of a formal parameter: the call that was traced
  /// Of a formal parameter: the variable has other places among the arguments, or is captured as well,
  /// and this one counts on its own.
  bool separate = false;
  /// Of a place of a derivative: the variable that it stands for, to which everything goes. Each read has an identity
  /// of its own, which the tape of that derivative knows as a read of the place.
  std::shared_ptr<VariableState> of;
  mutable std::shared_mutex mutex;
  Tensor current; ///< guarded by mutex
};
/// `variable 'w'`
std::string describe(const VariableState &variable);
/// The variable itself, behind all places.
inline const std::shared_ptr<VariableState> &variableBehind(const std::shared_ptr<VariableState> &variable) {
  const std::shared_ptr<VariableState> *at = &variable;
  while ((*at)->of)
    at = &(*at)->of;
  return *at;
}
/// Whether two states are one to a tape: a formal parameter has the id of what it stands for, a place is only itself.
inline bool isSamePlace(const VariableState &a, const VariableState &b) {
  return a.of || b.of ? &a == &b : a.id == b.id;
}
/// Whether a variable counts on its own among the arguments of a call.
inline bool countsAlone(const VariableState &variable) { return variable.of || variable.separate; }

/// A variable's value in a trace, and what it is from here on.
Tensor readIn(Trace &trace, const std::shared_ptr<VariableState> &variable, const Where &where);
void assignIn(Trace &trace, const std::shared_ptr<VariableState> &variable, const Tensor &value, const Where &where);
/// The current value on this thread: the trace's, if one is running.
Tensor currentValue(const std::shared_ptr<VariableState> &variable, const Where &where);
/// The same, and tapes are told.
Tensor readVariable(const std::shared_ptr<VariableState> &variable, const Where &where);
/// The same of a variable whose mutex this thread holds. Eager.
Tensor readLocked(const std::shared_ptr<VariableState> &variable);
/// The parameter of a traced function, outside of its trace.
[[noreturn]] void raiseOutOfScope(const VariableState &variable, const Where &where);

/// Exchanges the values of variables, eagerly, with these. Nothing here fails: what changes several
/// variables changes all or none.
void exchangeValues(std::span<std::pair<std::shared_ptr<VariableState>, Tensor>> values) noexcept;

/// What one thread is doing at one level: nothing but eager work, or one trace. Tapes belong to a level.
struct Level {
  Trace *trace = nullptr;
  Level *outer = nullptr;
  std::vector<Tape *> tapes;             ///< those that exist at this level, oldest first
  bool ended = false;                    ///< the thread is about to: nobody frees the list later
  std::vector<Tape *> dropped;           ///< tapes of this level whose last handle died on another thread; guarded
  std::atomic<bool> someDropped = false; ///< asked without the lock

  /// Frees the dropped tapes. On the level's own thread.
  void bury();
  /// Nothing is computed at this level any more: its tapes are told.
  void end();
};
Level &level();
/// The level of the trace that a symbolic tensor is of, if it is one of those that run; else null.
Level *levelOf(const Tensor &tensor);
/// Makes `inner` the thread's level while it lives.
class EnterLevel {
public:
  explicit EnterLevel(Level &inner);
  EnterLevel(const EnterLevel &) = delete;
  ~EnterLevel();

private:
  Level *before_;
};

/// Runs, records or traces one op. Throws wg::Error.
void applyOp(runtime::OpId op, const runtime::Attrs &attrs, std::span<const Tensor *const> operands,
             std::span<Tensor> results, const Where &where);
/// An op with one result.
Tensor applyOne(runtime::OpId op, const runtime::Attrs &attrs, std::initializer_list<const Tensor *> operands,
                const Where &where);

/// The tensor of the running traces whose shape `shape` is an unchanged copy of; undefined if there is none.
Tensor ownerOf(const Shape &shape, const Where &where);

/// More sizes than a shape can hold are an error.
void checkRank(const char *op, const Shape &shape, const Where &where);
/// A literal as a scalar (eager) or as a splat of `shape` (traced, static sizes).
Tensor literal(double real, int64_t integer, DType dtype, const Shape &shape, const Where &where);
/// An elementwise op on x and a number, which comes first if `first`, without a tensor for the number. Undefined where
/// a tape needs one, while tracing, and where something is wrong: the long way says what.
Tensor applyBeside(runtime::OpId op, const Tensor &x, double real, int64_t integer, bool first, const Where &where);
/// The operand as a tensor; a literal takes `dtype`.
Tensor operandOf(const Located &operand, DType dtype);

/// A failure that names the op, its operands and the place.
[[noreturn]] void raiseOp(const char *op, std::string message, std::string remedy, std::vector<TensorType> operands,
                          const Where &where, ErrorKind kind = ErrorKind::value);

/// A symbolic tensor in eager code or in another trace.
[[noreturn]] void raiseOutOfScope(const char *op, const Tensor &tensor, const Where &where);
/// A symbolic tensor or a specification, asked for its elements.
[[noreturn]] void raiseNoElements(const char *what, const Tensor &tensor, const Where &where);

} // namespace wg::detail
