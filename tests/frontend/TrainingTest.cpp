// A hundred steps of the digits network, eager and compiled: the same losses.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;

/// One network with its optimiser, and its step as a C++ callable.
struct Run {
  nn::Sequential model;
  optim::Adam adam{0.001};
  explicit Run(DType dtype) : model(dense(64, 32, wg::relu, dtype, 1), dense(32, 10, {}, dtype, 2)) {}
  static nn::Dense dense(int64_t in, int64_t out, nn::Activation activation, DType dtype, int64_t seed) {
    return nn::Dense(in, out, activation, {.dtype = dtype, .weight = nn::glorot_uniform(seed)});
  }
  Tensor step(const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = nn::cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return loss;
  }
  std::vector<Variable> state() const {
    std::vector<Variable> all = model.variables();
    all.insert(all.end(), adam.slots().begin(), adam.slots().end());
    return all;
  }
};

static void hundredSteps(DType dtype, bool fromEqualState, double tolerance) {
  Run eager(dtype), traced(dtype);
  auto compiled = function("step", [&](const Tensor &x, const Tensor &y) { return traced.step(x, y); });
  data::Split split = data::digits();
  data::Dataset batches = data::Dataset(cast(split.train.x, dtype), split.train.y).shuffle(1).batch(32, true);
  int steps = 0;
  while (steps < 100)
    for (const auto &[x, y] : batches) {
      double a = eager.step(x, y).item<double>(), b = compiled(x, y).item<double>();
      ASSERT_LE(std::abs(a - b), tolerance * std::abs(a)) << "step " << steps;
      if (fromEqualState) {
        std::vector<Variable> from = eager.state(), to = traced.state();
        ASSERT_EQ(from.size(), to.size());
        for (size_t i = 0; i < from.size(); ++i)
          to[i].assign(from[i]);
      }
      if (++steps == 100)
        break;
    }
  EXPECT_EQ(compiled.trace_count(), 1);
}

TEST(TrainingTest, EachStepFromEqualStateAgreesInF32) { hundredSteps(f32, true, 1e-6); }
TEST(TrainingTest, FreeRunningStepsAgreeInF64) { hundredSteps(f64, false, 1e-9); }
