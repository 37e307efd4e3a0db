// lu: Gaussian elimination with partial pivoting, by blocks of columns, from left to right (Golub and Van Loan, Matrix
// Computations, 4th edition, 3.4 and 3.6); lu_solve: equations by it.
#include "runtime/routines/Blocks.h"
#include "runtime/routines/Substitution.h"

namespace {

constexpr int64_t kBlock = 32;

/// a [n, n] in place, and the permutation; whether no pivot is 0.
template <class T> bool factor(T *a, int64_t n, T *permutation) {
  bool regular = true;
  for (int64_t i = 0; i < n; ++i)
    permutation[i] = static_cast<T>(i);
  for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
    int64_t size = lesser(kBlock, n - j0), end = j0 + size;
    for (int64_t j = j0; j < end; ++j) {
      int64_t at = j;
      for (int64_t i = j + 1; i < n; ++i)
        if (absolute(a[i * n + j]) > absolute(a[at * n + j]))
          at = i;
      T *row = a + j * n, pivot = a[at * n + j];
      if (pivot == 0) {
        regular = false;
        continue; // nothing to eliminate
      }
      if (at != j) {
        swapRows(row, a + at * n, n);
        swapRows(permutation + j, permutation + at, 1);
      }
      for (int64_t i = j + 1; i < n; ++i) {
        T *below = a + i * n;
        below[j] /= pivot;
        subtract(below + j + 1, below[j], row + j + 1, end - j - 1);
      }
    }
    int64_t rest = n - end;
    constexpr int64_t kStrip = 128;
    for (int64_t c = end; c < n; c += kStrip)
      for (int64_t i = j0 + 1; i < end; ++i)
        for (int64_t q = j0; q < i; ++q)
          subtract(a + i * n + c, a[i * n + q], a + q * n + c, lesser(kStrip, n - c));
    subtractProduct(a + end * n + end, n, a + end * n + j0, n, a + j0 * n + end, n, rest, rest, size);
  }
  return regular;
}

/// pointers: a, y [n + 1, n], whose last row is the permutation; numbers: batch, n, regular.
template <class T> int32_t lu(void *const *pointers, const int64_t *numbers, void *) {
  int64_t n = numbers[1];
  const T *a = static_cast<const T *>(pointers[0]);
  T *y = static_cast<T *>(pointers[1]);
  if (n == 0)
    return 0;
  for (int64_t batch = numbers[0]; batch > 0; --batch, a += n * n, y += n * n + n) {
    copy(y, a, n * n);
    if (!factor(y, n, y + n * n) && numbers[2] != 0)
      return 1;
  }
  return 0;
}

/// pointers: lu [n + 1, n], b [n, k], x [n, k]; numbers: batch, n, k, transpose; scratch: 128 n bytes, and n k
/// elements.
template <class T> int32_t luSolve(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t n = numbers[1], k = numbers[2];
  bool transpose = numbers[3] != 0;
  const T *y = static_cast<const T *>(pointers[0]), *b = static_cast<const T *>(pointers[1]);
  T *x = static_cast<T *>(pointers[2]), *inner = reinterpret_cast<T *>(static_cast<char *>(scratch) + 128 * n);
  if (n == 0 || k == 0)
    return 0;
  for (int64_t batch = numbers[0]; batch > 0; --batch, y += n * n + n, b += n * k, x += n * k) {
    const T *permutation = y + n * n;
    for (int64_t i = 0; i < n; ++i)
      if (!(permutation[i] >= 0 && permutation[i] < static_cast<T>(n)))
        return 1;
    auto placeOf = [&](int64_t i) { return static_cast<int64_t>(permutation[i]) * k; };
    if (transpose) { // a^T = u^T l^T p
      substitute(y, b, inner, n, k, false, true, false, scratch);
      substitute(y, inner, inner, n, k, true, true, true, scratch);
      for (int64_t i = 0; i < n; ++i)
        copy(x + placeOf(i), inner + i * k, k);
    } else {
      for (int64_t i = 0; i < n; ++i)
        copy(x + i * k, b + placeOf(i), k);
      substitute(y, x, x, n, k, true, false, true, scratch);
      substitute(y, x, x, n, k, false, false, false, scratch);
    }
  }
  return 0;
}

} // namespace

WG_ENTRIES(lu, lu)
WG_ENTRIES(lu_solve, luSolve)
