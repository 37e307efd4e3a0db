#include "tests/fuzz/Damage.h"

#include <algorithm>

namespace wg::tests {

std::string integer(uint64_t value, size_t bytes, bool bigEndian) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (bigEndian ? bytes - 1 - i : i));
  return text;
}

std::string randomBytes(Dice &dice, size_t count) {
  std::string bytes(count, '\0');
  for (char &byte : bytes)
    byte = static_cast<char>(dice.next());
  return bytes;
}

static void damageText(Sample &sample, Dice &dice) {
  static const char *const words[] = {"{",
                                      "}",
                                      "[",
                                      "]",
                                      "(",
                                      ")",
                                      ",",
                                      ":",
                                      "'",
                                      "\"",
                                      "\\",
                                      "\\u",
                                      "\\ud800",
                                      "\\u0000",
                                      "null",
                                      "true",
                                      "True",
                                      "-1",
                                      "-0",
                                      "1.5",
                                      "1e308",
                                      "1e400",
                                      "0x10",
                                      "99999999999999999999999",
                                      "'descr'",
                                      "'<V8'",
                                      "'|O'",
                                      "'>u8'",
                                      "\"dtype\"",
                                      "\"shape\"",
                                      "\"data_offsets\"",
                                      "\"__metadata__\"",
                                      "\"a0\"",
                                      "\xff",
                                      "\xed\xa0\x80",
                                      "\0"};
  std::string text = sample.bytes.substr(sample.text, sample.textSize);
  size_t at = text.empty() ? 0 : dice.below(text.size());
  switch (dice.below(7)) {
  case 0: { // another number
    size_t digit = text.find_first_of("0123456789", at),
           end = digit == std::string::npos ? digit : text.find_first_not_of("0123456789", digit);
    if (digit != std::string::npos)
      text.replace(digit, end == std::string::npos ? end : end - digit, std::to_string(dice.pick(kNumbers)));
    break;
  }
  case 1: text.insert(at, dice.pick(words)); break;
  case 2: text.replace(at, 1 + dice.below(4), dice.pick(words)); break;
  case 3: text.erase(at, 1 + dice.below(30)); break;
  case 4: { // a piece twice: keys, entries, sizes
    std::string piece = text.substr(at, 1 + dice.below(80));
    for (size_t times = dice.oneIn(10) ? 40 : 1; times-- > 0;)
      text.insert(dice.below(text.size() + 1), piece);
    break;
  }
  case 5: text.insert(at, std::string(1 + dice.below(dice.oneIn(20) ? 20000 : 12), "[{(\" 9"[dice.below(6)])); break;
  default: { // two pieces change places
    if (text.size() < 4)
      break;
    size_t half = text.size() / 2, first = dice.below(half), second = half + dice.below(half);
    std::swap_ranges(text.begin() + static_cast<std::ptrdiff_t>(first),
                     text.begin() + static_cast<std::ptrdiff_t>(first + std::min(half - first, text.size() - second)),
                     text.begin() + static_cast<std::ptrdiff_t>(second));
  }
  }
  sample.bytes.replace(sample.text, sample.textSize, text);
  sample.textSize = text.size();
  if (!dice.oneIn(8)) // the length tells of the new text, so that it is read
    sample.bytes.replace(sample.length, sample.lengthSize, integer(text.size(), sample.lengthSize, false));
}

void damageBytes(std::string &bytes, Dice &dice) {
  if (bytes.empty())
    return;
  size_t at = dice.below(bytes.size());
  switch (dice.below(7)) {
  case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.below(8)); break;
  case 1: bytes[at] = static_cast<char>(dice.pick(kNumbers)); break;
  case 2: bytes.resize(at); break;
  case 3: bytes += randomBytes(dice, 1 + dice.below(40)); break;
  case 4: bytes.erase(at, 1 + dice.below(16)); break;
  case 5: bytes.insert(at, bytes.substr(dice.below(bytes.size()), 1 + dice.below(40))); break;
  default:
    bytes.replace(at, std::min<size_t>(8, bytes.size() - at),
                  integer(dice.pick(kNumbers), 8, dice.oneIn(2)).substr(0, bytes.size() - at));
    break;
  }
}

void damage(Sample &sample, Dice &dice) {
  for (size_t times = dice.below(4); times-- > 0;) {
    size_t kind = dice.below(10);
    if (kind < 6 && sample.textSize > 0) {
      damageText(sample, dice);
    } else if (kind < 8 && !sample.fields.empty()) {
      size_t at = sample.fields[dice.below(sample.fields.size())], size = size_t(1) << dice.below(4);
      if (at + size <= sample.bytes.size())
        sample.bytes.replace(at, size, integer(dice.pick(kNumbers), size, dice.oneIn(2)));
    } else {
      damageBytes(sample.bytes, dice);
      break; // places may have moved
    }
  }
}

} // namespace wg::tests
