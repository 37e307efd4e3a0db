// What a random program is made of: one idea, one function. Each returns a value, or -1 where it does not apply.
#include "tests/Samples.h"
#include "tests/agreement/RandomGenerator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace wg::tests {

using namespace runtime;

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
  static const OpId kOps[] = {OpId::tanh,     OpId::sigmoid, OpId::softplus, OpId::sin,  OpId::cos,  OpId::erf,
                              OpId::softsign, OpId::neg,     OpId::abs,      OpId::relu, OpId::exp,  OpId::expm1,
                              OpId::atan,     OpId::asinh,   OpId::erfc,     OpId::exp2, OpId::sinh, OpId::cosh};
  OpId op = kOps[below(std::size(kOps))];
  int x = aFloat();
  if (op == OpId::exp || op == OpId::expm1 || op == OpId::exp2 || op == OpId::sinh || op == OpId::cosh)
    x = step(OpId::tanh, {x});
  return step(op, {x});
}

Generator::Maybe Generator::binary() {
  static const OpId kOps[] = {OpId::add,     OpId::sub,     OpId::mul,      OpId::mul,
                              OpId::maximum, OpId::minimum, OpId::logaddexp};
  int a = aFloat(), b = chance(0.2) ? fitted(aFloat(), shapeOf(a)) : ofType(typeOf(a));
  if (chance(0.5))
    std::swap(a, b);
  return step(kOps[below(std::size(kOps))], {a, b});
}

namespace {

/// A differentiable op of one element, and where its operands are in its first sample: away from singular points.
struct Sampled {
  OpId op;
  Attrs attrs;
  std::vector<std::pair<double, double>> ranges;
};

} // namespace

static std::vector<Sampled> sampledOps() {
  std::vector<Sampled> ops;
  std::set<OpId> seen{OpId::cast, OpId::version, OpId::remainder, OpId::fmod,
                      OpId::copysign}; // have ideas of their own
  for (const Sample &sample : allSamples()) {
    const OpRecord &record = recordOf(sample.op);
    if (!record.elementwise || !record.differentiable || !seen.insert(sample.op).second)
      continue;
    Sampled sampled{sample.op, sample.attrs, {}};
    for (const Array &operand : sample.operands)
      if (operand.dtype() == DType::f64) {
        auto [low, high] = std::minmax_element(operand.data<double>(), operand.data<double>() + operand.numElements());
        sampled.ranges.push_back({*low, *high});
      }
    if (sampled.ranges.size() == sample.operands.size())
      ops.push_back(std::move(sampled));
  }
  return ops;
}

/// Any op of one element that has a derivative, by its record and its sample.
Generator::Maybe Generator::sampled() {
  static const std::vector<Sampled> kOps = sampledOps();
  const Sampled &drawn = kOps[static_cast<size_t>(below(kOps.size()))];
  std::vector<int> operands;
  for (auto [low, high] : drawn.ranges) {
    int x = operands.empty() ? aFloat() : ofType(typeOf(operands[0]));
    operands.push_back(step(
        OpId::add, {step(OpId::mul, {step(OpId::sin, {x}), fill(x, (high - low) / 2)}), fill(x, (high + low) / 2)}));
    if (operands.back() < 0)
      return -1;
  }
  return step(drawn.op, drawn.attrs, operands);
}

/// Ops whose operands belong together.
Generator::Maybe Generator::guarded() {
  int a = aFloat();
  int positive = step(OpId::add, {step(OpId::sin, {a}), fill(a, 1.5)});
  auto dividend = [&] {
    return step(OpId::add, {step(OpId::mul, {step(OpId::sin, {a}), fill(a, 0.3)}), fill(a, 3.5)});
  };
  switch (below(6)) {
  case 0: return step(OpId::polygamma, PolygammaAttrs::make(below(3)), {positive});
  case 1: return step(OpId::pow, {positive, step(OpId::tanh, {ofType(typeOf(a))})});
  case 2: return step(OpId::pow, {step(OpId::tanh, {a}), fill(a, static_cast<double>(2 + below(2)))});
  case 3: { // the quotient is between 3 and 4
    int b = step(OpId::mul, {step(OpId::sin, {ofType(typeOf(a))}), fill(a, 0.04)});
    return step(OpId::remainder, {dividend(), step(OpId::add, {b, fill(a, 1)})});
  }
  case 4: return step(OpId::fmod, {dividend(), fill(a, chance(0.5) ? 1 : -1)}); // so it is here
  default: return step(OpId::div, {ofType(typeOf(a)), positive});
  }
}

Generator::Maybe Generator::choice() {
  int a = chance(0.8) ? aFloat() : anyValue(kAnyDType), b = ofType(typeOf(a));
  return step(OpId::select, Attrs(), {aCondition(shapeOf(a)), a, b}, true);
}

Generator::Maybe Generator::place() {
  int x = chance(0.7) ? aFloat() : anyValue(kAnyDType);
  const Shape shape = shapeOf(x);
  size_t rank = shape.size();
  switch (below(9)) {
  case 8: return step(OpId::reverse, ReverseAttrs::make(someAxes(shape.rank(), true)), {x}, true);
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

/// x with op(a) x = b; a's numbers are small beside a diagonal of 1, or, of few rows, between 1 and 2: so x does not
/// grow beyond the bounds.
Generator::Maybe Generator::solve() {
  int b = aFloat();
  if (b >= 0 && shapeOf(b).size() == 1)
    b = step(OpId::reshape, ReshapeAttrs::make(Shape{shapeOf(b)[0], 1}), {b}, true);
  if (b < 0 || shapeOf(b).size() < 2)
    return -1;
  TensorType type = typeOf(b);
  int64_t n = type.shape[type.shape.size() - 2];
  type.shape[type.shape.size() - 1] = n;
  if (type.shape.numElements() > (options_.large ? 100000 : 4000))
    return -1;
  bool unit = n > 5 || chance(0.5);
  int a;
  if (unit) {
    a = ofType(type);
    a = step(OpId::mul, {a, fill(a, 1 / static_cast<double>(2 + n))});
  } else {
    a = input(type.dtype, type.shape, 1, 2);
  }
  return step(OpId::triangular_solve, TriangularSolveAttrs::make(chance(0.5), chance(0.5), unit), {a, b});
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

/// Rows at places. Leading axes may be batch axes: each of their places has rows of its own.
Generator::Maybe Generator::index() {
  int x = aFloat();
  const Shape shape = shapeOf(x);
  Shape where;
  if (chance(0.5)) {
    size_t batch = shape.size() > 1 && chance(0.5) ? 1 + static_cast<size_t>(below(shape.size() - 1)) : 0;
    for (size_t axis = 0; axis < batch; ++axis)
      where.push_back(shape[axis]);
    for (int64_t more = below(3); more > 0; --more)
      where.push_back(size());
    if (shape.empty() || shape[batch] == 0 || where.numElements() > 400)
      return -1;
    return step(OpId::gather, GatherAttrs::make(static_cast<int64_t>(batch)), {x, places(where, shape[batch])});
  }
  size_t lead = static_cast<size_t>(below(shape.size() + 1)),
         batch = lead > 0 && chance(0.5) ? 1 + static_cast<size_t>(below(lead)) : 0;
  int64_t rows = size();
  Shape result;
  for (size_t axis = 0; axis < lead; ++axis) {
    where.push_back(shape[axis]);
    if (axis < batch)
      result.push_back(shape[axis]);
  }
  result.push_back(rows);
  for (size_t axis = lead; axis < shape.size(); ++axis)
    result.push_back(shape[axis]);
  if (rows == 0)
    return -1;
  return step(OpId::scatter_add, ScatterAddAttrs::make(result, static_cast<int64_t>(batch)), {x, places(where, rows)});
}

/// A value that derivatives meet as another one: its versions, or what it is in another precision.
Generator::Maybe Generator::disguised() {
  if (options_.dtype == DType::f32 && chance(0.5)) { // f64 as f32 would lose the digits by which ways are compared
    static const OpId kOps[] = {OpId::tanh, OpId::neg, OpId::sigmoid, OpId::relu};
    int wide = step(OpId::cast, CastAttrs::make(DType::f64), {aRawFloat()}); // so that it is as exact as its dtype
    return step(OpId::cast, CastAttrs::make(DType::f32), {step(kOps[below(std::size(kOps))], {wide})});
  }
  int x = aFloat();
  if (chance(0.3))
    return step(OpId::barrier, Attrs(), {x, anyValue(kAnyDType)}, true);
  return step(OpId::version, {x, step(OpId::neg, {step(OpId::neg, {x})})}); // of one value: differences see one
}

/// The elementwise ops without attributes that take all of these dtypes, from their records.
static std::vector<OpId> elementwiseOps(DTypeSet dtypes) {
  std::vector<OpId> ops;
  for (int i = 0; i < kNumOps; ++i)
    if (const OpRecord &record = recordOf(static_cast<OpId>(i));
        record.elementwise && record.attrs.empty() && (record.dtypes & dtypes) == dtypes && record.id != OpId::select)
      ops.push_back(record.id);
  return ops;
}

Generator::Maybe Generator::integers() {
  int a = anInteger();
  switch (below(6)) {
  case 0:
    return step(chance(0.5) ? OpId::floor_div : OpId::remainder,
                {a, fill(a, static_cast<double>(chance(0.5) ? 3 : -2))});
  case 1:
    return shapeOf(a).size() > 3 ? -1 : step(OpId::one_hot, OneHotAttrs::make(1 + below(9), options_.dtype), {a}, true);
  case 2: {
    int rest = step(OpId::remainder, {a, fill(a, 7)});
    int real = step(OpId::cast, CastAttrs::make(options_.dtype), {rest}, true);
    return step(OpId::mul, {real, fill(real, 0.3)});
  }
  case 3: {
    static const DType kDTypes[] = {DType::i64, DType::i32, DType::u8, DType::boolean};
    return step(OpId::cast, CastAttrs::make(kDTypes[below(std::size(kDTypes))]),
                {step(OpId::remainder, {a, fill(a, 100)})});
  }
  default: {
    static const std::vector<OpId> kOps = elementwiseOps(kIntegers);
    OpId op = kOps[static_cast<size_t>(below(kOps.size()))];
    if (recordOf(op).numOperands == 1)
      return step(op, {a});
    bool small = op == OpId::left_shift || op == OpId::right_shift || op == OpId::pow;
    return step(op, {a, small ? fill(a, static_cast<double>(below(5))) : ofType(typeOf(a))});
  }
  }
}

Generator::Maybe Generator::booleans() {
  static const std::vector<OpId> kOps = elementwiseOps(kBooleans);
  OpId op = kOps[static_cast<size_t>(below(kOps.size()))];
  int a = anyValue(kBooleans);
  return chance(0.1)                     ? step(OpId::is_nan, {aRawFloat()})
         : recordOf(op).numOperands == 1 ? step(op, {a})
                                         : step(op, {a, ofType(typeOf(a))});
}

/// Functions with jumps, of values that every engine has to the bit.
Generator::Maybe Generator::jump() {
  int x = aRawFloat();
  switch (below(8)) {
  case 5: return step(OpId::trunc, Attrs(), {x}, true);
  case 6: return step(OpId::copysign, Attrs(), {x, ofType(typeOf(x), true)}, true);
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
    Shape keys;
    if (chance(0.3))
      keys.push_back(size());
    keys.push_back(2);
    int key = input(DType::i64, keys, 0, 1000);
    hidden_[static_cast<size_t>(key)] = true;
    static const DType kDTypes[] = {DType::i64, DType::i32, DType::u8};
    return chance(0.3)
               ? step(OpId::random_bits, RandomBitsAttrs::make(wanted, kDTypes[below(std::size(kDTypes))]), {key})
               : step(OpId::random_uniform, RandomUniformAttrs::make(wanted, options_.dtype), {key}, true);
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

} // namespace wg::tests
