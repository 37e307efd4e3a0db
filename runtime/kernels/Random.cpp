// Numbers from a key and a counter; the function is in runtime/Random.h.
#include "runtime/Random.h"
#include "runtime/kernels/Kernels.h"

namespace wg::runtime {

/// key i64[2], attributes shape and dtype; what the result's dtype may be is `accepted`.
static Status randomRule(TypeSpan operands, const Attrs &attrs, TypeList &results, DTypeSet accepted,
                         const char *words) {
  if (!(operands[0] == TensorType{DType::i64, {2}}))
    return valueError(say("the key is i64[2], got ", operands[0]));
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  if (!(accepted & setOf(attrs.dtype(1))))
    return typeError(say("the result's dtype is ", words, ", got ", nameOf(attrs.dtype(1))));
  results.push_back({attrs.dtype(1), Shape(attrs.ints(0))});
  return {};
}
static Status uniformRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  return randomRule(operands, attrs, results, kFloats, "a float");
}
static Status bitsRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  return randomRule(operands, attrs, results, setOf(DType::i64) | setOf(DType::i32), "i64 or i32");
}

/// y[i] = f(key0, key1, i).
template <class T, class F> static Status fill(const Array &key, Array &y, F f) {
  int64_t key0 = key.data<int64_t>()[0], key1 = key.data<int64_t>()[1];
  T *out = y.data<T>();
  forChunks(y.numElements(), 1 << 14, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = f(key0, key1, i);
  });
  return {};
}

static Status uniformKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  return visit(Floats(), results[0].dtype(), [&]<class T>(T) {
    return fill<T>(operands[0], results[0],
                   [](int64_t k0, int64_t k1, int64_t i) { return randomUniform<T>(k0, k1, i); });
  });
}

static Status bitsKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  return visit(Indices(), results[0].dtype(), [&]<class T>(T) {
    return fill<T>(operands[0], results[0], [](int64_t k0, int64_t k1, int64_t i) { return randomBits<T>(k0, k1, i); });
  });
}

std::span<const KernelRow> randomKernels() {
  static constexpr KernelRow rows[] = {{"random_uniform", uniformRule, uniformKernel},
                                       {"random_bits", bitsRule, bitsKernel}};
  return rows;
}

} // namespace wg::runtime
