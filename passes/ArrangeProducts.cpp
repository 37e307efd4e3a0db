// In which form and in which order of its letters is a product cheapest?
//
//   %y = wg.contract "mk,k->m" %a, %x       ->   %b = wg.broadcast %x   %p = wg.mul %a, %b   %y = wg.reduce_sum %p
//
//   %c = wg.contract "nki,nkj->ijk" %a, %b  ->   %d = wg.contract "nki,nkj->kij" %a, %b
//                                                %c = wg.transpose %d by [1, 2, 0]
//
//   %c = wg.contract "kij,nki->nkj" %q, %y  ->   %t = wg.reduce_sum %y axes [0]
//   %s = wg.reduce_sum %c axes [0]               %s = wg.contract "kij,ki->kj" %q, %t
//
// A sum over letters of a product that nobody else reads is taken before it: of the operand that has them, or in the
// product where both have. A gradient is such a sum wherever a value was broadcast, as a bias or a mean is.
//
// A product without rows or without columns is a sum of products: bound by memory, and the reduce emitter's work, which
// takes along what is elementwise before it and after it. Any other is a kernel of its own, whose cost depends on the
// order of the letters: vectors lie along the result's innermost letter, tiles take rows of another, and what lies
// apart is read a cache line an element. So the orders that may be best are listed, the groups of letters side by side
// or the tensor as it is, and the cheapest by an estimate of cycles is written, with transposes to it and from it. They
// are explicit: one of an operand is a copy in blocks, one of the result a view to an elementwise reader.
// Legal because a sum of products is the same in any order of its letters, but for rounding. Simplification folds
// transposes into products and so leaves the choice to this pass, which ends what simplification began. Cost: at most
// some thousand estimates a product.
#include "ir/Build.h"
#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_ARRANGEPRODUCTS
#include "passes/Passes.h.inc"

namespace {

using runtime::Letter;
using runtime::Letters;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

// ---- Sums of products -----------------------------------------------------------------------------------------------

/// The pages of `other` that are read by turns where `walked` is read in its order: one for each place of the innermost
/// letter that lies elsewhere in `other`.
int64_t pagesAcross(const DenseMap<char, int64_t> &sizes, StringRef walked, StringRef other) {
  while (!walked.empty() && walked.back() == other.back()) {
    walked = walked.drop_back();
    other = other.drop_back();
  }
  return walked.empty() ? 1 : sizes.lookup(walked.back());
}

/// The product as broadcast, mul and reduce_sum. An axis of size 1 is none.
void writeAsSum(ir::ContractOp op) {
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
  // The iteration space lies as the operand that has every letter. If both have, one is read across: in as few pages
  // at a time as may be, unless the result, which then lies across too, is large.
  std::string space = llvm::all_of(b, [&](char l) { return contains(a, l); }) ? a : b;
  if (a.size() == b.size() && pagesAcross(sizes, a, b) > 4 * pagesAcross(sizes, b, a) && c.size() < a.size())
    space = b;
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
  op.getC().replaceAllUsesWith(reshaped(sum, shapeOf(op.getC())));
  op.erase();
}

// ---- Products that are summed ---------------------------------------------------------------------------------------

/// The sum of a product as a product of sums, if nobody else reads the product: fewer multiplications, and nothing of
/// the product's size. A difference has left its sign between the two.
void sumBefore(ir::ReduceSumOp sum) {
  Value x = sum.getX();
  auto neg = x.getDefiningOp<ir::NegOp>();
  if (neg && neg->hasOneUse())
    x = neg.getX();
  auto product = x.getDefiningOp<ir::ContractOp>();
  // A relation says which terms there are, so its letters cannot be summed before it.
  if (!product || !product->hasOneUse() || product.isRelated() || !product.getA().getType().hasStaticShape() ||
      !product.getB().getType().hasStaticShape())
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

// ---- What an order costs, in cycles ---------------------------------------------------------------------------------

constexpr double kLine = 64;   ///< bytes of a cache line, and of a vector
constexpr double kCache = 1e6; ///< bytes that a core has close by

/// Cycles to move so many bytes once, of a tensor or of several.
double cyclesOf(double bytes) { return bytes / (bytes <= kCache ? 32 : bytes <= 32 * kCache ? 20 : 6); }

/// A product's letters in the orders of a, b and c. Letters of size 1 are in none.
struct Order {
  std::string a, b, c;
  friend bool operator==(const Order &x, const Order &y) = default;
};

class Costs {
public:
  Costs(ir::ContractOp op) : elementBytes(op.getC().getType().getElementTypeBitWidth() / 8) {
    for (auto [letters, x] : {std::pair(op.lettersOfA(), op.getA()), std::pair(op.lettersOfB(), op.getB())})
      for (auto [letter, size] : llvm::zip_equal(letters, shapeOf(x)))
        sizes[letter] = size;
  }

  SmallVector<int64_t> shapeBy(StringRef letters) const {
    return llvm::map_to_vector(letters, [&](char letter) { return sizes.lookup(letter); });
  }
  double elements(StringRef letters) const {
    double count = 1;
    for (char letter : letters)
      count *= static_cast<double>(sizes.lookup(letter));
    return count;
  }
  std::string withoutUnits(StringRef letters) const {
    std::string kept;
    for (char letter : letters)
      if (sizes.lookup(letter) != 1)
        kept += letter;
    return kept;
  }

  /// A copy of a tensor from one order of its letters to another; nothing if they are the same.
  double transpose(StringRef from, StringRef to) const {
    if (from == to)
      return 0;
    double count = elements(from), bytes = count * elementBytes, lanes = kLine / elementBytes;
    // Letters at the end that both have there are runs that are copied whole.
    double run = 1;
    size_t same = 0;
    for (; from[from.size() - 1 - same] == to[to.size() - 1 - same]; ++same)
      run *= elements(to.substr(to.size() - 1 - same, 1));
    double cycles = 0;
    if (same > 0) {
      cycles = count / run * (3 + std::ceil(run / lanes) * 1.5);
    } else {
      // Blocks of as many rows as each has lanes: loads, exchanges of halves, stores.
      double wide = lastRun(to, from), high = lastRun(from, to);
      lanes = std::min(lanes, static_cast<double>(llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max(2.0, wide)))));
      cycles = count / wide / high * std::ceil(wide / lanes) * std::ceil(high / lanes) * lanes * (2 + std::log2(lanes));
    }
    return std::max(cycles, cyclesOf(2 * bytes)) + 50;
  }

  /// The elements of the last letters of `letters` that are side by side in `other` too: one axis to a copy.
  double lastRun(StringRef letters, StringRef other) const {
    size_t first = letters.size() - 1;
    while (first > 0 && other.find(letters[first - 1]) + 1 == other.find(letters[first]))
      --first;
    return elements(letters.substr(first));
  }

  /// The kernel of a product in this order, as codegen/emit/Contract walks it.
  double product(const Order &order) const {
    Letters letters({order.a, order.b, order.c}, shapeBy(order.a), shapeBy(order.b));
    auto endsC = [](ArrayRef<Letter> group) { return !group.empty() && group.back().c == 1; };
    StringRef a = order.a, b = order.b;
    if (endsC(letters.m)) {
      letters.exchange();
      std::swap(a, b);
    }
    for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
      mergeNeighbours(*group);
    bool alongBatch = endsC(letters.batch);
    std::vector<Letter> &inner = alongBatch ? letters.batch : letters.n;
    if (inner.empty()) // a single element, which a sum of products computes in vectors
      return std::numeric_limits<double>::infinity();
    Letter lane = inner.back();
    inner.pop_back();
    double lanes = kLine / elementBytes, vectors = std::ceil(double(lane.size) / lanes);
    double terms = double(sizeOf(letters.k)), rowsM = double(sizeOf(letters.m)),
           batches = double(sizeOf(letters.batch)), rowsN = double(sizeOf(letters.n));
    auto longest = [](ArrayRef<Letter> group) {
      int64_t most = 1;
      for (const Letter &letter : group)
        most = std::max(most, letter.size);
      return double(most);
    };
    // Tiles: `rows` rows of `columns` vectors.
    double rowSide = longest(letters.m), columnSide = alongBatch ? longest(letters.n) : vectors;
    double columns = std::min(alongBatch ? 4.0 : 2.0, columnSide), rows = std::min(24 / columns, rowSide);
    double tiles = batches * rowsM / rowSide * std::ceil(rowSide / rows) *
                   (alongBatch ? vectors * rowsN / columnSide * std::ceil(columnSide / columns)
                               : rowsN * std::ceil(vectors / columns));
    rows = rowSide / std::ceil(rowSide / rows);
    columns = columnSide / std::ceil(columnSide / columns);
    if (alongBatch && (lane.a != 1 || lane.b != 1))
      return std::numeric_limits<double>::infinity(); // vectors of elements that lie apart: never worth it
    // Two multiply-adds a cycle, two loads, and in a long sum four cycles before the next term's can begin. Along a
    // batch each load is a line of its own, of which the tiles of one vector of lanes read all again.
    double load = 0.5, lines = (rowsM + rowsN) * terms * kLine;
    if (alongBatch)
      load = (lines <= kCache / 32 ? 1 : lines <= kCache / 2 ? 2 : 6) + (double(lane.size) < lanes ? 1 : 0);
    double step =
        std::max({rows * columns * 0.5, (rows + columns) * load, 4 * terms / (terms + 32)}); // of one term of a tile
    double cycles = tiles * (terms * step + rows * columns * 0.5 + 2);
    if (!alongBatch && lane.b != 1) // b is packed: in blocks where it is contiguous along k, else by the element
      cycles += elements(b) * (llvm::any_of(letters.k, [](const Letter &letter) { return letter.b == 1; })
                                   ? 0.4 * vectors * lanes / double(lane.size)
                                   : 2);
    cycles += apart(a, letters.batch, &Letter::a, rowsM * terms) +
              apart(b, letters.batch, &Letter::b, rowsN * double(lane.size) * terms);
    double moved = cyclesOf((elements(a) + elements(b) + elements(order.c)) * elementBytes);
    if (rowsM == 1 && !alongBatch) // b is read once, a tile's few columns at a time, each line from a page of its own
      moved += cyclesOf(elements(b) * elementBytes);
    // Loads wait while there is arithmetic to do, but not for all of it.
    return std::max(cycles, moved) + std::min(cycles, moved) / 2;
  }

  /// A sum of products, which walks the operand that has every letter as it lies, and reads the other one beside it.
  double sum(const Order &order) const {
    bool walksA = order.a.size() >= order.b.size();
    StringRef walked = walksA ? order.a : order.b, other = walksA ? order.b : order.a;
    double count = elements(walked), lanes = kLine / elementBytes,
           cycles = count / lanes * 2 + cyclesOf((count + elements(other)) * elementBytes);
    // By the element where it lies across.
    if (!walked.empty() && other.contains(walked.back()) && other.back() != walked.back())
      cycles += count * (elements(other) * elementBytes <= kCache ? 1 : 20);
    return cycles;
  }

private:
  /// What it costs that an operand, of which `slab` elements are read for each batch, has a letter of batch innermost:
  /// the elements lie in as many lines, and a cache must keep those for the batches to come.
  double apart(StringRef letters, ArrayRef<Letter> batch, int64_t Letter::*step, double slab) const {
    if (llvm::none_of(batch, [&](const Letter &letter) { return letter.*step == 1; }))
      return 0;
    bool kept = slab * kLine <= kCache / 2 && batch.back().*step == 1;
    return elements(letters) * (kept ? 1.5 : 10);
  }

  DenseMap<char, int64_t> sizes;
  double elementBytes;
};

// ---- The cheapest order ---------------------------------------------------------------------------------------------

/// The letters of `group` in the orders that the given tensors have them in, without repetition.
SmallVector<std::string> ordersOf(StringRef group, ArrayRef<StringRef> tensors) {
  SmallVector<std::string> orders;
  for (StringRef tensor : tensors) {
    std::string order;
    for (char letter : tensor)
      if (group.contains(letter))
        order += letter;
    if (!llvm::is_contained(orders, order))
      orders.push_back(order);
  }
  return orders;
}

Order cheapest(ir::ContractOp op, const Costs &costs) {
  Order start{costs.withoutUnits(op.lettersOfA()), costs.withoutUnits(op.lettersOfB()),
              costs.withoutUnits(op.lettersOfC())};
  Letters letters = op.letters();
  for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
    dropUnits(*group);
  auto names = [](ArrayRef<Letter> group) { return namesOf(group); };
  // A kernel of its own for a copy costs a call, and an estimate may be wrong: what is written must be clearly better.
  bool isThin = letters.m.empty() || letters.n.empty();
  double before = isThin ? costs.sum(start) : costs.product(start), best = before * 0.9 - 500;
  Order order = start;
  for (const std::string &batch : ordersOf(names(letters.batch), {start.c, start.a, start.b}))
    for (const std::string &m : ordersOf(names(letters.m), {start.c, start.a}))
      for (const std::string &n : ordersOf(names(letters.n), {start.c, start.b}))
        for (const std::string &k : ordersOf(names(letters.k), {start.a, start.b})) {
          std::array<std::string, 4> ofA{start.a, batch + m + k, batch + k + m, m + k + batch},
              ofB{start.b, batch + k + n, batch + n + k, k + n + batch},
              ofC{start.c, batch + m + n, batch + n + m, m + n + batch};
          auto each = [](ArrayRef<std::string> all, llvm::function_ref<void(const std::string &)> f) {
            for (auto [i, one] : llvm::enumerate(all))
              if (!llvm::is_contained(all.take_front(i), one))
                f(one);
          };
          each(ofC, [&](const std::string &c) {
            double moved = costs.transpose(c, start.c);
            if (moved >= best)
              return;
            each(ofA, [&](const std::string &a) {
              double movedA = moved + costs.transpose(start.a, a);
              if (movedA >= best)
                return;
              each(ofB, [&](const std::string &b) {
                double all = movedA + costs.transpose(start.b, b);
                Order other{a, b, c};
                if (all >= best || other == start)
                  return;
                all += costs.product(other);
                if (all < best) {
                  best = all;
                  order = other;
                }
              });
            });
          });
        }
  return order;
}

struct ArrangeProducts : impl::ArrangeProductsBase<ArrangeProducts> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    for (Block &block : getOperation().getBody()) {
      copies.clear();
      for (auto sum : llvm::make_early_inc_range(block.getOps<ir::ReduceSumOp>()))
        sumBefore(sum);
      for (auto op : llvm::make_early_inc_range(block.getOps<ir::ContractOp>()))
        if (!op.isRelated() && op.getA().getType().hasStaticShape() && op.getB().getType().hasStaticShape())
          arrange(op);
    }
  }

private:
  void arrange(ir::ContractOp op) {
    Letters letters = op.letters();
    for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
      dropUnits(*group);
    Costs costs(op);
    Order start{costs.withoutUnits(op.lettersOfA()), costs.withoutUnits(op.lettersOfB()),
                costs.withoutUnits(op.lettersOfC())};
    bool isThin = letters.m.empty() || letters.n.empty(),
         isEmpty = costs.elements(start.a) == 0 || costs.elements(start.b) == 0;
    Order order = isEmpty ? start : cheapest(op, costs);
    if (isThin && order == start)
      return writeAsSum(op);
    if (order == start)
      return;
    OpBuilder b(op);
    Value x = arranged(b, costs, op.getA(), start.a, order.a), y = arranged(b, costs, op.getB(), start.b, order.b);
    auto type = RankedTensorType::get(costs.shapeBy(order.c), op.getC().getType().getElementType());
    std::string equation = runtime::Equation{order.a, order.b, order.c}.text();
    Value product = ir::ContractOp::create(b, op.getLoc(), type, x, y, equation);
    Value result = transposed(b, op.getLoc(), product, order.c, start.c);
    if (result.getType() != op.getC().getType())
      result = ir::ReshapeOp::create(b, op.getLoc(), result, op.getC().getType().getShape(), ValueRange());
    op.getC().replaceAllUsesWith(result);
    op.erase();
  }

  static Value transposed(OpBuilder &b, Location loc, Value x, StringRef from, StringRef to) {
    if (from == to)
      return x;
    SmallVector<int64_t> permutation;
    for (char letter : to)
      permutation.push_back(from.find(letter));
    return ir::TransposeOp::create(b, loc, x, permutation);
  }

  /// An operand without its letters of size 1 and in another order; products that want the same share one copy.
  Value arranged(OpBuilder &b, const Costs &costs, Value x, StringRef from, StringRef to) {
    if (SmallVector<int64_t> shape = costs.shapeBy(from); shapeOf(x) != ArrayRef(shape))
      x = ir::ReshapeOp::create(b, x.getLoc(), x, shape, ValueRange());
    if (from == to)
      return x;
    SmallVector<int64_t> permutation;
    for (char letter : to)
      permutation.push_back(from.find(letter));
    for (ir::TransposeOp copy : copies[x])
      if (copy.getPermutation() == ArrayRef(permutation))
        return copy;
    auto copy = ir::TransposeOp::create(b, x.getLoc(), x, permutation);
    copies[x].push_back(copy);
    return copy;
  }

  llvm::DenseMap<Value, SmallVector<ir::TransposeOp>> copies; ///< of operands, each before all that read it
};

} // namespace
} // namespace wg::passes
