// Newton's method as a loop that the data ends, differentiated through its steps and by the equation that its end
// solves.
#include <wengert/wengert.h>

#include <iostream>

using wg::Tensor;

/// x with f(x) = 0, from `initial` on.
static Tensor newton(const std::function<Tensor(const Tensor &)> &f, const Tensor &initial) {
  auto unsolved = [&](const Tensor &x) { return wg::abs(f(x)) > 1e-13; };
  auto step = [&](const Tensor &x) {
    auto [y, slope] = wg::jvp(f, std::tuple(x), std::tuple(Tensor(1.0)));
    return x - y / slope;
  };
  return wg::while_loop(unsolved, step, initial, {.max_steps = 50});
}

int main() {
  // The cube root of a, and its first two derivatives: a^(-2/3) / 3, -2 a^(-5/3) / 9.
  auto through = [](const Tensor &a) { return newton([&](const Tensor &x) { return x * x * x - a; }, Tensor(1.0)); };
  auto implicitly = [](const Tensor &a) {
    return wg::custom_root([&](const Tensor &x) { return x * x * x - a; }, Tensor(1.0), newton);
  };
  Tensor a(8.0);
  auto show = [&](const char *how, auto f) {
    auto all = wg::function(how, [&](const Tensor &a) {
      auto slope = [&](const Tensor &a) { return wg::grad(f)(a).value(); };
      return std::tuple(f(a), slope(a), wg::grad(slope)(a).value());
    });
    auto [root, first, second] = all(a);
    std::cout << how << ": " << root << "\n  " << first << "\n  " << second << "\n";
  };
  std::cout << "eagerly: " << through(a) << "\n";
  show("through the steps", through);
  show("by the equation", implicitly);
}
