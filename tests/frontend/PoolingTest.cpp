// Pooling and resizing against loops over the elements; convolutions in other ranks and layouts against conv2d, and
// their transposes against the derivative.
#include "tests/frontend/Support.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

Tensor scattered(const Shape &shape, double phase = 0) {
  return reshape(sin(square(arange(1, shape.numElements() + 1, 1, f64)) + phase), shape);
}

/// [N, H, W, C] <-> [N, C, H, W]
Tensor first(const Tensor &x) { return moveaxis(x, -1, 1); }
Tensor last(const Tensor &x) { return moveaxis(x, 1, -1); }

struct Case {
  int64_t size, window, stride, dilation;
  Padding padding;
};

/// Places before the axis and the number of windows.
std::pair<int64_t, int64_t> planOf(const Case &c) {
  int64_t reach = (c.window - 1) * c.dilation + 1;
  if (c.padding.kind == Padding::same) {
    int64_t count = (c.size + c.stride - 1) / c.stride,
            both = std::max<int64_t>(0, (count - 1) * c.stride + reach - c.size);
    return {both / 2, count};
  }
  auto [before, after] = c.padding.kind == Padding::given ? c.padding.axes[0] : Padding::Pair(0, 0);
  int64_t room = c.size + before + after - reach;
  return {before, room < 0 ? 0 : room / c.stride + 1};
}

TEST(Pooling, OneAxisAgainstLoops) {
  for (int64_t size : {1, 2, 5, 8})
    for (int64_t window : {1, 2, 3})
      for (int64_t stride : {1, 2, 4})
        for (int64_t dilation : {1, 2})
          for (const Padding &padding : {Padding(Padding::valid), Padding(Padding::same), Padding({{2, 1}})}) {
            Case c{size, window, stride, dilation, padding};
            auto [before, count] = planOf(c);
            Tensor x = scattered({2, size, 3});
            PoolOptions<1> options{
                .window = {window}, .strides = {stride}, .dilations = {dilation}, .padding = padding};
            Tensor largest = max_pool1d(x, options), mean = avg_pool1d(x, options);
            options.count_padding = true;
            Tensor whole = avg_pool1d(x, options);
            ASSERT_EQ(largest.shape(), (Shape{2, count, 3}));
            ASSERT_EQ(mean.shape(), (Shape{2, count, 3}));
            for (int64_t n = 0; n < 2; ++n)
              for (int64_t p = 0; p < count; ++p)
                for (int64_t ch = 0; ch < 3; ++ch) {
                  double best = -std::numeric_limits<double>::infinity(), sum = 0;
                  int inside = 0;
                  for (int64_t r = 0; r < window; ++r) {
                    int64_t h = p * stride + r * dilation - before;
                    if (h < 0 || h >= size)
                      continue;
                    double value = x[{n, h, ch}].item<double>();
                    best = std::max(best, value);
                    sum += value;
                    ++inside;
                  }
                  EXPECT_EQ((largest[{n, p, ch}].item<double>()), best);
                  EXPECT_NEAR((mean[{n, p, ch}].item<double>()), inside ? sum / inside : 0, 1e-14);
                  EXPECT_NEAR((whole[{n, p, ch}].item<double>()), sum / static_cast<double>(window), 1e-14);
                }
          }
}

TEST(Pooling, AxesAreIndependent) {
  Tensor x = scattered({2, 6, 7, 3});
  PoolOptions<2> options{.window = {2, 3}, .strides = {1, 2}, .padding = {{1, 0}, {1, 1}}};
  Tensor y = max_pool2d(x, options);
  Tensor rows = max_pool1d(reshape(x, {2, 6, 21}), {.window = {2}, .strides = {1}, .padding = {{1, 0}}});
  Tensor columns = max_pool1d(reshape(rows, {12, 7, 3}), {.window = {3}, .strides = {2}, .padding = {{1, 1}}});
  expectNear(y, reshape(columns, y.shape()));
  options.layout = Layout::channels_first;
  expectNear(last(max_pool2d(first(x), options)), y);
  expectNear(last(avg_pool2d(first(x), options)),
             avg_pool2d(x, {.window = {2, 3}, .strides = {1, 2}, .padding = {{1, 0}, {1, 1}}}));
  Tensor deep = scattered({1, 3, 4, 5, 2});
  PoolOptions<3> cube{.window = {3, 1, 1}, .strides = {1, 1, 1}};
  expectNear(squeeze(max_pool3d(deep, cube), 1), reduce_max(deep, 1));
}

TEST(Pooling, TheFirstOfEqualsHasTheGradient) {
  Tensor x = reshape(Tensor({1.0, 2.0, 2.0, 0.0, 2.0, 1.0, 0.0, 2.0}), {1, 2, 4, 1});
  for (bool compiled : {false, true}) {
    auto gradient = [](const Tensor &v) {
      GradientTape tape;
      tape.watch(v);
      return tape.gradient(reduce_sum(max_pool2d(v, {.window = {2, 2}, .strides = {2, 2}})), v).value();
    };
    Tensor g = compiled ? wg::function("g", gradient)(x) : gradient(x);
    EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{0, 1, 1, 0, 0, 0, 0, 0}));
  }
}

TEST(Resize, AgainstTheFormula) {
  Tensor x = scattered({1, 5, 2});
  for (int64_t to : {1, 3, 5, 8, 11})
    for (bool corners : {false, true}) {
      Tensor y = resize(x, {to}, {.align_corners = corners});
      Tensor near = resize(x, {to}, {.method = Interpolation::nearest, .align_corners = corners});
      for (int64_t i = 0; i < to; ++i) {
        double place = corners
                           ? (to == 1 ? 0.0 : static_cast<double>(i) * 4 / static_cast<double>(to - 1))
                           : std::clamp((static_cast<double>(i) + 0.5) * 5 / static_cast<double>(to) - 0.5, 0.0, 4.0);
        auto low = static_cast<int64_t>(place), high = std::min<int64_t>(low + 1, 4);
        double share = place - static_cast<double>(low);
        double wanted = (1 - share) * x[{0, low, 1}].item<double>() + share * x[{0, high, 1}].item<double>();
        EXPECT_NEAR((y[{0, i, 1}].item<double>()), wanted, 1e-14) << to << " " << i;
        double nearest = corners ? std::floor(place + 0.5)
                                 : std::floor((static_cast<double>(i) + 0.5) * 5 / static_cast<double>(to));
        EXPECT_EQ((near[{0, i, 1}].item<double>()), (x[{0, static_cast<int64_t>(nearest), 1}].item<double>()));
      }
    }
}

TEST(Convolution, LayoutsAndRanks) {
  Tensor x = scattered({2, 6, 5, 4}), w = scattered({3, 2, 2, 6}, 1);
  Conv2dOptions options{.strides = {2, 1}, .dilations = {1, 2}, .groups = 2, .padding = {{1, 1}, {0, 2}}};
  Tensor y = conv2d(x, w, options);
  options.layout = Layout::channels_first;
  expectNear(last(conv2d(first(x), w, options)), y);
  Tensor line = conv1d(reshape(x, {12, 5, 4}), reshape(scattered({3, 4, 2}), {3, 4, 2}), {.padding = Padding::same});
  Tensor image =
      conv2d(reshape(x, {12, 1, 5, 4}), reshape(scattered({3, 4, 2}), {1, 3, 4, 2}), {.padding = Padding::same});
  expectNear(line, squeeze(image, 1));
  Tensor deep =
      conv3d(reshape(x, {2, 1, 6, 5, 4}), reshape(w, {1, 3, 2, 2, 6}),
             {.strides = {1, 2, 1}, .dilations = {1, 1, 2}, .groups = 2, .padding = {{0, 0}, {1, 1}, {0, 2}}});
  expectNear(squeeze(deep, 1), y);
}

/// <conv(x, w), y> = <x, conv_transpose(y, w with its channels exchanged)>.
TEST(Convolution, TheTransposeIsTheDerivative) {
  for (int64_t groups : {1, 2})
    for (int64_t stride : {1, 2, 3})
      for (int64_t dilation : {1, 2})
        for (const Padding &padding : {Padding(Padding::valid), Padding(Padding::same), Padding({{1, 2}, {0, 1}})})
          for (Layout layout : {Layout::channels_last, Layout::channels_first}) {
            Tensor x = scattered({2, 7, 6, 4}), w = scattered({3, 2, 4 / groups, 6}, 1);
            if (layout == Layout::channels_first)
              x = first(x);
            Conv2dOptions options{.strides = {stride, stride},
                                  .dilations = {dilation, dilation},
                                  .groups = groups,
                                  .padding = padding,
                                  .layout = layout};
            GradientTape tape;
            tape.watch(x);
            Tensor y = conv2d(x, w, options), ct = scattered(y.shape(), 2);
            Tensor wanted = tape.gradient(reduce_sum(y * ct), x).value();
            // [R, S, C / groups, O] -> [R, S, O, C / groups], group by group.
            Tensor turned = reshape(transpose(reshape(w, {3, 2, 4 / groups, groups, 6 / groups}), {0, 1, 3, 4, 2}),
                                    {3, 2, 6, 4 / groups});
            ConvTransposeOptions<2> back{.strides = {stride, stride},
                                         .dilations = {dilation, dilation},
                                         .groups = groups,
                                         .padding = padding,
                                         .layout = layout};
            if (padding.kind == Padding::same) {
              if (7 % stride != 0 || 6 % stride != 0)
                continue; // sizes that are multiples only
            } else {
              auto around = padding.kind == Padding::given ? padding.axes : std::vector<Padding::Pair>(2, {0, 0});
              int64_t sizes[] = {7, 6}, windows[] = {3, 2};
              for (size_t i = 0; i < 2; ++i)
                back.output_padding[i] =
                    (sizes[i] + around[i].first + around[i].second - (windows[i] - 1) * dilation - 1) % stride;
            }
            expectNear(conv2d_transpose(ct, turned, back), wanted);
          }
}

TEST(Convolution, ErrorsNameTheCall) {
  Tensor x = scattered({2, 6, 5, 4}), w = scattered({3, 2, 4, 6});
  auto saying = [](const std::function<void()> &f) { return messageOf(f); };
  EXPECT_PRED2(says, saying([&] { conv1d(x, w); }), "conv1d: takes x[N, L, C] and w[R, C / groups, O]");
  EXPECT_PRED2(says, saying([&] { conv2d_transpose(x, scattered({3, 2, 3, 6})); }), "x has 4 channels and w takes 3");
  EXPECT_PRED2(says, saying([&] { conv2d(x, w, {.padding = {{1, 1}}}); }), "the padding has 1 pairs for 2 axes");
  EXPECT_PRED2(says, saying([&] { max_pool2d(x, {.window = {0, 1}}); }), "a window is 0");
  EXPECT_PRED2(says, saying([&] { max_pool1d(x); }), "max_pool1d: takes x[N, L, C]");
  EXPECT_PRED2(says, saying([&] { avg_pool2d(cast(x, i64)); }), "avg_pool2d: takes floats");
  EXPECT_PRED2(says, saying([&] { resize(x, {4}); }), "a size for each of one to three axes");
  EXPECT_PRED2(says, saying([&] { global_avg_pool(scattered({2, 3})); }), "takes an image");
  EXPECT_PRED2(says, saying([&] { conv2d_transpose(x, w, {.padding = {{9, 9}, {0, 0}}}); }),
               "the padding takes 18 places");
}

} // namespace
