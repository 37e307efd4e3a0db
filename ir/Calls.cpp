#include "ir/Calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace wg::ir {

namespace {

/// A function whose callees are being visited.
struct Visit {
  func::FuncOp function;
  SmallVector<std::pair<Operation *, FlatSymbolRefAttr>> calls; ///< what runs a function, and which
  size_t next = 0;
  int64_t ops = 0; ///< its own
};

} // namespace

static Visit begin(func::FuncOp function) {
  Visit visit{function, {}};
  function.walk([&](Operation *op) {
    ++visit.ops;
    if (auto withBodies = dyn_cast<WithBodies>(op))
      for (FlatSymbolRefAttr name : withBodies.bodyNames())
        visit.calls.push_back({op, name});
  });
  return visit;
}

void forgetDerived(func::FuncOp function) {
  function->removeAttr(kPairsAttr);
  function->removeAttr(kBatchesAttr);
}

LogicalResult checkCallee(Operation *call, FlatSymbolRefAttr name, func::FuncOp callee) {
  if (!callee)
    return call->emitOpError("calls @") << name.getValue() << ", which is not a function of this module";
  if (callee.isDeclaration() ||
      (callee.getBody().hasOneBlock() && isa<func::ReturnOp>(callee.getBody().front().getTerminator())))
    return success();
  return call->emitOpError("calls @") << name.getValue()
                                      << ", which has several blocks; a program is one block of wg ops";
}

LogicalResult checkCallee(CallOp call, func::FuncOp callee) { return checkCallee(call, call.getCalleeAttr(), callee); }

RankedTensorType stackOf(Type row, int64_t length) {
  auto type = cast<RankedTensorType>(row);
  SmallVector<int64_t> shape{length < 0 ? ShapedType::kDynamic : length};
  llvm::append_range(shape, type.getShape());
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType rowTypeOf(Type stack) {
  auto type = cast<RankedTensorType>(stack);
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

SmallVector<Type> loopTypes(MLIRContext *context, TypeRange carried, bool hasCondition, TypeRange rows,
                            int64_t length) {
  SmallVector<Type> types(carried);
  if (hasCondition)
    types.push_back(RankedTensorType::get({}, IntegerType::get(context, 64)));
  for (Type row : rows)
    types.push_back(stackOf(row, length));
  return types;
}

bool isControl(Operation *op) { return isa<WithBodies>(op) && !isa<CallOp>(op); }

bool isUnbounded(LoopOp loop) {
  if (static_cast<int64_t>(loop.getLength()) >= 0)
    return false;
  return loop.getScanned() > 0 ? loop.getLimited() : !loop.getStacked().empty();
}

SmallVector<LoopOp> unboundedLoops(ModuleOp module) {
  SmallVector<LoopOp> loops;
  module.walk([&](LoopOp loop) {
    if (isUnbounded(loop) && loop.getScanned() == 0)
      loops.push_back(loop);
  });
  return loops;
}

void giveRoom(ModuleOp module, ArrayRef<int64_t> turns) {
  Builder b(module.getContext());
  for (auto [i, loop] : llvm::enumerate(unboundedLoops(module))) {
    loop.setLengthAttr(b.getI64IntegerAttr(turns[i]));
    loop.setRoomAttr(b.getI64IntegerAttr(static_cast<int64_t>(i)));
    for (Value stack : loop.getStacked())
      stack.setType(stackOf(rowTypeOf(stack.getType()), turns[i]));
  }
}

FailureOr<SmallVector<func::FuncOp>> calleesFirst(func::FuncOp root, const SymbolTable &symbols, int64_t *total) {
  constexpr int64_t kOpen = -1;
  DenseMap<Operation *, int64_t> opsOf; // with those of its callees; kOpen while they are being visited
  DenseMap<Operation *, int> nested;    // conditions and loops in one another
  SmallVector<func::FuncOp> order;
  SmallVector<Visit> path; // explicit: calls may nest deeper than a thread's stack
  auto enter = [&](func::FuncOp function) {
    opsOf[function] = kOpen;
    path.push_back(begin(function));
  };
  enter(root);
  while (!path.empty()) {
    Visit &visit = path.back();
    if (visit.next == visit.calls.size()) {
      int64_t ops = visit.ops;
      int &depth = nested[visit.function];
      for (auto [call, name] : visit.calls) {
        Operation *callee = symbols.lookup(name.getAttr());
        depth = std::max(depth, nested.lookup(callee) + !isa<CallOp>(call));
        ops = llvm::AddOverflow(ops, opsOf.lookup(callee), ops) ? INT64_MAX : ops;
      }
      opsOf[visit.function] = ops;
      order.push_back(visit.function);
      path.pop_back();
      continue;
    }
    auto [call, name] = visit.calls[visit.next++];
    auto callee = symbols.lookup<func::FuncOp>(name.getAttr());
    if (failed(checkCallee(call, name, callee)))
      return failure();
    auto known = opsOf.find(callee);
    if (known == opsOf.end()) {
      enter(callee);
    } else if (known->second == kOpen) {
      InFlightDiagnostic diagnostic = call->emitOpError("calls @")
                                      << name.getValue() << ", which calls it: a function cannot call itself";
      diagnostic.attachNote() << "try: write the recursion out, one function for each depth";
      return diagnostic;
    }
  }
  if (nested.lookup(root) > kMostNested) {
    InFlightDiagnostic diagnostic = root.emitError()
                                    << "@" << root.getSymName() << " nests " << nested.lookup(root)
                                    << " conditions and loops in one another; at most " << kMostNested << " can be";
    diagnostic.attachNote() << "try: nest fewer";
    return diagnostic;
  }
  if (int64_t ops = opsOf.lookup(root); ops > kMostInlinedOps) {
    InFlightDiagnostic diagnostic = root.emitError() << "@" << root.getSymName() << " has ";
    (ops == INT64_MAX ? diagnostic << "more than 2^63" : diagnostic << ops)
        << " ops, each function counted once for each call of it; at most " << kMostInlinedOps << " can be run";
    diagnostic.attachNote() << "try: call fewer functions, or each less often";
    return diagnostic;
  }
  if (total)
    *total = opsOf.lookup(root);
  return order;
}

} // namespace wg::ir
