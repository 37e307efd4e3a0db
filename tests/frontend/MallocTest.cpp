// A compiled train step asks the system for no memory: the C library's allocator is counted in front of the real one.
#include "tests/frontend/Allocator.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

namespace wg {
namespace {

using tests::allocator::calls;
using tests::allocator::counting;

TEST(Malloc, AThousandTrainStepsCallItNever) {
#ifdef WENGERT_SANITIZED
  GTEST_SKIP() << "skipped: the sanitizer owns the allocator";
#else
  nn::Sequential model(nn::Dense(64, 32, [](const Tensor &x) { return relu(x); }), nn::Dense(32, 10));
  optim::Adam adam(0.001);
  std::vector<Variable> variables = model.trainable_variables();
  auto step = function("train_step", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = mean(softmax_cross_entropy(model(x), y));
    adam.apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  Tensor x = random_uniform(random::key(3), Shape{32, 64}), y = cast(arange(32), i32) % 10;
  counting = true;
  float first = step(x, y).item<float>();
  EXPECT_GT(calls, 0) << "tracing and compiling do call it: it is counted";
  counting = false;
  for (int i = 0; i < 10; ++i)
    step(x, y);
  calls = 0;
  counting = true;
  for (int i = 0; i < 1000; ++i)
    step(x, y);
  counting = false;
  EXPECT_EQ(calls, 0);
  EXPECT_LT(step(x, y).item<float>(), first);
#endif
}

TEST(Malloc, ATriangularSolveCallsItNever) {
#ifdef WENGERT_SANITIZED
  GTEST_SKIP() << "skipped: the sanitizer owns the allocator";
#else
  Tensor a = eye(33, {}, f32) + random_uniform(random::key(1), Shape{33, 33}), b = ones({33, 20});
  auto solve = function("solve", [](const Tensor &a, const Tensor &b) { return triangular_solve(a, b); });
  for (bool compiled : {true, false}) {
    auto run = [&] { return compiled ? solve(a, b) : triangular_solve(a, b); };
    for (int i = 0; i < 10; ++i)
      run();
    calls = 0;
    counting = true;
    for (int i = 0; i < 100; ++i)
      run();
    counting = false;
    EXPECT_EQ(calls, 0) << (compiled ? "compiled" : "eager");
  }
#endif
}

} // namespace
} // namespace wg
