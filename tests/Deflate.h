// Bytes as zlib packs them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <zlib.h>

namespace wg::tests {

/// One deflate stream; `bits` as zlib's deflateInit2 takes them, `memory` too.
inline std::string deflated(std::string_view bytes, int level, int bits, int memory = 8) {
  z_stream stream = {};
  EXPECT_EQ(::deflateInit2(&stream, level, Z_DEFLATED, bits, memory, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(bytes.size() + bytes.size() / 8 + 200, '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

} // namespace wg::tests
