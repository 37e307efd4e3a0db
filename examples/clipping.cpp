// All gradients together are scaled to a norm of at most 1 before they are applied; an empty one stays empty.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable a(wg::Tensor{1.0f, 2.0f}), b(2.0f), unused(0.0f);
  wg::GradientTape tape;
  wg::Tensor loss = wg::reduce_sum(a * a) + b * b * 0.0f + 4.0f * b;
  std::vector<wg::Grad> grads = tape.gradient(loss, std::vector{a, b, unused});
  auto [clipped, norm] = wg::optim::clip_by_global_norm(grads, 1.0f);
  std::cout << "norm before: " << norm << "\n";
  for (const wg::Grad &grad : clipped)
    std::cout << (grad ? wg::to_string(grad.value()) : "none") << "\n";
  std::cout << "norm after: " << wg::optim::clip_by_global_norm(clipped, 1.0f).second << "\n";
}
