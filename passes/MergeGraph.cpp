#include "passes/MergeGraph.h"

#include "llvm/ADT/STLExtras.h"

namespace wg::passes {

MergeGraph::Node MergeGraph::add(llvm::ArrayRef<Node> reads) {
  Node node = static_cast<Node>(nodes.size());
  nodes.emplace_back();
  linkAfter(node, last);
  for (Node read : reads) {
    read = find(read);
    if (llvm::is_contained(nodes[node].reads, read))
      continue;
    nodes[node].reads.push_back(read);
    nodes[read].readers.push_back(node);
  }
  return node;
}

MergeGraph::Node MergeGraph::find(Node node) {
  Node root = node;
  while (nodes[root].mergedInto != kNone)
    root = nodes[root].mergedInto;
  while (node != root) // the next search is shorter
    node = std::exchange(nodes[node].mergedInto, root);
  return root;
}

// ---- Searching ------------------------------------------------------------------------------------------------------

/// Follows one edge that stays between the two nodes.
MergeGraph::Step MergeGraph::advance(Search &search) {
  auto &[node, edge] = search.stack.back();
  const auto &edges = search.side == behind ? nodes[node].readers : nodes[node].reads;
  if (edge == edges.size()) {
    search.stack.pop_back();
    return search.stack.empty() ? Step::done : Step::more;
  }
  Node from = node, to = find(edges[edge++]);
  if (to == search.goal)
    return from == search.start ? Step::more : Step::path; // an edge between the two is no way through a third
  if (to == search.start || nodes[to].seenFrom[search.side] == searches)
    return Step::more;
  bool isBetween =
      search.side == behind ? nodes[to].label < nodes[search.goal].label : nodes[to].label > nodes[search.goal].label;
  if (!isBetween)
    return Step::more;
  if (nodes[to].seenFrom[search.side == behind ? before : behind] == searches)
    return Step::path;
  nodes[to].seenFrom[search.side] = searches;
  search.found.push_back(to);
  search.stack.emplace_back(to, 0);
  return Step::more;
}

bool MergeGraph::merge(Node a, Node b) {
  a = find(a), b = find(b);
  if (a == b)
    return true;
  if (nodes[a].label > nodes[b].label)
    std::swap(a, b);
  ++searches;
  Search sides[] = {{behind, a, b, {{a, 0}}, {}}, {before, b, a, {{b, 0}}, {}}};
  Search *complete = nullptr;
  for (int step = 0; !complete; ++step) {
    Search &side = sides[step % 2];
    Step result = advance(side);
    if (result == Step::path || step == kMaxSteps)
      return false;
    if (result == Step::done)
      complete = &side;
  }
  // The merged node stands where the found ones do not: they move across it, in their order.
  llvm::sort(complete->found, [&](Node x, Node y) { return nodes[x].label < nodes[y].label; });
  Node at = complete->side == behind ? b : a;
  for (Node node : complete->found)
    unlink(node);
  if (complete->side == behind) {
    for (Node previous = b; Node node : complete->found)
      linkAfter(node, previous), previous = node;
  } else {
    for (Node node : complete->found)
      linkAfter(node, nodes[a].previous);
  }
  // The one with more edges takes those of the other.
  auto edges = [&](Node node) { return nodes[node].reads.size() + nodes[node].readers.size(); };
  Node kept = edges(a) < edges(b) ? b : a, gone = kept == a ? b : a;
  if (at == gone) {
    unlink(kept);
    linkAfter(kept, gone);
  }
  unlink(gone);
  nodes[gone].mergedInto = kept;
  nodes[kept].reads.append(nodes[gone].reads);
  nodes[kept].readers.append(nodes[gone].readers);
  nodes[gone].reads.clear();
  nodes[gone].readers.clear();
  return true;
}

// ---- The order ------------------------------------------------------------------------------------------------------

void MergeGraph::unlink(Node node) {
  Data &data = nodes[node];
  (data.previous == kNone ? first : nodes[data.previous].next) = data.next;
  (data.next == kNone ? last : nodes[data.next].previous) = data.previous;
}

/// Puts a node that is in no list behind `previous`, or first if that is kNone.
void MergeGraph::linkAfter(Node node, Node previous) {
  Node next = previous == kNone ? first : nodes[previous].next;
  if (previous != kNone && next != kNone && nodes[next].label - nodes[previous].label < 2)
    makeRoomAfter(previous);
  Data &data = nodes[node];
  data.previous = previous;
  data.next = next;
  (previous == kNone ? first : nodes[previous].next) = node;
  (next == kNone ? last : nodes[next].previous) = node;
  if (next == kNone)
    data.label = previous == kNone ? 0 : nodes[previous].label + kGap;
  else if (previous == kNone)
    data.label = nodes[next].label - kGap;
  else
    data.label = nodes[previous].label + (nodes[next].label - nodes[previous].label) / 2;
}

/// Spreads the labels of as many nodes behind this one as have room enough together.
void MergeGraph::makeRoomAfter(Node node) {
  int64_t count = 1, from = nodes[node].label;
  Node end = nodes[node].next;
  for (; end != kNone && nodes[end].label - from <= count * count; ++count)
    end = nodes[end].next;
  int64_t room = end == kNone ? count * kGap : nodes[end].label - from;
  Node at = nodes[node].next;
  for (int64_t i = 1; i < count; ++i, at = nodes[at].next)
    nodes[at].label = from + room / count * i + room % count * i / count;
}

} // namespace wg::passes
