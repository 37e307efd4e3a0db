// Elementwise functions that are composed of operations: what is 0 where its factor is, angles, special values, and
// comparisons within a tolerance.
#include "frontend/ops/Operands.h"

#include <wengert/Math.h>

#include <numbers>

namespace wg {

using detail::applyOne;
using detail::floatOf;
using detail::tensorOf;
using runtime::OpId;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The first place of a call that is known.
static Where placeOfCall(std::initializer_list<const Located *> operands) {
  for (const Located *operand : operands)
    if (operand->where())
      return operand->where();
  return (*operands.begin())->where();
}

/// Operands as floats of one dtype: that of the first tensor, which literals take.
static std::vector<Tensor> floatsOf(const char *op, std::initializer_list<const Located *> operands) {
  std::optional<DType> dtype;
  for (const Located *operand : operands)
    if (!dtype && !operand->isLiteral())
      dtype = floatOf(op, *operand).dtype();
  std::vector<Tensor> floats;
  for (const Located *operand : operands) {
    floats.push_back(operand->isLiteral() && dtype ? tensorOf(*operand, *dtype) : floatOf(op, *operand));
    detail::checkDTypes(op, floats.front(), floats.back(), operand->where());
  }
  return floats;
}

Tensor polygamma(int64_t n, const Located &x) {
  Tensor tensor = floatOf("polygamma", x);
  return applyOne(OpId::polygamma, runtime::PolygammaAttrs::make(n), {&tensor}, x.where());
}

Tensor digamma(const Located &x) { return polygamma(0, Located(floatOf("digamma", x), x.where())); }

/// Where x is 0, the logarithm of a y that has none, or an infinite one, is taken of `neutral`, where it is 0; but for
/// NaN. For any other y it is computed, so that mixed derivatives are right at x = 0.
static Tensor timesLogarithm(const Tensor &x, const Tensor &y, double least, double neutral,
                             Tensor (*logarithm)(const Located &), const Where &at) {
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor usual = logical_and(in(greater(in(y), in(least))), in(less(in(y), in(kInfinity))));
  Tensor other = logical_not(in(logical_or(in(usual), in(is_nan(in(y))))));
  Tensor guarded = wg::where(in(logical_and(in(equal(in(x), in(0))), in(other))), in(neutral), in(y));
  return mul(in(x), in(logarithm(in(guarded))));
}

Tensor xlogy(const Located &x, const Located &y) {
  std::vector<Tensor> floats = floatsOf("xlogy", {&x, &y});
  return timesLogarithm(floats[0], floats[1], 0, 1, &log, placeOfCall({&x, &y}));
}

Tensor xlog1py(const Located &x, const Located &y) {
  std::vector<Tensor> floats = floatsOf("xlog1py", {&x, &y});
  return timesLogarithm(floats[0], floats[1], -1, 0, &log1p, placeOfCall({&x, &y}));
}

Tensor squared_difference(const Located &a, const Located &b) {
  return square(Located(sub(a, b), placeOfCall({&a, &b})));
}

Tensor lerp(const Located &a, const Located &b, const Located &t) {
  Where at = placeOfCall({&a, &b, &t});
  std::vector<Tensor> floats = floatsOf("lerp", {&a, &b, &t});
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor rest = sub(in(1), in(floats[2]));
  return add(in(mul(in(rest), in(floats[0]))), in(mul(in(floats[2]), in(floats[1]))));
}

Tensor clamp(const Located &x, const Located &low, const Located &high) { return clip(x, low, high); }

/// Near 0 the Taylor polynomial in (pi x)^2, whose derivatives are right at 0; each side sees numbers of its own only.
Tensor sinc(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("sinc", x);
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor near = less(in(abs(in(tensor))), in(0.25));
  Tensor angle = mul(in(wg::where(in(near), in(tensor), in(0))), in(std::numbers::pi)), z = square(in(angle));
  constexpr int degree = 11; // the first term left out is below 1e-21, its third derivative below 1e-16
  double factor[degree + 1] = {1};
  for (int k = 1; k <= degree; ++k)
    factor[k] = -factor[k - 1] / (2 * k * (2 * k + 1));
  Tensor series = add(in(mul(in(z), in(factor[degree]))), in(factor[degree - 1]));
  for (int k = degree - 2; k >= 0; --k)
    series = add(in(mul(in(z), in(series))), in(factor[k]));
  Tensor turn = mul(in(wg::where(in(near), in(1), in(tensor))), in(std::numbers::pi));
  return wg::where(in(near), in(series), in(div(in(sin(in(turn))), in(turn))));
}

Tensor heaviside(const Located &x, const Located &at_zero) {
  Where at = placeOfCall({&x, &at_zero});
  std::vector<Tensor> floats = floatsOf("heaviside", {&x, &at_zero});
  auto in = [&](const auto &value) { return Located(value, at); };
  // 0 below, 1 above, and NaN of NaN.
  Tensor side = mul(in(add(in(sign(in(floats[0]))), in(1))), in(0.5));
  return wg::where(in(equal(in(floats[0]), in(0))), in(floats[1]), in(side));
}

Tensor deg2rad(const Located &x) {
  return mul(Located(floatOf("deg2rad", x), x.where()), Located(std::numbers::pi / 180, x.where()));
}
Tensor rad2deg(const Located &x) {
  return mul(Located(floatOf("rad2deg", x), x.where()), Located(180 / std::numbers::pi, x.where()));
}

/// The largest number of a float dtype.
static double largestOf(DType dtype) {
  return dtype == f64    ? std::numeric_limits<double>::max()
         : dtype == f16  ? 65504
         : dtype == bf16 ? 0x1.fep127
                         : static_cast<double>(std::numeric_limits<float>::max());
}

Tensor nan_to_num(const Located &x, NanToNumOptions options) {
  Where at = x.where();
  Tensor tensor = tensorOf(x);
  if (!runtime::isFloat(tensor.dtype()))
    return identity(Located(tensor, at));
  double largest = largestOf(tensor.dtype());
  auto in = [&](const auto &value) { return Located(value, at); };
  Tensor y = wg::where(in(is_pos_inf(in(tensor))), in(options.posinf.value_or(largest)), in(tensor));
  y = wg::where(in(is_neg_inf(in(tensor))), in(options.neginf.value_or(-largest)), in(y));
  return wg::where(in(is_nan(in(tensor))), in(options.nan), in(y));
}

Tensor is_pos_inf(const Located &x) {
  return equal(Located(floatOf("is_pos_inf", x), x.where()), Located(kInfinity, x.where()));
}
Tensor is_neg_inf(const Located &x) {
  return equal(Located(floatOf("is_neg_inf", x), x.where()), Located(-kInfinity, x.where()));
}

Tensor is_close(const Located &a, const Located &b, CloseOptions options) {
  Where at = placeOfCall({&a, &b});
  auto in = [&](const auto &value) { return Located(value, at); };
  auto asFloat = [&](const Located &x) -> Tensor { // a literal waits for the dtype of what is beside it
    Tensor tensor = tensorOf(x);
    return runtime::isFloat(tensor.dtype()) ? tensor : cast(in(tensor), f64);
  };
  Tensor madeA = a.isLiteral() ? Tensor() : asFloat(a), madeB = b.isLiteral() ? Tensor() : asFloat(b);
  std::vector<Tensor> floats;
  if (!madeA.defined() && !madeB.defined())
    floats = {asFloat(a), asFloat(b)};
  else
    floats = {madeA.defined() ? madeA : tensorOf(a, madeB.dtype()),
              madeB.defined() ? madeB : tensorOf(b, madeA.dtype())};
  detail::checkDTypes("is_close", floats[0], floats[1], at);
  Tensor distance = abs(in(sub(in(floats[0]), in(floats[1]))));
  Tensor bound = add(in(mul(in(abs(in(floats[1]))), in(options.rtol))), in(options.atol));
  Tensor near = logical_and(in(less_equal(in(distance), in(bound))), in(is_finite(in(floats[1]))));
  Tensor close = logical_or(in(near), in(equal(in(floats[0]), in(floats[1]))));
  return options.equal_nan
             ? logical_or(in(close), in(logical_and(in(is_nan(in(floats[0]))), in(is_nan(in(floats[1]))))))
             : close;
}

Tensor all_close(const Located &a, const Located &b, CloseOptions options) {
  return reduce_all(Located(is_close(a, b, options), placeOfCall({&a, &b})));
}

} // namespace wg
