#include "autodiff/Dependences.h"

using namespace mlir;

namespace wg::autodiff {

const SmallVector<llvm::BitVector> &Dependences::of(func::FuncOp function) {
  if (auto known = known_.find(function); known != known_.end())
    return known->second;
  FailureOr<SmallVector<func::FuncOp>> order = ir::calleesFirst(function, callees_.symbolsOf(function));
  assert(succeeded(order) && "it was checked");
  for (func::FuncOp each : *order)
    if (!known_.contains(each)) {
      SmallVector<llvm::BitVector> found = find(each);
      known_[each] = std::move(found);
    }
  return known_.find(function)->second;
}

SmallVector<llvm::BitVector> Dependences::find(func::FuncOp function) {
  unsigned numArguments = function.getNumArguments();
  SmallVector<llvm::BitVector> results(function.getNumResults(), llvm::BitVector(numArguments));
  if (function.isDeclaration() || function->hasAttr(kVjpAttr)) {
    for (auto [result, type] : llvm::zip_equal(results, function.getResultTypes()))
      for (unsigned i = 0; i < numArguments; ++i)
        if (isDifferentiableType(type) && isDifferentiableType(function.getArgumentTypes()[i]))
          result.set(i);
    return results;
  }
  Block &body = function.getBody().front();
  DenseMap<Value, llvm::BitVector> of; // of values that depend on an argument
  for (BlockArgument argument : body.getArguments())
    if (isDifferentiableType(argument.getType())) {
      of[argument] = llvm::BitVector(numArguments);
      of[argument].set(argument.getArgNumber());
    }
  auto join = [&](llvm::BitVector &bits, Value operand) {
    if (auto known = of.find(operand); known != of.end())
      bits |= known->second;
  };
  auto set = [&](Value result, llvm::BitVector bits) {
    if (isDifferentiableType(result.getType()) && bits.any())
      of[result] = std::move(bits);
  };
  /// Of the operands that take part, those that one result of a body depends on.
  auto through = [&](const llvm::BitVector &arguments, ValueRange operands) {
    llvm::BitVector bits(numArguments);
    for (unsigned argument : arguments.set_bits())
      join(bits, operands[argument]);
    return bits;
  };
  for (Operation &op : body.without_terminator()) {
    if (isa<ir::NotDifferentiable>(op))
      continue;
    if (auto loop = dyn_cast<ir::LoopOp>(op)) {
      auto bodyFunction = callees_.lookup(loop, loop.bodyNames()[0].getValue());
      SmallVector<llvm::BitVector> turn = known_.lookup(bodyFunction);
      SmallVector<Value> operands(loop.getInits());
      llvm::append_range(operands, loop.getXs());
      llvm::append_range(operands, loop.getInvariants());
      unsigned carried = loop.getCarried();
      // What one turn depends on, through those before it.
      for (bool changed = true; changed;) {
        changed = false;
        for (llvm::BitVector &bits : turn) {
          llvm::BitVector before = bits;
          for (unsigned i = 0; i < carried; ++i)
            if (before.test(i))
              bits |= turn[i];
          changed |= bits != before;
        }
      }
      for (unsigned i = 0; i < carried; ++i)
        turn[i].set(i); // no turn at all
      for (auto [result, bits] : llvm::zip(loop.getFinals(), turn))
        set(result, through(bits, operands));
      for (auto [result, bits] : llvm::zip_equal(loop.getStacked(), ArrayRef(turn).drop_front(carried)))
        set(result, through(bits, operands));
    } else if (auto withBodies = dyn_cast<ir::WithBodies>(op)) {
      ValueRange operands = isa<ir::CondOp>(op) ? op.getOperands().drop_front() : op.getOperands();
      SmallVector<llvm::BitVector> bits(op.getNumResults(), llvm::BitVector(numArguments));
      for (FlatSymbolRefAttr name : withBodies.bodyNames())
        for (auto [sum, arguments] : llvm::zip(bits, known_.lookup(callees_.lookup(&op, name.getValue()))))
          sum |= through(arguments, operands);
      for (auto [result, sum] : llvm::zip_equal(op.getResults(), bits))
        set(result, std::move(sum));
    } else {
      llvm::BitVector bits(numArguments);
      for (Value operand : op.getOperands())
        join(bits, operand);
      for (Value result : op.getResults())
        set(result, bits);
    }
  }
  for (auto [result, value] : llvm::zip_equal(results, body.getTerminator()->getOperands()))
    join(result, value);
  return results;
}

} // namespace wg::autodiff
