// Points inside and outside a circle, told apart by a small network with one logit, traced and compiled.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::nn::set_seed(1);
  wg::Tensor x = wg::random_uniform(wg::random::key(3), {512, 2}, -1, 1);
  wg::Tensor inside = wg::cast(wg::reduce_sum(x * x, 1, true) < 0.5f, wg::f32);
  wg::nn::Sequential model(wg::nn::Dense(2, 16, wg::tanh), wg::nn::Dense(16, 1));
  wg::optim::Adam adam(0.02);
  auto step = wg::function("step", [&](const wg::Tensor &x, const wg::Tensor &y) {
    wg::GradientTape tape;
    wg::Tensor loss = wg::nn::sigmoid_cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return loss;
  });
  float first = step(x, inside).item<float>(), last = 0;
  for (int epoch = 0; epoch < 400; ++epoch)
    last = step(x, inside).item<float>();
  wg::Tensor right = (model(x) > 0.0f) == (inside > 0.5f);
  float share = wg::mean(wg::cast(right, wg::f32)).item<float>();
  std::cout << "traces: " << step.trace_count() << "\n";
  std::cout << "loss fell: " << (last < first / 3) << ", more than 95 % right: " << (share > 0.95f) << "\n";
}
