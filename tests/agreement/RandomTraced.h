// Functions of the public interface as steps of a random program: what tracing them gives.
#pragma once

#include "tests/agreement/RandomProgram.h"

#include <functional>
#include <optional>

namespace wg {
class Tensor;
}

namespace wg::tests {

using TracedFunction = std::function<Tensor(const std::vector<Tensor> &)>;

/// Values are numbered as in a program: the operands first, then one for each step.
struct TracedSteps {
  std::vector<RandomProgram::Step> steps;
  int result = 0;
};

/// The ops of `f`, for operands of these types. Nothing where it refuses them, or is no straight line of ops.
std::optional<TracedSteps> stepsOf(const TracedFunction &f, const std::vector<runtime::Array> &operands);

} // namespace wg::tests
