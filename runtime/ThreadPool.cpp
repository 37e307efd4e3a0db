#include "runtime/ThreadPool.h"

#include "runtime/abi.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace wg::runtime {

namespace {

/// True on workers, and on a caller while its loop runs: loops inside loops run in place.
thread_local bool insideLoop = false;

class Pool {
public:
  explicit Pool(int threads) { start(threads); }

  int size() const { return threads_.load(std::memory_order_relaxed); }

  void resize(int threads) {
    std::lock_guard loop(loopMutex_);
    if (threads == size())
      return;
    stop();
    start(threads);
  }

  void run(int64_t count, void (*f)(void *, int64_t), void *context) {
    std::unique_lock loop(loopMutex_, std::defer_lock);
    if (size() == 1 || insideLoop || !loop.try_lock()) {
      for (int64_t i = 0; i < count; ++i)
        f(context, i);
      return;
    }
    f_ = f;
    context_ = context;
    count_ = count;
    failed_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    working_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    // Seen by a spinning worker at once; a sleeping one is woken. The counter changes under the mutex so that no worker
    // falls asleep between its last look and the call.
    {
      std::lock_guard lock(sleepMutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    insideLoop = true;
    take();
    insideLoop = false;
    for (int spins = 0; working_.load(std::memory_order_acquire) != 0; ++spins)
      if (spins < kSpins)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();
    if (failed_) [[unlikely]]
      std::rethrow_exception(std::exchange(failed_, nullptr));
  }

private:
  static constexpr int kSpins = 2000; // about 50 us

  void take() {
    try {
      for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;)
        f_(context_, i);
    } catch (...) { // the caller gets the first one, when no thread is in the loop any more
      next_.store(count_, std::memory_order_relaxed);
      std::lock_guard lock(sleepMutex_);
      if (!failed_)
        failed_ = std::current_exception();
    }
  }

  void work(uint64_t seen) {
    insideLoop = true;
    while (true) {
      for (int spins = 0; spins < kSpins && generation_.load(std::memory_order_acquire) == seen; ++spins)
        __builtin_ia32_pause();
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(sleepMutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
      }
      seen = generation_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed))
        return;
      take();
      working_.fetch_sub(1, std::memory_order_release);
    }
  }

  void start(int threads) {
    threads_.store(threads, std::memory_order_relaxed);
    uint64_t seen = generation_.load(std::memory_order_relaxed);
    try {
      workers_.reserve(static_cast<size_t>(threads));
      for (int i = 1; i < threads; ++i)
        workers_.emplace_back([this, seen] { work(seen); });
    } catch (const std::exception &) { // no memory, or the system gives no more threads: fewer will do
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    {
      std::lock_guard lock(sleepMutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread &worker : workers_)
      worker.join();
    workers_.clear();
    stopping_.store(false, std::memory_order_relaxed);
  }

  std::mutex loopMutex_; // one loop at a time
  void (*f_)(void *, int64_t) = nullptr;
  void *context_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_ = 0;
  std::atomic<int> working_ = 0;
  std::atomic<uint64_t> generation_ = 0;
  std::exception_ptr failed_; ///< what f_ threw first; guarded by sleepMutex_ while a loop runs
  std::atomic<bool> stopping_ = false;
  std::atomic<int> threads_ = 1;
  std::mutex sleepMutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

int defaultThreads() {
  if (const char *text = std::getenv("WENGERT_NUM_THREADS"))
    if (int count = std::atoi(text); count > 0)
      return std::min(count, kMaxThreads);
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::clamp(CPU_COUNT(&set), 1, kMaxThreads) : 1;
}

std::atomic<Pool *> thePool = nullptr;

/// Made at the first use and never destroyed: its workers may run until the process ends. A forked child has none of
/// the parent's workers, so it gets a pool of its own at its first loop.
Pool &pool() {
  if (Pool *made = thePool.load(std::memory_order_acquire))
    return *made;
  static constinit std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!thePool.load(std::memory_order_relaxed)) {
    static bool registered =
        pthread_atfork(nullptr, nullptr, [] { thePool.store(nullptr, std::memory_order_relaxed); }) == 0;
    (void)registered;
    thePool.store(new Pool(defaultThreads()), std::memory_order_release);
  }
  return *thePool.load(std::memory_order_relaxed);
}

} // namespace

int numThreads() { return pool().size(); }

void setNumThreads(int count) { pool().resize(std::clamp(count, 1, kMaxThreads)); }

void parallelFor(int64_t count, void (*f)(void *, int64_t), void *context) {
  if (count <= 0)
    return;
  Pool *threads = nullptr;
  try {
    threads = &pool();
  } catch (const std::bad_alloc &) { // compiled code, through which nothing is thrown, calls this too
  }
  if (threads)
    return threads->run(count, f, context);
  for (int64_t i = 0; i < count; ++i)
    f(context, i);
}

} // namespace wg::runtime

extern "C" void wg_parallel_for(int64_t count, void (*body)(void *context, int64_t i), void *context) {
  wg::runtime::parallelFor(count, body, context);
}
