// Numbers from a key and a counter; the function is in runtime/Random.h.
#include "runtime/Random.h"
#include "runtime/kernels/Kernels.h"

namespace wg::runtime {

/// key i64[..., 2], where the 2 may be `?`; attributes shape and dtype; what the result's dtype may be is `accepted`.
static Status randomRule(TypeSpan operands, const Attrs &attrs, TypeList &results, DTypeSet accepted,
                         const char *words) {
  const TensorType &key = operands[0];
  int leading = key.shape.rank() - 1;
  if (key.dtype != DType::i64 || leading < 0 || (key.shape.dim(leading) != 2 && key.shape.dim(leading) != kDynamic))
    return valueError(say("the key is i64[2], or several as i64[..., 2], got ", key));
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  if (!(accepted & setOf(attrs.dtype(1))))
    return typeError(say("the result's dtype is ", words, ", got ", nameOf(attrs.dtype(1))));
  int rank = leading + static_cast<int>(attrs.ints(0).size());
  if (rank > kMaxRank)
    return valueError(
        say("the result for keys ", key, " would have rank ", int64_t(rank), "; the highest is ", int64_t(kMaxRank)));
  TensorType y{attrs.dtype(1), {}};
  for (int axis = 0; axis < leading; ++axis)
    y.shape.push_back(key.shape.dim(axis));
  for (int64_t size : attrs.ints(0))
    y.shape.push_back(size);
  results.push_back(y);
  return {};
}
static Status uniformRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  return randomRule(operands, attrs, results, kFloats, "a float");
}
static Status bitsRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  return randomRule(operands, attrs, results, setOf(DType::i64) | setOf(DType::i32), "i64 or i32");
}

/// y[k..., i] = f(key0, key1, i) of the key at k.
template <class T, class F> static Status fill(const Array &key, Array &y, F f) {
  int64_t numKeys = key.numElements() / 2, size = numKeys == 0 ? 0 : y.numElements() / numKeys;
  for (int64_t k = 0; k < numKeys; ++k) {
    int64_t key0 = key.data<int64_t>()[2 * k], key1 = key.data<int64_t>()[2 * k + 1];
    T *out = y.data<T>() + k * size;
    forChunks(size, 1 << 14, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = f(key0, key1, i);
    });
  }
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
