// Products written as sums, or term by term, and sums of products as products of sums: each for ArrangeProducts, which
// says when.
#include "passes/SumsOfProducts.h"

#include "ir/Build.h"
#include "passes/SeenProduct.h"

#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::passes {

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

// ---- Sums of products -----------------------------------------------------------------------------------------------

Value writeAsSum(ir::ContractOp op, const ProductCosts &costs) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  DenseMap<char, int64_t> sizes;
  auto wide = [&](Value x, StringRef letters) {
    std::string kept;
    for (auto [letter, size] : llvm::zip_equal(letters, shapeOf(x))) {
      sizes[letter] = size;
      if (size != 1)
        kept += letter;
    }
    return kept;
  };
  std::string a = wide(op.getA(), op.lettersOfA()), b = wide(op.getB(), op.lettersOfB()),
              c = wide(op.getC(), op.lettersOfC());
  auto contains = [](StringRef letters, char l) { return letters.contains(l); };
  std::string space = costs.spaceOfSum({a, b, c});
  auto shapeBy = [&](StringRef letters) {
    SmallVector<int64_t> shape;
    for (char l : letters)
      shape.push_back(sizes.lookup(l));
    return shape;
  };
  auto reshaped = [&](Value x, ArrayRef<int64_t> shape) -> Value {
    return shapeOf(x) == shape ? x : Value(ir::ReshapeOp::create(builder, loc, x, shape, ValueRange()));
  };
  SmallVector<int64_t> full = shapeBy(space);
  auto spread = [&](Value x, StringRef letters) -> Value {
    x = reshaped(x, shapeBy(letters));
    SmallVector<int64_t> permutation, dims;
    for (auto [d, l] : llvm::enumerate(space))
      if (size_t at = letters.find(l); at != StringRef::npos) {
        permutation.push_back(at);
        dims.push_back(d);
      }
    if (!llvm::is_sorted(permutation))
      x = ir::TransposeOp::create(builder, loc, x, permutation);
    if (shapeOf(x) == ArrayRef(full))
      return x;
    return ir::BroadcastOp::create(builder, loc, x, full, dims, ValueRange());
  };
  Value product = ir::MulOp::create(builder, loc, spread(op.getA(), a), spread(op.getB(), b));
  SmallVector<int64_t> axes, permutation;
  std::string left;
  for (auto [d, l] : llvm::enumerate(space))
    if (!contains(c, l))
      axes.push_back(d);
    else
      left += l;
  Value sum = axes.empty() ? product : Value(ir::ReduceSumOp::create(builder, loc, product, axes));
  for (char l : c)
    permutation.push_back(left.find(l));
  if (!llvm::is_sorted(permutation))
    sum = ir::TransposeOp::create(builder, loc, sum, permutation);
  Value result = reshaped(sum, shapeOf(op.getC()));
  op.getC().replaceAllUsesWith(result);
  op.erase();
  return result;
}

// ---- Terms ----------------------------------------------------------------------------------------------------------

Value writeAsTerms(ir::ContractOp op, const ProductCosts &costs) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Order order = costs.orderOf(op);
  std::string summed = costs.summedIn(order);
  SmallVector<int64_t> shape = costs.shapeBy(order.c), sizes = costs.shapeBy(summed);
  auto plain = [&](Value x, StringRef letters) { // without letters of size 1
    SmallVector<int64_t> kept = costs.shapeBy(letters);
    return shapeOf(x) == ArrayRef(kept) ? x : Value(ir::ReshapeOp::create(b, loc, x, kept, ValueRange()));
  };
  Value x = plain(op.getA(), order.a), y = plain(op.getB(), order.b);
  // Where the summed letters are at `places`, as the result lies.
  auto termOf = [&](Value from, StringRef letters, ArrayRef<int64_t> places) -> Value {
    SmallVector<int64_t> starts, limits, kept, permutation, dims;
    std::string left;
    for (auto [letter, size] : llvm::zip_equal(letters, shapeOf(from))) {
      size_t at = summed.find(letter);
      bool isSummed = at != std::string::npos;
      starts.push_back(isSummed ? places[at] : 0);
      limits.push_back(isSummed ? places[at] + 1 : size);
      if (isSummed)
        continue;
      left += letter;
      kept.push_back(size);
    }
    if (kept.size() < letters.size()) {
      from = ir::SliceOp::create(b, loc, from, starts, limits, SmallVector<int64_t>(letters.size(), 1), ValueRange());
      from = ir::ReshapeOp::create(b, loc, from, kept, ValueRange());
    }
    for (auto [d, letter] : llvm::enumerate(order.c))
      if (size_t at = left.find(letter); at != std::string::npos) {
        permutation.push_back(at);
        dims.push_back(d);
      }
    if (!llvm::is_sorted(permutation))
      from = ir::TransposeOp::create(b, loc, from, permutation);
    return shapeOf(from) == ArrayRef(shape) ? from
                                            : Value(ir::BroadcastOp::create(b, loc, from, shape, dims, ValueRange()));
  };
  // From zero on, so that each sum takes up one product, and sums have the bits, with the signs of zeros, that they
  // have in a product of panels; of several letters these may be added in another order.
  Value sum;
  SmallVector<int64_t> places(summed.size(), 0);
  for (int64_t rest = 1; rest;) {
    Value term = ir::MulOp::create(b, loc, termOf(x, order.a, places), termOf(y, order.b, places));
    sum = ir::AddOp::create(b, loc, term, sum ? sum : ir::zerosLike(b, loc, term));
    rest = 0;
    for (size_t i = places.size(); i-- > 0 && !rest;) {
      rest = ++places[i] < sizes[i];
      if (!rest)
        places[i] = 0;
    }
  }
  Value result = sum;
  if (result.getType() != op.getC().getType())
    result = ir::ReshapeOp::create(b, loc, result, shapeOf(op.getC()), ValueRange());
  op.getC().replaceAllUsesWith(result);
  op.erase();
  return result;
}

// ---- Products that are summed ---------------------------------------------------------------------------------------

void sumBefore(ir::ReduceSumOp sum) {
  Value x = sum.getX();
  auto neg = x.getDefiningOp<ir::NegOp>();
  if (neg && neg->hasOneUse())
    x = neg.getX();
  auto product = x.getDefiningOp<ir::ContractOp>();
  // A relation says which terms there are, so its letters cannot be summed before it.
  if (!isPlainProduct(product) || !product->hasOneUse())
    return;
  std::string gone;
  for (int64_t axis : sum.getAxes())
    gone += product.lettersOfC()[axis];
  OpBuilder b(sum);
  auto without = [&](StringRef letters, llvm::function_ref<bool(char)> drops, SmallVectorImpl<int64_t> &axes) {
    std::string kept;
    for (auto [axis, letter] : llvm::enumerate(letters))
      if (drops(letter))
        axes.push_back(axis);
      else
        kept += letter;
    return kept;
  };
  auto own = [&](StringRef other) {
    return [&gone, other](char letter) { return StringRef(gone).contains(letter) && !other.contains(letter); };
  };
  auto summed = [&](Value x, ArrayRef<int64_t> axes) -> Value {
    return axes.empty() ? x : Value(ir::ReduceSumOp::create(b, sum.getLoc(), x, axes));
  };
  SmallVector<int64_t> axesA, axesB, axesC;
  std::string lettersA = without(product.lettersOfA(), own(product.lettersOfB()), axesA),
              lettersB = without(product.lettersOfB(), own(product.lettersOfA()), axesB),
              lettersC = without(product.lettersOfC(), own(""), axesC);
  Value a = summed(product.getA(), axesA), c = summed(product.getB(), axesB);
  std::string equation = runtime::Equation{lettersA, lettersB, lettersC}.text();
  Value result = ir::ContractOp::create(b, product.getLoc(), sum.getType(), a, c, equation);
  if (x != sum.getX())
    result = ir::NegOp::create(b, neg.getLoc(), result);
  sum->getResult(0).replaceAllUsesWith(result);
  sum.erase();
  if (neg && neg->use_empty())
    neg.erase();
  product.erase();
}

} // namespace wg::passes
