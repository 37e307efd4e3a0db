// A function in C with its derivative, also in C, called by eager and by compiled code.
#include <wengert/wengert.h>

#include <cmath>
#include <iostream>

/// numbers: 2 + 2 + rank: how many elements the first operand has.
static int64_t countOf(const int64_t *numbers) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < numbers[3]; ++axis)
    count *= numbers[4 + axis];
  return count;
}

/// y = arctan x; NaN is an error.
extern "C" int32_t my_arctan(void *const *pointers, const int64_t *numbers, void *) {
  auto x = static_cast<const double *>(pointers[0]);
  auto y = static_cast<double *>(pointers[1]);
  for (int64_t i = 0; i < countOf(numbers); ++i) {
    if (std::isnan(x[i]))
      return 1;
    y[i] = std::atan(x[i]);
  }
  return 0;
}
/// dx = ct / (1 + x^2).
extern "C" int32_t my_arctan_vjp(void *const *pointers, const int64_t *numbers, void *) {
  auto ct = static_cast<const double *>(pointers[0]), x = static_cast<const double *>(pointers[1]);
  auto dx = static_cast<double *>(pointers[2]);
  for (int64_t i = 0; i < countOf(numbers); ++i)
    dx[i] = ct[i] / (1 + x[i] * x[i]);
  return 0;
}

int main() {
  using wg::Tensor;
  wg::TensorSpec vector{wg::f64, {wg::dynamic}};
  auto like = [](const std::vector<wg::TensorSpec> &of) { return of[0]; };
  wg::CFunction value = wg::c_function("my_arctan", my_arctan, {.arguments = {vector}, .result = like});
  wg::CFunction slope = wg::c_function("my_arctan_vjp", my_arctan_vjp, {.arguments = {vector, vector}, .result = like});
  auto rule = [=](const Tensor &ct, const Tensor &x) { return slope(ct, x); }; // of both modes: it is diagonal
  auto arctan = wg::custom_gradient([=](const Tensor &x) { return value(x); }, rule, rule);

  Tensor x{-1.0, 0.0, 2.0};
  auto loss = [&](const Tensor &x) { return wg::reduce_sum(wg::square(arctan(x * 2.0))); };
  auto both = wg::function("both", [&](const Tensor &x) { return std::pair(loss(x), wg::grad(loss)(x).value()); });
  std::cout << loss(x) << " " << wg::grad(loss)(x) << "\n";
  auto [compiled, gradient] = both(x);
  std::cout << compiled << " " << gradient << "\n";
  std::cout << wg::jvp(loss, std::tuple(x), std::tuple(wg::ones({3}, wg::f64))).second << "\n";
  try {
    both(Tensor{0.0, std::nan(""), 1.0});
  } catch (const wg::Error &error) {
    std::cout << error.what() << "\n";
  }
}
