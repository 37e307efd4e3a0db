// What derivatives and lanes of conditions and loops are written with: functions, and loops.
#pragma once

#include "ir/Calls.h"
#include "ir/Dialect.h"

#include "llvm/ADT/SmallVectorExtras.h"

namespace wg::autodiff {

/// A function that is being written, in the module of `symbols`.
class Writer {
public:
  Writer(mlir::SymbolTable &symbols, mlir::Location loc, const llvm::Twine &name) : b(loc.getContext()), loc_(loc) {
    function_ = mlir::func::FuncOp::create(loc, name.str(), b.getFunctionType({}, {}));
    function_.setPrivate();
    symbols.insert(function_);
    body_ = function_.addEntryBlock();
    b.setInsertionPointToStart(body_);
  }
  mlir::Value argument(mlir::Type type) { return body_->addArgument(type, loc_); }
  llvm::SmallVector<mlir::Value> arguments(mlir::TypeRange types) {
    return llvm::map_to_vector(types, [&](mlir::Type type) { return argument(type); });
  }
  llvm::SmallVector<mlir::Value> call(mlir::func::FuncOp callee, mlir::ValueRange operands) {
    return llvm::SmallVector<mlir::Value>(ir::CallOp::create(b, loc_, callee.getResultTypes(),
                                                             mlir::FlatSymbolRefAttr::get(callee.getSymNameAttr()),
                                                             operands)
                                              .getResults());
  }
  mlir::func::FuncOp finish(mlir::ValueRange results) {
    mlir::func::ReturnOp::create(b, loc_, results);
    function_.setFunctionType(b.getFunctionType(body_->getArgumentTypes(), results.getTypes()));
    return function_;
  }

  mlir::OpBuilder b;

private:
  mlir::Location loc_;
  mlir::func::FuncOp function_;
  mlir::Block *body_;
};

inline mlir::FlatSymbolRefAttr nameOf(mlir::func::FuncOp function) {
  return mlir::FlatSymbolRefAttr::get(function.getSymNameAttr());
}

/// What a loop is made of.
struct LoopParts {
  mlir::FlatSymbolRefAttr body, condition; ///< null: none
  mlir::Value limit;                       ///< null: none
  llvm::SmallVector<mlir::Value> inits, xs, invariants;
  int64_t length = -1;
  bool reversed = false;
  int64_t checkpoints = 0;
};
/// `results`: the types of the body's.
inline ir::LoopOp makeLoop(mlir::OpBuilder &b, mlir::Location loc, const LoopParts &parts, mlir::TypeRange results) {
  llvm::SmallVector<mlir::Attribute> names{parts.body};
  if (parts.condition)
    names.push_back(parts.condition);
  llvm::SmallVector<mlir::Value> operands;
  if (parts.limit)
    operands.push_back(parts.limit);
  for (mlir::ValueRange part :
       {mlir::ValueRange(parts.inits), mlir::ValueRange(parts.xs), mlir::ValueRange(parts.invariants)})
    llvm::append_range(operands, part);
  size_t carried = parts.inits.size();
  return ir::LoopOp::create(b, loc,
                            ir::loopTypes(b.getContext(), mlir::ValueRange(parts.inits).getTypes(),
                                          parts.condition != nullptr, results.drop_front(carried), parts.length),
                            b.getArrayAttr(names), carried, parts.xs.size(), parts.length, parts.limit != nullptr,
                            parts.reversed, /*room=*/-1, parts.checkpoints, operands);
}

/// A zero of this type, whose sizes are known.
inline mlir::Value zeroOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  auto scalar = mlir::RankedTensorType::get({}, tensor.getElementType());
  mlir::Value zero =
      ir::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(scalar, b.getZeroAttr(tensor.getElementType())));
  if (tensor.getRank() == 0)
    return zero;
  return ir::BroadcastOp::create(b, loc, zero, tensor.getShape(), llvm::ArrayRef<int64_t>(), mlir::ValueRange());
}

} // namespace wg::autodiff
