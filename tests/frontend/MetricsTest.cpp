// Each metric against its definition, on data with ties, however the examples are cut into
// batches, eagerly and compiled.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <unistd.h>

using namespace wg;
using wg::tests::messageOf;

namespace {

constexpr int64_t kExamples = 60, kClasses = 4;

/// Scores of few values, so that many are equal, and labels.
struct Scored {
  std::vector<double> scores;
  std::vector<int64_t> labels;
  Tensor x, y;
  Scored(uint32_t seed, DType dtype) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < kExamples * kClasses; ++i)
      scores.push_back(static_cast<double>(random() % 4) / 2 - 1);
    for (int64_t i = 0; i < kExamples; ++i)
      labels.push_back(static_cast<int64_t>(random() % kClasses));
    x = cast(Tensor::from(scores, Shape{kExamples, kClasses}), dtype);
    y = Tensor::from(labels);
  }
  double score(int64_t i, int64_t c) const { return scores[static_cast<size_t>(i * kClasses + c)]; }
  int64_t predicted(int64_t i) const {
    int64_t best = 0;
    for (int64_t c = 1; c < kClasses; ++c)
      if (score(i, c) > score(i, best))
        best = c;
    return best;
  }
};

/// Updates with the examples in three batches, compiled or not.
template <class Metric> void inBatches(const Metric &metric, const Tensor &x, const Tensor &y, bool compiled) {
  auto traced = function("update", [&](const Tensor &x, const Tensor &y) { metric.update(x, y); });
  for (auto [first, limit] : {std::pair<int64_t, int64_t>{0, 20}, {20, 59}, {59, 60}}) {
    Tensor xs = slice(x, {first}, {limit}), ys = slice(y, {first}, {limit});
    compiled ? traced(xs, ys) : metric.update(xs, ys);
  }
}

} // namespace

TEST(MetricsTest, AccuracyCountsHitsOverBatches) {
  for (DType dtype : {f32, f64})
    for (bool compiled : {false, true}) {
      Scored data(1, dtype);
      int hits = 0;
      for (int64_t i = 0; i < kExamples; ++i)
        hits += data.predicted(i) == data.labels[static_cast<size_t>(i)];
      metrics::Accuracy accuracy;
      inBatches(accuracy, data.x, data.y, compiled);
      EXPECT_EQ(accuracy.result(), hits / static_cast<double>(kExamples));
      accuracy.reset();
      inBatches(accuracy, argmax(data.x), cast(data.y, i32), compiled);
      EXPECT_EQ(accuracy.result(), hits / static_cast<double>(kExamples)) << "from classes";
    }
}

TEST(MetricsTest, ResetForgets) {
  metrics::Accuracy accuracy;
  EXPECT_NE(messageOf([&] {
              accuracy.result();
            }).find("accuracy: there is no result: nothing was counted since the last reset"),
            std::string::npos);
  accuracy.update(Tensor{1, 2, 3}, Tensor{1, 2, 0});
  EXPECT_EQ(accuracy.result(), 2.0 / 3);
  accuracy.reset();
  EXPECT_NE(messageOf([&] { accuracy.result(); }), "no error");
  accuracy.update(Tensor{1}, Tensor{uint8_t(0)});
  EXPECT_EQ(accuracy.result(), 0);
}

TEST(MetricsTest, BinaryAccuracyIsAboveTheThreshold) {
  for (bool compiled : {false, true}) {
    metrics::BinaryAccuracy half, logits(0, "logits");
    auto update = function("update", [&](const Tensor &p, const Tensor &y) {
      half.update(p, y);
      logits.update(p, y);
    });
    Tensor p{0.5, 0.7, 0.2, -0.1}, y{0.0, 1.0, 1.0, 0.0};
    if (compiled)
      update(p, y), update(cast(p, f32), y > 0.5);
    else
      half.update(p, y), logits.update(p, y), half.update(cast(p, f32), y > 0.5), logits.update(cast(p, f32), y > 0.5);
    EXPECT_EQ(half.result(), 0.75);
    EXPECT_EQ(logits.result(), 0.75);
  }
}

TEST(MetricsTest, TopKCountsThoseThatScoreHigher) {
  for (DType dtype : {f32, f64})
    for (bool compiled : {false, true})
      for (int64_t k = 1; k <= kClasses; ++k) {
        Scored data(static_cast<uint32_t>(k), dtype);
        int hits = 0;
        for (int64_t i = 0; i < kExamples; ++i) {
          int higher = 0;
          for (int64_t c = 0; c < kClasses; ++c)
            higher += data.score(i, c) > data.score(i, data.labels[static_cast<size_t>(i)]);
          hits += higher < k;
        }
        metrics::TopKAccuracy accuracy(k);
        inBatches(accuracy, data.x, data.y, compiled);
        EXPECT_EQ(accuracy.result(), hits / static_cast<double>(kExamples)) << k;
      }
}

TEST(MetricsTest, TopKOfWhatIsNotFinite) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  auto hit = [](const std::vector<double> &scores, int64_t label, int64_t k) {
    metrics::TopKAccuracy accuracy(k);
    accuracy.update(Tensor::from(scores, Shape{1, static_cast<int64_t>(scores.size())}), Tensor{label});
    return accuracy.result() == 1;
  };
  EXPECT_TRUE(hit({1, -inf, -inf}, 0, 1));
  EXPECT_TRUE(hit({inf, 0, 1}, 0, 1));
  EXPECT_FALSE(hit({inf, 0, 1}, 1, 2));
  EXPECT_FALSE(hit({nan, 0, 1}, 0, 2)) << "the label's own";
  EXPECT_FALSE(hit({nan, 0, 1}, 2, 1)) << "it may be higher";
  EXPECT_TRUE(hit({nan, 0, 1}, 2, 2));
}

TEST(MetricsTest, ConfusionMatrixHasLabelsInRows) {
  for (DType dtype : {f32, f64})
    for (bool compiled : {false, true}) {
      Scored data(5, dtype);
      std::vector<int64_t> expected(kClasses * kClasses);
      for (int64_t i = 0; i < kExamples; ++i)
        ++expected[static_cast<size_t>(data.labels[static_cast<size_t>(i)] * kClasses + data.predicted(i))];
      metrics::ConfusionMatrix matrix(kClasses);
      inBatches(matrix, data.x, data.y, compiled);
      EXPECT_EQ(matrix.result().shape(), (Shape{kClasses, kClasses}));
      EXPECT_EQ(matrix.result().to_vector<int64_t>(), expected);
      matrix.reset();
      EXPECT_EQ(matrix.result().to_vector<int64_t>(), std::vector<int64_t>(kClasses * kClasses));
    }
  // The example of sklearn.metrics.confusion_matrix.
  metrics::ConfusionMatrix matrix(3);
  matrix.update(Tensor{0, 0, 2, 2, 0, 2}, Tensor{2, 0, 2, 2, 0, 1});
  EXPECT_EQ(matrix.result().to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 0, 0, 0, 1, 1, 0, 2}));
}

TEST(MetricsTest, AClassThatIsNoneIsAnError) {
  for (bool compiled : {false, true}) {
    const char *what = compiled ? "out of range for an axis of size 3" : "there are 3 classes";
    metrics::ConfusionMatrix matrix(3);
    metrics::TopKAccuracy top(2);
    auto tracedMatrix = function("matrix", [&](const Tensor &p, const Tensor &y) { matrix.update(p, y); });
    auto tracedTop = function("top", [&](const Tensor &x, const Tensor &y) { top.update(x, y); });
    for (auto [p, y] : {std::pair{0, 3}, {3, 0}, {-1, 2}, {2, -1}})
      EXPECT_NE(messageOf([&] {
                  compiled ? tracedMatrix(Tensor{p}, Tensor{y}) : matrix.update(Tensor{p}, Tensor{y});
                }).find(what),
                std::string::npos);
    EXPECT_EQ(matrix.result().to_vector<int64_t>(), std::vector<int64_t>(9)) << "nothing was counted";
    EXPECT_NE(messageOf([&] {
                compiled ? tracedTop(zeros({1, 3}), Tensor{3}) : top.update(zeros({1, 3}), Tensor{3});
              }).find(what),
              std::string::npos);
  }
}

TEST(MetricsTest, OfOpenSizesAreTraced) {
  metrics::Accuracy accuracy;
  metrics::TopKAccuracy top(2);
  metrics::ConfusionMatrix matrix(kClasses);
  metrics::Mean mean;
  auto update = function("update", [&](const Tensor &x, const Tensor &y) {
    accuracy.update(x, y);
    top.update(x, y);
    matrix.update(x, y);
    mean.update(x);
  });
  Scored data(7, f32);
  ConcreteFunction open = update.trace(TensorSpec{f32, {dynamic, kClasses}}, TensorSpec{i64, {dynamic}});
  open(data.x, data.y);
  metrics::Accuracy other;
  metrics::Mean otherMean;
  other.update(data.x, data.y);
  otherMean.update(data.x);
  EXPECT_EQ(accuracy.result(), other.result());
  EXPECT_EQ(mean.result(), otherMean.result());
  EXPECT_EQ(reduce_sum(matrix.result()).item<int64_t>(), kExamples);
  EXPECT_GE(top.result(), accuracy.result());
}

TEST(MetricsTest, MeanIsOverElementsByWeight) {
  metrics::Mean mean;
  mean.update(Tensor{1.0f, 2.0f, 3.0f});
  mean.update(6.0);
  EXPECT_EQ(mean.result(), 3);
  mean.update(Tensor(0.0), 4);
  EXPECT_EQ(mean.result(), 1.5);
  EXPECT_NE(messageOf([&] { mean.update(1.0, -1); }).find("weight is -1"), std::string::npos);
}

/// The share of pairs, as it is defined.
static double pairCount(const std::vector<double> &scores, const std::vector<int> &labels) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        pairs += 1;
      }
  return won / pairs;
}

TEST(MetricsTest, RocAucIsTheShareOfPairs) {
  std::mt19937 random(11);
  for (uint32_t values : {1u, 2u, 5u, 40u, 100000u})
    for (DType dtype : {f32, f64}) {
      std::vector<double> scores;
      std::vector<int> labels;
      for (int i = 0; i < 300; ++i) {
        labels.push_back(random() % 3 == 0);
        scores.push_back(static_cast<double>(random() % values) + (labels.back() ? values / 4 : 0));
      }
      metrics::RocAuc auc;
      Tensor x = cast(Tensor::from(scores), dtype), y = Tensor::from(labels);
      for (auto [first, limit] : {std::pair<int64_t, int64_t>{0, 7}, {7, 7}, {7, 250}, {250, 300}})
        auc.update(slice(x, {first}, {limit}), slice(y, {first}, {limit}));
      EXPECT_EQ(auc.result(), pairCount(scores, labels)) << values;
      auc.reset();
      auc.update(x, y == 1);
      EXPECT_EQ(auc.result(), pairCount(scores, labels)) << values;
    }
}

TEST(MetricsTest, RocAucOfKnownCases) {
  auto auc = [](const Tensor &scores, const Tensor &labels) {
    metrics::RocAuc auc;
    auc.update(scores, labels);
    return auc.result();
  };
  EXPECT_EQ(auc(Tensor{0.1, 0.4, 0.35, 0.8}, Tensor{0, 0, 1, 1}), 0.75); // the example of sklearn.metrics.roc_auc_score
  EXPECT_EQ(auc(Tensor{1.0f, 2.0f}, Tensor{0, 1}), 1);
  EXPECT_EQ(auc(Tensor{2.0f, 1.0f}, Tensor{0, 1}), 0);
  EXPECT_EQ(auc(Tensor{1.0f, 1.0f, 1.0f}, Tensor{0, 1, 1}), 0.5);
  double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(auc(Tensor{-inf, inf, 0.0, -0.0}, Tensor{0.0, 1.0, 1.0, 0.0}), 3.5 / 4);
}

TEST(MetricsTest, RocAucNeedsBothClassesAndOrder) {
  metrics::RocAuc auc;
  EXPECT_NE(messageOf([&] { auc.result(); }).find("the area is not defined: 0 positive and 0 negative"),
            std::string::npos);
  auc.update(Tensor{1.0, 2.0}, Tensor{1, 1});
  EXPECT_NE(messageOf([&] { auc.result(); }).find("2 positive and 0 negative"), std::string::npos);
  EXPECT_NE(messageOf([&] { auc.update(Tensor{1.0, 2.0}, Tensor{0, 2}); }).find("the label of example 1 is 2"),
            std::string::npos);
  EXPECT_NE(
      messageOf([&] { auc.update(Tensor{1.0, std::nan("")}, Tensor{0, 1}); }).find("the score of example 1 is NaN"),
      std::string::npos);
  EXPECT_NE(
      messageOf([&] { auc.update(Tensor{1.0, 2.0}, Tensor{1}); }).find("the scores are f64[2], the labels i32[1]"),
      std::string::npos);
  EXPECT_NE(messageOf([&] { auc.result(); }).find("2 positive and 0 negative"), std::string::npos)
      << "nothing was kept of what was refused";
  auto traced = function("auc", [&](const Tensor &x) { auc.update(x, x); });
  EXPECT_NE(messageOf([&] { traced(Tensor{1.0}); }).find("a traced function has no scores to keep yet"),
            std::string::npos);
}

TEST(MetricsTest, ShapesThatDoNotFitAreErrors) {
  metrics::Accuracy accuracy;
  metrics::ConfusionMatrix matrix(3);
  Tensor logits = zeros({2, 3});
  uint32_t line = __LINE__ + 1;
  std::string message = messageOf([&] { accuracy.update(logits, Tensor{1}); });
  EXPECT_NE(message.find("accuracy: the predictions are f32[2,3], the labels i32[1]"), std::string::npos) << message;
  EXPECT_NE(message.find("MetricsTest.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_NE(messageOf([&] {
              accuracy.update(zeros({2}), Tensor{1, 0});
            }).find("for probabilities of one class, use metrics::BinaryAccuracy"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { accuracy.update(logits, zeros({2})); }).find("the labels f32[2]"), std::string::npos);
  EXPECT_NE(messageOf([&] {
              matrix.update(Tensor{1, 0}, Tensor{{1, 0}});
            }).find("confusion_matrix: the predictions are i32[2], the labels i32[1,2]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              metrics::BinaryAccuracy().update(zeros({2}), zeros({2, 1}));
            }).find("binary_accuracy: the predictions are f32[2]"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { metrics::TopKAccuracy(0); }).find("k is 0, but must be 1 or more"), std::string::npos);
  EXPECT_NE(messageOf([&] { metrics::ConfusionMatrix(0); }).find("the number of classes is 0"), std::string::npos);
}

TEST(MetricsTest, CountsAreSavedUnderTheMetricsName) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("wengert_metrics_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  metrics::Accuracy a("train_accuracy"), b("train_accuracy");
  EXPECT_EQ(a.named_state()[0].first, "train_accuracy.correct");
  a.update(Tensor{1, 2}, Tensor{1, 0});
  save_weights(path, a.named_state());
  load_weights(path, b.named_state());
  std::filesystem::remove(path);
  b.update(Tensor{1, 2}, Tensor{1, 2});
  EXPECT_EQ(b.result(), 0.75);
}

// ---- Answers of yes or no, numbers, words

TEST(DetectionTest, CountsAreThoseOfALoop) {
  std::mt19937 random(3);
  std::vector<double> scores;
  std::vector<int64_t> labels;
  for (int i = 0; i < 60; ++i) {
    scores.push_back(static_cast<double>(random() % 8) / 8);
    labels.push_back(random() % 2);
  }
  double right = 0, said = 0, labelled = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    said += scores[i] > 0.5, labelled += labels[i] == 1, right += scores[i] > 0.5 && labels[i] == 1;
  Tensor x = Tensor::from(scores), y = Tensor::from(labels);
  for (bool compiled : {false, true})
    for (int64_t batch : {60, 20, 1}) {
      metrics::Precision precision;
      metrics::Recall recall;
      metrics::F1 f1;
      auto body = [&](const Tensor &x, const Tensor &y) {
        precision.update(x, y), recall.update(cast(x, f32), y == 1), f1.update(x, cast(y, f64));
      };
      auto traced = function("update", body);
      for (int64_t i = 0; i < 60; i += batch) {
        Tensor some = x[{wg::slice(i, i + batch)}], known = y[{wg::slice(i, i + batch)}];
        compiled ? traced(some, known) : body(some, known);
      }
      EXPECT_DOUBLE_EQ(precision.result(), right / said);
      EXPECT_DOUBLE_EQ(recall.result(), right / labelled);
      EXPECT_DOUBLE_EQ(f1.result(), 2 * right / (said + labelled));
      EXPECT_DOUBLE_EQ(f1.result(), 2 / (1 / precision.result() + 1 / recall.result()));
    }
  metrics::Precision none;
  EXPECT_NE(messageOf([&] { none.result(); }).find("nothing was counted"), std::string::npos);
  none.update(Tensor{0.1, 0.2}, Tensor{1, 0});
  EXPECT_EQ(none.result(), 0) << "nothing was said to be yes";
  EXPECT_EQ(none.named_state()[0].first, "precision.right");
  EXPECT_NE(messageOf([&] { none.update(Tensor{0.1, 0.2}, Tensor{1}); }).find("the labels i32[1]"), std::string::npos);
}

TEST(RegressionTest, ErrorsAreThoseOfALoop) {
  std::vector<double> p, t;
  for (int i = 0; i < 60; ++i)
    p.push_back(1e6 + std::sin(i)), t.push_back(1e6 + std::sin(i) + 0.3 * std::cos(3 * i));
  double absolute = 0, squares = 0, mean = 0, spread = 0;
  for (size_t i = 0; i < 60; ++i)
    absolute += std::abs(p[i] - t[i]) / 60, squares += std::pow(p[i] - t[i], 2) / 60, mean += t[i] / 60;
  for (double each : t)
    spread += std::pow(each - mean, 2) / 60;
  Tensor x = Tensor::from(p), y = Tensor::from(t);
  for (bool compiled : {false, true})
    for (int64_t batch : {60, 7, 1}) {
      metrics::MeanAbsoluteError mae;
      metrics::MeanSquaredError mse;
      metrics::R2 r2;
      auto body = [&](const Tensor &x, const Tensor &y) { mae.update(x, y), mse.update(x, y), r2.update(x, y); };
      auto traced = function("update", body);
      for (int64_t i = 0; i < 60; i += batch) {
        Tensor some = x[{wg::slice(i, i + batch)}], known = y[{wg::slice(i, i + batch)}];
        compiled ? traced(some, known) : body(some, known);
      }
      body(zeros({0}, f64), zeros({0}, f64));
      EXPECT_NEAR(mae.result(), absolute, 1e-12);
      EXPECT_NEAR(mse.result(), squares, 1e-12);
      EXPECT_NEAR(mse.root(), std::sqrt(squares), 1e-12);
      EXPECT_NEAR(r2.result(), 1 - squares / spread, 1e-9);
    }
  metrics::R2 constant;
  EXPECT_NE(messageOf([&] { constant.result(); }).find("nothing was counted"), std::string::npos);
  constant.update(Tensor{2.0, 2.0}, Tensor{2.0, 2.0});
  EXPECT_EQ(constant.result(), 1);
  constant.update(Tensor{3.0}, Tensor{2.0});
  EXPECT_EQ(constant.result(), 0);
  metrics::MeanAbsoluteError integers;
  integers.update(Tensor{uint8_t(1), uint8_t(5)}, Tensor{uint8_t(4), uint8_t(5)});
  EXPECT_EQ(integers.result(), 1.5);
}

TEST(RegressionTest, PerplexityIsTheExponentialOfTheMean) {
  metrics::Perplexity perplexity;
  perplexity.update(Tensor{1.0f, 2.0f});
  perplexity.update(Tensor(0.5), 2);
  EXPECT_DOUBLE_EQ(perplexity.result(), std::exp((1 + 2 + 2 * 0.5) / 4));
  EXPECT_NE(messageOf([&] { perplexity.update(Tensor(1.0), 0); }).find("weight is 0"), std::string::npos);
}
