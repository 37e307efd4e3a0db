// Convolutions and their transposes: one product whose letters are related (runtime/Letters.h).
#include <wengert/Convolution.h>

#include "frontend/ops/Images.h"
#include "runtime/Extent.h"

#include <algorithm>
#include <limits>

namespace wg {

using detail::Image;
using detail::Size;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using detail::WindowedAxis;
using runtime::OpId;

Padding::Padding(Kind kind) : kind(kind) {}
Padding::Padding(std::initializer_list<Pair> axes) : kind(given), axes(axes) {}
Padding::Padding(Pair rows, Pair columns) : kind(given), axes{rows, columns} {}

static std::string numeral(int64_t number) { return std::to_string(number); }

// ---- What windows have in common with pooling -----------------------------------------------------------------------

void Image::refuse(const std::string &what, const std::string &remedy) const {
  std::vector<TensorType> types{typeOf(x, where)};
  std::string shapes = "x is " + toString(types[0]);
  if (w) {
    types.push_back(typeOf(*w, where));
    shapes += ", w is " + toString(types[1]);
  }
  raiseOp(op, what + ": " + shapes, remedy, types, where);
}

void Image::check(const char *name, int64_t number, int64_t least) const {
  if (number < least || number > kMostPlaces)
    refuse(std::string(name) + " is " + numeral(number),
           "give a number from " + numeral(least) + " to " + numeral(kMostPlaces));
}

void Image::checkPadding(const Padding &padding) const {
  if (padding.kind != Padding::given)
    return;
  if (padding.axes.size() != axes)
    refuse("the padding has " + numeral(static_cast<int64_t>(padding.axes.size())) + " pairs for " +
               numeral(static_cast<int64_t>(axes)) + " axes",
           "give a pair for each axis: {.padding = {{before, after}, ...}}");
  for (auto [before, after] : padding.axes)
    for (int64_t places : {before, after})
      if (places < 0 || places > kMostPlaces)
        refuse("the padding has " + numeral(places) + " places", "give a number from 0 to " + numeral(kMostPlaces));
}

/// Places before and after an axis for `same`: together as many as the windows of ceil(size / stride) places need.
std::pair<int64_t, int64_t> Image::around(const Padding &padding, const WindowedAxis &axis) const {
  if (padding.kind == Padding::given)
    return padding.axes[axis.number];
  if (padding.kind == Padding::valid)
    return {0, 0};
  int64_t size = axis.of.known, window = axis.taken.known;
  if (window == dynamic || (size == dynamic && axis.stride > 1))
    refuse("the padding `same` of the " + nameOf(axis.number) + " follows from sizes that are open",
           "give it in numbers: {.padding = {{before, after}, ...}}");
  int64_t reach = runtime::saturatingAdd(runtime::saturatingMul(window - 1, axis.dilation), 1);
  int64_t left = axis.stride == 1 || size == 0 ? axis.stride
                 : size % axis.stride == 0     ? axis.stride
                                               : size % axis.stride;
  int64_t both = size == 0 ? 0 : std::max<int64_t>(0, reach - left);
  if (both / 2 >= kMostPlaces)
    refuse("the padding `same` of the " + nameOf(axis.number) + " would have " + numeral(both) + " places",
           "give smaller windows or dilations");
  return {both / 2, both - both / 2};
}

Size Image::taken(const WindowedAxis &axis) const {
  return detail::computeSize(op,
                             "max((a + " + numeral(axis.around.first + axis.around.second) + " - (b - 1) * " +
                                 numeral(axis.dilation) + " - 1) // " + numeral(axis.stride) + " + 1, 0)",
                             {axis.of, axis.taken}, where);
}

std::string Image::nameOf(size_t number) const {
  static constexpr const char *names[3][3] = {
      {"only axis", "", ""}, {"rows", "columns", ""}, {"planes", "rows", "columns"}};
  return names[axes - 1][number];
}

// ---- The product ----------------------------------------------------------------------------------------------------

namespace {

/// Letters and sizes of a tensor, in the order of its axes.
struct Side {
  std::string letters;
  Sizes sizes;
  void add(char letter, const Size &size) {
    letters += letter;
    sizes.push_back(size);
  }
};

/// The options of both directions.
struct Windows {
  std::span<const int64_t> strides, dilations, more;
  int64_t groups;
  const Padding &padding;
  Layout layout;
};

constexpr char kImage[] = "hwd", kWindow[] = "rst", kResult[] = "pqu";

} // namespace

static void checkWindows(const Image &image, const Tensor &w, const Windows &windows) {
  const Where &where = image.where;
  int rank = static_cast<int>(image.axes) + 2;
  if (image.x.rank() != rank || w.rank() != rank) {
    static constexpr const char *axes[] = {"L", "H, W", "D, H, W"}, *places[] = {"R", "R, S", "R, S, T"};
    bool last = windows.layout == Layout::channels_last;
    std::string own = axes[image.axes - 1], channels = windows.more.empty() ? "C / groups, O" : "C, O / groups";
    image.refuse("takes x[N, " + (last ? own + ", C" : "C, " + own) + "] and w[" + places[image.axes - 1] + ", " +
                     channels + "]",
                 "reshape, or add axes: expand_dims(x, 0)");
  }
  detail::checkDTypes(image.op, image.x, w, where);
  for (int64_t stride : windows.strides)
    image.check("a stride", stride);
  for (int64_t dilation : windows.dilations)
    image.check("a dilation", dilation);
  for (int64_t more : windows.more)
    image.check("the output padding", more, 0);
  image.check("the number of groups", windows.groups);
  image.checkPadding(windows.padding);
  for (size_t axis = 0; axis < image.axes; ++axis)
    if (typeOf(w, where).shape.dim(static_cast<int>(axis)) == 0)
      image.refuse("w has no places", "a window is " + std::string(image.axes == 1 ? "1" : "1 by 1") + " at least");
}

/// Whether `channels` of x are what w takes, and what is made can be told by groups.
static void checkChannels(const Image &image, const Windows &windows, int64_t channels, int64_t own, int64_t made) {
  int64_t groups = windows.groups;
  bool isTranspose = !windows.more.empty();
  auto fits = [&] {
    return isTranspose ? own == channels && channels % groups == 0
                       : own <= channels / groups && own * groups == channels;
  };
  if (channels != dynamic && own != dynamic && !fits())
    image.refuse("x has " + numeral(channels) + " channels and w takes " + numeral(own) +
                     (groups == 1 ? "" : (isTranspose ? " of " : " in each of ") + numeral(groups) + " groups"),
                 isTranspose ? "w is [..., C, O / groups]" : "w is [..., C / groups, O]");
  if (!isTranspose && made != dynamic && made % groups != 0)
    image.refuse("w makes " + numeral(made) + " channels, which are not " + numeral(groups) + " equal groups",
                 "give each group the same number of channels");
}

/// The size of an axis of the transpose.
static Size spreadSize(const Image &image, const WindowedAxis &axis, const Windows &windows) {
  if (windows.padding.kind == Padding::same)
    return detail::computeSize(image.op, "a * " + numeral(axis.stride), {axis.of}, image.where);
  std::string more = numeral(windows.more[axis.number]), less = numeral(axis.around.first + axis.around.second);
  std::string whole = "(a - 1) * " + numeral(axis.stride) + " + (b - 1) * " + numeral(axis.dilation) + " + 1 + " + more;
  if (axis.of.known != dynamic && axis.taken.known != dynamic) { // no negative size on the way
    if (axis.of.known == 0)
      return {0, {}};
    int64_t reach = runtime::saturatingAdd(runtime::saturatingMul(axis.of.known - 1, axis.stride),
                                           runtime::saturatingMul(axis.taken.known - 1, axis.dilation));
    int64_t size = runtime::saturatingAdd(reach, 1 + windows.more[axis.number]);
    if (size < axis.around.first + axis.around.second)
      image.refuse("the padding takes " + less + " places from " + numeral(size) + " " + image.nameOf(axis.number),
                   "give smaller paddings");
  }
  return detail::computeSize(image.op, whole + " - " + less, {axis.of, axis.taken}, image.where);
}

/// One product: y[result] = sum of x[image] w[window], whose places are related by `place = stride * other + dilation *
/// window - before`: the image's, or of the transpose the result's.
static Tensor product(const Image &image, Tensor w, const Windows &windows) {
  const Where &where = image.where;
  bool isTranspose = !windows.more.empty(), grouped = windows.groups > 1,
       last = windows.layout == Layout::channels_last;
  checkWindows(image, w, windows);
  int rank = image.x.rank(), channelAxis = last ? rank - 1 : 1, firstAxis = last ? 1 : 2;
  const Shape &shapeX = typeOf(image.x, where).shape, &shapeW = typeOf(w, where).shape;
  checkChannels(image, windows, shapeX.dim(channelAxis), shapeW.dim(rank - 2), shapeW.dim(rank - 1));
  Size groups{windows.groups, {}}, own = detail::sizeOf(w, rank - 2, where), made = detail::sizeOf(w, rank - 1, where);
  auto shared = [&](const Size &size) {
    return grouped ? detail::computeSize(image.op, "a / " + numeral(windows.groups), {size}, where) : size;
  };
  Size each = isTranspose ? shared(own) : own, results = isTranspose ? made : shared(made);
  Side x, window, y;
  std::string relations;
  Sizes related;
  auto addChannels = [&] {
    if (grouped) {
      x.add('g', groups);
      y.add('g', groups);
    }
    x.add('c', each);
    y.add('o', results);
  };
  x.add('n', detail::sizeOf(image.x, 0, where));
  y.add('n', detail::sizeOf(image.x, 0, where));
  if (!last)
    addChannels();
  for (size_t i = 0; i < image.axes; ++i) {
    WindowedAxis axis{i, windows.strides[i], windows.dilations[i],
                      detail::sizeOf(image.x, firstAxis + static_cast<int>(i), where),
                      detail::sizeOf(w, static_cast<int64_t>(i), where)};
    if (isTranspose && windows.padding.kind == Padding::same) { // what a convolution of the result would have
      WindowedAxis result = axis;
      result.of = spreadSize(image, axis, windows);
      axis.around = image.around(windows.padding, result);
    } else {
      axis.around = image.around(windows.padding, axis);
    }
    x.add(kImage[i], axis.of);
    bool isPlain = axis.taken.known == 1 && axis.stride == 1 && axis.around == std::pair<int64_t, int64_t>(0, 0) &&
                   (!isTranspose || windows.more[i] == 0);
    if (isPlain) { // every place is taken as it is
      y.add(kImage[i], axis.of);
      continue;
    }
    window.add(kWindow[i], axis.taken);
    Size size = isTranspose ? spreadSize(image, axis, windows) : image.taken(axis);
    y.add(kResult[i], size);
    related.push_back(size);
    char sum = isTranspose ? kResult[i] : kImage[i], other = isTranspose ? kImage[i] : kResult[i];
    relations += std::string("; ") + sum + "=" + numeral(axis.stride) + other + "+" + numeral(axis.dilation) +
                 kWindow[i] + (axis.around.first > 0 ? "-" + numeral(axis.around.first) : "");
  }
  if (last)
    addChannels();
  if (grouped && isTranspose)
    window.add('g', groups);
  window.add('c', each);
  if (grouped && !isTranspose)
    window.add('g', groups);
  window.add('o', results);
  Tensor in = image.x;
  if (grouped)
    in = detail::reshapeTo(in, x.sizes, where);
  if (static_cast<int>(window.letters.size()) != rank || grouped)
    w = detail::reshapeTo(w, window.sizes, where);
  std::string equation = x.letters + "," + window.letters + "->" + y.letters + relations;
  std::vector<const Tensor *> operands{&in, &w};
  for (const Tensor &size : related.values)
    operands.push_back(&size);
  Tensor out;
  detail::applyOp(OpId::contract, runtime::ContractAttrs::make(equation, related.list), operands, std::span(&out, 1),
                  where);
  if (!grouped)
    return out;
  Side joined;
  for (size_t i = 0, open = 0; i < y.letters.size(); ++i) {
    Size size{y.sizes.list[i], y.sizes.list[i] == dynamic ? y.sizes.values[open++] : Tensor()};
    if (y.letters[i] == 'g')
      continue;
    joined.add(y.letters[i], y.letters[i] == 'o'
                                 ? detail::computeSize(image.op, "a * " + numeral(windows.groups), {size}, where)
                                 : size);
  }
  return detail::reshapeTo(out, joined.sizes, where);
}

template <int n>
static Tensor convolution(const char *op, const Located &x, const Located &w, const ConvOptions<n> &options) {
  Tensor image = tensorOf(x), weights = tensorOf(w);
  return product(Image{op, image, &weights, n, x.where()}, weights,
                 Windows{options.strides, options.dilations, {}, options.groups, options.padding, options.layout});
}
template <int n>
static Tensor transposed(const char *op, const Located &x, const Located &w, const ConvTransposeOptions<n> &options) {
  Tensor image = tensorOf(x), weights = tensorOf(w);
  return product(Image{op, image, &weights, n, x.where()}, weights,
                 Windows{options.strides, options.dilations, options.output_padding, options.groups, options.padding,
                         options.layout});
}

Tensor conv1d(const Located &x, const Located &w, const Conv1dOptions &options) {
  return convolution("conv1d", x, w, options);
}
Tensor conv2d(const Located &x, const Located &w, const Conv2dOptions &options) {
  return convolution("conv2d", x, w, options);
}
Tensor conv3d(const Located &x, const Located &w, const Conv3dOptions &options) {
  return convolution("conv3d", x, w, options);
}
Tensor conv1d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<1> &options) {
  return transposed("conv1d_transpose", x, w, options);
}
Tensor conv2d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<2> &options) {
  return transposed("conv2d_transpose", x, w, options);
}
Tensor conv3d_transpose(const Located &x, const Located &w, const ConvTransposeOptions<3> &options) {
  return transposed("conv3d_transpose", x, w, options);
}

} // namespace wg
