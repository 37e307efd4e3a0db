// Programs within programs: calls, and kernels with their text form.
#include "ir/Dialect.h"

using namespace mlir;

namespace wg::ir {

//===- call -------------------------------------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("calls @") << getCallee() << ", which is no function of this module";
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

//===- kernel -----------------------------------------------------------------------------------------------===//

YieldOp KernelOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }

/// wg.kernel map (%a = %x : tensor<4xf32>, ...) -> tensor<4xf32> attributes {...} { body }
void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printKeywordOrString(getKind());
  p << " (";
  llvm::interleaveComma(llvm::zip_equal(getBlock()->getArguments(), getInputs()), p, [&](auto pair) {
    auto [argument, input] = pair;
    p << argument << " = " << input << " : " << input.getType();
  });
  p << ')';
  p.printArrowTypeList(getResultTypes());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getKindAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  std::string kind;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Type> inputTypes;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&kind) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     [&]() -> ParseResult {
                                       if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                                           parser.parseOperand(inputs.emplace_back()) ||
                                           parser.parseColonType(arguments.back().type))
                                         return failure();
                                       inputTypes.push_back(arguments.back().type);
                                       return success();
                                     }) ||
      parser.parseOptionalArrowTypeList(result.types) || parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(inputs, inputTypes, at, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  result.addAttribute(getKindAttrName(result.name), parser.getBuilder().getStringAttr(kind));
  return success();
}

LogicalResult KernelOp::verify() {
  if (!llvm::is_contained({"map", "reduce", "contract", "single"}, getKind()))
    return emitOpError("is of kind '") << getKind() << "'; the kinds are map, reduce, contract and single";
  if (getBlock()->getArgumentTypes() != TypeRange(getInputs().getTypes()))
    return emitOpError("has ") << getInputs().size() << " inputs and " << getBlock()->getNumArguments()
                               << " block arguments, which must agree in number and type";
  auto yield = dyn_cast_or_null<YieldOp>(getBlock()->empty() ? nullptr : &getBlock()->back());
  if (!yield)
    return emitOpError("must end with wg.yield");
  if (TypeRange(yield.getValues().getTypes()) != TypeRange(getResultTypes()))
    return emitOpError("yields ") << yield.getValues().getTypes() << " but has results " << getResultTypes();
  for (Operation &op : getBlock()->without_terminator())
    if (!isa<WGDialect>(op.getDialect()) || op.getNumRegions() != 0)
      return op.emitOpError("stands in a kernel, which holds only wg ops without regions");
  return success();
}

} // namespace wg::ir
