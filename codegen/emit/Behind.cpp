// A turn of a recurrent network of two layers waits for itself: the second layer reads what the first one gives.
//
//   for t: h = f(h, x[t])              h = f(h, x[0])
//          g = k(g, h)           ->    for t from 1: g = k(g, h) beside h = f(h, x[t])
//                                      g = k(g, h)
//
// One turn behind, the second layer has what it reads when the turn begins: the two chains run side by side, and only
// where they are what a turn waits for, and not the number of its operations. The two layers of step i of the suite:
// 109 us for 1,023 turns before, 95 after. (Software pipelining, Lam 1988, of two stages.) The stages are found by the
// state: what is carried, with all that it follows from in any turn, can run ahead of the rest; of these parts that one
// does for which the longer of the two chains is shortest. A function is twenty operations in a chain, as everywhere
// here.
// Legal because nothing in these loops reads what one of its turns has stored, and each value is computed as before,
// only later. Cost: the code of a turn twice, and what goes from one stage to the other is carried.
#include "codegen/emit/Behind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace wg::codegen {

namespace {

/// What an operation takes: of the pipes, of which there are two, and until its result is there.
struct Cost {
  int64_t operations, latency;
};
Cost costOf(Operation *op) {
  if (llvm::none_of(op->getResultTypes(), [](Type type) { return isa<VectorType, FloatType>(type); }) ||
      isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
    return {0, 0};
  if (isa<arith::DivFOp, math::SqrtOp>(op))
    return {8, 20};
  if (isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp, math::CopySignOp, math::FmaOp, math::FloorOp>(op))
    return {20, 80};
  return {1, 4};
}
/// The value that an op stores, or null.
Value storedBy(Operation *op) {
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return store.getValue();
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return store.getValue();
  return {};
}

class Stages {
public:
  explicit Stages(scf::ForOp loop) : loop(loop), body(*loop.getBody()), yield(body.getTerminator()) {}

  /// Whether the loop is better in two stages, which are then known.
  bool find() {
    state = loop.getInitArgs().size();
    if (state < 2 || !isPlain())
      return false;
    findReads();
    Chain whole;
    int64_t all = 0;
    for (Operation &op : body.without_terminator())
      all += costOf(&op).operations, whole.add(&op);
    if (all >= 2 * whole.longest) // bound by the pipes
      return false;
    int64_t best = whole.longest * 3 / 4;
    SmallVector<int64_t> ends; // of the part of the state that each follows from
    for (unsigned i = 0; i < state; ++i) {
      int64_t end = 0;
      for (unsigned j : reads[i].set_bits())
        end = std::max(end, whole.endOf(yield->getOperand(j)));
      ends.push_back(end);
    }
    llvm::BitVector ahead;
    for (int64_t end : ends) {
      llvm::BitVector candidate(state);
      for (unsigned i = 0; i < state; ++i)
        candidate[i] = ends[i] <= end;
      if (candidate.all())
        continue;
      divide(candidate);
      Chain chains[2];
      for (Operation &op : body.without_terminator())
        for (int stage : {0, 1})
          if (stages[stage].contains(&op))
            chains[stage].add(&op);
      if (int64_t longest = std::max(chains[0].longest, chains[1].longest); longest <= best)
        best = longest, ahead = candidate;
    }
    if (ahead.empty())
      return false;
    divide(ahead);
    return true;
  }

  void write() {
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    Value first = loop.getLowerBound(), end = loop.getUpperBound(), one = loop.getStep();
    Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, end);
    auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), any, /*withElseRegion=*/true);
    OpBuilder none = branch.getElseBodyBuilder();
    scf::YieldOp::create(none, loc, loop.getInitArgs());

    b = branch.getThenBodyBuilder();
    IRMapping before = mapping(first, loop.getInitArgs());
    clone(b, 0, before);
    SmallVector<Value> carried;
    for (unsigned i = 0; i < state; ++i)
      carried.push_back(isAhead[i] ? next(i, before) : Value(loop.getInitArgs()[i]));
    for (Value value : handedOn)
      carried.push_back(before.lookup(value));
    auto both = scf::ForOp::create(b, loc, arith::AddIOp::create(b, loc, first, one), end, one, carried);
    {
      OpBuilder inside = OpBuilder::atBlockBegin(both.getBody());
      ValueRange given = both.getRegionIterArgs();
      Value at = both.getInductionVar();
      IRMapping ahead = mapping(at, given), behind = mapping(arith::SubIOp::create(inside, loc, at, one), given);
      hand(behind, given.drop_front(state));
      // By turns, as much of one as of the other: neither is written far behind the operations that it runs beside.
      size_t done[2] = {0, 0};
      while (done[0] < stages[0].size() || done[1] < stages[1].size()) {
        int stage = done[0] * stages[1].size() <= done[1] * stages[0].size() && done[0] < stages[0].size() ? 0 : 1;
        if (done[1] == stages[1].size())
          stage = 0;
        inside.clone(*stages[stage][done[stage]++], stage == 0 ? ahead : behind);
      }
      SmallVector<Value> results;
      for (unsigned i = 0; i < state; ++i)
        results.push_back(next(i, isAhead[i] ? ahead : behind));
      for (Value value : handedOn)
        results.push_back(ahead.lookup(value));
      scf::YieldOp::create(inside, loc, results);
    }
    IRMapping after = mapping(arith::SubIOp::create(b, loc, end, one), both.getResults());
    hand(after, both.getResults().drop_front(state));
    clone(b, 1, after);
    SmallVector<Value> finals;
    for (unsigned i = 0; i < state; ++i)
      finals.push_back(isAhead[i] ? both.getResult(i) : next(i, after));
    scf::YieldOp::create(b, loc, finals);
    loop->replaceAllUsesWith(branch);
    loop.erase();
  }

private:
  /// When each value is there, its operands outside of the chain being there at once.
  struct Chain {
    void add(Operation *op) {
      int64_t start = 0;
      for (Value operand : op->getOperands())
        start = std::max(start, ends.lookup(operand));
      for (Value result : op->getResults())
        ends[result] = start + costOf(op).latency;
      longest = std::max(longest, start + costOf(op).latency);
    }
    int64_t endOf(Value value) { return ends.lookup(value); }
    DenseMap<Value, int64_t> ends;
    int64_t longest = 0;
  };

  bool isPlain() {
    return llvm::all_of(body.without_terminator(), [](Operation &op) {
      return op.getNumRegions() == 0 && !isa<CallOpInterface>(op) && (op.getNumResults() > 0 || storedBy(&op));
    });
  }

  /// For each part of the state those that it follows from, in any number of turns, and itself.
  void findReads() {
    DenseMap<Value, llvm::BitVector> of;
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      llvm::BitVector own(state);
      own.set(static_cast<unsigned>(i));
      of[argument] = own;
    }
    auto join = [&](llvm::BitVector &all, Value value) {
      if (auto known = of.find(value); known != of.end())
        all |= known->second;
    };
    for (Operation &op : body.without_terminator()) {
      llvm::BitVector all(state);
      for (Value operand : op.getOperands())
        join(all, operand);
      for (Value result : op.getResults())
        of[result] = all;
    }
    for (unsigned i = 0; i < state; ++i) {
      llvm::BitVector all(state);
      all.set(i);
      join(all, yield->getOperand(i));
      reads.push_back(all);
    }
    for (unsigned through = 0; through < state; ++through)
      for (llvm::BitVector &each : reads)
        if (each.test(through))
          each |= reads[through];
    for (auto &[value, all] : of)
      if (all.none())
        isOfNoState.insert(value);
  }

  /// Places, and what lies there: each stage has its own.
  bool isFetched(Operation *op) {
    return costOf(op).latency == 0 && op->getNumResults() > 0 &&
           llvm::all_of(op->getResults(), [&](Value result) { return isOfNoState.contains(result); });
  }

  /// The ops that the state `ahead` needs, with the stores of what they make, and all others.
  void divide(const llvm::BitVector &ahead) {
    isAhead = ahead;
    handedOn.clear();
    DenseSet<Operation *> needed[2];
    auto need = [&](int stage, Value root) {
      SmallVector<Value> work{root};
      while (!work.empty()) {
        Value value = work.pop_back_val();
        Operation *op = value.getDefiningOp();
        if (stage == 1 && isMadeAhead(value, needed[0])) {
          handedOn.insert(value);
          continue;
        }
        if (op && op->getBlock() == &body && needed[stage].insert(op).second)
          llvm::append_range(work, op->getOperands());
      }
    };
    for (unsigned i : ahead.set_bits())
      need(0, yield->getOperand(i));
    SmallVector<Operation *> later;
    for (Operation &op : body.without_terminator())
      if (Value stored = storedBy(&op)) {
        int stage = isMadeAhead(stored, needed[0]) ? 0 : 1;
        if (stage == 1) {
          later.push_back(&op);
          continue;
        }
        needed[0].insert(&op);
        for (Value operand : op.getOperands())
          need(0, operand);
      }
    for (Operation *op : later) {
      needed[1].insert(op);
      for (Value operand : op->getOperands())
        need(1, operand);
    }
    for (unsigned i = 0; i < state; ++i)
      if (!ahead.test(i))
        need(1, yield->getOperand(i));
    for (int stage : {0, 1}) {
      stages[stage].clear();
      for (Operation &op : body.without_terminator())
        if (needed[stage].contains(&op))
          stages[stage].insert(&op);
    }
  }
  bool isMadeAhead(Value value, const DenseSet<Operation *> &ahead) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &body && argument != loop.getInductionVar() &&
             isAhead.test(argument.getArgNumber() - 1);
    return ahead.contains(value.getDefiningOp()) && !isFetched(value.getDefiningOp());
  }

  IRMapping mapping(Value turn, ValueRange given) {
    IRMapping map;
    map.map(loop.getInductionVar(), turn);
    map.map(loop.getRegionIterArgs(), given.take_front(state));
    return map;
  }
  void hand(IRMapping &map, ValueRange given) {
    for (auto [value, known] : llvm::zip_equal(handedOn, given))
      map.map(value, known);
  }
  void clone(OpBuilder &b, int stage, IRMapping &map) {
    for (Operation *op : stages[stage])
      b.clone(*op, map);
  }
  Value next(unsigned i, const IRMapping &map) { return map.lookupOrDefault(yield->getOperand(i)); }

  scf::ForOp loop;
  Block &body;
  Operation *yield;
  unsigned state = 0; ///< how many values are carried
  SmallVector<llvm::BitVector> reads;
  DenseSet<Value> isOfNoState;
  llvm::BitVector isAhead;
  llvm::SetVector<Operation *> stages[2]; ///< ahead, and a turn behind
  llvm::SetVector<Value> handedOn;        ///< from the first to the second
};

} // namespace

void runBehind(func::FuncOp turns) {
  SmallVector<scf::ForOp> loops;
  turns.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    if (Stages stages(loop); stages.find())
      stages.write();
}

} // namespace wg::codegen
