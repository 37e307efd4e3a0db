#include <wengert/Transforms.h>

#include "frontend/Apply.h"

namespace wg::detail {

/// A reshape to its own shape: the same elements, another identity, and an outer tape sees where it came from.
Tensor fresh(const Tensor &x) {
  Where where;
  const Shape &shape = x.body(where)->type.shape;
  std::vector<Tensor> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape.dim(axis) == dynamic)
      sizes.push_back(applyOne(runtime::OpId::dim, runtime::DimAttrs::make(axis), {&x}, where));
  std::vector<const Tensor *> operands{&x};
  for (const Tensor &size : sizes)
    operands.push_back(&size);
  Tensor result;
  applyOp(runtime::OpId::reshape, runtime::ReshapeAttrs::make(shape), operands, std::span(&result, 1), where);
  return result;
}

void raiseNoVariables(const Where &where) {
  raiseOp("gradient", "No trainable variables were accessed while the function was being computed.",
          "read a trainable variable in the function", {}, where);
}

void raiseStaticPlace(int place) {
  raiseOp("value_and_grad",
          "argument " + std::to_string(place) + " is a number, an enum or a string, which has no gradient",
          "name places of tensors and variables", {}, {}, ErrorKind::type);
}

void raisePlace(int place, size_t count, const Where &where) {
  raiseOp("value_and_grad", "place " + std::to_string(place) + " of " + std::to_string(count) + " arguments",
          "places count from 0", {}, where);
}

} // namespace wg::detail
