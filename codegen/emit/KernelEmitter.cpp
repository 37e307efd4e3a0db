#include "codegen/emit/KernelEmitter.h"

#include "ir/Views.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace wg::codegen {

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

static bool isLeaf(Value value) { return !value.getDefiningOp() || isa<ir::ConstantOp>(value.getDefiningOp()); }

KernelEmitter::KernelEmitter(ir::KernelOp kernel, const Target &target, OpBuilder &b)
    : b(b), loc(kernel.getLoc()), kernel(kernel), loops(kernel.getLoopsAttr()), target(target), places(kernel) {
  if (kernel.getKind() == ir::KernelKind::single) {
    if (auto op = dyn_cast<ir::Structured>(&kernel.getBlock()->front()))
      scratch = op.scratchElements() * static_cast<int64_t>(sizeof(int64_t));
    return;
  }
  if (kernel.getKind() == ir::KernelKind::external) {
    scratch = cast<ir::External>(&kernel.getBlock()->front()).routine().scratchBytes;
    return;
  }
  mergeAxes();
  planChunks();
}

/// Splits `expr` = sum of c_d * d_d + c into strides and offset.
static void addAffine(AffineExpr expr, int64_t factor, MutableArrayRef<int64_t> strides, int64_t &offset) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    offset += factor * constant.getValue();
  } else if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    strides[dim.getPosition()] += factor;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    if (binary.getKind() == AffineExprKind::Add) {
      addAffine(binary.getLHS(), factor, strides, offset);
      addAffine(binary.getRHS(), factor, strides, offset);
    } else { // Mul; the constant is on the right
      addAffine(binary.getLHS(), factor * cast<AffineConstantExpr>(binary.getRHS()).getValue(), strides, offset);
    }
  }
}

/// Strides over the original axes with which `map` reads a row-major root.
static std::pair<SmallVector<int64_t>, int64_t> linearise(AffineMap map, ArrayRef<int64_t> rootShape) {
  SmallVector<int64_t> strides(map.getNumDims(), 0);
  int64_t offset = 0;
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), rowMajorStrides(rootShape)))
    addAffine(expr, stride, strides, offset);
  return {strides, offset};
}

std::optional<KernelEmitter::Access> KernelEmitter::accessOf(Value value) {
  auto [it, isNew] = accesses.try_emplace(value, std::nullopt);
  if (isNew) {
    ir::Places::Seen traced = places.trace(value);
    if (isLeaf(traced.root)) {
      auto [strides, offset] = linearise(traced.map, shapeOf(traced.root));
      Access access{traced.root, {}, offset};
      for (const Axis &axis : axes)
        access.strides.push_back(strides[axis.dim]);
      accesses[value] = access;
    }
  }
  return accesses[value];
}

void KernelEmitter::eachRead(llvm::function_ref<void(Value, const Access &)> f) {
  llvm::SmallPtrSet<Value, 8> seen;
  for (Operation &op : *kernel.getBlock())
    if (isa<ir::Scalar, ir::Reduction>(op) || op.hasTrait<OpTrait::IsTerminator>())
      for (Value value : op.getOperands())
        if (Operation *by = value.getDefiningOp(); (!by || ir::viewMapOf(by)) && seen.insert(value).second)
          if (std::optional<Access> access = accessOf(value); access && !access->root.getDefiningOp())
            f(value, *access);
}

void KernelEmitter::putInOrder(ArrayRef<size_t> order) {
  axes = llvm::map_to_vector(order, [&](size_t axis) { return axes[axis]; });
  accesses.clear();
}

SmallVector<SmallVector<int64_t>> KernelEmitter::stridesOfReads() {
  SmallVector<SmallVector<int64_t>> all;
  for (auto [maps, input] : llvm::zip_equal(loops.getReads(), kernel.getBlock()->getArguments()))
    for (Attribute map : cast<ArrayAttr>(maps)) {
      SmallVector<int64_t> strides = linearise(cast<AffineMapAttr>(map).getValue(), shapeOf(input)).first;
      all.push_back(llvm::map_to_vector(axes, [&](const Axis &axis) { return strides[axis.dim]; }));
    }
  return all;
}

SmallVector<int64_t> KernelEmitter::outputStrides(unsigned output) {
  Value value = kernel.getYield().getValues()[output];
  auto [strides, offset] = linearise(places.mapOf(value), shapeOf(value));
  SmallVector<int64_t> result;
  for (const Axis &axis : axes)
    result.push_back(strides[axis.dim]);
  return result;
}

/// Unit axes are left out; neighbours merge if every access steps through them as through one axis.
void KernelEmitter::mergeAxes() {
  bool mayMerge = kernel.getKind() != ir::KernelKind::contract &&
                  llvm::none_of(*kernel.getBlock(), [](Operation &op) { return isa<ir::Indexed>(op); });
  ArrayRef<int64_t> sizes = loops.getSpace(), reduced = loops.getReduced();
  SmallVector<SmallVector<int64_t>> all;
  auto include = [&](Attribute map, Value value) {
    if (mayMerge)
      all.push_back(linearise(cast<AffineMapAttr>(map).getValue(), shapeOf(value)).first);
  };
  for (auto [map, value] : llvm::zip_equal(loops.getWrites(), kernel.getYield().getValues()))
    include(map, value);
  for (auto [maps, input] : llvm::zip_equal(loops.getReads(), kernel.getBlock()->getArguments()))
    for (Attribute map : cast<ArrayAttr>(maps))
      include(map, input);
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    bool isReduced = llvm::is_contained(reduced, d);
    if (isReduced && kernel.getKind() == ir::KernelKind::contract)
      continue; // it has loops of its own
    if (mayMerge && sizes[d] == 1)
      continue;
    if (mayMerge && !axes.empty() && axes.back().reduced == isReduced &&
        llvm::all_of(all,
                     [&](ArrayRef<int64_t> strides) { return strides[axes.back().dim] == strides[d] * sizes[d]; })) {
      axes.back().size *= sizes[d];
      axes.back().dim = d;
    } else {
      axes.push_back({sizes[d], d, isReduced});
    }
  }
}

int KernelEmitter::nativeLanes() {
  int64_t widest = loops.getCompute().isF64() ? 8 : 4;
  return std::max<int>(2, target.vectorBytes / widest);
}

int KernelEmitter::lanesFor(int64_t length) {
  return static_cast<int>(std::min<uint64_t>(nativeLanes(), llvm::PowerOf2Ceil(std::max<int64_t>(2, length))));
}

static int64_t countTranscendental(ir::KernelOp kernel) {
  return llvm::count_if(*kernel.getBlock(), [](Operation &op) { return op.hasTrait<ir::IsTranscendental>(); });
}

/// Of transcendental functions, as many as there are on the longest way from one to the next.
static int64_t longestChain(ir::KernelOp kernel) {
  DenseMap<Value, int64_t> lengths;
  int64_t longest = 0;
  for (Operation &op : *kernel.getBlock()) {
    int64_t length = 0;
    for (Value operand : op.getOperands())
      length = std::max(length, lengths.lookup(operand));
    length += op.hasTrait<ir::IsTranscendental>();
    for (Value result : op.getResults())
      lengths[result] = length;
    longest = std::max(longest, length);
  }
  return longest;
}

int64_t KernelEmitter::opsOfPoint() {
  return llvm::count_if(*kernel.getBlock(), [](Operation &op) { return isa<ir::Scalar>(op); }) +
         20 * countTranscendental(kernel);
}

/// One vector after the other keeps a core busy unless each waits for a chain of transcendental functions: then up to 8
/// run side by side. What spills costs less than waiting (step f: 15.0 us alone, 8.9 us by fours, 6.5 us by eights).
/// Functions that do not wait for each other are as good as points side by side. (Not where a kernel sums: how many
/// points it takes at once is how it adds them.) Without such a chain a core finds the next points by itself: some
/// operations a turn of the loop, if their values fit the registers, outweigh the turn.
int KernelEmitter::interleave() {
  constexpr int64_t kMaxOps = 1300; // in one iteration of the loop: bounds code size
  constexpr int64_t kOpsOfTurn = 32;
  int64_t chained = countTranscendental(kernel);
  int live = 0, most = 1;
  DenseMap<Value, int> uses;
  for (Operation &op : *kernel.getBlock()) {
    if (ir::viewMapOf(&op) || isa<ir::ConstantOp>(op))
      continue;
    for (Value operand : op.getOperands())
      if (operand.getDefiningOp() && --uses[operand] == 0)
        --live;
    for (Value result : op.getResults()) {
      uses[result] = std::distance(result.use_begin(), result.use_end());
      ++live;
    }
    most = std::max(most, live);
  }
  bool isMap = kernel.getKind() == ir::KernelKind::map;
  int64_t chain = isMap ? longestChain(kernel) : chained;
  auto wanted = static_cast<int>(chained > 1 ? target.numVectorRegisters / 4 * chain / chained
                                             : std::min(4, target.numVectorRegisters / (most + 1)));
  if (isMap && chained == 0)
    wanted = static_cast<int>(std::min<int64_t>(wanted, kOpsOfTurn / std::max<int64_t>(1, opsOfPoint())));
  while (wanted > 1 && wanted * opsOfPoint() > kMaxOps)
    wanted /= 2;
  return wanted >= 8 ? 8 : wanted >= 4 ? 4 : wanted >= 2 ? 2 : 1;
}

// ---- Small builders ------------------------------------------------------------------------------------------------

Value KernelEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

/// An offset as a sum of what varies (null: nothing) and a number, which add() and mul() keep on the right.
std::pair<Value, int64_t> partsOf(Value offset) {
  APInt number;
  if (matchPattern(offset, m_ConstantInt(&number)))
    return {Value(), number.getSExtValue()};
  if (auto sum = offset.getDefiningOp<arith::AddIOp>(); sum && matchPattern(sum.getRhs(), m_ConstantInt(&number)))
    return {sum.getLhs(), number.getSExtValue()};
  return {offset, 0};
}

Value KernelEmitter::add(Value a, Value c) {
  auto [x, numberOfA] = partsOf(a);
  auto [y, numberOfC] = partsOf(c);
  int64_t number = numberOfA + numberOfC;
  if (!x && !y)
    return index(number);
  if (number == numberOfA && !y)
    return a;
  if (number == numberOfC && !x)
    return c;
  Value sum = x && y ? Value(arith::AddIOp::create(b, loc, x, y)) : x ? x : y;
  return number == 0 ? sum : Value(arith::AddIOp::create(b, loc, sum, index(number)));
}

Value KernelEmitter::mul(Value a, int64_t c) {
  if (c == 0)
    return index(0);
  if (c == 1)
    return a;
  auto [x, number] = partsOf(a);
  if (!x)
    return index(number * c);
  Value product = arith::MulIOp::create(b, loc, x, index(c));
  return number == 0 ? product : Value(arith::AddIOp::create(b, loc, product, index(number * c)));
}

Value KernelEmitter::elementAfter(Value pointer, Value offset, Type memory) {
  auto [by, number] = partsOf(offset);
  if (!isGepConstant(number))
    by = offset, number = 0;
  auto type = LLVM::LLVMPointerType::get(b.getContext());
  if (by) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), by);
    pointer = LLVM::GEPOp::create(b, loc, type, memory, pointer, ArrayRef<LLVM::GEPArg>{wide});
  }
  if (number != 0)
    pointer = LLVM::GEPOp::create(b, loc, type, memory, pointer, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
  return pointer;
}

Type KernelEmitter::computeType(Type element, int lanes) {
  if (element.isInteger(8))
    element = IntegerType::get(element.getContext(), 8);
  return lanes ? Type(VectorType::get({lanes}, element)) : element;
}

Value KernelEmitter::splat(Value value, int lanes) {
  if (lanes == 0 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, loc, VectorType::get({lanes}, value.getType()), value);
}

Value KernelEmitter::tailMask(int lanes, int64_t count) {
  if (count >= lanes)
    return {};
  SmallVector<bool> on(lanes, false);
  std::fill_n(on.begin(), count, true);
  auto type = VectorType::get({lanes}, b.getI1Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, on));
}

void KernelEmitter::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto forOp = scf::ForOp::create(b, loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  body(forOp.getInductionVar());
}

void KernelEmitter::loop(int64_t from, int64_t to, int64_t step, llvm::function_ref<void(Value)> body) {
  if (to <= from)
    return;
  if (to - from <= step)
    return body(index(from));
  loop(index(from), index(to), step, body);
}

void KernelEmitter::onLastChunk(Value end, int64_t last, llvm::function_ref<void()> body) {
  Value reaches = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, end, index(last));
  auto ifOp = scf::IfOp::create(b, loc, reaches, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

SmallVector<Value> KernelEmitter::loop(int64_t from, int64_t to, int64_t step, ValueRange carried,
                                       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (to <= from)
    return SmallVector<Value>(carried);
  if (to - from <= step)
    return body(index(from), carried);
  auto forOp = scf::ForOp::create(b, loc, index(from), index(to), index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  SmallVector<Value> next = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (!carried.empty()) // else the loop was built with its yield
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(forOp.getResults());
}

// ---- Elements -------------------------------------------------------------------------------------------------------

/// The element of an op that computes from its place, which is `map` of the point's.
Value KernelEmitter::elementAt(const Point &point, ir::Indexed op, AffineMap map) {
  SmallVector<ir::Coordinate> at;
  for (AffineExpr expr : map.getResults()) {
    SmallVector<int64_t> strides(map.getNumDims(), 0);
    int64_t offset = 0;
    addAffine(expr, 1, strides, offset);
    ir::Coordinate coordinate{index(offset), 0};
    for (auto [axis, outer] : llvm::zip_equal(axes, point.at))
      if (int64_t stride = strides[axis.dim]) {
        coordinate.base = add(coordinate.base, mul(outer.base, stride));
        coordinate.laneStride += outer.laneStride * stride;
      }
    at.push_back(coordinate);
  }
  auto read = [&](unsigned operand, ArrayRef<ir::Coordinate> place) {
    return loadAt(point, op->getOperand(operand), place);
  };
  return splat(op.element(b, op->getLoc(), at, point.lanes, read), point.lanes);
}

void KernelEmitter::mayContract(Value value) {
  if (Operation *op = value.getDefiningOp(); op && isa<arith::AddFOp, arith::MulFOp>(op))
    op->setAttr("fastmath", arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract));
}

/// A sum or difference with a product that nobody else reads, as one fused multiply-add; nothing for any other op, or
/// behind a product. Reduce kernels compute a value again in each phase, and an element must equal itself (who is the
/// largest?), so what is contracted is decided here. Of elementwise kernels where there is but one way: in vectors of
/// one element the code generator forgets that it may; of two ways, which one it takes must not depend on what else is
/// in the kernel.
Value KernelEmitter::multiplyAdd(Point &point, Operation *op) {
  SmallVector<ir::MultiplyAdd, 2> ways = ir::asMultiplyAdd(op);
  if (kernel.getKind() == ir::KernelKind::contract || !target.hasFma ||
      (kernel.getKind() == ir::KernelKind::map && ways.size() > 1))
    return {};
  for (const ir::MultiplyAdd &way : ways) {
    if (known.count(way.product))
      continue;
    Value x = eval(point, way.x), y = eval(point, way.y), z = eval(point, way.z);
    if (way.negateProduct)
      x = arith::NegFOp::create(b, op->getLoc(), x);
    if (way.negateAddend)
      z = arith::NegFOp::create(b, op->getLoc(), z);
    return math::FmaOp::create(b, op->getLoc(), x, y, z);
  }
  return {};
}

/// How far ahead of a row that is a part of a vector it is asked for later ones; 0: they are followed, or close by. No
/// processor follows masked loads. (A million rows of 10 numbers, to each of which a row is added: 4.3 ms, 1.5 so.)
int64_t KernelEmitter::aheadOfMasked(const Point &point, const Access &access) {
  constexpr int64_t kRows = 64, kCached = int64_t(1) << 20; // bytes
  auto type = cast<RankedTensorType>(access.root.getType());
  if (!point.mask || !asksForRows || type.getNumElements() * alignmentOf(type.getElementType()) <= kCached)
    return 0;
  int64_t step = 0, lanes = 0; // to the next row; a row's
  for (auto [at, axis, stride] : llvm::zip_equal(point.at, axes, access.strides))
    if (at.base && at.laneStride * stride == 1)
      lanes = axis.size;
    else if (stride > 0 && axis.size > 1 && (step == 0 || stride < step))
      step = stride;
  return lanes > 0 && lanes < point.lanes ? kRows * step : 0;
}

Value KernelEmitter::eval(Point &point, Value value) {
  if (Value done = point.values.lookup(value))
    return done;
  auto remember = [&](Value result) {
    point.values[value] = result;
    return result;
  };
  if (Value done = known.lookup(value))
    return remember(splat(done, point.lanes));
  Operation *op = value.getDefiningOp();
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  if (auto constant = dyn_cast_or_null<ir::ConstantOp>(op)) {
    auto attribute = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    if (element.isInteger(8))
      attribute = b.getIntegerAttr(b.getI8Type(), cast<IntegerAttr>(attribute).getValue());
    return remember(splat(arith::ConstantOp::create(b, loc, attribute), point.lanes));
  }
  if (!op || ir::viewMapOf(op)) {
    if (auto access = accessOf(value)) {
      if (access->root.getDefiningOp())
        return remember(eval(point, access->root)); // a splat constant
      if (Value held = point.held.lookup(access->root))
        return remember(splat(held, point.lanes));
      if (int64_t ahead = aheadOfMasked(point, *access))
        prefetch(point, pointerOf.lookup(access->root), element, access->strides, access->offset + ahead);
      return remember(load(point, pointerOf.lookup(access->root), element, access->strides, access->offset));
    }
    ir::Places::Seen traced = places.trace(value);
    if (auto indexed = dyn_cast<ir::Indexed>(traced.root.getDefiningOp()); indexed && !known.count(traced.root))
      return remember(elementAt(point, indexed, traced.map));
    return remember(eval(point, traced.root));
  }
  if (auto indexed = dyn_cast<ir::Indexed>(op))
    return remember(elementAt(point, indexed, places.mapOf(value)));
  if (Value fused = multiplyAdd(point, op))
    return remember(fused);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(eval(point, operand));
  Value result = cast<ir::Scalar>(op).scalar(b, op->getLoc(), operands);
  if (ir::isTermOfSum(op))
    mayContract(result);
  return remember(result);
}

void KernelEmitter::evalAll(MutableArrayRef<Point> points, ValueRange values) {
  if (points.size() > 1) {
    // Program order over the ops that the values need: each op for every point before the next op.
    llvm::SetVector<Operation *> needed;
    SmallVector<Value> pending(values.begin(), values.end());
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || known.count(value) || points.front().values.count(value) || !needed.insert(op))
        continue;
      if (isa<ir::Scalar>(op))
        pending.append(op->operand_begin(), op->operand_end());
    }
    for (Operation &op : kernel.getBlock()->without_terminator())
      if (needed.contains(&op) && isa<ir::Scalar>(op))
        for (Point &point : points)
          eval(point, op.getResult(0));
  }
  for (Value value : values)
    for (Point &point : points)
      eval(point, value);
}

/// Once for the whole kernel.
void KernelEmitter::evalUniform(Point &once) {
  once.at.assign(axes.size(), {index(0), 0});
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (isa<ir::Scalar>(op) && places.of(op.getResult(0)) == Space::uniform)
      known[op.getResult(0)] = eval(once, op.getResult(0));
}

LogicalResult KernelEmitter::emit(ValueRange pointers, Value begin, Value end) {
  Block &body = *kernel.getBlock();
  for (auto [argument, pointer] : llvm::zip(body.getArguments(), pointers))
    pointerOf[argument] = pointer;
  unsigned inputs = body.getNumArguments(), results = kernel.getYield().getValues().size();
  for (unsigned i = 0; i < results; ++i)
    outputs.push_back(pointers[inputs + i]);
  scratchPointer = pointers[inputs + results];
  // What is the same for the whole kernel is computed once, before the loops.
  if (!loops.getSpace().empty()) { // there is none of one op
    Point once;
    evalUniform(once);
  }
  if (kernel.getKind() == ir::KernelKind::map)
    return emitMap(begin, end);
  if (kernel.getKind() == ir::KernelKind::reduce)
    return emitReduce(begin, end);
  if (kernel.getKind() == ir::KernelKind::contract)
    return emitContract(begin, end);
  if (kernel.getKind() == ir::KernelKind::external)
    return emitExternal();
  return emitSingle();
}

} // namespace wg::codegen
