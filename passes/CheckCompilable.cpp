// Has a program machine code?
//
// Kernels are made of wg ops on static sizes; anything else ends here, with its name and line. It changes nothing.
#include "ir/Calls.h"
#include "ir/Kernels.h"
#include "passes/Passes.h"

#include <functional>

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_CHECKCOMPILABLE
#include "passes/Passes.h.inc"

LogicalResult checkCompilable(func::FuncOp function) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || tensor.hasStaticShape();
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isStatic(type)) {
      InFlightDiagnostic diagnostic = function.emitError()
                                      << "argument " << i << " of @" << function.getName() << " is " << type
                                      << ", and machine code is made for static sizes";
      diagnostic.attachNote()
          << "try: give the sizes of all arguments (wengert compile --types, or the pass wg-infer-shapes)";
      return diagnostic;
    }
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "@" << function.getName() << " has " << function.getBody().getBlocks().size()
                                << " blocks; a program of wg ops has one";
  std::function<LogicalResult(Block &)> check = [&](Block &block) -> LogicalResult {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<ir::LoopOp>(op); loop && ir::isUnbounded(loop)) {
        InFlightDiagnostic diagnostic = op.emitOpError()
                                        << "keeps something of each turn, and nothing says how many turns there are";
        diagnostic.attachNote() << "try: give the loop a limit (WhileOptions::max_steps), or interpret the function";
        return diagnostic;
      }
      if (!llvm::all_of(op.getResultTypes(), isStatic))
        return op.emitOpError() << "has the type " << op.getResultTypes().front()
                                << ", whose sizes do not follow from the arguments'";
      for (Type type : op.getResultTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type);
            tensor && isa<Float16Type, BFloat16Type>(tensor.getElementType()))
          return op.emitOpError() << "has the type " << type << ": there is no machine code for f16 and bf16 yet";
      bool returns = op.hasTrait<OpTrait::IsTerminator>();
      if (!returns && (!isa_and_nonnull<ir::WGDialect>(op.getDialect()) || isa<ir::DimOp, ir::SizeOp, ir::CallOp>(op)))
        return op.emitOpError() << "has no compiled form; machine code is made of wg ops on tensors";
      for (Value operand : op.getOperands())
        if (!isa<RankedTensorType>(operand.getType()))
          return op.emitOpError() << "reads a value of type " << operand.getType()
                                  << "; machine code is made of wg ops on tensors";
      if (auto kernel = dyn_cast<ir::KernelOp>(op); kernel && failed(check(*kernel.getBlock())))
        return failure();
    }
    return success();
  };
  return check(function.getBody().front());
}

namespace {

struct CheckCompilable : impl::CheckCompilableBase<CheckCompilable> {
  using Base::Base;
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(checkCompilable(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace wg::passes
