// What convolutions and pooling have in common: windows that step over the axes of an image.
#pragma once

#include "frontend/ops/Formula.h"

#include <wengert/Convolution.h>

#include <limits>

namespace wg::detail {

/// One axis of an image, and the window that steps over it.
struct WindowedAxis {
  size_t number; ///< 0, 1, 2
  int64_t stride, dilation;
  Size of, taken;                              ///< sizes of the image and of the window
  std::pair<int64_t, int64_t> around = {0, 0}; ///< places before and after
};

/// The operands of a call, and what can be wrong with it.
struct Image {
  const char *op;
  Tensor x;
  const Tensor *w; ///< null: there is none
  size_t axes;
  const Where &where;

  /// Of a stride, a dilation, or what is padded on one side.
  static constexpr int64_t kMostPlaces = std::numeric_limits<int32_t>::max();
  [[noreturn]] void refuse(const std::string &what, const std::string &remedy) const;
  void check(const char *name, int64_t number, int64_t least = 1) const;
  void checkPadding(const Padding &padding) const;
  /// Places before and after an axis.
  std::pair<int64_t, int64_t> around(const Padding &padding, const WindowedAxis &axis) const;
  /// How many windows there are.
  Size taken(const WindowedAxis &axis) const;
  /// `rows`, `columns`
  std::string nameOf(size_t number) const;
};

} // namespace wg::detail
