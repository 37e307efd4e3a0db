// When there is no memory: each of the first allocations of a step, a gradient, a call, a save and a load fails in
// turn, once alone and once with all that follow. What comes out is std::bad_alloc or wg::Error, nothing has changed,
// nothing is lost, and the next call is right. What goes through MLIR
// (docs/memory.md) runs in a child process.
#include "tests/frontend/Allocator.h"

#include "ir/Bridge.h"
#include "runtime/io/Npy.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <execinfo.h>
#include <filesystem>
#include <functional>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace wg {
namespace {

using tests::allocator::Refuse;
constexpr int kAllocations = 200;

#ifdef WENGERT_SANITIZED
#define SKIP_WHERE_SANITIZED GTEST_SKIP() << "skipped: the sanitizer owns the allocator"
#else
#define SKIP_WHERE_SANITIZED static_cast<void>(0)
#endif

/// Runs `step` with each of its first allocations refused; `after` is told whether it went through, and checks what
/// is left. Returns how many were.
int refuseEach(const std::function<void()> &step, const std::function<void(bool)> &after) {
  int refused = 0;
  for (bool lasting : {false, true})
    for (int number = 1; number <= kAllocations; ++number) {
      bool done = false, happened = false;
      const char *stranger = nullptr;
      {
        Refuse refuse(number, lasting);
        try {
          step();
          done = true;
          happened = refuse.end();
        } catch (const std::bad_alloc &) {
          happened = refuse.end();
        } catch (const Error &) {
          happened = refuse.end();
        } catch (const std::exception &) {
          happened = refuse.end();
          stranger = "another exception";
        }
      }
      EXPECT_EQ(stranger, nullptr) << "allocation " << number;
      EXPECT_TRUE(done || happened) << "it failed, and no allocation had been refused";
      after(done);
      if (!happened)
        break;
      ++refused;
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << "at allocation " << number << (lasting ? " and all later ones" : "");
        return refused;
      }
    }
  return refused;
}

/// The same twice: the second time no block may be left over.
int refuseEachAndKeepNothing(const std::function<void()> &step, const std::function<void(bool)> &after) {
  int refused = refuseEach(step, after);
  long before = tests::allocator::live;
  if (!::testing::Test::HasFailure())
    refuseEach(step, after);
  EXPECT_EQ(tests::allocator::live, before) << "blocks are left over";
  return refused;
}

using Floats = std::vector<float>;
std::vector<Floats> valuesOf(const std::vector<Variable> &variables) {
  std::vector<Floats> values;
  for (const Variable &variable : variables)
    values.push_back(variable.value().to_vector<float>());
  return values;
}

/// A small classifier with its optimiser. Two of one seed are twins.
struct Learner {
  nn::Sequential model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<Variable> variables;
  Tensor x = random_uniform(random::key(3), Shape{6, 4}), y = cast(arange(6), i32) % 3;

  explicit Learner(std::unique_ptr<optim::Optimizer> with = std::make_unique<optim::Adam>(0.01))
      : model(nn::Dense(4, 8, tanh, {.weight = nn::glorot_uniform(1)}),
              nn::Dense(8, 3, {}, {.weight = nn::glorot_uniform(2)})),
        optimizer(std::move(with)), variables(model.trainable_variables()) {}

  Tensor step() {
    GradientTape tape;
    Tensor loss = nn::cross_entropy(model(x), y);
    optimizer->apply(tape.gradient(loss, variables), variables);
    return loss;
  }
  /// Parameters, then slots.
  std::vector<Variable> state() const {
    std::vector<Variable> all = variables;
    all.insert(all.end(), optimizer->slots().begin(), optimizer->slots().end());
    return all;
  }
};

TEST(OutOfMemory, AnEagerStepIsDoneOrNot) {
  SKIP_WHERE_SANITIZED;
  Learner learner, twin;
  learner.step();
  twin.step();
  int refused = refuseEachAndKeepNothing([&] { learner.step(); },
                                         [&](bool done) {
                                           if (done)
                                             twin.step();
                                           ASSERT_EQ(valuesOf(learner.state()), valuesOf(twin.state()));
                                           learner.step();
                                           twin.step();
                                           ASSERT_EQ(valuesOf(learner.state()), valuesOf(twin.state()));
                                         });
  EXPECT_GT(refused, 200);
}

TEST(OutOfMemory, TheFirstStepOfAnOptimizerMakesItsSlotsOrNone) {
  SKIP_WHERE_SANITIZED;
  Learner().step();
  for (auto make : std::vector<std::function<std::unique_ptr<optim::Optimizer>()>>{
           [] { return std::make_unique<optim::Adam>(0.01); },
           [] { return std::make_unique<optim::Momentum>(0.01, 0.9); },
           [] { return std::make_unique<optim::SGD>(0.01); }}) {
    Learner twin(make());
    std::unique_ptr<Learner> learner;
    twin.step();
    twin.step();
    auto fresh = [&] { learner = std::make_unique<Learner>(make()); };
    fresh();
    refuseEach([&] { learner->step(); },
               [&](bool done) {
                 if (!done)
                   ASSERT_TRUE(learner->optimizer->slots().empty());
                 if (!done)
                   learner->step();
                 learner->step();
                 ASSERT_EQ(valuesOf(learner->state()), valuesOf(twin.state()));
                 auto names = learner->optimizer->named_slots(), expected = twin.optimizer->named_slots();
                 for (size_t i = 0; i < names.size(); ++i)
                   ASSERT_EQ(names[i].first, expected[i].first);
                 fresh();
               });
  }
}

TEST(OutOfMemory, AGradientOfAKnownStructureCanBeAskedForAgain) {
  SKIP_WHERE_SANITIZED;
  // Products large enough for all threads, whose panels are allocated on them; an op of many
  // operands; two reads of a variable.
  Variable w(random_uniform(random::key(1), {300, 300}, -1, 1, f64));
  Tensor x = random_uniform(random::key(2), {300, 300}, -1, 1, f64);
  auto forward = [&] {
    std::vector<Tensor> parts(12, matmul(x, w));
    return mean(square(concat(parts))) + reduce_sum(w * w) + logsumexp(matmul(w, x));
  };
  auto gradient = [&](GradientTape &tape, const Tensor &y) { return tape.gradient(y, w).value(); };
  std::unique_ptr<GradientTape> tape;
  Tensor y, g;
  auto record = [&] {
    tape = std::make_unique<GradientTape>();
    y = forward();
    tape->stop();
  };
  record();
  std::vector<double> expected = gradient(*tape, y).to_vector<double>();
  record();
  int refused = refuseEachAndKeepNothing([&] { g = gradient(*tape, y); },
                                         [&](bool done) {
                                           if (!done)
                                             g = gradient(*tape, y);
                                           ASSERT_EQ(g.to_vector<double>(), expected);
                                           g = Tensor();
                                           record();
                                         });
  EXPECT_GT(refused, 20);
}

TEST(OutOfMemory, ARecordedGradientLeavesTheOuterTapeWhole) {
  SKIP_WHERE_SANITIZED;
  Tensor x{0.3, -1.2, 2.0};
  GradientTape outer({.persistent = true});
  outer.watch(x);
  auto slope = [&] {
    GradientTape inner;
    inner.watch(x);
    Tensor y = reduce_sum(tanh(x) * x * exp(-x));
    return inner.gradient(y, x).value();
  };
  Tensor g = slope();
  std::vector<double> first = g.to_vector<double>(), second = outer.gradient(g, x).value().to_vector<double>();
  refuseEach([&] { g = slope(); },
             [&](bool done) {
               if (!done)
                 g = slope();
               ASSERT_EQ(g.to_vector<double>(), first);
               GradientTape again;
               again.watch(x);
               Tensor h = slope();
               ASSERT_EQ(again.gradient(h, x).value().to_vector<double>(), second);
               if (outer.size() > 3000)
                 outer.reset(), outer.watch(x);
             });
}

/// A step of two Learners, traced: one call each.
TEST(OutOfMemory, ACompiledStepIsDoneOrNot) {
  SKIP_WHERE_SANITIZED;
  for (bool interpret : {false, true}) {
    Learner learner, twin;
    auto step = wg::function("step", [&learner](const Tensor &) { return learner.step(); }, {.interpret = interpret});
    auto twinStep = wg::function("twin", [&twin](const Tensor &) { return twin.step(); }, {.interpret = interpret});
    Tensor none(0.0f);
    step(none);
    twinStep(none);
    Floats loss, twinLoss;
    refuseEachAndKeepNothing([&] { step(none); },
                             [&](bool done) {
                               if (done)
                                 twinStep(none);
                               ASSERT_EQ(valuesOf(learner.state()), valuesOf(twin.state()));
                               ASSERT_EQ(step(none).to_vector<float>(), twinStep(none).to_vector<float>());
                               ASSERT_EQ(valuesOf(learner.state()), valuesOf(twin.state()));
                             });
    EXPECT_EQ(step.trace_count(), 1);
  }
}

/// More variables and results than any list on the stack holds, read under a tape and assigned.
TEST(OutOfMemory, ACallWithManyVariablesUnderATapeIsDoneOrNot) {
  SKIP_WHERE_SANITIZED;
  std::vector<Variable> weights, counts;
  for (int i = 0; i < 60; ++i) {
    weights.emplace_back(Tensor(0.1 * i));
    counts.emplace_back(Tensor(0.0), VariableOptions{.trainable = false});
  }
  auto f = wg::function("many", [&](const Tensor &x) {
    std::vector<Tensor> y;
    for (int i = 0; i < 60; ++i) {
      counts[i].assign_add(1.0);
      y.push_back(x * weights[i]);
    }
    return y;
  });
  auto run = [&] {
    GradientTape tape;
    std::vector<Tensor> y = f(Tensor(2.0));
    return tape.gradient(y, weights);
  };
  run();
  double calls = 1;
  int refused =
      refuseEachAndKeepNothing([&] { run(); },
                               [&](bool) {
                                 double now = counts[0].value().item<double>();
                                 ASSERT_TRUE(now == calls || now == calls + 1); // the call, and then the gradient
                                 std::vector<Grad> grads = run();
                                 calls = now + 1;
                                 for (const Variable &count : counts)
                                   ASSERT_EQ(count.value().item<double>(), calls);
                                 for (const Grad &grad : grads)
                                   ASSERT_EQ(grad.item<double>(), 2.0);
                               });
  EXPECT_GT(refused, 40);
}

/// A directory of its own, with nothing but what the test put there at its end.
struct Folder {
  std::string path = ::testing::TempDir() + "out-of-memory-" + std::to_string(getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {})); }
};

TEST(OutOfMemory, WeightsAreSavedAndLoadedWholeOrNot) {
  SKIP_WHERE_SANITIZED;
  Folder folder;
  std::string path = folder.path + "/weights.safetensors";
  Learner learner, copy, reader;
  save_weights(path, learner.model);
  float number = 0;
  std::vector<Floats> saved = valuesOf(learner.variables);
  int refused = refuseEachAndKeepNothing(
      [&] { save_weights(path, learner.model); },
      [&](bool done) {
        load_weights(path, reader.model);
        ASSERT_EQ(valuesOf(reader.variables), done ? valuesOf(learner.variables) : saved);
        ASSERT_EQ(folder.files(), 1u) << "a temporary file is left over";
        save_weights(path, learner.model);
        saved = valuesOf(learner.variables);
        for (const Variable &variable : learner.variables) // the next try has something else to write
          variable.assign(full(variable.shape(), ++number));
      });
  EXPECT_GT(refused, 40);
  load_weights(path, reader.model);
  auto clear = [&] {
    for (const Variable &variable : copy.variables)
      variable.assign(full(variable.shape(), -1.0f));
  };
  clear();
  refused = refuseEachAndKeepNothing([&] { load_weights(path, copy.model); },
                                     [&](bool done) {
                                       for (const Variable &variable : copy.variables)
                                         ASSERT_EQ(reduce_all(variable == -1.0f).item<bool>(), !done);
                                       load_weights(path, copy.model);
                                       ASSERT_EQ(valuesOf(copy.variables), valuesOf(reader.variables));
                                       clear();
                                     });
  EXPECT_GT(refused, 40);
}

TEST(OutOfMemory, AnArrayIsWrittenAndReadWholeOrNot) {
  SKIP_WHERE_SANITIZED;
  Folder folder;
  std::string path = folder.path + "/x.npy";
  runtime::Array x = runtime::Array::copyOf(std::span<const double>(std::vector<double>{1, 2, 3, 4, 5, 6}), {2, 3}), y;
  auto write = [&] {
    if (runtime::Status status = runtime::writeNpy(path, x); !status.ok())
      throw Error(status.take());
  };
  auto read = [&] {
    runtime::Result<runtime::Array> read = runtime::readNpy(path);
    if (!read.ok())
      throw Error(read.take());
    y = *read;
  };
  write();
  auto check = [&](bool) {
    read();
    ASSERT_EQ(runtime::toString(y), runtime::toString(x));
    ASSERT_EQ(folder.files(), 1u);
    y = {};
  };
  refuseEachAndKeepNothing(write, check);
  refuseEachAndKeepNothing(read, check);
}

TEST(OutOfMemory, APoolWithoutMemoryForThreadsHasFewer) {
  SKIP_WHERE_SANITIZED;
  Tensor x = random_uniform(random::key(2), {300, 300}, -1, 1, f64);
  std::vector<double> expected = matmul(x, x).to_vector<double>();
  for (int number = 1; number < 12; ++number) {
    {
      Refuse refuse(number, true);
      set_num_threads(1);
      set_num_threads(4);
    }
    EXPECT_EQ(matmul(x, x).to_vector<double>(), expected);
  }
  set_num_threads(2);
}

//===- Through MLIR: in children ----------------------------------------------------------------------------------===//

#ifndef WENGERT_SANITIZED
/// How a child ended whose allocation `number` failed: 'r' reported, 'd' done, 'u' by a signal inside
/// of LLVM or MLIR, '!' otherwise.
char outcomeOf(int number, const std::function<void()> &step, std::string &text) {
  int ends[2];
  if (pipe(ends))
    return '!';
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    alarm(60);
    // A trace of the stack at the end, which tells whose frames were left.
    static void *frames[64];
    backtrace(frames, 64); // loads what it needs
    auto atEnd = [](int) {
      tests::allocator::refusal.after = -1;
      backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
      _exit(3);
    };
    for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE})
      std::signal(signal, atEnd);
    Refuse refuse(number, false);
    try {
      step();
      _exit(refuse.end() ? 2 : 4);
    } catch (const std::bad_alloc &) {
      _exit(1);
    } catch (const Error &) {
      _exit(1);
    }
  }
  close(ends[1]);
  text.clear();
  char part[4096];
  for (ssize_t count; (count = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
    return 'r';
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
    return 'd';
  if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
    return 'e'; // fewer allocations than that
  // Behind the handler's own frames and the C library's, the first is of who was left without memory.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('/') && line.find("libc.so") == std::string::npos &&
        line.find("OutOfMemoryTest") == std::string::npos)
      return line.find("libMLIR.so") != std::string::npos || line.find("libLLVM.so") != std::string::npos ? 'u' : '!';
  return '!';
}

/// Each of the first allocations of `step`, each in a child: none ends the process but inside of
/// LLVM and MLIR, and not all do.
void expectReports(const std::function<void()> &step) {
  std::string text;
  int reported = 0, upstream = 0;
  for (int number = 1; number <= kAllocations; ++number) {
    char outcome = outcomeOf(number, step, text);
    if (outcome == 'e')
      break;
    EXPECT_NE(outcome, '!') << "allocation " << number << ":\n" << text;
    reported += outcome == 'r';
    upstream += outcome == 'u';
  }
  EXPECT_GT(reported, upstream) << "most of the allocations are where an exception passes";
}
#endif

TEST(OutOfMemory, ANewStructureAndATraceReport) {
  SKIP_WHERE_SANITIZED;
#ifndef WENGERT_SANITIZED
  ir::context()->disableMultithreading(); // a forked child has none of the pool's threads
  Tensor x{0.3, -1.2, 2.0};
  auto gradient = [&](auto f) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), x);
  };
  gradient([](const Tensor &x) { return reduce_sum(sin(x) * x); });
  wg::function("f", [](const Tensor &x) { return sin(x); })(x);
  expectReports([&] { gradient([](const Tensor &x) { return reduce_sum(tanh(x) * exp(x)); }); });
  auto f = wg::function("g", [](const Tensor &x) { return tanh(x) * exp(x); });
  expectReports([&] { f(x); });
#endif
}

} // namespace
} // namespace wg
