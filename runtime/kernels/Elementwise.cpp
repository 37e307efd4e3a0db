// One element at a time. Functions of the standard library are called element by element,
// since Eigen's vector forms clamp
// (tanh, exp) and flush subnormals (log); arithmetic is left to the compiler's vectoriser.
#include "runtime/kernels/Elements.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace wg::runtime {

template <class T> static constexpr bool isReal = std::is_floating_point_v<T>;

// ---- Shape rules ----------------------------------------------------------------------------------------------------
/// `f32[2] and f64[2] have different dtypes`, `f32[2] and f32[3] have different shapes`
static Status checkSameType(const TensorType &a, const TensorType &b) {
  if (a.dtype != b.dtype)
    return typeError(say(a, " and ", b, " have different dtypes"),
                     say("cast one of them: cast(x, ", nameOf(a.dtype), ")"));
  if (!(a.shape == b.shape))
    return valueError(say(a, " and ", b, " have different shapes"), "broadcast or reshape one of them");
  return {};
}

Status sameTypeRule(TypeSpan operands, const Attrs &, TypeList &results) {
  for (size_t i = 1; i < operands.size(); ++i)
    if (Status status = checkSameType(operands[0], operands[i]); !status.ok())
      return status;
  results.push_back(operands[0]);
  return {};
}

Status predicateRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  Status status = sameTypeRule(operands, attrs, results);
  if (status.ok())
    results.types[0].dtype = DType::boolean;
  return status;
}

/// c bool[...], a and b of one type and c's shape.
static Status selectRule(TypeSpan operands, const Attrs &, TypeList &results) {
  const TensorType &c = operands[0], &a = operands[1], &b = operands[2];
  if (c.dtype != DType::boolean)
    return typeError(say("the condition is bool, got ", c), "compare first: c != 0");
  if (Status status = checkSameType(a, b); !status.ok())
    return status;
  if (!(c.shape == a.shape))
    return valueError(say("the condition ", c, " and the branches ", a, " have different shapes"),
                      "broadcast one of them");
  results.push_back(a);
  return {};
}

// ---- Integers -------------------------------------------------------------------------------------------------------
/// Rounded down; x // 0 = -1, MIN // -1 = MIN.
template <class T> static T floorDivInteger(T a, T b) {
  if (b == 0)
    return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1)
      return wrappedMul<T>(a, -1);
    return static_cast<T>(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  } else {
    return static_cast<T>(a / b);
  }
}

/// With the sign of the divisor; x % 0 = x, MIN % -1 = 0.
template <class T> static T remainderInteger(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1)
      return 0;
    T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return static_cast<T>(a % b);
  }
}

/// Modulo 2^n by repeated squares. A negative exponent: 1 -> 1, -1 -> +-1, 0 -> the highest, others 0.
template <class T> static T powInteger(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b < 0)
      return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : a == 0 ? std::numeric_limits<T>::max() : 0;
  T power = 1;
  for (Wrapping<T> rest = static_cast<Wrapping<T>>(b); rest != 0; rest = static_cast<Wrapping<T>>(rest >> 1)) {
    if (rest & 1)
      power = wrappedMul(power, a);
    a = wrappedMul(a, a);
  }
  return power;
}

// ---- Floats ---------------------------------------------------------------------------------------------------------
/// a - b floor(a / b), exact: fmod, moved into the divisor's half. A zero has the divisor's sign.
template <class T> static T remainderFloat(T a, T b) {
  T rest = std::fmod(a, b);
  if (rest == 0)
    return std::copysign(T(0), b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// 1 / (1 + e^-x) from the side that neither overflows nor loses the small values.
template <class T> static T sigmoidOf(T x) {
  T e = std::exp(-std::abs(x));
  return (x >= 0 ? T(1) : x != x ? x : e) / (1 + e);
}

/// max(x, 0) + log(1 + e^-|x|)
template <class T> static T softplusOf(T x) {
  return (x > 0 || x != x ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

// ---- Kernels of more than one dtype ---------------------------------------------------------------------------------
static Status selectKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  const bool *c = operands[0].data<bool>();
  visitWidth(operands[1].dtype(), [&]<class B>(B) {
    const B *a = operands[1].data<B>(), *b = operands[2].data<B>();
    B *__restrict y = results[0].data<B>();
    forChunks(results[0].numElements(), 1 << 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = c[i] ? a[i] : b[i];
    });
  });
  return {};
}

/// The same bytes. execute() shares the buffer instead.
static Status copyKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  if (size_t bytes = operands[0].numBytes())
    std::memcpy(results[0].buffer.data(), operands[0].buffer.data(), bytes);
  return {};
}

std::span<const KernelRow> elementwiseKernels() {
  static constexpr KernelRow rows[] = {
      unary<Numbers>("neg", []<class T>(T x) { return isReal<T> ? -x : wrappedMul<T>(x, static_cast<T>(-1)); }),
      unary<Numbers>("abs",
                     []<class T>(T x) {
                       if constexpr (isReal<T>)
                         return std::abs(x);
                       else
                         return std::is_signed_v<T> && x < 0 ? wrappedMul<T>(x, static_cast<T>(-1)) : x;
                     }),
      unary<Numbers>("sign", []<class T>(T x) { return x > 0    ? T(1)
                                                       : x < 0  ? T(-1)
                                                       : x == 0 ? T(0)
                                                                : x; }),
      unary<Floats>("exp", [](auto x) { return std::exp(x); }),
      unary<Floats>("expm1", [](auto x) { return std::expm1(x); }),
      unary<Floats>("log", [](auto x) { return std::log(x); }),
      unary<Floats>("log1p", [](auto x) { return std::log1p(x); }),
      unary<Floats>("sqrt", [](auto x) { return std::sqrt(x); }),
      unary<Floats>("rsqrt", [](auto x) { return 1 / std::sqrt(x); }),
      unary<Floats>("tanh", [](auto x) { return std::tanh(x); }),
      unary<Floats>("sigmoid", [](auto x) { return sigmoidOf(x); }),
      unary<Floats>("softplus", [](auto x) { return softplusOf(x); }),
      unary<Floats>("softsign",
                    []<class T>(T x) { return std::isinf(x) ? std::copysign(T(1), x) : x / (1 + std::fabs(x)); }),
      unary<Floats>("relu", []<class T>(T x) { return x > 0 || x != x ? x : T(0); }),
      unary<Floats>("sin", [](auto x) { return std::sin(x); }),
      unary<Floats>("cos", [](auto x) { return std::cos(x); }),
      unary<Floats>("erf", [](auto x) { return std::erf(x); }),
      unary<Floats>("floor", [](auto x) { return std::floor(x); }),
      unary<Floats>("ceil", [](auto x) { return std::ceil(x); }),
      unary<Floats>("round", [](auto x) { return std::nearbyint(x); }),
      test<Floats>("is_nan", [](auto x) { return x != x; }),
      unary<Booleans>("logical_not", [](bool x) { return !x; }),
      unary<AllTypes>("ones_like", []<class T>(T) { return T(1); }),
      unary<AllTypes>("zeros_like", []<class T>(T) { return T(0); }),
      binary<Numbers>("add", []<class T>(T a, T b) { return wrappedAdd(a, b); }),
      binary<Numbers>("sub",
                      []<class T>(T a, T b) {
                        if constexpr (isReal<T>)
                          return a - b;
                        else
                          return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
                      }),
      binary<Numbers>("mul", []<class T>(T a, T b) { return wrappedMul(a, b); }),
      binary<Floats>("div", [](auto a, auto b) { return a / b; }),
      binary<Numbers>("floor_div",
                      []<class T>(T a, T b) {
                        if constexpr (isReal<T>)
                          return std::floor(a / b);
                        else
                          return floorDivInteger(a, b);
                      }),
      binary<Numbers>("remainder",
                      []<class T>(T a, T b) {
                        if constexpr (isReal<T>)
                          return remainderFloat(a, b);
                        else
                          return remainderInteger(a, b);
                      }),
      binary<Numbers>("pow",
                      []<class T>(T a, T b) {
                        if constexpr (isReal<T>)
                          return std::pow(a, b);
                        else
                          return powInteger(a, b);
                      }),
      binary<Numbers>("maximum", [](auto a, auto b) { return maximumOf(a, b); }),
      binary<Numbers>("minimum", [](auto a, auto b) { return minimumOf(a, b); }),
      binary<Booleans>("logical_and", [](bool a, bool b) { return a & b; }),
      binary<Booleans>("logical_or", [](bool a, bool b) { return a | b; }),
      {"select", selectRule, selectKernel},
      {.name = "stop_gradient", .shape = sameTypeRule, .kernel = copyKernel, .shares = true},
      {.name = "version", .shape = sameTypeRule, .kernel = copyKernel, .shares = true},
  };
  return rows;
}

} // namespace wg::runtime
