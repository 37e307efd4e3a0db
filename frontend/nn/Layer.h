// What layers have in common: initial values that are what was asked for, inputs that fit, axes cut and joined.
#pragma once

#include "frontend/ops/Placed.h"
#include "wengert/nn/Initializers.h"

#include <initializer_list>
#include <vector>

namespace wg::detail {

/// What an initializer makes of a shape and a dtype: an error of `op` if that is another one.
Tensor initialValue(const char *op, const char *name, const nn::Initializer &initializer, const Shape &shape,
                    DType dtype, const Where &where);
/// An error of `op` unless every number is 1 or more: `{{"features", 64}}`.
void checkSizesOfLayer(const char *op, std::initializer_list<std::pair<const char *, int64_t>> sizes,
                       const Where &where);
/// x ends with these axes (a `?` may be any of them), has the dtype and at least `rank` axes: else an error of `op`.
void checkInput(const char *op, const Tensor &x, const Shape &last, DType dtype, int rank, const Where &where);

/// x with sizes that may be open; as many elements as it has.
Tensor reshapeTo(const Tensor &x, const std::vector<Size> &sizes, const Where &where);
/// All sizes of x.
std::vector<Size> sizesOf(const Tensor &x, const Where &where);
/// [..., n] -> [..., parts, n / parts], the last axis being of static size, a multiple of `parts`.
Tensor splitLast(const Tensor &x, int64_t parts, const Where &where);
/// [..., a, b] -> [..., a b], both of static size.
Tensor joinLast(const Tensor &x, const Where &where);
/// The size of x's last axis; an error of `op` where there is none, or its size is open.
int64_t lastSize(const char *op, const Tensor &x, const Where &where);

} // namespace wg::detail
