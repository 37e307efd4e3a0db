#include "ir/Sizes.h"

#include "ir/Bridge.h"

using namespace mlir;

namespace wg::ir {

/// The index operand behind the `?` of an open attribute at `axis`; `attribute` is its name. The
/// operands are the last ones, in order.
static Value sizeOperand(Operation *op, StringRef attribute, int64_t axis) {
  const runtime::OpRecord &record = runtime::recordOf(*opIdOf(op));
  unsigned operand = static_cast<unsigned>(record.numOperands);
  for (const runtime::AttrRecord &attr : record.attrs) {
    if (!attr.open)
      continue;
    ArrayRef<int64_t> sizes = cast<DenseI64ArrayAttr>(*op->getInherentAttr(attr.name)).asArrayRef();
    bool here = attribute == attr.name;
    operand += llvm::count_if(here ? sizes.take_front(axis) : sizes, ShapedType::isDynamic);
    if (here)
      return operand < op->getNumOperands() ? op->getOperand(operand) : Value();
  }
  return {};
}

std::optional<SizeSource> sizeSource(Value x, int64_t axis) {
  Operation *op = x.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto of = [](Value value, int64_t axis = -1) {
    return value ? std::optional(SizeSource{value, axis}) : std::nullopt;
  };
  if (axis < 0) {
    if (auto dim = dyn_cast<DimOp>(op))
      return of(dim.getX(), dim.getAxis());
    return std::nullopt;
  }
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return of(transpose.getX(), transpose.getPermutation()[axis]);
  if (isa<Scalar>(op))
    return of(op->getOperand(0), axis);
  if (auto reduction = dyn_cast<Reduction>(op)) {
    for (int64_t reduced : reduction.getAxes()) // ascending
      axis += reduced <= axis;
    return of(op->getOperand(0), axis);
  }
  if (auto argmax = dyn_cast<ArgmaxOp>(op))
    return of(argmax.getX(), axis + (static_cast<int64_t>(argmax.getAxis()) <= axis));
  if (auto contract = dyn_cast<ContractOp>(op)) {
    if (int64_t relation = contract.relationOf(axis); relation >= 0)
      return of(sizeOperand(op, "related", relation));
    char letter = contract.lettersOfC()[axis];
    size_t inA = contract.lettersOfA().find(letter);
    return inA != StringRef::npos ? of(contract.getA(), inA) : of(contract.getB(), contract.lettersOfB().find(letter));
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    int64_t rank = gather.getIndices().getType().getRank();
    return axis < rank ? of(gather.getIndices(), axis)
                       : of(gather.getX(), axis - rank + 1 + static_cast<int64_t>(gather.getBatchDims()));
  }
  if (auto solve = dyn_cast<TriangularSolveOp>(op))
    return of(solve.getB(), axis);
  if (isa<ReverseOp, CumsumOp, CumprodOp, LogcumsumexpOp, CumargmaxOp, LinearRecurrenceOp, IndexAddOp, IndexSetOp,
          IndexMaxOp, IndexMinOp, DynamicUpdateSliceOp, FirstOccurrenceOp>(op))
    return of(op->getOperand(0), axis);
  if (auto sort = dyn_cast<ArgsortOp>(op)) // with a count, the last axis is static
    return of(sort.getX(), axis);
  if (auto search = dyn_cast<SearchsortedOp>(op))
    return of(search.getValues(), axis);
  if (auto solve = dyn_cast<LuSolveOp>(op))
    return of(solve.getB(), axis);
  if (isa<CholeskyOp>(op))
    return of(op->getOperand(0), axis);
  if (isa<LuOp, QrOp, EighOp, SvdOp, PinvOp>(op)) { // of m, n and the smaller of them only what is in front is a's own
    int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
    if (isa<PinvOp>(op) && axis >= rank - 2)
      return of(op->getOperand(0), 2 * rank - 3 - axis);
    bool square = isa<LuOp, EighOp>(op) && axis == cast<RankedTensorType>(op->getResult(0).getType()).getRank() - 1;
    return axis < rank - 2 || square ? of(op->getOperand(0), axis) : std::nullopt;
  }
  if (auto oneHot = dyn_cast<OneHotOp>(op)) // the last axis is static
    return of(oneHot.getX(), axis);
  if (auto concat = dyn_cast<ConcatOp>(op))
    return axis == static_cast<int64_t>(concat.getAxis()) ? std::nullopt : of(concat.getXs().front(), axis);
  if (auto slice = dyn_cast<SliceOp>(op)) {
    bool fromStart = slice.getStarts()[axis] == 0 && slice.getStrides()[axis] == 1;
    return fromStart && ShapedType::isDynamic(slice.getLimits()[axis]) ? of(sizeOperand(op, "limits", axis))
                                                                       : std::nullopt;
  }
  if (auto pad = dyn_cast<PadOp>(op))
    return pad.getLow()[axis] == 0 && pad.getHigh()[axis] == 0 && pad.getInterior()[axis] == 0 ? of(pad.getX(), axis)
                                                                                               : std::nullopt;
  if (isa<RandomUniformOp, RandomBitsOp>(op)) { // a lane for each key
    auto key = cast<RankedTensorType>(op->getOperand(0).getType());
    return axis < key.getRank() - 1 ? of(op->getOperand(0), axis)
                                    : of(sizeOperand(op, "shape", axis - key.getRank() + 1));
  }
  if (opIdOf(op) && op->getInherentAttr("shape"))
    return of(sizeOperand(op, "shape", axis));
  return std::nullopt;
}

//===- Open sizes of a program ------------------------------------------------------------------------------===//

/// Calls f for each axis of x that is `?`, or with -1 if x is an index.
static void forOpen(Value x, function_ref<void(int64_t)> f) {
  if (x.getType().isIndex())
    return f(-1);
  if (auto type = dyn_cast<RankedTensorType>(x.getType()))
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      if (type.isDynamicDim(axis))
        f(axis);
}

void OpenSizes::argument(Value x, int64_t number) {
  forOpen(x, [&](int64_t axis) { origins_[{x, axis}] = {number, axis}; });
}

void OpenSizes::enter(Value inner, Value outer) {
  forOpen(inner, [&](int64_t axis) { origins_[{inner, axis}] = of(outer, axis).value_or(Origin()); });
}

void OpenSizes::results(Operation *op) {
  for (Value result : op->getResults())
    forOpen(result, [&](int64_t axis) {
      std::optional<SizeSource> source = sizeSource(result, axis);
      origins_[{result, axis}] = (source ? of(source->value, source->axis) : std::nullopt).value_or(Origin());
    });
}

std::optional<OpenSizes::Origin> OpenSizes::of(Value x, int64_t axis) const {
  auto at = origins_.find({x, axis});
  return at == origins_.end() ? std::nullopt : std::optional(at->second);
}

static std::string text(int64_t size) { return ShapedType::isDynamic(size) ? "?" : std::to_string(size); }

std::string describe(OpenSizes::Origin origin, int64_t size, ArrayRef<std::string> names) {
  if (origin.argument < 0)
    return "a computed size is " + text(size);
  std::string name = origin.argument < static_cast<int64_t>(names.size())
                         ? names[origin.argument]
                         : "argument " + std::to_string(origin.argument);
  return origin.axis < 0 ? name + " is " + text(size)
                         : name + " has size " + text(size) + " on axis " + std::to_string(origin.axis);
}

std::string repeatsOpenSize(OpenSizes::Origin origin, int64_t needed, const std::string &place,
                            ArrayRef<std::string> names) {
  return describe(origin, 1, names) + ", and " +
         (ShapedType::isDynamic(needed) ? "a size that need not be 1" : text(needed)) + " is needed" +
         (place.empty() ? "" : " at " + place) + ": a size that the program leaves open is not repeated";
}

} // namespace wg::ir
