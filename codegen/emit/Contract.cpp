// Contract kernels: c = sum over k of a * b, and what follows elementwise, tile by tile from registers.
//
// The letters of the equation are sorted into batch (in a, b, c), m (a, c), n (b, c) and k (a, b) by runtime/Letters;
// neighbours that every tensor steps through as one axis are merged. Vectors lie along c's innermost letter, so that c
// is stored in vectors. That is a letter of batch, and then a and b are read in vectors too and a tile is rows of m by
// columns of n; or one of n, where a and b change roles if that is needed. Then, per batch and per panel of n:
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

using runtime::Letter;

} // namespace

struct ContractEmitter {
  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  ir::ContractOp op;
  Value a, bOperand;
  std::vector<Letter> batch, m, n, k; ///< without the lanes' letter
  Letter lane;                        ///< c's innermost letter: vectors lie along it
  bool alongBatch = false;            ///< whether it is a letter of batch, so that a and b are read in vectors
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
    lanes = std::min(lanes, e.lanesFor(lane.size));
    findStreamed();
  }

  /// Classifies and merges the letters; exchanges a and b if c's innermost letter is one of a's alone.
  void sortLetters() {
    runtime::Letters letters = op.letters();
    for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
      dropUnits(*group);
    auto endsC = [](const std::vector<Letter> &group) { return !group.empty() && group.back().c == 1; };
    if (endsC(letters.m)) {
      letters.exchange();
      std::swap(a, bOperand);
    }
    batch = std::move(letters.batch), m = std::move(letters.m), n = std::move(letters.n), k = std::move(letters.k);
    alongBatch = endsC(batch);
    // A vector that crosses from one column of a merged letter into the next has no coordinates that an epilogue could
    // use.
    bool hasEpilogue =
        std::next(op->getIterator()) != e.kernel.getYield()->getIterator() || &e.kernel.getBlock()->front() != op;
    std::vector<Letter> &inner = alongBatch ? batch : n;
    auto takeLane = [&] {
      if (!inner.empty()) {
        lane = inner.back();
        inner.pop_back();
      }
    };
    if (hasEpilogue)
      takeLane();
    for (std::vector<Letter> *group : {&batch, &m, &n, &k})
      mergeNeighbours(*group);
    if (!hasEpilogue)
      takeLane();
    longestLast(m, rowsOfTile(2));
    if (alongBatch)
      longestLast(n, panelVectors());
    // Blocks of b are packed along a letter in which b is contiguous.
    if (!alongBatch && lane.b != 1)
      if (auto dense = llvm::find_if(k, [](const Letter &letter) { return letter.b == 1; }); dense != k.end())
        std::rotate(dense, dense + 1, k.end());
  }

  /// The last letter is the one of which a tile takes several: the longest, if there are too few of the last.
  static void longestLast(std::vector<Letter> &group, int64_t wanted) {
    if (group.size() < 2 || group.back().size >= wanted)
      return;
    auto longest =
        std::max_element(group.begin(), group.end(), [](const Letter &x, const Letter &y) { return x.size < y.size; });
    std::rotate(longest, longest + 1, group.end());
  }

  /// c's axes that a letter stands for, outermost first.
  SmallVector<unsigned> axesOfC(const Letter &letter) {
    SmallVector<unsigned> axes;
    for (char name : letter.names)
      if (size_t axis = op.lettersOfC().find(name); axis != StringRef::npos)
        axes.push_back(axis);
    return axes;
  }

  /// Vectors across a panel, or columns of a tile where vectors lie along a batch. Where the epilogue streams operands,
  /// rows of four (256 bytes) suit the memory better than tiles of twelve rows.
  int panelVectors() { return streamed.empty() && !alongBatch && !writesMuch() ? 2 : 4; }
  /// A short sum is bound by the stores of c, of which longer rows suit the memory as well.
  bool writesMuch() {
    return sizeK() <= 64 && ShapedType::getNumElements(shapeOf(op.getC())) * elementBytes() > (int64_t(1) << 20);
  }
  /// Lanes of c that a panel has.
  int64_t panelWidth() { return static_cast<int64_t>(alongBatch && !n.empty() ? 1 : panelVectors()) * lanes; }
  int vectorsOfTile(int64_t columns) {
    return static_cast<int>(std::min<int64_t>(panelVectors(), (columns + lanes - 1) / lanes));
  }
  /// Rows of a tile whose accumulators, one row of b and one broadcast fit the registers.
  int rowsOfTile(int vectors) const { return (e.target.numVectorRegisters == 32 ? 24 : 12) / vectors; }

  int64_t sizeK() const { return sizeOf(k); }
  int64_t rows() const { return m.empty() ? 1 : m.back().size; }

  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Rows at such a distance share a few cache sets, and each lies on a page of its own.
  bool thrashes(int64_t stride) const { return stride * elementBytes() % 2048 == 0 && sizeK() >= 64; }

  bool isEmpty() { return ShapedType::getNumElements(shapeOf(op.getC())) == 0; }

  /// Whether a panel of b is copied before use.
  bool packsB() {
    if (alongBatch || isEmpty())
      return false;
    if (lane.b != 1)
      return lane.size > 1;
    bool large = sizeK() * lane.size * elementBytes() > (int64_t(1) << 20) || (!k.empty() && thrashes(k.back().b));
    return large && rows() >= 4 * rowsOfTile(panelVectors());
  }
  /// Whether a is copied tile by tile: each tile is read once a panel.
  bool packsA() {
    return !alongBatch && !isEmpty() && m.size() == 1 && k.size() == 1 && m[0].a == 1 && thrashes(k[0].a) &&
           lane.size >= 8 * lanes;
  }
  int64_t panelElements() { return packsB() ? sizeK() * panelVectors() * lanes : 0; }
  int64_t scratchBytes() {
    int64_t tiles = packsA() ? (rows() + rowsOfTile(panelVectors()) - 1) / rowsOfTile(panelVectors()) : 0;
    // Where the sum is beyond 64 bits, so is the workspace: the memory plan refuses it.
    int64_t panels = runtime::saturatingMul(panelElements(), e.numPieces()),
            packed = runtime::saturatingMul(tiles * rowsOfTile(panelVectors()), sizeK());
    return runtime::saturatingMul(runtime::saturatingAdd(panels, packed), elementBytes());
  }

  // ---- Emission -----------------------------------------------------------------------------------------------------

  /// Coordinates of c's axes of a letter at `at`, the innermost with a lane stride.
  void place(Point &point, const Letter &letter, Value at, int64_t laneStride) {
    SmallVector<unsigned> axes = axesOfC(letter);
    if (axes.empty()) // c is one element
      return;
    if (axes.size() == 1) {
      point.at[axes[0]] = {at, laneStride};
      return;
    }
    // A merged letter: the axes' coordinates are quotients and remainders.
    Value rest = at;
    for (unsigned axis : llvm::reverse(axes)) {
      int64_t size = e.axes[axis].size;
      bool outermost = axis == axes.front();
      Value coordinate = outermost ? rest : Value(arith::RemUIOp::create(b, loc, rest, e.index(size)));
      point.at[axis] = {coordinate, axis == axes.back() ? laneStride : 0};
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
  /// Elements that are `step` apart.
  Value loadLanes(Value base, Value offset, int64_t step, Value mask) {
    return e.load(Point(ir::Coordinate{offset, step}, lanes, mask), base, element, int64_t(1), 0);
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
      nest(group.drop_front(), e.add(offsetA, e.mul(i, letter.a)), e.add(offsetB, e.mul(i, letter.b)), point, body);
    });
  }

  LogicalResult emit(Value begin, Value end) {
    Point origin;
    origin.at.assign(e.axes.size(), {e.index(0), 0});
    baseA = e.pointerOf.lookup(a);
    for (const Letter &letter : k)
      stridesA.push_back(letter.a);
    strideM = m.empty() ? 0 : m.back().a;
    nest(batch, e.index(0), e.index(0), origin, [&](Value offsetA, Value offsetB) {
      if (packsA())
        offsetA = packA(offsetA);
      nest(alongBatch ? ArrayRef<Letter>() : ArrayRef<Letter>(n), offsetA, offsetB, origin,
           [&](Value offsetA, Value offsetB) {
             int64_t width = panelWidth(), size = lane.size, whole = size / width * width;
             auto last = [&] { panel(offsetA, offsetB, e.index(whole), size - whole, origin); };
             if (e.chunks == 1) {
               e.loop(0, whole, width, [&](Value j) { panel(offsetA, offsetB, j, width, origin); });
               if (whole < size)
                 last();
               return;
             }
             // Panels are shared among threads; each piece packs into its own part of the scratch.
             if (packsB())
               pieceOffset = e.mul(arith::DivUIOp::create(b, loc, begin, e.index(e.chunksPerPiece())), panelElements());
             e.loop(begin, arith::MinUIOp::create(b, loc, end, e.index(whole / width)), 1,
                    [&](Value panelIndex) { panel(offsetA, offsetB, e.mul(panelIndex, width), width, origin); });
             if (whole < size)
               e.onLastChunk(end, whole / width, last);
           });
    });
    return success();
  }

  /// Tiles of rows of m by the vectors of a panel: what all tiles of one panel share.
  struct Panel {
    Value base, offset;           ///< b, or its copy
    SmallVector<int64_t> strides; ///< of it, one a letter of k
    int64_t step;                 ///< from one vector of it to the next
    Value j;                      ///< the first lane
    Value column;                 ///< of n's last letter, which the vectors count where they lie along a batch
    SmallVector<Value> masks, loadMasks;
  };

  /// All rows of one panel: `count` lanes of c from j on.
  void panel(Value offsetA, Value offsetB, Value j, int64_t count, Point &origin) {
    Panel panel{e.pointerOf.lookup(bOperand), e.add(offsetB, e.mul(j, lane.b)), {}, lanes * lane.b, j, {}, {}, {}};
    if (!alongBatch)
      panel.step = lanes;
    offsetA = e.add(offsetA, e.mul(j, lane.a));
    for (const Letter &letter : k)
      panel.strides.push_back(letter.b);
    if (alongBatch && !n.empty()) {
      // One vector of lanes; columns of n beside each other.
      const Letter &letter = n.back();
      panel.step = letter.b;
      Value mask = e.tailMask(lanes, count);
      nest(ArrayRef(n).drop_back(), offsetA, panel.offset, origin, [&](Value offsetA, Value offsetB) {
        int64_t width = std::clamp<int64_t>(letter.size, 1, panelVectors()), whole = letter.size / width * width;
        auto columns = [&](Value q, int64_t vectors) {
          Panel part = panel;
          part.offset = e.add(offsetB, e.mul(q, letter.b));
          part.column = q;
          part.masks.assign(vectors, mask);
          part.loadMasks = part.masks;
          rowTiles(offsetA, part, origin);
        };
        e.loop(0, whole, width, [&](Value q) { columns(q, width); });
        if (whole < letter.size)
          columns(e.index(whole), letter.size - whole);
      });
      return;
    }
    int vectors = vectorsOfTile(count);
    bool packed = packsB();
    if (packed) {
      pack(panel.base, panel.offset, vectors, count);
      panel.base = e.scratchPointer;
      panel.offset = pieceOffset ? pieceOffset : e.index(0);
      int64_t stride = static_cast<int64_t>(vectors) * lanes;
      for (int i = static_cast<int>(k.size()) - 1; i >= 0; --i) {
        panel.strides[i] = stride;
        stride *= k[i].size;
      }
    }
    for (int v = 0; v < vectors; ++v)
      panel.masks.push_back(e.tailMask(lanes, count - static_cast<int64_t>(v) * lanes));
    panel.loadMasks = packed ? SmallVector<Value>(vectors) : panel.masks;
    rowTiles(offsetA, panel, origin);
  }

  void rowTiles(Value offsetA, const Panel &panel, Point &origin) {
    if (m.empty())
      return tile(offsetA, panel, {}, 1, origin);
    const Letter &letter = m.back();
    int height = packsA() ? rowsOfTile(panelVectors()) : rowsOfTile(static_cast<int>(panel.masks.size()));
    int64_t whole = letter.size / height * height;
    auto emitTile = [&](Value offsetA, Value i, int count) {
      tile(e.add(offsetA, e.mul(i, packsA() ? sizeK() : letter.a)), panel, i, count, origin);
    };
    nest(ArrayRef(m).drop_back(), offsetA, e.index(0), origin, [&](Value offsetA, Value) {
      e.loop(0, whole, height, [&](Value i) { emitTile(offsetA, i, height); });
      if (whole < letter.size)
        emitTile(offsetA, e.index(whole), static_cast<int>(letter.size - whole));
    });
  }

  /// Accumulates over k, then the epilogue: `count` rows from i, one accumulator a row and vector.
  void tile(Value offsetA, const Panel &panel, Value i, int count, Point &origin) {
    int vectors = static_cast<int>(panel.masks.size());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    SmallVector<Value> start(static_cast<size_t>(count) * vectors, zero);
    bool fetches = i && canFetch();
    std::function<SmallVector<Value>(size_t, Value, Value, ValueRange)> sum = [&](size_t depth, Value atA, Value atB,
                                                                                  ValueRange acc) {
      if (depth == k.size()) {
        SmallVector<Value> next, columnsOfB;
        for (int v = 0; v < vectors; ++v) {
          Value at = e.add(atB, e.index(v * panel.step));
          columnsOfB.push_back(alongBatch ? loadLanes(panel.base, at, lane.b, panel.masks[v])
                                          : loadVector(panel.base, at, panel.loadMasks[v]));
        }
        for (int r = 0; r < count; ++r) {
          Value rowOfA, at = e.add(atA, e.index(r * strideM));
          for (int v = 0; v < vectors; ++v) {
            if (!alongBatch && v == 0)
              rowOfA = e.splat(loadScalar(baseA, at), lanes);
            else if (alongBatch && (v == 0 || !panel.column))
              rowOfA = loadLanes(baseA, e.add(at, e.index(v * lanes * lane.a)), lane.a, panel.masks[v]);
            next.push_back(fma(rowOfA, columnsOfB[v], acc[r * vectors + v]));
          }
        }
        return next;
      }
      const Letter &letter = k[depth];
      auto terms = [&](int64_t size, Value fromA, Value fromB, ValueRange first) {
        return e.loop(0, size, 1, first, [&](Value p, ValueRange carried) {
          if (fetches)
            fetch(p, i, panel.j, count, vectors);
          return sum(depth + 1, e.add(fromA, e.mul(p, stridesA[depth])), e.add(fromB, e.mul(p, panel.strides[depth])),
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
            terms(size, e.add(atA, e.mul(p, stridesA[depth])), e.add(atB, e.mul(p, panel.strides[depth])), start);
        for (auto [value, total] : llvm::zip_equal(part, totals))
          value = arith::AddFOp::create(b, loc, total, value);
        return part;
      };
      SmallVector<Value> totals =
          e.loop(0, whole, block, acc, [&](Value p, ValueRange carried) { return addBlock(block, p, carried); });
      return whole < letter.size ? addBlock(letter.size - whole, e.index(whole), totals) : totals;
    };
    SmallVector<Value> acc = sum(0, offsetA, panel.offset, start);
    if (static_cast<int64_t>(acc.size()) * e.opsOfPoint() > kMaxOpsOfTile)
      return finishInLoop(acc, panel, i, count, origin);
    // Only a few points at a time, so that what the epilogue holds fits beside the accumulators that wait.
    for (int r = 0; r < count; ++r)
      finish(panel, i, e.index(r), 1, origin, [&](int, int v) { return acc[r * vectors + v]; });
  }

  /// The epilogue of `rows` rows of a tile from its row `first` on, all at a time.
  void finish(const Panel &panel, Value i, Value first, int rows, Point &origin,
              llvm::function_ref<Value(int row, int vector)> accumulator) {
    SmallVector<Point> points;
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < static_cast<int>(panel.masks.size()); ++v) {
        Point point(origin.at, lanes, panel.masks[v]);
        if (i)
          place(point, m.back(), e.add(i, e.add(first, e.index(r))), 0);
        if (panel.column)
          place(point, n.back(), e.add(panel.column, e.index(v)), 0);
        place(point, lane, panel.column ? panel.j : e.add(panel.j, e.index(v * lanes)), 1);
        // The epilogue sees the product as a value that is already computed.
        point.values[op.getC()] = accumulator(r, v);
        points.push_back(std::move(point));
      }
    SmallVector<Value> values = llvm::to_vector(e.kernel.getYield().getValues());
    e.evalAll(points, values);
    for (unsigned output = 0; output < values.size(); ++output)
      for (Point &point : points)
        e.store(point, output);
  }

  /// A long epilogue is written once and not for each accumulator: these go to the stack, and a loop takes them from
  /// there, a few rows at a time.
  void finishInLoop(ArrayRef<Value> acc, const Panel &panel, Value i, int count, Point &origin) {
    int vectors = static_cast<int>(panel.masks.size()),
        rows = std::clamp(std::min(e.interleave(), 4) / vectors, 1, count);
    while (count % rows != 0)
      --rows;
    if (!tileOnStack) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&b.getBlock()->getParent()->getParentOfType<func::FuncOp>().getBody().front());
      Value size = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(int64_t(rowsOfTile(1)) * lanes));
      tileOnStack = LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), element, size,
                                           e.target.vectorBytes);
    }
    for (auto [slot, value] : llvm::enumerate(acc))
      storeVector(tileOnStack, e.index(static_cast<int64_t>(slot) * lanes), value);
    e.loop(0, count, rows, [&](Value first) {
      finish(panel, i, first, rows, origin, [&](int r, int v) {
        Value slot = e.mul(e.add(first, e.index(r)), int64_t(vectors) * lanes);
        return loadVector(tileOnStack, e.add(slot, e.index(v * lanes)), {});
      });
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
    auto place = AffineMapAttr::get(e.places.mapOf(op.getC()));
    for (auto [reads, argument] : llvm::zip_equal(e.loops.getReads(), e.kernel.getBlock()->getArguments()))
      if (llvm::is_contained(cast<ArrayAttr>(reads), place) &&
          llvm::any_of(argument.getUsers(), [&](Operation *user) { return user != op; }))
        streamed.push_back(argument);
    int64_t elements = ShapedType::getNumElements(shapeOf(op.getC()));
    if (static_cast<int64_t>(streamed.size()) * elements * elementBytes() < (int64_t(1) << 19))
      streamed.clear();
  }

  /// A plain product with such operands, and a sum long enough to hide a fetch.
  bool canFetch() {
    bool plain = batch.empty() && n.empty() && !alongBatch && m.size() == 1 && k.size() == 1 &&
                 axesOfC(lane).size() == 1 && m[0].names.size() == 1;
    return plain && k[0].size >= 32 && !streamed.empty();
  }

  /// Called in each of a tile's rounds over k: one row's lines at a time. Fetching a line again costs next to nothing;
  /// a second loop around the rounds would cost a tenth.
  void fetch(Value p, Value i, Value j, int count, int vectors) {
    int64_t roundsOfRow = llvm::Log2_64(std::max<int64_t>(1, std::min<int64_t>(k[0].size, 1024) / count));
    Value row = e.add(i, roundsOfRow > 0 ? Value(arith::ShRUIOp::create(b, loc, p, e.index(roundsOfRow))) : p);
    Value at = e.add(e.mul(row, m[0].c), e.mul(j, lane.c));
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
        Value from = e.add(e.add(offsetA, i), e.mul(p, k[0].a));
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
    const Letter inner = k.empty() ? Letter{} : k.back();
    std::function<void(size_t, Value, Value)> outer = [&](size_t depth, Value from, Value row) {
      if (depth + 1 < k.size()) {
        e.loop(0, k[depth].size, 1, [&](Value p) {
          outer(depth + 1, e.add(from, e.mul(p, k[depth].b)), e.mul(e.add(row, p), k[depth + 1].size));
        });
        return;
      }
      if (lane.b == 1)
        return copyRows(base, from, row, 0, inner.size, inner.b, vectors, columns, width);
      int64_t whole = inner.b == 1 ? inner.size / lanes * lanes : 0;
      e.loop(0, whole, lanes, [&](Value p) {
        for (int v = 0; v < vectors; ++v)
          transposeBlock(base, e.add(from, p), e.add(row, p), v,
                         std::min<int64_t>(lanes, columns - static_cast<int64_t>(v) * lanes), width);
      });
      gatherRows(base, from, row, whole, inner.size, inner.b, vectors, columns, width);
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
        Value x = loadScalar(base, e.add(rowFrom, e.mul(c, lane.b)));
        LLVM::StoreOp::create(b, loc, x, pointerAt(e.scratchPointer, e.add(rowTo, c)), alignment());
      });
    });
  }

  /// A block of `lanes` values of k by `count` columns, contiguous along k, transposed in registers.
  void transposeBlock(Value base, Value from, Value row, int v, int64_t count, int64_t width) {
    SmallVector<Value> x(lanes);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
    for (int c = 0; c < lanes; ++c)
      x[c] =
          c < count ? loadVector(base, e.add(from, e.index((static_cast<int64_t>(v) * lanes + c) * lane.b)), {}) : zero;
    e.transpose(x);
    for (int p = 0; p < lanes; ++p)
      storeVector(e.scratchPointer, e.add(inPiece(e.mul(e.add(row, e.index(p)), width)), e.index(v * lanes)), x[p]);
  }
};

void KernelEmitter::planContract() {
  ContractEmitter contract(*this);
  // Panels; a product with further batches or letters of n outside of them, or with a packed a, is one piece.
  if (contract.batch.empty() && (contract.alongBatch || contract.n.empty()) && !contract.packsA())
    chunks = std::max<int64_t>(1, (contract.lane.size + contract.panelWidth() - 1) / contract.panelWidth());
  scratch = contract.scratchBytes();
}

LogicalResult KernelEmitter::emitContract(Value begin, Value end) { return ContractEmitter(*this).emit(begin, end); }

} // namespace wg::codegen
