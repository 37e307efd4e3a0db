// What the families of kernels/ share: dispatch over dtypes, checks with their words, walks over strided elements.
// Private to kernels/. Every file here is compiled once for each x86-64 level; see ../CMakeLists.txt.
#pragma once

#include "runtime/Op.h"
#include "runtime/ThreadPool.h"

#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace wg::runtime {

// The tables, one a family; Table.cpp joins them.
std::span<const KernelRow> elementwiseKernels();
std::span<const KernelRow> specialKernels();
std::span<const KernelRow> bitsKernels();
std::span<const KernelRow> compareKernels();
std::span<const KernelRow> castKernels();
std::span<const KernelRow> reduceKernels();
std::span<const KernelRow> contractKernels();
std::span<const KernelRow> shapeKernels();
std::span<const KernelRow> indexKernels();
std::span<const KernelRow> indexUpdateKernels();
std::span<const KernelRow> cumulativeKernels();
std::span<const KernelRow> sortKernels();
std::span<const KernelRow> randomKernels();
std::span<const KernelRow> linalgKernels();
std::span<const KernelRow> hostKernels();

// ---- Dtypes ---------------------------------------------------------------------------------------------------------
template <class... Ts> struct Types {};
using Floats = Types<double, float>;
using Indices = Types<int64_t, int32_t>;
using Integers = Types<int64_t, int32_t, uint8_t>;
using Numbers = Types<double, float, int64_t, int32_t, uint8_t>;
using Booleans = Types<bool>;
using AllTypes = Types<double, float, int64_t, int32_t, uint8_t, bool>;
template <class T, class Set> inline constexpr bool isIn = false;
template <class T, class... Ts> inline constexpr bool isIn<T, Types<Ts...>> = (std::same_as<T, Ts> || ...);

/// `%op has no kernel for bf16`
inline Status noKernel(DType dtype) {
  return Failure{.kind = ErrorKind::unimplemented,
                 .message = "there are no kernels for " + std::string(nameOf(dtype)),
                 .remedy = "cast to f32: cast(x, f32)"};
}

/// Calls f(T()) with the type of `Set` that stands for `dtype`; f returns Status.
template <class... Ts, class F> Status visit(Types<Ts...>, DType dtype, F f) {
  Status status;
  bool found = ((dtype == dtypeOf<Ts> ? (status = f(Ts()), true) : false) || ...);
  return found ? std::move(status) : noKernel(dtype);
}

/// Calls f(B()) with an integer of the dtype's width: for kernels that move elements and do not look at them.
template <class F> void visitWidth(DType dtype, F f) {
  switch (sizeOf(dtype)) {
  case 8: return f(uint64_t());
  case 4: return f(uint32_t());
  case 2: return f(uint16_t());
  default: return f(uint8_t());
  }
}

// ---- Integers that wrap ---------------------------------------------------------------------------------------------
/// The unsigned type in which arithmetic modulo 2^n is defined.
template <class T> using Wrapping = std::make_unsigned_t<T>;
template <class T> T wrappedAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  else
    return a + b;
}
template <class T> T wrappedMul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  else
    return a * b;
}

// ---- The extremes, by the rules of docs/numbers.md ------------------------------------------------------------------
/// The bits of a float, for the signs of zeros.
template <class T> using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
/// NaN if either is NaN; max(-0, 0) = 0. Of equal operands the bits are the same, or they
/// are zeros: `and` clears the sign.
template <class T> T maximumOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T equal = __builtin_bit_cast(T, __builtin_bit_cast(BitsOf<T>, a) & __builtin_bit_cast(BitsOf<T>, b));
    return a == b ? equal : (a > b || a != a) ? a : b;
  } else {
    return a > b ? a : b;
  }
}
template <class T> T minimumOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T equal = __builtin_bit_cast(T, __builtin_bit_cast(BitsOf<T>, a) | __builtin_bit_cast(BitsOf<T>, b));
    return a == b ? equal : (a < b || a != a) ? a : b;
  } else {
    return a < b ? a : b;
  }
}

// ---- Words ----------------------------------------------------------------------------------------------------------
inline std::string words(const char *text) { return text; }
inline std::string words(const std::string &text) { return text; }
inline std::string words(std::string_view text) { return std::string(text); }
inline std::string words(int64_t value) { return value == kDynamic ? "?" : std::to_string(value); }
inline std::string words(const Ints &values) { return toString(values); }
inline std::string words(const TensorType &type) { return toString(type); }
template <class... Ts> std::string say(const Ts &...parts) { return (words(parts) + ...); }

// ---- Checks that many rules need ------------------------------------------------------------------------------------
/// Equal sizes, as far as the types tell: `?` may be anything.
inline bool mayBeEqual(int64_t a, int64_t b) { return a == b || a == kDynamic || b == kDynamic; }
/// The static one of two sizes that must be equal.
inline int64_t known(int64_t a, int64_t b) { return a == kDynamic ? b : a; }
/// `axis 3 is not an axis of f32[2,3]`
Status checkAxis(int64_t axis, const TensorType &x);
/// Sorted, distinct and in range.
Status checkAxes(const Ints &axes, const TensorType &x);
/// No size but `?` is negative, and the elements can be counted.
Status checkSizes(const Ints &shape);
/// `indices` is an integer tensor.
Status checkIndex(const char *name, const TensorType &type);

// ---- Shapes at run time ---------------------------------------------------------------------------------------------
/// Distance in elements between neighbours along each axis of a contiguous tensor.
inline Ints stridesOf(const Shape &shape) {
  Ints strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}
inline int64_t product(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

/// Where an element lies.
inline const char *at(const Array &array, int64_t element) {
  return static_cast<const char *>(array.buffer.data()) + static_cast<size_t>(element) * sizeOf(array.dtype());
}
inline char *at(Array &array, int64_t element) { return const_cast<char *>(at(std::as_const(array), element)); }

/// out[sum i_a outStrides_a] = in[sum i_a inStrides_a] for every index i below `sizes`; strides in elements of `dtype`.
void copyStrided(DType dtype, const Ints &sizes, const void *in, const Ints &inStrides, void *out,
                 const Ints &outStrides);

/// c[m, n] = a b for float and double: a is [m, k] or, if aT, [k, m]; b is [k, n] or, if bT, [n, k];
/// all row-major, rows `ld` apart.
template <class T>
void blockedProduct(int64_t m, int64_t n, int64_t k, bool aT, const T *a, int64_t lda, bool bT, const T *b, int64_t ldb,
                    T *c, int64_t ldc);

/// c += a b, likewise.
template <class T>
void addBlockedProduct(int64_t m, int64_t n, int64_t k, bool aT, const T *a, int64_t lda, bool bT, const T *b,
                       int64_t ldb, T *c, int64_t ldc);

/// f(begin, end) over [0, count) in chunks of at least `grain`, on the pool where the whole is worth it. The result
/// must not depend on where the chunks end.
template <class F> void forChunks(int64_t count, int64_t grain, F f) {
  if (count <= grain)
    return f(int64_t(0), count);
  int64_t chunks = (count + grain - 1) / grain;
  parallelFor(chunks, [&](int64_t chunk) { f(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

} // namespace wg::runtime
