// What an operation is at run time: its number, its attributes, its record (name, shape rule, kernel). No MLIR here.
//
// The records are written by tools/gen_ops.py from ir/ops/*.td (OpTable.inc, OpIds.inc); the shape rules and kernels
// are the rows of runtime/kernels/*.cpp, joined to the records by name.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"

#include <atomic>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace wg::runtime {

/// One number for each op of the dialect: OpId::add, OpId::reduce_sum, ...
enum class OpId : uint16_t {
#define WG_OP(name, ...) name,
#include "runtime/OpIds.inc"
#undef WG_OP
};
inline constexpr int kNumOps = 0
#define WG_OP(name, ...) +1
#include "runtime/OpIds.inc"
#undef WG_OP
    ;

/// The value of one attribute. The alternatives are in the order of AttrKind.
using AttrValue = std::variant<int64_t, double, DType, Ints, std::string, Array, bool>;
enum class AttrKind : uint8_t { integer, real, dtype, ints, string, array, boolean };

/// The attributes of an op in the order of its record; immutable and shared. Ops without
/// attributes cost a null pointer.
class Attrs {
public:
  Attrs() = default;
  explicit Attrs(std::vector<AttrValue> values);
  Attrs(const Attrs &other) noexcept : data_(other.data_) { retain(); }
  Attrs(Attrs &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Attrs &operator=(Attrs other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Attrs() { release(); }

  size_t size() const { return data_ ? data_->values.size() : 0; }
  const AttrValue &operator[](size_t i) const { return data_->values[i]; }
  int64_t integer(size_t i) const { return std::get<int64_t>((*this)[i]); }
  double real(size_t i) const { return std::get<double>((*this)[i]); }
  DType dtype(size_t i) const { return std::get<DType>((*this)[i]); }
  const Ints &ints(size_t i) const { return std::get<Ints>((*this)[i]); }
  const std::string &string(size_t i) const { return std::get<std::string>((*this)[i]); }
  const Array &array(size_t i) const { return std::get<Array>((*this)[i]); }
  bool boolean(size_t i) const { return std::get<bool>((*this)[i]); }

  /// Computed once, when made; equal attributes have equal hashes. An array counts by type and bytes.
  uint64_t hash() const { return data_ ? data_->hash : 0; }
  friend bool operator==(const Attrs &a, const Attrs &b);

private:
  struct Data {
    std::vector<AttrValue> values;
    uint64_t hash;
    std::atomic<int64_t> references;
  };
  void retain() const {
    if (data_)
      data_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (data_ && data_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete data_;
  }
  Data *data_ = nullptr;
};

#include "runtime/OpAttrs.inc"

/// Types of an op's operands, in; types of its results, out.
using TypeSpan = std::span<const TensorType>;
struct TypeList {
  TensorType types[4]; ///< an op of the dialect has at most 4 results; calls do not come here
  int count = 0;
  void push_back(const TensorType &type) { types[count++] = type; }
  const TensorType &operator[](size_t i) const { return types[i]; }
};

/// Result types from operand types, or the broken rule. Sizes may be dynamic: two `?` count as equal. An index operand
/// counts as `i64[]`.
///
/// Attributes that are open (AttrRecord) may hold `?`, and the op has one trailing index operand for each, in the order
/// of the attributes. When such an op is executed, `resolve` first writes the operands' values into the attributes and
/// drops the operands; so a kernel, and the shape rule that decides what to allocate, only ever see the static form.
/// That the number of operands fits is checked before a rule is asked.
using ShapeRule = Status (*)(TypeSpan operands, const Attrs &attrs, TypeList &results);
/// Computes into `results`, whose buffers are allocated, hold the inferred types, and are distinct from the operands'.
/// All sizes are static. A failure leaves the contents of the results undefined.
using Kernel = Status (*)(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results);

/// `n` elements of an elementwise op whose operands have one type: the short way of eager mode and of thread splitting.
using ElementLoop = void (*)(const void *const *operands, void *result, int64_t n);

struct ExternalRow; // runtime/External.h

/// A row of a kernel table: what runtime/kernels/<Family>.cpp says of one op.
struct KernelRow {
  const char *name;
  ShapeRule shape;
  Kernel kernel;
  const ElementLoop *loops = nullptr; ///< one for each dtype of the operands, null where there is none
  bool predicate = false;             ///< the loops write bool, else the operands' dtype
  bool shares = false; ///< the result is operand 0's elements under another type: execute() shares the buffer
  const ExternalRow *external = nullptr; ///< the routine that is the kernel, in compiled code too
};

/// One attribute of a record.
struct AttrRecord {
  const char *name;
  AttrKind kind;
  bool open = false; ///< a list of sizes or places that may hold `?`
};

/// Everything the runtime knows of an op.
struct OpRecord {
  OpId id;
  const char *name;    ///< `reduce_sum`
  const char *summary; ///< `y = sum of x over axes`
  int numOperands;     ///< fixed operands; trailing index operands and variadic ones come on top
  bool variadic;       ///< more operands may follow the fixed ones
  DTypeSet dtypes;     ///< what the data operands accept
  bool differentiable; ///< has a derivative rule
  bool elementwise;    ///< equal shapes in, the same shape out, one element at a time
  std::span<const AttrRecord> attrs;
  ShapeRule shape = nullptr;
  Kernel kernel = nullptr;            ///< null for ops that only the program's structure executes (call, kernel)
  const ElementLoop *loops = nullptr; ///< see KernelRow
  bool predicate = false;
  bool shares = false;
  const ExternalRow *external = nullptr;
  bool sized = false; ///< has open attributes, so that index operands may follow
};

/// The record of an op, with the kernels for this machine's x86-64 level.
const OpRecord &recordOf(OpId id);
/// By name, without the dialect's prefix; null if there is none.
const OpRecord *findOp(std::string_view name);
/// While it is set, a float result with a NaN or an infinity that no float operand has is a failure of the op.
void setDebugNans(bool debug);
bool debugsNans();
/// This machine's x86-64 level, of which kernels and routines are: 2, 3 or 4. `WENGERT_CPU_LEVEL` lowers it.
int machineLevel();

/// An operation to be done: what every front end hands to the gate and every program stores.
template <class Operand> struct OpCallOf {
  OpId op;
  Attrs attrs;
  std::span<const Operand> operands;
  Where where;
};
using OpCall = OpCallOf<Array>;

/// The result types of `op`; on failure the Failure has op and operand types filled in.
Status inferTypes(OpId op, TypeSpan operands, const Attrs &attrs, TypeList &results);
/// Replaces each `?` of the open attributes by the value of its trailing index operand. `operands` loses those operands
/// and `attrs` is replaced; both stay as they are if there is nothing to resolve.
Status resolve(OpId op, std::span<const Array> &operands, Attrs &attrs);
/// Resolves, infers, allocates, computes. Where an elementwise op has operands of rank 0 beside others, these
/// count at every place, as if they had been broadcast: so literals need no memory. (The shape rules, and so
/// programs, know no such thing: there a broadcast is an op.) On failure op, operands and `call.where` are filled
/// in and `results` is unchanged. A result may share an operand's buffer (reshape, stop_gradient): whoever writes
/// in place asks Buffer::unique() first.
Status execute(const OpCall &call, std::span<Array> results);
/// What index_add adds, in x's own buffer, which has no other owner. A failure if an index is out of range, and x is as
/// it was.
Status addRowsInPlace(Array &x, const Array &updates, const Array &indices);
/// The op with two operands, x and one element of x's dtype, which comes first if `first`. False, and nothing done, if
/// the op has no loop for it. Throws std::bad_alloc.
bool executeBeside(OpId op, const Array &x, const void *number, bool first, Array &result);

} // namespace wg::runtime
