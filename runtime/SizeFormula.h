// Arithmetic on sizes as text, `a * 10 / 3`: what the op `size` computes of its operands, the first of which is `a`.
// One parser and one arithmetic for the op's kernel, its folder, its verifier, and the front end.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wg::runtime {

/// Whether `formula` can be read, and names none but the first `count` letters. It is built of letters, literals, `+ -
/// *`, `//` (rounded down), `/` (which leaves no rest), `%` (of the divisor's sign), `min(...)`, `max(...)` and
/// parentheses, with the usual precedence.
Status checkSizeFormula(std::string_view formula, size_t count);

/// The formula's value, a being values[0]. A failure if a step is beyond 64 bits or divides by zero, if `/` leaves a
/// rest, or if the result is negative; a step may be.
Result<int64_t> evaluateSize(std::string_view formula, std::span<const int64_t> values);

/// The formula with its known operands written as numbers, and the others, those of value kDynamic,
/// renamed to a, b, ... in their order.
std::string withKnown(std::string_view formula, std::span<const int64_t> values);

} // namespace wg::runtime
