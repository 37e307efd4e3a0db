// Which values does a query see, and how much of each?
#include "wengert/nn/Attention.h"

#include "frontend/nn/Layer.h"
#include "wengert/Control.h"

#include <cmath>
#include <limits>

namespace wg::nn {

using detail::choose;
using detail::Placed;
using detail::sumOf;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The numbers 0, 1, ... of the places along an axis, i64[size]. An open one is counted when the function runs.
static Tensor placesAlong(const Tensor &x, int axis, const Where &at) {
  const Shape &shape = detail::typeOf(x, at).shape;
  if (int64_t size = shape.dim(axis); size != dynamic)
    return detail::iota({size}, 0, i64, at);
  std::vector<int64_t> others;
  for (int other = 0; other < shape.rank(); ++other)
    if (other != axis)
      others.push_back(other);
  Tensor rows = ones_like(Located(reduce_sum(Located(x, at), others), at));
  auto turn = [&](const Tensor &i, const Tensor &) { return std::pair(add(Located(i, at), Located(1, at)), i); };
  return scan(turn, Tensor(int64_t(0)), rows, {}, at).second;
}

/// exp(s - m) / sum, with m the maximum of the row, or 0 where that is not finite: a row of -inf is 0 / 1.
static Placed softmaxOrZeros(const Placed &s) {
  Placed largest = stop_gradient(Placed(reduce_max(s, -1, true), s.at));
  Placed e = exp(s - choose(largest == -kInfinity, 0, largest)), sum = sumOf(e, -1, true);
  return e / choose(sum == 0, 1, sum);
}

static Placed weightsOf(const char *op, const Placed &q, const Placed &k, const AttentionOptions &options) {
  const Where &at = q.at;
  const TensorType &qType = detail::typeOf(q.x, at), &kType = detail::typeOf(k.x, at);
  auto sizeOfLast = [](const TensorType &type) { return type.shape.dim(type.shape.rank() - 1); };
  if (qType.shape.rank() < 2 || kType.shape.rank() < 2 || sizeOfLast(qType) == dynamic)
    detail::raiseOp(op, "the queries are " + toString(qType) + ", the keys " + toString(kType),
                    "give q[..., n, d] and k[..., m, d] with d of static size", {qType, kType}, at);
  if (sizeOfLast(kType) != sizeOfLast(qType) && sizeOfLast(kType) != dynamic)
    detail::raiseOp(op, "queries and keys differ in their last axis: " + toString(qType) + " and " + toString(kType),
                    "project both to one size", {qType, kType}, at);
  detail::checkDTypes(op, q.x, k.x, at);
  const double d = static_cast<double>(std::max<int64_t>(1, sizeOfLast(qType)));
  // The smaller operand is scaled: queries, not scores.
  Placed scores{matmul(q * options.scale.value_or(1 / std::sqrt(d)), k, {.transpose_b = true}), at};
  auto mask = [&](const Placed &allowed) { scores = choose(allowed, scores, -kInfinity); };
  const TensorType before = detail::typeOf(scores.x, at);
  if (options.mask.defined()) {
    Placed given{options.mask, at};
    const TensorType &type = detail::typeOf(given.x, at);
    if (type.dtype != boolean && type.dtype != before.dtype)
      detail::raiseOp(op, "the mask is " + toString(type) + ", the scores " + toString(before),
                      "give bools, true where a query may attend to a key, or numbers to be added", {type, before}, at,
                      ErrorKind::type);
    type.dtype == boolean ? mask(given) : static_cast<void>(scores = scores + given);
    if (!detail::sameSizes(detail::typeOf(scores.x, at).shape, before.shape))
      detail::raiseOp(op, "the mask is " + toString(type) + ", the scores " + toString(before),
                      "give a mask that broadcasts to the scores", {type, before}, at);
  }
  if (options.causal) {
    const int rank = before.shape.rank();
    Placed row{expand_dims(Located(placesAlong(scores.x, rank - 2, at), at), 1), at},
        column{placesAlong(scores.x, rank - 1, at), at};
    mask(column <= row);
  }
  return softmaxOrZeros(scores);
}

Tensor attention_weights(const Located &q, const Located &k, const AttentionOptions &options) {
  const char *op = "attention_weights";
  const Where &at = q.where();
  return weightsOf(op, {detail::floatOf(op, q), at}, {detail::floatOf(op, k), at}, options);
}

Tensor attention(const Located &q, const Located &k, const Located &v, const AttentionOptions &options) {
  const char *op = "attention";
  const Where &at = q.where();
  Placed keys{detail::floatOf(op, k), at}, values{detail::floatOf(op, v), at};
  const TensorType &kType = detail::typeOf(keys.x, at), &vType = detail::typeOf(values.x, at);
  int64_t m = kType.shape.rank() < 2 ? dynamic : kType.shape.dim(kType.shape.rank() - 2),
          n = vType.shape.rank() < 2 ? -1 : vType.shape.dim(vType.shape.rank() - 2);
  if (vType.shape.rank() < 2 || (m != n && m != dynamic && n != dynamic))
    detail::raiseOp(op, "the keys are " + toString(kType) + ", the values " + toString(vType),
                    "give a value for each key: k[..., m, d] and v[..., m, e]", {kType, vType}, at);
  return matmul(weightsOf(op, {detail::floatOf(op, q), at}, keys, options), values);
}

static Dense projection(int64_t in, int64_t out, const MultiHeadAttentionOptions &options, const Where &where) {
  return Dense(in, out, {}, {.bias = options.bias, .dtype = options.dtype, .weight = options.weight}, where);
}
static int64_t checkedHeads(int64_t features, int64_t heads, const Where &where) {
  detail::checkSizesOfLayer("multi_head_attention", {{"features", features}, {"heads", heads}}, where);
  if (features % heads != 0)
    detail::raiseOp("multi_head_attention",
                    std::to_string(heads) + " heads do not divide " + std::to_string(features) + " features",
                    "give a number that does", {}, where);
  return heads;
}

MultiHeadAttention::MultiHeadAttention(int64_t features, int64_t heads, MultiHeadAttentionOptions options, Where where)
    : heads_(checkedHeads(features, heads, where)), query_(projection(features, features, options, where)),
      key_(projection(options.key_features ? options.key_features : features, features, options, where)),
      value_(projection(options.value_features ? options.value_features : features, features, options, where)),
      out_(projection(features, features, options, where)) {
  add("query", query_, where), add("key", key_, where), add("value", value_, where), add("out", out_, where);
}

/// [..., n, heads, d] <-> [..., heads, n, d]
static Tensor exchangeHeads(const Tensor &x, const Where &where) {
  std::vector<int64_t> order;
  for (int axis = 0; axis < x.rank(); ++axis)
    order.push_back(axis);
  std::swap(order[order.size() - 2], order[order.size() - 3]);
  return transpose(Located(x, where), order);
}

Tensor MultiHeadAttention::operator()(const Tensor &q, const Tensor &k, const Tensor &v,
                                      const AttentionOptions &options, Where where) const {
  for (const Tensor *x : {&q, &k, &v})
    if (const TensorType &type = detail::typeOf(*x, where); type.shape.rank() < 2)
      detail::raiseOp("multi_head_attention", "an input is " + toString(type), "give x[..., n, features]", {type},
                      where);
  auto heads = [&](const Dense &layer, const Tensor &x) {
    return exchangeHeads(detail::splitLast(layer(x, where), heads_, where), where);
  };
  AttentionOptions each = options;
  if (each.mask.defined() && each.mask.rank() > 2)
    each.mask = expand_dims(Located(each.mask, where), -3);
  Tensor a = heads(query_, q), b = heads(key_, k), c = heads(value_, v);
  Tensor y = attention(Located(a, where), Located(b, where), Located(c, where), each);
  return out_(detail::joinLast(exchangeHeads(y, where), where), where);
}

Tensor MultiHeadAttention::operator()(const Tensor &x, const AttentionOptions &options, Where where) const {
  return (*this)(x, x, x, options, where);
}

} // namespace wg::nn
