// Random programs with bodies (RandomBodies.h): conditions, loops, variables, calls and derivatives within one another.
// As plain C++, interpreted and compiled they have the same values and leave the same variables; their gradients are
// those of differences, forward mode fits to reverse mode, lanes are a loop's turns, and a call that fails changes
// nothing. WENGERT_RANDOM_PROGRAMS and WENGERT_RANDOM_SEED as in tests/agreement/RandomRun.h.
#include "tests/agreement/Bounds.h"
#include "tests/agreement/RandomRun.h"
#include "tests/frontend/RandomBodiesCompare.h"

#include <iostream>
#include <unistd.h>

namespace wg::tests {
namespace {

class Checks {
public:
  explicit Checks(const BodyProgram &program) : program_(program), plain_(program, program.seed % 4 != 0) {
    for (int v : program.inputs)
      inputs_.push_back(numbersOf(program.types[static_cast<size_t>(v)], static_cast<uint64_t>(v) + program.seed));
    epsilon_ = program.dtype == f64 ? 0x1p-52 : 0x1p-23;
  }

  void all() {
    uint64_t seed = program_.seed;
    plain_.notes = &notes_;
    try {
      expected_ = plain_(inputs_);
    } catch (const Error &error) {
      plain_.notes = nullptr;
      EXPECT_TRUE(program_.mayFail) << "the plain run fails: " << error.what();
      tally("programs that fail");
      return failing(error);
    }
    plain_.notes = nullptr;
    state_ = plain_.state();
    plain_.reset();
    if (!(notes_.largest < 1e8)) {
      tally("programs with large numbers");
      return;
    }
    close_ = notes_.margin < (program_.dtype == f64 ? 1e-8 : 1e-3);
    amplified_ = amplifies(joined(expected_, state_), [](const BodyRun &run, const Tensors &x) {
      Tensors results = run(x);
      return joined(results, run.state());
    });
    tally(close_ ? "programs with close choices" : "programs with values compared");
    values();
    if (::testing::Test::HasFailure())
      return;
    gradients(seed % 3);
    if (::testing::Test::HasFailure() || close_)
      return;
    if (scale_ > 1e6)
      return tally("programs with steep slopes");
    if (seed % 6 == 1)
      gradientsOfOneResult();
    if (seed % 4 == 2 && !program_.mayFail)
      openSizes();
    if (program_.dtype == f64 && notes_.margin > 1e-4)
      differences();
    forwards(seed % 4 == 1);
    if (seed % 5 == 2 && program_.dtype == f64)
      second(seed % 10 == 2);
    if (seed % 7 == 3)
      jacobians();
    if (seed % 3 == 1 && !program_.draws)
      lanes();
  }

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

  void values() {
    double bound = tolerance("random programs", 1, amplified_);
    Notes notes; // of a second call
    auto compare = [&](const Tensors &expected, const Tensors &state, const Tensors &found, const BodyRun &run,
                       const std::string &what) {
      if (close_)
        return;
      double most = bound * std::max(1.0, notes.largest / notes_.largest);
      expectSame(expected, found, most, what);
      expectSame(state, run.state(), most, what + ", variables");
    };
    Tensors eager = plain_(inputs_);
    compare(expected_, state_, eager, plain_, "eager");
    Tensors again, after;
    plain_.notes = &notes;
    try {
      again = plain_(inputs_);
      after = plain_.state();
    } catch (const Error &) {
      EXPECT_TRUE(program_.mayFail); // the variables are others now
    }
    plain_.notes = nullptr;
    bool isAgain = !after.empty() && notes.margin > (program_.dtype == f64 ? 1e-8 : 1e-3) && notes.largest < 1e8;
    for (bool interpret : {true, false}) {
      BodyRun run(program_, interpret);
      auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
      std::string how = interpret ? "interpreted" : "compiled";
      Tensors first = f(inputs_);
      compare(expected_, state_, first, run, how);
      if (after.empty())
        expectFailsAndKeeps([&] { f(inputs_); }, run, how + ", called again");
      if (!isAgain)
        continue;
      if (program_.seed % 4 == 2) {
        auto outer = function("outer", [&](const Tensors &x) { return f(x); }, {.interpret = interpret});
        compare(again, after, outer(inputs_), run, how + ", called again by another function");
      } else {
        compare(again, after, f(inputs_), run, how + ", called again");
      }
      if (!close_)
        expectSame(expected_, first, bound, how + ", after another call");
      aliased(f, run, how);
    }
    plain_.reset();
  }

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
  void openSizes() {
    std::set<int64_t> sizes;
    for (const Tensor &input : inputs_)
      sizes.insert(input.shape().begin(), input.shape().end());
    for (int64_t size : sizes) {
      Tensors specs;
      for (const Tensor &input : inputs_) {
        Shape shape = input.shape();
        for (int axis = 0; axis < shape.rank(); ++axis)
          if (shape[axis] == size)
            shape[axis] = dynamic;
        specs.push_back(Tensor(TensorSpec{input.dtype(), shape}));
      }
      BodyRun run(program_, true);
      auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = program_.seed % 8 == 2});
      try {
        f.trace(specs);
      } catch (const Error &) {
        tally("open sizes refused");
        continue;
      }
      expectSame(expected_, f(inputs_), tolerance("random programs", 1, amplified_), "open sizes");
      expectSame(state_, run.state(), tolerance("random programs", 1, amplified_), "open sizes, variables");
      run.reset();
      expectSameGradients(grads_, gradientsOf([&](const Tensors &x) { return f(x); }, run, inputs_),
                          tolerance("gradients of random programs", scale_, moreAmplified_), "open sizes, gradients");
      EXPECT_EQ(f.trace_count(), 1) << f.explain_last_trace() << f.report();
      return tally("open sizes compared");
    }
  }

  /// By the inputs, of one result of a call: its backward is of that alone.
  void gradientsOfOneResult() {
    Program direct = [&](const Tensors &x) { return plain_(x); };
    for (size_t which = 0; which < expected_.size(); ++which) {
      if (!runtime::isFloat(expected_[which].dtype()))
        continue;
      auto one = [&](const Program &f) {
        return Program([&f, which](const Tensors &x) { return Tensors{f(x)[which]}; });
      };
      Grads eager = gradientsOf(one(direct), plain_, inputs_);
      plain_.reset();
      double bound = 4 * tolerance("gradients of random programs", std::max(scale_, largestOf(valuesOf(eager))),
                                   moreAmplified_ * 4);
      for (bool interpret : {true, false}) {
        BodyRun run(program_, interpret);
        auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
        Program call = [&](const Tensors &x) { return f(x); };
        expectSameGradients(eager, gradientsOf(one(call), run, inputs_), bound,
                            "result " + std::to_string(which) + (interpret ? " interpreted" : " compiled"));
      }
      tally("gradients of one result compared");
      return;
    }
  }

  void gradients(uint64_t way) {
    if (way == 0 && program_.seed % 2 && program_.assigns && !program_.mayFail)
      twice();
    grads_ = gradientsOf([&](const Tensors &x) { return plain_(x); }, plain_, inputs_);
    plain_.reset();
    scale_ = largestOf(valuesOf(grads_));
    moreAmplified_ = amplifies(valuesOf(grads_), [](const BodyRun &run, const Tensors &x) {
      return valuesOf(gradientsOf([&](const Tensors &y) { return run(y); }, run, x));
    });
    double bound = tolerance("gradients of random programs", scale_, moreAmplified_);
    for (bool interpret : {true, false}) {
      std::string how = interpret ? "interpreted" : "compiled";
      FunctionOptions options{.interpret = interpret};
      BodyRun run(program_, interpret);
      Program direct = [&](const Tensors &x) { return run(x); };
      auto called = function("bodies", direct, options);
      Program call = [&](const Tensors &x) { return called(x); };
      Grads found;
      if (way == 0) {
        found = gradientsOf(call, run, inputs_);
        how += " call under an eager tape";
      } else {
        auto f = function(
            "gradients", [&](const Tensors &x) { return gradientsOf(way == 1 ? direct : call, run, x); }, options);
        found = f(inputs_);
        how += way == 1 ? " gradient" : " gradient of a call";
      }
      if (close_)
        continue;
      expectSameGradients(grads_, found, bound, how);
      expectSame(state_, run.state(), tolerance("random programs", 1, amplified_), how + ", variables");
    }
    tally("gradients compared");
  }

  /// Two calls under one tape; the second one reads what the first one assigned.
  void twice() {
    auto both = [](const Program &f) {
      return Program([&f](const Tensors &x) {
        Tensors results = f(x);
        return joined(results, f(x));
      });
    };
    Notes notes;
    plain_.notes = &notes;
    Program direct = [&](const Tensors &x) { return plain_(x); };
    Grads eager = gradientsOf(both(direct), plain_, inputs_);
    plain_.notes = nullptr;
    plain_.reset();
    double scale = largestOf(valuesOf(eager));
    if (close_ || notes.margin < (program_.dtype == f64 ? 1e-8 : 1e-3) || !(scale * notes.largest < 1e6))
      return;
    for (bool interpret : {true, false}) {
      BodyRun run(program_, interpret);
      auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
      Program call = [&](const Tensors &x) { return f(x); };
      expectSameGradients(eager, gradientsOf(both(call), run, inputs_),
                          64 * tolerance("gradients of random programs", scale * notes.largest, amplified_ * scale),
                          interpret ? "two interpreted calls" : "two compiled calls");
    }
    tally("gradients of two calls compared");
  }

  /// One result by one input, in both modes, of a call and inside of a function.
  void jacobians() {
    size_t target = 0, source = 0;
    auto isSuitable = [](const Tensor &x) { return runtime::isFloat(x.dtype()) && x.size() > 0 && x.size() < 20; };
    while (target < expected_.size() && !isSuitable(expected_[target]))
      ++target;
    while (source < inputs_.size() && !isSuitable(inputs_[source]))
      ++source;
    if (target == expected_.size() || source == inputs_.size())
      return;
    auto jacobianOf = [&](const auto &f, const Tensors &x, DerivativeMode mode) {
      GradientTape tape;
      tape.watch(x[source]);
      Tensor y = f(x)[target];
      return tape.jacobian(y, x[source], JacobianOptions{.mode = mode, .unconnected = Unconnected::zero}).value();
    };
    Tensor eager = jacobianOf(plain_, inputs_, DerivativeMode::reverse);
    plain_.reset();
    double bound = 4 * tolerance("gradients of random programs", std::max(scale_, largestOf({eager})),
                                 std::max(moreAmplified_, amplified_) * 16);
    expectSame(eager, jacobianOf(plain_, inputs_, DerivativeMode::forward), bound, "jacobian, forward mode");
    plain_.reset();
    for (bool interpret : {true, false})
      for (DerivativeMode mode : {DerivativeMode::forward, DerivativeMode::reverse}) {
        BodyRun run(program_, interpret);
        std::string how = std::string(interpret ? "interpreted" : "compiled") + " jacobian, " +
                          (mode == DerivativeMode::forward ? "forward" : "reverse") + " mode";
        if (program_.seed % 2) {
          auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
          expectSame(eager, jacobianOf(f, inputs_, mode), bound, how + ", of a call");
        } else {
          auto f = function("jacobian", [&](const Tensors &x) { return jacobianOf(run, x, mode); },
                            {.interpret = interpret});
          expectSame(eager, f(inputs_), bound, how);
        }
      }
    tally("jacobians compared");
  }

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
    for (double h : {1e-5, 1e-6, 1e-4, 1e-7}) {
      std::optional<double> up = replayed(h, directions, all, measure), down = replayed(-h, directions, all, measure);
      if (!up || !down) {
        tried += " another path";
        continue;
      }
      double numeric = (*up - *down) / (2 * h);
      double bound = 1e-5 * std::max(1.0, scale) + 1e-14 * (std::fabs(*up) + notes_.largest) / h;
      if (std::fabs(exact - numeric) <= bound)
        return tally(what);
      tried += " " + std::to_string(numeric);
    }
    ADD_FAILURE() << what << ": " << exact << ", by differences" << tried << ", scale " << scale;
  }

  Tensors allSources() const {
    Tensors sources = sourcesOf(plain_, inputs_);
    for (const Variable &variable : floatVariables(plain_))
      sources.push_back(variable.value());
    return sources;
  }

  void differences() {
    Tensors directions = directionsOf(allSources(), 50);
    double slope = 0, scale = 0;
    for (size_t i = 0; i < directions.size(); ++i) {
      slope += dot(grads_[i + 1], directions[i]);
      scale = std::max(scale, std::fabs(dot(grads_[i + 1], directions[i])));
    }
    expectSlope(
        slope, scale, directions, true,
        [](const BodyRun &run, const Tensors &x) { return lossOf(run(x)).item<double>(); }, "slopes by differences");
  }

  void forwards(bool traced) {
    Tensors directions = directionsOf(allSources(), 70), moves;
    size_t next = 0, numInputs = floatsOf(inputs_).size();
    for (const Tensor &x : inputs_)
      moves.push_back(runtime::isFloat(x.dtype()) ? directions[next++] : Tensor());
    double inputsOnly = 0, all = 0, scale = 1;
    for (size_t i = 0; i < directions.size(); ++i) {
      double each = dot(grads_[i + 1], directions[i]);
      inputsOnly += i < numInputs ? each : 0;
      all += each;
      scale += std::fabs(each);
    }
    double bound = 4 * tolerance("gradients of random programs", std::max(scale, scale_), moreAmplified_ * 4);
    auto expect = [&](const Grad &found, double wanted, const std::string &what) {
      double number = found.has_value() ? found.value().item<double>() : 0;
      EXPECT_TRUE(isSame(wanted, number, bound))
          << what << " gives " << number << ", reverse mode " << wanted << ", tolerance " << bound;
    };
    auto along = [&](const BodyRun &run, const Tensors &x) {
      return jvp([&](const Tensors &y) { return lossOf(run(y)); }, x, moves).second;
    };
    expect(along(plain_, inputs_), inputsOnly, "jvp");
    plain_.reset();
    auto accumulated = [&](const BodyRun &run, const Program &f) {
      Tensors sources = sourcesOf(run, inputs_);
      auto middle = directions.begin() + static_cast<std::ptrdiff_t>(sources.size());
      ForwardAccumulator accumulator(sources, Tensors(directions.begin(), middle));
      for (const Variable &variable : floatVariables(run))
        accumulator.watch(variable, *middle++);
      return accumulator.jvp(lossOf(f(inputs_)));
    };
    expect(accumulated(plain_, [&](const Tensors &x) { return plain_(x); }), all, "an accumulator");
    plain_.reset();
    tally("jvp compared");
    if (!traced)
      return;
    for (bool interpret : {true, false}) {
      BodyRun run(program_, interpret);
      auto f = function("jvp", [&](const Tensors &x) { return along(run, x); }, {.interpret = interpret});
      expect(f(inputs_), inputsOnly, interpret ? "interpreted jvp" : "compiled jvp");
      run.reset();
      auto called = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
      expect(accumulated(run, [&](const Tensors &x) { return called(x); }), all,
             interpret ? "an accumulator over an interpreted call" : "an accumulator over a compiled call");
    }
    tally("traced jvp compared");
  }

  void second(bool traced) {
    Tensors u = directionsOf(floatsOf(inputs_), 90), v = directionsOf(floatsOf(inputs_), 120);
    Program direct = [&](const Tensors &x) { return plain_(x); };
    Grads eager = secondOf(direct, plain_, inputs_, u);
    plain_.reset();
    double scale = largestOf(valuesOf(eager));
    if (scale > 1e6)
      return;
    double mostAmplified = amplifies(valuesOf(eager), [&](const BodyRun &run, const Tensors &x) {
      return valuesOf(secondOf([&](const Tensors &y) { return run(y); }, run, x, u));
    });
    if (close_)
      return;
    for (bool interpret : {true, false}) {
      BodyRun run(program_, interpret);
      FunctionOptions options{.interpret = interpret};
      Program inner = [&](const Tensors &x) { return run(x); };
      auto called = function("bodies", inner, options);
      std::string how = interpret ? "interpreted" : "compiled";
      Grads found;
      if (traced) {
        auto f = function("second", [&](const Tensors &x) { return secondOf(inner, run, x, u); }, options);
        found = f(inputs_);
      } else {
        found = secondOf([&](const Tensors &x) { return called(x); }, run, inputs_, u);
      }
      expectSameGradients(eager, found, tolerance("gradients of random programs", scale * scale_, mostAmplified),
                          how + (traced ? ", second order, traced" : ", second order, eager tapes"));
    }
    forwardOverReverse(eager, u, v, scale, mostAmplified);
    tally("second order compared");
    if (notes_.margin < 1e-4)
      return;
    double slope = 0, most = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      slope += dot(eager[i + 1], v[i]);
      most = std::max(most, std::fabs(dot(eager[i + 1], v[i])));
    }
    expectSlope(
        slope, most, v, false,
        [&](const BodyRun &run, const Tensors &x) {
          Program f = [&](const Tensors &y) { return run(y); };
          return slopeOf(gradientsOf(f, run, x), u).item<double>();
        },
        "second slopes by differences");
  }

  /// The product with the Hessian by wg::hvp, beside the one by tapes.
  void forwardOverReverse(const Grads &hu, const Tensors &u, const Tensors &v, double scale, double amplified) {
    double wanted = 0, most = 1;
    for (size_t i = 0; i < v.size(); ++i) {
      wanted += dot(hu[i + 1], v[i]);
      most += std::fabs(dot(hu[i + 1], v[i]));
    }
    auto of = [&](const BodyRun &run, const Tensors &floats) {
      auto loss = [&](const Tensors &x) {
        Tensors all = inputs_;
        size_t next = 0;
        for (Tensor &each : all)
          if (runtime::isFloat(each.dtype()))
            each = x[next++];
        return lossOf(run(all));
      };
      Tensor sum(0.0);
      size_t next = 0;
      for (const Grad &each : hvp(loss, floats, v)) {
        if (each.has_value())
          sum = sum + reduce_sum(each.value() * u[next]);
        ++next;
      }
      return sum;
    };
    for (int way : {0, 1, 2}) {
      if (way > 0 && program_.seed % 3 != 1)
        continue;
      BodyRun run(program_, way != 2);
      auto f = function("hvp", [&](const Tensors &x) { return of(run, x); }, {.interpret = way == 1});
      double found = (way == 0 ? of(run, floatsOf(inputs_)) : f(floatsOf(inputs_))).item<double>();
      double bound = 16 * tolerance("gradients of random programs", std::max(most, scale * scale_), amplified * 16);
      EXPECT_TRUE(isSame(wanted, found, bound))
          << (way == 0   ? "hvp"
              : way == 1 ? "interpreted hvp"
                         : "compiled hvp")
          << " gives " << found << ", tapes " << wanted << ", tolerance " << bound;
    }
    tally("hvp compared");
  }

  void lanes() {
    constexpr size_t kLanes = 3;
    std::vector<Tensors> inputs(kLanes, inputs_);
    LaneAxes axes(0);
    axes.isOne = false;
    axes.list.clear();
    Tensors given;
    bool some = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      bool mapped = (i + 1 == inputs_.size() && !some) || (program_.seed >> (3 + i)) % 4 != 0;
      axes.list.push_back(mapped ? LaneAxis(0) : LaneAxis(unmapped));
      some = some || mapped;
      if (!mapped) {
        given.push_back(inputs_[i]);
        continue;
      }
      Tensors column;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        inputs[lane][i] = numbersOf({inputs_[i].dtype(), inputs_[i].shape()}, program_.seed + i * 5 + lane * 3);
        column.push_back(inputs[lane][i]);
      }
      given.push_back(stack(column));
    }
    std::vector<Tensors> results, states;
    double amplified = amplified_;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      Notes notes;
      plain_.reset();
      plain_.notes = &notes;
      try {
        results.push_back(plain_(inputs[lane]));
      } catch (const Error &error) {
        EXPECT_TRUE(program_.mayFail) << "lane " << lane << ": " << error.what();
      }
      plain_.notes = nullptr;
      states.push_back(plain_.state());
      plain_.reset();
      if (results.size() <= lane)
        return tally("lanes left out");
      std::swap(notes_, notes);
      std::swap(inputs_, inputs[lane]);
      amplified =
          std::max(amplified, amplifies(joined(results[lane], states[lane]), [](const BodyRun &run, const Tensors &x) {
                     Tensors found = run(x);
                     return joined(found, run.state());
                   }));
      std::swap(notes_, notes);
      std::swap(inputs_, inputs[lane]);
      if (close_ || notes.margin < (program_.dtype == f64 ? 1e-8 : 1e-3) || !(notes.largest < 1e6))
        return tally("lanes left out");
      notes_.largest = std::max(notes.largest, notes_.largest);
    }
    Tensors expected;
    for (size_t i = 0; i < results[0].size(); ++i)
      expected.push_back(stack({results[0][i], results[1][i], results[2][i]}));
    ArgumentAxes all(0);
    all.isOne = false;
    all.list = {axes};
    double bound = tolerance("gradients of random programs", 1, amplified);
    for (bool interpret : {true, false}) {
      BodyRun run(program_, interpret);
      auto mapped = vmap([&](const Tensors &x) { return run(x); },
                         {.in_axes = all, .chunk_size = program_.seed % 9 == 1 ? 2 : 0});
      auto f = function("lanes", [&](const Tensors &x) { return mapped(x); }, {.interpret = interpret});
      std::string how = interpret ? "lanes, interpreted" : "lanes, compiled";
      try {
        bool eagerly = !interpret && program_.seed % 2 == 0;
        expectSame(expected, eagerly ? mapped(given) : f(given), bound, eagerly ? "lanes, eager" : how);
        expectSame(states[0], run.state(), bound, how + ", variables");
      } catch (const Error &error) {
        EXPECT_TRUE(program_.assigns) << how << ": " << error.what();
        return tally("lanes refused: " + error.message().substr(0, 90));
      }
      if (!program_.assigns && program_.dtype == f64)
        gradientsOfLanes(inputs, given, axes, f, how);
    }
    tally("lanes compared");
  }

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
  void failing(const Error &wanted) {
    plain_.reset();
    if (program_.functions.empty())
      EXPECT_THROW(plain_(inputs_), Error) << "eager";
    for (bool interpret : {true, false})
      for (bool gradient : {false, true}) {
        BodyRun run(program_, interpret);
        Program direct = [&](const Tensors &x) { return run(x); };
        auto f = function("bodies", direct, {.interpret = interpret});
        auto g = function("gradients", [&](const Tensors &x) { return gradientsOf(direct, run, x); },
                          {.interpret = interpret});
        std::string how = std::string(interpret ? "interpreted" : "compiled") + (gradient ? " gradient" : "");
        std::string message = expectFailsAndKeeps([&] { gradient ? (void)g(inputs_) : (void)f(inputs_); }, run, how);
        if (!message.empty())
          tally(message == wanted.message() ? "failures with the message" : "failures with another message");
      }
  }

  /// The message; none where nobody reads what fails.
  std::string expectFailsAndKeeps(const std::function<void()> &f, const BodyRun &run, const std::string &how) {
    Tensors before = run.state();
    try {
      f();
      tally("failures of what nobody reads");
      return "";
    } catch (const Error &error) {
      Tensors after = run.state();
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_EQ(before[i].to_vector<double>(), after[i].to_vector<double>()) << how << ", variable " << i;
      tally("failing calls that leave the variables");
      return error.message();
    }
  }

  const BodyProgram &program_;
  BodyRun plain_;
  Tensors inputs_, expected_, state_;
  Notes notes_;
  Grads grads_;
  double scale_ = 1, epsilon_ = 0, amplified_ = 0, moreAmplified_ = 0;
  bool close_ = false;
};

TEST(RandomBodies, AllWaysGiveTheSame) {
  forSeeds(300, {.check =
                     [](uint64_t seed, const std::set<int> &cuts) {
                       alarm(120); // a loop that does not end is a failure, too
                       BodyProgram program = randomBodies(seed, cuts);
                       try {
                         Checks(program).all();
                       } catch (const std::exception &error) {
                         ADD_FAILURE() << error.what();
                       }
                       alarm(0);
                       if (::testing::Test::HasFailure())
                         std::cerr << toString(program);
                     },
                 .textOf = [](uint64_t seed, const std::set<int> &cuts) { return toString(randomBodies(seed, cuts)); },
                 .stepsOf = [](uint64_t seed) { return randomBodies(seed).numSteps; }});
}

} // namespace
} // namespace wg::tests
