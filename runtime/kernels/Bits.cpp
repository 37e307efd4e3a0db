// Truncation, signs, and integers as patterns of bits.
#include "runtime/kernels/Elements.h"

#include <cmath>

namespace wg::runtime {

/// Toward 0; x / 0 = -1 (u8: 255), MIN / -1 = MIN.
template <class T> static T truncDivInteger(T a, T b) {
  if (b == 0)
    return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return wrappedMul<T>(a, -1);
  return static_cast<T>(a / b);
}

/// With the sign of a; fmod(x, 0) = x, fmod(MIN, -1) = 0.
template <class T> static T fmodInteger(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return static_cast<T>(a % b);
}

template <class T> static constexpr T kBits = static_cast<T>(8 * sizeof(T));

template <class T> static T leftShift(T a, T places) {
  return places >= 0 && places < kBits<T> ? static_cast<T>(static_cast<Wrapping<T>>(a) << places) : T(0);
}

/// Copies of the sign come from above; u8 has none.
template <class T> static T rightShift(T a, T places) {
  if (places >= 0 && places < kBits<T>)
    return static_cast<T>(a >> places);
  return static_cast<T>(a < 0 ? -1 : 0);
}

std::span<const KernelRow> bitsKernels() {
  static constexpr KernelRow rows[] = {
      unary<Floats>("trunc", [](auto x) { return std::trunc(x); }),
      binary<Numbers>("trunc_div",
                      []<class T>(T a, T b) {
                        if constexpr (std::is_floating_point_v<T>)
                          return std::trunc(a / b);
                        else
                          return truncDivInteger(a, b);
                      }),
      binary<Numbers>("fmod",
                      []<class T>(T a, T b) {
                        if constexpr (std::is_floating_point_v<T>)
                          return std::fmod(a, b);
                        else
                          return fmodInteger(a, b);
                      }),
      binary<Floats>("copysign", [](auto a, auto b) { return std::copysign(a, b); }),
      binary<Booleans>("logical_xor", [](bool a, bool b) { return a != b; }),
      binary<Integers>("bitwise_and", []<class T>(T a, T b) { return static_cast<T>(a & b); }),
      binary<Integers>("bitwise_or", []<class T>(T a, T b) { return static_cast<T>(a | b); }),
      binary<Integers>("bitwise_xor", []<class T>(T a, T b) { return static_cast<T>(a ^ b); }),
      unary<Integers>("bitwise_not", []<class T>(T x) { return static_cast<T>(~x); }),
      binary<Integers>("left_shift", []<class T>(T a, T b) { return leftShift(a, b); }),
      binary<Integers>("right_shift", []<class T>(T a, T b) { return rightShift(a, b); }),
  };
  return rows;
}

} // namespace wg::runtime
