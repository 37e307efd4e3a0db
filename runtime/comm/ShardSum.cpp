#include "runtime/comm/ShardSum.h"

#include <chrono>
#include <mutex>

namespace wg::runtime {

/// What becomes of parts in their order: row first += row second, until the first row has the sum. `nodes` are what is
/// left of them.
static std::vector<std::pair<size_t, size_t>> mergesOf(std::vector<ShardNode> &nodes, std::vector<size_t> &rows,
                                                       int64_t shards) {
  std::vector<std::pair<size_t, size_t>> merges;
  auto size = [](const ShardNode &node) { return int64_t(1) << node.level; };
  while (!nodes.empty()) {
    ShardNode &last = nodes.back();
    bool isLeft = last.first % (2 * size(last)) == 0;
    if (isLeft && last.first + size(last) >= shards && size(last) < shards) {
      ++last.level; // there is nothing to its right
    } else if (!isLeft && nodes.size() > 1 && nodes[nodes.size() - 2].level == last.level &&
               nodes[nodes.size() - 2].first + size(last) == last.first) {
      merges.emplace_back(rows[rows.size() - 2], rows.back());
      nodes.pop_back();
      rows.pop_back();
      ++nodes.back().level;
    } else {
      break;
    }
  }
  return merges;
}

ShardSum::ShardSum(CommGroup &group, const CommOptions &options, const ShardPlan &plan, const CollectiveCall &call,
                   std::vector<TensorType> types)
    : group_(&group), options_(options), plan_(plan), call_(call), types_(std::move(types)),
      elementBytes_(static_cast<int64_t>(sizeOf(call.dtype))), next_(plan.shardsOf(group.rank()).first) {
  for (const TensorType &type : types_)
    count_ += type.shape.numElements();
  call_.count = count_;
  constexpr int64_t kFew = 8192; // bytes: every rank sums all of them
  piece_ = bytes() <= kFew ? count_ : (count_ + group.size() - 1) / group.size();
}

/// What was on its way when a rank failed stays: another process may read it until it ends.
ShardSum::~ShardSum() {
  if (requests_.empty())
    return;
  static std::mutex mutex;
  static std::vector<Array> &kept = *new std::vector<Array>; // never destroyed
  wg_comm *comm = group_->comm();
  comm->fail(comm, "a rank has left a sum before it was done");
  for (void *request : requests_)
    if (int32_t done = 0; request)
      (void)comm->finish(comm, request, 0, &done);
  std::lock_guard lock(mutex);
  for (Part &part : parts_)
    kept.insert(kept.end(), part.arrays.begin(), part.arrays.end());
  kept.insert(kept.end(), packed_.begin(), packed_.end());
  kept.insert(kept.end(), {received_, sums_});
}

bool ShardSum::inAnyOrder() const {
  return options_.any_order && call_.kind == Collective::sum && group_->comm()->sum != nullptr;
}

/// Merges what can be.
Status ShardSum::settle() {
  std::vector<ShardNode> nodes;
  std::vector<size_t> rows;
  for (size_t i = 0; i < parts_.size(); ++i) {
    nodes.push_back(parts_[i].node);
    rows.push_back(i);
  }
  std::vector<std::pair<size_t, size_t>> merges;
  if (inAnyOrder() && !alone())
    for (; rows.size() > 1; rows.pop_back(), nodes.pop_back())
      merges.emplace_back(0, rows.back());
  else
    merges = mergesOf(nodes, rows, plan_.used());
  for (auto [to, from] : merges)
    for (size_t i = 0; i < types_.size(); ++i) {
      Array &a = parts_[to].arrays[i];
      if (!a.buffer.unique()) {
        Array copy = Array::empty(a.dtype(), a.shape());
        std::memcpy(copy.buffer.data(), a.buffer.data(), a.numBytes());
        a = std::move(copy);
      }
      if (Status status = combine(call_, a.buffer.data(), parts_[from].arrays[i].buffer.data(), a.numElements());
          !status.ok())
        return status;
    }
  parts_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    parts_[i].node = nodes[i];
  return {};
}

Status ShardSum::add(std::vector<Array> arrays) {
  parts_.push_back({{next_++, 0}, std::move(arrays)});
  return settle();
}

/// What a rank has of the tree once it has added its shards.
std::vector<ShardNode> ShardSum::nodesOf(int64_t rank) const {
  std::vector<ShardNode> nodes;
  std::vector<size_t> rows;
  auto [begin, end] = plan_.shardsOf(rank);
  for (int64_t shard = begin; shard < end; ++shard) {
    nodes.push_back({shard, 0});
    rows.push_back(rows.size());
    (void)mergesOf(nodes, rows, plan_.used());
  }
  return nodes;
}

Status ShardSum::start() {
  if (count_ == 0 || alone())
    return {};
  if (types_.size() > 1)
    for (Part &part : parts_) {
      Array &whole = packed_.emplace_back(Array::empty(DType::u8, {bytes()}));
      auto to = static_cast<char *>(whole.buffer.data());
      for (const Array &array : part.arrays) {
        std::memcpy(to, array.buffer.data(), array.numBytes());
        to += array.numBytes();
      }
    }
  else
    for (Part &part : parts_)
      packed_.push_back(part.arrays[0]);
  wg_comm *comm = group_->comm();
  if (inAnyOrder()) {
    if (packed_.empty())
      packed_.push_back(Array::zeros(DType::u8, {bytes()}));
    sums_ = Array::empty(DType::u8, {bytes()});
    auto begin = std::chrono::steady_clock::now();
    bool failed = comm->sum(comm, packed_[0].buffer.data(), sums_.buffer.data(), count_, int32_t(call_.dtype));
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return failed ? group_->failure() : Status();
  }
  int64_t n = group_->size();
  auto begin = [&](int64_t rank) { return piece_ == count_ ? 0 : std::min(count_, rank * piece_) * elementBytes_; };
  auto length = [&](int64_t rank) { return std::min(bytes() - begin(rank), piece_ * elementBytes_); };
  std::vector<int64_t> nodes; // of each rank
  int64_t most = 0, total = 0;
  for (int64_t rank = 0; rank < n; ++rank) {
    nodes.push_back(std::ssize(nodesOf(rank)));
    most = std::max(most, nodes.back());
    total += nodes.back();
  }
  received_ = Array::empty(DType::u8, {total * piece_ * elementBytes_});
  std::vector<wg_comm_part> messages(static_cast<size_t>(n));
  for (int64_t round = 0; round < most; ++round) {
    char *row = static_cast<char *>(received_.buffer.data());
    for (int64_t rank = 0; rank < n; ++rank) {
      wg_comm_part &message = messages[static_cast<size_t>(rank)] = {};
      if (round < std::ssize(packed_)) {
        message.send = static_cast<char *>(packed_[static_cast<size_t>(round)].buffer.data()) + begin(rank);
        message.send_bytes = length(rank);
      }
      if (round < nodes[static_cast<size_t>(rank)]) {
        message.receive = row + round * piece_ * elementBytes_;
        message.receive_bytes = length(group_->rank());
      }
      row += nodes[static_cast<size_t>(rank)] * piece_ * elementBytes_;
    }
    if (comm->start(comm, messages.data(), &requests_.emplace_back(nullptr)))
      return requests_.pop_back(), group_->failure();
  }
  return {};
}

Status ShardSum::wait() {
  auto begin = std::chrono::steady_clock::now();
  Status status;
  for (void *&request : requests_)
    if (status = group_->wait(std::exchange(request, nullptr), options_); !status.ok())
      break;
  if (status.ok())
    requests_.clear();
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return status;
}

Status ShardSum::gather() {
  if (count_ == 0 || alone() || inAnyOrder())
    return {};
  if (Status status = wait(); !status.ok())
    return status;
  packed_.clear();
  // The tree over all ranks' parts, of this rank's piece.
  std::vector<ShardNode> nodes;
  std::vector<size_t> rows;
  std::vector<std::pair<size_t, size_t>> merges;
  size_t next = 0;
  for (int64_t rank = 0; rank < group_->size(); ++rank)
    for (const ShardNode &node : nodesOf(rank)) {
      nodes.push_back(node);
      rows.push_back(next++);
      for (auto merge : mergesOf(nodes, rows, plan_.used()))
        merges.push_back(merge);
    }
  int64_t begin = piece_ == count_ ? 0 : std::min(count_, group_->rank() * piece_);
  int64_t length = std::min(count_ - begin, piece_);
  auto row = [&](size_t i) {
    return static_cast<char *>(received_.buffer.data()) + static_cast<int64_t>(i) * piece_ * elementBytes_;
  };
  constexpr int64_t kBlock = 4096; // stays in the cache for all of the tree
  for (int64_t at = 0; at < length; at += kBlock)
    for (auto [to, from] : merges)
      if (Status status = combine(call_, row(to) + at * elementBytes_, row(from) + at * elementBytes_,
                                  std::min(kBlock, length - at));
          !status.ok())
        return status;
  if (piece_ == count_)
    return {};
  sums_ = Array::empty(DType::u8, {bytes()});
  std::vector<wg_comm_part> messages;
  for (int64_t rank = 0; rank < group_->size(); ++rank) {
    int64_t other = std::min(count_, rank * piece_);
    messages.push_back({row(0), length * elementBytes_,
                        static_cast<char *>(sums_.buffer.data()) + other * elementBytes_,
                        std::min(count_ - other, piece_) * elementBytes_});
  }
  wg_comm *comm = group_->comm();
  if (comm->start(comm, messages.data(), &requests_.emplace_back(nullptr)))
    return requests_.pop_back(), group_->failure();
  return {};
}

Status ShardSum::finish(std::vector<Array> &sums) {
  if (alone() || count_ == 0) {
    sums.clear();
    if (!parts_.empty())
      sums = std::move(parts_[0].arrays);
    return {};
  }
  if (Status status = wait(); !status.ok())
    return status;
  if (types_.size() == 1 && sums_.buffer) {
    sums = {Array{types_[0], std::move(sums_.buffer)}};
    return {};
  }
  const char *from = static_cast<const char *>((sums_.buffer ? sums_ : received_).buffer.data());
  sums.clear();
  for (size_t i = 0; i < types_.size(); ++i) {
    // Where this rank's own part was there is memory of the right size.
    bool again = !parts_.empty() && parts_[0].arrays[i].buffer.unique();
    Array sum = again ? std::move(parts_[0].arrays[i]) : Array::empty(types_[i].dtype, types_[i].shape);
    std::memcpy(sum.buffer.data(), from, sum.numBytes());
    from += sum.numBytes();
    sums.push_back(std::move(sum));
  }
  return {};
}

} // namespace wg::runtime
