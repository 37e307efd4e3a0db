#include "wengert/nn/Initializers.h"

#include "wengert/Ops.h"

#include <atomic>
#include <cmath>

namespace wg::nn {

static std::atomic<int64_t> nextSeed{0};

void set_seed(uint64_t seed) { nextSeed = static_cast<int64_t>(seed << 20); }

/// `draw(key, shape, dtype)` with the given seed, or one taken when the initializer is used.
template <class Draw> static Initializer seeded(std::optional<int64_t> seed, Draw draw) {
  return [seed, draw](const Shape &shape, DType dtype) {
    return draw(random::key(seed ? *seed : nextSeed++), shape, dtype);
  };
}

/// Inputs and outputs of one element of a weight [..., in, out].
static std::pair<double, double> fans(const Shape &shape) {
  double field = 1;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis)
    field *= static_cast<double>(shape.dim(axis));
  double last = shape.rank() ? static_cast<double>(shape.dim(shape.rank() - 1)) : 1;
  double before = shape.rank() > 1 ? static_cast<double>(shape.dim(shape.rank() - 2)) : last;
  return {field * before, field * last};
}

Initializer zeros() {
  return [](const Shape &shape, DType dtype) { return wg::zeros(shape, dtype); };
}
Initializer constant(double value) {
  return [value](const Shape &shape, DType dtype) { return full(shape, value, dtype); };
}
Initializer uniform(double low, double high, std::optional<int64_t> seed) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    return random_uniform(key, shape, low, high, dtype);
  });
}
Initializer normal(double mean, double stddev, std::optional<int64_t> seed) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    return random_normal(key, shape, mean, stddev, dtype);
  });
}
Initializer glorot_uniform(std::optional<int64_t> seed) {
  return seeded(seed, [](const Tensor &key, const Shape &shape, DType dtype) {
    auto [in, out] = fans(shape);
    double bound = std::sqrt(6 / (in + out));
    return random_uniform(key, shape, -bound, bound, dtype);
  });
}
Initializer he_normal(std::optional<int64_t> seed) {
  return seeded(seed, [](const Tensor &key, const Shape &shape, DType dtype) {
    return random_normal(key, shape, 0, std::sqrt(2 / fans(shape).first), dtype);
  });
}

} // namespace wg::nn
