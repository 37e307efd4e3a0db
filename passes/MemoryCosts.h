// What do loops that walk through tensors cost in memory? Estimates of one core, in nanoseconds: the lines and pages
// that each level of memory has not kept since they were touched last, and which of them no processor fetches ahead.
// What each of these costs is fitted to measured times (passes/MachineModels.h). Products are chosen by it, and the
// loops of elementwise kernels are put into the order that costs least.
#pragma once

#include "passes/MachineModels.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace wg::passes {

/// Kernels of no more read what lies across one by one: blocks take milliseconds to be compiled, and save 0.3 ns each.
constexpr int64_t kFewElements = 1024;

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

/// Loops, outermost first, and what each of their rounds touches of the three tensors; which of these are asked for
/// ahead (rowsAhead), so that no run of lines begins late.
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

/// How many elements further on of `tensor` is asked for ahead in such loops; 0 for nothing. That is done for short rows,
/// also for those of a block that is read across them, of which the innermost loop around reads more, far apart, than a
/// machine follows, of what is larger than the caches close by: for what follows each row, where that is read soon, else
/// for rows that come later in that loop.
double rowsAhead(llvm::ArrayRef<Loop> axes, const LoopOrder &order, std::optional<size_t> across, double lanes,
                 size_t tensor, double elementBytes, const Model &model);

/// The order in which such loops are cheapest on a machine, of elements of so many bytes. In strips are only axes of
/// rows that are read as they lie.
LoopOrder orderOfBlocks(llvm::ArrayRef<Loop> axes, std::optional<size_t> across, double lanes, double elementBytes,
                        const Model &model);

} // namespace wg::passes
