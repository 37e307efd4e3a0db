// A neural ordinary differential equation: 200 steps of Runge and Kutta's method as one scan. With a checkpoint around
// the step the reverse pass keeps the state before each step, and not what is computed inside of it.
#include <wengert/wengert.h>

#include <iostream>

using wg::Tensor;

int main() {
  constexpr int64_t kSteps = 200, kBatch = 16, kHidden = 32;
  wg::Generator generator(1);
  wg::Variable w1(generator.normal({2, kHidden}, 0, 0.5, wg::f64), "w1");
  wg::Variable w2(generator.normal({kHidden, 2}, 0, 0.5, wg::f64), "w2");
  Tensor start = generator.normal({kBatch, 2}, 0, 1, wg::f64);
  // Where a rotation by one radian takes the points.
  Tensor turned = wg::matmul(start, wg::reshape(Tensor({0.5403, 0.8415, -0.8415, 0.5403}), {2, 2}));

  auto field = [&](const Tensor &x) { return wg::matmul(wg::tanh(wg::matmul(x, w1)), w2); };
  auto step = [&](const Tensor &x) {
    constexpr double h = 1.0 / kSteps;
    Tensor k1 = field(x), k2 = field(x + h / 2 * k1), k3 = field(x + h / 2 * k2), k4 = field(x + h * k3);
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  };
  auto train = [&](auto step) {
    auto adam = std::make_shared<wg::optim::Adam>(0.02);
    return wg::function("train", [=, &w1, &w2](const Tensor &x) {
      wg::GradientTape tape;
      Tensor end = wg::for_range(0, kSteps, [&](const Tensor &, const Tensor &x) { return step(x); }, x);
      Tensor loss = wg::mean(wg::square(end - turned));
      std::vector<wg::Variable> variables{w1, w2};
      adam->apply(tape.gradient(loss, variables), variables);
      return loss;
    });
  };
  auto keeps = train(step), again = train(wg::checkpoint(step));
  std::vector<Tensor> before{w1, w2};
  auto run = [&](const char *how, auto &function) {
    w1.assign(before[0]), w2.assign(before[1]);
    std::cout << how << "\n";
    for (int i = 0; i <= 100; ++i)
      if (Tensor loss = function(start); i % 50 == 0)
        std::cout << "  step " << i << ": loss " << loss.item<double>() << "\n";
  };
  run("keeping what is inside of a step:", keeps);
  run("computing it again:", again);
  auto bytes = [&](auto &function) { return function.trace(start).workspace_bytes(); };
  std::cout << "workspace: " << (bytes(keeps) > 10 * bytes(again) ? "less than a tenth" : "not smaller") << "\n";
}
