// Two tapes side by side over one variable: each sees only what ran while it was open, and the gradients add up.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(2.0f, {.name = "x"});
  wg::GradientTape first;
  wg::Tensor y = x * x;
  first.stop();
  wg::GradientTape second;
  wg::Tensor z = 3.0f * x;
  second.stop();
  wg::Tensor dy = first.gradient(y, x), dz = second.gradient(z, x);
  std::cout << "separately: " << dy.item<float>() << " and " << dz.item<float>() << "\n";

  wg::GradientTape both;
  wg::Tensor sum = x * x + 3.0f * x;
  std::cout << "one tape over both: " << both.gradient(sum, x).item<float>() << ", the sum: " << (dy + dz).item<float>()
            << "\n";

  wg::GradientTape late;
  std::cout << "a tape that saw neither: " << late.gradient(y, x) << "\n";
  x.assign_sub(0.1f * (dy + dz));
  std::cout << "after a step: " << x.value() << "\n";
}
