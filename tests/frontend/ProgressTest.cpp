// The line of a loop, with a clock and a terminal of the test's own: nothing here depends on real time.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <forward_list>
#include <list>
#include <ranges>
#include <stdexcept>

using namespace wg;
using wg::tests::messageOf;

namespace {

/// Lines written so far, and a clock that each look moves on.
struct Terminal {
  std::vector<std::string> lines;
  double now = 100, tick = 0;
  int looks = 0;
  ProgressOptions options(std::string description = {}) {
    return {.description = std::move(description),
            .write = [this](std::string_view text) { lines.emplace_back(text); },
            .seconds =
                [this] {
                  ++looks;
                  return now += tick;
                }};
  }
  /// The text of a line, without the terminal's words around it.
  static std::string textOf(const std::string &line) { return line.substr(1, line.find('\x1b') - 1); }
  std::string text(size_t i) const { return textOf(lines[i]); }
  std::string last() const { return textOf(lines.back()); }
};

} // namespace

TEST(ProgressTest, ShowsShareTimeAndRate) {
  Terminal terminal;
  terminal.tick = 0.25;
  std::vector<int> seen, range{3, 1, 4, 1};
  for (int x : progress(range, terminal.options("train")))
    seen.push_back(x);
  EXPECT_EQ(seen, range);
  ASSERT_EQ(terminal.lines.size(), 6u); // at the beginning, after each pass, at the end
  EXPECT_EQ(terminal.text(0), "train:   0% 0/4 [00:00<?, ?/s]");
  EXPECT_EQ(terminal.text(1), "train:  25% 1/4 [00:00<00:00, 4/s]");
  EXPECT_EQ(terminal.text(4), "train: 100% 4/4 [00:01<00:00, 4/s]");
  EXPECT_EQ(terminal.text(5), "train: 100% 4/4 [00:01, 3.2/s]"); // the mean, with the last look at the clock
  for (size_t i = 0; i < terminal.lines.size(); ++i) {
    EXPECT_EQ(terminal.lines[i].front(), '\r');
    EXPECT_EQ(terminal.lines[i].back() == '\n', i == 5);
  }
}

TEST(ProgressTest, LongLoopsShowHoursAndSecondsForAPass) {
  Terminal terminal;
  terminal.tick = 500;
  for (int i : progress(std::views::iota(0, 100), terminal.options()))
    if (i == 8)
      break;
  EXPECT_EQ(terminal.text(8), "  8% 8/100 [1:06:40<12:46:40, 500s each]");
}

TEST(ProgressTest, IsWrittenTenTimesASecondAtMost) {
  Terminal terminal;
  terminal.tick = 0.001;
  int64_t count = 0;
  for ([[maybe_unused]] int i : progress(std::views::iota(0, 10000), terminal.options()))
    ++count;
  EXPECT_EQ(count, 10000);
  EXPECT_GE(terminal.lines.size(), 90u);
  EXPECT_LE(terminal.lines.size(), 102u) << "ten seconds, the beginning and the end";
}

TEST(ProgressTest, HighRatesAreReadable) {
  for (auto [elapsed, rate] : {std::pair(1.0 / 2020, " 2,020/s]"), std::pair(1.0 / 999, " 999/s]"),
                               std::pair(1.0 / 1234567, " 1,234,567/s]"), std::pair(1.0 / 34.2, " 34.2/s]")}) {
    Terminal terminal;
    ProgressOptions options = terminal.options();
    double now = 0;
    options.seconds = [&] { return now; };
    for ([[maybe_unused]] int i : progress(std::vector<int>{1}, options))
      now = elapsed;
    EXPECT_NE(terminal.last().find(rate), std::string::npos) << terminal.last();
  }
}

TEST(ProgressTest, ARangeWithoutASizeHasNoShare) {
  Terminal terminal;
  terminal.tick = 0.5;
  std::forward_list<int> list{1, 2};
  for ([[maybe_unused]] int i : progress(list, terminal.options("all")))
    ;
  EXPECT_EQ(terminal.text(0), "all: 0 [00:00, ?/s]");
  EXPECT_EQ(terminal.text(2), "all: 2 [00:01, 2/s]");
  ProgressOptions known = terminal.options();
  known.total = 2;
  for ([[maybe_unused]] int i : progress(list, known))
    ;
  EXPECT_EQ(terminal.last(), "100% 2/2 [00:01, 1.33/s]");
}

TEST(ProgressTest, ShowsValuesOfNumbersAndTensors) {
  Terminal terminal;
  terminal.tick = 0.2;
  std::vector<int> range{1, 2};
  auto bar = progress(range, terminal.options());
  for (int i : bar) {
    bar.set("loss", Tensor(0.5f) / static_cast<float>(i));
    bar.set("accuracy", 0.25 * i);
    bar.describe("pass " + std::to_string(i));
  }
  EXPECT_EQ(terminal.text(1), "pass 1:  50% 1/2 [00:00<00:00, 5/s, loss=0.5, accuracy=0.25]");
  EXPECT_EQ(terminal.last(), "pass 2: 100% 2/2 [00:00, 3.33/s, loss=0.25, accuracy=0.5]");
  EXPECT_NE(messageOf([&] { bar.set("loss", Tensor{1.0, 2.0}); }), "no error");
  EXPECT_NE(messageOf([&] { bar.set("loss", Tensor()); }), "no error");
}

TEST(ProgressTest, ADataSetIsCountedInBatches) {
  Terminal terminal;
  data::Dataset set = data::Dataset(zeros({10, 2}), arange(10)).shuffle(1).batch(4);
  std::vector<int64_t> order;
  for (const auto &[x, y] : progress(set, terminal.options()))
    for (int64_t i : y.to_vector<int64_t>())
      order.push_back(i);
  EXPECT_EQ(order, set.order(0)) << "one epoch was begun";
  EXPECT_EQ(terminal.last().substr(0, 8), "100% 3/3");
}

TEST(ProgressTest, ALoopThatEndsEarlyEndsItsLine) {
  Terminal terminal;
  for (int i : progress(std::vector{1, 2, 3}, terminal.options()))
    if (i == 2)
      break;
  EXPECT_EQ(terminal.last(), " 33% 1/3 [00:00, ?/s]");
  EXPECT_EQ(terminal.lines.back().back(), '\n');
  EXPECT_THROW(
      for ([[maybe_unused]] int i : progress(std::vector{1, 2}, terminal.options())) throw std::runtime_error("stop"),
      std::runtime_error);
  EXPECT_EQ(terminal.last(), "  0% 0/2 [00:00, ?/s]");
  EXPECT_EQ(terminal.lines.back().back(), '\n');
}

TEST(ProgressTest, AnEmptyRangeEndsAtOnce) {
  Terminal terminal;
  for ([[maybe_unused]] int i : progress(std::vector<int>(), terminal.options()))
    FAIL();
  EXPECT_EQ(terminal.last(), "0 [00:00, ?/s]");
}

TEST(ProgressTest, EachLoopOverItBeginsAnew) {
  Terminal terminal;
  terminal.tick = 1;
  std::list<int> list{1, 2};
  auto bar = progress(list, terminal.options());
  for (int epoch = 0; epoch < 2; ++epoch) {
    for ([[maybe_unused]] int i : bar)
      ;
    EXPECT_EQ(terminal.last(), "100% 2/2 [00:03, 1.5s each]");
  }
}

TEST(ProgressTest, ALineIsNoWiderThanTheTerminal) {
  Terminal terminal;
  ProgressOptions options =
      terminal.options("a long description with \u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4");
  for (int columns = 2; columns < 50; ++columns) {
    options.columns = columns;
    for ([[maybe_unused]] int i : progress(std::vector{1}, options))
      ;
    std::string text = terminal.last();
    EXPECT_LT(text.size(), static_cast<size_t>(columns));
    int open = 0; // bytes that a character lacks
    for (unsigned char byte : text)
      open = byte >= 0xC0 ? 1 : byte >= 0x80 ? open - 1 : open;
    EXPECT_EQ(open, 0) << text;
  }
}

TEST(ProgressTest, ElementsArePassedOnAsTheyAre) {
  Terminal terminal;
  std::vector<std::unique_ptr<int>> owners;
  owners.push_back(std::make_unique<int>(1));
  for (auto &owner : progress(owners, terminal.options()))
    *owner = 5;
  EXPECT_EQ(*owners[0], 5);
  const int fixed[] = {1, 2, 3};
  int sum = 0;
  for (const int &x : progress(fixed, terminal.options()))
    sum += x;
  EXPECT_EQ(sum, 6);
}

// The standard error stream of a test is a pipe or a file: nothing is written there, and no clock is read.
TEST(ProgressTest, IsQuietWhereThereIsNoTerminal) {
  int looks = 0;
  testing::internal::CaptureStderr();
  auto bar = progress(std::vector{1, 2, 3}, {.description = "quiet", .seconds = [&] {
                                               ++looks;
                                               return 0.0;
                                             }});
  for (int i : bar)
    bar.set("i", i);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(looks, 0);
}
