#include "autodiff/Bodies.h"

#include "autodiff/Writer.h"

#include "ir/Bridge.h"
#include "ir/Build.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::autodiff {

//===- Dependences ------------------------------------------------------------------------------------------------===//

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

//===- cond -------------------------------------------------------------------------------------------------------===//

namespace {
/// A branch on the path of a derivative.
struct Branch {
  func::FuncOp function;
  Places arguments, results; ///< that take part
  FunctionPair pair;         ///< if any does
  SmallVector<unsigned>
      slots; ///< of its residuals that its forward function hands over: among the cond's extra results
  ArrayRef<unsigned> from(Mode mode) const { return mode == Mode::reverse ? results : arguments; }
  ArrayRef<unsigned> to(Mode mode) const { return mode == Mode::reverse ? arguments : results; }
};
} // namespace

/// The branches and their pairs.
static FailureOr<std::vector<Branch>> branchesOf(ir::CondOp op, Pairs &pairs, const llvm::BitVector &varied,
                                                 const llvm::BitVector &wanted) {
  std::vector<Branch> branches;
  Dependences dependences(pairs);
  for (FlatSymbolRefAttr name : op.bodyNames()) {
    Branch &branch = branches.emplace_back();
    branch.function = pairs.lookup(op, name.getValue());
    if (failed(ir::checkCallee(op, name, branch.function)) || failed(pairs.check(branch.function)))
      return failure();
    llvm::BitVector read(varied.size());
    for (auto [i, bits] : llvm::enumerate(dependences.of(branch.function)))
      if (wanted.test(i) && bits.anyCommon(varied)) {
        branch.results.push_back(i);
        read |= bits;
      }
    for (unsigned argument : read.set_bits())
      if (varied.test(argument))
        branch.arguments.push_back(argument);
    if (branch.arguments.empty())
      continue;
    if (failed(pairs.make(branch.function, branch.arguments, branch.results)))
      return failure();
    branch.pair = pairs.take(branch.function, branch.arguments, branch.results);
  }
  return branches;
}

/// Residuals of one type share results of the forward cond, as one branch runs. Nothing if one has an open size: the
/// other branches would not know how large a result is to be.
static std::optional<SmallVector<Type>> assignSlots(MutableArrayRef<Branch> branches, unsigned numResults) {
  SmallVector<Type> types;
  for (Branch &branch : branches) {
    if (branch.arguments.empty())
      continue;
    llvm::SmallDenseSet<unsigned> taken;
    for (Type type : branch.pair.forward.getResultTypes().drop_front(numResults)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return std::nullopt;
      unsigned slot = 0;
      while (slot < types.size() && (types[slot] != type || taken.contains(slot)))
        ++slot;
      if (slot == types.size())
        types.push_back(type);
      taken.insert(slot);
      branch.slots.push_back(slot);
    }
  }
  return types;
}

/// Puts a cond in the place of `op` that returns the residuals as well.
static ir::CondOp keepResiduals(ir::CondOp op, ArrayRef<Branch> branches, ArrayRef<Type> slotTypes,
                                LinearRequest &request) {
  if (slotTypes.empty())
    return op;
  SymbolTable &symbols = request.pairs.symbolsOf(op);
  unsigned numResults = op->getNumResults();
  SmallVector<Attribute> names;
  for (const Branch &branch : branches) {
    func::FuncOp function = branch.function;
    Writer writer(symbols, function.getLoc(), function.getSymName() + "_kept");
    SmallVector<Value> inputs = writer.arguments(op.getInputs().getTypes());
    SmallVector<Value> all = writer.call(branch.arguments.empty() ? function : branch.pair.forward, inputs);
    SmallVector<Value> results(all.begin(), all.begin() + numResults), slots(slotTypes.size());
    for (auto [slot, residual] : llvm::zip(branch.slots, ArrayRef(all).drop_front(numResults)))
      slots[slot] = residual;
    for (auto [slot, type] : llvm::zip_equal(slots, slotTypes))
      results.push_back(slot ? slot : zeroOf(writer.b, function.getLoc(), type));
    names.push_back(nameOf(writer.finish(results)));
  }
  OpBuilder at(op);
  SmallVector<Type> types(op->getResultTypes());
  llvm::append_range(types, slotTypes);
  auto forward = ir::CondOp::create(at, op.getLoc(), types, op.getSelector(), at.getArrayAttr(names), op.getInputs());
  request.replace(op, forward);
  return forward;
}

FailureOr<LinearPart> linearPart(ir::CondOp op, Mode mode, LinearRequest &request) {
  Location loc = request.loc;
  SymbolTable &symbols = request.pairs.symbolsOf(op);
  bool reverse = mode == Mode::reverse;
  func::FuncOp first = request.pairs.lookup(op, op.bodyNames()[0].getValue());
  unsigned numInputs = op.getInputs().size(), numResults = first.getNumResults();
  llvm::BitVector varied(numInputs), wanted(numResults);
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    varied[i] =
        reverse ? isDifferentiableType(input.getType()) && request.isActive(input) : request.seeds[1 + i] != nullptr;
  for (unsigned i = 0; i < numResults; ++i)
    wanted[i] = reverse ? request.seeds[i] != nullptr : isDifferentiableType(op->getResult(i).getType());
  FailureOr<std::vector<Branch>> branches = branchesOf(op, request.pairs, varied, wanted);
  if (failed(branches))
    return failure();

  LinearPart made{{}, {}, op};
  made.values.resize(reverse ? op->getNumOperands() : numResults);
  llvm::BitVector returned(reverse ? numInputs : numResults);
  for (Branch &branch : *branches) {
    llvm::append_range(made.certificate, branch.pair.certificate);
    for (auto [place, has] : llvm::zip(branch.to(mode), branch.pair.returned))
      if (has)
        returned.set(place);
  }
  if (returned.none())
    return made;
  std::optional<SmallVector<Type>> slotTypes = assignSlots(*branches, numResults);
  bool again = !slotTypes;
  if (!again)
    made.op = op = keepResiduals(op, *branches, *slotTypes, request);

  // The linear cond takes what the branches took, the residuals, and the seeds.
  const llvm::BitVector &seeded = reverse ? wanted : varied;
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, again ? ResultRange(op->getResults().take_front(0))
                                     : ResultRange(op->getResults().take_back(slotTypes->size())));
  for (unsigned place : seeded.set_bits())
    operands.push_back(request.seeds[reverse ? place : 1 + place]);
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (unsigned place : returned.set_bits())
    types.push_back((reverse ? op.getInputs()[place] : Value(op->getResult(place))).getType());
  for (Branch &branch : *branches) {
    Writer writer(symbols, branch.function.getLoc(), branch.function.getSymName() + (reverse ? "_adjoint" : "_moved"));
    SmallVector<Value> arguments = writer.arguments(ValueRange(operands).getTypes());
    ArrayRef<Value> inputs = ArrayRef(arguments).take_front(numInputs),
                    rest = ArrayRef(arguments).drop_front(numInputs);
    SmallVector<Value> values(returned.size()), results;
    if (!branch.arguments.empty()) {
      SmallVector<Value> kept;
      if (again)
        kept = SmallVector<Value>(ArrayRef(writer.call(branch.pair.forward, inputs)).drop_front(numResults));
      for (unsigned slot : branch.slots)
        if (!again)
          kept.push_back(rest[slot]);
      SmallVector<Value> bySeed(seeded.size()), taken;
      for (auto [i, place] : llvm::enumerate(seeded.set_bits()))
        bySeed[place] = rest[(again ? 0 : slotTypes->size()) + i];
      for (int64_t residual : branch.pair.residuals)
        taken.push_back(residual < 0 ? kept[static_cast<unsigned>(-1 - residual)] : inputs[residual]);
      for (unsigned place : branch.from(mode))
        taken.push_back(bySeed[place]);
      SmallVector<Value> linear = writer.call(branch.pair.linear, taken);
      unsigned next = 0;
      for (auto [place, has] : llvm::zip_equal(branch.to(mode), branch.pair.returned))
        if (has)
          values[place] = linear[next++];
    }
    SmallVector<Value> primal; // for the sizes of zeros that are not known
    for (auto [i, place] : llvm::enumerate(returned.set_bits())) {
      Value value = values[place];
      if (!value && reverse)
        value = ir::zerosLike(writer.b, loc, inputs[place]);
      if (!value && !reverse && cast<RankedTensorType>(types[i]).hasStaticShape())
        value = zeroOf(writer.b, loc, types[i]);
      if (!value) {
        if (primal.empty())
          primal = writer.call(branch.function, inputs);
        value = ir::zerosLike(writer.b, loc, primal[place]);
      }
      results.push_back(value);
    }
    names.push_back(nameOf(writer.finish(results)));
  }
  auto linear = ir::CondOp::create(request.b, loc, types, op.getSelector(), request.b.getArrayAttr(names), operands);
  for (auto [place, value] : llvm::zip_equal(returned.set_bits(), linear.getResults()))
    made.values[reverse ? 1 + place : place] = value;
  return made;
}

//===- loop -------------------------------------------------------------------------------------------------------===//

namespace {

/// A loop on the path of a derivative. Places among the body's arguments are those of carried values, rows, invariants;
/// among its results those of carried values and rows.
class LinearLoop {
public:
  LinearLoop(ir::LoopOp op, Mode mode, LinearRequest &request)
      : op_(op), mode_(mode), request_(request), loc_(request.loc), symbols_(request.pairs.symbolsOf(op)),
        carried_(op.getCarried()), scanned_(op.getScanned()), numInvariants_(op.getInvariants().size()),
        limit_(op.getLimited()) {}
  FailureOr<LinearPart> run();

private:
  /// A residual, as the linear loop gets it.
  struct Kept {
    bool isRow;  ///< scanned, else the same in all turns
    Value value; ///< the stack, or the invariant
  };

  LogicalResult findActive();
  void keepResiduals();
  SmallVector<Value> computedOnce(ArrayRef<unsigned> residuals);
  llvm::BitVector variesInTurns(func::FuncOp forward);
  ir::LoopOp make(func::FuncOp body, ArrayRef<Value> inits, SmallVector<Value> xs, SmallVector<Value> invariants);
  void reverse(LinearPart &made);
  void forward(LinearPart &made);
  /// Whether there is one for sure.
  bool hasTurns() { return static_cast<int64_t>(op_.getLength()) > 0 && !op_.hasCondition() && !op_.getLimited(); }
  unsigned operandOf(unsigned argument) const { return limit_ + argument; }
  /// Among the op's results.
  unsigned resultOf(unsigned result) { return result < carried_ ? result : result + op_.hasCondition(); }

  ir::LoopOp op_;
  Mode mode_;
  LinearRequest &request_;
  Location loc_;
  SymbolTable &symbols_;
  unsigned carried_, scanned_, numInvariants_, limit_;
  func::FuncOp body_;
  llvm::BitVector passed_; ///< carried values whose derivative passes the loop where it has no turn
  unsigned numRows_ = 0;   ///< results of the body that are stacked
  Places arguments_, results_;
  FunctionPair pair_;
  SmallVector<Kept> kept_; ///< by residual of the pair
};

} // namespace

/// Which places take part: a fixpoint over what is carried.
LogicalResult LinearLoop::findActive() {
  FlatSymbolRefAttr name = op_.bodyNames()[0];
  body_ = request_.pairs.lookup(op_, name.getValue());
  if (failed(ir::checkCallee(op_, name, body_)) || failed(request_.pairs.check(body_)))
    return failure();
  Dependences dependences(request_.pairs);
  const SmallVector<llvm::BitVector> &depends = dependences.of(body_);
  unsigned numResults = body_.getNumResults();
  numRows_ = numResults - carried_;
  llvm::BitVector varied(body_.getNumArguments()), wanted(numResults);
  for (unsigned i = 0; i < varied.size(); ++i) {
    Value operand = op_->getOperand(operandOf(i));
    varied[i] = mode_ == Mode::reverse ? isDifferentiableType(operand.getType()) && request_.isActive(operand)
                                       : request_.seeds[operandOf(i)] != nullptr;
  }
  for (unsigned i = 0; i < numResults; ++i)
    wanted[i] = mode_ == Mode::reverse ? request_.seeds[resultOf(i)] != nullptr
                                       : isDifferentiableType(body_.getResultTypes()[i]);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < carried_; ++i)
      if (!varied.test(i) && depends[i].anyCommon(varied))
        varied.set(i), changed = true;
    for (unsigned i = 0; i < numResults; ++i)
      if (wanted.test(i))
        for (unsigned argument : depends[i].set_bits())
          if (argument < carried_ && !wanted.test(argument))
            wanted.set(argument), changed = true;
  }
  passed_.resize(carried_);
  for (unsigned i = 0; i < carried_; ++i)
    passed_[i] = !hasTurns() && wanted.test(i) && varied.test(i);
  llvm::BitVector read(varied.size());
  for (unsigned i = 0; i < numResults; ++i)
    if (wanted.test(i) && depends[i].anyCommon(varied)) {
      results_.push_back(i);
      read |= depends[i];
    }
  for (unsigned argument : read.set_bits())
    if (varied.test(argument))
      arguments_.push_back(argument);
  if (arguments_.empty())
    return success();
  if (failed(request_.pairs.make(body_, arguments_, results_)))
    return failure();
  pair_ = request_.pairs.take(body_, arguments_, results_);
  return success();
}

/// Of the forward function's residuals: those that differ from turn to turn.
llvm::BitVector LinearLoop::variesInTurns(func::FuncOp forward) {
  Block &block = forward.getBody().front();
  DenseSet<Value> varies(block.args_begin(), block.args_begin() + carried_ + scanned_);
  // What may fail is not done where no turn would do it.
  for (Operation &op : block.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return varies.contains(operand); }) ||
        (!hasTurns() && ir::mayFail(&op)))
      varies.insert(op.result_begin(), op.result_end());
  ValueRange residuals = block.getTerminator()->getOperands().drop_front(body_.getNumResults());
  llvm::BitVector bits(residuals.size());
  for (auto [i, residual] : llvm::enumerate(residuals))
    bits[i] = varies.contains(residual);
  return bits;
}

/// These residuals of the forward function, which depend on invariants alone: by a function of these, called before the
/// linear loop.
SmallVector<Value> LinearLoop::computedOnce(ArrayRef<unsigned> residuals) {
  if (residuals.empty())
    return {};
  Block &block = pair_.forward.getBody().front();
  Operation *last = block.getTerminator();
  SmallVector<Value> targets;
  for (unsigned residual : residuals)
    targets.push_back(last->getOperand(body_.getNumResults() + residual));
  Writer writer(symbols_, body_.getLoc(), body_.getSymName() + "_once");
  IRMapping map;
  SmallVector<Value> arguments = writer.arguments(op_.getInvariants().getTypes());
  for (auto [argument, value] : llvm::zip_equal(block.getArguments().take_back(numInvariants_), arguments))
    map.map(Value(argument), value);
  DenseSet<Operation *> needed;
  SmallVector<Value> work(targets);
  while (!work.empty())
    if (Operation *op = work.pop_back_val().getDefiningOp(); op && needed.insert(op).second)
      llvm::append_range(work, op->getOperands());
  for (Operation &op : block)
    if (needed.contains(&op))
      writer.b.clone(op, map);
  for (Value &target : targets)
    target = map.lookup(target);
  func::FuncOp function = writer.finish(targets);
  return SmallVector<Value>(
      ir::CallOp::create(request_.b, loc_, function.getResultTypes(), nameOf(function), op_.getInvariants())
          .getResults());
}

/// Finds or makes a value for each residual: a scanned tensor, an invariant, a stacked result; what is neither becomes
/// one more stacked result of a loop in the place of the op.
void LinearLoop::keepResiduals() {
  unsigned numResults = body_.getNumResults();
  Block &block = pair_.forward.getBody().front();
  Operation *last = block.getTerminator();
  llvm::BitVector varies = variesInTurns(pair_.forward);
  SmallVector<unsigned> once, stackedCarries, stackedResiduals;
  auto placeIn = [](SmallVectorImpl<unsigned> &list, unsigned value) {
    auto at = llvm::find(list, value);
    unsigned place = static_cast<unsigned>(at - list.begin());
    if (at == list.end())
      list.push_back(value);
    return place;
  };
  struct Source {
    enum { x, invariant, row, carry, residual, once } kind;
    unsigned place;
  };
  SmallVector<Source> sources;
  for (int64_t residual : pair_.residuals) {
    if (residual >= 0) {
      auto argument = static_cast<unsigned>(residual);
      sources.push_back(argument < carried_              ? Source{Source::carry, placeIn(stackedCarries, argument)}
                        : argument < carried_ + scanned_ ? Source{Source::x, argument - carried_}
                                                         : Source{Source::invariant, argument - carried_ - scanned_});
      continue;
    }
    auto extra = static_cast<unsigned>(-1 - residual);
    if (!varies.test(extra)) {
      sources.push_back({Source::once, placeIn(once, extra)});
      continue;
    }
    Value value = last->getOperand(numResults + extra);
    SmallVector<Value> rows(last->getOperands().slice(carried_, numRows_));
    auto at = static_cast<unsigned>(llvm::find(rows, value) - rows.begin());
    sources.push_back(at < numRows_ ? Source{Source::row, at}
                                    : Source{Source::residual, placeIn(stackedResiduals, extra)});
  }

  unsigned numStacked = stackedCarries.size() + stackedResiduals.size();
  if (numStacked > 0) {
    Writer writer(symbols_, body_.getLoc(), body_.getSymName() + "_kept");
    SmallVector<Value> arguments = writer.arguments(body_.getArgumentTypes());
    SmallVector<Value> all = writer.call(pair_.forward, arguments);
    SmallVector<Value> returned(all.begin(), all.begin() + numResults);
    for (unsigned carry : stackedCarries)
      returned.push_back(arguments[carry]);
    for (unsigned residual : stackedResiduals)
      returned.push_back(all[numResults + residual]);
    func::FuncOp kept = writer.finish(returned);
    OpBuilder at(op_);
    ir::LoopOp made = makeLoop(at, op_.getLoc(), op_.bodyNames(), kept, op_.getLimit(), op_.getInits(), op_.getXs(),
                               op_.getInvariants(), static_cast<int64_t>(op_.getLength()), op_.getReversed());
    request_.replace(op_, made);
    op_ = made;
  }
  SmallVector<Value> computed = computedOnce(once);
  ValueRange rows = op_.getStacked(), extra = rows.drop_front(numRows_);
  for (Source source : sources)
    switch (source.kind) {
    case Source::x: kept_.push_back({true, op_.getXs()[source.place]}); break;
    case Source::invariant: kept_.push_back({false, op_.getInvariants()[source.place]}); break;
    case Source::row: kept_.push_back({true, rows[source.place]}); break;
    case Source::carry: kept_.push_back({true, extra[source.place]}); break;
    case Source::residual: kept_.push_back({true, extra[stackedCarries.size() + source.place]}); break;
    case Source::once: kept_.push_back({false, computed[source.place]}); break;
    }
}

/// The linear loop, of as many turns as there were.
ir::LoopOp LinearLoop::make(func::FuncOp body, ArrayRef<Value> inits, SmallVector<Value> xs,
                            SmallVector<Value> invariants) {
  Value limit = op_.hasCondition() ? op_.getTurns() : op_.getLimit();
  bool reversed = (mode_ == Mode::reverse) != op_.getReversed();
  FlatSymbolRefAttr name = nameOf(body);
  return makeLoop(request_.b, loc_, name, body, limit, inits, xs, invariants, static_cast<int64_t>(op_.getLength()),
                  reversed);
}

void LinearLoop::reverse(LinearPart &made) {
  // Carried: cotangents of carried values, sums of cotangents of invariants.
  llvm::BitVector isArgument(body_.getNumArguments()), isReturned(body_.getNumArguments()),
      isResult(body_.getNumResults()), isCarried = passed_;
  for (auto [argument, has] : llvm::zip_equal(arguments_, pair_.returned)) {
    isArgument.set(argument);
    isReturned[argument] = has;
    if (argument < carried_)
      isCarried.set(argument);
  }
  for (unsigned result : results_) {
    isResult.set(result);
    if (result < carried_)
      isCarried.set(result);
  }
  Writer writer(symbols_, body_.getLoc(), body_.getSymName() + "_adjoint");
  SmallVector<Value> inits, xs, invariants;
  SmallVector<Value> carryIn(carried_), sumIn(numInvariants_), rowIn(numRows_), residualIn;
  for (unsigned i : isCarried.set_bits()) {
    Value seed = request_.seeds[resultOf(i)];
    inits.push_back(seed ? seed : ir::zerosLike(request_.b, loc_, op_.getFinals()[i]));
    carryIn[i] = writer.argument(inits.back().getType());
  }
  for (unsigned i = 0; i < numInvariants_; ++i)
    if (isReturned.test(carried_ + scanned_ + i)) {
      inits.push_back(ir::zerosLike(request_.b, loc_, op_.getInvariants()[i]));
      sumIn[i] = writer.argument(inits.back().getType());
    }
  auto scan = [&](Value stack) {
    xs.push_back(stack);
    auto type = cast<RankedTensorType>(stack.getType());
    return writer.argument(RankedTensorType::get(type.getShape().drop_front(), type.getElementType()));
  };
  for (unsigned i = 0; i < numRows_; ++i)
    if (isResult.test(carried_ + i))
      rowIn[i] = scan(request_.seeds[resultOf(carried_ + i)]);
  residualIn.resize(kept_.size());
  for (auto [kept, in] : llvm::zip_equal(kept_, residualIn))
    if (kept.isRow)
      in = scan(kept.value);
  if (xs.empty() && static_cast<int64_t>(op_.getLength()) < 0 && !op_.hasCondition() && !op_.getLimited())
    scan(op_.getXs()[0]); // says how many turns there are
  for (auto [kept, in] : llvm::zip_equal(kept_, residualIn))
    if (!kept.isRow) {
      invariants.push_back(kept.value);
      in = writer.argument(kept.value.getType());
    }

  SmallVector<Value> taken(residualIn);
  for (unsigned result : results_)
    taken.push_back(result < carried_ ? carryIn[result] : rowIn[result - carried_]);
  SmallVector<Value> back, byArgument(body_.getNumArguments());
  if (!arguments_.empty())
    back = writer.call(pair_.linear, taken);
  unsigned next = 0;
  for (unsigned argument : arguments_)
    if (isReturned.test(argument))
      byArgument[argument] = back[next++];
  SmallVector<Value> returned;
  for (unsigned i : isCarried.set_bits())
    returned.push_back(byArgument[i] ? byArgument[i] : ir::zerosLike(writer.b, loc_, carryIn[i]));
  for (unsigned i = 0; i < numInvariants_; ++i)
    if (sumIn[i])
      returned.push_back(ir::AddOp::create(writer.b, loc_, sumIn[i], byArgument[carried_ + scanned_ + i]));
  for (unsigned i = 0; i < scanned_; ++i)
    if (byArgument[carried_ + i])
      returned.push_back(byArgument[carried_ + i]);
  ir::LoopOp loop = make(writer.finish(returned), inits, xs, invariants);
  next = 0;
  for (unsigned i : isCarried.set_bits())
    made.values[operandOf(i)] = loop->getResult(next++);
  for (unsigned i = 0; i < numInvariants_; ++i)
    if (sumIn[i])
      made.values[operandOf(carried_ + scanned_ + i)] = loop->getResult(next++);
  for (unsigned i = 0; i < scanned_; ++i)
    if (byArgument[carried_ + i])
      made.values[operandOf(carried_ + i)] = loop->getResult(next++);
}

void LinearLoop::forward(LinearPart &made) {
  llvm::BitVector isCarried = passed_;
  for (unsigned argument : arguments_)
    if (argument < carried_)
      isCarried.set(argument);
  for (auto [result, has] : llvm::zip_equal(results_, pair_.returned))
    if (has && result < carried_)
      isCarried.set(result);
  Writer writer(symbols_, body_.getLoc(), body_.getSymName() + "_moved");
  SmallVector<Value> inits, xs, invariants, argumentIn(body_.getNumArguments()), residualIn(kept_.size());
  auto seedOf = [&](unsigned argument) { return request_.seeds[operandOf(argument)]; };
  for (unsigned i : isCarried.set_bits()) {
    inits.push_back(seedOf(i) ? seedOf(i) : ir::zerosLike(request_.b, loc_, op_.getInits()[i]));
    argumentIn[i] = writer.argument(inits.back().getType());
  }
  auto scan = [&](Value stack) {
    xs.push_back(stack);
    auto type = cast<RankedTensorType>(stack.getType());
    return writer.argument(RankedTensorType::get(type.getShape().drop_front(), type.getElementType()));
  };
  for (unsigned argument : arguments_)
    if (argument >= carried_ && argument < carried_ + scanned_)
      argumentIn[argument] = scan(seedOf(argument));
  for (auto [kept, in] : llvm::zip_equal(kept_, residualIn))
    if (kept.isRow)
      in = scan(kept.value);
  if (xs.empty() && static_cast<int64_t>(op_.getLength()) < 0 && !op_.hasCondition() && !op_.getLimited())
    scan(op_.getXs()[0]);
  auto hold = [&](Value value) {
    invariants.push_back(value);
    return writer.argument(value.getType());
  };
  for (unsigned argument : arguments_)
    if (argument >= carried_ + scanned_)
      argumentIn[argument] = hold(seedOf(argument));
  for (auto [kept, in] : llvm::zip_equal(kept_, residualIn))
    if (!kept.isRow)
      in = hold(kept.value);

  SmallVector<Value> taken(residualIn);
  for (unsigned argument : arguments_)
    taken.push_back(argumentIn[argument]);
  SmallVector<Value> moved, byResult(body_.getNumResults());
  if (!arguments_.empty())
    moved = writer.call(pair_.linear, taken);
  unsigned next = 0;
  for (auto [result, has] : llvm::zip_equal(results_, pair_.returned))
    if (has)
      byResult[result] = moved[next++];
  SmallVector<Value> returned;
  for (unsigned i : isCarried.set_bits())
    returned.push_back(byResult[i] ? byResult[i] : ir::zerosLike(writer.b, loc_, argumentIn[i]));
  for (unsigned i = 0; i < numRows_; ++i)
    if (byResult[carried_ + i])
      returned.push_back(byResult[carried_ + i]);
  ir::LoopOp loop = make(writer.finish(returned), inits, xs, invariants);
  next = 0;
  for (unsigned i : isCarried.set_bits())
    made.values[resultOf(i)] = loop->getResult(next++);
  for (unsigned i = 0; i < numRows_; ++i)
    if (byResult[carried_ + i])
      made.values[resultOf(carried_ + i)] = loop->getResult(next++);
}

FailureOr<LinearPart> LinearLoop::run() {
  unsigned numResults = op_->getNumResults();
  if (failed(findActive()))
    return failure();
  LinearPart made{{}, std::move(pair_.certificate), op_};
  made.values.resize(mode_ == Mode::reverse ? op_->getNumOperands() : numResults);
  if (passed_.none() && llvm::none_of(pair_.returned, [](bool has) { return has; }))
    return made;
  if (!arguments_.empty())
    keepResiduals();
  made.op = op_;
  mode_ == Mode::reverse ? reverse(made) : forward(made);
  return made;
}

FailureOr<LinearPart> linearPart(ir::LoopOp op, Mode mode, LinearRequest &request) {
  return LinearLoop(op, mode, request).run();
}

} // namespace wg::autodiff
