// What makes a function trace again? Another shape, another C++ number; not another value of a tensor or of a variable.
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::Variable scale(1.0f, {.name = "scale"});
  auto power = wg::function("power", [&](const wg::Tensor &x, int exponent) {
    wg::Tensor y = scale * x;
    for (int i = 1; i < exponent; ++i) // runs while tracing: the program holds the products
      y = y * x;
    return wg::reduce_sum(y);
  });
  auto show = [&](const char *what, const wg::Tensor &y) {
    std::cout << what << ": " << y.item<float>() << ", traces " << power.trace_count() << "\n";
  };
  show("first call", power(wg::Tensor{1.0f, 2.0f}, 2));
  show("other values", power(wg::Tensor{3.0f, 4.0f}, 2));
  scale.assign(10.0f);
  show("assigned variable", power(wg::Tensor{3.0f, 4.0f}, 2));
  show("other number", power(wg::Tensor{3.0f, 4.0f}, 3));
  show("other shape", power(wg::Tensor{1.0f, 2.0f, 3.0f}, 3));
  show("seen before", power(wg::Tensor{1.0f, 1.0f}, 2));
}
