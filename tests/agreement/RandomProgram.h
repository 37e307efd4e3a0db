// Programs that nobody would write: random ops on random shapes, drawn from a seed. A program is a list of calls of the
// runtime's records, so every front end can run the same one.
#pragma once

#include "runtime/Op.h"

#include <set>
#include <string>
#include <vector>

namespace wg::tests {

struct RandomProgramOptions {
  runtime::DType dtype = runtime::DType::f64; ///< of the floats
  int steps = 12;                             ///< about how many ops
  bool smooth = false;                        ///< only ops whose derivative central differences can check
  bool large = false; ///< sizes at which kernels are cut into pieces and products pack their operands
  bool empty = false; ///< one of the sizes is 0
};

/// Values are numbered: the inputs first, then one for each step.
struct RandomProgram {
  struct Step {
    runtime::OpId op;
    runtime::Attrs attrs;
    std::vector<int> operands;
  };
  uint64_t seed = 0;
  std::vector<runtime::Array> inputs;
  std::vector<Step> steps;
  std::vector<runtime::Array> values; ///< all of them, as the runtime's kernels compute them
  std::vector<int> outputs;
  double largest = 0;               ///< largest absolute float among the values
  std::set<std::string> composites; ///< the functions of the public interface that steps come from

  const runtime::TensorType &type(int value) const { return values[static_cast<size_t>(value)].type; }
};

/// The same program for the same seed and options, on every machine. All values are finite and below 1e4 in size.
RandomProgram randomProgram(uint64_t seed, const RandomProgramOptions &options);

/// The functions of the public interface that programs draw.
std::vector<std::string> compositesOfPrograms();

/// What of `program` computes `outputs`, the values `cuts` being inputs. Values that are left keep
/// their order, not their numbers.
RandomProgram partOf(const RandomProgram &program, const std::vector<int> &outputs, const std::set<int> &cuts);

/// One line for each input and step.
std::string toString(const RandomProgram &program);

} // namespace wg::tests
