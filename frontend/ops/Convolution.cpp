// Convolutions: one product whose letters are related (runtime/Letters.h).
#include "frontend/ops/Operands.h"
#include "runtime/Extent.h"

#include <algorithm>

namespace wg {

using detail::checkDTypes;
using detail::raiseOp;
using detail::Size;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

Padding::Padding(Kind kind) : kind(kind), rows(0, 0), columns(0, 0) {}
Padding::Padding(std::pair<int64_t, int64_t> rows, std::pair<int64_t, int64_t> columns)
    : kind(given), rows(rows), columns(columns) {}

namespace {

/// One of the two axes of the image: its sizes, and what its relation is made of.
struct Axis {
  const char *name;
  int axis; ///< of x; that of w is one less
  int64_t stride, dilation;
  std::pair<int64_t, int64_t> around; ///< places before and after
  char image, window, result;         ///< letters
  Size of, taken;                     ///< sizes of the image and of the window

  /// Every place is taken as it is.
  bool isPlain() const { return taken.known == 1 && stride == 1 && around == std::pair<int64_t, int64_t>(0, 0); }
};

/// The two operands, as words of an error.
struct Call {
  const Tensor &x, &w;
  const Where &where;
  [[noreturn]] void refuse(const std::string &what, const std::string &remedy) const {
    const TensorType &a = typeOf(x, where), &b = typeOf(w, where);
    raiseOp("conv2d", what + ": x is " + toString(a) + ", w is " + toString(b), remedy, {a, b}, where);
  }
};

/// A size as an operand of a reshape.
void append(Shape &shape, std::vector<Tensor> &values, const Size &size) {
  shape.push_back(size.known);
  if (size.known == dynamic)
    values.push_back(size.value);
}

} // namespace

/// Of a stride, a dilation, or what is padded on one side.
static constexpr int64_t kMostPlaces = std::numeric_limits<int32_t>::max();

static std::string text(int64_t number) { return std::to_string(number); }

static void checkOperands(const Call &call, const Conv2dOptions &options) {
  const TensorType &x = typeOf(call.x, call.where), &w = typeOf(call.w, call.where);
  if (x.shape.rank() != 4 || w.shape.rank() != 4)
    call.refuse("takes x[N, H, W, C] and w[R, S, C / groups, O]", "reshape, or add axes: expand_dims(x, 0)");
  checkDTypes("conv2d", call.x, call.w, call.where);
  constexpr int64_t most = kMostPlaces;
  auto check = [&](const char *name, int64_t number) {
    if (number < 1 || number > most)
      call.refuse(std::string(name) + " is " + text(number), "give a number from 1 to " + text(most));
  };
  for (int64_t stride : options.strides)
    check("a stride", stride);
  for (int64_t dilation : options.dilations)
    check("a dilation", dilation);
  check("the number of groups", options.groups);
  for (const std::pair<int64_t, int64_t> &around : {options.padding.rows, options.padding.columns})
    for (int64_t places : {around.first, around.second})
      if (places < 0 || places > most)
        call.refuse("the padding has " + text(places) + " places", "give a number from 0 to " + text(most));
  int64_t channels = x.shape.dim(3), own = w.shape.dim(2), made = w.shape.dim(3), groups = options.groups;
  if (channels != dynamic && own != dynamic && (own > channels / groups || own * groups != channels))
    call.refuse(groups == 1 ? "x has " + text(channels) + " channels and w takes " + text(own)
                            : "x has " + text(channels) + " channels and w takes " + text(own) + " in each of " +
                                  text(groups) + " groups",
                "w is [R, S, C / groups, O]");
  if (made != dynamic && made % groups != 0)
    call.refuse("w makes " + text(made) + " channels, which are not " + text(groups) + " equal groups",
                "give each group the same number of channels");
  for (int axis : {0, 1})
    if (w.shape.dim(axis) == 0)
      call.refuse("w has no places", "a window is 1 by 1 at least");
}

/// Places before and after an axis for `same`: together as many as the windows of ceil(size / stride) places need.
static std::pair<int64_t, int64_t> sameAround(const Call &call, const Axis &axis) {
  int64_t size = axis.of.known, window = axis.taken.known;
  if (window == dynamic || (size == dynamic && axis.stride > 1))
    call.refuse(std::string("the padding `same` of the ") + axis.name + " follows from sizes that are open",
                "give it in numbers: {.padding = {{before, after}, {before, after}}}");
  int64_t reach = runtime::saturatingAdd(runtime::saturatingMul(window - 1, axis.dilation), 1);
  int64_t left = axis.stride == 1 || size == 0 ? axis.stride
                 : size % axis.stride == 0     ? axis.stride
                                               : size % axis.stride;
  int64_t both = size == 0 ? 0 : std::max<int64_t>(0, reach - left);
  if (both / 2 >= kMostPlaces)
    call.refuse("the padding `same` of the " + std::string(axis.name) + " would have " + text(both) + " places",
                "give smaller windows or dilations");
  return {both / 2, both - both / 2};
}

Tensor conv2d(const Located &image, const Located &weights, const Conv2dOptions &options) {
  const Where &where = image.where();
  Tensor x = tensorOf(image), w = tensorOf(weights);
  Call call{x, w, where};
  checkOperands(call, options);
  Axis axes[] = {
      {"rows", 1, options.strides[0], options.dilations[0], options.padding.rows, 'h', 'r', 'p', {}, {}},
      {"columns", 2, options.strides[1], options.dilations[1], options.padding.columns, 'w', 's', 'q', {}, {}}};
  std::string lettersX = "n", lettersW, lettersY = "n", relations;
  Sizes related;
  Shape shapeW;
  std::vector<Tensor> sizesW;
  std::vector<Size> sizesY{detail::sizeOf(x, 0, where)};
  for (Axis &axis : axes) {
    axis.of = detail::sizeOf(x, axis.axis, where), axis.taken = detail::sizeOf(w, axis.axis - 1, where);
    if (options.padding.kind == Padding::same)
      axis.around = sameAround(call, axis);
    lettersX += axis.image;
    if (axis.isPlain()) {
      lettersY += axis.image;
      sizesY.push_back(axis.of);
      continue;
    }
    lettersW += axis.window;
    append(shapeW, sizesW, axis.taken);
    lettersY += axis.result;
    Size size = detail::computeSize("conv2d",
                                    "max((a + " + text(axis.around.first + axis.around.second) + " - (b - 1) * " +
                                        text(axis.dilation) + " - 1) // " + text(axis.stride) + " + 1, 0)",
                                    {axis.of, axis.taken}, where);
    related.push_back(size);
    sizesY.push_back(size);
    relations += std::string("; ") + axis.image + "=" + text(axis.stride) + axis.result + "+" + text(axis.dilation) +
                 axis.window + (axis.around.first > 0 ? "-" + text(axis.around.first) : "");
  }
  bool grouped = options.groups > 1;
  Size own = detail::sizeOf(w, 2, where), made = detail::sizeOf(w, 3, where);
  sizesY.push_back(made);
  append(shapeW, sizesW, own);
  if (grouped) {
    Size groups{options.groups, {}};
    append(shapeW, sizesW, groups);
    append(shapeW, sizesW, detail::computeSize("conv2d", "a / " + text(options.groups), {made}, where));
    Shape shapeX;
    std::vector<Tensor> sizesX;
    for (int axis = 0; axis < 3; ++axis)
      append(shapeX, sizesX, detail::sizeOf(x, axis, where));
    append(shapeX, sizesX, groups);
    append(shapeX, sizesX, own);
    x = detail::reshapeTo(x, shapeX, sizesX, where);
  } else {
    append(shapeW, sizesW, made);
  }
  if (shapeW.rank() != 4 || grouped)
    w = detail::reshapeTo(w, shapeW, sizesW, where);
  std::string equation = lettersX + (grouped ? "gc," : "c,") + lettersW + (grouped ? "cgo->" : "co->") + lettersY +
                         (grouped ? "go" : "o") + relations;
  std::vector<const Tensor *> operands{&x, &w};
  for (const Tensor &size : related.values)
    operands.push_back(&size);
  Tensor y;
  detail::applyOp(OpId::contract, runtime::ContractAttrs::make(equation, related.list), operands, std::span(&y, 1),
                  where);
  if (!grouped)
    return y;
  Shape shapeY;
  std::vector<Tensor> sizes;
  for (const Size &size : sizesY)
    append(shapeY, sizes, size);
  return detail::reshapeTo(y, shapeY, sizes, where);
}

} // namespace wg
