// Does a tensor have the shape that it should?
#include "wengert/Check.h"
#include "frontend/ops/Operands.h"

namespace wg {

Tensor shape_check(const Located &x, const Shape &shape, std::string_view name) {
  const Where &where = x.where();
  detail::checkRank("shape_check", shape, where);
  Shape wanted;
  for (int64_t size : shape) {
    if (size < -1 && size != dynamic)
      detail::raiseOp("shape_check", "the size " + std::to_string(size) + " of the shape wanted is negative",
                      "give wg::dynamic, or -1, for any size", {}, where);
    wanted.push_back(size == -1 ? dynamic : size);
  }
  Tensor tensor = detail::tensorOf(x);
  TensorType type = detail::typeOf(tensor, where);
  auto refuse = [&](const std::string &difference, const char *remedy) {
    detail::raiseOp("shape_check",
                    (name.empty() ? "the tensor" : "`" + std::string(name) + "`") + " has the shape " +
                        detail::text(type.shape) + ", wanted " + detail::text(wanted) + ": " + difference,
                    remedy, {type}, where);
  };
  if (type.shape.rank() != wanted.rank())
    refuse("the rank is " + std::to_string(type.shape.rank()) + ", not " + std::to_string(wanted.rank()),
           "reshape it, or add an axis with expand_dims");
  for (int axis = 0; axis < wanted.rank(); ++axis)
    if (wanted.dim(axis) != dynamic && type.shape.dim(axis) != dynamic && type.shape.dim(axis) != wanted.dim(axis))
      refuse("axis " + std::to_string(axis) + " has " + std::to_string(type.shape.dim(axis)) + " places, not " +
                 std::to_string(wanted.dim(axis)),
             "give a tensor of the shape wanted");

  // An open size becomes the number wanted, one axis after the other: the number of elements
  // shows at run time whether it is.
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if (wanted.dim(axis) == dynamic || tensor.shape().dim(axis) != dynamic)
      continue;
    detail::Sizes sizes;
    for (int other = 0; other < wanted.rank(); ++other)
      sizes.push_back(other == axis ? detail::Size{wanted.dim(axis), {}} : detail::sizeOf(tensor, other, where));
    tensor = detail::reshapeTo(tensor, Shape(sizes.list), sizes.values, where);
  }
  return tensor;
}

} // namespace wg
