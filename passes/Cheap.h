// What each kernel that reads it computes again, and what not: by which fusion and the passes before it agree.
#pragma once

#include "mlir/IR/Operation.h"

namespace wg::passes {

/// A constant of one number.
bool isSplat(mlir::Operation *op);

/// An op that each kernel may compute again: it reads no memory of its own, or shows another value.
bool isCheap(mlir::Operation *op);

/// Whether a copy of so many elements is paid by reading it as it is walked, as rows of what has `spread` elements.
/// (The space of a product may have more points than an integer counts.)
inline bool paysForCopy(double elements, double spread) { return spread >= 16384 && spread / 4 >= elements; }

/// Whether what is read in runs of so many neighbours is better copied where it is then read in so many.
inline bool readsShortRuns(double lies, double copied, double elementBytes) {
  constexpr double kVector = 64; // bytes
  return lies * elementBytes < kVector && copied >= 2 * lies;
}

/// Whether a transpose, or a slice without axes of size 1, is read across, or in short runs, and again and again, as
/// rows of what it is spread over: then it is a copy, which costs less than to read what it shows element by element
/// each time.
bool isCopied(mlir::Operation *op);

} // namespace wg::passes
