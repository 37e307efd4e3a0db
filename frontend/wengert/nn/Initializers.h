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
WENGERT_API Initializer ones();
WENGERT_API Initializer constant(double value);
/// `gain` on the diagonal of the last two axes, 0 elsewhere. Errors: less than two axes.
WENGERT_API Initializer identity(double gain = 1);
/// Uniform in [low, high).
WENGERT_API Initializer uniform(double low, double high, std::optional<int64_t> seed = {});
WENGERT_API Initializer normal(double mean, double stddev, std::optional<int64_t> seed = {});
/// Normal, within two standard deviations of the mean: as random_truncated_normal.
WENGERT_API Initializer truncated_normal(double mean, double stddev, std::optional<int64_t> seed = {});

// The last two axes of a weight are its fans, in and out, times the leading ones, a receptive field. None of the
// normal ones below is truncated.

/// Uniform within +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
WENGERT_API Initializer glorot_uniform(std::optional<int64_t> seed = {});
/// Normal with variance 2 / (fan_in + fan_out).
WENGERT_API Initializer glorot_normal(std::optional<int64_t> seed = {});
/// Uniform within +-sqrt(6 / fan_in): for relu (He et al. 2015).
WENGERT_API Initializer he_uniform(std::optional<int64_t> seed = {});
/// Normal with standard deviation sqrt(2 / fan_in).
WENGERT_API Initializer he_normal(std::optional<int64_t> seed = {});
/// Uniform within +-sqrt(3 / fan_in): for selu (LeCun et al. 1998; Klambauer et al. 2017).
WENGERT_API Initializer lecun_uniform(std::optional<int64_t> seed = {});
/// Normal with variance 1 / fan_in.
WENGERT_API Initializer lecun_normal(std::optional<int64_t> seed = {});
/// Rows, or columns where these are more, that are orthogonal and as long as `gain`: of a normal matrix [all axes but
/// the last, last], orthogonalised row by row (Saxe, McClelland and Ganguli 2014). Made by C++ code, in f64: not inside
/// of a traced function. Errors: less than two axes.
WENGERT_API Initializer orthogonal(double gain = 1, std::optional<int64_t> seed = {});

} // namespace wg::nn
