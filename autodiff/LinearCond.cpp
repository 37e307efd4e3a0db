// The derivative of a condition, which is a condition.
#include "autodiff/Bodies.h"
#include "autodiff/Dependences.h"
#include "autodiff/Writer.h"

#include "ir/Build.h"

using namespace mlir;

namespace wg::autodiff {

namespace {
/// A branch on the path of a derivative.
struct Branch {
  func::FuncOp function;
  Places arguments, results; ///< that take part
  FunctionPair pair;         ///< if any does
  SmallVector<unsigned>
      slots; ///< of its residuals that its forward function hands over: among the cond's extra results
  ArrayRef<unsigned> from(Mode mode) const { return mode == Mode::reverse ? results : arguments; }
  ArrayRef<unsigned> to(Mode mode) const { return mode == Mode::reverse ? arguments : results; }
};
} // namespace

/// The branches and their pairs.
static FailureOr<std::vector<Branch>> branchesOf(ir::CondOp op, Pairs &pairs, const llvm::BitVector &varied,
                                                 const llvm::BitVector &wanted) {
  std::vector<Branch> branches;
  Dependences dependences(pairs);
  for (FlatSymbolRefAttr name : op.bodyNames()) {
    Branch &branch = branches.emplace_back();
    branch.function = pairs.lookup(op, name.getValue());
    if (failed(ir::checkCallee(op, name, branch.function)) || failed(pairs.check(branch.function)))
      return failure();
    llvm::BitVector read(varied.size());
    for (auto [i, bits] : llvm::enumerate(dependences.of(branch.function)))
      if (wanted.test(i) && bits.anyCommon(varied)) {
        branch.results.push_back(i);
        read |= bits;
      }
    for (unsigned argument : read.set_bits())
      if (varied.test(argument))
        branch.arguments.push_back(argument);
    if (branch.arguments.empty())
      continue;
    if (failed(pairs.make(branch.function, branch.arguments, branch.results)))
      return failure();
    branch.pair = pairs.take(branch.function, branch.arguments, branch.results);
  }
  return branches;
}

/// Residuals of one type share results of the forward cond, as one branch runs. Nothing if one has an open size: the
/// other branches would not know how large a result is to be.
static std::optional<SmallVector<Type>> assignSlots(MutableArrayRef<Branch> branches, unsigned numResults) {
  SmallVector<Type> types;
  for (Branch &branch : branches) {
    if (branch.arguments.empty())
      continue;
    llvm::SmallDenseSet<unsigned> taken;
    for (Type type : branch.pair.forward.getResultTypes().drop_front(numResults)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return std::nullopt;
      unsigned slot = 0;
      while (slot < types.size() && (types[slot] != type || taken.contains(slot)))
        ++slot;
      if (slot == types.size())
        types.push_back(type);
      taken.insert(slot);
      branch.slots.push_back(slot);
    }
  }
  return types;
}

/// Puts a cond in the place of `op` that returns the residuals as well.
static ir::CondOp keepResiduals(ir::CondOp op, ArrayRef<Branch> branches, ArrayRef<Type> slotTypes,
                                LinearRequest &request) {
  if (slotTypes.empty())
    return op;
  SymbolTable &symbols = request.pairs.symbolsOf(op);
  unsigned numResults = op->getNumResults();
  SmallVector<Attribute> names;
  for (const Branch &branch : branches) {
    func::FuncOp function = branch.function;
    Writer writer(symbols, function.getLoc(), function.getSymName() + "_kept");
    SmallVector<Value> inputs = writer.arguments(op.getInputs().getTypes());
    SmallVector<Value> all = writer.call(branch.arguments.empty() ? function : branch.pair.forward, inputs);
    SmallVector<Value> results(all.begin(), all.begin() + numResults), slots(slotTypes.size());
    for (auto [slot, residual] : llvm::zip(branch.slots, ArrayRef(all).drop_front(numResults)))
      slots[slot] = residual;
    for (auto [slot, type] : llvm::zip_equal(slots, slotTypes))
      results.push_back(slot ? slot : zeroOf(writer.b, function.getLoc(), type));
    names.push_back(nameOf(writer.finish(results)));
  }
  OpBuilder at(op);
  SmallVector<Type> types(op->getResultTypes());
  llvm::append_range(types, slotTypes);
  auto forward = ir::CondOp::create(at, op.getLoc(), types, op.getSelector(), at.getArrayAttr(names), op.getInputs());
  request.replace(op, forward);
  return forward;
}

FailureOr<LinearPart> linearCond(ir::CondOp op, Mode mode, LinearRequest &request) {
  Location loc = request.loc;
  SymbolTable &symbols = request.pairs.symbolsOf(op);
  bool reverse = mode == Mode::reverse;
  func::FuncOp first = request.pairs.lookup(op, op.bodyNames()[0].getValue());
  unsigned numInputs = op.getInputs().size(), numResults = first.getNumResults();
  llvm::BitVector varied(numInputs), wanted(numResults);
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    varied[i] =
        reverse ? isDifferentiableType(input.getType()) && request.isActive(input) : request.seeds[1 + i] != nullptr;
  for (unsigned i = 0; i < numResults; ++i)
    wanted[i] = reverse ? request.seeds[i] != nullptr : isDifferentiableType(op->getResult(i).getType());
  FailureOr<std::vector<Branch>> branches = branchesOf(op, request.pairs, varied, wanted);
  if (failed(branches))
    return failure();

  LinearPart made{{}, {}, op};
  made.values.resize(reverse ? op->getNumOperands() : numResults);
  llvm::BitVector returned(reverse ? numInputs : numResults);
  for (Branch &branch : *branches) {
    llvm::append_range(made.certificate, branch.pair.certificate);
    for (auto [place, has] : llvm::zip(branch.to(mode), branch.pair.returned))
      if (has)
        returned.set(place);
  }
  if (returned.none())
    return made;
  std::optional<SmallVector<Type>> slotTypes = assignSlots(*branches, numResults);
  bool again = !slotTypes;
  if (!again)
    made.op = op = keepResiduals(op, *branches, *slotTypes, request);

  // The linear cond takes what the branches took, the residuals, and the seeds.
  const llvm::BitVector &seeded = reverse ? wanted : varied;
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, again ? ResultRange(op->getResults().take_front(0))
                                     : ResultRange(op->getResults().take_back(slotTypes->size())));
  for (unsigned place : seeded.set_bits())
    operands.push_back(request.seeds[reverse ? place : 1 + place]);
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (unsigned place : returned.set_bits())
    types.push_back((reverse ? op.getInputs()[place] : Value(op->getResult(place))).getType());
  for (Branch &branch : *branches) {
    Writer writer(symbols, branch.function.getLoc(), branch.function.getSymName() + (reverse ? "_adjoint" : "_moved"));
    SmallVector<Value> arguments = writer.arguments(ValueRange(operands).getTypes());
    ArrayRef<Value> inputs = ArrayRef(arguments).take_front(numInputs),
                    rest = ArrayRef(arguments).drop_front(numInputs);
    SmallVector<Value> values(returned.size()), results;
    if (!branch.arguments.empty()) {
      SmallVector<Value> kept;
      if (again)
        kept = SmallVector<Value>(ArrayRef(writer.call(branch.pair.forward, inputs)).drop_front(numResults));
      for (unsigned slot : branch.slots)
        if (!again)
          kept.push_back(rest[slot]);
      SmallVector<Value> bySeed(seeded.size()), taken;
      for (auto [i, place] : llvm::enumerate(seeded.set_bits()))
        bySeed[place] = rest[(again ? 0 : slotTypes->size()) + i];
      for (int64_t residual : branch.pair.residuals)
        taken.push_back(residual < 0 ? kept[static_cast<unsigned>(-1 - residual)] : inputs[residual]);
      for (unsigned place : branch.from(mode))
        taken.push_back(bySeed[place]);
      SmallVector<Value> linear = writer.call(branch.pair.linear, taken);
      unsigned next = 0;
      for (auto [place, has] : llvm::zip_equal(branch.to(mode), branch.pair.returned))
        if (has)
          values[place] = linear[next++];
    }
    SmallVector<Value> primal; // for the sizes of zeros that are not known
    for (auto [i, place] : llvm::enumerate(returned.set_bits())) {
      Value value = values[place];
      if (!value && reverse)
        value = ir::zerosLike(writer.b, loc, inputs[place]);
      if (!value && !reverse && cast<RankedTensorType>(types[i]).hasStaticShape())
        value = zeroOf(writer.b, loc, types[i]);
      if (!value) {
        if (primal.empty())
          primal = writer.call(branch.function, inputs);
        value = ir::zerosLike(writer.b, loc, primal[place]);
      }
      results.push_back(value);
    }
    names.push_back(nameOf(writer.finish(results)));
  }
  auto linear = ir::CondOp::create(request.b, loc, types, op.getSelector(), request.b.getArrayAttr(names), operands);
  for (auto [place, value] : llvm::zip_equal(returned.set_bits(), linear.getResults()))
    made.values[reverse ? 1 + place : place] = value;
  return made;
}

} // namespace wg::autodiff
