// What everything that trains has in common: hyperparameters in their ranges, gradients that fit, and
// changing several variables at once.
#pragma once

#include "frontend/api/Sparse.h"

#include <utility>
#include <vector>

namespace wg::detail {

/// A hyperparameter that lies in its range; otherwise an error of `op`.
double within(const char *op, const char *name, double value, bool fits, const char *range, const Where &where);
/// What would fail half way through a step fails here, before it: a gradient of another shape or dtype than
/// its variable, or out of scope. `name` is that of a variable without one, if it is known.
void checkGradient(const char *op, const Grad &grad, const Variable &variable, const Where &where,
                   const std::string &name = {});
/// A count of steps, i64[], goes up by one: its values before and after. Eagerly, reading and assigning are one step
/// for other threads; a call of a traced function locks its variables itself.
std::pair<Tensor, Tensor> increment(const Variable &count);
/// Each variable takes the value beside it, and rows are added to others. Eagerly all of that or, for lack of memory,
/// nothing.
void assignAll(const std::vector<std::pair<Variable, Tensor>> &changes, const Where &where,
               const std::vector<RowChange> &rows = {});

Tensor isSubnormal(const Tensor &x);
/// x, and 0 where it is subnormal. The average of a gradient that has become 0 would otherwise decay into the
/// subnormals and stay there, where every operation costs a hundred cycles: step b of the benchmarks slowed down from
/// 205 to 420 us within 20,000 steps.
Tensor normalOrZero(const Tensor &x);

} // namespace wg::detail
