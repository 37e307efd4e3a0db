// Workspaces of compiled calls: taken from a free list, given back when the call ends. A step in a steady state takes
// the same block each time and asks the system for nothing.
#pragma once

#include "runtime/Buffer.h"

#include <utility>

namespace wg::runtime {

/// A workspace of a call: 64-byte aligned, on huge pages from 4 MiB on, uninitialised.
/// Movable; back to the list at its end.
class Workspace {
public:
  Workspace() = default;
  Workspace(Workspace &&other) noexcept : buffer_(std::move(other.buffer_)) {}
  Workspace &operator=(Workspace &&other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Workspace();
  void *data() const { return buffer_.data(); }
  size_t size() const { return buffer_.size(); }

private:
  friend Workspace acquireWorkspace(size_t bytes);
  explicit Workspace(Buffer buffer) : buffer_(std::move(buffer)) {}
  Buffer buffer_;
};

/// At least `bytes` bytes. Throws std::bad_alloc when memory is gone. Thread-safe.
Workspace acquireWorkspace(size_t bytes);

/// Returns the free workspaces to the system.
void trimWorkspaces();

} // namespace wg::runtime
