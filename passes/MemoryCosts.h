// What do loops that walk through tensors cost in memory? Estimates of one core, in nanoseconds: the lines and pages
// that each level of memory has not kept since they were touched last, and which of them no processor fetches ahead.
// What each of these costs is fitted to measured times (passes/ProductCosts.h). Products are chosen by it, and the
// loops of elementwise kernels are put into the order that costs least.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cmath>
#include <optional>

namespace wg::passes {

constexpr double kVector = 64, kLine = 64, kPage = 4096; ///< bytes
/// Kernels of no more read what lies across one by one: blocks take milliseconds to be compiled, and save 0.3 ns each.
constexpr int64_t kFewElements = 1024;

/// Two machines with AVX-512 that differ in what binds them: one, an Intel Xeon, multiplies and adds twice a cycle, and
/// its memory is slow; the other, a Zen 4, once, and its memory is fast.
enum class Machine { slowMemory, fastMemory, both };

/// Whether products of so many terms, whose second operand and result have so many bytes, are written row by row, as
/// far as sizes say: what is read stays in a cache close by, and what is written does not.
inline bool areRowsWritten(bool isSlowMemory, double terms, double bytesOfB, double bytesOfC) {
  constexpr double kFewTerms = 64, kKiB = 1024, kMiB = 1024 * kKiB;
  return terms <= kFewTerms && bytesOfB <= (isSlowMemory ? 512 : 32) * kKiB && bytesOfC > (isSlowMemory ? 1 : 8) * kMiB;
}

/// Nanoseconds on each of the two.
struct Estimate {
  double slowMemory = 0, fastMemory = 0;
  /// On one of them; for both the geometric mean, so that what is chosen by it is good on either.
  double on(Machine machine) const {
    return machine == Machine::slowMemory   ? slowMemory
           : machine == Machine::fastMemory ? fastMemory
                                            : std::sqrt(slowMemory * fastMemory);
  }
  friend Estimate operator+(Estimate x, Estimate y) {
    return {x.slowMemory + y.slowMemory, x.fastMemory + y.fastMemory};
  }
  friend Estimate operator*(Estimate x, double y) { return {x.slowMemory * y, x.fastMemory * y}; }
};

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

/// Loops, outermost first, and what each of their rounds touches of the three tensors.
struct Nest {
  llvm::SmallVector<Loop, 12> loops;
  std::array<llvm::SmallVector<Extent, 2>, 3> inside;
};

/// What differs between kinds of kernels on a machine: a run of lines that is read, or written, costs so many lines
/// more, as the first ones are not fetched ahead; and lines and arithmetic count so many times.
struct KindOnMachine {
  double startRead, startWritten, memory = 1, arithmetic = 1;
};
struct Kind {
  KindOnMachine slowMemory, fastMemory;
};

/// Nanoseconds that the lines and pages of a nest take.
Estimate memoryOf(const Nest &nest, double elementBytes, const Kind &kind);

/// Vectors of at most `lanes` places along the innermost axis, the last one, in blocks of as many along `across`, if
/// there is one, in which what is read lies: the loops around them in the order in which `outer` has the other axes.
Nest nestOfBlocks(llvm::ArrayRef<Loop> axes, llvm::ArrayRef<size_t> outer, std::optional<size_t> across, double lanes);

/// The order of the axes outside of the innermost one in which such loops are cheapest, of elements of so many bytes.
llvm::SmallVector<size_t> orderOfBlocks(llvm::ArrayRef<Loop> axes, std::optional<size_t> across, double lanes,
                                        double elementBytes);

} // namespace wg::passes
