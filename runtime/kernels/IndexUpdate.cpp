// Parts of a tensor replaced: index_set, index_max, index_min, dynamic_slice, dynamic_update_slice.
#include "runtime/kernels/Indices.h"

#include <algorithm>
#include <cstring>

namespace wg::runtime {

static void copyUnlessInPlace(const Array &x, Array &y) {
  if (size_t bytes = y.numBytes(); bytes && y.buffer.data() != x.buffer.data())
    std::memcpy(y.buffer.data(), x.buffer.data(), bytes);
}

// ---- Rows at indices ------------------------------------------------------------------------------------------------
static Status indexSetKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  Array &y = results[0];
  int64_t batch = attrs.integer(0);
  return withIndices(operands[2], y.shape()[static_cast<int>(batch)], "an axis",
                     [&]<class I>(std::span<const I> indices) {
                       copyUnlessInPlace(operands[0], y);
                       visitWidth(y.dtype(), [&]<class B>(B) {
                         forRows<B>(operands[1], indices, y, batch,
                                    [](B *to, const B *from, int64_t row) { std::copy_n(from, row, to); });
                       });
                     });
}

/// Each element of an updated row is f(itself, the update's).
template <class F>
static Status indexCombineKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  Array &y = results[0];
  int64_t batch = attrs.integer(0);
  return visit(Numbers(), y.dtype(), [&]<class T>(T) -> Status {
    return withIndices(operands[2], y.shape()[static_cast<int>(batch)], "an axis",
                       [&]<class I>(std::span<const I> indices) {
                         copyUnlessInPlace(operands[0], y);
                         forRows<T>(operands[1], indices, y, batch, [](T *to, const T *from, int64_t row) {
                           for (int64_t j = 0; j < row; ++j)
                             to[j] = F()(to[j], from[j]);
                         });
                       });
  });
}

using Larger = decltype([]<class T>(T a, T b) { return maximumOf(a, b); });
using Smaller = decltype([]<class T>(T a, T b) { return minimumOf(a, b); });

// ---- Parts at starts ------------------------------------------------------------------------------------------------
/// Starts are [batch..., one for each other axis of x], and the part fits into x.
static Status checkPart(const TensorType &x, const TensorType &part, const TensorType &starts, int64_t batch) {
  if (Status status = checkIndex("the starts", starts); !status.ok())
    return status;
  int rank = x.shape.rank();
  bool ok = part.shape.rank() == rank;
  for (int axis = 0; ok && axis < rank; ++axis) {
    int64_t size = x.shape.dim(axis), taken = part.shape.dim(axis);
    ok = axis < batch ? mayBeEqual(size, taken) : taken <= size || size == kDynamic || taken == kDynamic;
  }
  if (!ok)
    return valueError(say("a part of shape ", part.shape, " is not within ", x),
                      "it has as many axes as x, and sizes that are not larger");
  ok = batch >= 0 && batch <= rank && starts.shape.rank() == batch + 1 &&
       mayBeEqual(starts.shape.dim(static_cast<int>(batch)), rank - batch);
  for (int axis = 0; ok && axis < batch; ++axis)
    ok = mayBeEqual(x.shape.dim(axis), starts.shape.dim(axis));
  return ok ? Status()
            : valueError(say("the starts are ", starts, " for ", x, ", of which ", batch, " axes are a batch"),
                         "give one start for each axis that is not of the batch");
}

/// f(the first place of the part in x, its first place in the part) in each place of the batch, in elements.
template <class F> static Status forParts(const Shape &x, const Shape &part, const Array &starts, int64_t batch, F f) {
  size_t own = x.size() - static_cast<size_t>(batch);
  Ints strides = stridesOf(x);
  return visit(Indices(), starts.dtype(), [&]<class I>(I) -> Status {
    std::span<const I> all = starts.span<I>();
    int64_t places = sizeOfFirst(x, batch), size = 1, taken = 1;
    for (size_t axis = static_cast<size_t>(batch); axis < x.size(); ++axis)
      size *= x[axis], taken *= part[axis];
    for (int64_t place = 0; taken != 0 && place < places; ++place) {
      int64_t first = place * size;
      for (size_t i = 0; i < own; ++i) {
        size_t axis = static_cast<size_t>(batch) + i;
        int64_t start = all[static_cast<size_t>(place) * own + i];
        first += std::min(std::max<int64_t>(start, 0), x[axis] - part[axis]) * strides[axis];
      }
      f(first, place * taken);
    }
    return {};
  });
}

static Ints tail(const Ints &values, int64_t from) {
  Ints rest;
  for (size_t i = static_cast<size_t>(from); i < values.size(); ++i)
    rest.push_back(values[i]);
  return rest;
}

static Status dynamicSliceRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  TensorType y{x.dtype, Shape(attrs.ints(0))};
  if (Status status = checkPart(x, y, operands[1], attrs.integer(1)); !status.ok())
    return status;
  results.push_back(y);
  return {};
}
static Status dynamicSliceKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  Array &y = results[0];
  int64_t batch = attrs.integer(1);
  Ints sizes = tail(y.shape(), batch), from = tail(stridesOf(x.shape()), batch), to = tail(stridesOf(y.shape()), batch);
  return forParts(x.shape(), y.shape(), operands[1], batch, [&](int64_t first, int64_t part) {
    copyStrided(x.dtype(), sizes, at(x, first), from, at(y, part), to);
  });
}

static Status dynamicUpdateSliceRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0], &update = operands[1];
  if (update.dtype != x.dtype)
    return typeError(say("x is ", x, ", the update is ", update), "cast the update to x's dtype");
  if (Status status = checkPart(x, update, operands[2], attrs.integer(0)); !status.ok())
    return status;
  results.push_back(x);
  return {};
}
static Status dynamicUpdateSliceKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &update = operands[1];
  Array &y = results[0];
  int64_t batch = attrs.integer(0);
  copyUnlessInPlace(operands[0], y);
  Ints sizes = tail(update.shape(), batch), from = tail(stridesOf(update.shape()), batch),
       to = tail(stridesOf(y.shape()), batch);
  return forParts(y.shape(), update.shape(), operands[2], batch, [&](int64_t first, int64_t part) {
    copyStrided(y.dtype(), sizes, at(update, part), from, at(y, first), to);
  });
}

std::span<const KernelRow> indexUpdateKernels() {
  static constexpr KernelRow rows[] = {{"index_set", indexUpdateRule, indexSetKernel},
                                       {"index_max", indexUpdateRule, indexCombineKernel<Larger>},
                                       {"index_min", indexUpdateRule, indexCombineKernel<Smaller>},
                                       {"dynamic_slice", dynamicSliceRule, dynamicSliceKernel},
                                       {"dynamic_update_slice", dynamicUpdateSliceRule, dynamicUpdateSliceKernel}};
  return rows;
}

} // namespace wg::runtime
