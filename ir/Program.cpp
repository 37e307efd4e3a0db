#include "ir/Program.h"

#include "ir/Bridge.h"

using namespace mlir;

namespace wg::ir {

static bool isForeign(Operation *op) {
  if (isa_and_nonnull<WGDialect>(op->getDialect()) || isa<func::ReturnOp>(op))
    return false;
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    FunctionType type = function.getFunctionType();
    return !isa<ModuleOp>(op->getParentOp()) ||
           llvm::any_of(llvm::concat<const Type>(type.getInputs(), type.getResults()),
                        [](Type t) { return !isa<TensorType, IndexType>(t); });
  }
  return !isa<arith::ConstantOp>(op) || !op->getResult(0).getType().isIndex();
}

Operation *findForeign(ModuleOp module) {
  Operation *found = nullptr;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == module.getOperation() || !isForeign(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

LogicalResult checkTypes(func::FuncOp function) {
  auto check = [&](Location loc, const char *what, size_t i, Type type) -> LogicalResult {
    if (isValueType(type))
      return success();
    return mlir::emitError(loc) << what << " " << i << " of @" << function.getName() << " is " << type << ": "
                                << whyNoValueType(type);
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(check(function.getLoc(), "argument", i, type)))
      return failure();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(check(function.getLoc(), "result", i, type)))
      return failure();
  WalkResult walked = function.getBody().walk([&](Block *block) {
    for (BlockArgument argument : block->getArguments())
      if (failed(check(argument.getLoc(), "block argument", argument.getArgNumber(), argument.getType())))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// Metadata of a place reaches LLVM's debug information unchecked.
static bool hasMetadata(Location loc) {
  return loc
      ->walk([](Location part) {
        auto fused = dyn_cast<FusedLoc>(LocationAttr(part));
        return fused && fused.getMetadata() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult checkPlaces(Operation *root) {
  Location last = root->getLoc(); // neighbours often share a place
  bool fine = !hasMetadata(last);
  root->walk([&](Operation *op) {
    if (fine && op->getLoc() != last)
      fine = !hasMetadata(last = op->getLoc());
    return fine ? WalkResult::advance() : WalkResult::interrupt();
  });
  return fine ? success() : mlir::emitError(last) << "a place carries metadata, which a program does not";
}

static Operation *findRewind(ModuleOp module) {
  Operation *found = nullptr;
  module.walk([&](RewindOp op) { found = op; });
  return found;
}

LogicalResult checkProgram(ModuleOp module) {
  if (Operation *op = findForeign(module))
    return op->emitOpError("is not part of a program, which holds functions of wg ops on tensors");
  for (auto function : module.getOps<func::FuncOp>()) {
    if (failed(checkTypes(function)))
      return failure();
    if (!function.isDeclaration() && !function.getBody().hasOneBlock())
      return function.emitOpError("has several blocks; a program is one block of wg ops");
  }
  if (Operation *made = findRewind(module))
    return made->emitOpError("is made of loops while machine code is made, and is no part of a program");
  return checkPlaces(module);
}

} // namespace wg::ir
