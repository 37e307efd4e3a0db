// A step over ranks: it is the step of the whole batch, and one rank and eight have the same bits.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

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
  return a.shape() == b.shape() && a.dtype() == b.dtype() && (a.size() == 0 || reduce_all(equal(a, b)).item<bool>());
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
        auto step = dist::data_parallel("step",
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
          EXPECT_TRUE(sameBits(one[i], many[i]))
              << "result " << i << ", " << ranks << " ranks, sync " << sync << ", interpreted " << interpret << "\n"
              << one[i] << "\n"
              << many[i];
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

TEST(DataParallel, BatchNormOverShardsIsThatOfTheBatch) {
  Tensor x = drawn({11, 3}, 1), y = drawn({11, 3}, 2);
  auto loss = [](const nn::BatchNorm &norm, const Tensor &x, const Tensor &y) {
    return mean(square(sin(norm(x, true)) - y));
  };
  nn::BatchNormOptions options{.dtype = f64};
  nn::BatchNorm whole(3, options);
  Variable scale(drawn({3}, 3), "scale");
  GradientTape tape;
  Tensor value = loss(whole, x * scale, y);
  std::vector<Grad> expected = tape.gradient(value, std::vector<Variable>{scale, whole.trainable_variables()[0]});
  for (int ranks : {1, 2, 3}) {
    std::vector<Tensor> got = onRanks(ranks, [&] {
      nn::BatchNorm norm(3, options);
      Variable scale(drawn({3}, 3), "scale");
      auto step = dist::data_parallel("step",
                                      [&](const Tensor &x, const Tensor &y) {
                                        GradientTape tape;
                                        Tensor value = loss(norm, x * scale, y);
                                        std::vector<Grad> grads = tape.gradient(
                                            value, std::vector<Variable>{scale, norm.trainable_variables()[0]});
                                        Variable(scale).assign(grads[0].value());
                                        norm.trainable_variables()[0].assign(grads[1].value());
                                        return value;
                                      },
                                      {.shards = 4, .sync_batch_norm = true});
      Tensor value = step(part(x, 4), part(y, 4));
      return std::vector<Tensor>{value, scale.value(), norm.trainable_variables()[0].value(),
                                 norm.running_mean().value(), norm.running_variance().value()};
    });
    expectNear(got[0], value, 1e-13, "loss");
    expectNear(got[1], expected[0].value(), 1e-12, "by the scale");
    expectNear(got[2], expected[1].value(), 1e-12, "by the weight");
    expectNear(got[3], whole.running_mean().value(), 1e-13, "mean");
    expectNear(got[4], whole.running_variance().value(), 1e-13, "variance");
  }
}

/// Per-example gradients inside of the loss: derivatives of second order, by the batch and by variables.
TEST(DataParallel, SecondOrder) {
  Tensor x = drawn({10, 3}, 1), w0 = drawn({3}, 2);
  auto penalty = [](const Tensor &x, const Variable &w) {
    GradientTape outer;
    Tensor value;
    {
      GradientTape inner;
      inner.watch(x);
      Tensor sum = reduce_sum(sin(reduce_sum(x * w, {1})));
      Tensor slope = inner.gradient(sum, x).value();
      value = mean(square(reduce_sum(square(slope), {1}) - 1.0)) + mean(square(sin(reduce_sum(x * w, {1}))));
    }
    return std::pair(value, outer.gradient(value, w).value());
  };
  Variable w(w0, "w");
  auto [value, slope] = penalty(x, w);
  for (int ranks : {1, 3}) {
    std::vector<Tensor> got = onRanks(ranks, [&] {
      Variable w(w0, "w");
      auto step = dist::data_parallel("step",
                                      [&](const Tensor &x) {
                                        auto [value, slope] = penalty(x, w);
                                        w.assign(slope);
                                        return value;
                                      },
                                      {.shards = 4});
      Tensor value = step(part(x, 4));
      return std::vector<Tensor>{value, w.value()};
    });
    expectNear(got[0], value, 1e-13, "loss");
    expectNear(got[1], slope, 1e-12, "gradient");
  }
}

/// What the step returns, what it is given whole, and what all_reduce does inside.
TEST(DataParallel, ArgumentsAndResults) {
  struct Given {
    Tensor x, w;
  };
  for (int ranks : {1, 2, 4})
    dist::run(ranks, [&] {
      Tensor x = cast(arange(14), f64), w = Tensor{1.0, 2.0, 3.0};
      auto step = dist::data_parallel(
          "step",
          [&](const Tensor &x, const Tensor &w, const Tensor &rate, const std::vector<Tensor> &more, int64_t power) {
            GradientTape tape;
            tape.watch(w);
            Tensor each = reduce_sum(expand_dims(x, 1) * w, {1}) * rate; // 6 x rate
            Tensor slope = tape.gradient(mean(each), w).value();         // of the batch: mean(x) rate, three times
            std::map<std::string, Tensor> results{{"count", reduce_sum(cast(greater(x, 3.5), i64))},
                                                  {"each", each + cast(power, f64)},
                                                  {"largest", dist::all_reduce(reduce_max(x), dist::Reduction::max)},
                                                  {"mean", mean(x)},
                                                  {"more", more[0] * 2.0},
                                                  {"one", Tensor(1.0)},
                                                  {"shard", zeros_like(x) + cast(dist::shard(), f64)},
                                                  {"slope", reduce_sum(slope * slope)},
                                                  {"total", dist::all_reduce(reduce_sum(x))},
                                                  {"whole", w}};
            return results;
          },
          {.shards = 4, .whole = {1}});
      auto got = step(part(x, 4), w, Tensor(0.5), {part(x, 4)}, 7);
      auto [begin, end] = dist::rows_of_rank(14, 4);
      EXPECT_EQ(got["count"].item<int64_t>(), 10);
      EXPECT_TRUE(sameBits(got["each"], part(x, 4) * 3.0 + 7.0));
      EXPECT_EQ(got["largest"].item<double>(), 13);
      EXPECT_DOUBLE_EQ(got["mean"].item<double>(), 6.5);
      EXPECT_TRUE(sameBits(got["more"], part(x, 4) * 2.0));
      EXPECT_EQ(got["one"].item<double>(), 1);
      EXPECT_DOUBLE_EQ(got["slope"].item<double>(), 3 * 3.25 * 3.25);
      EXPECT_EQ(got["total"].item<double>(), 91);
      EXPECT_TRUE(sameBits(got["whole"], w));
      std::vector<double> shards = got["shard"].to_vector<double>(), all{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3};
      EXPECT_EQ(shards, std::vector<double>(all.begin() + begin, all.begin() + end));
    });
}

TEST(DataParallel, DrawsGoByShard) {
  std::vector<double> one;
  for (int ranks : {1, 2, 3}) {
    std::vector<double> all;
    std::mutex mutex;
    dist::run(ranks, [&] {
      Generator generator(5);
      Tensor key = random::key(9);
      auto step = dist::data_parallel("step", [&](const Tensor &x) {
        return std::pair(generator.uniform(x.shape()), random_uniform(key, x.shape()));
      });
      for (int i = 0; i < 2; ++i) {
        auto [own, same] = step(part(zeros({16}), 8));
        Tensor draws = dist::all_gather(pad(own, {{0, 16 - own.dim(0)}}));
        if (dist::rank() == 0) {
          std::lock_guard lock(mutex);
          for (double each : draws.to_vector<double>())
            if (each != 0)
              all.push_back(each);
        }
        std::vector<float> values = same.to_vector<float>();
        for (size_t k = 2; k < values.size(); ++k) // two rows a shard
          EXPECT_EQ(values[k], values[k % 2]);
      }
    });
    EXPECT_EQ(all.size(), 32u);
    EXPECT_EQ(std::set<double>(all.begin(), all.end()).size(), 32u);
    if (ranks == 1)
      one = all;
    EXPECT_EQ(all, one);
  }
}

/// Functions that the step calls are a part of it, with their tapes; loops and conditions have none.
TEST(DataParallel, CallsInside) {
  Tensor x = drawn({9, 3}, 1), w0 = drawn({3}, 2);
  std::vector<Tensor> got[2];
  for (bool parallel : {false, true})
    got[parallel] = onRanks(parallel ? 2 : 1, [&] {
      Variable w(w0, "w");
      auto gradient = function("gradient", [&](const Tensor &x) {
        GradientTape tape;
        Tensor h =
            for_range(0, 3, [](const Tensor &, const Tensor &h) { return sin(h); }, expand_dims(w.value(), 0) * x);
        return tape.gradient(mean(h), w).value();
      });
      auto body = [&](const Tensor &x) {
        w.assign_sub(gradient(x));
        return mean(x);
      };
      Tensor loss;
      if (parallel)
        loss = dist::data_parallel("step", body, {.shards = 3})(part(x, 3));
      else
        loss = function("step", body)(x);
      return std::vector<Tensor>{loss, w.value()};
    });
  for (size_t i = 0; i < got[0].size(); ++i)
    expectNear(got[1][i], got[0][i], 1e-14, "result " + std::to_string(i));
}

TEST(DataParallel, ShardsOfADataSet) {
  data::Examples examples{cast(arange(23), f32), arange(23)};
  auto set = data::Dataset(examples).shuffle(3).batch(10);
  for (int ranks : {1, 2, 3, 5}) {
    std::vector<std::vector<data::Dataset>> sets;
    std::vector<std::vector<int64_t>> batches(3), expected(3);
    size_t at = 0;
    for (auto [x, y] : data::Dataset(examples).shuffle(3).batch(10))
      expected[at++] = y.to_vector<int64_t>();
    for (int rank = 0; rank < ranks; ++rank) {
      at = 0;
      for (auto [x, y] : data::Dataset(examples)
                             .shuffle(3)
                             .batch(10)
                             .ranks(8, rank, ranks)
                             .map_examples([](const data::Examples &one) { return std::pair(one.x * 2.0f, one.y); })) {
        for (int64_t each : y.to_vector<int64_t>())
          batches[at].push_back(each);
        EXPECT_TRUE(sameBits(x, cast(y, f32) * 2.0f));
        ++at;
      }
      EXPECT_EQ(at, 3u);
    }
    EXPECT_EQ(batches, expected);
  }
  EXPECT_NE(messageOf([&] { set.ranks(2, 0, 3); }).find("3, and 2 shards"), std::string::npos);
}

TEST(DataParallel, WhatIsWrongIsSaid) {
  auto says = [](const std::function<void()> &f, const std::string &text) {
    std::string message = messageOf(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  Tensor x = drawn({8, 2}, 1);
  Variable w(drawn({2}, 2), "w");
  auto assigns = [&](const Tensor &x) { w.assign(mean(x, {0})); };
  says([&] { dist::data_parallel("step", assigns)(x); },
       "variable 'w' is assigned what differs from shard to shard, the result of");
  says([&] { dist::data_parallel("step", [&](const Tensor &x) { return reduce_all(greater(x, 0.0)); })(x); },
       "a boolean without axes differs");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return x; }, {.shards = -1}); }, "shards is -1");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return x; })(Tensor(1.0)); }, "no argument has rows");
  says([&] { dist::data_parallel("step", [](const Tensor &x, const Tensor &y) { return x; })(x, zeros({3})); },
       "argument 1 is f32[3], and argument 0 is f64[8,2]: their rows are no batch");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return x; })(zeros({0, 2})); }, "has no rows on any");
  says(
      [&] {
        auto step = dist::data_parallel("step", [](const Tensor &x) { return x; });
        function("outer", [&](const Tensor &x) { return step(x); })(x);
      },
      "is called inside of a traced function");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return dist::all_gather(x); })(x); },
       "all_gather: ranks meet inside of a data parallel step");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return dist::barrier(), x; })(x); },
       "barrier: ranks meet inside of a data parallel step");
  says(
      [&] {
        dist::data_parallel("step", [](const Tensor &x) {
          return cond(greater(mean(x), 0.0), [&] { return dist::all_reduce(x); }, [&] { return x; });
        })(x);
      },
      "a sum over shards stands in the body of another op");
  says([&] { dist::run(3, [&] { dist::data_parallel("step", [](const Tensor &x) { return x; }, {.shards = 2})(x); }); },
       "there are 3 ranks, and a batch is cut into 2 shards");
  says(
      [&] {
        dist::run(2,
                  [&] { dist::data_parallel("step", [](const Tensor &x) { return x; })(zeros({dist::rank() + 1})); });
      },
      "rank 0 gives 1 rows of a batch of 3, of which its shards have 3");
  says(
      [&] {
        dist::run(2, [&] {
          double factor = dist::rank() + 1;
          dist::data_parallel("step", [&](const Tensor &x) { return mean(x * factor); })(part(x, 8));
        });
      },
      "has traced another program than rank");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return x; }, {.whole = {1}})(x); },
       "whole names argument 1, and there are 1");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return matmul(x, transpose(x)); })(drawn({9, 2}, 1)); },
       "a result is f64[2,2] of one shard and f64[1,1] of another: these are no rows");
  says([&] { dist::data_parallel("step", [](const Tensor &x) { return Tensor(double(x.dim(0))); })(drawn({9, 2}, 1)); },
       "what is computed once for all shards depends on the number of rows");
  EXPECT_TRUE(sameBits(w.value(), drawn({2}, 2)));
}

/// A shard that fails leaves all variables as they were, on all ranks, and all have an error.
TEST(DataParallel, AFailureChangesNothing) {
  for (int64_t size : {1, 5000}) // sums that go round in one exchange, and in two
    for (bool early : {false, true}) {
      Tensor x = concat({drawn({7}, 1), Tensor{-5.0}}, 0);
      std::atomic<int> errors = 0;
      std::string message = messageOf([&] {
        dist::run(2,
                  [&] {
                    Variable w(ones({size}, f64), "w");
                    auto step = dist::data_parallel("step", [&](const Tensor &x) {
                      Tensor fine = reduce_all(greater(x, -2.0));
                      if (early)
                        check(fine, "an example is out of range");
                      GradientTape tape;
                      Tensor loss = mean(x * reduce_sum(w));
                      w.assign_sub(tape.gradient(loss, w).value());
                      if (!early)
                        check(fine, "an example is out of range");
                      return loss;
                    });
                    try {
                      step(part(x, 8));
                    } catch (const Error &) {
                      ++errors;
                      EXPECT_TRUE(sameBits(w.value(), ones({size}, f64)));
                      throw;
                    }
                  },
                  {.timeout = 5});
      });
      EXPECT_EQ(errors, 2);
      EXPECT_NE(message.find("an example is out of range"), std::string::npos) << message;
    }
}

/// Many sums of two exchanges each are on their way at a time.
TEST(DataParallel, LargeBuckets) {
  for (int ranks : {2, 3}) {
    std::vector<Tensor> got[2];
    for (bool many : {false, true})
      got[many] = onRanks(ranks, [&] {
        std::vector<Variable> w;
        for (int i = 0; i < 5; ++i)
          w.emplace_back(drawn({64, 64}, i), "w");
        optim::SGD sgd(0.1);
        auto step = dist::data_parallel("step",
                                        [&](const Tensor &x) {
                                          GradientTape tape;
                                          Tensor h = x;
                                          for (const Variable &each : w)
                                            h = tanh(matmul(h, each));
                                          Tensor loss = mean(square(h));
                                          sgd.apply(tape.gradient(loss, w), w);
                                          return loss;
                                        },
                                        {.bucket_bytes = many ? 1 : 1 << 30});
        for (int i = 0; i < 4; ++i)
          step(part(drawn({16, 64}, 10 + i), 8));
        EXPECT_EQ(std::ssize(step.communication().buckets), many ? 6 : 1);
        return std::vector<Tensor>(w.begin(), w.end());
      });
    for (size_t i = 0; i < got[0].size(); ++i)
      EXPECT_TRUE(sameBits(got[0][i], got[1][i]));
  }
}

/// Of what follows from sums over shards: a reduced loss, a product of a gradient and a vector.
TEST(DataParallel, DerivativesOfSums) {
  Tensor x = drawn({11, 3}, 1), w0 = drawn({3}, 2), v = drawn({3}, 3);
  auto both = [&](const Tensor &x, const Variable &w, bool reduces) {
    GradientTape outer({.persistent = true});
    GradientTape inner;
    Tensor loss = mean(square(sin(reduce_sum(x * w, {1})))) + 0.1 * reduce_sum(square(w.value()));
    Tensor slope = inner.gradient(loss, w).value();
    Tensor along = reduce_sum(slope * v);
    Tensor whole = reduces ? dist::all_reduce(loss, dist::Reduction::mean) : loss;
    return std::tuple(outer.gradient(along, w).value(), outer.gradient(whole, w).value(),
                      outer.gradient(square(whole), w).value());
  };
  Variable w(w0, "w");
  auto [hvp, slope, squared] = both(x, w, false);
  for (int ranks : {1, 3}) {
    std::vector<Tensor> got = onRanks(ranks, [&] {
      Variable w(w0, "w"), a(w0, "a"), b(w0, "b"), c(w0, "c");
      dist::data_parallel("step",
                          [&](const Tensor &x) {
                            auto [hvp, slope, squared] = both(x, w, true);
                            a.assign(hvp), b.assign(slope), c.assign(squared);
                          },
                          {.shards = 4})(part(x, 4));
      return std::vector<Tensor>{a.value(), b.value(), c.value()};
    });
    expectNear(got[0], hvp, 1e-12, "hvp");
    expectNear(got[1], slope, 1e-13, "slope");
    expectNear(got[2], squared, 1e-13, "slope of the square");
  }
}

TEST(DataParallel, SumsOfLosses) {
  Tensor x = drawn({11}, 1);
  Variable w(Tensor(0.5), "w");
  GradientTape tape;
  Tensor loss = reduce_sum(sin(x * w));
  Tensor slope = tape.gradient(loss, w).value();
  std::vector<Tensor> got = onRanks(3, [&] {
    Variable w(Tensor(0.5), "w");
    auto step = dist::data_parallel("step",
                                    [&](const Tensor &x) {
                                      GradientTape tape;
                                      Tensor loss = reduce_sum(sin(x * w));
                                      w.assign(tape.gradient(loss, w).value());
                                      return loss;
                                    },
                                    {.shards = 4, .loss = dist::Reduction::sum});
    Tensor loss = step(part(x, 4));
    return std::vector<Tensor>{loss, w.value()};
  });
  expectNear(got[0], loss, 1e-14, "loss");
  expectNear(got[1], slope, 1e-14, "slope");
}

/// Metrics, variables that are assigned twice, and a step that was refused before.
TEST(DataParallel, StateInside) {
  Tensor x = drawn({11, 3}, 1), y = random_integers(random::key(2), {11}, 0, 3);
  metrics::Accuracy whole;
  whole.update(x, y);
  for (int ranks : {1, 3})
    dist::run(ranks, [&] {
      metrics::Accuracy inside, outside;
      Variable scratch(Tensor(0.0), "scratch");
      bool refused = true;
      auto step = dist::data_parallel("step",
                                      [&](const Tensor &x, const Tensor &y) {
                                        inside.update(x, y);
                                        scratch.assign(mean(x));
                                        if (!refused)
                                          scratch.assign(Tensor(2.0));
                                      },
                                      {.shards = 4});
      Tensor ownX = part(x, 4), ownY = part(y, 4);
      std::string message = messageOf([&] { step(ownX, ownY); });
      EXPECT_NE(message.find("'scratch' is assigned what differs from shard to shard, the result of '"),
                std::string::npos)
          << message;
      if (dist::size() > 1)
        return; // whose ranks have failed
      refused = false;
      step(ownX, ownY);
      outside.update(ownX, ownY);
      outside.all_reduce();
      EXPECT_EQ(inside.result(), whole.result());
      EXPECT_EQ(outside.result(), whole.result());
      EXPECT_EQ(scratch.item<double>(), 2);
    });
  dist::run(3, [&] {
    metrics::Accuracy inside, outside;
    dist::data_parallel("step", [&](const Tensor &x, const Tensor &y) { inside.update(x, y); },
                        {.shards = 4})(part(x, 4), part(y, 4));
    outside.update(part(x, 4), part(y, 4));
    outside.all_reduce();
    EXPECT_EQ(inside.result(), whole.result());
    EXPECT_EQ(outside.result(), whole.result());
  });
}

/// What a step reads in one part it assigns in another: calls of one process come one after the other.
TEST(DataParallel, ThreadsOfOneRank) {
  Variable count(Tensor(0.0), "count");
  auto step = dist::data_parallel(
      "step", [&](const Tensor &x) { count.assign_add(dist::all_reduce(reduce_sum(x)) - count.value() * 0.0); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k)
        step(ones({8}, f64));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(count.item<double>(), 800);
}

TEST(DataParallel, WhatDiffersBetweenRanksIsSaid) {
  auto says = [](const std::function<void()> &f, const std::string &text) {
    std::string message = messageOf([&] { dist::run(2, f, {.timeout = 5}); });
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  auto sum = [](const Tensor &x) { return reduce_sum(x); };
  says(
      [&] {
        auto step = dist::data_parallel(dist::rank() ? "one" : "other", sum);
        step(part(ones({16}), 8));
      },
      "is at a data parallel step");
  says(
      [&] {
        if (dist::rank())
          dist::all_reduce(ones({3}));
        else
          dist::data_parallel("step", sum)(part(ones({16}), 8));
      },
      "rank 1 is at all_reduce_sum of 3 f32, its call 1, and rank 0 is at a data parallel step");
  says(
      [&] {
        Tensor own = cast(Tensor(dist::rank()), f64);
        dist::data_parallel("step", [&](const Tensor &x) { return mean(x * own); })(part(ones({16}, f64), 8));
      },
      "has traced another program than rank");
  says(
      [&] {
        auto step = dist::data_parallel("step", sum);
        step(dist::rank() ? Tensor(1.0f) : part(ones({16}), 8));
      },
      "no argument has rows");
  auto shared = dist::data_parallel("step", sum);
  says([&] { shared(part(ones({16}), 8)); }, "call one step");
}

/// Variables begin as on rank 0; who has them differ is told.
TEST(DataParallel, VariablesAreTheSame) {
  auto train = [](const dist::DataParallelOptions &options) {
    Variable w(cast(Tensor(dist::rank()), f64), "w"), own(cast(Tensor(dist::rank()), f64), "own");
    auto step = dist::data_parallel(
        "step", [&](const Tensor &x) { w.assign_add(dist::all_reduce(mean(x)) * own.value() * 0.0 + 1.0); }, options);
    for (int i = 0; i < 3; ++i) {
      step(part(ones({8}, f64), 8));
      if (i == 0)
        own.assign(cast(Tensor(dist::rank()), f64));
    }
    return w.item<double>();
  };
  dist::run(2, [&] { EXPECT_EQ(train({}), 3); });
  dist::run(2, [&] { EXPECT_EQ(train({.broadcast = false}), 3 + dist::rank()); });
  for (bool broadcast : {false, true}) // at the start, and between steps
    EXPECT_NE(messageOf([&] {
                dist::run(2, [&] { train({.broadcast = broadcast, .check_every = 2}); });
              }).find(std::string("ranks 1 have other values than rank 0 in variable '") + (broadcast ? "own'" : "")),
              std::string::npos);
}

TEST(DataParallel, ReportsWhatItSends) {
  dist::run(2, [&] {
    Variable w(zeros({3000}), "w");
    auto step = dist::data_parallel("step", [&](const Tensor &x) {
      GradientTape tape;
      Tensor loss = mean(square(reduce_sum(x * w, {1}) - 1.0f));
      w.assign_sub(tape.gradient(loss, w).value());
      return loss;
    });
    for (int i = 0; i < 3; ++i)
      step(part(ones({16, 3000}), 8));
    dist::Communication sent = step.communication();
    EXPECT_EQ(sent.calls, 3);
    ASSERT_EQ(sent.buckets.size(), 1u);
    EXPECT_EQ(sent.buckets[0].bytes, 4 * 3001);
    EXPECT_GT(sent.buckets[0].seconds, 0);
    EXPECT_GE(sent.overlapped(), 0);
    EXPECT_NE(sent.buckets[0].what.find("2 tensors, from DataParallelTest.cpp:"), std::string::npos);
    EXPECT_NE(step.report().find("stage 0, for each shard"), std::string::npos) << step.report();
    EXPECT_EQ(step.report().find("results depend on the number of ranks"), std::string::npos);
    // Who gives the promise up is told.
    auto own = dist::data_parallel("own", [](const Tensor &x) { return mean(x); }, {.shards = 0});
    EXPECT_NE(own.report().find("one shard for each rank: results depend on the number of ranks"), std::string::npos);
    dist::init({.any_order = true});
    EXPECT_NE(step.report().find("sums in any order: results depend on the number of ranks"), std::string::npos);
  });
}

/// Ranks see their own rows, and stop after the same epoch with the same weights.
TEST(DataParallel, EarlyStoppingAgrees) {
  dist::run(3, [&] {
    Variable w(zeros({2}, f64), "w");
    auto step = dist::data_parallel("step", [&](const Tensor &x) {
      GradientTape tape;
      Tensor loss = mean(square(reduce_sum(x * w, {1}) - 1.0));
      w.assign_sub(3.5 * tape.gradient(loss, w).value()); // too far: after some epochs it gets worse
      return loss;
    });
    metrics::Mean mean;
    optim::EarlyStopping early(std::vector<Variable>{w}, {.patience = 2});
    int64_t epochs = 0;
    for (bool ends = false; !ends && epochs < 50; ++epochs) {
      for (uint64_t batch = 0; batch < 3; ++batch)
        step(part(random_uniform(random::key(10 * batch + 1), {12, 2}, 0, 1, f64), 8));
      mean.reset();
      mean.update(random_uniform(random::key(static_cast<uint64_t>(dist::rank())), {4}, 0, 1, f64) *
                  reduce_sum(square(w - 0.7)));
      mean.all_reduce();
      ends = early.update(mean.result());
    }
    early.restore_best_weights();
    EXPECT_LT(epochs, 50);
    dist::check_same({w, Variable(Tensor(epochs)), Variable(Tensor(early.best()))});
  });
}

TEST(DataParallel, OneShardForEachRank) {
  Tensor x = drawn({11, 2}, 1), w0 = drawn({2}, 2);
  auto slope = [&](const Tensor &x, int64_t shards) {
    Variable w(w0, "w");
    auto step = dist::data_parallel("step",
                                    [&](const Tensor &x) {
                                      GradientTape tape;
                                      Tensor loss = mean(sin(reduce_sum(x * w, {1})));
                                      w.assign(tape.gradient(loss, w).value());
                                      return zeros_like(reduce_sum(x, {1})) + cast(dist::shard(), f64);
                                    },
                                    {.shards = shards});
    Tensor shard = step(part(x, shards));
    EXPECT_EQ(reduce_max(shard).item<double>(), dist::rank());
    EXPECT_EQ(reduce_min(shard).item<double>(), dist::rank());
    return w.value();
  };
  Tensor whole = slope(x, 1);
  for (int ranks : {2, 3})
    expectNear(onRanks(ranks, [&] { return std::vector<Tensor>{slope(x, 0)}; })[0], whole, 1e-14, "slope");
}
