// Runs a program with bodies: each step is the call that a user would write, on states in the structures of C++.
#include "tests/frontend/RandomBodies.h"

#include <algorithm>
#include <cmath>

namespace wg::tests {

using Step = BodyStep;
using Block = BodyStep::Block;

namespace {

/// A struct among the states.
struct Mixed {
  Tensor first;
  std::vector<Tensor> rest;
  WENGERT_FIELDS(first, rest)
};
using List = Tensors;
using Pair = std::pair<Tensor, Tensor>;
using Named = std::map<std::string, Tensor>;
using Nested = std::tuple<Tensor, std::optional<Tensor>, std::array<Tensor, 1>>;

/// A structure with places for `count` tensors.
template <class S> S emptyOf(size_t count) {
  if constexpr (std::same_as<S, List>) {
    return List(count);
  } else if constexpr (std::same_as<S, Named>) {
    Named named;
    for (size_t i = 0; i < count; ++i)
      named["t" + std::to_string(i)] = Tensor();
    return named;
  } else if constexpr (std::same_as<S, Mixed>) {
    return {Tensor(), List(count - 1)};
  } else if constexpr (std::same_as<S, Nested>) {
    return {Tensor(), Tensor(), {}};
  } else {
    return {};
  }
}
template <class S> S pack(const Tensor *tensors, size_t count) {
  return detail::mapTensors(emptyOf<S>(count), [&](const Tensor &) { return *tensors++; });
}
template <class S> S pack(const Tensors &tensors) { return pack<S>(tensors.data(), tensors.size()); }
template <class S> Tensors flat(const S &structure) { return detail::tensorsOf(structure); }
void append(Tensors &list, const Tensors &more) { list.insert(list.end(), more.begin(), more.end()); }
Tensors joined(Tensors a, const Tensors &b) {
  append(a, b);
  return a;
}
Tensors part(const Tensors &list, size_t from, size_t to) {
  return {list.begin() + static_cast<std::ptrdiff_t>(from), list.begin() + static_cast<std::ptrdiff_t>(to)};
}

/// Calls `use` with a structure that holds `count` tensors, by preference number `structure`.
template <class Use> Tensors structured(int structure, size_t count, Use use) {
  if (count == 1 && structure % 2)
    return use(std::type_identity<Tensor>());
  if (count == 2 && structure % 2)
    return use(std::type_identity<Pair>());
  if (count == 3 && structure % 2)
    return use(std::type_identity<Nested>());
  if (structure == 2)
    return use(std::type_identity<Named>());
  if (structure == 4 && count > 0)
    return use(std::type_identity<Mixed>());
  return use(std::type_identity<List>());
}

/// Adds up its rows, or applies y = a y + b: pairs of a and b.
List join(bool products, const List &x, const List &y) {
  if (x.size() == 2)
    return {x[0] * y[0], y[0] * x[1] + y[1]};
  return {products ? x[0] * y[0] : x[0] + y[0]};
}

} // namespace

Tensor numbersOf(const TensorType &type, uint64_t phase) {
  int64_t count = type.shape.numElements();
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(0.7 * static_cast<double>(i) + 1.3 * static_cast<double>(phase) + 0.4));
  if (type.dtype == i64) {
    std::vector<int64_t> integers;
    for (double x : values)
      integers.push_back(static_cast<int64_t>((x + 1) * 1.99));
    return Tensor::from(integers, type.shape);
  }
  if (type.dtype == boolean)
    return cast(Tensor::from(values, type.shape) > 0.0, boolean);
  return cast(Tensor::from(values, type.shape), type.dtype);
}

BodyRun::BodyRun(const BodyProgram &program, bool interpret)
    : program(program), generator(static_cast<int64_t>(program.seed)) {
  for (const TensorType &type : program.variables)
    variables.emplace_back(numbersOf(type, variables.size() + 3));
  for (int v : program.captured)
    captured.push_back(numbersOf(program.types[static_cast<size_t>(v)], static_cast<uint64_t>(v) + 11));
  for (const BodyProgram::Function &function : program.functions)
    functions_.push_back(wg::function("called",
                                      [this, &function](const Tensors &x) {
                                        Env env;
                                        for (size_t i = 0; i < this->program.captured.size(); ++i)
                                          env[this->program.captured[i]] = captured[i];
                                        return run(function.block, std::move(env), x);
                                      },
                                      {.interpret = interpret}));
}

void BodyRun::reset() {
  for (size_t i = 0; i < variables.size(); ++i)
    variables[i].assign(numbersOf(program.variables[i], i + 3));
  generator.state().assign(random::key(static_cast<int64_t>(program.seed)));
}

Tensors BodyRun::state() const {
  Tensors values;
  for (const Variable &variable : variables)
    values.push_back(variable.value());
  values.push_back(generator.state().value());
  return values;
}

Tensors BodyRun::operator()(const Tensors &inputs) const {
  Env env;
  for (size_t i = 0; i < program.captured.size(); ++i)
    env[program.captured[i]] = captured[i];
  return run(program.main, std::move(env), inputs);
}

Tensors BodyRun::run(const Block &block, Env env, const Tensors &arguments) const {
  for (size_t i = 0; i < block.parameters.size(); ++i)
    env[block.parameters[i]] = arguments.at(i);
  for (const Step &each : block.steps)
    step(each, env);
  Tensors results;
  for (int result : block.results)
    results.push_back(env.at(result));
  return results;
}

void BodyRun::step(const Step &step, Env &env) const {
  Tensors operands, results;
  for (int operand : step.operands)
    operands.push_back(env.at(operand));
  auto type = [&] { return program.types[static_cast<size_t>(step.outs[0])]; };
  size_t which = step.numbers.empty() ? 0 : static_cast<size_t>(step.numbers[0]);
  switch (step.kind) {
  case Step::op:
    if (notesHere())
      watchKinks(step, operands);
    results = {applyNamed(step, operands)};
    if (step.name == "stop_gradient")
      results = {logged(results[0])};
    break;
  case Step::constant:
    results = {type().dtype == i64 && step.numbers.size() > 1 && step.numbers[1] == 3 ? zeros(type().shape, i64)
               : step.numbers.size() > 1 && step.numbers[1] == 2 && type().dtype != boolean
                   ? ones(type().shape, type().dtype)
                   : at_trace_time([&] { return numbersOf(type(), which); })};
    break;
  case Step::read: results = {logged(variables[which].value(), static_cast<int>(which))}; break;
  case Step::assign:
    if (step.numbers[1] == 0)
      variables[which].assign(operands[0]);
    else if (step.numbers[1] == 1)
      variables[which].assign_add(operands[0]);
    else
      variables[which].assign_sub(operands[0]);
    break;
  case Step::draw: results = {generator.uniform(type().shape, -1, 1, type().dtype)}; break;
  case Step::call:
    if (notesHere()) {
      Env inner;
      for (size_t i = 0; i < program.captured.size(); ++i)
        inner[program.captured[i]] = captured[i];
      results = run(program.functions[which].block, std::move(inner), operands);
    } else {
      results = (*functions_[which])(operands);
    }
    break;
  case Step::cond:
  case Step::switchCase: results = control(step, env, operands); break;
  case Step::whileLoop:
  case Step::range:
  case Step::rangeTo: results = loop(step, env, operands); break;
  case Step::scan:
  case Step::map:
  case Step::fold:
  case Step::associative: results = scanned(step, env, operands); break;
  default: results = derived(step, env, operands);
  }
  for (size_t i = 0; i < step.outs.size(); ++i) {
    if (notesHere() && notes->noise != 0 && runtime::isFloat(results.at(i).dtype()))
      results[i] = results[i] * (1 + notes->noise * ((step.outs[i] * 7 + static_cast<int>(i)) % 5 < 2 ? 1 : -1));
    env[step.outs[i]] = results.at(i);
    const TensorType &wanted = program.types[static_cast<size_t>(step.outs[i])];
    if (results[i].dtype() != wanted.dtype || (results[i].shape().isStatic() && results[i].shape() != wanted.shape))
      throw std::logic_error("step " + std::to_string(step.number) + " gives " + to_string(results[i].dtype()) +
                             to_string(results[i].shape()) + ", wanted " + to_string(wanted));
    noteValue(results[i]);
  }
}

Tensors BodyRun::control(const Step &step, const Env &env, const Tensors &operands) const {
  return structured(step.structure, step.blocks[0].results.size(), [&]<class S>(std::type_identity<S>) {
    auto branch = [&](size_t i) {
      return [this, &step, &env, i] {
        choose(i + 1);
        return pack<S>(run(step.blocks[std::min(i, step.blocks.size() - 1)], env, {}));
      };
    };
    const Tensor &selector = operands[0];
    if (step.kind == Step::cond)
      return flat(wg::cond(selector, branch(0), branch(1)));
    switch (step.blocks.size()) {
    case 1: return flat(switch_case(selector, branch(0)));
    case 2: return flat(switch_case(selector, branch(0), branch(1)));
    case 3: return flat(switch_case(selector, branch(0), branch(1), branch(2)));
    default: return flat(switch_case(selector, branch(0), branch(1), branch(2), branch(3)));
    }
  });
}

Tensors BodyRun::loop(const Step &step, const Env &env, const Tensors &operands) const {
  const Block &body = step.blocks.back();
  size_t count = body.results.size();
  return structured(step.structure, count, [&]<class S>(std::type_identity<S>) {
    S initial = pack<S>(part(operands, 0, count));
    if (step.kind == Step::whileLoop) {
      Tensors found = flat(while_loop([&](const S &s) { return run(step.blocks[0], env, flat(s))[0]; },
                                      [&](const S &s) {
                                        choose(7);
                                        return pack<S>(run(body, env, flat(s)));
                                      },
                                      initial, {.max_steps = step.numbers[0], .differentiable = !step.flag}));
      choose(8);
      if (step.flag)
        for (Tensor &x : found)
          x = logged(x);
      return found;
    }
    auto turn = [&](const Tensor &i, const S &s) {
      choose(7);
      return pack<S>(run(body, env, joined({i}, flat(s))));
    };
    if (step.kind == Step::range)
      return flat(for_range(step.numbers[0], step.numbers[1], turn, initial, RangeOptions{.unroll = step.flag}));
    return flat(for_range(step.numbers[0], operands.back(), turn, initial, WhileOptions{.max_steps = step.numbers[1]}));
  });
}

Tensors BodyRun::scanned(const Step &step, const Env &env, const Tensors &operands) const {
  if (step.kind == Step::associative) {
    auto by = [&](const List &x, const List &y) { return join(step.numbers[0], x, y); };
    return associative_scan(by, operands, {.reverse = step.flag});
  }
  auto numStates = static_cast<size_t>(step.numbers[0]), numXs = static_cast<size_t>(step.numbers[1]);
  const Block &body = step.blocks[0];
  Tensors states = part(operands, 0, numStates), xs = part(operands, numStates, operands.size());
  size_t numYs = body.results.size() - numStates;
  ScanOptions options{.reverse = step.flag, .length = numXs == 0 ? step.numbers[2] : -1};
  auto turn = [&](const Tensors &s, const Tensors &x) {
    choose(7);
    return run(body, env, joined(s, x));
  };
  auto over = [&]<class S, class X, class Y>(std::type_identity<S>, std::type_identity<X>, std::type_identity<Y>) {
    if (step.kind == Step::map)
      return flat(wg::map([&](const X &x) { return pack<Y>(turn({}, flat(x))); }, pack<X>(xs)));
    if (step.kind == Step::fold)
      return flat(fold([&](const S &s, const X &x) { return pack<S>(turn(flat(s), flat(x))); }, pack<S>(states),
                       pack<X>(xs), options));
    auto f = [&](const S &s, const X &x) {
      Tensors results = turn(flat(s), flat(x));
      return std::pair(pack<S>(part(results, 0, numStates)), pack<Y>(part(results, numStates, results.size())));
    };
    auto [after, ys] = wg::scan(f, pack<S>(states), pack<X>(xs), options);
    return joined(flat(after), flat(ys));
  };
  auto types = [&]<class S, class X, class Y>() {
    return over(std::type_identity<S>(), std::type_identity<X>(), std::type_identity<Y>());
  };
  bool one = step.structure % 2;
  if (numXs == 0)
    return one && numStates > 0 ? types.operator()<Mixed, std::monostate, Named>()
                                : types.operator()<List, std::monostate, List>();
  if (one && numStates == 1 && numXs == 1 && numYs == 1)
    return types.operator()<Tensor, Tensor, Tensor>();
  if (one && numStates == 2 && numXs == 2)
    return types.operator()<Pair, Pair, List>();
  if (one && numXs == 1 && numYs == 1)
    return types.operator()<Named, Tensor, Tensor>();
  if (one && numStates == 3 && numXs == 1)
    return types.operator()<Nested, List, Named>();
  if (step.structure == 2 && numStates > 0 && numYs > 0)
    return types.operator()<Mixed, Named, Mixed>();
  if (step.structure == 4 && numXs == 2 && numYs == 2)
    return types.operator()<List, Pair, Pair>();
  return types.operator()<List, List, List>();
}

/// The float results as one number.
static Tensor sumOf(const Tensors &results, DType dtype) {
  Tensor sum(0.0);
  for (const Tensor &result : results)
    if (runtime::isFloat(result.dtype()))
      sum = sum + cast(reduce_sum(sin(result)), f64);
  return cast(sum, dtype);
}

Tensors BodyRun::derived(const Step &step, const Env &env, const Tensors &operands) const {
  const Block &body = step.blocks[0];
  const TensorType &out = program.types[static_cast<size_t>(step.outs[0])];
  auto valueOf = [&](const Tensor &x) { return run(body, env, {x})[0]; };
  auto total = [&](const Tensor &x) { return sumOf(run(body, env, {x}), program.dtype); };
  auto orZeros = [&](const Grad &grad) { return grad.has_value() ? grad.value() : zeros(out.shape, out.dtype); };
  if (step.kind == Step::gradient) {
    if (step.numbers[0] == 1)
      return {orZeros(grad(total)(operands[0]))};
    Tensor x = step.numbers[0] == 0 ? identity(operands[0]) : operands[0];
    GradientTape tape;
    tape.watch(x);
    Tensor y = total(x);
    return {tape.gradient(y, x, {.unconnected = Unconnected::zero}).value()};
  }
  if (step.kind == Step::tangent) {
    if (step.numbers[0] == 1)
      return {orZeros(jvp(valueOf, operands[0], operands[0]).second)};
    Tensor x = identity(operands[0]);
    ForwardAccumulator accumulator(x, operands[0]);
    return {orZeros(accumulator.jvp(valueOf(x)))};
  }
  if (!notesHere())
    return {vmap(valueOf)(operands[0])};
  Tensors rows;
  for (const Tensor &row : operands[0])
    rows.push_back(valueOf(row));
  return {stack(rows)};
}

void BodyRun::choose(uint64_t which) const {
  if (!notesHere())
    return;
  notes->path = notes->path * 1099511628211u + which;
  notes->turns += which == 7;
}
void BodyRun::keepAway(const Tensor &distances) const {
  for (double d : distances.to_vector<double>())
    notes->margin = std::min(notes->margin, std::fabs(d));
}
void BodyRun::noteValue(const Tensor &value) const {
  if (!notesHere() || !runtime::isFloat(value.dtype()))
    return;
  for (double x : value.to_vector<double>())
    notes->largest = std::isfinite(x) ? std::max(notes->largest, std::fabs(x)) : 1e300;
}
Tensor BodyRun::logged(const Tensor &value, int variable) const {
  if (!notesHere())
    return value;
  if (!notes->replays) {
    notes->log.push_back(value);
    return value;
  }
  Tensor before = notes->next < notes->log.size() ? notes->log[notes->next++] : value;
  auto move = notes->moves.find(variable);
  return move == notes->moves.end() ? before : before + move->second;
}

} // namespace wg::tests
