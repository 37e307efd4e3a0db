// svd: singular values and vectors, by Householder's bidiagonal form and implicit QR steps (Golub and Reinsch 1970;
// Golub and Van Loan, Matrix Computations, 4th edition, 8.6). pinv: the pseudoinverse by it.
#include "runtime/routines/Blocks.h"

namespace {

/// The decomposition of a [m, n], or of its transpose, so that p >= q: a = u diag(s) v^T.
template <class T> struct Decomposition {
  int64_t m, n, p, q;
  T *a, *ut, *vt, *s, *e, *lefts, *rights, *c, *sine, *v, *w, *rest;
  Decomposition(int64_t m, int64_t n, T *scratch)
      : m(m), n(n), p(larger(m, n)), q(lesser(m, n)), a(scratch), ut(a + p * q), vt(ut + p * q), s(vt + q * q),
        e(s + q), lefts(e + q), rights(lefts + q), c(rights + q), sine(c + 2 * q), v(sine + 2 * q), w(v + p),
        rest(w + q) {}

  void bidiagonalize();
  void formVectors(T *room);
  bool iterate(bool vectors);
  bool run(const T *from, bool vectors, T *room);
};

/// The diagonal s and what is above it, e. Columns of a, from the diagonal on, and rows after it become the
/// reflections.
template <class T> void Decomposition<T>::bidiagonalize() {
  for (int64_t j = 0; j < q; ++j) {
    int64_t length = p - j, width = q - j - 1;
    for (int64_t i = 0; i < length; ++i)
      v[i] = a[(j + i) * q + j];
    T tau = lefts[j] = reflect(v, length, s[j]);
    for (int64_t i = 0; i < length; ++i)
      a[(j + i) * q + j] = v[i];
    e[j] = rights[j] = 0;
    if (width == 0)
      continue;
    T *row = a + j * q + j + 1;
    clear(w, width);
    subtractProduct(w, width, v, length, row, q, 1, width, length);
    subtract(row, -tau, w, width); // w is negative
    T right = rights[j] = reflect(row, width, e[j]);
    for (int64_t i = 1; i < length; ++i) {
      T *below = row + i * q;
      subtract(below, -tau * v[i], w, width);
      subtract(below, right * dot(below, row, width), row, width);
    }
  }
}

/// ut [q, p] and vt [q, q] from the reflections; `room` has p q elements.
template <class T> void Decomposition<T>::formVectors(T *room) {
  ReflectionRoom<T> reflections(rest, p, q);
  clear(room, p * q);
  clear(ut, q * q);
  for (int64_t i = 0; i < q; ++i)
    room[i * q + i] = ut[i * q + i] = 1;
  for (int64_t j0 = (q - 1) / kReflections * kReflections; j0 >= 0; j0 -= kReflections) {
    int64_t count = lesser(kReflections, q - j0), length = p - j0;
    for (int64_t j = 0; j < count; ++j) {
      T *row = reflections.rows + j * length;
      clear(row, j);
      for (int64_t i = j; i < length; ++i)
        row[i] = a[(j0 + i) * q + j0 + j];
    }
    applyReflections(reflections, lefts + j0, count, room + j0 * q + j0, q, length, q - j0, false);
    count = lesser(count, q - 1 - j0), length = q - 1 - j0;
    for (int64_t j = 0; j < count; ++j) {
      clear(reflections.rows + j * length, j);
      copy(reflections.rows + j * length + j, a + (j0 + j) * q + j0 + j + 1, length - j);
    }
    if (count > 0)
      applyReflections(reflections, rights + j0, count, ut + (j0 + 1) * q + j0 + 1, q, length, length, false);
  }
  transposeTo(vt, q, ut, q, q, q);
  transposeTo(ut, p, room, q, p, q);
}

/// Makes s the singular values, with the rows of ut and vt moved along; whether it converges. Here e[i] is above s[i]:
/// Golub and Reinsch's is at i - 1.
template <class T> bool Decomposition<T>::iterate(bool vectors) {
  constexpr int kMostSteps = 100;
  T *cu = c, *su = sine, *cv = c + q, *sv = sine + q, norm = 0;
  for (int64_t i = 0; i < q; ++i) {
    T both = absolute(s[i]) + (i > 0 ? absolute(e[i - 1]) : 0);
    norm = both > norm ? both : norm;
  }
  T small = kEps<T> * norm / 2;
  for (int64_t k = q - 1; k >= 0; --k)
    for (int steps = 0;; ++steps) {
      int64_t l = k;
      bool cancels = false;
      for (; l > 0; --l) {
        if (absolute(e[l - 1]) <= small)
          break;
        if ((cancels = absolute(s[l - 1]) <= small))
          break;
      }
      if (cancels) { // s[l - 1] is 0: rotations of the rows l - 1 and l, l + 1, ... make e[l - 1] 0
        T x = e[l - 1];
        e[l - 1] = 0;
        for (int64_t i = l; i <= k; ++i) {
          T y = s[i], z = s[i] = hypotenuse(x, y), cosine = y / z, minus = x / z;
          if (vectors) {
            T *first = ut + (l - 1) * p, *second = ut + i * p;
            for (int64_t j = 0; j < p; ++j) {
              T held = first[j];
              first[j] = cosine * held - minus * second[j];
              second[j] = minus * held + cosine * second[j];
            }
          }
          if (i == k)
            break;
          x = -minus * e[i];
          e[i] = cosine * e[i];
          if (absolute(x) <= small)
            break;
        }
      }
      T z = s[k];
      if (l == k) {
        if (z < 0) {
          s[k] = -z;
          for (int64_t j = 0; vectors && j < q; ++j)
            vt[k * q + j] = -vt[k * q + j];
        }
        break;
      }
      if (steps == kMostSteps)
        return false;
      T x = s[l], y = s[k - 1], g = k - 1 > 0 ? e[k - 2] : T(0), h = e[k - 1];
      if (k - 1 == l)
        g = 0;
      T f = ((y - z) * (y + z) + (g - h) * (g + h)) / (2 * h * y);
      g = hypotenuse(f, T(1));
      f = ((x - z) * (x + z) + h * (y / (f + withSign(g, f)) - h)) / x;
      T cosine = 1, sines = 1;
      for (int64_t j = l; j < k; ++j) {
        g = e[j];
        y = s[j + 1];
        h = sines * g;
        g = cosine * g;
        z = hypotenuse(f, h);
        if (j > l)
          e[j - 1] = z;
        cosine = z == 0 ? 1 : f / z;
        sines = z == 0 ? 0 : h / z;
        cv[j - l] = cosine;
        sv[j - l] = sines;
        f = x * cosine + g * sines;
        g = g * cosine - x * sines;
        h = y * sines;
        y *= cosine;
        s[j] = z = hypotenuse(f, h);
        cosine = z == 0 ? 1 : f / z;
        sines = z == 0 ? 0 : h / z;
        cu[j - l] = cosine;
        su[j - l] = sines;
        f = cosine * g + sines * y;
        x = cosine * y - sines * g;
      }
      e[k - 1] = f;
      s[k] = x;
      if (vectors) {
        rotateRows(vt + l * q, q, k - l, cv, sv, q);
        rotateRows(ut + l * p, p, k - l, cu, su, p);
      }
    }
  return true;
}

/// Whether it converges. Values descend, and rows of ut and vt are a's left and right vectors: vt's the left ones if
/// it was transposed.
template <class T> bool Decomposition<T>::run(const T *from, bool vectors, T *room) {
  T scale = scaleFor(largestOf(from, m * n));
  if (m >= n)
    copy(a, from, m * n);
  else
    transposeTo(a, m, from, n, m, n);
  for (int64_t i = 0; i < m * n; ++i)
    a[i] *= scale;
  bidiagonalize();
  if (vectors)
    formVectors(room);
  if (!iterate(vectors))
    return false;
  for (int64_t i = 0; i < q; ++i) {
    int64_t at = i;
    for (int64_t j = i + 1; j < q; ++j)
      if (s[j] > s[at])
        at = j;
    if (at != i) {
      swapRows(s + i, s + at, 1);
      if (vectors) {
        swapRows(ut + i * p, ut + at * p, p);
        swapRows(vt + i * q, vt + at * q, q);
      }
    }
    s[i] /= scale;
    if (vectors && signOf(m >= n ? ut + i * p : vt + i * q, m, 1) < 0) {
      for (int64_t j = 0; j < p; ++j)
        ut[i * p + j] = -ut[i * p + j];
      for (int64_t j = 0; j < q; ++j)
        vt[i * q + j] = -vt[i * q + j];
    }
  }
  return true;
}

/// pointers: a, y [m + n + 1, k], u, v and s, or y [k]; numbers: batch, m, n, vectors; scratch: a Decomposition.
template <class T> int32_t svd(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t m = numbers[1], n = numbers[2], k = lesser(m, n);
  bool vectors = numbers[3] != 0;
  const T *a = static_cast<const T *>(pointers[0]);
  T *y = static_cast<T *>(pointers[1]);
  int64_t size = vectors ? (m + n + 1) * k : k;
  for (int64_t batch = k == 0 ? 0 : numbers[0]; batch > 0; --batch, a += m * n, y += size) {
    if (!isFinite(a, m * n)) {
      fillNan(y, size);
      continue;
    }
    Decomposition<T> parts(m, n, static_cast<T *>(scratch));
    if (!parts.run(a, vectors, y))
      return 1;
    if (vectors) {
      transposeTo(y, k, m >= n ? parts.ut : parts.vt, m, k, m);
      transposeTo(y + m * k, k, m >= n ? parts.vt : parts.ut, n, k, n);
    }
    copy(y + size - k, parts.s, k);
  }
  return 0;
}

/// pointers: a, y [n, m]; numbers: batch, m, n, the bits of rcond; scratch: a Decomposition.
template <class T> int32_t pinv(void *const *pointers, const int64_t *numbers, void *scratch) {
  int64_t m = numbers[1], n = numbers[2], k = lesser(m, n);
  double rcond;
  __builtin_memcpy(&rcond, numbers + 3, sizeof rcond);
  T least = rcond < 0 ? static_cast<T>(larger(m, n)) * kEps<T> : static_cast<T>(rcond);
  const T *a = static_cast<const T *>(pointers[0]);
  T *y = static_cast<T *>(pointers[1]);
  for (int64_t batch = k == 0 ? 0 : numbers[0]; batch > 0; --batch, a += m * n, y += m * n) {
    if (!isFinite(a, m * n)) {
      fillNan(y, m * n);
      continue;
    }
    Decomposition<T> parts(m, n, static_cast<T *>(scratch));
    if (!parts.run(a, true, y))
      return 1;
    T *ut = m >= n ? parts.ut : parts.vt, *vt = m >= n ? parts.vt : parts.ut, *v = parts.a;
    int64_t rank = 0;
    for (; rank < k && parts.s[rank] > least * parts.s[0]; ++rank)
      for (int64_t i = 0; i < m; ++i)
        ut[rank * m + i] /= -parts.s[rank];
    transposeTo(v, k, vt, n, k, n);
    clear(y, n * m);
    subtractProduct(y, m, v, k, ut, m, n, m, rank);
  }
  return 0;
}

} // namespace

WG_ENTRIES(svd, svd)
WG_ENTRIES(pinv, pinv)
