// Variable: state. A named tensor that can be replaced by another of the same dtype and shape.
#pragma once

#include <wengert/Tensor.h>

#include <memory>
#include <string>

namespace wg {

struct VariableOptions {
  std::string name = {};
  bool trainable = true; ///< watched by every tape that sees it read
};

class Variable;

namespace detail {
struct VariableState;
/// Whether two arguments of a call are one: not so in `value_and_grad(f, {0, 1})(v, v)`, which
/// differentiates by each place of v.
WENGERT_API bool isSameArgument(const Variable &a, const Variable &b);
} // namespace detail

/// A handle: copies name the same variable. Reading it on a thread with active tapes makes them watch it.
/// Inside a traced function it is an argument that every call reads anew; assigned there, it is updated in place.
///
/// Threads may read and assign one variable at the same time: each sees a whole value, one of those that it had.
/// `assign_add`, `v -= g` and the like read and then assign; of two at the same time, eagerly, one may be lost. A call
/// of a compiled function that assigns it reads and assigns in one step. The handle itself is a value like a
/// std::shared_ptr: one thread must not replace it while another uses it.
class WENGERT_API Variable {
public:
  Variable();
  explicit Variable(const Tensor &initial, VariableOptions options = {}, Where where = Where::current());
  template <Arithmetic T>
  explicit Variable(T initial, VariableOptions options = {}, Where where = Where::current())
      : Variable(Tensor(initial), std::move(options), where) {}
  /// `Variable(t, "w")`: with a name.
  template <std::convertible_to<std::string> Name>
  explicit Variable(const Tensor &initial, const Name &name, Where where = Where::current())
      : Variable(initial, VariableOptions{.name = name}, where) {}
  template <Arithmetic T, std::convertible_to<std::string> Name>
  explicit Variable(T initial, const Name &name, Where where = Where::current())
      : Variable(Tensor(initial), VariableOptions{.name = name}, where) {}

  Variable(const Variable &other);
  Variable(Variable &&other) noexcept;
  Variable &operator=(const Variable &other);
  Variable &operator=(Variable &&other) noexcept;
  ~Variable();

  bool defined() const { return state_ != nullptr; }
  Tensor value(Where where = Where::current()) const;
  operator Tensor() const { return value({}); }
  /// Replaces the value; dtype and shape must be equal. A state change is no op: no gradient passes through it.
  void assign(const Located &value) const;
  void assign_add(const Located &delta) const;
  void assign_sub(const Located &delta) const;

  DType dtype(Where where = Where::current()) const { return type(where).dtype; }
  const Shape &shape(Where where = Where::current()) const & { return type(where).shape; }
  Shape shape(Where where = Where::current()) const && { return type(where).shape; }
  int64_t dim(int64_t axis, Where where = Where::current()) const;
  int rank(Where where = Where::current()) const { return type(where).shape.rank(); }
  int64_t size(Where where = Where::current()) const { return type(where).shape.numElements(); }
  const std::string &name() const &;
  std::string name() const &&;
  bool trainable() const;
  /// Grows with construction; equal for copies of a handle.
  int64_t id() const;
  template <Arithmetic T> T item(Where where = Where::current()) const { return value(where).template item<T>(where); }

  /// A part of the value: `v[i]`, as of a tensor.
  Tensor operator[](const Indices &indices) const { return value(indices.where)[indices]; }
  /// The rows of the value that it has now: `for (Tensor row : v)`, as of a tensor.
  RowIterator begin(Where where = Where::current()) const { return value(where).begin(where); }
  RowIterator end(Where where = Where::current()) const {
    return RowIterator(Tensor(), rank(where) ? shape(where).dim(0) : 0, where);
  }

  bool is(const Variable &other) const {
    return state_ == other.state_ || (state_ && other.state_ && id() == other.id());
  }
  const std::shared_ptr<detail::VariableState> &state() const { return state_; }
  explicit Variable(std::shared_ptr<detail::VariableState> state) : state_(std::move(state)) {}

private:
  const TensorType &type(const Where &where) const;
  std::shared_ptr<detail::VariableState> state_;
};

/// `Variable("w", 12.0, shape=(), dtype=float32)`
WENGERT_API std::ostream &operator<<(std::ostream &out, const Variable &variable);

} // namespace wg
