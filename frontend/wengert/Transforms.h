// Derivatives as functions of functions, beside the tape and on the same transform.
#pragma once

#include <wengert/Function.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace wg {

/// Said to a transform whose f returns a pair (loss, aux): the derivative is that of the loss, and aux is handed
/// through: `auto [loss_and_logits, g] = value_and_grad(f, wg::has_aux)(w, x);`
struct HasAux {};
inline constexpr HasAux has_aux{};

namespace detail {
/// The same value under an identity of its own, so that one tensor passed twice is two independent arguments.
WENGERT_API Tensor fresh(const Tensor &x);
[[noreturn]] WENGERT_API void raiseNoVariables(const Where &where);
[[noreturn]] WENGERT_API void raiseStaticPlace(int place);
WENGERT_API bool contains(const std::vector<int> &places, int place);
WENGERT_API void checkPlaces(const std::vector<int> &places, size_t count, const Where &where);
/// Which of `fields` are among `names`; a name that is not a field, or that is there twice, is an error.
WENGERT_API std::vector<char> chooseFields(const std::vector<std::string> &names,
                                           const std::vector<std::string> &fields, const Where &where);
/// Why a field that is not among `names` has no gradient.
WENGERT_API std::string notChosen(const std::vector<std::string> &names);
/// The cotangents of the targets as seeds of a gradient: zeros where there is none.
WENGERT_API Seeds seedsOf(const Targets &targets, const std::vector<Grad> &cotangents);
WENGERT_API Tensor hooked(const Located &x, std::function<Tensor(const Tensor &)> hook);

/// Which variables of the arguments are at one place only.
class WENGERT_API VariablePlaces {
public:
  template <class... T> explicit VariablePlaces(const T &...trees) {
    auto count = [&]<class L>(const L &leaf) {
      if constexpr (std::same_as<L, Variable>)
        add(leaf);
    };
    (visit(trees, count), ...);
    sort();
  }
  bool isSingle(const Variable &variable) const;

private:
  void add(const Variable &variable);
  void sort();
  std::vector<int64_t> ids_;
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

template <class F, class Aux, class... A> constexpr bool checkDifferentiable() {
  constexpr bool fits = std::is_invocable_v<const F &, const A &...>;
  static_assert(fits, "the function does not take these arguments");
  if constexpr (fits) {
    using R = std::invoke_result_t<const F &, const A &...>;
    constexpr bool returns = !std::is_void_v<R>;
    static_assert(returns, "a function that returns nothing has no gradient; return a value from f");
    constexpr bool isPair = !std::same_as<Aux, HasAux> || requires { requires std::tuple_size<R>::value == 2; };
    static_assert(isPair, "with wg::has_aux f returns a pair: std::pair(loss, aux)");
    return returns && isPair;
  }
  return false;
}

/// The same of a function by whose arguments the derivative is.
template <class F, class Aux, class... A> constexpr bool checkArguments() {
  return checkDifferentiable<F, Aux, A...>() && (checkTree<A>() & ... & true);
}

/// What of f's value is differentiated: all of it, or with has_aux the first of two.
struct NoAux {};
template <class Aux, class V> const auto &lossOf(const V &value) {
  if constexpr (std::same_as<Aux, HasAux>)
    return std::get<0>(value);
  else
    return value;
}

/// The value and the gradient by the first argument, in its structure.
template <class Aux, class F, class A, class... Rest>
auto valueAndGradient(const F &f, const A &first, const Rest &...rest) {
  GradientTape tape({.watch_accessed_variables = false});
  A x = independent(tape, first, VariablePlaces(first, rest...), true, {});
  auto value = f(x, rest...);
  auto gradient = tape.gradient(lossOf<Aux>(value), x);
  return std::pair(std::move(value), std::move(gradient));
}

/// The value, and the gradients of all tensors and variables of the arguments at `places`, in the order of `places`.
template <class Aux, class F, class... A>
auto valueAndGradients(const F &f, const std::vector<int> &places, const Where &where, const A &...args) {
  checkPlaces(places, sizeof...(A), where);
  GradientTape tape({.watch_accessed_variables = false});
  int next = 0;
  auto isChosen = [&] { return contains(places, next++); };
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
    withElements(fresh, [&](const auto &...tree) { (choose(tree), ...); });
  }
  auto value = withElements(fresh, f);
  std::vector<Grad> gradients = tape.gradient(lossOf<Aux>(value), sources);
  return std::pair(std::move(value), std::move(gradients));
}

/// The value, and the gradient by the named fields of the first argument, in its structure.
template <class Aux, class F, class A, class... Rest>
auto valueAndFields(const F &f, const std::vector<std::string> &names, const Where &where, const A &first,
                    const Rest &...rest) {
  constexpr bool hasFields = HasFields<A>;
  static_assert(hasFields,
                "names of fields are given, and the first argument is not a struct with WENGERT_FIELDS(...)");
  if constexpr (hasFields) {
    std::vector<char> chosen = chooseFields(names, fieldNames<A>(), where);
    GradientTape tape({.watch_accessed_variables = false});
    VariablePlaces places(first, rest...);
    A x = first;
    std::vector<Source> sources;
    size_t next = 0;
    auto enter = [&](auto &field) {
      bool isChosen = chosen[next++];
      field = independent(tape, field, places, isChosen, where);
      if (isChosen)
        collectLeaves(field, sources);
    };
    x.wengert_fields()([&](auto &...fields) { (enter(fields), ...); });
    auto value = f(x, rest...);
    std::vector<Grad> gradients = tape.gradient(lossOf<Aux>(value), sources);
    size_t field = 0, leaf = 0;
    auto gradientOf = [&](const auto &tree) {
      bool isChosen = chosen[field++];
      return mapTree(tree, [&]<class L>(const L &) -> Grad {
        if constexpr (isStatic<L>)
          return Grad::none(kNotASource);
        else
          return isChosen ? std::move(gradients[leaf++]) : Grad::none(notChosen(names));
      });
    };
    auto gradient =
        std::as_const(x).wengert_fields()([&](const auto &...fields) { return GradientOf<A>{gradientOf(fields)...}; });
    return std::pair(std::move(value), std::move(gradient));
  }
}

template <class Aux, class F> auto byFirst(F f) {
  return [f = std::move(f)]<class A, class... Rest>(const A &first, const Rest &...rest) {
    if constexpr (checkArguments<F, Aux, A, Rest...>())
      return valueAndGradient<Aux>(f, first, rest...);
  };
}
template <class Aux, class F> auto byPlaces(F f, std::vector<int> places, Where where) {
  return [f = std::move(f), places = std::move(places), where]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>())
      return valueAndGradients<Aux>(f, places, where, args...);
  };
}
template <class Aux, size_t n, class F> auto byList(F f, std::vector<int> places, Where where) {
  return [f = std::move(f), places = std::move(places), where]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>()) {
      auto [value, gradients] = valueAndGradients<Aux>(f, places, where, args...);
      if constexpr ((isLeaf<A> && ...))
        return std::pair(std::move(value), arrayOf<n>(std::move(gradients)));
      else
        return std::pair(std::move(value), std::move(gradients));
    }
  };
}
template <class Aux, class F> auto byFields(F f, std::vector<std::string> names, Where where) {
  return
      [f = std::move(f), names = std::move(names), where]<class A, class... Rest>(const A &first, const Rest &...rest) {
        if constexpr (checkArguments<F, Aux, A, Rest...>())
          return valueAndFields<Aux>(f, names, where, first, rest...);
      };
}
} // namespace detail

/// f's value and its gradient by the first argument, in the structure of that argument:
/// `auto [value, g] = value_and_grad(f)(a, b);`. Each place of an argument counts on its own: tensors and variables
/// that are at several places are independent of one another, and what f reads of them without an argument's help, by
/// capture, is a constant. A variable at one place only is that variable: captured reads of it count, so
/// `value_and_grad([&](const std::vector<Variable> &) { return loss(model(x)); })(model.variables())` is the gradient
/// by the model's variables. What f assigns is assigned to the variable, and every place reads it from then on.
/// With `has_aux` f returns a pair (loss, aux), which is the value, and the gradient is that of the loss.
template <class F> auto value_and_grad(F f) { return detail::byFirst<detail::NoAux>(std::move(f)); }
template <class F> auto value_and_grad(F f, HasAux) { return detail::byFirst<HasAux>(std::move(f)); }

/// By the arguments at these places; the gradients of all their tensors and variables, in the order of `places`. A
/// place that names no argument is an error.
template <class F> auto value_and_grad(F f, std::vector<int> places, Where where = Where::current()) {
  return detail::byPlaces<detail::NoAux>(std::move(f), std::move(places), where);
}
template <class F> auto value_and_grad(F f, std::vector<int> places, HasAux, Where where = Where::current()) {
  return detail::byPlaces<HasAux>(std::move(f), std::move(places), where);
}
/// The same for a list in braces. Where every argument is one tensor, variable or number, there is one gradient a
/// place: `auto [da, db] = value_and_grad(f, {0, 1})(a, b).second;`
template <class F, size_t n> auto value_and_grad(F f, const int (&places)[n], Where where = Where::current()) {
  return detail::byList<detail::NoAux, n>(std::move(f), {std::begin(places), std::end(places)}, where);
}
template <class F, size_t n> auto value_and_grad(F f, const int (&places)[n], HasAux, Where where = Where::current()) {
  return detail::byList<HasAux, n>(std::move(f), {std::begin(places), std::end(places)}, where);
}

/// By fields of the first argument, a struct with WENGERT_FIELDS(...): `value_and_grad(f, {"alpha", "beta"})(model, x)`
/// has the structure of the model, and its other fields are constants, whose gradients are empty. A name that is no
/// field is an error.
template <class F> auto value_and_grad(F f, std::vector<std::string> fields, Where where = Where::current()) {
  return detail::byFields<detail::NoAux>(std::move(f), std::move(fields), where);
}
template <class F> auto value_and_grad(F f, std::vector<std::string> fields, HasAux, Where where = Where::current()) {
  return detail::byFields<HasAux>(std::move(f), std::move(fields), where);
}
template <class F, size_t n> auto value_and_grad(F f, const char *const (&fields)[n], Where where = Where::current()) {
  return detail::byFields<detail::NoAux>(std::move(f), {std::begin(fields), std::end(fields)}, where);
}
template <class F, size_t n>
auto value_and_grad(F f, const char *const (&fields)[n], HasAux, Where where = Where::current()) {
  return detail::byFields<HasAux>(std::move(f), {std::begin(fields), std::end(fields)}, where);
}

/// The gradient alone; with `has_aux` the pair (gradient, aux).
template <class F> auto grad(F f) {
  return [f = value_and_grad(std::move(f))](const auto &...args) { return f(args...).second; };
}
template <class F> auto grad(F f, HasAux) {
  return [f = value_and_grad(std::move(f), has_aux)](const auto &...args) {
    auto [value, gradient] = f(args...);
    return std::pair(std::move(gradient), std::get<1>(std::move(value)));
  };
}

namespace detail {
template <class T> inline constexpr bool isArgumentList = false;
template <class... A> inline constexpr bool isArgumentList<std::tuple<A...>> = true;
/// `use(args...)` of a tuple of arguments, or of one argument.
template <class Primals, class Use> auto withArguments(const Primals &primals, Use use) {
  if constexpr (isArgumentList<Primals>)
    return withElements(primals, use);
  else
    return use(primals);
}

/// A call of f on arguments of its own, which a tape watched; kept for what is asked of it later.
template <class Aux, class Value, class... A> struct RecordedValue {
  GradientTape tape;
  std::tuple<A...> arguments;
  Value value;

  const auto &loss() const { return lossOf<Aux>(value); }
  std::vector<Source> sources() const {
    std::vector<Source> list;
    collectLeaves(arguments, list);
    return list;
  }
  /// J v, in the structure of the value.
  template <class Tangents> auto tangent(const Tangents &tangents, const Where &where) {
    std::vector<Grad> found = tangentsOf(tape, Targets(loss(), where), sources(), gradientsOfSources(tangents));
    size_t next = 0;
    return mapTree(loss(), [&]<class L>(const L &) -> Grad {
      if constexpr (isStatic<L>)
        return Grad::none(kNotASource);
      else
        return std::move(found[next++]);
    });
  }
  /// The gradients by all sources, weighted by `seeds`.
  std::vector<Grad> gradients(const Seeds &seeds, const Where &where) {
    GradientOptions options;
    options.output_gradients = seeds;
    return tape.gradient(Targets(loss(), where), sources(), options);
  }
  /// J^T ct, in the structure of the arguments: that of the one, or a tuple.
  template <class Cotangent> auto cotangent(const Cotangent &ct, const Where &where) {
    Seeds seeds;
    if constexpr (Arithmetic<Cotangent>)
      seeds = Seeds(ct);
    else
      seeds = seedsOf(Targets(loss(), where), gradientsOfSources(ct));
    std::vector<Grad> found = gradients(seeds, where);
    size_t next = 0;
    auto take = [&]<class L>(const L &) -> Grad {
      if constexpr (isStatic<L>)
        return Grad::none(kNotASource);
      else
        return std::move(found[next++]);
    };
    if constexpr (sizeof...(A) == 1)
      return mapTree(std::get<0>(arguments), take);
    else
      return mapTree(arguments, take);
  }
};
template <class Aux, class F, class... A> auto recordedValue(const F &f, const Where &where, const A &...args) {
  GradientTape tape({.persistent = true, .watch_accessed_variables = false});
  VariablePlaces counted(args...);
  std::tuple<A...> fresh{independent(tape, args, counted, true, where)...};
  auto value = withElements(fresh, f);
  tape.stop();
  using Recorded = RecordedValue<Aux, decltype(value), A...>;
  return std::shared_ptr<Recorded>(new Recorded{std::move(tape), std::move(fresh), std::move(value)});
}

template <class Aux, class F, class Primals, class Tangents>
auto jvpOf(const F &f, const Primals &primals, const Tangents &tangents, const Where &where) {
  return withArguments(primals, [&]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>()) {
      auto recorded = recordedValue<Aux>(f, where, args...);
      auto moved = recorded->tangent(tangents, where);
      return std::pair(std::move(recorded->value), std::move(moved));
    }
  });
}
template <class Aux, class F, class Primals> auto vjpOf(const F &f, const Primals &primals, const Where &where) {
  return withArguments(primals, [&]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>()) {
      auto recorded = recordedValue<Aux>(f, where, args...);
      auto pull = [recorded](const auto &ct, Where where = Where::current()) { return recorded->cotangent(ct, where); };
      return std::pair(recorded->value, std::move(pull));
    }
  });
}
template <class Aux, class F, class Primals> auto linearOf(const F &f, const Primals &primals, const Where &where) {
  return withArguments(primals, [&]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>()) {
      auto recorded = recordedValue<Aux>(f, where, args...);
      auto push = [recorded](const auto &tangents, Where where = Where::current()) {
        return recorded->tangent(tangents, where);
      };
      return std::pair(recorded->value, std::move(push));
    }
  });
}
} // namespace detail

/// f's value, and how it moves where `primals` move by `tangents`: the Jacobian-vector product J v, by forward mode, at
/// the cost of f for any number of results. One argument is given as it is, several as a tuple:
/// `auto [y, dy] = jvp(f, std::tuple(x, w), std::tuple(dx, dw));`. `tangents` has the structure of `primals`, a tensor
/// of its dtype and shape for each tensor and variable (an undefined one stands still); dy has the structure of y, and
/// is empty with its reason where y does not move. As for value_and_grad, each place of an argument counts on its own,
/// and what f captures stands still. With `has_aux` f returns a pair (y, aux), which is the value. Errors: another
/// number of tangents; another dtype or shape; in f, a gradient hook, which has a rule for reverse mode only.
template <class F, class Primals, class Tangents>
auto jvp(F f, const Primals &primals, const Tangents &tangents, Where where = Where::current()) {
  return detail::jvpOf<detail::NoAux>(f, primals, tangents, where);
}
template <class F, class Primals, class Tangents>
auto jvp(F f, const Primals &primals, const Tangents &tangents, HasAux, Where where = Where::current()) {
  return detail::jvpOf<HasAux>(f, primals, tangents, where);
}

/// f's value, and the function that takes a cotangent of it back to the arguments, by reverse mode:
/// `auto [y, pull] = vjp(f, std::tuple(x, w)); auto [dx, dw] = pull(ct);`. ct has the structure of y (a number for one
/// tensor; what is empty or undefined counts nothing), the result that of the argument, or a tuple of several. It may
/// be called any number of times, and keeps what f computed. Primals and `has_aux` as for jvp.
template <class F, class Primals> auto vjp(F f, const Primals &primals, Where where = Where::current()) {
  return detail::vjpOf<detail::NoAux>(f, primals, where);
}
template <class F, class Primals> auto vjp(F f, const Primals &primals, HasAux, Where where = Where::current()) {
  return detail::vjpOf<HasAux>(f, primals, where);
}

/// f's value, and the linear function that f is near `primals`: `auto [y, push] = linearize(f, x); push(v)` is what
/// jvp(f, x, v) has as second, without computing f again. Primals and `has_aux` as for jvp.
template <class F, class Primals> auto linearize(F f, const Primals &primals, Where where = Where::current()) {
  return detail::linearOf<detail::NoAux>(f, primals, where);
}
template <class F, class Primals> auto linearize(F f, const Primals &primals, HasAux, Where where = Where::current()) {
  return detail::linearOf<HasAux>(f, primals, where);
}

/// The transpose of a function that is linear in its arguments, of which `primals` gives dtypes and shapes: ct to
/// f^T ct. That f is linear is not checked; of any other it is the transpose of its derivative at `primals`.
template <class F, class Primals> auto linear_transpose(F f, const Primals &primals, Where where = Where::current()) {
  return detail::vjpOf<detail::NoAux>(f, primals, where).second;
}

/// The product of the Hessian of a scalar function with a vector, in the structure of `primals`: forward mode over
/// reverse mode, at a few times the cost of f. `hvp(loss, std::tuple(w, b), std::tuple(vw, vb))`.
template <class F, class Primals, class Vector>
auto hvp(F f, const Primals &primals, const Vector &vector, Where where = Where::current()) {
  auto gradient = [&](const auto &...args) {
    auto [value, pull] = vjp(f, std::make_tuple(args...), where);
    return pull(1, where);
  };
  return detail::jvpOf<detail::NoAux>(gradient, primals, vector, where).second;
}

/// Value, gradients and variables: by every trainable variable that f reads, in the order of their construction.
template <class Value> struct VariableGradients {
  Value value;
  std::vector<Grad> gradients;
  std::vector<Variable> variables;
};
namespace detail {
template <class Aux, class F> auto byVariables(F f) {
  return [f = std::move(f)]<class... A>(const A &...args) {
    if constexpr (checkDifferentiable<F, Aux, A...>()) {
      GradientTape tape;
      auto value = f(args...);
      tape.stop();
      std::vector<Variable> variables = tape.watched_variables();
      if (variables.empty())
        raiseNoVariables({});
      std::vector<Grad> gradients = tape.gradient(lossOf<Aux>(value), variables);
      return VariableGradients<decltype(value)>{std::move(value), std::move(gradients), std::move(variables)};
    }
  };
}
} // namespace detail
template <class F> auto grad_wrt_variables(F f) { return detail::byVariables<detail::NoAux>(std::move(f)); }
template <class F> auto grad_wrt_variables(F f, HasAux) { return detail::byVariables<HasAux>(std::move(f)); }

/// x, whose cotangent goes through `hook` on its way back: `hook` takes it and returns what goes on, of the same dtype
/// and shape, or returns nothing and only looks. `h = with_gradient_hook(h, [](const Tensor &ct) { return clip(ct, -1,
/// 1); });`. It is called once for each gradient that passes, with the sum of what the later ops contribute; where no
/// gradient passes it is not called. A derivative of the gradient goes through the ops of `hook`. On an eager tape it
/// is ordinary C++, called while the gradient is computed. In a traced function it is traced, once and where it is
/// written: it sees no values, what it reads is read there, and it cannot assign variables.
template <class F> Tensor with_gradient_hook(const Located &x, F hook) {
  constexpr bool fits = std::is_invocable_v<F &, const Tensor &>;
  static_assert(fits, "a gradient hook takes the cotangent: [](const wg::Tensor &ct) { ... }");
  if constexpr (fits) {
    using R = std::invoke_result_t<F &, const Tensor &>;
    constexpr bool returns = std::is_void_v<R> || std::convertible_to<R, Tensor>;
    static_assert(returns, "a gradient hook returns the cotangent that goes on, a wg::Tensor, or nothing");
    if constexpr (returns)
      return detail::hooked(x, [hook = std::make_shared<F>(std::move(hook))](const Tensor &ct) -> Tensor {
        if constexpr (std::is_void_v<R>) {
          (*hook)(ct);
          return ct;
        } else {
          return (*hook)(ct);
        }
      });
  }
  return {};
}

} // namespace wg
