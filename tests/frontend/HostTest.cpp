// C++ code in programs: what prints, checks and calls back, in order, once for each time that the program comes there;
// and C functions as ops.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

/// What is printed while it lives.
class Printed {
public:
  Printed() { set_print_stream(text_); }
  ~Printed() { set_print_stream(std::cout); }
  std::string take() {
    std::string text = text_.str();
    text_.str("");
    return text;
  }

private:
  std::ostringstream text_;
};

/// f eagerly, interpreted and compiled.
template <class F, class Check> void inAllWays(F f, Check check) {
  check(f);
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    check(wg::function("f", f, {.interpret = interpret}));
  }
}

int cubes = 0;

} // namespace

extern "C" int32_t wg_test_cube(void *const *pointers, const int64_t *numbers, void *) {
  ++cubes;
  int64_t count = 1;
  for (int64_t axis = 0; axis < numbers[3]; ++axis)
    count *= numbers[4 + axis];
  const double *x = static_cast<const double *>(pointers[0]);
  double *y = static_cast<double *>(pointers[1]);
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] > 1e3)
      return 7;
    y[i] = x[i] * x[i] * x[i];
  }
  return 0;
}

static CFunction cubeOf() {
  return c_function("wg_test_cube", wg_test_cube,
                    {.arguments = {{f64, {dynamic}}}, .result = [](const auto &of) { return of[0]; }});
}

TEST(HostTest, PrintsInProgramOrder) {
  Printed printed;
  auto f = [](const Tensor &x) {
    print("begin {}", x);
    Tensor y = for_range(
        0, 2,
        [](const Tensor &i, const Tensor &s) {
          print("turn {}: {}", i, s);
          return s * 2.0;
        },
        x);
    Tensor z = cond(
        reduce_sum(y) > 0.0,
        [&] {
          print("above");
          return y;
        },
        [&] {
          print("below");
          return -y;
        });
    print("same"); // nothing merges them
    print("same");
    return z;
  };
  inAllWays(f, [&](auto call) {
    for (double sign : {1.0, -1.0}) {
      call(Tensor({1.0 * sign, 2.0 * sign}));
      EXPECT_EQ(printed.take(), sign > 0
                                    ? "begin [1.0, 2.0]\nturn 0: [1.0, 2.0]\nturn 1: [2.0, 4.0]\nabove\nsame\nsame\n"
                                    : "begin [-1.0, -2.0]\nturn 0: [-1.0, -2.0]\nturn 1: [-2.0, -4.0]\nbelow\n"
                                      "same\nsame\n");
    }
    // A gradient runs it once.
    Tensor x({1.0, 2.0});
    GradientTape tape;
    tape.watch(x);
    expectNear(tape.gradient(call(x), x).value(), Tensor({4.0, 4.0}));
    std::string text = printed.take();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
  });
}

TEST(HostTest, PrintsInNestedFunctionsAndLanes) {
  Printed printed;
  auto inner = wg::function("inner", [](const Tensor &x) {
    print("inner {}", x);
    return x + 1.0;
  });
  auto outer = wg::function("outer", [&](const Tensor &x) {
    Tensor y = inner(x);
    print("outer {}", y);
    return inner(y);
  });
  outer(Tensor(1.0));
  EXPECT_EQ(printed.take(), "inner 1.0\nouter 2.0\ninner 2.0\n");
  auto lanes = [](const Tensor &x) {
    print("lane {}", x);
    return x * 2.0;
  };
  expectNear(vmap(lanes)(Tensor({1.0, 2.0})), Tensor({2.0, 4.0}));
  EXPECT_EQ(printed.take(), "lane 1.0\nlane 2.0\n");
  auto chooses = [&](const Tensor &x) { return cond(x > 1.5, [&] { return lanes(x); }, [&] { return x; }); };
  std::string text = messageOf([&] { vmap(chooses)(Tensor({1.0, 2.0})); });
  EXPECT_TRUE(says(text, "cannot be done in lanes that choose or end differently")) << text;
  EXPECT_TRUE(
      says(messageOf([] { print("{} and {}", Tensor(1.0)); }), "the format has 2 places, and there are 1 tensors"));
}

// In a rule, where the gradient is computed; in the condition of a loop, each time that it is asked.
TEST(HostTest, PrintsInRulesAndConditions) {
  Printed printed;
  auto noisy = custom_gradient([](const Tensor &x) { return x * 2.0; },
                               [](const Tensor &ct, const Tensor &) {
                                 print("cotangent {}", ct);
                                 return ct * 2.0;
                               });
  inAllWays([&](const Tensor &x) { return grad([&](const Tensor &x) { return noisy(x) * 3.0; })(x).value(); },
            [&](auto call) {
              expectNear(call(Tensor(1.0)), Tensor(6.0));
              EXPECT_EQ(printed.take(), "cotangent 3.0\n");
            });
  auto asks = [](const Tensor &x) {
    return while_loop(
        [](const Tensor &s) {
          print("asked {}", s);
          return s < 2.0;
        },
        [](const Tensor &s) { return s + 1.0; }, x);
  };
  inAllWays(asks, [&](auto call) {
    expectNear(call(Tensor(1.0)), Tensor(2.0));
    EXPECT_EQ(printed.take(), "asked 1.0\nasked 2.0\n");
  });
  EXPECT_TRUE(says(messageOf([] { print("{}"); }), "HostTest.cpp"));
}

TEST(HostTest, AFailingCheckChangesNothing) {
  Variable count(0.0, "count");
  auto f = [&](const Tensor &x) {
    count.assign_add(1.0);
    Tensor y = for_range(
        0, 3,
        [](const Tensor &, const Tensor &s) {
          check(s < 50.0, "s stays small");
          return s * 3.0;
        },
        x);
    return y;
  };
  for (bool interpret : {true, false}) {
    auto call = wg::function("f", f, {.interpret = interpret});
    count.assign(0.0);
    expectNear(call(Tensor({1.0, 2.0})), Tensor({27.0, 54.0}));
    std::string text = messageOf([&] { call(Tensor({1.0, 6.0})); });
    EXPECT_TRUE(says(text, "check: s stays small: it does not hold at [1]")) << text;
    EXPECT_TRUE(says(text, "HostTest.cpp")) << text;
    EXPECT_EQ(count.value().item<double>(), 1.0);
  }
  EXPECT_TRUE(says(messageOf([&] { check(Tensor(false), "no"); }), "check: no"));
  EXPECT_TRUE(says(messageOf([&] { check(Tensor(1.0), "no"); }), "the condition is f64[], not bool"));
}

TEST(HostTest, HostFunctions) {
  int calls = 0;
  HostFunction norm = host_function("norm", [&](const std::vector<Tensor> &x) {
    ++calls;
    if (x[0].data<double>()[0] > 100)
      throw std::range_error("too far out");
    return reduce_sum(x[0] * x[0]);
  });
  auto f = [&](const Tensor &x) {
    norm({f64, {}}, {x}); // for what it does
    return norm({f64, {}}, {x * 2.0}) + 1.0;
  };
  inAllWays(f, [&](auto call) {
    calls = 0;
    expectNear(call(Tensor({1.0, 2.0})), Tensor(21.0));
    EXPECT_EQ(calls, 2);
    std::string text = messageOf([&] { call(Tensor({101.0, 2.0})); });
    EXPECT_TRUE(says(text, "norm: too far out")) << text;
    EXPECT_TRUE(says(text, "HostTest.cpp")) << text;
    // No derivative, and the reason.
    Tensor x({1.0, 2.0});
    GradientTape tape;
    tape.watch(x);
    Grad gradient = tape.gradient(call(x), x);
    EXPECT_FALSE(gradient.has_value());
    EXPECT_TRUE(says(gradient.reason(), "is a call of C++ code")) << gradient.reason();
  });
  HostFunction wrong = host_function("wrong", [](const std::vector<Tensor> &x) { return x[0]; });
  inAllWays([&](const Tensor &x) { return wrong({f32, {}}, {x}); },
            [&](auto call) {
              std::string text = messageOf([&] { call(Tensor(1.0)); });
              EXPECT_TRUE(says(text, "returned f64[], and was to return f32[]")) << text;
            });
  // Functions that it calls run on their own.
  auto inner = wg::function("inner", [](const Tensor &x) {
    check(x > 0.0, "positive");
    return sqrt(x);
  });
  HostFunction calling = host_function("calling", [&](const std::vector<Tensor> &x) { return inner(x[0]); });
  inAllWays([&](const Tensor &x) { return calling({f64, {}}, {x}); },
            [&](auto call) { expectNear(call(Tensor(4.0)), Tensor(2.0)); });
}

TEST(HostTest, ACFunctionWithItsDerivative) {
  CFunction cube = cubeOf();
  auto differentiable = custom_gradient([=](const Tensor &x) { return cube(x); },
                                        [](const Tensor &ct, const Tensor &x) { return ct * 3.0 * x * x; });
  auto f = [&](const Tensor &x) { return reduce_sum(differentiable(sin(x))); };
  auto plain = [](const Tensor &x) { return reduce_sum(sin(x) * sin(x) * sin(x)); };
  Tensor x = matrix(1, 5)[0];
  Tensor slope = grad(plain)(x), second = hvp(plain, x, x);
  inAllWays([&](const Tensor &x) { return grad(f)(x); }, [&](auto call) { expectNear(call(x), slope); });
  inAllWays([&](const Tensor &x) { return hvp(f, x, x); }, [&](auto call) { expectNear(call(x), second); });
  inAllWays([&](const Tensor &x) { return jvp(f, std::tuple(x), std::tuple(x)).second; },
            [&](auto call) { expectNear(call(x), reduce_sum(slope * x)); });
  expectNear(vmap(differentiable)(matrix(3, 4)), matrix(3, 4) * matrix(3, 4) * matrix(3, 4));
  // Merged and dropped: it depends on its operands alone.
  cubes = 0;
  auto twice = wg::function("twice", [&](const Tensor &x) {
    cube(x * 2.0);
    return cube(x) + cube(x);
  });
  twice(x);
  EXPECT_EQ(cubes, 1);
  inAllWays([&](const Tensor &x) { return cube(x); },
            [&](auto call) {
              std::string text = messageOf([&] { call(x * 1e6); });
              EXPECT_TRUE(says(text, "c_function: 'wg_test_cube' failed")) << text;
              EXPECT_TRUE(says(text, "HostTest.cpp")) << text;
            });
  std::string text = messageOf([&] { cube(cast(x, f32)); });
  EXPECT_TRUE(says(text, "'wg_test_cube' takes f64[?], not f32[5]")) << text;
  EXPECT_TRUE(says(messageOf([&] {
                     c_function("wg_test_cube", [](void *const *, const int64_t *, void *) { return 0; },
                                {.result = [](const auto &of) { return of[0]; }});
                   }),
                   "is another function already"));
  EXPECT_TRUE(
      says(messageOf([&] { c_function("sin", wg_test_cube, {.result = [](const auto &of) { return of[0]; }}); }),
           "cannot be the name of a C function"));
}

TEST(HostTest, ObjectFilesNameWhatTheyCall) {
  CFunction cube = cubeOf();
  std::string directory = testing::TempDir() + "wengert_host";
  auto f = wg::function("f", [&](const Tensor &x) { return cube(x) * 2.0; });
  f.trace(Tensor({1.0, 2.0})).write_object(directory);
  std::stringstream header;
  header << std::ifstream(directory + "/f.h").rdbuf();
  EXPECT_TRUE(says(header.str(), "Link with what defines wg_test_cube")) << header.str();
  std::filesystem::remove_all(directory);
  auto g = wg::function("g", [&](const Tensor &x) {
    print("{}", x);
    return x * 2.0;
  });
  std::string text = messageOf([&] { g.trace(Tensor({1.0, 2.0})).write_object(directory); });
  EXPECT_TRUE(says(text, "prints, checks or calls a host function")) << text;
}
