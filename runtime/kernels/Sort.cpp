// Order: argsort, searchsorted. Each is a routine (runtime/routines/Sort.cpp), which compiled code calls too.
#include "runtime/kernels/ExternalKernel.h"

namespace wg::runtime {

/// The routine for a dtype: those of f64, f32, i64, i32 and u8, in this order; a bool is a u8.
static const char *symbolFor(DType dtype, const char *const (&symbols)[5]) {
  switch (dtype) {
  case DType::f64: return symbols[0];
  case DType::f32: return symbols[1];
  case DType::i64: return symbols[2];
  case DType::i32: return symbols[3];
  case DType::u8:
  case DType::boolean: return symbols[4];
  default: return nullptr;
  }
}

/// The number of rows along the last axis.
static int64_t rowsOf(const Shape &shape) { return product({shape.begin(), shape.size() - 1}); }

static Status argsortRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  int64_t count = ArgsortAttrs{attrs}.count();
  if (x.shape.rank() == 0)
    return valueError(say("x has a last axis, got ", x), "reshape it: reshape(x, {1})");
  int64_t &size = (results.push_back({DType::i64, x.shape}), results.types[0].shape[x.shape.size() - 1]);
  if (count < -1 || (count >= 0 && size != kDynamic && count > size))
    return valueError(say("the first ", count, " of an axis of ", size, " elements"), "ask for fewer");
  if (count >= 0)
    size = count;
  return {};
}

static ExternalCall argsortCall(TypeSpan operands, const Attrs &attrs) {
  static constexpr const char *const symbols[5] = {"wg_argsort_f64", "wg_argsort_f32", "wg_argsort_i64",
                                                   "wg_argsort_i32", "wg_argsort_u8"};
  const TensorType &x = operands[0];
  ArgsortAttrs sort{attrs};
  int64_t n = x.shape[x.shape.size() - 1], count = sort.count() < 0 ? n : sort.count();
  return {symbolFor(x.dtype, symbols), RoutineNumbers{rowsOf(x.shape), n, sort.descending(), count}, 32 * n};
}

static Status searchsortedRule(TypeSpan operands, const Attrs &, TypeList &results) {
  const TensorType &sorted = operands[0], &values = operands[1];
  if (sorted.dtype != values.dtype)
    return typeError(say(sorted, " and ", values, " have different dtypes"),
                     say("cast one of them: cast(x, ", nameOf(sorted.dtype), ")"));
  int rank = sorted.shape.rank();
  bool ok = rank > 0 && values.shape.rank() == rank;
  for (int axis = 0; ok && axis < rank - 1; ++axis)
    ok = mayBeEqual(sorted.shape.dim(axis), values.shape.dim(axis));
  if (!ok)
    return valueError(say("sorted is [..., n] and the values are [..., m], with the same axes in front: they are ",
                          sorted, " and ", values));
  TensorType y{DType::i64, values.shape};
  for (int axis = 0; axis < rank - 1; ++axis)
    y.shape[static_cast<size_t>(axis)] = known(values.shape.dim(axis), sorted.shape.dim(axis));
  results.push_back(y);
  return {};
}

static ExternalCall searchsortedCall(TypeSpan operands, const Attrs &attrs) {
  static constexpr const char *const symbols[5] = {"wg_searchsorted_f64", "wg_searchsorted_f32", "wg_searchsorted_i64",
                                                   "wg_searchsorted_i32", "wg_searchsorted_u8"};
  const Shape &sorted = operands[0].shape, &values = operands[1].shape;
  return {symbolFor(operands[0].dtype, symbols),
          RoutineNumbers{rowsOf(sorted), sorted[sorted.size() - 1], values[values.size() - 1],
                         SearchsortedAttrs{attrs}.right()}};
}

std::span<const KernelRow> sortKernels() {
  static constexpr ExternalRow argsort{argsortCall}, searchsorted{searchsortedCall};
  static constexpr KernelRow rows[] = {
      {.name = "argsort", .shape = argsortRule, .kernel = externalKernel<&argsort>, .external = &argsort},
      {.name = "searchsorted",
       .shape = searchsortedRule,
       .kernel = externalKernel<&searchsorted>,
       .external = &searchsorted}};
  return rows;
}

} // namespace wg::runtime
