// The sizes of a tensor, known or dynamic, and a tensor's type. Plain values without a heap.
#pragma once

#include "runtime/DType.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

namespace wg::runtime {

/// A size that is known only at run time, written `?`.
inline constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();
/// The highest rank of a tensor.
inline constexpr int kMaxRank = 8;

class Ints;
/// Sizes or axes one after the other in memory. (A parameter std::span would make every copy of a list ask whether it
/// is one, which is a tenth of the time that the public headers take to compile.)
template <class R>
concept IntegerRow = !std::is_base_of_v<Ints, R> && requires(const R &row, const int64_t *&data) {
  data = row.data();
  row.size();
};

/// A short list of integers that needs no heap: the sizes of a shape, a list of axes, a permutation.
class Ints {
public:
  constexpr Ints() = default;
  constexpr Ints(std::initializer_list<int64_t> values) { append(values.begin(), values.size()); }
  /// Of a vector, an array, a span: keeps the first capacity() values; excess() tells how many more there were.
  template <IntegerRow R> constexpr Ints(const R &values) { append(values.data(), values.size()); }
  template <size_t n> constexpr Ints(const int64_t (&values)[n]) { append(values, n); }
  constexpr Ints(size_t count, int64_t value) {
    for (size_t i = 0; i < count; ++i)
      push_back(value);
  }
  static constexpr size_t capacity() { return kMaxRank; }

  constexpr size_t size() const { return size_; }
  /// How many values found no room. A list with an excess stands for nothing: every op and every tensor refuses it.
  constexpr size_t excess() const { return excess_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr int64_t operator[](size_t i) const { return data_[i]; }
  constexpr int64_t &operator[](size_t i) { return forgetOwner(), data_[i]; }
  constexpr const int64_t *data() const { return data_.data(); }
  /// Of a list that is const a span is made as of any range; this is for others, for which begin() would write. A
  /// template, so that it costs nothing where it is not used.
  template <std::same_as<std::span<const int64_t>> Span> constexpr operator Span() { return Span(data_.data(), size_); }
  constexpr const int64_t *begin() const { return data_.data(); }
  constexpr const int64_t *end() const { return data_.data() + size_; }
  constexpr int64_t *begin() { return forgetOwner(), data_.data(); }
  constexpr int64_t *end() { return forgetOwner(), data_.data() + size_; }
  constexpr void push_back(int64_t value) {
    forgetOwner();
    if (size_ < capacity())
      data_[size_++] = value;
    else if (excess_ < 255)
      ++excess_;
  }
  constexpr bool contains(int64_t value) const {
    for (int64_t each : *this)
      if (each == value)
        return true;
    return false;
  }
  friend constexpr bool operator==(const Ints &a, const Ints &b) {
    bool equal = a.size_ == b.size_; // of so few a loop is faster than a call of memcmp
    for (size_t i = 0; equal && i < a.size_; ++i)
      equal = a.data_[i] == b.data_[i];
    return equal;
  }

  /// Whose sizes these are, where that is needed to know what a `?` is: the number of a tensor of a trace, below 2^48;
  /// 0 of all others. A copy has the same owner; what may change a value forgets it. It is no part of what the list is:
  /// equality, hashes and text do not know it.
  constexpr uint64_t owner() const { return uint64_t(ownerHigh_) << 32 | ownerLow_; }
  constexpr void setOwner(uint64_t number) {
    ownerLow_ = static_cast<uint32_t>(number);
    ownerHigh_ = static_cast<uint16_t>(number >> 32);
  }

private:
  constexpr void append(const int64_t *values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      push_back(values[i]);
  }
  constexpr void forgetOwner() {
    if (ownerLow_ || ownerHigh_) // threads that read one list write nothing
      setOwner(0);
  }

  std::array<int64_t, kMaxRank> data_{};
  uint8_t size_ = 0, excess_ = 0;
  uint16_t ownerHigh_ = 0; // in what would be padding
  uint32_t ownerLow_ = 0;
};

/// `[1, 0, ?]`
WENGERT_API std::string toString(const Ints &values);

/// The sizes of a tensor, rank 0 to 8; a size may be `kDynamic` where a type is meant.
class Shape : public Ints {
public:
  using Ints::Ints;
  constexpr explicit Shape(const Ints &dims) : Ints(dims) {}
  constexpr int rank() const { return static_cast<int>(size()); }
  constexpr int64_t dim(int axis) const { return (*this)[static_cast<size_t>(axis)]; }
  constexpr bool isStatic() const { return !contains(kDynamic); }
  /// Number of elements; requires isStatic().
  constexpr int64_t numElements() const {
    int64_t count = 1;
    for (int64_t dim : *this)
      count *= dim;
    return count;
  }
};

/// The index of an element by axis, of a shape whose sizes are known: `[1, 2]` for element 5 of (2, 3).
WENGERT_API Ints placeOf(const Shape &shape, int64_t element);

/// `(2, 3)`, `(5,)`, `()`: as NumPy prints it, a dynamic size as `?`.
WENGERT_API std::string toString(const Shape &shape);

/// A tensor's dtype and shape. Prints as `f32[2,3]`, `f32[?,3]`, `f32[]`.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorType &a, const TensorType &b) = default;
};
WENGERT_API std::string toString(const TensorType &type);

} // namespace wg::runtime
