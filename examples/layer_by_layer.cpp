// Gradients of the last layers only, as a list of lists; a layer without weights has an empty
// list, and applying it does nothing.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::nn::set_seed(2);
  wg::nn::Dense first(4, 8, wg::relu), second(8, 8), third(8, 3);
  std::vector<std::vector<wg::Variable>> last = {second.trainable_variables(), {}, third.trainable_variables()};
  wg::Tensor x = wg::random_normal(wg::random::key(5), {16, 4}), y = wg::zeros({16}, wg::i32);
  wg::optim::SGD sgd(0.001);

  wg::GradientTape tape({.watch_accessed_variables = false});
  tape.watch(last);
  wg::Tensor loss = wg::nn::cross_entropy(third(wg::relu(second(first(x)))), y);
  std::cout << "watched: " << tape.watched_variables().size() << "\n";
  std::vector<std::vector<wg::Grad>> grads = tape.gradient(loss, last);
  for (size_t layer = 0; layer < last.size(); ++layer) {
    std::cout << "layer " << layer << ": " << grads[layer].size() << " gradients\n";
    sgd.apply(grads[layer], last[layer]);
  }
  try {
    sgd.apply(std::vector{wg::Grad::none("it was not watched")}, std::vector{first.weight()});
  } catch (const wg::Error &error) {
    std::cout << error.message() << "\n";
  }
}
