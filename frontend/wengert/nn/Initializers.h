// What a fresh weight holds. An initializer is a function of a shape and a dtype; random ones are functions of their
// seed as well, so that the same program starts from the same weights on every machine.
#pragma once

#include <wengert/Tensor.h>

#include <functional>
#include <optional>

namespace wg::nn {

using Initializer = std::function<Tensor(const Shape &, DType)>;

/// Without a seed, an initializer takes the next of a sequence that this sets back: layers made in the same order then
/// get the same weights.
WENGERT_API void set_seed(uint64_t seed);

WENGERT_API Initializer zeros();
WENGERT_API Initializer constant(double value);
/// Uniform in [low, high).
WENGERT_API Initializer uniform(double low, double high, std::optional<int64_t> seed = {});
WENGERT_API Initializer normal(double mean, double stddev, std::optional<int64_t> seed = {});
/// Uniform within +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). The last two axes are the fans, the
/// leading ones a receptive field.
WENGERT_API Initializer glorot_uniform(std::optional<int64_t> seed = {});
/// Normal with standard deviation sqrt(2 / fan_in): for relu (He et al. 2015).
WENGERT_API Initializer he_normal(std::optional<int64_t> seed = {});

} // namespace wg::nn
