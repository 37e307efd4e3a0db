// A model as a function of its variables: with other values in their place, and many models as one.
#pragma once

#include <wengert/Vmap.h>
#include <wengert/nn/Module.h>

#include <string>
#include <vector>

namespace wg::detail {
/// The variables of a model that `values` are for: all of them, or the trainable ones, by their number.
WENGERT_API std::vector<Variable> variablesFor(const nn::Module &model, const std::vector<Source> &values,
                                               const Where &where);
/// Calls what is traced with `values` in the place of the first leaves, which are variables.
WENGERT_API void callInPlace(Arguments &arguments, const std::vector<Source> &values, Body body, Results &results);
/// The same variable of each model, stacked. Errors: no models; models of other variables; one model twice.
WENGERT_API std::vector<std::pair<std::string, Variable>>
stackedVariables(const std::vector<const nn::Module *> &models, const Where &where);
} // namespace wg::detail

namespace wg::nn {

/// `model(args...)` as it would be if its variables had other values: `values` is a structure of tensors or variables,
/// one for each variable of the model in the order of `variables()`, or one for each trainable one. The model itself
/// is not changed; what it assigns goes to the variable given for it, and is an error where a tensor is given.
/// Gradients are by what is given: `grad([&](const std::vector<Tensor> &w, const Tensor &x) { return
/// loss(nn::functional_call(model, w, x)); })`. The call is traced. Errors: another number of values; another dtype or
/// shape. As torch.func.functional_call.
template <std::derived_from<Module> M, class... A>
auto functional_call(const M &model, const Targets &values, const A &...args) {
  constexpr bool fits = std::is_invocable_v<const M &, const A &...>;
  static_assert(fits, "the model does not take these arguments");
  if constexpr (fits) {
    using R = std::decay_t<std::invoke_result_t<const M &, const A &...>>;
    if constexpr (detail::checkTypes<R, A...>()) {
      std::vector<Variable> own = detail::variablesFor(model, values.list, values.where);
      detail::Arguments arguments{values.where};
      detail::collect(arguments, own, args...);
      auto f = [&](const std::vector<Variable> &, const A &...args) { return model(args...); };
      auto run = [&](detail::Body body, detail::Results &results) {
        detail::callInPlace(arguments, values.list, body, results);
      };
      return detail::trace<R, std::vector<Variable>, A...>(f, run, own, args...);
    }
  }
}

/// Models of one kind as one model, whose variables are theirs, stacked on a first axis: `ensemble(x)` is what each of
/// them gives for x, stacked, in one batched program. It trains as any model does, each lane on its own:
///
///     std::vector<Mlp> models(10);
///     auto ensemble = wg::nn::stack_modules(models);
///     Tensor ys = ensemble(x);                  // x for all: [10, ...]
///     Tensor each = ensemble.lanes(xs);         // lane i of xs for model i
///
/// Its variables are copies. Errors: no models; models of other variables; two copies of one model, which share
/// theirs. For other axes: `vmap([&](const std::vector<Variable> &w, const Tensor &x) { return
/// functional_call(ensemble.base(), w, x); }, {.in_axes = {0, 1}})(ensemble.variables(), xs)`.
template <std::derived_from<Module> M> class StackedModules : public Module {
public:
  StackedModules(M base, const std::vector<Named> &stacked, Where where = Where::current())
      : base_(std::move(base)), where_(where) {
    for (const auto &[name, variable] : stacked)
      add(name, variable);
  }
  /// One of the models: what it computes, not its values, is of interest.
  const M &base() const { return base_; }
  template <class... A> auto operator()(const A &...args) const { return call(unmapped, args...); }
  template <class... A> auto lanes(const A &...args) const { return call(0, args...); }

private:
  template <class... A> auto call(LaneAxes axes, const A &...args) const {
    ArgumentAxes in = 0;
    in.isOne = false;
    in.list.insert(in.list.end(), sizeof...(A), axes);
    auto f = [this](const std::vector<Variable> &variables, const A &...args) {
      return functional_call(base_, Targets(variables, where_), args...);
    };
    return vmap(f, {.in_axes = in}, where_)(variables(), args...);
  }
  M base_;
  Where where_; ///< of stack_modules, in errors
};

template <std::derived_from<Module> M>
StackedModules<M> stack_modules(const std::vector<M> &models, Where where = Where::current()) {
  std::vector<const Module *> pointers;
  for (const M &model : models)
    pointers.push_back(&model);
  std::vector<Module::Named> stacked = detail::stackedVariables(pointers, where);
  return StackedModules<M>(models.front(), stacked, where);
}

} // namespace wg::nn
