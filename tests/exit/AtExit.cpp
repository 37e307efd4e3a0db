// `AtExit MODE RUN`: uses the library while the process, or a thread of it, ends. The exit status
// is 0 if every number was right.
#include <wengert/wengert.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

using wg::Tensor;

static void expect(double value, double wanted, const char *what) {
  if (std::fabs(value - wanted) <= 1e-6 * (1 + std::fabs(wanted)))
    return;
  std::cerr << what << ": " << value << ", not " << wanted << std::endl;
  std::_Exit(1);
}

/// Eager code, a tape, traces, compiled code, derivatives of calls, errors: all that a person may do anywhere.
static void computeSomething(double at) {
  try {
    Tensor x(at);
    expect((x * x).item<double>(), at * at, "eager");
    {
      wg::GradientTape tape;
      tape.watch(x);
      expect(tape.gradient(wg::exp(x) * x, x).item<double>(), std::exp(at) * (at + 1), "tape");
    }
    auto f = wg::function("f", [](const Tensor &y) { return wg::sin(y) * y; });
    expect(f(x).item<double>(), std::sin(at) * at, "function");
    {
      wg::GradientTape tape;
      tape.watch(x);
      expect(tape.gradient(f(x) * 2.0, x).item<double>(), 2 * (std::cos(at) * at + std::sin(at)),
             "derivative of a call");
    }
    auto g = wg::function("g", [&](const Tensor &y) {
      wg::GradientTape tape;
      tape.watch(y);
      return tape.gradient(f(y) + wg::reduce_sum(wg::softmax(wg::stack({y, y * 2.0}, 0)) * Tensor{1.0, 1.0}), y)
          .value();
    });
    expect(g(x).item<double>(), std::cos(at) * at + std::sin(at), "traced gradient");
    f.report();
    f.trace(x).text(wg::Stage::traced);
  } catch (const wg::Error &error) {
    std::cerr << error.what() << std::endl;
    std::_Exit(2);
  }
  try {
    wg::matmul(Tensor(1.0), Tensor(2.0));
    std::_Exit(3);
  } catch (const wg::Error &) {
  }
}

/// Runs a piece of code in its destructor.
struct AtEnd {
  std::function<void()> run;
  ~AtEnd() {
    if (run)
      run();
  }
};
static AtEnd older; // than the library's first use
static thread_local AtEnd ofThread;

static void younger(std::function<void()> run) { static AtEnd local{std::move(run)}; }

static void detached(const std::function<void(int)> &each, int threads, std::atomic<int> &started) {
  for (int t = 0; t < threads; ++t)
    std::thread([&started, each, t] {
      ++started;
      for (int i = 0;; ++i)
        each(t * 1000 + i);
    }).detach();
}

int main(int argc, char **argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  int run = argc > 2 ? std::atoi(argv[2]) : 0;
  static std::atomic<int> &started = *new std::atomic<int>(0);
  auto wait = [&] {
    while (started < 2)
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(997 * run)); // another moment each time
  };
  auto traces = [](int i) { computeSomething(0.5 + i % 7); };
  auto finish = [] { computeSomething(1.5); };
  if (mode == "unused") { // the destructor is the first use
    older.run = finish;
  } else if (mode == "older") {
    older.run = finish;
    computeSomething(0.5);
  } else if (mode == "younger") {
    computeSomething(0.5);
    younger(finish);
    computeSomething(0.25);
  } else if (mode == "between") { // younger than eager code, older than the first trace; and one of each
    Tensor x = wg::ones({3}) + 1.0f;
    younger(finish);
    older.run = finish;
    std::atexit([] { computeSomething(2.5); });
    computeSomething(0.5);
  } else if (mode == "other-thread-first") { // the main thread traces in the destructor only
    older.run = finish;
    std::thread([] { computeSomething(0.5); }).join();
  } else if (mode == "thread-local") {
    ofThread.run = finish; // older than what the library keeps for this thread
    computeSomething(0.5);
    std::thread([&] {
      ofThread.run = finish;
      computeSomething(0.75);
    }).join();
    std::thread([&] {
      computeSomething(0.75);
      ofThread.run = finish;
    }).join();
    std::thread([&] { ofThread.run = finish; }).join();
  } else if (mode == "tape") { // a tape and a function that live as long as the process
    static Tensor x(2.0);
    static wg::Function<Tensor(const Tensor &)> f("f", [](const Tensor &y) { return y * y * y; });
    older.run = [] { computeSomething(1.5); };
    younger([] {
      wg::GradientTape tape;
      tape.watch(x);
      expect(tape.gradient(f(x), x).item<double>(), 12, "static function");
    });
    f(x);
  } else if (mode == "detached") { // threads go on while main returns
    detached(traces, 2, started);
    wait();
  } else if (mode == "detached-runs") { // compiled code, eager code and the pool
    auto step = std::make_shared<wg::Function<Tensor(const Tensor &)>>(
        "step", [](const Tensor &x) { return wg::matmul(x, x) + 1.0f; });
    detached([step](int) { (*step)(wg::matmul(wg::ones({96, 96}), wg::ones({96, 96})) * 0.5f); }, 2, started);
    wait();
  } else if (mode == "detached-and-static") {
    older.run = finish;
    detached(traces, 2, started);
    wait();
  } else if (mode == "joined-late") { // by the destructor of a static object
    static std::atomic<bool> stop = false;
    auto *worker = new std::thread([traces] {
      for (int i = 0; !stop; ++i)
        traces(i), ++started;
    });
    older.run = [worker] {
      stop = true;
      worker->join();
      delete worker;
      computeSomething(1.5);
    };
    wait();
  } else if (mode == "exit-elsewhere") { // another thread ends the process while this one traces
    older.run = finish;
    computeSomething(0.5);
    std::thread([run] {
      std::this_thread::sleep_for(std::chrono::microseconds(1997 * run));
      std::exit(0);
    }).detach();
    for (int i = 0;; ++i)
      traces(i);
  } else if (mode == "checkpoint-static") { // its destructor waits for what is being written
    older.run = finish;
    static wg::Variable w(wg::ones({1 << 16}), "w");
    static wg::CheckpointManager checkpoints("exit_" + mode, wg::SaveItems{{"w", w}}, {.keep = 2, .every_steps = 1});
    checkpoints.restore();
    for (int i = 0; i < 3; ++i) {
      w.assign_add(1.0f);
      checkpoints.step();
    }
  } else if (mode == "checkpoint-exit") { // another thread ends the process while checkpoints are written
    older.run = finish;
    wg::Variable w(wg::ones({1 << 16}), "w");
    wg::CheckpointManager checkpoints("exit_" + mode, wg::SaveItems{{"w", w}}, {.keep = 2, .every_steps = 1});
    checkpoints.restore();
    std::thread([run] {
      std::this_thread::sleep_for(std::chrono::microseconds(1997 * run));
      std::exit(0);
    }).detach();
    for (;;) {
      w.assign_add(1.0f);
      checkpoints.step();
    }
  } else {
    return 4;
  }
}
