// Elements of one dtype in, bool out. IEEE: NaN is unequal to all and in no order with any; false < true.
#include "runtime/kernels/Elements.h"

namespace wg::runtime {

std::span<const KernelRow> compareKernels() {
  static constexpr KernelRow rows[] = {
      compare<AllTypes>("equal", [](auto a, auto b) { return a == b; }),
      compare<AllTypes>("not_equal", [](auto a, auto b) { return a != b; }),
      compare<AllTypes>("less", [](auto a, auto b) { return a < b; }),
      compare<AllTypes>("less_equal", [](auto a, auto b) { return a <= b; }),
      compare<AllTypes>("greater", [](auto a, auto b) { return a > b; }),
      compare<AllTypes>("greater_equal", [](auto a, auto b) { return a >= b; }),
  };
  return rows;
}

} // namespace wg::runtime
