// Indices as data: what gathers and updates share. Private to kernels/.
#pragma once

#include "runtime/kernels/Kernels.h"

namespace wg::runtime {

/// The indices as i64 or i32, `f(span)`, or a failure that names the first one outside [0, size).
template <class F> Status withIndices(const Array &indices, int64_t size, const char *what, F f) {
  return visit(Indices(), indices.dtype(), [&]<class I>(I) -> Status {
    std::span<const I> all = indices.span<I>();
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] < 0 || all[i] >= size)
        return valueError(say("index ", int64_t(all[i]), " at position ", int64_t(i), " is out of range for ", what,
                              " of size ", size));
    f(all);
    return {};
  });
}

/// Whether the first axes of x and of the indices are those of one batch.
Status checkBatch(const TensorType &x, const char *name, const TensorType &indices, int64_t batch);
/// Whether the updates are rows of y at the indices.
Status checkUpdates(const TensorType &updates, const TensorType &indices, const TensorType &y, int64_t batch);
/// x, updates of its dtype, indices; the result is as x.
Status indexUpdateRule(TypeSpan operands, const Attrs &attrs, TypeList &results);
/// The number of places of the first axes.
int64_t sizeOfFirst(const Shape &shape, int64_t axes);

/// f(row of y, row of updates, elements of a row) for each index, in order, where all are in range; T is what elements
/// are seen as.
template <class T, class I, class F>
void forRows(const Array &updates, std::span<const I> indices, Array &y, int64_t batch, F f) {
  int axis = static_cast<int>(batch);
  Ints strides = stridesOf(y.shape());
  int64_t rows = y.shape()[axis], row = strides[static_cast<size_t>(axis)], places = sizeOfFirst(y.shape(), batch);
  int64_t each = places == 0 ? 0 : static_cast<int64_t>(indices.size()) / places; // indices of one place of the batch
  const T *from = static_cast<const T *>(updates.buffer.data());
  T *to = static_cast<T *>(y.buffer.data());
  for (int64_t i = 0, count = static_cast<int64_t>(indices.size()); i < count; ++i)
    f(to + (i / each * rows + indices[static_cast<size_t>(i)]) * row, from + i * row, row);
}

} // namespace wg::runtime
