// What the benchmarks count with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace bench {

/// Seconds of one call, over about `budget` seconds.
template <class F> double secondsOf(F &&f, double budget) {
  using Clock = std::chrono::steady_clock;
  int64_t calls = 0;
  double seconds = 0;
  for (auto begin = Clock::now(); seconds < budget; ++calls) {
    f();
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return seconds / static_cast<double>(calls);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace bench
