// Between the runtime's plain structs and MLIR: types, attributes, op numbers. The only converter there is; it reads
// the op table, so a new op needs no line here.
#pragma once

#include "ir/Dialect.h"
#include "runtime/Op.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace wg::ir {

/// f32[2,?] -> tensor<2x?xf32>; bool is i1, u8 is ui8.
mlir::Type elementTypeOf(mlir::MLIRContext *context, runtime::DType dtype);
mlir::RankedTensorType tensorTypeOf(mlir::MLIRContext *context, const runtime::TensorType &type);
/// The inverse; `index` becomes i64[]. Requires a type that a wg value can have.
runtime::DType dtypeOf(mlir::Type elementType);
runtime::TensorType runtimeTypeOf(mlir::Type type);

/// Why isValueType(type) does not hold: `f32[4611686018427387905,4] has more than 2^56 bytes, ...`.
std::string whyNoValueType(mlir::Type type);

/// The number of a wg op; nothing for ops of other dialects.
std::optional<runtime::OpId> opIdOf(mlir::Operation *op);
/// The attributes in the order of the op's record.
runtime::Attrs attrsOf(mlir::Operation *op);
/// One attribute each way. `context` owns the result.
mlir::Attribute toAttribute(mlir::MLIRContext *context, const runtime::AttrValue &value, runtime::AttrKind kind);
runtime::AttrValue toAttrValue(mlir::Attribute attribute, runtime::AttrKind kind);
/// The bytes of a constant: bool as one byte an element, splats expanded.
runtime::Array arrayOf(mlir::ElementsAttr value);
mlir::DenseElementsAttr elementsOf(mlir::MLIRContext *context, const runtime::Array &array);

/// Builds an op by number; the shape rule gives its result types. On a broken rule emits the diagnostic at `loc` and
/// returns failure, building nothing.
mlir::FailureOr<mlir::Operation *> buildOp(mlir::OpBuilder &b, mlir::Location loc, runtime::OpId id,
                                           mlir::ValueRange operands, const runtime::Attrs &attrs);

/// What the generated inferReturnTypes call.
mlir::LogicalResult inferByShapeRule(mlir::MLIRContext *context, std::optional<mlir::Location> location,
                                     runtime::OpId id, mlir::ValueRange operands,
                                     llvm::function_ref<mlir::Attribute(llvm::StringRef)> attribute,
                                     llvm::SmallVectorImpl<mlir::Type> &types);

/// `train.cpp:41 in step` <-> a location. The function is a NameLoc around the FileLineColLoc.
mlir::Location locationOf(mlir::MLIRContext *context, const runtime::Where &where);
std::string whereOf(mlir::Location location);

/// The process's one context, all dialects loaded. Its threading stays on: that is what makes its uniquers safe for the
/// user's threads. Never destroyed.
mlir::MLIRContext *context();

} // namespace wg::ir
