// Layers against plain C++ loops and against one another: normalisation, attention, recurrence, convolution, tables;
// models of them, and their summary.
#include "tests/frontend/Support.h"

#include <cmath>
#include <limits>
#include <sstream>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor numbers(const Shape &shape, double phase = 0) { return reshape(matrix(1, shape.numElements(), phase), shape); }

/// Each row of [rows, n] less its mean, over its deviation.
std::vector<double> normalized(const Tensor &x, double epsilon) {
  std::vector<double> all = x.to_vector<double>();
  auto n = static_cast<size_t>(x.shape().dim(1));
  for (size_t row = 0; row < all.size(); row += n) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; ++i)
      mean += all[row + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      square += std::pow(all[row + i] - mean, 2) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i)
      all[row + i] = (all[row + i] - mean) / std::sqrt(square + epsilon);
  }
  return all;
}

} // namespace

// ---- Normalisation

TEST(NormTest, LayerNormIsItsFormula) {
  Tensor x = numbers({2, 3, 4}), weight = numbers({4}, 1), bias = numbers({4}, 2);
  Tensor wanted = reshape(Tensor::from(normalized(reshape(x, {6, 4}), 1e-3)), {2, 3, 4});
  expectNear(nn::layer_norm(x, {.epsilon = 1e-3}), wanted);
  expectNear(nn::layer_norm(x, {.weight = weight, .bias = bias, .epsilon = 1e-3}), wanted * weight + bias);
  expectNear(nn::layer_norm(x, {.epsilon = 1e-3}, 2),
             reshape(Tensor::from(normalized(reshape(x, {2, 12}), 1e-3)), {2, 3, 4}));
  expectNear(nn::layer_norm(full({2, 3}, 7.0)), zeros({2, 3}, f64), 0);
}

TEST(NormTest, RmsNormIsItsFormula) {
  Tensor x = numbers({5, 4});
  expectNear(nn::rms_norm(x), x / sqrt(reduce_sum(x * x, 1, true) / 4.0 + 1e-5));
}

TEST(NormTest, GroupsAreNormalizedAlone) {
  Tensor x = numbers({2, 3, 5, 6}), weight = numbers({6}, 1);
  // [N, H, W, G, C / G] -> rows of one example's group.
  Tensor rows = transpose(reshape(x, {2, 15, 3, 2}), {0, 2, 1, 3});
  Tensor wanted =
      reshape(transpose(reshape(Tensor::from(normalized(reshape(rows, {6, 30}), 1e-5)), {2, 3, 15, 2}), {0, 2, 1, 3}),
              {2, 3, 5, 6});
  expectNear(nn::group_norm(x, 3), wanted);
  expectNear(nn::group_norm(x, 3, {.weight = weight}), wanted * weight);
  expectNear(nn::group_norm(x, 6), nn::instance_norm(x));
  nn::GroupNorm layer(3, 6, {.dtype = f64});
  expectNear(layer(x), wanted);
  auto open = function("open", [&](const Tensor &x) { return layer(x); });
  open.trace(TensorSpec{f64, {dynamic, dynamic, 5, 6}});
  expectNear(open(x), wanted);
  EXPECT_EQ(open.trace_count(), 1);
}

TEST(NormTest, BatchNormFollowsTheBatches) {
  for (bool compiled : {false, true}) {
    nn::BatchNorm layer(3, {.momentum = 0.75, .epsilon = 1e-3, .dtype = f64});
    auto f = function("train", [&](const Tensor &x) { return layer(x, true); });
    std::vector<double> mean(3, 0), variance(3, 1);
    for (int step = 0; step < 4; ++step) {
      Tensor x = numbers({8, 3}, step);
      Tensor y = compiled ? f(x) : layer(x, true);
      expectNear(y, transpose(reshape(Tensor::from(normalized(transpose(x), 1e-3)), {3, 8})), 1e-12);
      for (size_t c = 0; c < 3; ++c) {
        double m = 0, v = 0;
        for (int i = 0; i < 8; ++i)
          m += x[{i, c}].item<double>() / 8;
        for (int i = 0; i < 8; ++i)
          v += std::pow(x[{i, c}].item<double>() - m, 2) / 8;
        mean[c] = 0.75 * mean[c] + 0.25 * m, variance[c] = 0.75 * variance[c] + 0.25 * v;
      }
      expectNear(layer.running_mean().value(), Tensor::from(mean), 1e-14);
      expectNear(layer.running_variance().value(), Tensor::from(variance), 1e-14);
    }
    Tensor x = numbers({2, 3}, 9), before = layer.running_mean().value();
    auto g = function("evaluate", [&](const Tensor &x) { return layer(x, false); });
    expectNear(compiled ? g(x) : layer(x, false), (x - Tensor::from(mean)) / sqrt(Tensor::from(variance) + 1e-3));
    expectNear(layer.running_mean().value(), before, 0);
    // Examples in lanes, by the running statistics.
    expectNear(vmap([&](const Tensor &row) { return layer(row, false); })(x), layer(x, false));
  }
}

TEST(NormTest, GradientsGoThroughTheStatisticsOfABatch) {
  nn::BatchNorm layer(2, {.dtype = f64});
  Tensor x = numbers({5, 2});
  auto f = [](const Tensor &x) { return reduce_sum(nn::batch_norm(x).y * numbers({5, 2}, 3)); };
  EXPECT_TRUE(check_gradients(f, std::tuple(x)).passed);
  GradientTape tape;
  tape.watch(x);
  Tensor loss = reduce_sum(layer(x, true));
  EXPECT_NEAR(reduce_max(abs(tape.gradient(loss, x).value())).item<double>(), 0, 1e-12) << "the mean takes any offset";
  EXPECT_EQ(layer.trainable_variables().size(), 2u);
  EXPECT_EQ(layer.variables().size(), 4u);
}

TEST(NormTest, WhatDoesNotFitIsAnError) {
  nn::LayerNorm layer(4);
  EXPECT_TRUE(
      says(messageOf([&] { layer(ones({2, 3})); }), "layer_norm: the layer takes f32[..., 4]; its input is f32[2,3]"));
  EXPECT_TRUE(says(messageOf([&] { layer(ones({2, 4}, f64)); }), "make the layer with {.dtype = "));
  EXPECT_TRUE(says(messageOf([] { nn::GroupNorm(4, 6); }), "4 groups do not divide 6 channels"));
  EXPECT_TRUE(says(messageOf([] { nn::instance_norm(ones({2, 3})); }), "no axis between the first and the last"));
  EXPECT_TRUE(says(messageOf([] { nn::layer_norm(ones({2, 3}), {}, 3); }), "the last 3 axes of f32[2,3]"));
  EXPECT_TRUE(says(messageOf([] { nn::layer_norm(ones({2, 3}), {.weight = ones({2})}); }), "the weight is f32[2]"));
  EXPECT_TRUE(says(messageOf([] { nn::BatchNorm(3, {.momentum = 1.5}); }), "momentum is 1.5"));
  EXPECT_TRUE(says(messageOf([] { nn::LayerNorm(0); }), "is 0"));
}

// ---- Attention

/// By loops over queries and keys.
static Tensor attentionByLoops(const Tensor &q, const Tensor &k, const Tensor &v,
                               const std::function<bool(int64_t, int64_t)> &allowed, double scale) {
  int64_t n = q.shape().dim(0), m = k.shape().dim(0), e = v.shape().dim(1);
  std::vector<double> y(static_cast<size_t>(n * e), 0);
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> w(static_cast<size_t>(m), 0);
    double sum = 0;
    for (int64_t j = 0; j < m; ++j)
      if (allowed(i, j))
        sum += w[static_cast<size_t>(j)] = std::exp(scale * dot(q[i], k[j]).item<double>());
    for (int64_t j = 0; j < m && sum > 0; ++j)
      for (int64_t c = 0; c < e; ++c)
        y[static_cast<size_t>(i * e + c)] += w[static_cast<size_t>(j)] / sum * v[{j, c}].item<double>();
  }
  return Tensor::from(y, {n, e});
}

TEST(AttentionTest, IsTheWeightedMeanOfItsValues) {
  Tensor q = numbers({4, 3}), k = numbers({5, 3}, 1), v = numbers({5, 2}, 2);
  auto all = [](int64_t, int64_t) { return true; };
  auto lower = [](int64_t i, int64_t j) { return j <= i; };
  Tensor triangle{{1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {1, 1, 1, 0, 0}, {1, 1, 1, 1, 0}};
  Tensor mask = triangle == 1, added = wg::where(mask, zeros({4, 5}, f64), -kInf);
  for (bool compiled : {false, true}) {
    auto run = [&](const nn::AttentionOptions &options) {
      auto f = [&](const Tensor &q, const Tensor &k, const Tensor &v) { return nn::attention(q, k, v, options); };
      return compiled ? function("attention", f)(q, k, v) : f(q, k, v);
    };
    expectNear(run({}), attentionByLoops(q, k, v, all, 1 / std::sqrt(3.0)));
    expectNear(run({.scale = 0.3}), attentionByLoops(q, k, v, all, 0.3));
    Tensor causal = attentionByLoops(q, k, v, lower, 1 / std::sqrt(3.0));
    expectNear(run({.causal = true}), causal);
    expectNear(run({.mask = mask}), causal);
    expectNear(run({.mask = added}), causal);
    expectNear(run({.mask = mask, .causal = true}), causal);
  }
  expectNear(reduce_sum(nn::attention_weights(q, k), 1), ones({4}, f64), 1e-15);
}

TEST(AttentionTest, AQueryWithoutKeysGetsZerosAndNoGradient) {
  Tensor q = numbers({2, 3}), k = numbers({4, 3}, 1), v = numbers({4, 2}, 2);
  Tensor none = Tensor{{0, 0, 0, 0}, {1, 0, 1, 1}} == 1, added = wg::where(none, zeros({2, 4}, f64), -kInf);
  for (const Tensor &mask : {none, added})
    for (bool compiled : {false, true}) {
      auto f = [&](const std::vector<Tensor> &x) {
        return reduce_sum(square(nn::attention(x[0], x[1], x[2], {.mask = mask})));
      };
      std::vector<Tensor> x{q, k, v};
      expectNear(nn::attention(q, k, v, {.mask = mask})[0], zeros({2}, f64), 0);
      auto gradients = compiled ? function("gradient", grad(f))(x) : grad(f)(x);
      for (const Grad &each : gradients)
        EXPECT_FALSE(reduce_any(is_nan(each.value())).item<bool>());
      expectNear(gradients[0].value()[0], zeros({3}, f64), 0);
      EXPECT_TRUE(check_gradients(f, std::tuple(x)).passed);
    }
}

TEST(AttentionTest, OpenSizesAndLanes) {
  Tensor q = numbers({2, 4, 3}), k = numbers({2, 4, 3}, 1), v = numbers({2, 4, 2}, 2);
  Tensor wanted = nn::attention(q, k, v, {.causal = true});
  auto open = function("open", [](const Tensor &q, const Tensor &k, const Tensor &v) {
    return nn::attention(q, k, v, {.causal = true});
  });
  TensorSpec three{f64, {dynamic, dynamic, 3}}, two{f64, {dynamic, dynamic, 2}};
  open.trace(three, three, two);
  expectNear(open(q, k, v), wanted);
  EXPECT_EQ(open.trace_count(), 1);
  expectNear(vmap([](const Tensor &q, const Tensor &k, const Tensor &v) {
               return nn::attention(q, k, v, {.causal = true});
             })(q, k, v),
             wanted);
}

TEST(AttentionTest, HeadsAreAttentionsOfTheirOwn) {
  nn::MultiHeadAttention layer(6, 2, {.dtype = f64});
  Tensor x = numbers({3, 5, 6}), y = numbers({3, 4, 6}, 1);
  const auto &named = layer.named_variables();
  ASSERT_EQ(named.size(), 8u);
  EXPECT_EQ(named[0].first, "query.weight");
  EXPECT_EQ(named[7].first, "out.bias");
  auto project = [&](const Tensor &x, size_t which) {
    return matmul(x, named[2 * which].second) + named[2 * which + 1].second;
  };
  Tensor q = project(x, 0), k = project(y, 1), v = project(y, 2);
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < 2; ++h) {
    auto part = [&](const Tensor &t) { return t[{ellipsis, wg::slice(3 * h, 3 * h + 3)}]; };
    heads.push_back(nn::attention(part(q), part(k), part(v)));
  }
  expectNear(layer(x, y, y), project(concat(heads, -1), 3));
  Tensor mask = numbers({3, 5, 5}) > -0.5;
  nn::Sequential block([&](const Tensor &x) { return x + layer(x, {.mask = mask, .causal = true}); });
  EXPECT_EQ(block(x).shape(), (Shape{3, 5, 6}));
  expectNear(layer(x, {.mask = numbers({5, 5}) > -2.0}), layer(x));
  auto compiled = function("heads", [&](const Tensor &x, const Tensor &y) { return layer(x, y, y); });
  expectNear(compiled(x, y), layer(x, y, y));
}

TEST(AttentionTest, WhatDoesNotFitIsAnError) {
  Tensor q = ones({4, 3}), k = ones({5, 2}), v = ones({5, 2});
  EXPECT_TRUE(says(messageOf([&] { nn::attention(q, k, v); }), "queries and keys differ in their last axis"));
  EXPECT_TRUE(says(messageOf([&] { nn::attention(k, k, q); }), "the keys are f32[5,2], the values f32[4,3]"));
  EXPECT_TRUE(says(messageOf([&] { nn::attention(k, k, v, {.mask = ones({5, 5}, i32)}); }), "the mask is i32[5,5]"));
  EXPECT_TRUE(
      says(messageOf([&] { nn::attention(k, k, v, {.mask = ones({7, 5, 5}) > 0}); }), "give a mask that broadcasts"));
  EXPECT_TRUE(says(messageOf([] { nn::MultiHeadAttention(6, 4); }), "4 heads do not divide 6 features"));
}

// ---- Recurrence

template <class Layer> static void checkRecurrent(const char *lastVariable) {
  Tensor xs = numbers({2, 5, 3});
  for (bool reverse : {false, true}) {
    Layer layer(3, 4, {.reverse = reverse, .cell = {.dtype = f64}});
    EXPECT_EQ(layer.named_variables().back().first, lastVariable);
    // The cell, called by hand.
    auto unrolled = [&](const Tensor &xs) {
      auto state = layer.cell().zero_state(layer.cell().project(xs[{wg::slice(), 0}]));
      std::vector<Tensor> outputs(5);
      for (int64_t i = 0; i < 5; ++i) {
        int64_t t = reverse ? 4 - i : i;
        state = layer.cell()(xs[{wg::slice(), t}], state);
        outputs[static_cast<size_t>(t)] = layer.cell().output(state);
      }
      return stack(outputs, 1);
    };
    Tensor wanted = unrolled(xs);
    expectNear(layer(xs), wanted);
    auto [outputs, last] = layer.run(xs);
    expectNear(layer.cell().output(last), wanted[{wg::slice(), reverse ? 0 : 4}]);
    auto compiled = function("recurrent", [&](const Tensor &xs) { return layer(xs); });
    expectNear(compiled(xs), wanted);
    // The gradient by everything, of the loop and of its turns one after the other.
    auto loss = [&](auto &&f) {
      return function("gradients", [&, f](const Tensor &xs) {
        GradientTape tape;
        tape.watch(xs);
        Tensor sum = reduce_sum(square(f(xs)));
        auto gradients = tape.gradient(sum, layer.trainable_variables());
        std::vector<Tensor> all;
        for (const Grad &each : gradients)
          all.push_back(each.value());
        return all;
      })(xs);
    };
    std::vector<Tensor> a = loss([&](const Tensor &xs) { return layer(xs); }), b = loss(unrolled);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      expectNear(a[i], b[i], 1e-11);
  }
  Layer layer(3, 4, {.last_only = true, .cell = {.dtype = f64}});
  EXPECT_EQ(layer(xs).shape(), (Shape{2, 4}));
  // Halves, with the state handed on.
  auto [whole, end] = layer.run(xs);
  auto [first, middle] = layer.run(xs[{wg::slice(), wg::slice(0, 2)}]);
  auto [second, last] = layer.run(xs[{wg::slice(), wg::slice(2, 5)}], middle);
  expectNear(concat({first, second}, 1), whole);
  auto open = function("open", [&](const Tensor &xs) { return layer(xs); });
  open.trace(TensorSpec{f64, {dynamic, dynamic, 3}});
  expectNear(open(xs), layer(xs));
  EXPECT_EQ(open.trace_count(), 1);
}

TEST(RecurrentTest, AnRnnIsItsCellsOneAfterTheOther) { checkRecurrent<nn::RNN>("cell.bias"); }
TEST(RecurrentTest, AnLstmIsItsCellsOneAfterTheOther) { checkRecurrent<nn::LSTM>("cell.bias"); }
TEST(RecurrentTest, AGruIsItsCellsOneAfterTheOther) { checkRecurrent<nn::GRU>("cell.recurrent_bias"); }

/// One step of one number, by the formulas.
TEST(RecurrentTest, CellsAreTheirFormulas) {
  auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
  double x = 0.7, h = -0.3, c = 0.4;
  Tensor xs{{x}}, hs{{h}};
  nn::RecurrentCellOptions options{.dtype = f64,
                                   .weight = [](const Shape &shape, DType) { return numbers(shape, 1); },
                                   .recurrent_weight = [](const Shape &shape, DType) { return numbers(shape, 2); }};
  nn::LSTMCell lstm(1, 1, options);
  std::vector<double> w = numbers({4}, 1).to_vector<double>(), u = numbers({4}, 2).to_vector<double>();
  auto gate = [&](size_t i, double bias) { return x * w[i] + h * u[i] + bias; };
  double c2 = s(gate(1, 1)) * c + s(gate(0, 0)) * std::tanh(gate(2, 0)), h2 = s(gate(3, 0)) * std::tanh(c2);
  nn::LSTMState next = lstm(xs, {.h = hs, .c = Tensor{{c}}});
  EXPECT_NEAR(next.c.item<double>(), c2, 1e-15);
  EXPECT_NEAR(next.h.item<double>(), h2, 1e-15);

  nn::GRUCell gru(1, 1, options);
  for (const auto &[name, variable] : gru.named_variables())
    if (name == "recurrent_bias")
      variable.assign(Tensor{0.1, -0.2, 0.3});
  w = numbers({3}, 1).to_vector<double>(), u = numbers({3}, 2).to_vector<double>();
  double r = s(x * w[0] + h * u[0] + 0.1), z = s(x * w[1] + h * u[1] - 0.2),
         n = std::tanh(x * w[2] + r * (h * u[2] + 0.3));
  EXPECT_NEAR(gru(xs, hs).item<double>(), (1 - z) * n + z * h, 1e-15);

  options.activation = relu;
  nn::RNNCell rnn(1, 1, options);
  EXPECT_NEAR(rnn(xs, hs).item<double>(),
              std::max(0.0, x * numbers({1}, 1).item<double>() + h * numbers({1}, 2).item<double>()), 1e-15);
}

TEST(RecurrentTest, BothWaysAndTimeFirst) {
  Tensor xs = numbers({2, 5, 3});
  nn::Bidirectional<nn::GRU> layer(3, 4, {.cell = {.dtype = f64}});
  EXPECT_EQ(layer.named_variables().front().first, "forward.cell.weight");
  expectNear(layer(xs), concat({layer.forward()(xs), layer.backward()(xs)}, 2));
  nn::LSTM time(3, 4, {.time_major = true, .cell = {.dtype = f64}});
  nn::LSTM batch(3, 4, {.cell = {.dtype = f64}});
  for (size_t i = 0; i < time.variables().size(); ++i)
    batch.variables()[i].assign(time.variables()[i]);
  expectNear(transpose(time(transpose(xs, {1, 0, 2})), {1, 0, 2}), batch(xs));
  nn::Sequential model(nn::LSTM(3, 4, {.cell = {.dtype = f64}}),
                       nn::LSTM(4, 2, {.last_only = true, .cell = {.dtype = f64}}));
  EXPECT_EQ(model(xs).shape(), (Shape{2, 2}));
  EXPECT_EQ(layer(zeros({0, 5, 3}, f64)).shape(), (Shape{0, 5, 8}));
  EXPECT_EQ(layer(zeros({2, 0, 3}, f64)).shape(), (Shape{2, 0, 8}));
  EXPECT_TRUE(says(messageOf([&] { batch(xs[0]); }), "give xs[batch, time, features]"));
  EXPECT_TRUE(says(messageOf([&] { batch(numbers({2, 5, 4})); }), "lstm_cell: the layer takes"));
}

// ---- Images, tables, models

TEST(LayersTest, Conv2dIsTheFunction) {
  Tensor x = numbers({2, 6, 5, 4});
  nn::Conv2d layer(
      4, 6, {3, 2}, wg::tanh,
      {.strides = {2, 1}, .groups = 2, .padding = Padding::same, .dtype = f64, .initial_bias = nn::constant(0.5)});
  EXPECT_EQ(layer.weight().shape(), (Shape{3, 2, 2, 6}));
  expectNear(layer(x),
             tanh(conv2d(x, layer.weight(), {.strides = {2, 1}, .groups = 2, .padding = Padding::same}) + 0.5));
  EXPECT_TRUE(says(messageOf([&] { layer(numbers({2, 6, 5, 3})); }), "conv2d: the layer takes f64[..., 4]"));
  EXPECT_TRUE(says(messageOf([] { nn::Conv2d(4, 6, {3, 3}, {}, {.groups = 4}); }), "4 groups do not divide"));
}

TEST(LayersTest, EmbeddingsAreRows) {
  nn::Embedding layer(7, 3);
  Tensor words{{1, 6}, {0, 1}};
  expectNear(layer(words)[{0, 1}], layer.weight()[6]);
  EXPECT_EQ(layer(Tensor{uint8_t(2)}).shape(), (Shape{1, 3}));
  GradientTape tape;
  Tensor loss = reduce_sum(layer(words));
  EXPECT_TRUE(tape.gradient(loss, layer.weight()).is_sparse());
  EXPECT_TRUE(says(messageOf([&] { layer(Tensor{7}); }), "LayersTest.cpp"));
}

TEST(LayersTest, FlattenKeepsTheFirstAxis) {
  nn::Flatten flatten;
  EXPECT_EQ(flatten(ones({2, 3, 4})).shape(), (Shape{2, 12}));
  EXPECT_EQ(flatten(ones({5})).shape(), (Shape{5, 1}));
  EXPECT_EQ(flatten(ones({0, 3})).shape(), (Shape{0, 3}));
  auto open = function("open", [&](const Tensor &x) { return flatten(x); });
  open.trace(TensorSpec{f32, {dynamic, dynamic, 4}});
  EXPECT_EQ(open(ones({2, 3, 4})).shape(), (Shape{2, 12}));
  EXPECT_EQ(open.trace_count(), 1);
  EXPECT_TRUE(says(messageOf([&] { flatten(Tensor(1.0f)); }), "a scalar has no first axis"));
}

TEST(LayersTest, ASequenceTellsItsLayersWhetherItTrains) {
  nn::Sequential model(nn::Conv2d(1, 4, {3, 3}), nn::Sequential(nn::BatchNorm(4), relu), nn::Flatten(),
                       nn::Dropout(0.5), nn::Dense(36, 2));
  Tensor x = cast(numbers({4, 5, 5, 1}), f32);
  EXPECT_EQ(model(x, true).shape(), (Shape{4, 2}));
  expectNear(model(x, false), model(x, false), 0);
  EXPECT_TRUE(says(messageOf([&] { model(x); }), "sequential: a layer trains and evaluates differently"));
  optim::SGD sgd(0.1);
  auto step = function("step", [&](const Tensor &x) {
    GradientTape tape;
    Tensor loss = mean(square(model(x, true)));
    sgd.apply(tape.gradient(loss, model), model);
    return loss;
  });
  Tensor before = model.named_variables()[4].second.value();
  step(x);
  EXPECT_EQ(model.named_variables()[4].first, "1.0.running_mean");
  EXPECT_NE(model.named_variables()[4].second.value().to_vector<float>(), before.to_vector<float>());
}

TEST(LayersTest, ASummaryIsATable) {
  struct Model : nn::Module {
    nn::Sequential body{nn::Dense(64, 32, relu), nn::BatchNorm(32)};
    nn::Dense out{32, 10, {}, {.bias = false, .dtype = f64}};
    Variable scale = add("scale", Tensor(1.0f));
    Model() { add("body", body), add("out", out); }
  } model;
  std::ostringstream text;
  text << model;
  EXPECT_EQ(text.str(), "layer, variable       shape     dtype  elements\n"
                        "scale                 ()        f32           1\n"
                        "body                                      2,208\n"
                        "  0                                       2,080\n"
                        "    weight            (64, 32)  f32       2,048\n"
                        "    bias              (32,)     f32          32\n"
                        "  1                                         128\n"
                        "    weight            (32,)     f32          32\n"
                        "    bias              (32,)     f32          32\n"
                        "    running_mean      (32,)     f32          32  not trained\n"
                        "    running_variance  (32,)     f32          32  not trained\n"
                        "out                                         320\n"
                        "  weight              (32, 10)  f64         320\n"
                        "in all: 2,529 elements, 11,396 bytes\n"
                        "trained: 2,465 elements, 11,140 bytes\n"
                        "not trained: 64 elements, 256 bytes\n");
  EXPECT_EQ(nn::Sequential().summary(), "layer, variable  shape  dtype  elements\nin all: 0 elements, 0 bytes\n"
                                        "trained: 0 elements, 0 bytes\nnot trained: 0 elements, 0 bytes\n");
}
