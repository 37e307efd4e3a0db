// The derivative of x^2 + 2x + 1 at 5, from a program that knows Wengert only as an installed package.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(5.0f);
  auto polynomial = wg::function("polynomial", [&] {
    wg::GradientTape tape;
    wg::Tensor y = x * x + 2.0f * x + 1.0f;
    return tape.gradient(y, x).value();
  });
  std::cout << polynomial() << "\n";
}
