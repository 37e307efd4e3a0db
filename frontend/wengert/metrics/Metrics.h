// Measures of a model over a whole data set, batch by batch: update(predictions, labels) with each batch, result() at
// the end, reset() before the next. Results do not depend on how the examples are cut into batches.
//
// The state is variables (counts, exact up to 2^63), so that update works eagerly and inside of a traced
// function; result() is for eager code. Only RocAuc keeps every score, outside of variables, and is updated
// eagerly. Copies share their state.
//
// Predictions are scores, number[..., classes], of which the largest counts (the first of equals), or classes,
// integer[...]. Labels are integer[...]. Shapes that do not fit are errors; so is a result of no examples.
#pragma once

#include <wengert/nn/Module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace wg::metrics {

/// What the metrics in variables have in common.
class WENGERT_API Metric {
public:
  /// As if nothing had been counted.
  void reset(Where where = Where::current()) const;
  /// Of several ranks that have counted each its own examples: from here on each has the counts of all, until the next
  /// reset. What is counted inside of a data parallel step is that of all shards already.
  void all_reduce(Where where = Where::current()) const;
  /// The counts under the metric's name, `accuracy.correct`, as save_weights and load_weights take them.
  const std::vector<nn::Module::Named> &named_state() const & { return state_; }
  std::vector<nn::Module::Named> named_state() const &&;

protected:
  Metric(std::string name, Where where);
  Metric(const Metric &other);
  Metric &operator=(const Metric &other);
  ~Metric();
  Variable add(const char *name, const Tensor &zero);
  /// Adds to each variable of the state, all or none.
  void count(const std::vector<Tensor> &increments, const Where &where) const;
  /// a / b of two counts; an error if b is 0.
  double ratio(const Variable &a, const Variable &b, const Where &where) const;

private:
  std::string name_;
  Where where_;
  std::vector<nn::Module::Named> state_;
};

/// Mean of all elements of what it is given (of a loss over an epoch, say); with a weight, that of each element's.
class WENGERT_API Mean : public Metric {
public:
  explicit Mean(std::string name = "mean", Where where = Where::current());
  /// Shapes: values number[...]. The sum is kept in f64. Errors: a weight that is not finite and more than 0.
  void update(const Located &values, double weight = 1) const;
  double result(Where where = Where::current()) const { return ratio(total_, weight_, where); }

private:
  Variable total_, weight_;
};

/// Share of the examples whose predicted class is the label (sklearn.metrics.accuracy_score,
/// tf.keras.metrics.SparseCategoricalAccuracy).
class WENGERT_API Accuracy : public Metric {
public:
  explicit Accuracy(std::string name = "accuracy", Where where = Where::current());
  void update(const Located &predictions, const Located &labels) const;
  double result(Where where = Where::current()) const { return ratio(correct_, total_, where); }

private:
  Variable correct_, total_;
};

/// Share of the elements that are above the threshold where the label is 1, and not where it is 0
/// (tf.keras.metrics.BinaryAccuracy). For logits, the threshold is 0. Shapes: predictions float[...], labels number
/// or bool[...] of the same shape.
class WENGERT_API BinaryAccuracy : public Metric {
public:
  explicit BinaryAccuracy(double threshold = 0.5, std::string name = "binary_accuracy", Where where = Where::current());
  void update(const Located &predictions, const Located &labels) const;
  double result(Where where = Where::current()) const { return ratio(correct_, total_, where); }

private:
  double threshold_;
  Variable correct_, total_;
};

/// Share of the examples whose label is among the k highest scores: fewer than k classes score higher. Scores equal to
/// the label's do not count against it, as in tf.math.in_top_k; a NaN does, and a label whose score is NaN is a miss.
/// Errors: k below 1; a label that names no class.
/// Shapes: scores number[..., classes], labels integer[...].
class WENGERT_API TopKAccuracy : public Metric {
public:
  explicit TopKAccuracy(int64_t k = 5, std::string name = "top_k_accuracy", Where where = Where::current());
  void update(const Located &scores, const Located &labels) const;
  double result(Where where = Where::current()) const { return ratio(correct_, total_, where); }

private:
  int64_t k_;
  Variable correct_, total_;
};

/// How many examples of each class were predicted as each: i64[classes, classes], rows are labels and columns
/// predictions, as in sklearn.metrics.confusion_matrix and tf.math.confusion_matrix. Errors: a label or a prediction
/// that names no class; less than one class.
class WENGERT_API ConfusionMatrix : public Metric {
public:
  explicit ConfusionMatrix(int64_t classes, std::string name = "confusion_matrix", Where where = Where::current());
  void update(const Located &predictions, const Located &labels) const;
  /// Zeros where nothing was counted.
  Tensor result(Where where = Where::current()) const { return matrix_.value(where); }

private:
  int64_t classes_;
  Variable matrix_;
};

/// Area under the ROC curve, exactly: the share of the pairs of a positive and a negative example in
/// which the positive one scores higher, pairs of equal scores counting one half (Hanley and McNeil
/// 1982; as sklearn.metrics.roc_auc_score. tf.keras.metrics.AUC approximates it by thresholds). Keeps 9
/// bytes for each example on the heap.
class WENGERT_API RocAuc {
public:
  RocAuc();
  /// Adds scores number[...] and labels of the same shape, 1 (or true) where positive and 0 where negative, or nothing.
  /// Errors: another label; a NaN score; inside of a traced function.
  void update(const Located &scores, const Located &labels) const;
  /// Errors: no positive, or no negative example.
  double result(Where where = Where::current()) const;
  void reset() const;
  /// What was counted, f64[examples] and bool[examples]. To save both and give them to update() of another is to go on.
  Tensor scores(Where where = Where::current()) const;
  Tensor labels(Where where = Where::current()) const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace wg::metrics
