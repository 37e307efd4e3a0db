// What conditions and loops refuse, and how they say so: eagerly and while traced alike.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <map>

using namespace wg;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

TEST(ControlErrorTest, DtypesShapesAndScalars) {
  Tensor x = matrix(2, 2);
  auto traced = [](auto f) { return [f](const Tensor &x) { return wg::function("f", f)(x); }; };
  // L-6
  auto grows = [](const Tensor &x) {
    return while_loop([](const Tensor &s) { return reduce_sum(s) < 100.0; },
                      [](const Tensor &s) { return concat({s, s}); }, x);
  };
  for (const std::string &text : {messageOf([&] { grows(x); }), messageOf([&] { traced(grows)(x); })}) {
    EXPECT_TRUE(says(text, "enters the loop as f64[2,2], but is f64[4,2] after one turn")) << text;
    EXPECT_TRUE(says(text, "ControlErrorTest.cpp")) << text;
  }
  // L-5
  auto casts = [](const Tensor &x) {
    return while_loop([](const Tensor &s) { return reduce_sum(s) < 100; }, [](const Tensor &s) { return cast(s, f32); },
                      x);
  };
  for (const std::string &text : {messageOf([&] { casts(x); }), messageOf([&] { traced(casts)(x); })})
    EXPECT_TRUE(says(text, "enters the loop as f64[2,2], but is f32[2,2] after one turn")) << text;
  auto more = [](const Tensor &x) {
    return for_range(
        0, 2,
        [](const Tensor &, std::vector<Tensor> s) {
          s.push_back(s[0]);
          return s;
        },
        std::vector<Tensor>{x})[0];
  };
  for (const std::string &text : {messageOf([&] { more(x); }), messageOf([&] { traced(more)(x); })})
    EXPECT_TRUE(says(text, "enters the loop with length 1, and has length 2 after one turn")) << text;
  auto vague = [](const Tensor &x) { return cond(x > 0.0, [&] { return x; }, [&] { return -x; }); };
  for (const std::string &text : {messageOf([&] { vague(x); }), messageOf([&] { traced(vague)(x); })})
    EXPECT_TRUE(says(text, "the predicate is bool[2,2]; it is a bool scalar")) << text;
  // L-1
  auto differs = [](const Tensor &x) {
    return cond(reduce_sum(x) > 0.0, [&] { return x; }, [&] { return reduce_sum(x); });
  };
  EXPECT_TRUE(says(messageOf([&] { traced(differs)(x); }), "the then branch f64[2,2]"))
      << messageOf([&] { traced(differs)(x); });
  auto scalar = [](const Tensor &x) { return map([](const Tensor &r) { return r; }, reduce_sum(x)); };
  for (const std::string &text : {messageOf([&] { scalar(x); }), messageOf([&] { traced(scalar)(x); })})
    EXPECT_TRUE(says(text, "f64[] is a scalar and has no rows to go over")) << text;
  auto uneven = [](const Tensor &x) {
    return fold([](const Tensor &s, const std::pair<Tensor, Tensor> &r) { return s + reduce_sum(r.first); },
                Tensor(0.0), std::pair(x, concat({x, x})));
  };
  for (const std::string &text : {messageOf([&] { uneven(x); }), messageOf([&] { traced(uneven)(x); })})
    EXPECT_TRUE(says(text, "f64[4,2], and there are 2 turns")) << text;
  EXPECT_TRUE(says(messageOf([&] {
                     while_loop([](const Tensor &) { return true; }, [](const Tensor &s) { return s; }, x,
                                {.max_steps = -2});
                   }),
                   "max_steps is -2"));
}

namespace {
/// The message of f(x), eagerly and while it is traced.
template <class F> std::array<std::string, 2> messagesOf(F f, const Tensor &x) {
  return {messageOf([&] { f(x); }), messageOf([&] { wg::function("f", f)(x); })};
}
} // namespace

TEST(ControlErrorTest, BranchesReturnOneStructure) {
  using Map = std::map<std::string, Tensor>;
  Tensor x(2.0);
  auto keys = [](const Tensor &x) {
    return cond(x > 0.0, [&] { return Map{{"a", x}}; }, [&] { return Map{{"b", x}}; }).begin()->second;
  };
  std::string text = messageOf([&] { wg::function("f", keys)(x); });
  EXPECT_TRUE(says(text, "the else branch returns a tensor at [\"b\"], and the then branch a tensor at [\"a\"]"))
      << text;
  EXPECT_TRUE(says(text, "ControlErrorTest.cpp")) << text;
  auto numbers = [](const Tensor &x) {
    auto [y, n] = cond(x > 0.0, [&] { return std::pair(x, 1); }, [&] { return std::pair(-x, 2); });
    return y * double(n);
  };
  text = messageOf([&] { wg::function("f", numbers)(x); });
  EXPECT_TRUE(says(text, "int 2, and the then branch [1]: int 1")) << text;
  auto lengths = [](const Tensor &x) {
    return switch_case(cast(x, i64), [&] { return std::vector{x}; }, [&] { return std::vector{x, x}; })[0];
  };
  text = messageOf([&] { wg::function("f", lengths)(x); });
  EXPECT_TRUE(says(text, "branch 0 returns length 1, and branch 1 length 2")) << text;
}

TEST(ControlErrorTest, ATurnKeepsNumbersAndKeys) {
  using Counted = std::pair<Tensor, int>;
  auto counts = [](const Tensor &x) {
    return while_loop([](const Counted &s) { return s.first < 9.0; },
                      [](const Counted &s) { return Counted(s.first * 2.0, s.second + 1); }, Counted(x, 0))
        .first;
  };
  for (const std::string &text : messagesOf(counts, Tensor(2.0))) {
    EXPECT_TRUE(says(text, "enters the loop with [1]: int 0, and has [1]: int 1 after one turn")) << text;
    EXPECT_TRUE(says(text, "what changes from turn to turn is a tensor")) << text;
  }
  using Map = std::map<std::string, Tensor>;
  auto renames = [](const Tensor &x) {
    auto step = [](const Map &s, const Tensor &) { return Map{{"b", s.begin()->second}}; };
    return fold(step, Map{{"a", x}}, x).begin()->second;
  };
  for (const std::string &text : messagesOf(renames, matrix(1, 3)[0])) {
    EXPECT_TRUE(says(text, "fold: the state enters the loop with a tensor at [\"a\"]")) << text;
    EXPECT_TRUE(says(text, "ControlErrorTest.cpp")) << text;
  }
}

TEST(ControlErrorTest, ARangeSaysItsOwnName) {
  auto shifts = [](const Tensor &x) {
    return for_range(0, 3, [](const Tensor &, const Tensor &s) { return concat({s, s}); }, x);
  };
  for (const std::string &text : messagesOf(shifts, matrix(2, 2)))
    EXPECT_TRUE(says(text, "for_range: tensor 0 of the state enters the loop as f64[2,2]")) << text;
  auto ends = [](const Tensor &x) {
    return for_range(0, cast(x, i32), [](const Tensor &, const Tensor &s) { return s + 1.0; }, x);
  };
  for (const std::string &text : messagesOf(ends, Tensor(2.0))) {
    EXPECT_TRUE(says(text, "for_range: the end is i32[]; it is an i64 scalar")) << text;
    EXPECT_TRUE(says(text, "ControlErrorTest.cpp")) << text;
  }
}
