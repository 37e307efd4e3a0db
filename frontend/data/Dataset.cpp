// What does the next batch hold? The examples at the next places of the epoch's order, mapped; made in time by Loader.
#include "wengert/data/Dataset.h"

#include "frontend/data/Loader.h"
#include "frontend/staging/Apply.h"
#include "runtime/comm/ShardSum.h"
#include "wengert/Dist.h"
#include "wengert/Function.h"
#include "wengert/Ops.h"

#include <limits>
#include <mutex>
#include <numeric>

namespace wg::detail {

/// How far the loops are over a data set and its copies.
struct DataPlace {
  std::mutex mutex;
  data::Position next;    ///< where the next loop begins
  data::Position reached; ///< by the loop that began last, while it runs
  int64_t loops = 0;      ///< that have begun
  bool running = false;   ///< the last of them
};

/// A loop, as long as one of its iterators lives.
struct DataLoop {
  const std::shared_ptr<DataPlace> place;
  const int64_t number, batches;

  DataLoop(std::shared_ptr<DataPlace> place, int64_t number, int64_t batches)
      : place(std::move(place)), number(number), batches(batches) {}
  DataLoop(const DataLoop &) = delete;
  DataLoop &operator=(const DataLoop &) = delete;
  ~DataLoop() {
    std::lock_guard lock(place->mutex);
    if (place->loops == number)
      place->running = false;
  }
  /// So many batches of the epoch were taken, or more.
  void reach(int64_t batch) const {
    std::lock_guard lock(place->mutex);
    if (place->loops != number || !place->running || batch <= place->reached.batch)
      return;
    place->reached.batch = batch;
    if (batch >= batches) // the epoch is done: its iterator may live on
      place->running = false;
  }
};

} // namespace wg::detail

namespace wg::data {

[[noreturn]] static void raise(const char *op, std::string message, std::string remedy, const Where &where) {
  detail::raise({.op = op, .message = std::move(message), .remedy = std::move(remedy)}, where);
}

Dataset::Dataset(const Dataset &) = default;
Dataset::Dataset(Dataset &&) noexcept = default;
Dataset &Dataset::operator=(const Dataset &) = default;
Dataset &Dataset::operator=(Dataset &&) noexcept = default;
Dataset::~Dataset() = default;
Dataset::Dataset(const Examples &examples, Where where) : Dataset(examples.x, examples.y, where) {}
Dataset::Dataset(Tensor x, Tensor y, Where where)
    : examples_{std::move(x), std::move(y)}, place_(std::make_shared<detail::DataPlace>()) {
  for (const Tensor *tensor : {&examples_.x, &examples_.y})
    if (tensor->body(where), tensor->symbolic())
      detail::raiseNoElements("dataset", *tensor, where);
  for (const Tensor *tensor : {&examples_.x, &examples_.y})
    if (tensor->rank(where) == 0)
      raise("dataset", "a data set needs a first axis that counts the examples; got a scalar",
            "give tensors of rank 1 or more", where);
  if (examples_.x.shape()[0] != examples_.y.shape()[0])
    raise("dataset",
          "x and y hold different numbers of examples: " + std::to_string(examples_.x.shape()[0]) + " and " +
              std::to_string(examples_.y.shape()[0]),
          "give both the same size on axis 0", where);
}

Dataset Dataset::shuffle(uint64_t seed) const {
  Dataset shuffled = *this;
  shuffled.seed_ = seed;
  return shuffled;
}

Dataset Dataset::batch(int64_t count, bool drop_last, Where where) const {
  if (count < 1)
    raise("batch", "a batch holds at least one example; got " + std::to_string(count),
          "give the number of examples in a batch", where);
  Dataset batched = *this;
  batched.batch_ = count;
  batched.dropLast_ = drop_last;
  return batched;
}

Dataset Dataset::ranks(int64_t shards, int rank, int ranks, Where where) const {
  Dataset part = *this;
  part.rank_ = rank < 0 ? dist::rank() : rank;
  part.ranks_ = ranks < 0 ? dist::size() : ranks;
  part.shards_ = shards = shards ? shards : part.ranks_;
  if (part.rank_ >= part.ranks_ || part.ranks_ < 1 || shards < part.ranks_)
    raise("ranks",
          "rank " + std::to_string(part.rank_) + " of " + std::to_string(part.ranks_) + ", and " +
              std::to_string(shards) + " shards",
          "give a rank below their number, and at least as many shards as ranks", where);
  return part;
}

int64_t Dataset::batches() const { return size() / batch_ + (!dropLast_ && size() % batch_ != 0); }

/// splitmix64 (Steele, Lea, Flood 2014).
static uint64_t nextRandom(uint64_t &state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

std::vector<int64_t> Dataset::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(size()));
  std::iota(order.begin(), order.end(), 0);
  if (!seed_)
    return order;
  uint64_t state = *seed_;
  state = nextRandom(state) + static_cast<uint64_t>(epoch);
  for (size_t left = order.size(); left > 1; --left)
    // The remainder's bias is below 2^-40 for any data set that fits in memory.
    std::swap(order[left - 1], order[nextRandom(state) % left]);
  return order;
}

Dataset Dataset::mapped(detail::BatchMapping mapping, MapOptions options, const Where &where) const {
  if (options.workers < 0 || options.workers > 256)
    raise("map", "a mapping has 0 to 256 workers; got " + std::to_string(options.workers),
          "give the number of threads, or 0 for none", where);
  Dataset changed = *this;
  changed.mappings_.push_back(std::move(mapping));
  changed.workers_ = std::max(workers_, options.workers);
  return changed;
}

Dataset Dataset::prefetch(int64_t count, Where where) const {
  if (count < 0)
    raise("prefetch", "the number of batches that are made ahead is " + std::to_string(count), "give 0 or more", where);
  Dataset changed = *this;
  changed.prefetch_ = count;
  return changed;
}

/// What a mapping returned, as a data set may have it.
static Examples checked(Examples made, bool example, const Where &where) {
  for (const Tensor *tensor : {&made.x, &made.y}) {
    tensor->body(where); // an error if there is none
    if (!example && tensor->rank() == 0)
      raise("map", "a mapping of batches returned a scalar, which has no first axis",
            "use map_examples for a function of one example", where);
  }
  if (!example && made.x.shape()[0] != made.y.shape()[0])
    raise("map",
          "a mapping of batches returned " + std::to_string(made.x.shape()[0]) + " inputs and " +
              std::to_string(made.y.shape()[0]) + " targets",
          "return both with the same size on axis 0", where);
  return made;
}

/// On the loop's thread, or on a worker's.
Examples Dataset::make(const std::vector<int64_t> &order, int64_t epoch, int64_t i, const Where &where) const {
  int64_t first = i * batch_, count = std::min(batch_, size() - first);
  if (ranks_ > 1) {
    runtime::ShardPlan plan{.rows = count, .shards = shards_, .ranks = ranks_};
    auto [begin, end] = plan.rowsOfRank(rank_);
    first += begin, count = end - begin;
  }
  Tensor indices = Tensor::from(std::span(order.data() + first, static_cast<size_t>(count)), Shape{count});
  Examples batch{gather(Located(examples_.x, where), Located(indices, where)),
                 gather(Located(examples_.y, where), Located(indices, where))};
  for (const detail::BatchMapping &mapping : mappings_) {
    if (!mapping.examples) {
      batch = checked(mapping.f(batch, epoch * batches() + i), false, where);
      continue;
    }
    std::vector<Tensor> xs, ys;
    // Without rows, what an example of zeros becomes says what there are none of.
    bool none = batch.size() == 0;
    for (int64_t k = 0; k < std::max<int64_t>(1, batch.size()); ++k) {
      Tensor place(k);
      auto row = [&](const Tensor &x) {
        return none ? zeros(Shape(std::span(x.shape().begin() + 1, x.shape().end())), x.dtype(), where)
                    : gather(Located(x, where), Located(place, where));
      };
      Examples one{row(batch.x), row(batch.y)};
      one = checked(mapping.f(one, epoch * size() + first + k), true, where);
      xs.push_back(one.x), ys.push_back(one.y);
    }
    batch = {stack(xs, 0, where), stack(ys, 0, where)};
    if (none)
      batch = {slice(Located(batch.x, where), {0}, {0}), slice(Located(batch.y, where), {0}, {0})};
  }
  return batch;
}

int64_t Dataset::size() const { return examples_.size(); }

Dataset::Iterator::Iterator(const Iterator &) = default;
Dataset::Iterator::Iterator(Iterator &&) noexcept = default;
Dataset::Iterator &Dataset::Iterator::operator=(const Iterator &) = default;
Dataset::Iterator &Dataset::Iterator::operator=(Iterator &&) noexcept = default;
Dataset::Iterator::~Iterator() = default;
Dataset::Iterator::Iterator(const Dataset *dataset, std::shared_ptr<const std::vector<int64_t>> order,
                            std::shared_ptr<const detail::DataLoop> loop, Position start, const Where &where)
    : dataset_(dataset), order_(std::move(order)), loop_(std::move(loop)), epoch_(start.epoch), next_(start.batch),
      where_(where) {}

Position Dataset::position() const {
  size(); // an error if the data set was moved from
  std::lock_guard lock(place_->mutex);
  return place_->running ? place_->reached : place_->next;
}

/// After the last batch of an epoch it is the beginning of the next.
static Position startedAt(Position position, int64_t batches) {
  return position.batch > 0 && position.batch == batches ? Position{position.epoch + 1, 0} : position;
}

/// The examples up to its end can be counted.
static int64_t lastEpoch(int64_t size) { return std::numeric_limits<int64_t>::max() / (size + 2); }

bool Dataset::has(Position position) const {
  return position.epoch >= 0 && position.epoch <= lastEpoch(size()) && position.batch >= 0 &&
         position.batch <= batches();
}

void Dataset::seek(Position position, Where where) const {
  if (!has(position))
    raise("seek",
          "a position has an epoch of 0 to " + std::to_string(lastEpoch(size())) + " and a batch of 0 to " +
              std::to_string(batches()) + "; got epoch " + std::to_string(position.epoch) + ", batch " +
              std::to_string(position.batch),
          "give what position() of a data set with the same examples and batches returned", where);
  std::lock_guard lock(place_->mutex);
  ++place_->loops; // none of those that run
  place_->running = false;
  place_->next = startedAt(position, batches());
}

Dataset::Iterator Dataset::end() const { return Iterator(this, nullptr, nullptr, {0, batches()}, {}); }
Dataset::Iterator Dataset::begin(Where where) const {
  const int64_t batches = this->batches(); // an error if the data set was moved from
  std::unique_lock lock(place_->mutex);
  const Position before = place_->next, start = startedAt(before, batches);
  if (before.batch > batches)
    raise("dataset",
          "the position is after batch " + std::to_string(before.batch) + " of an epoch, which has " +
              std::to_string(batches) + " here",
          "seek a position of this data set: a copy with other batches shares it", where);
  auto loop = std::make_shared<const detail::DataLoop>(place_, place_->loops + 1, batches);
  ++place_->loops;
  place_->next = {start.epoch + 1, 0};
  place_->reached = start;
  place_->running = batches > 0;
  lock.unlock();
  try {
    Iterator iterator(this, std::make_shared<const std::vector<int64_t>>(order(start.epoch)), loop, start, where);
    if ((workers_ > 0 || prefetch_ > 0) && batches > 0)
      iterator.loader_ = std::make_shared<detail::BatchLoader>(*this, iterator.order_, start, where);
    return iterator;
  } catch (...) {
    lock.lock();
    if (place_->loops == loop->number)
      place_->next = before;
    lock.unlock();
    throw;
  }
}

Examples Dataset::Iterator::operator*() const {
  Examples batch = loader_ ? loader_->get(next_) : dataset_->make(*order_, epoch_, next_, where_);
  loop_->reach(next_ + 1);
  return batch;
}

Dataset::Iterator &Dataset::Iterator::operator++() {
  ++next_;
  loop_->reach(next_);
  if (loader_)
    loader_->release(next_);
  return *this;
}

} // namespace wg::data
