// Steps f f_small g h i j_*: gradients themselves; call1 call4 call16: the cost of a call.
#include "Mixture.h"
#include "Problem.h"
#include "Steps.h"

#include <fmt/format.h>

#include <utility>

namespace bench {

using namespace wg;

static Tensor tensor(const std::vector<float> &values, const Shape &shape) { return Tensor::from(values, shape); }
static Tensor tensor(const std::vector<double> &values, const Shape &shape) { return Tensor::from(values, shape); }

static Case chain(const std::string &name, int64_t count) {
  auto f = [](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = x;
    for (int i = 0; i < 5; ++i)
      y = tanh(y * 0.5 + 0.1) * x;
    return tape.gradient(reduce_sum(y), x).value();
  };
  return caseOf(name, f, tensor(uniform(1, static_cast<size_t>(count), -1, 1), {count}));
}

static Case square() {
  auto f = [](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = x * x;
    return tape.gradient(y, x).value();
  };
  return caseOf("g", f, Tensor(3.0f));
}

template <size_t... i> static Case sum(const std::string &name, std::index_sequence<i...>) {
  auto f = [](const std::conditional_t<(i >= 0), Tensor, void> &...x) { return (x + ...); };
  return caseOf(name, f, Tensor::from(uniform(1 + i, 8))...);
}

static Case mixture() {
  constexpr int64_t n = 1000, d = 10, k = 25;
  Mixture mixture(tensor(uniformDouble(1, n * d, -1, 1), {n, d}), k);
  auto f = [=](const Tensor &alphas, const Tensor &means, const Tensor &icf) {
    GradientTape tape;
    tape.watch(alphas, means, icf);
    Tensor y = mixture(alphas, means, icf);
    return tape.gradient(y, std::tuple(alphas, means, icf));
  };
  return caseOf("h", f, tensor(uniformDouble(10, k, -0.5, 0.5), {k}),
                tensor(uniformDouble(11, k * d, -0.5, 0.5), {k, d}),
                tensor(uniformDouble(12, k * d * (d + 1) / 2, -0.5, 0.5), {k, d * (d + 1) / 2}));
}

/// ADBench's diagonal LSTM, 1,024 symbols, as a scan.
static Case diagonalLstm() {
  constexpr int64_t kLayers = 2, kWidth = 14, kSymbols = 1024;
  std::vector<double> symbols = uniformDouble(1, kSymbols * kWidth, 0, 2);
  for (double &x : symbols)
    x = std::floor(x);
  auto f = [](const Tensor &main, const Tensor &extra, const Tensor &x, const Tensor &start) {
    GradientTape tape;
    tape.watch(main, extra);
    using State = std::vector<std::pair<Tensor, Tensor>>;
    auto step = [&](const State &state, Tensor z) {
      State next;
      for (size_t layer = 0; layer < state.size(); ++layer) {
        auto l = static_cast<int64_t>(layer);
        auto w = [&](int64_t i) { return main[l][i]; };
        auto &[h, before] = state[layer];
        Tensor after = before * sigmoid(z * w(0) + w(4)) + sigmoid(h * w(1) + w(5)) * tanh(h * w(3) + w(7));
        z = sigmoid(z * w(2) + w(6)) * tanh(after);
        next.emplace_back(z, after);
      }
      return std::pair(next, z);
    };
    State state;
    for (int64_t layer = 0; layer < kLayers; ++layer)
      state.emplace_back(start[layer][0], start[layer][1]);
    Tensor hs = scan(step, state, slice(x, {0, 0}, {kSymbols - 1, kWidth}) * extra[0]).second;
    Tensor y = hs * extra[1] + extra[2];
    Tensor lse = log(reduce_sum(exp(y), {1}, true) + 2.0);
    Tensor gold = slice(x, {1, 0}, {kSymbols, kWidth});
    Tensor loss = -reduce_sum(gold * (y - lse)) / static_cast<double>((kSymbols - 1) * kWidth);
    return tape.gradient(loss, std::tuple(main, extra));
  };
  return caseOf("i", f, tensor(uniformDouble(10, kLayers * 8 * kWidth, -1, 1), {kLayers, 8, kWidth}),
                tensor(uniformDouble(11, 3 * kWidth, -1, 1), {3, kWidth}), tensor(symbols, {kSymbols, kWidth}),
                tensor(uniformDouble(2, kLayers * 2 * kWidth, -1, 1), {kLayers, 2, kWidth}));
}

static Case softmaxOf(const std::string &name, int64_t rows, int64_t columns) {
  auto f = [](const Tensor &x, const Tensor &c) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(softmax(x) * c), x).value();
  };
  auto count = static_cast<size_t>(rows * columns);
  return caseOf(name, f, tensor(uniform(1, count, -2, 2), {rows, columns}),
                tensor(uniform(2, count, -1, 1), {rows, columns}));
}

static Case normOf(const std::string &name, int64_t rows, int64_t columns) {
  auto f = [](const Tensor &x, const Tensor &gamma, const Tensor &beta, const Tensor &c) {
    GradientTape tape;
    tape.watch(x, gamma, beta);
    Tensor y = reduce_sum(nn::layer_norm(x, {.weight = gamma, .bias = beta}) * c);
    return tape.gradient(y, std::tuple(x, gamma, beta));
  };
  auto count = static_cast<size_t>(rows * columns), width = static_cast<size_t>(columns);
  return caseOf(name, f, tensor(uniform(1, count, -2, 2), {rows, columns}), Tensor::from(uniform(3, width, 0.5, 1.5)),
                Tensor::from(uniform(4, width, -1, 1)), tensor(uniform(2, count, -1, 1), {rows, columns}));
}

std::vector<StepInfo> gradientSteps() {
  return {{"f", 0, [](double) { return chain("f", 4194304); }},
          {"f_small", 0, [](double) { return chain("f_small", 4096); }},
          {"g", 0, [](double) { return square(); }},
          {"call1", 0, [](double) { return sum("call1", std::make_index_sequence<1>()); }},
          {"call4", 0, [](double) { return sum("call4", std::make_index_sequence<4>()); }},
          {"call16", 0, [](double) { return sum("call16", std::make_index_sequence<16>()); }},
          {"h", 0, [](double) { return mixture(); }},
          {"i", 0, [](double) { return diagonalLstm(); }},
          {"j_softmax", 0, [](double) { return softmaxOf("j_softmax", 128, 1024); }},
          {"j_softmax_large", 0, [](double) { return softmaxOf("j_softmax_large", 4096, 4096); }},
          {"j_norm", 0, [](double) { return normOf("j_norm", 128, 1024); }},
          {"j_norm_large", 0, [](double) { return normOf("j_norm_large", 4096, 4096); }}};
}

} // namespace bench
