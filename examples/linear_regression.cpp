// 1,000 points of y = 2x + 1 in batches of 32: the last batch holds 8, and costs one more trace.
#include <wengert/wengert.h>

#include <cmath>
#include <iostream>

int main() {
  wg::Tensor x = wg::random_uniform(wg::random::key(1), {1000}, -1, 1);
  wg::data::Dataset points = wg::data::Dataset(x, 2 * x + 1).shuffle(7).batch(32);
  wg::Variable w(0.0f, {.name = "w"}), b(0.0f, {.name = "b"});
  auto step = wg::function("step", [&](const wg::Tensor &x, const wg::Tensor &y) {
    wg::GradientTape tape;
    wg::Tensor loss = wg::mean(wg::square(w * x + b - y));
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(0.1f * dw);
    b.assign_sub(0.1f * db);
    return loss;
  });
  wg::Tensor loss;
  for (int epoch = 0; epoch < 20; ++epoch)
    for (const auto &[x, y] : points)
      loss = step(x, y);
  std::cout << "batches: " << points.batches() << ", traces: " << step.trace_count() << "\n";
  std::cout << "w near 2: " << (std::abs(w.item<float>() - 2) < 1e-3f)
            << ", b near 1: " << (std::abs(b.item<float>() - 1) < 1e-3f) << "\n";
  bool says = step.explain_last_trace().find("32") != std::string::npos &&
              step.explain_last_trace().find("8") != std::string::npos;
  std::cout << "the report names both sizes: " << says << "\n";
}
