// Where the time of a compiled function goes, kernel by kernel, beside what this machine could do.
#pragma once

#include <wengert/runtime/Export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace wg {

/// One kernel that a call runs, in a loop perhaps many times: its seconds and its work are those of all its launches.
/// A loop or a condition has a row of its own: what follows the last kernel in it. (What lies between two turns counts
/// with a turn's first kernel.) One whose state lies in registers is one function, and its row is all of it.
///
/// Its work is what its ops say (ir/Counts.h): a product of tensors 2 FLOPs for each term, a sum 1 for each element, an
/// elementwise op on floats 1 for each element; exp, tanh and their like are counted apart; casts, comparisons, views
/// and integers count nothing. Bytes are those of each tensor in memory once, read or written.
struct KernelProfile {
  std::string name;    ///< of its function; equal kernels share one
  std::string kind;    ///< map, reduce, contract, single, external; or the op with bodies: loop, cond, ...
  std::string summary; ///< the ops in it: `contract, add, tanh`
  std::string lines;   ///< the user's lines of all its ops: `train.cpp:12, 14-15`
  double launches = 1; ///< in a call; the mean, where they differ. 0: a branch that was not taken
  double seconds = 0;  ///< the mean of the middle half of the calls
  double flops = 0;    ///< NaN: an op in it does not say
  double transcendentals = 0;
  double bytes_read = 0, bytes_written = 0;
  bool is_shared = false; ///< among threads; its limits are then those of all threads
  /// What this machine could do: FLOP/s in the kernel's type, and byte/s in the smallest level of memory that holds all
  /// that a launch touches. 0: not known.
  double peak_flops = 0, peak_bytes = 0;
  std::string level; ///< that one: `L1`, `L2`, `L3`, `memory`
  /// `arithmetic`, `L2` or another level, `transcendentals`: what takes the largest part of its time at this machine's
  /// limits, where that is 0.3 or more of it (a transcendental counts as 20 fused multiply-adds); else `latency`.
  std::string bound;

  double flops_per_second() const { return flops / seconds; }
  double bytes_per_second() const { return (bytes_read + bytes_written) / seconds; }
};

/// Where a call's time goes.
struct Profile {
  std::string function;               ///< its signature
  std::vector<KernelProfile> kernels; ///< in the order in which they run, then those of bodies
  double seconds = 0;                 ///< a call of the machine code as it always is, without marks
  double copies = 0;                  ///< seconds of results that are copies of others, and of what loops carry
  int64_t calls = 0;                  ///< that were timed
  int64_t distinct_kernels = 0, code_bytes = 0;
  std::string machine; ///< `AMD EPYC, 2 threads`

  /// Seconds of all kernels.
  WENGERT_API double kernel_seconds() const;
  /// A table, the kernels that take most first: at most `rows` of them, and the rest in one.
  WENGERT_API std::string to_string(int64_t rows = 40) const;
};

} // namespace wg
