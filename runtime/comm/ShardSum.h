// Sums over the shards of a batch, of which each rank has some that follow one another. They are taken over one tree of
// shards, ((0 + 1) + (2 + 3)) + ..., so their bits depend on the number of shards, and not on who has which.
#pragma once

#include "runtime/Array.h"
#include "runtime/comm/Collectives.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wg::runtime {

/// How a batch is cut into shards, and how these are spread over ranks. The first shards have a row more where their
/// number does not divide that of the rows; where there are fewer rows than shards, the last have none.
struct ShardPlan {
  int64_t rows = 0, shards = 1;
  int64_t ranks = 1;

  int64_t used() const { return std::min(rows, shards); } ///< shards that have rows
  int64_t rowsOf(int64_t shard) const { return rows / shards + (shard < rows % shards ? 1 : 0); }
  int64_t firstRow(int64_t shard) const { return shard * (rows / shards) + std::min(shard, rows % shards); }
  int64_t firstShard(int64_t rank) const { return rank * shards / ranks; }
  /// The shards with rows of a rank: [begin, end).
  std::pair<int64_t, int64_t> shardsOf(int64_t rank) const {
    return {std::min(firstShard(rank), used()), std::min(firstShard(rank + 1), used())};
  }
  /// Its rows: [begin, end).
  std::pair<int64_t, int64_t> rowsOfRank(int64_t rank) const {
    return {firstRow(firstShard(rank)), firstRow(firstShard(rank + 1))};
  }
};

/// A part of the sum: what the shards [first, first + 2^level) give, or those of them that there are.
struct ShardNode {
  int64_t first = 0;
  int level = 0;
};

/// One sum of some arrays of one dtype, or their largest elements. All ranks make it, start it and finish it; several
/// may be on their way, whose functions all ranks call in one order.
class ShardSum {
public:
  /// `call`: sum or max, and the dtype. `types` are the arrays'.
  ShardSum(CommGroup &group, const CommOptions &options, const ShardPlan &plan, const CollectiveCall &call,
           std::vector<TensorType> types);
  ShardSum(ShardSum &&) = default;
  ~ShardSum();

  /// What this rank's next shard gives. The arrays are written into, unless others hold them.
  Status add(std::vector<Array> arrays);
  /// Once all of this rank's shards have been added: sends the pieces that other ranks sum.
  Status start();
  /// Waits for what they send, sums this rank's piece and sends it to all.
  Status gather();
  /// Waits for the others' pieces. The sums, on every rank.
  Status finish(std::vector<Array> &sums);

  int64_t bytes() const { return count_ * elementBytes_; }
  /// Seconds that this rank has waited for others here.
  double waited() const { return waited_; }

private:
  struct Part {
    ShardNode node;
    std::vector<Array> arrays;
  };
  bool alone() const { return group_->size() == 1; }
  bool inAnyOrder() const;
  Status settle();
  std::vector<ShardNode> nodesOf(int64_t rank) const;
  Status wait();

  CommGroup *group_;
  CommOptions options_;
  ShardPlan plan_;
  CollectiveCall call_;
  std::vector<TensorType> types_;
  int64_t count_ = 0, elementBytes_ = 0, piece_ = 0;
  int64_t next_;
  std::vector<Part> parts_;
  std::vector<Array> packed_; ///< by part: its arrays one after the other
  Array received_, sums_;
  std::vector<void *> requests_;
  double waited_ = 0;
};

} // namespace wg::runtime
