#include "codegen/BodyEmitter.h"

#include "codegen/EmitTurns.h"
#include "ir/Calls.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace wg::codegen {

int64_t workspaceOf(ArrayRef<EmittedBody> bodies) {
  int64_t most = 0;
  for (const EmittedBody &body : bodies)
    most = std::max(most, body.workspaceBytes);
  return cacheAligned(most);
}

bool mayLackRoom(Operation *op) {
  auto loop = dyn_cast<ir::LoopOp>(op);
  return loop && loop.hasRoom();
}

int64_t bodyScratchBytes(Operation *op, ArrayRef<EmittedBody> bodies) {
  int64_t bytes = workspaceOf(bodies);
  if (auto loop = dyn_cast<ir::LoopOp>(op))
    for (Type type : loop.getInits().getTypes())
      bytes = runtime::saturatingAdd(bytes, cacheAligned(bodyBytes(type)));
  if (auto rewind = dyn_cast<ir::RewindOp>(op))
    bytes = runtime::saturatingAdd(bytes, rewindScratchBytes(rewind));
  return bytes;
}

static SmallVector<StateInStack> statesInStacks(ir::LoopOp loop, func::FuncOp body) {
  SmallVector<StateInStack> found;
  if (!keepsEachTurn(loop))
    return found;
  Block &block = body.getBody().front();
  ValueRange given = block.getTerminator()->getOperands();
  unsigned carried = loop.getCarried(), stacks = given.size() - carried;
  llvm::SmallBitVector taken(stacks);
  auto stackOf = [&](Value row) -> std::optional<unsigned> {
    for (unsigned s = 0; s < stacks; ++s)
      if (!taken[s] && ir::storageOf(given[carried + s]) == row)
        return s;
    return std::nullopt;
  };
  for (unsigned k = 0; k < carried; ++k) {
    bool isAfter = true;
    std::optional<unsigned> stack = stackOf(ir::storageOf(given[k]));
    if (!stack)
      stack = stackOf(block.getArgument(k)), isAfter = false;
    if (!stack)
      continue;
    taken.set(*stack);
    found.push_back({k, *stack, isAfter});
  }
  return found;
}

StatesInStacks findStatesInStacks(ArrayRef<func::FuncOp> functions, const SymbolTable &symbols) {
  DenseMap<Operation *, int64_t> uses;
  SmallVector<std::pair<ir::LoopOp, func::FuncOp>> loops;
  for (func::FuncOp function : functions)
    for (auto op : function.getBody().front().getOps<ir::WithBodies>()) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++uses[symbols.lookup(name.getAttr())];
      if (auto loop = dyn_cast<ir::LoopOp>(op.getOperation()))
        loops.push_back({loop, symbols.lookup<func::FuncOp>(op.bodyNames().front().getAttr())});
    }
  StatesInStacks found;
  for (auto [loop, body] : loops) {
    if (uses.lookup(body) > 1)
      continue;
    SmallVector<StateInStack> states = statesInStacks(loop, body);
    for (const StateInStack &state : states)
      found.resultsOfBody[body].push_back(loop.getCarried() + state.stack);
    found.ofLoop[loop] = std::move(states);
  }
  return found;
}

static void emitCond(ir::CondOp op, ArrayRef<EmittedBody> branches, BodyLaunch &launch) {
  BodyEmitter e(op, launch);
  OpBuilder &b = e.b;
  size_t numInputs = op.getInputs().size();
  Value args = e.pointers(numInputs + op->getNumResults());
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    e.put(launch.pointerTo(input), args, i);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    e.put(launch.pointerTo(result), args, numInputs + i);
  Type element = cast<RankedTensorType>(op.getSelector().getType()).getElementType();
  bool isBool = element.isSignlessInteger(1);
  Type stored = isBool ? Type(b.getI8Type()) : element;
  Value selector = LLVM::LoadOp::create(b, e.loc, stored, launch.pointerTo(op.getSelector()),
                                        isBool ? 1 : element.getIntOrFloatBitWidth() / 8);
  Block *after = e.block();
  // The first branch whose number the selector does not exceed, else the last.
  for (size_t i = 0; i < branches.size(); ++i) {
    if (i + 1 < branches.size()) {
      Value limit = arith::ConstantOp::create(b, e.loc, b.getIntegerAttr(stored, static_cast<int64_t>(i)));
      Value taken = arith::CmpIOp::create(b, e.loc, isBool ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sle,
                                          selector, limit);
      Block *here = e.block(), *next = e.block();
      cf::CondBranchOp::create(b, e.loc, taken, here, ValueRange(), next, ValueRange());
      b.setInsertionPointToStart(here);
      e.call(branches[i], args);
      cf::BranchOp::create(b, e.loc, after);
      b.setInsertionPointToStart(next);
    } else {
      e.call(branches[i], args);
      cf::BranchOp::create(b, e.loc, after);
    }
  }
  b.setInsertionPointToStart(after);
}

/// The most turns that a loop runs, apart from its condition.
static Value mostTurns(ir::LoopOp op, BodyEmitter &e) {
  int64_t length = static_cast<int64_t>(op.getLength());
  Value most = e.number(length < 0 || op.hasRoom() ? INT64_MAX : length);
  if (!op.getLimited())
    return most;
  Value limit = LLVM::LoadOp::create(e.b, e.loc, e.b.getI64Type(), e.launch.pointerTo(op.getLimit()), 8);
  return arith::MinSIOp::create(e.b, e.loc, most, arith::MaxSIOp::create(e.b, e.loc, limit, e.number(0)));
}

/// After so many turns: their number, an error where they were too many, and zeros in the rows that none of them gave.
static void endLoop(ir::LoopOp op, Value turns, BodyEmitter &e) {
  int64_t length = static_cast<int64_t>(op.getLength());
  if (op.hasCondition())
    LLVM::StoreOp::create(e.b, e.loc, turns, e.launch.pointerTo(op.getTurns()), 8);
  if (op.hasRoom())
    e.failIf(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sgt, turns, e.number(length)), op, kRoomError,
             {turns, e.number(static_cast<int64_t>(op.getRoom()))});
  else if ((op.hasCondition() || op.getLimited()) && length >= 0)
    for (Value stack : op.getStacked())
      e.clearRows(e.launch.pointerTo(stack), stack.getType(), turns);
}

/// The call of a loop that runs in registers.
static void emitTurnsCall(ir::LoopOp op, func::FuncOp turns, BodyLaunch &launch) {
  BodyEmitter e(op, launch);
  SmallVector<Value> operands;
  for (ValueRange values : {ValueRange(op.getInits()), ValueRange(op.getXs()), ValueRange(op.getInvariants()),
                            ValueRange(op.getFinals()), ValueRange(op.getStacked())})
    for (Value value : values)
      operands.push_back(launch.pointerTo(value));
  operands.push_back(mostTurns(op, e));
  endLoop(op, func::CallOp::create(e.b, e.loc, turns, operands).getResult(0), e);
}

static void emitLoop(ir::LoopOp op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch) {
  BodyEmitter e(op, launch);
  OpBuilder &b = e.b;
  Location loc = e.loc;
  size_t carried = op.getCarried(), scanned = op.getScanned(), numInvariants = op.getInvariants().size(),
         stacked = op.getStacked().size(), numInputs = carried + scanned + numInvariants;
  bool asks = op.hasCondition();
  int64_t length = static_cast<int64_t>(op.getLength());
  bool isKnown = !asks && !op.getLimited();

  // The arguments of the body: carried, rows, invariants, and where the results go. Those of the condition: carried,
  // invariants, and the answer.
  Value args = e.pointers(numInputs + carried + stacked), asked, answer;
  for (auto [k, init] : llvm::enumerate(op.getInits()))
    e.put(launch.pointerTo(init), args, k);
  SmallVector<Value> rows, stacks;
  for (Value x : op.getXs())
    rows.push_back(launch.pointerTo(x));
  for (Value y : op.getStacked())
    stacks.push_back(launch.pointerTo(y));
  for (auto [k, invariant] : llvm::enumerate(op.getInvariants()))
    e.put(launch.pointerTo(invariant), args, carried + scanned + k);
  if (asks) {
    asked = e.pointers(carried + numInvariants + 1);
    answer = e.pointers(1);
    for (auto [k, invariant] : llvm::enumerate(op.getInvariants()))
      e.put(launch.pointerTo(invariant), asked, carried + k);
    e.put(answer, asked, carried + numInvariants);
  }
  // A carried value is written to its result and to a second place by turns; where the number of turns is known, the
  // last one writes the result.
  Value places = e.pointers(2 * carried);
  int64_t second = workspaceOf(bodies);
  SmallVector<Value> finals;
  for (auto [k, result] : llvm::enumerate(op.getFinals())) {
    finals.push_back(launch.pointerTo(result));
    Value other = launch.byteOffset(launch.scratch, second);
    second += cacheAligned(bodyBytes(result.getType()));
    bool firstIsResult = !isKnown || length % 2 == 1;
    e.put(firstIsResult ? finals.back() : other, places, 2 * k);
    e.put(firstIsResult ? other : finals.back(), places, 2 * k + 1);
  }
  auto rowOf = [&](const StateInStack &state, Value i) {
    return e.rowOf(stacks[state.stack], op.getStacked()[state.stack].getType(), i);
  };
  for (const StateInStack &state : launch.states)
    if (!state.isAfter) {
      Value first = rowOf(state, e.number(op.getReversed() ? length - 1 : 0));
      e.copy(e.get(args, state.state), first, e.number(bodyBytes(op.getFinals()[state.state].getType())));
      e.put(first, args, state.state);
    }

  Value zero = e.number(0), one = e.number(1), most = mostTurns(op, e);
  Block *head = e.block(), *turn = e.block(), *after = e.block();
  Value t = head->addArgument(b.getI64Type(), loc), turns = after->addArgument(b.getI64Type(), loc);
  cf::BranchOp::create(b, loc, head, zero);
  b.setInsertionPointToStart(head);
  Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, t, most);
  if (asks) {
    Block *ask = e.block();
    cf::CondBranchOp::create(b, loc, more, ask, ValueRange(), after, ValueRange{t});
    b.setInsertionPointToStart(ask);
    for (size_t k = 0; k < carried; ++k)
      e.put(e.get(args, k), asked, k);
    e.call(bodies[1], asked);
    Value said = LLVM::LoadOp::create(b, loc, b.getI8Type(), answer, 1);
    Value no = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
    more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, said, no);
  }
  cf::CondBranchOp::create(b, loc, more, turn, ValueRange(), after, ValueRange{t});

  b.setInsertionPointToStart(turn);
  Value i = t;
  if (op.getReversed())
    i = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, most, one), t);
  if (op.hasRoom()) // of more turns nothing is kept: they are counted
    i = arith::MinSIOp::create(b, loc, i, e.number(std::max<int64_t>(0, length - 1)));
  for (auto [k, base] : llvm::enumerate(rows))
    e.put(e.rowOf(base, op.getXs()[k].getType(), i), args, carried + k);
  Value parity = arith::MulIOp::create(b, loc, arith::AndIOp::create(b, loc, t, one), e.number(8));
  for (size_t k = 0; k < carried; ++k)
    e.put(LLVM::LoadOp::create(b, loc, e.pointer, e.moved(e.slot(places, 2 * k), parity), 8), args, numInputs + k);
  for (const StateInStack &state : launch.states) {
    Value row = state.isAfter ? i : e.add(i, e.number(op.getReversed() ? -1 : 1)), place = rowOf(state, row);
    if (!state.isAfter) {
      Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, t, e.number(length - 1));
      place = arith::SelectOp::create(b, loc, isLast, finals[state.state], place);
    }
    e.put(place, args, numInputs + state.state);
  }
  for (auto [k, base] : llvm::enumerate(stacks))
    e.put(e.rowOf(base, op.getStacked()[k].getType(), i), args, numInputs + carried + k);
  e.call(bodies[0], args);
  for (size_t k = 0; k < carried; ++k)
    e.put(e.get(args, numInputs + k), args, k);
  cf::BranchOp::create(b, loc, head, ValueRange{Value(arith::AddIOp::create(b, loc, t, one))});

  b.setInsertionPointToStart(after);
  endLoop(op, turns, e);
  for (const StateInStack &state : launch.states)
    if (Value last = op.getFinals()[state.state]; state.isAfter && !last.use_empty())
      e.copy(e.get(args, state.state), finals[state.state], e.number(bodyBytes(last.getType())));
  if (isKnown && length > 0)
    return;
  // Where it is the other place, or the initial one, that has the last value.
  for (size_t k = 0; k < carried; ++k)
    e.copyUnlessThere(e.get(args, k), finals[k], op.getFinals()[k].getType());
}

void emitBodyOp(Operation *op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch, func::FuncOp turns) {
  if (auto loop = dyn_cast<ir::LoopOp>(op); loop && turns)
    emitTurnsCall(loop, turns, launch);
  else if (loop)
    emitLoop(loop, bodies, launch);
  else if (auto rewind = dyn_cast<ir::RewindOp>(op))
    emitRewind(rewind, bodies, launch);
  else
    emitCond(cast<ir::CondOp>(op), bodies, launch);
}

} // namespace wg::codegen
