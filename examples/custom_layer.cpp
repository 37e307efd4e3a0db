// A layer of one's own: a weight of shape (1,) that starts at zero and is broadcast. Its
// gradient sums over the examples.
#include <wengert/wengert.h>

#include <iostream>

struct Scale : wg::nn::Module {
  wg::Variable weight = add("weight", wg::zeros({1}));
  wg::Tensor operator()(const wg::Tensor &x) const { return weight * x; }
};

int main() {
  Scale scale;
  wg::nn::Sequential model(scale, wg::relu);
  wg::Tensor x{1.0f, 2.0f, 3.0f};
  wg::GradientTape tape;
  wg::Tensor loss = wg::reduce_sum(scale(x));
  std::vector<wg::Grad> grads = tape.gradient(loss, scale.trainable_variables());
  std::cout << loss << "\n" << grads[0] << "\n";
  for (const auto &[name, variable] : model.named_variables())
    std::cout << name << " " << wg::runtime::toString(variable.shape()) << "\n";
}
