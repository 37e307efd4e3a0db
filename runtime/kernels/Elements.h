// Rows of elementwise ops: from a function of one element to a loop for each dtype. Private to kernels/.
#pragma once

#include "runtime/kernels/Kernels.h"

#include <array>

namespace wg::runtime {

/// Operands of one type in, that type out (or bool of that shape). `?` must be at the same places.
Status sameTypeRule(TypeSpan operands, const Attrs &attrs, TypeList &results);
Status predicateRule(TypeSpan operands, const Attrs &attrs, TypeList &results);

/// The loop of `f` for operands of type T and results of type R. The result overlaps no operand.
template <class F, int arity, class T, class R> void elementLoop(const void *const *operands, void *result, int64_t n) {
  const T *a = static_cast<const T *>(operands[0]);
  R *__restrict y = static_cast<R *>(result);
  if constexpr (arity == 1) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<R>(F()(a[i]));
  } else {
    const T *b = static_cast<const T *>(operands[1]);
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<R>(F()(a[i], b[i]));
  }
}

template <class F, int arity, class T, class Set, bool predicate> constexpr ElementLoop loopOf() {
  if constexpr (isIn<T, Set>)
    return &elementLoop<F, arity, T, std::conditional_t<predicate, bool, T>>;
  else
    return nullptr;
}

/// In the order of DType.
template <class F, int arity, class Set, bool predicate>
inline constexpr ElementLoop kLoops[kNumDTypes] = {loopOf<F, arity, double, Set, predicate>(),
                                                   loopOf<F, arity, float, Set, predicate>(),
                                                   nullptr,
                                                   nullptr,
                                                   loopOf<F, arity, int64_t, Set, predicate>(),
                                                   loopOf<F, arity, int32_t, Set, predicate>(),
                                                   loopOf<F, arity, uint8_t, Set, predicate>(),
                                                   loopOf<F, arity, bool, Set, predicate>()};

/// The same as a Kernel, for callers that have no use for the loop itself.
template <const ElementLoop *loops>
Status loopKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  ElementLoop loop = loops[static_cast<int>(operands[0].dtype())];
  if (!loop)
    return noKernel(operands[0].dtype());
  const void *data[2] = {operands[0].buffer.data(), operands.size() > 1 ? operands[1].buffer.data() : nullptr};
  loop(data, results[0].buffer.data(), results[0].numElements());
  return {};
}

template <class Set, int arity, bool predicate, class F> constexpr KernelRow elementRow(const char *name, F) {
  constexpr const ElementLoop *loops = kLoops<F, arity, Set, predicate>;
  return {name, predicate ? predicateRule : sameTypeRule, &loopKernel<loops>, loops, predicate};
}

/// y = f(x), for the dtypes of Set.
template <class Set, class F> constexpr KernelRow unary(const char *name, F f) {
  return elementRow<Set, 1, false>(name, f);
}
/// c = f(a, b).
template <class Set, class F> constexpr KernelRow binary(const char *name, F f) {
  return elementRow<Set, 2, false>(name, f);
}
/// The same with a bool result.
template <class Set, class F> constexpr KernelRow test(const char *name, F f) {
  return elementRow<Set, 1, true>(name, f);
}
template <class Set, class F> constexpr KernelRow compare(const char *name, F f) {
  return elementRow<Set, 2, true>(name, f);
}

} // namespace wg::runtime
