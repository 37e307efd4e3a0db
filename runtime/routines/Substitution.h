// x with T x = b, T = op(a): substitution, by tiles of columns of b.
//
// Row p of x, in the order in which rows are found, is (b[p] - T[p, 0] x[0] - ... - T[p, p-1] x[p-1]) / T[p, p]. A
// tile of columns lies in `scratch`, its rows one after the other, and a few rows are computed side by side: what
// they share of the rows above is loaded once, and no sum waits for another. Whatever the tile, an element's terms
// are subtracted one by one in this order: its bits depend on its column of b and on T alone, not on the other
// columns, the batch, or whether T lies transposed. The error is that of substitution (Higham, Accuracy and Stability
// of Numerical Algorithms, 2nd edition, theorem 8.5).
#pragma once

#include "runtime/routines/Vectors.h"

namespace {

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

/// x with T x = b for all k columns, T of the triangle `a`. `scratch`: 128 n bytes.
template <class T>
void substitute(const T *a, const T *b, T *x, int64_t n, int64_t k, bool lower, bool transpose, bool unit,
                void *scratch) {
  bool down = lower != transpose; // T is a lower triangle: its first row is found first
  int64_t row = transpose ? 1 : n, column = transpose ? n : 1;
  constexpr int64_t kLanes = kVectorBytes / sizeof(T);
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

} // namespace
