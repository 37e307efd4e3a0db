#include "runtime/Shape.h"

namespace wg::runtime {

static std::string join(std::span<const int64_t> values, const char *separator) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0)
      text += separator;
    text += values[i] == kDynamic ? "?" : std::to_string(values[i]);
  }
  return text;
}

Ints placeOf(const Shape &shape, int64_t element) {
  Ints place(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    place[axis] = element % shape[axis];
  return place;
}

std::string toString(const Ints &values) { return "[" + join(values, ", ") + "]"; }

std::string toString(const Shape &shape) { return "(" + join(shape, ", ") + (shape.rank() == 1 ? ",)" : ")"); }

std::string toString(const TensorType &type) {
  return std::string(nameOf(type.dtype)) + "[" + join(type.shape, ",") + "]";
}

} // namespace wg::runtime
