// The one symbol that a level's kernels show: all their tables.
#include "runtime/kernels/Kernels.h"

#define WG_JOIN_(a, b) a##b
#define WG_JOIN(a, b) WG_JOIN_(a, b)

extern "C" const std::span<const wg::runtime::KernelRow> *WG_JOIN(wg_kernels_v, WG_LEVEL)(size_t *count) {
  using namespace wg::runtime;
  static const std::span<const KernelRow> families[] = {
      elementwiseKernels(), specialKernels(),  bitsKernels(),   compareKernels(), castKernels(),
      reduceKernels(),      contractKernels(), shapeKernels(),  indexKernels(),   indexUpdateKernels(),
      cumulativeKernels(),  sortKernels(),     randomKernels(), linalgKernels(),  hostKernels(),
  };
  *count = std::size(families);
  return families;
}
