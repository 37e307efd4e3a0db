// Activations: composed of operations, so that none has a rule of its own. What a branch leaves aside is guarded, so
// that no overflow there reaches a gradient.
#include "frontend/ops/Operands.h"

#include <wengert/Math.h>

#include <cmath>
#include <numbers>

namespace wg {

using detail::floatOf;
using detail::raiseOp;

/// x (1 + bend) / 2
static Tensor half(const Tensor &x, const Tensor &bend, const Where &at) {
  auto in = [&](const auto &value) { return Located(value, at); };
  return mul(in(x), in(mul(in(0.5), in(add(in(1), in(bend))))));
}

Tensor gelu(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("gelu", x);
  return half(tensor, erf(Located(mul(Located(tensor, at), Located(std::numbers::sqrt2 / 2, at)), at)), at);
}

/// Beyond 20 tanh is 1 in every dtype, and its slope 0: a cube that overflows would make it NaN.
Tensor gelu_tanh(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("gelu_tanh", x);
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor inner = clip(in(tensor), in(-20), in(20));
  Tensor cube = mul(in(mul(in(square(in(inner))), in(0.044715))), in(inner));
  return half(tensor, tanh(in(mul(in(add(in(inner), in(cube))), in(std::sqrt(2 / std::numbers::pi))))), at);
}

Tensor silu(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("silu", x);
  return mul(Located(tensor, at), Located(sigmoid(Located(tensor, at)), at));
}

Tensor mish(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("mish", x);
  return mul(Located(tensor, at), Located(tanh(Located(softplus(Located(tensor, at)), at)), at));
}

Tensor log_sigmoid(const Located &x) {
  Where at = x.where();
  Tensor turned = neg(Located(floatOf("log_sigmoid", x), at));
  return neg(Located(softplus(Located(turned, at)), at));
}

Tensor relu6(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("relu6", x);
  Tensor above = greater_equal(Located(tensor, at), Located(6, at));
  return wg::where(Located(above, at), Located(6, at), Located(relu(Located(tensor, at)), at));
}

Tensor hard_sigmoid(const Located &x) {
  Where at = x.where();
  Tensor shifted = add(Located(floatOf("hard_sigmoid", x), at), Located(3, at));
  return div(Located(relu6(Located(shifted, at)), at), Located(6, at));
}

Tensor hard_swish(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("hard_swish", x);
  return mul(Located(tensor, at), Located(hard_sigmoid(Located(tensor, at)), at));
}

Tensor hard_tanh(const Located &x) {
  Where at = x.where();
  return clip(Located(floatOf("hard_tanh", x), at), Located(-1, at), Located(1, at));
}

/// x where x > 0, else alpha x.
Tensor leaky_relu(const Located &x, double alpha) {
  Where at = x.where();
  Tensor tensor = floatOf("leaky_relu", x), above = greater(Located(tensor, at), Located(0, at));
  return wg::where(Located(above, at), Located(tensor, at), Located(mul(Located(tensor, at), Located(alpha, at)), at));
}

/// scale x where x > 0, else scale alpha (e^(x / width) - 1), which sees 0 in place of what is above.
static Tensor exponentialUnit(const Tensor &x, double scale, double alpha, double width, const Where &at) {
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor above = greater(in(x), in(0)), low = wg::where(in(above), in(0), in(x));
  Tensor bent = expm1(in(width == 1 ? low : div(in(low), in(width))));
  return wg::where(in(above), in(scale == 1 ? x : mul(in(x), in(scale))),
                   in(scale * alpha == 1 ? bent : mul(in(bent), in(scale * alpha))));
}

Tensor elu(const Located &x, double alpha) { return exponentialUnit(floatOf("elu", x), 1, alpha, 1, x.where()); }

Tensor celu(const Located &x, double alpha) {
  Tensor tensor = floatOf("celu", x);
  if (alpha == 0)
    raiseOp("celu", "alpha is 0, by which x is divided", "give another alpha; relu is the limit", {}, x.where());
  return exponentialUnit(tensor, 1, alpha, alpha, x.where());
}

Tensor selu(const Located &x) {
  constexpr double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
  return exponentialUnit(floatOf("selu", x), scale, alpha, 1, x.where());
}

} // namespace wg
