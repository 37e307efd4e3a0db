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
// takes along what is elementwise before it and after it. Where nothing is summed it is elementwise itself: a kernel
// that goes through the result as it lies and reads operands across, or one in another order of the result and a
// transpose, or a product, whatever is cheaper. A sum of two to four products of arguments may be elementwise too: the
// terms of each element, one after another, with the bits that a product has where one letter is summed. Any other is a
// kernel of its own, whose cost depends on the order of the letters: vectors lie along the result's innermost letter,
// tiles take rows of another, and what lies apart is read a cache line an element. So the orders that may be best are
// listed: all of the result's letters (of more than four, or five where nothing is summed, the groups of letters side
// by side), and of each operand the tensor as it is or its groups side by side. Whichever order of the result is asked
// for, the list is the same, so that none is estimated to cost more than the cheapest kernel and a transpose behind it.
// The cheapest by ProductCosts is written, with transposes to it and from it. They are explicit: one of an operand is a
// copy in blocks, one of the result a view to an elementwise reader. Of what a loop's turns do not change there is one
// copy, before the loop (wg-hoist-invariants), which costs a turn its part of that. Legal because a sum of products is
// the same in any order of its letters, but for rounding. An estimate may be wrong: of large products, and of small
// ones that a program is made for, the forms that are close to the cheapest can be measured (ChooseForm).
// Simplification folds transposes into products and so leaves the choice to this pass, which ends what simplification
// began. Cost: at most some hundred estimates a product, of a few microseconds each; where tensors have four or five
// letters in different orders, of some tens, as each order of a kernel's loops is estimated.
#include "ir/Build.h"
#include "ir/Dialect.h"
#include "passes/Cheap.h"
#include "passes/Invariants.h"
#include "passes/Passes.h"
#include "passes/ProductCosts.h"
#include "passes/SeenProduct.h"
#include "passes/SumsOfProducts.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_ARRANGEPRODUCTS
#include "passes/Passes.h.inc"

namespace {

using runtime::Letter;
using runtime::Letters;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Without those of size 1.
Letters lettersOf(ir::ContractOp op) {
  Letters letters = op.letters();
  for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
    dropUnits(*group);
  return letters;
}

/// Whether it is a sum of products, or of none, and not a product of panels alone.
bool isWalked(const Letters &letters) { return letters.m.empty() || letters.n.empty() || letters.k.empty(); }

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

/// The orders of c's letters in which the product may be written: all of them, so that whichever order is asked for,
/// the cheapest one and a transpose are among what is compared. Of more than `most` letters the groups side by side.
SmallVector<std::string> ordersOfResult(const Order &start, size_t most, StringRef batch, StringRef m, StringRef n) {
  SmallVector<std::string> orders{start.c};
  auto include = [&](const std::string &order) {
    if (!llvm::is_contained(orders, order))
      orders.push_back(order);
  };
  if (start.c.size() <= most) {
    std::string order = start.c;
    llvm::sort(order);
    do
      include(order);
    while (std::next_permutation(order.begin(), order.end()));
    return orders;
  }
  for (const std::string &x : ordersOf(batch, {start.c, start.a, start.b}))
    for (const std::string &y : ordersOf(m, {start.c, start.a}))
      for (const std::string &z : ordersOf(n, {start.c, start.b}))
        for (const std::string &order : {x + y + z, x + z + y, y + z + x, z + y + x})
          include(order);
  return orders;
}

/// The orders of an operand's letters for a result of such an order: as it lies, or its groups side by side.
SmallVector<std::string> ordersOfOperand(StringRef start, StringRef c, StringRef other, StringRef batch, StringRef rows,
                                         StringRef k) {
  SmallVector<std::string> orders{start.str()};
  for (const std::string &x : ordersOf(batch, {c, start}))
    for (const std::string &y : ordersOf(rows, {c, start}))
      for (const std::string &z : ordersOf(k, {start, other}))
        for (const std::string &order : {x + y + z, x + z + y, y + z + x, z + y + x})
          if (!llvm::is_contained(orders, order))
            orders.push_back(order);
  return orders;
}

/// As a kernel of its own, as a sum of products, which is elementwise where nothing is summed, or term by term.
enum class Written { product, sum, terms };

/// The order in which a product is written, and how.
struct Form {
  Order order;
  Written as;
  friend bool operator==(const Form &x, const Form &y) = default;
};

/// A form, and what it costs where forms are compared.
struct Compared {
  Form form;
  double cost;
};

/// Whether it has so few terms that it may be written term by term. Not of numbers of 16 bits, of which products are
/// summed in 32.
bool hasFewTerms(ir::ContractOp op, const ProductCosts &costs, const Order &start) {
  std::string summed = costs.summedIn(start);
  return !summed.empty() && costs.elements(summed) <= kMostTerms && !start.c.empty() &&
         op.getC().getType().getElementTypeBitWidth() >= 32;
}

/// What measuring costs is worth it for large products, and for a few forms of small ones that a program is made for.
constexpr double kLarge = 2e5, kSmall = 1e3; // nanoseconds

/// Forms that may be the fastest cost at most so many times as much as the cheapest. Those of small products take no
/// time to run, only to compile.
double closeTo(double cost) { return cost >= kLarge ? 1.6 : 2; }

/// Forms that move nothing are measured unless they seem to cost so many times as much: estimates of them were too high
/// by as much where others seemed close.
constexpr double kGiven = 3;

/// Whether a product that takes so many nanoseconds is worth measuring, as it may take less: not what is as good as can
/// be, which is `unsure` where its result is moved or it may as well be a sum. (`jlik,mijl->klmi`: fifteen forms within
/// 1 % of the cheapest took 1.0 to 1.9 ms.)
bool isWorthMeasuring(double cost, const Order &order, const ProductCosts &costs, bool evenIfSmall, bool unsure) {
  double asGood = unsure && cost >= kLarge ? 1.1 : 1.4; // times
  return cost >= (evenIfSmall ? kSmall : kLarge) && cost >= costs.ideal(order) * asGood;
}

/// `turnsA`, `turnsB`: in how many turns a copy of the operand is read. `isAlone`: no other op may join its kernel, as
/// one that reads terms would be rounded once with them here and not there. `compared` gets the forms that are close,
/// if it is worth measuring them.
Compared cheapest(ir::ContractOp op, const ProductCosts &costs, double turnsA, double turnsB, bool isAlone,
                  SmallVectorImpl<Compared> *compared, bool evenIfSmall) {
  Order start = costs.orderOf(op);
  Letters letters = lettersOf(op);
  std::string batch = namesOf(letters.batch), m = namesOf(letters.m), n = namesOf(letters.n), k = namesOf(letters.k);
  // A kernel of its own for a copy costs a call, and an estimate may be wrong: what is written must be clearly better
  // than what there is, and a product of panels with copies of operands than any other form. Where nothing is summed,
  // a result that is moved is to be better still: it is most of what is moved, and estimates of large transposes are
  // the least exact ones (left for a tenth less, such products took up to three times as long, with AVX-512).
  const Model &model = costs.machineModel();
  auto clearlyBelow = [&](double cost, bool isMoved = false) {
    return cost * (isMoved ? model.clearlyMoved : model.clearly) - 50;
  };
  // A sum of products or elementwise, unless a product of panels is clearly cheaper: where nothing is summed, estimates
  // of those are the less exact ones.
  bool mayBeSum = isWalked(letters);
  Estimate before = mayBeSum ? costs.sum(start) : costs.product(start);
  double best = clearlyBelow(costs.cost(before)), least = costs.leastProduct(start);
  Form form{start, mayBeSum ? Written::sum : Written::product};
  Written asBefore = form.as;
  auto costOf = [&] { return form.order == start && form.as == asBefore ? costs.cost(before) : best; };
  auto bound = [&] { // what costs more is not looked at
    double cost = costOf();
    return compared ? cost * closeTo(cost) : best;
  };
  if (!isWorthMeasuring(costs.cost(before), start, costs, evenIfSmall, mayBeSum))
    compared = nullptr;
  if (compared)
    compared->push_back({form, costs.cost(before)});
  constexpr size_t kMost = 4, kMostElementwise = 5; // letters
  auto consider = [&](const Order &order, Written as, Estimate estimate) {
    double all = costs.cost(estimate);
    bool isGiven = as == Written::terms && all < costOf() * kGiven; // measured, if it is large
    if (compared && (all < bound() || isGiven))
      compared->push_back({{order, as}, all});
    if (all < best && all < clearlyBelow(costs.cost(before), k.empty() && order.c != start.c)) {
      best = all;
      form = {order, as};
    }
  };
  SmallVector<std::string> ofPanels = ordersOfResult(start, kMost, batch, m, n),
                           orders = k.empty() ? ordersOfResult(start, kMostElementwise, batch, m, n) : ofPanels;
  SmallVector<Estimate> fromEach = llvm::map_to_vector(orders, [&](const std::string &c) {
    Estimate moved = costs.transpose(c, start.c);
    if (c != start.c && std::max(turnsA, turnsB) > 1 &&
        std::isfinite(costs.cost(before))) // a copy before the loop costs for sure what it is estimated to
      moved = moved + before * 0.06;
    return moved;
  });
  for (auto [c, moved] : llvm::zip_equal(orders, fromEach)) {
    if (costs.cost(moved) + least >= bound())
      continue;
    if (mayBeSum) { // any order of the result can be walked
      Order other{start.a, start.b, c};
      consider(other, Written::sum, moved + costs.sum(other));
      // An operand that is read again and again may lie as it is walked: such a copy is made (wg-fuse).
      std::string walk = k.empty() ? c : costs.spaceOfSum(other);
      Estimate copies = moved;
      auto copy = [&](std::string &letters, double turns) {
        std::string from = letters;
        if (!costs.isCopied(letters, walk))
          return;
        copies = copies + costs.transpose(from, letters) * (1 / turns);
        consider(other, Written::sum, copies + costs.sum(other));
      };
      bool isSmallA = costs.elements(start.a) < costs.elements(start.b);
      copy(isSmallA ? other.a : other.b, isSmallA ? turnsA : turnsB);
      copy(isSmallA ? other.b : other.a, isSmallA ? turnsB : turnsA);
    }
    if (Order plain{start.a, start.b, c}; llvm::is_contained(ofPanels, c) && (c != start.c || mayBeSum))
      consider(plain, Written::product, moved + costs.product(plain));
  }
  if (isAlone && hasFewTerms(op, costs, start))
    consider(start, Written::terms, costs.terms(start));
  double withoutCopies = costOf();
  for (auto [c, moved] : llvm::zip_equal(orders, fromEach)) {
    if (!llvm::is_contained(ofPanels, c) || costs.cost(moved) + least >= bound())
      continue;
    SmallVector<std::string> ordersB = ordersOfOperand(start.b, c, start.a, batch, n, k);
    SmallVector<Estimate> movedB =
        llvm::map_to_vector(ordersB, [&](const std::string &b) { return costs.transpose(start.b, b) * (1 / turnsB); });
    for (const std::string &a : ordersOfOperand(start.a, c, start.b, batch, m, k)) {
      Estimate movedA = moved + costs.transpose(start.a, a) * (1 / turnsA);
      if (costs.cost(movedA) + least >= bound())
        continue;
      for (auto [b, cost] : llvm::zip_equal(ordersB, movedB)) {
        Estimate all = movedA + cost;
        Order other{a, b, c};
        if (costs.cost(all) + least >= bound() || (a == start.a && b == start.b))
          continue;
        all = all + costs.product(other);
        if (costs.cost(all) < clearlyBelow(withoutCopies))
          consider(other, Written::product, all);
        else if (compared && costs.cost(all) < bound())
          compared->push_back({{other, Written::product}, costs.cost(all)});
      }
    }
  }
  return {form, costOf()};
}

/// The forms that may be faster than `chosen`, which is the first of them: those that are close to it. A group is of
/// forms that walk the result, and large operands, along the same letters. However many groups there are, those of
/// forms that leave large operands as they lie are among them, one for each letter that results end in: what these cost
/// was estimated too high by a factor of three, where others seemed close. So is, for the same reason, that which moves
/// nothing, unless it seems to be slower by more than that.
SmallVector<Form> mayBeFastest(const Order &given, const Compared &chosen, SmallVectorImpl<Compared> &compared,
                               const ProductCosts &costs, bool isAlone, SmallVectorImpl<size_t> &groups) {
  bool isLarge = chosen.cost >= kLarge;
  size_t mostGroups = isLarge ? 6 : 4, mostOfGroup = isLarge ? 8 : 4;
  size_t mostAlike = isAlone ? 2 : mostOfGroup; // elsewhere all results lie alike
  constexpr double kLittle = 0.25;              // of the largest tensor
  const Order &start = chosen.form.order;
  double largest = std::max({costs.elements(start.a), costs.elements(start.b), costs.elements(start.c)});
  auto last = [](const std::string &letters) { return letters.empty() ? char() : letters.back(); };
  auto groupOf = [&](const Form &form) {
    auto lastOfLarge = [&](const std::string &letters) {
      return costs.elements(letters) < largest * kLittle ? char() : last(letters);
    };
    return std::tuple(form.as, last(form.order.c), lastOfLarge(form.order.a), lastOfLarge(form.order.b));
  };
  llvm::sort(compared, [](const Compared &x, const Compared &y) {
    const auto &[a, b, c] = x.form.order;
    const auto &[otherA, otherB, otherC] = y.form.order;
    return std::tie(x.cost, x.form.as, a, b, c) < std::tie(y.cost, y.form.as, otherA, otherB, otherC);
  });
  auto isUnmoved = [&](const Form &form) {
    auto stays = [&](const std::string &letters, const std::string &from) {
      return letters == from || costs.elements(letters) < largest * kLittle;
    };
    return stays(form.order.a, given.a) && stays(form.order.b, given.b);
  };
  SmallVector<SmallVector<Form>> found;
  std::string unmoved; // the last letters of the results of unmoved forms
  auto addGroup = [&](const Form &form) {
    found.push_back({form});
    if (isUnmoved(form))
      unmoved += last(form.order.c);
  };
  addGroup(chosen.form);
  for (const auto &[form, cost] : compared) {
    bool isGiven = isLarge && form.order == given; // neither operands nor the result are moved
    if (cost > chosen.cost * (isGiven ? kGiven : closeTo(chosen.cost)))
      continue;
    if (isGiven) { // a group of its own
      if (llvm::none_of(found, [&](ArrayRef<Form> group) { return llvm::is_contained(group, form); }))
        addGroup(form);
      continue;
    }
    auto at = llvm::find_if(found, [&](ArrayRef<Form> group) { return groupOf(group.front()) == groupOf(form); });
    if (at == found.end()) {
      bool isNew = isLarge && isUnmoved(form) && !StringRef(unmoved).contains(last(form.order.c));
      if (found.size() < mostGroups || isNew)
        addGroup(form);
    } else if (at->size() < mostOfGroup && !llvm::is_contained(*at, form) &&
               size_t(llvm::count_if(*at, [&](const Form &other) { return other.order.c == form.order.c; })) <
                   mostAlike) {
      at->push_back(form);
    }
  }
  SmallVector<Form> forms;
  for (auto [number, group] : llvm::enumerate(found)) {
    forms.append(group);
    groups.append(group.size(), number);
  }
  return forms;
}

/// The products of one function; of one that `loop` runs in its turns, if there is one.
class Arrange {
public:
  Arrange(func::FuncOp function, ir::LoopOp loop, Machine machine, ChooseForm choose)
      : function(function), loop(loop), machine(machine), choose(choose) {}

  void run() {
    for (Block &block : function.getBody()) {
      copies.clear();
      for (auto sum : llvm::make_early_inc_range(block.getOps<ir::ReduceSumOp>()))
        sumBefore(sum);
      if (loop) {
        turns = static_cast<double>(std::max<int64_t>(1, turnsOf(loop)));
        invariants = invariantsOf(block, loop.getInvariants().size());
      }
      for (auto op : llvm::make_early_inc_range(block.getOps<ir::ContractOp>()))
        if (isPlainProduct(op)) {
          bool isHeld = invariants.erase(op.getC()); // the op may go
          Value result = arrange(op, isHeld);
          if (isHeld)
            invariants.insert(result);
        }
    }
  }

private:
  /// Of a loop, in which there is one copy of a value; else 1.
  double turnsOfCopy(Value x) const { return invariants.contains(x) ? turns : 1; }

  /// Returns what is in the product's place. A product that is an invariant itself runs as often as copies for it.
  Value arrange(ir::ContractOp op, bool isHeld) {
    Letters letters = lettersOf(op);
    ProductCosts costs(op, machine);
    Order start = costs.orderOf(op);
    bool isThin = letters.m.empty() || letters.n.empty(),
         isEmpty = costs.elements(start.a) == 0 || costs.elements(start.b) == 0;
    double turnsA = isHeld ? 1 : turnsOfCopy(op.getA()), turnsB = isHeld ? 1 : turnsOfCopy(op.getB());
    return write(op, costs,
                 isEmpty ? Form{start, isThin ? Written::sum : Written::product} : formOf(op, costs, turnsA, turnsB));
  }

  /// Whether it is an argument of the program, or one seen in another shape: nothing that is computed joins a copy.
  static bool isGiven(Value x) {
    while (auto reshape = x.getDefiningOp<ir::ReshapeOp>())
      x = reshape.getX();
    return isa<BlockArgument>(x);
  }

  static bool isOnlyReturned(Value x) {
    return llvm::all_of(x.getUsers(), [](Operation *user) {
      return isa<func::ReturnOp>(user) || (isa<ir::ReshapeOp>(user) && isOnlyReturned(user->getResult(0)));
    });
  }

  /// The one that is cheapest, or chosen. What a loop does in each turn is not measured by itself. Who chooses knows
  /// that forms which stand alone have the same bits: so only such are to choose from in which all that is around the
  /// product is computed as it would be in the cheapest, by the same kernels. In a sum, and where its result lies in
  /// another order, other ops may join it.
  Form formOf(ir::ContractOp op, const ProductCosts &costs, double turnsA, double turnsB) {
    SmallVector<Compared> compared;
    bool isGivenA = isGiven(op.getA()), isGivenB = isGiven(op.getB()),
         isAlone = isGivenA && isGivenB && isOnlyReturned(op.getC()), asks = choose && !loop && (isGivenA || isGivenB),
         mayAsk = smallOnes.size() < kMostSmallOnes || smallOnes.contains(nameOf(op)),
         evenIfSmall = isAlone && !function.isPrivate() && mayAsk;
    Compared chosen = cheapest(op, costs, turnsA, turnsB, isAlone, asks ? &compared : nullptr, evenIfSmall);
    const Order &cheapest = chosen.form.order;
    bool unsure = cheapest.c != costs.orderOf(op).c || isWalked(lettersOf(op));
    if (compared.empty() || !isWorthMeasuring(chosen.cost, cheapest, costs, evenIfSmall, unsure))
      return chosen.form;
    llvm::erase_if(compared, [&](const Compared &other) {
      const auto &[order, as] = other.form;
      return !isAlone && (as != Written::product || chosen.form.as != Written::product || order.c != cheapest.c ||
                          (!isGivenA && order.a != cheapest.a) || (!isGivenB && order.b != cheapest.b));
    });
    SmallVector<size_t> groups;
    SmallVector<Form> forms = mayBeFastest(costs.orderOf(op), chosen, compared, costs, isAlone, groups);
    if (forms.size() < 2)
      return chosen.form;
    std::string product = nameOf(op), all;
    for (const auto &[order, as] : forms)
      all += (as == Written::terms ? " terms "
              : as == Written::sum ? " sum "
                                   : " ") +
             runtime::Equation{order.a, order.b, order.c}.text();
    if (chosen.cost < kLarge)
      smallOnes.insert(product);
    auto program = [&](size_t form) { return alone(op, forms[form]); };
    int64_t bytes = 0;
    for (Value x : {Value(op.getA()), Value(op.getB()), Value(op.getC())})
      bytes += cast<RankedTensorType>(x.getType()).getNumElements() *
               llvm::divideCeil(op.getC().getType().getElementTypeBitWidth(), 8);
    return forms[choose({product, product + all, op.getLoc(), bytes, groups, program})];
  }

  /// `mk,kn->mn m=8 k=16 n=2, f32`
  static std::string nameOf(ir::ContractOp op) {
    std::string name = op.getEquation().str();
    for (auto [letters, x] : {std::pair(op.lettersOfA(), op.getA()), std::pair(op.lettersOfB(), op.getB())})
      for (auto [letter, size] : llvm::zip_equal(letters, shapeOf(x)))
        if (letters == op.lettersOfA() || !op.lettersOfA().contains(letter))
          name += (" " + Twine(letter) + "=" + Twine(size)).str();
    llvm::raw_string_ostream(name) << ", " << op.getC().getType().getElementType();
    return name;
  }

  /// A program that is the product in such a form.
  OwningOpRef<ModuleOp> alone(ir::ContractOp op, const Form &form) const {
    OwningOpRef<ModuleOp> module = ModuleOp::create(op.getLoc());
    OpBuilder b(module->getBodyRegion());
    auto made =
        func::FuncOp::create(b, op.getLoc(), "product",
                             b.getFunctionType({op.getA().getType(), op.getB().getType()}, {op.getC().getType()}));
    b.setInsertionPointToStart(made.addEntryBlock());
    auto product = cast<ir::ContractOp>(b.clone(*op));
    product->setOperands(made.getArguments());
    func::ReturnOp::create(b, op.getLoc(), product.getC());
    Arrange(made, {}, machine, {}).write(product, ProductCosts(product, machine), form);
    return module;
  }

  /// Returns what is in the product's place.
  Value write(ir::ContractOp op, const ProductCosts &costs, const Form &form) {
    Order start = costs.orderOf(op);
    const auto &[order, as] = form;
    auto written = [as = as](ir::ContractOp product, const ProductCosts &costs) {
      return as == Written::terms ? writeAsTerms(product, costs)
             : as == Written::sum ? writeAsSum(product, costs)
                                  : Value(product.getC());
    };
    if (order == start)
      return written(op, costs);
    OpBuilder b(op);
    Value x = arranged(b, costs, op.getA(), start.a, order.a), y = arranged(b, costs, op.getB(), start.b, order.b);
    auto type = RankedTensorType::get(costs.shapeBy(order.c), op.getC().getType().getElementType());
    std::string equation = runtime::Equation{order.a, order.b, order.c}.text();
    auto product = ir::ContractOp::create(b, op.getLoc(), type, x, y, equation);
    Value result = inOrder(b, op.getLoc(), product.getC(), order.c, start.c);
    if (result.getType() != op.getC().getType())
      result = ir::ReshapeOp::create(b, op.getLoc(), result, op.getC().getType().getShape(), ValueRange());
    op.getC().replaceAllUsesWith(result);
    op.erase();
    if (as != Written::product) {
      bool isResult = result == product.getC();
      Value sum = written(product, ProductCosts(product, machine));
      return isResult ? sum : result;
    }
    return result;
  }

  /// An operand without its letters of size 1 and in another order; products that want the same share one copy.
  Value arranged(OpBuilder &b, const ProductCosts &costs, Value x, StringRef from, StringRef to) {
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

  func::FuncOp function;
  ir::LoopOp loop;
  Machine machine;
  ChooseForm choose;
  DenseSet<Value> invariants;                                 ///< of the loop
  double turns = 1;                                           ///< of it
  static constexpr unsigned kMostSmallOnes = 8;               // of many, measuring takes longer than they are worth
  llvm::StringSet<> smallOnes;                                ///< that were asked about
  llvm::DenseMap<Value, SmallVector<ir::TransposeOp>> copies; ///< of operands, each before all that read it
};

struct ArrangeProducts : impl::ArrangeProductsBase<ArrangeProducts> {
  using Base::Base;
  ArrangeProducts(Machine machine, ChooseForm choose) : Base(ArrangeProductsOptions{machine}), choose(choose) {}
  ArrangeProducts(const ArrangeProducts &) = default;

  void runOnOperation() override {
    DenseMap<StringAttr, int64_t> users;
    DenseMap<StringAttr, ir::LoopOp> loops;
    getOperation().walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++users[name.getAttr()];
      if (auto loop = dyn_cast<ir::LoopOp>(*op))
        loops[loop.bodyNames().front().getAttr()] = loop;
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal()) {
        StringAttr name = function.getSymNameAttr();
        Arrange(function, users.lookup(name) == 1 && function.isPrivate() ? loops.lookup(name) : ir::LoopOp(), machine,
                choose)
            .run();
      }
  }

private:
  ChooseForm choose;
};

} // namespace

std::unique_ptr<Pass> createArrangeProducts(Machine machine, ChooseForm choose) {
  return std::make_unique<ArrangeProducts>(machine, choose);
}

void arrangeProducts(func::FuncOp function, Machine machine) { Arrange(function, {}, machine, {}).run(); }

} // namespace wg::passes
