#include "autodiff/Outline.h"

#include "mlir/IR/IRMapping.h"

#include <algorithm>

using namespace mlir;

namespace wg::autodiff {

/// The ops of the block that depend on the source and that the targets depend on, in their order.
static SmallVector<Operation *> opsBetween(Value source, ValueRange targets) {
  SmallVector<Operation *> between;
  DenseSet<Operation *> reached, needed;
  SmallVector<Value> work{source};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers())
      if (reached.insert(user).second)
        llvm::append_range(work, user->getResults());
  llvm::append_range(work, targets);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !reached.contains(op) || !needed.insert(op).second)
      continue;
    between.push_back(op);
    llvm::append_range(work, op->getOperands());
  }
  llvm::sort(between, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return between;
}

Outlined outline(Location loc, StringRef name, ValueRange targets, Value source, SymbolTable &symbols) {
  SmallVector<Operation *> ops = opsBetween(source, targets);
  OpBuilder b(loc.getContext());
  auto function = func::FuncOp::create(loc, name, b.getFunctionType({}, {}));
  function.setPrivate();
  symbols.insert(function);
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  Outlined made{function, {}};
  IRMapping map;
  // Without recursion: what is made again inside may be a chain of sizes.
  auto bring = [&](Value value) {
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.back();
      Operation *op = next.getDefiningOp();
      bool again = op && op->getNumOperands() == 0;
      if (map.contains(next)) {
        work.pop_back();
      } else if (again || (op && isa<IndexType>(next.getType()))) {
        auto missing = llvm::find_if(op->getOperands(), [&](Value operand) { return !map.contains(operand); });
        if (missing != op->operand_end()) {
          work.push_back(*missing);
          continue;
        }
        b.clone(*op, map);
        work.pop_back();
      } else {
        map.map(next, body->insertArgument(made.captured.size(), next.getType(), loc));
        made.captured.push_back(next);
        work.pop_back();
      }
    }
  };
  map.map(source, body->addArgument(source.getType(), loc)); // what is captured comes before it
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      bring(operand);
    b.clone(*op, map);
  }
  SmallVector<Value> returned;
  for (Value target : targets) {
    bring(target);
    returned.push_back(map.lookup(target));
  }
  func::ReturnOp::create(b, loc, returned);
  function.setFunctionType(b.getFunctionType(body->getArgumentTypes(), ValueRange(returned).getTypes()));
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  return made;
}

static int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 0;
  double bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
  for (int64_t size : type.getShape())
    bytes *= static_cast<double>(ShapedType::isDynamic(size) ? 1 : size);
  return static_cast<int64_t>(std::min(bytes, 1e18)); // so that a sum of a few does not overflow
}

int64_t laneBytes(func::FuncOp function, ArrayRef<unsigned> places) {
  Block &body = function.getBody().front();
  DenseSet<Value> inLanes;
  for (unsigned place : places)
    inLanes.insert(body.getArgument(place));
  for (Operation &op : body)
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return inLanes.contains(operand); }))
      inLanes.insert(op.result_begin(), op.result_end());
  // The values that die with each op.
  DenseMap<Operation *, SmallVector<Value>> dying;
  auto lastReader = [&](Value value) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers())
      if (!last || last->isBeforeInBlock(user))
        last = user;
    return last;
  };
  double live = 0, most = 0;
  auto begin = [&](Value value) {
    if (!inLanes.contains(value))
      return;
    live += static_cast<double>(bytesOf(value));
    if (Operation *last = lastReader(value))
      dying[last].push_back(value);
  };
  for (Value argument : body.getArguments())
    begin(argument);
  most = live;
  for (Operation &op : body) {
    for (Value result : op.getResults())
      begin(result);
    most = std::max(most, live);
    for (Value value : dying.lookup(&op))
      live -= static_cast<double>(bytesOf(value));
    for (Value result : op.getResults())
      if (result.use_empty() && inLanes.contains(result))
        live -= static_cast<double>(bytesOf(result));
  }
  return static_cast<int64_t>(std::min(most, 9e18));
}

} // namespace wg::autodiff
