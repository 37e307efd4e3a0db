// Convolutions, pooling and resizing of images: tensors [N, axes..., C] of one to three axes, or [N, C, axes...].
#pragma once

#include <wengert/Ops.h>

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

namespace wg {

/// Places around the axes of an image that are none of its own: none; as many as make the result's sizes those of the
/// image divided by the strides, rounded up, the odd one after the image; or these before and after, a pair an axis.
struct WENGERT_API Padding {
  enum Kind : uint8_t { valid, same, given };
  using Pair = std::pair<int64_t, int64_t>;
  Padding(Kind kind = valid);
  Padding(std::initializer_list<Pair> axes);
  Padding(Pair rows, Pair columns);
  Kind kind;
  std::vector<Pair> axes;
};

/// Where the channels are: [N, H, W, C] or [N, C, H, W].
enum class Layout : uint8_t { channels_last, channels_first };

namespace detail {
template <int n> constexpr std::array<int64_t, n> onEachAxis(int64_t number) {
  std::array<int64_t, n> numbers{};
  for (int64_t &each : numbers)
    each = number;
  return numbers;
}
} // namespace detail

template <int axes> struct ConvOptions {
  std::array<int64_t, axes> strides = detail::onEachAxis<axes>(1), dilations = detail::onEachAxis<axes>(1);
  int64_t groups = 1;
  Padding padding = Padding::valid;
  Layout layout = Layout::channels_last;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// As `tf.nn.conv2d`, a correlation: y[n, p, q, o] is the sum over r, s and c of w[r, s, c, o] times
/// x[n, p * stride + r * dilation - before, q * stride + s * dilation - before, c], each axis with its own numbers.
/// Places outside of the image add nothing: an infinite weight beside them makes no NaN. With groups, the first
/// channels of x make the first of y, and so on; with as many groups as channels it is a depthwise convolution.
/// Sizes may be open; only `same` needs to know the window's, and by strides those that it divides.
/// `conv2d(x, w, {.strides = {2, 2}, .padding = Padding::same})`, `{.padding = {{1, 0}, {2, 2}}}`.
/// Shapes: x float[N, H, W, C], w float[R, S, C / groups, O] -> float[N, P, Q, O]; with channels_first
/// x float[N, C, H, W] -> float[N, O, P, Q], and w as before.
WENGERT_API Tensor conv2d(const Located &x, const Located &w, const Conv2dOptions &options = {});
/// The same with one axis. Shapes: x float[N, L, C], w float[R, C / groups, O] -> float[N, P, O].
WENGERT_API Tensor conv1d(const Located &x, const Located &w, const Conv1dOptions &options = {});
/// The same with three. Shapes: x float[N, D, H, W, C], w float[R, S, T, C / groups, O] -> float[N, P, Q, U, O].
WENGERT_API Tensor conv3d(const Located &x, const Located &w, const Conv3dOptions &options = {});

template <int axes> struct ConvTransposeOptions {
  std::array<int64_t, axes> strides = detail::onEachAxis<axes>(1), dilations = detail::onEachAxis<axes>(1);
  /// Places more at the end of the result, which a convolution by strides would not have read.
  std::array<int64_t, axes> output_padding = {};
  int64_t groups = 1;
  Padding padding = Padding::valid; ///< what the convolution had: taken from the result. same: size * stride
  Layout layout = Layout::channels_last;
};
/// The transpose of a convolution, `conv_transpose` of other libraries: each element of x adds the window, times
/// itself, to y: y[n, p * stride + r * dilation - before, ..., o] += x[n, p, ..., c] w[r, ..., c, o]. The size of an
/// axis is (size - 1) * stride + (window - 1) * dilation + 1 - before - after + output_padding.
/// Shapes: x float[N, H, W, C], w float[R, S, C, O / groups] -> float[N, P, Q, O].
WENGERT_API Tensor conv2d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<2> &options = {});
/// The same with one axis. Shapes: x float[N, L, C], w float[R, C, O / groups] -> float[N, P, O].
WENGERT_API Tensor conv1d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<1> &options = {});
/// The same with three. Shapes: x float[N, D, H, W, C], w float[R, S, T, C, O / groups] -> float[N, P, Q, U, O].
WENGERT_API Tensor conv3d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<3> &options = {});

template <int axes> struct PoolOptions {
  std::array<int64_t, axes> window = detail::onEachAxis<axes>(2);
  std::array<int64_t, axes> strides = {}; ///< 0: as far as the window reaches, so that windows do not overlap
  std::array<int64_t, axes> dilations = detail::onEachAxis<axes>(1);
  Padding padding = Padding::valid;
  Layout layout = Layout::channels_last;
  bool count_padding = false; ///< of avg_pool: what is around the image counts as 0, else not at all
};
/// The largest of each window, NaN if one is. Places outside of the image are none. Of equal elements the first in
/// row-major order has the gradient. `max_pool2d(x, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::same})`.
/// Shapes: x number[N, H, W, C] -> number[N, P, Q, C].
WENGERT_API Tensor max_pool2d(const Located &x, const PoolOptions<2> &options = {});
/// Shapes: x number[N, L, C] -> number[N, P, C].
WENGERT_API Tensor max_pool1d(const Located &x, const PoolOptions<1> &options = {});
/// Shapes: x number[N, D, H, W, C] -> number[N, P, Q, U, C].
WENGERT_API Tensor max_pool3d(const Located &x, const PoolOptions<3> &options = {});
/// The mean of each window.
/// Shapes: x float[N, H, W, C] -> float[N, P, Q, C].
WENGERT_API Tensor avg_pool2d(const Located &x, const PoolOptions<2> &options = {});
/// Shapes: x float[N, L, C] -> float[N, P, C].
WENGERT_API Tensor avg_pool1d(const Located &x, const PoolOptions<1> &options = {});
/// Shapes: x float[N, D, H, W, C] -> float[N, P, Q, U, C].
WENGERT_API Tensor avg_pool3d(const Located &x, const PoolOptions<3> &options = {});
/// The largest over all axes of the image. Shapes: x number[N, ..., C] -> number[N, C].
WENGERT_API Tensor global_max_pool(const Located &x, Layout layout = Layout::channels_last);
/// The mean over all axes of the image. Shapes: x float[N, ..., C] -> float[N, C].
WENGERT_API Tensor global_avg_pool(const Located &x, Layout layout = Layout::channels_last);

enum class Interpolation : uint8_t { nearest, linear };
struct ResizeOptions {
  Interpolation method = Interpolation::linear;
  bool align_corners = false; ///< the first and the last element stay where they are; else the edges of the image do
  Layout layout = Layout::channels_last;
};
/// The image with axes of other sizes, as `tf.image.resize` without antialiasing: element i of an axis shows the place
/// (i + 0.5) * size / new size - 0.5 of it, or with align_corners i * (size - 1) / (new size - 1), the nearest element
/// (ties up; without align_corners the one in which the place lies) or linear between the two that are nearest. The
/// axes of x have known sizes. Shapes: x float[N, H, W, C], sizes {P, Q} -> float[N, P, Q, C]; one to three axes.
WENGERT_API Tensor resize(const Located &x, const std::vector<int64_t> &sizes, ResizeOptions options = {});

} // namespace wg
