// Evaluates ops whose operands are small constants, by the kernels that eager code runs.
//
//   %a = wg.constant dense<[1.0, 4.0]>
//   %y = wg.sqrt %a                           %y = wg.constant dense<[1.0, 2.0]>
//   %b = wg.constant dense<2.0> : 1000x1000; %z = wg.exp %b     ->     %z = wg.constant dense<7.389> : 1000x1000
//
// Legal because the kernels are the meaning of the ops: the interpreter would compute the same bits. A constant lives
// as long as its context, so results are kept to 16 elements, and a splat stays a splat: elementwise ops on splats are
// evaluated on one element. An op that fails (an index out of range) is left to fail when it runs, and one that meets
// other ranks to meet them. Linear in the ops.
#include "ir/Bridge.h"
#include "passes/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using wg::runtime::Array;

namespace wg::passes {

#define GEN_PASS_DEF_FOLDCONSTANTS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t mostElements = 16;

/// The splat's one element, as a tensor of rank 0.
DenseElementsAttr elementOf(DenseElementsAttr splat) {
  return splat.resizeSplat(RankedTensorType::get({}, splat.getElementType()));
}

/// The value of `op`, or null.
DenseElementsAttr evaluate(Operation *op) {
  std::optional<runtime::OpId> id = ir::opIdOf(op);
  if (!id || !runtime::recordOf(*id).kernel || op->getNumOperands() == 0 || op->getNumResults() != 1 ||
      op->hasTrait<ir::MeetsRanks>())
    return {};
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};

  SmallVector<DenseElementsAttr> values;
  for (Value operand : op->getOperands())
    if (!matchPattern(operand, m_Constant(&values.emplace_back())))
      return {};
  bool splats = isa<ir::Scalar>(op) && llvm::all_of(values, [](DenseElementsAttr value) { return value.isSplat(); });
  auto isSmall = [](ShapedType type) { return type.getNumElements() <= mostElements; };
  if (!splats &&
      !(isSmall(type) && llvm::all_of(values, [&](DenseElementsAttr value) { return isSmall(value.getType()); })))
    return {};

  SmallVector<Array> operands;
  for (DenseElementsAttr value : values)
    operands.push_back(ir::arrayOf(splats ? elementOf(value) : value));
  Array result;
  if (!runtime::execute({*id, ir::attrsOf(op), operands, {}}, std::span(&result, 1)).ok())
    return {};
  DenseElementsAttr value = ir::elementsOf(op->getContext(), result);
  return splats ? value.resizeSplat(type) : value;
}

struct FoldConstants : impl::FoldConstantsBase<FoldConstants> {
  using Base::Base;

  /// In program order, so that a chain of constants folds in one sweep. A kernel stays what its
  /// kind says: nothing in it folds.
  void runOnOperation() override {
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<ir::KernelOp>(op))
        return WalkResult::skip();
      DenseElementsAttr value = evaluate(op);
      if (!value)
        return WalkResult::advance();
      OpBuilder b(op);
      op->getResult(0).replaceAllUsesWith(ir::ConstantOp::create(b, op->getLoc(), value));
      op->erase();
      return WalkResult::skip();
    });
  }
};
} // namespace

} // namespace wg::passes
