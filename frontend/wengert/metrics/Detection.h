// How good are answers of yes or no? Counts of the examples at one threshold, as all metrics in variables.
#pragma once

#include <wengert/metrics/Metrics.h>

namespace wg::metrics {

/// A prediction above the threshold says yes; the label is 1 (or true), or 0. For logits, the threshold is 0.
/// Shapes: predictions float[...], labels number or bool[...] of the same shape.
class WENGERT_API YesOrNo : public Metric {
public:
  void update(const Located &predictions, const Located &labels) const;

protected:
  YesOrNo(const char *op, double threshold, std::string name, Where where);
  /// times right / (a + b), the share that the metric is, and 0 where that is 0 / 0; an error if nothing was counted.
  double share(double times, const std::vector<Variable> &of, const Where &where) const;
  const Variable &said() const { return said_; }
  const Variable &labelled() const { return labelled_; }

private:
  const char *op_;
  double threshold_;
  Variable right_, said_, labelled_, total_; ///< yes and the label too; yes; labels of yes; all
};

/// Share of those said to be yes that are (tf.keras.metrics.Precision); 0 where none was.
class WENGERT_API Precision : public YesOrNo {
public:
  explicit Precision(double threshold = 0.5, std::string name = "precision", Where where = Where::current());
  double result(Where where = Where::current()) const { return share(1, {said()}, where); }
};

/// Share of those that are yes that were said to be (tf.keras.metrics.Recall); 0 where there is none.
class WENGERT_API Recall : public YesOrNo {
public:
  explicit Recall(double threshold = 0.5, std::string name = "recall", Where where = Where::current());
  double result(Where where = Where::current()) const { return share(1, {labelled()}, where); }
};

/// The harmonic mean of both, 2 right / (said + labelled) (sklearn.metrics.f1_score); 0 where there is neither.
class WENGERT_API F1 : public YesOrNo {
public:
  explicit F1(double threshold = 0.5, std::string name = "f1", Where where = Where::current());
  double result(Where where = Where::current()) const { return share(2, {said(), labelled()}, where); }
};

} // namespace wg::metrics
