// A loop that carries more than registers hold, as loops of parts of what it carries.
//
//   %s:3 = wg.loop [@turn](%a, %b, %c) ...    %s:2 = wg.loop [@turn_part0](%a, %c) ...   (stacks a)
//                                       ->    %t   = wg.loop [@turn_part1](%b, %s#2) ...
//   func @turn(%a, %b, %c) {                  func @turn_part0(%a, %c) {
//     %a1 = wg.mul %a, %a                       %a1 = wg.mul %a, %a
//     %c1 = wg.add %c, %a1                      %c1 = wg.add %c, %a1
//     %b1 = wg.mul %a, %b                       return %a1, %c1, %a
//     return %a1, %b1, %c1                    func @turn_part1(%b, %a) {
//                                               %b1 = wg.mul %a, %b ...
//
// Loop distribution (Kennedy and McKinley 1990). The adjoint of a recurrent network of several layers carries the
// cotangents of each layer's state and the sums of its parameters' gradients, and a layer reads of the one above one
// row a turn: layer by layer, the sums stay in registers. What is carried falls into parts that follow from each other
// (strongly connected components); a sum over the turns goes with the part that it reads, parts that fit together stay
// together, and what a later loop reads of an earlier one's turns is stacked for it.
// Only loops of small elementwise turns, whose state is in registers (codegen/EmitTurns), and only where what need not
// be spilled is twice what is stacked and read again; not where a part would wait for its own chain, which other parts
// fill, nor where the stacks are much beside what the loop reads and writes anyhow.
// Legal because the ops are pure and cannot fail; each value is computed as before, but for which products and sums
// contract in machine code. Cost: the ops times the parts of the state, both of which are bounded; and as many rows as
// there are turns for what is handed on.
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Views.h"
#include "passes/Cheap.h"
#include "passes/Invariants.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_DISTRIBUTELOOPS
#include "passes/Passes.h.inc"

namespace {

/// A register with AVX-512. Elsewhere they are shorter and fewer, and a turn spills earlier.
constexpr int64_t kRegister = 64;
/// Bytes of a value and operations of a turn beyond which no loop has its state in registers (EmitTurns.cpp), and how
/// many values such a loop may carry to be looked at.
constexpr int64_t kMostBytes = 4 * kRegister, kMostWork = 2600;
constexpr unsigned kMostState = 256;

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  return llvm::alignTo(llvm::divideCeil(bits, 8), kRegister);
}

/// How long its result takes, in turns of one unit.
int64_t latencyOf(Operation *op) {
  if (!isa<ir::Scalar>(op))
    return 0;
  return op->hasTrait<ir::IsTranscendental>() ? 80 : 4;
}
/// Operations on one register.
int64_t workOf(Operation *op) {
  if (!isa<ir::Scalar>(op))
    return 0;
  return bytesOf(op->getResult(0)) / kRegister * (op->hasTrait<ir::IsTranscendental>() ? 20 : 1);
}

/// The parts of one loop.
class Parts {
public:
  Parts(ir::LoopOp loop, func::FuncOp body, int64_t held)
      : loop(loop), body(body), block(body.getBody().front()), yield(block.getTerminator()), held(held),
        carried(loop.getInits().size()) {}

  /// Whether the loop is better in parts, which are then known.
  bool find() {
    if (!isPlain())
      return false;
    findReads();
    if (!isReadInPlace())
      return false;
    join();
    if (parts.size() < 2)
      return false;
    divide();
    return pays();
  }

  void write(SymbolTable &symbols) {
    OpBuilder b(loop);
    DenseMap<Value, Value> stackOf; // of what is handed on
    SmallVector<Value> results(loop->getNumResults());
    ValueRange rows = yield->getOperands().drop_front(carried);
    for (auto [number, part] : llvm::enumerate(parts)) {
      SmallVector<Value> operands, inputs, returned;
      auto take = [&](Value argument, Value given) {
        inputs.push_back(argument);
        operands.push_back(given);
      };
      for (unsigned i : part.state) {
        take(block.getArgument(i), loop.getInits()[i]);
        returned.push_back(yield->getOperand(i));
      }
      size_t numXs = 0, first = part.state.size();
      for (auto [argument, given] :
           llvm::zip_equal(block.getArguments().slice(carried, loop.getScanned()), loop.getXs()))
        if (part.taken.contains(argument))
          take(argument, given), ++numXs;
      for (Value value : part.taken)
        if (isOfTurn(value))
          take(value, stackOf.at(value)), ++numXs;
      for (auto [argument, given] :
           llvm::zip_equal(block.getArguments().take_back(loop.getInvariants().size()), loop.getInvariants()))
        if (part.taken.contains(argument))
          take(argument, given);
      SmallVector<unsigned> stacked;
      for (auto [i, row] : llvm::enumerate(rows))
        if (partOfRow[i] == number)
          stacked.push_back(static_cast<unsigned>(i)), returned.push_back(row);
      SmallVector<Value> more;
      for (Value value : part.given)
        if (!llvm::is_contained(ArrayRef(returned).drop_front(first), value))
          more.push_back(value), returned.push_back(value);

      std::string wanted = (body.getName() + "_part" + std::to_string(number)).str();
      StringAttr name = symbols.insert(writeBody(wanted, part, inputs, returned), Block::iterator(body));
      auto length = static_cast<int64_t>(loop.getLength());
      SmallVector<Type> types(ValueRange(returned).take_front(first).getTypes());
      for (Value row : ArrayRef(returned).drop_front(first))
        types.push_back(ir::stackOf(row.getType(), length));
      auto made = ir::LoopOp::create(b, loop.getLoc(), types, b.getArrayAttr(FlatSymbolRefAttr::get(name)),
                                     static_cast<int64_t>(first), static_cast<int64_t>(numXs), length,
                                     /*limited=*/false, loop.getReversed(), /*room=*/-1, /*checkpoints=*/0, operands);
      made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
      for (auto [i, value] : llvm::zip_equal(part.state, made.getFinals()))
        results[i] = value;
      for (auto [i, stack] : llvm::zip(stacked, made.getStacked())) {
        results[carried + i] = stack;
        stackOf.try_emplace(rows[i], stack);
      }
      for (auto [value, stack] : llvm::zip_equal(more, made.getStacked().drop_front(stacked.size())))
        stackOf[value] = stack;
    }
    loop->replaceAllUsesWith(results);
    loop.erase();
  }

private:
  struct Part {
    SmallVector<unsigned> state;
    llvm::SetVector<Operation *> ops;
    llvm::SetVector<Value> taken; ///< arguments that are no state of it, and values of the parts before it
    llvm::SetVector<Value> given; ///< what later parts take
    int64_t bytes = 0;            ///< of its state
  };

  /// Whether turns are small and elementwise, and all that matters is what registers hold.
  bool isPlain() {
    if (static_cast<int64_t>(loop.getLength()) < 2 || loop.hasCondition() || loop.getLimited() || loop.hasRoom() ||
        loop.getCheckpoints() > 0 || carried < 2 || carried > kMostState)
      return false;
    auto isKnown = [](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      return type && type.hasStaticShape();
    };
    auto isSmall = [&](Value value) { return isKnown(value) && bytesOf(value) <= kMostBytes; };
    if (!llvm::all_of(block.getArguments(), isKnown))
      return false;
    int64_t bytes = 0;
    for (BlockArgument argument : block.getArguments().take_front(carried)) {
      if (!isSmall(argument))
        return false;
      bytes += bytesOf(argument);
    }
    int64_t work = 0;
    for (Operation &op : block.without_terminator()) {
      bool isIndexed = isa<ir::Indexed>(op) && op.getNumOperands() > 0; // reads where it wants
      if (!mayMove(op) || !(isa<ir::Scalar>(op) || isCheap(&op)) || isIndexed ||
          !llvm::all_of(op.getResults(), isSmall))
        return false;
      work += workOf(&op);
    }
    return bytes > held && work <= kMostWork;
  }

  /// Whether what follows from the state is read in its place, or one number everywhere.
  bool isReadInPlace() const {
    return llvm::all_of(block.without_terminator(), [&](Operation &op) {
      return !ir::viewMapOf(&op) || isa<ir::ReshapeOp>(op) || !of.contains(op.getResult(0)) ||
             cast<RankedTensorType>(op.getOperand(0).getType()).getNumElements() == 1;
    });
  }

  /// For each part of the state those that it follows from, in any number of turns, and itself.
  void findReads() {
    for (unsigned i = 0; i < carried; ++i) {
      of[block.getArgument(i)] = llvm::BitVector(carried);
      of[block.getArgument(i)].set(i);
    }
    for (Operation &op : block.without_terminator()) {
      llvm::BitVector all(carried);
      for (Value operand : op.getOperands())
        all |= stateOf(operand);
      if (all.any())
        for (Value result : op.getResults())
          of[result] = all;
    }
    for (unsigned i = 0; i < carried; ++i) {
      reads.push_back(stateOf(yield->getOperand(i)));
      reads.back().set(i);
    }
    for (unsigned through = 0; through < carried; ++through)
      for (llvm::BitVector &each : reads)
        if (each.test(through))
          each |= reads[through];
  }
  llvm::BitVector stateOf(Value value) const {
    auto known = of.find(value);
    return known == of.end() ? llvm::BitVector(carried) : known->second;
  }

  /// Of the state, what follows from each other in both directions is one part; a sum over the turns, which nothing
  /// else reads, belongs to the last part that it reads; neighbours join while registers hold them. Each part reads of
  /// the state itself and parts before it.
  void join() {
    auto order = llvm::to_vector(llvm::seq(carried));
    llvm::sort(order,
               [&](unsigned i, unsigned j) { return std::pair(reads[i].count(), i) < std::pair(reads[j].count(), j); });
    isRead.resize(carried);
    for (unsigned i = 0; i < carried; ++i)
      for (unsigned j : reads[i].set_bits())
        if (i != j)
          isRead.set(j);
    SmallVector<Part> whole;
    partOf.assign(carried, 0);
    auto put = [&](unsigned i, size_t number) {
      if (number == whole.size())
        whole.emplace_back();
      whole[number].state.push_back(i);
      whole[number].bytes += bytesOf(block.getArgument(i));
      partOf[i] = number;
    };
    for (unsigned i : order) {
      if (!isRead.test(i))
        continue;
      size_t number = whole.size();
      for (auto [known, part] : llvm::enumerate(whole))
        if (reads[i].test(part.state[0]) && reads[part.state[0]].test(i))
          number = known;
      put(i, number);
    }
    auto isSum = [&](unsigned i) { return !isRead.test(i); };
    SmallVector<unsigned> ofNone; // of the state: they may be anywhere
    for (unsigned i : llvm::make_filter_range(order, isSum)) {
      std::optional<size_t> last;
      for (unsigned j : reads[i].set_bits())
        if (j != i)
          last = std::max(last, std::optional(partOf[j]));
      if (last)
        put(i, *last);
      else
        ofNone.push_back(i);
    }
    for (unsigned i : ofNone) {
      auto bytes = [](const Part &a, const Part &b) { return a.bytes < b.bytes; };
      put(i, static_cast<size_t>(std::min_element(whole.begin(), whole.end(), bytes) - whole.begin()));
    }
    for (Part &part : whole)
      if (!parts.empty() && parts.back().bytes + part.bytes <= held) {
        llvm::append_range(parts.back().state, part.state);
        parts.back().bytes += part.bytes;
      } else {
        parts.push_back(std::move(part));
      }
    for (auto [number, part] : llvm::enumerate(parts)) {
      llvm::sort(part.state);
      for (unsigned i : part.state)
        partOf[i] = number;
    }
  }

  /// What each part computes, takes and gives. What follows from no state and costs little is computed again.
  void divide() {
    ValueRange rows = yield->getOperands().drop_front(carried);
    for (Value row : rows)
      partOfRow.push_back(lastOf(row));
    for (auto [number, part] : llvm::enumerate(parts)) {
      SmallVector<Value> roots;
      for (unsigned i : part.state)
        roots.push_back(yield->getOperand(i));
      for (auto [i, row] : llvm::enumerate(rows))
        if (partOfRow[i] == number && of.contains(row))
          roots.push_back(row);
      compute(number, roots);
    }
    // A row of no state: in a part that computes it anyhow.
    for (auto [i, row] : llvm::enumerate(rows)) {
      if (of.contains(row))
        continue;
      auto has = [&, row = row](const Part &part) {
        return row.getDefiningOp() ? part.ops.contains(row.getDefiningOp()) : part.taken.contains(row);
      };
      if (auto found = llvm::find_if(parts, has); found != parts.end())
        partOfRow[i] = static_cast<size_t>(found - parts.begin());
      compute(partOfRow[i], row);
    }
    for (Part &part : parts) {
      SmallVector<Operation *> inOrder;
      for (Operation &op : block.without_terminator())
        if (part.ops.contains(&op))
          inOrder.push_back(&op);
      part.ops = {inOrder.begin(), inOrder.end()};
    }
  }
  /// Has part `number` compute the roots, of what parts before it hand on.
  void compute(size_t number, ValueRange roots) {
    Part &part = parts[number];
    SmallVector<Value> work(roots);
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op) {
        unsigned i = cast<BlockArgument>(value).getArgNumber();
        if (i < carried && partOf[i] == number)
          continue;
        part.taken.insert(value);
        if (i < carried)
          parts[partOf[i]].given.insert(value);
        continue;
      }
      size_t first = isHandedOn(op) ? madeIn.try_emplace(op, number).first->second : number;
      if (first < number) {
        part.taken.insert(value);
        parts[first].given.insert(value);
      } else if (part.ops.insert(op)) {
        llvm::append_range(work, op->getOperands());
      }
    }
  }
  /// The last part that a value follows from.
  size_t lastOf(Value value) const {
    size_t last = 0;
    const llvm::BitVector state = stateOf(value);
    for (unsigned i : state.set_bits())
      last = std::max(last, partOf[i]);
    return last;
  }
  /// Whether a turn makes it, or is handed it by the one before.
  bool isOfTurn(Value value) const {
    return value.getDefiningOp() || cast<BlockArgument>(value).getArgNumber() < carried;
  }
  bool isHandedOn(Operation *op) const {
    return of.contains(op->getResult(0)) ? !ir::viewMapOf(op) : op->hasTrait<ir::IsTranscendental>();
  }

  bool pays() {
    auto spilled = [&](int64_t bytes) { return 2 * std::max<int64_t>(0, bytes - held); };
    int64_t all = 0, saved = 0, paid = 0, moved = 0, stacks = 0;
    DenseMap<Value, int64_t> readers;
    DenseMap<Operation *, int64_t> copies;
    for (Part &part : parts) {
      all += part.bytes;
      saved -= spilled(part.bytes);
      for (Value value : part.taken)
        ++readers[value];
      for (Operation *op : part.ops)
        if (++copies[op] > 1) // computed again, which takes as long as a register that is moved
          paid += workOf(op) * kRegister;
    }
    saved += spilled(all);
    DenseSet<Value> scanned;
    for (auto [argument, given] :
         llvm::zip_equal(block.getArguments().slice(carried, loop.getScanned()), loop.getXs())) {
      if (readers.contains(argument) && scanned.insert(given).second)
        moved += bytesOf(argument);
      paid += bytesOf(argument) * std::max<int64_t>(0, readers.lookup(argument) - 1);
    }
    ValueRange rows = yield->getOperands().drop_front(carried);
    for (Value row : rows)
      moved += bytesOf(row);
    for (Part &part : parts)
      for (Value value : part.given) {
        bool isStacked = llvm::is_contained(rows, value);
        stacks += isStacked ? 0 : bytesOf(value);
        paid += bytesOf(value) * (readers.lookup(value) + !isStacked);
        if (!ir::isValueType(ir::stackOf(value.getType(), static_cast<int64_t>(loop.getLength()))))
          return false; // of too many axes or bytes
      }
    auto waits = [&](const Part &part) {
      int64_t work = 0; // its own, which fills the time of its chain
      for (Operation *op : part.ops)
        work += copies.lookup(op) == 1 ? workOf(op) : 0;
      return chainOf(part) > work;
    };
    return paid * 2 <= saved && stacks * 4 <= moved && llvm::none_of(parts, waits);
  }
  /// The longest chain from a state of a part to the next one of what follows from it again.
  int64_t chainOf(const Part &part) const {
    int64_t longest = 0;
    for (unsigned from : part.state) {
      if (!isRead.test(from))
        continue;
      DenseMap<Value, int64_t> ends{{block.getArgument(from), 0}};
      for (Operation *op : part.ops) {
        int64_t start = -1;
        for (Value operand : op->getOperands())
          if (auto known = ends.find(operand); known != ends.end())
            start = std::max(start, known->second);
        if (start >= 0)
          for (Value result : op->getResults())
            ends[result] = start + latencyOf(op);
      }
      for (unsigned to : part.state)
        if (reads[from].test(to))
          if (auto known = ends.find(yield->getOperand(to)); known != ends.end())
            longest = std::max(longest, known->second);
    }
    return longest;
  }

  func::FuncOp writeBody(const std::string &name, const Part &part, ArrayRef<Value> inputs, ArrayRef<Value> returned) {
    auto function = func::FuncOp::create(
        body.getLoc(), name,
        FunctionType::get(body.getContext(), ValueRange(inputs).getTypes(), ValueRange(returned).getTypes()));
    function.setPrivate();
    Block *entry = function.addEntryBlock();
    IRMapping map;
    map.map(inputs, entry->getArguments());
    OpBuilder b = OpBuilder::atBlockBegin(entry);
    for (Operation *op : part.ops)
      b.clone(*op, map);
    func::ReturnOp::create(b, yield->getLoc(),
                           llvm::map_to_vector(returned, [&](Value value) { return map.lookup(value); }));
    return function;
  }

  ir::LoopOp loop;
  func::FuncOp body;
  Block &block;
  Operation *yield;
  int64_t held; ///< bytes
  unsigned carried;
  DenseMap<Value, llvm::BitVector> of; ///< the state that a value of a turn follows from, if any
  SmallVector<llvm::BitVector> reads;
  llvm::BitVector isRead; ///< whether another part of the state follows from it
  SmallVector<Part> parts;
  SmallVector<size_t> partOf, partOfRow;
  DenseMap<Operation *, size_t> madeIn; ///< what is handed on: the first part that computes it
};

struct DistributeLoops : impl::DistributeLoopsBase<DistributeLoops> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    DenseMap<StringAttr, int64_t> users;
    SmallVector<ir::LoopOp> loops;
    getOperation().walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++users[name.getAttr()];
      if (auto loop = dyn_cast<ir::LoopOp>(op.getOperation()))
        loops.push_back(loop);
    });
    for (ir::LoopOp loop : loops) {
      auto body = symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(loop.getBodies()[0]).getAttr());
      if (body.isExternal())
        continue;
      Parts parts(loop, body, registers);
      if (!parts.find())
        continue;
      parts.write(symbols);
      if (--users[body.getSymNameAttr()] == 0 && body.isPrivate())
        symbols.erase(body);
    }
  }
};

} // namespace
} // namespace wg::passes
