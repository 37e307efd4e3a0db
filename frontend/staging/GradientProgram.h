// The adjoint of what an eager tape holds, as flat rows; made once for a structure of tape.
#pragma once

#include "frontend/staging/Tape.h"

#include "codegen/interpret/Interpret.h"
#include "ir/Dialect.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <optional>

namespace wg::detail {

/// The derivative of a recorded call by the results that have a cotangent; in forward mode, of these results by the
/// arguments that have a tangent.
struct CallDerivative {
  uint32_t call;
  std::vector<uint32_t> results;
  std::vector<uint32_t> arguments = {};
  bool isForward = false;
};

/// The adjoint of one structure of tape, or its tangent.
struct GradientProgram {
  codegen::Program program;
  std::vector<int32_t> inputs;           ///< slots of the tape; seed or tangent k as -1 - k
  std::vector<int32_t> outputs;          ///< by source (tangents: by target): its place among the outputs, or -1
  std::vector<std::string> reasons;      ///< in the same way: why there is none
  std::vector<int32_t> parts = {};       ///< by source: how many pairs (indices, rows) it is the sum of; 0: it is dense
  llvm::StringMap<CallDerivative> calls; ///< by the symbol that a row calls
  size_t bytes = 0;
  /// Of one in lanes: the most that its values take in one lane; and whether it is to run for each lane by itself, as
  /// it calls a gradient hook, which is C++.
  int64_t laneBytes = 0;
  bool laneByLane = false;
  std::vector<bool> batched = {}; ///< by output: whether it has the axis; else it is the same in all lanes
};

/// How many cotangents or tangents a program takes at once, each with one more axis in front; none: one, without it.
using LaneCount = std::optional<int64_t>;

/// The program for the gradient of `targets` (slots) by `sources` (the slots of each, whose gradients are summed), kept
/// under `key`, the hash of all of it. A target that is `seeded` has a cotangent of its own; the others have ones. An
/// error at `where` if an op on the path has no derivative.
/// With `rows`, a gradient by gathering alone is left as the rows that add up to it.
std::shared_ptr<const GradientProgram> gradientProgram(const EagerTape &tape, const StructureHash &key,
                                                       std::span<const int32_t> targets,
                                                       std::span<const uint8_t> seeded,
                                                       std::span<const std::vector<int32_t>> sources, bool rows,
                                                       LaneCount lanes, const Where &where);

/// The program for the tangents of `targets` (slots) where each of `sources` (the slots of each) moves by a tangent of
/// its own. An error at `where` if an op on the path has no derivative, or a call none in forward mode.
std::shared_ptr<const GradientProgram> tangentProgram(const EagerTape &tape, const StructureHash &key,
                                                      std::span<const int32_t> targets,
                                                      std::span<const std::vector<int32_t>> sources, LaneCount lanes,
                                                      const Where &where);

/// Runs the program on what the tape holds and on seeds or tangents. With `record`, tapes that record now, and know a
/// value that it reads, record it.
std::vector<Tensor> run(const GradientProgram &program, const EagerTape &tape, std::span<const Tensor> given,
                        bool record, const Where &where);

/// `shape` with one more axis in front.
Shape withLanes(int64_t count, const Shape &shape);

/// The outputs for each lane of `given`, whose first axis they are on; `all` is the program for all lanes at once, and
/// `programFor` makes that for fewer.
std::vector<Tensor> runLanes(const GradientProgram &all,
                             llvm::function_ref<std::shared_ptr<const GradientProgram>(int64_t count)> programFor,
                             const EagerTape &tape, std::span<const Tensor> given, Lanes &lanes, bool record,
                             const Where &where);

/// The ops whose sum `gradient` is, if each adds rows to zeros, as gathering does backwards; else none.
llvm::SmallVector<ir::ScatterAddOp> scattersOf(mlir::Value gradient);

/// While it lives, tapes that are there record nothing: all of them, or those for which `which(tape)` holds.
class NotRecording {
public:
  NotRecording() : NotRecording([](const Tape *) { return true; }) {}
  template <class Which> explicit NotRecording(Which which) {
    paused_.reserve(level().tapes.size()); // nothing is paused that is not resumed
    for (Tape *tape : level().tapes)
      if (which(tape) && tape->recording.exchange(false))
        paused_.push_back(tape);
  }
  NotRecording(const NotRecording &) = delete;
  ~NotRecording() {
    for (Tape *tape : paused_)
      if (std::find(level().tapes.begin(), level().tapes.end(), tape) != level().tapes.end())
        tape->recording = true;
  }

private:
  std::vector<Tape *> paused_;
};

} // namespace wg::detail
