#include "runtime/Arena.h"

#include <array>
#include <mutex>

namespace wg::runtime {

namespace {
/// The free workspaces, the most recently used last: it is the one in cache.
struct FreeList {
  static constexpr size_t kMost = 64, kMostBytes = size_t(1) << 30;
  std::mutex mutex;
  std::array<Buffer, kMost> blocks;
  size_t count = 0, bytes = 0;

  Buffer take(size_t i) {
    Buffer buffer = std::move(blocks[i]);
    for (; i + 1 < count; ++i)
      blocks[i] = std::move(blocks[i + 1]);
    --count;
    bytes -= buffer.size();
    return buffer;
  }
};
/// Never destroyed: a call may end after the static objects have.
FreeList &freeList() {
  static FreeList &list = *new FreeList;
  return list;
}
} // namespace

Workspace acquireWorkspace(size_t bytes) {
  FreeList &list = freeList();
  {
    std::lock_guard lock(list.mutex);
    // One that fits and is not mostly wasted.
    for (size_t i = list.count; i-- > 0;)
      if (size_t size = list.blocks[i].size(); size >= bytes && size / 2 <= bytes)
        return Workspace(list.take(i));
  }
  return Workspace(Buffer::allocate(bytes));
}

Workspace::~Workspace() {
  if (!buffer_)
    return;
  FreeList &list = freeList();
  Buffer oldest; // freed outside the lock
  std::lock_guard lock(list.mutex);
  if (list.count == FreeList::kMost || (list.count > 0 && list.bytes + buffer_.size() > FreeList::kMostBytes))
    oldest = list.take(0);
  list.bytes += buffer_.size();
  list.blocks[list.count++] = std::move(buffer_);
}

void trimWorkspaces() {
  FreeList &list = freeList();
  std::lock_guard lock(list.mutex);
  while (list.count > 0)
    list.take(list.count - 1);
}

} // namespace wg::runtime
