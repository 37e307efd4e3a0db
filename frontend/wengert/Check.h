// What a tensor is expected to be, said where it comes in.
#pragma once

#include <wengert/Variable.h>

#include <string_view>

namespace wg {

/// x, if it has this shape: `shape_check(x, {dynamic, 784}, "images")`. `dynamic` (or -1) accepts any size of an axis;
/// the number of axes is fixed. Else an error with `name`, the shape found, the shape wanted, and the user's line.
///
/// Inside a traced function a size may be `?`; where a number is wanted for it, the result has that number as its size,
/// and a call for which this is not so is an error when the function runs. Otherwise the result is x itself.
WENGERT_API Tensor shape_check(const Located &x, const Shape &shape, std::string_view name = {});

/// While it is set, an op whose result has a NaN or an infinity that no operand has is an error, which names the op,
/// its line, the element, and in a loop the turn. Traced functions are interpreted then, so it is slow. What is written
/// in the program, such as -inf for a mask, does not count. Affects all threads. As jax_debug_nans,
/// tf.debugging.enable_check_numerics.
WENGERT_API void set_debug_nans(bool debug);

} // namespace wg
