// Why is there no gradient? Each way to lose one, and what the tape says of it.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(2.0f, {.name = "x"}), unused(1.0f, {.name = "unused"});
  wg::Tensor constant(3.0f);
  {
    wg::GradientTape tape({.persistent = true});
    tape.watch(unused);
    wg::Tensor y = x * constant;
    std::cout << "not used:     " << tape.gradient(y, unused) << "\n";
    std::cout << "not watched:  " << tape.gradient(y, constant) << "\n";
    wg::Tensor left = wg::Tensor(y.item<float>()) * 2.0f;
    std::cout << "left to C++:  " << tape.gradient(left, x) << "\n";
    wg::Tensor whole = wg::cast(wg::cast(x, wg::i32), wg::f32) * 2.0f;
    std::cout << "by an integer: " << tape.gradient(whole, x) << "\n";
  }
  wg::GradientTape tape({.watch_accessed_variables = false});
  wg::Tensor y = x * x;
  std::cout << "no automatic watching: " << tape.gradient(y, x) << "\n";
}
