// The pieces of which the code of an op with bodies is written (EmitBodies.cpp, EmitRewind.cpp).
#pragma once

#include "codegen/EmitBodies.h"

#include "ir/Bridge.h"
#include "ir/Calls.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace wg::codegen {

inline int64_t bodyBytes(mlir::Type type) { return runtime::extentOf(ir::runtimeTypeOf(type))->bytes; }
inline int64_t cacheAligned(int64_t bytes) { return runtime::saturatingAdd(bytes, 63) / 64 * 64; }
/// The most that one of them needs.
int64_t workspaceOf(llvm::ArrayRef<EmittedBody> bodies);

/// What a rewind needs beside its bodies' workspace.
int64_t rewindScratchBytes(ir::RewindOp op);
void emitRewind(ir::RewindOp op, llvm::ArrayRef<EmittedBody> bodies, BodyLaunch &launch);

/// Writes the code of one op.
class BodyEmitter {
public:
  BodyEmitter(mlir::Operation *op, BodyLaunch &launch)
      : launch(launch), b(launch.b), loc(op->getLoc()), pointer(mlir::LLVM::LLVMPointerType::get(op->getContext())) {}

  mlir::Value number(int64_t value) { return mlir::arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddIOp::create(b, loc, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubIOp::create(b, loc, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return mlir::arith::MulIOp::create(b, loc, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return mlir::arith::DivSIOp::create(b, loc, x, y); }
  mlir::Value isLess(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::slt, x, y);
  }
  /// Room for `count` pointers, on the stack.
  mlir::Value pointers(size_t count) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&launch.frame.getBody().front());
    mlir::Value size =
        mlir::LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(std::max<size_t>(1, count))));
    return mlir::LLVM::AllocaOp::create(b, loc, pointer, pointer, size, 8);
  }
  mlir::Value slot(mlir::Value list, size_t i) { return launch.byteOffset(list, static_cast<int64_t>(8 * i)); }
  void put(mlir::Value value, mlir::Value list, size_t i) {
    mlir::LLVM::StoreOp::create(b, loc, value, slot(list, i), 8);
  }
  mlir::Value get(mlir::Value list, size_t i) { return mlir::LLVM::LoadOp::create(b, loc, pointer, slot(list, i), 8); }
  mlir::Value moved(mlir::Value base, mlir::Value bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(bytes)});
  }
  void call(const EmittedBody &body, mlir::Value args) {
    auto made =
        mlir::func::CallOp::create(b, loc, body.function, mlir::ValueRange{args, launch.scratch, launch.scratch});
    if (body.mayFail)
      launch.returnIfError(made.getResult(0), launch.scratch);
  }
  /// Ends the frame with this error; `values` are at fault.
  void failIf(mlir::Value fails, mlir::Operation *op, llvm::StringRef text, llvm::ArrayRef<mlir::Value> values) {
    mlir::Value none = mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    mlir::Value code = mlir::arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(launch.addError(op, text)));
    for (auto [i, value] : llvm::enumerate(values))
      mlir::LLVM::StoreOp::create(b, loc, value, slot(launch.scratch, i), 8);
    launch.returnIfError(mlir::arith::SelectOp::create(b, loc, fails, code, none), launch.scratch);
  }
  mlir::Block *block() {
    mlir::OpBuilder::InsertionGuard guard(b);
    return b.createBlock(&launch.frame.getBody());
  }

  /// Row i of what lies at `base`, a stack of this type.
  mlir::Value rowOf(mlir::Value base, mlir::Type stack, mlir::Value i) {
    return moved(base, mlir::arith::MulIOp::create(b, loc, i, number(bodyBytes(ir::rowTypeOf(stack)))));
  }
  /// Zeros in the rows of a stack from number `first` on.
  void clearRows(mlir::Value base, mlir::Type stack, mlir::Value first) {
    mlir::Value done = mlir::arith::MulIOp::create(b, loc, first, number(bodyBytes(ir::rowTypeOf(stack))));
    mlir::Value left = mlir::arith::SubIOp::create(b, loc, number(bodyBytes(stack)), done);
    mlir::Value nothing = mlir::arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
    mlir::LLVM::MemsetOp::create(b, loc, moved(base, done), nothing, left, /*isVolatile=*/false);
  }
  void copy(mlir::Value from, mlir::Value to, mlir::Value bytes) {
    mlir::LLVM::MemcpyOp::create(b, loc, to, from, bytes, /*isVolatile=*/false);
  }
  void copyUnlessThere(mlir::Value from, mlir::Value to, mlir::Type type) {
    mlir::Value isThere = mlir::LLVM::ICmpOp::create(b, loc, mlir::LLVM::ICmpPredicate::eq, from, to);
    copy(from, to, mlir::arith::SelectOp::create(b, loc, isThere, number(0), number(bodyBytes(type))));
  }

  BodyLaunch &launch;
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type pointer;
};

} // namespace wg::codegen
