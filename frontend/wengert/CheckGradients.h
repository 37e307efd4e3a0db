// check_gradients: are the derivatives of a function those of its values?
#pragma once

#include <wengert/Transforms.h>

#include <functional>
#include <string>
#include <vector>

namespace wg {

struct CheckGradientsOptions {
  int order = 2;              ///< 1: gradients and adjointness; 2: second derivatives too
  double tolerance = 0;       ///< relative to max(1, |value|); 0: 1e-6, second order 1e-5; where an f32 takes part 1e-3
  double step = 1e-2;         ///< the longest step of the differences
  int64_t max_elements = 500; ///< of more elements, so many are drawn, for the gradient
  int64_t seed = 0;           ///< of what is drawn
};

/// What check_gradients found. The errors are relative to max(1, |value|).
struct GradientCheck {
  bool passed = true;
  double gradient_error = 0;     ///< the largest, of gradients by reverse mode beside differences
  double adjointness_error = 0;  ///< of forward mode beside reverse mode: <ct, J v> = <J^T ct, v>
  double second_order_error = 0; ///< of forward over reverse mode beside differences of the gradient
  std::string report;            ///< in words: each of these, with the worst element
  explicit operator bool() const { return passed; }
};

namespace detail {
/// A function as check_gradients sees it: lists of tensors in and out.
struct CheckedFunction {
  std::vector<Source> primals;
  std::function<void(const std::vector<Tensor> &at)> move; ///< the primals' values, for what follows
  std::function<std::vector<Tensor>()> value;
  std::function<std::vector<Grad>(const std::vector<Tensor> &cts)> reverse;
  std::function<std::vector<Grad>(const std::vector<Tensor> &moves)> forward;
  std::function<std::vector<Grad>(const std::vector<Tensor> &cts, const std::vector<Tensor> &moves)> along;
};
WENGERT_API GradientCheck checkGradients(const CheckedFunction &f, const CheckGradientsOptions &options,
                                         const Where &where);
WENGERT_API std::vector<Grad> gradsOf(const std::vector<Tensor> &tensors);

/// The float tensors of a function's value.
template <class T> std::vector<Tensor> floatsIn(const T &tree) {
  std::vector<Tensor> list;
  for (const Grad &each : gradientsIn(tree))
    if (each.has_value() && runtime::isFloat(each.dtype()))
      list.push_back(each.value());
  return list;
}
template <class F, class... A> auto floatsOf(const F &f, const Where &where, const A &...args) {
  return recordedValue<NoAux>([&](const auto &...args) { return floatsIn(f(args...)); }, where, args...);
}
} // namespace detail

/// Compares the derivatives of f at `primals` with extrapolated differences of its values (Ridders 1982), which know
/// their own error: the gradient element by element, forward mode against reverse mode, and second derivatives. For
/// functions with a gradient of their own, and for tests:
///
///     wg::GradientCheck check = wg::check_gradients(f, std::tuple(x, w));
///     EXPECT_TRUE(check) << check.report;
///
/// One argument is given as it is, several as a tuple; f may return any structure of tensors, whose float ones are
/// weighted with numbers that are drawn. Variables are moved and put back. Use f64: of f32 little can be told. At a
/// kink, and where a step leaves f's domain, differences say nothing: such elements are left out, and the report says
/// how many. Errors: primals without a float; those of f.
template <class F, class Primals>
GradientCheck check_gradients(F f, const Primals &primals, const CheckGradientsOptions &options = {},
                              Where where = Where::current()) {
  return detail::withArguments(primals, [&]<class... A>(const A &...args) {
    GradientCheck check;
    if constexpr (detail::checkArguments<F, detail::NoAux, A...>()) {
      std::tuple<A...> at{args...};
      auto apply = [&](auto use) { return detail::withElements(at, use); };
      detail::CheckedFunction checked;
      detail::collectLeaves(at, checked.primals);
      checked.move = [&](const std::vector<Tensor> &values) {
        size_t next = 0;
        detail::visit(at, [&]<class L>(L &leaf) {
          if constexpr (std::same_as<L, Tensor>)
            leaf = values[next++];
          else if constexpr (std::same_as<L, Variable>)
            leaf.assign(values[next++]);
          else if constexpr (std::same_as<L, Grad>)
            leaf = Grad(values[next++]);
        });
      };
      checked.value = [&] { return apply([&](const auto &...x) { return detail::floatsIn(f(x...)); }); };
      checked.reverse = [&](const std::vector<Tensor> &cts) {
        return apply([&](const auto &...x) { return detail::floatsOf(f, where, x...)->gradients(cts, where); });
      };
      checked.forward = [&](const std::vector<Tensor> &moves) {
        return apply(
            [&](const auto &...x) { return detail::floatsOf(f, where, x...)->tangent(detail::gradsOf(moves), where); });
      };
      checked.along = [&](const std::vector<Tensor> &cts, const std::vector<Tensor> &moves) {
        auto gradient = [&](const auto &...x) { return detail::floatsOf(f, where, x...)->gradients(cts, where); };
        return apply([&](const auto &...x) {
          return detail::recordedValue<detail::NoAux>(gradient, where, x...)->tangent(detail::gradsOf(moves), where);
        });
      };
      check = detail::checkGradients(checked, options, where);
    }
    return check;
  });
}

} // namespace wg
