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
#include "passes/Invariants.h"
#include "passes/Passes.h"
#include "passes/SeenProduct.h"
#include "passes/TableRows.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <optional>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_PRODUCTSLEAVELOOPS
#include "passes/Passes.h.inc"

namespace {

/// Bytes of a sum from which on it leaves: less stays in the nearest cache. Of many terms a turn, those from which on
/// only what leaves the next cache too is worth the stacks.
constexpr int64_t kCloseBy = 32 << 10, kFarAway = 1 << 20, kManyTerms = 16;
/// Rows of a turn's product up to which it is bound by reading the other operand, and elements of that from which on.
constexpr int64_t kFewRows = 4, kManyWeights = 4096;
/// What may be stacked for it, beside what the loop reads and stacks: so many times as much.
constexpr int64_t kMostStacked = 4;

bool isKnown(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
int64_t bytesOf(Value value) { return typeOf(value).getNumElements() * typeOf(value).getElementTypeBitWidth() / 8; }

size_t axisOf(ir::ConcatOp op) { return static_cast<size_t>(static_cast<int64_t>(op.getAxis())); }

/// Places [from, to) of an axis.
struct Range {
  size_t axis;
  int64_t from, to;
};
Value sliceOf(OpBuilder &b, Location loc, Value x, Range range) {
  SmallVector<int64_t> starts(typeOf(x).getRank(), 0), limits(typeOf(x).getShape()), strides(typeOf(x).getRank(), 1);
  starts[range.axis] = range.from;
  limits[range.axis] = range.to;
  return ir::SliceOp::create(b, loc, x, starts, limits, strides, ValueRange());
}

/// The range of a slice along one axis, without steps.
std::optional<Range> rangeOf(ir::SliceOp slice) {
  if (!slice.getSizes().empty() || llvm::any_of(slice.getStrides(), [](int64_t step) { return step != 1; }))
    return {};
  std::optional<Range> range;
  for (auto [axis, size] : llvm::enumerate(typeOf(slice.getX()).getShape()))
    if (int64_t from = slice.getStarts()[axis], to = slice.getLimits()[axis]; from != 0 || to != size) {
      if (range)
        return {};
      range = Range{axis, from, to};
    }
  return range;
}

/// Slices of weights, each once, where the weights are. Those of arguments are known until another block is met, those
/// of results for one loop: what loops become, and other bodies, may not be the same values any more.
class Slices {
public:
  void begin(Block *of) {
    SmallVector<std::pair<Key, Value>> kept;
    for (const auto &[key, slice] : known)
      if (block == of && isa<BlockArgument>(key.first))
        kept.push_back({key, slice});
    known.clear();
    known.insert(kept.begin(), kept.end());
    block = of;
  }
  Value of(Value weights, Range range) {
    Value &slice = known[{weights, {static_cast<int64_t>(range.axis), {range.from, range.to}}}];
    if (!slice) {
      OpBuilder b(weights.getContext());
      b.setInsertionPointAfterValue(weights);
      slice = sliceOf(b, weights.getLoc(), weights, range);
    }
    return slice;
  }

private:
  using Key = std::pair<Value, std::pair<int64_t, std::pair<int64_t, int64_t>>>;
  Block *block = nullptr;
  DenseMap<Key, Value> known;
};

/// One loop, and what leaves it.
class Leave {
public:
  Leave(ir::LoopOp loop, func::FuncOp body, const SymbolTable &symbols, Slices &slices)
      : symbols(symbols), slices(slices), loop(loop), body(body), block(body.getBody().front()),
        yield(block.getTerminator()), carried(loop.getInits().size()), scanned(loop.getXs().size()),
        length(turnsOf(loop)), xs(loop.getXs()), invariants(loop.getInvariants()) {
    for (auto [argument, outer] : llvm::zip_equal(block.getArguments().slice(carried, scanned), xs))
      scannedOf[argument] = outer;
    for (auto [argument, outer] : llvm::zip_equal(block.getArguments().drop_front(carried + scanned), invariants))
      heldOf[argument] = outer;
  }

  /// Whether anything leaves.
  bool find() {
    if (length < 2 || loop.hasCondition() || loop.getLimited() || loop.hasRoom() || loop.getCheckpoints() > 0)
      return false;
    if (!llvm::all_of(loop->getOperandTypes(), isKnown) || !llvm::all_of(loop->getResultTypes(), isKnown) ||
        !llvm::all_of(block.getArgumentTypes(), isKnown) || !llvm::all_of(yield->getOperandTypes(), isKnown))
      return false;
    for (Value x : block.getArguments().slice(carried, scanned))
      moved += bytesOf(x);
    for (Value row : yield->getOperands().drop_front(carried))
      moved += bytesOf(row);
    findSums();
    findProducts();
    findStacked();
    findConcats();
    return !sums.empty() || !before.empty() || !after.empty() || !concats.empty();
  }

  /// Writes it, into a body that nobody else runs.
  void write();

private:
  struct Sum {
    unsigned state;
    SmallVector<ir::ContractOp> products;
  };
  struct Before {
    ir::ContractOp op;
    bool isA;           ///< the operand that has the row
    ir::ConcatOp parts; ///< of which the row is one; null if it is the operand
    SmallVector<unsigned> leaving;
  };
  struct After {
    ir::ContractOp op;
    bool isA;      ///< the operand of the turn
    unsigned row;  ///< of what is stacked
    Value stacked; ///< the product, or a slice of it
    std::optional<Range> range;
  };
  struct Concat {
    unsigned row;
    ir::ConcatOp op;
  };

  /// Whether all of them may be stacked as well.
  bool canStack(ValueRange values) const {
    llvm::SmallPtrSet<const void *, 8> seen;
    int64_t bytes = added;
    for (Value value : values) {
      if (!isKnown(value.getType()) || !ir::isValueType(ir::stackOf(value.getType(), length)))
        return false;
      if (isNew(value) && seen.insert(value.getAsOpaquePointer()).second)
        bytes += bytesOf(value);
    }
    return bytes == added || bytes <= kMostStacked * moved;
  }
  /// Whether no stack has its rows yet.
  bool isNew(Value value) const {
    return !scannedOf.lookup(value) && !stacked.contains(value) &&
           !llvm::is_contained(yield->getOperands().drop_front(carried), value);
  }
  void stack(ValueRange values) {
    for (Value value : values)
      if (isNew(value)) {
        stacked.insert(value);
        added += bytesOf(value);
      }
  }

  /// The products whose sum over the turns is state i; none if it is no such sum.
  SmallVector<ir::ContractOp> productsOf(unsigned i) {
    SmallVector<ir::ContractOp> products;
    SmallVector<Value> work{yield->getOperand(i)};
    bool isSum = false;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (!value.hasOneUse())
        return {};
      if (value == block.getArgument(i))
        isSum = true;
      else if (auto add = value.getDefiningOp<ir::AddOp>())
        llvm::append_range(work, add->getOperands());
      else if (auto op = value.getDefiningOp<ir::ContractOp>(); isPlainProduct(op))
        products.push_back(op);
      else
        return {};
    }
    return isSum ? products : SmallVector<ir::ContractOp>();
  }

  void findSums() {
    for (unsigned i = 0; i < carried; ++i) {
      SmallVector<ir::ContractOp> products = productsOf(i);
      if (products.empty() || !llvm::all_of(products, [&](ir::ContractOp op) {
            return paysAsSum(op) && !heldOf.lookup(op.getA()) && !heldOf.lookup(op.getB());
          }))
        continue;
      SmallVector<Value> factors;
      for (ir::ContractOp op : products)
        factors.append({op.getA(), op.getB()});
      if (!canStack(factors))
        continue;
      stack(factors);
      sums.push_back({i, products});
    }
  }

  /// Whether a sum of such products costs its turns more than the stacks of what they multiply.
  bool paysAsSum(ir::ContractOp op) const {
    int64_t bytes = bytesOf(op.getC());
    return bytes >= kFarAway || (bytes >= kCloseBy && SeenProduct(op, true).terms() <= kManyTerms) ||
           hasTableRows(scannedOf.lookup(op.getA())) || hasTableRows(scannedOf.lookup(op.getB()));
  }
  /// Whether rows of a table are what is scanned, or a part of what a loop has stacked (which wg-products-of-tables may
  /// decline for other reasons).
  bool hasTableRows(Value xs) const {
    if (!xs || takenRows(xs))
      return !!xs;
    auto other = xs.getDefiningOp<ir::LoopOp>();
    if (!other || other == loop)
      return false;
    auto function = symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(other.getBodies()[0]).getAttr());
    size_t result = cast<OpResult>(xs).getResultNumber(), state = other.getFinals().size();
    if (!function || function.isExternal() || other.hasCondition() || result < state)
      return false;
    Block &block = function.getBody().front();
    auto parts = block.getTerminator()->getOperand(static_cast<unsigned>(result)).getDefiningOp<ir::ConcatOp>();
    return parts && llvm::any_of(parts.getXs(), [&](Value part) {
             auto argument = dyn_cast<BlockArgument>(part);
             size_t number = argument ? argument.getArgNumber() : 0;
             return argument && number >= state && number < state + other.getXs().size() &&
                    takenRows(other.getXs()[number - state]);
           });
  }

  /// Whether a product of all rows is worth more than one in each turn.
  bool pays(const SeenProduct &seen, bool isOfTable) const {
    return isOfTable || (seen.rows() <= kFewRows && typeOf(seen.other).getNumElements() >= kManyWeights);
  }

  void findProducts() {
    for (auto op : block.getOps<ir::ContractOp>())
      for (bool isA : {true, false}) {
        if (!isPlainProduct(op))
          continue;
        SeenProduct seen(op, isA);
        if (!heldOf.lookup(seen.other) || heldOf.lookup(seen.x) || !canStack(Value(op.getC())))
          continue;
        auto leaves = [&](Value part) {
          Value xs = scannedOf.lookup(part);
          return xs && pays(seen, takenRows(xs).has_value());
        };
        Before found{op, isA, {}, {}};
        if (auto parts = seen.x.getDefiningOp<ir::ConcatOp>()) {
          char letter = seen.letters[axisOf(parts)];
          if (has(seen.ofC, letter) || !llvm::all_of(parts.getXs().getTypes(), isKnown))
            continue;
          for (auto [i, part] : llvm::enumerate(parts.getXs()))
            if (leaves(part))
              found.leaving.push_back(static_cast<unsigned>(i));
          found.parts = parts;
          if (found.leaving.empty())
            continue;
        } else if (!leaves(seen.x)) {
          continue;
        }
        added += bytesOf(op.getC());
        before.push_back(found);
        break;
      }
  }

  /// Whether all that reads a stack adds up its rows in a table of fewer.
  static bool endsInTable(Value stack) {
    while (stack.hasOneUse() && isa<ir::ReshapeOp>(*stack.user_begin()))
      stack = stack.user_begin()->getResult(0);
    auto sum = stack.hasOneUse() ? dyn_cast<ir::ScatterAddOp>(*stack.user_begin()) : ir::ScatterAddOp();
    return sum && sum.getUpdates() == stack && keepsFewerRows(sum);
  }

  void findStacked() {
    for (auto [row, value] : llvm::enumerate(yield->getOperands().drop_front(carried))) {
      if (!value.hasOneUse())
        continue;
      After found{value.getDefiningOp<ir::ContractOp>(), true, static_cast<unsigned>(row), value, {}};
      if (auto slice = value.getDefiningOp<ir::SliceOp>()) {
        found.op = slice.getX().getDefiningOp<ir::ContractOp>();
        found.range = rangeOf(slice);
        if (!found.op || !found.range || !isSliced(found.op, found.range->axis))
          continue;
      }
      if (!isPlainProduct(found.op) || isTaken(found.op))
        continue;
      for (bool isA : {true, false}) {
        SeenProduct seen(found.op, isA);
        found.isA = isA;
        if (!heldOf.lookup(seen.other) || heldOf.lookup(seen.x) || !canStack(seen.x) ||
            !pays(seen, endsInTable(loop.getStacked()[row])) ||
            (found.range && !has(seen.ofOther, seen.ofC[found.range->axis])) ||
            (found.range && has(seen.letters, seen.ofC[found.range->axis])))
          continue;
        stack(seen.x);
        after.push_back(found);
        break;
      }
    }
  }
  /// Whether all that is read of a product are slices along one axis.
  static bool isSliced(ir::ContractOp op, size_t axis) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      auto slice = dyn_cast<ir::SliceOp>(user);
      std::optional<Range> range = slice ? rangeOf(slice) : std::nullopt;
      return range && range->axis == axis;
    });
  }
  bool isTaken(ir::ContractOp op) const {
    return llvm::any_of(before, [&](const Before &each) { return each.op == op; }) ||
           llvm::any_of(sums, [&](const Sum &sum) { return llvm::is_contained(sum.products, op); });
  }

  /// Whether a product after the loop reads what the turns have of it, as it is or as a part.
  bool isStacked(Value value) const {
    return llvm::any_of(concats, [&](Concat each) { return llvm::is_contained(each.op.getXs(), value); }) ||
           llvm::any_of(after, [&](const After &each) { return SeenProduct(each.op, each.isA).x == value; }) ||
           llvm::any_of(sums, [&](const Sum &sum) {
             return llvm::any_of(sum.products,
                                 [&](ir::ContractOp op) { return op.getA() == value || op.getB() == value; });
           });
  }

  /// What is stacked of rows of a table and other values, and multiplied as such after the loop.
  void findConcats() {
    for (auto [row, value] : llvm::enumerate(yield->getOperands().drop_front(carried))) {
      auto parts = value.getDefiningOp<ir::ConcatOp>();
      Value stack = loop.getStacked()[row];
      if (!parts || stack.use_empty() || llvm::none_of(parts.getXs(), [&](Value part) {
            Value xs = scannedOf.lookup(part);
            return xs && takenRows(xs).has_value();
          }))
        continue;
      size_t axis = axisOf(parts) + 1;
      bool isMultiplied = llvm::all_of(stack.getUses(), [&](OpOperand &use) {
        auto op = dyn_cast<ir::ContractOp>(use.getOwner());
        if (!isPlainProduct(op) || op.getA() == op.getB())
          return false;
        SeenProduct seen(op, op.getA() == stack);
        return has(seen.ofC, seen.letters[axis]) && !has(seen.ofOther, seen.letters[axis]);
      });
      // Its row goes, so that nothing may be made of it; nor of others that have gone.
      bool isOfConcats =
          llvm::any_of(concats, [&](Concat each) { return llvm::is_contained(parts.getXs(), Value(each.op.getY())); });
      if (!isMultiplied || isStacked(value) || isOfConcats || !canStack(parts.getXs()))
        continue;
      this->stack(parts.getXs());
      concats.push_back({static_cast<unsigned>(row), parts});
    }
  }

  // ---- Writing ------------------------------------------------------------------------------------------------------

  BlockArgument addRow(Value stack) {
    xs.push_back(stack);
    return block.insertArgument(carried + static_cast<unsigned>(xs.size()) - 1, ir::rowTypeOf(stack.getType()),
                                stack.getLoc());
  }
  BlockArgument addInvariant(Value value) {
    invariants.push_back(value);
    return block.addArgument(value.getType(), value.getLoc());
  }

  /// The places of the parts from `first` to `end` of a concat.
  static Range placesOf(ir::ConcatOp parts, size_t axis, size_t first, size_t end) {
    auto size = [&](size_t part) { return typeOf(parts.getXs()[part]).getDimSize(axisOf(parts)); };
    Range range{axis, 0, 0};
    for (size_t part = 0; part < end; ++part)
      (part < first ? range.from : range.to) += size(part);
    range.to += range.from;
    return range;
  }

  /// The range of a slice of the product, in the other operand.
  static Range placesIn(const SeenProduct &seen, ir::SliceOp slice) {
    Range range = *rangeOf(slice);
    range.axis = seen.ofOther.find(seen.ofC[range.axis]);
    return range;
  }

  void stackAll();
  std::function<Value()> sourceOf(Value value);
  void leaveSum(const Sum &sum);
  void leaveAfter(const After &each);
  void leaveConcat(const Concat &each);
  void leaveBefore(const Before &each);
  void keepSlices(const After &each);
  void remake();
  void dropUnread();

  const SymbolTable &symbols;
  Slices &slices;
  ir::LoopOp loop;
  func::FuncOp body;
  Block &block;
  Operation *yield;
  unsigned carried, scanned;
  int64_t length;
  SmallVector<Value> xs, invariants;        ///< of the loop, with those that are added
  DenseMap<Value, Value> scannedOf, heldOf; ///< of arguments: the tensor whose row, or what in every turn, it is
  int64_t moved = 0, added = 0; ///< bytes of rows that a turn reads and gives, and of what it would stack as well
  SmallVector<Sum> sums;
  SmallVector<Before> before;
  SmallVector<After> after;
  SmallVector<Concat> concats;
  llvm::SetVector<Value> stacked; ///< that is not so far
  // While it is written:
  DenseMap<Value, unsigned> rowOf;
  SmallVector<Value> finals, stacks; ///< what is in the place of the loop's results, and stacks beside them
  llvm::BitVector isLeaving, isGone; ///< states, rows
  SmallVector<std::function<void(OpBuilder &)>> later;
};

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
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
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
      if (body.isExternal() || !Leave(loop, body, symbols, slices).find())
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
      }
      slices.begin(loop->getBlock());
      Leave leave(loop, body, symbols, slices);
      if (leave.find())
        leave.write();
    }
  }
};

} // namespace
} // namespace wg::passes
