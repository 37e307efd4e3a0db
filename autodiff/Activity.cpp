#include "autodiff/Activity.h"

#include "ir/Bridge.h"
#include "ir/Rules.h"

using namespace mlir;

namespace wg::autodiff {

bool isDifferentiableType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

static std::string nameOf(Operation *op) { return op->getName().stripDialect().str(); }

static std::string placeOf(Operation *op) {
  std::string where = ir::whereOf(op->getLoc());
  return where.empty() ? where : " (" + where + ")";
}

std::string whyBlocked(Operation *op, bool recorded) {
  std::string text = "'" + nameOf(op) + "'" + placeOf(op);
  bool assigns = isa<ir::VersionOp>(op) ||
                 (isa<ir::StopGradientOp>(op) &&
                  llvm::any_of(op->getUsers(), [](Operation *user) { return isa<ir::VersionOp>(user); }));
  if (assigns)
    return "the assignment of a variable" + placeOf(op) + " stops the gradient";
  if (!recorded)
    return text + " was computed while the tape did not record it";
  if (auto blocked = dyn_cast<ir::NotDifferentiable>(op))
    return text + " " + blocked.whyNotDifferentiable().str();
  for (Value result : op->getResults())
    if (!isDifferentiableType(result.getType()))
      return text + " has an integer or bool result";
  return text + " has no derivative rule";
}

bool Activity::passes(Operation *op) const {
  return recorded(op) && !isa<ir::NotDifferentiable>(op) && llvm::any_of(op->getResultTypes(), isDifferentiableType);
}

Activity::Activity(ValueRange targets, ValueRange sources, IsRecorded isRecorded)
    : isRecorded_(isRecorded), sources_(sources) {
  findUseful(targets);
  findVaried(sources);
  for (Operation *op : usefulOps_)
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return isActive(operand); }))
      active_.push_back(op);
  findBlocked(targets);
}

/// Backwards from the targets through ops that pass derivatives on.
void Activity::findUseful(ValueRange targets) {
  SmallVector<Value> work;
  for (Value target : targets)
    if (isDifferentiableType(target.getType()))
      work.push_back(target);
  SmallVector<Operation *> ops;
  llvm::SmallDenseSet<Operation *> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!useful_.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || !passes(op) || !seen.insert(op).second)
      continue;
    ops.push_back(op);
    for (Value operand : op->getOperands())
      if (isDifferentiableType(operand.getType()))
        work.push_back(operand);
  }
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  usefulOps_.insert(ops.begin(), ops.end());
}

/// Forwards from the sources, through the useful ops only: the rest of the program is looked at for the certificate.
void Activity::findVaried(ValueRange sources) {
  for (Value source : sources)
    if (isDifferentiableType(source.getType()))
      varied_.insert(source);
  for (Operation *op : usefulOps_)
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return varied_.contains(operand); }))
      for (Value result : op->getResults())
        if (isDifferentiableType(result.getType()))
          varied_.insert(result);
}

/// Backwards once more, from what feeds an op that stops derivatives.
void Activity::findBlocked(ValueRange targets) {
  SmallVector<std::pair<Value, Operation *>> work;
  auto enter = [&](Operation *op) {
    for (Value operand : op->getOperands())
      work.push_back({operand, op});
  };
  llvm::SmallDenseSet<Operation *> entered;
  for (Value target : targets)
    if (!isDifferentiableType(target.getType()))
      if (Operation *op = target.getDefiningOp(); op && entered.insert(op).second)
        enter(op);
  for (Value value : useful_)
    if (Operation *op = value.getDefiningOp(); op && !passes(op))
      entered.insert(op);
  for (Operation *op : usefulOps_)
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && !isDifferentiableType(operand.getType()))
        entered.insert(maker);
  // In program order, so that the same program gives the same words.
  SmallVector<Operation *> blockers(entered.begin(), entered.end());
  llvm::sort(blockers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : llvm::reverse(blockers))
    enter(op);
  while (!work.empty()) {
    auto [value, blocker] = work.pop_back_val();
    if (useful_.contains(value) || !blockedBy_.try_emplace(value, blocker).second)
      continue;
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        work.push_back({operand, blocker});
  }
}

std::string Activity::whyNone(Value source) const {
  if (!isDifferentiableType(source.getType())) {
    std::string type = runtime::toString(ir::runtimeTypeOf(source.getType()));
    return "integer dtype: the source is " + type + ", and gradients pass through floats only";
  }
  if (Operation *blocker = blockedBy_.lookup(source))
    return "blocked: " + whyBlocked(blocker, recorded(blocker));
  return "no path: the target does not depend on the source";
}

std::vector<DroppedAdjoint> Activity::dropped() const {
  std::vector<DroppedAdjoint> list;
  auto add = [&](Operation *op, unsigned operand, std::string reason) {
    list.push_back({nameOf(op), operand, op->getLoc(), std::move(reason)});
  };
  // Beside the path: operands of active ops that depend on no source.
  for (Operation *op : active_)
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (isDifferentiableType(operand.getType()) && !varied_.contains(operand))
        add(op, i, operand.getDefiningOp<ir::ConstantOp>() ? "not requested: a literal" : "not requested");
  // Off the path: what is computed from the sources and reaches no target, or only behind an op that stops derivatives.
  DenseSet<Value> reached(varied_.begin(), varied_.end());
  SmallVector<Operation *> work;
  DenseSet<Operation *> seen(active_.begin(), active_.end());
  SmallVector<Operation *> beside;
  auto follow = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (seen.insert(user).second && recorded(user) && ir::hasRule(user))
        beside.push_back(user), work.push_back(user);
  };
  for (Value source : sources_)
    follow(source);
  for (Operation *op : active_)
    for (Value result : op->getResults())
      if (varied_.contains(result))
        follow(result);
  while (!work.empty())
    for (Value result : work.pop_back_val()->getResults()) {
      reached.insert(result);
      if (isDifferentiableType(result.getType()))
        follow(result);
    }
  llvm::sort(beside,
             [](Operation *a, Operation *b) { return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b); });
  for (Operation *op : beside)
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (!isDifferentiableType(operand.getType()) || !reached.contains(operand))
        continue;
      Operation *blocker = op->getNumResults() ? blockedBy_.lookup(op->getResult(0)) : nullptr;
      add(op, i, blocker ? "behind " + nameOf(blocker) : "no path to the loss");
    }
  return list;
}

void Activity::replace(Operation *before, Operation *after) {
  for (auto [old, value] : llvm::zip(before->getResults(), after->getResults())) {
    if (useful_.erase(old))
      useful_.insert(value);
    if (varied_.erase(old))
      varied_.insert(value);
    for (Value &source : sources_)
      if (source == old)
        source = value;
  }
  llvm::replace(active_, before, after);
}

} // namespace wg::autodiff
