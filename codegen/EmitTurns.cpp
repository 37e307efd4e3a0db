// A loop of small turns, as a diagonal recurrence, a step of an integrator or a counter:
//
//   for t: h = tanh(h * w + x[t]), hs[t] = h        h: f64[14]
//
// Kernel by kernel, the state would go through memory between any two of them, where a load waits for the store before
// it, and longest for a masked one; and turns would wait for each other's calls. Here all kernels of a turn are written
// one after the other in one loop, whose values are vectors: what a kernel makes and another reads, and what a turn
// hands to the next, is never stored. Rows that are scanned and invariants are read where they lie, stacked rows
// written there.
//
// That needs kernels of maps over a few vectors, which read what is in registers in its place, or a scalar; any views
// of what lies in memory. Every other loop runs its bodies as functions (EmitBodies.cpp).
#include "codegen/EmitTurns.h"

#include "codegen/emit/KernelEmitter.h"
#include "ir/Bridge.h"
#include "ir/Calls.h"
#include "ir/Views.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace wg::codegen {

namespace {

/// A value is at most so many vectors, and what is carried at most so many together: more than there are registers, as
/// what is spilled costs no more than what lies in memory.
constexpr int64_t kMostVectors = 4, kMostCarried = 64;
/// Operations of a turn, in the sense of KernelEmitter::opsOfPoint; bounds code size.
constexpr int64_t kMostOps = 2600;

int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }
int64_t bytesOf(Type type) { return runtime::extentOf(ir::runtimeTypeOf(type))->bytes; }
bool isLeafOrView(Value value) { return !value.getDefiningOp() || ir::viewMapOf(value.getDefiningOp()); }

/// Whether the turns of a loop can be written so, and with which vectors.
class TurnsCheck {
public:
  TurnsCheck(ir::LoopOp loop, const Target &target) : loop(loop), target(target), b(loop.getContext()) {}

  bool fits(ArrayRef<func::FuncOp> bodies) {
    for (func::FuncOp body : bodies)
      if (!fits(body, body == bodies.front() ? loop.getXs().size() : 0))
        return false;
    if (longest > 1 && !lanes) // nothing says how long a vector is
      return false;
    int64_t vectors = 0;
    for (Value init : loop.getInits())
      vectors += llvm::divideCeil(elementsOf(init), std::max<int64_t>(1, lanes));
    return ops > 0 && ops <= kMostOps && vectors <= kMostCarried && longest <= kMostVectors * std::max(1, lanes);
  }

private:
  bool fits(func::FuncOp body, size_t scanned) {
    DenseSet<Value> held; // what will be in registers
    for (Value argument : body.getArguments().take_front(loop.getInits().size()))
      if (!hold(argument, held))
        return false;
    for (Operation &op : body.getBody().front().without_terminator()) {
      auto kernel = dyn_cast<ir::KernelOp>(op);
      if (kernel ? !fits(kernel, held) : !isa<ir::ReshapeOp>(op))
        return false;
    }
    // What a body hands on as it came from memory is read there.
    for (Value result : body.getBody().front().getTerminator()->getOperands())
      if (!hold(result, held))
        return false;
    return true;
  }

  bool hold(Value value, DenseSet<Value> &held) {
    int64_t elements = elementsOf(value);
    longest = std::max(longest, elements);
    held.insert(ir::storageOf(value));
    return elements > 0;
  }

  bool fits(ir::KernelOp kernel, DenseSet<Value> &held) {
    if (kernel.getKind() != ir::KernelKind::map || kernel.getLoopsAttr().getMayFail())
      return false;
    KernelEmitter e(kernel, target, b);
    if (e.axes.size() > 1 || (e.axes.size() == 1 && e.axes[0].size < 2))
      return false;
    int64_t elements = e.axes.empty() ? 1 : e.axes[0].size, vectors = 1;
    if (!e.axes.empty()) {
      if (lanes && lanes != e.nativeLanes())
        return false;
      lanes = e.nativeLanes();
      vectors = llvm::divideCeil(elements, e.lanesFor(elements));
    }
    ops += vectors * std::max<int64_t>(1, e.opsOfPoint());
    DenseSet<Value> inputs;
    for (auto [argument, input] : llvm::zip_equal(kernel.getBlock()->getArguments(), kernel.getInputs()))
      if (held.contains(ir::storageOf(input)))
        inputs.insert(argument);
    auto isReadInPlace = [&](Value value) {
      if (!isLeafOrView(value))
        return true;
      std::optional<KernelEmitter::Access> access = e.accessOf(value);
      if (!access || !inputs.contains(access->root) || elementsOf(access->root) == 1)
        return true;
      return elementsOf(access->root) == elements && access->offset == 0 &&
             llvm::all_of(access->strides, [](int64_t stride) { return stride == 1; });
    };
    for (Operation &op : *kernel.getBlock()) {
      if (ir::viewMapOf(&op))
        continue;
      if (isa<ir::Indexed>(op) && op.getNumOperands() > 0) // reads where it wants
        return false;
      if (!llvm::all_of(op.getOperands(), isReadInPlace))
        return false;
    }
    for (auto [i, result] : llvm::enumerate(kernel.getResults())) {
      if (elementsOf(result) != elements ||
          !llvm::all_of(e.outputStrides(i), [](int64_t stride) { return stride == 1; }))
        return false;
      hold(result, held);
    }
    return true;
  }

  ir::LoopOp loop;
  const Target &target;
  OpBuilder b;
  int lanes = 0;
  int64_t ops = 0, longest = 0;
};

/// Writes the function.
class TurnsEmitter {
public:
  TurnsEmitter(ir::LoopOp loop, ArrayRef<func::FuncOp> bodies, const Target &target, func::FuncOp into)
      : loop(loop), bodies(bodies), into(into), b(loop.getContext()), loc(loop.getLoc()) {
    for (func::FuncOp body : bodies)
      for (auto kernel : body.getOps<ir::KernelOp>()) {
        emitters.push_back(std::make_unique<KernelEmitter>(kernel, target, b));
        if (!any || any->axes.empty()) // one with vectors, if there is one
          any = emitters.back().get();
        emitterOf[kernel] = emitters.back().get();
      }
  }

  LogicalResult emit() {
    Block *entry = into.addEntryBlock();
    b.setInsertionPointToStart(entry);
    ValueRange pointers = entry->getArguments().drop_back();
    auto take = [&](size_t count) {
      ValueRange taken = pointers.take_front(count);
      pointers = pointers.drop_front(count);
      return taken;
    };
    ValueRange inits = take(loop.getInits().size()), xs = take(loop.getXs().size()),
               invariants = take(loop.getInvariants().size()), finals = take(loop.getInits().size());
    ValueRange stacks = pointers;
    Value most = arith::IndexCastOp::create(b, loc, b.getIndexType(), entry->getArguments().back());

    SmallVector<Value> state;
    for (auto [init, pointer] : llvm::zip_equal(loop.getInits(), inits))
      llvm::append_range(state, load(pointer, init.getType()));
    auto turn = [&](Value t, ValueRange values) {
      Value row = rowOf(t, most);
      SmallVector<Place> places = stateOf(values);
      for (auto [x, pointer] : llvm::zip_equal(loop.getXs(), xs))
        places.push_back({rowAt(pointer, x.getType(), row), {}});
      for (Value pointer : invariants)
        places.push_back({pointer, {}});
      SmallVector<SmallVector<Value>> results = evaluate(bodies.front(), places);
      SmallVector<Value> next;
      for (ArrayRef<Value> of : ArrayRef(results).take_front(inits.size()))
        llvm::append_range(next, of);
      for (auto [stack, pointer, of] :
           llvm::zip_equal(loop.getStacked(), stacks, ArrayRef(results).drop_front(inits.size())))
        store(of, rowAt(pointer, stack.getType(), row), ir::rowTypeOf(stack.getType()));
      return next;
    };
    Value zero = any->index(0), one = any->index(1), turns = most;
    if (!loop.hasCondition()) {
      auto each = scf::ForOp::create(b, loc, zero, most, one, state);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(each.getBody());
        SmallVector<Value> next = turn(each.getInductionVar(), each.getRegionIterArgs());
        if (!next.empty()) // else the loop was built with its yield
          scf::YieldOp::create(b, loc, next);
      }
      state.assign(each.getResults().begin(), each.getResults().end());
      turns = arith::MaxSIOp::create(b, loc, zero, most);
      return finish(finals, state, turns);
    }
    SmallVector<Value> carried{zero};
    llvm::append_range(carried, state);
    SmallVector<Type> types = llvm::map_to_vector(carried, [](Value value) { return value.getType(); });
    SmallVector<Location> locations(types.size(), loc);
    auto loopOp = scf::WhileOp::create(b, loc, types, carried);
    {
      OpBuilder::InsertionGuard guard(b);
      Block *ask = b.createBlock(&loopOp.getBefore(), {}, types, locations);
      SmallVector<Place> places = stateOf(ask->getArguments().drop_front());
      for (Value pointer : invariants)
        places.push_back({pointer, {}});
      Value wanted = evaluate(bodies.back(), places)[0][0];
      Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, ask->getArgument(0), most);
      scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, more, wanted), ask->getArguments());
      Block *body = b.createBlock(&loopOp.getAfter(), {}, types, locations);
      SmallVector<Value> next = turn(body->getArgument(0), body->getArguments().drop_front());
      next.insert(next.begin(), Value(arith::AddIOp::create(b, loc, body->getArgument(0), one)));
      scf::YieldOp::create(b, loc, next);
    }
    b.setInsertionPointAfter(loopOp);
    return finish(finals, loopOp.getResults().drop_front(), loopOp.getResult(0));
  }

private:
  /// Of a value in a turn: in memory, or in registers.
  struct Place {
    Value pointer;
    SmallVector<Value> held;
  };

  LogicalResult finish(ValueRange finals, ValueRange state, Value turns) {
    for (auto [init, pointer, place] : llvm::zip_equal(loop.getInits(), finals, stateOf(state)))
      store(place.held, pointer, init.getType());
    func::ReturnOp::create(b, loc, Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), turns)));
    return success();
  }

  /// The row that turn t reads and writes. Of more turns than there is room for nothing is kept.
  Value rowOf(Value t, Value most) {
    if (loop.getReversed())
      return arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, most, any->index(1)), t);
    if (loop.hasRoom())
      return arith::MinSIOp::create(b, loc, t,
                                    any->index(std::max<int64_t>(0, static_cast<int64_t>(loop.getLength()) - 1)));
    return t;
  }
  Value rowAt(Value base, Type stack, Value row) {
    return any->elementAfter(base, any->mul(row, bytesOf(ir::rowTypeOf(stack))), b.getI8Type());
  }

  /// The points of a value of so many elements: one scalar, or vectors of which the last may be masked.
  SmallVector<Point> pointsOf(int64_t elements) {
    if (elements == 1)
      return {Point()};
    return any->pointsOfRow(elements);
  }
  SmallVector<Value> load(Value pointer, Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return llvm::map_to_vector(pointsOf(tensor.getNumElements()), [&](const Point &point) {
      return any->load(point, pointer, tensor.getElementType(), stridesOf(point), 0);
    });
  }
  void store(ArrayRef<Value> values, Value pointer, Type type) {
    for (auto [point, value] : llvm::zip_equal(pointsOf(cast<RankedTensorType>(type).getNumElements()), values))
      any->storeAt(point, pointer, value, stridesOf(point), 0);
  }
  static SmallVector<int64_t> stridesOf(const Point &point) { return SmallVector<int64_t>(point.at.size(), 1); }

  SmallVector<Place> stateOf(ValueRange values) {
    SmallVector<Place> places;
    for (Value init : loop.getInits()) {
      size_t count = pointsOf(elementsOf(init)).size();
      places.push_back({{}, llvm::to_vector(values.take_front(count))});
      values = values.drop_front(count);
    }
    return places;
  }

  /// What a body returns, of arguments at these places.
  SmallVector<SmallVector<Value>> evaluate(func::FuncOp body, ArrayRef<Place> arguments) {
    DenseMap<Value, Place> places;
    for (auto [argument, place] : llvm::zip_equal(body.getArguments(), arguments))
      places[argument] = place;
    for (auto kernel : body.getOps<ir::KernelOp>()) {
      KernelEmitter &e = *emitterOf.lookup(kernel);
      SmallVector<KernelEmitter::Input> inputs;
      for (Value input : kernel.getInputs()) {
        const Place &place = places.at(ir::storageOf(input));
        inputs.push_back({place.pointer, place.held});
      }
      for (auto [result, values] : llvm::zip_equal(kernel.getResults(), e.valuesInRegisters(inputs)))
        places[result] = {{}, values};
    }
    SmallVector<SmallVector<Value>> results;
    for (Value result : body.getBody().front().getTerminator()->getOperands()) {
      Place place = places.lookup(ir::storageOf(result));
      results.push_back(place.pointer ? load(place.pointer, result.getType()) : place.held);
    }
    return results;
  }

  ir::LoopOp loop;
  ArrayRef<func::FuncOp> bodies;
  func::FuncOp into;
  OpBuilder b;
  Location loc;
  std::vector<std::unique_ptr<KernelEmitter>> emitters;
  DenseMap<Operation *, KernelEmitter *> emitterOf;
  KernelEmitter *any = nullptr; ///< for loads and stores: how long vectors are is the same for all
};

} // namespace

LoopsInRegisters findTurns(ArrayRef<func::FuncOp> functions, SymbolTable &symbols, const Target &target) {
  LoopsInRegisters found;
  DenseSet<Operation *> called;
  for (func::FuncOp each : functions)
    for (auto op : each.getBody().front().getOps<ir::WithBodies>()) {
      SmallVector<func::FuncOp> bodies;
      for (FlatSymbolRefAttr name : op.bodyNames())
        bodies.push_back(symbols.lookup<func::FuncOp>(name.getAttr()));
      auto loop = dyn_cast<ir::LoopOp>(op.getOperation());
      if (loop && TurnsCheck(loop, target).fits(bodies))
        found.loops[op] = {{}, std::move(bodies)};
      else
        called.insert(bodies.begin(), bodies.end());
    }
  for (auto &[loop, turns] : found.loops)
    for (func::FuncOp body : turns.bodies)
      if (!called.contains(body))
        found.bodies[body] = loop;
  return found;
}

FunctionType turnsType(Operation *op) {
  auto loop = cast<ir::LoopOp>(op);
  Type pointer = LLVM::LLVMPointerType::get(loop.getContext()), number = IntegerType::get(loop.getContext(), 64);
  size_t pointers =
      loop.getInits().size() * 2 + loop.getXs().size() + loop.getInvariants().size() + loop.getStacked().size();
  SmallVector<Type> inputs(pointers, pointer);
  inputs.push_back(number);
  return FunctionType::get(loop.getContext(), inputs, number);
}

LogicalResult emitTurns(Operation *loop, ArrayRef<func::FuncOp> bodies, const Target &target, func::FuncOp into) {
  return TurnsEmitter(cast<ir::LoopOp>(loop), bodies, target, into).emit();
}

bool keepsEachTurn(ir::LoopOp loop) {
  return static_cast<int64_t>(loop.getLength()) > 0 && !loop.hasCondition() && !loop.getLimited() && !loop.hasRoom();
}

SmallVector<StacksOfState> stacksOfState(Operation *op, SymbolTable &symbols) {
  SmallVector<StacksOfState> found;
  auto loop = dyn_cast<ir::LoopOp>(op);
  auto length = loop ? static_cast<int64_t>(loop.getLength()) : 0;
  if (length < 2 || loop.getReversed() || !keepsEachTurn(loop))
    return found;
  auto name = cast<FlatSymbolRefAttr>(loop.getBodies()[0]);
  Block &body = symbols.lookup<func::FuncOp>(name.getAttr()).getBody().front();
  ValueRange given = body.getTerminator()->getOperands(), next = given.take_front(loop.getCarried());
  auto stackOf = [&](Value row) {
    for (auto [stack, value] : llvm::zip_equal(loop.getStacked(), given.drop_front(loop.getCarried())))
      if (ir::storageOf(value) == row)
        return Value(stack);
    return Value();
  };
  for (auto [state, value] : llvm::zip(body.getArguments(), next))
    if (Value before = stackOf(state), after = stackOf(ir::storageOf(value)); before && after && before != after)
      found.push_back({before, after, length});
  return found;
}

} // namespace wg::codegen
