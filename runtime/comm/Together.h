// What ranks do step by step together, outside of any program: each has its part of it, and where one fails all do.
#pragma once

#include "runtime/comm/Collectives.h"

#include <type_traits>

namespace wg::runtime {

/// The ranks of a group, or one alone. All of them call the same, in the same order. A Failure of the transport, a rank
/// that does not come in time, says nothing of what the others have done.
class Together {
public:
  Together() = default;
  Together(CommGroup &group, const CommOptions &options)
      : group_(group.size() > 1 ? &group : nullptr), options_(options) {}
  size_t size() const { return group_ ? static_cast<size_t>(group_->size()) : 1; }
  size_t rank() const { return group_ ? static_cast<size_t>(group_->rank()) : 0; }
  /// The rank that has part i of what there is to do.
  size_t rankOf(size_t i) const { return i % size(); }
  bool isMine(size_t i) const { return rankOf(i) == rank(); }

  /// Comes first: a Failure on all ranks unless all are here, with this text: `rank 1 saves other weights than rank 0`
  /// with `saves other weights`.
  Status begin(std::string_view text, const std::string &what) const;
  /// The same, later on.
  Status compare(std::string_view text, const std::string &what) const;
  /// What each rank has, in their order; as many on each.
  template <class T> Result<std::vector<T>> gather(const std::vector<T> &mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!group_)
      return mine;
    std::vector<T> all(mine.size() * size());
    auto bytes = static_cast<int64_t>(mine.size() * sizeof(T));
    if (Status status = group_->gather(mine.data(), all.data(), bytes, options_); !status.ok())
      return status;
    return all;
  }
  /// Whether a rank has failed, and then a Failure on all: its own, or one that says `rank 1 could not WHAT` and what
  /// that rank says. `allKnow` is false where the transport failed.
  Status agree(Status own, const std::string &what, bool *allKnow = nullptr) const;

private:
  CommGroup *group_ = nullptr;
  CommOptions options_;
};

} // namespace wg::runtime
