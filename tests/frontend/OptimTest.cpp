// What belongs to a training beside the step: groups and weight decay, schedules, averages, accumulated gradients,
// early stopping. Each number against plain C++ in f64, eagerly and compiled, in f32 and f64.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <numbers>
#include <unistd.h>

using namespace wg;
using wg::tests::messageOf;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// What is allowed between f32 or f64 and the plain loop, after some steps of numbers near 1.
double near(DType dtype) { return dtype == f64 ? 1e-12 : 2e-6; }

double first(const Variable &variable) { return variable.value().to_vector<double>()[0]; }

/// Calls `body(dtype, compiled)` for each way that a step is run.
void eachWay(const std::function<void(DType, bool)> &body) {
  for (DType dtype : {f32, f64})
    for (bool compiled : {false, true}) {
      SCOPED_TRACE(std::string(dtype == f32 ? "f32" : "f64") + (compiled ? " compiled" : " eager"));
      body(dtype, compiled);
    }
}

/// A step of `optimizer` by the gradient of sum of p^2 / 2 + 3 p, which is p + 3.
std::function<void()> stepOf(optim::Optimizer &optimizer, const Variable &p, bool compiled) {
  auto step = [&optimizer, p] {
    GradientTape tape;
    Tensor loss = reduce_sum(0.5 * square(p) + 3.0 * p);
    optimizer.apply(tape.gradient(loss, p), p);
  };
  return compiled ? std::function<void()>(function("step", step)) : step;
}

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("wengert_optim_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  ~File() { std::filesystem::remove(path); }
};

} // namespace

// ---- Weight decay and groups

/// Loshchilov and Hutter 2019, algorithm 2, in plain numbers.
TEST(WeightDecayTest, AdamWIsAlgorithmTwo) {
  eachWay([](DType dtype, bool compiled) {
    Variable p(full({3}, 1.5, dtype));
    optim::Adam adam(0.1, {.weight_decay = 0.2});
    auto step = stepOf(adam, p, compiled);
    double expected = 1.5, m = 0, v = 0;
    for (int t = 1; t <= 6; ++t) {
      double g = expected + 3;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      expected -= 0.1 * 0.2 * expected;
      expected -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      step();
      EXPECT_NEAR(first(p), expected, near(dtype));
    }
  });
}

TEST(WeightDecayTest, ThatOfSgdIsThePenalty) {
  eachWay([](DType dtype, bool compiled) {
    Variable p(full({2}, 1.5, dtype));
    optim::SGD sgd(0.1, {.weight_decay = 0.2});
    auto step = stepOf(sgd, p, compiled);
    double expected = 1.5;
    for (int t = 0; t < 5; ++t) {
      expected -= 0.1 * ((expected + 3) + 0.2 * expected);
      step();
      EXPECT_NEAR(first(p), expected, near(dtype));
    }
  });
}

TEST(WeightDecayTest, ThatOfMomentumIsDecoupled) {
  eachWay([](DType dtype, bool compiled) {
    for (bool nesterov : {false, true}) {
      Variable p(full({2}, 1.5, dtype));
      optim::Momentum momentum(0.1, 0.8, nesterov, 0.2);
      auto step = stepOf(momentum, p, compiled);
      double expected = 1.5, v = 0;
      for (int t = 0; t < 5; ++t) {
        double g = expected + 3;
        v = 0.8 * v + g;
        expected -= 0.1 * 0.2 * expected;
        expected -= 0.1 * (nesterov ? g + 0.8 * v : v);
        step();
        EXPECT_NEAR(first(p), expected, near(dtype));
      }
    }
  });
}

TEST(ParameterGroupTest, BiasesDoNotDecay) {
  nn::Dense layer(3, 2, {}, {.initial_bias = nn::constant(1)});
  std::vector<Variable> biases =
      layer.trainable_variables([](const std::string &name, const Variable &) { return name.ends_with("bias"); });
  ASSERT_EQ(biases.size(), 1u);
  EXPECT_TRUE(biases[0].is(layer.bias()));
  optim::SGD sgd(0.5, {.weight_decay = 0.5});
  sgd.add_group(biases, {.weight_decay = 0});
  std::vector<float> before = layer.weight().value().to_vector<float>();
  sgd.apply(std::vector{Grad(zeros({3, 2})), Grad(zeros({2}))}, layer.trainable_variables());
  EXPECT_EQ(layer.bias().value().to_vector<float>(), (std::vector<float>{1, 1}));
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(layer.weight().value().to_vector<float>()[i], 0.75f * before[i]);
}

TEST(ParameterGroupTest, AGroupHasItsOwnRateAndDecay) {
  eachWay([](DType dtype, bool compiled) {
    Variable a(full({2}, 2.0, dtype)), b(full({2}, 2.0, dtype));
    optim::Momentum momentum(0.1, 0.5, false, 0.25);
    momentum.add_group(b, {.learning_rate_factor = 0.1, .weight_decay = 2});
    double ea = 2, eb = 2, va = 0, vb = 0;
    auto stepA = stepOf(momentum, a, compiled), stepB = stepOf(momentum, b, compiled);
    for (int t = 0; t < 4; ++t) {
      va = 0.5 * va + (ea + 3), vb = 0.5 * vb + (eb + 3);
      ea -= 0.1 * 0.25 * ea, eb -= 0.01 * 2 * eb;
      ea -= 0.1 * va, eb -= 0.01 * vb;
      stepA(), stepB();
      EXPECT_NEAR(first(a), ea, near(dtype));
      EXPECT_NEAR(first(b), eb, near(dtype));
    }
  });
}

TEST(ParameterGroupTest, AFactorChangesWithoutATrace) {
  Variable frozen(1.0), free(1.0);
  optim::SGD sgd(0.5);
  optim::ParameterGroup group = sgd.add_group(frozen, {.learning_rate_factor = 0});
  auto step = function(
      "step", [&] { sgd.apply(std::vector{Grad(Tensor(1.0)), Grad(Tensor(1.0))}, std::vector{frozen, free}); });
  step();
  EXPECT_EQ(frozen.item<double>(), 1);
  EXPECT_EQ(free.item<double>(), 0.5);
  group.set_learning_rate_factor(0.5);
  step();
  EXPECT_EQ(frozen.item<double>(), 0.75);
  EXPECT_EQ(free.item<double>(), 0);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(ParameterGroupTest, WhatCannotBeAGroupIsRefusedWhole) {
  Variable a(1.0, {.name = "a"}), b(1.0, {.name = "b"}), n(1, {.name = "n"});
  optim::SGD sgd(0.5);
  sgd.add_group(a, {.weight_decay = 1});
  std::string message = messageOf([&] { sgd.add_group({b, a}, {}); });
  EXPECT_NE(message.find("add_group: variable 'a' is in a group already"), std::string::npos) << message;
  EXPECT_NE(message.find("OptimTest.cpp:"), std::string::npos) << message;
  EXPECT_NE(messageOf([&] { sgd.add_group({b, n}, {}); }).find("variable 'n' is not a float"), std::string::npos);
  sgd.add_group(b, {.learning_rate_factor = 0}); // it is in none yet
  Variable c(1.0, {.name = "c"});
  sgd.apply(Grad(Tensor(1.0)), c);
  EXPECT_NE(messageOf([&] { sgd.add_group(c, {.weight_decay = 1}); }).find("variable 'c' has been stepped or built"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { sgd.add_group(Variable(1.0), {.weight_decay = -1}); }).find("weight_decay is -1"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              sgd.add_group(Variable(1.0), {.learning_rate_factor = kInf});
            }).find("learning_rate_factor is inf"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::Adam(0.1, {.weight_decay = -0.5}); }).find("weight_decay is -0.5"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::Momentum(0.1, 0.9, false, kNan); }).find("weight_decay is nan"), std::string::npos);
}

// ---- Schedules

TEST(ScheduleTest, FormulasAtTheirPoints) {
  auto expect = [](const optim::Schedule &schedule, const std::vector<std::pair<int64_t, double>> &points) {
    auto traced = function("rate", [&](const Tensor &t) { return schedule(t); });
    for (auto [t, rate] : points) {
      EXPECT_NEAR(schedule.at(t), rate, 1e-15) << "step " << t;
      EXPECT_NEAR(traced(Tensor(t)).item<double>(), rate, 1e-15) << "step " << t << " compiled";
    }
    EXPECT_EQ(traced.trace_count(), 1);
  };
  expect(optim::constant(0.3), {{0, 0.3}, {1000, 0.3}});
  expect(optim::step_decay(0.8, 10, 0.5), {{0, 0.8}, {9, 0.8}, {10, 0.4}, {19, 0.4}, {20, 0.2}, {35, 0.1}});
  expect(optim::exponential_decay(0.5, 10, 0.25),
         {{0, 0.5}, {5, 0.25}, {10, 0.125}, {20, 0.03125}, {7, 0.5 * std::pow(0.25, 0.7)}});
  expect(optim::exponential_decay(0.5, 10, 0.25, true), {{9, 0.5}, {10, 0.125}, {19, 0.125}});
  expect(optim::linear_decay(0.5, 10, 0.1), {{0, 0.5}, {5, 0.3}, {10, 0.1}, {50, 0.1}});
  expect(optim::piecewise_constant({3, 7}, {1, 0.5, 0.1}), {{0, 1}, {2, 1}, {3, 0.5}, {6, 0.5}, {7, 0.1}, {100, 0.1}});
  expect(optim::cosine_decay(0.5, 8),
         {{0, 0.5}, {4, 0.25}, {2, 0.25 * (1 + std::numbers::sqrt2 / 2)}, {8, 0}, {100, 0}});
  expect(optim::cosine_decay(0.5, 8, {.end = 0.1, .warmup_steps = 4, .warmup_start = 0.1}),
         {{0, 0.1}, {1, 0.2}, {2, 0.3}, {3, 0.4}, {4, 0.5}, {8, 0.3}, {12, 0.1}, {13, 0.1}});
  expect(optim::warmup(2, optim::step_decay(1, 3, 0.5)), {{0, 0}, {1, 0.5}, {2, 1}, {4, 1}, {5, 0.5}, {8, 0.25}});
  expect(optim::warmup(0, optim::constant(1)), {{0, 1}});
  expect([](const Tensor &t) { return 1.0 / (t + 1.0); }, {{0, 1}, {3, 0.25}});
}

TEST(ScheduleTest, StepsBelow0CountAs0) {
  for (const optim::Schedule &schedule :
       {optim::cosine_decay(0.1, 100), optim::cosine_decay(0.1, 100, {.warmup_steps = 10}),
        optim::linear_decay(0.1, 10), optim::exponential_decay(0.1, 10, 0.5), optim::warmup(5, 0.1),
        optim::piecewise_constant({3}, {0.1, 0.2})})
    for (int64_t step : {-1, -7}) {
      EXPECT_EQ(schedule.at(step), schedule.at(0));
      EXPECT_EQ(schedule(Tensor(step)).item<double>(), schedule.at(0));
    }
}

TEST(ScheduleTest, AnEndIsReachedExactly) {
  EXPECT_EQ(optim::linear_decay(0.3, 7, 0.1).at(7), 0.1);
  EXPECT_EQ(optim::cosine_decay(0.3, 7).at(0), 0.3);
  EXPECT_EQ(optim::cosine_decay(0.3, 7, {.end = 0.1}).at(7), 0.1);
}

TEST(ScheduleTest, AStepTakesTheRateOfItsCount) {
  eachWay([](DType dtype, bool compiled) {
    optim::Schedule schedule = optim::cosine_decay(0.5, 4, {.warmup_steps = 2, .warmup_start = 0.1});
    Variable p(full({}, 4.0, dtype)), q(full({}, 1.0, dtype));
    optim::SGD sgd(schedule);
    EXPECT_EQ(sgd.learning_rate(), schedule.at(0));
    Function<void()> step = function("step", [&] { sgd.apply(Grad(ones({}, dtype)), p); });
    double expected = 4;
    for (int t = 0; t < 8; ++t) {
      expected -= schedule.at(t);
      compiled ? step() : step.original()();
      EXPECT_NEAR(p.item<double>(), expected, near(dtype));
      EXPECT_NEAR(sgd.learning_rate(), schedule.at(t), 1e-15);
    }
    if (compiled)
      EXPECT_EQ(step.trace_count(), 1);
    // Another set of variables is at its own first step.
    sgd.apply(Grad(ones({}, dtype)), q);
    EXPECT_NEAR(q.item<double>(), 0.9, near(dtype));
  });
}

TEST(ScheduleTest, ALoadedOptimizerGoesOnWhereTheScheduleWas) {
  File file;
  auto steps = [](optim::Optimizer &optimizer, const Variable &p, int count) {
    for (int i = 0; i < count; ++i)
      optimizer.apply(Grad(Tensor(1.0)), p);
  };
  Variable whole(0.0, {.name = "p"}), first(0.0, {.name = "p"}), second(0.0, {.name = "p"});
  optim::Schedule schedule = optim::piecewise_constant({2, 5}, {1, 0.25, 0.0625});
  optim::Adam a(schedule), b(schedule), c(schedule);
  steps(a, whole, 7);
  steps(b, first, 3);
  save_weights(file.path, b.named_slots());
  second.assign(first);
  c.build(second);
  load_weights(file.path, c.named_slots());
  steps(c, second, 4);
  EXPECT_EQ(second.item<double>(), whole.item<double>());
}

TEST(ScheduleTest, WhatIsNoScheduleIsAnError) {
  EXPECT_NE(messageOf([] { optim::constant(-1); }).find("schedule: rate is -1, but must be finite and 0 or more"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::exponential_decay(1, 0, 0.5); }).find("steps is 0, but must be 1 or more"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::step_decay(1, 3, kNan); }).find("factor is nan"), std::string::npos);
  EXPECT_NE(messageOf([] { optim::piecewise_constant({3}, {1}); }).find("1 boundaries for 1 rates"), std::string::npos);
  EXPECT_NE(messageOf([] { optim::piecewise_constant({3, 3}, {1, 2, 3}); }).find("boundary 3 does not come after 3"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::warmup(-1, 0.5); }).find("steps is -1, but must be 0 or more"), std::string::npos);
  EXPECT_NE(messageOf([] {
              optim::SGD sgd([](const Tensor &t) { return stack({t, t}); });
            }).find("the schedule returned f64[2]"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::SGD sgd([](const Tensor &t) { return t - 1.0; }); }).find("learning_rate is -1"),
            std::string::npos);
  optim::SGD sgd(optim::linear_decay(0.1, 10));
  EXPECT_NE(messageOf([&] { sgd.set_learning_rate(0.5); }).find("the learning rate follows a schedule"),
            std::string::npos);
}

// ---- Averages

TEST(WeightAverageTest, IsTheSumByItsDefinition) {
  eachWay([](DType dtype, bool compiled) {
    for (bool corrected : {false, true}) {
      Variable p(full({2}, 5.0, dtype), {.name = "p"});
      optim::ExponentialMovingAverage average(p, {.decay = 0.8, .bias_correction = corrected});
      auto body = [&](const Tensor &x) {
        p.assign(x);
        average.update();
      };
      auto traced = function("update", body);
      EXPECT_EQ(average.average(p).to_vector<double>()[0], 5);
      std::vector<double> seen;
      for (int t = 1; t <= 6; ++t) {
        seen.push_back(std::sin(t));
        Tensor x = full({2}, seen.back(), dtype);
        compiled ? traced(x) : body(x);
        double sum = corrected ? 0 : 5 * std::pow(0.8, t);
        for (int i = 1; i <= t; ++i)
          sum += 0.2 * std::pow(0.8, t - i) * seen[static_cast<size_t>(i - 1)];
        if (corrected)
          sum /= 1 - std::pow(0.8, t);
        EXPECT_NEAR(average.average(p).to_vector<double>()[0], sum, near(dtype)) << t;
        EXPECT_NEAR(first(p), seen.back(), 1e-7) << "the weights themselves stay";
      }
    }
  });
}

TEST(WeightAverageTest, DecayOneIsTheMean) {
  Variable p(0.0);
  optim::ExponentialMovingAverage average(p, {.decay = 1, .bias_correction = true});
  for (double x : {1.0, 2.0, 6.0, 7.0}) {
    p.assign(x);
    average.update();
  }
  EXPECT_NEAR(average.average(p).item<double>(), 4, 1e-15);
}

// However the decay is rounded in f32, a constant is its own average.
TEST(WeightAverageTest, TheAverageOfAConstantIsTheConstant) {
  Variable p(0.0f);
  optim::ExponentialMovingAverage average(p, {.decay = 0.9999});
  p.assign(0.3f);
  for (int i = 0; i < 20; ++i)
    average.update();
  EXPECT_NEAR(average.average(p).item<double>(), 0.3 * (1 - std::pow(0.9999, 20)), 1e-9);
  Variable q(0.3f);
  optim::ExponentialMovingAverage constant(q, {.decay = 0.9999});
  for (int i = 0; i < 1000; ++i)
    constant.update();
  EXPECT_EQ(constant.average(q).item<float>(), 0.3f);
}

TEST(WeightAverageTest, SwapsInAndOut) {
  nn::Sequential model(nn::Dense(2, 3), nn::Dense(3, 1));
  optim::ExponentialMovingAverage average(model, {.decay = 0.5});
  auto values = [&] {
    std::vector<std::vector<float>> all;
    for (const Variable &variable : model.variables())
      all.push_back(variable.value().to_vector<float>());
    return all;
  };
  auto predict = function("predict", [&](const Tensor &x) { return model(x); });
  auto raise = function("raise", [&] {
    for (const Variable &variable : model.variables())
      variable.assign_add(1.0f);
    average.update();
  });
  Tensor x = ones({1, 2});
  auto initial = values();
  raise();
  auto trained = values();
  float before = predict(x).item<float>();
  {
    auto swapped = average.scope();
    EXPECT_TRUE(average.swapped());
    for (size_t i = 0; i < initial.size(); ++i)
      for (size_t k = 0; k < initial[i].size(); ++k)
        EXPECT_FLOAT_EQ(values()[i][k], (initial[i][k] + trained[i][k]) / 2);
    EXPECT_NE(predict(x).item<float>(), before);
    EXPECT_FLOAT_EQ(predict(x).item<float>(), model(x).item<float>());
    EXPECT_EQ(average.average(model.variables()[0]).to_vector<float>(), values()[0]);
    EXPECT_NE(messageOf([&] { average.update(); }).find("the averages are swapped in"), std::string::npos);
    EXPECT_NE(messageOf([&] { average.swap_in(); }).find("swapped in already"), std::string::npos);
  }
  EXPECT_EQ(values(), trained);
  EXPECT_EQ(predict(x).item<float>(), before);
  EXPECT_NE(messageOf([&] { average.swap_out(); }).find("are not swapped in"), std::string::npos);
  raise(); // the compiled step goes on with its own buffers
  average.swap_in();
  auto in = values();
  average.swap_out();
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t k = 0; k < in[i].size(); ++k)
      EXPECT_NEAR(in[i][k], 0.25 * initial[i][k] + 0.25 * (initial[i][k] + 1) + 0.5 * (initial[i][k] + 2), 1e-6);
  auto traced = function("swap", [&] { average.swap_in(); });
  EXPECT_NE(messageOf([&] { traced(); }).find("a traced function cannot swap"), std::string::npos);
}

TEST(WeightAverageTest, IsSavedAndLoaded) {
  File file;
  Variable p(1.0, {.name = "p"}), q(1.0, {.name = "p"});
  optim::ExponentialMovingAverage a({p, q}, {.decay = 0.9, .bias_correction = true}),
      b({p, q}, {.decay = 0.9, .bias_correction = true});
  ASSERT_EQ(a.named_state().size(), 3u);
  EXPECT_EQ(a.named_state()[1].first, "p.average");
  EXPECT_EQ(a.named_state()[2].first, "p_1.average");
  for (int i = 0; i < 3; ++i) {
    p.assign_add(1.0);
    a.update();
  }
  save_weights(file.path, a.named_state());
  load_weights(file.path, b.named_state());
  p.assign(10.0);
  a.update();
  b.update();
  EXPECT_EQ(a.average(p).item<double>(), b.average(p).item<double>());
}

TEST(WeightAverageTest, WhatHasNoAverageIsAnError) {
  Variable n(1, {.name = "n"}), p(1.0, {.name = "p"});
  EXPECT_NE(messageOf([&] { optim::ExponentialMovingAverage average(n); }).find("variable 'n' is i32[]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              optim::ExponentialMovingAverage average(p, {.decay = 1});
            }).find("decay is 1, but must be in [0, 1)"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              optim::ExponentialMovingAverage average(p, {.decay = -0.1, .bias_correction = true});
            }).find("decay is -0.1"),
            std::string::npos);
  optim::ExponentialMovingAverage average(p);
  EXPECT_NE(
      messageOf([&] { average.average(Variable(1.0, {.name = "other"})); }).find("variable 'other' is not averaged"),
      std::string::npos);
}

// ---- Accumulated gradients

namespace {

/// A linear model, its loss on some rows of a fixed batch, and a step from one accumulated gradient.
struct Linear {
  DType dtype;
  Variable w, b;
  std::vector<Variable> variables;
  Tensor x, y;
  explicit Linear(DType dtype)
      : dtype(dtype), w(full({3, 1}, 0.5, dtype), {.name = "w"}), b(zeros({1}, dtype), {.name = "b"}), variables{w, b},
        x(random_normal(random::key(1), Shape{8, 3}, 0, 1, dtype)),
        y(random_normal(random::key(2), Shape{8, 1}, 0, 1, dtype)) {}
  std::vector<Grad> gradient(const Tensor &x, const Tensor &y) const {
    GradientTape tape;
    Tensor loss = mean_squared_error(matmul(x, w) + b, y);
    return tape.gradient(loss, variables);
  }
  Tensor rows(const Tensor &of, int64_t first, int64_t limit) const { return slice(of, {first}, {limit}); }
};

} // namespace

TEST(GradientAccumulatorTest, FourMicroBatchesAreOneBatch) {
  eachWay([](DType dtype, bool compiled) {
    Linear whole(dtype), parts(dtype);
    optim::Adam one(0.1), four(0.1);
    optim::GradientAccumulator accumulated(parts.variables);
    auto micro = [&](const Tensor &x, const Tensor &y) { accumulated.add(parts.gradient(x, y)); };
    auto step = [&] { four.apply(accumulated.take_mean(), parts.variables); };
    auto tracedMicro = function("micro", micro);
    auto tracedStep = function("step", step);
    for (int round = 0; round < 3; ++round) {
      one.apply(whole.gradient(whole.x, whole.y), whole.variables);
      for (int64_t i = 0; i < 8; i += 2) {
        Tensor x = parts.rows(parts.x, i, i + 2), y = parts.rows(parts.y, i, i + 2);
        compiled ? tracedMicro(x, y) : micro(x, y);
      }
      EXPECT_EQ(accumulated.weight(), 4);
      compiled ? tracedStep() : step();
      EXPECT_EQ(accumulated.weight(), 0);
      for (size_t v = 0; v < 2; ++v)
        for (size_t k = 0; k < (v ? 1u : 3u); ++k)
          EXPECT_NEAR(parts.variables[v].value().to_vector<double>()[k],
                      whole.variables[v].value().to_vector<double>()[k], dtype == f64 ? 1e-12 : 2e-5);
    }
    if (compiled) {
      EXPECT_EQ(tracedMicro.trace_count(), 1);
      EXPECT_EQ(tracedStep.trace_count(), 1);
    }
  });
}

TEST(GradientAccumulatorTest, ALoopInOneFunctionAndUnequalWeights) {
  for (DType dtype : {f32, f64}) {
    Linear whole(dtype), parts(dtype);
    optim::SGD one(0.1), many(0.1);
    optim::GradientAccumulator accumulated(parts.variables);
    auto step = function("step", [&](const Tensor &x, const Tensor &y) {
      for (auto [first, limit] : {std::pair{0, 3}, {3, 4}, {4, 8}})
        accumulated.add(parts.gradient(parts.rows(x, first, limit), parts.rows(y, first, limit)), limit - first);
      many.apply(accumulated.take_mean(), parts.variables);
    });
    for (int round = 0; round < 3; ++round) {
      one.apply(whole.gradient(whole.x, whole.y), whole.variables);
      step(parts.x, parts.y);
      EXPECT_NEAR(first(parts.w), first(whole.w), near(dtype));
    }
    EXPECT_EQ(accumulated.weight(), 0);
  }
}

TEST(GradientAccumulatorTest, WhatIsMissingStaysMissingWithItsReason) {
  Variable p(1.0, {.name = "p"}), q(Tensor{1.0, 2.0}, {.name = "q"});
  optim::GradientAccumulator accumulated({p, q});
  EXPECT_NE(messageOf([&] { accumulated.mean(); }).find("no gradients were added"), std::string::npos);
  accumulated.add(std::vector{Grad(Tensor(2.0)), Grad::none("q is not used")});
  accumulated.add(std::vector{Grad(Tensor(4.0)), Grad::none("q is not used")});
  std::vector<Grad> mean = accumulated.mean();
  EXPECT_EQ(mean[0].item<double>(), 3);
  EXPECT_FALSE(mean[1]);
  EXPECT_EQ(mean[1].reason(), "q is not used");
  EXPECT_EQ(accumulated.take_sum()[0].item<double>(), 6);
  EXPECT_EQ(accumulated.weight(), 0);
  EXPECT_NE(messageOf([&] {
              accumulated.add(std::vector{Grad(Tensor(1.0)), Grad(Tensor(1.0))});
            }).find("the gradient of variable 'q' is f64[], the variable f64[2]"),
            std::string::npos);
  EXPECT_EQ(accumulated.weight(), 0) << "nothing was added";
  EXPECT_NE(messageOf([&] { accumulated.add(Grad(Tensor(1.0))); }).find("1 gradients for 2 variables"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              accumulated.add(std::vector{Grad(Tensor(1.0)), Grad()}, 0);
            }).find("weight is 0, but must be finite and more than 0"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::GradientAccumulator accumulated(Variable(1)); }).find("is i32[]"), std::string::npos);
}

TEST(GradientAccumulatorTest, IsSavedAndLoadedHalfWay) {
  File file;
  Variable p(1.0, {.name = "p"});
  optim::GradientAccumulator a(p), b(p);
  a.add(Grad(Tensor(2.0)));
  save_weights(file.path, a.named_state());
  load_weights(file.path, b.named_state());
  EXPECT_EQ(b.mean()[0].item<double>(), 2);
  b.add(Grad(Tensor(4.0)));
  EXPECT_EQ(b.mean()[0].item<double>(), 3);
}

// ---- Early stopping

TEST(EarlyStoppingTest, PatienceCountsWhatIsNoImprovement) {
  Variable p(0.0, {.name = "p"});
  optim::EarlyStopping early(p, {.patience = 2, .min_delta = 0.1});
  EXPECT_EQ(early.best(), kInf);
  EXPECT_EQ(early.best_index(), -1);
  EXPECT_NE(messageOf([&] { early.restore_best_weights(); }).find("there is no best value yet"), std::string::npos);
  struct Row {
    double value;
    bool stop, improved;
  };
  int i = 0;
  for (Row row : {Row{1.0, false, true},
                  {0.95, false, false},
                  {0.8, false, true},
                  {0.75, false, false},
                  {kNan, true, false},
                  {0.5, false, true},
                  {0.45, false, false},
                  {0.41, true, false}}) {
    p.assign(static_cast<double>(i));
    EXPECT_EQ(early.update(row.value), row.stop) << i;
    EXPECT_EQ(early.improved(), row.improved) << i;
    ++i;
  }
  EXPECT_EQ(early.best(), 0.5);
  EXPECT_EQ(early.best_index(), 5);
  early.restore_best_weights();
  EXPECT_EQ(p.item<double>(), 5);
}

TEST(EarlyStoppingTest, MoreIsBetterWhereSaid) {
  optim::EarlyStopping early({}, {.mode = optim::Mode::max});
  EXPECT_EQ(early.best(), -kInf);
  EXPECT_FALSE(early.update(0.5f));
  EXPECT_FALSE(early.update(Tensor(0.75)));
  EXPECT_TRUE(early.update(0.75));
  EXPECT_EQ(early.best(), 0.75);
}

// Compiled steps update in place: what was kept is not what they write to.
TEST(EarlyStoppingTest, KeepsTheBestWeightsBesideACompiledStep) {
  for (DType dtype : {f32, f64}) {
    Variable p(zeros({64}, dtype), {.name = "p"});
    optim::EarlyStopping early(p);
    auto step = function("step", [&] { p.assign_add(1.0); });
    for (double loss : {3.0, 1.0, 2.0}) {
      step();
      early.update(loss);
    }
    step();
    EXPECT_EQ(first(p), 4);
    early.restore_best_weights();
    EXPECT_EQ(first(p), 2);
    step();
    EXPECT_EQ(first(p), 3);
    early.restore_best_weights();
    EXPECT_EQ(first(p), 2);
  }
}

TEST(EarlyStoppingTest, IsSavedAndLoaded) {
  File file;
  Variable p(1.0, {.name = "p"});
  optim::EarlyStopping a(p, {.patience = 2}), b(p, {.patience = 2});
  a.update(1.0);
  p.assign(2.0);
  a.update(1.5);
  save_weights(file.path, a.named_state());
  load_weights(file.path, b.named_state());
  EXPECT_TRUE(b.update(1.5));
  b.restore_best_weights();
  EXPECT_EQ(p.item<double>(), 1);
}

TEST(EarlyStoppingTest, OptionsInTheirRanges) {
  EXPECT_NE(
      messageOf([] { optim::EarlyStopping early({}, {.patience = -1}); }).find("patience is -1, but must be 0 or more"),
      std::string::npos);
  EXPECT_NE(messageOf([] { optim::EarlyStopping early({}, {.min_delta = kNan}); }).find("min_delta is nan"),
            std::string::npos);
  optim::EarlyStopping early({});
  EXPECT_NE(messageOf([&] { early.update(Tensor{1.0, 2.0}); }), "no error");
  auto traced = function("stop", [&](const Tensor &x) {
    early.update(x);
    return x;
  });
  EXPECT_NE(messageOf([&] { traced(Tensor(1.0)); }).find("a traced function has no values to compare yet"),
            std::string::npos);
}
