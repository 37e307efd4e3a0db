// Derivatives as functions of functions, beside the tape and on the same transform.
#pragma once

#include <wengert/Function.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace wg {

namespace detail {
/// The same value under an identity of its own, so that one tensor passed twice is two independent arguments.
WENGERT_API Tensor fresh(const Tensor &x);
[[noreturn]] WENGERT_API void raiseNoVariables(const Where &where);
[[noreturn]] WENGERT_API void raiseStaticPlace(int place);
[[noreturn]] WENGERT_API void raisePlace(int place, size_t count, const Where &where);

/// At how many places of the arguments each variable is, by its id.
class VariablePlaces {
public:
  template <class... T> explicit VariablePlaces(const T &...trees) { (count(trees), ...); }
  bool isSingle(const Variable &variable) const {
    auto at = counts_.find(variable.defined() ? variable.id() : -1);
    return at != counts_.end() && at->second == 1;
  }

private:
  template <class T> void count(const T &tree) {
    visit(tree, [&]<class L>(const L &leaf) {
      if constexpr (std::same_as<L, Variable>)
        ++counts_[leaf.defined() ? leaf.id() : -1];
    });
  }
  std::unordered_map<int64_t, int> counts_;
};

/// A copy of an argument whose tensors have identities of their own. If it is `chosen`, the tape watches them, and of
/// its variables those that are at no other place; the others are handles that the tape knows apart from all other
/// handles to the same variables.
template <class T>
T independent(GradientTape &tape, const T &tree, const VariablePlaces &places, bool chosen, const Where &where) {
  T copy = tree;
  visit(copy, [&]<class L>(L &leaf) {
    if constexpr (std::same_as<L, Tensor>) {
      leaf = fresh(leaf);
      if (chosen && runtime::isFloat(leaf.dtype()))
        tape.watch(leaf);
    } else if constexpr (std::same_as<L, Variable>) {
      if (chosen && places.isSingle(leaf))
        tape.watch(leaf);
      else if (chosen)
        leaf = placeOf(tape, leaf, where);
    }
  });
  return copy;
}

template <class F, class... A> constexpr bool checkDifferentiable() {
  constexpr bool fits = std::is_invocable_v<const F &, const A &...>;
  static_assert(fits, "the function does not take these arguments");
  if constexpr (fits) {
    constexpr bool returns = !std::is_void_v<std::invoke_result_t<const F &, const A &...>>;
    static_assert(returns, "a function that returns nothing has no gradient; return a value from f");
    return returns;
  }
  return false;
}
} // namespace detail

/// f's value and its gradient by the first argument, in the structure of that argument:
/// `auto [value, g] = value_and_grad(f)(a, b);`. Each place of an argument counts on its own: tensors and variables
/// that are at several places are independent of one another, and what f reads of them without an argument's help, by
/// capture, is a constant. A variable at one place only is that variable: captured reads of it count, so
/// `value_and_grad([&](const std::vector<Variable> &) { return loss(model(x)); })(model.variables())` is the gradient
/// by the model's variables. What f assigns is assigned to the variable, and every place reads it from then on.
template <class F> auto value_and_grad(F f) {
  return [f = std::move(f)]<class A, class... Rest>(const A &first, const Rest &...rest) {
    if constexpr (detail::checkDifferentiable<F, A, Rest...>()) {
      GradientTape tape({.watch_accessed_variables = false});
      A x = detail::independent(tape, first, detail::VariablePlaces(first, rest...), true, {});
      auto value = f(x, rest...);
      auto gradient = tape.gradient(value, x);
      return std::pair(std::move(value), std::move(gradient));
    }
  };
}

namespace detail {
/// The value, and the gradients of all tensors and variables of the arguments at `places`, in the order of `places`.
template <class F, class... A>
auto valueAndGradients(const F &f, std::span<const int> places, const Where &where, const A &...args) {
  for (int chosen : places)
    if (chosen < 0 || chosen >= static_cast<int>(sizeof...(A)))
      raisePlace(chosen, sizeof...(A), where);
  GradientTape tape({.watch_accessed_variables = false});
  int next = 0;
  auto isChosen = [&] { return std::find(places.begin(), places.end(), next++) != places.end(); };
  VariablePlaces counted(args...);
  std::tuple<A...> fresh{independent(tape, args, counted, isChosen(), where)...};
  std::vector<Source> sources;
  for (int chosen : places) {
    int place = 0;
    auto choose = [&]<class T>(const T &tree) {
      if (place++ != chosen)
        return;
      if constexpr (isStatic<T>)
        raiseStaticPlace(chosen);
      collectLeaves(tree, sources);
    };
    std::apply([&](const auto &...tree) { (choose(tree), ...); }, fresh);
  }
  auto value = std::apply(f, fresh);
  std::vector<Grad> gradients = tape.gradient(value, sources);
  return std::pair(std::move(value), std::move(gradients));
}
} // namespace detail

/// By the arguments at these places; the gradients of all their tensors and variables, in the order of `places`. A
/// place that names no argument is an error.
template <class F> auto value_and_grad(F f, std::vector<int> places, Where where = Where::current()) {
  return [f = std::move(f), places = std::move(places), where]<class... A>(const A &...args) {
    if constexpr (detail::checkDifferentiable<F, A...>())
      return detail::valueAndGradients(f, std::span<const int>(places), where, args...);
  };
}
/// The same for a list in braces. Where every argument is one tensor, variable or number, there is one gradient a
/// place: `auto [da, db] = value_and_grad(f, {0, 1})(a, b).second;`
template <class F, size_t n> auto value_and_grad(F f, const int (&places)[n], Where where = Where::current()) {
  return [f = std::move(f), places = std::to_array(places), where]<class... A>(const A &...args) {
    if constexpr (detail::checkDifferentiable<F, A...>()) {
      auto [value, gradients] = detail::valueAndGradients(f, std::span<const int>(places), where, args...);
      if constexpr ((detail::isLeaf<A> && ...))
        return std::pair(std::move(value), detail::arrayOf<n>(std::move(gradients)));
      else
        return std::pair(std::move(value), std::move(gradients));
    }
  };
}

/// The gradient alone.
template <class F> auto grad(F f) {
  return [f = value_and_grad(std::move(f))](const auto &...args) { return f(args...).second; };
}

/// Value, gradients and variables: by every trainable variable that f reads, in the order of their construction.
template <class Value> struct VariableGradients {
  Value value;
  std::vector<Grad> gradients;
  std::vector<Variable> variables;
};
template <class F> auto grad_wrt_variables(F f) {
  return [f = std::move(f)](const auto &...args) {
    GradientTape tape;
    auto value = f(args...);
    tape.stop();
    std::vector<Variable> variables = tape.watched_variables();
    if (variables.empty())
      detail::raiseNoVariables({});
    std::vector<Grad> gradients = tape.gradient(value, variables);
    return VariableGradients<decltype(value)>{std::move(value), std::move(gradients), std::move(variables)};
  };
}

} // namespace wg
