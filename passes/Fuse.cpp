// Which ops become one loop nest?
//
//   %s = wg.add %x, %y                       %p = wg.kernel map (%a = %x, %b = %y) {
//   %t = wg.tanh %s                  ->        %s = wg.add %a, %b   %t = wg.tanh %s   wg.yield %t }
//   return %t                                return %p
//
// Every op that computes joins a group; a group is one iteration space with at most one contraction or one set of
// reduced axes:
//   map       elementwise ops of one shape
//   reduce    the reductions of one shape over one set of axes, elementwise ops of that shape before and after them,
//             and elementwise ops on the reduced shape (softmax, losses, normalisation)
//   contract  one contraction and elementwise ops on its result (bias, activation, the optimiser's update)
//   single    an op that builds its own loops
//   external  an op that is a call of a routine
// Ops join in program order the group of a producer; further producers' groups of the same space merge into it (Adam's
// p, m, v in one loop). Views, splats and what its op calls cheap cost nothing: each group has its own copy, but for a
// transpose, or a slice, that is spread over many rows and read across in each of them, which is a kernel of its own. A
// merge is legal if no path leaves the merged group and comes back. A value read by other groups becomes one more
// result; but one that follows from another such result by a few quick ops, and that one other group alone reads, is
// computed there.
// What was decided is written on the kernel (`loops`): whoever emits it, plans memory or reports reads it there.
// Legal because a kernel's meaning is its body. Cost: a bounded search of the group graph a join (MergeGraph).
// After Cordeiro et al., XLA's operation fusion, and Kennedy and McKinley 1993 (typed fusion).
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Kernels.h"
#include "ir/Views.h"
#include "passes/Cheap.h"
#include "passes/MergeGraph.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace wg::passes {
#define GEN_PASS_DEF_GROUPOPS
#include "passes/Passes.h.inc"

namespace {

using Kind = ir::KernelKind;

/// Above so many elements a reduction to one value does not wait inside its kernel for what follows from it.
constexpr int64_t kLargeReduction = 1 << 16;
constexpr size_t kMaxOps = ir::KernelOp::kMaxOps;
/// Ops that are computed in another group than the first that could.
constexpr size_t kMaxMoved = 4;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

struct Group {
  Kind kind;
  SmallVector<int64_t> shape;    ///< the iteration space
  SmallVector<int64_t> axes;     ///< reduced ones, if kind is reduce
  SmallVector<int64_t> rowShape; ///< the shape without them
  llvm::SetVector<Operation *> ops;
  MergeGraph::Node node;
  bool isOneOp() const { return kind == Kind::single || kind == Kind::external; }
  bool isFull(Value value) const { return shapeOf(value) == ArrayRef(shape); }
  bool isRow(Value value) const { return kind == Kind::reduce && shapeOf(value) == ArrayRef(rowShape); }
};

SmallVector<int64_t> without(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> rest;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    if (!llvm::is_contained(axes, d))
      rest.push_back(shape[d]);
  return rest;
}

/// What an operand reads in the end, and whether it is read in another place than the reader's own.
struct Root {
  Value value;
  bool moved;
};

class Fuser {
public:
  explicit Fuser(func::FuncOp function) : function(function), block(function.getBody().front()) {}

  void run() {
    for (auto [i, op] : llvm::enumerate(block)) {
      place[&op] = i;
      if (isCopied(&op))
        copied.insert(&op);
    }
    for (Operation &op : block)
      group(&op);
    for (Operation &op : llvm::reverse(block))
      computeAtReader(&op);
    materialise();
    emitKernels();
    if (llvm::all_of(block.getOps<ir::KernelOp>(), [](ir::KernelOp kernel) { return kernel.getLoopsAttr(); }))
      ir::decideWhoChecks(function);
  }

private:
  /// An op that each kernel may compute again: it reads no memory of its own, or shows another value.
  bool isCheap(Operation *op) const { return op && passes::isCheap(op) && !copied.contains(op); }

  /// Nothing if it ends in a cheap op that reads nothing. Cheap ops have one operand at most, so what leads to a
  /// root is a chain, of any length.
  std::optional<Root> rootOf(Value value) const {
    Root root{value, false};
    for (Operation *op = value.getDefiningOp(); isCheap(op); op = root.value.getDefiningOp()) {
      if (op->getNumOperands() == 0)
        return std::nullopt;
      root = {op->getOperand(0), true};
    }
    return root;
  }
  SmallVector<Root> rootsOf(Operation *op) const {
    SmallVector<Root> roots;
    for (Value operand : op->getOperands())
      if (std::optional<Root> root = rootOf(operand))
        roots.push_back(*root);
    return roots;
  }

  // ---- Grouping -----------------------------------------------------------------------------------------------------

  void group(Operation *op) {
    if (isCheap(op) || op->hasTrait<OpTrait::IsTerminator>())
      return;
    SmallVector<MergeGraph::Node> reads;
    for (Root root : rootsOf(op))
      if (Operation *producer = root.value.getDefiningOp())
        reads.push_back(nodeOf.lookup(producer));
    nodeOf[op] = graph.add(reads);
    if (isa<ir::External>(op)) {
      start(op, Kind::external, {});
    } else if (isa<ir::Structured>(op) || copied.contains(op)) { // nothing joins it

      start(op, Kind::single, {});
    } else if (isa<ir::ContractOp>(op)) {
      start(op, Kind::contract, shapeOf(op->getResult(0)));
    } else if (isa<ir::Reduction, ir::Scalar, ir::Indexed>(op)) {
      if (!isa<ir::Indexed>(op) && join(op))
        return;
      auto reduction = dyn_cast<ir::Reduction>(op);
      Group *fresh =
          start(op, reduction ? Kind::reduce : Kind::map, shapeOf(reduction ? op->getOperand(0) : op->getResult(0)));
      if (reduction)
        setAxes(*fresh, reduction.getAxes());
    }
  }

  static void setAxes(Group &group, ArrayRef<int64_t> axes) {
    group.kind = Kind::reduce;
    group.axes.assign(axes.begin(), axes.end());
    group.rowShape = without(group.shape, axes);
  }

  Group *start(Operation *op, Kind kind, ArrayRef<int64_t> shape) {
    groups.push_back(std::make_unique<Group>());
    Group *group = groups.back().get();
    group->kind = kind;
    group->shape.assign(shape.begin(), shape.end());
    group->ops.insert(op);
    group->node = nodeOf.lookup(op); // none for a cheap op that becomes a kernel: groups are whole then
    groupOf[op] = group;
    return group;
  }

  Group *groupOfValue(Value value) { return groupOf.lookup(value.getDefiningOp()); }

  /// Whether op may be in `group` as it is, whatever the order.
  bool fits(Group &group, Operation *op) {
    if (group.ops.size() >= kMaxOps || group.isOneOp())
      return false;
    auto reduction = dyn_cast<ir::Reduction>(op);
    if (reduction) {
      if (!group.isFull(op->getOperand(0)))
        return false;
      if (group.kind == Kind::contract || (group.kind == Kind::reduce && ArrayRef(group.axes) != reduction.getAxes()))
        return false;
    } else if (!group.isFull(op->getResult(0)) && !group.isRow(op->getResult(0))) {
      return false;
    }
    bool opIsFull = reduction || group.isFull(op->getResult(0));
    for (Value operand : op->getOperands()) {
      std::optional<Root> root = rootOf(operand);
      if (!root || groupOfValue(root->value) != &group)
        continue;
      if (root->moved ? !opIsFull || !showsRow(group, operand, root->value) : opIsFull != group.isFull(root->value))
        return false;
    }
    if (group.kind == Kind::reduce && group.rowShape.empty() &&
        ShapedType::getNumElements(group.shape) > kLargeReduction && opIsFull && !reduction)
      return llvm::none_of(rootsOf(op), [&](Root root) { return root.moved && groupOfValue(root.value) == &group; });
    return true;
  }

  /// Whether `operand` of a full op shows the row value `root` to each element of its row.
  static bool showsRow(Group &group, Value operand, Value root) {
    if (!group.isRow(root))
      return false;
    MLIRContext *context = root.getContext();
    AffineMap map = AffineMap::getMultiDimIdentityMap(group.shape.size(), context);
    Value value = operand;
    while (value != root) {
      auto view = ir::viewMapOf(value.getDefiningOp());
      if (!view)
        return false;
      map = view->compose(map);
      value = value.getDefiningOp()->getOperand(0);
    }
    SmallVector<AffineExpr> rows;
    for (int64_t d = 0; d < static_cast<int64_t>(group.shape.size()); ++d)
      if (!llvm::is_contained(group.axes, d))
        rows.push_back(getAffineDimExpr(d, context));
    for (auto [expr, row] : llvm::zip_equal(map.getResults(), rows)) {
      auto constant = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(expr, map.getNumDims(), 0));
      bool unit = group.shape[cast<AffineDimExpr>(row).getPosition()] == 1;
      if (simplifyAffineExpr(expr, map.getNumDims(), 0) != row && !(constant && constant.getValue() == 0 && unit))
        return false;
    }
    return true;
  }

  /// Joins op to the group of one of its producers, merging the groups of others where that is legal.
  bool join(Operation *op) {
    // Contractions first, then reductions: a map group can merge into either, not the other way round.
    SmallVector<Group *> producers;
    for (Root root : rootsOf(op))
      if (Group *producer = groupOfValue(root.value))
        if (!llvm::is_contained(producers, producer))
          producers.insert(llvm::upper_bound(producers, producer, [&](Group *a, Group *b) { return byRank(a, b); }),
                           producer);
    for (Group *base : producers) {
      if (!fits(*base, op) || !graph.merge(base->node, nodeOf.lookup(op)))
        continue;
      bool wasMap = base->kind == Kind::map;
      auto reduction = dyn_cast<ir::Reduction>(op);
      if (wasMap && reduction)
        setAxes(*base, reduction.getAxes());
      base->ops.insert(op);
      groupOf[op] = base;
      for (Group *other : producers)
        if (other != base && !other->ops.empty())
          merge(base, other);
      return true;
    }
    return false;
  }
  /// Of contractions and reductions the last one: a sum of products becomes the next product's epilogue, with one sum
  /// alive, and not that of one product, which would read all others.
  bool byRank(Group *a, Group *b) const {
    if (rank(a) != rank(b) || rank(a) == 0)
      return rank(a) > rank(b);
    return place.lookup(a->ops.front()) > place.lookup(b->ops.front());
  }
  static int rank(Group *group) { return group->kind == Kind::contract ? 2 : group->kind == Kind::reduce ? 1 : 0; }

  /// Takes `other` into `base` if both are one iteration space and no path between them leads outside.
  void merge(Group *base, Group *other) {
    if (base->ops.size() + other->ops.size() > kMaxOps)
      return;
    bool sameSpace = base->shape == other->shape;
    if (other->kind == Kind::map) {
      bool asRow = base->kind == Kind::reduce && base->rowShape == other->shape;
      if (!sameSpace && !asRow)
        return;
    } else if (other->kind != Kind::reduce || base->kind != Kind::reduce || !sameSpace || base->axes != other->axes) {
      return;
    }
    // Values read across the two must be read in place, or as the row of an element.
    for (Group *reader : {base, other}) {
      Group *writer = reader == base ? other : base;
      for (Operation *op : reader->ops)
        for (Value operand : op->getOperands()) {
          std::optional<Root> root = rootOf(operand);
          if (!root || groupOfValue(root->value) != writer)
            continue;
          if (readsMemory(*reader, op))
            return;
          bool opIsFull = isa<ir::Reduction>(op) || base->isFull(op->getResult(0));
          if (root->moved ? !opIsFull || !showsRow(*base, operand, root->value) : opIsFull != base->isFull(root->value))
            return;
        }
    }
    if (!graph.merge(base->node, other->node))
      return;
    for (Operation *op : other->ops) {
      base->ops.insert(op);
      groupOf[op] = base;
    }
    other->ops.clear();
  }

  // ---- Moving quick ops to their reader -----------------------------------------------------------------------------

  /// y = matmul(a, b), z = y * y, sum(z), where y is read elsewhere as well: the sum's kernel reads y and makes z,
  /// which never lies in memory. It waits for nothing new, reads no more than before, and y lives as long as z would
  /// have.
  void computeAtReader(Operation *last) {
    Group *from = groupOf.lookup(last), *reader = nullptr;
    if (!from || !isQuick(last) || !from->isFull(last->getResult(0)))
      return;
    for (Operation *user : last->getResult(0).getUsers()) {
      Group *group = groupOf.lookup(user);
      if (isCheap(user))
        return; // it shows other places, or lies in memory
      if (!group || group == from || (reader && group != reader) || readsMemory(*group, user) ||
          !group->isFull(last->getResult(0)))
        return;
      reader = group;
    }
    if (!reader || !(reader->shape == from->shape))
      return;
    // What `last` follows from: ops that nobody else reads, down to one result of the group that is read elsewhere.
    llvm::SetVector<Operation *> moved;
    moved.insert(last);
    Value base;
    for (size_t i = 0; i < moved.size(); ++i)
      for (Value operand : moved[i]->getOperands()) {
        std::optional<Root> root = rootOf(operand);
        if (!root)
          continue;
        Operation *producer = root->value.getDefiningOp();
        if (root->moved || !from->isFull(root->value))
          return;
        if (producer && moved.contains(producer))
          continue;
        if (root->value == base)
          continue;
        if (producer && groupOf.lookup(producer) == from) {
          if (!base && isReadBeside(root->value, *from)) {
            base = root->value;
            continue;
          }
          if (isQuick(producer) && moved.size() < kMaxMoved &&
              llvm::all_of(producer->getUsers(), [&](Operation *user) { return moved.contains(user); })) {
            moved.insert(producer);
            continue;
          }
        }
        return;
      }
    if (!base || bytesOfElement(base) > bytesOfElement(last->getResult(0)) ||
        reader->ops.size() + moved.size() > kMaxOps)
      return;
    for (Operation *op : moved) {
      from->ops.remove(op);
      reader->ops.insert(op);
      groupOf[op] = reader;
      nodeOf[op] = reader->node;
    }
  }

  static int64_t bytesOfElement(Value value) {
    return llvm::divideCeil(cast<RankedTensorType>(value.getType()).getElementTypeBitWidth(), 8);
  }
  /// An elementwise op that costs less than to write its result and read it again.
  static bool isQuick(Operation *op) {
    return isa<ir::Scalar>(op) && !op->hasTrait<ir::IsTranscendental>() && op->getNumResults() == 1;
  }
  /// Whether `value` lies in memory for others than the group that makes it.
  bool isReadBeside(Value value, Group &group) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isCheap(user) && groupOf.lookup(user) != &group; // a cheap op's readers may be the group's own
    });
  }

  /// Cheap values that somebody reads from memory become kernels of their own; reshapes rename memory and need none.
  void materialise() {
    for (Operation *op : copied) { // a loop as any other, which takes along what it reads
      groupOf[op]->kind = Kind::map;
      groupOf[op]->shape = llvm::to_vector(shapeOf(op->getResult(0)));
    }
    for (Operation &op : block) {
      if (!isCheap(&op) || !isReadFromMemory(op.getResult(0)))
        continue;
      if (isa<ir::ReshapeOp>(op))
        renamed.insert(&op);
      else
        start(&op, Kind::map, shapeOf(op.getResult(0)));
    }
  }

  bool isReadFromMemory(Value value) {
    SmallVector<Value> pending{value}; // and what renames its memory
    while (!pending.empty())
      for (Operation *user : pending.pop_back_val().getUsers()) {
        if (isa<ir::Indexed, ir::ContractOp>(user))
          return true;
        if (isCheap(user)) {
          if (isa<ir::ReshapeOp>(user))
            pending.push_back(user->getResult(0));
        } else if (Group *group = groupOf.lookup(user); !group || group->isOneOp()) {
          return true;
        }
      }
    return false;
  }

  // ---- Kernels ------------------------------------------------------------------------------------------------------

  bool isMaterialised(Operation *op) { return groupOf.count(op); }

  void emitKernels() {
    // Units in an order of their dependences; of those that are ready, first what an op that may fail needs, so that
    // nothing has been overwritten when it does; then the one whose last op came first.
    struct Unit {
      SmallVector<Operation *> ops;
      size_t last = 0;
      bool urgent = false;
      llvm::SmallSetVector<size_t, 8> needs;
    };
    SmallVector<Unit> units;
    DenseMap<Operation *, size_t> unitOf;
    SmallVector<Operation *> order;
    for (Operation &op : block)
      order.push_back(&op);
    DenseMap<Group *, size_t> unitOfGroup;
    Operation *terminator = block.getTerminator();
    for (Operation *op : order) {
      if (op == terminator || (isCheap(op) && !isMaterialised(op) && !renamed.contains(op)))
        continue;
      Group *group = groupOf.lookup(op);
      size_t unit;
      if (group) {
        auto [it, isNew] = unitOfGroup.try_emplace(group, units.size());
        if (isNew)
          units.emplace_back();
        unit = it->second;
      } else {
        unit = units.size();
        units.emplace_back();
      }
      units[unit].ops.push_back(op);
      units[unit].last = std::max(units[unit].last, place.lookup(op));
      unitOf[op] = unit;
    }
    SmallVector<llvm::SmallSetVector<size_t, 4>> users(units.size());
    SmallVector<size_t> waits(units.size(), 0);
    for (auto [i, unit] : llvm::enumerate(units)) {
      llvm::SmallSetVector<size_t, 8> &needs = unit.needs;
      auto need = [&, i = i](Value value, bool fromMemory) {
        while (Operation *op = value.getDefiningOp()) {
          // What a kernel reads through cheap ops that it copies, it needs itself; also where one of them has a kernel
          // of its own for other readers, which may well need this one.
          if (auto it = unitOf.find(op); it != unitOf.end() && (fromMemory || !isCheap(op))) {
            if (it->second != i)
              needs.insert(it->second);
            return;
          }
          if (op->getNumOperands() == 0)
            return;
          value = op->getOperand(0);
          fromMemory = isa<ir::Indexed>(op);
        }
      };
      for (Operation *op : unit.ops) {
        Group *group = groupOf.lookup(op);
        for (Value operand : op->getOperands())
          need(operand, !group || readsMemory(*group, op));
      }
      waits[i] = needs.size();
      for (size_t n : needs)
        users[n].insert(i);
    }
    SmallVector<size_t> hurried;
    // Of a condition or a loop too: its bodies are functions that other threads may be at.
    for (auto [i, unit] : llvm::enumerate(units))
      if (ir::isControl(unit.ops.front()) || ir::mayFail(unit.ops.front()))
        hurried.push_back(i);
    while (!hurried.empty())
      if (Unit &unit = units[hurried.pop_back_val()]; !std::exchange(unit.urgent, true))
        hurried.append(unit.needs.begin(), unit.needs.end());
    auto rank = [&](size_t i) { return std::tuple(!units[i].urgent, units[i].last, i); };
    auto later = [&](size_t a, size_t b) { return rank(a) > rank(b); };
    std::vector<size_t> ready;
    for (size_t i = 0; i < units.size(); ++i)
      if (waits[i] == 0)
        ready.push_back(i);
    std::make_heap(ready.begin(), ready.end(), later);
    OpBuilder b(terminator);
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      size_t i = ready.back();
      ready.pop_back();
      Group *group = groupOf.lookup(units[i].ops.front());
      if (group)
        emitKernel(b, *group, units[i].ops);
      else
        for (Operation *op : units[i].ops)
          op->moveBefore(terminator);
      for (size_t user : users[i])
        if (--waits[user] == 0) {
          ready.push_back(user);
          std::push_heap(ready.begin(), ready.end(), later);
        }
    }
    for (Operation *op : llvm::reverse(order))
      if (op != terminator && op->use_empty() && !isa<ir::KernelOp>(op))
        op->erase();
  }

  /// Whether an op of a group reads its operands in other places than its own.
  static bool readsMemory(const Group &group, Operation *op) {
    return group.isOneOp() || isa<ir::ContractOp, ir::Indexed>(op);
  }

  void emitKernel(OpBuilder &b, Group &group, ArrayRef<Operation *> ops) {
    llvm::SetVector<Operation *> members(ops.begin(), ops.end());
    auto isMember = [&](Value value) { return value.getDefiningOp() && members.contains(value.getDefiningOp()); };
    // What the body copies: members, and the cheap ops that they read, in program order. A cheap value that one op
    // reads element by element and another from memory (h + matmul(h, w), h a reshape) is both a copy and an input.
    llvm::SetVector<Operation *> body;
    llvm::SetVector<Value> inputs;
    auto read = [&](Value value) {
      while (!isMember(value) && isCheap(value.getDefiningOp())) {
        Operation *op = value.getDefiningOp();
        if (!body.insert(op) || op->getNumOperands() == 0)
          return;
        value = op->getOperand(0);
        if (isa<ir::Indexed>(op))
          break;
      }
      if (!isMember(value))
        inputs.insert(value);
    };
    for (Operation *op : ops) {
      for (Value operand : op->getOperands()) {
        if (readsMemory(group, op) && !isMember(operand))
          inputs.insert(operand);
        else
          read(operand);
      }
      body.insert(op);
    }
    SmallVector<Operation *> sorted = body.takeVector();
    llvm::sort(sorted, [&](Operation *x, Operation *y) { return place.lookup(x) < place.lookup(y); });
    SmallVector<Value> results;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (isReadOutside(result, members))
          results.push_back(result);
    if (results.empty()) // nobody reads what they compute
      return;
    SmallVector<Type> types;
    for (Value result : results)
      types.push_back(result.getType());
    SmallVector<Location> locations;
    for (Operation *op : ops)
      locations.push_back(op->getLoc());
    Location loc = ops.back()->getLoc();
    auto kernel = ir::KernelOp::create(b, loc, types, ir::KernelKindAttr::get(b.getContext(), group.kind),
                                       ir::LoopsAttr(), inputs.getArrayRef());
    Block *block = b.createBlock(&kernel.getBody());
    IRMapping elements,
        memory; // what stands for a value where its elements are computed, and where it is read from memory
    for (Value input : inputs) {
      memory.map(input, block->addArgument(input.getType(), loc));
      elements.map(input, memory.lookup(input));
    }
    b.setInsertionPointToStart(block);
    for (Operation *op : sorted) {
      Operation *copy = b.clone(*op, elements);
      if (readsMemory(group, op))
        for (auto [i, operand] : llvm::enumerate(op->getOperands()))
          if (!isMember(operand))
            copy->setOperand(i, memory.lookup(operand));
    }
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(elements.lookup(result));
    ir::YieldOp::create(b, loc, yielded);
    if (hasStaticShapes(kernel))
      kernel.describe();
    b.setInsertionPoint(this->block.getTerminator());
    for (auto [result, replacement] : llvm::zip_equal(results, kernel.getResults()))
      result.replaceUsesWithIf(replacement, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
  }

  /// Loops are decided about known sizes.
  static bool hasStaticShapes(ir::KernelOp kernel) {
    auto isStatic = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    return llvm::all_of(kernel.getBlock()->getArgumentTypes(), isStatic) &&
           llvm::all_of(*kernel.getBlock(), [&](Operation &op) {
             return llvm::all_of(op.getOperandTypes(), isStatic) && llvm::all_of(op.getResultTypes(), isStatic);
           });
  }

  /// Whether another unit reads it, directly or through cheap ops that the unit copies.
  bool isReadOutside(Value value, const llvm::SetVector<Operation *> &members) {
    SmallVector<Value> pending{value};
    while (!pending.empty())
      for (Operation *user : pending.pop_back_val().getUsers()) {
        if (members.contains(user))
          continue;
        if (!isCheap(user) || isMaterialised(user))
          return true;
        pending.push_back(user->getResult(0));
      }
    return false;
  }

  func::FuncOp function;
  Block &block;
  DenseMap<Operation *, size_t> place;
  SmallVector<std::unique_ptr<Group>> groups;
  DenseMap<Operation *, Group *> groupOf;
  MergeGraph graph;
  DenseMap<Operation *, MergeGraph::Node> nodeOf; ///< of each op that is not cheap
  llvm::DenseSet<Operation *> copied;             ///< transposes that are kernels of their own
  llvm::DenseSet<Operation *> renamed;            ///< reshapes that somebody reads from memory
};

struct GroupOps : impl::GroupOpsBase<GroupOps> {
  using Base::Base;
  void runOnOperation() override {
    if (getOperation().isExternal() || !getOperation().getBody().hasOneBlock())
      return;
    Fuser fuser(getOperation());
    fuser.run();
  }
};

} // namespace
} // namespace wg::passes
