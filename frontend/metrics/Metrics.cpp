// How good are the predictions? What each batch adds to the counts, by ops.
#include "wengert/metrics/Metrics.h"

#include "frontend/ops/Operands.h"
#include "frontend/optim/State.h"
#include "frontend/staging/Shards.h"
#include "wengert/Function.h"

#include <algorithm>
#include <cmath>

namespace wg::metrics {

Metric::Metric(std::string name, Where where) : name_(std::move(name)), where_(where) {}
Metric::Metric(const Metric &) = default;
Metric &Metric::operator=(const Metric &) = default;
Metric::~Metric() = default;
std::vector<nn::Module::Named> Metric::named_state() const && { return state_; }

using detail::raiseOp;
using detail::tensorOf;
using detail::typeOf;

Variable Metric::add(const char *name, const Tensor &zero) {
  std::string full = name_ + "." + name;
  state_.emplace_back(full, Variable(zero, {.name = full, .trainable = false}, where_));
  return state_.back().second;
}

void Metric::reset(Where where) const {
  std::vector<std::pair<Variable, Tensor>> changes;
  for (const auto &[name, variable] : state_)
    changes.emplace_back(variable, zeros(variable.shape(), variable.dtype(), where));
  detail::assignAll(changes, where);
}

void Metric::count(const std::vector<Tensor> &increments, const Where &where) const {
  std::vector<std::pair<Variable, Tensor>> changes;
  for (size_t i = 0; i < state_.size(); ++i) {
    Tensor more = detail::overShards(increments[i], dist::Reduction::sum, where);
    changes.emplace_back(state_[i].second, wg::add(Located(state_[i].second, where), Located(more, where)));
  }
  detail::assignAll(changes, where);
}

void Metric::all_reduce(Where where) const {
  std::vector<std::pair<Variable, Tensor>> changes;
  for (const auto &[name, variable] : state_)
    changes.emplace_back(variable, dist::all_reduce(Located(variable.value(where), where)));
  detail::assignAll(changes, where);
}

double Metric::ratio(const Variable &a, const Variable &b, const Where &where) const {
  double count = b.item<double>(where);
  if (count == 0)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = name_,
                   .message = "there is no result: nothing was counted since the last reset",
                   .remedy = "call update with each batch"},
                  where);
  return a.item<double>(where) / count;
}

/// The number of elements, i64[], of a tensor whose sizes may be open.
static Tensor countOf(const Tensor &x, const Where &at) {
  return reduce_sum(Located(ones_like(Located(cast(Located(x, at), i64), at)), at));
}
/// How many of bool[...] are true, i64[].
static Tensor trueOf(const Tensor &hits, const Where &at) {
  return reduce_sum(Located(cast(Located(hits, at), i64), at));
}

/// Labels as i64; an error unless they are integers of the shape of the predictions, the last axis of scores left out.
static Tensor labelsOf(const char *op, const Tensor &predictions, bool scores, const Located &labels, const Where &at) {
  Tensor y = tensorOf(labels);
  const TensorType &given = typeOf(predictions, at), &type = typeOf(y, at);
  bool fits = runtime::isInteger(type.dtype) && y.rank() == given.shape.rank() - scores;
  for (int axis = 0; fits && axis < y.rank(); ++axis) {
    int64_t a = given.shape.dim(axis), b = type.shape.dim(axis);
    fits = a == b || a == dynamic || b == dynamic;
  }
  if (!fits)
    raiseOp(op, "the predictions are " + toString(given) + ", the labels " + toString(type),
            "give integer labels: one for each row of scores[..., classes], or one for each integer prediction",
            {given, type}, at);
  return cast(Located(y, at), i64);
}

/// The predicted classes, and the labels, both i64[...].
static std::pair<Tensor, Tensor> classesOf(const char *op, const Located &predictions, const Located &labels) {
  const Where &at = predictions.where();
  Tensor p = tensorOf(predictions), y = tensorOf(labels);
  bool scores = typeOf(p, at).shape.rank() == typeOf(y, at).shape.rank() + 1;
  if (!scores && !runtime::isInteger(p.dtype()))
    raiseOp(
        op, "the predictions are " + toString(typeOf(p, at)) + ", the labels " + toString(typeOf(y, at)),
        "give scores[..., classes], or integer classes; for probabilities of one class, use metrics::BinaryAccuracy",
        {typeOf(p, at), typeOf(y, at)}, at);
  Tensor known = labelsOf(op, p, scores, labels, at);
  return {scores ? argmax(Located(p, at)) : cast(Located(p, at), i64), known};
}

Mean::Mean(std::string name, Where where)
    : Metric(std::move(name), where), total_(add("total", Tensor(0.0))), weight_(add("weight", Tensor(0.0))) {}

void Mean::update(const Located &values, double weight) const {
  const Where &at = values.where();
  detail::within("mean", "weight", weight, weight > 0 && std::isfinite(weight), "finite and more than 0", at);
  Tensor x = cast(Located(tensorOf(values), at), f64);
  Tensor sum = reduce_sum(Located(x, at)), size = reduce_sum(Located(ones_like(Located(x, at)), at));
  count({mul(Located(sum, at), Located(weight, at)), mul(Located(size, at), Located(weight, at))}, at);
}

Accuracy::Accuracy(std::string name, Where where)
    : Metric(std::move(name), where), correct_(add("correct", Tensor(int64_t(0)))),
      total_(add("total", Tensor(int64_t(0)))) {}

void Accuracy::update(const Located &predictions, const Located &labels) const {
  const Where &at = predictions.where();
  auto [p, y] = classesOf("accuracy", predictions, labels);
  count({trueOf(equal(Located(p, at), Located(y, at)), at), countOf(y, at)}, at);
}

BinaryAccuracy::BinaryAccuracy(double threshold, std::string name, Where where)
    : Metric(std::move(name), where), threshold_(threshold), correct_(add("correct", Tensor(int64_t(0)))),
      total_(add("total", Tensor(int64_t(0)))) {}

void BinaryAccuracy::update(const Located &predictions, const Located &labels) const {
  const Where &at = predictions.where();
  Tensor p = detail::floatOf("binary_accuracy", predictions), y = tensorOf(labels);
  if (!detail::sameSizes(typeOf(p, at).shape, typeOf(y, at).shape))
    raiseOp("binary_accuracy",
            "the predictions are " + toString(p.body()->type) + ", the labels " + toString(y.body()->type),
            "give both the same shape", {p.body()->type, y.body()->type}, at);
  Tensor above = cast(Located(greater(Located(p, at), Located(threshold_, at)), at), y.dtype());
  count({trueOf(equal(Located(above, at), Located(y, at)), at), countOf(y, at)}, at);
}

TopKAccuracy::TopKAccuracy(int64_t k, std::string name, Where where)
    : Metric(std::move(name), where), k_(k), correct_(add("correct", Tensor(int64_t(0)))),
      total_(add("total", Tensor(int64_t(0)))) {
  detail::within("top_k_accuracy", "k", static_cast<double>(k), k >= 1, "1 or more", where);
}

void TopKAccuracy::update(const Located &scores, const Located &labels) const {
  const Where &at = scores.where();
  Tensor x = tensorOf(scores), y = labelsOf("top_k_accuracy", x, true, labels, at);
  int64_t classes = x.shape().dim(x.rank() - 1);
  if (classes == dynamic)
    raiseOp("top_k_accuracy", "the scores " + toString(x.body()->type) + " have no last axis of static size",
            "give scores[..., classes]", {x.body()->type}, at);
  Tensor isLabel =
      one_hot(Located(detail::classNumbers("top_k_accuracy", "a label", y, classes, at), at), classes, boolean);
  // The label's score by a sum over one element and zeros: in x's dtype, and NaN where that is.
  Tensor own = reduce_sum(Located(where(Located(isLabel, at), Located(x, at), Located(0, at)), at), -1, true);
  Tensor higher = logical_not(Located(less_equal(Located(x, at), Located(own, at)), at));
  Tensor better = reduce_sum(Located(cast(Located(higher, at), i64), at), -1);
  count({trueOf(less(Located(better, at), Located(k_, at)), at), countOf(y, at)}, at);
}

ConfusionMatrix::ConfusionMatrix(int64_t classes, std::string name, Where where)
    : Metric(std::move(name), where), classes_(classes) {
  detail::within("confusion_matrix", "the number of classes", static_cast<double>(classes),
                 classes >= 1 && classes <= (int64_t(1) << 20), "1 or more, and at most 2^20", where);
  matrix_ = add("matrix", zeros({classes, classes}, i64, where));
}

void ConfusionMatrix::update(const Located &predictions, const Located &labels) const {
  const Where &at = predictions.where();
  auto [p, y] = classesOf("confusion_matrix", predictions, labels);
  Tensor row = detail::classNumbers("confusion_matrix", "a label", y, classes_, at),
         column = detail::classNumbers("confusion_matrix", "a prediction", p, classes_, at);
  Tensor cell = wg::add(Located(mul(Located(row, at), Located(classes_, at)), at), Located(column, at));
  Tensor cells = reshape(Located(cell, at), {-1}), each = ones_like(Located(cells, at));
  Tensor counts = detail::applyOne(runtime::OpId::scatter_add,
                                   runtime::ScatterAddAttrs::make(Ints{classes_ * classes_}), {&each, &cells}, at);
  count({reshape(Located(counts, at), {classes_, classes_})}, at);
}

struct RocAuc::State {
  std::vector<double> scores;
  std::vector<uint8_t> positive;
};

RocAuc::RocAuc() : state_(std::make_shared<State>()) {}

void RocAuc::update(const Located &scores, const Located &labels) const {
  const Where &at = scores.where();
  if (tracing())
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "roc_auc",
                   .message = "a traced function has no scores to keep yet",
                   .remedy = "return the scores, and update outside the function"},
                  at);
  Tensor x = tensorOf(scores), y = tensorOf(labels);
  if (!detail::sameSizes(typeOf(x, at).shape, typeOf(y, at).shape))
    raiseOp("roc_auc", "the scores are " + toString(x.body()->type) + ", the labels " + toString(y.body()->type),
            "give both the same shape", {x.body()->type, y.body()->type}, at);
  detail::orOutOfMemory("roc_auc", "the scores of all examples", at, [&] {
    std::vector<double> next = x.to_vector<double>(at), known = y.to_vector<double>(at);
    for (size_t i = 0; i < next.size(); ++i) {
      if (known[i] != 0 && known[i] != 1)
        raiseOp("roc_auc",
                "the label of example " + std::to_string(i) + " is " + std::to_string(known[i]) + ", not 0 or 1",
                "give 1 for the positive class: cast(labels == c, i32)", {y.body()->type}, at);
      if (std::isnan(next[i]))
        raiseOp("roc_auc", "the score of example " + std::to_string(i) + " is NaN, which has no order",
                "look at what made it", {x.body()->type}, at);
    }
    // Room for both first: then nothing fails half way.
    State &state = *state_;
    auto grow = [&](auto &list) {
      list.reserve(
          std::max(list.size() + next.size(), list.capacity() * (list.size() + next.size() > list.capacity() ? 2 : 1)));
    };
    grow(state.scores), grow(state.positive);
    for (size_t i = 0; i < next.size(); ++i)
      state.scores.push_back(next[i]), state.positive.push_back(known[i] == 1);
  });
}

/// By ranks: from the lowest score up, a group of equal scores beats all negatives below it, and half of its own. Twice
/// the pairs, so that the counts are integers; a double holds them exactly up to 2^53.
double RocAuc::result(Where where) const {
  const State &state = *state_;
  std::vector<size_t> order(state.scores.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return state.scores[a] < state.scores[b]; });
  double twice = 0, positives = 0, negatives = 0;
  for (size_t first = 0, last; first < order.size(); first = last) {
    double p = 0, n = 0;
    for (last = first; last < order.size() && state.scores[order[last]] == state.scores[order[first]]; ++last)
      (state.positive[order[last]] ? p : n) += 1;
    twice += p * (2 * negatives + n);
    positives += p, negatives += n;
  }
  if (positives == 0 || negatives == 0)
    detail::raise({.kind = ErrorKind::runtime,
                   .op = "roc_auc",
                   .message = "the area is not defined: " + std::to_string(static_cast<int64_t>(positives)) +
                              " positive and " + std::to_string(static_cast<int64_t>(negatives)) + " negative examples",
                   .remedy = "update with examples of both classes"},
                  where);
  return twice / 2 / (positives * negatives);
}

void RocAuc::reset() const { *state_ = State(); }

Tensor RocAuc::scores(Where where) const {
  return detail::orOutOfMemory("roc_auc", "the scores of all examples", where,
                               [&] { return Tensor::from(state_->scores); });
}
Tensor RocAuc::labels(Where where) const {
  return detail::orOutOfMemory("roc_auc", "the labels of all examples", where, [&] {
    return Tensor::from(std::vector<bool>(state_->positive.begin(), state_->positive.end()));
  });
}

} // namespace wg::metrics
