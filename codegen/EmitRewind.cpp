// The code of a rewind: turns from the last one back, each with the state before it, of which some are kept and others
// computed again from the nearest kept one before. With s places for states from here on, n turns are left; then the
// next state is kept m turns further, and those behind it are done first. With b(s, r) = (s + r)! / (s! r!) and the
// least r for which n <= b(s, r), each turn is computed at most r times, and so few in all as can be, if
// m = max(b(s, r - 2), n - b(s - 1, r)) (Griewank and Walther 2000, algorithm 799).
#include "codegen/BodyEmitter.h"

using namespace mlir;

namespace wg::codegen {

namespace {

/// More are of no use: they reach for 2^42 turns in few repetitions, and binomials stay in range.
constexpr int64_t kMostCheckpoints = 1 << 15;

/// Where things lie in the scratch, behind the bodies' workspace.
struct Layout {
  explicit Layout(ir::RewindOp op, int64_t from) {
    checkpoints = std::min(static_cast<int64_t>(op.getCheckpoints()), kMostCheckpoints);
    if (static_cast<int64_t>(op.getLength()) > 0)
      checkpoints = std::min(checkpoints, static_cast<int64_t>(op.getLength()));
    bytes = from;
    auto take = [&](int64_t size) { return std::exchange(bytes, runtime::saturatingAdd(bytes, cacheAligned(size))); };
    for (Type type : op.getInits().getTypes())
      second.push_back(take(bodyBytes(type)));
    for (Type type : op.getFirstState().getTypes()) {
      std::array<int64_t, 2> both;
      for (int64_t &place : both)
        place = take(bodyBytes(type));
      computed.push_back(both);
    }
    for (Type type : op.getFirstState().getTypes()) {
      inState.push_back(stateBytes);
      stateBytes = runtime::saturatingAdd(stateBytes, cacheAligned(bodyBytes(type)));
    }
    turns = take(8 * checkpoints);
    int64_t all = 0;
    kept = take(llvm::MulOverflow(stateBytes, checkpoints, all) ? INT64_MAX : all);
  }

  int64_t checkpoints;
  SmallVector<int64_t> second;                  ///< by carried value: beside its result
  SmallVector<std::array<int64_t, 2>> computed; ///< by part of a state
  int64_t turns, kept;                          ///< of kept states: before which turn they are; they themselves
  SmallVector<int64_t> inState;                 ///< by part of a state
  int64_t stateBytes = 0, bytes;
};

class RewindEmitter : BodyEmitter {
public:
  RewindEmitter(ir::RewindOp op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch)
      : BodyEmitter(op, launch), op(op), advance(bodies[0]), back(bodies[1]), at(op, workspaceOf(bodies)) {}
  void emit();

private:
  Value offset(int64_t bytes) { return launch.byteOffset(launch.scratch, bytes); }
  /// Part k of the kept state number `top`.
  Value kept(Value top, size_t k) { return moved(offset(at.kept + at.inState[k]), mul(top, number(at.stateBytes))); }
  Value turnOf(Value top) { return moved(offset(at.turns), mul(top, number(8))); }
  void keep(Value top, Value turn) {
    LLVM::StoreOp::create(b, loc, turn, turnOf(top), 8);
    for (auto [k, part] : llvm::enumerate(op.getFirstState()))
      copy(get(step, k), kept(top, k), number(bodyBytes(part.getType())));
  }
  Block *block(size_t numbers) {
    Block *made = BodyEmitter::block();
    for (size_t i = 0; i < numbers; ++i)
      made->addArgument(b.getI64Type(), loc);
    return made;
  }
  void go(Block *to, ValueRange values) { cf::BranchOp::create(b, loc, to, values); }
  void goIf(Value condition, Block *to, ValueRange values, Block *otherwise, ValueRange others) {
    cf::CondBranchOp::create(b, loc, condition, to, values, otherwise, others);
  }
  /// Which row belongs to turn t of the first loop.
  Value rowAt(Value t) { return op.getReversed() ? sub(sub(most, number(1)), t) : t; }
  Value splitOf(Value n, Value places);
  void runStep(Value t);
  void runBack(Value t);

  ir::RewindOp op;
  EmittedBody advance, back;
  Layout at;
  Value most;                             ///< the number of turns
  Value step, turned;                     ///< arguments of the two functions
  Value places;                           ///< where carried values are written to, by turns
  SmallVector<Value> steps, rows, stacks; ///< of scanned and stacked tensors
};

} // namespace

int64_t rewindScratchBytes(ir::RewindOp op) { return Layout(op, 0).bytes; }

Value RewindEmitter::splitOf(Value n, Value places) {
  Value one = number(1);
  Block *more = block(2), *grow = block(0), *done = block(0);
  go(more, {one, add(places, one)});
  b.setInsertionPointToStart(more);
  Value r = more->getArgument(0), all = more->getArgument(1); // b(places, r)
  goIf(isLess(all, n), grow, {}, done, {});
  b.setInsertionPointToStart(grow);
  Value next = add(r, one);
  go(more, {next, div(mul(all, add(places, next)), next)});
  b.setInsertionPointToStart(done);
  Value both = add(places, r), fewer = div(mul(all, r), both); // b(places, r - 1)
  Value least = div(mul(fewer, sub(r, one)), arith::MaxSIOp::create(b, loc, sub(both, one), one));
  Value rest = div(mul(all, places), both); // b(places - 1, r)
  return arith::MaxSIOp::create(b, loc, one, arith::MaxSIOp::create(b, loc, least, sub(n, rest)));
}

/// From the state at hand, that before turn t, to the next one.
void RewindEmitter::runStep(Value t) {
  size_t stated = op.getStated(), stepped = op.getStepped(), inputs = stated + stepped + op.getHeld();
  for (auto [k, base] : llvm::enumerate(steps))
    put(rowOf(base, op.getSteps()[k].getType(), rowAt(t)), step, stated + k);
  Value parity = arith::AndIOp::create(b, loc, t, number(1));
  for (size_t k = 0; k < stated; ++k) {
    Value to = moved(offset(at.computed[k][0]), mul(parity, number(at.computed[k][1] - at.computed[k][0])));
    put(to, step, inputs + k);
  }
  call(advance, step);
  for (size_t k = 0; k < stated; ++k)
    put(get(step, inputs + k), step, k);
}

/// Turn t of the second loop, with the state at hand.
void RewindEmitter::runBack(Value t) {
  size_t carried = op.getCarried(), next = 0, inputs = carried + op.getStates().size() + op.getInvariants().size();
  for (auto [k, state] : llvm::enumerate(op.getStates())) {
    Value from = state >= 0 ? get(step, static_cast<size_t>(state)) : Value();
    if (!from) {
      from = rowOf(rows[next], op.getXs()[next].getType(), rowAt(t));
      ++next;
    }
    put(from, turned, carried + k);
  }
  Value parity = mul(arith::AndIOp::create(b, loc, sub(sub(most, number(1)), t), number(1)), number(8));
  for (size_t k = 0; k < carried; ++k)
    put(LLVM::LoadOp::create(b, loc, pointer, moved(slot(places, 2 * k), parity), 8), turned, inputs + k);
  for (auto [k, base] : llvm::enumerate(stacks))
    put(rowOf(base, op.getStacked()[k].getType(), rowAt(t)), turned, inputs + carried + k);
  call(back, turned);
  for (size_t k = 0; k < carried; ++k)
    put(get(turned, inputs + k), turned, k);
}

void RewindEmitter::emit() {
  size_t stated = op.getStated(), stepped = op.getStepped(), held = op.getHeld(), carried = op.getCarried(),
         scanned = op.getStates().size(), invariants = op.getInvariants().size();
  auto length = static_cast<int64_t>(op.getLength());
  step = pointers(2 * stated + stepped + held);
  turned = pointers(2 * carried + scanned + invariants + op.getStacked().size());
  places = pointers(2 * carried);
  for (auto [k, value] : llvm::enumerate(op.getFirstState()))
    put(launch.pointerTo(value), step, k);
  for (auto [k, value] : llvm::enumerate(op.getHeldValues()))
    put(launch.pointerTo(value), step, stated + stepped + k);
  for (auto [k, value] : llvm::enumerate(op.getInits()))
    put(launch.pointerTo(value), turned, k);
  for (auto [k, value] : llvm::enumerate(op.getInvariants()))
    put(launch.pointerTo(value), turned, carried + scanned + k);
  for (auto [from, to] : {std::pair(ValueRange(op.getSteps()), &steps), std::pair(ValueRange(op.getXs()), &rows),
                          std::pair(ValueRange(op.getStacked()), &stacks)})
    for (Value value : from)
      to->push_back(launch.pointerTo(value));
  SmallVector<Value> finals;
  for (auto [k, result] : llvm::enumerate(op.getFinals())) {
    finals.push_back(launch.pointerTo(result));
    put(finals.back(), places, 2 * k);
    put(offset(at.second[k]), places, 2 * k + 1);
  }
  Value zero = number(0), one = number(1);
  most = number(length < 0 ? INT64_MAX : length);
  if (op.getLimited()) {
    Value limit = LLVM::LoadOp::create(b, loc, b.getI64Type(), launch.pointerTo(op.getLimit()), 8);
    most = arith::MinSIOp::create(b, loc, most, arith::MaxSIOp::create(b, loc, limit, zero));
  }
  keep(zero, zero);

  // `end`: the number of turns that are left; `top`: of the last kept state; `p`: of the turn after the state at hand.
  Block *head = block(2), *restore = block(0), *walk = block(2), *choose = block(0), *choosing = block(0),
        *chosen = block(1), *advancing = block(1), *stepping = block(0), *arrived = block(0), *keeping = block(0),
        *turning = block(0), *after = block(0);
  go(head, {most, zero});
  b.setInsertionPointToStart(head);
  Value end = head->getArgument(0), lastKept = head->getArgument(1), last = sub(end, one);
  goIf(isLess(zero, end), restore, {}, after, {});

  b.setInsertionPointToStart(restore);
  for (size_t k = 0; k < stated; ++k)
    put(kept(lastKept, k), step, k);
  go(walk, {LLVM::LoadOp::create(b, loc, b.getI64Type(), turnOf(lastKept), 8), lastKept});

  b.setInsertionPointToStart(walk);
  Value p = walk->getArgument(0), top = walk->getArgument(1);
  goIf(isLess(p, last), choose, {}, turning, {});

  b.setInsertionPointToStart(choose);
  Value free = sub(number(at.checkpoints - 1), top), left = sub(end, p);
  goIf(isLess(zero, free), choosing, {}, chosen, {last});
  b.setInsertionPointToStart(choosing);
  go(chosen, {add(p, splitOf(left, add(free, one)))});
  b.setInsertionPointToStart(chosen);
  Value to = chosen->getArgument(0);
  go(advancing, p);

  b.setInsertionPointToStart(advancing);
  Value q = advancing->getArgument(0);
  goIf(isLess(q, to), stepping, {}, arrived, {});
  b.setInsertionPointToStart(stepping);
  runStep(q);
  go(advancing, add(q, one));

  b.setInsertionPointToStart(arrived);
  Value keeps = arith::AndIOp::create(b, loc, isLess(to, last), isLess(zero, free));
  goIf(keeps, keeping, {}, walk, {to, top});
  b.setInsertionPointToStart(keeping);
  Value above = add(top, one);
  keep(above, to);
  go(walk, {to, above});

  b.setInsertionPointToStart(turning);
  runBack(last);
  // A state before a turn that is done is needed no more.
  Value turn = LLVM::LoadOp::create(b, loc, b.getI64Type(), turnOf(top), 8);
  Value isDone = arith::AndIOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, turn, last),
                                       isLess(zero, top));
  go(head, {last, arith::SelectOp::create(b, loc, isDone, sub(top, one), top)});

  b.setInsertionPointToStart(after);
  if (length >= 0)
    for (auto [k, base] : llvm::enumerate(stacks))
      clearRows(base, op.getStacked()[k].getType(), most);
  for (size_t k = 0; k < carried; ++k)
    copyUnlessThere(get(turned, k), finals[k], op.getFinals()[k].getType());
}

void emitRewind(ir::RewindOp op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch) {
  RewindEmitter(op, bodies, launch).emit();
}

} // namespace wg::codegen
