// Places as data. Every index is checked before anything is written.
#include "runtime/kernels/Indices.h"

#include <array>
#include <cstring>
#include <unordered_map>

namespace wg::runtime {

Status checkIndex(const char *name, const TensorType &type) {
  if (type.dtype == DType::i64 || type.dtype == DType::i32)
    return {};
  return typeError(say(name, " are i64 or i32, got ", type), "cast them: cast(indices, i64)");
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

Status checkBatch(const TensorType &x, const char *name, const TensorType &indices, int64_t batch) {
  bool ok = batch >= 0 && batch <= indices.shape.rank() && batch < x.shape.rank();
  for (int axis = 0; ok && axis < batch; ++axis)
    ok = mayBeEqual(x.shape.dim(axis), indices.shape.dim(axis));
  return ok ? Status()
            : valueError(say("the first ", batch, " axes of ", name, " ", x, " are not those of the indices ", indices),
                         "batch_dims counts axes that are the same in both, in front");
}

int64_t sizeOfFirst(const Shape &shape, int64_t axes) {
  int64_t size = 1;
  for (int axis = 0; axis < axes; ++axis)
    size *= shape[axis];
  return size;
}

// ---- gather: y[i..., j...] = x[indices[i...], j...], in each place of the batch -------------------------------------
static Status gatherRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0], &indices = operands[1];
  if (x.shape.rank() == 0)
    return valueError(say("takes rows of x, which has none: ", x));
  if (Status status = checkIndex("the indices", indices); !status.ok())
    return status;
  int64_t batch = GatherAttrs{attrs}.batch_dims();
  if (Status status = checkBatch(x, "x", indices, batch); !status.ok())
    return status;
  int first = static_cast<int>(batch) + 1, rank = indices.shape.rank() + x.shape.rank() - first;
  if (rank > kMaxRank)
    return valueError(say("the result of ", x, " at ", indices, " would have rank ", int64_t(rank), "; the highest is ",
                          int64_t(kMaxRank)));
  TensorType y{x.dtype, indices.shape};
  for (int axis = first; axis < x.shape.rank(); ++axis)
    y.shape.push_back(x.shape.dim(axis));
  results.push_back(y);
  return {};
}
static Status gatherKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  int batch = static_cast<int>(GatherAttrs{attrs}.batch_dims());
  int64_t rows = x.shape()[batch], places = sizeOfFirst(x.shape(), batch);
  size_t row = static_cast<size_t>(stridesOf(x.shape())[batch]) * sizeOf(x.dtype());
  return withIndices(operands[1], rows, "an axis", [&]<class I>(std::span<const I> indices) {
    int64_t each = places == 0 ? 0 : static_cast<int64_t>(indices.size()) / places; // indices of one place of the batch
    auto *from = static_cast<const char *>(x.buffer.data());
    auto *to = static_cast<char *>(results[0].buffer.data());
    if (row != 0)
      forChunks(static_cast<int64_t>(indices.size()), std::max<int64_t>(1, (1 << 18) / static_cast<int64_t>(row)),
                [=](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i)
                    std::memcpy(to + static_cast<size_t>(i) * row,
                                from + static_cast<size_t>(i / each * rows + indices[static_cast<size_t>(i)]) * row,
                                row);
                });
  });
}

Status checkUpdates(const TensorType &updates, const TensorType &indices, const TensorType &y, int64_t batch) {
  if (Status status = y.shape.rank() > 0 || batch != 0 ? checkBatch(y, "y", indices, batch) : Status(); !status.ok())
    return status;
  int first = static_cast<int>(batch) + 1; // of the axes of one row
  bool ok = y.shape.rank() > 0 && updates.shape.rank() == indices.shape.rank() + y.shape.rank() - first;
  for (int axis = 0; ok && axis < updates.shape.rank(); ++axis) {
    int own = axis - indices.shape.rank();
    ok = mayBeEqual(updates.shape.dim(axis), own < 0 ? indices.shape.dim(axis) : y.shape.dim(own + first));
  }
  return ok ? Status()
            : valueError(say("updates ", updates, " are not the rows of ", y, " at indices ", indices),
                         "their shape is that of the indices, then that of one row");
}

/// y[indices[i...], j...] += updates[i..., j...], where all indices are in range.
template <class I> static void addRows(const Array &updates, std::span<const I> indices, Array &y, int64_t batch) {
  (void)visit(Numbers(), y.dtype(), [&]<class T>(T) -> Status {
    forRows<T>(updates, indices, y, batch, [](T *sums, const T *terms, int64_t row) {
      for (int64_t j = 0; j < row; ++j)
        sums[j] = wrappedAdd(sums[j], terms[j]);
    });
    return {};
  });
}

// ---- scatter_add: y[indices[i...], j...] += updates[i..., j...], in each place of the batch -------------------------
static Status scatterAddRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &updates = operands[0], &indices = operands[1];
  if (Status status = checkIndex("the indices", indices); !status.ok())
    return status;
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  TensorType y{updates.dtype, Shape(attrs.ints(0))};
  if (Status status = checkUpdates(updates, indices, y, ScatterAddAttrs{attrs}.batch_dims()); !status.ok())
    return status;
  results.push_back(y);
  return {};
}
static Status scatterAddKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  Array &y = results[0];
  int64_t batch = ScatterAddAttrs{attrs}.batch_dims();
  return withIndices(operands[1], y.shape()[static_cast<int>(batch)], "an axis",
                     [&]<class I>(std::span<const I> indices) {
                       if (size_t bytes = y.numBytes())
                         std::memset(y.buffer.data(), 0, bytes);
                       addRows(operands[0], indices, y, batch);
                     });
}

// ---- index_add: y = x, and y[indices[i...], j...] += updates[i..., j...], in each place of the batch ---------------
Status indexUpdateRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0], &updates = operands[1], &indices = operands[2];
  if (updates.dtype != x.dtype)
    return typeError(say("x is ", x, ", the updates are ", updates), "cast the updates to x's dtype");
  if (Status status = checkIndex("the indices", indices); !status.ok())
    return status;
  int64_t batch = attrs.integer(0);
  if (Status status = checkUpdates(updates, indices, x, batch); !status.ok())
    return status;
  results.push_back(x);
  return {};
}
static Status indexAddKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  Array &y = results[0];
  int64_t batch = IndexAddAttrs{attrs}.batch_dims();
  return withIndices(operands[2], y.shape()[static_cast<int>(batch)], "an axis",
                     [&]<class I>(std::span<const I> indices) {
                       if (size_t bytes = y.numBytes(); bytes && y.buffer.data() != x.buffer.data())
                         std::memcpy(y.buffer.data(), x.buffer.data(), bytes);
                       addRows(operands[1], indices, y, batch);
                     });
}

// ---- first_occurrence: y[..., i] = the smallest j with x[..., j] = x[..., i] ---------------------------------------
static Status firstOccurrenceRule(TypeSpan operands, const Attrs &, TypeList &results) {
  if (Status status = checkIndex("the elements of x", operands[0]); !status.ok())
    return status;
  if (operands[0].shape.rank() == 0)
    return valueError(say("x has a last axis, got ", operands[0]));
  results.push_back({DType::i64, operands[0].shape});
  return {};
}
static Status firstOccurrenceKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  const Array &x = operands[0];
  int64_t n = x.shape()[x.shape().rank() - 1];
  return visit(Indices(), x.dtype(), [&]<class I>(I) -> Status {
    std::span<const I> all = x.span<I>();
    auto *y = results[0].data<int64_t>();
    for (size_t row = 0; n != 0 && row < all.size(); row += static_cast<size_t>(n)) {
      std::unordered_map<I, int64_t> first;
      first.reserve(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        y[row + static_cast<size_t>(i)] = first.try_emplace(all[row + static_cast<size_t>(i)], i).first->second;
    }
    return {};
  });
}

std::span<const KernelRow> indexKernels() {
  static constexpr KernelRow rows[] = {{"one_hot", oneHotRule, oneHotKernel},
                                       {"gather", gatherRule, gatherKernel},
                                       {"scatter_add", scatterAddRule, scatterAddKernel},
                                       {"index_add", indexUpdateRule, indexAddKernel},
                                       {"first_occurrence", firstOccurrenceRule, firstOccurrenceKernel}};
  return rows;
}

} // namespace wg::runtime
