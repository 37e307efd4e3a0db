// Random bits as a function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, "Parallel random
// numbers: as easy as 1, 2, 3"). No state: element i of a tensor depends on the key and on i alone, so any engine may
// compute any element in any order and finds the same bits.
//
// The key of an op is i64[2]: key0, key1. Element i (row-major) is one Philox block:
//
//   counter = { low 32 bits of i, high 32 bits of i, high 32 bits of key0, high 32 bits of key1 }
//   key     = { low 32 bits of key0, low 32 bits of key1 }
//   w0, w1, w2, w3 = philox4x32_10(counter, key)
//
//   bits i32     w0
//   bits i64     w0 | w1 << 32
//   uniform f32  (w0 >> 8) * 2^-24
//   uniform f64  ((w0 | w1 << 32) >> 11) * 2^-53
#pragma once

#include <array>
#include <cstdint>

namespace wg::runtime {

/// The block function. Ten rounds; the key grows by the Weyl constants between them.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * c0, p1 = uint64_t(0xCD9E8D57) * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// Words 0 and 1 of element i's block, as one word: w0 | w1 << 32.
constexpr uint64_t randomWord(int64_t key0, int64_t key1, int64_t i) {
  auto low = [](int64_t v) { return static_cast<uint32_t>(v); };
  auto high = [](int64_t v) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> 32); };
  std::array<uint32_t, 4> w = philox4x32({low(i), high(i), high(key0), high(key1)}, {low(key0), low(key1)});
  return w[0] | static_cast<uint64_t>(w[1]) << 32;
}

/// Element i, by type.
template <class T> constexpr T randomUniform(int64_t key0, int64_t key1, int64_t i);
template <> constexpr float randomUniform(int64_t key0, int64_t key1, int64_t i) {
  return static_cast<float>(static_cast<uint32_t>(randomWord(key0, key1, i)) >> 8) * 0x1p-24f;
}
template <> constexpr double randomUniform(int64_t key0, int64_t key1, int64_t i) {
  return static_cast<double>(randomWord(key0, key1, i) >> 11) * 0x1p-53;
}
template <class T> constexpr T randomBits(int64_t key0, int64_t key1, int64_t i) {
  return static_cast<T>(randomWord(key0, key1, i));
}

} // namespace wg::runtime
