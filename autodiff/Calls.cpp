// The derivative of a call: the callee split into a forward function that also returns residuals and a backward
// function that reads them. Both are ordinary functions, so the split works at any order.
//
//   func @f(%x) { %y = wg.tanh %x  return %y }
//     ->  func @f_forward(%x) { %y = wg.tanh %x  return %y, %y }
//         func @f_backward(%y, %ct) { ... return %dx }
#include "autodiff/Reverse.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace wg::autodiff {

static constexpr llvm::StringLiteral kResiduals = "wg.residuals", kReturned = "wg.returned";

static std::string pairName(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  std::string name = function.getSymName().str() + "_by";
  for (unsigned argument : arguments)
    name += "_" + std::to_string(argument);
  name += "_of";
  for (unsigned result : results)
    name += "_" + std::to_string(result);
  return name;
}

/// The pair as an earlier call left it in the module, if it did.
static std::optional<FunctionPair> findPair(ModuleOp module, const std::string &name) {
  auto forward = module.lookupSymbol<func::FuncOp>(name + "_forward");
  auto backward = module.lookupSymbol<func::FuncOp>(name + "_backward");
  if (!forward || !backward)
    return std::nullopt;
  auto residuals = backward->getAttrOfType<DenseI64ArrayAttr>(kResiduals);
  auto returned = backward->getAttrOfType<DenseBoolArrayAttr>(kReturned);
  auto reasons = backward->getAttrOfType<ArrayAttr>(kReasonsAttr);
  if (!residuals || !returned || !reasons || reasons.size() != static_cast<size_t>(returned.size()))
    return std::nullopt;
  FunctionPair pair{forward, backward, {}, {}, {}, {}};
  llvm::append_range(pair.residuals, residuals.asArrayRef());
  llvm::append_range(pair.returned, returned.asArrayRef());
  for (Attribute reason : reasons)
    pair.reasons.push_back(isa<StringAttr>(reason) ? cast<StringAttr>(reason).str() : "");
  return pair;
}

/// Whether an op of the forward part is done again in the backward function instead of handing its result over.
static bool isRepeated(Operation *op) { return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<ir::DimOp>(op)); }

namespace {

/// Moves the ops after `marker` out of a function into a new one, and finds what they read from before it.
class Split {
public:
  Split(func::FuncOp whole, Operation *marker, ArrayRef<BlockArgument> seeds)
      : whole_(whole), marker_(marker), seeds_(seeds) {}

  /// Returns the new function; `residuals` become arguments of it, in front of the seeds.
  func::FuncOp makeBackward(StringRef name, ArrayRef<Value> gradients);
  ArrayRef<Value> residuals() const { return residuals_.getArrayRef(); }

private:
  bool isBackward(Operation *op) const {
    return op && op->getBlock() == marker_->getBlock() && marker_->isBeforeInBlock(op);
  }
  void need(Value value);

  func::FuncOp whole_;
  Operation *marker_;
  ArrayRef<BlockArgument> seeds_;
  llvm::SetVector<Value> residuals_;
  llvm::SetVector<Operation *> repeated_;
};

} // namespace

void Split::need(Value value) {
  Operation *op = value.getDefiningOp();
  if (isBackward(op) || llvm::is_contained(seeds_, value))
    return;
  if (!isRepeated(op)) {
    residuals_.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    need(operand);
  repeated_.insert(op);
}

func::FuncOp Split::makeBackward(StringRef name, ArrayRef<Value> gradients) {
  Block *block = marker_->getBlock();
  SmallVector<Operation *> ops;
  for (Operation *op = marker_->getNextNode(); op != block->getTerminator(); op = op->getNextNode())
    ops.push_back(op);
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      need(operand);
  for (Value gradient : gradients)
    need(gradient);

  SmallVector<Type> inputs, outputs;
  for (Value residual : residuals_)
    inputs.push_back(residual.getType());
  for (BlockArgument seed : seeds_)
    inputs.push_back(seed.getType());
  for (Value gradient : gradients)
    outputs.push_back(gradient.getType());
  OpBuilder b(whole_);
  b.setInsertionPointAfter(whole_);
  auto backward = func::FuncOp::create(b, whole_.getLoc(), name, b.getFunctionType(inputs, outputs));
  backward.setPrivate();
  Block *body = backward.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping map;
  for (auto [i, residual] : llvm::enumerate(residuals_))
    map.map(residual, body->getArgument(i));
  for (auto [i, seed] : llvm::enumerate(seeds_))
    map.map(Value(seed), Value(body->getArgument(residuals_.size() + i)));
  for (Operation *op : repeated_)
    b.clone(*op, map);
  for (Operation *op : ops)
    b.clone(*op, map);
  SmallVector<Value> returned;
  for (Value gradient : gradients)
    returned.push_back(map.lookup(gradient));
  func::ReturnOp::create(b, whole_.getLoc(), returned);
  return backward;
}

FailureOr<FunctionPair> functionPair(func::FuncOp function, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = pairName(function, arguments, results);
  if (std::optional<FunctionPair> pair = findPair(module, name))
    return *pair;

  // Work on a copy: differentiate it as a whole, then cut it in two.
  OpBuilder b(function);
  b.setInsertionPointAfter(function);
  auto forward = cast<func::FuncOp>(b.clone(*function));
  forward.setSymName(name + "_forward");
  forward.setPrivate();
  forward->removeAttr("wg.origin");
  forward.removeArgAttrsAttr();
  forward.removeResAttrsAttr();
  Block *block = &forward.getBody().front();
  Operation *terminator = block->getTerminator();
  SmallVector<Value> targets, seeds, sources;
  SmallVector<BlockArgument> seedArguments;
  unsigned numArguments = block->getNumArguments();
  for (unsigned argument : arguments)
    sources.push_back(block->getArgument(argument));
  for (unsigned result : results) {
    targets.push_back(terminator->getOperand(result));
    seedArguments.push_back(block->addArgument(targets.back().getType(), function.getLoc()));
    seeds.push_back(seedArguments.back());
  }
  b.setInsertionPoint(terminator);
  auto marker = arith::ConstantIndexOp::create(b, function.getLoc(), 0);
  FailureOr<Gradients> gradients = reverse(b, function.getLoc(), targets, seeds, sources);
  if (failed(gradients)) {
    forward.erase();
    return failure();
  }

  FunctionPair pair{forward, {}, {}, {}, std::move(gradients->reasons), std::move(gradients->certificate)};
  SmallVector<Value> values;
  for (Value value : gradients->values) {
    pair.returned.push_back(value != nullptr);
    if (value)
      values.push_back(value);
  }
  // What only an unread cotangent reads is no residual: keep the gradients alive in the terminator while the dead fall.
  SmallVector<Value> primal(terminator->getOperands());
  terminator->insertOperands(terminator->getNumOperands(), values);
  eraseDead(*block, marker);
  Split split(forward, marker, seedArguments);
  pair.backward = split.makeBackward(name + "_backward", values);

  SmallVector<Value> returned = primal;
  for (Value residual : split.residuals()) {
    auto argument = dyn_cast<BlockArgument>(residual);
    if (argument && argument.getArgNumber() < numArguments) {
      pair.residuals.push_back(argument.getArgNumber());
    } else {
      pair.residuals.push_back(-1 - static_cast<int64_t>(returned.size() - primal.size()));
      returned.push_back(residual);
    }
  }
  terminator->setOperands(returned);
  eraseDead(*block, marker);
  marker.erase();
  block->eraseArguments(numArguments, seedArguments.size());
  forward.setFunctionType(b.getFunctionType(block->getArgumentTypes(), ValueRange(returned).getTypes()));
  pair.backward->setAttr(kResiduals, b.getDenseI64ArrayAttr(pair.residuals));
  pair.backward->setAttr(kReturned, b.getDenseBoolArrayAttr(pair.returned));
  SmallVector<Attribute> reasons;
  for (const std::string &reason : pair.reasons)
    reasons.push_back(b.getStringAttr(reason));
  pair.backward->setAttr(kReasonsAttr, b.getArrayAttr(reasons));
  return pair;
}

} // namespace wg::autodiff
