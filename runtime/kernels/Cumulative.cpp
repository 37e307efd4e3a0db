// What has come so far along an axis. One element after the other, in one order, so the bits are those of compiled
// code.
#include "runtime/kernels/Kernels.h"

#include <cmath>

namespace wg::runtime {

/// y[first] = x's, and y[k] = step(y[k - 1], place) along the axis, from its start or, reversed, its end. Rows of the
/// inner axes are made of rows.
template <class Y, class First, class Step>
static void walk(const Shape &shape, size_t axis, bool reverse, Y *y, First first, Step step) {
  int64_t n = shape[axis], inner = stridesOf(shape)[axis], outer = product({shape.begin(), axis});
  int64_t plane = n * inner;
  if (plane == 0)
    return;
  forChunks(outer, std::max<int64_t>(1, (1 << 16) / plane), [=](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      int64_t row = o * plane + (reverse ? (n - 1) * inner : 0), by = reverse ? -inner : inner;
      for (int64_t i = 0; i < inner; ++i)
        y[row + i] = first(row + i, reverse ? n - 1 : 0);
      for (int64_t k = 1; k < n; ++k) {
        row += by;
        for (int64_t i = 0; i < inner; ++i)
          y[row + i] = step(y[row + i - by], row + i, reverse ? n - 1 - k : k);
      }
    }
  });
}

// ---- Shape rules ----------------------------------------------------------------------------------------------------
static Status cumulativeRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  if (Status status = checkAxis(attrs.integer(0), x); !status.ok())
    return status;
  results.push_back(x);
  return {};
}

static Status cumargmaxRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  Status status = cumulativeRule(operands, attrs, results);
  if (status.ok())
    results.types[0].dtype = DType::i64;
  return status;
}

static Status linearRecurrenceRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &a = operands[0], &x = operands[1];
  if (a.dtype != x.dtype)
    return typeError(say(a, " and ", x, " have different dtypes"),
                     say("cast one of them: cast(x, ", nameOf(a.dtype), ")"));
  if (Status status = checkAxis(attrs.integer(0), a); !status.ok())
    return status;
  TensorType y = x;
  bool ok = a.shape.rank() == x.shape.rank();
  for (int axis = 0; ok && axis < a.shape.rank(); ++axis) {
    ok = mayBeEqual(a.shape.dim(axis), x.shape.dim(axis));
    y.shape[static_cast<size_t>(axis)] = known(a.shape.dim(axis), x.shape.dim(axis));
  }
  if (!ok)
    return valueError(say(a, " and ", x, " have different shapes"), "broadcast one of them");
  results.push_back(y);
  return {};
}

// ---- Kernels --------------------------------------------------------------------------------------------------------
/// Each element is f(the one before it, x's).
template <class Set, class F>
static Status foldKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  return visit(Set(), operands[0].dtype(), [&]<class T>(T) -> Status {
    const T *x = operands[0].data<T>();
    walk(
        operands[0].shape(), static_cast<size_t>(attrs.integer(0)), attrs.boolean(1), results[0].data<T>(),
        [=](int64_t i, int64_t) { return x[i]; }, [=](T before, int64_t i, int64_t) { return F()(before, x[i]); });
    return {};
  });
}

using Sum = decltype([]<class T>(T a, T b) { return wrappedAdd(a, b); });
using Product = decltype([]<class T>(T a, T b) { return wrappedMul(a, b); });
/// max + log1p(e^-|a - b|)
using LogSum = decltype([]<class T>(T a, T b) {
  return maximumOf(a, b) + std::log1p(std::exp(a == b ? T(0) : -std::abs(a - b)));
});

/// The first of those that are met; the first NaN wins over all.
static Status cumargmaxKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  CumargmaxAttrs cumargmax{attrs};
  const Shape &shape = operands[0].shape();
  size_t axis = static_cast<size_t>(cumargmax.axis());
  int64_t inner = stridesOf(shape)[axis];
  bool smallest = cumargmax.smallest();
  return visit(Numbers(), operands[0].dtype(), [&]<class T>(T) -> Status {
    const T *x = operands[0].data<T>();
    walk(
        shape, axis, cumargmax.reverse(), results[0].data<int64_t>(), [](int64_t, int64_t k) { return k; },
        [=](int64_t before, int64_t i, int64_t k) {
          T value = x[i], best = x[i + (before - k) * inner];
          bool better = smallest ? value < best : value > best;
          return better || (value != value && best == best) ? k : before;
        });
    return {};
  });
}

static Status linearRecurrenceKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  return visit(Floats(), operands[0].dtype(), [&]<class T>(T) -> Status {
    const T *a = operands[0].data<T>(), *x = operands[1].data<T>();
    walk(
        operands[1].shape(), static_cast<size_t>(attrs.integer(0)), attrs.boolean(1), results[0].data<T>(),
        [=](int64_t i, int64_t) { return x[i]; },
        [=](T before, int64_t i, int64_t) { return std::fma(a[i], before, x[i]); });
    return {};
  });
}

std::span<const KernelRow> cumulativeKernels() {
  static constexpr KernelRow rows[] = {{"cumsum", cumulativeRule, foldKernel<Numbers, Sum>},
                                       {"cumprod", cumulativeRule, foldKernel<Numbers, Product>},
                                       {"logcumsumexp", cumulativeRule, foldKernel<Floats, LogSum>},
                                       {"cumargmax", cumargmaxRule, cumargmaxKernel},
                                       {"linear_recurrence", linearRecurrenceRule, linearRecurrenceKernel}};
  return rows;
}

} // namespace wg::runtime
