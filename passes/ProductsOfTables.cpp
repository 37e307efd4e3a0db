// Products of rows that were taken from a table, as products of the table.
//
//   %x = wg.gather %e, %i                          %t = wg.contract "rk,kn->rn" %e, %w
//   %y = wg.contract "mk,kn->mn" %x, %w       ->   %y = wg.gather %t, %i
//
//   %d = wg.contract "mk,mn->kn" %x, %dy      ->   %s = wg.scatter_add %dy, %i
//                                                  %d = wg.contract "rk,rn->kn" %e, %s
//
//   %dx = wg.contract "mn,kn->mk" %dy, %w     ->   %s = wg.scatter_add %dy, %i
//   %de = wg.scatter_add %dx, %i                   %de = wg.contract "rn,kn->rk" %s, %w
//
// A layer that reads an embedding multiplies each row of the table again wherever it was looked up: of a vocabulary of
// 65 letters in 1,600 places, 25 times. Here the table is multiplied, and its products are looked up. So are the
// derivatives: rows are added up before they are multiplied. Only where the table has clearly fewer rows than there are
// places, and a row's product is work; in f32 and f64, in which rows can be added up.
// Legal because a product is linear in each row, but for rounding: sums are in another order. Rows of the table that no
// place names are multiplied too: in sums over rows they count as zeros, whatever they hold, and their own derivative
// is exactly zero. An index out of range is found by what looks up, as before. Cost: linear in the ops.
#include "ir/Build.h"
#include "ir/Views.h"
#include "passes/Passes.h"
#include "passes/SeenProduct.h"
#include "passes/TableRows.h"
#include "passes/Unread.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_PRODUCTSOFTABLES
#include "passes/Passes.h.inc"

namespace {

/// Products for each element that is looked up, or added up: fewer may cost no more than to move it through memory.
constexpr int64_t kWork = 64;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
int64_t elementsOf(ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}
Value reshaped(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> shape) {
  return typeOf(x).getShape() == shape ? x : Value(ir::ReshapeOp::create(b, loc, x, shape, ValueRange()));
}

/// One block.
class Tables {
public:
  explicit Tables(Block &block) : block(block) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto product = dyn_cast<ir::ContractOp>(op)) {
        if (isPlain(product) && !lookUpProducts(product, true) && !lookUpProducts(product, false) &&
            !addUpBefore(product, true))
          addUpBefore(product, false);
      } else if (auto sum = dyn_cast<ir::ScatterAddOp>(op)) {
        multiplySums(sum);
      }
    }
    if (isChanged)
      eraseUnread(block);
  }

private:
  static bool isPlain(ir::ContractOp op) {
    Type element = op.getC().getType().getElementType();
    return isPlainProduct(op) && op.getA() != op.getB() && (element.isF32() || element.isF64());
  }

  static std::string without(StringRef letters, StringRef gone) {
    std::string kept;
    for (char letter : letters)
      if (!gone.contains(letter))
        kept += letter;
    return kept;
  }

  /// Products of rows that are looked up: those of the table are.
  bool lookUpProducts(ir::ContractOp op, bool isA) {
    SeenProduct seen(op, isA);
    std::optional<Taken> taken = takenRows(seen.x);
    if (!taken)
      return false;
    std::string places = seen.letters.substr(0, taken->places), row = seen.letters.substr(taken->places);
    if (!llvm::all_of(places, [&](char letter) { return has(seen.ofC, letter) && !has(seen.ofOther, letter); }) ||
        seen.terms() < kWork ||
        typeOf(taken->op.getIndices()).getRank() + seen.ofC.size() - places.size() > runtime::kMaxRank)
      return false;
    OpBuilder b(op);
    Location loc = op.getLoc();
    std::string r = seen.freeLetter(), rest = without(seen.ofC, places);
    Value table = seen.with(b, loc, taken->op.getX(), r + row, seen.other, seen.ofOther, r + rest);
    Value rows = ir::GatherOp::create(b, taken->op.getLoc(), table, taken->op.getIndices());
    if (!op.getC().use_empty())
      lookedUp.insert(ir::storageOf(taken->op.getIndices()));
    SmallVector<int64_t> shape(typeOf(seen.x).getShape().take_front(places.size()));
    llvm::append_range(shape, typeOf(table).getShape().drop_front());
    replace(op, inOrder(b, loc, reshaped(b, loc, rows, shape), places + rest, seen.ofC));
    return true;
  }

  /// Sums over places of products of rows: what they are multiplied by is added up before, by rows of the table.
  bool addUpBefore(ir::ContractOp op, bool isA) {
    SeenProduct seen(op, isA);
    std::optional<Taken> taken = takenRows(seen.x);
    if (!taken)
      return false;
    std::string places = seen.letters.substr(0, taken->places), row = seen.letters.substr(taken->places);
    // The index is looked up elsewhere too, and that finds what is out of range.
    if (llvm::any_of(places, [&](char letter) { return has(seen.ofC, letter); }) ||
        !StringRef(seen.ofOther).starts_with(places) || !isLookedUp(taken->op) || seen.rows() < kWork)
      return false;
    OpBuilder b(op);
    Location loc = op.getLoc();
    std::string r = seen.freeLetter();
    Value table = taken->op.getX(), indices = taken->op.getIndices();
    int64_t size = typeOf(table).getDimSize(0);
    Value sums = addedUp(b, loc, seen.other, places.size(), indices, size);
    Value used = onlyNamed(b, loc, table, indices);
    replace(op, seen.with(b, loc, used, r + row, sums, r + seen.ofOther.substr(places.size()), seen.ofC));
    return true;
  }

  /// Whether what a gather looks up is looked up where it is no longer read by products, too.
  bool isLookedUp(ir::GatherOp op) const {
    if (lookedUp.contains(ir::storageOf(op.getIndices())))
      return true;
    SmallVector<Operation *> work{op};
    while (!work.empty())
      for (Operation *user : work.pop_back_val()->getUsers())
        if (isa<ir::ReshapeOp>(user))
          work.push_back(user);
        else if (!isa<ir::ContractOp>(user) && !isOpTriviallyDead(user))
          return true;
    return false;
  }

  /// Products that are added up in a table: their rows are, before they are multiplied.
  void multiplySums(ir::ScatterAddOp sum) {
    auto op = ir::storageOf(sum.getUpdates()).getDefiningOp<ir::ContractOp>();
    if (!op || !isPlain(op) || onlySum(op.getC()) != sum)
      return;
    ArrayRef<int64_t> row = typeOf(sum.getY()).getShape().drop_front(), shape = op.getC().getType().getShape();
    if (shape.size() < row.size() || shape.take_back(row.size()) != row)
      return;
    size_t numPlaces = shape.size() - row.size();
    if (elementsOf(shape.take_front(numPlaces)) != typeOf(sum.getIndices()).getNumElements())
      return;
    for (bool isA : {true, false}) {
      SeenProduct seen(op, isA);
      std::string places = seen.ofC.substr(0, numPlaces);
      if (!StringRef(seen.letters).starts_with(places) ||
          llvm::any_of(places, [&](char letter) { return has(seen.ofOther, letter); }) ||
          SeenProduct(op, !isA).rows() < kWork)
        continue;
      OpBuilder b(sum);
      std::string r = seen.freeLetter();
      Value sums = addedUp(b, sum.getLoc(), seen.x, places.size(), sum.getIndices(), typeOf(sum.getY()).getDimSize(0));
      Value product = seen.with(b, op.getLoc(), sums, r + seen.letters.substr(places.size()), seen.other, seen.ofOther,
                                r + seen.ofC.substr(places.size()));
      sum.getY().replaceAllUsesWith(onlyNamed(b, op.getLoc(), product, sum.getIndices()));
      isChanged = true;
      return;
    }
  }

  /// The rows of x, of `places` axes, by index: once, where several products want them.
  Value addedUp(OpBuilder &b, Location loc, Value x, size_t places, Value indices, int64_t size) {
    Value &sums = sumsOf[{x.getAsOpaquePointer(), ir::storageOf(indices).getAsOpaquePointer(), places, size}];
    if (sums)
      return sums;
    ArrayRef<int64_t> shape = typeOf(x).getShape();
    int64_t count = elementsOf(shape.take_front(places));
    SmallVector<int64_t> flat{count}, to{size};
    llvm::append_range(flat, shape.drop_front(places));
    llvm::append_range(to, shape.drop_front(places));
    sums = ir::ScatterAddOp::create(b, loc, reshaped(b, loc, x, flat), reshaped(b, loc, indices, {count}), to, 0,
                                    ValueRange());
    return sums;
  }

  /// The rows of x that an index names, and zeros elsewhere.
  Value onlyNamed(OpBuilder &b, Location loc, Value x, Value indices) {
    auto type = typeOf(x);
    int64_t size = type.getDimSize(0), count = typeOf(indices).getNumElements();
    Value &isNamed = named[{ir::storageOf(indices).getAsOpaquePointer(), size}];
    if (!isNamed) {
      auto ofOnes = RankedTensorType::get({count}, b.getF32Type());
      Value ones = ir::ConstantOp::create(b, loc, DenseElementsAttr::get(ofOnes, b.getF32FloatAttr(1)));
      Value uses = ir::ScatterAddOp::create(b, loc, ones, reshaped(b, loc, indices, {count}), {size}, 0, ValueRange());
      isNamed = ir::GreaterOp::create(b, loc, uses, ir::zerosLike(b, loc, uses));
    }
    Value mask = ir::BroadcastOp::create(b, loc, isNamed, type.getShape(), {0}, ValueRange());
    return ir::SelectOp::create(b, loc, mask, x, ir::zerosLike(b, loc, x));
  }

  void replace(ir::ContractOp op, Value value) {
    op.getC().replaceAllUsesWith(value);
    isChanged = true;
  }

  Block &block;
  DenseSet<Value> lookedUp; ///< indices, in products of tables
  std::map<std::tuple<const void *, const void *, size_t, int64_t>, Value> sumsOf;
  std::map<std::pair<const void *, int64_t>, Value> named;
  bool isChanged = false;
};

struct ProductsOfTables : impl::ProductsOfTablesBase<ProductsOfTables> {
  using Base::Base;

  void runOnOperation() override {
    if (!getOperation().isExternal())
      Tables(getOperation().getBody().front()).run();
  }
};

} // namespace
} // namespace wg::passes
