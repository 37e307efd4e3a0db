// What does the next batch hold? The examples at the next places of the epoch's order.
#include "wengert/data/Dataset.h"

#include "frontend/Apply.h"
#include "wengert/Ops.h"

#include <numeric>

namespace wg::data {

Dataset::Dataset(Tensor x, Tensor y, Where where) : examples_{std::move(x), std::move(y)} {
  for (const Tensor *tensor : {&examples_.x, &examples_.y})
    if (tensor->body(where), tensor->symbolic())
      detail::raiseNoElements("dataset", *tensor, where);
  for (const Tensor *tensor : {&examples_.x, &examples_.y})
    if (tensor->rank(where) == 0)
      detail::raise(runtime::valueError("a data set needs a first axis that counts the examples; got a scalar", "give tensors of rank 1 or more"), where);
  if (examples_.x.shape()[0] != examples_.y.shape()[0])
    detail::raise(runtime::valueError("x and y hold different numbers of examples: " + std::to_string(examples_.x.shape()[0]) + " and " +
                                          std::to_string(examples_.y.shape()[0]),
                                      "give both the same size on axis 0"),
                  where);
}

Dataset Dataset::shuffle(uint64_t seed) const {
  Dataset shuffled = *this;
  shuffled.seed_ = seed;
  return shuffled;
}

Dataset Dataset::batch(int64_t count, bool drop_last, Where where) const {
  if (count < 1)
    detail::raise(runtime::valueError("a batch holds at least one example; got " + std::to_string(count)), where);
  Dataset batched = *this;
  batched.batch_ = count;
  batched.dropLast_ = drop_last;
  return batched;
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

Dataset::Iterator Dataset::begin() const {
  size(); // an error if the data set was moved from
  return Iterator(this, std::make_shared<const std::vector<int64_t>>(order(epoch_->fetch_add(1))), 0);
}

Examples Dataset::Iterator::operator*() const {
  int64_t first = next_ * dataset_->batch_, count = std::min(dataset_->batch_, dataset_->size() - first);
  Tensor indices = Tensor::from(std::span(order_->data() + first, static_cast<size_t>(count)), Shape{count});
  return {gather(dataset_->examples_.x, indices), gather(dataset_->examples_.y, indices)};
}

} // namespace wg::data
