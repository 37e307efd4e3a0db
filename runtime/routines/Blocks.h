// What factorisations are made of: products of blocks, sums of vectors, Householder's reflections and plane rotations.
// Matrices are row-major, each with the distance of its rows.
#pragma once

#include "runtime/routines/Vectors.h"

namespace {

template <class T> constexpr int64_t kLanesOf = static_cast<int64_t>(kVectorBytes / sizeof(T));
template <class T> constexpr T kEps = sizeof(T) == 8 ? T(0x1p-52) : T(0x1p-23);

/// Vectors anywhere in memory.
template <class T> inline Vector<T> vectorAt(const T *x) {
  Vector<T> v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
template <class T> inline void store(T *x, Vector<T> v) { __builtin_memcpy(x, &v, sizeof v); }

inline double absolute(double x) { return __builtin_fabs(x); }
inline float absolute(float x) { return __builtin_fabsf(x); }
inline double root(double x) { return __builtin_sqrt(x); }
inline float root(float x) { return __builtin_sqrtf(x); }
template <class T> inline T withSign(T x, T sign) {
  return sign < 0 || (sign == 0 && 1 / sign < 0) ? -absolute(x) : absolute(x);
}
inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

/// sqrt(a^2 + b^2), whose squares neither overflow nor vanish.
template <class T> inline T hypotenuse(T a, T b) {
  a = absolute(a), b = absolute(b);
  T high = a < b ? b : a, low = a < b ? a : b, ratio = low / high;
  return high == 0 ? T(0) : high * root(1 + ratio * ratio);
}

// -- Vectors
// ------------------------------------------------------------------------------------------------------------

/// The sum of x[i] y[i], by lanes.
template <class T> inline T dot(const T *x, const T *y, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  Vector<T> a = 0, b = 0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = -minusProduct<Vector<T>>(-a, vectorAt(x + i), vectorAt(y + i));
    b = -minusProduct<Vector<T>>(-b, vectorAt(x + i + kLanes), vectorAt(y + i + kLanes));
  }
  a += b;
  T sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    sum += a[lane];
  for (; i < n; ++i)
    sum += x[i] * y[i];
  return sum;
}

/// y -= factor x
template <class T> inline void subtract(T *y, T factor, const T *x, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, minusProduct<Vector<T>>(vectorAt(y + i), Vector<T>(factor), vectorAt(x + i)));
  for (; i < n; ++i)
    y[i] = minusProduct(y[i], factor, x[i]);
}

template <class T> inline void copy(T *y, const T *x, int64_t n) {
  __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
}
template <class T> inline void clear(T *y, int64_t n) { __builtin_memset(y, 0, static_cast<size_t>(n) * sizeof(T)); }
template <class T> inline void swapRows(T *x, T *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T held = x[i];
    x[i] = y[i];
    y[i] = held;
  }
}
template <class T> inline T largestOf(const T *x, int64_t n) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i)
    most = absolute(x[i]) > most ? absolute(x[i]) : most;
  return most;
}
template <class T> inline bool isFinite(const T *x, int64_t n) {
  T sum = 0; // 0 x is 0 or NaN
  for (int64_t i = 0; i < n; ++i)
    sum += 0 * x[i];
  return sum == 0;
}
template <class T> inline void fillNan(T *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    x[i] = static_cast<T>(__builtin_nan(""));
}

/// The power of two that brings numbers of this magnitude near 1, so that squares of them neither overflow nor vanish.
template <class T> inline T scaleFor(T largest) {
  T scale = 1;
  if (largest > 0) {
    for (; largest * scale >= 2 && scale > (sizeof(T) == 8 ? T(0x1p-1000) : T(0x1p-120)); scale *= T(0.5)) {
    }
    for (; largest * scale < 1 && scale < (sizeof(T) == 8 ? T(0x1p1000) : T(0x1p120)); scale *= 2) {
    }
  }
  return scale;
}

// -- Matrices
// -----------------------------------------------------------------------------------------------------------

/// y[j, i] = x[i, j] for x [m, n], by tiles.
template <class T> void transposeTo(T *y, int64_t toY, const T *x, int64_t toX, int64_t m, int64_t n) {
  constexpr int64_t kTile = 16;
  for (int64_t i0 = 0; i0 < m; i0 += kTile)
    for (int64_t j0 = 0; j0 < n; j0 += kTile)
      for (int64_t i = i0; i < lesser(m, i0 + kTile); ++i)
        for (int64_t j = j0; j < lesser(n, j0 + kTile); ++j)
          y[j * toY + i] = x[i * toX + j];
}

/// R rows and N vectors of c -= a b.
template <int R, int N, class T>
inline void subtractTile(T *c, int64_t toC, const T *a, int64_t toA, const T *b, int64_t toB, int64_t k) {
  constexpr int64_t kLanes = kLanesOf<T>;
  Vector<T> sums[R][N];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < N; ++v)
      sums[r][v] = vectorAt(c + r * toC + v * kLanes);
  for (int64_t l = 0; l < k; ++l)
    for (int r = 0; r < R; ++r) {
      Vector<T> factor = a[r * toA + l];
      for (int v = 0; v < N; ++v)
        sums[r][v] = minusProduct<Vector<T>>(sums[r][v], factor, vectorAt(b + l * toB + v * kLanes));
    }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < N; ++v)
      store(c + r * toC + v * kLanes, sums[r][v]);
}

template <int R, class T>
inline void subtractRows(T *c, int64_t toC, const T *a, int64_t toA, const T *b, int64_t toB, int64_t n, int64_t k) {
  constexpr int64_t kLanes = kLanesOf<T>;
  int64_t j = 0;
  for (; R == 1 && j + 8 * kLanes <= n; j += 8 * kLanes) // one row alone: more sums, none of which waits for another
    subtractTile<R, 8>(c + j, toC, a, toA, b + j, toB, k);
  for (; j + 2 * kLanes <= n; j += 2 * kLanes)
    subtractTile<R, 2>(c + j, toC, a, toA, b + j, toB, k);
  for (; j + kLanes <= n; j += kLanes)
    subtractTile<R, 1>(c + j, toC, a, toA, b + j, toB, k);
  for (; j < n; ++j)
    for (int r = 0; r < R; ++r) {
      T sum = c[r * toC + j];
      for (int64_t l = 0; l < k; ++l)
        sum = minusProduct(sum, a[r * toA + l], b[l * toB + j]);
      c[r * toC + j] = sum;
    }
}

/// c [m, n] -= a [m, k] b [k, n]; each element's terms one after the other.
template <class T>
void subtractProduct(T *c, int64_t toC, const T *a, int64_t toA, const T *b, int64_t toB, int64_t m, int64_t n,
                     int64_t k) {
  constexpr int kRows = WG_LEVEL == 4 ? 8 : 4;
  constexpr int64_t kDepth = 256; // of b, so that its columns stay near
  for (int64_t l = 0; l < k; l += kDepth) {
    int64_t depth = lesser(kDepth, k - l), i = 0;
    for (; i + kRows <= m; i += kRows)
      subtractRows<kRows>(c + i * toC, toC, a + i * toA + l, toA, b + l * toB, toB, n, depth);
    for (; i < m; ++i)
      subtractRows<1>(c + i * toC, toC, a + i * toA + l, toA, b + l * toB, toB, n, depth);
  }
}

// -- Reflections
// --------------------------------------------------------------------------------------------------------

/// tau of H = 1 - tau v v^T with H x = (beta, 0, ...), v[0] = 1; x becomes v, and `beta` has the sign opposite to x[0]
/// (as LAPACK's larfg). Of an x that is (x[0], 0, ...) H is 1.
template <class T> inline T reflect(T *x, int64_t n, T &beta) {
  T most = largestOf(x + 1, n - 1), scale = 1;
  beta = x[0];
  if (most == 0) {
    x[0] = 1;
    return 0;
  }
  most = most < absolute(beta) ? absolute(beta) : most;
  if (constexpr T kSmall = sizeof(T) == 8 ? T(0x1p-400) : T(0x1p-50); most < kSmall || most > 1 / kSmall) {
    scale = scaleFor(most);
    for (int64_t i = 0; i < n; ++i)
      x[i] *= scale;
  }
  T first = x[0], length = -withSign(hypotenuse(first, root(dot(x + 1, x + 1, n - 1))), first),
    divisor = first - length;
  beta = length / scale;
  x[0] = 1;
  for (int64_t i = 1; i < n; ++i)
    x[i] /= divisor;
  return (length - first) / length;
}

constexpr int64_t kReflections = 32;

/// Places in scratch for applyReflections: of reflections of length m, on n columns.
template <class T> struct ReflectionRoom {
  T *rows;    ///< [kReflections, m]: v
  T *columns; ///< [m, kReflections]
  T *inner;   ///< [kReflections, n]
  T *t;       ///< [kReflections, kReflections]
  ReflectionRoom(T *scratch, int64_t m, int64_t n)
      : rows(scratch), columns(rows + kReflections * m), inner(columns + kReflections * m),
        t(inner + kReflections * n) {}
  /// In elements.
  static T *after(T *scratch, int64_t m, int64_t n) {
    return scratch + kReflections * (2 * m + n) + kReflections * kReflections;
  }
};

/// x [m, n] becomes H x or, with `transpose`, H^T x, H = H_0 H_1 ... of the `count` reflections in room.rows, zeros
/// before their ones: H = 1 - V t V^T (Schreiber and Van Loan 1989).
template <class T>
void applyReflections(const ReflectionRoom<T> &room, const T *taus, int64_t count, T *x, int64_t toX, int64_t m,
                      int64_t n, bool transpose) {
  const T *v = room.rows;
  T *t = room.t;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < j; ++i)
      t[i * count + j] = -taus[j] * dot(v + i * m, v + j * m, m);
    for (int64_t i = 0; i < j; ++i) { // t's upper part times that, from above: row i needs the rows from i on
      T sum = 0;
      for (int64_t l = i; l < j; ++l)
        sum += t[i * count + l] * t[l * count + j];
      t[i * count + j] = sum;
    }
    t[j * count + j] = taus[j];
  }
  transposeTo(room.columns, count, v, m, count, m);
  clear(room.inner, count * n);
  subtractProduct(room.inner, n, v, m, x, toX, count, n, m); // -V^T x
  // Times -t, in place: t is an upper triangle, so row i needs those from i on, and its transpose those up to i.
  for (int64_t step = 0; step < count; ++step) {
    int64_t i = transpose ? count - 1 - step : step;
    T *row = room.inner + i * n;
    for (int64_t c = 0; c < n; ++c)
      row[c] *= -t[i * count + i];
    for (int64_t l = transpose ? 0 : i + 1; l < (transpose ? i : count); ++l)
      subtract(row, transpose ? t[l * count + i] : t[i * count + l], room.inner + l * n, n);
  }
  subtractProduct(x, toX, room.columns, count, room.inner, n, m, n, count);
}

// -- Rotations
// ----------------------------------------------------------------------------------------------------------

/// Of rows x, x + step, ...: row i becomes c[i] row i + s[i] row i + 1, and row i + 1 c[i] row i + 1 - s[i] row i, for
/// i = 0, 1, ... Each row is read and written once.
template <class T> void rotateRows(T *x, int64_t step, int64_t count, const T *c, const T *s, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  constexpr int kWide = 4;
  int64_t j = 0;
  for (; j + kWide * kLanes <= n; j += kWide * kLanes) {
    Vector<T> held[kWide];
    T *row = x + j;
    for (int v = 0; v < kWide; ++v)
      held[v] = vectorAt(row + v * kLanes);
    for (int64_t i = 0; i < count; ++i, row += step) {
      Vector<T> cosine = c[i], sine = s[i];
      for (int v = 0; v < kWide; ++v) {
        Vector<T> next = vectorAt(row + step + v * kLanes);
        store(row + v * kLanes, minusProduct<Vector<T>>(cosine * held[v], -sine, next));
        held[v] = minusProduct<Vector<T>>(cosine * next, sine, held[v]);
      }
    }
    for (int v = 0; v < kWide; ++v)
      store(row + v * kLanes, held[v]);
  }
  for (; j < n; ++j) {
    T *row = x + j, held = *row;
    for (int64_t i = 0; i < count; ++i, row += step) {
      T next = row[step];
      *row = minusProduct(c[i] * held, -s[i], next);
      held = minusProduct(c[i] * next, s[i], held);
    }
    *row = held;
  }
}

/// -1 if the first of n numbers, `step` apart, that has at least half the largest magnitude is negative, else 1.
template <class T> inline T signOf(const T *x, int64_t n, int64_t step) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i)
    most = absolute(x[i * step]) > most ? absolute(x[i * step]) : most;
  for (int64_t i = 0; i < n; ++i)
    if (absolute(x[i * step]) >= most / 2)
      return x[i * step] < 0 ? T(-1) : T(1);
  return 1;
}

} // namespace
