// Solutions of equations and their derivatives; solvers without matrices; what finds NaN.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

Tensor newton(const LinearMap &f, const Tensor &initial) {
  return while_loop([&](const Tensor &x) { return abs(f(x)) > 1e-13; },
                    [&](const Tensor &x) {
                      auto [y, slope] = jvp(f, std::tuple(x), std::tuple(x * 0.0 + 1.0));
                      return x - y / slope;
                    },
                    initial, {.max_steps = 60});
}

/// f and its derivatives against differences, eagerly, interpreted and compiled.
template <class F, class... P> void expectRightDerivatives(F f, const P &...primals) {
  auto check = [&](auto g) {
    GradientCheck found = check_gradients(g, std::tuple(primals...));
    EXPECT_TRUE(found.passed) << found.report;
  };
  check(f);
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    check(wg::function("f", f, {.interpret = interpret}));
  }
}

/// A matrix that is far from singular.
Tensor regular(int64_t n) { return matrix(n, n) + eye(n, {}, f64) * 3.0; }

} // namespace

TEST(ImplicitTest, ARootMovesWithItsEquation) {
  auto root = [](const Tensor &a) {
    return custom_root([&](const Tensor &x) { return exp(x) + a * x * x - 3.0; }, Tensor(1.0), newton);
  };
  expectRightDerivatives(root, Tensor(0.7));
  auto cube = [](const Tensor &a) {
    return custom_root([&](const Tensor &x) { return x * x * x - a; }, Tensor(1.0), newton);
  };
  auto first = [&](const Tensor &a) { return grad(cube)(a).value(); };
  auto second = wg::function("second", [&](const Tensor &a) { return grad(first)(a).value(); });
  expectNear(second(Tensor(2.0)), Tensor(-2.0 / 9 * std::pow(2.0, -5.0 / 3)), 1e-12);
  // Variables that the equation reads, and a solver of any kind.
  Variable w(2.0, "w");
  auto bisect = [](const LinearMap &f, const Tensor &) {
    double low = 0, high = 3;
    for (int i = 0; i < 80; ++i)
      (f(Tensor((low + high) / 2)).item<double>() < 0 ? low : high) = (low + high) / 2;
    return Tensor((low + high) / 2);
  };
  GradientTape tape;
  Tensor x = custom_root([&](const Tensor &x) { return x * x - w; }, Tensor(1.0), bisect);
  expectNear(tape.gradient(x, w).value(), Tensor(0.5 / std::sqrt(2.0)), 1e-10);
}

TEST(ImplicitTest, ARootOfManyDimensions) {
  auto solve = [](const LinearMap &f, const Tensor &initial) {
    return for_range(0, 60, [&](const Tensor &, const Tensor &x) { return x - f(x) * 0.3; }, initial);
  };
  auto root = [&](const Tensor &a) { // x + tanh(a x) / 4 = a
    Tensor m = reshape(a, {2, 2});
    return custom_root([&](const Tensor &x) { return x + tanh(matmul(m, x)) * 0.25 - reduce_sum(m, {0}); },
                       Tensor({0.0, 0.0}), solve);
  };
  Tensor a({0.3, -0.5, 0.9, 0.2});
  auto steps = [&](const Tensor &a) {
    Tensor m = reshape(a, {2, 2});
    auto f = [&](const Tensor &x) { return x + tanh(matmul(m, x)) * 0.25 - reduce_sum(m, {0}); };
    Tensor x({0.0, 0.0});
    for (int i = 0; i < 90; ++i)
      x = x - f(x) * 0.7;
    return x;
  };
  expectNear(grad([&](const Tensor &a) { return reduce_sum(root(a)); })(a).value(),
             grad([&](const Tensor &a) { return reduce_sum(steps(a)); })(a).value(), 1e-8);
}

// By gmres, the default: its steps end early, so that their derivative is not that of the solution.
TEST(ImplicitTest, SecondDerivativesDoNotGoThroughTheSolver) {
  auto solve = [](const LinearMap &f, const Tensor &initial) {
    return for_range(0, 8, [&](const Tensor &, const Tensor &x) { return x - f(x) / (2.0 * x); }, initial);
  };
  auto roots = [&](const Tensor &a) {
    return reduce_sum(custom_root([&](const Tensor &x) { return x * x - a; }, Tensor({1.0, 1.0}), solve));
  };
  Tensor m = regular(4);
  for (double other : {2.0, 3.0}) {
    Tensor a({2.0, other}), wanted = eye(2, {}, f64) * (-0.25 / (a * sqrt(a)));
    expectNear(hessian(roots)(a).value(), wanted, 1e-9);
    for (bool interpret : {true, false})
      expectNear(
          wg::function("h", [&](const Tensor &a) { return hessian(roots)(a).value(); }, {.interpret = interpret})(a),
          wanted, 1e-9);
  }
  auto energy = [&](const Tensor &b) {
    Tensor x = custom_linear_solve([&](const Tensor &v) { return matmul(m, v); }, b,
                                   [](const LinearMap &a, const Tensor &b) { return gmres(a, b); });
    return reduce_sum(x * x) * 0.5;
  };
  Tensor h = hessian(energy)(matrix(1, 4)[0]).value(); // (m m^T)^-1
  expectNear(matmul(matmul(m, transpose(m)), h), eye(4, {}, f64), 1e-7);
}

TEST(ImplicitTest, ALinearSolution) {
  auto byGmres = [](const LinearMap &a, const Tensor &b) { return gmres(a, b, {.tolerance = 1e-13}); };
  auto solve = [&](const Tensor &m, const Tensor &b) {
    return custom_linear_solve([&](const Tensor &v) { return matmul(m, v); }, b, byGmres);
  };
  Tensor m = regular(5), b = matrix(1, 5, 2)[0];
  expectNear(matmul(m, solve(m, b)), b, 1e-10);
  expectRightDerivatives(solve, m, b);
  // A solver for each direction.
  int transposed = 0;
  auto both = [&](const Tensor &b) {
    return custom_linear_solve([&](const Tensor &v) { return matmul(m, v); }, b, byGmres,
                               [&](const LinearMap &a, const Tensor &b) {
                                 ++transposed;
                                 return byGmres(a, b);
                               });
  };
  GradientTape tape;
  tape.watch(b);
  Tensor y = reduce_sum(both(b));
  expectNear(matmul(transpose(m), tape.gradient(y, b).value()), ones({5}, f64), 1e-10);
  EXPECT_GT(transposed, 0);
}

TEST(ImplicitTest, SolversWithoutMatrices) {
  Tensor m = regular(30), spd = matmul(m, transpose(m)) * 0.05;
  Tensor b = matrix(1, 30, 3)[0];
  auto times = [](const Tensor &a) { return [a](const Tensor &v) { return matmul(a, v); }; };
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    auto conjugate = wg::function("cg", [&](const Tensor &b) { return cg(times(spd), b); }, {.interpret = interpret});
    expectNear(matmul(spd, conjugate(b)), b, 1e-8);
    // Fewer directions than dimensions: it starts again.
    auto restarted = wg::function("gmres", [&](const Tensor &b) { return gmres(times(m), b, {.restart = 12}); },
                                  {.interpret = interpret});
    expectNear(matmul(m, restarted(b)), b, 1e-8);
    expectNear(restarted(b * 0.0), b * 0.0);
    expectNear(conjugate(b * 0.0), b * 0.0);
  }
  // A map of matrices, and one whose first direction solves it.
  Tensor x = gmres([](const Tensor &v) { return v * 2.0 + transpose(v) * 0.5; }, matrix(3, 3));
  expectNear(x * 2.0 + transpose(x) * 0.5, matrix(3, 3), 1e-9);
  expectNear(gmres([](const Tensor &v) { return v * 4.0; }, b), b * 0.25, 1e-12);
  EXPECT_TRUE(says(messageOf([&] { cg(times(spd), cast(b, i64)); }), "cg: b is i64[30], and a solution is a float"));
  EXPECT_TRUE(says(messageOf([&] { gmres(times(m), b, {.restart = 0}); }), "restart 0"));
}

TEST(ImplicitTest, SizesThatHaveNoSquares) {
  for (const LinearSolver &solve : {LinearSolver([](const LinearMap &a, const Tensor &b) { return cg(a, b); }),
                                    LinearSolver([](const LinearMap &a, const Tensor &b) { return gmres(a, b); })}) {
    LinearMap twice = [](const Tensor &v) { return v * 2.0; };
    for (double size : {1e200, 1.0, 1e-200})
      expectNear(solve(twice, Tensor({1.0, 3.0}) * size) / size, Tensor({0.5, 1.5}), 1e-12);
    for (float size : {1e20f, 1e-25f})
      expectNear(cast(solve(twice, Tensor({1.0f, 3.0f}) * size) / size, f64), Tensor({0.5, 1.5}), 1e-5);
    int products = 0; // f32 has not the digits of the default of f64
    Tensor diagonal = cast(arange(0, 300, 1, f64) * 0.01 + 1.0, f32), b = cast(matrix(1, 300)[0], f32);
    Tensor x = solve(
        [&](const Tensor &v) {
          ++products;
          return v * diagonal;
        },
        b);
    expectNear(cast(x * diagonal, f64), cast(b, f64), 1e-4);
    EXPECT_LT(products, 100);
  }
}

TEST(ImplicitTest, ErrorsNameTheUsersLine) {
  auto same = [](const LinearMap &, const Tensor &x) { return x; };
  for (const std::string &text :
       {messageOf([] { cg([](const Tensor &v) { return reduce_sum(v); }, Tensor({1.0, 2.0})); }),
        messageOf([&] { custom_root([](const Tensor &x) { return reduce_sum(x); }, Tensor({1.0, 2.0}), same); })}) {
    EXPECT_TRUE(says(text, "makes what is f64[], for an unknown that is f64[2]")) << text;
    EXPECT_TRUE(says(text, "ImplicitTest.cpp")) << text;
  }
  std::string text = messageOf([&] { custom_root([](const Tensor &x) { return x; }, Tensor({1, 2}), same); });
  EXPECT_TRUE(says(text, "custom_root: the unknown is i32[2], and a solution is a float")) << text;
  auto open = wg::function(
      "open", [&](const Tensor &x) { return custom_root([&](const Tensor &y) { return y - x; }, x, same); });
  text = messageOf([&] { open.trace(TensorSpec{f64, {dynamic}}); });
  EXPECT_TRUE(says(text, "give a tangent_solve, or trace with the sizes")) << text;
}

TEST(DebugNansTest, NamesTheOpTheLineAndTheTurn) {
  struct Scope {
    Scope() { set_debug_nans(true); }
    ~Scope() { set_debug_nans(false); }
  };
  auto f = wg::function("f", [](const Tensor &x) {
    return for_range(0, 9, [](const Tensor &, const Tensor &s) { return log(s - 0.3); }, x);
  });
  Tensor x({2.0, 30.0});
  EXPECT_NO_THROW(f(x));
  {
    Scope scope;
    std::string text = messageOf([&] { f(x); });
    EXPECT_TRUE(says(text, "log: gives NaN at [0], which no operand has (turn 2 of the loop at ImplicitTest.cpp"))
        << text;
    EXPECT_TRUE(says(messageOf([] { sqrt(Tensor(-1.0)); }), "sqrt: gives NaN"));
    EXPECT_TRUE(says(messageOf([] { Tensor(1.0) / 0.0; }), "div: gives an infinity"));
    // One that came in, and one that is written in the program.
    EXPECT_NO_THROW(Tensor(std::nan("")) + 1.0);
    EXPECT_NO_THROW(wg::where(x > 3.0, x, -INFINITY));
  }
  EXPECT_NO_THROW(f(x));
}
