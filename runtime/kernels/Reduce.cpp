// Many elements to one. A reduction over any axes is a sequence of plain ones, x [outer, reduced, inner] -> y [outer,
// inner], the innermost group of neighbouring axes first. The order of a sum is fixed by the shape alone.
//
// f32 sums: groups of 8 terms are added in f32, the groups' sums in f64. The error is below 8 + 5 rounding errors of
// f32 whatever the length (10^7 equal terms: 1e-7 relative, where a running sum is off by percents).
#include "runtime/kernels/Kernels.h"

#include <cstring>
#include <limits>

namespace wg::runtime {

static Status reduceRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  const Ints &axes = attrs.ints(0);
  if (Status status = checkAxes(axes, x); !status.ok())
    return status;
  TensorType y{x.dtype, {}};
  for (size_t axis = 0; axis < x.shape.size(); ++axis)
    if (!axes.contains(static_cast<int64_t>(axis)))
      y.shape.push_back(x.shape[axis]);
  results.push_back(y);
  return {};
}

// ---- What is combined: the identity, and a step; `Wide` holds a total -----------------------------------------------
struct Sum {
  template <class T> using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  template <class T> static constexpr T identity = 0;
  template <class T> static T combine(T a, T b) { return wrappedAdd(a, b); }
};
struct Prod {
  template <class T> using Wide = T;
  template <class T> static constexpr T identity = 1;
  template <class T> static T combine(T a, T b) { return wrappedMul(a, b); }
};
struct Max {
  template <class T> using Wide = T;
  template <class T>
  static constexpr T identity =
      std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  template <class T> static T combine(T a, T b) { return maximumOf(a, b); }
};
struct Min {
  template <class T> using Wide = T;
  template <class T>
  static constexpr T identity =
      std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  template <class T> static T combine(T a, T b) { return minimumOf(a, b); }
};
struct Any {
  template <class T> using Wide = T;
  template <class T> static constexpr T identity = false;
  template <class T> static T combine(T a, T b) { return a | b; }
};
struct All {
  template <class T> using Wide = T;
  template <class T> static constexpr T identity = true;
  template <class T> static T combine(T a, T b) { return a & b; }
};

// ---- Rows: the reduced axis is the innermost ------------------------------------------------------------------------
static constexpr int64_t kLanes = 32, kGroup = 8;
/// Elements whose total is one partial result: a row's partials are combined in order, whichever thread made them.
static constexpr int64_t kPart = 1 << 16;

/// The combination of x[0 .. n): lane l takes elements l, l + 32, ...; then the lanes are combined as a tree. In short
/// rows lane l takes l, l + 4, ...
template <class R, class T> [[gnu::noinline]] static auto combineRow(const T *x, int64_t n) {
  using Wide = typename R::template Wide<T>;
  if constexpr (!std::is_floating_point_v<T>) { // exact in any order: the compiler finds its own lanes
    T total = R::template identity<T>;
    for (int64_t i = 0; i < n; ++i)
      total = R::combine(total, x[i]);
    return total;
  }
  if (n < kLanes) { // four lanes do
    T lanes[4];
    std::fill_n(lanes, 4, R::template identity<T>);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (int64_t lane = 0; lane < 4; ++lane)
        lanes[lane] = R::combine(lanes[lane], x[i + lane]);
    for (; i < n; ++i)
      lanes[i & 3] = R::combine(lanes[i & 3], x[i]);
    return static_cast<Wide>(R::combine(R::combine(lanes[0], lanes[1]), R::combine(lanes[2], lanes[3])));
  }
  Wide total = R::template identity<Wide>;
  T lanes[kLanes];
  for (int64_t begin = 0; begin < n;) {
    // One group, for totals wider than T; else all of the row.
    int64_t end = std::is_same_v<T, Wide> ? n : std::min(n, begin + kLanes * kGroup);
    std::fill_n(lanes, kLanes, R::template identity<T>);
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] = R::combine(lanes[lane], x[i + lane]);
    for (int64_t lane = 0; i < end; ++i, ++lane)
      lanes[lane] = R::combine(lanes[lane], x[i]);
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t lane = 0; lane < half; ++lane)
        lanes[lane] = R::combine(lanes[lane], lanes[lane + half]);
    total = R::combine(total, static_cast<Wide>(lanes[0]));
    begin = end;
  }
  return total;
}

template <class R, class T> static void reduceRows(const T *x, int64_t rows, int64_t n, T *y) {
  using Wide = typename R::template Wide<T>;
  if (n <= kPart)
    return forChunks(rows, std::max<int64_t>(1, kPart / std::max<int64_t>(n, 1)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        y[row] = static_cast<T>(combineRow<R>(x + row * n, n));
    });
  int64_t parts = (n + kPart - 1) / kPart;
  Buffer buffer = Buffer::allocate(static_cast<size_t>(parts) * sizeof(Wide));
  Wide *partial = static_cast<Wide *>(buffer.data());
  for (int64_t row = 0; row < rows; ++row) {
    parallelFor(parts, [=](int64_t part) {
      int64_t begin = part * kPart;
      partial[part] = combineRow<R>(x + row * n + begin, std::min(kPart, n - begin));
    });
    Wide total = R::template identity<Wide>;
    for (int64_t part = 0; part < parts; ++part)
      total = R::combine(total, partial[part]);
    y[row] = static_cast<T>(total);
  }
}

// ---- Columns: axes inside the reduced one stay ----------------------------------------------------------------------
/// y[j] = combination over i < n of x[i, j], for `width` <= kTile columns of rows that are `stride` apart.
static constexpr int64_t kTile = 256;
template <class R, class T>
[[gnu::noinline]] static void combineColumns(const T *x, int64_t n, int64_t stride, int64_t width, T *y) {
  using Wide = typename R::template Wide<T>;
  Wide totals[kTile];
  T group[kTile];
  std::fill_n(totals, width, R::template identity<Wide>);
  for (int64_t i = 0; i < n;) {
    int64_t end = std::min(n, i + kGroup);
    std::copy_n(x + i * stride, width, group);
    for (++i; i < end; ++i)
      for (int64_t j = 0; j < width; ++j)
        group[j] = R::combine(group[j], x[i * stride + j]);
    for (int64_t j = 0; j < width; ++j)
      totals[j] = R::combine(totals[j], static_cast<Wide>(group[j]));
  }
  for (int64_t j = 0; j < width; ++j)
    y[j] = static_cast<T>(totals[j]);
}

template <class R, class T> static void reducePlain(const T *x, int64_t outer, int64_t n, int64_t inner, T *y) {
  if (inner == 1)
    return reduceRows<R>(x, outer, n, y);
  if (inner == 0)
    return;
  int64_t tiles = (inner + kTile - 1) / kTile;
  int64_t grain = std::max<int64_t>(1, kPart / (std::max<int64_t>(n, 1) * std::min(inner, kTile)));
  forChunks(outer * tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = i / tiles, column = i % tiles * kTile;
      combineColumns<R>(x + at * n * inner + column, n, inner, std::min(kTile, inner - column),
                        y + at * inner + column);
    }
  });
}

// ---- Any axes -------------------------------------------------------------------------------------------------------
/// Reduces the last group of neighbouring reduced axes, then the groups before it.
template <class R, class T> static void reduceAxes(const T *x, Ints sizes, Ints axes, T *y) {
  if (axes.empty()) {
    std::copy_n(x, product(sizes), y);
    return;
  }
  size_t last = static_cast<size_t>(axes[axes.size() - 1]), first = last, groups = axes.size() - 1;
  while (groups > 0 && axes[groups - 1] == static_cast<int64_t>(first) - 1)
    --groups, --first;
  std::span<const int64_t> all = sizes;
  int64_t outer = product(all.first(first)), n = product(all.subspan(first, last - first + 1)),
          inner = product(all.subspan(last + 1));
  if (groups == 0)
    return reducePlain<R>(x, outer, n, inner, y);
  Buffer buffer = Buffer::allocate(static_cast<size_t>(outer * inner) * sizeof(T));
  T *partial = static_cast<T *>(buffer.data());
  reducePlain<R>(x, outer, n, inner, partial);
  Ints restSizes(all.first(first)), restAxes(std::span<const int64_t>(axes).first(groups));
  for (int64_t size : all.subspan(last + 1))
    restSizes.push_back(size);
  reduceAxes<R>(partial, restSizes, restAxes, y);
}

template <class R, class Set>
static Status reduceKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  return visit(Set(), operands[0].dtype(), [&]<class T>(T) -> Status {
    reduceAxes<R>(operands[0].data<T>(), operands[0].shape(), attrs.ints(0), results[0].data<T>());
    return {};
  });
}

// ---- argmax ---------------------------------------------------------------------------------------------------------
static Status argmaxRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  int64_t axis = attrs.integer(0);
  if (Status status = checkAxis(axis, x); !status.ok())
    return status;
  if (x.shape[static_cast<size_t>(axis)] == 0)
    return valueError(say("axis ", axis, " of ", x, " is empty: there is no largest element"));
  TensorType y{DType::i64, {}};
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (static_cast<int64_t>(i) != axis)
      y.shape.push_back(x.shape[i]);
  results.push_back(y);
  return {};
}

/// The first of equals; the first NaN wins over all.
static Status argmaxKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Shape &shape = operands[0].shape();
  size_t axis = static_cast<size_t>(attrs.integer(0));
  int64_t n = shape[axis], inner = stridesOf(shape)[axis];
  return visit(Numbers(), operands[0].dtype(), [&]<class T>(T) -> Status {
    const T *x = operands[0].data<T>();
    int64_t *y = results[0].data<int64_t>();
    forChunks(results[0].numElements(), std::max<int64_t>(1, kPart / n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *row = x + i / inner * n * inner + i % inner;
        int64_t best = 0;
        T largest = row[0];
        for (int64_t j = 1; j < n && largest == largest; ++j) {
          T value = row[j * inner];
          if (value > largest || value != value) {
            largest = value;
            best = j;
          }
        }
        y[i] = best;
      }
    });
    return {};
  });
}

std::span<const KernelRow> reduceKernels() {
  static constexpr KernelRow rows[] = {
      {"reduce_sum", reduceRule, reduceKernel<Sum, Numbers>},
      {"reduce_prod", reduceRule, reduceKernel<Prod, Numbers>},
      {"reduce_max", reduceRule, reduceKernel<Max, Numbers>},
      {"reduce_min", reduceRule, reduceKernel<Min, Numbers>},
      {"reduce_any", reduceRule, reduceKernel<Any, Booleans>},
      {"reduce_all", reduceRule, reduceKernel<All, Booleans>},
      {"argmax", argmaxRule, argmaxKernel},
  };
  return rows;
}

} // namespace wg::runtime
