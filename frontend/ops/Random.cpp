// Random numbers from keys.
#include "frontend/ops/Operands.h"

#include <cmath>
#include <mutex>
#include <numbers>

namespace wg {

using detail::applyOne;
using detail::checkSizes;
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
    return key;
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

} // namespace wg
