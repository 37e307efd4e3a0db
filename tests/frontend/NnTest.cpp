// Layers, initialisers, losses, optimisers, weights files: each against numbers worked out here.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

TEST(NnTest, DenseIsXwPlusB) {
  nn::Dense layer(2, 3, relu, {.weight = nn::constant(2), .initial_bias = nn::constant(-5)});
  EXPECT_EQ(layer(Tensor{{1.0f, 2.0f}, {0.5f, 0.5f}}).to_vector<float>(), (std::vector<float>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(layer.num_parameters(), 9);
}

TEST(NnTest, SequentialNamesLayersByPlace) {
  nn::Sequential model(nn::Dense(4, 3), relu, nn::Dense(3, 2));
  std::vector<std::string> names;
  for (const auto &[name, variable] : model.named_variables())
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_EQ(model(zeros({5, 4})).shape(), (Shape{5, 2}));
}

TEST(NnTest, GlorotStaysInItsBound) {
  Tensor w = nn::glorot_uniform(3)({50, 70}, f64);
  double bound = std::sqrt(6.0 / 120), largest = reduce_max(abs(w)).item<double>();
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.9 * bound);
  EXPECT_NEAR(mean(w).item<double>(), 0, 0.01);
}

TEST(NnTest, HeNormalHasItsDeviation) {
  Tensor w = nn::he_normal(3)({200, 100}, f64);
  EXPECT_NEAR(std::sqrt(variance(w).item<double>()), std::sqrt(2.0 / 200), 2e-3);
}

TEST(NnTest, SeedMakesTheSameWeights) {
  nn::set_seed(5);
  nn::Dense a(3, 3);
  nn::set_seed(5);
  nn::Dense b(3, 3);
  nn::Dense c(3, 3);
  EXPECT_EQ(a.weight().value().to_vector<float>(), b.weight().value().to_vector<float>());
  EXPECT_NE(b.weight().value().to_vector<float>(), c.weight().value().to_vector<float>());
}

TEST(NnTest, SigmoidCrossEntropyIsStable) {
  Tensor loss = nn::sigmoid_cross_entropy(Tensor{1000.0, -1000.0, 0.0}, Tensor{1.0, 0.0, 1.0});
  EXPECT_NEAR(loss.item<double>(), std::log(2.0) / 3, 1e-15);
  EXPECT_NEAR(nn::sigmoid_cross_entropy(Tensor{1000.0}, Tensor{0.0}).item<double>(), 1000, 1e-12);
}

TEST(NnTest, AccuracyCountsHits) {
  Tensor logits{{1.0f, 2.0f}, {3.0f, 0.0f}, {0.0f, 1.0f}, {0.0f, 1.0f}};
  EXPECT_FLOAT_EQ(nn::accuracy(logits, Tensor{1, 0, 0, 1}).item<float>(), 0.75f);
}

TEST(NnTest, ASharedLayerCountsOnce) {
  nn::Dense shared(3, 3);
  nn::Sequential model(shared, relu, shared, nn::Sequential(shared));
  EXPECT_EQ(model.variables().size(), 2u);
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_EQ(model.num_parameters(), 12);
  ASSERT_EQ(model.named_variables().size(), 2u);
  EXPECT_EQ(model.named_variables()[0].first, "0.weight");
  EXPECT_EQ(model.named_variables()[1].first, "0.bias");
}

TEST(NnTest, DropoutKeepsTheMean) {
  nn::Dropout dropout(0.25, 3);
  Tensor x = ones({10000}, f64);
  EXPECT_TRUE(dropout(x, false).is(x));
  std::vector<double> y = dropout(x, true).to_vector<double>();
  auto zeros = static_cast<double>(std::count(y.begin(), y.end(), 0.0));
  EXPECT_NEAR(zeros / 10000, 0.25, 0.02);
  EXPECT_EQ(static_cast<double>(std::count(y.begin(), y.end(), 1 / 0.75)), 10000 - zeros);
  EXPECT_NE(dropout(x, true).to_vector<double>(), y);
  auto traced = function("drop", [&](const Tensor &x) { return dropout(x, true); });
  EXPECT_NE(traced(x).to_vector<double>(), traced(x).to_vector<double>());
  EXPECT_NE(messageOf([] { nn::Dropout(1.0); }).find("the rate 1.000000 is not in [0, 1)"), std::string::npos);
}

TEST(NnTest, LossesPairElements) {
  Tensor column = zeros({3, 1}), row = zeros({3});
  EXPECT_NE(messageOf([&] {
              mean_squared_error(column, row);
            }).find("mean_squared_error: the prediction is f32[3,1], the target f32[3]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              nn::sigmoid_cross_entropy(row, column);
            }).find("sigmoid_cross_entropy: the prediction is f32[3], the target f32[3,1]"),
            std::string::npos);
  EXPECT_EQ(mean_squared_error(column, 2.0f).item<float>(), 4);
  EXPECT_EQ(mean_squared_error(column, Tensor(2.0f)).item<float>(), 4);
}

TEST(NnTest, AccuracyTakesOneLabelAnExample) {
  Tensor logits{{1.0f, 2.0f}, {3.0f, 0.0f}};
  EXPECT_NE(messageOf([&] {
              nn::accuracy(logits, Tensor{{1}, {0}});
            }).find("the labels have the shape (2, 1), the logits without their last axis (2,)"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { nn::accuracy(logits, Tensor{1}); }), "no error");
  EXPECT_EQ(nn::accuracy(logits, Tensor{uint8_t(1), uint8_t(1)}).item<float>(), 0.5f);
  EXPECT_EQ(nn::cross_entropy(logits, Tensor{uint8_t(1), uint8_t(0)}).item<float>(),
            nn::cross_entropy(logits, Tensor{1, 0}).item<float>());
}

TEST(NnTest, AnInitializerMakesTheShapeItIsAskedFor) {
  nn::DenseOptions options{.weight = [](const Shape &, DType) { return zeros({3, 2}); }};
  uint32_t line = __LINE__ + 1;
  std::string message = messageOf([&] { nn::Dense(2, 3, {}, options); });
  EXPECT_NE(message.find("the initializer of the weight made f32[3,2], asked for f32[2,3]"), std::string::npos)
      << message;
  EXPECT_NE(message.find("NnTest.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_NE(messageOf([] {
              nn::Dense(2, 3, {}, {.initial_bias = [](const Shape &, DType) { return zeros({3}, f64); }});
            }).find("the initializer of the bias made f64[3], asked for f32[3]"),
            std::string::npos);
}

TEST(NnTest, DenseWithoutOutputsIsAnError) {
  EXPECT_NE(messageOf([] { nn::Dense(3, 0); }).find("at least one input and one output"), std::string::npos);
}

/// Adam as the paper writes it, in plain numbers.
TEST(OptimTest, AdamIsAlgorithmOne) {
  Variable p(1.0);
  optim::Adam adam(0.1);
  double expected = 1, m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    double g = 2 * expected;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    expected -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    GradientTape tape;
    Tensor loss = p * p;
    adam.apply(tape.gradient(loss, p), p);
    EXPECT_NEAR(p.item<double>(), expected, 1e-12);
  }
}

TEST(OptimTest, TracedStepsDoNotRetraceAsTheCountGrows) {
  Variable p(Tensor{1.0, 2.0}), q(Tensor{1.0, 2.0});
  optim::Adam eager(0.1), traced(0.1);
  auto step = function("step", [&] {
    GradientTape tape;
    Tensor loss = reduce_sum(q * q);
    traced.apply(tape.gradient(loss, q), q);
    return loss;
  });
  for (int i = 0; i < 4; ++i) {
    GradientTape tape;
    Tensor loss = reduce_sum(p * p);
    eager.apply(tape.gradient(loss, p), p);
    step();
  }
  EXPECT_EQ(step.trace_count(), 1);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(p.value().to_vector<double>()[i], q.value().to_vector<double>()[i], 1e-12);
}

TEST(OptimTest, LearningRateChangesWithoutATrace) {
  Variable p(1.0f);
  optim::SGD sgd(0.5);
  auto step = function("step", [&] {
    GradientTape tape;
    Tensor loss = 1.0f * p;
    sgd.apply(tape.gradient(loss, p), p);
    return loss;
  });
  step();
  EXPECT_FLOAT_EQ(p.item<float>(), 0.5f);
  sgd.set_learning_rate(0.25);
  step();
  EXPECT_FLOAT_EQ(p.item<float>(), 0.25f);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(OptimTest, EmptyListDoesNothing) {
  optim::SGD sgd(1);
  sgd.apply(std::vector<Grad>{}, std::vector<Variable>{});
}

TEST(OptimTest, OneEmptyGradientIsSkippedWithItsReason) {
  Variable p(1.0f, {.name = "p"}), q(1.0f, {.name = "q"});
  optim::SGD sgd(1);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i)
    sgd.apply(std::vector{Grad(Tensor(0.25f)), Grad::none("q is not used")}, std::vector{p, q});
  std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_FLOAT_EQ(p.item<float>(), 0.5f);
  EXPECT_FLOAT_EQ(q.item<float>(), 1.0f);
  EXPECT_NE(warning.find("Gradients do not exist for variables [q]"), std::string::npos) << warning;
  EXPECT_EQ(warning.find("q is not used"), warning.rfind("q is not used")) << "one warning a variable";
}

TEST(OptimTest, NoGradientAtAllIsAnError) {
  Variable p(1.0f);
  optim::SGD sgd(1);
  EXPECT_NE(messageOf([&] {
              sgd.apply(std::vector{Grad::none("why")}, std::vector{p});
            }).find("No gradients provided for any variable."),
            std::string::npos);
  EXPECT_NE(messageOf([&] { sgd.apply(std::vector<Grad>{}, std::vector{p}); }).find("0 gradients for 1 variables"),
            std::string::npos);
}

TEST(OptimTest, SetsInTurnCountTheirOwnSteps) {
  Variable p(1.0), q(1.0), alone(1.0);
  optim::Adam both(0.1), one(0.1);
  for (int i = 0; i < 3; ++i) {
    both.apply(Grad(Tensor(1.0 + i)), p);
    both.apply(Grad(Tensor(5.0)), q);
    one.apply(Grad(Tensor(1.0 + i)), alone);
  }
  EXPECT_EQ(p.item<double>(), alone.item<double>());
}

TEST(OptimTest, ClippingKeepsWhatIsShort) {
  auto [same, norm] = optim::clip_by_global_norm({Grad(Tensor{3.0, 0.0}), Grad::none("x"), Grad(Tensor(4.0))}, 10.0);
  EXPECT_EQ(norm.item<double>(), 5);
  EXPECT_EQ(same[0].value().to_vector<double>(), (std::vector<double>{3, 0}));
  EXPECT_FALSE(same[1]);
  EXPECT_NEAR(optim::clip_by_global_norm({Grad(Tensor{3.0, 0.0}), Grad(Tensor(4.0))}, 1.0).first[1].item<double>(), 0.8,
              1e-15);
}

TEST(OptimTest, ClippingByAnInfiniteNormIsNan) {
  double inf = std::numeric_limits<double>::infinity();
  auto [clipped, norm] = optim::clip_by_global_norm({Grad(Tensor{inf, 1.0}), Grad(Tensor(4.0))}, 1.0);
  EXPECT_EQ(norm.item<double>(), inf);
  EXPECT_TRUE(reduce_all(is_nan(clipped[0].value())).item<bool>());
  EXPECT_TRUE(std::isnan(clipped[1].item<double>()));
  auto traced =
      function("clip", [](const Tensor &g) { return optim::clip_by_global_norm({Grad(g)}, 1.0).first[0].value(); });
  EXPECT_TRUE(reduce_all(is_nan(traced(Tensor{inf, 1.0}))).item<bool>());
}

TEST(OptimTest, AGradientThatDoesNotFitChangesNothing) {
  Variable p(Tensor{1.0f, 2.0f}, {.name = "p"}), q(Tensor{3.0f, 4.0f}, {.name = "q"}), n(Tensor{1, 2}, {.name = "n"});
  optim::Adam adam(0.1);
  adam.apply(Grad(Tensor{1.0f, 1.0f}), p);
  std::vector<float> before = p.value().to_vector<float>();
  size_t slots = adam.slots().size();
  uint32_t line = 0;
  auto refused = [&](const Tensor &second, const Variable &variable) {
    std::string message = messageOf([&] {
      line = __LINE__ + 1;
      adam.apply(std::vector{Grad(Tensor{1.0f, 1.0f}), Grad(second)}, std::vector{p, variable});
    });
    EXPECT_NE(message.find("NnTest.cpp:" + std::to_string(line)), std::string::npos) << message;
    EXPECT_EQ(p.value().to_vector<float>(), before);
    EXPECT_EQ(adam.slots().size(), slots);
    EXPECT_EQ(adam.slots()[0].item<int64_t>(), 1);
    return message;
  };
  EXPECT_NE(refused(Tensor(1.0f), q).find("the gradient of variable 'q' is f32[], the variable f32[2]"),
            std::string::npos);
  EXPECT_NE(refused(Tensor{1.0, 1.0}, q).find("the gradient of variable 'q' is f64[2], the variable f32[2]"),
            std::string::npos);
  EXPECT_NE(refused(Tensor{1, 1}, n).find("variable 'n' is i32[2], and a step changes floats only"), std::string::npos);
  EXPECT_NE(refused(Tensor(1.0f), Variable()).find("it is undefined"), std::string::npos);
}

TEST(OptimTest, HyperparametersLieInTheirRanges) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(messageOf([] { optim::SGD(-0.1); }).find("learning_rate is -0.1, but must be finite and 0 or more"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { optim::SGD{nan}; }).find("learning_rate is nan"), std::string::npos);
  double inf = std::numeric_limits<double>::infinity();
  EXPECT_NE(messageOf([&] { optim::Adam{inf}; }).find("learning_rate is inf, but must be finite and 0 or more"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { optim::SGD(0.1).set_learning_rate(inf); }).find("learning_rate is inf"), std::string::npos);
  EXPECT_NE(messageOf([&] { optim::Adam(0.1, {.epsilon = inf}); }).find("epsilon is inf"), std::string::npos);
  EXPECT_NE(messageOf([&] { optim::clip_by_global_norm({Grad(Tensor(1.0))}, -1.0); }).find("max_norm is -1"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { optim::clip_by_global_norm({Grad(Tensor(1.0))}, nan); }).find("max_norm is nan"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::SGD(0.1).set_learning_rate(-1); }).find("learning_rate is -1"), std::string::npos);
  EXPECT_NE(messageOf([] { optim::Momentum(0.1, -1); }).find("momentum is -1"), std::string::npos);
  EXPECT_NE(messageOf([] { optim::Adam(0.1, {.beta_1 = 1}); }).find("beta_1 is 1, but must be in [0, 1)"),
            std::string::npos);
  EXPECT_NE(messageOf([] { optim::Adam(0.1, {.beta_2 = -0.5}); }).find("beta_2 is -0.5"), std::string::npos);
  std::string message = messageOf([] { optim::Adam(0.1, {.epsilon = -1e-8}); });
  EXPECT_NE(message.find("epsilon is -1e-08, but must be finite and 0 or more"), std::string::npos) << message;
  EXPECT_NE(message.find("NnTest.cpp:"), std::string::npos) << message;
}

TEST(OptimTest, ThreadsShareAnOptimizer) {
  constexpr size_t kThreads = 4, kEach = 60;
  optim::Adam adam(0.1);
  std::vector<Variable> parameters;
  for (size_t i = 0; i < kThreads * kEach; ++i)
    parameters.emplace_back(1.0);
  std::vector<std::thread> threads;
  for (size_t first = 0; first < parameters.size(); first += kEach)
    threads.emplace_back([&, first] {
      for (size_t i = first; i < first + kEach; ++i)
        for (int step = 0; step < 3; ++step)
          adam.apply(Grad(Tensor(1.0)), parameters[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(adam.slots().size(), 3 * parameters.size());
  for (const Variable &parameter : parameters)
    EXPECT_EQ(parameter.item<double>(), parameters[0].item<double>());
}

struct SaveTest : testing::Test {
  std::string path =
      (std::filesystem::temp_directory_path() / ("wengert_save_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  ~SaveTest() override { std::filesystem::remove(path); }
};

TEST_F(SaveTest, LoadedWeightsAreThoseSaved) {
  nn::Sequential a(nn::Dense(5, 4), nn::Dense(4, 3, {}, {.dtype = f64})),
      b(nn::Dense(5, 4), nn::Dense(4, 3, {}, {.dtype = f64}));
  save_weights(path, a);
  load_weights(path, b);
  for (size_t i = 0; i < a.variables().size(); ++i)
    EXPECT_EQ(a.variables()[i].value().to_vector<double>(), b.variables()[i].value().to_vector<double>());
}

/// A model of two layers, both with a `weight`, and its optimiser: what one process has.
struct Training {
  nn::Sequential model;
  optim::Adam adam;
  Training()
      : model(nn::Dense(3, 4, wg::tanh, {.weight = nn::glorot_uniform(1)}),
              nn::Dense(4, 2, {}, {.weight = nn::glorot_uniform(2)})),
        adam(0.01) {}
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      GradientTape tape;
      Tensor loss = mean_squared_error(model(Tensor{{1.0f, -2.0f, 0.5f}}), Tensor{{1.0f, 2.0f}});
      adam.apply(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    }
  }
};

TEST_F(SaveTest, TrainingGoesOnFromWeightsAndSlots) {
  Training whole, first, second;
  whole.steps(8);
  first.steps(5);
  std::string slots = path + ".slots";
  save_weights(path, first.model);
  save_weights(slots, first.adam.named_slots());
  second.adam.build(second.model.trainable_variables());
  load_weights(path, second.model);
  load_weights(slots, second.adam.named_slots());
  std::filesystem::remove(slots);
  second.steps(3);
  for (size_t i = 0; i < whole.model.variables().size(); ++i)
    EXPECT_EQ(whole.model.variables()[i].value().to_vector<float>(),
              second.model.variables()[i].value().to_vector<float>());
  ASSERT_EQ(whole.adam.slots().size(), 9u);
  for (size_t i = 0; i < whole.adam.slots().size(); ++i)
    EXPECT_EQ(whole.adam.slots()[i].value().to_vector<float>(), second.adam.slots()[i].value().to_vector<float>());
  std::set<std::string> names;
  for (const auto &[name, slot] : second.adam.named_slots())
    EXPECT_TRUE(names.insert(name).second) << name;
}

TEST_F(SaveTest, TensorsOfOtherDtypesAreIgnoredUntilAskedFor) {
  std::string header =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[4,6]}})";
  std::ofstream(path, std::ios::binary) << static_cast<char>(header.size()) << std::string(7, '\0') << header
                                        << std::string("\0\0\x80\x3f\x01\x02", 6);
  ASSERT_LT(header.size(), 128u); // one byte of the length
  Variable a(Tensor{0.0f}), b(Tensor{0.0f, 0.0f});
  load_weights(path, {{"a", a}});
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{1}));
  std::string message = messageOf([&] { load_weights(path, {{"b", b}}); });
  EXPECT_NE(message.find("`b` has dtype F8_E4M3"), std::string::npos) << message;
}

TEST_F(SaveTest, NothingIsAssignedWhereOneShapeDiffers) {
  Variable a(Tensor{1.0f, 2.0f}), b(Tensor{3.0f}), c(Tensor{0.0f, 0.0f}), d(Tensor{0.0f, 0.0f});
  save_weights(path, {{"a", a}, {"b", b}});
  std::string message = messageOf([&] { load_weights(path, {{"a", c}, {"b", d}}); });
  EXPECT_NE(message.find("`b` is f32[1]"), std::string::npos) << message;
  EXPECT_EQ(c.value().to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_NE(messageOf([&] { load_weights(path, {{"z", c}}); }).find("holds no tensor `z`"), std::string::npos);
  EXPECT_NE(messageOf([&] { load_weights(path + ".missing", {{"z", c}}); }).find(".missing"), std::string::npos);
  EXPECT_NE(messageOf([&] { save_weights(path, {{"a", a}, {"a", b}}); }).find("two variables are named `a`"),
            std::string::npos);
}

// Averages of a gradient that has become 0 decay to 0 and not into the subnormals, where arithmetic is slow.
TEST(NnTest, OptimizerAveragesEndAtZero) {
  for (DType dtype : {f32, f64}) {
    Variable a(ones({3}, dtype)), b(ones({3}, dtype));
    optim::Adam adam(0.001);
    optim::Momentum momentum(0.001, 0.9);
    auto step = function("step", [&](const Tensor &gradient) {
      adam.apply(Grad(gradient), a);
      momentum.apply(Grad(gradient), b);
    });
    step(full({3}, 1e-3, dtype));
    double smallest = dtype == f32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
    for (int i = 0; i < 7500; ++i)
      step(zeros({3}, dtype));
    for (const auto &slots : {adam.named_slots(), momentum.named_slots()})
      for (const auto &slot : slots)
        if (runtime::isFloat(slot.second.dtype()))
          for (double x : slot.second.value().to_vector<double>())
            EXPECT_TRUE(x == 0 || std::abs(x) >= smallest) << slot.first << ": " << x;
    EXPECT_EQ(momentum.named_slots().back().second.value().to_vector<double>(), std::vector<double>(3, 0));
  }
}

// Without an epsilon even a second moment below the normal numbers sets the size of the step.
TEST(NnTest, AdamStepsByTheRateHoweverSmallTheGradient) {
  Variable a(zeros({2}));
  optim::Adam adam(0.1, {.epsilon = 0});
  for (int i = 1; i <= 5; ++i) {
    adam.apply(Grad(full({2}, 1e-19, f32)), a);
    EXPECT_NEAR(a.value().to_vector<double>()[0], -0.1 * i, 1e-3 * i);
  }
}

TEST(NnTest, AnOptimizerRefusesASpecificationBeforeItChangesAnything) {
  Variable a(1.0f);
  optim::SGD sgd(0.1);
  EXPECT_NE(messageOf([&] {
              sgd.apply(std::vector<Grad>{Grad(Tensor(TensorSpec{f32, {}}))}, std::vector<Variable>{a});
            }).find("specification"),
            std::string::npos);
  EXPECT_TRUE(sgd.named_slots().empty()); // not even a count of steps
}

TEST(NnTest, ALabelThatNamesNoClassIsAnError) {
  auto traced = function("loss", [](const Tensor &x, const Tensor &y) { return nn::cross_entropy(x, y); });
  Tensor logits = zeros({2, 3});
  for (const Tensor &labels : {Tensor{0, 3}, Tensor{-1, 0}}) {
    for (bool compiled : {false, true}) {
      try {
        compiled ? traced(logits, labels) : nn::cross_entropy(logits, labels);
        ADD_FAILURE() << "no error";
      } catch (const Error &error) {
        EXPECT_NE(error.message().find(compiled ? "out of range for an axis of size 3" : "there are 3 classes"),
                  std::string::npos)
            << error.what();
        EXPECT_EQ(error.where().rfind("NnTest.cpp:", 0), 0u) << error.where();
      }
    }
  }
  EXPECT_NEAR(nn::cross_entropy(logits, cast(Tensor{0, 2}, u8)).item<double>(), std::log(3.0), 1e-6);
}

// A class that is masked by -inf takes no part, in value and gradient.
TEST(NnTest, MaskedClassesLeaveTheCrossEntropyFinite) {
  double inf = std::numeric_limits<double>::infinity();
  auto traced = function("loss", [](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    tape.watch(x);
    Tensor loss = softmax_cross_entropy(x, y);
    return std::pair(loss, tape.gradient(loss, x));
  });
  Tensor logits{{-inf, 0.0, 1.0}};
  auto [loss, gradient] = traced(logits, Tensor{2});
  EXPECT_NEAR(loss.item<double>(), std::log1p(std::exp(-1.0)), 1e-12);
  EXPECT_NEAR(softmax_cross_entropy(logits, Tensor{2}).item<double>(), std::log1p(std::exp(-1.0)), 1e-12);
  double p = 1 / (1 + std::exp(1.0));
  std::vector<double> expected{0, p, -p}, got = gradient.value().to_vector<double>();
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-12);
}
