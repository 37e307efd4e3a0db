// What ranks compute together, on threads: values, derivatives against differences, engines, bodies, lanes, errors.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

namespace {

/// A tensor of each rank's own.
Tensor own(const Shape &shape, int salt = 0) {
  return random_uniform(random::key(static_cast<uint64_t>(10 * salt + dist::rank() + 1)), shape, -1, 1, f64);
}

Tensor tensorOf(const std::vector<double> &values, const Shape &shape) {
  auto kept = std::make_shared<std::vector<double>>(values);
  return Tensor::from_blob(kept->data(), shape, [kept] {});
}

struct Kind {
  const char *name;
  std::function<Tensor(const Tensor &)> apply;
};
/// Of x [2, 6] on 1 to 4 ranks; 12 = 1 * 12 = 2 * 6 = 3 * 4 = 4 * 3.
std::vector<Kind> kinds() {
  using dist::Reduction;
  return {{"sum", [](const Tensor &x) { return dist::all_reduce(x); }},
          {"mean", [](const Tensor &x) { return dist::all_reduce(x, Reduction::mean); }},
          {"max", [](const Tensor &x) { return dist::all_reduce(x, Reduction::max); }},
          {"gather", [](const Tensor &x) { return dist::all_gather(x); }},
          {"gather of axis 1", [](const Tensor &x) { return dist::all_gather(x, 1); }},
          {"scatter", [](const Tensor &x) { return dist::reduce_scatter(reshape(x, {12})); }},
          {"scatter of axis 1", [](const Tensor &x) { return dist::reduce_scatter(reshape(x, {1, 12}), 1); }},
          {"broadcast", [](const Tensor &x) { return dist::broadcast(x, dist::size() - 1); }}};
}

/// By every element of this rank's x, the derivative of the sum over all ranks of f.
Tensor differences(const std::function<Tensor(const Tensor &)> &f, const Tensor &x) {
  std::vector<double> values = x.to_vector<double>(), slopes;
  constexpr double h = 1e-5;
  for (int rank = 0; rank < dist::size(); ++rank)
    for (size_t i = 0; i < values.size(); ++i) {
      auto total = [&](double by) {
        std::vector<double> moved = values;
        moved[i] += rank == dist::rank() ? by : 0;
        return dist::all_reduce(f(tensorOf(moved, x.shape()))).item<double>();
      };
      double slope = (total(h) - total(-h)) / (2 * h);
      if (rank == dist::rank())
        slopes.push_back(slope);
    }
  return tensorOf(slopes, x.shape());
}

void expectNear(const Tensor &a, const Tensor &b, double tolerance, const std::string &what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_LE(reduce_max(abs(a - b) / (1.0 + abs(b))).item<double>(), tolerance)
      << what << ", rank " << dist::rank() << "\n"
      << a << "\n"
      << b;
}

class DistTest : public testing::TestWithParam<int> {
protected:
  void onRanks(const std::function<void()> &body) { dist::run(GetParam(), body, {.timeout = 20}); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, DistTest, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST_P(DistTest, Values_are_those_of_all_ranks) {
  int n = GetParam();
  std::mutex mutex;
  std::vector<std::vector<double>> x(static_cast<size_t>(n));
  onRanks([&] {
    auto r = static_cast<size_t>(dist::rank());
    ASSERT_EQ(dist::size(), n);
    Tensor mine = own({3});
    {
      std::lock_guard lock(mutex);
      x[r] = mine.to_vector<double>();
    }
    dist::barrier();
    std::vector<double> sum = dist::all_reduce(mine).to_vector<double>(),
                        mean = dist::all_reduce(mine, dist::Reduction::mean).to_vector<double>(),
                        most = dist::all_reduce(mine, dist::Reduction::max).to_vector<double>(),
                        first = dist::broadcast(mine, n - 1).to_vector<double>(),
                        all = dist::all_gather(mine).to_vector<double>();
    for (size_t i = 0; i < 3; ++i) {
      double expected = 0, largest = -9;
      for (const std::vector<double> &each : x)
        expected += each[i], largest = std::max(largest, each[i]);
      EXPECT_NEAR(sum[i], expected, 1e-15);
      EXPECT_NEAR(mean[i], expected / n, 1e-15);
      EXPECT_EQ(most[i], largest);
      EXPECT_EQ(first[i], x.back()[i]);
      for (size_t rank = 0; rank < x.size(); ++rank)
        EXPECT_EQ(all[3 * rank + i], x[rank][i]);
    }
    Tensor whole = full({2 * n}, dist::rank() + 1.0, f64);
    EXPECT_EQ(dist::reduce_scatter(whole).to_vector<double>(), std::vector<double>(2, n * (n + 1) / 2.0));
    std::vector<uint8_t> firsts(static_cast<size_t>(n));
    firsts[0] = 1;
    EXPECT_EQ(dist::all_gather(Tensor(dist::rank() == 0)).to_vector<uint8_t>(), firsts);
    EXPECT_TRUE(dist::broadcast(Tensor(dist::rank() == 0)).item<bool>());
    EXPECT_EQ(dist::all_reduce(cast(Tensor(int64_t(100)), u8)).item<uint8_t>(), static_cast<uint8_t>(100 * n));
    EXPECT_EQ(dist::all_gather(Tensor(int64_t(dist::rank()))).to_vector<int64_t>(), [&] {
      std::vector<int64_t> ranks;
      for (int i = 0; i < n; ++i)
        ranks.push_back(i);
      return ranks;
    }());
  });
}

TEST_P(DistTest, Large_tensors_have_the_same_bits_on_all_ranks) {
  onRanks([] {
    for (int64_t count : {1, 1023, 1025, 40'000, 123'457}) {
      Tensor x = cast(own({count}, 3), f32), sum = dist::all_reduce(x);
      Variable v(sum, "sum");
      EXPECT_NO_THROW(dist::check_same({v}));
      Tensor all = reshape(dist::all_gather(x), {dist::size(), count});
      EXPECT_LE(reduce_max(abs(reduce_sum(all, {0}) - sum)).item<float>(), 1e-6f);
    }
  });
}

TEST_P(DistTest, Derivatives_are_those_of_the_sum_over_the_ranks) {
  onRanks([] {
    for (const Kind &kind : kinds()) {
      auto f = [&](const Tensor &x) {
        Tensor y = kind.apply(x * x * 0.5 + sin(x));
        return reduce_sum(y * y * y * static_cast<double>(dist::rank() + 1));
      };
      auto gradient = [&](const Tensor &x) {
        GradientTape tape;
        tape.watch(x);
        return tape.gradient(f(x), x).value();
      };
      Tensor x = own({2, 6}), expected = differences(f, x);
      expectNear(gradient(x), expected, 1e-7, kind.name);
      auto compiled = function("gradient", gradient);
      expectNear(compiled(x), gradient(x), 1e-13, std::string("compiled ") + kind.name);
      auto direction = own({2, 6}, 1);
      auto second = [&](const Tensor &x) { return reduce_sum(gradient(x) * direction); };
      GradientTape tape;
      tape.watch(x);
      Tensor twice = tape.gradient(second(x), x).value();
      expectNear(twice, differences(second, x), 1e-6, std::string("second order of ") + kind.name);
      // Forward mode: what moves on every rank moves the results of all.
      auto [value, tangent] = jvp(f, std::tuple(x), std::tuple(direction));
      (void)value;
      double along = dist::all_reduce(reduce_sum(expected * direction)).item<double>();
      EXPECT_NEAR(dist::all_reduce(tangent).item<double>(), along, 1e-6) << kind.name;
    }
  });
}

TEST_P(DistTest, Lanes_are_as_one_after_the_other) {
  onRanks([] {
    for (const Kind &kind : kinds()) {
      auto f = [&](const Tensor &x) { return kind.apply(sin(x)); };
      Tensor x = own({3, 2, 6});
      Tensor lanes = vmap(f)(x);
      for (int64_t i = 0; i < 3; ++i)
        expectNear(gather(lanes, Tensor(i)), f(gather(x, Tensor(i))), 1e-15, kind.name);
    }
  });
}

TEST_P(DistTest, They_run_in_loops_and_conditions) {
  onRanks([] {
    auto f = [](const Tensor &x) {
      auto step = [](const Tensor &h) { return dist::all_reduce(sin(h), dist::Reduction::mean); };
      Tensor h = for_range(0, 5, [&](const Tensor &, const Tensor &h) { return step(h) + x; }, x);
      return reduce_sum(cond(Tensor(true), [&] { return dist::all_reduce(h) * 1.0; }, [&] { return h; }));
    };
    auto gradient = [&](const Tensor &x) {
      GradientTape tape;
      tape.watch(x);
      return tape.gradient(f(x), x).value();
    };
    Tensor x = own({5});
    Tensor eager = gradient(x);
    expectNear(eager, differences(f, x), 1e-8, "loop");
    expectNear(function("loop", gradient)(x), eager, 1e-13, "loop, compiled");
  });
}

TEST_P(DistTest, What_meets_others_is_not_computed_when_it_is_compiled) {
  onRanks([] {
    auto f = function("f", [](const Tensor &x) { return x * dist::all_reduce(Tensor(1.0)); });
    EXPECT_EQ(f(Tensor(2.0)).item<double>(), 2.0 * dist::size());
  });
}

TEST_P(DistTest, Groups_are_ranks_of_their_own) {
  onRanks([] {
    dist::Group half = dist::Group().split(dist::rank() % 2, -dist::rank());
    int members = (dist::size() + 1 - dist::rank() % 2) / 2;
    EXPECT_EQ(half.size(), members);
    EXPECT_EQ(half.rank(), members - 1 - dist::rank() / 2); // by key, the highest rank first
    Tensor sum = dist::all_reduce(Tensor(1.0 + dist::rank()), dist::Reduction::sum, half);
    double expected = 0;
    for (int i = dist::rank() % 2; i < dist::size(); i += 2)
      expected += 1.0 + i;
    EXPECT_EQ(sum.item<double>(), expected);
    dist::Group none = dist::Group().split(dist::rank() == 0 ? -1 : 0);
    EXPECT_EQ(none.size(), dist::rank() == 0 ? 0 : dist::size() - 1);
  });
}

TEST_P(DistTest, Training_on_parts_of_a_batch_is_training_on_the_batch) {
  int n = GetParam();
  Tensor x = random_normal(random::key(5), {12, 3}, 0, 1, f64), y = random_normal(random::key(6), {12, 1}, 0, 1, f64);
  auto train = [&](const Tensor &x, const Tensor &y, bool together) {
    Variable w(zeros({3, 1}, f64), "w");
    auto step = function("step", [&](const Tensor &x, const Tensor &y) {
      GradientTape tape;
      Tensor loss = mean(square(matmul(x, w) - y));
      Tensor dw = tape.gradient(loss, w).value();
      w.assign_sub(0.1 * (together ? dist::all_reduce(dw, dist::Reduction::mean) : dw));
      return together ? dist::all_reduce(loss, dist::Reduction::mean) : loss;
    });
    for (int i = 0; i < 20; ++i)
      step(x, y);
    return w.value();
  };
  Tensor alone = train(x, y, false);
  onRanks([&] {
    int64_t rows = 12 / n;
    auto part = [&](const Tensor &of) { return gather(of, arange(rows) + Tensor(int64_t(dist::rank() * rows))); };
    expectNear(train(part(x), part(y), true), alone, 1e-12, "trained");
  });
}

//===- What goes wrong --------------------------------------------------------------------------------------------===//

std::string failureOf(int ranks, const std::function<void()> &body, double timeout = 20) {
  try {
    dist::run(ranks, body, {.timeout = timeout});
  } catch (const std::exception &exception) {
    return exception.what();
  }
  return "no error";
}

TEST(DistErrors, A_rank_with_another_shape_is_named) {
  std::string said = failureOf(3, [] { dist::all_reduce(zeros({dist::rank() == 1 ? 4 : 5})); });
  EXPECT_NE(said.find("rank 1 is at all_reduce_sum of 4 f32"), said.npos) << said;
  EXPECT_NE(said.find("ranks 0 and 2 are at all_reduce_sum of 5 f32"), said.npos) << said;
}

TEST(DistErrors, A_rank_at_another_op_is_named_in_compiled_code) {
  std::string said = failureOf(2, [] {
    auto f =
        function("f", [](const Tensor &x) { return dist::rank() == 1 ? dist::all_gather(x) : dist::all_reduce(x); });
    f(zeros({5}));
  });
  EXPECT_NE(said.find("rank 1 is at all_gather of 5 f32"), said.npos) << said;
  EXPECT_NE(said.find("DistTest.cpp"), said.npos) << said;
}

TEST(DistErrors, A_rank_that_does_not_come_is_named_when_the_time_is_over) {
  std::string said = failureOf(
      3,
      [] {
        if (dist::rank() == 2)
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        dist::all_reduce(zeros({100'000}));
      },
      1);
  EXPECT_NE(said.find("rank 2 has not come"), said.npos) << said;
  EXPECT_NE(said.find("within 1 s"), said.npos) << said;
}

TEST(DistErrors, A_rank_that_throws_ends_the_others_where_they_wait) {
  std::atomic<int> told = 0;
  std::string said = failureOf(4, [&] {
    if (dist::rank() == 3)
      throw std::runtime_error("no data");
    try {
      for (int i = 0; i < 1000; ++i)
        dist::all_reduce(zeros({10}));
    } catch (const Error &error) {
      told += std::string(error.what()).find("rank 3 has failed: no data") != std::string::npos;
      throw;
    }
  });
  EXPECT_EQ(told, 3);
  EXPECT_NE(said.find("no data"), said.npos) << said;
}

TEST(DistErrors, A_failing_call_leaves_variables_as_they_were) {
  (void)failureOf(2, [] {
    Variable v(zeros({3}), "v");
    auto f = function("f", [&](const Tensor &x) {
      v.assign_add(Tensor({1.f, 1.f, 1.f}));
      return dist::all_reduce(x);
    });
    try {
      f(zeros({dist::rank() == 0 ? 4 : 5}));
    } catch (const Error &) {
      EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(3, 0.f));
      throw;
    }
    ADD_FAILURE() << "it did not fail";
  });
}

TEST(DistErrors, Values_that_differ_are_found) {
  std::string said = failureOf(3, [] {
    Variable a(zeros({3}), "a"), b(full({2}, dist::rank() == 2 ? 1.f : 0.f), "b");
    dist::check_same({a, b});
  });
  EXPECT_NE(said.find("ranks 2 have other values than rank 0 in variable 'b'"), said.npos) << said;
}

TEST(DistErrors, Other_numbers_of_variables_are_found) {
  std::string said = failureOf(2, [] {
    Variable a(zeros({3}), "a");
    dist::check_same(dist::rank() == 0 ? std::vector<Variable>{a, a} : std::vector<Variable>{a});
  });
  EXPECT_NE(said.find("another number of variables"), said.npos) << said;
}

TEST(DistErrors, A_rank_that_does_not_split_is_named) {
  std::string said = failureOf(
      2,
      [] {
        if (dist::rank() == 0)
          dist::Group().split(0);
      },
      0.5);
  EXPECT_NE(said.find("rank 1 has not come"), said.npos) << said;
}

TEST(DistRanks, Many_ranks_and_any_order_and_no_check) {
  for (const dist::Options &options : {dist::Options{.timeout = 60}, dist::Options{.timeout = 60, .check = false},
                                       dist::Options{.timeout = 60, .any_order = true}})
    dist::run(
        67,
        [] {
          EXPECT_EQ(dist::all_reduce(Tensor(1.0 + dist::rank())).item<double>(), 67 * 68 / 2.0);
          EXPECT_EQ(dist::all_reduce(full({3000}, 1.0, f32)).to_vector<float>(), std::vector<float>(3000, 67.f));
        },
        options);
}

TEST(DistRanks, A_loop_that_wants_more_room_on_one_rank_meets_the_others_once) {
  dist::run(2,
            [] {
              auto slope = function("slope", [](const Tensor &x, const Tensor &most) {
                GradientTape tape;
                tape.watch(x);
                Tensor together = dist::all_reduce(x);
                auto [h, i] = while_loop([&](const std::pair<Tensor, Tensor> &s) { return s.second < most; },
                                         [](const std::pair<Tensor, Tensor> &s) {
                                           return std::pair(s.first * 1.001, s.second + int64_t(1));
                                         },
                                         std::pair(together, Tensor(int64_t(0))));
                return tape.gradient(h, x).value();
              });
              int64_t turns = dist::rank() == 0 ? 10 : 500;
              double expected = std::pow(1.001, 10) + std::pow(1.001, 500);
              EXPECT_NEAR(slope(Tensor(2.0), Tensor(turns)).item<double>(), expected, 1e-9);
            },
            {.timeout = 20});
}

TEST(DistErrors, What_ranks_cannot_do_is_said_before_they_meet) {
  auto said = [](const std::function<void()> &f) { return failureOf(2, f); };
  EXPECT_NE(said([] { dist::all_reduce(Tensor(true)); }).find("bool"), std::string::npos);
  EXPECT_NE(said([] { dist::all_reduce(Tensor(int64_t(1)), dist::Reduction::mean); }).find("cast it to a float"),
            std::string::npos);
  EXPECT_NE(said([] { dist::broadcast(zeros({2}), 2); }).find("there is no rank 2"), std::string::npos);
  EXPECT_NE(said([] { dist::reduce_scatter(zeros({3})); }).find("3 elements, and there are 2 ranks"),
            std::string::npos);
  EXPECT_NE(messageOf([] { dist::run(0, [] {}); }).find("0 ranks"), std::string::npos);
}

} // namespace
