// Data sets that know their place: a loop that is interrupted at any batch and goes on elsewhere gives the batches that
// it would have given. Part of what ThreadSanitizer runs.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace wg;
using data::Position;
using wg::tests::messageOf;

namespace {

/// A data set as a program makes it anew each time that it starts.
struct Make {
  bool shuffle = false, dropLast = false;
  int workers = 0;
  int64_t prefetch = 0;
  data::Dataset operator()() const {
    Tensor x = arange(23);
    data::Dataset set = data::Dataset(cast(reshape(x, {23, 1}), f32), x).batch(4, dropLast);
    if (shuffle)
      set = set.shuffle(5);
    auto noisy = [](const data::Examples &batch, int64_t position) {
      return data::Examples{batch.x + random_normal(random::key(position), batch.x.shape()),
                            batch.y + position % 1000 * 100};
    };
    auto byPlace = [](const data::Examples &one, int64_t position) {
      return data::Examples{one.x * 2.0, one.y + position % 1000 * 10000};
    };
    return set.map(noisy, {.workers = workers}).map_examples(byPlace).prefetch(prefetch);
  }
  std::string name() const {
    return (shuffle ? std::string("shuffled, ") : "") + (dropLast ? "last dropped, " : "") + std::to_string(workers) +
           " workers, " + std::to_string(prefetch) + " ahead";
  }
};

/// Everything about a batch.
using Batch = std::pair<std::vector<float>, std::vector<int64_t>>;
Batch contents(const data::Examples &batch) { return {batch.x.to_vector<float>(), batch.y.to_vector<int64_t>()}; }

/// The batches up to the end of an epoch, and where each of them left the data set.
struct Seen {
  std::vector<Batch> batches;
  std::vector<Position> positions;
};
Seen loop(const data::Dataset &set, int64_t epochs) {
  Seen seen;
  while (set.epoch() < epochs)
    for (const data::Examples &batch : set) {
      seen.batches.push_back(contents(batch));
      seen.positions.push_back(set.position());
    }
  return seen;
}

std::vector<Make> ways() {
  std::vector<Make> ways;
  for (bool shuffle : {false, true})
    for (bool dropLast : {false, true})
      for (auto [workers, prefetch] : {std::pair(0, 0), std::pair(3, 0), std::pair(0, 2), std::pair(2, 100)})
        ways.push_back({shuffle, dropLast, workers, prefetch});
  return ways;
}

} // namespace

TEST(PositionTest, ItCountsWhatTheLoopTook) {
  for (const Make &make : ways()) {
    data::Dataset set = make();
    EXPECT_EQ(set.position(), (Position{0, 0}));
    std::vector<Position> expected;
    for (int64_t epoch : {0, 1})
      for (int64_t batch = 1; batch <= set.batches(); ++batch)
        expected.push_back(batch < set.batches() ? Position{epoch, batch} : Position{epoch + 1, 0});
    EXPECT_EQ(loop(set, 2).positions, expected) << make.name();
    EXPECT_EQ(set.position(), (Position{2, 0}));
  }
}

TEST(PositionTest, ALoopThatIsInterruptedAnywhereGoesOnWithTheSameBatches) {
  for (const Make &make : ways()) {
    const Seen whole = loop(make(), 3);
    for (size_t taken = 0; taken <= whole.batches.size(); ++taken) {
      data::Dataset set = make();
      const Position position = taken ? whole.positions[taken - 1] : Position();
      set.seek(position);
      EXPECT_EQ(set.position(), position);
      const Seen rest = loop(set, 3);
      ASSERT_EQ(rest.batches, std::vector<Batch>(whole.batches.begin() + static_cast<long>(taken), whole.batches.end()))
          << make.name() << ", after " << taken;
      ASSERT_EQ(rest.positions,
                std::vector<Position>(whole.positions.begin() + static_cast<long>(taken), whole.positions.end()));
    }
  }
}

TEST(PositionTest, ALoopYieldsTheRestAndTheNextTheWholeEpoch) {
  data::Dataset set = Make{.shuffle = true, .workers = 2}();
  set.seek({4, 5});
  EXPECT_EQ(set.epoch(), 4);
  int64_t batches = 0;
  for (auto [x, y] : set)
    ++batches;
  EXPECT_EQ(batches, 1);
  EXPECT_EQ(set.epoch(), 5);
  for (auto [x, y] : set)
    ++batches;
  EXPECT_EQ(batches, 1 + set.batches());
}

TEST(PositionTest, TheEndOfAnEpochIsTheBeginningOfTheNext) {
  data::Dataset set = Make{}(), next = Make{}();
  set.seek({0, set.batches()});
  EXPECT_EQ(set.position(), (Position{1, 0}));
  next.seek({1, 0});
  EXPECT_EQ(loop(set, 2).batches, loop(next, 2).batches);
}

// The loop after a `break` is the next epoch, so this is where a program goes on.
TEST(PositionTest, AfterALoopThatEndedEarlyComesTheNextEpoch) {
  data::Dataset set = Make{.workers = 2}();
  for (auto [x, y] : set) {
    EXPECT_EQ(set.position(), (Position{0, 1}));
    break;
  }
  EXPECT_EQ(set.position(), (Position{1, 0}));
  try {
    for (auto [x, y] : set)
      throw std::runtime_error("in the loop");
  } catch (const std::runtime_error &) {
  }
  EXPECT_EQ(set.position(), (Position{2, 0}));
  {
    data::Dataset::Iterator it = set.begin(), copy = it;
    ++it, ++it;
    EXPECT_EQ(set.position(), (Position{2, 2}));
    it = set.end();
    EXPECT_EQ(set.position(), (Position{2, 2})) << "a copy of the iterator lives";
  }
  EXPECT_EQ(set.position(), (Position{3, 0}));
}

TEST(PositionTest, ABatchThatCouldNotBeMadeIsNotTaken) {
  for (int workers : {0, 2}) {
    auto set = data::Dataset(arange(6), arange(6))
                   .map(
                       [](const data::Examples &batch) {
                         if (batch.y.to_vector<int64_t>()[0] == 2)
                           throw std::runtime_error("2");
                         return batch;
                       },
                       {.workers = workers});
    auto it = set.begin();
    *it, ++it, *it, ++it;
    EXPECT_THROW(*it, std::runtime_error);
    EXPECT_EQ(set.position(), (Position{0, 2}));
    ++it;
    EXPECT_EQ(set.position(), (Position{0, 3})) << "the loop went on without it";
  }
}

TEST(PositionTest, CopiesShareIt) {
  data::Dataset set = Make{}(), copy = set.shuffle(9);
  int64_t batches = 0;
  for (auto [x, y] : copy)
    if (++batches == 2)
      EXPECT_EQ(set.position(), (Position{0, 2}));
  set.seek({7, 1});
  EXPECT_EQ(copy.position(), (Position{7, 1}));
}

TEST(PositionTest, OfTwoLoopsAtOnceTheLaterCounts) {
  data::Dataset set = Make{}();
  auto first = set.begin();
  ++first;
  {
    auto second = set.begin();
    EXPECT_EQ(set.position(), (Position{1, 0}));
    ++first;
    EXPECT_EQ(set.position(), (Position{1, 0}));
    ++second;
    EXPECT_EQ(set.position(), (Position{1, 1}));
  }
  EXPECT_EQ(set.position(), (Position{2, 0}));
  ++first;
  EXPECT_EQ(set.position(), (Position{2, 0}));
}

TEST(PositionTest, ALoopThatRunsGoesOnAsItIsWhenThePositionIsSet) {
  data::Dataset set = Make{}();
  const Seen whole = loop(Make{}(), 1);
  std::vector<Batch> seen;
  for (const data::Examples &batch : set) {
    if (seen.empty())
      set.seek({3, 2});
    seen.push_back(contents(batch));
    EXPECT_EQ(set.position(), (Position{3, 2}));
  }
  EXPECT_EQ(seen, whole.batches);
  EXPECT_EQ(set.position(), (Position{3, 2}));
}

TEST(PositionTest, WhatCannotBeIsRefused) {
  data::Dataset set = Make{}();
  for (Position position :
       {Position{-1, 0}, Position{0, -1}, Position{0, 7}, Position{std::numeric_limits<int64_t>::max(), 0}}) {
    std::string message = messageOf([&] { set.seek(position); });
    EXPECT_NE(message.find("a batch of 0 to 6; got epoch " + std::to_string(position.epoch) + ", batch " +
                           std::to_string(position.batch)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("PositionTest.cpp"), std::string::npos) << message;
  }
  EXPECT_EQ(set.position(), (Position{0, 0}));
  const int64_t last = std::numeric_limits<int64_t>::max() / (set.size() + 2);
  set.seek({last, 5});
  EXPECT_EQ(loop(set, last + 1).batches.size(), 1u);
}

TEST(PositionTest, ACopyWithFewerBatchesRefusesAPositionBeyondThem) {
  data::Dataset set = Make{}(), larger = set.batch(12);
  set.seek({2, 3});
  EXPECT_NE(messageOf([&] { larger.begin(); }).find("after batch 3 of an epoch, which has 2 here"), std::string::npos);
  EXPECT_EQ(set.position(), (Position{2, 3}));
  set.seek({2, 2});
  EXPECT_EQ(loop(larger, 4).positions.front(), (Position{3, 1}));
}

TEST(PositionTest, AnEmptyDataSetHasEpochs) {
  data::Dataset set(zeros({0, 1}), zeros({0}));
  EXPECT_TRUE(loop(set, 3).batches.empty());
  EXPECT_EQ(set.position(), (Position{3, 0}));
  set.seek({5, 0});
  EXPECT_EQ(set.epoch(), 5);
}

TEST(PositionTest, ThreadsMayReadItWhileALoopRuns) {
  data::Dataset set = Make{.workers = 2}();
  std::atomic<bool> done = false;
  std::thread reader([&] {
    Position last;
    while (!done) {
      Position now = set.position();
      EXPECT_TRUE(now.epoch > last.epoch || (now.epoch == last.epoch && now.batch >= last.batch));
      last = now;
    }
  });
  loop(set, 20);
  done = true;
  reader.join();
}
