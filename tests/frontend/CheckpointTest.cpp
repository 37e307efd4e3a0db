// Functions that the reverse pass computes again: the same derivatives, and the memory that is saved.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

/// What the compiled program makes of x, and the bytes of its workspace.
template <class F> static std::pair<Tensor, int64_t> valueAndBytes(F program, const Tensor &x) {
  auto f = wg::function("program", program);
  Tensor value = f(x);
  return {value, f.trace(x).workspace_bytes()};
}

namespace {

/// The gradients of f by x and w, from outside and inside of functions.
template <class F, class Check> void gradientsInAllWays(F f, const Tensor &x, const Variable &w, Check check) {
  auto gradients = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    auto [dx, dw] = tape.gradient(f(x), std::tuple(x, w));
    return std::pair(dx.value(), dw.value());
  };
  check(gradients(x));
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    check(wg::function("gradients", gradients, {.interpret = interpret})(x));
    auto called = wg::function("called", f, {.interpret = interpret});
    GradientTape tape;
    tape.watch(x);
    auto [dx, dw] = tape.gradient(called(x), std::tuple(x, w));
    check(std::pair(dx.value(), dw.value()));
  }
}

} // namespace

// C-12
TEST(CheckpointTest, TheSameDerivatives) {
  Variable w(0.7, "w");
  Tensor outside = matrix(2, 3, 4), x = matrix(2, 3);
  auto layer = [&](const Tensor &x) { return sin(x * w) * cos(x) + outside; };
  auto again = checkpoint(layer);
  auto chain = [](auto f) { return [f](const Tensor &x) { return reduce_sum(f(f(f(x)))); }; };
  GradientTape tape;
  tape.watch(x);
  auto [dx, dw] = tape.gradient(chain(layer)(x), std::tuple(x, w));
  Tensor wantedX = dx.value(), wantedW = dw.value();
  gradientsInAllWays(chain(again), x, w, [&](const std::pair<Tensor, Tensor> &found) {
    expectNear(found.first, wantedX);
    expectNear(found.second, wantedW);
  });
  // Nested, in a loop, f(x, x), forward mode and second order.
  auto both = checkpoint([&](const Tensor &a, const Tensor &b) { return again(a) * b; });
  auto mixed = [&](auto f, auto g) {
    return [=, &w](const Tensor &x) {
      return reduce_sum(for_range(0, 2, [&](const Tensor &, const Tensor &s) { return g(s, s) * 0.5 + f(s); }, x));
    };
  };
  auto plain = mixed(layer, [&](const Tensor &a, const Tensor &b) { return layer(a) * b; });
  auto repeated = mixed(again, both);
  Tensor wanted = hvp(plain, x, x * 0.5), moved = jvp(plain, std::tuple(x), std::tuple(x)).second;
  expectNear(hvp(repeated, x, x * 0.5), wanted, 1e-11);
  expectNear(jvp(repeated, std::tuple(x), std::tuple(x)).second, moved, 1e-11);
  for (bool interpret : {true, false})
    expectNear(
        wg::function("hvp", [&](const Tensor &x) { return hvp(repeated, x, x * 0.5); }, {.interpret = interpret})(x),
        wanted, 1e-11);
}

TEST(CheckpointTest, WhatIsDrawnAndAssignedInside) {
  Variable w(0.5, "w"), count(0.0, {.name = "count", .trainable = false});
  auto f = [&](const Generator &generator) {
    return [&](const Tensor &x) {
      count.assign_add(1.0);
      return reduce_sum(generator.normal({4, 5}, 0, 1, f64) * sin(x * w));
    };
  };
  Tensor x = matrix(4, 5);
  Generator first(7), second(7);
  auto gradient = [&](auto f) {
    GradientTape tape;
    tape.watch(x);
    auto [dx, dw] = tape.gradient(f(x), std::tuple(x, w));
    return std::pair(dx.value(), dw.value());
  };
  auto plain = wg::function("plain", f(first));
  auto again = checkpoint(f(second));
  for (int i = 0; i < 3; ++i) {
    auto [dx, dw] = gradient(plain);
    auto [ax, aw] = gradient(again);
    expectNear(ax, dx);
    expectNear(aw, dw);
    EXPECT_EQ(count.value().item<double>(), 2.0 * (i + 1)); // once a call
  }
}

TEST(CheckpointTest, LanesDrawAsALoopDoes) {
  Tensor xs({1.0, 2.0, 3.0});
  Generator lanes(3), turns(3);
  auto drawn = [](const Generator &generator) {
    return checkpoint([&](const Tensor &x) { return x * generator.uniform({}, 0, 1, f64); });
  };
  auto inLanes = drawn(lanes), inTurns = drawn(turns);
  Tensor found = vmap([&](const Tensor &x) { return inLanes(x); })(xs);
  for (int64_t i = 0; i < 3; ++i)
    expectNear(found[i], inTurns(xs[i]));
}

// A chain of n layers keeps n activations each; computed again, their inputs and one layer's inside.
TEST(CheckpointTest, TheWorkspaceIsSmaller) {
  constexpr int64_t kLayers = 16, kRows = 64, kWidth = 64, kInner = 8;
  Tensor x = matrix(kRows, kWidth);
  Variable w(matrix(kWidth, kWidth) * 0.1, "w");
  auto layer = [&](const Tensor &x) {
    Tensor y = x;
    for (int64_t i = 0; i < kInner; ++i)
      y = tanh(matmul(y, w));
    return y;
  };
  auto step = [&](auto layer) {
    return [&, layer](const Tensor &x) {
      GradientTape tape;
      Tensor y = x;
      for (int64_t i = 0; i < kLayers; ++i)
        y = layer(y);
      return tape.gradient(reduce_sum(y), w).value();
    };
  };
  auto [plainly, all] = valueAndBytes(step(layer), x);
  auto [again, less] = valueAndBytes(step(checkpoint(layer)), x);
  expectNear(again, plainly, 1e-9);
  constexpr int64_t kActivation = kRows * kWidth * 8;
  EXPECT_GE(all, kLayers * kInner * kActivation);
  EXPECT_LE(less, (kLayers + kInner + 8) * kActivation);
}

// The body of a loop keeps its state, and not what is inside of it.
TEST(CheckpointTest, InALoop) {
  constexpr int64_t kTurns = 50, kWidth = 200, kInner = 10;
  Tensor x = matrix(1, kWidth)[0];
  Variable w(0.9, "w");
  auto inner = [&](const Tensor &x) {
    Tensor y = x;
    for (int64_t i = 0; i < kInner; ++i)
      y = sin(y * w);
    return y;
  };
  auto step = [&](auto inner) {
    return [&, inner](const Tensor &x) {
      GradientTape tape;
      Tensor y = for_range(0, kTurns, [&](const Tensor &, const Tensor &s) { return inner(s); }, x);
      return tape.gradient(reduce_sum(y), w).value();
    };
  };
  auto [plainly, all] = valueAndBytes(step(inner), x);
  auto [again, less] = valueAndBytes(step(checkpoint(inner)), x);
  expectNear(again, plainly, 1e-10);
  EXPECT_GE(all, kTurns * kInner * kWidth * 8);
  EXPECT_LE(less, (kTurns + 4 * kInner) * kWidth * 8);
}

// Values, gradients and rows are those of the plain loop, in both directions, with turns left over.
TEST(CheckpointTest, EverySoManyTurns) {
  Tensor xs = matrix(7, 3), h0 = matrix(1, 3)[0];
  Variable w(0.5, "w");
  auto step = [&](const Tensor &h, const Tensor &x) {
    Tensor next = sin(h * w + x);
    return std::pair(next, next * x);
  };
  auto scanned = [&](bool reverse, int64_t every) {
    return [&, reverse, every](const Tensor &h0, const Tensor &xs) {
      GradientTape tape;
      tape.watch(h0, xs);
      auto [h, ys] = scan(step, h0, xs, {.reverse = reverse, .checkpoint_every = every});
      auto [dh, dx, dw] = tape.gradient(reduce_sum(h) + reduce_sum(ys * ys), std::tuple(h0, xs, w));
      return std::vector<Tensor>{h, ys, dh.value(), dx.value(), dw.value()};
    };
  };
  auto whiles = [&](int64_t every) {
    return [&, every](const Tensor &x, const Tensor &) {
      GradientTape tape;
      tape.watch(x);
      Tensor y =
          while_loop([](const Tensor &s) { return reduce_sum(s) < 50.0; }, [&](const Tensor &s) { return s * 1.3 + w; },
                     x, {.max_steps = 10, .checkpoint_every = every});
      auto [dx, dw] = tape.gradient(reduce_sum(y), std::tuple(x, w));
      return std::vector<Tensor>{y, dx.value(), dw.value()};
    };
  };
  auto compare = [&](auto plain, auto again) {
    std::vector<Tensor> wanted = plain(h0, xs);
    for (bool interpret : {true, false}) {
      std::vector<Tensor> found = wg::function("f", again, {.interpret = interpret})(h0, xs);
      for (size_t i = 0; i < wanted.size(); ++i)
        expectNear(found[i], wanted[i]);
    }
  };
  for (int64_t every : {1, 2, 3, 7, 9}) {
    SCOPED_TRACE(every);
    for (bool reverse : {false, true})
      compare(scanned(reverse, 0), scanned(reverse, every));
    compare(whiles(0), whiles(every));
  }
  auto open = wg::function("open", scanned(false, 2));
  EXPECT_TRUE(says(messageOf([&] { open.trace(TensorSpec{f64, {3}}, TensorSpec{f64, {dynamic, 3}}); }),
                   "checkpoint_every wants a number of turns that is known"));
}

// n / k states and k turns inside, each of `kept` values, instead of n turns.
TEST(CheckpointTest, TheMemoryOfEverySoManyTurns) {
  constexpr int64_t kTurns = 1000, kWidth = 64, kBytes = kWidth * 8;
  Tensor x = matrix(1, kWidth)[0] * 0.01;
  Variable w(0.9, "w");
  auto step = [&](int64_t every) {
    return [&, every](const Tensor &x) {
      GradientTape tape;
      Tensor y = for_range(0, kTurns, [&](const Tensor &, const Tensor &s) { return sin(s * w) + s * 0.1; }, x,
                           {.checkpoint_every = every});
      return tape.gradient(reduce_sum(y), w).value();
    };
  };
  auto [plainly, all] = valueAndBytes(step(0), x);
  EXPECT_GE(all, kTurns * kBytes);
  for (int64_t every : {10, 32, 100}) {
    SCOPED_TRACE(every);
    auto [again, less] = valueAndBytes(step(every), x);
    expectNear(again, plainly, 1e-10);
    double perTurn = static_cast<double>(all) / (kTurns * kBytes); // values that a turn keeps
    EXPECT_LE(static_cast<double>(less), (kTurns / every + perTurn * every + 24) * kBytes * 1.05);
  }
}

namespace {

/// Binomials: (s + r)! / (s! r!).
int64_t binomial(int64_t s, int64_t r) {
  int64_t value = 1;
  for (int64_t i = 1; i <= r; ++i)
    value = value * (s + i) / i;
  return r < 0 ? 0 : value;
}

std::atomic<int64_t> turnsRun = 0;
extern "C" int32_t count_turn(void *const *pointers, const int64_t *, void *) {
  ++turnsRun;
  *static_cast<double *>(pointers[1]) = *static_cast<const double *>(pointers[0]);
  return 0;
}

} // namespace

// Turns are computed again as few times as can be: r n - b(s + 1, r - 1) in all (Griewank and Walther 2000, section 2).
TEST(CheckpointTest, AsFewTurnsAsCanBe) {
  Variable w(0.7, "w");
  CFunction count =
      c_function("count_turn", count_turn, {.arguments = {{f64, {}}}, .result = [](const auto &of) { return of[0]; }});
  for (int64_t turns : {1, 2, 3, 5, 10, 21, 100, 1000})
    for (int64_t checkpoints : {1, 2, 3, 10, 2000}) {
      if (turns == 1000 && checkpoints == 1)
        continue;
      SCOPED_TRACE(std::to_string(turns) + " turns, " + std::to_string(checkpoints) + " checkpoints");
      auto gradient = wg::function("gradient", [&](const Tensor &x) {
        GradientTape tape;
        tape.watch(x);
        Tensor y = for_range(
            0, turns, [&](const Tensor &, const Tensor &s) { return sin(s * w) + count(stop_gradient(s)) * 0.0; }, x,
            {.checkpoints = checkpoints});
        return tape.gradient(y, std::tuple(x, w));
      });
      auto [dx, dw] = gradient(Tensor(0.9));
      turnsRun = 0;
      gradient(Tensor(0.9));
      int64_t repetitions = 0;
      while (binomial(checkpoints, repetitions) < turns)
        ++repetitions;
      EXPECT_EQ(turnsRun, repetitions * turns - binomial(checkpoints + 1, repetitions - 1));
      GradientTape tape;
      Tensor x(0.9);
      tape.watch(x);
      Tensor y = x;
      for (int64_t i = 0; i < turns; ++i)
        y = sin(y * w);
      auto [ex, ew] = tape.gradient(y, std::tuple(x, w));
      expectNear(dx.value(), ex.value(), 1e-12);
      expectNear(dw.value(), ew.value(), 1e-12);
    }
}

// Scans both ways with rows and what is stacked, loops with and without a bound; inside of a function and from outside;
// second order, lanes.
TEST(CheckpointTest, StatesThatAreComputedAgain) {
  Tensor xs = matrix(13, 3), h0 = matrix(1, 3)[0];
  Variable w(0.5, "w");
  auto scanned = [&](bool reverse, int64_t checkpoints) {
    return [&, reverse, checkpoints](const Tensor &h0, const Tensor &xs) {
      auto step = [&](const std::pair<Tensor, Tensor> &h, const Tensor &x) {
        Tensor next = sin(h.first * w + x) + h.second * 0.1;
        return std::pair(std::pair(next, h.first), next * x);
      };
      auto [h, ys] = scan(step, std::pair(h0, h0 * 2.0), xs, {.reverse = reverse, .checkpoints = checkpoints});
      return reduce_sum(h.first * h.second) + reduce_sum(ys * ys);
    };
  };
  auto whiles = [&](int64_t most, int64_t checkpoints) {
    return [&, most, checkpoints](const Tensor &x, const Tensor &xs) {
      return reduce_sum(while_loop([](const Tensor &s) { return reduce_sum(s) < 50.0; },
                                   [&](const Tensor &s) { return s * 1.3 + w + reduce_sum(xs) * 0.01; }, x,
                                   {.max_steps = most, .checkpoints = checkpoints}));
    };
  };
  auto gradients = [&](auto f) {
    return [&, f](const Tensor &h0, const Tensor &xs) {
      GradientTape tape;
      tape.watch(h0, xs);
      auto [dh, dx, dw] = tape.gradient(f(h0, xs), std::tuple(h0, xs, w));
      return std::vector<Tensor>{dh.value(), dx.value(), dw.value()};
    };
  };
  auto second = [&](auto f) {
    return [&, f](const Tensor &h0, const Tensor &xs) {
      GradientTape tape;
      tape.watch(h0);
      return std::vector<Tensor>{tape.gradient(reduce_sum(gradients(f)(h0, xs)[0] * h0), h0).value()};
    };
  };
  auto inLanes = [&](auto f) {
    return [&, f](const Tensor &h0, const Tensor &xs) {
      auto each = [&](const Tensor &h) { return gradients(f)(h, xs)[0]; };
      return std::vector<Tensor>{vmap(each)(stack({h0, h0 * 0.5}))};
    };
  };
  auto same = [](const std::vector<Tensor> &found, const std::vector<Tensor> &wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      expectNear(found[i], wanted[i], 1e-10);
  };
  auto compare = [&](auto plain, auto again) {
    for (bool interpret : {true, false}) {
      SCOPED_TRACE(interpret ? "interpreted" : "compiled");
      same(wg::function("f", gradients(again), {.interpret = interpret})(h0, xs), gradients(plain)(h0, xs));
      same(gradients(wg::function("f", again, {.interpret = interpret}))(h0, xs), gradients(plain)(h0, xs));
      same(wg::function("f", second(again), {.interpret = interpret})(h0, xs), second(plain)(h0, xs));
      same(wg::function("f", inLanes(again), {.interpret = interpret})(h0, xs), inLanes(plain)(h0, xs));
    }
  };
  for (int64_t checkpoints : {1, 3, 100}) {
    SCOPED_TRACE(checkpoints);
    for (bool reverse : {false, true})
      compare(scanned(reverse, 0), scanned(reverse, checkpoints));
    compare(whiles(-1, 0), whiles(-1, checkpoints));
    compare(whiles(7, 0), whiles(7, checkpoints));
  }
  EXPECT_TRUE(says(messageOf([&] { scanned(false, -1)(h0, xs); }), "checkpoints is -1"));
}

// So many states and one turn, for any number of turns, of loops without a bound too.
TEST(CheckpointTest, TheMemoryOfCheckpoints) {
  constexpr int64_t kWidth = 256, kBytes = kWidth * 8;
  Tensor x = matrix(1, kWidth)[0] * 0.01;
  Variable w(0.9, "w");
  auto ranged = [&](int64_t turns, int64_t checkpoints) {
    return [&, turns, checkpoints](const Tensor &x) {
      GradientTape tape;
      Tensor y = for_range(0, turns, [&](const Tensor &, const Tensor &s) { return sin(s * w) + s * 0.1; }, x,
                           {.checkpoints = checkpoints});
      return tape.gradient(reduce_sum(y), w).value();
    };
  };
  int64_t least = 0;
  for (int64_t checkpoints : {2, 5, 20, 100}) {
    SCOPED_TRACE(checkpoints);
    auto [value, bytes] = valueAndBytes(ranged(1000, checkpoints), x);
    expectNear(value, valueAndBytes(ranged(1000, 0), x).first, 1e-10);
    if (checkpoints == 2)
      least = bytes;
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(least + (checkpoints - 2) * kBytes),
                0.05 * least + 128 * checkpoints);
    EXPECT_LE(bytes, (checkpoints + 16) * kBytes);
  }
  auto whiles = [&](const Tensor &x) {
    GradientTape tape;
    auto [y, i] = while_loop([](const std::pair<Tensor, Tensor> &s) { return s.second < int64_t(3000); },
                             [&](const std::pair<Tensor, Tensor> &s) {
                               return std::pair(sin(s.first * w) + s.first * 0.1, s.second + int64_t(1));
                             },
                             std::pair(x, Tensor(int64_t(0))), {.checkpoints = 10});
    return tape.gradient(reduce_sum(y), w).value();
  };
  // What a scan stacks for others is not computed again where nobody reads it.
  auto scanned = [&](int64_t turns) {
    return [&, turns](const Tensor &x) {
      GradientTape tape;
      auto step = [&](const Tensor &s, const std::monostate &) { return std::pair(sin(s * w), reduce_sum(s)); };
      auto [y, sums] = scan(step, x, std::monostate(), {.length = turns, .checkpoints = 5});
      return tape.gradient(reduce_sum(y), w).value();
    };
  };
  EXPECT_EQ(valueAndBytes(scanned(2000), x).second, valueAndBytes(scanned(100), x).second);
  auto [value, bytes] = valueAndBytes(whiles, x);
  expectNear(value, valueAndBytes(ranged(3000, 0), x).first, 1e-10);
  EXPECT_LE(bytes, (10 + 16) * (kBytes + 64));
}
