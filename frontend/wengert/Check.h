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

} // namespace wg
