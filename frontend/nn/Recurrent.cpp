// What is the next state of a cell?
#include "wengert/nn/Recurrent.h"

#include "frontend/nn/Layer.h"

namespace wg::nn {

using detail::Placed;

RecurrentCell::RecurrentCell(const char *op, int64_t in, int64_t features, int64_t gates,
                             const RecurrentCellOptions &options, const Where &where)
    : op_(op), in_(in), features_(features), gates_(gates) {
  detail::checkSizesOfLayer(op, {{"inputs", in}, {"features", features}}, where);
  auto made = [&](const char *name, const Initializer &initializer, const Shape &shape) {
    return add(name, detail::initialValue(op, name, initializer, shape, options.dtype, where), true, where);
  };
  weight_ = made("weight", options.weight, {in, gates * features});
  recurrent_ = made("recurrent_weight", options.recurrent_weight, {features, gates * features});
  if (options.bias)
    bias_ = made("bias", nn::zeros(), {gates * features});
}

Tensor RecurrentCell::project(const Tensor &x, Where where) const {
  detail::checkInput(op_, x, {in_}, weight_.dtype(where), 1, where);
  Placed y{matmul(Located(x, where), Located(weight_, where)), where};
  return bias_.defined() ? y + Placed(bias_.value(where), where) : y;
}

Tensor RecurrentCell::zerosFor(const Tensor &projected, const Where &where) const {
  const Shape &shape = detail::typeOf(projected, where).shape;
  if (int64_t batch = shape.dim(shape.rank() - 2); batch != dynamic)
    return wg::zeros({batch, features_}, projected.dtype(), where);
  Tensor row = shape.rank() == 2 ? projected : reduce_sum(Located(projected, where), 0);
  return zeros_like(Located(parts(row, where)[0], where));
}

std::vector<Tensor> RecurrentCell::parts(const Tensor &gates, const Where &where) const {
  return split(Located(gates, where), gates_, -1);
}

RNNCell::RNNCell(int64_t in, int64_t features, RecurrentCellOptions options, Where where)
    : RecurrentCell("rnn_cell", in, features, 1, options, where), activation_(std::move(options.activation)) {}

Tensor RNNCell::operator()(const Tensor &x, const Tensor &h, Where where) const {
  return step(project(x, where), h, where);
}
Tensor RNNCell::step(const Tensor &projected, const Tensor &h, Where where) const {
  Placed y = Placed(projected, where) + Placed(matmul(Located(h, where), Located(recurrent_, where)), where);
  return activation_ ? activation_(y) : tanh(y);
}

LSTMCell::LSTMCell(int64_t in, int64_t features, RecurrentCellOptions options, Where where)
    : RecurrentCell("lstm_cell", in, features, 4, options, where) {
  if (bias_.defined()) {
    Tensor zero = wg::zeros({features}, options.dtype, where), one = wg::ones({features}, options.dtype, where);
    bias_.assign(Located(concat({zero, one, zero, zero}, 0, where), where));
  }
}
LSTMState LSTMCell::operator()(const Tensor &x, const LSTMState &state, Where where) const {
  return step(project(x, where), state, where);
}
LSTMState LSTMCell::step(const Tensor &projected, const LSTMState &state, Where where) const {
  Placed gates = Placed(projected, where) + Placed(matmul(Located(state.h, where), Located(recurrent_, where)), where);
  std::vector<Tensor> part = parts(gates, where);
  auto gate = [&](size_t which) { return Placed(part[which], where); };
  Placed c = sigmoid(gate(1)) * Placed(state.c, where) + sigmoid(gate(0)) * tanh(gate(2));
  return {.h = sigmoid(gate(3)) * tanh(c), .c = c};
}
LSTMState LSTMCell::zero_state(const Tensor &projected, Where where) const {
  Tensor zero = zerosFor(projected, where);
  return {.h = zero, .c = zero};
}

GRUCell::GRUCell(int64_t in, int64_t features, RecurrentCellOptions options, Where where)
    : RecurrentCell("gru_cell", in, features, 3, options, where) {
  if (options.bias)
    recurrentBias_ = add("recurrent_bias", wg::zeros({3 * features}, options.dtype, where), true, where);
}
Tensor GRUCell::operator()(const Tensor &x, const Tensor &h, Where where) const {
  return step(project(x, where), h, where);
}
Tensor GRUCell::step(const Tensor &projected, const Tensor &h, Where where) const {
  Placed u{matmul(Located(h, where), Located(recurrent_, where)), where};
  if (recurrentBias_.defined())
    u = u + Placed(recurrentBias_.value(where), where);
  std::vector<Tensor> a = parts(projected, where), b = parts(u, where);
  auto of = [&](const std::vector<Tensor> &list, size_t which) { return Placed(list[which], where); };
  Placed r = sigmoid(of(a, 0) + of(b, 0)), z = sigmoid(of(a, 1) + of(b, 1)), n = tanh(of(a, 2) + r * of(b, 2));
  return (1 - z) * n + z * Placed(h, where);
}

} // namespace wg::nn

namespace wg::detail {

Tensor exchangedTime(const Tensor &xs, bool time_major, const Where &where) {
  const TensorType &type = typeOf(xs, where);
  if (type.shape.rank() != 3)
    raiseOp("recurrent", "the sequences are " + toString(type),
            time_major ? "give xs[time, batch, features]" : "give xs[batch, time, features]", {type}, where);
  return time_major ? xs : transpose(Located(xs, where), {1, 0, 2});
}

} // namespace wg::detail
