// One pool of threads for the process. Idle workers spin for a moment, then sleep.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wg::runtime {

/// Threads that parallelFor uses, the caller included. The default is the number of CPUs that the process may run on,
/// or the environment's WENGERT_NUM_THREADS.
int numThreads();
inline constexpr int kMaxThreads = 256;
/// A count outside of [1, kMaxThreads] is moved to the nearer end. Waits for running loops; takes effect for the next.
void setNumThreads(int count);

/// f(0) .. f(count - 1), each once, in any order and on any thread; returns when all have returned. Calls that come
/// from inside a loop, or while another thread's loop occupies the pool, run on the calling thread: never a deadlock.
/// `f` must give the same result in any order: that the bits do not depend on the number of threads is its duty. If it
/// throws, some calls are left out, and the caller gets the first exception when all others have returned.
void parallelFor(int64_t count, void (*f)(void *context, int64_t i), void *context);

template <class F> void parallelFor(int64_t count, F &&f) {
  using Body = std::remove_reference_t<F>;
  if (count == 1)
    return f(int64_t(0));
  parallelFor(
      count, [](void *context, int64_t i) { (*static_cast<Body *>(context))(i); },
      const_cast<void *>(static_cast<const void *>(&f)));
}

} // namespace wg::runtime
