// Do the pieces of a layer fit?
#include "frontend/nn/Layer.h"

namespace wg::detail {

Tensor initialValue(const char *op, const char *name, const nn::Initializer &initializer, const Shape &shape,
                    DType dtype, const Where &where) {
  TensorType wanted{dtype, shape};
  Tensor initial = initializer(shape, dtype);
  if (!(initial.body(where)->type == wanted))
    raiseOp(op,
            "the initializer of the " + std::string(name) + " made " + toString(initial.body()->type) + ", asked for " +
                toString(wanted),
            "return a tensor of the shape and dtype that the initializer is called with", {}, where);
  return initial;
}

void checkSizesOfLayer(const char *op, std::initializer_list<std::pair<const char *, int64_t>> sizes,
                       const Where &where) {
  for (const auto &[name, size] : sizes)
    if (size < 1)
      raiseOp(op, "the number of " + std::string(name) + " is " + std::to_string(size), "give 1 or more", {}, where);
}

void checkInput(const char *op, const Tensor &x, const Shape &last, DType dtype, int rank, const Where &where) {
  const TensorType &given = typeOf(x, where);
  std::string wanted = std::string(nameOf(dtype)) + "[...";
  for (int axis = 0; axis < last.rank(); ++axis)
    wanted += ", " + std::to_string(last.dim(axis));
  wanted += "]";
  bool fits = given.shape.rank() >= std::max(rank, last.rank());
  for (int axis = 1; fits && axis <= last.rank(); ++axis) {
    int64_t size = given.shape.dim(given.shape.rank() - axis);
    fits = size == dynamic || size == last.dim(last.rank() - axis);
  }
  if (!fits)
    raiseOp(op,
            "the layer takes " + wanted +
                (rank > last.rank() ? " of " + std::to_string(rank) + " or more axes" : std::string()) +
                "; its input is " + toString(given),
            "reshape the input, or make the layer with other sizes", {given}, where);
  if (given.dtype != dtype)
    raiseOp(op, "the layer takes " + wanted + "; its input is " + toString(given),
            "cast the input: cast(x, " + std::string(nameOf(dtype)) + ")" +
                (runtime::isFloat(given.dtype)
                     ? ", or make the layer with {.dtype = " + std::string(nameOf(given.dtype)) + "}"
                     : ""),
            {given}, where, ErrorKind::type);
}

Tensor reshapeTo(const Tensor &x, const std::vector<Size> &sizes, const Where &where) {
  Sizes shape;
  for (const Size &size : sizes)
    shape.push_back(size);
  return reshapeTo(x, Shape(shape.list), shape.values, where);
}

std::vector<Size> sizesOf(const Tensor &x, const Where &where) {
  std::vector<Size> sizes;
  for (int axis = 0; axis < typeOf(x, where).shape.rank(); ++axis)
    sizes.push_back(sizeOf(x, axis, where));
  return sizes;
}

Tensor splitLast(const Tensor &x, int64_t parts, const Where &where) {
  std::vector<Size> sizes = sizesOf(x, where);
  int64_t all = sizes.back().known;
  sizes.back() = {parts, {}};
  sizes.push_back({all / parts, {}});
  return reshapeTo(x, sizes, where);
}

Tensor joinLast(const Tensor &x, const Where &where) {
  std::vector<Size> sizes = sizesOf(x, where);
  int64_t last = sizes.back().known;
  sizes.pop_back();
  sizes.back().known *= last;
  return reshapeTo(x, sizes, where);
}

int64_t lastSize(const char *op, const Tensor &x, const Where &where) {
  const TensorType &type = typeOf(x, where);
  if (type.shape.rank() == 0 || type.shape.dim(type.shape.rank() - 1) == dynamic)
    raiseOp(op, "the operand " + toString(type) + " has no last axis of static size", "give x[..., features]", {type},
            where);
  return type.shape.dim(type.shape.rank() - 1);
}

} // namespace wg::detail
