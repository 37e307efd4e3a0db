#include "codegen/VerifyLowered.h"

#include "codegen/EmitProgram.h"
#include "codegen/Jit.h"
#include "codegen/emit/Order.h"
#include "ir/Program.h"
#include "runtime/Extent.h"
#include "runtime/External.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace wg::codegen {

namespace {

constexpr llvm::StringLiteral kParallelFor = "wg_parallel_for";
/// The longest vector: a few registers of bytes.
constexpr int64_t kMaxLanes = 1024;

/// What the emitters write; anything else may be an op whose way to machine code ends in an assertion of MLIR or LLVM.
bool isEmitted(Operation *op) {
  // clang-format off
  return isa<func::FuncOp, func::ReturnOp, func::CallOp, func::ConstantOp, scf::ConditionOp, scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, cf::BranchOp, cf::CondBranchOp,
             arith::AddFOp, arith::AddIOp, arith::AndIOp, arith::BitcastOp, arith::CmpFOp, arith::CmpIOp, arith::ConstantOp, arith::DivFOp,
             arith::DivSIOp, arith::DivUIOp, arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp, arith::FPToSIOp, arith::FPToUIOp, arith::IndexCastOp,
             arith::IndexCastUIOp, arith::MaxSIOp, arith::MaxUIOp, arith::MaximumFOp, arith::MaxNumFOp, arith::MinSIOp, arith::MinUIOp,
             arith::MinimumFOp, arith::MinNumFOp, arith::MulFOp, arith::MulIOp, arith::MulUIExtendedOp, arith::NegFOp, arith::OrIOp, arith::RemFOp, arith::RemSIOp,
             arith::RemUIOp, arith::SIToFPOp, arith::SelectOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::SubFOp, arith::SubIOp,
             arith::TruncFOp, arith::TruncIOp, arith::UIToFPOp, arith::XOrIOp,
             math::AbsFOp, math::AbsIOp, math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::AtanOp, math::Atan2Op, math::AtanhOp,
             math::CbrtOp, math::CeilOp, math::CopySignOp, math::CosOp, math::CoshOp, math::ErfOp, math::ErfcOp, math::ExpOp, math::Exp2Op,
             math::ExpM1Op, math::FloorOp, math::FmaOp, math::LogOp, math::Log10Op, math::Log1pOp, math::Log2Op, math::PowFOp, math::RoundEvenOp,
             math::RsqrtOp, math::SinOp, math::SinhOp, math::SqrtOp, math::TanOp, math::TanhOp, math::TruncOp,
             vector::BroadcastOp, vector::CreateMaskOp, vector::ExtractOp, vector::FMAOp, vector::FromElementsOp, vector::InsertOp,
             vector::ReductionOp, vector::ShuffleOp, vector::StepOp,
             LLVM::AddressOfOp, LLVM::AllocaOp, LLVM::CallIntrinsicOp, LLVM::ConstantOp, LLVM::FMAOp, LLVM::GEPOp, LLVM::GlobalOp, LLVM::ICmpOp, LLVM::LoadOp, LLVM::MaskedLoadOp,
             LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter, LLVM::MemcpyOp, LLVM::MemsetOp, LLVM::Prefetch, LLVM::StoreOp>(op);
  // clang-format on
}

bool isScalar(Type type) {
  return type.isIndex() || type.isF32() || type.isF64() || type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64) || type.isSignlessInteger(16);
}
bool isPointer(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  return pointer && pointer.getAddressSpace() == 0;
}
/// What a value of an emitted op can be. Vectors of pointers are the addresses of elements that lie apart.
bool isEmitted(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable() && vector.getNumElements() <= kMaxLanes &&
           (isScalar(vector.getElementType()) || isPointer(vector.getElementType()));
  return isScalar(type) || isPointer(type);
}

/// A float cast to an integer with saturation, scalar or lane by lane, is the one intrinsic that the
/// emitters name (ir/ops/Cast.cpp).
LogicalResult checkIntrinsic(LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
  auto lanes = [](Type type) { return isa<VectorType>(type) ? cast<VectorType>(type).getNumElements() : 0; };
  if ((name != "llvm.fptosi.sat" && name != "llvm.fptoui.sat") || call.getArgs().size() != 1 ||
      !call.getOpBundleOperands().empty() || call->getNumResults() != 1)
    return call.emitOpError("calls ") << name
                                      << "; the emitters call llvm.fptosi.sat and llvm.fptoui.sat alone, on one value";
  Type from = call.getArgs()[0].getType(), to = call->getResult(0).getType();
  if (!isa<FloatType>(getElementTypeOrSelf(from)) || !getElementTypeOrSelf(to).isSignlessInteger() ||
      lanes(from) != lanes(to))
    return call.emitOpError("is not a cast of ") << from << " to " << to;
  return success();
}

/// What MLIR does not compare: addresses have the lanes of their index; what is read or written under a mask has those
/// of the mask, and the type of what is taken where the mask is not set.
LogicalResult checkLanes(Operation *op) {
  auto lanes = [](Type type) { return isa<VectorType>(type) ? cast<VectorType>(type).getNumElements() : 0; };
  auto agree = [&](Type a, Type b) -> LogicalResult {
    return lanes(a) == lanes(b) ? success()
                                : op->emitOpError("has the types ") << a << " and " << b << ", of different lanes";
  };
  if (auto address = dyn_cast<LLVM::GEPOp>(op)) {
    Type index = address.getDynamicIndices().empty() ? IntegerType::get(op->getContext(), 64)
                                                     : address.getDynamicIndices()[0].getType();
    return isPointer(address.getBase().getType()) ? agree(index, address.getType())
                                                  : op->emitOpError("steps from ")
                                                        << address.getBase().getType()
                                                        << "; the emitters step from one pointer";
  }
  auto passes = [&](ValueRange values) -> LogicalResult {
    bool fits = values.size() == 1 && values[0].getType() == op->getResult(0).getType();
    return fits ? success()
                : op->emitOpError("takes one value of the type ")
                      << op->getResult(0).getType() << " where the mask is not set";
  };
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    return failed(agree(load.getMask().getType(), load.getType())) ? failure() : passes(load.getPassThru());
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return agree(store.getMask().getType(), store.getValue().getType());
  if (auto gather = dyn_cast<LLVM::masked_gather>(op))
    return failed(agree(gather.getMask().getType(), gather.getType())) ? failure() : passes(gather.getPassThru());
  if (auto scatter = dyn_cast<LLVM::masked_scatter>(op))
    return agree(scatter.getMask().getType(), scatter.getValue().getType());
  return success();
}

/// Attributes of the llvm dialect's ops: those that the emitters set, with values that LLVM takes.
LogicalResult checkAttributes(Operation *op) {
  static const llvm::StringSet<> harmless{"elem_type",
                                          "rawConstantIndices",
                                          "noWrapFlags",
                                          "global_name",
                                          "sym_name",
                                          "global_type",
                                          "constant",
                                          "linkage",
                                          "value",
                                          "dso_local",
                                          "isVolatile",
                                          "ordering",
                                          "operandSegmentSizes",
                                          "op_bundle_sizes",
                                          "visibility_",
                                          "alignment",
                                          "addr_space",
                                          "hint",
                                          "rw",
                                          "cache",
                                          "unnamed_addr",
                                          "intrin",
                                          "fastmathFlags",
                                          "predicate"};
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName();
    if (!harmless.contains(name))
      return op->emitOpError("has the attribute ") << name << ", which the emitters do not write";
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (name == "alignment" &&
        !(number && number.getValue().getActiveBits() <= 13 && llvm::isPowerOf2_64(number.getValue().getZExtValue())))
      return op->emitOpError("has the alignment ") << attribute.getValue() << "; it is a power of two, 4096 at most";
    if ((name == "ordering" || name == "addr_space" || name == "visibility_") &&
        !(number && number.getValue().isZero()))
      return op->emitOpError("has ") << name << " " << attribute.getValue() << ", which the emitters do not write";
  }
  if (auto address = dyn_cast<LLVM::GEPOp>(op);
      address &&
      !(isScalar(address.getElemType()) && !address.getElemType().isIndex() && address.getIndices().size() == 1))
    return op->emitOpError("steps through ")
           << address.getElemType() << "; the emitters step by one index over scalars";
  if (auto compare = dyn_cast<LLVM::ICmpOp>(op);
      compare && !(isPointer(compare.getLhs().getType()) && compare.getPredicate() == LLVM::ICmpPredicate::eq))
    return op->emitOpError("compares ") << compare.getLhs().getType()
                                        << "; the emitters ask whether two pointers are equal";
  if (auto prefetch = dyn_cast<LLVM::Prefetch>(op);
      prefetch && (prefetch.getRw() > 1 || prefetch.getHint() > 3 || prefetch.getCache() > 1))
    return op->emitOpError("has rw ") << prefetch.getRw() << ", hint " << prefetch.getHint() << " and cache "
                                      << prefetch.getCache() << "; at most 1, 3 and 1 are known";
  if (failed(checkLanes(op)))
    return failure();
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op); call && failed(checkIntrinsic(call)))
    return failure();
  if (auto local = dyn_cast<LLVM::AllocaOp>(op)) {
    APInt count;
    bool isNumber = isa<FloatType>(local.getElemType());
    if (!(isPointer(local.getElemType()) || isNumber) || !matchPattern(local.getArraySize(), m_ConstantInt(&count)) ||
        count.getActiveBits() > (isNumber ? 13 : 20))
      return op->emitOpError("holds pointers, at most 2^20 of them, or floats, less than 2^13");
  }
  return success();
}

/// Constant bytes of this module alone.
LogicalResult checkGlobal(LLVM::GlobalOp global) {
  auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
  auto bytes = dyn_cast_or_null<StringAttr>(global.getValueOrNull());
  if (!type || !type.getElementType().isSignlessInteger(8) || !bytes ||
      bytes.getValue().size() != type.getNumElements() || !global.getConstant() ||
      global.getLinkage() != LLVM::Linkage::Internal || !global.getInitializerRegion().empty())
    return global.emitOpError(
        "is not an internal constant array of bytes with its text, which is all that the emitters write");
  return success();
}

LogicalResult checkFunction(func::FuncOp function, StringRef entry) {
  if (function.getArgAttrsAttr() || function.getResAttrsAttr())
    return function.emitOpError("has attributes of arguments or results, which the emitters do not write");
  for (NamedAttribute attribute : function->getDiscardableAttrs())
    if (attribute.getName() != kTurnsAttr && attribute.getName() != kPartAttr &&
        (function.getName() != entry || !attribute.getName().getValue().starts_with("wg.")))
      return function.emitOpError("has the attribute ") << attribute.getName() << ", which the emitters do not write";
  if (function.getName() != entry && !function.isPrivate())
    return function.emitOpError("is public; of a lowered program only the entry @") << entry << " is";
  if (!function.isDeclaration()) {
    if (isLibrarySymbol(function.getName()) || function.getName() == kParallelFor ||
        runtime::findRoutine(function.getName()))
      return function.emitOpError("has the name of a function that compiled code calls");
    return success();
  }
  Builder b(function.getContext());
  Type pointer = LLVM::LLVMPointerType::get(function.getContext());
  Type parallelFor = b.getFunctionType({b.getI64Type(), b.getFunctionType({pointer, b.getI64Type()}, {}), pointer}, {});
  if (runtime::findRoutine(function.getName())) {
    Type routine = b.getFunctionType({pointer, pointer, pointer}, {b.getI32Type()});
    return function.getFunctionType() == routine ? success()
                                                 : function.emitOpError("is declared with the type ")
                                                       << function.getFunctionType() << "; a routine is of type "
                                                       << routine;
  }
  if (function.getName() != kParallelFor || function.getFunctionType() != parallelFor)
    return function.emitOpError("is declared only; of functions outside of itself a lowered program names the "
                                "runtime's routines and ")
           << kParallelFor << " alone, of type " << parallelFor;
  return success();
}

LogicalResult checkOp(Operation *op) {
  if (!isEmitted(op))
    return op->emitOpError("is not an op that the emitters write");
  if (auto function = dyn_cast<func::FuncOp>(op); function && function.isDeclaration())
    return success();
  bool isConstant = isa<func::ConstantOp>(op);
  for (Type type : op->getResultTypes())
    if (!isEmitted(type) && !(isConstant && isa<FunctionType>(type)))
      return op->emitOpError("has the type ") << type << ", which the emitters do not use";
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (!isEmitted(type))
          return op->emitOpError("has a block argument of type ") << type << ", which the emitters do not use";
  if (isa<LLVM::LLVMDialect>(op->getDialect()))
    return checkAttributes(op);
  if (!isa<func::FuncOp>(op) && !op->getDiscardableAttrDictionary().empty())
    return op->emitOpError("has attributes that the emitters do not write");
  return success();
}

/// The byte offset of an address computed from `base`: `base` itself, or one GEP by a constant number of bytes.
std::optional<int64_t> constantOffset(Operation *user) {
  auto address = dyn_cast<LLVM::GEPOp>(user);
  if (!address || !address.getElemType().isSignlessInteger(8) || address.getIndices().size() != 1)
    return std::nullopt;
  auto index = address.getIndices()[0];
  if (auto constant = dyn_cast<IntegerAttr>(index))
    return constant.getInt();
  APInt value;
  if (matchPattern(cast<Value>(index), m_ConstantInt(&value)) && value.getSignificantBits() <= 64)
    return value.getSExtValue();
  return std::nullopt;
}

/// The entry and its parts, functions that it calls with its own three pointers, load the pointers of `args` that its
/// description has, those of all results among them, read no sizes, and address its workspace alone.
LogicalResult checkPointers(func::FuncOp entry, const EntryInfo &info) {
  int64_t inputs = info.inputs.size(), slots = inputs + llvm::count(info.donated, -1);
  llvm::SmallVector<bool> loaded(slots, false);
  llvm::SetVector<Operation *> frames;
  frames.insert(entry);
  SymbolTable symbols(entry->getParentOfType<ModuleOp>());
  auto isPart = [&](Operation *user) {
    auto call = dyn_cast<func::CallOp>(user);
    auto caller = user->getParentOfType<func::FuncOp>();
    auto part = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    if (!part || part.isDeclaration() || part.getFunctionType().getInputs() != entry.getFunctionType().getInputs() ||
        !llvm::equal(call.getOperands(), caller.getArguments()))
      return false;
    frames.insert(part);
    return true;
  };
  auto load = [&](Operation *user, int64_t offset) -> LogicalResult {
    auto pointer = dyn_cast<LLVM::LoadOp>(user);
    if (!pointer || !isPointer(pointer.getType()) || offset % 8 != 0 || offset < 0 || offset / 8 >= slots)
      return user->emitOpError("reads args at byte ") << offset << "; the description of the entry has " << slots
                                                      << " pointers there, which are loaded one by one";
    loaded[offset / 8] = true;
    return success();
  };
  for (size_t next = 0; next < frames.size(); ++next) {
    auto frame = cast<func::FuncOp>(frames[next]);
    for (Operation *user : frame.getArgument(0).getUsers()) {
      if (isPart(user))
        continue;
      std::optional<int64_t> offset = constantOffset(user);
      if (!offset) {
        if (failed(load(user, 0)))
          return failure();
        continue;
      }
      for (Operation *reader : user->getResult(0).getUsers())
        if (failed(load(reader, *offset)))
          return failure();
    }
    for (Operation *user : frame.getArgument(1).getUsers())
      if (!isPart(user))
        return user->emitOpError("reads sizes, of which an entry of static sizes has none");
    for (Operation *user : frame.getArgument(2).getUsers())
      if (isa<LLVM::GEPOp>(user))
        if (std::optional<int64_t> offset = constantOffset(user);
            !offset || *offset < 0 || *offset >= info.workspaceBytes)
          return user->emitOpError("addresses the workspace at byte ")
                 << offset.value_or(-1) << " of " << info.workspaceBytes;
  }
  for (int64_t slot = inputs; slot < slots; ++slot)
    if (!loaded[slot])
      return entry.emitOpError("never loads pointer ") << slot << " of args, which its description gives to a result";
  return success();
}

} // namespace

bool isAsEmitted(ModuleOp module) {
  WalkResult walked = module.walk([&](Operation *op) {
    bool fine = op == module.getOperation() || (isEmitted(op) && llvm::all_of(op->getResultTypes(), [&](Type type) {
                                                  return isEmitted(type) || isa<func::ConstantOp>(op);
                                                }));
    return fine ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

LogicalResult verifyLowered(ModuleOp module, StringRef entry) {
  if (!module->getDiscardableAttrDictionary().empty())
    return module.emitOpError("has attributes, which a lowered program does not");
  if (failed(ir::checkPlaces(module)))
    return failure();
  for (Operation &op : *module.getBody())
    if (!isa<func::FuncOp, LLVM::GlobalOp>(op))
      return op.emitOpError("is neither a function nor constant data, which is all that a lowered program holds");
  WalkResult walked = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == module.getOperation())
      return WalkResult::advance();
    LogicalResult fine = checkOp(op);
    if (auto function = dyn_cast<func::FuncOp>(op); succeeded(fine) && function)
      fine = checkFunction(function, entry);
    if (auto global = dyn_cast<LLVM::GlobalOp>(op); succeeded(fine) && global)
      fine = checkGlobal(global);
    return succeeded(fine) ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  FailureOr<EntryInfo> info = readEntryInfo(module, entry);
  return failed(info) ? failure() : checkPointers(module.lookupSymbol<func::FuncOp>(entry), *info);
}

} // namespace wg::codegen
