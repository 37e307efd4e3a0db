#include "autodiff/Forward.h"

#include "autodiff/Bodies.h"
#include "autodiff/Calls.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Rules.h"

using namespace mlir;

namespace wg::autodiff {

//===- One op ---------------------------------------------------------------------------------------------------===//

namespace {

/// A sum of tangents of `result`, each in its type.
class Sum {
public:
  Sum(OpBuilder &b, Location loc, Operation *op) : b_(b), loc_(loc), op_(op) {}
  LogicalResult add(Value term) {
    FailureOr<Value> conformed = ir::conform(b_, loc_, term, op_->getResult(0));
    if (failed(conformed))
      return emitError(op_->getLoc()) << "internal error: the derivative of '" << op_->getName()
                                      << "' gives its result, which is " << op_->getResult(0).getType()
                                      << ", a tangent of type " << term.getType();
    sum_ = sum_ ? ir::AddOp::create(b_, loc_, sum_, *conformed).getResult() : *conformed;
    return success();
  }
  Value get() const { return sum_; }

private:
  OpBuilder &b_;
  Location loc_;
  Operation *op_;
  Value sum_;
};

} // namespace

/// The op on other operands of the same types.
static Value appliedTo(Operation *op, OpBuilder &b, Location loc, ArrayRef<Value> operands) {
  Operation *copy = b.clone(*op);
  copy->setLoc(loc);
  copy->setOperands(operands);
  return copy->getResult(0);
}

/// The transpose of a vjp, which is linear in its cotangent: the derivative of it by the cotangent, applied to the
/// tangents. What hung on the cotangent that stood in is dead then.
static FailureOr<Value> jvpByVjp(Operation *op, OpBuilder &b, Location loc, ArrayRef<Value> tangents) {
  Value standIn = ir::zerosLike(b, loc, op->getResult(0));
  FailureOr<ir::Cotangents> cotangents = ir::vjp(op, b, loc, standIn);
  if (failed(cotangents))
    return failure();
  SmallVector<Value> targets, seeds;
  for (auto [cotangent, tangent] : llvm::zip_equal(*cotangents, tangents))
    if (cotangent && tangent) {
      targets.push_back(cotangent);
      seeds.push_back(tangent);
    }
  FailureOr<Gradients> transposed = reverse(b, loc, targets, seeds, standIn);
  if (failed(transposed))
    return failure();
  return transposed->values[0];
}

FailureOr<Value> jvp(Operation *op, OpBuilder &b, Location loc, ArrayRef<Value> tangents) {
  Sum sum(b, loc, op);
  if (auto diagonal = dyn_cast<ir::Diagonal>(op)) {
    ir::Slopes slopes = diagonal.slopes(ir::Operands(op->getOperands(), b, loc), ir::Expr(op->getResult(0), b, loc));
    for (auto [slope, tangent] : llvm::zip(slopes, tangents))
      if (slope && tangent && failed(sum.add(slope(ir::Expr(tangent, b, loc)))))
        return failure();
  } else if (isa<ir::Linear>(op)) {
    SmallVector<Value> operands;
    for (auto [operand, tangent] : llvm::zip_equal(op->getOperands(), tangents))
      operands.push_back(tangent                                   ? tangent
                         : isDifferentiableType(operand.getType()) ? ir::zerosLike(b, loc, operand)
                                                                   : operand);
    if (failed(sum.add(appliedTo(op, b, loc, operands))))
      return failure();
  } else if (isa<ir::Bilinear>(op)) {
    for (auto [i, tangent] : llvm::enumerate(tangents)) {
      if (!tangent)
        continue;
      SmallVector<Value> operands(op->getOperands());
      operands[i] = tangent;
      if (failed(sum.add(appliedTo(op, b, loc, operands))))
        return failure();
    }
  } else {
    FailureOr<Value> tangent = jvpByVjp(op, b, loc, tangents);
    if (failed(tangent) || (*tangent && failed(sum.add(*tangent))))
      return failure();
  }
  return sum.get();
}

//===- A program ------------------------------------------------------------------------------------------------===//

namespace {

class Forward {
public:
  Forward(OpBuilder &b, Location loc, ValueRange targets, ValueRange sources, ValueRange tangents,
          const ForwardOptions &options, Pairs &pairs)
      : b_(b), loc_(loc), options_(options), pairs_(pairs), targets_(targets), sources_(sources), given_(tangents),
        activity_(targets, sources, options.isRecorded) {}

  FailureOr<Tangents> run();

private:
  /// What moves by itself and by what it is computed from moves by both.
  void add(Value primal, Value tangent) {
    Value &sum = tangents_[primal];
    sum = sum ? ir::AddOp::create(b_, loc_, sum, tangent).getResult() : tangent;
  }
  LogicalResult step(Operation *op);
  LogicalResult stepCall(ActiveCall active);
  LogicalResult stepByTangent(ir::CallOp call, Location loc);
  LogicalResult stepByRule(ir::CallOp call, func::FuncOp callee, ArrayRef<unsigned> arguments, Location loc);
  LogicalResult stepBodies(Operation *op, SmallVector<Value> tangents);
  void follow(Operation *before, Operation *after);
  std::string whyNone(Value target) const;

  OpBuilder &b_;
  Location loc_;
  const ForwardOptions &options_;
  Pairs &pairs_;
  SmallVector<Value> targets_, sources_, given_;
  Activity activity_;
  DenseMap<Value, Value> tangents_;
  DenseMap<Value, std::string> missing_; ///< results of calls without a tangent, and why
};

} // namespace

/// The location of a tangent op: the op's, under a name that says whose tangent it is.
static Location tangentLoc(Operation *op) {
  return NameLoc::get(StringAttr::get(op->getContext(), "tangent of " + op->getName().stripDialect()), op->getLoc());
}

LogicalResult Forward::step(Operation *op) {
  SmallVector<Value> tangents;
  for (Value operand : op->getOperands())
    tangents.push_back(activity_.isActive(operand) ? tangents_.lookup(operand) : Value());
  if (llvm::none_of(tangents, [](Value tangent) { return tangent != nullptr; }))
    return success();
  if (auto call = dyn_cast<ir::CallOp>(op))
    return stepByTangent(call, tangentLoc(op));
  if (isa<ir::WithBodies>(op))
    return stepBodies(op, tangents);
  FailureOr<Value> tangent = jvp(op, b_, tangentLoc(op), tangents);
  if (succeeded(tangent) && *tangent)
    add(op->getResult(0), *tangent);
  return success(succeeded(tangent));
}

/// What is known of the results of an op is known of those of what takes its place, which has them first.
void Forward::follow(Operation *before, Operation *after) {
  for (auto [old, value] : llvm::zip(before->getResults(), after->getResults())) {
    llvm::replace(targets_, Value(old), Value(value));
    llvm::replace(sources_, Value(old), Value(value));
    llvm::replace(given_, Value(old), Value(value));
    for (auto &[primal, tangent] : tangents_)
      if (tangent == old)
        tangent = value;
    if (Value tangent = tangents_.lookup(old)) {
      tangents_.erase(old);
      tangents_[value] = tangent;
    }
  }
  activity_.replace(before, after);
}

/// A condition or a loop.
LogicalResult Forward::stepBodies(Operation *op, SmallVector<Value> tangents) {
  auto told = [&](Operation *before, Operation *after) {
    follow(before, after);
    if (options_.replaced)
      options_.replaced(before, after);
  };
  auto isActive = [&](Value value) { return activity_.isActive(value); };
  LinearRequest request{b_, tangentLoc(op), pairs_, isActive, told, std::move(tangents)};
  FailureOr<LinearPart> made = linearPart(op, Mode::forward, request);
  if (failed(made))
    return failure();
  for (auto [result, tangent] : llvm::zip(made->op->getResults(), made->values))
    if (tangent)
      add(result, tangent);
  return success();
}

/// A call becomes one of its forward function, in its place, and one of the linear part.
LogicalResult Forward::stepCall(ActiveCall active) {
  llvm::erase_if(active.arguments,
                 [&](unsigned argument) { return !tangents_.lookup(active.op.getOperand(argument)); });
  if (active.arguments.empty())
    return success();
  if (failed(pairs_.make(active)))
    return failure();
  FunctionPair pair = pairs_.take(active.callee, active.arguments, active.results);
  Operation *call = active.op;
  const unsigned numResults = active.callee.getNumResults();
  active.op = replaceByForward(active.op, pair.forward, numResults, options_.replaced,
                               [&](Operation *made) { follow(call, made); });
  SmallVector<Value> operands = residualsAt(active.op, active.callee.getNumResults(), pair);
  for (unsigned argument : active.arguments)
    operands.push_back(tangents_.lookup(active.op.getOperand(argument)));
  func::FuncOp function = pair.linear;
  auto linear = ir::CallOp::create(b_, tangentLoc(active.op), function.getResultTypes(),
                                   FlatSymbolRefAttr::get(function.getSymNameAttr()), operands);
  unsigned next = 0;
  for (auto [result, returned, reason] : llvm::zip_equal(active.results, pair.returned, pair.reasons))
    if (returned)
      add(active.op.getResult(result), linear.getResult(next++));
    else
      missing_[active.op.getResult(result)] = reason;
  return success();
}

/// A call of a function that names its derivative and so is not looked into.
LogicalResult Forward::stepByTangent(ir::CallOp call, Location loc) {
  Places arguments, results;
  SmallVector<Value> operands(call.getOperands());
  llvm::append_range(operands, call.getResults());
  for (auto [i, operand] : llvm::enumerate(call.getOperands()))
    if (Value tangent = activity_.isActive(operand) ? tangents_.lookup(operand) : Value()) {
      arguments.push_back(i);
      operands.push_back(tangent);
    }
  for (auto [i, result] : llvm::enumerate(call.getResults()))
    if (activity_.isActive(result))
      results.push_back(i);
  func::FuncOp callee = pairs_.calleeOf(call);
  if (!options_.tangentOf && callee->hasAttr(ir::kJvpAttr))
    return stepByRule(call, callee, arguments, loc);
  if (!options_.tangentOf) {
    InFlightDiagnostic diagnostic = call.emitOpError("calls @")
                                    << call.getCallee()
                                    << ", which names its derivative for reverse mode and none for forward mode";
    diagnostic.attachNote() << "try: reverse mode (vjp, gradient)";
    return diagnostic;
  }
  FailureOr<DeclaredTangent> declared = options_.tangentOf(call, arguments, results);
  if (failed(declared))
    return failure();
  func::FuncOp function = declared->function;
  auto tangents = ir::CallOp::create(b_, loc, function.getResultTypes(),
                                     FlatSymbolRefAttr::get(function.getSymNameAttr()), operands);
  for (auto [result, tangent] : llvm::zip_equal(declared->results, tangents.getResults()))
    add(call.getResult(result), tangent);
  return success();
}

/// A call of a function that states its tangents, or lets its derivative be transposed.
LogicalResult Forward::stepByRule(ir::CallOp call, func::FuncOp callee, ArrayRef<unsigned> arguments, Location loc) {
  auto name = callee->getAttrOfType<FlatSymbolRefAttr>(ir::kJvpAttr);
  bool transposes = !name;
  if (transposes)
    name = callee->getAttrOfType<FlatSymbolRefAttr>(kVjpAttr);
  func::FuncOp rule = name ? pairs_.lookup(call, name.getValue()) : func::FuncOp();
  auto places = rule ? rule->getAttrOfType<DenseI64ArrayAttr>(kArgumentsAttr) : DenseI64ArrayAttr();
  SmallVector<Value> operands(call.getOperands()), floats;
  llvm::append_range(operands, call.getResults());
  llvm::copy_if(call.getResults(), std::back_inserter(floats),
                [](Value result) { return isDifferentiableType(result.getType()); });
  auto fits = [&] {
    if (!places || llvm::any_of(places.asArrayRef(), [&](int64_t place) {
          return place < 0 || place >= static_cast<int64_t>(call.getNumOperands());
        }))
      return false;
    SmallVector<Type> listed;
    for (int64_t place : places.asArrayRef())
      listed.push_back(call.getOperand(static_cast<unsigned>(place)).getType());
    SmallVector<Type> taken(ValueRange(operands).getTypes());
    llvm::append_range(taken, transposes ? TypeRange(ValueRange(floats)) : TypeRange(listed));
    return TypeRange(rule.getArgumentTypes()) == TypeRange(taken) &&
           TypeRange(rule.getResultTypes()) == (transposes ? TypeRange(listed) : TypeRange(ValueRange(floats)));
  };
  if (!fits())
    return callee.emitOpError("names ") << name << " as its derivative, which takes its operands, its results and "
                                        << (transposes ? "their cotangents" : "tangents of the operands it lists");
  auto tangentAt = [&](int64_t place) {
    return llvm::is_contained(arguments, static_cast<unsigned>(place))
               ? tangents_.lookup(call.getOperand(static_cast<unsigned>(place)))
               : Value();
  };
  if (!transposes) {
    for (int64_t place : places.asArrayRef()) {
      Value tangent = tangentAt(place);
      operands.push_back(tangent ? tangent : ir::zerosLike(b_, loc, call.getOperand(static_cast<unsigned>(place))));
    }
    auto made =
        ir::CallOp::create(b_, loc, rule.getResultTypes(), FlatSymbolRefAttr::get(rule.getSymNameAttr()), operands);
    for (auto [result, tangent] : llvm::zip_equal(floats, made.getResults()))
      add(result, tangent);
    return success();
  }
  // The vjp is linear in its cotangents: its derivative by them, applied to the tangents.
  SmallVector<Value> standIns, targets, seeds;
  for (Value result : floats)
    standIns.push_back(ir::zerosLike(b_, loc, result));
  llvm::append_range(operands, standIns);
  auto made =
      ir::CallOp::create(b_, loc, rule.getResultTypes(), FlatSymbolRefAttr::get(rule.getSymNameAttr()), operands);
  for (auto [place, cotangent] : llvm::zip_equal(places.asArrayRef(), made.getResults()))
    if (Value tangent = tangentAt(place)) {
      targets.push_back(cotangent);
      seeds.push_back(tangent);
    }
  ReverseOptions options;
  options.symbols = &pairs_.symbolsOf(call);
  FailureOr<Gradients> transposed = reverse(b_, loc, targets, seeds, standIns, options);
  if (failed(transposed))
    return failure();
  for (auto [result, tangent, reason] : llvm::zip_equal(floats, transposed->values, transposed->reasons)) {
    if (tangent) {
      add(result, tangent);
    } else if (StringRef(reason).starts_with("blocked")) {
      InFlightDiagnostic diagnostic =
          emitError(call.getLoc()) << callee.getSymName() << ": forward mode transposes the vjp, which is " << reason;
      diagnostic.attachNote() << "try: give it a jvp";
      return diagnostic;
    }
  }
  return success();
}

/// Why a target has no tangent: what stops derivatives on the way to it from a source, or that there is no way.
std::string Forward::whyNone(Value target) const {
  if (!isDifferentiableType(target.getType()))
    return "integer dtype: the target is " + runtime::toString(ir::runtimeTypeOf(target.getType())) +
           ", and tangents pass through floats only";
  // Backwards from the target to what a source reaches; the first op on the way that passes nothing on.
  DenseSet<Value> seen;
  SmallVector<std::pair<Value, Operation *>> work{{target, nullptr}};
  while (!work.empty()) {
    auto [value, blocker] = work.pop_back_val();
    if (auto known = missing_.find(value); known != missing_.end())
      return known->second;
    if (blocker && (tangents_.count(value) || llvm::is_contained(sources_, value)))
      return "blocked: " + whyBlocked(blocker, !options_.isRecorded || options_.isRecorded(blocker));
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    bool passes = (!options_.isRecorded || options_.isRecorded(op)) && !isa<ir::NotDifferentiable>(op) &&
                  llvm::any_of(op->getResultTypes(), isDifferentiableType);
    for (Value operand : op->getOperands())
      work.push_back({operand, blocker || (passes && isDifferentiableType(operand.getType())) ? blocker : op});
  }
  return "no path: the target does not depend on the source";
}

FailureOr<Tangents> Forward::run() {
  FailureOr<SmallVector<ActiveCall>> calls = pairs_.activeCalls(activity_);
  if (failed(calls))
    return failure();
  DenseMap<Operation *, ActiveCall> callees;
  for (ActiveCall &call : *calls)
    callees[call.op] = call;
  for (auto [source, tangent] : llvm::zip_equal(sources_, given_)) {
    if (!tangent || !isDifferentiableType(source.getType()))
      continue;
    FailureOr<Value> conformed = ir::conform(b_, loc_, tangent, source);
    if (failed(conformed))
      return emitError(loc_) << "the tangent is " << tangent.getType() << ", but its source is " << source.getType();
    add(source, *conformed);
  }
  SmallVector<Operation *> ops(activity_.ops());
  for (Operation *op : ops) {
    auto call = callees.find(op);
    if (failed(call != callees.end() ? stepCall(call->second) : step(op)))
      return failure();
  }
  Tangents made;
  for (Value target : targets_) {
    made.values.push_back(isDifferentiableType(target.getType()) ? tangents_.lookup(target) : Value());
    made.reasons.push_back(made.values.back() ? "" : whyNone(target));
  }
  return made;
}

FailureOr<Tangents> forward(OpBuilder &b, Location loc, ValueRange targets, ValueRange sources, ValueRange tangents,
                            const ForwardOptions &options, Pairs &pairs) {
  return Forward(b, loc, targets, sources, tangents, options, pairs).run();
}

FailureOr<Tangents> forward(OpBuilder &b, Location loc, ValueRange targets, ValueRange sources, ValueRange tangents,
                            const ForwardOptions &options) {
  Pairs pairs(Mode::forward, options.symbols);
  return forward(b, loc, targets, sources, tangents, options, pairs);
}

} // namespace wg::autodiff
