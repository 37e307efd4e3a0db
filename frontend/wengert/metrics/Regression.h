// How far are numbers from what was wanted? Sums in f64 over all elements.
#pragma once

#include <wengert/metrics/Metrics.h>

namespace wg::metrics {

/// Mean of |prediction - target|. Shapes: number[...], both the same.
class WENGERT_API MeanAbsoluteError : public Metric {
public:
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error", Where where = Where::current());
  void update(const Located &predictions, const Located &targets) const;
  double result(Where where = Where::current()) const { return ratio(sum_, total_, where); }

private:
  Variable sum_, total_;
};

/// Mean of (prediction - target)^2, and its root. Shapes: number[...], both the same.
class WENGERT_API MeanSquaredError : public Metric {
public:
  explicit MeanSquaredError(std::string name = "mean_squared_error", Where where = Where::current());
  void update(const Located &predictions, const Located &targets) const;
  double result(Where where = Where::current()) const { return ratio(sum_, total_, where); }
  double root(Where where = Where::current()) const;

private:
  Variable sum_, total_;
};

/// 1 - sum (prediction - target)^2 / sum (target - mean of the targets)^2, over all batches (sklearn.metrics.r2_score
/// of one output). The second sum is put together by the batches' means, so it loses no digits where these are large
/// (Chan, Golub and LeVeque 1979). Where all targets are equal it is 1 if nothing differs and 0 otherwise, as there.
/// Shapes: number[...], both the same.
class WENGERT_API R2 : public Metric {
public:
  explicit R2(std::string name = "r2", Where where = Where::current());
  void update(const Located &predictions, const Located &targets) const;
  double result(Where where = Where::current()) const;

private:
  Variable errors_, squares_, mean_, total_;
};

/// exp of the mean of what it is given: cross-entropies, in nats, of words. With a weight, that of each element's.
class WENGERT_API Perplexity : public Metric {
public:
  explicit Perplexity(std::string name = "perplexity", Where where = Where::current());
  /// Shapes: losses number[...]. Errors: a weight that is not finite and more than 0.
  void update(const Located &losses, double weight = 1) const;
  double result(Where where = Where::current()) const;

private:
  Variable total_, weight_;
};

} // namespace wg::metrics
