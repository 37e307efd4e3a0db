// What several tests of the front end need.
#pragma once

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace wg::tests {

using Tensors = std::vector<Tensor>;

/// What `f` throws, as a user reads it.
inline std::string messageOf(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

inline bool says(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

/// Numbers without a pattern, f64.
inline Tensor matrix(int64_t rows, int64_t columns, double phase = 0) {
  return sin(reshape(linspace(0.1 + phase, 3.1 + phase, rows * columns, f64), {rows, columns}));
}

/// Equal within `tolerance`, relative where the numbers are larger than 1.
inline void expectNear(const Tensor &found, const Tensor &wanted, double tolerance = 1e-12) {
  ASSERT_EQ(found.shape(), wanted.shape());
  std::vector<double> a = found.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << "element " << i;
}

inline Tensors floatsOf(const Tensors &tensors) {
  Tensors floats;
  for (const Tensor &tensor : tensors)
    if (runtime::isFloat(tensor.dtype()))
      floats.push_back(tensor);
  return floats;
}

/// A scalar that every float element counts in, differently.
inline Tensor lossOf(const Tensors &results) {
  Tensor loss(0.0);
  for (const Tensor &result : floatsOf(results))
    loss = loss + cast(reduce_sum(square(result)) * 0.5 + reduce_sum(result), f64);
  return loss;
}

/// That loss of f at x, and its gradient by every float tensor of x: zeros where there is none, so
/// that all ways have one structure.
inline Tensors gradientsOf(const std::function<Tensors(const Tensors &)> &f, const Tensors &x) {
  GradientTape tape;
  Tensors floats = floatsOf(x);
  tape.watch(floats);
  Tensor loss = lossOf(f(x));
  Tensors gradients{loss};
  for (const Grad &gradient : tape.gradient(loss, floats, GradientOptions{.unconnected = Unconnected::zero}))
    gradients.push_back(gradient.value());
  return gradients;
}

} // namespace wg::tests
