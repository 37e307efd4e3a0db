// Two sub-models, a tape for each, one Adam for both in turn: its moments belong to the
// variables, made when first needed.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable a(1.0f, {.name = "a"}), b(-2.0f, {.name = "b"});
  wg::optim::Adam adam(0.1);
  auto fit = [&](const wg::Variable &parameter, float target) {
    wg::GradientTape tape;
    wg::Tensor loss = wg::square(parameter - target);
    adam.apply(tape.gradient(loss, parameter), parameter);
    return loss.item<float>();
  };
  float first = 0, second = 0;
  for (int step = 0; step < 200; ++step) {
    first = fit(a, 3);
    second = fit(b, 5);
  }
  std::cout << "losses below 0.01: " << (first < 0.01f) << " " << (second < 0.01f) << "\n";
  for (const wg::Variable &slot : adam.slots())
    std::cout << slot.name() << (slot.dtype() == wg::i64 ? " = " + std::to_string(slot.item<int64_t>()) : "") << "\n";
}
