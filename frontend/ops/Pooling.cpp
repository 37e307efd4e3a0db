// Pooling and resizing: windows one axis after the other, each of them some slices of the image.
#include <wengert/Arrays.h>

#include "frontend/ops/Images.h"

#include <algorithm>
#include <cmath>

namespace wg {

using detail::At;
using detail::Image;
using detail::known;
using detail::placesAlong;
using detail::raiseOp;
using detail::Size;
using detail::sizeOf;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using detail::WindowedAxis;
using runtime::OpId;

namespace {

struct Pool {
  std::span<const int64_t> window, strides, dilations;
  const Padding &padding;
  Layout layout;
};

} // namespace

static void checkPool(const Image &image, const Pool &pool) {
  if (image.x.rank() != static_cast<int>(image.axes) + 2) {
    static constexpr const char *axes[] = {"L", "H, W", "D, H, W"};
    std::string own = axes[image.axes - 1];
    image.refuse("takes x[N, " + (pool.layout == Layout::channels_last ? own + ", C" : "C, " + own) + "]",
                 "reshape, or add axes: expand_dims(x, 0)");
  }
  for (int64_t size : pool.window)
    image.check("a window", size);
  for (int64_t stride : pool.strides)
    image.check("a stride", stride, 0);
  for (int64_t dilation : pool.dilations)
    image.check("a dilation", dilation);
  image.checkPadding(pool.padding);
}

/// Axis `axis` with `outside`, a scalar, at the places around it.
static Tensor padded(const Tensor &x, int64_t axis, std::pair<int64_t, int64_t> around, const Tensor *outside,
                     const At &at) {
  if (around.first == 0 && around.second == 0)
    return x;
  std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(x.rank()));
  widths[static_cast<size_t>(axis)] = around;
  Tensor wide = pad(at[x], widths);
  if (!outside)
    return wide;
  Tensor inside = pad(at[cast(at[ones_like(at[x])], boolean)], widths);
  return where(at[inside], at[wide], at[*outside]);
}

/// The elements of all windows that are `place` places behind their first, along one axis.
static Tensor elementsAt(const char *op, const Tensor &x, int64_t axis, int64_t place, const WindowedAxis &by,
                         const Size &count, const Where &where) {
  Sizes starts, limits;
  Ints strides;
  int64_t first = place * by.dilation;
  Size size = sizeOf(x, axis, where);
  std::string from = "min(" + std::to_string(first) + ", b)"; // of no window, which may be beyond the axis
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) {
      starts.push_back(known(0));
      limits.push_back(sizeOf(x, i, where));
      strides.push_back(1);
      continue;
    }
    starts.push_back(detail::computeSize(op, "min(" + std::to_string(first) + ", a)", {size}, where));
    limits.push_back(detail::computeSize(
        op, from + " + max((a - 1) * " + std::to_string(by.stride) + " + 1, 0) * min(a, 1)", {count, size}, where));
    strides.push_back(by.stride);
  }
  std::vector<Tensor> values = starts.values;
  values.insert(values.end(), limits.values.begin(), limits.values.end());
  return detail::applySized(OpId::slice, runtime::SliceAttrs::make(starts.list, limits.list, strides), x, values,
                            where);
}

/// The window's elements along one axis combined, the first with the second, what that gives with the third ...
template <class Combine>
static Tensor pooledAlong(const char *op, const Tensor &x, int64_t axis, const WindowedAxis &by, const Size &count,
                          const Where &where, Combine combine) {
  Tensor y;
  for (int64_t place = 0; place < by.taken.known; ++place) {
    Tensor next = elementsAt(op, x, axis, place, by, count, where);
    y = place == 0 ? next : combine(y, next);
  }
  return y;
}

static WindowedAxis axisOf(const Image &image, const Tensor &x, const Pool &pool, size_t i, int64_t axis) {
  WindowedAxis by{i, pool.strides[i] == 0 ? pool.window[i] : pool.strides[i], pool.dilations[i],
                  sizeOf(x, axis, image.where), known(pool.window[i])};
  by.around = image.around(pool.padding, by);
  return by;
}

/// The larger; of equal ones the first, so that it has the gradient, and a NaN wins.
static Tensor larger(const Tensor &a, const Tensor &b, const At &at) {
  Tensor second = greater(at[b], at[a]);
  if (runtime::isFloat(a.dtype()))
    second = logical_or(at[second], at[logical_and(at[is_nan(at[b])], at[logical_not(at[is_nan(at[a])])])]);
  return where(at[second], at[b], at[a]);
}

static Tensor maxPool(const Image &image, const Pool &pool) {
  At at{image.where};
  checkPool(image, pool);
  Tensor y = image.x;
  Tensor lowest = detail::endOf(y.dtype(), false, Shape(), at.where);
  // The last axis first: then the first of equals is the first in row-major order.
  for (size_t i = image.axes; i-- > 0;) {
    int64_t axis = static_cast<int64_t>(i) + (pool.layout == Layout::channels_last ? 1 : 2);
    WindowedAxis by = axisOf(image, y, pool, i, axis);
    Size count = image.taken(by);
    y = pooledAlong(image.op, padded(y, axis, by.around, &lowest, at), axis, by, count, at.where,
                    [&](const Tensor &a, const Tensor &b) { return larger(a, b, at); });
  }
  return y;
}

/// A mean along one axis after the other; what is outside of the image is 0, and is not counted unless asked.
static Tensor avgPool(const Image &image, const Pool &pool, bool countPadding) {
  At at{image.where};
  checkPool(image, pool);
  if (!runtime::isFloat(image.x.dtype()))
    image.refuse("takes floats", "cast it: cast(x, f32)");
  Tensor y = image.x;
  auto sum = [&](const Tensor &a, const Tensor &b) { return add(at[a], at[b]); };
  for (size_t i = image.axes; i-- > 0;) {
    int64_t axis = static_cast<int64_t>(i) + (pool.layout == Layout::channels_last ? 1 : 2);
    WindowedAxis by = axisOf(image, y, pool, i, axis);
    Size count = image.taken(by);
    bool isWhole = countPadding || (by.around.first == 0 && by.around.second == 0);
    Tensor own = isWhole ? Tensor() : detail::partOf(y, axis, known(0), by.of, at.where);
    y = pooledAlong(image.op, padded(y, axis, by.around, nullptr, at), axis, by, count, at.where, sum);
    if (isWhole) {
      y = div(at[y], at[by.taken.known]);
      continue;
    }
    // The same of ones along this axis alone: how many are inside.
    Sizes line;
    for (int k = 0; k < y.rank(); ++k)
      line.push_back(k == axis ? by.of : known(1));
    Tensor one = detail::filledWith(at[1], y.dtype(), Shape(), at.where);
    Tensor ones = detail::broadcastTo(one, line, {}, at.where);
    Tensor inside = pooledAlong(image.op, padded(ones, axis, by.around, nullptr, at), axis, by, count, at.where, sum);
    y = div(at[y], at[maximum(at[inside], at[1])]);
  }
  return y;
}

template <int n> static Pool poolOf(const PoolOptions<n> &options) {
  return {options.window, options.strides, options.dilations, options.padding, options.layout};
}

Tensor max_pool1d(const Located &x, const PoolOptions<1> &options) {
  return maxPool(Image{"max_pool1d", tensorOf(x), nullptr, 1, x.where()}, poolOf(options));
}
Tensor max_pool2d(const Located &x, const PoolOptions<2> &options) {
  return maxPool(Image{"max_pool2d", tensorOf(x), nullptr, 2, x.where()}, poolOf(options));
}
Tensor max_pool3d(const Located &x, const PoolOptions<3> &options) {
  return maxPool(Image{"max_pool3d", tensorOf(x), nullptr, 3, x.where()}, poolOf(options));
}
Tensor avg_pool1d(const Located &x, const PoolOptions<1> &options) {
  return avgPool(Image{"avg_pool1d", tensorOf(x), nullptr, 1, x.where()}, poolOf(options), options.count_padding);
}
Tensor avg_pool2d(const Located &x, const PoolOptions<2> &options) {
  return avgPool(Image{"avg_pool2d", tensorOf(x), nullptr, 2, x.where()}, poolOf(options), options.count_padding);
}
Tensor avg_pool3d(const Located &x, const PoolOptions<3> &options) {
  return avgPool(Image{"avg_pool3d", tensorOf(x), nullptr, 3, x.where()}, poolOf(options), options.count_padding);
}

// ---- Over the whole image -------------------------------------------------------------------------------------------

static std::vector<int64_t> axesOfImage(const char *op, const Tensor &x, Layout layout, const Where &where) {
  if (x.rank() < 3)
    raiseOp(op, "takes an image, got " + toString(typeOf(x, where)), "give x[N, axes..., C]", {typeOf(x, where)},
            where);
  std::vector<int64_t> axes;
  for (int axis = 2; axis < x.rank(); ++axis)
    axes.push_back(layout == Layout::channels_last ? axis - 1 : axis);
  return axes;
}

Tensor global_max_pool(const Located &x, Layout layout) {
  At at{x.where()};
  Tensor tensor = tensorOf(x);
  return reduce_max(at[tensor], axesOfImage("global_max_pool", tensor, layout, at.where));
}
Tensor global_avg_pool(const Located &x, Layout layout) {
  At at{x.where()};
  Tensor tensor = detail::floatOf("global_avg_pool", x);
  return mean(at[tensor], axesOfImage("global_avg_pool", tensor, layout, at.where));
}

// ---- resize ---------------------------------------------------------------------------------------------------------

namespace {

/// For each element of the result: two places of the axis, and the second one's share.
struct Sources {
  std::vector<int64_t> first, second;
  std::vector<double> share;
};

} // namespace

static Sources sourcesOf(int64_t from, int64_t to, const ResizeOptions &options) {
  Sources sources;
  for (int64_t i = 0; i < to; ++i) {
    double exact = static_cast<double>(i), scale = static_cast<double>(from) / static_cast<double>(to);
    if (options.align_corners)
      exact *= to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
    else
      exact = (exact + 0.5) * scale - 0.5;
    double last = static_cast<double>(from - 1);
    if (options.method == Interpolation::nearest) {
      double place =
          options.align_corners ? std::floor(exact + 0.5) : std::floor((static_cast<double>(i) + 0.5) * scale);
      sources.first.push_back(static_cast<int64_t>(std::clamp(place, 0.0, last)));
      continue;
    }
    double place = std::clamp(exact, 0.0, last), below = std::floor(place);
    sources.first.push_back(static_cast<int64_t>(below));
    sources.second.push_back(static_cast<int64_t>(std::min(below + 1, last)));
    sources.share.push_back(place - below);
  }
  return sources;
}

Tensor resize(const Located &x, const std::vector<int64_t> &sizes, ResizeOptions options) {
  At at{x.where()};
  Tensor y = detail::floatOf("resize", x);
  const TensorType type = typeOf(y, at.where);
  auto refuse = [&](const std::string &why, const std::string &remedy) {
    raiseOp("resize", why, remedy, {type}, at.where);
  };
  if (sizes.empty() || sizes.size() > 3 || type.shape.size() != sizes.size() + 2)
    refuse("x is " + toString(type) + ", with sizes for " + std::to_string(sizes.size()) + " axes",
           "give x[N, axes..., C] and a size for each of one to three axes");
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t axis = static_cast<int64_t>(i) + (options.layout == Layout::channels_last ? 1 : 2),
            size = type.shape[static_cast<size_t>(axis)];
    if (sizes[i] < 0 || size == dynamic || (size == 0 && sizes[i] != 0))
      refuse("axis " + std::to_string(axis) + " of " + toString(type) + " cannot have the size " +
                 std::to_string(sizes[i]),
             "give a size that is not negative, of an axis of known size that is not empty");
    if (size == sizes[i])
      continue;
    Sources sources = sourcesOf(size, sizes[i], options);
    auto taken = [&](const std::vector<int64_t> &places) {
      return take(at[y], at[Tensor::from(places, at.where)], axis);
    };
    if (options.method == Interpolation::nearest) {
      y = taken(sources.first);
      continue;
    }
    Shape line;
    for (int k = 0; k < type.shape.rank(); ++k)
      line.push_back(k == axis ? sizes[i] : 1);
    Tensor share = cast(at[Tensor::from(sources.share, line, at.where)], y.dtype());
    Tensor below = taken(sources.first), above = taken(sources.second);
    y = add(at[below], at[mul(at[share], at[sub(at[above], at[below])])]);
  }
  return y;
}

} // namespace wg
