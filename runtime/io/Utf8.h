// Is a name text? Names in files are UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace wg::runtime {

/// How many bytes the first character of `text` has; 0 if it is none. After Unicode 15, table 3-7: the length follows
/// from the first byte, and the second byte's range too.
inline size_t characterSize(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty() || byte(0) < 0x80)
    return text.empty() ? 0 : 1;
  size_t length = byte(0) >= 0xC2 && byte(0) <= 0xDF   ? 2
                  : byte(0) >= 0xE0 && byte(0) <= 0xEF ? 3
                  : byte(0) >= 0xF0 && byte(0) <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || text.size() < length)
    return 0;
  unsigned low = byte(0) == 0xE0   ? 0xA0
                 : byte(0) == 0xF0 ? 0x90
                                   : 0x80,
           high = byte(0) == 0xED   ? 0x9F
                  : byte(0) == 0xF4 ? 0x8F
                                    : 0xBF;
  if (byte(1) < low || byte(1) > high)
    return 0;
  for (size_t k = 2; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80)
      return 0;
  return length;
}

/// All of it.
inline bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t size = characterSize(text);
    if (size == 0)
      return false;
    text.remove_prefix(size);
  }
  return true;
}

} // namespace wg::runtime
