// What kernels take on the machines that products are estimated for: times of a few machines, fitted to what was
// measured on them. The letters of products are put into order by it (passes/ArrangeProducts), and the loops of kernels
// (passes/MemoryCosts). One machine's numbers say little by themselves: they were fitted together.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <cmath>

namespace wg::passes {

constexpr double kLine = 64, kPage = 4096; ///< bytes

/// Of machines with AVX-512 two that differ in what binds them: one, an Intel Xeon, multiplies and adds twice a cycle,
/// and its memory is slow; the other, a Zen 4, once, and its memory is fast; `both` asks for what is good on either;
/// `fast`, a Zen 5, has the best of the two. Of those with narrower vectors one, a Zen 3.
enum class Machine { slowMemory, fastMemory, both, fast, narrowVectors };

/// What a level of memory keeps, in lines or pages: about `least` to `most` of them, as other data is there too; the
/// nanoseconds to get one from beyond it; and how many times it counts that the first ones of a run that is read take
/// longer (0: not written ones either, as levels close by hide it).
struct Level {
  double unit, least, most, read, written, starts;
};
using Levels = std::array<Level, 6>;

/// What differs between kinds of kernels: a run of lines that is read, or written, costs so many lines more, as the
/// first ones are not fetched ahead; and lines and arithmetic count so many times.
struct Kind {
  double startRead, startWritten, memory = 1, arithmetic = 1;
};

/// A machine. Times are nanoseconds.
struct Model {
  double vectorBytes, registers; ///< of vectors
  /// Products of few terms are written row by row where b has no more KiB and c more MiB, and where it has, perhaps, by
  /// parts of rows (columnsOfRows).
  double rowsB, rowsC;
  bool isWrittenInParts;
  Levels levels;
  /// Where orders of one kernel's loops are compared: what levels take, a kind, what it takes to begin a loop, and how
  /// many runs at a time are fetched ahead.
  Levels ofOrders;
  Kind orders;
  double begun, followed;
  /// Places of the strips that an axis may be cut into there; 0 for none.
  double strips;
  /// So many bytes may lie between runs that are fetched ahead as one.
  double gap;
  Kind copies, packing, gathering, turning, products, outerProducts, elementwise, sums;
  /// Loads wait while there is arithmetic to do, but not for all of it: the share of the lesser that counts.
  double open;
  /// Of a cycle; cycles of a multiply-add, and of one of half a vector.
  double cycle, fma, halfFma;
  /// In a tile of a product a multiply-add waits for the one before it for so many cycles, in a sum of `halfTerms`
  /// terms for half as many; what a term, a vector that is stored and a tile take further; and the share of the stores,
  /// or of the terms where these are less, that the other does not hide.
  double waits, halfTerms, term, store, tile, openStores;
  double maskedStore; ///< of a part of a vector, longer
  double piece;       ///< of each further store of such a part, where no store is masked (AVX2, on a Zen 3)
  /// Of a vector that is copied whole; of one that is moved about in registers, once, and of one of a pair; of an
  /// element that is copied by itself.
  double copy, shuffle, ofPairs, element;
  double collided; ///< how many times columns half a page apart take as long to pack
  /// How many times memory counts where blocks read, or write, parts of lines of what stays close by; and of what no
  /// cache holds.
  double blocksClose, blocksFar;
  /// Of a vector of products that are summed, of a row and of a run of neighbours that are summed.
  double summed, sumRow, sumRun;
  /// Of a lane of a sum's vector that is loaded by itself; how many times memory counts then where it is that of a
  /// tensor which caches close by do not hold; and how many times where long runs are fetched ahead.
  double gathered, gatheredFar, longRuns;
  /// Of a vector of products that are stored, and of one that is moved about in registers, once; where nothing is, of a
  /// run of one vector, of one of several, and of beginning a loop over such runs; and of an element of a large tensor
  /// that is read across whole pages: such lines share a few sets of the caches.
  double stored, across, shortRun, run, runs, shared;
  /// Of a lane that is where both operands of an elementwise product lie across, each along another axis, from a small
  /// tensor or a large one.
  double apart, apartFar;
  /// The share of what a product costs as it stands that another form is to be below, and one that moves an elementwise
  /// result: estimates may be wrong.
  double clearly = 0.91, clearlyMoved = 0.8;
};

/// The models of a machine, of two where it is not known which of them is like it.
llvm::ArrayRef<const Model *> modelsOf(Machine machine);

/// Nanoseconds on each of a machine's models.
struct Estimate {
  std::array<double, 2> on = {};
  friend Estimate operator+(Estimate x, Estimate y) { return {{x.on[0] + y.on[0], x.on[1] + y.on[1]}}; }
  friend Estimate operator*(Estimate x, Estimate y) { return {{x.on[0] * y.on[0], x.on[1] * y.on[1]}}; }
  friend Estimate operator*(Estimate x, double y) { return {{x.on[0] * y, x.on[1] * y}}; }
};

inline Estimate onAll(double nanoseconds) { return {{nanoseconds, nanoseconds}}; }

constexpr double kFewTerms = 64, kKiB = 1024, kMiB = 1024 * kKiB;

/// A product whose rows may be written in long runs, and its tiles.
struct RowsOfProduct {
  double terms, rows, columns, elementBytes, bytesOfC, tileRows, panelColumns;
};

/// How many columns of each row are written one after another, as far as sizes say: of few terms, where the result is
/// more than caches close by hold, as many as are made of what these do hold; else 0: a panel of few vectors is written
/// in all rows, then the next one. Rows are in parts only if there are many: few read b as few times anyhow, and
/// threads share rows or panels.
inline double columnsOfRows(const Model &model, const RowsOfProduct &of) {
  constexpr double kTilesOfRows = 8;
  if (of.terms > kFewTerms || of.bytesOfC <= model.rowsC * kMiB)
    return 0;
  double most = model.rowsB * kKiB / (of.terms * of.elementBytes);
  if (of.columns <= most)
    return of.columns;
  bool isInParts = model.isWrittenInParts && of.rows >= kTilesOfRows * of.tileRows;
  return isInParts ? std::floor(most / of.panelColumns) * of.panelColumns : 0;
}

/// Whether tiles of the same rows come one after another for all places of the letters of b that the result has within
/// a row: of few terms, where the result is more than caches close by hold, and b is not, or further ones hold it and a
/// tile writes as much as it reads of it. (20,000 x 8 x 64 of 4 terms: 6.7 ms, so 2.6; 1,740 x 13 x 7 x 215: 30, 8.7.)
inline bool rowsGoAround(const Model &model, double terms, double tileRows, double bytesOfB, double bytesOfC) {
  constexpr double kFurther = 4;
  return terms <= kFewTerms && bytesOfC > model.rowsC * kMiB &&
         bytesOfB <= (terms <= tileRows ? kFurther : 1) * model.rowsB * kKiB;
}

/// Rows of each tile of a product of so many rows where `most` fit the registers: no more tiles, of about the same
/// height. A row or two by themselves take as long as four, as each multiply-add waits for the one before it.
inline double rowsOfEachTile(double rows, double most) {
  return rows <= most ? rows : std::ceil(rows / std::ceil(rows / most));
}

/// Terms that one accumulator of a product of so many takes before it is added to the total: about the root of their
/// number, so that both sums are short.
inline double termsOfBlock(double terms) {
  double block = 1024;
  while (block * block < terms)
    block *= 2;
  return block;
}

/// A product with one letter of each kind and no batch, whose operands are read as they lie.
struct SumOfProduct {
  double terms, rows, columns, elementBytes;
  double lanes, accumulators; ///< of a vector; vectors that a tile has
};

/// Vectors that a tile has in registers.
inline int mostAccumulators(unsigned registers) { return registers == 32 ? 25 : 12; }

/// Terms that all tiles add before any adds the next ones; 0: each adds all at once. Of more than one tile each would
/// read its share of a long a and b from far away, which in parts are close by (Goto and van de Geijn 2008). A power of
/// 2, so that blocks are of whole parts. (Where parts and accumulators are more than a cache close by, 30,000 x 380 x
/// 160 in f64 took 45 ms in parts, 38 at once; 3,000 x 150 x 120, of few terms, 0.55 and 0.49.)
inline double termsOfPart(const SumOfProduct &of) {
  constexpr double kOfPart = 384 * kKiB, kCloseBy = 896 * kKiB, kFar = 2 * kMiB, kLeast = 128, kMost = 1024,
                   kFewTerms = 4096;
  double bytes = (of.rows + of.columns) * of.elementBytes, vectors = std::ceil(of.columns / of.lanes),
         accumulators = of.rows * vectors * of.lanes * of.elementBytes, part = kMost;
  while (part > kLeast && part * bytes > kOfPart)
    part /= 2;
  bool isLong = of.terms >= kFewTerms && of.terms * bytes > kFar, isClose = part * bytes + accumulators <= kCloseBy;
  return isLong && isClose && of.rows * vectors > of.accumulators ? part : 0;
}

/// What decides how many vectors lie side by side in a panel of a product.
struct PanelOfProduct {
  bool alongBatch, hasColumns; ///< vectors are along a batch's letter; what lies side by side then are columns, if any
  bool streams;                ///< the epilogue reads other tensors
  double terms, bytesOfC;
};

/// Vectors side by side where two are not the best, else 0. Rows of 256 bytes suit the memory where an epilogue streams
/// operands or a short sum is bound by the stores of c, as far as the accumulators, a row of b and a broadcast fit the
/// registers. Of 16 a panel of four spills some: on a Zen 3 2,000 x 20 x 300 ran in 700 us, by two in 290; with
/// streamed operands 200 x 300 x 10,000 in 29 ms, by three in 15. Columns side by side are only worth it there where
/// sums are long: 4 times 2,014 x 6 x 60 took 370 us by three, 156 by one. Where nothing is summed nothing waits in
/// registers.
inline int vectorsOfPanel(int registers, const PanelOfProduct &of) {
  constexpr double kShortSum = 64, kMuch = 1 << 20, kVeryShortSum = 12;
  if (of.alongBatch && of.hasColumns && registers < 32)
    return of.terms < kVeryShortSum ? 1 : 3;
  if (of.alongBatch)
    return 4;
  bool fits = registers >= 32 || of.terms <= 1;
  if (of.streams)
    return fits ? 4 : 3;
  return fits && of.terms <= kShortSum && of.bytesOfC > kMuch ? 4 : 0;
}

} // namespace wg::passes
