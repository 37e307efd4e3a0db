// A convolutional autoencoder: images to 16 numbers by strides, and back by transposed convolutions. On Fashion-MNIST
// with `--data DIR` (DIR/fashion-mnist), else on the small digits that the library carries.
#include <wengert/wengert.h>

#include <chrono>
#include <iostream>

using wg::Tensor;

/// A transposed convolution that doubles height and width; its weight is [rows, columns, in, out].
struct Up : wg::nn::Module {
  wg::Variable weight, bias;
  Up(int64_t in, int64_t out)
      : weight(add("weight", wg::nn::glorot_uniform()({3, 3, in, out}, wg::f32))), bias(add("bias", wg::zeros({out}))) {
  }
  Tensor operator()(const Tensor &x) const {
    return wg::conv2d_transpose(x, weight, {.strides = {2, 2}, .padding = wg::Padding::same}) + bias;
  }
};

int main(int argc, char **argv) {
  const bool real = argc == 3 && std::string(argv[1]) == "--data";
  wg::nn::set_seed(1);
  auto [train, test] = real ? wg::data::load_mnist(std::string(argv[2]) + "/fashion-mnist") : wg::data::digits();
  const int64_t side = real ? 28 : 8, quarter = side / 4;
  auto images = [&](const wg::data::Examples &examples) { return wg::reshape(examples.x, {-1, side, side, 1}); };

  const wg::nn::Conv2dOptions half{.strides = {2, 2}, .padding = wg::Padding::same};
  wg::nn::Sequential encoder(wg::nn::Conv2d(1, 16, {3, 3}, wg::relu, half),
                             wg::nn::Conv2d(16, 32, {3, 3}, wg::relu, half), wg::nn::Flatten(),
                             wg::nn::Dense(quarter * quarter * 32, 16));
  wg::nn::Sequential decoder(
      wg::nn::Dense(16, quarter * quarter * 32, wg::relu),
      [=](const Tensor &x) { return wg::reshape(x, {-1, quarter, quarter, 32}); }, Up(32, 16), wg::relu, Up(16, 1));
  wg::nn::Sequential model(encoder, decoder);
  std::cout << "parameters: " << model.num_parameters() << "\n";

  wg::optim::Adam adam(real ? 0.001 : 0.005);
  auto step = wg::function("step", [&](const Tensor &x) {
    wg::GradientTape tape;
    Tensor loss = wg::nn::sigmoid_cross_entropy(model(x), x);
    adam.apply(tape.gradient(loss, model), model);
    return loss;
  });
  auto start = std::chrono::steady_clock::now();
  auto batches = wg::data::Dataset(images(train), train.y).shuffle(1).batch(64, /*drop_last=*/true);
  for (int epoch = 0; epoch < (real ? 2 : 30); ++epoch)
    for (auto line = wg::progress(batches, "epoch " + std::to_string(epoch)); const auto &[x, _] : line)
      line.set("loss", step(x));
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  // Of what the pixels vary by, how much is in the 16 numbers?
  auto error = wg::function("error", [&](const Tensor &x) { return wg::mean(wg::square(wg::sigmoid(model(x)) - x)); });
  Tensor x = images(test), spread = wg::mean(wg::square(x - wg::mean(images(train), 0)));
  float explained = 1 - (error(x) / spread).item<float>();
  if (real)
    std::cout << "explained " << explained << ", " << seconds.count() << " s\n";
  std::cout << "16 numbers tell more than " << (real ? 75 : 75) << " % of an image: " << (explained > 0.75f) << "\n";
}
