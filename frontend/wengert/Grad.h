// Grad: a gradient that exists, or the reason why it does not.
#pragma once

#include <wengert/Tensor.h>

#include <array>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

namespace wg {

class WENGERT_API Grad {
public:
  Grad() = default;
  Grad(Tensor value) : value_(std::move(value)) {}
  static Grad none(std::string reason) {
    Grad grad;
    grad.reason_ = std::move(reason);
    return grad;
  }

  bool has_value() const { return value_.defined(); }
  explicit operator bool() const { return has_value(); }
  bool operator!() const { return !has_value(); }
  /// Throws Error with the reason if there is none.
  const Tensor &value(Where where = Where::current()) const & {
    if (!has_value()) [[unlikely]]
      raiseEmpty(where);
    return value_;
  }
  Tensor value(Where where = Where::current()) const && { return value(where); }
  /// Why it is empty: not watched, no path, blocked at an op (with its line), an integer dtype.
  const std::string &reason() const & { return reason_; }
  std::string reason() const && { return reason_; }

  // What the tensor has; of an empty one, the error of value().
  DType dtype(Where where = Where::current()) const { return value(where).dtype(where); }
  const Shape &shape(Where where = Where::current()) const & { return value(where).shape(where); }
  Shape shape(Where where = Where::current()) const && { return value(where).shape(where); }
  int64_t dim(int64_t axis, Where where = Where::current()) const { return value(where).dim(axis, where); }
  int rank(Where where = Where::current()) const { return value(where).rank(where); }
  int64_t size(Where where = Where::current()) const { return value(where).size(where); }
  template <Arithmetic T> T item(Where where = Where::current()) const { return value(where).template item<T>(where); }
  template <Arithmetic T> std::vector<T> to_vector(Where where = Where::current()) const {
    return value(where).template to_vector<T>(where);
  }
  template <class T> T to(Where where = Where::current()) const { return value(where).template to<T>(where); }
  Tensor operator[](const Indices &indices) const { return value(indices.where)[indices]; }
  RowIterator begin(Where where = Where::current()) const { return value(where).begin(where); }
  RowIterator end(Where where = Where::current()) const { return value(where).end(where); }

private:
  [[noreturn]] void raiseEmpty(const Where &where) const;
  Tensor value_;
  std::string reason_;
};

/// The tensor, or `None: reason`.
WENGERT_API std::ostream &operator<<(std::ostream &out, const Grad &grad);
WENGERT_API std::string to_string(const Grad &grad);

/// As many gradients as there were sources: `auto [dw, db] = tape.gradient(loss, {w, b});`. Also a list of any length.
template <size_t n> struct GradArray : std::array<Grad, n> {
  operator std::vector<Grad>() const { return {this->begin(), this->end()}; }
};

namespace detail {
template <size_t n> GradArray<n> arrayOf(std::vector<Grad> grads) {
  GradArray<n> array;
  std::move(grads.begin(), grads.end(), array.begin());
  return array;
}
} // namespace detail

} // namespace wg

template <size_t n> struct std::tuple_size<wg::GradArray<n>> : std::integral_constant<size_t, n> {};
template <size_t i, size_t n> struct std::tuple_element<i, wg::GradArray<n>> {
  using type = wg::Grad;
};
