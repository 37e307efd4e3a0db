// Conditions and loops: the same values and derivatives eagerly, interpreted and compiled, in every mode and to second
// order; variables, captures, structures, failures.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::gradientsOf;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;
using wg::tests::Tensors;

using Program = std::function<Tensors(const Tensors &)>;

/// Values, gradients from outside, gradients of gradients and tangents of f are those of the loop that runs eagerly,
/// and those of differences.
static void expectSameInAllWays(const Program &f, const Tensors &x, double tolerance = 1e-11) {
  Tensors values = f(x), gradients = gradientsOf(f, x);
  auto second = [&](const Program &g) { return gradientsOf([&](const Tensors &y) { return gradientsOf(g, y); }, x); };
  Tensors twice = second(f);
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    auto traced = wg::function("program", f, {.interpret = interpret});
    Program call = [&](const Tensors &y) { return traced(y); };
    auto compare = [&](const Tensors &found, const Tensors &wanted) {
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i)
        expectNear(cast(found[i], f64), cast(wanted[i], f64), tolerance);
    };
    compare(call(x), values);
    compare(gradientsOf(call, x), gradients);
    auto inside =
        wg::function("gradient", [&](const Tensors &y) { return gradientsOf(f, y); }, {.interpret = interpret});
    compare(inside(x), gradients);
    compare(second(call), twice);
    auto loss = [&](const Tensors &y) { return wg::tests::lossOf(call(y)); };
    GradientCheck check = check_gradients(loss, std::tuple(x), {.order = 2});
    EXPECT_TRUE(check.passed) << check.report;
  }
}

static Tensors one(const Tensor &x) { return {x}; }

// L-1, L-2, L-3
TEST(ControlTest, AConditionTakesOneBranch) {
  for (double at : {0.7, 1.6})
    expectSameInAllWays(
        [](const Tensors &x) {
          Tensor q = x[0] * 2.0;
          return one(cond(x[0] > 1.0, [&] { return sin(x[0]) * q; }, [&] { return exp(x[1]) + q * q; }));
        },
        {Tensor(at), Tensor(0.3)});
  // Nested, with more than one result.
  for (double at : {-1.0, 0.5, 2.0})
    expectSameInAllWays(
        [](const Tensors &x) {
          auto [a, b] = cond(
              x[0] > 0.0,
              [&] {
                return cond(
                    x[0] > 1.0, [&] { return std::pair(x[0] * x[1], x[1]); },
                    [&] { return std::pair(tanh(x[0]), x[0] * x[0]); });
              },
              [&] { return std::pair(exp(x[0]), x[0] / 3.0); });
          return Tensors{a * b, a};
        },
        {Tensor(at), Tensor(1.2)});
}

TEST(ControlTest, ABranchByNumberAndAPredicateOfCpp) {
  for (int64_t i : {-3, 0, 1, 2, 7}) {
    auto f = [&](const Tensor &x) {
      return switch_case(Tensor(i), [&] { return x; }, [&] { return x * x; }, [&] { return x * x * x; });
    };
    Tensor x(1.5);
    double power = std::pow(1.5, std::clamp<int64_t>(i, 0, 2) + 1);
    EXPECT_DOUBLE_EQ(f(x).item<double>(), power);
    auto by = [&](bool interpret) {
      return wg::function("f",
                          [](const Tensor &i, const Tensor &x) {
                            return switch_case(i, [&] { return x; }, [&] { return x * x; }, [&] { return x * x * x; });
                          },
                          {.interpret = interpret});
    };
    EXPECT_DOUBLE_EQ(by(false)(Tensor(i), x).item<double>(), power);
    EXPECT_DOUBLE_EQ(by(true)(Tensor(static_cast<int32_t>(i)), x).item<double>(), power);
  }
  // L-17
  auto g = wg::function("g", [](bool p, const Tensor &x) { return cond(p, [&] { return x; }, [&] { return -x; }); });
  EXPECT_EQ(g(true, Tensor(2.0)).item<double>(), 2.0);
  EXPECT_EQ(g(false, Tensor(2.0)).item<double>(), -2.0);
  EXPECT_FALSE(says(g.trace(true, Tensor(2.0)).text(Stage::traced), "wg.cond"));
}

// L-2
TEST(ControlTest, AGradientOfWhatTheOtherBranchUsesIsZero) {
  Tensor x(2.0), y(3.0), z(4.0);
  auto f = wg::function("f", [](const Tensor &x, const Tensor &y, const Tensor &z) {
    return cond(x > 0.0, [&] { return x * x; }, [&] { return x * y; });
  });
  GradientTape tape;
  tape.watch(x, y, z);
  auto [dx, dy, dz] = tape.gradient(f(x, y, z), std::tuple(x, y, z));
  EXPECT_EQ(dx.value().item<double>(), 4.0);
  EXPECT_EQ(dy.value().item<double>(), 0.0);
  EXPECT_FALSE(dz.has_value());
}

TEST(ControlTest, NaNInTheOtherBranchGoesNowhere) {
  expectSameInAllWays(
      [](const Tensors &x) {
        return one(cond(x[0] > 0.0, [&] { return sqrt(x[0]); }, [&] { return sqrt(-x[0]) / (x[0] * 0.0); }));
      },
      {Tensor(0.5)});
}

// L-4, L-8, L-9
TEST(ControlTest, AWhileLoopWithAndWithoutALimit) {
  for (int64_t most : {-1, 40, 3, 0})
    for (double stop : {50.0, -1.0}) {
      SCOPED_TRACE(most);
      expectSameInAllWays(
          [&](const Tensors &x) {
            using State = std::tuple<Tensor, Tensor, Tensor>; // a number, one that does not change, a counter
            auto [a, b, n] = while_loop([&](const State &s) { return std::get<0>(s) < stop; },
                                        [&](const State &s) {
                                          auto [a, b, n] = s;
                                          return State(a * x[1] + sin(b), b, n + 1);
                                        },
                                        State(x[0], x[2], Tensor(int64_t(0))), {.max_steps = most});
            return Tensors{a * b, n};
          },
          {Tensor(1.1), Tensor(1.7), Tensor(0.4)}, 1e-10);
    }
}

// L-7
TEST(ControlTest, ALoopThatIsNotDifferentiable) {
  auto f = [](const Tensor &x) {
    return while_loop([](const Tensor &s) { return s < 10.0; }, [&](const Tensor &s) { return s * x; }, x,
                      {.differentiable = false});
  };
  for (bool traced : {false, true}) {
    Tensor x(1.5);
    GradientTape tape;
    tape.watch(x);
    Tensor y = traced ? wg::function("f", f)(x) : f(x);
    EXPECT_FALSE(tape.gradient(y, x).has_value());
  }
}

// L-11
TEST(ControlTest, AScanInBothDirectionsAndOfManyLengths) {
  for (bool reverse : {false, true})
    for (int64_t rows : {0, 1, 2, 5}) {
      SCOPED_TRACE(rows);
      expectSameInAllWays(
          [&](const Tensors &x) {
            auto step = [&](const Tensor &h, const Tensor &row) {
              Tensor next = tanh(matmul(x[1], h) + row * exp(x[2]));
              return std::pair(next, std::tuple(next * row, reduce_sum(next)));
            };
            auto [h, ys] = scan(step, x[2], x[0], {.reverse = reverse});
            return Tensors{h, std::get<0>(ys), std::get<1>(ys)};
          },
          {rows ? matrix(rows, 3) : zeros({0, 3}, f64), matrix(3, 3, 1), matrix(1, 3, 2)[0]});
    }
}

TEST(ControlTest, MapFoldAndARange) {
  expectSameInAllWays(
      [](const Tensors &x) { return one(map([&](const Tensor &r) { return softmax(r) * x[1]; }, x[0])); },
      {matrix(4, 3), Tensor(0.7)});
  expectSameInAllWays(
      [](const Tensors &x) {
        return one(fold([](const Tensor &s, const Tensor &r) { return s * 0.5 + reduce_sum(r * r); }, x[1], x[0]));
      },
      {matrix(4, 3), Tensor(0.7)});
  for (bool unroll : {false, true})
    expectSameInAllWays(
        [&](const Tensors &x) {
          return one(for_range(
              2, 7, [&](const Tensor &i, const Tensor &s) { return s * x[0] + cast(i, f64); }, x[1],
              RangeOptions{.unroll = unroll}));
        },
        {Tensor(0.8), Tensor(1.5)});
  expectSameInAllWays(
      [&](const Tensors &x) {
        return one(for_range(
            0, cast(x[0] * 10.0, i64), [&](const Tensor &, const Tensor &s) { return s * x[0]; }, x[1],
            WhileOptions{.max_steps = 20}));
      },
      {Tensor(0.81), Tensor(1.5)});
}

TEST(ControlTest, AnAssociativeScan) {
  for (bool reverse : {false, true})
    for (int64_t n : {0, 1, 2, 3, 4, 7, 16, 33}) {
      SCOPED_TRACE(n);
      // y = a y + b, by pairs (a, b), beside a loop.
      auto join = [](const std::pair<Tensor, Tensor> &x, const std::pair<Tensor, Tensor> &y) {
        return std::pair(x.first * y.first, y.first * x.second + y.second);
      };
      Tensor a = n ? matrix(n, 2) : zeros({0, 2}, f64), b = n ? matrix(n, 2, 1) : zeros({0, 2}, f64);
      auto f = [&](const Tensor &a, const Tensor &b) {
        return associative_scan(join, std::pair(a, b), {.reverse = reverse}).second;
      };
      auto step = [](const Tensor &y, const std::pair<Tensor, Tensor> &row) {
        Tensor next = row.first * y + row.second;
        return std::pair(next, next);
      };
      Tensor wanted = scan(step, zeros({2}, f64), std::pair(a, b), {.reverse = reverse}).second;
      expectNear(f(a, b), wanted);
      expectNear(wg::function("f", f)(a, b), wanted);
      if (n > 1)
        EXPECT_TRUE(
            check_gradients([&](const Tensor &a) { return reduce_sum(square(f(a, b))); }, std::tuple(a)).passed);
    }
}

// The cotangent of an invariant whose parts a turn reads is put together once, of the parts' sums.
TEST(ControlTest, PartsOfAnInvariantAreSummedApart) {
  auto f = [](const Tensors &x) {
    const Tensor &w = x[0];
    auto step = [&](const Tensor &h, const Tensor &row) {
      Tensor next = tanh(w[0][0] * h + w[0][1] * row) * w[1][0] + sin(w[1][1] * h) * w[0][0];
      return std::pair(next, reduce_sum(next * w[1][1]));
    };
    auto [h, ys] = scan(step, x[2], x[1]);
    return Tensors{h, ys};
  };
  Tensors x = {reshape(matrix(4, 3), {2, 2, 3}), matrix(5, 3, 1), matrix(1, 3, 2)[0]};
  expectSameInAllWays(f, x);
  auto gradient = wg::function("gradient", [&](const Tensors &x) { return gradientsOf(f, x); });
  std::string text = gradient.trace(x).text(Stage::simplified);
  size_t bodies = 0;
  for (size_t begin = text.find("func.func private"), end; begin != std::string::npos; begin = end) {
    end = text.find("func.func", begin + 1);
    std::string body = text.substr(begin, end - begin);
    EXPECT_EQ(body.find("wg.pad"), std::string::npos) << body;
    EXPECT_EQ(body.find("wg.concat"), std::string::npos) << body;
    ++bodies;
    if (end != std::string::npos && text.compare(end, 17, "func.func private") != 0)
      end = text.find("func.func private", end);
  }
  EXPECT_EQ(bodies, 2u) << text;
}

TEST(ControlTest, NestedThreeDeep) {
  expectSameInAllWays(
      [](const Tensors &x) {
        auto outer = [&](const Tensor &s, const Tensor &row) {
          Tensor inner = while_loop(
              [](const Tensor &a) { return reduce_sum(a * a) < 3.0; },
              [&](const Tensor &a) {
                return cond(reduce_sum(a) > 0.3, [&] { return a * 1.4 + s * 0.1; }, [&] { return a * x[1] + 0.5; });
              },
              row, {.max_steps = 8});
          return std::pair(tanh(s + inner), reduce_sum(inner));
        };
        auto [s, ys] = scan(outer, x[2], x[0]);
        return Tensors{s, ys};
      },
      {matrix(3, 2), Tensor(1.3), matrix(1, 2, 1)[0]});
}

TEST(ControlTest, NoTurnAtAll) {
  for (double stop : {100.0, 0.5})
    expectSameInAllWays(
        [&](const Tensors &x) {
          Tensor s = while_loop([&](const Tensor &s) { return reduce_sum(s) > stop; },
                                [](const Tensor &) { return ones({3}, f64) * 0.1; }, x[0] * 2.0, {.max_steps = 3});
          return Tensors{s * s, for_range(0, 0, [](const Tensor &, const Tensor &s) { return sin(s); }, x[0])};
        },
        {matrix(1, 3)[0] + 1.0});
}

/// What `way` makes of x: tensors that a tape which watches x only then does not follow back to it.
static Tensors laterWatched(const Tensors &x, int way) {
  Tensor none(int64_t(0)), yes(true), index(int64_t(1));
  auto less = [](const Tensor &i, int64_t n) { return i < n; };
  Tensor y;
  switch (way) {
  case 0: y = for_range(0, none, [](const Tensor &, const Tensor &s) { return sin(s); }, x[0]); break;
  case 1: y = for_range(0, 0, [](const Tensor &, const Tensor &s) { return sin(s); }, x[0]); break;
  case 2: y = for_range(0, 3, [](const Tensor &, const Tensor &s) { return s; }, x[0]); break;
  case 3: y = cond(yes, [&] { return x[0]; }, [&] { return sin(x[0]); }); break;
  case 4: y = switch_case(index, [&] { return sin(x[0]); }, [&] { return x[0]; }); break;
  case 5:
    y = while_loop([&](const std::pair<Tensor, Tensor> &s) { return less(s.second, 2); },
                   [](const std::pair<Tensor, Tensor> &s) { return std::pair(s.first, s.second + 1); },
                   std::pair(x[0], Tensor(int64_t(0))))
            .first;
    break;
  default:
    y = scan([](const Tensor &s, const Tensor &row) { return std::pair(s, row * 2.0); }, x[0], stack({x[0], x[0]}))
            .first;
  }
  GradientTape tape({.persistent = true});
  tape.watch(x[0]);
  Tensor z = y * y + x[0] * 3.0;
  return {tape.gradient(z, x[0]).value(), tape.gradient(y, x[0], {.unconnected = Unconnected::zero}).value(), y};
}

TEST(ControlTest, WhatATapeWatchesLaterIsNotWhatALoopPassedThrough) {
  for (int way = 0; way < 7; ++way) {
    SCOPED_TRACE(way);
    Tensors x{Tensor(0.7)};
    auto compare = [&](const Tensors &found) {
      expectNear(found[0], Tensor(3.0), 0);
      expectNear(found[1], Tensor(0.0), 0);
      expectNear(found[2], x[0], 0);
    };
    compare(laterWatched(x, way));
    for (bool interpret : {true, false})
      compare(
          wg::function("program", [&](const Tensors &y) { return laterWatched(y, way); }, {.interpret = interpret})(x));
    // One that watches before does follow it.
    GradientTape tape;
    tape.watch(x[0]);
    expectNear(tape.gradient(laterWatched(x, way)[2], x[0]).value(), Tensor(1.0), 0);
  }
}

/// What an outer tape records of a derivative may hang on residuals alone.
TEST(ControlTest, SecondDerivativesInsideOfAFunction) {
  auto called = wg::function("called", [](const Tensor &x) { return exp(x) * 2.0; });
  Tensor x(0.7);
  auto second = [&](auto f) {
    return [f](const Tensor &x) {
      GradientTape outer;
      outer.watch(x);
      Tensor slope;
      {
        GradientTape inner;
        inner.watch(x);
        slope = inner.gradient(f(x), x).value();
      }
      return outer.gradient(slope, x).value();
    };
  };
  auto loop = [](const Tensor &x) {
    return for_range(0, 2, [](const Tensor &, const Tensor &s) { return sin(s); }, x);
  };
  for (bool interpret : {true, false}) {
    expectNear(wg::function("h", second(loop), {.interpret = interpret})(x), second(loop)(x));
    expectNear(wg::function("h", second(called), {.interpret = interpret})(x), exp(x) * 2.0);
  }
}

/// An outer tape that watches less than the inner one differentiates a part of what the call recorded.
TEST(ControlTest, AnOuterTapeFollowsSomeOfTheResults) {
  using State = std::pair<Tensor, Tensor>;
  auto body = [](const Tensor &x, const Tensor &v) {
    auto step = [&](const State &s, const Tensor &row) {
      Tensor a = sin(s.first) * v;
      return std::pair(State(a, sqrt(square(s.second) + 0.1)), row * a);
    };
    auto [s, ys] = scan(step, State(Tensor(0.7), x), Tensor({0.4}));
    return Tensors{s.first, s.second, ys};
  };
  auto second = [](auto f) {
    Tensor x({0.1, 0.2}), v(0.3);
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x, v);
    Tensor loss(0.0);
    for (const Tensor &y : f(x, v))
      loss = loss + reduce_sum(square(y));
    auto [dx, dv] = inner.gradient(loss, x, v);
    return outer.gradient(reduce_sum(dx.value() * dx.value()), x).value();
  };
  for (bool interpret : {true, false})
    expectNear(second(wg::function("f", body, {.interpret = interpret})), second(body));
}

TEST(ControlTest, ValuesAreExchangedResetAndUnused) {
  expectSameInAllWays(
      [](const Tensors &x) {
        using State = std::array<Tensor, 3>;
        State s = for_range(
            0, 5, [&](const Tensor &, const State &s) { return State{s[1], s[0] * x[1], ones({2}, f64) * x[1]}; },
            State{x[0], x[0] * 2.0, x[0]});
        return Tensors{s[0] * s[2], s[0]};
      },
      {matrix(1, 2)[0], Tensor(0.9)});
}

struct Particle {
  Tensor x, v;
  std::map<std::string, Tensor> more;
  WENGERT_FIELDS(x, v, more)
};

TEST(ControlTest, StructuresAreStates) {
  expectSameInAllWays(
      [](const Tensors &x) {
        Particle p{x[0], x[1], {{"energy", Tensor(0.0)}}};
        p = for_range(
            0, 10,
            [](const Tensor &, const Particle &p) {
              Tensor v = p.v - 0.1 * p.x;
              return Particle{p.x + 0.1 * v, v, {{"energy", p.more.at("energy") + reduce_sum(v * v)}}};
            },
            p);
        return Tensors{p.x, p.more.at("energy")};
      },
      {matrix(1, 3)[0], matrix(1, 3, 1)[0]});
}

// L-8
TEST(ControlTest, WhatDoesNotChangeIsNotStacked) {
  auto f = wg::function("f", [](const Tensor &w, const Tensor &h) {
    GradientTape tape;
    tape.watch(w);
    Tensor y = reduce_sum(for_range(0, 50, [&](const Tensor &, const Tensor &s) { return s * exp(w) * 0.1; }, h));
    return tape.gradient(y, w).value();
  });
  std::string text = f.trace(matrix(1, 3)[0], matrix(1, 3)[0]).text(Stage::traced);
  // The backward loop reads the states of the turns, and no exp(w) of each turn.
  size_t stacks = 0;
  for (size_t at = text.find("tensor<50x3xf64>"); at != std::string::npos; at = text.find("tensor<50x3xf64>", at + 1))
    ++stacks;
  EXPECT_EQ(stacks, 2u) << text; // one result, one operand
  EXPECT_TRUE(says(text, "_once"));
}

// L-10
TEST(ControlTest, VariablesAreReadAndAssignedInside) {
  for (bool interpret : {true, false}) {
    Variable w(Tensor(2.0)), sum(Tensor(0.0)), count(Tensor(int64_t(0)));
    auto f = wg::function("f",
                          [&](const Tensor &x) {
                            return for_range(
                                0, 5,
                                [&](const Tensor &i, const Tensor &s) {
                                  count.assign_add(i);
                                  Tensor next = s * w + x;
                                  cond(
                                      reduce_sum(next) > 10.0,
                                      [&] {
                                        sum.assign(sum + next);
                                        return next;
                                      },
                                      [&] { return next; });
                                  return next;
                                },
                                Tensor(1.0));
                          },
                          {.interpret = interpret});
    double s = 1, total = 0;
    for (int i = 0; i < 5; ++i) {
      s = s * 2 + 0.5;
      total += s > 10 ? s : 0;
    }
    Tensor x(0.5);
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    EXPECT_DOUBLE_EQ(y.item<double>(), s);
    EXPECT_DOUBLE_EQ(sum.value().item<double>(), total);
    EXPECT_EQ(count.value().item<int64_t>(), 10);
    auto [dx, dw] = tape.gradient(y, std::tuple(x, w));
    EXPECT_DOUBLE_EQ(dx.value().item<double>(), 31.0);
    EXPECT_DOUBLE_EQ(dw.value().item<double>(), 5 * 16 + 0.5 * (4 * 8 + 3 * 4 + 2 * 2 + 1));
  }
}

TEST(ControlTest, TheConditionSeesWhatTheBodyAssigns) {
  for (bool interpret : {true, false}) {
    Variable v(Tensor(1.0));
    auto f = wg::function("f",
                          [&](const Tensor &x) {
                            return while_loop([&](const Tensor &) { return v < 20.0; },
                                              [&](const Tensor &s) {
                                                v.assign(v * 2.0);
                                                return s + x;
                                              },
                                              Tensor(0.0));
                          },
                          {.interpret = interpret});
    EXPECT_EQ(f(Tensor(3.0)).item<double>(), 15.0);
    EXPECT_EQ(v.value().item<double>(), 32.0);
  }
}

TEST(ControlTest, AFailingTurnChangesNothing) {
  for (bool interpret : {true, false}) {
    Variable v(matrix(4, 2)), n(Tensor(int64_t(0)));
    Tensor before = v.value();
    auto f = wg::function("f",
                          [&](const Tensor &from) {
                            return for_range(
                                0, 5,
                                [&](const Tensor &i, const Tensor &s) {
                                  n.assign_add(Tensor(int64_t(1)));
                                  v.assign(v * 0.5);
                                  return s + reduce_sum(gather(v, from + i, 0));
                                },
                                Tensor(0.0));
                          },
                          {.interpret = interpret});
    EXPECT_EQ(messageOf([&] { f(Tensor(int64_t(-4))); }), messageOf([&] { f(Tensor(int64_t(-4))); }));
    EXPECT_TRUE(says(messageOf([&] { f(Tensor(int64_t(2))); }), "ControlTest.cpp"))
        << messageOf([&] { f(Tensor(int64_t(2))); });
    expectNear(v.value(), before);
    EXPECT_EQ(n.value().item<int64_t>(), 0);
  }
}

// L-14
TEST(ControlTest, ATapeInABody) {
  expectSameInAllWays(
      [](const Tensors &x) {
        auto descend = [&](const Tensor &, const Tensor &s) {
          GradientTape tape;
          tape.watch(s);
          Tensor loss = reduce_sum(square(s * s - x[0]));
          return s - 0.05 * tape.gradient(loss, s).value();
        };
        return one(for_range(0, 6, descend, x[1]));
      },
      {Tensor({2.0, 3.0}), Tensor({1.0, 1.5})}, 1e-9);
}

TEST(ControlTest, FunctionsAreCalledInBodies) {
  auto cell = wg::function("cell", [](const Tensor &h, const Tensor &x) { return tanh(h * 0.5 + x); });
  expectSameInAllWays(
      [&](const Tensors &x) {
        auto step = [&](const Tensor &h, const Tensor &row) { return std::pair(cell(h, row), cell(row, h)); };
        auto [h, ys] = scan(step, x[1], x[0]);
        return Tensors{h, ys};
      },
      {matrix(4, 3), matrix(1, 3, 1)[0]});
}

TEST(ControlTest, OpenSizes) {
  auto f = wg::function("f", [](const Tensor &xs) {
    auto step = [](const Tensor &h, const Tensor &row) { return std::pair(h * 0.5 + reduce_sum(row), row * h); };
    auto [h, ys] = scan(step, Tensor(1.0), xs);
    return h + reduce_sum(ys);
  });
  f.trace(TensorSpec{f64, {dynamic, dynamic}});
  for (int64_t rows : {1, 3, 6}) {
    Tensor xs = matrix(rows, 2), h(1.0), y(0.0);
    for (int64_t i = 0; i < rows; ++i) {
      y = y + reduce_sum(xs[i] * h);
      h = h * 0.5 + reduce_sum(xs[i]);
    }
    GradientTape tape;
    tape.watch(xs);
    Tensor found = f(xs);
    expectNear(found, h + y);
    EXPECT_EQ(tape.gradient(found, xs).value().shape(), xs.shape());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(ControlTest, OneTensorSaysHowManyRowsThereAre) {
  auto f = wg::function("f", [](const Tensor &xs, const Tensor &ys) {
    return fold([](const Tensor &s, const std::pair<Tensor, Tensor> &r) { return s * r.first + reduce_sum(r.second); },
                Tensor(1.0), std::pair(xs, ys));
  });
  f.trace(TensorSpec{f64, {dynamic}}, TensorSpec{f64, {3, dynamic}});
  Tensor xs = matrix(1, 3)[0], ys = matrix(3, 2), s(1.0);
  for (int64_t i = 0; i < 3; ++i)
    s = s * xs[i] + reduce_sum(ys[i]);
  expectNear(f(xs, ys), s);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(says(messageOf([&] { f(matrix(1, 4)[0], ys); }), "there are 4 turns"))
      << messageOf([&] { f(matrix(1, 4)[0], ys); });
}

TEST(ControlTest, OneTensorSaysHowManyRowsAnAssociativeScanHas) {
  using Pair = std::pair<Tensor, Tensor>;
  for (bool reverse : {false, true})
    for (int64_t rows = 1; rows < 6; ++rows) {
      auto scanned = [&](const Tensor &xs, const Tensor &ys) {
        Pair all =
            associative_scan([](const Pair &x, const Pair &y) { return Pair(x.first * y.first, x.second + y.second); },
                             Pair(xs, ys), {.reverse = reverse});
        return all.first * reduce_sum(all.second, {1, 2});
      };
      auto f = wg::function("f", scanned);
      f.trace(TensorSpec{f64, {dynamic}}, TensorSpec{f64, {rows, dynamic, dynamic}});
      Tensor xs = 1 + matrix(1, rows)[0], ys = reshape(matrix(rows, 6), {rows, 2, 3});
      expectNear(f(xs, ys), scanned(xs, ys));
      EXPECT_EQ(f.trace_count(), 1);
    }
}

TEST(ControlTest, WhatMayFailIsNotDoneForNoTurn) {
  for (bool interpret : {true, false}) {
    auto f = wg::function("f",
                          [](const Tensor &x, const Tensor &n) {
                            return for_range(
                                0, n, [&](const Tensor &i, const Tensor &s) { return s * exp(gather(x, i + 10)); },
                                Tensor(1.0), WhileOptions{.max_steps = 4});
                          },
                          {.interpret = interpret});
    Tensor x = matrix(1, 3)[0];
    GradientTape tape;
    tape.watch(x);
    expectNear(tape.gradient(f(x, Tensor(int64_t(0))), x).value(), zeros({3}, f64));
    EXPECT_TRUE(says(messageOf([&] { f(x, Tensor(int64_t(1))); }), "10")); // out of range
  }
}

/// The text of a program with a loop does not grow with its turns.
TEST(ControlTest, ManyTurnsAreOneBody) {
  auto f = wg::function("f", [](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = for_range(0, 100'000, [&](const Tensor &, const Tensor &s) { return s + 1e-5 * sin(s) * x; }, x);
    return tape.gradient(y, x).value();
  });
  Tensor x(1.0);
  double s = 1, ds = 1;
  for (int i = 0; i < 100'000; ++i) {
    ds = ds + 1e-5 * (std::cos(s) * ds * 1.0 + std::sin(s));
    s = s + 1e-5 * std::sin(s);
  }
  EXPECT_NEAR(f(x).item<double>(), ds, 1e-9);
  EXPECT_LT(f.trace(x).text(Stage::fused).size(), 20'000u);
}
