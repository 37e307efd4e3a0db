// What a loop would compute of its invariants in every turn, computed once before it.
//
//   %s = wg.loop [@turn](%h, %w) ...              %t = wg.transpose %w by [1, 0]
//                                           ->    %s = wg.loop [@turn](%h, %t) ...
//   func @turn(%h, %w) {                          func @turn(%h, %t) {
//     %t = wg.transpose %w by [1, 0]                %y = wg.contract "mk,kn->mn" %h, %t
//     %y = wg.contract "mk,kn->mn" %h, %t
//
// An op of a body whose operands are invariants, or follow from them, is one before the loop, and what it gives is one
// more invariant; one that nobody reads any more is none. Only what is worth a kernel moves: what a turn would put into
// memory for a product, an op with loops of its own or many rows (Cheap.h), and what is more than a few operations an
// element. A view, a splat or a sum that a kernel of the turn takes along costs that kernel less than what it would
// read in its place. Legal because ops are pure; what may fail stays, as a loop without a turn would not have done it.
// Branches keep what they compute, for they may not be taken. Loops within loops: from the inside out.
// Cost: linear in the ops. What moves lies in memory for the whole loop and not for a turn; a turn made each of these
// values too, so that they are at most as much more as the values of one turn are.
// It follows `wg-arrange-products`, which writes the transposes that pay: one of an invariant costs it once a loop.
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Views.h"
#include "passes/Cheap.h"
#include "passes/Invariants.h"
#include "passes/Passes.h"
#include "passes/Unread.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_HOISTINVARIANTS
#include "passes/Passes.h.inc"

namespace {

/// Whether it reads its operands in memory, as no kernel takes along what makes them.
bool readsMemory(Operation *op) {
  return isa<ir::ContractOp, ir::Indexed, ir::Structured, ir::External, ir::WithBodies>(op);
}

/// One function of a loop, of which the last arguments are the invariants.
class Hoist {
public:
  Hoist(func::FuncOp body, size_t numInvariants)
      : body(body), block(body.getBody().front()), held(invariantsOf(block, numInvariants)) {
    for (Operation &op : block)
      if (op.hasTrait<OpTrait::IsTerminator>() ||
          llvm::none_of(op.getResults(), [&](Value result) { return held.contains(result); }))
        for (Value operand : op.getOperands())
          if (held.contains(operand))
            consider(operand, readsMemory(&op));
  }

  /// What is worth a kernel before the loop.
  SmallVector<Value> values;

  /// Computes them at `b`, where the loop's invariants are `invariants`.
  SmallVector<Value> compute(OpBuilder &b, ValueRange invariants) {
    IRMapping map;
    map.map(block.getArguments().take_back(invariants.size()), invariants);
    DenseSet<Operation *> needed;
    for (Value value : values)
      findNeeded(value, needed);
    for (Operation &op : block)
      if (needed.contains(&op))
        b.clone(op, map);
    return llvm::map_to_vector(values, [&](Value value) { return map.lookup(value); });
  }

  /// Takes them as arguments, after the invariants.
  void take() {
    for (Value value : values)
      value.replaceAllUsesWith(block.addArgument(value.getType(), value.getLoc()));
    eraseUnread(block);
  }

private:
  void findNeeded(Value value, DenseSet<Operation *> &needed) {
    SmallVector<Value> work{value};
    while (!work.empty())
      if (Operation *op = work.pop_back_val().getDefiningOp(); op && needed.insert(op).second)
        llvm::append_range(work, op->getOperands());
  }

  void consider(Value value, bool fromMemory) {
    Operation *op = value.getDefiningOp();
    if (!op || (isa<ir::ConstantOp>(op) && !isSplat(op)) || !considered[fromMemory].insert(value).second)
      return;
    bool isRenamed = isa<ir::ReshapeOp>(op);
    if (isCopied(op) || (isCheap(op) ? fromMemory && !isRenamed : fromMemory || isWork(op))) {
      if (!llvm::is_contained(values, value))
        values.push_back(value);
      return;
    }
    for (Value operand : op->getOperands())
      consider(operand, isRenamed && fromMemory);
  }

  /// More than a few operations an element.
  static bool isWork(Operation *op) {
    return !isCheap(op) && (!isa<ir::Scalar>(op) || op->hasTrait<ir::IsTranscendental>());
  }

  func::FuncOp body;
  Block &block;
  DenseSet<Value> held;
  DenseSet<Value> considered[2]; ///< as read by the element, in memory
};

struct HoistInvariants : impl::HoistInvariantsBase<HoistInvariants> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable table(getOperation());
    symbols = &table;
    users.clear();
    done.clear();
    getOperation().walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++users[name.getAttr()];
    });
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (failed(visit(function)))
        return signalPassFailure();
  }

private:
  /// The loops of a function, after those of the functions that they run.
  LogicalResult visit(func::FuncOp root) {
    if (root.isExternal())
      return success();
    FailureOr<SmallVector<func::FuncOp>> functions = ir::calleesFirst(root, *symbols);
    if (failed(functions))
      return failure();
    for (func::FuncOp function : *functions)
      if (!function.isExternal() && done.insert(function).second)
        for (auto loop : llvm::make_early_inc_range(function.getBody().front().getOps<ir::LoopOp>()))
          hoist(loop);
    return success();
  }

  void hoist(ir::LoopOp loop) {
    size_t numInvariants = loop.getInvariants().size();
    SmallVector<func::FuncOp> bodies;
    for (FlatSymbolRefAttr name : loop.bodyNames())
      bodies.push_back(symbols->lookup<func::FuncOp>(name.getAttr()));
    if (numInvariants == 0 || turnsOf(loop) < 2 ||
        llvm::any_of(bodies, [](func::FuncOp body) { return body.isExternal(); }) ||
        Hoist(bodies[0], numInvariants).values.empty())
      return;
    // A function that others run or know stays as it is.
    SmallVector<FlatSymbolRefAttr> names;
    for (func::FuncOp &body : bodies) {
      if (users[body.getSymNameAttr()] > 1 || body.isPublic()) {
        --users[body.getSymNameAttr()];
        body = cast<func::FuncOp>(body->clone());
        body.setPrivate();
        symbols->insert(body);
      }
      names.push_back(FlatSymbolRefAttr::get(body.getSymNameAttr()));
    }
    loop.setBodyNames(names);
    Hoist first(bodies[0], numInvariants);
    OpBuilder b(loop);
    SmallVector<Value> invariants(loop.getInvariants());
    llvm::append_range(invariants, first.compute(b, loop.getInvariants()));
    first.take();
    if (bodies.size() > 1) // the condition sees the same invariants
      for (Value value : ArrayRef(invariants).drop_front(numInvariants))
        bodies[1].getBody().front().addArgument(value.getType(), value.getLoc());
    SmallVector<Value> operands(loop.getOperands().drop_back(numInvariants));
    SmallVector<SmallVector<unsigned>> unread(bodies.size());
    for (auto [i, invariant] : llvm::enumerate(invariants)) {
      auto argumentOf = [&, i = i](func::FuncOp body) {
        return body.getBody().front().getArguments().take_back(invariants.size())[i];
      };
      if (llvm::all_of(bodies, [&](func::FuncOp body) { return argumentOf(body).use_empty(); }))
        for (auto [body, list] : llvm::zip_equal(bodies, unread))
          list.push_back(argumentOf(body).getArgNumber());
      else
        operands.push_back(invariant);
    }
    for (auto [body, list] : llvm::zip_equal(bodies, unread)) {
      Block &block = body.getBody().front();
      for (unsigned number : llvm::reverse(list))
        block.eraseArgument(number);
      body.removeArgAttrsAttr();
      body.setFunctionType(
          FunctionType::get(body.getContext(), block.getArgumentTypes(), body.getFunctionType().getResults()));
      ir::forgetDerived(body);
    }
    loop->setOperands(operands);
  }

  SymbolTable *symbols = nullptr;
  DenseMap<StringAttr, int64_t> users; ///< ops that run it, by name
  DenseSet<Operation *> done;
};

} // namespace
} // namespace wg::passes
