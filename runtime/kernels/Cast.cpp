// From one dtype to another.
#include "runtime/kernels/Kernels.h"

#include <cstring>
#include <limits>

namespace wg::runtime {

static Status castRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  results.push_back({attrs.dtype(0), operands[0].shape});
  return {};
}

/// Float -> integer: toward zero, saturating, NaN -> 0. Integer -> integer: modulo 2^n. To bool: x != 0, NaN is true.
template <class To, class From> static To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    // 2^n - 1 is no float for wide n, but 2^n is: compare with half of it, doubled.
    constexpr From low = static_cast<From>(Limits::min()), high = static_cast<From>(Limits::max() / 2 + 1) * 2;
    return x >= high ? Limits::max() : x > low ? static_cast<To>(x) : x == x ? Limits::min() : To(0);
  } else {
    return static_cast<To>(x);
  }
}

static Status castKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  const Array &x = operands[0];
  Array &y = results[0];
  int64_t n = y.numElements();
  if (x.dtype() == y.dtype()) {
    if (n != 0)
      std::memcpy(y.buffer.data(), x.buffer.data(), y.numBytes());
    return {};
  }
  return visit(AllTypes(), x.dtype(), [&]<class From>(From) {
    return visit(AllTypes(), y.dtype(), [&]<class To>(To) -> Status {
      const From *from = x.data<From>();
      To *__restrict to = y.data<To>();
      forChunks(n, 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] = convert<To>(from[i]);
      });
      return {};
    });
  });
}

std::span<const KernelRow> castKernels() {
  static constexpr KernelRow rows[] = {{"cast", castRule, castKernel}};
  return rows;
}

} // namespace wg::runtime
