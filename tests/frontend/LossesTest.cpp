// Losses against their formulas in plain C++, eagerly and compiled; and what they are at their edges.
#include "tests/frontend/Support.h"

#include <cmath>
#include <limits>

using namespace wg;
using wg::nn::Reduction;
using wg::tests::expectNear;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Eagerly and compiled, in both dtypes: the loss of two lists of numbers is what `formula` says of each pair.
void checkEach(const std::function<Tensor(const Tensor &, const Tensor &, Reduction)> &loss,
               const std::function<double(double, double)> &formula, const std::vector<double> &a,
               const std::vector<double> &b) {
  for (DType dtype : {f64, f32}) {
    Tensor x = cast(Tensor::from(a), dtype), y = cast(Tensor::from(b), dtype);
    double tolerance = dtype == f64 ? 1e-13 : 2e-6, sum = 0;
    std::vector<double> each;
    for (size_t i = 0; i < a.size(); ++i)
      sum += each.emplace_back(formula(a[i], b[i]));
    auto run = [&](Reduction reduction, bool compiled) {
      auto f = [&](const Tensor &x, const Tensor &y) { return loss(x, y, reduction); };
      return cast(compiled ? function("loss", f)(x, y) : f(x, y), f64);
    };
    for (bool compiled : {false, true}) {
      expectNear(run(Reduction::none, compiled), Tensor::from(each), tolerance);
      expectNear(run(Reduction::sum, compiled), Tensor(sum), tolerance);
      expectNear(run(Reduction::mean, compiled), Tensor(sum / static_cast<double>(a.size())), tolerance);
    }
  }
}

const std::vector<double> kNumbers{-2.5, -0.75, 0.125, 0.5, 1.5, 30}, kTargets{-2, 0.5, 0.125, -1, 3, 0};

double softplusOf(double z) { return std::log1p(std::exp(-std::abs(z))) + std::max(z, 0.0); }

} // namespace

TEST(LossesTest, MeanAbsoluteError) {
  checkEach([](auto &x, auto &y, Reduction r) { return nn::mean_absolute_error(x, y, r); },
            [](double x, double y) { return std::abs(x - y); }, kNumbers, kTargets);
}

TEST(LossesTest, Huber) {
  checkEach([](auto &x, auto &y, Reduction r) { return nn::huber(x, y, 0.8, r); },
            [](double x, double y) {
              double d = std::abs(x - y);
              return d <= 0.8 ? d * d / 2 : 0.8 * (d - 0.4);
            },
            kNumbers, kTargets);
  Tensor far{1e200}; // the square of which is not taken
  GradientTape tape;
  tape.watch(far);
  EXPECT_EQ(tape.gradient(nn::huber(far, 0.0), far).item<double>(), 1);
  EXPECT_TRUE(
      says(messageOf([&] { nn::huber(far, 0.0, 0.0); }), "huber: delta is 0, but must be finite and more than 0"));
}

TEST(LossesTest, LogCosh) {
  checkEach([](auto &x, auto &y, Reduction r) { return nn::log_cosh(x, y, r); },
            [](double x, double y) { return std::log(std::cosh(x - y)); }, kNumbers, kTargets);
  EXPECT_NEAR(nn::log_cosh(Tensor{1000.0}, 0.0).item<double>(), 1000 - std::log(2.0), 1e-12);
  EXPECT_NEAR(nn::log_cosh(Tensor{1e-6}, 0.0).item<double>() / 5e-13, 1, 1e-9) << "no digits are lost near 0";
}

TEST(LossesTest, Hinges) {
  std::vector<double> labels{-1, 1, 1, -1, 1, -1};
  checkEach([](auto &s, auto &y, Reduction r) { return nn::hinge(s, y, r); },
            [](double s, double y) { return std::max(0.0, 1 - y * s); }, kNumbers, labels);
  checkEach([](auto &s, auto &y, Reduction r) { return nn::squared_hinge(s, y, r); },
            [](double s, double y) { return std::pow(std::max(0.0, 1 - y * s), 2); }, kNumbers, labels);
}

TEST(LossesTest, Poisson) {
  std::vector<double> rates{0.5, 1, 2.5, 4, 0.1, 3}, counts{0, 1, 3, 2, 0, 7};
  checkEach([](auto &x, auto &y, Reduction r) { return nn::poisson(x, y, false, r); },
            [](double x, double y) { return x - y * std::log(x); }, rates, counts);
  checkEach([](auto &x, auto &y, Reduction r) { return nn::poisson(x, y, true, r); },
            [](double x, double y) { return std::exp(x) - y * x; }, rates, counts);
  EXPECT_EQ(nn::poisson(Tensor{0.0}, Tensor{0.0}).item<double>(), 0);
}

TEST(LossesTest, BinaryCrossEntropyOfProbabilities) {
  std::vector<double> p{0.1, 0.5, 0.9, 0.25, 0.75, 0.01}, y{0, 1, 1, 0.5, 0.25, 1};
  for (double weight : {1.0, 3.0})
    for (double smoothing : {0.0, 0.2})
      checkEach(
          [&](auto &p, auto &y, Reduction r) {
            return nn::binary_cross_entropy(p, y,
                                            {.reduction = r, .positive_weight = weight, .label_smoothing = smoothing});
          },
          [&](double p, double y) {
            y = (1 - smoothing) * y + smoothing / 2;
            return -(weight * y * std::log(p) + (1 - y) * std::log(1 - p));
          },
          p, y);
}

TEST(LossesTest, ProbabilitiesOf0And1CountAsEpsilonAndTheRest) {
  Tensor p{0.0, 1.0, 0.0, 1.0}, y{0.0, 1.0, 1.0, 0.0};
  GradientTape tape;
  tape.watch(p);
  Tensor losses = nn::binary_cross_entropy(p, y, {.reduction = Reduction::none});
  expectNear(losses, Tensor{1e-7, 1e-7, -std::log(1e-7), -std::log(1e-7)}, 1e-9);
  Tensor slopes = tape.gradient(losses, p).value();
  expectNear(slopes, Tensor{0.0, 0.0, 0.0, 0.0}, 0);
  EXPECT_TRUE(says(messageOf([&] { nn::binary_cross_entropy(p, y, {}, 0.5); }), "epsilon is 0.5"));
  Tensor single{0.0f, 1.0f};
  EXPECT_TRUE(std::isfinite(nn::binary_cross_entropy(single, Tensor{1.0f, 0.0f}).item<float>()));
}

TEST(LossesTest, BinaryCrossEntropyOfLogits) {
  std::vector<double> z{-2.5, -0.75, 0, 0.5, 1.5, 30}, y{0, 1, 1, 0.5, 0.25, 1};
  for (double weight : {1.0, 3.0})
    for (double smoothing : {0.0, 0.2})
      checkEach(
          [&](auto &z, auto &y, Reduction r) {
            return nn::sigmoid_cross_entropy(z, y,
                                             {.reduction = r, .positive_weight = weight, .label_smoothing = smoothing});
          },
          [&](double z, double y) {
            y = (1 - smoothing) * y + smoothing / 2;
            return weight * y * softplusOf(-z) + (1 - y) * softplusOf(z);
          },
          z, y);
  Tensor sure = nn::sigmoid_cross_entropy(Tensor{-1000.0, 1000.0}, Tensor{1.0, 0.0},
                                          {.reduction = Reduction::none, .positive_weight = 2});
  expectNear(sure, Tensor{2000.0, 1000.0});
}

/// -sum_c w[c] q[c] log softmax(x)[c], by definition.
static std::vector<double> classLosses(const std::vector<std::vector<double>> &x,
                                       const std::vector<std::vector<double>> &q, const std::vector<double> &w,
                                       double smoothing) {
  std::vector<double> losses;
  for (size_t i = 0; i < x.size(); ++i) {
    double sum = 0, loss = 0;
    for (double each : x[i])
      sum += std::exp(each);
    for (size_t c = 0; c < x[i].size(); ++c)
      loss -=
          w[c] * ((1 - smoothing) * q[i][c] + smoothing / static_cast<double>(x[i].size())) * (x[i][c] - std::log(sum));
    losses.push_back(loss);
  }
  return losses;
}

TEST(LossesTest, CrossEntropyByDefinition) {
  Tensor x{{0.5, -1.0, 2.0}, {1.5, 0.25, -0.5}, {0.0, 3.0, 1.0}, {1.0, 1.0, 1.0}}, labels{2, 0, 1, 1};
  std::vector<std::vector<double>> rows{{0.5, -1, 2}, {1.5, 0.25, -0.5}, {0, 3, 1}, {1, 1, 1}},
      hot{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 1, 0}}, soft{{0.2, 0.3, 0.5}, {1, 0, 0}, {0, 0.5, 0.5}, {0.1, 0.8, 0.1}};
  Tensor distribution{{0.2, 0.3, 0.5}, {1.0, 0.0, 0.0}, {0.0, 0.5, 0.5}, {0.1, 0.8, 0.1}};
  std::vector<double> weights{0.5, 2, 1.25};
  for (double smoothing : {0.0, 0.1, 1.0})
    for (bool weighted : {false, true}) {
      std::vector<double> w = weighted ? weights : std::vector<double>{1, 1, 1};
      nn::CrossEntropyOptions options{.reduction = Reduction::none,
                                      .label_smoothing = smoothing,
                                      .class_weights = weighted ? Tensor::from(weights) : Tensor()};
      std::vector<double> hard = classLosses(rows, hot, w, smoothing), each = classLosses(rows, soft, w, smoothing);
      for (bool compiled : {false, true}) {
        auto run = [&](const Tensor &y) {
          auto f = [&](const Tensor &x, const Tensor &y) { return nn::cross_entropy(x, y, options); };
          return compiled ? function("loss", f)(x, y) : f(x, y);
        };
        options.reduction = Reduction::none;
        expectNear(run(labels), Tensor::from(hard), 1e-14);
        expectNear(run(distribution), Tensor::from(each), 1e-14);
        expectNear(nn::nll(log_softmax(x), labels, options), Tensor::from(hard), 1e-14);
        options.reduction = Reduction::mean;
        double sum = hard[0] + hard[1] + hard[2] + hard[3], size = w[2] + w[0] + w[1] + w[1];
        expectNear(run(labels), Tensor(sum / size), 1e-14);
        expectNear(run(distribution), Tensor((each[0] + each[1] + each[2] + each[3]) / 4), 1e-14);
      }
    }
  expectNear(nn::cross_entropy(x, labels, {}), nn::cross_entropy(x, labels), 1e-15);
}

TEST(LossesTest, IgnoredExamplesAreNotThere) {
  Tensor x{{0.5, -1.0}, {1.5, 0.25}, {kInf, 3.0}}, labels{1, 0, -100};
  nn::CrossEntropyOptions options{.ignore_index = -100};
  Tensor some = x[{wg::slice(0, 2)}];
  GradientTape tape;
  tape.watch(x);
  Tensor loss = nn::cross_entropy(x, labels, options);
  EXPECT_EQ(loss.item<double>(), nn::cross_entropy(some, Tensor{1, 0}).item<double>());
  options.reduction = Reduction::none;
  EXPECT_EQ(nn::cross_entropy(some, Tensor{-100, 0}, options)[0].item<double>(), 0);
  // All of them: the mean of nothing is 0, and so is its gradient.
  options.reduction = Reduction::mean;
  for (bool compiled : {false, true}) {
    auto f = [&](const Tensor &x) { return nn::cross_entropy(x, Tensor{-100, -100}, options); };
    auto [value, slope] = compiled ? function("loss", value_and_grad(f))(some) : value_and_grad(f)(some);
    EXPECT_EQ(value.item<double>(), 0);
    expectNear(slope.value(), zeros({2, 2}, f64), 0);
  }
}

TEST(LossesTest, MaskedClassesHaveNoTerm) {
  Tensor x{{0.5, -kInf, 2.0}};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor hard = nn::cross_entropy(x, Tensor{2}, {.class_weights = Tensor{1.0, 2.0, 3.0}}),
         soft = nn::cross_entropy(x, Tensor{{0.5, 0.0, 0.5}}, {});
  EXPECT_NEAR(hard.item<double>(), std::log1p(std::exp(-1.5)), 1e-15);
  EXPECT_NEAR(soft.item<double>(), std::log1p(std::exp(-1.5)) + 0.75, 1e-15);
  for (const Tensor &loss : {hard, soft})
    EXPECT_FALSE(reduce_any(is_nan(tape.gradient(loss, x).value())).item<bool>());
  EXPECT_EQ(nn::nll(Tensor{{-0.5, -kInf}}, Tensor{0}).item<double>(), 0.5);
}

TEST(LossesTest, NothingHasTheMean0) {
  Tensor none = zeros({0}, f64);
  EXPECT_EQ(nn::mean_absolute_error(none, none).item<double>(), 0);
  EXPECT_EQ(nn::sigmoid_cross_entropy(none, none).item<double>(), 0);
  EXPECT_EQ(nn::cross_entropy(zeros({0, 3}), zeros({0}, i64)).item<double>(), 0);
  auto open = function("open", [](const Tensor &x) { return nn::mean_absolute_error(x, 1.0); });
  open.trace(TensorSpec{f64, {dynamic}});
  EXPECT_EQ(open(none).item<double>(), 0);
  EXPECT_EQ(open(Tensor{3.0, 4.0}).item<double>(), 2.5);
  EXPECT_EQ(open.trace_count(), 1);
}

TEST(LossesTest, DivergenceOfDistributions) {
  Tensor q{{0.2, 0.3, 0.5}, {0.1, 0.9, 0.0}}, p{{0.25, 0.25, 0.5}, {1.0, 0.0, 0.0}};
  double first = 0.25 * std::log(0.25 / 0.2) + 0.25 * std::log(0.25 / 0.3), second = std::log(10);
  expectNear(nn::kl_divergence(q, p, Reduction::none), Tensor{first, second}, 1e-15);
  EXPECT_NEAR(nn::kl_divergence(q, p).item<double>(), (first + second) / 2, 1e-15);
  EXPECT_EQ(nn::kl_divergence(Tensor{0.0, 1.0}, Tensor{0.5, 0.5}).item<double>(), kInf);
  GradientTape tape;
  tape.watch(q, p);
  auto [dq, dp] = tape.gradient(nn::kl_divergence(q, p, Reduction::sum), {q, p});
  expectNear(dq.value(), Tensor{{-1.25, -0.25 / 0.3, -1.0}, {-10.0, 0.0, 0.0}});
  EXPECT_FALSE(reduce_any(is_nan(dp.value())).item<bool>());
  EXPECT_TRUE(
      says(messageOf([] { nn::kl_divergence(Tensor(1.0), Tensor(1.0)); }), "the prediction is the scalar f64[]"));
}

TEST(LossesTest, CosineOfAnAngle) {
  Tensor a{{3.0, 4.0}, {1.0, 0.0}, {0.0, 0.0}}, b{{4.0, 3.0}, {-2.0, 0.0}, {1.0, 2.0}};
  GradientTape tape;
  tape.watch(a);
  Tensor cosines = nn::cosine_similarity(a, b);
  expectNear(cosines, Tensor{24.0 / 25, -1.0, 0.0}, 1e-15);
  expectNear(nn::cosine_similarity_loss(a, b, Reduction::none), Tensor{1.0 / 25, 2.0, 1.0}, 1e-15);
  expectNear(nn::cosine_similarity(a, Tensor{0.0, 1.0}, 1), Tensor{0.8, 0.0, 0.0}, 1e-15);
  expectNear(nn::cosine_similarity(a, b, 0), nn::cosine_similarity(transpose(a), transpose(b)), 1e-15);
  Tensor slope = tape.gradient(cosines, a).value();
  expectNear(slope[2], Tensor{0.0, 0.0}, 0);
  EXPECT_NEAR(nn::cosine_similarity(Tensor{1e15f, 0.0f}, Tensor{1e15f, 1e15f}, 0).item<float>(), std::sqrt(0.5), 1e-6)
      << "the product of the squares is no f32";
}

TEST(LossesTest, WhatDoesNotFitIsAnError) {
  Tensor x = zeros({2, 3}), labels{0, 1};
  EXPECT_TRUE(
      says(messageOf([&] { nn::huber(x, zeros({2, 1})); }), "huber: the prediction is f32[2,3], the target f32[2,1]"));
  EXPECT_TRUE(says(messageOf([&] { nn::hinge(x, zeros({2, 3}, f64)); }), "dtypes differ"));
  EXPECT_TRUE(
      says(messageOf([&] { nn::cross_entropy(x, Tensor{0, 3}, {}); }), "a label is 3, and there are 3 classes"));
  EXPECT_TRUE(says(messageOf([&] { nn::cross_entropy(x, Tensor{0}, {}); }), "logits are f32[2,3], labels i32[1]"));
  EXPECT_TRUE(says(messageOf([&] { nn::cross_entropy(x, labels, {.label_smoothing = 1.5}); }),
                   "label_smoothing is 1.5, but must be in [0, 1]"));
  EXPECT_TRUE(says(messageOf([&] { nn::cross_entropy(x, labels, {.class_weights = ones({2})}); }),
                   "the class_weights are f32[2], for logits f32[2,3]"));
  EXPECT_TRUE(says(messageOf([&] { nn::cross_entropy(x, x, {.ignore_index = 0}); }), "an ignore_index is given"));
  EXPECT_TRUE(
      says(messageOf([&] { nn::sigmoid_cross_entropy(x, x, {.positive_weight = -1}); }), "positive_weight is -1"));
  uint32_t line = __LINE__ + 1;
  EXPECT_TRUE(says(messageOf([&] { nn::log_cosh(x, Tensor{1, 2, 3}); }), "LossesTest.cpp:" + std::to_string(line)));
}
