// Which nodes of a graph without cycles may become one?
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace wg::passes {

/// A graph without cycles, in a topological order, whose nodes are merged where that makes no cycle. A merge searches
/// between the two nodes only, from both at once, until one side knows all that lies between; what it found then moves
/// behind or before the merged node. After Pearce and Kelly 2007 and Bender, Fineman, Gilbert and Tarjan 2016; the
/// order is a list with labels (Dietz and Sleator 1987).
class MergeGraph {
public:
  using Node = uint32_t;

  /// A node behind all others, which reads `reads`.
  Node add(llvm::ArrayRef<Node> reads);
  /// What the node has been merged into; itself if into none.
  Node find(Node node);
  /// Makes one node of two. Not where a path leads from one through a third to the other; nor where that cannot be
  /// known in kMaxSteps: then they stay apart, so that a program of any size takes time in proportion to it.
  bool merge(Node a, Node b);

private:
  static constexpr int64_t kGap = int64_t(1) << 20;
  static constexpr int kMaxSteps = 2048;
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  struct Data {
    int64_t label = 0; ///< larger than those of all that it reads
    Node previous = kNone, next = kNone;
    Node mergedInto = kNone;
    llvm::SmallVector<Node, 4> reads, readers;
    uint32_t seenFrom[2] = {0, 0}; ///< the last search, from either side, that met it
  };
  enum Side : uint8_t { behind, before };
  struct Search {
    Side side;
    Node start, goal;
    llvm::SmallVector<std::pair<Node, size_t>> stack; ///< with the next edge to follow
    llvm::SmallVector<Node> found;
  };
  enum class Step : uint8_t { more, done, path };
  Step advance(Search &search);

  void unlink(Node node);
  void linkAfter(Node node, Node previous);
  void makeRoomAfter(Node node);

  std::vector<Data> nodes;
  Node first = kNone, last = kNone;
  uint32_t searches = 0;
};

} // namespace wg::passes
