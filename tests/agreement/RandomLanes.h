// Random programs and their derivatives for many lanes at once, against one lane after the other.
#pragma once

#include "tests/agreement/RandomEmit.h"

namespace wg::tests {

enum class Engine { interpreter, both };

/// Batches `emitted`, a program with Wanted::modes or Wanted::values, over some of its arguments; which, over how many
/// lanes, whether that number is known, and by which of autodiff's ways follow from the seed and the inputs. Checks in
/// the interpreter that lane i is what the program gives for lane i: bit for bit, or, behind a sum of floats, which may
/// round in another order, within the bound of gradients in docs/numbers.md. With Engine::both the batched program is
/// compiled too, and agrees with the interpreter.
void checkLanes(const RandomProgram &program, const Emitted &emitted, const std::vector<runtime::Array> &inputs,
                Engine engine);

/// The size of number whose rounding is as large as what the results make of the rounding of each op: where they cancel
/// or saturate, as 1 - tanh(x)^2 does, more than their own. At least `atLeast` and the largest result, and at most 256
/// times these.
double scaleOf(mlir::ModuleOp module, const std::string &function, const std::vector<runtime::Array> &inputs,
               double atLeast);

} // namespace wg::tests
