// The gate. Eagerly: the kernel runs, and each tape of this level that tracks an operand gets a record. While tracing:
// the trace gets an op. There is no second way in.
#include "frontend/staging/Apply.h"

#include "frontend/staging/Tape.h"
#include "frontend/staging/Trace.h"
#include "runtime/Repeat.h"

#include <algorithm>
#include <array>

namespace wg::detail {

using runtime::Array;
using runtime::Attrs;
using runtime::OpId;

//===- Levels -----------------------------------------------------------------------------------------------------===//

[[gnu::tls_model("initial-exec")]] static constinit thread_local Level *current = nullptr;

/// The thread's eager level. Its tapes are told when the thread ends, but it is never destroyed: the destructors of
/// other thread_local objects, and of static ones, may compute after that.
static Level &rootLevel() {
  alignas(Level) static constinit thread_local char memory[sizeof(Level)] = {};
  struct Farewell {
    Level *root;
    ~Farewell() {
      root->end();
      root->ended = true;
    }
  };
  static thread_local Farewell farewell{new (memory) Level};
  return *farewell.root;
}

Level &level() {
  if (!current) [[unlikely]]
    current = &rootLevel();
  return *current;
}

EnterLevel::EnterLevel(Level &inner) : before_(&level()) { current = &inner; }

EnterLevel::~EnterLevel() { current = before_; }

//===- Tensors ----------------------------------------------------------------------------------------------------===//

/// Identities are handed out to threads in blocks, so that making a tensor touches no shared line.
static uint64_t nextId() {
  static constinit std::atomic<uint64_t> blocks = 1;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local uint64_t next = 0;
  constexpr uint64_t kBlock = 1 << 16;
  if (next % kBlock == 0) [[unlikely]]
    next = blocks.fetch_add(1, std::memory_order_relaxed) * kBlock;
  return next++;
}

Tensor makeTensor() {
  auto *state = new TensorState;
  state->id = nextId();
  if (Trace *trace = level().trace) [[unlikely]]
    state->birth = trace->id();
  return Tensor(state);
}

Tensor makeTensor(Array array) {
  Tensor tensor = makeTensor();
  TensorState &state = *stateOf(tensor);
  state.type = array.type;
  state.buffer = std::move(array.buffer);
  return tensor;
}

Tensor makeSymbolic(const TensorType &type, uint64_t trace, uint32_t value, const Where &made) {
  auto symbol = std::make_unique<Symbol>(Symbol{value, made});
  auto *state = new TensorState;
  state->type = type;
  state->id = nextId();
  state->birth = trace;
  state->symbol = std::move(symbol);
  return Tensor(state);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG_NO_FREE_LIST 1
#endif
#endif
#ifdef WG_NO_FREE_LIST
static constexpr uint32_t kFreeStates = 0;
#else
static constexpr uint32_t kFreeStates = 4096;
#endif

namespace {
struct FreeState {
  FreeState *next;
};
struct FreeStates {
  FreeState *first;
  uint32_t count, limit; ///< limit: 0 before the thread's first use and after its end
  bool ended;
};
} // namespace
[[gnu::tls_model("initial-exec")]] static constinit thread_local FreeStates freeStates = {};

/// Gives the list back when the thread ends; what dies still later goes to the heap.
static void beginFreeStates() {
  struct Reaper {
    Reaper() { freeStates.limit = kFreeStates; }
    ~Reaper() {
      while (FreeState *state = freeStates.first) {
        freeStates.first = state->next;
        ::operator delete(state);
      }
      freeStates.count = freeStates.limit = 0;
      freeStates.ended = true;
    }
  };
  if (!freeStates.ended)
    static thread_local Reaper reaper;
}

void *TensorState::operator new(size_t bytes) {
  FreeState *state = freeStates.first;
  if (!state) [[unlikely]]
    return ::operator new(bytes);
  freeStates.first = state->next;
  --freeStates.count;
  return state;
}

void TensorState::operator delete(void *memory) {
  if (freeStates.count >= freeStates.limit) [[unlikely]] {
    beginFreeStates();
    if (freeStates.count >= freeStates.limit)
      return ::operator delete(memory);
  }
  freeStates.first = new (memory) FreeState{freeStates.first};
  ++freeStates.count;
}

void destroy(const TensorBody *body) noexcept { delete static_cast<const TensorState *>(body); }

//===- Errors -----------------------------------------------------------------------------------------------------===//

void raise(runtime::Failure failure, const Where &where) {
  if (failure.where.empty() && where)
    failure.where = toString(where);
  if (Trace *trace = level().trace)
    if (std::string tracing = "while '" + trace->name() + "' is traced";
        failure.where.find(tracing) == std::string::npos)
      failure.where += (failure.where.empty() ? "" : ", ") + tracing;
  throw Error(std::move(failure));
}

void raiseOp(const char *op, std::string message, std::string remedy, std::vector<TensorType> operands,
             const Where &where, ErrorKind kind) {
  raise({.kind = kind,
         .op = op,
         .message = std::move(message),
         .remedy = std::move(remedy),
         .operands = std::move(operands),
         .where = {}},
        where);
}

/// An operand that is no eager tensor, in eager code.
[[noreturn]] static void raiseNotEager(OpId op, const Tensor &operand, const Where &where) {
  const char *name = runtime::recordOf(op).name;
  if (!operand.defined())
    raiseOp(name, "an operand is undefined: a default-constructed tensor has no value",
            "give it a value: Tensor x(0.0f)", {}, where);
  if (stateOf(operand)->spec)
    raiseOp(name, "an operand is a specification, which has a dtype and a shape but no value",
            "pass it to Function::trace only", {}, where);
  raiseOutOfScope(name, operand, where);
}

void raiseOutOfScope(const char *op, const Tensor &tensor, const Where &where) {
  if (stateOf(tensor)->spec)
    raiseOp(op, "the tensor is a specification, which has a dtype and a shape but no value",
            "pass it to Function::trace only", {tensor.body()->type}, where, ErrorKind::type);
  const Symbol &symbol = *stateOf(tensor)->symbol;
  raiseOp(op,
          "a tensor of a traced function is out of scope and cannot be used here; it was made at " +
              toString(symbol.made),
          "return it from the function", {tensor.body()->type}, where, ErrorKind::type);
}

void raiseNoElements(const char *what, const Tensor &tensor, const Where &where) {
  if (stateOf(tensor)->spec)
    raiseOp(what, "the tensor is a specification, which has a dtype and a shape but no value",
            "pass it to Function::trace only", {tensor.body()->type}, where, ErrorKind::type);
  for (Trace *trace = level().trace; trace; trace = trace->outer())
    if (trace->id() == stateOf(tensor)->birth)
      raiseOp(what, "a symbolic tensor has no elements yet: a function is being traced",
              "return the tensor from the function and read it there", {tensor.body()->type}, where, ErrorKind::type);
  raiseOutOfScope(what, tensor, where);
}

//===- Literals ---------------------------------------------------------------------------------------------------===//

/// The number as an element of the dtype. A float for an integer dtype never comes here.
static void store(double real, int64_t integer, DType dtype, void *to) {
  auto put = [&](auto value) { std::memcpy(to, &value, sizeof(value)); };
  switch (dtype) {
  case DType::f64: put(real); break;
  case DType::f32: put(static_cast<float>(real)); break;
  case DType::i64: put(integer); break;
  case DType::i32: put(static_cast<int32_t>(integer)); break;
  case DType::u8: put(static_cast<uint8_t>(integer)); break;
  case DType::boolean: put(static_cast<uint8_t>(integer != 0)); break;
  default: break;
  }
}

/// The number everywhere.
static Array filled(double real, int64_t integer, DType dtype, const Shape &shape) {
  alignas(8) unsigned char number[8] = {};
  store(real, integer, dtype, number);
  Array array = Array::empty(dtype, shape);
  runtime::repeat(number, runtime::sizeOf(dtype), array.numElements(), array.buffer.data());
  return array;
}

//===- The gate ---------------------------------------------------------------------------------------------------===//

static void runEager(OpId op, const Attrs &attrs, std::span<const Tensor *const> operands, std::span<Tensor> results,
                     const Where &where, const Level &here) {
  std::array<Array, 3> few;
  std::vector<Array> many;
  std::span<Array> inputs(few.data(), std::min(operands.size(), few.size()));
  if (operands.size() > few.size()) [[unlikely]] {
    many.resize(operands.size());
    inputs = many;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorState *state = stateOf(*operands[i]);
    if (!state || !state->buffer) [[unlikely]]
      raiseNotEager(op, *operands[i], where);
    inputs[i].type = state->type;
    inputs[i].buffer = state->buffer;
  }
  std::array<Array, 4> outputs;
  runtime::Status status = runtime::execute({op, attrs, inputs, where}, std::span(outputs).first(results.size()));
  if (!status.ok()) [[unlikely]]
    raise(status.take(), where);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = makeTensor(std::move(outputs[i]));
  auto records = [&](Tape *tape) {
    return tape->recording &&
           std::any_of(operands.begin(), operands.end(), [&](const Tensor *operand) { return tape->tracks(*operand); });
  };
  if (here.tapes.size() > 1) // all tapes have the op, or none
    for (Tape *tape : here.tapes)
      if (records(tape))
        tape->reserve(operands.size() + results.size());
  for (Tape *tape : here.tapes)
    if (records(tape))
      tape->record(op, attrs, operands, results, where);
}

void applyOp(OpId op, const Attrs &attrs, std::span<const Tensor *const> operands, std::span<Tensor> results,
             const Where &where) {
  Level &here = level();
  if (!here.trace) [[likely]]
    runEager(op, attrs, operands, results, where, here);
  else
    here.trace->apply(op, attrs, operands, results, where);
}

Tensor applyOne(OpId op, const Attrs &attrs, std::initializer_list<const Tensor *> operands, const Where &where) {
  Tensor result;
  applyOp(op, attrs, std::span(operands.begin(), operands.size()), std::span(&result, 1), where);
  return result;
}

Tensor applyBeside(OpId op, const Tensor &x, double real, int64_t integer, bool first, const Where &) {
  const TensorState *state = stateOf(x);
  Level &here = level();
  auto records = [&](Tape *tape) { return tape->recording && tape->tracks(x); };
  if (here.trace || !state || !state->buffer || std::any_of(here.tapes.begin(), here.tapes.end(), records))
    return {};
  alignas(8) unsigned char number[8];
  store(real, integer, state->type.dtype, number);
  Array result;
  try {
    if (!runtime::executeBeside(op, Array{state->type, state->buffer}, number, first, result))
      return {};
  } catch (const std::bad_alloc &) {
    return {}; // the long way says so
  }
  return makeTensor(std::move(result));
}

Tensor ownerOf(const Shape &shape, const Where &where) {
  Trace *trace = level().trace;
  return trace ? trace->ownerOf(shape, where) : Tensor();
}

//===- Literals ---------------------------------------------------------------------------------------------------===//

void checkRank(const char *op, const Shape &shape, const Where &where) {
  if (shape.excess())
    raiseOp(op,
            "a shape of rank " + std::to_string(shape.size() + shape.excess()) + "; the highest is " +
                std::to_string(runtime::kMaxRank),
            "merge axes by a reshape", {}, where);
}

Tensor literal(double real, int64_t integer, DType dtype, const Shape &shape, const Where &where) {
  if (dtype == DType::bf16 || dtype == DType::f16)
    raiseOp("literal", std::string(nameOf(dtype)) + " has no kernels yet", "use f32", {}, where,
            ErrorKind::unimplemented);
  checkRank("literal", shape, where);
  Level &here = level();
  if (here.trace)
    return here.trace->constant(filled(real, integer, dtype, Shape()), shape, where);
  return makeTensor(filled(real, integer, dtype, shape));
}

Tensor operandOf(const Located &operand, DType dtype) {
  if (!operand.isLiteral())
    return operand.tensor();
  bool real = runtime::isFloat(operand.literalType());
  if (real && !runtime::isFloat(dtype))
    raiseOp("literal",
            "a float literal beside " + std::string(dtype == DType::boolean ? "a bool" : "an integer") + " tensor (" +
                std::string(nameOf(dtype)) + ")",
            "cast the tensor: cast(x, f32), or write an integer", {}, operand.where(), ErrorKind::type);
  if (!real && dtype == DType::boolean && operand.literalType() != DType::boolean)
    raiseOp("literal", "an integer literal beside a bool tensor",
            "write true or false, or cast the tensor: cast(x, i64)", {}, operand.where(), ErrorKind::type);
  return literal(operand.real(), operand.integer(), dtype, Shape(), operand.where());
}

} // namespace wg::detail
