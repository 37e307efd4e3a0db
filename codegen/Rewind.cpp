#include "codegen/Rewind.h"

#include "ir/Calls.h"
#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace wg::codegen {

/// For each stacked result of the loop the carried value that it holds before each turn; -1 for one that nobody reads.
/// None if there is another.
static std::optional<SmallVector<int64_t>> statesOf(ir::LoopOp loop, func::FuncOp body) {
  SmallVector<int64_t> states;
  ValueRange rows = body.getBody().front().getTerminator()->getOperands().drop_front(loop.getCarried());
  for (auto [row, stack] : llvm::zip_equal(rows, loop.getStacked())) {
    auto argument = dyn_cast<BlockArgument>(row);
    bool isState = argument && argument.getArgNumber() < loop.getCarried();
    if (!isState && !stack.use_empty())
      return std::nullopt;
    states.push_back(isState ? static_cast<int64_t>(argument.getArgNumber()) : -1);
  }
  return states;
}

/// The loop whose states `back` scans; null if they cannot be computed again: where others read them too.
static ir::LoopOp stepsOf(ir::LoopOp back) {
  ir::LoopOp steps;
  for (Value x : back.getXs()) {
    auto loop = x.getDefiningOp<ir::LoopOp>();
    if (!loop || loop.getCheckpoints() == 0)
      continue;
    if (steps && steps != loop)
      return {};
    steps = loop;
  }
  if (!steps || steps->getBlock() != back->getBlock())
    return {};
  size_t first = back.getLimited() + back.getCarried();
  for (Value stack : steps.getStacked())
    for (OpOperand &use : stack.getUses())
      if (use.getOwner() != back || use.getOperandNumber() < first ||
          use.getOperandNumber() >= first + back.getScanned())
        return {};
  return steps;
}

/// A copy of the loop's body that returns the carried values alone.
static func::FuncOp withoutStacks(ir::LoopOp loop, func::FuncOp body, SymbolTable &symbols) {
  auto copy = cast<func::FuncOp>(body->clone());
  Operation *last = copy.getBody().front().getTerminator();
  last->setOperands(last->getOperands().take_front(loop.getCarried()));
  copy.setFunctionType(FunctionType::get(copy.getContext(), copy.getArgumentTypes(), last->getOperandTypes()));
  copy.removeResAttrsAttr();
  copy.setPrivate();
  symbols.insert(copy);
  return copy;
}

static FlatSymbolRefAttr nameOf(func::FuncOp function) { return FlatSymbolRefAttr::get(function.getSymNameAttr()); }

static void makeRewind(ir::LoopOp back, ir::LoopOp steps, ArrayRef<int64_t> states, SymbolTable &symbols) {
  OpBuilder b(back);
  auto body = symbols.lookup<func::FuncOp>(steps.bodyNames()[0].getAttr());
  func::FuncOp advance = withoutStacks(steps, body, symbols);
  SmallVector<int64_t> sources;
  SmallVector<Value> xs;
  for (Value x : back.getXs()) {
    bool isState = x.getDefiningOp() == steps;
    sources.push_back(isState ? states[cast<OpResult>(x).getResultNumber() - steps.getCarried() - steps.hasCondition()]
                              : -1);
    if (!isState)
      xs.push_back(x);
  }
  // What has room for some turns has none any more, if nothing else is stacked or scanned.
  bool isUnbounded = steps.hasRoom() && xs.empty() && back.getStacked().empty();
  SmallVector<Value> operands;
  if (back.getLimited())
    operands.push_back(back.getLimit());
  for (ValueRange part : {ValueRange(steps.getInits()), ValueRange(steps.getXs()), ValueRange(steps.getInvariants()),
                          ValueRange(back.getInits()), ValueRange(xs), ValueRange(back.getInvariants())})
    llvm::append_range(operands, part);
  auto rewind = ir::RewindOp::create(
      b, back.getLoc(), back->getResultTypes(), b.getArrayAttr({nameOf(advance), back.bodyNames()[0]}),
      static_cast<int64_t>(back.getCheckpoints()), static_cast<int64_t>(steps.getCarried()),
      static_cast<int64_t>(steps.getScanned()), static_cast<int64_t>(steps.getInvariants().size()),
      static_cast<int64_t>(back.getCarried()), sources, isUnbounded ? -1 : static_cast<int64_t>(back.getLength()),
      back.getLimited(), steps.getReversed(), operands);
  back->replaceAllUsesWith(rewind);
  back->erase();

  size_t kept = steps->getNumResults() - steps.getStacked().size();
  OperationState state(steps.getLoc(), steps->getName(), steps->getOperands(),
                       steps->getResults().take_front(kept).getTypes(), steps->getAttrs());
  b.setInsertionPoint(steps);
  auto made = cast<ir::LoopOp>(b.create(state));
  SmallVector<FlatSymbolRefAttr> names = steps.bodyNames();
  names[0] = nameOf(advance);
  made.setBodyNames(names);
  if (isUnbounded) {
    made.setRoomAttr(b.getI64IntegerAttr(-1));
    made.setLengthAttr(b.getI64IntegerAttr(-1));
  }
  for (size_t i = 0; i < kept; ++i)
    steps->getResult(static_cast<unsigned>(i)).replaceAllUsesWith(made->getResult(static_cast<unsigned>(i)));
  steps->erase();
  if (made->use_empty())
    made->erase();
}

bool makeRewinds(ArrayRef<func::FuncOp> functions, SymbolTable &symbols) {
  bool any = false;
  for (func::FuncOp function : functions)
    for (auto back : llvm::make_early_inc_range(function.getBody().front().getOps<ir::LoopOp>())) {
      if (back.getCheckpoints() == 0 || back.hasCondition())
        continue;
      ir::LoopOp steps = stepsOf(back);
      if (!steps || steps.getReversed() == back.getReversed())
        continue;
      auto body = symbols.lookup<func::FuncOp>(steps.bodyNames()[0].getAttr());
      if (std::optional<SmallVector<int64_t>> states = statesOf(steps, body))
        makeRewind(back, steps, *states, symbols), any = true;
    }
  return any;
}

} // namespace wg::codegen
