// Tensors as values: made from C++ data, read back, printed.
#include "frontend/ops/Operands.h"

#include <limits>
#include <ostream>

namespace wg {

using runtime::Array;

Error::Error(runtime::Failure failure) : std::runtime_error(runtime::toString(failure)), failure_(std::move(failure)) {}

Tensor::Tensor(DType dtype, const Shape &shape, void **elements, const Where &where) {
  Array array =
      detail::orOutOfMemory("tensor", TensorType{dtype, shape}, where, [&] { return Array::empty(dtype, shape); });
  *elements = array.buffer.data();
  *this = detail::makeTensor(std::move(array));
}

Tensor::Tensor(const TensorSpec &spec) {
  detail::checkRank("tensor", spec.shape, {});
  for (int64_t size : spec.shape)
    if (size < -1 && size != dynamic)
      detail::raiseOp("TensorSpec", "sizes are not negative: " + std::to_string(size),
                      "give wg::dynamic, or -1, for a size that is open", {}, {});
  auto *state = new detail::TensorState;
  state->type.dtype = spec.dtype;
  for (int64_t size : spec.shape)
    state->type.shape.push_back(size == -1 ? dynamic : size);
  state->spec = true;
  body_ = state;
}

Tensor::Tensor(const Grad &grad, Where where) : Tensor(grad.value(where)) {}

void Tensor::undefined(const Where &where) {
  detail::raiseOp("tensor", "it is undefined: a default-constructed tensor has no dtype, shape or value",
                  "give it a value: Tensor x(0.0f)", {}, where);
}

void Tensor::checkCount(size_t count, const Shape &shape, const Where &where) {
  detail::checkSizes("from", shape, where);
  if (static_cast<int64_t>(count) != shape.numElements())
    detail::raiseOp("from",
                    std::to_string(count) + " values for shape " + toString(shape) + ", which has " +
                        std::to_string(shape.numElements()),
                    "give as many values as the shape has", {}, where);
}

Tensor Tensor::blob(DType dtype, const void *data, const Shape &shape, void (*release)(void *owner) noexcept,
                    void *owner, const Where &where) {
  runtime::Buffer buffer;
  try {
    detail::checkSizes("from_blob", shape, where, dtype);
    TensorType type{dtype, shape};
    if (!data && shape.numElements() != 0)
      detail::raiseOp("from_blob", "the pointer to the elements of " + toString(type) + " is null",
                      "give the place of the first element", {}, where);
    if (reinterpret_cast<uintptr_t>(data) % sizeOf(dtype) != 0)
      detail::raiseOp("from_blob",
                      "the pointer is not aligned to the " + std::to_string(sizeOf(dtype)) + " bytes of a " +
                          std::string(nameOf(dtype)),
                      "copy the bytes into an array of the type, and that with Tensor::from", {}, where);
    buffer = runtime::Buffer::refer(data, static_cast<size_t>(shape.numElements()) * sizeOf(dtype), release, owner);
  } catch (...) {
    release(owner);
    throw;
  }
  return detail::makeTensor({{dtype, shape}, std::move(buffer)});
}

void Tensor::checkNesting(int depth, const Where &where) const {
  if (rank(where) != depth)
    detail::raiseOp("to",
                    toString(body_->type) + " has rank " + std::to_string(rank(where)) + ", asked for " +
                        std::to_string(depth) + " nested vectors",
                    "ask for as many as the rank, or for one vector of all elements", {}, where);
}

void detail::raiseBeyondI64(uint64_t number, const Where &where) {
  raiseOp("literal", std::to_string(number) + " does not fit i64, which holds at most " + std::to_string(INT64_MAX),
          "make it a float: static_cast<double>(number)", {}, where);
}

void Tensor::ragged(size_t expected, size_t found, const Where &where) {
  detail::raiseOp("tensor", "rows of different lengths: " + std::to_string(expected) + " and " + std::to_string(found),
                  "give rows of equal length", {}, where);
}

/// Size `axis` of a type, as a number.
static int64_t sizeAt(const TensorType &type, int64_t axis, const Where &where) {
  int rank = type.shape.rank();
  if (axis < -rank || axis >= rank)
    detail::raiseOp("dim", toString(type) + " has no axis " + std::to_string(axis),
                    rank ? "give an axis from " + std::to_string(-rank) + " to " + std::to_string(rank - 1)
                         : "a scalar has no axes",
                    {type}, where, ErrorKind::lookup);
  int64_t size = type.shape.dim(static_cast<int>(axis < 0 ? axis + rank : axis));
  if (size == dynamic)
    detail::raiseOp("dim", "axis " + std::to_string(axis) + " of " + toString(type) + " is known only at run time",
                    "leave it to the op: reshape to -1, ones(x.shape()), mean; or shape_check(x, {64, ...})", {type},
                    where);
  return size;
}
int64_t Tensor::dim(int64_t axis, Where where) const { return sizeAt(body(where)->type, axis, where); }
int64_t Variable::dim(int64_t axis, Where where) const { return sizeAt(type(where), axis, where); }

Tensor Tensor::from(const std::vector<bool> &values, Where where) {
  return from(values, Shape{static_cast<int64_t>(values.size())}, where);
}
Tensor Tensor::from(const std::vector<bool> &values, const Shape &shape, Where where) {
  checkCount(values.size(), shape, where);
  bool *next;
  Tensor tensor = empty<bool>(shape, next, where);
  std::copy(values.begin(), values.end(), next);
  return tensor;
}

bool Tensor::symbolic() const { return body_ && (detail::stateOf(*this)->symbol || detail::stateOf(*this)->spec); }

int64_t Tensor::size(Where where) const {
  const Shape &shape = body(where)->type.shape;
  if (!shape.isStatic())
    detail::raiseOp("size", "the shape " + toString(shape) + " has a dynamic size",
                    "ask when the function runs, or give the size in the signature", {}, where);
  return shape.numElements();
}

/// The tensor's elements; an error for a symbolic one.
static Array dataOf(const char *what, const Tensor &tensor, const Where &where) {
  tensor.body(where);
  if (tensor.symbolic())
    detail::raiseNoElements(what, tensor, where);
  return detail::arrayOf(tensor);
}

/// As `cast` converts: floats to integers toward zero, saturating, NaN to 0.
template <class From, class To> static void convert(const Array &array, To *to) {
  const From *from = array.data<From>();
  for (int64_t i = 0, n = array.numElements(); i < n; ++i)
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
      to[i] = detail::saturated<To>(static_cast<double>(from[i]));
    else
      to[i] = static_cast<To>(from[i]);
}

template <class To> static void convertTo(const Array &array, void *to) {
  auto *out = static_cast<To *>(to);
  switch (array.dtype()) {
  case DType::f64: return convert<double>(array, out);
  case DType::f32: return convert<float>(array, out);
  case DType::i64: return convert<int64_t>(array, out);
  case DType::i32: return convert<int32_t>(array, out);
  case DType::u8: return convert<uint8_t>(array, out);
  case DType::boolean: return convert<uint8_t>(array, out);
  default: break;
  }
}

void Tensor::copyOut(DType as, void *to, bool one, const Where &where) const {
  Array array = dataOf(one ? "item" : "to_vector", *this, where);
  if (one && array.numElements() != 1)
    detail::raiseOp("item",
                    "the tensor has " + std::to_string(array.numElements()) + " elements: " + toString(array.type),
                    "use to_vector", {}, where);
  if (as == array.dtype()) {
    if (array.numBytes())
      std::memcpy(to, array.buffer.data(), array.numBytes());
    return;
  }
  switch (as) {
  case DType::f64: return convertTo<double>(array, to);
  case DType::f32: return convertTo<float>(array, to);
  case DType::i64: return convertTo<int64_t>(array, to);
  case DType::i32: return convertTo<int32_t>(array, to);
  case DType::u8: return convertTo<uint8_t>(array, to);
  case DType::boolean: return convertTo<bool>(array, to);
  default: break;
  }
}

const void *Tensor::elements(DType as, const Where &where) const {
  Array array = dataOf("data", *this, where);
  if (as != array.dtype())
    detail::raiseOp(
        "data", "the tensor is " + toString(array.type) + ", asked for elements of " + std::string(nameOf(as)),
        "use to_vector, which converts, or cast(x, " + std::string(nameOf(as)) + ")", {}, where, ErrorKind::type);
  return array.buffer.data();
}

std::string to_string(const Tensor &tensor) {
  if (!tensor.defined())
    return "Tensor(undefined)";
  const TensorType &type = tensor.body()->type;
  std::string value = tensor.symbolic() ? "?" : toString(detail::arrayOf(tensor), 7);
  return "Tensor(" + value + ", shape=" + toString(type.shape) + ", dtype=" + std::string(longNameOf(type.dtype)) + ")";
}

std::ostream &operator<<(std::ostream &out, const Tensor &tensor) { return out << to_string(tensor); }

std::string to_string(const Grad &grad) {
  return grad.has_value() ? to_string(grad.value()) : "None: " + grad.reason();
}
std::ostream &operator<<(std::ostream &out, const Grad &grad) { return out << to_string(grad); }
namespace runtime {
std::ostream &operator<<(std::ostream &out, DType dtype) { return out << nameOf(dtype); }
std::ostream &operator<<(std::ostream &out, const Shape &shape) { return out << toString(shape); }
std::ostream &operator<<(std::ostream &out, const TensorType &type) { return out << toString(type); }
} // namespace runtime
std::string to_string(DType dtype) { return std::string(nameOf(dtype)); }
std::string to_string(const Shape &shape) { return toString(shape); }
std::string to_string(const TensorType &type) { return toString(type); }

Located::Located(const Grad &grad, Where where) : held_(grad.value(where)), where_(where) {}

} // namespace wg
