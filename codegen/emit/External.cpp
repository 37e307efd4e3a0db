// Kernels of one op that is a call of a routine: its pointers, its numbers, its scratch, and what it returns.
#include "codegen/emit/KernelEmitter.h"

#include "ir/Bridge.h"

using namespace mlir;

namespace wg::codegen {

/// The routine's declaration in the module of `function`, before which it is written; null where the name is another's.
static func::FuncOp declare(OpBuilder &b, func::FuncOp function, StringRef symbol) {
  auto module = function->getParentOfType<ModuleOp>();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  FunctionType type = b.getFunctionType({pointer, pointer, pointer}, {b.getI32Type()});
  if (Operation *known = module.lookupSymbol(symbol)) {
    auto routine = dyn_cast<func::FuncOp>(known);
    return routine && routine.isDeclaration() && routine.getFunctionType() == type ? routine : func::FuncOp();
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  auto routine = func::FuncOp::create(b, function.getLoc(), symbol, type);
  routine.setPrivate();
  return routine;
}

/// Constant memory with these numbers.
static Value numbersOf(OpBuilder &b, Location loc, func::FuncOp function, ArrayRef<int64_t> numbers) {
  StringRef bytes(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(int64_t));
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                       (function.getName() + "_numbers").str(), b.getStringAttr(bytes),
                                       /*alignment=*/8);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AddressOfOp::create(b, loc, global);
}

LogicalResult KernelEmitter::emitExternal() {
  auto op = cast<ir::External>(&kernel.getBlock()->front());
  auto function = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  runtime::ExternalCall call = op.routine();
  if (!call.symbol)
    return op->emitOpError("has the type ") << op->getResult(0).getType() << ": there is no routine for it";
  func::FuncOp routine = declare(b, function, call.symbol);
  if (!routine)
    return op->emitOpError("calls the routine '")
           << call.symbol << "', and the program has another function of its name";
  SmallVector<Value> pointers;
  for (Value operand : op->getOperands().drop_front(static_cast<size_t>(call.hidden)))
    pointers.push_back(pointerOf.lookup(operand));
  pointers.append(outputs);
  Type pointer = scratchPointer.getType();
  Value numbers = numbersOf(b, loc, function, {call.numbers.data(), call.numbers.size()});
  Value count = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(pointers.size())));
  Value list = LLVM::AllocaOp::create(b, loc, pointer, pointer, count, 8);
  for (auto [i, each] : llvm::enumerate(pointers)) {
    Value place =
        LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), list, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(8 * i)});
    LLVM::StoreOp::create(b, loc, each, place, 8);
  }
  Value status = func::CallOp::create(b, loc, routine, ValueRange{list, numbers, scratchPointer}).getResult(0);
  if (op.statuses().empty())
    return success();
  // Status i is the i-th of the entry's errors from here on.
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value before = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(errors->size())));
  Value fails = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, status, none);
  if (op.statuses().size() == 1) // whatever it says
    status = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  failure = arith::SelectOp::create(b, loc, fails, arith::AddIOp::create(b, loc, status, before), none);
  for (StringRef text : op.statuses()) {
    errors->push_back(((call.name ? StringRef(call.name) : op->getName().stripDialect()) + ": " + text).str());
    errorPlaces->push_back(ir::whereOf(op->getLoc()));
  }
  return success();
}

} // namespace wg::codegen
