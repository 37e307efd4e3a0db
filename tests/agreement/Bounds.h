// The bounds of the agreement tests, read from the section "Agreement" of docs/numbers.md: there is no other table.
#pragma once

#include "runtime/DType.h"

#include <string>
#include <string_view>
#include <vector>

namespace wg::tests {

/// How far compiled code may be from the interpreter on one op. No ulps: every bit is the same.
struct OpBound {
  double ulps = 0;
  bool ofTerms = false; ///< ulps of what the op makes of the absolute values of its operands, not of the element itself
};

/// The bound of an op in f64 or f32. An op without a row, and any other dtype, is exact.
OpBound boundOf(std::string_view op, runtime::DType dtype);
/// The bound of a row of the table of programs, in ulps of the largest element of a result.
double boundOfPrograms(std::string_view programs);
/// The ops that have a row.
std::vector<std::string> opsWithBounds();

} // namespace wg::tests
