// Second derivatives: the inner gradient is taken while the outer tape records. Left of it, there is nothing to record.
#include <wengert/wengert.h>

#include <iostream>

/// d^2(x^3)/dx^2 = 6x
static wg::Tensor second(const wg::Tensor &x) {
  wg::GradientTape outer;
  outer.watch(x);
  wg::Tensor first;
  {
    wg::GradientTape inner;
    inner.watch(x);
    first = inner.gradient(x * x * x, x);
  }
  return outer.gradient(first, x);
}

/// The Hessian of f(x) = x0^2 x1 + x1^3, a row for each component of the gradient.
static std::vector<wg::Tensor> hessian(const wg::Tensor &x) {
  wg::GradientTape outer({.persistent = true});
  outer.watch(x);
  std::vector<wg::Tensor> components;
  {
    wg::GradientTape inner;
    inner.watch(x);
    wg::Tensor a = wg::index(x, 0), b = wg::index(x, 1);
    wg::Tensor gradient = inner.gradient(a * a * b + b * b * b, x);
    components = {wg::index(gradient, 0), wg::index(gradient, 1)};
  }
  return {outer.gradient(components[0], x), outer.gradient(components[1], x)};
}

int main() {
  std::cout << second(wg::Tensor(2.0)) << "\n";
  std::cout << wg::function("second", second)(wg::Tensor(2.0)) << "\n";
  for (const wg::Tensor &row : hessian(wg::Tensor{1.0, 2.0}))
    std::cout << row << "\n";

  wg::Variable x(2.0);
  wg::Tensor first;
  wg::GradientTape outer;
  {
    wg::GradientTape inner;
    wg::Tensor y = x * x * x;
    outer.stop();
    first = inner.gradient(y, x);
  }
  std::cout << (outer.gradient(first, x) ? "a gradient" : "none: the first one was taken after the outer tape stopped")
            << "\n";
}
