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

/// `bodies`: the names of which the first gives way to `body`.
inline ir::LoopOp makeLoop(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::FlatSymbolRefAttr> bodies,
                           mlir::func::FuncOp body, mlir::Value limit, mlir::ValueRange inits, mlir::ValueRange xs,
                           mlir::ValueRange invariants, int64_t length, bool reversed) {
  llvm::SmallVector<mlir::Attribute> names(bodies.begin(), bodies.end());
  names.front() = nameOf(body);
  llvm::SmallVector<mlir::Value> operands;
  if (limit)
    operands.push_back(limit);
  llvm::append_range(operands, inits);
  llvm::append_range(operands, xs);
  llvm::append_range(operands, invariants);
  llvm::SmallVector<mlir::Type> types(inits.getTypes());
  if (names.size() > 1)
    types.push_back(mlir::RankedTensorType::get({}, b.getI64Type()));
  for (mlir::Type row : body.getResultTypes().drop_front(inits.size()))
    types.push_back(ir::stackOf(row, length));
  return ir::LoopOp::create(b, loc, types, b.getArrayAttr(names), inits.size(), xs.size(), length, limit != nullptr,
                            reversed, operands);
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
