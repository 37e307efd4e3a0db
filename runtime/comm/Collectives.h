// What the ranks of a group compute together. All of them call the same, in the same order, with the same sizes: first
// they tell each other what they are at, and if that differs, each has an error that names who is elsewhere.
//
// Sums are taken over one fixed tree of ranks, ((0 + 1) + (2 + 3)) + ..., whatever the transport is, so a sum has the
// same bits on all ranks, and in every run.
#pragma once

#include "runtime/DType.h"
#include "runtime/Status.h"
#include "runtime/comm/comm.h"

#include <csignal>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace wg::runtime {

enum class Collective : int64_t {
  sum,
  mean,
  max,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  barrier,
  step,
  together
};
inline constexpr std::string_view kCollectives[] = {
    "all_reduce_sum", "all_reduce_mean", "all_reduce_max", "all_gather",           "reduce_scatter",
    "broadcast",      "reduce",          "barrier",        "a data parallel step", "what ranks save together"};

/// One call: y of one rank's x. `count`: elements of x; of reduce_scatter of y.
struct CollectiveCall {
  Collective kind;
  DType dtype = DType::f32;
  int64_t count = 0;
  int32_t root = 0; ///< of broadcast; of reduce, whose y is 0 elsewhere
};

/// a[i] += b[i], or the larger of both, as `call` says.
Status combine(const CollectiveCall &call, void *a, const void *b, int64_t count);

struct CommOptions {
  double timeout = 60;    ///< seconds for which a rank waits for the others
  bool check = true;      ///< whether ranks tell each other what they are at
  bool any_order = false; ///< sums as the transport likes to take them, which may be faster
};

/// A group of ranks, as one of them has it.
class CommGroup {
public:
  explicit CommGroup(wg_comm *comm, bool owns = false) : comm_(comm), owns_(owns) {}
  CommGroup(CommGroup &&other) noexcept
      : comm_(other.comm_), owns_(std::exchange(other.owns_, false)), calls_(other.calls_) {}
  ~CommGroup() {
    if (owns_)
      comm_->release(comm_);
  }
  int rank() const { return comm_->rank; }
  int size() const { return comm_->size; }
  wg_comm *comm() const { return comm_; }
  /// x and y do not overlap; all_gather's y and reduce_scatter's x have size() times `count` elements.
  Status run(const CollectiveCall &call, const void *x, void *y, const CommOptions &options);
  /// The rows that each rank has for call `times` of a step of this name, and whether one of them was asked to end.
  Status meet(std::string_view step, int64_t times, bool asked, int64_t rows, std::vector<int64_t> &all, bool &anyAsked,
              const CommOptions &options);
  /// Are all about to do the same together (Together)?
  Status begin(const CommOptions &options);
  /// `bytes` of each rank, one after the other.
  Status gather(const void *mine, void *all, int64_t bytes, const CommOptions &options);
  /// parts[i] goes to rank i.
  Status exchange(const wg_comm_part *parts, const CommOptions &options);

  /// Waits for an exchange that was started.
  Status wait(void *request, const CommOptions &options);
  /// What the transport says of its last failure.
  Status failure() const;

private:
  struct Place;
  Status agree(const CollectiveCall &call, const CommOptions &options);
  Status refuse(const std::vector<Place> &all);
  Status sum(const CollectiveCall &call, const void *x, void *y, const CommOptions &options);
  wg_comm *comm_;
  bool owns_;
  uint64_t calls_ = 0;
};

/// What this thread's rank is in: all ranks, and the groups that it has made of them, by number.
struct Ranks {
  std::vector<CommGroup> groups; ///< the first is all ranks
  CommOptions options;
  bool terminating = false; ///< the ranks have told each other that one was asked to end
};
/// Set by the handler of SIGTERM.
extern volatile std::sig_atomic_t terminationAsked;
/// Of a rank that is a thread, else of the process; one rank alone if there are no others.
Ranks &ranks();
/// Whether nobody has made it a rank.
bool isAlone();
/// The thread is a rank of its own while this lives.
class RankScope {
public:
  explicit RankScope(Ranks &ranks);
  ~RankScope();

private:
  Ranks *before_;
};
/// The process becomes a rank, until its end.
void setProcessRanks(std::unique_ptr<Ranks> ranks);

/// The routine that programs call: numbers are those of CollectiveCall in its order, then the group's number and how
/// many ranks it was traced for (0: any).
/// In place of a group's number: the shards of a data parallel step, which are summed between its programs.
inline constexpr int64_t kShardGroup = -1;
inline constexpr char kCollectiveCall[] = "wg_collective";
int32_t runCollective(void *const *pointers, const int64_t *numbers, void *);

} // namespace wg::runtime
