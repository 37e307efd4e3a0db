// How many yeses are right?
#include "wengert/metrics/Detection.h"

#include "frontend/ops/Placed.h"

namespace wg::metrics {

using detail::Placed;
using detail::sumOf;

YesOrNo::YesOrNo(const char *op, double threshold, std::string name, Where where)
    : Metric(std::move(name), where), op_(op), threshold_(threshold), right_(add("right", Tensor(int64_t(0)))),
      said_(add("said", Tensor(int64_t(0)))), labelled_(add("labelled", Tensor(int64_t(0)))),
      total_(add("total", Tensor(int64_t(0)))) {}

void YesOrNo::update(const Located &predictions, const Located &labels) const {
  const Where &at = predictions.where();
  Placed p{detail::floatOf(op_, predictions), at}, y{detail::tensorOf(labels), at};
  const TensorType &pType = detail::typeOf(p.x, at), &yType = detail::typeOf(y.x, at);
  if (!detail::sameSizes(pType.shape, yType.shape))
    detail::raiseOp(op_, "the predictions are " + toString(pType) + ", the labels " + toString(yType),
                    "give both the same shape", {pType, yType}, at);
  Placed said = p > threshold_, labelled = y.x.dtype() == boolean ? y : y == 1;
  auto counted = [](const Placed &x) { return sumOf(cast(x, i64)).x; };
  count({counted(said && labelled), counted(said), counted(labelled), sumOf(ones_like(cast(y, i64)))}, at);
}

double YesOrNo::share(double times, const std::vector<Variable> &of, const Where &where) const {
  ratio(right_, total_, where); // or the error that nothing was counted
  double whole = 0;
  for (const Variable &each : of)
    whole += each.item<double>(where);
  return whole == 0 ? 0 : times * right_.item<double>(where) / whole;
}

Precision::Precision(double threshold, std::string name, Where where)
    : YesOrNo("precision", threshold, std::move(name), where) {}
Recall::Recall(double threshold, std::string name, Where where)
    : YesOrNo("recall", threshold, std::move(name), where) {}
F1::F1(double threshold, std::string name, Where where) : YesOrNo("f1", threshold, std::move(name), where) {}

} // namespace wg::metrics
