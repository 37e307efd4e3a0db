// The C library's allocator with a wrapper in front of it, which counts calls and lets chosen ones fail. For the one
// source file of a test program.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WENGERT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WENGERT_SANITIZED
#endif
#endif

namespace wg::tests::allocator {

inline constinit std::atomic<bool> counting = false;
inline constinit std::atomic<long> calls = 0, live = 0; ///< calls while `counting`; blocks that nobody has freed

/// What this thread's next allocations meet.
struct Refusal {
  long after = -1;      ///< so many succeed first; negative: all do
  bool lasting = false; ///< all later ones fail too
  bool happened = false;
};
inline constinit thread_local Refusal refusal;

/// The allocation `number`, from 1 on, fails on this thread while it lives; with `lasting`, all after it as well.
class Refuse {
public:
  Refuse(long number, bool lasting) { refusal = {number - 1, lasting, false}; }
  Refuse(const Refuse &) = delete;
  ~Refuse() { end(); }
  /// Whether an allocation was refused; none is any more.
  bool end() {
    refusal.after = -1;
    return refusal.happened;
  }
};

inline bool refuses() {
  if (counting.load(std::memory_order_relaxed))
    calls.fetch_add(1, std::memory_order_relaxed);
  if (refusal.after < 0)
    return false;
  if (refusal.after-- > 0)
    return false;
  refusal.happened = true;
  refusal.after = refusal.lasting ? 0 : -1;
  errno = ENOMEM;
  return true;
}

} // namespace wg::tests::allocator

#ifndef WENGERT_SANITIZED
#pragma GCC visibility push(default) // the shared libraries call these too
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *made(void *block) {
  wg::tests::allocator::live.fetch_add(block != nullptr, std::memory_order_relaxed);
  return block;
}
void *malloc(size_t bytes) { return wg::tests::allocator::refuses() ? nullptr : made(__libc_malloc(bytes)); }
void *calloc(size_t n, size_t bytes) {
  return wg::tests::allocator::refuses() ? nullptr : made(__libc_calloc(n, bytes));
}
void *realloc(void *old, size_t bytes) {
  if (wg::tests::allocator::refuses())
    return nullptr;
  return old ? __libc_realloc(old, bytes) : made(__libc_realloc(old, bytes));
}
void *memalign(size_t alignment, size_t bytes) {
  return wg::tests::allocator::refuses() ? nullptr : made(__libc_memalign(alignment, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  return (*block = memalign(alignment, bytes)) ? 0 : ENOMEM;
}
void free(void *block) {
  wg::tests::allocator::live.fetch_sub(block != nullptr, std::memory_order_relaxed);
  __libc_free(block);
}
}
#pragma GCC visibility pop
#endif
