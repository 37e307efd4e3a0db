// Momentum by hand and by the library: the same numbers. v = 0.9 v + g; p -= lr v.
#include <wengert/wengert.h>

#include <iostream>

static wg::Tensor loss(const wg::Variable &p) { return wg::reduce_sum(wg::square(p - wg::Tensor{1.0, -2.0})); }

int main() {
  wg::Variable mine(wg::zeros({2}, wg::f64)), velocity(wg::zeros({2}, wg::f64)), theirs(wg::zeros({2}, wg::f64));
  wg::optim::Momentum momentum(0.05, 0.9);
  for (int step = 0; step < 3; ++step) {
    wg::GradientTape tape({.persistent = true});
    wg::Tensor a = loss(mine), b = loss(theirs);
    wg::Tensor g = tape.gradient(a, mine);
    velocity.assign(0.9 * velocity + g);
    mine.assign_sub(0.05 * velocity);
    momentum.apply(tape.gradient(b, theirs), theirs);
  }
  double difference = wg::reduce_max(wg::abs(mine - theirs)).item<double>();
  std::cout << mine.value() << "\n" << "the same: " << (difference < 1e-15) << "\n";
}
