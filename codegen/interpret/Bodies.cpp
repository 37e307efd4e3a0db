// Rows that run bodies: the branch that is taken, and the turns of a loop.
#include "codegen/interpret/Interpret.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace wg::runtime;

namespace wg::codegen {

static Status runBody(const Program &body, std::span<const Array> inputs, std::span<Array> outputs) {
  return run<Array>(body, inputs, outputs, Kernels{body});
}

static Status runCond(std::span<const std::shared_ptr<const Program>> branches, const OpCall &call,
                      std::span<Array> results) {
  const Array &selector = call.operands[0];
  int64_t taken = selector.dtype() == DType::boolean ? *selector.data<uint8_t>() != 0 : selector.asIndex();
  taken = std::clamp<int64_t>(taken, 0, static_cast<int64_t>(branches.size()) - 1);
  return runBody(*branches[static_cast<size_t>(taken)], call.operands.subspan(1), results);
}

namespace {

/// The rows of one stacked result: into the whole if it is known how many there are, else one by one.
class Stack {
public:
  Stack(int64_t length, DType dtype) : length_(length), dtype_(dtype) {}

  /// Row i. The first one decides the shape of all; another shape is a failure.
  Status put(int64_t i, const Array &row) {
    if (!rowShape_)
      begin(row.shape());
    else if (*rowShape_ != row.shape())
      return valueError("a turn stacks " + toString(row.type) + " where the first stacked " +
                            toString(TensorType{dtype_, *rowShape_}),
                        "stack values of one shape; a loop inside whose derivative keeps each turn needs max_steps");
    if (length_ < 0)
      rows_.push_back(row);
    else
      std::memcpy(whole_.data<char>() + static_cast<size_t>(i) * row.numBytes(), row.buffer.data(), row.numBytes());
    return {};
  }
  /// Nothing was stacked: rows of this type.
  void beginIfEmpty(const TensorType &row) {
    if (rowShape_)
      return;
    Ints sizes;
    for (int axis = 0; axis < row.shape.rank(); ++axis)
      sizes.push_back(std::max<int64_t>(0, row.shape.dim(axis))); // no turn says what `?` is
    begin(Shape(std::span<const int64_t>(sizes.begin(), sizes.size())));
  }
  Array finish() {
    if (length_ >= 0)
      return std::move(whole_);
    Array whole = Array::empty(dtype_, stacked(static_cast<int64_t>(rows_.size())));
    char *at = whole.data<char>();
    for (const Array &row : rows_) {
      std::memcpy(at, row.buffer.data(), row.numBytes());
      at += row.numBytes();
    }
    return whole;
  }

private:
  Shape stacked(int64_t rows) const {
    std::vector<int64_t> sizes{rows};
    sizes.insert(sizes.end(), rowShape_->begin(), rowShape_->end());
    return Shape(std::span<const int64_t>(sizes));
  }
  void begin(const Shape &row) {
    rowShape_ = row;
    if (length_ >= 0)
      whole_ = Array::zeros(dtype_, stacked(length_));
  }

  int64_t length_;
  DType dtype_;
  std::optional<Shape> rowShape_;
  Array whole_;
  std::vector<Array> rows_;
};

} // namespace

/// Row i of x, a copy.
static Array rowOf(const Array &x, int64_t i) {
  Array row = Array::empty(x.dtype(), Shape(std::span<const int64_t>(x.shape().begin() + 1, x.shape().end())));
  std::memcpy(row.buffer.data(), x.data<char>() + static_cast<size_t>(i) * row.numBytes(), row.numBytes());
  return row;
}

static Status runLoop(const Program &body, const Program *condition, const OpCall &call, std::span<Array> results) {
  LoopAttrs attrs{call.attrs};
  auto carried = static_cast<size_t>(attrs.carried()), scanned = static_cast<size_t>(attrs.scanned());
  std::span<const Array> operands = call.operands;
  int64_t length = attrs.length();
  std::span<const Array> limit = operands.first(attrs.limited()), inits = operands.subspan(limit.size(), carried),
                         xs = operands.subspan(limit.size() + carried, scanned),
                         invariants = operands.subspan(limit.size() + carried + scanned);
  for (const Array &x : xs) {
    int64_t rows = x.shape().dim(0);
    if (length < 0)
      length = rows;
    if (rows != length)
      return valueError("scans " + toString(x.type) + " beside " + std::to_string(length) +
                            (xs.size() > 1 && length == xs[0].shape().dim(0) ? " rows of another tensor" : " turns"),
                        "give all tensors as many rows");
  }
  int64_t most = length < 0 ? std::numeric_limits<int64_t>::max() : length;
  if (!limit.empty())
    most = std::min(most, std::max<int64_t>(0, limit[0].asIndex()));

  std::vector<Array> state(inits.begin(), inits.end());
  size_t numStacked = body.outputs.size() - carried;
  std::vector<Stack> stacks;
  for (size_t k = 0; k < numStacked; ++k)
    stacks.emplace_back(length, body.results[carried + k].dtype);
  std::vector<Array> inputs, outputs(body.outputs.size());
  int64_t turn = 0;
  for (; turn < most; ++turn) {
    if (condition) {
      inputs = state;
      inputs.insert(inputs.end(), invariants.begin(), invariants.end());
      Array predicate;
      if (Status status = runBody(*condition, inputs, {&predicate, 1}); !status.ok())
        return status;
      if (*predicate.data<uint8_t>() == 0)
        break;
    }
    int64_t i = attrs.reversed() ? most - 1 - turn : turn;
    inputs.assign(std::make_move_iterator(state.begin()), std::make_move_iterator(state.end()));
    for (const Array &x : xs)
      inputs.push_back(rowOf(x, i));
    inputs.insert(inputs.end(), invariants.begin(), invariants.end());
    if (Status status = runBody(body, inputs, outputs); !status.ok()) {
      status.failure().message +=
          " (turn " + std::to_string(turn) + " of the loop" + (call.where ? " at " + toString(call.where) : "") + ")";
      return status;
    }
    inputs.clear();
    for (size_t k = 0; k < carried; ++k) {
      if (outputs[k].shape() != inits[k].shape())
        return valueError("carries " + toString(inits[k].type) + " into turn " + std::to_string(turn) + " and " +
                              toString(outputs[k].type) + " out of it",
                          "carry values of one shape");
      state[k] = std::move(outputs[k]);
    }
    for (size_t k = 0; k < numStacked; ++k)
      if (Status status = stacks[k].put(i, outputs[carried + k]); !status.ok())
        return status;
  }
  for (size_t k = 0; k < numStacked; ++k) {
    stacks[k].beginIfEmpty(body.results[carried + k]);
    results[carried + (condition ? 1 : 0) + k] = stacks[k].finish();
  }
  std::move(state.begin(), state.end(), results.begin());
  if (condition)
    results[carried] = Array::scalar<int64_t>(turn);
  return {};
}

Status runBodies(const Program &program, const Row &row, const OpCall &call, std::span<Array> results) {
  std::span<const std::shared_ptr<const Program>> bodies =
      std::span(program.children).subspan(row.firstChild, row.numChildren);
  Status status = row.op == OpId::cond
                      ? runCond(bodies, call, results)
                      : runLoop(*bodies[0], bodies.size() > 1 ? bodies[1].get() : nullptr, call, results);
  if (!status.ok() && status.failure().op.empty()) {
    status.failure().op = recordOf(row.op).name;
    if (status.failure().where.empty() && row.where)
      status.failure().where = toString(row.where);
  }
  return status;
}

} // namespace wg::codegen
