// The orders of loops of kernels that read across, or in short rows.
#include "passes/MemoryCosts.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

using namespace wg::passes;

namespace {

/// Times below were measured on a Zen 4.
const Model &kMachine = *modelsOf(Machine::fastMemory).front();

/// The outer loops, as letters, of a kernel that brings an f32 tensor from one order of its letters into another.
std::string loopsOf(const std::string &from, const std::string &to, std::map<char, double> sizes, double lanes = 16) {
  auto step = [&](const std::string &letters, char letter) {
    double step = 1;
    for (char later : letters.substr(letters.find(letter) + 1))
      step *= sizes.at(later);
    return step;
  };
  llvm::SmallVector<Loop> axes;
  for (char letter : to)
    axes.push_back({sizes.at(letter), {step(from, letter), 0, step(to, letter)}});
  std::optional<size_t> across;
  if (from.back() != to.back())
    across = to.find(from.back());
  std::string loops;
  for (size_t axis : orderOfBlocks(axes, across, lanes, 4, kMachine).axes)
    loops += to[axis];
  return loops;
}

TEST(MemoryCosts, AnAxisWhoseRoundsShareLinesIsInside) {
  // Written as the result lies, l outermost, each of 140,000 lines is read in parts that lie far apart in time.
  std::string loops = loopsOf("jimlk", "lkmij", {{'i', 30}, {'j', 51}, {'k', 12}, {'l', 91}, {'m', 3}});
  EXPECT_LT(loops.find('i'), loops.find('l')) << loops;
}

TEST(MemoryCosts, LongRowsAreReadAsTheyLie) {
  EXPECT_EQ(loopsOf("kij", "ijk", {{'i', 64}, {'j', 512}, {'k', 512}}), "ij");
  EXPECT_EQ(loopsOf("kji", "ijk", {{'i', 512}, {'j', 64}, {'k', 512}}), "ji");
}

TEST(MemoryCosts, WhatTheClosestCacheHoldsIsWrittenAsItLies) {
  EXPECT_EQ(loopsOf("jimlk", "lkmij", {{'i', 3}, {'j', 5}, {'k', 4}, {'l', 9}, {'m', 3}}), "lkmi");
  // Rows of 9 numbers, 40 MB of them.
  EXPECT_NE(loopsOf("ljkim", "ijklm", {{'i', 18}, {'j', 96}, {'k', 176}, {'l', 4}, {'m', 9}}), "ijkl");
}

TEST(MemoryCosts, RowsThatLieAsTheyAreReadAreReadOneAfterAnother) {
  // 33 MB in rows of 24 bytes: 1.2 ms, as they are written 2.9. Rows of 1,264 bytes: 1.9 and 3.1.
  EXPECT_EQ(loopsOf("jik", "ijk", {{'i', 19}, {'j', 34839}, {'k', 6}}), "ji");
  EXPECT_EQ(loopsOf("kij", "ikj", {{'i', 11}, {'j', 316}, {'k', 2494}}), "ki");
}

TEST(MemoryCosts, ShortLoopsAreNotInside) {
  // Of a product that reads 6 numbers of an operand for each run of 21 x 3: 5.8 us, as it is written 8.7.
  Loop m{2, {378, 0, 10962}}, l{29, {756, 1, 378}}, i{21, {18, 0, 18}}, k{6, {3, 29, 3}}, j{3, {1, 0, 1}};
  llvm::SmallVector<size_t> order = orderOfBlocks({m, l, i, k, j}, std::nullopt, 4, 4, kMachine).axes;
  EXPECT_NE(order.back(), 3u);
}

TEST(MemoryCosts, LinesPagesApartDoNotStayInTheClosestCache) {
  // Rows of 32 bytes along l are halves of lines; those along k lie 25 pages apart and share a set. (Were k inside of
  // l's loop, 722 us; outside of it, 360 to 400.)
  std::string loops = loopsOf("lmijk", "kjmli", {{'i', 8}, {'j', 8}, {'k', 50}, {'l', 40}, {'m', 10}}, 8);
  EXPECT_NE(loops.back(), 'k') << loops;
}

TEST(MemoryCosts, RunsThatMemoryBeginsToReadWait) {
  // 75 MB in rows of 12 bytes: read on along m, 11.7 ms; along l 22.8.
  EXPECT_EQ(loopsOf("kilmj", "miklj", {{'i', 106}, {'j', 3}, {'k', 61}, {'l', 51}, {'m', 19}}, 4), "iklm");
}

TEST(MemoryCosts, ThreadsHaveRoundsToShare) {
  std::string loops = loopsOf("jimlk", "lkmij", {{'i', 30}, {'j', 51}, {'k', 12}, {'l', 91}, {'m', 3}});
  EXPECT_NE(loops.front(), 'm') << loops;
  EXPECT_NE(loops.front(), 'k') << loops; // one block
}

TEST(MemoryCosts, FewRoundsAreSharedWhereThatIsWorthIt) {
  // An outermost loop of 7 rounds: within each, 762 pages are read on along i; with i's loop around it, 5,334.
  Loop i{1250, {1, 254, 5334}}, l{7, {1250, 0, 762}}, j{254, {26250, 1, 3}}, k{3, {8750, 0, 1}};
  EXPECT_EQ(orderOfBlocks({i, l, j, k}, size_t(0), 4, 4, kMachine).axes.front(), 1u);
  l.rounds = 3;
  EXPECT_NE(orderOfBlocks({i, l, j, k}, size_t(0), 4, 4, kMachine).axes.front(), 1u);
}

TEST(MemoryCosts, WhatIsAskedForAheadDoesNotWait) {
  // 200 MB in runs of 108 bytes, 73 of them by turns, times a vector along m: as they are written, 54 ms on a Zen 3.
  // Without asking ahead 130, and 92 in strips of m.
  EXPECT_EQ(loopsOf("ijmkl", "jmlik", {{'i', 73}, {'j', 82}, {'k', 9}, {'l', 3}, {'m', 574}}), "jmli");
  // 29 MB in rows of 24 bytes: 3.2 ms as they are written, without asking ahead 4.3.
  EXPECT_EQ(loopsOf("jlki", "jkli", {{'i', 6}, {'j', 43}, {'k', 139}, {'l', 200}}, 8), "jkl");
}

/// Rows of four numbers, from one order of what is outside of them into another.
struct Rows {
  double outer, inner;
  Loop ofInner{inner, {4, 0, 4 * outer}}, ofOuter{outer, {4 * inner, 0, 4}}, row{4, {1, 0, 1}};
  llvm::SmallVector<Loop> axes{ofInner, ofOuter, row};
  LoopOrder order(const Model &machine) const { return orderOfBlocks(axes, std::nullopt, 4, 4, machine); }
  double ahead(const LoopOrder &order, const Model &machine) const {
    return rowsAhead(axes, order, std::nullopt, 4, 0, 4, machine);
  }
};

TEST(MemoryCosts, RowsAskForWhatFollowsThem) {
  LoopOrder asWritten{{0, 1}, {}}, asRead{{1, 0}, {}};
  // Of 225 runs a line further on; of 20, lines that are read a while later.
  EXPECT_EQ((Rows{225, 86710}.ahead(asWritten, kMachine)), 16);
  EXPECT_EQ((Rows{20, 86710}.ahead(asWritten, kMachine)), 7 * 16);
  // Of so many that their lines do not stay: runs that come later in the loop.
  EXPECT_EQ((Rows{86710, 225}.ahead(asWritten, kMachine)), 32 * 4 * 225);
  EXPECT_EQ((Rows{225, 86710}.ahead(asRead, kMachine)), 0) << "one run, which is followed";
  EXPECT_EQ((Rows{12, 86710}.ahead(asWritten, kMachine)), 0) << "so few are followed";
  EXPECT_EQ((Rows{225, 200}.ahead(asWritten, kMachine)), 0) << "caches close by hold it";
  EXPECT_EQ((Rows{225, 1024 * 80}.ahead(asWritten, kMachine)), 0) << "whole pages apart";
}

TEST(MemoryCosts, BlocksOfWholeRowsAskForWhatFollowsThem) {
  // Blocks of three numbers by nine, as they follow each other in what is read across: 162 runs.
  Loop m{110, {27, 0, 634230}}, l{145, {2970, 0, 4374}}, i{3, {1, 0, 1458}}, j{162, {430650, 1, 9}}, k{9, {3, 0, 1}};
  llvm::SmallVector<Loop> axes{m, l, i, j, k};
  LoopOrder order{{1, 2, 0, 3}, {}};
  EXPECT_EQ(rowsAhead(axes, order, size_t(2), 8, 0, 4, kMachine), 32) << "108 bytes: two lines";
  EXPECT_EQ(rowsAhead(axes, order, size_t(2), 2, 0, 4, kMachine), 0) << "several blocks a row, far apart in time";
  LoopOrder inner{{1, 0, 3, 2}, {}};
  EXPECT_EQ(rowsAhead(axes, inner, size_t(2), 2, 0, 4, kMachine), 32) << "one after the other";
}

TEST(MemoryCosts, RowsOfLoopsAroundAreAskedFor) {
  // Rows of 276 bytes, twelve by turns, each time in other places: of the loop around, three rounds later.
  Loop m{23, {1, 0, 3939264}}, l{112, {69, 0, 35172}}, i{977, {7728, 0, 36}}, j{12, {7550256, 0, 3}}, k{3, {23, 0, 1}};
  llvm::SmallVector<Loop> axes{m, l, i, j, k};
  LoopOrder order{{1, 2, 3, 0}, {}};
  EXPECT_EQ(rowsAhead(axes, order, size_t(0), 4, 0, 4, kMachine), 3 * 7728);
}

TEST(MemoryCosts, RowsAreReadInStripsOfThem) {
  const Model &narrow = *modelsOf(Machine::narrowVectors).front();
  // 74 MB in 4,092 runs: 22 ms as they are written, 12 in strips of 64 runs, 9 in some of 256.
  Rows many{4092, 1131};
  LoopOrder order = many.order(narrow);
  ASSERT_TRUE(order.strips);
  EXPECT_EQ(order.strips->outside, 0u);
  EXPECT_EQ(order.strips->axis, order.axes[1]);
  EXPECT_EQ(order.strips->places, 64);
  EXPECT_FALSE((Rows{225, 80}.order(narrow)).strips) << "caches hold it";
  EXPECT_FALSE((Rows{12, 86710 * 20}.order(narrow)).strips) << "so few runs are followed";
  EXPECT_FALSE(many.order(kMachine).strips) << "not measured there";
}

TEST(MemoryCosts, EachAxisIsThereOnce) {
  for (std::string to : {"lkmij", "mlkji", "ikmlj", "kjiml"}) {
    std::string loops = loopsOf("jimlk", to, {{'i', 31}, {'j', 17}, {'k', 23}, {'l', 29}, {'m', 5}}) + to.back();
    std::sort(loops.begin(), loops.end());
    EXPECT_EQ(loops, "ijklm");
  }
}

} // namespace
