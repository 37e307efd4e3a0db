// Data sets whose batches are mapped, and made ahead by threads: the same batches in the same order as without,
// whatever the loop does, and no thread left behind. Part of what ThreadSanitizer runs.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

namespace {

data::Dataset numbers(int64_t count, DType dtype = f32) {
  Tensor x = arange(count);
  return data::Dataset(cast(reshape(x, {count, 1}), dtype), x);
}

/// What a loop sees: every element of x, of y, and the batches' sizes.
struct Seen {
  std::vector<double> x;
  std::vector<int64_t> y, sizes;
  bool operator==(const Seen &) const = default;
};
Seen loop(const data::Dataset &set) {
  Seen seen;
  for (const auto &[x, y] : set) {
    for (double value : x.to_vector<double>())
      seen.x.push_back(value);
    for (int64_t value : y.to_vector<int64_t>())
      seen.y.push_back(value);
    seen.sizes.push_back(y.shape()[0]);
  }
  return seen;
}

data::Examples doubled(const data::Examples &batch) { return {batch.x * 2.0, batch.y + int64_t(1)}; }

/// Threads that have called here and live: their thread_local objects die before a join returns.
std::atomic<int> alive = 0;
void noteThread() {
  struct Alive {
    Alive() { ++alive; }
    ~Alive() { --alive; }
  };
  static thread_local Alive here;
  (void)&here;
}
/// The same without the test's own thread.
int workersAlive() {
  noteThread();
  return alive - 1;
}

} // namespace

TEST(LoaderTest, EveryWayGivesTheSameBatches) {
  for (DType dtype : {f32, f64}) {
    auto base = [&] { return numbers(103, dtype).shuffle(7).batch(10); };
    data::Dataset reference = base().map(doubled);
    std::vector<Seen> epochs{loop(reference), loop(reference)};
    EXPECT_NE(epochs[0].y, epochs[1].y);
    EXPECT_EQ(epochs[0].sizes, (std::vector<int64_t>{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 3}));
    Seen plain = loop(base());
    for (size_t i = 0; i < plain.x.size(); ++i)
      EXPECT_EQ(epochs[0].x[i], 2 * plain.x[i]);
    for (int workers : {0, 1, 4})
      for (int64_t ahead : {0, 1, 3, 100}) {
        data::Dataset set = base().map(doubled, {.workers = workers}).prefetch(ahead);
        for (const Seen &epoch : epochs)
          EXPECT_EQ(loop(set), epoch) << workers << " workers, " << ahead << " ahead";
      }
    EXPECT_EQ(loop(base().prefetch(2)), plain);
  }
}

TEST(LoaderTest, ExamplesAreMappedOneByOne) {
  auto flip = [](const data::Examples &one) {
    EXPECT_EQ(one.x.shape(), (Shape{1}));
    EXPECT_EQ(one.y.rank(), 0);
    return std::pair(stack({one.x, -one.x}), one.y * int64_t(10));
  };
  for (int workers : {0, 3}) {
    auto set = numbers(7).batch(3).map_examples(flip, {.workers = workers}).map(doubled, {.workers = 1});
    std::vector<Shape> shapes;
    for (const auto &[x, y] : set)
      shapes.push_back(x.shape());
    EXPECT_EQ(shapes, (std::vector<Shape>{{3, 2, 1}, {3, 2, 1}, {1, 2, 1}}));
    Seen seen = loop(set);
    EXPECT_EQ(seen.y, (std::vector<int64_t>{1, 11, 21, 31, 41, 51, 61}));
    EXPECT_EQ(seen.x[2], 2);
    EXPECT_EQ(seen.x[3], -2);
  }
}

// Random numbers follow from the position, and so do not depend on who makes the batch.
TEST(LoaderTest, PositionsCountOverEpochs) {
  auto noisy = [](const data::Examples &batch, int64_t position) {
    return data::Examples{batch.x + random_normal(random::key(position), batch.x.shape()), batch.y + position};
  };
  auto withPlace = [](const data::Examples &one, int64_t position) {
    return data::Examples{one.x, position + 0 * one.y};
  };
  data::Dataset serial = numbers(20).batch(6).map(noisy), threaded = numbers(20).batch(6).map(noisy, {.workers = 4});
  Seen first = loop(serial), second = loop(serial);
  EXPECT_NE(first.x, second.x);
  EXPECT_EQ(loop(threaded), first);
  EXPECT_EQ(loop(threaded), second);
  data::Dataset places = numbers(5).shuffle(1).batch(2).map_examples(withPlace, {.workers = 2});
  EXPECT_EQ(loop(places).y, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(loop(places).y, (std::vector<int64_t>{5, 6, 7, 8, 9}));
}

TEST(LoaderTest, AnExceptionComesInItsPlaceAndEndsTheWorkers) {
  for (int workers : {0, 1, 4}) {
    std::vector<int64_t> got;
    auto set = numbers(50).batch(1).map(
        [](const data::Examples &batch) {
          noteThread();
          if (batch.y.item<int64_t>() == 20)
            throw std::runtime_error("batch 20");
          return batch;
        },
        {.workers = workers});
    try {
      for (const auto &[x, y] : set)
        got.push_back(y.item<int64_t>());
      FAIL() << "no exception";
    } catch (const std::runtime_error &error) {
      EXPECT_STREQ(error.what(), "batch 20");
    }
    std::vector<int64_t> all(20);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(got, all) << "what was made before it is not lost";
    EXPECT_EQ(workersAlive(), 0);
  }
}

TEST(LoaderTest, TheLoopMayGoOnAfterAnException) {
  auto set = numbers(6).batch(1).map(
      [](const data::Examples &batch) {
        if (batch.y.item<int64_t>() % 2)
          throw std::runtime_error("odd");
        return batch;
      },
      {.workers = 3});
  std::vector<int64_t> got;
  int failures = 0;
  for (auto it = set.begin(); it != set.end(); ++it)
    try {
      got.push_back((*it).y.item<int64_t>());
    } catch (const std::runtime_error &) {
      ++failures;
    }
  EXPECT_EQ(got, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(failures, 3);
}

TEST(LoaderTest, AnErrorNamesTheLoop) {
  auto set = numbers(6).batch(2).map(
      [](const data::Examples &batch) { return data::Examples{batch.x, slice(batch.y, {0}, {1})}; }, {.workers = 2});
  uint32_t line = __LINE__ + 1;
  std::string message = messageOf([&] { set.begin().operator*(); });
  EXPECT_NE(message.find("a mapping of batches returned 2 inputs and 1 targets"), std::string::npos) << message;
  EXPECT_NE(message.find("LoaderTest.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_NE(messageOf([] { loop(numbers(3).map([](const data::Examples &) { return data::Examples(); })); }),
            "no error");
  EXPECT_NE(messageOf([] {
              loop(numbers(3).map([](const data::Examples &b) { return data::Examples{reduce_sum(b.x), b.y}; }));
            }).find("use map_examples"),
            std::string::npos);
}

TEST(LoaderTest, ALoopThatEndsEarlyEndsItsWorkers) {
  std::atomic<int> made = 0;
  auto set = numbers(10000).batch(1).map(
      [&](const data::Examples &batch) {
        noteThread();
        ++made;
        return batch;
      },
      {.workers = 4});
  for (int64_t stop : {0, 1, 17}) {
    made = 0;
    for (const auto &[x, y] : set)
      if (y.item<int64_t>() == stop)
        break;
    EXPECT_EQ(workersAlive(), 0) << "they have ended";
    EXPECT_GE(made, stop + 1);
    EXPECT_LE(made, stop + 5) << "four batches ahead of the loop's at most";
  }
  {
    auto unread = set.begin();
  }
  for (auto it = set.begin(); it != set.end(); ++it) // nothing is read
    ;
  EXPECT_EQ(workersAlive(), 0);
}

// Each batch waits until a later one is there: only threads that work side by side can end this.
TEST(LoaderTest, WorkersWorkSideBySide) {
  std::mutex mutex;
  std::condition_variable arrived;
  std::set<std::thread::id> ids;
  auto set = numbers(3).batch(1).map(
      [&](const data::Examples &batch) {
        std::unique_lock lock(mutex);
        ids.insert(std::this_thread::get_id());
        arrived.notify_all();
        arrived.wait(lock, [&] { return ids.size() == 3; });
        return batch;
      },
      {.workers = 3});
  EXPECT_EQ(loop(set).y, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_FALSE(ids.contains(std::this_thread::get_id()));
}

TEST(LoaderTest, PrefetchMakesTheNextWhileTheLoopHasOne) {
  std::mutex mutex;
  std::condition_variable arrived;
  int64_t made = 0;
  auto set = numbers(8).batch(1).map([&](const data::Examples &batch) {
    std::lock_guard lock(mutex);
    ++made;
    arrived.notify_all();
    return batch;
  });
  int64_t at = 0;
  for (const auto &[x, y] : set.prefetch(3)) {
    std::unique_lock lock(mutex);
    int64_t expected = std::min<int64_t>(8, at + 4); // the loop's, and three ahead
    arrived.wait(lock, [&] { return made >= expected; });
    EXPECT_EQ(made, expected);
    ++at;
  }
}

TEST(LoaderTest, WhatWorkersReadMayBeDifferentiatedByTheLoop) {
  Variable w(zeros({1, 1}));
  optim::SGD sgd(0.001);
  auto step = function("step", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = mean_squared_error(matmul(x, w), y);
    sgd.apply(tape.gradient(loss, w), w);
    return loss;
  });
  auto scaled = function("scaled", [](const Tensor &x) { return x * 0.1f; }); // workers may call compiled code, too
  auto set = numbers(64)
                 .shuffle(3)
                 .batch(8)
                 .map(
                     [&](const data::Examples &b) {
                       return data::Examples{scaled(b.x), cast(reshape(b.y, {-1, 1}), f32) * 0.3f};
                     },
                     {.workers = 3})
                 .prefetch(4);
  for (int epoch = 0; epoch < 12; ++epoch)
    for (const auto &[x, y] : set)
      step(x, y);
  EXPECT_NEAR(w.value().to_vector<float>()[0], 3, 0.5);
  EXPECT_EQ(scaled.trace_count(), 1);
}

TEST(LoaderTest, LoopsOfOneDataSetAtOnce) {
  data::Dataset set = numbers(40).batch(3).map(doubled, {.workers = 2}).prefetch(2);
  Seen expected = loop(set);
  std::vector<std::thread> loops;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 3; ++i)
    loops.emplace_back([&] { equal += loop(set) == expected; });
  for (std::thread &each : loops)
    each.join();
  EXPECT_EQ(equal, 3);
}

TEST(LoaderTest, AnIteratorGoesOnOnly) {
  data::Dataset set = numbers(10).batch(1).prefetch(2);
  auto it = set.begin(), old = it;
  ++it, ++it;
  EXPECT_EQ((*it).y.item<int64_t>(), 2);
  EXPECT_EQ((*it).y.item<int64_t>(), 2) << "read twice";
  EXPECT_NE(messageOf([&] { *old; }).find("batch 0 was given away: the loop is at batch 2"), std::string::npos);
}

TEST(LoaderTest, AnEmptyDataSetHasNoBatches) {
  EXPECT_EQ(loop(numbers(0).batch(4).map(doubled, {.workers = 4})), Seen());
  EXPECT_EQ(loop(numbers(3).batch(4, true).prefetch(2)), Seen());
}

TEST(LoaderTest, CountsInTheirRanges) {
  EXPECT_NE(messageOf([] { numbers(3).map(doubled, {.workers = -1}); }).find("0 to 256 workers; got -1"),
            std::string::npos);
  EXPECT_NE(messageOf([] { numbers(3).map(doubled, {.workers = 257}); }).find("got 257"), std::string::npos);
  EXPECT_NE(messageOf([] { numbers(3).prefetch(-2); }).find("made ahead is -2"), std::string::npos);
}
