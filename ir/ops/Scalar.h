// Elements in emitted code: a scalar, or a one-dimensional native vector of scalars. Integers are signless: i8 is the
// dtype u8 and counts as unsigned, i1 is bool, i64 and i32 are signed.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace wg::ir {

inline bool isFloat(mlir::Value x) { return llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x)); }
/// u8 or bool.
inline bool isUnsigned(mlir::Value x) { return mlir::getElementTypeOrSelf(x).getIntOrFloatBitWidth() <= 8; }

/// `element`, in as many lanes as `like`.
inline mlir::Type withLanes(mlir::Type element, mlir::Type like) {
  auto vector = llvm::dyn_cast<mlir::VectorType>(like);
  return vector ? mlir::VectorType::get(vector.getShape(), element) : element;
}

/// The type of a dtype's element in emitted code: ui8 is i8.
inline mlir::Type signless(mlir::Type element) {
  return element.isUnsignedInteger() ? mlir::IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth())
                                     : element;
}

/// A constant of type `type`, equal in all lanes.
inline mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, mlir::TypedAttr element) {
  if (auto vector = llvm::dyn_cast<mlir::VectorType>(type))
    return mlir::arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(vector, mlir::Attribute(element)));
  return mlir::arith::ConstantOp::create(b, loc, element);
}
inline mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, double value) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  if (llvm::isa<mlir::FloatType>(element))
    return constant(b, loc, type, mlir::TypedAttr(b.getFloatAttr(element, value)));
  return constant(b, loc, type, mlir::TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(value))));
}
inline mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, const llvm::APInt &value) {
  return constant(b, loc, type, mlir::TypedAttr(b.getIntegerAttr(mlir::getElementTypeOrSelf(type), value)));
}

/// Comparisons that pick the predicate for the elements' kind: float (ordered), signed or unsigned.
enum class Order { equal, notEqual, less, lessEqual, greater, greaterEqual };
mlir::Value compare(mlir::OpBuilder &b, mlir::Location loc, Order order, mlir::Value x, mlir::Value y);

/// max and min as numbers.md has them: NaN if either is, max(-0, 0) = 0, min(-0, 0) = -0; `or` and `and` of booleans.
mlir::Value maximum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value y);
mlir::Value minimum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value y);

/// A divisor of the integer x that no division can trap on: 1 for 0, and for -1 under the lowest integer, where x / 1
/// and x % 1 are what numbers.md has (MIN // -1 = MIN, MIN % -1 = 0).
mlir::Value safeDivisor(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::Value divisor);

} // namespace wg::ir
