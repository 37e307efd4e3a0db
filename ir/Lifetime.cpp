#include "ir/Lifetime.h"

#include "ir/Bridge.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include <pthread.h>
#include <unistd.h>

using namespace mlir;

namespace wg::ir {

/// Threads at work; the flags say how far exit() is. A thread announces itself and then looks at the flag, exit() sets
/// the flag and then looks for threads: one of them sees the other.
static constinit std::atomic<int> working = 0, generating = 0;
static constinit std::atomic<bool> exitBegan = false, parking = false;

static constinit thread_local int workingDepth = 0, generatingDepth = 0;
static constinit thread_local bool begun = false, ends = false;
/// This thread runs the destructors of static objects, or works for one that does.
static constinit thread_local bool exits = false, spare = false;

// ---- Threads --------------------------------------------------------------------------------------------------------

namespace {
struct Sentinel {
  ~Sentinel() { ends = true; }
};
} // namespace

/// MLIR's caches of this thread are made before the sentinel, so they are destroyed after it.
static void beginThread() {
  begun = true;
  static constinit std::atomic<int64_t> threads = 0;
  // A string that no other thread has asked for: it needs both the cache and the allocator of this thread.
  StringAttr::get(context(), "wg.thread" + std::to_string(threads.fetch_add(1)));
  static thread_local Sentinel sentinel;
  (void)&sentinel;
}

bool threadEnds() noexcept { return ends; }
bool processEnds() noexcept { return parking.load(std::memory_order_relaxed); }

void onSpareThread(llvm::function_ref<void()> f) {
  std::exception_ptr thrown;
  bool forExit = exits || ::gettid() == ::getpid();
  std::thread([&] {
    spare = true;
    exits = forExit;
    try {
      f();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown)
    std::rethrow_exception(thrown);
}

// ---- The end of the process -----------------------------------------------------------------------------------------

static void waitFor(const std::atomic<int> &count, int own) {
  while (count.load() > own)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Before any table of LLVM that a compilation made is destroyed: from here on programs are interpreted.
static void beginExit() {
  exits = true;
  exitBegan.store(true);
  waitFor(generating, generatingDepth > 0);
}

/// After the program's static objects, before those of libMLIR and libLLVM.
static void endExit() {
  beginExit();
  parking.store(true);
  waitFor(working, workingDepth > 0);
}

namespace {
/// exit() on the main thread, which ends in no other way that destroys thread_local objects, destroys them before all
/// static ones: no compilation that runs at that moment loses a table.
struct MainSentinel {
  ~MainSentinel() {
    ends = true;
    beginExit();
  }
};
} // namespace

/// For exit() on another thread. LLVM makes tables as they are needed, and exit() destroys first what was made
/// last: so it is asked to begin with us again after each compilation. An entry costs 32 bytes; a thousand
/// compilations have met every table.
static void beforeLatestTables() {
  static constinit std::atomic<int> entries = 0;
  if (entries.fetch_add(1, std::memory_order_relaxed) < 1000)
    std::atexit(beginExit);
}

/// When the library is loaded, and so before the static objects of the program are made: what is registered here runs
/// after their destructors. The table of MLIR's type ids is such a static object, made at its first use.
[[gnu::constructor]] static void whenLoaded() {
  struct Marker {};
  TypeID::get<Marker>();
  std::atexit(endExit);
  if (::gettid() == ::getpid()) {
    static thread_local MainSentinel mainThread;
    (void)&mainThread;
  }
  // The threads of the parent are not in a forked child.
  ::pthread_atfork(nullptr, nullptr, [] {
    working = workingDepth > 0;
    generating = generatingDepth > 0;
  });
}

// ---- Scopes ---------------------------------------------------------------------------------------------------------

Working::Working() noexcept {
  if (workingDepth++ > 0)
    return;
  working.fetch_add(1);
  if (parking.load() && !exits) [[unlikely]] {
    working.fetch_sub(1);
    while (true)
      ::pause();
  }
  if (!begun) [[unlikely]]
    beginThread();
}

Working::~Working() {
  if (--workingDepth == 0)
    working.fetch_sub(1);
}

Generating::Generating() noexcept {
  if (generatingDepth++ == 0)
    generating.fetch_add(1);
  allowed_ = !exitBegan.load() && !spare;
}

Generating::~Generating() {
  if (--generatingDepth > 0)
    return;
  if (allowed_) {
    beforeLatestTables();
    static thread_local Sentinel sentinel; // before the caches that code generation made in this thread
    (void)&sentinel;
  }
  generating.fetch_sub(1);
}

} // namespace wg::ir
