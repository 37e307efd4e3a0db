// How a contract kernel goes through the rows of c: how high its tiles are, whether all of a row is written before the
// next one, and what threads share.
#include "codegen/emit/ContractEmitter.h"

using namespace mlir;

namespace wg::codegen {

/// Of fewer terms the start and the end of a tile count.
static constexpr int64_t kShortSum = 64;

// ---- Tiles ----------------------------------------------------------------------------------------------------------

/// Rows of each tile of `size` rows: as many as fit, or up to a third fewer where these leave no rest, whose tile would
/// be written as well (lower tiles read the panel more often, which costs nothing while it is close by), or so few that
/// no tile is much lower than the others.
int ContractEmitter::heightFor(int64_t size, int vectors) {
  int most = rowsOfTile(vectors);
  if (size % most == 0)
    return most;
  if (sizeK() >= kShortSum && termsAtOnce() * vectors * e.target.vectorBytes <= kBytesCloseBy)
    for (int height = most; height * 3 >= most * 2; --height)
      if (size % height == 0)
        return height;
  return static_cast<int>(passes::rowsOfEachTile(static_cast<double>(size), most));
}

int ContractEmitter::heightOfTiles(int vectors) {
  if (packsA())
    return rowsOfTile(panelVectors());
  return walksRows() || rowsGoAround() ? heightOfRows(vectors) : heightFor(m.back().size, vectors);
}

// ---- What threads share -------------------------------------------------------------------------------------------

/// Panels, or rows; else a product with further batches or letters of n outside of them, or with a packed a, is one
/// piece. Where letters are related, what is outside of the tiles.
int64_t ContractEmitter::numChunks() {
  if (!sharesPanels())
    return std::max<int64_t>(1, (sizeOf(outer) + placesOfChunk() - 1) / placesOfChunk());
  if (!related.empty())
    return numPanels();
  if (sumsInParts())
    return llvm::divideCeil(sharesRows() ? placesOfRows() : numPanels(), placesOfPiece());
  if (sharesRows())
    return placesOfRows();
  if (!batch.empty() || !(alongBatch || n.empty()) || packsA())
    return 1;
  return walksRows() ? 1 : numPanels();
}

bool ContractEmitter::sharesRows() {
  if (!related.empty() || alongBatch || m.empty() || isEmpty() || packsA() || packsB())
    return false;
  bool areOnePlace = batch.empty() && n.empty() && (walksRows() || numPanels() == 1);
  return (areOnePlace || rowsGoAround()) && placesOfRows() > 1;
}

int64_t ContractEmitter::tilesOfRows(int height) const { return llvm::divideCeil(rows(), height); }

int64_t ContractEmitter::placesOfRows() {
  return std::max(sizeOf(ArrayRef(m).drop_back()), tilesOfRows(heightOfSharedTiles()));
}

int64_t ContractEmitter::bytesOfC() { return ShapedType::getNumElements(shapeOf(op.getC())) * elementBytes(); }

/// 46,700 x 291 x 24 ran in 12.3 ms by panels, in 9.4 by rows. Where memory is slow, 574 x 2,077 x 10 ran in 530 us by
/// panels and in 270 by rows, 3,000 x 8,000 x 6 in 16.8 ms and 8.1: b may take a quarter of a cache of 2 MiB. On a Zen
/// 3, 858 x 4,746 x 29 ran in 9.8 ms by panels that are packed, in 5.8 by parts of some 2,250 columns.
int64_t ContractEmitter::columnsOfRows() {
  bool reads = related.empty() && !alongBatch && !m.empty() && !k.empty() && lane.b == 1;
  if (!reads || packsA() || thrashes(k.back().b) || numPanels() == 1)
    return 0;
  return static_cast<int64_t>(passes::columnsOfRows(*passes::modelsOf(e.target.machine).front(),
                                                    {.terms = double(numTerms()),
                                                     .rows = double(sizeOf(m)),
                                                     .columns = double(lane.size),
                                                     .elementBytes = double(elementBytes()),
                                                     .bytesOfC = double(bytesOfC()),
                                                     .tileRows = double(rowsOfTile(panelVectors())),
                                                     .panelColumns = double(panelWidth())}));
}

bool ContractEmitter::rowsGoAround() {
  bool reads = related.empty() && !alongBatch && !m.empty() && !k.empty() && lane.b == 1;
  if (!reads || isEmpty() || packsA() || thrashes(k.back().b))
    return false;
  std::vector<Letter> within = runtime::withinRows(batch, m, n);
  double bytesOfB = double(sizeOf(within)) * double(lane.size * numTerms() * elementBytes());
  return !within.empty() && passes::rowsGoAround(*passes::modelsOf(e.target.machine).front(), double(numTerms()),
                                                 rowsOfTile(panelVectors()), bytesOfB, double(bytesOfC()));
}

/// Of several rows that share pages no processor follows the writes: of few terms one row at a time (46,700 x 291 x 4:
/// 3.0 ms, by six rows 5.2), unless a cache far away takes them.
int ContractEmitter::heightOfRows(int vectors) {
  constexpr int64_t kVeryFewTerms = 6, kPage = 4096, kMostCached = int64_t(32) << 20;
  int64_t within = rowsGoAround() ? sizeOf(runtime::withinRows(batch, m, n)) : 1,
          run = within * lane.size * elementBytes();
  bool alone = numTerms() <= kVeryFewTerms && run < kPage && bytesOfC() > kMostCached;
  return alone ? 1 : heightFor(m.back().size, vectors);
}

} // namespace wg::codegen
