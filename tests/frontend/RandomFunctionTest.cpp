// Random programs through the front end: what an eager tape finds, what a traced and compiled function returns, and what comes out where the two
// are mixed, for the same program. WENGERT_RANDOM_PROGRAMS and WENGERT_RANDOM_SEED as in tests/agreement/RandomProgramTest.cpp.
#include "frontend/Apply.h"
#include "tests/agreement/RandomProgram.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace wg::tests {
namespace {

using Tensors = std::vector<Tensor>;

/// The float outputs of the program on these inputs, through the gate.
Tensors outputsOf(const RandomProgram &program, const Tensors &inputs) {
  Tensors values = inputs, outputs;
  for (const RandomProgram::Step &step : program.steps) {
    std::vector<const Tensor *> operands;
    for (int operand : step.operands)
      operands.push_back(&values[static_cast<size_t>(operand)]);
    Tensor result;
    detail::applyOp(step.op, step.attrs, operands, std::span(&result, 1), Where::current());
    values.push_back(result);
  }
  for (int output : program.outputs)
    if (runtime::isFloat(program.type(output).dtype))
      outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

Tensors inputsOf(const RandomProgram &program) {
  Tensors inputs;
  for (const runtime::Array &input : program.inputs)
    inputs.push_back(detail::makeTensor(input));
  return inputs;
}

Tensors floatsOf(const Tensors &tensors) {
  Tensors floats;
  for (const Tensor &tensor : tensors)
    if (runtime::isFloat(tensor.dtype()))
      floats.push_back(tensor);
  return floats;
}

/// A scalar that every element of every output counts in, differently.
Tensor lossOf(const Tensors &outputs) {
  Tensor loss(0.0);
  for (const Tensor &output : outputs)
    loss = loss + reduce_sum(output * output) * 0.5 + reduce_sum(output);
  return loss;
}

/// Gradients where there are some, zeros elsewhere: one structure for all ways.
Tensors gradientsOf(const RandomProgram &program, const Tensors &inputs) {
  GradientTape tape;
  Tensors floats = floatsOf(inputs);
  tape.watch(floats);
  Tensor loss = lossOf(outputsOf(program, inputs));
  Tensors gradients{loss};
  for (const Grad &gradient : tape.gradient(loss, floats, GradientOptions{.unconnected = Unconnected::zero}))
    gradients.push_back(gradient.value());
  return gradients;
}

double largestOf(const Tensors &tensors) {
  double largest = 1;
  for (const Tensor &tensor : tensors)
    for (double x : tensor.to_vector<double>())
      largest = std::max(largest, std::fabs(x));
  return largest;
}

void expectClose(const Tensors &expected, const Tensors &actual, const std::string &what, double scale) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].shape(), actual[i].shape()) << what << ", result " << i;
    std::vector<double> e = expected[i].to_vector<double>(), a = actual[i].to_vector<double>();
    for (size_t k = 0; k < e.size(); ++k)
      ASSERT_LE(std::fabs(e[k] - a[k]), 1e-11 * scale) << what << ", result " << i << ", element " << k << ": " << e[k] << " against " << a[k];
  }
}

TEST(RandomFunctions, EveryWayToAGradientFindsTheSame) {
  auto fromEnvironment = [](const char *name, uint64_t usual) {
    const char *text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : usual;
  };
  uint64_t first = fromEnvironment("WENGERT_RANDOM_SEED", 1), count = fromEnvironment("WENGERT_RANDOM_PROGRAMS", 30);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program = randomProgram(seed, {.steps = 5 + static_cast<int>(seed % 17), .smooth = seed % 3 != 0, .empty = seed % 10 == 6});
    Tensors inputs = inputsOf(program);
    Tensors eager = gradientsOf(program, inputs);
    double scale = largestOf(eager) * std::max(1.0, program.largest);

    auto traced = function("traced", [&](const Tensors &x) { return gradientsOf(program, x); });
    expectClose(eager, traced(inputs), "traced", scale);

    // Under an eager tape a function is one call with a backward of its own.
    auto outputs = function("outputs", [&](const Tensors &x) { return outputsOf(program, x); });
    auto called = [&](const Tensors &x) {
      GradientTape tape;
      Tensors floats = floatsOf(x);
      tape.watch(floats);
      Tensor loss = lossOf(outputs(x));
      Tensors gradients{loss};
      for (const Grad &gradient : tape.gradient(loss, floats, GradientOptions{.unconnected = Unconnected::zero}))
        gradients.push_back(gradient.value());
      return gradients;
    };
    expectClose(eager, called(inputs), "an eager tape over a call", scale);
    auto outer = function("outer", called);
    expectClose(eager, outer(inputs), "a traced tape over a call", scale);
    auto differentiated = function("differentiated", [&](const Tensors &x) { return traced(x); });
    expectClose(eager, differentiated(inputs), "a call of the gradient", scale);

    // A second derivative: by the inputs, of the sum of the squares of the gradients; eager tape inside of eager tape, and both traced.
    auto twice = [&](auto &&gradients, const Tensors &x) {
      GradientTape tape;
      Tensors floats = floatsOf(x);
      tape.watch(floats);
      Tensors found = gradients(x);
      Tensor sum(0.0);
      for (size_t i = 1; i < found.size(); ++i)
        sum = sum + reduce_sum(found[i] * found[i]);
      Tensors results{sum};
      for (const Grad &gradient : tape.gradient(sum, floats, GradientOptions{.unconnected = Unconnected::zero}))
        results.push_back(gradient.value());
      return results;
    };
    auto direct = [&](const Tensors &x) { return gradientsOf(program, x); };
    Tensors second = twice(direct, inputs);
    scale = largestOf(second) * scale;
    if (scale > 1e12) // nothing left to compare
      continue;
    auto tracedTwice = function("twice", [&](const Tensors &x) { return twice(direct, x); });
    expectClose(second, tracedTwice(inputs), "second order, traced", scale);
    expectClose(second, twice(traced, inputs), "second order, an eager tape over a traced gradient", scale);
    expectClose(second, twice(called, inputs), "second order, eager tapes over a call", scale);
    auto mixed = function("mixed", [&](const Tensors &x) { return twice(called, x); });
    expectClose(second, mixed(inputs), "second order, traced tapes over a call", scale);
  }
}

} // namespace
} // namespace wg::tests
