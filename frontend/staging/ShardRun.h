// The shards of one call of a data parallel step through the programs that the step was cut into.
#pragma once

#include "frontend/staging/Function.h"
#include "frontend/staging/ShardScope.h"
#include "runtime/comm/ShardSum.h"

#include <deque>
#include <functional>

namespace wg::detail {

class ShardRun {
public:
  ShardRun(const std::string &name, runtime::CommGroup &group, const runtime::ShardPlan &plan, const Where &where)
      : name_(name), group_(group), plan_(plan), options_(runtime::ranks().options), where_(where) {}

  struct Shard {
    std::span<const Arguments::Leaf> leaves;
    std::shared_ptr<const ShardPrograms> programs;
    std::vector<Tensor> slots = {};
    std::vector<std::pair<uint32_t, runtime::Array>> outputs = {}; ///< of the step, by their number
  };

  /// `pattern`: the programs that say what is summed, and what is computed once. `computed`: before the ranks know that
  /// all have come to the end.
  void run(const ShardPrograms &pattern, std::span<Shard> shards, const std::function<void()> &computed);
  /// What is computed once.
  void finish(const ShardPrograms &pattern, std::span<const Arguments::Leaf> leaves, Inline<Tensor, 8> &results);
  /// Adds what this call has sent.
  void addTo(std::vector<dist::Communication::Bucket> &buckets) const;

private:
  struct Sum {
    const ShardPrograms::Stage *stage;
    size_t first; ///< of the stage's results
    std::vector<uint32_t> slots;
    runtime::ShardSum sum;
    std::chrono::steady_clock::time_point sent = {};
    double seconds = 0; ///< until all was there
  };
  void prepare(const ShardPrograms::Stage &stage, bool largest);
  std::vector<Arguments::Leaf> withSlots(std::span<const Arguments::Leaf> leaves, std::span<const Tensor> own) const;
  void compute(const ShardPrograms::Stage &stage, Shard &shard);
  void meet();
  void send(int bucket);
  void receive();
  void check(runtime::Status status) const;

  const std::string &name_;
  runtime::CommGroup &group_;
  const runtime::ShardPlan &plan_;
  runtime::CommOptions options_;
  const Where &where_;
  std::vector<Tensor> common_; ///< by slot: what all shards have in common
  std::deque<Sum> sums_;       ///< of all levels
  size_t received_ = 0;        ///< so many of them
  Sum *pending_ = nullptr;
};

/// An error of the step if it is one.
void checkOf(const std::string &name, runtime::Status status, const Where &where);

} // namespace wg::detail
