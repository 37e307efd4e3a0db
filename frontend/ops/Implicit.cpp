// Solvers without matrices.
#include "frontend/ops/Operands.h"

#include <wengert/Implicit.h>

namespace wg {

int64_t detail::mostIterations(const char *op, const SolverOptions &options, const Tensor &b, const Where &where) {
  const TensorType &type = b.body(where)->type;
  if (!runtime::isFloat(type.dtype))
    raiseOp(op, "b is " + toString(type) + ", and a solution is a float", "cast it: cast(b, f32)", {type}, where,
            ErrorKind::type);
  if (options.max_iterations < -1 || options.restart < 1 || !(options.tolerance >= 0))
    raiseOp(op,
            "max_iterations is " + std::to_string(options.max_iterations) + ", restart " +
                std::to_string(options.restart) + ", tolerance " + std::to_string(options.tolerance),
            "give -1 or more, 1 or more, and 0 or more", {}, where);
  if (options.max_iterations >= 0)
    return options.max_iterations;
  if (!type.shape.isStatic())
    raiseOp(op, "b is " + toString(type) + ", of sizes that are not known", "give max_iterations", {type}, where);
  return 10 * type.shape.numElements();
}

Tensor detail::newtonStep(const Tensor &x, const Tensor &r, const LinearMap &derivative, const LinearMap &transposed,
                          const LinearSolver &solve, const LinearSolver &transpose) {
  return x + custom_gradient([](const Tensor &r) { return stop_gradient(r) * 0.0; },
                             [=](const Tensor &ct, const Tensor &) { return -transpose(transposed, ct); },
                             [=](const Tensor &moved, const Tensor &) { return -solve(derivative, moved); })(r);
}

static Tensor dot(const Tensor &a, const Tensor &b) { return reduce_sum(a * b); }
/// a / b, and 0 where b is 0.
static Tensor safeDivide(const Tensor &a, const Tensor &b) {
  Tensor isZero = b == 0.0;
  return wg::where(isZero, a * 0.0, a / wg::where(isZero, b * 0.0 + 1.0, b));
}

Tensor cg(const LinearMap &a, const Tensor &b, const SolverOptions &options, Where where) {
  int64_t most = detail::mostIterations("cg", options, b, where);
  Tensor goal = dot(b, b) * (options.tolerance * options.tolerance);
  struct State {
    Tensor x, r, p, rr;
    WENGERT_FIELDS(x, r, p, rr)
  };
  State end = while_loop([&](const State &s) { return s.rr > goal; },
                         [&](const State &s) {
                           Tensor ap = a(s.p), step = safeDivide(s.rr, dot(s.p, ap));
                           Tensor r = s.r - step * ap, rr = dot(r, r);
                           return State{s.x + step * s.p, r, r + safeDivide(rr, s.rr) * s.p, rr};
                         },
                         State{b * 0.0, b, b, dot(b, b)}, {.max_steps = most}, where);
  return end.x;
}

Tensor gmres(const LinearMap &a, const Tensor &b, const SolverOptions &options, Where where) {
  int64_t most = detail::mostIterations("gmres", options, b, where);
  const Shape &shape = b.shape();
  if (!shape.isStatic())
    detail::raiseOp("gmres", "b has sizes that are not known", "trace with the sizes given", {b.body()->type}, where);
  int64_t n = shape.numElements(), m = std::min(options.restart, std::max<int64_t>(1, n));
  int64_t turns = (most + m - 1) / m;
  DType dtype = b.dtype();
  auto flat = [&](const Tensor &x) { return reshape(x, {n}); };
  auto apply = [&](const Tensor &x) { return flat(a(reshape(x, shape))); };
  Tensor target = flat(b), goal = dot(target, target) * (options.tolerance * options.tolerance);
  /// e_i of `size` as a column beside `row`: what adds a row to a matrix.
  auto rowAt = [&](const Tensor &i, int64_t size, const Tensor &row) {
    return expand_dims(one_hot(i, size, dtype), 1) * expand_dims(row, 0);
  };
  /// One cycle of Arnoldi's method. `v`: an orthonormal basis, a row each; `q`: one of the columns of H, so that
  /// H = Q R; both grow by a row each turn.
  struct Basis {
    Tensor v, q, i;
    WENGERT_FIELDS(v, q, i)
  };
  auto cycle = [&](const std::pair<Tensor, Tensor> &s) {
    auto &[x, r] = s;
    Tensor beta = sqrt(dot(r, r));
    Tensor first = one_hot(Tensor(int64_t(0)), m + 1, dtype);
    auto arnoldi = [&](const Basis &s, const std::monostate &) {
      Tensor last = matmul(one_hot(s.i, m + 1, dtype), s.v);
      Tensor w = apply(last), h = matmul(s.v, w);
      w = w - matmul(h, s.v);
      Tensor again = matmul(s.v, w); // a second time for rounding
      w = w - matmul(again, s.v);
      Tensor size = sqrt(dot(w, w)), next = s.i + 1;
      Tensor column = h + again + one_hot(next, m + 1, dtype) * size;
      Tensor v = s.v + rowAt(next, m + 1, safeDivide(w, size));
      Tensor above = matmul(s.q, column), rest = column - matmul(above, s.q);
      Tensor more = matmul(s.q, rest);
      rest = rest - matmul(more, s.q);
      Tensor length = sqrt(dot(rest, rest));
      Tensor q = s.q + rowAt(s.i, m, safeDivide(rest, length));
      // A direction that is none has a zero below it: its coefficient is 0 / 1.
      Tensor diagonal = length + cast(length == 0.0, dtype);
      return std::pair(Basis{v, q, next}, above + more + one_hot(s.i, m, dtype) * diagonal);
    };
    Basis begin{expand_dims(first, 1) * expand_dims(safeDivide(r, beta), 0), zeros({m, m + 1}, dtype),
                Tensor(int64_t(0))};
    auto [basis, columns] = scan(arnoldi, begin, std::monostate(), {.length = m}, where);
    Tensor right = expand_dims(matmul(basis.q, first * beta), 1);
    Tensor y = reshape(triangular_solve(transpose(columns), right, {.lower = false}), {m});
    Tensor better = x + matmul(y, slice(basis.v, {0, 0}, {m, n}));
    return std::pair(better, target - apply(better));
  };
  std::pair<Tensor, Tensor> begin(target * 0.0, target);
  auto more = [&](const std::pair<Tensor, Tensor> &s) { return dot(s.second, s.second) > goal; };
  return reshape(while_loop(more, cycle, begin, {.max_steps = turns}, where).first, shape);
}

} // namespace wg
