// A tape dies with its program; what can be kept is the weights and the inputs. Loaded, recorded anew:
// the same gradients, bit for bit.
#include <wengert/wengert.h>

#include <filesystem>
#include <iostream>

static std::vector<float> gradient(const wg::nn::Dense &layer, const wg::Tensor &x) {
  wg::GradientTape tape;
  wg::Tensor loss = wg::mean(wg::square(layer(x)));
  return tape.gradient(loss, layer.weight()).value().to_vector<float>();
}

int main() {
  wg::nn::Dense before(8, 4, wg::tanh, {.weight = wg::nn::glorot_uniform(1)}),
      after(8, 4, wg::tanh, {.weight = wg::nn::glorot_uniform(2)});
  wg::Tensor x = wg::random_normal(wg::random::key(1), {16, 8});
  std::filesystem::path path = std::filesystem::temp_directory_path() / "wengert_saved_weights.safetensors";
  wg::save_weights(path.string(), before);
  std::cout << "different before: " << (gradient(before, x) != gradient(after, x)) << "\n";
  wg::load_weights(path.string(), after);
  std::cout << "equal after: " << (gradient(before, x) == gradient(after, x)) << "\n";
  std::filesystem::remove(path);
}
