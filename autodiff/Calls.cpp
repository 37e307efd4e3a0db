// The derivative of a call: the callee split into a forward function that also returns residuals and a backward
// function that reads them. Both are ordinary functions, so the split works at any order.
//
//   func @f(%x) { %y = wg.tanh %x  return %y }
//     ->  func @f_forward(%x) { %y = wg.tanh %x  return %y, %y }
//         func @f_backward(%y, %ct) { ... return %dx }
//
// and on @f: wg.pairs = [{arguments = [0], results = [0], forward = @f_forward, backward = @f_backward, ...}]
//
// One that says wg.recompute keeps its arguments, and its backward function calls f_forward.
#include "autodiff/Calls.h"

#include "autodiff/Forward.h"
#include "autodiff/Writer.h"
#include "ir/Calls.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace wg::autodiff {

//===- The attribute --------------------------------------------------------------------------------------------===//

static DenseI64ArrayAttr attrOf(OpBuilder &b, ArrayRef<unsigned> places) {
  return b.getDenseI64ArrayAttr(SmallVector<int64_t>(places.begin(), places.end()));
}

/// Under which key the linear part hangs: a pair has one of the two.
static StringRef keyOf(Mode mode) { return mode == Mode::reverse ? "backward" : "tangent"; }
static Mode other(Mode mode) { return mode == Mode::reverse ? Mode::forward : Mode::reverse; }

static void attach(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results, Mode mode,
                   FunctionPair &pair) {
  OpBuilder b(function);
  SmallVector<Attribute> pairs, reasons;
  // In place of one for the same arguments, results and mode, which did not fit.
  if (auto before = function->getAttrOfType<ArrayAttr>(ir::kPairsAttr))
    for (Attribute entry : before)
      if (auto fields = dyn_cast<DictionaryAttr>(entry))
        if (fields.get("arguments") != attrOf(b, arguments) || fields.get("results") != attrOf(b, results) ||
            fields.contains(keyOf(other(mode))))
          pairs.push_back(entry);
  for (const std::string &reason : pair.reasons)
    reasons.push_back(b.getStringAttr(reason));
  pairs.push_back(b.getDictionaryAttr({
      b.getNamedAttr("arguments", attrOf(b, arguments)),
      b.getNamedAttr("results", attrOf(b, results)),
      b.getNamedAttr("forward", FlatSymbolRefAttr::get(pair.forward.getSymNameAttr())),
      b.getNamedAttr(keyOf(mode), FlatSymbolRefAttr::get(pair.linear.getSymNameAttr())),
      b.getNamedAttr("residuals", b.getDenseI64ArrayAttr(pair.residuals)),
      b.getNamedAttr("returned", b.getDenseBoolArrayAttr(pair.returned)),
      b.getNamedAttr("reasons", b.getArrayAttr(reasons)),
  }));
  function->setAttr(ir::kPairsAttr, b.getArrayAttr(pairs));
}

/// Whether a pair, as text may have it, is one of `function`: every place is there and every type fits.
static bool fits(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results, Mode mode,
                 const FunctionPair &pair) {
  func::FuncOp forward = pair.forward, linear = pair.linear;
  size_t derivatives = (mode == Mode::reverse ? arguments : results).size();
  if (!forward || !linear || forward.isDeclaration() || linear.isDeclaration() || pair.returned.size() != derivatives ||
      pair.reasons.size() != derivatives)
    return false;
  ArrayRef<Type> inputs = function.getArgumentTypes(), outputs = function.getResultTypes();
  ArrayRef<Type> all = forward.getResultTypes();
  if (forward.getArgumentTypes() != inputs || all.take_front(outputs.size()) != outputs)
    return false;
  SmallVector<Type> taken, given;
  for (int64_t residual : pair.residuals) {
    uint64_t place = residual >= 0 ? residual : outputs.size() + static_cast<uint64_t>(-1 - residual);
    if (place >= (residual >= 0 ? inputs : all).size())
      return false;
    taken.push_back((residual >= 0 ? inputs : all)[place]);
  }
  bool reverse = mode == Mode::reverse;
  for (unsigned place : reverse ? results : arguments)
    taken.push_back((reverse ? outputs : inputs)[place]);
  for (auto [place, returned] : llvm::zip_equal(reverse ? arguments : results, pair.returned))
    if (returned)
      given.push_back((reverse ? inputs : outputs)[place]);
  return linear.getArgumentTypes() == ArrayRef<Type>(taken) && linear.getResultTypes() == ArrayRef<Type>(given);
}

/// The pair of these arguments and results as it hangs on the function, if one does that fits it.
static std::optional<FunctionPair> attached(func::FuncOp function, ArrayRef<unsigned> arguments,
                                            ArrayRef<unsigned> results, Mode mode, const SymbolTable &symbols) {
  auto pairs = function->getAttrOfType<ArrayAttr>(ir::kPairsAttr);
  if (!pairs)
    return std::nullopt;
  OpBuilder b(function.getContext());
  for (Attribute entry : pairs) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    if (!fields || fields.get("arguments") != attrOf(b, arguments) || fields.get("results") != attrOf(b, results))
      continue;
    auto forward = fields.getAs<FlatSymbolRefAttr>("forward"), linear = fields.getAs<FlatSymbolRefAttr>(keyOf(mode));
    auto residuals = fields.getAs<DenseI64ArrayAttr>("residuals");
    auto returned = fields.getAs<DenseBoolArrayAttr>("returned");
    auto reasons = fields.getAs<ArrayAttr>("reasons");
    if (!forward || !linear || !residuals || !returned || !reasons || !llvm::all_of(reasons, llvm::IsaPred<StringAttr>))
      continue;
    FunctionPair pair{symbols.lookup<func::FuncOp>(forward.getAttr()),
                      symbols.lookup<func::FuncOp>(linear.getAttr()),
                      {},
                      {},
                      {},
                      {}};
    llvm::append_range(pair.residuals, residuals.asArrayRef());
    llvm::append_range(pair.returned, returned.asArrayRef());
    for (StringAttr reason : reasons.getAsRange<StringAttr>())
      pair.reasons.push_back(reason.str());
    if (fits(function, arguments, results, mode, pair))
      return pair;
  }
  return std::nullopt;
}

//===- Splitting a function -------------------------------------------------------------------------------------===//

static std::string pairName(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  std::string name = function.getSymName().str() + "_by";
  for (unsigned argument : arguments)
    name += "_" + std::to_string(argument);
  name += "_of";
  for (unsigned result : results)
    name += "_" + std::to_string(result);
  return name;
}

/// Whether an op of the forward part is done again in the linear function instead of handing its result over.
static bool isRepeated(Operation *op) {
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<ir::DimOp, ir::SizeOp>(op));
}

namespace {

/// Moves the ops after `marker` out of a function into a new one, and finds what they read from before it.
class Split {
public:
  Split(func::FuncOp whole, Operation *marker, ArrayRef<BlockArgument> seeds)
      : whole_(whole), marker_(marker), seeds_(seeds) {}

  /// Returns the new function; `residuals` become arguments of it, in front of the seeds.
  func::FuncOp makeLinear(StringRef name, ArrayRef<Value> derivatives);
  ArrayRef<Value> residuals() const { return residuals_.getArrayRef(); }

private:
  bool isLinear(Operation *op) const {
    return op && op->getBlock() == marker_->getBlock() && marker_->isBeforeInBlock(op);
  }
  void need(Value value);

  func::FuncOp whole_;
  Operation *marker_;
  ArrayRef<BlockArgument> seeds_;
  llvm::SetVector<Value> residuals_;
  llvm::SetVector<Operation *> repeated_;
};

} // namespace

void Split::need(Value value) {
  Operation *op = value.getDefiningOp();
  if (isLinear(op) || llvm::is_contained(seeds_, value))
    return;
  if (!isRepeated(op)) {
    residuals_.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    need(operand);
  repeated_.insert(op);
}

func::FuncOp Split::makeLinear(StringRef name, ArrayRef<Value> derivatives) {
  Block *block = marker_->getBlock();
  SmallVector<Operation *> ops;
  for (Operation *op = marker_->getNextNode(); op != block->getTerminator(); op = op->getNextNode())
    ops.push_back(op);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      need(operand);
  for (Value derivative : derivatives)
    need(derivative);

  SmallVector<Type> inputs, outputs;
  for (Value residual : residuals_)
    inputs.push_back(residual.getType());
  for (BlockArgument seed : seeds_)
    inputs.push_back(seed.getType());
  for (Value derivative : derivatives)
    outputs.push_back(derivative.getType());
  OpBuilder b(whole_);
  b.setInsertionPointAfter(whole_);
  auto linear = func::FuncOp::create(b, whole_.getLoc(), name, b.getFunctionType(inputs, outputs));
  linear.setPrivate();
  Block *body = linear.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping map;
  for (auto [i, residual] : llvm::enumerate(residuals_))
    map.map(residual, body->getArgument(i));
  for (auto [i, seed] : llvm::enumerate(seeds_))
    map.map(Value(seed), Value(body->getArgument(residuals_.size() + i)));
  for (Operation *op : repeated_)
    b.clone(*op, map);
  for (Operation *op : ops)
    b.clone(*op, map);
  SmallVector<Value> returned;
  for (Value derivative : derivatives)
    returned.push_back(map.lookup(derivative));
  func::ReturnOp::create(b, whole_.getLoc(), returned);
  return linear;
}

/// The pair of a function whose calls have theirs. The names of both are free in `symbols`, whatever else is there.
static FailureOr<FunctionPair> split(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results,
                                     Mode mode, SymbolTable &symbols, Pairs &pairs) {
  // Work on a copy: differentiate it as a whole, then cut it in two.
  const bool isReverse = mode == Mode::reverse;
  std::string name = pairName(function, arguments, results);
  OpBuilder b(function);
  b.setInsertionPointAfter(function);
  auto forward = cast<func::FuncOp>(b.clone(*function));
  forward.setSymName(name + (isReverse ? "_forward" : "_linearized"));
  symbols.insert(forward);
  forward.setPrivate();
  ir::forgetDerived(forward);
  forward->removeAttr(ir::kRecomputeAttr);
  forward.removeArgAttrsAttr();
  forward.removeResAttrsAttr();
  Block *block = &forward.getBody().front();
  Operation *terminator = block->getTerminator();
  SmallVector<Value> targets, seeds, sources;
  SmallVector<BlockArgument> seedArguments;
  unsigned numArguments = block->getNumArguments();
  for (unsigned argument : arguments)
    sources.push_back(block->getArgument(argument));
  for (unsigned result : results)
    targets.push_back(terminator->getOperand(result));
  for (Value seeded : isReverse ? targets : sources) {
    seedArguments.push_back(block->addArgument(seeded.getType(), function.getLoc()));
    seeds.push_back(seedArguments.back());
  }
  b.setInsertionPoint(terminator);
  auto marker = arith::ConstantIndexOp::create(b, function.getLoc(), 0);
  FailureOr<Gradients> derivatives = isReverse
                                         ? autodiff::reverse(b, function.getLoc(), targets, seeds, sources, {}, pairs)
                                         : autodiff::forward(b, function.getLoc(), targets, sources, seeds, {}, pairs);
  if (failed(derivatives)) {
    symbols.erase(forward);
    return failure();
  }

  FunctionPair pair{forward, {}, {}, {}, std::move(derivatives->reasons), std::move(derivatives->certificate)};
  SmallVector<Value> values;
  for (Value value : derivatives->values) {
    pair.returned.push_back(value != nullptr);
    if (value)
      values.push_back(value);
  }
  // A value that only an unread derivative reads is not kept: the terminator holds those that are read while the rest
  // is erased.
  SmallVector<Value> primal(terminator->getOperands());
  terminator->insertOperands(terminator->getNumOperands(), values);
  eraseDead(*block, marker);
  Split split(forward, marker, seedArguments);
  pair.linear = split.makeLinear(name + (isReverse ? "_backward" : "_tangent"), values);
  symbols.insert(pair.linear);

  SmallVector<Value> returned = primal;
  for (Value residual : split.residuals()) {
    auto argument = dyn_cast<BlockArgument>(residual);
    if (argument && argument.getArgNumber() < numArguments) {
      pair.residuals.push_back(argument.getArgNumber());
    } else {
      pair.residuals.push_back(-1 - static_cast<int64_t>(returned.size() - primal.size()));
      returned.push_back(residual);
    }
  }
  terminator->setOperands(returned);
  eraseDead(*block, marker);
  marker.erase();
  block->eraseArguments(numArguments, seedArguments.size());
  forward.setFunctionType(b.getFunctionType(block->getArgumentTypes(), ValueRange(returned).getTypes()));
  return pair;
}

/// The pair of a function that keeps its arguments alone: the linear part runs `pair.forward` again, on arguments that
/// are there once the cotangents are.
///
///   func @f_again(%x, %ct) {
///     %1 = wg.barrier %x after %ct  %y, %r = call @f_forward(%1)  return call @f_backward(%r, %ct) }
static FunctionPair recomputed(func::FuncOp function, FunctionPair pair, SymbolTable &symbols) {
  Location loc = function.getLoc();
  OpBuilder at(function);
  at.setInsertionPointAfter(function);
  auto forward = cast<func::FuncOp>(at.clone(*function));
  forward.setPrivate();
  ir::forgetDerived(forward);
  forward.removeArgAttrsAttr();
  forward.removeResAttrsAttr();
  symbols.insert(forward);
  Writer writer(symbols, loc, function.getSymName() + "_again");
  SmallVector<Value> arguments = writer.arguments(function.getArgumentTypes()), again;
  SmallVector<Value> cotangents = writer.arguments(pair.linear.getArgumentTypes().drop_front(pair.residuals.size()));
  Value last = cotangents.front();
  if (cotangents.size() > 1)
    last = ir::BarrierOp::create(writer.b, loc, last, ArrayRef(cotangents).drop_front());
  for (Value argument : arguments)
    again.push_back(isa<RankedTensorType>(argument.getType())
                        ? ir::BarrierOp::create(writer.b, loc, argument, last).getResult()
                        : argument);
  SmallVector<Value> results = writer.call(pair.forward, again), taken;
  for (int64_t residual : pair.residuals)
    taken.push_back(residual >= 0 ? again[residual]
                                  : results[function.getNumResults() + static_cast<unsigned>(-1 - residual)]);
  llvm::append_range(taken, cotangents);
  pair.linear = writer.finish(writer.call(pair.linear, taken));
  pair.forward = forward;
  pair.residuals = llvm::to_vector(llvm::seq<int64_t>(0, function.getNumArguments()));
  return pair;
}

ir::CallOp replaceByForward(ir::CallOp call, func::FuncOp forward, unsigned numResults,
                            function_ref<void(Operation *before, Operation *after)> told,
                            function_ref<void(Operation *made)> here) {
  OpBuilder at(call);
  auto made = ir::CallOp::create(at, call.getLoc(), forward.getFunctionType().getResults(),
                                 FlatSymbolRefAttr::get(forward.getSymNameAttr()), call.getOperands());
  // What is called may be a forward function already: nothing reads the residuals behind its results.
  for (auto [before, after] : llvm::zip(call.getResults().take_front(numResults), made.getResults()))
    before.replaceAllUsesWith(after);
  here(made);
  if (told)
    told(call, made);
  call.erase();
  return made;
}

SmallVector<Value> residualsAt(ir::CallOp forward, unsigned numResults, const FunctionPair &pair) {
  SmallVector<Value> values;
  for (int64_t residual : pair.residuals)
    values.push_back(residual >= 0 ? forward.getOperands()[residual]
                                   : forward.getResult(numResults + static_cast<unsigned>(-1 - residual)));
  return values;
}

//===- All pairs of a derivative ----------------------------------------------------------------------------------===//

SymbolTable &Callees::symbolsOf(Operation *from) {
  if (!symbols_) {
    own_ = std::make_unique<SymbolTable>(SymbolTable::getNearestSymbolTable(from));
    symbols_ = own_.get();
  }
  return *symbols_;
}

Pairs::Known *Pairs::find(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  auto &known = known_[function];
  for (const auto &each : known)
    if (ArrayRef(each->arguments) == arguments && ArrayRef(each->results) == results)
      return each.get();
  std::optional<FunctionPair> pair = attached(function, arguments, results, mode_, symbolsOf(function));
  if (!pair)
    return nullptr;
  known.push_back(std::make_unique<Known>(Known{Places(arguments), Places(results), std::move(*pair)}));
  return known.back().get();
}

FunctionPair Pairs::take(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  Known *known = find(function, arguments, results);
  FunctionPair pair = known->pair;
  known->pair.certificate.clear();
  return pair;
}

FailureOr<SmallVector<ActiveCall>> Pairs::activeCalls(const Activity &activity) {
  SmallVector<ActiveCall> list;
  for (Operation *op : activity.ops()) {
    auto call = dyn_cast<ir::CallOp>(op);
    if (!call)
      continue;
    func::FuncOp callee = calleeOf(call);
    if (failed(ir::checkCallee(call, callee)))
      return failure();
    if (auto reason = callee->getAttrOfType<StringAttr>(ir::kPreventAttr)) {
      emitError(call.getLoc()) << "prevent_gradient: " << reason.getValue();
      return failure();
    }
    if (callee->hasAttr(kVjpAttr))
      continue;
    if (callee.isDeclaration())
      return call.emitOpError("calls @") << call.getCallee() << ", which has no body and so no derivative";
    ActiveCall &active = list.emplace_back(ActiveCall{call, callee, {}, {}});
    for (auto [i, operand] : llvm::enumerate(call.getOperands()))
      if (activity.isActive(operand))
        active.arguments.push_back(i);
    for (auto [i, result] : llvm::enumerate(call.getResults()))
      if (activity.isActive(result))
        active.results.push_back(i);
  }
  return list;
}

/// The calls on the path from some arguments of a function to some of its results.
static FailureOr<SmallVector<ActiveCall>> callsIn(func::FuncOp function, ArrayRef<unsigned> arguments,
                                                  ArrayRef<unsigned> results, Pairs &pairs) {
  Block &body = function.getBody().front();
  SmallVector<Value> targets, sources;
  for (unsigned argument : arguments)
    sources.push_back(body.getArgument(argument));
  for (unsigned result : results)
    targets.push_back(body.getTerminator()->getOperand(result));
  return pairs.activeCalls(Activity(targets, sources, nullptr));
}

LogicalResult Callees::check(func::FuncOp function) {
  if (checked_.contains(function))
    return success();
  FailureOr<SmallVector<func::FuncOp>> called = ir::calleesFirst(function, symbolsOf(function));
  if (failed(called))
    return failure();
  checked_.insert(called->begin(), called->end());
  return success();
}

LogicalResult Pairs::makeOne(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  FailureOr<FunctionPair> pair = split(function, arguments, results, mode_, symbolsOf(function), *this);
  if (failed(pair))
    return failure();
  if (mode_ == Mode::reverse && function->hasAttr(ir::kRecomputeAttr))
    pair = recomputed(function, std::move(*pair), symbolsOf(function));
  attach(function, arguments, results, mode_, *pair);
  for (func::FuncOp part : {pair->forward, pair->linear})
    size_ +=
        static_cast<int64_t>(llvm::range_size(part.getBody().front()) + part.getNumArguments() + part.getNumResults());
  known_[function].push_back(std::make_unique<Known>(Known{Places(arguments), Places(results), std::move(*pair)}));
  return success();
}

LogicalResult Pairs::make(ArrayRef<ActiveCall> calls) {
  /// A function whose calls get their pairs, before it gets its own; at first the calls without a function around them.
  struct Visit {
    func::FuncOp function;
    Places arguments, results;
    SmallVector<ActiveCall> calls;
    size_t next = 0;
  };
  for (const ActiveCall &call : calls)
    if (failed(check(call.callee)))
      return failure();
  std::vector<Visit> path; // explicit: calls may nest deeper than a thread's stack
  path.push_back({{}, {}, {}, SmallVector<ActiveCall>(calls), 0});
  while (true) {
    Visit &visit = path.back();
    if (visit.next < visit.calls.size()) {
      ActiveCall call = visit.calls[visit.next++];
      if (find(call.callee, call.arguments, call.results))
        continue;
      FailureOr<SmallVector<ActiveCall>> inner = callsIn(call.callee, call.arguments, call.results, *this);
      if (failed(inner))
        return failure();
      path.push_back({call.callee, call.arguments, call.results, std::move(*inner), 0});
      continue;
    }
    if (!visit.function)
      return success();
    if (failed(makeOne(visit.function, visit.arguments, visit.results)))
      return failure();
    path.pop_back();
    // Each level returns the residuals of those below it, so what nests deeply grows with the square of the depth.
    if (size_ > ir::kMostInlinedOps) {
      const Visit &caller = path.back();
      ir::CallOp call = caller.calls[caller.next - 1].op;
      InFlightDiagnostic diagnostic = call.emitOpError("calls @")
                                      << call.getCallee() << ": the derivatives of what is called have more than "
                                      << ir::kMostInlinedOps << " ops and residuals";
      diagnostic.attachNote() << "try: nest fewer calls in one another";
      return diagnostic;
    }
  }
}

LogicalResult Pairs::make(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  if (find(function, arguments, results))
    return success();
  if (failed(check(function)))
    return failure();
  FailureOr<SmallVector<ActiveCall>> calls = callsIn(function, arguments, results, *this);
  if (failed(calls) || failed(make(*calls)))
    return failure();
  return makeOne(function, arguments, results);
}

FailureOr<FunctionPair> functionPair(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results,
                                     Mode mode) {
  Pairs pairs(mode, nullptr);
  if (failed(pairs.make(function, arguments, results)))
    return failure();
  return pairs.take(function, arguments, results);
}

} // namespace wg::autodiff
