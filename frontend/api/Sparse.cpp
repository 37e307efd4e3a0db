#include "frontend/api/Sparse.h"

#include "frontend/ops/Operands.h"
#include "frontend/staging/Tape.h"

#include <wengert/Function.h>

#include <algorithm>
#include <cstring>

namespace wg {

using detail::raiseOp;
using runtime::OpId;

Grad::Grad(SparseRows rows, Where where) {
  const TensorType &indices = rows.indices.body(where)->type, &values = rows.rows.body(where)->type;
  bool fits = (indices.dtype == i64 || indices.dtype == i32) && indices.shape.rank() == 1 && rows.shape.rank() > 0 &&
              rows.shape.isStatic() && values.shape.rank() == rows.shape.rank() && runtime::isFloat(values.dtype);
  for (int axis = 0; fits && axis < values.shape.rank(); ++axis)
    fits = detail::sameSizes({values.shape.dim(axis)}, {axis == 0 ? indices.shape.dim(0) : rows.shape.dim(axis)});
  if (!fits)
    raiseOp("gradient",
            "the rows are " + toString(values) + " at indices " + toString(indices) + " of a tensor of shape " +
                toString(rows.shape),
            "give indices integer[n] and rows float[n, shape[1:]...]", {values, indices}, where);
  sparse_ = std::make_shared<detail::SparseState>();
  sparse_->rows = std::move(rows);
}

const SparseRows &Grad::sparse_rows(Where where) const {
  if (!sparse_)
    raiseOp("gradient", has_value() ? "the gradient is dense" : "the gradient is None: " + reason_,
            "ask is_sparse() first", {}, where);
  return sparse_->rows;
}

namespace detail {

static Tensor scatter(const Tensor &rows, const Tensor &indices, const Shape &shape, const std::vector<Tensor> &sizes,
                      const Where &where) {
  std::vector<const Tensor *> operands{&rows, &indices};
  for (const Tensor &size : sizes)
    operands.push_back(&size);
  Tensor y;
  applyOp(OpId::scatter_add, runtime::ScatterAddAttrs::make(shape, 0), operands, std::span(&y, 1), where);
  return y;
}

Grad emptyRows(const Shape &shape) {
  Shape rows = shape;
  rows[0] = 0;
  return Grad(SparseRows{Tensor(TensorSpec{i64, {0}}), Tensor(TensorSpec{f32, rows}), shape});
}

bool isRecorded() {
  const std::vector<Tape *> &tapes = level().tapes;
  return std::any_of(tapes.begin(), tapes.end(), [](const Tape *tape) { return tape->recording.load(); });
}

Grad rowsOf(const Tensor &indices, const Tensor &rows, const Shape &shape) {
  return isRecorded() ? Grad(scatter(rows, indices, shape, {}, {})) : Grad(SparseRows{indices, rows, shape});
}

Grad sparseGrad(const std::vector<std::pair<Tensor, Tensor>> &parts, const Shape &shape, const Where &where) {
  std::vector<Tensor> indices, rows;
  Shape flat = shape;
  bool alike = true;
  for (const auto &[index, row] : parts)
    alike = alike && index.dtype() == parts.front().first.dtype();
  for (const auto &[index, row] : parts) {
    // Rows without elements do not say how many there are.
    flat[0] = index.shape().isStatic() ? index.shape().numElements() : -1;
    Tensor one = index.rank() == 1 ? index : reshape(Located(index, where), {-1});
    indices.push_back(alike ? one : cast(Located(one, where), i64));
    rows.push_back(index.rank() == 1 ? row : reshape(Located(row, where), flat));
  }
  return parts.size() == 1 ? Grad(SparseRows{indices[0], rows[0], shape}, where)
                           : Grad(SparseRows{concat(indices, 0, where), concat(rows, 0, where), shape}, where);
}

SparseRows merged(const SparseRows &sparse, const Where &where) {
  Tensor first = applyOne(OpId::first_occurrence, {}, {&sparse.indices}, where);
  std::vector<Tensor> sizes;
  const Shape &shape = sparse.rows.shape();
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape.dim(axis) == dynamic)
      sizes.push_back(dim(sparse.rows, axis, where));
  return {sparse.indices, scatter(sparse.rows, first, shape, sizes, where), sparse.shape};
}

Tensor firstPlaces(const SparseRows &sparse, const Where &where) {
  Tensor first = applyOne(OpId::first_occurrence, {}, {&sparse.indices}, where), size, places;
  Shape count{sparse.indices.shape().dim(0)},
      column = Shape(std::vector<int64_t>(static_cast<size_t>(sparse.rows.rank()), 1));
  std::vector<const Tensor *> sizes;
  if (!count.isStatic()) {
    size = dim(sparse.indices, 0, where);
    sizes.push_back(&size);
  }
  applyOp(OpId::iota, runtime::IotaAttrs::make(count, 0, i64), sizes, std::span(&places, 1), where);
  column[0] = -1;
  return reshape(Located(equal(Located(first, where), Located(places, where)), where), column);
}

void addRows(const std::vector<RowChange> &changes, const Where &where) {
  if (level().trace) {
    for (const RowChange &change : changes) {
      Tensor before = change.variable.value(where);
      change.variable.assign(Located(
          applyOne(OpId::index_add, runtime::IndexAddAttrs::make(0), {&before, &change.rows, &change.indices}, where),
          where));
    }
    return;
  }
  std::vector<std::shared_ptr<VariableState>> variables;
  for (const RowChange &change : changes) {
    currentValue(change.variable.state(), where); // no parameter of a trace that has ended
    variables.push_back(variableBehind(change.variable.state()));
  }
  // In the order in which calls lock them.
  std::sort(variables.begin(), variables.end(), [](const auto &a, const auto &b) { return a->id < b->id; });
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  // New identities: tapes know the values before. The old values die outside of the locks.
  std::vector<Tensor> next, old(variables.size());
  for (size_t i = 0; i < variables.size(); ++i)
    next.push_back(makeTensor(runtime::Array()));
  std::vector<std::unique_lock<std::shared_mutex>> locks;
  locks.reserve(variables.size());
  for (const std::shared_ptr<VariableState> &variable : variables)
    locks.emplace_back(variable->mutex);
  for (size_t i = 0; i < variables.size(); ++i) {
    TensorState *current = stateOf(variables[i]->current);
    runtime::Array value{current->type, current->buffer};
    bool isOwn = current->references.load(std::memory_order_acquire) == 1;
    if (isOwn) { // and nobody looks at it
      current->buffer = runtime::Buffer();
      isOwn = value.buffer.unique();
      current->buffer = value.buffer;
    }
    if (!isOwn) {
      value = runtime::Array::empty(current->type.dtype, current->type.shape);
      if (size_t bytes = value.numBytes())
        std::memcpy(value.buffer.data(), current->buffer.data(), bytes);
    }
    stateOf(next[i])->type = value.type;
    stateOf(next[i])->buffer = std::move(value.buffer);
  }
  for (const RowChange &change : changes) {
    auto at = std::find(variables.begin(), variables.end(), variableBehind(change.variable.state()));
    runtime::Array value = arrayOf(next[static_cast<size_t>(at - variables.begin())]);
    runtime::Status status = runtime::addRowsInPlace(value, arrayOf(change.rows), arrayOf(change.indices));
    if (!status.ok())
      raise(status.take(), where);
  }
  for (size_t i = 0; i < variables.size(); ++i)
    old[i] = std::exchange(variables[i]->current, std::move(next[i]));
}

} // namespace detail

/// Where the rows are: eagerly, or in the trace that made them.
const Tensor &Grad::denseValue(const Where &where) const {
  if (!sparse_)
    raiseEmpty(where);
  std::lock_guard lock(sparse_->mutex);
  if (sparse_->dense.defined())
    return sparse_->dense;
  const SparseRows &rows = sparse_->rows;
  auto compute = [&] { sparse_->dense = detail::scatter(rows.rows, rows.indices, rows.shape, {}, where); };
  if (!rows.rows.symbolic() && !rows.indices.symbolic() && tracing())
    at_trace_time(compute);
  else if (detail::Level *home = detail::levelOf(rows.rows.symbolic() ? rows.rows : rows.indices)) {
    detail::EnterLevel scope(*home);
    compute();
  } else {
    compute();
  }
  return sparse_->dense;
}

} // namespace wg
