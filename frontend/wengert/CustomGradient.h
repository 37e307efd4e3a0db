// Derivatives that are not those of the ops: what the reverse pass keeps, and rules of one's own.
#pragma once

#include <wengert/Function.h>
#include <wengert/Ops.h>
#include <wengert/Transforms.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace wg {

/// f as a function (see wg::function) of which the reverse pass keeps nothing but the arguments, and what f reads from
/// outside: it runs f again for what it needs, late, so that only one such function's intermediate values are there at
/// a time. Twice the work of f for its memory. Random numbers drawn inside are the same again; what f assigns is
/// assigned once. Make it once, not for each call: it is traced and compiled for each signature. As
/// tf.recompute_grad, jax.checkpoint.
///
///     auto block = wg::checkpoint([&](const Tensor &x) { return layer2(layer1(x)); });
template <class F> auto checkpoint(F f, Where where = Where::current()) {
  return wg::function("checkpoint", std::move(f), {.recompute = true}, where);
}

/// What a function with a derivative of its own returns, and what its rules take beside: see custom_gradient.
template <class Y, class R> struct WithResiduals {
  Y value;
  R residuals;
};
template <class Y, class R> WithResiduals(Y, R) -> WithResiduals<Y, R>;

/// No rule for forward mode.
struct NoJvp {};

namespace detail {

/// Rules by leaf: of what is no float the tensors are undefined.
struct CustomRule {
  std::function<std::vector<Tensor>(const std::vector<Tensor> &cotangents)> vjp;
  std::function<std::vector<Tensor>(const std::vector<Tensor> &tangents)> jvp = {};
};
WENGERT_API std::vector<Tensor> withCustomRule(CustomRule rule, const std::vector<Source> &arguments,
                                               const std::vector<Variable> &variables,
                                               const std::vector<Tensor> &outputs, const Where &where);
[[noreturn]] WENGERT_API void raiseVariables(const std::vector<Variable> &variables, const Where &where);

/// Sees which variables are read while it lives.
class WENGERT_API VariableProbe {
public:
  VariableProbe();
  VariableProbe(const VariableProbe &) = delete;
  ~VariableProbe();
  /// Those that `outputs` were computed from; without the arguments. Ends it.
  std::vector<Variable> end(const std::vector<Tensor> &outputs, const std::vector<Source> &arguments);

private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T> inline constexpr bool isWithResiduals = false;
template <class Y, class R> inline constexpr bool isWithResiduals<WithResiduals<Y, R>> = true;
template <class T> inline constexpr bool isPair = false;
template <class A, class B> inline constexpr bool isPair<std::pair<A, B>> = true;

template <class F, class V, class J> class CustomGradient {
public:
  CustomGradient(F f, V vjp, J jvp, Where where)
      : f_(std::make_shared<F>(std::move(f))), vjp_(std::make_shared<V>(std::move(vjp))),
        jvp_(std::make_shared<J>(std::move(jvp))), where_(where) {}

  template <class... A>
    requires std::is_invocable_v<F &, const A &...>
  auto operator()(const A &...args) const {
    using Result = std::decay_t<std::invoke_result_t<F &, const A &...>>;
    std::vector<Source> arguments;
    (collectLeaves(args, arguments), ...);
    VariableProbe probe;
    Result result = (*f_)(args...);
    if constexpr (isWithResiduals<Result>)
      return finish(probe, arguments, std::move(result.value), std::tuple(result.residuals), args...);
    else
      return finish(probe, arguments, std::move(result), std::tuple(args...), args...);
  }

private:
  /// `kept`: what the rules take beside what is given.
  template <class Y, class... K, class... A>
  Y finish(VariableProbe &probe, const std::vector<Source> &arguments, Y y, std::tuple<K...> kept,
           const A &...args) const {
    constexpr bool plain = std::is_invocable_v<V &, const Y &, const K &...>;
    constexpr bool withVariables = std::is_invocable_v<V &, const Y &, const K &..., const std::vector<Variable> &>;
    static_assert(plain || withVariables,
                  "the vjp of wg::custom_gradient takes the cotangent of the result and then the residuals, if the "
                  "function returns wg::WithResiduals{result, residuals}, else the arguments of the function");
    std::vector<Tensor> outputs = tensorsOf(y);
    std::vector<Variable> variables = probe.end(outputs, arguments);
    if constexpr (!withVariables)
      if (!variables.empty())
        raiseVariables(variables, where_);
    CustomRule rule;
    rule.vjp = [vjp = vjp_, y, kept, variables](const std::vector<Tensor> &cotangents) {
      auto next = cotangents.begin();
      Y ct = mapTensors(y, [&](const Tensor &) { return *next++; });
      std::vector<Tensor> list;
      if constexpr (plain) {
        appendTensors(list, withElements(kept, [&](const K &...k) { return (*vjp)(ct, k...); }));
      } else {
        auto both = withElements(kept, [&](const K &...k) { return (*vjp)(ct, k..., variables); });
        static_assert(isPair<decltype(both)>, "with variables, the vjp of wg::custom_gradient returns a std::pair: the "
                                              "gradients of the arguments, and a std::vector of the variables'");
        appendTensors(list, both.first);
        appendTensors(list, both.second);
      }
      return list;
    };
    if constexpr (!std::same_as<J, NoJvp>) {
      using Moved = const std::vector<Tensor> &; // of the variables
      constexpr bool plainJvp = std::is_invocable_v<J &, const A &..., const K &...>;
      constexpr bool allJvp = std::is_invocable_v<J &, const A &..., const K &..., Moved>;
      static_assert(plainJvp || allJvp, "the jvp of wg::custom_gradient takes a tangent for each argument, in its "
                                        "structure, and then what the vjp takes after the cotangent");
      static_assert(!(holdsTensors<A, true>() || ...),
                    "a jvp takes tangents in the structure of the arguments, and that of a variable is a tensor: pass "
                    "variable.value()");
      if constexpr (!allJvp)
        if (!variables.empty())
          raiseVariables(variables, where_);
      rule.jvp = [jvp = jvp_, kept, given = std::tuple(args...)](const std::vector<Tensor> &tangents) {
        auto next = tangents.begin();
        auto moved = mapTensors(given, [&](const Tensor &) { return *next++; });
        std::vector<Tensor> list;
        auto call = [&](const auto &...each) {
          if constexpr (plainJvp)
            return (*jvp)(each...);
          else
            return (*jvp)(each..., std::vector<Tensor>(next, tangents.end()));
        };
        auto all = std::tuple_cat(moved, kept);
        appendTensors(list, withElements(all, call));
        return list;
      };
    }
    std::vector<Tensor> made = withCustomRule(std::move(rule), arguments, variables, outputs, where_);
    auto next = made.begin();
    return mapTensors(std::move(y), [&](const Tensor &) { return *next++; });
  }

  std::shared_ptr<F> f_;
  std::shared_ptr<V> vjp_;
  std::shared_ptr<J> jvp_;
  Where where_;
};

WENGERT_API Tensor passedThrough(const Tensor &y, const Tensor &x, const Where &where);

} // namespace detail

/// f, whose gradient is what `vjp` returns, right or wrong: `vjp(ct, args...)` gets the cotangent of f's result, in its
/// structure, and the arguments, and returns the gradients of the arguments: a tensor, or for several a std::tuple of
/// their structures; a default-constructed tensor stands for zeros. To hand on what f has computed, f returns
/// `WithResiduals{result, residuals}` and the rules take `(ct, residuals)`. An f that reads trainable variables which
/// are no arguments wants a vjp that takes them, `vjp(ct, ..., variables)`, and returns a std::pair of the gradients of
/// the arguments and a std::vector of the variables'. A derivative of the gradient goes through the ops of `vjp` and of
/// the residuals. Eagerly all of it is ordinary C++, run each time; in a traced function f and its rules are traced
/// where f is called. Forward mode uses `jvp(tangents of args..., args...)` (or residuals), which returns the tangent
/// of the result, or else the transpose of `vjp`, which is linear in the cotangent. As tf.custom_gradient,
/// jax.custom_vjp.
///
///     auto log1pexp = wg::custom_gradient(
///         [](const Tensor &x) { Tensor e = exp(x); return wg::WithResiduals{log(1 + e), e}; },
///         [](const Tensor &ct, const Tensor &e) { return ct * (1 - 1 / (1 + e)); });
template <class F, class V, class J = NoJvp>
auto custom_gradient(F f, V vjp, J jvp = {}, Where where = Where::current()) {
  return detail::CustomGradient<F, V, J>(std::move(f), std::move(vjp), std::move(jvp), where);
}

/// x, through which no derivative may pass: one that would is an error with this message. As
/// tf.raw_ops.PreventGradient.
WENGERT_API Tensor prevent_gradient(const Located &x, const std::string &message);

/// f(x), whose gradient by x is that of the identity; what f reads beside x gets none. f returns what has the dtype and
/// shape of x. As tf.grad_pass_through (the straight-through estimator).
template <class F> Tensor grad_pass_through(F f, const Located &x) {
  return detail::passedThrough(f(x.tensor()), x.tensor(), x.where());
}

} // namespace wg
