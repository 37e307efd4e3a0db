// A turn of a recurrence is a few chains of some forty operations, each of which waits for the one before it: exp,
// tanh, a division. A CPU looks ahead over some hundred operations, two or three such chains, and has room for four or
// more. So a block is written in the order in which a CPU with a longer view would start its operations: the first one,
// as they were written, that has all that it reads. Neighbouring chains come out operation by operation by turns, no
// more of them than it takes to hide their latencies, and the registers do with it: equal chains read the same
// coefficient one after the other. (List scheduling, Gibbons and Muchnick 1986, by the age of an operation.) What only
// fetches, loads and addresses, goes to its first reader; what stores, behind the value.
#include "codegen/emit/Order.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/DenseMap.h"

#include <climits>
#include <set>

using namespace mlir;

namespace wg::codegen {

namespace {

/// So many operations ahead of the first one that waits. More keep more values alive than there are registers.
constexpr int64_t kView = 256;

/// Cycles until a result is there, and the pipe that an operation on vectors takes for one.
struct Cost {
  int latency;
  enum { products, sums, none } pipe;
};
Cost costOf(Operation *op) {
  if (!llvm::any_of(op->getResultTypes(), [](Type type) { return isa<VectorType, FloatType>(type); }))
    return {0, Cost::none};
  if (isa<arith::DivFOp, math::SqrtOp>(op))
    return {13, Cost::products};
  if (isa<arith::MulFOp, math::FmaOp>(op))
    return {4, Cost::products};
  if (isa<arith::AddFOp, arith::SubFOp, LLVM::CallIntrinsicOp>(op))
    return {3, Cost::sums};
  if (isa<arith::BitcastOp>(op))
    return {0, Cost::none};
  return {1, Cost::sums};
}

/// Ops without a barrier between them.
class Segment {
public:
  Segment(ArrayRef<Operation *> ops, Operation *end) : end(end) {
    for (Operation *op : ops) {
      if (isFetched(op)) {
        fetched.insert(op);
        continue;
      }
      int number = static_cast<int>(nodes.size());
      numbers[op] = number;
      nodes.push_back({op, costOf(op), {}, {}, 0, 0});
      llvm::SmallSetVector<Operation *, 4> producers;
      for (Value operand : op->getOperands())
        producers.insert(operand.getDefiningOp());
      for (Operation *producer : producers)
        if (auto known = numbers.find(producer); known != numbers.end()) {
          nodes[known->second].readers.push_back(number);
          nodes[number].operands.push_back(known->second);
          ++nodes[number].waits;
        }
    }
  }

  void write() {
    schedule();
    delay();
    SmallVector<int> order = llvm::to_vector(llvm::seq<int>(0, static_cast<int>(nodes.size())));
    llvm::sort(order, [&](int a, int b) { return std::pair(nodes[a].start, a) < std::pair(nodes[b].start, b); });
    for (int i : order) {
      for (Value operand : nodes[i].op->getOperands())
        fetch(operand.getDefiningOp());
      nodes[i].op->moveBefore(end);
    }
    for (Operation *op : llvm::to_vector(fetched)) // read by none of these
      fetch(op);
  }

private:
  struct Node {
    Operation *op;
    Cost cost;
    SmallVector<int> readers, operands;
    int waits, start; ///< cycle in which it starts
  };

  /// What reads nothing that is computed here: constants, addresses, and what lies there.
  bool isFetched(Operation *op) {
    bool isCheap = isa<LLVM::LoadOp, LLVM::MaskedLoadOp, LLVM::GEPOp, arith::ConstantOp, arith::IndexCastOp,
                       vector::BroadcastOp, arith::MulIOp, arith::AddIOp, arith::SubIOp, arith::MinSIOp>(op);
    return isCheap && llvm::all_of(op->getOperands(), [&](Value operand) {
             return !operand.getDefiningOp() || !numbers.contains(operand.getDefiningOp());
           });
  }
  void fetch(Operation *op) {
    if (!op || !fetched.remove(op))
      return;
    for (Value operand : op->getOperands())
      fetch(operand.getDefiningOp());
    op->moveBefore(end);
  }
  /// When each would start.
  void schedule() {
    std::set<int> ready;
    for (auto [i, node] : llvm::enumerate(nodes))
      if (node.waits == 0)
        ready.insert(static_cast<int>(i));
    std::vector<bool> started(nodes.size(), false);
    int first = 0, now = 0, freeFrom[2] = {0, 0};
    auto earliest = [&](const Node &node) {
      int start = std::max(now, node.start);
      return node.cost.pipe == Cost::none ? start : std::max(start, freeFrom[node.cost.pipe]);
    };
    while (!ready.empty()) {
      while (started[first])
        ++first;
      int next = -1, start = 0;
      for (int i : ready) {
        if (i >= first + kView || (next >= 0 && start == now))
          break;
        if (int at = earliest(nodes[i]); next < 0 || at < start)
          next = i, start = at;
      }
      Node &node = nodes[next];
      node.start = now = start;
      if (node.cost.pipe != Cost::none)
        freeFrom[node.cost.pipe] = now + 1;
      ready.erase(next);
      started[next] = true;
      for (int reader : node.readers) {
        nodes[reader].start = std::max(nodes[reader].start, now + node.cost.latency);
        if (--nodes[reader].waits == 0)
          ready.insert(reader);
      }
    }
  }

  /// What is read late starts late, where what it reads is alive until then anyway.
  void delay() {
    for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
      Node &node = nodes[i];
      if (node.readers.empty() || node.operands.empty())
        continue;
      int latest = INT_MAX;
      for (int reader : node.readers)
        latest = std::min(latest, nodes[reader].start - node.cost.latency);
      bool isFree = llvm::all_of(node.operands, [&](int operand) {
        return llvm::any_of(nodes[operand].readers,
                            [&](int reader) { return reader != i && nodes[reader].start >= latest; });
      });
      if (isFree)
        node.start = std::max(node.start, latest);
    }
  }

  Operation *end;
  std::vector<Node> nodes;
  DenseMap<Operation *, int> numbers; ///< of the nodes
  llvm::SetVector<Operation *> fetched;
};

void order(Block &block) {
  SmallVector<Operation *> ops;
  SmallVector<std::pair<SmallVector<Operation *>, Operation *>> segments;
  for (Operation &op : block) {
    // Calls and what has a region may read what was stored.
    bool isBarrier = op.getNumRegions() > 0 || op.hasTrait<OpTrait::IsTerminator>() || isa<CallOpInterface>(op);
    if (isa<LLVM::CallIntrinsicOp>(op))
      isBarrier = false;
    if (!isBarrier) {
      ops.push_back(&op);
      continue;
    }
    segments.push_back({std::move(ops), &op});
    ops.clear();
  }
  for (auto &[of, end] : segments)
    Segment(of, end).write();
}

} // namespace

void orderForLatency(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kTurnsAttr))
      function.walk([](Block *block) { order(*block); });
}

} // namespace wg::codegen
