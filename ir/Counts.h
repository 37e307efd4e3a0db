// How much work a kernel is: its arithmetic and the bytes that it moves, as said by its ops.
//
// The rule, for arithmetic on floats of any width; all else is none:
//   a contraction            2 for each term: a product and a sum; padding has no terms
//   a reduction              1 for each element that it combines
//   an elementwise op        1 for each element, if operands and result are floats of one dtype: not a cast, a
//                            comparison, a select
//   a transcendental one     counted apart: how many instructions it is depends on the target
//   sums at computed places  1 for each update
//   a triangular solve       n^2 for each column, n of them divisions, which a unit diagonal saves
//   another routine          unknown
//   views, reads at computed places, constants, booleans, integers   0
// An op counts by the shape of its result: one on rows counts rows, though the kernel's space is larger.
//
// Bytes are those of each tensor in memory once, read or written, in its storage type: a tensor that several inputs of
// the kernel name counts once, and an input that is only read through views counts the elements shown, at most all. A
// result that lies over an input counts as both. What is read at computed places counts whole.
#pragma once

#include "ir/Dialect.h"

#include <optional>
#include <string>

namespace wg::ir {

/// Sums stop at the largest int64_t.
struct Counts {
  std::optional<int64_t> flops = 0; ///< nothing: an op does not say
  int64_t products = 0;             ///< those of contractions, of `flops`
  int64_t transcendentals = 0;      ///< elements of exp, tanh, pow and their like
  int64_t bytesRead = 0, bytesWritten = 0;
  int64_t bytes() const; ///< read and written
};

/// Of a kernel that has its `loops`; static sizes.
Counts countsOf(KernelOp kernel);

/// The user's lines of all ops in a kernel, each once: `train.cpp:12, 14-15; model.cpp:3`.
std::string linesOf(KernelOp kernel);

} // namespace wg::ir
