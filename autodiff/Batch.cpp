// Ops from first to last, each once; calls become calls of batched functions, which hang on the function they are of:
//
//   func @f(%x) { %y = wg.tanh %x  return %y }
//     ->  func @f_lanes_0(%xs) { %ys = wg.tanh %xs  return %ys }
//
// and on @f: wg.batches = [{arguments = [0], count = 3, results = [true], function = @f_lanes_0}]
#include "autodiff/Batch.h"

#include "autodiff/BatchBodies.h"
#include "autodiff/Calls.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Rules.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <memory>
#include <optional>

using namespace mlir;

namespace wg::autodiff {

namespace {

/// The batched functions of a module, while a program is batched.
class Batches : public Callees {
public:
  Batches(int64_t count, SymbolTable *symbols) : Callees(symbols), count_(count) {}

  /// Those of the calls among `ops` that are reached from batched values, and first those of the calls in their
  /// callees.
  LogicalResult make(ArrayRef<Operation *> ops, ValueRange batched);
  LogicalResult make(func::FuncOp function, ArrayRef<unsigned> arguments);
  /// One that was made.
  const BatchedFunction &of(func::FuncOp function, ArrayRef<unsigned> arguments) { return *find(function, arguments); }
  /// Those of a condition or a loop, whose results that have lanes it tells; or the op in lanes.
  FailureOr<SmallVector<bool>> planOf(Operation *op, ArrayRef<bool> batched);
  FailureOr<SmallVector<Value>> inLanesOf(OpBuilder &b, Operation *op, ArrayRef<Value> operands,
                                          ArrayRef<bool> batched);
  FailureOr<Batched> run(OpBuilder &b, ArrayRef<Operation *> ops, ValueRange targets, ValueRange sources,
                         ValueRange lanes);

private:
  template <class F> auto withLanes(F f);
  /// A function whose calls get their batched forms, before it gets its own; at first the ops without one around them.
  struct Visit {
    func::FuncOp function;
    Places arguments;
    SmallVector<Operation *> ops;
    size_t next = 0;
    DenseSet<Value> batched;
  };

  using Callees::check;
  LogicalResult check(ir::CallOp call);
  const BatchedFunction *find(func::FuncOp function, ArrayRef<unsigned> arguments);
  Visit enter(func::FuncOp function, ArrayRef<unsigned> arguments);
  LogicalResult make(Visit first);
  LogicalResult makeCalled(Visit first);
  LogicalResult makeOne(func::FuncOp function, ArrayRef<unsigned> arguments);
  LogicalResult makeNamed(func::FuncOp function, const BatchedFunction &batched, ArrayRef<unsigned> arguments);

  struct Known {
    Places arguments;
    BatchedFunction batched;
  };
  int64_t count_;
  DenseMap<Operation *, SmallVector<std::unique_ptr<Known>, 1>> known_;
  SmallVector<std::pair<func::FuncOp, Places>> naming_; ///< made, and the derivative that they name is not yet
};

} // namespace

/// The places of a call's or a function's operands that hold.
template <class F> static Places placesWhere(ValueRange values, F holds) {
  Places places;
  for (auto [i, value] : llvm::enumerate(values))
    if (holds(value))
      places.push_back(i);
  return places;
}

static Type batchedType(Type type, int64_t count) { return ir::batchedType(cast<RankedTensorType>(type), count); }

//===- The attribute --------------------------------------------------------------------------------------------===//

/// `?` is -1 in text.
static IntegerAttr countAttr(OpBuilder &b, int64_t count) {
  return b.getI64IntegerAttr(ShapedType::isDynamic(count) ? -1 : count);
}
static DenseI64ArrayAttr placesAttr(OpBuilder &b, ArrayRef<unsigned> places) {
  return b.getDenseI64ArrayAttr(SmallVector<int64_t>(places.begin(), places.end()));
}

static bool isEntryOf(Attribute entry, OpBuilder &b, ArrayRef<unsigned> arguments, int64_t count) {
  auto fields = dyn_cast<DictionaryAttr>(entry);
  return fields && fields.get("arguments") == placesAttr(b, arguments) && fields.get("count") == countAttr(b, count);
}

static void attach(func::FuncOp function, ArrayRef<unsigned> arguments, int64_t count, BatchedFunction &batched) {
  OpBuilder b(function);
  SmallVector<Attribute> entries;
  // In place of one for the same arguments and lanes, which did not fit.
  if (auto before = function->getAttrOfType<ArrayAttr>(ir::kBatchesAttr))
    llvm::append_range(entries, llvm::make_filter_range(
                                    before, [&](Attribute entry) { return !isEntryOf(entry, b, arguments, count); }));
  entries.push_back(b.getDictionaryAttr({
      b.getNamedAttr("arguments", placesAttr(b, arguments)),
      b.getNamedAttr("count", countAttr(b, count)),
      b.getNamedAttr("results", b.getDenseBoolArrayAttr(batched.results)),
      b.getNamedAttr("function", FlatSymbolRefAttr::get(batched.function.getSymNameAttr())),
  }));
  function->setAttr(ir::kBatchesAttr, b.getArrayAttr(entries));
}

/// Whether a batched function, as text may have it, is one of `function`: every type fits.
static bool fits(func::FuncOp function, ArrayRef<unsigned> arguments, int64_t count, BatchedFunction &batched) {
  if (!batched.function || batched.function.isDeclaration() || batched.results.size() != function.getNumResults() ||
      batched.function->hasAttr(kVjpAttr) != function->hasAttr(kVjpAttr))
    return false;
  SmallVector<Type> inputs(function.getArgumentTypes()), outputs(function.getResultTypes());
  for (unsigned argument : arguments)
    inputs[argument] = batchedType(inputs[argument], count);
  for (auto [output, isBatched] : llvm::zip_equal(outputs, batched.results)) {
    if (isBatched && !isa<RankedTensorType>(output))
      return false;
    if (isBatched)
      output = batchedType(output, count);
  }
  return llvm::equal(batched.function.getArgumentTypes(), inputs) &&
         llvm::equal(batched.function.getResultTypes(), outputs);
}

/// As it hangs on the function, if one does that fits it.
static std::optional<BatchedFunction> attached(func::FuncOp function, ArrayRef<unsigned> arguments, int64_t count,
                                               const SymbolTable &symbols) {
  auto entries = function->getAttrOfType<ArrayAttr>(ir::kBatchesAttr);
  if (!entries)
    return std::nullopt;
  OpBuilder b(function.getContext());
  for (Attribute entry : entries) {
    if (!isEntryOf(entry, b, arguments, count))
      continue;
    auto fields = cast<DictionaryAttr>(entry);
    auto name = fields.getAs<FlatSymbolRefAttr>("function");
    auto results = fields.getAs<DenseBoolArrayAttr>("results");
    if (!name || !results)
      continue;
    BatchedFunction batched{symbols.lookup<func::FuncOp>(name.getAttr()), SmallVector<bool>(results.asArrayRef())};
    if (fits(function, arguments, count, batched))
      return batched;
  }
  return std::nullopt;
}

//===- Functions ------------------------------------------------------------------------------------------------===//

const BatchedFunction *Batches::find(func::FuncOp function, ArrayRef<unsigned> arguments) {
  auto &known = known_[function];
  for (const auto &each : known)
    if (ArrayRef(each->arguments) == arguments)
      return &each->batched;
  std::optional<BatchedFunction> batched = attached(function, arguments, count_, symbolsOf(function));
  if (!batched)
    return nullptr;
  known.push_back(std::make_unique<Known>(Known{Places(arguments), std::move(*batched)}));
  return &known.back()->batched;
}

/// Whether the callee of a batched call is one that can be batched.
LogicalResult Batches::check(ir::CallOp call) {
  func::FuncOp callee = calleeOf(call);
  if (failed(ir::checkCallee(call, callee)) || failed(check(callee)))
    return failure();
  auto refuse = [&](const char *why, const char *remedy) -> LogicalResult {
    InFlightDiagnostic diagnostic = call.emitOpError("calls @") << call.getCallee() << ", which " << why;
    diagnostic.attachNote() << "try: " << remedy;
    return diagnostic;
  };
  if (callee.isDeclaration())
    return refuse("has no body and so cannot be batched", "call it outside of the batch");
  return success();
}

Batches::Visit Batches::enter(func::FuncOp function, ArrayRef<unsigned> arguments) {
  Visit visit{function, Places(arguments), {}, 0, {}};
  for (Operation &op : function.getBody().front().without_terminator())
    visit.ops.push_back(&op);
  for (unsigned argument : arguments)
    visit.batched.insert(function.getArgument(argument));
  return visit;
}

/// A derivative that is named may call the function that names it: it is made when that is there.
LogicalResult Batches::make(Visit first) {
  if (failed(makeCalled(std::move(first))))
    return failure();
  while (!naming_.empty()) {
    auto [function, arguments] = naming_.pop_back_val();
    if (failed(makeNamed(function, *find(function, arguments), arguments))) {
      function->removeAttr(ir::kBatchesAttr);
      return failure();
    }
  }
  return success();
}

/// What conditions and loops ask for: conditions nest ir::kMostNested deep at most, so this may recurse.
template <class F> auto Batches::withLanes(F f) {
  auto lookup = [&](Operation *from, FlatSymbolRefAttr name) { return this->lookup(from, name.getValue()); };
  auto make = [&](func::FuncOp function, ArrayRef<unsigned> arguments) -> FailureOr<BatchedFunction> {
    if (!find(function, arguments) && (failed(check(function)) || failed(makeCalled(enter(function, arguments)))))
      return failure();
    return *find(function, arguments);
  };
  return f(LanesOf{lookup, make});
}

FailureOr<SmallVector<bool>> Batches::planOf(Operation *op, ArrayRef<bool> batched) {
  return withLanes([&](const LanesOf &lanes) { return planLanes(op, batched, lanes); });
}

FailureOr<SmallVector<Value>> Batches::inLanesOf(OpBuilder &b, Operation *op, ArrayRef<Value> operands,
                                                 ArrayRef<bool> batched) {
  return withLanes([&](const LanesOf &lanes) { return inLanes(b, op, operands, batched, lanes, symbolsOf(op)); });
}

LogicalResult Batches::makeCalled(Visit first) {
  std::vector<Visit> path; // explicit: calls may nest deeper than a thread's stack
  path.push_back(std::move(first));
  for (;;) {
    Visit &visit = path.back();
    if (visit.next == visit.ops.size()) {
      if (visit.function && failed(makeOne(visit.function, visit.arguments)))
        return failure();
      path.pop_back();
      if (path.empty())
        return success();
      continue;
    }
    Operation *op = visit.ops[visit.next];
    Places arguments = placesWhere(op->getOperands(), [&](Value x) { return visit.batched.contains(x); });
    const BatchedFunction *known = nullptr;
    if (auto call = dyn_cast<ir::CallOp>(op); call && !arguments.empty()) {
      if (failed(check(call)))
        return failure();
      func::FuncOp callee = calleeOf(call);
      known = find(callee, arguments);
      if (!known) { // and come back
        path.push_back(enter(callee, arguments));
        continue;
      }
    }
    ++visit.next;
    if (arguments.empty())
      continue;
    if (hasOwnLanes(op)) {
      SmallVector<bool> batched(op->getNumOperands(), false);
      for (unsigned argument : arguments)
        batched[argument] = true;
      FailureOr<SmallVector<bool>> results = planOf(op, batched);
      if (failed(results))
        return failure();
      for (auto [result, has] : llvm::zip_equal(op->getResults(), *results))
        if (has)
          visit.batched.insert(result);
      continue;
    }
    for (OpResult result : op->getResults())
      if (known ? known->results[result.getResultNumber()] : isa<RankedTensorType>(result.getType()))
        visit.batched.insert(result);
  }
}

LogicalResult Batches::make(ArrayRef<Operation *> ops, ValueRange batched) {
  Visit visit;
  visit.ops.assign(ops.begin(), ops.end());
  visit.batched.insert(batched.begin(), batched.end());
  return make(std::move(visit));
}

LogicalResult Batches::make(func::FuncOp function, ArrayRef<unsigned> arguments) {
  if (find(function, arguments))
    return success();
  if (failed(check(function)))
    return failure();
  return make(enter(function, arguments));
}

/// A copy of the function whose calls have their batched forms, with the axis.
LogicalResult Batches::makeOne(func::FuncOp function, ArrayRef<unsigned> arguments) {
  for (unsigned argument : arguments)
    if (failed(ir::checkLanes(function.getLoc(), function.getArgument(argument).getType(), count_)))
      return failure();
  std::string name = function.getSymName().str() + "_lanes";
  for (unsigned argument : arguments)
    name += "_" + std::to_string(argument);
  OpBuilder b(function);
  b.setInsertionPointAfter(function);
  auto copy = cast<func::FuncOp>(b.clone(*function));
  copy.setSymName(name);
  symbolsOf(function).insert(copy);
  copy.setPrivate();
  ir::forgetDerived(copy);
  copy->removeAttr(kVjpAttr);
  if (copy->hasAttr(ir::kJvpAttr)) // that of all lanes transposes
    copy->setAttr(ir::kJvpAttr, b.getUnitAttr());
  copy.removeArgAttrsAttr();
  copy.removeResAttrsAttr();

  Block &body = copy.getBody().front();
  Operation *terminator = body.getTerminator();
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  SmallVector<Value> sources, lanes;
  for (unsigned argument : arguments) {
    sources.push_back(body.getArgument(argument));
    lanes.push_back(body.addArgument(batchedType(sources.back().getType(), count_), function.getLoc()));
  }
  b.setInsertionPoint(terminator);
  FailureOr<Batched> batched = run(b, ops, terminator->getOperands(), sources, lanes);
  if (failed(batched)) {
    symbolsOf(function).erase(copy);
    return failure();
  }
  terminator->setOperands(batched->values);
  eraseDead(body, nullptr); // the single lane
  for (auto [argument, lane] : llvm::zip_equal(arguments, lanes)) {
    body.getArgument(argument).setType(lane.getType());
    lane.replaceAllUsesWith(body.getArgument(argument));
  }
  body.eraseArguments(function.getNumArguments(), lanes.size());
  copy.setFunctionType(b.getFunctionType(body.getArgumentTypes(), terminator->getOperandTypes()));
  BatchedFunction made{copy, batched->batched};
  attach(function, arguments, count_, made);
  known_[function].push_back(std::make_unique<Known>(Known{Places(arguments), std::move(made)}));
  if (function->hasAttr(kVjpAttr))
    naming_.push_back({function, Places(arguments)});
  return success();
}

/// Gives a batched function its derivative: that of the single lane, batched where operands, results and cotangents
/// are. An operand that is the same in all lanes gets the sum of what they give.
LogicalResult Batches::makeNamed(func::FuncOp function, const BatchedFunction &batched, ArrayRef<unsigned> arguments) {
  auto name = function->getAttrOfType<FlatSymbolRefAttr>(kVjpAttr);
  func::FuncOp vjp = name ? symbolsOf(function).lookup<func::FuncOp>(name.getAttr()) : func::FuncOp();
  if (!vjp || vjp.isDeclaration() || !vjp.getBody().hasOneBlock()) {
    InFlightDiagnostic diagnostic = function.emitOpError("names ")
                                    << function->getAttr(kVjpAttr)
                                    << " as its derivative, which has no body here and so cannot be batched";
    diagnostic.attachNote() << "try: call it outside of the batch";
    return diagnostic;
  }
  auto limit = function->getAttrOfType<IntegerAttr>(kNumResultsAttr);
  int64_t numResults =
      limit && limit.getValue().isSignedIntN(64) ? limit.getValue().getSExtValue() : function.getNumResults();
  auto cotangentsOf = vjp->getAttrOfType<DenseI64ArrayAttr>(kArgumentsAttr);
  func::FuncOp made = batched.function;
  // It takes the operands, the results and the cotangents of the float results.
  SmallVector<Type> single(function.getArgumentTypes()), taken(made.getArgumentTypes());
  Places places(arguments);
  auto take = [&](unsigned result) {
    if (batched.results[result])
      places.push_back(single.size());
    single.push_back(function.getResultTypes()[result]);
    taken.push_back(made.getResultTypes()[result]);
  };
  for (unsigned result = 0; result < function.getNumResults(); ++result)
    take(result);
  for (unsigned result = 0; result < function.getNumResults() && result < numResults; ++result)
    if (isDifferentiableType(function.getResultTypes()[result]))
      take(result);
  bool fits = llvm::equal(vjp.getArgumentTypes(), single) && cotangentsOf &&
              cotangentsOf.size() == static_cast<int64_t>(vjp.getNumResults());
  for (unsigned i = 0; fits && i < vjp.getNumResults(); ++i)
    fits = cotangentsOf[i] >= 0 && cotangentsOf[i] < static_cast<int64_t>(function.getNumArguments()) &&
           function.getArgumentTypes()[cotangentsOf[i]] == vjp.getResultTypes()[i];
  if (!fits)
    return vjp.emitOpError("is the derivative of @")
           << function.getSymName() << ", and takes its operands, its results and their cotangents, and returns "
           << "cotangents of the operands in its " << kArgumentsAttr;
  if (!find(vjp, places) && (failed(check(vjp)) || failed(makeCalled(enter(vjp, places)))))
    return failure();

  const BatchedFunction &lanes = *find(vjp, places);
  Location loc = vjp.getLoc();
  OpBuilder b(made);
  b.setInsertionPointAfter(made);
  auto whole = func::FuncOp::create(b, loc, (made.getSymName() + "_vjp").str(), b.getFunctionType(taken, {}));
  whole.setPrivate();
  for (StringRef attribute : {StringRef(kArgumentsAttr), StringRef(kReasonsAttr)})
    if (Attribute value = vjp->getAttr(attribute))
      whole->setAttr(attribute, value);
  symbolsOf(function).insert(whole);
  Block *body = whole.addEntryBlock();
  b.setInsertionPointToStart(body);
  func::FuncOp called = lanes.function;
  auto call = ir::CallOp::create(b, loc, called.getResultTypes(), FlatSymbolRefAttr::get(called.getSymNameAttr()),
                                 body->getArguments());
  SmallVector<Value> returned;
  for (auto [cotangent, isBatched, operand] :
       llvm::zip_equal(call.getResults(), lanes.results, cotangentsOf.asArrayRef())) {
    bool wanted = llvm::is_contained(arguments, static_cast<unsigned>(operand));
    Value lane = arguments.empty() ? Value() : Value(body->getArgument(arguments[0]));
    returned.push_back(isBatched == wanted ? Value(cotangent)
                       : wanted            ? ir::spread(b, loc, cotangent, ir::sizeOf(b, loc, lane, 0))
                                           : Value(ir::ReduceSumOp::create(b, loc, cotangent, ArrayRef<int64_t>{0})));
  }
  func::ReturnOp::create(b, loc, returned);
  whole.setFunctionType(b.getFunctionType(taken, ValueRange(returned).getTypes()));
  made->setAttr(kVjpAttr, FlatSymbolRefAttr::get(whole.getSymNameAttr()));
  return success();
}

//===- A program ------------------------------------------------------------------------------------------------===//

namespace {

/// What takes the place of a value, and whether it has the axis.
struct Lane {
  Value value;
  bool batched = false;
};

class Batch {
public:
  Batch(OpBuilder &b, Batches &batches) : b_(b), batches_(batches) {}

  void set(Value of, Value value, bool batched) { lanes_.try_emplace(of, Lane{value, batched}); }
  Lane of(Value value) const {
    auto at = lanes_.find(value);
    return at == lanes_.end() ? Lane{value, false} : at->second;
  }
  LogicalResult step(Operation *op);

private:
  void call(ir::CallOp op, ArrayRef<Value> operands, ArrayRef<unsigned> arguments);

  OpBuilder &b_;
  Batches &batches_;
  DenseMap<Value, Lane> lanes_;
};

} // namespace

void Batch::call(ir::CallOp op, ArrayRef<Value> operands, ArrayRef<unsigned> arguments) {
  BatchedFunction callee = batches_.of(batches_.calleeOf(op), arguments);
  auto made = ir::CallOp::create(b_, op.getLoc(), callee.function.getResultTypes(),
                                 FlatSymbolRefAttr::get(callee.function.getSymNameAttr()), operands);
  for (auto [before, after, batched] : llvm::zip_equal(op.getResults(), made.getResults(), callee.results))
    set(before, after, batched);
}

LogicalResult Batch::step(Operation *op) {
  SmallVector<Value> operands;
  SmallVector<bool> batched;
  bool changed = false;
  for (Value operand : op->getOperands()) {
    Lane lane = of(operand);
    operands.push_back(lane.value);
    batched.push_back(lane.batched);
    changed |= lane.value != operand;
  }
  if (!changed)
    return success();
  if (!llvm::is_contained(batched, true)) { // a size that was asked of a value with lanes
    Operation *copy = b_.clone(*op);
    copy->setOperands(operands);
    for (auto [before, after] : llvm::zip_equal(op->getResults(), copy->getResults()))
      set(before, after, false);
    return success();
  }
  if (auto called = dyn_cast<ir::CallOp>(op)) {
    Places arguments;
    for (auto [i, isBatched] : llvm::enumerate(batched))
      if (isBatched)
        arguments.push_back(i);
    call(called, operands, arguments);
    return success();
  }
  if (hasOwnLanes(op)) {
    FailureOr<SmallVector<bool>> has = batches_.planOf(op, batched);
    if (failed(has))
      return failure();
    FailureOr<SmallVector<Value>> results = batches_.inLanesOf(b_, op, operands, batched);
    if (failed(results))
      return failure();
    for (auto [before, after, isBatched] : llvm::zip_equal(op->getResults(), *results, *has))
      set(before, after, isBatched);
    return success();
  }
  FailureOr<Value> y = ir::batch(op, b_, op->getLoc(), operands, batched);
  if (failed(y))
    return failure();
  set(op->getResult(0), *y, isa<RankedTensorType>(op->getResult(0).getType()));
  return success();
}

FailureOr<Batched> Batches::run(OpBuilder &b, ArrayRef<Operation *> ops, ValueRange targets, ValueRange sources,
                                ValueRange lanes) {
  Batch batch(b, *this);
  for (auto [source, lane] : llvm::zip_equal(sources, lanes))
    batch.set(source, lane, true);
  for (Operation *op : ops)
    if (failed(batch.step(op)))
      return failure();
  Batched made;
  for (Value target : targets) {
    Lane lane = batch.of(target);
    made.values.push_back(lane.value);
    made.batched.push_back(lane.batched);
  }
  return made;
}

/// The ops on which the targets depend, in their order; those that only sources depend on are not among them.
static SmallVector<Operation *> opsBehind(ValueRange targets, ValueRange sources) {
  DenseSet<Value> known(sources.begin(), sources.end());
  DenseSet<Operation *> seen;
  SmallVector<Value> work(targets);
  SmallVector<Operation *> ops;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = known.contains(value) ? nullptr : value.getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    ops.push_back(op);
    llvm::append_range(work, op->getOperands());
  }
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

FailureOr<Batched> batch(OpBuilder &b, Location loc, ValueRange targets, ValueRange sources, ValueRange lanes,
                         const BatchOptions &options) {
  int64_t count = ShapedType::kDynamic;
  for (auto [source, lane] : llvm::zip_equal(sources, lanes)) {
    auto type = dyn_cast<RankedTensorType>(lane.getType()), one = dyn_cast<RankedTensorType>(source.getType());
    if (!type || !one || type.getRank() != one.getRank() + 1)
      return emitError(loc) << "lanes of type " << lane.getType() << " for a value of type " << source.getType()
                            << ": they have its type with one more axis in front";
    int64_t size = type.getDimSize(0);
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(count) && size != count)
      return emitError(loc) << "there are " << count << " lanes of one value and " << size << " of another";
    count = ShapedType::isDynamic(count) ? size : count;
  }
  SmallVector<Value> given;
  for (auto [source, lane] : llvm::zip_equal(sources, lanes)) {
    Type wanted = batchedType(source.getType(), count);
    if (lane.getType() != wanted) { // a size that one type knows and the other leaves open
      if (failed(verifyCompatibleShape(lane.getType(), wanted)) ||
          getElementTypeOrSelf(lane.getType()) != getElementTypeOrSelf(wanted))
        return emitError(loc) << "lanes of type " << lane.getType() << " for a value of type " << source.getType()
                              << ": they have its type with one more axis in front";
      SmallVector<Value> sizes;
      for (auto [axis, size] : llvm::enumerate(cast<RankedTensorType>(wanted).getShape()))
        if (ShapedType::isDynamic(size))
          sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, ir::sizeOf(b, loc, lane, axis)));
      lane = ir::ReshapeOp::create(b, loc, lane, cast<RankedTensorType>(wanted).getShape(), sizes);
    }
    given.push_back(lane);
  }
  SmallVector<Operation *> ops = opsBehind(targets, sources);
  Batches batches(count, options.symbols);
  if (failed(batches.make(ops, sources)))
    return failure();
  return batches.run(b, ops, targets, sources, given);
}

FailureOr<BatchedFunction> batchedFunction(func::FuncOp function, ArrayRef<unsigned> arguments, int64_t count,
                                           const BatchOptions &options) {
  Batches batches(count, options.symbols);
  if (failed(batches.make(function, arguments)))
    return failure();
  return batches.of(function, arguments);
}

} // namespace wg::autodiff
