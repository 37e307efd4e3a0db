// `--wg-grad`, `--wg-jvp` and `--wg-vmap`: append the derivative of a function, or its batched form, in textual IR.
//
//   func @main(%x) -> %y        ->    func @main_grad(%x) -> %dx        (values=false, seeds=false)
//                               ->    func @main_jvp(%x, %dx) -> %dy    (values=false)
//                               ->    func @main_vmap(%xs) -> %ys       (one more axis in front)
#include "autodiff/Batch.h"
#include "autodiff/Forward.h"
#include "autodiff/Passes.h"

#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Program.h"
#include "ir/Rules.h"

using namespace mlir;

namespace wg::autodiff {

#define GEN_PASS_DEF_GRAD
#define GEN_PASS_DEF_JVP
#define GEN_PASS_DEF_VMAP
#include "autodiff/Passes.h.inc"

/// The function that a pass is to work on, for a `purpose`; null after an error.
static func::FuncOp functionFor(ModuleOp module, StringRef name, StringRef purpose = "to differentiate") {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    module.emitError() << "there is no function @" << name << " " << purpose;
    return {};
  }
  if (function.isDeclaration() || !function.getBody().hasOneBlock()) {
    function.emitError() << "a function " << purpose << " has one block of wg ops";
    return {};
  }
  return succeeded(ir::checkTypes(function)) ? function : func::FuncOp();
}

/// The arguments to differentiate by: those at `wrt`, or if that is empty every float one.
static FailureOr<SmallVector<unsigned>> chosenArguments(func::FuncOp function, ArrayRef<int64_t> wrt, bool floats) {
  SmallVector<unsigned> places;
  for (int64_t place : wrt) {
    if (place < 0 || place >= static_cast<int64_t>(function.getNumArguments()))
      return function.emitError() << "wrt names argument " << place << ", but @" << function.getSymName() << " has "
                                  << function.getNumArguments();
    Type type = function.getArgument(static_cast<unsigned>(place)).getType();
    if (floats && !isDifferentiableType(type))
      return function.emitError() << "wrt names argument " << place << ", which is " << type
                                  << "; only floats have tangents";
    places.push_back(static_cast<unsigned>(place));
  }
  if (wrt.empty())
    for (BlockArgument argument : function.getArguments())
      if (isDifferentiableType(argument.getType()))
        places.push_back(argument.getArgNumber());
  return places;
}

/// A copy of the function under another name, behind it.
static FailureOr<func::FuncOp> copyOf(func::FuncOp function, StringRef name) {
  if (SymbolTable::lookupNearestSymbolFrom(function->getParentOp(), StringAttr::get(function.getContext(), name)))
    return function.emitError() << "there is a function @" << name << " already";
  OpBuilder b(function);
  b.setInsertionPointAfter(function);
  auto copy = cast<func::FuncOp>(b.clone(*function));
  copy.setSymName(name);
  // What is said of the function's derivative, of its results and of where they go is not true of the copy's.
  ir::forgetDerived(copy);
  copy->removeAttr(kVjpAttr);
  copy->removeAttr(kNumResultsAttr);
  copy.removeArgAttrsAttr();
  copy.removeResAttrsAttr();
  return copy;
}

static void setReturned(func::FuncOp function, ArrayRef<Value> returned) {
  Block &block = function.getBody().front();
  block.getTerminator()->setOperands(returned);
  function.setFunctionType(
      FunctionType::get(function.getContext(), TypeRange(block.getArgumentTypes()), TypeRange(ValueRange(returned))));
}

namespace {

struct Grad : impl::GradBase<Grad> {
  using GradBase::GradBase;

  void runOnOperation() override {
    func::FuncOp function = functionFor(getOperation(), this->function);
    if (!function || failed(differentiate(function)))
      signalPassFailure();
  }

  LogicalResult differentiate(func::FuncOp function) {
    FailureOr<SmallVector<unsigned>> places = chosenArguments(function, wrt, /*floats=*/false);
    if (failed(places))
      return failure();
    FailureOr<func::FuncOp> copy =
        copyOf(function, name.empty() ? function.getSymName().str() + "_grad" : name.getValue());
    if (failed(copy))
      return failure();
    func::FuncOp gradient = *copy;
    Block *block = &gradient.getBody().front();
    Operation *terminator = block->getTerminator();
    SmallVector<Value> targets, seedValues, sources;
    for (unsigned place : *places)
      sources.push_back(block->getArgument(place));
    for (Value result : terminator->getOperands())
      if (isDifferentiableType(result.getType())) {
        targets.push_back(result);
        seedValues.push_back(seeds ? block->addArgument(result.getType(), gradient.getLoc()) : Value());
      }
    OpBuilder b(terminator);
    FailureOr<Gradients> gradients = reverse(b, gradient.getLoc(), targets, seedValues, sources);
    if (failed(gradients))
      return failure();
    SmallVector<Value> returned;
    if (values)
      returned.assign(terminator->operand_begin(), terminator->operand_end());
    for (auto [place, value, reason] : llvm::zip(*places, gradients->values, gradients->reasons)) {
      if (!value)
        function.emitRemark() << "the gradient by argument " << place << " is zeros: " << reason;
      returned.push_back(value ? value : ir::zerosLike(b, gradient.getLoc(), block->getArgument(place)));
    }
    setReturned(gradient, returned);
    SmallVector<Attribute> certificate;
    for (const DroppedAdjoint &dropped : gradients->certificate) {
      std::string where = ir::whereOf(dropped.loc);
      certificate.push_back(b.getStringAttr(dropped.op + " operand " + std::to_string(dropped.operand) +
                                            (where.empty() ? "" : " at " + where) + ": " + dropped.reason));
    }
    if (!certificate.empty())
      gradient->setAttr("wg.certificate", b.getArrayAttr(certificate));
    return success();
  }
};

struct Jvp : impl::JvpBase<Jvp> {
  using JvpBase::JvpBase;

  void runOnOperation() override {
    func::FuncOp function = functionFor(getOperation(), this->function);
    if (!function || failed(differentiate(function)))
      signalPassFailure();
  }

  LogicalResult differentiate(func::FuncOp function) {
    FailureOr<SmallVector<unsigned>> places = chosenArguments(function, wrt, /*floats=*/true);
    if (failed(places))
      return failure();
    FailureOr<func::FuncOp> copy =
        copyOf(function, name.empty() ? function.getSymName().str() + "_jvp" : name.getValue());
    if (failed(copy))
      return failure();
    func::FuncOp tangent = *copy;
    Block *block = &tangent.getBody().front();
    Operation *terminator = block->getTerminator();
    SmallVector<Value> targets, sources, given;
    SmallVector<unsigned> results;
    for (unsigned place : *places) {
      sources.push_back(block->getArgument(place));
      given.push_back(block->addArgument(sources.back().getType(), tangent.getLoc()));
    }
    for (auto [i, result] : llvm::enumerate(terminator->getOperands()))
      if (isDifferentiableType(result.getType())) {
        targets.push_back(result);
        results.push_back(i);
      }
    OpBuilder b(terminator);
    auto marker = arith::ConstantIndexOp::create(b, tangent.getLoc(), 0);
    FailureOr<Tangents> tangents = forward(b, tangent.getLoc(), targets, sources, given);
    if (failed(tangents))
      return failure();
    SmallVector<Value> returned;
    if (values)
      returned.assign(terminator->operand_begin(), terminator->operand_end());
    for (auto [i, place, value, reason] : llvm::enumerate(results, tangents->values, tangents->reasons)) {
      if (!value)
        function.emitRemark() << "the tangent of result " << place << " is zeros: " << reason;
      returned.push_back(value ? value : ir::zerosLike(b, tangent.getLoc(), terminator->getOperand(place)));
    }
    setReturned(tangent, returned);
    eraseDead(*block, marker); // what stood for a cotangent
    marker.erase();
    return success();
  }
};

struct Vmap : impl::VmapBase<Vmap> {
  using VmapBase::VmapBase;

  void runOnOperation() override {
    func::FuncOp function = functionFor(getOperation(), this->function, "to batch");
    if (!function || failed(batchLanes(function)))
      signalPassFailure();
  }

  /// The tensors at `wrt`, or if that is empty every one.
  FailureOr<SmallVector<unsigned>> chosenTensors(func::FuncOp function) {
    SmallVector<unsigned> places;
    for (int64_t place : wrt) {
      if (place < 0 || place >= static_cast<int64_t>(function.getNumArguments()))
        return function.emitError() << "wrt names argument " << place << ", but @" << function.getSymName() << " has "
                                    << function.getNumArguments();
      if (!isa<RankedTensorType>(function.getArgument(static_cast<unsigned>(place)).getType()))
        return function.emitError() << "wrt names argument " << place << ", which is a size; only tensors have lanes";
      if (llvm::is_contained(places, static_cast<unsigned>(place)))
        return function.emitError() << "wrt names argument " << place << " twice";
      places.push_back(static_cast<unsigned>(place));
    }
    if (wrt.empty())
      for (BlockArgument argument : function.getArguments())
        if (isa<RankedTensorType>(argument.getType()))
          places.push_back(argument.getArgNumber());
    if (places.empty())
      return function.emitError() << "@" << function.getSymName() << " has no tensor among its arguments to batch";
    llvm::sort(places);
    return places;
  }

  LogicalResult batchLanes(func::FuncOp function) {
    FailureOr<SmallVector<unsigned>> places = chosenTensors(function);
    if (failed(places))
      return failure();
    if (size < -1)
      return function.emitError() << "size is the number of lanes, or -1 for `?`, got " << size.getValue();
    int64_t count = size < 0 ? ShapedType::kDynamic : size.getValue();
    for (unsigned place : *places)
      if (failed(ir::checkLanes(function.getLoc(), function.getArgument(place).getType(), count)))
        return failure();
    FailureOr<func::FuncOp> copy =
        copyOf(function, name.empty() ? function.getSymName().str() + "_vmap" : name.getValue());
    if (failed(copy))
      return failure();
    func::FuncOp batched = *copy;
    Block *block = &batched.getBody().front();
    Operation *terminator = block->getTerminator();
    SmallVector<Value> sources, lanes;
    for (unsigned place : *places) {
      sources.push_back(block->getArgument(place));
      auto type = cast<RankedTensorType>(sources.back().getType());
      lanes.push_back(block->addArgument(ir::batchedType(type, count), batched.getLoc()));
    }
    OpBuilder b(terminator);
    FailureOr<Batched> made = batch(b, batched.getLoc(), terminator->getOperands(), sources, lanes);
    if (failed(made))
      return failure();
    SmallVector<Value> returned;
    for (auto [value, isBatched] : llvm::zip_equal(made->values, made->batched)) {
      if (!isBatched && isa<RankedTensorType>(value.getType())) {
        if (failed(ir::checkLanes(batched.getLoc(), value.getType(), count)))
          return failure();
        value = ir::spread(b, batched.getLoc(), value, ir::sizeOf(b, batched.getLoc(), lanes[0], 0));
      }
      returned.push_back(value);
    }
    terminator->setOperands(returned);
    eraseDead(*block, nullptr); // the single lane
    for (auto [place, lane] : llvm::zip_equal(*places, lanes)) {
      if (!block->getArgument(place).use_empty())
        return emitError((*block->getArgument(place).user_begin())->getLoc())
               << "what is batched is read by an op that is none of the dialect wg";
      block->getArgument(place).setType(lane.getType());
      lane.replaceAllUsesWith(block->getArgument(place));
    }
    block->eraseArguments(function.getNumArguments(), lanes.size());
    setReturned(batched, SmallVector<Value>(terminator->getOperands()));
    return success();
  }
};

} // namespace
} // namespace wg::autodiff
