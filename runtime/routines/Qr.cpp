// qr: Householder's reflections, by blocks (Golub and Van Loan, Matrix Computations, 4th edition, 5.2.3). pointers: a
// [m, n], y [m + n, k], q and then r^T; numbers: batch, m, n, k; scratch: a, taus, and a ReflectionRoom.
#include "runtime/routines/Blocks.h"

namespace {

/// The reflections of columns j0 to j0 + count of a, from row j0 on, as rows.
template <class T> void gather(T *rows, const T *a, int64_t m, int64_t n, int64_t j0, int64_t count) {
  int64_t length = m - j0;
  for (int64_t j = 0; j < count; ++j) {
    T *row = rows + j * length;
    clear(row, j);
    row[j] = 1;
    for (int64_t i = j + 1; i < length; ++i)
      row[i] = a[(j0 + i) * n + j0 + j];
  }
}

template <class T> void factor(const T *from, T *y, int64_t m, int64_t n, int64_t k, T *scratch) {
  int64_t steps = lesser(m, n);
  T *a = scratch, *taus = a + m * n, *inner = taus + steps;
  ReflectionRoom<T> room(inner + larger(m, n), m, larger(n, k));
  copy(a, from, m * n);
  for (int64_t j0 = 0; j0 < steps; j0 += kReflections) {
    int64_t count = lesser(kReflections, steps - j0), end = j0 + count;
    for (int64_t j = j0; j < end; ++j) {
      T *v = room.rows; // one at a time
      for (int64_t i = j; i < m; ++i)
        v[i - j] = a[i * n + j];
      T beta, tau = taus[j] = reflect(v, m - j, beta);
      int64_t width = end - j - 1;
      clear(inner, width);
      for (int64_t i = j; i < m; ++i)
        subtract(inner, -v[i - j], a + i * n + j + 1, width);
      for (int64_t i = j; i < m; ++i)
        subtract(a + i * n + j + 1, tau * v[i - j], inner, width);
      for (int64_t i = j + 1; i < m; ++i)
        a[i * n + j] = v[i - j];
      a[j * n + j] = beta;
    }
    if (end < n) {
      gather(room.rows, a, m, n, j0, count);
      applyReflections(room, taus + j0, count, a + j0 * n + end, n, m - j0, n - end, true);
    }
  }
  T *q = y, *r = y + m * k;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < k; ++i)
      r[j * k + i] = i <= j && i < m ? a[i * n + j] : T(0);
  clear(q, m * k);
  for (int64_t i = 0; i < k; ++i)
    q[i * k + i] = 1;
  for (int64_t j0 = (steps - 1) / kReflections * kReflections; j0 >= 0 && steps > 0; j0 -= kReflections) {
    int64_t count = lesser(kReflections, steps - j0);
    gather(room.rows, a, m, n, j0, count);
    applyReflections(room, taus + j0, count, q + j0 * k + j0, k, m - j0, k - j0, false);
  }
}

template <class T> int32_t qr(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t m = numbers[1], n = numbers[2], k = numbers[3];
  const T *a = static_cast<const T *>(pointers[0]);
  T *y = static_cast<T *>(pointers[1]);
  for (int64_t batch = k == 0 ? 0 : numbers[0]; batch > 0; --batch, a += m * n, y += (m + n) * k)
    factor(a, y, m, n, k, static_cast<T *>(scratch));
  return 0;
}

} // namespace

WG_ENTRIES(qr, qr)
