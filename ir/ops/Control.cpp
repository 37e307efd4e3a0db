// Programs within programs: calls, conditions, loops.
#include "ir/Calls.h"
#include "ir/Dialect.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::ir {

static SmallVector<FlatSymbolRefAttr> namesOf(ArrayAttr list) {
  return llvm::map_to_vector(list, [](Attribute name) { return cast<FlatSymbolRefAttr>(name); });
}
static ArrayAttr listOf(MLIRContext *context, ArrayRef<FlatSymbolRefAttr> names) {
  return ArrayAttr::get(context, SmallVector<Attribute>(names.begin(), names.end()));
}

/// Whether the module has a function of this name and type; `says` begins the message.
static LogicalResult checkFunction(Operation *op, FlatSymbolRefAttr name, TypeRange inputs, TypeRange results,
                                   SymbolTableCollection &symbols, const Twine &says) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!callee)
    return op->emitOpError() << says << " @" << name.getValue() << ", which is not a function of this module";
  FunctionType type = callee.getFunctionType();
  if (TypeRange(type.getInputs()) == inputs && TypeRange(type.getResults()) == results)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError(isa<CallOp>(op) ? "is of type " : "needs a function of type ")
                                  << FunctionType::get(op->getContext(), inputs, results) << ", but @"
                                  << name.getValue() << " is of type " << type;
  diagnostic.attachNote(callee.getLoc()) << "declared here";
  return diagnostic;
}

//===- call -------------------------------------------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkFunction(*this, getCalleeAttr(), getOperandTypes(), getResultTypes(), symbols, "calls");
}

SmallVector<FlatSymbolRefAttr> CallOp::bodyNames() { return {getCalleeAttr()}; }
void CallOp::setBodyNames(ArrayRef<FlatSymbolRefAttr> names) { setCalleeAttr(names.front()); }
SmallVector<Type> CallOp::bodyArguments(unsigned) { return SmallVector<Type>(getOperandTypes()); }

//===- cond -------------------------------------------------------------------------------------------------===//

LogicalResult CondOp::verify() {
  auto selector = dyn_cast<RankedTensorType>(getSelector().getType());
  if (!selector || selector.getRank() != 0 ||
      !(selector.getElementType().isSignlessInteger(1) || selector.getElementType().isSignlessInteger(32) ||
        selector.getElementType().isSignlessInteger(64)))
    return emitOpError("has a selector of type ")
           << getSelector().getType() << "; it is a scalar: a bool, or the number of a branch (i32, i64)";
  if (getBranches().empty())
    return emitOpError("has no branch");
  if (selector.getElementType().isSignlessInteger(1) && getBranches().size() != 2)
    return emitOpError("has ") << getBranches().size() << " branches for a bool, which chooses among two";
  for (Type type : getResultTypes())
    if (!isa<RankedTensorType>(type))
      return emitOpError("has a result of type ") << type << "; branches return tensors";
  return success();
}

LogicalResult CondOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (FlatSymbolRefAttr name : bodyNames())
    if (failed(checkFunction(*this, name, getInputs().getTypes(), getResultTypes(), symbols, "has as a branch")))
      return failure();
  return success();
}

SmallVector<FlatSymbolRefAttr> CondOp::bodyNames() { return namesOf(getBranches()); }
void CondOp::setBodyNames(ArrayRef<FlatSymbolRefAttr> names) { setBranchesAttr(listOf(getContext(), names)); }
SmallVector<Type> CondOp::bodyArguments(unsigned) { return SmallVector<Type>(getInputs().getTypes()); }

//===- host -------------------------------------------------------------------------------------------------===//

SmallVector<StringRef> HostOp::statuses() { return {getMessage()}; }

//===- loop -------------------------------------------------------------------------------------------------===//

LogicalResult LoopOp::verify() {
  size_t numBodies = getBodies().size();
  if (numBodies != 1 && numBodies != 2)
    return emitOpError("has ") << numBodies << " functions; it has a body, and a condition at most";
  auto count = [&](uint64_t value, uint64_t most) { return value <= most; };
  uint64_t limited = getLimited(), carried = getCarried(), scanned = getScanned(), operands = (*this)->getNumOperands(),
           results = (*this)->getNumResults();
  if (getLength() < uint64_t(0) || static_cast<int64_t>(getLength()) < -1)
    return emitOpError("has length ") << static_cast<int64_t>(getLength()) << "; it is -1 or the most turns";
  if (!count(carried, operands) || !count(scanned, operands) || limited + carried + scanned > operands ||
      carried + hasCondition() > results)
    return emitOpError("carries ") << carried << " values and scans " << scanned << ", of " << operands
                                   << " operands and for " << results << " results";
  auto isCount = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0 && tensor.getElementType().isSignlessInteger(64);
  };
  if (limited && !isCount(getLimit().getType()))
    return emitOpError("has a limit of type ") << getLimit().getType() << "; it is tensor<i64>";
  if (hasCondition() && !isCount(getTurns().getType()))
    return emitOpError("returns ") << getTurns().getType() << " as the number of its turns; it is tensor<i64>";
  if (hasCondition() && getReversed())
    return emitOpError(
        "has a condition and is reversed; with a condition, nobody knows its last turn before it is there");
  int64_t length = static_cast<int64_t>(getLength());
  if (length < 0 && scanned == 0 && !hasCondition() && !limited)
    return emitOpError("never ends: it has no length, no limit, no condition, and scans nothing");
  if (static_cast<int64_t>(getCheckpoints()) < 0)
    return emitOpError("keeps ") << static_cast<int64_t>(getCheckpoints()) << " checkpoints; it is 0 or more";
  if (hasRoom() && (length < 0 || scanned > 0 || (!hasCondition() && !limited)))
    return emitOpError(
        "has room for a number of turns: such a loop has a length, scans nothing, and has a condition or "
        "a limit");
  int64_t rows = length < 0 ? ShapedType::kDynamic : length;
  auto isStack = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() > 0 && tensor.getDimSize(0) == rows;
  };
  for (Type type : getXs().getTypes())
    if (!isStack(type))
      return emitOpError("scans ") << type
                                   << "; a tensor that is scanned has as many rows as the loop's length, or `?`";
  for (Type type : getStacked().getTypes())
    if (!isStack(type))
      return emitOpError("stacks ") << type << "; a stacked result has as many rows as the loop's length, or `?`";
  if (getInits().getTypes() != getFinals().getTypes())
    return emitOpError("carries values of types ")
           << getInits().getTypes() << " and returns " << getFinals().getTypes();
  for (Type type : getInits().getTypes())
    if (!isa<RankedTensorType>(type))
      return emitOpError("carries a value of type ") << type << "; it carries tensors";
  return success();
}

SmallVector<Type> LoopOp::bodyArguments(unsigned i) {
  SmallVector<Type> types(getInits().getTypes());
  if (i == 0)
    for (Type type : getXs().getTypes())
      types.push_back(rowTypeOf(type));
  llvm::append_range(types, getInvariants().getTypes());
  return types;
}

LogicalResult LoopOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<FlatSymbolRefAttr> names = bodyNames();
  SmallVector<Type> results(getFinals().getTypes());
  for (Type type : getStacked().getTypes())
    results.push_back(rowTypeOf(type));
  if (failed(checkFunction(*this, names[0], bodyArguments(0), results, symbols, "has as its body")))
    return failure();
  Type predicate = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  return hasCondition() ? checkFunction(*this, names[1], bodyArguments(1), predicate, symbols, "has as its condition")
                        : success();
}

//===- rewind -----------------------------------------------------------------------------------------------===//

LogicalResult RewindOp::verify() {
  uint64_t left = (*this)->getNumOperands();
  bool fits =
      getBodies().size() == 2 && static_cast<int64_t>(getCheckpoints()) > 0 && getCarried() <= (*this)->getNumResults();
  for (uint64_t part :
       {uint64_t(getLimited()), getStated(), getStepped(), getHeld(), getCarried(), uint64_t(getScanned())}) {
    fits &= part <= left;
    left -= fits ? part : 0;
  }
  for (int64_t state : getStates())
    fits &= state >= -1 && state < static_cast<int64_t>(getStated());
  return fits ? success() : emitOpError("has numbers of states, rows and values that are not those of its operands");
}

SmallVector<FlatSymbolRefAttr> RewindOp::bodyNames() { return namesOf(getBodies()); }
void RewindOp::setBodyNames(ArrayRef<FlatSymbolRefAttr> names) { setBodiesAttr(listOf(getContext(), names)); }
SmallVector<Type> RewindOp::bodyArguments(unsigned i) {
  SmallVector<Type> types;
  auto add = [&](auto values) { llvm::append_range(types, values.getTypes()); };
  auto addRows = [&](auto values) {
    for (Value value : values)
      types.push_back(rowTypeOf(value.getType()));
  };
  if (i == 0) {
    add(getFirstState()), addRows(getSteps()), add(getHeldValues());
    return types;
  }
  add(getInits());
  size_t next = 0;
  for (int64_t state : getStates())
    types.push_back(state < 0 ? rowTypeOf(getXs()[next++].getType())
                              : Type(getFirstState()[static_cast<size_t>(state)].getType()));
  add(getInvariants());
  return types;
}

SmallVector<FlatSymbolRefAttr> LoopOp::bodyNames() { return namesOf(getBodies()); }
void LoopOp::setBodyNames(ArrayRef<FlatSymbolRefAttr> names) { setBodiesAttr(listOf(getContext(), names)); }

} // namespace wg::ir
