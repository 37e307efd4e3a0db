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

/// How far two engines may differ, in ulps of the largest element of a result, or of `atLeast` where that is more; or,
/// with `scales`, one array for each result, of that array's element at the same place. No ulps: bit for bit, but for
/// the payload of a NaN.
struct Tolerance {
  double ulps = 0;
  double atLeast = 0;
  std::vector<runtime::Array> scales = {};
  double *met = nullptr; ///< told the largest difference, if there are scales
};

/// Two arrays of one type agree: floats within `tolerance`, whose scale for this one is `scale`, the rest exactly.
void expectClose(const runtime::Array &expected, const runtime::Array &actual, const Tolerance &tolerance,
                 const std::string &what, const runtime::Array *scale = nullptr);

/// Runs `function` of `module` on `inputs` everywhere. Checks that fusing keeps every bit (a product that became a sum
/// of products: the tolerance), that compiled code agrees (floats within `tolerance`, the rest exactly), and that the
/// text of the lowered program, read back, compiles to code with the same bits. With a `turn`, the number of this
/// program among many, it compiles for one level of CPU, each in turn, and reads the text of each twelfth back.
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
