// Two kinds of block, by capacity:
//   small   up to 64 KiB     header and data in one piece, from a free list of the thread: no lock
//   large   above            data from the system, 2 MiB-aligned on huge pages from 2 MiB on,
//           kept when freed (LRU, bounded)
// Under AddressSanitizer every block is a fresh malloc of exactly the bytes asked for, so that it sees each overrun.
#include "runtime/Buffer.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace wg::runtime {

static constexpr size_t kAlignment = 64, kHeader = 64;
static constexpr size_t kSmallest = 64, kDoubling = 4096, kSmall = 64 << 10, kHuge = 2 << 20, kHugePage = 2 << 20;
static constexpr size_t kKeptBytes = size_t(1) << 30, kKeptBlocks = 256, kKeptSmallBytes = 8 << 20;
// Capacities of small blocks: powers of two up to kDoubling, then eight between powers of two.
static constexpr int kDoublings = std::countr_zero(kDoubling) - std::countr_zero(kSmallest) + 1;
static constexpr int kClasses = kDoublings + 8 * (std::countr_zero(kSmall) - std::countr_zero(kDoubling));
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG_EXACT_BLOCKS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WG_EXACT_BLOCKS 1
#endif
#ifdef WG_EXACT_BLOCKS
static constexpr bool kExactBlocks = true;
#else
static constexpr bool kExactBlocks = false;
#endif

// ---- Small blocks: free lists of the thread -------------------------------------------------------------------------
namespace {
struct Piece {
  Piece *next;
};
/// What a thread has for itself, so that a block is made and freed without a locked instruction.
struct ThreadBlocks {
  Piece *free[kClasses];
  size_t bytes;              ///< of all pieces in the lists
  size_t limit;              ///< most of these; 0 before the first use by this thread and after its end
  std::atomic<int64_t> live; ///< bytes of blocks made here less those of blocks freed here
  ThreadBlocks *next;        ///< of `threads`
  bool ended;
};
/// Those that are in use.
struct Threads {
  std::mutex mutex;
  ThreadBlocks *first = nullptr;
  std::atomic<int64_t> live = 0; ///< of threads that ended, and of blocks they free still later
};
} // namespace
[[gnu::tls_model("initial-exec")]] static constinit thread_local ThreadBlocks small = {};
static constinit Threads threads;

/// A process that is forked has this thread alone: what the others counted stays, and their memory is used again.
static void afterForkInChild() {
  for (const ThreadBlocks *thread = threads.first; thread; thread = thread->next)
    if (thread != &small)
      threads.live.fetch_add(thread->live.load(std::memory_order_relaxed), std::memory_order_relaxed);
  small.next = nullptr;
  threads.first = small.limit ? &small : nullptr;
  threads.mutex.unlock();
}

/// Eight capacities between powers of two: at most 1/8 is wasted and near sizes share blocks.
static size_t roundToEighth(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

static size_t smallCapacity(size_t bytes) {
  return bytes <= kDoubling ? std::bit_ceil(std::max(bytes, kSmallest)) : roundToEighth(bytes);
}

static int classOf(size_t capacity) {
  int octave = std::bit_width(capacity - 1) - 1; // capacity is in (2^octave, 2^(octave + 1)]
  if (capacity <= kDoubling)
    return octave + 1 - std::countr_zero(kSmallest);
  size_t eighth = (capacity - (size_t(1) << octave)) >> (octave - 3); // 1 to 8
  return kDoublings + 8 * (octave - std::countr_zero(kDoubling)) + int(eighth) - 1;
}

static void drainSmall() {
  for (Piece *&list : small.free)
    while (Piece *piece = list) {
      list = piece->next;
      ::free(piece);
    }
  small.bytes = 0;
}

/// Gives the lists back when the thread ends; blocks freed still later go straight to malloc.
static void beginSmall() {
  struct Reaper {
    Reaper() {
      [[maybe_unused]] static const int once =
          ::pthread_atfork([] { threads.mutex.lock(); }, [] { threads.mutex.unlock(); }, afterForkInChild);
      std::lock_guard lock(threads.mutex);
      small.limit = kKeptSmallBytes;
      small.next = threads.first;
      threads.first = &small;
    }
    ~Reaper() {
      drainSmall();
      std::lock_guard lock(threads.mutex);
      small.limit = 0;
      small.ended = true;
      ThreadBlocks **place = &threads.first;
      while (*place != &small)
        place = &(*place)->next;
      *place = small.next;
      threads.live.fetch_add(small.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
  };
  if (!small.ended)
    static thread_local Reaper reaper;
}

static void addLive(int64_t bytes) {
  if (!small.limit) [[unlikely]] {
    beginSmall();
    if (small.ended) {
      threads.live.fetch_add(bytes, std::memory_order_relaxed);
      return;
    }
  }
  small.live.store(small.live.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

static void *allocateAligned(size_t bytes) {
  void *memory = ::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

/// A piece of kHeader + capacity bytes.
static void *takeSmall(size_t capacity) {
  Piece *&list = small.free[classOf(capacity)];
  Piece *piece = list;
  if (!piece) [[unlikely]]
    return allocateAligned(kHeader + capacity);
  list = piece->next;
  small.bytes -= kHeader + capacity;
  return piece;
}

static void keepSmall(void *memory, size_t capacity) {
  size_t bytes = kHeader + capacity;
  if (small.bytes + bytes > small.limit) [[unlikely]] {
    beginSmall();
    if (small.ended)
      return ::free(memory);
    if (small.bytes + bytes > small.limit)
      drainSmall(); // which may be of sizes that nobody asks for again
  }
  Piece *&list = small.free[classOf(capacity)];
  list = new (memory) Piece{list};
  small.bytes += bytes;
}

// ---- Large blocks ---------------------------------------------------------------------------------------------------
namespace {
struct Kept {
  void *data;
  size_t capacity;
};
/// Freed large blocks, the oldest first. The list itself never grows after it is made: a step asks malloc for nothing.
struct LargeBlocks {
  std::mutex mutex;
  std::vector<Kept> blocks;
  size_t bytes = 0;
  LargeBlocks() { blocks.reserve(kKeptBlocks + 1); }
};
} // namespace
/// Never destroyed: buffers of static objects outlive any order of destruction.
static LargeBlocks &large() {
  static LargeBlocks &blocks = *new LargeBlocks;
  return blocks;
}

/// As roundToEighth; from twice kHuge on whole huge pages.
static size_t largeCapacity(size_t bytes) {
  size_t capacity = roundToEighth(bytes);
  return bytes < 2 * kHuge ? capacity : (capacity + kHugePage - 1) / kHugePage * kHugePage;
}

static void *mapLarge(size_t capacity) {
  if (capacity < kHuge)
    return allocateAligned(capacity);
  // Reserve one huge page more than needed, then cut the ends so that the block starts at a huge page.
  size_t reserved = capacity + kHugePage;
  void *mapped = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::bad_alloc();
  auto start = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned != start)
    ::munmap(mapped, aligned - start);
  if (size_t rest = start + reserved - (aligned + capacity))
    ::munmap(reinterpret_cast<void *>(aligned + capacity), rest);
  ::madvise(reinterpret_cast<void *>(aligned), capacity, MADV_HUGEPAGE);
  return reinterpret_cast<void *>(aligned);
}

static void unmapLarge(void *data, size_t capacity) {
  if (capacity < kHuge)
    ::free(data);
  else
    ::munmap(data, capacity);
}

static void *takeLarge(size_t capacity) {
  LargeBlocks &kept = large();
  {
    std::lock_guard lock(kept.mutex);
    for (auto it = kept.blocks.rbegin(); it != kept.blocks.rend(); ++it)
      if (it->capacity == capacity) {
        void *data = it->data;
        kept.bytes -= capacity;
        kept.blocks.erase(std::next(it).base());
        return data;
      }
  }
  try {
    return mapLarge(capacity);
  } catch (const std::bad_alloc &) {
    Buffer::trim();
    return mapLarge(capacity);
  }
}

static void keepLarge(void *data, size_t capacity) {
  LargeBlocks &kept = large();
  std::lock_guard lock(kept.mutex);
  kept.blocks.push_back({data, capacity});
  kept.bytes += capacity;
  while (kept.bytes > kKeptBytes || kept.blocks.size() > kKeptBlocks) {
    Kept oldest = kept.blocks.front();
    kept.blocks.erase(kept.blocks.begin());
    kept.bytes -= oldest.capacity;
    unmapLarge(oldest.data, oldest.capacity);
  }
}

// ---- Buffer ---------------------------------------------------------------------------------------------------------
Buffer Buffer::allocate(size_t bytes) {
  if (bytes > (size_t(1) << (kExactBlocks ? 39 : 62))) // AddressSanitizer ends the process above 2^40
    throw std::bad_alloc();
  void *header;
  void *data;
  size_t capacity;
  if (kExactBlocks) {
    header = ::malloc(sizeof(Block));
    if (!header || ::posix_memalign(&data, kAlignment, bytes ? bytes : 1)) {
      ::free(header);
      throw std::bad_alloc();
    }
    capacity = bytes;
  } else if (bytes <= kSmall) {
    capacity = smallCapacity(bytes);
    header = takeSmall(capacity);
    data = static_cast<char *>(header) + kHeader;
  } else {
    capacity = largeCapacity(bytes);
    header = takeSmall(kSmallest);
    try {
      data = takeLarge(capacity);
    } catch (...) {
      keepSmall(header, kSmallest);
      throw;
    }
  }
  addLive(static_cast<int64_t>(bytes));
  static_assert(sizeof(Block) <= kHeader);
  return Buffer(new (header) Block{data, bytes, capacity, 1, nullptr, nullptr});
}

Buffer Buffer::refer(const void *data, size_t bytes, void (*release)(void *owner) noexcept, void *owner) {
  void *header = kExactBlocks ? ::malloc(sizeof(Block)) : takeSmall(kSmallest);
  if (!header)
    throw std::bad_alloc();
  return Buffer(new (header) Block{const_cast<void *>(data), bytes, 0, 1, release, owner});
}

void Buffer::free(Block *block) {
  if (block->release) {
    auto [release, owner] = std::pair(block->release, block->owner);
    kExactBlocks ? ::free(block) : keepSmall(block, kSmallest);
    return release(owner);
  }
  size_t capacity = block->capacity;
  addLive(-static_cast<int64_t>(block->bytes));
  if (kExactBlocks) {
    ::free(block->data);
    ::free(block);
  } else if (capacity <= kSmall) {
    keepSmall(block, capacity);
  } else {
    keepLarge(block->data, capacity);
    keepSmall(block, kSmallest);
  }
}

size_t Buffer::liveBytes() {
  std::lock_guard lock(threads.mutex);
  int64_t bytes = threads.live.load(std::memory_order_relaxed);
  for (const ThreadBlocks *thread = threads.first; thread; thread = thread->next)
    bytes += thread->live.load(std::memory_order_relaxed);
  return static_cast<size_t>(bytes);
}

void Buffer::trim() {
  drainSmall();
  LargeBlocks &kept = large();
  std::lock_guard lock(kept.mutex);
  for (const Kept &block : kept.blocks)
    unmapLarge(block.data, block.capacity);
  kept.blocks.clear();
  kept.bytes = 0;
}

} // namespace wg::runtime
