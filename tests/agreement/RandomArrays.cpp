// What a random program is made of: arrays ordered, accumulated, and written to.
#include "tests/agreement/RandomGenerator.h"

namespace wg::tests {

using namespace runtime;

/// What has come so far along an axis.
Generator::Maybe Generator::cumulative() {
  static const OpId kOps[] = {OpId::cumsum, OpId::cumprod, OpId::logcumsumexp, OpId::linear_recurrence,
                              OpId::cumargmax};
  OpId op = kOps[below(std::size(kOps) - (options_.smooth ? 1 : 0))]; // the last one jumps
  int x = anyValue(recordOf(op).dtypes, op == OpId::cumargmax);
  if (shapeOf(x).empty())
    return -1;
  int64_t axis = below(shapeOf(x).size());
  bool reverse = chance(0.5), real = isFloat(typeOf(x).dtype);
  switch (op) {
  case OpId::cumargmax: return step(op, CumargmaxAttrs::make(axis, reverse, chance(0.5)), {x});
  case OpId::linear_recurrence:
    return step(op, LinearRecurrenceAttrs::make(axis, reverse), {step(OpId::tanh, {ofType(typeOf(x))}), x});
  case OpId::cumprod:
    if (real) // factors around 1, some of them small
      x = step(OpId::add, {step(OpId::mul, {step(OpId::sin, {x}), fill(x, 0.25)}), fill(x, 1)});
    break;
  default: break;
  }
  int y = step(op, CumsumAttrs::make(axis, reverse), {x});
  return y >= 0 && op == OpId::cumsum && real && chance(0.5) ? step(OpId::mul, {y, fill(y, 0.1)}) : y;
}

/// Orders depend on every bit of floats, so these are not computed ones. Where differences are taken, rows are so short
/// that no step passes a neighbour, and places are seen by nobody else.
Generator::Maybe Generator::order() {
  if (!options_.smooth && chance(0.15)) {
    int x = anInteger();
    return shapeOf(x).empty() ? -1 : step(OpId::first_occurrence, {x});
  }
  int x = anyValue(chance(0.3) ? kNumbers : kAnyDType, true);
  const Shape shape = shapeOf(x);
  if (shape.empty())
    return -1;
  int64_t n = shape[shape.size() - 1];
  if (options_.smooth && n > 40)
    return -1;
  bool searches = !options_.smooth && typeOf(x).dtype != DType::boolean && chance(0.3);
  int64_t count = searches || chance(0.6) ? -1 : below(static_cast<uint64_t>(n) + 1);
  int at = step(OpId::argsort, ArgsortAttrs::make(!searches && chance(0.5), count), {x});
  if (at < 0 || (!options_.smooth && !searches && chance(0.3)))
    return at;
  hidden_[static_cast<size_t>(at)] = options_.smooth;
  int sorted = step(OpId::gather, GatherAttrs::make(static_cast<int64_t>(shape.size()) - 1), {x, at}, true);
  if (!searches || sorted < 0)
    return sorted;
  TensorType type = typeOf(x);
  type.shape[shape.size() - 1] = size();
  return step(OpId::searchsorted, SearchsortedAttrs::make(chance(0.5)), {sorted, ofType(type, true)});
}

/// Rows of x at indices, written, added to or compared. Leading axes may be batch axes.
Generator::Maybe Generator::update() {
  static const OpId kOps[] = {OpId::index_set, OpId::index_add, OpId::index_max, OpId::index_min};
  OpId op = kOps[below(std::size(kOps))];
  int x = anyValue(recordOf(op).dtypes);
  const Shape shape = shapeOf(x);
  if (shape.empty())
    return -1;
  size_t batch = chance(0.4) ? static_cast<size_t>(below(shape.size())) : 0;
  Shape where;
  for (size_t axis = 0; axis < batch; ++axis)
    where.push_back(shape[axis]);
  for (int64_t more = below(3); more > 0; --more)
    where.push_back(size());
  TensorType updates{typeOf(x).dtype, where};
  for (size_t axis = batch + 1; axis < shape.size(); ++axis)
    updates.shape.push_back(shape[axis]);
  if (shape[batch] == 0 || where.numElements() > 400 || updates.shape.size() > 5 || updates.shape.numElements() > 6000)
    return -1;
  return step(op, IndexSetAttrs::make(static_cast<int64_t>(batch)), {x, ofType(updates), places(where, shape[batch])},
              op != OpId::index_add);
}

/// A part of x whose first place is data, read or replaced.
Generator::Maybe Generator::part() {
  int x = anyValue(kAnyDType);
  const Shape shape = shapeOf(x);
  size_t batch = chance(0.4) ? static_cast<size_t>(below(shape.size() + 1)) : 0;
  TensorType part{typeOf(x).dtype, {}};
  Shape where;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t n = shape[axis];
    part.shape.push_back(axis < batch || n == 0 || chance(0.2) ? n
                         : below(8) == 0                       ? 0
                                                               : 1 + below(static_cast<uint64_t>(n)));
    if (axis < batch)
      where.push_back(n);
  }
  where.push_back(static_cast<int64_t>(shape.size() - batch));
  Maybe starts = chance(0.3) ? fitted(pick([&](int v) { return isInteger(typeOf(v).dtype); }), where) : -1;
  if (starts < 0) // those outside are moved into it
    starts = input(chance(0.5) ? DType::i64 : DType::i32, where, -2, 6);
  return chance(0.5) ? step(OpId::dynamic_slice, DynamicSliceAttrs::make(part.shape, static_cast<int64_t>(batch)),
                            {x, starts}, true)
                     : step(OpId::dynamic_update_slice, DynamicUpdateSliceAttrs::make(static_cast<int64_t>(batch)),
                            {x, ofType(part), starts}, true);
}

} // namespace wg::tests
