#include "autodiff/BatchBodies.h"

#include "autodiff/Writer.h"
#include "ir/Bridge.h"
#include "ir/Build.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace wg::autodiff {

using Flags = SmallVector<bool>;

static SmallVector<unsigned> placesOf(ArrayRef<bool> flags) {
  SmallVector<unsigned> places;
  for (auto [i, flag] : llvm::enumerate(flags))
    if (flag)
      places.push_back(static_cast<unsigned>(i));
  return places;
}

/// A body for all lanes: itself where no argument has them.
static FailureOr<BatchedFunction> formOf(func::FuncOp function, ArrayRef<bool> arguments, const LanesOf &lanes) {
  SmallVector<unsigned> places = placesOf(arguments);
  if (places.empty())
    return BatchedFunction{function, Flags(function.getNumResults(), false)};
  return lanes.make(function, places);
}

//===- What has lanes ---------------------------------------------------------------------------------------------===//

namespace {
/// Of a loop: which arguments of the body have lanes, and whether lanes end after different turns.
struct LoopPlan {
  Flags arguments, asked; ///< of the body; of the condition
  bool differ = false;
  BatchedFunction body, condition;
};
} // namespace

static FailureOr<LoopPlan> planLoop(ir::LoopOp loop, ArrayRef<bool> batched, const LanesOf &lanes) {
  size_t limit = loop.getLimited(), carried = loop.getCarried(), scanned = loop.getScanned();
  SmallVector<FlatSymbolRefAttr> names = loop.bodyNames();
  LoopPlan plan;
  plan.arguments.assign(batched.begin() + static_cast<std::ptrdiff_t>(limit), batched.end());
  plan.differ = limit && batched[0];
  for (bool changed = true; changed;) {
    changed = false;
    if (loop.hasCondition()) {
      plan.asked.assign(plan.arguments.begin(), plan.arguments.begin() + static_cast<std::ptrdiff_t>(carried));
      llvm::append_range(plan.asked, ArrayRef(plan.arguments).drop_front(carried + scanned));
      FailureOr<BatchedFunction> condition = formOf(lanes.lookup(loop, names[1]), plan.asked, lanes);
      if (failed(condition))
        return failure();
      plan.condition = *condition;
      plan.differ |= condition->results[0];
    }
    for (size_t i = 0; plan.differ && i < carried; ++i)
      changed |= !std::exchange(plan.arguments[i], true);
    if (changed)
      continue;
    FailureOr<BatchedFunction> body = formOf(lanes.lookup(loop, names[0]), plan.arguments, lanes);
    if (failed(body))
      return failure();
    plan.body = *body;
    for (size_t i = 0; i < carried; ++i)
      if (body->results[i])
        changed |= !std::exchange(plan.arguments[i], true);
  }
  return plan;
}

bool hasOwnLanes(Operation *op) { return ir::isControl(op) || op->hasTrait<ir::HasOwnLanes>(); }

/// Where lanes choose differently, each body runs while one lane wants it, and so nothing may be done in it that others
/// see. An error if what `op` runs does.
static LogicalResult checkUnordered(ir::WithBodies op, const LanesOf &lanes) {
  llvm::SetVector<Operation *> functions;
  for (FlatSymbolRefAttr name : op.bodyNames())
    functions.insert(lanes.lookup(op, name));
  for (size_t i = 0; i < functions.size(); ++i) {
    WalkResult walked = functions[i]->walk([&](Operation *inner) {
      if (auto withBodies = dyn_cast<ir::WithBodies>(inner))
        for (FlatSymbolRefAttr name : withBodies.bodyNames())
          functions.insert(lanes.lookup(inner, name));
      auto host = dyn_cast<ir::HostOp>(inner);
      if (!host || !host.getOrdered())
        return WalkResult::advance();
      InFlightDiagnostic diagnostic =
          host.emitError()
          << "what prints, checks or calls back cannot be done in lanes that choose or end differently";
      diagnostic.attachNote() << "try: do it outside of the " << op->getName().stripDialect() << ", or of the vmap";
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      return failure();
  }
  return success();
}

FailureOr<SmallVector<bool>> planLanes(Operation *op, ArrayRef<bool> batched, const LanesOf &lanes) {
  Flags results(op->getNumResults(), false);
  if (isa<ir::HostOp>(op))
    return Flags{true};
  if (isa<ir::BarrierOp>(op))
    return Flags{batched[0]};
  if (auto loop = dyn_cast<ir::LoopOp>(op)) {
    FailureOr<LoopPlan> plan = planLoop(loop, batched, lanes);
    if (failed(plan))
      return failure();
    size_t carried = loop.getCarried(), first = carried + loop.hasCondition();
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = i < carried ? plan->arguments[i]
                   : i < first ? plan->differ
                               : plan->differ || plan->body.results[i - first + carried];
    return results;
  }
  auto cond = cast<ir::CondOp>(op);
  for (FlatSymbolRefAttr name : cond.bodyNames()) {
    FailureOr<BatchedFunction> branch = formOf(lanes.lookup(op, name), batched.drop_front(), lanes);
    if (failed(branch))
      return failure();
    for (size_t i = 0; i < results.size(); ++i)
      results[i] |= batched[0] || branch->results[i];
  }
  return results;
}

//===- Values -----------------------------------------------------------------------------------------------------===//

namespace {

/// Ops on lanes at one place of a program.
class Ops {
public:
  Ops(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// A mask of lanes over a value that has them.
  Value over(Value mask, Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    return type.getRank() == 1 ? mask : ir::broadcastTo(b, loc, mask, {0}, like);
  }
  Value select(Value mask, Value x, Value y) { return ir::SelectOp::create(b, loc, over(mask, x), x, y); }
  Value any(Value mask) { return ir::ReduceAnyOp::create(b, loc, mask, ArrayRef<int64_t>{0}); }
  Value both(Value x, Value y) { return x && y ? Value(ir::LogicalAndOp::create(b, loc, x, y)) : x ? x : y; }
  Value spread(Value x, OpFoldResult count) { return ir::spread(b, loc, x, count); }
  Value number(int64_t value, Type like) {
    auto type = RankedTensorType::get({}, getElementTypeOrSelf(like));
    return ir::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, Attribute(b.getIntegerAttr(type.getElementType(), value))));
  }
  /// The lanes that do not count have the value of the first that does; there is one.
  Value safe(Value mask, Value x) {
    if (cast<RankedTensorType>(mask.getType()).getDimSize(0) == 0)
      return x;
    Value numbers = ir::CastOp::create(b, loc, mask, TypeAttr::get(b.getI32Type()));
    Value first = ir::ArgmaxOp::create(b, loc, numbers, 0);
    Value row = ir::GatherOp::create(b, loc, x, first, 0);
    return select(mask, x, spread(row, ir::sizeOf(b, loc, x, 0)));
  }
  /// [n, lanes, ...] <-> [lanes, n, ...]
  Value exchanged(Value x) {
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(x.getType()).getRank()));
    std::swap(order[0], order[1]);
    return ir::transpose(b, loc, x, order);
  }

  OpBuilder &b;
  Location loc;
};

} // namespace

//===- cond -------------------------------------------------------------------------------------------------------===//

static FailureOr<SmallVector<Value>> condInLanes(OpBuilder &b, ir::CondOp op, ArrayRef<Value> operands,
                                                 ArrayRef<bool> batched, const LanesOf &lanes, SymbolTable &symbols) {
  Location loc = op.getLoc();
  FailureOr<Flags> results = planLanes(op, batched, lanes);
  if (failed(results))
    return failure();
  if (batched[0] && failed(checkUnordered(cast<ir::WithBodies>(op.getOperation()), lanes)))
    return failure();
  SmallVector<Type> types(ValueRange(operands).drop_front().getTypes());
  Ops at(b, loc);
  auto sized = llvm::find(batched, true) - batched.begin();
  OpFoldResult count = ir::sizeOf(b, loc, operands[sized], 0);
  SmallVector<FlatSymbolRefAttr> names = op.bodyNames();

  // Each branch with lanes in the same results. `mask`: of the lanes that take it, one more argument; null: all do.
  auto write = [&](FlatSymbolRefAttr name, bool masked) -> FailureOr<func::FuncOp> {
    func::FuncOp function = lanes.lookup(op, name);
    FailureOr<BatchedFunction> form = formOf(function, batched.drop_front(), lanes);
    if (failed(form))
      return failure();
    Writer writer(symbols, loc, function.getSymName() + "_lanes");
    SmallVector<Value> arguments = writer.arguments(types);
    Value lane = sized > 0 && !masked ? arguments[sized - 1] : Value();
    Ops in(writer.b, loc);
    if (masked) {
      lane = writer.argument(
          RankedTensorType::get({cast<RankedTensorType>(operands[0].getType()).getDimSize(0)}, b.getI1Type()));
      for (auto [argument, has] : llvm::zip_equal(arguments, batched.drop_front()))
        if (has)
          argument = in.safe(lane, argument);
    }
    OpFoldResult inside = ir::sizeOf(writer.b, loc, lane, 0);
    SmallVector<Value> values = writer.call(form->function, arguments);
    for (auto [value, has, wanted] : llvm::zip_equal(values, form->results, *results))
      if (wanted && !has)
        value = in.spread(value, inside);
    return writer.finish(values);
  };

  if (!batched[0]) {
    SmallVector<Attribute> written;
    SmallVector<Type> resultTypes;
    for (FlatSymbolRefAttr name : names) {
      FailureOr<func::FuncOp> branch = write(name, false);
      if (failed(branch))
        return failure();
      written.push_back(nameOf(*branch));
      resultTypes = SmallVector<Type>(branch->getResultTypes());
    }
    auto made = ir::CondOp::create(b, loc, resultTypes, operands[0], b.getArrayAttr(written), operands.drop_front());
    return SmallVector<Value>(made.getResults());
  }

  // Lanes choose: each branch runs if one of them wants it.
  Value selector = operands[0];
  bool isBool = getElementTypeOrSelf(selector.getType()).isSignlessInteger(1);
  SmallVector<Value> all(op->getNumResults());
  for (auto [k, name] : llvm::enumerate(names)) {
    Value mask;
    if (isBool) {
      mask = k == 0 ? Value(ir::LogicalNotOp::create(b, loc, selector)) : selector;
    } else {
      Value number = at.spread(at.number(static_cast<int64_t>(k), selector.getType()), count);
      mask = k == 0                  ? Value(ir::LessEqualOp::create(b, loc, selector, number))
             : k + 1 == names.size() ? Value(ir::GreaterEqualOp::create(b, loc, selector, number))
                                     : Value(ir::EqualOp::create(b, loc, selector, number));
      if (names.size() == 1)
        mask = ir::EqualOp::create(b, loc, selector, selector);
    }
    FailureOr<func::FuncOp> branch = write(name, true);
    if (failed(branch))
      return failure();
    SmallVector<Value> given(operands.drop_front());
    given.push_back(mask);
    Writer none(symbols, loc, "no_lane");
    none.arguments(ValueRange(given).getTypes());
    SmallVector<Value> zeros;
    for (Type type : branch->getResultTypes()) {
      if (!cast<RankedTensorType>(type).hasStaticShape())
        return op.emitOpError("is chosen by each lane, and returns ")
               << type << ": for that its sizes must be known, and the number of lanes";
      zeros.push_back(zeroOf(none.b, loc, type));
    }
    func::FuncOp nothing = none.finish(zeros);
    auto made = ir::CondOp::create(b, loc, branch->getResultTypes(), at.any(mask),
                                   b.getArrayAttr({nameOf(nothing), nameOf(*branch)}), given);
    for (auto [result, value] : llvm::zip_equal(all, made.getResults()))
      result = result ? at.select(mask, value, result) : Value(value);
  }
  return all;
}

//===- loop -------------------------------------------------------------------------------------------------------===//

static FailureOr<SmallVector<Value>> loopInLanes(OpBuilder &b, ir::LoopOp op, ArrayRef<Value> operands,
                                                 ArrayRef<bool> batched, const LanesOf &lanes, SymbolTable &symbols) {
  Location loc = op.getLoc();
  FailureOr<LoopPlan> found = planLoop(op, batched, lanes);
  if (failed(found))
    return failure();
  LoopPlan &plan = *found;
  if (plan.differ && failed(checkUnordered(cast<ir::WithBodies>(op.getOperation()), lanes)))
    return failure();
  Ops at(b, loc);
  size_t limited = op.getLimited(), carried = op.getCarried(), scanned = op.getScanned(),
         stacked = op.getStacked().size();
  OpFoldResult count = ir::sizeOf(b, loc, operands[llvm::find(batched, true) - batched.begin()], 0);
  bool ownLimit = limited && batched[0], asks = op.hasCondition();

  SmallVector<Value> inits, xs, invariants(operands.drop_front(limited + carried + scanned));
  for (size_t i = 0; i < carried; ++i) {
    Value init = operands[limited + i];
    inits.push_back(plan.arguments[i] && !batched[limited + i] ? at.spread(init, count) : init);
  }
  for (size_t i = 0; i < scanned; ++i) {
    Value x = operands[limited + carried + i];
    xs.push_back(plan.arguments[carried + i] ? at.exchanged(x) : x);
  }
  Value limit = limited ? operands[0] : Value();
  int64_t length = static_cast<int64_t>(op.getLength());
  // Where lanes differ: the turns of each are counted, or come as limits, which rows are compared with.
  bool counts = plan.differ && asks;
  if (counts)
    inits.push_back(at.spread(at.number(0, b.getI64Type()), count));
  bool numbersRows = ownLimit && length < 0 && xs.empty(); // carries the row's number, which nothing else says
  if (ownLimit) {
    invariants.push_back(limit);
    limit = ir::ReduceMaxOp::create(b, loc, limit, ArrayRef<int64_t>{0});
  }
  if (numbersRows) {
    Value first = at.number(op.getReversed() ? 1 : 0, b.getI64Type());
    inits.push_back(op.getReversed() ? Value(ir::SubOp::create(b, loc, limit, first)) : first);
  } else if (ownLimit) {
    OpFoldResult rows = length < 0 ? ir::sizeOf(b, loc, xs[0], 0) : OpFoldResult(b.getIndexAttr(length));
    SmallVector<Value> sizes;
    SmallVector<int64_t> shape;
    dispatchIndexOpFoldResults(rows, sizes, shape);
    xs.push_back(ir::IotaOp::create(b, loc, shape, 0, b.getI64Type(), sizes));
  }

  // The body: carried, the counter, the row's number, rows, or here the row's number, invariants, the limits.
  Writer writer(symbols, loc, "loop_lanes");
  Ops in(writer.b, loc);
  SmallVector<Value> arguments = writer.arguments(ValueRange(inits).getTypes());
  for (Value x : xs)
    arguments.push_back(writer.argument(ir::rowTypeOf(x.getType())));
  for (Value invariant : invariants)
    arguments.push_back(writer.argument(invariant.getType()));
  size_t firstRow = inits.size(), firstInvariant = firstRow + xs.size();
  SmallVector<Value> state(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(carried)), given = state;
  llvm::append_range(given, ArrayRef(arguments).slice(firstRow, scanned));
  llvm::append_range(given, ArrayRef(arguments).slice(firstInvariant, op.getInvariants().size()));
  auto askedOf = [&](ArrayRef<Value> carriedIn, ArrayRef<Value> held) {
    SmallVector<Value> list(carriedIn);
    llvm::append_range(list, held.take_front(op.getInvariants().size()));
    return list;
  };
  Value mask;
  if (plan.differ) {
    if (asks && plan.condition.results[0])
      mask = writer.call(plan.condition.function, askedOf(state, ArrayRef(arguments).drop_front(firstInvariant)))[0];
    if (ownLimit) {
      Value limits = arguments.back(), row = arguments[numbersRows ? firstRow - 1 : firstRow + scanned];
      mask = in.both(mask,
                     ir::LessOp::create(writer.b, loc, in.spread(row, ir::sizeOf(writer.b, loc, limits, 0)), limits));
    }
    for (auto [value, has] : llvm::zip_equal(given, plan.arguments))
      if (has)
        value = in.safe(mask, value);
  }
  SmallVector<Value> values = writer.call(plan.body.function, given), returned;
  // How many lanes: a value that has them, if one is needed.
  auto inside = [&]() -> OpFoldResult {
    for (auto [value, has] : llvm::zip_equal(given, plan.arguments))
      if (has)
        return ir::sizeOf(writer.b, loc, value, 0);
    return ir::sizeOf(writer.b, loc, mask, 0);
  };
  for (size_t i = 0; i < carried; ++i) {
    Value value = values[i];
    if (plan.arguments[i] && !plan.body.results[i])
      value = in.spread(value, inside());
    returned.push_back(mask ? in.select(mask, value, state[i]) : value);
  }
  if (counts) {
    Value one = ir::CastOp::create(writer.b, loc, mask, TypeAttr::get(b.getI64Type()));
    returned.push_back(ir::AddOp::create(writer.b, loc, arguments[carried], one));
  }
  if (numbersRows)
    returned.push_back(ir::AddOp::create(writer.b, loc, arguments[firstRow - 1],
                                         in.number(op.getReversed() ? -1 : 1, b.getI64Type())));
  Flags stackedFlags;
  for (size_t i = 0; i < stacked; ++i) {
    Value value = values[carried + i];
    stackedFlags.push_back(plan.body.results[carried + i] || mask);
    if (mask && !plan.body.results[carried + i])
      value = in.spread(value, inside());
    returned.push_back(mask ? in.select(mask, value, ir::zerosLike(writer.b, loc, value)) : value);
  }
  func::FuncOp body = writer.finish(returned);

  FlatSymbolRefAttr condition;
  if (asks) {
    Writer asker(symbols, loc, "loop_lanes_go_on");
    Ops ask(asker.b, loc);
    SmallVector<Value> carriedIn = asker.arguments(ValueRange(inits).getTypes()),
                       held = asker.arguments(ValueRange(invariants).getTypes());
    Value more = asker.call(plan.condition.function, askedOf(ArrayRef(carriedIn).take_front(carried), held))[0];
    condition = nameOf(asker.finish(plan.condition.results[0] ? ask.any(more) : more));
  }
  ir::LoopOp made = makeLoop(b, loc,
                             {nameOf(body), condition, limit, inits, xs, invariants, length, op.getReversed(),
                              static_cast<int64_t>(op.getCheckpoints())},
                             body.getResultTypes());
  SmallVector<Value> results(made.getFinals().take_front(carried));
  if (asks)
    results.push_back(counts ? Value(made.getFinals()[carried]) : made.getTurns());
  for (auto [value, has] : llvm::zip_equal(made.getStacked(), stackedFlags))
    results.push_back(has ? at.exchanged(value) : Value(value));
  return results;
}

/// One lane after the other: a loop over them, whose body is the op.
static Value oneByOne(OpBuilder &b, ir::HostOp op, ArrayRef<Value> operands, ArrayRef<bool> batched,
                      SymbolTable &symbols) {
  Location loc = op.getLoc();
  Writer writer(symbols, loc, "lane");
  LoopParts parts;
  SmallVector<Value> taken(operands.size());
  for (bool scanned : {true, false})
    for (auto [i, operand] : llvm::enumerate(operands))
      if (batched[i] == scanned) {
        (scanned ? parts.xs : parts.invariants).push_back(operand);
        taken[i] = writer.argument(scanned ? ir::rowTypeOf(operand.getType()) : operand.getType());
      }
  int64_t count = cast<RankedTensorType>(parts.xs[0].getType()).getDimSize(0);
  parts.length = ShapedType::isDynamic(count) ? -1 : count;
  auto single = cast<ir::HostOp>(writer.b.clone(*op));
  single->setOperands(taken);
  func::FuncOp body = writer.finish(single->getResults());
  parts.body = nameOf(body);
  return makeLoop(b, loc, parts, body.getResultTypes())->getResult(0);
}

FailureOr<SmallVector<Value>> inLanes(OpBuilder &b, Operation *op, ArrayRef<Value> operands, ArrayRef<bool> batched,
                                      const LanesOf &lanes, SymbolTable &symbols) {
  if (auto host = dyn_cast<ir::HostOp>(op))
    return SmallVector<Value>{oneByOne(b, host, operands, batched, symbols)};
  if (isa<ir::BarrierOp>(op))
    return SmallVector<Value>{ir::BarrierOp::create(b, op->getLoc(), operands[0], operands.drop_front())};
  if (auto loop = dyn_cast<ir::LoopOp>(op))
    return loopInLanes(b, loop, operands, batched, lanes, symbols);
  return condInLanes(b, cast<ir::CondOp>(op), operands, batched, lanes, symbols);
}

} // namespace wg::autodiff
