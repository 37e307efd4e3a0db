// A tape answers once; a persistent one as often as it is asked, until it dies. Constants are watched by name.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable x(3.0f), w(2.0f);
  {
    wg::GradientTape tape;
    wg::Tensor y = w * x * x;
    auto [dx, dw] = tape.gradient(y, x, w);
    std::cout << "d(w x^2)/dx = " << dx.item<float>() << ", by w: " << dw.item<float>() << "\n";
    try {
      tape.gradient(y, x);
    } catch (const wg::Error &error) {
      std::cout << (error.kind() == wg::ErrorKind::runtime ? "runtime error: " : "other error: ") << error.message()
                << "\n";
    }
  }
  {
    wg::GradientTape tape({.persistent = true});
    wg::Tensor constant(4.0f);
    tape.watch(constant);
    wg::Tensor y = constant * constant, z = y * y;
    std::cout << "dz/dx = " << tape.gradient(z, constant) << "\n";
    std::cout << "dy/dx = " << tape.gradient(y, constant) << "\n";
  } // what the tape kept is freed here
}
