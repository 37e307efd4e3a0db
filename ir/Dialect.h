// The dialect `wg` and its ops. Includes everything that the generated classes mention.
#pragma once

#include "ir/Interfaces.h"
#include "runtime/Letters.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/Dialect.h.inc"

namespace wg::ir {
/// Whether a value of a program can have this type: a ranked tensor of a dtype of ours without encoding, whose size
/// runtime::extentOf accepts; or an index. Every operand, result and attribute of a wg op passes it, so sizes of such
/// types can be multiplied without a check.
bool isValueType(mlir::Type type);

/// Sizes in text: `[2, ?, 3]`.
mlir::ParseResult parseSizes(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &sizes);
void printSizes(mlir::OpAsmPrinter &p, mlir::Operation *op, mlir::DenseI64ArrayAttr sizes);
} // namespace wg::ir

#define GET_OP_CLASSES
#include "ir/Ops.h.inc"
