// What do loops that walk through tensors cost in memory? Estimates of one core, in nanoseconds: the lines and pages
// that each level of memory has not kept since they were touched last, and which of them no processor fetches ahead.
// What each of these costs is fitted to measured times (passes/MachineModels.h). Products are chosen by it, and the
// loops of elementwise kernels are put into the order that costs least.
#pragma once

#include "passes/MachineModels.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace wg::passes {

constexpr double kCall = 30; ///< nanoseconds of a kernel that does nothing

/// Kernels of no more read what lies across one by one: blocks take milliseconds to be compiled, and save 0.3 ns each.
constexpr int64_t kFewElements = 1024;

/// The lanes that vectors along so many elements have.
inline double lanesFor(double size, double most) {
  return std::min(most, static_cast<double>(llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max(2.0, size)))));
}

/// Stores of a vector's first elements, beyond one, at the end of a row of `size`, where no store is masked: two that
/// may overlap, or one of a power of 2.
inline double furtherPieces(double size, double lanes) {
  auto rest = static_cast<uint64_t>(std::fmod(size, lanes));
  return rest == 0 || llvm::isPowerOf2_64(rest) ? 0 : 1;
}

/// So many rounds, each of which steps on by so many elements in each of three tensors: two that are read and the one
/// that is written.
struct Loop {
  double rounds;
  std::array<double, 3> steps;
};

/// So many places at a time.
Loop inSteps(Loop axis, double by);

/// What is inside of all loops touches so many elements of a tensor at such a distance, along each of some axes.
struct Extent {
  double size, step;
};

/// Loops, outermost first, and what each of their rounds touches of the three tensors; and which of these are asked for
/// ahead (rowsAhead; parts of vectors along a product's batch).
struct Nest {
  llvm::SmallVector<Loop, 12> loops;
  std::array<llvm::SmallVector<Extent, 2>, 3> inside;
  std::array<bool, 3> asksAhead = {};
};

/// Nanoseconds that the lines and pages of a nest take on each of some models, in kernels of such a kind.
Estimate memoryOf(const Nest &nest, double elementBytes, llvm::ArrayRef<const Model *> models, Kind Model::*kind);

/// The axes outside of the innermost one, that of the outermost loop first. One of them may be in strips of so many
/// places: around the loop at `outside`, further out than the axis' own, which goes through one strip, is a loop over
/// strips.
struct LoopOrder {
  llvm::SmallVector<size_t> axes;
  struct Strips {
    size_t axis, outside;
    int64_t places;
  };
  std::optional<Strips> strips;
};

/// Vectors of at most `lanes` places along the innermost axis, the last one, in blocks of as many along `across`, if
/// there is one, in which what is read lies: the loops around them in such an order of the other axes.
Nest nestOfBlocks(llvm::ArrayRef<Loop> axes, const LoopOrder &order, std::optional<size_t> across, double lanes,
                  double elementBytes, const Model &model);

/// How many elements further on of `tensor` (or back, where loops go that way) is asked for ahead; 0 for nothing. That
/// is done of what is larger than the caches close by, for short rows, also of blocks that are read across, which loops
/// around them read by turns from more places than a machine follows: for what follows each row, if it is read before
/// its lines are gone, else for rows that are read later. (Times of a Zen 3, without and with it: 97 10^6 numbers in
/// rows of 5, 225 by turns, 180 ms and 57; in blocks of 3 x 9, 162 by turns, 113 and 42; of 3 x 23, 210 and 92.)
double rowsAhead(llvm::ArrayRef<Loop> axes, const LoopOrder &order, std::optional<size_t> across, double lanes,
                 size_t tensor, double elementBytes, const Model &model);

/// The order in which such loops are cheapest on a machine, of elements of so many bytes. In strips are only axes of
/// loops without blocks.
LoopOrder orderOfBlocks(llvm::ArrayRef<Loop> axes, std::optional<size_t> across, double lanes, double elementBytes,
                        const Model &model);

} // namespace wg::passes
