// Elementwise functions that are composed of the operations: activations, logarithms that are 0 where their factor is,
// comparisons within a tolerance. Those of one record each, as `lgamma` and `atan2`, are declared by Ops.h.
//
// Operands broadcast and literals take dtypes as there; so do errors.
#pragma once

#include <wengert/Ops.h>

#include <optional>

namespace wg {

// ---- Activations
// Slopes at kinks are TensorFlow's where it has the function, else JAX's.

/// log(sigmoid(x)) = -softplus(-x): neither side overflows. Shapes: x float[...] -> float[...].
WENGERT_API Tensor log_sigmoid(const Located &x);
/// min(max(x, 0), 6); NaN stays NaN. Slope at 0 and at 6: 0. Shapes: x float[...] -> float[...].
WENGERT_API Tensor relu6(const Located &x);
/// x where x > 0, else alpha x: so alpha at 0. Shapes: x float[...] -> float[...].
WENGERT_API Tensor leaky_relu(const Located &x, double alpha = 0.2);
/// x where x > 0, else alpha (e^x - 1), without cancellation (Clevert, Unterthiner and Hochreiter 2016). Slope at 0:
/// alpha. Shapes: x float[...] -> float[...].
WENGERT_API Tensor elu(const Located &x, double alpha = 1);
/// x where x > 0, else alpha (e^(x / alpha) - 1), whose slope is continuous (Barron 2017); an error where alpha is 0.
/// Shapes: x float[...] -> float[...].
WENGERT_API Tensor celu(const Located &x, double alpha = 1);
/// elu with the scale and the alpha that keep mean 0 and variance 1 (Klambauer et al. 2017). Slope at 0: scale alpha.
/// Shapes: x float[...] -> float[...].
WENGERT_API Tensor selu(const Located &x);
/// x tanh(softplus(x)) (Misra 2020); NaN at -inf, as gelu is. Shapes: x float[...] -> float[...].
WENGERT_API Tensor mish(const Located &x);
/// relu6(x + 3) / 6. Slope at -3 and 3: 0. Shapes: x float[...] -> float[...].
WENGERT_API Tensor hard_sigmoid(const Located &x);
/// x hard_sigmoid(x) (Howard et al. 2019); NaN at -inf. Shapes: x float[...] -> float[...].
WENGERT_API Tensor hard_swish(const Located &x);
/// clip(x, -1, 1). Slope at -1 and 1: 1, as of clip. Shapes: x float[...] -> float[...].
WENGERT_API Tensor hard_tanh(const Located &x);

// ---- Functions

/// The derivative of log gamma: psi(x), which is polygamma(0, x). Shapes: x float[...] -> float[...].
WENGERT_API Tensor digamma(const Located &x);
/// The derivative of order n of digamma, 0 <= n <= 170, by Euler's and Maclaurin's series, below 0 by reflection. At
/// the poles 0, -1, -2, ...: inf where n is odd; where it is even, -inf at 0, inf at -0, NaN at the others. The error
/// is relative, some ulp and n / 2 more, but absolute near zeros. Shapes: x float[...] -> float[...].
/// Errors: another order.
WENGERT_API Tensor polygamma(int64_t n, const Located &x);
/// x log(y), and 0 where x is 0 and y is no NaN. Its slope by x is log(y) there too, but 0 where log(y) is not finite.
/// Shapes: x, y float[...] -> float[...].
WENGERT_API Tensor xlogy(const Located &x, const Located &y);
/// x log(1 + y), likewise.
WENGERT_API Tensor xlog1py(const Located &x, const Located &y);
/// (a - b)^2. Shapes: a, b number[...] -> number[...].
WENGERT_API Tensor squared_difference(const Located &a, const Located &b);
/// (1 - t) a + t b: a at t = 0 and b at t = 1, exactly. Shapes: a, b, t float[...] -> float[...].
WENGERT_API Tensor lerp(const Located &a, const Located &b, const Located &t);
/// clip(x, low, high)
WENGERT_API Tensor clamp(const Located &x, const Located &low, const Located &high);
/// sin(pi x) / (pi x), and 1 at 0, with derivatives of every order there. Shapes: x float[...] -> float[...].
WENGERT_API Tensor sinc(const Located &x);
/// 0 below 0, 1 above, and `at_zero` at 0; NaN of NaN. A gradient goes to at_zero alone.
/// Shapes: x, at_zero float[...] -> float[...].
WENGERT_API Tensor heaviside(const Located &x, const Located &at_zero);
/// x pi / 180. Shapes: x float[...] -> float[...].
WENGERT_API Tensor deg2rad(const Located &x);
/// x 180 / pi. Shapes: x float[...] -> float[...].
WENGERT_API Tensor rad2deg(const Located &x);

// ---- Special values and comparisons

struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = {}, neginf = {}; ///< by default the largest and the lowest number of the dtype
};
/// x with numbers in place of NaN and infinities, which get no gradient; integers and bools as they are.
/// Shapes: x any[...] -> any[...].
WENGERT_API Tensor nan_to_num(const Located &x, NanToNumOptions options = {});
/// x is inf. Shapes: x float[...] -> bool[...].
WENGERT_API Tensor is_pos_inf(const Located &x);
/// x is -inf. Shapes: x float[...] -> bool[...].
WENGERT_API Tensor is_neg_inf(const Located &x);

struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false; ///< whether a NaN is close to a NaN
};
/// |a - b| <= atol + rtol |b|, and no infinity is close to anything but itself; integers are compared in f64.
/// Shapes: a, b number[...] -> bool[...].
WENGERT_API Tensor is_close(const Located &a, const Located &b, CloseOptions options = {});
/// Whether all are. Shapes: a, b number[...] -> bool[].
WENGERT_API Tensor all_close(const Located &a, const Located &b, CloseOptions options = {});

} // namespace wg
