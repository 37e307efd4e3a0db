// `--wg-grad`: appends the gradient function of a function, in textual IR.
//
//   func @main(%x) -> %y        ->    func @main_grad(%x) -> %dx        (values=false, seeds=false)
#include "autodiff/Passes.h"
#include "autodiff/Reverse.h"

#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Program.h"

using namespace mlir;

namespace wg::autodiff {

#define GEN_PASS_DEF_GRAD
#include "autodiff/Passes.h.inc"

namespace {

struct Grad : impl::GradBase<Grad> {
  using GradBase::GradBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(StringRef(this->function));
    if (!function) {
      getOperation().emitError() << "there is no function @" << this->function << " to differentiate";
      return signalPassFailure();
    }
    if (function.isDeclaration() || !function.getBody().hasOneBlock()) {
      function.emitError() << "a function to differentiate has one block of wg ops";
      return signalPassFailure();
    }
    if (failed(ir::checkTypes(function)) || failed(differentiate(function)))
      signalPassFailure();
  }

  /// The places of the arguments to differentiate by.
  FailureOr<SmallVector<unsigned>> chosen(func::FuncOp function) {
    SmallVector<unsigned> places;
    for (int64_t place : wrt) {
      if (place < 0 || place >= static_cast<int64_t>(function.getNumArguments()))
        return function.emitError() << "wrt names argument " << place << ", but @" << function.getSymName() << " has "
                                    << function.getNumArguments();
      places.push_back(static_cast<unsigned>(place));
    }
    if (wrt.empty())
      for (BlockArgument argument : function.getArguments())
        if (isDifferentiableType(argument.getType()))
          places.push_back(argument.getArgNumber());
    return places;
  }

  LogicalResult differentiate(func::FuncOp function) {
    FailureOr<SmallVector<unsigned>> places = chosen(function);
    if (failed(places))
      return failure();
    std::string made = name.empty() ? function.getSymName().str() + "_grad" : name.getValue();
    if (getOperation().lookupSymbol(made))
      return function.emitError() << "there is a function @" << made << " already";
    OpBuilder b(function);
    b.setInsertionPointAfter(function);
    auto gradient = cast<func::FuncOp>(b.clone(*function));
    gradient.setSymName(made);
    // What is said of the function's derivative, of its results and of where they go is not true of its gradient.
    for (StringRef attribute : {StringRef(ir::kPairsAttr), StringRef(kVjpAttr), StringRef(kNumResultsAttr)})
      gradient->removeAttr(attribute);
    gradient.removeArgAttrsAttr();
    gradient.removeResAttrsAttr();
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
    b.setInsertionPoint(terminator);
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
    terminator->setOperands(returned);
    gradient.setFunctionType(b.getFunctionType(block->getArgumentTypes(), ValueRange(returned).getTypes()));
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

} // namespace
} // namespace wg::autodiff
