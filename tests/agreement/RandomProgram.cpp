#include "tests/agreement/RandomProgram.h"

#include "runtime/Random.h"
#include "tests/Samples.h"

#include <cmath>
#include <map>

namespace wg::tests {

using namespace runtime;

namespace {

/// Grows a program by one idea at a time. An idea that does not apply, or whose values leave the bounds, is taken back.
class Generator {
public:
  Generator(uint64_t seed, const RandomProgramOptions &options) : options_(options) {
    program_.seed = seed;
    state_ = seed * 0x9e3779b97f4a7c15u + 12345;
    static const std::vector<int64_t> kSizes{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 40};
    static const std::vector<int64_t> kLarge{1, 3, 16, 33, 64, 100, 128, 250, 257, 300, 512, 1000};
    for (int i = 0; i < 3; ++i)
      sizes_.push_back(options.large ? kLarge[below(kLarge.size())] : kSizes[below(kSizes.size())]);
    if (options.empty)
      sizes_.back() = 0;
  }

  RandomProgram run();

private:
  // A generator of our own: the standard distributions differ between libraries.
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(uint64_t n) { return static_cast<int64_t>(next() % n); }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

  using Maybe = int; ///< a value, or -1
  const TensorType &typeOf(int value) const { return program_.values[static_cast<size_t>(value)].type; }
  const Array &valueOf(int value) const { return program_.values[static_cast<size_t>(value)]; }
  const Shape &shapeOf(int value) const { return typeOf(value).shape; }
  bool isRaw(int value) const { return raw_[static_cast<size_t>(value)]; }

  int64_t size() { return chance(0.12) ? 1 : sizes_[static_cast<size_t>(below(sizes_.size()))]; }
  Shape shape() {
    Shape shape;
    for (int64_t rank = below(4); rank > 0; --rank)
      if (int64_t n = size(); shape.numElements() * n <= (options_.large ? 120000 : 3000))
        shape.push_back(n);
    return shape;
  }

  int input(DType dtype, Shape shape, double lo = -2, double hi = 2);
  Maybe step(OpId op, const Attrs &attrs, std::vector<int> operands, bool raw = false);
  Maybe step(OpId op, std::vector<int> operands) { return step(op, Attrs(), std::move(operands)); }
  /// A splat of `value`, typed as `like`.
  Maybe fill(int like, double value) {
    if (like < 0)
      return -1;
    Array scalar = Array::empty(typeOf(like).dtype, Shape());
    detail::store(scalar, 0, value);
    int constant = step(OpId::constant, ConstantAttrs::make(scalar), {}, true);
    return shapeOf(like).empty() ? constant
                                 : step(OpId::broadcast, BroadcastAttrs::make(shapeOf(like), Ints()), {constant}, true);
  }
  template <class Wanted> Maybe pick(Wanted &&wanted) {
    std::vector<int> found;
    for (size_t v = 0; v < program_.values.size(); ++v)
      if (!hidden_[v] && wanted(static_cast<int>(v)))
        found.push_back(static_cast<int>(v));
    if (found.empty())
      return -1;
    // Late values are likelier, so that programs grow deep as well as wide.
    size_t a = static_cast<size_t>(below(found.size())), b = static_cast<size_t>(below(found.size()));
    return found[std::max(a, b)];
  }
  int aFloat() {
    Maybe found = pick([&](int v) { return typeOf(v).dtype == options_.dtype; });
    return found >= 0 && !chance(0.1) ? found : input(options_.dtype, shape());
  }
  int aRawFloat() {
    Maybe found = pick([&](int v) { return typeOf(v).dtype == options_.dtype && isRaw(v); });
    return found >= 0 && !chance(0.2) ? found : input(options_.dtype, shape());
  }
  int anInteger() {
    Maybe found = pick([&](int v) { return typeOf(v).dtype == DType::i64 || typeOf(v).dtype == DType::i32; });
    return found >= 0 && !chance(0.2) ? found : input(chance(0.5) ? DType::i64 : DType::i32, shape(), -5, 6);
  }
  int ofType(TensorType type, bool raw = false);
  int aCondition(Shape shape);
  Ints someAxes(int rank, bool atLeastOne = false) {
    Ints axes;
    for (int i = 0; i < rank; ++i)
      if (chance(0.5))
        axes.push_back(i);
    if (axes.empty() && atLeastOne && rank > 0)
      axes.push_back(below(static_cast<uint64_t>(rank)));
    return axes;
  }

  Maybe withUnitAxes(int x);
  Maybe fitted(int x, Shape wanted); ///< by value: a step moves the values, and their shapes
  Maybe view(int x);
  Maybe unary();
  Maybe binary();
  Maybe guarded();
  Maybe choice();
  Maybe place();
  Maybe shared();
  Maybe lookup();
  Maybe reduction();
  Maybe kept();
  Maybe softmax();
  Maybe product();
  Maybe index();
  Maybe integers();
  Maybe jumps();
  Maybe numbers();

  RandomProgramOptions options_;
  RandomProgram program_;
  uint64_t state_;
  std::vector<int64_t> sizes_;
  std::vector<bool> raw_;    ///< not computed in floating point: what jumps may depend on
  std::vector<bool> hidden_; ///< indices with a range of their own
};

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

Generator::Maybe Generator::step(OpId op, const Attrs &attrs, std::vector<int> operands, bool raw) {
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
        types[0].shape.numElements() > (options_.large ? 300000 : 6000))
      return -1;
    if (!execute(OpCall{op, attrs, arrays, {}}, std::span(&result, 1)).ok())
      return -1;
  }
  // The sine of thousands says more of the argument's last digits than of the program.
  if (op == OpId::sin || op == OpId::cos)
    for (int64_t i = 0; i < arrays[0].numElements(); ++i)
      if (std::fabs(arrays[0].dtype() == DType::f64 ? arrays[0].data<double>()[i] : arrays[0].data<float>()[i]) > 100)
        return -1;
  for (int64_t i = 0; isFloat(result.dtype()) && i < result.numElements(); ++i) {
    double x = result.dtype() == DType::f64 ? result.data<double>()[i] : result.data<float>()[i];
    if (!(std::fabs(x) < 1e4))
      return -1;
  }
  bool exact = raw; // a rounded sum is not raw, whatever its operands are
  for (int operand : operands)
    exact = exact && isRaw(operand);
  program_.values.push_back(result);
  program_.steps.push_back({op, attrs, std::move(operands)});
  raw_.push_back(exact || !isFloat(result.dtype()));
  hidden_.push_back(false);
  return static_cast<int>(program_.values.size()) - 1;
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
  return type.dtype == DType::boolean
             ? aCondition(type.shape)
             : input(type.dtype, type.shape, isFloat(type.dtype) ? -2 : -5, isFloat(type.dtype) ? 2 : 6);
}

int Generator::aCondition(Shape shape) {
  if (chance(0.3))
    return input(DType::boolean, shape);
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

/// x in another place, now and then twice over.
Generator::Maybe Generator::view(int x) {
  for (int64_t more = 1 + below(2); more > 0 && x >= 0; --more) {
    const Shape shape = shapeOf(x);
    size_t rank = shape.size();
    switch (below(5)) {
    case 0:
    case 1: x = withUnitAxes(x); break;
    case 2: {
      Ints permutation;
      for (size_t axis = 0; axis < rank; ++axis)
        permutation.push_back(static_cast<int64_t>((axis + 1) % rank));
      x = step(OpId::transpose, TransposeAttrs::make(permutation), {x}, true);
      break;
    }
    case 3: {
      Shape wide{chance(0.3) ? 1 : size()};
      Ints dims;
      for (size_t axis = 0; axis < rank; ++axis) {
        wide.push_back(shape[axis]);
        dims.push_back(static_cast<int64_t>(axis + 1));
      }
      x = rank > 3 ? x : step(OpId::broadcast, BroadcastAttrs::make(wide, dims), {x}, true);
      break;
    }
    default: {
      Ints starts, limits, strides;
      for (int64_t n : shape) {
        starts.push_back(n > 1 && chance(0.4) ? 1 : 0);
        limits.push_back(n);
        strides.push_back(chance(0.8) ? 1 : 2);
      }
      x = step(OpId::slice, SliceAttrs::make(starts, limits, strides), {x}, true);
    }
    }
  }
  return x;
}

/// A view that one op reads from memory and the next one element by element.
Generator::Maybe Generator::shared() {
  int v = chance(0.2) ? aFloat() : view(chance(0.2) ? lookup() : aFloat());
  if (v < 0)
    return -1;
  const Shape shape = shapeOf(v);
  int read = -1;
  switch (below(5)) {
  case 0:
  case 1: { // a product over its last axis
    if (shape.empty() || shape.size() > 3 ||
        shape.numElements() * shape[shape.size() - 1] > (options_.large ? 2000000 : 30000))
      return -1;
    std::string a = std::string("abc").substr(0, shape.size()), c = a.substr(0, a.size() - 1) + "n";
    int64_t k = shape[shape.size() - 1], n = chance(0.6) ? k : size();
    int w = ofType({options_.dtype, Shape{k, n}});
    read = step(OpId::contract, ContractAttrs::make(a + "," + a.back() + "n->" + c), {v, w});
    break;
  }
  case 2: {
    Ints low, high, interior;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      low.push_back(below(3));
      high.push_back(below(3));
      interior.push_back(chance(0.8) ? 0 : 1);
    }
    read = step(OpId::pad, PadAttrs::make(low, high, interior), {v}, true);
    break;
  }
  case 3: {
    if (shape.empty())
      return -1;
    int64_t axis = below(shape.size());
    TensorType type = typeOf(v);
    type.shape[static_cast<size_t>(axis)] = chance(0.5) ? 1 : size();
    std::vector<int> parts{v, chance(0.5) ? v : ofType(type)};
    if (chance(0.5))
      std::swap(parts[0], parts[1]);
    read = step(OpId::concat, ConcatAttrs::make(axis), parts, true);
    break;
  }
  default: {
    if (shape.empty() || shape[0] == 0)
      return -1;
    int places = input(chance(0.5) ? DType::i64 : DType::i32, Shape{1 + below(4)}, 0, static_cast<double>(shape[0]));
    hidden_[static_cast<size_t>(places)] = true;
    read = step(OpId::gather, GatherAttrs::make(), {v, places});
  }
  }
  if (read < 0)
    return -1;
  static const OpId kOps[] = {OpId::add, OpId::sub, OpId::mul};
  int both = step(kOps[below(std::size(kOps))], {read, fitted(v, shapeOf(read))});
  return both >= 0 && chance(0.5) ? step(OpId::tanh, {both}) : both;
}

/// Rows of a table, by a product with one_hot; or coordinates, as one_hot and iota both are and are read.
Generator::Maybe Generator::lookup() {
  int64_t depth = chance(0.3) ? 1 + below(5) : size();
  if (depth == 0)
    return -1;
  int hot;
  if (chance(0.6)) {
    Shape where = shape();
    if (where.size() > 2 || where.numElements() * depth > 3000)
      return -1;
    int places = input(chance(0.5) ? DType::i64 : DType::i32, where, -1, static_cast<double>(depth));
    if (chance(0.4))
      places = withUnitAxes(places);
    hot = places < 0 ? -1 : step(OpId::one_hot, OneHotAttrs::make(depth, options_.dtype), {places}, true);
  } else {
    Shape wanted = shape();
    wanted.push_back(depth);
    if (wanted.numElements() > 3000)
      return -1;
    int coordinate = step(OpId::iota, IotaAttrs::make(wanted, below(wanted.size()), options_.dtype), {}, true);
    hot = chance(0.5) ? coordinate : step(OpId::mul, {coordinate, fill(coordinate, 0.05)});
  }
  if (hot < 0 || chance(0.3))
    return hot;
  std::string a = std::string("abcd").substr(0, shapeOf(hot).size());
  int64_t n = chance(0.2) ? depth : size();
  int table = ofType({options_.dtype, Shape{depth, n}});
  int rows = step(OpId::contract, ContractAttrs::make(a + "," + a.back() + "n->" + a.substr(0, a.size() - 1) + "n"),
                  {hot, table});
  if (rows < 0)
    return -1;
  rows = step(OpId::mul, {rows, fill(rows, 0.1)});
  return rows >= 0 && chance(0.5) ? step(OpId::add, {rows, fitted(hot, shapeOf(rows))}) : rows;
}

Generator::Maybe Generator::unary() {
  static const OpId kOps[] = {OpId::tanh,     OpId::sigmoid, OpId::softplus, OpId::sin,  OpId::cos, OpId::erf,
                              OpId::softsign, OpId::neg,     OpId::abs,      OpId::relu, OpId::exp, OpId::expm1};
  OpId op = kOps[below(std::size(kOps))];
  int x = aFloat();
  if (op == OpId::exp || op == OpId::expm1)
    x = step(OpId::tanh, {x});
  return step(op, {x});
}

Generator::Maybe Generator::binary() {
  static const OpId kOps[] = {OpId::add, OpId::sub, OpId::mul, OpId::mul, OpId::maximum, OpId::minimum};
  int a = aFloat(), b = chance(0.2) ? fitted(aFloat(), shapeOf(a)) : ofType(typeOf(a));
  if (chance(0.5))
    std::swap(a, b);
  return step(kOps[below(std::size(kOps))], {a, b});
}

/// Ops that need an argument away from their singular points.
Generator::Maybe Generator::guarded() {
  int a = aFloat();
  int positive = step(OpId::add, {step(OpId::sin, {a}), fill(a, 1.5)});
  switch (below(7)) {
  case 0: return step(OpId::log, {positive});
  case 1: return step(OpId::sqrt, {positive});
  case 2: return step(OpId::rsqrt, {positive});
  case 3: return step(OpId::log1p, {positive});
  case 4: return step(OpId::pow, {positive, step(OpId::tanh, {ofType(typeOf(a))})});
  case 5: return step(OpId::pow, {step(OpId::tanh, {a}), fill(a, static_cast<double>(2 + below(2)))});
  default: return step(OpId::div, {ofType(typeOf(a)), positive});
  }
}

Generator::Maybe Generator::choice() {
  int a = aFloat(), b = ofType(typeOf(a));
  return step(OpId::select, {aCondition(shapeOf(a)), a, b});
}

Generator::Maybe Generator::place() {
  int x = chance(0.8) ? aFloat() : anInteger();
  const Shape shape = shapeOf(x);
  size_t rank = shape.size();
  switch (below(8)) {
  case 6: {
    Maybe condition = chance(0.2) ? pick([&](int v) { return typeOf(v).dtype == DType::boolean; }) : -1;
    return withUnitAxes(condition >= 0 ? condition : x);
  }
  case 7: return view(x);
  case 0: {
    Shape wide;
    Ints dims;
    for (size_t axis = 0; axis <= rank; ++axis) {
      if (wide.size() + rank - axis < 4 && chance(0.4))
        wide.push_back(size());
      if (axis < rank) {
        dims.push_back(static_cast<int64_t>(wide.size()));
        wide.push_back(shape[axis] == 1 && chance(0.6) ? size() : shape[axis]);
      }
    }
    return step(OpId::broadcast, BroadcastAttrs::make(wide, dims), {x}, true);
  }
  case 1: {
    Shape flat;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (!flat.empty() && chance(0.5))
        flat[flat.size() - 1] *= shape[axis];
      else
        flat.push_back(shape[axis]);
      if (flat.size() < 5 && chance(0.2))
        flat.push_back(1);
      int64_t last = flat[flat.size() - 1];
      if (flat.size() < 5 && last > 3 && last % 2 == 0 && chance(0.4)) {
        flat[flat.size() - 1] = 2;
        flat.push_back(last / 2);
      }
    }
    return step(OpId::reshape, ReshapeAttrs::make(flat), {x}, true);
  }
  case 2: {
    Ints permutation;
    for (size_t axis = 0; axis < rank; ++axis)
      permutation.push_back(static_cast<int64_t>(axis));
    for (size_t axis = rank; axis > 1; --axis)
      std::swap(permutation[axis - 1], permutation[static_cast<size_t>(below(axis))]);
    return step(OpId::transpose, TransposeAttrs::make(permutation), {x}, true);
  }
  case 3: {
    Ints starts, limits, strides;
    for (int64_t n : shape) {
      int64_t start = n == 0 || chance(0.5) ? 0 : below(static_cast<uint64_t>(n)),
              limit = n == 0 || chance(0.5) ? n : start + 1 + below(static_cast<uint64_t>(n - start));
      starts.push_back(start);
      limits.push_back(limit);
      strides.push_back(chance(0.6) ? 1 : 1 + below(3));
    }
    return step(OpId::slice, SliceAttrs::make(starts, limits, strides), {x}, true);
  }
  case 4: {
    Ints low, high, interior;
    for (size_t axis = 0; axis < rank; ++axis) {
      low.push_back(chance(0.5) ? 0 : below(4));
      high.push_back(chance(0.5) ? 0 : below(4));
      interior.push_back(chance(0.7) ? 0 : below(3));
    }
    return step(OpId::pad, PadAttrs::make(low, high, interior), {x}, true);
  }
  default: {
    if (rank == 0)
      return -1;
    size_t axis = static_cast<size_t>(below(rank));
    std::vector<int> parts{x};
    for (int64_t more = 1 + below(2); more > 0; --more) {
      TensorType type = typeOf(x);
      type.shape[axis] = chance(0.5) ? shape[axis] : size();
      parts.push_back(ofType(type));
    }
    std::swap(parts[0], parts[static_cast<size_t>(below(parts.size()))]);
    return step(OpId::concat, ConcatAttrs::make(static_cast<int64_t>(axis)), parts, true);
  }
  }
}

Generator::Maybe Generator::reduction() {
  if (chance(0.15)) {
    Maybe condition = pick([&](int v) { return typeOf(v).dtype == DType::boolean; });
    return condition < 0 ? -1
                         : step(chance(0.5) ? OpId::reduce_any : OpId::reduce_all,
                                ReduceAnyAttrs::make(someAxes(shapeOf(condition).rank())), {condition});
  }
  int x = chance(0.85) ? aFloat() : anInteger();
  Ints axes = someAxes(shapeOf(x).rank(), true);
  switch (below(8)) {
  case 0: return step(OpId::reduce_max, ReduceMaxAttrs::make(axes), {x}, true);
  case 1: return step(OpId::reduce_min, ReduceMinAttrs::make(axes), {x}, true);
  case 2:
    if (isFloat(typeOf(x).dtype)) // factors around 1, some of them small
      x = step(OpId::add, {step(OpId::mul, {step(OpId::sin, {x}), fill(x, 0.25)}), fill(x, 1)});
    return step(OpId::reduce_prod, ReduceProdAttrs::make(axes), {x});
  default: {
    int sum = step(OpId::reduce_sum, ReduceSumAttrs::make(axes), {x});
    return sum >= 0 && isFloat(typeOf(sum).dtype) && chance(0.5) ? step(OpId::mul, {sum, fill(sum, 0.1)}) : sum;
  }
  }
}

/// A reduction whose axes stay, with size 1, and what is normalised by it.
Generator::Maybe Generator::kept() {
  int x = aFloat();
  const Shape shape = shapeOf(x);
  Ints axes = someAxes(shape.rank(), true);
  Shape narrow = shape;
  for (int64_t axis : axes)
    narrow[static_cast<size_t>(axis)] = 1;
  int sum = step(OpId::reduce_sum, ReduceSumAttrs::make(axes), {x});
  int row =
      sum < 0 ? -1 : step(OpId::reshape, ReshapeAttrs::make(narrow), {step(OpId::mul, {sum, fill(sum, 0.1)})}, true);
  if (row < 0 || chance(0.3))
    return row;
  int wide = fitted(row, shape);
  return chance(0.5) ? step(OpId::sub, {x, wide})
                     : step(OpId::div, {x, step(OpId::add, {step(OpId::mul, {wide, wide}), fill(x, 0.5)})});
}

/// The pattern that fusion knows best: a row's maximum, exponentials, their sum, and the quotient.
Generator::Maybe Generator::softmax() {
  int x = aFloat();
  int rank = shapeOf(x).rank();
  if (rank == 0)
    return -1;
  Ints axes = chance(0.7) ? Ints{rank - 1} : someAxes(rank, true), kept;
  for (int axis = 0; axis < rank; ++axis)
    if (!axes.contains(axis))
      kept.push_back(axis);
  auto wide = [&](int row) { return step(OpId::broadcast, BroadcastAttrs::make(shapeOf(x), kept), {row}, true); };
  int largest = step(OpId::reduce_max, ReduceMaxAttrs::make(axes), {x}, true);
  if (!options_.smooth)
    largest = step(OpId::stop_gradient, {largest});
  if (largest < 0)
    return -1;
  int shifted = step(OpId::sub, {x, wide(largest)});
  int exps = step(OpId::exp, {shifted});
  int sum = step(OpId::reduce_sum, ReduceSumAttrs::make(axes), {exps});
  if (exps < 0 || sum < 0)
    return -1;
  return chance(0.5) ? step(OpId::div, {exps, wide(sum)}) : step(OpId::sub, {shifted, wide(step(OpId::log, {sum}))});
}

Generator::Maybe Generator::product() {
  int a = aFloat(), b = chance(0.6) ? aFloat() : -1;
  std::string lettersA, lettersB, lettersC;
  std::map<char, int64_t> sizes;
  char fresh = 'a';
  for (int64_t n : shapeOf(a)) {
    lettersA += fresh;
    sizes[fresh++] = n;
  }
  std::string free = lettersA;
  if (b >= 0) {
    for (int64_t n : shapeOf(b)) {
      auto same = std::find_if(free.begin(), free.end(), [&](char letter) { return sizes[letter] == n; });
      if (same != free.end() && chance(0.8)) {
        lettersB += *same;
        free.erase(same);
      } else {
        lettersB += fresh;
        sizes[fresh++] = n;
      }
    }
  } else {
    for (char letter : lettersA)
      if (chance(0.6))
        lettersB += letter;
    for (int64_t more = below(3); more > 0 && lettersB.size() < 4; --more) {
      lettersB += fresh;
      sizes[fresh++] = size();
    }
    for (size_t i = lettersB.size(); i > 1; --i)
      std::swap(lettersB[i - 1], lettersB[static_cast<size_t>(below(i))]);
    TensorType type{options_.dtype, {}};
    for (char letter : lettersB)
      type.shape.push_back(sizes[letter]);
    if (type.shape.numElements() > (options_.large ? 150000 : 4000))
      return -1;
    b = ofType(type);
  }
  for (auto [letter, n] : sizes) {
    bool both = lettersA.find(letter) != std::string::npos && lettersB.find(letter) != std::string::npos;
    if (!both || chance(0.35))
      lettersC += letter;
  }
  for (size_t i = lettersC.size(); i > 1; --i)
    if (chance(0.5))
      std::swap(lettersC[i - 1], lettersC[static_cast<size_t>(below(i))]);
  double work = 1;
  for (auto [letter, n] : sizes)
    work *= static_cast<double>(n);
  if (lettersC.size() > 5 || work > (options_.large ? 2e7 : 3e5))
    return -1;
  int c = step(OpId::contract, ContractAttrs::make(lettersA + "," + lettersB + "->" + lettersC), {a, b});
  return c >= 0 && chance(0.4) ? step(OpId::tanh, {c}) : c;
}

Generator::Maybe Generator::index() {
  int x = aFloat();
  Shape indices = shape();
  if (indices.size() > 2 || indices.numElements() > 200)
    return -1;
  if (chance(0.5)) {
    if (shapeOf(x).empty() || shapeOf(x)[0] == 0)
      return -1;
    int places = input(chance(0.5) ? DType::i64 : DType::i32, indices, 0, static_cast<double>(shapeOf(x)[0]));
    hidden_[static_cast<size_t>(places)] = true;
    return step(OpId::gather, GatherAttrs::make(), {x, places});
  }
  Shape rows = shapeOf(x), result;
  size_t lead = static_cast<size_t>(below(rows.size() + 1));
  Shape where;
  for (size_t axis = 0; axis < lead; ++axis)
    where.push_back(rows[axis]);
  result.push_back(size());
  for (size_t axis = lead; axis < rows.size(); ++axis)
    result.push_back(rows[axis]);
  if (result[0] == 0)
    return -1;
  int places = input(chance(0.5) ? DType::i64 : DType::i32, where, 0, static_cast<double>(result[0]));
  hidden_[static_cast<size_t>(places)] = true;
  return step(OpId::scatter_add, ScatterAddAttrs::make(result), {x, places});
}

Generator::Maybe Generator::integers() {
  int a = anInteger();
  switch (below(5)) {
  case 0: {
    static const OpId kOps[] = {OpId::add, OpId::sub, OpId::mul, OpId::maximum, OpId::minimum};
    return step(kOps[below(std::size(kOps))], {a, ofType(typeOf(a))});
  }
  case 1:
    return step(chance(0.5) ? OpId::floor_div : OpId::remainder,
                {a, fill(a, static_cast<double>(chance(0.5) ? 3 : -2))});
  case 2:
    return shapeOf(a).size() > 3 ? -1 : step(OpId::one_hot, OneHotAttrs::make(1 + below(9), options_.dtype), {a}, true);
  case 3: {
    int rest = step(OpId::remainder, {a, fill(a, 7)});
    int real = step(OpId::cast, CastAttrs::make(options_.dtype), {rest}, true);
    return step(OpId::mul, {real, fill(real, 0.3)});
  }
  default: return step(chance(0.5) ? OpId::neg : OpId::abs, {a});
  }
}

/// Functions with jumps, of values that every engine has to the bit.
Generator::Maybe Generator::jumps() {
  int x = aRawFloat();
  switch (below(6)) {
  case 0: return step(OpId::floor, Attrs(), {x}, true);
  case 1: return step(OpId::ceil, Attrs(), {x}, true);
  case 2: return step(OpId::round, Attrs(), {x}, true);
  case 3: return step(OpId::sign, Attrs(), {x}, true);
  case 4: return shapeOf(x).empty() ? -1 : step(OpId::argmax, ArgmaxAttrs::make(below(shapeOf(x).size())), {x});
  default: return step(OpId::cast, CastAttrs::make(chance(0.5) ? DType::i32 : DType::i64), {x});
  }
}

Generator::Maybe Generator::numbers() {
  Shape wanted = shape();
  switch (below(3)) {
  case 0: {
    if (wanted.empty())
      return -1;
    int coordinate = step(OpId::iota, IotaAttrs::make(wanted, below(wanted.size()), options_.dtype), {}, true);
    return step(OpId::mul, {coordinate, fill(coordinate, 0.05)});
  }
  case 1: {
    int key = input(DType::i64, {2}, 0, 1000);
    hidden_[static_cast<size_t>(key)] = true;
    return step(OpId::random_uniform, RandomUniformAttrs::make(wanted, options_.dtype), {key}, true);
  }
  default: {
    int a = aFloat();
    return step(!options_.smooth && chance(0.5) ? OpId::stop_gradient
                : chance(0.5)                   ? OpId::ones_like
                                                : OpId::zeros_like,
                {a});
  }
  }
}

RandomProgram Generator::run() {
  for (int attempt = 0; attempt < 20 * options_.steps && static_cast<int>(program_.steps.size()) < options_.steps;
       ++attempt) {
    size_t before = program_.steps.size();
    Maybe made = -1;
    switch (int64_t idea = below(options_.smooth ? 23 : 29)) {
    case 0:
    case 1:
    case 2: made = unary(); break;
    case 3:
    case 4:
    case 5: made = binary(); break;
    case 6: made = guarded(); break;
    case 7: made = choice(); break;
    case 8:
    case 9:
    case 10: made = place(); break;
    case 11:
    case 12: made = reduction(); break;
    case 13: made = softmax(); break;
    case 14:
    case 15: made = product(); break;
    case 16: made = index(); break;
    case 17: made = numbers(); break;
    case 18:
    case 19:
    case 20: made = shared(); break;
    case 21: made = lookup(); break;
    case 22: made = kept(); break;
    case 23:
    case 24: made = integers(); break;
    case 25:
    case 26: made = jumps(); break;
    default: made = idea == 27 ? choice() : reduction(); break;
    }
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
    if (program_.steps[v].op != OpId::call && (!read[v] || chance(0.1)))
      for (int times = chance(0.04) ? 2 : 1; times > 0; --times)
        program.outputs.push_back(number[v]);
  for (const Array &value : program.values)
    for (int64_t i = 0; isFloat(value.dtype()) && i < value.numElements(); ++i)
      program.largest = std::max(
          program.largest, std::fabs(value.dtype() == DType::f64 ? value.data<double>()[i] : value.data<float>()[i]));
  return program;
}

} // namespace

RandomProgram randomProgram(uint64_t seed, const RandomProgramOptions &options) {
  return Generator(seed, options).run();
}

RandomProgram partOf(const RandomProgram &program, const std::vector<int> &outputs, const std::set<int> &cuts) {
  int inputs = static_cast<int>(program.inputs.size()), count = static_cast<int>(program.values.size());
  auto isInput = [&](int value) { return value < inputs || cuts.count(value); };
  std::vector<bool> needed(static_cast<size_t>(count), false);
  for (int output : outputs)
    needed[static_cast<size_t>(output)] = true;
  for (int value = count - 1; value >= inputs; --value)
    if (needed[static_cast<size_t>(value)] && !isInput(value))
      for (int operand : program.steps[static_cast<size_t>(value - inputs)].operands)
        needed[static_cast<size_t>(operand)] = true;
  RandomProgram part;
  part.seed = program.seed;
  part.largest = program.largest;
  std::vector<int> number(static_cast<size_t>(count), -1);
  for (bool wantInputs : {true, false})
    for (int value = 0; value < count; ++value) {
      size_t v = static_cast<size_t>(value);
      if (!needed[v] || isInput(value) != wantInputs)
        continue;
      number[v] = static_cast<int>(part.values.size());
      part.values.push_back(program.values[v]);
      if (wantInputs) {
        part.inputs.push_back(program.values[v]);
        continue;
      }
      part.steps.push_back(program.steps[v - static_cast<size_t>(inputs)]);
      for (int &operand : part.steps.back().operands)
        operand = number[static_cast<size_t>(operand)];
    }
  for (int output : outputs)
    part.outputs.push_back(number[static_cast<size_t>(output)]);
  return part;
}

std::string toString(const RandomProgram &program) {
  auto attribute = [](const AttrValue &value) {
    struct {
      std::string operator()(int64_t x) { return std::to_string(x); }
      std::string operator()(double x) { return std::to_string(x); }
      std::string operator()(DType x) { return std::string(nameOf(x)); }
      std::string operator()(const Ints &x) { return runtime::toString(x); }
      std::string operator()(const std::string &x) { return x; }
      std::string operator()(const Array &x) { return runtime::toString(x); }
    } print;
    return std::visit(print, value);
  };
  std::string text;
  for (size_t v = 0; v < program.values.size(); ++v) {
    text += "  %" + std::to_string(v) + " : " + runtime::toString(program.values[v].type) + " = ";
    if (v < program.inputs.size()) {
      text += "input\n";
      continue;
    }
    const RandomProgram::Step &step = program.steps[v - program.inputs.size()];
    text += recordOf(step.op).name;
    for (int operand : step.operands)
      text += " %" + std::to_string(operand);
    for (size_t i = 0; i < step.attrs.size(); ++i)
      text += (i == 0 ? " | " : "; ") + attribute(step.attrs[i]);
    text += "\n";
  }
  text += "  outputs";
  for (int output : program.outputs)
    text += " %" + std::to_string(output);
  return text + "\n";
}

} // namespace wg::tests
