// Conditions and loops under vmap, and their Jacobians.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

/// vmap of f is a loop over the lanes; so are its gradients and those of each lane, interpreted and compiled.
static void expectLanes(const std::function<Tensor(const Tensor &, const Tensor &)> &f, const Tensor &xs,
                        const Tensor &w) {
  GradientOptions zeros{.unconnected = Unconnected::zero}; // a branch that is not taken gives zeros
  std::vector<Tensor> values, slopes;
  GradientTape all;
  all.watch(w);
  for (int64_t i = 0; i < xs.dim(0); ++i) {
    Tensor x = xs[i];
    GradientTape tape;
    tape.watch(x);
    values.push_back(f(x, w));
    slopes.push_back(tape.gradient(reduce_sum(values.back()), x, zeros).value());
  }
  Tensor byShared = all.gradient(reduce_sum(stack(values)), w, zeros).value();
  auto mapped = vmap(f, {.in_axes = {0, unmapped}});
  auto slope = vmap(
      [&](const Tensor &x, const Tensor &v) {
        GradientTape tape;
        tape.watch(x);
        return tape.gradient(reduce_sum(f(x, v)), x, zeros).value();
      },
      {.in_axes = {0, unmapped}});
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    auto traced = wg::function("mapped", mapped, {.interpret = interpret});
    expectNear(traced(xs, w), stack(values), 1e-11);
    expectNear(wg::function("slope", slope, {.interpret = interpret})(xs, w), stack(slopes), 1e-10);
    GradientTape tape;
    tape.watch(xs, w);
    auto [dx, dw] = tape.gradient(reduce_sum(traced(xs, w)), std::tuple(xs, w), zeros);
    expectNear(dx.value(), stack(slopes), 1e-10);
    expectNear(dw.value(), byShared, 1e-10);
  }
}

TEST(ControlLanesTest, LanesOfScans) {
  Tensor w = matrix(1, 3, 1)[0];
  expectLanes(
      [](const Tensor &x, const Tensor &w) {
        auto step = [&](const Tensor &h, const Tensor &row) { return std::pair(tanh(h * w + row), row * exp(w)); };
        auto [h, ys] = scan(step, zeros({3}, f64), reshape(concat({x, w * 2.0}), {2, 3}));
        return h + reduce_sum(ys, {0});
      },
      matrix(4, 3), w);
  // What is scanned is the same in all lanes, the state is not; and the other way round.
  expectLanes(
      [](const Tensor &x, const Tensor &w) {
        return fold([](const Tensor &s, const Tensor &r) { return sin(s) + r; }, x[0], w);
      },
      matrix(4, 3), w);
  expectLanes([](const Tensor &x,
                 const Tensor &w) { return fold([](const Tensor &s, const Tensor &r) { return s * r; }, w[0], x); },
              matrix(4, 3), w);
}

TEST(ControlLanesTest, LanesThatChooseAndEndDifferently) {
  Tensor w(1.3), xs({0.4, -1.2, 2.5, 0.9, -0.1});
  expectLanes([](const Tensor &x,
                 const Tensor &w) { return cond(x > 0.0, [&] { return log(x) * w; }, [&] { return sqrt(-x) + w; }); },
              xs, w);
  expectLanes([](const Tensor &x, const Tensor &w) { return cond(w > 0.0, [&] { return x * w; }, [&] { return w; }); },
              xs, w);
  expectLanes(
      [](const Tensor &x, const Tensor &w) {
        return switch_case(cast(x + 1.0, i64), [&] { return x; }, [&] { return w * w; }, [&] { return x * x * w; });
      },
      xs, w);
  for (int64_t most : {12, -1})
    expectLanes(
        [&](const Tensor &x, const Tensor &w) {
          using State = std::pair<Tensor, Tensor>;
          State s = while_loop([](const State &s) { return s.first < 3.0; },
                               [&](const State &s) { return State(s.first * w + 0.7, s.second * sin(s.first)); },
                               State(x, w), {.max_steps = most});
          return s.first * s.second;
        },
        xs, w);
}

TEST(ControlLanesTest, JacobiansOfLoops) {
  auto f = [](const Tensor &w) {
    return for_range(0, 3, [&](const Tensor &, const Tensor &s) { return tanh(s * w) + reduce_sum(s); }, w * 2.0);
  };
  Tensor w = matrix(1, 3)[0];
  for (DerivativeMode mode : {DerivativeMode::forward, DerivativeMode::reverse}) {
    auto jacobianOf = [&](auto g) {
      GradientTape tape;
      tape.watch(w);
      Tensor y = g(w);
      return tape.jacobian(y, w, JacobianOptions{.mode = mode}).value();
    };
    Tensor wanted = jacobianOf(f);
    for (bool interpret : {true, false}) {
      expectNear(jacobianOf(wg::function("f", f, {.interpret = interpret})), wanted);
      expectNear(wg::function("j", [&](const Tensor &x) { return jacobian(f, {.mode = mode})(x); },
                              {.interpret = interpret})(w),
                 wanted);
    }
  }
}

TEST(ControlLanesTest, AnEagerTapeCannotRecordTheLanesOfALoop) {
  auto f = [](const Tensor &w) {
    return for_range(0, 3, [&](const Tensor &, const Tensor &s) { return sin(s * w); }, w * 2.0);
  };
  Tensor w = matrix(1, 3)[0];
  GradientTape outer;
  outer.watch(w);
  GradientTape tape;
  tape.watch(w);
  Tensor y = wg::function("f", f)(w);
  std::string text = messageOf([&] { tape.jacobian(y, w); });
  EXPECT_TRUE(says(text, "a tape cannot record the lanes of a loop")) << text;
  EXPECT_TRUE(says(text, "take both derivatives in one wg::function")) << text;
}
