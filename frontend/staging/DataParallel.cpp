// A data parallel step: traced for one shard, run for each of this rank's, summed over all ranks'.
#include "frontend/staging/ShardRun.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace wg::detail {

using runtime::Array;
using runtime::CommGroup;
using runtime::ShardPlan;
using Clock = std::chrono::steady_clock;

//===- The step ---------------------------------------------------------------------------------------------------===//

class DataParallelState {
public:
  std::string name;
  dist::DataParallelOptions options;
  std::shared_ptr<FunctionState> function;

  std::shared_ptr<const ShardPrograms> programsOf(const std::shared_ptr<ConcreteState> &step,
                                                  const std::vector<bool> &isCut, const Where &where) {
    std::lock_guard lock(mutex);
    if (auto known = programs.find(step.get()); known != programs.end()) {
      known->second.lastUse = ++clock;
      return known->second.programs;
    }
    try {
      Traced made{step, shardPrograms(*step, isCut, options.bucket_bytes, options.function.interpret, where), ++clock};
      if (static_cast<int64_t>(programs.size()) >= options.function.capacity)
        programs.erase(std::min_element(programs.begin(), programs.end(), [](const auto &a, const auto &b) {
          return a.second.lastUse < b.second.lastUse;
        }));
      return programs.emplace(step.get(), std::move(made)).first->second.programs;
    } catch (...) { // the next call traces again
      std::lock_guard guard(function->mutex);
      function->eraseEntries([&](const Entry &entry) { return entry.concrete == step; });
      throw;
    }
  }
  /// One call at a time, of one rank: what is read in one part is assigned in another. False: another rank is in it.
  bool enter() {
    const runtime::Ranks *here = &runtime::ranks();
    std::lock_guard lock(entering);
    if (users > 0 && user != here)
      return false;
    if (user != here) { // ranks of another run
      agreed.clear();
      same.clear();
      variables.clear();
    }
    user = here;
    ++users;
    return true;
  }
  void leave() {
    std::lock_guard lock(entering);
    --users;
  }

  /// That all ranks have the same program; new variables get rank 0's values.
  void agree(const ShardPrograms &pattern, std::span<const Arguments::Leaf> leaves, CommGroup &group,
             const runtime::CommOptions &comm, const Where &where);

  struct Traced {
    std::shared_ptr<ConcreteState> step; ///< kept: it is known by its address
    std::shared_ptr<const ShardPrograms> programs;
    uint64_t lastUse = 0;
  };
  mutable std::mutex mutex;
  std::map<const ConcreteState *, Traced> programs;
  uint64_t clock = 0;
  std::mutex calling, entering;
  int64_t meetings = 0;                 ///< with the other ranks; for who has `calling`
  const runtime::Ranks *user = nullptr; ///< that calls it, or did last
  int users = 0;                        ///< calls that are running or wait
  std::set<std::string> agreed;         ///< digests that all ranks have
  std::set<int64_t> same;               ///< variables that have been given rank 0's values, by id
  std::vector<Variable> variables;
  dist::Communication communication;
};

std::shared_ptr<DataParallelState> makeDataParallel(std::string name, const dist::DataParallelOptions &options,
                                                    const Where &where) {
  auto refuse = [&](const std::string &message, const char *remedy) {
    raiseOp(name.c_str(), message, remedy, {}, where);
  };
  if (options.shards < 0 || options.shards > (int64_t(1) << 20))
    refuse("DataParallelOptions::shards is " + std::to_string(options.shards), "give 0 to 2^20");
  if (options.loss == dist::Reduction::max)
    refuse("the loss of a batch is the mean or the sum of its shards' losses, not the largest",
           "give Reduction::mean or Reduction::sum");
  if (options.check_every < 0 || options.bucket_bytes < 1)
    refuse("DataParallelOptions::check_every is " + std::to_string(options.check_every) + ", bucket_bytes " +
               std::to_string(options.bucket_bytes),
           "give 0 or more, and 1 or more");
  auto state = std::make_shared<DataParallelState>();
  state->name = name;
  state->options = options;
  state->function = makeFunction(name, options.function, where);
  return state;
}

DataParallelState &stateOf(const std::shared_ptr<DataParallelState> &state, const Where &where) {
  if (!state)
    raiseOp("data_parallel", "it was moved from, and holds nothing", "use the step that it was moved to", {}, where,
            ErrorKind::runtime);
  return *state;
}

//===- A call -----------------------------------------------------------------------------------------------------===//

struct ShardedCall::Impl {
  DataParallelState &state;
  Where where;
  OutsideTrace eager; ///< a tape outside does not see what is done for shards
  CommGroup *group;
  ShardPlan plan = {};
  int64_t rows = -1;
  std::string firstText = {}; ///< of the tensor that said how many
  int64_t begin = 0, end = 0; ///< this rank's shards
  bool hasPattern = false;    ///< the first is only traced for: it has the rows of shard 0
  std::unique_lock<std::mutex> calling = {};
  bool entered = false, done = false;
  Clock::time_point started = Clock::now();

  int64_t shardAt(size_t i) const { return hasPattern && i == 0 ? 0 : begin + static_cast<int64_t>(i) - hasPattern; }
  runtime::CommOptions comm() const { return runtime::ranks().options; }
  void fail(const std::string &text) {
    if (group->size() > 1)
      group->comm()->fail(group->comm(), text.c_str());
  }
  [[noreturn]] void refuse(const std::string &message, const std::string &remedy,
                           std::vector<TensorType> operands = {}) {
    fail("rank " + std::to_string(group->rank()) + " has failed: " + message);
    raiseOp(state.name.c_str(), message, remedy, std::move(operands), where);
  }
  void check(runtime::Status status) { checkOf(state.name, std::move(status), where); }
};

ShardedCall::ShardedCall(DataParallelState &state, int arguments, const Where &where) {
  if (level().trace)
    raiseOp(state.name.c_str(), "a data parallel step is called inside of a traced function",
            "call it outside; what is traced inside of the step is compiled with it", {}, where,
            ErrorKind::unimplemented);
  impl_.reset(new Impl{.state = state, .where = where, .eager = {}, .group = &runtime::ranks().groups.front()});
  impl_->plan = {.rows = 0, .shards = state.options.shards, .ranks = impl_->group->size()};
  if (impl_->plan.shards == 0)
    impl_->plan.shards = impl_->plan.ranks;
  for (int whole : state.options.whole)
    if (whole < 0 || whole >= arguments)
      impl_->refuse("DataParallelOptions::whole names argument " + std::to_string(whole) + ", and there are " +
                        std::to_string(arguments),
                    "count them from 0");
  if (impl_->plan.ranks > impl_->plan.shards)
    impl_->refuse("there are " + std::to_string(impl_->plan.ranks) + " ranks, and a batch is cut into " +
                      std::to_string(impl_->plan.shards) + " shards",
                  "give as many shards, or more: DataParallelOptions::shards");
  if (!state.enter())
    impl_->refuse("several ranks, threads of one process, call one step", "let each rank make its own");
  impl_->entered = true;
  impl_->calling = std::unique_lock(state.calling);
}

/// Whatever went wrong before the end: the others are not to wait for this rank.
ShardedCall::~ShardedCall() {
  if (!impl_)
    return;
  if (!impl_->done)
    impl_->fail("rank " + std::to_string(impl_->group->rank()) + " has failed in '" + impl_->state.name + "'");
  impl_->calling = {};
  if (impl_->entered)
    impl_->state.leave();
}

const dist::DataParallelOptions &ShardedCall::options() const { return impl_->state.options; }

bool ShardedCall::isCut(const Tensor &tensor, int argument) const {
  const std::vector<int> &whole = impl_->state.options.whole;
  return tensor.body(impl_->where)->type.shape.rank() > 0 &&
         std::find(whole.begin(), whole.end(), argument) == whole.end();
}

void ShardedCall::rows(const Tensor &tensor, int argument) {
  const TensorType &type = tensor.body(impl_->where)->type;
  if (tensor.symbolic())
    raiseOutOfScope(impl_->state.name.c_str(), tensor, impl_->where);
  int64_t rows = type.shape.dim(0);
  std::string text = "argument " + std::to_string(argument) + " is " + toString(type);
  if (impl_->rows >= 0 && impl_->rows != rows)
    impl_->refuse(text + ", and " + impl_->firstText + ": their rows are no batch",
                  "give all the same number of rows, or name those that are not cut in DataParallelOptions::whole",
                  {type});
  if (impl_->rows < 0)
    impl_->firstText = std::move(text);
  impl_->rows = rows;
}

void ShardedCall::meet() {
  Impl &self = *impl_;
  int64_t ranks = self.group->size();
  if (self.rows < 0)
    self.refuse("no argument has rows to be cut into shards",
                "give the batch as tensors whose first axis counts the examples");
  std::vector<int64_t> all;
  self.check(self.group->meet(self.state.name, ++self.state.meetings, runtime::terminationAsked, self.rows, all,
                              runtime::ranks().terminating, self.comm()));
  for (int64_t rows : all)
    self.plan.rows += rows;
  if (self.plan.rows == 0)
    self.refuse("the batch has no rows on any rank", "end the epoch before it");
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (auto [first, last] = self.plan.rowsOfRank(rank); last - first != all[static_cast<size_t>(rank)])
      self.refuse("rank " + std::to_string(rank) + " gives " + std::to_string(all[static_cast<size_t>(rank)]) +
                      " rows of a batch of " + std::to_string(self.plan.rows) + ", of which its shards have " +
                      std::to_string(last - first),
                  "give each rank the rows of dist::rows_of_rank(" + std::to_string(self.plan.rows) + ", " +
                      std::to_string(self.plan.shards) + "), as Dataset::ranks does");
  std::tie(self.begin, self.end) = self.plan.shardsOf(self.group->rank());
  self.hasPattern = self.begin == self.end || self.plan.rowsOf(self.begin) != self.plan.rowsOf(0);
}

size_t ShardedCall::count() const {
  return static_cast<size_t>(impl_->end - impl_->begin) + (impl_->hasPattern ? 1 : 0);
}

static Shape withRows(const Shape &shape, int64_t rows) {
  Shape made{rows};
  for (int axis = 1; axis < shape.rank(); ++axis)
    made.push_back(shape.dim(axis));
  return made;
}

Tensor ShardedCall::cut(const Tensor &tensor, size_t i) const {
  const Impl &self = *impl_;
  Array whole = arrayOf(tensor);
  int64_t shard = self.shardAt(i), rows = self.plan.rowsOf(shard);
  if (rows == whole.shape().dim(0) && !self.hasPattern)
    return tensor;
  Shape shape = withRows(whole.shape(), rows);
  if (self.hasPattern && i == 0)
    return makeTensor(Array::zeros(whole.dtype(), shape));
  Array part = Array::empty(whole.dtype(), shape);
  size_t row = rows ? part.numBytes() / static_cast<size_t>(rows) : 0;
  auto before = static_cast<size_t>(self.plan.firstRow(shard) - self.plan.firstRow(self.begin));
  std::memcpy(part.buffer.data(), static_cast<const char *>(whole.buffer.data()) + before * row, part.numBytes());
  return makeTensor(std::move(part));
}

Tensor ShardedCall::index(size_t i) const { return makeTensor(Array::scalar(impl_->shardAt(i))); }
Tensor ShardedCall::share(size_t i) const {
  return makeTensor(Array::scalar(static_cast<double>(impl_->plan.rowsOf(impl_->shardAt(i))) /
                                  static_cast<double>(impl_->plan.rows)));
}

/// The rows of each shard, one after the other.
static Tensor joined(const std::string &name, const std::vector<Array> &parts, const TensorType &type,
                     const Where &where) {
  int64_t rows = 0;
  for (const Array &part : parts) {
    if (!(withRows(part.shape(), 0) == withRows(parts[0].shape(), 0)))
      raiseOp(name.c_str(),
              "a result is " + toString(parts[0].type) + " of one shard and " + toString(part.type) +
                  " of another: these are no rows",
              "return what differs by rows in the first axis only, or sum it: dist::all_reduce",
              {parts[0].type, part.type}, where);
    rows += part.shape().dim(0);
  }
  if (parts.size() == 1)
    return makeTensor(parts[0]);
  Array whole = Array::empty(type.dtype, withRows(parts.empty() ? type.shape : parts[0].shape(), rows));
  auto to = static_cast<char *>(whole.buffer.data());
  for (const Array &part : parts) {
    std::memcpy(to, part.buffer.data(), part.numBytes());
    to += part.numBytes();
  }
  return makeTensor(std::move(whole));
}

void ShardedCall::run(std::span<const Shard> shards, Results &results) {
  Impl &self = *impl_;
  DataParallelState &state = self.state;
  CommGroup &group = *self.group;
  std::optional<ShardRun> run; // outlives the news that it has failed
  try {
    std::vector<std::shared_ptr<ConcreteState>> steps;
    std::vector<ShardRun::Shard> runs;
    for (const Shard &shard : shards) {
      if (shard.arguments->symbolic)
        checkInScope(state.name.c_str(), *shard.arguments, /*specs=*/false);
      steps.push_back(state.function->find(*shard.arguments, shard.body, /*exact=*/true));
      std::span<const Arguments::Leaf> leaves(shard.arguments->leaves.begin(), shard.arguments->leaves.size());
      runs.push_back({leaves, state.programsOf(steps.back(), shard.isCut, self.where)});
    }
    const ShardPrograms &pattern = *runs[0].programs;
    for (const ShardRun::Shard &each : runs) {
      if (!each.programs->sumsAs(pattern))
        raiseOp(state.name.c_str(), "shards with other numbers of rows are other programs, which sum something else",
                "let the step not depend on the number of rows", {}, self.where);
      if (each.programs->lastDigest != pattern.lastDigest)
        raiseOp(state.name.c_str(),
                "what is computed once for all shards depends on the number of rows, which is that of a shard",
                "count rows by what differs from shard to shard, such as reduce_sum(ones_like(y))", {}, self.where);
    }
    if (group.size() > 1)
      state.agree(pattern, runs[0].leaves, group, self.comm(), self.where);

    std::span<ShardRun::Shard> own = std::span(runs).subspan(self.hasPattern ? 1 : 0);
    std::vector<Tensor> outputs(steps[0]->numResults);
    Inline<Tensor, 8> last;
    // All that may fail comes before the variables change, here or elsewhere.
    run.emplace(state.name, group, self.plan, self.where);
    run->run(pattern, own, [&] {
      handOver(*steps[0], results);
      results.tensors.reserve(outputs.size());
      for (const ShardPrograms::Stage &stage : pattern.stages)
        for (const ShardPrograms::Kept &output : stage.outputs) {
          std::vector<Array> parts;
          for (const ShardRun::Shard &shard : own)
            for (const auto &[number, array] : shard.outputs)
              if (number == output.slot)
                parts.push_back(array);
          const TensorType &type = steps[0]->code->results()[output.slot];
          if (type.shape.rank() == 0)
            raiseOp(state.name.c_str(), "a result without axes differs from shard to shard", "sum it: dist::all_reduce",
                    {type}, self.where);
          outputs[output.slot] = joined(state.name, parts, type, self.where);
        }
    });
    run->finish(pattern, runs[0].leaves, last);
    for (const ShardPrograms::Kept &output : pattern.outputs)
      outputs[output.slot] = last[output.result];
    for (const Tensor &output : outputs)
      results.tensors.push_back(output);
  } catch (const std::exception &error) {
    self.fail("rank " + std::to_string(group.rank()) + " has failed: " + error.what());
    throw;
  } catch (...) {
    self.fail("rank " + std::to_string(group.rank()) + " has failed");
    throw;
  }
  self.done = true;
  int64_t calls;
  {
    std::lock_guard lock(state.mutex);
    calls = ++state.communication.calls;
    run->addTo(state.communication.buckets);
    state.communication.step_seconds += std::chrono::duration<double>(Clock::now() - self.started).count();
  }
  if (group.size() > 1 && state.options.check_every && calls % state.options.check_every == 0)
    dist::check_same(state.variables, {}, self.where);
}

void DataParallelState::agree(const ShardPrograms &pattern, std::span<const Arguments::Leaf> leaves, CommGroup &group,
                              const runtime::CommOptions &comm, const Where &where) {
  if (!agreed.contains(pattern.digest)) {
    std::string all(pattern.digest.size() * static_cast<size_t>(group.size()), '\0');
    if (runtime::Status status = group.gather(pattern.digest.data(), all.data(), std::ssize(pattern.digest), comm);
        !status.ok())
      raise(status.take(), where);
    std::string differing;
    for (int rank = 1; rank < group.size(); ++rank)
      if (all.compare(static_cast<size_t>(rank) * pattern.digest.size(), pattern.digest.size(), pattern.digest) != 0)
        differing += (differing.empty() ? "" : ", ") + std::to_string(rank);
    if (all.compare(0, pattern.digest.size(), pattern.digest) != 0)
      differing = "0";
    if (!differing.empty())
      raiseOp(name.c_str(),
              "rank " + std::to_string(group.rank()) + " has traced another program than rank " + differing,
              "trace the same on all ranks: let nothing in the step depend on the rank, and give all the same dtypes "
              "and sizes",
              {}, where);
    agreed.insert(pattern.digest);
  }
  std::vector<Variable> fresh;
  auto add = [&](const Variable &variable) {
    if (same.insert(variable.id()).second) {
      fresh.push_back(variable);
      variables.push_back(variable);
    }
  };
  for (const Variable &variable : pattern.variables)
    add(variable);
  for (const Arguments::Leaf &leaf : leaves)
    if (leaf.variable)
      add(*leaf.variable);
  if (options.broadcast && !fresh.empty())
    dist::broadcast(fresh, 0, {}, where);
}

} // namespace wg::detail

namespace wg::dist {

double Communication::overlapped() const {
  double all = 0, waited = 0;
  for (const Bucket &bucket : buckets) {
    all += bucket.seconds;
    waited += bucket.waited;
  }
  return all > 0 ? std::max(0.0, 1 - waited / all) : 0;
}

std::pair<int64_t, int64_t> rows_of_rank(int64_t rows, int64_t shards) {
  runtime::ShardPlan plan{.rows = rows, .shards = shards ? shards : size(), .ranks = size()};
  return plan.rowsOfRank(rank());
}

Tensor shard(Where where) { return detail::shardIndex(where); }

const std::string &DataParallelBase::name() const { return detail::stateOf(state_, {}).name; }

Communication DataParallelBase::communication() const {
  detail::DataParallelState &state = detail::stateOf(state_, {});
  std::lock_guard lock(state.mutex);
  return state.communication;
}

std::string DataParallelBase::report() const {
  detail::DataParallelState &state = detail::stateOf(state_, {});
  std::lock_guard lock(state.mutex);
  const Communication &sent = state.communication;
  std::string text =
      fmt::format("{}: {} shards, {} ranks, {} calls\n", state.name, state.options.shards, size(), sent.calls);
  if (state.options.shards == 0)
    text += "one shard for each rank: results depend on the number of ranks\n";
  if (runtime::ranks().options.any_order)
    text += "sums in any order: results depend on the number of ranks, and may differ from run to run\n";
  for (const auto &[step, traced] : state.programs) {
    text += "\n" + step->signature + "\n";
    for (size_t i = 0; i < traced.programs->stages.size(); ++i) {
      const detail::ShardPrograms::Stage &stage = traced.programs->stages[i];
      text += fmt::format("  stage {}, for each shard: {} ops; gives {}\n", i, stage.program->numOps, stage.what);
    }
    text += fmt::format("  at the end, once: {} ops; assigns {} variables\n", traced.programs->last->numOps,
                        traced.programs->last->assigned.size());
  }
  if (!sent.buckets.empty())
    text += "\n| bucket | bytes | a call | of it waited |\n|---|--:|--:|--:|\n";
  for (const Communication::Bucket &bucket : sent.buckets) {
    double calls = static_cast<double>(std::max<int64_t>(1, sent.calls));
    text += fmt::format("| {} | {} | {:.3g} ms | {:.0f} % |\n", bucket.what, bucket.bytes, bucket.seconds / calls * 1e3,
                        bucket.seconds > 0 ? 100 * bucket.waited / bucket.seconds : 0);
  }
  return text;
}

} // namespace wg::dist
