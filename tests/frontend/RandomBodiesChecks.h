// The checks of one random program with bodies. What they are is said in RandomBodiesTest.cpp.
#pragma once

#include "tests/agreement/Bounds.h"
#include "tests/agreement/RandomRun.h"
#include "tests/frontend/RandomBodiesCompare.h"

namespace wg::tests {

class Checks {
public:
  explicit Checks(const BodyProgram &program) : program_(program), plain_(program, program.seed % 4 != 0) {
    for (int v : program.inputs)
      inputs_.push_back(numbersOf(program.types[static_cast<size_t>(v)], static_cast<uint64_t>(v) + program.seed));
    epsilon_ = program.dtype == f64 ? 0x1p-52 : 0x1p-23;
  }
  void all();

private:
  double tolerance(const char *programs, double scale, double amplified) const {
    return boundOfPrograms(programs) * epsilon_ * std::max(scale * notes_.largest, amplified);
  }
  /// How much more than by itself a rounding of each step moves the results, measured.
  template <class F> double amplifies(const Tensors &results, F &&f) {
    Notes notes;
    notes.noise = program_.dtype == f64 ? 0x1p-32 : 0x1p-14;
    BodyRun run(program_, true);
    run.notes = &notes;
    Tensors noisy;
    try {
      noisy = f(std::as_const(run), inputs_);
    } catch (const Error &) { // another index
      EXPECT_TRUE(program_.mayFail);
    }
    if (notes.path != notes_.path || noisy.size() != results.size()) {
      close_ = true;
      return 0;
    }
    double most = 0;
    for (size_t i = 0; i < noisy.size(); ++i)
      if (runtime::isFloat(noisy[i].dtype())) {
        std::vector<double> a = results[i].to_vector<double>(), b = noisy[i].to_vector<double>();
        for (size_t k = 0; k < a.size(); ++k)
          most = std::max(most, std::fabs(a[k] - b[k]) / notes.noise);
      }
    return most;
  }
  void values();
  /// Inputs that are the values of variables, which the call may assign.
  template <class F> void aliased(const F &f, BodyRun &run, const std::string &how) {
    auto inputsOf = [&](const BodyRun &of) {
      Tensors inputs = inputs_;
      for (Tensor &input : inputs)
        for (const Variable &variable : of.variables)
          if (variable.dtype() == input.dtype() && variable.shape() == input.shape())
            input = variable.value();
      return inputs;
    };
    if (!program_.assigns || program_.mayFail)
      return;
    Notes notes;
    BodyRun plain(program_, true);
    plain.notes = &notes;
    run.reset();
    Tensors inputs = inputsOf(plain), expected = plain(inputs), given = inputsOf(run);
    Tensors found = f(given);
    if (notes.margin < (program_.dtype == f64 ? 1e-8 : 1e-3) || !(notes.largest < 1e6))
      return;
    double bound = 64 * tolerance("random programs", notes.largest, amplified_);
    expectSame(expected, found, bound, how + ", of the variables' values");
    expectSame(plain.state(), run.state(), bound, how + ", of the variables' values, variables");
    expectSame(inputs, given, 0, how + ", of the variables' values, which stay");
  }
  /// A trace in which one of the inputs' sizes is `?`, wherever it is.
  void openSizes();
  /// The same bits after it was saved and loaded.
  void saved();
  /// By the inputs, of one result of a call: its backward is of that alone.
  void gradientsOfOneResult();
  void gradients(uint64_t way);
  /// Two calls under one tape; the second one reads what the first one assigned.
  void twice();
  /// One result by one input, in both modes, of a call and inside of a function.
  void jacobians();
  /// What the plain run makes of moved inputs, captured tensors and variables; nothing where it takes another path.
  template <class F> std::optional<double> replayed(double step, const Tensors &directions, bool all, F &&measure) {
    Notes notes;
    notes.replays = true;
    notes.log = notes_.log;
    BodyRun run(program_, true);
    run.notes = &notes;
    Tensors x = moved(inputs_, directions, step);
    if (all) {
      size_t next = floatsOf(inputs_).size();
      for (Tensor &captured : run.captured)
        if (runtime::isFloat(captured.dtype()))
          captured = captured + directions[next++] * step;
      for (size_t i = 0; i < run.variables.size(); ++i)
        if (runtime::isFloat(run.variables[i].dtype()))
          notes.moves[static_cast<int>(i)] = directions[next++] * step;
    }
    double value = 0;
    try {
      value = measure(run, x);
    } catch (const Error &) {
      EXPECT_TRUE(program_.mayFail);
      return {};
    }
    if (notes.path != notes_.path || notes.turns != notes_.turns)
      return {};
    return value;
  }
  template <class F>
  void expectSlope(double exact, double scale, const Tensors &directions, bool all, F &&measure,
                   const std::string &what) {
    std::string tried;
    bool isTried = false;
    std::optional<double> before; // by ten times the step
    for (double h : {1e-4, 1e-5, 1e-6, 1e-7}) {
      std::optional<double> up = replayed(h, directions, all, measure), down = replayed(-h, directions, all, measure);
      if (!up || !down) {
        before.reset();
        continue;
      }
      isTried = true;
      double numeric = (*up - *down) / (2 * h);
      double bound = 1e-5 * std::max(1.0, scale) + 1e-14 * (std::fabs(*up) + notes_.largest) / h;
      if (std::fabs(exact - numeric) <= bound)
        return tally(what);
      // Where the third derivative is large, as that of softsign near 0 of a power: without its term (Richardson).
      if (before && std::fabs(exact - (100 * numeric - *before) / 99) <= bound)
        return tally(what);
      before = numeric;
      tried += " " + std::to_string(numeric);
    }
    if (!isTried)
      return tally("slopes where all steps take another path");
    ADD_FAILURE() << what << ": " << exact << ", by differences" << tried << ", scale " << scale;
  }
  Tensors allSources() const {
    Tensors sources = sourcesOf(plain_, inputs_);
    for (const Variable &variable : floatVariables(plain_))
      sources.push_back(variable.value());
    return sources;
  }
  void differences();
  void forwards(bool traced);
  void second(bool traced);
  /// The product with the Hessian by wg::hvp, beside the one by tapes.
  void forwardOverReverse(const Grads &hu, const Tensors &u, const Tensors &v, double scale, double amplified);
  void lanes();
  /// Gradients by what has lanes are those of each lane, gradients by what they share the sums of theirs.
  template <class F>
  void gradientsOfLanes(const std::vector<Tensors> &inputs, const Tensors &given, const LaneAxes &axes, const F &f,
                        const std::string &how) {
    GradientOptions options{.unconnected = Unconnected::zero};
    auto gradients = [&](const auto &of, const Tensors &x) {
      GradientTape tape;
      Tensors floats = floatsOf(x);
      tape.watch(floats);
      Tensors found;
      for (const Grad &grad : tape.gradient(lossOf(of(x)), floats, options))
        found.push_back(grad.value());
      return found;
    };
    std::vector<Tensors> each;
    double scale = 1;
    for (const Tensors &x : inputs) {
      each.push_back(gradients(plain_, x));
      scale = std::max(scale, largestOf(each.back()));
    }
    Tensors found = gradients(f, given);
    double bound = 16 * tolerance("gradients of random programs", scale, moreAmplified_ * scale);
    size_t next = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!runtime::isFloat(given[i].dtype()))
        continue;
      Tensors column;
      for (const Tensors &lane : each)
        column.push_back(lane[next]);
      Tensor stacked = stack(column);
      expectSame(axes.list[i].axis ? stacked : reduce_sum(stacked, 0), found[next++], bound,
                 how + ", gradient by input " + std::to_string(i));
    }
    tally("gradients of lanes compared");
  }
  /// A function that fails, too, and leaves the variables alone.
  void failing(const Error &wanted);
  /// The message; none where nobody reads what fails.
  std::string expectFailsAndKeeps(const std::function<void()> &f, const BodyRun &run, const std::string &how);

  const BodyProgram &program_;
  BodyRun plain_;
  Tensors inputs_, expected_, state_;
  Notes notes_;
  Grads grads_;
  double scale_ = 1, epsilon_ = 0, amplified_ = 0, moreAmplified_ = 0;
  bool close_ = false;
};

} // namespace wg::tests
