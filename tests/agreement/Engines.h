// One program on every engine: the interpreter before and after fusion, and compiled code for several CPUs, each buffer
// of which ends at a guard page.
#pragma once

#include "runtime/Array.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace wg::tests {

/// How far two engines may differ: `ulps` of the largest element of a result, or of `atLeast` where that is more.
struct Tolerance {
  double ulps;
  double atLeast = 0;
};

/// Runs `function` of `module` on `inputs` everywhere. Checks that fusing keeps every bit, that compiled code agrees
/// within docs/numbers.md (floats within `tolerance`, the rest exactly), and that the text of the lowered program, read
/// back, compiles to code with the same bits. With a `turn`, the number of this program among many, it compiles for one
/// level of CPU, each in turn, and reads the text of each twelfth back.
void checkAgreement(mlir::ModuleOp module, const std::string &function, const std::vector<runtime::Array> &inputs,
                    Tolerance tolerance, std::optional<uint64_t> turn = {});

/// What the interpreter makes of `function`; a failure of the test and nothing where it fails.
std::vector<runtime::Array> interpreted(mlir::ModuleOp module, const std::string &function,
                                        const std::vector<runtime::Array> &inputs);

/// The largest finite absolute value of a float array; 0 for other dtypes.
double largest(const runtime::Array &array);

/// An array of `type` with elements drawn from [lo, hi).
runtime::Array randomArray(const runtime::TensorType &type, int64_t seed, double lo, double hi);

} // namespace wg::tests
