// The adjoint of what an eager tape holds, as flat rows; made once for a structure of tape.
#pragma once

#include "frontend/Tape.h"

#include "codegen/Interpret.h"

#include "llvm/ADT/StringMap.h"

namespace wg::detail {

/// The derivative of a recorded call by the results that have a cotangent.
struct CallDerivative {
  uint32_t call;
  std::vector<uint32_t> results;
};

/// The adjoint of one structure of tape.
struct GradientProgram {
  codegen::Program program;
  std::vector<int32_t> inputs;           ///< slots of the tape; seed k as -1 - k
  std::vector<int32_t> outputs;          ///< by source: its place among the outputs, or -1
  std::vector<std::string> reasons;      ///< by source: why there is none
  llvm::StringMap<CallDerivative> calls; ///< by the symbol that a row calls
  size_t bytes = 0;
};

/// The program for the gradient of `targets` (slots) by `sources` (the slots of each, whose gradients are summed), kept
/// under `key`, the hash of all of it. A target that is `seeded` has a cotangent of its own; the others have ones. An
/// error at `where` if an op on the path has no derivative.
std::shared_ptr<const GradientProgram>
gradientProgram(const EagerTape &tape, const StructureHash &key, std::span<const int32_t> targets,
                std::span<const uint8_t> seeded, std::span<const std::vector<int32_t>> sources, const Where &where);

} // namespace wg::detail
