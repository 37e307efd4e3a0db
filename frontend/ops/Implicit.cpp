// Solvers without matrices.
#include "frontend/ops/Operands.h"

#include <wengert/Implicit.h>

namespace wg {

/// The most products with the map.
static int64_t mostIterations(const char *op, const SolverOptions &options, const Tensor &b, const Where &where) {
  detail::checkUnknown(op, "b", b, false, where);
  const TensorType &type = b.body(where)->type;
  if (options.max_iterations < -1 || options.restart < 1 || !(options.tolerance >= 0 || options.tolerance == -1))
    detail::raiseOp(op,
                    "max_iterations is " + std::to_string(options.max_iterations) + ", restart " +
                        std::to_string(options.restart) + ", tolerance " +
                        runtime::toString(runtime::Array::scalar(options.tolerance)),
                    "give -1 or more, 1 or more, and 0 or more", {}, where);
  if (options.max_iterations >= 0)
    return options.max_iterations;
  if (!type.shape.isStatic())
    detail::raiseOp(op, "b is " + toString(type) + ", of sizes that are not known", "give max_iterations", {type},
                    where);
  return 10 * type.shape.numElements();
}

void detail::checkLike(const char *op, const char *what, const Tensor &made, const Tensor &x, const Where &where) {
  const TensorType &type = made.body(where)->type, &wanted = x.body(where)->type;
  if (type.dtype != wanted.dtype || !sameSizes(type.shape, wanted.shape))
    raiseOp(op, std::string(what) + " is " + toString(type) + ", for an unknown that is " + toString(wanted),
            "return what has the unknown's dtype and shape", {type, wanted}, where, ErrorKind::type);
}

void detail::checkUnknown(const char *op, const char *what, const Tensor &x, bool sizes, const Where &where) {
  const TensorType &type = x.body(where)->type;
  std::string found = std::string(what) + " is " + toString(type);
  if (!runtime::isFloat(type.dtype))
    raiseOp(op, found + ", and a solution is a float", "cast it: cast(x, f64)", {type}, where, ErrorKind::type);
  if (sizes && type.shape.rank() > 0 && !type.shape.isStatic())
    raiseOp(op, found + ", and gmres, by which its derivatives go, wants known sizes",
            "give a tangent_solve, or trace with the sizes", {type}, where);
}

/// The solution with `orders` right derivatives by b and by what the map reads.
static Tensor solved(const detail::LinearSystem &system, const Tensor &b, int orders, const Where &where) {
  Tensor x = stop_gradient(system.solve(system.map, stop_gradient(b)));
  detail::checkLike(system.op, "the linear solution", x, b, where);
  for (int step = 0; step < orders; ++step)
    x = detail::newtonStep(x, system.map(x) - b, system, 0, where);
  return x;
}

Tensor detail::newtonStep(const Tensor &x, const Tensor &r, const LinearSystem &s, int orders, const Where &where) {
  LinearSystem turned{s.op, s.transposed, s.map, s.transposeSolve, s.solve};
  auto backward = [=](const Tensor &ct, const Tensor &) { return -solved(turned, ct, orders, where); };
  auto forward = [=](const Tensor &moved, const Tensor &) { return -solved(s, moved, orders, where); };
  return x + custom_gradient([](const Tensor &r) { return stop_gradient(r) * 0.0; }, backward, forward, where)(r);
}

static Tensor dot(const Tensor &a, const Tensor &b) { return reduce_sum(a * b); }
/// a / b, and 0 where b is 0.
static Tensor safeDivide(const Tensor &a, const Tensor &b) {
  Tensor isZero = b == 0.0;
  return wg::where(isZero, a * 0.0, a / wg::where(isZero, b * 0.0 + 1.0, b));
}

/// The largest size of an element, and 1 if that is 0: of what is divided by it the squares are in range.
static Tensor scaleOf(const Tensor &b) {
  Tensor largest = reduce_max(abs(concat({reshape(b, {-1}), zeros({1}, b.dtype())})));
  return wg::where(largest == 0.0, largest + 1.0, largest);
}
static double toleranceOf(const SolverOptions &options, DType dtype) {
  return options.tolerance >= 0 ? options.tolerance : dtype == f32 ? 1e-5 : 1e-10;
}
/// a, which is checked.
static LinearMap checkedMap(const char *op, const LinearMap &a, const Where &where) {
  return [=](const Tensor &v) {
    Tensor product = a(v);
    detail::checkLike(op, "the map makes what", product, v, where);
    return product;
  };
}

Tensor cg(const LinearMap &map, const Tensor &right, const SolverOptions &options, Where where) {
  int64_t most = mostIterations("cg", options, right, where);
  LinearMap a = checkedMap("cg", map, where);
  Tensor scale = scaleOf(right), b = right / scale;
  double tolerance = toleranceOf(options, right.dtype());
  Tensor goal = dot(b, b) * (tolerance * tolerance);
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
  return end.x * scale;
}

Tensor gmres(const LinearMap &map, const Tensor &b, const SolverOptions &options, Where where) {
  if (const TensorType &type = b.body(where)->type; !type.shape.isStatic())
    detail::raiseOp("gmres", "b is " + toString(type) + ", of sizes that are not known", "trace with the sizes given",
                    {type}, where);
  int64_t most = mostIterations("gmres", options, b, where);
  LinearMap a = checkedMap("gmres", map, where);
  const Shape &shape = b.shape();
  int64_t n = shape.numElements(), m = std::min(options.restart, std::max<int64_t>(1, n));
  int64_t turns = (most + m - 1) / m;
  DType dtype = b.dtype();
  auto flat = [&](const Tensor &x) { return reshape(x, {n}); };
  auto apply = [&](const Tensor &x) { return flat(a(reshape(x, shape))); };
  Tensor scale = scaleOf(b), target = flat(b) / scale;
  double tolerance = toleranceOf(options, dtype);
  Tensor goal = dot(target, target) * (tolerance * tolerance);
  /// e_i of `size` as a column beside `row`: what adds a row to a matrix.
  auto rowAt = [&](const Tensor &i, int64_t size, const Tensor &row) {
    return expand_dims(one_hot(i, size, dtype), 1) * expand_dims(row, 0);
  };
  /// One cycle of Arnoldi's method. `v`: an orthonormal basis, a row each; `q`: one of H's columns, so that
  /// H = Q R; both grow by a row each turn.
  struct Basis {
    Tensor v, q, i;
    WENGERT_FIELDS(v, q, i)
  };
  struct State {
    Tensor x, r, rr, before; ///< `rr`: the square of the residual; `before`: what it was a cycle ago
    WENGERT_FIELDS(x, r, rr, before)
  };
  auto cycle = [&](const State &s) {
    auto &[x, r, rr, before] = s;
    Tensor beta = sqrt(rr);
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
    Tensor better = x + matmul(y, slice(basis.v, {0, 0}, {m, n})), rest = target - apply(better),
           less = dot(rest, rest);
    Tensor worse = less > rr; // rounding
    return State{wg::where(worse, x, better), wg::where(worse, r, rest), wg::where(worse, rr, less), rr};
  };
  Tensor all = dot(target, target);
  // Ends too where a cycle has hardly gained.
  auto more = [&](const State &s) { return logical_and(s.rr > goal, s.rr < s.before * 0.999); };
  State end = while_loop(more, cycle, State{target * 0.0, target, all, all * 2.0}, {.max_steps = turns}, where);
  return reshape(end.x, shape) * scale;
}

} // namespace wg
