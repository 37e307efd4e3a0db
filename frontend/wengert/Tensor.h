// Tensor: a value. Ops on tensors are in Ops.h.
//
// A tensor is immutable; a handle to it costs a pointer and copies share. Inside a traced function a tensor is
// symbolic: it has a dtype and a shape but no elements, and is used only in the trace that made it.
#pragma once

#include <wengert/Error.h>
#include <wengert/Index.h>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace wg {

class Variable;
class Grad;
class RowIterator;

/// A C++ number, as a literal in an expression. A 128-bit integer, which no dtype holds, is none.
template <class T>
concept Arithmetic = std::is_floating_point_v<T> || (std::is_integral_v<T> && sizeof(T) <= 8);

/// A dtype and a shape, for tracing without data: `{f32, {wg::dynamic, 784}}`. A size -1 is `?` too.
struct TensorSpec {
  DType dtype = f32;
  Shape shape;
};

namespace detail {

/// What every tensor has; the rest is frontend/staging/Apply.h.
struct TensorBody {
  mutable std::atomic<int64_t> references{1};
  TensorType type;
};
WENGERT_API void destroy(const TensorBody *body) noexcept;

/// The type in which a tensor holds a C++ number, by kind and width: `long` and `long long` are both i64, what is
/// narrower than an i32 becomes one but for u8, and unsigned numbers become the next wider signed ones.
template <Arithmetic T> constexpr auto storedOf() {
  if constexpr (std::same_as<T, bool>)
    return bool();
  else if constexpr (std::floating_point<T>)
    return std::conditional_t<(sizeof(T) <= 4), float, double>();
  else if constexpr (sizeof(T) == 1 && std::is_unsigned_v<T>)
    return uint8_t();
  else
    return std::conditional_t<(sizeof(T) + std::is_unsigned_v<T> <= 4), int32_t, int64_t>();
}
template <class T> using Stored = decltype(storedOf<std::remove_cv_t<T>>());

/// The dtype that a C++ number has as a tensor.
template <Arithmetic T> constexpr DType elementOf() { return runtime::dtypeOf<Stored<T>>; }

/// The C++ types that stand for a dtype as they are: a tensor's elements can be seen as these.
template <class T>
concept Storage = Arithmetic<T> && sizeof(T) == sizeof(Stored<T>) && std::is_signed_v<T> == std::is_signed_v<Stored<T>>;

/// Numbers one after the other in memory.
template <class R>
concept NumberRange = requires(const R &range) { std::span(range); } &&
                      Arithmetic<typename decltype(std::span(std::declval<const R &>()))::value_type>;

/// How deep vectors of numbers nest: `std::vector<float>` 1, `std::vector<std::vector<float>>`
/// 2; 0 for what is no such vector.
template <class T> inline constexpr int nesting = 0;
template <Arithmetic T, class A> inline constexpr int nesting<std::vector<T, A>> = 1;
template <class T, class A>
  requires(nesting<T> > 0)
inline constexpr int nesting<std::vector<T, A>> = nesting<T> + 1;
template <class T> struct InnermostOf {
  using Type = T;
};
template <class T, class A> struct InnermostOf<std::vector<T, A>> : InnermostOf<T> {};
template <class T> using Innermost = typename InnermostOf<T>::Type;

/// What from_blob does in the end: `deleter(pointer)` or `deleter()`.
struct KeepMemory {
  void operator()() const {}
};
template <class T, class Deleter> struct BlobOwner {
  Deleter deleter;
  T *data;
  static void end(Deleter &deleter, T *data) noexcept {
    if constexpr (std::is_invocable_v<Deleter &, T *>)
      deleter(data);
    else
      deleter();
  }
  static void release(void *owner) noexcept {
    std::unique_ptr<BlobOwner> self(static_cast<BlobOwner *>(owner));
    end(self->deleter, self->data);
  }
};

[[noreturn]] WENGERT_API void raiseBeyondI64(uint64_t number, const Where &where);

/// A C++ number as a tensor holds it; an error for one beyond i64.
template <Arithmetic T> Stored<T> stored(T number, const Where &where) {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
    if (number > static_cast<T>(INT64_MAX)) [[unlikely]]
      raiseBeyondI64(number, where);
  return static_cast<Stored<T>>(number);
}

} // namespace detail

class WENGERT_API Tensor {
public:
  /// No tensor; using it in an op is an error.
  Tensor() = default;
  /// A scalar of the C++ type's dtype: `Tensor(3.0f)` is f32. Types without a dtype convert by value, here and below:
  /// int8, int16 and uint16 to i32, uint32 and uint64 to i64 (an error beyond its range), long double to f64.
  template <Arithmetic T>
  explicit Tensor(T scalar, Where where = Where::current()) : Tensor(copyOf(&scalar, Shape(), where)) {}
  /// One, two or three nested lists; rows of unequal length are an error.
  template <Arithmetic T>
  Tensor(std::initializer_list<T> values, Where where = Where::current())
      : Tensor(copyOf(values.begin(), Shape{static_cast<int64_t>(values.size())}, where)) {}
  template <Arithmetic T>
  Tensor(std::initializer_list<std::initializer_list<T>> rows, Where where = Where::current())
      : Tensor(nested(rows, where)) {}
  template <Arithmetic T>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes, Where where = Where::current())
      : Tensor(nested(planes, where)) {}
  /// A tensor without data that stands for an argument of Function::trace.
  Tensor(const TensorSpec &spec);
  /// The value of a gradient; an empty one throws its reason.
  Tensor(const Grad &grad, Where where = Where::current());

  /// A copy of `values`, which holds shape.numElements() elements in row-major order.
  template <Arithmetic T>
  static Tensor from(std::span<const T> values, const Shape &shape, Where where = Where::current()) {
    checkCount(values.size(), shape, where);
    return copyOf(values.data(), shape, where);
  }
  template <Arithmetic T>
  static Tensor from(const std::vector<T> &values, const Shape &shape, Where where = Where::current()) {
    return from(std::span<const T>(values), shape, where);
  }
  template <Arithmetic T> static Tensor from(const std::vector<T> &values, Where where = Where::current()) {
    return from(std::span<const T>(values), Shape{static_cast<int64_t>(values.size())}, where);
  }
  /// The same of other numbers in a row: std::array, a span of what is not const, a C array. Without
  /// a shape the result has rank 1.
  template <detail::NumberRange R>
  static Tensor from(const R &values, const Shape &shape, Where where = Where::current()) {
    std::span numbers(values);
    checkCount(numbers.size(), shape, where);
    return copyOf(numbers.data(), shape, where);
  }
  template <detail::NumberRange R> static Tensor from(const R &values, Where where = Where::current()) {
    return from(values, Shape{static_cast<int64_t>(std::span(values).size())}, where);
  }
  /// A shape in braces is no Where, be it `{0}` or `{}`.
  template <detail::NumberRange R>
  static Tensor from(const R &values, std::initializer_list<int64_t> shape, Where where = Where::current()) {
    return from(values, Shape(shape), where);
  }
  static Tensor from(const std::vector<bool> &values, const Shape &shape, Where where = Where::current());
  static Tensor from(const std::vector<bool> &values, Where where = Where::current());
  /// Of vectors of vectors, an axis for each; rows of unequal length are an error.
  template <class T>
    requires(detail::nesting<T> > 1)
  static Tensor from(const T &rows, Where where = Where::current()) {
    static_assert(detail::nesting<T> <= runtime::kMaxRank, "the highest rank of a tensor is 8");
    Shape shape;
    sizesOf(rows, shape);
    detail::Stored<detail::Innermost<T>> *next;
    Tensor tensor = empty<detail::Innermost<T>>(shape, next, where);
    copyRows(rows, shape, 0, next, where);
    return tensor;
  }

  /// A tensor of elements that lie at `data`, in row-major order; nothing is copied. The dtype is that of T: double,
  /// float, std::int64_t, std::int32_t, std::uint8_t, bool. `data` is aligned as T is; 64 bytes are faster. Examples:
  ///
  ///     Tensor a = Tensor::from_blob(array, {2, 3}); // the array outlives the tensor
  ///     Tensor b = Tensor::from_blob(new float[6], {2, 3}, [](float *p) { delete[] p; });
  ///     Tensor c = Tensor::from_blob(shared->data(), {2, 3}, [shared] {}); // a std::shared_ptr keeps them
  ///
  /// Until the last handle to the memory goes, it must exist and its contents must not change: tensors are immutable,
  /// tapes and traced functions keep those that they saw, and reshape shares memory. Nothing here writes to it: a
  /// compiled step that updates a variable in place copies first where the variable's value is such memory.
  ///
  /// `deleter(data)`, or `deleter()`, is called once: when that handle goes, on the thread where it does,
  /// or before from_blob throws. It must not throw and must not use tensors or variables. Without a deleter
  /// the memory stays the caller's.
  ///
  /// Errors: a negative size or `?`; a null pointer to elements; a pointer that is not aligned as T is.
  template <class T, class Deleter = detail::KeepMemory>
  static Tensor from_blob(T *data, const Shape &shape, Deleter deleter = {}, Where where = Where::current()) {
    static_assert(detail::Storage<std::remove_cv_t<T>>,
                  "no tensor has elements of this type: give a pointer to double, float, int64_t, int32_t, uint8_t or "
                  "bool, or copy with Tensor::from");
    static_assert(std::is_invocable_v<Deleter &, T *> || std::is_invocable_v<Deleter &>,
                  "the deleter is called as deleter(pointer) or deleter()");
    using Owner = detail::BlobOwner<T, Deleter>;
    Owner *owner;
    try {
      owner = new Owner{std::move(deleter), data};
    } catch (...) {
      Owner::end(deleter, data);
      throw;
    }
    return blob(detail::elementOf<std::remove_cv_t<T>>(), data, shape, &Owner::release, owner, where);
  }

  Tensor(const Tensor &other) noexcept : body_(other.body_) { retain(); }
  Tensor(Tensor &&other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  /// Of a named handle only: `x[0] = y` would replace a temporary, and does not compile.
  Tensor &operator=(Tensor other) & noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Tensor() { release(); }

  bool defined() const { return body_ != nullptr; }
  DType dtype(Where where = Where::current()) const { return body(where)->type.dtype; }
  /// In a traced function a size may be `?`. It prints so, and as a number it is `wg::dynamic`, the lowest i64: compare
  /// it with that, do not compute with it (`dim` refuses it). An unchanged copy of the shape remembers whose
  /// sizes these are: `ones(x.shape())`.
  const Shape &shape(Where where = Where::current()) const & { return body(where)->type.shape; }
  Shape shape(Where where = Where::current()) const && { return body(where)->type.shape; }
  /// The size of an axis, as a number to compute with; negative axes count from the end. Errors: no such axis; a size
  /// that is `?`.
  int64_t dim(int64_t axis, Where where = Where::current()) const;
  int rank(Where where = Where::current()) const { return body(where)->type.shape.rank(); }
  /// Number of elements; an error if a size is `?`.
  int64_t size(Where where = Where::current()) const;
  /// Inside a traced function: no elements yet.
  bool symbolic() const;

  /// The one element, as `cast` converts to T's dtype, and from there as C++ does. Errors: more elements than one, a
  /// symbolic tensor.
  template <Arithmetic T> T item(Where where = Where::current()) const {
    detail::Stored<T> value;
    copyOut(detail::elementOf<T>(), &value, true, where);
    return static_cast<T>(value);
  }
  /// The elements in row-major order, converted in the same way.
  template <Arithmetic T> std::vector<T> to_vector(Where where = Where::current()) const {
    static_assert(!std::same_as<T, bool>, "std::vector<bool> has no elements to point at: use to_vector<uint8_t>()");
    std::vector<detail::Stored<T>> values(static_cast<size_t>(size(where)));
    copyOut(detail::elementOf<T>(), values.data(), false, where);
    if constexpr (std::same_as<T, detail::Stored<T>>) {
      return values;
    } else {
      std::vector<T> converted;
      converted.reserve(values.size());
      for (detail::Stored<T> value : values)
        converted.push_back(static_cast<T>(value));
      return converted;
    }
  }
  /// The elements as C++ values, converted in the same way: one number (`to<float>()`, as item),
  /// all of them in row-major order
  /// (`to<std::vector<float>>()`, as to_vector; bool too), or nested (`to<std::vector<std::vector<float>>>()`),
  /// where the rank must be the depth.
  template <class T> T to(Where where = Where::current()) const {
    static_assert(Arithmetic<T> || detail::nesting<T> > 0,
                  "a tensor is converted to a number, or to a std::vector of numbers or of such vectors");
    if constexpr (Arithmetic<T>) {
      return item<T>(where);
    } else {
      using Number = detail::Innermost<T>;
      if constexpr (detail::nesting<T> > 1)
        checkNesting(detail::nesting<T>, where);
      if constexpr (std::same_as<Number, bool>) {
        std::vector<uint8_t> flat(static_cast<size_t>(size(where))); // std::vector<bool> has no elements to point at
        copyOut(boolean, flat.data(), false, where);
        const uint8_t *next = flat.data();
        return nest<T>(0, next);
      } else if constexpr (detail::nesting<T> == 1 && std::same_as<T, std::vector<Number>>) {
        return to_vector<Number>(where);
      } else {
        std::vector<Number> flat = to_vector<Number>(where);
        const Number *next = flat.data();
        return nest<T>(0, next);
      }
    }
  }
  /// The elements in place, valid while a handle to this tensor lives; T must stand for dtype().
  template <detail::Storage T> std::span<const T> data(Where where = Where::current()) const {
    return {static_cast<const T *>(elements(detail::elementOf<T>(), where)), static_cast<size_t>(size(where))};
  }

  /// Parts, as NumPy reads them; a tensor is immutable, so nothing can be assigned to one. `x[i]` is x at place i of
  /// the first axis, `x[{i, j}]`, and `x[{1, slice(0, 3), newaxis}]` where each place, slice or new axis is for the
  /// next axis; those left over are whole. Places count from the end if negative. An op like `index` and `slice`:
  /// differentiable, traced, also for sizes `?`. Errors: more places than axes; a place outside of its axis (of a `?`:
  /// when the function runs); two ellipses; a step that is not positive.
  Tensor operator[](const Indices &indices) const;

  /// Iteration over the first axis: `for (Tensor row : x)` gives x[0], x[1], ... Each is an op, of which
  /// tapes and traces have a record. Errors: a scalar; a first size that is `?`, for which a trace would have
  /// to know how many rows there are.
  RowIterator begin(Where where = Where::current()) const;
  RowIterator end(Where where = Where::current()) const;

  /// The same tensor, not an equal one.
  bool is(const Tensor &other) const { return body_ == other.body_; }

  detail::TensorBody *body() const { return body_; }
  detail::TensorBody *body(const Where &where) const {
    if (!body_) [[unlikely]]
      undefined(where);
    return body_;
  }
  /// Takes over a reference.
  explicit Tensor(detail::TensorBody *body) noexcept : body_(body) {}

private:
  /// A tensor whose elements are still to be written, at `elements`.
  Tensor(DType dtype, const Shape &shape, void **elements, const Where &where);
  [[noreturn]] static void undefined(const Where &where);
  static void checkCount(size_t count, const Shape &shape, const Where &where);
  [[noreturn]] static void ragged(size_t expected, size_t found, const Where &where);
  void copyOut(DType as, void *to, bool one, const Where &where) const;
  const void *elements(DType as, const Where &where) const;
  /// `release(owner)` is called once, whatever happens.
  static Tensor blob(DType dtype, const void *data, const Shape &shape, void (*release)(void *owner) noexcept,
                     void *owner, const Where &where);
  void checkNesting(int depth, const Where &where) const;
  /// The size of the first axis, which is known.
  int64_t rows(const Where &where) const;
  /// The elements from `next` on, which is moved behind them; `axis` is the first that counts. A vector of
  /// numbers takes all that there are.
  template <class T, class Element> T nest(int axis, const Element *&next) const {
    const Shape &shape = body_->type.shape;
    if constexpr (detail::nesting<T> == 1) {
      int64_t count = axis == 0 ? shape.numElements() : shape.dim(axis);
      const Element *begin = std::exchange(next, next + count);
      return T(begin, next);
    } else {
      T rows;
      rows.reserve(static_cast<size_t>(shape.dim(axis)));
      for (int64_t i = 0; i < shape.dim(axis); ++i)
        rows.push_back(nest<typename T::value_type>(axis + 1, next));
      return rows;
    }
  }

  template <Arithmetic T> static Tensor empty(const Shape &shape, detail::Stored<T> *&next, const Where &where) {
    void *elements;
    Tensor tensor(detail::elementOf<T>(), shape, &elements, where);
    next = static_cast<detail::Stored<T> *>(elements);
    return tensor;
  }
  template <Arithmetic T>
  static detail::Stored<T> *copy(const T *from, size_t count, detail::Stored<T> *to, const Where &where) {
    return std::transform(from, from + count, to, [&](T number) { return detail::stored(number, where); });
  }
  template <Arithmetic T> static Tensor copyOf(const T *values, const Shape &shape, const Where &where) {
    detail::Stored<T> *next;
    Tensor tensor = empty<T>(shape, next, where);
    copy(values, static_cast<size_t>(shape.numElements()), next, where);
    return tensor;
  }
  /// The sizes of nested vectors, as their first elements have them.
  template <class T> static void sizesOf(const T &rows, Shape &shape) {
    shape.push_back(static_cast<int64_t>(rows.size()));
    if constexpr (detail::nesting<T> > 1) {
      if (rows.empty())
        sizesOf(typename T::value_type(), shape);
      else
        sizesOf(rows.front(), shape);
    }
  }
  template <class T>
  static void copyRows(const T &rows, const Shape &shape, int axis, detail::Stored<detail::Innermost<T>> *&next,
                       const Where &where) {
    if (static_cast<int64_t>(rows.size()) != shape.dim(axis))
      ragged(static_cast<size_t>(shape.dim(axis)), rows.size(), where);
    if constexpr (detail::nesting<T> > 1)
      for (const auto &row : rows)
        copyRows(row, shape, axis + 1, next, where);
    else
      for (detail::Innermost<T> number : rows)
        *next++ = detail::stored(number, where);
  }
  template <Arithmetic T>
  static Tensor nested(std::initializer_list<std::initializer_list<T>> rows, const Where &where) {
    size_t width = rows.size() ? rows.begin()->size() : 0;
    Shape shape{static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)};
    detail::Stored<T> *next;
    Tensor tensor = empty<T>(shape, next, where);
    for (const auto &row : rows) {
      if (row.size() != width)
        ragged(width, row.size(), where);
      next = copy(row.begin(), width, next, where);
    }
    return tensor;
  }
  template <Arithmetic T>
  static Tensor nested(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
                       const Where &where) {
    size_t height = planes.size() ? planes.begin()->size() : 0;
    size_t width = height ? planes.begin()->begin()->size() : 0;
    Shape shape{static_cast<int64_t>(planes.size()), static_cast<int64_t>(height), static_cast<int64_t>(width)};
    detail::Stored<T> *next;
    Tensor tensor = empty<T>(shape, next, where);
    for (const auto &rows : planes) {
      if (rows.size() != height)
        ragged(height, rows.size(), where);
      for (const auto &row : rows) {
        if (row.size() != width)
          ragged(width, row.size(), where);
        next = copy(row.begin(), width, next, where);
      }
    }
    return tensor;
  }
  void retain() const noexcept {
    if (body_)
      body_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    // The only handle need not count down, which is a locked instruction.
    if (body_ && (body_->references.load(std::memory_order_acquire) == 1 ||
                  body_->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      detail::destroy(body_);
  }

  detail::TensorBody *body_ = nullptr;
};

/// A place on the first axis of a tensor, which it keeps alive.
class RowIterator {
public:
  using value_type = Tensor;
  using reference = Tensor; ///< made when it is asked for
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;

  RowIterator() = default;
  RowIterator(Tensor x, int64_t at, Where where) : x_(std::move(x)), at_(at), where_(where) {}
  Tensor operator*() const { return x_[Indices(at_, where_)]; }
  RowIterator &operator++() {
    ++at_;
    return *this;
  }
  RowIterator operator++(int) { return RowIterator(x_, at_++, where_); }
  friend bool operator==(const RowIterator &a, const RowIterator &b) { return a.at_ == b.at_; }

private:
  Tensor x_;
  int64_t at_ = 0;
  Where where_;
};
inline RowIterator Tensor::begin(Where where) const {
  rows(where);
  return RowIterator(*this, 0, where);
}
inline RowIterator Tensor::end(Where where) const { return RowIterator(*this, rows(where), where); }

/// `Tensor(12.0, shape=(), dtype=float32)`; arrays nest as NumPy prints them.
WENGERT_API std::ostream &operator<<(std::ostream &out, const Tensor &tensor);
WENGERT_API std::string to_string(const Tensor &tensor);

/// An operand together with the place in the source where it was written. Made implicitly from a tensor, a variable
/// (which reads it), a gradient, or a C++ number, which takes the dtype of the other operand. Made for one call: it
/// refers to a tensor that has a name, holds one that has none, and is not copied.
class WENGERT_API Located {
public:
  Located(const Tensor &tensor, Where where = Where::current()) : tensor_(&tensor), where_(where) {}
  Located(Tensor &&tensor, Where where = Where::current()) : tensor_(&held_), held_(std::move(tensor)), where_(where) {}
  Located(const Variable &variable, Where where = Where::current());
  Located(const Grad &grad, Where where = Where::current());
  template <Arithmetic T>
  Located(T literal, Where where = Where::current()) : where_(where), dtype_(detail::elementOf<T>()) {
    if constexpr (std::floating_point<T>)
      real_ = static_cast<double>(literal);
    else
      real_ = static_cast<double>(integer_ = detail::stored(literal, where));
  }

  Located(const Located &) = delete;
  Located &operator=(const Located &) = delete;

  bool isLiteral() const { return !tensor_ && !held_.defined(); }
  /// The tensor; requires !isLiteral().
  const Tensor &tensor() const { return tensor_ ? *tensor_ : held_; }
  /// Of a literal: the dtype of its C++ type, its value, and its value if that dtype is no float.
  DType literalType() const { return dtype_; }
  double real() const { return real_; }
  int64_t integer() const { return integer_; }
  const Where &where() const { return where_; }

private:
  const Tensor *tensor_ = nullptr;
  Tensor held_;
  Where where_;
  double real_ = 0;
  int64_t integer_ = 0;
  DType dtype_ = f32;
};

} // namespace wg
