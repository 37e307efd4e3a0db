// LLVM has BLAKE3, in code for each kind of CPU; its header is known to this file alone.
#include "runtime/io/Digest.h"

#include "llvm/Support/BLAKE3.h"

namespace wg::runtime {

struct Digest::State {
  llvm::BLAKE3 hasher;
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::Digest(Digest &&) noexcept = default;
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  state_->hasher.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}
void Digest::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Digest::hex() const {
  std::string digits;
  for (uint8_t byte : state_->hasher.final())
    for (int half : {byte >> 4, byte & 15})
      digits += "0123456789abcdef"[half];
  return digits;
}

std::string digestOf(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.hex();
}

} // namespace wg::runtime
