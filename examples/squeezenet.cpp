// SqueezeNet (Iandola et al. 2016) with pre-trained weights of another library, in its layouts: images [N, C, H, W],
// windows [O, C, R, S]. `--data DIR`: the scores for one image, and their gradient by its pixels, are those that are
// known for DIR/models/snacks_squeezenet.safetensors.
#include <wengert/wengert.h>

#include <chrono>
#include <cmath>
#include <iostream>

using wg::Layout, wg::Tensor;

struct SqueezeNet : wg::nn::Module {
  std::vector<wg::Variable> weights, biases; ///< of 25 convolutions, and of what follows them
  SqueezeNet() {
    convolution(64, 3, 3);
    int64_t in = 64;
    for (int64_t squeeze : {16, 16, 32, 32, 48, 48, 64, 64}) {
      convolution(squeeze, in, 1);
      convolution(4 * squeeze, squeeze, 1);
      convolution(4 * squeeze, squeeze, 3);
      in = 8 * squeeze;
    }
    weights.push_back(add("innerProduct_B", wg::zeros({10, in})));
    biases.push_back(add("innerProduct_C", wg::zeros({10})));
  }
  void convolution(int64_t out, int64_t in, int64_t window) {
    std::string name = "convolution" + (weights.empty() ? "" : std::to_string(weights.size()));
    weights.push_back(add(name + "_W", wg::zeros({out, in, window, window})));
    biases.push_back(add(name + "_B", wg::zeros({out})));
  }

  Tensor convolve(size_t i, const Tensor &x, wg::Conv2dOptions options = {}) const {
    options.layout = Layout::channels_first;
    Tensor y = wg::conv2d(x, wg::transpose(weights[i], {2, 3, 1, 0}), options);
    return wg::relu(y + wg::reshape(biases[i], {-1, 1, 1}));
  }
  Tensor fire(size_t i, const Tensor &x) const {
    Tensor s = convolve(i, x);
    return wg::concat({convolve(i + 1, s), convolve(i + 2, s, {.padding = wg::Padding::same})}, 1);
  }
  static Tensor pool(const Tensor &x, int64_t after) {
    return wg::max_pool2d(
        x,
        {.window = {3, 3}, .strides = {2, 2}, .padding = {{0, after}, {0, after}}, .layout = Layout::channels_first});
  }
  /// Shapes: image [N, 3, 227, 227], blue, green, red, 0 to 255 -> [N, 10].
  Tensor operator()(const Tensor &image) const {
    Tensor x = image - wg::reshape(Tensor{104.0f, 117.0f, 123.0f}, {3, 1, 1});
    x = pool(convolve(0, x, {.strides = {2, 2}}), 0);
    x = pool(fire(4, fire(1, x)), 1);
    x = pool(fire(10, fire(7, x)), 1);
    x = fire(22, fire(19, fire(16, fire(13, x))));
    return wg::matmul(wg::global_avg_pool(x, Layout::channels_first), weights[25], {.transpose_b = true}) + biases[25];
  }
};

int main(int argc, char **argv) {
  SqueezeNet model;
  std::cout << "parameters: " << model.num_parameters() << "\n";
  if (argc != 3 || std::string(argv[1]) != "--data") {
    std::cout << "skipped: no weights; --data DIR names a directory with models/snacks_squeezenet.safetensors\n";
    return 0;
  }
  wg::load_weights(std::string(argv[2]) + "/models/snacks_squeezenet.safetensors", model);
  // 127.5 + 127.5 sin(0.05 i + 0.03 j + 1.7 c) cos(0.013 i (c + 1) - 0.07 j), of channel c, row i and column j.
  Tensor c = wg::reshape(wg::arange(3, wg::f64), {3, 1, 1}), j = wg::arange(227, wg::f64), i = wg::expand_dims(j, 1);
  Tensor waves = wg::sin(0.05 * i + 0.03 * j + 1.7 * c) * wg::cos(0.013 * i * (c + 1) - 0.07 * j);
  Tensor image = wg::expand_dims(wg::cast(127.5 + 127.5 * waves, wg::f32), 0);

  auto f = wg::function("f", [&](const Tensor &image) {
    return wg::value_and_grad(
        [&](const Tensor &x) {
          Tensor scores = model(x)[0];
          return std::pair(scores[0], scores);
        },
        wg::has_aux)(image);
  });
  auto [value, gradient] = f(image);
  auto start = std::chrono::steady_clock::now();
  f(image);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Tensor known{-10.66842f,  -8.2069078f, -6.0398485f, -9.251963f,   -10.913474f,
               -8.0977226f, -8.7928232f, -3.1378994f, -0.95657275f, -5.9006405f};
  Tensor error = wg::reduce_max(wg::abs(value.second - known)), norm = wg::norm(gradient) / 0.05406683464;
  std::cout << "scores as known: " << (error.item<float>() < 1e-4f)
            << ", gradient: " << (std::abs(norm.item<float>() - 1) < 1e-3f) << "\n"
            << "both in " << seconds.count() << " s\n";
}
