// Contract kernels: c = sum over k of a * b, and what follows elementwise, tile by tile from registers.
//
// The letters of the equation are sorted into batch (in a, b, c), m (a, c), n (b, c) and k (a, b); neighbours that
// every tensor steps through as one axis are merged. n is the side whose innermost letter is c's innermost, so that c
// is stored in vectors; a and b change roles where that is needed. Then, per batch and per panel of n:
//
//   pack b[k, panel] into scratch   where b is not contiguous along n, or its rows are so far apart that they share
//                                   cache sets (and once, before all panels, a[k, tile of m] where a lies that way)
//   for m in tiles of MR:           MR x NV accumulators in registers
//     for k:  NV vectors of b, MR scalars of a broadcast, MR * NV fused multiply-adds; a prefetch of what the
//             epilogue will read
//             (a long k in blocks, each summed on its own: one running sum of 10^6 terms would lose three digits)
//     epilogue on each accumulator, stores
//
// Tile sizes follow the register file: 12 x 2 or 6 x 4 vectors of 32 registers, 6 x 2 or 3 x 4 of
// 16 (Goto and van de Geijn 2008).
#include "codegen/emit/KernelEmitter.h"

#include "runtime/Extent.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace wg::codegen {

namespace {

/// Operations of all points of a tile that are written out one after the other.
constexpr int64_t kMaxOpsOfTile = 512;

/// One letter, or several that every tensor steps through as one.
struct Letter {
  int64_t size;
  int64_t strideA = 0, strideB = 0; ///< in elements; 0 if the tensor lacks the letter
  SmallVector<unsigned> axesOfC;    ///< c's axes that it stands for, outermost first
};

} // namespace

struct ContractEmitter {
  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  ir::ContractOp op;
  Value a, bOperand;
  SmallVector<Letter> batch, m, n, k;
  Type element;
  int lanes;
  Value baseA;                   ///< of a, or of its packed tiles
  SmallVector<int64_t> stridesA; ///< per letter of k
  int64_t strideM = 0;
  SmallVector<Value>
      streamed;      ///< operands of the epilogue that are read at c's place and that the first cache cannot hold
  Value tileOnStack; ///< accumulators of a tile whose epilogue is a loop
  Value pieceOffset; ///< of this piece's panel in the scratch, if panels are shared among threads

  explicit ContractEmitter(KernelEmitter &e) : e(e), b(e.b), loc(e.loc) {
    for (Operation &inner : e.kernel.getBlock()->without_terminator())
      if (auto contract = dyn_cast<ir::ContractOp>(inner))
        op = contract;
    a = op.getA();
    bOperand = op.getB();
    element = cast<RankedTensorType>(a.getType()).getElementType();
    lanes = e.target.vectorBytes / (element.getIntOrFloatBitWidth() / 8);
    sortLetters();
    lanes = std::min(lanes, e.lanesFor(lane().size));
    findStreamed();
  }

  /// Classifies and merges the letters; exchanges a and b if c's innermost letter is one of a's.
  void sortLetters() {
    StringRef inA = op.lettersOfA(), inB = op.lettersOfB(), inC = op.lettersOfC();
    if (!inC.empty() && !inB.contains(inC.back())) {
      std::swap(a, bOperand);
      std::swap(inA, inB);
    }
    SmallVector<int64_t> stridesA = rowMajorStrides(shapeOf(a)), stridesB = rowMajorStrides(shapeOf(bOperand));
    auto add = [&](SmallVector<Letter> &group, char name, bool merge) {
      Letter letter{1, 0, 0, {}};
      size_t pa = inA.find(name), pb = inB.find(name), pc = inC.find(name);
      if (pa != StringRef::npos) {
        letter.size = shapeOf(a)[pa];
        letter.strideA = stridesA[pa];
      }
      if (pb != StringRef::npos) {
        letter.size = shapeOf(bOperand)[pb];
        letter.strideB = stridesB[pb];
      }
      if (pc != StringRef::npos)
        letter.axesOfC.push_back(pc);
      if (merge && !group.empty()) {
        Letter &last = group.back();
        bool neighboursInC = last.axesOfC.empty() || (pc != StringRef::npos && last.axesOfC.back() + 1 == pc);
        if (last.strideA == letter.strideA * letter.size && last.strideB == letter.strideB * letter.size &&
            neighboursInC) {
          last.size *= letter.size;
          last.strideA = letter.strideA;
          last.strideB = letter.strideB;
          last.axesOfC.append(letter.axesOfC);
          return;
        }
      }
      group.push_back(letter);
    };
    // A vector that crosses from one column of a merged n into the next has no coordinates that an epilogue could use.
    bool hasEpilogue =
        std::next(op->getIterator()) != e.kernel.getYield()->getIterator() || &e.kernel.getBlock()->front() != op;
    for (char name : inC) {
      bool isA = inA.contains(name), isB = inB.contains(name);
      add(isA && isB ? batch : isA ? m : n, name, isA || !hasEpilogue);
    }
    for (char name : inA)
      if (!inC.contains(name))
        add(k, name, true);
  }

  /// Vectors across a panel. Where the epilogue streams operands, rows of four (256 bytes) suit the memory
  /// better than tiles of twelve rows.
  int panelVectors() const { return streamed.empty() ? 2 : 4; }
  int vectorsOfTile(int64_t columns) const {
    return static_cast<int>(std::min<int64_t>(panelVectors(), (columns + lanes - 1) / lanes));
  }
  /// Rows of a tile whose accumulators, one row of b and one broadcast fit the registers.
  int rowsOfTile(int vectors) const { return (e.target.numVectorRegisters == 32 ? 24 : 12) / vectors; }

  const Letter &lane() const { return n.back(); }
  int64_t sizeK() const {
    int64_t size = 1;
    for (const Letter &letter : k)
      size *= letter.size;
    return size;
  }
  int64_t rows() const { return m.empty() ? 1 : m.back().size; }

  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Rows at such a distance share a few cache sets, and each lies on a page of its own.
  bool thrashes(int64_t stride) const { return stride * elementBytes() % 2048 == 0 && sizeK() >= 64; }

  /// Whether a panel of b is copied before use.
  bool packsB() const {
    if (lane().strideB != 1)
      return lane().size > 1;
    bool large =
        sizeK() * lane().size * elementBytes() > (int64_t(1) << 20) || (!k.empty() && thrashes(k.back().strideB));
    return large && rows() >= 4 * rowsOfTile(panelVectors());
  }
  /// Whether a is copied tile by tile: each tile is read once a panel.
  bool packsA() const {
    return m.size() == 1 && k.size() == 1 && m[0].strideA == 1 && thrashes(k[0].strideA) && lane().size >= 8 * lanes;
  }
  int64_t panelElements() const { return packsB() ? sizeK() * panelVectors() * lanes : 0; }
  int64_t scratchBytes() const {
    int64_t tiles = packsA() ? (rows() + rowsOfTile(panelVectors()) - 1) / rowsOfTile(panelVectors()) : 0;
    // Where the sum is beyond 64 bits, so is the workspace: the memory plan refuses it.
    int64_t panels = runtime::saturatingMul(panelElements(), e.numPieces()),
            packed = runtime::saturatingMul(tiles * rowsOfTile(panelVectors()), sizeK());
    return runtime::saturatingMul(runtime::saturatingAdd(panels, packed), elementBytes());
  }

  // ---- Emission -----------------------------------------------------------------------------------------------------

  /// Coordinates of c's axes of a letter at `at`, the innermost with a lane stride.
  void place(Point &point, const Letter &letter, Value at, int64_t laneStride) {
    if (letter.axesOfC.size() == 1) {
      point.at[letter.axesOfC[0]] = {at, laneStride};
      return;
    }
    // A merged letter: the axes' coordinates are quotients and remainders.
    Value rest = at;
    for (unsigned axis : llvm::reverse(letter.axesOfC)) {
      int64_t size = e.axes[axis].size;
      bool outermost = axis == letter.axesOfC.front();
      Value coordinate = outermost ? rest : Value(arith::RemUIOp::create(b, loc, rest, e.index(size)));
      point.at[axis] = {coordinate, axis == letter.axesOfC.back() ? laneStride : 0};
      if (!outermost)
        rest = arith::DivUIOp::create(b, loc, rest, e.index(size));
    }
  }

  Value pointerAt(Value base, Value offset) {
    auto type = LLVM::LLVMPointerType::get(b.getContext());
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), offset);
    return LLVM::GEPOp::create(b, loc, type, element, base, ArrayRef<LLVM::GEPArg>{wide});
  }
  unsigned alignment() const { return element.getIntOrFloatBitWidth() / 8; }
  VectorType vectorType() const { return VectorType::get({lanes}, element); }

  Value loadScalar(Value base, Value offset) {
    return LLVM::LoadOp::create(b, loc, element, pointerAt(base, offset), alignment());
  }
  Value loadVector(Value base, Value offset, Value mask) {
    Value pointer = pointerAt(base, offset);
    if (!mask)
      return LLVM::LoadOp::create(b, loc, vectorType(), pointer, alignment());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    return LLVM::MaskedLoadOp::create(b, loc, vectorType(), pointer, mask, zero, alignment());
  }
  void storeVector(Value base, Value offset, Value value) {
    LLVM::StoreOp::create(b, loc, value, pointerAt(base, offset), alignment());
  }

  /// Loops over the letters of `group`, adding their strides to the offsets into a and b.
  void nest(ArrayRef<Letter> group, Value offsetA, Value offsetB, Point &point,
            llvm::function_ref<void(Value, Value)> body) {
    if (group.empty())
      return body(offsetA, offsetB);
    const Letter &letter = group.front();
    e.loop(0, letter.size, 1, [&](Value i) {
      place(point, letter, i, 0);
      nest(group.drop_front(), e.add(offsetA, e.mul(i, letter.strideA)), e.add(offsetB, e.mul(i, letter.strideB)),
           point, body);
    });
  }

  LogicalResult emit(Value begin, Value end) {
    Point origin;
    origin.at.assign(e.axes.size(), {e.index(0), 0});
    baseA = e.pointerOf.lookup(a);
    for (const Letter &letter : k)
      stridesA.push_back(letter.strideA);
    strideM = m.empty() ? 0 : m.back().strideA;
    nest(batch, e.index(0), e.index(0), origin, [&](Value offsetA, Value offsetB) {
      if (packsA())
        offsetA = packA(offsetA);
      nest(ArrayRef(n).drop_back(), offsetA, offsetB, origin, [&](Value offsetA, Value offsetB) {
        int64_t width = panelVectors() * lanes, size = lane().size, whole = size / width;
        auto last = [&](Value j) {
          panel(offsetA, offsetB, j, vectorsOfTile(size - whole * width), size - whole * width, origin);
        };
        if (e.chunks == 1) {
          e.loop(0, whole * width, width, [&](Value j) { panel(offsetA, offsetB, j, panelVectors(), width, origin); });
          if (whole * width < size)
            last(e.index(whole * width));
          return;
        }
        // Panels are shared among threads; each piece packs into its own part of the scratch.
        if (packsB())
          pieceOffset = e.mul(arith::DivUIOp::create(b, loc, begin, e.index(e.chunksPerPiece())), panelElements());
        e.loop(begin, arith::MinUIOp::create(b, loc, end, e.index(whole)), 1, [&](Value panelIndex) {
          panel(offsetA, offsetB, e.mul(panelIndex, width), panelVectors(), width, origin);
        });
        if (whole * width < size)
          e.onLastChunk(end, whole, [&] { last(e.index(whole * width)); });
      });
    });
    return success();
  }

  /// All rows of one panel: columns [j, j + columns) of c, `vectors` vectors wide.
  void panel(Value offsetA, Value offsetB, Value j, int vectors, int64_t columns, Point &origin) {
    Value base = e.pointerOf.lookup(bOperand);
    Value panelOffset = e.add(offsetB, e.mul(j, lane().strideB));
    SmallVector<int64_t> panelStrides; // of b within the panel, one per letter of k
    for (const Letter &letter : k)
      panelStrides.push_back(letter.strideB);
    bool packed = packsB();
    if (packed) {
      pack(base, panelOffset, vectors, columns);
      base = e.scratchPointer;
      panelOffset = pieceOffset ? pieceOffset : e.index(0);
      int64_t stride = static_cast<int64_t>(vectors) * lanes;
      for (int i = static_cast<int>(k.size()) - 1; i >= 0; --i) {
        panelStrides[i] = stride;
        stride *= k[i].size;
      }
    }
    SmallVector<Value> masks;
    for (int v = 0; v < vectors; ++v)
      masks.push_back(e.tailMask(lanes, columns - static_cast<int64_t>(v) * lanes));
    SmallVector<Value> loadMasks = packed ? SmallVector<Value>(vectors) : masks;
    auto rowTiles = [&](Value offsetA) {
      if (m.empty())
        return tile(offsetA, base, panelOffset, panelStrides, {}, 1, j, masks, loadMasks, origin);
      const Letter &letter = m.back();
      int height = packsA() ? rowsOfTile(panelVectors()) : rowsOfTile(vectors);
      int64_t whole = letter.size / height * height;
      auto emitTile = [&](Value i, int count) {
        tile(e.add(offsetA, e.mul(i, packsA() ? sizeK() : letter.strideA)), base, panelOffset, panelStrides, i, count,
             j, masks, loadMasks, origin);
      };
      e.loop(0, whole, height, [&](Value i) { emitTile(i, height); });
      if (whole < letter.size)
        emitTile(e.index(whole), static_cast<int>(letter.size - whole));
    };
    if (m.empty())
      rowTiles(offsetA);
    else
      nest(ArrayRef(m).drop_back(), offsetA, e.index(0), origin, [&](Value offsetA, Value) { rowTiles(offsetA); });
  }

  /// Accumulates over k, then the epilogue: `count` rows from i, one accumulator a row and vector.
  void tile(Value offsetA, Value base, Value panelOffset, ArrayRef<int64_t> panelStrides, Value i, int count, Value j,
            ArrayRef<Value> masks, ArrayRef<Value> loadMasks, Point &origin) {
    int vectors = static_cast<int>(masks.size());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    SmallVector<Value> start(static_cast<size_t>(count) * vectors, zero);
    bool fetches = i && canFetch();
    std::function<SmallVector<Value>(size_t, Value, Value, ValueRange)> sum = [&](size_t depth, Value atA, Value atB,
                                                                                  ValueRange acc) {
      if (depth == k.size()) {
        SmallVector<Value> next, columnsOfB;
        for (int v = 0; v < vectors; ++v)
          columnsOfB.push_back(loadVector(base, e.add(atB, e.index(v * lanes)), loadMasks[v]));
        for (int r = 0; r < count; ++r) {
          Value scalar = e.splat(loadScalar(baseA, e.add(atA, e.index(r * strideM))), lanes);
          for (int v = 0; v < vectors; ++v)
            next.push_back(fma(scalar, columnsOfB[v], acc[r * vectors + v]));
        }
        return next;
      }
      const Letter &letter = k[depth];
      auto terms = [&](int64_t size, Value fromA, Value fromB, ValueRange first) {
        return e.loop(0, size, 1, first, [&](Value p, ValueRange carried) {
          if (fetches)
            fetch(p, i, j, count, vectors);
          return sum(depth + 1, e.add(fromA, e.mul(p, stridesA[depth])), e.add(fromB, e.mul(p, panelStrides[depth])),
                     carried);
        });
      };
      // Blocks of about `block` terms: so many rounds of this letter, or one whose own letters are cut again.
      int64_t block = blockOf(sizeK()), inner = 1;
      for (const Letter &further : ArrayRef(k).drop_front(depth + 1))
        inner *= further.size;
      if (letter.size * inner <= 2 * block)
        return terms(letter.size, atA, atB, acc);
      block = std::max<int64_t>(1, block / inner);
      int64_t whole = letter.size / block * block;
      auto addBlock = [&](int64_t size, Value p, ValueRange totals) {
        SmallVector<Value> part =
            terms(size, e.add(atA, e.mul(p, stridesA[depth])), e.add(atB, e.mul(p, panelStrides[depth])), start);
        for (auto [value, total] : llvm::zip_equal(part, totals))
          value = arith::AddFOp::create(b, loc, total, value);
        return part;
      };
      SmallVector<Value> totals =
          e.loop(0, whole, block, acc, [&](Value p, ValueRange carried) { return addBlock(block, p, carried); });
      return whole < letter.size ? addBlock(letter.size - whole, e.index(whole), totals) : totals;
    };
    SmallVector<Value> acc = sum(0, offsetA, panelOffset, start);
    if (static_cast<int64_t>(acc.size()) * e.opsOfPoint() > kMaxOpsOfTile)
      return finishInLoop(acc, i, count, j, masks, origin);
    // The epilogue sees the product as a value that is already computed.
    SmallVector<Point> points;
    for (int r = 0; r < count; ++r)
      for (int v = 0; v < vectors; ++v) {
        Point point(origin.at, lanes, masks[v]);
        if (i)
          place(point, m.back(), e.add(i, e.index(r)), 0);
        place(point, lane(), e.add(j, e.index(v * lanes)), 1);
        point.values[op.getC()] = acc[r * vectors + v];
        points.push_back(std::move(point));
      }
    // Only a few points at a time, so that what the epilogue holds fits beside the accumulators that wait.
    SmallVector<Value> values = llvm::to_vector(e.kernel.getYield().getValues());
    for (size_t first = 0; first < points.size(); first += vectors) {
      MutableArrayRef<Point> group = MutableArrayRef(points).slice(first, vectors);
      e.evalAll(group, values);
      for (unsigned output = 0; output < values.size(); ++output)
        for (Point &point : group)
          e.store(point, output);
    }
  }

  /// A long epilogue is written once and not for each accumulator: these go to the stack, and a loop takes them from
  /// there, a few rows at a time.
  void finishInLoop(ArrayRef<Value> acc, Value i, int count, Value j, ArrayRef<Value> masks, Point &origin) {
    int vectors = static_cast<int>(masks.size()),
        rows = std::max(1, std::min({count, e.interleave() / vectors, 4 / vectors}));
    while (count % rows != 0)
      --rows;
    if (!tileOnStack) {
      OpBuilder::InsertionGuard guard(b);
      Block &entry = b.getBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front();
      b.setInsertionPointToStart(&entry);
      Value size =
          LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(int64_t(rowsOfTile(1)) * panelVectors() * lanes));
      tileOnStack = LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), element, size,
                                           e.target.vectorBytes);
    }
    for (auto [slot, value] : llvm::enumerate(acc))
      storeVector(tileOnStack, e.index(static_cast<int64_t>(slot) * lanes), value);
    SmallVector<Value> values = llvm::to_vector(e.kernel.getYield().getValues());
    e.loop(0, count, rows, [&](Value first) {
      SmallVector<Point> points;
      for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) {
          Value row = e.add(first, e.index(r));
          Point point(origin.at, lanes, masks[v]);
          if (i)
            place(point, m.back(), e.add(i, row), 0);
          place(point, lane(), e.add(j, e.index(v * lanes)), 1);
          Value slot = e.add(e.mul(row, int64_t(vectors) * lanes), e.index(v * lanes));
          point.values[op.getC()] = loadVector(tileOnStack, slot, {});
          points.push_back(std::move(point));
        }
      e.evalAll(points, values);
      for (unsigned output = 0; output < values.size(); ++output)
        for (Point &point : points)
          e.store(point, output);
    });
  }

  /// Terms that one accumulator takes before it is added to the total: about the root of their
  /// number, so that both sums are short.
  static int64_t blockOf(int64_t terms) {
    int64_t block = 1024;
    while (block * block < terms)
      block *= 2;
    return block;
  }

  // ---- Fetching ahead -----------------------------------------------------------------------------------------------
  //
  // The epilogue's operands (an optimiser's slots) are read a few lines a row, rows pages apart, where no hardware
  // prefetcher follows. Between the multiplications their latency is free: 784 x 128 weights with Adam's update: 162 us
  // without, 144 with, 125 with panels of four vectors as well.

  void findStreamed() {
    ArrayRef<int64_t> shape = shapeOf(op.getC());
    for (BlockArgument argument : e.kernel.getBlock()->getArguments())
      if (shapeOf(argument) == shape && llvm::any_of(argument.getUsers(), [&](Operation *user) { return user != op; }))
        streamed.push_back(argument);
    if (static_cast<int64_t>(streamed.size()) * ShapedType::getNumElements(shape) * elementBytes() < (int64_t(1) << 19))
      streamed.clear();
  }

  /// A plain product with such operands, and a sum long enough to hide a fetch.
  bool canFetch() {
    bool plain = batch.empty() && n.size() == 1 && m.size() == 1 && k.size() == 1 && n[0].axesOfC.size() == 1 &&
                 m[0].axesOfC.size() == 1;
    return plain && k[0].size >= 32 && !streamed.empty();
  }

  /// Called in each of a tile's rounds over k: one row's lines at a time. Fetching a line again costs next to nothing;
  /// a second loop around the rounds would cost a tenth.
  void fetch(Value p, Value i, Value j, int count, int vectors) {
    int64_t roundsOfRow = llvm::Log2_64(std::max<int64_t>(1, std::min<int64_t>(k[0].size, 1024) / count));
    Value row = e.add(i, roundsOfRow > 0 ? Value(arith::ShRUIOp::create(b, loc, p, e.index(roundsOfRow))) : p);
    SmallVector<int64_t> stridesC = rowMajorStrides(shapeOf(op.getC()));
    Value at = e.add(e.mul(row, stridesC[m[0].axesOfC[0]]), e.mul(j, stridesC[n[0].axesOfC[0]]));
    for (Value operand : streamed)
      for (int64_t column = 0; column < static_cast<int64_t>(vectors) * lanes; column += 64 / elementBytes())
        LLVM::Prefetch::create(b, loc, pointerAt(e.pointerOf.lookup(operand), e.add(at, e.index(column))), /*rw=*/0,
                               /*hint=*/3, /*cache=*/1);
  }

  Value fma(Value x, Value y, Value z) {
    if (e.target.hasFma)
      return math::FmaOp::create(b, loc, x, y, z);
    return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, x, y), z);
  }

  /// scratch[tile of m][k][rows of a tile] = a, after the panel of b. Returns the offset of the first tile.
  Value packA(Value offsetA) {
    int height = rowsOfTile(panelVectors());
    int64_t size = m[0].size, whole = size / height * height;
    Value source = baseA, first = e.index(panelElements());
    auto copyTile = [&](Value i, int count) {
      auto type = VectorType::get({count}, element);
      e.loop(0, k[0].size, 1, [&](Value p) {
        Value from = e.add(e.add(offsetA, i), e.mul(p, k[0].strideA));
        Value x = LLVM::LoadOp::create(b, loc, type, pointerAt(source, from), alignment());
        Value to = e.add(e.add(first, e.mul(i, sizeK())), e.mul(p, height));
        LLVM::StoreOp::create(b, loc, x, pointerAt(e.scratchPointer, to), alignment());
      });
    };
    e.loop(0, whole, height, [&](Value i) { copyTile(i, height); });
    if (whole < size)
      copyTile(e.index(whole), static_cast<int>(size - whole));
    baseA = e.scratchPointer;
    stridesA = {height};
    strideM = 1;
    return first;
  }

  Value inPiece(Value offset) { return pieceOffset ? e.add(pieceOffset, offset) : offset; }

  // ---- Packing ------------------------------------------------------------------------------------------------------

  /// scratch[k][vectors * lanes] = b[k, panel]; columns out of range are zero.
  void pack(Value base, Value panelOffset, int vectors, int64_t columns) {
    int64_t width = static_cast<int64_t>(vectors) * lanes;
    const Letter inner = k.empty() ? Letter{1, 0, 0, {}} : k.back();
    std::function<void(size_t, Value, Value)> outer = [&](size_t depth, Value from, Value row) {
      if (depth + 1 < k.size()) {
        e.loop(0, k[depth].size, 1, [&](Value p) {
          outer(depth + 1, e.add(from, e.mul(p, k[depth].strideB)), e.mul(e.add(row, p), k[depth + 1].size));
        });
        return;
      }
      if (lane().strideB == 1)
        return copyRows(base, from, row, 0, inner.size, inner.strideB, vectors, columns, width);
      int64_t whole = inner.strideB == 1 ? inner.size / lanes * lanes : 0;
      e.loop(0, whole, lanes, [&](Value p) {
        for (int v = 0; v < vectors; ++v)
          transposeBlock(base, e.add(from, p), e.add(row, p), v,
                         std::min<int64_t>(lanes, columns - static_cast<int64_t>(v) * lanes), width);
      });
      gatherRows(base, from, row, whole, inner.size, inner.strideB, vectors, columns, width);
    };
    outer(0, panelOffset, e.index(0));
  }

  void copyRows(Value base, Value from, Value row, int64_t first, int64_t last, int64_t stride, int vectors,
                int64_t columns, int64_t width) {
    e.loop(first, last, 1, [&](Value p) {
      for (int v = 0; v < vectors; ++v) {
        Value x = loadVector(base, e.add(e.add(from, e.mul(p, stride)), e.index(v * lanes)),
                             e.tailMask(lanes, columns - static_cast<int64_t>(v) * lanes));
        storeVector(e.scratchPointer, e.add(inPiece(e.mul(e.add(row, p), width)), e.index(v * lanes)), x);
      }
    });
  }

  /// Element by element: what is left over, and layouts without a contiguous axis.
  void gatherRows(Value base, Value from, Value row, int64_t first, int64_t last, int64_t stride, int vectors,
                  int64_t columns, int64_t width) {
    e.loop(first, last, 1, [&](Value p) {
      Value rowFrom = e.add(from, e.mul(p, stride)), rowTo = inPiece(e.mul(e.add(row, p), width));
      if (columns < width)
        storeVector(e.scratchPointer, e.add(rowTo, e.index((vectors - 1) * lanes)),
                    arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType())));
      e.loop(0, columns, 1, [&](Value c) {
        Value x = loadScalar(base, e.add(rowFrom, e.mul(c, lane().strideB)));
        LLVM::StoreOp::create(b, loc, x, pointerAt(e.scratchPointer, e.add(rowTo, c)), alignment());
      });
    });
  }

  /// A block of `lanes` values of k by `count` columns, contiguous along k, transposed in registers.
  void transposeBlock(Value base, Value from, Value row, int v, int64_t count, int64_t width) {
    SmallVector<Value> x(lanes);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    for (int c = 0; c < lanes; ++c)
      x[c] = c < count
                 ? loadVector(base, e.add(from, e.index((static_cast<int64_t>(v) * lanes + c) * lane().strideB)), {})
                 : zero;
    e.transpose(x);
    for (int p = 0; p < lanes; ++p)
      storeVector(e.scratchPointer, e.add(inPiece(e.mul(e.add(row, e.index(p)), width)), e.index(v * lanes)), x[p]);
  }
};

void KernelEmitter::planContract() {
  ContractEmitter contract(*this);
  // Panels of n; a product with batches, further letters of n or a packed a is one piece.
  if (contract.batch.empty() && contract.n.size() == 1 && !contract.packsA())
    chunks = std::max<int64_t>(1, (contract.lane().size + contract.panelVectors() * contract.lanes - 1) /
                                      (contract.panelVectors() * contract.lanes));
  scratch = contract.scratchBytes();
}

LogicalResult KernelEmitter::emitContract(Value begin, Value end) { return ContractEmitter(*this).emit(begin, end); }

} // namespace wg::codegen
