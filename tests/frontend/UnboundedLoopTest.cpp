// Derivatives of loops without a bound in compiled code: what turns keep has room, which grows with their number.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::gradientsOf;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;
using wg::tests::Tensors;

/// x, doubled with a bend until the sum reaches x[1].
static Tensor grown(const Tensor &x, const Tensor &until, const Tensor &w) {
  return while_loop([&](const Tensor &s) { return reduce_sum(s) < until; },
                    [&](const Tensor &s) { return s * 1.01 + sin(s * w) * 0.01; }, x);
}

template <class F> static bool isInterpreted(const F &f) { return says(f.report(), "interpreted"); }

// From none to many turns and back, inside of one function and from outside of it.
TEST(UnboundedLoopTest, RoomGrowsWithTheTurns) {
  Tensor x = matrix(1, 3)[0] + 1.0, w(0.7);
  auto gradients = [](const Tensor &x, const Tensor &until, const Tensor &w) {
    GradientTape tape;
    tape.watch(x, w);
    auto [dx, dw] = tape.gradient(reduce_sum(grown(x, until, w)), std::tuple(x, w), {.unconnected = Unconnected::zero});
    return std::pair(dx.value(), dw.value());
  };
  auto inside = wg::function("inside", gradients);
  auto value = wg::function("value", grown);
  auto outside = [&](const Tensor &x, const Tensor &until, const Tensor &w) {
    GradientTape tape;
    tape.watch(x, w);
    auto [dx, dw] = tape.gradient(reduce_sum(value(x, until, w)), std::tuple(x, w), {.unconnected = Unconnected::zero});
    return std::pair(dx.value(), dw.value());
  };
  for (double until : {1.0, 5.0, 6.0, 8.0, 20.0, 1e3, 7.0, 1e9, 1.0, 30.0}) {
    SCOPED_TRACE(until);
    auto [dx, dw] = gradients(x, Tensor(until), w);
    for (auto [ex, ew] : {inside(x, Tensor(until), w), outside(x, Tensor(until), w)}) {
      expectNear(ex, dx, 1e-9);
      expectNear(ew, dw, 1e-9);
    }
  }
  EXPECT_FALSE(isInterpreted(inside));
}

// The room is that of the longest call, and an eighth or a half more at most.
TEST(UnboundedLoopTest, WorkspaceFollowsTheTurns) {
  auto turns = [](const Tensor &x, const Tensor &n) {
    GradientTape tape;
    tape.watch(x);
    auto [s, i] = while_loop([&](const std::pair<Tensor, Tensor> &s) { return s.second < n; },
                             [](const std::pair<Tensor, Tensor> &s) { return std::pair(sin(s.first), s.second + 1.0); },
                             std::pair(x, Tensor(0.0)));
    return tape.gradient(reduce_sum(s), x).value();
  };
  auto f = wg::function("turns", turns);
  Tensor x = matrix(1, 64)[0];
  for (int64_t n : {10, 1000, 1001, 5000}) {
    f(x, Tensor(static_cast<double>(n)));
    int64_t bytes = f.trace(x, Tensor(0.0)).workspace_bytes();
    EXPECT_GE(bytes, n * 64 * 8);
    EXPECT_LE(bytes, std::max<int64_t>(64, n * 3 / 2 + 1) * 64 * 8 * 9 / 8 + 8192);
  }
}

// Large states have less room at first; a profile makes its own.
TEST(UnboundedLoopTest, TheFirstRoomAndProfiles) {
  auto gradient = [](const Tensor &x, const Tensor &until) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = while_loop([&](const Tensor &s) { return reduce_max(s) < until; },
                          [](const Tensor &s) { return s * 1.1 + sin(s) * 0.1; }, x);
    return tape.gradient(reduce_sum(y), x).value();
  };
  auto f = wg::function("f", gradient);
  constexpr int64_t kSize = 1 << 20;
  Tensor large = ones({kSize}, f64);
  expectNear(f(large, Tensor(1.2)), gradient(large, Tensor(1.2)), 1e-10);
  EXPECT_LE(f.trace(large, Tensor(0.0)).workspace_bytes(), 10 * kSize * 8);
  auto profiled = wg::function("profiled", gradient);
  EXPECT_FALSE(profiled.profile(Tensor{1.0}, Tensor(1e9)).kernels.empty());
}

// A loop inside of another, whose turns differ: rows as long as the longest.
TEST(UnboundedLoopTest, InsideOfOtherLoops) {
  auto nested = [](const Tensor &x, const Tensor &w) {
    GradientTape tape;
    tape.watch(x, w);
    auto inner = [&](const Tensor &s) {
      return while_loop([&](const Tensor &t) { return reduce_sum(t) < 3.0 * reduce_sum(s) + 1.0; },
                        [&](const Tensor &t) { return t * 1.1 + cos(t * w) * 0.05; }, s);
    };
    Tensor rows = map([&](const Tensor &row) { return inner(row) * row; }, x);
    Tensor y = while_loop([&](const Tensor &s) { return reduce_sum(s) < 1e3; },
                          [&](const Tensor &s) { return inner(s) + w; }, reduce_sum(rows * rows, {0}));
    auto [dx, dw] = tape.gradient(reduce_sum(y), std::tuple(x, w));
    return std::vector<Tensor>{y, dx.value(), dw.value()};
  };
  Tensor w(0.3);
  for (double size : {0.01, 0.3, 2.0}) {
    Tensor x = abs(matrix(4, 3)) * Tensor{{size}, {size * 10}, {size * 0.1}, {size}} + 0.01;
    Tensors wanted = nested(x, w);
    for (bool interpret : {true, false}) {
      auto f = wg::function("nested", nested, {.interpret = interpret});
      Tensors found = f(x, w);
      for (size_t i = 0; i < wanted.size(); ++i)
        expectNear(found[i], wanted[i], 1e-9);
      EXPECT_EQ(isInterpreted(f), interpret);
    }
  }
}

// Second order, forward over reverse, lanes that end apart.
TEST(UnboundedLoopTest, OtherModes) {
  Tensor x = matrix(1, 3)[0] + 1.0, w(0.7), until(20.0);
  auto loss = [&](const Tensor &x) { return reduce_sum(grown(x, until, w)); };
  auto gradient = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(loss(x), x).value();
  };
  auto second = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(gradient(x) * x), x).value();
  };
  auto mixed = [&](const Tensor &x) { return jvp(gradient, std::tuple(x), std::tuple(sin(x))).second; };
  Tensor lanes = matrix(5, 3) + 1.0;
  auto inLanes = [&](const Tensor &x) { return vmap(gradient)(x); };
  auto compare = [&](auto f, const Tensor &x) {
    auto traced = wg::function("f", f);
    expectNear(traced(x), f(x), 1e-8);
    EXPECT_FALSE(isInterpreted(traced));
  };
  compare(second, x);
  compare(mixed, x);
  compare(inLanes, lanes);
  auto check = check_gradients(wg::function("loss", loss), std::tuple(x), {.order = 2});
  EXPECT_TRUE(check.passed) << check.report;
}

// A call that is made again with more room changes a variable once, and one that fails not at all; what prints is
// interpreted, and printed once.
TEST(UnboundedLoopTest, WhatACallChangesItChangesOnce) {
  Variable v(1.0, "v");
  Tensor table = matrix(1, 300)[0];
  auto step = wg::function("step", [&](const Tensor &n) {
    GradientTape tape;
    Tensor before = v.value();
    auto [s, i] =
        while_loop([&](const std::pair<Tensor, Tensor> &s) { return s.second < n; },
                   [&](const std::pair<Tensor, Tensor> &s) {
                     return std::pair(s.first * 0.99 + gather(table, s.second) * before, s.second + int64_t(1));
                   },
                   std::pair(before, Tensor(int64_t(0))));
    Tensor slope = tape.gradient(s, v).value();
    v.assign(v.value() + 1.0);
    return slope;
  });
  for (int64_t n : {3, 200}) {
    Tensor found = step(Tensor(n));
    double wanted = 1.0;
    for (int64_t i = 0; i < n; ++i)
      wanted = wanted * 0.99 + table[i].item<double>();
    EXPECT_NEAR(found.item<double>(), wanted, 1e-9);
  }
  EXPECT_EQ(v.value().item<double>(), 3.0);
  EXPECT_TRUE(says(messageOf([&] { step(Tensor(int64_t(301))); }), "300"));
  EXPECT_EQ(v.value().item<double>(), 3.0);
  EXPECT_FALSE(isInterpreted(step));

  std::ostringstream out;
  set_print_stream(out);
  auto printing = wg::function("printing", [](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    print("once");
    return tape
        .gradient(while_loop([](const Tensor &s) { return s < 1e6; }, [](const Tensor &s) { return s * 1.1; }, x), x)
        .value();
  });
  printing(Tensor(1.0));
  set_print_stream(std::cout);
  EXPECT_EQ(out.str(), "once\n");
}

TEST(UnboundedLoopTest, ThreadsWithDifferentTurns) {
  Tensor x = matrix(1, 3)[0] + 1.0, w(0.7);
  auto gradient = wg::function("gradient", [](const Tensor &x, const Tensor &until, const Tensor &w) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(grown(x, until, w)), x).value();
  });
  auto eager = [&](double until) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(grown(x, Tensor(until), w)), x).value();
  };
  std::vector<std::thread> threads;
  std::vector<Tensor> found(6);
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 5; ++turn)
        found[i] = gradient(x, Tensor(std::pow(10.0, static_cast<double>(i + 1))), w);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < found.size(); ++i)
    expectNear(found[i], eager(std::pow(10.0, static_cast<double>(i + 1))), 1e-9);
}
