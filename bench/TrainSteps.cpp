// Steps a b c d e k l m n: a loss, its gradients and what an optimiser makes of them.
#include "Problem.h"
#include "Steps.h"

#include <fmt/format.h>

namespace bench {

using namespace wg;

static Tensor tensor(const std::vector<float> &values, const Shape &shape) { return Tensor::from(values, shape); }

namespace {
/// Parameters in the order of peers/steps.py, whose i-th has the seed 10 + i whether or not it needs one.
struct Parameters {
  std::vector<Variable> all;

  Variable add(const std::string &name, Tensor value) {
    all.emplace_back(std::move(value), VariableOptions{.name = name});
    return all.back();
  }
  Variable weight(const std::string &name, const Shape &shape, int64_t in, int64_t out) {
    return add(name, tensor(bench::weight(10 + all.size(), static_cast<size_t>(in), static_cast<size_t>(out),
                                          static_cast<size_t>(shape.numElements())),
                            shape));
  }
  Variable range(const std::string &name, const Shape &shape, double lo, double hi) {
    return add(name, tensor(uniform(10 + all.size(), static_cast<size_t>(shape.numElements()), lo, hi), shape));
  }
};

struct Dense {
  Variable w, b;
  Dense(Parameters &p, const std::string &name, int64_t in, int64_t out)
      : w(p.weight(name + "_w", {in, out}, in, out)), b(p.add(name + "_b", zeros({out}))) {}
  Tensor operator()(const Tensor &x) const { return matmul(x, w) + b; }
};

struct Conv {
  Variable w, b;
  Conv(Parameters &p, const std::string &name, int64_t size, int64_t in, int64_t out)
      : w(p.weight(name + "_w", {size, size, in, out}, size * size * in, size * size * out)),
        b(p.add(name + "_b", zeros({out}))) {}
};

struct Norm {
  Variable gamma, beta;
  Norm(Parameters &p, const std::string &number)
      : gamma(p.add("gamma" + number, ones({256}))), beta(p.add("beta" + number, zeros({256}))) {}
  Tensor operator()(const Tensor &x) const { return nn::layer_norm(x, {.weight = gamma, .bias = beta}); }
};
} // namespace

/// A step of `optimizer` on what `loss` says of the inputs.
template <class Loss, class... Inputs>
static Case training(const std::string &name, std::shared_ptr<optim::Optimizer> optimizer,
                     const std::vector<Variable> &parameters, Loss loss, Inputs... inputs) {
  auto step = [=](const std::conditional_t<true, Tensor, Inputs> &...in) {
    GradientTape tape;
    Tensor value = loss(in...);
    optimizer->apply(tape.gradient(value, parameters), parameters);
    return value;
  };
  Case c = caseOf(name, step, inputs...);
  c.optimizer = optimizer;
  return c;
}

static Case line(double lr) {
  std::vector<float> x = uniform(1, 32);
  Variable w(0.0f, {.name = "w"}), b(0.0f, {.name = "b"});
  auto step = [=](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = mean(square(w * x + b - y));
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(lr * dw);
    b.assign_sub(lr * db);
    return loss;
  };
  return caseOf("a", step, Tensor::from(x), Tensor::from(lineTargets(x)));
}

static Case network(const std::string &name, const std::vector<int64_t> &sizes, int64_t batch, double lr) {
  Parameters p;
  std::vector<Dense> layers;
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    layers.emplace_back(p, fmt::format("dense{}", i), sizes[i], sizes[i + 1]);
  auto loss = [=](const Tensor &x, const Tensor &y) {
    Tensor h = x;
    for (const Dense &layer : layers)
      h = &layer == &layers.back() ? layer(h) : relu(layer(h));
    return nn::cross_entropy(h, y);
  };
  return training(name, std::make_shared<optim::Adam>(lr), p.all, loss,
                  tensor(uniform(1, static_cast<size_t>(batch * sizes[0])), {batch, sizes[0]}),
                  Tensor::from(labels(2, static_cast<size_t>(batch), 10)));
}

static Case convolutions(double lr) {
  Parameters p;
  Conv conv0(p, "conv0", 5, 1, 32), conv1(p, "conv1", 5, 32, 64);
  Dense dense0(p, "dense0", 3136, 1024), dense1(p, "dense1", 1024, 10);
  auto loss = [=](const Tensor &x, const Tensor &y) {
    auto layer = [](const Conv &conv, const Tensor &x) {
      return max_pool2d(relu(conv2d(x, conv.w, {.padding = Padding::same}) + conv.b));
    };
    Tensor h = reshape(layer(conv1, layer(conv0, x)), {64, 3136});
    return nn::cross_entropy(dense1(relu(dense0(h))), y);
  };
  return training("d", std::make_shared<optim::Momentum>(lr), p.all, loss,
                  tensor(uniform(1, 64 * 28 * 28), {64, 28, 28, 1}), Tensor::from(labels(2, 64, 10)));
}

namespace {
/// A post-norm encoder layer: four heads of 64, then a network of one hidden layer.
struct Encoder {
  Dense qkv, out;
  Norm first;
  Dense up, down;
  Norm second;
  Encoder(Parameters &p, const std::string &i)
      : qkv(p, "qkv" + i, 256, 768), out(p, "out" + i, 256, 256), first(p, i + "0"), up(p, "up" + i, 256, 1024),
        down(p, "down" + i, 1024, 256), second(p, i + "1") {}
  Tensor operator()(const Tensor &x) const {
    constexpr int64_t kBatch = 8, kTime = 128, kHeads = 4, kWidth = 64;
    std::vector<Tensor> parts = split(reshape(qkv(x), {kBatch, kTime, 3 * kHeads, kWidth}), 3, 2);
    Tensor weights = softmax(einsum("bqhd,bkhd->bhqk", parts[0], parts[1]) / 8.0);
    Tensor mixed = reshape(einsum("bhqk,bkhd->bqhd", weights, parts[2]), {kBatch, kTime, kHeads * kWidth});
    Tensor y = first(x + out(mixed));
    return second(y + down(gelu(up(y))));
  }
};
} // namespace

static Case encoders(double lr) {
  Parameters p;
  Encoder first(p, "0"), second(p, "1");
  auto loss = [=](const Tensor &x, const Tensor &y) { return mean(square(second(first(x)) - y)); };
  constexpr int64_t kCount = 8 * 128 * 256;
  return training("e", std::make_shared<optim::Adam>(lr), p.all, loss, tensor(uniform(1, kCount, -1, 1), {8, 128, 256}),
                  tensor(uniform(2, kCount, -1, 1), {8, 128, 256}));
}

static Case adam(double lr) {
  constexpr int64_t kCount = 10000000;
  Variable p(tensor(uniform(10, kCount, -1, 1), {kCount}), {.name = "p"});
  auto optimizer = std::make_shared<optim::Adam>(lr);
  auto step = [=](const Tensor &g) {
    optimizer->apply(Grad(g), p);
    return Tensor(0.0f);
  };
  Case c = caseOf("k", step, tensor(uniform(1, kCount, -1, 1), {kCount}));
  auto run = c.call;
  c.call = [=](bool compiled) {
    for (int i = 0; i < 3; ++i)
      run(compiled);
    return listOf(reduce_sum(abs(cast(p.value(), f64))));
  };
  c.optimizer = optimizer;
  return c;
}

static Case logistic(double lr) {
  std::vector<float> x = uniform(1, 256 * 30, -1, 1), direction = uniform(3, 30, -1, 1), y(256);
  for (size_t i = 0; i < 256; ++i) {
    double side = 0;
    for (size_t j = 0; j < 30; ++j)
      side += double(x[i * 30 + j]) * double(direction[j]);
    y[i] = side > 0;
  }
  Variable w(zeros({30}), {.name = "w"}), b(0.0f, {.name = "b"});
  auto step = [=](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = nn::sigmoid_cross_entropy(matmul(x, w) + b, y);
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(lr * dw);
    b.assign_sub(lr * db);
    return loss;
  };
  return caseOf("l", step, tensor(x, {256, 30}), Tensor::from(y));
}

/// The character model: a scan over 50 steps.
static Case characters(double lr) {
  constexpr int64_t kBatch = 32, kTime = 50, kLetters = 65, kHidden = 128;
  Parameters p;
  Variable embedding = p.range("embedding", {kLetters, kHidden}, -0.1, 0.1);
  Dense lstm(p, "lstm", 2 * kHidden, 4 * kHidden), head(p, "head", kHidden, kLetters);
  auto loss = [=](const Tensor &in) {
    using State = std::pair<Tensor, Tensor>;
    Tensor tokens = transpose(in);
    auto cell = [&](const State &state, const Tensor &x) {
      std::vector<Tensor> gate = split(lstm(concat({x, state.first}, 1)), 4, 1);
      Tensor next = sigmoid(gate[1]) * state.second + sigmoid(gate[0]) * tanh(gate[2]);
      Tensor h = sigmoid(gate[3]) * tanh(next);
      return std::pair(State(h, next), h);
    };
    Tensor zero = zeros({kBatch, kHidden});
    Tensor hs = scan(cell, State(zero, zero), gather(embedding, slice(tokens, {0, 0}, {kTime, kBatch}))).second;
    Tensor logits = head(reshape(hs, {kTime * kBatch, kHidden}));
    return nn::cross_entropy(logits, reshape(slice(tokens, {1, 0}, {kTime + 1, kBatch}), {kTime * kBatch}));
  };
  return training("m", std::make_shared<optim::Adam>(lr), p.all, loss,
                  Tensor::from(labels(1, kBatch * (kTime + 1), kLetters), {kBatch, kTime + 1}));
}

static Case autoencoder(double lr) {
  Parameters p;
  Conv down0(p, "down0", 3, 1, 16), down1(p, "down1", 3, 16, 32), up0(p, "up0", 3, 32, 16), up1(p, "up1", 3, 16, 1);
  auto loss = [=](const Tensor &x) {
    auto down = [](const Conv &conv, const Tensor &x) {
      return relu(conv2d(x, conv.w, {.strides = {2, 2}, .padding = {{1, 1}, {1, 1}}}) + conv.b);
    };
    auto up = [](const Conv &conv, const Tensor &x) {
      return conv.b +
             conv2d_transpose(x, conv.w, {.strides = {2, 2}, .output_padding = {1, 1}, .padding = {{1, 1}, {1, 1}}});
    };
    return mean(square(sigmoid(up(up1, relu(up(up0, down(down1, down(down0, x)))))) - x));
  };
  return training("n", std::make_shared<optim::Adam>(lr), p.all, loss,
                  tensor(uniform(1, 32 * 28 * 28), {32, 28, 28, 1}));
}

std::vector<StepInfo> trainSteps() {
  return {{"a", 0.05, line},
          {"b", 0.001, [](double lr) { return network("b", {784, 128, 10}, 64, lr); }},
          {"c", 0.001, [](double lr) { return network("c", {784, 1024, 1024, 10}, 256, lr); }},
          {"d", 0.01, convolutions},
          {"e", 0.001, encoders},
          {"k", 0.001, adam},
          {"l", 0.1, logistic},
          {"m", 0.001, characters},
          {"n", 0.001, autoencoder}};
}

} // namespace bench
