// Random programs with bodies (RandomBodies.h): conditions, loops, variables, calls and derivatives within one another.
// As plain C++, interpreted and compiled they have the same values and leave the same variables; their gradients are
// those of differences, forward mode fits to reverse mode, lanes are a loop's turns, and a call that fails changes
// nothing. WENGERT_RANDOM_PROGRAMS and WENGERT_RANDOM_SEED as in tests/agreement/RandomRun.h.
#include "tests/frontend/RandomBodiesChecks.h"

#include <iostream>
#include <unistd.h>

namespace wg::tests {

void Checks::all() {
  uint64_t seed = program_.seed;
  plain_.notes = &notes_;
  try {
    expected_ = plain_(inputs_);
  } catch (const Error &error) {
    plain_.notes = nullptr;
    EXPECT_TRUE(program_.mayFail) << "the plain run fails: " << error.what();
    tally("programs that fail");
    return failing(error);
  }
  plain_.notes = nullptr;
  state_ = plain_.state();
  plain_.reset();
  if (!(notes_.largest < 1e8)) {
    tally("programs with large numbers");
    return;
  }
  close_ = notes_.margin < (program_.dtype == f64 ? 1e-8 : 1e-3);
  amplified_ = amplifies(joined(expected_, state_), [](const BodyRun &run, const Tensors &x) {
    Tensors results = run(x);
    return joined(results, run.state());
  });
  tally(close_ ? "programs with close choices" : "programs with values compared");
  values();
  if (::testing::Test::HasFailure())
    return;
  if (seed % 5 == 4)
    saved();
  gradients(seed % 3);
  if (::testing::Test::HasFailure() || close_)
    return;
  if (scale_ > 1e6)
    return tally("programs with steep slopes");
  if (seed % 6 == 1)
    gradientsOfOneResult();
  if (seed % 4 == 2 && !program_.mayFail)
    openSizes();
  if (program_.dtype == f64 && notes_.margin > 1e-4)
    differences();
  forwards(seed % 4 == 1);
  if (seed % 5 == 2 && program_.dtype == f64)
    second(seed % 10 == 2);
  if (seed % 7 == 3)
    jacobians();
  if (seed % 3 == 1 && !program_.draws)
    lanes();
}

void Checks::values() {
  double bound = tolerance("random programs", 1, amplified_);
  Notes notes; // of a second call
  auto compare = [&](const Tensors &expected, const Tensors &state, const Tensors &found, const BodyRun &run,
                     const std::string &what) {
    if (close_)
      return;
    double most = bound * std::max(1.0, notes.largest / notes_.largest);
    expectSame(expected, found, most, what);
    expectSame(state, run.state(), most, what + ", variables");
  };
  Tensors eager = plain_(inputs_);
  compare(expected_, state_, eager, plain_, "eager");
  Tensors again, after;
  plain_.notes = &notes;
  try {
    again = plain_(inputs_);
    after = plain_.state();
  } catch (const Error &) {
    EXPECT_TRUE(program_.mayFail); // the variables are others now
  }
  plain_.notes = nullptr;
  bool isAgain = !after.empty() && notes.margin > (program_.dtype == f64 ? 1e-8 : 1e-3) && notes.largest < 1e8;
  for (bool interpret : {true, false}) {
    BodyRun run(program_, interpret);
    auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
    std::string how = interpret ? "interpreted" : "compiled";
    Tensors first = f(inputs_);
    compare(expected_, state_, first, run, how);
    if (after.empty())
      expectFailsAndKeeps([&] { f(inputs_); }, run, how + ", called again");
    if (!isAgain)
      continue;
    if (program_.seed % 4 == 2) {
      auto outer = function("outer", [&](const Tensors &x) { return f(x); }, {.interpret = interpret});
      compare(again, after, outer(inputs_), run, how + ", called again by another function");
    } else {
      compare(again, after, f(inputs_), run, how + ", called again");
    }
    if (!close_)
      expectSame(expected_, first, bound, how + ", after another call");
    aliased(f, run, how);
  }
  plain_.reset();
}

void Checks::gradients(uint64_t way) {
  if (way == 0 && program_.seed % 2 && program_.assigns && !program_.mayFail)
    twice();
  grads_ = gradientsOf([&](const Tensors &x) { return plain_(x); }, plain_, inputs_);
  plain_.reset();
  scale_ = largestOf(valuesOf(grads_));
  moreAmplified_ = amplifies(valuesOf(grads_), [](const BodyRun &run, const Tensors &x) {
    return valuesOf(gradientsOf([&](const Tensors &y) { return run(y); }, run, x));
  });
  double bound = tolerance("gradients of random programs", scale_, moreAmplified_);
  for (bool interpret : {true, false}) {
    std::string how = interpret ? "interpreted" : "compiled";
    FunctionOptions options{.interpret = interpret};
    BodyRun run(program_, interpret);
    Program direct = [&](const Tensors &x) { return run(x); };
    auto called = function("bodies", direct, options);
    Program call = [&](const Tensors &x) { return called(x); };
    Grads found;
    if (way == 0) {
      found = gradientsOf(call, run, inputs_);
      how += " call under an eager tape";
    } else {
      auto f = function(
          "gradients", [&](const Tensors &x) { return gradientsOf(way == 1 ? direct : call, run, x); }, options);
      found = f(inputs_);
      how += way == 1 ? " gradient" : " gradient of a call";
    }
    if (close_)
      continue;
    expectSameGradients(grads_, found, bound, how);
    expectSame(state_, run.state(), tolerance("random programs", 1, amplified_), how + ", variables");
  }
  tally("gradients compared");
}

void Checks::failing(const Error &wanted) {
  plain_.reset();
  if (program_.functions.empty())
    EXPECT_THROW(plain_(inputs_), Error) << "eager";
  for (bool interpret : {true, false})
    for (bool gradient : {false, true}) {
      BodyRun run(program_, interpret);
      Program direct = [&](const Tensors &x) { return run(x); };
      auto f = function("bodies", direct, {.interpret = interpret});
      auto g = function("gradients", [&](const Tensors &x) { return gradientsOf(direct, run, x); },
                        {.interpret = interpret});
      std::string how = std::string(interpret ? "interpreted" : "compiled") + (gradient ? " gradient" : "");
      std::string message = expectFailsAndKeeps([&] { gradient ? (void)g(inputs_) : (void)f(inputs_); }, run, how);
      if (!message.empty())
        tally(message == wanted.message() ? "failures with the message" : "failures with another message");
    }
}

std::string Checks::expectFailsAndKeeps(const std::function<void()> &f, const BodyRun &run, const std::string &how) {
  Tensors before = run.state();
  try {
    f();
    tally("failures of what nobody reads");
    return "";
  } catch (const Error &error) {
    Tensors after = run.state();
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_EQ(before[i].to_vector<double>(), after[i].to_vector<double>()) << how << ", variable " << i;
    tally("failing calls that leave the variables");
    return error.message();
  }
}

TEST(RandomBodies, AllWaysGiveTheSame) {
  forSeeds(300, {.check =
                     [](uint64_t seed, const std::set<int> &cuts) {
                       alarm(120); // a loop that does not end is a failure, too
                       BodyProgram program = randomBodies(seed, cuts);
                       try {
                         Checks(program).all();
                       } catch (const std::exception &error) {
                         ADD_FAILURE() << error.what();
                       }
                       alarm(0);
                       if (::testing::Test::HasFailure())
                         std::cerr << toString(program);
                     },
                 .textOf = [](uint64_t seed, const std::set<int> &cuts) { return toString(randomBodies(seed, cuts)); },
                 .stepsOf = [](uint64_t seed) { return randomBodies(seed).numSteps; }});
}

} // namespace wg::tests
