// Programs with bodies: what a turn costs, what the gradient of a loop costs beside it, and what checkpoint_every and
// checkpoints save and cost beside what is predicted. One thread; times are medians.
#include "Problem.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

using namespace wg;

namespace {

double microseconds(const std::function<void()> &call) { return 1e6 * bench::measure(call, 0.4).median; }

/// A loop that a condition ends after a thousand turns.
void whileLoop() {
  auto loop = [](const Tensor &x) {
    using State = std::pair<Tensor, Tensor>;
    return while_loop([](const State &s) { return s.second < 1000.0; },
                      [](const State &s) { return State(sin(s.first) + 0.1, s.second + 1.0); }, State(x, Tensor(0.0)),
                      {.max_steps = 1000})
        .first;
  };
  auto forward = wg::function("forward", loop);
  auto gradient = wg::function("gradient", [&](const Tensor &x) { return grad(loop)(x).value(); });
  Tensor x(0.5);
  fmt::print("while_loop, 1,000 turns of a scalar: {:.1f} us, its gradient {:.1f} us\n",
             microseconds([&] { forward(x); }), microseconds([&] { gradient(x); }));
}

/// A thousand turns of a cell of `width` numbers, computed again every k turns.
void checkpoints(int64_t width) {
  constexpr int64_t kTurns = 1000;
  Tensor x = arange(0, width, 1, f64) * (0.5 / static_cast<double>(width));
  Variable w(0.9, "w");
  auto loop = [&](const Tensor &x, const RangeOptions &options) {
    return reduce_sum(
        for_range(0, kTurns, [&](const Tensor &, const Tensor &s) { return sin(s * w) + tanh(s) * 0.1; }, x, options));
  };
  auto forward = wg::function("forward", [&](const Tensor &x) { return loop(x, {}); });
  double forwardTime = microseconds([&] { forward(x); });
  struct Row {
    int64_t bytes;
    double time;
  };
  auto measureWith = [&](const RangeOptions &options) {
    auto step = wg::function("step", [&](const Tensor &x) {
      GradientTape tape;
      return tape.gradient(loop(x, options), w).value();
    });
    double time = microseconds([&] { step(x); });
    return Row{step.trace(x).workspace_bytes(), time};
  };
  auto measure = [&](int64_t every) { return measureWith({.checkpoint_every = every}); };
  Row plain = measure(0);
  // A state is kept before each part; of the turns of one part what the plain loop keeps of each. The rest is what does
  // not grow: taken from one part of all turns.
  Row whole = measure(kTurns);
  double state = static_cast<double>(width * 8), turn = static_cast<double>(plain.bytes) / kTurns;
  double rest = static_cast<double>(whole.bytes) - state - turn * kTurns;
  fmt::print("\n1,000 turns of {} numbers: forward {:.0f} us, gradient {:.0f} us and {:.0f} KB\n", width, forwardTime,
             plain.time, static_cast<double>(plain.bytes) / 1e3);
  fmt::print("{:>6} {:>10} {:>10} {:>7} {:>10} {:>10} {:>7}\n", "every", "KB", "predicted", "ratio", "us", "predicted",
             "ratio");
  for (int64_t every : {1, 2, 5, 10, 20, 32, 50, 100, 200, 500, 1000}) {
    Row row = measure(every);
    double bytes = state * kTurns / static_cast<double>(every) + turn * static_cast<double>(every) + rest;
    double time = plain.time + forwardTime; // once more
    fmt::print("{:>6} {:>10.1f} {:>10.1f} {:>7.3f} {:>10.0f} {:>10.0f} {:>7.2f}\n", every,
               static_cast<double>(row.bytes) / 1e3, bytes / 1e3, static_cast<double>(row.bytes) / bytes, row.time,
               time, row.time / time);
  }
  // So many states, and what one turn needs; with all states, and turns that are computed again.
  Row one = measureWith({.checkpoints = 2}), all = measureWith({.checkpoints = kTurns});
  fmt::print("{:>6}\n", "checkpoints");
  for (int64_t checkpoints : {3, 5, 10, 20, 44, 100, 1000}) {
    Row row = measureWith({.checkpoints = checkpoints});
    double bytes = static_cast<double>(one.bytes) + state * static_cast<double>(checkpoints - 2);
    double repetitions = 0, reach = 1, below = 0; // (s + r)! / (s! r!), and (s + r)! / ((s + 1)! (r - 1)!)
    auto places = static_cast<double>(checkpoints);
    while (reach < kTurns) {
      repetitions += 1;
      below = reach * (places + repetitions) / (places + 1);
      reach *= (places + repetitions) / repetitions;
    }
    double again = repetitions - below / kTurns, time = all.time + forwardTime * (again - 0.999);
    fmt::print("{:>6} {:>10.1f} {:>10.1f} {:>7.3f} {:>10.0f} {:>10.0f} {:>7.2f}\n", checkpoints,
               static_cast<double>(row.bytes) / 1e3, bytes / 1e3, static_cast<double>(row.bytes) / bytes, row.time,
               time, row.time / time);
  }
}

} // namespace

int main() {
  set_num_threads(1);
  whileLoop();
  checkpoints(256);
  checkpoints(4096);
}
