// Kernels: their text form, what they may hold, and what is decided about them.
#include "ir/Kernels.h"

#include "ir/Views.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace wg::ir {

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

//===- Places -----------------------------------------------------------------------------------------------===//

Places::Places(ArrayRef<int64_t> space, ArrayRef<int64_t> reduced, MLIRContext *context)
    : space(space), reduced(reduced), context(context) {
  for (auto [d, size] : llvm::enumerate(space))
    if (!llvm::is_contained(reduced, static_cast<int64_t>(d))) {
      kept.push_back(d);
      rowSizes.push_back(size);
    }
}

Places::Places(KernelOp kernel)
    : Places(kernel.getLoopsAttr().getSpace(), kernel.getLoopsAttr().getReduced(), kernel.getContext()) {}

Space Places::of(Value value) const {
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape == ArrayRef(space))
    return Space::full;
  return !reduced.empty() && shape == ArrayRef(rowSizes) ? Space::row : Space::uniform;
}

AffineMap Places::mapOf(Value value) const {
  SmallVector<AffineExpr> exprs;
  switch (of(value)) {
  case Space::full: return AffineMap::getMultiDimIdentityMap(space.size(), context);
  case Space::row:
    for (int64_t d : kept)
      exprs.push_back(getAffineDimExpr(d, context));
    break;
  case Space::uniform: exprs.assign(shapeOf(value).size(), getAffineConstantExpr(0, context)); break;
  }
  return AffineMap::get(space.size(), 0, exprs, context);
}

std::optional<AffineMap> Places::find(Value value) const {
  if (of(value) == Space::uniform && ShapedType::getNumElements(shapeOf(value)) != 1)
    return std::nullopt;
  return mapOf(value);
}

Places::Seen Places::trace(Value value) const {
  AffineMap map = mapOf(value);
  while (auto view = viewMapOf(value.getDefiningOp())) {
    map = simplifyAffineMap(view->compose(map));
    value = value.getDefiningOp()->getOperand(0);
  }
  return {value, map};
}

AffineMap Places::simplified(AffineMap map) const {
  SmallVector<AffineExpr> dims;
  for (auto [d, size] : llvm::enumerate(space))
    dims.push_back(size == 1 ? getAffineConstantExpr(0, context) : getAffineDimExpr(d, context));
  return simplifyAffineMap(map.replaceDimsAndSymbols(dims, {}, dims.size(), 0));
}

Phases::Phases(KernelOp kernel, const Places &places) {
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    int phase = 0;
    for (Value operand : op.getOperands())
      phase = std::max(phase, of.lookup(operand));
    if (isa<Reduction>(op))
      ++phase;
    for (Value result : op.getResults())
      of[result] = phase;
    count = std::max(count, phase);
  }
  for (Value value : kernel.getYield().getValues())
    if (places.of(value) == Space::full)
      count = std::max(count, of.lookup(value) + 1);
}

//===- What is decided --------------------------------------------------------------------------------------===//

bool LoopsAttr::mayOverwrite(unsigned result, unsigned input) const {
  ArrayRef<int64_t> pairs = getOverwrites();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i] == result && pairs[i + 1] == input)
      return true;
  return false;
}

LoopsAttr LoopsAttr::withMayFail(bool mayFail) const {
  return get(getContext(), getSpace(), getReduced(), getReads(), getWrites(), getCompute(), getSums(), getOverwrites(),
             mayFail);
}

namespace {

struct SpaceOfKernel {
  SmallVector<int64_t> sizes, reduced;
};

} // namespace

/// That of the reductions' operand, or of the product's result and then its summed letters; else that of the result
/// with the most axes.
static SpaceOfKernel spaceOfBody(KernelOp kernel) {
  if (kernel.isOneOp())
    return {};
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (auto reduction = dyn_cast<Reduction>(op))
      return {llvm::to_vector(shapeOf(op.getOperand(0))), llvm::to_vector(reduction.getAxes())};
    if (auto contract = dyn_cast<ContractOp>(op)) {
      SpaceOfKernel space{llvm::to_vector(shapeOf(op.getResult(0))), {}};
      auto sum = [&](const runtime::Letter &letter) {
        space.reduced.push_back(static_cast<int64_t>(space.sizes.size()));
        space.sizes.push_back(letter.size);
      };
      runtime::Letters letters = contract.letters();
      for (const runtime::Letter &letter : letters.k)
        sum(letter);
      for (const runtime::Related &related : letters.related)
        sum(related.b);
      return space;
    }
  }
  ArrayRef<int64_t> sizes;
  for (Value value : kernel.getYield().getValues())
    if (shapeOf(value).size() > sizes.size())
      sizes = shapeOf(value);
  return {llvm::to_vector(sizes), {}};
}

/// Whether `result` may lie in the memory of `input`: every read is of the element that the same point writes, and
/// comes before the write. `phases`: of a reduce kernel.
static bool readsInPlace(KernelOp kernel, const Places &places, const std::optional<Phases> &phases, unsigned result,
                         BlockArgument input) {
  YieldOp yield = kernel.getYield();
  Value yielded = yield.getValues()[result];
  if (input.getType() != yielded.getType())
    return false;
  if (kernel.isOneOp()) {
    Operation *op = &kernel.getBlock()->front();
    return input.hasOneUse() && input.use_begin()->getOwner() == op &&
           input.use_begin()->getOperandNumber() == overwrittenBy(op);
  }
  // A value of another shape than the space is computed more than once.
  if (kernel.getKind() == KernelKind::map && places.of(yielded) != Space::full)
    return false;
  // Rows are written after everything that reads them; whole elements may be read again in a later phase.
  if (phases && places.of(yielded) == Space::full && phases->of.lookup(yielded) + 1 != phases->count)
    return false;
  return llvm::all_of(input.getUses(), [&](OpOperand &use) {
    if (use.getOwner() == yield)
      return use.getOperandNumber() == result; // another may be stored after this result
    // A view or a product reads other elements too; a reduction, those of its own point.
    return isa<Scalar>(use.getOwner()) || (phases && isa<Reduction>(use.getOwner()));
  });
}

/// Coordinates of a contract kernel's space -> coordinates of an operand with these letters. A related letter of a
/// follows from those of b and c; where it is no whole number in range, the point has no term.
static AffineMap mapOfLetters(ContractOp contract, StringRef letters) {
  runtime::Letters groups = contract.letters();
  std::string space = contract.lettersOfC().str() + runtime::namesOf(groups.k);
  for (const runtime::Related &related : groups.related)
    space += related.b.names;
  auto dim = [&](char letter) { return getAffineDimExpr(space.find(letter), contract.getContext()); };
  SmallVector<AffineExpr> exprs;
  for (char letter : letters) {
    auto related = llvm::find_if(groups.related, [&](const runtime::Related &r) { return r.a.names[0] == letter; });
    if (related == groups.related.end()) {
      exprs.push_back(dim(letter));
      continue;
    }
    int64_t sign = related->ofA < 0 ? -1 : 1;
    AffineExpr scaled = dim(related->c.names[0]) * (-sign * related->ofC) +
                        dim(related->b.names[0]) * (-sign * related->ofB) + sign * related->constant;
    exprs.push_back(sign * related->ofA == 1 ? scaled : scaled.floorDiv(sign * related->ofA));
  }
  return AffineMap::get(space.size(), 0, exprs, contract.getContext());
}

static LoopsAttr describedBy(KernelOp kernel, bool mayFail) {
  MLIRContext *context = kernel.getContext();
  Builder b(context);
  Block &body = *kernel.getBlock();
  SpaceOfKernel space = spaceOfBody(kernel);
  Places places(space.sizes, space.reduced, context);
  bool isOneOp = kernel.isOneOp();
  DenseMap<Value, SmallVector<Attribute, 2>> readsOf;
  SmallVector<Attribute> reads, writes;
  SmallVector<Type> sums;
  SmallVector<int64_t> overwrites;
  Type compute;
  auto accumulator = [&](Value value) {
    Type element = elementOf(value);
    return isa<Float16Type, BFloat16Type>(element) ? b.getF32Type() : element;
  };
  auto width = [](Type type) { return std::pair(isa<FloatType>(type), type.getIntOrFloatBitWidth()); };
  auto read = [&](Value root, AffineMap map) {
    auto attribute = AffineMapAttr::get(map);
    if (isa<BlockArgument>(root) && !llvm::is_contained(readsOf[root], attribute))
      readsOf[root].push_back(attribute);
  };
  for (Operation &op : body) {
    if (auto contract = dyn_cast<ContractOp>(op)) {
      read(contract.getA(), mapOfLetters(contract, contract.lettersOfA()));
      read(contract.getB(), mapOfLetters(contract, contract.lettersOfB()));
    }
    if (isa<Reduction>(op) || isa<ContractOp>(op))
      sums.push_back(accumulator(op.getOperand(0)));
    for (Value operand : op.getOperands()) {
      if (!compute || width(elementOf(operand)) > width(compute))
        compute = elementOf(operand);
      if (isOneOp || !isa<Scalar, Reduction, YieldOp>(op))
        continue;
      Places::Seen seen = places.trace(operand);
      read(seen.root, seen.map);
    }
  }
  for (BlockArgument input : body.getArguments())
    reads.push_back(b.getArrayAttr(readsOf.lookup(input)));
  std::optional<Phases> phases;
  if (kernel.getKind() == KernelKind::reduce)
    phases.emplace(kernel, places);
  for (auto [r, value] : llvm::enumerate(kernel.getYield().getValues())) {
    if (!isOneOp)
      writes.push_back(AffineMapAttr::get(places.mapOf(value)));
    for (BlockArgument input : body.getArguments())
      if (readsInPlace(kernel, places, phases, r, input))
        overwrites.append({static_cast<int64_t>(r), static_cast<int64_t>(input.getArgNumber())});
  }
  return LoopsAttr::get(context, space.sizes, space.reduced, b.getArrayAttr(reads), b.getArrayAttr(writes), compute,
                        sums, overwrites, mayFail);
}

void KernelOp::describe() { setLoopsAttr(describedBy(*this, mayFail(&getBlock()->front()))); }

std::optional<IndexBound> checkedBound(KernelOp kernel) {
  auto op = dyn_cast<Structured>(&kernel.getBlock()->front());
  return op ? op.indexBound() : std::nullopt;
}

void decideWhoChecks(func::FuncOp function) {
  DenseMap<Value, int64_t> bounds; // of indices that a kernel has checked: the smallest
  for (KernelOp kernel : function.getOps<KernelOp>()) {
    bool fails = mayFail(&kernel.getBlock()->front());
    if (std::optional<IndexBound> bound = checkedBound(kernel))
      if (auto inside = dyn_cast<BlockArgument>(kernel.getBlock()->front().getOperand(bound->operand))) {
        auto [at, isNew] = bounds.try_emplace(storageOf(kernel.getInputs()[inside.getArgNumber()]), bound->size);
        fails = isNew || at->second > bound->size;
        at->second = std::min(at->second, bound->size);
      }
    if (kernel.getLoopsAttr().getMayFail() != fails)
      kernel.setLoopsAttr(kernel.getLoopsAttr().withMayFail(fails));
  }
}

SmallVector<MultiplyAdd, 2> asMultiplyAdd(Operation *op) {
  SmallVector<MultiplyAdd, 2> ways;
  bool isDifference = isa<SubOp>(op);
  if ((!isDifference && !isa<AddOp>(op)) || !isa<FloatType>(elementOf(op->getResult(0))))
    return ways;
  for (unsigned place : {1u, 0u})
    if (auto product = op->getOperand(place).getDefiningOp<MulOp>(); product && product->hasOneUse())
      ways.push_back({product->getOperand(0), product->getOperand(1), op->getOperand(1 - place), product->getResult(0),
                      isDifference && place == 1, isDifference && place == 0});
  return ways;
}

bool isTermOfSum(Operation *op) { return isa<MulOp>(op) && op->hasOneUse() && isa<ReduceSumOp>(*op->user_begin()); }

//===- Text and verification --------------------------------------------------------------------------------===//

static void printNumbers(AsmPrinter &p, ArrayRef<int64_t> numbers) {
  p << '[';
  llvm::interleaveComma(numbers, p);
  p << ']';
}

/// <[128, 10] over [1] reads [...] writes [...] computes f32 sums [f32] overwrites [0, 1] may_fail>, without what is
/// empty.
void LoopsAttr::print(AsmPrinter &p) const {
  p << '<';
  printNumbers(p, getSpace());
  if (!getReduced().empty()) {
    p << " over ";
    printNumbers(p, getReduced());
  }
  p << " reads " << getReads() << " writes " << getWrites();
  if (getCompute())
    p << " computes " << getCompute();
  if (!getSums().empty()) {
    p << " sums [";
    llvm::interleaveComma(getSums(), p);
    p << ']';
  }
  if (!getOverwrites().empty()) {
    p << " overwrites ";
    printNumbers(p, getOverwrites());
  }
  p << (getMayFail() ? " may_fail>" : ">");
}

Attribute LoopsAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> space, reduced, overwrites;
  SmallVector<Type> sums;
  ArrayAttr reads, writes;
  Type compute;
  SMLoc at = parser.getCurrentLocation();
  auto numbers = [&](SmallVector<int64_t> &list) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                          [&] { return parser.parseInteger(list.emplace_back()); });
  };
  auto maps = [&](ArrayAttr list) {
    return llvm::all_of(list, [&](Attribute map) {
      return isa<AffineMapAttr>(map) && cast<AffineMapAttr>(map).getValue().getNumInputs() == space.size();
    });
  };
  if (parser.parseLess() || numbers(space) || (succeeded(parser.parseOptionalKeyword("over")) && numbers(reduced)) ||
      parser.parseKeyword("reads") || parser.parseAttribute(reads) || parser.parseKeyword("writes") ||
      parser.parseAttribute(writes) ||
      (succeeded(parser.parseOptionalKeyword("computes")) && parser.parseType(compute)) ||
      (succeeded(parser.parseOptionalKeyword("sums")) &&
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                      [&] { return parser.parseType(sums.emplace_back()); })) ||
      (succeeded(parser.parseOptionalKeyword("overwrites")) && numbers(overwrites)))
    return {};
  bool mayFail = succeeded(parser.parseOptionalKeyword("may_fail"));
  if (parser.parseGreater())
    return {};
  bool wellFormed =
      llvm::all_of(reads, [&](Attribute list) { return isa<ArrayAttr>(list) && maps(cast<ArrayAttr>(list)); });
  if (!wellFormed || !maps(writes) || overwrites.size() % 2 != 0) {
    parser.emitError(at) << "loops hold lists of affine maps of " << space.size()
                         << " dimensions, and pairs of a result and an input";
    return {};
  }
  return get(parser.getContext(), space, reduced, reads, writes, compute, sums, overwrites, mayFail);
}

static std::string allKinds() {
  std::string text;
  for (uint64_t kind = 0; kind <= getMaxEnumValForKernelKind(); ++kind)
    text += (kind == 0                              ? ""
             : kind == getMaxEnumValForKernelKind() ? " and "
                                                    : ", ") +
            stringifyKernelKind(static_cast<KernelKind>(kind)).str();
  return text;
}

YieldOp KernelOp::getYield() { return cast<YieldOp>(getBlock()->getTerminator()); }

/// wg.kernel map (%a = %x : tensor<4xf32>, ...) -> tensor<4xf32> loops<...> attributes {...} { body }
void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p << stringifyKernelKind(getKind());
  p << " (";
  llvm::interleaveComma(llvm::zip_equal(getBlock()->getArguments(), getInputs()), p, [&](auto pair) {
    auto [argument, input] = pair;
    p << argument << " = " << input << " : " << input.getType();
  });
  p << ')';
  p.printArrowTypeList(getResultTypes());
  if (LoopsAttr loops = getLoopsAttr()) {
    p << " loops";
    loops.print(p);
  }
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getKindAttrName(), getLoopsAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  std::string word;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Type> inputTypes;
  SMLoc at = parser.getCurrentLocation();
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&word))
    return failure();
  std::optional<KernelKind> kind = symbolizeKernelKind(word);
  if (!kind)
    return parser.emitError(start) << "is of kind '" << word << "'; the kinds are " << allKinds();
  Attribute loops;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     [&]() -> ParseResult {
                                       if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                                           parser.parseOperand(inputs.emplace_back()) ||
                                           parser.parseColonType(arguments.back().type))
                                         return failure();
                                       inputTypes.push_back(arguments.back().type);
                                       return success();
                                     }) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      (succeeded(parser.parseOptionalKeyword("loops")) && !(loops = LoopsAttr::parse(parser, {}))) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(inputs, inputTypes, at, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  for (StringAttr own : {getKindAttrName(result.name), getLoopsAttrName(result.name)})
    if (result.attributes.get(own))
      return parser.emitError(start) << "has its " << own.getValue() << " in front of its attributes, not among them";
  result.addAttribute(getKindAttrName(result.name), KernelKindAttr::get(parser.getContext(), *kind));
  if (loops)
    result.addAttribute(getLoopsAttrName(result.name), loops);
  return success();
}

LogicalResult KernelOp::verify() {
  // An op's verifier runs before those of the ops inside, whose attributes are asked for their maps below.
  for (Operation &op : *getBlock())
    if (failed(mlir::verify(&op, /*verifyRecursively=*/false)))
      return failure();
  if (getBlock()->getArgumentTypes() != TypeRange(getInputs().getTypes()))
    return emitOpError("has ") << getInputs().size() << " inputs and " << getBlock()->getNumArguments()
                               << " block arguments, which must agree in number and type";
  auto yield = dyn_cast_or_null<YieldOp>(getBlock()->empty() ? nullptr : &getBlock()->back());
  if (!yield)
    return emitOpError("must end with wg.yield");
  if (TypeRange(yield.getValues().getTypes()) != TypeRange(getResultTypes()))
    return emitOpError("yields ") << yield.getValues().getTypes() << " but has results " << getResultTypes();
  for (Operation &op : getBlock()->without_terminator())
    if (!isa<WGDialect>(op.getDialect()) || op.getNumRegions() != 0 || isa<WithBodies>(op))
      return op.emitOpError("is in a kernel, which holds only wg ops without regions, and no calls");
  // A kernel of sizes `?` becomes loops when they are known.
  auto isStatic = [](Type type) {
    return isa<RankedTensorType>(type) && cast<RankedTensorType>(type).hasStaticShape();
  };
  bool known = llvm::all_of(getBlock()->getArgumentTypes(), isStatic);
  for (Operation &op : *getBlock())
    known = known && llvm::all_of(op.getOperandTypes(), isStatic) && llvm::all_of(op.getResultTypes(), isStatic);
  LoopsAttr loops = getLoopsAttr();
  if (!known)
    return loops ? emitOpError("has loops, which are decided when all sizes are known") : success();
  if (failed(verifyLoops([](Operation *op) { return op->emitOpError(); })))
    return failure();
  if (!loops)
    return success();
  // Without it another kernel checks, which is decided again before machine code is made.
  LoopsAttr described = describedBy(*this, loops.getMayFail() && mayFail(&getBlock()->front()));
  return loops == described ? success() : emitOpError("has ") << loops << ", but its body is " << described;
}

LogicalResult KernelOp::verifyLoops(function_ref<InFlightDiagnostic(Operation *)> error) {
  Block &body = *getBlock();
  auto fail = [&](Operation *op) -> InFlightDiagnostic {
    return error(op) << "is in a kernel of kind " << stringifyKernelKind(getKind()) << ", ";
  };
  for (Operation &op : body.without_terminator())
    if (isa<ContractOp, Indexed, Structured, External>(op))
      for (Value operand : op.getOperands())
        if (!isa<BlockArgument>(operand))
          return fail(&op) << "and reads the result of " << operand.getDefiningOp()->getName()
                           << " from memory, where only inputs of the kernel lie";
  if (isOneOp()) {
    bool single = getKind() == KernelKind::single;
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
      if (getKind() != KernelKind::reduce)
        return fail(&op) << "which reduces nothing";
      if (main && (shapeOf(op.getOperand(0)) != shapeOf(main->getOperand(0)) ||
                   cast<Reduction>(op).getAxes() != cast<Reduction>(main).getAxes()))
        return fail(&op) << "whose reductions are of one shape over one set of axes";
      main = main ? main : &op;
    } else if (isa<ContractOp>(op)) {
      if (getKind() != KernelKind::contract || main)
        return fail(&op) << "which holds " << (main ? "one contraction" : "none");
      main = &op;
    } else if (!isa<Scalar, Indexed>(op) && !viewMapOf(&op)) {
      return fail(&op) << "which holds elementwise ops, views and ops whose element follows from its place";
    }
  }
  if (!main && getKind() != KernelKind::map)
    return error(*this) << "is of kind " << stringifyKernelKind(getKind()) << " and holds no "
                        << (getKind() == KernelKind::reduce ? "reduction" : "contraction");

  // Every value is computed at the point at which it is read.
  SpaceOfKernel space = spaceOfBody(*this);
  Places places(space.sizes, space.reduced, getContext());
  auto placed = [&](Operation *reader, Value operand) -> LogicalResult {
    if (!places.find(operand))
      return fail(reader) << "and reads " << operand.getType()
                          << ", which is the shape of neither its iteration space nor its rows";
    Places::Seen seen = places.trace(operand);
    Operation *computed = seen.root.getDefiningOp();
    if (!computed || isa<ConstantOp, Indexed>(computed))
      return success(); // in memory, or computed at any place
    std::optional<AffineMap> own = places.find(seen.root);
    if (!own || places.simplified(*own) != places.simplified(seen.map))
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

#include "ir/Kernel_enum.cpp.inc"
