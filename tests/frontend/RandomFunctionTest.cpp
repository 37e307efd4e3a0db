// Random programs through the front end: what an eager tape finds, what a traced and compiled function returns, and
// what comes out where the two are mixed, for the same program. WENGERT_RANDOM_PROGRAMS and WENGERT_RANDOM_SEED as in
// tests/agreement/RandomProgramTest.cpp.
#include "frontend/staging/Apply.h"
#include "tests/agreement/RandomProgram.h"
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

namespace wg::tests {
namespace {

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

Tensors gradientsOf(const RandomProgram &program, const Tensors &inputs) {
  return tests::gradientsOf([&](const Tensors &x) { return outputsOf(program, x); }, inputs);
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
      ASSERT_LE(std::fabs(e[k] - a[k]), 1e-11 * scale)
          << what << ", result " << i << ", element " << k << ": " << e[k] << " against " << a[k];
  }
}

uint64_t fromEnvironment(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// The second derivative: by the inputs, of the sum of the squares of the gradients.
template <class Gradients> Tensors twice(Gradients &&gradients, const Tensors &x) {
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
}

TEST(RandomFunctions, EveryWayToAGradientFindsTheSame) {
  uint64_t first = fromEnvironment("WENGERT_RANDOM_SEED", 1), count = fromEnvironment("WENGERT_RANDOM_PROGRAMS", 30);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program = randomProgram(
        seed, {.steps = 5 + static_cast<int>(seed % 17), .smooth = seed % 3 != 0, .empty = seed % 10 == 6});
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

    // Eager tape inside of eager tape, and both traced.
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

/// A program cut into functions that all have one name. Each is a range of its steps, and calls the functions that
/// are cut out of that range. Some inputs are variables: a function captures them, or gets them as arguments, one of
/// them at several places, or both.
class CutProgram {
public:
  CutProgram(const RandomProgram &program, const Tensors &inputs, uint64_t seed, FunctionOptions options)
      : program_(program), options_(std::move(options)), random_(seed) {
    for (const Tensor &input : inputs)
      variables_.push_back(runtime::isFloat(input.dtype()) && draw(2) ? Variable(input) : Variable());
    whole_ = cut(0, static_cast<int>(program.steps.size()), 0);
  }

  Tensors outputs(const Tensors &inputs) {
    std::map<int, Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values[static_cast<int>(i)] = inputs[i];
    call(*whole_, values, {});
    Tensors outputs;
    for (int output : program_.outputs)
      if (runtime::isFloat(program_.type(output).dtype))
        outputs.push_back(output < static_cast<int>(inputs.size()) && variables_[static_cast<size_t>(output)].defined()
                              ? variables_[static_cast<size_t>(output)].value()
                              : values.at(output));
    return outputs;
  }

  /// The float inputs: variables where they are some.
  std::vector<detail::Source> sources(const Tensors &inputs) const {
    std::vector<detail::Source> list;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (variables_[i].defined())
        list.emplace_back(variables_[i]);
      else if (runtime::isFloat(inputs[i].dtype()))
        list.emplace_back(inputs[i]);
    return list;
  }

private:
  using Variables = std::vector<Variable>;
  struct Part {
    int begin, end;                // steps
    std::vector<Part *> parts;     // cut out of it
    std::vector<int> takes, gives; // values: from before it, and needed after it
    std::vector<int> passed;       // inputs whose variables are arguments
    bool usesPassed, again,
        through; // reads the arguments; is called twice; the second time by another function of the name
    std::optional<Function<Tensors(const Tensors &, const Variables &)>> function, wrapper;
  };

  uint64_t draw(uint64_t count) { return random_() % count; }
  int numInputs() const { return static_cast<int>(program_.inputs.size()); }
  bool isVariable(int value) const { return value < numInputs() && variables_[static_cast<size_t>(value)].defined(); }

  Part *cut(int begin, int end, int depth) {
    Part &part = *all_.emplace_back(
        std::make_unique<Part>(Part{begin, end, {}, {}, {}, {}, draw(2) == 0, draw(3) == 0, draw(2) == 0, {}, {}}));
    for (int at = begin; depth < 3 && end - at > 2;) {
      int from = at + static_cast<int>(draw(3)),
          to = from + 1 + static_cast<int>(draw(static_cast<uint64_t>(end - begin)));
      if (to > end || (from == begin && to == end))
        break;
      part.parts.push_back(cut(from, to, depth + 1));
      at = to;
    }
    std::set<int> takes, gives;
    for (int step = begin; step < end; ++step)
      for (int operand : program_.steps[static_cast<size_t>(step)].operands)
        if (operand < numInputs() + begin && !isVariable(operand))
          takes.insert(operand);
    for (int step = end; step < static_cast<int>(program_.steps.size()); ++step)
      for (int operand : program_.steps[static_cast<size_t>(step)].operands)
        if (operand >= numInputs() + begin && operand < numInputs() + end)
          gives.insert(operand);
    for (int output : program_.outputs)
      if (output >= numInputs() + begin && output < numInputs() + end)
        gives.insert(output);
    part.takes.assign(takes.begin(), takes.end());
    part.gives.assign(gives.begin(), gives.end());
    for (int i = 0; i < numInputs(); ++i)
      for (uint64_t copies = isVariable(i) ? draw(3) : 0; copies > 0; --copies)
        part.passed.push_back(i);
    part.function.emplace(
        "part", [this, &part](const Tensors &taken, const Variables &passed) { return run(part, taken, passed); },
        options_);
    part.wrapper.emplace(
        "part", [&part](const Tensors &taken, const Variables &passed) { return (*part.function)(taken, passed); },
        options_);
    return &part;
  }

  /// The variable of an input as a part knows it: what was passed for it, the last of several, or the captured one.
  Variable known(int input, const Part *part, const Variables &passed) const {
    Variable variable = variables_[static_cast<size_t>(input)];
    for (size_t i = 0; part && part->usesPassed && i < part->passed.size(); ++i)
      if (part->passed[i] == input)
        variable = passed[i];
    return variable;
  }

  /// The steps of a part, in its function.
  Tensors run(const Part &part, const Tensors &taken, const Variables &passed) {
    std::map<int, Tensor> values;
    for (size_t i = 0; i < taken.size(); ++i)
      values[part.takes[i]] = taken[i];
    size_t next = 0;
    for (int i = part.begin; i < part.end;) {
      if (next < part.parts.size() && part.parts[next]->begin == i) {
        Part &inner = *part.parts[next++];
        call(inner, values, {&part, &passed});
        i = inner.end;
        continue;
      }
      const RandomProgram::Step &step = program_.steps[static_cast<size_t>(i)];
      Tensors operands;
      for (int operand : step.operands)
        operands.push_back(isVariable(operand) ? known(operand, &part, passed).value() : values.at(operand));
      std::vector<const Tensor *> pointers;
      for (const Tensor &operand : operands)
        pointers.push_back(&operand);
      detail::applyOp(step.op, step.attrs, pointers, std::span(&values[numInputs() + i++], 1), Where::current());
    }
    Tensors given;
    for (int value : part.gives)
      given.push_back(values.at(value));
    return given;
  }

  /// Calls a part from the one around it. Called twice, its results are a mean of both calls'.
  void call(Part &part, std::map<int, Tensor> &values, std::pair<const Part *, const Variables *> around) {
    Tensors taken;
    for (int value : part.takes)
      taken.push_back(values.at(value));
    Variables passed;
    for (int input : part.passed)
      passed.push_back(known(input, around.first, around.second ? *around.second : Variables()));
    Tensors given = (*part.function)(taken, passed);
    if (part.again) {
      Tensors second = part.through ? (*part.wrapper)(taken, passed) : (*part.function)(taken, passed);
      for (size_t i = 0; i < given.size(); ++i)
        if (runtime::isFloat(given[i].dtype()))
          given[i] = given[i] * 0.25 + second[i] * 0.75;
    }
    for (size_t i = 0; i < given.size(); ++i)
      values[part.gives[i]] = given[i];
  }

  const RandomProgram &program_;
  FunctionOptions options_;
  std::mt19937_64 random_;
  Variables variables_; ///< by input; undefined where it is a tensor
  std::vector<std::unique_ptr<Part>> all_;
  Part *whole_;
};

TEST(RandomFunctions, ProgramsCutIntoFunctionsOfOneNameAreTheProgram) {
  uint64_t first = fromEnvironment("WENGERT_RANDOM_SEED", 1), count = fromEnvironment("WENGERT_RANDOM_PROGRAMS", 12);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program = randomProgram(
        seed, {.steps = 5 + static_cast<int>(seed % 17), .smooth = seed % 3 != 0, .empty = seed % 10 == 6});
    Tensors inputs = inputsOf(program);
    Tensors expected = gradientsOf(program, inputs);
    double scale = largestOf(expected) * std::max(1.0, program.largest);
    FunctionOptions options{.interpret = seed % 4 != 0};
    CutProgram cut(program, inputs, seed, options);

    auto gradients = [&](const Tensors &x) {
      GradientTape tape;
      tape.watch(floatsOf(x));
      Tensor loss = lossOf(cut.outputs(x));
      Tensors found{loss};
      for (const Grad &gradient :
           tape.gradient(loss, cut.sources(x), GradientOptions{.unconnected = Unconnected::zero}))
        found.push_back(gradient.value());
      return found;
    };
    auto second = [&](auto &&of, const Tensors &x) {
      GradientTape tape;
      tape.watch(floatsOf(x));
      Tensors found = of(x);
      Tensor sum(0.0);
      for (size_t i = 1; i < found.size(); ++i)
        sum = sum + reduce_sum(found[i] * found[i]);
      Tensors results{sum};
      for (const Grad &gradient : tape.gradient(sum, cut.sources(x), GradientOptions{.unconnected = Unconnected::zero}))
        results.push_back(gradient.value());
      return results;
    };
    expectClose(expected, gradients(inputs), "an eager tape over the functions", scale);
    auto traced = function("part", gradients, options);
    expectClose(expected, traced(inputs), "a traced tape over the functions", scale);

    expected = twice([&](const Tensors &x) { return gradientsOf(program, x); }, inputs);
    scale = largestOf(expected) * scale;
    if (scale > 1e12) // nothing left to compare
      continue;
    expectClose(expected, second(gradients, inputs), "second order, eager tapes over the functions", scale);
    expectClose(expected, second(traced, inputs), "second order, an eager tape over a traced gradient", scale);
    auto both = function("part", [&](const Tensors &x) { return second(gradients, x); }, options);
    expectClose(expected, both(inputs), "second order, traced tapes over the functions", scale);
    auto deep = function("part", [&](const Tensors &x) { return second(traced, x); }, options);
    expectClose(expected, deep(inputs), "second order, a traced tape over a traced gradient", scale);
  }
}

} // namespace
} // namespace wg::tests
