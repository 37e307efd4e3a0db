// What names data by its bytes: BLAKE3, 256 bits. Equal digests mean equal bytes, whoever chose them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace wg::runtime {

/// The digest of the bytes that are added, one after the other.
class Digest {
public:
  Digest();
  Digest(Digest &&) noexcept;
  ~Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// 64 lower-case hexadecimal digits, of all that has been added so far.
  std::string hex() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digestOf(std::string_view text);

} // namespace wg::runtime
