// Solutions of equations, differentiated by the equations and not through the steps that found them; and solvers that
// ask of a matrix no more than its products.
#pragma once

#include <wengert/Control.h>
#include <wengert/CustomGradient.h>

#include <functional>
#include <utility>

namespace wg {

/// A linear map of a tensor to one of its shape.
using LinearMap = std::function<Tensor(const Tensor &)>;
/// x with A(x) = b.
using LinearSolver = std::function<Tensor(const LinearMap &a, const Tensor &b)>;

struct SolverOptions {
  double tolerance = -1;       ///< ends when |b - A x| <= tolerance |b|; -1: 1e-10, of f32 1e-5
  int64_t max_iterations = -1; ///< products with A; -1: ten times the elements of b
  int64_t restart = 20;        ///< of gmres: how many directions it keeps
};

namespace detail {
/// f, which may refer to what is gone when a gradient is computed: eagerly traced at once, as what is traced is anyway.
template <class F> LinearMap kept(F f, const Tensor &x, const Where &where) {
  if (isTracing())
    return f;
  auto traced = wg::function("equation", f, {.interpret = true}, where).trace(x);
  return [traced](const Tensor &v) { return traced(v)[0]; };
}
/// v with w -> J^T w or v -> J v, where J is the derivative of f at x.
inline LinearMap transposedAt(const LinearMap &f, const Tensor &x) {
  return [f, x](const Tensor &w) {
    GradientTape tape;
    tape.watch(x);
    Tensor r = f(x);
    return tape.gradient(r, x, {.output_gradients = w, .unconnected = Unconnected::zero}).value();
  };
}
inline LinearMap derivativeAt(const LinearMap &f, const Tensor &x) {
  return [f, x](const Tensor &v) { return jvp(f, std::tuple(x), std::tuple(v)).second; };
}
/// A linear map, its transpose, and what solves with them; of the op of this name.
struct LinearSystem {
  const char *op;
  LinearMap map, transposed;
  LinearSolver solve, transposeSolve;
};
/// x - J^-1 r, where r is 0: x in value. It moves as Newton's step does, so that one more derivative is right than
/// those of x. The solutions that move it have `orders` right derivatives themselves.
WENGERT_API Tensor newtonStep(const Tensor &x, const Tensor &r, const LinearSystem &system, int orders,
                              const Where &where);
/// Errors unless what an equation or a solver made is like `x`.
WENGERT_API void checkLike(const char *op, const char *what, const Tensor &made, const Tensor &x, const Where &where);
/// Errors unless x, called `what`, is a float, and its sizes are known where `sizes` says that this is needed.
WENGERT_API void checkUnknown(const char *op, const char *what, const Tensor &x, bool sizes, const Where &where);
} // namespace detail

/// x with A(x) = b by conjugate gradients, for a map that is symmetric and positive definite (Hestenes and Stiefel
/// 1952). Its derivative is that of the steps; for that of the solution: custom_linear_solve.
WENGERT_API Tensor cg(const LinearMap &a, const Tensor &b, const SolverOptions &options = {},
                      Where where = Where::current());
/// x with A(x) = b by restarted GMRES, for any map that can be inverted (Saad and Schultz 1986); otherwise as cg.
WENGERT_API Tensor gmres(const LinearMap &a, const Tensor &b, const SolverOptions &options = {},
                         Where where = Where::current());

/// x with a(x) = b, found by `solve(a, b)`, where a, the map, is linear. Derivatives by b and by all that it reads, to
/// second order, go by two more solutions for each, with the transposed map in reverse mode: by `transpose_solve`, or
/// by `solve`. As jax.lax.custom_linear_solve.
///
///     Tensor x = custom_linear_solve([&](const Tensor &v) { return matmul(m, v); }, b,
///                                    [](const LinearMap &a, const Tensor &b) { return gmres(a, b); });
template <class A>
Tensor custom_linear_solve(A map, const Tensor &b, const LinearSolver &solve, const LinearSolver &transpose_solve = {},
                           Where where = Where::current()) {
  constexpr const char *kName = "custom_linear_solve";
  detail::checkUnknown(kName, "b", b, false, where);
  LinearMap a = detail::kept(std::move(map), b, where);
  Tensor x = stop_gradient(solve(a, stop_gradient(b)));
  detail::checkLike(kName, "the solution", x, b, where);
  for (int step = 0; step < 2; ++step) {
    Tensor product = a(x);
    detail::checkLike(kName, "the map makes what", product, b, where);
    x = detail::newtonStep(x, product - b,
                           {kName, a, detail::transposedAt(a, x), solve, transpose_solve ? transpose_solve : solve}, 1,
                           where);
  }
  return x;
}

/// x with f(x) = 0, found by `solve(f, initial)`; f, the equation, returns what has the dtype and shape of x.
/// Derivatives by all that f reads, to second order, by the implicit function theorem: two linear solutions at x for
/// each, by `tangent_solve`; default: a division where x is a scalar, else gmres. The steps of `solve` are not
/// differentiated, and may be any. As jax.lax.custom_root.
///
///     Tensor root = custom_root([&](const Tensor &x) { return x * x - a; }, Tensor(1.0), newton);
template <class F, class S>
Tensor custom_root(F equation, const Tensor &initial, S solve, LinearSolver tangent_solve = {},
                   Where where = Where::current()) {
  constexpr const char *kName = "custom_root";
  detail::checkUnknown(kName, "the unknown", initial, !tangent_solve, where);
  LinearMap f = detail::kept(std::move(equation), initial, where);
  if (!tangent_solve)
    tangent_solve = [](const LinearMap &a, const Tensor &b) { return b.rank() == 0 ? b / a(b * 0 + 1) : gmres(a, b); };
  Tensor x = stop_gradient(solve(f, stop_gradient(initial)));
  detail::checkLike(kName, "the solver's result", x, initial, where);
  for (int step = 0; step < 2; ++step) {
    Tensor r = f(x);
    detail::checkLike(kName, "the equation makes what", r, initial, where);
    x = detail::newtonStep(
        x, r, {kName, detail::derivativeAt(f, x), detail::transposedAt(f, x), tangent_solve, tangent_solve}, 1, where);
  }
  return x;
}

} // namespace wg
