// Derivatives as functions of functions, nested as deep as one likes.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  auto cube = [](const wg::Tensor &x) { return x * x * x; };
  auto [value, slope] = wg::value_and_grad(cube)(wg::Tensor(2.0));
  std::cout << "x^3 at 2: " << value.item<double>() << ", slope " << slope.item<double>() << "\n";
  auto first = [&](const wg::Tensor &x) { return wg::grad(cube)(x).value(); };
  auto second = [&](const wg::Tensor &x) { return wg::grad(first)(x).value(); };
  std::cout << "second " << second(wg::Tensor(2.0)).item<double>() << ", third "
            << wg::grad(second)(wg::Tensor(2.0)).item<double>() << "\n";

  // The Hessian-vector product of a function of a vector, without the Hessian: the gradient of <gradient, v>.
  auto energy = [](const wg::Tensor &x) { return wg::reduce_sum(wg::exp(x) * x); };
  wg::Tensor v{1.0, 0.0, 2.0};
  auto along = [&](const wg::Tensor &x) { return wg::reduce_sum(wg::grad(energy)(x).value() * v); };
  auto product = wg::function("product", [&](const wg::Tensor &x) { return wg::grad(along)(x).value(); });
  std::cout << product(wg::Tensor{0.0, 1.0, -1.0}) << "\n";
}
