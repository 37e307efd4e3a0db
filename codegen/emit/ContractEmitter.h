// A contract kernel on its way to loops: how its letters are walked, tiled and packed. Private to emit/.
//
// Contract.cpp holds the tiles, ContractRows.cpp how rows are gone through, and by which threads, ContractPack.cpp the
// copies of panels, ContractParts.cpp long sums in parts, ContractFetch.cpp what is asked for ahead, Windows.cpp the
// loops of related letters.
#pragma once

#include "codegen/emit/KernelEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <optional>

namespace wg::codegen {

/// A panel of so many bytes stays in the nearest cache while all tiles read it.
inline constexpr int64_t kBytesCloseBy = 32 * 1024;

struct ContractEmitter {
  using Letter = runtime::Letter;
  using Value = mlir::Value;
  template <class T> using SmallVector = llvm::SmallVector<T>;

  KernelEmitter &e;
  mlir::OpBuilder &b;
  mlir::Location loc;
  ir::ContractOp op;
  Value a, bOperand;
  std::vector<Letter> batch, m, n, k; ///< without the lanes' letter
  std::vector<runtime::Related> related;
  Letter lane;             ///< c's innermost letter: vectors lie along it
  bool alongBatch = false; ///< whether it is a letter of batch, so that a and b are read in vectors
  mlir::Type element;
  int lanes;
  Value baseA;                   ///< of a, or of its packed tiles
  SmallVector<int64_t> stridesA; ///< per letter of k
  int64_t strideM = 0;           ///< from one row of a tile to the next, in a
  /// Of all that a point reads and writes, by c's axes.
  SmallVector<SmallVector<int64_t>> stridesOfPoint;
  /// Operands of the epilogue that are read at c's place and that the first cache cannot hold.
  SmallVector<Value> streamed;
  Value tileOnStack; ///< accumulators of a tile whose epilogue is a loop
  Value pieceOffset; ///< of this piece's panel in the scratch, if panels are shared among threads
  // Related letters: see Windows.cpp.
  int rowRelation = -1;                ///< whose letter of c a tile has rows of; -1: those of m's last letter
  std::vector<Letter> outer;           ///< of m and of c's related letters, what is outside of the tiles
  std::vector<int> outerRelation;      ///< for each of these, the number of its relation, or -1
  int64_t rowPhase = 0, rowPhases = 1; ///< row i is place rowPhase + rowPhases * i of its letter
  Value pieceBegin, pieceEnd;
  /// What tiles do: all of their sums and what follows, or what sums in parts need at the time (ContractParts.cpp).
  enum class Phase { whole, clear, add, endBlock, finish } phase = Phase::whole;
  Value partFrom, partTo; ///< the terms to add

  explicit ContractEmitter(KernelEmitter &e);
  mlir::LogicalResult emit(Value begin, Value end);
  /// The number of chunks among which threads may share it.
  int64_t numChunks();
  int64_t scratchBytes();

private:
  /// Tiles of rows of m by the vectors of a panel: what all tiles of one panel share.
  struct Panel {
    Value base, offset;                  ///< b, or its copy
    SmallVector<int64_t> strides;        ///< of it, one a letter of k
    SmallVector<int64_t> stridesRelated; ///< and one a relation
    int64_t step;                        ///< from one vector of it to the next
    Value j;                             ///< the first lane
    Value column;                        ///< of n's last letter, which the vectors count where they lie along a batch
    SmallVector<Value> masks, loadMasks;
    bool isApart; ///< b's lanes are not side by side, and not copied
  };
  /// A part of a level in which the rows [firstRow, endRow) of a tile have terms; endRow -1: all have.
  struct Segment {
    int64_t from, to;
    int firstRow = 0, endRow = -1;
  };
  /// One loop of a tile's sum, from 0 on: over a letter of k, or over the places of a relation.
  struct Level {
    int64_t size;                  ///< or the most that it can be
    Value count;                   ///< of rounds, if it is not `size`
    int64_t a, b;                  ///< steps of a round in the two operands
    SmallVector<Segment> segments; ///< none: all rows have all rounds
  };
  /// What the loops of one tile share.
  struct Tile {
    const Panel &panel;
    Value i; ///< the first row
    int count;
    bool fetches;
    llvm::ArrayRef<Level> levels;
    SmallVector<int64_t> linesA, linesB; ///< of a round of one level, so many elements on, which are asked for ahead:
    size_t aheadDepth = 0;               ///< of this level,
    int64_t roundsAhead = 0;             ///< so many rounds before
    bool fetchesNext = false;            ///< what the tile after it reads
  };

  void sortLetters();
  static void longestLast(std::vector<Letter> &group, int64_t wanted);
  /// c's axes that a letter stands for, outermost first.
  SmallVector<unsigned> axesOfC(const Letter &letter);

  /// Vectors across a panel, or columns of a tile where vectors lie along a batch. A few vectors are one panel where
  /// two at a time would leave a rest, which were code of its own and as long for a column as for sixteen; but panels
  /// that are copied are what threads share.
  int panelVectors() {
    passes::PanelOfProduct panel{.alongBatch = alongBatch,
                                 .hasColumns = !n.empty(),
                                 .streams = !streamed.empty(),
                                 .terms = static_cast<double>(numTerms()),
                                 .bytesOfC = static_cast<double>(bytesOfC())};
    if (int wide = passes::vectorsOfPanel(e.target.numVectorRegisters, panel))
      return wide;
    int64_t vectors = (lane.size + lanes - 1) / lanes, most = e.target.numVectorRegisters == 32 ? 6 : 3;
    if (rowsOfACollide() && most == 6 && vectors > most)
      return vectors % 5 == 1 || vectors % 5 == 2 ? 4 : 5;
    bool leavesRest = lane.size % (2 * static_cast<int64_t>(lanes)) != 0;
    return related.empty() && leavesRest && (!liesFar() || sumsInParts()) && vectors > 2 && vectors <= most
               ? static_cast<int>(vectors)
               : 2;
  }
  /// Twelve rows whole pages apart are more than a set of the nearest cache holds: 256 x 784 x 1,024 ran at 97 GFLOP/s
  /// by tiles of twelve rows, at 106 by six, at 111 by five, of 118.
  bool rowsOfACollide() {
    return related.empty() && !m.empty() && k.size() == 1 && k[0].a == 1 && m.back().a * elementBytes() % 4096 == 0 &&
           k[0].size * elementBytes() >= 2048;
  }
  /// Lanes of c that a panel has.
  int64_t panelWidth() { return static_cast<int64_t>(alongBatch && !n.empty() ? 1 : panelVectors()) * lanes; }
  int vectorsOfTile(int64_t columns) {
    return static_cast<int>(std::min<int64_t>(panelVectors(), (columns + lanes - 1) / lanes));
  }
  /// Rows of a tile whose accumulators, one row of b and one broadcast fit the registers.
  int rowsOfTile(int vectors) const {
    return e.target.numVectorRegisters == 32 ? (vectors == 5 ? 25 : 24) / vectors : 12 / vectors;
  }

  /// The same where rows are few, as those of an image: 14 or 28 fit well, and nothing is packed for a height.
  int rowsOfWindow(int vectors) const { return (e.target.numVectorRegisters == 32 ? 28 : 12) / vectors; }

  int64_t sizeK() const { return sizeOf(k); }
  /// The terms of an element of c, at most.
  int64_t numTerms() const;
  int64_t rows() const { return m.empty() ? 1 : m.back().size; }
  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// Rows at such a distance share a few cache sets, and each lies on a page of its own.
  bool thrashes(int64_t stride) const { return stride * elementBytes() % 2048 == 0 && sizeK() >= 64; }
  int64_t bytesOfC();
  bool isEmpty() { return mlir::ShapedType::getNumElements(shapeOf(op.getC())) == 0; }

  // ---- Addresses
  bool areOneAxis(llvm::ArrayRef<unsigned> axes);
  void place(Point &point, const Letter &letter, Value at, int64_t laneStride);
  SmallVector<Value> coordinatesOf(Value number, llvm::ArrayRef<int64_t> sizes);
  Value pointerAt(Value base, Value offset);
  unsigned alignment() const { return element.getIntOrFloatBitWidth() / 8; }
  mlir::VectorType vectorType() const { return mlir::VectorType::get({lanes}, element); }
  Value loadScalar(Value base, Value offset);
  Value loadVector(Value base, Value offset, Value mask);
  /// Elements that are `step` apart.
  Value loadLanes(Value base, Value offset, int64_t step, Value mask);
  void storeVector(Value base, Value offset, Value value);
  Value fma(Value x, Value y, Value z);

  // ---- Loops
  /// Loops over the letters of `group`, adding their strides to the offsets into a and b.
  void nest(llvm::ArrayRef<Letter> group, Value offsetA, Value offsetB, Point &point,
            llvm::function_ref<void(Value, Value)> body);
  /// Places the letters of `group` at place `number` of all that they have together; where that is in a.
  Value placeAll(llvm::ArrayRef<Letter> group, Value number, Point &point);
  /// Of so many columns `most` at a time: panels, or parts of rows.
  void inPieces(int64_t size, int64_t most, llvm::function_ref<void(Value first, int64_t count)> f);
  /// `count` lanes of c from j on, of b as it lies.
  Panel panelAt(Value offsetB, Value j, int64_t count);
  /// All rows of one panel: `count` lanes of c from j on.
  void panel(Value offsetA, Value offsetB, Value j, int64_t count, Point &origin);
  int heightFor(int64_t size, int vectors);
  /// Of tiles of so many vectors.
  int heightOfTiles(int vectors);
  int heightOfRows(int vectors);
  /// Of those that are numbered where threads share rows: all panels have the same.
  int heightOfSharedTiles() { return heightOfTiles(vectorsOfTile(lane.size)); }
  /// f(offset into a, first row, rows) for tiles of rows of m.
  void eachTile(Value offsetA, int height, Point &origin, llvm::function_ref<void(Value, Value, int)> f);
  void rowTiles(Value offsetA, const Panel &panel, Point &origin);
  /// Accumulates over the levels, then the epilogue: `count` rows from i, one accumulator a row and vector.
  void tile(Value offsetA, Value offsetB, const Panel &panel, Value i, int count, llvm::ArrayRef<Level> levels,
            Point &origin);
  /// The levels of k's letters.
  SmallVector<Level> levelsOfK(const Panel &panel);
  SmallVector<Value> sum(const Tile &tile, size_t depth, Value atA, Value atB, Segment rows, mlir::ValueRange acc);
  SmallVector<Value> loopOf(Value from, Value to, int64_t step, mlir::ValueRange carried,
                            llvm::function_ref<SmallVector<Value>(Value, mlir::ValueRange)> body);
  SmallVector<Value> multiplyAdd(const Tile &tile, Value atA, Value atB, Segment rows, mlir::ValueRange acc);
  /// The epilogue of `rows` rows of a tile from its row `first` on, all at a time.
  void finish(const Panel &panel, Value i, Value first, int rows, Point &origin,
              llvm::function_ref<Value(int row, int vector)> accumulator);
  void finishInLoop(llvm::ArrayRef<Value> acc, const Panel &panel, Value i, int count, Point &origin);

  // ---- Fetching ahead
  void findStreamed();
  bool canFetch();
  /// Whether the rows of a, which few terms make short, are asked for before the tile that begins with their next line.
  bool fetchesA();
  /// Chooses what of a and b is asked for ahead, and in which level's rounds.
  void findAhead(Tile &tile);
  bool fetchesNextTile();
  void fetchNextTile(const Tile &tile, Value p, Value atA);
  void fetchAlongBatch(const Tile &tile, Value p, Value atA, Value atB);
  void fetchInRound(const Tile &tile, size_t depth, Value p, Value atA, Value atB);
  void fetch(Value p, Value i, Value j, int count, int vectors);
  void fetchAhead(const Tile &tile, Value p, Value atA, Value atB);
  void prefetch(Value base, Value offset);

  // ---- Sums in parts
  int64_t termsOfPart();
  bool sumsInParts() { return termsOfPart() != 0; }
  int64_t termsAtOnce() { return sumsInParts() ? termsOfPart() : sizeK(); }
  int64_t columnsOfTotals();
  int64_t elementsOfTotals();
  void inParts(llvm::function_ref<void()> allTiles);
  void partOfTile(Value offsetA, Value offsetB, const Panel &panel, Value i, int count, llvm::ArrayRef<Level> levels);
  int64_t placesOfPiece();
  void fetchNextPart(const Tile &tile, Value p);
  void fetchAcross(Value base, Value first, int64_t size, int64_t rowStep, Value round, Value number, int64_t count);
  void fetchAlong(const Tile &tile, Value round);
  Value placeOf(const Panel &panel, Value i, int row, int vector, bool isTotal);
  SmallVector<Value> loadTotals(const Panel &panel, Value i, int count);

  // ---- Related letters
  void chooseRows();
  void relatedTiles(Value offsetA, const Panel &panel, Point &origin);
  /// The tiles of all rows while the letters outside are at some place; `around` are the levels of their relations.
  void relatedRows(Value offsetA, Value offsetB, const Panel &panel, llvm::ArrayRef<Level> around, Point &origin);
  void rowsOfPhase(Value offsetA, Value offsetB, const Panel &panel, llvm::ArrayRef<Level> around, Point &origin);
  /// The level of relation `number`, while c's letter is at `at`; adds where it begins to the offsets.
  Level levelOf(int number, Value at, const Panel &panel, Value &offsetA, Value &offsetB);
  /// `around`, perhaps a further one, and k's, from the longest way in b to the shortest.
  SmallVector<Level> levelsWith(llvm::ArrayRef<Level> around, std::optional<Level> further, const Panel &panel);
  const Letter &rowLetter() const { return rowRelation >= 0 ? related[rowRelation].c : m.back(); }

  // ---- Packing
  /// Whether b's columns lie apart, or its rows so far apart, that many rows of a pay for a copy; without relations.
  bool liesFar();
  /// Whether the vectors of a panel, whose rows lie pages apart, lie across two lines each.
  bool crossesLines();
  /// Whether a panel of b is copied before use.
  bool packsB();
  /// Whether a is copied tile by tile: each tile is read once a panel.
  bool packsA();
  /// What a panel has of b: the related letters, then k.
  std::vector<Letter> lettersOfPanel() const;
  int64_t panelElements();
  int64_t numPanels() { return std::max<int64_t>(1, (lane.size + panelWidth() - 1) / panelWidth()); }
  /// Whether threads share the panels of a product; else what is outside of its tiles, and each packs all panels.
  bool sharesPanels();
  /// Of how many columns the tiles of some rows come one after another, and not those of one panel: where few terms
  /// make c most of what is moved, more than caches hold, memory is written in a few long runs. 0 for panels.
  int64_t columnsOfRows();
  bool walksRows() { return columnsOfRows() != 0; }
  /// Whether the loop over the tiles of rows is around those over the letters of batch and n that c has within rows.
  bool rowsGoAround();
  /// Whether threads share the rows of a product whose b lies as it is read and has one panel, or whose rows are
  /// walked or go around.
  bool sharesRows();
  int64_t tilesOfRows(int height) const;
  /// Of m's letters, what threads share: the places of all but the last, or the tiles of that, whichever are more.
  int64_t placesOfRows();
  /// Of what is outside, so many places are one chunk: enough rows that packing for them is paid.
  int64_t placesOfChunk();
  Value packA(Value offsetA);
  Value inPiece(Value offset) { return pieceOffset ? e.add(pieceOffset, offset) : offset; }
  void pack(Value base, Value panelOffset, int vectors, int64_t columns);
  void copyRows(Value base, Value from, Value row, int64_t first, int64_t last, int64_t stride, int vectors,
                int64_t columns, int64_t width);
  void gatherRows(Value base, Value from, Value row, int64_t count, int64_t stride, int vectors, int64_t columns,
                  int64_t width);
  void transposeBlock(Value base, Value from, Value row, int64_t height, int64_t count, int vectors, int64_t columns,
                      int64_t width);
};

} // namespace wg::codegen
