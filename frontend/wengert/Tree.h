// Nested structures: what may stand where a tensor may. tuple, pair, array, vector, optional, map with string keys, and
// structs that list their fields: `struct Batch { wg::Tensor x, y; WENGERT_FIELDS(x, y) };`
#pragma once

#include <wengert/Variable.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

/// Inside a struct: the fields that hold tensors, variables, statics, or structures of them.
#define WENGERT_FIELDS(...)                                                                                            \
  auto wengert_fields() { return std::tie(__VA_ARGS__); }                                                              \
  auto wengert_fields() const { return std::tie(__VA_ARGS__); }

namespace wg {

class Grad;

namespace detail {

struct Source;
template <class T>
concept HasFields = requires(T &tree) { tree.wengert_fields(); };
/// A static is a value that a signature can hold: a number of at most 64 bits or a long double, an enum, a string. Pointers are none: what they
/// point at may change.
template <class T>
inline constexpr bool isStatic = ((std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) <= 8) || std::same_as<T, float> ||
                                 std::same_as<T, double> || std::same_as<T, long double> || std::same_as<T, std::string>;
template <class T>
inline constexpr bool isLeaf = std::same_as<T, Tensor> || std::same_as<T, Variable> || std::same_as<T, Grad> ||
                               std::same_as<T, Source> || isStatic<T>;

template <class T> inline constexpr bool isVector = false;
template <class T, class A> inline constexpr bool isVector<std::vector<T, A>> = !std::same_as<T, bool>;
template <class T> inline constexpr bool isOptional = false;
template <class T> inline constexpr bool isOptional<std::optional<T>> = true;
template <class T> inline constexpr bool isMap = false;
template <class T, class C, class A> inline constexpr bool isMap<std::map<std::string, T, C, A>> = true;
template <class T> inline constexpr bool isTuple = false;
template <class... T> inline constexpr bool isTuple<std::tuple<T...>> = true;
template <class A, class B> inline constexpr bool isTuple<std::pair<A, B>> = true;
template <class T, size_t N> inline constexpr bool isTuple<std::array<T, N>> = true;
template <> inline constexpr bool isTuple<std::monostate> = false;

/// Structure that the C++ type does not fix: how many elements follow.
struct Count {
  size_t count;
};
template <class F> void visitCount(size_t count, F &&leaf) {
  Count length{count};
  leaf(length);
}
/// The key of a map, before its element; null after it.
struct Key {
  const std::string *key;
};

/// Calls `leaf` on each leaf in order; on Count before a vector, an optional or a map; on Key around each element of a
/// map.
template <class T, class F> void visit(T &tree, F &&leaf) {
  using U = std::remove_cv_t<T>;
  if constexpr (isLeaf<U>) {
    leaf(tree);
  } else if constexpr (std::same_as<U, std::monostate>) {
  } else if constexpr (isVector<U>) {
    visitCount(tree.size(), leaf);
    for (auto &element : tree)
      visit(element, leaf);
  } else if constexpr (isOptional<U>) {
    visitCount(tree ? 1 : 0, leaf);
    if (tree)
      visit(*tree, leaf);
  } else if constexpr (isMap<U>) {
    visitCount(tree.size(), leaf);
    for (auto &[key, element] : tree) {
      Key begin{&key}, end{nullptr};
      leaf(begin);
      visit(element, leaf);
      leaf(end);
    }
  } else if constexpr (HasFields<U>) {
    std::apply([&](auto &...fields) { (visit(fields, leaf), ...); }, tree.wengert_fields());
  } else if constexpr (isTuple<U>) {
    std::apply([&](auto &...elements) { (visit(elements, leaf), ...); }, tree);
  } else {
    static_assert(isLeaf<U>, "not a tensor, a variable, a number, an enum, a string, or a structure of them; give a "
                             "struct WENGERT_FIELDS(...)");
  }
}

/// The same structure with `f(leaf)` for each leaf. A struct becomes the tuple of its fields.
template <class T, class F> auto mapTree(const T &tree, F &&f) {
  // Braces: the elements are mapped from left to right.
  [[maybe_unused]] auto mapAll = [&](const auto &...elements) {
    return std::tuple<decltype(mapTree(elements, f))...>{mapTree(elements, f)...};
  };
  if constexpr (isVector<T>) {
    std::vector<decltype(mapTree(tree[0], f))> mapped;
    mapped.reserve(tree.size());
    for (const auto &element : tree)
      mapped.push_back(mapTree(element, f));
    return mapped;
  } else if constexpr (isOptional<T>) {
    return tree ? std::optional(mapTree(*tree, f)) : std::nullopt;
  } else if constexpr (isMap<T>) {
    std::map<std::string, decltype(mapTree(tree.begin()->second, f))> mapped;
    for (const auto &[key, element] : tree)
      mapped.emplace(key, mapTree(element, f));
    return mapped;
  } else if constexpr (HasFields<T>) {
    return std::apply(mapAll, tree.wengert_fields());
  } else if constexpr (isTuple<T>) {
    return std::apply(mapAll, tree);
  } else if constexpr (std::same_as<T, std::monostate>) {
    return tree;
  } else {
    return f(tree);
  }
}

} // namespace detail
} // namespace wg
