#include <wengert/Transforms.h>

#include "frontend/Apply.h"

namespace wg::detail {

Tensor fresh(const Tensor &x) { return identity(Located(x, Where())); }

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
