// Recurrent layers: a cell that makes a state of an input and the state before it, and layers that run it over a
// sequence by wg::scan: one loop of the program, however long the sequence is.
#pragma once

#include <wengert/Control.h>
#include <wengert/nn/Module.h>

#include <utility>

namespace wg::nn {

struct RecurrentCellOptions {
  bool bias = true;
  Activation activation = {}; ///< of an RNNCell; tanh by default
  DType dtype = f32;
  Initializer weight = glorot_uniform(), recurrent_weight = glorot_uniform();
};

/// What the cells have in common: x W + b, for any number of inputs at once, with W [in, gates features] named `weight`
/// and b named `bias`; U [features, gates features] named `recurrent_weight` multiplies the state.
class WENGERT_API RecurrentCell : public Module {
public:
  /// x W + b: what a step needs of its input. Shapes: x float[..., in] -> float[..., gates features].
  Tensor project(const Tensor &x, Where where = Where::current()) const;
  int64_t features() const { return features_; }

protected:
  RecurrentCell(const char *op, int64_t in, int64_t features, int64_t gates, const RecurrentCellOptions &options,
                const Where &where);
  /// Zeros [batch, features] for projected inputs [batch, gates features], or rows of such.
  Tensor zerosFor(const Tensor &projected, const Where &where) const;
  /// The parts of the gates.
  std::vector<Tensor> parts(const Tensor &gates, const Where &where) const;
  const char *op_;
  int64_t in_, features_, gates_;
  Variable weight_, recurrent_, bias_;
};

/// h' = tanh(x W + h U + b) (Elman 1990), or another activation.
/// Shapes: x float[batch, in], h float[batch, features].
class WENGERT_API RNNCell : public RecurrentCell {
public:
  using State = Tensor;
  RNNCell(int64_t in, int64_t features, RecurrentCellOptions options = {}, Where where = Where::current());
  State operator()(const Tensor &x, const State &h, Where where = Where::current()) const;
  /// The same by `project(x)`.
  State step(const Tensor &projected, const State &h, Where where = Where::current()) const;
  State zero_state(const Tensor &projected, Where where = Where::current()) const { return zerosFor(projected, where); }
  static const Tensor &output(const State &h) { return h; }

private:
  Activation activation_;
};

struct LSTMState {
  Tensor h, c; ///< what the cell gives, and what it keeps: float[batch, features]
  WENGERT_FIELDS(h, c)
};
/// With i, f, g, o the four parts of x W + h U + b: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c') (Hochreiter and
/// Schmidhuber 1997; forget gate: Gers, Schmidhuber and Cummins 2000). The bias of the forget gate is 1 at first
/// (Jozefowicz, Zaremba and Sutskever 2015), as in Keras.
/// Shapes: x float[batch, in], state float[batch, features].
class WENGERT_API LSTMCell : public RecurrentCell {
public:
  using State = LSTMState;
  LSTMCell(int64_t in, int64_t features, RecurrentCellOptions options = {}, Where where = Where::current());
  State operator()(const Tensor &x, const State &state, Where where = Where::current()) const;
  State step(const Tensor &projected, const State &state, Where where = Where::current()) const;
  State zero_state(const Tensor &projected, Where where = Where::current()) const;
  static const Tensor &output(const State &state) { return state.h; }
};

/// With r, z, n the three parts of a = x W + b and of u = h U + d, d being named `recurrent_bias`:
/// n = tanh(a_n + s(a_r + u_r) u_n), h' = (1 - z) n + z h with z = s(a_z + u_z) (Cho et al. 2014, with the reset after
/// the product, as PyTorch and, by default, Keras have it). Shapes: x float[batch, in], h float[batch, features].
class WENGERT_API GRUCell : public RecurrentCell {
public:
  using State = Tensor;
  GRUCell(int64_t in, int64_t features, RecurrentCellOptions options = {}, Where where = Where::current());
  State operator()(const Tensor &x, const State &h, Where where = Where::current()) const;
  State step(const Tensor &projected, const State &h, Where where = Where::current()) const;
  State zero_state(const Tensor &projected, Where where = Where::current()) const { return zerosFor(projected, where); }
  static const Tensor &output(const State &h) { return h; }

private:
  Variable recurrentBias_;
};

struct RecurrentOptions {
  bool time_major = false;      ///< sequences are [time, batch, features], not [batch, time, features]
  bool reverse = false;         ///< from the last step to the first; outputs are at the places of their inputs
  bool last_only = false;       ///< operator() gives the output of the last step that was made, [batch, features]
  int64_t checkpoint_every = 0; ///< as ScanOptions::checkpoint_every
  RecurrentCellOptions cell = {};
};

} // namespace wg::nn

namespace wg::detail {
/// An error unless xs is a batch of sequences; and xs with the time first, or back.
WENGERT_API Tensor exchangedTime(const Tensor &xs, bool time_major, const Where &where);
} // namespace wg::detail

namespace wg::nn {

/// A cell, named `cell`, over sequences. What the inputs are multiplied with is one product for all steps.
/// Shapes: xs float[batch, time, in] -> float[batch, time, features], or as the options say.
template <class Cell> class Recurrent : public Module {
public:
  using State = typename Cell::State;
  Recurrent(int64_t in, int64_t features, RecurrentOptions options = {}, Where where = Where::current())
      : cell_(in, features, options.cell, where), options_(std::move(options)) {
    add("cell", cell_, where);
  }
  /// The outputs, from a state of zeros.
  Tensor operator()(const Tensor &xs, Where where = Where::current()) const {
    auto [outputs, state] = run(xs, where);
    return options_.last_only ? Cell::output(state) : outputs;
  }
  /// The outputs of all steps, and the state after the last that was made.
  std::pair<Tensor, State> run(const Tensor &xs, Where where = Where::current()) const {
    return over(xs, nullptr, where);
  }
  std::pair<Tensor, State> run(const Tensor &xs, const State &initial, Where where = Where::current()) const {
    return over(xs, &initial, where);
  }
  const Cell &cell() const { return cell_; }

private:
  std::pair<Tensor, State> over(const Tensor &xs, const State *initial, const Where &where) const {
    Tensor rows = cell_.project(detail::exchangedTime(xs, options_.time_major, where), where);
    State first = initial ? *initial : cell_.zero_state(rows, where);
    auto turn = [&](const State &state, const Tensor &row) {
      State next = cell_.step(row, state, where);
      Tensor output = Cell::output(next);
      return std::pair(std::move(next), std::move(output));
    };
    auto [last, outputs] = scan(turn, std::move(first), rows,
                                {.reverse = options_.reverse, .checkpoint_every = options_.checkpoint_every}, where);
    return {detail::exchangedTime(outputs, options_.time_major, where), std::move(last)};
  }
  Cell cell_;
  RecurrentOptions options_;
};

using RNN = Recurrent<RNNCell>;
using LSTM = Recurrent<LSTMCell>;
using GRU = Recurrent<GRUCell>;

/// Two layers, named `forward` and `backward`, one over the sequence as it is, one from its end; their outputs beside
/// one another: `Bidirectional<LSTM>(in, features)`. Shapes: xs float[batch, time, in] ->
/// float[batch, time, 2 features], or as the options say.
template <class Layer> class Bidirectional : public Module {
public:
  Bidirectional(int64_t in, int64_t features, RecurrentOptions options = {}, Where where = Where::current())
      : forward_(in, features, turned(options, false), where), backward_(in, features, turned(options, true), where) {
    add("forward", forward_, where), add("backward", backward_, where);
  }
  Tensor operator()(const Tensor &xs, Where where = Where::current()) const {
    return concat({forward_(xs, where), backward_(xs, where)}, -1, where);
  }
  const Layer &forward() const { return forward_; }
  const Layer &backward() const { return backward_; }

private:
  static RecurrentOptions turned(RecurrentOptions options, bool reverse) {
    options.reverse = reverse;
    return options;
  }
  Layer forward_, backward_;
};

} // namespace wg::nn
