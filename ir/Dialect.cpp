#include "ir/Dialect.h"

#include "ir/Bridge.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

#include "ir/Dialect.cpp.inc"

namespace wg::ir {

void registerWGDialectOperations(WGDialect *dialect); // Ops.cpp.inc, shard 0

void WGDialect::initialize() {
  registerWGDialectOperations(this);
  for (int id = 0; id < runtime::kNumOps; ++id) {
    const runtime::OpRecord &record = runtime::recordOf(static_cast<runtime::OpId>(id));
    OpNames entry{OperationName((Twine("wg.") + record.name).str(), getContext()), {}};
    for (const runtime::AttrRecord &attr : record.attrs)
      entry.attrs.push_back(StringAttr::get(getContext(), attr.name));
    names.push_back(std::move(entry));
  }
}

/// A folded tensor is a wg.constant, a folded size an arith.constant.
Operation *WGDialect::materializeConstant(OpBuilder &b, Attribute value, Type type, Location loc) {
  if (auto elements = dyn_cast<DenseElementsAttr>(value);
      elements && elements.getType() == type && isa<RankedTensorType>(type))
    return ConstantOp::create(b, loc, elements);
  return arith::ConstantOp::materialize(b, value, type, loc);
}

/// `wg.result = r` of an argument: result r, which has its type as far as sizes are known, replaces it.
/// No two arguments name the same.
LogicalResult WGDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                  NamedAttribute attribute) {
  if (attribute.getName() != "wg.result")
    return success();
  auto function = dyn_cast<func::FuncOp>(op);
  auto result = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!function || !result || !result.getType().isSignlessInteger(64) || result.getInt() < 0 ||
      result.getInt() >= static_cast<int64_t>(function.getNumResults()))
    return op->emitOpError("argument ") << argument << ": wg.result is the number of a result of the function, got "
                                        << attribute.getValue();
  Type type = function.getArgumentTypes()[argument], replaced = function.getResultTypes()[result.getInt()];
  if (!isa<RankedTensorType>(type) || getElementTypeOrSelf(type) != getElementTypeOrSelf(replaced) ||
      failed(verifyCompatibleShape(type, replaced)))
    return op->emitOpError("argument ") << argument << " is " << type << " and result " << result.getInt()
                                        << ", which replaces it, " << replaced;
  for (unsigned other = 0; other < argument; ++other)
    if (function.getArgAttr(other, "wg.result") == result)
      return op->emitOpError("result ") << result.getInt() << " replaces arguments " << other << " and " << argument
                                        << "; it replaces one at most";
  return success();
}

ParseResult parseSizes(OpAsmParser &parser, DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> values;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (succeeded(parser.parseOptionalQuestion())) {
          values.push_back(ShapedType::kDynamic);
          return success();
        }
        return parser.parseInteger(values.emplace_back());
      }))
    return failure();
  sizes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

void printSizes(OpAsmPrinter &p, Operation *, DenseI64ArrayAttr sizes) {
  p << '[';
  llvm::interleaveComma(sizes.asArrayRef(), p, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      p << '?';
    else
      p << size;
  });
  p << ']';
}

MLIRContext *context() {
  static MLIRContext *theContext = [] {
    DialectRegistry registry;
    registry
        .insert<WGDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                cf::ControlFlowDialect, vector::VectorDialect, index::IndexDialect, LLVM::LLVMDialect, ub::UBDialect>();
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    auto *context = new MLIRContext(registry); // outlives every static destructor that may still hold a Value
    context->loadAllAvailableDialects();
    return context;
  }();
  return theContext;
}

} // namespace wg::ir
