// What the checks of random bodies compare, and with what tolerance.
#pragma once

#include "tests/frontend/RandomBodies.h"
#include "tests/frontend/Support.h"

#include <algorithm>
#include <cmath>

namespace wg::tests {

using Grads = std::vector<Grad>;

inline double largestOf(const Tensors &tensors) {
  double largest = 1;
  for (const Tensor &tensor : floatsOf(tensors))
    for (double x : tensor.to_vector<double>())
      largest = std::max(largest, std::fabs(x));
  return largest;
}
inline Tensors valuesOf(const Grads &grads) {
  Tensors values;
  for (const Grad &grad : grads)
    if (grad.has_value())
      values.push_back(grad.value());
  return values;
}

inline bool isSame(double e, double a, double tolerance) {
  return std::fabs(e - a) <= tolerance || e == a || (std::isnan(e) && std::isnan(a));
}
inline void expectSame(const Tensor &expected, const Tensor &actual, double tolerance, const std::string &what) {
  ASSERT_EQ(expected.dtype(), actual.dtype()) << what;
  ASSERT_EQ(expected.shape(), actual.shape()) << what;
  std::vector<double> e = expected.to_vector<double>(), a = actual.to_vector<double>();
  for (size_t k = 0; k < e.size(); ++k)
    ASSERT_TRUE(isSame(e[k], a[k], runtime::isFloat(expected.dtype()) ? tolerance : 0))
        << what << ", element " << k << ": " << e[k] << " expected, " << a[k] << " found, by " << a[k] - e[k]
        << ", tolerance " << tolerance;
}
inline void expectSame(const Tensors &expected, const Tensors &actual, double tolerance, const std::string &what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i)
    expectSame(expected[i], actual[i], tolerance, what + ", result " + std::to_string(i));
}

inline bool isZero(const Tensor &x) {
  std::vector<double> values = x.to_vector<double>();
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}
/// Where a branch was not taken, or a loop made no turn, C++ finds no path and a program finds zeros.
inline void expectSameGradients(const Grads &eager, const Grads &traced, double tolerance, const std::string &what) {
  ASSERT_EQ(eager.size(), traced.size()) << what;
  for (size_t i = 0; i < eager.size(); ++i) {
    std::string where = what + ", gradient " + std::to_string(i);
    if (eager[i].has_value() && traced[i].has_value())
      expectSame(eager[i].value(), traced[i].value(), tolerance, where);
    else if (eager[i].has_value())
      EXPECT_TRUE(isZero(eager[i].value())) << where << " is empty in a program: " << traced[i].reason();
    else if (traced[i].has_value())
      EXPECT_TRUE(isZero(traced[i].value())) << where << " is empty eagerly: " << eager[i].reason();
  }
}

inline double dot(const Grad &grad, const Tensor &direction) {
  if (!grad.has_value())
    return 0;
  std::vector<double> a = grad.value().to_vector<double>(), b = direction.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

inline Tensors joined(Tensors a, const Tensors &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using Program = std::function<Tensors(const Tensors &)>;

inline Tensors sourcesOf(const BodyRun &run, const Tensors &x) {
  Tensors sources = floatsOf(x);
  for (const Tensor &captured : floatsOf(run.captured))
    sources.push_back(captured);
  return sources;
}
inline std::vector<Variable> floatVariables(const BodyRun &run) {
  std::vector<Variable> list;
  for (const Variable &variable : run.variables)
    if (runtime::isFloat(variable.dtype()))
      list.push_back(variable);
  return list;
}
/// The loss, then its gradients by the float inputs, captured tensors and variables.
inline Grads gradientsOf(const Program &f, const BodyRun &run, const Tensors &x) {
  GradientTape tape;
  Tensors sources = sourcesOf(run, x);
  tape.watch(sources);
  Tensor loss = lossOf(f(x));
  std::vector<detail::Source> all(sources.begin(), sources.end());
  for (const Variable &variable : floatVariables(run))
    all.emplace_back(variable);
  Grads grads = tape.gradient(loss, all);
  grads.insert(grads.begin(), Grad(loss));
  return grads;
}
inline Tensors directionsOf(const Tensors &sources, uint64_t phase) {
  Tensors list;
  for (const Tensor &source : sources)
    list.push_back(numbersOf({source.dtype(), source.shape()}, phase++));
  return list;
}
/// The gradients by the inputs along directions, as one number.
inline Tensor slopeOf(const Grads &grads, const Tensors &directions) {
  Tensor sum(0.0);
  for (size_t i = 0; i < directions.size(); ++i)
    if (grads[i + 1].has_value())
      sum = sum + cast(reduce_sum(grads[i + 1].value() * directions[i]), f64);
  return sum;
}
/// Gradients by the float inputs of that number.
inline Grads secondOf(const Program &f, const BodyRun &run, const Tensors &x, const Tensors &directions) {
  GradientTape tape;
  Tensors floats = floatsOf(x);
  tape.watch(floats);
  Tensor slope = slopeOf(gradientsOf(f, run, x), directions);
  Grads grads = tape.gradient(slope, std::vector<detail::Source>(floats.begin(), floats.end()));
  grads.insert(grads.begin(), Grad(slope));
  return grads;
}
inline Tensors moved(const Tensors &x, const Tensors &directions, double step) {
  Tensors list = x;
  size_t next = 0;
  for (Tensor &each : list)
    if (runtime::isFloat(each.dtype()))
      each = each + directions[next++] * step;
  return list;
}

} // namespace wg::tests
