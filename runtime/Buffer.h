// Memory that tensors share: aligned, reference-counted, recycled.
//
// Blocks start at a 64-byte boundary; no byte behind their end may be touched (compiled code is tested with every
// buffer ending at a guard page). Blocks of 2 MiB and more lie on huge pages. Freed blocks are kept for the next of
// their size (up to a bound): the first touch of a fresh page costs more than most kernels, and malloc as much as a
// copy of a few thousand bytes.
//
// A buffer may also refer to memory of someone else, which is read and never written: it is at no time unique.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace wg::runtime {

/// A shared handle to a block of bytes. Copying shares; the last handle frees. Thread-safe counting.
class Buffer {
public:
  Buffer() = default;
  /// A block of at least `bytes` uninitialised bytes. `bytes` may be 0. Throws std::bad_alloc when memory is gone.
  static Buffer allocate(size_t bytes);
  /// `bytes` bytes of someone else, of any alignment. The last handle calls `release(owner)`, which must not use
  /// buffers. Throws std::bad_alloc, and then calls nothing.
  static Buffer refer(const void *data, size_t bytes, void (*release)(void *owner) noexcept, void *owner);

  Buffer(const Buffer &other) noexcept : block_(other.block_) { retain(); }
  Buffer(Buffer &&other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  Buffer &operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  explicit operator bool() const { return block_ != nullptr; }
  void *data() const { return block_ ? block_->data : nullptr; }
  size_t size() const { return block_ ? block_->bytes : 0; }
  /// True if no other handle shares the block and it is not someone else's memory: its owner may write in place.
  bool unique() const { return block_ && !block_->release && block_->references.load(std::memory_order_acquire) == 1; }
  friend bool operator==(const Buffer &a, const Buffer &b) { return a.block_ == b.block_; }

  /// Bytes in allocated blocks that some handle holds, process-wide. For leak tests and memory reports.
  static size_t liveBytes();
  /// Returns the recycled blocks to the system: the large ones, and the small ones that this thread keeps.
  static void trim();

private:
  struct Block {
    void *data;
    size_t bytes;    // as asked
    size_t capacity; // as reserved; decides the free list
    std::atomic<int64_t> references;
    void (*release)(void *owner) noexcept; // of memory of someone else; null for our own
    void *owner;
  };
  explicit Buffer(Block *block) : block_(block) {}
  void retain() const {
    if (block_)
      block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    // The only handle need not count down, which is a locked instruction.
    if (block_ && (block_->references.load(std::memory_order_acquire) == 1 ||
                   block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      free(block_);
    block_ = nullptr;
  }
  static void free(Block *block);

  Block *block_ = nullptr;
};

} // namespace wg::runtime
