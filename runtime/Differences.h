// The derivative of a function of one number, from its values only: what derivative rules are checked against.
#pragma once

#include <functional>

namespace wg::runtime {

struct Difference {
  double value; ///< the derivative
  double error; ///< how far off it may be, as the extrapolation itself and the rounding of f tell
};

/// f'(0), from central differences at steps that fall from `step` by halves, extrapolated to the step 0 (Ridders 1982,
/// section 4). The estimate whose error is the smallest counts, so that neither a step that leaves the function's
/// smooth part nor one at which rounding prevails does harm. Values of f that are not finite end nothing: no estimate
/// with them counts. The error is infinite if none is left. `epsilon` is the relative rounding of f's values.
Difference differentiate(const std::function<double(double)> &f, double step = 1e-2, double epsilon = 0x1p-52);

/// Whether the slopes on both sides of 0 differ: f is not differentiable there, though central differences have a
/// limit.
bool hasKink(const std::function<double(double)> &f, double step = 1e-2, double epsilon = 0x1p-52);

} // namespace wg::runtime
