// x with T x = b, T = op(a): substitution, by tiles of columns of b.
//
// Row p of x, in the order in which rows are found, is (b[p] - T[p, 0] x[0] - ... - T[p, p-1] x[p-1]) / T[p, p]. A tile
// of columns lies in `scratch`, its rows one after the other, and a few rows are computed side by side: what they share
// of the rows above is loaded once, and no sum waits for another. Whatever the tile, an element's terms are subtracted
// one by one in this order: its bits depend on its column of b and on T alone, not on the other columns, the batch, or
// whether T lies transposed. The error is that of substitution (Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd edition, theorem 8.5).
//
// Compiled once for each x86-64 level, and linked into C programs: no function here but the entries is visible, and
// nothing of the C++ library is used.
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

/// A triangular matrix in the order in which it is solved: element (p, q), q <= p, is at p * row + q * column.
template <class T> struct Triangle {
  const T *first;
  int64_t row, column;
  bool unit; ///< the diagonal is 1, and not read
  T at(int64_t p, int64_t q) const { return first[p * row + q * column]; }
};

/// Rows p to p + R - 1 of a tile whose rows are N of V; those above are solved.
template <int R, int N, class T, class V> inline void solveRows(const Triangle<T> &t, int64_t p, V *tile) {
  V x[R][N];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < N; ++v)
      x[r][v] = tile[(p + r) * N + v];
  const T *rows = t.first + p * t.row;
  for (int64_t q = 0; q < p; ++q, rows += t.column)
    for (int r = 0; r < R; ++r) {
      V factor = rows[r * t.row];
      for (int v = 0; v < N; ++v)
        x[r][v] = minusProduct(x[r][v], factor, tile[q * N + v]);
    }
  for (int r = 0; r < R; ++r) {
    for (int q = 0; q < r; ++q) {
      V factor = t.at(p + r, p + q);
      for (int v = 0; v < N; ++v)
        x[r][v] = minusProduct(x[r][v], factor, x[q][v]);
    }
    if (!t.unit) {
      V divisor = t.at(p + r, p + r);
      for (int v = 0; v < N; ++v)
        x[r][v] = x[r][v] / divisor;
    }
    for (int v = 0; v < N; ++v)
      tile[(p + r) * N + v] = x[r][v];
  }
}

/// `columns` columns of b from the first of `b` on, to the same places of x.
template <int R, int N, class V, class T>
void solveTile(const Triangle<T> &t, int64_t n, bool down, int64_t k, int64_t columns, const T *b, T *x,
               void *scratch) {
  constexpr size_t rowBytes = N * sizeof(V);
  size_t bytes = static_cast<size_t>(columns) * sizeof(T);
  auto placeOf = [&](int64_t p) { return (down ? p : n - 1 - p) * k; };
  auto rowOf = [&](int64_t p) { return static_cast<char *>(scratch) + static_cast<size_t>(p) * rowBytes; };
  for (int64_t p = 0; p < n; ++p) {
    __builtin_memcpy(rowOf(p), b + placeOf(p), bytes);
    if (bytes < rowBytes)
      __builtin_memset(rowOf(p) + bytes, 0, rowBytes - bytes);
  }
  V *tile = static_cast<V *>(scratch);
  int64_t p = 0;
  for (; p + R <= n; p += R)
    solveRows<R, N, T>(t, p, tile);
  for (; p < n; ++p)
    solveRows<1, N, T>(t, p, tile);
  for (p = 0; p < n; ++p)
    __builtin_memcpy(x + placeOf(p), rowOf(p), bytes);
}

template <class T> int32_t solve(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t batch = numbers[0], n = numbers[1], k = numbers[2];
  bool lower = numbers[3], transpose = numbers[4], unit = numbers[5];
  const T *a = static_cast<const T *>(pointers[0]), *b = static_cast<const T *>(pointers[1]);
  T *x = static_cast<T *>(pointers[2]);
  bool down = lower != transpose; // T is a lower triangle: its first row is found first
  int64_t row = transpose ? 1 : n, column = transpose ? n : 1;
  constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  if (n == 0 || k == 0)
    return 0;
  for (; batch > 0; --batch, a += n * n, b += n * k, x += n * k) {
    Triangle<T> t{down ? a : a + n * n - 1, down ? row : -row, down ? column : -column, unit};
    for (int64_t j = 0; j < k;) {
      int64_t left = k - j;
      if (left > kLanes) { // two vectors, of which the last may be in part beyond b
        left = left < 2 * kLanes ? left : 2 * kLanes;
        solveTile<4, 2, Vector<T>>(t, n, down, k, left, b + j, x + j, scratch);
      } else if (left >= 4 || left == kLanes) {
        solveTile<8, 1, Vector<T>>(t, n, down, k, left, b + j, x + j, scratch);
      } else {
        solveTile<8, 1, T>(t, n, down, k, left = 1, b + j, x + j, scratch);
      }
      j += left;
    }
  }
  return 0;
}

} // namespace

#define WG_JOIN_(a, b) a##b
#define WG_JOIN(a, b) WG_JOIN_(a, b)
// pointers: a, b, x (which may be b); numbers: batch, n, k, lower, transpose, unit_diagonal; scratch: 128 n bytes, two
// vectors of the widest level for each row.
extern "C" int32_t WG_JOIN(wg_triangular_solve_f64_v, WG_LEVEL)(void *const *pointers, const int64_t *numbers,
                                                                void *scratch) {
  return solve<double>(pointers, numbers, scratch);
}
extern "C" int32_t WG_JOIN(wg_triangular_solve_f32_v, WG_LEVEL)(void *const *pointers, const int64_t *numbers,
                                                                void *scratch) {
  return solve<float>(pointers, numbers, scratch);
}
