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
  // 370 MB in runs of 108 bytes, times a vector along m: 63 ms, 141 as they are written.
  EXPECT_EQ(loopsOf("ijmkl", "jmlik", {{'i', 73}, {'j', 82}, {'k', 9}, {'l', 3}, {'m', 574}}).back(), 'm');
  // 75 MB in rows of 12 bytes: read on along m, 11.7 ms; along l 22.8.
  EXPECT_EQ(loopsOf("kilmj", "miklj", {{'i', 106}, {'j', 3}, {'k', 61}, {'l', 51}, {'m', 19}}, 4), "iklm");
  // 29 MB in rows of 24 bytes: 3.6 ms; as they are written 6.
  EXPECT_EQ(loopsOf("jlki", "jkli", {{'i', 6}, {'j', 43}, {'k', 139}, {'l', 200}}, 8), "jlk");
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

/// Rows of 20 bytes, from one order of what is outside of them into another: 225 runs are read by turns, which no
/// processor follows, or as many lines are written in parts.
LoopOrder orderOfRows(double i, double jl, const Model &machine) {
  Loop ofJl{jl, {5, 0, 5 * i}}, ofI{i, {5 * jl, 0, 5}}, row{5, {1, 0, 1}};
  return orderOfBlocks({ofJl, ofI, row}, std::nullopt, 8, 4, machine);
}

TEST(MemoryCosts, RunsAreReadInStripsOfThem) {
  const Model &narrow = *modelsOf(Machine::narrowVectors).front();
  // 390 MB, 195 ms in either order of whole loops: 115 to 130.
  LoopOrder order = orderOfRows(225, 86710, narrow);
  ASSERT_TRUE(order.strips);
  EXPECT_EQ(order.strips->outside, 0u);
  EXPECT_EQ(order.strips->axis, order.axes[1]);
  EXPECT_EQ(order.strips->places, 16);
  EXPECT_FALSE(orderOfRows(225, 80, narrow).strips) << "caches hold it";
  EXPECT_FALSE(orderOfRows(12, 86710 * 20, narrow).strips) << "so few runs are followed";
  EXPECT_FALSE(orderOfRows(225, 86710, kMachine).strips) << "not measured there";
}

TEST(MemoryCosts, AStripOfBlocksIsMoreThanOne) {
  const Model &narrow = *modelsOf(Machine::narrowVectors).front();
  for (double lanes : {2, 4, 8, 16, 32}) {
    Loop k{2271, {1, 0, 31795}}, j{6359, {11355, 1, 5}}, i{5, {2271, 0, 1}};
    LoopOrder order = orderOfBlocks({k, j, i}, size_t(0), lanes, 1, narrow);
    if (order.strips && order.strips->axis == 0) {
      EXPECT_GT(order.strips->places, lanes);
      EXPECT_EQ(order.strips->places % int64_t(lanes), 0);
    }
  }
}

TEST(MemoryCosts, EachAxisIsThereOnce) {
  for (std::string to : {"lkmij", "mlkji", "ikmlj", "kjiml"}) {
    std::string loops = loopsOf("jimlk", to, {{'i', 31}, {'j', 17}, {'k', 23}, {'l', 29}, {'m', 5}}) + to.back();
    std::sort(loops.begin(), loops.end());
    EXPECT_EQ(loops, "ijklm");
  }
}

} // namespace
