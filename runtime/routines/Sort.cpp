// argsort and searchsorted. Elements are seen as unsigned keys in their order, so every dtype is one algorithm: a
// stable radix sort from the lowest digit up (Knuth, The Art of Computer Programming, volume 3, section 5.2.5),
// insertion where there are few elements or few places are asked for, and binary search.
//
// Compiled once for each x86-64 level, and linked into C programs: no function here but the entries is visible, and
// nothing of the C++ library is used.
#include "runtime/abi.h"

#include <stddef.h>

namespace {

/// An element's place in the order: -0 is 0, a NaN the largest.
inline uint64_t keyOf(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  constexpr uint64_t sign = uint64_t(1) << 63;
  return x != x ? ~uint64_t(0) : x == 0 ? sign : bits & sign ? ~bits : bits | sign;
}
inline uint32_t keyOf(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  constexpr uint32_t sign = uint32_t(1) << 31;
  return x != x ? ~uint32_t(0) : x == 0 ? sign : bits & sign ? ~bits : bits | sign;
}
inline uint64_t keyOf(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t(1) << 63); }
inline uint32_t keyOf(int32_t x) { return static_cast<uint32_t>(x) ^ (uint32_t(1) << 31); }
inline uint8_t keyOf(uint8_t x) { return x; }

template <class K> struct Entry {
  K key;
  int64_t place;
};

/// The first `count` places of a row in order, by inserting each element among those that have come before it.
template <class K, class Key> void insertAll(Key key, int64_t n, int64_t count, Entry<K> *entries) {
  int64_t filled = 0;
  for (int64_t i = 0; i < n; ++i) {
    Entry<K> entry{key(i), i};
    if (filled == count && entries[count - 1].key <= entry.key)
      continue;
    int64_t at = filled < count ? filled++ : count - 1;
    for (; at > 0 && entries[at - 1].key > entry.key; --at)
      entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

/// All places of a row in order, in one of the two halves of `entries`.
template <class K, class Key> const Entry<K> *radixSort(Key key, int64_t n, Entry<K> *entries) {
  int64_t counts[sizeof(K)][256];
  __builtin_memset(counts, 0, sizeof counts);
  Entry<K> *from = entries, *to = entries + n;
  for (int64_t i = 0; i < n; ++i) {
    K k = key(i);
    from[i] = {k, i};
    for (size_t digit = 0; digit < sizeof(K); ++digit)
      ++counts[digit][static_cast<uint8_t>(k >> 8 * digit)];
  }
  for (size_t digit = 0; digit < sizeof(K); ++digit) {
    auto of = [&](int64_t i) { return static_cast<uint8_t>(from[i].key >> 8 * digit); };
    if (counts[digit][of(0)] == n)
      continue; // the same digit everywhere
    int64_t next = 0;
    for (int64_t &count : counts[digit]) {
      int64_t own = count;
      count = next;
      next += own;
    }
    for (int64_t i = 0; i < n; ++i)
      to[counts[digit][of(i)]++] = from[i];
    Entry<K> *other = from;
    from = to;
    to = other;
  }
  return from;
}

template <class T> int32_t argsort(void *const *pointers, const int64_t *numbers, void *scratch) {
  using K = decltype(keyOf(T()));
  int64_t rows = numbers[0], n = numbers[1], count = numbers[3];
  K turned = numbers[2] ? static_cast<K>(~K(0)) : K(0); // descending: the other end of the order first
  const T *x = static_cast<const T *>(pointers[0]);
  int64_t *y = static_cast<int64_t *>(pointers[1]);
  Entry<K> *entries = static_cast<Entry<K> *>(scratch);
  if (count == 0)
    return 0;
  constexpr int64_t kFew = 32;
  for (; rows > 0; --rows, x += n, y += count) {
    auto key = [=](int64_t i) { return static_cast<K>(keyOf(x[i]) ^ turned); };
    const Entry<K> *sorted = entries;
    if (n <= kFew || count <= kFew)
      insertAll<K>(key, n, count, entries);
    else
      sorted = radixSort<K>(key, n, entries);
    for (int64_t i = 0; i < count; ++i)
      y[i] = sorted[i].place;
  }
  return 0;
}

template <class T> int32_t search(void *const *pointers, const int64_t *numbers, void *) {
  int64_t rows = numbers[0], n = numbers[1], m = numbers[2];
  bool right = numbers[3];
  const T *sorted = static_cast<const T *>(pointers[0]), *values = static_cast<const T *>(pointers[1]);
  int64_t *y = static_cast<int64_t *>(pointers[2]);
  for (; rows > 0; --rows, sorted += n, values += m, y += m)
    for (int64_t i = 0; i < m; ++i) {
      auto key = keyOf(values[i]);
      int64_t first = 0, size = n; // those before `first` come before the value, those from first + size on do not
      while (size > 0) {
        int64_t half = size / 2;
        auto other = keyOf(sorted[first + half]);
        bool before = right ? other <= key : other < key;
        first = before ? first + half + 1 : first;
        size = before ? size - half - 1 : half;
      }
      y[i] = first;
    }
  return 0;
}

} // namespace

#define WG_JOIN_(a, b) a##b
#define WG_JOIN(a, b) WG_JOIN_(a, b)
#define WG_ENTRY(name, function)                                                                                       \
  extern "C" int32_t WG_JOIN(name, WG_LEVEL)(void *const *pointers, const int64_t *numbers, void *scratch) {           \
    return function(pointers, numbers, scratch);                                                                       \
  }
// pointers: x, y; numbers: rows, n, descending, count; scratch: 32 n bytes. A bool is a u8.
WG_ENTRY(wg_argsort_f64_v, argsort<double>)
WG_ENTRY(wg_argsort_f32_v, argsort<float>)
WG_ENTRY(wg_argsort_i64_v, argsort<int64_t>)
WG_ENTRY(wg_argsort_i32_v, argsort<int32_t>)
WG_ENTRY(wg_argsort_u8_v, argsort<uint8_t>)
// pointers: sorted, values, y; numbers: rows, n, m, right; no scratch.
WG_ENTRY(wg_searchsorted_f64_v, search<double>)
WG_ENTRY(wg_searchsorted_f32_v, search<float>)
WG_ENTRY(wg_searchsorted_i64_v, search<int64_t>)
WG_ENTRY(wg_searchsorted_i32_v, search<int32_t>)
WG_ENTRY(wg_searchsorted_u8_v, search<uint8_t>)
