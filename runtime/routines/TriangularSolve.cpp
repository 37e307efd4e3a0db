// triangular_solve. pointers: a, b, x (which may be b); numbers: batch, n, k, lower, transpose, unit_diagonal;
// scratch: 128 n bytes, two vectors of the widest level for each row.
#include "runtime/routines/Substitution.h"

namespace {

template <class T> int32_t solve(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t n = numbers[1], k = numbers[2];
  const T *a = static_cast<const T *>(pointers[0]), *b = static_cast<const T *>(pointers[1]);
  T *x = static_cast<T *>(pointers[2]);
  if (n == 0 || k == 0)
    return 0;
  for (int64_t batch = numbers[0]; batch > 0; --batch, a += n * n, b += n * k, x += n * k)
    substitute(a, b, x, n, k, numbers[3] != 0, numbers[4] != 0, numbers[5] != 0, scratch);
  return 0;
}

} // namespace

WG_ENTRIES(triangular_solve, solve)
