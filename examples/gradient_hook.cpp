// A gradient hook: the cotangent is printed and clipped on its way back.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  auto f = [](const wg::Tensor &x) {
    wg::Tensor h = wg::with_gradient_hook(x * x, [](const wg::Tensor &ct) { return wg::clip(ct, -1.0, 1.0); });
    return wg::reduce_sum(3.0 * h);
  };
  wg::Tensor x{0.5, 2.0};
  wg::GradientTape tape;
  tape.watch(x);
  wg::Tensor seen = wg::with_gradient_hook(x, [](const wg::Tensor &ct) { std::cout << "arrives:  " << ct << "\n"; });
  wg::Grad eagerly = tape.gradient(f(seen), x);
  std::cout << "eagerly:  " << eagerly << "\n";

  auto gradient = wg::function("gradient", wg::grad(f));
  std::cout << "compiled: " << gradient(x) << "\n";
}
