// Random numbers from keys.
#include "wengert/Random.h"

#include "frontend/ops/Placed.h"
#include "frontend/staging/Shards.h"
#include "wengert/Arrays.h"
#include "wengert/Math.h"

#include <cmath>
#include <mutex>
#include <numbers>

namespace wg {

using detail::applyOne;
using detail::checkSizes;
using detail::Placed;
using detail::tensorOf;
using runtime::OpId;

Tensor random::key(int64_t seed) { return Tensor{seed, int64_t(0)}; }

/// key + (0, offset): another stream, for `op`.
static Tensor stream(const char *op, const Tensor &key, int64_t offset, const Where &at) {
  const TensorType &type = detail::typeOf(key, at);
  if (type.dtype != i64 || type.shape.rank() != 1 || !detail::sameSizes(type.shape, {2}))
    detail::raiseOp(op, "the key is i64[2], got " + toString(type), "make one: random::key(7)", {type}, at,
                    ErrorKind::type);
  Tensor step = Tensor{int64_t(0), offset};
  return add(Located(key, at), Located(step, at));
}

std::vector<Tensor> random::split(const Located &key, int64_t count) {
  Where at = key.where();
  if (count < 0)
    detail::raiseOp("split", "the count " + std::to_string(count) + " is negative", "give 0 or more", {}, at);
  checkSizes("split", {count, 2}, at);
  Tensor from = stream("split", tensorOf(key), int64_t(0x6a09e667) << 32, at);
  Tensor bits = applyOne(OpId::random_bits, runtime::RandomBitsAttrs::make(Ints{count, 2}, i64), {&from}, at);
  std::vector<Tensor> keys;
  for (int64_t i = 0; i < count; ++i)
    keys.push_back(index(Located(bits, at), i));
  return keys;
}

Tensor random::fold_in(const Located &key, const Located &number) {
  const Where &at = key.where();
  Tensor from = stream("fold_in", detail::tensorOf(key), int64_t(0x510e527f) << 32, at);
  Tensor count = detail::tensorOf(number, i64);
  const TensorType &type = detail::typeOf(count, at);
  if (!runtime::isInteger(type.dtype) || type.shape.rank() != 0)
    detail::raiseOp("fold_in", "the number is " + toString(type), "give an integer without axes", {type}, at,
                    ErrorKind::type);
  if (type.dtype != i64)
    count = cast(Located(count, at), i64);
  auto bitsOf = [&](const Tensor &key) {
    return detail::applyOne(OpId::random_bits, runtime::RandomBitsAttrs::make(Ints{2}, i64), {&key}, at);
  };
  // Neighbouring numbers of neighbouring keys would be one stream, were the key itself moved.
  Tensor place = mul(Located(count, at), Located(Tensor{int64_t(0), int64_t(1)}, at));
  return bitsOf(add(Located(bitsOf(from), at), Located(place, at)));
}

Tensor random_uniform(const Located &key, const Shape &shape, double low, double high, DType dtype) {
  Where at = key.where();
  checkSizes("random_uniform", shape, at, dtype, true);
  Tensor u = detail::applySized(OpId::random_uniform, runtime::RandomUniformAttrs::make(shape, dtype), tensorOf(key),
                                detail::openSizes("random_uniform", shape, at), at);
  if (low == 0 && high == 1)
    return u;
  Tensor x = add(Located(mul(Located(u, at), Located(high - low, at)), at), Located(low, at));
  // 1 + (1 - 2^-24) rounds to 2: the interval is open there.
  double below =
      dtype == f32 ? std::nextafter(static_cast<float>(high), static_cast<float>(low)) : std::nextafter(high, low);
  return low < high ? minimum(Located(x, at), Located(below, at)) : x;
}

/// sqrt(-2 log u) cos(2 pi v) with u in (0, 1] and v in [0, 1).
Tensor random_normal(const Located &key, const Shape &shape, double mean, double stddev, DType dtype) {
  Where at = key.where();
  Tensor k = tensorOf(key), other = stream("random_normal", k, int64_t(0x3c6ef372) << 32, at);
  Tensor u = sub(Located(1, at), Located(random_uniform(Located(k, at), shape, 0, 1, dtype), at));
  Tensor v = random_uniform(Located(other, at), shape, 0, 1, dtype);
  Tensor radius = sqrt(Located(mul(Located(-2, at), Located(log(Located(u, at)), at)), at));
  Tensor x =
      mul(Located(radius, at), Located(cos(Located(mul(Located(2 * std::numbers::pi, at), Located(v, at)), at)), at));
  if (stddev != 1)
    x = mul(Located(x, at), Located(stddev, at));
  return mean != 0 ? add(Located(x, at), Located(mean, at)) : x;
}

/// A deviation, a scale: finite and not negative.
static void checkScale(const char *op, const char *name, double scale, const Where &at) {
  if (!(scale >= 0 && std::isfinite(scale)))
    detail::raiseOp(op, std::string("the ") + name + " is " + std::to_string(scale), "give a finite one of 0 or more",
                    {}, at);
}
/// location + scale x, without the ops that change nothing.
static Tensor scaled(const Placed &x, double location, double scale) {
  Placed y = scale == 1 ? x : x * scale;
  return location == 0 ? y : y + location;
}
/// Half of what the uniform numbers of a dtype are multiples of.
static double halfStep(DType dtype) { return std::ldexp(1, dtype == f32 ? -25 : -54); }

Tensor random_truncated_normal(const Located &key, const Shape &shape, double mean, double stddev, DType dtype) {
  const Where &at = key.where();
  checkScale("random_truncated_normal", "stddev", stddev, at);
  // Of u and -u one is as probable as the other: (2 u - 1) erf(sqrt 2), in which u is uniform in [0, 1).
  Placed u{random_uniform(key, shape, 0, 1, dtype), at};
  Placed x = Placed(erfinv((u * 2 - 1) * std::erf(std::numbers::sqrt2)), at) * std::numbers::sqrt2;
  return scaled(maximum(minimum(x, 2), -2), mean, stddev);
}

/// -log(1 - u) with u in [0, 1), whose largest is below 1 by as much as the least is above 0.
static Placed exponentialOf(const Placed &u) { return -log1p(-u); }

Tensor random_exponential(const Located &key, const Shape &shape, double scale, DType dtype) {
  checkScale("random_exponential", "scale", scale, key.where());
  return scaled(exponentialOf({random_uniform(key, shape, 0, 1, dtype), key.where()}), 0, scale);
}

Tensor random_gumbel(const Located &key, const Shape &shape, double location, double scale, DType dtype) {
  checkScale("random_gumbel", "scale", scale, key.where());
  Placed u{random_uniform(key, shape, 0, 1, dtype), key.where()};
  return scaled(-log(exponentialOf(maximum(u, halfStep(dtype)))), location, scale);
}

Tensor random_laplace(const Located &key, const Shape &shape, double location, double scale, DType dtype) {
  const Where &at = key.where();
  checkScale("random_laplace", "scale", scale, at);
  Tensor k = tensorOf(key), other = stream("random_laplace", k, int64_t(0x3c6ef372) << 32, at);
  Placed size = exponentialOf({random_uniform(Located(k, at), shape, 0, 1, dtype), at});
  Placed side{random_uniform(Located(other, at), shape, 0, 1, dtype), at};
  return scaled(choose(side < 0.5, size, -size), location, scale);
}

Tensor random_bernoulli(const Located &key, const Shape &shape, const Located &probability) {
  const Where &at = key.where();
  if (probability.isLiteral())
    return Placed(random_uniform(key, shape, 0, 1, f64), at) < probability.real();
  Placed p{detail::floatOf("random_bernoulli", probability), at};
  return Placed(random_uniform(key, shape, 0, 1, p.x.dtype()), at) < p;
}

Tensor random_integers(const Located &key, const Shape &shape, int64_t low, int64_t high, DType dtype) {
  const Where &at = key.where();
  int64_t count = 0;
  if (low >= high || __builtin_sub_overflow(high, low, &count))
    detail::raiseOp("random_integers",
                    "the interval [" + std::to_string(low) + ", " + std::to_string(high) + ") has " +
                        (low >= high ? "no integer" : "more than 2^63 - 1 integers"),
                    "give a low that is less than high", {}, at);
  if (!runtime::isInteger(dtype))
    detail::raiseOp("random_integers", "the dtype is " + std::string(nameOf(dtype)),
                    "use an integer dtype, or random_uniform", {}, at, ErrorKind::type);
  for (int64_t end : {low, high - 1})
    detail::checkHolds(Located(end, at), dtype);
  checkSizes("random_integers", shape, at, i64, true);
  Tensor bits = detail::applySized(OpId::random_bits, runtime::RandomBitsAttrs::make(shape, i64),
                                   stream("random_integers", tensorOf(key), 0, at),
                                   detail::openSizes("random_integers", shape, at), at);
  Placed x{remainder(Located(bits, at), Located(count, at)), at};
  if (low != 0)
    x = x + low;
  return dtype == i64 ? x : cast(x, dtype);
}

Tensor random_categorical(const Located &key, const Located &logits, std::optional<int64_t> samples) {
  const Where &at = key.where();
  Placed x{detail::floatOf("random_categorical", logits), at};
  const TensorType type = detail::typeOf(x.x, at);
  if (type.shape.rank() == 0 || type.shape.dim(type.shape.rank() - 1) == 0)
    detail::raiseOp("random_categorical", "the logits are " + toString(type) + ", which have no class",
                    "give logits[..., classes]", {type}, at);
  if (samples) {
    if (*samples < 0)
      detail::raiseOp("random_categorical", "the count " + std::to_string(*samples) + " is negative", "give 0 or more",
                      {}, at);
    checkSizes("random_categorical", {*samples, 1}, at);
    // In the shape of the draws: [..., samples, classes].
    x = Placed{expand_dims(x, -2), at} + Placed{zeros({*samples, 1}, type.dtype, at), at};
  }
  Placed drawn{random_gumbel(key, x.x.shape(), 0, 1, type.dtype), at};
  return wg::argmax(x + drawn, -1);
}

static Tensor permutationOf(const char *op, const Tensor &key, const detail::Size &count, const Where &at) {
  detail::Sizes sizes;
  sizes.push_back(count);
  Tensor words = detail::applySized(OpId::random_bits, runtime::RandomBitsAttrs::make(sizes.list, i64),
                                    stream(op, key, int64_t(0x510e527f) << 32, at), sizes.values, at);
  return argsort(Located(words, at));
}

Tensor random_permutation(const Located &key, int64_t count) {
  const Where &at = key.where();
  if (count < 0)
    detail::raiseOp("random_permutation", "the count " + std::to_string(count) + " is negative", "give 0 or more", {},
                    at);
  checkSizes("random_permutation", {count}, at);
  return permutationOf("random_permutation", tensorOf(key), {count, {}}, at);
}

Tensor random_shuffle(const Located &key, const Located &x, int64_t axis) {
  const Where &at = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = detail::placeOf("random_shuffle", axis, tensor.rank(), at);
  Tensor order = permutationOf("random_shuffle", tensorOf(key), detail::sizeOf(tensor, place, at), at);
  return take(Located(tensor, at), Located(order, at), place);
}

Generator::Generator(int64_t seed, Where where)
    : state_(random::key(seed), {.name = "generator", .trainable = false}, where) {
  state_.state()->isGenerator = true;
}

/// Eagerly, reading and advancing are one step for other threads; a call of a traced function locks its variables
/// itself.
Tensor Generator::next(Where where) const {
  if (detail::level().trace) {
    Tensor key = state_.value(where);
    state_.assign(Located(stream("random", key, 1, where), where));
    return detail::inShard() ? random::fold_in(Located(key, where), Located(detail::shardIndex(where), where)) : key;
  }
  state_.dtype(where); // an error if the generator was moved from
  detail::VariableState &state = *state_.state();
  std::unique_lock lock(state.mutex);
  Tensor key = state.current;
  state.current = stream("random", key, 1, where);
  return key;
}
Tensor Generator::uniform(const Shape &shape, double low, double high, DType dtype, Where where) const {
  return random_uniform(Located(next(where), where), shape, low, high, dtype);
}
Tensor Generator::normal(const Shape &shape, double mean, double stddev, DType dtype, Where where) const {
  return random_normal(Located(next(where), where), shape, mean, stddev, dtype);
}
Tensor Generator::truncated_normal(const Shape &shape, double mean, double stddev, DType dtype, Where where) const {
  return random_truncated_normal(Located(next(where), where), shape, mean, stddev, dtype);
}
Tensor Generator::exponential(const Shape &shape, double scale, DType dtype, Where where) const {
  return random_exponential(Located(next(where), where), shape, scale, dtype);
}
Tensor Generator::gumbel(const Shape &shape, double location, double scale, DType dtype, Where where) const {
  return random_gumbel(Located(next(where), where), shape, location, scale, dtype);
}
Tensor Generator::laplace(const Shape &shape, double location, double scale, DType dtype, Where where) const {
  return random_laplace(Located(next(where), where), shape, location, scale, dtype);
}
Tensor Generator::bernoulli(const Shape &shape, const Located &probability) const {
  const Where &where = probability.where();
  return random_bernoulli(Located(next(where), where), shape, probability);
}
Tensor Generator::integers(const Shape &shape, int64_t low, int64_t high, DType dtype, Where where) const {
  return random_integers(Located(next(where), where), shape, low, high, dtype);
}
Tensor Generator::categorical(const Located &logits, std::optional<int64_t> samples) const {
  const Where &where = logits.where();
  return random_categorical(Located(next(where), where), logits, samples);
}
Tensor Generator::permutation(int64_t count, Where where) const {
  return random_permutation(Located(next(where), where), count);
}
Tensor Generator::shuffle(const Located &x, int64_t axis) const {
  return random_shuffle(Located(next(x.where()), x.where()), x, axis);
}

} // namespace wg
