// One element, many times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wg::runtime {

/// `count` copies of the `size` bytes at `element`, to `to`.
inline void repeat(const void *element, size_t size, int64_t count, void *to) {
  size_t bytes = static_cast<size_t>(count) * size, done = std::min(size, bytes);
  if (bytes == 0) // `to` may be null
    return;
  std::memcpy(to, element, done);
  for (; done < bytes; done = std::min(2 * done, bytes))
    std::memcpy(static_cast<char *>(to) + done, to, std::min(done, bytes - done));
}

} // namespace wg::runtime
