// Programs within programs: calls, and kernels with their text form.
#include "ir/Dialect.h"

#include "ir/Views.h"
#include "mlir/IR/Verifier.h"

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
  // An op's verifier runs before those of the ops inside, whose attributes are asked for their maps below.
  for (Operation &op : *getBlock())
    if (failed(mlir::verify(&op, /*verifyRecursively=*/false)))
      return failure();
  if (!llvm::is_contained({"map", "reduce", "contract", "single", "external"}, getKind()))
    return emitOpError("is of kind '") << getKind() << "'; the kinds are map, reduce, contract, single and external";
  if (getBlock()->getArgumentTypes() != TypeRange(getInputs().getTypes()))
    return emitOpError("has ") << getInputs().size() << " inputs and " << getBlock()->getNumArguments()
                               << " block arguments, which must agree in number and type";
  auto yield = dyn_cast_or_null<YieldOp>(getBlock()->empty() ? nullptr : &getBlock()->back());
  if (!yield)
    return emitOpError("must end with wg.yield");
  if (TypeRange(yield.getValues().getTypes()) != TypeRange(getResultTypes()))
    return emitOpError("yields ") << yield.getValues().getTypes() << " but has results " << getResultTypes();
  for (Operation &op : getBlock()->without_terminator())
    if (!isa<WGDialect>(op.getDialect()) || op.getNumRegions() != 0 || isa<CallOp>(op))
      return op.emitOpError("is in a kernel, which holds only wg ops without regions, and no calls");
  // A kernel of sizes `?` becomes loops when they are known.
  auto isStatic = [](Type type) {
    return isa<RankedTensorType>(type) && cast<RankedTensorType>(type).hasStaticShape();
  };
  bool known = llvm::all_of(getBlock()->getArgumentTypes(), isStatic);
  for (Operation &op : *getBlock())
    known = known && llvm::all_of(op.getOperandTypes(), isStatic) && llvm::all_of(op.getResultTypes(), isStatic);
  return known ? verifyLoops([](Operation *op) { return op->emitOpError(); }) : success();
}

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// That of the reductions' operand or of the product; else that of the result with the most axes.
KernelOp::Space KernelOp::getSpace() {
  for (Operation &op : getBlock()->without_terminator()) {
    if (auto reduction = dyn_cast<Reduction>(op))
      return {llvm::to_vector(shapeOf(op.getOperand(0))), llvm::to_vector(reduction.getAxes())};
    if (isa<ContractOp>(op))
      return {llvm::to_vector(shapeOf(op.getResult(0))), {}};
  }
  ArrayRef<int64_t> sizes;
  for (Value value : getYield().getValues())
    if (shapeOf(value).size() > sizes.size())
      sizes = shapeOf(value);
  return {llvm::to_vector(sizes), {}};
}

namespace {

/// The places of a kernel's values in its iteration space: a value of the whole space lies at (d0, d1, ...), one of the
/// rows at the kept axes, one of a single element at 0.
class Places {
public:
  explicit Places(KernelOp kernel) : space(kernel.getSpace()), context(kernel.getContext()) {
    for (auto [d, size] : llvm::enumerate(space.sizes))
      if (!llvm::is_contained(space.reduced, static_cast<int64_t>(d))) {
        kept.push_back(d);
        rowSizes.push_back(size);
      }
  }
  std::optional<AffineMap> of(ArrayRef<int64_t> shape) const {
    SmallVector<AffineExpr> exprs;
    if (shape == ArrayRef(space.sizes)) {
      for (unsigned d = 0; d < shape.size(); ++d)
        exprs.push_back(getAffineDimExpr(d, context));
    } else if (shape == ArrayRef(rowSizes)) {
      for (unsigned d : kept)
        exprs.push_back(getAffineDimExpr(d, context));
    } else if (ShapedType::getNumElements(shape) == 1) {
      exprs.assign(shape.size(), getAffineConstantExpr(0, context));
    } else {
      return std::nullopt;
    }
    return AffineMap::get(space.sizes.size(), 0, exprs, context);
  }
  /// An axis of size 1 has one coordinate.
  AffineMap simplified(AffineMap map) const {
    SmallVector<AffineExpr> dims;
    for (auto [d, size] : llvm::enumerate(space.sizes))
      dims.push_back(size == 1 ? getAffineConstantExpr(0, context) : getAffineDimExpr(d, context));
    return simplifyAffineMap(map.replaceDimsAndSymbols(dims, {}, dims.size(), 0));
  }

  KernelOp::Space space;

private:
  MLIRContext *context;
  SmallVector<unsigned> kept;
  SmallVector<int64_t> rowSizes;
};

} // namespace

LogicalResult KernelOp::verifyLoops(function_ref<InFlightDiagnostic(Operation *)> error) {
  Block &body = *getBlock();
  auto fail = [&](Operation *op) -> InFlightDiagnostic {
    return error(op) << "is in a kernel of kind " << getKind() << ", ";
  };
  for (Operation &op : body.without_terminator())
    if (isa<ContractOp, Indexed, Structured, External>(op))
      for (Value operand : op.getOperands())
        if (!isa<BlockArgument>(operand))
          return fail(&op) << "and reads the result of " << operand.getDefiningOp()->getName()
                           << " from memory, where only inputs of the kernel lie";
  if (getKind() == "single" || getKind() == "external") {
    bool single = getKind() == "single";
    if (single ? !isa<Structured>(body.front()) : !isa<External>(body.front()))
      return fail(&body.front()) << "which holds one op that "
                                 << (single ? "builds its own loops" : "is a call of a routine");
    if (body.front().getNextNode() != getYield())
      return fail(body.front().getNextNode()) << "which holds one op";
    return getYield()->getOperands() == body.front().getResults()
               ? success()
               : fail(getYield()) << "and yields other values than the op's results";
  }

  // What each kind holds.
  Operation *main = nullptr; // the contraction, or the first reduction
  size_t computing = 0;
  for (Operation &op : body.without_terminator()) {
    if (isa<Scalar, Reduction, ContractOp>(op) && ++computing > kMaxOps)
      return fail(&op) << "which holds at most " << kMaxOps << " ops that compute";
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (!cast<ElementsAttr>(constant.getValue()).isSplat())
        return fail(&op) << "whose constants are splats; a larger one is an input";
    } else if (isa<Reduction>(op)) {
      if (getKind() != "reduce")
        return fail(&op) << "which reduces nothing";
      if (main && (shapeOf(op.getOperand(0)) != shapeOf(main->getOperand(0)) ||
                   cast<Reduction>(op).getAxes() != cast<Reduction>(main).getAxes()))
        return fail(&op) << "whose reductions are of one shape over one set of axes";
      main = main ? main : &op;
    } else if (isa<ContractOp>(op)) {
      if (getKind() != "contract" || main)
        return fail(&op) << "which holds " << (main ? "one contraction" : "none");
      main = &op;
    } else if (!isa<Scalar, Indexed>(op) && !viewMapOf(&op)) {
      return fail(&op) << "which holds elementwise ops, views and ops whose element follows from its place";
    }
  }
  if (!main && getKind() != "map")
    return error(*this) << "is of kind " << getKind() << " and holds no "
                        << (getKind() == "reduce" ? "reduction" : "contraction");

  // Every value is computed at the point at which it is read.
  Places places(*this);
  auto placed = [&](Operation *reader, Value operand) -> LogicalResult {
    std::optional<AffineMap> at = places.of(shapeOf(operand));
    if (!at)
      return fail(reader) << "and reads " << operand.getType()
                          << ", which is the shape of neither its iteration space nor its rows";
    Value root = operand;
    while (auto view = viewMapOf(root.getDefiningOp())) {
      at = simplifyAffineMap(view->compose(*at));
      root = root.getDefiningOp()->getOperand(0);
    }
    Operation *computed = root.getDefiningOp();
    if (!computed || isa<ConstantOp, Indexed>(computed))
      return success(); // in memory, or computed at any place
    std::optional<AffineMap> own = places.of(shapeOf(root));
    if (!own || places.simplified(*own) != places.simplified(*at))
      return fail(reader) << "and reads " << computed->getName() << " in another place than its own";
    return success();
  };
  for (Operation &op : body)
    if (isa<Scalar, Reduction, YieldOp>(op))
      for (Value operand : op.getOperands())
        if (failed(placed(&op, operand)))
          return failure();
  return success();
}

} // namespace wg::ir
