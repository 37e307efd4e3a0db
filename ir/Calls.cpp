#include "ir/Calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace wg::ir {

namespace {

/// A function whose callees are being visited.
struct Visit {
  func::FuncOp function;
  SmallVector<CallOp> calls;
  size_t next = 0;
  int64_t ops = 0; ///< its own
};

} // namespace

static Visit begin(func::FuncOp function) {
  Visit visit{function, {}};
  function.walk([&](Operation *op) {
    ++visit.ops;
    if (auto call = dyn_cast<CallOp>(op))
      visit.calls.push_back(call);
  });
  return visit;
}

void forgetDerived(func::FuncOp function) {
  function->removeAttr(kPairsAttr);
  function->removeAttr(kBatchesAttr);
}

LogicalResult checkCallee(CallOp call, func::FuncOp callee) {
  if (!callee)
    return call.emitOpError("calls @") << call.getCallee() << ", which is not a function of this module";
  if (callee.isDeclaration() ||
      (callee.getBody().hasOneBlock() && isa<func::ReturnOp>(callee.getBody().front().getTerminator())))
    return success();
  return call.emitOpError("calls @") << call.getCallee()
                                     << ", which has several blocks; a program is one block of wg ops";
}

FailureOr<SmallVector<func::FuncOp>> calleesFirst(func::FuncOp root, const SymbolTable &symbols) {
  constexpr int64_t kOpen = -1;
  DenseMap<Operation *, int64_t> opsOf; // with those of its callees; kOpen while they are being visited
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
      for (CallOp call : visit.calls)
        ops = llvm::AddOverflow(ops, opsOf.lookup(symbols.lookup(call.getCallee())), ops) ? INT64_MAX : ops;
      opsOf[visit.function] = ops;
      order.push_back(visit.function);
      path.pop_back();
      continue;
    }
    CallOp call = visit.calls[visit.next++];
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (failed(checkCallee(call, callee)))
      return failure();
    auto known = opsOf.find(callee);
    if (known == opsOf.end()) {
      enter(callee);
    } else if (known->second == kOpen) {
      InFlightDiagnostic diagnostic = call.emitOpError("calls @")
                                      << call.getCallee() << ", which calls it: a function cannot call itself";
      diagnostic.attachNote() << "try: write the recursion out, one function for each depth";
      return diagnostic;
    }
  }
  if (int64_t ops = opsOf.lookup(root); ops > kMostInlinedOps) {
    InFlightDiagnostic diagnostic = root.emitError() << "@" << root.getSymName() << " has ";
    (ops == INT64_MAX ? diagnostic << "more than 2^63" : diagnostic << ops)
        << " ops, each function counted once for each call of it; at most " << kMostInlinedOps << " can be run";
    diagnostic.attachNote() << "try: call fewer functions, or each less often";
    return diagnostic;
  }
  return order;
}

} // namespace wg::ir
