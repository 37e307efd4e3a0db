// What a convolution costs: layers of common networks, forward and both gradients, compiled and op by op. Times are the
// least of alternating rounds; one thread. `convolution` for all rows, `convolution TEXT` for those whose name has
// TEXT.
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace wg;

namespace {

struct Layer {
  const char *name;
  Shape x, w;
  Conv2dOptions options;
  bool channelsFirst = false; ///< x and y are [N, C, H, W] in memory, w is [O, C, R, S]
};

Tensor numbers(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return reshape(sin(arange(0, count, 1, f32) * 1.7f), shape);
}

/// Multiplications and additions, those at padding not counted.
double operationsOf(const Layer &layer, const Shape &y) {
  double pairs = 1;
  for (int axis : {0, 1}) {
    int64_t stride = layer.options.strides[static_cast<size_t>(axis)], window = layer.w[static_cast<size_t>(axis)],
            size = layer.x[static_cast<size_t>(axis) + 1], results = y[static_cast<size_t>(axis) + 1], both = 0,
            inside = 0;
    if (layer.options.padding.kind == Padding::same)
      both = std::max<int64_t>(0, (results - 1) * stride + window - size);
    for (int64_t p = 0; p < results; ++p)
      for (int64_t r = 0; r < window; ++r) {
        int64_t h = p * stride + r - both / 2;
        inside += h >= 0 && h < size;
      }
    pairs *= static_cast<double>(inside);
  }
  return 2 * pairs * static_cast<double>(y[0] * y[3] * layer.w[2]);
}

void report(const Layer &layer, const char *what, const std::function<Tensor()> &compiled,
            const std::function<Tensor()> &eager, double operations) {
  Tensor expected = eager(), actual = compiled();
  double scale = reduce_max(abs(expected)).item<float>(), off = reduce_max(abs(expected - actual)).item<float>();
  if (!(off <= 1e-3 * std::max(1.0, scale))) {
    fmt::print("{} {}: compiled and eager differ by {} of {}\n", layer.name, what, off, scale);
    std::exit(1);
  }
  double times[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (int round = 0; round < 5; ++round)
    for (int i : {0, 1})
      times[i] = std::min(times[i], bench::secondsOf(i == 0 ? compiled : eager, 0.01));
  fmt::print("{:<28} {:<8} {:>11.1f} {:>11.1f} {:>8.2f} {:>9.1f} {:>9.1f}\n", layer.name, what, times[0] * 1e6,
             times[1] * 1e6, times[0] / times[1], operations / times[0] / 1e9, operations / times[1] / 1e9);
  std::fflush(stdout);
}

void report(const Layer &layer) {
  Tensor x = numbers(layer.x), w = numbers(layer.w);
  auto convolve = [options = layer.options, first = layer.channelsFirst](const Tensor &x, const Tensor &w) {
    if (!first)
      return conv2d(x, w, options);
    return transpose(conv2d(transpose(x, {0, 2, 3, 1}), transpose(w, {2, 3, 1, 0}), options), {0, 3, 1, 2});
  };
  Shape shape = conv2d(x, w, layer.options).shape();
  double operations = operationsOf(layer, shape);
  Tensor ct = numbers(shape);
  if (layer.channelsFirst)
    x = transpose(x, {0, 3, 1, 2}), w = transpose(w, {3, 2, 0, 1}), ct = transpose(ct, {0, 3, 1, 2});
  auto forward = [=](const Tensor &x, const Tensor &w, const Tensor &) { return convolve(x, w); };
  auto ofInput = [=](const Tensor &x, const Tensor &w, const Tensor &ct) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(convolve(x, w), x, {.output_gradients = ct}).value();
  };
  auto ofWeights = [=](const Tensor &x, const Tensor &w, const Tensor &ct) {
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(convolve(x, w), w, {.output_gradients = ct}).value();
  };
  auto both = [&](const char *what, auto f) {
    auto compiled = wg::function(what, f), eager = wg::function(what, f, {.interpret = true});
    report(layer, what, [&] { return compiled(x, w, ct); }, [&] { return eager(x, w, ct); }, operations);
  };
  both("forward", forward);
  both("d input", ofInput);
  both("d window", ofWeights);
}

} // namespace

int main(int argc, char **argv) {
  set_num_threads(1);
  Padding same = Padding::same;
  const Layer layers[] = {
      {"first 7x7/2, 3 -> 64", {1, 224, 224, 3}, {7, 7, 3, 64}, {.strides = {2, 2}, .padding = same}},
      {"3x3, 64 -> 64, 56", {1, 56, 56, 64}, {3, 3, 64, 64}, {.padding = same}},
      {"the same, channels first", {1, 56, 56, 64}, {3, 3, 64, 64}, {.padding = same}, true},
      {"3x3/2, 64 -> 128, 56", {1, 56, 56, 64}, {3, 3, 64, 128}, {.strides = {2, 2}, .padding = same}},
      {"3x3, 128 -> 128, 28, 4", {4, 28, 28, 128}, {3, 3, 128, 128}, {.padding = same}},
      {"3x3, 256 -> 256, 14", {1, 14, 14, 256}, {3, 3, 256, 256}, {.padding = same}},
      {"3x3, 512 -> 512, 7, 8", {8, 7, 7, 512}, {3, 3, 512, 512}, {.padding = same}},
      {"1x1, 256 -> 64, 56", {1, 56, 56, 256}, {1, 1, 256, 64}, {}},
      {"1x1/2, 256 -> 512, 56", {1, 56, 56, 256}, {1, 1, 256, 512}, {.strides = {2, 2}}},
      {"3x3, 32 -> 32, by 4", {8, 28, 28, 32}, {3, 3, 8, 32}, {.groups = 4, .padding = same}},
      {"depthwise 3x3, 128, 56", {1, 56, 56, 128}, {3, 3, 1, 128}, {.groups = 128, .padding = same}},
      {"depthwise 5x5/2, 96, 28, 8",
       {8, 28, 28, 96},
       {5, 5, 1, 96},
       {.strides = {2, 2}, .groups = 96, .padding = same}},
      {"dilated 3x3, 64 -> 64, 28", {2, 28, 28, 64}, {3, 3, 64, 64}, {.dilations = {2, 2}, .padding = same}},
      {"digits 5x5, 1 -> 32, 28, 32", {32, 28, 28, 1}, {5, 5, 1, 32}, {.padding = same}},
      {"digits 5x5, 32 -> 64, 14, 32", {32, 14, 14, 32}, {5, 5, 32, 64}, {.padding = same}}};
  fmt::print("{:<28} {:<8} {:>11} {:>11} {:>8} {:>9} {:>9}\n", "layer, f32", "", "compiled us", "eager us", "ratio",
             "GFLOP/s", "eager");
  for (const Layer &layer : layers)
    if (argc < 2 || std::string(layer.name).find(argv[1]) != std::string::npos)
      report(layer);
}
