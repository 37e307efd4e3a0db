#include "autodiff/Reverse.h"

#include "autodiff/Cotangents.h"
#include "ir/Build.h"

using namespace mlir;

namespace wg::autodiff {

namespace {

/// An active call and how its cotangents are made.
struct ActiveCall {
  FunctionPair pair;
  SmallVector<unsigned> arguments, results; // places of the operands and results that take part
};

class Reverse {
public:
  Reverse(OpBuilder &b, Location loc, ValueRange targets, ValueRange seeds, ValueRange sources,
          const ReverseOptions &options)
      : b_(b), loc_(loc), options_(options), targets_(targets), sources_(sources), seeds_(seeds),
        activity_(targets, sources, options.isRecorded), cotangents_(b, loc) {
    seeds_.resize(targets_.size());
  }

  FailureOr<Gradients> run();

private:
  LogicalResult prepareCalls();
  LogicalResult prepareCall(ir::CallOp call);
  FailureOr<ir::Cotangents> adjointOf(Operation *op);
  ir::Cotangents adjointOfCall(ir::CallOp call, const ActiveCall &active, Location loc);
  FailureOr<ir::Cotangents> adjointByVjp(ir::CallOp call, FlatSymbolRefAttr vjp, Location loc);
  LogicalResult sweepInto(Operation *op, ArrayRef<Value> adjoint, Location loc);
  std::string whyMissing(Value source) const;

  OpBuilder &b_;
  Location loc_;
  const ReverseOptions &options_;
  SmallVector<Value> targets_, sources_, seeds_;
  Activity activity_;
  Cotangents cotangents_;
  DenseMap<Operation *, ActiveCall> calls_;
  SmallVector<std::pair<Value, std::string>> missing_; ///< operands of calls without a gradient, and why
  std::vector<DroppedAdjoint> certificate_;
};

} // namespace

/// The location of an adjoint op: the forward op's, under a name that says whose gradient it is.
static Location adjointLoc(Operation *op) {
  return NameLoc::get(StringAttr::get(op->getContext(), "gradient of " + op->getName().stripDialect()), op->getLoc());
}

static func::FuncOp calleeOf(ir::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
}

/// Calls are replaced before the sweep, while no cotangent exists that could refer to their results.
LogicalResult Reverse::prepareCalls() {
  for (Operation *op : llvm::to_vector(activity_.ops()))
    if (auto call = dyn_cast<ir::CallOp>(op))
      if (failed(prepareCall(call)))
        return failure();
  return success();
}

LogicalResult Reverse::prepareCall(ir::CallOp call) {
  func::FuncOp callee = calleeOf(call);
  if (!callee)
    return call.emitOpError("calls @") << call.getCallee() << ", which is no function of this module";
  if (callee->hasAttr(kVjpAttr))
    return success();
  if (callee.isDeclaration())
    return call.emitOpError("calls @") << call.getCallee() << ", which has no body and so no derivative";
  ActiveCall active;
  for (auto [i, operand] : llvm::enumerate(call.getOperands()))
    if (activity_.isActive(operand))
      active.arguments.push_back(i);
  for (auto [i, result] : llvm::enumerate(call.getResults()))
    if (activity_.isActive(result))
      active.results.push_back(i);
  FailureOr<FunctionPair> pair = functionPair(callee, active.arguments, active.results);
  if (failed(pair))
    return failure();
  active.pair = *pair;
  llvm::append_range(certificate_, active.pair.certificate);
  OpBuilder at(call);
  auto forward = ir::CallOp::create(at, call.getLoc(), active.pair.forward.getFunctionType().getResults(),
                                    FlatSymbolRefAttr::get(active.pair.forward.getSymNameAttr()), call.getOperands());
  for (auto [before, after] : llvm::zip(call.getResults(), forward.getResults())) {
    llvm::replace(targets_, Value(before), Value(after));
    llvm::replace(sources_, Value(before), Value(after));
    llvm::replace(seeds_, Value(before), Value(after));
    before.replaceAllUsesWith(after);
  }
  activity_.replace(call, forward);
  calls_[forward] = std::move(active);
  if (options_.replaced)
    options_.replaced(call, forward);
  call.erase();
  return success();
}

ir::Cotangents Reverse::adjointOfCall(ir::CallOp call, const ActiveCall &active, Location loc) {
  FunctionPair pair = active.pair;
  unsigned numResults = call.getNumResults() - llvm::count_if(pair.residuals, [](int64_t r) { return r < 0; });
  SmallVector<Value> operands;
  for (int64_t residual : pair.residuals)
    operands.push_back(residual >= 0 ? call.getOperands()[residual]
                                     : call.getResult(numResults + static_cast<unsigned>(-1 - residual)));
  for (unsigned result : active.results)
    operands.push_back(cotangents_.orZeros(call.getResult(result)));
  auto backward = ir::CallOp::create(b_, loc, pair.backward.getFunctionType().getResults(),
                                     FlatSymbolRefAttr::get(pair.backward.getSymNameAttr()), operands);
  ir::Cotangents adjoint(call.getNumOperands());
  unsigned next = 0;
  for (auto [argument, returned, reason] : llvm::zip(active.arguments, pair.returned, pair.reasons))
    if (returned)
      adjoint[argument] = backward.getResult(next++);
    else
      missing_.push_back({call.getOperand(argument), reason});
  return adjoint;
}

FailureOr<ir::Cotangents> Reverse::adjointByVjp(ir::CallOp call, FlatSymbolRefAttr name, Location loc) {
  auto vjp = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, name);
  if (!vjp)
    return call.emitOpError("names @") << name.getValue() << " as derivative, which is no function of this module";
  func::FuncOp callee = calleeOf(call);
  auto limit = callee->getAttrOfType<IntegerAttr>(kNumResultsAttr);
  unsigned numResults = limit ? limit.getInt() : call.getNumResults();
  SmallVector<Value> operands(call.getOperands());
  llvm::append_range(operands, call.getResults());
  for (Value result : call.getResults().take_front(numResults))
    if (isDifferentiableType(result.getType()))
      operands.push_back(cotangents_.orZeros(result));
  auto backward = ir::CallOp::create(b_, loc, vjp.getFunctionType().getResults(), name, operands);
  ir::Cotangents adjoint(call.getNumOperands());
  auto arguments = vjp->getAttrOfType<DenseI64ArrayAttr>(kArgumentsAttr);
  if (!arguments || arguments.size() != static_cast<int64_t>(backward.getNumResults()))
    return vjp.emitOpError("needs one entry of ") << kArgumentsAttr << " for each of its results";
  for (auto [argument, cotangent] : llvm::zip_equal(arguments.asArrayRef(), backward.getResults()))
    adjoint[argument] = cotangent;
  if (auto reasons = vjp->getAttrOfType<ArrayAttr>(kReasonsAttr))
    for (auto [operand, reason] : llvm::zip(call.getOperands(), reasons.getAsRange<StringAttr>()))
      if (!reason.empty())
        missing_.push_back({operand, reason.str()});
  return adjoint;
}

FailureOr<ir::Cotangents> Reverse::adjointOf(Operation *op) {
  Location loc = adjointLoc(op);
  if (auto call = dyn_cast<ir::CallOp>(op)) {
    if (auto found = calls_.find(op); found != calls_.end())
      return adjointOfCall(call, found->second, loc);
    return adjointByVjp(call, calleeOf(call)->getAttrOfType<FlatSymbolRefAttr>(kVjpAttr), loc);
  }
  auto rule = dyn_cast<ir::Differentiable>(op);
  if (!rule)
    return op->emitOpError("is on the path from a source to the target and has no derivative rule");
  SmallVector<Value> ct;
  for (Value result : op->getResults())
    ct.push_back(cotangents_.orZeros(result));
  FailureOr<ir::Cotangents> adjoint = rule.vjp(b_, loc, ct);
  if (succeeded(adjoint) && adjoint->size() != op->getNumOperands())
    return emitError(op->getLoc()) << "internal error: '" << op->getName() << "' has " << op->getNumOperands()
                                   << " operands, and its derivative rule returned " << adjoint->size() << " cotangents";
  return adjoint;
}

/// Adds the cotangents of the operands that take part, each in its operand's type: two that meet in a sum are then of one type, whatever
/// sizes their rules knew.
LogicalResult Reverse::sweepInto(Operation *op, ArrayRef<Value> adjoint, Location loc) {
  for (auto [i, operand, ct] : llvm::enumerate(op->getOperands(), adjoint)) {
    if (!ct || !activity_.isActive(operand))
      continue;
    FailureOr<Value> conformed = ir::conform(b_, loc, ct, operand);
    if (failed(conformed))
      return emitError(op->getLoc()) << "internal error: the derivative of '" << op->getName() << "' gives operand " << i << ", which is "
                                     << operand.getType() << ", a cotangent of type " << ct.getType();
    cotangents_.add(operand, *conformed, loc);
  }
  return success();
}

/// What a called function says of the operand that the source leads to.
std::string Reverse::whyMissing(Value source) const {
  for (const auto &[operand, reason] : missing_) {
    llvm::SmallDenseSet<Value> seen;
    SmallVector<Value> work{operand};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (value == source)
        return reason;
      if (Operation *op = value.getDefiningOp(); op && seen.insert(value).second)
        work.append(op->operand_begin(), op->operand_end());
    }
  }
  return "no path: the target does not depend on the source";
}

FailureOr<Gradients> Reverse::run() {
  Gradients gradients;
  // The evidence first: nothing has been built or replaced yet.
  certificate_ = activity_.dropped();
  for (Value source : sources_)
    gradients.reasons.push_back(activity_.isActive(source) ? "" : activity_.whyNone(source));
  if (failed(prepareCalls()))
    return failure();
  for (auto [target, seed] : llvm::zip_equal(targets_, seeds_)) {
    if (!activity_.isActive(target))
      continue;
    FailureOr<Value> weight = seed ? ir::conform(b_, loc_, seed, target) : ir::onesLike(b_, loc_, target);
    if (failed(weight))
      return emitError(loc_) << "the seed is " << seed.getType() << ", but its target is " << target.getType();
    cotangents_.add(target, *weight, loc_);
  }
  // Reverse order: every use of a value is seen before its definition, so its cotangent is complete.
  for (Operation *op : llvm::reverse(activity_.ops())) {
    if (llvm::none_of(op->getResults(), [&](Value result) { return cotangents_.lookup(result) != nullptr; }))
      continue;
    FailureOr<ir::Cotangents> adjoint = adjointOf(op);
    if (failed(adjoint) || failed(sweepInto(op, *adjoint, adjointLoc(op))))
      return failure();
  }
  for (auto [source, reason] : llvm::zip_equal(sources_, gradients.reasons)) {
    Value value = reason.empty() ? cotangents_.lookup(source) : Value();
    if (reason.empty() && !value)
      reason = whyMissing(source);
    gradients.values.push_back(value);
  }
  gradients.certificate = std::move(certificate_);
  return gradients;
}

FailureOr<Gradients> reverse(OpBuilder &b, Location loc, ValueRange targets, ValueRange seeds, ValueRange sources,
                             const ReverseOptions &options) {
  return Reverse(b, loc, targets, seeds, sources, options).run();
}

void eraseDead(Block &block, Operation *first) {
  Operation *op = block.mightHaveTerminator() ? block.getTerminator() : block.empty() ? nullptr : &block.back();
  while (op && op != first) {
    Operation *before = op->getPrevNode();
    if (!op->hasTrait<OpTrait::IsTerminator>() && isOpTriviallyDead(op))
      op->erase();
    op = before;
  }
}

} // namespace wg::autodiff
