// x * stop_gradient(x * y): the second factor counts as a constant, so there is no path from y.
// Not zero: none, and it says why.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(2.0f), y(3.0f);
  wg::GradientTape tape({.persistent = true});
  wg::Tensor z = x * wg::stop_gradient(x * y);
  std::cout << "dz/dx = " << tape.gradient(z, x) << "\n";
  std::cout << "dz/dy = " << tape.gradient(z, y) << "\n";
  wg::Grad zero = tape.gradient(z, y, wg::GradientOptions{.unconnected = wg::Unconnected::zero});
  std::cout << "as a zero: " << zero << "\n";
}
