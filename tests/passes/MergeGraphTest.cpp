// The graph of fusion against one that searches everything: which merges are refused, and that no cycle comes to be.
#include "passes/MergeGraph.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using wg::passes::MergeGraph;

namespace {

/// The same graph as sets of edges, merged by brute force.
struct Model {
  std::vector<std::set<size_t>> reads;
  std::vector<size_t> mergedInto;

  size_t find(size_t node) const {
    while (mergedInto[node] != node)
      node = mergedInto[node];
    return node;
  }
  std::set<size_t> readsOf(size_t node) const {
    std::set<size_t> all;
    for (size_t i = 0; i < reads.size(); ++i)
      if (find(i) == node)
        for (size_t read : reads[i])
          if (find(read) != node)
            all.insert(find(read));
    return all;
  }
  /// Whether a path of two edges or more leads down from one to the other.
  bool leavesAndReturns(size_t from, size_t to) const {
    std::set<size_t> seen;
    std::vector<size_t> pending;
    for (size_t read : readsOf(from))
      if (read != to)
        pending.push_back(read);
    while (!pending.empty()) {
      size_t node = pending.back();
      pending.pop_back();
      if (node == to)
        return true;
      if (seen.insert(node).second)
        for (size_t read : readsOf(node))
          pending.push_back(read);
    }
    return false;
  }
  bool merge(size_t a, size_t b) {
    a = find(a), b = find(b);
    if (a == b)
      return true;
    if (leavesAndReturns(a, b) || leavesAndReturns(b, a))
      return false;
    mergedInto[a] = b;
    return true;
  }
};

} // namespace

TEST(MergeGraphTest, MergesWhatNoPathLeavesAndReenters) {
  int refused = 0, merged = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    MergeGraph graph;
    Model model;
    for (size_t i = 0; i < 40; ++i) {
      std::vector<MergeGraph::Node> reads;
      std::set<size_t> wanted;
      for (size_t r = 0; i > 0 && r < below(4); ++r) {
        size_t read = seed % 2 ? below(i) : i - 1 - below(std::min<size_t>(i, 5));
        reads.push_back(static_cast<MergeGraph::Node>(read));
        wanted.insert(read);
      }
      ASSERT_EQ(graph.add(reads), i);
      model.reads.push_back(wanted);
      model.mergedInto.push_back(i);
      if (below(3) != 0) // else the graph is soon a single node
        continue;
      size_t a = below(i + 1), b = seed % 3 ? i : below(i + 1);
      bool isWanted = model.merge(a, b);
      ASSERT_EQ(graph.merge(static_cast<MergeGraph::Node>(a), static_cast<MergeGraph::Node>(b)), isWanted)
          << "seed " << seed << ": " << a << ", " << b;
      (isWanted ? merged : refused) += 1;
      for (size_t x = 0; x <= i; ++x)
        for (size_t y = 0; y <= i; ++y)
          ASSERT_EQ(graph.find(static_cast<MergeGraph::Node>(x)) == graph.find(static_cast<MergeGraph::Node>(y)),
                    model.find(x) == model.find(y));
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(merged, 1000);
}

// What moves behind a merged node again and again uses up the numbers between two labels; they are spread anew.
TEST(MergeGraphTest, AnyNumberOfNodesFindsAPlace) {
  constexpr int kMany = 5000;
  MergeGraph graph;
  std::vector<MergeGraph::Node> early, followers;
  for (int i = 0; i < kMany; ++i) {
    early.push_back(graph.add({}));
    followers.push_back(graph.add({early.back()}));
  }
  MergeGraph::Node before = graph.add({});
  for (int i = 0; i < 50; ++i) // so that the search from `late` takes longer
    before = graph.add({before});
  MergeGraph::Node late = graph.add({before});
  graph.add({late});
  for (int i = 0; i < kMany; ++i)
    ASSERT_TRUE(graph.merge(early[i], late));
  for (int i = 0; i < kMany; ++i)
    EXPECT_FALSE(graph.merge(followers[i], before)); // by way of `late`
  for (int i = 0; i < kMany; ++i)
    EXPECT_TRUE(graph.merge(followers[i], followers.front()));
}

// Where the way between two is longer than the search, they stay apart.
TEST(MergeGraphTest, ALongWayRoundIsNotSearchedToItsEnd) {
  MergeGraph graph;
  std::vector<MergeGraph::Node> chain{graph.add({})};
  for (int i = 0; i < 100000; ++i)
    chain.push_back(graph.add({chain.back()}));
  EXPECT_FALSE(graph.merge(chain.front(), chain.back()));
  EXPECT_TRUE(graph.merge(chain[500], chain[501]));
  EXPECT_FALSE(graph.merge(chain[499], chain[502]));
  EXPECT_TRUE(graph.merge(chain.front(), graph.add({})));
}
