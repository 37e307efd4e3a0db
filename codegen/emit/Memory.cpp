// Loads, stores and prefetches of a kernel's points: addresses from coordinates and strides, vectors of neighbours, of
// lanes that lie apart, of places that data gives; and the end of a row that is no whole vector.
#include "codegen/emit/KernelEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace wg::codegen {

/// The type of an element in memory: bool is a byte.
static Type memoryType(Type element) {
  return element.isInteger(1) || element.isInteger(8) ? IntegerType::get(element.getContext(), 8) : element;
}

/// Pointer to element `offset` + sum of coordinates times strides, without the lanes' own steps; and the lane stride.
static std::pair<Value, int64_t> addressOf(KernelEmitter &e, ArrayRef<ir::Coordinate> at, Value pointer, Type memory,
                                           ArrayRef<int64_t> strides, int64_t offset, Value *dataOffsets) {
  OpBuilder &b = e.b;
  Value outer = e.index(offset), inner = e.index(0);
  int64_t laneStride = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    if (strides[d] == 0)
      continue;
    if (isa<VectorType>(at[d].base.getType())) { // data-dependent places: summed as a vector
      auto type = cast<VectorType>(at[d].base.getType());
      Value step = e.splat(e.index(strides[d]), type.getNumElements());
      Value term = arith::MulIOp::create(b, e.loc, at[d].base, step);
      *dataOffsets = *dataOffsets ? Value(arith::AddIOp::create(b, e.loc, *dataOffsets, term)) : term;
      continue;
    }
    laneStride += at[d].laneStride * strides[d];
    // The innermost axis is added last, so that everything outside of it can leave its loop.
    Value &part = d + 1 == at.size() ? inner : outer;
    part = e.add(part, e.mul(at[d].base, strides[d]));
  }
  // What varies before what is a number: elements side by side have one pointer.
  auto [ofOuter, number] = partsOf(outer);
  if (ofOuter) {
    pointer = e.elementAfter(pointer, ofOuter, memory);
    inner = e.add(inner, e.index(number));
  } else {
    inner = e.add(inner, outer);
  }
  return {e.elementAfter(pointer, inner, memory), laneStride};
}

/// Pointers of the lanes of a strided or gathered access.
static Value lanePointers(KernelEmitter &e, Value base, Type memory, int lanes, int64_t laneStride, Value dataOffsets) {
  OpBuilder &b = e.b;
  SmallVector<int64_t> steps;
  for (int l = 0; l < lanes; ++l)
    steps.push_back(l * laneStride);
  auto type = VectorType::get({lanes}, b.getI64Type());
  Value offsets = arith::ConstantOp::create(b, e.loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(steps)));
  if (dataOffsets)
    offsets = arith::AddIOp::create(b, e.loc, offsets, arith::IndexCastOp::create(b, e.loc, type, dataOffsets));
  auto pointers = VectorType::get({lanes}, LLVM::LLVMPointerType::get(b.getContext()));
  return LLVM::GEPOp::create(b, e.loc, pointers, memory, base, ArrayRef<LLVM::GEPArg>{offsets});
}

bool KernelEmitter::areClose(int64_t stride, int lanes, Type element) {
  return (stride == -1 || (stride >= 2 && stride <= lanes / 2)) && element.getIntOrFloatBitWidth() >= 32;
}

/// `lanes` elements that lie `stride` apart: vectors of all that is between them, of which the last one ends with the
/// last element, shuffled into one.
static Value loadClose(KernelEmitter &e, Value base, VectorType type, int64_t stride, unsigned alignment) {
  OpBuilder &b = e.b;
  int64_t lanes = type.getNumElements();
  auto loadFrom = [&](int64_t first) {
    Value at = e.elementAfter(base, e.index(first), type.getElementType());
    return Value(LLVM::LoadOp::create(b, e.loc, type, at, alignment));
  };
  if (stride == -1) {
    Value all = loadFrom(1 - lanes);
    return vector::ShuffleOp::create(b, e.loc, all, all, llvm::to_vector(llvm::reverse(llvm::seq(lanes))));
  }
  Value result;
  for (int64_t number = 0; number < stride; ++number) {
    int64_t first = number + 1 < stride ? number * lanes : (lanes - 1) * (stride - 1);
    Value next = loadFrom(first);
    if (!result) {
      result = next;
      continue;
    }
    SmallVector<int64_t> from;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t place = lane * stride, owner = std::min(place / lanes, stride - 1);
      from.push_back(owner == number  ? lanes + place - first
                     : owner > number ? vector::ShuffleOp::kPoisonIndex
                     : number == 1    ? place // the first vector, as it was read
                                      : lane);
    }
    result = vector::ShuffleOp::create(b, e.loc, result, next, from);
  }
  return result;
}

static Value loadElements(KernelEmitter &e, const Point &point, ArrayRef<ir::Coordinate> at, Value pointer,
                          Type element, ArrayRef<int64_t> strides, int64_t offset) {
  OpBuilder &b = e.b;
  Type memory = memoryType(element);
  unsigned alignment = alignmentOf(memory);
  Value dataOffsets;
  auto [base, laneStride] = addressOf(e, at, pointer, memory, strides, offset, &dataOffsets);
  int lanes = point.lanes;
  Value value;
  if (lanes == 0 || (laneStride == 0 && !dataOffsets)) {
    value = LLVM::LoadOp::create(b, e.loc, memory, base, alignment);
    lanes = 0;
  } else {
    auto type = VectorType::get({lanes}, memory);
    if (laneStride == 1 && !dataOffsets && !point.mask) {
      value = LLVM::LoadOp::create(b, e.loc, type, base, alignment);
    } else if (!dataOffsets && !point.mask && KernelEmitter::areClose(laneStride, lanes, memory)) {
      value = loadClose(e, base, type, laneStride, alignment);
    } else {
      Value mask = point.mask;
      if (!mask)
        mask =
            arith::ConstantOp::create(b, e.loc, DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), true));
      // What is not read counts as 1: LLVM's SimplifyDemandedVectorElts takes a lane that is 0 in both operands of fdiv
      // for 0, and drops the select that keeps its NaN out of a sum.
      Value rest = arith::ConstantOp::create(b, e.loc,
                                             isa<FloatType>(memory)
                                                 ? TypedAttr(DenseElementsAttr::get(type, b.getFloatAttr(memory, 1)))
                                                 : b.getZeroAttr(type));
      if (laneStride == 1 && !dataOffsets)
        value = LLVM::MaskedLoadOp::create(b, e.loc, type, base, mask, rest, alignment);
      else
        value =
            LLVM::masked_gather::create(b, e.loc, type, lanePointers(e, base, memory, lanes, laneStride, dataOffsets),
                                        mask, ValueRange{rest}, alignment);
    }
  }
  if (element.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, e.loc, b.getZeroAttr(value.getType()));
    value = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne, value, zero);
  }
  return e.splat(value, point.lanes);
}

Value KernelEmitter::load(const Point &point, Value pointer, Type element, ArrayRef<int64_t> strides, int64_t offset) {
  return loadElements(*this, point, point.at, pointer, element, strides, offset);
}

void KernelEmitter::prefetch(Value pointer, int locality) {
  LLVM::Prefetch::create(b, loc, pointer, /*rw=*/0, locality, /*cache=*/1);
}

void KernelEmitter::prefetch(const Point &point, Value pointer, Type element, ArrayRef<int64_t> strides,
                             int64_t offset) {
  Value dataOffsets;
  prefetch(addressOf(*this, point.at, pointer, memoryType(element), strides, offset, &dataOffsets).first);
}

Value KernelEmitter::loadAt(const Point &point, Value root, ArrayRef<ir::Coordinate> at) {
  auto type = cast<RankedTensorType>(root.getType());
  if (auto constant = root.getDefiningOp<ir::ConstantOp>())
    return eval(const_cast<Point &>(point), root);
  return loadElements(*this, point, at, pointerOf.lookup(root), type.getElementType(), rowMajorStrides(type.getShape()),
                      0);
}

/// How many lanes a mask of the first lanes alone has; 0 for any other.
static int64_t firstLanesOf(Value mask) {
  DenseElementsAttr lanes;
  if (!mask || !matchPattern(mask, m_Constant(&lanes)))
    return 0;
  auto values = lanes.getValues<bool>();
  int64_t count = llvm::count(values, true);
  return llvm::all_of(llvm::enumerate(values),
                      [&](auto lane) { return lane.value() == (int64_t(lane.index()) < count); })
             ? count
             : 0;
}

/// The first lanes of a vector, more than none, as a scalar or a piece of a power of 2, and what is left as another: as
/// long a one that ends with it, where it is no such number itself. AVX2 has masked stores, but a Zen 3 takes 12 cycles
/// for one: a transpose of 559 x 6 numbers 3.7 us, in pieces 1.0. A scalar is one with AVX-512 too: LLVM (X86's one
/// store of a single lane) stores the whole element of before where it is truncated, and so beyond the buffer.
void KernelEmitter::storePieces(Value value, Value base, int64_t count, unsigned alignment) {
  Type element = getElementTypeOrSelf(value.getType());
  auto store = [&](int64_t first, int64_t size) {
    Value piece =
        size == 1
            ? Value(vector::ExtractOp::create(b, loc, value, first))
            : Value(vector::ShuffleOp::create(b, loc, value, value, llvm::to_vector(llvm::seq(first, first + size))));
    LLVM::StoreOp::create(b, loc, piece, elementAfter(base, index(first), element), alignment);
  };
  auto size = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(count))), rest = count - size;
  store(0, size);
  if (llvm::isPowerOf2_64(rest))
    store(size, rest);
  else if (rest != 0)
    store(rest, size);
}

/// Whether the next row of what a masked vector is stored to lies within that vector, and an input may be there: then
/// its load would wait for the store, which for a processor is one of all lanes. (Adam for [128, 10], its gradient read
/// across: 1.8 us on a Zen 5, in pieces 0.4; a gradient of cross_entropy over its logits of [64, 10] 3.4 and 1.3.)
bool KernelEmitter::isReadBehind(unsigned output, int lanes) {
  ArrayRef<int64_t> overwrites = loops.getOverwrites();
  bool mayBeInput = false;
  for (size_t i = 0; i < overwrites.size(); i += 2)
    mayBeInput |= overwrites[i] == output;
  return mayBeInput &&
         llvm::any_of(outputStrides(output), [&](int64_t stride) { return stride > 1 && stride < lanes; });
}

void KernelEmitter::storeAt(const Point &point, Value pointer, Value value, ArrayRef<int64_t> strides, int64_t offset,
                            bool inPieces) {
  Type element = getElementTypeOrSelf(value.getType()), memory = memoryType(element);
  unsigned alignment = alignmentOf(memory);
  if (element.isInteger(1)) {
    Type bytes = computeType(memory, isa<VectorType>(value.getType()) ? point.lanes : 0);
    value = arith::ExtUIOp::create(b, loc, bytes, value);
  }
  Value dataOffsets;
  auto [base, laneStride] = addressOf(*this, point.at, pointer, memory, strides, offset, &dataOffsets);
  if (point.lanes == 0) {
    LLVM::StoreOp::create(b, loc, value, base, alignment);
    return;
  }
  value = splat(value, point.lanes);
  if (int64_t first = firstLanesOf(point.mask); laneStride == 1 && !point.mask) {
    LLVM::StoreOp::create(b, loc, value, base, alignment);
  } else if (first == 1 || (first > 1 && laneStride == 1 && (inPieces || !target.hasAvx512))) {
    storePieces(value, base, first, alignment);
  } else {
    Value mask = point.mask;
    if (!mask)
      mask = arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(VectorType::get({point.lanes}, b.getI1Type()), true));
    if (laneStride == 1)
      LLVM::MaskedStoreOp::create(b, loc, value, base, mask, alignment);
    else
      LLVM::masked_scatter::create(b, loc, value, lanePointers(*this, base, memory, point.lanes, laneStride, {}), mask,
                                   alignment);
  }
}

void KernelEmitter::storeValue(Point &point, unsigned output, Value value) {
  storeAt(point, outputs[output], value, outputStrides(output), 0, isReadBehind(output, point.lanes));
}

void KernelEmitter::store(Point &point, unsigned output) {
  storeValue(point, output, eval(point, kernel.getYield().getValues()[output]));
}

} // namespace wg::codegen
