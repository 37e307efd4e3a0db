// Pre-trained weights in PyTorch's names and layouts, and a new head on them. Convolutions and batch norm are frozen:
// no cotangent of theirs is computed, as the certificate and the kernels of the compiled step show. `--data DIR`: a CNN
// for MNIST, DIR/models/mnist_cnn_bn.safetensors, compared with its known outputs, gets a head for the clothes of
// DIR/fashion-mnist. Without, it has random weights, and the digits that the library carries.
#include <wengert/wengert.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

using wg::Tensor;

/// Images [N, H, W, C], windows [R, S, C, O], weights [in, out]; three windows of 3 take 6 from the sides.
struct Network : wg::nn::Module {
  int64_t side, rest = side - 6;
  wg::nn::Conv2d conv1{1, 8, {3, 3}, wg::relu}, conv2{8, 16, {3, 3}, wg::relu}, conv3{16, 24, {3, 3}, wg::relu};
  wg::nn::BatchNorm norm1{24, {.epsilon = 1e-5}}, norm2{10, {.epsilon = 1e-5}};
  wg::nn::Dense fc1{rest * rest * 24, 32, wg::relu}, fc2{32, 10};

  explicit Network(int64_t side) : side(side) {
    add("conv1", conv1), add("conv2", conv2), add("conv3", conv3), add("norm1", norm1), add("fc1", fc1);
    add("fc2", fc2), add("norm2", norm2);
  }
  Tensor features(const Tensor &pixels) const {
    Tensor x = (wg::reshape(pixels, {pixels.dim(0), side, side, 1}) - 0.1307f) / 0.3081f;
    return wg::flatten(norm1(conv3(conv2(conv1(x))), /*training=*/false), 1);
  }
  Tensor operator()(const Tensor &pixels) const {
    return wg::log_softmax(norm2(fc2(fc1(features(pixels))), /*training=*/false));
  }

  /// As PyTorch saves it: windows [O, C, R, S], weights [out, in]. What fc1 reads is [C, H, W] there, [H, W, C] here.
  void load(const std::string &path) const {
    wg::WeightMapping mapping = wg::torch_mapping(*this);
    mapping.rules.insert(mapping.rules.begin(), {"fc1.weight", "fc1.weight", wg::weights::flattened({24, rest, rest})});
    wg::load_weights(path, *this, {.mapping = mapping});
  }
  void save(const std::string &path) const {
    std::map<std::string, Tensor> file;
    for (const auto &[name, variable] : named_variables()) {
      Tensor w = name == "fc1.weight" ? wg::reshape(variable, {rest, rest, 24, 32}) : variable.value();
      w = w.rank() == 4 ? wg::transpose(w, {3, 2, 0, 1}) : wg::transpose(w);
      file[name.ends_with("running_variance") ? name.substr(0, 5) + ".running_var" : name] =
          name == "fc1.weight" ? wg::flatten(w, 1) : w;
    }
    wg::write_safetensors(path, file);
  }
};

/// The numbers that follow the network's name, for ten images.
static Tensor knownOutputs(const std::string &path) {
  std::ifstream file(path);
  std::string json(std::istreambuf_iterator<char>(file), {});
  std::vector<float> numbers;
  for (size_t at = json.find('[', json.find("mnist_cnn_bn (")); numbers.size() < 100; at = json.find_first_of(",]", at))
    numbers.push_back(std::stof(json.substr(at = json.find_first_of("-0123456789", at))));
  return Tensor::from(numbers, {10, 10});
}

int main(int argc, char **argv) {
  const bool real = argc == 3 && std::string(argv[1]) == "--data";
  const std::string data = real ? argv[2] : "";
  wg::nn::set_seed(1);
  Network network(real ? 28 : 8), random(8);
  auto [train, test] = real ? wg::data::load_mnist(data + "/fashion-mnist") : wg::data::digits();

  std::string path = real ? data + "/models/mnist_cnn_bn.safetensors"
                          : (std::filesystem::temp_directory_path() / "wengert_fine_tuning.safetensors").string();
  Tensor images = (real ? wg::data::load_mnist(data + "/mnist") : wg::data::digits()).test.x[wg::slice(0, 10)];
  Tensor known = real ? knownOutputs(data + "/models/reference_outputs.json") : random(images);
  if (!real)
    random.save(path);
  network.load(path);
  if (!real)
    std::filesystem::remove(path);
  Tensor error = wg::reduce_max(wg::abs(network(images) - known));
  std::cout << "outputs differ by less than 1e-4: " << (error.item<float>() < 1e-4f) << "\n";
  wg::nn::Sequential head(wg::nn::Dense(network.fc1.weight().dim(0), 32, wg::relu), wg::nn::Dense(32, 10));
  wg::optim::Adam adam(real ? 0.001 : 0.01);
  auto stepOf = [&](const std::vector<wg::Variable> &variables) {
    return wg::function("step", [&, variables](const Tensor &x, const Tensor &y) {
      wg::GradientTape tape;
      Tensor loss = wg::nn::cross_entropy(head(network.features(x)), y);
      adam.apply(tape.gradient(loss, variables), variables);
    });
  };
  std::vector<wg::Variable> last = head.trainable_variables(), all = last;
  for (const auto &layer : {network.conv1, network.conv2, network.conv3})
    all.insert(all.end(), {layer.weight(), layer.bias()});
  auto step = stepOf(last);
  for (const auto &[what, each] : {std::pair("all is trained", stepOf(all)), std::pair("the head is trained", step)}) {
    wg::ConcreteFunction concrete = each.trace(train.x[wg::slice(0, 32)], train.y[wg::slice(0, 32)]);
    auto products = std::ranges::count(concrete.kernels(), "contract", &wg::KernelInfo::kind);
    std::cout << what << ": " << products << " products\n";
    for (const wg::DroppedGradient &drop : concrete.certificate())
      if (drop.op == "contract")
        std::cout << "  no cotangent of operand " << drop.operand << " at " << drop.where << ": " << drop.reason
                  << "\n";
  }

  for (int epoch = 0; epoch < (real ? 1 : 5); ++epoch)
    for (const auto &[x, y] : wg::data::Dataset(train).shuffle(epoch).batch(32, /*drop_last=*/true))
      step(x, y);
  wg::metrics::Accuracy accuracy;
  for (const auto &[x, y] : wg::data::Dataset(test).batch(200))
    accuracy.update(head(network.features(x)), y);
  if (real)
    std::cout << "accuracy " << accuracy.result() << "\n";
  std::cout << "more than four in five right: " << (accuracy.result() > 0.8) << "\n";
}
