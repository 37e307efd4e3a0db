// Products of a loop's turns, as one product for all turns.
//
//   %s, %hs = wg.loop [@turn](%h, %xs, %u)          %zs = wg.contract "tmk,kn->tmn" %xs, %u
//   func @turn(%h, %x, %u) {                   ->   %s, %hs = wg.loop [@turn](%h, %zs)
//     %z = wg.contract "mk,kn->mn" %x, %u
//
//   %s, %d, %dxs = wg.loop [@turn](%0, %d0, %hs)    %s, %dzs = wg.loop [@turn](%0)
//   func @turn(%c, %d, %h) {                        %p = wg.contract "tmk,tmn->kn" %hs, %dzs
//     %p = wg.contract "mk,mn->kn" %h, %dz     ->   %d = wg.add %d0, %p
//     %d1 = wg.add %d, %p                           %dxs = wg.contract "tmn,kn->tmk" %dzs, %u
//     %dx = wg.contract "mn,kn->mk" %dz, %u
//     return %c1, %d1, %dx
//
// What a turn multiplies of its row of a scanned tensor and of invariants is known before the loop; a sum over the
// turns of products of two values of a turn, as the gradient of a weight is, and a product that the loop only stacks,
// can wait until after it. Where a product reads a row beside other values, as in `concat([x, h]) W`, the row's part of
// the product leaves; where only a slice of a product is stacked, that slice does. Where it pays:
//
//   sums        larger than the nearest cache, which each turn would read and write for few terms; of many terms those
//               that are larger than the next one; and those of rows of a table, see below
//   products    of few rows a turn, which would read the weights again for each; and of rows that a gather has taken
//               from a table of fewer, or that are added up in one, where wg-products-of-tables multiplies the table
//
// and only where what is stacked for it is at most four times what the loop reads and writes anyhow. Legal because a
// product is linear, but for rounding: sums over turns are added in another order. Cost: the products of a body times
// its rows.
#include "ir/Build.h"
#include "ir/Calls.h"
#include "passes/LeavingProducts.h"
#include "passes/Passes.h"
#include "passes/Unread.h"

#include "mlir/IR/Matchers.h"

#include <memory>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_PRODUCTSLEAVELOOPS
#include "passes/Passes.h.inc"

static Value sliceOf(OpBuilder &b, Location loc, Value x, Range range) {
  SmallVector<int64_t> starts(typeOf(x).getRank(), 0), limits(typeOf(x).getShape()), strides(typeOf(x).getRank(), 1);
  starts[range.axis] = range.from;
  limits[range.axis] = range.to;
  return ir::SliceOp::create(b, loc, x, starts, limits, strides, ValueRange());
}

void Slices::begin(Block *of) {
  SmallVector<std::pair<Key, Value>> kept;
  for (const auto &[key, slice] : known)
    if (block == of && isa<BlockArgument>(key.first))
      kept.push_back({key, slice});
  known.clear();
  known.insert(kept.begin(), kept.end());
  block = of;
}
Value Slices::of(Value weights, Range range) {
  Value &slice = known[{weights, {static_cast<int64_t>(range.axis), {range.from, range.to}}}];
  if (!slice) {
    OpBuilder b(weights.getContext());
    b.setInsertionPointAfterValue(weights);
    slice = sliceOf(b, weights.getLoc(), weights, range);
  }
  return slice;
}

// ---- Writing ------------------------------------------------------------------------------------------------------

BlockArgument Leave::addRow(Value stack) {
  xs.push_back(stack);
  return block.insertArgument(carried + static_cast<unsigned>(xs.size()) - 1, ir::rowTypeOf(stack.getType()),
                              stack.getLoc());
}
BlockArgument Leave::addInvariant(Value value) {
  invariants.push_back(value);
  return block.addArgument(value.getType(), value.getLoc());
}

/// The places of the parts from `first` to `end` of a concat.
Range Leave::placesOf(ir::ConcatOp parts, size_t axis, size_t first, size_t end) {
  auto size = [&](size_t part) { return typeOf(parts.getXs()[part]).getDimSize(axisOf(parts)); };
  Range range{axis, 0, 0};
  for (size_t part = 0; part < end; ++part)
    (part < first ? range.from : range.to) += size(part);
  range.to += range.from;
  return range;
}

/// The range of a slice of the product, in the other operand.
Range Leave::placesIn(const SeenProduct &seen, ir::SliceOp slice) {
  Range range = *rangeOf(slice);
  range.axis = seen.ofOther.find(seen.ofC[range.axis]);
  return range;
}

void Leave::write() {
  stackAll();
  for (const Sum &sum : sums)
    leaveSum(sum);
  for (const After &each : after)
    leaveAfter(each);
  for (const Concat &each : concats)
    leaveConcat(each);
  for (const Before &each : before)
    leaveBefore(each);
  DenseSet<Operation *> cut;
  for (const After &each : after)
    if (each.range && cut.insert(each.op).second)
      keepSlices(each);
  remake();
}

/// Gives each value that products after the loop read a place among the rows: what it is replaced by is stacked then.
void Leave::stackAll() {
  SmallVector<Value> returned(yield->getOperands());
  llvm::append_range(returned, stacked);
  for (auto [row, value] : llvm::enumerate(ArrayRef(returned).drop_front(carried)))
    rowOf.try_emplace(value, static_cast<unsigned>(row));
  yield->setOperands(returned);
  finals.resize(carried);
  stacks.resize(returned.size() - carried);
  isLeaving.resize(carried);
  isGone.resize(static_cast<unsigned>(stacks.size()));
}

/// All turns' values, once there is the new loop.
std::function<Value()> Leave::sourceOf(Value value) {
  if (Value outer = scannedOf.lookup(value))
    return [outer] { return outer; };
  return [this, row = rowOf.at(value)] { return stacks[row]; };
}

void Leave::leaveSum(const Sum &sum) {
  isLeaving.set(sum.state);
  Value init = loop.getInits()[sum.state];
  if (!matchPattern(init, m_AnyZeroFloat()))
    finals[sum.state] = init;
  for (ir::ContractOp op : sum.products) {
    SeenProduct seen(op, true);
    std::string turn = seen.freeLetter(), a = turn + seen.letters, b = turn + seen.ofOther, c = seen.ofC;
    later.push_back([this, x = sourceOf(seen.x), y = sourceOf(seen.other), text = runtime::Equation{a, b, c}.text(),
                     loc = op.getLoc(), state = sum.state](OpBuilder &b) {
      Value term = ir::ContractOp::create(b, loc, x(), y(), text), &total = finals[state];
      total = total ? Value(ir::AddOp::create(b, loc, total, term)) : term;
    });
  }
}

void Leave::leaveAfter(const After &each) {
  isGone.set(each.row);
  ir::ContractOp op = each.op;
  SeenProduct seen(op, each.isA);
  std::optional<Range> range;
  if (each.range)
    range = placesIn(seen, each.stacked.getDefiningOp<ir::SliceOp>());
  std::string turn = seen.freeLetter(), letters = turn + seen.letters, ofC = turn + seen.ofC;
  later.push_back([this, seen, range, letters, ofC, x = sourceOf(seen.x), weights = heldOf.lookup(seen.other),
                   loc = op.getLoc(), row = each.row](OpBuilder &b) {
    Value other = range ? slices.of(weights, *range) : weights;
    stacks[row] = seen.with(b, loc, x(), letters, other, seen.ofOther, ofC);
  });
}

void Leave::leaveConcat(const Concat &each) {
  isGone.set(each.row);
  ir::ConcatOp concat = each.op;
  SmallVector<std::function<Value()>> parts;
  for (Value part : concat.getXs())
    parts.push_back(sourceOf(part));
  size_t axis = axisOf(concat) + 1;
  later.push_back([parts, axis, stack = loop.getStacked()[each.row]](OpBuilder &) {
    for (Operation *user : llvm::make_early_inc_range(stack.getUsers())) {
      auto op = cast<ir::ContractOp>(user);
      SeenProduct seen(op, op.getA() == stack);
      OpBuilder b(op);
      SmallVector<Value> products;
      for (const auto &part : parts)
        products.push_back(seen.with(b, op.getLoc(), part(), seen.letters, seen.other, seen.ofOther, seen.ofC));
      op.getC().replaceAllUsesWith(
          ir::ConcatOp::create(b, op.getLoc(), products, static_cast<int64_t>(seen.ofC.find(seen.letters[axis]))));
      op.erase();
    }
  });
}

void Leave::leaveBefore(const Before &each) {
  ir::ContractOp op = each.op;
  SeenProduct seen(op, each.isA);
  Location loc = op.getLoc();
  OpBuilder outside(loop), inside(op);
  Value weights = heldOf.lookup(seen.other);
  std::string turn = seen.freeLetter(), letters = seen.letters, ofOther = seen.ofOther, ofC = seen.ofC;
  auto ofAllTurns = [&](Value row, Value weights) {
    return seen.with(outside, loc, scannedOf.lookup(row), turn + letters, weights, ofOther, turn + ofC);
  };
  ir::ConcatOp concat = each.parts;
  if (!concat) {
    op.getC().replaceAllUsesWith(addRow(ofAllTurns(seen.x, weights)));
    return;
  }
  size_t axis = ofOther.find(letters[axisOf(concat)]);
  Value known, rest;
  auto add = [loc](OpBuilder &b, Value &total, Value term) {
    total = total ? Value(ir::AddOp::create(b, loc, total, term)) : term;
  };
  auto parts = concat.getXs();
  for (size_t first = 0, end; first < parts.size(); first = end) {
    end = first + 1;
    bool leaves = llvm::is_contained(each.leaving, first);
    while (!leaves && end < parts.size() && !llvm::is_contained(each.leaving, end))
      ++end;
    Value part = slices.of(weights, placesOf(concat, axis, first, end)), x = parts[first];
    if (leaves) {
      add(outside, known, ofAllTurns(x, part));
      continue;
    }
    if (end - first > 1)
      x = ir::ConcatOp::create(inside, concat.getLoc(), parts.slice(first, end - first), concat.getAxis());
    add(inside, rest, seen.with(inside, loc, x, letters, addInvariant(part), ofOther, ofC));
  }
  add(inside, rest, addRow(known));
  op.getC().replaceAllUsesWith(rest);
}

/// The slices of a product that stay, where others leave.
void Leave::keepSlices(const After &each) {
  ir::ContractOp op = each.op;
  SeenProduct seen(op, each.isA);
  Location loc = op.getLoc();
  OpBuilder inside(op);
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto slice = cast<ir::SliceOp>(user);
    if (llvm::any_of(after, [&](const After &other) { return other.stacked == slice.getY(); }))
      continue;
    Value weights = addInvariant(slices.of(heldOf.lookup(seen.other), placesIn(seen, slice)));
    slice.getY().replaceAllUsesWith(seen.with(inside, loc, seen.x, seen.letters, weights, seen.ofOther, seen.ofC));
    slice.erase();
  }
}

/// The loop without what has left it, and what comes after it.
void Leave::remake() {
  SmallVector<Value> kept, operands;
  SmallVector<Type> types;
  for (unsigned i = 0; i < carried; ++i)
    if (!isLeaving.test(i)) {
      kept.push_back(yield->getOperand(i));
      types.push_back(kept.back().getType());
      operands.push_back(loop.getInits()[i]);
    }
  size_t stays = kept.size();
  for (unsigned row = 0; row < stacks.size(); ++row)
    if (!isGone.test(row)) {
      kept.push_back(yield->getOperand(carried + row));
      types.push_back(ir::stackOf(kept.back().getType(), length));
    }
  yield->setOperands(kept);
  dropUnread();
  body.removeArgAttrsAttr();
  body.removeResAttrsAttr();
  body.setFunctionType(FunctionType::get(body.getContext(), block.getArgumentTypes(), ValueRange(kept).getTypes()));
  ir::forgetDerived(body);

  OpBuilder b(loop);
  llvm::append_range(operands, xs);
  llvm::append_range(operands, invariants);
  auto made = ir::LoopOp::create(b, loop.getLoc(), types, loop.getBodies(), static_cast<int64_t>(stays),
                                 static_cast<int64_t>(xs.size()), length, /*limited=*/false, loop.getReversed(),
                                 /*room=*/-1, /*checkpoints=*/0, operands);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  unsigned next = 0;
  for (unsigned i = 0; i < carried; ++i)
    if (!isLeaving.test(i))
      finals[i] = made.getResult(next++);
  for (unsigned row = 0; row < stacks.size(); ++row)
    if (!isGone.test(row))
      stacks[row] = made.getResult(next++);
  for (const auto &write : later)
    write(b);
  for (auto [final, result] : llvm::zip_equal(finals, loop.getFinals()))
    result.replaceAllUsesWith(final);
  for (auto [stack, result] : llvm::zip(stacks, loop.getStacked()))
    if (!result.use_empty())
      result.replaceAllUsesWith(stack);
  loop.erase();
}

/// Ops of the body that nobody reads any more, and arguments.
void Leave::dropUnread() {
  eraseUnread(block);
  auto drop = [&](size_t argument, SmallVector<Value> &outer, size_t i) {
    if (!block.getArgument(static_cast<unsigned>(argument)).use_empty())
      return;
    block.eraseArgument(static_cast<unsigned>(argument));
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(i));
  };
  for (size_t i = invariants.size(); i-- > 0;)
    drop(carried + xs.size() + i, invariants, i);
  for (size_t i = xs.size(); i-- > 0;)
    drop(carried + i, xs, i);
  for (unsigned i = carried; i-- > 0;)
    if (isLeaving.test(i))
      block.eraseArgument(i);
}

namespace {
struct ProductsLeaveLoops : impl::ProductsLeaveLoopsBase<ProductsLeaveLoops> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    DenseMap<StringAttr, int64_t> users;
    SmallVector<ir::LoopOp> loops;
    Slices slices;
    getOperation().walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++users[name.getAttr()];
      if (auto loop = dyn_cast<ir::LoopOp>(op.getOperation()))
        loops.push_back(loop);
    });
    // Those that read others' stacks come first: what they multiply after their turns says what the others stack.
    std::reverse(loops.begin(), loops.end());
    for (size_t next = 0; next < loops.size(); ++next) {
      ir::LoopOp loop = loops[next];
      auto body = symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(loop.getBodies()[0]).getAttr());
      if (body.isExternal())
        continue;
      auto leave = std::make_unique<Leave>(loop, body, symbols, slices);
      if (!leave->find())
        continue;
      if (users[body.getSymNameAttr()] > 1 || body.isPublic()) { // others run it, or know it
        --users[body.getSymNameAttr()];
        body = cast<func::FuncOp>(body->clone());
        body.setPrivate();
        symbols.insert(body);
        loop.setBodyNames(FlatSymbolRefAttr::get(body.getSymNameAttr()));
        ++users[body.getSymNameAttr()];
        // The copy runs what the body runs.
        SmallVector<ir::WithBodies> inside = llvm::to_vector(body.getOps<ir::WithBodies>());
        for (ir::WithBodies op : llvm::reverse(inside)) {
          for (FlatSymbolRefAttr name : op.bodyNames())
            ++users[name.getAttr()];
          if (auto inner = dyn_cast<ir::LoopOp>(op.getOperation()))
            loops.push_back(inner);
        }
        leave = std::make_unique<Leave>(loop, body, symbols, slices);
        leave->find();
      }
      slices.begin(loop->getBlock());
      leave->write();
    }
  }
};

} // namespace
} // namespace wg::passes
