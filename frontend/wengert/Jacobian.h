// Jacobians and Hessians as functions of functions, on GradientTape::jacobian.
#pragma once

#include <wengert/Transforms.h>

#include <functional>
#include <memory>
#include <mutex>

namespace wg {

namespace detail {

/// The structure of the value, with `next()`, of type J, in the place of each tensor. A struct becomes a tuple of its
/// fields, an array one of its elements.
template <class J, class V, class Next> auto jacobianTree(const V &value, Next &next) {
  if constexpr (isLeaf<V>) {
    return next(std::bool_constant<!isStatic<V>>());
  } else if constexpr (isVector<V>) {
    std::vector<decltype(jacobianTree<J>(value.front(), next))> list;
    for (const auto &element : value)
      list.push_back(jacobianTree<J>(element, next));
    return list;
  } else if constexpr (isOptional<V>) {
    std::optional<decltype(jacobianTree<J>(*value, next))> one;
    if (value)
      one = jacobianTree<J>(*value, next);
    return one;
  } else if constexpr (isMap<V>) {
    std::map<std::string, decltype(jacobianTree<J>(value.begin()->second, next))> map;
    for (const auto &[key, element] : value)
      map.emplace(key, jacobianTree<J>(element, next));
    return map;
  } else if constexpr (HasFields<V>) {
    return value.wengert_fields()([&](const auto &...fields) {
      return std::tuple<decltype(jacobianTree<J>(fields, next))...>{jacobianTree<J>(fields, next)...};
    });
  } else if constexpr (requires { typename V::first_type; }) {
    using First = decltype(jacobianTree<J>(value.first, next));
    using Second = decltype(jacobianTree<J>(value.second, next));
    return std::pair<First, Second>{jacobianTree<J>(value.first, next), jacobianTree<J>(value.second, next)};
  } else if constexpr (isTuple<V>) {
    return withElements(value, [&](const auto &...elements) {
      return std::tuple<decltype(jacobianTree<J>(elements, next))...>{jacobianTree<J>(elements, next)...};
    });
  } else {
    return value; // std::monostate
  }
}

/// How the last Jacobian was computed, on any thread.
class WENGERT_API JacobianNote {
public:
  void set(std::string text);
  std::string get() const;

private:
  mutable std::mutex mutex_;
  std::string text_;
};

template <class Aux, class F> class JacobianFunction {
public:
  JacobianFunction(F f, const JacobianOptions &options, const Where &where)
      : f_(std::move(f)), options_(options), where_(where), note_(std::make_shared<JacobianNote>()) {}

  template <class A, class... Rest> auto operator()(const A &first, const Rest &...rest) const {
    if constexpr (checkAll<A, Rest...>()) {
      GradientTape tape({.watch_accessed_variables = false});
      A x = independent(tape, first, VariablePlaces(first, rest...), true, where_);
      auto value = f_(x, rest...);
      std::vector<Source> sources;
      collectLeaves(x, sources);
      std::vector<std::vector<Grad>> all = jacobiansOf(tape, Targets(lossOf<Aux>(value), where_), sources, options_);
      note_->set(tape.explain_jacobian(where_));
      size_t row = 0;
      auto next = [&]<bool isTarget>(std::bool_constant<isTarget>) {
        size_t column = 0;
        std::vector<Grad> *grads = isTarget ? &all[row++] : nullptr;
        return mapTree(x, [&]<class L>(const L &) -> Grad {
          if constexpr (isStatic<L> || !isTarget)
            return Grad::none(isTarget ? kNotASource : "the target is a number, an enum or a string");
          else
            return std::move((*grads)[column++]);
        });
      };
      auto jacobian = jacobianTree<GradientOf<A>>(lossOf<Aux>(value), next);
      if constexpr (std::same_as<Aux, HasAux>)
        return std::pair(std::move(jacobian), std::get<1>(std::move(value)));
      else
        return jacobian;
    }
  }
  /// How the last one was computed: in which mode, why in that, and how many columns or rows at once.
  std::string explain() const { return note_->get(); }

private:
  /// One of the two after the other, so that there is one error.
  template <class A, class... Rest> static constexpr bool checkAll() {
    if constexpr (checkArguments<F, Aux, A, Rest...>())
      return checkSource<A>();
    return false;
  }
  F f_;
  JacobianOptions options_;
  Where where_;
  std::shared_ptr<JacobianNote> note_;
};

template <class F> class BatchJacobianFunction {
public:
  BatchJacobianFunction(F f, const JacobianOptions &options, const Where &where)
      : f_(std::move(f)), options_(options), where_(where), note_(std::make_shared<JacobianNote>()) {}

  template <class A, class... Rest> Grad operator()(const A &first, const Rest &...rest) const {
    if constexpr (checkArguments<F, NoAux, A, Rest...>()) {
      constexpr bool isOne = std::same_as<A, Tensor> || std::same_as<A, Variable> || std::same_as<A, Grad>;
      static_assert(isOne, "batch_jacobian is by one tensor of examples");
      if constexpr (isOne) {
        GradientTape tape({.watch_accessed_variables = false});
        A x = independent(tape, first, VariablePlaces(first, rest...), true, where_);
        auto value = f_(x, rest...);
        Grad found = tape.batch_jacobian(Targets(value, where_), x, options_);
        note_->set(tape.explain_jacobian(where_));
        return found;
      }
    }
    return {};
  }
  std::string explain() const { return note_->get(); }

private:
  F f_;
  JacobianOptions options_;
  Where where_;
  std::shared_ptr<JacobianNote> note_;
};

} // namespace detail

/// The Jacobian of f by its first argument: `auto j = jacobian(f)(x);`, of shape y.shape + x.shape. A structure of y
/// has that of x at each of its tensors (a struct with fields becomes a tuple of them): `jacobian(f)(std::tuple(a, b))`
/// is a tuple of two. Empty with a reason where y does not depend on x. Forward mode computes a column for each element
/// of x, reverse mode a row for each of y; which of them follows from these counts unless `mode` says, and
/// `jacobian(f).explain()` tells. All columns, or as many as `memory_limit` lets, are one batched program, also inside
/// of wg::function; there a number of columns that is `?` is not cut, and chunk_size is an error. As for
/// value_and_grad, what f captures is a constant; with `has_aux` f returns a pair (y, aux), and the result is the pair
/// (Jacobian, aux). As jax.jacfwd and jax.jacrev.
template <class F> auto jacobian(F f, const JacobianOptions &options = {}, Where where = Where::current()) {
  return detail::JacobianFunction<detail::NoAux, F>(std::move(f), options, where);
}
template <class F> auto jacobian(F f, HasAux, const JacobianOptions &options = {}, Where where = Where::current()) {
  return detail::JacobianFunction<HasAux, F>(std::move(f), options, where);
}

/// The Jacobian of each example: f of one tensor [b, x...] (and more arguments) with a value [b, y...] gives
/// [b, y..., x...]. Example i of the value is to depend on example i of x only, which is not checked.
template <class F> auto batch_jacobian(F f, const JacobianOptions &options = {}, Where where = Where::current()) {
  return detail::BatchJacobianFunction<F>(std::move(f), options, where);
}

namespace detail {
template <class Aux, class F> auto hessianOf(F f, JacobianOptions options, const Where &where) {
  JacobianOptions inner{.mode = DerivativeMode::reverse, .unconnected = options.unconnected};
  auto gradient = [f = std::move(f), inner, where]<class... A>(const A &...args) {
    if constexpr (checkArguments<F, Aux, A...>())
      return JacobianFunction<Aux, std::reference_wrapper<const F>>(std::cref(f), inner, where)(args...);
    else
      return std::pair<Tensor, Tensor>(); // what is wrong was said
  };
  if (options.mode == DerivativeMode::automatic)
    options.mode = DerivativeMode::forward;
  return JacobianFunction<Aux, decltype(gradient)>(std::move(gradient), options, where);
}
} // namespace detail

/// The Hessian of f by its first argument, of shape y.shape + x.shape + x.shape: forward mode over reverse mode, a
/// batch of products with a Hessian. A structure of x gives a structure of structures: `h["w"]["b"]` (a struct with
/// fields: a tuple of structs). `mode` is that of the outer derivative, forward unless it is reverse. With `has_aux` f
/// returns a pair (y, aux), and the result is the pair (Hessian, aux).
template <class F> auto hessian(F f, const JacobianOptions &options = {}, Where where = Where::current()) {
  return detail::hessianOf<detail::NoAux>(std::move(f), options, where);
}
template <class F> auto hessian(F f, HasAux, const JacobianOptions &options = {}, Where where = Where::current()) {
  return detail::hessianOf<HasAux>(std::move(f), options, where);
}

} // namespace wg
