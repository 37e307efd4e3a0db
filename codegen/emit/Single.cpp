// Kernels of one op that builds its own loops: what it needs is a way to the elements.
#include "codegen/emit/KernelEmitter.h"

#include "ir/Bridge.h"

using namespace mlir;

namespace wg::codegen {

LogicalResult KernelEmitter::emitSingle() {
  auto op = dyn_cast<ir::Structured>(&kernel.getBlock()->front());
  if (!op)
    return kernel.emitError("internal error: emit: no loops known for ") << kernel.getBlock()->front().getName();
  auto coordinates = [](ValueRange at) {
    SmallVector<ir::Coordinate> result;
    for (Value value : at)
      result.push_back({value, 0});
    return result;
  };
  // The emitter's builder is where the op builds, for as long as the callback runs.
  auto within = [&](OpBuilder &builder, auto &&emit) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(builder.saveInsertionPoint());
    auto result = emit();
    builder.restoreInsertionPoint(b.saveInsertionPoint());
    return result;
  };
  Value result = op->getResult(0);
  auto resultType = cast<RankedTensorType>(result.getType());
  auto load = [&](OpBuilder &builder, Location, unsigned operand, ValueRange at) -> Value {
    return within(builder, [&] { return loadAt(Point(), op->getOperand(operand), coordinates(at)); });
  };
  auto store = [&](OpBuilder &builder, Location, ValueRange at, Value element) {
    within(builder, [&] {
      Point point(coordinates(at), 0, {});
      storeAt(point, outputs[0], element, rowMajorStrides(resultType.getShape()), 0);
      return 0;
    });
  };
  auto reload = [&](OpBuilder &builder, Location, ValueRange at) -> Value {
    return within(builder, [&] {
      Point point(coordinates(at), 0, {});
      return this->load(point, outputs[0], resultType.getElementType(), rowMajorStrides(resultType.getShape()), 0);
    });
  };
  failure = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  auto fail = [&](OpBuilder &builder, Location, Value broken, ValueRange values, StringRef message) {
    within(builder, [&] {
      errors->push_back(message.str());
      errorPlaces->push_back(ir::whereOf(op->getLoc()));
      for (auto [i, value] : llvm::enumerate(values)) {
        Value place = LLVM::GEPOp::create(b, loc, scratchPointer.getType(), value.getType(), scratchPointer,
                                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
        LLVM::StoreOp::create(b, loc, value, place, 8);
      }
      Value code = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(errors->size())));
      failure = arith::SelectOp::create(b, loc, broken, code, failure);
      return 0;
    });
  };
  auto isInPlace = [&](OpBuilder &builder, Location, unsigned operand) -> Value {
    return within(builder, [&] {
      Value pointer = pointerOf.lookup(op->getOperand(operand));
      return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, pointer, outputs[0]).getResult();
    });
  };
  auto scratchAt = [&](Value i) -> Value {
    Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), i);
    return LLVM::GEPOp::create(b, loc, scratchPointer.getType(), b.getI64Type(), scratchPointer, ValueRange{offset});
  };
  auto loadScratch = [&](OpBuilder &builder, Location, Value i) -> Value {
    return within(builder, [&] { return LLVM::LoadOp::create(b, loc, b.getI64Type(), scratchAt(i), 8).getResult(); });
  };
  auto storeScratch = [&](OpBuilder &builder, Location, Value i, Value element) {
    within(builder, [&] {
      LLVM::StoreOp::create(b, loc, element, scratchAt(i), 8);
      return 0;
    });
  };
  // Stores what `elements(first, point)` makes of `count` places from `to` on: by vectors, the last one masked.
  auto storeRun = [&](ValueRange to, int64_t count, auto &&elements) {
    int lanes = nativeLanes();
    auto move = [&](Value i, Value mask) {
      SmallVector<ir::Coordinate> at = coordinates(to);
      at.back() = {add(to.back(), i), 1};
      Point point(at, lanes, mask);
      Value all = elements(i, point);
      storeAt(point, outputs[0], all, rowMajorStrides(resultType.getShape()), 0);
    };
    int64_t whole = count / lanes * lanes, atOnce = whole >= 8 * lanes ? 4 * lanes : lanes,
            groups = whole / atOnce * atOnce;
    if (groups > 0)
      loop(0, groups, atOnce, [&](Value i) {
        for (int64_t further = 0; further < atOnce; further += lanes)
          move(add(i, index(further)), nullptr);
      });
    if (groups < whole)
      loop(groups, whole, lanes, [&](Value i) { move(i, nullptr); });
    if (whole < count)
      move(index(whole), tailMask(lanes, count - whole));
    return 0;
  };
  auto loadRun = [&](unsigned operand, ValueRange from, Value i, const Point &point) {
    SmallVector<ir::Coordinate> at = coordinates(from);
    at.back() = {add(from.back(), i), 1};
    return loadAt(point, op->getOperand(operand), at);
  };
  auto isWhole = [&](unsigned operand) { return !op->getOperand(operand).getDefiningOp(); };
  // Where a run is all of an operand, the next operand's follows, and nothing else asks ahead for its beginning.
  auto askForNext = [&](unsigned operand, int64_t count) {
    constexpr int64_t kLong = 1024, kLine = 64, kLines = 8; // bytes
    Type element = resultType.getElementType();
    int64_t bytes = alignmentOf(element);
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    if (count != type.getNumElements() || count * bytes < kLong || operand + 1 >= op->getNumOperands() ||
        !isWhole(operand + 1))
      return;
    Value next = pointerOf.lookup(op->getOperand(operand + 1));
    for (int64_t line = 0; line < kLines; ++line)
      prefetch(elementAfter(next, index(line * kLine / bytes), element));
  };
  auto copyRun = [&](OpBuilder &builder, Location, unsigned operand, ValueRange from, ValueRange to, int64_t count) {
    within(builder, [&] {
      askForNext(operand, count);
      return storeRun(to, count, [&](Value i, const Point &point) { return loadRun(operand, from, i, point); });
    });
  };
  auto addRun = [&](OpBuilder &builder, Location, unsigned operand, ValueRange from, ValueRange to, int64_t count) {
    within(builder, [&] {
      return storeRun(to, count, [&](Value i, const Point &point) -> Value {
        Value more = loadRun(operand, from, i, point);
        Value sum =
            this->load(point, outputs[0], resultType.getElementType(), rowMajorStrides(resultType.getShape()), 0);
        if (isa<FloatType>(getElementTypeOrSelf(sum)))
          return arith::AddFOp::create(b, loc, sum, more);
        return arith::AddIOp::create(b, loc, sum, more);
      });
    });
  };
  auto clearRun = [&](OpBuilder &builder, Location, ValueRange to, int64_t count) {
    within(builder, [&] {
      return storeRun(to, count, [&](Value, const Point &point) -> Value {
        Type type = computeType(resultType.getElementType(), point.lanes);
        return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
      });
    });
  };
  op.lower(b, op->getLoc(),
           ir::ElementAccess{load, store, reload, fail, isInPlace, loadScratch, storeScratch, isWhole, copyRun, addRun,
                             clearRun, !mayFail()});
  return success();
}

} // namespace wg::codegen
