// A step over ranks: it is the step of the whole batch, and one rank and eight have the same bits.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

using namespace wg;
using wg::tests::messageOf;

namespace {

Tensor drawn(const Shape &shape, int64_t seed, DType dtype = f64) {
  return random_uniform(random::key(seed), shape, -1, 1, dtype);
}

/// This rank's rows of a batch.
Tensor part(const Tensor &batch, int64_t shards) {
  auto [begin, end] = dist::rows_of_rank(batch.dim(0), shards);
  return slice(batch, {begin}, {end});
}

void expectNear(const Tensor &a, const Tensor &b, double tolerance, const std::string &what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_LE(reduce_max(abs(a - b) / (1.0 + abs(b))).item<double>(), tolerance) << what << "\n" << a << "\n" << b;
}

/// What rank 0 has; all ranks must have the same bits.
template <class F> std::vector<Tensor> onRanks(int ranks, const F &f) {
  std::vector<Tensor> first;
  dist::run(ranks, [&] {
    std::vector<Tensor> mine = f();
    std::vector<Variable> all;
    for (const Tensor &each : mine)
      all.emplace_back(each, VariableOptions{.name = "result"});
    dist::check_same(all);
    if (dist::rank() == 0)
      first = mine;
  });
  return first;
}

bool sameBits(const Tensor &a, const Tensor &b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.size() == 0 || reduce_all(equal(a, b)).item<bool>());
}

/// A training of several steps: layers with state, draws, an optimizer with slots; the last batch is smaller.
std::vector<Tensor> train(const dist::DataParallelOptions &options, int steps = 6) {
  nn::Dense first(5, 8), second(8, 3);
  nn::BatchNorm norm(8);
  nn::Dropout dropout(0.3);
  optim::Adam optimizer(0.01);
  std::vector<Variable> variables;
  for (const nn::Module *each : std::initializer_list<const nn::Module *>{&first, &norm, &second})
    for (const Variable &variable : each->trainable_variables())
      variables.push_back(variable);
  for (size_t i = 0; i < variables.size(); ++i) // threads of one process share the sequence of the initializers
    variables[i].assign(drawn(variables[i].shape(), static_cast<int64_t>(i), f32));
  auto step = dist::data_parallel(
      "step",
      [&](const Tensor &x, const Tensor &y) {
        GradientTape tape;
        Tensor logits = second(dropout(relu(norm(first(x), true)), true));
        Tensor loss = nn::cross_entropy(logits, y);
        optimizer.apply(tape.gradient(loss, variables), variables);
        return std::pair(loss, logits);
      },
      options);
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    int64_t rows = i + 1 == steps ? 5 : 29;
    Tensor x = drawn({rows, 5}, 100 + i, f32), y = random_integers(random::key(200 + i), {rows}, 0, 3);
    auto [loss, logits] = step(part(x, options.shards), part(y, options.shards));
    results.push_back(loss);
    auto [begin, end] = dist::rows_of_rank(rows, options.shards);
    EXPECT_EQ(logits.shape(), (Shape{end - begin, 3}));
  }
  for (const Variable &variable : variables)
    results.push_back(variable.value());
  results.push_back(norm.running_mean().value());
  results.push_back(norm.running_variance().value());
  return results;
}

} // namespace

TEST(DataParallel, GradientsAreThoseOfTheWholeBatch) {
  for (int64_t rows : {16, 13, 3, 1})
    for (int ranks : {1, 2, 3, 4}) {
      Tensor x = drawn({rows, 4}, 1), y = drawn({rows, 2}, 2), w0 = drawn({4, 2}, 3);
      auto loss = [](const Tensor &x, const Tensor &w, const Tensor &y) {
        return mean(square(tanh(matmul(x, w)) - y)) + 0.1 * reduce_sum(square(w));
      };
      Variable whole(w0, "w");
      GradientTape tape;
      Tensor value = loss(x, whole, y);
      Tensor expected = tape.gradient(value, whole).value();
      std::vector<Tensor> got = onRanks(ranks, [&] {
        Variable w(w0, "w");
        auto step = dist::data_parallel(
            "step",
            [&](const Tensor &x, const Tensor &y) {
              GradientTape tape;
              Tensor value = loss(x, w, y);
              return std::pair(value, reshape(tape.gradient(value, w).value(), {8}));
            },
            {.shards = 4});
        auto [value, gradient] = step(part(x, 4), part(y, 4));
        return std::vector<Tensor>{value, reshape(gradient, {4, 2})};
      });
      std::string what = std::to_string(rows) + " rows, " + std::to_string(ranks) + " ranks";
      expectNear(got[0], value, 1e-14, what);
      expectNear(got[1], expected, 1e-14, what);
    }
}

TEST(DataParallel, AnyNumberOfRanksHasTheSameBits) {
  for (bool sync : {false, true})
    for (bool interpret : {false, true}) {
      dist::DataParallelOptions options{.sync_batch_norm = sync, .function = {.interpret = interpret}};
      std::vector<Tensor> one = onRanks(1, [&] { return train(options); });
      for (int ranks : {2, 3, 4, 5, 8}) {
        std::vector<Tensor> many = onRanks(ranks, [&] { return train(options); });
        ASSERT_EQ(many.size(), one.size());
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(sameBits(one[i], many[i])) << "result " << i << ", " << ranks << " ranks, sync " << sync
                                                 << ", interpreted " << interpret << "\n" << one[i] << "\n" << many[i];
      }
    }
}

TEST(DataParallel, BucketsChangeNoBits) {
  std::vector<Tensor> one = onRanks(1, [&] { return train({}); });
  for (int64_t bytes : {1, 64, 200})
    for (int ranks : {1, 3}) {
      std::vector<Tensor> many = onRanks(ranks, [&] { return train({.bucket_bytes = bytes}); });
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(sameBits(one[i], many[i])) << "result " << i << ", " << bytes << " bytes";
    }
}
