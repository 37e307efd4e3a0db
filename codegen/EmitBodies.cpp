#include "codegen/EmitBodies.h"

#include "ir/Bridge.h"
#include "ir/Calls.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;

namespace wg::codegen {

static int64_t bytesOf(Type type) { return runtime::extentOf(ir::runtimeTypeOf(type))->bytes; }
static int64_t aligned(int64_t bytes) { return runtime::saturatingAdd(bytes, 63) / 64 * 64; }

static int64_t workspaceOf(ArrayRef<EmittedBody> bodies) {
  int64_t most = 0;
  for (const EmittedBody &body : bodies)
    most = std::max(most, body.workspaceBytes);
  return aligned(most);
}

bool mayLackRoom(Operation *op) {
  auto loop = dyn_cast<ir::LoopOp>(op);
  return loop && loop.hasRoom();
}

int64_t bodyScratchBytes(Operation *op, ArrayRef<EmittedBody> bodies) {
  int64_t bytes = workspaceOf(bodies);
  if (auto loop = dyn_cast<ir::LoopOp>(op))
    for (Type type : loop.getInits().getTypes())
      bytes = runtime::saturatingAdd(bytes, aligned(bytesOf(type)));
  return bytes;
}

namespace {

/// Writes the code of one op.
class Emitter {
public:
  Emitter(Operation *op, BodyLaunch &launch)
      : launch(launch), b(launch.b), loc(op->getLoc()), pointer(LLVM::LLVMPointerType::get(op->getContext())) {}

  Value number(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); }
  /// Room for `count` pointers, on the stack.
  Value pointers(size_t count) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&launch.frame.getBody().front());
    Value size =
        LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(std::max<size_t>(1, count))));
    return LLVM::AllocaOp::create(b, loc, pointer, pointer, size, 8);
  }
  Value slot(Value list, size_t i) { return launch.byteOffset(list, static_cast<int64_t>(8 * i)); }
  void put(Value value, Value list, size_t i) { LLVM::StoreOp::create(b, loc, value, slot(list, i), 8); }
  Value get(Value list, size_t i) { return LLVM::LoadOp::create(b, loc, pointer, slot(list, i), 8); }
  Value moved(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(bytes)});
  }
  void call(const EmittedBody &body, Value args) {
    auto made = func::CallOp::create(b, loc, body.function, ValueRange{args, launch.scratch, launch.scratch});
    if (body.mayFail)
      launch.returnIfError(made.getResult(0), launch.scratch);
  }
  /// Ends the frame with this error; `values` are at fault.
  void failIf(Value fails, Operation *op, StringRef text, ArrayRef<Value> values) {
    Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value code = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(launch.addError(op, text)));
    for (auto [i, value] : llvm::enumerate(values))
      LLVM::StoreOp::create(b, loc, value, slot(launch.scratch, i), 8);
    launch.returnIfError(arith::SelectOp::create(b, loc, fails, code, none), launch.scratch);
  }
  Block *block() {
    OpBuilder::InsertionGuard guard(b);
    return b.createBlock(&launch.frame.getBody());
  }

  BodyLaunch &launch;
  OpBuilder &b;
  Location loc;
  Type pointer;
};

} // namespace

static void emitCond(ir::CondOp op, ArrayRef<EmittedBody> branches, BodyLaunch &launch) {
  Emitter e(op, launch);
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

static void emitLoop(ir::LoopOp op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch) {
  Emitter e(op, launch);
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
    second += aligned(bytesOf(result.getType()));
    bool firstIsResult = !isKnown || length % 2 == 1;
    e.put(firstIsResult ? finals.back() : other, places, 2 * k);
    e.put(firstIsResult ? other : finals.back(), places, 2 * k + 1);
  }

  Value zero = e.number(0), one = e.number(1), most = e.number(length < 0 || op.hasRoom() ? INT64_MAX : length);
  if (op.getLimited()) {
    Value limit = LLVM::LoadOp::create(b, loc, b.getI64Type(), launch.pointerTo(op.getLimit()), 8);
    most = arith::MinSIOp::create(b, loc, most, arith::MaxSIOp::create(b, loc, limit, zero));
  }
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
  auto rowOf = [&](Value base, Type type) {
    int64_t bytes = bytesOf(ir::rowTypeOf(type));
    return e.moved(base, arith::MulIOp::create(b, loc, i, e.number(bytes)));
  };
  for (auto [k, base] : llvm::enumerate(rows))
    e.put(rowOf(base, op.getXs()[k].getType()), args, carried + k);
  Value parity = arith::MulIOp::create(b, loc, arith::AndIOp::create(b, loc, t, one), e.number(8));
  for (size_t k = 0; k < carried; ++k)
    e.put(LLVM::LoadOp::create(b, loc, e.pointer, e.moved(e.slot(places, 2 * k), parity), 8), args, numInputs + k);
  for (auto [k, base] : llvm::enumerate(stacks))
    e.put(rowOf(base, op.getStacked()[k].getType()), args, numInputs + carried + k);
  e.call(bodies[0], args);
  for (size_t k = 0; k < carried; ++k)
    e.put(e.get(args, numInputs + k), args, k);
  cf::BranchOp::create(b, loc, head, ValueRange{Value(arith::AddIOp::create(b, loc, t, one))});

  b.setInsertionPointToStart(after);
  if (asks)
    LLVM::StoreOp::create(b, loc, turns, launch.pointerTo(op.getTurns()), 8);
  if (op.hasRoom())
    e.failIf(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, turns, e.number(length)), op, kRoomError,
             {turns, e.number(static_cast<int64_t>(op.getRoom()))});
  else if (!isKnown && length >= 0)
    for (auto [k, base] : llvm::enumerate(stacks)) { // rows that no turn gave
      auto tensor = cast<RankedTensorType>(op.getStacked()[k].getType());
      Value bytes = e.number(bytesOf(ir::rowTypeOf(tensor)));
      Value done = arith::MulIOp::create(b, loc, turns, bytes);
      Value left = arith::SubIOp::create(b, loc, e.number(bytesOf(tensor)), done);
      Value nothing = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
      LLVM::MemsetOp::create(b, loc, e.moved(base, done), nothing, left, /*isVolatile=*/false);
    }
  if (isKnown && length > 0)
    return;
  // Where it is the other place, or the initial one, that has the last value.
  for (size_t k = 0; k < carried; ++k) {
    Value last = e.get(args, k);
    Value isThere = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, last, finals[k]);
    Value bytes = arith::SelectOp::create(b, loc, isThere, zero, e.number(bytesOf(op.getFinals()[k].getType())));
    LLVM::MemcpyOp::create(b, loc, finals[k], last, bytes, /*isVolatile=*/false);
  }
}

void emitBodyOp(Operation *op, ArrayRef<EmittedBody> bodies, BodyLaunch &launch) {
  if (auto loop = dyn_cast<ir::LoopOp>(op))
    emitLoop(loop, bodies, launch);
  else
    emitCond(cast<ir::CondOp>(op), bodies, launch);
}

} // namespace wg::codegen
