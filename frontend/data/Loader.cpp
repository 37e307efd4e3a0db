// Who makes which batch, and who waits for whom?
#include "frontend/data/Loader.h"

#include "frontend/staging/Apply.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace wg::detail {

BatchLoader::BatchLoader(const data::Dataset &dataset, std::shared_ptr<const std::vector<int64_t>> order,
                         data::Position start, const Where &where)
    : dataset_(dataset), order_(std::move(order)), epoch_(start.epoch), batches_(dataset.batches()),
      window_(std::min(batches_ - 1, std::max<int64_t>(dataset.prefetch_, dataset.workers_)) + 1), where_(where),
      places_(static_cast<size_t>(window_)), taken_(start.batch), next_(start.batch) {
  int64_t count = std::min<int64_t>(std::max(1, dataset.workers_), batches_ - start.batch);
  try {
    threads_.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      threads_.emplace_back([this] { work(); });
  } catch (const std::system_error &error) {
    stop();
    raise({.kind = ErrorKind::runtime,
           .op = "dataset",
           .message = std::string("a worker thread cannot be started: ") + error.what(),
           .remedy = "ask for fewer workers"},
          where);
  } catch (...) {
    stop();
    throw;
  }
}

BatchLoader::~BatchLoader() { stop(); }

void BatchLoader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stopping_ || next_ == batches_ || next_ < taken_ + window_; });
    if (stopping_ || next_ == batches_)
      return;
    const int64_t i = next_++;
    lock.unlock();
    Place made{.number = i, .batch = {}, .failure = {}};
    try {
      made.batch = dataset_.make(*order_, epoch_, i, where_);
    } catch (...) {
      made.failure = std::current_exception();
    }
    lock.lock();
    if (i < taken_) // the loop went on without it
      continue;
    places_[static_cast<size_t>(i % window_)] = std::move(made);
    made_.notify_all();
  }
}

data::Examples BatchLoader::get(int64_t i) {
  std::unique_lock lock(mutex_);
  if (i < taken_)
    raise({.kind = ErrorKind::runtime,
           .op = "dataset",
           .message = "batch " + std::to_string(i) + " was given away: the loop is at batch " + std::to_string(taken_),
           .remedy = "use one iterator a loop, or a data set without workers and prefetch"},
          where_);
  Place &place = places_[static_cast<size_t>(i % window_)];
  made_.wait(lock, [&] { return place.number == i; });
  if (place.failure)
    std::rethrow_exception(place.failure);
  return place.batch;
}

void BatchLoader::release(int64_t i) {
  std::vector<Place> done; // dies outside of the lock
  {
    std::lock_guard lock(mutex_);
    done.reserve(static_cast<size_t>(i - taken_));
    for (; taken_ < i; ++taken_)
      if (Place &place = places_[static_cast<size_t>(taken_ % window_)]; place.number == taken_)
        done.push_back(std::exchange(place, Place()));
  }
  room_.notify_all();
}

} // namespace wg::detail
