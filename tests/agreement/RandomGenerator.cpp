#include "tests/agreement/RandomGenerator.h"

#include "runtime/Random.h"
#include "tests/Samples.h"

#include <algorithm>
#include <cmath>

namespace wg::tests {

using namespace runtime;

int Generator::input(DType dtype, Shape shape, double lo, double hi) {
  // Inputs come before steps; values are renumbered at the end.
  Array array = Array::empty(dtype, shape);
  uint64_t seed = next();
  for (int64_t i = 0; i < array.numElements(); ++i) {
    double u = randomUniform<double>(static_cast<int64_t>(seed >> 1), 0, i);
    detail::store(array, i,
                  dtype == DType::boolean ? u > 0.5
                  : isFloat(dtype)        ? lo + (hi - lo) * u
                                          : std::floor(lo + (hi - lo) * u));
  }
  program_.values.push_back(array);
  program_.steps.push_back({OpId::call, Attrs(), {}}); // stands for an input until the end
  raw_.push_back(true);
  hidden_.push_back(false);
  return static_cast<int>(program_.values.size()) - 1;
}

/// Whether there is no NaN among the floats, and nothing large that would say how far results may be apart.
bool Generator::isBounded(const Array &value, bool infinite) {
  for (int64_t i = 0; isFloat(value.dtype()) && i < value.numElements(); ++i) {
    double x = value.dtype() == DType::f64 ? value.data<double>()[i] : value.data<float>()[i];
    if (!(std::fabs(x) < 1e4) && !(infinite && std::isinf(x)))
      return false;
  }
  return true;
}

Generator::Maybe Generator::step(OpId op, const Attrs &attrs, std::vector<int> operands, bool raw, bool infinite) {
  std::vector<Array> arrays;
  for (int operand : operands) {
    if (operand < 0)
      return -1;
    arrays.push_back(valueOf(operand));
  }
  Array result;
  if (op == OpId::constant) {
    result = attrs.array(0);
  } else {
    TypeList types;
    std::vector<TensorType> operandTypes;
    for (const Array &array : arrays)
      operandTypes.push_back(array.type);
    if (!inferTypes(op, operandTypes, attrs, types).ok() ||
        types[0].shape.numElements() > (options_.large ? 300000 : 6000) || types[0].shape.size() > kHighestRank)
      return -1;
    if (!execute(OpCall{op, attrs, arrays, {}}, std::span(&result, 1)).ok())
      return -1;
  }
  // The sine of thousands says more of the argument's last digits than of the program.
  if (op == OpId::sin || op == OpId::cos)
    for (int64_t i = 0; i < arrays[0].numElements(); ++i)
      if (std::fabs(arrays[0].dtype() == DType::f64 ? arrays[0].data<double>()[i] : arrays[0].data<float>()[i]) > 100)
        return -1;
  if (!isBounded(result, infinite))
    return -1;
  bool exact = raw; // a rounded sum is not raw, whatever its operands are
  for (int operand : operands)
    exact = exact && isRaw(operand);
  program_.values.push_back(result);
  program_.steps.push_back({op, attrs, std::move(operands)});
  raw_.push_back(exact || !isFloat(result.dtype()));
  hidden_.push_back(false);
  return static_cast<int>(program_.values.size()) - 1;
}

/// A splat of `value`, typed as `like`.
Generator::Maybe Generator::fill(int like, double value) {
  if (like < 0)
    return -1;
  Array scalar = Array::empty(typeOf(like).dtype, Shape());
  detail::store(scalar, 0, value);
  int constant = step(OpId::constant, ConstantAttrs::make(scalar), {}, true);
  return shapeOf(like).empty() ? constant
                               : step(OpId::broadcast, BroadcastAttrs::make(shapeOf(like), Ints()), {constant}, true);
}

/// A value of exactly this type: one that is there, one that broadcasts to it, or an input.
int Generator::ofType(TensorType type, bool raw) {
  if (!chance(0.2))
    if (Maybe found = pick([&](int v) { return typeOf(v) == type && (!raw || isRaw(v)); }); found >= 0)
      return found;
  if (chance(0.5)) {
    Maybe found = pick([&](int v) {
      const Shape &shape = shapeOf(v);
      size_t at = 0;
      for (int64_t n : type.shape)
        at += at < shape.size() && shape[at] == n;
      return typeOf(v).dtype == type.dtype && at == shape.size() && shape.size() < type.shape.size() &&
             (!raw || isRaw(v));
    });
    if (found >= 0) {
      Ints dims;
      for (size_t axis = 0; axis < type.shape.size(); ++axis)
        if (dims.size() < shapeOf(found).size() && shapeOf(found)[dims.size()] == type.shape[axis])
          dims.push_back(static_cast<int64_t>(axis));
      if (Maybe wide = step(OpId::broadcast, BroadcastAttrs::make(type.shape, dims), {found}, true); wide >= 0)
        return wide;
    }
  }
  return type.dtype == DType::boolean ? aCondition(type.shape) : input(type);
}

/// A value of one of these dtypes, of the floats the program's own. With `raw`, its floats are not computed.
int Generator::anyValue(DTypeSet dtypes, bool raw) {
  Maybe found = pick([&](int v) {
    DType dtype = typeOf(v).dtype;
    return (dtypes & setOf(dtype)) && (!isFloat(dtype) || (dtype == options_.dtype && (!raw || isRaw(v))));
  });
  if (found >= 0 && !chance(0.2))
    return found;
  std::vector<DType> fitting;
  for (DType dtype :
       {options_.dtype, options_.dtype, options_.dtype, DType::i64, DType::i32, DType::u8, DType::boolean})
    if (dtypes & setOf(dtype))
      fitting.push_back(dtype);
  return input({fitting[static_cast<size_t>(below(fitting.size()))], shape()});
}

/// Indices from 0 to `count` - 1: given, or made of integers that are there.
int Generator::places(Shape shape, int64_t count) {
  if (chance(0.35)) {
    Maybe found = pick([&](int v) {
      return isInteger(typeOf(v).dtype) && (typeOf(v).dtype != DType::u8 || count < 256) && !shapeOf(v).empty();
    });
    if (found = fitted(found, shape); found >= 0)
      return step(OpId::remainder, {found, fill(found, static_cast<double>(count))});
  }
  int places = input(chance(0.1) && count < 256 ? DType::u8
                     : chance(0.5)              ? DType::i64
                                                : DType::i32,
                     shape, 0, static_cast<double>(count));
  hidden_[static_cast<size_t>(places)] = true;
  return places;
}

/// Whether every float of the op's result is one of an operand, or exact: no engine rounds.
bool Generator::movesOnly(OpId op) {
  static const OpId kOps[] = {OpId::broadcast,
                              OpId::reshape,
                              OpId::transpose,
                              OpId::reverse,
                              OpId::slice,
                              OpId::pad,
                              OpId::concat,
                              OpId::gather,
                              OpId::index_set,
                              OpId::index_max,
                              OpId::index_min,
                              OpId::dynamic_slice,
                              OpId::dynamic_update_slice,
                              OpId::select,
                              OpId::stop_gradient,
                              OpId::constant,
                              OpId::one_hot,
                              OpId::iota,
                              OpId::reduce_max,
                              OpId::reduce_min,
                              OpId::maximum,
                              OpId::minimum,
                              OpId::neg,
                              OpId::abs,
                              OpId::relu,
                              OpId::random_uniform,
                              OpId::barrier,
                              OpId::version,
                              OpId::ones_like,
                              OpId::zeros_like};
  return jumps(op) || std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

/// Whether a rounding of its operands may change the op's result by more than a rounding.
bool Generator::jumps(OpId op) {
  static const OpId kSafe[] = {OpId::stop_gradient, OpId::ones_like, OpId::zeros_like, OpId::dim};
  return op == OpId::copysign || op == OpId::remainder || op == OpId::fmod ||
         (!recordOf(op).differentiable && std::find(std::begin(kSafe), std::end(kSafe), op) == std::end(kSafe));
}

int Generator::aCondition(Shape shape) {
  if (chance(0.3))
    return input(DType::boolean, shape);
  if (chance(0.15)) {
    int a = aCondition(shape);
    static const OpId kOps[] = {OpId::logical_and, OpId::logical_or, OpId::logical_xor};
    Maybe found =
        chance(0.3) ? step(OpId::logical_not, {a}) : step(kOps[below(std::size(kOps))], {a, aCondition(shape)});
    return found >= 0 ? found : a;
  }
  static const OpId kCompare[] = {OpId::less,          OpId::less_equal, OpId::greater,
                                  OpId::greater_equal, OpId::equal,      OpId::not_equal};
  TensorType type{chance(0.7) ? options_.dtype : DType::i32, shape};
  int a = ofType(type, true), b = ofType(type, true);
  Maybe found = step(kCompare[below(std::size(kCompare))], {a, b});
  return found >= 0 ? found : input(DType::boolean, shape);
}

/// x with axes of size 1 dropped and added.
Generator::Maybe Generator::withUnitAxes(int x) {
  if (x < 0)
    return -1;
  Shape result;
  size_t left = 6;
  for (int64_t n : shapeOf(x)) {
    if (left > shapeOf(x).size() && chance(0.3)) {
      result.push_back(1);
      --left;
    }
    if (n != 1 || chance(0.3))
      result.push_back(n);
  }
  if (result == shapeOf(x) || chance(0.3))
    result.push_back(1);
  return result.size() > 5 ? -1 : step(OpId::reshape, ReshapeAttrs::make(result), {x}, true);
}

/// x, or as much of it as there is, as a value of this shape: by its axes of size 1, as
/// part of it, padded, or reshaped.
Generator::Maybe Generator::fitted(int x, Shape wanted) {
  if (x < 0 || shapeOf(x) == wanted)
    return x;
  const Shape shape = shapeOf(x);
  Ints trailing, zeros(shape.size(), 0), ones(shape.size(), 1);
  bool spreads = shape.size() <= wanted.size(), inside = shape.size() == wanted.size(), around = inside;
  size_t lead = spreads ? wanted.size() - shape.size() : 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    trailing.push_back(static_cast<int64_t>(lead + axis));
    spreads = spreads && (shape[axis] == 1 || shape[axis] == wanted[lead + axis]);
    inside = inside && shape[axis] >= wanted[axis];
    around = around && shape[axis] <= wanted[axis];
  }
  if (spreads)
    return step(OpId::broadcast, BroadcastAttrs::make(wanted, trailing), {x}, true);
  if (shape.numElements() == wanted.numElements())
    return step(OpId::reshape, ReshapeAttrs::make(wanted), {x}, true);
  if (inside) {
    Ints starts, limits;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      starts.push_back(below(static_cast<uint64_t>(shape[axis] - wanted[axis] + 1)));
      limits.push_back(starts[axis] + wanted[axis]);
    }
    return step(OpId::slice, SliceAttrs::make(starts, limits, ones), {x}, true);
  }
  if (around) {
    Ints low, high;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      low.push_back(below(static_cast<uint64_t>(wanted[axis] - shape[axis] + 1)));
      high.push_back(wanted[axis] - shape[axis] - low[axis]);
    }
    return step(OpId::pad, PadAttrs::make(low, high, zeros), {x}, true);
  }
  if (shape.size() >= 2 && wanted.size() == 2) { // a transpose may do
    Ints back;
    for (size_t axis = shape.size(); axis-- > 0;)
      back.push_back(static_cast<int64_t>(axis));
    Shape turned;
    for (int64_t axis : back)
      turned.push_back(shape[static_cast<size_t>(axis)]);
    if (turned == wanted)
      return step(OpId::transpose, TransposeAttrs::make(back), {x}, true);
  }
  Ints axes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    axes.push_back(axis);
  int sum = step(OpId::reduce_sum, ReduceSumAttrs::make(axes), {x});
  return sum < 0 ? -1
                 : step(OpId::broadcast, BroadcastAttrs::make(wanted, Ints()), {step(OpId::mul, {sum, fill(sum, 0.1)})},
                        true);
}

const Generator::Idea Generator::kIdeas[] = {
    {&Generator::unary, 6, true},     {&Generator::binary, 6, true},     {&Generator::guarded, 1, true},
    {&Generator::sampled, 4, true},   {&Generator::choice, 2, true},     {&Generator::place, 6, true},
    {&Generator::reduction, 4, true}, {&Generator::softmax, 2, true},    {&Generator::product, 3, true},
    {&Generator::solve, 1, true},     {&Generator::index, 3, true},      {&Generator::numbers, 1, true},
    {&Generator::disguised, 1, true}, {&Generator::shared, 6, true},     {&Generator::lookup, 1, true},
    {&Generator::kept, 2, true},      {&Generator::cumulative, 3, true}, {&Generator::order, 2, true},
    {&Generator::update, 3, true},    {&Generator::part, 3, true},       {&Generator::matrix, 3, true},
    {&Generator::composite, 8, true}, {&Generator::integers, 4, false},  {&Generator::booleans, 2, false},
    {&Generator::jump, 4, false},
};

Generator::Maybe Generator::grow() {
  int all = 0;
  for (const Idea &idea : kIdeas)
    all += idea.smooth || !options_.smooth ? idea.weight : 0;
  int64_t drawn = below(static_cast<uint64_t>(all));
  for (const Idea &idea : kIdeas)
    if (idea.smooth || !options_.smooth)
      if (drawn -= idea.weight; drawn < 0)
        return (this->*idea.grow)();
  return -1;
}

RandomProgram Generator::run() {
  for (int attempt = 0; attempt < 20 * options_.steps && static_cast<int>(program_.steps.size()) < options_.steps;
       ++attempt) {
    size_t before = program_.steps.size();
    Maybe made = grow();
    if (made < 0) { // as if it had not been tried
      program_.steps.resize(before);
      program_.values.resize(before);
      raw_.resize(before);
      hidden_.resize(before);
    }
  }

  // Inputs first.
  RandomProgram program;
  program.seed = program_.seed;
  program.composites = program_.composites;
  std::vector<int> number(program_.values.size());
  for (size_t v = 0; v < number.size(); ++v)
    if (program_.steps[v].op == OpId::call) {
      number[v] = static_cast<int>(program.inputs.size());
      program.inputs.push_back(program_.values[v]);
    }
  program.values = program.inputs;
  std::vector<bool> read(number.size(), false);
  for (size_t v = 0; v < number.size(); ++v) {
    RandomProgram::Step step = program_.steps[v];
    if (step.op == OpId::call)
      continue;
    for (int &operand : step.operands) {
      read[static_cast<size_t>(operand)] = true;
      operand = number[static_cast<size_t>(operand)];
    }
    number[v] = static_cast<int>(program.values.size());
    program.steps.push_back(std::move(step));
    program.values.push_back(program_.values[v]);
  }
  // What nobody reads is a result, and now and then something in between is one too.
  for (size_t v = 0; v < number.size(); ++v)
    if (program_.steps[v].op != OpId::call && (!read[v] || chance(0.1)) && !hidden_[v])
      for (int times = chance(0.04) ? 2 : 1; times > 0; --times)
        program.outputs.push_back(number[v]);
  for (const Array &value : program.values)
    for (int64_t i = 0; isFloat(value.dtype()) && i < value.numElements(); ++i)
      if (double x = value.dtype() == DType::f64 ? value.data<double>()[i] : value.data<float>()[i]; std::isfinite(x))
        program.largest = std::max(program.largest, std::fabs(x));
  return program;
}

RandomProgram randomProgram(uint64_t seed, const RandomProgramOptions &options) {
  return Generator(seed, options).run();
}

} // namespace wg::tests
