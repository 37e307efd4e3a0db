#include "runtime/Op.h"

#include "runtime/Repeat.h"
#include "runtime/ThreadPool.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>
#include <unordered_map>

// The kernels of one x86-64 level: kernels/Table.cpp, compiled for that level.
#ifdef WENGERT_ONE_LEVEL
extern "C" const std::span<const wg::runtime::KernelRow> *wg_kernels_v3(size_t *count);
#else
extern "C" const std::span<const wg::runtime::KernelRow> *wg_kernels_v2(size_t *count);
extern "C" const std::span<const wg::runtime::KernelRow> *wg_kernels_v3(size_t *count);
extern "C" const std::span<const wg::runtime::KernelRow> *wg_kernels_v4(size_t *count);
#endif

namespace wg::runtime {

// ---- Attributes -----------------------------------------------------------------------------------------------------
/// FNV-1a over 8-byte words, finished by a multiply and shift so that low bits depend on all.
static uint64_t mix(uint64_t hash, uint64_t word) { return (std::rotl(hash, 5) ^ word) * 0x9e3779b97f4a7c15u; }
static uint64_t mixBytes(uint64_t hash, const void *data, size_t size) {
  auto *bytes = static_cast<const char *>(data);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  uint64_t word = 0;
  if (size) // memcpy takes no null pointer
    std::memcpy(&word, bytes, size);
  return mix(hash, word ^ size << 56);
}
static uint64_t hashOf(const AttrValue &value) {
  struct {
    uint64_t operator()(int64_t v) const { return mix(1, static_cast<uint64_t>(v)); }
    uint64_t operator()(double v) const { return mix(2, std::bit_cast<uint64_t>(v)); }
    uint64_t operator()(bool v) const { return mix(5, v); }
    uint64_t operator()(DType v) const { return mix(3, static_cast<uint64_t>(v)); }
    uint64_t operator()(const Ints &v) const { return mixBytes(4, v.begin(), v.size() * sizeof(int64_t)); }
    uint64_t operator()(const std::string &v) const { return mixBytes(5, v.data(), v.size()); }
    uint64_t operator()(const Array &v) const {
      uint64_t type =
          mixBytes(static_cast<uint64_t>(v.dtype()) + 6, v.shape().begin(), v.shape().size() * sizeof(int64_t));
      return mixBytes(type, v.buffer.data(), v.numBytes());
    }
  } hash;
  return std::visit(hash, value);
}

/// Reals by their bits, as the hash has them: -0 differs from 0, NaN equals itself.
static bool same(const AttrValue &a, const AttrValue &b) {
  if (a.index() != b.index())
    return false;
  if (const double *x = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b));
  if (const Array *x = std::get_if<Array>(&a)) {
    const Array &y = std::get<Array>(b);
    return x->type == y.type &&
           (x->numBytes() == 0 || std::memcmp(x->buffer.data(), y.buffer.data(), x->numBytes()) == 0);
  }
  return std::visit(
      [&]<class T>(const T &x) {
        if constexpr (std::is_same_v<T, Array>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

Attrs::Attrs(std::vector<AttrValue> values) : data_(new Data{std::move(values), 0, 1}) {
  uint64_t hash = data_->values.size();
  for (const AttrValue &value : data_->values)
    hash = mix(hash, hashOf(value));
  data_->hash = hash;
}

bool operator==(const Attrs &a, const Attrs &b) {
  if (a.data_ == b.data_)
    return true;
  if (a.size() != b.size() || a.hash() != b.hash())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i]))
      return false;
  return true;
}

// ---- Records --------------------------------------------------------------------------------------------------------
#include "runtime/OpTable.inc"

static int chooseLevel() {
  __builtin_cpu_init();
  int level = 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2"))
    level = 3;
  if (level == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    level = 4;
  if (const char *text = std::getenv("WENGERT_CPU_LEVEL"))
    if (int wanted = std::atoi(text); wanted >= 2 && wanted < level)
      level = wanted;
  return level;
}

int machineLevel() {
  static const int level = chooseLevel();
  return level;
}

namespace {

/// The records joined by name with the kernel rows of this machine's level.
struct Table {
  std::array<OpRecord, kNumOps> records;
  std::unordered_map<std::string_view, const OpRecord *> byName;

  Table() {
    static_assert(std::size(kRecords) == kNumOps);
    std::copy(std::begin(kRecords), std::end(kRecords), records.begin());
    for (OpRecord &record : records) {
      byName.emplace(record.name, &record);
      for (const AttrRecord &attr : record.attrs)
        record.sized |= attr.open;
    }
    size_t count = 0;
#ifdef WENGERT_ONE_LEVEL
    const std::span<const KernelRow> *families = wg_kernels_v3(&count);
#else
    auto *accessor = machineLevel() == 4 ? wg_kernels_v4 : machineLevel() == 3 ? wg_kernels_v3 : wg_kernels_v2;
    const std::span<const KernelRow> *families = accessor(&count);
#endif
    for (const std::span<const KernelRow> &family : std::span(families, count))
      for (const KernelRow &row : family) {
        auto found = byName.find(row.name);
        if (found == byName.end()) // a kernel without a record: tests/runtime/OpTest.cpp names it
          continue;
        OpRecord &record = records[static_cast<size_t>(found->second->id)];
        record.shape = row.shape;
        record.kernel = row.kernel;
        record.loops = row.loops;
        record.predicate = row.predicate;
        record.shares = row.shares;
        record.external = row.external;
      }
  }
};

const Table &table() {
  static const Table &theTable = *new Table; // never destroyed: static objects may compute while they are
  return theTable;
}

} // namespace

const OpRecord &recordOf(OpId id) { return table().records[static_cast<size_t>(id)]; }

const OpRecord *findOp(std::string_view name) {
  auto found = table().byName.find(name);
  return found == table().byName.end() ? nullptr : found->second;
}

// ---- Inference ------------------------------------------------------------------------------------------------------
static std::string namesOf(DTypeSet set) {
  switch (set) {
  case kFloats: return "a float";
  case kNumbers: return "a number";
  case kIntegers: return "an integer";
  case kBooleans: return "bool";
  default: return "any dtype";
  }
}

static const char *kindName(AttrKind kind) {
  static constexpr const char *names[] = {"an integer", "a real",   "a dtype", "a list of integers",
                                          "a string",   "an array", "a bool"};
  return names[static_cast<int>(kind)];
}

/// What holds of every op: the number of operands, the kinds of the attributes, the dtype of the first data operand.
static Status checkCall(const OpRecord &op, TypeSpan operands, const Attrs &attrs) {
  size_t fixed = static_cast<size_t>(op.numOperands);
  if (operands.size() < fixed || (operands.size() > fixed && !op.variadic))
    return Failure{.kind = ErrorKind::invalid_argument,
                   .message = "takes " + std::string(op.variadic ? "at least " : "") + std::to_string(fixed) +
                              (fixed == 1 ? " operand" : " operands") + ", got " + std::to_string(operands.size())};
  if (attrs.size() != op.attrs.size())
    return Failure{.kind = ErrorKind::invalid_argument,
                   .message = "takes " + std::to_string(op.attrs.size()) +
                              (op.attrs.size() == 1 ? " attribute" : " attributes") + ", got " +
                              std::to_string(attrs.size())};
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attrs[i].index() != static_cast<size_t>(op.attrs[i].kind))
      return Failure{.kind = ErrorKind::invalid_argument,
                     .message = "attribute " + std::string(op.attrs[i].name) + " is " + kindName(op.attrs[i].kind) +
                                ", got " + kindName(static_cast<AttrKind>(attrs[i].index()))};
  for (size_t i = 0; i < attrs.size(); ++i)
    if (const Ints *list = std::get_if<Ints>(&attrs[i]); list && list->excess())
      return valueError(std::string(op.attrs[i].name) + " has " + std::to_string(list->size() + list->excess()) +
                            " entries, and the highest rank is " + std::to_string(kMaxRank),
                        "merge axes by a reshape");
  if (!operands.empty() && !(op.dtypes & setOf(operands[0].dtype))) {
    DType dtype = operands[0].dtype;
    std::string remedy = op.dtypes == kBooleans   ? "compare first: x != 0"
                         : op.dtypes == kIntegers ? "cast it: cast(x, i64)"
                                                  : "cast it: cast(x, f32)";
    if (op.id == OpId::div && isInteger(dtype))
      remedy = "floor_div(a, b) for integers, or cast them: cast(a, f32)";
    return typeError("takes " + namesOf(op.dtypes) + ", got " + toString(operands[0]), remedy);
  }
  return {};
}

/// A size: an index in the dialect.
static bool isIndexOperand(const TensorType &type) {
  return type == TensorType{DType::i64, {}} || type == TensorType{DType::i32, {}};
}

/// One index operand for each `?` of the open attributes, and nothing else, follows the fixed operands.
static Status checkSizeOperands(const OpRecord &op, TypeSpan operands, const Attrs &attrs) {
  TypeSpan given = operands.subspan(static_cast<size_t>(op.numOperands));
  int64_t open = 0;
  std::string lists;
  for (size_t i = 0; i < attrs.size(); ++i)
    if (op.attrs[i].open) {
      const Ints &list = attrs.ints(i);
      open += std::count(list.begin(), list.end(), kDynamic);
      lists += (lists.empty() ? "" : " and ") + std::string(op.attrs[i].name) + " " + toString(list);
    }
  if (open != static_cast<int64_t>(given.size()))
    return valueError(lists + (lists.find(" and ") == std::string::npos ? " takes" : " take") +
                      " an index operand for each ?, got " + std::to_string(given.size()));
  for (const TensorType &type : given)
    if (!isIndexOperand(type))
      return typeError("an index operand is i64[], got " + toString(type));
  return {};
}

static Status infer(const OpRecord &op, TypeSpan operands, const Attrs &attrs, TypeList &results) {
  Status status = checkCall(op, operands, attrs);
  if (!status.ok())
    return status;
  if (!op.shape)
    return Failure{.kind = ErrorKind::internal, .message = "no shape rule"};
  if (op.sized)
    if (status = checkSizeOperands(op, operands, attrs); !status.ok())
      return status;
  results.count = 0;
  if (status = op.shape(operands, attrs, results); !status.ok())
    return status;
  for (int i = 0; i < results.count; ++i)
    if (Result<Extent> extent = extentOf(results.types[i]); !extent.ok())
      return extent.status();
  return {};
}

/// Adds what only the caller knows.
static Status complete(Status status, const OpRecord &op, TypeSpan operands, const Where &where = {}) {
  Failure &failure = status.failure();
  if (failure.op.empty()) // C++ code that was called may say another name
    failure.op = op.name;
  failure.operands.assign(operands.begin(), operands.end());
  if (where)
    failure.where = toString(where);
  return status;
}

Status inferTypes(OpId id, TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const OpRecord &op = recordOf(id);
  Status status = infer(op, operands, attrs, results);
  return status.ok() ? std::move(status) : complete(std::move(status), op, operands);
}

// ---- Execution ------------------------------------------------------------------------------------------------------
Status resolve(OpId id, std::span<const Array> &operands, Attrs &attrs) {
  const OpRecord &op = recordOf(id);
  if (!op.sized || operands.size() == static_cast<size_t>(op.numOperands) || attrs.size() != op.attrs.size())
    return {};
  size_t next = static_cast<size_t>(op.numOperands);
  std::vector<AttrValue> values;
  for (size_t i = 0; i < attrs.size(); ++i) {
    values.push_back(attrs[i]);
    Ints *sizes = std::get_if<Ints>(&values[i]);
    if (!op.attrs[i].open || !sizes)
      continue;
    for (int64_t &size : *sizes) {
      if (size != kDynamic)
        continue;
      if (next == operands.size() || !isIndexOperand(operands[next].type))
        return {}; // the check of the operands says what is wrong
      size = operands[next++].asIndex();
      if (size < 0)
        return valueError("sizes are not negative, got " + std::to_string(size));
    }
  }
  if (next == operands.size()) { // a check sees what is left over and refuses it
    attrs = Attrs(std::move(values));
    operands = operands.first(static_cast<size_t>(op.numOperands));
  }
  return {};
}

static Failure outOfMemory(const TensorType &type) {
  return {.kind = ErrorKind::runtime, .message = "out of memory for " + toString(type)};
}

/// Elements above which a loop is worth more than one thread; also the length of its pieces.
static constexpr int64_t kLoopGrain = 1 << 16;

namespace {
/// The elements of an operand, or the one that counts at every place.
struct LoopOperand {
  const void *data;
  bool isScalar = false;
};
} // namespace

/// One or two operands of `dtype` in, the result's elements out. A scalar is repeated in a
/// block that stays in the cache.
static Array runLoop(const OpRecord &op, ElementLoop loop, std::span<const LoopOperand> operands, DType dtype,
                     const Shape &shape) {
  constexpr int64_t kBlock = 8192;
  alignas(64) char block[kBlock];
  int64_t n = shape.numElements(), size = static_cast<int64_t>(sizeOf(dtype)), most = n;
  DType to = op.predicate ? DType::boolean : dtype;
  Array result{{to, shape}, Buffer::allocate(static_cast<size_t>(n) * sizeOf(to))};
  for (const LoopOperand &operand : operands)
    if (operand.isScalar && n > 0) {
      most = kBlock / size;
      repeat(operand.data, static_cast<size_t>(size), std::min(n, most), block);
    }
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t at = begin, count; at < end; at += count) {
      count = std::min(end - at, most);
      const void *data[2] = {};
      for (size_t i = 0; i < operands.size(); ++i)
        data[i] = operands[i].isScalar ? block : static_cast<const char *>(operands[i].data) + at * size;
      loop(data, static_cast<char *>(result.buffer.data()) + at * static_cast<int64_t>(sizeOf(to)), count);
    }
  };
  if (n <= 2 * kLoopGrain)
    run(0, n);
  else
    parallelFor((n + kLoopGrain - 1) / kLoopGrain,
                [&](int64_t piece) { run(piece * kLoopGrain, std::min(n, (piece + 1) * kLoopGrain)); });
  return result;
}

/// Operands of one type in, the same shape out. False if this call is none of these or something is wrong with it: the
/// long way says what.
static bool executeLoop(const OpRecord &op, const OpCall &call, Array &result) {
  size_t count = call.operands.size();
  if (count != static_cast<size_t>(op.numOperands) || call.attrs.size() != 0 || count > 2)
    return false;
  const Array &first = call.operands[0], &last = call.operands[count - 1];
  ElementLoop loop = op.loops[static_cast<int>(first.dtype())];
  if (!loop)
    return false;
  LoopOperand operands[2] = {{first.buffer.data()}, {last.buffer.data()}};
  const Shape *shape = &first.type.shape;
  if (count == 2 && !(last.type == first.type)) {
    if (last.dtype() != first.dtype() || (first.shape().rank() != 0 && last.shape().rank() != 0))
      return false;
    operands[first.shape().rank() == 0 ? 0 : 1].isScalar = true;
    if (first.shape().rank() == 0)
      shape = &last.type.shape;
  } else if (int64_t n = shape->numElements(); n <= 2 * kLoopGrain) { // most calls: at once, on this thread
    DType to = op.predicate ? DType::boolean : first.dtype();
    result = Array{{to, *shape}, Buffer::allocate(static_cast<size_t>(n) * sizeOf(to))};
    const void *data[2] = {operands[0].data, operands[1].data};
    if (n > 0)
      loop(data, result.buffer.data(), n);
    return true;
  }
  result = runLoop(op, loop, std::span(operands).first(count), first.dtype(), *shape);
  return true;
}

bool executeBeside(OpId id, const Array &x, const void *number, bool first, Array &result) {
  const OpRecord &op = recordOf(id);
  ElementLoop loop = op.loops && op.numOperands == 2 ? op.loops[static_cast<int>(x.dtype())] : nullptr;
  if (!loop || debugsNans())
    return false;
  LoopOperand operands[2] = {{x.buffer.data()}, {number, true}};
  if (first)
    std::swap(operands[0], operands[1]);
  result = runLoop(op, loop, operands, x.dtype(), x.shape());
  return true;
}

/// Operands of rank 0 of an elementwise op beside others: in the shape of the others.
static std::span<const Array> inOneShape(const OpRecord &op, std::span<const Array> operands,
                                         std::vector<Array> &wide) {
  if (!op.elementwise || operands.size() < 2)
    return operands;
  auto isScalar = [](const Array &operand) { return operand.shape().rank() == 0; };
  auto other = std::find_if_not(operands.begin(), operands.end(), isScalar);
  if (other == operands.end() || std::none_of(operands.begin(), operands.end(), isScalar))
    return operands;
  wide.assign(operands.begin(), operands.end());
  for (Array &operand : wide)
    if (isScalar(operand)) {
      Array full = Array::empty(operand.dtype(), other->shape());
      repeat(operand.buffer.data(), sizeOf(operand.dtype()), full.numElements(), full.buffer.data());
      operand = std::move(full);
    }
  return wide;
}

static Status executeKernel(const OpRecord &op, std::span<const Array> operands, Attrs attrs,
                            std::span<Array> results) {
  Status status = resolve(op.id, operands, attrs);
  if (!status.ok())
    return status;
  std::vector<Array> wide;
  try {
    operands = inOneShape(op, operands, wide);
  } catch (const std::bad_alloc &) {
    return outOfMemory(operands[0].type);
  }
  std::vector<TensorType> many;
  std::array<TensorType, 4> few;
  std::span<TensorType> types(few.data(), std::min(operands.size(), few.size()));
  if (operands.size() > few.size()) {
    many.resize(operands.size());
    types = many;
  }
  for (size_t i = 0; i < operands.size(); ++i)
    types[i] = operands[i].type;
  TypeList inferred;
  status = infer(op, types, attrs, inferred);
  if (!status.ok())
    return status;
  if (!op.kernel)
    return Failure{.kind = ErrorKind::internal, .message = "no kernel"};
  if (static_cast<size_t>(inferred.count) != results.size())
    return Failure{.kind = ErrorKind::internal,
                   .message = "has " + std::to_string(inferred.count) + " results, asked for " +
                              std::to_string(results.size())};
  if (op.shares) {
    results[0] = Array{inferred[0], operands[0].buffer};
    return {};
  }
  std::array<Array, 4> made;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!inferred[i].shape.isStatic())
      return Failure{.kind = ErrorKind::internal, .message = "result " + toString(inferred[i]) + " has a dynamic size"};
    try {
      made[i] = Array::empty(inferred[i].dtype, inferred[i].shape);
    } catch (const std::bad_alloc &) {
      return outOfMemory(inferred[i]);
    }
  }
  try {
    status = op.kernel(operands, attrs, std::span(made).first(results.size()));
  } catch (const std::bad_alloc &) {
    return outOfMemory(inferred[0]);
  }
  if (!status.ok())
    return status;
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = std::move(made[i]);
  return {};
}

//===- NaN and infinity -------------------------------------------------------------------------------------------===//

static constinit std::atomic<bool> debugNans = false;
void setDebugNans(bool debug) { debugNans = debug; }
bool debugsNans() { return debugNans.load(std::memory_order_relaxed); }

/// The first element for which `holds`, -1 if there is none; of floats only.
template <class Holds> static int64_t findFloat(const Array &x, Holds holds) {
  auto find = [&](auto elements) -> int64_t {
    for (size_t i = 0; i < elements.size(); ++i)
      if (holds(elements[i]))
        return static_cast<int64_t>(i);
    return -1;
  };
  return x.dtype() == DType::f64 ? find(x.span<double>()) : x.dtype() == DType::f32 ? find(x.span<float>()) : -1;
}

static Status checkNans(const OpCall &call, std::span<const Array> results) {
  if (call.operands.empty()) // what is written in the program
    return {};
  auto isNan = [](auto x) { return std::isnan(x); };
  auto isInfinite = [](auto x) { return std::isinf(x); };
  auto isNew = [&](const Array &y, auto holds) -> int64_t {
    int64_t at = findFloat(y, holds);
    for (const Array &operand : call.operands)
      if (at >= 0 && findFloat(operand, holds) >= 0)
        return -1;
    return at;
  };
  for (const Array &y : results) {
    int64_t nan = isNew(y, isNan), at = nan >= 0 ? nan : isNew(y, isInfinite);
    if (at < 0)
      continue;
    Ints place = placeOf(y.shape(), at);
    return Failure{.kind = ErrorKind::runtime,
                   .message = std::string("gives ") + (nan >= 0 ? "NaN" : "an infinity") +
                              (place.empty() ? "" : " at " + toString(place)) + ", which no operand has",
                   .remedy = "look at its operands, or set_debug_nans(false)"};
  }
  return {};
}

static Status executeUnchecked(const OpCall &call, std::span<Array> results);

Status execute(const OpCall &call, std::span<Array> results) {
  Status status = executeUnchecked(call, results);
  if (!debugsNans() || !status.ok()) [[likely]]
    return status;
  status = checkNans(call, results);
  if (status.ok())
    return status;
  std::vector<TensorType> types;
  for (const Array &operand : call.operands)
    types.push_back(operand.type);
  return complete(std::move(status), recordOf(call.op), types, call.where);
}

static Status executeUnchecked(const OpCall &call, std::span<Array> results) {
  const OpRecord &op = recordOf(call.op);
  if (op.loops && !results.empty()) [[likely]] {
    try {
      if (executeLoop(op, call, results[0]))
        return {};
    } catch (const std::bad_alloc &) {
      return complete(outOfMemory(call.operands[0].type), op, std::array{call.operands[0].type}, call.where);
    }
  }
  Status status = executeKernel(op, call.operands, call.attrs, results);
  if (status.ok())
    return status;
  std::vector<TensorType> types;
  for (const Array &operand : call.operands)
    types.push_back(operand.type);
  return complete(std::move(status), op, types, call.where);
}

Status addRowsInPlace(Array &x, const Array &updates, const Array &indices) {
  std::array operands{x, updates, indices};
  return recordOf(OpId::index_add).kernel(operands, IndexAddAttrs::make(0), std::span(&x, 1));
}

} // namespace wg::runtime
