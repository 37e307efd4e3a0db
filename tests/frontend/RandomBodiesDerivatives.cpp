// Derivatives, lanes and open sizes of a random program with bodies: beside differences, beside one another.
#include "tests/frontend/RandomBodiesChecks.h"

namespace wg::tests {

/// What a loop without a turn stacks has rows of open sizes.
constexpr bool kOpenRowsOfNoTurn = false;

void Checks::openSizes() {
  std::function<bool(const BodyStep::Block &)> stacksNothing = [&](const BodyStep::Block &block) {
    return std::any_of(block.steps.begin(), block.steps.end(), [&](const BodyStep &step) {
      return ((step.kind == BodyStep::scan || step.kind == BodyStep::map) && step.numbers[2] == 0) ||
             std::any_of(step.blocks.begin(), step.blocks.end(), stacksNothing);
    });
  };
  bool empty = stacksNothing(program_.main);
  for (const BodyProgram::Function &function : program_.functions)
    empty = empty || stacksNothing(function.block);
  bool interpret = program_.seed % 8 == 2 && (kOpenRowsOfNoTurn || !empty);
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
    auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
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
    return tally(f.trace_count() == 1 ? "open sizes compared" : "open sizes traced again");
  }
}

void Checks::gradientsOfOneResult() {
  Program direct = [&](const Tensors &x) { return plain_(x); };
  for (size_t which = 0; which < expected_.size(); ++which) {
    if (!runtime::isFloat(expected_[which].dtype()))
      continue;
    auto one = [&](const Program &f) {
      return Program([&f, which](const Tensors &x) { return Tensors{f(x)[which]}; });
    };
    Grads eager = gradientsOf(one(direct), plain_, inputs_);
    plain_.reset();
    double bound =
        4 * tolerance("gradients of random programs", std::max(scale_, largestOf(valuesOf(eager))), moreAmplified_ * 4);
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

void Checks::twice() {
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

void Checks::jacobians() {
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
        auto f =
            function("jacobian", [&](const Tensors &x) { return jacobianOf(run, x, mode); }, {.interpret = interpret});
        expectSame(eager, f(inputs_), bound, how);
      }
    }
  tally("jacobians compared");
}

void Checks::differences() {
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

void Checks::forwards(bool traced) {
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

void Checks::second(bool traced) {
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

void Checks::forwardOverReverse(const Grads &hu, const Tensors &u, const Tensors &v, double scale, double amplified) {
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
    EXPECT_TRUE(isSame(wanted, found, bound)) << (way == 0   ? "hvp"
                                                  : way == 1 ? "interpreted hvp"
                                                             : "compiled hvp")
                                              << " gives " << found << ", tapes " << wanted << ", tolerance " << bound;
  }
  tally("hvp compared");
}

void Checks::lanes() {
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
    auto mapped =
        vmap([&](const Tensors &x) { return run(x); }, {.in_axes = all, .chunk_size = program_.seed % 9 == 1 ? 2 : 0});
    auto f = function("lanes", [&](const Tensors &x) { return mapped(x); }, {.interpret = interpret});
    std::string how = interpret ? "lanes, interpreted" : "lanes, compiled";
    try {
      bool eagerly = !interpret && program_.seed % 2 == 0;
      expectSame(expected, eagerly ? mapped(given) : f(given), bound, eagerly ? "lanes, eager" : how);
      expectSame(states[0], run.state(), bound, how + ", variables");
    } catch (const Error &error) {
      EXPECT_TRUE(program_.assigns) << how << ": " << error.what();
      return tally("lanes refused");
    }
    if (!program_.assigns && program_.dtype == f64)
      gradientsOfLanes(inputs, given, axes, f, how);
  }
  tally("lanes compared");
}

} // namespace wg::tests
