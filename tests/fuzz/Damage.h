// Files in binary formats, changed as somebody would who knows the format.
#pragma once

#include "tests/fuzz/Mutate.h"

namespace wg::tests {

/// What the mutations need to know of a file.
struct Sample {
  std::string bytes;
  size_t text = 0, textSize = 0;     ///< where the header's text is, if it has one
  size_t length = 0, lengthSize = 0; ///< where the length of that text is, little-endian
  std::vector<size_t> fields = {};   ///< places of binary numbers
};

/// Numbers where sizes overflow, wrap or change sign.
inline constexpr uint64_t kNumbers[] = {0,
                                        1,
                                        2,
                                        7,
                                        8,
                                        9,
                                        127,
                                        128,
                                        255,
                                        256,
                                        65535,
                                        65536,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x100000000,
                                        100'000'000,
                                        100'000'001,
                                        1ull << 40,
                                        1ull << 47,
                                        1ull << 61,
                                        1ull << 62,
                                        (1ull << 62) + 1,
                                        (1ull << 63) - 1,
                                        1ull << 63,
                                        (1ull << 63) + 1,
                                        ~0ull - 8,
                                        ~0ull};

std::string integer(uint64_t value, size_t bytes, bool bigEndian);
std::string randomBytes(Dice &dice, size_t count);

/// One change of any bytes.
void damageBytes(std::string &bytes, Dice &dice);
/// None to three changes: of the header's text, of binary numbers, of any bytes.
void damage(Sample &sample, Dice &dice);

} // namespace wg::tests
