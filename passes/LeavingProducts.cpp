// What leaves a loop in wg-products-leave-loops.
#include "passes/LeavingProducts.h"

#include "ir/Calls.h"
#include "passes/TableRows.h"

using namespace mlir;

namespace wg::passes {

/// Bytes of a sum from which on it leaves: less stays in the nearest cache. Of many terms a turn, those from which on
/// only what leaves the next cache too is worth the stacks.
constexpr int64_t kCloseBy = 32 << 10, kFarAway = 1 << 20, kManyTerms = 16;
/// Rows of a turn's product up to which it is bound by reading the other operand, and elements of that from which on.
constexpr int64_t kFewRows = 4, kManyWeights = 4096;
/// What may be stacked for it, beside what the loop reads and stacks: so many times as much.
constexpr int64_t kMostStacked = 4;

static bool isKnown(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}
static int64_t bytesOf(Value value) {
  return typeOf(value).getNumElements() * typeOf(value).getElementTypeBitWidth() / 8;
}

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

/// Whether anything leaves.
bool Leave::find() {
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

/// Whether all of them may be stacked as well.
bool Leave::canStack(ValueRange values) const {
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
bool Leave::isNew(Value value) const {
  return !scannedOf.lookup(value) && !stacked.contains(value) &&
         !llvm::is_contained(yield->getOperands().drop_front(carried), value);
}
void Leave::stack(ValueRange values) {
  for (Value value : values)
    if (isNew(value)) {
      stacked.insert(value);
      added += bytesOf(value);
    }
}

/// The products whose sum over the turns is state i; none if it is no such sum.
SmallVector<ir::ContractOp> Leave::productsOf(unsigned i) {
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

void Leave::findSums() {
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
bool Leave::paysAsSum(ir::ContractOp op) const {
  int64_t bytes = bytesOf(op.getC());
  return bytes >= kFarAway || (bytes >= kCloseBy && SeenProduct(op, true).terms() <= kManyTerms) ||
         hasTableRows(scannedOf.lookup(op.getA())) || hasTableRows(scannedOf.lookup(op.getB()));
}
/// Whether rows of a table are what is scanned, or a part of what a loop has stacked (which wg-products-of-tables may
/// decline for other reasons).
bool Leave::hasTableRows(Value xs) const {
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
bool Leave::pays(const SeenProduct &seen, bool isOfTable) const {
  return isOfTable || (seen.rows() <= kFewRows && typeOf(seen.other).getNumElements() >= kManyWeights);
}

void Leave::findProducts() {
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

void Leave::findStacked() {
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
          !pays(seen, onlySum(loop.getStacked()[row]) != nullptr) ||
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
bool Leave::isSliced(ir::ContractOp op, size_t axis) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    auto slice = dyn_cast<ir::SliceOp>(user);
    std::optional<Range> range = slice ? rangeOf(slice) : std::nullopt;
    return range && range->axis == axis;
  });
}
bool Leave::isTaken(ir::ContractOp op) const {
  return llvm::any_of(before, [&](const Before &each) { return each.op == op; }) ||
         llvm::any_of(sums, [&](const Sum &sum) { return llvm::is_contained(sum.products, op); });
}

/// Whether a product after the loop reads what the turns have of it, as it is or as a part.
bool Leave::isStacked(Value value) const {
  return llvm::any_of(concats, [&](Concat each) { return llvm::is_contained(each.op.getXs(), value); }) ||
         llvm::any_of(after, [&](const After &each) { return SeenProduct(each.op, each.isA).x == value; }) ||
         llvm::any_of(sums, [&](const Sum &sum) {
           return llvm::any_of(sum.products,
                               [&](ir::ContractOp op) { return op.getA() == value || op.getB() == value; });
         });
}

/// What is stacked of rows of a table and other values, and multiplied as such after the loop.
void Leave::findConcats() {
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

} // namespace wg::passes
