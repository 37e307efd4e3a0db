#include "frontend/staging/ShardRun.h"

namespace wg::detail {

using runtime::Array;
using Clock = std::chrono::steady_clock;

void ShardRun::run(const ShardPrograms &pattern, std::span<Shard> shards, const std::function<void()> &computed) {
  common_.resize(pattern.slots);
  int levels = 1;
  auto reach = [&](const ShardPrograms &programs) {
    if (!programs.stages.empty())
      levels = std::max(levels, programs.stages.back().level + 1);
  };
  reach(pattern);
  for (Shard &shard : shards) {
    reach(*shard.programs);
    shard.slots.resize(shard.programs->slots);
  }
  for (int level = 0; level < levels; ++level) {
    for (const ShardPrograms::Stage &stage : pattern.stages)
      if (stage.level == level && stage.bucket >= 0) {
        prepare(stage, false);
        prepare(stage, true);
      }
    int last = -1; // what fails in this rank's last part fails before the others have the last sum
    for (const ShardPrograms::Stage &stage : pattern.stages)
      if (stage.level == level)
        last = std::max(last, stage.bucket);
    for (size_t i = 0; i < shards.size(); ++i)
      for (const ShardPrograms::Stage &stage : shards[i].programs->stages)
        if (stage.level == level) {
          compute(stage, shards[i]);
          if (i + 1 == shards.size() && stage.bucket != last)
            send(stage.bucket);
        }
    for (const ShardPrograms::Stage &stage : pattern.stages)
      if (stage.level == level && shards.empty() && stage.bucket != last) // a rank without rows takes part
        send(stage.bucket);
    if (level + 1 == levels)
      computed();
    if (last >= 0)
      send(last);
    else if (level + 1 == levels)
      meet();
    receive();
    for (Shard &shard : shards)
      for (size_t slot = 0; slot < shard.slots.size(); ++slot)
        if (shard.programs->lastLevel[slot] <= level)
          shard.slots[slot] = Tensor();
  }
}

void ShardRun::finish(const ShardPrograms &pattern, std::span<const Arguments::Leaf> leaves,
                      Inline<Tensor, 8> &results) {
  std::vector<Arguments::Leaf> all = withSlots(leaves, common_);
  callConcrete(*pattern.last, all, results, where_);
}

/// One for each dtype.
void ShardRun::prepare(const ShardPrograms::Stage &stage, bool largest) {
  const std::vector<uint32_t> &slots = largest ? stage.largest : stage.sums;
  size_t first = largest ? stage.sums.size() : 0;
  for (size_t i = 0; i < slots.size();) {
    std::vector<TensorType> types;
    size_t begin = i;
    for (; i < slots.size(); ++i) {
      const TensorType &type = stage.program->code->results()[first + i];
      if (!types.empty() && type.dtype != types[0].dtype)
        break;
      types.push_back(type);
    }
    runtime::CollectiveCall call{largest ? runtime::Collective::max : runtime::Collective::sum, types[0].dtype};
    sums_.push_back({&stage, first + begin,
                     std::vector<uint32_t>(slots.begin() + static_cast<std::ptrdiff_t>(begin),
                                           slots.begin() + static_cast<std::ptrdiff_t>(i)),
                     runtime::ShardSum(group_, options_, plan_, call, std::move(types))});
  }
}

/// The leaves of a part: those of the step, then what has a slot.
std::vector<Arguments::Leaf> ShardRun::withSlots(std::span<const Arguments::Leaf> leaves,
                                                 std::span<const Tensor> own) const {
  std::vector<Arguments::Leaf> all(leaves.begin(), leaves.end());
  for (size_t slot = 0; slot < own.size(); ++slot)
    all.push_back({slot < common_.size() && common_[slot].defined() ? &common_[slot] : &own[slot], nullptr});
  return all;
}

void ShardRun::compute(const ShardPrograms::Stage &stage, Shard &shard) {
  Inline<Tensor, 8> results;
  {
    std::vector<Arguments::Leaf> leaves = withSlots(shard.leaves, shard.slots);
    callConcrete(*stage.program, leaves, results, where_);
  }
  for (const ShardPrograms::Kept &kept : stage.kept)
    shard.slots[kept.slot] = results[kept.result];
  for (const ShardPrograms::Kept &output : stage.outputs)
    shard.outputs.emplace_back(output.slot, arrayOf(results[output.result]));
  for (Sum &sum : sums_) {
    if (sum.stage->bucket != stage.bucket)
      continue;
    std::vector<Array> arrays;
    for (size_t i = 0; i < sum.slots.size(); ++i) {
      arrays.push_back(arrayOf(results[sum.first + i]));
      results[sum.first + i] = Tensor();
    }
    check(sum.sum.add(std::move(arrays)));
  }
}

/// All ranks are here.
void ShardRun::meet() {
  std::vector<char> all(static_cast<size_t>(group_.size()));
  char own = 0;
  if (group_.size() > 1)
    check(group_.gather(&own, all.data(), 1, options_));
}

void ShardRun::send(int bucket) {
  for (Sum &sum : sums_)
    if (sum.stage->bucket == bucket) {
      if (pending_)
        check(pending_->sum.gather());
      sum.sent = Clock::now();
      check(sum.sum.start());
      pending_ = &sum;
    }
}

void ShardRun::receive() {
  if (pending_)
    check(pending_->sum.gather());
  pending_ = nullptr;
  for (; received_ < sums_.size(); ++received_) {
    Sum &sum = sums_[received_];
    std::vector<Array> arrays;
    check(sum.sum.finish(arrays));
    for (size_t i = 0; i < sum.slots.size(); ++i)
      common_[sum.slots[i]] = makeTensor(std::move(arrays[i]));
    sum.seconds = std::chrono::duration<double>(Clock::now() - sum.sent).count();
  }
}

void ShardRun::addTo(std::vector<dist::Communication::Bucket> &buckets) const {
  if (buckets.size() < sums_.size())
    buckets.resize(sums_.size());
  for (size_t i = 0; i < sums_.size(); ++i) {
    dist::Communication::Bucket &bucket = buckets[i];
    if (bucket.what != sums_[i].stage->what)
      bucket.what = sums_[i].stage->what;
    bucket.bytes = sums_[i].sum.bytes();
    bucket.seconds += sums_[i].seconds;
    bucket.waited += sums_[i].sum.waited();
  }
}

void ShardRun::check(runtime::Status status) const { checkOf(name_, std::move(status), where_); }

void checkOf(const std::string &name, runtime::Status status, const Where &where) {
  if (status.ok())
    return;
  runtime::Failure failure = status.take();
  failure.op = name;
  if (failure.remedy.empty()) // a transport that met another message than it waits for
    failure.remedy = "see whether that rank traces another program: arguments, and what the step reads of C++, are the "
                     "same on all ranks";
  raise(std::move(failure), where);
}

} // namespace wg::detail
