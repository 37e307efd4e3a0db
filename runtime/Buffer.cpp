// Three kinds of block, by capacity:
//   small   up to 4 KiB      header and data in one piece, from a free list of the thread: no lock
//   medium  up to 64 KiB     header and data in one piece, from malloc
//   large   above            data from the system, 2 MiB-aligned on huge pages from 2 MiB on,
//           kept when freed (LRU, bounded)
// Under AddressSanitizer every block is a fresh malloc of exactly the bytes asked for, so that it sees each overrun.
#include "runtime/Buffer.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include <stdlib.h>
#include <sys/mman.h>

namespace wg::runtime {

static constexpr size_t kAlignment = 64, kHeader = 64;
static constexpr size_t kSmallest = 64, kSmall = 4096, kMedium = 64 << 10, kHuge = 2 << 20, kHugePage = 2 << 20;
static constexpr size_t kKeptBytes = size_t(1) << 30, kKeptBlocks = 256;
static constexpr int kClasses = std::countr_zero(kSmall) - std::countr_zero(kSmallest) + 1;
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

static constinit std::atomic<size_t> liveTotal = 0;

// ---- Small blocks: free lists of the thread -------------------------------------------------------------------------
namespace {
struct Piece {
  Piece *next;
};
struct SmallBlocks {
  Piece *free[kClasses];
  uint16_t count[kClasses];
  uint16_t limit; ///< most pieces in a list; 0 before the first use by this thread and after its end
  bool ended;
};
} // namespace
[[gnu::tls_model("initial-exec")]] static constinit thread_local SmallBlocks small = {};

static void drainSmall() {
  for (int i = 0; i < kClasses; ++i) {
    while (Piece *piece = small.free[i]) {
      small.free[i] = piece->next;
      ::free(piece);
    }
    small.count[i] = 0;
  }
}

/// Gives the lists back when the thread ends; blocks freed still later go straight to malloc.
static void beginSmall() {
  struct Reaper {
    Reaper() { small.limit = 256; }
    ~Reaper() {
      drainSmall();
      small.limit = 0;
      small.ended = true;
    }
  };
  if (!small.ended)
    static thread_local Reaper reaper;
}

static int classOf(size_t bytes) {
  return bytes <= kSmallest ? 0 : std::bit_width(bytes - 1) - std::countr_zero(kSmallest);
}

static void *allocateAligned(size_t bytes) {
  void *memory = ::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

/// A piece of kHeader + capacity bytes.
static void *takeSmall(int index) {
  if (Piece *piece = small.free[index]) [[likely]] {
    small.free[index] = piece->next;
    --small.count[index];
    return piece;
  }
  return allocateAligned(kHeader + (kSmallest << index));
}

static void keepSmall(void *memory, int index) {
  if (small.count[index] >= small.limit) [[unlikely]] {
    beginSmall();
    if (small.count[index] >= small.limit)
      return ::free(memory);
  }
  small.free[index] = new (memory) Piece{small.free[index]};
  ++small.count[index];
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

/// Eight capacities between powers of two: at most 1/8 is wasted and near sizes share blocks. From twice kHuge on they
/// are whole huge pages.
static size_t largeCapacity(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 8;
  if (bytes >= 2 * kHuge)
    step = std::max(step, kHugePage);
  return (bytes + step - 1) / step * step;
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
    int index = classOf(bytes);
    capacity = kSmallest << index;
    header = takeSmall(index);
    data = static_cast<char *>(header) + kHeader;
  } else if (bytes <= kMedium) {
    capacity = kMedium; // only its class matters
    header = allocateAligned(kHeader + bytes);
    data = static_cast<char *>(header) + kHeader;
  } else {
    capacity = largeCapacity(bytes);
    header = takeSmall(0);
    try {
      data = takeLarge(capacity);
    } catch (...) {
      keepSmall(header, 0);
      throw;
    }
  }
  liveTotal.fetch_add(bytes, std::memory_order_relaxed);
  static_assert(sizeof(Block) <= kHeader);
  return Buffer(new (header) Block{data, bytes, capacity, 1, nullptr, nullptr});
}

Buffer Buffer::refer(const void *data, size_t bytes, void (*release)(void *owner) noexcept, void *owner) {
  void *header = kExactBlocks ? ::malloc(sizeof(Block)) : takeSmall(0);
  if (!header)
    throw std::bad_alloc();
  return Buffer(new (header) Block{const_cast<void *>(data), bytes, 0, 1, release, owner});
}

void Buffer::free(Block *block) {
  if (block->release) {
    auto [release, owner] = std::pair(block->release, block->owner);
    kExactBlocks ? ::free(block) : keepSmall(block, 0);
    return release(owner);
  }
  size_t capacity = block->capacity;
  liveTotal.fetch_sub(block->bytes, std::memory_order_relaxed);
  if (kExactBlocks) {
    ::free(block->data);
    ::free(block);
  } else if (capacity <= kSmall) {
    keepSmall(block, classOf(capacity));
  } else if (capacity <= kMedium) {
    ::free(block);
  } else {
    keepLarge(block->data, capacity);
    keepSmall(block, 0);
  }
}

size_t Buffer::liveBytes() { return liveTotal.load(std::memory_order_relaxed); }

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
