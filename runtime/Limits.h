// What is this machine's limit? The peak of its arithmetic and the bandwidth of each level of its memory, measured once
// and kept in a file per machine, so that a figure can be printed beside what would have been possible.
//
// The file is $XDG_CACHE_HOME/wengert/limits-KEY.json (default ~/.cache), KEY made of the CPU's model, its cpuid
// signature and the number of threads:
//
//   {"version": 1, "cpu": "...", "signature": "00b00f21", "threads": 2, "measured": "2025-01-31T12:00:00Z",
//    "peaks":  [{"name": "f32 512 bit", "unit": "GFLOP/s", "one": 290.1, "all": 575.3}, ...],
//    "levels": [{"name": "L1", "bytes": 49152, "touched": 32768,
//                "one": {"read": 540, "write": 285, "copy": 575}, "all": {...}}, ...],
//    "skipped": ["amx: the CPU has no tiles"], "quick": false}
//
// `one` is one thread, `all` all threads together. Bandwidth is in GB/s of what the program reads and writes; a copy
// counts both, and no cache's own reads. A figure is the best of many samples; 0 is one that was not measured.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wg::runtime {

struct Peak {
  std::string name; ///< `f32 512 bit`, `f64 256 bit`, `bf16 dot 512 bit`, `bf16 tiles`
  std::string unit; ///< `GFLOP/s`, `GOP/s` for integers; a product and a sum are two
  double one = 0, all = 0;
};

struct Bandwidth {
  double read = 0, write = 0, copy = 0; ///< GB/s
};

struct Level {
  std::string name;    ///< `L1`, `L2`, `L3`, `memory`, and `memory, stores past the caches`
  int64_t bytes = 0;   ///< of the cache; 0: memory
  int64_t touched = 0; ///< by the one thread; all threads of a shared cache touch as much together
  Bandwidth one, all;
};

struct Limits {
  std::string cpu, signature, measured;
  int threads = 1; ///< the processors that this process may run on
  std::vector<Peak> peaks;
  std::vector<Level> levels;
  std::vector<std::string> skipped; ///< what this machine does not have or does not allow, and why
  bool quick = false;               ///< from few samples, and without what only `bench/limits` prints

  /// Peak `name` of one thread or of all; 0 if there is none.
  double peak(const std::string &name, bool all = false) const;
  /// The largest of the peaks whose names begin with `dtype`: `f32`, `f64`, `bf16`, `int8`.
  double best(const std::string &dtype, bool all = false) const;
};

nlohmann::json toJson(const Limits &limits);
/// Nothing if `json` is of another version or lacks a part.
std::optional<Limits> limitsFrom(const nlohmann::json &json);

/// Where the limits of this machine, with the processors that this process may run on, are kept.
std::string limitsFile();
/// What was measured before; nothing if there is no file of this version.
std::optional<Limits> knownLimits();
/// Measures, on a machine that should be idle: some 10 seconds; quick: about one. Leaves the thread's processors as
/// they were. What there is no memory for is 0.
Limits measureLimits(bool quick = false);
/// The known limits, or else measures and writes the file; false in `written`, if given, where that failed. Quick ones
/// are known to who asks for no better ones.
Limits limits(bool quick = false, bool again = false, bool *written = nullptr);
/// The known limits with each figure raised to what a new, quick measurement finds, which are written: for who has seen
/// more than they say, as they were measured while the machine did something else.
Limits raiseLimits();

} // namespace wg::runtime
