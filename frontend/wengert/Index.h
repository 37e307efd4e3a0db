// Which part of a tensor is read: `x[i]`, `x[{1, slice(0, 3), newaxis}]`. The operator is Tensor's.
#pragma once

#include <wengert/Error.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace wg {

namespace detail {
template <class T>
concept Place = std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8;

/// A place as an i64. A number beyond it is beyond every axis, and so is the largest i64.
template <Place T> constexpr int64_t placeAs(T place) {
  return std::in_range<int64_t>(place) ? static_cast<int64_t>(place) : std::numeric_limits<int64_t>::max();
}

/// A place, or an axis. No bool: `reduce_sum(x, true)` would be the sum over axis 1.
struct Number {
  template <Place T> constexpr Number(T at) : at(placeAs(at)) {}
  int64_t at;
};

/// A place, or none: `{}`.
struct Bound {
  constexpr Bound() = default;
  template <Place T> constexpr Bound(T place) : at(placeAs(place)) {}
  std::optional<int64_t> at;
};
} // namespace detail

/// The places start, start + step, ... below stop of an axis.
struct Slice {
  std::optional<int64_t> start = {}, stop = {}; ///< from the beginning, to the end, where they are missing
  int64_t step = 1;                             ///< positive
};

/// A whole axis.
constexpr Slice slice() { return {}; }
/// `slice(1, 3)`, `slice({}, 3)` (the first three), `slice(-3, {})` (the last three), `slice({}, {}, 2)` (every other).
/// Negative places count from the end and places clamp, as in the op `slice`. There is no form of one number: Python
/// reads it as stop, others as start.
constexpr Slice slice(detail::Bound start, detail::Bound stop, int64_t step = 1) { return {start.at, stop.at, step}; }

/// An axis of size 1 that x does not have.
struct NewAxis {};
inline constexpr NewAxis newaxis{};
/// As many whole axes as the other places leave; once at most. At the end it may be left out.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};

/// What is read of one axis.
struct Index {
  enum Kind : uint8_t { place, range, added, rest };
  /// One place: the result lacks the axis. Negative ones count from the end.
  template <detail::Place T> constexpr Index(T at) : kind(place), at(detail::placeAs(at)) {}
  constexpr Index(const Slice &slice) : kind(range), slice(slice) {}
  constexpr Index(NewAxis) : kind(added) {}
  constexpr Index(Ellipsis) : kind(rest) {}

  Kind kind;
  int64_t at = 0;
  Slice slice = {};
};

/// What is read of a tensor, from the first axis on, and where that was written.
struct WENGERT_API Indices {
  Indices(std::initializer_list<Index> list, Where where = Where::current());
  Indices(std::vector<Index> list, Where where = Where::current()) : list(std::move(list)), where(where) {}
  template <class T>
    requires(std::convertible_to<T, Index> && !std::same_as<T, Indices>)
  Indices(T index, Where where = Where::current()) : Indices({Index(index)}, where) {}

  std::vector<Index> list;
  Where where;
};

} // namespace wg
