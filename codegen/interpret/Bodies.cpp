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

/// The rows of one stacked result.
class Stack {
public:
  /// `row`: as the program knows it. `length`: how many there are; -1: as many as there will be.
  Stack(int64_t length, const TensorType &row) : length_(length), type_(row) {}

  /// Row i. Rows have the shape of the first; another one is a failure, but along axes that are open: what a loop
  /// inside keeps of its turns is as long as there were turns.
  Status put(int64_t i, const Array &row) {
    if (!shape_)
      begin(row.shape());
    else if (*shape_ != row.shape() && !widen(row.shape()))
      return valueError("a turn stacks " + toString(row.type) + " where the first stacked " +
                            toString(TensorType{type_.dtype, *shape_}),
                        "stack values of one shape");
    if (isOpen())
      rows_.emplace_back(i, row);
    else
      std::memcpy(whole_.data<char>() + static_cast<size_t>(i) * row.numBytes(), row.buffer.data(), row.numBytes());
    return {};
  }
  /// With zeros where no row was put, and behind rows that are shorter than others.
  Array finish() {
    if (!shape_) { // no turn says what `?` is
      Ints sizes;
      for (int64_t size : type_.shape)
        sizes.push_back(std::max<int64_t>(0, size));
      begin(Shape(sizes));
    }
    if (!isOpen())
      return std::move(whole_);
    Array whole = Array::zeros(type_.dtype, stacked(length_ < 0 ? static_cast<int64_t>(rows_.size()) : length_));
    for (const auto &[i, row] : rows_)
      write(row, whole, i);
    return whole;
  }

private:
  bool isOpen() const { return length_ < 0 || !type_.shape.isStatic(); }
  Shape stacked(int64_t rows) const {
    std::vector<int64_t> sizes{rows};
    sizes.insert(sizes.end(), shape_->begin(), shape_->end());
    return Shape(std::span<const int64_t>(sizes));
  }
  void begin(const Shape &row) {
    shape_ = row;
    if (!isOpen())
      whole_ = Array::zeros(type_.dtype, stacked(length_));
  }
  /// Makes room for a row of this shape; false if it differs along an axis that is not open.
  bool widen(const Shape &row) {
    for (int axis = 0; axis < row.rank(); ++axis) {
      int64_t &size = (*shape_)[static_cast<size_t>(axis)];
      if (row.dim(axis) != size && type_.shape.dim(axis) != kDynamic)
        return false;
      size = std::max(size, row.dim(axis));
    }
    return true;
  }
  /// Writes a row, from its first element on, as row i of the whole.
  void write(const Array &row, Array &whole, int64_t i) const {
    // Runs of elements that are neighbours in both: all, or those of the last axis.
    int rank = row.shape().rank();
    int64_t run = row.shape() == *shape_ ? row.numElements() : row.shape().dim(rank - 1),
            size = static_cast<int64_t>(sizeOf(type_.dtype));
    for (int64_t at = 0; at < row.numElements(); at += run) {
      Ints place = placeOf(row.shape(), at);
      int64_t to = i;
      for (int axis = 0; axis < rank; ++axis)
        to = to * shape_->dim(axis) + place[static_cast<size_t>(axis)];
      std::memcpy(whole.data<char>() + to * size, row.data<char>() + at * size, static_cast<size_t>(run * size));
    }
  }

  int64_t length_;
  TensorType type_;
  std::optional<Shape> shape_; ///< of each row
  Array whole_;
  std::vector<std::pair<int64_t, Array>> rows_;
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
  bool hasRoom = attrs.room() >= 0;
  int64_t most = length < 0 || hasRoom ? std::numeric_limits<int64_t>::max() : length;
  if (!limit.empty())
    most = std::min(most, std::max<int64_t>(0, limit[0].asIndex()));

  std::vector<Array> state(inits.begin(), inits.end());
  size_t numStacked = body.outputs.size() - carried;
  std::vector<Stack> stacks;
  for (size_t k = 0; k < numStacked; ++k)
    stacks.emplace_back(length, body.results[carried + k]);
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
    if (hasRoom && turn == length)
      return valueError("has more turns than it has room for, " + std::to_string(length),
                        "interpret the program as it was before it had sizes");
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
  for (size_t k = 0; k < numStacked; ++k)
    results[carried + (condition ? 1 : 0) + k] = stacks[k].finish();
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
