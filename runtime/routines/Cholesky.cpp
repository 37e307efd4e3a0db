// cholesky: l l^T = (a + a^T) / 2, by blocks of columns, from left to right (Golub and Van Loan, Matrix Computations,
// 4th edition, 4.2.6). pointers: a, l (which may be a); numbers: batch, n; scratch: kBlock rows of n.
#include "runtime/routines/Blocks.h"

namespace {

constexpr int64_t kBlock = 64;

/// The first `size` rows of l from the diagonal on; whether they are positive definite.
template <class T> bool factorBlock(T *l, int64_t n, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    T *row = l + i * n;
    for (int64_t j = 0; j < i; ++j)
      row[j] = (row[j] - dot(row, l + j * n, j)) / l[j * n + j];
    T pivot = row[i] - dot(row, row, i);
    if (pivot <= 0) // a NaN goes on
      return false;
    row[i] = root(pivot);
  }
  return true;
}

template <class T> bool factor(const T *a, T *l, int64_t n, T *below) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < n; i0 += kTile)
    for (int64_t j0 = 0; j0 <= i0; j0 += kTile)
      for (int64_t i = i0; i < lesser(n, i0 + kTile); ++i)
        for (int64_t j = j0; j <= lesser(i, j0 + kTile - 1); ++j)
          l[i * n + j] = a[i * n + j] / 2 + a[j * n + i] / 2;
  for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
    int64_t size = lesser(kBlock, n - j0), rest = n - j0 - size;
    T *block = l + j0 * n + j0, *under = block + size * n;
    if (!factorBlock(block, n, size))
      return false;
    // What is below solves x block^T = under, in the transposed form: each step is one of rows.
    transposeTo(below, rest, under, n, rest, size);
    for (int64_t c0 = 0; c0 < rest; c0 += kBlock) {
      int64_t count = lesser(kBlock, rest - c0);
      for (int64_t i = 0; i < size; ++i) {
        T *row = below + i * rest + c0, pivot = block[i * n + i];
        for (int64_t q = 0; q < i; ++q)
          subtract(row, block[i * n + q], below + q * rest + c0, count);
        for (int64_t c = 0; c < count; ++c)
          row[c] /= pivot;
      }
    }
    transposeTo(under, n, below, rest, size, rest);
    for (int64_t i0 = 0; i0 < rest; i0 += kBlock)
      subtractProduct(under + i0 * n + size, n, under + i0 * n, n, below, rest, lesser(kBlock, rest - i0),
                      lesser(rest, i0 + kBlock), size);
  }
  for (int64_t i = 0; i < n; ++i)
    clear(l + i * n + i + 1, n - i - 1);
  return true;
}

template <class T> int32_t cholesky(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t n = numbers[1];
  const T *a = static_cast<const T *>(pointers[0]);
  T *l = static_cast<T *>(pointers[1]);
  if (n == 0)
    return 0;
  for (int64_t batch = numbers[0]; batch > 0; --batch, a += n * n, l += n * n)
    if (!factor(a, l, n, static_cast<T *>(scratch)))
      return 1;
  return 0;
}

} // namespace

WG_ENTRIES(cholesky, cholesky)
