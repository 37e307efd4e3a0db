// What is the layer of a convolution, of a table, of a shape?
#include "wengert/nn/Layers.h"

#include "frontend/nn/Layer.h"

namespace wg::nn {

Conv2d::Conv2d(int64_t in, int64_t out, std::array<int64_t, 2> window, Activation activation, Conv2dOptions options,
               Where where)
    : options_{.strides = options.strides,
               .dilations = options.dilations,
               .groups = options.groups,
               .padding = options.padding},
      activation_(std::move(activation)) {
  const int64_t groups = options.groups;
  detail::checkSizesOfLayer(
      "conv2d", {{"inputs", in}, {"outputs", out}, {"rows", window[0]}, {"columns", window[1]}, {"groups", groups}},
      where);
  if (in % groups != 0 || out % groups != 0)
    detail::raiseOp("conv2d",
                    std::to_string(groups) + " groups do not divide " + std::to_string(in) + " inputs and " +
                        std::to_string(out) + " outputs",
                    "give a number that divides both", {}, where);
  auto made = [&](const char *name, const Initializer &initializer, const Shape &shape) {
    return add(name, detail::initialValue("conv2d", name, initializer, shape, options.dtype, where), true, where);
  };
  weight_ = made("weight", options.weight, Shape{window[0], window[1], in / groups, out});
  if (options.bias)
    bias_ = made("bias", options.initial_bias, Shape{out});
}

Tensor Conv2d::operator()(const Tensor &x, Where where) const {
  const int64_t in = weight_.shape(where).dim(2) * options_.groups;
  detail::checkInput("conv2d", x, {in}, weight_.dtype(where), 4, where);
  Tensor y = conv2d(Located(x, where), Located(weight_, where), options_);
  if (bias_.defined())
    y = Located(y, where) + Located(bias_, where);
  return activation_ ? activation_(Located(y, where)) : y;
}

Embedding::Embedding(int64_t count, int64_t features, EmbeddingOptions options, Where where) {
  detail::checkSizesOfLayer("embedding", {{"rows", count}, {"features", features}}, where);
  weight_ = add("weight",
                detail::initialValue("embedding", "weight", options.weight, {count, features}, options.dtype, where),
                true, where);
}
Tensor Embedding::operator()(const Tensor &numbers, Where where) const {
  Tensor rows = numbers.dtype(where) == u8 ? cast(Located(numbers, where), i32) : numbers;
  return gather(Located(weight_, where), Located(rows, where));
}

Tensor Flatten::operator()(const Tensor &x, Where where) const {
  std::vector<detail::Size> sizes = detail::sizesOf(x, where), open;
  if (sizes.empty())
    detail::raiseOp("flatten", "a scalar has no first axis", "give x[N, ...]", {x.body()->type}, where);
  int64_t known = 1;
  std::string formula;
  for (size_t i = 1; i < sizes.size(); ++i)
    if (sizes[i].known == dynamic) {
      formula += static_cast<char>('a' + open.size());
      formula += " * ";
      open.push_back(sizes[i]);
    } else {
      known *= sizes[i].known;
    }
  detail::Size all = open.empty() ? detail::Size{known, {}}
                                  : detail::computeSize("flatten", formula + std::to_string(known), open, where);
  return detail::reshapeTo(x, std::vector<detail::Size>{sizes[0], all}, where);
}

} // namespace wg::nn
