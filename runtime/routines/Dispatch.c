/* libwengert_rt.a: each routine by its symbol, in the form for the machine's x86-64 level. (In the runtime itself the
 * table of External.cpp does this.) */
#include "runtime/abi.h"

static int level(void) {
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2")))
    return 2;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl")
             ? 4
             : 3;
}

#define WG_ROUTINE(name)                                                                                               \
  int32_t wg_##name##_v2(void *const *, const int64_t *, void *);                                                      \
  int32_t wg_##name##_v3(void *const *, const int64_t *, void *);                                                      \
  int32_t wg_##name##_v4(void *const *, const int64_t *, void *);                                                      \
  int32_t wg_##name(void *const *pointers, const int64_t *numbers, void *scratch) {                                    \
    int of = level();                                                                                                  \
    return (of == 4 ? wg_##name##_v4 : of == 3 ? wg_##name##_v3 : wg_##name##_v2)(pointers, numbers, scratch);         \
  }
#include "runtime/routines/Routines.inc"
