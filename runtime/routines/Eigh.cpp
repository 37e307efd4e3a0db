// eigh: eigenvalues and vectors of (a + a^T) / 2, by Householder's tridiagonal form and implicit QL steps (Golub and
// Van Loan, Matrix Computations, 4th edition, 8.3; the step is that of Martin and Wilkinson 1968). pointers: a, y [n
// + 1, n], the vectors and then the values, or y [n]; numbers: batch, n, vectors; scratch: a, vectors, and a
// ReflectionRoom.
#include "runtime/routines/Blocks.h"

namespace {

/// x -= f y + g z, and the sum of x[i] u[i] after that.
template <class T> inline T updateAndDot(T *x, T f, const T *y, T g, const T *z, const T *u, int64_t n) {
  constexpr int64_t kLanes = kLanesOf<T>;
  Vector<T> sums = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vector<T> each = minusProduct<Vector<T>>(vectorAt(x + i), Vector<T>(f), vectorAt(y + i));
    each = minusProduct<Vector<T>>(each, Vector<T>(g), vectorAt(z + i));
    store(x + i, each);
    sums = minusProduct<Vector<T>>(sums, -each, vectorAt(u + i));
  }
  T sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    sum += sums[lane];
  for (; i < n; ++i) {
    x[i] = minusProduct(minusProduct(x[i], f, y[i]), g, z[i]);
    sum += x[i] * u[i];
  }
  return sum;
}

/// The diagonal d and what is beside it, e; row j of a, from the diagonal on, becomes the reflection that made e[j].
/// The update of a by one reflection and its product with the next are one pass.
template <class T> void tridiagonalize(T *a, T *d, T *e, T *taus, T *p, T *w, int64_t n) {
  const T *v = nullptr; // the reflection before, from row j on, with w from there on too
  for (int64_t j = 0; j < n; ++j) {
    T *row = a + j * n;
    if (v) // row j of a -= v w^T + w v^T
      updateAndDot(row + j, v[0], w, w[0], v, v, n - j);
    d[j] = row[j];
    if (j == n - 1)
      break;
    int64_t size = n - j - 1;
    T *next = row + j + 1, tau = taus[j] = reflect(next, size, e[j]);
    for (int64_t i = 0; i < size; ++i) {
      T *below = a + (j + 1 + i) * n + j + 1;
      p[i] = v ? updateAndDot(below, v[i + 1], w + 1, w[i + 1], v + 1, next, size) : dot(below, next, size);
    }
    T inner = dot(p, next, size);
    for (int64_t i = 0; i < size; ++i)
      w[i] = tau * (p[i] - tau / 2 * inner * next[i]);
    v = next;
  }
}

/// Eigenvalues of the tridiagonal form, in d; each step's rotations are done to the n rows of z, if there is one.
/// Whether it converges.
template <class T> bool iterate(T *d, T *e, T *z, T *c, T *s, int64_t n) {
  constexpr int kMostSteps = 100;
  e[n - 1] = 0;
  T norm = 0;
  for (int64_t i = 0; i < n; ++i)
    norm = absolute(d[i]) + absolute(e[i]) > norm ? absolute(d[i]) + absolute(e[i]) : norm;
  for (int64_t l = 0; l < n; ++l)
    for (int steps = 0;; ++steps) {
      int64_t m = l;
      while (m < n - 1 && absolute(e[m]) > kEps<T> / 2 * (absolute(d[m]) + absolute(d[m + 1])) + kEps<T> / 8 * norm)
        ++m;
      if (m == l)
        break;
      if (steps == kMostSteps)
        return false;
      T g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypotenuse(g, T(1));
      g = d[m] - d[l] + e[l] / (g + withSign(r, g));
      T sine = 1, cosine = 1, p = 0;
      int64_t i = m - 1, count = 0;
      for (; i >= l; --i) {
        T f = sine * e[i], b = cosine * e[i];
        e[i + 1] = r = hypotenuse(f, g);
        if (r == 0) { // it splits here
          d[i + 1] -= p;
          e[m] = 0;
          break;
        }
        sine = f / r;
        cosine = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * sine + 2 * cosine * b;
        p = sine * r;
        d[i + 1] = g + p;
        g = cosine * r - b;
        c[count] = cosine;
        s[count++] = sine;
      }
      if (z)
        rotateRows(z + m * n, -n, count, c, s, n);
      if (i >= l)
        continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  return true;
}

template <class T> bool decompose(const T *from, T *y, int64_t n, bool vectors, T *scratch) {
  T *a = scratch, *d = a + n * n, *e = d + n, *taus = e + n, *c = taus + n, *s = c + n;
  ReflectionRoom<T> room(s + n, n, n);
  if (!isFinite(from, n * n)) {
    fillNan(y, vectors ? n * n + n : n);
    return true;
  }
  T scale = scaleFor(largestOf(from, n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j)
      a[i * n + j] = a[j * n + i] = from[i * n + j] * scale / 2 + from[j * n + i] * scale / 2;
  tridiagonalize(a, d, e, taus, c, s, n);
  T *values = vectors ? y + n * n : y;
  if (vectors) { // a becomes the product of the reflections, transposed
    clear(y, n * n);
    for (int64_t i = 0; i < n; ++i)
      y[i * n + i] = 1;
    for (int64_t j0 = (n - 1) / kReflections * kReflections; j0 >= 0; j0 -= kReflections) {
      int64_t count = lesser(kReflections, n - 1 - j0), length = n - 1 - j0;
      if (count <= 0)
        continue;
      for (int64_t j = 0; j < count; ++j) {
        clear(room.rows + j * length, j);
        copy(room.rows + j * length + j, a + (j0 + j) * n + j0 + j + 1, length - j);
      }
      applyReflections(room, taus + j0, count, y + (j0 + 1) * n + j0 + 1, n, length, length, false);
    }
    transposeTo(a, n, y, n, n, n);
  }
  if (!iterate(d, e, vectors ? a : nullptr, c, s, n))
    return false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (d[j] < d[at])
        at = j;
    if (at != i) {
      swapRows(d + i, d + at, 1);
      if (vectors)
        swapRows(a + i * n, a + at * n, n);
    }
    values[i] = d[i] / scale;
    if (vectors && signOf(a + i * n, n, 1) < 0)
      for (int64_t j = 0; j < n; ++j)
        a[i * n + j] = -a[i * n + j];
  }
  if (vectors)
    transposeTo(y, n, a, n, n, n);
  return true;
}

template <class T> int32_t eigh(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t n = numbers[1];
  bool vectors = numbers[2] != 0;
  const T *a = static_cast<const T *>(pointers[0]);
  T *y = static_cast<T *>(pointers[1]);
  for (int64_t batch = n == 0 ? 0 : numbers[0]; batch > 0; --batch, a += n * n, y += vectors ? n * n + n : n)
    if (!decompose(a, y, n, vectors, static_cast<T *>(scratch)))
      return 1;
  return 0;
}

} // namespace

WG_ENTRIES(eigh, eigh)
