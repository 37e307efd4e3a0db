#include "autodiff/Reverse.h"

#include "autodiff/Bodies.h"
#include "autodiff/Calls.h"
#include "autodiff/Cotangents.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Rules.h"

using namespace mlir;

namespace wg::autodiff {

namespace {

class Reverse {
public:
  Reverse(OpBuilder &b, Location loc, ValueRange targets, ValueRange seeds, ValueRange sources,
          const ReverseOptions &options, Pairs &pairs)
      : b_(b), loc_(loc), options_(options), pairs_(pairs), targets_(targets), sources_(sources), seeds_(seeds),
        activity_(targets, sources, options.isRecorded), cotangents_(b, loc) {
    seeds_.resize(targets_.size());
  }

  FailureOr<Gradients> run();

private:
  LogicalResult prepareCalls();
  ir::CallOp replaceCall(ActiveCall active, bool certify);
  FailureOr<Operation *> withoutZeros(Operation *op);
  FailureOr<ir::Cotangents> adjointOf(Operation *op);
  ir::Cotangents adjointOfCall(const ActiveCall &active, const FunctionPair &pair, Location loc);
  FailureOr<ir::Cotangents> adjointByVjp(ir::CallOp call, Location loc);
  FailureOr<std::pair<Operation *, ir::Cotangents>> adjointOfBodies(Operation *op);
  void follow(Operation *before, Operation *after);
  LogicalResult sweepInto(Operation *op, ArrayRef<Value> adjoint, Location loc);
  std::string whyMissing(Value source) const;

  OpBuilder &b_;
  Location loc_;
  const ReverseOptions &options_;
  Pairs &pairs_;
  SmallVector<Value> targets_, sources_, seeds_;
  Activity activity_;
  Cotangents cotangents_;
  DenseMap<Operation *, std::pair<ActiveCall, FunctionPair>> calls_; ///< of forward functions, and of what they are
  SmallVector<std::pair<Value, std::string>> missing_;               ///< operands of calls without a gradient, and why
  std::vector<DroppedAdjoint> certificate_;
};

} // namespace

/// The location of an adjoint op: the forward op's, under a name that says whose gradient it is.
static Location adjointLoc(Operation *op) {
  return NameLoc::get(StringAttr::get(op->getContext(), "gradient of " + op->getName().stripDialect()), op->getLoc());
}

/// Calls are replaced before the sweep, while no cotangent exists that could refer to their results.
LogicalResult Reverse::prepareCalls() {
  FailureOr<SmallVector<ActiveCall>> calls = pairs_.activeCalls(activity_);
  if (failed(calls) || failed(pairs_.make(*calls)))
    return failure();
  for (ActiveCall &call : *calls)
    replaceCall(std::move(call), /*certify=*/true);
  return success();
}

/// What is known of the results of an op is known of those of what takes its place, which has them first.
void Reverse::follow(Operation *before, Operation *after) {
  for (auto [old, value] : llvm::zip(before->getResults(), after->getResults())) {
    cotangents_.replace(old, value);
    for (auto &[operand, reason] : missing_)
      if (operand == old)
        operand = value;
    llvm::replace(targets_, Value(old), Value(value));
    llvm::replace(sources_, Value(old), Value(value));
    llvm::replace(seeds_, Value(old), Value(value));
  }
  activity_.replace(before, after);
}

ir::CallOp Reverse::replaceCall(ActiveCall active, bool certify) {
  FunctionPair pair = pairs_.take(active.callee, active.arguments, active.results);
  if (certify)
    llvm::append_range(certificate_, pair.certificate);
  Operation *call = active.op;
  const unsigned numResults = active.callee.getNumResults();
  active.op = replaceByForward(active.op, pair.forward, numResults, options_.replaced,
                               [&](Operation *made) { follow(call, made); });
  ir::CallOp forward = active.op;
  calls_[forward] = {std::move(active), std::move(pair)};
  return forward;
}

/// A call to some of whose results no cotangent came after all, as what reads them gives none: its pair is the one of
/// the others. Zeros would run through the slopes of what is not on the path, and zero times infinity is no number.
FailureOr<Operation *> Reverse::withoutZeros(Operation *op) {
  auto found = calls_.find(op);
  if (found == calls_.end())
    return op;
  ActiveCall active = found->second.first;
  llvm::erase_if(active.results, [&](unsigned result) { return !cotangents_.lookup(op->getResult(result)); });
  if (active.results.size() == found->second.first.results.size())
    return op;
  calls_.erase(found);
  if (failed(pairs_.make(active)))
    return failure();
  return replaceCall(std::move(active), /*certify=*/false).getOperation();
}

ir::Cotangents Reverse::adjointOfCall(const ActiveCall &active, const FunctionPair &pair, Location loc) {
  ir::CallOp call = active.op;
  func::FuncOp callee = active.callee, function = pair.linear;
  SmallVector<Value> operands = residualsAt(call, callee.getNumResults(), pair);
  for (unsigned result : active.results)
    operands.push_back(cotangents_.orZeros(call.getResult(result)));
  auto backward = ir::CallOp::create(b_, loc, function.getResultTypes(),
                                     FlatSymbolRefAttr::get(function.getSymNameAttr()), operands);
  ir::Cotangents adjoint(call.getNumOperands());
  unsigned next = 0;
  for (auto [argument, returned, reason] : llvm::zip_equal(active.arguments, pair.returned, pair.reasons))
    if (returned) {
      adjoint[argument] = backward.getResult(next++);
    } else {
      std::string where = ir::whereOf(call.getLoc());
      missing_.push_back({call.getOperand(argument), !StringRef(reason).starts_with("no path")
                                                         ? reason
                                                         : "no path: '" + callee.getSymName().str() + "'" +
                                                               (where.empty() ? where : " (" + where + ")") +
                                                               " computes nothing from it that the target depends on"});
    }
  return adjoint;
}

/// A call of a function that names its derivative. What text may say of that is checked here.
FailureOr<ir::Cotangents> Reverse::adjointByVjp(ir::CallOp call, Location loc) {
  func::FuncOp callee = pairs_.calleeOf(call);
  auto name = callee->getAttrOfType<FlatSymbolRefAttr>(kVjpAttr);
  if (!name)
    return callee.emitOpError("has as ") << kVjpAttr << " " << callee->getAttr(kVjpAttr) << ", which names no function";
  auto limit = callee->getAttrOfType<IntegerAttr>(kNumResultsAttr);
  int64_t numResults =
      limit && limit.getValue().isSignedIntN(64) ? limit.getValue().getSExtValue() : call.getNumResults();
  if (numResults < 0 || numResults > call.getNumResults())
    return callee.emitOpError("has ") << call.getNumResults() << " results, but " << kNumResultsAttr << " is "
                                      << numResults;
  Places results;
  for (auto [i, result] : llvm::enumerate(call.getResults().take_front(numResults)))
    if (isDifferentiableType(result.getType()) && (!options_.derivativeOf || cotangents_.lookup(result)))
      results.push_back(i);
  FailureOr<func::FuncOp> declared =
      options_.derivativeOf ? options_.derivativeOf(call, results) : pairs_.lookup(call, name.getValue());
  if (failed(declared))
    return failure();
  func::FuncOp vjp = *declared;
  if (!vjp)
    return call.emitOpError("names @") << name.getValue() << " as derivative, which is not a function of this module";
  SmallVector<Value> operands(call.getOperands());
  llvm::append_range(operands, call.getResults());
  for (unsigned result : results)
    operands.push_back(cotangents_.orZeros(call.getResult(result)));
  if (TypeRange(vjp.getArgumentTypes()) != ValueRange(operands).getTypes())
    return vjp.emitOpError("is the derivative of @")
           << callee.getSymName()
           << ", and takes its operands, its results and their cotangents: " << ValueRange(operands).getTypes()
           << ", not " << vjp.getArgumentTypes();
  auto arguments = vjp->getAttrOfType<DenseI64ArrayAttr>(kArgumentsAttr);
  if (!arguments || arguments.size() != static_cast<int64_t>(vjp.getNumResults()))
    return vjp.emitOpError("needs one entry of ") << kArgumentsAttr << " for each of its results";
  for (auto [argument, type] : llvm::zip_equal(arguments.asArrayRef(), vjp.getResultTypes()))
    if (argument < 0 || argument >= call.getNumOperands() || call.getOperand(argument).getType() != type)
      return vjp.emitOpError("returns ") << type << " as the cotangent of operand " << argument << " of @"
                                         << callee.getSymName() << ", which has none of that type";
  auto backward =
      ir::CallOp::create(b_, loc, vjp.getResultTypes(), FlatSymbolRefAttr::get(vjp.getSymNameAttr()), operands);
  ir::Cotangents adjoint(call.getNumOperands());
  for (auto [argument, cotangent] : llvm::zip_equal(arguments.asArrayRef(), backward.getResults()))
    adjoint[argument] = cotangent;
  if (auto reasons = vjp->getAttrOfType<ArrayAttr>(kReasonsAttr))
    for (auto [operand, attribute] : llvm::zip(call.getOperands(), reasons))
      if (auto reason = dyn_cast<StringAttr>(attribute); reason && !reason.empty())
        missing_.push_back({operand, reason.str()});
  return adjoint;
}

FailureOr<ir::Cotangents> Reverse::adjointOf(Operation *op) {
  Location loc = adjointLoc(op);
  if (auto call = dyn_cast<ir::CallOp>(op)) {
    if (auto found = calls_.find(op); found != calls_.end())
      return adjointOfCall(found->second.first, found->second.second, loc);
    return adjointByVjp(call, loc);
  }
  return ir::vjp(op, b_, loc, cotangents_.lookup(op->getResult(0)));
}

/// A condition or a loop: what takes its place in the program, and the cotangents of its operands.
FailureOr<std::pair<Operation *, ir::Cotangents>> Reverse::adjointOfBodies(Operation *op) {
  SmallVector<Value> seeds;
  for (Value result : op->getResults())
    seeds.push_back(cotangents_.lookup(result));
  auto told = [&](Operation *before, Operation *after) {
    follow(before, after);
    if (options_.replaced)
      options_.replaced(before, after);
  };
  auto isActive = [&](Value value) { return activity_.isActive(value); };
  LinearRequest request{b_, adjointLoc(op), pairs_, isActive, told, std::move(seeds)};
  FailureOr<LinearPart> made = linearPart(op, Mode::reverse, request);
  if (failed(made))
    return failure();
  llvm::append_range(certificate_, made->certificate);
  for (auto [operand, cotangent] : llvm::zip_equal(made->op->getOperands(), made->values))
    if (!cotangent && activity_.isActive(operand)) {
      std::string where = ir::whereOf(made->op->getLoc());
      missing_.push_back({operand, "no path: the " + made->op->getName().stripDialect().str() +
                                       (where.empty() ? where : " (" + where + ")") +
                                       " computes nothing from it that the target depends on"});
    }
  return std::pair(made->op, ir::Cotangents(made->values));
}

/// Adds the cotangents of the operands that take part, each in its operand's type: two that meet in a sum are then of
/// one type, whatever sizes their rules knew.
LogicalResult Reverse::sweepInto(Operation *op, ArrayRef<Value> adjoint, Location loc) {
  for (auto [i, operand, ct] : llvm::enumerate(op->getOperands(), adjoint)) {
    if (!ct || !activity_.isActive(operand))
      continue;
    FailureOr<Value> conformed = ir::conform(b_, loc, ct, operand);
    if (failed(conformed))
      return emitError(op->getLoc()) << "internal error: the derivative of '" << op->getName() << "' gives operand "
                                     << i << ", which is " << operand.getType() << ", a cotangent of type "
                                     << ct.getType();
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
  SmallVector<Operation *> ops(activity_.ops());
  for (Operation *op : llvm::reverse(ops)) {
    if (llvm::none_of(op->getResults(), [&](Value result) { return cotangents_.lookup(result) != nullptr; }))
      continue;
    if (ir::isControl(op)) {
      auto adjoint = adjointOfBodies(op);
      if (failed(adjoint) || failed(sweepInto(adjoint->first, adjoint->second, adjointLoc(adjoint->first))))
        return failure();
      continue;
    }
    FailureOr<Operation *> ready = withoutZeros(op);
    if (failed(ready))
      return failure();
    FailureOr<ir::Cotangents> adjoint = adjointOf(*ready);
    if (failed(adjoint) || failed(sweepInto(*ready, *adjoint, adjointLoc(*ready))))
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
                             const ReverseOptions &options, Pairs &pairs) {
  return Reverse(b, loc, targets, seeds, sources, options, pairs).run();
}

FailureOr<Gradients> reverse(OpBuilder &b, Location loc, ValueRange targets, ValueRange seeds, ValueRange sources,
                             const ReverseOptions &options) {
  Pairs pairs(Mode::reverse, options.symbols);
  return reverse(b, loc, targets, seeds, sources, options, pairs);
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
