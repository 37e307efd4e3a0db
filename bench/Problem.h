// Which numbers go into the steps of peers/STEPS.md? The same ones, bit for bit, as peers/steps.py
// makes; and how a step is timed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

/// Element i of the stream `seed`, in [0, 1), a multiple of 2^-24: splitmix64(seed 2^32 + i) without its low 40 bits.
inline double unit(uint64_t seed, uint64_t i) {
  uint64_t z = (seed << 32) + i + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  z = z ^ z >> 31;
  return static_cast<double>(z >> 40) / 16777216.0;
}

/// lo + (hi - lo) u, rounded to f32 after the product and after the sum, as NumPy does.
inline std::vector<float> uniform(uint64_t seed, size_t count, double lo = 0, double hi = 1) {
  std::vector<float> values(count);
  float offset = static_cast<float>(lo), scale = static_cast<float>(hi - lo);
  for (size_t i = 0; i < count; ++i) {
    volatile float product = scale * static_cast<float>(unit(seed, i)); // volatile: no contraction to an FMA
    values[i] = offset + product;
  }
  return values;
}

/// The same in f64.
inline std::vector<double> uniformDouble(uint64_t seed, size_t count, double lo = 0, double hi = 1) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    volatile double product = (hi - lo) * unit(seed, i);
    values[i] = lo + product;
  }
  return values;
}

inline std::vector<int32_t> labels(uint64_t seed, size_t count, int classes) {
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<int32_t>(unit(seed, i) * classes);
  return values;
}

/// The `count` numbers of a weight, uniform within +-sqrt(6 / (fanIn + fanOut)); those of a matrix if it is 0.
inline std::vector<float> weight(uint64_t seed, size_t fanIn, size_t fanOut, size_t count = 0) {
  double bound = std::sqrt(6.0 / static_cast<double>(fanIn + fanOut));
  return uniform(seed, count ? count : fanIn * fanOut, -bound, bound);
}

/// The line of step a: y = 3 x + 2 + noise.
inline std::vector<float> lineTargets(const std::vector<float> &x) {
  std::vector<float> y = uniform(2, x.size(), -0.5, 0.5);
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float product = 3.0f * x[i];
    volatile float line = product + 2.0f;
    y[i] = line + y[i];
  }
  return y;
}

inline constexpr double kTimingRate =
    1e-7; ///< so that a fixed batch does not converge into subnormals while it is timed

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds a call.
struct Time {
  double median = 0, best = 0, worst = 0;
};

/// Calls `f` in batches of at least 2 ms for `budget` seconds, after warming up for a fifth of it.
template <class F> Time measure(F &&f, double budget) {
  f();
  size_t batch = 1;
  for (double t = 0; t < 2e-3;) {
    double start = seconds();
    for (size_t i = 0; i < batch; ++i)
      f();
    t = seconds() - start;
    if (t < 2e-3)
      batch = std::max(batch + 1,
                       static_cast<size_t>(static_cast<double>(batch) * std::min(10.0, 3e-3 / std::max(t, 1e-9))));
  }
  for (double start = seconds(); seconds() - start < 0.2 * budget;)
    for (size_t i = 0; i < batch; ++i)
      f();
  std::vector<double> samples;
  for (double start = seconds(); samples.size() < 5 || seconds() - start < budget;) {
    double t = seconds();
    for (size_t i = 0; i < batch; ++i)
      f();
    samples.push_back((seconds() - t) / static_cast<double>(batch));
  }
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

/// `12.3 us`: three digits and the unit that fits.
inline std::string showTime(double s) {
  static constexpr struct {
    double scale;
    const char *unit;
  } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const auto &[scale, unit] : units)
    if (s >= scale || scale == 1e-9) {
      char text[32];
      std::snprintf(text, sizeof text, "%.3g %s", s / scale, unit);
      return text;
    }
  return "0";
}

} // namespace bench
