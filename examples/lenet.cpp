// LeNet (LeCun et al. 1998) on Fashion-MNIST: `--data DIR`, with the four files in DIR/fashion-mnist. Without, on the
// small digits that the library carries, enlarged.
#include <wengert/wengert.h>

#include <chrono>
#include <iostream>

int main(int argc, char **argv) {
  const bool real = argc == 3 && std::string(argv[1]) == "--data";
  wg::nn::set_seed(1);
  auto [train, test] = real ? wg::data::load_mnist(std::string(argv[2]) + "/fashion-mnist") : wg::data::digits();
  const int64_t side = real ? 28 : 8;

  auto pool = [](const wg::Tensor &x) { return wg::max_pool2d(x); };
  wg::nn::Sequential model([side](const wg::Tensor &x) { return wg::reshape(x, {x.dim(0), side, side, 1}); },
                           [](const wg::Tensor &x) { return wg::resize(x, {28, 28}); }, // nothing to do for 28
                           wg::nn::Conv2d(1, 6, {5, 5}, wg::relu, {.padding = wg::Padding::same}), pool, // 14 x 14
                           wg::nn::Conv2d(6, 16, {5, 5}, wg::relu), pool,                                // 5 x 5
                           wg::nn::Flatten(), wg::nn::Dense(400, 120, wg::relu), wg::nn::Dense(120, 84, wg::relu),
                           wg::nn::Dense(84, 10));
  std::cout << "parameters: " << model.num_parameters() << "\n";

  wg::optim::Adam adam(real ? 0.001 : 0.003);
  auto step = wg::function("step", [&](const wg::Tensor &x, const wg::Tensor &y) {
    wg::GradientTape tape;
    wg::Tensor loss = wg::nn::cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, model), model);
    return loss;
  });
  wg::metrics::Accuracy accuracy;
  auto evaluate =
      wg::function("evaluate", [&](const wg::Tensor &x, const wg::Tensor &y) { accuracy.update(model(x), y); });

  auto batches = wg::data::Dataset(train).shuffle(1).batch(real ? 64 : 32, /*drop_last=*/true);
  for (int epoch = 0; epoch < (real ? 2 : 4); ++epoch) {
    auto start = std::chrono::steady_clock::now();
    for (auto line = wg::progress(batches, "epoch " + std::to_string(epoch)); const auto &[x, y] : line)
      line.set("loss", step(x, y));
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    accuracy.reset();
    for (const auto &[x, y] : wg::data::Dataset(test).batch(200))
      evaluate(x, y);
    if (real)
      std::cout << "epoch " << epoch << ": accuracy " << accuracy.result() << ", " << seconds.count() << " s\n";
  }
  std::cout << "more than " << (real ? 82 : 92) << " % right: " << (accuracy.result() > (real ? 0.82 : 0.92)) << "\n"
            << "traces of the step: " << step.trace_count() << "\n";
}
