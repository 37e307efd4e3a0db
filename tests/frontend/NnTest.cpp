// Layers, initialisers, losses, optimisers, weights files: each against numbers worked out here.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

using namespace wg;

static std::string messageOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

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

TEST(NnTest, DenseWithoutOutputsIsAnError) { EXPECT_NE(messageOf([] { nn::Dense(3, 0); }).find("at least one input and one output"), std::string::npos); }

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
  EXPECT_NE(messageOf([&] { sgd.apply(std::vector{Grad::none("why")}, std::vector{p}); }).find("No gradients provided for any variable."), std::string::npos);
  EXPECT_NE(messageOf([&] { sgd.apply(std::vector<Grad>{}, std::vector{p}); }).find("0 gradients for 1 variables"), std::string::npos);
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
  EXPECT_NEAR(optim::clip_by_global_norm({Grad(Tensor{3.0, 0.0}), Grad(Tensor(4.0))}, 1.0).first[1].item<double>(), 0.8, 1e-15);
}

struct SaveTest : testing::Test {
  std::string path = (std::filesystem::temp_directory_path() / ("wengert_save_" + std::to_string(::getpid()) + ".safetensors")).string();
  ~SaveTest() override { std::filesystem::remove(path); }
};

TEST_F(SaveTest, LoadedWeightsAreThoseSaved) {
  nn::Sequential a(nn::Dense(5, 4), nn::Dense(4, 3, {}, {.dtype = f64})), b(nn::Dense(5, 4), nn::Dense(4, 3, {}, {.dtype = f64}));
  save_weights(path, a);
  load_weights(path, b);
  for (size_t i = 0; i < a.variables().size(); ++i)
    EXPECT_EQ(a.variables()[i].value().to_vector<double>(), b.variables()[i].value().to_vector<double>());
}

TEST_F(SaveTest, NothingIsAssignedWhereOneShapeDiffers) {
  Variable a(Tensor{1.0f, 2.0f}), b(Tensor{3.0f}), c(Tensor{0.0f, 0.0f}), d(Tensor{0.0f, 0.0f});
  save_weights(path, {{"a", a}, {"b", b}});
  std::string message = messageOf([&] { load_weights(path, {{"a", c}, {"b", d}}); });
  EXPECT_NE(message.find("`b` is f32[1]"), std::string::npos) << message;
  EXPECT_EQ(c.value().to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_NE(messageOf([&] { load_weights(path, {{"z", c}}); }).find("holds no tensor `z`"), std::string::npos);
  EXPECT_NE(messageOf([&] { load_weights(path + ".missing", {{"z", c}}); }).find(".missing"), std::string::npos);
  EXPECT_NE(messageOf([&] { save_weights(path, {{"a", a}, {"a", b}}); }).find("two variables are named `a`"), std::string::npos);
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
        EXPECT_NE(error.message().find("out of range for an axis of size 3"), std::string::npos) << error.what();
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
