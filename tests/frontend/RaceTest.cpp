// Many threads at once: what they share is locked, what they do in between is theirs, and threads that wait for one
// another end. Written for ThreadSanitizer, which sees a race wherever two accesses could meet; few iterations suffice.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include "runtime/ThreadPool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

using namespace wg;
using wg::tests::messageOf;

/// Runs `body(i)` on `count` threads that begin together. What one throws ends the test.
static void together(int count, const std::function<void(int)> &body) {
  std::barrier begin(count);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      try {
        body(i);
      } catch (const std::exception &error) {
        ++failures;
        fprintf(stderr, "thread %d: %s\n", i, error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(Race, FirstCallsTraceOnceForEachSignature) {
  std::atomic<int> bodies = 0;
  auto f = wg::function("f", [&](const Tensor &x, int n) {
    ++bodies;
    return reduce_sum(x * static_cast<double>(n));
  });
  together(8, [&](int i) {
    for (int k = 0; k < 8; ++k) {
      int n = (i + k) % 4;
      EXPECT_EQ(f(ones({n + 1}, f64), n).item<double>(), n * (n + 1));
    }
  });
  EXPECT_EQ(bodies, 4);
  EXPECT_EQ(f.trace_count(), 4);
}

TEST(Race, CallsThatShareVariables) {
  Variable a(0.0), b(100.0);
  auto move = wg::function("move", [&](const Tensor &by) {
    a.assign_add(by);
    b.assign_sub(by);
    return a + b;
  });
  auto sum = wg::function("sum", [&] { return a + b; });
  auto pass = wg::function("pass", [](const Variable &x, const Variable &y) { return x + y; });
  together(6, [&](int i) {
    for (int k = 0; k < 20; ++k)
      if (i < 3) {
        EXPECT_EQ(move(Tensor(1.0)).item<double>(), 100.0);
      } else {
        EXPECT_EQ((i % 2 ? pass(b, a) : sum()).item<double>(), 100.0);
        a.item<double>();
        a.name();
      }
  });
  EXPECT_EQ(a.item<double>(), 60.0);
}

TEST(Race, AVariableIsOneOfTheValuesThatItHad) {
  Variable v(zeros({1000}), "v");
  together(4, [&](int i) {
    for (int k = 0; k < 50; ++k)
      if (i < 2) {
        v.assign(full({1000}, static_cast<float>(i + 1)));
      } else {
        Tensor seen = v;
        EXPECT_EQ(reduce_min(seen).item<float>(), reduce_max(seen).item<float>());
      }
  });
}

TEST(Race, AModelCalledByManyThreads) {
  nn::Sequential model(nn::Dense(4, 8, relu), nn::Dense(8, 2));
  Tensor x = ones({3, 4});
  std::vector<float> expected = model(x).to_vector<float>();
  auto traced = wg::function("traced", [&](const Tensor &x) { return model(x); });
  together(4, [&](int i) {
    for (int k = 0; k < 10; ++k) {
      EXPECT_EQ(model(x).to_vector<float>(), expected);
      GradientTape tape;
      Tensor y = reduce_sum(i % 2 ? traced(x) : model(x));
      EXPECT_EQ(tape.gradient(y, model).size(), 4u);
      EXPECT_EQ(model.named_variables().size(), 4u);
    }
  });
}

// A call reads its variables once, under their locks: its tape knows the value that it computed with.
TEST(Race, TapesOverVariablesThatOthersAssign) {
  Variable w(1.0);
  auto square = wg::function("square", [&](const Tensor &x) { return w * w * x; });
  together(4, [&](int i) {
    for (int k = 0; k < 20; ++k)
      if (i == 0) {
        w.assign(static_cast<double>(k + 1));
      } else {
        GradientTape tape;
        Tensor y = square(Tensor(3.0));
        Grad dw = tape.gradient(y, w);
        ASSERT_TRUE(dw.has_value()) << dw.reason();
        EXPECT_NEAR(dw.item<double>() * dw.item<double>(), 12 * y.item<double>(), 1e-9); // (6 w)^2 = 12 (3 w w)
      }
  });
}

TEST(Race, TapesInManyThreads) {
  Variable w(2.0);
  Tensor shared(3.0);
  auto cube = wg::function("cube", [](const Tensor &x) { return x * x * x; });
  together(6, [&](int i) {
    for (int k = 0; k < 5; ++k) {
      GradientTape outer({.persistent = true});
      outer.watch(shared);
      Tensor first;
      {
        GradientTape inner;
        inner.watch(shared);
        first = inner.gradient(cube(shared) * w, shared);
      }
      EXPECT_EQ(first.item<double>(), 54.0);
      EXPECT_EQ(outer.gradient(first, shared).item<double>(), 36.0);
      EXPECT_EQ(outer.gradient(first, w).item<double>(), 27.0);
      EXPECT_EQ(value_and_grad([i](const Variable &a, const Variable &b) { return a * b * static_cast<double>(i); },
                               {0, 1})(w, w)
                    .second[1]
                    .item<double>(),
                2.0 * i);
    }
  });
}

// A handle to a tape may die on another thread than its own, which goes on meanwhile.
TEST(Race, TapesThatDieElsewhere) {
  std::vector<std::optional<GradientTape>> handed(40);
  std::atomic<size_t> made = 0;
  together(2, [&](int i) {
    Tensor x(2.0);
    for (size_t k = 0; k < handed.size(); ++k)
      if (i == 0) {
        handed[k].emplace();
        handed[k]->watch(x);
        made = k + 1;
        for (int n = 0; n < 50; ++n)
          x *x;
        GradientTape own;
        own.watch(x);
        EXPECT_EQ(own.gradient(x * x, x).item<double>(), 4.0);
      } else {
        while (made <= k)
          std::this_thread::yield();
        std::string message = messageOf([&] { handed[k]->gradient(x, x); });
        EXPECT_TRUE(message.find("belongs to another thread") != std::string::npos ||
                    message.find("out of scope") != std::string::npos)
            << message;
        handed[k].reset();
      }
  });
  // Its thread has ended before it, or it outlives the trace that made it.
  std::optional<GradientTape> late;
  std::thread([&] { late.emplace(); }).join();
  EXPECT_NE(messageOf([&] { late->gradient(Tensor(1.0), Tensor(1.0)); }).find("out of scope"), std::string::npos);
  late.reset();
  wg::function("f", [&](const Tensor &x) {
    late.emplace();
    return x;
  })(Tensor(1.0));
  std::thread([&] { late.reset(); }).join();
}

// Reports, while others call, trace, compile and forget.
TEST(Race, ReportsOfAFunctionThatIsCalled) {
  auto f = wg::function("f", [](const Tensor &x, int n) { return exp(x) * static_cast<float>(n); }, {.capacity = 3});
  f.trace(TensorSpec{f32, {dynamic}}, 9);
  ConcreteFunction cf = f.trace(ones({4}), 1);
  together(6, [&](int i) {
    for (int k = 0; k < 6; ++k) {
      f(ones({1 + (i + k) % 3}), k % 2 ? 9 : i % 3);
      if (i == 0)
        f.clear_cache();
      EXPECT_FALSE(f.report().empty());
      EXPECT_FALSE(f.explain_last_trace().empty());
      EXPECT_GE(f.num_concrete(), 0);
      f.trace_count();
      cf(ones({4}));
      cf.text(Stage::traced);
      EXPECT_FALSE(cf.signature().empty());
      cf.kernels(), cf.timings(), cf.certificate(), cf.variables();
      if (k == 0)
        cf.text(Stage::assembly);
      GradientTape tape;
      Tensor x = ones({4});
      tape.watch(x);
      tape.gradient(cf(x)[0], x);
    }
  });
}

TEST(Race, EvictedCodeOfOpenSizesRunsOn) {
  auto f = wg::function("f", [](const Tensor &x) { return reduce_sum(x * 2.0f); }, {.capacity = 2});
  ConcreteFunction cf = f.trace(TensorSpec{f32, {dynamic}});
  together(4, [&](int i) {
    for (int k = 0; k < 6; ++k) {
      int64_t n = 1 + (i + k) % 5;
      EXPECT_EQ(cf(ones({n}))[0].item<float>(), 2.0f * static_cast<float>(n));
    }
  });
}

TEST(Race, LoopsWhileTheNumberOfThreadsChanges) {
  int before = runtime::numThreads();
  Tensor a = ones({128, 128});
  together(5, [&](int i) {
    for (int k = 0; k < 10; ++k) {
      if (i == 0)
        set_num_threads(1 + k % 4);
      std::vector<int64_t> squares(64);
      runtime::parallelFor(64, [&](int64_t j) { squares[static_cast<size_t>(j)] = j * j; });
      EXPECT_EQ(squares[63], 63 * 63);
      EXPECT_GE(runtime::numThreads(), 1);
      if (k == 0)
        EXPECT_EQ(reduce_max(matmul(a, a)).item<float>(), 128.0f);
    }
  });
  set_num_threads(before);
}

TEST(Race, CompiledLoopsOfManyThreads) {
  set_num_threads(3);
  Tensor a = ones({256, 256});
  auto f = wg::function("f", [](const Tensor &x) { return exp(matmul(x, x) * 0.0f); });
  together(4, [&](int) {
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(reduce_min(f(a)).item<float>(), 1.0f);
  });
}

// A count of steps is read and assigned as one, eagerly too.
TEST(Race, EagerAndCompiledStepsCountTogether) {
  optim::SGD sgd(0.1);
  optim::Adam scheduled(optim::cosine_decay(0.1, 1000));
  Variable w(1.0);
  auto step = wg::function("step", [&](const Tensor &g) {
    sgd.apply({Grad(g)}, {w});
    scheduled.apply({Grad(g)}, {w});
  });
  step(Tensor(0.0));
  together(4, [&](int i) {
    for (int k = 0; k < 100; ++k)
      if (i % 2) {
        step(Tensor(0.0));
      } else {
        sgd.apply({Grad(Tensor(0.0))}, {w});
        scheduled.apply({Grad(Tensor(0.0))}, {w});
      }
  });
  EXPECT_EQ(sgd.named_slots()[0].second.item<int64_t>(), 401);
  EXPECT_EQ(scheduled.named_slots()[0].second.item<int64_t>(), 401);
}

TEST(Race, OptimizersGeneratorsAndDataSets) {
  optim::Adam adam(0.1);
  std::vector<Variable> parameters{Variable(Tensor(1.0)), Variable(Tensor(2.0))};
  auto step = wg::function("step", [&](const Tensor &x) {
    GradientTape tape;
    Tensor loss = x * parameters[0] * parameters[1];
    adam.apply(tape.gradient(loss, parameters), parameters);
    return loss;
  });
  Generator generator(3);
  data::Dataset set = data::Dataset(ones({10, 2}), arange(10)).shuffle(1).batch(4);
  nn::Dropout dropout(0.5, 1);
  together(6, [&](int i) {
    for (int k = 0; k < 4; ++k) {
      if (i % 2)
        step(Tensor(1.0));
      else
        adam.apply(std::vector{Grad(Tensor(0.5)), Grad(Tensor(0.25))}, parameters);
      adam.named_slots();
      adam.set_learning_rate(0.01 * (k + 1));
      adam.learning_rate();
      generator.uniform({2});
      dropout(ones({3}), true);
      nn::Dense layer(2, 3);
      int64_t seen = 0;
      for (auto [x, y] : set)
        seen += x.shape()[0];
      EXPECT_EQ(seen, 10);
    }
  });
  EXPECT_EQ(adam.named_slots()[0].second.item<int64_t>(), 24);
}

TEST(Race, ErrorsOfManyThreadsDoNotMix) {
  together(6, [&](int i) {
    for (int k = 0; k < 5; ++k) {
      std::string name = "thread" + std::to_string(i);
      Tensor x = ones({i + 2, 3}), index = Tensor{int64_t(100 + i)};
      auto f = wg::function(name, [&](const Tensor &y) { return gather(y, index); });
      EXPECT_NE(messageOf([&] { f(x); }).find(std::to_string(100 + i)), std::string::npos);
      std::string shapes = "f32[" + std::to_string(i + 2) + ",3]";
      EXPECT_NE(messageOf([&] {
                  wg::function(name, [&](const Tensor &y) { return matmul(y, ones({7, 7})); })(x);
                }).find(shapes),
                std::string::npos);
    }
  });
}

//===- Threads whose traces need one another ----------------------------------------------------------------------===//

/// Functions in a ring: each calls the next while it is traced, once all of them are being traced.
static void ringOf(int count) {
  std::vector<std::atomic<bool>> entered(static_cast<size_t>(count));
  std::vector<Function<Tensor(const Tensor &)>> ring;
  for (int i = 0; i < count; ++i)
    ring.emplace_back("ring" + std::to_string(i), [&, i](const Tensor &x) {
      entered[static_cast<size_t>(i)] = true;
      for (auto &each : entered)
        while (!each)
          std::this_thread::yield();
      return ring[static_cast<size_t>((i + 1) % count)](x) + 1.0f;
    });
  std::atomic<int> errors = 0;
  together(count, [&](int i) {
    std::string message = messageOf([&] { ring[static_cast<size_t>(i)](Tensor(1.0f)); });
    EXPECT_NE(message.find("has no end"), std::string::npos) << message;
    ++errors;
  });
  EXPECT_EQ(errors, count);
  for (const auto &f : ring)
    EXPECT_EQ(f.num_concrete(), 0);
}

TEST(Race, FunctionsThatCallEachOtherFromSeveralThreadsEnd) {
  for (int i = 0; i < 40; ++i) {
    ringOf(2);
    ringOf(3);
    ringOf(5);
  }
}

// The same without a ring: each thread waits, and goes on.
TEST(Race, AThreadThatWaitsForATraceGoesOn) {
  for (int round = 0; round < 40; ++round) {
    std::atomic<int> entered = 0;
    std::vector<Function<Tensor(const Tensor &)>> chain;
    for (int i = 0; i < 3; ++i)
      chain.emplace_back("chain" + std::to_string(i), [&, i](const Tensor &x) {
        ++entered;
        while (entered < 3)
          std::this_thread::yield();
        return i < 2 ? chain[static_cast<size_t>(i + 1)](x) + 1.0f : x;
      });
    together(3, [&](int i) {
      EXPECT_EQ(chain[static_cast<size_t>(i)](Tensor(1.0f)).item<float>(), 3.0f - static_cast<float>(i));
    });
    for (const auto &f : chain)
      EXPECT_EQ(f.trace_count(), 1);
  }
}

// Recursion that ends, begun by several threads at several depths.
TEST(Race, RecursionThatEndsIsNoRing) {
  for (int round = 0; round < 5; ++round) {
    std::vector<Function<Tensor(const Tensor &, int)>> pair;
    for (int i = 0; i < 2; ++i)
      pair.emplace_back("pair" + std::to_string(i), [&, i](const Tensor &x, int depth) {
        return depth == 0 ? x : pair[static_cast<size_t>(1 - i)](x, depth - 1) + 1.0f;
      });
    together(4, [&](int i) {
      EXPECT_EQ(pair[static_cast<size_t>(i % 2)](Tensor(0.0f), 3 + i / 2).item<float>(), static_cast<float>(3 + i / 2));
    });
  }
}

TEST(Race, ATraceThatFailsIsTriedByWhoWaits) {
  for (int round = 0; round < 40; ++round) {
    std::atomic<int> bodies = 0, callers = 0;
    auto f = wg::function("f", [&](const Tensor &x) {
      if (bodies++ == 0) {
        while (callers < 4)
          std::this_thread::yield();
        throw std::runtime_error("not yet");
      }
      return x * 2.0f;
    });
    std::atomic<int> failed = 0;
    together(4, [&](int) {
      ++callers;
      try {
        EXPECT_EQ(f(Tensor(2.0f)).item<float>(), 4.0f);
      } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "not yet");
        ++failed;
      }
    });
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(bodies, 2);
  }
}
