// The derivative of x^2 + 2x + 1 at 5 is 2x + 2 = 12: eagerly, and as a compiled function.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(5.0f);
  {
    wg::GradientTape tape;
    wg::Tensor y = x * x + 2 * x + 1;
    std::cout << tape.gradient(y, x) << "\n";
  }
  auto derivative = wg::function("derivative", [&] {
    wg::GradientTape tape;
    wg::Tensor y = x * x + 2 * x + 1;
    return tape.gradient(y, x).value();
  });
  std::cout << derivative() << "\n";
}
