#include "ir/Bridge.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace wg::runtime;
using RuntimeType = wg::runtime::TensorType; // mlir has a TensorType too

namespace wg::ir {

//===- Types ------------------------------------------------------------------------------------------------===//

Type elementTypeOf(MLIRContext *context, DType dtype) {
  switch (dtype) {
  case DType::f64: return Float64Type::get(context);
  case DType::f32: return Float32Type::get(context);
  case DType::bf16: return BFloat16Type::get(context);
  case DType::f16: return Float16Type::get(context);
  case DType::i64: return IntegerType::get(context, 64);
  case DType::i32: return IntegerType::get(context, 32);
  case DType::u8: return IntegerType::get(context, 8, IntegerType::Unsigned);
  case DType::boolean: return IntegerType::get(context, 1);
  }
  llvm_unreachable("every dtype has an element type");
}

RankedTensorType tensorTypeOf(MLIRContext *context, const RuntimeType &type) {
  return RankedTensorType::get(ArrayRef<int64_t>(type.shape.begin(), type.shape.size()),
                               elementTypeOf(context, type.dtype));
}

/// The dtype of an element type, if a wg value can have it.
static std::optional<DType> findDType(Type type) {
  if (type.isF64())
    return DType::f64;
  if (type.isF32())
    return DType::f32;
  if (type.isBF16())
    return DType::bf16;
  if (type.isF16())
    return DType::f16;
  if (type.isSignlessInteger(64) || type.isIndex())
    return DType::i64;
  if (type.isSignlessInteger(32))
    return DType::i32;
  if (type.isUnsignedInteger(8))
    return DType::u8;
  if (type.isSignlessInteger(1))
    return DType::boolean;
  return std::nullopt;
}

DType dtypeOf(Type elementType) { return *findDType(elementType); }

RuntimeType runtimeTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? RuntimeType{dtypeOf(tensor.getElementType()), Shape(tensor.getShape())} : RuntimeType{DType::i64, {}};
}

/// The dtype of a tensor that a wg value can be as far as its elements tell, or nothing.
static std::optional<DType> findTensorDType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding() || tensor.getElementType().isIndex())
    return std::nullopt;
  return findDType(tensor.getElementType());
}

bool isValueType(Type type) {
  std::optional<DType> dtype = findTensorDType(type);
  return dtype ? extentOf(*dtype, cast<RankedTensorType>(type).getShape()).ok() : type.isIndex();
}

std::string whyNoValueType(Type type) {
  if (std::optional<DType> dtype = findTensorDType(type); dtype && cast<RankedTensorType>(type).getRank() <= kMaxRank)
    if (auto extent = extentOf(*dtype, cast<RankedTensorType>(type).getShape()); !extent.ok())
      return extent.failure().message;
  return "no tensor of rank 8 at most of f64, f32, bf16, f16, i64, i32, ui8 or i1";
}

//===- Attributes -------------------------------------------------------------------------------------------===//

Attribute toAttribute(MLIRContext *context, const AttrValue &value, AttrKind kind) {
  Builder b(context);
  switch (kind) {
  case AttrKind::integer: return b.getI64IntegerAttr(std::get<int64_t>(value));
  case AttrKind::real: return b.getF64FloatAttr(std::get<double>(value));
  case AttrKind::dtype: return TypeAttr::get(elementTypeOf(context, std::get<DType>(value)));
  case AttrKind::ints:
    return b.getDenseI64ArrayAttr(ArrayRef(std::get<Ints>(value).begin(), std::get<Ints>(value).end()));
  case AttrKind::string: return b.getStringAttr(std::get<std::string>(value));
  case AttrKind::array: return elementsOf(context, std::get<Array>(value));
  case AttrKind::boolean: return b.getBoolAttr(std::get<bool>(value));
  }
  llvm_unreachable("every kind of attribute has a form");
}

AttrValue toAttrValue(Attribute attribute, AttrKind kind) {
  switch (kind) {
  case AttrKind::integer: return cast<IntegerAttr>(attribute).getInt();
  case AttrKind::real: return cast<FloatAttr>(attribute).getValueAsDouble();
  case AttrKind::dtype: return dtypeOf(cast<TypeAttr>(attribute).getValue());
  case AttrKind::ints: return Ints(std::span(cast<DenseI64ArrayAttr>(attribute).asArrayRef()));
  case AttrKind::string:
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute))
      return symbol.getValue().str();
    return cast<StringAttr>(attribute).getValue().str();
  case AttrKind::array: return arrayOf(cast<ElementsAttr>(attribute));
  case AttrKind::boolean: return cast<BoolAttr>(attribute).getValue();
  }
  llvm_unreachable("every kind of attribute has a form");
}

/// Whether toAttrValue takes `attribute`; text can hold any.
static bool isAttrOfKind(Attribute attribute, AttrKind kind) {
  switch (kind) {
  case AttrKind::integer: {
    auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
    return integer && integer.getType().isSignlessInteger(64);
  }
  case AttrKind::real: {
    auto real = dyn_cast_or_null<FloatAttr>(attribute);
    return real && real.getType().isF64();
  }
  case AttrKind::dtype: {
    auto type = dyn_cast_or_null<TypeAttr>(attribute);
    return type && !type.getValue().isIndex() && findDType(type.getValue());
  }
  case AttrKind::ints: {
    auto ints = dyn_cast_or_null<DenseI64ArrayAttr>(attribute);
    return ints && ints.size() <= kMaxRank;
  }
  case AttrKind::string: return isa_and_nonnull<StringAttr, FlatSymbolRefAttr>(attribute);
  case AttrKind::array: {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute);
    return elements && isValueType(elements.getType());
  }
  case AttrKind::boolean: return isa_and_nonnull<BoolAttr>(attribute);
  }
  return false;
}

static StringRef describe(AttrKind kind) {
  static constexpr const char *texts[] = {"an integer",
                                          "a number",
                                          "one of f64, f32, bf16, f16, i64, i32, ui8, i1",
                                          "a list of 8 integers at most",
                                          "a string",
                                          "a dense constant",
                                          "true or false"};
  return texts[static_cast<int>(kind)];
}

Array arrayOf(ElementsAttr value) {
  auto elements = cast<DenseElementsAttr>(value);
  Array array = Array::empty(dtypeOf(elements.getElementType()), Shape(elements.getType().getShape()));
  if (array.dtype() == DType::boolean) {
    llvm::copy(elements.getValues<bool>(), array.data<bool>());
    return array;
  }
  if (array.numBytes() == 0)
    return array;
  ArrayRef<char> raw = elements.getRawData();
  auto *bytes = array.data<char>();
  for (size_t offset = 0; offset < array.numBytes(); offset += raw.size())
    std::memcpy(bytes + offset, raw.data(), raw.size());
  return array;
}

DenseElementsAttr elementsOf(MLIRContext *context, const Array &array) {
  RankedTensorType type = tensorTypeOf(context, array.type);
  if (array.dtype() == DType::boolean)
    return DenseElementsAttr::get(type, ArrayRef<bool>(array.data<bool>(), array.numElements()));
  // One element stands for all where all are equal, bit for bit: a splat may be of any size.
  size_t size = sizeOf(array.dtype()), bytes = array.numBytes();
  const char *data = array.data<char>();
  bool splat = bytes > size && std::memcmp(data, data + size, bytes - size) == 0;
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data, splat ? size : bytes));
}

//===- Ops --------------------------------------------------------------------------------------------------===//

std::optional<OpId> opIdOf(Operation *op) {
  static const auto &ids = *new DenseMap<TypeID, OpId>([] { // never destroyed: see Lifetime.h
    DenseMap<TypeID, OpId> map;
#define WG_OP(name, Class) map[TypeID::get<Class>()] = OpId::name;
#include "runtime/OpIds.inc"
#undef WG_OP
    return map;
  }());
  auto found = ids.find(op->getName().getTypeID());
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

Attrs attrsOf(Operation *op) {
  const OpRecord &record = recordOf(*opIdOf(op));
  if (record.attrs.empty())
    return {};
  std::vector<AttrValue> values;
  for (const AttrRecord &attr : record.attrs)
    values.push_back(toAttrValue(*op->getInherentAttr(attr.name), attr.kind));
  return Attrs(std::move(values));
}

/// Emits a failure as a diagnostic, its remedy as a note.
static LogicalResult emit(Location loc, StringRef opName, const Failure &failure) {
  InFlightDiagnostic diagnostic = emitError(loc) << "'wg." << opName << "' op " << failure.message;
  if (!failure.remedy.empty())
    diagnostic.attachNote() << "try: " << failure.remedy;
  return diagnostic;
}

/// Result types of an op, on failure a diagnostic. A size is an index here and an `i64[]` in the runtime.
static LogicalResult inferTypes(MLIRContext *context, std::optional<Location> loc, OpId id, ValueRange operands,
                                const Attrs &attrs, SmallVectorImpl<Type> &types) {
  SmallVector<RuntimeType, 8> operandTypes;
  for (Value operand : operands) {
    if (!isValueType(operand.getType()))
      return emitOptionalError(loc, "'wg.", recordOf(id).name, "' op operand ", operandTypes.size(), " is ",
                               operand.getType(), ", ", whyNoValueType(operand.getType()));
    operandTypes.push_back(runtimeTypeOf(operand.getType()));
  }
  TypeList results;
  Status status = runtime::inferTypes(id, operandTypes, attrs, results);
  if (!status.ok())
    return loc ? emit(*loc, recordOf(id).name, status.failure()) : failure();
  for (int i = 0; i < results.count; ++i)
    types.push_back(id == OpId::dim || id == OpId::size ? Type(IndexType::get(context))
                                                        : tensorTypeOf(context, results[i]));
  return success();
}

LogicalResult inferByShapeRule(MLIRContext *context, std::optional<Location> location, OpId id, ValueRange operands,
                               function_ref<Attribute(StringRef)> attribute, SmallVectorImpl<Type> &types) {
  std::vector<AttrValue> values;
  const OpRecord &record = recordOf(id);
  for (const AttrRecord &attr : record.attrs) {
    Attribute value = attribute(attr.name);
    if (!isAttrOfKind(value, attr.kind))
      return emitOptionalError(location, "'wg.", record.name, "' op attribute ", attr.name, " must be ",
                               describe(attr.kind));
    values.push_back(toAttrValue(value, attr.kind));
  }
  // Text may hold fewer operands than the rule reads.
  if (static_cast<int>(operands.size()) < record.numOperands)
    return emitOptionalError(location, "'wg.", record.name, "' op has ", operands.size(), " operands, needs ",
                             record.numOperands);
  return inferTypes(context, location, id, operands, values.empty() ? Attrs() : Attrs(std::move(values)), types);
}

FailureOr<Operation *> buildOp(OpBuilder &b, Location loc, OpId id, ValueRange operands, const Attrs &attrs) {
  MLIRContext *context = b.getContext();
  const WGDialect::OpNames &names = context->getLoadedDialect<WGDialect>()->namesOf(static_cast<size_t>(id));
  OperationState state(loc, names.op);
  if (failed(inferTypes(context, loc, id, operands, attrs, state.types)))
    return failure();
  state.addOperands(operands);
  for (size_t i = 0; i < names.attrs.size(); ++i)
    state.addAttribute(names.attrs[i], toAttribute(context, attrs[i], recordOf(id).attrs[i].kind));
  return b.create(state);
}

//===- Places -----------------------------------------------------------------------------------------------===//

Location locationOf(MLIRContext *context, const Where &where) {
  if (!where)
    return UnknownLoc::get(context);
  Location place = FileLineColLoc::get(context, where.file, where.line, where.column);
  return where.function && *where.function ? NameLoc::get(StringAttr::get(context, where.function), place) : place;
}

/// Finds the first place in the user's source below `location`, and the innermost name around it.
static void findPlace(Location location, FileLineColLoc &place, StringAttr &name) {
  if (auto fileLoc = dyn_cast<FileLineColLoc>(location)) {
    place = fileLoc;
  } else if (auto nameLoc = dyn_cast<NameLoc>(location)) {
    name = nameLoc.getName();
    findPlace(nameLoc.getChildLoc(), place, name);
  } else if (auto callLoc = dyn_cast<CallSiteLoc>(location)) {
    findPlace(callLoc.getCallee(), place, name);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (!place)
        findPlace(part, place, name);
  }
}

std::string whereOf(Location location) {
  FileLineColLoc place;
  StringAttr name;
  findPlace(location, place, name);
  if (!place)
    return {};
  std::string file = place.getFilename().str(), function = name ? name.str() : std::string();
  return toString(Where{file.c_str(), function.c_str(), place.getLine(), place.getColumn()});
}

} // namespace wg::ir

// inferReturnTypes of every op whose types follow from the shape rule.
namespace wg::ir {
#include "ir/OpBridge.inc"
} // namespace wg::ir
