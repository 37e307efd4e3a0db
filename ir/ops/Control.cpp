// Programs within programs: calls.
#include "ir/Dialect.h"

using namespace mlir;

namespace wg::ir {

//===- call -------------------------------------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("calls @") << getCallee() << ", which is not a function of this module";
  FunctionType type = callee.getFunctionType();
  if (TypeRange(type.getInputs()) != TypeRange(getOperandTypes()) ||
      TypeRange(type.getResults()) != TypeRange(getResultTypes())) {
    InFlightDiagnostic diagnostic = emitOpError("is of type ")
                                    << FunctionType::get(getContext(), getOperandTypes(), getResultTypes()) << ", but @"
                                    << getCallee() << " is of type " << type;
    diagnostic.attachNote(callee.getLoc()) << "declared here";
    return diagnostic;
  }
  return success();
}

} // namespace wg::ir
