// Grad: a gradient that exists, or the reason why it does not.
#pragma once

#include <wengert/Tensor.h>

#include <array>
#include <iosfwd>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace wg {

/// A gradient that is zero but at some rows: `rows[i]` is added at row `indices[i]` of a tensor of `shape`. An index
/// may be there several times.
struct SparseRows {
  Tensor indices; ///< i64[n] or i32[n], in [0, shape[0])
  Tensor rows;    ///< [n, shape[1:]...]
  Shape shape;
};

namespace detail {
struct SparseState;
}

/// A gradient, or why there is none. That of a tensor from which rows were gathered and nothing else was computed is
/// kept as these rows, unless a tape records it: SGD and Adagrad, clipping and accumulation touch no others. Wherever
/// a tensor is asked for it is that tensor, with the rows added up. Of a concrete function and an object file it is two
/// results, indices and rows.
class WENGERT_API Grad {
public:
  Grad();
  Grad(Tensor value);
  Grad(SparseRows rows, Where where = Where::current());
  Grad(const Grad &other);
  Grad(Grad &&other) noexcept;
  Grad &operator=(const Grad &other);
  Grad &operator=(Grad &&other) noexcept;
  ~Grad();
  static Grad none(std::string reason);

  bool has_value() const { return value_.defined() || sparse_; }
  explicit operator bool() const { return has_value(); }
  bool operator!() const { return !has_value(); }
  bool is_sparse() const { return sparse_ != nullptr; }
  /// The rows; an error if it is not sparse.
  const SparseRows &sparse_rows(Where where = Where::current()) const;
  /// Throws Error with the reason if there is none.
  const Tensor &value(Where where = Where::current()) const & {
    if (!value_.defined()) [[unlikely]]
      return denseValue(where);
    return value_;
  }
  Tensor value(Where where = Where::current()) const && { return value(where); }
  /// Why it is empty: not watched, no path, blocked at an op (with its line), an integer dtype.
  const std::string &reason() const & { return reason_; }
  std::string reason() const && { return reason_; }

  // What the tensor has; of an empty one, the error of value().
  DType dtype(Where where = Where::current()) const {
    return is_sparse() ? sparse_rows(where).rows.dtype(where) : value(where).dtype(where);
  }
  const Shape &shape(Where where = Where::current()) const & {
    return is_sparse() ? sparse_rows(where).shape : value(where).shape(where);
  }
  Shape shape(Where where = Where::current()) const && { return shape(where); }
  int64_t dim(int64_t axis, Where where = Where::current()) const { return value(where).dim(axis, where); }
  int rank(Where where = Where::current()) const { return shape(where).rank(); }
  int64_t size(Where where = Where::current()) const {
    return is_sparse() ? shape(where).numElements() : value(where).size(where);
  }
  template <Arithmetic T> T item(Where where = Where::current()) const { return value(where).template item<T>(where); }
  template <Arithmetic T> std::vector<T> to_vector(Where where = Where::current()) const {
    return value(where).template to_vector<T>(where);
  }
  template <class T> T to(Where where = Where::current()) const { return value(where).template to<T>(where); }
  Tensor operator[](const Indices &indices) const { return value(indices.where)[indices]; }
  RowIterator begin(Where where = Where::current()) const { return value(where).begin(where); }
  RowIterator end(Where where = Where::current()) const { return value(where).end(where); }

private:
  /// The rows added up, once; an error with the reason if there are none.
  const Tensor &denseValue(const Where &where) const;
  [[noreturn]] void raiseEmpty(const Where &where) const;
  Tensor value_;
  std::shared_ptr<detail::SparseState> sparse_;
  std::string reason_;
};

/// The tensor, or `None: reason`.
WENGERT_API std::ostream &operator<<(std::ostream &out, const Grad &grad);
WENGERT_API std::string to_string(const Grad &grad);

namespace detail {
WENGERT_API std::vector<Grad> listOf(const Grad *grads, size_t count);
/// At the end of a list of gradients. (In the library, like more in these headers that is short: what is no template is
/// compiled once, and not in every program.)
WENGERT_API void append(std::vector<Grad> &grads, const Grad &grad);
} // namespace detail

/// As many gradients as there were sources: `auto [dw, db] = tape.gradient(loss, {w, b});`. Also a list of any length.
template <size_t n> struct GradArray : std::array<Grad, n> {
  operator std::vector<Grad>() const { return detail::listOf(this->data(), n); }
};

namespace detail {
template <size_t n> GradArray<n> arrayOf(std::vector<Grad> grads) {
  GradArray<n> array;
  for (size_t i = 0; i < n; ++i)
    array[i] = std::move(grads[i]);
  return array;
}
} // namespace detail

} // namespace wg

template <size_t n> struct std::tuple_size<wg::GradArray<n>> : std::integral_constant<size_t, n> {};
template <size_t i, size_t n> struct std::tuple_element<i, wg::GradArray<n>> {
  using type = wg::Grad;
};
