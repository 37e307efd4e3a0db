// What a random program is made of: functions of the public interface, as the ops that they trace to.
#include "tests/agreement/RandomGenerator.h"

#include <wengert/wengert.h>

#include <algorithm>
#include <cmath>

namespace wg::tests {

using namespace runtime;
using Tensors = std::vector<Tensor>;

/// Whether the floats differ by far more than roundings, so that every engine finds the same order.
static bool areApart(const Array &a, const Array &b) {
  auto element = [](const Array &x, int64_t i) {
    i = x.numElements() == 1 ? 0 : i;
    return x.dtype() == DType::f64 ? x.data<double>()[i] : static_cast<double>(x.data<float>()[i]);
  };
  if (a.numElements() == 0 || b.numElements() == 0)
    return true;
  for (int64_t i = 0; i < std::max(a.numElements(), b.numElements()); ++i)
    if (!isFloat(a.dtype()) || !(std::fabs(element(a, i) - element(b, i)) > 0.01))
      return false;
  return true;
}

/// The ops that `f` traces to become steps. What comes in between is no result and nobody else reads it: it may be
/// infinite, an index in range for the next op, or without the derivative that the whole has.
Generator::Maybe Generator::traced(const std::vector<int> &operands, const TracedFunction &f) {
  std::vector<Array> arrays;
  for (int operand : operands) {
    if (operand < 0)
      return -1;
    arrays.push_back(valueOf(operand));
  }
  std::optional<TracedSteps> found = stepsOf(f, arrays);
  if (!found)
    return -1;
  std::vector<int> values = operands;
  for (const RandomProgram::Step &traced : found->steps) {
    std::vector<int> from;
    bool exact = true;
    for (int operand : traced.operands) {
      from.push_back(values[static_cast<size_t>(operand)]);
      exact = exact && isRaw(from.back());
    }
    if (!exact && jumps(traced.op) && (traced.operands.size() != 2 || !areApart(valueOf(from[0]), valueOf(from[1]))))
      return -1;
    // Rows have no broadcasts of scalars.
    auto widest =
        std::max_element(from.begin(), from.end(), [&](int a, int b) { return shapeOf(a).size() < shapeOf(b).size(); });
    int wide = widest == from.end() ? -1 : *widest;
    for (int &operand : from)
      if (recordOf(traced.op).elementwise && shapeOf(operand).empty() && !shapeOf(wide).empty())
        operand = step(OpId::broadcast, BroadcastAttrs::make(shapeOf(wide), Ints()), {operand}, true, true);
    bool nothing = traced.op == OpId::sub && from[0] == from[1]; // 0 of anything finite
    int made = step(traced.op, traced.attrs, from, nothing || movesOnly(traced.op), true);
    if (made < 0)
      return -1;
    hidden_[static_cast<size_t>(made)] = true;
    values.push_back(made);
  }
  int result = values[static_cast<size_t>(found->result)];
  if (result < 0 || !isBounded(valueOf(result)))
    return -1;
  hidden_[static_cast<size_t>(result)] = options_.smooth && !isFloat(typeOf(result).dtype);
  return result;
}

std::span<const Generator::Composite> Generator::composites() {
  /// A value with at least, and at most, so many axes.
  static constexpr auto ranked = [](Generator &g, size_t least, size_t most = 5, bool raw = false) {
    Maybe found = g.pick([&](int v) {
      return g.typeOf(v).dtype == g.options_.dtype && g.shapeOf(v).size() >= least && g.shapeOf(v).size() <= most &&
             (!raw || g.isRaw(v));
    });
    if (found >= 0 && !g.chance(0.2))
      return found;
    Shape shape;
    for (size_t rank = least + static_cast<size_t>(g.below(std::min<uint64_t>(most - least, 2) + 1)); rank > 0; --rank)
      shape.push_back(shape.numElements() > 500 ? 2 : g.size());
    return g.input({g.options_.dtype, shape});
  };
  static constexpr auto raw = [](Generator &g, size_t least) { return ranked(g, least, 5, true); };
  static constexpr auto axisOf = [](Generator &g, int x) {
    return g.below(g.shapeOf(x).size()) - (g.chance(0.3) ? g.shapeOf(x).rank() : 0);
  };
  static constexpr auto floats = [](Generator &g, std::initializer_list<int64_t> shape) {
    return g.ofType({g.options_.dtype, Shape(shape)});
  };
  /// [N, axes..., C]
  static constexpr auto image = [](Generator &g, int axes, int64_t channels) {
    Shape shape{1 + g.below(2)};
    for (int i = 0; i < axes; ++i)
      shape.push_back(1 + g.below(axes > 2 ? 4 : 7));
    shape.push_back(channels);
    return g.ofType({g.options_.dtype, shape});
  };
  static constexpr auto window = [](Generator &g, int axes, int64_t in, int64_t out) {
    Shape shape;
    for (int i = 0; i < axes; ++i)
      shape.push_back(1 + g.below(3));
    shape.push_back(in);
    shape.push_back(out);
    return g.ofType({g.options_.dtype, shape});
  };
  static constexpr auto padding = [](Generator &g) {
    return g.chance(0.3)   ? Padding(Padding::same)
           : g.chance(0.5) ? Padding(Padding::valid)
                           : Padding({{g.below(2), g.below(3)}, {g.below(3), g.below(2)}});
  };
  static const Composite kComposites[] = {
      // products
      {"einsum", true,
       [](Generator &g) {
         int a = ranked(g, 2), n = static_cast<int>(g.size());
         const Shape s = g.shapeOf(a);
         int b = floats(g, {s[s.size() - 1], n}), c = floats(g, {n});
         return g.chance(0.5) ? g.traced({a, b}, [](const Tensors &x) { return einsum("...ij,jk->...ki", x); })
                              : g.traced({a, b, c}, [](const Tensors &x) { return einsum("...j,jk,k->...", x); });
       }},
      {"matmul", true,
       [](Generator &g) {
         int a = ranked(g, 2);
         TensorType type = g.typeOf(a);
         int b = g.ofType(type);
         return g.traced({a, b}, [](const Tensors &x) { return matmul(x[0], x[1], {.transpose_b = true}) * 0.2; });
       }},
      {"tensordot", true,
       [](Generator &g) {
         int a = ranked(g, 2, 3);
         const Shape s = g.shapeOf(a);
         int b = floats(g, {s[1], g.size(), s[0]});
         return g.traced({a, b}, [](const Tensors &x) { return tensordot(x[0], x[1], {0, 1}, {2, 0}) * 0.2; });
       }},
      {"kron", true,
       [](Generator &g) {
         int a = ranked(g, 1, 2), b = floats(g, {1 + g.below(3), 1 + g.below(3)});
         return g.traced({a, b}, [](const Tensors &x) { return kron(x[0], x[1]); });
       }},
      {"inner", true,
       [](Generator &g) {
         int a = ranked(g, 1, 3), b = floats(g, {g.size(), g.shapeOf(a)[g.shapeOf(a).size() - 1]});
         return g.traced({a, b}, [](const Tensors &x) { return inner(x[0], x[1]) * 0.2; });
       }},
      {"outer", true,
       [](Generator &g) {
         int a = ranked(g, 1, 1), b = ranked(g, 1, 1);
         return g.traced({a, b}, [](const Tensors &x) { return outer(x[0], x[1]); });
       }},
      {"cross", true,
       [](Generator &g) {
         int64_t n = g.size();
         int a = floats(g, {n, 3}), b = floats(g, {n, 3});
         return g.traced({a, b}, [](const Tensors &x) { return cross(x[0], x[1]); });
       }},
      // places
      {"take", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = g.below(g.shapeOf(x).size()), n = g.shapeOf(x).dim(static_cast<int>(axis));
         return n == 0 ? -1 : g.traced({x, g.places(Shape{g.size()}, n)}, [axis](const Tensors &x) {
           return take(x[0], x[1], axis);
         });
       }},
      {"take_along_axis", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         size_t axis = static_cast<size_t>(g.below(g.shapeOf(x).size()));
         Shape where = g.shapeOf(x);
         int64_t n = std::exchange(where[axis], g.size());
         return n == 0 ? -1 : g.traced({x, g.places(where, n)}, [axis](const Tensors &x) {
           return take_along_axis(x[0], x[1], static_cast<int64_t>(axis));
         });
       }},
      {"put_along_axis", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         size_t axis = static_cast<size_t>(g.below(g.shapeOf(x).size()));
         TensorType updates = g.typeOf(x);
         int64_t n = std::exchange(updates.shape[axis], g.size());
         auto mode = static_cast<Scatter>(g.below(4));
         return n == 0 ? -1 : g.traced({x, g.places(updates.shape, n), g.ofType(updates)}, [=](const Tensors &x) {
           return put_along_axis(x[0], x[1], x[2], static_cast<int64_t>(axis), mode);
         });
       }},
      {"gather_nd", true,
       [](Generator &g) {
         int x = ranked(g, 2);
         int64_t n = std::min(g.shapeOf(x)[0], g.shapeOf(x)[1]);
         return n == 0 ? -1 : g.traced({x, g.places(Shape{g.size(), 2}, n)}, [](const Tensors &x) {
           return gather_nd(x[0], x[1]);
         });
       }},
      {"scatter_nd_update", true,
       [](Generator &g) {
         int x = ranked(g, 2);
         const Shape s = g.shapeOf(x);
         TensorType updates{g.options_.dtype, Shape{g.size()}};
         for (size_t axis = 2; axis < s.size(); ++axis)
           updates.shape.push_back(s[axis]);
         auto mode = static_cast<Scatter>(g.below(4));
         int64_t n = std::min(s[0], s[1]);
         return n == 0 ? -1
                       : g.traced({x, g.places(Shape{updates.shape[0], 2}, n), g.ofType(updates)},
                                  [=](const Tensors &x) { return scatter_nd_update(x[0], x[1], x[2], mode); });
       }},
      {"segments", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t count = 1 + g.below(5), kind = g.below(4);
         return g.traced({x, g.places(Shape{g.shapeOf(x)[0]}, count)}, [=](const Tensors &x) {
           return kind == 0   ? segment_sum(x[0], x[1], count) * 0.3
                  : kind == 1 ? segment_mean(x[0], x[1], count)
                  : kind == 2 ? segment_max(x[0], x[1], count)
                              : segment_min(x[0], x[1], count);
         });
       }},
      {"bincount", true,
       [](Generator &g) {
         int64_t n = g.size();
         int places = g.places(Shape{n}, 6), weights = floats(g, {n});
         return g.traced({places, weights}, [](const Tensors &x) { return bincount(x[0], 6, x[1]); });
       }},
      {"boolean_mask", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int mask = g.aCondition(Shape{g.shapeOf(x)[0]});
         return g.traced({x, mask},
                         [](const Tensors &x) { return boolean_mask(x[0], x[1], x[1].shape().dim(0)).values; });
       }},
      // order
      {"sort", true,
       [](Generator &g) {
         int x = raw(g, 1);
         int64_t axis = axisOf(g, x);
         bool down = g.chance(0.5);
         return g.options_.smooth && g.shapeOf(x).numElements() > 100
                    ? -1
                    : g.traced({x}, [=](const Tensors &x) { return sort(x[0], axis, {.descending = down}); });
       }},
      {"top_k", true,
       [](Generator &g) {
         int x = raw(g, 1);
         int64_t axis = axisOf(g, x),
                 n = g.shapeOf(x).dim(static_cast<int>(axis < 0 ? axis + g.shapeOf(x).rank() : axis));
         int64_t k = g.below(static_cast<uint64_t>(n) + 1);
         return g.options_.smooth && g.shapeOf(x).numElements() > 100
                    ? -1
                    : g.traced({x}, [=](const Tensors &x) { return top_k(x[0], k, axis).values; });
       }},
      {"quantile", true,
       [](Generator &g) {
         int x = raw(g, 1);
         int64_t axis = axisOf(g, x);
         double q = 0.1 * static_cast<double>(g.below(11));
         return g.options_.smooth && g.shapeOf(x).numElements() > 100
                    ? -1
                    : g.traced({x}, [=](const Tensors &x) { return quantile(x[0], q, axis, true); });
       }},
      {"cummax", true,
       [](Generator &g) {
         int x = raw(g, 1);
         int64_t axis = axisOf(g, x);
         bool down = g.chance(0.5);
         return g.options_.smooth && g.shapeOf(x).numElements() > 100 ? -1 : g.traced({x}, [=](const Tensors &x) {
           return down ? cummin(x[0], axis).values : cummax(x[0], axis, true).values;
         });
       }},
      {"searchsorted", false,
       [](Generator &g) {
         int x = raw(g, 1), y = g.ofType(g.typeOf(x), true);
         return g.traced({x, y}, [](const Tensors &x) { return searchsorted(sort(x[0]), x[1]); });
       }},
      // axes
      {"roll", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = axisOf(g, x), shift = g.below(9) - 4;
         return g.traced({x}, [=](const Tensors &x) { return roll(x[0], shift, axis); });
       }},
      {"tile", true,
       [](Generator &g) {
         int x = ranked(g, 1, 3);
         std::vector<int64_t> counts;
         for (size_t i = 0; i < g.shapeOf(x).size(); ++i)
           counts.push_back(g.below(4));
         return g.traced({x}, [=](const Tensors &x) { return tile(x[0], counts); });
       }},
      {"repeat", true,
       [](Generator &g) {
         int x = ranked(g, 1, 3);
         int64_t axis = axisOf(g, x), n = 1 + g.below(3);
         return g.traced({x}, [=](const Tensors &x) { return repeat(x[0], n, axis); });
       }},
      {"pad", true,
       [](Generator &g) {
         int x = ranked(g, 1, 3);
         std::vector<std::pair<int64_t, int64_t>> widths;
         for (size_t i = 0; i < g.shapeOf(x).size(); ++i)
           widths.push_back({g.below(3), g.below(4)});
         auto mode = static_cast<PadMode>(g.below(4));
         return g.traced({x}, [=](const Tensors &x) { return pad(x[0], widths, mode); });
       }},
      {"moveaxis", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t from = axisOf(g, x), to = axisOf(g, x);
         return g.traced({x}, [=](const Tensors &x) { return moveaxis(x[0], from, to); });
       }},
      {"diag", true,
       [](Generator &g) {
         int x = ranked(g, 1, 3);
         int64_t k = g.below(5) - 2;
         return g.shapeOf(x)[g.shapeOf(x).size() - 1] > 20
                    ? -1
                    : g.traced({x}, [=](const Tensors &x) { return diag(x[0], k); });
       }},
      {"diagonal", true,
       [](Generator &g) {
         int x = ranked(g, 2);
         int64_t k = g.below(3) - 1;
         bool sums = g.chance(0.5);
         return g.traced({x}, [=](const Tensors &x) { return sums ? trace(x[0], k) * 0.3 : wg::diagonal(x[0], k); });
       }},
      {"tril", true,
       [](Generator &g) {
         int x = ranked(g, 2);
         int64_t k = g.below(5) - 2;
         bool lower = g.chance(0.5);
         return g.traced({x}, [=](const Tensors &x) { return lower ? tril(x[0], k) : triu(x[0], k); });
       }},
      {"slice_update", true,
       [](Generator &g) {
         int x = ranked(g, 1, 1);
         int64_t n = g.shapeOf(x)[0];
         int y = n < 3 ? -1 : floats(g, {(n - 2) / 2 + (n - 2) % 2});
         return g.traced({x, y}, [](const Tensors &x) { return slice_update(x[0], x[1], {1}, {2}); });
       }},
      {"diff", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = axisOf(g, x), order = 1 + g.below(2);
         return g.traced({x}, [=](const Tensors &x) { return diff(x[0], order, axis); });
       }},
      // reductions
      {"cumsum", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = axisOf(g, x), kind = g.below(3);
         CumulativeOptions options{.exclusive = true, .reverse = g.chance(0.5)};
         return g.traced({x}, [=](const Tensors &x) {
           return kind == 0   ? cumsum(x[0], axis, options) * 0.1
                  : kind == 1 ? cumprod(tanh(x[0]) + 0.5, axis, options)
                              : cumsum(sin(x[0]), axis, options);
         });
       }},
      {"variance", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = axisOf(g, x);
         return g.traced({x}, [=](const Tensors &x) { return variance(sin(x[0]), axis, true); });
       }},
      {"p_norm", true,
       [](Generator &g) {
         int x = raw(g, 1); // looks for infinities
         int64_t axis = axisOf(g, x);
         return g.traced({x}, [=](const Tensors &x) { return p_norm(x[0], 3, axis); });
       }},
      {"logsumexp", true,
       [](Generator &g) {
         int x = raw(g, 1); // looks for infinities
         int64_t axis = axisOf(g, x);
         return g.traced({x}, [=](const Tensors &x) { return logsumexp(x[0], axis, true); });
       }},
      {"softmax", true,
       [](Generator &g) {
         int x = ranked(g, 1);
         int64_t axis = axisOf(g, x);
         bool log = g.chance(0.5);
         return g.traced({x},
                         [=](const Tensors &x) { return log ? log_softmax(x[0], axis) : wg::softmax(x[0], axis); });
       }},
      {"activation", true,
       [](Generator &g) {
         static constexpr Tensor (*kFunctions[])(const Located &) = {gelu, gelu_tanh,  silu,        mish,
                                                                     selu, hard_swish, log_sigmoid, sinc};
         auto function = kFunctions[g.below(std::size(kFunctions))];
         return g.traced({g.chance(0.5) ? g.aRawFloat() : g.aFloat()},
                         [=](const Tensors &x) { return function(x[0]); });
       }},
      {"attention", true,
       [](Generator &g) {
         int64_t batch = 1 + g.below(2), n = 1 + g.below(5), m = 1 + g.below(5), d = 1 + g.below(4);
         int q = floats(g, {batch, n, d}), k = floats(g, {batch, m, d}), v = floats(g, {batch, m, d});
         return g.traced({q, k, v}, [](const Tensors &x) { return nn::attention(sin(x[0]), sin(x[1]), x[2]); });
       }},
      {"layer_norm", false,
       [](Generator &g) {
         int x = ranked(g, 1);
         return g.traced({x}, [](const Tensors &x) { return nn::layer_norm(x[0]); });
       }},
      {"cross_entropy", true,
       [](Generator &g) {
         int x = ranked(g, 2, 2);
         int64_t classes = g.shapeOf(x)[1];
         return classes == 0 ? -1 : g.traced({x, g.places(Shape{g.shapeOf(x)[0]}, classes)}, [](const Tensors &x) {
           return nn::cross_entropy(sin(x[0]), x[1]);
         });
       }},
      {"count_nonzero", false,
       [](Generator &g) {
         int x = g.aRawFloat();
         return g.traced({x}, [](const Tensors &x) { return count_nonzero(round(x[0])); });
       }},
      // images
      {"conv1d", true,
       [](Generator &g) {
         int64_t in = 1 + g.below(3);
         Conv1dOptions options{.strides = {1 + g.below(2)}, .dilations = {1 + g.below(2)}};
         options.padding = g.chance(0.5) ? Padding::same : Padding::valid;
         return g.traced({image(g, 1, in), window(g, 1, in, 1 + g.below(4))},
                         [=](const Tensors &x) { return conv1d(x[0], x[1], options) * 0.3; });
       }},
      {"conv2d", true,
       [](Generator &g) {
         int64_t groups = 1 + g.below(2), in = 1 + g.below(2);
         Conv2dOptions options{.strides = {1 + g.below(3), 1 + g.below(2)}, .dilations = {1 + g.below(2), 1}};
         options.groups = groups;
         options.padding = padding(g);
         return g.traced({image(g, 2, in * groups), window(g, 2, in, groups * (1 + g.below(2)))},
                         [=](const Tensors &x) { return conv2d(x[0], x[1], options) * 0.3; });
       }},
      {"conv3d", true,
       [](Generator &g) {
         int64_t in = 1 + g.below(2);
         Conv3dOptions options{.strides = {1, 1 + g.below(2), 1}};
         options.padding = Padding::same;
         return g.traced({image(g, 3, in), window(g, 3, in, 1 + g.below(2))},
                         [=](const Tensors &x) { return conv3d(x[0], x[1], options) * 0.3; });
       }},
      {"conv2d_transpose", true,
       [](Generator &g) {
         int64_t in = 1 + g.below(2);
         ConvTransposeOptions<2> options{.strides = {1 + g.below(3), 1 + g.below(2)}};
         options.padding = g.chance(0.5) ? Padding::same : Padding::valid;
         return g.traced({image(g, 2, in), window(g, 2, in, 1 + g.below(2))},
                         [=](const Tensors &x) { return conv2d_transpose(x[0], x[1], options) * 0.3; });
       }},
      {"max_pool", true,
       [](Generator &g) {
         PoolOptions<2> options{.window = {1 + g.below(3), 1 + g.below(3)}, .strides = {g.below(3), g.below(3)}};
         options.padding = g.chance(0.5) ? Padding::same : Padding::valid;
         return g.traced({image(g, 2, 1 + g.below(2))}, [=](const Tensors &x) { return max_pool2d(x[0], options); });
       }},
      {"avg_pool", true,
       [](Generator &g) {
         PoolOptions<2> options{.window = {1 + g.below(3), 1 + g.below(3)}, .strides = {g.below(3), g.below(3)}};
         options.padding = padding(g);
         options.count_padding = g.chance(0.5);
         return g.traced({image(g, 2, 1 + g.below(2))}, [=](const Tensors &x) { return avg_pool2d(x[0], options); });
       }},
      {"global_pool", true,
       [](Generator &g) {
         bool largest = g.chance(0.5);
         return g.traced({image(g, 1 + static_cast<int>(g.below(3)), 1 + g.below(3))},
                         [=](const Tensors &x) { return largest ? global_max_pool(x[0]) : global_avg_pool(x[0]); });
       }},
      {"resize", true,
       [](Generator &g) {
         ResizeOptions options{.method = static_cast<Interpolation>(g.below(2)), .align_corners = g.chance(0.5)};
         std::vector<int64_t> sizes{1 + g.below(8), 1 + g.below(8)};
         return g.traced({image(g, 2, 1 + g.below(2))}, [=](const Tensors &x) { return resize(x[0], sizes, options); });
       }},
      // matrices
      {"solve", true,
       [](Generator &g) {
         TensorType type = g.matrixType(true);
         int a = g.nearDiagonal(type, 0.45);
         type.shape[type.shape.size() - 1] = 1 + g.below(3);
         return g.traced({a, g.ofType(type)}, [](const Tensors &x) { return linalg::solve(x[0], x[1]); });
       }},
      {"inv", true,
       [](Generator &g) {
         return g.traced({g.nearDiagonal(g.matrixType(true), 0.45)},
                         [](const Tensors &x) { return linalg::inv(x[0]); });
       }},
      {"det", true,
       [](Generator &g) {
         return g.traced({g.nearDiagonal(g.matrixType(true), 0.45)},
                         [](const Tensors &x) { return linalg::det(x[0]); });
       }},
      {"cholesky_solve", true,
       [](Generator &g) {
         TensorType type = g.matrixType(true);
         int a = g.nearDiagonal(type, 0.45);
         type.shape[type.shape.size() - 1] = 1 + g.below(3);
         return g.traced({a, g.ofType(type)},
                         [](const Tensors &x) { return linalg::cholesky_solve(linalg::cholesky(x[0]), x[1]); });
       }},
      {"lstsq", true,
       [](Generator &g) {
         TensorType type = g.matrixType(false);
         int a = g.nearDiagonal(type, 0.3);
         type.shape[type.shape.size() - 1] = 1 + g.below(3);
         return g.traced({a, g.ofType(type)}, [](const Tensors &x) { return linalg::lstsq(x[0], x[1]); });
       }},
      {"singular_values", true,
       [](Generator &g) {
         int a = g.nearDiagonal(g.matrixType(false), 0.15, true);
         int64_t kind = g.below(3);
         return g.traced({a}, [=](const Tensors &x) {
           return kind == 0 ? linalg::svdvals(x[0]) : linalg::matrix_norm(x[0], static_cast<linalg::MatrixNorm>(kind));
         });
       }},
      {"matrix_power", true,
       [](Generator &g) {
         int64_t n = g.below(6) - 2;
         return g.traced({g.nearDiagonal(g.matrixType(true), 0.45)},
                         [=](const Tensors &x) { return linalg::matrix_power(x[0], n); });
       }},
      // draws
      {"random", true,
       [](Generator &g) {
         int key = g.input(DType::i64, Shape{2}, 0, 1000);
         g.hidden_[static_cast<size_t>(key)] = true;
         Shape shape = g.shape();
         int64_t kind = g.below(5);
         DType dtype = g.options_.dtype;
         return g.traced({key}, [=](const Tensors &x) {
           return kind == 0   ? random_normal(x[0], shape, 0, 1, dtype)
                  : kind == 1 ? random_exponential(x[0], shape, 1, dtype)
                  : kind == 2 ? random_gumbel(x[0], shape, 0, 1, dtype)
                  : kind == 3 ? random_laplace(x[0], shape, 0, 1, dtype)
                              : random_truncated_normal(x[0], shape, 0, 1, dtype);
         });
       }},
      {"random_integers", false,
       [](Generator &g) {
         int key = g.input(DType::i64, Shape{2}, 0, 1000);
         g.hidden_[static_cast<size_t>(key)] = true;
         Shape shape = g.shape();
         return g.traced({key}, [=](const Tensors &x) { return random_integers(x[0], shape, -5, 6); });
       }},
  };
  return kComposites;
}

Generator::Maybe Generator::composite() {
  std::span<const Composite> all = composites();
  const Composite &drawn = all[static_cast<size_t>(below(all.size()))];
  if (options_.smooth && !drawn.smooth)
    return -1;
  Maybe made = drawn.grow(*this);
  if (made >= 0)
    program_.composites.insert(drawn.name);
  return made;
}

std::vector<std::string> compositesOfPrograms() {
  std::vector<std::string> names;
  for (const Generator::Composite &composite : Generator::composites())
    names.push_back(composite.name);
  return names;
}

} // namespace wg::tests
