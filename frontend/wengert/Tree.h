// Nested structures: what may be given where a tensor may. tuple, pair, array, vector, optional, map with string keys,
// and structs that list their fields: `struct Batch { wg::Tensor x, y; WENGERT_FIELDS(x, y) };`
#pragma once

#include <wengert/Grad.h>
#include <wengert/Variable.h>

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

/// Inside a struct: the fields, by name, that hold tensors, variables, statics, or structures of them. Its gradient is
/// a struct with fields of the same names: `auto g = tape.gradient(loss, batch); g.x`.
#define WENGERT_FIELDS(...)                                                                                            \
  WENGERT_TIE_(__VA_ARGS__)                                                                                            \
  WENGERT_EACH_(WENGERT_TYPE_, __VA_ARGS__)                                                                            \
  struct wengert_gradient {                                                                                            \
    WENGERT_EACH_(WENGERT_GRADIENT_, __VA_ARGS__)                                                                      \
    WENGERT_TIE_(__VA_ARGS__)                                                                                          \
  };

#define WENGERT_TIE_(...)                                                                                              \
  auto wengert_fields() {                                                                                              \
    return [this](auto &&f) -> decltype(auto) { return f(__VA_ARGS__); };                                              \
  }                                                                                                                    \
  auto wengert_fields() const {                                                                                        \
    return [this](auto &&f) -> decltype(auto) { return f(__VA_ARGS__); };                                              \
  }                                                                                                                    \
  static const std::string_view *wengert_names() {                                                                     \
    static constexpr std::string_view names[] = {WENGERT_EACH_(WENGERT_NAME_, __VA_ARGS__) ""};                        \
    return names;                                                                                                      \
  }
#define WENGERT_NAME_(field) #field,
#define WENGERT_TYPE_(field) using wengert_type_##field = std::remove_cvref_t<decltype(field)>;
#define WENGERT_GRADIENT_(field) ::wg::detail::GradientOf<wengert_type_##field> field;

// macro(a) macro(b) ... for up to 256 arguments.
#define WENGERT_EACH_(macro, ...) __VA_OPT__(WENGERT_AGAIN_(WENGERT_ONE_(macro, __VA_ARGS__)))
#define WENGERT_ONE_(macro, first, ...) macro(first) __VA_OPT__(WENGERT_NEXT_ WENGERT_PARENTHESES_(macro, __VA_ARGS__))
#define WENGERT_NEXT_() WENGERT_ONE_
#define WENGERT_PARENTHESES_ ()
#define WENGERT_AGAIN_(...) WENGERT_AGAIN4_(WENGERT_AGAIN4_(WENGERT_AGAIN4_(WENGERT_AGAIN4_(__VA_ARGS__))))
#define WENGERT_AGAIN4_(...) WENGERT_AGAIN16_(WENGERT_AGAIN16_(WENGERT_AGAIN16_(WENGERT_AGAIN16_(__VA_ARGS__))))
#define WENGERT_AGAIN16_(...) WENGERT_AGAIN64_(WENGERT_AGAIN64_(WENGERT_AGAIN64_(WENGERT_AGAIN64_(__VA_ARGS__))))
#define WENGERT_AGAIN64_(...) __VA_ARGS__

namespace wg {

namespace nn {
class Module;
}

namespace detail {

struct Source;

/// Calls a callable that outlives it, whatever its type: what takes one is compiled once for all callables of these
/// types.
template <class Signature> class FunctionRef;
template <class R, class... P> class FunctionRef<R(P...)> {
public:
  template <class F>
    requires(!std::same_as<std::remove_cv_t<F>, FunctionRef>)
  FunctionRef(F &f)
      : callable_(const_cast<void *>(static_cast<const void *>(&f))), call_([](void *callable, P... args) -> R {
          if constexpr (std::is_void_v<R>)
            (*static_cast<F *>(callable))(static_cast<P>(args)...);
          else
            return (*static_cast<F *>(callable))(static_cast<P>(args)...);
        }) {}
  R operator()(P... args) const { return call_(callable_, static_cast<P>(args)...); }

private:
  void *callable_;
  R (*call_)(void *callable, P... args);
};

/// f(elements...): std::apply of what is called by its parentheses, without the traits that cost compilers most of it.
template <class T, class F> decltype(auto) withElements(T &tuple, F &&f) {
  return [&]<size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
    return f(std::get<i>(tuple)...);
  }(std::make_index_sequence<std::tuple_size_v<std::remove_cv_t<T>>>());
}

template <class T>
concept HasFields = requires(T &tree) { tree.wengert_fields(); };
/// The types of the fields: std::type_identity<std::tuple<...>>.
template <class T>
using FieldsOf = decltype(std::declval<T &>().wengert_fields()(
    []<class... E>(E &...) { return std::type_identity<std::tuple<E...>>(); }));
template <class T>
concept IsModel = std::derived_from<T, nn::Module>;
/// A static is a value that a signature can hold: a number of at most 64 bits or a long double, an enum, a string, a
/// shape. Pointers are none: what they point at may change.
template <class T>
inline constexpr bool isStatic =
    ((std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) <= 8) || std::same_as<T, float> ||
    std::same_as<T, double> || std::same_as<T, long double> || std::same_as<T, std::string> ||
    std::same_as<T, std::string_view> || std::same_as<T, Shape> || std::same_as<T, Ints>;
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
template <size_t N> inline constexpr bool isTuple<GradArray<N>> = true;
template <> inline constexpr bool isTuple<std::monostate> = false;
/// The types of a tuple's elements: std::type_identity<std::tuple<...>>.
template <class T> struct ElementsOf;
template <class... T> struct ElementsOf<std::tuple<T...>> : std::type_identity<std::tuple<T...>> {};
template <class A, class B> struct ElementsOf<std::pair<A, B>> : std::type_identity<std::tuple<A, B>> {};
template <class T, size_t N> struct ElementsOf<std::array<T, N>> : std::type_identity<std::tuple<T>> {};
template <size_t N> struct ElementsOf<GradArray<N>> : std::type_identity<std::tuple<Grad>> {};
template <class T> inline constexpr bool isSpan = false;
template <class T, size_t N> inline constexpr bool isSpan<std::span<T, N>> = true;

/// What a type has in it that cannot be part of a structure.
enum class Flaw { none, model, unordered, keys, fields, other };

/// The first; with `models`, one that stands for its variables is none.
template <class T, bool models = false> constexpr Flaw flawOf() {
  auto first = []<class... E>(std::type_identity<std::tuple<E...>>) {
    Flaw flaw = Flaw::none;
    ((flaw = flaw == Flaw::none ? flawOf<std::remove_cvref_t<E>, models>() : flaw), ...);
    return flaw;
  };
  if constexpr (isLeaf<T> || std::same_as<T, std::monostate>)
    return Flaw::none;
  else if constexpr (isVector<T> || isOptional<T> || isSpan<T>)
    return flawOf<std::remove_cv_t<typename T::value_type>, models>();
  else if constexpr (isMap<T>)
    return flawOf<typename T::mapped_type, models>();
  else if constexpr (HasFields<T>)
    return first(FieldsOf<T>());
  else if constexpr (isTuple<T>)
    return first(std::type_identity<typename ElementsOf<T>::type>());
  else if constexpr (IsModel<T>)
    return models ? Flaw::none : Flaw::model;
  else if constexpr (requires { typename T::hasher; })
    return Flaw::unordered;
  else if constexpr (requires { typename T::mapped_type; })
    return Flaw::keys;
  else
    return std::is_class_v<T> && !requires { typename T::value_type; } ? Flaw::fields : Flaw::other;
}
/// A leaf, or a structure of them.
template <class T> inline constexpr bool isTree = flawOf<std::remove_cvref_t<T>>() == Flaw::none;

/// Whether T is a structure; if not, one line says what to do.
template <class T, bool models = false> constexpr bool checkTree() {
  constexpr Flaw flaw = flawOf<T, models>();
  static_assert(flaw != Flaw::model, "a model is captured, not passed: [&](const wg::Tensor &x) { return model(x); }; "
                                     "the gradient by its variables is tape.gradient(loss, model)");
  static_assert(flaw != Flaw::unordered, "an unordered container has no order for gradients and signatures: use a "
                                         "std::map with std::string keys, or a std::vector");
  static_assert(flaw != Flaw::keys, "the keys of a map are std::string here: use std::map<std::string, ...>");
  static_assert(flaw != Flaw::fields, "list the fields of this struct inside of it: WENGERT_FIELDS(weight, bias)");
  static_assert(
      flaw != Flaw::other,
      "not a tensor, a variable, a number, an enum, a std::string (a literal is none), a shape, or a structure "
      "of them (vector, span, tuple, pair, array, optional, map with string keys, a struct with WENGERT_FIELDS)");
  return flaw == Flaw::none;
}

/// Whether the type has a place for a tensor, a variable or a gradient; with `variables`, for a variable.
template <class T, bool variables = false> constexpr bool holdsTensors() {
  bool holds = false;
  auto any = []<class... E>(std::type_identity<std::tuple<E...>>) {
    return (holdsTensors<std::remove_cvref_t<E>, variables>() || ...);
  };
  if constexpr (isLeaf<T>)
    holds = variables ? std::same_as<T, Variable> : !isStatic<T>;
  else if constexpr (isVector<T> || isOptional<T> || isSpan<T>)
    holds = holdsTensors<std::remove_cv_t<typename T::value_type>, variables>();
  else if constexpr (isMap<T>)
    holds = holdsTensors<typename T::mapped_type, variables>();
  else if constexpr (HasFields<T>)
    holds = any(FieldsOf<T>());
  else if constexpr (isTuple<T>)
    holds = any(std::type_identity<typename ElementsOf<T>::type>());
  else
    holds = IsModel<T>;
  return holds;
}

/// The gradient by a T: the same structure of Grads; for a model a list of them, one for each trainable variable.
template <class T> struct GradientType;
template <class T> using GradientOf = typename GradientType<T>::type;
template <class T> struct GradientType {
  static auto make() {
    if constexpr (isLeaf<T>)
      return std::type_identity<Grad>();
    else if constexpr (HasFields<T>)
      return std::type_identity<typename T::wengert_gradient>();
    else if constexpr (IsModel<T>)
      return std::type_identity<std::vector<Grad>>();
    else
      return std::type_identity<T>(); // std::monostate
  }
  using type = typename decltype(make())::type;
};
template <class T, class A> struct GradientType<std::vector<T, A>> : std::type_identity<std::vector<GradientOf<T>>> {};
template <class T> struct GradientType<std::optional<T>> : std::type_identity<std::optional<GradientOf<T>>> {};
template <class T, class C, class A>
struct GradientType<std::map<std::string, T, C, A>> : std::type_identity<std::map<std::string, GradientOf<T>>> {};
template <class... T> struct GradientType<std::tuple<T...>> : std::type_identity<std::tuple<GradientOf<T>...>> {};
template <class A, class B>
struct GradientType<std::pair<A, B>> : std::type_identity<std::pair<GradientOf<A>, GradientOf<B>>> {};
template <class T, size_t N>
struct GradientType<std::array<T, N>> : std::type_identity<std::array<GradientOf<T>, N>> {};

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

/// The name of a struct's field, before it; null after it.
struct Field {
  const std::string_view *name;
};

template <HasFields T> std::vector<std::string> fieldNames() {
  constexpr size_t count = std::tuple_size_v<typename FieldsOf<T>::type>;
  return {T::wengert_names(), T::wengert_names() + count};
}

/// Calls `leaf` on each leaf in order; on Count before a vector, an optional or a map; on Key around each element of a
/// map, and on Field around each field of a struct.
template <class T, class F> void visit(T &tree, F &&leaf) {
  using U = std::remove_cv_t<T>;
  if constexpr (isLeaf<U>) {
    leaf(tree);
  } else if constexpr (std::same_as<U, std::monostate>) {
  } else if constexpr (isVector<U> || isSpan<U>) {
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
    const std::string_view *name = U::wengert_names();
    auto visitField = [&](auto &field) {
      Field begin{name++}, end{nullptr};
      leaf(begin);
      visit(field, leaf);
      leaf(end);
    };
    tree.wengert_fields()([&](auto &...fields) { (visitField(fields), ...); });
  } else if constexpr (IsModel<U>) {
    static_assert(std::is_const_v<T>, "what is asked of a model's variables changes none of them");
    for (const Variable &variable : tree.trainable_variables())
      leaf(variable);
  } else if constexpr (isTuple<U>) {
    withElements(tree, [&](auto &...elements) { (visit(elements, leaf), ...); });
  } else {
    checkTree<U>();
  }
}

struct TensorList {
  std::vector<Tensor> &list;
  template <class L> void operator()(const L &leaf) {
    if constexpr (std::same_as<L, Tensor>)
      list.push_back(leaf);
    else if constexpr (std::same_as<L, Grad>)
      list.push_back(leaf.has_value() ? leaf.value() : Tensor());
  }
};
/// The tensors and gradients in a structure, in order; an empty gradient is an undefined tensor.
template <class T> void appendTensors(std::vector<Tensor> &list, const T &tree) { visit(tree, TensorList{list}); }
template <class T> std::vector<Tensor> tensorsOf(const T &tree) {
  std::vector<Tensor> list;
  appendTensors(list, tree);
  return list;
}
struct TensorMap {
  FunctionRef<Tensor(const Tensor &)> f;
  template <class L> void operator()(L &leaf) {
    if constexpr (std::same_as<L, Tensor>)
      leaf = f(leaf);
  }
};
/// The structure with `f(tensor)` for each tensor.
template <class T> T mapTensors(T tree, FunctionRef<Tensor(const Tensor &)> f) {
  visit(tree, TensorMap{f});
  return tree;
}
template <class T, class F> T mapTensors(T tree, F &&f) {
  return mapTensors(std::move(tree), FunctionRef<Tensor(const Tensor &)>(f));
}

struct GradientList {
  std::vector<Grad> &list;
  template <class L> void operator()(const L &leaf) {
    if constexpr (std::same_as<L, Grad> || std::same_as<L, Tensor>)
      append(list, leaf);
  }
};
/// The gradients in a structure of gradients or tensors, in order.
template <class T> std::vector<Grad> gradientsIn(const T &tree) {
  std::vector<Grad> flat;
  visit(tree, GradientList{flat});
  return flat;
}

/// Why a gradient by a number is empty.
inline constexpr const char *kNotASource = "the source is a number, an enum or a string";

/// The same without those of a structure's numbers, enums and strings.
WENGERT_API std::vector<Grad> withoutNumbers(std::vector<Grad> grads);
template <class T> std::vector<Grad> gradientsOfSources(const T &tree) { return withoutNumbers(gradientsIn(tree)); }

WENGERT_API void append(std::vector<char> &flags, bool flag);
/// The gradients whose flag is set; all of them if there is not one flag for each.
WENGERT_API std::vector<Grad> chosenOf(std::vector<Grad> grads, const std::vector<char> &flags);
/// The gradients in `grads` by the variables in a structure, which may hold tensors and numbers beside them.
template <class Grads, class Variables>
std::vector<Grad> gradientsByVariables(const Grads &grads, const Variables &variables) {
  std::vector<char> isVariable;
  visit(variables, [&]<class L>(const L &) {
    if constexpr (isLeaf<L>)
      append(isVariable, std::same_as<L, Variable>);
  });
  return chosenOf(gradientsIn(grads), isVariable);
}

/// Whether a T is of variables; if not, one line says what to do.
template <class T> constexpr bool checkVariables() {
  if constexpr (checkTree<T, true>()) {
    static_assert(
        holdsTensors<T, true>(),
        "what is trained, averaged or stopped is a wg::Variable: give one, a model, or a structure that holds "
        "variables (tensors are values, which nothing updates)");
    return holdsTensors<T, true>();
  }
  return false;
}

/// The variables of a structure with their names. A model's trainable ones have their names in it. Others have their
/// own, or if that is empty those of the keys and fields around it: `encoder.w`.
class WENGERT_API NamedVariables {
public:
  template <class T> explicit NamedVariables(const T &tree) {
    if constexpr (IsModel<T>)
      addTrainable(tree.named_variables());
    else
      visit(tree, [&]<class L>(const L &leaf) {
        if constexpr (std::same_as<L, Key>)
          leaf.key ? enter(*leaf.key) : leave();
        else if constexpr (std::same_as<L, Field>)
          leaf.name ? enter(*leaf.name) : leave();
        else if constexpr (std::same_as<L, Variable>)
          add(leaf);
      });
  }
  NamedVariables(const NamedVariables &) = delete;
  ~NamedVariables();
  std::vector<std::pair<std::string, Variable>> list;

private:
  void addTrainable(const std::vector<std::pair<std::string, Variable>> &variables);
  void enter(std::string_view name);
  void leave();
  void add(const Variable &variable);
  std::vector<std::string> path_; ///< each with those before it
};

/// The same structure with the gradient `f(leaf)` for each leaf, from left to right.
template <class T, class F> GradientOf<T> mapTree(const T &tree, F &&f) {
  if constexpr (isVector<T>) {
    GradientOf<T> mapped;
    mapped.reserve(tree.size());
    for (const auto &element : tree)
      mapped.push_back(mapTree(element, f));
    return mapped;
  } else if constexpr (isOptional<T>) {
    return tree ? std::optional(mapTree(*tree, f)) : std::nullopt;
  } else if constexpr (isMap<T>) {
    GradientOf<T> mapped;
    for (const auto &[key, element] : tree)
      mapped.emplace(key, mapTree(element, f));
    return mapped;
  } else if constexpr (HasFields<T>) {
    return tree.wengert_fields()([&](const auto &...fields) { return GradientOf<T>{mapTree(fields, f)...}; });
  } else if constexpr (isTuple<T>) {
    return withElements(tree, [&](const auto &...elements) { return GradientOf<T>{mapTree(elements, f)...}; });
  } else if constexpr (IsModel<T>) {
    return mapTree(tree.trainable_variables(), f);
  } else if constexpr (std::same_as<T, std::monostate>) {
    return tree;
  } else {
    return f(tree);
  }
}

} // namespace detail
} // namespace wg
