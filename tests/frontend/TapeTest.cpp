// Rows T-* of the behaviour of tapes: what is recorded, what a gradient is, and why there is none.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include "runtime/Buffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <thread>
#include <type_traits>

#include <pthread.h>

using namespace wg;
using wg::tests::messageOf;

// T-20: what was recorded belongs to one tape, which can be moved and not copied.
static_assert(!std::is_copy_constructible_v<GradientTape> && !std::is_copy_assignable_v<GradientTape> &&
              std::is_move_constructible_v<GradientTape>);
// T-17: a tensor cannot take the place of a variable, or lose one its gradient unseen.
static_assert(!std::is_assignable_v<Variable &, Tensor>);

// T-01
TEST(Tape, OnlyOpsOnWatchedTensorsAreRecorded) {
  Tensor x(3.0f), y(4.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor unseen = y * y;
  Tensor seen = x * unseen;
  EXPECT_EQ(tape.size(), 1);
  EXPECT_EQ(tape.gradient(seen, x).item<float>(), 16.0f);
}

// T-01
TEST(Tape, OpsAfterTheScopeAreConstants) {
  Tensor x(3.0f);
  GradientTape tape({.recording = false});
  tape.watch(x);
  Tensor y;
  {
    auto scope = tape.record();
    y = x * x;
  }
  Tensor z = y * x;
  Grad g = tape.gradient(z, x);
  EXPECT_FALSE(g);
  EXPECT_NE(g.reason().find("no path"), std::string::npos) << g.reason();
}

// T-02, T-30, T-35
TEST(Tape, TrainableVariablesAreWatchedWhenRead) {
  Variable w(2.0f), b(1.0f);
  GradientTape tape;
  Tensor loss = reduce_sum(w * Tensor{1.0f, 2.0f} + b);
  auto [dw, db] = tape.gradient(loss, w, b);
  EXPECT_EQ(dw.item<float>(), 3.0f);
  EXPECT_EQ(db.item<float>(), 2.0f);
}

// T-02: and when a called function, or one that it calls, reads them.
TEST(Tape, VariablesThatCalledFunctionsReadAreWatched) {
  Variable w(3.0), unread(1.0);
  auto inner = wg::function("inner", [&](const Tensor &x) { return x * w; });
  auto outer = wg::function("outer", [&](const Tensor &x) { return inner(x) * 2.0; });
  for (int i = 0; i < 2; ++i) { // traced, and then known
    GradientTape tape;
    Tensor y = outer(Tensor(5.0));
    ASSERT_EQ(tape.watched_variables().size(), 1u);
    EXPECT_TRUE(tape.watched_variables()[0].is(w));
    EXPECT_EQ(tape.gradient(y, w).item<double>(), 10.0);
  }
}

// T-03
TEST(Tape, NothingIsWatchedByItselfIfNotWanted) {
  Variable w(2.0f), v(3.0f);
  GradientTape tape({.watch_accessed_variables = false});
  tape.watch(v);
  Tensor y = w * v;
  auto [dw, dv] = tape.gradient(y, w, v);
  EXPECT_FALSE(dw);
  EXPECT_EQ(dv.item<float>(), 2.0f);
}

// T-04
TEST(Tape, AVariableThatIsNotTrainableCanBeWatched) {
  Variable w(2.0f, {.trainable = false});
  GradientTape tape({.persistent = true});
  EXPECT_NE(tape.gradient(w * w, w).reason().find("not trainable"), std::string::npos);
  tape.watch(w);
  EXPECT_EQ(tape.gradient(w * w, w).item<float>(), 4.0f);
}

// T-04
TEST(Tape, AnyStructureCanBeWatched) {
  Variable w(3.0, {.trainable = false});
  Tensor x(2.0), z(5.0);
  std::map<std::string, std::vector<Variable>> named{{"w", {w}}};
  GradientTape tape;
  tape.watch(std::tuple(named, std::optional(x), 7), std::pair(z, std::string("z")));
  auto [dw, dx, dz] = tape.gradient(w * x * z, w, x, z);
  EXPECT_EQ(dw.item<double>(), 10.0);
  EXPECT_EQ(dx.item<double>(), 15.0);
  EXPECT_EQ(dz.item<double>(), 6.0);
}

// T-05
TEST(Tape, WatchingIsByIdentity) {
  Tensor a(2.0f), b(2.0f);
  GradientTape tape;
  tape.watch(a, b);
  auto [da, db] = tape.gradient(a * a * b, a, b);
  EXPECT_EQ(da.item<float>(), 8.0f);
  EXPECT_EQ(db.item<float>(), 4.0f);
}

TEST(Tape, WatchNamesTheLine) {
  GradientTape tape;
  uint32_t line = __LINE__ + 1;
  for (std::string message : {messageOf([&] { tape.watch(Tensor(3)); }), messageOf([&] { tape.watch(Tensor()); })})
    EXPECT_NE(message.find("TapeTest.cpp:" + std::to_string(line)), std::string::npos) << message;
}

// T-36
TEST(Tape, ASeedThatDoesNotFitLeavesTheTapeUsable) {
  Variable w(Tensor{1.0, 2.0});
  GradientTape tape;
  Tensor y = w * w;
  EXPECT_NE(messageOf([&] {
              tape.gradient(y, w, GradientOptions{.output_gradients = Tensor{1.0, 2.0, 3.0}});
            }).find("output_gradients[0] is f64[3], its target f64[2]"),
            std::string::npos);
  EXPECT_TRUE(tape.recording());
  EXPECT_EQ(tape.gradient(y, w, GradientOptions{.output_gradients = 3.0}).value().to_vector<double>(),
            (std::vector<double>{6, 12}));
}

TEST(Tape, AUsedTapeStaysOffWhenAPauseEnds) {
  Variable w(2.0);
  GradientTape tape;
  Tensor y = w * w;
  {
    auto pause = tape.stop_recording();
    tape.gradient(y, w);
  }
  EXPECT_FALSE(tape.recording());
  w *w;
  EXPECT_EQ(tape.size(), 0);
}

TEST(Tape, ATapeThatWasMovedFromSaysSo) {
  Variable w(2.0);
  GradientTape tape;
  Tensor y = w * w;
  GradientTape moved(std::move(tape));
  auto refused = [](const std::function<void()> &use) {
    std::string message = messageOf(use);
    return message.find("the tape was moved from") != std::string::npos &&
           message.find("TapeTest.cpp:") != std::string::npos;
  };
  EXPECT_TRUE(refused([&] { tape.gradient(y, w); }));
  EXPECT_TRUE(refused([&] { tape.watch(w); }));
  EXPECT_TRUE(refused([&] { tape.reset(); }));
  EXPECT_TRUE(refused([&] { tape.size(); }));
  EXPECT_TRUE(refused([&] { tape.stop(); }));
  EXPECT_TRUE(refused([&] { (void)tape.record(); }));
  EXPECT_TRUE(refused([&] { (void)tape.stop_recording(); }));
  EXPECT_TRUE(refused([&] { tape.explain(y, w); }));
  EXPECT_EQ(moved.gradient(y, w).item<double>(), 4.0);
}

// T-07, T-08, T-40
TEST(Tape, IntegersHaveNoGradientAndSayWhy) {
  for (DType dtype : {i64, i32, u8, boolean})
    EXPECT_NE(messageOf([&] { GradientTape().watch(zeros({2}, dtype)); }).find("must be floating"), std::string::npos);
  for (DType dtype : {f32, f64})
    GradientTape().watch(zeros({2}, dtype));
  Tensor n(3), x(2.0f);
  GradientTape strict;
  EXPECT_NE(messageOf([&] { strict.watch(n); }).find("the dtype of a watched tensor must be floating, got i32[]"),
            std::string::npos);
  GradientTape tape({.persistent = true, .allow_non_differentiable = true});
  tape.watch(n, x);
  EXPECT_NE(tape.gradient(x * x, n).reason().find("integer dtype"), std::string::npos);
  EXPECT_NE(tape.gradient(cast(x, i32), x).reason().find("integer dtype"), std::string::npos);
}

// T-09
TEST(Tape, WatchingIsLocalToTheTape) {
  Tensor x(2.0f);
  GradientTape outer;
  GradientTape inner;
  inner.watch(x);
  Tensor y = x * x;
  EXPECT_EQ(outer.size(), 0);
  EXPECT_EQ(inner.gradient(y, x).item<float>(), 4.0f);
  EXPECT_FALSE(outer.gradient(y, x));
}

// T-10
TEST(Tape, WatchedVariablesComeInTheOrderOfConstruction) {
  Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"});
  GradientTape tape;
  Tensor y = b * a;
  tape.gradient(y, a);
  std::vector<Variable> watched = tape.watched_variables();
  ASSERT_EQ(watched.size(), 2u);
  EXPECT_EQ(watched[0].name(), "a");
  EXPECT_EQ(watched[1].name(), "b");
  tape.reset();
  EXPECT_TRUE(tape.watched_variables().empty());
  Tensor z = b * 2.0f; // of the last recording only
  ASSERT_EQ(tape.watched_variables().size(), 1u);
  EXPECT_EQ(tape.watched_variables()[0].name(), "b");
}

// T-11
TEST(Tape, OnlyTheBranchThatWasTakenIsRecorded) {
  for (double at : {2.0, -2.0}) {
    Tensor x(at);
    GradientTape tape;
    tape.watch(x);
    Tensor y = x.item<double>() > 0 ? x * x : x * 10.0;
    EXPECT_EQ(tape.size(), 1);
    EXPECT_EQ(tape.gradient(y, x).item<double>(), at > 0 ? 4.0 : 10.0);
  }
}

// T-12
TEST(Tape, AnExceptionLeavesNoTapeBehind) {
  Tensor x(2.0f);
  try {
    GradientTape tape;
    tape.watch(x);
    throw 1;
  } catch (int) {
  }
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x * x, x).item<float>(), 4.0f);
}

// T-13
TEST(Tape, IdentitiesAreSourcesOfTheirOwn) {
  Tensor x(3.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor one = x * 1.0f, zero = x + 0.0f;
  Tensor y = one * zero;
  auto [dx, done, dzero] = tape.gradient(y, x, one, zero);
  EXPECT_EQ(dx.item<float>(), 6.0f);
  EXPECT_EQ(done.item<float>(), 3.0f);
  EXPECT_EQ(dzero.item<float>(), 3.0f);
}

TEST(Tape, IdentitiesAreSourcesOfTheirOwnInAFunction) {
  auto f = wg::function("f", [](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor a = x + 0.0, b = x - 0.0, c = x * 1.0, d = identity(x);
    GradArray<5> grads = tape.gradient(a * b * c * d * x, {x, a, b, c, d});
    return std::vector<Tensor>(grads.begin(), grads.end());
  });
  std::vector<Tensor> grads = f(Tensor(2.0));
  EXPECT_EQ(grads[0].item<double>(), 80.0);
  for (size_t i = 1; i < 5; ++i)
    EXPECT_EQ(grads[i].item<double>(), 16.0) << i;
}

// T-14, T-41
TEST(Tape, AVariableAsTargetIsItself) {
  Variable v(3.0f), w(4.0f);
  GradientTape tape({.persistent = true});
  EXPECT_EQ(tape.gradient(v, v).item<float>(), 1.0f);
  EXPECT_FALSE(tape.gradient(v, w));
}

// T-15
TEST(Tape, AssignmentStopsGradients) {
  Variable w(2.0f);
  Tensor x(3.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  w.assign(x * 5.0f);
  Tensor y = w * w;
  auto [dx, dw] = tape.gradient(y, x, w);
  EXPECT_FALSE(dx);
  EXPECT_EQ(dw.item<float>(), 30.0f);
}

// T-16
TEST(Tape, WhatLeavesAsANumberComesBackAsAConstant) {
  Tensor x(3.0);
  GradientTape tape;
  tape.watch(x);
  Tensor y = Tensor(x.item<double>()) * 2.0;
  Grad g = tape.gradient(y, x);
  EXPECT_FALSE(g);
  EXPECT_NE(g.reason().find("the target was not computed from anything that the tape watches"), std::string::npos)
      << g.reason();
}

// T-18: the ops of a gradient are at the lines of the ops that they differentiate.
TEST(Tape, AnErrorInAGradientNamesTheLineOfItsOp) {
  Tensor x{1.0, 2.0};
  GradientTape tape;
  tape.watch(x);
  uint32_t line = __LINE__ + 1;
  Tensor y = with_gradient_hook(x, [](const Tensor &) { return Tensor(1.0); });
  std::string message = messageOf([&] { tape.gradient(y, x); });
  EXPECT_NE(message.find("TapeTest.cpp:" + std::to_string(line)), std::string::npos) << message;
}

TEST(Tape, TheGradientOfAVariableSumsOverItsReads) {
  Variable w(2.0f);
  GradientTape tape;
  Tensor before = w * 3.0f;
  w.assign_add(1.0f);
  Tensor y = before + w * 5.0f;
  EXPECT_EQ(tape.gradient(y, w).item<float>(), 8.0f);
}

// T-30: the result mirrors the structure of the sources.
TEST(Tape, StructureIsKept) {
  Variable a(1.0f), b(2.0f);
  std::map<std::string, Variable> named{{"a", a}, {"b", b}};
  std::vector<std::vector<Variable>> layers{{a}, {}, {b}};
  GradientTape tape({.persistent = true});
  Tensor y = a * b * b;
  std::map<std::string, Grad> byName = tape.gradient(y, named);
  EXPECT_EQ(byName.at("a").item<float>(), 4.0f);
  EXPECT_EQ(byName.at("b").item<float>(), 4.0f);
  std::vector<std::vector<Grad>> byLayer = tape.gradient(y, layers);
  EXPECT_EQ(byLayer.size(), 3u);
  EXPECT_TRUE(byLayer[1].empty());
  EXPECT_EQ(byLayer[2][0].item<float>(), 4.0f);
}

// T-31, T-32, T-33, T-34
TEST(Tape, SourcesMayBeRepeatedIntermediateAndTargets) {
  Tensor x(3.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x, z = y * y;
  auto [first, second] = tape.gradient(z, x, x);
  EXPECT_EQ(first.item<float>(), 108.0f);
  EXPECT_EQ(second.item<float>(), 108.0f);
  EXPECT_EQ(tape.gradient(z, y).item<float>(), 18.0f);
  EXPECT_EQ(tape.gradient(y, y).item<float>(), 1.0f);
  EXPECT_EQ(tape.gradient({y, z}, y).item<float>(), 19.0f);
  EXPECT_EQ(tape.gradient(std::vector{y, y}, x).item<float>(), 12.0f);
}

// T-36
TEST(Tape, SeedsReplaceOnes) {
  Tensor x{1.0f, 2.0f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x;
  Grad g = tape.gradient(y, x, GradientOptions{.output_gradients = Tensor{1.0f, 10.0f}});
  EXPECT_EQ(g.value().to_vector<float>(), (std::vector{2.0f, 40.0f}));
  Grad both = tape.gradient(std::vector{y, y}, x, GradientOptions{.output_gradients = {Tensor(), Tensor{0.0f, 1.0f}}});
  EXPECT_EQ(both.value().to_vector<float>(), (std::vector{2.0f, 8.0f}));
  EXPECT_NE(messageOf([&] {
              tape.gradient(y, x, GradientOptions{.output_gradients = Tensor{1.0f, 2.0f, 3.0f}});
            }).find("output_gradients[0] is f32[3], its target f32[2]"),
            std::string::npos);
  // What is left open is ones.
  std::vector<std::optional<Tensor>> seeds{std::nullopt, Tensor{0.0f, 1.0f}};
  Grad open = tape.gradient(std::vector{y, y}, x, GradientOptions{.output_gradients = seeds});
  EXPECT_EQ(open.value().to_vector<float>(), (std::vector{2.0f, 8.0f}));
}

// T-38: zeros, also where what stops it is in a function that a called function calls.
TEST(Tape, ZerosOnRequestThroughNestedFunctions) {
  Variable v(Tensor{1.0, 2.0});
  auto inner = wg::function("inner", [](const Tensor &x) { return stop_gradient(x * x); });
  auto outer = wg::function("outer", [&](const Tensor &x) { return inner(x) * 3.0; });
  GradientTape tape({.persistent = true});
  Tensor y = outer(v);
  Grad none = tape.gradient(y, v);
  EXPECT_NE(none.reason().find("'stop_gradient' (TapeTest.cpp:"), std::string::npos) << none.reason();
  EXPECT_EQ(tape.gradient(y, v, {.unconnected = Unconnected::zero}).value().to_vector<double>(),
            (std::vector{0.0, 0.0}));
}

// T-37, T-38
TEST(Tape, UnconnectedIsNoneOrZeros) {
  Tensor x(1.0f), z{1.0f, 2.0f};
  Variable v(Tensor{1.0f, 2.0f, 3.0f});
  GradientTape tape({.persistent = true});
  tape.watch(x, z, v);
  Tensor y = x * 2.0f;
  Grad none = tape.gradient(y, z);
  EXPECT_FALSE(none);
  EXPECT_NE(none.reason().find("no path"), std::string::npos);
  EXPECT_NE(messageOf([&] { none.value(); }).find("the gradient is None: no path"), std::string::npos);
  std::ostringstream text;
  text << none;
  EXPECT_EQ(text.str().rfind("None: no path", 0), 0u);
  auto [dz, dv] = tape.gradient(y, z, v, GradientOptions{.unconnected = Unconnected::zero});
  EXPECT_EQ(dz.value().to_vector<float>(), (std::vector{0.0f, 0.0f}));
  EXPECT_EQ(dv.value().shape(), Shape{3});
}

// T-42
TEST(Tape, ASecondUseIsAnError) {
  Tensor x(1.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor y = x * x;
  tape.gradient(y, x);
  try {
    tape.gradient(y, x);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    EXPECT_EQ(error.message(),
              "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)");
    EXPECT_EQ(error.remedy(), "make it persistent: GradientTape tape({.persistent = true})");
    EXPECT_NE(error.where().find("TapeTest.cpp:"), std::string::npos);
  }
}

// T-45: gradient inside of the recording scope ends a tape that is not persistent.
TEST(Tape, AskingEndsTheRecording) {
  Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor y = x * x;
  tape.gradient(y, x);
  EXPECT_FALSE(tape.recording());
}

// T-46
TEST(Tape, APersistentTapeRecordsItsOwnGradient) {
  Tensor x(3.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x * x;
  Tensor dy = tape.gradient(y, x).value();
  Tensor d2y = tape.gradient(dy, x).value();
  EXPECT_EQ(d2y.item<double>(), 18.0);
  EXPECT_FALSE(tape.gradient(tape.gradient(y, x, GradientOptions{.record = false}).value(), x));
}

// T-51
TEST(Tape, ConditionsAndIndicesHaveNone) {
  Tensor a{1.0f, 2.0f}, b{3.0f, 4.0f};
  GradientTape tape;
  tape.watch(a, b);
  Tensor y = where(a > 1.5f, a, b);
  auto [da, db] = tape.gradient(y, a, b);
  EXPECT_EQ(da.value().to_vector<float>(), (std::vector{0.0f, 1.0f}));
  EXPECT_EQ(db.value().to_vector<float>(), (std::vector{1.0f, 0.0f}));
  Tensor table{1.0, 2.0, 3.0}, rows{2, 0, 2};
  GradientTape lenient({.persistent = true, .allow_non_differentiable = true});
  lenient.watch(table, rows);
  Tensor taken = gather(table, rows);
  auto [dtable, drows] = lenient.gradient(taken, table, rows);
  EXPECT_EQ(dtable.value().to_vector<double>(), (std::vector{1.0, 0.0, 2.0}));
  EXPECT_NE(drows.reason().find("integer dtype"), std::string::npos) << drows.reason();
}

// T-52: a result that is not used takes no part: not even as zeros, which the infinite slope of its root would spoil.
TEST(Tape, AResultThatIsNotUsedTakesNoPart) {
  auto f = wg::function("f", [](const Tensor &x) { return std::pair(x * x, sqrt(x - 3.0)); });
  Tensor x(3.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  auto [used, unused] = f(x);
  EXPECT_EQ(tape.gradient(used, x).item<double>(), 6.0);
  std::vector<Tensor> parts = split(concat({stack({x, x}), stack({2.0 * x})}, 0), 3);
  EXPECT_EQ(tape.gradient(parts[2], x).item<double>(), 2.0);
}

// T-60, T-61, T-62, T-63
TEST(Tape, RecordingCanPauseAndResume) {
  Tensor x(2.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_NE(messageOf([&] {
              (void)tape.record();
            }).find("Tape is still recording, This can happen if you try to re-enter an already-active tape."),
            std::string::npos);
  Tensor a = x * 3.0f, constant;
  {
    auto pause = tape.stop_recording();
    constant = x * 5.0f;
    EXPECT_NE(
        messageOf([&] { (void)tape.stop_recording(); }).find("Trying to stop recording a tape which is not recording."),
        std::string::npos);
  }
  Tensor y = a * constant;
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 30.0f);
  tape.reset();
  EXPECT_FALSE(tape.gradient(y, x));
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x * x, x).item<float>(), 4.0f);
}

// T-61
TEST(Tape, RecordingAgainGoesOnWhereItWas) {
  Tensor x(3.0), y;
  GradientTape tape({.recording = false});
  tape.watch(x);
  EXPECT_NE(
      messageOf([&] { (void)tape.stop_recording(); }).find("Trying to stop recording a tape which is not recording."),
      std::string::npos);
  {
    auto scope = tape.record();
    y = x * x;
  }
  {
    auto scope = tape.record();
    y = y * x;
  }
  EXPECT_EQ(tape.gradient(y, x).item<double>(), 27.0);
}

// T-64, D-16
TEST(Tape, SeveralTapesSeeTheirOwnPart) {
  Variable w(3.0f);
  GradientTape first, second;
  second.stop();
  Tensor y = w * w;
  first.stop();
  auto again = second.record();
  Tensor z = w * 4.0f;
  EXPECT_EQ(first.gradient(y, w).item<float>() + second.gradient(z, w).item<float>(), 10.0f);
}

// T-65
TEST(Tape, NestedTapesGiveTheSecondDerivative) {
  Tensor x(1.7);
  GradientTape outer;
  outer.watch(x);
  Tensor dy;
  {
    GradientTape inner;
    inner.watch(x);
    Tensor y = x * x * x;
    dy = inner.gradient(y, x).value();
  }
  EXPECT_NEAR(dy.item<double>(), 3 * 1.7 * 1.7, 1e-12);
  EXPECT_NEAR(outer.gradient(dy, x).item<double>(), 6 * 1.7, 1e-12);
}

TEST(Tape, ThirdDerivative) {
  Tensor x(0.8);
  GradientTape a, b, c;
  for (GradientTape *tape : {&a, &b, &c})
    tape->watch(x);
  Tensor first = c.gradient(exp(x * x), x).value();
  Tensor second = b.gradient(first, x).value();
  Tensor third = a.gradient(second, x).value();
  double e = std::exp(0.64), t = 0.8;
  EXPECT_NEAR(third.item<double>(), (12 * t + 8 * t * t * t) * e, 1e-11);
}

// T-65
TEST(Tape, AGradientTakenOutsideOfTheOuterTapeIsNotRecorded) {
  Tensor x(2.0f);
  GradientTape outer, inner;
  outer.watch(x), inner.watch(x);
  Tensor y = x * x;
  outer.stop();
  Tensor dy = inner.gradient(y, x).value();
  EXPECT_FALSE(outer.gradient(dy, x));
}

// T-19
TEST(Tape, OtherThreadsAreNotRecorded) {
  Tensor x(2.0f);
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  std::thread([&] { y = x * x; }).join();
  EXPECT_EQ(tape.size(), 0);
}

// T-43, T-67
TEST(Tape, NothingIsLeftBehind) {
  Tensor x(2.0f);
  auto once = [&] {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = exp(x * x);
    tape.gradient(tape.gradient(y, x).value(), x);
  };
  once();
  size_t before = runtime::Buffer::liveBytes();
  for (int i = 0; i < 10; ++i)
    once();
  EXPECT_EQ(runtime::Buffer::liveBytes(), before);
}

// D-11, C-11, U-01: an empty gradient names the op that stops it, with its line.
// Nothing walks a tape by recursion, in use or when it ends.
TEST(Tape, AMillionOpsNeedNoDeepStack) {
#if defined(__has_feature) && (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
  constexpr int kOps = 100000; // the sanitizers' own costs, not ours
#else
  constexpr int kOps = 1000000;
#endif
  Variable x(1.000001);
  Tensor factor(0.9999999);
  auto record = [&] {
    Tensor y = x.value();
    for (int i = 0; i < kOps; ++i)
      y = i % 2 ? y * factor : y + factor;
    return y;
  };
  auto body = [&] {
    {
      GradientTape unused;
      record();
    }
    Tensor y;
    {
      GradientTape tape;
      y = record();
      EXPECT_NEAR(tape.gradient(y, x).item<double>(), std::pow(0.9999999, kOps / 2), 1e-9);
    }
    // A persistent tape whose end is nobody's last handle.
    auto tape = std::make_unique<GradientTape>(GradientTapeOptions{.persistent = true});
    y = record();
    tape.reset();
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t(8) << 20), 0);
  pthread_t thread;
  auto run = [](void *closure) -> void * {
    (*static_cast<decltype(body) *>(closure))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// T-49
TEST(Tape, ReasonsNameTheOpAndTheLine) {
  Tensor x(2.0f), y(3.0f);
  GradientTape tape({.persistent = true});
  tape.watch(x, y);
  Tensor z = x * stop_gradient(x * y);
  EXPECT_EQ(tape.gradient(z, x).item<float>(), 6.0f);
  Grad g = tape.gradient(z, y);
  EXPECT_FALSE(g);
  EXPECT_NE(g.reason().find("'stop_gradient' (TapeTest.cpp:"), std::string::npos) << g.reason();
  EXPECT_NE(g.reason().find("stops the gradient"), std::string::npos);
  EXPECT_NE(tape.gradient(floor(x), x).reason().find("'floor'"), std::string::npos);
  EXPECT_NE(tape.explain(z, y).find("None, blocked: 'stop_gradient'"), std::string::npos) << tape.explain(z, y);
  EXPECT_NE(tape.gradient(z, Tensor(1.0f)).reason().find("not watched"), std::string::npos);
}

// Every way to an empty gradient names its cause and its place, and the error of value() what to do about it.
TEST(Tape, EveryReasonNamesItsCause) {
  auto reasonOf = [](const Grad &grad, const char *remedy) {
    EXPECT_FALSE(grad);
    EXPECT_NE(messageOf([&] { grad.value(); }).find(remedy), std::string::npos) << messageOf([&] { grad.value(); });
    return grad.reason();
  };
  auto says = [](const std::string &text, std::initializer_list<const char *> parts) {
    for (const char *part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  };
  const char *watch = "watch it before it is used", *explain = "tape.explain(y, x) says where the path ends";
  Tensor x(2.0f), z(3.0f);
  { // watched too late
    GradientTape tape;
    Tensor y = x * x;
    tape.watch(x);
    says(reasonOf(tape.gradient(y, x), watch),
         {"watched too late: the source f32[] was watched (TapeTest.cpp:", "after the target was computed"});
  }
  { // the recording was stopped
    GradientTape tape;
    tape.watch(x);
    tape.stop();
    Tensor y = x * x;
    says(reasonOf(tape.gradient(y, x), explain), {"no path", "(recording was stopped at TapeTest.cpp:"});
  }
  { // or paused on the way
    GradientTape tape;
    tape.watch(x, z);
    Tensor h;
    {
      auto scope = tape.stop_recording();
      h = x * x;
    }
    says(reasonOf(tape.gradient(h * z, x), explain),
         {"no path: no op that the tape recorded reads the source f32[]", "(recording was stopped at TapeTest.cpp:"});
  }
  { // on another tape
    GradientTape outer, inner;
    outer.watch(x);
    inner.watch(z);
    Tensor y = x * z;
    says(reasonOf(inner.gradient(y, x), watch), {"not watched: the source f32[] is on another tape only"});
  }
  { // a variable that is not watched by itself
    Variable v(1.0f);
    GradientTape tape({.watch_accessed_variables = false});
    tape.watch(x);
    says(reasonOf(tape.gradient(x * v, v), watch), {"watch_accessed_variables = false"});
  }
  { // not read
    Variable v(1.0f, {.name = "v"});
    GradientTape tape;
    tape.watch(x);
    says(reasonOf(tape.gradient(x * x, v), watch), {"variable 'v' was not read while the tape recorded"});
  }
  { // assigned on the way
    Variable v(1.0f, {.name = "v"});
    GradientTape tape;
    tape.watch(x);
    v.assign(x * x);
    says(reasonOf(tape.gradient(v * 2.0f, x), explain),
         {"blocked: ", "was assigned to variable 'v'", "an assignment stops the gradient"});
  }
  { // the path ends on the tape
    GradientTape tape;
    tape.watch(x, z);
    Tensor unread = exp(x);
    says(reasonOf(tape.gradient(z * z, x), explain),
         {"no path: the target does not depend on the source: what is computed from it ends at 'exp' (TapeTest.cpp:"});
  }
  { // a called function does not need it
    auto f = wg::function("first", [](const Tensor &a, const Tensor &b) { return std::pair(a * a, b * b); });
    GradientTape tape;
    tape.watch(x, z);
    says(reasonOf(tape.gradient(f(x, z).first, z), explain), {"no path: 'first' (TapeTest.cpp:"});
  }
  { // integers
    Tensor n{1, 2};
    GradientTape tape({.persistent = true});
    tape.watch(x);
    says(reasonOf(tape.gradient(x * x, n), "make it a float"), {"integer dtype: the source i32[2]"});
    says(reasonOf(tape.gradient(cast(x, i32), x), "make it a float"), {"integer dtype: the target is i32[]"});
  }
}

// A view has its operand's memory, as the value of a variable has that of what was assigned to it.
TEST(Tape, AViewOfAVariableIsNoAssignment) {
  Variable v(ones({2, 2})), w(2.0f), u(1.0f);
  GradientTape tape;
  Tensor view = reshape(v, {4}), other = w * 3.0f;
  u.assign(other);
  std::vector<Grad> grads = tape.gradient(Tensor(u) * 1.0f, {v, w});
  EXPECT_NE(grads[0].reason().find("what is computed from it ends at 'reshape'"), std::string::npos)
      << grads[0].reason();
  EXPECT_NE(grads[1].reason().find("was assigned to"), std::string::npos) << grads[1].reason();
}

TEST(Tape, ExplainShowsThePath) {
  Tensor x(2.0f), y(3.0f);
  int calls = 0;
  GradientTape tape({.persistent = true});
  tape.watch(x, y);
  Tensor h = with_gradient_hook(exp(x), [&](const Tensor &) { ++calls; });
  Tensor z = reduce_sum(h * y), other = tanh(y);
  std::string path = tape.explain(z, x);
  size_t at = 0;
  for (const char *part : {"connected: 'exp' (TapeTest.cpp:", " -> 'with_gradient_hook' (TapeTest.cpp:",
                           " -> 'mul' (TapeTest.cpp:", " -> 'reduce_sum' (TapeTest.cpp:"}) {
    size_t next = path.find(part, at);
    EXPECT_NE(next, std::string::npos) << path << "\nlacks " << part;
    at = next == std::string::npos ? at : next;
  }
  EXPECT_EQ(calls, 0); // nothing is computed
  EXPECT_NE(tape.explain(other, x).find("None, no path"), std::string::npos) << tape.explain(other, x);
  EXPECT_NE(tape.explain(other, x).find("ends at 'reduce_sum'"), std::string::npos) << tape.explain(other, x);
  EXPECT_NE(tape.explain(x, x).find("connected: it is the target itself"), std::string::npos) << tape.explain(x, x);
}

// Inside of a trace as well; and nothing of it is in the program.
TEST(Tape, ExplainInATrace) {
  std::string path, none, called;
  auto first = wg::function("first", [](const Tensor &a, const Tensor &b) { return std::pair(a * a, b * b); });
  auto f = wg::function("f", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape({.persistent = true});
    tape.watch(x, y);
    Tensor z = reduce_sum(exp(x) * floor(y));
    path = tape.explain(z, x);
    none = tape.explain(z, y);
    called = tape.gradient(first(x, y).first, y).reason();
    return z;
  });
  ConcreteFunction traced = f.trace(Tensor(1.0f), Tensor(2.0f));
  size_t at = 0;
  for (const char *part :
       {"connected: 'exp' (TapeTest.cpp:", " -> 'mul' (TapeTest.cpp:", " -> 'reduce_sum' (TapeTest.cpp:"}) {
    size_t next = path.find(part, at);
    EXPECT_NE(next, std::string::npos) << path << "\nlacks " << part;
    at = next == std::string::npos ? at : next;
  }
  EXPECT_NE(none.find("None, blocked: 'floor' (TapeTest.cpp:"), std::string::npos) << none;
  EXPECT_NE(called.find("no path: 'first"), std::string::npos) << called;
  EXPECT_NE(called.find("TapeTest.cpp:"), std::string::npos) << called;
  EXPECT_EQ(traced.text(Stage::traced).find("ones_like"), std::string::npos);
}

// D2: one structure, many tapes: the cached program gives the same bits on other values.
TEST(Tape, ARepeatedStructureGivesTheRightValues) {
  for (int i = 1; i < 6; ++i) {
    Tensor x(static_cast<double>(i));
    GradientTape tape;
    tape.watch(x);
    Tensor y = x * x + 2.0 * x;
    EXPECT_EQ(tape.gradient(y, x).item<double>(), 2.0 * i + 2);
  }
  for (int n = 1; n < 5; ++n) { // another length of the same loop is another structure
    Tensor x(2.0);
    GradientTape tape;
    tape.watch(x);
    Tensor y = x;
    for (int i = 1; i < n; ++i)
      y = y * x;
    EXPECT_EQ(tape.gradient(y, x).item<double>(), n * std::pow(2.0, n - 1));
  }
}

// T-47
TEST(Tape, DtypesAndBroadcastsComeBackInTheSourcesShape) {
  Tensor row{1.0, 2.0, 3.0}, scalar(2.0), m{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  GradientTape tape;
  tape.watch(row, scalar, m);
  Tensor y = reduce_sum(m * row * scalar + cast(cast(row, f32), f64));
  auto [dr, ds, dm] = tape.gradient(y, row, scalar, m);
  EXPECT_EQ(dr.value().to_vector<double>(), (std::vector{12.0, 16.0, 20.0}));
  EXPECT_EQ(ds.item<double>(), 46.0);
  EXPECT_EQ(dm.value().to_vector<double>(), (std::vector{2.0, 4.0, 6.0, 2.0, 4.0, 6.0}));
}

/// Loss of a two-layer softmax network.
static Tensor networkLoss(const Tensor &w1, const Tensor &w2, const Tensor &x, const Tensor &labels) {
  return mean(softmax_cross_entropy(matmul(tanh(matmul(x, w1)), w2), labels));
}

// The Hessian-vector product by nested tapes against a central difference of the gradient, and its symmetry.
TEST(Tape, HessianVectorProductOfASoftmaxNetwork) {
  Tensor key = random::key(3);
  auto keys = random::split(key, 5);
  Tensor w1 = random_normal(keys[0], {4, 3}, 0, 0.5, f64), w2 = random_normal(keys[1], {3, 3}, 0, 0.5, f64);
  Tensor x = random_normal(keys[2], {6, 4}, 0, 1, f64), labels{0, 1, 2, 2, 1, 0};
  Tensor u = random_normal(keys[3], {4, 3}, 0, 1, f64), v = random_normal(keys[4], {4, 3}, 0, 1, f64);
  auto gradientAt = [&](const Tensor &w) {
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(networkLoss(w, w2, x, labels), w).value();
  };
  auto product = [&](const Tensor &direction) {
    GradientTape outer;
    outer.watch(w1);
    Tensor along = reduce_sum(gradientAt(w1) * direction);
    return outer.gradient(along, w1).value();
  };
  Tensor hu = product(u), hv = product(v);
  EXPECT_NEAR(reduce_sum(hu * v).item<double>(), reduce_sum(hv * u).item<double>(), 1e-12);
  Tensor numeric = (gradientAt(w1 + 1e-5 * u) - gradientAt(w1 - 1e-5 * u)) / 2e-5;
  EXPECT_LT(reduce_max(abs(numeric - hu)).item<double>(), 1e-8);
  auto traced = function("product", product);
  EXPECT_LT(reduce_max(abs(traced(u) - hu)).item<double>(), 1e-12);
}

// H v of softmax regression is X^T (p z - p sum(p z)) / n with z = X v and p the
// probabilities (Boehning 1992), row by row.
TEST(Tape, HessianVectorProductIsTheAnalyticOne) {
  auto keys = random::split(random::key(5), 3);
  Tensor w = random_normal(keys[0], {4, 3}, 0, 0.5, f64), x = random_normal(keys[1], {6, 4}, 0, 1, f64),
         labels{0, 1, 2, 2, 1, 0};
  Tensor v = random_normal(keys[2], {4, 3}, 0, 1, f64);
  auto product = [&](const Tensor &w, const Tensor &v) {
    GradientTape outer;
    outer.watch(w);
    GradientTape inner;
    inner.watch(w);
    Tensor loss = mean(softmax_cross_entropy(matmul(x, w), labels));
    Tensor along = reduce_sum(inner.gradient(loss, w).value() * v);
    return outer.gradient(along, w).value();
  };
  Tensor p = softmax(matmul(x, w)), z = matmul(x, v);
  Tensor analytic = matmul(transpose(x), p * z - p * reduce_sum(p * z, 1, true)) / 6.0;
  auto traced = function("product", product);
  EXPECT_LT(reduce_max(abs(product(w, v) - analytic)).item<double>(), 1e-12);
  EXPECT_LT(reduce_max(abs(traced(w, v) - analytic)).item<double>(), 1e-12);
}

// What cannot be a target leaves the tape as it was.
TEST(Tape, AnUndefinedTargetDoesNotUseTheTapeUp) {
  Variable w(3.0);
  GradientTape tape;
  Tensor y = w * w;
  EXPECT_THROW(tape.gradient(Tensor(), w), Error);
  EXPECT_EQ(tape.gradient(y, w).value().item<double>(), 6);
}
