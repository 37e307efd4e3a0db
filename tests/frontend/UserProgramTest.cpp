// Small programs as people write them: layers that keep reduced axes, attention, products with a batch of one,
// convolution by gather, empty tensors. Eagerly and as one compiled function, their values, gradients and second
// derivatives are the same; small central differences agree.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace wg {
namespace {

using Tensors = std::vector<Tensor>;

struct UserProgram {
  const char *name;
  std::vector<Shape> inputs;
  std::function<Tensor(const Tensors &)> body; ///< any shape: the loss is the sum of its squares and its sum
};

Tensor normalised(const Tensor &x) { return (x - mean(x, -1, true)) / sqrt(variance(x, -1, true) + 0.1); }

const UserProgram kPrograms[] = {
    {"residual_after_squeeze",
     {{3, 1, 4}, {4, 4}},
     [](const Tensors &x) {
       Tensor h = squeeze(x[0]);
       return h + matmul(h, x[1]);
     }},
    {"column_times_row_times_column",
     {{4}, {1, 3}},
     [](const Tensors &x) {
       Tensor c = expand_dims(x[0], -1);
       return matmul(c, x[1]) * c;
     }},
    {"narrow_network",
     {{2, 3}, {3, 1}, {1, 5}, {5, 1}, {1, 3}},
     [](const Tensors &x) {
       Tensor h = x[0];
       for (size_t layer = 1; layer < 5; ++layer)
         h = matmul(h, x[layer]);
       return h - x[0];
     }},
    {"attention",
     {{2, 3, 4}, {4, 4}, {4, 4}, {4, 4}},
     [](const Tensors &x) {
       Tensor q = matmul(x[0], x[1]), k = matmul(x[0], x[2]), v = matmul(x[0], x[3]);
       return x[0] + matmul(softmax(matmul(q, transpose(k, {0, 2, 1})) * 0.5), v);
     }},
    {"attention_over_one_step",
     {{2, 1, 4}, {4, 4}},
     [](const Tensors &x) {
       Tensor q = matmul(x[0], x[1]);
       return matmul(softmax(matmul(q, transpose(x[0], {0, 2, 1}))), x[0]) + q;
     }},
    {"product_with_a_batch_of_one",
     {{1, 3, 4}, {5, 4, 2}},
     [](const Tensors &x) { return matmul(broadcast_to(x[0], {5, 3, 4}), x[1]) * mean(x[0]); }},
    {"layer_norm", {{3, 5}, {5}, {5}}, [](const Tensors &x) { return normalised(x[0]) * x[1] + x[2]; }},
    {"layer_norm_of_one_feature", {{3, 1}, {1}}, [](const Tensors &x) { return normalised(x[0]) * x[1] + x[0]; }},
    {"norm_over_a_batch_of_one",
     {{1, 5}, {5}},
     [](const Tensors &x) { return (x[0] - mean(x[0], 0, true)) * x[1] + reduce_sum(x[0] * x[1], 0, true); }},
    {"logsumexp_kept", {{2, 1, 4}}, [](const Tensors &x) { return x[0] - logsumexp(x[0], Axes{-1}, true) * x[0]; }},
    {"convolution_by_gather",
     {{6, 2}, {6, 3}},
     [](const Tensors &x) {
       Tensor windows = gather(x[0], Tensor{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}});
       return tanh(matmul(reshape(windows, {4, 6}), x[1]));
     }},
    {"windows_by_slices",
     {{1, 6}, {3}},
     [](const Tensors &x) {
       Tensor row = squeeze(x[0]), sum = slice(row, {0}, {4}) * index(x[1], 0);
       for (int64_t i = 1; i < 3; ++i)
         sum = sum + slice(row, {i}, {i + 4}) * index(x[1], i);
       return concat({sum, row});
     }},
    {"padded_and_added",
     {{5, 1}},
     [](const Tensors &x) {
       Tensor row = transpose(x[0]);
       return pad(row, {{1, 0}, {0, 2}}) + pad(row, {{0, 1}, {2, 0}}) * reduce_sum(x[0]);
     }},
    {"stacked_scalars", {{}, {}, {1}}, [](const Tensors &x) { return stack({x[0], x[1], x[0] * x[1]}) * x[2]; }},
    {"outer_and_trace",
     {{4}, {4}},
     [](const Tensors &x) { return reduce_sum(outer(x[0], x[1]) * eye(4, {}, f64), 1) * x[0]; }},
    {"embedding",
     {{5, 3}, {3, 2}},
     [](const Tensors &x) {
       Tensor hot = one_hot(Tensor{1, 4, 1}, 5, f64);
       return matmul(matmul(hot, x[0]), x[1]) + reduce_sum(hot);
     }},
    {"pairwise_distances",
     {{3, 2}, {4, 2}},
     [](const Tensors &x) { return exp(-reduce_sum(square(expand_dims(x[0], 1) - expand_dims(x[1], 0)), -1)); }},
    {"nothing_in_the_batch", {{0, 3}, {3, 2}, {2}}, [](const Tensors &x) { return tanh(matmul(x[0], x[1]) + x[2]); }},
    {"nothing_in_between", {{2, 0}, {0, 3}, {3}}, [](const Tensors &x) { return matmul(x[0], x[1]) + x[2]; }},
    {"nothing_beside_something",
     {{0, 3}, {2, 3}},
     [](const Tensors &x) { return concat({x[0], x[1]}) * reduce_sum(x[0]) + x[1] * x[1]; }},
};

class UserPrograms : public ::testing::TestWithParam<UserProgram> {};

Tensor lossOf(const UserProgram &program, const Tensors &inputs) {
  Tensor y = program.body(inputs);
  return reduce_sum(square(y)) * 0.5 + reduce_sum(y);
}

Tensors gradientsOf(const UserProgram &program, const Tensors &inputs) {
  GradientTape tape;
  tape.watch(inputs);
  Tensors found;
  for (const Grad &gradient :
       tape.gradient(lossOf(program, inputs), inputs, GradientOptions{.unconnected = Unconnected::zero}))
    found.push_back(gradient.value());
  return found;
}

/// Of the sum of the squares of the gradients.
Tensors secondOf(const UserProgram &program, const Tensors &inputs) {
  GradientTape tape;
  tape.watch(inputs);
  Tensor sum(0.0);
  for (const Tensor &gradient : gradientsOf(program, inputs))
    sum = sum + reduce_sum(square(gradient));
  Tensors found;
  for (const Grad &gradient : tape.gradient(sum, inputs, GradientOptions{.unconnected = Unconnected::zero}))
    found.push_back(gradient.value());
  return found;
}

void expectClose(const Tensors &expected, const Tensors &actual, const char *what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].shape(), actual[i].shape()) << what << " " << i;
    std::vector<double> e = expected[i].to_vector<double>(), a = actual[i].to_vector<double>();
    for (size_t k = 0; k < e.size(); ++k)
      ASSERT_NEAR(e[k], a[k], 1e-11 * std::max(1.0, std::fabs(e[k]))) << what << " " << i << ", element " << k;
  }
}

TEST_P(UserPrograms, EagerAndCompiledAgreeToSecondOrder) {
  const UserProgram &program = GetParam();
  Tensors inputs;
  for (const Shape &shape : program.inputs)
    inputs.push_back(random_uniform(random::key(static_cast<int64_t>(inputs.size()) + 7), shape, -1, 1, f64));
  auto value = function("value", [&](const Tensors &x) { return program.body(x); });
  expectClose({program.body(inputs)}, {value(inputs)}, "value");
  Tensors first = gradientsOf(program, inputs), second = secondOf(program, inputs);
  auto gradients = function("gradients", [&](const Tensors &x) { return gradientsOf(program, x); });
  expectClose(first, gradients(inputs), "gradient");
  auto twice = function("twice", [&](const Tensors &x) { return secondOf(program, x); });
  expectClose(second, twice(inputs), "second derivative");

  // Along one direction, by differences.
  Tensors ahead, behind;
  double slope = 0, curve = 0;
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor direction = random_uniform(random::key(static_cast<int64_t>(i) + 70), program.inputs[i], -1, 1, f64);
    ahead.push_back(inputs[i] + kStep * direction);
    behind.push_back(inputs[i] - kStep * direction);
    slope += reduce_sum(first[i] * direction).item<double>();
    curve += reduce_sum(second[i] * direction).item<double>();
  }
  auto squares = [&](const Tensors &x) {
    double sum = 0;
    for (const Tensor &gradient : gradientsOf(program, x))
      sum += reduce_sum(square(gradient)).item<double>();
    return sum;
  };
  EXPECT_NEAR(slope, (lossOf(program, ahead) - lossOf(program, behind)).item<double>() / (2 * kStep),
              1e-6 * std::max(1.0, std::fabs(slope)));
  EXPECT_NEAR(curve, (squares(ahead) - squares(behind)) / (2 * kStep), 1e-5 * std::max(1.0, std::fabs(curve)));
}

INSTANTIATE_TEST_SUITE_P(Every, UserPrograms, ::testing::ValuesIn(kPrograms),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace wg
