// Places as data. Every index is checked before anything is written.
#include "runtime/kernels/Kernels.h"

#include <cstring>

namespace wg::runtime {

Status checkIndex(const char *name, const TensorType &type) {
  if (type.dtype == DType::i64 || type.dtype == DType::i32)
    return {};
  return typeError(say(name, " are i64 or i32, got ", type), "cast them: cast(indices, i64)");
}

/// The indices as i64, or a failure that names the first one outside [0, size).
template <class F> static Status withIndices(const Array &indices, int64_t size, const char *what, F f) {
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

// ---- one_hot --------------------------------------------------------------------------------------------------------
static Status oneHotRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  OneHotAttrs oneHot{attrs};
  if (Status status = checkIndex("the indices", operands[0]); !status.ok())
    return status;
  if (oneHot.depth() < 0)
    return valueError(say("depth is not negative, got ", oneHot.depth()));
  if (operands[0].shape.rank() == kMaxRank)
    return valueError(say("the result of ", operands[0], " would have rank ", int64_t(kMaxRank + 1),
                          "; the highest is ", int64_t(kMaxRank)));
  TensorType y{oneHot.dtype(), operands[0].shape};
  y.shape.push_back(oneHot.depth());
  results.push_back(y);
  return {};
}
static Status oneHotKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  int64_t depth = OneHotAttrs{attrs}.depth();
  if (size_t bytes = results[0].numBytes())
    std::memset(results[0].buffer.data(), 0, bytes);
  return visit(AllTypes(), results[0].dtype(), [&]<class T>(T) {
    return visit(Indices(), operands[0].dtype(), [&]<class I>(I) -> Status {
      std::span<const I> x = operands[0].span<I>();
      T *y = results[0].data<T>();
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i] >= 0 && x[i] < depth)
          y[static_cast<int64_t>(i) * depth + x[i]] = T(1);
      return {};
    });
  });
}

// ---- gather: y[i..., j...] = x[indices[i...], j...] -----------------------------------------------------------------
static Status gatherRule(TypeSpan operands, const Attrs &, TypeList &results) {
  const TensorType &x = operands[0], &indices = operands[1];
  if (x.shape.rank() == 0)
    return valueError(say("takes rows of x, which has none: ", x));
  if (Status status = checkIndex("the indices", indices); !status.ok())
    return status;
  int rank = indices.shape.rank() + x.shape.rank() - 1;
  if (rank > kMaxRank)
    return valueError(say("the result of ", x, " at ", indices, " would have rank ", int64_t(rank), "; the highest is ",
                          int64_t(kMaxRank)));
  TensorType y{x.dtype, indices.shape};
  for (int axis = 1; axis < x.shape.rank(); ++axis)
    y.shape.push_back(x.shape.dim(axis));
  results.push_back(y);
  return {};
}
static Status gatherKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  const Array &x = operands[0];
  size_t row = static_cast<size_t>(stridesOf(x.shape())[0]) * sizeOf(x.dtype());
  return withIndices(operands[1], x.shape()[0], "an axis", [&]<class I>(std::span<const I> indices) {
    auto *from = static_cast<const char *>(x.buffer.data());
    auto *to = static_cast<char *>(results[0].buffer.data());
    if (row != 0)
      forChunks(static_cast<int64_t>(indices.size()), std::max<int64_t>(1, (1 << 18) / static_cast<int64_t>(row)),
                [=](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i)
                    std::memcpy(to + static_cast<size_t>(i) * row,
                                from + static_cast<size_t>(indices[static_cast<size_t>(i)]) * row, row);
                });
  });
}

// ---- scatter_add: y[indices[i...], j...] += updates[i..., j...] -----------------------------------------------------
static Status scatterAddRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &updates = operands[0], &indices = operands[1];
  if (Status status = checkIndex("the indices", indices); !status.ok())
    return status;
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  TensorType y{updates.dtype, Shape(attrs.ints(0))};
  bool ok = y.shape.rank() > 0 && updates.shape.rank() == indices.shape.rank() + y.shape.rank() - 1;
  for (int axis = 0; ok && axis < updates.shape.rank(); ++axis) {
    int own = axis - indices.shape.rank();
    ok = mayBeEqual(updates.shape.dim(axis), own < 0 ? indices.shape.dim(axis) : y.shape.dim(own + 1));
  }
  if (!ok)
    return valueError(say("updates ", updates, " are not the rows of ", y, " at indices ", indices),
                      "their shape is that of the indices, then that of one row");
  results.push_back(y);
  return {};
}
static Status scatterAddKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  const Array &updates = operands[0];
  Array &y = results[0];
  int64_t row = stridesOf(y.shape())[0];
  return withIndices(operands[1], y.shape()[0], "an axis", [&]<class I>(std::span<const I> indices) {
    if (size_t bytes = y.numBytes())
      std::memset(y.buffer.data(), 0, bytes);
    (void)visit(Numbers(), y.dtype(), [&]<class T>(T) -> Status {
      const T *from = updates.data<T>();
      T *to = y.data<T>();
      for (size_t i = 0; i < indices.size(); ++i)
        for (int64_t j = 0; j < row; ++j) {
          T &sum = to[indices[i] * row + j];
          sum = wrappedAdd(sum, from[static_cast<int64_t>(i) * row + j]);
        }
      return {};
    });
  });
}

std::span<const KernelRow> indexKernels() {
  static constexpr KernelRow rows[] = {{"one_hot", oneHotRule, oneHotKernel},
                                       {"gather", gatherRule, gatherKernel},
                                       {"scatter_add", scatterAddRule, scatterAddKernel}};
  return rows;
}

} // namespace wg::runtime
