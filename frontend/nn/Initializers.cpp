#include "wengert/nn/Initializers.h"

#include "frontend/staging/Apply.h"
#include "wengert/Random.h"

#include <atomic>
#include <cmath>
#include <numeric>

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
Initializer ones() {
  return [](const Shape &shape, DType dtype) { return wg::ones(shape, dtype); };
}
Initializer constant(double value) {
  return [value](const Shape &shape, DType dtype) { return full(shape, value, dtype); };
}

/// The sizes of a weight that has rows and columns.
static std::pair<int64_t, int64_t> matrixOf(const char *op, const Shape &shape) {
  if (shape.rank() < 2)
    detail::raise({.op = op,
                   .message = "the shape " + toString(shape) + " has less than two axes",
                   .remedy = "take another initializer for it"},
                  Where::current());
  return {shape.dim(shape.rank() - 2), shape.dim(shape.rank() - 1)};
}

Initializer identity(double gain) {
  return [gain](const Shape &shape, DType dtype) {
    auto [rows, columns] = matrixOf("identity", shape);
    return broadcast_to(gain * eye(rows, columns, dtype), shape);
  };
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
Initializer truncated_normal(double mean, double stddev, std::optional<int64_t> seed) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    return random_truncated_normal(key, shape, mean, stddev, dtype);
  });
}

/// Uniform, or normal, with the variance that `variance(fan_in, fan_out)` is.
template <class F> static Initializer uniformOfVariance(std::optional<int64_t> seed, F variance) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    auto [in, out] = fans(shape);
    double bound = std::sqrt(3 * variance(in, out));
    return random_uniform(key, shape, -bound, bound, dtype);
  });
}
template <class F> static Initializer normalOfVariance(std::optional<int64_t> seed, F variance) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    auto [in, out] = fans(shape);
    return random_normal(key, shape, 0, std::sqrt(variance(in, out)), dtype);
  });
}
static double glorot(double in, double out) { return 2 / (in + out); }
static double he(double in, double) { return 2 / in; }
static double lecun(double in, double) { return 1 / in; }

Initializer glorot_uniform(std::optional<int64_t> seed) { return uniformOfVariance(seed, glorot); }
Initializer glorot_normal(std::optional<int64_t> seed) { return normalOfVariance(seed, glorot); }
Initializer he_uniform(std::optional<int64_t> seed) { return uniformOfVariance(seed, he); }
Initializer he_normal(std::optional<int64_t> seed) { return normalOfVariance(seed, he); }
Initializer lecun_uniform(std::optional<int64_t> seed) { return uniformOfVariance(seed, lecun); }
Initializer lecun_normal(std::optional<int64_t> seed) { return normalOfVariance(seed, lecun); }

/// Gram and Schmidt's procedure, each row twice, after which rows are orthogonal to rounding (Giraud, Langou and
/// Rozloznik 2005).
static void orthogonalize(std::vector<double> &a, int64_t rows, int64_t columns) {
  auto row = [&](int64_t i) { return a.data() + i * columns; };
  auto dot = [&](const double *x, const double *y) { return std::inner_product(x, x + columns, y, 0.0); };
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < 2 * i; ++k) {
      double *before = row(k % i), along = dot(row(i), before);
      for (int64_t j = 0; j < columns; ++j)
        row(i)[j] -= along * before[j];
    }
    double length = std::sqrt(dot(row(i), row(i)));
    for (int64_t j = 0; j < columns; ++j)
      row(i)[j] /= length;
  }
}

Initializer orthogonal(double gain, std::optional<int64_t> seed) {
  return seeded(seed, [=](const Tensor &key, const Shape &shape, DType dtype) {
    int64_t columns = matrixOf("orthogonal", shape).second, size = shape.numElements(),
            rows = columns == 0 ? 0 : size / columns;
    bool wide = rows <= columns;
    Shape work = wide ? Shape{rows, columns} : Shape{columns, rows};
    std::vector<double> a = random_normal(key, work, 0, 1, f64).to_vector<double>();
    orthogonalize(a, work.dim(0), work.dim(1));
    Tensor q = gain * Tensor::from(a, work);
    return cast(reshape(wide ? q : transpose(q), shape), dtype);
  });
}

} // namespace wg::nn
