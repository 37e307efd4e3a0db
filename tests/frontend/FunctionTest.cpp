// Rows F-* of the behaviour of traced functions: when they are traced, what they capture, and that derivatives pass
// through.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

// F-1, F-2
TEST(Function, ValuesDoNotRetraceShapesAndDtypesDo) {
  int bodies = 0;
  auto f = wg::function("f", [&](const Tensor &x) {
    ++bodies;
    return x * x;
  });
  EXPECT_EQ(f(Tensor(3.0f)).item<float>(), 9.0f);
  EXPECT_EQ(f(Tensor(4.0f)).item<float>(), 16.0f);
  EXPECT_EQ(bodies, 1);
  EXPECT_EQ(f(Tensor{1.0f, 2.0f}).to_vector<float>(), (std::vector{1.0f, 4.0f}));
  EXPECT_EQ(f(Tensor(5.0)).item<double>(), 25.0);
  EXPECT_EQ(f(Tensor{2.0f, 3.0f}).to_vector<float>(), (std::vector{4.0f, 9.0f}));
  EXPECT_EQ(bodies, 3);
  EXPECT_EQ(f.trace_count(), 3);
  EXPECT_EQ(f.num_concrete(), 3);
  f.clear_cache();
  EXPECT_EQ(f.num_concrete(), 0);
  f(Tensor(1.0f));
  EXPECT_EQ(bodies, 4);
}

// F-5: a static is a value of a type.
TEST(Function, StaticsAreKeyedByTypeAndBits) {
  auto f = wg::function("scaled", [](const Tensor &x, auto n) { return x * n; });
  Tensor x(2.0f);
  EXPECT_EQ(f(x, 3).item<float>(), 6.0f);
  EXPECT_EQ(f(x, 3.0f).item<float>(), 6.0f);
  EXPECT_EQ(f(x, 4).item<float>(), 8.0f);
  EXPECT_EQ(f(x, 3).item<float>(), 6.0f);
  EXPECT_EQ(f.trace_count(), 3);
  f(x, std::nanf(""));
  f(x, std::nanf(""));
  EXPECT_EQ(f.trace_count(), 4);
}

struct Pair {
  Tensor a, b;
  WENGERT_FIELDS(a, b)
};

// F-6, F-71
TEST(Function, StructuresGoInAndComeOut) {
  auto f = wg::function("structures", [](const Pair &pair, const std::vector<Tensor> &list, const std::string &mode) {
    std::map<std::string, Tensor> named{{"sum", pair.a + pair.b},
                                        {"mode", mode == "first" ? list.front() : list.back()}};
    return std::tuple(named, Pair{pair.b, pair.a}, 7);
  });
  Pair pair{Tensor(1.0f), Tensor(2.0f)};
  auto [named, swapped, seven] = f(pair, {Tensor(3.0f), Tensor(4.0f)}, "first");
  EXPECT_EQ(named.at("sum").item<float>(), 3.0f);
  EXPECT_EQ(named.at("mode").item<float>(), 3.0f);
  EXPECT_EQ(swapped.a.item<float>(), 2.0f);
  EXPECT_EQ(seven, 7);
  EXPECT_EQ(std::get<0>(f(pair, {Tensor(3.0f), Tensor(4.0f)}, "last")).at("mode").item<float>(), 4.0f);
  f(pair, {Tensor(3.0f)}, "last");
  EXPECT_EQ(f.trace_count(), 3);
}

TEST(Function, AnEmptyGradientKeepsItsPlaceAmongTheResults) {
  auto f = wg::function("grads",
                        [](const Tensor &x) { return std::tuple(Grad(), x, Grad(x * 2.0f), Grad::none("no path")); });
  auto [empty, same, twice, none] = f(Tensor(3.0f));
  EXPECT_FALSE(empty.has_value());
  EXPECT_EQ(same.item<float>(), 3.0f);
  EXPECT_EQ(twice.item<float>(), 6.0f);
  EXPECT_EQ(none.reason(), "no path");
}

// F-8
TEST(Function, VariablesAreKeyedByTheirAliasing) {
  Variable x(1.0f), y(2.0f), z(3.0f);
  auto f = wg::function(
      "sum", [](const Variable &a, const Variable &b, const Variable &c) { return a * 100.0f + b * 10.0f + c; });
  EXPECT_EQ(f(x, y, z).item<float>(), 123.0f);
  EXPECT_EQ(f(z, y, x).item<float>(), 321.0f);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(x, x, z).item<float>(), 113.0f);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_EQ(f(y, y, z).item<float>(), 223.0f);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST(Function, AVariableArgumentIsUpdated) {
  Variable x(1.0f), y(5.0f);
  auto bump = wg::function("bump", [](const Variable &v) { v.assign_add(2.0f); });
  bump(x);
  bump(y);
  bump(x);
  EXPECT_EQ(x.item<float>(), 5.0f);
  EXPECT_EQ(y.item<float>(), 7.0f);
  EXPECT_EQ(bump.trace_count(), 1);
}

// F-15, F-61
TEST(Function, CapturedNumbersAreFrozenAndTensorsAreNot) {
  float factor = 2.0f;
  Variable w(10.0f);
  auto f = wg::function("captures", [&](const Tensor &x) { return x * factor + w; });
  EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 12.0f);
  factor = 3.0f;
  w.assign(20.0f);
  EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 22.0f);
}

TEST(Function, GradientsReachCapturedTensors) {
  Tensor k(3.0f);
  auto f = wg::function("captured", [&](const Tensor &x) { return x * k; });
  GradientTape tape;
  tape.watch(k);
  EXPECT_EQ(tape.gradient(f(Tensor(4.0f)), k).item<float>(), 4.0f);
}

// F-64
TEST(Function, ASymbolicTensorDoesNotLeak) {
  Tensor leaked;
  std::string inside;
  auto f = wg::function("leak", [&](const Tensor &x) {
    leaked = x * 2.0f;
    inside = messageOf([&] { leaked.item<float>(); });
    return leaked;
  });
  f(Tensor(1.0f));
  EXPECT_NE(inside.find("a symbolic tensor has no elements yet: a function is being traced"), std::string::npos);
  std::string message = messageOf([&] { leaked + 1.0f; });
  EXPECT_NE(message.find("out of scope and cannot be used here; it was made at FunctionTest.cpp:"), std::string::npos)
      << message;
  EXPECT_NE(messageOf([&] { leaked.item<float>(); }).find("out of scope and cannot be used here; it was made at"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { Tensor(TensorSpec{f32, {}}).item<float>(); }).find("the tensor is a specification"),
            std::string::npos);
}

// F-65
TEST(Function, VariablesAreMadeOnceOrNotAtAll) {
  auto wrong = wg::function("makes", [](const Tensor &x) { return x * Variable(2.0f); });
  EXPECT_NE(messageOf([&] { wrong(Tensor(1.0f)); }).find("a variable is made while a function is traced"),
            std::string::npos);
  Variable slot;
  auto right = wg::function("slot", [&](const Tensor &x) {
    if (!slot.defined())
      slot = at_trace_time([&] { return Variable(zeros({})); });
    slot.assign_add(x);
    return slot.value();
  });
  right(Tensor(1.0f));
  EXPECT_EQ(right(Tensor(2.0f)).item<float>(), 3.0f);
}

// F-72
TEST(Function, AnErrorWhileTracingIsNotSticky) {
  bool fail = true;
  auto f = wg::function("once", [&](const Tensor &x) {
    if (fail)
      return matmul(x, x);
    return x + x;
  });
  EXPECT_NE(messageOf([&] {
              f(Tensor{{1.0f, 2.0f}});
            }).find("matmul: inner sizes differ: a is f32[1,2], b is f32[1,2] (2 != 1)"),
            std::string::npos);
  fail = false;
  EXPECT_EQ(f(Tensor{{1.0f, 2.0f}}).to_vector<float>(), (std::vector{2.0f, 4.0f}));
  EXPECT_EQ(f.trace_count(), 1);
}

// F-74
TEST(Function, CanRunEagerly) {
  int bodies = 0;
  auto f = wg::function("eager", [&](const Tensor &x) { return ++bodies, x + 1.0f; });
  set_run_functions_eagerly(true);
  f(Tensor(1.0f));
  f(Tensor(1.0f));
  set_run_functions_eagerly(false);
  EXPECT_EQ(bodies, 2);
  EXPECT_EQ(f.trace_count(), 0);
}

// F-50, F-52, F-53
TEST(Function, AConcreteFunctionChecksItsArguments) {
  auto f = wg::function("cf", [](const Tensor &x, const Tensor &y) { return x + y; });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {2}}, TensorSpec{f32, {2}});
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(cf(Tensor{1.0f, 2.0f}, Tensor{3.0f, 4.0f})[0].to_vector<float>(), (std::vector{4.0f, 6.0f}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_NE(messageOf([&] { cf(Tensor{1.0f, 2.0f}); }).find("takes 2 tensors, got 1"), std::string::npos);
  EXPECT_NE(messageOf([&] { cf(Tensor{1.0f}, Tensor{3.0f}); }).find("argument 0 is f32[1], traced for f32[2]"),
            std::string::npos);
  EXPECT_EQ(cf.signature(), "cf(arg0: f32[2], arg1: f32[2]) -> (f32[2])");
}

// F-20, X-5
TEST(Function, DynamicSizesServeAllShapes) {
  Variable w(Tensor{{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}), b(Tensor{0.5f, -0.5f});
  auto f = wg::function("dense", [&](const Tensor &x) {
    GradientTape tape;
    Tensor loss = mean(square(matmul(x, w) + b));
    auto [dw, db] = tape.gradient(loss, w, b);
    return std::tuple(loss, dw, db);
  });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {dynamic, 3}});
  for (int64_t n : {1, 4, 7}) {
    Tensor x = random_uniform(random::key(n), {n, 3});
    std::vector<Tensor> traced = cf(x);
    GradientTape tape;
    Tensor loss = mean(square(matmul(x, w) + b));
    auto [dw, db] = tape.gradient(loss, w, b);
    EXPECT_NEAR(traced[0].item<float>(), loss.item<float>(), 1e-5);
    EXPECT_LT(reduce_max(abs(traced[1] - dw.value())).item<float>(), 1e-5);
    EXPECT_LT(reduce_max(abs(traced[2] - db.value())).item<float>(), 1e-5);
  }
}

// F-4, F-25
TEST(Function, ATraceWithDynamicSizesServesCalls) {
  auto f = wg::function("double", [](const Tensor &x) { return x + x; });
  f.trace(TensorSpec{f32, {dynamic, dynamic}});
  f.trace(TensorSpec{f32, {dynamic, 2}});
  EXPECT_EQ(f(ones({3, 2})).shape(), (Shape{3, 2}));
  EXPECT_EQ(f(ones({3, 5})).shape(), (Shape{3, 5}));
  EXPECT_EQ(f(ones({3, 2})).shape(), (Shape{3, 2}));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_EQ(f.num_concrete(), 2);
  auto g = wg::function("outer", [&](const Tensor &x) {
    Tensor y = f(x);
    EXPECT_EQ(y.shape(), (Shape{4, 2}));
    return y;
  });
  EXPECT_EQ(g(ones({4, 2})).to_vector<float>(), std::vector<float>(8, 2.0f));
  EXPECT_EQ(f.trace_count(), 2);
}

// D4: every stage prints.
TEST(Function, EveryStageHasAText) {
  auto f = wg::function("square", [](const Tensor &x) { return x * x; });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {8}});
  EXPECT_NE(cf.text(Stage::traced).find("wg.mul %arg0, %arg0"), std::string::npos);
  EXPECT_NE(cf.text(Stage::fused).find("wg.kernel map"), std::string::npos);
  for (Stage stage : {Stage::dropped, Stage::simplified, Stage::lowered, Stage::llvm, Stage::assembly})
    EXPECT_FALSE(cf.text(stage).empty()) << to_string(stage);
  // So large a kernel is shared among threads.
  EXPECT_FALSE(f.trace(TensorSpec{f32, {4 << 20}}).text(Stage::assembly).empty());
}

// U-02, D11
TEST(Function, ATraceIsExplained) {
  auto f = wg::function("step", [](const Tensor &x, int n) { return x * n; }, {.argument_names = {"x", "n"}});
  f(Tensor{1.0f, 2.0f}, 2);
  EXPECT_NE(f.explain_last_trace().find("trace 1 of step, called at FunctionTest.cpp:"), std::string::npos)
      << f.explain_last_trace();
  EXPECT_NE(f.explain_last_trace().find("the first call"), std::string::npos);
  f(Tensor{1.0f, 2.0f, 3.0f}, 2);
  EXPECT_NE(f.explain_last_trace().find("x: f32[2] -> f32[3]"), std::string::npos) << f.explain_last_trace();
  f(Tensor{1.0f, 2.0f, 3.0f}, 5);
  EXPECT_NE(f.explain_last_trace().find("n: int 2 -> int 5"), std::string::npos) << f.explain_last_trace();
  EXPECT_NE(f.report().find("step: 3 traces, 3 concrete functions"), std::string::npos) << f.report();
}

static void expectExplained(const FunctionBase &f, const std::string &text) {
  EXPECT_NE(f.explain_last_trace().find(text), std::string::npos) << text << "\nin\n" << f.explain_last_trace();
}

namespace {
enum class Mode { slow, fast };
}

TEST(Function, StaticsAreNamedWithTheirType) {
  auto f = wg::function("scaled", [](const Tensor &x, auto n) { return x * static_cast<int>(n); });
  Tensor x(2.0f);
  f(x, short(3));
  f(x, 3);
  expectExplained(f, "arg1: short 3 -> int 3");
  f.clear_cache();
  f(x, 3u);
  f(x, 3);
  expectExplained(f, "arg1: unsigned int 3 -> int 3");
  f(x, Mode::fast);
  expectExplained(f, "Mode 1");
}

TEST(Function, PathsNameKeysAndElements) {
  using Map = std::map<std::string, Tensor>;
  auto f =
      wg::function("paths", [](const std::vector<Tensor> &list, const Map &map) { return list.back() + map.at("w"); });
  Tensor one(1.0f), two{1.0f, 2.0f};
  EXPECT_EQ(f.trace({one, two}, {{"w", two}}).signature(),
            "paths(arg0: length 2, arg0[0]: f32[], arg0[1]: f32[2], arg1: length 1, arg1[\"w\"]: f32[2]) -> (f32[2])");
  f({one, two}, {{"b", one}, {"w", two}});
  expectExplained(f, "signature:\n  arg1: length 1 -> length 2\n  arg1[\"b\"]: (absent) -> f32[]\n  cost");
  f.clear_cache();
  f({two}, {{"w", two}});
  f({two, two}, {{"w", one}});
  expectExplained(f, "arg0: length 1 -> length 2\n  arg0[1]: (absent) -> f32[2]\n  arg1[\"w\"]: f32[2] -> f32[]\n");
}

TEST(Function, TheReasonOfATraceIsTrue) {
  std::function<Tensor(const Tensor &, int)> self;
  auto f = wg::function("power", [&](const Tensor &x, int n) { return n == 1 ? x : x * self(x, n - 1); });
  self = [&](const Tensor &x, int n) { return f(x, n); };
  EXPECT_EQ(f(Tensor(2.0f), 2).item<float>(), 4.0f);
  EXPECT_NE(f.report().find("no other signature is known; one is being traced"), std::string::npos) << f.report();
  f.clear_cache();
  f(Tensor(2.0f), 1);
  expectExplained(f, "the first call after clear_cache");
}

// Names that compiled code, the linker or C would take for something else.
TEST(Function, AnyNameWillDo) {
  for (const char *name : {"sin", "expf", "memcpy", "malloc", "int", "main", "1x", "a b", "", "wg_parallel_for", "ä"}) {
    auto f = wg::function(name, [](const Tensor &x) { return sin(exp(x)); });
    Tensor x{0.5f, 2.0f};
    EXPECT_NEAR(f(x).to_vector<float>()[0], std::sin(std::exp(0.5f)), 1e-5f) << name;
    EXPECT_EQ(f.name(), name);
    auto outer = wg::function("outer", [&](const Tensor &y) { return f(y); });
    EXPECT_EQ(outer(x).to_vector<float>(), f(x).to_vector<float>()) << name;
  }
}

TEST(Function, AnObjectHasANameThatCTakes) {
  ConcreteFunction cf = wg::function("f", [](const Tensor &x) { return x * 2.0f; }).trace(TensorSpec{f32, {4}});
  std::string folder = testing::TempDir() + "wengert_names";
  auto refused = [&](const std::string &name) { return messageOf([&] { cf.write_object(folder, {.name = name}); }); };
  EXPECT_NE(refused("sin").find("`sin` cannot be the name of a C function: libm or libc has a function of that name"),
            std::string::npos);
  EXPECT_NE(refused("int").find("C or C++ means something else by it"), std::string::npos);
  for (const char *name : {"../f", "a b", "1x", "f.g"})
    EXPECT_NE(refused(name).find("letters, digits and underscores"), std::string::npos) << name;
  EXPECT_NE(refused("a b").find("\n  try: name it a_b"), std::string::npos) << refused("a b");
  EXPECT_EQ(refused("sin_"), "no error");
  EXPECT_TRUE(std::filesystem::exists(folder + "/sin_.h"));
}

// Kernels and times are there before the first run, as are the errors of compilation.
TEST(Function, TraceCompiles) {
  auto f = wg::function("ahead", [](const Tensor &x) { return exp(x) * 2.0f; });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {8}});
  ConcreteFunction open = f.trace(TensorSpec{f32, {dynamic}});
  EXPECT_TRUE(open.kernels().empty());
  if (std::getenv("WENGERT_INTERPRET"))
    GTEST_SKIP() << "skipped: nothing is compiled";
  EXPECT_EQ(cf.kernels().size(), 1u);
  size_t stages = cf.timings().size();
  EXPECT_GT(stages, 5u);
  f(zeros({8}));
  EXPECT_EQ(cf.timings().size(), stages);
}

TEST(Function, TracesCanBeLimited) {
  auto f = wg::function("strict", [](const Tensor &x) { return x; }, {.max_traces = 1});
  f(Tensor(1.0f));
  std::string message = messageOf([&] { f(Tensor{1.0f}); });
  EXPECT_NE(message.find("trace 2 exceeds max_traces = 1"), std::string::npos) << message;
  EXPECT_NE(message.find("arg0: f32[] -> f32[1]"), std::string::npos) << message;
  f.clear_cache();
  f(Tensor{1.0f});
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_NE(messageOf([&] { f(Tensor(1.0f)); }).find("trace 2 exceeds max_traces = 1"), std::string::npos);
}

// F-16
TEST(Function, TheCacheIsBounded) {
  auto f = wg::function("many", [](const Tensor &x) { return x + 1.0f; }, {.capacity = 3, .interpret = true});
  for (int64_t n = 1; n < 8; ++n)
    f(zeros({n}));
  EXPECT_EQ(f.num_concrete(), 3);
}

// L-18
TEST(Function, EndlessRecursionIsAnError) {
  std::function<Tensor(const Tensor &)> self;
  auto f = wg::function("endless", [&](const Tensor &x) { return self(x); });
  self = [&](const Tensor &x) { return f(x); };
  EXPECT_NE(messageOf([&] { f(Tensor(1.0f)); }).find("it calls itself with the same signature"), std::string::npos);
}

TEST(Function, RecursionThroughAChangingStaticEnds) {
  std::function<Tensor(const Tensor &, int)> self;
  uint32_t line = 0;
  auto f = wg::function("deep", [&](const Tensor &x, int n) { return n == 0 ? x : self(x, n - 1) + 1.0f; });
  self = [&](const Tensor &x, int n) {
    line = __LINE__ + 1;
    return f(x, n);
  };
  std::string message = messageOf([&] { f(Tensor(1.0f), -1); });
  EXPECT_NE(message.find("deep: this call is traced inside of 300 others"), std::string::npos) << message;
  EXPECT_NE(message.find("at FunctionTest.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_FALSE(tracing());
  EXPECT_EQ(f.num_concrete(), 0);
  EXPECT_EQ(f.trace_count(), 0);
  EXPECT_EQ(f(Tensor(1.0f), 299).item<float>(), 300.0f);
  EXPECT_EQ(f.trace_count(), 300);
}

//===- Derivatives ------------------------------------------------------------------------------------------------===//

// F-92: a training step; and D7: the variables change.
TEST(Function, ATrainStepEqualsEagerCode) {
  auto make = [](Variable &w, Variable &b) {
    return [&](const Tensor &x, const Tensor &y) {
      GradientTape tape;
      Tensor loss = mean(square(w * x + b - y));
      auto [dw, db] = tape.gradient(loss, w, b);
      w.assign_sub(0.1 * dw);
      b.assign_sub(0.1 * db);
      return loss;
    };
  };
  Variable w(0.0), b(0.0), we(0.0), be(0.0);
  auto step = wg::function("step", make(w, b));
  auto eager = make(we, be);
  Tensor x{1.0, 2.0, 3.0}, y{3.0, 5.0, 7.0};
  for (int i = 0; i < 20; ++i)
    EXPECT_NEAR(step(x, y).item<double>(), eager(x, y).item<double>(), 1e-12);
  EXPECT_EQ(step.trace_count(), 1);
  EXPECT_NEAR(w.item<double>(), we.item<double>(), 1e-12);
}

TEST(Function, TheGradientIsTracedInside) {
  auto f = wg::function("second", [](const Tensor &x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor dy = inner.gradient(x * x * x, x).value();
    return std::pair(dy, outer.gradient(dy, x).value());
  });
  auto [first, second] = f(Tensor(1.7));
  EXPECT_NEAR(first.item<double>(), 3 * 1.7 * 1.7, 1e-12);
  EXPECT_NEAR(second.item<double>(), 6 * 1.7, 1e-12);
}

// F-90, F-93
TEST(Function, UnderATapeACallIsOneRecord) {
  Variable w(2.0);
  auto f = wg::function("cube", [&](const Tensor &x) { return w * x * x * x; });
  Tensor x(1.5);
  for (double value : {2.0, 3.0}) {
    w.assign(value);
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    EXPECT_EQ(tape.size(), 1);
    auto [dx, dw] = tape.gradient(y, x, w);
    EXPECT_NEAR(dx.item<double>(), value * 3 * 1.5 * 1.5, 1e-12);
    EXPECT_NEAR(dw.item<double>(), 1.5 * 1.5 * 1.5, 1e-12);
  }
}

// F-91
TEST(Function, HigherOrdersThroughACall) {
  auto f = wg::function("cube", [](const Tensor &x) { return x * x * x; });
  Tensor x(1.7);
  GradientTape outermost, outer, inner;
  for (GradientTape *tape : {&outermost, &outer, &inner})
    tape->watch(x);
  Tensor first = inner.gradient(f(x), x).value();
  Tensor second = outer.gradient(first, x).value();
  Tensor third = outermost.gradient(second, x).value();
  EXPECT_NEAR(first.item<double>(), 3 * 1.7 * 1.7, 1e-12);
  EXPECT_NEAR(second.item<double>(), 6 * 1.7, 1e-12);
  EXPECT_NEAR(third.item<double>(), 6.0, 1e-12);
}

// F-92: functions in functions, with the tape at either level.
TEST(Function, FunctionsNest) {
  Variable w(2.0);
  auto inner = wg::function("inner", [&](const Tensor &x) { return exp(w * x); });
  auto outer = wg::function("outer", [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = inner(x) * inner(2.0 * x);
    auto [dx, dw] = tape.gradient(y, x, w);
    return std::tuple(y, dx, dw);
  });
  auto [y, dx, dw] = outer(Tensor(0.3));
  double value = std::exp(2 * 0.9);
  EXPECT_NEAR(y.item<double>(), value, 1e-12);
  EXPECT_NEAR(dx.item<double>(), 6 * value, 1e-11);
  EXPECT_NEAR(dw.item<double>(), 0.9 * value, 1e-12);
  EXPECT_EQ(inner.trace_count(), 1);
}

TEST(Function, SecondDerivativeThroughANestedCall) {
  auto cube = wg::function("cube", [](const Tensor &x) { return x * x * x; });
  auto second = wg::function("second", [&](const Tensor &x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor dy = inner.gradient(cube(x), x).value();
    return outer.gradient(dy, x).value();
  });
  EXPECT_NEAR(second(Tensor(1.7)).item<double>(), 6 * 1.7, 1e-12);
}

// F-95
TEST(Function, AVariableWithoutEffectHasNone) {
  Variable used(2.0), unused(3.0);
  auto f = wg::function("reads", [&](const Tensor &x) {
    Tensor beside = unused * x;
    return used * x;
  });
  GradientTape tape;
  Tensor y = f(Tensor(4.0));
  auto [a, b] = tape.gradient(y, used, unused);
  EXPECT_EQ(a.item<double>(), 4.0);
  EXPECT_FALSE(b);
}

// F-94
TEST(Function, IntegerResultsHaveNoGradient) {
  auto f = wg::function("both", [](const Tensor &x) { return std::pair(x * x, argmax(x)); });
  Tensor x{1.0, 3.0, 2.0};
  GradientTape tape;
  tape.watch(x);
  auto [y, place] = f(x);
  EXPECT_EQ(place.item<int64_t>(), 1);
  EXPECT_EQ(tape.gradient(y, x).value().to_vector<double>(), (std::vector{2.0, 6.0, 4.0}));
}

// T-15 inside of a trace
// All reads of a variable count, also those after an assignment: the tape may be inside of the function,
// outside, or around a call in a trace.
TEST(Function, EveryReadOfAVariableCountsWhereverTheTapeStands) {
  struct Case {
    double expected;
    std::function<Tensor(Variable, Variable)> body;
  };
  const Case cases[] = {
      {304,
       [](Variable v, Variable) {
         Tensor y = v * v;
         v.assign(Tensor(10.0));
         return y + v * v * v;
       }},
      {12,
       [](Variable v, Variable) {
         v.assign(v * 3.0);
         return v * v;
       }},
      {3,
       [](Variable v, Variable u) {
         v.assign_add(1.0);
         return v * u;
       }},
      {252,
       [](Variable v, Variable u) {
         Tensor y = v * v * u;
         v.assign(v * 10.0);
         return y + v * u * v * 2.0;
       }},
      {9,
       [](Variable v, Variable u) {
         Tensor old = v.value();
         v.assign(u);
         u.assign(old);
         return v * v + u * 3.0 + v * 3.0;
       }},
  };
  for (const Case &each : cases) {
    auto with = [&](auto &&gradientOf) {
      Variable v(2.0), u(3.0);
      auto traced = function("f", [&] { return each.body(v, u); });
      return gradientOf([&] { return each.body(v, u); }, [&] { return traced(); }, v);
    };
    auto outside = [](auto &f, const Variable &v) {
      GradientTape tape;
      Tensor y = f();
      return tape.gradient(y, v).value().template item<double>();
    };
    double eager = with([&](auto body, auto, Variable v) { return outside(body, v); });
    double overCall = with([&](auto, auto call, Variable v) { return outside(call, v); });
    auto inTrace = [](auto &f, const Variable &v) {
      auto whole = function("whole", [&] {
        GradientTape tape;
        Tensor y = f();
        return tape.gradient(y, v).value();
      });
      return whole().template item<double>();
    };
    double inside = with([&](auto body, auto, Variable v) { return inTrace(body, v); });
    double aroundCall = with([&](auto, auto call, Variable v) { return inTrace(call, v); });
    EXPECT_EQ(overCall, eager);
    EXPECT_EQ(inside, eager);
    EXPECT_EQ(aroundCall, eager);
    if (&each < &cases[3])
      EXPECT_EQ(eager, each.expected);
  }
}

TEST(Function, WhatIsReadAcrossPagesOrALongAxisIsReadOnce) {
  // Steps of whole pages, and long rows; blocks and points that are left over; outermost and further inside.
  struct Case {
    Shape shape;
    std::vector<int64_t> permutation;
  };
  for (const Case &each : {Case{{100, 1024}, {1, 0}}, Case{{2100, 200}, {1, 0}}, Case{{100, 128, 24}, {1, 2, 0}},
                           Case{{3, 70, 64, 16}, {2, 0, 3, 1}}, Case{{96, 3072}, {1, 0}}}) {
    auto f = function("f", [&](const Tensor &x, const Tensor &y) { return transpose(x, each.permutation) + y; });
    Tensor x = reshape(arange(0, each.shape.numElements(), 1, f32), each.shape),
           y = transpose(x, each.permutation) * 0.5f;
    EXPECT_EQ(reduce_max(abs(f(x, y) - 3.0f * y)).item<float>(), 0.0f) << each.shape[0] << ", " << each.shape[1];
  }
}

// docs/numbers.md: (sqrt k + 16) 2^-24 of the sum of |a b|, however long the sum.
TEST(Function, LongProductsKeepTheirDigits) {
  auto product =
      function("product", [](const Tensor &a, const Tensor &b) { return matmul(a, b, {.transpose_b = true}); });
  auto gradient =
      function("gradient", [](const Tensor &a, const Tensor &b) { return matmul(a, b, {.transpose_a = true}); });
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1000000}, {2, 3, 300000}, {5, 40, 20000}}) {
    Tensor a = random_uniform(random::key(1), {m, k}, 0.0, 1.0, f32),
           b = random_uniform(random::key(2), {n, k}, 0.0, 1.0, f32);
    Tensor exact = matmul(cast(a, f64), cast(b, f64), {.transpose_b = true});
    double bound = (std::sqrt(static_cast<double>(k)) + 16) * 0x1p-24;
    Tensor cube = reshape(b, {n, k / 2, 2}), lumps = reshape(transpose(cube, {2, 1, 0}), {2, k / 2, n});
    auto twoLetters =
        function("two_letters", [](const Tensor &a, const Tensor &b) { return einsum("mkl,lkn->mn", a, b); });
    for (const Tensor &c : {product(a, b), gradient(transpose(a), transpose(b)), matmul(a, b, {.transpose_b = true}),
                            twoLetters(reshape(a, {m, k / 2, 2}), lumps)})
      EXPECT_LE(reduce_max(abs(cast(c, f64) / exact - 1.0)).item<double>(), bound) << m << " x " << n << " of " << k;
  }
}

// A variable that is an argument and a capture is one variable.
TEST(Function, AVariableMayBeArgumentAndCapture) {
  Variable w(1.0), other(5.0);
  auto both = function("both", [&](const Variable &u) {
    u.assign_add(1.0);
    w.assign_add(10.0);
    return u.value() + 0.0;
  });
  EXPECT_EQ(both(w).item<double>(), 12);
  EXPECT_EQ(w.value().item<double>(), 12);
  EXPECT_EQ(both(other).item<double>(), 6); // another trace: here they are two
  EXPECT_EQ(w.value().item<double>(), 22);
  EXPECT_EQ(both(w).item<double>(), 33);
  EXPECT_EQ(both.trace_count(), 2);

  w.assign(3.0);
  auto gradient = function("gradient", [&](const Variable &u) {
    GradientTape tape;
    Tensor y = u * w;
    auto [du, dw] = tape.gradient(y, u, w);
    return std::pair(du.value(), dw.value());
  });
  auto [du, dw] = gradient(w);
  EXPECT_EQ(du.item<double>(), 6);
  EXPECT_EQ(dw.item<double>(), 6);
  EXPECT_EQ(gradient(other).first.item<double>(), 3);

  w.assign(1.0);
  auto inner = function("inner", [&] { w.assign_add(10.0); });
  auto outer = function("outer", [&](const Variable &u) {
    u.assign_add(1.0);
    inner();
    u.assign(u * 2.0);
    return u.value();
  });
  EXPECT_EQ(outer(w).item<double>(), 24);
  EXPECT_EQ(w.value().item<double>(), 24);
}

// The same where the argument comes from a trace around it, among a hundred captures, and after
// a trace that captured nothing.
TEST(Function, ACapturedArgumentIsKnownInEveryPlace) {
  Variable w(0.0), u(5.0);
  auto f = function("f", [&](const Variable &v) {
    v.assign_add(1.0);
    w.assign_add(10.0);
    return v.value() + 0.0;
  });
  auto g = function("g", [&](const Variable &v) { return f(v); });
  EXPECT_EQ(g(w).item<double>(), 11);
  EXPECT_EQ(f(w).item<double>(), 22);
  EXPECT_EQ(g(u).item<double>(), 6);
  EXPECT_EQ(w.value().item<double>(), 32);

  std::vector<Variable> many;
  for (int i = 0; i < 100; ++i) // ThreadSanitizer takes up to 128 locks at once
    many.emplace_back(0.0);
  auto sum = function("sum", [&](const Variable &v) {
    v.assign_add(1.0);
    Tensor total = v.value();
    for (const Variable &each : many)
      total = total + each;
    return total;
  });
  EXPECT_EQ(sum(u).item<double>(), 7);
  EXPECT_EQ(sum(many[99]).item<double>(), 2);

  Variable a(1.0);
  auto sometimes =
      function("sometimes", [&](const Variable &v, int n) { return n ? v + a : v * 2.0; }, {.max_traces = 2});
  EXPECT_EQ(sometimes(a, 0).item<double>(), 2);
  EXPECT_EQ(sometimes(u, 1).item<double>(), 8);
  EXPECT_EQ(sometimes(a, 0).item<double>(), 2);
}

TEST(Function, AConcreteFunctionRefusesOtherAliases) {
  Variable w(2.0), z(3.0), captured(1.0);
  auto f = function("f", [&](const Variable &u, const Variable &x) {
    u.assign_add(x);
    x.assign_add(u);
    return u * x * captured;
  });
  ConcreteFunction apart = f.trace(w, z), same = f.trace(w, w);
  EXPECT_THROW(apart(w, w), Error);
  EXPECT_THROW(apart(captured, z), Error);
  EXPECT_THROW(same(w, z), Error);
  EXPECT_EQ(w.value().item<double>(), 2);
  EXPECT_EQ(same(w, w)[0].item<double>(), 64); // w = 4, then 8
  EXPECT_EQ(apart(z, w)[0].item<double>(), 11 * 19);
}

// Structures of equal leaves are different arguments to a callable with `auto` parameters.
TEST(Function, AGenericFunctionTellsTypesApart) {
  Tensor a(1.0), b(2.0), c(3.0);
  auto nested = function("nested", [](const auto &t) {
    if constexpr (requires { std::get<0>(std::get<0>(t)); })
      return std::get<1>(t) * 10.0;
    else
      return std::get<0>(t) * 1.0;
  });
  EXPECT_EQ(nested(std::tuple{std::tuple{a, b}, c}).template item<double>(), 30);
  EXPECT_EQ(nested(std::tuple{a, std::tuple{b, c}}).template item<double>(), 1);
  auto identity = function("identity", [](const auto &t) { return t; });
  EXPECT_EQ(identity(std::vector<Tensor>{a})[0].template item<double>(), 1);
  EXPECT_EQ(identity(std::optional<Tensor>{b})->template item<double>(), 2);
  EXPECT_EQ(identity(std::pair{a, c}).second.template item<double>(), 3);
  EXPECT_EQ(identity(std::array<Tensor, 2>{b, c})[1].template item<double>(), 3);
  EXPECT_EQ(identity.trace_count(), 4);
}

// What serves other signatures is the last to be evicted.
TEST(Function, ATraceWithOpenSizesOutlivesItsAliases) {
  auto f = function("f", [](const Tensor &x) { return reduce_sum(x * 2.0); }, {.max_traces = 1, .capacity = 4});
  f.trace(Tensor(TensorSpec{f64, {dynamic}}));
  for (int64_t n = 1; n <= 12; ++n)
    EXPECT_EQ(f(ones({n}, f64)).item<double>(), 2.0 * static_cast<double>(n));
  EXPECT_EQ(f.trace_count(), 1);
}

// A call that fails leaves every variable as it was, whoever else holds its value.
TEST(Function, AFailingCallChangesNothing) {
  for (bool held : {false, true}) {
    Variable count(zeros({5000})), table(zeros({3}));
    auto f = function("f", [&](const Tensor &x, const Tensor &i, const Tensor &j) {
      count.assign_add(1.0f);
      Tensor first = gather(table, i);
      table.assign(table + 1.0f);
      Tensor second = gather(table, j);
      table.assign(table + 1.0f);
      return reduce_sum(x) + reduce_sum(first) + reduce_sum(second) + reduce_sum(count);
    });
    Tensor x = ones({4});
    EXPECT_EQ(f(x, Tensor{0}, Tensor{1}).item<float>(), 4 + 0 + 1 + 5000);
    std::vector<Tensor> holders;
    if (held)
      holders = {count.value(), table.value()};
    EXPECT_THROW(f(x, Tensor{0}, Tensor{7}), Error);
    EXPECT_THROW(f(x, Tensor{-1}, Tensor{0}), Error);
    EXPECT_EQ(count.value().to_vector<float>(), std::vector<float>(5000, 1));
    EXPECT_EQ(table.value().to_vector<float>(), std::vector<float>(3, 2));
    EXPECT_EQ(f(x, Tensor{2}, Tensor{1}).item<float>(), 4 + 2 + 3 + 10000);
  }
}

// A trace with open sizes serves what it can; what it takes to be equal and is not gets a trace of its own.
TEST(Function, AnOpenTraceDoesNotStandInTheWayOfBroadcasting) {
  auto f = function("f", [](const Tensor &x, const Tensor &y) { return x + y; });
  f.trace(Tensor(TensorSpec{f64, {dynamic}}), Tensor(TensorSpec{f64, {dynamic}}));
  EXPECT_EQ(f(ones({3}, f64), ones({3}, f64)).to_vector<double>(), std::vector<double>(3, 2));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({3}, f64), ones({1}, f64)).to_vector<double>(), std::vector<double>(3, 2));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_THROW(f(ones({3}, f64), ones({2}, f64)), Error);
}

// Machine code for sets of sizes is kept as signatures are: the least recently used is forgotten.
TEST(Function, CodeForOpenSizesIsBounded) {
  auto f = function("f", [](const Tensor &x) { return x * 2.0; }, {.capacity = 4});
  ConcreteFunction open = f.trace(Tensor(TensorSpec{f64, {dynamic}}));
  for (int64_t n = 1; n <= 20; ++n)
    EXPECT_EQ(open(ones({n}, f64))[0].to_vector<double>(), std::vector<double>(static_cast<size_t>(n), 2));
  EXPECT_EQ(open.kernels().size(), 4u);
}

TEST(Function, NarrowFloatsAreRefusedWhereverTheyAppear) {
  for (DType dtype : {f16, bf16}) {
    auto f = function("f", [&](const Tensor &x) { return cast(cast(x, dtype), f32); });
    EXPECT_THROW(f(ones({2})), Error);
    EXPECT_THROW(cast(ones({2}), dtype), Error);
  }
}

TEST(Function, ProductsOverNothingAreZero) {
  auto f = function("f", [](const Tensor &a, const Tensor &b) { return matmul(a, b) + 1.0f; });
  EXPECT_EQ(f(zeros({2, 0}), zeros({0, 3})).to_vector<float>(), std::vector<float>(6, 1));
  EXPECT_EQ(f(zeros({1, 0}), zeros({0, 3})).to_vector<float>(), std::vector<float>(3, 1));
  EXPECT_EQ(f(zeros({0, 4}), zeros({4, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(f(zeros({2, 4}), zeros({4, 0})).shape(), (Shape{2, 0}));
}

// Why there is no gradient is known inside of the called function only.
TEST(Function, AReasonComesOutOfACall) {
  auto f = function("f", [](const Tensor &x) { return stop_gradient(x) * 2.0; });
  auto g = function("g", [](const Tensor &x) { return floor(x) * 2.0; });
  auto outer = function("outer", [&](const Tensor &x) { return f(x * x) + 1.0; });
  Tensor x(3.0);
  auto reasonOf = [&](auto &&call) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(call(x), x).reason();
  };
  EXPECT_NE(reasonOf(f).find("'stop_gradient' (FunctionTest.cpp:"), std::string::npos) << reasonOf(f);
  EXPECT_NE(reasonOf(g).find("'floor'"), std::string::npos) << reasonOf(g);
  EXPECT_NE(reasonOf(outer).find("'stop_gradient'"), std::string::npos) << reasonOf(outer);
  EXPECT_NE(reasonOf([&](const Tensor &y) { return f(y * 2.0); }).find("'stop_gradient'"), std::string::npos);
}

TEST(Function, AssignmentStopsGradientsInside) {
  Variable w(2.0);
  auto f = wg::function("assigns", [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    w.assign(x * 5.0);
    Tensor y = w * w;
    auto [dx, dw] = tape.gradient(y, x, w);
    return std::tuple(dx, dw);
  });
  auto [dx, dw] = f(Tensor(3.0));
  EXPECT_FALSE(dx);
  EXPECT_NE(dx.reason().find("stop"), std::string::npos) << dx.reason();
  EXPECT_EQ(dw.item<double>(), 30.0);
  EXPECT_EQ(w.item<double>(), 15.0);
}

TEST(Function, TheCertificateNamesTheInputGradient) {
  Variable w(Tensor{{1.0f}, {2.0f}});
  auto f = wg::function("layer", [&](const Tensor &x) {
    GradientTape tape;
    return tape.gradient(reduce_sum(matmul(x, w)), w).value();
  });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {3, 2}});
  bool named = false;
  for (const DroppedGradient &dropped : cf.certificate())
    named = named || (dropped.op == "contract" && dropped.operand == 0 && dropped.reason == "not requested" &&
                      dropped.where.find("FunctionTest.cpp:") != std::string::npos);
  EXPECT_TRUE(named);
}

//===- Threads and memory -----------------------------------------------------------------------------------------===//

// F-56
TEST(Function, ManyThreadsTraceOnce) {
  std::atomic<int> bodies = 0;
  Variable total(0.0);
  auto f = wg::function("shared", [&](const Tensor &x) {
    ++bodies;
    total.assign_add(x);
    return x + 1.0;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        EXPECT_EQ(f(Tensor(1.0)).item<double>(), 2.0);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(bodies, 1);
  EXPECT_EQ(total.item<double>(), 400.0);
}

// a variable with one owner keeps its buffer.
TEST(Function, UpdatesAreInPlace) {
  if (std::getenv("WENGERT_INTERPRET"))
    GTEST_SKIP() << "skipped: the interpreter makes new buffers";
  Variable w(zeros({1024}));
  auto f = wg::function("update", [&] { w.assign_add(1.0f); });
  f();
  const float *before = w.value().data<float>().data();
  f();
  EXPECT_EQ(w.value().data<float>().data(), before);
  Tensor held = w.value();
  f();
  EXPECT_EQ(held.data<float>()[0], 2.0f);
  EXPECT_EQ(w.value().data<float>()[0], 3.0f);
}

// A later trace with fewer open sizes serves the calls that an older one has served as well.
TEST(Function, TheMostSpecificTraceServesWhicheverWasFirst) {
  std::vector<std::string> shapes;
  auto f = wg::function("f", [&](const Tensor &x) {
    shapes.push_back(toString(x.shape()));
    return x * static_cast<float>(shapes.size());
  });
  auto valueOf = [&](int64_t rows, int64_t columns) { return reduce_max(f(ones({rows, columns}))).item<float>(); };
  f.trace(TensorSpec{f32, {dynamic, dynamic}});
  EXPECT_EQ(valueOf(1, 2), 1);
  f.trace(TensorSpec{f32, {1, dynamic}});
  EXPECT_EQ(valueOf(1, 2), 2);
  EXPECT_EQ(valueOf(1, 3), 2);
  EXPECT_EQ(valueOf(2, 2), 1);
  f.trace(TensorSpec{f32, {dynamic, 2}}); // as specific as the second: the older one stays
  EXPECT_EQ(valueOf(1, 2), 2);
  EXPECT_EQ(valueOf(2, 2), 3);
  f.trace(ones({1, 2}));
  EXPECT_EQ(valueOf(1, 2), 4);
  EXPECT_EQ(valueOf(1, 3), 2);
  EXPECT_EQ(f.trace_count(), 4);
}

// The parameter of a traced function lives as long as its trace.
TEST(Function, AVariableOfATraceDoesNotLeak) {
  Variable leaked, v(2.0f), w(3.0f);
  auto f = wg::function("f", [&](const Variable &x) {
    if (!leaked.defined())
      leaked = x;
    return x * 2.0f;
  });
  f(v);
  std::string
      where = "FunctionTest.cpp:",
      scope =
          "the parameter of a traced function is out of scope and cannot be used here; it was made for the call at ";
  for (const auto &use : std::vector<std::function<void()>>{
           [&] { leaked.assign(7.0f); },
           [&] { leaked.assign_add(1.0f); },
           [&] { leaked.value(); },
           [&] { leaked.item<float>(); },
           [&] { f(leaked); },
           [&] { f.trace(leaked); },
           [&] { wg::function("g", [&] { return leaked * 1.0f; })(); },
           [&] { wg::function("g", [&](const Variable &y) { return y * leaked; })(v); },
           [&] { wg::function("g", [&] { leaked.assign(1.0f); })(); },
           [&] { wg::function("g", [&](const Tensor &x) { return f(leaked) + x; })(Tensor(1.0f)); },
           [&] { GradientTape().watch(leaked); },
           [&] { grad([](const Variable &x) { return x * x; })(leaked); },
           [&] { optim::SGD(0.1).apply(std::vector{Grad(Tensor(1.0f))}, std::vector{leaked}); },
       }) {
    std::string message = messageOf(use);
    EXPECT_NE(message.find(scope), std::string::npos) << message;
    EXPECT_NE(message.find(where), std::string::npos) << message;
    EXPECT_EQ(f(v).item<float>(), 4.0f);
    EXPECT_EQ(v.item<float>(), 2.0f);
  }
  // At trace time, outside of the trace.
  auto g = wg::function("g", [&](const Variable &x) {
    return at_trace_time([&] { return messageOf([&] { x.assign(1.0f); }).find(scope) != std::string::npos; })
               ? x * 1.0f
               : x * 0.0f;
  });
  EXPECT_EQ(g(w).item<float>(), 3.0f);
}

enum class Wide : uint64_t { top = UINT64_MAX };
enum class Narrow : signed char { minus = -1 };
enum class Flag : bool { on = true };

// A static is keyed by the bits that make its value, all of them and no others.
TEST(Function, EveryStaticIsKeyedByItsOwnValue) {
  auto count = [](auto... values) {
    auto f = wg::function("f", [](const Tensor &x, auto) { return x; });
    (f(Tensor(1.0f), values), ...);
    (f(Tensor(1.0f), values), ...);
    return f.trace_count();
  };
  EXPECT_EQ(count(0.1L, 0.1L + 1e-19L, 0.1L), 2);
  EXPECT_EQ(count(0.0, -0.0, 0.0f, -0.0f, 0.0L, -0.0L), 6);
  double quiet = std::nan("1"), other = std::nan("2");
  EXPECT_EQ(count(quiet, other, std::nanf("1"), std::nanl("1")), 4);
  EXPECT_EQ(count('a', static_cast<signed char>('a'), static_cast<unsigned char>('a'), u8'a', u'a', U'a', L'a'), 7);
  EXPECT_EQ(count(true, 1, 1u, 1l, 1ul, 1ll, 1ull, short(1), uint8_t(1)), 9);
  EXPECT_EQ(count(UINT64_MAX, UINT64_MAX - 1, INT64_MIN, int64_t(-1)), 4);
  EXPECT_EQ(count(Wide::top, Wide(1), Narrow::minus, Narrow(1), Flag::on, Flag(), std::byte(1)), 7);
  using namespace std::string_literals;
  EXPECT_EQ(count("a"s, "a\0"s, "a\0b"s, "a\0c"s, ""s, "\0"s), 6);
  // Padding is no part of a value.
  long double a, b;
  std::memset(&a, 0x00, sizeof a), std::memset(&b, 0xff, sizeof b);
  a = b = 1.0L / 3;
  volatile long double third = a;
  a = third;
  std::memcpy(&b, &a, 10);
  EXPECT_EQ(count(a, b), 1);

  auto textOf = [](auto value) {
    auto f = wg::function("f", [](const Tensor &x, auto) { return x; });
    return f.trace(Tensor(1.0f), value).signature();
  };
  EXPECT_NE(textOf(0.1L).find("long double 0.100000000000000000001"), std::string::npos) << textOf(0.1L);
  EXPECT_NE(textOf(Wide::top).find("18446744073709551615"), std::string::npos) << textOf(Wide::top);
  EXPECT_NE(textOf(Narrow::minus).find("Narrow -1"), std::string::npos) << textOf(Narrow::minus);
  EXPECT_NE(textOf(-0.0f).find("float -0"), std::string::npos) << textOf(-0.0f);
  EXPECT_NE(textOf("a\0b\n"s).find("\"a\\x00b\\x0a\""), std::string::npos) << textOf("a\0b\n"s);

  // What has no value of its own, or more bits than a signature takes, is none.
  static_assert(!detail::isStatic<const char *> && !detail::isStatic<std::nullptr_t> && !detail::isStatic<int *>);
  static_assert(!detail::isStatic<void (*)()> && !detail::isStatic<const char *> && !detail::isStatic<std::u16string>);
  static_assert(!detail::isStatic<std::chrono::seconds> && !detail::isStatic<std::vector<bool>>);
  __extension__ typedef __int128 Huge;
  static_assert(!detail::isStatic<Huge> && !Arithmetic<Huge>);
}

TEST(Function, AWorkspaceOfManyMegabytesCompiles) {
  // Two values of 320 MB each, none of which is computed here.
  auto f = wg::function("f", [](const Tensor &x, const Tensor &a, const Tensor &b) {
    Tensor wide = matmul(x, a);
    return matmul(exp(matmul(wide, b)), transpose(b)) + wide;
  });
  ConcreteFunction concrete =
      f.trace(TensorSpec{f32, {20000, 4}}, TensorSpec{f32, {4, 4000}}, TensorSpec{f32, {4000, 4000}});
  EXPECT_FALSE(concrete.kernels().empty());
}

TEST(Function, EqualKernelsAreCompiledOnce) {
  auto f = wg::function("f", [](const Tensor &x, const Tensor &w, const Tensor &b) {
    Tensor h = x;
    for (int i = 0; i < 20; ++i)
      h = tanh(matmul(h, w) + b);
    return reduce_sum(h) + reduce_sum(gather(h, Tensor{1})) + reduce_sum(gather(h, Tensor{0}));
  });
  Tensor x = cast(linspace(-1, 1, 8), f32), w = reshape(cast(linspace(-1, 1, 16), f32), {4, 4}), b = ones({4});
  ConcreteFunction concrete = f.trace(reshape(x, {2, 4}), w, b);
  std::string text = concrete.text(Stage::lowered);
  size_t functions = 0;
  for (size_t at = text.find("_contract("); at != std::string::npos; at = text.find("_contract(", at + 1))
    functions += text.rfind("func.func private", at) > text.rfind('\n', at);
  EXPECT_LE(functions, 2u) << text; // the first layer reads what comes in
  // Each is listed with its own place, and those that may fail name theirs.
  EXPECT_GE(concrete.kernels().size(), 20u);
  Tensor h = reshape(x, {2, 4});
  for (int i = 0; i < 20; ++i)
    h = tanh(matmul(h, w) + b);
  EXPECT_NEAR(f(reshape(x, {2, 4}), w, b).item<float>(), (2 * reduce_sum(h)).item<float>(), 1e-4);
}
