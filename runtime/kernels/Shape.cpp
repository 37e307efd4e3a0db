// Constants, and the same elements in another place.
#include "runtime/SizeFormula.h"
#include "runtime/kernels/Kernels.h"

#include <array>
#include <cstring>
#include <numeric>

namespace wg::runtime {

// ---- Checks and walks shared by the families (Kernels.h) ------------------------------------------------------------
Status checkAxis(int64_t axis, const TensorType &x) {
  if (axis >= 0 && axis < x.shape.rank())
    return {};
  return valueError(say("axis ", axis, " is not an axis of ", x, ", which has rank ", int64_t(x.shape.rank())));
}

Status checkAxes(const Ints &axes, const TensorType &x) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (Status status = checkAxis(axes[i], x); !status.ok())
      return status;
    if (i != 0 && axes[i] <= axes[i - 1])
      return valueError(say("axes are sorted and distinct, got ", axes));
  }
  return {};
}

Status checkSizes(const Ints &shape) {
  for (int64_t size : shape)
    if (size < 0 && size != kDynamic)
      return valueError(say("sizes are not negative, got shape ", shape));
  return {};
}

/// Axes of size 1 are left out, and neighbours that step as one axis in both tensors become one.
static int mergeAxes(const Ints &sizes, const Ints &in, const Ints &out, Ints &s, Ints &a, Ints &b) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1)
      continue;
    size_t last = s.size();
    if (last > 0 && a[last - 1] == in[i] * sizes[i] && b[last - 1] == out[i] * sizes[i]) {
      s[last - 1] *= sizes[i];
      a[last - 1] = in[i];
      b[last - 1] = out[i];
    } else {
      s.push_back(sizes[i]);
      a.push_back(in[i]);
      b.push_back(out[i]);
    }
  }
  return static_cast<int>(s.size());
}

/// The two innermost axes: rows x columns. Where the columns are far apart in one tensor and the rows in the other (a
/// transposition), square tiles keep both in cache.
template <class B>
static void copyPlane(int64_t rows, int64_t columns, const B *in, int64_t inRow, int64_t inColumn, B *out,
                      int64_t outRow, int64_t outColumn) {
  if (inColumn == 1 && outColumn == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(out + r * outRow, in + r * inRow, static_cast<size_t>(columns) * sizeof(B));
  } else if (inColumn == 0 && outColumn == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::fill_n(out + r * outRow, columns, in[r * inRow]);
  } else {
    constexpr int64_t kTile = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += kTile)
      for (int64_t c0 = 0; c0 < columns; c0 += kTile)
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
          for (int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
            out[r * outRow + c * outColumn] = in[r * inRow + c * inColumn];
  }
}

void copyStrided(DType dtype, const Ints &sizes, const void *in, const Ints &inStrides, void *out,
                 const Ints &outStrides) {
  if (product(sizes) == 0)
    return;
  Ints s, a, b;
  mergeAxes(sizes, inStrides, outStrides, s, a, b);
  while (s.size() < 2) { // a plane at least: leading axes of one element
    Ints one{1}, zero{0}, s1 = one, a1 = zero, b1 = zero;
    for (size_t i = 0; i < s.size(); ++i)
      s1.push_back(s[i]), a1.push_back(a[i]), b1.push_back(b[i]);
    s = s1, a = a1, b = b1;
  }
  size_t row = s.size() - 2, column = s.size() - 1;
  // For the tiles: the axis that is contiguous in `in` beside the one that is contiguous in `out`.
  for (size_t i = 0; i + 1 < column; ++i)
    if (b[column] == 1 && a[column] != 1 && a[column] != 0 && a[i] == 1) {
      std::swap(s[i], s[row]), std::swap(a[i], a[row]), std::swap(b[i], b[row]);
      break;
    }
  int64_t outer = product(std::span<const int64_t>(s.begin(), row));
  int64_t plane = s[row] * s[column];
  visitWidth(dtype, [&]<class B>(B) {
    auto copyPlanes = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t rest = i, from = 0, to = 0;
        for (size_t axis = row; axis-- > 0; rest /= s[axis]) {
          from += rest % s[axis] * a[axis];
          to += rest % s[axis] * b[axis];
        }
        copyPlane(s[row], s[column], static_cast<const B *>(in) + from, a[row], a[column], static_cast<B *>(out) + to,
                  b[row], b[column]);
      }
    };
    if (outer > 1)
      return forChunks(outer, std::max<int64_t>(1, (1 << 16) / plane), copyPlanes);
    forChunks(s[row], std::max<int64_t>(16, (1 << 16) / s[column]), [&](int64_t begin, int64_t end) {
      copyPlane(end - begin, s[column], static_cast<const B *>(in) + begin * a[row], a[row], a[column],
                static_cast<B *>(out) + begin * b[row], b[row], b[column]);
    });
  });
}

// ---- constant, dim, size, iota --------------------------------------------------------------------------------------
static Status constantRule(TypeSpan, const Attrs &attrs, TypeList &results) {
  results.push_back(attrs.array(0).type);
  return {};
}
static Status constantKernel(std::span<const Array>, const Attrs &attrs, std::span<Array> results) {
  if (size_t bytes = attrs.array(0).numBytes())
    std::memcpy(results[0].buffer.data(), attrs.array(0).buffer.data(), bytes);
  return {};
}

static Status dimRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (Status status = checkAxis(attrs.integer(0), operands[0]); !status.ok())
    return status;
  results.push_back({DType::i64, {}});
  return {};
}
static Status dimKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  *results[0].data<int64_t>() = operands[0].shape().dim(static_cast<int>(attrs.integer(0)));
  return {};
}

static Status sizeRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  for (const TensorType &type : operands)
    if (!(type == TensorType{DType::i64, {}}) && !(type == TensorType{DType::i32, {}}))
      return typeError(say("an operand is i64[], got ", type));
  if (Status status = checkSizeFormula(attrs.string(0), operands.size()); !status.ok())
    return status;
  results.push_back({DType::i64, {}});
  return {};
}
static Status sizeKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  std::array<int64_t, 26> values; // the rule allows no more
  for (size_t i = 0; i < operands.size(); ++i)
    values[i] = operands[i].asIndex();
  Result<int64_t> size = evaluateSize(attrs.string(0), std::span(values).first(operands.size()));
  if (!size.ok())
    return size.take();
  *results[0].data<int64_t>() = *size;
  return {};
}

static Status iotaRule(TypeSpan, const Attrs &attrs, TypeList &results) {
  IotaAttrs iota{attrs};
  if (Status status = checkSizes(iota.shape()); !status.ok())
    return status;
  TensorType y{iota.dtype(), Shape(iota.shape())};
  if (iota.dtype() == DType::boolean)
    return typeError(say("the result's dtype is a number, got ", nameOf(iota.dtype())));
  if (Status status = checkAxis(iota.axis(), y); !status.ok())
    return status;
  results.push_back(y);
  return {};
}
static Status iotaKernel(std::span<const Array>, const Attrs &attrs, std::span<Array> results) {
  size_t axis = static_cast<size_t>(IotaAttrs{attrs}.axis());
  const Shape &shape = results[0].shape();
  int64_t size = shape[axis], inner = stridesOf(shape)[axis];
  return visit(Numbers(), results[0].dtype(), [&]<class T>(T) -> Status {
    T *y = results[0].data<T>();
    if (int64_t n = results[0].numElements())
      for (int64_t i = 0; i < n; i += inner)
        std::fill_n(y + i, inner, static_cast<T>(i / inner % size));
    return {};
  });
}

// ---- broadcast, reshape, transpose ----------------------------------------------------------------------------------
static Status broadcastRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  BroadcastAttrs broadcast{attrs};
  const TensorType &x = operands[0];
  const Ints &dims = broadcast.dims();
  if (Status status = checkSizes(broadcast.shape()); !status.ok())
    return status;
  TensorType y{x.dtype, Shape(broadcast.shape())};
  if (dims.size() != x.shape.size())
    return valueError(say("dims ", dims, " name an axis of ", y, " for each axis of ", x));
  if (Status status = checkAxes(dims, y); !status.ok())
    return status;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t size = y.shape[static_cast<size_t>(dims[i])];
    if (x.shape[i] != 1 && !mayBeEqual(x.shape[i], size))
      return valueError(say("axis ", int64_t(i), " of ", x, " has size ", x.shape[i], " and cannot become axis ",
                            dims[i], " of ", y, " (", x.shape[i], " != ", size, ")"),
                        "only a size of 1 is repeated");
  }
  results.push_back(y);
  return {};
}
static Status broadcastKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  Array &y = results[0];
  Ints strides = stridesOf(x.shape()), from(y.shape().size(), 0);
  for (size_t i = 0; i < strides.size(); ++i)
    if (x.shape()[i] != 1)
      from[static_cast<size_t>(BroadcastAttrs{attrs}.dims()[i])] = strides[i];
  copyStrided(x.dtype(), y.shape(), x.buffer.data(), from, y.buffer.data(), stridesOf(y.shape()));
  return {};
}

static Status reshapeRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  if (Status status = checkSizes(attrs.ints(0)); !status.ok())
    return status;
  TensorType y{x.dtype, Shape(attrs.ints(0))};
  Result<Extent> from = extentOf(x), to = extentOf(y);
  if (!from.ok() || !to.ok())
    return from.ok() ? to.status() : from.status();
  if (x.shape.isStatic() && y.shape.isStatic() && from->elements != to->elements)
    return valueError(say(x, " has ", from->elements, " elements and ", y, " has ", to->elements));
  results.push_back(y);
  return {};
}
/// execute() shares the buffer instead.
static Status reshapeKernel(std::span<const Array> operands, const Attrs &, std::span<Array> results) {
  if (size_t bytes = operands[0].numBytes())
    std::memcpy(results[0].buffer.data(), operands[0].buffer.data(), bytes);
  return {};
}

static Status transposeRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &x = operands[0];
  const Ints &permutation = attrs.ints(0);
  bool ok = permutation.size() == x.shape.size();
  for (size_t axis = 0; ok && axis < permutation.size(); ++axis)
    ok = permutation.contains(static_cast<int64_t>(axis));
  if (!ok)
    return valueError(say("permutation ", permutation, " does not name each axis of ", x, " once"));
  TensorType y{x.dtype, {}};
  for (int64_t axis : permutation)
    y.shape.push_back(x.shape[static_cast<size_t>(axis)]);
  results.push_back(y);
  return {};
}
static Status transposeKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  Array &y = results[0];
  Ints strides = stridesOf(x.shape()), from;
  for (int64_t axis : attrs.ints(0))
    from.push_back(strides[static_cast<size_t>(axis)]);
  copyStrided(x.dtype(), y.shape(), x.buffer.data(), from, y.buffer.data(), stridesOf(y.shape()));
  return {};
}

// ---- slice, pad, concat ---------------------------------------------------------------------------------------------
static Status reverseRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (Status status = checkAxes(attrs.ints(0), operands[0]); !status.ok())
    return status;
  results.push_back(operands[0]);
  return {};
}
static Status reverseKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  const Array &x = operands[0];
  Ints strides = stridesOf(x.shape()), from = strides;
  int64_t first = 0; // the last place of each axis that is turned around
  for (int64_t axis : attrs.ints(0)) {
    size_t i = static_cast<size_t>(axis);
    first += (x.shape()[i] - 1) * strides[i];
    from[i] = -strides[i];
  }
  if (x.numElements() != 0)
    copyStrided(x.dtype(), x.shape(), at(x, first), from, results[0].buffer.data(), strides);
  return {};
}

static Status sliceRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  SliceAttrs slice{attrs};
  const TensorType &x = operands[0];
  size_t rank = x.shape.size();
  if (slice.starts().size() != rank || slice.limits().size() != rank || slice.strides().size() != rank)
    return valueError(say("starts ", slice.starts(), ", limits ", slice.limits(), " and strides ", slice.strides(),
                          " have an entry for each axis of ", x));
  TensorType y{x.dtype, {}};
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t start = slice.starts()[axis], stride = slice.strides()[axis], size = x.shape[axis],
            limit = slice.limits()[axis];
    if (stride < 1)
      return valueError(say("strides are positive, got ", slice.strides()));
    // What is `?` holds as far as it is known; the rest is checked when it runs.
    int64_t least = start == kDynamic ? 0 : start, end = known(limit, size);
    if ((start < 0 && start != kDynamic) || (limit < 0 && limit != kDynamic) || (end != kDynamic && least > end) ||
        (limit != kDynamic && size != kDynamic && limit > size))
      return valueError(say("axis ", int64_t(axis), " of ", x, ": 0 <= start <= limit <= ", size,
                            " does not hold for start ", start, " and limit ", limit));
    y.shape.push_back(start == kDynamic || limit == kDynamic ? kDynamic
                      : limit == start                       ? 0
                                                             : (limit - start - 1) / stride + 1);
  }
  results.push_back(y);
  return {};
}
static Status sliceKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  SliceAttrs slice{attrs};
  const Array &x = operands[0];
  Array &y = results[0];
  if (y.numElements() == 0)
    return {};
  Ints strides = stridesOf(x.shape()), from;
  int64_t start = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    start += slice.starts()[axis] * strides[axis];
    from.push_back(y.shape()[axis] == 1
                       ? 0
                       : strides[axis] *
                             slice.strides()[axis]); // of one element, any stride will do; it may be 2^63 - 1
  }
  copyStrided(x.dtype(), y.shape(), at(x, start), from, y.buffer.data(), stridesOf(y.shape()));
  return {};
}

static Status padRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  PadAttrs pad{attrs};
  const TensorType &x = operands[0];
  size_t rank = x.shape.size();
  if (pad.low().size() != rank || pad.high().size() != rank || pad.interior().size() != rank)
    return valueError(say("low ", pad.low(), ", high ", pad.high(), " and interior ", pad.interior(),
                          " have an entry for each axis of ", x));
  TensorType y{x.dtype, {}};
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t low = pad.low()[axis], high = pad.high()[axis], interior = pad.interior()[axis], size = x.shape[axis];
    if ((low < 0 && low != kDynamic) || (high < 0 && high != kDynamic) || interior < 0)
      return valueError(
          say("paddings are not negative, got low ", pad.low(), ", high ", pad.high(), ", interior ", pad.interior()),
          "use slice to cut");
    if (size == kDynamic || low == kDynamic || high == kDynamic) {
      y.shape.push_back(kDynamic);
      continue;
    }
    int64_t padded = size;
    if ((__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior, &padded) ||
         __builtin_add_overflow(padded, size, &padded) || __builtin_add_overflow(padded, low, &padded) ||
         __builtin_add_overflow(padded, high, &padded)))
      return valueError(say("the padded size of axis ", int64_t(axis), " of ", x, " is beyond 64 bits"));
    y.shape.push_back(padded);
  }
  results.push_back(y);
  return {};
}
static Status padKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  PadAttrs pad{attrs};
  const Array &x = operands[0];
  Array &y = results[0];
  if (size_t bytes = y.numBytes())
    std::memset(y.buffer.data(), 0, bytes);
  if (x.numElements() == 0)
    return {};
  Ints strides = stridesOf(y.shape()), to;
  int64_t start = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    start += pad.low()[axis] * strides[axis];
    to.push_back(
        x.shape()[axis] == 1 ? 0 : strides[axis] * (pad.interior()[axis] + 1)); // of one element, any stride will do
  }
  copyStrided(x.dtype(), x.shape(), x.buffer.data(), stridesOf(x.shape()), at(y, start), to);
  return {};
}

static Status concatRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  if (operands.empty())
    return valueError("takes at least one operand, got 0");
  TensorType y = operands[0];
  if (Status status = checkAxis(attrs.integer(0), y); !status.ok())
    return status;
  size_t axis = static_cast<size_t>(attrs.integer(0));
  for (const TensorType &x : operands.subspan(1)) {
    if (x.dtype != y.dtype)
      return typeError(say(operands[0], " and ", x, " have different dtypes"),
                       say("cast one of them: cast(x, ", nameOf(y.dtype), ")"));
    bool ok = x.shape.size() == y.shape.size();
    for (size_t i = 0; ok && i < y.shape.size(); ++i)
      if (i != axis) {
        ok = mayBeEqual(x.shape[i], y.shape[i]);
        y.shape[i] = known(y.shape[i], x.shape[i]);
      }
    if (!ok)
      return valueError(say(operands[0], " and ", x, " differ on an axis other than ", attrs.integer(0)));
    int64_t &size = y.shape[axis];
    if (size == kDynamic || x.shape[axis] == kDynamic)
      size = kDynamic;
    else if (__builtin_add_overflow(size, x.shape[axis], &size))
      return valueError(say("axis ", attrs.integer(0), " of the result is beyond 64 bits"));
  }
  results.push_back(y);
  return {};
}
static Status concatKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  size_t axis = static_cast<size_t>(attrs.integer(0));
  Array &y = results[0];
  int64_t inner = stridesOf(y.shape())[axis], whole = inner * y.shape()[axis], start = 0;
  int64_t outer = product(std::span<const int64_t>(y.shape().begin(), axis));
  for (const Array &x : operands) {
    int64_t part = inner * x.shape()[axis];
    if (part != 0)
      copyStrided(x.dtype(), Ints{outer, part}, x.buffer.data(), Ints{part, 1}, at(y, start), Ints{whole, 1});
    start += part;
  }
  return {};
}

static Status barrierRule(TypeSpan operands, const Attrs &, TypeList &results) {
  results.push_back(operands[0]);
  return {};
}

std::span<const KernelRow> shapeKernels() {
  static constexpr KernelRow rows[] = {
      {"constant", constantRule, constantKernel},
      {"dim", dimRule, dimKernel},
      {"size", sizeRule, sizeKernel},
      {"iota", iotaRule, iotaKernel},
      {"broadcast", broadcastRule, broadcastKernel},
      {.name = "reshape", .shape = reshapeRule, .kernel = reshapeKernel, .shares = true},
      {"transpose", transposeRule, transposeKernel},
      {"reverse", reverseRule, reverseKernel},
      {"slice", sliceRule, sliceKernel},
      {"pad", padRule, padKernel},
      {"concat", concatRule, concatKernel},
      {.name = "barrier", .shape = barrierRule, .kernel = reshapeKernel, .shares = true},
  };
  return rows;
}

} // namespace wg::runtime
