// The derivative of a loop, which is a loop.
#include "autodiff/Bodies.h"
#include "autodiff/Dependences.h"
#include "autodiff/Writer.h"

#include "ir/Bridge.h"
#include "ir/Build.h"
#include "runtime/Extent.h"
#include "runtime/Shape.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace wg::autodiff {

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
    bool isRow;        ///< scanned, else the same in all turns
    Value value;       ///< the stack, or the invariant
    Value inTurn = {}; ///< what a turn sees of it
  };

  /// How a turn's cotangent of an invariant is made of smaller ones by linear ops, as where turns read parts of it: the
  /// sum over the turns is made of their sums, once.
  struct Parts {
    SmallVector<Value> leaves; ///< in the linear function
    SmallVector<Value> sums;   ///< over the turns: in a turn, then after the loop
  };

  LogicalResult findActive();
  LogicalResult keepResiduals();
  SmallVector<Value> computedOnce(ArrayRef<unsigned> residuals);
  llvm::BitVector variesInTurns(func::FuncOp forward);
  Value carry(Value init);
  Value scan(Value stack);
  Value hold(Value value);
  void scanResiduals();
  void findParts();
  Value assembled(Value value, const IRMapping &sums, DenseMap<Value, Value> &made);
  SmallVector<Value> turn(ArrayRef<Value> given, ArrayRef<unsigned> places, size_t numPlaces);
  void give(Value value, unsigned place);
  void finish(LinearPart &made);
  void reverse(LinearPart &made);
  void forward(LinearPart &made);
  /// Whether there is one for sure.
  bool hasTurns() { return static_cast<int64_t>(op_.getLength()) > 0 && !op_.hasCondition() && !op_.getLimited(); }
  /// Of the linear function's results: the argument that each is the cotangent of.
  Places returnedArguments() const {
    Places list;
    for (auto [argument, has] : llvm::zip_equal(arguments_, pair_.returned))
      if (has)
        list.push_back(argument);
    return list;
  }
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
  func::FuncOp linear_;                    ///< the pair's, or one that returns leaves in the place of some results
  llvm::MapVector<unsigned, Parts> parts_; ///< by argument, of some invariants
  SmallVector<Value> leavesOfTurn_;
  SmallVector<Kept> kept_; ///< by residual of the pair
  /// The linear loop, and its body, while they are written.
  LoopParts loop_;
  std::optional<Writer> writer_;
  SmallVector<Value> returned_;
  Places places_; ///< of what is returned: among the op's operands (reverse) or results (forward)
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
/// one more stacked result of a loop in the place of the op. An error where that would have too many axes or bytes.
LogicalResult LinearLoop::keepResiduals() {
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

  SmallVector<Type> turns; // what is kept of each
  for (unsigned carry : stackedCarries)
    turns.push_back(body_.getArgumentTypes()[carry]);
  for (unsigned extra : stackedResiduals)
    turns.push_back(last->getOperand(numResults + extra).getType());
  for (Type turn : turns) {
    auto tensor = dyn_cast<RankedTensorType>(turn);
    if (!tensor)
      continue;
    if (tensor.getRank() == runtime::kMaxRank)
      return op_.emitOpError("has a derivative that keeps a tensor of ")
             << runtime::kMaxRank << " axes of each turn: stacked, it would have one more than tensors can have";
    RankedTensorType stack = ir::stackOf(turn, static_cast<int64_t>(op_.getLength()));
    if (!ir::isValueType(stack))
      return op_.emitOpError("has a derivative that keeps a tensor of each turn, and stacked ")
             << ir::whyNoValueType(stack);
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
    ir::LoopOp made =
        makeLoop(at, op_.getLoc(),
                 {nameOf(kept), op_.hasCondition() ? op_.bodyNames()[1] : FlatSymbolRefAttr(), op_.getLimit(),
                  op_.getInits(), op_.getXs(), op_.getInvariants(), static_cast<int64_t>(op_.getLength()),
                  op_.getReversed(), static_cast<int64_t>(op_.getCheckpoints())},
                 kept.getResultTypes());
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
  return success();
}

Value LinearLoop::carry(Value init) {
  loop_.inits.push_back(init);
  return writer_->argument(init.getType());
}
Value LinearLoop::scan(Value stack) {
  loop_.xs.push_back(stack);
  return writer_->argument(ir::rowTypeOf(stack.getType()));
}
Value LinearLoop::hold(Value value) {
  loop_.invariants.push_back(value);
  return writer_->argument(value.getType());
}

/// The residuals that are rows, which a turn gets after what else is scanned.
void LinearLoop::scanResiduals() {
  for (Kept &kept : kept_)
    if (kept.isRow)
      kept.inTurn = scan(kept.value);
  // Something says how many turns there are.
  if (loop_.xs.empty() && static_cast<int64_t>(op_.getLength()) < 0 && !op_.hasCondition() && !op_.getLimited())
    scan(op_.getXs()[0]);
}

/// Whether sums over turns go through the op: its result is linear in its operands, and in nothing else.
static bool isSummed(Operation *op) {
  return op && isa<ir::Linear, ir::AddOp>(op) && !isa<ir::BarrierOp>(op) && op->getNumResults() == 1 &&
         llvm::all_of(op->getOperands(), [](Value operand) { return isDifferentiableType(operand.getType()); });
}

static bool isZero(Value value) {
  for (auto broadcast = value.getDefiningOp<ir::BroadcastOp>(); broadcast && broadcast->getNumOperands() == 1;
       broadcast = value.getDefiningOp<ir::BroadcastOp>())
    value = broadcast.getX();
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat && isa<FloatType>(splat.getElementType()) && splat.getSplatValue<APFloat>().isPosZero();
}

static int64_t elementsOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.hasStaticShape() ? type.getNumElements() : INT64_MAX;
}

/// Appends the values of which `value` is made by ops that sums go through: itself, unless these ops put smaller ones
/// into place, and what they read has at most twice the elements. Returns how many elements these have.
static int64_t findLeaves(Value value, SmallVectorImpl<Value> &leaves, bool &areSmaller, int depth = 0) {
  constexpr int kMostDepth = 1000;
  if (isZero(value))
    return 0;
  int64_t own = elementsOf(value), read = 0, sum = 0;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> below;
  bool putsInPlace = false;
  if (isSummed(op) && value.hasOneUse() && depth < kMostDepth)
    for (Value operand : op->getOperands()) {
      read = runtime::saturatingAdd(read, elementsOf(operand));
      sum = runtime::saturatingAdd(sum, findLeaves(operand, below, putsInPlace, depth + 1));
    }
  putsInPlace |= read < own;
  if (below.empty() || !putsInPlace || sum > runtime::saturatingAdd(own, own)) {
    leaves.push_back(value);
    return own;
  }
  areSmaller = true;
  llvm::append_range(leaves, below);
  return sum;
}

/// Of which invariants the cotangents are summed in parts, and the function of a turn that returns these.
void LinearLoop::findParts() {
  Operation *last = linear_.getBody().front().getTerminator();
  SmallVector<unsigned> places;
  for (auto [i, argument] : llvm::enumerate(returnedArguments())) {
    auto place = static_cast<unsigned>(i);
    Value whole = last->getOperand(place);
    Parts parts;
    bool areSmaller = false;
    if (argument < carried_ + scanned_ || findLeaves(whole, parts.leaves, areSmaller) == INT64_MAX || !areSmaller)
      continue;
    parts_.insert({argument, std::move(parts)});
    places.push_back(place);
  }
  if (parts_.empty())
    return;
  IRMapping map;
  auto copy = cast<func::FuncOp>(linear_->clone(map));
  SmallVector<Value> returned;
  for (auto [place, value] : llvm::enumerate(last->getOperands()))
    if (!llvm::is_contained(places, place))
      returned.push_back(map.lookup(value));
  for (auto &[argument, parts] : parts_)
    for (Value leaf : parts.leaves)
      returned.push_back(map.lookup(leaf));
  Operation *end = copy.getBody().front().getTerminator();
  end->setOperands(returned);
  copy.removeResAttrsAttr();
  copy.setFunctionType(FunctionType::get(copy.getContext(), copy.getArgumentTypes(), end->getOperandTypes()));
  copy.setPrivate();
  symbols_.insert(copy);
  eraseDead(copy.getBody().front(), nullptr);
  linear_ = copy;
}

/// What `value` of the linear function is where its leaves are sums.
Value LinearLoop::assembled(Value value, const IRMapping &sums, DenseMap<Value, Value> &made) {
  if (Value sum = sums.lookupOrNull(value))
    return sum;
  if (Value known = made.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, assembled(operand, sums, made));
  return made[value] = request_.b.clone(*op, map)->getResult(0);
}

/// One turn of the linear function: the residuals, then `given`; its results by the places that have one.
SmallVector<Value> LinearLoop::turn(ArrayRef<Value> given, ArrayRef<unsigned> places, size_t numPlaces) {
  SmallVector<Value> taken, byPlace(numPlaces);
  for (const Kept &kept : kept_)
    taken.push_back(kept.inTurn);
  llvm::append_range(taken, given);
  SmallVector<Value> results;
  if (!arguments_.empty())
    results = writer_->call(linear_, taken);
  unsigned next = 0;
  for (auto [place, has] : llvm::zip_equal(places, pair_.returned))
    if (has && !parts_.contains(place))
      byPlace[place] = results[next++];
  leavesOfTurn_.assign(results.begin() + next, results.end());
  return byPlace;
}

/// One more result of a turn, and where the loop's result belongs.
void LinearLoop::give(Value value, unsigned place) {
  returned_.push_back(value);
  places_.push_back(place);
}

/// The linear loop, of as many turns as there were.
void LinearLoop::finish(LinearPart &made) {
  func::FuncOp body = writer_->finish(returned_);
  loop_.body = nameOf(body);
  loop_.limit = op_.hasCondition() ? op_.getTurns() : op_.getLimit();
  loop_.length = static_cast<int64_t>(op_.getLength());
  loop_.reversed = (mode_ == Mode::reverse) != op_.getReversed();
  if (mode_ == Mode::reverse)
    loop_.checkpoints = static_cast<int64_t>(op_.getCheckpoints());
  ir::LoopOp loop = makeLoop(request_.b, loc_, loop_, body.getResultTypes());
  unsigned next = 0;
  for (auto &[argument, parts] : parts_)
    for (Value &sum : parts.sums)
      sum = loop.getFinals()[next++];
  for (auto [place, result] : llvm::zip_equal(places_, loop->getResults().drop_front(next)))
    made.values[place] = result;
  if (parts_.empty())
    return;
  Operation *last = pair_.linear.getBody().front().getTerminator();
  for (auto [i, argument] : llvm::enumerate(returnedArguments()))
    if (auto parts = parts_.find(argument); parts != parts_.end()) {
      IRMapping sums;
      sums.map(parts->second.leaves, parts->second.sums);
      DenseMap<Value, Value> known;
      made.values[operandOf(argument)] = assembled(last->getOperand(static_cast<unsigned>(i)), sums, known);
    }
}

void LinearLoop::reverse(LinearPart &made) {
  // Carried: cotangents of carried values, sums of cotangents of invariants.
  llvm::BitVector isReturned(body_.getNumArguments()), isCarried = passed_;
  for (auto [argument, has] : llvm::zip_equal(arguments_, pair_.returned)) {
    isReturned[argument] = has;
    if (argument < carried_)
      isCarried.set(argument);
  }
  for (unsigned result : results_)
    if (result < carried_)
      isCarried.set(result);
  for (auto &[argument, parts] : parts_)
    for (Value leaf : parts.leaves)
      parts.sums.push_back(carry(zeroOf(request_.b, loc_, leaf.getType())));
  SmallVector<Value> seedIn(body_.getNumResults()), sumIn(numInvariants_);
  for (unsigned i : isCarried.set_bits()) {
    Value seed = request_.seeds[resultOf(i)];
    seedIn[i] = carry(seed ? seed : ir::zerosLike(request_.b, loc_, op_.getFinals()[i]));
  }
  for (unsigned i = 0; i < numInvariants_; ++i)
    if (unsigned argument = carried_ + scanned_ + i; isReturned.test(argument) && !parts_.contains(argument))
      sumIn[i] = carry(ir::zerosLike(request_.b, loc_, op_.getInvariants()[i]));
  for (unsigned result : results_)
    if (result >= carried_)
      seedIn[result] = scan(request_.seeds[resultOf(result)]);
  scanResiduals();
  for (Kept &kept : kept_)
    if (!kept.isRow)
      kept.inTurn = hold(kept.value);

  SmallVector<Value> given;
  for (unsigned result : results_)
    given.push_back(seedIn[result]);
  SmallVector<Value> byArgument = turn(given, arguments_, body_.getNumArguments());
  size_t next = 0;
  for (auto &[argument, parts] : parts_)
    for (Value sum : parts.sums)
      returned_.push_back(ir::AddOp::create(writer_->b, loc_, sum, leavesOfTurn_[next++]));
  for (unsigned i : isCarried.set_bits())
    give(byArgument[i] ? byArgument[i] : ir::zerosLike(writer_->b, loc_, seedIn[i]), operandOf(i));
  for (unsigned i = 0; i < numInvariants_; ++i)
    if (unsigned argument = carried_ + scanned_ + i; sumIn[i])
      give(ir::AddOp::create(writer_->b, loc_, sumIn[i], byArgument[argument]), operandOf(argument));
  for (unsigned argument = carried_; argument < carried_ + scanned_; ++argument)
    if (byArgument[argument])
      give(byArgument[argument], operandOf(argument));
  finish(made);
}

void LinearLoop::forward(LinearPart &made) {
  llvm::BitVector isCarried = passed_;
  for (unsigned argument : arguments_)
    if (argument < carried_)
      isCarried.set(argument);
  for (auto [result, has] : llvm::zip_equal(results_, pair_.returned))
    if (has && result < carried_)
      isCarried.set(result);
  SmallVector<Value> argumentIn(body_.getNumArguments());
  auto seedOf = [&](unsigned argument) { return request_.seeds[operandOf(argument)]; };
  for (unsigned i : isCarried.set_bits())
    argumentIn[i] = carry(seedOf(i) ? seedOf(i) : ir::zerosLike(request_.b, loc_, op_.getInits()[i]));
  for (unsigned argument : arguments_)
    if (argument >= carried_ && argument < carried_ + scanned_)
      argumentIn[argument] = scan(seedOf(argument));
  scanResiduals();
  for (unsigned argument : arguments_)
    if (argument >= carried_ + scanned_)
      argumentIn[argument] = hold(seedOf(argument));
  for (Kept &kept : kept_)
    if (!kept.isRow)
      kept.inTurn = hold(kept.value);

  SmallVector<Value> given;
  for (unsigned argument : arguments_)
    given.push_back(argumentIn[argument]);
  SmallVector<Value> byResult = turn(given, results_, body_.getNumResults());
  for (unsigned i : isCarried.set_bits())
    give(byResult[i] ? byResult[i] : ir::zerosLike(writer_->b, loc_, argumentIn[i]), resultOf(i));
  for (unsigned result = carried_; result < carried_ + numRows_; ++result)
    if (byResult[result])
      give(byResult[result], resultOf(result));
  finish(made);
}

FailureOr<LinearPart> LinearLoop::run() {
  unsigned numResults = op_->getNumResults();
  if (failed(findActive()))
    return failure();
  LinearPart made{{}, std::move(pair_.certificate), op_};
  made.values.resize(mode_ == Mode::reverse ? op_->getNumOperands() : numResults);
  if (passed_.none() && llvm::none_of(pair_.returned, [](bool has) { return has; }))
    return made;
  linear_ = pair_.linear;
  if (!arguments_.empty() && failed(keepResiduals()))
    return failure();
  if (!arguments_.empty() && mode_ == Mode::reverse)
    findParts();
  made.op = op_;
  writer_.emplace(symbols_, body_.getLoc(), body_.getSymName() + (mode_ == Mode::reverse ? "_adjoint" : "_moved"));
  mode_ == Mode::reverse ? reverse(made) : forward(made);
  return made;
}

FailureOr<LinearPart> linearLoop(ir::LoopOp op, Mode mode, LinearRequest &request) {
  return LinearLoop(op, mode, request).run();
}

} // namespace wg::autodiff
