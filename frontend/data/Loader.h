// Threads that make the batches of one epoch ahead of the loop that takes them. Each takes the number of the next batch
// that nobody has, within a window that moves on with the loop, and leaves it at its place; the loop takes them in
// order. One mutex guards everything but the making.
#pragma once

#include "wengert/data/Dataset.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace wg::detail {

class BatchLoader {
public:
  /// Errors: a thread cannot be started.
  BatchLoader(const data::Dataset &dataset, std::shared_ptr<const std::vector<int64_t>> order, data::Position start,
              const Where &where);
  BatchLoader(const BatchLoader &) = delete;
  BatchLoader &operator=(const BatchLoader &) = delete;
  /// Waits for the batches that are being made.
  ~BatchLoader();

  /// Batch i, or its exception. An error if the loop is past it.
  data::Examples get(int64_t i);
  /// The loop is done with all batches below i.
  void release(int64_t i);

private:
  struct Place {
    int64_t number = -1; ///< of the batch that is here, -1 if none
    data::Examples batch;
    std::exception_ptr failure;
  };
  void work();
  void stop();

  const data::Dataset dataset_; ///< of its own: the loop's may die before a worker ends
  const std::shared_ptr<const std::vector<int64_t>> order_;
  const int64_t epoch_, batches_, window_; ///< `window_`: batches that exist at once, the loop's among them
  const Where where_;
  std::mutex mutex_; ///< guards what follows, up to the threads
  std::condition_variable made_, room_;
  std::vector<Place> places_; ///< batch i has i % window_: those of the window have different ones
  int64_t taken_;             ///< the loop's batch
  int64_t next_;              ///< the first that no worker has
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace wg::detail
