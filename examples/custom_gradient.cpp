// A layer with a derivative of its own: rounding to levels, whose slope is 0 wherever it has one, passes gradients
// straight through where its argument is inside of the range. And a rule that hands on what the function has computed.
#include <wengert/wengert.h>

#include <iostream>

using wg::Tensor;

struct Quantize : wg::nn::Module {
  wg::Variable scale = add("scale", Tensor(0.25f));
  Tensor operator()(const Tensor &x) const {
    static auto levels = wg::custom_gradient(
        [](const Tensor &x, const Tensor &scale) { return wg::clip(wg::round(x / scale), -4, 3) * scale; },
        [](const Tensor &ct, const Tensor &x, const Tensor &scale) {
          Tensor level = x / scale, inside = wg::cast(wg::logical_and(level > -4.5f, level < 3.5f), wg::f32);
          Tensor rounded = wg::clip(wg::round(level), -4, 3);
          return std::pair(ct * inside, wg::reduce_sum(ct * (rounded - level * inside)));
        });
    return levels(x, scale.value());
  }
};

int main() {
  Quantize layer;
  Tensor x{-2.0f, -0.3f, 0.1f, 0.4f, 1.5f};
  auto gradients = [&](const Tensor &x) {
    wg::GradientTape tape;
    tape.watch(x);
    Tensor y = layer(x);
    auto [dx, ds] = tape.gradient(wg::reduce_sum(y * y), std::tuple(x, layer.scale));
    return std::tuple(y, dx.value(), ds.value());
  };
  auto show = [&](auto f) {
    auto [y, dx, ds] = f(x);
    std::cout << y << "\n" << dx << "\n" << ds << "\n";
  };
  show(gradients);
  show(wg::function("gradients", gradients));

  // log(1 + exp(x)): by the rules of its ops the slope at 1000 is infinity / infinity.
  auto log1pexp = wg::custom_gradient(
      [](const Tensor &x) {
        Tensor e = wg::exp(x);
        return wg::WithResiduals{wg::log(1.0 + e), e};
      },
      [](const Tensor &ct, const Tensor &e) { return ct * (1.0 - 1.0 / (1.0 + e)); });
  auto plain = [](const Tensor &x) { return wg::log(1.0 + wg::exp(x)); };
  std::cout << wg::grad(plain)(Tensor(1000.0)) << " " << wg::grad(log1pexp)(Tensor(1000.0)) << "\n";
}
