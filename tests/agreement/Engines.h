// One program on every engine: the interpreter before and after fusion, and compiled code for several CPUs, each buffer of
// which ends at a guard page.
#pragma once

#include "runtime/Array.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wg::tests {

/// Runs `function` of `module` on `inputs` everywhere. Checks that fusing keeps every bit, and that compiled code agrees within
/// docs/numbers.md: `ulps` of the largest element of a result for floats, exactly for the rest.
void checkAgreement(mlir::ModuleOp module, const std::string &function, const std::vector<runtime::Array> &inputs, double ulps);

/// An array of `type` with elements drawn from [lo, hi).
runtime::Array randomArray(const runtime::TensorType &type, int64_t seed, double lo, double hi);

} // namespace wg::tests
