// What routines share: native vectors of the x86-64 level, and the names of their entries.
//
// Each routine is compiled once for each level, and linked into C programs: no function but the entries is visible,
// which is why everything here is in an anonymous namespace, and nothing of the C++ library is used.
#pragma once

#include "runtime/abi.h"

#include <stddef.h>

namespace {

#if WG_LEVEL == 4
constexpr int kVectorBytes = 64;
#elif WG_LEVEL == 3
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T> using Vector = T __attribute__((ext_vector_type(kVectorBytes / sizeof(T)), may_alias));

/// c - t x, rounded once where the machine can.
template <class V> inline V minusProduct(V c, V t, V x) {
#ifdef __FMA__
  return __builtin_elementwise_fma(-t, x, c);
#else
  return c - t * x;
#endif
}

} // namespace

#define WG_JOIN_(a, b) a##b
#define WG_JOIN(a, b) WG_JOIN_(a, b)
/// The entries wg_NAME_f64 and wg_NAME_f32 of a template of one type.
#define WG_ENTRIES(name, function)                                                                                     \
  extern "C" int32_t WG_JOIN(wg_##name##_f64_v, WG_LEVEL)(void *const *pointers, const int64_t *numbers,               \
                                                          void *scratch) {                                             \
    return function<double>(pointers, numbers, scratch);                                                               \
  }                                                                                                                    \
  extern "C" int32_t WG_JOIN(wg_##name##_f32_v, WG_LEVEL)(void *const *pointers, const int64_t *numbers,               \
                                                          void *scratch) {                                             \
    return function<float>(pointers, numbers, scratch);                                                                \
  }
